/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "switch/impair_words.h"

static struct urn_impair_config c;
static struct urn_err err;

static int
take(const char *list)
{
	memset(&c, 0, sizeof(c));
	err.text[0] = '\0';
	return urn_impair_take_list(&c, list, &err);
}

static void
lists_are_taken(void **state)
{
	(void)state;
	assert_int_equal(take("drop=1%,dup=0.5,corrupt=100,reorder=20%,hold=3"), 0);
	assert_true(c.drop == 0.01 && c.dup == 0.005 && c.corrupt == 1 && c.reorder == 0.2);
	assert_int_equal(c.reorder_min, 3);
	assert_int_equal(c.reorder_max, 3);
	assert_int_equal(
		take("hold=2-32,hold-time=5ms,delay=200us,jitter=1.5us,seed=18446744073709551615"),
		0);
	assert_int_equal(c.reorder_min, 2);
	assert_int_equal(c.reorder_max, 32);
	assert_int_equal(c.reorder_ns, 5000000);
	assert_int_equal(c.delay_ns, 200000);
	assert_int_equal(c.jitter_ns, 1500);
	assert_true(c.seed == UINT64_MAX);
	assert_int_equal(take("rate=2.5G,queue=10,flap=900ms/1,blackhole"), 0);
	assert_true(c.rate_bps == 2500000000 && c.blackhole);
	assert_int_equal(c.queue, 10);
	assert_int_equal(c.flap_up_ns, 900000000);
	assert_int_equal(c.flap_down_ns, 1000000000);
	assert_int_equal(take("rate=1k"), 0);
	assert_int_equal(c.rate_bps, 1000);
	assert_int_equal(take("rate=5000000"), 0);
	assert_int_equal(c.rate_bps, 5000000);
	/* In addition to the present settings. */
	assert_int_equal(urn_impair_take_list(&c, "drop=3", &err), 0);
	assert_true(c.drop == 0.03 && c.rate_bps == 5000000);
}

/* Each text is refused, with its own word in the sentence. */
static const char *const bad[] = {
	"drop",
	"drop=",
	"drop=x",
	"drop=-1",
	"drop=101",
	"drop=1%%",
	"drop=0x1",
	"drop=inf",
	"drop=nan",
	"drop= 1",
	"drop=1.2.3",
	"drop=.",
	"dup=2x",
	"corrupt=1e1",
	"reorder=%",
	"hold=0",
	"hold=33",
	"hold=8-1",
	"hold=1-",
	"hold=-3",
	"hold=1-33",
	"hold",
	"hold=12345678901-2",
	"delay=60.1",
	"delay",
	"delay=fast",
	"jitter=-1us",
	"hold-time=1h",
	"rate=999",
	"rate=1001G",
	"rate=x",
	"rate=1X",
	"rate=1GG",
	"rate=0x10G",
	"rate=0x10000",
	"rate=1e6",
	"rate=1.2.3M",
	"rate",
	"rate=-5M",
	"queue=0",
	"queue=1048577",
	"queue",
	"flap=1",
	"flap=1/0",
	"flap=0/1",
	"flap=/",
	"flap",
	"flap=1/x",
	"flap=9223372036/9223372036",
	"seed",
	"seed=x",
	"seed=-1",
	"blackhole=1",
	"sink=5",
	"",
};

static void
nonsense_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		char key[16] = "";

		if (take(bad[i]) != -1)
			fail_msg("'%s' was taken", bad[i]);
		memcpy(key, bad[i], strcspn(bad[i], "="));
		if (!strstr(err.text, key) || strlen(err.text) < 15)
			fail_msg("'%s': %s", bad[i], err.text);
	}
	assert_int_equal(take("drop=1,"), -1);
	assert_int_equal(take(",drop=1"), -1);
	assert_int_equal(take("drop=1,,dup=1"), -1);
	assert_int_equal(
		take("drop=0000000000000000000000000000000000000000000000000000000000000001"), -1);
}

/* The impairments accept every key that is read; and --help lists all of them. */
static void
keys_are_listed(void **state)
{
	static const char *const keys[] = {"drop",	"dup",	     "corrupt", "reorder", "hold",
					   "hold-time", "delay",     "jitter",	"rate",	   "queue",
					   "flap",	"blackhole", "seed"};
	char line[32];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(keys); i++) {
		snprintf(line, sizeof(line), "  %s", keys[i]);
		assert_non_null(strstr(urn_impair_keys, line));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_taken),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(keys_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
