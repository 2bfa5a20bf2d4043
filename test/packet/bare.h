/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a transport wants that has no adapter, engine or client around it, for
 * tests that are all three: queues, address handles, a QP's way up and down.
 * Nothing here fails a test; that is the caller's, who knows what to say.
 */
#ifndef URN_TEST_BARE_H
#define URN_TEST_BARE_H

#include "frame.h"
#include "transport/tp.h"

/* The memory of a work queue, all zero; free() it. entries: a power of 2. NULL: no memory */
struct urn_abi_wq *bare_wq(uint32_t entries, uint32_t stride);
/* Such a queue, as a QP wants to have it; its stride is urn_abi_sq_stride(sges, inl). */
struct urn_sq bare_sq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges, uint32_t inl);
/* The same for a QP or SRQ; its stride is urn_abi_rq_stride(sges). */
struct urn_rq bare_rq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges);
/* Slot number `at`, counted on and on, of a work queue. */
static inline void *
bare_slot(struct urn_abi_wq *wq, uint32_t at, uint32_t entries, uint32_t stride)
{
	return (uint8_t *)wq + URN_ABI_WQ_SLOTS + (size_t)(at & (entries - 1)) * stride;
}

/* Give an all-zero completion queue its memory; free() its hdr. returns: false: no memory */
bool bare_cq(struct urn_cq *cq, uint32_t entries);
/* An all-zero address handle, from one end of the wire to the other; its MAC is known. */
void bare_ah(struct urn_ah *ah, const struct frame_addr *from, const struct frame_addr *to,
	     uint32_t pd);

/* The attributes (URN_QPM_) that a QP's step to INIT, RTR or RTS wants. type: URN_QPT_ */
uint32_t bare_qp_mask(uint8_t type, uint8_t state);
/* Stop a QP and wait for its memory. returns: false: that does not come to an end */
bool bare_qp_stop(struct urn_tp *tp, struct urn_qp *qp);

#endif
