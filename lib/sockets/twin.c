/* SPDX-License-Identifier: BSD-3-Clause */
/* Twins, their descriptors, and the epolls that these are in. */
#include "sockets/twin.h"

#include "abi/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* urn_twin_lock protects the table, and refs and epolls of twins. */
static pthread_mutex_t urn_twin_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_twin *_Atomic urn_twin_table[URN_TWIN_FDS];
/* urn_twin_make_lock protects the making of urnic sockets. */
static pthread_mutex_t urn_twin_make_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t urn_twin_once = PTHREAD_ONCE_INIT;

/* ---- fork() */

static void
urn_twin_fork_hold(void)
{
	pthread_mutex_lock(&urn_twin_make_lock);
	urn_net_fork_hold();
	pthread_mutex_lock(&urn_twin_lock);
}

static void
urn_twin_fork_parent(void)
{
	pthread_mutex_unlock(&urn_twin_lock);
	urn_net_fork_parent();
	pthread_mutex_unlock(&urn_twin_make_lock);
}

static void
urn_twin_fork_child(void)
{
	urn_real_settle();
	urn_net_fork_child();
	pthread_mutex_init(&urn_twin_lock, NULL);
	pthread_mutex_init(&urn_twin_make_lock, NULL);
}

static void
urn_twin_forks(void)
{
	urn_socks_forks();
	(void)pthread_atfork(urn_twin_fork_hold, urn_twin_fork_parent, urn_twin_fork_child);
}

/* ---- descriptors */

struct urn_twin *
urn_twin_get(int fd)
{
	struct urn_twin *t;

	if (fd < 0 || fd >= URN_TWIN_FDS || atomic_load(&urn_twin_table[fd]) == NULL)
		return NULL;
	pthread_mutex_lock(&urn_twin_lock);
	t = atomic_load(&urn_twin_table[fd]);
	if (t != NULL)
		t->refs++;
	pthread_mutex_unlock(&urn_twin_lock);
	return t;
}

void
urn_twin_put(struct urn_twin *t)
{
	struct urn_sock *s;
	bool last;

	if (t == NULL)
		return;
	pthread_mutex_lock(&urn_twin_lock);
	last = --t->refs == 0;
	pthread_mutex_unlock(&urn_twin_lock);
	if (!last)
		return;
	s = atomic_load(&t->sock);
	if (s != NULL)
		urn_sock_drop(s);
	while (t->epolls != NULL) {
		struct urn_twin_epoll *e = t->epolls;

		t->epolls = e->next;
		free(e);
	}
	free(t);
}

void
urn_twin_add(int fd, int family, bool nonblock)
{
	struct urn_twin *t;

	if (fd < 0 || fd >= URN_TWIN_FDS)
		return;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return;
	(void)pthread_once(&urn_twin_once, urn_twin_forks);
	t->refs = 1;
	t->family = family;
	atomic_store(&t->nonblock, nonblock);
	pthread_mutex_lock(&urn_twin_lock);
	atomic_store(&urn_twin_table[fd], t);
	pthread_mutex_unlock(&urn_twin_lock);
}

void
urn_twin_set_nonblock(int fd, bool on)
{
	struct urn_twin *t = urn_twin_get(fd);

	if (t != NULL)
		atomic_store(&t->nonblock, on);
	urn_twin_put(t);
}

void
urn_twin_dup(int from, int to)
{
	struct urn_twin *t = to >= 0 && to < URN_TWIN_FDS ? urn_twin_get(from) : NULL;

	if (t == NULL)
		return;
	pthread_mutex_lock(&urn_twin_lock);
	atomic_store(&urn_twin_table[to], t); /* with the reference of urn_twin_get() */
	pthread_mutex_unlock(&urn_twin_lock);
}

void
urn_twin_close(int fd)
{
	struct urn_twin *t = NULL;

	if (fd < 0 || fd >= URN_TWIN_FDS || atomic_load(&urn_twin_table[fd]) == NULL)
		return;
	pthread_mutex_lock(&urn_twin_lock);
	t = atomic_exchange(&urn_twin_table[fd], NULL);
	pthread_mutex_unlock(&urn_twin_lock);
	urn_twin_put(t);
}

/* The process ends without closing its sockets: datagrams that are under way get there all the
 * same. */
__attribute__((destructor)) static void
urn_twin_flush(void)
{
	int fd;

	for (fd = 0; fd < URN_TWIN_FDS && !urn_real_stranger(); fd++) {
		struct urn_twin *t = urn_twin_get(fd);
		struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;

		if (s != NULL)
			urn_sock_flush(s);
		urn_twin_put(t);
	}
}

/* ---- epoll: the urnic socket's descriptor stands beside the program's, with the same data */

