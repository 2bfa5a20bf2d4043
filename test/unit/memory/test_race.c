/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads at one table (architecture rule 2: checks on any engine, binds on the
 * QP's, control serialised). No result here depends on speed: the assertions hold in any
 * order of events. Meant for the thread sanitizer.
 */
#include "mem_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 20000, QPN = 7, QPN2 = 8 };

static uint8_t even[4096], odd[4096]; /* memory of even and odd keys */

struct race {
	struct urn_mem *mem;
	uint32_t pd;
	uint32_t mr;	 /* region of all of even[] */
	uint32_t mr_odd; /* region of all of odd[] */
	uint32_t mw;	 /* first key of the window; later ones differ in the low byte */
	int type;	 /* type of the window */
	atomic_uint stop;
	atomic_uint index;	  /* index that the checker tests */
	atomic_uint now;	  /* key that the close checker tests */
	atomic_ulong ok;	  /* checks with the answer OK */
	atomic_ulong wins;	  /* binds that succeeded */
	atomic_ulong wrong;	  /* answers that no order of events explains */
};

/*
 * Check a key: an even key may only reach even[], for reading, an odd key only odd[], for
 * writing; or the check fails.
 */
static void
check_key(struct race *r, uint32_t key)
{
	uint64_t mine = (uintptr_t)(key & 1 ? odd : even) + 64;
	uint64_t other = (uintptr_t)(key & 1 ? even : odd) + 64;
	uint32_t access = key & 1 ? URN_ACCESS_REMOTE_WRITE : URN_ACCESS_REMOTE_READ;
	uint32_t denied = key & 1 ? URN_ACCESS_REMOTE_READ : URN_ACCESS_REMOTE_WRITE;
	struct urn_region *region;
	enum urn_mem_error err;

	err = urn_mem_check(r->mem, key, r->pd, QPN, mine, 64, access, 1, &region);
	if (err == URN_MEM_OK)
		r->ok++;
	else if (err != URN_MEM_BAD_KEY)
		r->wrong++;
	err = urn_mem_check(r->mem, key, r->pd, QPN, other, 64, access, 1, &region);
	if (err != URN_MEM_RANGE && err != URN_MEM_BAD_KEY)
		r->wrong++;
	err = urn_mem_check(r->mem, key, r->pd, QPN, mine, 64, denied, 1, &region);
	if (err != URN_MEM_ACCESS && err != URN_MEM_BAD_KEY)
		r->wrong++;
}

static void
check_index(struct race *r, uint32_t index)
{
	for (uint32_t low = 0; low < 256; low++)
		check_key(r, index << 8 | low);
}

/* Check the key that control is making or taking away now: torn reads show here first. */
static void *
close_checker(void *arg)
{
	struct race *r = arg;

	while (!r->stop)
		check_key(r, r->now);
	return NULL;
}

static void *
checker(void *arg)
{
	struct race *r = arg;

	do {
		check_index(r, r->index);
		sched_yield();
	} while (!r->stop);
	return NULL;
}

static void
race_setup(struct race *r, uint32_t max_keys)
{
	uint32_t access = URN_ACCESS_LOCAL_WRITE | URN_ACCESS_MW_BIND;

	memset(r, 0, sizeof(*r));
	r->mem = urn_mem_create(max_keys, 2);
	r->pd = test_pd(r->mem);
	r->mr = test_reg(r->mem, r->pd, even, sizeof(even), access);
	r->mr_odd = test_reg(r->mem, r->pd, odd, sizeof(odd), access);
}

/* Bind the window under `key`, to the region of the key's parity. */
static enum urn_mem_error
race_bind(struct race *r, uint32_t now, uint32_t key, uint32_t qpn)
{
	uint8_t *bytes = key & 1 ? odd : even;

	return urn_mem_bind(r->mem, r->type, now, key, key & 1 ? r->mr_odd : r->mr,
			    (uintptr_t)bytes + 64, 64,
			    key & 1 ? URN_ACCESS_REMOTE_WRITE : URN_ACCESS_REMOTE_READ, r->pd, qpn, NULL);
}

/* Bind and invalidate the window until `rounds` are done and the checker saw it bound. */
static void
bind_rounds(struct race *r, unsigned int rounds)
{
	for (unsigned int i = 0; (i < rounds || !r->ok) && !r->wrong; i++) {
		uint32_t key = test_next_key(r->mw, 1);

		r->now = key;
		assert_int_equal(race_bind(r, r->mw, key, QPN), URN_MEM_OK);
		if (i % 64 == 0)
			sched_yield();
		if (r->type == 2)
			assert_int_equal(urn_mem_invalidate(r->mem, key, r->pd, QPN, NULL), 0);
		r->mw = key;
	}
}

/* A window that one engine binds and invalidates while another checks it */
static void
test_bind_and_check(void **state)
{
	struct race r;
	pthread_t t;

	(void)state;
	for (int i = 0; i < 4; i++) {
		race_setup(&r, 3);
		r.type = 1 + i % 2;
		r.mw = test_mw(r.mem, r.pd, r.type);
		r.index = r.mw >> 8;
		r.now = r.mw;
		assert_int_equal(pthread_create(&t, NULL, i < 2 ? checker : close_checker, &r), 0);
		bind_rounds(&r, i < 2 ? ROUNDS : 5 * ROUNDS);
		r.stop = 1;
		pthread_join(t, NULL);
		assert_int_equal(r.wrong, 0);
		assert_true(r.ok > 0);
		assert_int_equal(test_dealloc_mw(r.mem, r.mw), 0);
		test_dereg(r.mem, r.mr);
		test_dereg(r.mem, r.mr_odd);
		urn_mem_destroy(r.mem);
	}
}

/* An index that control gives to one region after the other while an engine checks it */
static void
test_register_and_check(void **state)
{
	struct race r;
	pthread_t t;
	uint32_t key;

	(void)state;
	race_setup(&r, 3);
	r.index = 3;
	assert_int_equal(pthread_create(&t, NULL, checker, &r), 0);
	for (int i = 0; (i < ROUNDS || !r.ok) && !r.wrong; i++) {
		/* The next key's parity is known: one more than the last one's. */
		uint32_t probe = test_mw(r.mem, r.pd, 1), next;

		assert_int_equal(test_dealloc_mw(r.mem, probe), 0);
		next = test_next_key(probe, 1);
		key = test_reg(r.mem, r.pd, next & 1 ? odd : even, 4096,
			       next & 1 ? URN_ACCESS_REMOTE_WRITE | URN_ACCESS_LOCAL_WRITE
					: URN_ACCESS_REMOTE_READ);
		assert_int_equal(key, next);
		if (i % 64 == 0)
			sched_yield();
		test_dereg(r.mem, key);
		if (i & 1) /* so that both parities come */
			assert_int_equal(test_dealloc_mw(r.mem, test_mw(r.mem, r.pd, 2)), 0);
	}
	r.stop = 1;
	pthread_join(t, NULL);
	assert_int_equal(r.wrong, 0);
	urn_mem_destroy(r.mem);
}

/* Bind from the window's present key, and count the successes. */
static void *
rival(void *arg)
{
	struct race *r = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (r->type == 2) {
			/* The only thread that binds to QPN2; either thread may find the window bound. */
			uint32_t key = test_next_key(r->mw, i);

			if (!race_bind(r, r->mw, key, QPN2)) {
				r->wins++;
				if (urn_mem_invalidate(r->mem, key, r->pd, QPN2, NULL))
					r->wrong++;
			}
			continue;
		}
		for (uint32_t low = 0; low < 256; low += 5) {
			uint32_t now = test_next_key(r->mw, low);

			if (!race_bind(r, now, test_next_key(now, 1), QPN2))
				r->wins++;
		}
		if (i >= ROUNDS / 50)
			break;
	}
	return NULL;
}

