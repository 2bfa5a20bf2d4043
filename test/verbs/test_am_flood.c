/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with many full queues of answers floods a target: the ring of requests, one for all, is
 * not held by it, and the other programs of its node have every request answered (AM-1).
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <string.h>

enum {
	ENTRIES = 64, /* entries of the ring of requests */
	QUEUES =
		60, /* the hostile program's full queues: more than its node may park answers for */
	SENDERS = 80, /* its register sets that send: more than the ring has entries */
	POLITE = 3,
	TRIPS = 300,
	LONG_AGO = 5, /* ns */
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

static struct urn_am_endpoint *
open_endpoint(const struct net *n, unsigned int node)
{
	struct urn_am_attr attr = {
		.payload = 64, .queue = ENTRIES, .requests = 64, .answer_ms = WAIT_MS};
	struct urn_am_endpoint *ep = urn_am_endpoint_create(n->side[node].dev, &attr);

	assert_non_null(ep);
	return ep;
}

/* ---- a flood */

/* A server on node b; a hostile program on node a; polite ones on a, on b, and one more on a. */
struct flood {
	struct urn_am_endpoint *server, *polite[POLITE];
	struct urn_am_address address;
	uint8_t node[16]; /* node of the hostile program */
	struct net_rude rude[SENDERS];
	struct urn_register_set *full[QUEUES]; /* queues of one entry, which nobody reads */
	unsigned int next, served, failures;
	bool on;     /* the hostile program asks */
	bool learnt; /* each full queue has refused an answer just now */
};

static void
make_polite(struct flood *f, const struct net *n, unsigned int i)
{
	f->polite[i] = open_endpoint(n, i % 2);
	urn_am_on_failure(f->polite[i], note_failure, &f->failures);
}

static void
flood_open(struct flood *f, const struct net *n)
{
	struct urn_msg_attr full = {.recv_size = 4096, .entries = 1}, send = {.send_size = 64};

	memset(f, 0, sizeof(*f));
	f->server = open_endpoint(n, 1);
	assert_int_equal(urn_am_address(f->server, 1, &f->address), 0);
	urn_am_handle(f->server, 7, count, &f->served);
	memcpy(f->node, n->side[0].address.node, sizeof(f->node));
	for (unsigned int i = 0; i < QUEUES; i++) {
		f->full[i] = urn_msg_set_create(n->side[0].dev, &full);
		assert_non_null(f->full[i]);
	}
	for (unsigned int i = 0; i < SENDERS; i++) {
		f->rude[i].set = urn_msg_set_create(n->side[0].dev, &send);
		assert_non_null(f->rude[i].set);
	}
	for (unsigned int i = 0; i + 1 < POLITE; i++)
		make_polite(f, n, i);
}

static void
flood_close(struct flood *f)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		urn_msg_set_destroy(f->full[i]);
	for (unsigned int i = 0; i < SENDERS; i++)
		urn_msg_set_destroy(f->rude[i].set);
	for (unsigned int i = 0; i < POLITE; i++)
		urn_am_endpoint_destroy(f->polite[i]);
	urn_am_endpoint_destroy(f->server);
}

/* Full queues that the server remembers: their requests never wait in the ring. */
static unsigned int
refusers(const struct flood *f)
{
	struct urn_am_outbox *box = &f->server->back;
	unsigned int n = 0;

	for (unsigned int i = 0; i < QUEUES; i++) {
		uint64_t qid = urn_msg_set_qid(f->full[i]);
		struct urn_am_peer *p = urn_am_peer_get(box, f->node, qid);
		enum urn_am_repute repute;

		assert_non_null(p);
		f->server->now = 0;
		repute = urn_am_repute(box, p, urn_am_now(f->server));
		urn_am_peer_put(box, p);
		if (repute != URN_AM_REFUSER)
			continue;
		n++;
		assert_int_not_equal(urn_am_room(f->server, f->node, qid, &p), URN_AM_WAIT);
		urn_am_peer_put(box, p);
	}
	return n;
}

/* Let the server know that each queue is full, as it finds out itself every 10 s: however slow this
 * machine is, no queue is a stranger. */
static void
learn(const struct flood *f)
{
	struct urn_am_outbox *box = &f->server->back;

	for (unsigned int i = 0; i < QUEUES; i++) {
		struct urn_am_peer *p = urn_am_peer_get(box, f->node, urn_msg_set_qid(f->full[i]));

		assert_non_null(p);
		urn_am_remember(box, p, true, urn_clock_ns());
		urn_am_peer_put(box, p);
	}
}

