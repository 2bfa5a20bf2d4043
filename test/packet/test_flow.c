/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: reliable channels from node to node (doorbell.md DB-5 to DB-7; doc/inside/messages.md). */
#include "flow_net.h"

#include "base/rnd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

/* DB-3, DB-4, DB-6: the first message needs no handshake, and is DONE after it is in its queue. */
static void
first_message(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	assert_int_equal(flow_send(n, 0, 1, flow_qid(3), 64, 42, &s), URN_MSG_PENDING);
	flow_net_run(n, n->delay + 2 * FLOW_NET_STEP);
	assert_int_equal(n->node[1].got_n, 1); /* half a round trip after it was sent */
	assert_int_equal(s.answers, 0);
	flow_net_until(n, &s, MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	assert_true(n->node[1].got[0].whole);
	assert_int_equal(n->node[1].got[0].tag, 42);
	assert_true(n->node[1].got[0].qid == flow_qid(3));
	assert_true(n->node[1].got[0].src_qid == URN_MSG_QID(9, 0, 42));
	assert_memory_equal(n->node[1].got[0].node, n->node[0].gid, 16);
	assert_false(n->node[1].got[0].own);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* DB-3: the own node is a valid target. */
static void
own_node(void **state)
{
	static const uint32_t len[] = {0, 64, 5000};
	struct flow_net *n = flow_net_new(1, 1);
	struct flow_sent s;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(len); i++) {
		flow_send(n, 0, 0, flow_qid(0), len[i], 8, &s);
		flow_net_until(n, &s, MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		assert_true(n->node[0].got[i].own && n->node[0].got[i].len == len[i]);
		flow_sent_free(&s);
	}
	assert_int_equal(n->frames, 0);
	flow_net_end(n);
}

/* Messages of any length up to 1 MiB arrive whole, also at the edges of a packet. */
static void
lengths(void **state)
{
	static const uint32_t len[] = {0, 1, 3, 4, 991, 992, 993, 1024, 1984, 4096, 100001, URN_MSG_MAX};
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(len); i++) {
		assert_int_equal(flow_send(n, 0, 1, flow_qid(0), len[i], i + 1, &s), URN_MSG_PENDING);
		flow_net_until(n, &s, 1000 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n, i + 1);
		assert_int_equal(n->node[1].got[i].len, len[i]);
		assert_true(n->node[1].got[i].whole);
		flow_sent_free(&s);
	}
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
	s.m.len = URN_MSG_MAX + 1;
	flow_sent_free(&s);
	flow_net_end(n);
}

enum { MANY = 400 };

/* Check that each message tagged 1.. was delivered once if DONE, and at most once otherwise. */
static void
exactly_once(const struct flow_net *n, unsigned int to, const struct flow_sent *s, unsigned int many)
{
	uint8_t *seen = calloc(many + 1, 1);

	assert_non_null(seen);
	for (uint32_t i = 0; i < n->node[to].got_n; i++) {
		const struct flow_got *g = &n->node[to].got[i];

		assert_true(g->whole && g->tag >= 1 && g->tag <= many);
		assert_int_equal(seen[g->tag]++, 0);
	}
	for (unsigned int i = 0; i < many; i++) {
		assert_int_equal(s[i].answers, 1);
		if (s[i].code == URN_MSG_DONE)
			assert_int_equal(seen[i + 1], 1);
		else if (!(s[i].code & URN_MSG_MAY_BE_THERE))
			assert_int_equal(seen[i + 1], 0);
	}
	free(seen);
}

/* Send many messages of mixed lengths, as the flow takes them, and wait for all answers. */
static void
send_many(struct flow_net *n, unsigned int to, struct flow_sent *s, unsigned int many)
{
	for (unsigned int i = 0; i < many; i++) {
		uint32_t len = i % 11 == 0 ? 4000 + i * 13 : 4 + i % 200;
		uint8_t code;

		while ((code = flow_send(n, 0, to, flow_qid(i % 8), len, i + 1, &s[i])) == URN_MSG_BUSY) {
			flow_sent_free(&s[i]);
			flow_net_run(n, 10 * FLOW_NET_STEP);
		}
		assert_int_equal(code, URN_MSG_PENDING);
	}
	for (unsigned int i = 0; i < many; i++)
		flow_net_until(n, &s[i], 20000 * MS);
}

/* DB-7: over wires that lose, double and reorder, each message is delivered once. */
static void
bad_wires(void **state)
{
	static struct flow_sent s[MANY];

	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = seed % 3 * 5;
		n->twice = seed % 2 * 10;
		n->late = seed % 4 * 10;
		send_many(n, 1, s, MANY);
		exactly_once(n, 1, s, MANY);
		for (unsigned int i = 0; i < MANY; i++) {
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_net_end(n);
	}
}

/* DB-7: an acknowledgement that was overtaken by hundreds of packets acknowledges none of these. */
static void
overtaken_acks(void **state)
{
	static struct flow_sent s[8];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = 20;
		n->late_acks = 30;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			assert_int_equal(flow_send(n, 0, 1, flow_qid(i), 300000, i + 1, &s[i]), URN_MSG_PENDING);
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_net_until(n, &s[i], 20000 * MS);
		exactly_once(n, 1, s, RTE_DIM(s));
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		flow_net_end(n);
	}
}

