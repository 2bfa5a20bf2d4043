/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"
#include "memory/internal.h"

/* mem.h: unknown keys of every kind */
static void
test_bad_keys(void **state)
{
	struct urn_mem *mem = urn_mem_create(600, 4);
	uint32_t pd = test_pd(mem), other = test_pd(mem), key, mw;
	uint8_t bytes[64];
	uint64_t addr = (uintptr_t)bytes;
	struct urn_region *r = NULL;

	(void)state;
	assert_int_equal(urn_mem_check(mem, 0, 0, 0, 0, 0, 0, 0, &r), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(mem, 1 << 8, pd, 0, 0, 0, 0, 0, &r), URN_MEM_BAD_KEY);
	key = test_reg(mem, pd, bytes, 64, RIGHTS);
	for (uint32_t i = 1; i < 256; i++)
		assert_int_equal(
			urn_mem_check(mem, test_next_key(key, i), pd, 0, addr, 1, 0, 0, &r),
			URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(mem, key, other, 0, addr, 1, 0, 0, &r), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(mem, key, 0, 0, addr, 1, 0, 0, &r), URN_MEM_BAD_KEY);
	for (uint32_t index = 0; index < 1u << 24; index += 97)
		if (index != key >> 8)
			assert_int_equal(urn_mem_check(mem, index << 8 | (key & 0xff), pd, 0, addr,
						       0, 0, 1, &r),
					 URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(mem, UINT32_MAX, pd, 0, addr, 0, 0, 1, &r), URN_MEM_BAD_KEY);
	/* A free index has key 0 and PD 0: neither names an object. */
	mw = test_mw(mem, pd, 1);
	assert_int_equal(test_dealloc_mw(mem, mw), 0);
	assert_int_equal(urn_mem_check(mem, mw & ~0xffu, 0, 0, 0, 0, 0, 1, &r), URN_MEM_BAD_KEY);
	assert_null(r);
	urn_mem_destroy(mem);
}

