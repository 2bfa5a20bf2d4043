/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes on the peer's cache lines (AW-3; doc/inside/aligned-writes.md).
 *
 *            line      line      line      line      line
 *   posted     |   [0123|456789..|.........|.....]   |
 *   bulk       |        |[456789..|.........|.....]  |     first message
 *   head       |   [0123]|        |         |        |     second message, completes the request
 *
 * A path MTU is a multiple of every line, so all packets of the bulk start on a line.
 *
 * The reshaping is done when a request is fetched: the request becomes two works, each a plain
 * WRITE with PSNs of its own. So retransmission, selective repeat and refusals need no code of
 * theirs.
 *
 * A peer that is urnic takes both parts as one message, whose last packet has an address of its
 * own, where the head fits behind the end of the bulk (AW-4):
 *
 *   first RETH(line, bulk) | middle ... | last RETH(posted address, head) [end of bulk][head]
 *
 * The other way, one work whose packets go in another order, is no standard WRITE: a peer
 * places the packets of a message one behind the other.
 */
#ifndef URN_TRANSPORT_RESHAPE_H
#define URN_TRANSPORT_RESHAPE_H

#include "transport/tp.h"

#include <stdint.h>

/* Values of urn_qp.align besides log2 of a line of 64, 128 or 256 bytes. */
enum { URN_QP_ALIGN_OFF = 0, URN_QP_ALIGN_PEER = 1 };

/* The line that a peer told, bytes; 0: none that writes can go on (AW-2). */
static inline uint16_t
urn_reshape_line(uint32_t told)
{
	return told == 64 || told == 128 || told == 256 ? (uint16_t)told : 0;
}

/*
 * The bytes that a write of `length` bytes to `addr` leaves to a second message: up to the next
 * line. line: bytes, a power of two; 0: not known. mtu: path MTU, bytes. returns: 0 when the write
 * goes as it is: on a line already, or not more than a line and a packet would remain
 */
static inline uint32_t
urn_reshape_skip(uint64_t addr, uint32_t length, uint32_t line, uint32_t mtu)
{
	uint32_t skip = line ? (uint32_t)(-addr & (line - 1)) : 0;

	if (!skip || length <= skip || addr > UINT64_MAX - length)
		return 0;
	return length - skip >= line && length - skip > mtu ? skip : 0;
}

/*
 * True when the head fits behind the end of the bulk in one packet, and that end is not empty, as a
 * middle packet can't end a message. length, skip: bytes of the write, and of its head
 */
static inline bool
urn_reshape_fits(uint32_t length, uint32_t skip, uint32_t mtu)
{
	return ((length - 1) & (mtu - 1)) + 1 > skip;
}

/*
 * Put a write on the lines that its QP asked for. w: fetched and checked, without PSNs; becomes the
 * bulk, or both parts. returns: the head, to come right behind w; NULL when w is all of the request
 */
struct urn_work *urn_reshape(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w);

#endif