/* Several short messages share a packet, and an acknowledgement serves many packets. */
static void
packets_are_shared(void **state)
{
	static struct flow_sent s[100];
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(flow_send(n, 0, 1, flow_qid(0), 64, i + 1, &s[i]), URN_MSG_PENDING);
	for (unsigned int i = 0; i < 100; i++)
		flow_net_until(n, &s[i], MS);
	exactly_once(n, 1, s, 100);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_TX),
			 9); /* 12 of 84 bytes in each of MTU 1024 */
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_ACKS_TX), 1);
	for (unsigned int i = 0; i < 100; i++)
		flow_sent_free(&s[i]);
	flow_net_end(n);
}

/* A node that does not answer: UNREACHABLE, and the code says that the message may be there. */
static void
unreachable(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[3];

	(void)state;
	n->cut = true;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s[0]);
	flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 2, &s[1]); /* its last part can't have been sent */
	flow_net_until(n, &s[0], 10000 * MS);
	assert_int_equal(s[0].code, URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
	assert_int_equal(s[1].code, URN_MSG_UNREACHABLE);
	n->cut = false;
	flow_send(n, 0, 1, flow_qid(0), 64, 3, &s[2]);
	flow_net_until(n, &s[2], 1000 * MS);
	assert_int_equal(s[2].code, URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, 1);
	for (unsigned int i = 0; i < 3; i++)
		flow_sent_free(&s[i]);
	flow_net_end(n);
}

