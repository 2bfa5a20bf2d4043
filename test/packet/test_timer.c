/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time at the requester (doc/reference/wire.md "Timers", "Acknowledgement"): timeouts, RNR
 * waits and their counts, under a clock that the test moves.
 */
#include "probe.h"

/* The wheel's grain: a timer comes at most this late, never early. */
enum { GRAIN = 2 << URN_WHEEL_TICK_SHIFT };

#define TIMEOUT(code) (4096ull << (code))

static void
post_one(struct probe *p, uint64_t wr_id)
{
	probe_post(p, URN_WR_SEND, 0, 0, 32, 0, wr_id);
}

/* Nothing comes before `ns`, something at `ns`. Leaves the frame to be looked at. */
static void
comes_after(struct probe *p, uint64_t ns, const char *file, int line)
{
	uint32_t had = p->seen_n;

	probe_pass(p, ns - 1, ns / 7 + 1);
	if (p->seen_n != had) {
		print_error("%u frames too early\n", p->seen_n - had);
		_fail(file, line);
	}
	probe_pass(p, GRAIN, GRAIN);
	if (p->seen_n == had) {
		print_error("nothing came in %lu ns\n", (unsigned long)(ns + GRAIN));
		_fail(file, line);
	}
}
#define expect_after(p, ns) comes_after(p, ns, __FILE__, __LINE__)

/* 4.096 us * 2^t; retry_cnt repetitions, then RETRY_EXC_ERR. */
static void
retries(void **state)
{
	static const uint8_t code[] = {1, 5, 10, 14, 20, 31};

	(void)state;
	for (size_t k = 0; k < sizeof(code); k++)
		for (uint8_t cnt = 0; cnt <= 7; cnt += 7 - 4 * (cnt == 0)) {
			struct probe p;

			probe_open(&p, &(struct probe_config){.timeout = code[k], .retry_cnt = cnt});
			post_one(&p, 5);
			post_one(&p, 6);
			expect_frame(&p, SEND_ONLY, SQ(0));
			expect_frame(&p, SEND_ONLY, SQ(1));
			for (uint8_t i = 0; i < cnt; i++) {
				expect_after(&p, TIMEOUT(code[k]));
				expect_frame(&p, SEND_ONLY, SQ(0));
				assert_true(expect_frame(&p, SEND_ONLY, SQ(1))->ack);
				expect_silence(&p);
				expect_no_cqe(&p);
			}
			probe_pass(&p, TIMEOUT(code[k]) - 1 - GRAIN, TIMEOUT(code[k]));
			expect_no_cqe(&p);
			probe_pass(&p, 2 * GRAIN, GRAIN);
			expect_sent(&p, 5, RETRY_EXC_ERR);
			expect_sent(&p, 6, WR_FLUSH_ERR);
			expect_silence(&p);
			expect_count(&p, TIMEOUTS, cnt + 1u);
			probe_close(&p);
		}
}

/* retry_cnt 7 is seven, not for ever (doc/reference/wire.md "Timers"); progress starts the count again. */
static void
progress_restores(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 8, .retry_cnt = 2});
	post_one(&p, 0);
	post_one(&p, 1);
	probe_settle(&p);
	p.looked = p.seen_n;
	for (int i = 0; i < 2; i++) {
		expect_after(&p, TIMEOUT(8));
		expect_frame(&p, SEND_ONLY, SQ(0));
		expect_frame(&p, SEND_ONLY, SQ(1));
	}
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	for (int i = 0; i < 2; i++) {
		expect_after(&p, TIMEOUT(8));
		expect_frame(&p, SEND_ONLY, SQ(1));
	}
	probe_pass(&p, TIMEOUT(8) + GRAIN, GRAIN);
	expect_sent(&p, 1, RETRY_EXC_ERR);
	probe_close(&p);
}

/*
 * The timer starts again with each progress; with an ACK that says nothing new, too, for its
 * peer lives. Not with one that comes from nowhere.
 */
static void
timer_restarts(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 8, .retry_cnt = 7});
	post_one(&p, 0);
	post_one(&p, 1);
	post_one(&p, 2);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_pass(&p, TIMEOUT(8) - GRAIN, 50000);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_pass(&p, TIMEOUT(8) - GRAIN, 50000);
	expect_silence(&p);
	probe_ack(&p, SQ(0), SYN_ACK, 1); /* again */
	probe_settle(&p);
	probe_pass(&p, TIMEOUT(8) - GRAIN, 50000);
	expect_silence(&p);
	probe_ack(&p, SQ(-5000), SYN_ACK, 1);
	expect_after(&p, GRAIN);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_close(&p);
}

