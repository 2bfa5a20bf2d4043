/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on a peer's memory, and fences (AM-2, AM-9, AM-11): both sides, with flows that
 * refuse, lose and delay. */
#include "rig.h"

#include <errno.h>
#include <string.h>

#define SECOND 1000000000ull

static void
put(unsigned int i, uint32_t off, uint64_t value)
{
	memcpy(rig.end[i].mem + off, &value, sizeof(value));
}

static uint64_t
get(unsigned int i, uint32_t off)
{
	uint64_t value;

	memcpy(&value, rig.end[i].mem + off, sizeof(value));
	return value;
}

/* Write an atomic operation of end 0 on end 1, and ring. */
static void
issue(uint8_t op, uint32_t off, uint32_t len, uint64_t value, uint64_t compare)
{
	struct end *e = &rig.end[0];

	rig_next(0, op, 1, off, 0, len);
	urn_am_operands(e->regs, ENTRIES)[e->posted % ENTRIES] =
		(struct urn_abi_am_operand){value, compare};
	rig_post(0);
}

/* Issue, and let all messages arrive; the event has code and value. */
static void
expect(uint8_t op, uint32_t off, uint32_t len, uint64_t value, uint64_t compare, uint8_t code,
       uint64_t old)
{
	issue(op, off, len, value, compare);
	rig_run();
	rig_expect(0, code, old);
}

/* AM-2: the three operations, of both sizes, change the word alone and bring its value before. */
static void
words_change_and_old_values_come(void **state)
{
	const uint64_t guard = 0xa5a5a5a5a5a5a5a5;

	(void)state;
	put(1, 16, UINT64_MAX - 1);
	expect(URN_AM_FETCH_ADD, 16, 8, 5, 0, URN_AM_DONE, UINT64_MAX - 1);
	assert_true(get(1, 16) == 3);
	expect(URN_AM_SWAP, 16, 8, 1ull << 60, 0, URN_AM_DONE, 3);
	expect(URN_AM_COMPARE_SWAP, 16, 8, 7, 9, URN_AM_DONE, 1ull << 60);
	assert_true(get(1, 16) == 1ull << 60);
	expect(URN_AM_COMPARE_SWAP, 16, 8, 7, 1ull << 60, URN_AM_DONE, 1ull << 60);
	assert_true(get(1, 16) == 7 && get(1, 8) == guard && get(1, 24) == guard);
	put(1, 16, 0xffffffffull | 77ull << 32);
	expect(URN_AM_FETCH_ADD, 16, 4, 2, 0, URN_AM_DONE, 0xffffffff);
	assert_true(get(1, 16) == (1 | 77ull << 32)); /* nothing is carried */
	expect(URN_AM_SWAP, 20, 4, 5, 0, URN_AM_DONE, 77);
	expect(URN_AM_COMPARE_SWAP, 20, 4, 6, 4, URN_AM_DONE, 5);
	expect(URN_AM_COMPARE_SWAP, 20, 4, 6, 5, URN_AM_DONE, 5);
	assert_true(get(1, 16) == (1 | 6ull << 32));
	assert_int_equal(rig_count(URN_C_AM_ATOMICS_RX), 8);
}

/* Operands are in host order here, and in network order in the packet. */
static void
the_packet_is_in_network_order(void **state)
{
	struct urn_am_atomic a;
	struct urn_am_msg m;

	(void)state;
	issue(URN_AM_COMPARE_SWAP, 8, 8, 0x1122, 0x3344);
	m = rig_parsed(0);
	assert_true(m.kind == URN_AM_K_ATOMIC && m.len == 8);
	assert_int_equal(m.data[14], 0x11);
	assert_int_equal(m.data[23], 0x44);
	assert_true(urn_am_get_atomic(m.data, 8, &a));
	assert_true(a.value == 0x1122 && a.compare == 0x3344);
	rig_run();
	rig_expect(0, URN_AM_DONE, 0xa5a5a5a5a5a5a5a5);
}

