/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that takes no answers does not stop a target's answers to the other programs of its
 * node, nor to those of other nodes, with however many queues (AM-1).
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <string.h>

enum {
	TRIPS = 300,
	QUEUES = 60, /* the rude program's: more than parked answers of its node, and its lanes */
};

static void
count(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	++*(unsigned int *)arg;
}

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep;
	(void)f;
	++*(unsigned int *)arg;
}

/* A server on node b, a rude program on node a, and a polite one on each node. */
struct town {
	struct urn_am_endpoint *server;
	struct urn_am_address address;
	struct net_rude rude;
	struct urn_register_set *full[QUEUES]; /* queues of one entry, which nobody reads */
	unsigned int queues, next;
	struct urn_am_endpoint *polite[2];
	unsigned int served, failures;
};

static void
town_open(struct town *t, const struct net *n, unsigned int queues)
{
	struct urn_am_attr attr = {
		.payload = 64, .queue = 64, .requests = 64, .answer_ms = WAIT_MS};
	struct urn_msg_attr full = {.recv_size = 4096, .entries = 1}, send = {.send_size = 64};

	memset(t, 0, sizeof(*t));
	t->server = urn_am_endpoint_create(n->side[1].dev, &attr);
	assert_non_null(t->server);
	assert_int_equal(urn_am_address(t->server, 1, &t->address), 0);
	urn_am_handle(t->server, 7, count, &t->served);
	t->rude.set = urn_msg_set_create(n->side[0].dev, &send);
	assert_non_null(t->rude.set);
	t->queues = queues;
	for (unsigned int i = 0; i < queues; i++) {
		t->full[i] = urn_msg_set_create(n->side[0].dev, &full);
		assert_non_null(t->full[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		t->polite[i] = urn_am_endpoint_create(n->side[i].dev, &attr);
		assert_non_null(t->polite[i]);
		urn_am_on_failure(t->polite[i], note_failure, &t->failures);
	}
}

static void
town_close(struct town *t)
{
	for (unsigned int i = 0; i < t->queues; i++)
		urn_msg_set_destroy(t->full[i]);
	urn_msg_set_destroy(t->rude.set);
	urn_am_endpoint_destroy(t->polite[0]);
	urn_am_endpoint_destroy(t->polite[1]);
	urn_am_endpoint_destroy(t->server);
}

/* Peers of the server's answers, nodes among them. */
static unsigned int
records(const struct town *t)
{
	const struct urn_am_outbox *box = &t->server->back;
	unsigned int n = box->peers;

	for (uint32_t i = box->free; i != URN_AM_NO_PEER; i = box->peer[i].next)
		n--;
	return n;
}

/* The server holds answers for nobody's queue longer than that queue is at fault for, and its
 * memory for a node has a bound. */
static void
check(const struct town *t)
{
	const struct urn_am_outbox *box = &t->server->back;
	struct urn_am_stats stats;

	for (uint32_t i = 0; i < box->peers; i++) {
		const struct urn_am_peer *p = &box->peer[i];

		for (unsigned int k = 0; k < 2; k++)
			if (p->users != 0 && p->qid == t->polite[k]->replies.qid)
				assert_true(p->trouble == 0 && p->pause_us == 0);
	}
	/* Half of the room, and what the lanes of the node and of the other node hold beyond it. */
	assert_true(box->bytes <= box->room / 2 + 2ull * URN_AM_BACK_MOST * URN_AM_SHARED_BYTES);
	/* A queue for each message, and two nodes. */
	assert_true(records(t) <= box->parked + URN_AM_BACK_LANES - box->idle_n[0] + 2);
	urn_am_get_stats(t->polite[0], &stats);
	assert_int_equal(stats.failed_requests, 0);
}

/* Everybody looks once; the rude program asks, for the next of its queues. */
static void
step(struct town *t)
{
	net_ask_rudely(&t->rude, &t->address, urn_msg_set_qid(t->full[t->next++ % t->queues]));
	(void)urn_am_progress(t->server);
	(void)urn_am_progress(t->polite[0]);
	(void)urn_am_progress(t->polite[1]);
	check(t);
	sched_yield();
}

/* A polite program asks, and waits for its answer. */
static void
trip(struct town *t, struct urn_am_endpoint *ep)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	assert_int_equal(urn_am_request(ep, &t->address, 7, NULL, 0, NULL, 0, NULL), 0);
	while (urn_am_pending(ep) != 0) {
		assert_true(urn_clock_ms() < end);
		step(t);
	}
	assert_int_equal(t->failures, 0);
}

/* The server gives up all answers that nobody takes, and forgets whom they were for. */
static void
until_forgotten(struct town *t)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (records(t) != 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(t->server);
		sched_yield();
	}
	assert_int_equal(t->server->back.bytes, 0);
	assert_int_equal(t->server->back.idle_n[0], URN_AM_BACK_LANES);
}

/* One queue that takes no answers: its requests are dropped, and those of another program of its
 * node are answered, each. */
static void
test_other_programs_go_on(void **state)
{
	struct urn_am_stats stats = {0};
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct town t;

	town_open(&t, *state, 1);
	while (stats.dropped_requests == 0) {
		assert_true(urn_clock_ms() < end);
		step(&t);
		urn_am_get_stats(t.server, &stats);
	}
	for (unsigned int i = 0; i < TRIPS; i++)
		trip(&t, t.polite[0]);
	for (unsigned int i = 0; i < TRIPS; i++)
		trip(&t, t.polite[1]);
	until_forgotten(&t);
	town_close(&t);
}

/* A program that names ever other queues, all full, has no more than the part of its node. Programs
 * whose queues took an answer before are answered meanwhile. */
static void
test_many_queues(void **state)
{
	const struct urn_am_outbox *box;
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats = {0};
	struct town t;

	town_open(&t, *state, QUEUES);
	box = &t.server->back;
	for (unsigned int i = 0; i < 2; i++)
		trip(&t, t.polite[i]);
	while (stats.lost_replies == 0) { /* a lane's answer that there was no room to park */
		assert_true(urn_clock_ms() < end);
		step(&t);
		urn_am_get_stats(t.server, &stats);
	}
	assert_true(box->parked > 0);
	for (unsigned int i = 0; i < TRIPS; i++)
		trip(&t, t.polite[i % 2]);
	until_forgotten(&t);
	town_close(&t);
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
		BOTH(test_other_programs_go_on),
		OVER(test_many_queues, NULL),
	};

	return cmocka_run_group_tests_name("am_rude", tests, NULL, NULL);
}
