/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of atomics that a queue pair's peer had the dataplane carry out (lib/abi/queue.h). */
#include "verbs/adapter/adapter.h"

const struct urn_abi_atomic *
urn_adapter_atomics(struct ibv_qp *ibqp, uint32_t *entries)
{
	const struct urn_adapter_qp *qp = urn_qp(ibqp);
	const struct urn_abi_wq *hdr = qp->taken != NULL ? qp->taken : qp->rq.hdr;
	uint32_t n = atomic_load_explicit(&hdr->atomics, memory_order_acquire);
	uint64_t off = hdr->atomics_off, size = qp->dev->info.area_size;

	*entries = 0;
	if (!urn_dev_has(qp->dev, URN_ABI_FEATURE_ATOMICS) || n == 0)
		return NULL;
	/* The header is in memory of the program, which may have written there. */
	if ((n & (n - 1)) != 0 || n > URN_ABI_MAX_RD_ATOMIC || off % 8 != 0 || off > size ||
	    size - off < n * sizeof(struct urn_abi_atomic))
		return NULL;
	*entries = n;
	return urn_dev_at(qp->dev, off);
}
