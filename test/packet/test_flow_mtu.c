/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: the length of packets (DB-7; doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include "base/rnd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <rte_ip.h>

#include <cmocka.h>

#define MS 1000000ull
#define S 1000000000ull

enum {
	PATH = 1024, /* path MTU of these nodes */
	HEAD = 42 + 12 +
	       16, /* bytes of a frame before the payload: up to the BTH, BTH, flow header */
	ICRC = 4,
	ONE = PATH - (int)sizeof(struct urn_flow_seg), /* longest message in a packet of that */
};

/* Lengths of the payloads of data that were sent. */
struct seen {
	uint32_t longest; /* the longest so far */
	uint32_t beyond;  /* packets longer than the path MTU */
};

static void
see(void *ctx, const struct rte_mbuf *m)
{
	struct seen *s = ctx;
	uint32_t bytes = m->data_len - HEAD - ICRC;

	if (rte_pktmbuf_mtod(m, const uint8_t *)[42] != URN_FLOW_DATA)
		return;
	s->longest = RTE_MAX(s->longest, bytes);
	s->beyond += bytes > PATH;
}

static struct flow_net *
net_of(uint16_t a, uint16_t b, struct seen *seen)
{
	struct flow_net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	memset(seen, 0, sizeof(*seen));
	n->flow_mtu[0] = a;
	n->flow_mtu[1] = b;
	n->watch = see;
	n->watch_ctx = seen;
	flow_net_open(n, 2, 1);
	return n;
}

/* Send a message from node 0 to node 1, and wait. returns: the answer */
static uint8_t
pass(struct flow_net *n, uint32_t len)
{
	uint32_t got = n->node[1].got_n;
	struct flow_sent s;
	uint8_t code;

	assert_int_equal(flow_send(n, 0, 1, flow_qid(0), len, 7, &s), URN_MSG_PENDING);
	flow_net_until(n, &s, 10 * S);
	assert_int_equal(s.answers, 1);
	code = s.code;
	if (code == URN_MSG_DONE) {
		assert_int_equal(n->node[1].got_n, got + 1);
		assert_true(n->node[1].got[got].whole && n->node[1].got[got].len == len);
	}
	flow_sent_free(&s);
	return code;
}

static uint64_t
packets(const struct flow_net *n)
{
	return flow_net_count(n, 0, URN_C_FLOW_TX);
}

/* DB-7: a flow begins with the path MTU, and uses what both ports carry once a probe has come. A
 * message that fits such a packet is one packet, and no buffer. */
static void
grows(void **state)
{
	static const uint16_t mtu[][2] = {{1420, 1420}, {1800, 1420}, {1420, 1800}};
	struct seen seen;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(mtu); i++) {
		struct flow_net *n = net_of(mtu[i][0], mtu[i][1], &seen);
		uint64_t before;

		assert_int_equal(pass(n, 5000), URN_MSG_DONE);
		assert_int_equal(seen.beyond, 0); /* the node had told nothing when all was sent */
		assert_int_equal(pass(n, ONE + 1), URN_MSG_DONE);
		assert_int_equal(seen.beyond, 1); /* a probe goes before the parts */
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_LONG), 1);
		assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_LONG), 0);
		before = packets(n);
		assert_int_equal(pass(n, 1420 - sizeof(struct urn_flow_seg)), URN_MSG_DONE);
		assert_int_equal(packets(n), before + 1);
		assert_int_equal(pass(n, 1420 - sizeof(struct urn_flow_seg) + 1), URN_MSG_DONE);
		assert_int_equal(packets(n), before + 3);
		assert_int_equal(pass(n, URN_MSG_MAX), URN_MSG_DONE);
		assert_int_equal(packets(n), before + 3 + (URN_MSG_MAX + 1387) / 1388);
		assert_int_equal(seen.longest, 1420);
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_LONG), 1);
		flow_net_end(n);
	}
}

/* Messages that are short need no long packets, and cost no probe. */
static void
short_messages_probe_nothing(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);

	(void)state;
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(pass(n, ONE), URN_MSG_DONE);
	assert_int_equal(seen.beyond, 0);
	assert_int_equal(packets(n), 20);
	flow_net_end(n);
}

