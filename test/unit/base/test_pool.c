/* SPDX-License-Identifier: BSD-3-Clause */
/* base/pool.h: so many entries and no more, and none is touched before it is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pool.h"

#include <string.h>

enum { N = 5, FIRST = 1, UNTOUCHED = 77 };

struct thing {
	uint64_t own;
	uint32_t next; /* the pool's */
};

static struct thing thing[FIRST + N];
static struct urn_pool pool;

static int
start(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < FIRST + N; i++)
		thing[i] = (struct thing){.own = i, .next = UNTOUCHED};
	urn_pool_init(&pool, FIRST, FIRST + N);
	return 0;
}

static uint32_t
get(void)
{
	return urn_pool_get(&pool, &thing->next, sizeof(thing[0]));
}

static __attribute__((noinline)) void
put(uint32_t i)
{
	assert_in_range(i, FIRST, FIRST + N - 1);
	urn_pool_put(&pool, i, &thing->next, sizeof(thing[0]));
}

static void
so_many_and_no_more(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(get(), FIRST + i);
	assert_int_equal(get(), URN_HASH_NIL);
	put(3);
	assert_int_equal(get(), 3);
	assert_int_equal(get(), URN_HASH_NIL);
}

static void
last_put_first(void **state)
{
	(void)state;
	assert_int_equal(get(), 1);
	assert_int_equal(get(), 2);
	assert_int_equal(get(), 3);
	put(1);
	put(3);
	put(2);
	assert_int_equal(get(), 2);
	assert_int_equal(get(), 3);
	assert_int_equal(get(), 1);
	assert_int_equal(get(), 4);
	for (unsigned int i = 0; i < FIRST + N; i++)
		assert_int_equal(thing[i].own, i);
}

/* Memory that was never taken costs nothing, so nothing may be written there. */
static void
untouched(void **state)
{
	(void)state;
	put(get());
	put(get());
	assert_int_equal(pool.made, FIRST + 1);
	assert_int_equal(thing[0].next, UNTOUCHED);
	for (unsigned int i = FIRST + 1; i < FIRST + N; i++)
		assert_int_equal(thing[i].next, UNTOUCHED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(so_many_and_no_more, start),
		cmocka_unit_test_setup(last_put_first, start),
		cmocka_unit_test_setup(untouched, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
