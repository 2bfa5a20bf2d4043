/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that accept() took, and that no process has answered. A server may accept, and let a
 * child of fork() serve: the connection is to be the child's. A stream can't change its process,
 * but a request for one can (urn_cm_end_take()). So accept() gives the program a descriptor, and
 * the answer goes out at its first use, in the process that uses it:
 *
 *   accept() ─► HELD ── recv(), send(), poll(), epoll_ctl(), ... ─► STREAM
 *                 ├──── the next wait of the process, when no child of it has it ─► STREAM
 *                 ├──── fork(): both have it; the first that uses it answers, and the other's
 *                 │     first use finds it LOST
 *                 ├──── close() of the last process ─► STREAM, and its end
 *                 └──── exec() of the last process: refused, so that the kernel connects
 *
 * The number of processes that have a held connection is in memory that they share. The child takes
 * nothing of its parent's but the request: no byte has gone.
 */
#include "sockets/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* A request that may have been taken over, or not: destroyed when its peer has given up. */
struct urn_tcp_handed {
	struct urn_tcp_handed *next;
	struct urn_stream_node *node; /* the request's; lives as long as the process */
	uint32_t id;		      /* connection management's name of the request */
	uint64_t since;		      /* ms of urn_sh_now() */
};

/* Both lists under the lock of all; their first entries are looked at without it. */
static struct urn_tcp *_Atomic urn_tcp_held_list; /* held connections of this process */
static struct urn_tcp_handed *_Atomic urn_tcp_handed_list;
static _Atomic uint64_t urn_tcp_held_tidied; /* ms of the last look at the requests handed on */

/* ---- the list; the lock of all is held */

static void
urn_tcp_held_free(struct urn_tcp_held *h)
{
	if (h->holders != NULL)
		(void)munmap((void *)h->holders, sizeof(*h->holders));
	free(h->request);
	explicit_bzero(&h->key, sizeof(h->key));
	free(h);
}

/* The connection is held no more. */
static void
urn_tcp_held_unlist(struct urn_tcp *t)
{
	struct urn_tcp *first = atomic_load(&urn_tcp_held_list), **at = &first;

	if (t->held == NULL)
		return;
	while (*at != t)
		at = &(*at)->held->next;
	*at = t->held->next;
	atomic_store(&urn_tcp_held_list, first);
	urn_tcp_held_free(t->held);
	t->held = NULL;
}

/* ---- accept() */

bool
urn_tcp_held_begin(struct urn_tcp *t, const struct urn_tcp *l, struct urn_sh_request *request)
{
	struct urn_tcp_held *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return false;
	h->request = request;
	h->node = l->l->node;
	h->key = l->key;
	urn_tcp_hold();
	h->next = atomic_load(&urn_tcp_held_list);
	t->held = h;
	atomic_store(&urn_tcp_held_list, t);
	atomic_store(&t->state, URN_TCP_HELD);
	urn_tcp_release();
	return true;
}

/* ---- the answer */

/* Answer a request, in this process. The socket's lock is held. returns: 0, or an errno value */
static int
urn_tcp_held_answer(struct urn_tcp *t)
{
	const struct urn_tcp_held *h = t->held;
	struct urn_stream_node *n = h->node != NULL ? h->node : urn_tcp_node();
	int err = n == NULL ? ENETDOWN : 0;

	if (err == 0 && h->node == NULL)
		err = urn_cm_end_take(n->cm, h->request->ev.id, h->key);
	return err == 0 ? urn_sh_take(&t->s, n, &urn_tcp_options, &h->request->ev) : err;
}

/* A request that came to this process can't be answered. One whose peer has given up is a
 * connection that the peer broke; one that another process has answered is that one's. */
static void
urn_tcp_held_fails(struct urn_tcp *t, int err)
{
	const struct urn_tcp_held *h = t->held;

	if (h->node != NULL && (h->holders == NULL || err == EPROTO))
		atomic_store(&t->err, ECONNRESET);
}

