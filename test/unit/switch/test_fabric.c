/* SPDX-License-Identifier: BSD-3-Clause */
/* Switches on real ports: net_ring pairs, the test at the far end of each. */
#include "test/unit/pmd_glue/harness.h"

#include "pmd_glue/pool.h"
#include "switch/fabric.h"
#include "wire/unsealed.h"

#include <errno.h>
#include <string.h>

#define MS 1000000ull
enum { DEPTH = 32 }; /* entries of a ring, which holds one frame less */

struct fabric_bench {
	struct urn_fabric *f;
	struct urn_switch *sw;
	struct urn_port *host[2], *plug[2];
	struct rte_mempool *copies;
};

static struct rte_mempool *
copies_make(void)
{
	const struct urn_pool_config cfg = {.name = "copies", .mbufs = 1023};
	struct urn_err err = {""};
	struct rte_mempool *pool = urn_pool_create(&cfg, &err);

	check_ok(pool ? 0 : -1, &err);
	return pool;
}

/* One switch with two ports, each a short ring to a host. lossless: NULL: no priority is */
static void
bench_open_as(struct fabric_bench *b, const struct urn_lossless_config *lossless)
{
	struct urn_switch_port_config port = {.credits = true};
	struct urn_switch_config sw = {0};
	struct urn_err err = {""};

	memset(b, 0, sizeof(*b));
	eal_up();
	b->copies = copies_make();
	b->f = urn_fabric_create(b->copies);
	sw.copies = b->copies;
	if (lossless)
		sw.lossless = *lossless;
	b->sw = urn_switch_create(&sw);
	check(urn_fabric_add(b->f, b->sw) == 0);
	for (uint16_t i = 0; i < 2; i++) {
		struct urn_port_config cfg[2] = {port_cfg("host", ""), port_cfg("plug", "")};
		struct urn_port *pair[2];

		for (int k = 0; k < 2; k++) {
			cfg[k].rx_desc = cfg[k].tx_desc = DEPTH;
			cfg[k].mbufs = 4095;
		}
		check_ok(urn_port_open_ring_pair(cfg, pair, &err), &err);
		b->host[i] = pair[0];
		b->plug[i] = pair[1];
		check(urn_switch_add_port(b->sw, &port) == i);
		check(urn_fabric_plug(b->f, b->sw, i, b->plug[i], true) == 0);
		check(urn_switch_port_is_up(b->sw, i));
	}
}

static void
bench_open(struct fabric_bench *b)
{
	bench_open_as(b, NULL);
}

static void
bench_close(struct fabric_bench *b)
{
	urn_fabric_destroy(b->f);
	check(rte_mempool_in_use_count(b->copies) == 0);
	for (int i = 0; i < 2; i++) {
		check(rte_mempool_in_use_count(b->host[i]->pool) == 0);
		urn_port_close(b->host[i]);
		urn_port_close(b->plug[i]);
	}
	urn_pool_free(b->copies);
}

static uint64_t
count(const struct fabric_bench *b, uint16_t port, enum urn_fabric_counter c)
{
	return urn_fabric_counters(b->f, b->sw, port)->v[c];
}

/* Send numbered broadcasts from host 0; the test holds references to half of them. */
static void
send_numbers(struct fabric_bench *b, uint32_t first, uint32_t n, struct rte_mbuf **shared)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frame_make(b->host[0], 100, first + i);

		memcpy(rte_pktmbuf_mtod_offset(m, void *, 20), &(uint32_t){first + i}, 4);
		if (shared) {
			rte_mbuf_refcnt_update(m, 1);
			shared[i] = m;
		}
		frame_send(b->host[0], 0, m);
	}
}

/* Receive at most max frames at host 1; they come in order from *next on. */
static unsigned int
receive_numbers(struct fabric_bench *b, uint32_t *next, unsigned int max)
{
	struct rte_mbuf *m;
	unsigned int n = 0;
	uint32_t number;

	while (n < max && urn_port_rx(b->host[1], 0, &m, 1) == 1) {
		memcpy(&number, rte_pktmbuf_mtod_offset(m, void *, 20), 4);
		check(number == (*next)++);
		rte_pktmbuf_free(m);
		n++;
	}
	return n;
}

