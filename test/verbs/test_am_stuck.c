/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that does not return (AM-1): both sides can say which, and nobody waits for ever. */
#include "am_net.h"

#include "abi/clock.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

enum { STUCK = 6, ANSWERS = 3, ANSWER_MS = 300 };

static sem_t entered, go;

static int
setup(void **state)
{
	sem_init(&entered, 0, 0);
	sem_init(&go, 0, 0);
	return net_setup(state);
}

/* A handler that does not return until the test lets it. */
static void
hang(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	(void)arg;
	sem_post(&entered);
	sem_wait(&go);
}

static void
reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	assert_int_equal(urn_am_running(ep), ANSWERS);
	assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, NULL, 0), 0);
}

/* arg: a count */
static void
count_reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)m;
	assert_int_equal(urn_am_running(ep), 1);
	++*(unsigned int *)arg;
}

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep;
	*(struct urn_am_failure *)arg = *f;
}

static void
request(const struct side *a, const struct side *b, uint32_t handler, uint64_t *number)
{
	assert_int_equal(urn_am_request(a->ep, &b->address, handler, NULL, 0, "x", 1, number), 0);
}

/* The requester is told which of its requests has no answer; the target's calls that would wait for
 * the handler end with its number, and work once it has returned. */
static void
test_both_sides_know(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_failure failure = {0};
	uint64_t number = 0;

	urn_am_handle(b->ep, STUCK, hang, NULL);
	urn_am_on_failure(a->ep, note_failure, &failure);
	assert_int_equal(urn_am_thread_start(b->ep), 0);
	assert_int_equal(urn_am_running(b->ep), -1);
	request(a, b, STUCK, &number);
	sem_wait(&entered);
	assert_int_equal(urn_am_running(b->ep), STUCK);
	for (uint64_t end = urn_clock_ms() + WAIT_MS; urn_am_pending(a->ep) != 0;) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(a->ep);
		sched_yield();
	}
	assert_int_equal(failure.number, number);
	assert_int_equal(failure.err, ETIMEDOUT);
	assert_non_null(strstr(failure.text, "handler 6 has not returned"));

	assert_int_equal(urn_am_thread_stop(b->ep), EBUSY);
	assert_non_null(strstr(urn_attach_error(), "handler 6 has not returned for 300 ms"));
	urn_am_endpoint_destroy(b->ep); /* does nothing */
	assert_int_equal(urn_am_running(b->ep), STUCK);
	sem_post(&go);
	assert_int_equal(urn_am_thread_stop(b->ep), 0);
	assert_int_equal(urn_am_running(b->ep), -1);
}

/* Inside handlers of requests and of replies their own number is the answer; outside there is none.
 */
static void
test_each_handler(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	unsigned int replies = 0;

	urn_am_handle(a->ep, 1, count_reply, &replies);
	urn_am_handle(b->ep, ANSWERS, reply, NULL);
	request(a, b, ANSWERS, NULL);
	net_until(n, &replies, 1);
	assert_int_equal(urn_am_running(a->ep), -1);
	assert_int_equal(urn_am_running(b->ep), -1);
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
		BOTH(test_both_sides_know),
		BOTH(test_each_handler),
	};

	net_attr.wakes = 1;
	net_attr.answer_ms = ANSWER_MS;
	return cmocka_run_group_tests_name("am_stuck", tests, NULL, NULL);
}
