/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged transfers between endpoints that keep the rules: RMA queue, progress module, tags, data
 * that comes early, ways (AM-5 to AM-8). */
#include "am/tagged.h"
#include "rig.h"

#include <string.h>

#define SECOND 1000000000ull

static void
fill(unsigned int i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		rig.end[i].mem[k] = (uint8_t)(k * 7 + k / 256);
}

/* Deliver the oldest message and answer it. returns: enum urn_msg_code */
static uint8_t
pass(unsigned int n)
{
	uint8_t code = rig_deliver(n, 9);

	rig_answer(n, code);
	return code;
}

/* AM-5: one request without data, then data under its tag, without waiting; each is placed as it
 * comes, in any order; one answer, after the last, and that from the progress module. */
static void
a_write_has_one_request_and_one_answer(void **state)
{
	enum { LEN = 10 * CHUNK + 17 };
	struct urn_am_msg m;
	uint64_t tag;

	(void)state;
	fill(0, LEN);
	rig_tagged(0, URN_AM_WRITE, 1, 100, 0, LEN);
	assert_int_equal(rig.held_n, 12);
	m = rig_parsed(0);
	assert_int_equal(m.kind, URN_AM_K_TAG_WRITE);
	assert_true(m.len == LEN && m.addr == (uintptr_t)rig.end[1].mem + 100 && !m.data);
	tag = m.tag;
	for (unsigned int i = 1; i < 12; i++) {
		m = rig_parsed(i);
		assert_int_equal(m.kind, URN_AM_K_TAG_DATA);
		assert_true(m.tag == tag && m.addr == (i - 1) * CHUNK && m.key == rig_qid(1));
	}
	assert_int_equal(rig_deliver(0, 9), URN_MSG_DONE);
	assert_string_equal(urn_am_transfer_word(rig.am->tagged->transfer[0].state), "queued");
	rig_turn(rig.tp->now);
	assert_string_equal(urn_am_transfer_word(rig.am->tagged->transfer[0].state), "open");
	for (unsigned int i = 12; i-- > 1;) {
		assert_int_equal(rig_deliver(i, 9), URN_MSG_DONE);
		m = rig_parsed(i);
		assert_memory_equal(rig.end[1].mem + 100 + m.addr, m.data, m.len);
		assert_int_equal(rig.held_n, 12);
	}
	assert_memory_equal(rig.end[1].mem + 100, rig.end[0].mem, LEN);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, 13);
	m = rig_parsed(12);
	assert_int_equal(m.kind, URN_AM_K_TAG_DONE);
	assert_true(m.tag == tag && m.len == LEN && m.addr == LEN);
	rig_no_event(0);
	assert_int_equal(pass(12), URN_MSG_DONE); /* before any acknowledgement */
	rig_expect(0, URN_AM_DONE, LEN);
	assert_int_equal(rig_count(URN_C_AM_TAG_DATA), 11);
	assert_int_equal(rig.am->tagged->n, 0);
}

/* Data that comes while its request is on the queue gives the request its turn, and needs no
 * buffer. */
static void
data_begins_its_request(void **state)
{
	(void)state;
	fill(0, 3 * CHUNK);
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	assert_int_equal(rig_deliver(0, 9), URN_MSG_DONE);
	assert_int_equal(rig.am->tagged->queue.writes_n, 1);
	assert_int_equal(rig_deliver(2, 9), URN_MSG_DONE);
	assert_int_equal(rig.am->tagged->queue.writes_n, 0);
	assert_memory_equal(rig.end[1].mem + CHUNK, rig.end[0].mem + CHUNK, CHUNK);
	assert_int_equal(rig_count(URN_C_AM_EARLY), 0);
	assert_int_equal(rig_deliver(1, 9), URN_MSG_DONE);
	assert_int_equal(rig_deliver(3, 9), URN_MSG_DONE);
	while (rig.held_n > 4)
		pass(4);
	rig_turn(rig.tp->now);
	pass(4);
	rig_expect(0, URN_AM_DONE, 3 * CHUNK);
	while (rig.held_n)
		rig_answer(0, URN_MSG_DONE);
}