/* Work posted behind lost work does not put its timeout off. */
static void
posting_does_not_delay(void **state)
{
	struct probe p;
	uint64_t start;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 4, .retry_cnt = 7});
	post_one(&p, 0);
	probe_turn(&p, 0);
	start = p.now;
	for (uint64_t i = 1; i < 60; i++) { /* 60 us, the timeout is 65 */
		post_one(&p, i);
		probe_turn(&p, 1000);
	}
	expect_count(&p, TIMEOUTS, 0);
	/* The doorbell rings on, in each microsecond that the wheel's grain is late. */
	while (p.now < start + TIMEOUT(4) + GRAIN) {
		probe_ring(&p);
		probe_turn(&p, 500);
	}
	expect_count(&p, TIMEOUTS, 1);
	probe_close(&p);
}

/* Timeout 0: never. */
static void
no_timeout(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 0, .retry_cnt = 1});
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_pass(&p, 20000000000000ull, 1000000000000ull); /* hours */
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_close(&p);
}

/* An idle QP has no timer that does anything. */
static void
idle(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 1, .retry_cnt = 0});
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_pass(&p, 1000000, 10000);
	expect_silence(&p);
	expect_count(&p, TIMEOUTS, 0);
	/* A request sent long after gets its whole time. */
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_pass(&p, TIMEOUT(1) - 1, 500);
	expect_no_cqe(&p);
	probe_pass(&p, GRAIN, GRAIN);
	expect_sent(&p, 1, RETRY_EXC_ERR);
	probe_close(&p);
}

/* ---- turns that stand still */

/* A turn after as long as that without any. */
static void
stand_still(struct probe *p, uint64_t ns)
{
	urn_tp_stood(p->tp, p->now + ns);
	probe_turn(p, ns);
}

/*
 * The engine was not run for many timeouts. Packets that came meanwhile are handled before
 * a timeout counts, so that even a QP with a single try goes on.
 */
static void
stood_still(void **state)
{
	(void)state;
	for (uint8_t cnt = 0; cnt < 2; cnt++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.timeout = 10, .retry_cnt = cnt});
		for (uint32_t i = 0; i < 2; i++) { /* the first is timed */
			post_one(&p, i);
			expect_frame(&p, SEND_ONLY, SQ(i));
		}
		probe_ack(&p, SQ(0), SYN_ACK, 1);
		stand_still(&p, 100 * TIMEOUT(10));
		expect_sent(&p, 0, SUCCESS);
		/* A peer that stood still with us answers in some turns. */
		stand_still(&p, 100 * TIMEOUT(10));
		for (int i = 0; i < 200; i++) /* and in a round trip: a millisecond is taken for that */
			probe_turn(&p, 5000);
		expect_silence(&p);
		expect_no_cqe(&p);
		probe_ack(&p, SQ(1), SYN_ACK, 2);
		expect_sent(&p, 1, SUCCESS);
		expect_count(&p, TIMEOUTS, 0);
		assert_int_equal(p.tp->peers.at[p.qp->tx.peer]->backoff, 0); /* nothing was repeated */
		probe_close(&p);
	}
}

/* Several timeouts in one such time count once, and soon; then all is as ever. */
static void
stood_still_for_nothing(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 12, .retry_cnt = 1});
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	stand_still(&p, 100 * TIMEOUT(12));
	probe_pass(&p, TIMEOUT(12) / 4, 10000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_count(&p, TIMEOUTS, 1);
	probe_pass(&p, TIMEOUT(12) - TIMEOUT(12) / 4, 100000);
	expect_no_cqe(&p);
	probe_pass(&p, TIMEOUT(12) / 4 + GRAIN, 100000);
	expect_sent(&p, 0, RETRY_EXC_ERR);
	expect_count(&p, TIMEOUTS, 2);
	probe_close(&p);
}

/* The engine hangs repeatedly, with few turns between: a peer that is gone is found by counting turns. */
static void
stands_still_again(void **state)
{
	struct probe p;
	int n = 0;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 10, .retry_cnt = 1});
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	for (; n < 1000 && p.qp->state == URN_QPS_RTS; n++)
		for (int i = 0; i < 4; i++)
			i ? probe_turn(&p, 5000) : stand_still(&p, 2 * TIMEOUT(10));
	expect_sent(&p, 0, RETRY_EXC_ERR);
	assert_in_range(n, 2 * 64 / 4, 2 * 64 / 2);
	probe_close(&p);
}

/*
 * The timer waits for turns, and our memory is slow meanwhile: the timer restarts, after any number
 * of turns. (The count of turns shares a field with the doublings of the round trip; a shift by more
 * than a number's bits would be seen by sanitizers.)
 */
