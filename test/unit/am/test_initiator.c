/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator's side of remote memory access: packets, replies true and forged, and operations
 * that stand still. */
#include "rig.h"

#include <string.h>

#define SECOND 1000000000ull

static void
fill(unsigned int i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		rig.end[i].mem[k] = (uint8_t)(k * 7 + k / 256);
}

/* AM-4: packets of a chunk each, the last one shorter, each with its address; in any order, the
 * block is right. */
static void
packets_come_in_any_order(void **state)
{
	enum { LEN = 10 * CHUNK + 17 };

	(void)state;
	fill(0, LEN);
	rig_command(0, URN_AM_WRITE, 1, 100, 0, LEN);
	assert_int_equal(rig.held_n, 11);
	for (unsigned int i = 0; i < 11; i++) {
		struct urn_am_msg m = rig_parsed(i);

		assert_true(m.addr == (uintptr_t)rig.end[1].mem + 100 + i * CHUNK);
		assert_int_equal(m.len, i == 10 ? 17 : CHUNK);
		for (unsigned int k = 0; k < i; k++)
			assert_true(rig_parsed(k).tag != m.tag);
	}
	for (unsigned int i = 11; i-- > 0;) { /* the newest first */
		rig_no_event(0);
		assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
	}
	assert_memory_equal(rig.end[1].mem + 100, rig.end[0].mem, LEN);
	rig_run();
	rig_expect(0, URN_AM_DONE, LEN);
}

/* AM-4: a packet has 4,096 bytes of memory where the port has room for them with their headers,
 * also those of a write with one reply for several; else whole cache lines. */
static void
packets_have_whole_pages(void **state)
{
	static const struct {
		uint16_t mtu;
		uint32_t chunk, part;
	} row[] = {
		{1024, 960, 960},   {1420, 1344, 1344}, {4096, 4032, 4032}, {4147, 4032, 4032},
		{4148, 4096, 4032}, {4156, 4096, 4096}, {4312, 4096, 4096}, {8900, 4096, 4096},
	};
	uint8_t node[16];

	(void)state;
	rig_gid(node, 9);
	for (unsigned int i = 0; i < RTE_DIM(row); i++) {
		rig.tp->cfg.flow_mtu = row[i].mtu;
		assert_int_equal(urn_am_chunk(rig.tp), row[i].chunk);
		assert_int_equal(urn_am_chunk_to(rig.tp, node, rig_qid(1), 0), row[i].chunk);
		assert_int_equal(
			urn_am_chunk_to(rig.tp, node, rig_qid(1), sizeof(struct urn_am_part_hdr)),
			row[i].part);
	}
	rig.tp->cfg.flow_mtu = 4312;
	fill(0, 8192 + 1);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 8192 + 1);
	assert_int_equal(rig.held_n, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(rig_parsed(i).len, i == 2 ? 1 : 4096);
		assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
	}
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, 8192 + 1);
	rig_run();
	rig_expect(0, URN_AM_DONE, 8192 + 1);
}

/* A turn has URN_AM_FRAMES packets of an endpoint, or URN_AM_SHORTS times as many short writes,
 * which share packets of the flow. */
static void
a_turn_has_a_bound(void **state)
{
	enum {
		SHORT_WRITES = 13,
		LEN = 20 * CHUNK,
		ALL = URN_AM_FRAMES * URN_AM_SHORTS,
	};
	struct urn_source *src = urn_am_ep_source(rig.end[0].ep);
	unsigned int longs = (ALL - SHORT_WRITES + URN_AM_SHORTS - 1) / URN_AM_SHORTS;

	(void)state;
	for (unsigned int i = 0; i < SHORT_WRITES; i++) {
		rig_next(0, URN_AM_WRITE, 1, 0, 0, URN_AM_SHORT);
		rig.end[0].posted++;
	}
	rig_next(0, URN_AM_WRITE, 1, 0, 0, LEN);
	rig.end[0].posted++;
	rig_next(0, URN_AM_READ, 1, 0, 0, 8);
	atomic_store(&rig.end[0].regs->client.commands, ++rig.end[0].posted);
	assert_true(urn_am_serve(rig.tp, src));
	assert_int_equal(rig.held_n, SHORT_WRITES + longs);
	/* The second turn: the other packets, the last of them no short write, and the read. */
	assert_false(urn_am_serve(rig.tp, src));
	assert_int_equal(rig.held_n, SHORT_WRITES + 20 + 1);
	rig_run();
}

