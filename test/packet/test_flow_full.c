/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: many senders to a full queue, one packet a message (doorbell.md DB-5;
 * doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

enum {
	SENDERS = 256, /* to the full queue */
	OTHERS = 63,   /* each to a queue of its own */
};

/* Both kinds of senders ring again as soon as they have their answer. */
struct crowd {
	struct flow_sent full[SENDERS], other[OTHERS];
	bool busy[SENDERS], waits[OTHERS];
	uint64_t rung[OTHERS];
	uint64_t refused, done, worst; /* answers; ns: the longest that one of the others waited */
};

static void
ring_full(struct flow_net *n, struct crowd *c, unsigned int i, uint32_t len)
{
	struct flow_sent *s = &c->full[i];

	if (c->busy[i] && !s->answers)
		return;
	if (c->busy[i]) {
		assert_int_equal(s->code, URN_MSG_QUEUE_FULL);
		c->refused++;
		flow_sent_free(s);
	}
	assert_int_equal(flow_send(n, 0, 1, flow_qid(0), len, i + 1, s), URN_MSG_PENDING);
	c->busy[i] = true;
}

static void
ring_other(struct flow_net *n, struct crowd *c, unsigned int i)
{
	static struct urn_tp_share client;
	struct flow_sent *s = &c->other[i];

	if (c->waits[i]) {
		c->worst = RTE_MAX(c->worst, n->now - c->rung[i]);
		if (!s->answers)
			return;
		assert_int_equal(s->code, URN_MSG_DONE);
		c->done++;
		flow_sent_free(s);
	}
	memset(s, 0, sizeof(*s));
	s->data = calloc(1, 64);
	s->m = (struct urn_flow_msg){
		.data = s->data, .len = 64, .qid = flow_qid(1 + i % 62), .owner = &client};
	assert_int_equal(urn_flow_send(n->node[0].tp, n->node[1].gid, &s->m), URN_MSG_PENDING);
	c->waits[i] = true;
	c->rung[i] = n->now;
}

static void
wait_all(struct flow_net *n, struct crowd *c)
{
	for (unsigned int i = 0; i < SENDERS; i++) {
		flow_net_until(n, &c->full[i], 3000 * MS);
		assert_int_equal(c->full[i].code, URN_MSG_QUEUE_FULL);
		flow_sent_free(&c->full[i]);
	}
	for (unsigned int i = 0; i < OTHERS; i++) {
		flow_net_until(n, &c->other[i], 3000 * MS);
		assert_int_equal(c->other[i].code, URN_MSG_DONE);
		flow_sent_free(&c->other[i]);
	}
}

static void
run(struct flow_net *n, struct crowd *c, uint32_t len, uint64_t ns)
{
	memset(c, 0, sizeof(*c));
	n->node[1].refuse[0] = URN_MSG_QUEUE_FULL;
	for (uint64_t end = n->now + ns; n->now < end;) {
		for (unsigned int i = 0; i < SENDERS; i++)
			ring_full(n, c, i, len);
		for (unsigned int i = 0; i < OTHERS; i++)
			ring_other(n, c, i);
		flow_net_run(n, FLOW_NET_STEP);
	}
	wait_all(n, c);
	assert_int_equal(n->node[1].got_n, c->done + OTHERS);
}

/* DB-5: 256 senders to a full queue, one packet a message: messages to other queues wait for little
 * more than the wire. */
static void
one_packet_a_message(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	static struct crowd c;

	(void)state;
	run(n, &c, 900, 5 * MS);
	assert_true(c.refused > 5000 && c.done > 5000);
	assert_true(c.worst < 50 * US);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ROOM), 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RETRANSMITS), 0);
	assert_int_equal(n->node[1].tp->flows->large,
			 1); /* refusals that the sender knows of since, as it sends no more */
	flow_net_end(n);
}

/* DB-5: the same for messages of several packets, of which each has one refusal at a time. */
static void
long_messages(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	static struct crowd c;

	(void)state;
	run(n, &c, 2500, 5 * MS);
	assert_true(c.refused > 1000 && c.done > 5000);
	assert_true(c.worst < 50 * US);
	flow_net_end(n);
}

/* DB-5: frames that are lost, duplicated and late: each message has its code, and the flow goes on.
 */
static void
bad_wire(void **state)
{
	static struct crowd c;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = 2;
		n->twice = 2;
		n->late = seed % 2 ? 5 : 0;
		run(n, &c, 900, 2 * MS);
		assert_true(c.refused > 1000 && c.done > 500);
		assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ROOM), 0);
		flow_net_end(n);
	}
}

