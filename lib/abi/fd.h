/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors between program and dataplane: memfds that can be shared, and their way through a UNIX
 * socket (SCM_RIGHTS). The header is for both sides, and links nothing.
 */
#ifndef URN_ABI_FD_H
#define URN_ABI_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Make a memfd of `size` bytes whose size can't change any more, so that no access behind its end can
 * fault. Other seals may still be set. name: for /proc/PID/maps. returns: the descriptor, or -1 with errno
 */
static inline int
urn_fd_memory(const char *name, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/*
 * Send n descriptors along with a message. control: room for CMSG_SPACE(n * sizeof(int)) bytes, aligned as
 * a cmsghdr, valid until the message is sent. With n = 0 nothing changes.
 */
static inline void
urn_fd_put(struct msghdr *msg, void *control, const int *fd, size_t n)
{
	struct cmsghdr *c;

	if (n == 0)
		return;
	memset(control, 0, CMSG_SPACE(n * sizeof(int)));
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fd, n * sizeof(int));
}

/*
 * Take the descriptors that came along with a received message into fd[*n] and on; those for which fd has
 * no room are closed. max: entries of fd. returns: true when some found no room, here or at the kernel
 * (MSG_CTRUNC)
 */
static inline bool
urn_fd_take(struct msghdr *msg, int *fd, unsigned int max, unsigned int *n)
{
	bool many = (msg->msg_flags & MSG_CTRUNC) != 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t i, count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < count; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			if (*n < max) {
				fd[(*n)++] = one;
			} else {
				close(one);
				many = true;
			}
		}
	}
	return many;
}

#endif
