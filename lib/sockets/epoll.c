/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Epolls that twins are in. The urnic socket's descriptor stands in the epoll beside the program's,
 * with the same data. The program has one entry, so events of both become one, and both rest after
 * an event of EPOLLONESHOT.
 *
 * Copies of a descriptor can be in one epoll, each with data of its own. The urnic socket's
 * descriptor stands for the first of them, and for each further one a copy of it.
 */
#include "sockets/twin.h"

#include <errno.h>
#include <stdlib.h>

/* Events of one epoll_wait() that are looked at for equals; the table of their data is twice that.
 */
enum { URN_EPOLL_EVENTS = 512 };

/* The lock of twins protects all of these. */
static struct urn_twin_epoll *urn_epoll_list; /* entries of all twins */
static uint32_t urn_epoll_oneshots;	      /* those of the list with EPOLLONESHOT */
static uint32_t urn_epoll_edges;	      /* those of the list with EPOLLET */
/* One bit for each descriptor that is or was an epoll with twins in it; set under the lock. */
static _Atomic uint64_t urn_epoll_bits[URN_TWIN_FDS / 64];

/* True when the descriptor is an epoll with twins in it. */
static bool
urn_epoll_is(int epfd)
{
	return epfd >= 0 && epfd < URN_TWIN_FDS &&
	       atomic_load_explicit(&urn_epoll_bits[epfd / 64], memory_order_relaxed) >>
			       (epfd % 64) &
		       1;
}

/* ---- entries; the lock is held */

/* Let go of the entry's own descriptor. Others have the same file, so the epoll would keep it. */
static void
urn_epoll_end_own(struct urn_twin_epoll *e)
{
	if (e->own < 0)
		return;
	(void)urn_real()->epoll_ctl(e->epfd, EPOLL_CTL_DEL, e->own, NULL);
	urn_real_end(e->own);
	e->own = -1;
}

/* Take an entry out of both lists, and free it. */
static void
urn_epoll_forget(struct urn_twin_epoll *e)
{
	struct urn_twin_epoll **at = &e->twin->epolls;

	urn_epoll_end_own(e);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	*e->all_at = e->all_next;
	if (e->all_next != NULL)
		e->all_next->all_at = e->all_at;
	urn_epoll_oneshots -= (e->event.events & EPOLLONESHOT) != 0;
	urn_epoll_edges -= (e->event.events & EPOLLET) != 0;
	free(e);
}

/* Make an entry in both lists. returns: NULL: no memory */
static struct urn_twin_epoll *
urn_epoll_new(struct urn_twin *t, int epfd, int fd)
{
	struct urn_twin_epoll *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->twin = t;
	e->epfd = epfd;
	e->fd = fd;
	e->own = -1;
	e->next = t->epolls;
	t->epolls = e;
	e->all_next = urn_epoll_list;
	e->all_at = &urn_epoll_list;
	if (e->all_next != NULL)
		e->all_next->all_at = &e->all_next;
	urn_epoll_list = e;
	if (epfd < URN_TWIN_FDS)
		atomic_fetch_or(&urn_epoll_bits[epfd / 64], 1ull << (epfd % 64));
	return e;
}

static void
urn_epoll_set_event(struct urn_twin_epoll *e, const struct epoll_event *event)
{
	urn_epoll_oneshots -= (e->event.events & EPOLLONESHOT) != 0;
	urn_epoll_edges -= (e->event.events & EPOLLET) != 0;
	e->event = *event;
	urn_epoll_oneshots += (e->event.events & EPOLLONESHOT) != 0;
	urn_epoll_edges += (e->event.events & EPOLLET) != 0;
}

/* The descriptor of the urnic socket that stands for an entry. */
static int
urn_epoll_fd(const struct urn_twin_epoll *e, const struct urn_sock *s)
{
	return e->own >= 0 ? e->own : urn_sock_fd(s);
}

/* The urnic side of an entry. */
static int
urn_epoll_mirror(const struct urn_twin_epoll *e, struct urn_sock *s, int op)
{
	struct epoll_event event = e->event;

	event.events &= EPOLLIN | EPOLLRDNORM | EPOLLET | EPOLLONESHOT;
	return urn_real()->epoll_ctl(e->epfd, op, urn_epoll_fd(e, s), &event);
}

