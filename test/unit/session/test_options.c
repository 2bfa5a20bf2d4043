/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the virtual device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "verbs/session/options.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void
probes(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint32_t ms;
	} v[] = {
		{NULL, true, URN_SV_PROBE_MS},
		{"", true, URN_SV_PROBE_MS},
		{"no", true, 0},
		{"10", true, 10},
		{"60000", true, 60000},
		{"0", false, 0},
		{"9", false, 0},
		{"60001", false, 0},
		{"-20", false, 0},
		{" 20", false, 0},
		{"20ms", false, 0},
		{"yes", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		uint32_t ms;

		assert_int_equal(urn_sv_probe(v[i].text, &ms), v[i].good);
		if (v[i].good)
			assert_int_equal(ms, v[i].ms);
	}
}

static void
answers(void **state)
{
	bool yes = true;

	(void)state;
	assert_true(urn_sv_yes(NULL, &yes));
	assert_false(yes);
	assert_true(urn_sv_yes("yes", &yes));
	assert_true(yes);
	assert_true(urn_sv_yes("", &yes));
	assert_false(yes);
	assert_true(urn_sv_yes("no", &yes));
	assert_false(yes);
	assert_false(urn_sv_yes("Yes", &yes));
	assert_false(urn_sv_yes("1", &yes));
}

/* The number of an instance; the process's own without one. */
static void
instances(void **state)
{
	uint64_t n;

	(void)state;
	assert_true(urn_sv_instance(NULL, &n));
	assert_int_equal(n, getpid());
	assert_true(urn_sv_instance("", &n));
	assert_int_equal(n, getpid());
	assert_true(urn_sv_instance("0", &n));
	assert_int_equal(n, 0);
	assert_true(urn_sv_instance("4294967295", &n));
	assert_int_equal(n, UINT32_MAX);
	assert_false(urn_sv_instance("4294967296", &n));
	assert_false(urn_sv_instance("99999999999999999999999", &n));
	assert_false(urn_sv_instance("-1", &n));
	assert_false(urn_sv_instance(" 1", &n));
	assert_false(urn_sv_instance("1x", &n));
}

/* Each variable goes to its own setting, and a wrong value is refused. */
static void
environment(void **state)
{
	static const char *const name[] = {"URNIC_SESSION_SILENCE", "URNIC_SESSION_PROBE",
					   "URNIC_SESSION_FAILBACK", "URNIC_SESSION_INSTANCE",
					   "URNIC_SESSION_LOG_LEVEL"};
	struct urn_sv_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		unsetenv(name[i]);
	assert_int_equal(urn_sv_options(&o), 0);
	assert_int_equal(o.silence, URN_SV_SILENCE_MS);
	assert_int_equal(o.probe, URN_SV_PROBE_MS);
	assert_false(o.fail_back);
	assert_int_equal(o.log, URN_LOG_DEBUG);
	setenv("URNIC_SESSION_LOG_LEVEL", "notice", 1);
	setenv("URNIC_SESSION_SILENCE", "300", 1);
	setenv("URNIC_SESSION_PROBE", "no", 1);
	setenv("URNIC_SESSION_FAILBACK", "yes", 1);
	setenv("URNIC_SESSION_INSTANCE", "5", 1);
	assert_int_equal(urn_sv_options(&o), 0);
	assert_int_equal(o.silence, 300);
	assert_int_equal(o.probe, 0);
	assert_true(o.fail_back);
	assert_int_equal(o.instance, 5);
	assert_int_equal(o.log, URN_LOG_NOTICE);
	setenv("URNIC_SESSION_FAILBACK", "no", 1);
	assert_int_equal(urn_sv_options(&o), 0);
	assert_false(o.fail_back);
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		setenv(name[i], "maybe", 1);
		assert_int_equal(urn_sv_options(&o), EINVAL);
		unsetenv(name[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes),
		cmocka_unit_test(answers),
		cmocka_unit_test(instances),
		cmocka_unit_test(environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
