/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch: the ports that get a frame, or a copy, and the counters. */
#include "frames.h"

#include "switch/switch.h"

#include <errno.h>

#define MS 1000000ull
#define EVERYBODY 0xffu /* frame_to(): the broadcast address */

static struct urn_switch *
make_cfg(struct urn_switch_config cfg, unsigned int ports)
{
	struct urn_switch_port_config port = {0};
	struct urn_switch *sw;

	cfg.copies = cfg.copies ? cfg.copies : test_eal_pool();
	sw = urn_switch_create(&cfg);
	assert_non_null(sw);
	for (unsigned int i = 0; i < ports; i++)
		assert_int_equal(urn_switch_add_port(sw, &port), i);
	return sw;
}

static struct urn_switch *
make(unsigned int ports)
{
	return make_cfg((struct urn_switch_config){.name = "s"}, ports);
}

static void
host_mac(uint8_t mac[6], unsigned int host)
{
	memset(mac, host == EVERYBODY ? 0xff : 0, 6);
	if (host != EVERYBODY) {
		mac[0] = 2;
		mac[5] = (uint8_t)host;
	}
}

/* A frame from one host to another: their numbers become addresses. */
static struct rte_mbuf *
frame_to(unsigned int dst, unsigned int src, uint32_t number)
{
	struct rte_mbuf *m = frame_make(number, 100);
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	host_mac(p, dst);
	host_mac(p + 6, src);
	return m;
}

static void
put(struct urn_switch *sw, uint16_t port, struct rte_mbuf *m, uint64_t now)
{
	urn_switch_input(sw, port, &m, 1, now);
}

/* Count and free the frames that come out at a port. The last one's number is in *number. */
static unsigned int
take(struct urn_switch *sw, uint16_t port, uint64_t now, uint32_t *number)
{
	struct rte_mbuf *m[8];
	unsigned int total = 0, n;

	while ((n = urn_switch_output(sw, port, m, 8, now)) > 0) {
		if (number)
			*number = frame_number(m[n - 1]);
		rte_pktmbuf_free_bulk(m, n);
		total += n;
	}
	return total;
}

static uint64_t
count(const struct urn_switch *sw, uint16_t port, enum urn_switch_counter c)
{
	return urn_switch_counters(sw, port)->v[c];
}

/* Count the frames at each port, as a string of digits, after one was put in. */
static const char *
where(struct urn_switch *sw, uint16_t port, struct rte_mbuf *m, uint64_t now)
{
	static char out[URN_SWITCH_MAX_PORTS + 1];
	unsigned int i;

	put(sw, port, m, now);
	for (i = 0; i < urn_switch_ports(sw); i++)
		out[i] = (char)('0' + take(sw, (uint16_t)i, now, NULL));
	out[i] = '\0';
	return out;
}

static void
test_learning(void **state)
{
	struct urn_switch *sw = make(4);

	(void)state;
	assert_string_equal(urn_switch_name(sw), "s");
	/* Unknown: to all others. Then known. */
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "0111");
	assert_string_equal(where(sw, 2, frame_to(1, 2, 0), 0), "1000");
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "0010");
	assert_int_equal(count(sw, 0, URN_SWITCH_RX_UNKNOWN), 1);
	assert_int_equal(count(sw, 0, URN_SWITCH_COPIES), 2);
	assert_int_equal(count(sw, 0, URN_SWITCH_LEARNED), 1);
	assert_int_equal(count(sw, 0, URN_SWITCH_RX_PACKETS), 2);
	assert_int_equal(count(sw, 0, URN_SWITCH_RX_BYTES), 200);
	assert_int_equal(count(sw, 2, URN_SWITCH_TX_PACKETS), 2);
	assert_int_equal(count(sw, 2, URN_SWITCH_TX_BYTES), 200);
	/* Behind the port it came from: it goes nowhere. */
	assert_string_equal(where(sw, 0, frame_to(1, 3, 0), 0), "0000");
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_SAME_PORT), 1);
	/* Host 2 moves. */
	assert_string_equal(where(sw, 3, frame_to(1, 2, 0), 0), "1000");
	assert_int_equal(count(sw, 3, URN_SWITCH_MOVED), 1);
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "0001");
	/* The address is forgotten after 300 s, and soon leaves the table. */
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 300001 * MS), "0111");
	for (int i = 0; i < 200; i++)
		urn_switch_run(sw, 300100 * MS + (uint64_t)i * 11 * MS);
	assert_int_equal(urn_fdb_count(urn_switch_fdb(sw)), 1);
	urn_switch_destroy(sw);
	urn_switch_destroy(NULL);
}

