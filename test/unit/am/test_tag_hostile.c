/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged transfers with peers that keep no rule, and memory that is taken away in mid-transfer
 * (AM-7, AM-9, AM-10): one operation ends, its tag is retired at both ends, and no other is
 * disturbed. */
#include "am/tagged.h"
#include "rig.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ull

enum { PEER = 5 }; /* the node that keeps no rule */

static uint8_t
pass(unsigned int n)
{
	uint8_t code = rig_deliver(n, 9);

	rig_answer(n, code);
	return code;
}

/* The memory of an endpoint is deregistered. */
static void
take_memory(unsigned int i)
{
	struct urn_region *region;

	assert_int_equal(urn_mem_kill_mr(rig.urn_mem, rig.end[i].lkey, &region), 0);
	urn_mem_free_mr(rig.urn_mem, region);
}

static struct urn_am_msg
request(uint8_t kind, uint64_t tag, uint64_t off, uint32_t len)
{
	return (struct urn_am_msg){.kind = kind,
				   .len = len,
				   .tag = tag,
				   .addr = (uintptr_t)rig.end[1].mem + off,
				   .key = rig.end[1].key};
}

static struct urn_am_msg
bytes(uint64_t tag, uint64_t off, uint32_t len)
{
	return (struct urn_am_msg){
		.kind = URN_AM_K_TAG_DATA, .len = len, .tag = tag, .addr = off, .key = rig_qid(1)};
}

/* A message of node PEER to endpoint 1. */
static uint8_t
send(const struct urn_am_msg *m)
{
	return rig_forge(m, rig_qid(3), PEER, rig_qid(1));
}

/* The progress module has a turn; then the last message held is an error of this code for the tag.
 */
static void
expect_error(uint8_t code, uint64_t tag, uint64_t placed)
{
	struct urn_am_msg m;

	rig_turn(rig.tp->now);
	m = rig_parsed(rig.held_n - 1);
	assert_int_equal(m.kind, URN_AM_K_TAG_ERROR);
	assert_string_equal(urn_am_code_word(m.code), urn_am_code_word(code));
	assert_true(m.tag == tag && m.addr == placed);
	assert_true(rig.node[rig.held_n - 1][15] == PEER &&
		    rig.held[rig.held_n - 1]->qid == rig_qid(3));
	rig_answer(rig.held_n - 1, URN_MSG_DONE);
}

/* An honest write between other endpoints of the same nodes, whole. */
static void
another_works(void)
{
	rig_tagged(0, URN_AM_WRITE, 2, 0, 0, 5 * CHUNK);
	rig_run();
	rig_expect(0, URN_AM_DONE, 5 * CHUNK);
}

/* AM-9: a request is checked before it is queued: key, rights, range. The tag is retired: data that
 * follows is discarded, and not held back. */
static void
requests_are_checked(void **state)
{
	struct urn_am_msg q, d;
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_READ, .n = 1};

	(void)state;
	*urn_am_ranges(rig.end[1].regs, ENTRIES) = (struct urn_abi_am_range){
		.addr = (uintptr_t)rig.end[1].mem, .len = MEM, .lkey = rig.end[1].lkey};
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &c), 0);
	for (unsigned int i = 0; i < 5; i++) {
		static const uint8_t codes[] = {URN_AM_BAD_KEY, URN_AM_RANGE, URN_AM_RANGE,
						URN_AM_RIGHTS, URN_AM_UNREGISTERED};

		q = request(URN_AM_K_TAG_WRITE, 100 + i, i == 1 ? MEM - 999 : 0, 1000);
		q.key ^= i == 0 ? 1ull << 30 : 0;
		q.addr -= i == 2 ? 1 : 0;
		q.key = i == 3 ? c.key : i == 4 ? 0 : q.key;
		assert_int_equal(send(&q), URN_MSG_DONE);
		d = bytes(100 + i, 0, 10);
		assert_int_equal(send(&d), URN_MSG_DONE); /* before the error goes out */
		expect_error(codes[i], 100 + i, 0);
		assert_int_equal(send(&d), URN_MSG_DONE); /* and after that */
		assert_int_equal(rig_count(URN_C_AM_DISCARDED), 2 * i + 2);
	}
	assert_int_equal(rig.am->tagged->n, 0);
	assert_int_equal(rig_count(URN_C_AM_EARLY), 0);
	for (unsigned int i = 0; i < MEM; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
	another_works();
}

