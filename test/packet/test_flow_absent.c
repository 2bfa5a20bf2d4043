/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: engines and nodes that are not there (doorbell.md DB-5; doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* A queue of an engine that no node of the net has. */
static uint64_t
absent_qid(void)
{
	return URN_MSG_QID(7, 3, 1);
}

/* DB-5: a number names an engine that the node has not: NO QUEUE at once, on the own node, too, and whatever is lost. */
static void
no_engine(void **state)
{
	static struct flow_sent s[60];

	(void)state;
	for (unsigned int to = 0; to < 2; to++) {
		struct flow_net *n = flow_net_new(2, 3);

		flow_send(n, 0, to, absent_qid(), 8, 1, &s[0]);
		flow_net_until(n, &s[0], 20 * MS);
		assert_int_equal(s[0].code, URN_MSG_NO_QUEUE);
		flow_sent_free(&s[0]);
		n->lose = to ? 20 : 0;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send(n, 0, to, i % 4 ? absent_qid() : flow_qid(1), i % 3 ? 900 : 9000, i + 1, &s[i]);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			flow_net_until(n, &s[i], 3000 * MS);
			assert_int_equal(s[i].code, i % 4 ? URN_MSG_NO_QUEUE : URN_MSG_DONE);
			assert_int_equal(s[i].answers, 1);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[to].got_n, RTE_DIM(s) / 4);
		flow_net_end(n);
	}
}

/* Packets for an engine that is not there leave nothing behind: no flow is made for them. */
static void
no_engine_keeps_nothing(void **state)
{
	struct flow_net *n = flow_net_new(2, 3);
	struct flow_sent s;

	(void)state;
	flow_send(n, 0, 1, absent_qid(), 8, 1, &s);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(urn_flow_count(n->node[1].tp), 0);
	assert_int_equal(flow_net_count(n, 1, URN_C_DROP_NO_QP), 1);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* DB-5: a restarted node that lost engines says so: messages to its life before may be there, later ones are not. */
static void
fewer_engines_after_a_restart(void **state)
{
	struct flow_net *n = flow_net_new(2, 4);
	struct flow_sent s;

	(void)state;
	flow_send(n, 0, 1, absent_qid(), 8, 1, &s);
	flow_net_until(n, &s, 20 * MS);
	flow_sent_free(&s);
	flow_net_restart(n, 1);
	flow_send(n, 0, 1, absent_qid(), 8, 2, &s);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(s.code, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
	flow_sent_free(&s);
	flow_send(n, 0, 1, absent_qid(), 8, 3, &s);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(s.code, URN_MSG_NO_QUEUE);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* DB-5: NO SUCH NODE comes even if the table of addresses never gives a verdict, because it forgets what it asks for. */
static void
no_verdict(void **state)
{
	struct flow_net *n = flow_net_new(2, 5);
	struct flow_sent s;

	(void)state;
	n->node[0].neigh = -1;
	for (unsigned int i = 0; i < 2; i++) {
		flow_send(n, 0, 1, flow_qid(1), 8, i + 1, &s);
		flow_net_run(n, 2400 * MS);
		assert_int_equal(s.answers, 0);
		flow_net_until(n, &s, 200 * MS);
		assert_int_equal(s.code, URN_MSG_NO_NODE);
		flow_sent_free(&s);
	}
	n->node[0].neigh = 0;
	flow_send(n, 0, 1, flow_qid(1), 8, 3, &s);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* A node that never answers gets few packets again and again, however much is to be sent; with its first answer it gets all. */
static void
few_packets_to_the_silent(void **state)
{
	struct flow_net *n = flow_net_new(2, 6);
	struct flow_sent s;
	uint64_t sent;

	(void)state;
	n->cut = true;
	flow_send(n, 0, 1, flow_qid(1), URN_MSG_MAX, 1, &s);
	flow_net_run(n, 300 * MS);
	sent = flow_net_count(n, 0, URN_C_FLOW_TX);
	assert_in_range(sent, URN_FLOW_FIRST, URN_FLOW_FIRST * (1 + flow_net_count(n, 0, URN_C_EARLY_TIMEOUTS) +
								 flow_net_count(n, 0, URN_C_PROBES) +
								 flow_net_count(n, 0, URN_C_TIMEOUTS)));
	assert_int_equal(urn_psn_tx_out(&n->node[0].tp->flows->last->tx), URN_FLOW_FIRST);
	n->cut = false;
	flow_net_until(n, &s, 3000 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_engine),
		cmocka_unit_test(no_engine_keeps_nothing),
		cmocka_unit_test(fewer_engines_after_a_restart),
		cmocka_unit_test(no_verdict),
		cmocka_unit_test(few_packets_to_the_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
