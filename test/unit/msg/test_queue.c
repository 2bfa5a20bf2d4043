/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-2, DB-4, DB-5: configurations of receive queues, and messages that come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define R(i) rig_regs(i)

static const struct urn_abi_msg_entry *
entry(unsigned int i, uint64_t base, uint32_t n, uint32_t entry_size)
{
	return (const void *)(rig_arena(i) + base + (uint64_t)n * entry_size);
}

static uint32_t
tail(unsigned int i)
{
	return atomic_load(&R(i)->rstat.tail);
}

/* DB-4: an entry starts with length, source node and source queue; then the tail counts it. */
static void
a_message_is_deposited(void **state)
{
	const struct urn_abi_msg_entry *e;
	uint8_t gid[16], bytes[90];

	(void)state;
	rig_open(0, -1, 0);
	assert_int_equal(rig_configure(0, 128, 4, 128), URN_MSGQ_OPEN);
	assert_int_equal(rig_deliver(rig_qid(0), 90, 'x'), URN_MSG_DONE);
	assert_int_equal(tail(0), 1);
	e = entry(0, 128, 0, 128);
	rig_gid(gid, 1);
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(e->len, 90);
	assert_int_equal(e->flags, 0);
	assert_true(e->qid == 77);
	assert_memory_equal(e->node, gid, 16);
	assert_memory_equal(e + 1, bytes, 90);
	assert_int_equal(((const uint8_t *)(e + 1))[90], 0); /* no byte more */
	assert_int_equal(rig_deliver(rig_qid(0), 0, 0), URN_MSG_DONE);
	assert_int_equal(entry(0, 128, 1, 128)->len, 0);
	assert_int_equal(rig_count(URN_C_MSG_DELIVERED), 2);
}

/* DB-4, DB-5: every entry is usable, a full queue says so, and goes on where the reader is done. */
static void
a_full_queue_says_so(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(rig_deliver(rig_qid(0), 8, (uint8_t)i), URN_MSG_DONE);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 9), URN_MSG_QUEUE_FULL);
	assert_int_equal(tail(0), 4);
	assert_int_equal(atomic_load(&R(0)->rstat.refused), 1);
	assert_int_equal(rig_count(URN_C_DROP_MSG_FULL), 1);
	assert_int_equal(*(const uint8_t *)(entry(0, 0, 0, 64) + 1), 0); /* the oldest is whole */
	atomic_store(&R(0)->ctrl.head, 1);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 5), URN_MSG_DONE);
	assert_int_equal(*(const uint8_t *)(entry(0, 0, 0, 64) + 1), 5);
	assert_int_equal(*(const uint8_t *)(entry(0, 0, 1, 64) + 1), 1);
}

/* Head and tail run free over 2^32. */
static void
head_and_tail_run_free(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	rig.set[0]->tail = UINT32_MAX - 1;
	atomic_store(&R(0)->ctrl.head, UINT32_MAX - 1);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(rig_deliver(rig_qid(0), 8, 0), URN_MSG_DONE);
	assert_int_equal(tail(0), 2);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 0), URN_MSG_QUEUE_FULL);
}

/* DB-5: too long has its code; the longest that fits is taken. */
static void
too_long_says_so(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 128);
	assert_int_equal(rig_deliver(rig_qid(0), 97, 0), URN_MSG_TOO_LONG);
	assert_int_equal(rig_deliver(rig_qid(0), UINT16_MAX, 0), URN_MSG_TOO_LONG);
	assert_int_equal(tail(0), 0);
	assert_int_equal(rig_deliver(rig_qid(0), 96, 0), URN_MSG_DONE);
	assert_int_equal(atomic_load(&R(0)->rstat.refused), 2);
	assert_int_equal(rig_count(URN_C_DROP_MSG_LONG), 2);
}

