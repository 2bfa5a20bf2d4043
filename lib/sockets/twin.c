/* SPDX-License-Identifier: BSD-3-Clause */
/* Twins, their descriptors, and the making of urnic sockets. */
#include "sockets/twin.h"

#include "abi/clock.h"
#include "sockets/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* urn_twin_lock protects the table, refs of twins, and entries of epolls. */
static pthread_mutex_t urn_twin_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_twin *_Atomic urn_twin_table[URN_TWIN_FDS];
/* urn_twin_make_lock protects the making of urnic sockets. */
static pthread_mutex_t urn_twin_make_lock = PTHREAD_MUTEX_INITIALIZER;
/* Descriptors that have or had a twin lie below; changed under the lock. */
static _Atomic int urn_twin_end;
/* Twins in no use, under the lock. Memory of twins is never given back: exec() reads it without the
 * lock. */
static struct urn_twin *urn_twin_free;
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

const struct urn_twin *
urn_twin_glance(int fd)
{
	return fd >= 0 && fd < URN_TWIN_FDS ? atomic_load(&urn_twin_table[fd]) : NULL;
}

struct urn_twin *
urn_twin_peek(int fd)
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

struct urn_twin *
urn_twin_get(int fd)
{
	struct urn_twin *t = urn_twin_peek(fd);

	if (t != NULL && atomic_load_explicit(&t->pending, memory_order_relaxed))
		(void)urn_twin_settle(t);
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
	pthread_mutex_lock(&urn_twin_lock);
	t->free_next = urn_twin_free;
	urn_twin_free = t;
	pthread_mutex_unlock(&urn_twin_lock);
}

int
urn_twin_top(void)
{
	return atomic_load(&urn_twin_end);
}

/* A descriptor has a twin from now on. */
static void
urn_twin_set(int fd, struct urn_twin *t)
{
	pthread_mutex_lock(&urn_twin_lock);
	atomic_store(&urn_twin_table[fd], t);
	if (fd >= atomic_load(&urn_twin_end))
		atomic_store(&urn_twin_end, fd + 1);
	pthread_mutex_unlock(&urn_twin_lock);
}

uint64_t
urn_twin_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return urn_real()->getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 &&
			       len == (socklen_t)sizeof(cookie)
		       ? cookie
		       : 0;
}

/* Make a twin for a descriptor, which has none yet. returns: NULL: no memory */
static struct urn_twin *
urn_twin_new(int fd, int family, bool nonblock)
{
	struct urn_twin *t;

	(void)pthread_once(&urn_twin_once, urn_twin_forks);
	pthread_mutex_lock(&urn_twin_lock);
	t = urn_twin_free;
	if (t != NULL)
		urn_twin_free = t->free_next;
	pthread_mutex_unlock(&urn_twin_lock);
	if (t != NULL)
		memset(t, 0, sizeof(*t));
	else
		t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->refs = 1;
	t->family = family;
	t->cookie = urn_twin_cookie(fd);
	atomic_store(&t->nonblock, nonblock);
	return t;
}

void
urn_twin_add(int fd, int family, bool nonblock)
{
	struct urn_twin *t =
		fd >= 0 && fd < URN_TWIN_FDS ? urn_twin_new(fd, family, nonblock) : NULL;

	if (t == NULL)
		return;
	urn_twin_set(fd, t);
}

void
urn_twin_add_heir(int fd, int family, void (*tell)(struct urn_twin *t, int fd, const void *arg),
		  const void *arg)
{
	struct urn_twin *t = fd >= 0 && fd < URN_TWIN_FDS ? urn_twin_new(fd, family, false) : NULL;

	if (t == NULL)
		return;
	tell(t, fd, arg);
	urn_twin_set(fd, t);
}

void
urn_twin_set_nonblock(int fd, bool on)
{
	struct urn_twin *t = urn_twin_peek(fd);

	if (t != NULL)
		atomic_store(&t->nonblock, on);
	else
		urn_tcp_set_nonblock(fd, on);
	urn_twin_put(t);
}

void
urn_twin_dup(int from, int to)
{
	struct urn_twin *t = to >= 0 && to < URN_TWIN_FDS ? urn_twin_peek(from) : NULL;

	urn_tcp_dup(from, to);
	if (t == NULL)
		return;
	urn_twin_set(to, t); /* with the reference of urn_twin_peek() */
}

void
urn_twin_close(int fd)
{
	struct urn_twin *t = NULL;

	urn_epoll_closed(fd);
	urn_tcp_close(fd);
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

	if (urn_real_stranger())
		return;
	for (fd = 0; fd < URN_TWIN_FDS; fd++) {
		struct urn_twin *t = urn_twin_peek(fd);
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
	if (atomic_load(&t->pending)) {
		errno = urn_twin_settle(t);
		return errno == 0 ? atomic_load(&t->sock) : NULL;
	}
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

bool
urn_twin_install(struct urn_twin *t, struct urn_sock *s)
{
	bool first;

	pthread_mutex_lock(&urn_twin_make_lock);
	first = atomic_load(&t->sock) == NULL && atomic_load(&t->pending);
	if (first) {
		s->sndtimeo_ns = atomic_load(&t->sndtimeo_ns);
		urn_epoll_put_in(t, s);
		atomic_store(&t->sock, s);
		atomic_store(&t->pending, false);
	}
	pthread_mutex_unlock(&urn_twin_make_lock);
	return first;
}

void
urn_twin_early(struct urn_twin *t)
{
	if (t != NULL && atomic_load(&t->sock) == NULL && !atomic_load(&t->kernel) &&
	    !atomic_load(&t->pending) && urn_net_some())
		(void)urn_twin_sock(t);
}

bool
urn_twin_yield(uint16_t port)
{
	bool some = false;
	int fd;

	for (fd = 0; fd < URN_TWIN_FDS; fd++) {
		struct urn_twin *t = urn_twin_peek(fd);
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
