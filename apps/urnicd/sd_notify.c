/* SPDX-License-Identifier: BSD-3-Clause */
#include "sd_notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
nicd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len == 0 || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Errors are ignored: without a listener or room, the manager misses the state. */
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}