/* Data beyond the range of its operation, early or not, ends the operation; so does more data than
 * the operation has. */
static void
data_beyond_the_range(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t len;
	} t[] = {{901, 100}, {1000, 1}, {1u << 29, 10}, {0, 960}};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(t); i++)
		for (unsigned int early = 0; early < 2; early++) {
			uint64_t tag = 10 * i + early + 1;
			struct urn_am_msg q = request(URN_AM_K_TAG_WRITE, tag, 5000, 1000),
					  d = bytes(tag, 500, 100);

			assert_int_equal(send(early ? &d : &q), URN_MSG_DONE);
			assert_int_equal(send(early ? &q : &d), URN_MSG_DONE);
			d = bytes(tag, t[i].off, t[i].len);
			rig_turn(rig.tp->now);
			assert_int_equal(send(&d), URN_MSG_DONE);
			expect_error(URN_AM_RANGE, tag, 100);
		}
	for (unsigned int i = 0; i < MEM; i++)
		assert_int_equal(rig.end[1].mem[i], i >= 5500 && i < 5600 ? 0xee : GUARD_BYTE);
	another_works();
}

/* AM-10: a tagged message that names another endpoint is an access error, with a request and
 * without. */
static void
the_addressee_is_compared(void **state)
{
	struct urn_am_msg q = request(URN_AM_K_TAG_WRITE, 7, 0, 100), d = bytes(7, 0, 10);

	(void)state;
	assert_int_equal(send(&q), URN_MSG_DONE);
	d.key = rig_qid(2);
	assert_int_equal(send(&d), URN_MSG_DONE);
	expect_error(URN_AM_ADDRESSEE, 7, 0);
	d.tag = 8;
	assert_int_equal(send(&d), URN_MSG_DONE);
	expect_error(URN_AM_ADDRESSEE, 8, 0);
	assert_int_equal(rig.am->tagged->n, 0);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(rig.end[1].mem[i] & rig.end[2].mem[i], GUARD_BYTE);
}

/* AM-7: the tag of another node's operation, or of another endpoint's, is a tag of one's own:
 * nothing of that operation is touched. */
static void
tags_belong_to_their_initiator(void **state)
{
	struct urn_am_msg m, d;

	(void)state;
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	m = rig_parsed(0);
	pass(0);
	rig_turn(rig.tp->now);
	d = bytes(m.tag, 0, 100);
	assert_int_equal(rig_forge(&d, rig_qid(0), PEER, rig_qid(1)), URN_MSG_DONE); /* node */
	assert_int_equal(rig_forge(&d, rig_qid(3), 9, rig_qid(1)), URN_MSG_DONE);    /* endpoint */
	d.key = rig_qid(2);
	assert_int_equal(rig_forge(&d, rig_qid(0), 9, rig_qid(2)), URN_MSG_DONE); /* target */
	assert_int_equal(rig_count(URN_C_AM_EARLY), 3);
	d = (struct urn_am_msg){
		.kind = URN_AM_K_TAG_CANCEL, .code = URN_AM_LOCAL, .len = 1, .tag = m.tag};
	assert_int_equal(rig_forge(&d, rig_qid(0), PEER, rig_qid(1)), URN_MSG_DONE);
	memset(rig.end[0].mem, 0x11, 3 * CHUNK);
	for (unsigned int k = 0; k < 3; k++)
		pass(0);
	rig_run();
	rig_expect(0, URN_AM_DONE, 3 * CHUNK);
	for (unsigned int i = 0; i < 3 * CHUNK; i++)
		assert_true(rig.end[1].mem[i] == GUARD_BYTE || rig.end[1].mem[i] == 0x11);
}

/* A request, data and a packet of a pipelined write under a tag whose transfer ended well: each is
 * an error that says so, nothing is written, and nothing is kept. */
