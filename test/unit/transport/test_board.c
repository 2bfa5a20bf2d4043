/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/board.c: gaps, patience, and random stretches against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/board.h"
#include "transport/psn.h"

#include <string.h>

#define BASE 0xfffff0u /* the PSN wraps soon */
#define P(n) urn_psn_add(BASE, (uint32_t)(n))

static const struct urn_board_limits limits = {.distance = 4, .seen_ns = 100, .asked_ns = 1000};

static struct urn_board_news
came(struct urn_board *b, uint32_t first, uint32_t end, uint64_t now)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};

	urn_board_came(b, P(first), P(end), now, &news);
	return news;
}

static void
expect_gap(const struct urn_board *b, uint32_t i, uint32_t first, uint32_t end, uint8_t state)
{
	assert_true(i < b->n);
	assert_int_equal(b->gap[i].first, P(first));
	assert_int_equal(b->gap[i].end, P(end));
	assert_int_equal(b->gap[i].state, state);
}

static void
gaps(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	assert_false(urn_board_open(&b));
	assert_true(came(&b, 10, 20, 1).any);
	expect_gap(&b, 0, 0, 10, URN_GAP_SEEN);
	came(&b, 30, 31, 2);
	expect_gap(&b, 1, 20, 30, URN_GAP_SEEN);
	came(&b, 22, 25, 3); /* splits the gap */
	assert_int_equal(b.n, 3);
	expect_gap(&b, 1, 20, 22, URN_GAP_SEEN);
	expect_gap(&b, 2, 25, 30, URN_GAP_SEEN);
	assert_false(came(&b, 10, 20, 4).any); /* known already */
	came(&b, 21, 27, 5);
	expect_gap(&b, 1, 20, 21, URN_GAP_SEEN);
	expect_gap(&b, 2, 27, 30, URN_GAP_SEEN);
	came(&b, 5, 29, 6); /* over several gaps */
	assert_int_equal(b.n, 2);
	expect_gap(&b, 0, 0, 5, URN_GAP_SEEN);
	expect_gap(&b, 1, 29, 30, URN_GAP_SEEN);
	urn_board_advance(&b, P(3));
	expect_gap(&b, 0, 3, 5, URN_GAP_SEEN);
	urn_board_advance(&b, P(2)); /* backwards: ignored */
	assert_int_equal(b.base, P(3));
	urn_board_advance(&b, P(40));
	assert_false(urn_board_open(&b));
	assert_int_equal(b.high, P(40));
	assert_false(came(&b, 30, 35, 7).any);
	assert_false(urn_board_open(&b));
}

static void
judged_by_distance(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 1, 4, 0);
	assert_false(urn_board_judge(&b, &limits, 0));
	came(&b, 4, 5, 0);
	assert_true(urn_board_judge(&b, &limits, 0));
	expect_gap(&b, 0, 0, 1, URN_GAP_LOST);
	assert_int_equal(urn_board_due(&b, &limits), UINT64_MAX); /* the gap is to be asked for, not waited for */
}

static void
judged_by_time(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 1, 2, 50);
	assert_int_equal(urn_board_due(&b, &limits), 150);
	assert_false(urn_board_judge(&b, &limits, 149));
	assert_true(urn_board_judge(&b, &limits, 150));
	urn_board_asked(&b.gap[0], b.gap[0].end, 200);
	expect_gap(&b, 0, 0, 1, URN_GAP_ASKED);
	assert_int_equal(urn_board_due(&b, &limits), 1200);
	assert_false(urn_board_judge(&b, &limits, 1199));
	assert_true(urn_board_judge(&b, &limits, 1200));
	urn_board_asked(&b.gap[0], b.gap[0].end, 1200);
	assert_int_equal(urn_board_due(&b, &limits), 3200); /* twice the patience */
	for (int i = 0; i < 300; i++)
		urn_board_asked(&b.gap[0], b.gap[0].end, 0);
	assert_int_equal(b.gap[0].tries, 255);
	assert_int_equal(urn_board_due(&b, &limits), 64000);
}

