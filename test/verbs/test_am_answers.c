/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers (AM-1): each finds a place, is given up only when its requester's node refuses answers or
 * is silent, and does not wait for slow handlers. A sleeper wakes for those that are parked.
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

enum { LONG = 1 << 20, NODES = 12, MS = 1000000 };

/* An endpoint whose answers a test makes by hand, and its peers. */
struct bench {
	struct urn_am_endpoint *ep;
	struct urn_am_outbox *box;
	uint8_t node[16];
};

static void
bench_open(struct bench *b, const struct net *n, uint32_t payload)
{
	struct urn_am_attr attr = {.payload = payload, .queue = 4, .requests = 4};

	memset(b, 0, sizeof(*b));
	b->ep = urn_am_endpoint_create(n->side[1].dev, &attr);
	assert_non_null(b->ep);
	b->box = &b->ep->back;
	b->node[0] = 0x20;
}

/* A peer that stays. */
static struct urn_am_peer *
peer(struct bench *b, unsigned int number)
{
	struct urn_am_peer *p;

	b->node[15] = (uint8_t)number;
	p = urn_am_peer_get(b->box, b->node, 0);
	assert_non_null(p);
	p->users++;
	return p;
}

/* Park as many answers of so many bytes as a peer may. returns: their number */
static unsigned int
park_all(struct bench *b, struct urn_am_peer *p, uint32_t size)
{
	struct urn_am_letter m = {.answers = 1};
	unsigned int n = 0;

	for (; urn_am_may_park(b->box, p, size); n++) {
		struct urn_am_parked *k = urn_am_park(b->box, p, &m, size);

		assert_non_null(k);
		k->m.len = size;
	}
	return n;
}

/* Lanes count beyond the room, and parked answers do not go on from there. */
static void
test_room(void **state)
{
	struct urn_am_lane *lane[2];
	struct urn_am_peer *p, *last;
	struct bench b;

	bench_open(&b, *state, LONG);
	p = peer(&b, 0);
	assert_true(park_all(&b, p, b.box->size) > 0);
	for (unsigned int i = 1; i < NODES; i++)
		(void)park_all(&b, peer(&b, i), b.box->size);
	last = peer(&b, NODES);
	for (unsigned int i = 0; i < 2; i++)
		lane[i] = urn_am_lane_take(b.box, last, b.box->size);
	assert_true(b.box->bytes > b.box->room);
	assert_int_equal(park_all(&b, p, b.box->size), 0);
	for (unsigned int i = 0; i < 2; i++)
		urn_am_lane_give(b.box, lane[i]);
	urn_am_endpoint_destroy(b.ep);
}

/* ---- lanes */

/* Take the lanes for messages of so many bytes that a peer may have. returns: their number */
static unsigned int
take_all(struct urn_am_outbox *box, const uint8_t node[16], uint32_t size)
{
	struct urn_am_peer *p = urn_am_peer_get(box, node, 0);
	unsigned int n = 0;

	assert_non_null(p);
	for (; urn_am_has_lane(box, p, size); n++)
		(void)urn_am_lane_take(box, p, size);
	return n;
}

/* Take the lanes of a class that each of several peers may have, and give them back. lanes: as
 * expected, 0 at the end */
static void
take_shares(struct urn_am_outbox *box, struct bench *b, uint32_t size, const unsigned int *lanes)
{
	bool large = size > box->short_size;

	for (unsigned int i = 0; i == 0 || lanes[i - 1] != 0; i++) {
		b->node[15] = (uint8_t)i;
		assert_int_equal(take_all(box, b->node, size), lanes[i]);
	}
	for (unsigned int i = 0; i < box->lanes; i++)
		if (box->lane[i].large == large)
			urn_am_lane_give(box, &box->lane[i]);
	assert_int_equal(box->bytes, 0);
}

/* Peers that take nothing leave a quarter of the lanes to the next one, each time, and half of the
 * long ones. */
static void
test_shares(void **state)
{
	static const unsigned int out[] = {48, 12, 3, 1, 0}, back[] = {4, 4, 4, 4, 4, 3, 1, 0};
	static const unsigned int longs[] = {2, 1, 1, 0}, shorts[] = {45, 12, 3, 0};
	struct bench b;

	bench_open(&b, *state, 64);
	take_shares(&b.ep->out, &b, 64, out);
	take_shares(b.box, &b, 64, back);
	urn_am_endpoint_destroy(b.ep);
	bench_open(&b, *state, LONG);
	take_shares(&b.ep->out, &b, LONG, longs);
	take_shares(&b.ep->out, &b, 64, shorts);
	take_shares(b.box, &b, LONG, longs);
	urn_am_endpoint_destroy(b.ep);
}

/* A queue leaves some of its node's part to the other queues of the node: lanes, messages that may
 * be parked, and bytes; and its node some to other nodes. */