/* mem.h: key before access before range; length 0 checks key and access only */
static void
test_order_of_errors(void **state)
{
	struct urn_mem *mem = urn_mem_create(600, 4);
	uint32_t pd = test_pd(mem), rd = URN_ACCESS_REMOTE_READ, wr = URN_ACCESS_REMOTE_WRITE;
	uint8_t bytes[64];
	uint64_t addr = (uintptr_t)bytes;
	uint32_t key = test_reg(mem, pd, bytes, 64, rd);
	struct urn_region *r = NULL;

	(void)state;
	assert_int_equal(urn_mem_check(mem, key, pd + 1, 0, addr, 65, wr, 1, &r), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(mem, key, pd, 0, addr, 65, wr, 1, &r), URN_MEM_ACCESS);
	assert_int_equal(urn_mem_check(mem, key, pd, 0, addr, 65, rd, 1, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(mem, key, pd, 0, addr - 1, 0, wr, 1, &r), URN_MEM_ACCESS);
	assert_int_equal(urn_mem_check(mem, key, pd + 1, 0, addr, 0, 0, 1, &r), URN_MEM_BAD_KEY);
	assert_null(r);
	assert_int_equal(urn_mem_check(mem, key, pd, 0, addr - 1, 0, rd, 1, &r), URN_MEM_OK);
	assert_non_null(r);
	urn_mem_destroy(mem);
}

/* architecture rule 2: a check that meets a writer is refused and does not wait */
static void
test_half_written(void **state)
{
	struct urn_mem *mem = urn_mem_create(600, 4);
	uint32_t pd = test_pd(mem), rd = URN_ACCESS_REMOTE_READ;
	uint8_t bytes[64];
	uint64_t addr = (uintptr_t)bytes;
	uint32_t mr = test_reg(mem, pd, bytes, 64, RIGHTS), mw = test_mw(mem, pd, 2);
	struct urn_region *r = urn_region_at(mem, mr >> 8), *w = urn_region_at(mem, mw >> 8), *got;
	struct urn_region_view v, w_view;

	(void)state;
	assert_true(urn_region_take(r, 1u << URN_REGION_MR, &v));
	assert_false(urn_region_lock(r, &v));
	assert_int_equal(urn_mem_check(mem, mr, pd, 0, addr, 1, rd, 1, &got), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_bind(mem, 2, mw, mw, mr, addr, 8, rd, pd, 3, NULL), URN_MEM_BAD_KEY);
	urn_region_unlock(r, &v);
	assert_int_equal(urn_mem_check(mem, mr, pd, 0, addr, 1, rd, 1, &got), URN_MEM_OK);

	assert_true(urn_region_take(w, 1u << URN_REGION_MW2, &w_view));
	assert_int_equal(urn_mem_bind(mem, 2, mw, mw, mr, addr, 8, rd, pd, 3, NULL), URN_MEM_WINDOW);
	urn_region_unlock(w, &w_view);
	assert_int_equal(urn_mem_bind(mem, 2, mw, mw, mr, addr, 8, rd, pd, 3, NULL), URN_MEM_OK);
	assert_true(urn_region_take(w, 1u << URN_REGION_MW2, &w_view));
	assert_int_equal(urn_mem_invalidate(mem, mw, pd, 3, NULL), URN_MEM_BAD_KEY);
	urn_region_unlock(w, &w_view);
	assert_int_equal(urn_mem_invalidate(mem, mw, pd, 3, NULL), URN_MEM_OK);
	/* An earlier view is no longer valid. */
	assert_false(urn_region_lock(w, &w_view));
	urn_mem_destroy(mem);
}

/* ---- bounds against a model that can't overflow */

/* A number near an important boundary, or anywhere. */
static uint64_t
odd_number(uint64_t *rng, uint64_t start, uint64_t length)
{
	uint64_t near[] = {0, start, start + length, length, UINT64_MAX - start, 1ull << 63};
	uint64_t n = test_random(rng);

	switch (n % 8) {
	case 0:
		return test_random(rng);
	case 1:
		return test_random(rng) % (length + 2);
	case 2:
		return start + test_random(rng) % (length + 2);
	default:
		return near[n / 8 % 6] + n / 64 % 5 - 2;
	}
}

/* architecture rule 4: random ranges against 128-bit arithmetic, over all of the address space */
static void
test_bounds_fuzz(void **state)
{
	struct urn_mem *mem = urn_mem_create(600, 4);
	uint32_t pd = test_pd(mem);
	uint64_t rng = 20240607, ok = 0, refused = 0;
	uint8_t byte;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		uint64_t length = test_random(&rng) >> (test_random(&rng) % 65 & 63);
		uint64_t iova = odd_number(&rng, 0 - length, length);
		/* Never read: only addresses are compared. */
		void *base = (void *)(uintptr_t)(length ? 1 : (uintptr_t)&byte);
		__uint128_t end = (__uint128_t)iova + length;
		uint32_t key;
		int err = urn_mem_reg_mr(mem, pd, base, length, iova, RIGHTS, &key);

		assert_int_equal(err, end > (__uint128_t)1 << 64 ? EINVAL : 0);
		if (err)
			continue;
		for (int j = 0; j < 200; j++) {
			uint64_t addr = odd_number(&rng, iova, length);
			uint64_t len = odd_number(&rng, 0, length);
			bool in = !len || (addr >= iova && (__uint128_t)addr + len <= end);
			struct urn_region *r;

			assert_int_equal(urn_mem_check(mem, key, pd, 0, addr, len,
						       URN_ACCESS_REMOTE_WRITE, 1, &r),
					 in ? URN_MEM_OK : URN_MEM_RANGE);
			*(in ? &ok : &refused) += 1;
		}
		test_dereg(mem, key);
	}
	assert_true(ok > 10000 && refused > 10000);
	urn_mem_destroy(mem);
}

/* ---- everything against a naive model */

enum { OBJECTS = 24, PDS = 2 };

/* The model of a region (type 0) or window; live: 0 for none. */
struct model {
	int live, type;
	uint32_t key, pd, access, qpn;
	uint64_t start, length;
	struct model *mr; /* region of a bound window */
};

static int
model_windows(const struct model *all, const struct model *mr)
{
	int n = 0;

	for (int i = 0; i < OBJECTS; i++)
		n += all[i].live && all[i].type && all[i].mr == mr;
	return n;
}

