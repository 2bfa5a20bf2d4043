/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: long messages of nodes that keep no rules, and of wires that are bad (DB-7;
 * doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull
#define S 1000000000ull

enum {
	PART = 992, /* bytes of a part of the MTU of these nodes */
	LONG = 20000,
};

static const struct urn_flows *
flows(const struct flow_net *n)
{
	return n->node[1].tp->flows;
}

/* A made-up sender: an address that no node has, and an engine of it. */
struct liar {
	uint8_t gid[16];
	uint8_t engine;
	uint32_t psn;
};

/* A part that a liar makes up. */
struct part {
	uint32_t id, len, off;
	uint16_t bytes;
};

/* Send node 1 a packet of data with n segments, as the liar. */
static void
lie(struct flow_net *n, struct liar *l, const struct urn_flow_part *part, unsigned int segs)
{
	struct urn_path path = {.ttl = 64, .sport = 0xc000};
	struct urn_flow_hdr h = {.epoch = rte_cpu_to_be_64(77),
				 .psn = rte_cpu_to_be_32((uint32_t)l->engine << 24 | l->psn)};
	uint8_t f[2048] = {0}, *bth = f + 42, *at = bth + 28;
	uint32_t behind;
	struct urn_tmpl t;

	memcpy(path.smac, (const uint8_t[]){2, 0, 0, 0, 0, 99}, 6);
	memcpy(path.dmac, n->node[1].mac, 6);
	memcpy(path.sgid, l->gid, 16);
	memcpy(path.dgid, n->node[1].gid, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	memcpy(bth + 12, &h, sizeof(h));
	for (unsigned int i = 0; i < segs; i++) {
		uint32_t head = urn_flow_seg_head(part[i].seg.kind);

		memcpy(at, &part[i], head);
		at += head + urn_flow_pad(rte_be_to_cpu_16(part[i].seg.bytes));
	}
	behind = (uint32_t)(at - bth) - 12;
	urn_build_headers(f, &t, behind + 12);
	urn_build_bth((struct urn_bth *)bth, URN_FLOW_DATA, 0, 0, urn_flow_qpn(0), l->psn++, 0);
	urn_build_icrc(f, 42 + behind + 12, 0, 1);
	flow_net_inject(n, 1, f, 42 + behind + 12 + 4);
	flow_net_run(n, 4 * FLOW_NET_STEP);
}

static struct urn_flow_part
segment(const struct part *p)
{
	return (struct urn_flow_part){
		.seg = {.qid = rte_cpu_to_be_64(flow_qid(0)),
			.bytes = rte_cpu_to_be_16(p->bytes),
			.kind = URN_FLOW_PART},
		.len = rte_cpu_to_be_32(p->len),
		.off = rte_cpu_to_be_32(p->off),
		.id = rte_cpu_to_be_32(p->id),
	};
}

static void
lie_part(struct flow_net *n, struct liar *l, struct part p)
{
	struct urn_flow_part s = segment(&p);

	lie(n, l, &s, 1);
}

static void
make_liar(struct liar *l, uint8_t last, uint8_t engine)
{
	*l = (struct liar){.gid = {[10] = 0xff, 0xff, 10, 0, 0, last}, .engine = engine};
}

/* ---- bytes of others */

/*
 * A message passes, and its buffer is kept. Parts of another sender have all the same place, and as
 * many bytes as its message: nothing is delivered, or bytes of the message before would be.
 */
static void
bytes_of_others(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;
	struct liar l;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 100 * PART, 1, &s);
	flow_net_until(n, &s, S);
	assert_int_equal(s.code, URN_MSG_DONE);
	make_liar(&l, 99, 0);
	for (unsigned int i = 0; i < 100; i++)
		lie_part(n, &l, (struct part){.id = 1, .len = 100 * PART, .bytes = PART});
	for (unsigned int i = 0; i < 100; i++)
		lie_part(n, &l,
			 (struct part){.id = 2,
				       .len = 100 * PART,
				       .off = (i & ~1u) * PART,
				       .bytes = PART});
	assert_int_equal(n->node[1].got_n, 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_PARTS), 2);
	assert_int_equal(flows(n)->wholes, 0);
	/* The same sender's sound parts are delivered. */
	for (unsigned int i = 0; i < 100; i++)
		lie_part(
			n, &l,
			(struct part){
				.id = 3, .len = 100 * PART, .off = (99 - i) * PART, .bytes = PART});
	assert_int_equal(n->node[1].got_n, 2);
	flow_sent_free(&s);
	flow_net_end(n);
}

/* Places of parts are sums of secret numbers: the secret is that of the configuration, not one made
 * of less. */
static void
secret(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);

	(void)state;
	assert_true(flows(n)->secret == n->node[1].tp->cfg.flow_secret);
	flow_net_end(n);
}

/* Segments of long messages without a number, or that share a packet, make no sense; neither do
 * kinds that there are not. */
