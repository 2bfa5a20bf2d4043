/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows at rest (doorbell.md DB-6, DB-7; doc/inside/messages.md "Flows at rest"). */
#include "flow_net.h"

#include "transport/flow_rest.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum {
	NODES = 65536,
	HEADERS = 42,			/* bytes of a frame before its BTH */
	FAR_START = URN_FLOW_START_MIN, /* start of each far node */
	FAR_EPOCH = 1000,
	AHEAD_IN = 16,	   /* far nodes whose second packet comes before the first */
	KNOWN_FROM = 1000, /* far nodes from this one on know our start */
	KEPT = 65536,	   /* bytes that the C library keeps */
};

/* ---- far nodes: the test answers for them */

/* Nodes of which there are as many as wanted. */
struct far {
	struct flow_net *n;
	uint64_t epoch[NODES]; /* epoch of the data that came last; 0: none */
	bool answers;	       /* the nodes answer with data, too */
	bool deaf;	       /* the nodes answer nothing */
};

static void
gid_of(const struct flow_net *n, uint32_t i, uint8_t gid[16])
{
	memcpy(gid, n->node[0].gid, 16);
	gid[12] = 11;
	gid[13] = (uint8_t)(i >> 8);
	gid[14] = (uint8_t)i;
	gid[15] = 99;
}

/* Put a packet of a far node on the wire to node 0. h: epoch, start and psn, host order */
static void
far_packet(struct flow_net *n, uint32_t i, uint8_t opcode, const struct urn_flow_hdr *h,
	   uint32_t psn, const void *payload, uint32_t len)
{
	struct urn_path path = {.ttl = 64, .sport = URN_ROCE_SPORT_MIN};
	uint8_t f[512], *bth = f + HEADERS;
	struct urn_flow_hdr *to = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
	uint32_t extra = (uint32_t)(sizeof(struct urn_bth) + sizeof(*to)) + len;
	struct urn_tmpl t;

	memcpy(path.smac, (const uint8_t[]){2, 0, 0, 0, 0, 99}, 6);
	memcpy(path.dmac, n->node[0].mac, 6);
	gid_of(n, i, path.sgid);
	memcpy(path.dgid, n->node[0].gid, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	urn_build_headers(f, &t, extra);
	urn_build_bth((struct urn_bth *)bth, opcode, 0, 0, urn_flow_qpn(0), psn, 0);
	to->epoch = rte_cpu_to_be_64(h->epoch);
	to->start = rte_cpu_to_be_32(h->start);
	to->psn = rte_cpu_to_be_32(h->psn);
	memcpy(to + 1, payload, len);
	urn_build_icrc(f, HEADERS + extra, false, true);
	flow_net_inject(n, 0, f, HEADERS + extra + URN_ICRC_BYTES);
}

/* A far node sends an empty message. */
static void
far_data(struct flow_net *n, uint32_t i, uint32_t psn)
{
	const struct urn_flow_hdr h = {
		.epoch = FAR_EPOCH + i,
		.start = i < KNOWN_FROM ? 0 : n->node[0].tp->cfg.flow_epoch,
	};
	struct urn_flow_seg s = {.qid = rte_cpu_to_be_64(flow_qid(1))};

	far_packet(n, i, URN_FLOW_DATA, &h, psn, &s, sizeof(s));
}

/* A far node acknowledges all packets before psn. */
static void
far_ack(struct flow_net *n, uint32_t i, uint64_t epoch, uint32_t psn)
{
	const struct urn_flow_hdr h = {.epoch = epoch, .start = FAR_START, .psn = psn};
	struct urn_flow_ack a = {.age = UINT16_MAX};

	far_packet(n, i, URN_FLOW_ACK, &h, 0, &a, sizeof(a));
}

/* Node 0 sent a packet. */
static void
far_took(void *ctx, const struct rte_mbuf *m)
{
	struct far *far = ctx;
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct urn_bth *bth = (const struct urn_bth *)(f + HEADERS);
	const struct urn_flow_hdr *h = (const struct urn_flow_hdr *)(bth + 1);
	uint32_t i = (uint32_t)f[31] << 8 | f[32];
	bool first = !far->epoch[i];

	if (f[HEADERS] != URN_FLOW_DATA || f[30] != 11 || far->deaf)
		return;
	far->epoch[i] = rte_be_to_cpu_64(h->epoch);
	far_ack(far->n, i, far->epoch[i], (rte_be_to_cpu_32(bth->apsn) + 1) & URN_PSN_MASK);
	if (far->answers && first)
		far_data(far->n, i, i % AHEAD_IN == 0);
}

static struct far *
far_new(uint64_t seed)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	far->n = flow_net_new(1, seed);
	far->n->watch = far_took;
	far->n->watch_ctx = far;
	far->answers = true;
	return far;
}

static void
far_end(struct far *far)
{
	flow_net_end(far->n);
	free(far);
}