/* DB-5: permission by the first bits of the sender's GID. */
static void
permission_by_prefix(void **state)
{
	static const struct {
		uint8_t byte0, byte15, bits;
		uint8_t code;
	} t[] = {
		{0xfd, 1, 128, URN_MSG_DONE},	     {0xfd, 0, 128, URN_MSG_NOT_PERMITTED},
		{0xfd, 0, 127, URN_MSG_DONE},	     {0xfd, 2, 127, URN_MSG_NOT_PERMITTED},
		{0xfd, 99, 8, URN_MSG_DONE},	     {0xff, 1, 6, URN_MSG_DONE},
		{0xff, 1, 7, URN_MSG_NOT_PERMITTED}, {0, 0, 0, URN_MSG_DONE},
		{0x80, 0, 1, URN_MSG_DONE},	     {0x7f, 1, 1, URN_MSG_NOT_PERMITTED},
	};
	unsigned int refused = 0;

	(void)state;
	rig_open(0, -1, 0);
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct urn_abi_msg_conf *c = &R(0)->conf;

		memset(c->permit, 0, sizeof(c->permit));
		c->permit[0] = t[i].byte0;
		c->permit[15] = t[i].byte15;
		c->permit_bits = t[i].bits;
		assert_int_equal(rig_configure(0, 0, 0, 0), URN_MSGQ_NONE);
		atomic_store(&R(0)->ctrl.head, 0);
		assert_int_equal(rig_configure(0, 0, 4, 64), URN_MSGQ_OPEN);
		assert_int_equal(rig_deliver(rig_qid(0), 8, 0), t[i].code);
		refused += t[i].code == URN_MSG_NOT_PERMITTED;
	}
	assert_int_equal(rig_count(URN_C_DROP_MSG_PERMIT), refused);
	assert_int_equal(atomic_load(&R(0)->rstat.refused), refused);
}

/* A queue for the own node takes messages of no other. */
static void
permission_for_the_own_node(void **state)
{
	struct urn_flow_from from = {.qid = 5, .own = true};

	(void)state;
	rig_open(0, -1, 0);
	R(0)->conf.flags = URN_MSGQ_OWN_NODE;
	rig_configure(0, 0, 4, 64);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 0), URN_MSG_NOT_PERMITTED);
	assert_int_equal(urn_msg_deliver(rig.tp, &from, rig_qid(0), (const uint8_t *)"hi", 2),
			 URN_MSG_DONE);
}

/* DB-5: numbers that lead to no queue, and queues without a ring. */
static void
no_queue_says_so(void **state)
{
	uint64_t qid;

	(void)state;
	rig_open(0, -1, 0);
	qid = rig_qid(0);
	assert_int_equal(rig_deliver(qid, 8, 0), URN_MSG_NO_QUEUE); /* not configured yet */
	rig_configure(0, 0, 4, 64);
	assert_int_equal(rig_deliver(qid ^ 1ull << 32, 8, 0), URN_MSG_NO_QUEUE); /* generation */
	assert_int_equal(rig_deliver(qid ^ 1ull << 16, 8, 0), URN_MSG_NO_QUEUE); /* engine */
	assert_int_equal(rig_deliver(qid ^ 1, 8, 0), URN_MSG_NO_QUEUE);		 /* slot */
	assert_int_equal(rig_deliver(qid ^ 1ull << 25, 8, 0), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_deliver(qid | 0xffff, 8, 0), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_deliver(URN_MSG_NAME(1), 8, 0), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_deliver(0, 8, 0), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_count(URN_C_DROP_MSG_QUEUE), 8);
	assert_int_equal(rig_deliver(qid, 8, 0), URN_MSG_DONE);
	assert_int_equal(rig_configure(0, 0, 0, 0), URN_MSGQ_NONE); /* closed by its reader */
	assert_int_equal(rig_deliver(qid, 8, 0), URN_MSG_NO_QUEUE);
}

/* A long message is asked for first: the same answers, and nothing is written. */
static void
admit_answers_like_deliver(void **state)
{
	struct urn_flow_from from = {.qid = 77};
	uint64_t qid;

	(void)state;
	rig_gid(from.node, 1);
	rig_open(0, -1, 0);
	qid = rig_qid(0);
	assert_int_equal(urn_msg_admit(rig.tp, &from, qid, 8), URN_MSG_NO_QUEUE);
	rig_configure(0, 0, 1, 2048);
	assert_int_equal(urn_msg_admit(rig.tp, &from, qid, 2016), URN_MSG_DONE);
	assert_int_equal(urn_msg_admit(rig.tp, &from, qid, 2017), URN_MSG_TOO_LONG);
	assert_int_equal(tail(0), 0);
	assert_int_equal(rig_deliver(qid, 2016, 1), URN_MSG_DONE);
	assert_int_equal(urn_msg_admit(rig.tp, &from, qid, 8), URN_MSG_QUEUE_FULL);
	R(0)->conf.permit_bits = 128;
	rig_configure(0, 0, 0, 0);
	atomic_store(&R(0)->ctrl.head, 0);
	rig_configure(0, 0, 1, 2048);
	assert_int_equal(urn_msg_admit(rig.tp, &from, qid, 8), URN_MSG_NOT_PERMITTED);
}