/* Learning and looking up within one burst: an address learnt from one frame counts for the next. */
static void
test_burst(void **state)
{
	struct urn_switch *sw = make(3);
	struct rte_mbuf *m[5] = {frame_to(2, 1, 0), frame_to(2, 1, 1), frame_to(1, 2, 2),
				 frame_to(2, 1, 3), frame_to(2, 3, 4)};

	(void)state;
	put(sw, 1, frame_to(EVERYBODY, 2, 9), 0);
	take(sw, 0, 0, NULL);
	take(sw, 2, 0, NULL);
	/* Host 2 appears at port 0 in the middle of the burst. */
	urn_switch_input(sw, 0, m, 5, 0);
	assert_int_equal(take(sw, 1, 0, NULL), 2);
	assert_int_equal(count(sw, 0, URN_SWITCH_MOVED), 1);
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_SAME_PORT), 3);
	assert_int_equal(urn_switch_queued(sw), 0);
	urn_switch_destroy(sw);
}

/* The look-up for the frame before does not count once that address has moved. */
static void
test_burst_moves(void **state)
{
	struct urn_switch *sw = make(3);
	struct rte_mbuf *m[2];

	(void)state;
	put(sw, 1, frame_to(EVERYBODY, 2, 9), 0);
	put(sw, 0, frame_to(EVERYBODY, 1, 9), 0);
	take(sw, 0, 0, NULL);
	take(sw, 1, 0, NULL);
	take(sw, 2, 0, NULL);
	m[0] = frame_to(2, 1, 0);
	m[1] = frame_to(2, 2, 1);
	urn_switch_input(sw, 0, m, 2, 0);
	assert_int_equal(take(sw, 1, 0, NULL), 1);
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_SAME_PORT), 1);
	urn_switch_destroy(sw);
}

/* A whole burst for one port, larger than a batch, stays in order. */
static void
test_order(void **state)
{
	struct urn_switch *sw = make(3);
	struct rte_mbuf *m[100], *out[100];

	(void)state;
	urn_fdb_set(urn_switch_fdb(sw), urn_mac((const uint8_t[6]){2, 0, 0, 0, 0, 7}), 1);
	urn_fdb_set(urn_switch_fdb(sw), urn_mac((const uint8_t[6]){2, 0, 0, 0, 0, 8}), 2);
	for (uint32_t i = 0; i < 100; i++)
		m[i] = frame_to(i % 10 == 3 ? 8 : 7, 1, i);
	memcpy(out, m, sizeof(out));
	urn_switch_input(sw, 0, m, 100, 0);
	assert_int_equal(urn_switch_output(sw, 1, m, 100, 0), 90);
	for (uint32_t i = 0, k = 0; i < 100; i++) {
		if (i % 10 == 3)
			continue;
		assert_ptr_equal(m[k], out[i]);
		rte_pktmbuf_free(m[k++]);
	}
	assert_int_equal(take(sw, 2, 0, NULL), 10);
	urn_switch_destroy(sw);
}

