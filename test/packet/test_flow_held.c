/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: messages beyond what an owner may have waiting (doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* DB-5: messages of an owner beyond the bound are held, and a message of another owner overtakes
 * them. */
static void
owners_are_bounded(void **state)
{
	enum { MESSAGES = 2 * URN_FLOW_WAITING + 44 };
	static struct flow_sent s[MESSAGES], t;
	static const int other = 1;
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_flow *f;
	uint32_t at = 0;

	(void)state;
	n->node[0].neigh = -1;
	for (unsigned int i = 0; i < MESSAGES; i++)
		assert_int_equal(flow_send(n, 0, 1, flow_qid(0), 64, i + 1, &s[i]),
				 URN_MSG_PENDING);
	f = s[0].m.flow;
	assert_int_equal(f->held->n, MESSAGES - URN_FLOW_WAITING);
	memset(&t, 0, sizeof(t));
	t.m.data = (const uint8_t *)"1234";
	t.m.len = 4;
	t.m.qid = flow_qid(1);
	for (unsigned int i = 0; i < 16; i++) { /* an owner of another bucket */
		t.m.owner = &other + 1000 * i;
		assert_int_equal(urn_flow_send(n->node[0].tp, n->node[1].gid, &t.m),
				 URN_MSG_PENDING);
		if (t.m.state == URN_FLOW_MSG_QUEUED)
			break;
		urn_flow_forget(n->node[0].tp, &t.m);
	}
	assert_int_equal(t.m.state, URN_FLOW_MSG_QUEUED);
	n->node[0].neigh = 0;
	flow_net_run(n, 10 * MS);
	assert_int_equal(t.code, URN_MSG_DONE);
	assert_null(f->held);
	assert_int_equal(n->node[1].got_n, MESSAGES + 1);
	while (n->node[1].got[at].len != 4)
		at++;
	assert_true(at <= URN_FLOW_WAITING);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
	flow_net_end(n);
}

/* A message that is held can be let go, and fails with its flow. */
static void
held_messages_end(void **state)
{
	enum { MESSAGES = URN_FLOW_WAITING + 8 };
	static struct flow_sent s[MESSAGES];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	n->node[0].neigh = -1;
	for (unsigned int i = 0; i < MESSAGES; i++)
		assert_int_equal(flow_send(n, 0, 1, flow_qid(0), 64, i + 1, &s[i]),
				 URN_MSG_PENDING);
	urn_flow_forget(n->node[0].tp, &s[MESSAGES - 1].m);
	urn_flow_forget(n->node[0].tp, &s[0].m); /* one that is held moves up */
	assert_int_equal(s[URN_FLOW_WAITING].m.state, URN_FLOW_MSG_QUEUED);
	n->node[0].neigh = -2;
	flow_net_run(n, 10 * MS);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		assert_int_equal(s[i].answers, i != 0 && i != MESSAGES - 1);
		assert_int_equal(s[i].code, s[i].answers ? URN_MSG_NO_NODE : 0);
		flow_sent_free(&s[i]);
	}
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_bounded),
		cmocka_unit_test(held_messages_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
