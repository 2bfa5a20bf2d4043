/* SPDX-License-Identifier: BSD-3-Clause */
/* rpoll() and rselect(): sockets of ours together with other descriptors. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An entry of a call's list. */
struct polled {
	struct urn_rs *rs; /* NULL: another descriptor */
	uint32_t first, n; /* its part of the list that is given to poll() */
	struct urn_rs_waiter waiter;
};

struct call {
	struct pollfd *fds; /* the program's */
	nfds_t n;
	struct polled *entry;
	struct pollfd *list; /* for poll(): room for all descriptors, and the thread's eventfd */
	nfds_t used;
	bool any; /* there are sockets of ours */
};

/* The events of a connected stream. */
static int
stream_events(struct urn_rs *rs)
{
	int e = 0;

	if (urn_rs_can_read(rs))
		e |= POLLIN | POLLRDNORM;
	if (urn_rs_can_write(rs))
		e |= POLLOUT | POLLWRNORM;
	if (!rs->readable && urn_rs_connected(rs))
		e |= POLLRDHUP;
	/* Programs take these for the end, even when bytes wait to be read. */
	if (rs->state == URN_RS_DOWN && rs->rx.bytes == 0)
		e |= POLLHUP | (rs->why != 0 ? POLLERR : 0);
	if (rs->state == URN_RS_FAILED)
		e |= POLLERR | POLLHUP;
	return e;
}

short
urn_rs_events(struct urn_rs *rs, short asked)
{
	int e = 0;

	if (rs->closed)
		return POLLNVAL;
	if (rs->state == URN_RS_LISTENING)
		e = urn_rs_has_request(rs) ? POLLIN | POLLRDNORM : 0;
	else if (rs->type == SOCK_STREAM)
		e = rs->state >= URN_RS_CONNECTING ? stream_events(rs) : POLLOUT | POLLHUP;
	else
		e = (urn_rs_can_read(rs) ? POLLIN | POLLRDNORM : 0) |
		    (urn_rs_can_write(rs) ? POLLOUT | POLLWRNORM : 0);
	return (short)(e & (asked | POLLERR | POLLHUP | POLLNVAL));
}

/* Ask all sockets of ours. returns: how many have events */
static int
ask_ours(struct call *c)
{
	int ready = 0;

	for (nfds_t i = 0; i < c->n; i++) {
		struct urn_rs *rs = c->entry[i].rs;

		if (rs == NULL)
			continue;
		pthread_mutex_lock(&rs->lock);
		urn_rs_step(rs);
		c->fds[i].revents = urn_rs_events(rs, c->fds[i].events);
		pthread_mutex_unlock(&rs->lock);
		ready += c->fds[i].revents != 0;
	}
	return ready;
}

/* Take over what poll() said of other descriptors. returns: how many have events */
static int
others(const struct call *c)
{
	int ready = 0;

	for (nfds_t i = 0; i < c->n; i++) {
		if (c->entry[i].rs != NULL)
			continue;
		c->fds[i].revents = c->list[c->entry[i].first].revents;
		ready += c->fds[i].revents != 0;
	}
	return ready;
}

/* Make the list for poll(). ours: with the descriptors of our sockets, which are watched from now
 * on. returns: false: a socket has events already */
static bool
list_make(struct call *c, int wake_fd, bool ours)
{
	bool quiet = true;

	c->used = 0;
	for (nfds_t i = 0; i < c->n; i++) {
		struct polled *e = &c->entry[i];

		e->first = (uint32_t)c->used;
		e->n = 0;
		if (e->rs == NULL) {
			c->list[c->used++] =
				(struct pollfd){.fd = c->fds[i].fd, .events = c->fds[i].events};
		} else if (ours) {
			e->waiter.fd = wake_fd;
			pthread_mutex_lock(&e->rs->lock);
			urn_rs_watch(e->rs, &e->waiter);
			e->n = urn_rs_watch_fds(e->rs, &c->list[c->used]);
			urn_rs_step(e->rs);
			quiet = quiet && urn_rs_events(e->rs, c->fds[i].events) == 0;
			pthread_mutex_unlock(&e->rs->lock);
			c->used += e->n;
		}
	}
	if (ours)
		c->list[c->used++] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	return quiet;
}

static void
list_end(struct call *c)
{
	for (nfds_t i = 0; i < c->n; i++) {
		struct polled *e = &c->entry[i];

		if (e->rs == NULL)
			continue;
		pthread_mutex_lock(&e->rs->lock);
		urn_rs_unwatch(e->rs, &e->waiter, &c->list[e->first], e->n);
		pthread_mutex_unlock(&e->rs->lock);
	}
}

