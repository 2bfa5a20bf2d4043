/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that hoard packets in flight: those that come later go on (doc/inside/messages.md
 * "Packets in flight").
 */
#include "flow_net.h"

#include "bare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

enum {
	WORK = 4096,	/* packets in flight that node 0 has room for */
	CLIENTS = 40,	/* clients of node 0 */
	HOARDERS = 4,	/* clients that hoard */
	SILENT = 1000,	/* silent nodes of a client that hoards */
	QUEUES = 15,	/* queue pairs of a client that hoards */
	REQUESTS = 256, /* requests of each */
	MANY = 1000,	/* messages of a client that goes on */
	LEN = 900,	/* bytes of a message; two do not share a packet */
};

struct rc_queue {
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
};

struct crowd {
	struct flow_net *n;
	struct urn_tp *tp; /* transport of node 0 */
	struct urn_tp_share *client;
	struct flow_sent *sent; /* messages of those that hoard */
	unsigned int sent_n, room;
	uint32_t pd;
	struct urn_cq cq;
	struct rc_queue queue[HOARDERS * QUEUES];
	unsigned int queues;
};

static void
open_crowd(struct crowd *c, unsigned int room)
{
	memset(c, 0, sizeof(*c));
	c->n = calloc(1, sizeof(*c->n));
	c->client = calloc(CLIENTS, sizeof(*c->client));
	c->sent = calloc(room, sizeof(*c->sent));
	assert_true(c->n && c->client && c->sent);
	c->room = room;
	c->n->work = WORK;
	flow_net_open(c->n, 3, 1);
	c->tp = c->n->node[0].tp;
	assert_int_equal(urn_mem_alloc_pd(c->n->node[0].mem, &c->pd), 0);
	assert_true(bare_cq(&c->cq, HOARDERS * QUEUES * REQUESTS));
}

static void
close_crowd(struct crowd *c)
{
	for (unsigned int i = 0; i < c->queues; i++) {
		assert_true(bare_qp_stop(c->tp, c->queue[i].qp));
		urn_qp_destroy(c->tp, c->queue[i].qp);
		free(c->queue[i].sq);
		free(c->queue[i].rq);
	}
	free(c->cq.hdr);
	flow_net_close(c->n);
	for (unsigned int i = 0; i < c->sent_n; i++)
		flow_sent_free(&c->sent[i]);
	free(c->n);
	free(c->client);
	free(c->sent);
}

/* The address of a silent node by number. */
static void
silent_gid(const struct crowd *c, unsigned int node, uint8_t gid[16])
{
	memcpy(gid, c->n->node[0].gid, 16);
	gid[14] = (uint8_t)(1 + node / 200);
	gid[15] = (uint8_t)(50 + node % 200);
}

/* A client sends messages to each of some nodes that are silent. */
static void
send_silent(struct crowd *c, unsigned int client, unsigned int from, unsigned int nodes,
	    unsigned int messages)
{
	uint8_t gid[16];

	assert_true(c->sent_n + nodes * messages <= c->room);
	for (unsigned int i = 0; i < nodes * messages; i++) {
		silent_gid(c, from + i / messages, gid);
		assert_int_equal(flow_send_as(c->n, 0, gid, &c->client[client], LEN, 1,
					      &c->sent[c->sent_n++]),
				 URN_MSG_PENDING);
	}
}

/* A client takes all that it can, for nodes of its own. */
static void
hoard(struct crowd *c, unsigned int client)
{
	send_silent(c, client, client * SILENT, SILENT, URN_FLOW_FIRST);
	flow_net_run(c->n, 100 * US);
	assert_non_null(c->client[client].dry);
}

/* A client sends messages to a node that answers. returns: ns until all are answered */
static uint64_t
go_on(struct crowd *c, unsigned int client, unsigned int node, unsigned int messages, uint64_t most)
{
	uint64_t from = c->n->now;
	struct flow_sent s[MANY];

	for (unsigned int i = 0; i < messages; i++)
		assert_int_equal(flow_send_as(c->n, 0, c->n->node[node].gid, &c->client[client],
					      LEN, 1, &s[i]),
				 URN_MSG_PENDING);
	for (unsigned int i = 0; i < messages; i++) {
		flow_net_until(c->n, &s[i], from + most - RTE_MIN(from + most, c->n->now));
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
	return c->n->now - from;
}

/* Entries that clients leave which come one after another and keep all they got. */
static uint32_t
least_left(const struct crowd *c, unsigned int clients)
{
	uint32_t left = WORK;

	while (clients--)
		for (uint32_t held = 0; urn_fair_has(&c->tp->fair_work, left, held); held++)
			left--;
	return left;
}

/* DB-6: four clients one after another send to 1,000 silent nodes each; those that come then go on
 * at once. */
static void
four_then_others(void **state)
{
	struct crowd c;
	uint64_t ns;

	(void)state;
	open_crowd(&c, HOARDERS * SILENT * URN_FLOW_FIRST);
	for (unsigned int i = 0; i < HOARDERS; i++)
		hoard(&c, i);
	assert_true(c.tp->left.work >= least_left(&c, HOARDERS));
	ns = go_on(&c, 4, 1, MANY, 3 * MS);
	print_message("a fifth client: %u messages in %.3f ms\n", MANY, (double)ns / 1e6);
	for (unsigned int i = 5; i < CLIENTS; i++)
		go_on(&c, i, 1 + i % 2, 1, 100 * US);
	for (unsigned int i = 0; i < HOARDERS; i++) /* they still have all they took */
		assert_true(c.client[i].work > 0 && c.client[i].dry);
	assert_int_equal(c.sent[0].answers, 0);
	close_crowd(&c);
}

/* ---- queue pairs */

static void
post(struct rc_queue *q)
{
	struct urn_abi_swqe *w;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		w = bare_slot(q->sq, i, REQUESTS, urn_abi_sq_stride(1, 0));
		memset(w, 0, sizeof(*w));
		w->opcode = URN_WR_SEND;
	}
	atomic_store(&q->sq->prod, REQUESTS);
}