static void
used_again(uint64_t tag)
{
	struct urn_am_msg m[] = {
		request(URN_AM_K_TAG_WRITE, tag, 200, 100),
		request(URN_AM_K_TAG_READ, tag, 200, 100),
		bytes(tag, 0, 100),
		{.kind = URN_AM_K_PART,
		 .len = 10,
		 .tag = tag,
		 .total = 20,
		 .every = 2,
		 .addr = (uintptr_t)rig.end[1].mem + 200,
		 .key = rig.end[1].key},
	};

	for (unsigned int i = 0; i < RTE_DIM(m); i++) {
		assert_int_equal(send(&m[i]), URN_MSG_DONE);
		assert_int_equal(rig.held_n, 1);
		expect_error(URN_AM_TAG_USED, tag, 0);
		assert_int_equal(rig.am->tagged->n, 0);
	}
	for (unsigned int i = 200; i < 300; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
}

/* AM-7: a second request under a tag in use, or under one that was retired, is an error that says
 * so; the first operation goes on. */
static void
a_tag_is_used_once(void **state)
{
	struct urn_am_msg q = request(URN_AM_K_TAG_WRITE, 7, 0, 100), d = bytes(7, 0, 100), m;

	(void)state;
	assert_int_equal(send(&q), URN_MSG_DONE);
	assert_int_equal(send(&q), URN_MSG_DONE); /* on the RMA queue */
	m = rig_parsed(0);
	assert_true(m.kind == URN_AM_K_TAG_ERROR && m.code == URN_AM_TAG_USED && m.tag == 7);
	rig_answer(0, URN_MSG_DONE);
	rig_turn(rig.tp->now);
	q.kind = URN_AM_K_TAG_READ;
	assert_int_equal(send(&q), URN_MSG_DONE); /* posted */
	assert_int_equal(rig_parsed(0).code, URN_AM_TAG_USED);
	rig_answer(0, URN_MSG_DONE);
	assert_int_equal(send(&d), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig_parsed(0).kind, URN_AM_K_TAG_DONE);
	rig_answer(0, URN_MSG_DONE);
	used_again(7); /* ended well */
	/* Retired by a failure, and by a cancel that came first. */
	q = request(URN_AM_K_TAG_WRITE, 8, MEM, 100);
	assert_int_equal(send(&q), URN_MSG_DONE);
	expect_error(URN_AM_RANGE, 8, 0);
	q = request(URN_AM_K_TAG_WRITE, 8, 0, 100);
	assert_int_equal(send(&q), URN_MSG_DONE);
	expect_error(URN_AM_TAG_RETIRED, 8, 0);
	m = (struct urn_am_msg){
		.kind = URN_AM_K_TAG_CANCEL, .code = URN_AM_BUSY, .len = 1, .tag = 9};
	assert_int_equal(send(&m), URN_MSG_DONE);
	q.tag = 9;
	assert_int_equal(send(&q), URN_MSG_DONE);
	expect_error(URN_AM_TAG_RETIRED, 9, 0);
	assert_int_equal(rig.am->tagged->n, 0);
}

/* The memory of retired tags has a bound: the oldest is forgotten. */
static void
retired_tags_have_a_bound(void **state)
{
	struct urn_am_msg m = {.kind = URN_AM_K_TAG_CANCEL, .code = URN_AM_BUSY, .len = 1};
	struct urn_flow_from from = {.qid = rig_qid(3)};

	(void)state;
	rig_gid(from.node, PEER);
	for (m.tag = 1; m.tag <= 5000; m.tag++)
		assert_int_equal(send(&m), URN_MSG_DONE);
	for (uint64_t tag = 1; tag <= 5000; tag++)
		assert_int_equal(urn_am_is_retired(rig.am->tagged, from.node, from.qid, tag, false),
				 tag > 5000 - URN_AM_RETIRED);
	assert_false(urn_am_is_retired(rig.am->tagged, from.node, from.qid, 5000, true));
}

/* AM-9: a key that is revoked in mid-transfer ends the write with the reason; the event says how
 * many bytes were placed; data under way is discarded; another write goes on. */
static void
a_revoked_key_ends_a_write(void **state)
{
	(void)state;
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 100 * CHUNK);
	rig_tagged(2, URN_AM_WRITE, 3, 0, 0, 30 * CHUNK);
	for (unsigned int i = 0; i < 10; i++)
		pass(0);
	assert_int_equal(rig_count(URN_C_AM_TAG_DATA), 9);
	assert_int_equal(urn_am_region_remove(rig.end[1].ep, rig.end[1].key), 0);
	rig_run();
	rig_expect(0, URN_AM_BAD_KEY, 9 * CHUNK);
	rig_expect(2, URN_AM_DONE, 30 * CHUNK);
	assert_int_equal(rig_count(URN_C_AM_TAG_DATA), 9 + 30);
	assert_true(rig_count(URN_C_AM_DISCARDED) > 30);
	assert_int_equal(rig.am->tagged->n, 0);
	for (unsigned int i = 9 * CHUNK; i < MEM; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
}

/* So does one that is revoked in a read, and memory below the region that was deregistered. */
static void
a_revoked_key_ends_a_read(void **state)
{
	(void)state;
	memset(rig.end[0].mem, 0, MEM);
	rig_tagged(0, URN_AM_READ, 1, 0, 0, 200 * CHUNK);
	pass(0);
	rig_turn(rig.tp->now);
	for (unsigned int i = 0; i < URN_AM_BACK_WINDOW; i++)
		pass(0);
	take_memory(1);
	rig_run();
	rig_expect(0, URN_AM_BAD_KEY, URN_AM_BACK_WINDOW * CHUNK);
	for (unsigned int i = 0; i < 200 * CHUNK; i++)
		assert_int_equal(rig.end[0].mem[i],
				 i < URN_AM_BACK_WINDOW * CHUNK ? GUARD_BYTE : 0);
	assert_int_equal(rig.am->tagged->n, 0);
}

/* Declare the memory of endpoint 1 anew, with other rights. */
static void
declare(uint32_t access)
{
	struct urn_am_region_config c = {.access = access, .n = 1, .space = true};

	*urn_am_ranges(rig.end[1].regs, ENTRIES) = (struct urn_abi_am_range){
		.addr = (uintptr_t)rig.end[1].mem, .len = MEM, .lkey = rig.end[1].lkey};
	if (rig.end[1].ep->space)
		assert_int_equal(urn_am_region_remove(rig.end[1].ep, 0), 0);
	assert_int_equal(urn_am_region_add(rig.tp, rig.end[1].ep, &c), 0);
}

/* AM-9: the space is declared anew with other rights in mid-transfer: each packet is checked
 * against those of its time. */
static void
other_rights_end_a_transfer(void **state)
{
	(void)state;
	rig.am->unregistered = true;
	for (unsigned int op = URN_AM_WRITE; op <= URN_AM_READ; op++) {
		struct urn_abi_am_cmd *c = rig_next(0, (uint8_t)op, 1, 0, 0, 200 * CHUNK);

		declare(op == URN_AM_WRITE ? URN_AM_ACCESS_WRITE : URN_AM_ACCESS_READ);
		c->way = URN_AM_TAGGED;
		c->key = 0;
		rig_post(0);
		pass(0);
		rig_turn(rig.tp->now);
		for (unsigned int i = 0; i < 9; i++)
			pass(0);
		declare(op == URN_AM_WRITE ? URN_AM_ACCESS_READ : URN_AM_ACCESS_WRITE);
		rig_run();
		rig_expect(0, URN_AM_RIGHTS, 9 * CHUNK);
	}
}

/* AM-7: data under the tag of a read, which came before the read's request, is not placed. */
static void
early_data_for_a_read(void **state)
{
	struct urn_am_msg m = {.kind = URN_AM_K_TAG_DATA,
			       .len = 1,
			       .tag = 77,
			       .key = rig_qid(1),
			       .data = (const uint8_t *)"x"};

	(void)state;
	assert_int_equal(rig_forge(&m, rig_qid(0), 9, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(rig.am->tagged->early_n, 1);
	m = (struct urn_am_msg){.kind = URN_AM_K_TAG_READ,
				.len = 1,
				.tag = 77,
				.addr = (uintptr_t)rig.end[1].mem,
				.key = rig.end[1].key};
	assert_int_equal(rig_forge(&m, rig_qid(0), 9, rig_qid(1)), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, 1);
	m = rig_parsed(0);
	assert_true(m.kind == URN_AM_K_TAG_ERROR && m.code == URN_AM_BAD_PACKET);
	assert_int_equal(rig.am->tagged->early_n, 0);
	assert_int_equal(rig.end[1].mem[0], GUARD_BYTE);
	rig_answer(0, URN_MSG_DONE);
}

/* Bytes that the target placed after the operation had failed here: the code says so. */
static void
placed_after_a_failure(void **state)
{
	(void)state;
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 20 * CHUNK);
	assert_int_equal(rig_deliver(0, 9), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	for (unsigned int i = 1; i <= 5; i++)
		assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
	rig_answer(8, URN_FLOW_GONE); /* local bytes are gone */
	rig_run();
	rig_expect(0, URN_AM_LOCAL | URN_AM_MAY_BE_THERE, 0);
}

/* Local memory that is taken away in mid-transfer ends the operation, and the target is told: it
 * sends no more, and forgets its receive. */
static void
local_memory_that_goes_cancels(void **state)
{
	(void)state;
	for (unsigned int op = URN_AM_WRITE; op <= URN_AM_READ; op++) {
		unsigned int from = op == URN_AM_WRITE ? 0 : 2;

		rig_tagged(from, (uint8_t)op, 1, 0, 0, 200 * CHUNK);
		pass(0);
		rig_turn(rig.tp->now);
		for (unsigned int i = 0; i < 10; i++)
			pass(0);
		assert_int_equal(rig.am->tagged->n, 1);
		take_memory(from);
		rig_run();
		if (op == URN_AM_WRITE)
			rig_expect(from, URN_AM_LOCAL | URN_AM_MAY_BE_THERE, 0);
		else
			rig_expect(from, URN_AM_LOCAL, 10 * CHUNK);
		assert_int_equal(rig.am->tagged->n, 0);
	}
	assert_true(rig_count(URN_C_AM_DISCARDED) > 0);
}

/* Answers and data for an initiator that make no sense are refused, or end that operation. */
static void
forged_answers(void **state)
{
	struct urn_am_msg m, f;

	(void)state;
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 500 * CHUNK);
	m = rig_parsed(0);
	for (unsigned int i = 0; i < 9; i++) {
		f = (struct urn_am_msg){.kind = URN_AM_K_TAG_DONE,
					.len = 500 * CHUNK,
					.tag = m.tag,
					.addr = 500 * CHUNK}; /* not all was sent */
		f.len -= i == 1 ? 1 : 0;
		f.addr -= i == 1 || i == 2 ? 1 : 0;
		f.addr = i == 8 ? 1 : f.addr; /* a tagged write is confirmed whole */
		f.tag += i == 3 ? 1 : i == 4 ? 1ull << 16 : 0;
		if (i == 5)
			f = (struct urn_am_msg){.kind = URN_AM_K_TAG_BACK,
						.len = 10,
						.tag = m.tag,
						.key = rig_qid(0)};
		assert_int_equal(rig_forge(&f, rig_qid(i == 6 ? 2 : 1), i == 7 ? 8 : 9, rig_qid(0)),
				 URN_MSG_NOT_PERMITTED);
	}
	assert_int_equal(rig_count(URN_C_DROP_AM_REPLY), 9);
	rig_run();
	rig_expect(0, URN_AM_DONE, 500 * CHUNK);
	f = (struct urn_am_msg){.kind = URN_AM_K_TAG_DONE, .len = 1, .tag = m.tag, .addr = 1};
	assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_NOT_PERMITTED);
	/* Data of a read that goes beyond it, or names another endpoint. */
	memset(rig.end[0].mem, 0, 2000);
	for (unsigned int i = 0; i < 3; i++) {
		rig_tagged(0, URN_AM_READ, 1, 0, 0, 1000);
		m = rig_parsed(0);
		f = (struct urn_am_msg){.kind = URN_AM_K_TAG_BACK,
					.len = 100,
					.tag = m.tag,
					.addr = i == 0	 ? 901
						: i == 1 ? 1u << 29
							 : 0,
					.key = i == 2 ? rig_qid(2) : rig_qid(0)};
		assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_DONE);
		rig_run();
		rig_expect(0, i == 2 ? URN_AM_ADDRESSEE : URN_AM_BAD_PACKET, 0);
		assert_int_equal(rig_forge(&f, rig_qid(1), 9, rig_qid(0)), URN_MSG_DONE);
	}
	for (unsigned int i = 0; i < 2000; i++)
		assert_int_equal(rig.end[0].mem[i], 0);
}

