/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf says that repeats were only early when that is certain, and never else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnic-perf/perf.h"

#include <string.h>

#define X(id, name, text) name,
static const char *const impair_names[] = {URN_IMPAIR_COUNTERS(X)};
#undef X

/* Three packets sent again, all of which had arrived. */
static struct result
early(void)
{
	struct result res;

	memset(&res, 0, sizeof(res));
	res.op = PERF_WRITE_BW;
	res.have_counters = true;
	res.retransmits = 3;
	res.counters.v[URN_C_DUPLICATES] = 3;
	return res;
}

static void
test_all_had_arrived(void **state)
{
	struct result res = early();

	(void)state;
	assert_true(result_only_early(&res));
	/* The responses of a READ that was sent again are duplicates, too. */
	res.counters.v[URN_C_DUPLICATES] = 20;
	assert_true(result_only_early(&res));
	res.counters.v[URN_C_DUPLICATES] = 2;
	assert_false(result_only_early(&res));
	/* The last one was still on its way when all was acknowledged. */
	res.counters.v[URN_C_TX_PACKETS] = 100;
	res.counters.v[URN_C_RX_PACKETS] = 99;
	assert_true(result_only_early(&res));
	res.counters.v[URN_C_RX_PACKETS] = 101;
	assert_false(result_only_early(&res));
}

static void
test_flows(void **state)
{
	struct result res = early();

	(void)state;
	res.op = PERF_MSG_RATE;
	assert_false(result_only_early(&res));
	res.counters.v[URN_C_FLOW_DUPLICATES] = 3;
	assert_true(result_only_early(&res));
}

static void
test_nothing_to_say(void **state)
{
	struct result res = early();

	(void)state;
	res.retransmits = 0;
	assert_false(result_only_early(&res));
	res = early();
	res.have_counters = false;
	assert_false(result_only_early(&res));
}

/* Copies that the wire made are no sign of a repeat. */
static void
test_copies_of_the_wire(void **state)
{
	struct result res = early();

	(void)state;
	res.wire.dir[0].v[URN_IMPAIR_DUPLICATED] = 1;
	assert_false(result_only_early(&res));
	res.counters.v[URN_C_DUPLICATES] = 4;
	assert_true(result_only_early(&res));
}

/*
 * Each drop that anybody counts may have been an acknowledgement: then the repeat was needed. A
 * SEND that found no receive buffer has to be sent again.
 */
static void
test_any_drop(void **state)
{
	unsigned int drops = 0;

	(void)state;
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		bool drop = i == URN_C_RX_RNR_NAKS || i == URN_C_NO_MBUF || i == URN_C_NO_WORK ||
			    (i != URN_C_DROP_LINK_UNASKED &&
			     strncmp(urn_counter_name(i), "drop_", 5) == 0);
		struct result res = early();

		res.counters.v[i] += 1;
		assert_int_equal(result_only_early(&res), !drop);
		drops += drop;
	}
	assert_true(drops > 10);
	for (unsigned int i = 0; i < URN_IMPAIR_COUNTER_COUNT; i++) {
		bool drop = strncmp(impair_names[i], "drop_", 5) == 0;
		struct result res = early();

		res.wire.dir[1].v[i] = 1;
		if (drop)
			assert_false(result_only_early(&res));
	}
	for (unsigned int d = 0; d < 2; d++) {
		struct result res = early();

		res.wire.queue_drops[d] = 1;
		assert_false(result_only_early(&res));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_had_arrived),	   cmocka_unit_test(test_flows),
		cmocka_unit_test(test_nothing_to_say),	   cmocka_unit_test(test_any_drop),
		cmocka_unit_test(test_copies_of_the_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