/* AM-4: so are the replies of a read; the event comes after the last. */
static void
replies_come_in_any_order(void **state)
{
	enum { LEN = 5 * CHUNK - 3 };

	(void)state;
	fill(1, LEN);
	rig_command(0, URN_AM_READ, 1, 0, 50, LEN);
	assert_int_equal(rig.held_n, 5);
	for (unsigned int i = 0; i < 5; i++)
		rig_answer(0, rig_deliver(0, 9));
	for (unsigned int i = 5; i-- > 0;) {
		rig_no_event(0);
		rig_answer(i, rig_deliver(i, 9));
	}
	rig_expect(0, URN_AM_DONE, LEN);
	assert_memory_equal(rig.end[0].mem + 50, rig.end[1].mem, LEN);
	assert_int_equal(rig.end[0].mem[49] ^ rig.end[0].mem[50 + LEN], 0);
}

/* A reply may overtake the acknowledgement of its packet: the operation ends, and the flow keeps
 * the packet's bytes. */
static void
a_reply_overtakes_the_acknowledgement(void **state)
{
	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10);
	assert_int_equal(rig_deliver(0, 9), URN_MSG_DONE);
	assert_int_equal(rig_deliver(1, 9), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, 10);
	assert_int_equal(rig.am->outs, 1);
	/* The memory is the program's again: no repeat has bytes of it. */
	assert_int_equal(rig_deliver(0, 9), URN_FLOW_GONE);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 20);
	assert_ptr_not_equal(rig.held[2], rig.held[0]);
	rig_run();
	rig_expect(0, URN_AM_DONE, 20);
}

/* One message has the replies to several writes of a length; a tag that no packet waits for changes
 * nothing. */
static void
replies_share_a_message(void **state)
{
	uint8_t buf[URN_AM_MORE_BYTES];
	struct urn_am_msg m;
	unsigned int n = 0;

	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10 * CHUNK + 5);
	m = (struct urn_am_msg){
		.kind = URN_AM_K_WRITE_REPLY, .len = CHUNK, .tag = rig_parsed(0).tag};
	urn_am_build(buf, &m);
	for (unsigned int i = 1; i < 11; i++) /* the last packet is shorter */
		urn_am_put_more(buf, n++, rig_parsed(i).tag);
	urn_am_put_more(buf, n++, rig_parsed(2).tag);
	urn_am_put_more(buf, n++, 1);
	assert_int_equal(rig_bytes(buf, HEADER + 8 * n, rig_qid(2), rig_qid(0)),
			 URN_MSG_NOT_PERMITTED);
	assert_int_equal(rig_count(URN_C_DROP_AM_REPLY), 13);
	assert_int_equal(rig_bytes(buf, HEADER + 8 * n - 1, rig_qid(1), rig_qid(0)),
			 URN_MSG_NOT_PERMITTED);
	assert_int_equal(rig_count(URN_C_DROP_AM_FORMAT), 1);
	assert_int_equal(rig_bytes(buf, HEADER + 8 * n, rig_qid(1), rig_qid(0)), URN_MSG_DONE);
	assert_int_equal(rig_count(URN_C_DROP_AM_REPLY), 16);
	rig_no_event(0);
	m = (struct urn_am_msg){.kind = URN_AM_K_WRITE_REPLY, .len = 5, .tag = rig_parsed(10).tag};
	assert_int_equal(rig_forge(&m, rig_qid(1), 9, rig_qid(0)), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, 10 * CHUNK + 5);
}

/* AM-1: a reply that no packet waits for is refused, whatever is wrong with it, and nothing is
 * written. */