static void
fabric_crosses(void *arg)
{
	struct fabric_bench b;
	uint32_t next = 0;

	(void)arg;
	bench_open(&b);
	check(urn_fabric_poll(b.f, 0) == 0);
	send_numbers(&b, 0, 20, NULL);
	check(urn_fabric_poll(b.f, 1) == 40);
	check(receive_numbers(&b, &next, 100) == 20);
	check(urn_fabric_next(b.f) == UINT64_MAX);
	/* The switch delays; the fabric tells it the time. */
	check(urn_impair_set(urn_switch_impair(b.sw, 1, URN_SWITCH_OUT),
			     &(struct urn_impair_config){.delay_ns = 500}) == 0);
	send_numbers(&b, 20, 1, NULL);
	check(urn_fabric_poll(b.f, 100) == 1);
	check(urn_fabric_next(b.f) == 600);
	check(urn_fabric_poll(b.f, 599) == 0 && receive_numbers(&b, &next, 1) == 0);
	check(urn_fabric_poll(b.f, 600) == 1 && receive_numbers(&b, &next, 1) == 1);
	bench_close(&b);
}

static uint16_t
on_rx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, uint16_t max, void *arg)
{
	(void)port;
	(void)queue;
	(void)m;
	(void)max;
	(void)arg;
	return n;
}

static uint16_t
on_tx(uint16_t port, uint16_t queue, struct rte_mbuf *m[], uint16_t n, void *arg)
{
	return on_rx(port, queue, m, n, n, arg);
}

/* Make a frame of IPv4 without ICRC, which has the mark. */
static struct rte_mbuf *
unsealed_make(struct fabric_bench *b)
{
	struct rte_mbuf *m = frame_make(b->host[0], 100, 100);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	f[12] = 0x08;
	f[13] = 0x00;
	f[14] = 0x45;
	m->ol_flags |= urn_unsealed_bit();
	return m;
}

/* Bits in which a frame differs from one without ICRC, once that is sealed or as it is. */
static unsigned int
differs(struct fabric_bench *b, const struct rte_mbuf *m, bool sealed)
{
	struct rte_mbuf *want = unsealed_make(b);
	unsigned int bits = 0;

	if (sealed)
		urn_wire_seal(want);
	for (uint32_t i = 0; i < want->data_len; i++)
		bits += (unsigned int)__builtin_popcount(
			*rte_pktmbuf_mtod_offset(m, uint8_t *, i) ^
			*rte_pktmbuf_mtod_offset(want, uint8_t *, i));
	rte_pktmbuf_free(want);
	return bits;
}

/* Let a frame without ICRC cross. returns: it, at host 1 */
static struct rte_mbuf *
unsealed_cross(struct fabric_bench *b, uint64_t now)
{
	struct rte_mbuf *m = unsealed_make(b);

	frame_send(b->host[0], 0, m);
	check(urn_fabric_poll(b->f, now) == 2);
	check(urn_port_rx(b->host[1], 0, &m, 1) == 1);
	return m;
}

/*
 * A frame without ICRC stays so from one adapter of the thread to another, and gets its ICRC where
 * another host or a capture sees it, or a wire corrupts it. The mark of a frame that another host
 * sends is not believed.
 */
static void
fabric_unsealed(void *arg)
{
	const struct rte_eth_rxtx_callback *cb;
	struct fabric_bench b;
	struct rte_mbuf *m;
	uint64_t bit;

	(void)arg;
	bench_open(&b);
	bit = urn_unsealed_bit();
	check(bit != 0 && urn_fabric_unseal(b.f, b.sw, 2, NULL) == -EINVAL);
	for (unsigned int way = 0; way < 6; way++) {
		bool in = way != 1, out = way != 2, seen = way == 3 || way == 4,
		     corrupts = way == 5;
		bool sealed = in && (!out || seen || corrupts);

		check(urn_fabric_unseal(b.f, b.sw, 0, in ? b.host[0] : NULL) == 0);
		check(urn_fabric_unseal(b.f, b.sw, 1, out ? b.host[1] : NULL) == 0);
		check(urn_impair_set(urn_switch_impair(b.sw, 1, URN_SWITCH_OUT),
				     &(struct urn_impair_config){.corrupt = corrupts}) == 0);
		cb = way == 3	? rte_eth_add_rx_callback(b.host[1]->id, 0, on_rx, NULL)
		     : way == 4 ? rte_eth_add_tx_callback(b.plug[1]->id, 0, on_tx, NULL)
				: NULL;
		check(seen == (cb != NULL));
		m = unsealed_cross(&b, way);
		check(((m->ol_flags & bit) != 0) == (in && !sealed));
		check(differs(&b, m, sealed) == corrupts);
		rte_pktmbuf_free(m);
		if (way == 3)
			rte_eth_remove_rx_callback(b.host[1]->id, 0, cb);
		else if (way == 4)
			rte_eth_remove_tx_callback(b.plug[1]->id, 0, cb);
	}
	bench_close(&b);
}

