/* SPDX-License-Identifier: BSD-3-Clause */
/* Tags of an adapter in a VLAN: on all that it sends, once, and on all that it takes (IEEE 802.1Q).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "engine/engine.h"

#include <string.h>

enum { LEN = 60, TCI = 3 << 13 | 100 };

static struct urn_tp *tp;
static struct urn_shard shard;
static unsigned int room;	 /* frames that the port takes in a turn */
static uint8_t sent[8][LEN + 8]; /* frames that the port took */
static uint32_t sent_len[8];
static unsigned int sent_n;

uint16_t __wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
				 uint16_t n);

uint16_t
__wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t taken = (uint16_t)RTE_MIN(n, room);

	(void)p;
	(void)queue;
	for (uint16_t i = 0; i < taken; i++) {
		assert_true(sent_n < 8 && m[i]->data_len <= sizeof(sent[0]));
		sent_len[sent_n] = m[i]->data_len;
		memcpy(sent[sent_n++], rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
		rte_pktmbuf_free(m[i]);
	}
	return taken;
}

static int
setup(void **state)
{
	static struct urn_port port;

	(void)state;
	test_eal_pool();
	tp = calloc(1, sizeof(*tp));
	assert_non_null(tp);
	shard = (struct urn_shard){.tp = tp, .port = &port};
	shard.tag = (struct urn_tag){.send = true, .only = true, .tci = TCI};
	room = 8;
	sent_n = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	free(tp);
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), TEST_EAL_MBUFS);
	return 0;
}

/* A frame, with or without a tag, whose bytes behind the addresses and tag are `fill`. */
static struct rte_mbuf *
frame(int tci, uint8_t fill)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	uint8_t *f;

	assert_non_null(m);
	f = (uint8_t *)rte_pktmbuf_append(m, LEN + (tci >= 0 ? 4 : 0));
	assert_non_null(f);
	memset(f, fill, m->data_len);
	for (uint8_t i = 0; i < 12; i++)
		f[i] = i;
	if (tci >= 0)
		memcpy(f + 12, (const uint8_t[]){0x81, 0, (uint8_t)(tci >> 8), (uint8_t)tci}, 4);
	return m;
}

static void
expect_sent(unsigned int i, bool tagged, uint8_t fill)
{
	unsigned int at = tagged ? 16 : 12;

	assert_int_equal(sent_len[i], LEN + at - 12);
	for (uint8_t k = 0; k < 12; k++)
		assert_int_equal(sent[i][k], k);
	if (tagged)
		assert_memory_equal(sent[i] + 12, ((const uint8_t[]){0x81, 0, TCI >> 8, TCI & 255}),
				    4);
	for (unsigned int k = at; k < sent_len[i]; k++)
		assert_int_equal(sent[i][k], fill);
}

/* Each frame has the tag, once, when the port takes only some of them in a turn, too. */
static void
sends_tags(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		tp->tx[tp->tx_n++] = frame(-1, i);
	room = 1;
	urn_shard_flush(&shard);
	urn_shard_flush(&shard);
	room = 8;
	tp->tx[tp->tx_n++] = frame(-1, 4);
	urn_shard_flush(&shard);
	assert_int_equal(sent_n, 5);
	for (uint8_t i = 0; i < 5; i++)
		expect_sent(i, true, i);
	assert_int_equal(tp->c.v[URN_C_DROP_TX], 0);
}

/* Without a tag frames go as they are. */
static void
sends_none(void **state)
{
	(void)state;
	shard.tag = (struct urn_tag){0};
	tp->tx[tp->tx_n++] = frame(-1, 9);
	urn_shard_flush(&shard);
	assert_int_equal(sent_n, 1);
	expect_sent(0, false, 9);
}

/* A frame without room for the tag does not go into another VLAN: it is dropped, and counted. */
static void
no_room(void **state)
{
	struct rte_mbuf *m = frame(-1, 1);

	(void)state;
	assert_non_null(rte_pktmbuf_prepend(m, rte_pktmbuf_headroom(m)));
	tp->tx[tp->tx_n++] = m;
	urn_shard_flush(&shard);
	assert_int_equal(sent_n, 0);
	assert_int_equal(tp->c.v[URN_C_DROP_TX], 1);
}

/* Frames of the adapter's VLAN alone are taken, whatever their priority, and without the tag. */
static void
takes_its_own(void **state)
{
	struct rte_mbuf *m[7] = {frame(TCI, 1),	    frame(-1, 2),
				 frame(100, 3),	    frame(101, 4),
				 frame(3 << 13, 5), frame(7 << 13 | 0x1000 | 100, 6),
				 frame(0xfff, 7)};
	static const uint8_t want[] = {1, 3, 6};
	unsigned int n = urn_shard_untag(&shard, m, 7);

	(void)state;
	assert_int_equal(n, 3);
	for (unsigned int i = 0; i < n; i++) {
		const uint8_t *f = rte_pktmbuf_mtod(m[i], const uint8_t *);

		assert_int_equal(m[i]->pkt_len, LEN);
		assert_int_equal(f[0], 0);
		assert_int_equal(f[11], 11);
		assert_int_equal(f[12], want[i]);
		rte_pktmbuf_free(m[i]);
	}
	assert_int_equal(tp->c.v[URN_C_DROP_VLAN], 4);
	assert_int_equal(tp->c.v[URN_C_RX_PACKETS], 4);
	assert_int_equal(tp->c.v[URN_C_RX_BYTES], 4 * LEN + (3 + 3) * 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sends_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(sends_none, setup, teardown),
		cmocka_unit_test_setup_teardown(no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_its_own, setup, teardown),
	};

	return cmocka_run_group_tests_name("engine_vlan", tests, NULL, NULL);
}
