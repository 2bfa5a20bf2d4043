/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for streams and listeners beside other descriptors. */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Bits that a stream is not asked for under their own names. */
enum {
	URN_TCP_IN = POLLIN | POLLRDNORM,
	URN_TCP_OUT = POLLOUT | POLLWRNORM,
	URN_TCP_FEW = 16, /* descriptors that need no memory of the heap */
};

/* One poll. Entries of `p` are those of fds, and behind them the kernel's sides of listeners. */
struct urn_tcp_polling {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	struct urn_tcp **tcp;	     /* one for each, with a reference; NULL: another descriptor */
	struct urn_stream_pollfd *p; /* 2 * n of them fit */
	nfds_t used;		     /* entries of p */
	bool now;		     /* some are ready whatever their streams say */
};

int
urn_tcp_left(uint64_t end)
{
	uint64_t now = urn_clock_ns(), ms;

	if (end == 0)
		return -1;
	ms = end > now ? (end - now + 999999) / 1000000 : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int
urn_tcp_sleep(struct pollfd *fds, size_t n, int ms, void *arg)
{
	const struct urn_tcp_nap *nap = arg;
	const sigset_t *mask = nap->quiet ? nap->kept : nap->mask;
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	if (nap->twins && urn_twin_among(fds, n))
		return urn_twin_poll(fds, n, urn_sock_end_of(ms < 0 ? -1 : (int64_t)ms * 1000000),
				     mask);
	return urn_real()->ppoll(fds, n, ms < 0 ? NULL : &ts, mask);
}

void
urn_tcp_quiet(void *arg)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	struct urn_tcp_nap *nap = arg;
	sigset_t all;
	size_t i;

	if (nap->quiet)
		return;
	sigfillset(&all);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	(void)pthread_sigmask(SIG_BLOCK, &all, &nap->before);
	nap->quiet = true;
	nap->kept = nap->mask != NULL ? nap->mask : &nap->before;
}

void
urn_tcp_loud(struct urn_tcp_nap *nap)
{
	int err = errno;

	if (!nap->quiet)
		return;
	(void)pthread_sigmask(SIG_SETMASK, &nap->before, NULL);
	nap->quiet = false;
	errno = err;
}

int
urn_tcp_wait(struct urn_tcp *t, short events, uint64_t end, int also)
{
	struct urn_tcp_nap nap = {0};
	struct urn_stream_pollfd p[2] = {{.stream = t->s, .events = events},
					 {.fd = also, .events = POLLIN}};
	struct urn_sh_poll all = {.fds = p,
				  .n = also >= 0 ? 2 : 1,
				  .sleep = urn_tcp_sleep,
				  .begin = urn_tcp_quiet,
				  .arg = &nap};
	int left = urn_tcp_left(end), got, err;

	if (t->s == NULL)
		p[0].listener = t->l;
	got = urn_sh_poll(&all, urn_tcp_later(urn_tcp_patience(t, left)));
	urn_tcp_loud(&nap);
	err = errno;
	urn_tcp_tidy();
	errno = err;
	if (got < 0)
		return errno == EINTR && end == 0 && urn_sock_restarts() ? 0 : errno;
	return got == 0 && left >= 0 && urn_tcp_left(end) == 0 ? EAGAIN : 0;
}

/* ---- poll */

bool
urn_tcp_among(const struct pollfd *fds, nfds_t n)
{
	bool among = false;
	nfds_t i;

	for (i = 0; i < n && !among; i++) {
		uint32_t state;

		if (urn_tcp_peek(fds[i].fd) == NULL || urn_real_stranger())
			continue;
		urn_tcp_hold();
		state = urn_tcp_state(urn_tcp_peek(fds[i].fd));
		urn_tcp_release();
		among = state >= URN_TCP_ASKED;
	}
	return among;
}

static void
urn_tcp_poll_add(struct urn_tcp_polling *w, nfds_t i)
{
	struct pollfd *f = &w->fds[i];
	struct urn_stream_pollfd *p = &w->p[i];
	struct urn_tcp *t = w->tcp[i];
	uint32_t state = t ? urn_tcp_settle(t, f->fd) : URN_TCP_KERNEL;

	*p = (struct urn_stream_pollfd){.fd = f->fd, .events = f->events};
	if (state == URN_TCP_LOST) {
		p->fd = -1;
		w->now = true;
	} else if (state == URN_TCP_LISTEN && urn_tcp_silent(t)) {
		p->fd = -1;
	} else if (state == URN_TCP_STREAM || state == URN_TCP_ASKED) {
		p->stream = t->s;
		p->events =
			(short)((f->events & POLLRDHUP) | (f->events & URN_TCP_IN ? POLLIN : 0) |
				(f->events & URN_TCP_OUT ? POLLOUT : 0));
		w->now |= f->events & URN_TCP_IN && urn_tcp_stashed(t);
	} else if (state == URN_TCP_LISTEN) {
		p->listener = t->l;
		p->events = f->events & URN_TCP_IN ? POLLIN : 0;
		if (t->kernel)
			w->p[w->used++] =
				(struct urn_stream_pollfd){.fd = f->fd, .events = f->events};
	}
}

