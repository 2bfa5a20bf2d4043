/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time at the requester (doc/reference/wire.md "Timers", "Acknowledgement"): timeouts, RNR
 * waits and their counts, under a clock that the test moves.
 */
#include "timer.h"

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
			timer_post(&p, 5);
			timer_post(&p, 6);
			expect_frame(&p, SEND_ONLY, SQ(0));
			expect_frame(&p, SEND_ONLY, SQ(1));
			for (uint8_t i = 0; i < cnt; i++) {
				expect_after(&p, TIMEOUT(code[k]));
				expect_frame(&p, SEND_ONLY, SQ(0));
				assert_true(expect_frame(&p, SEND_ONLY, SQ(1))->ack);
				expect_silence(&p);
				expect_no_cqe(&p);
			}
			probe_pass(&p, TIMEOUT(code[k]) - 1 - TIMER_GRAIN, TIMEOUT(code[k]));
			expect_no_cqe(&p);
			probe_pass(&p, 2 * TIMER_GRAIN, TIMER_GRAIN);
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
	timer_post(&p, 0);
	timer_post(&p, 1);
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
	probe_pass(&p, TIMEOUT(8) + TIMER_GRAIN, TIMER_GRAIN);
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
	timer_post(&p, 0);
	timer_post(&p, 1);
	timer_post(&p, 2);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_pass(&p, TIMEOUT(8) - TIMER_GRAIN, 50000);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_pass(&p, TIMEOUT(8) - TIMER_GRAIN, 50000);
	expect_silence(&p);
	probe_ack(&p, SQ(0), SYN_ACK, 1); /* again */
	probe_settle(&p);
	probe_pass(&p, TIMEOUT(8) - TIMER_GRAIN, 50000);
	expect_silence(&p);
	probe_ack(&p, SQ(-5000), SYN_ACK, 1);
	expect_after(&p, TIMER_GRAIN);
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
	timer_post(&p, 0);
	probe_turn(&p, 0);
	start = p.now;
	for (uint64_t i = 1; i < 60; i++) { /* 60 us, the timeout is 65 */
		timer_post(&p, i);
		probe_turn(&p, 1000);
	}
	expect_count(&p, TIMEOUTS, 0);
	/* The doorbell rings on, in each microsecond that the wheel's grain is late. */
	while (p.now < start + TIMEOUT(4) + TIMER_GRAIN) {
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
	timer_post(&p, 0);
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
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	probe_pass(&p, 1000000, 10000);
	expect_silence(&p);
	expect_count(&p, TIMEOUTS, 0);
	/* A request sent long after gets its whole time. */
	timer_post(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_pass(&p, TIMEOUT(1) - 1, 500);
	expect_no_cqe(&p);
	probe_pass(&p, TIMER_GRAIN, TIMER_GRAIN);
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
			timer_post(&p, i);
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
		assert_int_equal(urn_peer_at(&p.tp->peers, p.qp->tx.peer)->backoff,
				 0); /* nothing was repeated */
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
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	stand_still(&p, 100 * TIMEOUT(12));
	probe_pass(&p, TIMEOUT(12) / 4, 10000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_count(&p, TIMEOUTS, 1);
	probe_pass(&p, TIMEOUT(12) - TIMEOUT(12) / 4, 100000);
	expect_no_cqe(&p);
	probe_pass(&p, TIMEOUT(12) / 4 + TIMER_GRAIN, 100000);
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
	timer_post(&p, 0);
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
		timer_post(&p, 0);
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
	timer_post(&p, 0);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_pass(&p, TIMEOUT(8) - 1, TIMEOUT(8) / 7);
	expect_no_cqe(&p);
	probe_pass(&p, TIMER_GRAIN, TIMER_GRAIN);
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
	timer_post(&p, 0);
	timer_post(&p, 1);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retries),
		cmocka_unit_test(progress_restores),
		cmocka_unit_test(timer_restarts),
		cmocka_unit_test(posting_does_not_delay),
		cmocka_unit_test(no_timeout),
		cmocka_unit_test(idle),
		cmocka_unit_test(stood_still),
		cmocka_unit_test(stood_still_for_nothing),
		cmocka_unit_test(stands_still_again),
		cmocka_unit_test(stood_still_early),
		cmocka_unit_test(stood_still_before),
		cmocka_unit_test(stood_still_with_slow_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
