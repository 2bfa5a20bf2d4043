/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the empty strand that a flow keeps (doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* A message of a client to node 1, until it is answered. */
static void
send_one(struct flow_net *n, struct urn_tp_share *owner)
{
	struct flow_sent s;

	n->owner = owner;
	assert_int_equal(flow_send(n, 0, 1, flow_qid(0), 64, 1, &s), URN_MSG_PENDING);
	flow_net_until(n, &s, MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
}

/* One message at a time: no strand is made or given back. */
static void
stays(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	const struct urn_flows *fl = n->node[0].tp->flows;
	struct urn_tp_share client[2] = {0};
	const struct urn_flow_strand *l;

	(void)state;
	send_one(n, &client[0]);
	l = fl->last->strand;
	assert_non_null(l);
	for (unsigned int i = 0; i < 3; i++) {
		send_one(n, &client[0]);
		assert_ptr_equal(fl->last->strand, l);
		assert_int_equal(fl->spare_strands_n, 0);
	}
	/* Another client's takes its place, and its memory. */
	send_one(n, &client[1]);
	assert_ptr_equal(fl->last->strand, l);
	assert_ptr_equal(l->user.source.share, &client[1]);
	assert_int_equal(fl->spare_strands_n, 0);
	flow_net_end(n);
}

/* The client goes, and its strand stays: nothing looks at the client again. */
static void
client_goes(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_tp_share *client, other = {0};

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		client = calloc(1, sizeof(*client));
		assert_non_null(client);
		send_one(n, client);
		memset(client, 0xee, sizeof(*client));
		if (round == 1) { /* another one with its address */
			memset(client, 0, sizeof(*client));
			send_one(n, client);
		}
		free(client);
		if (round)
			send_one(n, &other);
		n->cut = true; /* a failure of the flow, too */
		n->owner = &other;
		for (unsigned int i = 0; i < 3; i++) {
			struct flow_sent s;

			flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
			flow_net_until(n, &s, 5000 * MS);
			assert_int_equal(s.code, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
			flow_sent_free(&s);
		}
		n->cut = false;
	}
	assert_int_equal(n->node[0].tp->nobodys.work + other.work, 0);
	for (unsigned int i = 0; i < 3; i++) {
		n->now += 50000 * MS;
		flow_net_run(n, 20 * MS);
	}
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	flow_net_end(n);
}

/* DB-6: flows that two clients used in turn cost at most 1 KiB each with the strands that are kept.
 */
static void
memory_of_strands(void **state)
{
	enum { FLOWS = 4000, KEPT = 32768 };
	struct flow_net *n = flow_net_new(2, 1);
	static struct urn_tp_share client[2];
	static struct flow_sent s[FLOWS];
	uint8_t gid[16];
	size_t before;

	(void)state;
	memcpy(gid, n->node[1].gid, 16);
	n->node[0].neigh = -1;
	before = mallinfo2().uordblks;
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < FLOWS; i++) {
			memcpy(gid + 13, &i, 2);
			s[i].m = (struct urn_flow_msg){.qid = flow_qid(0),
						       .owner = &client[round % 2]};
			assert_int_equal(urn_flow_send(n->node[0].tp, gid, &s[i].m),
					 URN_MSG_PENDING);
		}
		for (uint32_t i = 0; round < 2 && i < FLOWS; i++)
			urn_flow_forget(n->node[0].tp, &s[i].m);
	}
	print_message("%zu bytes a flow\n", (mallinfo2().uordblks - before) / FLOWS);
	assert_true(mallinfo2().uordblks - before <= FLOWS * 1024u + KEPT);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays),
		cmocka_unit_test(client_goes),
		cmocka_unit_test(memory_of_strands),
	};

	return cmocka_run_group_tests_name("packet_flow_strand", tests, NULL, NULL);
}
