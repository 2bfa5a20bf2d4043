/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments: the seed decides all that is random, and nothing else does. */
#include "impair_bench.h"

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
	/* The same seed at other times hits the same frames, another seed others. */
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

/* The duplicate is another packet with the same bytes, right behind the first. */
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

/* One flipped bit, any bit, of one segment or several, in place where the frame is ours. */
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
	urn_impair_destroy(imp);
}

static void
set_type(struct rte_mbuf *m, uint16_t type)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	p[12] = (uint8_t)(type >> 8);
	p[13] = (uint8_t)type;
}

/* A frame that only Ethernet's checksum protects is lost instead: no receiver could see the flipped bit. */
static void
test_corrupt_fcs(void **state)
{
	static const struct {
		uint16_t type, tagged; /* behind a VLAN tag */
		bool goes_on;
	} kinds[] = {
		{0x0800, 0, true},	 {0x86dd, 0, true},	 {0x0806, 0, false},
		{0x88cc, 0, false},	 {0x8100, 0x0800, true}, {0x8100, 0x86dd, true},
		{0x8100, 0x0806, false}, {0x0008, 0, false},
	};
	struct urn_impair_config cfg = {.seed = 5, .corrupt = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out;
	unsigned int lost = 0;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(kinds); i++) {
		m = frame_make(i, 60);
		set_type(m, kinds[i].type);
		*rte_pktmbuf_mtod_offset(m, uint16_t *, 16) = rte_cpu_to_be_16(kinds[i].tagged);
		urn_impair_push(imp, &m, 1, i);
		if (urn_impair_pop(imp, &out, 1, i) != kinds[i].goes_on)
			fail_msg("type 0x%04x, 0x%04x", kinds[i].type, kinds[i].tagged);
		if (kinds[i].goes_on)
			rte_pktmbuf_free(out);
		lost += !kinds[i].goes_on;
	}
	/* A frame too short to have a type. */
	m = rte_pktmbuf_alloc(test_eal_pool());
	urn_impair_push(imp, &m, 1, 100);
	assert_int_equal(urn_impair_pop(imp, &out, 1, 100), 0);
	assert_int_equal(count(imp, URN_IMPAIR_FCS), lost + 1);
	check_balance(imp);
	urn_impair_destroy(imp);
}

/* ---- reproducibility */

/* Hash of a frame that came out: 8 bytes a frame are enough to compare runs. */
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

/* 2000 frames through all impairments; pop after every `every` frames, at most `max` at a time. */
static unsigned int
run(struct urn_impair *imp, unsigned int every, unsigned int max, uint64_t *out)
{
	struct rte_mbuf *m, *got[64];
	unsigned int n = 0, k;
	uint64_t now = 0;

	for (uint32_t i = 0; i < 2000; i++) {
		now = i * 40ull;
		m = frame_make(i, 60 + i % 40);
		if (i % 8 == 3)
			set_type(m, 0x0806);
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

/* The same frames, bytes and order however often pop is called, and for however many. */
static void
test_pace(void **state)
{
	static uint64_t a[8000], b[8000];
	struct urn_impair_config cfg = everything;
	unsigned int na, nb;

	(void)state;
	cfg.queue = 0; /* the number of frames inside does depend on pop */
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

/* Without drops the same frames are corrupted and duplicated as with drops. */
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

/* All impairments at once with a short queue: every frame is counted. */
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
		assert_non_null(urn_counter_text_in(&urn_impair_scope, i));
	}
	assert_null(urn_impair_counter_name(URN_IMPAIR_COUNTER_COUNT));
	assert_null(urn_counter_text_in(&urn_impair_scope, URN_IMPAIR_COUNTER_COUNT));
	urn_impair_destroy(imp);
}

/* A wire that only loses and reorders has a fast path of its own: the same frames in the same order. */
static void
test_short_way(void **state)
{
	struct urn_impair_config cfg = {.seed = 11, .drop = 0.1, .reorder = 0.2};
	uint32_t *out[2];
	unsigned int n[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct urn_impair *imp;

		/* A flap that never comes makes frames take the slow path. */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_drop),	     T(test_extremes),	  T(test_dup),
		T(test_corrupt),     T(test_corrupt_fcs), T(test_pace),
		T(test_independent), T(test_everything),  T(test_short_way),
	};

	return cmocka_run_group_tests_name("impair_chance", tests, NULL, NULL);
}
