/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: clients have turns, and shares of the packets in flight (doc/inside/messages.md "Turns").
 */
#include "flow_net.h"

#include "wire/hdr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

enum {
	CROWD = 2000,	       /* nodes that the first client sends to */
	EACH = URN_FLOW_FIRST, /* messages to each of them, a packet each */
	TURN = URN_TP_TX +
	       2 * URN_FLOW_FRAMES, /* frames that may leave before a message that has just come */
};

/* Two clients of node 0. The first sends much, the second a message now and then, to node 1. */
struct duel {
	struct flow_net *n;
	struct urn_tp_share *first, *second;
	struct flow_sent *much; /* messages of the first client */
	unsigned int much_n;
	uint64_t data;		/* frames of data that node 0 sent */
	uint64_t before, worst; /* frames among those that went out before the second client's
				   message; the most */
	uint32_t tag;		/* tag of the message that the second client waits for; 0: none */
	bool out;		/* it went out */
	uint64_t run, longest; /* frames of data to other nodes than 1 since the last one to it; the
				  most */
};

/* True when a frame carries a message with this tag. */
static bool
carries(const struct rte_mbuf *m, uint32_t tag)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t off = 42 + (uint32_t)(sizeof(struct urn_bth) + sizeof(struct urn_flow_hdr));

	for (; off + 4 <= m->data_len; off += 4)
		if (memcmp(at + off, &tag, 4) == 0)
			return true;
	return false;
}

static void
watch(void *ctx, const struct rte_mbuf *m)
{
	struct duel *d = ctx;
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	if (at[11] != 1 || at[42] != URN_FLOW_DATA)
		return;
	d->data++;
	d->run = at[33] == 2 && at[31] == 0 ? 0 : d->run + 1;
	d->longest = RTE_MAX(d->longest, d->run);
	if (!d->tag || d->out)
		return;
	d->out = carries(m, d->tag);
	d->before += !d->out;
}

static void
open_duel(struct duel *d, uint32_t work, unsigned int much)
{
	memset(d, 0, sizeof(*d));
	d->n = calloc(1, sizeof(*d->n));
	d->first = calloc(3, sizeof(*d->first));
	d->second = d->first + 1;
	d->much = calloc(much, sizeof(*d->much));
	assert_true(d->n && d->first && d->much);
	d->n->work = work;
	d->n->watch = watch;
	d->n->watch_ctx = d;
	flow_net_open(d->n, 3, 1);
}

static void
close_duel(struct duel *d)
{
	for (unsigned int i = 0; i < d->much_n; i++)
		flow_sent_free(&d->much[i]);
	flow_net_close(d->n);
	free(d->n);
	free(d->first);
	free(d->much);
}

/* The first client sends messages to a node; there is none with a number above 2. */
static void
send_much(struct duel *d, unsigned int node, unsigned int messages, uint32_t len)
{
	uint8_t gid[16];

	memcpy(gid, d->n->node[0].gid, 16);
	if (node > 2) {
		gid[14] = (uint8_t)(1 + node / 200);
		gid[15] = (uint8_t)(50 + node % 200);
	} else {
		gid[15] = (uint8_t)(node + 1);
	}
	for (unsigned int i = 0; i < messages; i++)
		assert_int_equal(
			flow_send_as(d->n, 0, gid, d->first, len, 1, &d->much[d->much_n++]),
			URN_MSG_PENDING);
}

/* The second client sends a message, and waits for the answer. */
static void
send_one(struct duel *d, uint32_t len, uint32_t tag, uint64_t most)
{
	uint64_t from = d->n->now;
	struct flow_sent s;

	d->tag = 0xabcd0000u + tag;
	d->out = false;
	d->before = 0;
	assert_int_equal(flow_send_as(d->n, 0, d->n->node[1].gid, d->second, len, d->tag, &s),
			 URN_MSG_PENDING);
	flow_net_until(d->n, &s, most);
	assert_int_equal(s.code, URN_MSG_DONE);
	assert_true(d->n->now - from <= most && d->out);
	d->worst = RTE_MAX(d->worst, d->before);
	d->tag = 0;
	flow_sent_free(&s);
}

