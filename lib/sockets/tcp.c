/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP sockets and their descriptors, and the end of streams. */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	URN_TCP_RETRY_MS = 1000, /* between looks for a dataplane */
	URN_TCP_TRY_MS = 100,	 /* time for other threads to give a lock back at the end */
	URN_TCP_TIDY_MAX = 16,	 /* streams that one look at closed ones frees */
};

/* A stream that the program has closed. */
struct urn_tcp_closing {
	struct urn_tcp_closing *next;
	struct urn_stream *s;
	uint64_t since; /* ms of urn_sh_now() */
};

/* urn_tcp_lock protects the table, references, epolls and their entries. */
static pthread_mutex_t urn_tcp_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_tcp *_Atomic urn_tcp_table[URN_TWIN_FDS];
static pthread_once_t urn_tcp_once = PTHREAD_ONCE_INIT;
/* urn_tcp_node_lock protects the streams of the device, and the closed ones. */
static pthread_mutex_t urn_tcp_node_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_stream_node *urn_tcp_streams;
static uint64_t urn_tcp_tried; /* ms; when a dataplane was looked for in vain; 0: never */
static struct urn_tcp_closing *_Atomic urn_tcp_closing_list;
static _Atomic uint64_t urn_tcp_tidied; /* ms of the last look at these */

void
urn_tcp_hold(void)
{
	pthread_mutex_lock(&urn_tcp_lock);
}

void
urn_tcp_release(void)
{
	pthread_mutex_unlock(&urn_tcp_lock);
}

/* ---- fork() */

static void
urn_tcp_fork_hold(void)
{
	pthread_mutex_lock(&urn_tcp_node_lock);
	pthread_mutex_lock(&urn_tcp_lock);
	urn_tcp_held_fork();
}

static void
urn_tcp_fork_parent(void)
{
	pthread_mutex_unlock(&urn_tcp_lock);
	pthread_mutex_unlock(&urn_tcp_node_lock);
}

static void
urn_tcp_fork_child(void)
{
	int fd;

	pthread_mutex_init(&urn_tcp_lock, NULL);
	pthread_mutex_init(&urn_tcp_node_lock, NULL);
	urn_tcp_streams = NULL;
	urn_tcp_tried = 0;
	atomic_store(&urn_tcp_closing_list, NULL);
	urn_tcp_epoll_forked();
	urn_tcp_held_forked();
	for (fd = 0; fd < URN_TWIN_FDS; fd++)
		if (atomic_load_explicit(&urn_tcp_table[fd], memory_order_relaxed) != NULL)
			urn_tcp_heir_forked(atomic_load(&urn_tcp_table[fd]));
}

static void
urn_tcp_forks(void)
{
	/* TCP's locks are held over calls of verbs, so fork() takes them first. */
	(void)ibv_fork_init();
	(void)pthread_atfork(urn_tcp_fork_hold, urn_tcp_fork_parent, urn_tcp_fork_child);
}

/* ---- descriptors */

struct urn_tcp *
urn_tcp_peek(int fd)
{
	return fd >= 0 && fd < URN_TWIN_FDS ? atomic_load(&urn_tcp_table[fd]) : NULL;
}

/* The program has no such descriptor any more. The caller has a reference of its own. */
static void
urn_tcp_forget(int fd, struct urn_tcp *t)
{
	struct urn_tcp *expected = t;

	urn_tcp_hold();
	if (atomic_compare_exchange_strong(&urn_tcp_table[fd], &expected, NULL))
		t->refs--;
	urn_tcp_release();
}

struct urn_tcp *
urn_tcp_ref(int fd)
{
	struct urn_tcp *t = urn_tcp_peek(fd);

	/* A child of vfork() runs in its parent's memory while the parent's thread waits, so it
	 * uses a connection as that thread would. */
	if (t == NULL || urn_real_copied())
		return NULL;
	urn_tcp_hold();
	t = urn_tcp_peek(fd);
	if (t != NULL)
		t->refs++;
	urn_tcp_release();
	return t;
}

