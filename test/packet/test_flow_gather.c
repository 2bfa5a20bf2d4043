/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: messages whose bytes are gathered from their user when a packet is made, first or repeated
 * (doc/inside/messages.md "Flows").
 */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { HEAD = 32, MANY = 48 };

static void
arrived(const struct flow_net *n, unsigned int node, unsigned int i, uint32_t len)
{
	assert_true(i < n->node[node].got_n);
	assert_int_equal(n->node[node].got[i].len, len);
	assert_true(n->node[node].got[i].whole);
}

/* Short ones, those that fill a packet, and long ones, to another node and to the own one. */
static void
bytes_of_all_lengths(void **state)
{
	static const uint32_t len[] = {HEAD + 1, HEAD + 2, HEAD + 3,   HEAD + 4, 100,
				       991,	 992,	   993,	       1024,	 2000,
				       5000,	 65536,	   URN_MSG_MAX};

	(void)state;
	for (unsigned int to = 0; to < 2; to++) {
		struct flow_net *n = flow_net_new(2, 1);

		for (unsigned int i = 0; i < RTE_DIM(len); i++) {
			struct flow_sent s;

			assert_int_equal(
				flow_send_head(n, 0, to, flow_qid(0), len[i], 77, HEAD, &s),
				URN_MSG_PENDING);
			flow_net_until(n, &s, 100 * MS);
			assert_int_equal(s.code, URN_MSG_DONE);
			assert_true(s.gathers >= 1);
			arrived(n, to, i, len[i]);
			flow_sent_free(&s);
		}
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_net_end(n);
	}
}

/* Messages with heads of all lengths and those without share packets, on a wire that loses, doubles
 * and delays. */
static void
among_others_on_a_bad_wire(void **state)
{
	static struct flow_sent s[MANY];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = 20;
		n->twice = 10;
		n->late = 30;
		for (unsigned int i = 0; i < MANY; i++) {
			uint32_t len = i % 12 == 5 ? 5000 + i : 40 + i * 3;

			flow_send_head(n, 0, 1, flow_qid(0), len, i,
				       i % 3 ? (uint8_t)(1 + i * 5 % 39) : 0, &s[i]);
		}
		for (unsigned int i = 0; i < MANY; i++)
			flow_net_until(n, &s[i], 5000 * MS);
		assert_int_equal(n->node[1].got_n, MANY);
		for (unsigned int i = 0; i < MANY; i++) {
			assert_int_equal(s[i].code, URN_MSG_DONE);
			assert_true(n->node[1].got[i].whole);
			flow_sent_free(&s[i]);
		}
		flow_net_end(n);
	}
}

/* A repeat has the bytes of its own time. */
static void
repeats_gather_again(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;
	unsigned int before;

	(void)state;
	n->cut = true;
	flow_send_head(n, 0, 1, flow_qid(0), 200, 1, HEAD, &s);
	flow_net_run(n, MS / 2);
	before = s.gathers;
	assert_true(before >= 1);
	s.data[150] ^= 1;
	n->cut = false;
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	assert_true(s.gathers > before);
	assert_int_equal(n->node[1].got_n, 1);
	assert_false(n->node[1].got[0].whole); /* it has the changed byte */
	flow_sent_free(&s);
	flow_net_end(n);
}

/* Bytes are gone before the first packet: others in the packet arrive, and those messages can't be
 * there. */
static void
gone_before_the_first_packet(void **state)
{
	static struct flow_sent s[16];

	(void)state;
	for (unsigned int mask = 1; mask < 1 << 16; mask = mask * 3 + 1) {
		struct flow_net *n = flow_net_new(2, mask);
		unsigned int gone = 0;

		for (unsigned int i = 0; i < 16; i++) {
			flow_send_head(n, 0, 1, flow_qid(0), 36, i, HEAD, &s[i]);
			s[i].gone = mask >> i & 1;
			gone += s[i].gone;
		}
		flow_net_run(n, 10 * MS);
		for (unsigned int i = 0; i < 16; i++) {
			assert_int_equal(s[i].answers, 1);
			assert_int_equal(s[i].code, s[i].gone ? URN_FLOW_GONE : URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, 16 - gone);
		for (unsigned int i = 0; i < n->node[1].got_n; i++)
			arrived(n, 1, i, 36);
		assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_GONE), gone);
		assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_FORMAT), 0);
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_net_end(n);
	}
}

/* Bytes are gone before a repeat: the packet that was lost may have come, and its message may be
 * there. */