/* Rings that make no sense are refused, and the ring before stays in use. */
static void
bad_rings_are_refused(void **state)
{
	static const struct {
		uint64_t base;
		uint32_t entries, size;
	} bad[] = {
		{0, 3, 64},
		{0, 4, 63},
		{0, 4, 32},
		{0, 4, 0},
		{0, 4, 96},
		{32, 4, 64},
		{RIG_ARENA, 1, 64},
		{UINT64_MAX - 63, 4, 64},
		{0, RIG_ARENA / 64 * 2, 64},
		{0, 1u << 31, 64},
		{64, RIG_ARENA / 64, 64},
		{0, 1u << 16, 1u << 16},
		{0, 1, UINT32_MAX - 63},
		{1ull << 32, 1, 64},
		{0, 1, URN_MSG_ENTRY_MAX + 64},
	};

	(void)state;
	rig_open(0, -1, 0);
	assert_int_equal(rig_configure(0, RIG_ARENA - 256, 4, 64),
			 URN_MSGQ_OPEN); /* up to the last byte */
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rig_configure(0, bad[i].base, bad[i].entries, bad[i].size),
				 URN_MSGQ_BAD_RING);
	R(0)->conf.permit_bits = 129;
	assert_int_equal(rig_configure(0, 0, 4, 64), URN_MSGQ_BAD_RING);
	R(0)->conf.permit_bits = 0;
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(rig_deliver(rig_qid(0), 32, 'z'), URN_MSG_DONE);
	assert_int_equal(entry(0, RIG_ARENA - 256, 3, 64)->len, 32);
	assert_int_equal(rig_count(URN_C_MSG_CONF_REFUSED), sizeof(bad) / sizeof(bad[0]) + 1);
}

/* A ring with messages that were not read is not given away. */
static void
a_ring_in_use_stays(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(rig_configure(0, 1024, 8, 64), URN_MSGQ_IN_USE);
	assert_int_equal(tail(0), 1);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 2), URN_MSG_DONE);
	assert_int_equal(*(const uint8_t *)(entry(0, 0, 1, 64) + 1), 2);
	atomic_store(&R(0)->ctrl.head, 2);
	assert_int_equal(rig_configure(0, 1024, 8, 64), URN_MSGQ_OPEN);
	assert_int_equal(tail(0), 0);
	atomic_store(&R(0)->ctrl.head, 0);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 3), URN_MSG_DONE);
	assert_int_equal(*(const uint8_t *)(entry(0, 1024, 0, 64) + 1), 3);
}

/* A ring that is taken away keeps its tail, so that its reader finds the messages that came last;
 * the next ring begins at 0. */
static void
a_ring_taken_away_keeps_its_tail(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	for (unsigned int i = 0; i < 3; i++)
		rig_deliver(rig_qid(0), 8, 1);
	atomic_store(&R(0)->ctrl.head, 1);
	assert_int_equal(rig_configure(0, 0, 0, 0), URN_MSGQ_NONE);
	assert_int_equal(tail(0), 3);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 2), URN_MSG_NO_QUEUE);
	assert_int_equal(tail(0), 3);
	atomic_store(&R(0)->ctrl.head, 0);
	assert_int_equal(rig_configure(0, 1024, 4, 64), URN_MSGQ_OPEN);
	assert_int_equal(tail(0), 0);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 3), URN_MSG_DONE);
	assert_int_equal(*(const uint8_t *)(entry(0, 1024, 0, 64) + 1), 3);
}

/* A configuration without a new seq changes nothing, whatever stands there. */
static void
a_configuration_counts_by_its_seq(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	R(0)->conf.base = RIG_ARENA;
	R(0)->conf.entries = 1u << 20;
	R(0)->conf.entry_size = 1u << 20;
	R(0)->conf.permit_bits = 255;
	rig_ring(0);
	rig_turn(1);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 7), URN_MSG_DONE);
	assert_int_equal(*(const uint8_t *)(entry(0, 0, 0, 64) + 1), 7);
}

