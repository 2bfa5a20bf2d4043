/* SPDX-License-Identifier: BSD-3-Clause */
/* What peers can: when they are asked, what is believed, and what is forgotten (doc/link.md). */
#include "control/link.h"

#include "common/test_eal.h"
#include "common/test_link_mad.h"
#include "l3_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS 1000000ull
#define SECOND 1000000000ull
#define START (100 * SECOND) /* a clock does not begin at 0 */

static struct urn_neigh *nb;
static struct urn_link *lk;
static uint8_t buf[LINK_FRAME_ROOM];
static uint32_t seen;      /* of the news */

static struct urn_link_config
config(void)
{
	struct urn_link_config cfg = {.neigh = nb, .offer = URN_LINK_F_SACK, .arw = URN_LINK_ARW_64,
				      .icrc = true, .seed = 7};

	memcpy(cfg.mac, us_mac, 6);
	return cfg;
}

/* Us, and a peer whose MAC address is known. */
static int
setup(void **state)
{
	struct urn_link_config cfg;
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
	lk = urn_link_create(&cfg);
	seen = 0;
	return lk ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	urn_link_destroy(lk);
	urn_neigh_destroy(nb);
	/* Every mbuf is back. */
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

/* ---- helpers */

/* The frame in `len` bytes of buf[] comes in; a reply replaces it. returns what was counted */
static enum urn_counter
input(uint32_t len, uint64_t now, int *reply)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	enum urn_counter c;
	int r;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), buf, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	r = urn_link_input(lk, m, now);
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

/* From a peer to our address of the same family and scope. */
static enum urn_counter
from(const uint8_t *gid, const struct link_spec *s, uint64_t now, int *reply)
{
	const uint8_t *us = urn_neigh_source(nb, gid);

	return input(link_frame(buf, s, peer_mac, gid, us_mac, us), now, reply);
}

/* A request of a peer's: answered, and counted as this. */
static void
request(const uint8_t *gid, const struct link_spec *s, uint64_t now, enum urn_counter why)
{
	int reply = 0;

	assert_int_equal(from(gid, s, now, &reply), why);
	assert_true(reply);
}

/* Poll; returns how many requests came, the last of them in buf[]. */
static unsigned int
poll_max(uint64_t now, unsigned int max)
{
	static struct rte_mbuf *out[URN_LINK_ENTRIES];
	unsigned int n = urn_link_poll(lk, now, test_eal_pool(), out, max);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(urn_wire_parse(out[i]), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(out[i]));
		memcpy(buf, rte_pktmbuf_mtod(out[i], void *), rte_pktmbuf_data_len(out[i]));
		rte_pktmbuf_free(out[i]);
	}
	return n;
}

#define expect_poll(now, n) assert_int_equal(poll_max(now, 64), n)
#define expect_state(gid, s) assert_int_equal(urn_link_peek(lk, gid, NULL), URN_LINK_##s)
#define expect_features(gid, f) assert_int_equal(urn_link_features(lk, gid), f)

static void
expect_no_news(void)
{
	struct urn_link_news n;

	assert_int_equal(urn_link_news(lk, &seen, &n, 1), 0);
	assert_int_equal(seen, urn_link_generation(lk));
}

static void
expect_news(const uint8_t *gid, uint32_t features)
{
	struct urn_link_news n[2];

	assert_int_not_equal(seen, urn_link_generation(lk));
	assert_int_equal(urn_link_news(lk, &seen, n, 2), 1);
	assert_memory_equal(n[0].gid, gid, 16);
	assert_int_equal(n[0].features, features);
	expect_no_news();
}

/* Asked for and asked: the request is in buf[]. returns its transaction id */
static uint64_t
ask(const uint8_t *gid, uint64_t now)
{
	urn_link_features(lk, gid);
	expect_poll(now, 1);
	return link_tid(buf);
}

/* Asked and answered: the usual way to be known. */
static void
make_known(const uint8_t *gid, uint64_t now)
{
	struct link_spec s = link_good(1, ask(gid, now));

	assert_int_equal(from(gid, &s, now, NULL), URN_C_LINK_RESP_RX);
	expect_state(gid, KNOWN);
	expect_news(gid, URN_LINK_F_SACK);
}