/*
 * DB-6: a client with packets for 2,000 nodes, first and repeated: a message of another client
 * waits for the frames of one turn.
 */
static void
many_nodes(void **state)
{
	struct duel d;

	(void)state;
	open_duel(&d, 100000, CROWD * EACH);
	send_one(&d, 900, 0, MS);
	for (unsigned int i = 0; i < CROWD; i++)
		send_much(&d, 3 + i, EACH, 900);
	d.data = 0;
	for (uint32_t i = 0; d.data < 2 * CROWD * EACH; i++)
		send_one(&d, 900, 1 + i, MS);
	print_message("%u frames at most before a message\n", (unsigned int)d.worst);
	assert_true(d.worst > URN_FLOW_FRAMES); /* there was something to wait for */
	assert_true(d.worst <= TURN);
	close_duel(&d);
}

/* The second client sends so many messages at once. */
static void
send_many(struct duel *d, struct flow_sent *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(flow_send_as(d->n, 0, d->n->node[1].gid, d->second, 900, 7, &s[i]),
				 URN_MSG_PENDING);
}

static void
wait_many(struct duel *d, struct flow_sent *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		flow_net_until(d->n, &s[i], MS);
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
}

/* DB-6: clients with packets to send have turns one after the other: 16 packets of each. */
static void
turns_alternate(void **state)
{
	static struct flow_sent s[1000];
	struct duel d;

	(void)state;
	open_duel(&d, 100000, CROWD * EACH);
	send_many(&d, s, RTE_DIM(s)); /* the window opens */
	wait_many(&d, s, RTE_DIM(s));
	for (unsigned int i = 0; i < CROWD; i++)
		send_much(&d, 3 + i, EACH, 900);
	flow_net_run(d.n, 5 * FLOW_NET_STEP);
	send_many(&d, s, RTE_DIM(s));
	flow_net_run(d.n, FLOW_NET_STEP);
	d.run = d.longest = 0;
	flow_net_run(d.n,
		     FLOW_NET_STEP / 2); /* one turn: there is something to send all the time */
	print_message("%u frames at most between two\n", (unsigned int)d.longest);
	assert_int_equal(d.longest, URN_FLOW_FRAMES);
	wait_many(&d, s, RTE_DIM(s));
	close_duel(&d);
}

/* DB-6: the same when the first client has thousands of messages in the flow of the other, too. */
static void
same_flow(void **state)
{
	enum { SAME = 4000 };
	struct duel d;

	(void)state;
	open_duel(&d, 100000, CROWD * EACH + SAME);
	send_one(&d, 900, 0, MS);
	send_much(&d, 1, SAME, 900);
	for (unsigned int i = 0; i < CROWD; i++)
		send_much(&d, 3 + i, EACH, 900);
	for (uint32_t i = 0; i < 40; i++)
		send_one(&d, 900, 1 + i, MS);
	print_message("%u frames at most before a message\n", (unsigned int)d.worst);
	assert_true(d.worst <= TURN);
	assert_int_equal(d.much[SAME - 1].answers, 0);
	close_duel(&d);
}

/* DB-6: a flow whose window one client fills: the other client is the next one who sends. */
static void
same_window(void **state)
{
	enum { SAME = 20000 };
	struct duel d;

	(void)state;
	open_duel(&d, 100000, SAME);
	d.n->delay = 20 * US; /* 255 packets take less time than an answer */
	send_one(&d, 900, 0, MS);
	send_much(&d, 1, SAME, 900);
	for (uint32_t i = 0; i < 40; i++)
		send_one(&d, 900, 1 + i, MS);
	print_message("%u frames at most before a message\n", (unsigned int)d.worst);
	assert_true(d.worst <= URN_FLOW_WINDOW + 2 * URN_FLOW_FRAMES);
	assert_int_equal(d.much[SAME - 1].answers, 0);
	close_duel(&d);
}

