/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments: chance from the seed, order, time, memory, and that nothing gets lost uncounted. */
#include "frames.h"

#include "switch/impair.h"

#include <math.h>
#include <stdlib.h>

enum { N = 4000, LEN = 100 };

#define US 1000ull
#define MS 1000000ull

static unsigned int free_before;

static int
setup(void **state)
{
	(void)state;
	test_eal_pool();
	free_before = frames_free();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	assert_int_equal(frames_free(), free_before);
	return 0;
}

static struct urn_impair *
make(const struct urn_impair_config *cfg)
{
	struct urn_impair *imp = urn_impair_create(cfg, test_eal_pool());

	assert_non_null(imp);
	return imp;
}

static uint64_t
count(const struct urn_impair *imp, enum urn_impair_counter c)
{
	return urn_impair_counters(imp)->v[c];
}

/* Every frame is somewhere. */
static void
check_balance(const struct urn_impair *imp)
{
	uint64_t in = count(imp, URN_IMPAIR_PUSHED) + count(imp, URN_IMPAIR_DUPLICATED);
	uint64_t out = count(imp, URN_IMPAIR_POPPED) + urn_impair_queued(imp);

	for (unsigned int i = 0; i < URN_IMPAIR_COUNTER_COUNT; i++) {
		if (strncmp(urn_impair_counter_name(i), "drop_", 5) == 0)
			out += urn_impair_counters(imp)->v[i];
	}
	assert_int_equal(in, out);
}

/* Push frames first..first+n-1, `gap` ns apart, and pop after each up to its time. */
static unsigned int
pass(struct urn_impair *imp, uint32_t first, uint32_t n, uint64_t start, uint64_t gap,
     uint32_t *out)
{
	struct rte_mbuf *m, *got[64];
	unsigned int total = 0, k;

	for (uint32_t i = 0; i < n; i++) {
		m = frame_make(first + i, LEN);
		urn_impair_push(imp, &m, 1, start + i * gap);
		while ((k = urn_impair_pop(imp, got, 64, start + i * gap)) > 0) {
			for (unsigned int j = 0; j < k; j++) {
				out[total++] = frame_number(got[j]);
				rte_pktmbuf_free(got[j]);
			}
		}
		check_balance(imp);
	}
	return total;
}

/* Take everything that is inside. */
static unsigned int
drain(struct urn_impair *imp, uint32_t *out)
{
	unsigned int total = 0;
	struct rte_mbuf *m;

	for (uint64_t t; (t = urn_impair_next(imp)) != UINT64_MAX;) {
		while (urn_impair_pop(imp, &m, 1, t)) {
			out[total++] = frame_number(m);
			rte_pktmbuf_free(m);
		}
	}
	assert_int_equal(urn_impair_queued(imp), 0);
	check_balance(imp);
	return total;
}

static void
assert_about(uint64_t got, double n, double p)
{
	assert_true(fabs((double)got - n * p) < 5 * sqrt(n * p * (1 - p)) + 1);
}

/* ---- nothing configured */

/* The same mbufs, in order, at once. */
static void
test_plain(void **state)
{
	struct urn_impair_config cfg = {.seed = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *in[32], *out[33];

	(void)state;
	assert_true(urn_impair_clear(imp));
	assert_true(urn_impair_next(imp) == UINT64_MAX);
	for (uint32_t i = 0; i < 32; i++)
		in[i] = frame_make(i, LEN);
	rte_mbuf_refcnt_set(in[3], 2);
	urn_impair_push(imp, in, 32, 5);
	assert_false(urn_impair_clear(imp));
	assert_int_equal(urn_impair_next(imp), 5);
	assert_int_equal(urn_impair_pop(imp, out, 33, 5), 32);
	assert_memory_equal(in, out, sizeof(in));
	assert_true(urn_impair_clear(imp));
	assert_int_equal(count(imp, URN_IMPAIR_POPPED), 32);
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 0);
	check_balance(imp);
	rte_mbuf_refcnt_set(in[3], 1);
	for (int i = 0; i < 32; i++)
		rte_pktmbuf_free(in[i]);
	urn_impair_destroy(imp);
	urn_impair_destroy(NULL);
}