/* An endpoint that goes tells the initiators of transfers to it. */
static void
an_endpoint_that_goes(void **state)
{
	(void)state;
	rig_tagged(0, URN_AM_READ, 1, 0, 0, 500 * CHUNK);
	rig_tagged(2, URN_AM_WRITE, 1, 0, 0, 20 * CHUNK);
	pass(0); /* on the RMA queue */
	pass(0);
	pass(0);
	rig_close(1);
	assert_int_equal(rig.am->tagged->n, 0);
	while (rig.held_n)
		pass(0);
	rig_expect(0, URN_AM_NO_ENDPOINT, 0);
	/* The write's data was refused before the error came. */
	rig_expect(2, URN_AM_NO_ENDPOINT | URN_AM_MAY_BE_THERE, 0);
}

/* Any kind with any tag in any order, with honest operations under way: those end, and nothing is
 * left. */
static void
a_peer_sends_any_tag(void **state)
{
	static const uint8_t kinds[] = {URN_AM_K_TAG_WRITE,  URN_AM_K_TAG_READ, URN_AM_K_TAG_DATA,
					URN_AM_K_TAG_BACK,   URN_AM_K_TAG_DONE, URN_AM_K_TAG_ERROR,
					URN_AM_K_TAG_CANCEL, URN_AM_K_PART};
	uint32_t rnd = 7, done = 0;

	(void)state;
	for (unsigned int n = 0; n < 200000; n++) {
		struct urn_am_msg m = request(URN_AM_K_TAG_WRITE, 0, 0, 1);

		rnd = rnd * 1103515245u + 12345u;
		m.kind = kinds[rnd >> 8 & 7];
		m.tag = (uint64_t)n / 300 * 32 + (rnd >> 16 & 31);
		m.len = 1 + (rnd >> 10) % 900;
		if (m.kind == URN_AM_K_TAG_DATA || m.kind == URN_AM_K_TAG_BACK) {
			m.addr = (rnd >> 4) % 2000;
			m.key = rig_qid(rnd >> 28 ? 1 : 2);
		} else if (m.kind == URN_AM_K_PART) {
			m.total = m.len * (1 + (rnd >> 30));
			m.every = (uint8_t)(1 + (rnd >> 22 & 3));
		} else if (m.kind != URN_AM_K_TAG_WRITE && m.kind != URN_AM_K_TAG_READ) {
			m.code = m.kind == URN_AM_K_TAG_DONE ? 0 : 1 + rnd % (URN_AM_CODES - 1);
			m.addr = m.key = 0;
		} else {
			m.addr += rnd % MEM;
		}
		(void)rig_forge(&m, rig_qid(3), PEER + n % 2,
				rig_qid(m.kind == URN_AM_K_TAG_BACK || n % 16 == 0 ? 0 : 1));
		if (n % 300 == 0)
			rig_tagged(0, 1 + n / 300 % 2, 2, 0, 0, 1 + n % 20000);
		while (rig.held_n > n % 64) {
			if (rig.node[0][15] == 9)
				pass(0);
			else
				rig_answer(0, n % 7 ? URN_MSG_DONE : URN_MSG_NOT_PERMITTED);
		}
		rig_turn(rig.tp->now + 1000);
		if (atomic_load(&rig.end[0].regs->dp.events) != rig.end[0].read) {
			uint32_t e = rig.end[0].read % ENTRIES;

			rig_expect(0, URN_AM_DONE,
				   urn_am_events(rig.end[0].regs, ENTRIES)[e].bytes);
			done++;
		}
	}
	assert_true(done > 600);
	assert_true(rig_count(URN_C_AM_EARLY) > 200 && rig_count(URN_C_AM_TAG_DATA) > 1000);
	assert_true(rig_count(URN_C_AM_ACCESS) > 1000 && rig_count(URN_C_AM_DISCARDED) > 1000);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(requests_are_checked),
		T(data_beyond_the_range),
		T(the_addressee_is_compared),
		T(tags_belong_to_their_initiator),
		T(a_tag_is_used_once),
		T(retired_tags_have_a_bound),
		T(a_revoked_key_ends_a_write),
		T(a_revoked_key_ends_a_read),
		T(other_rights_end_a_transfer),
		T(placed_after_a_failure),
		T(early_data_for_a_read),
		T(local_memory_that_goes_cancels),
		T(forged_answers),
		T(an_endpoint_that_goes),
		T(a_peer_sends_any_tag),
	};

	return cmocka_run_group_tests_name("am_tag_hostile", tests, NULL, NULL);
}
