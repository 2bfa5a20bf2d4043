/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Too many operations wait for a program's foreign memory (memory/mem.h, struct
 * urn_memx_gate): its packets are dropped and its requests wait, those of other
 * programs go on, and when the gate opens the QPs recover as from a bad wire.
 */
#include "sack.h"

enum { MTU = 1024, PDS = 10 };

static uint8_t closed[PDS + 1];
static struct urn_memx_gate gate = {.pds = PDS, .pd = closed};

static void
set(struct probe *p, uint32_t pd, bool on)
{
	closed[pd] = on;
	gate.closed = on;
	p->tp->gate = &gate;
}

/* Packets that come are dropped and counted, take no receive, and may come again. */
static void
receives(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){0});
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 0, 1); /* the acknowledgement that is owed goes out */
	probe_turn(&p, 0);
	set(&p, p.pd, true);
	expect_recv(&p, 1, SUCCESS);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_recv(&p, 0, 64, 2);
	probe_send(&p, SEND_ONLY, RQ(1), 64, 1);
	probe_read(&p, RQ(2), 0, 8);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 0);
	assert_int_equal(p.seen_n, p.looked);
	expect_count(&p, DROP_MEMORY, 2);
	/* Another program's gate does not matter; the dropped packets are asked for, once. */
	set(&p, p.pd, false);
	set(&p, p.other_pd, true);
	expect_aeth(&p, RQ(1), NAK_SEQ, 1);
	expect_silence(&p);
	probe_send(&p, SEND_ONLY, RQ(1), 64, 1);
	expect_recv(&p, 2, SUCCESS);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	set(&p, p.other_pd, false);
	expect_count(&p, DROP_MEMORY, 2);
	probe_close(&p);
}

/* Nothing is sent meanwhile, and everything afterwards without another doorbell. */
static void
sends(void **state)
{
	struct probe p;

	(void)state;
	for (int ud = 0; ud < 2; ud++) {
		probe_open(&p, &(struct probe_config){.type = ud ? URN_QPT_UD : 0});
		set(&p, p.pd, true);
		if (ud) {
			probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 5);
			probe_slot(&p)->ud.ah = 1;
			probe_slot(&p)->ud.remote_qpn = 0x777;
			probe_ring(&p);
		} else {
			probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 5);
		}
		for (int i = 0; i < 10; i++)
			probe_turn(&p, 0);
		assert_int_equal(p.seen_n, 0);
		assert_true(urn_tp_busy(p.tp));
		set(&p, p.pd, false);
		if (ud) {
			expect_frame(&p, UD_SEND, SQ(0));
		} else {
			expect_frame(&p, SEND_ONLY, SQ(0));
			probe_ack(&p, SQ(0), SYN_ACK, 1);
		}
		expect_sent(&p, 5, SUCCESS);
		probe_close(&p);
	}
}

/* Acknowledgements need no memory; a READ's response does: it is dropped, and asked for again. */
static void
answers(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){0});
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 5);
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 2 * MTU, 0, 6);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, READ_REQ, SQ(1));
	set(&p, p.pd, true);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	probe_resp(&p, READ_FIRST, SQ(1), MTU, 3);
	probe_resp(&p, READ_LAST, SQ(2), MTU, 3);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 0);
	expect_count(&p, DROP_MEMORY, 2);
	assert_int_equal(p.seen_n, p.looked);
	set(&p, p.pd, false);
	expect_sent(&p, 5, SUCCESS);
	assert_int_equal(expect_frame(&p, READ_REQ, SQ(1))->length, 2 * MTU);
	probe_resp(&p, READ_FIRST, SQ(1), MTU, 3);
	probe_resp(&p, READ_LAST, SQ(2), MTU, 3);
	expect_sent(&p, 6, SUCCESS);
	probe_close(&p);
}

/*
 * The responses of two READs are dropped, and nothing comes behind them; the
 * QP has no timer. Both are asked for; where a peer repeats selectively, until
 * they come.
 */
