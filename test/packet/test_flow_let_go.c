/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: long messages that their sender lets go of midway, or that stall (doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* Messages that a node is putting together. */
static uint32_t
wholes(const struct flow_net *n, unsigned int node)
{
	return n->node[node].tp->flows->wholes;
}

/* held: node 0 sends nothing new from now on, and its packets in flight are acknowledged. Else it goes on. */
static void
hold(struct flow_net *n, bool held)
{
	n->node[0].neigh = held ? -1 : 0;
	n->node[0].tp->mac_gen++;
	flow_net_run(n, MS);
}

/* Send a message of the largest size from node 0 to 1, and hold node 0 midway. */
static void
stop_midway(struct flow_net *n, struct flow_sent *s)
{
	assert_int_equal(flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, s), URN_MSG_PENDING);
	flow_net_run(n, 20 * FLOW_NET_STEP);
	hold(n, true);
	assert_int_equal(s->m.state, URN_FLOW_MSG_ACTIVE);
	assert_int_equal(s->m.out, 0);
	assert_true(s->m.sent > 0);
	assert_int_equal(wholes(n, 1), 1);
}

/* A message is let go of when no part is in flight: one packet of a void segment frees its place. */
static void
nothing_in_flight(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	stop_midway(n, &s);
	urn_flow_forget(n->node[0].tp, &s.m);
	flow_sent_free(&s);
	hold(n, false);
	assert_int_equal(wholes(n, 1), 0);
	assert_int_equal(n->node[1].got_n, 0);
	assert_int_equal(n->node[0].tp->nobodys.work, 0);
	flow_net_end(n);
}

/*
 * Clients begin ever more long messages and let go of them, on a wire that loses, doubles and delays: no place is
 * held afterwards, and a message of another node is taken.
 */
static void
again_and_again(void **state)
{
	static struct flow_sent s[URN_FLOW_ACTIVE], other;
	static const uint32_t len[] = {2500, 20000, URN_MSG_MAX};

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct flow_net *n = flow_net_new(3, seed);

		n->lose = seed % 3 * 10;
		n->late = seed % 4 * 20;
		n->twice = seed % 2 * 10;
		for (unsigned int round = 0; round < 20; round++) {
			for (unsigned int i = 0; i < URN_FLOW_ACTIVE; i++)
				flow_send(n, 0, 1, flow_qid(0), len[(i + round) % 3], 1, &s[i]);
			flow_net_run(n, (1 + round) * FLOW_NET_STEP);
			for (unsigned int i = 0; i < URN_FLOW_ACTIVE; i++) {
				urn_flow_forget(n->node[0].tp, &s[i].m);
				flow_sent_free(&s[i]);
			}
			flow_net_run(n, 60 * FLOW_NET_STEP); /* no part is overtaken by more messages than a flow notes */
		}
		flow_net_run(n, 1000 * MS);
		assert_int_equal(wholes(n, 1), 0);
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_send(n, 2, 1, flow_qid(0), 20000, 1, &other);
		flow_net_until(n, &other, 3000 * MS);
		assert_int_equal(other.code, URN_MSG_DONE);
		flow_sent_free(&other);
		flow_net_end(n);
	}
}

/*
 * DB-7: all places are taken, and a message stalled: another takes its place, but not before URN_FLOW_STALL_NS. The
 * rest of the stalled message comes later: the message is refused, because its first parts are gone.
 */
static void
stalled(void **state)
{
	struct flow_net *n = flow_net_new(3, 1);
	struct flow_sent s, other;

	(void)state;
	stop_midway(n, &s);
	n->node[1].tp->flows->wholes += URN_FLOW_WHOLES - 1;
	for (int late = 0; late < 2; late++) {
		n->now += late ? URN_FLOW_STALL_NS : 0;
		/* Node 0 waits for a MAC address as if that wait had begun now. */
		n->node[0].tp->flows->last->flags &= (uint16_t)~URN_FLOWF_ASKS;
		flow_send(n, 2, 1, flow_qid(0), 20000, 2, &other);
		flow_net_until(n, &other, 1000 * MS);
		assert_int_equal(other.code, late ? URN_MSG_DONE : URN_MSG_BUSY);
		flow_sent_free(&other);
	}
	assert_int_equal(wholes(n, 1), URN_FLOW_WHOLES - 1);
	hold(n, false);
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_BUSY);
	assert_int_equal(n->node[1].got_n, 1);
	flow_sent_free(&s);
	/* The flow goes on with later messages. */
	flow_send(n, 0, 1, flow_qid(0), 20000, 3, &s);
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	n->node[1].tp->flows->wholes -= URN_FLOW_WHOLES - 1;
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_in_flight),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(stalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