/* AM-5: data that comes before its request waits for it. */
static void
early_data_waits_for_its_request(void **state)
{
	enum { LEN = 40 * CHUNK - 5 };

	(void)state;
	fill(0, LEN);
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, LEN);
	assert_int_equal(rig.held_n, 41);
	for (unsigned int i = 41; i-- > 1;)
		assert_int_equal(pass(i), URN_MSG_DONE);
	assert_int_equal(rig_count(URN_C_AM_EARLY), 40);
	for (unsigned int i = 0; i < LEN; i++)
		assert_int_equal(rig.end[1].mem[i], GUARD_BYTE);
	rig_turn(rig.tp->now + 5 * SECOND);
	rig_run();
	rig_expect(0, URN_AM_DONE, LEN);
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, LEN);
}

/* AM-5: beyond the bound, early data is held back at its sender and comes again: nothing is lost.
 * Other nodes have room. */
static void
early_data_has_a_bound(void **state)
{
	struct urn_am_msg d = {.kind = URN_AM_K_TAG_DATA, .len = 10, .tag = 5, .key = rig_qid(1)};
	unsigned int n = 0;

	(void)state;
	fill(0, 100 * CHUNK);
	for (unsigned int i = 0; i < 100; i++) /* from the same node, under another tag */
		assert_int_equal(rig_forge(&d, rig_qid(3), 9, rig_qid(1)), URN_MSG_DONE);
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 60 * CHUNK);
	for (unsigned int i = 61; i-- > 1;)
		n += pass(i) == URN_MSG_BUSY;
	assert_int_equal(n, 160 - URN_AM_NODE_EARLY);
	assert_int_equal(rig_count(URN_C_DROP_AM_EARLY), n);
	assert_int_equal(rig_forge(&d, rig_qid(0), 77, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(pass(0), URN_MSG_DONE); /* the request */
	rig_turn(rig.tp->now + 2 * URN_AM_RETRY_NS);
	rig_run();
	assert_int_equal(rig_count(URN_C_AM_RETRIES), n);
	rig_expect(0, URN_AM_DONE, 60 * CHUNK);
	assert_memory_equal(rig.end[1].mem, rig.end[0].mem, 60 * CHUNK);
	/* An engine has a bound, too. */
	for (unsigned int node = 10; node < 250; node++)
		for (unsigned int i = 0; i < 4; i++)
			(void)rig_forge(&d, rig_qid(0), (uint8_t)node, rig_qid(1));
	assert_int_equal(rig.am->tagged->early_n + rig.am->tagged->early_kept, URN_AM_EARLY);
	for (unsigned int i = 0; i < 12; i++)
		rig_turn(rig.tp->now + SECOND);
	assert_int_equal(rig.am->tagged->early_n, 0); /* no request came: given up */
	assert_true(rig_count(URN_C_AM_AGED) > 100);
}

/* AM-6: the handler of a read sends nothing; the progress module does, a window at a time. */
static void
a_read_is_sent_by_the_progress_module(void **state)
{
	enum { LEN = 300 * CHUNK - 3 };
	struct urn_am_msg m;

	(void)state;
	fill(1, LEN);
	rig_tagged(0, URN_AM_READ, 1, 0, 50, LEN);
	assert_int_equal(rig.held_n, 1);
	assert_int_equal(rig_parsed(0).kind, URN_AM_K_TAG_READ);
	assert_int_equal(pass(0), URN_MSG_DONE);
	assert_int_equal(rig.held_n, 0);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, URN_AM_BACK_WINDOW);
	m = rig_parsed(5);
	assert_int_equal(m.kind, URN_AM_K_TAG_BACK);
	assert_true(m.addr == 5 * CHUNK && m.key == rig_qid(0));
	for (unsigned int i = URN_AM_BACK_WINDOW; i-- > 0;) /* the newest first */
		assert_int_equal(pass(i), URN_MSG_DONE);
	rig_no_event(0);
	rig_run();
	rig_expect(0, URN_AM_DONE, LEN);
	assert_memory_equal(rig.end[0].mem + 50, rig.end[1].mem, LEN);
	assert_int_equal(rig.end[0].mem[49] ^ rig.end[0].mem[50 + LEN], 0);
	assert_int_equal(rig_count(URN_C_AM_TAG_SENT), 300);
}

