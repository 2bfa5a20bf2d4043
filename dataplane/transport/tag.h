/* SPDX-License-Identifier: BSD-3-Clause */
/* Tags of virtual LANs on an adapter's frames (IEEE 802.1Q, wire/vlan.h). (tag.c) */
#ifndef URN_TRANSPORT_TAG_H
#define URN_TRANSPORT_TAG_H

#include "transport/tp.h"

/*
 * Put a tag into the frames in tp->tx that have none yet. A frame without room for it is dropped
 * and counted (drop_tx). tci: the tag, host order
 */
void urn_tp_tag(struct urn_tp *tp, uint16_t tci);
/*
 * Take the tag off the n frames in m, which a port gave, and drop those of another VLAN than tci's,
 * or of none, counted (drop_vlan). returns: number of frames that are left, at the begin of m
 */
unsigned int urn_tp_untag(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, uint16_t tci);

#endif
