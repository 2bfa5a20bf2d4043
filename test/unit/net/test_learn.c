/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the entry of a peer, and news of it for several engines (doc/inside/link.md). */
#include "learn_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(urn_learn_state_name(URN_LEARN_UNKNOWN), "unknown");
	assert_string_equal(urn_learn_state_name(URN_LEARN_PLAIN), "plain");
	for (unsigned int i = 0; i < URN_LEARN_STATES; i++)
		assert_non_null(urn_learn_state_name(i));
	assert_string_equal(urn_learn_state_name(URN_LEARN_STATES), "?");
	urn_learn_destroy(NULL);
}

/* ---- change */

/* A request with another epoch: accepted, and asked about. */
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
	assert_int_equal(urn_learn_peek(lk, peer_v4, &info), URN_LEARN_KNOWN);
	assert_int_equal(info.epoch, 0x2222);
	/* The request was a late copy: the answer corrects the entry. */
	expect_poll(START + SECOND, 1);
	s = link_good(1, link_tid(buf));
	assert_int_equal(from(peer_v4, &s, START + SECOND, NULL), URN_C_LINK_RESP_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
	expect_features(peer_v4, URN_LINK_F_SACK);
	/* The same features from a restarted peer are news, too. */
	s = link_good(0, 1);
	s.epoch = 0x3333;
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* The line of the peer's caches comes with its features, is news of its own, and goes with them
 * (AW-1, AW-2). */
static void
test_line(void **state)
{
	struct link_spec s = link_good(0, 1);
	struct urn_learn_news n;

	(void)state;
	assert_int_equal(urn_learn_line(lk, us_v4), 64);
	assert_int_equal(urn_learn_line(lk, peer_v4), 0);
	assert_int_equal(urn_learn_count(lk), 0); /* nobody was asked */
	make_known(peer_v4, START);
	for (uint8_t code = 0; code < 16; code++) {
		s.arw = code ^ 1u;
		request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
		assert_int_equal(urn_learn_line(lk, peer_v4),
				 s.arw >= 1 && s.arw <= 3 ? 32u << s.arw : 0);
	}
	while (urn_learn_news(lk, &seen, &n, 1))
		;
	s.arw = 3;
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	assert_int_equal(urn_learn_news(lk, &seen, &n, 1), 1);
	assert_int_equal(n.line, 256);
	request(peer_v4, &s, START + SECOND, URN_C_LINK_REQ_RX);
	expect_no_news();
	s.major = URN_LINK_MAJOR + 1;
	request(peer_v4, &s, START + SECOND, URN_C_LINK_VERSION);
	assert_int_equal(urn_learn_news(lk, &seen, &n, 1), 1);
	assert_int_equal(n.line, 0);
	assert_int_equal(urn_learn_line(lk, peer_v4), 0);
}

/* An unused peer is not asked. */
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

/* An old entry is asked about again, and stays valid meanwhile. */
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
	assert_int_equal(arw_of(lk, peer_v4), URN_LINK_ARW_NONE);
}

/* ---- news, for several engines */

enum { CROWD = 100 };

static void
test_news(void **state)
{
	struct urn_learn_news n[CROWD];
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
	assert_int_equal(urn_learn_news(lk, &seen, n, 60), 60);
	for (uint32_t i = 0; i < 60; i++) {
		l3_nth_v4(gid, i);
		assert_memory_equal(n[i].gid, gid, 16);
	}
	/* One of the remaining peers changes again: it is reported once, and last. */
	l3_nth_v4(gid, 70);
	s.features = 0;
	request(gid, &s, START, URN_C_LINK_REQ_RX);
	assert_int_equal(urn_learn_news(lk, &seen, n, 60), 40);
	assert_memory_equal(n[39].gid, gid, 16);
	assert_int_equal(n[39].features, 0);
	assert_int_equal(n[38].features, URN_LINK_F_SACK);
	expect_no_news();
	/* Another engine gets all the news, in its own time. */
	assert_int_equal(urn_learn_news(lk, &other, n, CROWD), CROWD);
	assert_int_equal(urn_learn_news(lk, &other, n, CROWD), 0);
	assert_int_equal(other, seen);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_names),		T(test_epoch_request), T(test_line),
		T(test_epoch_unwanted), T(test_refresh),       T(test_news),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