/* Open the bench with small accounts, for frames of len bytes. *cfg: has the priorities, gets the
 * rest */
static void
bench_open_tight(struct fabric_bench *b, struct urn_lossless_config *cfg, uint32_t len)
{
	urn_lossless_preset(cfg);
	cfg->share = 1000;
	cfg->xoff = 4000;
	cfg->xon = 2000;
	cfg->headroom = URN_SWITCH_BURST * len;
	cfg->no_pfc = true;
	bench_open_as(b, cfg);
}

/*
 * A host that knows no flow control sends to one that takes a frame a poll. Credits leave the
 * frames in the sender's ring, so that none is lost, and the switch holds no more than its accounts
 * may.
 */
static void
fabric_lossless(void *arg)
{
	enum { FRAMES = 3000, LEN = 100 };
	struct urn_lossless_config cfg = {.priorities = 1};
	struct urn_switch_account a;
	uint32_t sent = 0, next = 0;
	struct fabric_bench b;

	(void)arg;
	bench_open_tight(&b, &cfg, LEN);
	for (uint64_t now = 1; next < FRAMES && now < 100ull * FRAMES; now++) {
		for (; sent < FRAMES; sent++) {
			struct rte_mbuf *m = frame_make(b.host[0], LEN, sent);

			memcpy(rte_pktmbuf_mtod_offset(m, void *, 20), &sent, 4);
			if (urn_port_tx(b.host[0], 0, &m, 1) == 0) {
				rte_pktmbuf_free(m);
				break;
			}
		}
		urn_fabric_poll(b.f, now);
		receive_numbers(&b, &next, 1);
	}
	check(next == FRAMES);
	check(count(&b, 0, URN_FABRIC_RX_PARKED) > 0);
	check(count(&b, 0, URN_FABRIC_RX_HELD) > 0);
	check(urn_switch_account(b.sw, 0, 0, &a) && a.bytes == 0 && a.peak > cfg.xoff &&
	      a.peak <= cfg.share + cfg.xoff + cfg.headroom);
	check(urn_impair_counters(urn_switch_impair(b.sw, 1, URN_SWITCH_OUT))
		      ->v[URN_IMPAIR_QUEUE] == 0);
	bench_close(&b);
}

/*
 * A host sends frames of two priorities by turns, and the one is paused at the output: its frames
 * wait beside the ring, in order, and those of the other priority pass, all of them.
 */
static void
fabric_other_priority(void *arg)
{
	enum { FRAMES = 400, LEN = 100 };
	struct urn_lossless_config cfg = {.priorities = 0x0a};
	struct rte_mbuf *m;
	struct fabric_bench b;
	uint32_t next[2] = {0, 1}, number;
	unsigned int sent = 0, got = 0;
	uint64_t now = 1;

	(void)arg;
	bench_open_tight(&b, &cfg, LEN);
	urn_switch_pause(b.sw, 1, 1, true, now);
	for (; now < 4 * FRAMES; now++) {
		if (now == 3 * FRAMES)
			urn_switch_pause(b.sw, 1, 1, false, now);
		for (; sent < FRAMES; sent++) {
			m = frame_make(b.host[0], LEN, sent);
			rte_pktmbuf_mtod(m, uint8_t *)[12] = 0x08;
			rte_pktmbuf_mtod(m, uint8_t *)[13] = 0;
			rte_pktmbuf_mtod(m, uint8_t *)[15] = sent & 1 ? 24 << 2 : 8 << 2;
			memcpy(rte_pktmbuf_mtod_offset(m, void *, 20), &sent, 4);
			if (urn_port_tx(b.host[0], 0, &m, 1) == 0) {
				rte_pktmbuf_free(m);
				break;
			}
		}
		urn_fabric_poll(b.f, now);
		while (urn_port_rx(b.host[1], 0, &m, 1) == 1) {
			memcpy(&number, rte_pktmbuf_mtod_offset(m, void *, 20), 4);
			check(number == next[number & 1]);
			next[number & 1] += 2;
			rte_pktmbuf_free(m);
			got++;
		}
		if (now == 3 * FRAMES - 1)
			check(got == FRAMES / 2 && next[0] == 0);
	}
	check(got == FRAMES);
	check(count(&b, 0, URN_FABRIC_RX_PARKED) > 0);
	check(count(&b, 0, URN_FABRIC_RX_HELD) == 0);
	check(count(&b, 0, URN_FABRIC_DROP_RX_NO_MBUF) == 0);
	bench_close(&b);
}