struct urn_tcp *
urn_tcp_get(int fd)
{
	struct urn_tcp *t = urn_tcp_ref(fd);

	if (t == NULL || (t->cookie == 0 ? !urn_real_stranger() : urn_twin_cookie(fd) == t->cookie))
		return t;
	/* fclose(), or a system call of the program's own. A child of vfork() has descriptors of
	 * its own, and must not change the parent's table. */
	if (!urn_real_stranger())
		urn_tcp_forget(fd, t);
	urn_tcp_put(t);
	return NULL;
}

/* The last descriptor is closed. Another thread's epoll_wait() may have the socket still: the peer
 * learns of the end now, and the memory goes when that thread has woken. */
static void
urn_tcp_end(struct urn_tcp *t)
{
	urn_tcp_held_close(t);
	if (t->s == NULL)
		return;
	if (t->reset || atomic_load(&t->state) == URN_TCP_KERNEL)
		(void)urn_stream_abort(t->s);
	else
		(void)urn_sh_end(t->s, 0);
}

static void
urn_tcp_free(struct urn_tcp *t)
{
	if (t->s != NULL)
		urn_tcp_let_go(t->s, t->reset || atomic_load(&t->state) == URN_TCP_KERNEL);

	(void)urn_stream_listener_close(t->l);
	free(t->stash);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->reading);
	/* A child that changes its user keeps no secret of a listener that it has closed. */
	explicit_bzero(&t->key, sizeof(t->key));
	free(t);
}

void
urn_tcp_put(struct urn_tcp *t)
{
	bool last;

	if (t == NULL)
		return;
	urn_tcp_hold();
	if (t->refs - 1 == t->watches && !t->ended) {
		t->ended = true;
		/* Entries go at once: the program may free what their data point to. */
		urn_tcp_epoll_forget(t);
		urn_tcp_release();
		urn_tcp_end(t);
		urn_tcp_hold();
	}
	last = --t->refs == 0;
	urn_tcp_release();
	if (last)
		urn_tcp_free(t);
}

void
urn_tcp_watch(struct urn_tcp *t)
{
	t->refs++;
	t->watches++;
}

void
urn_tcp_unwatch(struct urn_tcp **t, size_t n)
{
	size_t i;

	/* No connection ends here: it ended with the last reference that is no watch. */
	urn_tcp_hold();
	for (i = 0; i < n; i++) {
		t[i]->watches--;
		if (--t[i]->refs != 0)
			t[i] = NULL;
	}
	urn_tcp_release();
	for (i = 0; i < n; i++)
		if (t[i] != NULL)
			urn_tcp_free(t[i]);
}

struct urn_tcp *
urn_tcp_add(int fd, int family, bool nonblock)
{
	struct urn_tcp *t = fd >= 0 && fd < URN_TWIN_FDS ? calloc(1, sizeof(*t)) : NULL;

	(void)pthread_once(&urn_tcp_once, urn_tcp_forks);
	if (t == NULL)
		return NULL;
	t->refs = 1;
	t->family = family;
	t->cookie = urn_twin_cookie(fd);
	atomic_store(&t->nonblock, nonblock);
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->reading, NULL);
	urn_tcp_hold();
	atomic_store(&urn_tcp_table[fd], t);
	urn_tcp_release();
	return t;
}

void
urn_tcp_set_nonblock(int fd, bool on)
{
	struct urn_tcp *t = urn_tcp_get(fd);

	if (t != NULL)
		atomic_store(&t->nonblock, on);
	urn_tcp_put(t);
}

void
urn_tcp_dup(int from, int to)
{
	struct urn_tcp *t = to >= 0 && to < URN_TWIN_FDS ? urn_tcp_get(from) : NULL;

	if (t == NULL)
		return;
	urn_tcp_hold();
	atomic_store(&urn_tcp_table[to], t); /* with the reference of urn_tcp_get() */
	urn_tcp_release();
}