/* Send a message to a far node. returns: the result of urn_flow_send(); its answer is DONE */
static uint8_t
far_send(struct far *far, uint32_t i, struct urn_tp_share *owner)
{
	struct flow_sent s;
	uint8_t gid[16], code;

	gid_of(far->n, i, gid);
	code = flow_send_as(far->n, 0, gid, owner, 64, i, &s);
	if (code == URN_MSG_PENDING) {
		flow_net_until(far->n, &s, MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		flow_net_run(far->n, 3 * FLOW_NET_STEP);
	}
	flow_sent_free(&s);
	return code;
}

/* Let time go by until nothing is left. */
static void
age(struct flow_net *n)
{
	for (unsigned int i = 0; i < 90; i++) {
		n->now += 1000 * MS;
		flow_net_run(n, 40 * FLOW_NET_STEP);
	}
	for (unsigned int i = 0; i < NODES && n->node[0].tp->wheel.count; i++)
		flow_net_run(n, FLOW_NET_STEP); /* a turn looks at few of them */
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	assert_int_equal(n->node[0].tp->flows->rests, 0);
	assert_int_equal(n->node[0].tp->flows->doubted, 0);
	assert_int_equal(n->node[0].tp->wheel.count, 0);
}

/* Copies of all packets come once more, and then the packets that were overtaken. */
static void
repeat_all(struct far *far)
{
	struct flow_net *n = far->n;

	n->node[0].got_n = 0;
	for (uint32_t i = 0; i < NODES; i++) {
		far_data(n, i, i % AHEAD_IN == 0);
		if (i % 64 == 63)
			flow_net_run(n, 5 * FLOW_NET_STEP);
	}
	assert_int_equal(n->node[0].got_n, 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_DUPLICATES), NODES);
	for (uint32_t i = 0; i < NODES; i += AHEAD_IN) {
		far_data(n, i, 0);
		far_data(n, i, 1);
		far_data(n, i, 0);
		flow_net_run(n, 5 * FLOW_NET_STEP);
	}
	assert_int_equal(n->node[0].got_n, NODES / AHEAD_IN);
}

/*
 * DB-6, DB-7: one owner sends to 64 Ki nodes, one after the other, each of which answers with data.
 * No message is BUSY, copies of packets are not delivered, epochs go on, and at last nothing is
 * left.
 */
static void
all_nodes_of_one_owner(void **state)
{
	struct far *far = far_new(1);
	struct flow_net *n = far->n;
	struct urn_tp_share client = {0};
	size_t before = mallinfo2().uordblks, most;
	uint64_t epoch;

	(void)state;
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(far_send(far, i, &client), URN_MSG_PENDING);
	most = mallinfo2().uordblks - before;
	assert_int_equal(n->node[0].got_n, NODES);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_NONE), 0);
	assert_true(urn_flow_count(n->node[0].tp) <= URN_FLOWS_OWNER);
	assert_int_equal(urn_flow_count(n->node[0].tp) + n->node[0].tp->flows->rests, NODES);
	print_message("%zu bytes a node\n", most / NODES);
	assert_true(most <= URN_FLOWS_OWNER * 1024u + (size_t)NODES * 160);
	repeat_all(far);
	for (uint32_t i = 0; i < NODES; i += 1111) {
		epoch = far->epoch[i];
		assert_int_equal(far_send(far, i, &client), URN_MSG_PENDING);
		assert_true(far->epoch[i] == epoch);
	}
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_NONE), 0);
	age(n);
	assert_true(mallinfo2().uordblks <= before + KEPT);
	far_end(far);
}

/* ---- bounds */

/* Send to far nodes from `first` on until there is no room for one. returns: number of nodes */
static uint32_t
send_until_busy(struct far *far, uint32_t first, uint32_t most, struct urn_tp_share *owner)
{
	uint32_t i = 0;

	while (i < most && far_send(far, first + i, owner) == URN_MSG_PENDING)
		i++;
	return i;
}

/* A client, of those from `client` on, whose flows are counted apart from those of the makers so
 * far, with a flow to a node from i on. */
static struct urn_tp_share *
other_client(struct far *far, struct urn_tp_share *client, uint32_t i)
{
	const struct urn_flows *fl = far->n->node[0].tp->flows;

	for (;; client++, i++) {
		assert_int_equal(far_send(far, i, client), URN_MSG_PENDING);
		if (fl->maker[fl->last->maker - 1].made == 1 &&
		    !fl->maker[fl->last->maker - 1].rests)
			return client;
	}
}

/*
 * A client takes 7 of 9 places for flows at rest, and the next one its part of those that are left
 * (base/fair.h); then it gets BUSY until flows age. Others have the flows of their bound in any
 * case.
 */