/* Everybody looks once; the hostile program asks by all of its sets. */
static void
step(struct flood *f)
{
	if (f->learnt)
		learn(f);
	for (unsigned int i = 0; f->on && i < SENDERS; i++)
		net_ask_rudely(&f->rude[i], &f->address,
			       urn_msg_set_qid(f->full[f->next++ % QUEUES]));
	(void)urn_am_progress(f->server);
	for (unsigned int i = 0; i < POLITE; i++)
		if (f->polite[i])
			(void)urn_am_progress(f->polite[i]);
	sched_yield();
}

/* A polite program asks, and waits for its answer. */
static void
trip(struct flood *f, struct urn_am_endpoint *ep)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	assert_int_equal(urn_am_request(ep, &f->address, 7, NULL, 0, NULL, 0, NULL), 0);
	while (urn_am_pending(ep) != 0) {
		assert_true(urn_clock_ms() < end);
		step(f);
	}
	assert_int_equal(f->failures, 0);
}

/* The flood fills no more than its node's part, and every request of the others is answered: of
 * those who were there before, and of one that comes in its midst. */
static void
test_flood(void **state)
{
	const struct net *n = *state;
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats;
	struct flood f;

	flood_open(&f, n);
	for (unsigned int i = 0; i + 1 < POLITE; i++)
		trip(&f, f.polite[i]);
	f.on = true;
	do {
		assert_true(urn_clock_ms() < end);
		step(&f);
		urn_am_get_stats(f.server, &stats);
	} while (refusers(&f) < QUEUES / 2 || stats.dropped_requests == 0);
	f.learnt = true;
	make_polite(&f, n, POLITE - 1);
	for (unsigned int i = 0; i < TRIPS; i++)
		trip(&f, f.polite[i % POLITE]);
	assert_int_equal(refusers(&f), QUEUES);
	flood_close(&f);
}

/* ---- strangers */

/* Let requests wait at an endpoint. */
static void
until_waiting(const struct urn_am_endpoint *ep, uint32_t n)
{
	for (uint64_t end = urn_clock_ms() + WAIT_MS; urn_msg_set_waiting(&ep->requests) < n;
	     sched_yield())
		assert_true(urn_clock_ms() < end);
}

/* Take all room for answers to a node, or give it back. */
static void
block(struct urn_am_outbox *box, struct urn_am_peer *node, bool on)
{
	uint32_t sign = on ? 1 : UINT32_MAX;

	node->lanes[0] += sign * URN_AM_BACK_MOST;
	node->since = urn_clock_ns() + (on ? UINT64_C(60000000000) : 0); /* not silent meanwhile */
	box->bytes = on ? box->bytes + box->room : box->bytes - box->room;
}

/* Let an endpoint look so often, and expect its dropped and its waiting requests. */
static void
look(struct urn_am_endpoint *ep, unsigned int times, uint64_t dropped, uint32_t waits)
{
	struct urn_am_stats stats;

	while (times--)
		(void)urn_am_progress(ep);
	urn_am_get_stats(ep, &stats);
	assert_int_equal(stats.dropped_requests, dropped);
	assert_int_equal(ep->waits, waits);
}

/* Strangers have half of what a call looks at while queues of their node are full; the oldest
 * beyond that are dropped. A queue that took its last answer is no stranger; and without full
 * queues nobody's requests are dropped. */
static void
test_strangers(void **state)
{
	const struct net *n = *state;
	struct urn_am_endpoint *server = open_endpoint(n, 1), *polite = open_endpoint(n, 0);
	struct urn_am_outbox *box = &server->back;
	struct urn_am_address to;
	struct urn_msg_attr send = {.send_size = 64};
	struct net_rude rude = {.set = urn_msg_set_create(n->side[0].dev, &send)};
	unsigned int served = 0;
	struct urn_am_peer *node = net_node_of(box, n->side[0].address.node);

	assert_non_null(rude.set);
	assert_int_equal(urn_am_address(server, 1, &to), 0);
	urn_am_handle(server, 7, count, &served);
	for (unsigned int i = 0; i < 2; i++) { /* the second one waits while the node has no room */
		assert_int_equal(urn_am_request(polite, &to, 7, NULL, 0, NULL, 0, NULL), 0);
		until_waiting(server, 1);
		if (i == 1)
			break;
		while (urn_am_pending(polite) != 0 || box->busy != 0) {
			(void)urn_am_progress(server);
			(void)urn_am_progress(polite);
		}
	}
	block(box, node, true);
	for (uint32_t i = 1; i < ENTRIES; i++) {
		while (urn_msg_set_status(rude.set) == URN_MSG_PENDING)
			sched_yield();
		net_ask_rudely(&rude, &to, 1000 + i);
		until_waiting(server, i + 1);
	}
	look(server, 3, 0, ENTRIES);
	node->full_at = node->since;
	look(server, 1, ENTRIES / 2, ENTRIES / 2);
	look(server, 2, ENTRIES / 2, ENTRIES / 2);
	block(box, node, false);
	node->full_at = 0;
	while (urn_am_pending(polite) != 0) {
		(void)urn_am_progress(server);
		(void)urn_am_progress(polite);
	}
	assert_true(served >= 2);
	node->users--;
	urn_am_peer_put(box, node);
	urn_msg_set_destroy(rude.set);
	urn_am_endpoint_destroy(polite);
	urn_am_endpoint_destroy(server);
}

