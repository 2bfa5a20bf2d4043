/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: frames that get a message's bytes and their ICRC in one pass (doc/inside/messages.md
 * "Flows"). Receivers of the net check each ICRC; the tests compute it, too.
 */
#include "flow_net.h"

#include "wire/icrc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { HEAD = 32, BEFORE = 100 };

/* ---- a slice alone */

/* A frame with headers, BEFORE bytes of payload that were put before, and room for `len` more. */
static struct urn_flow_slice
slice(uint8_t *frame, uint32_t len, bool ipv6)
{
	uint8_t *at = frame + URN_ETH_BYTES + (ipv6 ? 60 : 40);

	for (uint32_t i = 0; i < 4400; i++)
		frame[i] = (uint8_t)(i * 7 + i / 256);
	frame[URN_ETH_BYTES] = ipv6 ? 0x60 : 0x45;
	memset(at + BEFORE + len, 0, -len & 3);
	return (struct urn_flow_slice){
		.at = at + BEFORE,
		.l3 = frame + URN_ETH_BYTES,
		.end = at + BEFORE + len + (-len & 3),
		.payload = BEFORE + len + (-len & 3),
	};
}

static uint32_t
icrc_at(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return rte_le_to_cpu_32(v);
}

/* Put `len` bytes, and compare all bytes around. returns: true when the slice was sealed, with the
 * right ICRC */
static bool
put(const struct urn_tp *tp, struct urn_flow_slice *s, const uint8_t *src, uint32_t len)
{
	static uint8_t want[4400 + 64];
	uint8_t *at = s->at, *l3 = s->l3;
	uint32_t behind = (uint32_t)(-len & 3);

	memcpy(want, at, len + 64);
	memcpy(want, src, len);
	urn_flow_slice_put(tp, s, src, len);
	assert_ptr_equal(s->at, at + len);
	if (s->sealed) {
		uint32_t all = (uint32_t)(s->end - l3);

		assert_int_equal(icrc_at(s->end), urn_icrc(l3, all, l3[0] >> 4 == 6));
		memcpy(want + len + behind, s->end, URN_ICRC_BYTES);
	}
	assert_memory_equal(at, want, len + 64);
	return s->sealed;
}

/* A long piece that fills the frame seals it; a short one, one with more to come, or one without an
 * ICRC, is copied alone. */
static void
pieces_that_seal(void **state)
{
	static uint8_t frame[4600], src[4200];
	struct flow_net *n = flow_net_new(1, 1);
	const struct urn_tp *tp = n->node[0].tp;
	struct urn_flow_slice s;

	(void)state;
	for (uint32_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 5 + 1);
	for (uint32_t len = 1; len <= 4100; len += len < 1100 ? 1 : 97)
		for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++) {
			s = slice(frame, len, ipv6);
			assert_int_equal(put(tp, &s, src + len % 8, len), len >= URN_TP_SEAL_FROM);
			s = slice(frame, len + 4, ipv6);
			assert_false(put(tp, &s, src, len));
			s = slice(frame, len, ipv6);
			s.l3 = NULL;
			assert_false(put(tp, &s, src, len));
		}
	/* In two pieces, the second one seals, unless it begins between words of 4 bytes. */
	for (uint32_t first = 1498; first < 1503; first++) {
		s = slice(frame, 3001, false);
		assert_false(put(tp, &s, src, first));
		assert_int_equal(put(tp, &s, src + first, 3001 - first), first == 1500);
	}
	flow_net_end(n);
}

/* ---- frames on the wire */

/* Frames that went out, and those with an ICRC that is not theirs. */
struct seen {
	unsigned int frames, wrong;
};

static void
check_frame(void *ctx, const struct rte_mbuf *m)
{
	const uint8_t *l3 = rte_pktmbuf_mtod(m, const uint8_t *) + URN_ETH_BYTES;
	uint32_t len = m->data_len - URN_ETH_BYTES - URN_ICRC_BYTES;
	struct seen *seen = ctx;

	seen->frames++;
	seen->wrong += icrc_at(l3 + len) != urn_icrc(l3, len, 0);
}

/* Whole messages and parts, gathered and not, alone and behind others in their packet, also
 * repeated ones. */
