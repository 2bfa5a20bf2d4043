/* SPDX-License-Identifier: BSD-3-Clause */
/* epoll_wait() for epolls with streams and listeners in them (tcp_epoll.c). */
#include "sockets/tcp_epoll.h"

#include "abi/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { URN_TCP_FAIR = 4 }; /* waits of which one asks the kernel, too, while streams are ready */

/* One wait: entry i of `p` is that of `tcp[i]`; entry 0 is the kernel's epoll. */
struct urn_tcp_epolling {
	struct urn_stream_pollfd *p;
	struct urn_tcp **tcp; /* watched */
	int *fd;	      /* the program's numbers */
	uint64_t *seen;
	size_t n;
	bool now;  /* some are ready whatever their streams say */
	bool fair; /* the kernel is asked, and its events have a place, whatever streams are ready
		    */
};

/* True when EPOLLOUT of an entry with EPOLLET was told, and no send has failed since. */
static bool
urn_tcp_out_told(const struct urn_tcp_entry *e)
{
	return e->event.events & EPOLLET && e->out && e->out_seen == atomic_load(&e->tcp->blocked);
}

/* Put an entry in a wait. The lock of all is held. */
static void
urn_tcp_wait_add(struct urn_tcp_epolling *w, const struct urn_tcp_entry *e)
{
	struct urn_stream_pollfd *p = &w->p[w->n];
	struct urn_tcp *t = e->tcp;
	uint32_t state = atomic_load(&t->state), events = e->event.events;

	if (e->resting || state < URN_TCP_ASKED || urn_tcp_silent(t))
		return;
	*p = (struct urn_stream_pollfd){.fd = -1};
	w->seen[w->n] = events & EPOLLET ? e->seen : 0;
	if (state == URN_TCP_LISTEN) {
		p->listener = t->l;
	} else if (state == URN_TCP_LOST) {
		w->now = true;
	} else {
		p->stream = t->s;
		w->now |= events & EPOLLIN && !(events & EPOLLET) && urn_tcp_stashed(t);
	}
	p->events = (short)(events & EPOLLRDHUP);
	if (events & (EPOLLIN | EPOLLRDNORM))
		p->events |= POLLIN;
	if (events & (EPOLLOUT | EPOLLWRNORM) && !urn_tcp_out_told(e))
		p->events |= POLLOUT;
	w->fd[w->n] = e->fd;
	w->tcp[w->n++] = t;
	urn_tcp_watch(t);
}

/* Get room for a number of entries. returns: false: no memory */
static bool
urn_tcp_wait_room(struct urn_tcp_epolling *w, size_t count)
{
	size_t each = sizeof(*w->p) + sizeof(struct urn_tcp *) + sizeof(*w->seen) + sizeof(*w->fd);

	w->p = calloc(count, each);
	if (w->p == NULL)
		return false;
	/* The largest alignment comes first. */
	w->tcp = (struct urn_tcp **)(w->p + count);
	w->seen = (uint64_t *)(w->tcp + count);
	w->fd = (int *)(w->seen + count);
	return true;
}

/* Gather the entries of an epoll. returns: false: no memory */
static bool
urn_tcp_wait_begin(struct urn_tcp_epolling *w, struct urn_tcp_epoll *ep, int epfd)
{
	struct urn_tcp_entry *e, *first;
	uint32_t i, skip;

	w->n = 0;
	w->now = false;
	urn_tcp_hold();
	atomic_fetch_add(&ep->waiters, 1);
	w->fair = ep->turn % URN_TCP_FAIR == 0;
	if (urn_tcp_wait_room(w, ep->count + 1)) {
		w->p[0] = (struct urn_stream_pollfd){.fd = epfd, .events = POLLIN};
		w->seen[0] = 0;
		w->n = 1;
		first = ep->entries;
		ep->turn++;
		for (skip = ep->count ? ep->turn / 2 % ep->count : 0; skip; skip--)
			first = first->next;
		for (e = first, i = 0; i < ep->count; i++) {
			urn_tcp_wait_add(w, e);
			e = e->next != NULL ? e->next : ep->entries;
		}
	}
	urn_tcp_release();
	return w->n > 0;
}

static void
urn_tcp_wait_end(struct urn_tcp_epolling *w, struct urn_tcp_epoll *ep)
{
	atomic_fetch_sub(&ep->waiters, 1);
	if (w->n > 1)
		urn_tcp_unwatch(w->tcp + 1, w->n - 1);
	free(w->p);
}

/* Note that an entry's events are told. The lock of all is held. */
static void
urn_tcp_told(struct urn_tcp_entry *e, uint32_t events)
{
	struct urn_tcp *t = e->tcp;

	if (e->event.events & EPOLLONESHOT)
		e->resting = true;
	if (!(e->event.events & EPOLLET) || t->s == NULL)
		return;
	if (events & EPOLLERR)
		e->resting = true;
	pthread_mutex_lock(&t->s->lock);
	if (events & (EPOLLIN | EPOLLRDHUP))
		e->seen = t->s->inputs;
	pthread_mutex_unlock(&t->s->lock);
	if (events & EPOLLOUT) {
		e->out = true;
		e->out_seen = atomic_load(&t->blocked);
	}
}