static void
test_queues(void **state)
{
	static const unsigned int lanes[] = {4, 1, 0}, parked[] = {86, 28, 10, 3, 1, 0, 0};
	struct urn_am_peer *p[7];
	struct bench b;

	bench_open(&b, *state, 64);
	for (unsigned int i = 0; i < 7; i++) {
		p[i] = urn_am_peer_get(b.box, b.node, i);
		p[i]->users++;
		assert_ptr_equal(p[i]->above, p[0]->above);
	}
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int n = 0;

		for (; urn_am_has_lane(b.box, p[i], 64); n++)
			(void)urn_am_lane_take(b.box, p[i], 64);
		assert_int_equal(n, lanes[i]);
	}
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(park_all(&b, p[i], 8), parked[i]);
	assert_int_equal(p[0]->above->lanes[0], URN_AM_BACK_MOST);
	assert_int_equal(p[0]->above->parked, URN_AM_BACK_PARKED / 2);
	for (unsigned int i = 0; i < URN_AM_BACK_MOST; i++)
		urn_am_lane_give(b.box, &b.box->lane[i]);
	for (unsigned int i = 0; i < 7; i++)
		while (p[i]->first != NULL)
			urn_am_unpark(b.box, p[i]->first);
	assert_true(park_all(&b, p[0], 1024) > park_all(&b, p[1], 1024));
	assert_true(p[1]->parked > 0 && urn_am_may_park(b.box, p[2], 1024));
	assert_int_equal(p[0]->above->bytes, p[0]->bytes + p[1]->bytes);
	assert_int_equal(p[0]->above->bytes, b.box->bytes);
	assert_true(urn_am_may_park(b.box, peer(&b, 1), b.box->room / 3));
	urn_am_endpoint_destroy(b.ep);
}

/* ---- answers that are given up */

static uint32_t given_up;

static void
sent(void *ctx, const struct urn_am_parked *k)
{
	(void)ctx;
	(void)k;
}

static void
late(void *ctx, uint32_t answers)
{
	(void)ctx;
	given_up += answers;
}

/* Look at an answer of a peer, whose time is over at `now`. returns: true: it was given up. Else it
 * is parked still, because the peer has no lane left. */
static bool
gives_up(struct bench *b, struct urn_am_peer *p, uint64_t now)
{
	given_up = 0;
	p->burst = 0;
	p->first->m.until = now;
	urn_am_unpark_due(b->box, now, sent, late, NULL);
	assert_true((given_up != 0) == (p->first == NULL));
	return given_up != 0;
}

/* Answers whose time is over are kept unless their peer refuses answers or is silent. */
static void
test_given_up(void **state)
{
	static const struct {
		uint64_t since, next_at; /* ns before and after now */
		uint32_t lanes;
		uint8_t trouble;
		bool late;
	} c[] = {
		{0, 0, 0, 0, false},
		{URN_AM_BACK_NS, 0, 0, 0, false}, /* others have all lanes */
		{URN_AM_BACK_NS - 1, 0, 1, 0, false},
		{URN_AM_BACK_NS, 0, 1, 0, true},
		{0, 1, 0, URN_MSG_QUEUE_FULL, true},
		{0, 1, 0, URN_MSG_BUSY, true},
		{0, 0, 0, URN_MSG_QUEUE_FULL, false}, /* its pause is over: a try is due */
		{0, 0, 0, URN_MSG_UNREACHABLE, true},
		{0, 0, 0, URN_MSG_NO_NODE, true},
	};
	struct urn_am_letter m = {.answers = 1};
	uint64_t now = urn_clock_ns();
	struct urn_am_peer *p;
	struct bench b;

	bench_open(&b, *state, 64);
	p = peer(&b, 0);
	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		if (p->first == NULL)
			assert_non_null(urn_am_park(b.box, p, &m, 64));
		p->above->since = now - c[i].since;
		p->next_at = now + c[i].next_at;
		p->above->lanes[0] = c[i].lanes;
		p->trouble = c[i].trouble;
		assert_int_equal(gives_up(&b, p, now), c[i].late);
	}
	p->above->lanes[0] = 0;
	urn_am_peer_failed(p, URN_MSG_NO_QUEUE); /* one program of the node ended */
	assert_int_equal(p->trouble, 0);
	urn_am_peer_failed(p, URN_MSG_BUSY);
	assert_int_equal(p->trouble, URN_MSG_BUSY);
	urn_am_peer_takes(b.box, p);
	assert_int_equal(p->trouble, 0);
	urn_am_endpoint_destroy(b.ep);
}

