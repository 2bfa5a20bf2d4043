/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/cq_move.h"

#include <errno.h>

void
urn_cq_move_init(struct urn_cq_move *m, struct urn_cq *cq, struct urn_abi_cq *hdr, uint64_t off,
		 uint32_t entries)
{
	*m = (struct urn_cq_move){.cq = cq, .to = {.hdr = hdr, .mask = entries - 1}, .off = off};
}

/* Begin at the first completion that the client has not read. */
static void
begin(struct urn_cq_move *m)
{
	uint32_t left = m->cq->prod - atomic_load(&m->cq->hdr->cons);

	/* A client whose index lies loses its own completions. */
	m->from = left > m->cq->mask + 1 ? m->cq->prod : m->cq->prod - left;
	m->begun = true;
}

void
urn_cq_move_carry(struct urn_cq_move *m)
{
	const struct urn_abi_cqe *slot =
		(const void *)((const uint8_t *)m->cq->hdr + URN_ABI_CQ_SLOTS);

	for (; m->from != m->end; m->from++) {
		uint32_t at = m->from & m->cq->mask;

		/* Both are in the area of the client, which may write there what it likes. */
		if (m->to.beside && (slot[at].wc_flags & URN_WCF_BESIDE))
			m->to.beside[m->to.prod & m->to.mask] = m->cq->beside[at];
		urn_cq_put(&m->to, &slot[at], NULL, 0);
	}
}

void
urn_cq_move_step(void *arg)
{
	struct urn_cq_move *m = arg;
	struct urn_cq *cq = m->cq;
	uint32_t left;

	if (!m->begun)
		begin(m);
	left = cq->prod - m->from;
	if (left > cq->mask + 1) { /* the client read meanwhile, and slots were overwritten: its own loss */
		m->from = cq->prod;
		left = 0;
	}
	if (left + urn_cq_on_way(cq) > m->to.mask + 1 - m->to.prod) {
		m->rc = EINVAL;
		return;
	}
	m->end = cq->prod;
	if (left > URN_CQ_MOVE_STEP) {
		m->rc = EAGAIN;
		return;
	}
	urn_cq_move_carry(m);
	/* If the dataplane dies before it answers, the client reads these fields. */
	cq->hdr->moved_off = m->off;
	atomic_store(&cq->hdr->moved_entries, m->to.mask + 1);
	if (cq->shared)
		urn_cq_turn_side(cq, m->to.hdr, m->to.mask, m->to.prod);
	cq->hdr = m->to.hdr;
	cq->beside = m->to.beside;
	cq->mask = m->to.mask;
	cq->prod = m->to.prod;
	cq->cons = 0;
	m->rc = 0;
}