/* Commands that make no sense, and words that are not aligned, fail before a packet is made. */
static void
commands_are_checked(void **state)
{
	(void)state;
	expect(URN_AM_FETCH_ADD, 8, 2, 1, 0, URN_AM_BAD_COMMAND, 0);
	expect(URN_AM_FETCH_ADD, 8, 16, 1, 0, URN_AM_BAD_COMMAND, 0);
	expect(URN_AM_SWAP, 8, 4, 1ull << 32, 0, URN_AM_BAD_COMMAND, 0);
	expect(URN_AM_COMPARE_SWAP, 8, 4, 1, 1ull << 32, URN_AM_BAD_COMMAND, 0);
	expect(URN_AM_COMPARE_SWAP + 1, 8, 8, 1, 0, URN_AM_BAD_COMMAND, 0);
	expect(URN_AM_FETCH_ADD, 4, 8, 1, 0, URN_AM_ALIGN, 0);
	expect(URN_AM_FETCH_ADD, 6, 4, 1, 0, URN_AM_ALIGN, 0);
	expect(URN_AM_FETCH_ADD, 4, 4, 1, 0, URN_AM_DONE, 0xa5a5a5a5);
	rig_next(0, URN_AM_SWAP, 1, 8, 0, 8)->way = URN_AM_PIPELINED;
	rig_post(0);
	rig_expect(0, URN_AM_BAD_COMMAND, 0);
	rig_next(0, URN_AM_WRITE, 1, 8, 0, 8)->flags = 2;
	rig_post(0);
	rig_expect(0, URN_AM_BAD_COMMAND, 0);
	assert_int_equal(rig_count(URN_C_AM_ATOMICS_RX), 1);
}

/* Deliver a packet that a test made, as from end 0. returns: code of the reply, or DONE */
static uint8_t
forge(uint64_t addr, uint32_t len, uint64_t key)
{
	struct urn_am_msg m = {
		.kind = URN_AM_K_ATOMIC, .len = len, .tag = 1, .addr = addr, .key = key};
	uint8_t buf[sizeof(struct urn_am_hdr) + sizeof(struct urn_am_atomic_hdr)], code;
	struct urn_flow_from from = {.qid = rig_qid(0)};

	urn_am_put_atomic(buf + sizeof(struct urn_am_hdr),
			  &(struct urn_am_atomic){URN_AM_SWAP, 1, 0});
	rig_gid(from.node, 9);
	assert_int_equal(
		urn_am_flow_user.deliver(rig.tp, &from, rig_qid(1), buf, urn_am_build(buf, &m)),
		URN_MSG_DONE);
	code = rig_parsed(rig.held_n - 1).code;
	rig_answer(rig.held_n - 1, URN_MSG_DONE);
	return code;
}

/* AM-9: the target checks each packet: right, key, range, and alignment, whatever the initiator
 * checked. */
static void
the_target_checks(void **state)
{
	struct urn_abi_am_range *l = urn_am_ranges(rig.end[1].regs, ENTRIES);
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_WRITE | URN_AM_ACCESS_READ,
					 .n = 1},
				    two = {.access = URN_AM_ACCESS_ATOMIC, .n = 2};
	uint64_t at = (uintptr_t)rig.end[1].mem;

	(void)state;
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &c), 0);
	assert_int_equal(forge(at, 8, c.key), URN_AM_RIGHTS);
	assert_int_equal(forge(at, 8, rig.end[1].key ^ 1ull << 50), URN_AM_BAD_KEY);
	assert_int_equal(forge(at + MEM, 8, rig.end[1].key), URN_AM_RANGE);
	assert_int_equal(forge(at + 4, 8, rig.end[1].key), URN_AM_ALIGN);
	assert_int_equal(forge(at + 2, 4, rig.end[1].key), URN_AM_ALIGN);
	/* A word that lies in two memory regions is none. */
	for (unsigned int i = 0; i < 2; i++) {
		l[i] = (struct urn_abi_am_range){.addr = at + 4 * i, .len = 4};
		assert_int_equal(urn_mem_reg_mr(rig.urn_mem, rig.pd, rig.end[1].mem + 4 * i, 4,
						l[i].addr, URN_ACCESS_LOCAL_WRITE, &l[i].lkey),
				 0);
	}
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &two), 0);
	assert_int_equal(forge(at, 8, two.key), URN_AM_RANGE);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
	assert_int_equal(forge(at, 4, two.key), 0);
	assert_int_equal(rig.end[1].mem[0], 1);
	assert_int_equal(rig_count(URN_C_AM_ACCESS), 6);
}