static void
no_sense(void **state)
{
	const struct part p = {.id = 1, .len = 1200, .bytes = 400};
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_flow_part two[2] = {segment(&p), segment(&p)};
	struct liar l;

	(void)state;
	make_liar(&l, 99, 0);
	two[1].id = rte_cpu_to_be_32(2);
	lie(n, &l, two, 2);
	two[0].seg.kind = URN_FLOW_LET_GO;
	two[1].seg.kind = URN_FLOW_WHOLE;
	lie(n, &l, two, 2);
	lie_part(n, &l, (struct part){.id = 0, .len = 1200, .bytes = 400});
	two[0].id = 0;
	lie(n, &l, two, 1);
	two[0].seg.kind = URN_FLOW_SEG_KINDS;
	lie(n, &l, two, 1);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_FORMAT), 5);
	assert_int_equal(n->node[1].got_n, 0);
	/* A void segment does share a packet. */
	two[0].seg.kind = URN_FLOW_VOID;
	l.psn = 0;
	lie(n, &l, two, 2);
	assert_int_equal(n->node[1].got_n, 1);
	flow_net_end(n);
}

/* ---- half messages of senders that keep the rules */

enum { UNDER_WAY = 200 };

/* A bad wire, and a queue that is full now and then. */
struct bad {
	uint32_t lose, late; /* percent of frames */
	uint32_t len;	     /* bytes of a message */
	uint64_t delay;	     /* ns that a frame takes */
	bool full;
};

struct traffic {
	struct flow_sent s[UNDER_WAY];
	bool used[UNDER_WAY];
	uint32_t code[URN_MSG_CODES];
};

/* Count the answer of a message. */
static void
answer(struct traffic *t, unsigned int i)
{
	assert_int_equal(t->s[i].answers, 1);
	assert_true(t->s[i].code == URN_MSG_DONE || t->s[i].code == URN_MSG_QUEUE_FULL ||
		    t->s[i].code == URN_MSG_BUSY);
	t->code[t->s[i].code]++;
	t->used[i] = false;
	flow_sent_free(&t->s[i]);
}

/* Keep UNDER_WAY messages under way from node 0 to 1, for a time; then let all be answered on a
 * good wire. */
static void
send_many(struct flow_net *n, struct traffic *t, const struct bad *b, uint64_t ns)
{
	memset(t, 0, sizeof(*t));
	n->lose = b->lose;
	n->late = b->late;
	n->delay = b->delay;
	for (uint64_t end = n->now + ns; n->now < end;) {
		if (b->full)
			n->node[1].refuse[0] = n->now / 50000 & 1 ? URN_MSG_QUEUE_FULL : 0;
		for (unsigned int i = 0; i < UNDER_WAY; i++) {
			if (t->used[i] && t->s[i].answers)
				answer(t, i);
			if (!t->used[i])
				t->used[i] = flow_send(n, 0, 1, flow_qid(0), b->len, i + 1,
						       &t->s[i]) == URN_MSG_PENDING;
		}
		n->node[1].got_n = 0;
		flow_net_run(n, 4 * FLOW_NET_STEP);
	}
	n->lose = n->late = 0;
	n->node[1].refuse[0] = 0;
	for (unsigned int i = 0; i < UNDER_WAY; i++) {
		if (!t->used[i])
			continue;
		flow_net_until(n, &t->s[i], 5 * S);
		answer(t, i);
	}
	flow_net_run(n, 10 * MS);
}

/*
 * Senders that keep the rules are never told BUSY by a node with room, however bad the wire is, and
 * no half message is left behind.
 */
static void
no_half_message_is_left(void **state)
{
	static const struct bad bad[] = {
		{.late = 10, .len = 1500, .delay = 2000},
		{.lose = 10, .len = 1500, .delay = 10000},
		{.lose = 5, .len = 2500, .delay = 2000},
		{.len = 2500, .delay = 10000, .full = true},
		{.lose = 5, .late = 20, .len = 2500, .delay = 10000, .full = true},
		{.lose = 1, .len = 9000, .delay = 10000},
	};
	static struct traffic t;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct flow_net *n = flow_net_new(2, i + 1);

		send_many(n, &t, &bad[i], 15 * MS);
		print_message("%u%% lost, %u%% late: %u done, %u full, %u busy\n", bad[i].lose,
			      bad[i].late, t.code[URN_MSG_DONE], t.code[URN_MSG_QUEUE_FULL],
			      t.code[URN_MSG_BUSY]);
		assert_int_equal(flows(n)->wholes, 0);
		assert_int_equal(t.code[URN_MSG_BUSY], 0);
		assert_true(t.code[URN_MSG_DONE] > 100);
		flow_net_end(n);
	}
}