/* The connection is held no more. answers: by this process. Both locks are free. */
static uint32_t
urn_tcp_held_end(struct urn_tcp *t, bool answers)
{
	uint32_t state;
	int err = 0;

	pthread_mutex_lock(&t->lock);
	state = atomic_load(&t->state);
	if (state == URN_TCP_HELD) {
		err = answers ? urn_tcp_held_answer(t) : ENOTCONN;
		if (answers && err != 0)
			urn_tcp_held_fails(t, err);
		state = err == 0 ? URN_TCP_STREAM : URN_TCP_LOST;
		atomic_store(&t->state, state);
	}
	urn_tcp_hold();
	urn_tcp_held_unlist(t);
	urn_tcp_release();
	pthread_mutex_unlock(&t->lock);
	return state;
}

uint32_t
urn_tcp_held_settle(struct urn_tcp *t)
{
	return urn_tcp_held_end(t, true);
}

/* True when no other process has the connection, and a wait of this one answers it: the process to
 * which the request came. The lock of all is held. */
static bool
urn_tcp_held_is_alone(const struct urn_tcp_held *h)
{
	return h->holders == NULL || (h->node != NULL && atomic_load(h->holders) <= 1);
}

/* Get one that no other process has, with a reference. NULL: there is none */
static struct urn_tcp *
urn_tcp_held_first(void)
{
	struct urn_tcp *t;

	urn_tcp_hold();
	t = atomic_load(&urn_tcp_held_list);
	while (t != NULL && (!urn_tcp_held_is_alone(t->held) || t->ended))
		t = t->held->next;
	if (t != NULL)
		t->refs++;
	urn_tcp_release();
	return t;
}

void
urn_tcp_held_all(void)
{
	struct urn_tcp *t;

	if (atomic_load_explicit(&urn_tcp_held_list, memory_order_relaxed) == NULL ||
	    urn_real_stranger())
		return;
	while ((t = urn_tcp_held_first()) != NULL) {
		(void)urn_tcp_held_settle(t);
		urn_tcp_put(t);
	}
}

/* ---- the end */

/* Remember a request that another process may take over. */
static void
urn_tcp_held_hand(const struct urn_tcp_held *h)
{
	struct urn_tcp_handed *o = malloc(sizeof(*o));

	if (o == NULL)
		return;
	*o = (struct urn_tcp_handed){NULL, h->node, h->request->ev.id, urn_sh_now()};
	urn_tcp_hold();
	o->next = atomic_load(&urn_tcp_handed_list);
	atomic_store(&urn_tcp_handed_list, o);
	urn_tcp_release();
}

void
urn_tcp_held_close(struct urn_tcp *t)
{
	const struct urn_tcp_held *h = t->held;
	bool last = h != NULL && (h->holders == NULL || atomic_fetch_sub(h->holders, 1) == 1);

	if (h == NULL)
		return;
	if (!last && h->node != NULL)
		urn_tcp_held_hand(h);
	(void)urn_tcp_held_end(t, last);
}

/* Take requests that are old out of the list. returns: a list of these */
static struct urn_tcp_handed *
urn_tcp_held_due(uint64_t now)
{
	struct urn_tcp_handed **at, *o, *list, *due = NULL;

	urn_tcp_hold();
	list = atomic_load(&urn_tcp_handed_list);
	for (at = &list; (o = *at) != NULL;) {
		if (now < o->since + URN_TCP_LINGER_MS) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		o->next = due;
		due = o;
	}
	atomic_store(&urn_tcp_handed_list, list);
	urn_tcp_release();
	return due;
}

void
urn_tcp_held_tidy(void)
{
	uint64_t now, before;
	struct urn_tcp_handed *o, *due;

	if (atomic_load_explicit(&urn_tcp_handed_list, memory_order_relaxed) == NULL)
		return;
	now = urn_sh_now();
	before = atomic_load(&urn_tcp_held_tidied);
	/* A child of vfork() has descriptors of its own, and its parent's list. */
	if (now - before < URN_TCP_HANDED_MS || urn_real_stranger() ||
	    !atomic_compare_exchange_strong(&urn_tcp_held_tidied, &before, now))
		return;
	/* The dataplane may be slow to answer: no lock is held meanwhile. */
	for (due = urn_tcp_held_due(now); (o = due) != NULL;) {
		due = o->next;
		(void)urn_cm_end_destroy(o->node->cm, o->id); /* ENOENT: it was taken over */
		free(o);
	}
}