static void
answers_of_two(void **state)
{
	struct probe p;

	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		probe_open(&p, &(struct probe_config){.selective = selective});
		probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 64, 0, 6);
		probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 64, 0, 7);
		expect_frame(&p, READ_REQ, SQ(0));
		expect_frame(&p, READ_REQ, SQ(1));
		set(&p, p.pd, true);
		probe_resp(&p, READ_ONLY, SQ(0), 64, 1);
		probe_resp(&p, READ_ONLY, SQ(1), 64, 2);
		for (int i = 0; i < 100; i++)
			probe_turn(&p, 1000000);
		expect_count(&p, DROP_MEMORY, 2);
		assert_int_equal(p.seen_n, p.looked);
		set(&p, p.pd, false);
		for (int times = 0; times < 1 + 2 * selective; times++) {
			for (int i = 0; i < 100; i++)
				probe_turn(&p, times * 10000000);
			expect_frame(&p, READ_REQ, SQ(0));
			expect_frame(&p, READ_REQ, SQ(1));
			p.looked = p.seen_n;
		}
		probe_resp(&p, READ_ONLY, SQ(0), 64, 1);
		expect_sent(&p, 6, SUCCESS);
		probe_resp(&p, READ_ONLY, SQ(1), 64, 2);
		expect_sent(&p, 7, SUCCESS);
		probe_close(&p);
	}
}

/*
 * A response that was never asked for is dropped as such, with a gate or without: it
 * must not cause packets to be asked for again that are on their way.
 */
static void
answers_to_nothing(void **state)
{
	struct probe p;

	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		probe_open(&p, &(struct probe_config){.selective = selective});
		set(&p, p.pd, true);
		probe_resp(&p, READ_ONLY, SQ(1000), 64, 1);
		probe_turn(&p, 0);
		expect_count(&p, DROP_PSN, 1);
		expect_count(&p, DROP_MEMORY, 0);
		set(&p, p.pd, false);
		probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 64, 0, 6);
		expect_frame(&p, READ_REQ, SQ(0));
		for (int i = 0; i < 200; i++)
			probe_turn(&p, 10000000);
		expect_silence(&p);
		probe_resp(&p, READ_ONLY, SQ(0), 64, 1);
		expect_sent(&p, 6, SUCCESS);
		probe_close(&p);
	}
}

/*
 * A packet that was dropped and asked for comes, and the gate is closed again:
 * this packet is taken, the next ones are dropped and asked for in turn. So there
 * is progress with very little room, too.
 */
static void
asked_for(void **state)
{
	struct probe p;

	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		probe_open(&p, &(struct probe_config){.selective = selective});
		for (int i = 0; i < 4; i++)
			probe_recv(&p, (uint32_t)i, 64, (uint64_t)i);
		set(&p, p.pd, true);
		probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
		probe_turn(&p, 0);
		for (int i = 0; i < 3; i++) {
			set(&p, p.pd, false);
			expect_aeth(&p, RQ(i), NAK_SEQ, (uint32_t)i);
			set(&p, p.pd, true);
			probe_send(&p, SEND_ONLY, RQ(i), 64, 1);
			probe_send(&p, SEND_ONLY, RQ(i + 1), 64, 1);
			for (int j = 0; j < 10; j++)
				probe_turn(&p, 0);
			expect_count(&p, DROP_MEMORY, (uint64_t)i + 2);
			set(&p, p.pd, false);
			expect_recv(&p, (uint64_t)i, SUCCESS);
		}
		probe_close(&p);
	}
}

static void
some_turns(struct probe *p)
{
	for (int i = 0; i < 10; i++)
		probe_turn(p, 0);
}