static void
each_frame_has_its_icrc(void **state)
{
	static const uint32_t len[] = {900,  1023, 1024, 1055, 1056, 1057,
				       1058, 1059, 2000, 9001, 70002};
	struct flow_sent s[RTE_DIM(len) * 3];
	struct seen seen = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct flow_net *n = flow_net_new(2, seed);

		n->watch = check_frame;
		n->watch_ctx = &seen;
		n->lose = seed % 2 ? 20 : 0;
		n->mark = seed % 3 == 0;
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			flow_send_head(n, 0, 1, flow_qid(0), i % 3 ? len[i / 3] : 60 + i, i,
				       i % 2 ? HEAD : 0, &s[i]);
		for (unsigned int i = 0; i < RTE_DIM(s); i++) {
			flow_net_until(n, &s[i], 5000 * MS);
			assert_int_equal(s[i].code, URN_MSG_DONE);
			flow_sent_free(&s[i]);
		}
		assert_int_equal(n->node[1].got_n, RTE_DIM(s));
		for (unsigned int i = 0; i < RTE_DIM(s); i++)
			assert_true(n->node[1].got[i].whole);
		assert_int_equal(flow_net_count(n, 1, URN_C_DROP_ICRC), 0);
		flow_net_end(n);
	}
	assert_true(seen.frames > 1000);
	assert_int_equal(seen.wrong, 0);
}

/* A repeat names another oldest packet and other bytes than the first packet did, and the ICRC is
 * that of the repeat. */
static void
repeats_have_their_own(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct seen seen = {0};
	struct flow_sent s[4];

	(void)state;
	n->watch = check_frame;
	n->watch_ctx = &seen;
	for (unsigned int i = 0; i < RTE_DIM(s); i++) {
		n->cut = i == 1 || i == 3;
		flow_send_head(n, 0, 1, flow_qid(0), 3001, i, i % 2 ? HEAD : 0, &s[i]);
		flow_net_run(n, MS / 4);
	}
	s[3].data[2000] ^= 1;
	n->cut = false;
	for (unsigned int i = 0; i < RTE_DIM(s); i++)
		flow_net_until(n, &s[i], 1000 * MS);
	assert_true(flow_net_count(n, 0, URN_C_FLOW_RETRANSMITS) >= 2);
	assert_int_equal(n->node[1].got_n, RTE_DIM(s));
	for (unsigned int i = 0; i < RTE_DIM(s); i++) {
		const struct flow_got *g = &n->node[1].got[i];

		assert_int_equal(g->whole, g->tag != 3);
		assert_int_equal(s[i].code, URN_MSG_DONE);
		flow_sent_free(&s[i]);
	}
	assert_int_equal(seen.wrong, 0);
	flow_net_end(n);
}

/* ---- a program that writes to its message while it is sent */

struct writer {
	uint8_t *data; /* 4000 bytes */
	_Atomic bool stop;
};

static void *
write_on(void *arg)
{
	struct writer *w = arg;

	for (uint8_t v = 0; !atomic_load(&w->stop); v++)
		for (uint32_t i = 1000; i < 4000; i++)
			__atomic_store_n(&w->data[i], v, __ATOMIC_RELAXED);
	return NULL;
}

/* The frame has bytes of some moment, and the ICRC of these. */
static void
bytes_that_change_meanwhile(void **state)
{
	struct flow_net *n = flow_net_new(2, 1);
	struct seen seen = {0};
	struct writer w = {0};
	struct flow_sent s;
	pthread_t thread;

	(void)state;
	n->watch = check_frame;
	n->watch_ctx = &seen;
	flow_send_head(n, 0, 1, flow_qid(0), 4000, 1, HEAD, &s);
	flow_net_until(n, &s, 100 * MS);
	w.data = s.data;
	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	for (unsigned int i = 0; i < 2000; i++) {
		s.answers = 0;
		assert_int_equal(urn_flow_send(n->node[0].tp, n->node[1].gid, &s.m),
				 URN_MSG_PENDING);
		flow_net_until(n, &s, 100 * MS);
		assert_int_equal(s.code, URN_MSG_DONE);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(flow_net_count(n, 0, URN_C_FLOW_RETRANSMITS), 0);
	flow_sent_free(&s);
	flow_net_end(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_that_seal),
		cmocka_unit_test(each_frame_has_its_icrc),
		cmocka_unit_test(repeats_have_their_own),
		cmocka_unit_test(bytes_that_change_meanwhile),
	};

	return cmocka_run_group_tests_name("packet_flow_seal", tests, NULL, NULL);
}