void
urn_tcp_held_leave(void)
{
	struct urn_tcp *t;

	for (t = atomic_load(&urn_tcp_held_list); t != NULL; t = t->held->next)
		if (t->held->holders != NULL)
			atomic_fetch_sub(t->held->holders, 1);
}

/* ---- exec() */

/* True when no other process has the connection, or has it no more in a moment: a parent closes its
 * copy soon after fork(). */
static bool
urn_tcp_held_is_sole(const struct urn_tcp *t)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	const struct urn_tcp_held *h = t->held;
	int i;

	for (i = 0; h != NULL && h->holders != NULL && atomic_load(h->holders) > 1; i++) {
		if (i == URN_TCP_EXEC_MS)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return h != NULL;
}

/* Refuse a request, whose peer goes to the kernel then. The socket's lock is held. */
static void
urn_tcp_held_refuse(const struct urn_tcp_held *h)
{
	struct urn_stream_node *n = h->node != NULL ? h->node : urn_tcp_node();
	uint32_t id = h->request->ev.id;

	if (n != NULL && (h->node != NULL || urn_cm_end_take(n->cm, id, h->key) == 0))
		urn_sh_refuse(n, id, "the connection is for a program that is executed");
}

/* The program that is executed would have the connection. */
static void
urn_tcp_held_pass(struct urn_tcp *t)
{
	if (!urn_tcp_held_is_sole(t))
		return;
	pthread_mutex_lock(&t->lock);
	if (t->held != NULL)
		urn_tcp_held_refuse(t->held);
	pthread_mutex_unlock(&t->lock);
	(void)urn_tcp_held_end(t, false);
}

/* The program that is executed has not the connection: a child leaves it to its parent. */
static void
urn_tcp_held_drop(struct urn_tcp *t)
{
	bool drops;

	pthread_mutex_lock(&t->lock);
	drops = t->held != NULL && t->held->node == NULL && t->held->holders != NULL;
	if (drops)
		atomic_fetch_sub(t->held->holders, 1);
	pthread_mutex_unlock(&t->lock);
	if (drops)
		(void)urn_tcp_held_end(t, false);
}

/* Do one of these for all descriptors of held connections that are closed by exec(), or not. */
static void
urn_tcp_held_each(bool closed, void (*what)(struct urn_tcp *t))
{
	int fd;

	for (fd = 0; fd < URN_TWIN_FDS && atomic_load(&urn_tcp_held_list) != NULL; fd++) {
		struct urn_tcp *t = urn_tcp_peek(fd) != NULL ? urn_tcp_get(fd) : NULL;
		int bits = t != NULL ? urn_real()->fcntl(fd, F_GETFD) : -1;

		if (bits >= 0 && !!(bits & FD_CLOEXEC) == closed &&
		    urn_tcp_state(t) == URN_TCP_HELD)
			what(t);
		urn_tcp_put(t);
	}
}

void
urn_tcp_held_exec(void)
{
	if (atomic_load(&urn_tcp_held_list) == NULL || urn_real_stranger())
		return;
	/* A connection may have descriptors of both kinds. */
	urn_tcp_held_each(false, urn_tcp_held_pass);
	urn_tcp_held_each(true, urn_tcp_held_drop);
}

/* ---- fork() */

void
urn_tcp_held_fork(void)
{
	struct urn_tcp *t;

	for (t = atomic_load(&urn_tcp_held_list); t != NULL; t = t->held->next) {
		struct urn_tcp_held *h = t->held;
		void *page = h->holders == NULL
				     ? mmap(NULL, sizeof(*h->holders), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0)
				     : MAP_FAILED;

		if (page != MAP_FAILED) {
			h->holders = page;
			atomic_store(h->holders, 1);
		}
		if (h->holders != NULL)
			atomic_fetch_add(h->holders, 1);
	}
}

void
urn_tcp_held_forked(void)
{
	struct urn_tcp *t;

	for (t = atomic_load(&urn_tcp_held_list); t != NULL; t = t->held->next)
		t->held->node = NULL;
	atomic_store(&urn_tcp_handed_list, NULL);
}
