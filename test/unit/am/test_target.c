/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of remote memory access: handlers, bounds of replies, and peers that send
 * anything (AM-9, AM-11). */
#include "rig.h"

#include <stdlib.h>
#include <string.h>

static struct urn_am_msg
request(uint8_t kind, uint64_t off, uint32_t len)
{
	return (struct urn_am_msg){.kind = kind,
				   .len = len,
				   .tag = 77,
				   .addr = (uintptr_t)rig.end[1].mem + off,
				   .key = rig.end[1].key};
}

/* AM-2, AM-3: a write is placed within the call, and a read gathered when the reply's frame is
 * made; the reply has the tag and the length. */
static void
requests_are_carried_out_at_once(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 10, 100), r = request(URN_AM_K_READ, 10, 100),
			  m;

	(void)state;
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	for (unsigned int i = 0; i < 102; i++)
		assert_int_equal(rig.end[1].mem[9 + i], i == 0 || i == 101 ? GUARD_BYTE : 0xee);
	m = rig_parsed(0);
	assert_int_equal(m.kind, URN_AM_K_WRITE_REPLY);
	assert_true(m.tag == 77 && m.len == 100);
	assert_true(rig.held[0]->qid == rig_qid(0) && rig.held[0]->src_qid == rig_qid(1));
	assert_int_equal(rig.node[0][15], 5);
	assert_int_equal(rig_forge(&r, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	m = rig_parsed(1);
	assert_int_equal(m.kind, URN_AM_K_READ_REPLY);
	assert_memory_equal(m.data, rig.end[1].mem + 10, 100);
}

/* Replies to writes of one length, from one endpoint to another, share a message as long as no
 * packet holds it. */
static void
replies_share_a_message(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 8), m = {0};
	const uint8_t *data;

	(void)state;
	rig.grow = true;
	for (unsigned int i = 0; i < URN_AM_MORE_MAX + 2; i++) {
		w.tag = 100 + i;
		assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	}
	assert_int_equal(rig.held_n, 2);
	data = rig.held[0]->data;
	assert_int_equal(urn_am_parse_more(data, rig.held[0]->len, &m), URN_AM_MORE_MAX);
	assert_true(m.tag == 100 && m.len == 8 && m.kind == URN_AM_K_WRITE_REPLY);
	for (unsigned int i = 0; i < URN_AM_MORE_MAX; i++)
		assert_true(urn_am_more_tag(data, i) == 101 + i);
	assert_true(rig_parsed(1).tag == 101 + URN_AM_MORE_MAX);
	assert_int_equal(rig_count(URN_C_AM_WRITES_RX), URN_AM_MORE_MAX + 2);
	/* Another length, initiator, node or target; a read; a refused write. */
	for (unsigned int i = 0; i < 6; i++) {
		w = request(i == 4 ? URN_AM_K_READ : URN_AM_K_WRITE, 0, i == 0 ? 9 : 8);
		w.key = i == 5 ? 1 : i == 3 ? rig.end[2].key : w.key;
		w.addr = i == 3 ? (uintptr_t)rig.end[2].mem : w.addr;
		assert_int_equal(rig_forge(&w, rig_qid(i == 1 ? 3 : 0), i == 2 ? 6 : 5,
					   rig_qid(i == 3 ? 2 : 1)),
				 URN_MSG_DONE);
		assert_int_equal(rig.held_n, 3 + i);
		assert_true(rig_parsed(2 + i).tag == 77);
	}
	assert_int_equal(rig_parsed(7).kind, URN_AM_K_ERROR);
	/* A message that is in a packet does not grow, and one that was answered is another's. */
	w = request(URN_AM_K_WRITE, 0, 8);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	rig.held[8]->state = 3; /* sent */
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig.held_n, 10);
	rig_answer(9, URN_MSG_DONE);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig.held_n, 10);
}

/* Ends of the right to read bytes, between a read and the frame of its reply. */
enum end_of_right { REGION_REMOVED, MEMORY_DEREGISTERED, ENDPOINT_CLOSED };

/* AM-9: once a region is removed, no byte of it is read, also for a reply that waits or is sent
 * again: the initiator gets an access error message. */