static struct model *
model_find(struct model *all, uint32_t key, int whole)
{
	for (int i = 0; i < OBJECTS; i++)
		if (all[i].live && (whole ? all[i].key == key : all[i].key >> 8 == key >> 8))
			return &all[i];
	return NULL;
}

static enum urn_mem_error
model_check(struct model *all, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t addr, uint64_t len,
	    uint32_t access, int remote)
{
	struct model *o = model_find(all, key, 1);

	if (!o || o->pd != pd)
		return URN_MEM_BAD_KEY;
	if (o->type && (!remote || !o->mr || (o->type == 2 && o->qpn != qpn)))
		return URN_MEM_BAD_KEY;
	if ((o->access & access) != access)
		return URN_MEM_ACCESS;
	if (len && (addr < o->start || addr + len > o->start + o->length))
		return URN_MEM_RANGE;
	return URN_MEM_OK;
}

static enum urn_mem_error
model_bind(struct model *all, int type, uint32_t mw, uint32_t new_key, uint32_t lkey, uint64_t addr,
	   uint64_t length, uint32_t access, uint32_t pd, uint32_t qpn)
{
	struct model *w = model_find(all, mw, 0), *r = model_find(all, lkey, 1);

	if (!w || !w->type || w->pd != pd || (w->type == 1 && type == 1 && w->key != mw))
		return URN_MEM_BAD_KEY;
	if (w->type != type || new_key >> 8 != mw >> 8 || (type == 2 && (w->mr || !length)))
		return URN_MEM_WINDOW;
	if (length) {
		if (!r || r->type || r->pd != pd)
			return URN_MEM_BAD_KEY;
		if (!(r->access & URN_ACCESS_MW_BIND))
			return URN_MEM_ACCESS;
		if ((access & (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC)) &&
		    !(r->access & URN_ACCESS_LOCAL_WRITE))
			return URN_MEM_ACCESS;
		if (addr < r->start || addr + length > r->start + r->length)
			return URN_MEM_RANGE;
	}
	w->key = new_key;
	w->qpn = qpn;
	w->access = access & 14;
	w->start = addr;
	w->length = length;
	w->mr = length ? r : NULL;
	return URN_MEM_OK;
}

static enum urn_mem_error
model_invalidate(struct model *all, uint32_t key, uint32_t pd, uint32_t qpn)
{
	struct model *o = model_find(all, key, 1);

	if (!o || o->pd != pd)
		return URN_MEM_BAD_KEY;
	if (o->type != 2)
		return URN_MEM_WINDOW;
	if (!o->mr || o->qpn != qpn)
		return URN_MEM_BAD_KEY;
	o->mr = NULL;
	return URN_MEM_OK;
}

struct fuzz {
	struct urn_mem *mem;
	struct model all[OBJECTS];
	uint32_t pd[PDS];
	uint64_t rng;
	uint64_t results[5]; /* checks, binds and invalidations by result */
};

/* A key that is, was or may become valid. */
static uint32_t
fuzz_key(struct fuzz *z)
{
	const struct model *o = &z->all[test_random(&z->rng) % OBJECTS];

	switch (test_random(&z->rng) % 16) {
	case 0:
		return test_next_key(o->key, 1 + test_random(&z->rng) % 3);
	case 1:
		return (uint32_t)test_random(&z->rng);
	default:
		return o->key;
	}
}

static uint32_t
fuzz_pick_pd(struct fuzz *z, uint32_t key)
{
	const struct model *o = model_find(z->all, key, 0);

	/* Mostly the right PD. */
	return o && test_random(&z->rng) % 8 ? o->pd : z->pd[test_random(&z->rng) % PDS];
}

static void
fuzz_make(struct fuzz *z, struct model *o)
{
	uint32_t access = (uint32_t)test_random(&z->rng) & 31;
	uint8_t *base = (uint8_t *)0x10000; /* never read */

	o->type = (int)(test_random(&z->rng) % 3);
	o->pd = z->pd[test_random(&z->rng) % PDS];
	o->mr = NULL;
	if (access & (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC))
		access |= URN_ACCESS_LOCAL_WRITE;
	if (o->type) {
		assert_int_equal(urn_mem_alloc_mw(z->mem, o->pd, o->type, &o->key), 0);
	} else {
		o->access = access;
		o->start = 4096 + test_random(&z->rng) % 64;
		o->length = test_random(&z->rng) % 64;
		assert_int_equal(
			urn_mem_reg_mr(z->mem, o->pd, base, o->length, o->start, access, &o->key),
			0);
	}
	o->live = 1;
}