/* A part of a refused message that comes after many others were refused begins no half message. */
static void
late_part_of_a_refused_message(void **state)
{
	enum { OTHERS = 250 };
	struct flow_net *n = flow_net_new(2, 1);
	struct liar l;

	(void)state;
	make_liar(&l, 99, 0);
	n->node[1].refuse[0] = URN_MSG_QUEUE_FULL;
	lie_part(n, &l, (struct part){.id = 5, .len = 3 * PART, .bytes = PART});
	for (unsigned int i = 1; i <= OTHERS; i++)
		lie_part(n, &l, (struct part){.id = 5 + i, .len = 3 * PART, .bytes = PART});
	n->node[1].refuse[0] = 0;
	lie_part(n, &l, (struct part){.id = 5, .len = 3 * PART, .off = PART, .bytes = PART});
	assert_int_equal(flows(n)->wholes, 0);
	/* A message that is older than any that may begin: likewise. */
	lie_part(n, &l, (struct part){.id = 5 + 4 * URN_FLOW_IDS, .len = 3 * PART, .bytes = PART});
	assert_int_equal(flows(n)->wholes, 1);
	lie_part(n, &l, (struct part){.id = 4 + 3 * URN_FLOW_IDS, .len = 3 * PART, .bytes = PART});
	assert_int_equal(flows(n)->wholes, 1);
	flow_net_end(n);
}

/*
 * The last of some messages of the largest size waits for its first turn, and more than
 * URN_FLOW_IDS shorter ones begin meanwhile: the message is taken all the same.
 */
static void
late_begin(void **state)
{
	enum { BIG = 7, STREAM = 16, SHORT = 1200 };
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent big[BIG], s[STREAM];
	uint32_t passed = 0;

	(void)state;
	for (unsigned int i = 0; i < BIG; i++)
		flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, &big[i]);
	for (unsigned int i = 0; i < STREAM; i++)
		flow_send(n, 0, 1, flow_qid(0), SHORT, 2, &s[i]);
	while (!big[BIG - 1].answers && passed < 20 * URN_FLOW_IDS) {
		flow_net_run(n, FLOW_NET_STEP);
		for (unsigned int i = 0; i < STREAM; i++) {
			if (!s[i].answers)
				continue;
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
			flow_send(n, 0, 1, flow_qid(0), SHORT, 2, &s[i]);
			passed++;
		}
	}
	assert_true(passed > 2 * URN_FLOW_IDS);
	flow_net_run(n, 10 * MS);
	for (unsigned int i = 0; i < BIG; i++)
		assert_int_equal(big[i].code, URN_MSG_DONE);
	for (unsigned int i = 0; i < STREAM; i++)
		flow_sent_free(&s[i]);
	for (unsigned int i = 0; i < BIG; i++)
		flow_sent_free(&big[i]);
	flow_net_end(n);
}

/* ---- all places */

/* A message of node 2 to node 1. returns: its answer */
static uint8_t
other_node(struct flow_net *n)
{
	struct flow_sent s;

	flow_send(n, 2, 1, flow_qid(0), LONG, 2, &s);
	flow_net_until(n, &s, S);
	flow_sent_free(&s);
	return s.code;
}

/* One address begins as many messages as it can, by all its engines: other nodes find places. */
static void
one_node_takes_its_share(void **state)
{
	struct flow_net *n = flow_net_new(3, 1);
	struct liar l[4];

	(void)state;
	for (uint8_t k = 0; k < 4; k++) {
		make_liar(&l[k], 99, k);
		for (uint32_t i = 0; i < URN_FLOW_WHOLES_FLOW; i++)
			lie_part(n, &l[k],
				 (struct part){.id = 1 + i, .len = URN_MSG_MAX, .bytes = 1});
	}
	assert_int_equal(flows(n)->wholes, URN_FLOW_WHOLES / 2);
	assert_int_equal(flows(n)->nodes, 1);
	assert_int_equal(other_node(n), URN_MSG_DONE);
	flow_net_end(n);
}

/* Many addresses take all places, and send a byte now and then: the places are free again after a
 * time. */
static void
slow_messages_give_way(void **state)
{
	enum { LIARS = 4, GAP_S = 8, ROUNDS = 3 };
	struct flow_net *n = flow_net_new(3, 1);
	struct liar l[LIARS];
	unsigned int busy = 0;

	(void)state;
	for (uint8_t k = 0; k < LIARS; k++)
		make_liar(&l[k], (uint8_t)(90 + k), 0);
	for (uint32_t r = 0; r <= ROUNDS; r++) {
		for (uint32_t i = 0; i < URN_FLOW_WHOLES_FLOW; i++)
			for (unsigned int k = 0; k < LIARS; k++)
				lie_part(n, &l[k],
					 (struct part){.id = 1 + i,
						       .len = URN_MSG_MAX,
						       .off = r,
						       .bytes = 1});
		if (r == 0)
			assert_int_equal(flows(n)->wholes, URN_FLOW_WHOLES);
		busy += other_node(n) != URN_MSG_DONE;
		n->now += GAP_S * S;
	}
	assert_int_equal(busy, 2); /* at 0 s and 8 s */
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_others),
		cmocka_unit_test(secret),
		cmocka_unit_test(no_sense),
		cmocka_unit_test(no_half_message_is_left),
		cmocka_unit_test(late_part_of_a_refused_message),
		cmocka_unit_test(late_begin),
		cmocka_unit_test(one_node_takes_its_share),
		cmocka_unit_test(slow_messages_give_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
