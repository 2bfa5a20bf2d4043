/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of atomics from a dataplane's log (FO-15). */
#include "verbs/session/record.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { ENTRIES = 16, ADDR = 0x1000 };

static struct urn_abi_atomic entries[128];
static struct urn_sess_record r;
static enum urn_sv_fate fate;  /* answer of decide() */
static unsigned int decisions; /* calls of it */

static int
fresh(void **state)
{
	(void)state;
	memset(entries, 0, sizeof(entries));
	memset(&r, 0, sizeof(r));
	fate = URN_SV_NOBODY_KNOWS;
	decisions = 0;
	return 0;
}

static enum urn_sv_fate
decide(void *arg, const struct urn_abi_atomic *a)
{
	assert_ptr_equal(arg, &r);
	assert_int_equal(a->state, URN_ATOMIC_INTENT);
	decisions++;
	return fate;
}

/* Log atomic `number`, which adds 1 to number - 1, as a dataplane with n entries does. */
static struct urn_abi_atomic *
put(uint32_t n, uint64_t number, uint32_t how)
{
	struct urn_abi_atomic *a = &entries[number & (n - 1)];

	a->addr = ADDR;
	a->old = number - 1;
	a->new = number;
	a->number = number;
	atomic_store(&a->state, how);
	return a;
}

static bool
reads(uint32_t n)
{
	return urn_sv_record_read(entries, n, decide, &r, &r);
}

/* The record holds this; the results are those of put(). base: atomics before the queue pair */
static void
holds(uint64_t base, uint64_t count, bool unsure)
{
	assert_true(r.log);
	assert_int_equal(r.count, base + count);
	assert_int_equal(r.unsure, unsure);
	for (uint64_t n = count; n > 0 && count - n < URN_SESS_ATOMICS; n--)
		assert_int_equal(r.old[(base + n) % URN_SESS_ATOMICS], n - 1);
}

static void
counts(void **state)
{
	(void)state;
	assert_true(reads(ENTRIES));
	holds(0, 0, false);
	for (uint64_t n = 1; n <= 100; n++) {
		memset(&r, 0, sizeof(r));
		put(ENTRIES, n, URN_ATOMIC_DONE);
		assert_true(reads(ENTRIES));
		holds(0, n, false);
	}
	assert_int_equal(decisions, 0);
}

/* Atomics of queue pairs that were in use before count, and their results stay. */
static void
goes_on(void **state)
{
	(void)state;
	r.count = 5;
	r.old[5] = 77;
	put(ENTRIES, 1, URN_ATOMIC_DONE);
	put(ENTRIES, 2, URN_ATOMIC_DONE);
	assert_true(reads(ENTRIES));
	holds(5, 2, false);
	assert_int_equal(r.old[5], 77);
	memset(entries, 0, sizeof(entries));
	assert_true(reads(ENTRIES)); /* a queue pair that carried none out */
	assert_int_equal(r.count, 7);
}

/* More entries than REPORT has results. */
static void
large(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 300; n++)
		put(128, n, URN_ATOMIC_DONE);
	assert_true(reads(128));
	holds(0, 300, false);
}

/* A small log is a record only as long as it has all. */
static void
small(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 4; n++)
		put(4, n, URN_ATOMIC_DONE);
	assert_true(reads(4));
	holds(0, 4, false);
	put(4, 5, URN_ATOMIC_DONE);
	r.count = 0;
	assert_false(reads(4));
	assert_false(r.log);
	assert_int_equal(r.count, 0);
}

/* Atomic 3 was intended. */
static void
intends(void **state)
{
	(void)state;
	put(ENTRIES, 1, URN_ATOMIC_DONE);
	put(ENTRIES, 2, URN_ATOMIC_DONE);
	put(ENTRIES, 3, URN_ATOMIC_INTENT);
	fate = URN_SV_CARRIED_OUT;
	assert_true(reads(ENTRIES));
	holds(0, 3, false);
	r.count = 0;
	fate = URN_SV_NOT_CARRIED_OUT;
	assert_true(reads(ENTRIES));
	holds(0, 2, false);
	r.count = 0;
	fate = URN_SV_NOBODY_KNOWS;
	assert_true(reads(ENTRIES));
	holds(0, 2, true);
	assert_int_equal(decisions, 3);
}

/* An entry that was numbered, and not begun. */
static void
accepted(void **state)
{
	(void)state;
	put(ENTRIES, 1, URN_ATOMIC_DONE);
	put(ENTRIES, 2, URN_ATOMIC_NONE);
	assert_true(reads(ENTRIES));
	holds(0, 1, false);
	/* The entry of atomic 17 had that of atomic 1. */
	for (uint64_t n = 1; n <= 16; n++)
		put(ENTRIES, n, URN_ATOMIC_DONE);
	put(ENTRIES, 17, URN_ATOMIC_NONE);
	r.count = 0;
	assert_true(reads(ENTRIES));
	assert_int_equal(r.count, 16);
	assert_int_equal(r.old[0], 15);
	assert_int_equal(r.old[2], 1);
	assert_false(r.unsure);
	/* All entries are those of atomics that were not begun. */
	for (uint64_t n = 17; n <= 32; n++)
		put(ENTRIES, n, URN_ATOMIC_NONE);
	r.count = 0;
	assert_true(reads(ENTRIES));
	assert_int_equal(r.count, 16);
	assert_false(r.unsure);
}

