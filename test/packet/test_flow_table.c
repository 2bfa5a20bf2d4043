/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: bounds of the table of flows, and forged packets (doc/inside/messages.md "Bounds"). */
#include "flow_net.h"
#include "transport/flow_rest.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum {
	HEADERS = 42,	     /* bytes of a frame before its BTH */
	EXTRA = 28 + 2 * 20, /* bytes of the BTH, the header of the flow, and two segments */
};

static void
put_seg(struct urn_flow_seg *s, uint8_t kind, uint64_t qid)
{
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->qid = rte_cpu_to_be_64(qid);
}

/* Put a data packet of this source on the wire to node 1: an empty message for a queue, and a void
 * segment. */
static void
forge(struct flow_net *n, const uint8_t gid[16], uint64_t epoch, uint32_t psn, uint64_t qid)
{
	struct urn_path path = {.ttl = 64, .sport = URN_ROCE_SPORT_MIN};
	uint8_t f[HEADERS + EXTRA + URN_ICRC_BYTES], *bth = f + HEADERS;
	struct urn_flow_hdr *h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
	struct urn_tmpl t;

	memcpy(path.smac, (const uint8_t[]){2, 0, 0, 0, 0, 99}, 6);
	memcpy(path.dmac, n->node[1].mac, 6);
	memcpy(path.sgid, gid, 16);
	memcpy(path.dgid, n->node[1].gid, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	urn_build_headers(f, &t, EXTRA);
	urn_build_bth((struct urn_bth *)bth, URN_FLOW_DATA, 0, 0, urn_flow_qpn(0), psn, 0);
	h->epoch = rte_cpu_to_be_64(epoch);
	h->start = 0;
	h->psn = rte_cpu_to_be_32(psn);
	put_seg((struct urn_flow_seg *)(h + 1), URN_FLOW_WHOLE, qid);
	put_seg((struct urn_flow_seg *)(h + 1) + 1, URN_FLOW_VOID, 0);
	urn_build_icrc(f, HEADERS + EXTRA, false, true);
	flow_net_inject(n, 1, f, sizeof(f));
}

/* Fill node 1 with flows of forged sources, one packet each. */
static void
forge_many(struct flow_net *n, uint32_t sources)
{
	uint8_t gid[16];

	memcpy(gid, n->node[0].gid, 16);
	for (uint32_t i = 0; i < sources; i++) {
		gid[12] = 11;
		gid[13] = (uint8_t)(i >> 16);
		gid[14] = (uint8_t)(i >> 8);
		gid[15] = (uint8_t)i;
		forge(n, gid, 1000, 0, flow_qid(999));
		if (i % 64 == 63)
			flow_net_run(n, 5 * FLOW_NET_STEP);
	}
	flow_net_run(n, 10 * FLOW_NET_STEP);
}

static void
send_done(struct flow_net *n, unsigned int from, uint32_t tag, uint64_t within)
{
	struct flow_sent s;

	flow_send(n, from, 1, flow_qid(1), 64, tag, &s);
	flow_net_until(n, &s, within);
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
}

/* DB-6: packets with forged sources take few flows, and a node that is new meanwhile gets its
 * answer without a timeout. */
static void
forged_sources(void **state)
{
	struct flow_net *n = flow_net_new(3, 1);

	(void)state;
	send_done(n, 2, 1, MS);
	forge_many(n, URN_FLOWS_RX_MAX + 1000u);
	assert_int_equal(urn_flow_count(n->node[1].tp),
			 URN_FLOWS_DOUBTED); /* with that of node 2 */
	assert_int_equal(n->node[1].tp->flows->doubted, URN_FLOWS_DOUBTED);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_NONE), 0);
	assert_true(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED) > 0);
	for (uint32_t i = 0; i < 3; i++)
		send_done(n, 0, 2 + i, 20 * FLOW_NET_STEP);
	send_done(n, 2, 5, 20 * FLOW_NET_STEP);
	/* Node 2 has shown itself with its second message. */
	assert_int_equal(n->node[1].tp->flows->doubted, URN_FLOWS_DOUBTED - 1);
	assert_int_equal(n->node[1].got_n, 5);
	/* The flows of forged sources age out, and so do the others. */
	for (unsigned int i = 0; i < 70; i++) {
		n->now += 1000 * MS;
		flow_net_run(n, 400 * FLOW_NET_STEP);
	}
	assert_int_equal(urn_flow_count(n->node[1].tp), 0);
	assert_int_equal(n->node[1].tp->flows->doubted, 0);
	flow_net_end(n);
}

/* DB-7: a node that asks first takes each message once, whatever the wire loses or doubles. */
static void
asked_once_each(void **state)
{
	static struct flow_sent s[400];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->node[1].tp->flows->doubted = URN_FLOWS_DOUBTED;
		n->lose = n->twice = n->late = 20;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send(n, 0, 1, flow_qid(1), i % 50 ? 300 : 9000, i + 1, &s[i]);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			flow_net_until(n, &s[i], 5000 * MS);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			assert_int_equal(s[i].answers, 1);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, RTE_DIM(s));
		assert_true(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED) > 0);
		flow_net_end(n);
	}
}