/* A part of a lost gap comes, before, at and behind the part that was asked for already. */
static void
asked_in_parts(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 10, 20, 0);
	urn_board_judge(&b, &limits, 0);
	urn_board_asked(&b.gap[0], P(4), 0);
	expect_gap(&b, 0, 0, 10, URN_GAP_LOST);
	came(&b, 4, 6, 1);
	expect_gap(&b, 0, 0, 4, URN_GAP_ASKED); /* all of it was asked for */
	expect_gap(&b, 1, 6, 10, URN_GAP_LOST);
	assert_int_equal(b.gap[1].cur, P(6));
	came(&b, 6, 7, 2);
	assert_int_equal(b.gap[1].cur, P(7));
}

static void
news(void **state)
{
	struct urn_board_news n;
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 1, 8, 100);
	n = came(&b, 0, 1, 130); /* late, and not lost */
	assert_int_equal(n.late_by, 8);
	assert_int_equal(n.late_ns, 30);
	assert_int_equal(n.again_ns, UINT64_MAX);
	came(&b, 9, 20, 200);
	urn_board_judge(&b, &limits, 200);
	urn_board_asked(&b.gap[0], P(9), 210);
	n = came(&b, 8, 9, 215);
	assert_int_equal(n.late_by, 0);
	assert_int_equal(n.again_ns, 5);
	/* An arrival that closes a gap does not count as an overtaking. */
	came(&b, 21, 23, 300);
	n = came(&b, 20, 60, 301);
	assert_int_equal(n.late_by, 3);
}

static void
full(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	for (uint32_t i = 0; i < URN_BOARD_GAPS; i++)
		assert_true(came(&b, 10 * i + 5, 10 * i + 10, 0).any);
	assert_int_equal(b.n, URN_BOARD_GAPS);
	assert_false(came(&b, 1000, 1001, 0).any);
	assert_int_equal(b.high, P(10 * URN_BOARD_GAPS));
	came(&b, 2, 3, 0); /* would split the gap in two */
	expect_gap(&b, 0, 0, 5, URN_GAP_SEEN);
	came(&b, 0, 5, 0);
	assert_true(came(&b, 1000, 1001, 0).any);
	assert_int_equal(b.n, URN_BOARD_GAPS);
}

/* Arrivals in any order: the gaps are the missing PSNs before the newest. */
static void
random_stretches(void **state)
{
	enum { SPAN = 90 };
	uint64_t x = 12345;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		uint8_t have[SPAN] = {0};
		uint32_t base = 0, high = 0;
		struct urn_board b;

		urn_board_reset(&b, P(0));
		for (int step = 0; step < 40; step++) {
			uint32_t first, end;

			x = x * 6364136223846793005ull + 1442695040888963407ull;
			first = (uint32_t)(x >> 33) % SPAN;
			end = first + 1 + (uint32_t)(x >> 50) % 6;
			if (end > SPAN)
				end = SPAN;
			if ((x >> 60) == 0 && first < base + 10) {
				urn_board_advance(&b, P(first));
				base = first > base ? first : base;
				memset(have, 1, base);
				high = base > high ? base : high;
			} else {
				came(&b, first, end, 0);
				memset(have + first, 1, end - first);
				high = end > high ? end : high;
			}
			assert_int_equal(b.high, P(high));
			for (uint32_t i = 0, g = 0; i < high; i++) {
				if (have[i])
					continue;
				while (g < b.n && urn_psn_diff(b.gap[g].end, P(i)) <= 0)
					g++;
				assert_true(g < b.n && urn_psn_diff(b.gap[g].first, P(i)) <= 0);
			}
			for (uint32_t g = 0; g < b.n; g++)
				for (uint32_t p = b.gap[g].first; p != b.gap[g].end; p = urn_psn_add(p, 1))
					assert_false(have[(p - BASE) & 0xffffff]);
		}
	}
}

static bool
missed(struct urn_board *b, uint32_t psn, uint64_t now)
{
	return urn_board_missed(b, P(psn), now);
}

