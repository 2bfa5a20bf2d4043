/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that wait for several descriptors. */
#include "sockets/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "abi/clock.h"
#include "sockets/tcp.h"

#ifndef __clang__
/* In the C library's prototypes poll() only writes to its descriptors. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/* returns: for `end`; ts: NULL: never; a time that makes no sense is left to the kernel: ~0 */
static uint64_t
urn_call_end(const struct timespec *ts)
{
	if (ts == NULL || ts->tv_sec > 1000000000)
		return 0;
	return urn_sock_end_of((int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec);
}

URN_CALL int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (timeout != 0)
		urn_tcp_held_all();
	if (fds != NULL && urn_tcp_among(fds, n))
		return urn_tcp_poll(fds, n,
				    urn_sock_end_of(timeout < 0 ? -1 : (int64_t)timeout * 1000000),
				    NULL);
	if (fds == NULL || !urn_twin_among(fds, n))
		return urn_real()->poll(fds, n, timeout);
	return urn_twin_poll(fds, n, urn_sock_end_of(timeout < 0 ? -1 : (int64_t)timeout * 1000000),
			     NULL);
}

URN_CALL int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	bool sane = timeout == NULL || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 &&
					timeout->tv_nsec < 1000000000);

	urn_tcp_held_all();
	if (fds != NULL && sane && urn_tcp_among(fds, n))
		return urn_tcp_poll(fds, n, urn_call_end(timeout), mask);
	if (fds == NULL || !sane || !urn_twin_among(fds, n))
		return urn_real()->ppoll(fds, n, timeout, mask);
	return urn_twin_poll(fds, n, urn_call_end(timeout), mask);
}

/* ---- select, by poll */

/* The events that each set asks for, and those that put a descriptor into the answer, as in the
 * kernel's select(). */
static const struct {
	short ask, got;
} urn_select_kinds[3] = {
	{POLLIN, POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR},
	{POLLOUT, POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR},
	{POLLPRI, POLLPRI},
};

/* Make a poll of three sets. returns: how many descriptors */
static nfds_t
urn_select_ask(struct pollfd *fds, int n, fd_set *const set[3])
{
	nfds_t count = 0;
	int fd, k;

	for (fd = 0; fd < n; fd++) {
		short events = 0;

		for (k = 0; k < 3; k++)
			if (set[k] != NULL && FD_ISSET(fd, set[k]))
				events = (short)(events | urn_select_kinds[k].ask);
		if (events != 0)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

/* Make the sets' answer of a poll. returns: how many bits are set; -1 with errno: a descriptor is
 * none */
static int
urn_select_answer(const struct pollfd *fds, nfds_t count, fd_set *const set[3])
{
	int k, bits = 0;
	nfds_t i;

	for (i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		for (k = 0; k < 3; k++) {
			if (!(fds[i].events & urn_select_kinds[k].ask))
				continue;
			if (fds[i].revents & urn_select_kinds[k].got)
				bits++;
			else
				FD_CLR(fds[i].fd, set[k]);
		}
	}
	return bits;
}

/* True when a set has a descriptor with a urnic socket: then *count and fds are the poll. */
static bool
urn_select_among(struct pollfd *fds, nfds_t *count, int n, fd_set *const set[3])
{
	urn_tcp_held_all();
	if (n < 0 || n > FD_SETSIZE)
		return false;
	*count = urn_select_ask(fds, n, set);
	return urn_tcp_among(fds, *count) || urn_twin_among(fds, *count);
}

/* returns: like select() */
static int
urn_select(struct pollfd *fds, nfds_t count, fd_set *const set[3], uint64_t end,
	   const sigset_t *mask)
{
	int got = urn_tcp_among(fds, count) ? urn_tcp_poll(fds, count, end, mask)
					    : urn_twin_poll(fds, count, end, mask);

	return got < 0 ? got : urn_select_answer(fds, count, set);
}

URN_CALL int
select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict pri,
       struct timeval *restrict timeout)
{
	struct pollfd fds[FD_SETSIZE];
	fd_set *const set[3] = {in, out, pri};
	struct timespec ts;
	uint64_t end, now;
	nfds_t count;
	int got;

	if ((timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) ||
	    !urn_select_among(fds, &count, n, set))
		return urn_real()->select(n, in, out, pri, timeout);
	if (timeout == NULL)
		return urn_select(fds, count, set, 0, NULL);
	ts = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
	end = urn_call_end(&ts);
	got = urn_select(fds, count, set, end, NULL);
	now = urn_clock_ns();
	/* Linux tells how much of the time is left. */
	now = end > now ? (end - now) / 1000 : 0;
	*timeout = (struct timeval){(time_t)(now / 1000000), (suseconds_t)(now % 1000000)};
	return got;
}

URN_CALL int
pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict pri,
	const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	struct pollfd fds[FD_SETSIZE];
	fd_set *const set[3] = {in, out, pri};
	nfds_t count;

	if ((timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_nsec < 0)) ||
	    !urn_select_among(fds, &count, n, set))
		return urn_real()->pselect(n, in, out, pri, timeout, mask);
	return urn_select(fds, count, set, urn_call_end(timeout), mask);
}