/* AM-7: many operations at once in both directions between the same two endpoints: each tag pairs
 * one send with one receive. Messages come in a random order. */
static void
tags_pair_in_both_directions(void **state)
{
	enum { EACH = 7, LEN = 5 * CHUNK };
	uint32_t rnd = 3;

	(void)state;
	for (unsigned int e = 0; e < 2; e++)
		for (unsigned int k = 0; k < EACH * LEN; k++)
			rig.end[e].mem[k] = (uint8_t)(k / 100 + 100 * e);
	for (unsigned int n = 0; n < EACH; n++)
		for (unsigned int e = 0; e < 2; e++) { /* from the first half, to the second */
			rig_tagged(e, URN_AM_WRITE, 1 - e, MEM / 2 + n * LEN, n * LEN, LEN);
			rig_tagged(e, URN_AM_READ, 1 - e, n * LEN, MEM * 3 / 4 + n * LEN, LEN);
		}
	for (unsigned int n = 0; rig.held_n || rig.tp->sched.n; n++) {
		rnd = rnd * 1103515245u + 12345u;
		if (rig.held_n)
			pass((rnd >> 8) % rig.held_n);
		rig_turn(rig.tp->now + (n % 16 ? 0 : 2 * URN_AM_RETRY_NS));
	}
	for (unsigned int n = 0; n < 2 * EACH; n++)
		for (unsigned int e = 0; e < 2; e++)
			rig_expect(e, URN_AM_DONE, LEN);
	for (unsigned int e = 0; e < 2; e++) {
		assert_memory_equal(rig.end[e].mem + MEM / 2, rig.end[1 - e].mem, EACH * LEN);
		assert_memory_equal(rig.end[e].mem + MEM * 3 / 4, rig.end[1 - e].mem, EACH * LEN);
	}
	assert_true(rig_count(URN_C_AM_EARLY) > 0);
}

/* The way of the operation of end 0 that is under way. */
static uint8_t
way_now(void)
{
	const struct urn_am_ep *ep = rig.end[0].ep;

	for (unsigned int i = 0; i < ENTRIES; i++)
		if (ep->oper[i].used)
			return ep->oper[i].way;
	return URN_AM_WAYS;
}

/* Write `len` bytes, and look at the way and at the first message. */
static void
expect_way(uint32_t len, uint8_t forced, uint8_t way)
{
	rig_next(0, URN_AM_WRITE, 1, 0, 0, len)->way = forced;
	rig_post(0);
	assert_int_equal(way_now(), way);
	assert_int_equal(rig_parsed(0).kind,
			 way == URN_AM_TAGGED ? URN_AM_K_TAG_WRITE : URN_AM_K_WRITE);
	rig_run();
	rig_expect(0, URN_AM_DONE, len);
}

