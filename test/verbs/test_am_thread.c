/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread of an endpoint (AM-1, AM-2): handlers run while the program does something
 * else, and any thread may call. */
#include "am_net.h"

#include "am/lock.h"

#include "abi/clock.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 300, NAP_MS = 100 /* lib/am/wake.c */ };

/* Counts by functions of the program, in whatever thread. */
static struct {
	_Atomic unsigned int requests, replies, failures, done;
	_Atomic int err;
	sem_t entered, go;
} seen;

static int
setup(void **state)
{
	memset(&seen, 0, sizeof(seen));
	sem_init(&seen.entered, 0, 0);
	sem_init(&seen.go, 0, 0);
	return net_setup(state);
}

static void
wait_for(const _Atomic unsigned int *n, unsigned int value)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (atomic_load(n) < value) {
		if (urn_clock_ms() > end)
			fail_msg("nothing came for a minute");
		usleep(200);
	}
}

static void
answer(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	atomic_fetch_add(&seen.requests, 1);
	if (urn_am_reply(ep, m->token, 1, m->arg, m->args, m->data, m->len) != 0)
		atomic_store(&seen.err, 1);
}

static void
count_reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	(void)arg;
	atomic_fetch_add(&seen.replies, 1);
}

static void
count_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep;
	(void)arg;
	if (f->err != EHOSTUNREACH)
		atomic_store(&seen.err, 1);
	atomic_fetch_add(&seen.failures, 1);
}

static void
count_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep;
	(void)bytes;
	(void)arg;
	if (code != URN_AM_DONE)
		atomic_store(&seen.err, 1);
	atomic_fetch_add(&seen.done, 1);
}

/* A request that is sent once there is room. */
static void
request(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t handler)
{
	int err;

	while ((err = urn_am_request(ep, to, handler, NULL, 0, "x", 1, NULL)) == EAGAIN)
		sched_yield();
	if (err != 0)
		atomic_store(&seen.err, err);
}

/* AM-1: requests are handled, and replies and ends of operations are told, while both programs do
 * nothing. */
static void
test_handlers_run(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];

	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 7, answer, NULL);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	for (unsigned int i = 0; i < 200; i++) {
		request(a->ep, &b->address, 7);
		if (i % 50 == 0)
			wait_for(&seen.replies, i + 1); /* the threads sleep meanwhile */
	}
	wait_for(&seen.replies, 200);
	assert_int_equal(atomic_load(&seen.requests), 200);
	assert_int_equal(atomic_load(&seen.err), 0);
	assert_int_equal(urn_am_pending(a->ep), 0);
}

/* A handler that calls the other endpoint of its program. */
static void
meddle(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	const struct side *other = arg;
	struct urn_am_stats stats;
	const int wants[] = {
		urn_am_request(other->ep, &other->address, 7, NULL, 0, NULL, 0, NULL) == EPERM,
		strstr(urn_attach_error(), "own endpoint") != NULL,
		urn_am_handle(other->ep, 8, NULL, NULL) == EPERM,
		urn_am_pending(other->ep) == 0,
		urn_am_progress(other->ep) == 0,
		urn_am_thread_stop(other->ep) == EDEADLK,
	};

	(void)m;
	urn_am_get_stats(other->ep, &stats);
	urn_am_endpoint_destroy(other->ep);
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		if (!wants[i])
			atomic_store(&seen.err, (int)i + 1);
	/* The handler may call its own endpoint. */
	if (urn_am_pending(ep) != 1)
		atomic_store(&seen.err, 100);
	atomic_fetch_add(&seen.requests, 1);
}

/* Wait for the handler of the other endpoint to run, too; then both call each other's. */
static void
meet_and_meddle(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	atomic_fetch_add(&seen.done, 1);
	wait_for(&seen.done, 2);
	meddle(ep, m, arg);
}

