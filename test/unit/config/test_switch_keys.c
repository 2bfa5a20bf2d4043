/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema once: the limits of [switch], without a file. */
#include "config_test.h"

#include "config/switch_keys.h"

static struct urn_err err;

static void
keys(void **state)
{
	struct urn_config_switch sw;

	(void)state;
	memset(&sw, 0xff, sizeof(sw));
	urn_config_switch_init(&sw);
	assert_true(sw.sw.fdb.age_ns == 300000000000);
	assert_int_equal(sw.sw.fdb.max, 4096);
	assert_false(sw.sw.no_learning);
	assert_null(sw.plug);
	assert_int_equal(urn_config_switch_take(&sw, "learning", "no", &err), 0);
	assert_true(sw.sw.no_learning);
	assert_int_equal(urn_config_switch_take(&sw, "age", "10", &err), 0);
	assert_true(sw.sw.fdb.age_ns == 10000000000);
	assert_int_equal(urn_config_switch_take(&sw, "age", "0", &err), -1);
	assert_int_equal(strncmp(err.text, "give a time from 1ms to ", 24), 0);
	assert_true(sw.sw.fdb.age_ns == 10000000000);
	/* Keys without a field need plugs, or are none. */
	assert_int_equal(urn_config_switch_take(&sw, "ports", "a", &err), -1);
	assert_int_equal(urn_config_switch_take(&sw, "colour", "red", &err), -1);
}

static void
directions(void **state)
{
	bool way[2];

	(void)state;
	assert_int_equal(urn_config_direction("a", 1, way), 1);
	assert_true(way[URN_SWITCH_IN] && way[URN_SWITCH_OUT]);
	assert_int_equal(urn_config_direction("a.in", 4, way), 1);
	assert_true(way[URN_SWITCH_IN] && !way[URN_SWITCH_OUT]);
	assert_int_equal(urn_config_direction("a.b.out", 7, way), 3);
	assert_true(!way[URN_SWITCH_IN] && way[URN_SWITCH_OUT]);
	assert_int_equal(urn_config_direction(".in", 3, way), 0);
}

/* A chain of all switches has no loop, and any further link makes one. */
static void
trees(void **state)
{
	struct urn_config_tree t;

	(void)state;
	urn_config_tree_init(&t);
	for (unsigned int i = 1; i < URN_CONFIG_MAX_SWITCHES; i++)
		assert_true(urn_config_tree_join(&t, i, i - 1));
	assert_false(urn_config_tree_join(&t, 0, URN_CONFIG_MAX_SWITCHES - 1));
	assert_int_equal(t.root[0], t.root[URN_CONFIG_MAX_SWITCHES - 1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(directions),
		cmocka_unit_test(trees),
	};

	return cmocka_run_group_tests_name("config_switch_keys", tests, NULL, NULL);
}
