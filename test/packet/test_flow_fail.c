/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that fail (doorbell.md DB-5, DB-6; doc/inside/messages.md "Failures"): a turn answers a
 * bounded number of messages, each message once, while others go on.
 */
#include "flow_net.h"

#include "base/rnd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull

enum {
	MANY = 65536,
	CLIENTS = 3,
	NOWHERE = 200, /* last byte of the address of a node that is not there */
};

static struct flow_sent *many;
static struct urn_tp_share *client;
static unsigned int answered_n; /* answers since it was set to 0 */
static struct flow_net *net;

static void
count(struct urn_tp *tp, struct flow_sent *s)
{
	(void)tp;
	(void)s;
	answered_n++;
}

static void
open_net(uint64_t seed)
{
	many = calloc(MANY, sizeof(*many));
	client = calloc(CLIENTS, sizeof(*client));
	assert_true(many && client);
	net = flow_net_new(3, seed);
	answered_n = 0;
}

static void
close_net(void)
{
	for (unsigned int i = 0; i < MANY; i++)
		flow_sent_free(&many[i]);
	flow_net_end(net);
	free(many);
	free(client);
}

/* A message of a client to the node with this last byte of the address. */
static void
send_to(unsigned int last, unsigned int owner, uint32_t len, uint32_t tag, struct flow_sent *s)
{
	uint8_t gid[16];

	memcpy(gid, net->node[0].gid, 16);
	gid[15] = (uint8_t)last;
	gid[14] = (uint8_t)(last >> 8);
	assert_int_equal(flow_send_as(net, 0, gid, &client[owner], len, tag, s), URN_MSG_PENDING);
	s->then = count;
}

/* A message of client 1 to node 1 arrives as if nothing else was to be done. */
static void
other_goes_on(void)
{
	uint64_t from = net->now;
	struct flow_sent s;

	send_to(2, 1, 64, 7, &s);
	flow_net_until(net, &s, MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	assert_true(net->now - from <= 2 * net->delay + 3 * FLOW_NET_STEP);
	flow_sent_free(&s);
}

/* From now on the addresses of nodes that were not met are those of nobody. */
static void
lose_addresses(void)
{
	other_goes_on();
	net->node[0].neigh = -2;
}

/* Run until `all` messages were answered. returns: the most answers of a turn */
static unsigned int
answers(unsigned int all)
{
	unsigned int worst = 0, seen = 0;

	for (answered_n = 0; answered_n < all; seen = answered_n) {
		flow_net_run(net, FLOW_NET_STEP);
		worst = RTE_MAX(worst, answered_n - seen);
	}
	assert_int_equal(answered_n, all);
	return worst;
}

/* All of client 0's messages were answered once, with this code. */
static void
all_failed(unsigned int n, uint8_t code)
{
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(many[i].answers, 1);
		assert_int_equal(many[i].code, code);
	}
	assert_int_equal(net->node[0].tp->nobodys.work + client[0].work, 0);
}

/* One flow fails with a message of each register set that an engine has. */
static void
one_flow(void **state)
{
	(void)state;
	open_net(1);
	lose_addresses();
	for (unsigned int i = 0; i < MANY; i++)
		send_to(NOWHERE, 0, 64, i, &many[i]);
	assert_int_equal(answers(MANY), URN_FLOW_FAILS);
	assert_in_range(URN_FLOW_FAILS, 1, 256);
	all_failed(MANY, URN_MSG_NO_NODE);
	close_net();
}

/* ... and a second client's messages go on meanwhile, in another flow and in the same one. */
static void
others_go_on(void **state)
{
	unsigned int before;

	(void)state;
	open_net(2);
	lose_addresses();
	for (unsigned int i = 0; i < MANY; i++)
		send_to(NOWHERE, 0, 64, i, &many[i]);
	for (unsigned int i = 0; i < 40; i++) {
		struct flow_sent s;

		other_goes_on();
		before = answered_n;
		send_to(NOWHERE, 1, 64, 9, &s);
		flow_net_run(net, 3 * FLOW_NET_STEP);
		assert_int_equal(s.code, URN_MSG_NO_NODE);
		flow_sent_free(&s);
		assert_true(answered_n > before && answered_n < MANY);
	}
	flow_net_run(net, 2 * MANY / URN_FLOW_FAILS * FLOW_NET_STEP);
	all_failed(MANY, URN_MSG_NO_NODE);
	close_net();
}

