/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of faults on demand: all words, and the place of an error. */
#include "test.h"

#include "verbs/fault/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct urn_fault_spec spec[URN_FAULT_MAX];
static struct urn_fault_error error;

static void
expect(const char *text, enum urn_fault_site site, uint32_t queue, uint32_t number,
       enum urn_fault_when when, uint64_t n, int what)
{
	uint32_t count;

	if (urn_fault_parse(text, spec, &count, &error) != 0)
		fail_msg("%s: %u: %s", text, error.at, error.why);
	assert_int_equal(count, 1);
	assert_int_equal(spec[0].site, site);
	assert_int_equal(spec[0].queue, queue);
	assert_int_equal(spec[0].number, number);
	assert_int_equal(spec[0].when, when);
	assert_int_equal(spec[0].n, n);
	assert_int_equal(spec[0].what, what);
}

static void
calls(void **state)
{
	char text[80];
	uint32_t i;

	(void)state;
	for (i = 0; i < URN_FAULT_WC; i++) {
		snprintf(text, sizeof(text), "%s:3=ENOMEM", urn_fault_word((enum urn_fault_site)i));
		expect(text, (enum urn_fault_site)i, 0, 0, URN_FAULT_NTH, 3, ENOMEM);
	}
	expect("post_send=EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_FROM, 1, EIO);
	expect("post_send:7+=EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_FROM, 7, EIO);
	expect("post_send:every 10=EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_EVERY, 10, EIO);
	expect("post_send: every10 = EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_EVERY, 10, EIO);
	expect("post_send:100%=EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_PERCENT, 1ull << 32, EIO);
	expect("post_send:0.5%=EIO", URN_FAULT_POST_SEND, 0, 0, URN_FAULT_PERCENT,
	       (1ull << 32) / 200, EIO);
	expect("post_send@qp2:3=EIO", URN_FAULT_POST_SEND, URN_FAULT_QP, 2, URN_FAULT_NTH, 3, EIO);
	expect("post_send@qp*=EIO", URN_FAULT_POST_SEND, URN_FAULT_QP, URN_FAULT_EACH,
	       URN_FAULT_FROM, 1, EIO);
	expect("poll_cq@cq1=EIO", URN_FAULT_POLL_CQ, URN_FAULT_CQ, 1, URN_FAULT_FROM, 1, EIO);
	expect("post_srq_recv@srq1=EIO", URN_FAULT_POST_SRQ_RECV, URN_FAULT_SRQ, 1, URN_FAULT_FROM,
	       1, EIO);
}

static void
completions(void **state)
{
	(void)state;
	expect("wc:100=RNR_RETRY_EXC", URN_FAULT_WC, 0, 0, URN_FAULT_NTH, 100,
	       IBV_WC_RNR_RETRY_EXC_ERR);
	expect("wc=RETRY_EXC_ERR", URN_FAULT_WC, 0, 0, URN_FAULT_FROM, 1, IBV_WC_RETRY_EXC_ERR);
	expect("wc@cq2=IBV_WC_GENERAL_ERR", URN_FAULT_WC, URN_FAULT_CQ, 2, URN_FAULT_FROM, 1,
	       IBV_WC_GENERAL_ERR);
	expect("wc_send@qp1=IBV_WC_REM_OP", URN_FAULT_WC_SEND, URN_FAULT_QP, 1, URN_FAULT_FROM, 1,
	       IBV_WC_REM_OP_ERR);
	expect("wc_recv=WR_FLUSH", URN_FAULT_WC_RECV, 0, 0, URN_FAULT_FROM, 1, IBV_WC_WR_FLUSH_ERR);
}

static void
events(void **state)
{
	(void)state;
	expect("event:5s=PORT_ERR", URN_FAULT_EVENT, 0, 0, URN_FAULT_AFTER, 5000000000u,
	       IBV_EVENT_PORT_ERR);
	expect("event:1.5ms=IBV_EVENT_GID_CHANGE", URN_FAULT_EVENT, 0, 0, URN_FAULT_AFTER, 1500000,
	       IBV_EVENT_GID_CHANGE);
	expect("event=DEVICE_FATAL", URN_FAULT_EVENT, 0, 0, URN_FAULT_AFTER, 0,
	       IBV_EVENT_DEVICE_FATAL);
	expect("event:10=QP_FATAL", URN_FAULT_EVENT, URN_FAULT_QP, URN_FAULT_EACH, URN_FAULT_NTH,
	       10, IBV_EVENT_QP_FATAL);
	expect("event@cq2:20us=CQ_ERR", URN_FAULT_EVENT, URN_FAULT_CQ, 2, URN_FAULT_AFTER, 20000,
	       IBV_EVENT_CQ_ERR);
	expect("kill-peer:2s", URN_FAULT_KILL_PEER, 0, 0, URN_FAULT_AFTER, 2000000000u, 0);
	expect("kill-peer", URN_FAULT_KILL_PEER, 0, 0, URN_FAULT_AFTER, 0, 0);
	expect("kill-peer:9", URN_FAULT_KILL_PEER, 0, 0, URN_FAULT_NTH, 9, 0);
}

static void
lists(void **state)
{
	char text[URN_FAULT_LIST + 8];
	uint32_t n, i;

	(void)state;
	assert_int_equal(urn_fault_parse("", spec, &n, &error), 0);
	assert_int_equal(n, 0);
	assert_int_equal(urn_fault_parse(" ;reg_mr=ENOMEM ; wc:2=FATAL_ERR;;", spec, &n, &error),
			 0);
	assert_int_equal(n, 2);
	assert_int_equal(spec[1].what, IBV_WC_FATAL_ERR);
	for (text[0] = '\0', i = 0; i <= URN_FAULT_MAX; i++) {
		assert_int_equal(urn_fault_parse(text, spec, &n, &error), 0);
		assert_int_equal(n, i);
		strcat(text, "reg_mr=EIO;");
	}
	assert_int_equal(urn_fault_parse(text, spec, &n, &error), EINVAL);
	assert_int_equal(error.at, URN_FAULT_MAX * strlen("reg_mr=EIO;") + 1);
	memset(text, ';', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(urn_fault_parse(text, spec, &n, &error), EINVAL);
}

/* Each wrong text is refused at the character that is wrong. */
static void
wrong_texts(void **state)
{
	static const struct {
		const char *text;
		uint32_t at;
	} bad[] = {
		{"post_snd=EIO", 1},
		{"=EIO", 1},
		{"post_send", 10},
		{"post_send:=EIO", 11},
		{"post_send:0=EIO", 11},
		{"post_send:-1=EIO", 11},
		{"post_send:1.5=EIO", 11},
		{"post_send:1s=EIO", 11},
		{"post_send:101%=EIO", 11},
		{"post_send:100.1%=EIO", 11},
		{"post_send:every=EIO", 16},
		{"post_send:every 0=EIO", 11},
		{"post_send:1234567890123456789=EIO", 11},
		{"post_send@=EIO", 11},
		{"post_send@qp=EIO", 13},
		{"post_send@qp0=EIO", 13},
		{"post_send@cq1=EIO", 11},
		{"post_send@srq1=EIO", 11},
		{"reg_mr@qp1=EIO", 8},
		{"post_send:1=", 13},
		{"post_send:1=eio", 13},
		{"post_send:1=EIO x", 17},
		{"wc:1=RETRY", 6},
		{"wc:1=SUCCESS", 6},
		{"wc:1=_ERR", 6},
		{"wc_recv:1=RETRY_EXC", 11},
		{"wc:1s=RETRY_EXC", 4},
		{"event:5%=PORT_ERR", 7},
		{"event:every 2=PORT_ERR", 7},
		{"event:2+=PORT_ERR", 7},
		{"event:2d=PORT_ERR", 8},
		{"event:90000s=PORT_ERR", 7},
		{"event@qp1=PORT_ERR", 11},
		{"event@cq1=QP_FATAL", 11},
		{"event@qp*=QP_FATAL", 7},
		{"event=", 7},
		{"kill-peer:2s=1", 13},
		{"kill-peer@qp1", 11},
		{"reg_mr=EIO;x", 12},
	};
	uint32_t i, n;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&error, 0, sizeof(error));
		if (urn_fault_parse(bad[i].text, spec, &n, &error) != EINVAL ||
		    error.at != bad[i].at || error.why[0] == '\0')
			fail_msg("'%s': %u: '%s'", bad[i].text, error.at, error.why);
	}
}

static void
seeds(void **state)
{
	static const char *const bad[] = {
		"", "x", "-1", "1 ", "0x", "0xg", "18446744073709551616", "12a"};
	uint64_t seed;
	uint32_t i;

	(void)state;
	assert_int_equal(urn_fault_seed("18446744073709551615", &seed), 0);
	assert_int_equal(seed, UINT64_MAX);
	assert_int_equal(urn_fault_seed("0xBeef", &seed), 0);
	assert_int_equal(seed, 0xbeef);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (urn_fault_seed(bad[i], &seed) != EINVAL)
			fail_msg("'%s' was taken", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls), cmocka_unit_test(completions), cmocka_unit_test(events),
		cmocka_unit_test(lists), cmocka_unit_test(wrong_texts), cmocka_unit_test(seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
