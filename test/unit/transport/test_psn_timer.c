/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/psn_timer.c: actions and when they are due (doc/inside/recovery.md "Time"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/psn_timer.h"

#define SPAN (1ull << (URN_TIMEOUT_SHIFT + 14)) /* 67 ms */
#define START 1000000000ull
#define MS 1000000ull

static const struct urn_psn_clock way = {.now = START, .first = 2 * MS, .step = 3 * MS, .answer = 2 * MS};

static struct urn_psn_tx
armed(void)
{
	struct urn_psn_tx tx = {.timeout = 14, .retry_cnt = 2, .retries = 2, .rnr_retry = 1, .rnr_tries = 1};

	urn_psn_tx_start(&tx, 100);
	tx.next = 110;
	tx.flags = URN_TXF_HELD | URN_TXF_DOUBT | URN_TXF_MOVED;
	tx.early = 9;
	urn_psn_arm(&tx, START);
	assert_int_equal(tx.flags, 0);
	assert_int_equal(tx.early, 0);
	assert_int_equal(tx.deadline, START + SPAN);
	return tx;
}

static struct urn_psn_clock
at(uint64_t ns)
{
	struct urn_psn_clock c = way;

	c.now = START + ns;
	return c;
}

/* Look so many ns after the wait began. */
static enum urn_psn_step
look(struct urn_psn_tx *tx, uint64_t ns, bool busy, uint64_t *again)
{
	struct urn_psn_clock c = at(ns);

	return urn_psn_look(tx, &c, busy, again);
}

static void
steps(void **state)
{
	struct urn_psn_tx tx = armed();
	uint64_t again;

	(void)state;
	assert_int_equal(look(&tx, MS, false, &again), URN_PSN_WAIT);
	assert_int_equal(again, START + 2 * MS);
	assert_int_equal(look(&tx, 2 * MS, true, &again), URN_PSN_ARM);
	assert_int_equal(look(&tx, 2 * MS, false, &again), URN_PSN_EARLY);
	assert_false(urn_psn_early(&tx)); /* a probe */
	assert_true(tx.flags & URN_TXF_PROBE);
	for (unsigned int i = 1; i < 4; i++) { /* then repeats, each after twice the time */
		uint64_t due = (2 + 3 * ((1u << i) - 1)) * MS;

		assert_int_equal(look(&tx, due - 1, false, &again), URN_PSN_WAIT);
		assert_int_equal(again, START + due);
		assert_int_equal(look(&tx, due, false, &again), URN_PSN_EARLY);
		assert_true(urn_psn_early(&tx));
	}
	assert_int_equal(look(&tx, SPAN - 1, false, &again), URN_PSN_EARLY);
	assert_int_equal(look(&tx, SPAN, false, &again), URN_PSN_TIMED_OUT);
}

static void
nothing_early(void **state)
{
	struct urn_psn_clock c = at(SPAN - 1);
	struct urn_psn_tx tx = armed();
	uint64_t again;

	(void)state;
	c.first = UINT64_MAX;
	tx.early = 16;
	assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_WAIT);
	assert_int_equal(again, START + SPAN);
}

/* Turns that stood still: 64 more turns, and time for an answer, before the timeout counts. */
static void
stood_still(void **state)
{
	struct urn_psn_clock c = at(2 * SPAN);
	struct urn_psn_tx tx = armed();
	uint64_t again;

	(void)state;
	c.stood_at = c.now;
	for (unsigned int i = 0; i <= 64; i++) {
		assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_WAIT);
		assert_int_equal(again, c.now);
		c.now++;
	}
	assert_true(tx.flags & URN_TXF_HELD);
	assert_int_equal(urn_psn_look(&tx, &c, true, &again), URN_PSN_ARM);
	assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_WAIT);
	assert_int_equal(again, c.stood_at + 2 * MS); /* way.answer */
	c.now = again;
	assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_TIMED_OUT);
}

/* Early repeats wait, too, until the peer has had its time. */
static void
stood_still_early(void **state)
{
	struct urn_psn_clock c = at(5 * MS);
	struct urn_psn_tx tx = armed();
	uint64_t again;

	(void)state;
	c.stood_at = START + 4 * MS;
	assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_WAIT);
	assert_int_equal(again, START + 6 * MS);
	c.now = again;
	assert_int_equal(urn_psn_look(&tx, &c, false, &again), URN_PSN_EARLY);
	c.stood_at = START - 1; /* before the wait began */
	assert_false(urn_psn_stood(&tx, &c, SPAN));
}

static void
losses(void **state)
{
	struct urn_psn_tx tx = armed();

	(void)state;
	assert_int_equal(urn_psn_lost(&tx), URN_PSN_GO_BACK);
	assert_int_equal(tx.retries, 1);
	tx.flags |= URN_TXF_WENT_BACK;
	assert_int_equal(urn_psn_lost(&tx), URN_PSN_ALL_BACK);
	tx.flags = 0;
	assert_int_equal(urn_psn_lost(&tx), URN_PSN_GO_BACK);
	assert_int_equal(urn_psn_lost(&tx), URN_PSN_USED_UP);
	tx.flags = URN_TXF_RNR_WAIT;
	assert_int_equal(urn_psn_lost(&tx), URN_PSN_NO_MATTER);

	tx.una = tx.acked = 105; /* the cursor is behind */
	tx.flags = URN_TXF_WENT_BACK | URN_TXF_PROBE;
	urn_psn_progress(&tx);
	assert_int_equal(tx.retries, 2);
	assert_int_equal(tx.flags, 0);
	assert_int_equal(tx.cur.psn, 105);
}

static void
not_ready(void **state)
{
	struct urn_psn_tx tx = armed();

	(void)state;
	tx.retries = 0;
	assert_true(urn_psn_rnr_left(&tx));
	urn_psn_rnr_wait(&tx, START + MS);
	assert_int_equal(tx.flags, URN_TXF_RNR_WAIT);
	assert_int_equal(tx.deadline, START + MS);
	assert_int_equal(tx.retries, 2);
	assert_false(urn_psn_rnr_left(&tx));
	tx.rnr_retry = URN_RNR_FOREVER;
	urn_psn_rnr_wait(&tx, START + MS);
	assert_int_equal(tx.rnr_tries, 0); /* not counted */
	assert_true(urn_psn_rnr_left(&tx));
}

/* Duplicates put the timeout off by seven timeouts and a half, all in all. */
static void
alive(void **state)
{
	struct urn_psn_tx tx = armed();
	uint64_t now = START, last;

	(void)state;
	urn_psn_alive(&tx, now + SPAN / 4); /* less than half a timeout is not worth it */
	assert_int_equal(tx.deadline, START + SPAN);
	for (unsigned int i = 0; i < 15; i++) {
		now += SPAN / 2;
		urn_psn_alive(&tx, now);
		assert_int_equal(tx.deadline, now + SPAN);
	}
	last = tx.deadline;
	urn_psn_alive(&tx, now + SPAN / 2);
	assert_int_equal(tx.deadline, last);

	tx = armed();
	tx.una = tx.next;
	urn_psn_alive(&tx, START + SPAN / 2);
	assert_int_equal(tx.deadline, START + SPAN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps),       cmocka_unit_test(nothing_early),     cmocka_unit_test(alive),
		cmocka_unit_test(stood_still), cmocka_unit_test(stood_still_early), cmocka_unit_test(losses),
		cmocka_unit_test(not_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