/* A node that takes less than our path MTU gets no more from its first answer on. */
static void
smaller_node(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1800, 1200, &seen);

	(void)state;
	n->node[0].tp->cfg.mtu = 1800;
	assert_int_equal(pass(n, 8000), URN_MSG_DONE);
	assert_int_equal(seen.longest, 1800);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(pass(n, 8000), URN_MSG_DONE);
	assert_int_equal(seen.longest, 1200);
	flow_net_end(n);
}

/* Send so many messages of a length at once, before the node tells its room. */
static void
begin(struct flow_net *n, unsigned int many, uint32_t len, struct flow_sent *s)
{
	n->delay = 100000;
	for (uint32_t i = 0; i < many; i++)
		flow_send(n, 0, 1, flow_qid(0), len, i + 1, &s[i]);
}

static void
end_all(struct flow_net *n, unsigned int many, struct flow_sent *s)
{
	for (uint32_t i = 0; i < many; i++) {
		flow_net_until(n, &s[i], 10 * S);
		assert_int_equal(s[i].code, URN_MSG_DONE);
	}
	assert_int_equal(n->node[1].got_n, many);
	for (uint32_t i = 0; i < many; i++)
		flow_sent_free(&s[i]);
}

/* Messages that wait when packets become longer, and fit then, stay in their queue, and are sent.
 */
static void
waiting_messages_fit_longer_packets(void **state)
{
	enum { MANY = 200 };
	struct flow_sent s[MANY];
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);

	(void)state;
	begin(n, MANY, 1300, s);
	while (!flow_net_count(n, 0, URN_C_FLOW_LONG))
		flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(s[MANY - 1].m.state, URN_FLOW_MSG_LONG);
	end_all(n, MANY, s);
	flow_net_end(n);
}

/* Messages that wait when packets become shorter, and fit none then, are sent in parts. */
static void
waiting_messages_become_long(void **state)
{
	enum { MANY = 200 };
	struct flow_sent s[MANY];
	struct seen seen;
	struct flow_net *n = net_of(1800, 1200, &seen);

	(void)state;
	n->node[0].tp->cfg.mtu = 1800;
	begin(n, MANY, 1700, s);
	end_all(n, MANY, s);
	assert_int_equal(seen.longest, sizeof(struct urn_flow_seg) + 1700);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_FORMAT), 0);
	flow_net_end(n);
}

/* Messages that wait while the node restarts go in packets of the path MTU again. */
static void
restart(void **state)
{
	enum { MANY = 60 };
	struct flow_sent s[MANY];
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);

	(void)state;
	n->delay = 100000;
	for (unsigned int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++)
			flow_send(n, 0, 1, flow_qid(0), i % 2 ? 1300 : 900, i + 1, &s[i]);
		for (uint32_t i = 0; i < MANY; i++)
			flow_net_until(n, &s[i], 10 * S);
		for (uint32_t i = 0; i < MANY; i++) {
			assert_int_equal(s[i].answers, 1);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, (round + 1) * MANY);
		flow_net_restart(n, 1);
		n->node[1].tp->flows->born -= 2 * URN_FLOW_YOUNG_NS;
		flow_net_run(n, 100 * MS);
		(void)pass(n, 64); /* the epoch ends: RESTARTED */
	}
	assert_true(flow_net_count(n, 0, URN_C_FLOW_LONG) >= 1);
	flow_net_end(n);
}

/* A network that drops long frames costs three probes, and no message. */
static void
network_drops_long_frames(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);
	uint64_t start = n->now;

	(void)state;
	n->carries = HEAD + PATH + ICRC;
	for (unsigned int i = 0; i < 50; i++)
		assert_int_equal(pass(n, 3000), URN_MSG_DONE);
	assert_int_equal(seen.beyond, URN_FLOW_PROBE_TRIES);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_LONG), 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_PROBES_LOST), 1);
	assert_true(n->now - start < 100 * MS);
	assert_int_equal(urn_flow_fits(n->node[0].tp, n->node[1].gid, flow_qid(0)), ONE);
	n->carries = 0; /* after many packets the flow probes again */
	n->node[0].tp->flows->last->probe_no -= URN_FLOW_PROBE_AGAIN;
	assert_int_equal(pass(n, 3000), URN_MSG_DONE);
	assert_int_equal(pass(n, 3000), URN_MSG_DONE);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_LONG), 1);
	flow_net_end(n);
}