static void
rights_may_end_before_the_reply_is_sent(void **state)
{
	static const uint8_t code[] = {URN_AM_BAD_KEY, URN_AM_BAD_KEY, URN_AM_NO_ENDPOINT};

	(void)state;
	for (unsigned int i = REGION_REMOVED; i <= ENDPOINT_CLOSED; i++) {
		struct urn_am_msg r = request(URN_AM_K_READ, 10, 200), m;
		uint64_t from, to = rig_qid(i);
		unsigned int access = (unsigned int)rig_count(URN_C_AM_ACCESS);

		r.addr = (uintptr_t)rig.end[i].mem + 10;
		r.key = rig.end[i].key;
		from = rig_qid(3);
		assert_int_equal(rig_forge(&r, from, 5, to), URN_MSG_DONE);
		assert_int_equal(rig_parsed(0).kind, URN_AM_K_READ_REPLY);
		if (i == REGION_REMOVED)
			assert_int_equal(urn_am_region_remove(rig.end[i].ep, r.key), 0);
		else if (i == MEMORY_DEREGISTERED)
			rig_deregister(i);
		else
			rig_close(i);
		assert_int_equal(rig_deliver(0, 9), URN_FLOW_GONE);
		rig_answer(0, URN_FLOW_GONE | (i ? URN_MSG_MAY_BE_THERE : 0));
		assert_int_equal(rig.held_n, 1);
		m = rig_parsed(0);
		assert_int_equal(m.kind, URN_AM_K_ERROR);
		assert_int_equal(m.code, code[i]);
		assert_true(m.tag == 77 && m.len == 200);
		assert_true(rig.held[0]->qid == from && rig.held[0]->src_qid == to);
		assert_int_equal(rig_count(URN_C_AM_ACCESS), access + 1);
		if (i != ENDPOINT_CLOSED) {
			assert_int_equal(rig.end[i].ep->refused, 1);
			assert_int_equal(rig.end[i].ep->refused_code, code[i]);
		}
		rig_answer(0, URN_MSG_DONE);
		assert_int_equal(rig.am->replies, 0);
	}
}

/* The bytes of a short read are read when it comes: nothing of the region is read afterwards. */
static void
short_reads_are_read_at_once(void **state)
{
	struct urn_am_msg r = request(URN_AM_K_READ, 10, URN_AM_HEAD_MAX - HEADER), m;

	(void)state;
	for (unsigned int i = 0; i < 2; i++, r.len++) {
		memset(rig.end[1].mem, 0x11, 1000);
		assert_int_equal(rig_forge(&r, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
		memset(rig.end[1].mem, 0x22, 1000);
		m = rig_parsed(i);
		assert_int_equal(m.kind, URN_AM_K_READ_REPLY);
		for (unsigned int k = 0; k < m.len; k++)
			assert_int_equal(m.data[k], i ? 0x22 : 0x11);
	}
}

/* AM-9: a packet over ranges that touch, of several memory regions, is in pieces; of more than four
 * it is refused. */
static void
packets_may_touch_several_regions(void **state)
{
	struct urn_abi_am_range *l = urn_am_ranges(rig.end[1].regs, ENTRIES);
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_WRITE, .n = 6};
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 40);

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		l[i] = (struct urn_abi_am_range){.addr = (uintptr_t)rig.end[1].mem + 10 * i,
						 .len = 10};
		assert_int_equal(urn_mem_reg_mr(rig.urn_mem, rig.pd, rig.end[1].mem + 10 * i, 10,
						l[i].addr, URN_ACCESS_LOCAL_WRITE, &l[i].lkey),
				 0);
	}
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &c), 0);
	w.key = c.key;
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig_parsed(0).kind, URN_AM_K_WRITE_REPLY);
	for (unsigned int i = 0; i < 41; i++)
		assert_int_equal(rig.end[1].mem[i], i < 40 ? 0xee : GUARD_BYTE);
	w.len = 41;
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig_parsed(1).code, URN_AM_SCATTERED);
	w.len = 61; /* one byte more than the region has */
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig_parsed(2).code, URN_AM_RANGE);
	assert_int_equal(rig.end[1].mem[40], GUARD_BYTE);
}

/* Replies to a node, and to all, have bounds: beyond, a packet is refused and nothing is done.
 * Other nodes are served. */
