/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/beside.h"

/*
 * Address of a packet's bytes in the process that polls their completion. returns: false when they
 * have no foreign memory there; a domain may have another client's regions, too
 */
static bool
locate(const struct urn_tp *tp, const struct urn_qp *qp, struct urn_pkt_beside *b, uint32_t len)
{
	const struct urn_space *space = __atomic_load_n(&qp->recv_cq->space, __ATOMIC_RELAXED);
	struct urn_region *region;

	return urn_mem_check(tp->cfg.mem, b->lkey, urn_qp_recv_pd(qp), 0, b->addr, len,
			     URN_ACCESS_LOCAL_WRITE, 0, &region) == URN_MEM_OK &&
	       urn_mem_foreign_at(region, space, b->addr, &b->to);
}

bool
urn_beside_takes_short(const struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m,
		       const struct urn_recv *r, uint32_t len)
{
	struct urn_pkt_beside *b = &urn_pkt(m)->beside;

	/* Completions that go to another engine travel without the packet. */
	if (!len || !r->num_sge || r->sge[0].length < len || qp->recv_cq->engine != tp->cfg.engine)
		return false;
	b->addr = r->sge[0].addr;
	b->lkey = r->sge[0].lkey;
	return locate(tp, qp, b, len);
}

bool
urn_beside_ready(struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m,
		 const uint8_t *data, uint32_t len)
{
	struct urn_pkt_beside *b = &urn_pkt(m)->beside;

	if (unlikely(!locate(tp, qp, b, len)))
		return false;
	tp->beside = (struct urn_tp_beside){.to = b->to, .data = data, .len = len};
	return true;
}
