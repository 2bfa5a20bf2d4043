/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Support for a transport without adapter, engine and client, for tests that play
 * all three: queues, address handles, a QP's steps up and down.
 * Nothing here fails a test; the caller does, with a message of its own.
 */
#ifndef URN_TEST_BARE_H
#define URN_TEST_BARE_H

#include "frame.h"
#include "transport/tp.h"

/* The memory of a work queue, all zero; free() it. entries: a power of 2. NULL: no memory */
struct urn_abi_wq *bare_wq(uint32_t entries, uint32_t stride);
/* A send queue in that memory, for a QP; its stride is urn_abi_sq_stride(sges, inl). */
struct urn_sq bare_sq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges, uint32_t inl);
/* A receive queue in that memory, for a QP or SRQ; its stride is urn_abi_rq_stride(sges). */
struct urn_rq bare_rq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges);
/* Slot of a work queue by number; `at` counts on without end. */
static inline void *
bare_slot(struct urn_abi_wq *wq, uint32_t at, uint32_t entries, uint32_t stride)
{
	return (uint8_t *)wq + URN_ABI_WQ_SLOTS + (size_t)(at & (entries - 1)) * stride;
}

/* Give an all-zero completion queue its memory; free() its hdr. returns: false without memory */
bool bare_cq(struct urn_cq *cq, uint32_t entries);
/* An all-zero address handle, from one end of the wire to the other; its MAC is known. */
void bare_ah(struct urn_ah *ah, const struct frame_addr *from, const struct frame_addr *to,
	     uint32_t pd);

/* The attributes (URN_QPM_) that a QP's step to INIT, RTR or RTS needs. type: URN_QPT_ */
uint32_t bare_qp_mask(uint8_t type, uint8_t state);
/* Stop a QP and wait for its memory operations. returns: false when they do not end */
bool bare_qp_stop(struct urn_tp *tp, struct urn_qp *qp);

#endif