/* ---- asking */

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(urn_link_state_name(URN_LINK_UNKNOWN), "unknown");
	assert_string_equal(urn_link_state_name(URN_LINK_PLAIN), "plain");
	for (unsigned int i = 0; i < URN_LINK_STATES; i++)
		assert_non_null(urn_link_state_name(i));
	assert_string_equal(urn_link_state_name(URN_LINK_STATES), "?");
	urn_link_destroy(NULL);
}

/* Addresses that nobody is asked for. */
static void
test_not_asked(void **state)
{
	static const uint8_t group[16] = {0xff, 2, [15] = 1}, none[16];
	static const uint8_t v4_group[16] = {[10] = 0xff, [11] = 0xff, 224, 0, 0, 1};

	(void)state;
	expect_features(us_v4, URN_LINK_F_SACK);
	expect_features(us_ll, URN_LINK_F_SACK);
	expect_features(group, 0);
	expect_features(v4_group, 0);
	expect_features(none, 0);
	assert_int_equal(urn_link_count(lk), 0);
	expect_poll(START, 0);
	expect_state(peer_v4, UNKNOWN);
	assert_int_equal(urn_link_count(lk), 0);
}

/* We have no address of its family. */
static void
test_no_family(void **state)
{
	struct urn_neigh *four = urn_neigh_create(us_mac, (const uint8_t (*)[16])us_v4, 1);
	struct urn_link_config cfg = config();
	struct urn_link *other;

	(void)state;
	cfg.neigh = four;
	other = urn_link_create(&cfg);
	assert_true(four && other);
	assert_int_equal(urn_link_features(other, peer_ll), 0);
	assert_int_equal(urn_link_count(other), 0);
	urn_link_destroy(other);
	urn_neigh_destroy(four);
}

