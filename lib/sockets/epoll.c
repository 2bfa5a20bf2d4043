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

/* Make one event of those that a twin's two descriptors have. returns: how many are left */
static int
urn_epoll_merge(int epfd, struct epoll_event *events, int n)
{
	uint16_t table[2 * URN_EPOLL_EVENTS] = {0}; /* 1 + index of the event with the data */
	int i, out = 0;

	for (i = 0; i < n; i++) {
		uint64_t data = events[i].data.u64;
		size_t at = (data * 0x9e3779b97f4a7c15ull) >> 54;

		while (table[at] != 0 && events[table[at] - 1].data.u64 != data)
			at = (at + 1) % (2 * URN_EPOLL_EVENTS);
		if (table[at] != 0 && urn_epoll_has(epfd, data)) {
			events[table[at] - 1].events |= events[i].events;
			continue;
		}
		if (table[at] == 0)
			table[at] = (uint16_t)(out + 1);
		events[out++] = events[i];
	}
	return out;
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
	int i, few = n < URN_EPOLL_EVENTS ? n : URN_EPOLL_EVENTS;

	if (n <= 0 || !urn_epoll_is(epfd))
		return n;
	urn_twin_hold();
	if (n == few && n > 1)
		n = urn_epoll_merge(epfd, events, n);
	for (i = 0; i < n && urn_epoll_oneshots != 0; i++)
		urn_epoll_rest(epfd, events[i].data.u64);
	for (i = 0; i < n && urn_epoll_edges != 0; i++)
		urn_epoll_edge(epfd, events[i].data.u64);
	urn_twin_release();
	return n;
}
