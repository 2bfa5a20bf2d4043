/* SPDX-License-Identifier: BSD-3-Clause */
/* The tag that an adapter's frames have on the wire (IEEE 802.1Q). */
#ifndef URN_ENGINE_VLAN_H
#define URN_ENGINE_VLAN_H

#include <stdbool.h>
#include <stdint.h>

#define URN_TAG_VLAN_MAX 4094u /* largest number of a VLAN; 4095 is reserved */

/* All zero: no tag. Set when the shard is made. */
struct urn_tag {
	bool send; /* frames are sent with the tag */
	bool only; /* frames of the tag's VLAN alone are taken; false: those of none, and those with
		    * a priority only */
	uint16_t tci; /* the tag, host order: priority, and number of the VLAN; valid with `send` */
};

struct rte_mbuf;
struct urn_shard;

/* The tag of an adapter. vlan: 1 to 4094, 0: none; priority: 0 to 7. */
static inline struct urn_tag
urn_tag_of(uint16_t vlan, uint8_t priority)
{
	return (struct urn_tag){
		.send = vlan || priority,
		.only = vlan != 0,
		.tci = (uint16_t)(priority << 13 | vlan),
	};
}

/* Put the tag into the frames in tp->tx that have none yet. A frame without room for it is dropped
 * and counted (drop_tx). */
void urn_shard_tag(struct urn_shard *s);
/*
 * Take the tag off the n frames in m, which a port gave, and drop those of another VLAN or none,
 * counted (drop_vlan). returns: number of frames that are left, at the begin of m
 */
unsigned int urn_shard_untag(struct urn_shard *s, struct rte_mbuf **m, unsigned int n);

#endif