/* Two atomics in flight, of which the second one was carried out and the first one was not. */
static void
gap(void **state)
{
	(void)state;
	fate = URN_SV_NOT_CARRIED_OUT;
	put(ENTRIES, 1, URN_ATOMIC_DONE);
	put(ENTRIES, 2, URN_ATOMIC_INTENT);
	put(ENTRIES, 3, URN_ATOMIC_DONE);
	assert_true(reads(ENTRIES));
	holds(0, 1, true);
	put(ENTRIES, 2, URN_ATOMIC_NONE);
	r.count = 0;
	assert_true(reads(ENTRIES));
	holds(0, 1, true);
}

/* Contents that no dataplane writes are no record. */
static void
damaged(void **state)
{
	struct urn_abi_atomic *a;

	(void)state;
	r.count = 9;
	put(ENTRIES, 1, URN_ATOMIC_DONE);
	a = put(ENTRIES, 2, URN_ATOMIC_DONE + 1);
	assert_false(reads(ENTRIES));
	atomic_store(&a->state, URN_ATOMIC_DONE);
	a->number = 3; /* in the wrong place */
	assert_false(reads(ENTRIES));
	a->number = 0; /* done, and never used */
	assert_false(reads(ENTRIES));
	assert_false(r.log);
	assert_false(r.unsure);
	assert_int_equal(r.count, 9);
	assert_false(urn_sv_record_read(NULL, 0, decide, &r, &r));
	a->number = 2;
	assert_true(reads(ENTRIES));
	/* Numbers that no queue pair reaches. */
	put(ENTRIES, UINT64_MAX, URN_ATOMIC_DONE);
	assert_false(reads(ENTRIES));
	put(ENTRIES, UINT64_MAX / 4, URN_ATOMIC_DONE);
	assert_true(reads(ENTRIES));
	assert_true(r.unsure);
}

/* Any bytes at all: no crash, and never more than the log can hold. */
static void
random_bytes(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		for (unsigned int k = 0; k < ENTRIES; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			put(ENTRIES, (x & 0xff) / ENTRIES * ENTRIES + k, x >> 8 & 3);
			if ((x >> 16 & 31) == 0)
				entries[k].number = x >> 24;
		}
		fate = (enum urn_sv_fate)(x % 3);
		memset(&r, 0, sizeof(r));
		if (reads(ENTRIES))
			assert_true(r.log);
		else
			assert_true(!r.log && r.count == 0);
	}
}

static void
fates(void **state)
{
	struct urn_abi_atomic a = {.old = 5, .new = 6};

	(void)state;
	assert_int_equal(urn_sv_fate_of(&a, 5, false), URN_SV_NOT_CARRIED_OUT);
	assert_int_equal(urn_sv_fate_of(&a, 6, false), URN_SV_CARRIED_OUT);
	assert_int_equal(urn_sv_fate_of(&a, 7, false), URN_SV_NOBODY_KNOWS);
	/* Another atomic made the same value. */
	assert_int_equal(urn_sv_fate_of(&a, 6, true), URN_SV_NOBODY_KNOWS);
	assert_int_equal(urn_sv_fate_of(&a, 5, true), URN_SV_NOT_CARRIED_OUT);
	/* A compare that failed, or an addition of nothing. */
	a.new = 5;
	assert_int_equal(urn_sv_fate_of(&a, 7, true), URN_SV_CARRIED_OUT);
}

static void
twins(void **state)
{
	struct urn_abi_atomic a = {.addr = ADDR, .old = 5, .new = 6};
	struct urn_abi_atomic *b = put(ENTRIES, 6, URN_ATOMIC_DONE);

	(void)state;
	assert_true(urn_sv_record_twin(entries, ENTRIES, &a));
	atomic_store(&b->state, URN_ATOMIC_INTENT);
	assert_true(urn_sv_record_twin(entries, ENTRIES, &a));
	atomic_store(&b->state, URN_ATOMIC_NONE);
	assert_false(urn_sv_record_twin(entries, ENTRIES, &a));
	atomic_store(&b->state, URN_ATOMIC_DONE);
	a.addr += 8;
	assert_false(urn_sv_record_twin(entries, ENTRIES, &a));
	a.addr = ADDR;
	b->old = b->new; /* wrote nothing */
	assert_false(urn_sv_record_twin(entries, ENTRIES, &a));
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup(t, fresh)
	const struct CMUnitTest tests[] = {
		T(counts), T(goes_on), T(large), T(small),	  T(intends), T(accepted),
		T(gap),	   T(damaged), T(fates), T(random_bytes), T(twins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