static void
fuzz_drop(struct fuzz *z, struct model *o)
{
	struct urn_region *r;

	if (o->type) {
		assert_int_equal(test_dealloc_mw(z->mem, o->key), 0);
		o->live = 0;
	} else if (model_windows(z->all, o)) {
		assert_int_equal(urn_mem_kill_mr(z->mem, o->key, &r), EBUSY);
	} else {
		assert_int_equal(urn_mem_kill_mr(z->mem, o->key, &r), 0);
		urn_mem_free_mr(z->mem, r);
		o->live = 0;
	}
}

static void
fuzz_bind(struct fuzz *z)
{
	uint32_t mw = fuzz_key(z), lkey = fuzz_key(z), pd = fuzz_pick_pd(z, mw);
	const struct model *w = model_find(z->all, mw, 0);
	int type = w && w->type && test_random(&z->rng) % 8 ? w->type
							    : 1 + (int)(test_random(&z->rng) & 1);
	uint32_t new_key = test_random(&z->rng) % 16 ? test_next_key(mw, 1) : fuzz_key(z);
	uint64_t addr = 4096 + test_random(&z->rng) % 96, length = test_random(&z->rng) % 16;
	uint32_t access = (uint32_t)test_random(&z->rng) & 15;
	uint32_t qpn = 10 + test_random(&z->rng) % 2;
	enum urn_mem_error got =
		urn_mem_bind(z->mem, type, mw, new_key, lkey, addr, length, access, pd, qpn, NULL);

	assert_int_equal(
		got, model_bind(z->all, type, mw, new_key, lkey, addr, length, access, pd, qpn));
	z->results[got]++;
}

static void
fuzz_check(struct fuzz *z)
{
	uint32_t key = fuzz_key(z), pd = fuzz_pick_pd(z, key);
	uint64_t addr = 4096 + test_random(&z->rng) % 96, len = test_random(&z->rng) % 8;
	uint32_t access = 1u << test_random(&z->rng) % 4;
	uint32_t qpn = 10 + test_random(&z->rng) % 2;
	int remote = (int)(test_random(&z->rng) & 1);
	struct urn_region *r;
	enum urn_mem_error got = urn_mem_check(z->mem, key, pd, qpn, addr, len, access, remote, &r);

	assert_int_equal(got, model_check(z->all, key, pd, qpn, addr, len, access, remote));
	z->results[got]++;
}

/* IBTA 10.6: random calls against a model without a fast path */
static void
test_model_fuzz(void **state)
{
	struct fuzz z = {.rng = 4711};

	(void)state;
	z.mem = urn_mem_create(OBJECTS, PDS);
	for (int i = 0; i < PDS; i++)
		z.pd[i] = test_pd(z.mem);
	for (int i = 0; i < 400000; i++) {
		struct model *o = &z.all[test_random(&z.rng) % OBJECTS];
		uint32_t what = test_random(&z.rng) % 64, key, pd, qpn;

		if (!o->live) {
			fuzz_make(&z, o);
		} else if (what == 0) {
			fuzz_drop(&z, o);
		} else if (what < 16) {
			fuzz_bind(&z);
		} else if (what < 20) {
			key = fuzz_key(&z);
			pd = fuzz_pick_pd(&z, key);
			qpn = 10 + test_random(&z.rng) % 2;
			assert_int_equal(urn_mem_invalidate(z.mem, key, pd, qpn, NULL),
					 model_invalidate(z.all, key, pd, qpn));
		} else {
			fuzz_check(&z);
		}
	}
	for (int i = 0; i < 5; i++)
		assert_true(z.results[i] > 1000);
	urn_mem_destroy(z.mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_keys),     cmocka_unit_test(test_order_of_errors),
		cmocka_unit_test(test_half_written), cmocka_unit_test(test_bounds_fuzz),
		cmocka_unit_test(test_model_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
