/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs and atomics at the requester (doc/reference/wire.md "PSN", "Acknowledgement"):
 * responses, their loss, repetition from the first missing one, and responses
 * that do not fit.
 */
#include "probe.h"

enum { MTU = 1024, GRAIN = 2 << URN_WHEEL_TICK_SHIFT };

#define TIMEOUT 4194304ull /* code 10 */

static const struct probe_config usual = {.timeout = 10, .retry_cnt = 7};

static void
post_read(struct probe *p, uint32_t off, uint32_t len, uint32_t remote, uint64_t wr_id)
{
	probe_post(p, URN_WR_RDMA_READ, 0, off, len, remote, wr_id);
}

/* A READ request of these bytes comes, and asks. */
static void
comes(struct probe *p, uint32_t psn, uint32_t remote, uint32_t len, const char *file, int line)
{
	const struct frame *f = probe_expect(p, READ_REQ, psn, file, line);

	if (f->va != PROBE_VA + remote || f->length != len || f->rkey != p->key) {
		print_error("READ of 0x%lx, %u bytes came\n", (unsigned long)f->va, f->length);
		_fail(file, line);
	}
}
#define expect_read(p, psn, remote, len) comes(p, psn, remote, len, __FILE__, __LINE__)

/* One response of a READ that began at `first`: packet i of n, `last` bytes in the last. */
static void
respond(struct probe *p, uint32_t first, uint32_t i, uint32_t n, uint32_t last, uint32_t seed)
{
	struct frame f = frame_of(n == 1 ? READ_ONLY : i == 0 ? READ_FIRST : i + 1 == n ? READ_LAST
							      : READ_MIDDLE, PSN(first, i));

	f.len = i + 1 == n ? last : MTU;
	probe_fill(f.data, f.len, seed, i * MTU);
	probe_put(p, &f);
}

/* A READ consumes as many PSNs as it has responses; those complete it. */
static void
whole(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	post_read(&p, 100, 3000, 5000, 1);
	post_read(&p, 8000, 0, 0, 2);
	post_read(&p, 8000, 1, 0, 3);
	expect_read(&p, SQ(0), 5000, 3000);
	expect_read(&p, SQ(3), 0, 0);
	expect_read(&p, SQ(4), 0, 1);
	expect_silence(&p);
	for (uint32_t i = 0; i < 3; i++) {
		expect_no_cqe(&p);
		respond(&p, SQ(0), i, 3, 3000 - 2048, 7);
	}
	expect_sent(&p, 1, SUCCESS);
	assert_int_equal(probe_cqe(&p, false)->byte_len, 3000);
	check_fill(probe_at(&p, 100), 3000, 7, 0);
	respond(&p, SQ(3), 0, 1, 0, 0);
	expect_sent(&p, 2, SUCCESS);
	respond(&p, SQ(4), 0, 1, 1, 9);
	expect_sent(&p, 3, SUCCESS);
	check_fill(probe_at(&p, 8000), 1, 9, 0);
	assert_int_equal(*probe_at(&p, 8001), 0);
	expect_count(&p, RETRANSMITS, 0);
	probe_close(&p);
}

/*
 * Responses lost at the start, in the middle, at the end: asked for again
 * from the first missing one, under its PSN, with its address and length.
 */
