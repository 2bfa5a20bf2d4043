/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension headers of requests, written into frames. */
#ifndef URN_TRANSPORT_PUT_EXT_H
#define URN_TRANSPORT_PUT_EXT_H

#include "transport/work.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#include <string.h>

#include <rte_byteorder.h>

static inline void
urn_put_reth(uint8_t *at, const struct urn_work *w, uint64_t va, uint32_t length)
{
	struct urn_reth r = {
		.va = rte_cpu_to_be_64(va),
		.rkey = rte_cpu_to_be_32(w->rkey),
		.length = rte_cpu_to_be_32(length),
	};

	memcpy(at, &r, sizeof(r));
}

static inline void
urn_put_ieth(uint8_t *ext, uint32_t rkey)
{
	rte_be32_t v = rte_cpu_to_be_32(rkey);

	memcpy(ext, &v, sizeof(v)); /* headers on the wire are not aligned */
}

/* Write the extension headers that the opcode has, behind the BTH. */
static inline void
urn_put_extensions(uint8_t *bth, const struct urn_opcode *op, const struct urn_work *w)
{
	if (op->off[URN_EXT_RETH])
		urn_put_reth(bth + op->off[URN_EXT_RETH], w, w->remote_addr,
			     w->length - (w->piece == URN_PIECE_TWO ? w->skip : 0));
	if (op->off[URN_EXT_IMM])
		memcpy(bth + op->off[URN_EXT_IMM], &w->imm, 4);
	if (op->off[URN_EXT_IETH])
		urn_put_ieth(bth + op->off[URN_EXT_IETH], w->imm);
}

#endif