/* Events of one entry of a wait. returns: 0: none */
static uint32_t
urn_tcp_events(struct urn_tcp_epolling *w, size_t i, struct urn_tcp_epoll *ep, epoll_data_t *data)
{
	uint32_t r = (uint16_t)w->p[i].revents, asked;
	struct urn_tcp *t = w->tcp[i];
	uint32_t state = urn_tcp_settle(t, w->fd[i]);
	struct urn_tcp_entry *e;

	if (state == URN_TCP_ASKED || state == URN_TCP_KERNEL)
		return 0;
	if (r == 0 && state != URN_TCP_LOST && !urn_tcp_stashed(t))
		return 0;
	urn_tcp_hold();
	e = urn_tcp_entry_find(ep, w->fd[i]);
	if (e == NULL || e->tcp != t || e->resting) {
		urn_tcp_release();
		return 0;
	}
	asked = e->event.events;
	if (state == URN_TCP_LOST)
		r = POLLIN | POLLOUT | POLLERR | POLLHUP;
	if (asked & EPOLLIN && !(asked & EPOLLET) && state == URN_TCP_STREAM && urn_tcp_stashed(t))
		r |= EPOLLIN;
	r |= (r & EPOLLIN ? EPOLLRDNORM : 0) | (r & EPOLLOUT ? EPOLLWRNORM : 0);
	r &= asked | EPOLLERR | EPOLLHUP;
	*data = e->event.data;
	if (r != 0)
		urn_tcp_told(e, r);
	urn_tcp_release();
	return r;
}

/* Take the events of streams. returns: how many; *listeners: some are those of listeners */
static int
urn_tcp_take(struct urn_tcp_epolling *w, struct urn_tcp_epoll *ep, struct epoll_event *events,
	     int room, bool *listeners)
{
	int count = 0;
	size_t i;

	for (i = 1; i < w->n && count < room; i++) {
		epoll_data_t data;
		uint32_t r = urn_tcp_events(w, i, ep, &data);

		if (r == 0)
			continue;
		events[count].events = r;
		events[count++].data = data;
		*listeners |= w->p[i].listener != NULL;
	}
	return count;
}

int
urn_tcp_epoll_sift(int epfd, struct epoll_event *events, int n)
{
	struct urn_tcp_epoll *ep =
		urn_tcp_epoll_is(epfd) ? atomic_load(&urn_tcp_epolls[epfd]) : NULL;
	int i, out = 0;

	if (ep == NULL)
		return n;
	for (i = 0; i < n; i++) {
		if (events[i].data.ptr == ep)
			urn_sh_lower(ep->kick);
		else
			events[out++] = events[i];
	}
	return out;
}

/* The kernel's events behind those of streams, but for those of `kick`, and of listeners that are
 * told already. returns: how many there are with those before; -1 with errno */
static int
urn_tcp_take_kernel(int epfd, struct epoll_event *events, int before, int room, bool listeners)
{
	int n, i, k, out = before;

	n = urn_real()->epoll_pwait(epfd, events + before, room - before, 0, NULL);
	n = urn_epoll_told(epfd, events + before, n);
	if (n < 0)
		return before > 0 ? before : n;
	n = urn_tcp_epoll_sift(epfd, events + before, n);
	for (i = before; i < before + n; i++) {
		bool twice = false;

		for (k = 0; listeners && k < before && !twice; k++)
			twice = events[k].data.u64 == events[i].data.u64;
		if (!twice)
			events[out++] = events[i];
	}
	return out;
}

/* One turn of a wait. returns: events; 0: none yet; -1 with errno */
static int
urn_tcp_epoll_turn(struct urn_tcp_epolling *w, struct urn_tcp_epoll *ep, struct epoll_event *events,
		   int room, int left, struct urn_tcp_nap *nap)
{
	struct urn_sh_poll all = {.fds = w->p,
				  .n = w->n,
				  .seen = w->seen,
				  .sleep = urn_tcp_sleep,
				  .begin = urn_tcp_quiet,
				  .lone = left != 0 && !w->fair,
				  .arg = nap};
	bool listeners = false;
	int got, count, kept;
	size_t i;

	for (i = 1; i < w->n; i++)
		left = urn_tcp_patience(w->tcp[i], left);
	got = urn_sh_poll(&all, w->now ? 0 : urn_tcp_later(left));
	if (got < 0)
		return got;
	kept = w->fair && w->p[0].revents != 0;
	count = urn_tcp_take(w, ep, events, room - kept, &listeners);
	if (w->p[0].revents != 0 && count < room)
		count = urn_tcp_take_kernel(w->p[0].fd, events, count, room, listeners);
	/* The kernel's event may have been that of `kick`. */
	return count == 0 && kept ? urn_tcp_take(w, ep, events, room, &listeners) : count;
}

int
urn_tcp_epoll_wait(int epfd, struct epoll_event *events, int room, uint64_t end,
		   const sigset_t *mask)
{
	struct urn_tcp_epoll *ep = atomic_load(&urn_tcp_epolls[epfd]);
	struct urn_tcp_nap nap = {.mask = mask};
	int got, err, left;

	if (ep == NULL || room <= 0 || events == NULL)
		return urn_real()->epoll_pwait(epfd, events, room, 0, mask);
	do {
		struct urn_tcp_epolling w;

		left = urn_tcp_left(end);
		got = -1;
		err = ENOMEM;
		if (urn_tcp_wait_begin(&w, ep, epfd)) {
			got = urn_tcp_epoll_turn(&w, ep, events, room, left, &nap);
			err = errno;
		}
		urn_tcp_wait_end(&w, ep);
		urn_tcp_tidy();
	} while (got == 0 && left != 0);
	urn_tcp_loud(&nap);
	errno = err;
	return got;
}
