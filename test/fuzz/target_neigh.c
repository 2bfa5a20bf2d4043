/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of neighbours on any ARP, neighbour discovery and echo, as the engine would
 * give it: frames that the parser took for such. Invariants: replies and requests are
 * valid frames of ours; addresses looked up here stay, configured ones do not change; no
 * impossible MAC is believed; each frame has a counter. Half of the tables accept router
 * advertisements: routes are in their order and bounds, and never of IPv4.
 *
 * Input: steps: a byte for the kind, and its bytes.
 */
#include "fuzz.h"
#include "l3_words.h"

#include "common/test_asan.h"
#include "common/test_eal.h"
#include "common/test_neigh_state.h"
#include "common/test_sent.h"
#include "net/l3.h"
#include "net/router.h"
#include "wire/build.h"

#include <string.h>

enum { STEPS = 64, OUT = 32, LOOKED_UP = 64, NEAR = 4 };

struct neigh_world {
	struct urn_neigh *nb;
	struct rte_mempool *pool;
	uint64_t now;
	uint8_t wanted[LOOKED_UP][16];
	unsigned int wanted_n;
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_eal();
	return 0;
}

/* ---- frames that go out */

/* A frame of ours must parse as one, with our MAC, right checksums and a node's address. */
static void
check_sent(struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	enum urn_frame_kind kind = urn_wire_parse(m);

	fuzz_check(m->nb_segs == 1 && m->pkt_len == m->data_len);
	fuzz_check(kind == URN_FRAME_ARP || kind == URN_FRAME_ICMP || kind == URN_FRAME_ICMP6);
	fuzz_check(memcmp(f + 6, us_mac, 6) == 0);
	fuzz_check(l3_sums_ok(f, m->data_len));
	test_sent(m);
}

static void
check_all_sent(struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		check_sent(m[i]);
	rte_pktmbuf_free_bulk(m, n);
}

/* ---- frames that come in */

static void
arrive(struct neigh_world *w, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	enum urn_frame_kind kind;
	uint8_t *at;

	fuzz_check(m);
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV, 0xa5, TEST_EAL_PRIV);
	at = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(at, bytes, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	kind = urn_wire_parse(m);
	if (kind == URN_FRAME_ARP || kind == URN_FRAME_ICMP || kind == URN_FRAME_ICMP6) {
		static const enum urn_counter outcome[] = {
			URN_C_ARP_RX,	      URN_C_ND_RX,	 URN_C_ECHO_RX,
			URN_C_NEIGH_CONFLICT, URN_C_DROP_NEIGH,	 URN_C_DROP_ADDRESS,
			URN_C_DROP_NOT_ROCE,  URN_C_NEIGH_CLAIM, URN_C_RA_RX,
			URN_C_RA_FULL,	      URN_C_DROP_RA_FAR,
		};
		unsigned int i = 0, n = sizeof(outcome) / sizeof(outcome[0]);
		struct urn_l3_msg msg;
		int reply;

		/* Behind a frame no byte may be read; only a reply may be longer than it. */
		ASAN_POISON_MEMORY_REGION(at + m->data_len, TEST_EAL_ROOM - m->data_len);
		urn_l3_read(m, &msg);
		ASAN_UNPOISON_MEMORY_REGION(at, TEST_EAL_ROOM);
		urn_pkt(m)->drop = 0xff;
		reply = urn_neigh_input(w->nb, m, w->now);
		while (i < n && urn_pkt(m)->drop != outcome[i])
			i++;
		fuzz_check(i < n);
		if (reply)
			check_sent(m);
	}
	rte_pktmbuf_free(m);
}

/* One of a few addresses close to each other, or any of many. */
static void
some_gid(struct fuzz_in *in, uint8_t gid[16])
{
	static const uint8_t *const known[] = {us_v4,	  peer_v4,   us_ll,	peer_ll,
					       us_global, peer_global, no_addr, us_v4};
	uint8_t byte = fuzz_u8(in);

	if (byte < 0x80)
		memcpy(gid, known[byte & 7], 16);
	else if (byte < 0xf0)
		byte & 1 ? l3_nth_v4(gid, byte % NEAR) : l3_nth_v6(gid, byte % NEAR);
	else
		for (unsigned int i = 0; i < 16; i++)
			gid[i] = fuzz_u8(in);
}

/* A router advertisement with prefixes and other options. */
static uint32_t
made_ra(struct fuzz_in *in, uint8_t *f, uint8_t how, const uint8_t *a)
{
	uint8_t router[16], flags = fuzz_u8(in), prefix[16];
	uint32_t len;

	l3_nth_v6(router, how % 8);
	len = l3_ra(f, how & 0x80 ? a : router, (uint32_t)fuzz_u8(in) << (how & 8), flags);
	for (unsigned int i = 0; i < (flags & 7u); i++) {
		uint8_t kind = fuzz_u8(in);

		memcpy(prefix, a, 16);
		prefix[1] ^= kind & 0x0f;
		if (kind & 0x80)
			len = l3_option(f, len, fuzz_u8(in), 1 + (kind & 3));
		else
			len = l3_prefix(f, len, prefix, fuzz_u8(in), kind & 0x40 ? 0x40 : 0xc0,
					kind & 0x20 ? UINT32_MAX : fuzz_u8(in));
	}
	return len;
}

