/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-9: congestion marks of frames that wait in a switch, by the bytes that wait (DCQCN). */
#include "frames.h"

#include "switch/switch.h"
#include "wire/ecn.h"

#include <errno.h>

enum { LEN = 1000, MANY = 20000, IP = 14 };

#define KMIN 5000u
#define KMAX 205000u
#define GBIT 1000000000ull

/* Make a frame an IPv4 or IPv6 packet from host to host whose traffic class is `tos`. */
static struct rte_mbuf *
packet(bool ipv6, uint8_t tos, uint8_t src, uint8_t dst)
{
	struct rte_mbuf *m = frame_make(1, LEN);
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *), *l3 = p + IP;
	uint32_t sum = 0;

	p[0] = p[6] = 2;
	p[5] = dst;
	p[11] = src;
	memset(l3, 0, 40);
	if (ipv6) {
		memcpy(p + 12, "\x86\xdd", 2);
		l3[0] = (uint8_t)(0x60 | tos >> 4);
		l3[1] = (uint8_t)(tos << 4);
		return m;
	}
	l3[0] = 0x45;
	l3[1] = tos;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)l3[i] << 8 | l3[i + 1];
	sum = ~sum & 0xffff;
	l3[10] = (uint8_t)(sum >> 8);
	l3[11] = (uint8_t)sum;
	return m;
}

/* Codepoint of a packet; fails when a checksum is wrong. */
static unsigned int
codepoint(const struct rte_mbuf *m, bool ipv6)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, IP);
	uint32_t sum = 0;

	for (int i = 0; i < 20 && !ipv6; i += 2)
		sum += (uint32_t)l3[i] << 8 | l3[i + 1];
	if (!ipv6)
		assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	return urn_ecn_get(l3, ipv6);
}

/* Offer MANY packets to marks while so many bytes wait. returns: how many were marked */
static unsigned int
offered(struct urn_mark *k, uint64_t bytes)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		struct rte_mbuf *m = packet(i & 1, URN_ECN_ECT0, 1, 2);

		urn_mark_frame(k, m, bytes);
		n += codepoint(m, i & 1) == URN_ECN_CE;
		rte_pktmbuf_free(m);
	}
	return n;
}

/* Up to kmin none, above kmax all, between them by the share, and pmax at kmax. */
static void
share_of_bytes(void **state)
{
	const struct urn_mark_config c = {.kmin = KMIN, .kmax = KMAX, .pmax = 0.1, .seed = 7};
	struct urn_mark k;

	(void)state;
	urn_mark_init(&k, &c, 0);
	assert_int_equal(offered(&k, 0), 0);
	assert_int_equal(offered(&k, KMIN), 0);
	assert_int_equal(offered(&k, KMAX + 1), MANY);
	/* Five standard deviations of so many draws are 0.011 and less. */
	assert_in_range(offered(&k, KMAX), MANY * 0.089, MANY * 0.111);
	assert_in_range(offered(&k, (KMIN + KMAX) / 2), MANY * 0.042, MANY * 0.058);
	assert_in_range(offered(&k, KMIN + (KMAX - KMIN) / 10), MANY * 0.006, MANY * 0.014);
	assert_true(k.c.v[URN_MARK_C_MARKED] > MANY);
	assert_int_equal(k.c.v[URN_MARK_C_UNABLE], 0);
	/* Without kmax there are no marks at any length, and with kmin at kmax it is a threshold.
	 */
	urn_mark_init(&k, &(struct urn_mark_config){.kmin = KMIN, .pmax = 1}, 0);
	assert_int_equal(offered(&k, UINT32_MAX), 0);
	urn_mark_init(&k, &(struct urn_mark_config){.kmin = KMIN, .kmax = KMIN, .pmax = 1}, 0);
	assert_int_equal(offered(&k, KMIN), 0);
	assert_int_equal(offered(&k, KMIN + 1), MANY);
}

/* One seed and port number always mark the same frames; another marks others. */
static void
same_by_seed(void **state)
{
	const struct urn_mark_config c = {.kmin = 0, .kmax = 1000, .pmax = 1, .seed = 3},
				     d = {.kmax = 1000, .pmax = 1, .seed = 4};
	struct urn_mark k[4];
	unsigned int other = 0, another = 0;

	(void)state;
	urn_mark_init(&k[0], &c, 1);
	urn_mark_init(&k[1], &c, 1);
	urn_mark_init(&k[2], &c, 2);
	urn_mark_init(&k[3], &d, 1);
	for (int i = 0; i < 256; i++) {
		unsigned int ce[4];

		for (int j = 0; j < 4; j++) {
			struct rte_mbuf *m = packet(false, URN_ECN_ECT0, 1, 2);

			urn_mark_frame(&k[j], m, 500);
			ce[j] = codepoint(m, false) == URN_ECN_CE;
			rte_pktmbuf_free(m);
		}
		assert_int_equal(ce[0], ce[1]);
		other += ce[0] != ce[2];
		another += ce[0] != ce[3];
	}
	assert_in_range(other, 64, 192);
	assert_in_range(another, 64, 192);
}