static void
replies_have_bounds(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 8);
	unsigned int n = 0;
	uint8_t last;

	(void)state;
	while (rig_forge(&w, rig_qid(0), 5, rig_qid(1)) == URN_MSG_DONE)
		n++;
	assert_int_equal(n, URN_AM_NODE_REPLIES);
	memset(rig.end[1].mem, 0, 8);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_BUSY);
	assert_int_equal(rig.end[1].mem[0], 0);
	assert_int_equal(rig_count(URN_C_DROP_AM_BUSY), 2);
	for (unsigned int node = 6; node < 255; node++)
		for (unsigned int i = 0; i < URN_AM_NODE_REPLIES; i++)
			n += rig_forge(&w, rig_qid(0), (uint8_t)node, rig_qid(1)) == URN_MSG_DONE;
	assert_int_equal(n + rig.am->kept, URN_AM_REPLIES);
	/* The engine's own operations have packets of their own. */
	last = rig.node[rig.held_n - 1][15];
	rig.held_n -= 10;
	for (unsigned int i = 0; i < 10; i++)
		urn_am_flow_user.answered(rig.tp, rig.held[rig.held_n + i], URN_MSG_DONE);
	rig_command(2, URN_AM_WRITE, 3, 0, 0, 10);
	assert_false(urn_am_kind_is_reply(rig_parsed(rig.held_n - 1).kind));
	assert_int_equal(rig_forge(&w, rig_qid(0), last, rig_qid(1)), URN_MSG_DONE);
}

/* Replies that no flow has room for wait, in their order, for at most 10 s. */
static void
replies_wait_for_room(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 8);

	(void)state;
	rig.refuse = URN_MSG_BUSY;
	for (unsigned int i = 0; i < 5; i++) {
		w.tag = i;
		assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	}
	rig_turn(rig.tp->now + 1000);
	assert_int_equal(rig.held_n, 0);
	rig.refuse = 0;
	rig_turn(rig.tp->now + 1000);
	assert_int_equal(rig.held_n, 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_true(rig_parsed(i).tag == i);
	rig_answer(0, URN_MSG_BUSY); /* sent once more */
	assert_int_equal(rig.held_n, 5);
	rig.refuse = URN_MSG_BUSY;
	rig_answer(0, URN_MSG_BUSY);
	rig_turn(rig.tp->now + URN_AM_REPLY_NS);
	assert_int_equal(rig_count(URN_C_AM_REPLY_LOST), 1);
	rig_answer(0, URN_MSG_NO_QUEUE);
	assert_int_equal(rig_count(URN_C_AM_REPLY_LOST), 2);
	assert_int_equal(rig.am->replies, 3);
}

/* A flow to an earlier life of the initiator's node loses no reply to the new life; a reply is
 * tried for at most 10 s (AM-2). */
static void
replies_outlive_a_restart(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 8);

	(void)state;
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	rig_answer(0, URN_MSG_RESTARTED);
	assert_int_equal(rig.held_n, 1);
	assert_true(rig_parsed(0).tag == w.tag && rig_parsed(0).kind == URN_AM_K_WRITE_REPLY);
	rig_answer(0, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
	assert_int_equal(rig.held_n, 1);
	assert_int_equal(rig_count(URN_C_AM_REPLY_LOST), 0);
	rig_turn(rig.tp->now + URN_AM_REPLY_NS);
	rig_answer(0, URN_MSG_RESTARTED);
	assert_int_equal(rig.held_n, 0);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1)), URN_MSG_DONE);
	rig_turn(rig.tp->now + URN_AM_REPLY_NS);
	rig_answer(0, URN_MSG_BUSY); /* an initiator that never has room holds no reply */
	assert_int_equal(rig_count(URN_C_AM_REPLY_LOST), 2);
	assert_int_equal(rig.am->replies, 0);
}

/* A message whose sender is no endpoint has nowhere to reply to; one for no endpoint, and a long
 * one, have no target. */