static void
loss(void **state)
{
	(void)state;
	for (uint32_t lost = 0; lost < 4; lost++) {
		struct probe p;

		probe_open(&p, &usual);
		post_read(&p, 0, 4000, 64, 1);
		expect_read(&p, SQ(0), 64, 4000);
		for (uint32_t i = 0; i < 4; i++)
			if (i != lost)
				respond(&p, SQ(0), i, 4, 928, 7);
		if (lost == 3) { /* nothing behind it tells: the timer does */
			expect_silence(&p);
			probe_pass(&p, TIMEOUT + GRAIN, TIMEOUT / 10);
		}
		expect_read(&p, SQ(lost), 64 + lost * MTU, 4000 - lost * MTU);
		expect_silence(&p);
		expect_no_cqe(&p);
		for (uint32_t i = lost; i < 4; i++) {
			struct frame f = frame_of(i == 3 ? (lost == 3 ? READ_ONLY : READ_LAST)
						  : i == lost ? READ_FIRST : READ_MIDDLE, SQ(i));

			f.len = i == 3 ? 928 : MTU;
			probe_fill(f.data, f.len, 7, i * MTU);
			probe_put(&p, &f);
		}
		expect_sent(&p, 1, SUCCESS);
		check_fill(probe_at(&p, 0), 4000, 7, 0);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* Ghosts of a repetition: dropped under counters, and they change nothing. */
static void
ghosts(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	respond(&p, SQ(-1), 0, 1, 8, 1); /* nothing outstanding */
	respond(&p, SQ(0), 0, 1, 8, 1);	 /* nor sent yet */
	probe_settle(&p);
	expect_count(&p, DROP_PSN, 1);
	expect_count(&p, DROP_RESPONSE, 1);
	post_read(&p, 0, 2000, 0, 1);
	post_read(&p, 4096, 1000, 0, 2);
	expect_read(&p, SQ(0), 0, 2000);
	expect_read(&p, SQ(2), 0, 1000);
	respond(&p, SQ(0), 0, 2, 976, 7);
	respond(&p, SQ(0), 0, 2, 976, 8); /* again, other bytes */
	respond(&p, SQ(0), 1, 2, 976, 7);
	respond(&p, SQ(0), 0, 2, 976, 8);
	respond(&p, SQ(0), 1, 2, 976, 8);
	respond(&p, SQ(3), 0, 1, 976, 8); /* beyond all that was sent */
	expect_sent(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), MTU, 7, 0);
	check_fill(probe_at(&p, MTU), 976, 7, MTU);
	expect_count(&p, DUPLICATES, 3);
	expect_count(&p, DROP_PSN, 2);
	expect_no_cqe(&p);
	expect_silence(&p);
	respond(&p, SQ(2), 0, 1, 1000, 9);
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* A response beyond the oldest READ: its own was lost; retry, once. */
static void
beyond_the_oldest(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	post_read(&p, 0, 2000, 0, 1);
	post_read(&p, 4096, 1000, 8192, 2);
	expect_read(&p, SQ(0), 0, 2000);
	expect_read(&p, SQ(2), 8192, 1000);
	respond(&p, SQ(2), 0, 1, 1000, 9);
	expect_read(&p, SQ(0), 0, 2000);
	expect_read(&p, SQ(2), 8192, 1000);
	respond(&p, SQ(2), 0, 1, 1000, 9);
	expect_silence(&p); /* went back for this already */
	expect_no_cqe(&p);
	respond(&p, SQ(0), 0, 2, 976, 7);
	respond(&p, SQ(0), 1, 2, 976, 7);
	respond(&p, SQ(2), 0, 1, 1000, 9);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	check_fill(probe_at(&p, 0), 2000, 7, 0);
	check_fill(probe_at(&p, 4096), 1000, 9, 0);
	probe_close(&p);
}

/* An ACK beyond a pending READ acknowledges the requests before the READ, and never the READ. */
static void
ack_beyond(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	post_read(&p, 0, 1000, 0, 2);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 3);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_read(&p, SQ(1), 0, 1000);
	expect_frame(&p, SEND_ONLY, SQ(2));
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	expect_sent(&p, 1, SUCCESS);
	expect_no_cqe(&p);
	expect_read(&p, SQ(1), 0, 1000);
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	/* Once the response is there, the earlier acknowledgement counts. */
	respond(&p, SQ(1), 0, 1, 1000, 4);
	expect_sent(&p, 2, SUCCESS);
	expect_sent(&p, 3, SUCCESS);
	expect_no_cqe(&p);
	probe_close(&p);
}

/* A fatal NAK beyond a pending READ can't be heard yet. */
static void
nak_beyond(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	post_read(&p, 0, 1000, 0, 2);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 3);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_read(&p, SQ(1), 0, 1000);
	expect_frame(&p, SEND_ONLY, SQ(2));
	probe_ack(&p, SQ(2), NAK_ACCESS, 2);
	expect_sent(&p, 1, SUCCESS);
	expect_no_cqe(&p);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	respond(&p, SQ(1), 0, 1, 1000, 4);
	expect_sent(&p, 2, SUCCESS);
	probe_ack(&p, SQ(2), NAK_ACCESS, 2);
	expect_sent(&p, 3, REM_ACCESS_ERR);
	probe_close(&p);
}

/* A READ response acknowledges the SENDs and WRITEs before it. */
static void
response_acknowledges(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 2000, 0, 2);
	post_read(&p, 0, 2000, 0, 3);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 4);
	probe_settle(&p);
	respond(&p, SQ(3), 0, 2, 976, 7);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	expect_no_cqe(&p);
	respond(&p, SQ(3), 1, 2, 976, 7);
	expect_sent(&p, 3, SUCCESS);
	expect_no_cqe(&p); /* the SEND behind it is not acknowledged */
	probe_close(&p);
}

