/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RNR waits at the requester and their counts (doc/reference/wire.md "Timers", "Acknowledgement"),
 * under a clock that the test moves.
 */
#include "timer.h"

/* ---- receiver not ready */

/* Wait as long as the code says: not less, and no more than the wheel's grain longer. */
static void
rnr_times(void **state)
{
	static const uint32_t us[32] = {
		655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
		480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .timeout = 1, .retry_cnt = 0});
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	for (uint8_t code = 0; code < 32; code++) {
		/* The acknowledgement timer of 8 us, without retries, never cuts it short. */
		probe_ack(&p, SQ(0), SYN_RNR | code, 0);
		expect_silence(&p);
		expect_after(&p, us[code] * 1000ull);
		expect_frame(&p, SEND_ONLY, SQ(0));
		expect_silence(&p);
	}
	expect_count(&p, TIMEOUTS, 0);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_close(&p);
}

/* rnr_retry repetitions, then RNR_RETRY_EXC_ERR; progress starts the count again. */
static void
rnr_count(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 3});
	timer_post(&p, 0);
	timer_post(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	for (int i = 0; i < 3; i++) {
		probe_ack(&p, SQ(0), SYN_RNR | 1, 0);
		expect_after(&p, 10000);
		expect_frame(&p, SEND_ONLY, SQ(0));
		expect_frame(&p, SEND_ONLY, SQ(1));
	}
	probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
	expect_sent(&p, 0, SUCCESS);
	for (int i = 0; i < 2; i++) {
		expect_after(&p, 10000);
		expect_frame(&p, SEND_ONLY, SQ(1));
		probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
		expect_silence(&p);
	}
	expect_after(&p, 10000);
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_no_cqe(&p);
	probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
	expect_sent(&p, 1, RNR_RETRY_EXC_ERR);
	expect_count(&p, RX_RNR_NAKS, 7);
	probe_close(&p);
}

/* rnr_retry 7 is for ever. */
static void
rnr_for_ever(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7});
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	for (int i = 0; i < 1000; i++) {
		probe_ack(&p, SQ(0), SYN_RNR | 1, 0);
		probe_settle(&p);
		probe_pass(&p, 10000 + TIMER_GRAIN, TIMER_GRAIN);
		expect_frame(&p, SEND_ONLY, SQ(0));
	}
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_close(&p);
}

/*
 * A peer may send a sequence NAK for packets behind the one that it was not
 * ready for (kernel soft-RoCE does). The NAK does not cut the wait short, nor
 * does it cost a retry.
 */
static void
rnr_then_sequence(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .retry_cnt = 1});
	timer_post(&p, 0);
	timer_post(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	for (int i = 0; i < 10; i++) {
		probe_ack(&p, SQ(0), SYN_RNR | 12, 0);
		probe_ack(&p, SQ(0), NAK_SEQ, 0);
		probe_settle(&p);
		probe_ack(&p, SQ(0), NAK_SEQ, 0);
		expect_silence(&p);
		expect_after(&p, 640000);
		expect_frame(&p, SEND_ONLY, SQ(0));
		expect_frame(&p, SEND_ONLY, SQ(1));
		expect_silence(&p);
	}
	expect_no_cqe(&p);
	probe_close(&p);
}

/* The same RNR NAK twice (duplicated by the wire) costs one retry and one wait. */
static void
rnr_doubled(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 1});
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_RNR | 12, 0);
	probe_ack(&p, SQ(0), SYN_RNR | 12, 0);
	expect_no_cqe(&p);
	expect_after(&p, 640000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_close(&p);
}

/* Nothing is sent while waiting, new work neither; an ACK is heeded. */
static void
rnr_holds(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .timeout = 5, .retry_cnt = 7});
	timer_post(&p, 0);
	timer_post(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_RNR | 20, 1); /* 10240 us */
	expect_sent(&p, 0, SUCCESS);
	timer_post(&p, 2);
	expect_silence(&p);
	expect_after(&p, 10240000);
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	expect_count(&p, TIMEOUTS, 0);
	/* After the wait the acknowledgement timer runs again. */
	expect_after(&p, TIMEOUT(5));
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_close(&p);

	/*
	 * The request that waits is acknowledged: a copy of it was taken. The wait ends, the
	 * rest is sent at once, and the acknowledgement timer runs (IBTA 9.7.5.2.8).
	 */
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .timeout = 5, .retry_cnt = 7});
	for (uint32_t i = 0; i < 3; i++) {
		timer_post(&p, i);
		expect_frame(&p, SEND_ONLY, SQ(i));
	}
	probe_ack(&p, SQ(0), SYN_RNR | 20, 0);
	expect_silence(&p);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_count(&p, TIMEOUTS, 0);
	expect_after(&p, TIMEOUT(5));
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_count(&p, TIMEOUTS, 1);
	probe_close(&p);
}

/*
 * An RNR wait ends with the acknowledgement of its request only: not with that of an earlier
 * request, nor, where responses may be late, with a response to an earlier one; and the RNR NAK
 * of a request that was acknowledged meanwhile starts no wait.
 */
static void
rnr_ends(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .selective = true});
	probe_post(&p, URN_WR_RDMA_READ, 0, 0, 8, 4096, 0);
	expect_frame(&p, READ_REQ, SQ(0));
	for (uint32_t i = 1; i < 3; i++) {
		timer_post(&p, i);
		expect_frame(&p, SEND_ONLY, SQ(i));
	}
	probe_ack(&p, SQ(1), SYN_RNR | 20, 1);
	expect_silence(&p);
	probe_resp(&p, READ_ONLY, SQ(0), 8, 1);
	expect_sent(&p, 0, SUCCESS);
	expect_silence(&p);
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	expect_frame(&p, SEND_ONLY, SQ(2));
	probe_close(&p);

	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .selective = true});
	probe_post(&p, URN_WR_RDMA_READ, 0, 0, 8, 4096, 0);
	expect_frame(&p, READ_REQ, SQ(0));
	timer_post(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_ACK, 2); /* it overtook the response */
	probe_ack(&p, SQ(1), SYN_RNR | 20, 1);
	expect_silence(&p);
	timer_post(&p, 2);
	expect_frame(&p, SEND_ONLY, SQ(2)); /* nothing waits */
	probe_close(&p);
}

/* A QP that fails while it waits is flushed at once. */
static void
rnr_and_error(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7});
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_RNR | 0, 0);
	expect_silence(&p);
	probe_state(&p, URN_QPS_ERR);
	expect_sent(&p, 0, WR_FLUSH_ERR);
	probe_pass(&p, 1000000000, 100000000);
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_times),	 cmocka_unit_test(rnr_count),
		cmocka_unit_test(rnr_for_ever),	 cmocka_unit_test(rnr_then_sequence),
		cmocka_unit_test(rnr_doubled),	 cmocka_unit_test(rnr_holds),
		cmocka_unit_test(rnr_and_error), cmocka_unit_test(rnr_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
