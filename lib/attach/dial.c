/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/dial.h"

#include "abi/clock.h"
#include "attach/fail.h"
#include "attach/missing.h"
#include "attach/patience.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int
urn_dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t start = urn_clock_ms();
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return urn_fail(ENAMETOOLONG, "%s: a socket's path has at most %zu bytes", path,
				sizeof(addr.sun_path) - 1),
		       -1;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return urn_fail(errno, "no descriptor for a connection to the dataplane: %s",
				strerror(errno)),
		       -1;
	if (urn_patience_begin(fd) != 0)
		return close(fd), -1;
	do /* connect() waits while many programs connect at once, and is called again after a
	      signal */
		err = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : errno;
	while (err == EINTR && !urn_patience_over(fd, start, 1));
	if (err == 0)
		return fd;
	if (err == EINTR || err == EAGAIN) {
		urn_patience_lost(fd, path);
		return close(fd), -1;
	}
	close(fd);
	urn_missing(path, err);
	return -1;
}
