/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that copy, close and control descriptors. */
#include "sockets/call.h"

#include "sockets/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* True when the program names a descriptor that it has not got: one of the library's own. errno is
 * set */
static bool
urn_call_foreign(int fd)
{
	if (!urn_real_hidden(fd) || urn_real_stranger())
		return false;
	errno = EBADF;
	return true;
}

URN_CALL int
close(int fd)
{
	if (urn_call_foreign(fd))
		return -1;
	if (!urn_real_stranger())
		urn_twin_close(fd);
	return urn_real()->close(fd);
}

URN_CALL int
dup(int fd)
{
	int to = urn_real()->dup(fd);

	if (to >= 0 && !urn_real_stranger())
		urn_twin_dup(fd, to);
	return to;
}

/* After `to` became another descriptor for the file of fd. */
static int
urn_call_dupped(int fd, int to)
{
	if (to >= 0 && to != fd && !urn_real_stranger()) {
		urn_twin_close(to);
		urn_twin_dup(fd, to);
	}
	return to;
}

URN_CALL int
dup2(int fd, int to)
{
	if (urn_call_foreign(to))
		return -1;
	return urn_call_dupped(fd, urn_real()->dup2(fd, to));
}

URN_CALL int
dup3(int fd, int to, int flags)
{
	if (urn_call_foreign(to))
		return -1;
	return urn_call_dupped(fd, urn_real()->dup3(fd, to, flags));
}

/* fcntl() and fcntl64(): descriptors that it makes have the twin, too. */
static int
urn_call_fcntl(int fd, int cmd, void *arg)
{
	int got = urn_real()->fcntl(fd, cmd, arg);

	if (got >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) && !urn_real_stranger())
		urn_twin_dup(fd, got);
	if (got >= 0 && cmd == F_SETFL)
		urn_twin_set_nonblock(fd, ((uintptr_t)arg & O_NONBLOCK) != 0);
	return got;
}

URN_CALL int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return urn_call_fcntl(fd, cmd, arg);
}

URN_CALL int
fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return urn_call_fcntl(fd, cmd, arg);
}

URN_CALL int
ioctl(int fd, unsigned long what, ...)
{
	struct urn_twin *t;
	struct urn_sock *s;
	va_list ap;
	void *arg;
	int err;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	err = urn_real()->ioctl(fd, what, arg);
	if (err == 0 && what == FIONBIO)
		urn_twin_set_nonblock(fd, *(int *)arg != 0);
	if (err == 0 && what == FIONREAD && urn_tcp_waiting(fd, arg))
		return 0;
	t = err == 0 && what == FIONREAD ? urn_twin_get(fd) : NULL;
	s = t != NULL ? atomic_load(&t->sock) : NULL;
	/* FIONREAD tells the length of the next datagram: the kernel's, or that of the twin. */
	if (s != NULL && *(int *)arg == 0)
		*(int *)arg = (int)urn_sock_next_len(s);
	urn_twin_put(t);
	return err;
}

/* Close the twins of a range; the kernel closes the descriptors. */
static void
urn_call_close_twins(unsigned int first, unsigned int last)
{
	unsigned int fd;

	for (fd = first; fd <= last && fd < URN_TWIN_FDS; fd++)
		urn_twin_close((int)fd);
}

URN_CALL int
close_range(unsigned int first, unsigned int last, int flags)
{
	int hidden;

	if (urn_real_stranger() || flags != 0 || first > last)
		return urn_real()->close_range(first, last, flags);
	urn_call_close_twins(first, last);
	while (first <= INT_MAX && (hidden = urn_real_next_hidden((int)first)) >= 0 &&
	       (unsigned int)hidden <= last) {
		if ((unsigned int)hidden > first &&
		    urn_real()->close_range(first, (unsigned int)hidden - 1, 0) != 0)
			return -1;
		first = (unsigned int)hidden + 1;
	}
	return first > last ? 0 : urn_real()->close_range(first, last, 0);
}

URN_CALL void
closefrom(int first)
{
	(void)close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0);
}