/* AM-1: a handler can't call another endpoint; two never wait for each other. */
static void
test_handlers_meet(void **state)
{
	struct net *n = *state;

	/* A handler that runs keeps other threads out: both requests are sent before it may. */
	for (int i = 0; i < 2; i++) {
		urn_am_handle(n->side[i].ep, 7, meet_and_meddle, &n->side[!i]);
		request(n->side[i].ep, &n->side[!i].address, 7);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(urn_am_thread_start(n->side[i].ep), 0);
	wait_for(&seen.requests, 2);
	assert_int_equal(atomic_load(&seen.err), 0);
	/* Outside a handler the calls work again. */
	assert_int_equal(urn_am_handle(n->side[0].ep, 8, NULL, NULL), 0);
	assert_int_equal(urn_am_thread_stop(n->side[0].ep), 0);
}

/* A thread of the program. */
struct caller {
	struct net *net;
	uint64_t key;
	pthread_t id;
};

static void *
call(void *arg)
{
	const struct caller *c = arg;
	struct side *a = &c->net->side[0], *b = &c->net->side[1];
	struct urn_rma_atomic op = {.to = &b->address,
				    .remote = (uintptr_t)b->buf,
				    .key = c->key,
				    .value = 1,
				    .op = URN_AM_FETCH_ADD,
				    .size = 8,
				    .done = count_done};

	for (unsigned int i = 0; i < EACH; i++) {
		int err;

		if (i % 8 == 0)
			request(a->ep, &b->address, 7);
		while ((err = urn_rma_atomic(a->ep, &op)) == EAGAIN)
			sched_yield();
		if (err != 0 || (i % 100 == 0 && urn_rma_flush(a->ep, WAIT_MS, NULL) != 0))
			atomic_store(&seen.err, 1);
	}
	return NULL;
}

/* Many threads of the program call on one endpoint: each operation and each request counts once. */
static void
test_any_thread_may_call(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, MEM};
	struct caller callers[THREADS];
	uint64_t key, word;

	memset(b->buf, 0, 8);
	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &key), 0);
	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 7, answer, NULL);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){.net = n, .key = key};
		assert_int_equal(pthread_create(&callers[i].id, NULL, call, &callers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(callers[i].id, NULL);
	wait_for(&seen.done, THREADS * EACH);
	wait_for(&seen.replies, THREADS * ((EACH + 7) / 8));
	memcpy(&word, b->buf, 8);
	assert_int_equal(word, THREADS * EACH);
	assert_int_equal(atomic_load(&seen.err), 0);
}

/* A handler that does not return until the test lets it. */
static void
hang(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	(void)arg;
	atomic_store(&seen.err, urn_am_thread_stop(ep) == EDEADLK ? 0 : 1);
	sem_post(&seen.entered);
	sem_wait(&seen.go);
}

/* Try to start or stop the thread, and to destroy the endpoint, inside a handler. arg: the thread
 * of the test, in which the tries are counted */
static void
end_inside(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	bool ok = ep->thread != NULL ? urn_am_thread_stop(ep) == EDEADLK
				     : urn_am_thread_start(ep) == EPERM;

	(void)m;
	urn_am_endpoint_destroy(ep);
	if (!ok || strstr(urn_attach_error(), "inside a handler") == NULL)
		atomic_store(&seen.err, 1);
	atomic_fetch_add(&seen.done, pthread_equal(*(const pthread_t *)arg, pthread_self()) != 0);
}

/* AM-1: a handler that would end its own endpoint, or the thread that waits for the handler, gets
 * an error, in whichever thread the handler runs. */
static void
test_ends_inside_a_handler(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t end = urn_clock_ms() + WAIT_MS;
	pthread_t self = pthread_self();

	urn_am_handle(b->ep, 6, end_inside, &self);
	for (unsigned int i = 1; i <= 2; i++) {
		while (atomic_load(&seen.done) < i) { /* the other thread may be quicker */
			assert_true(urn_clock_ms() < end);
			if (urn_am_pending(a->ep) == 0)
				request(a->ep, &b->address, 6);
			(void)urn_am_progress(a->ep);
			(void)urn_am_progress(b->ep);
		}
		net_until_quiet(n, a);
		if (i == 1)
			assert_int_equal(urn_am_thread_start(b->ep), 0);
	}
	assert_int_equal(atomic_load(&seen.err), 0);
	assert_int_equal(urn_am_thread_stop(b->ep), 0);
}

static void *
ask(void *arg)
{
	struct side *s = arg;

	(void)urn_am_pending(s->ep); /* waits for the handler */
	atomic_fetch_add(&seen.done, 1);
	return NULL;
}

/* A handler that does not return holds up its own endpoint, and no other of the same program. */
static void
test_a_handler_that_hangs(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_endpoint *other = urn_am_endpoint_create(b->dev, &net_attr);
	struct urn_am_address to;
	pthread_t thread;

	assert_non_null(other);
	assert_int_equal(urn_am_address(other, 1, &to), 0);
	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 6, hang, NULL);
	urn_am_handle(other, 7, answer, NULL);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	assert_int_equal(urn_am_thread_start(other), 0);
	request(a->ep, &b->address, 6);
	sem_wait(&seen.entered);
	for (unsigned int i = 0; i < 50; i++)
		request(a->ep, &to, 7);
	wait_for(&seen.replies, 50);
	assert_int_equal(pthread_create(&thread, NULL, ask, b), 0);
	usleep(50000);
	assert_int_equal(atomic_load(&seen.done), 0);
	sem_post(&seen.go);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&seen.done), 1);
	while (urn_am_pending(a->ep))
		usleep(1000);
	assert_int_equal(atomic_load(&seen.err), 0);
	urn_am_endpoint_destroy(other);
}

