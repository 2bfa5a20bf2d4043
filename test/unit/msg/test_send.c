/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-2, DB-3, DB-5, DB-7: doorbells, their answers, and further tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <string.h>

#define US 1000ull /* ns */
#define MS 1000000ull
#define QID URN_MSG_QID(5, 0, 7)

/* Set a retry policy in the line of set 0. */
static void
policy(uint16_t retries, uint32_t us, uint8_t kinds)
{
	struct urn_abi_msg_send *l = &rig_regs(0)->send;

	l->retries = retries;
	l->retry_us = us;
	l->retry_kinds = kinds;
}

/* DB-3: a doorbell gives the message to a flow, with target and source; DB-2: the status names its
 * seq. */
static void
a_message_is_sent_and_answered(void **state)
{
	uint8_t gid[16];
	struct rig_msg *r;

	(void)state;
	rig_open(0, -1, 0);
	assert_int_equal(rig_code(0), URN_MSG_IDLE);
	rig_send(0, 64, 100, QID);
	rig_gid(gid, 9);
	r = rig_held(0);
	assert_non_null(r);
	assert_memory_equal(r->gid, gid, 16);
	assert_ptr_equal(r->m->data, rig_arena(0) + 64);
	assert_int_equal(r->m->len, 100);
	assert_true(r->m->qid == QID);
	assert_true(r->m->src_qid == rig_qid(0));
	assert_ptr_equal(r->m->owner, rig.client[0]);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	assert_int_equal(rig_answered_seq(0), 1);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_code(0), URN_MSG_DONE);
	assert_int_equal(rig_answered_seq(0), 1);
	rig_send(0, 0, 0, URN_MSG_NAME(3));
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	assert_int_equal(rig_answered_seq(0), 2);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_answered_seq(0), 2);
	assert_int_equal(rig_count(URN_C_MSG_SENT), 2);
	assert_int_equal(rig_count(URN_C_MSG_DONE), 2);
}

/* DB-2: a ring without a new seq sends nothing. */
static void
a_seq_is_sent_once(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_ring(0);
	rig_turn(1);
	assert_int_equal(rig.sends, 0);
	rig_send(0, 0, 8, QID);
	rig_answer(0, URN_MSG_DONE);
	rig_ring(0);
	rig_turn(2);
	assert_int_equal(rig.sends, 1);
}

/* DB-2: ringing while PENDING is refused and counted, and the status stays; the message stays what
 * it was. */
static void
a_second_doorbell_waits_for_the_first(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_send(0, 0, 8, QID);
	rig_send(0, 16, 9, QID);
	assert_int_equal(rig.sends, 1);
	assert_int_equal(rig_held(0)->m->len, 8);
	assert_int_equal(rig_answered_seq(0), 1);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	assert_int_equal(rig_count(URN_C_MSG_RUNG_PENDING), 1);
	rig_ring(0); /* for a configuration, say: the write was refused already */
	rig_turn(1);
	assert_int_equal(rig_count(URN_C_MSG_RUNG_PENDING), 1);
	rig_send(0, 16, 9, QID);
	assert_int_equal(rig_count(URN_C_MSG_RUNG_PENDING), 2);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_answered_seq(0), 1);
	rig_ring(0); /* for ARM INTR, say: a refused write is not sent */
	rig_turn(3);
	assert_int_equal(rig.sends, 1);
	assert_int_equal(rig_answered_seq(0), 1);
	rig_send(0, 16, 9, QID);
	assert_int_equal(rig_answered_seq(0), 4);
	rig_answer(0, URN_MSG_DONE);
}

/* DB-2: every write while PENDING is counted, however far its seq jumps. */
static void
a_seq_that_jumps_is_counted(void **state)
{
	struct urn_abi_msg_send *line;

	(void)state;
	rig_open(0, -1, 0);
	rig_send(0, 0, 8, QID);
	line = &rig_regs(0)->send;
	for (uint32_t i = 1; i <= 3; i++) {
		atomic_store(&line->seq, 1 + 4096 * i);
		rig_ring(0);
		rig_turn(i);
	}
	assert_int_equal(rig_count(URN_C_MSG_RUNG_PENDING), 3);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_answered_seq(0), 1);
}

