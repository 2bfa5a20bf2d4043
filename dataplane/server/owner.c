/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/owner.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; asm-generic/socket.h */
#endif

int
urn_owner_watch(int conn_fd, pid_t pid)
{
	socklen_t len = sizeof(int);
	int fd = -1;

	/*
	 * SO_PEERPIDFD gives a pidfd of the very process, even if another process has its number by now.
	 * EINVAL before Linux 6.16: the process has ended and its parent has waited for it.
	 */
	if (getsockopt(conn_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	if (errno == ESRCH || errno == EINVAL)
		return -ESRCH;
	if (errno != ENOPROTOOPT)
		return -errno;
	/*
	 * An older kernel: open by number. If another process has the number already, the program has ended,
	 * and its connection ends when all its holders do, or with that other process.
	 */
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd >= 0 ? fd : -errno;
}
