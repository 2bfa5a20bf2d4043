/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes of flows repeat one packet when nothing comes for longer than a round trip takes
 * (doc/inside/recovery.md, Time; DB-7). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull

enum { MANY = 12, LEN = 900, PSN = 42 + 9, OPCODE = 42 }; /* offsets in a frame */

/* Losses of the frames of one PSN. */
struct loss {
	struct flow_net *net;
	uint8_t psn[3];	     /* the first data packet's, once one was seen */
	unsigned int seen;   /* its transmissions */
	unsigned int losses; /* transmissions that get lost, the first ones */
};

static void
lose_first(void *ctx, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	struct loss *l = ctx;

	l->net->cut = false;
	if (f[OPCODE] != URN_FLOW_DATA)
		return;
	if (l->seen == 0)
		memcpy(l->psn, f + PSN, sizeof(l->psn));
	if (memcmp(l->psn, f + PSN, sizeof(l->psn)) == 0)
		l->net->cut = l->seen++ < l->losses;
}

/* A net whose first node has sent to the second one, and knows the round trip. */
static struct flow_net *
warm(void)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	for (unsigned int i = 0; i < 8; i++) {
		flow_send(n, 0, 1, flow_qid(0), LEN, 1, &s);
		flow_net_until(n, &s, 100 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		flow_sent_free(&s);
	}
	return n;
}

static void
send_burst(struct flow_net *n, struct flow_sent s[MANY])
{
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(flow_send(n, 0, 1, flow_qid(0), LEN, i, &s[i]), URN_MSG_PENDING);
}

static void
all_done(struct flow_net *n, struct flow_sent s[MANY])
{
	for (unsigned int i = 0; i < MANY; i++) {
		flow_net_until(n, &s[i], 1000 * MS);
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
}

/* All packets of a burst are lost. The probe is the newest, and its acknowledgement shows the holes
 * before it: they come back together, and not one a probe. */
static void
a_burst_is_lost(void **state)
{
	struct flow_net *n = warm();
	struct flow_sent s[MANY];

	(void)state;
	n->cut = true;
	send_burst(n, s);
	flow_net_run(n, 10 * FLOW_NET_STEP);
	n->cut = false;
	all_done(n, s);
	assert_int_equal(flow_net_count(n, 0, URN_C_PROBES), 1);
	assert_int_equal(flow_net_count(n, 0, URN_C_EARLY_TIMEOUTS), 0);
	flow_net_end(n);
}

/* A packet is lost twice, and the newest has come: the probe is the one that was lost, before all
 * are repeated. */
static void
a_repeat_is_lost(void **state)
{
	struct flow_net *n = warm();
	struct loss l = {.net = n, .losses = 2};
	struct flow_sent s[MANY];

	(void)state;
	n->watch = lose_first;
	n->watch_ctx = &l;
	send_burst(n, s);
	all_done(n, s);
	assert_int_equal(l.seen, 3);
	assert_int_equal(flow_net_count(n, 0, URN_C_PROBES), 1);
	assert_int_equal(flow_net_count(n, 0, URN_C_EARLY_TIMEOUTS), 0);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_lost),
		cmocka_unit_test(a_repeat_is_lost),
	};

	return cmocka_run_group_tests_name("flow_probe", tests, NULL, NULL);
}