/* Memory that the client may not write offers no atomics. */
static void
read_only_memory_offers_none(void **state)
{
	struct urn_abi_am_range *l = urn_am_ranges(rig.end[1].regs, ENTRIES);
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_ATOMIC, .n = 1};

	(void)state;
	*l = (struct urn_abi_am_range){.addr = (uintptr_t)rig.end[1].mem, .len = 8};
	assert_int_equal(
		urn_mem_reg_mr(rig.urn_mem, rig.pd, rig.end[1].mem, 8, l->addr, 0, &l->lkey), 0);
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &c), EFAULT);
}

/* Exactly once: a packet that is refused for want of room for its reply has done nothing, and is
 * carried out when it comes again. */
static void
a_refused_packet_is_done_once(void **state)
{
	struct urn_am_msg w = {.kind = URN_AM_K_READ,
			       .len = 1,
			       .tag = 5,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};
	unsigned int n = 0;

	(void)state;
	put(1, 8, 100);
	issue(URN_AM_FETCH_ADD, 8, 8, 1, 0);
	while (rig_forge(&w, rig_qid(2), 9, rig_qid(1)) == URN_MSG_DONE)
		n++;
	assert_int_equal(n, URN_AM_NODE_REPLIES);
	rig_answer(0, rig_deliver(0, 9)); /* BUSY */
	assert_true(get(1, 8) == 100);
	while (rig.held_n)
		rig_answer(0, URN_MSG_DONE);
	rig_turn(rig.tp->now + 2 * URN_AM_RETRY_NS);
	assert_int_equal(rig.held_n, 1);
	rig_run();
	rig_expect(0, URN_AM_DONE, 100);
	assert_true(get(1, 8) == 101);
	assert_int_equal(rig_count(URN_C_AM_RETRIES), 1);
}

/* After an outcome that nobody knows, the code says that memory may have been changed; after a
 * refusal it does not. */
