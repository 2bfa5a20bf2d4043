/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epolls with streams and listeners in them. The kernel's epoll has the descriptors that are the
 * kernel's; entries of streams are kept here, and looked at by the epoll_wait() that sleeps: on the
 * kernel's epoll, and on the streams' own descriptors. No thread is behind that.
 *
 * The kernel's epoll gets one more descriptor, `kick`, which wakes those who wait when entries
 * change. The data of its event are the address of the epoll's memory here, and the event is taken
 * out of the program's events.
 */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct urn_tcp_epoll {
	int epfd, kick;		       /* the program's number; eventfd, hidden */
	uint32_t count;		       /* entries */
	uint32_t turn;		       /* waits, so that each entry is the first one now and then */
	struct urn_tcp_entry *entries; /* all under the lock of all */
	_Atomic uint32_t waiters;      /* waits under way, which know the entries of their begin;
					  raised under the lock of all */
};

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

/* Memory of an epoll is never given back: a thread may wait on it. */
static struct urn_tcp_epoll *_Atomic urn_tcp_epolls[URN_TWIN_FDS];

bool
urn_tcp_epoll_is(int epfd)
{
	return epfd >= 0 && epfd < URN_TWIN_FDS && atomic_load(&urn_tcp_epolls[epfd]) != NULL;
}

/* ---- entries; the lock of all is held */

/* Wake those who wait: they know the entries of before. A thread that waits for none begins with
 * those of now, so it is left alone. */
static void
urn_tcp_kick(struct urn_tcp_epoll *ep)
{
	if (atomic_load(&ep->waiters) != 0 || urn_tcp_epoll_plains())
		urn_sh_raise(ep->kick);
}

static struct urn_tcp_epoll *
urn_tcp_epoll_new(int epfd)
{
	struct urn_tcp_epoll *ep = calloc(1, sizeof(*ep));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = ep};

	if (ep == NULL)
		return NULL;
	ep->epfd = epfd;
	ep->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ep->kick < 0 || urn_real()->epoll_ctl(epfd, EPOLL_CTL_ADD, ep->kick, &event) != 0) {
		if (ep->kick >= 0)
			urn_real_end(ep->kick);
		free(ep);
		return NULL;
	}
	atomic_store(&urn_tcp_epolls[epfd], ep);
	/* A thread may wait for the kernel's epoll alone. */
	urn_sh_raise(ep->kick);
	return ep;
}

static struct urn_tcp_entry *
urn_tcp_entry_find(struct urn_tcp_epoll *ep, int fd)
{
	struct urn_tcp_entry *e = ep->entries;

	while (e != NULL && e->fd != fd)
		e = e->next;
	return e;
}

static void
urn_tcp_entry_end(struct urn_tcp_entry *e)
{
	struct urn_tcp_entry **at = &e->ep->entries;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	for (at = &e->tcp->entries; *at != e;)
		at = &(*at)->next_own;
	*at = e->next_own;
	e->ep->count--;
	free(e);
}

/* True when the kernel's epoll tells of a socket in this state. */
static bool
urn_tcp_by_kernel(const struct urn_tcp *t)
{
	uint32_t state = atomic_load(&t->state);

	return state == URN_TCP_PLAIN || state == URN_TCP_KERNEL ||
	       (state == URN_TCP_LISTEN && t->kernel);
}

/* Bring the kernel's epoll in line with an entry. changed: the program gave it other events.
 * returns: 0, or an errno value */
static int
urn_tcp_entry_place(struct urn_tcp_entry *e, bool changed)
{
	bool want = urn_tcp_by_kernel(e->tcp);
	int op, err;

	if (want == e->in_kernel && !(want && changed))
		return 0;
	/* The number may be that of another socket by now, when this one lives by a copy. */
	if (want && urn_twin_cookie(e->fd) != e->tcp->cookie)
		return ENOENT;
	op = !want ? EPOLL_CTL_DEL : e->in_kernel ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	err = urn_real()->epoll_ctl(e->ep->epfd, op, e->fd, &e->event) == 0 ? 0 : errno;
	if (err == 0 || !want)
		e->in_kernel = want;
	return err;
}

/* The program's wish is new: all is told again. */
static void
urn_tcp_entry_wish(struct urn_tcp_entry *e, const struct epoll_event *event)
{
	e->event = *event;
	e->resting = e->out = false;
	e->seen = 0;
}

static int
urn_tcp_entry_add(struct urn_tcp_epoll *ep, struct urn_tcp *t, int fd, struct epoll_event *event)
{
	struct urn_tcp_entry *e = calloc(1, sizeof(*e));
	int err;

	if (e == NULL)
		return ENOMEM;
	e->ep = ep;
	e->tcp = t;
	e->fd = fd;
	urn_tcp_entry_wish(e, event);
	e->next = ep->entries;
	ep->entries = e;
	e->next_own = t->entries;
	t->entries = e;
	ep->count++;
	err = urn_tcp_entry_place(e, false);
	if (err != 0)
		urn_tcp_entry_end(e);
	return err;
}

/* ---- epoll_ctl() */

