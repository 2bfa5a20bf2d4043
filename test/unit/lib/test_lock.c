/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a queue: one thread inside at a time, also when more threads than cores want to enter. */
#include "test.h"

#include "verbs/adapter/lock.h"

#define THREADS 6
#define EACH 20000

static struct {
	struct urn_lock lock;
	volatile uint64_t count; /* not atomic: two threads inside lose counts */
} shared;

static void *
counter(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < EACH; i++) {
		urn_lock_take(&shared.lock);
		shared.count = shared.count + 1;
		urn_lock_give(&shared.lock);
	}
	return NULL;
}

static void
one_at_a_time(void **state)
{
	pthread_t t[THREADS];
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, counter, NULL), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(shared.count, (uint64_t)THREADS * EACH);
	assert_int_equal(atomic_load(&shared.lock.held), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
