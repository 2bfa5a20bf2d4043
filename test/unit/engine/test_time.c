/* SPDX-License-Identifier: BSD-3-Clause */
/* The time for threads other than the engine's: the engine's time, whatever their own core's TSC says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "engine/engine.h"

#include <string.h>

#include <rte_cycles.h>

#define US 1000ull
#define HOUR (3600ull * 1000000000)

/* Two cores: the TSC of the caller's, and of the engine's. */
static struct {
	uint64_t clock;  /* TSC of the core that runs now */
	uint64_t engine; /* TSC of the engine's core; 0: all cores agree */
	unsigned int asked;
} core;

void __real_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
void __wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);

/* Run as in the engine's thread, on its core. */
void
__wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg)
{
	uint64_t mine = core.clock;

	core.asked++;
	if (core.engine)
		core.clock = core.engine;
	__real_urn_engine_call(e, fn, arg);
	core.clock = mine;
}

static struct urn_engine *
engine(const uint64_t *clock)
{
	struct urn_engine_config cfg = {.clock = clock};
	struct urn_engine *e;

	test_eal_pool();
	memset(&core, 0, sizeof(core));
	e = urn_engine_create(0, &cfg, "time");
	assert_non_null(e);
	return e;
}

/* From a core whose TSC is behind the engine's or ahead of it: the engine's time counts. */
static void
other_cores(void **state)
{
	struct urn_engine *e = engine(&core.clock);

	(void)state;
	core.clock = 5 * HOUR;
	/* An engine that never turned is asked, and the caller answers in its place. */
	assert_true(urn_engine_now(e) == 5 * HOUR);
	assert_int_equal(core.asked, 1);
	urn_engine_poll(e);
	/* The engine turns, and all cores nearly agree: the engine is not asked. */
	core.asked = 0;
	core.clock += 3 * US;
	core.engine = 5 * HOUR + 4 * US;
	assert_true(urn_engine_now(e) == 5 * HOUR + 3 * US);
	core.clock = 5 * HOUR;
	assert_true(urn_engine_now(e) == 5 * HOUR);
	assert_int_equal(core.asked, 0);
	/* Behind, by little or much; ahead. */
	core.clock = 5 * HOUR - US;
	assert_true(urn_engine_now(e) == core.engine);
	core.clock = 2 * HOUR;
	assert_true(urn_engine_now(e) == core.engine);
	core.clock = 9 * HOUR;
	assert_true(urn_engine_now(e) == core.engine);
	assert_int_equal(core.asked, 3);
	urn_engine_destroy(e);
}

/* The TSC goes back by an hour before the engine turns again: a timer started now runs out in time. */
static void
before_a_turn(void **state)
{
	struct urn_engine *e = engine(NULL);
	struct urn_engine_usage usage;
	uint64_t before, now;

	(void)state;
	for (int i = 0; i < 3; i++)
		urn_engine_poll(e);
	before = e->turned;
	assert_true(before > 0);
	e->tsc += 3600 * rte_get_tsc_hz();
	e->tsc_base += 3600 * rte_get_tsc_hz();
	urn_engine_usage(e, &usage);
	assert_true(usage.ns >= before && usage.ns - before < HOUR / 2);
	now = urn_engine_now(e);
	assert_true(now >= before && now - before < HOUR / 2);
	urn_engine_poll(e);
	assert_true(e->turned >= now && e->turned - now < HOUR / 2);
	urn_engine_destroy(e);
}

/* In the middle of a turn time has gone on, and does not go back (DB-7: ages of flows). */
static void
in_a_turn(void **state)
{
	struct urn_engine *e = engine(&core.clock);

	(void)state;
	core.clock = 5 * HOUR;
	urn_engine_poll(e);
	core.clock += 100000 * US;
	assert_true(urn_engine_clock(e) == 5 * HOUR + 100000 * US);
	core.clock = 4 * HOUR;
	assert_true(urn_engine_clock(e) == 5 * HOUR);
	assert_int_equal(core.asked, 0);
	urn_engine_destroy(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_cores),
		cmocka_unit_test(before_a_turn),
		cmocka_unit_test(in_a_turn),
	};

	return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
