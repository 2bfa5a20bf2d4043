/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are answered, believed, and dropped (doc/inside/link.md). */
#include "learn_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- the peer's requests */

/* A request is answered to its sender, and teaches as a response would. */
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
	/* Nobody had asked, so there is no news; a later question is answered at once. */
	expect_no_news();
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(START + SECOND, 0);
	/* The same request again: answered again, and no news. */
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_no_news();
	/* Over IPv6. */
	request(peer_ll, &s, START, URN_C_LINK_REQ_RX);
	assert_memory_equal(buf + 22, us_ll, 16);
	assert_memory_equal(buf + 38, peer_ll, 16);
	expect_state(peer_ll, KNOWN);
}

/* Both nodes ask at once: the request is the answer, the response no news. */
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

/* A plain peer that asks is no longer plain. */
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

/* The same response twice, duplicated by a network. */
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
	/* No peer was asked, or not yet, or only the other one. */
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	expect_features(peer_v4, 0);
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	tid = ask(peer_v4, START);
	s = link_good(1, tid);
	assert_int_equal(from(peer_ll, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	/* Not with another transaction id, accepted or refused. */
	s.tid ^= 1ull << 63;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	s.status = 4;
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_DROP_LINK_UNASKED);
	/* Not to another address of ours than the one that asked. */
	ask(peer_ll, START);
	s = link_good(1, link_tid(buf));
	assert_int_equal(input(link_frame(buf, &s, peer_mac, peer_ll, us_mac, us_global), START, NULL),
			 URN_C_DROP_LINK_UNASKED);
	expect_state(peer_v4, ASKING);
	expect_state(peer_ll, ASKING);
	expect_no_news();
}

/* Impossible senders: our own address, a group, a group's MAC address. */
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
	assert_int_equal(urn_learn_count(lk), 0);
}

/* The peer refuses: it does not have the class. */
static void
test_refused(void **state)
{
	struct link_spec s = link_good(1, ask(peer_v4, START));

	(void)state;
	s.status = 0x0c;
	s.attr = 0x10; /* the former value */
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_REFUSED);
	expect_state(peer_v4, PLAIN);
	expect_features(peer_v4, 0);
	expect_poll(START + 10 * SECOND, 0);
	assert_int_equal(from(peer_v4, &s, START, NULL), URN_C_LINK_DUPLICATE);
	expect_no_news();
}

/* Each reason to drop a frame has its counter, and nothing is learnt. */
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
	assert_int_equal(urn_learn_count(lk), 0);
}

/* The next of a sequence of pseudo-random numbers (xorshift). */
static uint32_t
chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

/* A mutant of a valid frame comes in. returns the counter that counted it */
static enum urn_counter
mutant(uint32_t len, uint64_t *seed)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	enum urn_counter c = URN_COUNTER_COUNT;
	uint8_t *f;
	int reply;

	assert_non_null(m);
	f = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	memcpy(f, buf, len);
	for (uint32_t n = chance(seed) % 4 + 1; n; n--) {
		uint32_t at = 42 + chance(seed) % (len - 46); /* behind UDP */

		f[at] = chance(seed) & 1 ? (uint8_t)chance(seed) : (uint8_t)(f[at] ^ 1u << chance(seed) % 8);
	}
	if (urn_wire_parse(m) == URN_FRAME_ROCE && urn_pkt(m)->dqpn == URN_QPN_GSI) {
		reply = urn_learn_input(lk, m, START);
		c = (enum urn_counter)urn_pkt(m)->drop;
		/* A reply is valid, and goes to requests only. */
		assert_int_equal(reply, c == URN_C_LINK_REQ_RX || c == URN_C_LINK_VERSION);
		if (reply)
			assert_true(urn_wire_parse(m) == URN_FRAME_ROCE && urn_wire_icrc_ok(m));
	}
	rte_pktmbuf_free(m);
	return c;
}

