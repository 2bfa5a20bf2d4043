/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child of fork() leaves the endpoints of its parent alone, wherever it was made: nothing is sent
 * or handled twice (AM-1).
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/lock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK = 8, FORKS = 4, COUNT = 9, CHILDREN = 12, HELD = 4 };

/* Children that functions of the program made, and how they end. */
static struct {
	pid_t child[FORKS];
	_Atomic unsigned int n;
	bool returns; /* the child returns from the function, else it ends inside */
} forks;

/* Make a child, in which each call on the endpoint fails at once. */
static void
make_child(struct urn_am_endpoint *ep, uint64_t token)
{
	struct urn_am_stats stats;
	pid_t pid = fork();
	bool ok;

	if (pid != 0) {
		forks.child[atomic_load(&forks.n)] = pid;
		atomic_fetch_add(&forks.n, 1);
		return;
	}
	ok = urn_am_reply(ep, token, 1, NULL, 0, NULL, 0) == EPERM &&
	     urn_am_region_destroy(ep, 1) == EPERM && urn_am_thread_stop(ep) == EPERM &&
	     urn_rma_flush(ep, -1, NULL) == EPERM && urn_am_progress(ep) == 0;
	urn_am_get_stats(ep, &stats);
	urn_am_endpoint_destroy(ep);
	if (!ok || !forks.returns)
		_exit(ok ? 0 : 1);
}

static void
fork_in_handler(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	make_child(ep, m->token);
}

static void
fork_in_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)code;
	(void)bytes;
	(void)arg;
	make_child(ep, 1);
}

static void
fork_in_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)f;
	(void)arg;
	make_child(ep, 1);
}

/* Every child has ended, well. */
static void
reap(unsigned int n)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	for (unsigned int i = 0; i < n; i++) {
		int status = -1;

		while (waitpid(forks.child[i], &status, WNOHANG) == 0) {
			if (urn_clock_ms() > end) {
				kill(forks.child[i], SIGKILL);
				fail_msg("child %u hangs", i);
			}
			usleep(1000);
		}
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

/* Wait until functions of b have made so many children. b is driven by its thread, or here: then a
 * child that comes back from a function is one too many. */
static void
until(struct net *n, unsigned int want)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct side *b = &n->side[1];
	pid_t self = getpid();

	while (atomic_load(&forks.n) < want) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(n->side[0].ep);
		if (b->ep->thread == NULL)
			(void)urn_am_progress(b->ep);
		if (getpid() != self)
			_exit(2);
		sched_yield();
	}
}

/* Fork in each function that the library calls for b: handlers, and those of an operation and of a
 * failure. */
static void
fork_everywhere(struct net *n, uint64_t key)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address nobody = b->address;
	struct urn_rma op = {.to = &b->address,
			     .remote = (uintptr_t)b->buf,
			     .key = key,
			     .memory = &b->memory,
			     .local = b->buf + 8,
			     .len = 8,
			     .done = fork_in_done};

	nobody.requests ^= 1ull << 40;
	atomic_store(&forks.n, 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(urn_am_request(a->ep, &b->address, FORK, NULL, 0, NULL, 0, NULL),
				 0);
		until(n, i + 1);
	}
	assert_int_equal(urn_rma_write(b->ep, &op), 0);
	until(n, 3);
	assert_int_equal(urn_am_request(b->ep, &nobody, 1, NULL, 0, NULL, 0, NULL), 0);
	until(n, FORKS);
	reap(FORKS);
	net_until_quiet(n, a);
}

/* The child does not hang, whether it ends inside the function or returns, and answers nobody: the
 * parent goes on. The function runs in the helper thread, or in that of the program. */
static void
test_fork(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct urn_am_stats stats;
	uint64_t key;

	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &key), 0);
	urn_am_handle(b->ep, FORK, fork_in_handler, NULL);
	urn_am_on_failure(b->ep, fork_in_failure, NULL);
	for (unsigned int i = 0; i < 4; i++) {
		forks.returns = i % 2 == 1;
		if (i < 2)
			assert_int_equal(urn_am_thread_start(b->ep), 0);
		fork_everywhere(n, key);
		if (i < 2)
			assert_int_equal(urn_am_thread_stop(b->ep), 0);
	}
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.stray_replies, 0);
}

/* ---- a child that the program makes outside of any function */

static void
count(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	_Atomic unsigned int *n = arg;

	(void)ep;
	(void)m;
	atomic_fetch_add(n, 1);
}

/* Try all that sends, handles or changes something. returns: each was refused, and changed nothing
 */