/* ---- epoll */

URN_CALL int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct urn_twin *t;
	int err;

	if (urn_tcp_epoll_ctl(epfd, op, fd, event, &err))
		return err;
	t = urn_twin_get(fd);
	if (t == NULL)
		return urn_real()->epoll_ctl(epfd, op, fd, event);
	err = urn_epoll_ctl(t, epfd, op, fd, event);
	urn_twin_put(t);
	return err;
}

/* Milliseconds of a wait that are left, rounded up. timeout: the whole wait; < 0: never ends */
static int
urn_epoll_left(int timeout, uint64_t end)
{
	uint64_t now = urn_clock_ns();

	if (timeout < 0)
		return timeout;
	return end > now ? (int)((end - now + 999999) / 1000000) : 0;
}

URN_CALL int
epoll_pwait(int epfd, struct epoll_event *events, int room, int timeout, const sigset_t *mask)
{
	uint64_t end = timeout > 0 ? urn_sock_end_of((int64_t)timeout * 1000000) : 0;
	int n, left = timeout, kept;

	urn_tcp_held_all();
	do {
		if (!urn_tcp_epoll_plain(epfd, true))
			return urn_tcp_epoll_wait(epfd, events, room,
						  timeout == 0 ? urn_clock_ns() : end, mask);
		n = urn_real()->epoll_pwait(epfd, events, room, left, mask);
		(void)urn_tcp_epoll_plain(epfd, false);
		kept = urn_epoll_told(epfd, events, n);
		if (kept > 0)
			kept = urn_tcp_epoll_sift(epfd, events, kept);
		/* Events that were none: the wait goes on. Another thread may have put a TCP
		 * socket in. */
		if (n > 0 && kept == 0)
			left = urn_epoll_left(timeout, end);
	} while (n > 0 && kept == 0 && (left != 0 || urn_tcp_epoll_is(epfd)));
	return kept;
}

URN_CALL int
epoll_wait(int epfd, struct epoll_event *events, int room, int timeout)
{
	return epoll_pwait(epfd, events, room, timeout, NULL);
}

URN_CALL int
epoll_pwait2(int epfd, struct epoll_event *events, int room, const struct timespec *timeout,
	     const sigset_t *mask)
{
	const struct timespec *left = timeout;
	uint64_t end = urn_call_end(timeout);
	struct timespec ts;
	int n, kept;

	urn_tcp_held_all();
	do {
		if (!urn_tcp_epoll_plain(epfd, true))
			return urn_tcp_epoll_wait(epfd, events, room, end, mask);
		n = urn_real()->epoll_pwait2(epfd, events, room, left, mask);
		(void)urn_tcp_epoll_plain(epfd, false);
		kept = urn_epoll_told(epfd, events, n);
		if (kept > 0)
			kept = urn_tcp_epoll_sift(epfd, events, kept);
		if (n > 0 && kept == 0)
			left = urn_sock_left(end, &ts);
	} while (n > 0 && kept == 0 &&
		 (left == NULL || left->tv_sec != 0 || left->tv_nsec != 0 ||
		  urn_tcp_epoll_is(epfd)));
	return kept;
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t size);

URN_CALL int
__poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	if (size / sizeof(*fds) < n)
		abort();
	return poll(fds, n, timeout);
}

URN_CALL int
__ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
	    size_t size)
{
	if (size / sizeof(*fds) < n)
		abort();
	return ppoll(fds, n, timeout, mask);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
