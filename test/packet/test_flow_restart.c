/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: repeats that wait in the network while the node restarts (doorbell.md DB-7; wire.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/*
 * DB-7: the first transmission is delivered, its acknowledgement is lost with the node, and the repeat waits in a
 * switch until the node is up again: the new life does not deliver the message a second time.
 */
static void
held_repeat(void **state)
{
	(void)state;
	for (uint64_t held = 10; held < URN_FLOW_AGE_REPEAT; held += 40) {
		struct flow_net *n = flow_net_new(2, held);
		struct flow_sent s;

		n->lose_opcode = URN_FLOW_ACK;
		flow_send(n, 0, 1, URN_MSG_NAME(5), 64, 42, &s);
		flow_net_run(n, MS / 10);
		assert_int_equal(n->node[1].got_n, 1);
		n->delay = held * MS;
		n->lose_opcode = 0;
		flow_net_run(n, 8 * MS);
		assert_true(n->wire_n > 0);
		flow_net_restart(n, 1);
		flow_net_until(n, &s, 3000 * MS);
		assert_int_equal(s.code, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
		assert_int_equal(n->node[1].got_n, 1);
		flow_sent_free(&s);
		flow_net_end(n);
	}
}

/* A first transmission is no repeat: a node that was started a moment ago takes it, however long the frame is under way. */
static void
first_contact(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	flow_net_restart(n, 1);
	flow_net_run(n, 2 * MS);
	flow_send(n, 0, 1, flow_qid(1), 64, 42, &s);
	flow_net_until(n, &s, 20 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_repeat),
		cmocka_unit_test(first_contact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
