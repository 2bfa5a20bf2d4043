/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages forged on the wire, to receive queues as programs have them (doorbell.md DB-5, DB-7): the frames of a node's
 * own message get another source, and queues that did not permit that source take nothing. Node 0 is permitted, node 2
 * is not; node 1 has the queues.
 */
#include "flow_net.h"
#include "msg/priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { ENTRIES = 8, ENTRY = 16384, ARENA = ENTRIES * ENTRY, BTH = 42 };

/* Queues of node 1, by what they permit. */
enum queue { ALL, NODE_0, OWN, NOBODY, CLOSED, QUEUES };

struct queues {
	struct flow_net *n;
	struct urn_msg_regs *regs;
	struct urn_msg_rset *set[QUEUES];
	struct urn_abi_msg_set *line[QUEUES]; /* registers; the arena is behind */
};

static void
open_queue(struct queues *q, enum queue k)
{
	struct urn_tp *tp = q->n->node[1].tp;
	struct urn_abi_msg_set *l = aligned_alloc(64, sizeof(*l) + ARENA);
	const struct urn_msg_config cfg = {.share = &tp->nobodys, .regs = l, .arena = ARENA, .channel_fd = -1};

	assert_non_null(l);
	memset(l, 0, sizeof(*l) + ARENA);
	q->line[k] = l;
	assert_int_equal(urn_msg_open(q->regs, &cfg, &q->set[k]), 0);
	if (k == CLOSED)
		return;
	l->conf.entries = ENTRIES;
	l->conf.entry_size = ENTRY;
	l->conf.flags = k == OWN ? URN_MSGQ_OWN_NODE : 0;
	l->conf.permit_bits = k == NODE_0 || k == NOBODY ? 128 : 0;
	memcpy(l->conf.permit, q->n->node[0].gid, 16);
	l->conf.permit[0] = k == NOBODY ? 0xfd : l->conf.permit[0];
	atomic_store(&l->conf.seq, 1);
	urn_msg_look_conf(tp, q->set[k]);
	assert_int_equal(l->rstat.state, URN_MSGQ_OPEN);
}

static uint64_t
qid_of(const struct queues *q, enum queue k)
{
	return urn_msg_number(q->regs, q->set[k]->slot);
}

static void
open_all(struct queues *q)
{
	struct urn_tp *tp;

	memset(q, 0, sizeof(*q));
	q->n = flow_net_new(3, 1);
	tp = q->n->node[1].tp;
	q->regs = urn_msg_regs_create(0, 0, 4711);
	assert_non_null(q->regs);
	tp->cfg.flow_user = &urn_msg_flow_user;
	tp->cfg.flow_ctx = q->regs;
	/* An address more, which packets from the wire can't have as their source, either. */
	tp->cfg.gids = 2;
	memcpy(tp->cfg.gid[1], q->n->node[1].gid, 16);
	tp->cfg.gid[1][15] = 9;
	for (int k = 0; k < QUEUES; k++)
		open_queue(q, (enum queue)k);
	/* Node 1 answers once: flows to a node that never did send few packets. */
	for (unsigned int from = 0; from < 3; from += 2) {
		struct flow_sent s;

		flow_send(q->n, from, 1, qid_of(q, CLOSED), 64, 7, &s);
		flow_net_until(q->n, &s, 1000 * MS);
		assert_int_equal(s.code, URN_MSG_NO_QUEUE);
		flow_sent_free(&s);
	}
}

static void
close_all(struct queues *q)
{
	for (int k = 0; k < QUEUES; k++) {
		(void)urn_msg_end(q->n->node[1].tp, urn_msg_source(q->set[k]));
		free(q->line[k]);
	}
	flow_net_end(q->n);
	urn_msg_regs_destroy(q->regs);
}

/* Entries of a queue; none of its bytes has changed when there are none. */
static uint32_t
taken(const struct queues *q, enum queue k)
{
	const uint8_t *arena = (const uint8_t *)(q->line[k] + 1);
	uint32_t n = atomic_load(&q->line[k]->rstat.tail);

	for (unsigned int i = 0; n == 0 && i < ARENA; i++)
		assert_int_equal(arena[i], 0);
	return n;
}