/* AM-8: two thresholds can be set, for all endpoints, and for one; that of the endpoint holds. */
static void
both_thresholds_can_be_set(void **state)
{
	struct urn_am_ep *ep = rig.end[0].ep;

	(void)state;
	urn_am_tagged_from(rig.am, 500);
	expect_way(CHUNK, URN_AM_AUTO, URN_AM_DIRECT);
	urn_am_pipelined_from(rig.am, 100);
	expect_way(99, URN_AM_AUTO, URN_AM_DIRECT);
	expect_way(100, URN_AM_AUTO, URN_AM_PIPELINED);
	expect_way(499, URN_AM_AUTO, URN_AM_PIPELINED);
	expect_way(500, URN_AM_AUTO, URN_AM_TAGGED);
	expect_way(500, URN_AM_DIRECT, URN_AM_DIRECT);
	urn_am_pipelined_from(rig.am, UINT64_MAX);
	expect_way(CHUNK, URN_AM_AUTO, URN_AM_DIRECT);
	expect_way(CHUNK + 1, URN_AM_AUTO, URN_AM_TAGGED);
	ep->pipelined_from = 50;
	ep->tagged_from = 2000;
	expect_way(49, URN_AM_AUTO, URN_AM_DIRECT);
	expect_way(50, URN_AM_AUTO, URN_AM_PIPELINED);
	expect_way(1999, URN_AM_AUTO, URN_AM_PIPELINED);
	expect_way(2000, URN_AM_AUTO, URN_AM_TAGGED);
}

/* AM-8, AM-12: an atomic operation is one packet, whatever the thresholds are. */
static void
an_atomic_operation_is_direct(void **state)
{
	(void)state;
	urn_am_pipelined_from(rig.am, 1);
	urn_am_tagged_from(rig.am, 1);
	memset(rig.end[1].mem, 0, 8);
	rig_next(0, URN_AM_FETCH_ADD, 1, 0, 0, 8)->local = 0;
	rig_post(0);
	assert_int_equal(way_now(), URN_AM_DIRECT);
	assert_int_equal(rig_parsed(0).kind, URN_AM_K_ATOMIC);
	rig_run();
	rig_expect(0, URN_AM_DONE, 0);
}

/* AM-8: the way AUTO goes by two thresholds, of which one is set here; forced ways stay. */
static void
the_way_goes_by_the_length(void **state)
{
	static const struct {
		uint32_t len, from;
		uint8_t way, kind;
	} t[] = {
		{CHUNK, 10, URN_AM_AUTO, URN_AM_K_WRITE},
		{CHUNK + 1, 10, URN_AM_AUTO, URN_AM_K_TAG_WRITE},
		{4999, 5000, URN_AM_AUTO, URN_AM_K_WRITE},
		{5000, 5000, URN_AM_AUTO, URN_AM_K_TAG_WRITE},
		{100000, UINT32_MAX, URN_AM_AUTO, URN_AM_K_WRITE},
		{URN_AM_TAGGED_FROM - 1, 0, URN_AM_AUTO, URN_AM_K_WRITE},
		{URN_AM_TAGGED_FROM, 0, URN_AM_AUTO, URN_AM_K_TAG_WRITE},
		{5000, 10, URN_AM_PIPELINED, URN_AM_K_WRITE},
		{10, UINT32_MAX, URN_AM_TAGGED, URN_AM_K_TAG_WRITE},
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		urn_am_tagged_from(rig.am, t[i].from);
		rig_next(0, URN_AM_WRITE, 1, 0, 0, t[i].len)->way = t[i].way;
		rig_post(0);
		assert_int_equal(rig_parsed(0).kind, t[i].kind);
		rig_run();
		rig_expect(0, URN_AM_DONE, t[i].len);
	}
	rig_next(0, URN_AM_WRITE, 1, 0, 0, 10)->way = URN_AM_WAYS;
	rig_post(0);
	rig_expect(0, URN_AM_BAD_COMMAND, 0);
}

/* The RMA queue has a bound: a request beyond is refused, and comes again. Writes leave room for
 * reads. */