/* Sleep once. returns: number of other descriptors with events, or -1 with errno */
static int
sleep_once(struct call *c, int wake_fd, int ms)
{
	uint64_t count;
	int n, err;

	if (!list_make(c, wake_fd, true))
		ms = 0;
	n = poll(c->list, c->used, ms);
	err = errno;
	if (n < 0)
		for (nfds_t i = 0; i < c->used; i++)
			c->list[i].revents = 0;
	list_end(c);
	if (c->list[c->used - 1].revents != 0 && read(wake_fd, &count, sizeof(count)) < 0)
		n = n > 0 ? n : 0; /* nothing was counted */
	errno = err;
	return n < 0 ? -1 : others(c);
}

/* Look without a sleep. returns: number of entries with events, or -1 with errno */
static int
look(struct call *c)
{
	int ready = ask_ours(c), n;

	(void)list_make(c, -1, false);
	n = c->used != 0 ? poll(c->list, c->used, 0) : 0;
	return n < 0 ? -1 : ready + others(c);
}

static int
wait_for(struct call *c, int timeout)
{
	uint64_t end = timeout > 0 ? urn_rs_now_ms() + (uint64_t)timeout : 0;
	int wake_fd = urn_rs_wake_fd();

	if (wake_fd < 0)
		return -1;
	for (;;) {
		int ready = look(c), left = timeout;

		if (ready != 0 || timeout == 0)
			return ready;
		if (timeout > 0) {
			uint64_t now = urn_rs_now_ms();

			if (now >= end)
				return 0;
			left = (int)(end - now);
		}
		if (sleep_once(c, wake_fd, left) < 0)
			return -1;
	}
}

int
rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct call c = {.fds = fds, .n = nfds};
	int ready = -1;

	c.entry = calloc(nfds + 1, sizeof(*c.entry));
	c.list = calloc(nfds * URN_RS_WATCH_FDS + 1, sizeof(*c.list));
	if (c.entry == NULL || c.list == NULL) {
		free(c.entry);
		free(c.list);
		return urn_cma_result(ENOMEM);
	}
	for (nfds_t i = 0; i < nfds; i++) {
		fds[i].revents = 0;
		c.entry[i].rs = urn_rs_get(fds[i].fd);
		c.any = c.any || c.entry[i].rs != NULL;
	}
	ready = c.any ? wait_for(&c, timeout) : poll(fds, nfds, timeout);
	for (nfds_t i = 0; i < nfds; i++)
		if (c.entry[i].rs != NULL)
			urn_rs_put(c.entry[i].rs);
	free(c.entry);
	free(c.list);
	return ready;
}

/* ---- rselect() */

static short
asked(int fd, const fd_set *r, const fd_set *w, const fd_set *x)
{
	short e = 0;

	if (r != NULL && FD_ISSET(fd, r))
		e |= POLLIN;
	if (w != NULL && FD_ISSET(fd, w))
		e |= POLLOUT;
	if (x != NULL && FD_ISSET(fd, x))
		e |= POLLPRI;
	return e;
}

/* Keep a descriptor in a set if it has one of the events. returns: 1: it stays */
static int
keep(int fd, fd_set *set, bool has)
{
	if (set == NULL || !FD_ISSET(fd, set))
		return 0;
	if (has)
		return 1;
	FD_CLR(fd, set);
	return 0;
}

static int
to_sets(const struct pollfd *p, nfds_t n, fd_set *r, fd_set *w, fd_set *x)
{
	int count = 0;

	for (nfds_t i = 0; i < n; i++) {
		short e = p[i].revents;

		count += keep(p[i].fd, r, (e & (POLLIN | POLLHUP | POLLERR)) != 0);
		count += keep(p[i].fd, w, (e & (POLLOUT | POLLERR)) != 0);
		count += keep(p[i].fd, x, (e & POLLPRI) != 0);
	}
	return count;
}

int
rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	int ms = timeout == NULL ? -1
				 : (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
	struct pollfd p[FD_SETSIZE];
	nfds_t n = 0;
	int ready;

	if (nfds < 0 || nfds > FD_SETSIZE)
		return urn_cma_result(EINVAL);
	for (int fd = 0; fd < nfds; fd++) {
		short e = asked(fd, readfds, writefds, exceptfds);

		if (e != 0)
			p[n++] = (struct pollfd){.fd = fd, .events = e};
	}
	ready = rpoll(p, n, ms);
	if (ready < 0)
		return ready;
	for (nfds_t i = 0; i < n; i++)
		if (p[i].revents & POLLNVAL)
			return urn_cma_result(EBADF);
	return to_sets(p, n, readfds, writefds, exceptfds);
}