static void
forged_replies_are_refused(void **state)
{
	struct urn_am_msg m, f;
	uint64_t from, to;

	(void)state;
	memset(rig.end[0].mem, 0, 1000);
	rig_command(0, URN_AM_READ, 1, 0, 0, 500);
	m = rig_parsed(0);
	from = rig_qid(1);
	to = rig_qid(0);
	for (unsigned int i = 0; i < 8; i++) {
		f = (struct urn_am_msg){.kind = URN_AM_K_READ_REPLY, .len = 500, .tag = m.tag};
		f.tag += i == 0 ? 1 : i == 1 ? 1 << 16 : 0;
		f.kind = i == 2 ? URN_AM_K_WRITE_REPLY : f.kind;
		f.len = i == 3 ? 499 : i == 4 ? 501 : 500;
		assert_int_equal(rig_forge(&f, i == 5 ? rig_qid(2) : from, i == 6 ? 8 : 9,
					   i == 7 ? rig_qid(2) : to),
				 URN_MSG_NOT_PERMITTED);
		assert_int_equal(rig_count(URN_C_DROP_AM_REPLY), i + 1);
	}
	rig_no_event(0);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(rig.end[0].mem[i], 0);
	f = (struct urn_am_msg){.kind = URN_AM_K_READ_REPLY, .len = 500, .tag = m.tag};
	assert_int_equal(rig_forge(&f, from, 9, to), URN_MSG_DONE);
	rig_expect(0, URN_AM_DONE, 500);
	memset(rig.end[0].mem, 0, 1000);
	assert_int_equal(rig_forge(&f, from, 9, to), URN_MSG_NOT_PERMITTED); /* a second one */
	assert_int_equal(rig.end[0].mem[0], 0);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(rig_forge(&f, from, 9, to), URN_MSG_NOT_PERMITTED);
	rig_no_event(0);
}

/* AM-9: an error message ends the operation with its reason once no packet is under way; no further
 * ones are made. */
static void
an_error_ends_one_operation(void **state)
{
	struct urn_am_msg m, f;

	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 300 * CHUNK); /* more than may be under way */
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 5);
	assert_int_equal(rig.held_n, URN_AM_EP_OUTS);
	m = rig_parsed(3);
	f = (struct urn_am_msg){
		.kind = URN_AM_K_ERROR, .code = URN_AM_RANGE, .len = CHUNK, .tag = m.tag};
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_DONE);
	rig_no_event(0);
	rig_run();
	assert_int_equal(rig_count(URN_C_AM_WRITES_RX),
			 URN_AM_EP_OUTS); /* without the packet of the forged error */
	rig_expect(0, URN_AM_RANGE, (URN_AM_EP_OUTS - 1) * CHUNK);
	rig_expect(0, URN_AM_DONE, 5);
}

/* A target without room gets the packet again, later; for 10 s. */
static void
busy_targets_are_tried_again(void **state)
{
	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10);
	for (unsigned int i = 0; i < 20; i++) {
		rig_answer(0, URN_MSG_BUSY);
		rig_turn(rig.tp->now + URN_AM_RETRY_NS / 2);
		assert_int_equal(rig.held_n, 0);
		rig_turn(rig.tp->now + URN_AM_RETRY_NS);
		assert_int_equal(rig.held_n, 1);
	}
	assert_int_equal(rig_count(URN_C_AM_RETRIES), 20);
	rig_run();
	rig_expect(0, URN_AM_DONE, 10);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10);
	for (unsigned int i = 0; i < 15 && rig.held_n; i++) {
		rig_answer(0, URN_MSG_BUSY);
		rig.refuse = i == 12 ? URN_MSG_BUSY : 0;
		rig_turn(rig.tp->now + SECOND);
	}
	rig.refuse = 0;
	rig_turn(rig.tp->now + SECOND);
	rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_BUSY, 0);
}

/* A packet that was delivered and never replied to ends its operation after 10 s: a late reply
 * finds nothing. */