/* With one other port there is no copy; with more the last gets the frame itself. */
static void
test_flood(void **state)
{
	static const uint8_t multicast[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct urn_switch *sw = make(2);
	struct rte_mbuf *m = frame_to(EVERYBODY, 1, 5), *out, *orig = m;

	(void)state;
	put(sw, 1, m, 0);
	assert_int_equal(urn_switch_output(sw, 0, &out, 1, 0), 1);
	assert_ptr_equal(out, orig);
	rte_pktmbuf_free(out);
	assert_int_equal(count(sw, 1, URN_SWITCH_RX_BROADCAST), 1);
	assert_int_equal(count(sw, 1, URN_SWITCH_COPIES), 0);
	urn_switch_destroy(sw);

	sw = make(4);
	m = orig = frame_to(EVERYBODY, 1, 5);
	memcpy(rte_pktmbuf_mtod(m, void *), multicast, 6);
	put(sw, 1, m, 0);
	assert_int_equal(count(sw, 1, URN_SWITCH_RX_MULTICAST), 1);
	for (uint16_t i = 0; i < 4; i += i ? 1 : 2) {
		assert_int_equal(urn_switch_output(sw, i, &out, 1, 0), 1);
		assert_true((out == orig) == (i == 3));
		/* Each receiver may change its frame. */
		memset(rte_pktmbuf_mtod_offset(out, void *, 20), i, 10);
		assert_int_equal(out->pkt_len, 100);
		if (i != 3)
			assert_int_equal(frame_number(out), 5);
		rte_pktmbuf_free(out);
	}
	urn_switch_destroy(sw);
	/* No other port. */
	sw = make(1);
	assert_string_equal(where(sw, 0, frame_to(EVERYBODY, 1, 0), 0), "0");
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_NO_PORT), 1);
	urn_switch_destroy(sw);
}

static void
test_bad(void **state)
{
	static const uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0x0f};
	struct urn_switch *sw = make(3);
	struct rte_mbuf *m = frame_make(0, 18);

	(void)state;
	rte_pktmbuf_trim(m, 5);
	assert_string_equal(where(sw, 0, m, 0), "000");
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_RUNT), 1);
	assert_string_equal(where(sw, 0, frame_to(1, EVERYBODY, 0), 0), "000");
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_SOURCE), 1);
	m = frame_to(1, 2, 0);
	memcpy(rte_pktmbuf_mtod(m, void *), reserved, 6);
	assert_string_equal(where(sw, 0, m, 0), "000");
	assert_int_equal(count(sw, 0, URN_SWITCH_DROP_RESERVED), 1);
	m = frame_to(1, 2, 0);
	memcpy(rte_pktmbuf_mtod(m, void *), reserved, 6);
	rte_pktmbuf_mtod(m, uint8_t *)[5] = 0x10;
	assert_string_equal(where(sw, 0, m, 0), "011");
	/* A header over two segments is valid. */
	m = frame_to(1, 4, 0);
	rte_pktmbuf_trim(m, 92);
	assert_int_equal(rte_pktmbuf_chain(m, frame_make(0, 50)), 0);
	assert_string_equal(where(sw, 1, m, 0), "101");
	put(sw, 3, frame_make(0, 60), 0);
	assert_int_equal(urn_switch_output(sw, 3, &m, 1, 0), 0);
	assert_null(urn_switch_counters(sw, 3));
	assert_null(urn_switch_impair(sw, 3, URN_SWITCH_IN));
	assert_null(urn_switch_port_name(sw, 3));
	urn_switch_destroy(sw);
}

static void
test_static(void **state)
{
	struct urn_switch *sw = make_cfg((struct urn_switch_config){.no_learning = true}, 3);
	uint8_t mac[6];

	(void)state;
	host_mac(mac, 1);
	assert_int_equal(urn_fdb_set(urn_switch_fdb(sw), urn_mac(mac), 0), 0);
	assert_string_equal(where(sw, 1, frame_to(1, 2, 0), 0), "100");
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "011");
	urn_switch_destroy(sw);
	/* A host that sends from an address fixed elsewhere does not get its frames. */
	sw = make_cfg((struct urn_switch_config){.fdb = {.max = 2}}, 3);
	assert_int_equal(urn_fdb_set(urn_switch_fdb(sw), urn_mac(mac), 0), 0);
	assert_string_equal(where(sw, 1, frame_to(2, 1, 0), 0), "101");
	assert_int_equal(count(sw, 1, URN_SWITCH_LEARN_STATIC), 1);
	assert_string_equal(where(sw, 1, frame_to(1, 2, 0), 0), "100");
	assert_string_equal(where(sw, 1, frame_to(1, 3, 0), 0), "100");
	assert_int_equal(count(sw, 1, URN_SWITCH_LEARN_FULL), 1);
	urn_switch_destroy(sw);
}