/* Many flows fail at the same time: the answers of all are bounded. */
static void
many_flows(void **state)
{
	enum { FLOWS = 1024, ALL = FLOWS * 60 };

	(void)state;
	open_net(3);
	lose_addresses();
	for (unsigned int i = 0; i < ALL; i++)
		send_to(NOWHERE + i % FLOWS, 0, 64, i, &many[i]);
	assert_in_range(answers(ALL), URN_TP_FAILS, URN_TP_FAILS + URN_FLOW_FAILS - 1);
	all_failed(ALL, URN_MSG_NO_NODE);
	other_goes_on();
	/* Flows of nobody go once their messages were answered. */
	flow_net_run(net, 10 * MS);
	assert_int_equal(urn_flow_count(net->node[0].tp), 1);
	close_net();
}

/* A client dies with 65,536 messages that wait for their answers. */
static void
client_dies(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		open_net(4);
		lose_addresses();
		if (round) { /* with packets in flight */
			net->node[0].neigh = 0;
			net->cut = true;
		}
		for (unsigned int i = 0; i < MANY; i++)
			send_to(NOWHERE, 0, i % 1000 ? 64 : 5000, i, &many[i]);
		answered_n = 0;
		while (!answered_n)
			flow_net_run(net, FLOW_NET_STEP);
		flow_net_run(net, FLOW_NET_STEP);
		assert_in_range(answered_n, 1, 2 * URN_FLOW_FAILS);
		for (unsigned int i = MANY; i--;)
			urn_flow_forget(net->node[0].tp, &many[i].m);
		assert_true(!client[0].head && !client[0].dry && !client[0].work);
		memset(&client[0], 0xee, sizeof(client[0]));
		answered_n = 0;
		net->cut = false;
		other_goes_on();
		flow_net_run(net, 100 * MS);
		assert_int_equal(answered_n, 1);
		assert_int_equal(net->node[0].tp->nobodys.work, 0);
		assert_int_equal(urn_flow_count(net->node[0].tp), 1);
		close_net();
	}
}

/* The node went away: messages in packets may be there, others are not. New ones of the same
 * clients come while the old ones are answered, and arrive when the node is back. */