/*
 * More packets with refusals come at once than an acknowledgement has room for, and others behind
 * them: all are answered in their round trip, and none is repeated.
 */
static void
all_at_once(void **state)
{
	enum { FULL = 100, ALL = 110 };
	static struct flow_sent s[ALL];
	struct flow_net *n = flow_net_new(2, 1);
	uint64_t due = n->now + 50 * US;

	(void)state;
	n->node[1].refuse[0] = URN_MSG_QUEUE_FULL;
	for (unsigned int i = 0; i < ALL; i++)
		flow_send(n, 0, 1, flow_qid(i >= FULL), 900, i + 1, &s[i]);
	/* A flow to a node that never answered sends few packets (URN_FLOW_FIRST); this one knows the node. */
	n->node[0].tp->flows->last->tx_start = n->node[1].tp->cfg.flow_epoch;
	while (n->now + FLOW_NET_STEP < due) {
		n->delay = due - n->now -
			   FLOW_NET_STEP; /* frames that are sent in this step come at that time */
		flow_net_run(n, FLOW_NET_STEP);
	}
	n->delay = 5 * US;
	flow_net_run(n, 2 * FLOW_NET_STEP);
	for (unsigned int i = 0; i < n->wire_n;
	     i++) /* a wire carries one acknowledgement after the other */
		n->wire[i].due += 3 * i * FLOW_NET_STEP;
	flow_net_run(n, 20 * US);
	for (unsigned int i = 0; i < ALL; i++) {
		assert_int_equal(s[i].code, i >= FULL ? URN_MSG_DONE : URN_MSG_QUEUE_FULL);
		flow_sent_free(&s[i]);
	}
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RETRANSMITS), 0);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_ACKS_TX), 3);
	flow_net_end(n);
}

/*
 * The engine's places for a whole window of refusals are taken: messages are answered all the same,
 * and truly. Places are given back when the flow goes.
 */
static void
no_large_places(void **state)
{
	static struct flow_sent s[SENDERS];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	n->node[1].refuse[0] = URN_MSG_TOO_LONG;
	n->node[1].tp->flows->large = URN_FLOW_REFUSALS_LARGE;
	for (unsigned int i = 0; i < 3 * URN_FLOW_REFUSALS; i++)
		flow_send(n, 0, 1, flow_qid(i & 1), 900, i + 1, &s[i]);
	for (unsigned int i = 0; i < 3 * URN_FLOW_REFUSALS; i++) {
		flow_net_until(n, &s[i], 20000 * MS);
		assert_int_equal(s[i].code, i & 1 ? URN_MSG_DONE : URN_MSG_TOO_LONG);
		flow_sent_free(&s[i]);
	}
	assert_true(flow_net_count(n, 1, URN_C_FLOW_DROP_ROOM) > 0);
	assert_int_equal(n->node[1].tp->flows->large, URN_FLOW_REFUSALS_LARGE);
	assert_int_equal(n->node[1].got_n, 3 * URN_FLOW_REFUSALS / 2);
	flow_net_end(n);
}

/* The places of a flow are free again when the sender knows its refusals. */
static void
places_are_given_back(void **state)
{
	static struct flow_sent s[SENDERS];
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_flows *fl = n->node[1].tp->flows;

	(void)state;
	n->node[1].refuse[0] = URN_MSG_NO_QUEUE;
	n->lose_opcode = URN_FLOW_ACK;
	for (unsigned int i = 0; i < 100; i++)
		flow_send(n, 0, 1, flow_qid(0), 900, i + 1, &s[i]);
	flow_net_run(n, 100 * US);
	assert_int_equal(fl->large, 1);
	n->lose_opcode = 0;
	for (unsigned int i = 0; i < 100; i++) {
		flow_net_until(n, &s[i], 3000 * MS);
		assert_int_equal(s[i].code, URN_MSG_NO_QUEUE);
		flow_sent_free(&s[i]);
	}
	flow_send(n, 0, 1, flow_qid(1), 100, 1, &s[0]);
	flow_net_until(n, &s[0], 100 * MS);
	assert_int_equal(s[0].code, URN_MSG_DONE);
	assert_int_equal(fl->large, 0);
	flow_sent_free(&s[0]);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_packet_a_message),
		cmocka_unit_test(long_messages),
		cmocka_unit_test(bad_wire),
		cmocka_unit_test(all_at_once),
		cmocka_unit_test(no_large_places),
		cmocka_unit_test(places_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