/* ---- chance */

static void
test_drop(void **state)
{
	static uint32_t a[N], b[N], c[N];
	struct urn_impair_config cfg = {.seed = 7, .drop = 0.3};
	unsigned int na, nb, nc;
	struct urn_impair *imp;

	(void)state;
	imp = make(&cfg);
	na = pass(imp, 0, N, 0, 1, a);
	assert_about(count(imp, URN_IMPAIR_DROPPED), N, 0.3);
	assert_int_equal(na + count(imp, URN_IMPAIR_DROPPED), N);
	urn_impair_destroy(imp);
	/* The same seed at other times: the same frames. Another seed: others. */
	imp = make(&cfg);
	nb = pass(imp, 0, N, 77777, 13, b);
	urn_impair_destroy(imp);
	cfg.seed = 8;
	imp = make(&cfg);
	nc = pass(imp, 0, N, 0, 1, c);
	urn_impair_destroy(imp);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na * sizeof(*a));
	assert_true(nc != na || memcmp(a, c, na * sizeof(*a)) != 0);
}

/* Probability 1 is always. */
static void
test_extremes(void **state)
{
	struct urn_impair_config cfg = {.drop = 1};
	struct urn_impair *imp = make(&cfg);
	uint32_t out[200];

	(void)state;
	assert_int_equal(pass(imp, 0, 100, 0, 1, out), 0);
	cfg = (struct urn_impair_config){.dup = 1};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	assert_int_equal(pass(imp, 0, 100, 100, 1, out), 200);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(out[i], i / 2);
	urn_impair_destroy(imp);
}

/* The twin is another packet with the same bytes, right behind the first. */
static void
test_dup(void **state)
{
	struct urn_impair_config cfg = {.seed = 3, .dup = 0.5};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out[3];
	unsigned int twins = 0;

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		unsigned int n;

		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, i);
		n = urn_impair_pop(imp, out, 3, i);
		assert_in_range(n, 1, 2);
		assert_ptr_equal(out[0], m);
		if (n == 2) {
			twins++;
			assert_ptr_not_equal(out[0]->buf_addr, out[1]->buf_addr);
			assert_int_equal(out[1]->pkt_len, LEN);
			assert_memory_equal(rte_pktmbuf_mtod(out[0], void *),
					    rte_pktmbuf_mtod(out[1], void *), LEN);
		}
		rte_pktmbuf_free_bulk(out, n);
	}
	assert_about(twins, 500, 0.5);
	assert_int_equal(twins, count(imp, URN_IMPAIR_DUPLICATED));
	check_balance(imp);
	urn_impair_destroy(imp);
}

/* Number of the bit in which two frames differ; fails unless it is exactly one. */
static uint32_t
odd_bit(const struct rte_mbuf *a, const struct rte_mbuf *b)
{
	uint8_t x[256], y[256];
	uint32_t bits = 0, at = 0;

	assert_int_equal(a->pkt_len, b->pkt_len);
	memcpy(x, rte_pktmbuf_read(a, 0, a->pkt_len, x), a->pkt_len);
	memcpy(y, rte_pktmbuf_read(b, 0, b->pkt_len, y), b->pkt_len);
	for (uint32_t i = 0; i < a->pkt_len * 8; i++) {
		if ((x[i / 8] ^ y[i / 8]) >> i % 8 & 1) {
			bits++;
			at = i;
		}
	}
	assert_int_equal(bits, 1);
	return at;
}