static void
unknown_outcomes_say_so(void **state)
{
	(void)state;
	issue(URN_AM_FETCH_ADD, 8, 8, 1, 0);
	rig_answer(0, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	rig_expect(0, URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE, 0);
	issue(URN_AM_FETCH_ADD, 8, 8, 1, 0);
	rig_answer(0, URN_MSG_NO_QUEUE);
	rig_expect(0, URN_AM_NO_ENDPOINT, 0);
	issue(URN_AM_FETCH_ADD, 8, 8, 1, 0);
	rig_answer(0, URN_MSG_DONE); /* delivered, and no reply */
	for (unsigned int i = 0; i < 12; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_NO_REPLY | URN_AM_MAY_BE_THERE, 0);
	put(1, 8, 4);
	expect(URN_AM_FETCH_ADD, 8, 8, 1, 0, URN_AM_DONE, 4);
}

/* A reply of another kind or size answers no atomic operation, and an atomic's reply no read. */
static void
forged_replies_are_refused(void **state)
{
	struct urn_am_msg f = {.kind = URN_AM_K_WRITE_REPLY, .len = 8};

	(void)state;
	issue(URN_AM_FETCH_ADD, 8, 8, 1, 0);
	f.tag = rig_parsed(0).tag;
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	f.kind = URN_AM_K_READ_REPLY;
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	f.kind = URN_AM_K_ATOMIC_REPLY;
	assert_int_equal(rig_forge(&f, rig_qid(2), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	rig_no_event(0);
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, 0xeeeeeeeeeeeeeeee);
	rig_answer(0, URN_MSG_DONE);
	rig_command(0, URN_AM_READ, 1, 0, 0, 8);
	f.tag = rig_parsed(0).tag;
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	rig_run();
	rig_expect(0, URN_AM_DONE, 8);
}

/* ---- fences */

/* An operation with a fence starts when all before it have ended, to any target; those after it
 * wait with it. */
static void
a_fence_waits_for_all_before(void **state)
{
	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 2 * CHUNK);
	rig_command(0, URN_AM_WRITE, 2, 0, 0, 8);
	rig_next(0, URN_AM_WRITE, 3, 0, 0, 8)->flags = URN_AM_FENCE;
	rig_post(0);
	rig_command(0, URN_AM_WRITE, 3, 8, 0, 8);
	assert_int_equal(rig.held_n, 3);
	assert_int_equal(rig_deliver(2, 9), URN_MSG_DONE); /* the write to end 2, and its reply */
	assert_int_equal(rig_deliver(3, 9), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, 8);
	rig_turn(rig.tp->now + 1000);
	assert_int_equal(rig.held_n, 4);
	rig_answer(0, URN_MSG_NO_QUEUE); /* an error ends an operation, too */
	rig_answer(0, URN_MSG_UNREACHABLE);
	rig_turn(rig.tp->now + 1000);
	rig_expect(0, URN_AM_NO_ENDPOINT, 0);
	assert_int_equal(rig.held_n, 4); /* two old ones without answer, and the two that waited */
	rig_run();
	rig_expect(0, URN_AM_DONE, 8);
	rig_expect(0, URN_AM_DONE, 8);
}

/* A fence with nothing before it costs nothing, and time at a fence is no silence. */
static void
a_fence_may_wait_long(void **state)
{
	(void)state;
	rig_next(0, URN_AM_WRITE, 1, 0, 0, 8)->flags = URN_AM_FENCE;
	rig_post(0);
	assert_int_equal(rig.held_n, 1);
	rig_next(0, URN_AM_WRITE, 1, 0, 0, 8)->flags = URN_AM_FENCE;
	rig_post(0);
	assert_int_equal(rig.held_n, 1);
	rig_answer(0, URN_MSG_DONE); /* delivered, and no reply */
	for (unsigned int i = 0; i < 12; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_NO_REPLY | URN_AM_MAY_BE_THERE, 0);
	assert_int_equal(rig.held_n, 1);
	rig_turn(rig.tp->now + SECOND);
	rig_no_event(0);
	rig_run();
	rig_expect(0, URN_AM_DONE, 8);
}

/* A command that is refused keeps its fence: its event waits for the operations before, and
 * commands behind it wait, too. c: written by rig_next(), not posted */
static void
expect_fence(struct urn_abi_am_cmd *c, uint8_t code)
{
	c->flags = URN_AM_FENCE;
	rig_post(0);
	rig_command(0, URN_AM_WRITE, 3, 8, 0, 8);
	assert_int_equal(rig.held_n, 1); /* the write before */
	rig_no_event(0);
	rig_run();
	rig_expect(0, URN_AM_DONE, 16);
	rig_expect(0, code, 0);
	rig_expect(0, URN_AM_DONE, 8);
}

static void
a_refused_command_keeps_its_fence(void **state)
{
	struct urn_abi_am_cmd *c;

	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 16);
	c = rig_next(0, URN_AM_WRITE, 2, 0, 0, 8);
	c->way = URN_AM_WAYS;
	expect_fence(c, URN_AM_BAD_COMMAND);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 16);
	c = rig_next(0, URN_AM_READ, 2, 0, 0, 8);
	c->lkey ^= 1;
	expect_fence(c, URN_AM_LOCAL);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 16);
	expect_fence(rig_next(0, URN_AM_FETCH_ADD, 2, 4, 0, 8), URN_AM_ALIGN);
	rig_next(0, URN_AM_WRITE, 2, 0, 0, 0)->flags = URN_AM_FENCE; /* with nothing before */
	rig_post(0);
	rig_expect(0, URN_AM_BAD_COMMAND, 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(words_change_and_old_values_come),
		T(the_packet_is_in_network_order),
		T(commands_are_checked),
		T(the_target_checks),
		T(read_only_memory_offers_none),
		T(a_refused_packet_is_done_once),
		T(unknown_outcomes_say_so),
		T(forged_replies_are_refused),
		T(a_fence_waits_for_all_before),
		T(a_fence_may_wait_long),
		T(a_refused_command_keeps_its_fence),
	};

	return cmocka_run_group_tests_name("am_atomic", tests, NULL, NULL);
}
