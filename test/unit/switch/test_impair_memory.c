/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments: frames in memory of others, and no packets left for copies. */
#include "impair_bench.h"

struct foreign {
	uint8_t bytes[512];
	struct rte_mbuf_ext_shared_info info;
	unsigned int freed;
};

static void
foreign_free(void *addr, void *opaque)
{
	struct foreign *f = opaque;

	(void)addr;
	f->freed++;
}

/* A frame of a header of our own, with an external buffer behind it. */
static struct rte_mbuf *
foreign_frame(struct foreign *f)
{
	struct rte_mbuf *m = frame_make(9, 40), *tail = rte_pktmbuf_alloc(test_eal_pool());

	memset(f, 0, sizeof(*f));
	for (unsigned int i = 0; i < sizeof(f->bytes); i++)
		f->bytes[i] = (uint8_t)i;
	f->info.free_cb = foreign_free;
	f->info.fcb_opaque = f;
	rte_mbuf_ext_refcnt_set(&f->info, 1);
	rte_pktmbuf_attach_extbuf(tail, f->bytes, (rte_iova_t)(uintptr_t)f->bytes, 100, &f->info);
	rte_pktmbuf_append(tail, 100);
	assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	return m;
}

/* Corruption never changes a frame that others see. */
static void
test_corrupt_foreign(void **state)
{
	struct urn_impair_config cfg = {.corrupt = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *shared, *indirect, *out;
	struct foreign f;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		cfg.seed = i;
		assert_int_equal(urn_impair_set(imp, &cfg), 0);
		shared = frame_make(i, 40);
		m = frame_make(i, 40);
		/* The frame is shared; it is attached to another's buffer; it is external. */
		rte_mbuf_refcnt_update(shared, 1);
		indirect = rte_pktmbuf_clone(m, test_eal_pool());
		urn_impair_push(imp, &shared, 1, i);
		urn_impair_push(imp, &indirect, 1, i);
		for (int k = 0; k < 2; k++) {
			struct rte_mbuf *want = k ? m : shared;

			assert_int_equal(urn_impair_pop(imp, &out, 1, i), 1);
			odd_bit(out, want);
			assert_int_equal(frame_number(want), i);
			assert_int_equal(rte_mbuf_refcnt_read(want), 1);
			rte_pktmbuf_free(out);
			rte_pktmbuf_free(want);
		}
		m = foreign_frame(&f);
		urn_impair_push(imp, &m, 1, i);
		assert_int_equal(f.freed, 1);
		for (unsigned int k = 0; k < sizeof(f.bytes); k++)
			assert_int_equal(f.bytes[k], (uint8_t)k);
		assert_int_equal(urn_impair_pop(imp, &out, 1, i), 1);
		assert_int_equal(out->pkt_len, 140);
		rte_pktmbuf_free(out);
	}
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 900);
	urn_impair_destroy(imp);
}

/*
 * A frame that is held back is copied, whole, and the foreign memory given back at once; a frame
 * that passes is not.
 */
static void
test_keep_foreign(void **state)
{
	struct urn_impair_config cfg = {.delay_ns = 10}, none = {0}, hold = {.reorder = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out;
	struct foreign f;

	(void)state;
	for (int k = 0; k < 2; k++) {
		m = foreign_frame(&f);
		urn_impair_push(imp, &m, 1, 0);
		assert_int_equal(f.freed, 1);
		memset(f.bytes, 0xee, sizeof(f.bytes));
		assert_int_equal(urn_impair_pop(imp, &out, 1, 0), 0);
		assert_int_equal(urn_impair_pop(imp, &out, 1, MS), 1);
		assert_int_equal(out->pkt_len, 140);
		assert_int_equal(*rte_pktmbuf_mtod_offset(out, uint8_t *, 40 + 99), 99);
		rte_pktmbuf_free(out);
		assert_int_equal(urn_impair_set(imp, &hold), 0);
	}
	assert_int_equal(urn_impair_set(imp, &none), 0);
	m = foreign_frame(&f);
	urn_impair_push(imp, &m, 1, MS);
	assert_int_equal(f.freed, 0);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS), 1);
	assert_ptr_equal(out, m);
	rte_pktmbuf_free(out);
	assert_int_equal(f.freed, 1);
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 2);
	urn_impair_destroy(imp);
}

/*
 * The caller of pop is held up: frames inside are copied and release their foreign
 * memory, and so do new ones.
 */
static void
test_keep(void **state)
{
	struct urn_impair_config cfg = {0};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m = frame_make(1, 40), *own = m, *out[4];
	struct foreign f[3];

	(void)state;
	urn_impair_push(imp, &m, 1, 0);
	m = foreign_frame(&f[0]);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(f[0].freed, 0);
	urn_impair_keep(imp, true);
	assert_int_equal(f[0].freed, 1);
	m = foreign_frame(&f[1]);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(f[1].freed, 1);
	urn_impair_keep(imp, true);
	urn_impair_keep(imp, false);
	m = foreign_frame(&f[2]);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(f[2].freed, 0);
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 2);
	assert_int_equal(urn_impair_pop(imp, out, 4, 0), 4);
	assert_ptr_equal(out[0], own);
	for (int i = 1; i < 4; i++)
		assert_int_equal(out[i]->pkt_len, 140);
	rte_pktmbuf_free_bulk(out, 4);
	urn_impair_destroy(imp);
	/* Without packets for copies the foreign frames inside are dropped, and counted. */
	imp = urn_impair_create(&cfg, 0, NULL);
	for (int i = 0; i < 2; i++) {
		m = foreign_frame(&f[i]);
		urn_impair_push(imp, &m, 1, 0);
		m = frame_make(7, 40);
		urn_impair_push(imp, &m, 1, 0);
	}
	urn_impair_keep(imp, true);
	assert_int_equal(f[0].freed + f[1].freed, 2);
	assert_int_equal(count(imp, URN_IMPAIR_NO_MBUF), 2);
	check_balance(imp);
	assert_int_equal(urn_impair_pop(imp, out, 4, 0), 2);
	assert_int_equal(frame_number(out[1]), 7);
	rte_pktmbuf_free_bulk(out, 2);
	urn_impair_destroy(imp);
}

/* Without packets for copies: counted, and no memory of others is written. */
static void
test_no_mbuf(void **state)
{
	struct urn_impair_config cfg = {.dup = 1, .corrupt = 1};
	struct urn_impair *imp = urn_impair_create(&cfg, 0, NULL);
	struct rte_mbuf *m = frame_make(1, 40), *out;
	struct foreign f;

	(void)state;
	assert_non_null(imp);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(urn_impair_pop(imp, &out, 1, 0), 1);
	rte_pktmbuf_free(out);
	assert_int_equal(count(imp, URN_IMPAIR_DUP_NO_MBUF), 1);
	assert_int_equal(count(imp, URN_IMPAIR_NO_MBUF), 0);
	m = foreign_frame(&f);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(f.freed, 1);
	cfg = (struct urn_impair_config){.delay_ns = 1};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	m = foreign_frame(&f);
	urn_impair_push(imp, &m, 1, 0);
	assert_int_equal(f.freed, 1);
	assert_int_equal(urn_impair_pop(imp, &out, 1, 1), 0);
	assert_int_equal(count(imp, URN_IMPAIR_NO_MBUF), 2);
	check_balance(imp);
	urn_impair_destroy(imp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_corrupt_foreign),
		T(test_keep_foreign),
		T(test_keep),
		T(test_no_mbuf),
	};

	return cmocka_run_group_tests_name("impair_memory", tests, NULL, NULL);
}