static void
test_down(void **state)
{
	struct urn_switch *sw = make(3);

	(void)state;
	assert_string_equal(where(sw, 2, frame_to(EVERYBODY, 2, 0), 0), "110");
	urn_switch_port_set_up(sw, 2, false);
	assert_false(urn_switch_port_is_up(sw, 2));
	assert_string_equal(where(sw, 2, frame_to(EVERYBODY, 2, 0), 0), "000");
	assert_int_equal(count(sw, 2, URN_SWITCH_DROP_PORT_DOWN), 1);
	/* An address behind the port is unknown now, and its frames are not sent there. */
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "010");
	urn_fdb_set(urn_switch_fdb(sw), urn_mac((const uint8_t[6]){2, 0, 0, 0, 0, 2}), 2);
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "000");
	assert_int_equal(count(sw, 2, URN_SWITCH_DROP_PORT_DOWN), 2);
	urn_switch_port_set_up(sw, 2, true);
	assert_string_equal(where(sw, 0, frame_to(2, 1, 0), 0), "001");
	urn_switch_destroy(sw);
}

static void
test_max_frame(void **state)
{
	struct urn_switch_port_config port = {.name = "narrow", .max_frame = 99};
	struct urn_switch *sw = make(2);

	(void)state;
	assert_int_equal(urn_switch_add_port(sw, &port), 2);
	assert_string_equal(urn_switch_port_name(sw, 2), "narrow");
	assert_string_equal(where(sw, 0, frame_to(EVERYBODY, 1, 0), 0), "010");
	assert_int_equal(count(sw, 2, URN_SWITCH_DROP_TOO_LONG), 1);
	urn_switch_destroy(sw);
}

/* No packets for copies: the last port still gets the frame. */
static void
test_no_copies(void **state)
{
	struct urn_switch_config cfg = {.name = "poor"};
	struct urn_switch_port_config port = {0};
	struct urn_switch *sw = urn_switch_create(&cfg);

	(void)state;
	for (int i = 0; i < 4; i++)
		urn_switch_add_port(sw, &port);
	assert_string_equal(where(sw, 0, frame_to(EVERYBODY, 1, 0), 0), "0001");
	assert_int_equal(count(sw, 1, URN_SWITCH_DROP_COPY), 1);
	assert_int_equal(count(sw, 2, URN_SWITCH_DROP_COPY), 1);
	urn_switch_destroy(sw);
}

/* Each direction of a port has its own impairments, driven by time. */
static void
test_impair(void **state)
{
	struct urn_switch_port_config port = {0};
	struct urn_switch *sw = make(1);
	uint32_t number = 0;

	(void)state;
	port.impair[URN_SWITCH_IN].delay_ns = 100;
	port.impair[URN_SWITCH_OUT].delay_ns = 1000;
	assert_int_equal(urn_switch_add_port(sw, &port), 1);
	assert_true(urn_switch_next(sw) == UINT64_MAX);
	/* Into port 0, out at port 1. */
	assert_string_equal(where(sw, 0, frame_to(2, 1, 5), 0), "00");
	assert_int_equal(urn_switch_next(sw), 1000);
	assert_int_equal(urn_switch_queued(sw), 1);
	assert_int_equal(take(sw, 1, 999, NULL), 0);
	assert_int_equal(take(sw, 1, 1000, &number), 1);
	assert_int_equal(number, 5);
	/* The opposite direction. */
	put(sw, 1, frame_to(1, 2, 6), 2000);
	assert_int_equal(urn_switch_next(sw), 2100);
	assert_int_equal(urn_switch_run(sw, 2099), 0);
	assert_int_equal(take(sw, 0, 2099, NULL), 0);
	assert_int_equal(urn_switch_run(sw, 2100), 1);
	assert_int_equal(take(sw, 0, 2100, &number), 1);
	assert_int_equal(number, 6);
	/* One direction is cut at run time. */
	assert_int_equal(urn_impair_set(urn_switch_impair(sw, 1, URN_SWITCH_OUT),
					&(struct urn_impair_config){.blackhole = true}),
			 0);
	assert_string_equal(where(sw, 0, frame_to(2, 1, 5), 3000), "00");
	assert_int_equal(urn_impair_counters(urn_switch_impair(sw, 1, URN_SWITCH_OUT))
				 ->v[URN_IMPAIR_BLACKHOLE],
			 1);
	/* Frames still inside are freed with the switch. */
	put(sw, 1, frame_to(1, 2, 6), 4000);
	assert_int_equal(urn_switch_queued(sw), 1);
	urn_switch_destroy(sw);
	port.impair[0].drop = 3;
	sw = make(0);
	assert_int_equal(urn_switch_add_port(sw, &port), -EINVAL);
	memset(&port, 0, sizeof(port));
	for (unsigned int i = 0; i < URN_SWITCH_MAX_PORTS; i++)
		assert_int_equal(urn_switch_add_port(sw, &port), i);
	assert_int_equal(urn_switch_add_port(sw, &port), -ENOSPC);
	urn_switch_destroy(sw);
}

