/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows at a port whose peer pauses their priority: messages and answers wait, are delivered once
 * when the pause ends, and messages of the node to itself do not notice (doc/inside/lossless.md
 * "An adapter").
 */
#include "flow_net.h"

#include "common/test_eal.h"
#include "engine/engine.h"
#include "transport/flow_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { MANY = 2000, LEN = 900 };

static struct urn_shard shard;

static void
hold(struct urn_tp *tp)
{
	if (tp == shard.tp)
		urn_shard_hold(&shard);
}

static void
pause_flows(uint16_t quanta)
{
	struct urn_pfc pfc = {.enable = 1};

	pfc.quanta[0] = quanta;
	urn_shard_obey(&shard, &pfc);
}

static struct flow_net *
open_paused(void)
{
	static struct urn_shard *sibling[URN_ABI_MAX_ENGINES];
	struct urn_obey_config c = {.on = true};
	struct flow_net *n = flow_net_new(2, 1);

	urn_classify_preset(&c.map);
	n->hold = hold;
	shard = (struct urn_shard){.tp = n->node[0].tp,
				   .sibling = sibling,
				   .obey = urn_obey_create(&c, 10000000000ull)};
	assert_non_null(shard.obey);
	return n;
}

static void
close_paused(struct flow_net *n)
{
	urn_obey_destroy(shard.obey);
	flow_net_end(n);
}

/* Send messages of node 0 until a flow has no room. returns: messages */
static unsigned int
send_many(struct flow_net *n, unsigned int from, unsigned int to, struct flow_sent *s)
{
	unsigned int i = 0;

	while (i < MANY && flow_send(n, from, to, flow_qid(1), LEN, i, &s[i]) == URN_MSG_PENDING)
		i++;
	return i;
}

static void
all_done(struct flow_net *n, struct flow_sent *s, unsigned int many)
{
	for (unsigned int i = 0; i < many; i++) {
		flow_net_until(n, &s[i], 1000 * MS);
		assert_int_equal(s[i].code, URN_MSG_DONE);
		assert_int_equal(s[i].answers, 1);
		flow_sent_free(&s[i]);
	}
}

/* Pause the flows of node 0 for ns, again and again as senders of pauses do. */
static void
run_paused(struct flow_net *n, uint64_t ns)
{
	for (uint64_t end = n->now + ns; n->now < end;) {
		pause_flows(0xffff);
		flow_net_run(n, MS);
	}
}

static void
waits_and_goes_on(void **state)
{
	struct flow_net *n = open_paused();
	struct flow_sent *out = calloc(MANY, sizeof(*out)), *own = calloc(MANY, sizeof(*own)),
			 *in = calloc(MANY, sizeof(*in));
	unsigned int outs, owns, ins, got;

	(void)state;
	assert_true(out && own && in);
	outs = send_many(n, 0, 1, out); /* the flow is made, its window open */
	all_done(n, out, outs);
	got = n->node[1].got_n;
	run_paused(n, MS);
	outs = send_many(n, 0, 1, out);
	owns = send_many(n, 0, 0, own);
	ins = send_many(n, 1, 0, in);
	assert_true(outs > 100 && owns > 100 && ins > 100);
	run_paused(n, 20 * MS);
	assert_int_equal(n->node[1].got_n, got);
	assert_true(n->node[0].got_n >= owns); /* and what came from node 1 */
	for (unsigned int i = 0; i < owns; i++)
		assert_int_equal(own[i].code, URN_MSG_DONE);
	assert_true(n->node[0].tp->held <= 64 + URN_TP_TX);
	assert_true(n->node[0].tp->sched.waiting & 1);
	pause_flows(0);
	all_done(n, own, owns);
	all_done(n, out, outs);
	all_done(n, in, ins);
	assert_int_equal(n->node[1].got_n, got + outs);
	assert_int_equal(n->node[0].got_n, owns + ins);
	assert_int_equal(flow_net_count(n, 0, URN_C_DROP_PAUSED), 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_PFC_STORM), 0);
	flow_net_run(n, 10 * MS);
	assert_int_equal(n->node[0].tp->held, 0);
	free(out);
	free(own);
	free(in);
	close_paused(n);
}

/* A node that ends while its messages wait gives all buffers back. */
static void
ends_while_paused(void **state)
{
	unsigned int before = rte_mempool_avail_count(test_eal_pool());
	struct flow_net *n = open_paused();
	struct flow_sent *out = calloc(MANY, sizeof(*out));
	unsigned int outs;

	(void)state;
	assert_non_null(out);
	outs = send_many(n, 0, 1, out);
	run_paused(n, 5 * MS);
	assert_true(n->node[0].tp->held > 0);
	close_paused(n);
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), before);
	for (unsigned int i = 0; i < outs; i++)
		flow_sent_free(&out[i]);
	free(out);
}

/* Make flows by which node 0 owes an acknowledgement each. */
static void
owe_many(struct urn_tp *tp)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 11};

	for (unsigned int i = 0; i < MANY; i++) {
		struct urn_flow *f;

		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		f = urn_flow_make(tp, gid, 0, URN_FLOWF_RX);
		assert_non_null(f);
		urn_flow_owe(tp, f);
	}
}

/* Flows before this one among those that owe an acknowledgement. */
static unsigned int
flows_before(const struct urn_tp *tp, const struct urn_flow *f)
{
	unsigned int n = 0;

	for (const struct urn_flow *i = tp->acks; i != f; i = i->ack_next)
		n++;
	return n;
}

/*
 * A turn looks at URN_FLOW_ACKS of the acknowledgements that wait, however many there are. One to
 * the own node behind them gets its turn, and all go out when the pause ends.
 */
static void
waiting_answers_are_cheap(void **state)
{
	struct flow_net *n = open_paused();
	struct urn_tp *tp = n->node[0].tp;
	struct flow_sent *out = calloc(MANY, sizeof(*out)), own;
	const struct urn_flow *first;
	unsigned int outs;

	(void)state;
	assert_non_null(out);
	outs = send_many(n, 0, 1, out);
	all_done(n, out, outs);
	run_paused(n, MS);
	outs = send_many(n, 0, 1, out);
	run_paused(n, MS);
	assert_true(tp->sched.stopped & 1);
	owe_many(tp);
	first = tp->acks;
	for (unsigned int turns = 1; turns <= 10; turns++) {
		pause_flows(0xffff);
		flow_net_run(n, FLOW_NET_STEP);
		assert_int_equal(tp->flows->acks_n - flows_before(tp, first),
				 turns * URN_FLOW_ACKS);
	}
	flow_send(n, 0, 0, flow_qid(1), LEN, 1, &own);
	for (unsigned int turns = 0; turns < MANY / URN_FLOW_ACKS + 10 && !own.answers; turns++) {
		pause_flows(0xffff);
		flow_net_run(n, FLOW_NET_STEP);
	}
	assert_int_equal(own.code, URN_MSG_DONE);
	flow_sent_free(&own);
	assert_true(tp->flows->acks_n >= MANY);
	pause_flows(0);
	all_done(n, out, outs);
	flow_net_run(n, MS);
	assert_int_equal(tp->flows->acks_n, 0);
	free(out);
	close_paused(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_and_goes_on),
		cmocka_unit_test(ends_while_paused),
		cmocka_unit_test(waiting_answers_are_cheap),
	};

	return cmocka_run_group_tests_name("packet_flow_paused", tests, NULL, NULL);
}
