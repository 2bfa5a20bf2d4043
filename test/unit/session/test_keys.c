/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of keys (FO-2). */
#include "verbs/session/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static struct urn_sv_keys t;

static int
fresh(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	return 0;
}

/* Key number n: all have the same place in the table when `same`. */
static uint32_t
key(uint32_t n, bool same)
{
	return same ? (n * URN_SV_KEYS) << 8 | 5 : n << 8 | 9;
}

/* Put a region in whose keys are its name and n. */
static bool
put(uint32_t name, uint32_t n)
{
	const uint32_t key[URN_SV_ADAPTERS] = {name, n};

	return urn_sv_keys_put(&t, name, key);
}

static void
finds(void **state)
{
	uint32_t second = 7;

	(void)state;
	assert_false(urn_sv_keys_find(&t, 0x100, 1, &second));
	assert_true(put(0x1ff, 0x2ee));
	assert_true(urn_sv_keys_find(&t, 0x1ff, 0, &second));
	assert_int_equal(second, 0x1ff);
	assert_true(urn_sv_keys_find(&t, 0x1ff, 1, &second));
	assert_int_equal(second, 0x2ee);
	/* The consumer's byte is part of the key. */
	assert_false(urn_sv_keys_find(&t, 0x1fe, 1, &second));
	assert_false(urn_sv_keys_find(&t, 0, 1, &second));
	assert_false(urn_sv_keys_find(&t, UINT32_MAX, 1, &second));
	assert_int_equal(second, 0x2ee);
}

/* Keys with the same place are found behind each other, also behind one that was taken out. */
static void
collides(void **state)
{
	uint32_t second;

	(void)state;
	for (uint32_t n = 1; n <= 4; n++)
		assert_true(put(key(n, true), n));
	urn_sv_keys_drop(&t, key(2, true));
	urn_sv_keys_drop(&t, key(2, true));
	assert_false(urn_sv_keys_find(&t, key(2, true), 1, &second));
	for (uint32_t n = 3; n <= 4; n++) {
		assert_true(urn_sv_keys_find(&t, key(n, true), 1, &second));
		assert_int_equal(second, n);
	}
	assert_false(urn_sv_keys_find(&t, UINT32_MAX, 1, &second));
}

/* A full table refuses one more, and a row that is free again is used again. */
static void
full(void **state)
{
	uint32_t second;

	(void)state;
	for (uint32_t n = 1; n <= URN_SV_KEYS; n++)
		assert_true(put(key(n, false), n));
	assert_false(put(key(URN_SV_KEYS + 1, false), 1));
	assert_false(urn_sv_keys_find(&t, key(URN_SV_KEYS + 1, false), 1, &second));
	urn_sv_keys_drop(&t, key(3, false));
	assert_true(put(key(URN_SV_KEYS + 1, false), 77));
	assert_true(urn_sv_keys_find(&t, key(URN_SV_KEYS + 1, false), 1, &second));
	assert_int_equal(second, 77);
}

/* A table of a peer that is not trusted: a search ends, whatever is in it. */
static void
hostile(void **state)
{
	uint32_t second;

	(void)state;
	memset(&t, 0xff, sizeof(t));
	assert_false(urn_sv_keys_find(&t, 0x100, 1, &second));
	for (uint32_t i = 0; i < URN_SV_KEYS; i++)
		t.row[i] = (struct urn_sv_key){0x200, {0x100, 0x300}};
	assert_false(urn_sv_keys_find(&t, 0x100, 1, &second));
	assert_true(urn_sv_keys_find(&t, 0x200, 1, &second));
}

/* An adapter that came back has other keys; the other adapter's stay. */
static void
changes(void **state)
{
	uint32_t key;

	(void)state;
	assert_true(put(0x1ff, 0x2ee));
	urn_sv_keys_set(&t, 0x1ff, 0, 0x3dd);
	urn_sv_keys_set(&t, 0x100, 0, 0x4cc); /* no such name */
	assert_true(urn_sv_keys_find(&t, 0x1ff, 0, &key));
	assert_int_equal(key, 0x3dd);
	assert_true(urn_sv_keys_find(&t, 0x1ff, 1, &key));
	assert_int_equal(key, 0x2ee);
	assert_false(urn_sv_keys_find(&t, 0x100, 0, &key));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(finds, fresh),	cmocka_unit_test_setup(collides, fresh),
		cmocka_unit_test_setup(full, fresh),	cmocka_unit_test_setup(hostile, fresh),
		cmocka_unit_test_setup(changes, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
