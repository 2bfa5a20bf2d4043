/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi/urn_abi.h"
#include "wire/build.h"

#include <netinet/in.h>

#include <rte_ether.h>

enum {
	V4_OFF_IP = URN_ETH_BYTES,
	V4_BYTES = V4_OFF_IP + sizeof(struct urn_ipv4) + sizeof(struct urn_udp),
	V6_OFF_UDP = V4_OFF_IP + sizeof(struct urn_ipv6),
	V6_BYTES = V6_OFF_UDP + sizeof(struct urn_udp),
};
_Static_assert(V6_BYTES == URN_TMPL_BYTES, "the longest template");

int
urn_gid_is_v4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* Sum of the 16-bit words of an IPv4 header, in memory order, unfolded. */
static uint32_t
sum_words(const struct urn_ipv4 *ip)
{
	uint16_t w[sizeof(*ip) / 2];
	uint32_t sum = 0;

	memcpy(w, ip, sizeof(w));
	for (unsigned int i = 0; i < sizeof(w) / 2; i++)
		sum += w[i];
	return sum;
}

static void
init_v4(struct urn_tmpl *t, const struct urn_path *path)
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)(t->bytes + V4_OFF_IP);

	t->len = V4_BYTES;
	ip->ver_ihl = 0x45;
	ip->tos = path->tos;
	ip->frag = RTE_BE16(0x4000); /* DF: RoCEv2 is never fragmented */
	ip->ttl = path->ttl;
	ip->proto = IPPROTO_UDP;
	memcpy(ip->src, path->sgid + 12, 4);
	memcpy(ip->dst, path->dgid + 12, 4);
	t->csum = sum_words(ip);
}

static void
init_v6(struct urn_tmpl *t, const struct urn_path *path)
{
	struct urn_ipv6 *ip = (struct urn_ipv6 *)(t->bytes + V4_OFF_IP);

	t->len = V6_BYTES;
	t->ipv6 = 1;
	ip->ver_tc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)path->tos << 20 |
					   (path->flow_label & 0xfffff));
	ip->next = IPPROTO_UDP;
	ip->hop = path->ttl;
	memcpy(ip->src, path->sgid, 16);
	memcpy(ip->dst, path->dgid, 16);
}

URN_FAST void
urn_tmpl_init(struct urn_tmpl *t, const struct urn_path *path)
{
	struct urn_eth *eth = (struct urn_eth *)t->bytes;
	struct urn_udp *udp;

	memset(t, 0, sizeof(*t));
	memcpy(eth->dst, path->dmac, 6);
	memcpy(eth->src, path->smac, 6);
	if (urn_gid_is_v4(path->dgid)) {
		eth->type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
		init_v4(t, path);
	} else {
		eth->type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
		init_v6(t, path);
	}
	udp = (struct urn_udp *)(t->bytes + t->len - sizeof(*udp));
	udp->sport = rte_cpu_to_be_16(path->sport);
	udp->dport = RTE_BE16(URN_ROCE_PORT);
}

/*
 * The UDP checksum stays 0 with IPv6, too: kernel soft-RoCE sends 0 (all 18 IPv6 frames of
 * test/data/rxe_golden.pcap), the ICRC protects the packet, and a sum over the payload would cost a
 * second pass over it. RFC 6936 names the conditions under which a tunnel may do this; Wireshark
 * remarks on it.
 */
void
urn_build_headers_v6(uint8_t *frame, const struct urn_tmpl *t, uint16_t udp_len)
{
	struct urn_ipv6 *ip = (struct urn_ipv6 *)(frame + V4_OFF_IP);
	struct urn_udp *udp = (struct urn_udp *)(frame + V6_OFF_UDP);

	memcpy(frame, t->bytes, V6_BYTES);
	ip->len = rte_cpu_to_be_16(udp_len);
	udp->len = ip->len;
}

int
urn_gid_multicast_mac(uint8_t mac[6], const uint8_t gid[16])
{
	if (gid[0] == 0xff) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid + 12, 4);
		return 1;
	}
	if (urn_gid_is_v4(gid) && (gid[12] & 0xf0) == 0xe0) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid[13] & 0x7f;
		memcpy(mac + 4, gid + 14, 2);
		return 1;
	}
	return 0;
}