/* True when another entry has the twin in the same epoll. */
static bool
urn_epoll_shared(const struct urn_twin_epoll *e)
{
	const struct urn_twin_epoll *other = e->twin->epolls;

	while (other != NULL && (other == e || other->epfd != e->epfd))
		other = other->next;
	return other != NULL;
}

/* Put the urnic side of an entry in its epoll. */
static void
urn_epoll_mirror_add(struct urn_twin_epoll *e, struct urn_sock *s)
{
	if (urn_epoll_mirror(e, s, EPOLL_CTL_ADD) == 0 || errno != EEXIST)
		return;
	if (e->own < 0 && urn_epoll_shared(e)) {
		e->own = urn_real_copy(urn_sock_fd(s));
		if (e->own >= 0 && urn_epoll_mirror(e, s, EPOLL_CTL_ADD) == 0)
			return;
		urn_epoll_end_own(e);
	}
	(void)urn_epoll_mirror(e, s, EPOLL_CTL_MOD);
}

/* Keep the program's entry in mind, and do the same for the urnic socket. */
static void
urn_epoll_note(struct urn_twin *t, int epfd, int op, int fd, const struct epoll_event *event)
{
	struct urn_twin_epoll *e = t->epolls;
	struct urn_sock *s = atomic_load(&t->sock);

	while (e != NULL && (e->epfd != epfd || e->fd != fd))
		e = e->next;
	if (op == EPOLL_CTL_DEL) {
		if (e != NULL && s != NULL)
			(void)urn_epoll_mirror(e, s, op);
		if (e != NULL)
			urn_epoll_forget(e);
		return;
	}
	if (e == NULL) {
		e = urn_epoll_new(t, epfd, fd);
		op = EPOLL_CTL_ADD;
	}
	if (e == NULL)
		return;
	urn_epoll_set_event(e, event);
	if (s != NULL && op == EPOLL_CTL_ADD)
		urn_epoll_mirror_add(e, s);
	else if (s != NULL)
		(void)urn_epoll_mirror(e, s, op);
}

/* ---- calls */

int
urn_epoll_ctl(struct urn_twin *t, int epfd, int op, int fd, struct epoll_event *event)
{
	struct urn_sock *s;
	int err = urn_real()->epoll_ctl(epfd, op, fd, event);

	if (err != 0)
		return err;
	urn_twin_hold();
	urn_epoll_note(t, epfd, op, fd, event);
	urn_twin_release();
	s = atomic_load(&t->sock);
	if (s != NULL && op != EPOLL_CTL_DEL)
		(void)urn_sock_show(s);
	return 0;
}

void
urn_epoll_put_in(struct urn_twin *t, struct urn_sock *s)
{
	struct urn_twin_epoll *e;
	bool some;

	urn_twin_hold();
	for (e = t->epolls; e != NULL; e = e->next) {
		urn_epoll_end_own(e); /* that of the socket before */
		urn_epoll_mirror_add(e, s);
	}
	some = t->epolls != NULL;
	urn_twin_release();
	if (some)
		(void)urn_sock_show(s);
}

void
urn_epoll_let_go(struct urn_twin *t)
{
	urn_twin_hold();
	while (t->epolls != NULL)
		urn_epoll_forget(t->epolls);
	urn_twin_release();
}

void
urn_epoll_closed(int epfd)
{
	struct urn_twin_epoll *e, *next;

	if (!urn_epoll_is(epfd))
		return;
	urn_twin_hold();
	atomic_fetch_and(&urn_epoll_bits[epfd / 64], ~(1ull << (epfd % 64)));
	for (e = urn_epoll_list; e != NULL; e = next) {
		next = e->all_next;
		if (e->epfd == epfd)
			urn_epoll_forget(e);
	}
	urn_twin_release();
}

/* ---- events */

/* True when the data are those of a twin's entry. The lock is held. */
static bool
urn_epoll_has(int epfd, uint64_t data)
{
	const struct urn_twin_epoll *e = urn_epoll_list;

	while (e != NULL && (e->epfd != epfd || e->event.data.u64 != data))
		e = e->all_next;
	return e != NULL;
}