static void
silent_targets_end_operations(void **state)
{
	struct urn_am_msg m, f;

	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	rig_command(0, URN_AM_READ, 1, 0, 0, 10);
	m = rig_parsed(0);
	rig_answer(0, URN_MSG_DONE);
	for (unsigned int i = 0; i < 9; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_no_event(0);
	for (unsigned int i = 0; i < 3; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_NO_REPLY | URN_AM_MAY_BE_THERE, 0);
	rig_expect(0, URN_AM_NO_REPLY, 0);
	assert_int_equal(rig.held_n, 0); /* flows were told to forget the rest */
	assert_int_equal(rig_count(URN_C_AM_SILENT), 2);
	f = (struct urn_am_msg){.kind = URN_AM_K_WRITE_REPLY, .len = CHUNK, .tag = m.tag};
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	rig_no_event(0);
}

/* Each answer of a flow that is no success ends the operation with a code of its own. */
static void
answers_of_flows_have_codes(void **state)
{
	static const struct {
		uint8_t flow, write, read;
	} t[] = {
		{URN_MSG_NO_NODE, URN_AM_NO_NODE, URN_AM_NO_NODE},
		{URN_MSG_NO_QUEUE, URN_AM_NO_ENDPOINT, URN_AM_NO_ENDPOINT},
		{URN_MSG_NOT_PERMITTED, URN_AM_BAD_PACKET, URN_AM_BAD_PACKET},
		{URN_MSG_TOO_LONG, URN_AM_BAD_PACKET, URN_AM_BAD_PACKET},
		{URN_MSG_UNREACHABLE, URN_AM_UNREACHABLE, URN_AM_UNREACHABLE},
		{URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE,
		 URN_AM_UNREACHABLE | URN_AM_MAY_BE_THERE, URN_AM_UNREACHABLE},
		{URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE, URN_AM_RESTARTED | URN_AM_MAY_BE_THERE,
		 URN_AM_RESTARTED},
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		rig_command(0, URN_AM_WRITE, 1, 0, 0, 10);
		rig_answer(0, t[i].flow);
		rig_expect(0, t[i].write, 0);
		rig_command(0, URN_AM_READ, 1, 0, 0, 10);
		rig_answer(0, t[i].flow);
		rig_expect(0, t[i].read, 0);
	}
	rig.refuse = URN_MSG_NO_NODE;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10 * CHUNK);
	rig_expect(0, URN_AM_NO_NODE, 0);
	rig.refuse = 0;
	rig_no_event(0);
}

/* AM-9: local memory that is deregistered while packets wait ends the operation, and nothing is
 * sent of it. */
static void
local_memory_goes(void **state)
{
	(void)state;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 2 * CHUNK);
	rig_command(2, URN_AM_WRITE, 3, 0, 0, 10);
	assert_int_equal(rig_deliver(0, 9), URN_MSG_DONE);
	rig_answer(0, URN_MSG_DONE);
	rig_deregister(0);
	assert_int_equal(rig_deliver(0, 9), URN_FLOW_GONE);
	rig_run();
	rig_expect(0, URN_AM_LOCAL, CHUNK);
	rig_expect(2, URN_AM_DONE, 10);
	/* So does memory that was never there: that of one packet when its frame is made, other at
	 * once. */
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 2 * CHUNK);
	rig_expect(0, URN_AM_LOCAL, 0);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 10);
	rig_run();
	rig_expect(0, URN_AM_LOCAL, 0);
	/* A packet that was sent before may have come. */
	rig_command(2, URN_AM_WRITE, 3, 0, 0, 10);
	rig_answer(0, URN_FLOW_GONE | URN_MSG_MAY_BE_THERE);
	rig_expect(2, URN_AM_LOCAL | URN_AM_MAY_BE_THERE, 0);
}

/* A write's bytes are those of the time when its frame is made, as for a queue pair's WRITE. */
static void
bytes_are_those_of_the_frame(void **state)
{
	(void)state;
	fill(0, 100);
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 100);
	rig.end[0].mem[50] ^= 0xff;
	rig_run();
	rig_expect(0, URN_AM_DONE, 100);
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, 100);
}

