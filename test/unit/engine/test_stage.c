/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles by stage: every cycle counts once, for one stage; turns without work are idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "stage.h"

static uint64_t
sum(const uint64_t *v)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < URN_STAGE_COUNT; i++)
		n += v[i];
	return n;
}

/* The cycles between two switches belong to the first stage. */
static void
a_stage_lasts_until_the_next(void **state)
{
	struct urn_stages st = {0};

	(void)state;
	urn_stages_switch(&st, URN_STAGE_PARSE, 1000);
	urn_stages_switch(&st, URN_STAGE_RESPOND, 1010);
	urn_stages_switch(&st, URN_STAGE_PARSE, 1110);
	urn_stages_switch(&st, URN_STAGE_PROGRAM, 1115);
	urn_stages_turn(&st, true);
	assert_int_equal(st.cycles[URN_STAGE_PARSE], 15);
	assert_int_equal(st.reads[URN_STAGE_PARSE], 2);
	assert_int_equal(st.cycles[URN_STAGE_RESPOND], 100);
	assert_int_equal(st.cycles[URN_STAGE_PROGRAM], 0);
	assert_int_equal(sum(st.cycles), 115);
	assert_int_equal(sum(st.turn_cycles), 0);
}

/* A turn that found nothing is idle as a whole, the one after it is not. */
static void
empty_turns_are_idle(void **state)
{
	struct urn_stages st = {0};

	(void)state;
	urn_stages_switch(&st, URN_STAGE_PROGRAM, 100);
	urn_stages_switch(&st, URN_STAGE_PORT_RX, 130);
	urn_stages_switch(&st, URN_STAGE_PROGRAM, 150);
	urn_stages_turn(&st, false);
	assert_int_equal(st.cycles[URN_STAGE_IDLE], 50);
	assert_int_equal(st.reads[URN_STAGE_IDLE], 2);
	urn_stages_switch(&st, URN_STAGE_PORT_RX, 157);
	urn_stages_turn(&st, true);
	assert_int_equal(st.cycles[URN_STAGE_PROGRAM], 7);
	assert_int_equal(sum(st.cycles), 57);
}

static void
reads_are_taken_off(void **state)
{
	struct urn_stages st = {0};

	(void)state;
	st.cycles[URN_STAGE_PARSE] = 100;
	st.reads[URN_STAGE_PARSE] = 4;
	st.cycles[URN_STAGE_EMIT] = 10;
	st.reads[URN_STAGE_EMIT] = 3;
	urn_stages_finish(&st, 20);
	assert_int_equal(st.cycles[URN_STAGE_PARSE], 20);
	assert_int_equal(st.cycles[URN_STAGE_EMIT], 0);
}

/* The macros, on this thread: a stage inside another one returns to it. */
static void
macros_switch_this_thread(void **state)
{
	struct urn_stages st;

	(void)state;
	URN_STAGE(RESPOND);
	assert_int_equal(urn_stages_self.now, URN_STAGE_RESPOND);
	URN_STAGE_IN(MEMORY);
	URN_STAGE(EMIT);
	assert_int_equal(urn_stages_self.now, URN_STAGE_EMIT);
	URN_STAGE_OUT();
	assert_int_equal(urn_stages_self.now, URN_STAGE_RESPOND);
	URN_STAGE_TURN(true);
	assert_true(urn_stages_get(&st));
	assert_int_equal(st.reads[URN_STAGE_MEMORY], 1);
	assert_int_equal(st.reads[URN_STAGE_EMIT], 1);
	assert_string_equal(urn_stage_name(URN_STAGE_MEMORY), "memory");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stage_lasts_until_the_next),
		cmocka_unit_test(empty_turns_are_idle),
		cmocka_unit_test(reads_are_taken_off),
		cmocka_unit_test(macros_switch_this_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