static void
stood_still_with_slow_memory(void **state)
{
	static const int turns[] = {1, 30, 63, 70, 100};

	(void)state;
	for (size_t k = 0; k < sizeof(turns) / sizeof(turns[0]); k++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.timeout = 14, .retry_cnt = 0, .rto_floor = 4000000,
						      .delay_seed = 5, .delay_polls = 6});
		post_one(&p, 0);
		expect_frame(&p, SEND_ONLY, SQ(0));
		stand_still(&p, 100 * TIMEOUT(14));
		for (int i = 0; i < turns[k]; i++)
			probe_turn(&p, 5000);
		p.hold = true;
		probe_write(&p, WRITE_ONLY, RQ(0), 4096, 8, 8, 1);
		probe_turn(&p, 5000); /* it is taken before the timer's time */
		/* For as long as memory takes. */
		probe_pass(&p, 3 * TIMEOUT(14), TIMEOUT(14) / 7);
		expect_no_cqe(&p);
		assert_false(p.qp->tx.flags & URN_TXF_HELD);
		assert_int_equal(p.qp->tx.early, 0);
		p.hold = false;
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		expect_count(&p, TIMEOUTS, 0);
		probe_ack(&p, SQ(0), SYN_ACK, 1);
		expect_sent(&p, 0, SUCCESS);
		probe_close(&p);
	}
}

/* A request sent after such a time has a timer as usual. */
static void
stood_still_before(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 8, .retry_cnt = 0});
	stand_still(&p, 100 * TIMEOUT(8));
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_pass(&p, TIMEOUT(8) - 1, TIMEOUT(8) / 7);
	expect_no_cqe(&p);
	probe_pass(&p, GRAIN, GRAIN);
	expect_sent(&p, 0, RETRY_EXC_ERR);
	probe_close(&p);
}

/* A probe waits, too, until packets that came meanwhile were handled. */
static void
stood_still_early(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 18, .retry_cnt = 1, .rto_floor = 4000000});
	post_one(&p, 0);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	stand_still(&p, TIMEOUT(18) / 2);
	expect_sent(&p, 0, SUCCESS);
	stand_still(&p, TIMEOUT(18) / 2);
	expect_silence(&p);
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	expect_count(&p, PROBES, 0);
	probe_close(&p);
}

/* ---- receiver not ready */

/* Wait as long as the code says: not less, and no more than the wheel's grain longer. */
static void
rnr_times(void **state)
{
	static const uint32_t us[32] = {
		655360, 10,    20,    30,    40,    60,    80,	   120,	   160,	   240,	   320,
		480,	640,   960,   1280,  1920,  2560,  3840,   5120,   7680,   10240,  15360,
		20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rnr_retry = 7, .timeout = 1, .retry_cnt = 0});
	post_one(&p, 0);
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
	post_one(&p, 0);
	post_one(&p, 1);
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
	post_one(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	for (int i = 0; i < 1000; i++) {
		probe_ack(&p, SQ(0), SYN_RNR | 1, 0);
		probe_settle(&p);
		probe_pass(&p, 10000 + GRAIN, GRAIN);
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
	post_one(&p, 0);
	post_one(&p, 1);
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
	post_one(&p, 0);
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
	post_one(&p, 0);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_RNR | 20, 1); /* 10240 us */
	expect_sent(&p, 0, SUCCESS);
	post_one(&p, 2);
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
		post_one(&p, i);
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
		post_one(&p, i);
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
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_ACK, 2); /* it overtook the response */
	probe_ack(&p, SQ(1), SYN_RNR | 20, 1);
	expect_silence(&p);
	post_one(&p, 2);
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
	post_one(&p, 0);
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
		cmocka_unit_test(retries),	     cmocka_unit_test(progress_restores),
		cmocka_unit_test(timer_restarts),    cmocka_unit_test(posting_does_not_delay),
		cmocka_unit_test(no_timeout),	     cmocka_unit_test(idle),
		cmocka_unit_test(stood_still),	     cmocka_unit_test(stood_still_for_nothing),
		cmocka_unit_test(stands_still_again), cmocka_unit_test(stood_still_early),
		cmocka_unit_test(stood_still_before), cmocka_unit_test(stood_still_with_slow_memory),
		cmocka_unit_test(rnr_times),	     cmocka_unit_test(rnr_count),
		cmocka_unit_test(rnr_for_ever),	     cmocka_unit_test(rnr_then_sequence),
		cmocka_unit_test(rnr_doubled),	     cmocka_unit_test(rnr_holds),
		cmocka_unit_test(rnr_and_error),     cmocka_unit_test(rnr_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