/* ---- signs of life */

/* Let the answer to a request of side 0 end at side 1, as if it had another code. */
static void
end_with(struct net *n, struct urn_am_peer *node, uint8_t code)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_outbox *box = &b->ep->back;
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_lane *l;

	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	until_waiting(b->ep, 1);
	(void)urn_am_progress(b->ep);
	assert_int_equal(box->busy, 1);
	l = &box->lane[box->under_way[box->head % URN_AM_LANES_MAX]];
	while (urn_msg_set_answer(&l->set, l->seq) == URN_MSG_PENDING) {
		assert_true(urn_clock_ms() < end);
		sched_yield();
	}
	node->since = LONG_AGO;
	atomic_store(&l->set.regs->sstat.answer, URN_MSG_ANSWER(l->seq, code));
	assert_int_equal(urn_msg_set_answer(&l->set, l->seq), code);
	(void)urn_am_progress(b->ep);
}

/* The verdict on a further request of side 0 when there is no room. */
static enum urn_am_verdict
verdict(struct net *n)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_outbox *box = &b->ep->back;
	enum urn_am_verdict v;
	struct urn_am_peer *p;

	box->bytes += box->room;
	b->ep->now = 0;
	v = urn_am_room(b->ep, a->address.node, a->ep->replies.qid, &p);
	box->bytes -= box->room;
	if (v != URN_AM_WAIT)
		urn_am_peer_put(box, p);
	return v;
}

/* An answer that ends as BUSY says nothing about its node, which is as silent as before; one that
 * is taken, or whose queue is full, does. */
static void
test_signs_of_life(void **state)
{
	struct net *n = *state;
	struct urn_am_outbox *box = &n->side[1].ep->back;
	struct urn_am_peer *node = net_node_of(box, n->side[0].address.node);
	unsigned int served = 0;

	urn_am_handle(n->side[1].ep, 7, count, &served);
	end_with(n, node, URN_MSG_BUSY);
	assert_int_equal(node->since, LONG_AGO);
	assert_int_equal(box->parked, 1);
	assert_int_equal(node->lanes[0] + node->lanes[1], 0); /* it pauses */
	assert_int_equal(verdict(n), URN_AM_DROP);
	net_until_quiet(n, &n->side[0]);
	net_until(n, &served, 1);
	while (box->parked != 0 || box->busy != 0) /* the answer is tried again, and taken */
		(void)urn_am_progress(n->side[1].ep);
	assert_true(node->since > LONG_AGO);
	assert_int_equal(node->trouble, 0);
	assert_int_equal(node->full_at, 0);
	end_with(n, node, URN_MSG_QUEUE_FULL);
	assert_true(node->since > LONG_AGO);
	assert_int_equal(node->full_at, node->since);
	node->users--;
	net_until_quiet(n, &n->side[0]);
}

/* A lane is not tried again and again for a full queue when its node has had one just now. */
static void
test_one_try(void **state)
{
	struct net *n = *state;
	struct urn_am_endpoint *ep = n->side[1].ep;
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = urn_am_peer_get(box, n->side[0].address.node, 77);

	p->users++;
	ep->asker_peer = p;
	ep->asker.retry_kinds = URN_AM_RETRY_KINDS;
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_am_place place;

		p->above->full_at = i ? urn_clock_coarse_ns() + UINT64_C(60000000000) : 0;
		place = urn_am_find_place(ep, 64);
		assert_non_null(place.lane);
		assert_int_equal(place.m->to.retry_kinds,
				 i ? URN_AM_RETRY_KINDS & ~URN_MSG_RETRY_QUEUE_FULL
				   : URN_AM_RETRY_KINDS);
		urn_am_lane_give(box, place.lane);
	}
	urn_am_peer_leave(box, p);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, net_setup, net_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_flood),
		TEST(test_strangers),
		TEST(test_signs_of_life),
		TEST(test_one_try),
	};

	return cmocka_run_group_tests_name("am_flood", tests, NULL, NULL);
}