/* Nothing but the thread looks: a request that can't be delivered fails all the same, and the
 * thread sleeps when there is nothing to do. */
static void
test_the_thread_looks_and_sleeps(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address nobody = b->address;
	struct timespec before, after;
	clockid_t clock;

	urn_am_on_failure(a->ep, count_failure, NULL);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	usleep(50000); /* asleep */
	nobody.requests ^= 1ull << 40;
	request(a->ep, &nobody, 7);
	wait_for(&seen.failures, 1);
	assert_int_equal(atomic_load(&seen.err), 0);
	usleep(50000);
	assert_int_equal(pthread_getcpuclockid(a->ep->thread->id, &clock), 0);
	clock_gettime(clock, &before);
	usleep(300000);
	clock_gettime(clock, &after);
	assert_true(after.tv_sec - before.tv_sec < 1 &&
		    (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec <
			    100000000);
}

/*
 * The thread dozes for 100 ms while a request has no answer. A request that is sent meanwhile wakes
 * it, as only the thread looks whether it was delivered: its failure is told before the nap would
 * end.
 */
static void
test_a_nap_is_cut_short(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address nobody = b->address;
	uint64_t start, took = UINT64_MAX, give_up = urn_clock_ms() + WAIT_MS;
	unsigned int told = 0;

	nobody.requests ^= 1ull << 40;
	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 7, answer, NULL);
	urn_am_on_failure(a->ep, count_failure, NULL);
	/* A busy machine can make a try as long as a nap; without a wake-up each try is longer. */
	while (took >= NAP_MS && urn_clock_ms() < give_up) {
		start = urn_clock_ms();
		assert_int_equal(urn_am_thread_start(a->ep), 0);
		request(a->ep, &b->address, 7); /* nobody runs its handler yet */
		usleep(20000);			/* it was delivered, and the thread sleeps */
		request(a->ep, &nobody, 7);
		wait_for(&seen.failures, ++told);
		took = urn_clock_ms() - start;
		while (urn_am_pending(a->ep) != 0)
			(void)urn_am_progress(b->ep);
		assert_int_equal(urn_am_thread_stop(a->ep), 0);
	}
	assert_true(took < NAP_MS);
	assert_int_equal(atomic_load(&seen.err), 0);
}

/* Start and stop: once each, only with descriptors; afterwards the program drives the progress
 * again. */
static void
test_start_and_stop(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_attr plain = {.queue = 1};
	struct urn_am_endpoint *other = urn_am_endpoint_create(a->dev, &plain);

	assert_non_null(other);
	assert_int_equal(urn_am_thread_start(other), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "wakes"));
	urn_am_endpoint_destroy(other);
	assert_int_equal(urn_am_thread_stop(a->ep), EINVAL);
	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 7, answer, NULL);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(urn_am_thread_start(b->ep), 0);
		assert_int_equal(urn_am_thread_start(b->ep), EALREADY);
		request(a->ep, &b->address, 7);
		while (atomic_load(&seen.replies) < 2 * i + 1)
			(void)urn_am_progress(a->ep);
		assert_int_equal(urn_am_thread_stop(b->ep), 0);
		request(a->ep, &b->address, 7);
		usleep(2000);
		assert_int_equal(atomic_load(&seen.requests), 2 * i + 1);
		while (atomic_load(&seen.replies) < 2 * i + 2) {
			(void)urn_am_progress(a->ep);
			(void)urn_am_progress(b->ep);
		}
	}
}

/* A write of 8 bytes from one side to the other, which makes the region for it, and ends with an
 * event. */
static struct urn_rma
write_with_event(struct side *from, struct side *to)
{
	struct urn_am_part part = {&to->memory, to->buf, MEM};
	struct urn_rma op = {.to = &to->address,
			     .remote = (uintptr_t)to->buf,
			     .memory = &from->memory,
			     .local = from->buf,
			     .len = 8,
			     .flags = URN_RMA_EVENT};

	assert_int_equal(urn_am_region_create(to->ep, &part, 1, URN_AM_ACCESS_ALL, &op.key), 0);
	return op;
}