static void
connect_queue(struct crowd *c, struct rc_queue *q, unsigned int i)
{
	struct urn_abi_qp_attr a = {.port_num = 1, .path_mtu = 3, .dest_qpn = 77, .retry_cnt = 7};
	char why[160] = "";

	silent_gid(c, 6000 + i, a.av.dgid);
	for (unsigned int s = URN_QPS_INIT; s <= URN_QPS_RTS; s++) {
		a.state = (uint8_t)s;
		if (urn_qp_modify(c->tp, q->qp, bare_qp_mask(URN_QPT_RC, a.state) | URN_QPM_STATE,
				  &a, why, sizeof(why)) != 0)
			fail_msg("%s", why);
	}
}

/* A client sends to silent queue pairs, without a timeout: its entries never come back. */
static void
hoard_rc(struct crowd *c, unsigned int client)
{
	for (unsigned int i = 0; i < QUEUES; i++) {
		struct rc_queue *q = &c->queue[c->queues++];
		struct urn_qp_config cfg = {
			.type = URN_QPT_RC,
			.share = &c->client[client],
			.pd = c->pd,
			.send_cq = &c->cq,
			.recv_cq = &c->cq,
		};

		q->sq = bare_wq(REQUESTS, urn_abi_sq_stride(1, 0));
		q->rq = bare_wq(REQUESTS, urn_abi_rq_stride(1));
		assert_true(q->sq && q->rq);
		cfg.sq = bare_sq(q->sq, REQUESTS, 1, 0);
		cfg.rq = bare_rq(q->rq, REQUESTS, 1);
		assert_int_equal(urn_qp_create(c->tp, &cfg, &q->qp), 0);
		connect_queue(c, q, c->queues);
		post(q);
		urn_tp_doorbell(c->tp, q->qp);
	}
	flow_net_run(c->n, 200 * US);
}

/*
 * DB-6: clients with queue pairs to silent peers take all that they can, one after another, and
 * keep it for ever: those that come then go on at once.
 */
static void
queue_pairs(void **state)
{
	uint32_t held[HOARDERS];
	struct crowd c;

	(void)state;
	open_crowd(&c, SILENT * URN_FLOW_FIRST);
	for (unsigned int i = 0; i < HOARDERS; i++) {
		hoard_rc(&c, i);
		held[i] = c.client[i].work;
		assert_int_equal(c.tp->left.work, least_left(&c, i + 1));
	}
	assert_in_range(held[0], WORK / 9 * 7, WORK / 9 * 7 + 8); /* alone: most */
	go_on(&c, HOARDERS, 1, MANY, 3 * MS);
	hoard(&c, HOARDERS + 1);
	for (unsigned int i = HOARDERS + 2; i < CLIENTS; i++)
		go_on(&c, i, 2, 20, 3 * MS);
	for (unsigned int i = 0; i < HOARDERS; i++)
		assert_int_equal(c.client[i].work, held[i]);
	assert_true(flow_net_count(c.n, 0, URN_C_NO_WORK) > 0);
	close_crowd(&c);
}

/* ---- one client */

/* DB-6: first packets to nodes that never answered leave entries for nodes that do. */
static void
first_packets(void **state)
{
	enum { NODES = 4000 };
	struct crowd c;

	(void)state;
	open_crowd(&c, NODES);
	go_on(&c, 0, 1, 300, 3 * MS);
	send_silent(&c, 0, 0, NODES, 1);
	flow_net_run(c.n, 300 * US);
	assert_in_range(c.client[0].work, WORK * 7 / 10 - 8, WORK * 7 / 10 + 8);
	go_on(&c, 0, 1, MANY, 5 * MS);
	assert_int_equal(c.sent[0].answers, 0);
	close_crowd(&c);
}

/*
 * DB-6: a client that closes its sets again and again, with packets in flight to nodes that are
 * silent, gets no more than one that keeps them. The packets come back when the flows give up.
 */
static void
sets_closed_again(void **state)
{
	enum { ROUNDS = 30, NODES = 60 };
	struct crowd c;

	(void)state;
	open_crowd(&c, (ROUNDS * NODES + SILENT) * URN_FLOW_FIRST);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		send_silent(&c, 0, r * NODES, NODES, URN_FLOW_FIRST);
		flow_net_run(c.n, 20 * US);
		for (unsigned int i = r * NODES * URN_FLOW_FIRST; i < c.sent_n; i++)
			urn_flow_forget(c.tp, &c.sent[i].m);
		assert_int_equal(c.client[0].work, 0);
	}
	print_message("%u entries left, %u are nobody's\n", c.tp->left.work, c.tp->nobodys.work);
	assert_true(c.tp->nobodys.work > WORK / 3);
	assert_true(c.tp->left.work >= least_left(&c, 1));
	go_on(&c, 1, 1, MANY, 3 * MS);
	flow_net_run(c.n, 2200 * MS);
	assert_int_equal(c.tp->nobodys.work, 0);
	hoard(&c, 0); /* all is as at the start */
	assert_true(c.client[0].work > WORK / 3);
	close_crowd(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_then_others),
		cmocka_unit_test(queue_pairs),
		cmocka_unit_test(first_packets),
		cmocka_unit_test(sets_closed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
