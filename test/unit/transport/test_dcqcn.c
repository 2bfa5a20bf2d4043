/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control of a channel (DCQCN, SIGCOMM 2015, 5.1): rates against the published rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/dcqcn.h"

#include <math.h>
#include <string.h>

#define LINE 1250000000ull /* 10 Gbit/s */

static struct urn_dcqcn_config cfg;
static struct urn_dcqcn d;

static int
setup(void **state)
{
	(void)state;
	memset(&d, 0, sizeof(d));
	urn_dcqcn_defaults(&cfg, LINE);
	urn_dcqcn_begin(&d, &cfg, LINE, 0);
	return 0;
}

static void
near(uint64_t got, double want)
{
	if (fabs((double)got - want) > want / 1000 + 2)
		fail_msg("%llu instead of %.0f", (unsigned long long)got, want);
}

/* The first CNP halves the rate, and steps by time recover it fast: half of what is missing each.
 */
static void
halves_and_recovers(void **state)
{
	double rate = LINE / 2.0;

	(void)state;
	near(d.rate, rate);
	assert_int_equal(d.target, LINE);
	for (unsigned int i = 1; i <= cfg.fast; i++) {
		assert_false(urn_dcqcn_advance(&d, &cfg, i * cfg.raise_ns - 1));
		assert_true(urn_dcqcn_advance(&d, &cfg, i * cfg.raise_ns));
		rate = (rate + LINE) / 2;
		near(d.rate, rate);
		assert_int_equal(d.target, LINE);
	}
}

/* Each CNP cuts by alpha / 2, where alpha follows its own rule. */
static void
cuts_by_alpha(void **state)
{
	double rate = LINE / 2.0, alpha = 1;

	(void)state;
	for (unsigned int i = 1; i <= 4; i++) {
		/* alpha_ns passes four times without CNP, then one comes; steps are left out. */
		cfg.raise_ns = UINT64_MAX / 2;
		d.raise_due = UINT64_MAX;
		(void)urn_dcqcn_advance(&d, &cfg, d.alpha_due + 3 * cfg.alpha_ns);
		for (int k = 0; k < 4; k++)
			alpha *= 1 - 1 / 256.0;
		near(d.alpha, alpha * URN_DCQCN_ONE);
		urn_dcqcn_cnp(&d, &cfg, d.alpha_due);
		rate *= 1 - alpha / 2;
		alpha += (1 - alpha) / 256;
		near(d.rate, rate);
		near(d.alpha, alpha * URN_DCQCN_ONE);
	}
}

/* Behind fast recovery the target rises: by `additive` for one kind of step, by `hyper` for both.
 */
static void
raises_the_target(void **state)
{
	uint64_t before, now = 0;

	(void)state;
	urn_dcqcn_cnp(&d, &cfg, now);
	urn_dcqcn_cnp(&d, &cfg, now);
	for (unsigned int i = 0; i < cfg.fast; i++)
		assert_true(urn_dcqcn_advance(&d, &cfg, now += cfg.raise_ns));
	before = d.target;
	assert_true(urn_dcqcn_advance(&d, &cfg, now += cfg.raise_ns));
	assert_int_equal(d.target, before + cfg.additive);
	for (unsigned int i = 0; i < cfg.fast; i++)
		assert_true(urn_dcqcn_sent(&d, &cfg, (uint32_t)cfg.raise_bytes));
	assert_int_equal(d.target, before + cfg.additive); /* fast recovery by bytes */
	assert_false(urn_dcqcn_sent(&d, &cfg, (uint32_t)cfg.raise_bytes - 1));
	assert_true(urn_dcqcn_sent(&d, &cfg, 1));
	assert_int_equal(d.target, before + cfg.additive + cfg.hyper);
	urn_dcqcn_cnp(&d, &cfg, now); /* from the start */
	before = d.target;
	assert_true(urn_dcqcn_advance(&d, &cfg, now + cfg.raise_ns));
	assert_int_equal(d.target, before);
}

/* Storms of CNPs, or idle years, leave the rate between its bounds and no call long. */
static void
stays_in_bounds(void **state)
{
	uint64_t now = 1;

	(void)state;
	for (int i = 0; i < 100000; i++)
		urn_dcqcn_cnp(&d, &cfg, now++);
	assert_int_equal(d.rate, cfg.least);
	assert_in_range(d.alpha, URN_DCQCN_ONE - 256, URN_DCQCN_ONE);
	assert_false(urn_dcqcn_over(&d, &cfg));
	for (int i = 0; i < 1000 && !urn_dcqcn_over(&d, &cfg); i++)
		(void)urn_dcqcn_advance(&d, &cfg, now += UINT64_MAX / 2048);
	assert_true(urn_dcqcn_over(&d, &cfg));
	assert_int_equal(d.rate, LINE);
	assert_int_equal(d.target, LINE);
}

/* Two senders with different rates that get the same marks come to the same rate (the paper's
 * fairness). */
static void
comes_to_fairness(void **state)
{
	struct urn_dcqcn e;
	double share;
	uint64_t now = 0;

	(void)state;
	urn_dcqcn_begin(&e, &cfg, LINE / 10, 0);
	for (int i = 0; i < 200000; i++) {
		now += 5000;
		(void)urn_dcqcn_advance(&d, &cfg, now);
		(void)urn_dcqcn_advance(&e, &cfg, now);
		if (i % 10 == 0 && d.rate + e.rate > LINE) {
			urn_dcqcn_cnp(&d, &cfg, now);
			urn_dcqcn_cnp(&e, &cfg, now);
		}
	}
	share = (double)d.rate / (double)(d.rate + e.rate);
	if (share < 0.45 || share > 0.55)
		fail_msg("one has %.2f of both", share);
	if (d.rate + e.rate < LINE * 6 / 10)
		fail_msg("both use %.2f of the line", (double)(d.rate + e.rate) / LINE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(halves_and_recovers, setup),
		cmocka_unit_test_setup(cuts_by_alpha, setup),
		cmocka_unit_test_setup(raises_the_target, setup),
		cmocka_unit_test_setup(stays_in_bounds, setup),
		cmocka_unit_test_setup(comes_to_fairness, setup),
	};

	return cmocka_run_group_tests_name("dcqcn", tests, NULL, NULL);
}
