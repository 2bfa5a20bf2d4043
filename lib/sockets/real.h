/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's own functions behind those that liburnic-sockets.so puts in their place.
 *
 * Code of the library itself calls them too: the linker turns its close(), read() and so on into
 * __wrap_close(),
 * __wrap_read() (--wrap). Descriptors that the library gets for itself move to high numbers and are
 * hidden: a program that closes all descriptors, or picks numbers for its own, does not hit them.
 */
#ifndef URN_SOCKETS_REAL_H
#define URN_SOCKETS_REAL_H

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* X(returns, name, parameters) */
/* clang-format off */
#define URN_REAL_LIST(X) \
	X(int, socket, (int, int, int)) \
	X(int, bind, (int, const struct sockaddr *, socklen_t)) \
	X(int, connect, (int, const struct sockaddr *, socklen_t)) \
	X(int, listen, (int, int)) \
	X(int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
	X(ssize_t, sendfile, (int, int, off_t *, size_t)) \
	X(int, getsockname, (int, struct sockaddr *, socklen_t *)) \
	X(int, getpeername, (int, struct sockaddr *, socklen_t *)) \
	X(int, getsockopt, (int, int, int, void *, socklen_t *)) \
	X(int, setsockopt, (int, int, int, const void *, socklen_t)) \
	X(int, shutdown, (int, int)) \
	X(ssize_t, send, (int, const void *, size_t, int)) \
	X(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
	X(ssize_t, sendmsg, (int, const struct msghdr *, int)) \
	X(int, sendmmsg, (int, struct mmsghdr *, unsigned int, int)) \
	X(ssize_t, write, (int, const void *, size_t)) \
	X(ssize_t, writev, (int, const struct iovec *, int)) \
	X(ssize_t, recv, (int, void *, size_t, int)) \
	X(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
	X(ssize_t, recvmsg, (int, struct msghdr *, int)) \
	X(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *)) \
	X(ssize_t, read, (int, void *, size_t)) \
	X(ssize_t, readv, (int, const struct iovec *, int)) \
	X(int, poll, (struct pollfd *, nfds_t, int)) \
	X(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
	X(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
	X(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
	X(int, epoll_ctl, (int, int, int, struct epoll_event *)) \
	X(int, epoll_wait, (int, struct epoll_event *, int, int)) \
	X(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *)) \
	X(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *)) \
	X(int, ioctl, (int, unsigned long, ...)) \
	X(int, fcntl, (int, int, ...)) \
	X(int, close, (int)) \
	X(int, dup, (int)) \
	X(int, dup2, (int, int)) \
	X(int, dup3, (int, int, int)) \
	X(int, close_range, (unsigned int, unsigned int, int)) \
	X(long, syscall, (long, ...)) \
	X(void, _exit, (int)) \
	X(int, execve, (const char *, char *const[], char *const[])) \
	X(int, execvpe, (const char *, char *const[], char *const[])) \
	X(int, fexecve, (int, char *const[], char *const[])) \
	X(int, execveat, (int, const char *, char *const[], char *const[], int)) \
	X(int, posix_spawn, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[])) \
	X(int, posix_spawnp, (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]))
/* clang-format on */

struct urn_real {
#define X(ret, name, params) ret(*name) params; // NOLINT(bugprone-macro-parentheses)
	URN_REAL_LIST(X)
#undef X
};

/* The functions, found at the first call. Works in constructors of other libraries, too. */
const struct urn_real *urn_real(void);

/* True when the descriptor is the library's own. */
bool urn_real_hidden(int fd);
/* Make a hidden descriptor for the file of another one; urn_real_end() closes it. -1 with errno */
int urn_real_copy(int fd);
void urn_real_end(int fd);
/* The lowest hidden descriptor at or above fd; -1: none */
int urn_real_next_hidden(int fd);
/* True in a child of vfork(), which runs in its parent's memory: it must change nothing there. */
bool urn_real_stranger(void);
/* The same without a system call, for a call that a child of vfork() may make as well as its
 * parent's thread that waits for it: true in a process that has a copy of the memory, made without
 * fork()'s handlers. */
bool urn_real_copied(void);
/* This process is the one whose memory this is: at the start, and in a child of fork(). */
void urn_real_settle(void);

#endif