/* Atomics: operands, original value in host order, ATOMIC ACK. */
static void
atomics(void **state)
{
	struct probe p;
	struct urn_abi_swqe *w;
	struct frame f;
	const struct frame *s;
	uint64_t v;

	(void)state;
	probe_open(&p, &usual);
	probe_prepare(&p, URN_WR_CMP_SWAP, URN_WRF_SIGNALED, 40, 8, 64, 1);
	w = probe_slot(&p);
	w->rdma.compare_add = 0x1112131415161718;
	w->rdma.swap = 0x2122232425262728;
	probe_ring(&p);
	s = expect_frame(&p, CMP_SWAP, SQ(0));
	assert_true(s->ack && s->va == PROBE_VA + 64 && s->rkey == p.key);
	assert_true(s->swap == 0x2122232425262728 && s->compare == 0x1112131415161718);
	probe_prepare(&p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 48, 8, 72, 2);
	probe_slot(&p)->rdma.compare_add = 5;
	probe_ring(&p);
	s = expect_frame(&p, FETCH_ADD, SQ(1));
	assert_true(s->swap == 5 && s->va == PROBE_VA + 72);
	/* An ACK is no answer. */
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_frame(&p, CMP_SWAP, SQ(0));
	expect_frame(&p, FETCH_ADD, SQ(1));
	expect_no_cqe(&p);
	for (uint32_t i = 0; i < 2; i++) {
		f = frame_of(ATOMIC_ACK, SQ(i));
		f.orig = 0xa1a2a3a4a5a6a700 + i;
		probe_put(&p, &f);
		expect_sent(&p, i + 1, SUCCESS);
		assert_int_equal(probe_cqe(&p, false)->byte_len, 8);
		memcpy(&v, probe_at(&p, 40 + 8 * i), 8);
		assert_true(v == 0xa1a2a3a4a5a6a700 + i);
	}
	probe_put(&p, &f); /* again */
	expect_no_cqe(&p);
	expect_silence(&p);
	probe_close(&p);
}

/* A lost ATOMIC ACK: asked again, the very same request. */
static void
atomic_again(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_prepare(&p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 48, 8, 72, 2);
	probe_slot(&p)->rdma.compare_add = 5;
	probe_ring(&p);
	for (int i = 0; i < 3; i++) {
		const struct frame *s = expect_frame(&p, FETCH_ADD, SQ(0));

		assert_true(s->swap == 5 && s->va == PROBE_VA + 72 && s->rkey == p.key);
		expect_silence(&p);
		probe_pass(&p, TIMEOUT + GRAIN, TIMEOUT);
	}
	probe_close(&p);
}

/* Responses that do not fit their request: BAD_RESP_ERR. */
static void
bad_responses(void **state)
{
	enum { NREAD = 2000, CASES = 11 };
	static const struct {
		uint8_t op;
		uint32_t len;
		bool second; /* after a good first packet */
	} bad[CASES] = {
		{READ_FIRST, 1020, false}, {READ_FIRST, 1028, false}, {READ_ONLY, 1024, false},
		{READ_LAST, 976, false},   {ATOMIC_ACK, 0, false},    {READ_MIDDLE, 1024, true},
		{READ_LAST, 975, true},	   {READ_LAST, 980, true},    {READ_LAST, 0, true},
		{READ_ONLY, 1024, true},   {READ_FIRST, 1024, true},
	};

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct probe p;

		probe_open(&p, &usual);
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
		post_read(&p, 4096, NREAD, 0, 2);
		post_read(&p, 8192, NREAD, 0, 3);
		probe_settle(&p);
		if (bad[i].second)
			respond(&p, SQ(1), 0, 2, 976, 7);
		probe_resp(&p, bad[i].op, SQ(bad[i].second ? 2 : 1), bad[i].len, 3);
		expect_sent(&p, 1, SUCCESS);
		expect_sent(&p, 2, BAD_RESP_ERR);
		expect_sent(&p, 3, WR_FLUSH_ERR);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		expect_count(&p, DROP_RESPONSE, 1);
		for (uint32_t k = bad[i].second ? MTU : 0; k < NREAD; k++)
			assert_int_equal(*probe_at(&p, 4096 + k), 0);
		probe_close(&p);
	}
}

/* An atomic that is answered by a READ response; a READ by an ATOMIC ACK is above. */
static void
bad_atomic_response(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_post(&p, URN_WR_FETCH_ADD, 0, 48, 8, 72, 2);
	probe_settle(&p);
	probe_resp(&p, READ_ONLY, SQ(0), 8, 1);
	expect_sent(&p, 2, BAD_RESP_ERR);
	probe_close(&p);
}

