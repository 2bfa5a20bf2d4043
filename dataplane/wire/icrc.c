/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The masked fields are overwritten in place, one CRC call runs over the whole
 * packet, and they are put back: cheaper than a masked copy of the headers and
 * a second call, because a call costs as much as 64 bytes do.
 */
#include "wire/icrc.h"
#include "wire/hdr.h"

#include <isa-l/crc.h>

/* From the IP header to the BTH, as they lie in a frame. */
struct l3_v4 {
	struct urn_ipv4 ip;
	struct urn_udp udp;
	struct urn_bth bth;
} __attribute__((packed));

struct l3_v6 {
	struct urn_ipv6 ip;
	struct urn_udp udp;
	struct urn_bth bth;
} __attribute__((packed));

_Static_assert(sizeof(struct l3_v4) == 40, "IPv4 to BTH");
_Static_assert(sizeof(struct l3_v6) == 60, "IPv6 to BTH");

uint32_t
urn_icrc_masked(const uint8_t *l3, uint32_t len)
{
	/* ISA-L's prototype lacks the const; it only reads. */
	return crc32_gzip_refl(URN_ICRC_SEED, (unsigned char *)(uintptr_t)l3, len);
}

static uint32_t
icrc_v4(struct l3_v4 *h, uint32_t len)
{
	struct l3_v4 keep;
	uint8_t *rsvd = (uint8_t *)&h->bth.dqpn;
	uint32_t crc;

	keep.ip.tos = h->ip.tos;
	keep.ip.ttl = h->ip.ttl;
	keep.ip.csum = h->ip.csum;
	keep.udp.csum = h->udp.csum;
	keep.bth.dqpn = h->bth.dqpn;

	h->ip.tos = 0xff;
	h->ip.ttl = 0xff;
	h->ip.csum = 0xffff;
	h->udp.csum = 0xffff;
	*rsvd = 0xff;

	crc = urn_icrc_masked((const uint8_t *)h, len);

	h->ip.tos = keep.ip.tos;
	h->ip.ttl = keep.ip.ttl;
	h->ip.csum = keep.ip.csum;
	h->udp.csum = keep.udp.csum;
	h->bth.dqpn = keep.bth.dqpn;
	return crc;
}

static uint32_t
icrc_v6(struct l3_v6 *h, uint32_t len)
{
	struct l3_v6 keep;
	uint8_t *rsvd = (uint8_t *)&h->bth.dqpn;
	uint32_t crc;

	keep.ip.ver_tc_flow = h->ip.ver_tc_flow;
	keep.ip.hop = h->ip.hop;
	keep.udp.csum = h->udp.csum;
	keep.bth.dqpn = h->bth.dqpn;

	/* All but the version: traffic class and flow label. */
	h->ip.ver_tc_flow = keep.ip.ver_tc_flow | RTE_BE32(0x0fffffff);
	h->ip.hop = 0xff;
	h->udp.csum = 0xffff;
	*rsvd = 0xff;

	crc = urn_icrc_masked((const uint8_t *)h, len);

	h->ip.ver_tc_flow = keep.ip.ver_tc_flow;
	h->ip.hop = keep.ip.hop;
	h->udp.csum = keep.udp.csum;
	h->bth.dqpn = keep.bth.dqpn;
	return crc;
}

uint32_t
urn_icrc(uint8_t *l3, uint32_t len, int ipv6)
{
	if (ipv6)
		return icrc_v6((struct l3_v6 *)l3, len);
	return icrc_v4((struct l3_v4 *)l3, len);
}