static void
gone_before_a_repeat(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[3];

	(void)state;
	for (unsigned int came = 0; came < 2; came++) {
		uint32_t got = n->node[1].got_n;

		n->cut = !came;
		n->lose_opcode = came ? URN_FLOW_ACK : 0;
		for (unsigned int i = 0; i < 3; i++)
			flow_send_head(n, 0, 1, flow_qid(0), 200, i, HEAD, &s[i]);
		flow_net_run(n, 20 * FLOW_NET_STEP);
		s[1].gone = true;
		n->cut = false;
		n->lose_opcode = 0;
		for (unsigned int i = 0; i < 3; i++)
			flow_net_until(n, &s[i], 1000 * MS);
		assert_int_equal(s[0].code, URN_MSG_DONE);
		assert_int_equal(s[1].code, URN_FLOW_GONE | URN_MSG_MAY_BE_THERE);
		assert_int_equal(s[2].code, URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n - got, came ? 3 : 2);
		assert_int_equal(s[1].answers, 1);
		for (unsigned int i = 0; i < 3; i++)
			flow_sent_free(&s[i]);
	}
	assert_int_equal(n->node[0].tp->nobodys.work, 0);
	flow_net_end(n);
}

/* The bytes of a long message are gone, at its first part, midway, or when parts are repeated: the
 * target forgets it. */
static void
long_ones_that_are_gone(void **state)
{
	static const uint32_t steps[] = {0, 1, 5, 20, 60};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(steps) * 3; i++) {
		struct flow_net *n = flow_net_new(2, i + 1);
		struct flow_sent s, other;

		n->lose = i % 3 * 15;
		flow_send_head(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, HEAD, &s);
		flow_send_head(n, 0, 1, flow_qid(0), 20000, 2, HEAD, &other);
		flow_net_run(n, steps[i / 3] * FLOW_NET_STEP);
		s.gone = true;
		flow_net_until(n, &s, 1000 * MS);
		flow_net_until(n, &other, 1000 * MS);
		flow_net_run(n, 20 * MS);
		assert_int_equal(s.answers, 1);
		assert_int_equal(s.code, URN_FLOW_GONE);
		assert_int_equal(other.code, URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n, 1);
		arrived(n, 1, 0, 20000);
		assert_int_equal(n->node[1].tp->flows->wholes, 0);
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_sent_free(&s);
		flow_sent_free(&other);
		flow_net_end(n);
	}
}

/* A message grows while no packet holds it, and not beyond a short one. */
static void
messages_that_grow(void **state)
{
	enum { SHORT = URN_FLOW_MTU_MIN - (int)sizeof(struct urn_flow_seg) };
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), SHORT + 1, 1, &s);
	assert_false(urn_flow_may_grow(&s.m, 1));
	flow_net_until(n, &s, 100 * MS);
	assert_false(urn_flow_may_grow(&s.m, 0)); /* no flow has it */
	s.answers = 0;
	s.m.len = 100;
	assert_int_equal(urn_flow_send(n->node[0].tp, n->node[1].gid, &s.m), URN_MSG_PENDING);
	assert_true(urn_flow_may_grow(&s.m, SHORT - 100));
	assert_false(urn_flow_may_grow(&s.m, SHORT - 99));
	s.m.len = SHORT;
	n->cut = true;
	flow_net_run(n, 10 * FLOW_NET_STEP);
	assert_false(urn_flow_may_grow(&s.m, 0)); /* a packet has it */
	n->cut = false;
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	arrived(n, 1, 1, SHORT);
	flow_sent_free(&s);
	/* A message that is gathered does not. */
	flow_send_head(n, 0, 1, flow_qid(0), 100, 1, HEAD, &s);
	assert_false(urn_flow_may_grow(&s.m, 1));
	flow_net_until(n, &s, 100 * MS);
	flow_sent_free(&s);
	flow_net_end(n);
}

static struct flow_net *net;
static struct flow_sent next[16];
static unsigned int next_n;

static void
send_another(struct urn_tp *tp, struct flow_sent *s)
{
	(void)tp;
	(void)s;
	flow_send_head(net, 0, 1, flow_qid(0), 100, 9, HEAD, &next[next_n++]);
}

/* The user sends another message out of the answer to one whose bytes are gone. */
static void
another_out_of_the_answer(void **state)
{
	static struct flow_sent s[16];

	(void)state;
	net = flow_net_new(2, 1);
	for (unsigned int i = 0; i < 16; i++) {
		flow_send_head(net, 0, 1, flow_qid(0), 900, i, HEAD, &s[i]);
		s[i].gone = true;
		s[i].then = send_another;
	}
	flow_net_run(net, 100 * MS);
	assert_int_equal(next_n, 16);
	assert_int_equal(net->node[1].got_n, 16);
	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(next[i].code, URN_MSG_DONE);
		arrived(net, 1, i, 100);
		flow_sent_free(&s[i]);
		flow_sent_free(&next[i]);
	}
	assert_int_equal(net->node[0].tp->nobodys.work, 0);
	flow_net_end(net);
}

