/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: long messages put together from parts: their buffers, their parts, their order
 * (doc/inside/messages.md "Flows"). */
#include "flow_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

static unsigned int allocated; /* calls of aligned_alloc() */

/* Flows and buffers of long messages come from here. */
void *
aligned_alloc(size_t align, size_t bytes)
{
	void *p = NULL;

	allocated++;
	return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}

static const struct urn_flows *
flows(const struct flow_net *n)
{
	return n->node[1].tp->flows;
}

/* Send a message from node 0 to 1, which arrives. */
static void
pass(struct flow_net *n, uint32_t len)
{
	uint32_t got = n->node[1].got_n;
	struct flow_sent s;

	assert_int_equal(flow_send(n, 0, 1, flow_qid(0), len, 5, &s), URN_MSG_PENDING);
	flow_net_until(n, &s, 1000 * MS);
	assert_int_equal(s.code, URN_MSG_DONE);
	assert_int_equal(n->node[1].got_n, got + 1);
	assert_int_equal(n->node[1].got[got].len, len);
	assert_true(n->node[1].got[got].whole);
	flow_sent_free(&s);
}

/* A buffer serves message after message; one that is kept serves smaller messages, too. */
static void
buffers_are_kept(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	unsigned int before;

	(void)state;
	pass(n, 200000);
	before = allocated;
	for (uint32_t i = 0; i < 50; i++)
		pass(n, 200000 - 3 * i);
	pass(n, 5000);
	pass(n, 256 << 10);
	assert_int_equal(allocated, before);
	assert_int_equal(flows(n)->kept_n, 1);
	assert_int_equal(flows(n)->kept_bytes, (256 << 10) + 4096);
	pass(n, (256 << 10) + 4097);
	pass(n, URN_MSG_MAX);
	assert_int_equal(allocated, before + 2);
	flow_net_end(n);
}

/* A refused message leaves a note, which is kept as well. */
static void
notes_are_kept(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	unsigned int before = 0;
	struct flow_sent s;

	(void)state;
	n->node[1].refuse[0] = URN_MSG_QUEUE_FULL;
	for (unsigned int i = 0; i < 100; i++) {
		flow_send(n, 0, 1, flow_qid(0), 20000, 5, &s);
		flow_net_until(n, &s, 1000 * MS);
		assert_int_equal(s.code, URN_MSG_QUEUE_FULL);
		flow_sent_free(&s);
		if (i == 20)
			before = allocated;
	}
	assert_int_equal(allocated, before);
	flow_net_end(n);
}

/* ---- parts that a node made up */

/* A packet with a part of a message of `len` bytes, as if it came from node 0. */
static void
put_part(struct flow_net *n, uint32_t psn, uint32_t id, uint32_t len, uint32_t off, uint16_t bytes)
{
	struct urn_path path = {.ttl = 64, .sport = 0xc000};
	uint32_t payload = (uint32_t)sizeof(struct urn_flow_part) + urn_flow_pad(bytes),
		 behind = 28 + payload;
	struct urn_flow_part part = {
		.seg = {.qid = rte_cpu_to_be_64(flow_qid(0)),
			.bytes = rte_cpu_to_be_16(bytes),
			.kind = URN_FLOW_PART},
		.len = rte_cpu_to_be_32(len),
		.off = rte_cpu_to_be_32(off),
		.id = rte_cpu_to_be_32(id),
	};
	struct urn_flow_hdr h = {.epoch = rte_cpu_to_be_64(77)};
	uint8_t f[1200] = {0}, *bth = f + 42;
	struct urn_tmpl t;

	memcpy(path.smac, n->node[0].mac, 6);
	memcpy(path.dmac, n->node[1].mac, 6);
	memcpy(path.sgid, n->node[0].gid, 16);
	memcpy(path.dgid, n->node[1].gid, 16);
	memset(&t, 0, sizeof(t));
	urn_tmpl_init(&t, &path);
	urn_build_headers(f, &t, behind);
	urn_build_bth((struct urn_bth *)bth, URN_FLOW_DATA, 0, 0, urn_flow_qpn(0), psn, 0);
	memcpy(bth + 12, &h, sizeof(h));
	memcpy(bth + 28, &part, sizeof(part));
	urn_build_icrc(f, 42 + behind, 0, 1);
	flow_net_inject(n, 1, f, 42 + behind + 4);
	flow_net_run(n, 5 * FLOW_NET_STEP);
}

