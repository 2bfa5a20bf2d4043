/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/l3.h"
#include "wire/build.h"

#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>

struct arp {
	uint16_t htype, ptype;
	uint8_t hlen, plen;
	uint16_t op;
	uint8_t sha[6], spa[4], tha[6], tpa[4];
} __attribute__((packed));
_Static_assert(sizeof(struct arp) == 28, "arp");

struct icmp {
	uint8_t type, code;
	uint16_t csum;
	uint32_t rest; /* echo: identifier and sequence number; ND: flags */
} __attribute__((packed));
_Static_assert(sizeof(struct icmp) == 8, "icmp");

/* Neighbour solicitation or advertisement, with the only option that we send. */
struct nd {
	struct icmp icmp;
	uint8_t target[16];
	uint8_t opt_type, opt_len; /* opt_len in units of 8 bytes */
	uint8_t opt_mac[6];
} __attribute__((packed));
_Static_assert(sizeof(struct nd) == 32, "nd");

enum {
	OFF_L3 = URN_ETH_BYTES,
	OFF_V4 = OFF_L3 + sizeof(struct urn_ipv4), /* ICMP over IPv4 */
	OFF_V6 = OFF_L3 + sizeof(struct urn_ipv6), /* ICMPv6 */
	ND_FIXED = sizeof(struct icmp) + 16,       /* up to the options */
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	ECHO_REPLY = 0,
	ECHO_REQUEST = 8,
	ECHO6_REQUEST = 128,
	ECHO6_REPLY = 129,
	ND_SOLICIT = 135,
	ND_ADVERT = 136,
	ND_HOPS = 255, /* proves that no router passed the frame on (RFC 4861, 7.1) */
	OPT_SOURCE_MAC = 1,
	OPT_TARGET_MAC = 2,
	TTL = 64,
};
#define NA_SOLICITED 0x40000000u
#define NA_OVERRIDE 0x20000000u

static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 0x01 };
static const uint8_t zero16[16];

/* ---- addresses */

int
urn_l3_mac_ok(const uint8_t mac[6])
{
	return !(mac[0] & 1) && memcmp(mac, zero16, 6) != 0;
}

void
urn_l3_gid_v4(uint8_t gid[16], const uint8_t ipv4[4])
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, ipv4, 4);
}

void
urn_l3_addresses(struct rte_mbuf *m, uint8_t src[16], uint8_t dst[16])
{
	const struct urn_pkt *p = urn_pkt(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off);

	if (p->ipv6) {
		memcpy(src, l3 + offsetof(struct urn_ipv6, src), 16);
		memcpy(dst, l3 + offsetof(struct urn_ipv6, dst), 16);
	} else {
		urn_l3_gid_v4(src, l3 + offsetof(struct urn_ipv4, src));
		urn_l3_gid_v4(dst, l3 + offsetof(struct urn_ipv4, dst));
	}
}

void
urn_l3_solicited_node(uint8_t out[16], const uint8_t ipv6[16])
{
	static const uint8_t prefix[13] = { 0xff, 0x02, [11] = 0x01, [12] = 0xff };

	memcpy(out, prefix, sizeof(prefix));
	memcpy(out + 13, ipv6 + 13, 3);
}

/* True when a host can have this IPv4 address: not 0/8, 127/8, multicast or beyond. */
static int
v4_host(const uint8_t a[4])
{
	return a[0] != 0 && a[0] != 127 && a[0] < 224;
}

/* True when a host can have this IPv6 address: not ::, ::1, mapped IPv4 or multicast. */
static int
v6_host(const uint8_t a[16])
{
	return a[0] != 0xff && !urn_gid_is_v4(a) &&
	       (memcmp(a, zero16, 15) != 0 || a[15] > 1);
}

/* ---- checksums */