/* A slow host gets all frames, in order; shared frames are released meanwhile. */
static void
fabric_partial(void *arg)
{
	struct rte_mbuf *shared[100];
	struct fabric_bench b;
	uint32_t next = 0, sent = 0, got = 0;
	uint64_t now = 0;

	(void)arg;
	bench_open(&b);
	for (; sent < 100; sent += 20) {
		send_numbers(&b, sent, 20, shared + sent);
		urn_fabric_poll(b.f, ++now);
	}
	check(urn_switch_queued(b.sw) > 0);
	check(urn_fabric_next(b.f) == 0);
	check(count(&b, 1, URN_FABRIC_TX_PARTIAL) == 1);
	/* The frames that the port did not take, and those behind them in the queue. */
	check(count(&b, 1, URN_FABRIC_TX_COPIED) == 40 - (DEPTH - 1));
	for (uint32_t i = 0; i < 100; i++)
		check(rte_mbuf_refcnt_read(shared[i]) == (i < DEPTH - 1 ? 2 : 1));
	while (got < 100) {
		got += receive_numbers(&b, &next, 3);
		urn_fabric_poll(b.f, ++now);
	}
	check(got == 100 && urn_switch_queued(b.sw) == 0);
	for (uint32_t i = 0; i < 100; i++)
		rte_pktmbuf_free(shared[i]);
	bench_close(&b);
}

/* A port takes nothing for long: its frames are given up one by one, and counted. */
static void
fabric_stuck(void *arg)
{
	struct fabric_bench b;
	uint32_t next = 0;

	(void)arg;
	bench_open(&b);
	send_numbers(&b, 0, 20, NULL);
	urn_fabric_poll(b.f, 0);
	send_numbers(&b, 20, 20, NULL);
	urn_fabric_poll(b.f, 0);
	check(urn_fabric_poll(b.f, 100 * MS) == 0);
	check(count(&b, 1, URN_FABRIC_DROP_TX_STUCK) == 0);
	urn_fabric_poll(b.f, 100 * MS + 1);
	check(count(&b, 1, URN_FABRIC_DROP_TX_STUCK) == 1);
	urn_fabric_poll(b.f, 150 * MS);
	check(count(&b, 1, URN_FABRIC_DROP_TX_STUCK) == 1);
	check(receive_numbers(&b, &next, 100) == DEPTH - 1);
	urn_fabric_poll(b.f, 151 * MS);
	next++;
	check(receive_numbers(&b, &next, 100) == 40 - DEPTH);
	/* The bench can be closed while frames wait for the port. */
	send_numbers(&b, 40, 20, NULL);
	urn_fabric_poll(b.f, 152 * MS);
	send_numbers(&b, 60, 20, NULL);
	urn_fabric_poll(b.f, 152 * MS);
	next = 40;
	urn_fabric_destroy(b.f);
	check(receive_numbers(&b, &next, 100) == DEPTH - 1);
	b.f = NULL;
	bench_close(&b);
}

