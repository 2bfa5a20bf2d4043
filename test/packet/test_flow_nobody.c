/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows to nodes that nobody answers for. A client can name any address as TARGET NODE: the flows that its messages
 * made must not stay, or one client alone fills the table, and messages of others to new nodes find no room (DB-5).
 */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { NODES = 500 };

static struct flow_sent s[NODES];

static const uint8_t nothing[1]; /* address of messages without bytes */

/* Send a message to each of NODES addresses next to node 1's; none is a node's. */
static void
send_all(struct flow_net *n)
{
	uint8_t gid[16];

	memcpy(gid, n->node[1].gid, 16);
	for (unsigned int i = 0; i < NODES; i++) {
		const uint16_t low = (uint16_t)(i + 1);

		memcpy(gid + 13, &low, 2);
		memset(&s[i], 0, sizeof(s[i]));
		s[i].m = (struct urn_flow_msg){.data = nothing, .qid = flow_qid(0)};
		assert_int_equal(urn_flow_send(n->node[0].tp, gid, &s[i].m), URN_MSG_PENDING);
	}
	assert_int_equal(urn_flow_count(n->node[0].tp), NODES);
}

/* DB-5: NO NODE ends the flow with the message: no address leaves anything behind. */
static void
no_node(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	n->node[0].neigh = -2;
	send_all(n);
	flow_net_run(n, 5 * MS);
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(s[i].code, URN_MSG_NO_NODE);
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	flow_net_end(n);
}

/* DB-1: messages are let go of, at once or while the addresses are being asked for: their flows go, too. */
static void
let_go(void **state)
{
	(void)state;
	for (int wait = 0; wait < 2; wait++) {
		struct flow_net *n = flow_net_new(2, 1);

		n->node[0].neigh = -1;
		send_all(n);
		flow_net_run(n, wait ? 3 * MS : 0);
		assert_int_equal(urn_flow_count(n->node[0].tp), NODES);
		for (unsigned int i = 0; i < NODES; i++)
			urn_flow_forget(n->node[0].tp, &s[i].m);
		flow_net_run(n, 20 * MS);
		assert_int_equal(urn_flow_count(n->node[0].tp), 0);
		assert_int_equal(s[0].answers, 0);
		flow_net_end(n);
	}
}

/* A node that never answered leaves nothing behind; one that did keeps its flow, which others will use. */
static void
unreachable(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent known;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &known);
	flow_net_until(n, &known, MS);
	assert_int_equal(known.code, URN_MSG_DONE);
	flow_sent_free(&known);
	n->cut = true;
	for (unsigned int i = 0; i < 2; i++) {
		uint8_t gid[16];

		memcpy(gid, n->node[1].gid, 16);
		gid[14] = (uint8_t)(i + 7);
		memset(&s[i], 0, sizeof(s[i]));
		s[i].m = (struct urn_flow_msg){.data = nothing, .qid = flow_qid(0)};
		assert_int_equal(urn_flow_send(n->node[0].tp, gid, &s[i].m), URN_MSG_PENDING);
	}
	flow_net_until(n, &s[0], 5000 * MS);
	flow_net_until(n, &s[1], 5000 * MS);
	assert_int_equal(s[0].code, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	flow_net_run(n, 5 * MS);
	assert_int_equal(urn_flow_count(n->node[0].tp), 1);
	/* The flow that is left is the one that was answered: its next message needs no new one. */
	n->cut = false;
	flow_send(n, 0, 1, flow_qid(0), 64, 2, &known);
	assert_int_equal(urn_flow_count(n->node[0].tp), 1);
	flow_net_until(n, &known, MS);
	assert_int_equal(known.code, URN_MSG_DONE);
	flow_sent_free(&known);
	flow_net_end(n);
}

/* DB-7: the message after NO NODE or UNREACHABLE finds the node once it is there, and is delivered once. */
static void
found_later(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent m;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		n->node[0].neigh = i % 2 ? 0 : -2;
		flow_send(n, 0, 1, flow_qid(0), 64, i + 1, &m);
		flow_net_until(n, &m, 1000 * MS);
		assert_int_equal(m.code, i % 2 ? URN_MSG_DONE : URN_MSG_NO_NODE);
		assert_int_equal(n->node[1].got_n, (i + 1) / 2);
		flow_sent_free(&m);
		n->node[0].tp->mac_gen++;
		flow_net_run(n, i % 4 * MS);
	}
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_node),
		cmocka_unit_test(let_go),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(found_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