uint16_t
urn_l3_icmp6_csum(const struct urn_ipv6 *ip, const void *icmp, uint32_t len)
{
	uint32_t sum = rte_raw_cksum(ip->src, sizeof(ip->src) + sizeof(ip->dst));

	sum += rte_cpu_to_be_16((uint16_t)len) + RTE_BE16(IPPROTO_ICMPV6);
	sum += rte_raw_cksum(icmp, len);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint16_t
plain_csum(const void *p, uint32_t len)
{
	return (uint16_t)~rte_raw_cksum(p, len);
}

/* ---- reading */

static enum urn_counter
read_arp(const uint8_t *f, uint32_t len, struct urn_l3_msg *msg)
{
	const struct arp *arp = (const struct arp *)(f + OFF_L3);
	int reply;

	if (len < OFF_L3 + sizeof(*arp) || arp->htype != RTE_BE16(1) ||
	    arp->ptype != RTE_BE16(RTE_ETHER_TYPE_IPV4) || arp->hlen != 6 || arp->plen != 4 ||
	    (arp->op != RTE_BE16(ARP_REQUEST) && arp->op != RTE_BE16(ARP_REPLY)))
		return URN_C_DROP_NEIGH;
	reply = arp->op == RTE_BE16(ARP_REPLY);
	msg->has_src = memcmp(arp->spa, zero16, 4) != 0;
	if (!urn_l3_mac_ok(arp->sha) || (msg->has_src && !v4_host(arp->spa)) ||
	    (reply && !msg->has_src))
		return URN_C_DROP_NEIGH;
	msg->kind = reply ? URN_L3_ARP_REPLY : URN_L3_ARP_REQUEST;
	msg->has_mac = 1;
	msg->override = 1;
	msg->solicited = (uint8_t)reply;
	memcpy(msg->mac, arp->sha, 6);
	urn_l3_gid_v4(msg->src, arp->spa);
	urn_l3_gid_v4(msg->dst, arp->tpa);
	urn_l3_gid_v4(msg->target, reply ? arp->spa : arp->tpa);
	return URN_C_ARP_RX;
}

static enum urn_counter
read_icmp(const uint8_t *f, uint32_t len, struct urn_l3_msg *msg)
{
	const struct urn_eth *eth = (const struct urn_eth *)f;
	const struct urn_ipv4 *ip = (const struct urn_ipv4 *)(f + OFF_L3);
	const struct icmp *icmp = (const struct icmp *)(f + OFF_V4);

	if (len < OFF_V4 + sizeof(*icmp) || plain_csum(icmp, len - OFF_V4) != 0)
		return URN_C_DROP_NEIGH;
	if (icmp->type != ECHO_REQUEST)
		return URN_C_DROP_NOT_ROCE;
	if (icmp->code != 0 || !urn_l3_mac_ok(eth->src) || !v4_host(ip->src))
		return URN_C_DROP_NEIGH;
	msg->kind = URN_L3_ECHO;
	msg->has_src = 1;
	urn_l3_gid_v4(msg->src, ip->src);
	urn_l3_gid_v4(msg->dst, ip->dst);
	return URN_C_ECHO_RX;
}

/* Walk the options; note the MAC of the option of `type`. returns 0: malformed */
static int
read_options(const uint8_t *opt, uint32_t left, uint8_t type, struct urn_l3_msg *msg)
{
	while (left != 0) {
		uint32_t size = left >= 2 ? opt[1] * 8u : 0;

		if (size == 0 || size > left)
			return 0;
		if (opt[0] == type) {
			if (size != 8 || !urn_l3_mac_ok(opt + 2))
				return 0;
			memcpy(msg->mac, opt + 2, 6);
			msg->has_mac = 1;
		}
		opt += size;
		left -= size;
	}
	return 1;
}

/* Rules of RFC 4861, 7.1.1: a sender without an address does DAD. */
static int
solicit_ok(const struct urn_ipv6 *ip, const struct urn_l3_msg *msg)
{
	uint8_t group[16];

	if (msg->has_src)
		return v6_host(ip->src);
	urn_l3_solicited_node(group, msg->target);
	return !msg->has_mac && memcmp(ip->dst, group, 16) == 0;
}

/* Rules of RFC 4861, 7.1.2. */
static int
advert_ok(const struct urn_ipv6 *ip, const struct urn_l3_msg *msg)
{
	return v6_host(ip->src) && !(ip->dst[0] == 0xff && msg->solicited);
}

static enum urn_counter
read_nd(const uint8_t *f, uint32_t len, struct urn_l3_msg *msg)
{
	const struct urn_eth *eth = (const struct urn_eth *)f;
	const struct urn_ipv6 *ip = (const struct urn_ipv6 *)(f + OFF_L3);
	const struct nd *nd = (const struct nd *)(f + OFF_V6);
	int advert = nd->icmp.type == ND_ADVERT;
	uint32_t flags;

	if (len < OFF_V6 + ND_FIXED || ip->hop != ND_HOPS || nd->icmp.code != 0 ||
	    !v6_host(nd->target) || !urn_l3_mac_ok(eth->src))
		return URN_C_DROP_NEIGH;
	flags = rte_be_to_cpu_32(nd->icmp.rest);
	msg->kind = advert ? URN_L3_ADVERT : URN_L3_SOLICIT;
	msg->solicited = advert && (flags & NA_SOLICITED);
	msg->override = advert && (flags & NA_OVERRIDE);
	msg->has_src = memcmp(ip->src, zero16, 16) != 0;
	memcpy(msg->src, ip->src, 16);
	memcpy(msg->dst, ip->dst, 16);
	memcpy(msg->target, nd->target, 16);
	if (!read_options(f + OFF_V6 + ND_FIXED, len - OFF_V6 - ND_FIXED,
			  advert ? OPT_TARGET_MAC : OPT_SOURCE_MAC, msg))
		return URN_C_DROP_NEIGH;
	if (advert ? !advert_ok(ip, msg) : !solicit_ok(ip, msg))
		return URN_C_DROP_NEIGH;
	return URN_C_ND_RX;
}

static enum urn_counter
read_echo6(const uint8_t *f, struct urn_l3_msg *msg)
{
	const struct urn_eth *eth = (const struct urn_eth *)f;
	const struct urn_ipv6 *ip = (const struct urn_ipv6 *)(f + OFF_L3);
	const struct icmp *icmp = (const struct icmp *)(f + OFF_V6);

	if (icmp->code != 0 || !urn_l3_mac_ok(eth->src) || !v6_host(ip->src))
		return URN_C_DROP_NEIGH;
	msg->kind = URN_L3_ECHO;
	msg->has_src = 1;
	memcpy(msg->src, ip->src, 16);
	memcpy(msg->dst, ip->dst, 16);
	return URN_C_ECHO_RX;
}

static enum urn_counter
read_icmp6(const uint8_t *f, uint32_t len, struct urn_l3_msg *msg)
{
	const struct urn_ipv6 *ip = (const struct urn_ipv6 *)(f + OFF_L3);
	const struct icmp *icmp = (const struct icmp *)(f + OFF_V6);

	if (len < OFF_V6 + sizeof(*icmp) || urn_l3_icmp6_csum(ip, icmp, len - OFF_V6) != 0)
		return URN_C_DROP_NEIGH;
	switch (icmp->type) {
	case ND_SOLICIT:
	case ND_ADVERT:
		return read_nd(f, len, msg);
	case ECHO6_REQUEST:
		return read_echo6(f, msg);
	default:
		return URN_C_DROP_NOT_ROCE;
	}
}

enum urn_counter
urn_l3_read(const struct rte_mbuf *m, struct urn_l3_msg *msg)
{
	const struct urn_pkt *p = (const struct urn_pkt *)(m + 1);
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(m);

	memset(msg, 0, sizeof(*msg));
	switch (p->kind) {
	case URN_FRAME_ARP:
		return read_arp(f, len, msg);
	case URN_FRAME_ICMP:
		return read_icmp(f, len, msg);
	case URN_FRAME_ICMP6:
		return read_icmp6(f, len, msg);
	default:
		return URN_C_DROP_NOT_ROCE;
	}
}

/* ---- building */

static void
set_len(struct rte_mbuf *m, uint32_t len)
{
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
}

static void
put_eth(uint8_t *f, const uint8_t dst[6], const uint8_t src[6], uint16_t type)
{
	struct urn_eth *eth = (struct urn_eth *)f;

	memmove(eth->dst, dst, 6); /* dst may be this header's own src */
	memcpy(eth->src, src, 6);
	eth->type = rte_cpu_to_be_16(type);
}

/* Write an ARP frame; tha NULL: not known, the frame goes to everybody. */
static void
put_arp(struct rte_mbuf *m, uint16_t op, const uint8_t mac[6], const uint8_t spa[4],
	const uint8_t *tha, const uint8_t tpa[4])
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	struct arp *arp = (struct arp *)(f + OFF_L3);

	put_eth(f, tha != NULL ? tha : broadcast, mac, RTE_ETHER_TYPE_ARP);
	arp->htype = RTE_BE16(1);
	arp->ptype = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	arp->hlen = 6;
	arp->plen = 4;
	arp->op = rte_cpu_to_be_16(op);
	memcpy(arp->sha, mac, 6);
	memcpy(arp->spa, spa, 4);
	memcpy(arp->tha, tha != NULL ? tha : zero16, 6);
	memcpy(arp->tpa, tpa, 4);
	set_len(m, OFF_L3 + sizeof(*arp));
}