/* One bit, any bit, of one segment or several, in place where the frame is ours. */
static void
test_corrupt(void **state)
{
	struct urn_impair_config cfg = {.seed = 5, .corrupt = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *orig, *out;
	uint8_t seen[60] = {0};

	(void)state;
	for (uint32_t i = 0; i < 6000; i++) {
		m = frame_make(i, 40);
		if (i & 1) {
			struct rte_mbuf *tail = frame_make(i, 20);

			assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
		}
		orig = rte_pktmbuf_copy(m, test_eal_pool(), 0, UINT32_MAX);
		urn_impair_push(imp, &m, 1, i);
		assert_int_equal(urn_impair_pop(imp, &out, 1, i), 1);
		assert_ptr_equal(out, m);
		seen[odd_bit(out, orig) / 8] |= i & 1 ? 2 : 1;
		rte_pktmbuf_free(orig);
		rte_pktmbuf_free(out);
	}
	for (int i = 0; i < 60; i++)
		assert_int_equal(seen[i], i < 40 ? 3 : 2);
	assert_int_equal(count(imp, URN_IMPAIR_CORRUPTED), 6000);
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 0);
	/* An empty frame has no bit. */
	m = rte_pktmbuf_alloc(test_eal_pool());
	urn_impair_push(imp, &m, 1, 6000);
	assert_int_equal(urn_impair_pop(imp, &out, 1, 6000), 1);
	rte_pktmbuf_free(out);
	urn_impair_destroy(imp);
}

/* ---- memory of others */

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

/* A frame of a header of our own and an external buffer behind it. */
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

/* A corrupted frame never is the one that others see. */
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
		/* Somebody else holds it; it is attached to another's buffer; it is external. */
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

/* Who is kept is copied, whole, and the foreign memory given back at once; who passes is not. */
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

/* Whoever pops is held up: what is inside is let go of, and what comes is, too. */
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
	/* Without packets for copies what is inside goes, counted. */
	imp = urn_impair_create(&cfg, NULL);
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

/* Without packets for copies: counted, and nothing of others written. */
static void
test_no_mbuf(void **state)
{
	struct urn_impair_config cfg = {.dup = 1, .corrupt = 1};
	struct urn_impair *imp = urn_impair_create(&cfg, NULL);
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

/* ---- order */

/* Held back by exactly k others, when k is the only choice. */
static void
test_reorder_exact(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.seed = 4, .reorder = 0.01, .reorder_ns = 60000 * MS};

	(void)state;
	for (uint32_t k = 1; k <= URN_IMPAIR_MAX_PASS; k *= 2) {
		unsigned int n = 0, late = 0;
		struct urn_impair *imp;

		cfg.reorder_min = cfg.reorder_max = k;
		imp = make(&cfg);
		n = pass(imp, 0, N, 0, 1, out);
		n += drain(imp, out + n);
		assert_int_equal(n, N);
		for (uint32_t i = 0; i < N; i++) {
			uint32_t at = 0, before = 0;

			while (out[at] != i)
				before += out[at++] > i;
			if (before == k)
				late++;
			else /* the rest are in order, or the last ones */
				assert_true(before == 0 || i + k >= N);
		}
		assert_in_range(late,
				count(imp, URN_IMPAIR_REORDERED) -
					count(imp, URN_IMPAIR_REORDER_LATE),
				count(imp, URN_IMPAIR_REORDERED));
		assert_about(count(imp, URN_IMPAIR_REORDERED), N, 0.01);
		urn_impair_destroy(imp);
	}
}

/* By default 1 to 8 pass; all of them happen; nothing is lost or doubled. */
static void
test_reorder_range(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.seed = 11, .reorder = 0.2};
	struct urn_impair *imp = make(&cfg);
	unsigned int n = pass(imp, 0, N, 0, 1, out), times[64] = {0};

	(void)state;
	n += drain(imp, out + n);
	assert_int_equal(n, N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t at = 0, before = 0;

		while (out[at] != i)
			before += out[at++] > i;
		assert_true(before < 64);
		times[before]++;
	}
	for (int k = 1; k <= 8; k++)
		assert_true(times[k] > 40);
	for (int k = 9; k < 64; k++)
		assert_int_equal(times[k], 0);
	assert_about(count(imp, URN_IMPAIR_REORDERED), N, 0.2);
	urn_impair_destroy(imp);
}