/* DB-5: a doorbell that makes no sense has its code at once, and no flow sees its message. */
static void
nonsense_is_bad_doorbell(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t size;
		uint64_t qid;
	} bad[] = {
		{RIG_ARENA, 1, QID},
		{RIG_ARENA - 7, 8, QID},
		{UINT64_MAX, 2, QID},
		{UINT64_MAX - 7, 8, QID},
		{0, RIG_ARENA + 1, QID},
		{0, UINT32_MAX, QID},
		{0, 8, 0},
		{0, 8, URN_MSG_QID(0, 0, 7)}, /* no generation */
		{0, 8, QID | 1ull << 20},     /* bits that no number has */
		{0, 8, QID | 1ull << 31},
		{0, 8, URN_MSG_NAME(3) | 1ull << 32}, /* bits that no name has */
	};

	(void)state;
	rig_open(0, -1, 0);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig_send(0, bad[i].addr, bad[i].size, bad[i].qid);
		assert_int_equal(rig_code(0), URN_MSG_BAD_DOORBELL);
		assert_int_equal(rig_answered_seq(0), i + 1);
	}
	assert_int_equal(rig.sends, 0);
	rig_send(0, RIG_ARENA, 0, QID); /* nothing, at the end, is a message */
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_answer(0, URN_MSG_DONE);
	rig_send(0, RIG_ARENA - 8, 8, QID);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_answer(0, URN_MSG_DONE);
}

/* DB-5: no node is no target, nor is a group of nodes, which nobody would answer for. */
static void
no_node_is_bad_doorbell(void **state)
{
	static const struct {
		uint8_t node[16];
		bool good;
	} nodes[] = {
		{{0}, false},
		{{0xff, 2, [15] = 1}, false},
		{{[10] = 0xff, 0xff, 224, 0, 0, 1}, false},
		{{[10] = 0xff, 0xff, 239, 1, 2, 3}, false},
		{{[10] = 0xff, 0xff, 255, 255, 255, 255}, false},
		{{[10] = 0xff, 0xff, 223, 255, 255, 255}, true},
		{{[12] = 224}, true}, /* no IPv4 address */
		{{0xfe, 0x80, [15] = 1}, true},
	};
	struct urn_abi_msg_send *l = &rig_regs(0)->send;

	(void)state;
	rig_open(0, -1, 0);
	l->qid = QID;
	for (unsigned int i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		memcpy(l->node, nodes[i].node, 16);
		atomic_store(&l->seq, 7 + i);
		rig_ring(0);
		rig_turn(1 + i);
		assert_int_equal(rig_code(0),
				 nodes[i].good ? URN_MSG_PENDING : URN_MSG_BAD_DOORBELL);
		assert_int_equal(rig_answered_seq(0), 7 + i);
		if (nodes[i].good)
			rig_answer(0, URN_MSG_DONE);
	}
}

/* A client that scribbles over its line after the doorbell was taken changes nothing. */
static void
the_line_is_read_once(void **state)
{
	uint8_t gid[16];

	(void)state;
	rig_open(0, -1, 0);
	policy(2, 50, URN_MSG_RETRY_QUEUE_FULL);
	rig_send(0, 0, 8, QID);
	memset((char *)&rig_regs(0)->send + 4, 0xff, sizeof(rig_regs(0)->send) - 4);
	memset(&rig_regs(0)->sstat, 0xff, sizeof(rig_regs(0)->sstat));
	rig_answer(0, URN_MSG_QUEUE_FULL);
	rig_turn(1 * MS);
	assert_int_equal(rig.sends, 2);
	rig_gid(gid, 9);
	assert_memory_equal(rig_held(0)->gid, gid, 16);
	assert_int_equal(rig_held(0)->m->len, 8);
	assert_true(rig_held(0)->m->qid == QID);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_answered_seq(0), 1);
	assert_int_equal(rig_code(0), URN_MSG_DONE);
}