/* The answer for one descriptor. extra: moved past the kernel's side of a listener */
static short
urn_tcp_poll_answer(struct urn_tcp_polling *w, nfds_t i, nfds_t *extra)
{
	const struct urn_stream_pollfd *p = &w->p[i];
	short asked = w->fds[i].events, r = p->revents;
	struct urn_tcp *t = w->tcp[i];

	if (t == NULL || (!p->stream && !p->listener)) {
		if (t != NULL && atomic_load(&t->state) == URN_TCP_LOST)
			return (short)((asked & (URN_TCP_IN | URN_TCP_OUT)) | POLLERR | POLLHUP);
		return r;
	}
	if (p->stream && urn_tcp_stashed(t))
		r = (short)(r | POLLIN);
	if (r & POLLIN)
		r = (short)(r | POLLRDNORM);
	if (r & POLLOUT)
		r = (short)(r | POLLWRNORM);
	r = (short)(r & (asked | POLLERR | POLLHUP));
	if (p->listener && t->kernel) {
		/* Without the dataplane the kernel's side is all there is. */
		if (urn_tcp_settle(t, w->fds[i].fd) == URN_TCP_KERNEL)
			r = 0;
		r = (short)(r | w->p[(*extra)++].revents);
	}
	/* A connection that is not made yet may be the kernel's to make. */
	if (p->stream && atomic_load(&t->state) == URN_TCP_ASKED)
		r = (short)(urn_tcp_settle(t, w->fds[i].fd) == URN_TCP_STREAM ? r : 0);
	return r;
}

/* One turn of a poll. returns: descriptors that are ready; -1 with errno */
static int
urn_tcp_poll_turn(struct urn_tcp_polling *w, struct urn_tcp_nap *nap, uint64_t end)
{
	struct urn_sh_poll all = {
		.fds = w->p, .sleep = urn_tcp_sleep, .begin = urn_tcp_quiet, .arg = nap};
	nfds_t i, extra = w->n;
	int got, count = 0, left = urn_tcp_left(end);

	w->used = w->n;
	w->now = false;
	for (i = 0; i < w->n; i++) {
		urn_tcp_poll_add(w, i);
		if (w->tcp[i] != NULL && w->p[i].stream)
			left = urn_tcp_patience(w->tcp[i], left);
	}
	all.n = w->used;
	got = urn_sh_poll(&all, w->now ? 0 : urn_tcp_later(left));
	if (got < 0)
		return got;
	for (i = 0; i < w->n; i++) {
		w->fds[i].revents = urn_tcp_poll_answer(w, i, &extra);
		count += w->fds[i].revents != 0;
	}
	return count;
}

int
urn_tcp_poll(struct pollfd *fds, nfds_t n, uint64_t end, const sigset_t *mask)
{
	struct urn_stream_pollfd few[2 * URN_TCP_FEW] = {{0}};
	struct urn_tcp *few_tcp[URN_TCP_FEW];
	struct urn_tcp_polling w = {.fds = fds, .n = n, .tcp = few_tcp, .p = few};
	struct urn_tcp_nap nap = {.mask = mask, .twins = urn_twin_among(fds, n)};
	int got = -1, err = ENOMEM;
	nfds_t i;

	if (n > URN_TCP_FEW) {
		w.tcp = calloc(n, sizeof(struct urn_tcp *));
		w.p = calloc(2 * n, sizeof(*w.p));
	}
	if (w.tcp != NULL && w.p != NULL) {
		for (i = 0; i < n; i++)
			w.tcp[i] = urn_tcp_get(fds[i].fd);
		do {
			got = urn_tcp_poll_turn(&w, &nap, end);
			err = errno;
			urn_tcp_tidy();
		} while (got == 0 && urn_tcp_left(end) != 0);
		urn_tcp_loud(&nap);
		for (i = 0; i < n; i++)
			urn_tcp_put(w.tcp[i]);
	}
	if (n > URN_TCP_FEW) {
		free(w.tcp);
		free(w.p);
	}
	errno = err;
	return got;
}

/* ---- epolls of the kernel alone */

/* Waits of the kernel's epolls that had no sockets in them when they began. */
static _Atomic uint32_t urn_tcp_plain_waits;

bool
urn_tcp_epoll_plain(int epfd, bool begins)
{
	if (begins) {
		/* Counted before the look: the thread that puts the first socket in sees one or the
		 * other. */
		atomic_fetch_add(&urn_tcp_plain_waits, 1);
		if (!urn_tcp_epoll_is(epfd))
			return true;
	}
	atomic_fetch_sub(&urn_tcp_plain_waits, 1);
	return false;
}

bool
urn_tcp_epoll_plains(void)
{
	return atomic_load(&urn_tcp_plain_waits) != 0;
}