/* Nobody has the address: NO SUCH NODE; an address of a family that we have none of: at once. */
static void
no_such_node(void **state)
{
	static const uint8_t v6[16] = {0xfd, 1};
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	n->node[0].neigh = -1;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
	flow_net_run(n, 20 * MS);
	assert_int_equal(s.answers, 0);
	n->node[0].neigh = -2;
	flow_net_until(n, &s, 10 * MS);
	assert_int_equal(s.code, URN_MSG_NO_NODE);
	assert_int_equal(urn_flow_send(n->node[0].tp, v6, &s.m), URN_MSG_NO_NODE);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* DB-6: a flow that is idle ages out at both ends, and costs nothing then; the next message makes a new one. */
static void
ageing(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	for (int round = 0; round < 2; round++) {
		flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
		flow_net_until(n, &s, MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		assert_int_equal(urn_flow_count(n->node[0].tp), 1);
		assert_int_equal(urn_flow_count(n->node[1].tp), 1);
		for (int i = 0; i < 70; i++) { /* a minute, in few steps */
			n->now += 1000 * MS;
			flow_net_run(n, 40 * FLOW_NET_STEP);
		}
		assert_int_equal(urn_flow_count(n->node[0].tp), 0);
		assert_int_equal(urn_flow_count(n->node[1].tp), 0);
		flow_sent_free(&s);
	}
	assert_int_equal(n->node[1].got_n, 2);
	flow_net_end(n);
}

/* The receiver restarts: a message that may have been delivered before fails so; later ones go to the new node. */
static void
receiver_restarts(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[3];

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s[0]);
	flow_net_until(n, &s[0], MS);
	n->lose_opcode = URN_FLOW_ACK;
	flow_send(n, 0, 1, flow_qid(0), 64, 2, &s[1]);
	flow_net_run(n, MS / 10);
	assert_int_equal(n->node[1].got_n, 2);
	flow_net_restart(n, 1);
	n->lose_opcode = 0;
	flow_net_until(n, &s[1], 3000 * MS);
	assert_int_equal(s[1].code, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
	assert_int_equal(n->node[1].got_n, 2);
	flow_send(n, 0, 1, flow_qid(0), 64, 3, &s[2]);
	flow_net_until(n, &s[2], 1000 * MS);
	assert_int_equal(s[2].code, URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, 3);
	for (unsigned int i = 0; i < 3; i++)
		flow_sent_free(&s[i]);
	flow_net_end(n);
}

/*
 * The receiver restarts before its first acknowledgement came: the message was delivered to its life before, and must
 * not be delivered again, nor be answered as if it were nowhere.
 */
static void
receiver_restarts_unknown(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[2];

	(void)state;
	n->lose_opcode = URN_FLOW_ACK;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s[0]);
	flow_net_run(n, 4 * MS);
	assert_int_equal(n->node[1].got_n, 1);
	flow_net_restart(n, 1);
	n->lose_opcode = 0;
	flow_net_until(n, &s[0], 3000 * MS);
	assert_int_equal(s[0].code, URN_MSG_RESTARTED | URN_MSG_MAY_BE_THERE);
	assert_int_equal(n->node[1].got_n, 1);
	flow_send(n, 0, 1, flow_qid(0), 64, 2, &s[1]);
	flow_net_until(n, &s[1], 1000 * MS);
	assert_int_equal(s[1].code, URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, 2);
	flow_sent_free(&s[0]);
	flow_sent_free(&s[1]);
	flow_net_end(n);
}

/* The sender restarts: a later epoch is taken at once, and packets of the earlier one no more. */
static void
sender_restarts(void **state)
{
	struct flow_net *n = flow_net_new(2, 3);
	struct flow_sent s;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		n->delay = 50000; /* frames of the earlier life are on their way still */
		n->twice = 100;
		flow_send(n, 0, 1, flow_qid(0), 64, i + 1, &s);
		flow_net_until(n, &s, 100 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		assert_int_equal(n->node[1].got_n, i + 1);
		flow_sent_free(&s);
		flow_net_restart(n, 0);
	}
	flow_net_end(n);
}

/* A user lets go of messages in any position: none is answered, the others are. */
static void
forgotten(void **state)
{
	static struct flow_sent s[60];

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->lose = 10;
		for (unsigned int i = 0; i < 60; i++) {
			uint32_t len = i % 10 == 9 ? 20000 : 64;

			if (flow_send(n, 0, 1, flow_qid(0), len, i + 1, &s[i]) != URN_MSG_PENDING)
				s[i].answers = 99;
		}
		for (unsigned int i = 0; i < 60; i++) {
			if (i % 5 == seed % 5)
				flow_net_run(n, 3 * FLOW_NET_STEP);
			if (i % 3)
				continue;
			urn_flow_forget(n->node[0].tp, &s[i].m);
			memset(s[i].data, 0xee, 64);
			if (!s[i].answers)
				s[i].answers = 99;
		}
		flow_net_run(n, 100 * MS);
		for (unsigned int i = 0; i < 60; i++) {
			assert_true(s[i].answers == 1 || s[i].answers == 99);
			if (s[i].answers == 1)
				assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[0].tp->nobodys.work, 0);
		flow_net_end(n);
	}
}