/* Mutants of valid frames: each has its counter, and all counters occur. */
static void
test_mutants(void **state)
{
	static const enum urn_counter known[] = {
		URN_C_LINK_REQ_RX,	URN_C_LINK_VERSION,	URN_C_DROP_QP_TYPE,
		URN_C_DROP_QKEY,	URN_C_DROP_MAD_LENGTH,	URN_C_DROP_MAD_VERSION,
		URN_C_DROP_MAD_CLASS,	URN_C_DROP_MAD_METHOD,	URN_C_DROP_LINK_SOURCE,
		URN_C_DROP_LINK_MAGIC,	URN_C_DROP_LINK_LENGTH, URN_C_DROP_LINK_OPTION,
		URN_C_DROP_LINK_UNASKED,
	};
	enum { KNOWN = sizeof(known) / sizeof(known[0]) };
	unsigned int met[KNOWN] = {0};
	uint8_t options[184] = {[3] = 9, [18] = 0, [19] = 4};
	uint64_t seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		const uint8_t *gid = i & 1 ? peer_ll : peer_v4;
		struct link_spec s = link_good(0, i);
		enum urn_counter c;
		unsigned int k = 0;

		s.options = options;
		s.options_len = sizeof(options);
		s.length = 32 + 16 + 8;
		c = mutant(link_frame(buf, &s, peer_mac, gid, us_mac, urn_neigh_source(nb, gid)), &seed);
		if (c == URN_COUNTER_COUNT)
			continue;
		while (k < KNOWN && known[k] != c)
			k++;
		if (k == KNOWN)
			fail_msg("mutant %u: counted as %s", i, urn_counter_name(c));
		met[k]++;
	}
	for (unsigned int k = 0; k < KNOWN; k++)
		if (known[k] != URN_C_DROP_LINK_UNASKED && known[k] != URN_C_DROP_MAD_LENGTH &&
		    met[k] == 0)
			fail_msg("no mutant was counted as %s", urn_counter_name(known[k]));
	assert_in_range(urn_learn_count(lk), 0, 2);
}

/* ---- versions and features */

/* Another major version: answered with our version, and plain. */
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

/* A feature that one side does not offer is not common. */
static void
test_features(void **state)
{
	struct urn_learn_config cfg = config();
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.features = 0xfffffffe;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, 0);
	expect_state(peer_v4, KNOWN);
	urn_learn_destroy(lk);
	cfg.offer = 0;
	lk = urn_learn_create(&cfg);
	s.features = 0xffffffff;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	assert_int_equal(link_get(link_body(buf) + 16, 4), 0);
	expect_features(peer_v4, 0);
	expect_features(us_v4, 0);
	expect_state(peer_v4, KNOWN);
	/* The cache line size is known all the same. */
	assert_int_equal(arw_of(lk, peer_v4), URN_LINK_ARW_64);
	/* A feature more (architecture.md, seam 9), of any bit: common when both offer it. */
	urn_learn_destroy(lk);
	cfg.offer = URN_LINK_F_ALL | 1u << 7;
	lk = urn_learn_create(&cfg);
	s.features = 1u << 7 | 1u << 9;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	assert_int_equal(link_get(link_body(buf) + 16, 4), URN_LINK_F_ALL | 1u << 7);
	expect_features(peer_v4, 1u << 7);
}

/* A request alone lets nothing be sent that ends the queue pair of a peer without it: a response is
 * asked for, which names the feature (AW-4). A request takes it back at once. */
static void
test_proof(void **state)
{
	const uint32_t both = URN_LINK_F_SACK | URN_LINK_F_WRITE_TWO;
	struct urn_learn_config cfg = config();
	struct link_spec s = link_good(0, 3), r;
	uint64_t tid;

	(void)state;
	urn_learn_destroy(lk);
	cfg.offer = URN_LINK_F_ALL;
	lk = urn_learn_create(&cfg);
	s.features = both;
	request(peer_v4, &s, START, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(START, 1);
	tid = link_tid(buf);
	/* Requests change nothing about that, and do not end the question. */
	request(peer_v4, &s, START + MS, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, URN_LINK_F_SACK);
	r = link_good(1, tid ^ 1);
	r.features = both;
	assert_int_equal(from(peer_v4, &r, START + MS, NULL), URN_C_DROP_LINK_UNASKED);
	expect_features(peer_v4, URN_LINK_F_SACK);
	r.tid = tid;
	assert_int_equal(from(peer_v4, &r, START + MS, NULL), URN_C_LINK_RESP_RX);
	expect_news(peer_v4, both);
	expect_features(peer_v4, both);
	/* Another life of the peer, which does not have it, and one that says so again. */
	s.features = URN_LINK_F_SACK;
	request(peer_v4, &s, START + 2 * MS, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, URN_LINK_F_SACK);
	s.features = both;
	request(peer_v4, &s, START + 3 * MS, URN_C_LINK_REQ_RX);
	expect_features(peer_v4, URN_LINK_F_SACK);
	expect_poll(START + 4 * MS, 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_request_teaches), T(test_both_ask), T(test_plain_asks), T(test_duplicate),
		T(test_unasked),	 T(test_sender),   T(test_refused),    T(test_malformed),
		T(test_mutants),	 T(test_version),  T(test_features),   T(test_proof),
	};

	return cmocka_run_group_tests_name("link_answer", tests, NULL, NULL);
}
