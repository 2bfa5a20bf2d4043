/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds of what a target keeps for its peers (AM-5, AM-9): nodes of many buckets that take all
 * they can leave something to every other node; a turn has an end; transfers that leave hold up no
 * other.
 */
#include "am/tagged.h"
#include "rig.h"

#include <string.h>

enum { HONEST = 9, NODES = 256 };

static uint8_t
bucket_of(unsigned int node)
{
	uint8_t gid[16];

	rig_gid(gid, (uint8_t)node);
	return urn_am_bucket(rig.am, gid);
}

static struct urn_am_msg
message(uint8_t kind, uint64_t tag, uint32_t len)
{
	struct urn_am_msg m = {.kind = kind,
			       .len = len,
			       .tag = tag,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};

	if (kind == URN_AM_K_TAG_DATA) {
		m.addr = 0;
		m.key = rig_qid(1);
	} else if (kind == URN_AM_K_PART) {
		m.total = 10 * len;
		m.every = URN_AM_EVERY_TRANSFER;
	}
	return m;
}

/* A node sends messages under different tags until one is refused, at most `most`. returns: number
 * taken */
static unsigned int
send_all(unsigned int node, uint8_t kind, unsigned int most)
{
	unsigned int n = 0;

	for (struct urn_am_msg m = message(kind, 1000, 10); n < most; n++, m.tag++)
		if (rig_forge(&m, rig_qid(3), (uint8_t)node, rig_qid(1)) != URN_MSG_DONE)
			return n;
	return n;
}

/* All nodes but those of one bucket take all they can. */
static void
fill_others(uint8_t kind)
{
	for (unsigned int node = 0; node < NODES; node++)
		if (bucket_of(node) != bucket_of(HONEST))
			(void)send_all(node, kind, UINT32_MAX);
}

static void
answer_all(void)
{
	while (rig.held_n) {
		rig_answer(0, URN_MSG_DONE);
		rig_turn(rig.tp->now);
	}
}

/* Replies: many nodes that take none of theirs leave some for each other node, for tagged reads and
 * for the rest. */
static void
replies_are_kept(void **state)
{
	struct urn_am_msg r = message(URN_AM_K_TAG_READ, 5, 100 * CHUNK);

	(void)state;
	fill_others(URN_AM_K_WRITE);
	assert_true(rig.am->replies + rig.am->kept == URN_AM_REPLIES);
	assert_true(rig.am->node[bucket_of(HONEST)] == 0);
	assert_int_equal(rig_forge(&r, rig_qid(3), HONEST, rig_qid(1)), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.am->node[bucket_of(HONEST)], URN_AM_KEEP_REPLIES / 2);
	assert_int_equal(send_all(HONEST, URN_AM_K_WRITE, UINT32_MAX), URN_AM_KEEP_REPLIES / 2);
	r = message(URN_AM_K_TAG_CANCEL, 5, 1);
	r.code = URN_AM_LOCAL;
	r.addr = r.key = 0;
	assert_int_equal(rig_forge(&r, rig_qid(3), HONEST, rig_qid(1)), URN_MSG_DONE);
	answer_all();
	assert_int_equal(rig.am->replies, 0);
}

/* Transfers, likewise. */
static void
transfers_are_kept(void **state)
{
	(void)state;
	fill_others(URN_AM_K_PART);
	assert_int_equal(rig.am->tagged->n + rig.am->tagged->kept, URN_AM_TRANSFERS);
	assert_int_equal(send_all(HONEST, URN_AM_K_PART, UINT32_MAX), URN_AM_KEEP_TRANSFERS);
	assert_true(rig_count(URN_C_DROP_AM_TRANSFER) > 0);
}

/* Early data, likewise. */
static void
early_data_is_kept(void **state)
{
	struct urn_am_msg m = message(URN_AM_K_TAG_DATA, 1, 10);

	(void)state;
	for (unsigned int node = 0; node < NODES; node++)
		while (bucket_of(node) != bucket_of(HONEST) &&
		       rig_forge(&m, rig_qid(3), (uint8_t)node, rig_qid(1)) == URN_MSG_DONE)
			;
	assert_int_equal(rig.am->tagged->early_n + rig.am->tagged->early_kept, URN_AM_EARLY);
	assert_int_equal(send_all(HONEST, URN_AM_K_TAG_DATA, UINT32_MAX), URN_AM_KEEP_EARLY);
}

