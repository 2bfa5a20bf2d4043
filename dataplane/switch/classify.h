/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Priority of a frame, 0 to 7: a frame with a VLAN tag has that of the tag's priority code point
 * (IEEE 802.1Q 6.9.3), another IPv4 or IPv6 frame that of its DSCP (RFC 2474), and all others have
 * the map's own. Each is looked up in a map, which the configuration can change. Reads the headers
 * only, in constant time; a frame that is too short for a header counts as having none.
 */
#ifndef URN_SWITCH_CLASSIFY_H
#define URN_SWITCH_CLASSIFY_H

#include <stdint.h>

#include <rte_mbuf.h>

#define URN_DSCPS 64u /* values of a DSCP */
#define URN_PCPS 8u   /* values of a priority code point */

/* Priorities by header field; each is below 8. */
struct urn_classify_map {
	uint8_t pcp[URN_PCPS];	 /* by priority code point of the outer tag */
	uint8_t dscp[URN_DSCPS]; /* by DSCP of an untagged IPv4 or IPv6 frame */
	uint8_t other;		 /* all other frames: ARP, for example */
};

/*
 * Set the usual map: a code point is its own priority, a DSCP has that of its class selector, which
 * is its upper three bits (RFC 2474, 4.2.2), and other frames have priority 0.
 */
void urn_classify_preset(struct urn_classify_map *map);

/* The priority of a frame of whose first segment at least 14 bytes are there; below 8. */
static inline unsigned int
urn_classify(const struct urn_classify_map *map, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned int type = (unsigned int)f[12] << 8 | f[13], len = m->data_len;

	if (type == 0x8100 || type == 0x88a8)
		return len >= 16 ? map->pcp[f[14] >> 5] : map->other;
	if (len < 16)
		return map->other;
	if (type == 0x0800)
		return map->dscp[f[15] >> 2];
	/* The traffic class lies across two bytes; the DSCP is its upper six bits. */
	if (type == 0x86dd)
		return map->dscp[(f[14] & 0xfu) << 2 | f[15] >> 6];
	return map->other;
}

#endif