/* A datagram is dropped and counted, takes no receive, and nobody asks for it again. */
static void
datagrams(void **state)
{
	struct frame f = frame_of(UD_SEND, 5);
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
	f.qkey = PROBE_QKEY;
	f.sqpn = 0x4711;
	f.len = 33;
	probe_fill(f.data, 33, 7, 0);
	probe_recv(&p, 0, 73, 1);
	set(&p, p.pd, true);
	probe_put(&p, &f);
	some_turns(&p);
	expect_count(&p, DROP_MEMORY, 1);
	assert_int_equal(p.rcq.prod, 0);
	set(&p, p.pd, false);
	expect_silence(&p);
	/* Another program's gate is none of ours. */
	set(&p, p.other_pd, true);
	probe_fill(f.data, 33, 8, 0);
	probe_put(&p, &f);
	expect_recv(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 40), 33, 8, 0);
	expect_no_cqe(&p);
	expect_count(&p, DROP_MEMORY, 1);
	expect_count(&p, DROP_UD_NO_RECV, 0);
	probe_close(&p);
}

/* Acknowledgements and NAKs need no memory: they are believed at once, and acted on later. */
static void
told(void **state)
{
	struct frame f;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true});
	for (uint32_t i = 0; i < 20; i++) {
		probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_SIGNALED, i * 8, 8, 4096 + i * 8, i);
		expect_frame(&p, WRITE_ONLY, SQ(i));
	}
	set(&p, p.pd, true);
	f = sack_of(SQ(1), SQ(2));
	for (uint32_t i = 2; i < 17; i++)
		sack_bit(&f, i);
	probe_put(&p, &f);
	some_turns(&p);
	expect_count(&p, DROP_MEMORY, 0);
	assert_int_equal(p.scq.prod, 2);
	assert_int_equal(p.seen_n, p.looked);
	set(&p, p.pd, false);
	expect_frame(&p, WRITE_ONLY, SQ(2));
	expect_frame(&p, WRITE_ONLY, SQ(3));
	expect_silence(&p);
	expect_count(&p, RETRANSMITS, 2);
	probe_ack(&p, SQ(19), SYN_ACK, 20);
	for (uint32_t i = 0; i < 20; i++)
		expect_sent(&p, i, SUCCESS);
	probe_close(&p);
}

/* Dropped packets are not told as kept, neither while the gate is closed nor afterwards. */
static void
tells_what_it_has(void **state)
{
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true});
	for (uint32_t i = 0; i < 6; i++)
		probe_recv(&p, i * 64, 64, i);
	probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
	probe_turn(&p, 0);
	set(&p, p.pd, true);
	some_turns(&p); /* the acknowledgement owed goes out, now that nothing else may */
	f = expect_frame(&p, SACK, RQ(-1));
	assert_int_equal(sack_get(f->data + 4), RQ(0));
	assert_true(!sack_has(f, 1) && sack_has(f, 2) && !sack_has(f, 3));
	probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
	probe_send(&p, SEND_ONLY, RQ(3), 40, 3);
	some_turns(&p);
	expect_count(&p, DROP_MEMORY, 2);
	assert_int_equal(p.tp->kept, 1);
	assert_int_equal(p.seen_n, p.looked);
	set(&p, p.pd, false);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_send(&p, SEND_ONLY, RQ(4), 40, 4);
	f = expect_frame(&p, SACK, RQ(-1));
	assert_true(!sack_has(f, 1) && sack_has(f, 2) && !sack_has(f, 3) && sack_has(f, 4));
	assert_int_equal(f->data[1], 0);
	for (uint32_t i = 0; i < 4; i++)
		probe_send(&p, SEND_ONLY, RQ(i), 40, i);
	for (uint32_t i = 0; i < 5; i++) {
		expect_recv(&p, i, SUCCESS);
		check_fill(probe_at(&p, i * 64), 40, i, 0);
	}
	probe_close(&p);
}

/*
 * The wire brings a dropped packet once more, before it could be asked for. Only the responder knows
 * of the packets dropped behind it: there is no timer, and nothing comes behind them.
 */