/* Replies that no flow has room for: a turn tries some of them, the others wait for the next. */
static void
late_replies_have_a_budget(void **state)
{
	struct urn_source *src = &rig.am->user.source;

	(void)state;
	rig.refuse = URN_MSG_BUSY;
	assert_int_equal(send_all(5, URN_AM_K_WRITE, 300), 300);
	rig.refuse = 0;
	for (unsigned int i = 1; i * URN_AM_LATE_STEPS < 300; i++) {
		assert_true(urn_am_late_ops.serve(rig.tp, src));
		assert_int_equal(rig.held_n, i * URN_AM_LATE_STEPS);
	}
	assert_false(urn_am_late_ops.serve(rig.tp, src));
	assert_int_equal(rig.held_n, 300);
	answer_all();
}

/* Write 10 bytes by a tag, whole. */
static void
write_tagged(unsigned int node, uint64_t tag)
{
	struct urn_am_msg q = message(URN_AM_K_TAG_WRITE, tag, 10),
			  d = message(URN_AM_K_TAG_DATA, tag, 10);

	assert_int_equal(rig_forge(&q, rig_qid(3), (uint8_t)node, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig_forge(&d, rig_qid(3), (uint8_t)node, rig_qid(1)), URN_MSG_DONE);
}

/* Transfers without room for their answer that leave take their misses with them: another transfer,
 * which has room, is answered in the same turn. */
static void
misses_leave_with_their_transfers(void **state)
{
	enum { MANY = 20 };
	struct urn_am_tagged *tg = rig.am->tagged;
	struct urn_am_msg c = message(URN_AM_K_TAG_CANCEL, 0, 1);
	unsigned int held;

	(void)state;
	c.code = URN_AM_LOCAL;
	c.addr = c.key = 0;
	(void)send_all(5, URN_AM_K_WRITE, UINT32_MAX);
	for (unsigned int i = 1; i <= MANY; i++)
		write_tagged(5, i);
	write_tagged(HONEST, 1);
	held = rig.held_n;
	assert_true(urn_am_progress_ops.serve(rig.tp, &tg->user.source));
	assert_int_equal(tg->misses, URN_AM_STEPS);
	for (c.tag = 1; c.tag <= MANY; c.tag++)
		assert_int_equal(rig_forge(&c, rig_qid(3), 5, rig_qid(1)), URN_MSG_DONE);
	(void)urn_am_progress_ops.serve(rig.tp, &tg->user.source);
	assert_int_equal(rig.held_n, held + 1);
	assert_int_equal(rig_parsed(held).kind, URN_AM_K_TAG_DONE);
	assert_int_equal(rig.node[held][15], HONEST);
	answer_all();
}

/* A packet of a tagged read that can't be delivered ends the read; the initiator is told, if it may
 * know the read. */
static void
a_lost_read_is_told(void **state)
{
	(void)state;
	rig_tagged(0, URN_AM_READ, 1, 0, 0, 10 * CHUNK);
	rig_answer(0, rig_deliver(0, HONEST));
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, 10);
	rig_answer(0, rig_deliver(0, HONEST));
	rig_answer(0, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	assert_int_equal(rig_count(URN_C_AM_READ_LOST), 1);
	rig_run();
	rig_expect(0, URN_AM_UNREACHABLE, 9 * CHUNK);
	assert_int_equal(rig.am->tagged->n, 0);
	rig_tagged(0, URN_AM_READ, 1, 0, 0, 2 * CHUNK);
	rig_answer(0, rig_deliver(0, HONEST));
	rig_turn(rig.tp->now);
	rig_answer(0, URN_MSG_NO_QUEUE);
	rig_answer(0, URN_MSG_NO_QUEUE);
	assert_int_equal(rig_count(URN_C_AM_READ_LOST), 2);
	assert_int_equal(rig.held_n + rig.am->tagged->n, 0);
}

/* A write of three packets whose first has been placed, by a target that has no room for replies to
 * the node any more; then the write's memory is taken away, so that it is given up. */
static void
give_up_without_room(void)
{
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	for (unsigned int i = 0; i < 2; i++) {
		rig_answer(0, rig_deliver(0, HONEST));
		rig_turn(rig.tp->now);
	}
	(void)send_all(HONEST, URN_AM_K_WRITE, UINT32_MAX);
	rig_deregister(0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(rig_deliver(0, HONEST), URN_FLOW_GONE);
		rig_answer(0, URN_FLOW_GONE);
	}
	rig_turn(rig.tp->now);
	rig_expect(0, URN_AM_LOCAL | URN_AM_MAY_BE_THERE, 0);
	assert_int_equal(rig.am->tagged->n, 1);
	assert_int_equal(rig.am->tagged->cancels, 1);
}

/* AM-7: an operation is given up while no message to its target has room. The target is told as
 * soon as one has, and retires the tag. */
static void
a_cancel_waits_for_room(void **state)
{
	struct urn_am_msg m;

	(void)state;
	give_up_without_room();
	rig_answer(0, URN_MSG_DONE);
	rig_turn(rig.tp->now);
	m = rig_parsed(rig.held_n - 1);
	assert_true(m.kind == URN_AM_K_TAG_CANCEL && m.code == URN_AM_LOCAL);
	assert_true(rig.node[rig.held_n - 1][15] == HONEST &&
		    rig.held[rig.held_n - 1]->qid == rig_qid(1));
	rig_answer(rig.held_n - 1, rig_deliver(rig.held_n - 1, HONEST));
	assert_int_equal(rig.am->tagged->n + rig.am->tagged->cancels, 0);
	assert_int_equal(rig_count(URN_C_AM_UNTOLD), 0);
	answer_all();
}

/* ... but not later than the target finds out by itself. */
static void
a_cancel_waits_not_for_ever(void **state)
{
	unsigned int held;

	(void)state;
	give_up_without_room();
	held = rig.held_n;
	rig_turn(rig.tp->now + URN_AM_REPLY_NS + URN_AM_LOOK_NS);
	rig_answer(0, URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, held - 1);
	assert_int_equal(rig.am->tagged->n + rig.am->tagged->cancels, 0);
	assert_int_equal(rig_count(URN_C_AM_UNTOLD), 1);
	answer_all();
}

/* Cancels that wait have a bound, and those to a node without room hold up none to another. */
static void
cancels_have_a_bound(void **state)
{
	struct urn_am_cancel c = {.to = rig_qid(1),
				  .from = rig_qid(0),
				  .at = rig.tp->now,
				  .len = 1,
				  .code = URN_AM_LOCAL};

	(void)state;
	(void)send_all(5, URN_AM_K_WRITE, UINT32_MAX);
	rig_gid(c.node, 5);
	for (c.tag = 1; c.tag <= URN_AM_CANCELS + 6; c.tag++)
		urn_am_cancel(rig.tp, &c);
	assert_int_equal(rig.am->tagged->cancels, URN_AM_CANCELS);
	assert_int_equal(rig_count(URN_C_AM_UNTOLD), 6);
	rig_gid(c.node, HONEST);
	urn_am_cancel(rig.tp, &c);
	assert_int_equal(rig_parsed(rig.held_n - 1).tag, c.tag);
	rig_turn(rig.tp->now);
	for (unsigned int i = 1; i <= URN_AM_CANCELS; i++) {
		rig_answer(0, URN_MSG_DONE);
		rig_turn(rig.tp->now);
		assert_int_equal(rig_parsed(rig.held_n - 1).tag, i); /* the oldest first */
	}
	assert_int_equal(rig.am->tagged->cancels, 0);
	answer_all();
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(replies_are_kept),
		T(transfers_are_kept),
		T(early_data_is_kept),
		T(late_replies_have_a_budget),
		T(misses_leave_with_their_transfers),
		T(a_lost_read_is_told),
		T(a_cancel_waits_for_room),
		T(a_cancel_waits_not_for_ever),
		T(cancels_have_a_bound),
	};

	return cmocka_run_group_tests_name("am_bounds", tests, NULL, NULL);
}