/* A message for node 1 or 2 of node 0's client, gathered but for its head. */
static void
send_for(struct flow_net *n, unsigned int to, struct urn_tp_share *owner, bool gone,
	 struct flow_sent *s)
{
	assert_int_equal(flow_send_as(n, 0, n->node[to].gid, owner, 900, 1, s), URN_MSG_PENDING);
	s->head = malloc(HEAD);
	assert_non_null(s->head);
	memcpy(s->head, s->data, HEAD);
	s->m.data = s->head;
	s->m.head = HEAD;
	s->gone = gone;
}

/* The last message of a client is gone in the client's turn, while another client's wait in the
 * same flow: these go out, also later ones. */
static void
another_client_waits(void **state)
{
	struct urn_tp_share client[2];
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[MANY];
	const struct urn_flow *f;

	(void)state;
	memset(client, 0, sizeof(client));
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < MANY; i++)
			send_for(n, 1, &client[i > 0], i == 0, &s[i]);
		f = n->node[0].tp->flows->last;
		flow_net_run(n, 100 * MS);
		assert_int_equal(s[0].code, URN_FLOW_GONE);
		assert_true(TAILQ_EMPTY(&f->ready));
		assert_int_equal(client[0].work + client[1].work, 0);
		for (unsigned int i = 0; i < MANY; i++) {
			assert_int_equal(s[i].answers, 1);
			assert_true(i == 0 || s[i].code == URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
	}
	flow_net_end(n);
}

/* Messages are gone while packets in flight take all entries of the pool. */
static void
without_room_for_packets(void **state)
{
	enum { ALL = 200 };
	static struct flow_sent s[ALL];
	struct urn_tp_share client;
	struct flow_net *n = calloc(1, sizeof(*n));

	(void)state;
	assert_non_null(n);
	memset(&client, 0, sizeof(client));
	n->work = 40;
	flow_net_open(n, 3, 1);
	for (unsigned int to = 1; to < 3; to++) { /* both nodes are known */
		send_for(n, to, &client, false, &s[0]);
		flow_net_until(n, &s[0], 10 * MS);
		flow_sent_free(&s[0]);
	}
	n->delay = MS / 2;
	for (unsigned int i = 0; i < ALL; i++)
		send_for(n, 1 + i % 2, &client, i >= 20 && i % 3 == 0, &s[i]);
	flow_net_run(n, 3000 * MS);
	assert_true(flow_net_count(n, 0, URN_C_FLOW_DRY) > 0);
	for (unsigned int i = 0; i < ALL; i++) {
		assert_int_equal(s[i].answers, 1);
		flow_sent_free(&s[i]);
	}
	assert_int_equal(client.work, 0);
	flow_net_end(n);
}

/* A client's messages go with their bytes in its own turn, among other clients' in the flow: the
 * list of strands that are ready stays whole, and all is given back. */
static void
gone_among_other_clients(void **state)
{
	struct urn_tp_share owner[3] = {0};
	struct flow_sent s[12];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		uint32_t got = n->node[1].got_n;

		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			n->owner = &owner[i % 3];
			flow_send_head(n, 0, 1, flow_qid(0), 900, i, HEAD, &s[i]);
			s[i].gone = i % 3 == round % 3;
		}
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_net_until(n, &s[i], 1000 * MS);
		flow_net_run(n, MS);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			assert_int_equal(s[i].answers, 1);
			assert_int_equal(s[i].code, s[i].gone ? URN_FLOW_GONE : URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n - got, 8);
		assert_true(TAILQ_EMPTY(&n->node[0].tp->flows->last->ready));
	}
	assert_int_equal(
		n->node[0].tp->nobodys.work + owner[0].work + owner[1].work + owner[2].work, 0);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_client_waits),
		cmocka_unit_test(without_room_for_packets),
		cmocka_unit_test(bytes_of_all_lengths),
		cmocka_unit_test(among_others_on_a_bad_wire),
		cmocka_unit_test(repeats_gather_again),
		cmocka_unit_test(gone_before_the_first_packet),
		cmocka_unit_test(gone_before_a_repeat),
		cmocka_unit_test(long_ones_that_are_gone),
		cmocka_unit_test(messages_that_grow),
		cmocka_unit_test(another_out_of_the_answer),
		cmocka_unit_test(gone_among_other_clients),
	};

	return cmocka_run_group_tests_name("packet_flow_gather", tests, NULL, NULL);
}