static bool
is_left_alone(struct side *s, const struct urn_am_address *to, const struct urn_am_prepared *p)
{
	struct urn_am_part part = {&s->memory, s->buf, MEM};
	struct urn_rma op = {.to = to, .memory = &s->memory, .local = s->buf, .len = 8};
	struct urn_rma_atomic word = {.to = to, .op = URN_AM_FETCH_ADD, .size = 8};
	struct urn_am_queue *q = urn_am_queue_create(0);
	struct urn_am_prepared other;
	uint64_t key;
	bool ok = urn_am_request(s->ep, to, COUNT, NULL, 0, NULL, 0, NULL) == EPERM &&
		  urn_am_request_prepare(s->ep, to, 8, &other) == EPERM &&
		  urn_am_request_commit(s->ep, p, COUNT, NULL, 0, 8, NULL) == EPERM &&
		  urn_am_request_cancel(s->ep, p) == EPERM && urn_am_progress(s->ep) == 0 &&
		  urn_am_pending(s->ep) == 0 && urn_rma_write(s->ep, &op) == EPERM &&
		  urn_rma_read(s->ep, &op) == EPERM && urn_rma_atomic(s->ep, &word) == EPERM &&
		  urn_rma_flush(s->ep, 0, NULL) == EPERM &&
		  urn_am_region_create(s->ep, &part, 1, URN_AM_ACCESS_ALL, &key) == EPERM &&
		  urn_am_memory_remove(s->ep, &s->memory) == EPERM &&
		  urn_am_thread_start(s->ep) == EPERM && urn_am_thread_stop(s->ep) == EPERM &&
		  urn_am_queue_add(q, s->ep) == EPERM;

	urn_am_endpoint_destroy(s->ep);
	return ok && urn_am_queue_destroy(q) == 0;
}

/* Make a child that tries everything. served: calls of the handler; the parent's thread goes on */
static void
make_trying_child(unsigned int i, struct side *s, const struct urn_am_address *to,
		  const struct urn_am_prepared *p, const _Atomic unsigned int *served)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		unsigned int before = atomic_load(served);
		bool ok = is_left_alone(s, to, p);

		_exit(ok && atomic_load(served) == before ? 0 : 1);
	}
	forks.child[i] = pid;
}

/* Requests wait in the ring, one is prepared, and the child takes none of them: the parent handles
 * each once, and is answered once. */
static void
test_child(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	_Atomic unsigned int served = 0;
	struct urn_am_prepared p;
	struct urn_am_stats stats;

	urn_am_handle(b->ep, COUNT, count, &served);
	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, 8, &p), 0);
	for (unsigned int i = 0; i + 1 < HELD; i++)
		assert_int_equal(urn_am_request(a->ep, &b->address, COUNT, NULL, 0, NULL, 0, NULL),
				 0);
	while (urn_msg_set_waiting(&b->ep->requests) + 1 < HELD)
		sched_yield();
	make_trying_child(0, b, &a->address, &p, &served);
	make_trying_child(1, a, &b->address, &p, &served);
	reap(2);
	assert_int_equal(atomic_load(&served), 0);
	assert_int_equal(urn_am_request_commit(a->ep, &p, COUNT, NULL, 0, 8, NULL), 0);
	net_until_quiet(n, a);
	assert_int_equal(atomic_load(&served), HELD);
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.stray_replies + stats.failed_requests, 0);
}

/* Children are made while the helper thread runs, wherever it stands and whoever has its lock. */
static void
test_child_beside_thread(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	const struct urn_am_prepared none = {.ticket = 0};
	_Atomic unsigned int served = 0;
	unsigned int sent = 0;
	struct urn_am_stats stats;

	urn_am_handle(b->ep, COUNT, count, &served);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	for (unsigned int i = 0; i < CHILDREN; i++) {
		while (urn_am_request(a->ep, &b->address, COUNT, NULL, 0, NULL, 0, NULL) == 0)
			sent++;
		make_trying_child(0, b, &a->address, &none, &served);
		reap(1);
		net_until_quiet(n, a);
	}
	assert_int_equal(urn_am_thread_stop(b->ep), 0);
	assert_int_equal(atomic_load(&served), sent);
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.stray_replies + stats.failed_requests, 0);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_fork),
		BOTH(test_child),
		BOTH(test_child_beside_thread),
	};

	net_attr.wakes = 1;
	net_attr.answer_ms = 30000;
	return cmocka_run_group_tests_name("am_fork", tests, NULL, NULL);
}
