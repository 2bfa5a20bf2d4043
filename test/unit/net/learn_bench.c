/* SPDX-License-Identifier: BSD-3-Clause */
#include "learn_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct urn_neigh *nb;
struct urn_learn *lk;
uint8_t buf[LINK_FRAME_ROOM];
uint32_t seen;

struct urn_learn_config
config(void)
{
	struct urn_learn_config cfg = {.neigh = nb, .offer = URN_LINK_F_SACK, .arw = URN_LINK_ARW_64,
				      .icrc = true, .seed = 7};

	memcpy(cfg.mac, us_mac, 6);
	return cfg;
}

int
setup(void **state)
{
	struct urn_learn_config cfg;
	uint8_t own[3][16];

	(void)state;
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_global, 16);
	memcpy(own[2], us_ll, 16);
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	if (!nb || urn_neigh_add_static(nb, peer_v4, peer_mac) ||
	    urn_neigh_add_static(nb, peer_ll, peer_mac))
		return -1;
	cfg = config();
	lk = urn_learn_create(&cfg);
	seen = 0;
	return lk ? 0 : -1;
}

int
teardown(void **state)
{
	(void)state;
	urn_learn_destroy(lk);
	urn_neigh_destroy(nb);
	/* Every mbuf is back in the pool. */
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

enum urn_counter
input(uint32_t len, uint64_t now, int *reply)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	enum urn_counter c;
	int r;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), buf, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	r = urn_learn_input(lk, m, now);
	c = (enum urn_counter)urn_pkt(m)->drop;
	if (r) {
		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(m));
		memcpy(buf, rte_pktmbuf_mtod(m, void *), rte_pktmbuf_data_len(m));
	}
	if (reply)
		*reply = r;
	else
		assert_false(r);
	rte_pktmbuf_free(m);
	return c;
}

enum urn_counter
from(const uint8_t *gid, const struct link_spec *s, uint64_t now, int *reply)
{
	const uint8_t *us = urn_neigh_source(nb, gid);

	return input(link_frame(buf, s, peer_mac, gid, us_mac, us), now, reply);
}

void
request(const uint8_t *gid, const struct link_spec *s, uint64_t now, enum urn_counter why)
{
	int reply = 0;

	assert_int_equal(from(gid, s, now, &reply), why);
	assert_true(reply);
}

unsigned int
poll_max(uint64_t now, unsigned int max)
{
	static struct rte_mbuf *out[URN_LEARN_ENTRIES];
	unsigned int n = urn_learn_poll(lk, now, test_eal_pool(), out, max);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(urn_wire_parse(out[i]), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(out[i]));
		memcpy(buf, rte_pktmbuf_mtod(out[i], void *), rte_pktmbuf_data_len(out[i]));
		rte_pktmbuf_free(out[i]);
	}
	return n;
}

void
expect_no_news(void)
{
	struct urn_learn_news n;

	assert_int_equal(urn_learn_news(lk, &seen, &n, 1), 0);
	assert_int_equal(seen, urn_learn_generation(lk));
}

void
expect_news(const uint8_t *gid, uint32_t features)
{
	struct urn_learn_news n[2];

	assert_int_not_equal(seen, urn_learn_generation(lk));
	assert_int_equal(urn_learn_news(lk, &seen, n, 2), 1);
	assert_memory_equal(n[0].gid, gid, 16);
	assert_int_equal(n[0].features, features);
	expect_no_news();
}

uint64_t
ask(const uint8_t *gid, uint64_t now)
{
	urn_learn_features(lk, gid);
	expect_poll(now, 1);
	return link_tid(buf);
}

void
make_known(const uint8_t *gid, uint64_t now)
{
	struct link_spec s = link_good(1, ask(gid, now));

	assert_int_equal(from(gid, &s, now, NULL), URN_C_LINK_RESP_RX);
	expect_state(gid, KNOWN);
	expect_news(gid, URN_LINK_F_SACK);
}
