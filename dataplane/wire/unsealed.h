/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unsealed frames: all of a frame but its ICRC, whose four bytes mean nothing. A sender makes them
 * for a receiver in the same thread, who would check with the same core, out of the same memory,
 * what that core has just computed. Such a frame is sealed before anybody else sees it.
 */
#ifndef URN_WIRE_UNSEALED_H
#define URN_WIRE_UNSEALED_H

#include <stdint.h>

#include <rte_mbuf.h>

/*
 * The mark of unsealed frames, a bit of rte_mbuf.ol_flags, the same in each call. Not for the fast
 * path. returns: 0: DPDK has no bit left
 */
uint64_t urn_unsealed_bit(void);

/*
 * Write the ICRC of an unsealed frame, which may have a VLAN tag, and take the mark off; any other
 * frame stays as it is. m: one segment, of a sender of this process
 */
void urn_wire_seal(struct rte_mbuf *m);

#endif