static void
the_rma_queue_has_a_bound(void **state)
{
	struct urn_am_msg q = {.kind = URN_AM_K_TAG_WRITE,
			       .len = 100,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};
	unsigned int n = 0;

	(void)state;
	for (unsigned int node = 1; node < 9; node++)
		for (unsigned int i = 0; i < URN_AM_NODE_TRANSFERS; i++, q.tag++)
			n += rig_forge(&q, rig_qid(0), (uint8_t)node, rig_qid(1)) == URN_MSG_DONE;
	assert_int_equal(n, URN_AM_RMA_QUEUE);
	assert_true(rig_count(URN_C_DROP_AM_QUEUE) > 0);
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 10 * CHUNK);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.am->tagged->queue.writes_n, 0); /* the progress module had turns */
	q.kind = URN_AM_K_TAG_READ;
	q.tag = 1ull << 60;
	n = 0;
	for (unsigned int i = 0; i < 2 * URN_AM_NODE_TRANSFERS; i++, q.tag++)
		n += rig_forge(&q, rig_qid(0), 99, rig_qid(1)) == URN_MSG_DONE;
	assert_int_equal(n, URN_AM_NODE_TRANSFERS); /* a node has a bound, too */
	assert_true(rig_count(URN_C_DROP_AM_TRANSFER) > 0);
	while (rig.held_n) { /* reads of node 99 end; node 9's write is served */
		if (rig.node[0][15] == 9)
			pass(0);
		else
			rig_answer(0, URN_MSG_DONE);
		rig_turn(rig.tp->now);
	}
	rig_expect(0, URN_AM_DONE, 10 * CHUNK);
}

/* Writes and reads alternate on the RMA queue. */
static void
writes_and_reads_alternate(void **state)
{
	struct urn_am_transfer t[7] = {{.kind = 0}};
	static const uint8_t order[] = {0, 4, 1, 5, 2, 6, 3};
	struct urn_am_rma_queue q;

	(void)state;
	urn_am_rma_init(&q);
	for (unsigned int i = 0; i < 7; i++) {
		t[i].kind = i < 4 ? URN_AM_K_TAG_WRITE : URN_AM_K_TAG_READ;
		assert_true(urn_am_rma_room(&q, t[i].kind));
		urn_am_rma_put(&q, &t[i]);
	}
	for (unsigned int i = 0; i < 7; i++)
		assert_ptr_equal(urn_am_rma_take(&q), &t[order[i]]);
	assert_null(urn_am_rma_take(&q));
}

/* However many requests wait, a turn begins few of them: other work has its turn in between. */
static void
a_turn_takes_few_requests(void **state)
{
	struct urn_am_msg q = {.kind = URN_AM_K_TAG_WRITE,
			       .len = 100,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};
	struct urn_am_tagged *tg = rig.am->tagged;
	unsigned int left = 2 * URN_AM_POSTS + 4;

	(void)state;
	for (q.tag = 1; q.tag <= left; q.tag++)
		assert_int_equal(rig_forge(&q, rig_qid(0), 1, rig_qid(1)), URN_MSG_DONE);
	assert_int_equal(tg->queue.writes_n, left);
	for (; left > URN_AM_POSTS; left -= URN_AM_POSTS) {
		assert_true(urn_am_progress_ops.serve(rig.tp, &tg->user.source));
		assert_int_equal(tg->queue.writes_n, left - URN_AM_POSTS);
	}
}

/* A node whose replies have no room left holds up no read of another node. */
static void
a_silent_reader_delays_no_other(void **state)
{
	struct urn_am_msg r = {.kind = URN_AM_K_TAG_READ,
			       .len = 200 * CHUNK,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key};

	(void)state;
	for (r.tag = 1; r.tag < 20; r.tag++)
		assert_int_equal(rig_forge(&r, rig_qid(2), 77, rig_qid(1)), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, URN_AM_NODE_REPLIES - URN_AM_BACK_SPARE);
	assert_int_equal(rig.tp->sched.n, 0); /* nothing spins */
	r.kind = URN_AM_K_READ;		      /* room for plain replies is left */
	r.len = 10;
	assert_int_equal(rig_forge(&r, rig_qid(2), 77, rig_qid(1)), URN_MSG_DONE);
	fill(3, 150 * CHUNK);
	rig_tagged(0, URN_AM_READ, 3, 0, 0, 150 * CHUNK);
	for (unsigned int i = 0; i < 1000 && rig.held_n; i++) {
		unsigned int n = 0;

		while (n < rig.held_n && rig.node[n][15] == 77)
			n++;
		if (n == rig.held_n)
			break;
		pass(n);
		rig_turn(rig.tp->now);
	}
	rig_expect(0, URN_AM_DONE, 150 * CHUNK);
	assert_memory_equal(rig.end[0].mem, rig.end[3].mem, 150 * CHUNK);
	while (rig.held_n) {
		rig_answer(0, URN_MSG_UNREACHABLE);
		rig_turn(rig.tp->now);
	}
	assert_int_equal(rig.am->tagged->n, 0);
}

