/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies to a pipelined write: one a packet, one for several, one for the transfer (AM-4). */
#include "am/tagged.h"
#include "rig.h"

#include <string.h>

#define SECOND 1000000000ull

enum {
	PART = CHUNK,	    /* bytes of memory in a packet */
	LEN = 9 * PART + 5, /* ten packets */
};

static void
write(unsigned int i, uint8_t every, uint32_t len)
{
	struct urn_abi_am_cmd *c = rig_next(i, URN_AM_WRITE, 1, 0, 0, len);

	for (uint32_t k = 0; k < len; k++)
		rig.end[i].mem[k] = (uint8_t)(k * 7 + k / 256);
	c->way = URN_AM_PIPELINED;
	c->every = every;
	rig_post(i);
}

/* Deliver ten packets, the newest first. returns: replies that came; bytes: those that each
 * confirms */
static unsigned int
deliver_ten(uint64_t bytes[10])
{
	unsigned int n = 0;

	assert_int_equal(rig.held_n, 10);
	for (unsigned int i = 10; i-- > 0;) {
		assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
		if (rig.held_n == 10 + n)
			continue;
		assert_int_equal(rig_parsed(10 + n).kind, URN_AM_K_TAG_DONE);
		assert_int_equal(rig_parsed(10 + n).len, LEN);
		bytes[n] = rig_parsed(10 + n).addr;
		n++;
	}
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, LEN);
	return n;
}

/* One reply for N packets, the last for what is left; each says how many bytes are placed. */
static void
one_reply_for_several_packets(void **state)
{
	static const uint8_t every[] = {2, 4, 9, 10, 11, 254};
	uint64_t bytes[10];

	(void)state;
	for (unsigned int k = 0; k < RTE_DIM(every); k++) {
		unsigned int n;

		write(0, every[k], LEN);
		n = deliver_ten(bytes);
		assert_int_equal(n, (10 + every[k] - 1) / every[k]);
		for (unsigned int i = 0; i < n; i++) /* the short packet came first */
			assert_int_equal(bytes[i],
					 i + 1 < n ? 5 + ((i + 1) * every[k] - 1) * PART : LEN);
		rig_no_event(0);
		for (unsigned int i = 0; i < 10; i++)
			rig_answer(0, URN_MSG_DONE);
		rig_no_event(0);
		rig_run();
		rig_expect(0, URN_AM_DONE, LEN);
		assert_int_equal(rig.am->tagged->n, 0);
	}
}

/* One reply for the transfer, after the last byte, whichever packet brings that. */
static void
one_reply_for_the_transfer(void **state)
{
	uint64_t bytes[10];

	(void)state;
	write(0, URN_AM_EVERY_TRANSFER, LEN);
	assert_int_equal(deliver_ten(bytes), 1);
	assert_int_equal(bytes[0], LEN);
	assert_int_equal(rig_deliver(10, 9), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, LEN);
	while (rig.held_n)
		rig_answer(0, URN_MSG_DONE);
	/* Modes 0 and 1 need no record of the transfer. */
	for (uint8_t every = 0; every < 2; every++) {
		write(0, every, LEN);
		assert_int_equal(rig.held_n, 10);
		for (unsigned int i = 0; i < 10; i++) {
			assert_int_equal(rig_parsed(i).kind, URN_AM_K_WRITE);
			assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
		}
		assert_int_equal(rig.held_n, 20);
		assert_int_equal(rig.am->tagged->n, 0);
		rig_run();
		rig_expect(0, URN_AM_DONE, LEN);
	}
}

/* An event of a write whose target stops replying has the bytes that were confirmed. */
static void
confirmed_bytes_are_told(void **state)
{
	(void)state;
	write(0, 3, LEN);
	for (unsigned int i = 0; i < 10; i++)
		if (i < 7)
			rig_deliver(i, 9);
	for (unsigned int i = 0; i < 10; i++)
		rig_answer(0, URN_MSG_DONE);
	rig_answer(1, URN_MSG_UNREACHABLE); /* the second reply is lost */
	rig_answer(0, rig_deliver(0, 9));
	for (unsigned int i = 0; i < 12; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_NO_REPLY | URN_AM_MAY_BE_THERE, 3 * PART);
	rig_run();
	assert_int_equal(rig.am->tagged->n, 0);
}

