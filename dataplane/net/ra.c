/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/ra.h"

#include "net/l3.h"
#include "net/neigh.h"
#include "wire/build.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ether.h>

/* Head of a router advertisement. */
struct advert {
	uint8_t type, code;
	uint16_t csum;
	uint8_t hops, flags;
	uint16_t lifetime;
	uint32_t reachable, retrans;
} __attribute__((packed));
_Static_assert(sizeof(struct advert) == 16, "router advertisement");

/* Option with a prefix (RFC 4861, 4.6.2). */
struct prefix_info {
	uint8_t type, units, len, flags;
	uint32_t valid, preferred, reserved;
	uint8_t prefix[16];
} __attribute__((packed));
_Static_assert(sizeof(struct prefix_info) == 32, "prefix information");

/* Router solicitation with the only option that we send. */
struct solicit {
	uint8_t type, code;
	uint16_t csum;
	uint32_t reserved;
	uint8_t opt_type, opt_units, opt_mac[6];
} __attribute__((packed));
_Static_assert(sizeof(struct solicit) == 16, "router solicitation");

enum {
	OFF_IP = URN_ETH_BYTES,
	OFF_ICMP = OFF_IP + sizeof(struct urn_ipv6),
	SOLICIT = 133,
	ADVERT = 134,
	HOPS = 255,	     /* proves that no router passed the frame on */
	FLAG_ON_LINK = 0x80, /* a prefix of the link */
	OPT_SOURCE_MAC = 1,
	OPT_PREFIX = 3,
	UNIT = 8, /* bytes in which options count */
};
_Static_assert(OFF_ICMP + sizeof(struct solicit) == URN_RA_SOLICIT_BYTES, "room");

bool
urn_ra_is(const struct rte_mbuf *m)
{
	const struct urn_pkt *p = (const struct urn_pkt *)(m + 1);

	return p->kind == URN_FRAME_ICMP6 && rte_pktmbuf_data_len(m) > OFF_ICMP &&
	       *rte_pktmbuf_mtod_offset(m, const uint8_t *, OFF_ICMP) == ADVERT;
}

/* Preference from the flags; the reserved value counts as medium (RFC 4191, 2.2). */
static int8_t
preference(uint8_t flags)
{
	static const int8_t of[4] = {0, 1, 0, -1};

	return of[flags >> 3 & 3];
}

/* Note a prefix that is on the link. Prefixes of other kinds, and such that no link has, are left
 * out. */
static void
take_prefix(struct urn_ra *ra, const struct prefix_info *o)
{
	struct urn_ra_prefix p = {.len = o->len, .lifetime_s = rte_be_to_cpu_32(o->valid)};

	if (!(o->flags & FLAG_ON_LINK) || o->len > 128 || o->len < URN_RA_PREFIX_BITS)
		return;
	memcpy(p.prefix, o->prefix, 16);
	(void)urn_neigh_mask(p.prefix, p.len);
	if (urn_gid_is_v4(p.prefix) || p.prefix[0] == 0xff || urn_neigh_link_local(p.prefix))
		return;
	if (ra->prefixes == URN_RA_PREFIXES)
		ra->more = true;
	else
		ra->prefix[ra->prefixes++] = p;
}

/* Walk the options, as many as the frame has room for. returns: false: malformed */
static bool
read_options(struct urn_ra *ra, const uint8_t *opt, uint32_t left)
{
	while (left != 0) {
		uint32_t size = left >= 2 ? opt[1] * (uint32_t)UNIT : 0;

		if (size == 0 || size > left ||
		    (opt[0] == OPT_PREFIX && size != sizeof(struct prefix_info)))
			return false;
		if (opt[0] == OPT_PREFIX)
			take_prefix(ra, (const struct prefix_info *)opt);
		opt += size;
		left -= size;
	}
	return true;
}

enum urn_counter
urn_ra_read(const struct rte_mbuf *m, struct urn_ra *ra)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct urn_ipv6 *ip = (const struct urn_ipv6 *)(f + OFF_IP);
	const struct advert *a = (const struct advert *)(f + OFF_ICMP);
	uint32_t len = rte_pktmbuf_data_len(m);

	memset(ra, 0, sizeof(*ra));
	if (len < OFF_ICMP + sizeof(*a) || urn_l3_icmp6_csum(ip, a, len - OFF_ICMP) != 0 ||
	    !urn_l3_mac_ok(((const struct urn_eth *)f)->src))
		return URN_C_DROP_NEIGH;
	if (ip->hop != HOPS || !urn_neigh_link_local(ip->src))
		return URN_C_DROP_RA_FAR;
	if (a->code != 0)
		return URN_C_DROP_NEIGH;
	memcpy(ra->router, ip->src, 16);
	ra->lifetime_s = rte_be_to_cpu_16(a->lifetime);
	ra->preference = preference(a->flags);
	return read_options(ra, (const uint8_t *)(a + 1), len - OFF_ICMP - (uint32_t)sizeof(*a))
		       ? URN_C_RA_RX
		       : URN_C_DROP_NEIGH;
}

void
urn_ra_solicit(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t src[16])
{
	static const uint8_t all_routers[16] = {0xff, 0x02, [15] = 0x02};
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	struct urn_eth *eth = (struct urn_eth *)f;
	struct urn_ipv6 *ip = (struct urn_ipv6 *)(f + OFF_IP);
	struct solicit *s = (struct solicit *)(f + OFF_ICMP);

	memset(f, 0, URN_RA_SOLICIT_BYTES);
	urn_gid_multicast_mac(eth->dst, all_routers);
	memcpy(eth->src, mac, 6);
	eth->type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	ip->ver_tc_flow = RTE_BE32(6u << 28);
	ip->len = RTE_BE16(sizeof(*s));
	ip->next = IPPROTO_ICMPV6;
	ip->hop = HOPS;
	memcpy(ip->src, src, 16);
	memcpy(ip->dst, all_routers, 16);
	s->type = SOLICIT;
	s->opt_type = OPT_SOURCE_MAC;
	s->opt_units = 1;
	memcpy(s->opt_mac, mac, 6);
	s->csum = urn_l3_icmp6_csum(ip, s, sizeof(*s));
	m->data_len = URN_RA_SOLICIT_BYTES;
	m->pkt_len = URN_RA_SOLICIT_BYTES;
}