/* A port that takes a frame from time to time is not stuck. */
static void
fabric_slow(void *arg)
{
	struct fabric_bench b;
	uint32_t next = 0;

	(void)arg;
	bench_open(&b);
	for (int i = 0; i < 2; i++) {
		send_numbers(&b, 20 * (uint32_t)i, 20, NULL);
		urn_fabric_poll(b.f, 0);
	}
	for (uint64_t t = 80; t <= 400; t += 80) {
		check(receive_numbers(&b, &next, 1) == 1);
		check(urn_fabric_poll(b.f, t * MS) == 1);
		check(urn_fabric_poll(b.f, (t + 30) * MS) == 0);
	}
	check(count(&b, 1, URN_FABRIC_DROP_TX_STUCK) == 0);
	check(receive_numbers(&b, &next, 100) == DEPTH - 1);
	bench_close(&b);
}

/* The cable of a host is pulled, and put back. */
static void
fabric_link(void *arg)
{
	struct urn_err err = {""};
	struct fabric_bench b;

	(void)arg;
	bench_open(&b);
	check_ok(urn_port_stop(b.host[1], &err), &err);
	urn_fabric_poll(b.f, 100 * MS);
	check(!urn_switch_port_is_up(b.sw, 1) && urn_switch_port_is_up(b.sw, 0));
	check(count(&b, 1, URN_FABRIC_LINK_CHANGES) == 1);
	check_ok(urn_port_start(b.host[1], &err), &err);
	/* The fabric checks the link only from time to time. */
	urn_fabric_poll(b.f, 100 * MS + 1);
	check(!urn_switch_port_is_up(b.sw, 1));
	urn_fabric_poll(b.f, 120 * MS);
	check(urn_switch_port_is_up(b.sw, 1));
	bench_close(&b);
}

static void
fabric_plugs(void *arg)
{
	struct urn_switch_port_config port = {0};
	struct urn_switch *other = urn_switch_create(&(struct urn_switch_config){.name = "b"});
	struct fabric_bench b;

	(void)arg;
	bench_open(&b);
	check(urn_fabric_plug(b.f, b.sw, 0, b.plug[0], true) == -EBUSY);
	check(urn_fabric_plug(b.f, b.sw, 2, b.plug[0], true) == -EINVAL);
	check(urn_switch_add_port(b.sw, &port) == 2 && urn_switch_add_port(other, &port) == 0);
	check(urn_switch_link(b.sw, 2, other, 0) == 0);
	check(urn_fabric_plug(b.f, b.sw, 2, b.plug[0], true) == -EINVAL);
	check(urn_fabric_counters(b.f, b.sw, 2) == NULL);
	check(urn_fabric_add(b.f, other) == 1);
	check(urn_fabric_max_frame(b.plug[0]) >= 4096 + 92);
	for (unsigned int i = 2; i < URN_FABRIC_MAX_SWITCHES; i++)
		check(urn_fabric_add(b.f, urn_switch_create(&(struct urn_switch_config){0})) ==
		      (int)i);
	other = urn_switch_create(&(struct urn_switch_config){0});
	check(urn_fabric_add(b.f, other) == -ENOSPC);
	urn_switch_destroy(other);
	for (unsigned int i = 0; i < URN_FABRIC_COUNTER_COUNT; i++)
		check(urn_fabric_counter_name(i) != NULL && urn_counter_text_in(&urn_fabric_scope, i) != NULL);
	check(urn_fabric_counter_name(URN_FABRIC_COUNTER_COUNT) == NULL);
	check(urn_counter_text_in(&urn_fabric_scope, URN_FABRIC_COUNTER_COUNT) == NULL);
	bench_close(&b);
	urn_fabric_destroy(NULL);
}

CHILD_TEST(fabric_crosses)
CHILD_TEST(fabric_unsealed)
CHILD_TEST(fabric_lossless)
CHILD_TEST(fabric_other_priority)
CHILD_TEST(fabric_partial)
CHILD_TEST(fabric_stuck)
CHILD_TEST(fabric_slow)
CHILD_TEST(fabric_link)
CHILD_TEST(fabric_plugs)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fabric_crosses),
		cmocka_unit_test(test_fabric_unsealed),
		cmocka_unit_test(test_fabric_partial),
		cmocka_unit_test(test_fabric_stuck),
		cmocka_unit_test(test_fabric_slow),
		cmocka_unit_test(test_fabric_link),
		cmocka_unit_test(test_fabric_lossless),
		cmocka_unit_test(test_fabric_other_priority),
		cmocka_unit_test(test_fabric_plugs),
	};

	return cmocka_run_group_tests_name("fabric", tests, NULL, NULL);
}
