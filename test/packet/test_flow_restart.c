/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Restarts of the receiving node while packets wait in the network (doorbell.md DB-7;
 * doc/inside/messages.md "Restarts"): no message is delivered to two lives of the node, and a node
 * that was up before gets its messages.
 */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { BTH = 42, MAYBE = URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE };

/* Frames of data to node 1 that are on the wire now arrive at another time, ns. returns: frames */
static unsigned int
hold(struct flow_net *n, uint64_t until)
{
	unsigned int held = 0;

	for (unsigned int i = 0; i < n->wire_n; i++) {
		if (n->wire[i].to != 1 ||
		    rte_pktmbuf_mtod(n->wire[i].m, uint8_t *)[BTH] != URN_FLOW_DATA)
			continue;
		n->wire[i].due = until;
		held++;
	}
	return held;
}

/* Let the sender repeat until `ns` have gone by, and hold the repeats of the last moment. */
static void
hold_repeat(struct flow_net *n, uint64_t ns, uint64_t until)
{
	flow_net_run(n, ns);
	for (unsigned int i = 0; !hold(n, until); i++) {
		assert_true(i < 400000);
		flow_net_run(n, FLOW_NET_STEP);
	}
}

static void
expect(struct flow_net *n, struct flow_sent *s, uint8_t code)
{
	flow_net_until(n, s, 4000 * MS);
	assert_int_equal(s->code, code);
	assert_int_equal(s->answers, 1);
	flow_sent_free(s);
}

/* A new message to node 1 comes, once. */
static void
expect_usual(struct flow_net *n, uint32_t tag)
{
	uint32_t before = n->node[1].got_n;
	struct flow_sent s;

	flow_send(n, 0, 1, flow_qid(0), 64, tag, &s);
	expect(n, &s, URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, before + 1);
}

/*
 * The node takes a message and dies before its answer is sent. A repeat waits in the network until
 * the node is up again, and then for longer than the age that it tells: the message was delivered,
 * and is not delivered again.
 */
static void
repeat_waits(void **state)
{
	static const uint64_t after[] = {2 * MS, 40 * MS, 300 * MS, 900 * MS};

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(after); k++) {
		struct flow_net *n = flow_net_new(2, k + 1);
		struct flow_sent s;
		uint64_t up;

		n->lose_opcode = URN_FLOW_ACK;
		flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
		flow_net_run(n, MS / 10);
		assert_int_equal(n->node[1].got_n, 1);
		up = n->now + after[k] + 10 * MS;
		hold_repeat(n, after[k], up + 700 * MS);
		n->cut = true;
		flow_net_run(n, up > n->now ? up - n->now : 0);
		flow_net_restart(n, 1);
		flow_net_run(n, 690 * MS);
		n->cut = false;
		n->lose_opcode = 0;
		expect(n, &s, MAYBE);
		flow_net_run(n, 100 * MS);
		assert_int_equal(n->node[1].got_n, 1);
		expect_usual(n, 2);
		flow_net_end(n);
	}
}

/*
 * The first copy itself waits, by another way than its repeat: the repeat is delivered to the life
 * before, and answered. The first copy comes to the node's next life.
 */
static void
first_copy_waits(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[2];

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s[0]);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(hold(n, n->now + 200 * MS), 1);
	expect(n, &s[0], URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, 1);
	flow_net_restart(n, 1);
	flow_net_run(n, 300 * MS);
	assert_int_equal(n->node[1].got_n, 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED), 1);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_DROP_STALE), 1);
	/* The sender knows the start of the life before, and takes no other for it. */
	flow_send(n, 0, 1, flow_qid(0), 64, 2, &s[1]);
	expect(n, &s[1], MAYBE);
	assert_int_equal(n->node[1].got_n, 1);
	expect_usual(n, 3);
	flow_net_end(n);
}

/* A node that was started just before the first packet gets each message, whatever the network
 * loses and delays. */
