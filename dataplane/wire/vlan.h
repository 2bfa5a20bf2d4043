/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tag of a virtual LAN (IEEE 802.1Q, 9.6) in a frame: between the addresses and the type,
 * 0x8100, three bits of priority, one that means "may be dropped", and twelve of the VLAN's number,
 * of which 0 means none: a frame that has a priority only.
 */
#ifndef URN_WIRE_VLAN_H
#define URN_WIRE_VLAN_H

#include "wire/hdr.h"

#include <stdbool.h>

#include <rte_mbuf.h>

enum {
	URN_VLAN_BYTES = 4,
	URN_VLAN_AT = 12,     /* offset of the tag in a frame */
	URN_VLAN_VID = 0xfff, /* mask of the VLAN's number in a tag */
};

/* True when the frame has a tag, and a type behind it. */
static inline bool
urn_vlan_has(const struct rte_mbuf *m)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);

	return m->data_len >= URN_ETH_BYTES + URN_VLAN_BYTES && eth->type == RTE_BE16(0x8100);
}

/* Number of the VLAN in a frame that has a tag. */
static inline unsigned int
urn_vlan_vid(const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	return (f[URN_VLAN_AT + 2] << 8 | f[URN_VLAN_AT + 3]) & URN_VLAN_VID;
}

/* Take the tag off a frame that has one, in place. */
static inline void
urn_vlan_pop(struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(f + URN_VLAN_BYTES, f, URN_VLAN_AT);
	rte_pktmbuf_adj(m, URN_VLAN_BYTES);
}

/* Put a tag into a frame, in place. tci: priority and number. returns: false: the mbuf has no room
 * before the frame, which stays as it is */
static inline bool
urn_vlan_push(struct rte_mbuf *m, uint16_t tci)
{
	uint8_t *f = (uint8_t *)rte_pktmbuf_prepend(m, URN_VLAN_BYTES);

	if (f == NULL)
		return false;
	memmove(f, f + URN_VLAN_BYTES, URN_VLAN_AT);
	f[URN_VLAN_AT] = 0x81;
	f[URN_VLAN_AT + 1] = 0x00;
	f[URN_VLAN_AT + 2] = (uint8_t)(tci >> 8);
	f[URN_VLAN_AT + 3] = (uint8_t)tci;
	return true;
}

#endif