static void
made_frame(struct neigh_world *w, struct fuzz_in *in)
{
	uint8_t f[L3_ROOM], a[16], b[16], c[16], kind = fuzz_u8(in), how = fuzz_u8(in), at;
	uint32_t len;

	some_gid(in, a);
	some_gid(in, b);
	some_gid(in, c);
	if ((kind & 0x0c) == 0x0c)
		len = made_ra(in, f, how, a);
	else
		len = l3_words(f, kind, how, l3_words_mac(how >> 1), a, b, c);
	at = fuzz_u8(in);
	if (kind & 0x40)
		f[at % len] = fuzz_u8(in);
	if (kind & 0x20)
		l3_fix(f, len);
	if (kind & 0x10) /* cut short */
		len -= fuzz_u8(in) % len;
	arrive(w, f, len);
}

static void
raw_frame(struct neigh_world *w, struct fuzz_in *in)
{
	uint8_t f[L3_ROOM], how = fuzz_u8(in);
	uint32_t len = fuzz_u8(in) + (how & 3u) * 256, left = (uint32_t)(in->end - in->p);

	len = len < left ? len : left;
	memcpy(f, in->p, len);
	in->p += len;
	if (len >= 14 && how & 0x80)
		memcpy(f, us_mac, 6);
	if (how & 0x40)
		l3_fix(f, len);
	arrive(w, f, len);
}

/* ---- the other sides of the table */

static void
look_up(struct neigh_world *w, struct fuzz_in *in)
{
	uint8_t gid[16], hop[16], mac[6];
	int rc;

	some_gid(in, gid);
	rc = urn_neigh_lookup(w->nb, gid, mac);
	fuzz_check(rc == URN_NEIGH_OK || rc == URN_NEIGH_UNKNOWN || rc == URN_NEIGH_FAIL ||
		   (rc == URN_NEIGH_NO_ROUTE && urn_neigh_accepts_ra(w->nb)));
	if (rc == URN_NEIGH_UNKNOWN && w->wanted_n < LOOKED_UP) {
		fuzz_check(urn_neigh_hop(w->nb, gid, hop));
		memcpy(w->wanted[w->wanted_n++], hop, 16);
	}
}

static void
pass(struct neigh_world *w, uint8_t how)
{
	struct rte_mbuf *out[OUT];
	unsigned int n;

	w->now += 1ull << how % 38;
	n = urn_neigh_poll(w->nb, w->now, w->pool, out, OUT);
	fuzz_check(n <= OUT);
	check_all_sent(out, n);
}

static void
announce(struct neigh_world *w)
{
	struct rte_mbuf *out[OUT];
	unsigned int n = urn_neigh_announce(w->nb, w->pool, out, OUT);

	fuzz_check(n <= OUT);
	check_all_sent(out, n);
}

static void
check_routes(struct neigh_world *w)
{
	struct urn_neigh_route r[URN_NEIGH_ADVERTISED];
	unsigned int n = urn_neigh_routes(w->nb, r, URN_NEIGH_ADVERTISED);

	fuzz_check(n <= (urn_neigh_accepts_ra(w->nb) ? URN_NEIGH_ADVERTISED : 0));
	for (unsigned int i = 0; i < n; i++) {
		bool router = r[i].kind == URN_NEIGH_ROUTE_ROUTER;

		fuzz_check(router || r[i].kind == URN_NEIGH_ROUTE_RA_LINK);
		fuzz_check(router ? r[i].len == 0 && urn_neigh_link_local(r[i].via)
				  : r[i].len >= 32 && r[i].len <= 128);
		fuzz_check(i == 0 || r[i - 1].len >= r[i].len);
		fuzz_check(!urn_gid_is_v4(r[i].prefix) && !urn_neigh_mask(r[i].prefix, r[i].len));
	}
}

static void
check_table(struct neigh_world *w, const uint8_t fixed[16])
{
	uint8_t mac[6];

	check_routes(w);
	fuzz_check(urn_neigh_count(w->nb) <= URN_NEIGH_ENTRIES);
	fuzz_check(test_neigh_state(w->nb, fixed, mac) == URN_NEIGH_REACHABLE);
	fuzz_check(memcmp(mac, other_mac, 6) == 0);
	for (unsigned int i = 0; i < w->wanted_n; i++) {
		enum urn_neigh_state s = test_neigh_state(w->nb, w->wanted[i], mac);

		fuzz_check(s != URN_NEIGH_NONE);
		if (s == URN_NEIGH_REACHABLE || s == URN_NEIGH_STALE)
			fuzz_check(urn_l3_mac_ok(mac));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	static struct neigh_world w;
	uint8_t own[3][16], fixed[16];

	memset(&w, 0, sizeof(w));
	memcpy(own[0], us_ll, 16);
	memcpy(own[1], us_v4, 16);
	memcpy(own[2], us_global, 16);
	w.pool = test_eal_pool();
	w.now = 1000000000;
	w.nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	fuzz_check(w.nb);
	if (size & 1)
		urn_neigh_accept_ra(w.nb);
	l3_nth_v4(fixed, 1);
	fuzz_check(urn_neigh_add_static(w.nb, fixed, other_mac) == 0);
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++) {
		uint8_t what = fuzz_u8(&in);

		switch (what & 7) {
		case 0: case 1: case 2: made_frame(&w, &in); break;
		case 3: raw_frame(&w, &in); break;
		case 4: case 5: look_up(&w, &in); break;
		case 6: pass(&w, fuzz_u8(&in)); break;
		case 7: announce(&w); break;
		}
		check_table(&w, fixed);
	}
	urn_neigh_destroy(w.nb);
	fuzz_check(rte_mempool_full(w.pool));
	return 0;
}