static void
strange_senders_and_targets(void **state)
{
	struct urn_am_msg w = request(URN_AM_K_WRITE, 0, 8);
	struct urn_flow_from from = {.qid = 0};

	(void)state;
	assert_int_equal(rig_forge(&w, 1ull << 32, 5, rig_qid(1)), URN_MSG_NOT_PERMITTED);
	assert_int_equal(rig_forge(&w, URN_MSG_NAME(7), 5, rig_qid(1)), URN_MSG_NOT_PERMITTED);
	assert_int_equal(rig_count(URN_C_DROP_AM_FORMAT), 2);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, rig_qid(1) ^ 1ull << 40), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_forge(&w, rig_qid(0), 5, URN_AM_QID_BITS | 0xffff), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_count(URN_C_DROP_AM_ENDPOINT), 2);
	assert_int_equal(urn_am_flow_user.admit(rig.tp, &from, rig_qid(1), URN_AM_MSG_MAX),
			 URN_MSG_DONE);
	assert_int_equal(urn_am_flow_user.admit(rig.tp, &from, rig_qid(1), URN_AM_MSG_MAX + 1),
			 URN_MSG_TOO_LONG);
	assert_int_equal(urn_am_flow_user.admit(rig.tp, &from, rig_qid(1) + 9, 100),
			 URN_MSG_NO_QUEUE);
	assert_int_equal(rig.held_n, 0);
	assert_int_equal(rig.end[1].mem[0], GUARD_BYTE);
}

/* A peer that sends anything: mutated messages, replies to our own packets among them, with
 * operations under way. */
static void
a_peer_sends_anything(void **state)
{
	struct urn_flow_from from;
	uint32_t rnd = 7;

	(void)state;
	for (unsigned int n = 0; n < 300000; n++) {
		uint8_t buf[sizeof(struct urn_am_hdr) + 64], *exact;
		struct urn_am_msg m = request((uint8_t)(1 + n % 5), n % MEM, 1 + n % 64);
		uint32_t len;

		if (n % 50 == 0 && rig.end[0].ep)
			rig_command(0, 1 + n / 50 % 2, 1, n % 1000, n % 1000, 1 + n % 3000);
		if (urn_am_kind_is_reply(m.kind)) {
			m.addr = m.key = 0;
			m.code = m.kind == URN_AM_K_ERROR ? (uint8_t)(1 + n % (URN_AM_CODES - 1))
							  : 0;
			m.tag = rig.held_n ? rig_parsed(n % rig.held_n).tag : 1;
			m.len = rig.held_n && rig_parsed(n % rig.held_n).len <= 64
					? rig_parsed(n % rig.held_n).len
					: m.len;
		}
		len = urn_am_build(buf, &m);
		for (unsigned int k = n % 4; k; k--) {
			rnd = rnd * 1103515245u + 12345u;
			buf[(rnd >> 8) % sizeof(struct urn_am_hdr)] ^=
				(uint8_t)(1 << (rnd >> 28 & 7));
		}
		from.qid = rig_qid(1 + n % 3) ^ (n % 11 == 0 ? 1ull << (n % 64) : 0);
		rig_gid(from.node, n % 3 ? 9 : 5);
		exact = malloc(len);
		memcpy(exact, buf, len);
		(void)urn_am_flow_user.deliver(rig.tp, &from, rig_qid(n % ENDS), exact,
					       n % 13 ? len : n % (len + 1));
		free(exact);
		if (n % 3 == 0)
			rig_turn(rig.tp->now + 1000);
		for (unsigned int k = n; rig.held_n > 100; k++)
			rig_answer(k % 100, k % 9 ? URN_MSG_DONE : URN_MSG_BUSY);
		atomic_store(&rig.end[0].regs->client.events,
			     atomic_load(&rig.end[0].regs->dp.events));
	}
	rig.end[0].read = atomic_load(&rig.end[0].regs->dp.events);
	assert_true(rig_count(URN_C_AM_WRITES_RX) > 1000 && rig_count(URN_C_AM_READS_RX) > 1000);
	assert_true(rig_count(URN_C_DROP_AM_REPLY) > 1000 &&
		    rig_count(URN_C_DROP_AM_FORMAT) > 1000);
	assert_true(rig_count(URN_C_AM_ACCESS) > 1000);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(requests_are_carried_out_at_once),
		T(replies_share_a_message),
		T(rights_may_end_before_the_reply_is_sent),
		T(short_reads_are_read_at_once),
		T(packets_may_touch_several_regions),
		T(replies_have_bounds),
		T(replies_wait_for_room),
		T(replies_outlive_a_restart),
		T(strange_senders_and_targets),
		T(a_peer_sends_anything),
	};

	return cmocka_run_group_tests_name("am_target", tests, NULL, NULL);
}