/* A queue of events takes those of an endpoint with a thread: the thread wakes its reader. */
static void
test_queue_of_a_thread(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_queue *q = urn_am_queue_create(0);
	struct urn_rma op = write_with_event(a, b);
	struct urn_am_event e[4];

	assert_non_null(q);
	assert_int_equal(urn_am_queue_add(q, a->ep), 0);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	for (unsigned int i = 0; i < 50; i++) {
		assert_int_equal(urn_rma_write(a->ep, &op), 0);
		assert_int_equal(urn_am_queue_wait(q, e, 4, WAIT_MS), 1);
		assert_true(e[0].ep == a->ep && e[0].code == URN_AM_DONE);
	}
	assert_int_equal(urn_am_thread_stop(a->ep), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	assert_int_equal(urn_am_queue_wait(q, e, 4, WAIT_MS), 1);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* In a child of fork(), calls on a queue of events of the parent fail. returns: true when they do
 */
static bool
is_queue_shut(struct urn_am_queue *q, struct urn_am_endpoint *ep)
{
	struct urn_am_event e;
	bool ok;

	errno = 0;
	ok = urn_am_queue_poll(q, &e, 1) == 0 && errno == EPERM;
	errno = 0;
	ok = ok && urn_am_queue_wait(q, &e, 1, WAIT_MS) == 0 && errno == EPERM;
	errno = 0;
	ok = ok && urn_am_queue_arm(q) == -1 && errno == EPERM;
	ok = ok && urn_am_queue_add(q, ep) == EPERM;
	return ok && urn_am_queue_remove(q, ep) == EPERM && urn_am_queue_destroy(q) == EPERM &&
	       strstr(urn_attach_error(), "parent") != NULL;
}

/* A queue of events belongs to the process that made it: a child of fork() takes no event, drains
 * no descriptor, and drives no endpoint. The endpoint in the queue has no thread. */
static void
test_fork_and_queue(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_queue *q = urn_am_queue_create(0);
	struct urn_rma op = write_with_event(a, b);
	struct urn_am_event e[4];
	int status;
	pid_t child;

	assert_non_null(q);
	assert_int_equal(urn_am_queue_add(q, a->ep), 0);
	assert_int_equal(urn_rma_write(a->ep, &op), 0);
	child = fork();
	if (child == 0)
		_exit(is_queue_shut(q, a->ep) ? 0 : 1);
	assert_true(child > 0);
	assert_true(waitpid(child, &status, 0) == child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(urn_am_queue_wait(q, e, 4, WAIT_MS), 1);
	assert_true(e[0].ep == a->ep && e[0].code == URN_AM_DONE);
	assert_int_equal(urn_am_queue_remove(q, a->ep), 0);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* True when a child of fork() can change no memory of its parent's endpoint. */
static bool
is_memory_shut(struct side *s)
{
	struct urn_am_part part = {&s->memory, s->buf, MEM};
	struct urn_am_memory more;
	uint64_t key;

	return urn_am_region_create(s->ep, &part, 1, URN_AM_ACCESS_ALL, &key) == EPERM &&
	       urn_am_region_destroy(s->ep, 1) == EPERM &&
	       urn_am_memory_add(s->ep, s->buf, MEM, &more) == EPERM &&
	       urn_am_memory_remove(s->ep, &s->memory) == EPERM;
}

/* In a child of fork() the endpoint is the parent's: calls fail, the end of the child harms nobody.
 */
static void
test_fork(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	int status;
	pid_t child;

	urn_am_handle(a->ep, 1, count_reply, NULL);
	urn_am_handle(b->ep, 7, answer, NULL);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	for (unsigned int i = 0; i < 8; i++) {
		request(a->ep, &b->address, 7);
		child = fork();
		if (child == 0) {
			struct urn_rma op = {
				.to = &b->address, .memory = &a->memory, .local = a->buf, .len = 1};
			bool ok = urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL) ==
					  EPERM &&
				  urn_rma_write(a->ep, &op) == EPERM &&
				  urn_rma_flush(a->ep, -1, NULL) == EPERM &&
				  urn_am_progress(a->ep) == 0 &&
				  urn_am_thread_stop(a->ep) == EPERM && is_memory_shut(a);

			urn_am_endpoint_destroy(a->ep);
			_exit(ok ? 0 : 1);
		}
		assert_true(child > 0);
		assert_true(waitpid(child, &status, 0) == child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	request(a->ep, &b->address, 7);
	wait_for(&seen.replies, 9);
	assert_int_equal(atomic_load(&seen.err), 0);
}

int
main(void)
{
#define OVER(f, way)                                     \
	{                                                \
#f " " #way, f, setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_handlers_run),	 BOTH(test_any_thread_may_call),
		BOTH(test_a_handler_that_hangs), BOTH(test_the_thread_looks_and_sleeps),
		BOTH(test_a_nap_is_cut_short),	 BOTH(test_start_and_stop),
		BOTH(test_queue_of_a_thread),	 BOTH(test_fork),
		BOTH(test_fork_and_queue),	 BOTH(test_ends_inside_a_handler),
		BOTH(test_handlers_meet),
	};

	net_attr.wakes = 1;
	/* Requests of many threads may wait for an answer while the machine is busy. */
	net_attr.answer_ms = 30000;
	return cmocka_run_group_tests_name("am_thread", tests, NULL, NULL);
}