/* DB-6: long messages of one client take all places but one; that is for another client. */
static void
long_messages(void **state)
{
	struct duel d;

	(void)state;
	open_duel(&d, 100000, 40);
	send_one(&d, 900, 0, MS);
	send_much(&d, 1, 40, URN_MSG_MAX);
	flow_net_run(d.n, 20 * US);
	for (uint32_t i = 0; i < 4; i++)
		send_one(&d, 5000, 1 + i, MS);
	print_message("%u frames at most before a long message\n", (unsigned int)d.worst);
	assert_int_equal(d.much[0].answers, 0); /* 1,000 packets more than those */
	assert_true(d.worst <= URN_FLOW_WINDOW + 2 * URN_FLOW_FRAMES);
	close_duel(&d);
}

/*
 * DB-6: two clients, which send to 2,000 nodes each, hold all places for long messages: a third one
 * helps them, and waits for one message at most.
 */
static void
no_place(void **state)
{
	enum { PARTS = URN_MSG_MAX / 900 };
	struct duel d;

	(void)state;
	open_duel(&d, 100000, CROWD * EACH + 8);
	d.second++;
	send_one(&d, 900, 0, MS);
	for (unsigned int k = 0; k < 4; k++) {
		if (k < 2)
			send_much(&d, 1, k ? 1 : 7, URN_MSG_MAX);
		for (unsigned int i = 0; k >= 2 && i < CROWD; i++)
			send_much(&d, 3 + i, EACH / 2, 900);
		flow_net_run(d.n, 5 * US);
		d.first = k % 2 ? d.second - 2 : d.second - 1;
	}
	assert_int_equal(d.much[0].m.strand->flow->active_n, URN_FLOW_ACTIVE);
	send_one(&d, 5000, 1, 10 * MS);
	print_message("%u frames at most before a long message\n", (unsigned int)d.worst);
	assert_true(d.worst <= 3 * PARTS + TURN);
	close_duel(&d);
}

/*
 * DB-6: eight clients have all places of a flow, each with one long message after the other: a
 * ninth one has the place of the message that ends first.
 */
static void
places_go_round(void **state)
{
	enum { EIGHT = URN_FLOW_ACTIVE, MESSAGES = 100, LEN = 40 * 1000 };
	struct urn_tp_share owner[EIGHT] = {0}, *first;
	struct duel d;

	(void)state;
	open_duel(&d, 100000, EIGHT * MESSAGES);
	first = d.first;
	send_one(&d, 900, 0, MS);
	for (unsigned int k = 0; k < EIGHT; k++) {
		d.first = &owner[k];
		send_much(&d, 1, 1, LEN);
	}
	flow_net_run(d.n, 5 * US); /* each has a place */
	for (unsigned int k = 0; k < EIGHT; k++) {
		d.first = &owner[k];
		send_much(&d, 1, MESSAGES - 1, LEN);
	}
	d.first = first;
	for (uint32_t i = 0; i < 10; i++)
		send_one(&d, 5000, 1 + i, 10 * MS);
	print_message("%u frames at most before a long message\n", (unsigned int)d.worst);
	assert_true(d.worst <= 3 * (EIGHT + 1) * URN_FLOW_FRAMES);
	close_duel(&d);
}

/* Wait until all messages of the first client have an answer. */
static void
wait_much(struct duel *d)
{
	for (unsigned int i = 0; i < d->much_n; i++)
		flow_net_until(d->n, &d->much[i], 10000 * MS);
	for (unsigned int i = 0; i < d->much_n; i++)
		assert_int_equal(d->much[i].answers, 1);
}

/* DB-6: silent nodes take 7 of 16 packets in flight at most; the client's other nodes, new ones
 * too, and other clients, go on. */
