/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which received frames are urnic's, on an interface that the kernel uses as well. One text for
 * the XDP program (xdp_filter.bpf.c, clang's BPF target) and for the dataplane's side of its maps.
 * The classic filter of packet sockets (filter_classic.c) follows the same rules, and a test
 * compares; but it takes a copy of other stations' announcements, too.
 *
 * A frame is urnic's when it is one of these, with the tag of the adapter's VLAN; an adapter
 * without a VLAN has frames without a tag, and those whose tag has a priority alone (VLAN 0):
 *  - ARP whose target is an address of the port's adapter;
 *  - IPv4 without options and fragments, ICMP to such an address or UDP 4791 to such an address
 *    or to a group;
 *  - IPv6 without extension headers, likewise; and neighbour discovery to a group about such an
 *    address;
 *  - MAC control (priority-based flow control), always untagged.
 * All other frames are the kernel's, malformed ones included.
 */
#ifndef URN_PMD_GLUE_FILTER_RULES_H
#define URN_PMD_GLUE_FILTER_RULES_H

#include <linux/types.h>

/* Names of the program's maps: at most 15 bytes. The first one is fixed by DPDK's PMD. */
#define URN_FILTER_MAP_SOCKETS xsks_map
#define URN_FILTER_MAP_ADDRESSES urn_addresses
#define URN_FILTER_MAP_COUNTS urn_counts
#define URN_FILTER_MAP_VLAN urn_vlan

/* Addresses of a port at most: an adapter has three GIDs. */
#define URN_FILTER_ADDRESSES 8
/* Receive queues of a port at most. */
#define URN_FILTER_QUEUES 64

/* Key of the map of addresses: a GID, IPv4 as ::ffff:a.b.c.d, network order. */
struct urn_filter_key {
	__u8 gid[16];
};

/* Value of the map of addresses: urnic's share of an address. */
enum urn_filter_share {
	URN_FILTER_NOTHING, /* no address of the port's */
	URN_FILTER_ROCE,    /* the kernel has the address, too: UDP 4791 alone */
	URN_FILTER_ALL,	    /* urnic's alone: ARP, neighbour discovery and ICMP as well */
};

/* Entries of the map of counts; frames. */
enum urn_filter_count {
	URN_FILTER_TAKEN,  /* handed to urnic */
	URN_FILTER_PASSED, /* left to the kernel */
	URN_FILTER_MISSED, /* urnic's, but on a queue that the port does not have */
	URN_FILTER_COUNTS
};

#define URN_FILTER_UDP_PORT 4791
#define URN_FILTER_INLINE static inline __attribute__((always_inline))

/* Look an address up. ctx: the caller's; returns: enum urn_filter_share */
typedef __u32 urn_filter_look(const void *ctx, const struct urn_filter_key *key);

URN_FILTER_INLINE void
urn_filter_key_v4(struct urn_filter_key *key, const __u8 *ip)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->gid[10] = 0xff;
	key->gid[11] = 0xff;
	__builtin_memcpy(key->gid + 12, ip, 4);
}

/* True when a whole UDP header is there, with RoCEv2's port. */
URN_FILTER_INLINE int
urn_filter_udp(const __u8 *udp, const __u8 *end)
{
	return udp + 8 <= end && udp[2] == (URN_FILTER_UDP_PORT >> 8) &&
	       udp[3] == (URN_FILTER_UDP_PORT & 0xff);
}

/* arp: behind the Ethernet header. RFC 826: the target's protocol address is at 24. */
URN_FILTER_INLINE int
urn_filter_arp(const __u8 *arp, const __u8 *end, urn_filter_look *look, const void *ctx)
{
	struct urn_filter_key key;

	if (arp + 28 > end)
		return 0;
	urn_filter_key_v4(&key, arp + 24);
	return look(ctx, &key) == URN_FILTER_ALL;
}

URN_FILTER_INLINE int
urn_filter_ipv4(const __u8 *ip, const __u8 *end, urn_filter_look *look, const void *ctx)
{
	struct urn_filter_key key;

	/* Version 4 with a header of 20 bytes; no fragment: neither MF nor an offset. */
	if (ip + 20 > end || ip[0] != 0x45 || (ip[6] & 0x3f) != 0 || ip[7] != 0)
		return 0;
	urn_filter_key_v4(&key, ip + 16);
	if (ip[9] == 1) /* ICMP */
		return look(ctx, &key) == URN_FILTER_ALL;
	if (ip[9] != 17 || !urn_filter_udp(ip + 20, end))
		return 0;
	return (ip[16] & 0xf0) == 0xe0 || look(ctx, &key) != URN_FILTER_NOTHING;
}

/* icmp: behind the IPv6 header. RFC 4861: the target of a solicitation or advertisement is at 8. */
URN_FILTER_INLINE int
urn_filter_nd(const __u8 *icmp, const __u8 *end, urn_filter_look *look, const void *ctx)
{
	struct urn_filter_key key;

	if (icmp + 24 > end || (icmp[0] != 135 && icmp[0] != 136))
		return 0;
	__builtin_memcpy(key.gid, icmp + 8, 16);
	return look(ctx, &key) == URN_FILTER_ALL;
}

URN_FILTER_INLINE int
urn_filter_ipv6(const __u8 *ip, const __u8 *end, urn_filter_look *look, const void *ctx)
{
	struct urn_filter_key key;
	int group;

	if (ip + 40 > end || (ip[0] & 0xf0) != 0x60)
		return 0;
	group = ip[24] == 0xff;
	__builtin_memcpy(key.gid, ip + 24, 16);
	if (ip[6] == 58) /* ICMPv6 */
		return group ? urn_filter_nd(ip + 40, end, look, ctx)
			     : look(ctx, &key) == URN_FILTER_ALL;
	if (ip[6] != 17 || !urn_filter_udp(ip + 40, end))
		return 0;
	return group || look(ctx, &key) != URN_FILTER_NOTHING;
}

/* type: Ethernet's, two bytes; the header that it names is behind them. */
URN_FILTER_INLINE int
urn_filter_type(const __u8 *type, const __u8 *end, urn_filter_look *look, const void *ctx)
{
	switch (type[0] << 8 | type[1]) {
	case 0x0800:
		return urn_filter_ipv4(type + 2, end, look, ctx);
	case 0x86dd:
		return urn_filter_ipv6(type + 2, end, look, ctx);
	case 0x0806:
		return urn_filter_arp(type + 2, end, look, ctx);
	default:
		return 0;
	}
}

/*
 * True when a frame is urnic's. vlan: the adapter's, 0: none. Reads only between `frame` and `end`.
 */
URN_FILTER_INLINE int
urn_filter_ours(const __u8 *frame, const __u8 *end, __u32 vlan, urn_filter_look *look,
		const void *ctx)
{
	if (frame + 14 > end)
		return 0;
	if (frame[12] == 0x88 && frame[13] == 0x08)
		return 1;
	/* IEEE 802.1Q, 9.6: the tag is before the type, and the VLAN's number its last 12 bits. */
	if (frame[12] == 0x81 && frame[13] == 0x00)
		return frame + 18 <= end && ((frame[14] & 0x0fu) << 8 | frame[15]) == vlan &&
		       urn_filter_type(frame + 16, end, look, ctx);
	return vlan == 0 && urn_filter_type(frame + 12, end, look, ctx);
}

#endif