/* The last of a train goes when its time is up. */
static void
test_reorder_last(void **state)
{
	struct urn_impair_config cfg = {.reorder = 1, .delay_ns = 5 * US};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m = frame_make(1, LEN), *out;

	(void)state;
	urn_impair_push(imp, &m, 1, MS);
	assert_int_equal(urn_impair_next(imp), MS + 5 * US);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 5 * US), 0);
	assert_int_equal(urn_impair_next(imp), MS + 105 * US);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 105 * US - 1), 0);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 105 * US), 1);
	assert_ptr_equal(out, m);
	assert_int_equal(count(imp, URN_IMPAIR_REORDER_LATE), 1);
	rte_pktmbuf_free(out);
	urn_impair_destroy(imp);
}

/* Everything held back at once: bounded, and all come out. */
static void
test_reorder_all(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.reorder = 1, .reorder_min = 32, .reorder_max = 32};
	struct urn_impair *imp = make(&cfg);
	unsigned int n = pass(imp, 0, 1000, 0, 0, out);
	uint8_t seen[1000] = {0};

	(void)state;
	assert_true(n > 0);
	n += drain(imp, out + n);
	assert_int_equal(n, 1000);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen[out[i]]++, 0);
	urn_impair_destroy(imp);
}

/* ---- time */

static void
test_delay(void **state)
{
	struct urn_impair_config cfg = {.delay_ns = 3 * US};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out[10];

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, i * US);
	}
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(urn_impair_next(imp), (3 + i) * US);
		assert_int_equal(urn_impair_pop(imp, out, 10, (3 + i) * US - 1), 0);
		assert_int_equal(urn_impair_pop(imp, out, 10, (3 + i) * US), 1);
		assert_int_equal(frame_number(out[0]), i);
		rte_pktmbuf_free(out[0]);
	}
	assert_int_equal(count(imp, URN_IMPAIR_DELAYED), 10);
	urn_impair_destroy(imp);
}

/* Between delay and delay + jitter, over the whole of it, in order. */
static void
test_jitter(void **state)
{
	struct urn_impair_config cfg = {.seed = 2, .delay_ns = 100, .jitter_ns = 1000};
	struct urn_impair *imp = make(&cfg);
	uint64_t least = UINT64_MAX, most = 0, last = 0;
	struct rte_mbuf *m, *out;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		uint64_t now = i * 5000ull, due;

		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, now);
		due = urn_impair_next(imp);
		assert_in_range(due - now, 100, 1100);
		least = RTE_MIN(least, due - now);
		most = RTE_MAX(most, due - now);
		assert_int_equal(urn_impair_pop(imp, &out, 1, due), 1);
		rte_pktmbuf_free(out);
	}
	assert_true(least < 110 && most > 1090);
	for (uint32_t i = 0; i < 100; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 1000 * MS + i);
	}
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(urn_impair_next(imp) >= last);
		last = urn_impair_next(imp);
		assert_int_equal(urn_impair_pop(imp, &out, 1, last), 1);
		assert_int_equal(frame_number(out), i);
		rte_pktmbuf_free(out);
	}
	urn_impair_destroy(imp);
}

/* 1 Gb/s: 8 ns a byte, wire overhead included; short frames are padded; pauses are not saved up. */
static void
test_rate(void **state)
{
	struct urn_impair_config cfg = {.rate_bps = 1000000000};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out;

	(void)state;
	for (int round = 0; round < 2; round++) {
		uint64_t t = MS + (uint64_t)round * MS;

		for (uint32_t i = 0; i < 3; i++) {
			m = frame_make(i, i == 2 ? 20 : 1000);
			urn_impair_push(imp, &m, 1, t);
		}
		for (uint32_t i = 0; i < 3; i++) {
			t += 8 * (i == 2 ? 84 : 1024);
			assert_int_equal(urn_impair_next(imp), t);
			assert_int_equal(urn_impair_pop(imp, &out, 1, t), 1);
			assert_int_equal(frame_number(out), i);
			rte_pktmbuf_free(out);
		}
	}
	/* The extremes of the range do not run over. */
	cfg.rate_bps = URN_IMPAIR_MIN_BPS;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	m = frame_make(0, 1000);
	urn_impair_push(imp, &m, 1, 10 * MS);
	assert_int_equal(urn_impair_next(imp), 10 * MS + 8000000ull * 1024);
	assert_int_equal(urn_impair_pop(imp, &out, 1, urn_impair_next(imp)), 1);
	rte_pktmbuf_free(out);
	urn_impair_destroy(imp);
}