/* Buffers that are kept are bounded, and go when no long message came for a while. */
static void
kept_buffers_are_bounded(void **state)
{
	enum { MESSAGES = 12, AGED_S = 35 };
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s;

	(void)state;
	for (uint32_t i = 0; i < MESSAGES; i++)
		put_part(n, i, i + 1, URN_MSG_MAX, 0, 400);
	assert_int_equal(flows(n)->wholes, MESSAGES);
	urn_flow_drop_wholes(n->node[1].tp, urn_flow_find(n->node[1].tp, n->node[0].gid, 0));
	assert_int_equal(flows(n)->wholes, 0);
	assert_int_equal(flows(n)->kept_bytes, URN_FLOW_KEPT_BYTES);
	for (int i = 0; i < AGED_S; i++) { /* short messages all the while */
		n->now += 1000 * MS;
		flow_send(n, 0, 1, flow_qid(0), 64, 1, &s);
		flow_net_until(n, &s, 1000 * MS);
		flow_sent_free(&s);
		flow_net_run(n, 40 * FLOW_NET_STEP);
	}
	assert_true(urn_flow_count(n->node[1].tp) > 0);
	assert_int_equal(flows(n)->kept_n, 0);
	assert_int_equal(flows(n)->kept_bytes, 0);
	flow_net_end(n);
}

/*
 * Parts that overlap and leave a gap have as many bytes as the message. The message is not
 * delivered: bytes of another message would lie in the gap. Parts that cover the message are taken
 * in any order and with any cut.
 */
static void
parts_cover_the_message(void **state)
{
	static const uint16_t bad[][3][2] = {
		/* off, bytes */
		{{0, 400}, {0, 400}, {800, 400}},
		{{0, 400}, {400, 400}, {400, 400}},
		{{0, 400}, {396, 400}, {800, 400}},
		{{4, 400}, {404, 400}, {800, 400}},
	};
	static const uint16_t good[3][2] = {{1000, 200}, {0, 4}, {4, 996}};
	struct flow_net *n = flow_net_new(2, 1);
	uint32_t psn = 0, id = 1;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(bad); i++, id++)
		for (unsigned int k = 0; k < 3; k++)
			put_part(n, psn++, id, 1200, bad[i][k][0], bad[i][k][1]);
	assert_int_equal(n->node[1].got_n, 0);
	assert_int_equal(flows(n)->wholes, 0);
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_DROP_PARTS), RTE_DIM(bad));
	assert_int_equal(flow_net_count(n, 1, URN_C_FLOW_REFUSED_RX), RTE_DIM(bad));
	for (unsigned int k = 0; k < 3; k++)
		put_part(n, psn++, id, 1200, good[k][0], good[k][1]);
	assert_int_equal(n->node[1].got_n, 1);
	assert_int_equal(n->node[1].got[0].len, 1200);
	flow_net_end(n);
}

/* ---- order */

/* Shorter messages overtake one of the largest size; a stream of them that never ends does not hold
 * it up for ever. */
static void
short_first(void **state)
{
	enum { STREAM = 16, LEN = 5000, MOST = 1800 };
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent big, s[STREAM];
	uint32_t at = 0;

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), URN_MSG_MAX, 1, &big);
	flow_net_run(n, 20 * FLOW_NET_STEP);
	for (unsigned int i = 0; i < STREAM; i++)
		flow_send(n, 0, 1, flow_qid(0), LEN, 2, &s[i]);
	while (!big.code && n->node[1].got_n < 2 * MOST) {
		flow_net_run(n, FLOW_NET_STEP);
		for (unsigned int i = 0; i < STREAM; i++) {
			if (!s[i].code)
				continue;
			flow_sent_free(&s[i]);
			flow_send(n, 0, 1, flow_qid(0), LEN, 2, &s[i]);
		}
	}
	assert_int_equal(big.code, URN_MSG_DONE);
	while (n->node[1].got[at].len != URN_MSG_MAX)
		at++;
	print_message("%u messages of %d bytes overtook one of 1 MiB\n", at, LEN);
	/* One part in eight is the large message's, which has 1062; the others have six a message:
	 * 1239 messages. */
	assert_in_range(at, STREAM, MOST);
	flow_net_run(n, 100 * MS);
	flow_sent_free(&big);
	for (unsigned int i = 0; i < STREAM; i++)
		flow_sent_free(&s[i]);
	flow_net_end(n);
}