/* DB-5: with a head that is none nothing is taken, until it is one. */
static void
a_bad_head_takes_nothing(void **state)
{
	static const uint32_t bad[] = {3, 5, 100, 0x80000000u, UINT32_MAX - 2};

	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	rig_deliver(rig_qid(0), 8, 1);
	rig_deliver(rig_qid(0), 8, 2);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		atomic_store(&R(0)->ctrl.head, bad[i]);
		assert_int_equal(rig_deliver(rig_qid(0), 8, 3), URN_MSG_QUEUE_FULL);
		assert_int_equal(atomic_load(&R(0)->rstat.state), URN_MSGQ_BAD_HEAD);
		assert_int_equal(tail(0), 2);
	}
	assert_int_equal(rig_count(URN_C_DROP_MSG_HEAD), sizeof(bad) / sizeof(bad[0]));
	assert_int_equal(rig_count(URN_C_DROP_MSG_FULL), 0);
	atomic_store(&R(0)->ctrl.head, 2);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 3), URN_MSG_DONE);
	assert_int_equal(atomic_load(&R(0)->rstat.state), URN_MSGQ_OPEN);
}

/* A client that scribbles over all of its piece all the time: nobody else's bytes change. */
static void
scribbling_harms_nobody(void **state)
{
	uint8_t *piece = (uint8_t *)rig_regs(0);
	uint64_t taken = 0;

	(void)state;
	srand(7);
	for (unsigned int i = 0; i < 3; i++)
		rig_open(i, -1, 0);
	rig_configure(1, 0, 4, 64);
	for (unsigned int n = 0; n < 20000; n++) {
		/* Mostly a sane ring with one field changed, so that messages do come in between.
		 */
		if (n % 50 == 0) {
			struct urn_abi_msg_conf *c = &R(0)->conf;

			c->entries = 0;
			atomic_fetch_add(&c->seq, 1);
			rig_ring(0);
			rig_turn(n * 1000ull);
			c->base = (uint64_t)(rand() % 100) * 64;
			c->entries = 1u << (rand() % 5);
			c->entry_size = 64u << (rand() % 6);
			c->permit_bits = 0;
			c->flags = 0;
			atomic_fetch_add(&c->seq, 1);
			atomic_store(&R(0)->ctrl.head, 0);
		} else {
			piece[rand() % (int)sizeof(struct urn_abi_msg_set)] = (uint8_t)rand();
		}
		rig_ring(0);
		rig_turn(n * 1000ull);
		taken += rig_deliver(rig_qid(0), (uint32_t)rand() % 5000, 0xee) == URN_MSG_DONE;
		if (rig_held(0))
			rig_answer(0, (uint8_t)(rand() % URN_MSG_CODES));
	}
	assert_true(taken > 100);
	assert_true(rig_margins());
	assert_int_equal(tail(1), 0);
	assert_int_equal(rig_deliver(rig_qid(1), 8, 1), URN_MSG_DONE);
}

/* DB-5: a full queue blocks nobody else. */
static void
a_full_queue_blocks_nobody(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++) {
		rig_open(i, -1, 0);
		rig_configure(i, 0, 4, 64);
	}
	for (unsigned int n = 0; n < 100; n++)
		for (unsigned int i = 0; i < 64; i++) {
			assert_int_equal(rig_deliver(rig_qid(i), 8, 1),
					 i == 0 && n >= 4 ? URN_MSG_QUEUE_FULL : URN_MSG_DONE);
			if (i)
				atomic_store(&R(i)->ctrl.head, n + 1);
		}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_message_is_deposited),
		T(a_full_queue_says_so),
		T(head_and_tail_run_free),
		T(too_long_says_so),
		T(permission_by_prefix),
		T(permission_for_the_own_node),
		T(no_queue_says_so),
		T(admit_answers_like_deliver),
		T(bad_rings_are_refused),
		T(a_ring_in_use_stays),
		T(a_ring_taken_away_keeps_its_tail),
		T(a_configuration_counts_by_its_seq),
		T(a_bad_head_takes_nothing),
		T(scribbling_harms_nobody),
		T(a_full_queue_blocks_nobody),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