/* Events of one epoll_wait(): at most URN_EPOLL_EVENTS. */
struct urn_epoll_batch {
	int epfd, n;
	struct epoll_event *events;
	uint16_t table[2 *
		       URN_EPOLL_EVENTS]; /* 1 + index of the first event with the data; 0: none */
	uint8_t input[URN_EPOLL_EVENTS];  /* enum urn_epoll_input of the first with the data */
};

/* Input that an event tells of. */
enum urn_epoll_input {
	URN_EPOLL_OTHER, /* no twin's, or none */
	URN_EPOLL_DOUBT, /* no twin with the data is seen to have a datagram */
	URN_EPOLL_SURE,
};

/* The place in the table of the events with these data, which may be empty. */
static uint16_t *
urn_epoll_place(struct urn_epoll_batch *b, uint64_t data)
{
	size_t at = (data * 0x9e3779b97f4a7c15ull) >> 54;

	while (b->table[at] != 0 && b->events[b->table[at] - 1].data.u64 != data)
		at = (at + 1) % (2 * URN_EPOLL_EVENTS);
	return &b->table[at];
}

/* Make one event of those that a twin's two descriptors have. The lock is held. */
static void
urn_epoll_merge(struct urn_epoll_batch *b)
{
	int i, out = 0;

	for (i = 0; i < b->n; i++) {
		uint64_t data = b->events[i].data.u64;
		uint16_t *place = urn_epoll_place(b, data);

		if (*place != 0 && urn_epoll_has(b->epfd, data)) {
			b->events[*place - 1].events |= b->events[i].events;
			continue;
		}
		if (*place == 0)
			*place = (uint16_t)(out + 1);
		b->events[out++] = b->events[i];
	}
	b->n = out;
}

/* Look which events of twins may tell of input that is not there. The lock is held. */
static void
urn_epoll_doubt(struct urn_epoll_batch *b)
{
	const struct urn_twin_epoll *e;

	for (e = urn_epoll_list; e != NULL; e = e->all_next) {
		struct urn_sock *s = atomic_load(&e->twin->sock);
		uint16_t place = e->epfd == b->epfd ? *urn_epoll_place(b, e->event.data.u64) : 0;

		if (place == 0 || !(b->events[place - 1].events & (EPOLLIN | EPOLLRDNORM)) ||
		    b->input[place - 1] == URN_EPOLL_SURE)
			continue;
		/* A peer's socket takes no datagrams of others. */
		b->input[place - 1] =
			s == NULL || (urn_sock_readable(s) && !atomic_load(&s->connected))
				? URN_EPOLL_SURE
				: URN_EPOLL_DOUBT;
	}
}

/* Entry k of those with the data, with a reference to its twin. returns: NULL: there are fewer */
static struct urn_twin *
urn_epoll_nth(int epfd, uint64_t data, uint32_t k, int *fd)
{
	struct urn_twin_epoll *e;
	struct urn_twin *t = NULL;

	urn_twin_hold();
	for (e = urn_epoll_list; e != NULL && t == NULL; e = e->all_next)
		if (e->epfd == epfd && e->event.data.u64 == data && k-- == 0) {
			t = e->twin;
			t->refs++;
			*fd = e->fd;
		}
	urn_twin_release();
	return t;
}

/*
 * True when a twin has input or an error to tell of, or the event is none of its urnic socket:
 * another descriptor of the program's may have the same data. Else its event has been read.
 */
static bool
urn_epoll_input(const struct urn_twin *t, int fd)
{
	struct urn_sock *s = atomic_load(&t->sock);
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};

	if (s == NULL || urn_sock_next_len(s) != 0 || urn_sock_readable(s))
		return true;
	p[1].fd = urn_sock_fd(s);
	return urn_real()->poll(p, 2, 0) <= 0 || p[0].revents != 0 || p[1].revents == 0 ||
	       urn_sock_show(s) != 0 || urn_sock_readable(s);
}

