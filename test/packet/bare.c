/* SPDX-License-Identifier: BSD-3-Clause */
#include "bare.h"

#include <stdlib.h>
#include <string.h>

enum { POLLS = 100000 }; /* polls of memory until a QP counts as stuck */

struct urn_abi_wq *
bare_wq(uint32_t entries, uint32_t stride)
{
	return calloc(1, URN_ABI_WQ_SLOTS + (size_t)entries * stride);
}

struct urn_sq
bare_sq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges, uint32_t inl)
{
	return (struct urn_sq){
		.hdr = wq,
		.mask = entries - 1,
		.stride = (uint16_t)urn_abi_sq_stride(sges, inl),
		.max_sge = (uint8_t)sges,
		.max_inline = (uint16_t)inl,
	};
}

struct urn_rq
bare_rq(struct urn_abi_wq *wq, uint32_t entries, uint32_t sges)
{
	return (struct urn_rq){
		.hdr = wq,
		.mask = (uint16_t)(entries - 1),
		.stride = (uint16_t)urn_abi_rq_stride(sges),
		.max_sge = (uint8_t)sges,
	};
}

bool
bare_cq(struct urn_cq *cq, uint32_t entries)
{
	cq->hdr = calloc(1, URN_ABI_CQ_SLOTS + (size_t)entries * sizeof(struct urn_abi_cqe));
	cq->mask = entries - 1;
	cq->channel_fd = -1;
	return cq->hdr != NULL;
}

void
bare_ah(struct urn_ah *ah, const struct frame_addr *from, const struct frame_addr *to, uint32_t pd)
{
	struct urn_path path = {.sport = 0xd000, .ttl = 64};

	memcpy(path.smac, from->mac, 6);
	memcpy(path.dmac, to->mac, 6);
	memcpy(path.sgid, from->gid, 16);
	memcpy(path.dgid, to->gid, 16);
	urn_tmpl_init(&ah->tmpl, &path);
	memcpy(ah->av.dgid, to->gid, 16);
	ah->pd = pd;
	ah->ready = true;
	ah->mac_until = UINT64_MAX;
}

uint32_t
bare_qp_mask(uint8_t type, uint8_t state)
{
	static const uint32_t mask[3][URN_QPS_RTS + 1] = {
		{[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
		 [URN_QPS_RTR] = URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN |
				 URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_MIN_RNR_TIMER,
		 [URN_QPS_RTS] = URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
				 URN_QPM_SQ_PSN | URN_QPM_MAX_RD_ATOMIC},
		{[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY,
		 [URN_QPS_RTS] = URN_QPM_SQ_PSN},
		{[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
		 [URN_QPS_RTR] = URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN,
		 [URN_QPS_RTS] = URN_QPM_SQ_PSN},
	};
	unsigned int row = type == URN_QPT_UD ? 1 : type == URN_QPT_UC ? 2 : 0;

	return state <= URN_QPS_RTS ? mask[row][state] : 0;
}

bool
bare_qp_stop(struct urn_tp *tp, struct urn_qp *qp)
{
	for (int i = 0; i < POLLS; i++) {
		urn_qp_stop(tp, qp);
		if (urn_qp_stopped(qp))
			return true;
		urn_tp_poll_memory(tp);
	}
	return false;
}