void
urn_tcp_close(int fd)
{
	struct urn_tcp *t = NULL;

	if (fd < 0 || fd >= URN_TWIN_FDS)
		return;
	if (urn_tcp_epoll_is(fd)) {
		urn_tcp_hold();
		urn_tcp_epoll_closed(fd);
		urn_tcp_release();
	}
	if (atomic_load(&urn_tcp_table[fd]) == NULL)
		return;
	urn_tcp_hold();
	t = atomic_exchange(&urn_tcp_table[fd], NULL);
	urn_tcp_release();
	urn_tcp_put(t);
}

/* ---- the device */

/* Open the streams of the device. The lock is held. */
static void
urn_tcp_open(void)
{
	struct ibv_context *ctx = urn_tcp_device_open();

	if (ctx != NULL && urn_stream_node_open(&urn_tcp_streams, ctx) != 0)
		(void)ibv_close_device(ctx);
}

/* A dataplane that is gone comes back as another one; the old one's streams have ended with it. */
static bool
urn_tcp_is_dead(struct urn_stream_node *n)
{
	bool dead;

	urn_sh_hub_look(n);
	pthread_mutex_lock(&n->lock);
	dead = n->dead;
	pthread_mutex_unlock(&n->lock);
	return dead;
}

struct urn_stream_node *
urn_tcp_node(void)
{
	struct urn_stream_node *n;
	uint64_t now = urn_sh_now();

	pthread_mutex_lock(&urn_tcp_node_lock);
	/* The memory of a dead one stays: sockets may have streams of it. */
	if (urn_tcp_streams != NULL && urn_tcp_is_dead(urn_tcp_streams))
		urn_tcp_streams = NULL;
	if (urn_tcp_streams == NULL &&
	    (urn_tcp_tried == 0 || now - urn_tcp_tried >= URN_TCP_RETRY_MS)) {
		urn_tcp_open();
		urn_tcp_tried = urn_tcp_streams == NULL ? now : 0;
	}
	n = urn_tcp_streams;
	pthread_mutex_unlock(&urn_tcp_node_lock);
	return n;
}

/* ---- ends of streams */

/* True when a stream that was closed can go, and nothing waits for its peer then. One whose peer
 * has all waits for the peer's own end for a while; one whose peer takes nothing is broken. */
static bool
urn_tcp_is_over(const struct urn_tcp_closing *c, uint64_t now)
{
	/* Another thread may have closed it behind the look at the clock. */
	uint64_t age = now > c->since ? now - c->since : 0;

	if (urn_sh_ended(c->s))
		return true;
	if (age < URN_TCP_LINGER_MS)
		return age >= URN_TCP_HALF_MS && urn_sh_end(c->s, 0);
	(void)urn_stream_abort(c->s);
	return urn_sh_ended(c->s);
}

void
urn_tcp_tidy(void)
{
	struct urn_tcp_closing **at, *c, *list;
	uint64_t now, before;
	int left = URN_TCP_TIDY_MAX;

	urn_tcp_held_tidy();
	if (atomic_load_explicit(&urn_tcp_closing_list, memory_order_relaxed) == NULL)
		return;
	now = urn_sh_now();
	before = atomic_load(&urn_tcp_tidied);
	/* A child of vfork() has descriptors of its own, and its parent's list. */
	if (now - before < URN_TCP_TIDY_MS || urn_real_stranger() ||
	    !atomic_compare_exchange_strong(&urn_tcp_tidied, &before, now))
		return;
	pthread_mutex_lock(&urn_tcp_node_lock);
	list = atomic_load(&urn_tcp_closing_list);
	for (at = &list; (c = *at) != NULL && left > 0;) {
		if (!urn_tcp_is_over(c, now)) {
			at = &c->next;
			continue;
		}
		left--;
		*at = c->next;
		c->s->o.linger_ms = 1;
		(void)urn_stream_close(c->s);
		free(c);
	}
	atomic_store(&urn_tcp_closing_list, list);
	pthread_mutex_unlock(&urn_tcp_node_lock);
}

