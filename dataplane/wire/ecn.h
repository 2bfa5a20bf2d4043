/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explicit congestion notification in the IP header of a frame (RFC 3168, section 5): a sender says
 * that its transport obeys marks, and a switch with a long queue marks instead of dropping. The ICRC
 * does not cover these bits.
 */
#ifndef URN_WIRE_ECN_H
#define URN_WIRE_ECN_H

#include "wire/hdr.h"

#include <stdbool.h>
#include <stddef.h>

/* Codepoints, the low two bits of the traffic class. */
enum urn_ecn {
	URN_ECN_NONE = 0, /* the transport does not obey marks */
	URN_ECN_ECT1 = 1,
	URN_ECN_ECT0 = 2, /* the transport obeys marks */
	URN_ECN_CE = 3,   /* a queue on the way was long */
	URN_ECN_MASK = 3,
};

#define URN_ECN_TAGS 2 /* VLAN tags of a frame that are looked behind (IEEE 802.1Q, 802.1ad) */

/* Codepoint of an IP header. l3: first byte of the IPv4 or IPv6 header, two bytes readable */
static inline unsigned int
urn_ecn_get(const uint8_t *l3, bool ipv6)
{
	return (ipv6 ? l3[1] >> 4 : l3[1]) & URN_ECN_MASK;
}

/*
 * Mark an IP header, whose sender obeys marks, with CE. The checksum of IPv4 stays right (RFC 1624,
 * equation 3). l3: first byte of the header, which is whole
 */
static inline void
urn_ecn_set_ce(uint8_t *l3, bool ipv6)
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)l3;
	uint32_t sum;

	if (ipv6) {
		l3[1] |= URN_ECN_CE << 4;
		return;
	}
	sum = (uint16_t)~rte_be_to_cpu_16(ip->csum) + (URN_ECN_CE - (uint32_t)(ip->tos & URN_ECN_MASK));
	ip->tos |= URN_ECN_CE;
	ip->csum = rte_cpu_to_be_16((uint16_t)~((sum & 0xffff) + (sum >> 16)));
}

/*
 * Mark a frame if its sender obeys marks. frame, len: Ethernet header and what follows, at most
 * URN_ECN_TAGS VLAN tags; any bytes will do
 * returns: true when the frame has the mark now; false: not IP, too short, or a sender that does
 * not obey marks
 */
static inline bool
urn_ecn_mark(uint8_t *frame, uint32_t len)
{
	uint32_t off = offsetof(struct urn_eth, type) + 2;
	uint16_t type;
	bool ipv6;

	if (len < off)
		return false;
	memcpy(&type, frame + off - 2, 2);
	for (int i = 0; i < URN_ECN_TAGS && len >= off + 4; i++) {
		if (type != RTE_BE16(0x8100) && type != RTE_BE16(0x88a8))
			break;
		off += 4;
		memcpy(&type, frame + off - 2, 2);
	}
	ipv6 = type == RTE_BE16(0x86dd);
	if ((!ipv6 && type != RTE_BE16(0x0800)) ||
	    len < off + (ipv6 ? sizeof(struct urn_ipv6) : sizeof(struct urn_ipv4)) ||
	    frame[off] >> 4 != (ipv6 ? 6 : 4) || urn_ecn_get(frame + off, ipv6) == URN_ECN_NONE)
		return false;
	urn_ecn_set_ce(frame + off, ipv6);
	return true;
}

#endif
