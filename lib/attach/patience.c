/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/patience.h"

#include "abi/clock.h"
#include "attach/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

/* Bounds of a wait, seconds: unless told, and the longest. */
enum { URN_PATIENCE = 10, URN_PATIENCE_MOST = 86400 };

void
urn_patience_set(int fd, uint32_t ms)
{
	const struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/* Bound of a wait on the socket, ms; 0: for ever. */
static uint64_t
urn_patience_of(int fd)
{
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len) != 0)
		return 0;
	return (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000;
}

int
urn_patience_begin(int fd)
{
	const char *told = secure_getenv("URNIC_TIMEOUT");
	unsigned long seconds = URN_PATIENCE;
	char *end;

	if (told != NULL && told[0] != '\0') {
		seconds = strtoul(told, &end, 10);
		if (told[0] < '0' || told[0] > '9' || *end != '\0' || seconds == 0 || seconds > URN_PATIENCE_MOST)
			return urn_fail(EINVAL, "URNIC_TIMEOUT is '%.32s'; it is a number of seconds, 1 to %d", told,
				(int)URN_PATIENCE_MOST);
	}
	urn_patience_set(fd, (uint32_t)(seconds * 1000));
	return 0;
}

bool
urn_patience_over(int fd, uint64_t start, unsigned int times)
{
	uint64_t ms = urn_patience_of(fd);

	return ms != 0 && urn_clock_ms() - start >= ms * times;
}

int
urn_patience_lost(int fd, const char *path)
{
	struct sockaddr_un addr;
	socklen_t len = sizeof(addr);

	memset(&addr, 0, sizeof(addr));
	if (path == NULL && getpeername(fd, (struct sockaddr *)&addr, &len) == 0)
		path = addr.sun_path;
	return urn_fail(ETIMEDOUT,
			"the dataplane at %.*s has not answered for %lld s: is urnicd stopped? "
			"(URNIC_TIMEOUT)",
			(int)sizeof(addr.sun_path), path != NULL ? path : "?",
			(long long)(urn_patience_of(fd) / 1000));
}