static void
test_cut(void **state)
{
	struct urn_impair_config cfg = {.blackhole = true}, open = {0};
	struct urn_impair *imp = make(&cfg);
	uint32_t out[100];

	(void)state;
	assert_int_equal(pass(imp, 0, 10, 0, 1, out), 0);
	assert_int_equal(count(imp, URN_IMPAIR_BLACKHOLE), 10);
	assert_int_equal(urn_impair_set(imp, &open), 0);
	assert_int_equal(pass(imp, 0, 10, 10, 1, out), 10);
	/* Up 7, down 3, counted from the first push. */
	cfg = (struct urn_impair_config){.flap_up_ns = 7, .flap_down_ns = 3};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	assert_int_equal(pass(imp, 0, 40, 1234, 1, out), 28);
	for (uint32_t i = 0; i < 28; i++)
		assert_int_equal(out[i], i / 7 * 10 + i % 7);
	assert_int_equal(count(imp, URN_IMPAIR_FLAP), 12);
	urn_impair_destroy(imp);
}

/* ---- bounds, changes, reproducibility */

static void
test_queue(void **state)
{
	struct urn_impair_config cfg = {.delay_ns = 10, .queue = 5};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m;
	uint32_t out[1000];

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 0);
	}
	assert_int_equal(urn_impair_queued(imp), 5);
	assert_int_equal(count(imp, URN_IMPAIR_QUEUE), 3);
	/* A longer one keeps what is inside, in order. */
	cfg.queue = 500;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	for (uint32_t i = 5; i < 700; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 1);
	}
	assert_int_equal(urn_impair_queued(imp), 500);
	/* A shorter one loses nothing of it, and takes no more. */
	cfg.queue = 5;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	m = frame_make(0, LEN);
	urn_impair_push(imp, &m, 1, 1);
	assert_int_equal(drain(imp, out), 500);
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(out[i], i);
	/* What is inside when it ends is freed, also what is held back. */
	cfg = (struct urn_impair_config){.reorder = 0.5, .delay_ns = 1};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	pass(imp, 0, 20, 10, 0, out);
	assert_int_not_equal(urn_impair_queued(imp), 0);
	urn_impair_destroy(imp);
}

/* A shorter delay does not let later frames overtake. */
static void
test_set(void **state)
{
	struct urn_impair_config slow = {.delay_ns = 100, .drop = 0.5}, fast = {.drop = 0.5};
	static uint32_t a[N], b[N];
	struct urn_impair *imp = make(&slow);
	unsigned int na, nb;

	(void)state;
	na = pass(imp, 0, 50, 0, 1, a);
	assert_int_equal(na, 0);
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	na = pass(imp, 50, 50, 50, 1, a);
	na += drain(imp, a + na);
	for (unsigned int i = 1; i < na; i++)
		assert_true(a[i] > a[i - 1]);
	/* Chance went on where it was: the frames that one without the change passes. */
	urn_impair_destroy(imp);
	imp = make(&fast);
	nb = pass(imp, 0, 100, 0, 1, b);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na * sizeof(*a));
	/* Another seed, and the first one again: from the start. */
	fast.seed = 1;
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	fast.seed = 0;
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	assert_int_equal(pass(imp, 0, 100, 200, 1, a), nb);
	assert_memory_equal(a, b, nb * sizeof(*a));
	/* What makes no sense changes nothing. */
	slow.drop = 2;
	assert_int_equal(urn_impair_set(imp, &slow), -EINVAL);
	assert_true(urn_impair_config(imp)->drop == 0.5 && !urn_impair_config(imp)->delay_ns);
	urn_impair_destroy(imp);
}

static const struct urn_impair_config everything = {
	.seed = 99,
	.drop = 0.1,
	.dup = 0.1,
	.corrupt = 0.1,
	.reorder = 0.3,
	.reorder_ns = 300,
	.delay_ns = 200,
	.jitter_ns = 500,
	.rate_bps = 40000000000,
	.flap_up_ns = 900,
	.flap_down_ns = 100,
	.queue = 30,
};