/* An entry with EPOLLONESHOT spent its shot for nothing. */
static void
urn_epoll_again(int epfd, const struct urn_twin *t, int fd)
{
	struct urn_sock *s = atomic_load(&t->sock);
	struct urn_twin_epoll *e;

	urn_twin_hold();
	for (e = t->epolls; e != NULL && s != NULL; e = e->next)
		if (e->epfd == epfd && e->fd == fd && e->event.events & EPOLLONESHOT)
			(void)urn_epoll_mirror(e, s, EPOLL_CTL_MOD);
	urn_twin_release();
}

/*
 * Take away input that is not there. The engine stores a datagram first and tells of it later, so
 * that the program may have read it before; and a socket with a peer takes no datagrams of others.
 */
static void
urn_epoll_settle(struct urn_epoll_batch *b)
{
	int i, fd = -1, out = 0;

	for (i = 0; i < b->n; i++) {
		struct epoll_event *ev = &b->events[i];
		bool some = b->input[i] != URN_EPOLL_DOUBT;
		struct urn_twin *t;
		uint32_t k;

		for (k = 0; !some && (t = urn_epoll_nth(b->epfd, ev->data.u64, k, &fd)) != NULL;
		     k++) {
			some = urn_epoll_input(t, fd);
			if (!some)
				urn_epoll_again(b->epfd, t, fd);
			urn_twin_put(t);
		}
		if (!some)
			ev->events &= ~(uint32_t)(EPOLLIN | EPOLLRDNORM);
		if (ev->events != 0)
			b->events[out++] = *ev;
	}
	b->n = out;
}

/* Make a batch of events those that the program expects. returns: how many are left */
static int
urn_epoll_sift(int epfd, struct epoll_event *events, int n)
{
	struct urn_epoll_batch b = {.epfd = epfd, .n = n, .events = events};
	bool doubt = false;
	int i;

	urn_twin_hold();
	urn_epoll_merge(&b);
	urn_epoll_doubt(&b);
	urn_twin_release();
	for (i = 0; i < b.n; i++)
		doubt |= b.input[i] == URN_EPOLL_DOUBT;
	if (doubt)
		urn_epoll_settle(&b);
	return b.n;
}

/* Both descriptors of entries with EPOLLONESHOT rest after an event of one. The lock is held. */
static void
urn_epoll_rest(int epfd, uint64_t data)
{
	struct urn_twin_epoll *e;

	for (e = urn_epoll_list; e != NULL; e = e->all_next) {
		struct epoll_event none = {.events = EPOLLONESHOT, .data = e->event.data};
		struct urn_sock *s = atomic_load(&e->twin->sock);

		if (e->epfd != epfd || e->event.data.u64 != data ||
		    !(e->event.events & EPOLLONESHOT))
			continue;
		(void)urn_real()->epoll_ctl(epfd, EPOLL_CTL_MOD, e->fd, &none);
		if (s != NULL)
			(void)urn_real()->epoll_ctl(epfd, EPOLL_CTL_MOD, urn_epoll_fd(e, s), &none);
	}
}

/*
 * An event of entries with EPOLLET was told: the next datagram makes another one, also if the
 * program leaves some in the queue. The lock is held.
 */
static void
urn_epoll_edge(int epfd, uint64_t data)
{
	const struct urn_twin_epoll *e;

	for (e = urn_epoll_list; e != NULL; e = e->all_next) {
		struct urn_sock *s = atomic_load(&e->twin->sock);

		if (s != NULL && e->epfd == epfd && e->event.data.u64 == data &&
		    (e->event.events & EPOLLET))
			urn_sock_edge(s);
	}
}

int
urn_epoll_told(int epfd, struct epoll_event *events, int n)
{
	int i;

	if (n <= 0 || !urn_epoll_is(epfd))
		return n;
	if (n <= URN_EPOLL_EVENTS)
		n = urn_epoll_sift(epfd, events, n);
	urn_twin_hold();
	for (i = 0; i < n && urn_epoll_oneshots != 0; i++)
		urn_epoll_rest(epfd, events[i].data.u64);
	for (i = 0; i < n && urn_epoll_edges != 0; i++)
		urn_epoll_edge(epfd, events[i].data.u64);
	urn_twin_release();
	return n;
}