static void
places_are_shared(void **state)
{
	static struct urn_tp_share client[8];
	struct far *far = far_new(1);
	struct urn_flows *fl = far->n->node[0].tp->flows;
	struct urn_tp_share *other;

	(void)state;
	fl->owner_max = 4;
	urn_flows_bound_rests(fl, 64);
	assert_int_equal(send_until_busy(far, 0, 1000, &client[0]), 4 + 50);
	other = other_client(far, &client[1], 60000);
	assert_int_equal(send_until_busy(far, 1000, 1000, other), 3 + 6);
	assert_int_equal(fl->rests, 56);
	fl->rests_max = 56; /* no place is left */
	other = other_client(far, &client[2], 61000);
	assert_int_equal(send_until_busy(far, 2000, 1000, other), 3);
	/* Nodes that send nothing need no place. */
	far->answers = false;
	age(far->n);
	urn_flows_bound_rests(fl, 4);
	assert_int_equal(send_until_busy(far, 3000, 1000, &client[0]), 1000);
	assert_int_equal(fl->rests, 4);
	far->answers = true;
	age(far->n);
	assert_int_equal(send_until_busy(far, 4000, 1000, &client[0]), 4 + 4);
	far_end(far);
}

/* Flows with packets under way do not rest, and packets of a flow at rest wait for room. */
static void
busy_flows_stay(void **state)
{
	struct far *far = far_new(1);
	struct flow_net *n = far->n;
	struct urn_tp_share client = {0};
	struct flow_sent s[2];
	uint8_t gid[16];

	(void)state;
	n->node[0].tp->flows->owner_max = 2;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(far_send(far, i, &client), URN_MSG_PENDING);
	far->deaf = true;
	for (uint32_t i = 0; i < 2; i++) {
		gid_of(n, 10 + i, gid);
		assert_int_equal(flow_send_as(n, 0, gid, &client, 64, i, &s[i]), URN_MSG_PENDING);
	}
	assert_int_equal(far_send(far, 12, &client), URN_MSG_BUSY);
	assert_int_equal(n->node[0].tp->flows->rests, 3);
	n->node[0].got_n = 0;
	far_data(n, 1, 0);
	far_data(n, 1, 1);
	flow_net_run(n, 5 * FLOW_NET_STEP);
	assert_int_equal(n->node[0].got_n, 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_NONE), 3);
	flow_net_until(n, &s[0], 5000 * MS);
	flow_net_until(n, &s[1], 5000 * MS);
	assert_int_equal(s[0].code, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	/* Flows that know nothing take no place. */
	far->deaf = far->answers = false;
	assert_int_equal(far_send(far, 12, &client), URN_MSG_PENDING);
	assert_int_equal(n->node[0].tp->flows->rests, 3);
	far_data(n, 1, 0); /* came before */
	far_data(n, 1, 1);
	flow_net_run(n, 5 * FLOW_NET_STEP);
	assert_int_equal(n->node[0].got_n, 1);
	flow_sent_free(&s[0]);
	flow_sent_free(&s[1]);
	far_end(far);
}

/* User of flows: answers the second message that came with one to another node. */
static struct flow_sent reply;
static uint8_t reply_code;
static struct urn_tp_share replier;

static uint8_t
deliver_and_send(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
		 const uint8_t *data, uint32_t len)
{
	struct flow_node *node = tp->cfg.flow_ctx;
	uint8_t gid[16];

	(void)from;
	(void)qid;
	(void)data;
	(void)len;
	if (++node->got_n != 2)
		return URN_MSG_DONE;
	gid_of(node->net, 500, gid);
	reply_code = flow_send_as(node->net, 0, gid, &replier, 64, 1, &reply);
	return URN_MSG_DONE;
}

/* A flow whose message is being delivered does not rest, nor does one that owes an acknowledgement,
 * nor one with a message that was not sent yet. */
static void
flows_in_hand_stay(void **state)
{
	struct far *far = far_new(1);
	struct flow_net *n = far->n;
	struct urn_flow_user user = *n->node[0].tp->cfg.flow_user;
	struct flow_sent s[3];
	uint8_t gid[16];

	(void)state;
	n->node[0].tp->flows->owner_max = 2;
	far->answers = false;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(far_send(far, i, &replier), URN_MSG_PENDING);
	user.deliver = deliver_and_send;
	n->node[0].tp->cfg.flow_user = &user;
	for (uint32_t i = 0; i < 4; i++) { /* each comes twice */
		far_data(n, i % 2, 0);
		if (i % 2)
			flow_net_run(n, 5 * FLOW_NET_STEP);
	}
	assert_int_equal(reply_code, URN_MSG_BUSY);
	flow_sent_free(&reply);
	assert_int_equal(n->node[0].got_n, 2);
	for (uint32_t i = 0; i < 3; i++) {
		gid_of(n, 2 + i, gid);
		assert_int_equal(flow_send_as(n, 0, gid, &replier, 64, i, &s[i]),
				 i == 2 ? URN_MSG_BUSY : URN_MSG_PENDING);
	}
	for (uint32_t i = 0; i < 3; i++) {
		flow_net_until(n, &s[i], MS);
		assert_int_equal(s[i].code, i == 2 ? 0 : URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
	far_end(far);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_nodes_of_one_owner),
		cmocka_unit_test(places_are_shared),
		cmocka_unit_test(busy_flows_stay),
		cmocka_unit_test(flows_in_hand_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
