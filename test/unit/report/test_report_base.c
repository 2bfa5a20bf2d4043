/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts that were cleared, with a stand-in for the dataplane's counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/report_priv.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

enum { BEFORE = 1000000, MORE = 7 };

static struct urn_dp dp = {.adapters_n = 1};
static const struct urn_report_source src = {.dp = &dp};
static struct urn_report_base *base;
static uint64_t count; /* value of each counter */
static bool meddle;    /* the next read is in the middle of a `clear` */
static sem_t cleared;
static pthread_t clearer;

static void *
clear(void *arg)
{
	(void)arg;
	urn_report_base_set(base, &src);
	sem_post(&cleared);
	return NULL;
}

void __wrap_urn_dp_counters(struct urn_dp *d, unsigned int adapter, struct urn_counters *out);

void
__wrap_urn_dp_counters(struct urn_dp *d, unsigned int adapter, struct urn_counters *out)
{
	struct timespec until;

	assert_ptr_equal(d, &dp);
	assert_int_equal(adapter, 0);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		out->v[i] = count;
	if (!meddle)
		return;
	/* The clear ends before this read does, unless something keeps it out. */
	meddle = false;
	count += MORE;
	assert_int_equal(pthread_create(&clearer, NULL, clear, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	(void)sem_timedwait(&cleared, &until);
}

/* A read that a `clear` comes into shows no counts that grew for long before as new ones. */
static void
clear_during_show(void **state)
{
	struct urn_counters c;
	struct urn_err err;

	(void)state;
	sem_init(&cleared, 0, 0);
	base = urn_report_base_create(&src, &err);
	assert_non_null(base);
	count = BEFORE;
	urn_report_base_set(base, &src);
	count += MORE;
	meddle = true;
	report_since_adapter(base, &src, 0, &c);
	assert_int_equal(c.v[0], MORE);
	assert_int_equal(pthread_join(clearer, NULL), 0);
	report_since_adapter(base, &src, 0, &c);
	assert_int_equal(c.v[0], 0);
	report_since_adapter(NULL, &src, 0, &c);
	assert_int_equal(c.v[0], BEFORE + 2 * MORE);
	urn_report_base_destroy(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(clear_during_show)};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