/* Marks are echoed by acknowledgements, and slow the flow down (DCQCN); others stay fast. */
static void
marks_slow_down(void **state)
{
	struct flow_net *n = calloc(1, sizeof(*n));
	struct flow_sent s;
	uint64_t took[2];

	(void)state;
	assert_non_null(n);
	n->line = 1250000000;
	flow_net_open(n, 2, 1);
	for (int i = 0; i < 2; i++) {
		uint64_t began = n->now;

		n->mark = i;
		flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, &s);
		flow_net_until(n, &s, 5000 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
		took[i] = n->now - began;
		flow_sent_free(&s);
	}
	assert_true(flow_net_count(n, 1, URN_C_RX_MARKED) > 0);
	assert_true(took[1] > 2 * took[0]);
	flow_net_end(n);
}

/* Packets that make no sense, or name our own address as their source, are counted and change nothing. */
static void
hostile_packets(void **state)
{
	struct flow_net *n = flow_net_new(2, 7);
	struct flow_sent s;
	uint64_t rnd = 99;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
	flow_net_until(n, &s, MS);
	flow_sent_free(&s);
	for (unsigned int i = 0; i < 20000; i++) {
		struct urn_path path = {.ttl = 64, .sport = 0xc000};
		uint8_t f[1200], *bth = f + 42, own = i % 16 == 0;
		uint32_t len = urn_rnd_next(&rnd) % 200 & ~3u, words = (16 + len) / 4;
		struct urn_tmpl t;

		memcpy(path.smac, n->node[0].mac, 6);
		memcpy(path.dmac, n->node[1].mac, 6);
		memcpy(path.sgid, n->node[own].gid, 16);
		memcpy(path.dgid, n->node[1].gid, 16);
		memset(&t, 0, sizeof(t));
		urn_tmpl_init(&t, &path);
		urn_build_headers(f, &t, 28 + len);
		urn_build_bth((struct urn_bth *)bth, (uint8_t)(URN_FLOW_DATA + i % 3), 0, 0, urn_flow_qpn(0),
			      (uint32_t)urn_rnd_next(&rnd) & (i & 1 ? 0xff : 0xffffff), 0);
		for (uint32_t w = 0; w < words; w++) {
			uint32_t v = (uint32_t)urn_rnd_next(&rnd) & (i & 2 ? 0x0000ffff : 0xff00ff0f);

			memcpy(bth + 12 + 4 * w, &v, 4);
		}
		urn_build_icrc(f, 42 + 28 + len, 0, 1);
		flow_net_inject(n, 1, f, 42 + 28 + len + 4);
		if (i % 64 == 0)
			flow_net_run(n, 5 * FLOW_NET_STEP);
	}
	assert_true(flow_net_count(n, 1, URN_C_FLOW_DROP_FORGED) > 0);
	assert_true(flow_net_count(n, 1, URN_C_FLOW_DROP_FORMAT) > 0);
	assert_int_equal(n->node[1].got_n, 1);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_message),
		cmocka_unit_test(own_node),
		cmocka_unit_test(lengths),
		cmocka_unit_test(bad_wires),
		cmocka_unit_test(packets_are_shared),
		cmocka_unit_test(overtaken_acks),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(no_such_node),
		cmocka_unit_test(ageing),
		cmocka_unit_test(receiver_restarts),
		cmocka_unit_test(receiver_restarts_unknown),
		cmocka_unit_test(sender_restarts),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(marks_slow_down),
		cmocka_unit_test(hostile_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
