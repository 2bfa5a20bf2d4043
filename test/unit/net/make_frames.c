/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a pcap of every frame that net/neigh.c and net/learn_*.c send - announcements,
 * requests, replies - for check_frames.py to check.
 */
#include "net/learn.h"
#include "net/router.h"

#include "common/test_eal.h"
#include "common/test_link_mad.h"
#include "common/test_pcap.h"
#include "l3_frames.h"

#include <string.h>

static const uint8_t us_group[16] = { 0xff, 0x02, [11] = 1, 0xff, 0xaa, 0xbb, 0x01 };
static unsigned int made;

static int
put(FILE *f, struct rte_mbuf **m, unsigned int n)
{
	int err = 0;

	for (unsigned int i = 0; i < n; i++, made++) {
		err |= test_pcap_add(f, rte_pktmbuf_mtod(m[i], uint8_t *),
				     rte_pktmbuf_data_len(m[i]));
		rte_pktmbuf_free(m[i]);
	}
	return err;
}

static int
put_reply(FILE *f, struct urn_neigh *nb, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	if (m == NULL)
		return -1;
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	urn_wire_parse(m);
	if (urn_neigh_input(nb, m, 0) != 1) {
		rte_pktmbuf_free(m);
		return -1;
	}
	return put(f, &m, 1);
}

static int
put_replies(FILE *f, struct urn_neigh *nb)
{
	static uint8_t b[L3_ROOM];
	int err = 0;

	err |= put_reply(f, nb, b, l3_arp(b, 1, peer_mac, peer_v4, us_v4));
	err |= put_reply(f, nb, b, l3_arp(b, 1, peer_mac, no_addr, us_v4));
	err |= put_reply(f, nb, b, l3_solicit(b, peer_ll, us_group, us_ll, peer_mac));
	err |= put_reply(f, nb, b, l3_solicit(b, peer_ll, us_ll, us_ll, NULL));
	err |= put_reply(f, nb, b, l3_solicit(b, no_addr, us_group, us_ll, NULL));
	for (uint32_t data = 0; data < 60; data += 7) {
		err |= put_reply(f, nb, b, l3_echo(b, peer_v4, us_v4, data));
		err |= put_reply(f, nb, b, l3_echo(b, peer_ll, us_ll, data));
	}
	return err;
}

/* A link request of the peer, and our answer. */
static int
put_response(FILE *f, struct urn_learn *lk, const uint8_t *gid, const uint8_t *us)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct link_spec s = link_good(0, 0x0123456789abcdef);
	uint8_t frame[LINK_FRAME_ROOM];
	uint32_t len = link_frame(frame, &s, peer_mac, gid, us_mac, us);

	if (m == NULL)
		return -1;
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	urn_wire_parse(m);
	if (urn_learn_input(lk, m, 0) != 1) {
		rte_pktmbuf_free(m);
		return -1;
	}
	return put(f, &m, 1);
}

static int
put_links(FILE *f, struct urn_neigh *nb)
{
	struct urn_learn_config cfg = { .neigh = nb, .offer = UINT32_MAX, .arw = 3, .icrc = true };
	struct rte_mbuf *out[8];
	struct urn_learn *lk;
	int err;

	memcpy(cfg.mac, us_mac, 6);
	lk = urn_learn_create(&cfg);
	if (lk == NULL)
		return -1;
	err = urn_neigh_add_static(nb, peer_v4, peer_mac) | urn_neigh_add_static(nb, peer_ll, peer_mac) |
	      urn_neigh_add_static(nb, peer_global, peer_mac);
	urn_learn_features(lk, peer_v4);
	urn_learn_features(lk, peer_ll);
	urn_learn_features(lk, peer_global);
	err |= put(f, out, urn_learn_poll(lk, 0, test_eal_pool(), out, 8));
	err |= put_response(f, lk, peer_v4, us_v4);
	err |= put_response(f, lk, peer_ll, us_ll);
	err |= put_response(f, lk, peer_global, us_global);
	urn_learn_destroy(lk);
	return err;
}

int
main(int argc, char **argv)
{
	FILE *f = argc == 2 ? test_pcap_create(argv[1]) : NULL;
	uint8_t own[3][16], mac[6];
	struct rte_mbuf *out[8];
	struct urn_neigh *nb;
	int err;

	if (f == NULL) {
		fprintf(stderr, "usage: %s FILE.pcap (which can be written)\n", argv[0]);
		return 1;
	}
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_global, 16);
	memcpy(own[2], us_ll, 16);
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	if (nb == NULL)
		return 1;
	urn_neigh_accept_ra(nb);
	err = put(f, out, urn_neigh_announce(nb, test_eal_pool(), out, 8));
	err |= put(f, out, urn_neigh_poll(nb, 0, test_eal_pool(), out, 8));
	/* The solicitation of routers comes within a second. */
	err |= put(f, out, urn_neigh_poll(nb, URN_ROUTER_DELAY_NS, test_eal_pool(), out, 8));
	urn_neigh_lookup(nb, peer_v4, mac);
	urn_neigh_lookup(nb, peer_ll, mac);
	urn_neigh_lookup(nb, peer_global, mac);
	err |= put(f, out, urn_neigh_poll(nb, 0, test_eal_pool(), out, 8));
	err |= put_replies(f, nb);
	err |= put_links(f, nb);
	urn_neigh_destroy(nb);
	printf("%u\n", made);
	return fclose(f) == 0 && err == 0 ? 0 : 1;
}