static void
just_started(void **state)
{
	static const uint64_t up[] = {0, MS, 3 * MS, 50 * MS, 2000 * MS, 9999 * MS, 10100 * MS};
	static struct flow_sent s[40];

	(void)state;
	for (uint64_t seed = 1; seed <= 70; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		flow_net_restart(n, 1);
		n->now += up[seed % RTE_DIM(up)];
		n->lose = n->twice = n->late = seed % 3 * 15;
		n->late_acks = 30;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send(n, 0, 1, flow_qid(1), i % 20 ? 300 : 9000, i + 1, &s[i]);
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			expect(n, &s[i], URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n, RTE_DIM(s));
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RESTARTED), 0);
		flow_net_end(n);
	}
}

/*
 * Answers that take longer than the node has been up say too little: the sender asks again, and a
 * quick answer settles the matter. Without one, the message fails in the end.
 */
static void
slow_answers(void **state)
{
	(void)state;
	for (unsigned int quick = 0; quick < 2; quick++) {
		struct flow_net *n = flow_net_new(2, 1);
		struct flow_sent s;

		flow_net_restart(n, 1);
		n->now += 2 * MS;
		n->delay = 20 * MS; /* and so the first packet is 22 ms behind the start */
		flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
		flow_net_run(n, 500 * MS);
		assert_int_equal(s.code, 0);
		assert_true(n->node[0].tp->flows->last->flags & URN_FLOWF_UNSURE);
		assert_in_range(n->node[0].tp->flows->last->asks, 2, URN_FLOW_ASKS);
		n->delay = quick ? 2000 : n->delay;
		expect(n, &s, quick ? URN_MSG_DONE : MAYBE);
		assert_int_equal(n->node[1].got_n, quick);
		flow_net_end(n);
	}
}

/* The node was not there when the first packet was sent: perhaps another life of it was. */
static void
started_since(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	uint64_t before;
	struct flow_sent s;

	(void)state;
	n->cut = true;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
	flow_net_run(n, 100 * MS);
	flow_net_restart(n, 1);
	n->cut = false;
	before = n->now;
	expect(n, &s, MAYBE);
	assert_true(n->now - before < 300 * MS); /* the next repeat shows it */
	assert_int_equal(n->node[1].got_n, 0);
	expect_usual(n, 2);
	flow_net_end(n);
}

/* An engine that the node does not have, any more: the packet may have come when it had. */
static void
engine_gone(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	flow_send(n, 0, 1, URN_MSG_QID(1, 1, 0), 64, 1, &s);
	expect(n, &s, URN_MSG_NO_QUEUE);
	flow_net_restart(n, 1);
	flow_net_run(n, 4 * MS);
	flow_send(n, 0, 1, URN_MSG_QID(1, 2, 0), 64, 1, &s); /* a new flow */
	expect(n, &s, URN_MSG_NO_QUEUE);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED), 1);
	/* A first packet that waits over the restart. */
	flow_send(n, 0, 1, URN_MSG_QID(1, 3, 0), 64, 1, &s);
	flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(hold(n, n->now + 5 * MS), 1);
	n->cut = true;
	flow_net_run(n, 4 * MS);
	flow_net_restart(n, 1);
	n->cut = false;
	expect(n, &s, MAYBE);
	flow_net_end(n);
}

/* Steady state: a node that is up for long asks nobody, and a young one asks once. */
static void
asked_once(void **state)
{
	(void)state;
	for (unsigned int young = 0; young < 2; young++) {
		struct flow_net *n = flow_net_new(2, 1);

		if (young)
			flow_net_restart(n, 1);
		flow_net_run(n, 4 * MS);
		for (unsigned int i = 1; i <= 20; i++)
			expect_usual(n, i);
		assert_int_not_equal(n->node[0].tp->flows->last->tx_start, 0);
		assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED), young);
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RETRANSMITS), young);
		flow_net_end(n);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeat_waits),	 cmocka_unit_test(first_copy_waits),
		cmocka_unit_test(just_started),	 cmocka_unit_test(slow_answers),
		cmocka_unit_test(started_since), cmocka_unit_test(engine_gone),
		cmocka_unit_test(asked_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
