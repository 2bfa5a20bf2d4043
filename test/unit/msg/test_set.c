/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-1: register sets come and go by the thousand; numbers of ended ones lead nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QID URN_MSG_QID(5, 0, 7)

/* A slot's next set has another number, never with generation 0: old messages find no queue. */
static void
a_reopened_slot_has_a_new_number(void **state)
{
	uint64_t old = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		rig_open(0, -1, 0);
		rig_configure(0, 0, 4, 64);
		assert_int_equal(urn_msg_qid_slot(rig_qid(0)), 0);
		assert_int_equal(urn_msg_qid_engine(rig_qid(0)), RIG_ENGINE);
		assert_true(rig_qid(0) >> 32 != 0 && !urn_msg_qid_is_named(rig_qid(0)));
		assert_true(rig_qid(0) != old);
		if (old)
			assert_int_equal(rig_deliver(old, 8, 1), URN_MSG_NO_QUEUE);
		assert_int_equal(rig_deliver(rig_qid(0), 8, 1), URN_MSG_DONE);
		old = rig_qid(0);
		rig_close(0);
		assert_int_equal(rig_deliver(old, 8, 1), URN_MSG_NO_QUEUE);
	}
}

/* Generations go around without a 0. */
static void
generations_are_never_zero(void **state)
{
	static const uint32_t start[] = {0,	     0x7ffffffd,     0x7ffffffe, 0x7fffffff,
					 0x80000000, UINT32_MAX - 1, UINT32_MAX};

	(void)state;
	for (unsigned int i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
		uint64_t before = 0;

		rig.regs->generation = start[i];
		if (rig.regs->slots.made != 0)
			rig.regs->slot[0].generation = 0; /* no set yet */
		for (uint32_t g = 0; g < 4; g++) {
			rig_open(0, -1, 0);
			assert_true((rig_qid(0) >> 32 & 0x7fffffff) != 0);
			assert_true(rig_qid(0) != before);
			before = rig_qid(0);
			rig_close(0);
		}
	}
}

/* After a restart numbers begin elsewhere. */
static void
seeds_give_other_generations(void **state)
{
	struct urn_msg_regs *r = urn_msg_regs_create(RIG_ENGINE, RIG_ENGINE, 4712);

	(void)state;
	assert_non_null(r);
	assert_true(r->generation != rig.regs->generation);
	urn_msg_regs_destroy(r);
}

/* A set that ends takes its message back from the flow. */
static void
a_set_ends_with_a_message_in_flight(void **state)
{
	uint64_t qid;

	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	qid = rig_qid(0);
	rig_send(0, 0, 8, QID);
	assert_int_equal(rig.held, 1);
	rig_close(0);
	assert_int_equal(rig.held, 0);
	assert_int_equal(rig_deliver(qid, 8, 1), URN_MSG_NO_QUEUE);
	rig_turn(1000000000);
	assert_int_equal(rig.sends, 1);
}

/* A set ends while its next try waits, or while it is in the schedule. */
static void
a_set_ends_while_it_waits(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_regs(0)->send.retries = 5;
	rig_regs(0)->send.retry_kinds = 0xff;
	rig_send(0, 0, 8, QID);
	rig_answer(0, URN_MSG_QUEUE_FULL);
	assert_int_equal(rig.tp->wheel.count, 1);
	rig_close(0);
	rig_turn(1000000000);
	assert_int_equal(rig.sends, 1);
	rig_open(1, -1, 0);
	rig_ring(1);
	rig_close(1);
	rig.refuse = URN_MSG_BUSY;
	rig_open(2, -1, 0);
	rig_send(2, 0, 8, QID);
	assert_int_equal(rig.tp->sched.n, 1);
	rig_close(2);
}

/* DB-1: all slots at once; idle sets are in no list. */
static void
as_many_as_slots(void **state)
{
	struct urn_msg_rset **set = calloc(URN_MSG_SLOTS, sizeof(struct urn_msg_rset *));
	struct urn_abi_msg_set *regs = calloc(1, sizeof(*regs));
	struct urn_msg_config cfg = {.share = rig.client[0], .regs = regs, .channel_fd = -1};
	struct urn_msg_rset *more;

	(void)state;
	assert_true(URN_MSG_SLOTS >= 4096);
	for (uint32_t i = 0; i < URN_MSG_SLOTS; i++)
		assert_int_equal(urn_msg_open(rig.regs, &cfg, &set[i]), 0);
	assert_int_equal(urn_msg_open(rig.regs, &cfg, &more), ENOSPC);
	assert_int_equal(urn_msg_count(rig.regs), URN_MSG_SLOTS);
	assert_int_equal(urn_msg_slots(rig.regs), URN_MSG_SLOTS);
	assert_int_equal(rig.tp->sched.n, 0);
	assert_int_equal(rig.tp->wheel.count, 0);
	assert_false(*urn_msg_untold_at(rig.regs));
	for (uint32_t i = 0; i < URN_MSG_SLOTS; i++)
		assert_true(urn_msg_ops.end(rig.tp, urn_msg_source(set[i])));
	free(set);
	free(regs);
}

static void
views_tell(void **state)
{
	struct urn_msg_view v;

	(void)state;
	rig_open(1, -1, 9);
	rig_configure(1, 64, 4, 128);
	rig_deliver(rig_qid(1), 8, 1);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[1], 5), 0);
	rig_send(1, 0, 8, QID);
	urn_msg_look(rig.regs, rig.set[1], &v);
	assert_true(v.qid == rig_qid(1));
	assert_int_equal(v.name, 5);
	assert_int_equal(v.entries, 4);
	assert_int_equal(v.entry_size, 128);
	assert_int_equal(v.tail, 1);
	assert_int_equal(v.head, 0);
	assert_int_equal(v.state, URN_MSGQ_OPEN);
	assert_int_equal(v.code, URN_MSG_PENDING);
	assert_int_equal(v.sent, 1);
	assert_int_equal(v.arena, RIG_ARENA);
	assert_ptr_equal(v.share, rig.client[1]);
	rig_answer(1, URN_MSG_NO_NODE);
	urn_msg_look(rig.regs, rig.set[1], &v);
	assert_int_equal(v.code, URN_MSG_NO_NODE);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_reopened_slot_has_a_new_number),
		T(generations_are_never_zero),
		T(seeds_give_other_generations),
		T(a_set_ends_with_a_message_in_flight),
		T(a_set_ends_while_it_waits),
		T(as_many_as_slots),
		T(views_tell),
	};

	return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
