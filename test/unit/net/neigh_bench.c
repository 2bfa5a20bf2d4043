/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh_bench.h"

#include "wire/pkt.h"

struct urn_neigh *nb;
uint8_t buf[L3_ROOM];
const uint8_t us_group[16] = { 0xff, 0x02, [11] = 1, 0xff, 0xaa, 0xbb, 0x01 };
const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

int
setup(void **state)
{
	uint8_t own[3][16];

	(void)state;
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_global, 16);
	memcpy(own[2], us_ll, 16);
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	return nb != NULL ? 0 : -1;
}

int
teardown(void **state)
{
	(void)state;
	urn_neigh_destroy(nb);
	/* Every mbuf is back in the pool. */
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

int
input(uint32_t len, uint64_t now, enum urn_counter *counter)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	int reply;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), buf, len);
	urn_wire_parse(m);
	reply = urn_neigh_input(nb, m, now);
	if (counter != NULL)
		*counter = (enum urn_counter)urn_pkt(m)->drop;
	if (reply)
		memcpy(buf, rte_pktmbuf_mtod(m, void *), rte_pktmbuf_data_len(m));
	rte_pktmbuf_free(m);
	return reply;
}

void
arp_answer(const uint8_t *gid, const uint8_t *mac, uint64_t now)
{
	assert_int_equal(input(l3_arp(buf, 2, mac, gid, us_v4), now, NULL), 0);
}

unsigned int
poll_all(uint64_t now, unsigned int max)
{
	struct rte_mbuf *out[64];
	unsigned int n = urn_neigh_poll(nb, now, test_eal_pool(), out, max);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		memcpy(buf, rte_pktmbuf_mtod(out[i], void *), rte_pktmbuf_data_len(out[i]));
		assert_true(l3_sums_ok(buf, rte_pktmbuf_data_len(out[i])));
		rte_pktmbuf_free(out[i]);
	}
	return n;
}

void
expect_lookup(const uint8_t *gid, int want, const uint8_t *want_mac)
{
	uint8_t mac[6] = { 0 };

	assert_int_equal(urn_neigh_lookup(nb, gid, mac), want);
	if (want_mac != NULL)
		assert_memory_equal(mac, want_mac, 6);
}

void
expect_hop(const uint8_t *gid, const uint8_t *want)
{
	uint8_t hop[16];

	assert_int_equal(urn_neigh_hop(nb, gid, hop), want != NULL);
	if (want != NULL)
		assert_memory_equal(hop, want, 16);
}

void
make_reachable(const uint8_t *gid, const uint8_t *mac, uint64_t now)
{
	expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(now, 1), 1);
	arp_answer(gid, mac, now);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_REACHABLE);
}