/* A forged packet with a late epoch, each 4.5 s, costs the node with that address none of its
 * messages. */
static void
forged_epochs(void **state)
{
	(void)state;
	for (unsigned int first = 0; first < 2;
	     first++) { /* the forged packet comes before all others, or after them */
		struct flow_net *n = flow_net_new(3, 1);
		uint64_t next = n->now;
		uint32_t tag = 0, psn = 0;

		if (!first)
			send_done(n, 2, ++tag, MS);
		for (unsigned int i = 0; i < 300; i++) {
			if (n->now >= next) {
				forge(n, n->node[2].gid, 0x7000000000000000ull, psn++,
				      flow_qid(999));
				flow_net_run(n, 10 * FLOW_NET_STEP);
				next += 4500 * MS;
			}
			send_done(n, 2, ++tag, MS);
			n->now += i % 100 ? 100 * MS : 7000 * MS;
		}
		assert_true(psn > 5);
		assert_int_equal(n->node[1].got_n, tag);
		flow_net_end(n);
	}
}

/* A node whose clock was set back, and an old life's packets: both are told apart as before. */
static void
restarted_sender(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	send_done(n, 0, 1, MS);
	flow_net_restart(n, 0);
	send_done(n, 0, 2, MS); /* one more round trip, no timeout */
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_ASKED), 1);
	assert_int_equal(n->node[1].got_n, 2);
	forge(n, n->node[0].gid, 5, 0, flow_qid(1)); /* its sender has gone */
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(n->node[1].got_n, 2);
	send_done(n, 0, 3, MS);
	flow_net_end(n);
}

/* The memory of flows is bounded: packets of ever more nodes make no more flows than half of what there may be. */
static void
flows_are_bounded(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	uint8_t gid[16];

	(void)state;
	memcpy(gid, n->node[0].gid, 16);
	for (uint32_t i = 0; i < URN_FLOWS_RX_MAX + 10u; i++) {
		memcpy(gid + 12, &i, 4);
		(void)urn_flow_make(n->node[1].tp, gid, 0, URN_FLOWF_RX);
	}
	assert_int_equal(urn_flow_count(n->node[1].tp), URN_FLOWS_RX_MAX);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_NONE), 10);
	assert_true(sizeof(struct urn_flow) <= 512);
	assert_non_null(urn_flow_make(n->node[1].tp, n->node[0].gid, 0, 0));
	flow_net_end(n);
}

/*
 * DB-6: 64 Ki nodes are named, by as many owners. An active flow costs at most 1 KiB of the heap,
 * and nothing after it has aged out.
 */
static void
memory_of_flows(void **state)
{
	enum { FLOWS = 65536, AGED_S = 70, KEPT = 16384 }; /* KEPT: bytes that the C library keeps */
	static struct urn_tp_share client[FLOWS];
	static struct flow_sent s[FLOWS];
	struct flow_net *n = flow_net_new(2, 1);
	uint8_t gid[16];
	size_t before, most, left;

	(void)state;
	memcpy(gid, n->node[1].gid, 16);
	n->node[0].neigh = -1;
	/* Each client has room, whatever is left. */
	urn_flows_bound(n->node[0].tp->flows, 2 * FLOWS);
	for (unsigned int i = 0; i < FLOWS; i++)
		s[i].m = (struct urn_flow_msg){.qid = flow_qid(0), .owner = &client[i]};
	before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < FLOWS; i++) {
		memcpy(gid + 13, &i, 2);
		assert_int_equal(urn_flow_send(n->node[0].tp, gid, &s[i].m), URN_MSG_PENDING);
	}
	most = mallinfo2().uordblks - before;
	assert_int_equal(urn_flow_count(n->node[0].tp), FLOWS);
	print_message("%zu bytes a flow\n", most / FLOWS);
	assert_true(most <= FLOWS * 1024u);
	n->node[0].neigh = -2;
	for (int i = 0; i < AGED_S; i++) {
		n->now += 1000 * MS;
		flow_net_run(n, 40 * FLOW_NET_STEP);
	}
	for (int i = 0; i < FLOWS && urn_flow_count(n->node[0].tp); i++) /* a turn looks at few of them */
		flow_net_run(n, FLOW_NET_STEP);
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	left = mallinfo2().uordblks;
	print_message("%zu bytes a flow after it aged out\n",
		      left > before ? (left - before) / FLOWS : 0);
	assert_true(left <= before + KEPT);
	flow_net_end(n);
}

static const uint8_t nothing[1]; /* address of messages without bytes */

static uint32_t
name_nodes(struct flow_net *n, struct flow_sent *s, uint32_t nodes, uint8_t net,
	   struct urn_tp_share *owner)
{
	uint32_t pending = 0;
	uint8_t gid[16];