/* Which of 64 frames an impairment lets pass, a bit each. */
static uint64_t
fates(struct urn_impair *imp)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < 64; i++) {
		struct rte_mbuf *m = frame_make(i, 100);

		urn_impair_push(imp, &m, 1, 0);
		if (urn_impair_pop(imp, &m, 1, 0) == 1) {
			bits |= 1ull << i;
			rte_pktmbuf_free(m);
		}
	}
	return bits;
}

/* With one seed each port and direction has losses of its own, the same in each run. */
static void
test_impair_streams(void **state)
{
	struct urn_impair_config half = {.drop = 0.5, .seed = 7};
	struct urn_switch_port_config port = {.impair = {half, half}};
	uint64_t seen[4];

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		struct urn_switch *sw = make(0);

		for (unsigned int i = 0; i < 4; i++) {
			uint64_t bits;

			if (i % 2 == 0)
				assert_int_equal(urn_switch_add_port(sw, &port), i / 2);
			bits = fates(urn_switch_impair(sw, (uint16_t)(i / 2), i % 2));
			if (round == 1)
				assert_true(bits == seen[i]);
			for (unsigned int k = 0; k < i; k++)
				assert_true(bits != seen[k]);
			seen[i] = bits;
		}
		urn_switch_destroy(sw);
	}
}

/* A chain of three switches: ports 0 are hosts', the others are links. */
/* One frame that waits for a busy wire goes out in its time, also when no other frame comes behind
 * it. */
static void
test_last_waits(void **state)
{
	struct urn_switch *sw = make(1);
	struct urn_switch_port_config port = {.impair[URN_SWITCH_OUT].rate_bps = 1000000000};
	uint32_t number = 0;

	(void)state;
	assert_int_equal(urn_switch_add_port(sw, &port), 1);
	assert_int_equal(
		urn_fdb_set(urn_switch_fdb(sw), urn_mac((const uint8_t[6]){2, 0, 0, 0, 0, 1}), 1),
		0);
	put(sw, 0, frame_to(1, 0, 1), MS);
	put(sw, 0, frame_to(1, 0, 2), MS);
	assert_int_equal(urn_switch_queued(sw), 2);
	assert_true(urn_switch_next(sw) < 2 * MS);
	assert_int_equal(take(sw, 1, 2 * MS, &number), 2);
	assert_int_equal(number, 2);
	urn_switch_destroy(sw);
}

