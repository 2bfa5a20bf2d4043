/* SPDX-License-Identifier: BSD-3-Clause */
/* Twins, their descriptors, and the making of urnic sockets. */
#include "sockets/twin.h"

#include "abi/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* urn_twin_lock protects the table, refs of twins, and entries of epolls. */
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

void
urn_twin_hold(void)
{
	pthread_mutex_lock(&urn_twin_lock);
}

void
urn_twin_release(void)
{
	pthread_mutex_unlock(&urn_twin_lock);
}

bool
urn_twin_has(const struct urn_twin *t, int fd)
{
	return fd >= 0 && fd < URN_TWIN_FDS && atomic_load(&urn_twin_table[fd]) == t;
}

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
	urn_epoll_let_go(t);
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

	urn_epoll_closed(fd);
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
		s->sndtimeo_ns = atomic_load(&t->sndtimeo_ns);
		urn_epoll_put_in(t, s);
		atomic_store(&t->sock, s);
	}
	pthread_mutex_unlock(&urn_twin_make_lock);
	errno = err;
	return err == 0 ? s : NULL;
}

void
urn_twin_early(struct urn_twin *t)
{
	if (t != NULL && atomic_load(&t->sock) == NULL && !atomic_load(&t->kernel) &&
	    urn_net_some())
		(void)urn_twin_sock(t);
}

bool
urn_twin_yield(uint16_t port)
{
	bool some = false;
	int fd;

	for (fd = 0; fd < URN_TWIN_FDS; fd++) {
		struct urn_twin *t = urn_twin_get(fd);
		struct urn_sock *s =
			t != NULL && atomic_load(&t->v6only) ? atomic_load(&t->sock) : NULL;

		if (s != NULL && s->bound && s->local.port == port &&
		    urn_addr_is_any(s->local.gid)) {
			urn_sock_unbind(s);
			some = true;
		}
		urn_twin_put(t);
	}
	return some;
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
		s->sndtimeo_ns = atomic_load(&t->sndtimeo_ns);
		urn_epoll_put_in(t, s);
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
