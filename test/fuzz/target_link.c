/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of peers' features on any datagram to QP1, as the engine would give it:
 * parsed RoCEv2 frames. Invariants: responses and requests are valid frames of ours; no
 * peer can make us believe in more features than we offer; the table stays in its bounds;
 * each frame has a counter; an own address has all we offer.
 *
 * Input: steps: a byte for the kind, and its bytes.
 */
#include "fuzz.h"

#include "common/test_eal.h"
#include "common/test_link_mad.h"
#include "common/test_sent.h"
#include "net/learn.h"
#include "unit/net/l3_frames.h"

#include <string.h>

enum { STEPS = 64, OUT = 32, OFFER = URN_LINK_F_ALL };

struct link_world {
	struct urn_neigh *nb;
	struct urn_learn *lk;
	struct rte_mempool *pool;
	uint64_t now;
	uint64_t tid;   /* transaction id of the last request sent */
	uint32_t seen;  /* news seen so far */
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_eal();
	return 0;
}

/* A frame of ours to a QP1 must parse as one, with our MAC and a right ICRC. */
static void
check_sent(struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	fuzz_check(m->nb_segs == 1 && m->pkt_len == m->data_len);
	fuzz_check(urn_wire_parse(m) == URN_FRAME_ROCE);
	fuzz_check(urn_wire_icrc_ok(m));
	fuzz_check(memcmp(f + 6, us_mac, 6) == 0);
	fuzz_check(urn_pkt(m)->dqpn == 1 && urn_pkt(m)->payload_len == LINK_MAD);
	test_sent(m);
}

static const uint8_t *
some_gid(uint8_t byte, uint8_t room[16])
{
	static const uint8_t *const known[] = {peer_v4, peer_ll, peer_global, peer_v4,
					       us_v4,	us_ll,	 no_addr,     peer_v4};

	if (byte < 0x80)
		return known[byte & 7];
	byte & 1 ? l3_nth_v4(room, byte) : l3_nth_v6(room, byte);
	return room;
}

static bool
is_v4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

static void
arrive(struct link_world *w, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	int reply;

	fuzz_check(m);
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV, 0xa5, TEST_EAL_PRIV);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	if (urn_wire_parse(m) == URN_FRAME_ROCE) {
		urn_pkt(m)->drop = 0xff;
		reply = urn_learn_input(w->lk, m, w->now);
		fuzz_check(urn_pkt(m)->drop < URN_COUNTER_COUNT);
		if (reply)
			check_sent(m);
	}
	rte_pktmbuf_free(m);
}

/* A valid request or response with some bytes of its MAD, or of all of it, changed. */
static void
made_frame(struct link_world *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), f[LINK_FRAME_ROOM], room[16];
	const uint8_t *src = some_gid(fuzz_u8(in), room), *dst = is_v4(src) ? us_v4 : us_ll;
	struct link_spec s = link_good(how & 1, how & 2 ? w->tid : fuzz_u16(in));
	uint32_t len;

	s.epoch = how & 4 ? fuzz_u8(in) : s.epoch;
	s.features = how & 8 ? fuzz_u16(in) : s.features;
	len = link_frame(f, &s, peer_mac, src, us_mac, dst);
	for (unsigned int i = how >> 4; i; i--) {
		uint16_t at = fuzz_u16(in);

		/* Mostly behind the headers that the parser and the engine look at. */
		f[at & 0x8000 ? at % len : len - 4 - LINK_MAD + at % LINK_MAD] = fuzz_u8(in);
	}
	arrive(w, f, len);
}

static void
pass(struct link_world *w, uint8_t how)
{
	struct rte_mbuf *out[OUT];
	unsigned int n;

	w->now += 1ull << how % 38;
	n = urn_learn_poll(w->lk, w->now, w->pool, out, OUT);
	fuzz_check(n <= OUT);
	for (unsigned int i = 0; i < n; i++) {
		check_sent(out[i]);
		w->tid = link_tid(rte_pktmbuf_mtod(out[i], const uint8_t *));
	}
	rte_pktmbuf_free_bulk(out, n);
}

static void
news(struct link_world *w)
{
	struct urn_learn_news got[4];
	unsigned int n = urn_learn_news(w->lk, &w->seen, got, 4);

	fuzz_check(n <= 4);
	for (unsigned int i = 0; i < n; i++)
		fuzz_check((got[i].features & ~(uint32_t)OFFER) == 0);
}

static void
check_table(struct link_world *w, uint8_t byte)
{
	uint8_t room[16];
	const uint8_t *gid = some_gid(byte, room);
	struct urn_link_info info;
	enum urn_learn_state s = urn_learn_peek(w->lk, gid, &info);

	fuzz_check(urn_learn_count(w->lk) <= URN_LEARN_ENTRIES);
	fuzz_check(s < URN_LEARN_STATES);
	fuzz_check(s != URN_LEARN_KNOWN || info.arw <= URN_LINK_ARW_256);
	fuzz_check(urn_learn_features(w->lk, us_v4) == OFFER);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	struct urn_learn_config cfg = {.offer = OFFER, .arw = URN_LINK_ARW_64, .icrc = true, .seed = 7};
	uint8_t own[2][16], room[16];
	static struct link_world w;

	memset(&w, 0, sizeof(w));
	memcpy(own[0], us_ll, 16);
	memcpy(own[1], us_v4, 16);
	w.pool = test_eal_pool();
	w.now = 1000000000;
	w.nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 2);
	fuzz_check(w.nb && urn_neigh_add_static(w.nb, peer_v4, peer_mac) == 0);
	fuzz_check(urn_neigh_add_static(w.nb, peer_ll, peer_mac) == 0);
	cfg.neigh = w.nb;
	memcpy(cfg.mac, us_mac, 6);
	w.lk = urn_learn_create(&cfg);
	fuzz_check(w.lk);
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++) {
		uint8_t what = fuzz_u8(&in), gid = fuzz_u8(&in);

		switch (what & 7) {
		case 0: case 1: case 2: case 3: made_frame(&w, &in); break;
		case 4: fuzz_check((urn_learn_features(w.lk, some_gid(gid, room)) & ~(uint32_t)OFFER) == 0);
			break;
		case 5: case 6: pass(&w, fuzz_u8(&in)); break;
		case 7: news(&w); break;
		}
		check_table(&w, gid);
	}
	urn_learn_destroy(w.lk);
	urn_neigh_destroy(w.nb);
	fuzz_check(rte_mempool_avail_count(w.pool) == TEST_EAL_MBUFS);
	return 0;
}