/* Fields of a neighbour discovery message that we send. */
struct nd_out {
	uint8_t type;
	uint32_t flags;
	const uint8_t *mac;    /* the adapter's */
	const uint8_t *src, *target;
	const uint8_t *dst_mac, *dst;
};

static void
put_nd(struct rte_mbuf *m, const struct nd_out *o)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	struct urn_ipv6 *ip = (struct urn_ipv6 *)(f + OFF_L3);
	struct nd *nd = (struct nd *)(f + OFF_V6);

	put_eth(f, o->dst_mac, o->mac, RTE_ETHER_TYPE_IPV6);
	ip->ver_tc_flow = RTE_BE32(6u << 28);
	ip->len = RTE_BE16(sizeof(*nd));
	ip->next = IPPROTO_ICMPV6;
	ip->hop = ND_HOPS;
	memcpy(ip->src, o->src, 16);
	memcpy(ip->dst, o->dst, 16);
	nd->icmp.type = o->type;
	nd->icmp.code = 0;
	nd->icmp.csum = 0;
	nd->icmp.rest = rte_cpu_to_be_32(o->flags);
	memcpy(nd->target, o->target, 16);
	nd->opt_type = o->type == ND_ADVERT ? OPT_TARGET_MAC : OPT_SOURCE_MAC;
	nd->opt_len = 1;
	memcpy(nd->opt_mac, o->mac, 6);
	nd->icmp.csum = urn_l3_icmp6_csum(ip, nd, sizeof(*nd));
	set_len(m, OFF_V6 + sizeof(*nd));
}

