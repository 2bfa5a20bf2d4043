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
#include "sockets/tcp_epoll.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* Memory of an epoll is never given back: a thread may wait on it. */
struct urn_tcp_epoll *_Atomic urn_tcp_epolls[URN_TWIN_FDS];

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

struct urn_tcp_entry *
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
	       ((state == URN_TCP_LISTEN || state == URN_TCP_HEIR) && t->kernel);
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
	if (mine && op == EPOLL_CTL_ADD && atomic_load(&t->state) >= URN_TCP_HEIR)
		(void)urn_tcp_settle(t, fd);
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