static void
packets_in_flight(void **state)
{
	enum { OLD = 9000, NEW = 3000 };
	unsigned int maybe = 0;

	(void)state;
	open_net(5);
	other_goes_on(); /* the node is known, and gets a whole window */
	net->cut = true;
	for (unsigned int i = 0; i < OLD; i++)
		send_to(2, i % CLIENTS, i % 100 == 99 ? 5000 : 60, i, &many[i]);
	answered_n = 0;
	while (!answered_n)
		flow_net_run(net, FLOW_NET_STEP);
	assert_in_range(answered_n, 1, CLIENTS * URN_FLOW_FAILS);
	net->cut = false;
	for (unsigned int i = OLD; i < OLD + NEW; i++)
		send_to(2, i % CLIENTS, i % 100 == 99 ? 5000 : 60, i, &many[i]);
	flow_net_run(net, 50 * MS);
	for (unsigned int i = 0; i < OLD + NEW; i++) {
		assert_int_equal(many[i].answers, 1);
		maybe += many[i].code == (URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
		assert_int_equal(many[i].code & ~URN_MSG_MAY_BE_THERE,
				 i < OLD ? URN_MSG_UNREACHABLE : URN_MSG_DONE);
	}
	assert_in_range(maybe, URN_FLOW_WINDOW, URN_FLOW_WINDOW * URN_FLOW_SEGMENTS);
	assert_int_equal(net->node[1].got_n, NEW + 1);
	for (unsigned int i = 0; i < CLIENTS; i++)
		assert_int_equal(client[i].work, 0);
	assert_int_equal(net->node[0].tp->nobodys.work, 0);
	close_net();
}

/* The node was started anew: messages in packets fail, and those behind them arrive. */
static void
restarted(void **state)
{
	enum { ALL = 9000 };
	unsigned int failed = 0;

	(void)state;
	open_net(6);
	other_goes_on();
	for (unsigned int i = 0; i < ALL; i++)
		send_to(2, i % CLIENTS, i % 100 == 99 ? 5000 : 60, i, &many[i]);
	flow_net_run(net, FLOW_NET_STEP);
	flow_net_restart(net, 1);
	net->node[1].tp->flows->born -= 2 * URN_FLOW_YOUNG_NS;
	flow_net_run(net, 100 * MS);
	for (unsigned int i = 0; i < ALL; i++) {
		assert_int_equal(many[i].answers, 1);
		failed += many[i].code != URN_MSG_DONE;
		if (many[i].code != URN_MSG_DONE)
			assert_int_equal(many[i].code & ~URN_MSG_MAY_BE_THERE, URN_MSG_RESTARTED);
	}
	assert_in_range(failed, 16, URN_FLOW_WINDOW * URN_FLOW_SEGMENTS);
	assert_int_equal(net->node[0].tp->nobodys.work + client[0].work, 0);
	close_net();
}

/* A message that waits for its answer does not grow. */
static void
no_growth(void **state)
{
	(void)state;
	open_net(7);
	lose_addresses();
	for (unsigned int i = 0; i < 2 * URN_FLOW_FAILS; i++)
		send_to(NOWHERE, 0, 64, i, &many[i]);
	assert_true(urn_flow_may_grow(&many[2 * URN_FLOW_FAILS - 1].m, 8));
	while (!answered_n || answered_n == 1)
		flow_net_run(net, FLOW_NET_STEP);
	assert_int_equal(many[2 * URN_FLOW_FAILS - 1].answers, 0);
	assert_false(urn_flow_may_grow(&many[2 * URN_FLOW_FAILS - 1].m, 8));
	close_net();
}

/* ---- everything at once */

enum { CHAOS = 4000 };

static uint64_t rnd;
static unsigned int sent_n, again_n;
static bool forgotten[CHAOS], calm;

static uint32_t
pick(uint32_t n)
{
	return (uint32_t)(urn_rnd_next(&rnd) % n);
}

/* Every third answer makes the client send another message, to any node. */
static void
send_again(struct urn_tp *tp, struct flow_sent *s)
{
	(void)tp;
	(void)s;
	answered_n++;
	if (calm || sent_n == CHAOS || pick(3))
		return;
	send_to(pick(2) ? 2 : NOWHERE, pick(CLIENTS), pick(10) ? 60 : 5000, sent_n, &many[sent_n]);
	many[sent_n++].then = send_again;
	again_n++;
}

static void
let_go(unsigned int i)
{
	if (many[i].answers || forgotten[i])
		return;
	urn_flow_forget(net->node[0].tp, &many[i].m);
	forgotten[i] = true;
}

static void
some_chaos(void)
{
	for (unsigned int k = pick(100); k && sent_n < CHAOS; k--) {
		send_to(pick(2) ? 2 : NOWHERE, pick(CLIENTS), pick(20) ? 60 : 5000, sent_n,
			&many[sent_n]);
		many[sent_n++].then = send_again;
	}
	net->cut = pick(3) == 0;
	net->node[0].neigh = -(int)pick(3);
	net->node[0].tp->mac_gen++;
	if (pick(8) == 0) {
		flow_net_restart(net, 1);
		if (pick(2))
			net->node[1].tp->flows->born -= 2 * URN_FLOW_YOUNG_NS;
	}
	flow_net_run(net, pick(3) ? pick(20) * FLOW_NET_STEP : pick(300) * MS);
	for (unsigned int k = pick(100); k && sent_n; k--)
		let_go(pick(sent_n));
}

/* Nodes come and go, addresses are found and lost, clients let go of messages and send others out
 * of answers: each message is answered once, and nothing stays behind. */
static void
chaos(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		open_net(seed);
		rnd = seed;
		sent_n = 0;
		calm = false;
		memset(forgotten, 0, sizeof(forgotten));
		net->lose = seed % 3 * 5;
		for (unsigned int i = 0; i < 40; i++)
			some_chaos();
		net->cut = false;
		net->node[0].neigh = 0;
		calm = true;
		flow_net_run(net, 5000 * MS);
		for (unsigned int i = 0; i < sent_n; i++)
			assert_int_equal(many[i].answers, forgotten[i] ? 0 : 1);
		for (unsigned int i = 0; i < CLIENTS; i++)
			assert_true(!client[i].work && !client[i].head && !client[i].dry);
		assert_int_equal(net->node[0].tp->nobodys.work, 0);
		memset(client, 0xee, CLIENTS * sizeof(*client));
		for (unsigned int i = 0; i < 3; i++) {
			net->now += 50000 * MS;
			flow_net_run(net, 20 * MS);
		}
		assert_int_equal(urn_flow_count(net->node[0].tp), 0);
		close_net();
	}
	assert_true(again_n > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_flow),	     cmocka_unit_test(others_go_on),
		cmocka_unit_test(many_flows),	     cmocka_unit_test(client_dies),
		cmocka_unit_test(packets_in_flight), cmocka_unit_test(restarted),
		cmocka_unit_test(no_growth),	     cmocka_unit_test(chaos),
	};

	return cmocka_run_group_tests_name("packet_flow_fail", tests, NULL, NULL);
}