/* The priority of flows is stopped on node 0, or goes on. */
static void
stop(struct flow_net *n, bool stopped)
{
	static const uint8_t priority_of[64];
	struct urn_tp *tp = n->node[0].tp;

	tp->priority_of = priority_of;
	tp->sched.stopped = stopped;
}

/* Time passes in which each node has few turns. */
static void
pass_time(struct flow_net *n, uint64_t ns)
{
	for (uint64_t end = n->now + ns; n->now < end; n->now += 300 * MS)
		flow_net_run(n, 20 * FLOW_NET_STEP);
}

/*
 * DB-7: messages that wait half sent while the flow's epoch becomes too old are there once and
 * whole when they are DONE. other: a message of another client begins the new epoch
 */
static void
waits_half_sent(uint64_t ns, bool other)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct urn_tp_share client[2] = {0};
	struct flow_sent s[3];

	for (unsigned int i = 0; i < 2; i++)
		flow_send_as(n, 0, n->node[1].gid, &client[0], 900000, 1 + i, &s[i]);
	flow_net_run(n, 20 * FLOW_NET_STEP);
	stop(n, true);
	pass_time(n, ns);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(s[i].m.state, URN_FLOW_MSG_ACTIVE);
	assert_in_range(s[0].m.sent, 1, 899999);
	if (other)
		flow_send_as(n, 0, n->node[1].gid, &client[1], 64, 3, &s[2]);
	stop(n, false);
	for (unsigned int i = 0; i < 2u + other; i++) {
		flow_net_until(n, &s[i], 3000 * MS);
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
	assert_int_equal(n->node[1].got_n, 2 + other);
	for (unsigned int i = 0; i < n->node[1].got_n; i++)
		assert_true(n->node[1].got[i].whole);
	assert_int_equal(flows(n)->wholes, 0);
	flow_net_end(n);
}

/* A new message, or none, begins the new epoch; or the node has forgotten the flow. */
static void
waits_for_an_epoch(void **state)
{
	(void)state;
	waits_half_sent(22000 * MS, true);
	waits_half_sent(22000 * MS, false);
	waits_half_sent(45000 * MS, false);
	waits_half_sent(45000 * MS, true);
}

/* A message that is let go of after the new epoch began leaves nothing at the node. */
static void
let_go_in_the_new_epoch(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct flow_sent s[2];

	(void)state;
	flow_send(n, 0, 1, flow_qid(0), 900000, 1, &s[0]);
	flow_net_run(n, 20 * FLOW_NET_STEP);
	stop(n, true);
	pass_time(n, 22000 * MS);
	flow_send(n, 0, 1, flow_qid(0), 64, 2, &s[1]);
	assert_int_equal(s[0].m.sent, 0);
	urn_flow_forget(n->node[0].tp, &s[0].m);
	flow_sent_free(&s[0]);
	stop(n, false);
	flow_net_until(n, &s[1], 1000 * MS);
	assert_int_equal(s[1].code, URN_MSG_DONE);
	flow_sent_free(&s[1]);
	assert_int_equal(n->node[1].got_n, 1);
	assert_int_equal(flows(n)->wholes, 0);
	assert_int_equal(n->node[0].tp->nobodys.work, 0);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_kept),
		cmocka_unit_test(notes_are_kept),
		cmocka_unit_test(kept_buffers_are_bounded),
		cmocka_unit_test(parts_cover_the_message),
		cmocka_unit_test(short_first),
		cmocka_unit_test(waits_for_an_epoch),
		cmocka_unit_test(let_go_in_the_new_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