/* A flow without room keeps packets waiting; they go once it has room. */
static void
packets_wait_for_room_in_a_flow(void **state)
{
	(void)state;
	rig.refuse = URN_MSG_BUSY;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 5 * CHUNK);
	rig_turn(rig.tp->now + 1000);
	assert_int_equal(rig.held_n, 0);
	rig.refuse = 0;
	rig_turn(rig.tp->now + 1000);
	assert_int_equal(rig.held_n, 5);
	rig_run();
	rig_expect(0, URN_AM_DONE, 5 * CHUNK);
}

/* A client's indices of rings that make no sense stop that client's endpoint, and nothing else. */
static void
nonsense_of_a_client_is_its_own(void **state)
{
	uint32_t rnd = 1;

	(void)state;
	atomic_store(&rig.end[0].regs->client.commands, 1000);
	urn_am_ep_ops.rung(rig.tp, urn_am_ep_source(rig.end[0].ep));
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, 0);
	assert_true(rig_count(URN_C_AM_BAD_RING) >= 1);
	for (unsigned int n = 0; n < 20000; n++) {
		uint32_t *words = (uint32_t *)(void *)rig.end[0].regs;

		for (unsigned int k = 0; k < 8; k++) {
			rnd = rnd * 1103515245u + 12345u;
			words[(rnd >> 8) % (urn_am_ep_bytes(ENTRIES, RANGES) / 4)] = rnd >> 5;
		}
		if (n % 3 == 0)
			*rig_next(0, 1 + n % 2, n % ENDS, n, n, n % (3 * CHUNK)) =
				*rig_next(0, 1 + n % 2, 1, n, n, n % 5000);
		atomic_store(&rig.end[0].regs->client.commands,
			     atomic_load(&rig.end[0].regs->dp.commands) + n % 20);
		if (n % 2)
			atomic_store(&rig.end[0].regs->client.events,
				     atomic_load(&rig.end[0].regs->dp.events) - n % 20);
		urn_am_ep_ops.rung(rig.tp, urn_am_ep_source(rig.end[0].ep));
		rig_turn(rig.tp->now + 100000);
		while (rig.held_n > 20)
			rig_answer(n % 5, n % 7 ? rig_deliver(n % 5, 9) : URN_MSG_BUSY);
		if (n % 1000)
			continue;
		rig_command(2, URN_AM_WRITE, 3, 0, 0, 100);
		rig_run();
		rig_turn(rig.tp->now + SECOND);
		rig_run();
		rig_expect(2, URN_AM_DONE, 100);
	}
}

/* AM-4: a client that has all the packets it can get leaves some to others, and goes on later. */
static void
packets_are_left_to_others(void **state)
{
	enum { HOARD = URN_AM_OUTS / 8 * 7 };

	(void)state;
	rig.am->outs += HOARD;
	rig.client[0]->am += HOARD;
	urn_share_user(rig.client[0])->am += HOARD;
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 100);
	assert_int_equal(rig.held_n, 0);
	rig_command(1, URN_AM_WRITE, 0, 0, 0, 100);
	assert_int_equal(rig.held_n, 1);
	rig_run();
	rig_expect(1, URN_AM_DONE, 100);
	rig_no_event(0);
	rig.am->outs -= HOARD;
	rig.client[0]->am -= HOARD;
	urn_share_user(rig.client[0])->am -= HOARD;
	rig_turn(rig.tp->now + 1000000);
	rig_run();
	rig_expect(0, URN_AM_DONE, 100);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(packets_come_in_any_order),
		T(packets_have_whole_pages),
		T(a_turn_has_a_bound),
		T(replies_come_in_any_order),
		T(a_reply_overtakes_the_acknowledgement),
		T(replies_share_a_message),
		T(forged_replies_are_refused),
		T(an_error_ends_one_operation),
		T(busy_targets_are_tried_again),
		T(silent_targets_end_operations),
		T(answers_of_flows_have_codes),
		T(local_memory_goes),
		T(bytes_are_those_of_the_frame),
		T(packets_wait_for_room_in_a_flow),
		T(packets_are_left_to_others),
		T(nonsense_of_a_client_is_its_own),
	};

	return cmocka_run_group_tests_name("am_initiator", tests, NULL, NULL);
}