/* Hash of a frame that came out: 8 bytes a frame are enough to compare runs by. */
static uint64_t
digest(struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint64_t h = 1469598103934665603u;

	for (uint32_t i = 0; i < m->pkt_len; i++)
		h = (h ^ p[i]) * 1099511628211u;
	rte_pktmbuf_free(m);
	return h;
}

/* 2000 frames through everything; pop every `every` frames, at most `max` at a time. */
static unsigned int
run(struct urn_impair *imp, unsigned int every, unsigned int max, uint64_t *out)
{
	struct rte_mbuf *m, *got[64];
	unsigned int n = 0, k;
	uint64_t now = 0;

	for (uint32_t i = 0; i < 2000; i++) {
		now = i * 40ull;
		m = frame_make(i, 60 + i % 40);
		urn_impair_push(imp, &m, 1, now);
		if (i % every)
			continue;
		while ((k = urn_impair_pop(imp, got, max, now)) > 0)
			for (unsigned int j = 0; j < k; j++)
				out[n++] = digest(got[j]);
	}
	check_balance(imp);
	while ((k = urn_impair_pop(imp, got, max, now + MS)) > 0)
		for (unsigned int j = 0; j < k; j++)
			out[n++] = digest(got[j]);
	check_balance(imp);
	return n;
}

/* The same frames, bytes and order however often, and for how many, pop is called. */
static void
test_pace(void **state)
{
	static uint64_t a[8000], b[8000];
	struct urn_impair_config cfg = everything;
	unsigned int na, nb;

	(void)state;
	cfg.queue = 0; /* how full it is does depend on pop */
	for (unsigned int every = 1; every <= 64; every *= 4) {
		struct urn_impair *x = make(&cfg), *y = make(&cfg);

		na = run(x, 1, 64, a);
		nb = run(y, every, every == 16 ? 1 : 5, b);
		assert_int_equal(na, nb);
		assert_memory_equal(a, b, na * sizeof(*a));
		assert_memory_equal(urn_impair_counters(x), urn_impair_counters(y),
				    sizeof(struct urn_impair_counters));
		urn_impair_destroy(x);
		urn_impair_destroy(y);
	}
	for (unsigned int i = 0; i < URN_IMPAIR_COUNTER_COUNT; i++)
		assert_non_null(urn_impair_counter_name(i));
}