/* The time of a parked answer begins when the handler has written it. */
static void
test_time_begins(void **state)
{
	struct urn_am_head head = {.kind = URN_AM_M_HANDLED, .number = 5};
	uint64_t start = urn_clock_coarse_ns();
	struct urn_am_peer *p;
	struct bench b;

	bench_open(&b, *state, 64);
	p = b.ep->asker_peer = peer(&b, 0);
	p->above->lanes[0] += URN_AM_BACK_MOST;
	b.ep->now = 1; /* this progress began long ago */
	assert_int_equal(urn_am_answer(b.ep, &head, NULL, NULL, 0), 0);
	p->above->lanes[0] -= URN_AM_BACK_MOST;
	assert_non_null(p->first);
	assert_true(p->first->m.until >= start + URN_AM_BACK_NS);
	urn_am_endpoint_destroy(b.ep);
}

/* ---- verdicts */

/* A request is taken only when a short answer has a place, too. */
static void
test_short_answer(void **state)
{
	struct urn_am_peer *p;
	struct bench b;

	bench_open(&b, *state, LONG);
	for (unsigned int i = 0; b.box->parked < b.box->parked_max; i++)
		(void)park_all(&b, peer(&b, i), 1024);
	p = peer(&b, UINT8_MAX);
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_TAKE);
	p->above->lanes[0] = URN_AM_BACK_MOST;
	p->above->since = urn_clock_ns();
	b.ep->now = 0;
	assert_true(urn_am_has_lane(b.box, p, b.box->size));
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_WAIT);
	p->above->lanes[0] = 0;
	urn_am_endpoint_destroy(b.ep);
}

/* A node that has just got its first answers is not silent, and one that is BUSY takes answers. */
static void
test_no_drop(void **state)
{
	struct urn_am_head head = {.kind = URN_AM_M_HANDLED, .number = 5};
	struct urn_am_peer *p;
	uint64_t bytes;
	struct bench b;

	bench_open(&b, *state, 64);
	p = b.ep->asker_peer = peer(&b, 0);
	assert_int_equal(urn_am_answer(b.ep, &head, NULL, NULL, 0), 0);
	assert_non_null(p->open_lane);
	p->above->lanes[0] += URN_AM_BACK_MOST - 1;
	bytes = b.box->bytes;
	b.box->bytes = b.box->room;
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_WAIT);
	p->above->since = urn_clock_ns();
	urn_am_peer_failed(p, URN_MSG_BUSY);
	urn_am_peer_pause(p, p->above->since);
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_WAIT);
	urn_am_peer_failed(p, URN_MSG_QUEUE_FULL);
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_DROP);
	p->trouble = 0;
	b.ep->now = 0;
	p->above->since = urn_am_now(b.ep) - URN_AM_SILENT_NS - 1;
	assert_int_equal(urn_am_room(b.ep, p->node, 0, &p), URN_AM_DROP);
	b.box->bytes = bytes;
	p->above->lanes[0] -= URN_AM_BACK_MOST - 1;
	urn_am_endpoint_destroy(b.ep);
}

/* ---- sleep */

/* The descriptor of a queue becomes readable by itself while answers are parked, or requests have
 * no answer, and does not else. */
static void
test_sleep(void **state)
{
	struct urn_am_attr attr = {.wakes = 1};
	struct net *n = *state;
	struct urn_am_queue *q = urn_am_queue_create(0);
	struct urn_am_endpoint *ep = urn_am_endpoint_create(n->side[1].dev, &attr);
	struct urn_am_letter m = {.answers = 1, .len = 64};
	struct pollfd fd = {.fd = urn_am_queue_fd(q), .events = POLLIN};
	struct urn_am_peer *p;
	struct urn_am_event e;

	assert_non_null(ep);
	assert_int_equal(urn_am_queue_add(q, ep), 0);
	p = urn_am_peer_get(&ep->back, n->side[0].address.node, 0);
	p->users++;
	for (unsigned int i = 0; i < 3; i++) {
		p->burst = 0;
		assert_non_null(urn_am_park(&ep->back, p, &m, 64));
		assert_int_equal(urn_am_queue_arm(q), 0);
		assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
		assert_int_equal(urn_am_queue_poll(q, &e, 1), 0);
		urn_am_unpark(&ep->back, p->first);
		assert_int_equal(urn_am_queue_arm(q), 0);
		assert_int_equal(poll(&fd, 1, 20), 0);
		ep->pending++;
		assert_int_equal(urn_am_queue_arm(q), 0);
		assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
		ep->pending--;
		assert_int_equal(urn_am_queue_poll(q, &e, 1), 0);
		assert_int_equal(poll(&fd, 1, 0), 0);
	}
	urn_am_endpoint_destroy(ep);
	assert_int_equal(urn_am_queue_destroy(q), 0);
}

/* ---- slow handlers */

/* Lanes on which answers wait when the slow handler begins, or the one after it, at most. */
static uint32_t held;
static bool was_slow; /* the last handler */