/* The urnic side of an entry. */
static int
urn_twin_epoll_ctl(const struct urn_twin_epoll *e, struct urn_sock *s, int op)
{
	struct epoll_event event = e->event;

	event.events &= EPOLLIN | EPOLLRDNORM | EPOLLET | EPOLLONESHOT;
	return urn_real()->epoll_ctl(e->epfd, op, urn_sock_fd(s), &event);
}

/* All epolls of a twin get its new urnic socket. */
static void
urn_twin_epoll_all(struct urn_twin *t, struct urn_sock *s)
{
	struct urn_twin_epoll *e;

	pthread_mutex_lock(&urn_twin_lock);
	for (e = t->epolls; e != NULL; e = e->next)
		(void)urn_twin_epoll_ctl(e, s, EPOLL_CTL_ADD);
	pthread_mutex_unlock(&urn_twin_lock);
	if (t->epolls != NULL)
		(void)urn_sock_show(s);
}

/* Find or make the entry of a descriptor in an epoll. The lock is held. */
static struct urn_twin_epoll **
urn_twin_epoll_find(struct urn_twin *t, int epfd, int fd)
{
	struct urn_twin_epoll **at = &t->epolls;

	while (*at != NULL && ((*at)->epfd != epfd || (*at)->fd != fd))
		at = &(*at)->next;
	return at;
}

/* Keep the program's entry in mind, and do the same for the urnic socket. The lock is held. */
static void
urn_twin_epoll_note(struct urn_twin *t, int epfd, int op, int fd, const struct epoll_event *event)
{
	struct urn_twin_epoll **at = urn_twin_epoll_find(t, epfd, fd), *e = *at;
	struct urn_sock *s = atomic_load(&t->sock);

	if (op == EPOLL_CTL_DEL) {
		if (e == NULL)
			return;
		if (s != NULL)
			(void)urn_twin_epoll_ctl(e, s, op);
		*at = e->next;
		free(e);
		return;
	}
	if (e == NULL) {
		e = *at = calloc(1, sizeof(*e));
		if (e == NULL)
			return;
		e->epfd = epfd;
		e->fd = fd;
		op = EPOLL_CTL_ADD;
	}
	e->event = *event;
	if (s == NULL)
		return;
	if (urn_twin_epoll_ctl(e, s, op) != 0 && errno == EEXIST)
		(void)urn_twin_epoll_ctl(e, s, EPOLL_CTL_MOD);
}

int
urn_twin_epoll(struct urn_twin *t, int epfd, int op, int fd, struct epoll_event *event)
{
	struct urn_sock *s;
	int err = urn_real()->epoll_ctl(epfd, op, fd, event);

	if (err != 0)
		return err;
	pthread_mutex_lock(&urn_twin_lock);
	urn_twin_epoll_note(t, epfd, op, fd, event);
	pthread_mutex_unlock(&urn_twin_lock);
	s = atomic_load(&t->sock);
	if (s != NULL && op != EPOLL_CTL_DEL)
		(void)urn_sock_show(s);
	return 0;
}

/* ---- urnic sockets */

struct urn_sock *
urn_twin_sock(struct urn_twin *t)
{
	struct urn_sock *s = atomic_load(&t->sock);
	int err;

	if (s != NULL)
		return s;
	pthread_mutex_lock(&urn_twin_make_lock);
	s = atomic_load(&t->sock);
	err = s != NULL ? 0 : urn_sock_make(&s, t->family);
	if (err == 0 && atomic_load(&t->sock) == NULL) {
		urn_twin_epoll_all(t, s);
		atomic_store(&t->sock, s);
	}
	pthread_mutex_unlock(&urn_twin_make_lock);
	errno = err;
	return err == 0 ? s : NULL;
}

void
urn_twin_unmake(struct urn_twin *t)
{
	struct urn_sock *s = atomic_exchange(&t->sock, NULL);

	if (s != NULL)
		urn_sock_drop(s);
}

bool
urn_twin_revive(struct urn_twin *t, struct urn_sock *dead)
{
	struct urn_sock *s = NULL;
	int err;

	pthread_mutex_lock(&urn_twin_make_lock);
	if (atomic_load(&t->sock) != dead) {
		pthread_mutex_unlock(&urn_twin_make_lock);
		return true;
	}
	err = urn_sock_make(&s, t->family);
	if (err == 0 && dead->bound)
		err = urn_sock_bind(s, &dead->local);
	if (err == 0 && dead->connected)
		err = urn_sock_connect(s, &dead->peer);
	if (err == 0) {
		urn_twin_epoll_all(t, s);
		atomic_store(&t->sock, s);
		/* Another thread may look at the dead one still: only the descriptor goes, the
		 * memory stays. */
		urn_sock_drop(dead);
	} else if (s != NULL) {
		urn_sock_drop(s);
	}
	pthread_mutex_unlock(&urn_twin_make_lock);
	return err == 0;
}