/* Two engines at one window: each success is whole, and no count is lost */
static void
test_two_binders(void **state)
{
	struct race r;
	struct urn_region *region;
	pthread_t t;

	(void)state;
	for (int type = 1; type <= 2; type++) {
		race_setup(&r, 3);
		r.type = type;
		r.mw = test_mw(r.mem, r.pd, type);
		assert_int_equal(pthread_create(&t, NULL, rival, &r), 0);
		for (uint32_t i = 0; i < ROUNDS; i++) {
			uint32_t key = test_next_key(r.mw, i);

			if (!race_bind(&r, key, test_next_key(key, 1), QPN)) {
				r.wins++;
				if (type == 2 &&
				    urn_mem_invalidate(r.mem, test_next_key(key, 1), r.pd, QPN, NULL))
					r.wrong++;
			}
			check_index(&r, r.mw >> 8);
		}
		pthread_join(t, NULL);
		assert_int_equal(r.wrong, 0);
		assert_true(r.wins > 0);
		if (type == 1) /* it is bound to one of the two regions now */
			assert_int_equal(
				(urn_mem_kill_mr(r.mem, r.mr, &region) == EBUSY) +
					(urn_mem_kill_mr(r.mem, r.mr_odd, &region) == EBUSY),
				1);
		assert_int_equal(test_dealloc_mw(r.mem, r.mw), 0);
		if (type == 2) {
			test_dereg(r.mem, r.mr);
			test_dereg(r.mem, r.mr_odd);
		}
		urn_mem_destroy(r.mem);
	}
}