/* An answer without room for its packet waits until a reply of that node is delivered, and nothing
 * spins meanwhile. */
static void
answers_wait_for_room(void **state)
{
	struct urn_am_msg r = {.kind = URN_AM_K_READ,
			       .len = 10,
			       .addr = (uintptr_t)rig.end[1].mem,
			       .key = rig.end[1].key},
			  q = r;

	(void)state;
	q.kind = URN_AM_K_TAG_WRITE;
	q.tag = 1;
	assert_int_equal(rig_forge(&q, rig_qid(2), 77, rig_qid(1)), URN_MSG_DONE);
	while (rig_forge(&r, rig_qid(2), 77, rig_qid(1)) == URN_MSG_DONE)
		;
	q = (struct urn_am_msg){.kind = URN_AM_K_TAG_DATA, .len = 10, .tag = 1, .key = rig_qid(1)};
	assert_int_equal(rig_forge(&q, rig_qid(2), 77, rig_qid(1)), URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.tp->sched.n, 0);
	assert_int_equal(rig.held_n, URN_AM_NODE_REPLIES);
	rig_answer(0, URN_MSG_DONE);
	rig_turn(rig.tp->now);
	assert_int_equal(rig.held_n, URN_AM_NODE_REPLIES);
	assert_int_equal(rig_parsed(rig.held_n - 1).kind, URN_AM_K_TAG_DONE);
}

/* A target that never answers, and an initiator that goes: both sides end in 10 s. */
static void
silence_ends_both_sides(void **state)
{
	(void)state;
	rig_tagged(0, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	rig_tagged(0, URN_AM_READ, 1, 0, 0, 3 * CHUNK);
	rig_tagged(2, URN_AM_WRITE, 1, 0, 0, 3 * CHUNK);
	pass(5);
	rig_close(2); /* its data never comes */
	assert_int_equal(rig.am->tagged->n, 1);
	while (rig.held_n)
		rig_answer(0, URN_MSG_DONE); /* delivered, and the target died */
	for (unsigned int i = 0; i < 9; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_no_event(0);
	assert_int_equal(rig.am->tagged->n, 1);
	for (unsigned int i = 0; i < 3; i++)
		rig_turn(rig.tp->now + SECOND);
	rig_expect(0, URN_AM_NO_REPLY | URN_AM_MAY_BE_THERE, 0);
	rig_expect(0, URN_AM_NO_REPLY, 0);
	assert_int_equal(rig_count(URN_C_AM_SILENT), 2);
	assert_int_equal(rig_count(URN_C_AM_AGED), 1);
	assert_int_equal(rig.held_n, 2);
	assert_int_equal(rig_parsed(0).kind, URN_AM_K_TAG_CANCEL);
	rig_run();
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_write_has_one_request_and_one_answer),
		T(data_begins_its_request),
		T(early_data_waits_for_its_request),
		T(early_data_has_a_bound),
		T(a_read_is_sent_by_the_progress_module),
		T(tags_pair_in_both_directions),
		T(both_thresholds_can_be_set),
		T(an_atomic_operation_is_direct),
		T(the_way_goes_by_the_length),
		T(the_rma_queue_has_a_bound),
		T(writes_and_reads_alternate),
		T(a_turn_takes_few_requests),
		T(a_silent_reader_delays_no_other),
		T(answers_wait_for_room),
		T(silence_ends_both_sides),
	};

	return cmocka_run_group_tests_name("am_tag", tests, NULL, NULL);
}