int
urn_tcp_later(int left)
{
	bool some = atomic_load_explicit(&urn_tcp_closing_list, memory_order_relaxed) != NULL;

	return some && (left < 0 || left > URN_TCP_LATER_MS) ? URN_TCP_LATER_MS : left;
}

void
urn_tcp_let_go(struct urn_stream *s, bool reset)
{
	struct urn_tcp_closing *c = reset ? NULL : malloc(sizeof(*c));

	urn_tcp_tidy();
	if (reset)
		(void)urn_stream_abort(s);
	else
		(void)urn_sh_end(s, URN_TCP_CLOSE_MS);
	if (c == NULL || urn_sh_ended(s)) {
		free(c);
		(void)urn_stream_close(s);
		return;
	}
	pthread_mutex_lock(&urn_tcp_node_lock);
	*c = (struct urn_tcp_closing){atomic_load(&urn_tcp_closing_list), s, urn_sh_now()};
	atomic_store(&urn_tcp_closing_list, c);
	pthread_mutex_unlock(&urn_tcp_node_lock);
}

/* End a stream at the end of the program. Another thread may use it still, so it is not freed. */
static void
urn_tcp_flush_one(struct urn_stream *s, uint64_t end)
{
	uint64_t now = urn_sh_now();

	(void)urn_sh_end(s, now < end ? (uint32_t)(end - now) : 0);
}

/* The program ends without closing its sockets: the peers get all that was sent. */
__attribute__((destructor)) static void
urn_tcp_flush(void)
{
	uint64_t end = urn_sh_now() + URN_TCP_LINGER_MS;
	struct urn_tcp_closing *c;
	int fd;

	if (urn_real_stranger())
		return;
	for (fd = 0; fd < URN_TWIN_FDS; fd++) {
		struct urn_tcp *t = urn_tcp_peek(fd) != NULL ? urn_tcp_get(fd) : NULL;

		if (urn_tcp_state(t) == URN_TCP_HELD)
			urn_tcp_held_close(t);
		if (urn_tcp_state(t) == URN_TCP_STREAM)
			urn_tcp_flush_one(t->s, end);
		urn_tcp_put(t);
	}
	pthread_mutex_lock(&urn_tcp_node_lock);
	for (c = atomic_load(&urn_tcp_closing_list); c != NULL; c = c->next)
		urn_tcp_flush_one(c->s, end);
	pthread_mutex_unlock(&urn_tcp_node_lock);
}

/* Take a lock that may be this thread's own already, below a handler of a signal. returns: false:
 * nobody gives it back */
static bool
urn_tcp_try(pthread_mutex_t *lock)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int i;

	for (i = 0; pthread_mutex_trylock(lock) != 0; i++) {
		if (i == URN_TCP_TRY_MS)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

/* True when a lock is not this thread's own. */
static bool
urn_tcp_is_usable(pthread_mutex_t *lock)
{
	bool usable = urn_tcp_try(lock);

	if (usable)
		pthread_mutex_unlock(lock);
	return usable;
}

void
urn_tcp_leave(void)
{
	struct urn_tcp_closing *c;
	uint64_t end;

	if (urn_real_stranger())
		return;
	if (atomic_load(&urn_tcp_closing_list) != NULL && urn_tcp_try(&urn_tcp_node_lock)) {
		end = urn_sh_now() + URN_TCP_LINGER_MS;
		for (c = atomic_load(&urn_tcp_closing_list); c != NULL; c = c->next)
			if (urn_tcp_is_usable(&c->s->lock) && urn_tcp_is_usable(&c->s->node->lock))
				urn_tcp_flush_one(c->s, end);
		pthread_mutex_unlock(&urn_tcp_node_lock);
	}
	if (urn_tcp_try(&urn_tcp_lock))
		urn_tcp_held_leave();
}
