/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: refusals of messages (doorbell.md DB-5; doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* DB-5: each refusal has its code; nothing is delivered; the code survives lost acknowledgements. */
static void
refusals(void **state)
{
	static const uint8_t code[] = {URN_MSG_QUEUE_FULL, URN_MSG_NO_QUEUE, URN_MSG_TOO_LONG,
				       URN_MSG_NOT_PERMITTED, URN_MSG_BUSY};
	struct flow_net *n = flow_net_new(2, 5);
	struct flow_sent s[2];

	(void)state;
	for (unsigned int i = 0; i < 2 * RTE_DIM(code); i++) {
		n->node[1].refuse[1] = code[i / 2];
		n->lose_opcode = URN_FLOW_ACK;
		flow_send(n, 0, 1, flow_qid(1), i % 2 ? 9000 : 100, 7, &s[0]);
		flow_send(n, 0, 1, flow_qid(0), 100, 8, &s[1]);
		flow_net_run(n, 5 * MS);
		assert_int_equal(s[0].answers, 0);
		n->lose_opcode = 0;
		flow_net_until(n, &s[0], 3000 * MS);
		flow_net_until(n, &s[1], 3000 * MS);
		assert_int_equal(s[0].code, code[i / 2]);
		assert_int_equal(s[1].code, URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n, i + 1);
		flow_sent_free(&s[0]);
		flow_sent_free(&s[1]);
	}
	flow_net_end(n);
}

/* DB-5: more packets with refusals than a receiver remembers, and holes between them: each message has its code all the same. */
static void
many_refusals(void **state)
{
	static struct flow_sent s[128];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->node[1].refuse[0] = URN_MSG_TOO_LONG;
		n->lose = 30;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send(n, 0, 1, flow_qid(0), 900, i + 1, &s[i]);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			flow_net_until(n, &s[i], 3000 * MS);
			assert_int_equal(s[i].code, URN_MSG_TOO_LONG);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, 0);
		flow_net_end(n);
	}
}

/* A long message that is refused needs one place among the refusals, however many of its parts are on their way. */
static void
long_refusal(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	n->node[1].admit = URN_MSG_TOO_LONG;
	flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, &s);
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_TOO_LONG);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_REFUSED_RX), 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ROOM), 0);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* DB-5: a full queue delays no message to another queue, however often it refuses. */
static void
full_queue_holds_nobody(void **state)
{
	enum { OTHERS = 63 };
	static struct flow_sent full[64], s[OTHERS];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	n->node[1].refuse[0] = URN_MSG_QUEUE_FULL;
	for (unsigned int round = 0; round < 50; round++) {
		uint64_t began = n->now;

		for (unsigned int i = 0; i < 64; i++)
			flow_send(n, 0, 1, flow_qid(0), 64, 0xffff, &full[i]);
		for (unsigned int i = 0; i < OTHERS; i++)
			assert_int_equal(flow_send(n, 0, 1, flow_qid(1 + i % 62), 64, i + 1, &s[i]), URN_MSG_PENDING);
		for (unsigned int i = 0; i < OTHERS; i++) {
			flow_net_until(n, &s[i], 100 * MS);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_true(n->now - began < 4 * n->delay + 20 * FLOW_NET_STEP);
		for (unsigned int i = 0; i < 64; i++) {
			flow_net_until(n, &full[i], 100 * MS);
			assert_int_equal(full[i].code, URN_MSG_QUEUE_FULL);
			flow_sent_free(&full[i]);
		}
	}
	assert_int_equal(n->node[1].got_n, 50 * OTHERS);
	flow_net_end(n);
}

/*
 * DB-5: a queue of an engine that the node does not have is no queue, for short messages and long
 * ones, on any wire. The node keeps nothing of them, and its other queues take messages meanwhile.
 */
static void
no_such_engine(void **state)
{
	static const uint32_t len[] = {64, 900, 9000, 100000};
	static struct flow_sent s[40], good;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = seed % 4 * 10;
		n->twice = seed % 3 * 10;
		n->late = seed % 2 * 20;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send(n, 0, 1, flow_qid(0) | (uint64_t)(1 + i % 2) << 16, len[i % 4],
				  i + 1, &s[i]);
		flow_send(n, 0, 1, flow_qid(0), 64, 99, &good);
		flow_net_until(n, &good, 3000 * MS);
		assert_int_equal(good.code, URN_MSG_DONE);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			if (s[i].m.strand)
				flow_net_until(n, &s[i], 3000 * MS);
			if (s[i].answers)
				assert_int_equal(s[i].code, URN_MSG_NO_QUEUE);
			flow_sent_free(&s[i]);
		}
		assert_true(flow_net_count(n, 0, URN_C_FLOW_REFUSED_TX) > 10);
		assert_int_equal(n->node[1].got_n, 1);
		assert_int_equal(urn_flow_count(n->node[1].tp), 1);
		flow_sent_free(&good);
		flow_net_end(n);
	}
}

/* DB-7: a message that was sent before the node restarted is answered RESTARTED, although the
 * engine is missing now. */
static void
no_such_engine_any_more(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	n->lose_opcode = URN_FLOW_ACK;
	flow_send(n, 0, 1, flow_qid(0) | 1ull << 16, 64, 1, &s);
	flow_net_run(n, 5 * MS);
	flow_net_restart(n, 1);
	n->lose_opcode = 0;
	flow_net_until(n, &s, 3000 * MS);
	assert_int_equal(s.code, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
	flow_sent_free(&s);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_such_engine), cmocka_unit_test(no_such_engine_any_more),
		cmocka_unit_test(refusals),	  cmocka_unit_test(many_refusals),
		cmocka_unit_test(long_refusal),	  cmocka_unit_test(full_queue_holds_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
