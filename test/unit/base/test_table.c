/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounded table by keys of 16 bytes, whose entries are on lists. */
#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum { ENTRIES = 40, LISTS = 4, KEYS = 200 };

struct item {
	struct urn_table_entry t;
	char own[5]; /* entries are no power of two */
};

/* A reference: list of each key; URN_TABLE_FREE: not in the table */
static uint32_t on[KEYS];
static struct urn_table table;

/* A key, unaligned and different in its last bytes only. */
static const uint8_t *
key(uint32_t i)
{
	static uint8_t buf[URN_TABLE_KEY + 1];

	memset(buf, 0xfe, sizeof(buf));
	memcpy(buf + 1 + URN_TABLE_KEY - 4, &i, 4);
	return buf + 1;
}

static void
check(void)
{
	uint32_t count[LISTS] = {ENTRIES};

	for (uint32_t i = 0; i < KEYS; i++) {
		struct item *e = urn_table_find(&table, key(i));

		assert_int_equal(e != NULL, on[i] != URN_TABLE_FREE);
		if (!e)
			continue;
		assert_memory_equal(e->t.key, key(i), URN_TABLE_KEY);
		assert_int_equal(e->t.list, on[i]);
		count[on[i]]++;
		count[URN_TABLE_FREE]--;
	}
	for (uint32_t l = 0; l < LISTS; l++) {
		struct urn_table_entry *e;
		uint32_t n = 0;

		TAILQ_FOREACH(e, &table.list[l], link) {
			assert_int_equal(e->list, l);
			n++;
		}
		assert_int_equal(n, count[l]);
		assert_int_equal(table.count[l], count[l]);
	}
}

static int
setup(void **state)
{
	(void)state;
	memset(on, 0, sizeof(on));
	return urn_table_init(&table, ENTRIES, sizeof(struct item), LISTS, 99);
}

static int
teardown(void **state)
{
	(void)state;
	urn_table_fini(&table);
	return 0;
}

/* Put, move and take 10,000 times, as a random generator says. */
static void
as_the_reference(void **state)
{
	uint32_t r = 12345;

	(void)state;
	for (unsigned int step = 0; step < 10000; step++) {
		uint32_t i, list;
		struct item *e;

		r = r * 1664525u + 1013904223u;
		i = (r >> 8) % KEYS;
		list = 1 + (r >> 24) % (LISTS - 1);
		e = urn_table_find(&table, key(i));
		if (e && (r >> 20 & 1)) {
			urn_table_take(&table, &e->t);
			on[i] = URN_TABLE_FREE;
		} else if (e) {
			urn_table_move(&table, &e->t, list);
			on[i] = list;
		} else if ((e = urn_table_first(&table, URN_TABLE_FREE))) {
			urn_table_put(&table, &e->t, key(i), list);
			on[i] = list;
		}
		if (step % 50 == 0)
			check();
	}
	check();
}

/* Lists keep the order in which entries came; a move within a list leads to its end. */
static void
oldest_first(void **state)
{
	struct item *e;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		urn_table_put(&table, urn_table_first(&table, URN_TABLE_FREE), key(i), 1);
	e = urn_table_first(&table, 1);
	assert_ptr_equal(e, urn_table_find(&table, key(0)));
	urn_table_move(&table, &e->t, 1);
	assert_ptr_equal(urn_table_first(&table, 1), urn_table_find(&table, key(1)));
	e = urn_table_find(&table, key(1));
	urn_table_take(&table, &e->t);
	assert_ptr_equal(urn_table_first(&table, 1), urn_table_find(&table, key(2)));
	assert_null(urn_table_first(&table, 2));
}

/* All entries can be in use, and then none is free. The owner's bytes stay with the entry. */
static void
full(void **state)
{
	struct item *e;

	(void)state;
	for (uint32_t i = 0; i < ENTRIES; i++) {
		e = urn_table_first(&table, URN_TABLE_FREE);
		memset(e->own, (int)i, sizeof(e->own));
		urn_table_put(&table, &e->t, key(i), 3);
	}
	assert_null(urn_table_first(&table, URN_TABLE_FREE));
	for (uint32_t i = 0; i < ENTRIES; i++) {
		e = urn_table_at(&table, i);
		assert_ptr_equal(e, urn_table_find(&table, e->t.key));
		assert_int_equal(e->own[0], i);
		assert_int_equal(e->own[4], i);
	}
	e = urn_table_first(&table, 3);
	urn_table_take(&table, &e->t);
	assert_null(urn_table_find(&table, key(0)));
	assert_ptr_equal(urn_table_first(&table, URN_TABLE_FREE), e);
	urn_table_put(&table, &e->t, key(150), 3);
	assert_ptr_equal(urn_table_find(&table, key(150)), e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_the_reference, setup, teardown),
		cmocka_unit_test_setup_teardown(oldest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