/* The sender of a DAD probe has no address yet: all nodes are told instead. */
static int
reply_solicit(struct rte_mbuf *m, const struct urn_l3_msg *msg, const uint8_t mac[6])
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);
	uint8_t dst_mac[6];
	struct nd_out o = {
		.type = ND_ADVERT,
		.flags = NA_OVERRIDE | (msg->has_src ? NA_SOLICITED : 0),
		.mac = mac,
		.src = msg->target,
		.target = msg->target,
		.dst_mac = dst_mac,
		.dst = msg->has_src ? msg->src : all_nodes,
	};

	/* A solicitation without its MAC option is shorter than the reply. */
	if (m->buf_len - m->data_off < (int)(OFF_V6 + sizeof(struct nd)))
		return 0;
	if (!msg->has_src)
		urn_gid_multicast_mac(dst_mac, all_nodes);
	else
		memcpy(dst_mac, msg->has_mac ? msg->mac : eth->src, 6);
	put_nd(m, &o);
	return 1;
}

/* Send the same data back; only the type changes, so the ICMP checksum changes by a difference (RFC 1624). */
static void
reply_echo(uint8_t *f, const uint8_t mac[6])
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)(f + OFF_L3);
	struct icmp *icmp = (struct icmp *)(f + OFF_V4);
	uint32_t sum = (uint16_t)~icmp->csum;
	uint8_t src[4];

	put_eth(f, ((struct urn_eth *)f)->src, mac, RTE_ETHER_TYPE_IPV4);
	memcpy(src, ip->src, 4);
	memcpy(ip->src, ip->dst, 4);
	memcpy(ip->dst, src, 4);
	ip->ttl = TTL;
	ip->csum = 0;
	ip->csum = plain_csum(ip, sizeof(*ip));
	icmp->type = ECHO_REPLY;
	sum += (uint16_t)~RTE_BE16(ECHO_REQUEST << 8);
	sum = (sum & 0xffff) + (sum >> 16);
	icmp->csum = (uint16_t)~sum;
}