/* What the request says, to whom, and what is known from the response on. */
static void
ask_and_learn(const uint8_t *gid, const uint8_t *us)
{
	struct urn_link_info info;
	struct link_spec s;
	uint64_t tid;

	expect_features(gid, 0);
	expect_state(gid, ASKING);
	expect_features(gid, 0);
	assert_int_equal(urn_link_arw(lk, gid), URN_LINK_ARW_NONE);
	tid = ask(gid, START);
	assert_memory_equal(buf, peer_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_memory_equal(buf + (buf[12] == 8 ? 26 : 22), us + (buf[12] == 8 ? 12 : 0),
			    buf[12] == 8 ? 4 : 16);
	assert_int_equal(link_get(link_body(buf) + 16, 4), URN_LINK_F_SACK);
	assert_int_equal(link_body(buf)[20], URN_LINK_ARW_64);
	expect_no_news();
	s = link_good(1, tid);
	s.arw = 3;
	s.features = 0xfffffff1;
	assert_int_equal(from(gid, &s, START + MS, NULL), URN_C_LINK_RESP_RX);
	assert_int_equal(urn_link_peek(lk, gid, &info), URN_LINK_KNOWN);
	assert_int_equal(info.epoch, 0x1111);
	assert_int_equal(info.features, 0xfffffff1);
	/* Bits that we do not know are not common. */
	expect_news(gid, URN_LINK_F_SACK);
	expect_features(gid, URN_LINK_F_SACK);
	assert_int_equal(urn_link_arw(lk, gid), URN_LINK_ARW_256);
	expect_poll(START + SECOND, 0);
}

static void
test_learn(void **state)
{
	(void)state;
	ask_and_learn(peer_v4, us_v4);
	ask_and_learn(peer_ll, us_ll);
	assert_int_equal(urn_link_count(lk), 2);
}

/* Eight requests, all with one transaction id, ever slower up to a point; then it is plain. */
static void
test_retry(void **state)
{
	static const uint64_t at[] = {0, 10, 30, 70, 150, 230, 310, 390};
	uint64_t tid = 0;
	struct link_spec s;

	(void)state;
	expect_features(peer_v4, 0);
	for (unsigned int i = 0; i < 8; i++) {
		if (i)
			expect_poll(START + at[i] * MS - 1, 0);
		expect_poll(START + at[i] * MS, 1);
		assert_true(i == 0 || link_tid(buf) == tid);
		tid = link_tid(buf);
		expect_state(peer_v4, ASKING);
	}
	expect_poll(START + 470 * MS - 1, 0);
	expect_state(peer_v4, ASKING);
	expect_poll(START + 470 * MS, 0);
	expect_state(peer_v4, PLAIN);
	/* Plain it was taken to be all the time. */
	expect_no_news();
	/* Not again for a long time; then with another id. */
	expect_poll(START + 30 * SECOND + 470 * MS - 1, 0);
	expect_features(peer_v4, 0);
	expect_poll(START + 30 * SECOND + 470 * MS, 0); /* unless somebody asks */
	expect_features(peer_v4, 0);
	expect_poll(START + 31 * SECOND, 1);
	assert_int_not_equal(link_tid(buf), tid);
	expect_state(peer_v4, PLAIN);
	/* What answers the old one comes too late. */
	s = link_good(1, tid);
	assert_int_equal(from(peer_v4, &s, START + 31 * SECOND, NULL), URN_C_DROP_LINK_UNASKED);
	expect_state(peer_v4, PLAIN);
}

/* An answer that comes after we gave up is an answer. */
static void
test_late_answer(void **state)
{
	uint64_t tid = ask(peer_v4, START);
	struct link_spec s = link_good(1, tid);

	(void)state;
	for (unsigned int i = 1; i <= 500; i++)
		poll_max(START + i * MS, 1);
	expect_state(peer_v4, PLAIN);
	assert_int_equal(from(peer_v4, &s, START + SECOND, NULL), URN_C_LINK_RESP_RX);
	expect_state(peer_v4, KNOWN);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* Until its MAC address is known nothing is sent; if nobody has it, it is plain. */
static void
test_no_mac(void **state)
{
	uint8_t gid[16], mac[6], frame[L3_ROOM];
	struct rte_mbuf *m, *out[4];
	unsigned int n = 0;
	uint32_t len;

	(void)state;
	l3_nth_v4(gid, 5);
	expect_features(gid, 0);
	for (unsigned int i = 0; i < 100; i++)
		expect_poll(START + i * MS, 0);
	assert_int_equal(urn_neigh_poll(nb, START + 100 * MS, test_eal_pool(), out, 4), 1);
	rte_pktmbuf_free(out[0]);
	len = l3_arp(frame, 2, peer_mac, gid, us_v4);
	m = rte_pktmbuf_alloc(test_eal_pool());
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	urn_wire_parse(m);
	urn_neigh_input(nb, m, START + 100 * MS);
	rte_pktmbuf_free(m);
	expect_poll(START + 101 * MS, 1);
	assert_memory_equal(buf, peer_mac, 6);

	l3_nth_v4(gid, 6);
	expect_features(gid, 0);
	for (unsigned int i = 0; i < 4000 && urn_link_peek(lk, gid, NULL) == URN_LINK_ASKING; i++) {
		uint64_t now = START + SECOND + i * MS;

		n += urn_neigh_poll(nb, now, test_eal_pool(), out, 4);
		if (n)
			rte_pktmbuf_free(out[0]);
		n = 0;
		poll_max(now, 4);
	}
	expect_state(gid, PLAIN);
	assert_int_equal(urn_neigh_lookup(nb, gid, mac), URN_NEIGH_FAIL);
}

/* A poll looks at so many and no more, however many wait for a MAC address. */
static void
test_poll_bound(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		l3_nth_v4(gid, i);
		expect_features(gid, 0);
	}
	expect_poll(START, 0);
	/* Each that was looked at is looked up; two were there before. */
	assert_in_range(urn_neigh_count(nb), 3, 2 + 100);
}

/* No buffer: it stays due. */
static void
test_no_buffer(void **state)
{
	static struct rte_mbuf *all[TEST_EAL_MBUFS];
	struct rte_mbuf *out[4];

	(void)state;
	expect_features(peer_v4, 0);
	assert_int_equal(rte_pktmbuf_alloc_bulk(test_eal_pool(), all, TEST_EAL_MBUFS), 0);
	assert_int_equal(urn_link_poll(lk, START, test_eal_pool(), out, 4), 0);
	rte_pktmbuf_free_bulk(all, TEST_EAL_MBUFS);
	expect_state(peer_v4, ASKING);
	assert_int_equal(poll_max(START + MS, 0), 0);
	expect_poll(START + MS, 1);
}

/* ---- the peer's requests */

/* It is answered to where it came from, and teaches as a response would. */
static void
test_request_teaches(void **state)
{
	struct link_spec s = link_good(0, 0xabcdef);

	(void)state;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	assert_memory_equal(buf, peer_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_memory_equal(buf + 26, us_v4 + 12, 4);
	assert_memory_equal(buf + 30, peer_v4 + 12, 4);
	assert_int_equal(link_tid(buf), 0xabcdef);
	assert_int_equal(link_get(link_body(buf) + 16, 4), URN_LINK_F_SACK);
	expect_state(peer_v4, KNOWN);
	/* Nobody had asked, so nobody is told; who asks now knows at once. */
	expect_no_news();
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(START + SECOND, 0);
	/* Again: answered again, and no news. */
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_no_news();
	/* Over IPv6. */
	request(peer_ll, &s, START, URN_C_LINK_REQ_RX);
	assert_memory_equal(buf + 22, us_ll, 16);
	assert_memory_equal(buf + 38, peer_ll, 16);
	expect_state(peer_ll, KNOWN);
}

/* Two that ask each other at once: the request is the answer, the response no news. */
static void
test_both_ask(void **state)
{
	uint64_t tid = ask(peer_v4, START);
	struct link_spec s = link_good(0, 3);

	(void)state;
	request(peer_v4, &s, START + MS, URN_C_LINK_REQ_RX);
	expect_state(peer_v4, KNOWN);
	expect_news(peer_v4, URN_LINK_F_SACK);
	expect_poll(START + SECOND, 0);
	s = link_good(1, tid);
	assert_int_equal(from(peer_v4, &s, START + SECOND, NULL), URN_C_LINK_DUPLICATE);
	expect_no_news();
}

/* A plain peer that asks is plain no longer. */
static void
test_plain_asks(void **state)
{
	struct link_spec s;

	(void)state;
	s = link_good(1, ask(peer_v4, START));
	s.status = 0x0c;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_REFUSED);
	expect_state(peer_v4, PLAIN);
	s = link_good(0, 3);
	request(peer_v4, &s, START + MS, URN_C_LINK_REQ_RX);
	expect_state(peer_v4, KNOWN);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* ---- responses */

/* The same response twice, as a network makes it. */
static void
test_duplicate(void **state)
{
	struct link_spec s = link_good(1, ask(peer_v4, START));

	(void)state;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_RESP_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
	s.features = 0;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_DUPLICATE);
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_no_news();
}

/* Responses that answer nothing. */
static void
test_unasked(void **state)
{
	struct link_spec s = link_good(1, 0);
	uint64_t tid;

	(void)state;
	/* Nobody was asked, or not yet, or only the other. */
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	expect_features(peer_v4, 0);
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	tid = ask(peer_v4, START);
	s = link_good(1, tid);
	assert_int_equal(from(peer_ll, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	/* Not with another's transaction id, good or refused. */
	s.tid ^= 1ull << 63;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	s.status = 4;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	/* Not to another of our addresses than the one that asked. */
	ask(peer_ll, START);
	s = link_good(1, link_tid(buf));
	assert_int_equal(input(link_frame(buf, &s, peer_mac, peer_ll, us_mac, us_global), START, NULL),
			 URN_C_DROP_LINK_UNASKED);
	expect_state(peer_v4, ASKING);
	expect_state(peer_ll, ASKING);
	expect_no_news();
}

/* What nobody can send: from our own address, from a group, with a group's MAC address. */
static void
test_sender(void **state)
{
	static const uint8_t group_mac[6] = {1, 0, 0x5e, 0, 0, 1};
	static const uint8_t bad[][16] = {
		{[10] = 0xff, [11] = 0xff, 224, 0, 0, 1}, {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
		{[10] = 0xff, [11] = 0xff, 0, 0, 0, 0}, {[10] = 0xff, [11] = 0xff, 255, 255, 255, 255}};
	struct link_spec s = link_good(0, 1);

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(input(link_frame(buf, &s, peer_mac, bad[i], us_mac, us_v4), START, NULL),
				 URN_C_DROP_ADDRESS);
	assert_int_equal(input(link_frame(buf, &s, group_mac, peer_v4, us_mac, us_v4), START, NULL),
			 URN_C_DROP_ADDRESS);
	assert_int_equal(urn_link_count(lk), 0);
}

/* Refused: it has not the class. */
static void
test_refused(void **state)
{
	struct link_spec s = link_good(1, ask(peer_v4, START));

	(void)state;
	s.status = 0x0c;
	s.attr = 0x10; /* as it was */
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_REFUSED);
	expect_state(peer_v4, PLAIN);
	expect_features(peer_v4, 0);
	expect_poll(START + 10 * SECOND, 0);
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_DUPLICATE);
	expect_no_news();
}

/* Each reason to drop one is passed on, and nothing is learnt. */
static void
test_malformed(void **state)
{
	static const struct {
		uint8_t what;
		enum urn_counter why;
	} bad[] = {
		{0, URN_C_DROP_QKEY},	     {1, URN_C_DROP_MAD_LENGTH},  {2, URN_C_DROP_MAD_VERSION},
		{3, URN_C_DROP_MAD_CLASS},   {4, URN_C_DROP_MAD_METHOD},  {5, URN_C_DROP_LINK_SOURCE},
		{6, URN_C_DROP_LINK_MAGIC},  {7, URN_C_DROP_LINK_LENGTH}, {8, URN_C_DROP_LINK_OPTION},
		{9, URN_C_DROP_QP_TYPE},
	};

	static const uint8_t cut[4] = {0, 0, 0, 1};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct link_spec s = link_good(0, 1);

		switch (bad[i].what) {
		case 0: s.qkey = 0x1234; break;
		case 1: s.bytes = 252; break;
		case 2: s.base_version = 0x80; break;
		case 3: s.mgmt_class = 0x07; break;
		case 4: s.method = 0x02; break;
		case 5: s.sqpn = 17; break;
		case 6: s.magic = 0; break;
		case 7: s.length = 33; break;
		case 8:
			s.length = 36;
			s.options = cut;
			s.options_len = sizeof(cut);
			break;
		default: s.opcode = 0x04; break;
		}
		assert_int_equal(from(peer_v4, &s, START, NULL), bad[i].why);
	}
	assert_int_equal(urn_link_count(lk), 0);
}

/* ---- versions and features */

/* Another major version: answered with ours, and plain. */
static void
test_version(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.major = 2;
	request(peer_v4, &s, START, URN_C_LINK_VERSION);
	assert_int_equal(link_body(buf)[4], 1);
	expect_state(peer_v4, PLAIN);
	expect_features(peer_v4, 0);
	s = link_good(1, ask(peer_ll, START));
	s.major = 0;
	assert_int_equal(from(peer_ll, &s, START, NULL), URN_C_LINK_VERSION);
	expect_state(peer_ll, PLAIN);
	expect_no_news();
	/* A newer minor one is fine. */
	s = link_good(0, 1);
	s.minor = 9;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* What one of them does not offer they have not. */
static void
test_features(void **state)
{
	struct urn_link_config cfg = config();
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.features = 0xfffffffe;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, 0);
	expect_state(peer_v4, KNOWN);
	urn_link_destroy(lk);
	cfg.offer = 0;
	lk = urn_link_create(&cfg);
	s.features = 0xffffffff;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	assert_int_equal(link_get(link_body(buf) + 16, 4), 0);
	expect_features(peer_v4, 0);
	expect_features(us_v4, 0);
	expect_state(peer_v4, KNOWN);
	/* Cache lines are known all the same. */
	assert_int_equal(urn_link_arw(lk, peer_v4), URN_LINK_ARW_64);
}

/* ---- change */

/* A request with another epoch: believed, and asked about. */
static void
test_epoch_request(void **state)
{
	struct link_spec s = link_good(0, 1);
	struct urn_link_info info;

	(void)state;
	make_known(peer_v4, START);
	s.epoch = 0x2222;
	s.features = 0;
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_news(peer_v4, 0);
	expect_features(peer_v4, 0);
	assert_int_equal(urn_link_peek(lk, peer_v4, &info), URN_LINK_KNOWN);
	assert_int_equal(info.epoch, 0x2222);
	/* It was a late copy: the answer puts it right. */
	expect_poll(START + SECOND, 1);
	s = link_good(1, link_tid(buf));
	assert_int_equal(from(peer_v4, &s, START + SECOND, NULL), URN_C_LINK_RESP_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
	expect_features(peer_v4, URN_LINK_F_SACK);
	/* The same offer from a peer started anew is news, too. */
	s = link_good(0, 1);
	s.epoch = 0x3333;
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* Of a peer that nobody uses no question is asked. */
static void
test_epoch_unwanted(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	s.epoch = 0x2222;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	expect_poll(START + SECOND, 0);
	expect_no_news();
}

/* What is known long is asked about again, and holds meanwhile. */
static void
test_refresh(void **state)
{
	uint64_t at = START + 30 * SECOND;
	struct link_spec s;

	(void)state;
	make_known(peer_v4, START);
	expect_poll(at, 0);
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(at + 1, 0);
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(at + 1, 1);
	expect_features(peer_v4, URN_LINK_F_SACK);
	s = link_good(1, link_tid(buf));
	assert_int_equal(from(peer_v4, &s, at + MS, NULL), URN_C_LINK_RESP_RX);
	expect_no_news();
	/* Again, and nobody answers. */
	at += 31 * SECOND;
	expect_poll(at, 0);
	expect_features(peer_v4, URN_LINK_F_SACK);
	for (unsigned int i = 0; i < 470; i++) {
		poll_max(at + i * MS, 1);
		expect_state(peer_v4, KNOWN);
	}
	expect_poll(at + 470 * MS, 0);
	expect_state(peer_v4, PLAIN);
	expect_news(peer_v4, 0);
	assert_int_equal(urn_link_arw(lk, peer_v4), URN_LINK_ARW_NONE);
}

/* Two adapters, and one adapter started twice, have different epochs; so have requests ids. */
static void
test_drawn(void **state)
{
	struct urn_link_config cfg = config();
	uint64_t epoch, tid;

	(void)state;
	tid = ask(peer_v4, START);
	epoch = link_get(link_body(buf) + 8, 8);
	assert_int_not_equal(epoch, 0);
	assert_int_not_equal(ask(peer_ll, START), tid);
	assert_int_equal(link_get(link_body(buf) + 8, 8), epoch);
	urn_link_destroy(lk);
	cfg.seed++;
	lk = urn_link_create(&cfg);
	assert_int_not_equal(ask(peer_v4, START), tid);
	assert_int_not_equal(link_get(link_body(buf) + 8, 8), epoch);
}

/* ---- news, for several engines */

enum { CROWD = 100 };

static void
test_news(void **state)
{
	struct urn_link_news n[CROWD];
	struct link_spec s = link_good(0, 1);
	uint32_t other = 0;
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < CROWD; i++) {
		l3_nth_v4(gid, i);
		expect_features(gid, 0);
		request(gid, &s, START, URN_C_LINK_REQ_RX);
	}
	/* In portions, oldest first. */
	assert_int_equal(urn_link_news(lk, &seen, n, 60), 60);
	for (uint32_t i = 0; i < 60; i++) {
		l3_nth_v4(gid, i);
		assert_memory_equal(n[i].gid, gid, 16);
	}
	/* One of those to come changes again: it is told once, and last. */
	l3_nth_v4(gid, 70);
	s.features = 0;
	request(gid, &s, START, URN_C_LINK_REQ_RX);
	assert_int_equal(urn_link_news(lk, &seen, n, 60), 40);
	assert_memory_equal(n[39].gid, gid, 16);
	assert_int_equal(n[39].features, 0);
	assert_int_equal(n[38].features, URN_LINK_F_SACK);
	expect_no_news();
	/* Another engine hears all of it, in its own time. */
	assert_int_equal(urn_link_news(lk, &other, n, CROWD), CROWD);
	assert_int_equal(urn_link_news(lk, &other, n, CROWD), 0);
	assert_int_equal(other, seen);
}

/* ---- full */

static void
wanted_crowd(uint32_t count)
{
	struct link_spec s = link_good(0, 1);
	uint8_t gid[16];

	for (uint32_t i = 0; i < count; i++) {
		l3_nth_v4(gid, i);
		urn_link_features(lk, gid);
		request(gid, &s, START, URN_C_LINK_REQ_RX);
	}
}

/* A flood of requests fills its part, is answered, and drives nobody out. */
static void
test_flood(void **state)
{
	struct link_spec s = link_good(0, 1);
	uint8_t gid[16];

	(void)state;
	make_known(peer_v4, START);
	for (uint32_t i = 0; i < 3000; i++) {
		l3_nth_v6(gid, i);
		request(gid, &s, START, URN_C_LINK_REQ_RX);
	}
	assert_int_equal(urn_link_count(lk), URN_LINK_LEARNT + 1);
	expect_state(peer_v4, KNOWN);
	l3_nth_v6(gid, 3000 - URN_LINK_LEARNT);
	expect_state(gid, KNOWN);
	l3_nth_v6(gid, 3000 - URN_LINK_LEARNT - 1);
	expect_state(gid, UNKNOWN);
	expect_no_news();
	/* Wanted ones take the place of the learnt. */
	wanted_crowd(URN_LINK_ENTRIES - 1);
	assert_int_equal(urn_link_count(lk), URN_LINK_ENTRIES);
	expect_state(peer_v4, KNOWN);
	l3_nth_v6(gid, 2999);
	expect_state(gid, UNKNOWN);
	request(gid, &s, START, URN_C_LINK_REQ_RX); /* answered, not kept */
	expect_state(gid, UNKNOWN);
}

/* The longest unused goes for a new one; its news goes with it. */
static void
test_full(void **state)
{
	struct urn_link_news n[1];
	uint8_t gid[16], first[16], second[16];

	(void)state;
	wanted_crowd(URN_LINK_ENTRIES);
	l3_nth_v4(first, 0);
	l3_nth_v4(second, 1);
	expect_features(first, URN_LINK_F_SACK); /* used */
	l3_nth_v4(gid, URN_LINK_ENTRIES);
	expect_features(gid, 0);
	expect_state(gid, ASKING);
	expect_state(first, KNOWN);
	expect_state(second, UNKNOWN);
	assert_int_equal(urn_link_count(lk), URN_LINK_ENTRIES);
	assert_int_equal(urn_link_news(lk, &seen, n, 1), 1);
	assert_memory_equal(n[0].gid, first, 16);
	for (unsigned int i = 2; i < URN_LINK_ENTRIES; i++)
		assert_int_equal(urn_link_news(lk, &seen, n, 1), 1);
	expect_no_news();
}

/* A table full of questions: polls are bounded, and the oldest question gives way. */
static void
test_full_of_questions(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i <= URN_LINK_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		urn_neigh_add_static(nb, gid, peer_mac); /* as many as there is room for */
		expect_features(gid, 0);
	}
	assert_int_equal(urn_link_count(lk), URN_LINK_ENTRIES);
	l3_nth_v4(gid, 0);
	expect_state(gid, UNKNOWN);
	assert_int_equal(poll_max(START, 100), 100);
	/* All of them are tried, and end, with and without a MAC address. */
	for (unsigned int i = 0; i < 6000; i++) {
		struct rte_mbuf *out[64];
		unsigned int n = urn_neigh_poll(nb, START + i * MS, test_eal_pool(), out, 64);

		rte_pktmbuf_free_bulk(out, n);
		poll_max(START + i * MS, 256);
	}
	for (uint32_t i = 1; i <= URN_LINK_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		expect_state(gid, PLAIN);
	}
}

/* Asked ones give way as well when there is nothing else. */
static void
test_full_of_tries(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		l3_nth_v4(gid, i);
		urn_neigh_add_static(nb, gid, peer_mac);
		expect_features(gid, 0);
		/* One each of so many tries. */
		for (uint32_t k = 0; k < i % 4; k++)
			poll_max(START + k * SECOND, 64);
	}
	for (uint32_t i = 8; i < 3 * URN_LINK_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		expect_features(gid, 0);
		if (i % 1000 == 0)
			poll_max(START + 9 * SECOND + i * MS, 64);
	}
	assert_int_equal(urn_link_count(lk), URN_LINK_ENTRIES);
	expect_state(gid, ASKING);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_names),	       T(test_not_asked),
		T(test_no_family),     T(test_learn),
		T(test_retry),	       T(test_late_answer),
		T(test_no_mac),	       T(test_no_buffer),
		T(test_request_teaches), T(test_both_ask),
		T(test_plain_asks),    T(test_duplicate),
		T(test_unasked),       T(test_sender),
		T(test_refused),       T(test_malformed),
		T(test_version),       T(test_features),
		T(test_epoch_request), T(test_epoch_unwanted),
		T(test_refresh),       T(test_drawn),
		T(test_news),	       T(test_flood),
		T(test_full),	       T(test_full_of_questions),
		T(test_full_of_tries), T(test_poll_bound),
	};

	return cmocka_run_group_tests_name("link_table", tests, NULL, NULL);
}