/* A network that ceases to carry long frames ends the epoch; the next one has short packets. */
static void
network_changes(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(pass(n, 3000), URN_MSG_DONE);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_LONG), 1);
	n->carries = HEAD + PATH + ICRC;
	assert_int_equal(pass(n, 1300), URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(pass(n, 1300), URN_MSG_DONE);
	flow_net_run(n, 100 * MS);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_PROBES_LOST), 1);
	flow_net_end(n);
}

/* A node that tells nonsense, or another number each time, gets packets that our port carries. */
static void
lying_node(void **state)
{
	static const uint16_t lie[] = {0, 1, 1023, 65535, 65533};
	struct seen seen;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(lie); i++) {
		struct flow_net *n = net_of(1420, 1420, &seen);

		n->node[1].tp->cfg.flow_mtu = lie[i];
		for (unsigned int k = 0; k < 5; k++)
			assert_int_equal(pass(n, 3000), URN_MSG_DONE);
		assert_int_equal(seen.longest, lie[i] > 1420 ? 1420 : PATH);
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_DROP_FORMAT), 0);
		flow_net_end(n);
	}
}

static void
changing_node(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);
	uint64_t rnd = 5;

	(void)state;
	for (unsigned int k = 0; k < 200; k++) {
		n->node[1].tp->cfg.flow_mtu = (uint16_t)urn_rnd_next(&rnd);
		assert_int_equal(pass(n, (uint32_t)(urn_rnd_next(&rnd) % 5000)), URN_MSG_DONE);
	}
	assert_true(seen.longest <= 1420);
	flow_net_end(n);
}

/* An ack whose flag promises more bytes than it has is dropped. */
static void
short_ack(void **state)
{
	struct seen seen;
	struct flow_net *n = net_of(1420, 1420, &seen);
	struct flow_sent s;
	struct rte_ipv4_hdr *ip;
	struct rte_mbuf *m;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
	while (!n->wire_n || rte_pktmbuf_mtod(n->wire[0].m, uint8_t *)[42] != URN_FLOW_ACK)
		flow_net_run(n, FLOW_NET_STEP);
	m = n->wire[0].m;
	rte_pktmbuf_trim(m, sizeof(struct urn_flow_room));
	rte_pktmbuf_mtod(m, uint8_t *)[17] -= sizeof(struct urn_flow_room); /* IPv4, UDP lengths */
	rte_pktmbuf_mtod(m, uint8_t *)[39] -= sizeof(struct urn_flow_room);
	ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	urn_build_icrc(rte_pktmbuf_mtod(m, uint8_t *), m->data_len - ICRC, false, true);
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_DROP_FORMAT), 1);
	assert_int_equal(s.answers, 0);
	flow_net_until(n, &s, S); /* a repeat is answered by a sound one */
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* Ports of different MTU, on a wire that loses, doubles and delays: each message once. */
static void
bad_wires(void **state)
{
	enum { MANY = 300 };
	struct flow_sent *s = calloc(MANY, sizeof(*s));

	(void)state;
	assert_non_null(s);
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct seen seen;
		struct flow_net *n = net_of(1420 + 60 * (uint16_t)(seed % 4), 1800, &seen);
		uint64_t rnd = seed;
		uint8_t once[MANY] = {0};

		n->lose = 15;
		n->twice = 5;
		n->late = 20;
		n->carries = seed % 3 ? 0 : HEAD + PATH + ICRC;
		for (uint32_t i = 0; i < MANY; i++) {
			flow_send(n, 0, 1, flow_qid(0), 4 + (uint32_t)(urn_rnd_next(&rnd) % 3000),
				  i, &s[i]);
			flow_net_run(n, urn_rnd_next(&rnd) % 20000);
		}
		for (uint32_t i = 0; i < MANY; i++) {
			flow_net_until(n, &s[i], 20 * S);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, MANY);
		for (uint32_t i = 0; i < MANY; i++)
			assert_true(n->node[1].got[i].whole && !once[n->node[1].got[i].tag]++);
		flow_net_end(n);
	}
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(short_messages_probe_nothing),
		cmocka_unit_test(smaller_node),
		cmocka_unit_test(waiting_messages_fit_longer_packets),
		cmocka_unit_test(waiting_messages_become_long),
		cmocka_unit_test(restart),
		cmocka_unit_test(network_drops_long_frames),
		cmocka_unit_test(network_changes),
		cmocka_unit_test(lying_node),
		cmocka_unit_test(changing_node),
		cmocka_unit_test(short_ack),
		cmocka_unit_test(bad_wires),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