/* A sender that obeys no marks gets none, and is counted. */
static void
only_who_obeys(void **state)
{
	const struct urn_mark_config c = {.kmin = 1, .kmax = 1};
	struct urn_mark k;

	(void)state;
	urn_mark_init(&k, &c, 0);
	for (uint8_t tos = 0; tos < 4; tos++) {
		struct rte_mbuf *m = packet(tos & 1, (uint8_t)(0x68 | tos), 1, 2);

		urn_mark_frame(&k, m, 2);
		assert_int_equal(codepoint(m, tos & 1), tos ? URN_ECN_CE : URN_ECN_NONE);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(k.c.v[URN_MARK_C_MARKED], 3);
	assert_int_equal(k.c.v[URN_MARK_C_UNABLE], 1);
}

static void
wrong_ones_are_refused(void **state)
{
	static const struct urn_mark_config bad[] = {
		{.kmin = 2, .kmax = 1},
		{.kmax = URN_MARK_MAX_BYTES + 1},
		{.kmin = URN_MARK_MAX_BYTES + 1, .kmax = 1},
		{.kmax = 1, .pmax = 1.01},
		{.kmax = 1, .pmax = -0.1},
		{.kmax = 1, .pmax = 0.0 / 0.0},
	};
	char why[80];

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct urn_switch_config c = {.name = "s", .mark = bad[i]};

		assert_int_equal(urn_mark_check(&bad[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
		assert_null(urn_switch_create(&c));
	}
	assert_int_equal(urn_mark_check(&(struct urn_mark_config){.kmin = 5}, NULL, 0), 0);
}

/*
 * Frames that leave a long queue of a switch are marked, IPv4 and IPv6; those that leave a short
 * one, or did not wait, are not.
 */
static void
in_a_switch(void **state)
{
	struct urn_switch_config c = {.name = "s",
				      .copies = test_eal_pool(),
				      .mark = {.kmin = 10 * LEN, .kmax = 10 * LEN}};
	struct urn_switch_port_config port = {0};
	struct urn_switch *sw = urn_switch_create(&c);
	unsigned int out = 0, marked = 0;

	(void)state;
	assert_non_null(sw);
	assert_int_equal(urn_switch_add_port(sw, &port), 0);
	port.impair[URN_SWITCH_OUT].rate_bps = GBIT;
	assert_int_equal(urn_switch_add_port(sw, &port), 1);
	assert_int_equal(
		urn_fdb_set(urn_switch_fdb(sw), urn_mac((const uint8_t[6]){2, 0, 0, 0, 0, 2}), 1),
		0);
	for (int i = 0; i < 32; i++) { /* the first is sent; the last ten leave a short queue */
		struct rte_mbuf *m = packet(i & 1, URN_ECN_ECT0, 1, 2);

		urn_switch_input(sw, 0, &m, 1, 1000);
	}
	for (uint64_t now = 1000; now < 1000000; now += 1000) {
		struct rte_mbuf *m;

		urn_switch_run(sw, now);
		while (urn_switch_output(sw, 1, &m, 1, now)) {
			bool ce = codepoint(m, out & 1) == URN_ECN_CE;

			assert_int_equal(ce, out >= 1 && out < 22);
			marked += ce;
			out++;
			rte_pktmbuf_free(m);
		}
	}
	assert_int_equal(out, 32);
	assert_int_equal(marked, 21);
	assert_int_equal(urn_switch_marks(sw, 1)->c.v[URN_MARK_C_MARKED], 21);
	assert_int_equal(urn_switch_marks(sw, 0)->c.v[URN_MARK_C_MARKED], 0);
	assert_null(urn_switch_marks(sw, 2));
	urn_switch_destroy(sw);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(share_of_bytes, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(same_by_seed, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(only_who_obeys, frames_setup, frames_teardown),
		cmocka_unit_test(wrong_ones_are_refused),
		cmocka_unit_test_setup_teardown(in_a_switch, frames_setup, frames_teardown),
	};

	return cmocka_run_group_tests_name("mark", tests, NULL, NULL);
}