static void
slowly(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	const struct timespec ms = {.tv_nsec = MS};

	(void)m;
	(void)arg;
	held = ep->back.opens > held ? ep->back.opens : held;
	was_slow = true;
	nanosleep(&ms, NULL);
}

static void
at_once(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)m;
	(void)arg;
	if (was_slow && ep->back.opens > held)
		held = ep->back.opens;
	was_slow = false;
}

/* Let requests wait at side 1. */
static void
ask(struct net *n, uint32_t handler, uint32_t requests)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	uint32_t want = urn_msg_set_waiting(&b->ep->requests) + requests;

	for (uint32_t i = 0; i < requests; i++)
		assert_int_equal(
			urn_am_request(a->ep, &b->address, handler, NULL, 0, NULL, 0, NULL), 0);
	for (uint64_t end = urn_clock_ms() + WAIT_MS; urn_msg_set_waiting(&b->ep->requests) < want;
	     sched_yield())
		assert_true(urn_clock_ms() < end);
}

/* The answer of a slow handler does not wait for others, nor do those before it once it is known to
 * be slow. */
static void
test_slow(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];

	held = 0;
	urn_am_handle(b->ep, 7, slowly, NULL);
	urn_am_handle(b->ep, 8, at_once, NULL);
	ask(n, 7, 4);
	assert_int_equal(urn_am_progress(b->ep), 4);
	assert_int_equal(held, 0);
	net_until_quiet(n, a);
	ask(n, 8, 2);
	ask(n, 7, 1);
	ask(n, 8, 1);
	assert_int_equal(urn_am_progress(b->ep), 4);
	assert_int_equal(held, 0);
	assert_true(b->ep->handler[7].slow);
	net_until_quiet(n, a);
}

/* A request that comes alone is not timed: its answer waits for nobody. Several are. */
static void
test_not_timed(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	const struct urn_am_handler *h = b->ep->handler;

	was_slow = false;
	urn_am_handle(b->ep, 9, slowly, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		bool slow = h[9].slow;

		ask(n, 9, 1);
		b->ep->now = 0;
		assert_int_equal(urn_am_progress(b->ep), 1);
		assert_false(b->ep->timed);
		assert_int_equal(b->ep->now, 0); /* nobody looked at the clock */
		assert_int_equal(h[9].slow, slow);
		net_until_quiet(n, a);
		b->ep->handler[9].slow = false;
	}
	ask(n, 9, 2);
	assert_int_equal(urn_am_progress(b->ep), 2);
	assert_true(b->ep->timed);
	assert_true(h[9].slow);
	net_until_quiet(n, a);
}

/* ---- requests whose time is over */

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep;
	*(struct urn_am_failure *)arg = *f;
}

/* Let the time of the only request of an endpoint be over. */
static struct urn_am_failure
time_out(struct urn_am_endpoint *ep)
{
	struct urn_am_failure f = {.err = 0};

	urn_am_on_failure(ep, note_failure, &f);
	for (uint32_t i = 0; i < ep->attr.requests; i++)
		ep->asked[i].at = 1;
	ep->look_at = 0;
	(void)urn_am_progress(ep);
	urn_am_on_failure(ep, NULL, NULL);
	assert_int_equal(urn_am_pending(ep), 0);
	return f;
}

/* A request that is parked was not delivered, and one on its lane perhaps. */
static void
test_never_left(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_am_address nobody = {.node = {0x20, 1, 2}, .requests = 7};
	struct urn_am_letter m = {.answers = 0};
	struct urn_am_failure f;
	struct urn_am_peer *p;

	assert_int_equal(urn_am_request(a->ep, &nobody, 7, NULL, 0, NULL, 0, NULL), 0);
	f = time_out(a->ep);
	assert_int_equal(f.err, EHOSTUNREACH);
	assert_true(f.code != 0);
	p = urn_am_peer_get(&a->ep->out, a->address.node, 7);
	p->users++;
	p->burst = 0;
	assert_non_null(urn_am_park(&a->ep->out, p, &m, 64));
	memcpy(nobody.node, p->node, sizeof(p->node));
	assert_int_equal(urn_am_request(a->ep, &nobody, 7, NULL, 0, NULL, 0, NULL), 0);
	f = time_out(a->ep);
	assert_int_equal(f.err, EHOSTUNREACH);
	assert_int_equal(f.code, URN_MSG_QUEUE_FULL);
	urn_am_unpark(&a->ep->out, p->first);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, net_setup, net_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_room),	 TEST(test_given_up),	TEST(test_time_begins),
		TEST(test_short_answer), TEST(test_no_drop),	TEST(test_slow),
		TEST(test_not_timed),	 TEST(test_never_left), TEST(test_sleep),
		TEST(test_shares),	 TEST(test_queues),
	};

	return cmocka_run_group_tests_name("am_answers", tests, NULL, NULL);
}
