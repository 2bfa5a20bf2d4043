/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_bench.h"

#include <math.h>

const struct urn_impair_config everything = {
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

struct urn_impair *
make(const struct urn_impair_config *cfg)
{
	struct urn_impair *imp = urn_impair_create(cfg, 0, test_eal_pool());

	assert_non_null(imp);
	return imp;
}

uint64_t
count(const struct urn_impair *imp, enum urn_impair_counter c)
{
	return urn_impair_counters(imp)->v[c];
}

void
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

unsigned int
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

unsigned int
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

void
assert_about(uint64_t got, double n, double p)
{
	assert_true(fabs((double)got - n * p) < 5 * sqrt(n * p * (1 - p)) + 1);
}

uint32_t
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
