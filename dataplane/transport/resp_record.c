/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's record of READs and atomics: accept them, and find them again when they are
 * repeated (doc/reference/wire.md "Duplicates").
 */
#include "transport/act.h"
#include "transport/frame.h"
#include "transport/resp_accept.h"
#include "transport/responder.h"

/* True when this READ or atomic has not been answered for the first time. */
static inline bool
unanswered(const struct urn_rec *rec)
{
	return rec->busy || (rec->pending && !rec->again);
}

/* Take a place on the record. NULL: the peer has more READs and atomics under way than it may */
static struct urn_rec *
record(struct urn_qp *qp, uint32_t *index)
{
	struct urn_rec *rec;

	if (!qp->rec)
		return NULL;
	*index = qp->rec_head & qp->rec_mask;
	rec = &qp->rec[*index];
	if (unanswered(rec) ||
	    unanswered(&qp->rec[(qp->rec_head - qp->max_dest_rd_atomic) & qp->rec_mask]))
		return NULL;
	if (rec->pending) { /* a peer that asks for more has that response by now */
		rec->pending = 0;
		qp->rec_pending--;
	}
	qp->rec_head++;
	rec->busy = 1;
	rec->first_psn = qp->rx.epsn & URN_PSN_MASK;
	return rec;
}

void
urn_resp_accept_read(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_region *region;
	struct urn_reth r;
	uint32_t len, index;
	struct urn_rec *rec;

	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));
	len = rte_be_to_cpu_32(r.length);
	if (!(qp->access & URN_ACCESS_REMOTE_READ) || len > URN_ABI_MAX_MSG) {
		urn_resp_refuse(tp, qp, m, URN_NAK_INV_REQ);
		return;
	}
	if (len && urn_mem_check(tp->cfg.mem, rte_be_to_cpu_32(r.rkey), qp->pd, qp->qpn,
				 rte_be_to_cpu_64(r.va), len, URN_ACCESS_REMOTE_READ, 1,
				 &region) != URN_MEM_OK) {
		urn_resp_refuse(tp, qp, m, URN_NAK_ACCESS);
		return;
	}
	rec = record(qp, &index);
	if (!rec) {
		urn_resp_refuse(tp, qp, m, URN_NAK_INV_REQ);
		return;
	}
	rec->kind = URN_REC_READ;
	rec->va = rte_be_to_cpu_64(r.va);
	rec->rkey = rte_be_to_cpu_32(r.rkey);
	rec->length = len;
	p->record.index = index;
	urn_resp_accepted(tp, qp, m, URN_ACT_READ, urn_rec_npsn(qp, rec));
}

/* Number the atomic that was accepted. returns: its entry in the log, or NULL: there is no log */
static uint8_t *
log_entry(struct urn_qp *qp)
{
	struct urn_rec_log *log = URN_QP_LOG(qp);
	struct urn_abi_atomic *a;

	if (!log->entry)
		return NULL;
	a = &log->entry[++log->count & log->mask];
	/* The peer has the result of the atomic that the entry told of. */
	atomic_store_explicit(&a->state, URN_ATOMIC_NONE, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	a->number = log->count;
	return (uint8_t *)a;
}

void
urn_resp_accept_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	bool cas = (p->op->flags & URN_OPF_COMPARE) != 0;
	struct urn_atomic_eth a;
	struct urn_region *region;
	struct urn_rec *rec;
	uint32_t index;
	uint64_t va;

	memcpy(&a, urn_pkt_ext(m, URN_EXT_ATOMIC), sizeof(a));
	va = rte_be_to_cpu_64(a.va);
	if (!(qp->access & URN_ACCESS_REMOTE_ATOMIC) || (va & 7)) {
		urn_resp_refuse(tp, qp, m, URN_NAK_INV_REQ);
		return;
	}
	if (urn_mem_check(tp->cfg.mem, rte_be_to_cpu_32(a.rkey), qp->pd, qp->qpn, va, 8,
			  URN_ACCESS_REMOTE_ATOMIC, 1, &region) != URN_MEM_OK) {
		urn_resp_refuse(tp, qp, m, URN_NAK_ACCESS);
		return;
	}
	rec = record(qp, &index);
	if (!rec) {
		urn_resp_refuse(tp, qp, m, URN_NAK_INV_REQ);
		return;
	}
	rec->kind = URN_REC_ATOMIC;
	rec->length = 8;
	p->record.index = index;
	p->record.operand[0] = cas ? rte_be_to_cpu_64(a.compare) : rte_be_to_cpu_64(a.swap_add);
	p->record.operand[1] = rte_be_to_cpu_64(a.swap_add);
	urn_tp_op(tp, m, cas ? URN_MEMOP_CMP_SWAP : URN_MEMOP_FETCH_ADD, region, va, log_entry(qp),
		  8);
	urn_resp_accepted(tp, qp, m, URN_ACT_ATOMIC, 1);
}

struct urn_rec *
urn_resp_find_record(struct urn_qp *qp, uint32_t psn, uint8_t kind)
{
	for (uint32_t i = 1; qp->rec && i <= qp->rec_mask + 1u; i++) {
		struct urn_rec *rec = &qp->rec[(qp->rec_head - i) & qp->rec_mask];

		if (rec->kind == kind && !rec->busy &&
		    ((psn - rec->first_psn) & URN_PSN_MASK) < urn_rec_npsn(qp, rec))
			return rec;
	}
	return NULL;
}