/* returns: 0, or an errno value. The lock of all is held */
static int
urn_tcp_epoll_do(struct urn_tcp *t, int epfd, int op, int fd, struct epoll_event *event)
{
	struct urn_tcp_epoll *ep = atomic_load(&urn_tcp_epolls[epfd]);
	struct urn_tcp_entry *e = ep ? urn_tcp_entry_find(ep, fd) : NULL;

	/* In a child of fork() the kernel's epoll has what the parent put in. */
	if (op != EPOLL_CTL_ADD && e == NULL && urn_tcp_by_kernel(t))
		return urn_real()->epoll_ctl(epfd, op, fd, event) == 0 ? 0 : errno;
	if (op != EPOLL_CTL_ADD && e == NULL)
		return ENOENT;
	if (op == EPOLL_CTL_DEL) {
		if (e->in_kernel)
			(void)urn_real()->epoll_ctl(epfd, op, fd, event);
		urn_tcp_entry_end(e);
		return 0;
	}
	if (event == NULL)
		return EFAULT;
	if (op == EPOLL_CTL_MOD) {
		urn_tcp_entry_wish(e, event);
		return urn_tcp_entry_place(e, true);
	}
	if (e != NULL && e->tcp == t)
		return EEXIST;
	if (e != NULL) /* a descriptor of before, whose file lives on */
		urn_tcp_entry_end(e);
	if (ep == NULL)
		ep = urn_tcp_epoll_new(epfd);
	return ep == NULL ? errno : urn_tcp_entry_add(ep, t, fd, event);
}

/* Get the socket of epoll_ctl(). One with an entry needs no look at its cookie: a file that has
 * taken its number unseen is the kernel's from EPOLL_CTL_ADD on. */
static struct urn_tcp *
urn_tcp_epoll_get(int epfd, int op, int fd)
{
	struct urn_tcp *t = op != EPOLL_CTL_ADD && urn_tcp_epoll_is(epfd) ? urn_tcp_ref(fd) : NULL;
	struct urn_tcp_entry *e;
	bool known = false;

	/* A child of vfork() must not add descriptors of its own to its parent's entries. */
	if (t == NULL)
		return op == EPOLL_CTL_ADD && urn_real_stranger() ? NULL : urn_tcp_get(fd);
	urn_tcp_hold();
	if (urn_tcp_epoll_is(epfd)) {
		/* Another thread may take the entry out once the lock is given up. */
		e = urn_tcp_entry_find(atomic_load(&urn_tcp_epolls[epfd]), fd);
		known = e != NULL && e->tcp == t;
	}
	urn_tcp_release();
	if (known)
		return t;
	urn_tcp_put(t);
	return urn_tcp_get(fd);
}

bool
urn_tcp_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event, int *err)
{
	struct urn_tcp *t = urn_tcp_epoll_get(epfd, op, fd);
	bool mine = t != NULL && epfd >= 0 && epfd < URN_TWIN_FDS && op >= EPOLL_CTL_ADD &&
		    op <= EPOLL_CTL_MOD;

	/* One that can't be urnic's any more is the kernel's, unless it has an entry. */
	if (mine && atomic_load(&t->state) == URN_TCP_KERNEL && !urn_tcp_epoll_is(epfd))
		mine = false;
	if (mine) {
		urn_tcp_hold();
		*err = urn_tcp_epoll_do(t, epfd, op, fd, event);
		if (*err == 0 && urn_tcp_epoll_is(epfd))
			urn_tcp_kick(atomic_load(&urn_tcp_epolls[epfd]));
		urn_tcp_release();
	}
	urn_tcp_put(t);
	if (mine && *err != 0) {
		errno = *err;
		*err = -1;
	}
	return mine;
}

void
urn_tcp_epoll_moved(struct urn_tcp *t)
{
	struct urn_tcp_entry *e;

	urn_tcp_hold();
	for (e = t->entries; e != NULL; e = e->next_own) {
		(void)urn_tcp_entry_place(e, false);
		urn_tcp_kick(e->ep);
	}
	urn_tcp_release();
}

void
urn_tcp_epoll_blocked(struct urn_tcp *t)
{
	struct urn_tcp_entry *e;

	atomic_fetch_add(&t->blocked, 1);
	if (t->entries == NULL)
		return;
	urn_tcp_hold();
	for (e = t->entries; e != NULL; e = e->next_own)
		if (e->event.events & EPOLLET && e->out)
			urn_tcp_kick(e->ep);
	urn_tcp_release();
}

void
urn_tcp_epoll_forget(struct urn_tcp *t)
{
	struct urn_tcp_entry *e, *next;

	for (e = t->entries; e != NULL; e = next) {
		next = e->next_own;
		if (t->watches != 0)
			urn_tcp_kick(e->ep);
		urn_tcp_entry_end(e);
	}
}

static void
urn_tcp_epoll_empty(struct urn_tcp_epoll *ep)
{
	struct urn_tcp_entry *e, *next;

	for (e = ep->entries; e != NULL; e = next) {
		next = e->next;
		urn_tcp_entry_end(e);
	}
}

void
urn_tcp_epoll_closed(int epfd)
{
	struct urn_tcp_epoll *ep = atomic_exchange(&urn_tcp_epolls[epfd], NULL);

	if (ep == NULL)
		return;
	urn_tcp_epoll_empty(ep);
	urn_real_end(ep->kick);
}

void
urn_tcp_epoll_forked(void)
{
	struct urn_tcp_epoll *ep;
	int i;

	/* The kernel's epoll is the parent's, too, so it is left as it is; the event of `kick` has
	 * to be known here. */
	for (i = 0; i < URN_TWIN_FDS; i++) {
		ep = atomic_load_explicit(&urn_tcp_epolls[i], memory_order_relaxed);
		if (ep != NULL)
			urn_tcp_epoll_empty(ep);
	}
}

/* ---- waits */

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
	got = urn_sh_poll(&all, w->now ? 0 : left);
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
