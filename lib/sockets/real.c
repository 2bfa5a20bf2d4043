/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/real.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors that can be hidden; those above are visible. */
enum { URN_HIDDEN_MAX = 65536 };

static struct urn_real urn_real_table;
static _Atomic int urn_real_found;
/* One bit for each hidden descriptor. */
static _Atomic uint64_t urn_hidden[URN_HIDDEN_MAX / 64];
static _Atomic pid_t urn_real_pid;
/* A page that the kernel clears in a copy of the process (MADV_WIPEONFORK): its first byte is 1 in
 * the process that urn_real_pid names. NULL: the kernel has no such pages. */
static _Atomic uint8_t *_Atomic urn_real_page;

/* Make the page. Several threads may come here at once: the first one's is taken. */
static void
urn_real_mark(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic uint8_t *expected = NULL;
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	*(_Atomic uint8_t *)page = 1;
	if (madvise(page, bytes, MADV_WIPEONFORK) != 0 ||
	    !atomic_compare_exchange_strong(&urn_real_page, &expected, page))
		(void)munmap(page, bytes);
}

const struct urn_real *
urn_real(void)
{
	if (!atomic_load_explicit(&urn_real_found, memory_order_acquire)) {
		/* Several threads may come here at once: all of them find the same. */
#define X(ret, name, params)                                     \
	{                                                        \
		void *sym = dlsym(RTLD_NEXT, #name);             \
		memcpy(&urn_real_table.name, &sym, sizeof(sym)); \
	}
		URN_REAL_LIST(X)
#undef X
		if (atomic_load(&urn_real_pid) == 0)
			atomic_store(&urn_real_pid, getpid());
		urn_real_mark();
		atomic_store_explicit(&urn_real_found, 1, memory_order_release);
	}
	return &urn_real_table;
}

void
urn_real_settle(void)
{
	_Atomic uint8_t *page = atomic_load(&urn_real_page);

	atomic_store(&urn_real_pid, getpid());
	if (page != NULL)
		atomic_store(page, 1);
}

bool
urn_real_stranger(void)
{
	return atomic_load(&urn_real_pid) != getpid();
}

bool
urn_real_copied(void)
{
	_Atomic uint8_t *page = atomic_load_explicit(&urn_real_page, memory_order_acquire);

	return (page == NULL || atomic_load_explicit(page, memory_order_relaxed) == 0) &&
	       urn_real_stranger();
}

/* ---- hidden descriptors */

bool
urn_real_hidden(int fd)
{
	return fd >= 0 && fd < URN_HIDDEN_MAX && atomic_load(&urn_hidden[fd / 64]) >> (fd % 64) & 1;
}

int
urn_real_next_hidden(int fd)
{
	for (fd = fd < 0 ? 0 : fd; fd < URN_HIDDEN_MAX; fd++) {
		if (fd % 64 == 0 && atomic_load(&urn_hidden[fd / 64]) == 0)
			fd += 63;
		else if (urn_real_hidden(fd))
			return fd;
	}
	return -1;
}

/* Move a descriptor of the library's to a high number, and hide it. returns: its number */
static int
urn_hide(int fd)
{
	struct rlimit lim;
	int high, base = 512;

	if (fd < 0)
		return fd;
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < 2 * (rlim_t)base)
		base = (int)lim.rlim_cur / 2;
	high = urn_real()->fcntl(fd, F_DUPFD_CLOEXEC, base);
	if (high >= 0) {
		urn_real()->close(fd);
		fd = high;
	}
	if (fd < URN_HIDDEN_MAX)
		atomic_fetch_or(&urn_hidden[fd / 64], 1ull << (fd % 64));
	return fd;
}

int
urn_real_copy(int fd)
{
	return urn_hide(urn_real()->dup(fd));
}

void
urn_real_end(int fd)
{
	if (urn_real_hidden(fd))
		atomic_fetch_and(&urn_hidden[fd / 64], ~(1ull << (fd % 64)));
	(void)urn_real()->close(fd);
}

/* Hide the descriptors that came along with a message. */
static void
urn_hide_all(struct msghdr *msg)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t i, count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < count; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			one = urn_hide(one);
			memcpy(CMSG_DATA(c) + i * sizeof(int), &one, sizeof(one));
		}
	}
}

/* ---- calls of the library itself (--wrap) */

/* The linker makes these names. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __wrap_socket(int domain, int type, int protocol);
int __wrap_close(int fd);
int __wrap_eventfd(unsigned int value, int flags);
int __real_eventfd(unsigned int value, int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int room, int timeout);
int __wrap_pipe2(int fd[2], int flags);
int __real_pipe2(int fd[2], int flags);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __real_memfd_create(const char *name, unsigned int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_read(int fd, void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t len);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);

int
__wrap_socket(int domain, int type, int protocol)
{
	return urn_hide(urn_real()->socket(domain, type, protocol));
}

int
__wrap_memfd_create(const char *name, unsigned int flags)
{
	return urn_hide(__real_memfd_create(name, flags));
}

int
__wrap_close(int fd)
{
	if (urn_real_hidden(fd))
		atomic_fetch_and(&urn_hidden[fd / 64], ~(1ull << (fd % 64)));
	return urn_real()->close(fd);
}

int
__wrap_eventfd(unsigned int value, int flags)
{
	return urn_hide(__real_eventfd(value, flags));
}

int
__wrap_epoll_create1(int flags)
{
	return urn_hide(__real_epoll_create1(flags));
}

int
__wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return urn_real()->epoll_ctl(epfd, op, fd, event);
}

int
__wrap_epoll_wait(int epfd, struct epoll_event *events, int room, int timeout)
{
	return urn_real()->epoll_wait(epfd, events, room, timeout);
}

int
__wrap_pipe2(int fd[2], int flags)
{
	int err = __real_pipe2(fd, flags);

	if (err == 0) {
		fd[0] = urn_hide(fd[0]);
		fd[1] = urn_hide(fd[1]);
	}
	return err;
}

int
__wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return urn_hide(__real_open(path, flags, mode));
}

int
__wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode = 0;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return urn_hide(__real_open(path, flags, mode));
}

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n = urn_real()->recvmsg(fd, msg, flags);

	if (n > 0)
		urn_hide_all(msg);
	return n;
}

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return urn_real()->sendmsg(fd, msg, flags);
}

ssize_t
__wrap_send(int fd, const void *data, size_t len, int flags)
{
	return urn_real()->send(fd, data, len, flags);
}

ssize_t
__wrap_read(int fd, void *data, size_t len)
{
	return urn_real()->read(fd, data, len);
}

ssize_t
__wrap_write(int fd, const void *data, size_t len)
{
	return urn_real()->write(fd, data, len);
}

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return urn_real()->connect(fd, addr, len);
}

int
__wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return urn_real()->getpeername(fd, addr, len);
}

int
__wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	return urn_real()->getsockopt(fd, level, option, value, len);
}

int
__wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	return urn_real()->setsockopt(fd, level, option, value, len);
}

int
__wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return urn_real()->poll(fds, n, timeout);
}

int
__wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	return urn_real()->ppoll(fds, n, timeout, mask);
}

int
__wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return urn_real()->fcntl(fd, cmd, arg);
}

int
__wrap_fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return urn_real()->fcntl(fd, cmd, arg);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