static void
comes_unasked(void **state)
{
	struct probe p;

	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		probe_open(&p, &(struct probe_config){.selective = selective});
		for (uint32_t i = 0; i < 4; i++)
			probe_recv(&p, i * 64, 64, i);
		set(&p, p.pd, true);
		for (int i = 0; i < 4; i++)
			probe_send(&p, SEND_ONLY, RQ(i), 40, (uint32_t)i);
		some_turns(&p);
		expect_count(&p, DROP_MEMORY, 4);
		set(&p, p.pd, false);
		probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
		probe_send(&p, SEND_ONLY, RQ(1), 40, 1);
		expect_aeth(&p, RQ(2), NAK_SEQ, 2);
		/* Once: then the peer repeats all of it. */
		probe_send(&p, SEND_ONLY, RQ(2), 40, 2);
		expect_aeth(&p, RQ(2), SYN_ACK, 3);
		probe_send(&p, SEND_ONLY, RQ(3), 40, 3);
		expect_aeth(&p, RQ(3), SYN_ACK, 4);
		expect_silence(&p);
		for (uint32_t i = 0; i < 4; i++) {
			expect_recv(&p, i, SUCCESS);
			check_fill(probe_at(&p, i * 64), 40, i, 0);
		}
		probe_close(&p);
	}
}

/*
 * A peer whose own gate was closed asks for responses again, and has no timer either:
 * the question needs no memory now, and the answer goes out when the gate opens. The question
 * does not wait behind packets that need memory, either.
 */
static void
asked_again(void **state)
{
	struct probe p;
	uint64_t v = 0;

	(void)state;
	for (int late = 0; late < 2; late++) {
		probe_open(&p, &(struct probe_config){.delay_seed = late, .delay_polls = 1});
		probe_fill(probe_at(&p, 0), 8, 1, 0);
		memcpy(&v, probe_at(&p, 0), 8);
		probe_read(&p, RQ(0), 0, 8);
		probe_atomic(&p, FETCH_ADD, RQ(1), 0, 5, 0);
		expect_frame(&p, READ_ONLY, RQ(0));
		expect_frame(&p, ATOMIC_ACK, RQ(1));
		p.hold = late;
		if (late)
			probe_write(&p, WRITE_ONLY, RQ(2), 64, 8, 8, 2);
		probe_turn(&p, 0);
		set(&p, p.pd, true);
		probe_read(&p, RQ(0), 0, 8);
		probe_atomic(&p, FETCH_ADD, RQ(1), 0, 5, 0);
		some_turns(&p);
		expect_count(&p, DROP_MEMORY, 0);
		expect_count(&p, DUPLICATES, 2);
		assert_int_equal(p.qp->rec_pending, 2);
		p.hold = false;
		set(&p, p.pd, false);
		expect_frame(&p, READ_ONLY, RQ(0));
		assert_true(expect_frame(&p, ATOMIC_ACK, RQ(1))->orig == v);
		if (late)
			expect_aeth(&p, RQ(2), SYN_ACK, 3);
		v += 5;
		assert_memory_equal(probe_at(&p, 0), &v, 8); /* once */
		probe_close(&p);
	}
}

/*
 * Packets behind a gap that was asked for come again with it. If they were asked for once more
 * when they are dropped, the packets asked for would meet that NAK on its way, and be dropped, too.
 */
static void
asked_once(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_recv(&p, 0, 64, 0);
	set(&p, p.pd, true);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	some_turns(&p);
	set(&p, p.pd, false);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	set(&p, p.pd, true);
	probe_send(&p, SEND_ONLY, RQ(3), 40, 3); /* it was on its way */
	some_turns(&p);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	some_turns(&p);
	expect_count(&p, DROP_MEMORY, 2);
	set(&p, p.pd, false);
	expect_recv(&p, 0, SUCCESS);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_silence(&p);
	expect_count(&p, TX_NAKS, 1);
	probe_close(&p);
}

static void
send_quietly(struct probe *p, uint32_t psn)
{
	struct frame f = frame_of(SEND_ONLY, psn);

	f.len = 40;
	probe_put(p, &f);
}

/* A SEND comes again for its acknowledgement, which it gets: now, or when its memory has answered.
 */