/* An error comes back at once and ends the operation; packets under way are discarded. */
static void
an_error_comes_at_once(void **state)
{
	(void)state;
	write(0, URN_AM_EVERY_TRANSFER, 100 * PART);
	write(2, 7, 100 * PART);
	for (unsigned int i = 0; i < 5; i++)
		rig_answer(0, rig_deliver(0, 9));
	assert_int_equal(urn_am_region_remove(rig.end[1].ep, rig.end[1].key), 0);
	rig_answer(0, rig_deliver(0, 9));
	rig_turn(rig.tp->now);
	assert_int_equal(rig_parsed(rig.held_n - 1).kind, URN_AM_K_TAG_ERROR);
	rig_run();
	rig_expect(0, URN_AM_BAD_KEY, 5 * PART);
	rig_expect(2, URN_AM_BAD_KEY, 0);
	assert_int_equal(rig_count(URN_C_AM_WRITES_RX), 5);
	assert_true(rig_count(URN_C_AM_DISCARDED) > 50);
	assert_int_equal(rig.am->tagged->n, 0);
}

/* The target's records have a bound: a transfer without one is refused, and its packets come again.
 */
static void
records_have_a_bound(void **state)
{
	struct urn_am_msg p = {.kind = URN_AM_K_PART,
			       .len = 10,
			       .total = 100,
			       .every = 255,
			       .addr = (uintptr_t)rig.end[1].mem + MEM / 2,
			       .key = rig.end[1].key};
	unsigned int n = 0;

	(void)state;
	for (p.tag = 1; p.tag < 1000; p.tag++)
		n += rig_forge(&p, rig_qid(3), 9, rig_qid(1)) == URN_MSG_DONE;
	assert_int_equal(n, URN_AM_NODE_TRANSFERS);
	assert_int_equal(rig_count(URN_C_DROP_AM_TRANSFER), 999 - n);
	rig_turn(rig.tp->now + 4 * SECOND);
	write(0, 255, LEN);
	for (unsigned int i = 0; i < 10; i++)
		rig_answer(0, rig_deliver(0, 9));
	assert_int_equal(rig_count(URN_C_DROP_AM_TRANSFER), 999 - n + 10);
	for (unsigned int i = 0; i < 5; i++) {
		rig_turn(rig.tp->now + SECOND);
		while (rig.held_n)
			rig_answer(0, rig_deliver(0, 9));
	}
	rig_no_event(0);
	rig_turn(rig.tp->now + 1999999999); /* the records have aged */
	rig_run();
	rig_turn(rig.tp->now + 2 * URN_AM_RETRY_NS);
	rig_run();
	rig_expect(0, URN_AM_DONE, LEN);
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, LEN);
}

/* Packets of one transfer that contradict each other end it. */
static void
packets_that_contradict(void **state)
{
	struct urn_am_msg p = {.kind = URN_AM_K_PART,
			       .len = 10,
			       .total = 100,
			       .every = 4,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct urn_am_msg q = p;

		p.tag = q.tag = i + 1;
		q.total += i == 0 ? 1 : 0;
		q.every += i == 1 ? 1 : 0;
		q.len = i == 2 ? 91 : q.len;
		if (i == 3)
			q = (struct urn_am_msg){
				.kind = URN_AM_K_TAG_DATA, .len = 10, .tag = 4, .key = rig_qid(1)};
		assert_int_equal(rig_forge(&p, rig_qid(3), 5, rig_qid(1)), URN_MSG_DONE);
		assert_int_equal(rig_forge(&q, rig_qid(3), 5, rig_qid(1)), URN_MSG_DONE);
		rig_turn(rig.tp->now);
		assert_int_equal(rig_parsed(0).code, URN_AM_BAD_PACKET);
		assert_int_equal(rig_parsed(0).addr, 10);
		rig_answer(0, URN_MSG_DONE);
	}
	for (unsigned int i = 10; i < 100; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
	assert_int_equal(rig.am->tagged->n, 0);
}

/* A number of packets for a reply is for pipelined writes alone. */
static void
modes_are_of_pipelined_writes(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		static const uint8_t way[] = {URN_AM_DIRECT, URN_AM_TAGGED, URN_AM_PIPELINED,
					      URN_AM_AUTO, URN_AM_PIPELINED};
		struct urn_abi_am_cmd *c =
			rig_next(0, i < 2 ? URN_AM_WRITE : URN_AM_READ, 1, 0, 0, 10);

		c->way = way[i];
		c->every = i == 4 ? 0 : 2;
		rig_post(0);
		rig_run();
		rig_expect(0, i == 4 ? URN_AM_DONE : URN_AM_BAD_COMMAND, i == 4 ? 10 : 0);
	}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(one_reply_for_several_packets), T(one_reply_for_the_transfer),
		T(confirmed_bytes_are_told),	  T(an_error_comes_at_once),
		T(records_have_a_bound),	  T(packets_that_contradict),
		T(modes_are_of_pipelined_writes),
	};

	return cmocka_run_group_tests_name("am_replies", tests, NULL, NULL);
}
