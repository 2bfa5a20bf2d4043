/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/sack.c: the runs of a selective acknowledgement (wire.md "Selective acknowledgement"). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/sack.h"

#include <rte_byteorder.h>

#define BASE 0xfffff0u /* the PSN wraps within the bitmap */
#define P(n) urn_psn_add(BASE, (uint32_t)(n))

static struct urn_sack
sack(void)
{
	return (struct urn_sack){.version = URN_SACK_VERSION, .expected = rte_cpu_to_be_32(P(0))};
}

/* Note PSN P(n), with n from 1 on, in the bitmap. */
static void
keep(struct urn_sack *s, uint32_t n)
{
	s->bitmap[(n - 1) / 8] |= (uint8_t)(1u << ((n - 1) % 8));
}

static void
range(struct urn_sack *s, uint32_t first, uint32_t end)
{
	s->range[s->ranges].first = rte_cpu_to_be_32(P(first));
	s->range[s->ranges].end = rte_cpu_to_be_32(P(end));
	s->ranges++;
}

static void
next_is(const struct urn_sack *s, struct urn_sack_run *run, uint32_t first, uint32_t end)
{
	assert_true(urn_sack_next(s, run));
	assert_int_equal(run->first, P(first));
	assert_int_equal(run->end, P(end));
}

static void
runs(void **state)
{
	struct urn_sack s = sack();
	struct urn_sack_run run = {0};

	(void)state;
	assert_int_equal(urn_sack_expected(&s), P(0));
	assert_false(urn_sack_next(&s, &run));
	assert_true(urn_sack_sound(&s, P(0)));

	for (uint32_t n = 7; n <= 20; n++)
		keep(&s, n);
	keep(&s, 1);
	keep(&s, 40);
	keep(&s, URN_SACK_BITS);
	range(&s, 300, 310);
	range(&s, 310, 311);
	run = (struct urn_sack_run){0};
	next_is(&s, &run, 1, 2);
	next_is(&s, &run, 7, 21);
	next_is(&s, &run, 40, 41);
	next_is(&s, &run, URN_SACK_BITS, URN_SACK_BITS + 1);
	next_is(&s, &run, 300, 310);
	next_is(&s, &run, 310, 311);
	assert_false(urn_sack_next(&s, &run));
	assert_false(urn_sack_next(&s, &run)); /* and stays at the end */
	assert_true(urn_sack_sound(&s, P(311)));
	assert_false(urn_sack_sound(&s, P(310))); /* PSN 310 was never sent */
}

/* The wire is not trusted: nothing that is not in order, or was never sent, is taken in. */
static void
unsound(void **state)
{
	struct urn_sack s = sack();

	(void)state;
	s.version = 0;
	assert_false(urn_sack_sound(&s, P(100)));
	s = sack();
	s.ranges = URN_SACK_RANGES + 1;
	assert_false(urn_sack_sound(&s, P(100)));
	s = sack();
	assert_false(urn_sack_sound(&s, P(-1)));
	keep(&s, 5);
	assert_true(urn_sack_sound(&s, P(6)));
	assert_false(urn_sack_sound(&s, P(5)));

	range(&s, 3, 9); /* before the bitmap's last */
	assert_false(urn_sack_sound(&s, P(100)));
	s = sack();
	range(&s, 9, 9); /* empty */
	assert_false(urn_sack_sound(&s, P(100)));
	s = sack();
	range(&s, 9, 20);
	range(&s, 15, 30); /* on top of the one before */
	assert_false(urn_sack_sound(&s, P(100)));
	s = sack();
	range(&s, 9, 1u << 23); /* so far that differences wrap */
	range(&s, 1u << 23, (1u << 24) - 20);
	assert_false(urn_sack_sound(&s, P(100)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs),
		cmocka_unit_test(unsound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