/* DB-5: kinds that the policy names are tried again, `retries` times, retry_us apart; the last code
 * stands. */
static void
errors_are_tried_again(void **state)
{
	uint64_t now = 0;

	(void)state;
	rig_open(0, -1, 0);
	policy(3, 50, URN_MSG_RETRY_QUEUE_FULL | URN_MSG_RETRY_NO_QUEUE);
	rig_send(0, 0, 8, QID);
	for (unsigned int i = 1; i <= 3; i++) {
		rig_answer(0, i == 2 ? URN_MSG_NO_QUEUE : URN_MSG_QUEUE_FULL);
		assert_int_equal(rig_code(0), URN_MSG_PENDING);
		assert_int_equal(rig_answered_seq(0), 1);
		rig_turn(now + 49 * US);
		assert_int_equal(rig.sends, i);
		now += 60 * US;
		rig_turn(now);
		assert_int_equal(rig.sends, i + 1);
	}
	assert_int_equal(rig_count(URN_C_MSG_RETRIES), 3);
	rig_answer(0, URN_MSG_NO_QUEUE);
	assert_int_equal(rig_code(0), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_count(URN_C_MSG_NO_QUEUE), 1);
	assert_int_equal(rig_count(URN_C_MSG_QUEUE_FULL), 0);
	rig_turn(now + 1000 * MS);
	assert_int_equal(rig.sends, 4);
}

/* DB-5: kinds that the policy does not name end the message; some have no kind at all. */
static void
other_errors_are_final(void **state)
{
	static const uint8_t code[] = {URN_MSG_NO_NODE, URN_MSG_TOO_LONG, URN_MSG_NOT_PERMITTED,
				       URN_MSG_UNREACHABLE};

	(void)state;
	rig_open(0, -1, 0);
	for (unsigned int i = 0; i < sizeof(code); i++) {
		policy(9, 50, URN_MSG_RETRY_QUEUE_FULL);
		rig_send(0, 0, 8, QID);
		rig_answer(0, code[i]);
		assert_int_equal(rig_code(0), code[i]);
	}
	policy(9, 50, 0xff);
	rig_send(0, 0, 8, QID);
	rig_answer(0, URN_MSG_TOO_LONG);
	assert_int_equal(rig_code(0), URN_MSG_TOO_LONG);
	assert_int_equal(rig.sends, 5);
}

/* DB-7: a message that may be there is not sent again, whatever the policy says. */
static void
may_be_there_is_final(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	policy(URN_MSG_NO_END, 50, 0xff);
	rig_send(0, 0, 8, QID);
	rig_answer(0, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	assert_int_equal(rig_code(0), URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	rig_turn(1000 * MS);
	assert_int_equal(rig.sends, 1);
	assert_int_equal(rig_count(URN_C_MSG_MAY_BE_THERE), 1);
	assert_int_equal(rig_count(URN_C_MSG_UNREACHABLE), 1);
}

/* Tries without end go on. */
static void
tries_without_end(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	policy(URN_MSG_NO_END, 10, URN_MSG_RETRY_QUEUE_FULL);
	rig_send(0, 0, 8, QID);
	for (unsigned int i = 0; i < 70000; i++) {
		rig_answer(0, URN_MSG_QUEUE_FULL);
		rig_turn(rig.tp->now + 20 * US);
	}
	assert_int_equal(rig.sends, 70001);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_code(0), URN_MSG_DONE);
}

/* Time between tries: at least 10 us, at most 1 s, and 100 us for 0. */
static void
time_between_tries_is_bounded(void **state)
{
	static const struct {
		uint32_t us, least, most;
	} t[] = {{0, 99, 110},
		 {1, 9, 20},
		 {10, 9, 20},
		 {5000, 4999, 5100},
		 {UINT32_MAX, 999000, 1010000}};

	(void)state;
	rig_open(0, -1, 0);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t now = rig.tp->now;

		policy(1, t[i].us, URN_MSG_RETRY_QUEUE_FULL);
		rig_send(0, 0, 8, QID);
		rig_answer(0, URN_MSG_QUEUE_FULL);
		rig_turn(now + t[i].least * US);
		assert_null(rig_held(0));
		rig_turn(now + t[i].most * US);
		assert_non_null(rig_held(0));
		rig_answer(0, URN_MSG_DONE);
	}
}