static void
acknowledged_again(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 1, .delay_polls = 1});
	probe_recv(&p, 0, 64, 0);
	probe_recv(&p, 64, 64, 1);
	send_quietly(&p, RQ(0));
	expect_recv(&p, 0, SUCCESS);
	expect_silence(&p);
	set(&p, p.pd, true);
	probe_send(&p, SEND_ONLY, RQ(0), 40, 0);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_count(&p, DROP_MEMORY, 0);
	set(&p, p.pd, false);
	p.hold = true;
	send_quietly(&p, RQ(1));
	probe_turn(&p, 0);
	set(&p, p.pd, true);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 0);
	probe_send(&p, SEND_ONLY, RQ(1), 40, 0);
	some_turns(&p);
	expect_count(&p, DROP_MEMORY, 2); /* nothing more waits for it */
	expect_silence(&p);
	p.hold = false;
	set(&p, p.pd, false);
	expect_recv(&p, 1, SUCCESS);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	expect_silence(&p);
	probe_close(&p);
}

/* A response that was asked for again is taken: else the gate might be closed each time it comes. */
static void
answer_asked_for(void **state)
{
	struct probe p;

	(void)state;
	for (int selective = 0; selective < 2; selective++) {
		probe_open(&p, &(struct probe_config){.selective = selective});
		probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 2 * MTU, 0, 6);
		expect_frame(&p, READ_REQ, SQ(0));
		for (int i = 0; i < 2; i++) {
			set(&p, p.pd, true);
			probe_resp(&p, i ? READ_ONLY : READ_FIRST, SQ(i), MTU, 3);
			some_turns(&p);
			expect_count(&p, DROP_MEMORY, (uint64_t)i + 1);
			set(&p, p.pd, false);
			for (int k = 0; k < 100; k++)
				probe_turn(&p, 1000000);
			expect_frame(&p, READ_REQ, SQ(i));
			p.looked = p.seen_n;
			set(&p, p.pd, true);
			probe_resp(&p, i ? READ_ONLY : READ_FIRST, SQ(i), MTU, 3);
			some_turns(&p);
			expect_count(&p, DROP_MEMORY, (uint64_t)i + 1);
		}
		expect_sent(&p, 6, SUCCESS);
		set(&p, p.pd, false);
		probe_close(&p);
	}
}

/* The peer may have dropped our repeated packets: those it asks for are repeated once more.
 */
static void
goes_back_again(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 7});
	probe_post(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 64, 0, 6);
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 7);
	expect_frame(&p, READ_REQ, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	set(&p, p.pd, true);
	probe_resp(&p, READ_ONLY, SQ(0), 64, 1);
	some_turns(&p);
	set(&p, p.pd, false);
	for (int i = 0; i < 2; i++) {
		expect_frame(&p, READ_REQ, SQ(0));
		expect_frame(&p, SEND_ONLY, SQ(1));
		expect_silence(&p);
		probe_ack(&p, SQ(1), NAK_SEQ, 1);
	}
	expect_silence(&p); /* not without progress */
	probe_resp(&p, READ_ONLY, SQ(0), 64, 1);
	expect_sent(&p, 6, SUCCESS);
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 7, SUCCESS);
	probe_close(&p);
}

/* A QP in the error state is flushed with the gate open or closed. */
static void
errors(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){0});
	set(&p, p.pd, true);
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 64, 0, 5);
	probe_state(&p, URN_QPS_ERR);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 0);
	expect_sent(&p, 5, WR_FLUSH_ERR);
	set(&p, p.pd, false);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives),
		cmocka_unit_test(sends),
		cmocka_unit_test(answers),
		cmocka_unit_test(answers_of_two),
		cmocka_unit_test(answers_to_nothing),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(comes_unasked),
		cmocka_unit_test(asked_once),
		cmocka_unit_test(acknowledged_again),
		cmocka_unit_test(answer_asked_for),
		cmocka_unit_test(goes_back_again),
		cmocka_unit_test(asked_again),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(told),
		cmocka_unit_test(tells_what_it_has),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