/* The buffer of a READ may not be written: LOC_PROT_ERR, nothing touched. */
static void
read_into_bad_memory(void **state)
{
	struct probe p;
	struct urn_abi_sge *sge;

	(void)state;
	probe_open(&p, &usual);
	probe_prepare(&p, URN_WR_RDMA_READ, URN_WRF_SIGNALED, 0, 64, 0, 1);
	sge = (void *)(probe_slot(&p) + 1);
	sge->lkey = p.key_read;
	probe_ring(&p);
	expect_read(&p, SQ(0), 0, 64);
	respond(&p, SQ(0), 0, 1, 64, 7);
	expect_sent(&p, 1, LOC_PROT_ERR);
	assert_int_equal(*probe_at(&p, 0), 0);
	probe_close(&p);
}

/* max_rd_atomic limits READs and atomics in flight; requests behind them wait. */
static void
max_rd_atomic(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rd_atomic = 2});
	post_read(&p, 0, 8, 0, 1);
	probe_post(&p, URN_WR_FETCH_ADD, 0, 48, 8, 72, 2);
	post_read(&p, 0, 8, 0, 3);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 4);
	expect_read(&p, SQ(0), 0, 8);
	expect_frame(&p, FETCH_ADD, SQ(1));
	expect_silence(&p);
	respond(&p, SQ(0), 0, 1, 8, 1);
	expect_sent(&p, 1, SUCCESS);
	expect_read(&p, SQ(2), 0, 8);
	expect_frame(&p, SEND_ONLY, SQ(3));
	expect_silence(&p);
	probe_close(&p);
}

/* max_rd_atomic 0: there is no READ. */
static void
no_rd_atomic(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rd_atomic = -1});
	post_read(&p, 0, 8, 0, 1);
	expect_sent(&p, 1, LOC_QP_OP_ERR);
	expect_silence(&p);
	probe_close(&p);
}

/* A fence waits for the READs and atomics before it, and for nothing else. */
static void
fence(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_post(&p, URN_WR_SEND, URN_WRF_FENCE, 0, 8, 0, 1);
	probe_post(&p, URN_WR_SEND, URN_WRF_FENCE, 0, 8, 0, 2);
	post_read(&p, 0, 2000, 0, 3);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, 4);
	probe_post(&p, URN_WR_RDMA_WRITE, URN_WRF_FENCE, 0, 8, 0, 5);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_read(&p, SQ(2), 0, 2000);
	expect_frame(&p, WRITE_ONLY, SQ(4));
	/* A request that waits behind the fence makes the last packet ask (no timeout here). */
	assert_true(expect_frame(&p, WRITE_ONLY, SQ(4))->ack);
	expect_silence(&p);
	respond(&p, SQ(2), 0, 2, 976, 7);
	expect_silence(&p);
	respond(&p, SQ(2), 1, 2, 976, 7);
	expect_frame(&p, WRITE_ONLY, SQ(5));
	expect_silence(&p);
	probe_close(&p);
}

/* retry_cnt repetitions of a READ without any response, then RETRY_EXC_ERR. */
static void
read_retries(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 10, .retry_cnt = 3});
	post_read(&p, 0, 4000, 0, 1);
	for (int i = 0; i < 4; i++) {
		expect_read(&p, SQ(0), 0, 4000);
		expect_silence(&p);
		probe_pass(&p, TIMEOUT + GRAIN, TIMEOUT);
	}
	expect_sent(&p, 1, RETRY_EXC_ERR);
	probe_close(&p);
}

/* Each response is progress: the timer and the count start again. */
static void
read_progress(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 10, .retry_cnt = 1});
	post_read(&p, 0, 8 * MTU, 0, 1);
	expect_read(&p, SQ(0), 0, 8 * MTU);
	for (uint32_t i = 0; i < 8; i++) {
		probe_pass(&p, TIMEOUT - GRAIN, TIMEOUT);
		expect_silence(&p);
		probe_pass(&p, 2 * GRAIN, GRAIN);
		expect_read(&p, SQ(i), i * MTU, (8 - i) * MTU);
		respond(&p, SQ(0), i, 8, MTU, 5);
		probe_settle(&p);
	}
	expect_sent(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), 8 * MTU, 5, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(loss),
		cmocka_unit_test(ghosts),
		cmocka_unit_test(beyond_the_oldest),
		cmocka_unit_test(ack_beyond),
		cmocka_unit_test(nak_beyond),
		cmocka_unit_test(response_acknowledges),
		cmocka_unit_test(atomics),
		cmocka_unit_test(atomic_again),
		cmocka_unit_test(bad_responses),
		cmocka_unit_test(bad_atomic_response),
		cmocka_unit_test(read_into_bad_memory),
		cmocka_unit_test(max_rd_atomic),
		cmocka_unit_test(no_rd_atomic),
		cmocka_unit_test(fence),
		cmocka_unit_test(read_retries),
		cmocka_unit_test(read_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