struct killer {
	struct race *r;
	atomic_uint lkey; /* the region that is registered and taken away */
	atomic_uint mw;	  /* the window that binds to it */
};

/* Bind to a region that may be gone, and invalidate again. */
static void *
bind_to_mortal(void *arg)
{
	struct killer *k = arg;
	struct race *r = k->r;

	while (!r->stop) {
		uint32_t lkey = k->lkey;
		enum urn_mem_error err =
			urn_mem_bind(r->mem, 2, k->mw, k->mw, lkey, (uintptr_t)even, 8,
				     URN_ACCESS_REMOTE_READ, r->pd, QPN, NULL);

		if (err == URN_MEM_OK) {
			struct urn_region *region;

			r->wins++;
			/* The region lives while the window is bound. */
			if (urn_mem_check(r->mem, lkey, r->pd, QPN, (uintptr_t)even, 8, 0, 0,
					  &region) ||
			    urn_mem_invalidate(r->mem, k->mw, r->pd, QPN, NULL))
				r->wrong++;
		} else if (err != URN_MEM_BAD_KEY) {
			r->wrong++;
		}
	}
	return NULL;
}

/* IBTA 10.6.7: a region is not taken away under a window, in any order of events */
static void
test_bind_and_kill(void **state)
{
	struct race r;
	struct killer k = {.r = &r};
	struct urn_region *region;
	pthread_t t;

	(void)state;
	race_setup(&r, 4);
	k.mw = test_mw(r.mem, r.pd, 2);
	k.lkey = test_reg(r.mem, r.pd, even, 4096, RIGHTS);
	assert_int_equal(pthread_create(&t, NULL, bind_to_mortal, &k), 0);
	for (int i = 0; (i < ROUNDS || !r.wins) && !r.wrong; i++) {
		if (urn_mem_kill_mr(r.mem, k.lkey, &region)) {
			sched_yield();
			continue;
		}
		urn_mem_free_mr(r.mem, region);
		k.lkey = test_reg(r.mem, r.pd, even, 4096, RIGHTS);
		if (i % 16 == 0)
			sched_yield();
	}
	r.stop = 1;
	pthread_join(t, NULL);
	assert_int_equal(r.wrong, 0);
	/* No thread binds any more: no count was left behind. */
	test_dereg(r.mem, k.lkey);
	urn_mem_destroy(r.mem);
}

/* Tables grow under the checks of engines. */
static void
test_grow_and_check(void **state)
{
	struct race r;
	pthread_t t;

	(void)state;
	race_setup(&r, 65536);
	r.index = 0;
	assert_int_equal(pthread_create(&t, NULL, checker, &r), 0);
	for (uint32_t i = 0; i < 8000; i++) {
		uint32_t key = test_mw(r.mem, r.pd, 1);

		/* The checker looks up the chunk that is made next. */
		r.index = (key >> 8) + 1;
	}
	r.stop = 1;
	pthread_join(t, NULL);
	assert_int_equal(r.wrong, 0);
	assert_int_equal(r.ok, 0);
	urn_mem_destroy(r.mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bind_and_check), cmocka_unit_test(test_register_and_check),
		cmocka_unit_test(test_two_binders),    cmocka_unit_test(test_bind_and_kill),
		cmocka_unit_test(test_grow_and_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