static void
silent_nodes(void **state)
{
	enum { WORK = 1024, SILENT = 100, LIVE = 400 };
	struct urn_tp *tp;
	struct duel d;

	(void)state;
	open_duel(&d, WORK, SILENT * EACH + LIVE);
	tp = d.n->node[0].tp;
	send_one(&d, 900, 0, MS);
	for (unsigned int i = 0; i < SILENT; i++)
		send_much(&d, 3 + i, EACH, 900);
	flow_net_run(d.n, 100 * US);
	/* Besides, each node may have its first packet. */
	assert_in_range(d.first->work, WORK / 16 * 7, WORK / 16 * 7 + SILENT);
	assert_true(tp->sched.n < 3); /* strands without work cost no turns */
	assert_non_null(d.first->dry);
	send_much(&d, 2, LIVE, 900);
	flow_net_run(d.n, 500 * US);
	for (unsigned int i = 0; i < LIVE; i++)
		assert_int_equal(d.much[d.much_n - 1 - i].code, URN_MSG_DONE);
	for (uint32_t i = 0; i < 20; i++)
		send_one(&d, 900, 1 + i, MS);
	wait_much(&d);
	for (unsigned int i = 0; i < SILENT * EACH; i++)
		assert_int_equal(d.much[i].code & ~URN_MSG_MAY_BE_THERE, URN_MSG_UNREACHABLE);
	assert_true(!tp->dry && !d.first->dry);
	assert_int_equal(d.first->work + d.second->work + tp->nobodys.work, 0);
	close_duel(&d);
}

/* DB-6: nodes that answered before and are silent now: a fifth of this small pool is left for
 * others. */
static void
last_entries(void **state)
{
	enum { WORK = 45, MUCH = 250 }; /* less than a window */
	struct urn_tp *tp;
	struct duel d;

	(void)state;
	open_duel(&d, WORK, MUCH + 1);
	tp = d.n->node[0].tp;
	send_much(&d, 2, 1, 900);
	flow_net_until(d.n, &d.much[0], MS);
	d.n->late_acks = 100; /* up to 1 ms: no repeat */
	send_much(&d, 2, MUCH, 900);
	flow_net_run(d.n, 10 * US);
	assert_int_equal(d.first->work, WORK / 5 * 4);
	assert_int_equal(tp->left.work, WORK / 5);
	assert_int_equal(tp->sched.n, 0);
	d.n->late_acks = 0;
	send_one(&d, 900, 1, 100 * US);
	wait_much(&d);
	assert_int_equal(d.first->work + d.second->work, 0);
	close_duel(&d);
}

/* A client goes with packets in flight: nothing of its share is used any more. */
static void
client_goes(void **state)
{
	enum { NODES = 40 };
	struct urn_tp *tp;
	struct duel d;

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		open_duel(&d, round == 2 ? 64 : 4096, NODES * EACH * 2);
		tp = d.n->node[0].tp;
		for (unsigned int i = 0; i < NODES; i++)
			send_much(&d, 3 + i, EACH * 2, round == 1 ? 5000 : 900);
		flow_net_run(d.n,
			     (round == 1 ? 5 : 3000) * US); /* some packets are lost, or none yet */
		assert_true(d.first->work > 0);
		for (unsigned int i = 0; i < d.much_n; i++)
			urn_flow_forget(tp, &d.much[i].m);
		assert_int_equal(d.first->work, 0);
		assert_true(tp->nobodys.work > 0);
		assert_true(!d.first->head && !d.first->dry);
		memset(d.first, 0xee, sizeof(*d.first));
		for (uint32_t i = 0; i < 3; i++)
			send_one(&d, 900, 1 + i, MS);
		flow_net_run(d.n, 4000 * MS);
		assert_int_equal(tp->nobodys.work + d.second->work, 0);
		/* Flows of messages that were never sent are forgotten, too. */
		for (unsigned int i = 0; i < 3; i++) {
			d.n->now += 50000 * MS;
			flow_net_run(d.n, 20 * MS);
		}
		assert_int_equal(urn_flow_count(tp), 0);
		close_duel(&d);
	}
}