static void
reply_echo6(uint8_t *f, uint32_t len, const uint8_t mac[6])
{
	struct urn_ipv6 *ip = (struct urn_ipv6 *)(f + OFF_L3);
	struct icmp *icmp = (struct icmp *)(f + OFF_V6);
	uint8_t src[16];

	put_eth(f, ((struct urn_eth *)f)->src, mac, RTE_ETHER_TYPE_IPV6);
	memcpy(src, ip->src, 16);
	memcpy(ip->src, ip->dst, 16);
	memcpy(ip->dst, src, 16);
	ip->hop = TTL;
	icmp->type = ECHO6_REPLY;
	icmp->csum = 0;
	icmp->csum = urn_l3_icmp6_csum(ip, icmp, len - OFF_V6);
}

int
urn_l3_reply(struct rte_mbuf *m, const struct urn_l3_msg *msg, const uint8_t mac[6])
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	switch (msg->kind) {
	case URN_L3_ARP_REQUEST:
		/* A probe is answered like any request; its sender's address is 0. */
		put_arp(m, ARP_REPLY, mac, msg->target + 12, msg->mac,
			msg->has_src ? msg->src + 12 : zero16);
		return 1;
	case URN_L3_SOLICIT:
		return reply_solicit(m, msg, mac);
	case URN_L3_ECHO:
		if (urn_gid_is_v4(msg->dst))
			reply_echo(f, mac);
		else
			reply_echo6(f, rte_pktmbuf_data_len(m), mac);
		return 1;
	default:
		return 0;
	}
}

void
urn_l3_request(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t src[16],
	       const uint8_t target[16], const uint8_t *holder)
{
	uint8_t group[16], dst_mac[6];
	struct nd_out o = { .type = ND_SOLICIT, .mac = mac, .src = src, .target = target,
			    .dst_mac = holder != NULL ? holder : dst_mac,
			    .dst = holder != NULL ? target : group };

	if (urn_gid_is_v4(target)) {
		put_arp(m, ARP_REQUEST, mac, src + 12, holder, target + 12);
		return;
	}
	urn_l3_solicited_node(group, target);
	urn_gid_multicast_mac(dst_mac, group);
	put_nd(m, &o);
}

void
urn_l3_announcement(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t own[16])
{
	uint8_t dst_mac[6];
	struct nd_out o = { .type = ND_ADVERT, .flags = NA_OVERRIDE, .mac = mac, .src = own,
			    .target = own, .dst_mac = dst_mac, .dst = all_nodes };

	if (urn_gid_is_v4(own)) {
		put_arp(m, ARP_REQUEST, mac, own + 12, NULL, own + 12);
		return;
	}
	urn_gid_multicast_mac(dst_mac, all_nodes);
	put_nd(m, &o);
}
