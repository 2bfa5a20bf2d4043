/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End-to-end credits at the requester (doc/reference/wire.md "Acknowledgement": honour those
 * that are received; IBTA 9.7.7.2). A request that takes a receive may be sent
 * while its number is at most MSN + credits; out of credit one may go to ask.
 */
#include "probe.h"

static void
post(struct probe *p, uint8_t op, uint64_t wr_id)
{
	probe_prepare(p, op, URN_WRF_SIGNALED, 0, 8, 0, wr_id);
	probe_ring(p);
}

/* Each code: its number of requests goes out after the ACK of one, and then one at a time. */
static void
codes(void **state)
{
	static const uint16_t credit[31] = {
		0,   1,	  2,   3,   4,	  6,	8,    12,   16,	  24,	32,   48,    64,    96,	   128,	 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
	};

	(void)state;
	for (uint8_t code = 0; code < 31; code++) {
		uint32_t n = credit[code] < 100 ? credit[code] : 100, out = n ? n : 1;
		struct probe p;

		probe_open(&p, &(struct probe_config){.window = 128});
		post(&p, URN_WR_SEND, 0);
		expect_frame(&p, SEND_ONLY, SQ(0));
		probe_ack(&p, SQ(0), code, 1);
		expect_sent(&p, 0, SUCCESS);
		for (uint32_t i = 1; i <= 100; i++)
			post(&p, URN_WR_SEND, i);
		for (uint32_t i = 1; i <= out; i++)
			assert_true(expect_frame(&p, SEND_ONLY, SQ(i))->ack);
		expect_silence(&p);
		if (credit[code] < 50) {
			/* All is acknowledged, no credit given: one goes to ask. */
			probe_ack(&p, SQ(out), 0, out + 1);
			expect_frame(&p, SEND_ONLY, SQ(out + 1));
			expect_silence(&p);
			/* "No credit count" ends the counting. */
			probe_ack(&p, SQ(out + 1), SYN_ACK, out + 2);
			for (uint32_t i = out + 2; i <= 100; i++)
				expect_frame(&p, SEND_ONLY, SQ(i));
		}
		probe_close(&p);
	}
}

/* Requests that take no receive need no credit, and wait behind those that do. */
static void
others_need_none(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	post(&p, URN_WR_SEND, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), 0, 1);
	post(&p, URN_WR_RDMA_WRITE, 1);
	post(&p, URN_WR_RDMA_WRITE, 2);
	post(&p, URN_WR_RDMA_READ, 3);
	post(&p, URN_WR_RDMA_WRITE_IMM, 4);
	post(&p, URN_WR_RDMA_WRITE, 5);
	expect_frame(&p, WRITE_ONLY, SQ(1));
	expect_frame(&p, WRITE_ONLY, SQ(2));
	expect_frame(&p, READ_REQ, SQ(3));
	expect_silence(&p);
	/* A credit: MSN 3 (two WRITEs more) and 2 allow number 5. */
	probe_ack(&p, SQ(2), 2, 3);
	expect_frame(&p, WRITE_ONLY_IMM, SQ(4));
	expect_frame(&p, WRITE_ONLY, SQ(5));
	probe_close(&p);
}

/* Local requests are no messages: the peer does not count them, so we may not. */
static void
local_work_is_not_counted(void **state)
{
	struct probe p;
	uint32_t mw;

	(void)state;
	probe_open(&p, NULL);
	post(&p, URN_WR_SEND, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), 2, 1); /* numbers 2 and 3 may go */
	expect_sent(&p, 0, SUCCESS);
	for (uint32_t i = 0; i < 10; i++) {
		struct urn_abi_swqe *w;

		assert_int_equal(urn_mem_alloc_mw(p.mem, p.pd, 2, &mw), 0);
		probe_prepare(&p, URN_WR_BIND_MW, 0, 0, 0, 0, i);
		w = probe_slot(&p);
		w->bind.addr = PROBE_VA;
		w->bind.length = 64;
		w->bind.mw_rkey = mw;
		w->bind.new_rkey = mw + 1;
		w->bind.mr_lkey = p.key;
		w->bind.access = URN_ACCESS_REMOTE_READ;
	}
	post(&p, URN_WR_SEND, 1);
	post(&p, URN_WR_SEND, 2);
	post(&p, URN_WR_SEND, 3);
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	probe_close(&p);
}

/* An ACK that comes late tells of credits that are spent. */
static void
late_ack(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 3; i++)
		post(&p, URN_WR_SEND, i);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_ack(&p, SQ(2), 8, 3); /* 16 credits */
	probe_ack(&p, SQ(0), 0, 1); /* from before */
	for (uint32_t i = 3; i < 8; i++)
		post(&p, URN_WR_SEND, i);
	for (uint32_t i = 3; i < 8; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	expect_silence(&p);
	/* The newest ACK once more brings credits: receives were posted. */
	probe_ack(&p, SQ(7), 0, 8);
	post(&p, URN_WR_SEND, 8);
	post(&p, URN_WR_SEND, 9);
	expect_frame(&p, SEND_ONLY, SQ(8));
	expect_silence(&p);
	probe_ack(&p, SQ(7), 2, 8);
	expect_frame(&p, SEND_ONLY, SQ(9));
	probe_close(&p);
}

/* READ responses carry credits as ACKs do. */
static void
in_responses(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	post(&p, URN_WR_SEND, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), 0, 1);
	post(&p, URN_WR_RDMA_READ, 1);
	post(&p, URN_WR_SEND, 2);
	post(&p, URN_WR_SEND, 3);
	expect_frame(&p, READ_REQ, SQ(1));
	expect_silence(&p);
	f = frame_of(READ_ONLY, SQ(1));
	f.len = 8;
	f.syn = 2;
	f.msn = 2;
	probe_put(&p, &f);
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_frame(&p, SEND_ONLY, SQ(3));
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes),
		cmocka_unit_test(others_need_none),
		cmocka_unit_test(local_work_is_not_counted),
		cmocka_unit_test(late_ack),
		cmocka_unit_test(in_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