static void
test_links(void **state)
{
	struct urn_switch *sw[3] = {make(2), make(3), make(2)};
	struct urn_impair_config slow = {.delay_ns = 50};
	uint32_t number = 0;

	(void)state;
	assert_int_equal(urn_switch_link(sw[0], 1, sw[1], 1), 0);
	assert_int_equal(urn_switch_link(sw[1], 2, sw[2], 1), 0);
	assert_true(urn_switch_port_is_linked(sw[1], 2));
	assert_false(urn_switch_port_is_linked(sw[1], 0));
	put(sw[0], 0, frame_to(EVERYBODY, 1, 1), 0);
	assert_true(urn_switch_run_all(sw, 3, 0) >= 2);
	assert_int_equal(take(sw[0], 0, 0, NULL), 0);
	assert_int_equal(take(sw[1], 0, 0, NULL), 1);
	assert_int_equal(take(sw[2], 0, 0, NULL), 1);
	/* The answer takes the known way: switch 1's host does not see it. Against the order of run_all(). */
	put(sw[2], 0, frame_to(1, 2, 2), 0);
	urn_switch_run_all(sw, 3, 0);
	assert_int_equal(take(sw[0], 0, 0, &number), 1);
	assert_int_equal(number, 2);
	assert_int_equal(take(sw[1], 0, 0, NULL), 0);
	/* A link's wire is impaired like any other. */
	assert_int_equal(urn_impair_set(urn_switch_impair(sw[1], 2, URN_SWITCH_OUT), &slow), 0);
	assert_int_equal(urn_impair_set(urn_switch_impair(sw[2], 1, URN_SWITCH_IN), &slow), 0);
	put(sw[0], 0, frame_to(2, 1, 3), 10);
	urn_switch_run_all(sw, 3, 10);
	assert_int_equal(urn_switch_next(sw[1]), 60);
	urn_switch_run_all(sw, 3, 60);
	assert_int_equal(urn_switch_next(sw[2]), 110);
	urn_switch_run_all(sw, 3, 110);
	assert_int_equal(take(sw[2], 0, 110, &number), 1);
	assert_int_equal(number, 3);
	for (int i = 0; i < 3; i++)
		urn_switch_destroy(sw[i]);
}

/* A loop would send a broadcast round for ever. */
static void
test_no_loops(void **state)
{
	struct urn_switch *a = make(4), *b = make(4), *c = make(4);

	(void)state;
	assert_int_equal(urn_switch_link(a, 0, a, 1), -ELOOP);
	assert_int_equal(urn_switch_link(a, 0, b, 0), 0);
	assert_int_equal(urn_switch_link(a, 0, c, 0), -EBUSY);
	assert_int_equal(urn_switch_link(c, 0, b, 0), -EBUSY);
	assert_int_equal(urn_switch_link(a, 1, b, 1), -ELOOP);
	assert_int_equal(urn_switch_link(b, 1, c, 0), 0);
	assert_int_equal(urn_switch_link(c, 1, a, 1), -ELOOP);
	assert_int_equal(urn_switch_link(c, 4, a, 1), -EINVAL);
	assert_int_equal(urn_switch_link(c, 3, a, 4), -EINVAL);
	/* Without the middle switch the others may be joined. */
	urn_switch_destroy(b);
	assert_false(urn_switch_port_is_linked(a, 0));
	assert_int_equal(urn_switch_link(c, 1, a, 1), 0);
	urn_switch_destroy(a);
	urn_switch_destroy(c);
}

static void
test_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < URN_SWITCH_COUNTER_COUNT; i++) {
		assert_non_null(urn_switch_counter_name(i));
		assert_non_null(urn_counter_text_in(&urn_switch_scope, i));
	}
	assert_null(urn_switch_counter_name(URN_SWITCH_COUNTER_COUNT));
	assert_null(urn_counter_text_in(&urn_switch_scope, URN_SWITCH_COUNTER_COUNT));
	assert_null(
		urn_switch_create(&(struct urn_switch_config){.fdb = {.max = URN_FDB_MAX + 1}}));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learning),    cmocka_unit_test(test_burst),
		cmocka_unit_test(test_burst_moves), cmocka_unit_test(test_order),
		cmocka_unit_test(test_flood),	    cmocka_unit_test(test_last_waits),
		cmocka_unit_test(test_bad),	    cmocka_unit_test(test_static),
		cmocka_unit_test(test_down),	    cmocka_unit_test(test_max_frame),
		cmocka_unit_test(test_no_copies),   cmocka_unit_test(test_impair),
		cmocka_unit_test(test_links),	    cmocka_unit_test(test_no_loops),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_impair_streams),
	};
	struct CMUnitTest all[RTE_DIM(tests)];

	for (size_t i = 0; i < RTE_DIM(tests); i++) {
		all[i] = tests[i];
		all[i].setup_func = frames_setup;
		all[i].teardown_func = frames_teardown;
	}
	return cmocka_run_group_tests_name("switch", all, NULL, NULL);
}