/* Frames to node 1 that are on the wire get another source, headers and ICRC in order. */
static void
forge(struct flow_net *n, uint8_t last)
{
	for (unsigned int i = 0; i < n->wire_n; i++) {
		struct rte_mbuf *m = n->wire[i].m;
		uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
		struct urn_path path = {.ttl = 64, .sport = 0xc000};
		struct urn_tmpl t;

		if (n->wire[i].to != 1 || f[BTH] != URN_FLOW_DATA)
			continue;
		memcpy(path.smac, f + 6, 6);
		memcpy(path.dmac, f, 6);
		memcpy(path.sgid, n->node[0].gid, 16);
		path.sgid[15] = last;
		memcpy(path.dgid, n->node[1].gid, 16);
		memset(&t, 0, sizeof(t));
		urn_tmpl_init(&t, &path);
		urn_build_headers(f, &t, (uint16_t)(m->data_len - BTH - 4));
		urn_build_icrc(f, m->data_len - 4u, 0, 1);
	}
}

/* Let node `from` send to a queue; the frames get address 10.0.0.last on the wire. len: bytes */
static void
send_as(struct queues *q, unsigned int from, uint8_t last, enum queue k, uint32_t len)
{
	struct flow_net *n = q->n;
	struct flow_sent s;

	flow_send(n, from, 1, qid_of(q, k), len, 7, &s);
	for (unsigned int i = 0; i < 100; i++) {
		flow_net_run(n, FLOW_NET_STEP);
		forge(n, last);
	}
	urn_flow_forget(n->node[from].tp, &s.m);
	flow_sent_free(&s);
}

/* The permitted node is told DONE, the other NOT PERMITTED; short messages and long ones. */
static void
as_themselves(void **state)
{
	static const uint32_t len[] = {64, 9000};
	struct flow_sent s;
	struct queues q;

	(void)state;
	open_all(&q);
	for (int k = ALL; k < QUEUES; k++)
		for (unsigned int from = 0; from < 3; from += 2)
			for (unsigned int i = 0; i < RTE_DIM(len); i++) {
				bool good = k == ALL || (k == NODE_0 && from == 0);

				flow_send(q.n, from, 1, qid_of(&q, (enum queue)k), len[i], 7, &s);
				flow_net_until(q.n, &s, 1000 * MS);
				assert_int_equal(s.code, good	       ? URN_MSG_DONE
							 : k == CLOSED ? URN_MSG_NO_QUEUE
								       : URN_MSG_NOT_PERMITTED);
				flow_sent_free(&s);
			}
	assert_int_equal(taken(&q, ALL), 4);
	assert_int_equal(taken(&q, NODE_0), 2);
	assert_int_equal(taken(&q, OWN) + taken(&q, NOBODY) + taken(&q, CLOSED), 0);
	assert_int_equal(q.n->node[1].tp->flows->wholes, 0);
	assert_int_equal(flow_net_count(q.n, 1, URN_C_DROP_MSG_PERMIT), 10);
	close_all(&q);
}

/* A source that is none of node 1's friends: refused and counted, with no byte in the ring. */
static void
as_a_stranger(void **state)
{
	struct queues q;

	(void)state;
	open_all(&q);
	for (int k = NODE_0; k < QUEUES; k++) {
		send_as(&q, 0, 77, (enum queue)k, 64);
		send_as(&q, 0, 78, (enum queue)k, 9000);
		assert_int_equal(taken(&q, (enum queue)k), 0);
	}
	assert_true(flow_net_count(q.n, 1, URN_C_DROP_MSG_PERMIT) >= 6);
	assert_true(flow_net_count(q.n, 1, URN_C_DROP_MSG_QUEUE) >= 2);
	assert_int_equal(q.n->node[1].tp->flows->wholes, 0);
	close_all(&q);
}

/* Node 1's own addresses as the source: no packet from the wire is this node's, so none gets to a queue at all. */
static void
as_the_node_itself(void **state)
{
	static const uint8_t own[] = {2, 9};
	struct queues q;

	(void)state;
	open_all(&q);
	for (unsigned int i = 0; i < RTE_DIM(own); i++) {
		uint64_t before = flow_net_count(q.n, 1, URN_C_FLOW_DROP_FORGED);

		for (int k = ALL; k < QUEUES; k++) {
			send_as(&q, 2, own[i], (enum queue)k, 64);
			send_as(&q, 2, own[i], (enum queue)k, 9000);
			assert_int_equal(taken(&q, (enum queue)k), 0);
		}
		assert_true(flow_net_count(q.n, 1, URN_C_FLOW_DROP_FORGED) >= before + 2 * QUEUES);
	}
	assert_int_equal(flow_net_count(q.n, 1, URN_C_MSG_DELIVERED), 0);
	close_all(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_themselves),
		cmocka_unit_test(as_a_stranger),
		cmocka_unit_test(as_the_node_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