/* A flow without room: the message waits in its client's turns, and that is no try. */
static void
a_busy_flow_is_waited_for(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	policy(1, 10, 0xff);
	rig.refuse = URN_MSG_BUSY;
	rig_send(0, 0, 8, QID);
	for (unsigned int i = 1; i < 500; i++)
		rig_turn(i * MS);
	assert_int_equal(rig.sends, 500);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	assert_int_equal(rig_count(URN_C_MSG_WAITED), 1);
	assert_int_equal(rig_count(URN_C_MSG_RETRIES), 0);
	rig.refuse = 0;
	rig_turn(501 * MS);
	assert_non_null(rig_held(0));
	rig_turn(502 * MS);
	assert_int_equal(rig.sends, 501); /* the set waits no more */
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_code(0), URN_MSG_DONE);
}

/* ... but not for ever: then BUSY is the error, which the policy may name. */
static void
a_busy_flow_is_given_up(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	policy(1, 10, URN_MSG_RETRY_BUSY);
	rig.refuse = URN_MSG_BUSY;
	rig_send(0, 0, 8, QID);
	rig_turn(900 * MS);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_turn(1100 * MS);
	assert_int_equal(rig_count(URN_C_MSG_RETRIES), 1);
	rig_turn(1200 * MS);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_turn(2300 * MS);
	assert_int_equal(rig_code(0), URN_MSG_BUSY);
	assert_int_equal(rig_count(URN_C_MSG_BUSY), 1);
	assert_int_equal(rig.tp->sched.n, 0);
}

/* An error that the flow tells at once is like one that it tells later. */
static void
a_flow_may_refuse_at_once(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig.refuse = URN_MSG_BAD_DOORBELL;
	rig_send(0, 0, 8, QID);
	assert_int_equal(rig_code(0), URN_MSG_BAD_DOORBELL);
	rig.refuse = 0;
	rig_send(0, 0, 8, QID);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
	rig_answer(0, URN_MSG_DONE);
}

/* A named queue is the source by its name. */
static void
the_source_is_named(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[0], 42), 0);
	rig_send(0, 0, 8, QID);
	assert_true(rig_held(0)->m->src_qid == URN_MSG_NAME(42));
	rig_answer(0, URN_MSG_DONE);
}

/* DB-10: each set sends for itself; one whose message waits holds up no other. */
static void
sets_send_apart(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		rig_open(i, -1, 0);
	policy(URN_MSG_NO_END, 10, URN_MSG_RETRY_QUEUE_FULL);
	for (unsigned int i = 0; i < 64; i++)
		rig_send(i, 0, 8, QID);
	for (unsigned int k = 0; k < 100; k++) {
		rig_answer(0, URN_MSG_QUEUE_FULL);
		for (unsigned int i = 1; i < 64; i++) {
			rig_answer(i, URN_MSG_DONE);
			rig_send(i, 0, 8, QID);
		}
		rig_turn(rig.tp->now + 20 * US);
	}
	assert_int_equal(rig_count(URN_C_MSG_DONE), 6300);
	assert_int_equal(rig_code(0), URN_MSG_PENDING);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_message_is_sent_and_answered),
		T(a_seq_is_sent_once),
		T(a_second_doorbell_waits_for_the_first),
		T(a_seq_that_jumps_is_counted),
		T(nonsense_is_bad_doorbell),
		T(no_node_is_bad_doorbell),
		T(the_line_is_read_once),
		T(errors_are_tried_again),
		T(other_errors_are_final),
		T(may_be_there_is_final),
		T(tries_without_end),
		T(time_between_tries_is_bounded),
		T(a_busy_flow_is_waited_for),
		T(a_busy_flow_is_given_up),
		T(a_flow_may_refuse_at_once),
		T(the_source_is_named),
		T(sets_send_apart),
	};

	return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