/* A response that came and was dropped: as if a later one showed that it is missing. */
static void
missed_is_a_gap(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	assert_true(missed(&b, 0, 50)); /* a dropped response with nothing behind it is missing and recorded */
	assert_int_equal(b.n, 1);
	expect_gap(&b, 0, 0, 1, URN_GAP_SEEN);
	assert_int_equal(b.high, P(1));
	assert_true(urn_board_open(&b));
	/* The gap is asked for by time, like one that is seen. */
	assert_int_equal(urn_board_due(&b, &limits), 150);
	assert_false(urn_board_judge(&b, &limits, 149));
	assert_true(urn_board_judge(&b, &limits, 150));
	urn_board_asked(&b.gap[0], b.gap[0].end, 150);
	assert_int_equal(urn_board_due(&b, &limits), 1150);
	assert_true(came(&b, 0, 1, 200).any);
	assert_false(urn_board_open(&b));
}

/* PSNs before the dropped response are missing, too, and arrivals are not forgotten. */
static void
missed_ahead(void **state)
{
	struct urn_board b;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 0, 5, 1);
	assert_true(missed(&b, 8, 2));
	assert_int_equal(b.n, 1);
	expect_gap(&b, 0, 5, 9, URN_GAP_SEEN);
	assert_int_equal(b.gap[0].at, 2);
	assert_int_equal(b.high, P(9));
	/* The next missing PSN makes a gap of its own; that gap's patience begins now. */
	assert_true(missed(&b, 9, 7));
	assert_int_equal(b.n, 2);
	expect_gap(&b, 1, 9, 10, URN_GAP_SEEN);
	assert_int_equal(b.gap[1].at, 7);
	assert_int_equal(b.high, P(10));
	came(&b, 10, 12, 8); /* adjacent: no gap before it */
	assert_int_equal(b.n, 2);
	assert_int_equal(b.high, P(12));
}

/* A dropped response changes neither a known gap nor an arrival. */
static void
missed_known(void **state)
{
	struct urn_board b, before;

	(void)state;
	urn_board_reset(&b, P(0));
	came(&b, 4, 8, 1);
	urn_board_judge(&b, &limits, 1);
	urn_board_asked(&b.gap[0], P(4), 1);
	before = b;
	for (uint32_t psn = 0; psn < 8; psn++) /* in a gap that is asked for, and a duplicate */
		assert_true(missed(&b, psn, 9));
	assert_memory_equal(&b, &before, sizeof(b));
	urn_board_advance(&b, P(8));
	before = b;
	assert_true(missed(&b, 7, 9)); /* already done */
	assert_memory_equal(&b, &before, sizeof(b));
	assert_true(missed(&b, 8, 9));
	expect_gap(&b, 0, 8, 9, URN_GAP_SEEN);
}

/* Without room the call says so and changes nothing: the caller asks for all of it again. */
static void
missed_full(void **state)
{
	struct urn_board b, before;

	(void)state;
	urn_board_reset(&b, P(0));
	for (uint32_t i = 0; i < URN_BOARD_GAPS; i++)
		assert_true(missed(&b, 10 * i + 5, 0));
	assert_int_equal(b.n, URN_BOARD_GAPS);
	before = b;
	assert_false(missed(&b, 1000, 0));
	assert_memory_equal(&b, &before, sizeof(b));
	assert_true(missed(&b, 5, 0)); /* known: needs no room */
	came(&b, 0, 6, 0);
	assert_true(missed(&b, 1000, 0));
	assert_int_equal(b.high, P(1001));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps),
		cmocka_unit_test(judged_by_distance),
		cmocka_unit_test(judged_by_time),
		cmocka_unit_test(asked_in_parts),
		cmocka_unit_test(news),
		cmocka_unit_test(full),
		cmocka_unit_test(missed_is_a_gap),
		cmocka_unit_test(missed_ahead),
		cmocka_unit_test(missed_known),
		cmocka_unit_test(missed_full),
		cmocka_unit_test(random_stretches),
	};

	return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