/* A step of 1 us in which the port of node 0 takes two frames. Frames to node 1 arrive unless the
 * wire is cut, and others have no target. */
static void
slow_step(struct flow_net *n)
{
	struct urn_tp *from = n->node[0].tp, *to = n->node[1].tp;
	unsigned int k;

	n->now += US;
	urn_tp_turn(from, n->now);
	urn_tp_tx(from);
	k = RTE_MIN(from->tx_n, 2u);
	for (unsigned int i = 0; i < k; i++) {
		if (rte_pktmbuf_mtod(from->tx[i], uint8_t *)[5] == 2 && !n->cut)
			urn_tp_rx(to, &from->tx[i], 1, false);
		else
			rte_pktmbuf_free(from->tx[i]);
	}
	from->tx_n -= (uint16_t)k;
	memmove(from->tx, from->tx + k, from->tx_n * sizeof(from->tx[0]));
	urn_tp_turn(to, n->now);
	urn_tp_tx(to);
	for (unsigned int i = 0; i < to->tx_n; i++)
		urn_tp_rx(from, &to->tx[i], 1, false);
	to->tx_n = 0;
}

/* Lose a packet with a message of the second client, while the first one has strands to many nodes.
 * shared: a message of the first is in the packet, too. returns: ns until the message's answer */
static uint64_t
lose_one(bool shared)
{
	struct flow_sent s;
	uint64_t at;
	struct duel d;

	open_duel(&d, 400000, CROWD * EACH + 2);
	send_much(&d, 1, 1, 64);
	send_one(&d, 64, 1, MS);
	d.n->cut = true;
	if (shared)
		send_much(&d, 1, 1, 64);
	assert_int_equal(flow_send_as(d.n, 0, d.n->node[1].gid, d.second, 64, 7, &s),
			 URN_MSG_PENDING);
	for (unsigned int i = 0; i < 4; i++)
		slow_step(d.n);
	d.n->cut = false;
	for (unsigned int i = 0; i < CROWD; i++)
		send_much(&d, 3 + i, EACH, 900);
	at = d.n->now;
	while (!s.answers && d.n->now - at < 1000 * MS)
		slow_step(d.n);
	at = d.n->now - at;
	assert_int_equal(s.code, URN_MSG_DONE);
	flow_sent_free(&s);
	close_duel(&d);
	return at;
}

/* The repeat of a packet with another client's message comes in its client's next turn. */
static void
lost_in_a_packet_of_others(void **state)
{
	uint64_t own = lose_one(false), shared = lose_one(true);

	(void)state;
	printf("%.3f ms in a packet of its own, %.3f ms in another client's\n", (double)own / 1e6,
	       (double)shared / 1e6);
	assert_true(shared < own + MS);
}

/* Acknowledgements go out while a client has more to send than the port takes. */
static void
acknowledgements(void **state)
{
	struct flow_sent s;
	struct duel d;

	(void)state;
	open_duel(&d, 100000, CROWD * EACH);
	for (unsigned int i = 0; i < CROWD; i++)
		send_much(&d, 3 + i, EACH, 900);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(flow_send(d.n, 1, 0, flow_qid(0), 64, i, &s), URN_MSG_PENDING);
		flow_net_until(d.n, &s, 10 * US);
		assert_int_equal(s.code, URN_MSG_DONE);
		flow_sent_free(&s);
	}
	close_duel(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_nodes),	    cmocka_unit_test(turns_alternate),
		cmocka_unit_test(same_flow),	    cmocka_unit_test(same_window),
		cmocka_unit_test(long_messages),    cmocka_unit_test(no_place),
		cmocka_unit_test(places_go_round),  cmocka_unit_test(silent_nodes),
		cmocka_unit_test(last_entries),	    cmocka_unit_test(client_goes),
		cmocka_unit_test(acknowledgements), cmocka_unit_test(lost_in_a_packet_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
