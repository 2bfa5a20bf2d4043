/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash over entries of an array. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum { ENTRIES = 100 };

struct item {
	char before[3]; /* the link is not first, and entries are no multiple of a link */
	uint32_t key;
	uint32_t next;
	uint32_t other;
	bool in;
};

static struct item item[ENTRIES];

static uint32_t *
bucket(const struct urn_hash *h, uint32_t key)
{
	return urn_hash_bucket(h, &key, 1);
}

static uint32_t
find(const struct urn_hash *h, uint32_t key)
{
	uint32_t i = *bucket(h, key);

	while (i != URN_HASH_NIL && item[i].key != key)
		i = item[i].next;
	return i;
}

static void
take(struct urn_hash *h, uint32_t i)
{
	urn_hash_take(bucket(h, item[i].key), i, &item->next, sizeof(*item));
	item[i].in = false;
}

/* Exactly the entries that are in are found. */
static void
check(const struct urn_hash *h)
{
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(find(h, item[i].key), item[i].in ? i : URN_HASH_NIL);
}

static void
fill(struct urn_hash *h, uint32_t entries, uint32_t seed)
{
	assert_int_equal(urn_hash_init(h, entries, seed), 0);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		item[i] = (struct item){.key = 1000 + i};
		check(h);
		urn_hash_put(bucket(h, item[i].key), i, &item[i].next);
		item[i].in = true;
	}
	check(h);
}

/* Entries leave in another order than they came, and come again: first, last and middle ones of long chains. */
static void
finds_what_is_in(void **state)
{
	const uint32_t buckets[] = {1, ENTRIES, 4 * ENTRIES};

	(void)state;
	for (unsigned int b = 0; b < 3; b++) {
		struct urn_hash h;

		fill(&h, buckets[b], 7 + b);
		for (uint32_t i = 0; i < ENTRIES; i++) {
			take(&h, i * 37 % ENTRIES);
			check(&h);
		}
		for (uint32_t n = 0; n <= h.mask; n++)
			assert_int_equal(h.bucket[n], URN_HASH_NIL);
		urn_hash_fini(&h);
	}
}

static void
number_of_buckets(void **state)
{
	static const struct {
		uint32_t entries, buckets;
	} of[] = {{0, 16}, {1, 16}, {16, 16}, {17, 32}, {4096, 4096}, {4097, 8192}};
	struct urn_hash h;

	(void)state;
	for (unsigned int i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		assert_int_equal(urn_hash_init(&h, of[i].entries, 1), 0);
		assert_int_equal(h.mask + 1, of[i].buckets);
		urn_hash_fini(&h);
		assert_null(h.bucket);
	}
}

/* Keys that share a bucket under one seed do not under another: nobody can choose them. */
static void
seed_counts(void **state)
{
	struct urn_hash a, b;
	uint32_t moved = 0;

	(void)state;
	assert_int_equal(urn_hash_init(&a, ENTRIES, 1), 0);
	assert_int_equal(urn_hash_init(&b, ENTRIES, 2), 0);
	for (uint32_t key = 0; key < 1000; key++)
		moved += bucket(&a, key) - a.bucket != bucket(&b, key) - b.bucket;
	assert_true(moved > 900);
	urn_hash_fini(&a);
	urn_hash_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_in),
		cmocka_unit_test(number_of_buckets),
		cmocka_unit_test(seed_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