/* Without drops the same frames are corrupted and doubled as with them. */
static void
test_independent(void **state)
{
	struct urn_impair_config cfg = {.seed = 6, .drop = 0.5, .corrupt = 0.3, .dup = 0.3};
	static uint8_t fate[2][1000];
	struct rte_mbuf *m, *out[2];

	(void)state;
	for (int with = 1; with >= 0; with--) {
		struct urn_impair *imp;
		unsigned int n;

		cfg.drop = with ? 0.5 : 0;
		imp = make(&cfg);
		for (uint32_t i = 0; i < 1000; i++) {
			uint64_t before = count(imp, URN_IMPAIR_CORRUPTED);

			m = frame_make(i, LEN);
			urn_impair_push(imp, &m, 1, 0);
			n = urn_impair_pop(imp, out, 2, 0);
			fate[with][i] =
				(uint8_t)(n << 4 | (count(imp, URN_IMPAIR_CORRUPTED) - before));
			rte_pktmbuf_free_bulk(out, n);
		}
		urn_impair_destroy(imp);
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(fate[1][i] == 0 || fate[1][i] == fate[0][i]);
}

/* Everything at once with a short queue: whatever happens is counted. */
static void
test_everything(void **state)
{
	static uint64_t out[8000];
	struct urn_impair *imp = make(&everything);

	(void)state;
	run(imp, 40, 16, out);
	for (unsigned int i = 0; i < URN_IMPAIR_COUNTER_COUNT; i++) {
		bool never = i == URN_IMPAIR_BLACKHOLE || i == URN_IMPAIR_NO_MBUF ||
			     i == URN_IMPAIR_DUP_NO_MBUF || i == URN_IMPAIR_COPIED;

		if (!never && count(imp, i) == 0)
			fail_msg("%s did not happen", urn_impair_counter_name(i));
		assert_non_null(urn_impair_counter_text(i));
	}
	assert_null(urn_impair_counter_name(URN_IMPAIR_COUNTER_COUNT));
	assert_null(urn_impair_counter_text(URN_IMPAIR_COUNTER_COUNT));
	urn_impair_destroy(imp);
}

/* A wire that only loses and holds back has a short way of its own: the same frames in the same order. */
static void
test_short_way(void **state)
{
	struct urn_impair_config cfg = {.seed = 11, .drop = 0.1, .reorder = 0.2};
	uint32_t *out[2];
	unsigned int n[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct urn_impair *imp;

		/* A flap that never comes takes the long way. */
		cfg.flap_up_ns = i ? INT64_MAX / 2 : 0;
		cfg.flap_down_ns = i ? 1 : 0;
		imp = make(&cfg);
		out[i] = calloc(N, sizeof(**out));
		n[i] = pass(imp, 0, N, 1, 40 * US, out[i]);
		n[i] += drain(imp, out[i] + n[i]);
		assert_true(count(imp, URN_IMPAIR_REORDERED) > N / 8);
		assert_true(count(imp, URN_IMPAIR_REORDER_LATE) > 0);
		urn_impair_destroy(imp);
	}
	assert_int_equal(n[0], n[1]);
	assert_memory_equal(out[0], out[1], n[0] * sizeof(**out));
	free(out[0]);
	free(out[1]);
}

static void
test_check(void **state)
{
	static const struct urn_impair_config bad[] = {
		{.drop = -0.1},
		{.dup = 1.5},
		{.corrupt = NAN},
		{.reorder = INFINITY},
		{.reorder_max = URN_IMPAIR_MAX_PASS + 1, .reorder_min = 1},
		{.reorder_min = 3, .reorder_max = 2},
		{.reorder_max = 2},
		{.delay_ns = URN_IMPAIR_MAX_NS + 1},
		{.jitter_ns = UINT64_MAX},
		{.reorder_ns = UINT64_MAX},
		{.rate_bps = 1},
		{.rate_bps = UINT64_MAX},
		{.flap_up_ns = 1},
		{.flap_down_ns = 1},
		{.flap_up_ns = 1, .flap_down_ns = UINT64_MAX},
		{.queue = URN_IMPAIR_MAX_QUEUE + 1},
	};
	char why[100];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		why[0] = '\0';
		assert_int_equal(urn_impair_check(&bad[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
		assert_int_equal(urn_impair_check(&bad[i], NULL, 0), -EINVAL);
		assert_null(urn_impair_create(&bad[i], test_eal_pool()));
	}
	assert_int_equal(urn_impair_check(&everything, why, sizeof(why)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	      cmocka_unit_test(test_drop),
		cmocka_unit_test(test_extremes),      cmocka_unit_test(test_dup),
		cmocka_unit_test(test_corrupt),	      cmocka_unit_test(test_corrupt_foreign),
		cmocka_unit_test(test_keep_foreign),  cmocka_unit_test(test_keep),
		cmocka_unit_test(test_no_mbuf),
		cmocka_unit_test(test_reorder_exact), cmocka_unit_test(test_reorder_range),
		cmocka_unit_test(test_reorder_last),  cmocka_unit_test(test_reorder_all),
		cmocka_unit_test(test_delay),	      cmocka_unit_test(test_jitter),
		cmocka_unit_test(test_rate),	      cmocka_unit_test(test_cut),
		cmocka_unit_test(test_queue),	      cmocka_unit_test(test_set),
		cmocka_unit_test(test_pace),	      cmocka_unit_test(test_independent),
		cmocka_unit_test(test_everything),    cmocka_unit_test(test_short_way),
		cmocka_unit_test(test_check),
	};
	struct CMUnitTest all[RTE_DIM(tests)];

	for (size_t i = 0; i < RTE_DIM(tests); i++) {
		all[i] = tests[i];
		all[i].setup_func = setup;
		all[i].teardown_func = teardown;
	}
	return cmocka_run_group_tests_name("impair", all, NULL, NULL);
}