	memcpy(gid, n->node[0].gid, 16);
	gid[12] = net;
	for (uint32_t i = 0; i < nodes; i++) {
		memcpy(gid + 13, &i, 3);
		s[i].m = (struct urn_flow_msg){.data = nothing, .qid = flow_qid(0), .owner = owner};
		pending += urn_flow_send(n->node[0].tp, gid, &s[i].m) == URN_MSG_PENDING;
	}
	return pending;
}

/* DB-6: a client that names ever more nodes gets BUSY, and leaves room for the flows of others. */
static void
one_owner(void **state)
{
	static struct flow_sent m[URN_FLOWS_MAX], other[100];
	static struct urn_tp_share client[2];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	n->node[0].neigh = -1;
	assert_int_equal(name_nodes(n, m, RTE_DIM(m), 11, &client[0]), URN_FLOWS_OWNER);
	assert_int_equal(name_nodes(n, other, RTE_DIM(other), 12, &client[1]), RTE_DIM(other));
	assert_int_equal(urn_flow_count(n->node[0].tp), URN_FLOWS_OWNER + RTE_DIM(other));
	/* The nodes are not there. Then the client may name others. */
	n->node[0].neigh = -2;
	for (unsigned int i = 0; i < 20000 && urn_flow_count(n->node[0].tp); i++)
		flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	n->node[0].neigh = -1;
	assert_int_equal(name_nodes(n, m, 100, 13, &client[0]), 100);
	flow_net_end(n);
}

/* Clients of one user that take all they can leave another user room, however many they are. */
static void
one_user(void **state)
{
	enum { MOST = 340, CLIENTS = 10, LEFT = MOST * 2 / 17, OTHERS = 4 };
	static struct flow_sent m[CLIENTS + 1][MOST];
	static struct urn_tp_share client[CLIENTS + 1];
	static struct urn_tp_user user[2];
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_flows *fl = n->node[0].tp->flows;
	uint32_t all = 0;

	(void)state;
	urn_flows_bound(fl, MOST);
	n->node[0].neigh = -1;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		client[i].user = &user[0];
		all += name_nodes(n, m[i], MOST, (uint8_t)(20 + i), &client[i]);
	}
	assert_true(all > MOST / 2 && all <= MOST - LEFT);
	client[CLIENTS].user = &user[1];
	all += name_nodes(n, m[CLIENTS], OTHERS, 11, &client[CLIENTS]);
	assert_int_equal(urn_flow_count(n->node[0].tp), all);
	assert_true(fl->of_user[fl->last->user_at] == OTHERS);
	/* The nodes are not there: the counts go with the flows. */
	n->node[0].neigh = -2;
	for (unsigned int i = 0; i < 20000 && urn_flow_count(n->node[0].tp); i++)
		flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(urn_flow_count(n->node[0].tp), 0);
	for (unsigned int i = 0; i < URN_FLOW_MAKERS; i++)
		assert_int_equal(fl->of_user[i], 0);
	flow_net_end(n);
}

/* Messages go while an owner, and its user, have so many flows. returns: flows 260 ms later */
static uint32_t
flows_later(uint32_t of_owner, uint32_t of_user)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_flows *fl = n->node[0].tp->flows;
	uint32_t *made, later;

	send_done(n, 0, 1, MS);
	made = &fl->maker[fl->last->maker - 1].made;
	assert_int_equal(*made, 1);
	assert_int_equal(fl->of_user[fl->last->user_at], 1);
	*made = of_owner;
	fl->of_user[fl->last->user_at] = of_user;
	send_done(n, 0, 2, MS);
	n->now += 200 * MS;
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_int_equal(urn_flow_count(n->node[0].tp), 1);
	n->now += 60 * MS;
	flow_net_run(n, 10 * FLOW_NET_STEP);
	later = urn_flow_count(n->node[0].tp);
	send_done(n, 0, 3, MS);
	assert_int_equal(n->node[1].got_n, 3);
	flow_net_end(n);
	return later;
}

/* DB-6: flows of an owner that made many, or of such a user, are forgotten after 250 ms, so that it
 * can name many nodes in a row. */
static void
crowded_owner(void **state)
{
	const uint32_t owner = URN_FLOWS_OWNER / 2, user = URN_FLOWS_MAX / 4;

	(void)state;
	assert_int_equal(flows_later(owner, user), 1);
	assert_int_equal(flows_later(owner + 1, user), 0);
	assert_int_equal(flows_later(owner, user + 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_sources),    cmocka_unit_test(asked_once_each),
		cmocka_unit_test(forged_epochs),     cmocka_unit_test(restarted_sender),
		cmocka_unit_test(flows_are_bounded), cmocka_unit_test(memory_of_flows),
		cmocka_unit_test(one_owner),	     cmocka_unit_test(one_user),
		cmocka_unit_test(crowded_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
