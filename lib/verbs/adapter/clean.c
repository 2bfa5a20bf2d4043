/* SPDX-License-Identifier: BSD-3-Clause */
/* Removing completions of queue pairs that are gone, and resizing a completion queue. */
#include "verbs/adapter/beside.h"
#include "verbs/adapter/poll.h"

#include <stdlib.h>

/* ---- cleaning */

/*
 * Completions are moved towards the newer end, over those to be removed; each
 * slot keeps its phase. The dataplane writes beyond `end` meanwhile, and writes
 * these slots again only after cons is published.
 */
static void
urn_cq_clean_locked(struct urn_adapter_cq *cq, uint32_t qpn)
{
	uint32_t end = cq->cons, i, to;

	urn_beside_lock(cq);
	/* No message is beside a completion that moves, or goes. */
	while (end - cq->cons < cq->entries && urn_cq_at(cq, end) != NULL)
		urn_beside_take(cq, end++);
	for (i = end, to = end; i != cq->cons;) {
		const struct urn_abi_cqe *from = &cq->cqe[--i & cq->mask];
		struct urn_abi_cqe *slot;

		// NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a mapped queue has slots
		if (from->qp_num == qpn || --to == i)
			continue;
		slot = &cq->cqe[to & cq->mask];
		slot->wr_id = from->wr_id;
		slot->byte_len = from->byte_len;
		slot->imm = from->imm;
		slot->qp_num = from->qp_num;
		slot->src_qp = from->src_qp;
		slot->vendor_err = from->vendor_err;
		slot->wqe = from->wqe;
		slot->status = from->status;
		slot->opcode = from->opcode;
		slot->wc_flags = from->wc_flags;
	}
	cq->cons = to;
	urn_cq_publish(cq);
	urn_beside_unlock(cq);
}

/* Remember a QPN until the resize is done. Without memory the QP's completions stay. */
static void
urn_cq_clean_later(struct urn_adapter_cq *cq, uint32_t qpn)
{
	uint32_t *dead = reallocarray(cq->dead, cq->dead_count + 1, sizeof(*dead));

	if (dead == NULL)
		return;
	dead[cq->dead_count++] = qpn;
	cq->dead = dead;
}

void
urn_cq_clean(struct urn_adapter_cq *cq, uint32_t qpn)
{
	urn_cq_lock(cq);
	if (cq->resizing)
		urn_cq_clean_later(cq, qpn);
	else
		urn_cq_clean_locked(cq, qpn);
	urn_cq_unlock(cq);
}

/* ---- resizing, in two steps around the control call */

int
urn_cq_resize_begin(struct urn_adapter_cq *cq)
{
	int err = EBUSY;

	urn_cq_lock(cq);
	if (!cq->resizing) {
		err = 0;
		cq->arm_later = (uint8_t)atomic_exchange(&cq->hdr->arm, URN_CQ_ARM_NONE);
		urn_beside_lock(cq);
		cq->resizing = true;
		/* Readers find nothing until the new queue is there. */
		urn_cq_blind(cq);
		urn_beside_unlock(cq);
	}
	urn_cq_unlock(cq);
	return err;
}

int
urn_cq_resize_end(struct urn_adapter_cq *cq, const struct urn_dev *dev, uint64_t off,
		  uint32_t entries)
{
	uint32_t i;
	int err = 0;

	urn_cq_lock(cq);
	urn_beside_lock(cq);
	urn_cq_map(cq, dev, off, entries);
	cq->ibv.cqe = (int)entries;
	cq->resizing = false;
	urn_beside_unlock(cq);
	for (i = 0; i < cq->dead_count; i++)
		urn_cq_clean_locked(cq, cq->dead[i]);
	free(cq->dead);
	cq->dead = NULL;
	cq->dead_count = 0;
	if (cq->arm_later != URN_CQ_ARM_NONE)
		err = urn_cq_arm(cq, cq->arm_later);
	cq->arm_later = URN_CQ_ARM_NONE;
	urn_cq_unlock(cq);
	return err;
}
