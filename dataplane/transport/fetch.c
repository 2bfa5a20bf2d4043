/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a posted request to work under way: one copy, then the checks, on the
 * copy (DESIGN rule 3). A request that makes no sense becomes work that fails
 * in its turn, so that completions stay in order. Local work (bind and
 * invalidate) is executed here too.
 */
#include "transport/internal.h"

/* Copy of what a slot says in front of its elements. */
static void
copy_head(struct urn_work *w, const struct urn_abi_swqe *h)
{
	w->wr_id = h->wr_id;
	w->opcode = h->opcode;
	w->flags = h->flags;
	w->imm = h->imm;
	w->num_sge = h->num_sge;
	w->inline_len = 0;
	w->accepted = 0;
	w->placed = 0;
	w->state = URN_WORK_QUEUED;
	w->ext = NULL;
	w->length = 0;
	w->next = NULL;
	switch (h->opcode) {
	case URN_WR_BIND_MW:
	case URN_WR_BIND_MW1:
		w->remote_addr = h->bind.addr;
		w->compare_add = h->bind.length;
		w->swap = (uint64_t)h->bind.mr_lkey << 32 | h->bind.new_rkey;
		w->rkey = h->bind.mw_rkey;
		w->accepted = h->bind.access;
		break;
	default:
		w->remote_addr = h->rdma.remote_addr;
		w->rkey = h->rdma.rkey;
		w->compare_add = h->rdma.compare_add;
		w->swap = h->rdma.swap;
		break;
	}
}

/* UD requests keep their fields where RDMA ones keep theirs. */
static void
copy_ud(struct urn_work *w, const struct urn_abi_swqe *h)
{
	w->remote_addr = (uint64_t)h->ud.ah << 32 | h->ud.remote_qpn;
	w->rkey = h->ud.remote_qkey;
}

static bool
is_local(uint8_t opcode)
{
	return opcode == URN_WR_LOCAL_INV || opcode == URN_WR_BIND_MW || opcode == URN_WR_BIND_MW1;
}

static struct urn_work_ext *
ext_get(struct urn_tp *tp)
{
	struct urn_work_ext *x = tp->ext_free;

	if (x)
		tp->ext_free = x->next;
	return x;
}

static void
bad(struct urn_tp *tp, struct urn_work *w, uint8_t status, uint8_t vendor_err)
{
	if (w->state == URN_WORK_FAILED)
		return;
	URN_COUNT(tp, BAD_WQE);
	w->state = URN_WORK_FAILED;
	w->status = status;
	w->vendor_err = vendor_err;
}

/*
 * Copy elements or inline data. returns false when there is no room for them
 * now; what lies is found out before anything is copied.
 */
static bool
copy_body(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, const struct urn_abi_swqe *slot,
	  uint32_t inline_len)
{
	const uint8_t *body = (const uint8_t *)(slot + 1);
	bool in_line = w->flags & URN_WRF_INLINE;
	uint32_t bytes = in_line ? inline_len : w->num_sge * (uint32_t)sizeof(struct urn_abi_sge);
	uint64_t total = 0;

	if (in_line ? inline_len > qp->sq.max_inline : w->num_sge > qp->sq.max_sge) {
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
		return true;
	}
	if (unlikely(bytes > URN_WORK_INLINE)) {
		w->ext = ext_get(tp);
		if (!w->ext)
			return false;
	}
	memcpy(w->ext ? w->ext->data : w->data, body, bytes);
	if (in_line) {
		w->inline_len = (uint16_t)inline_len;
		w->length = inline_len;
		return true;
	}
	for (uint32_t i = 0; i < w->num_sge; i++)
		total += urn_work_sge(w)[i].length;
	if (unlikely(total > URN_ABI_MAX_MSG))
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
	else
		w->length = (uint32_t)total;
	return true;
}

/* What RC allows (IBTA 10.8.2, table of operations). */
static void
check_rc(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	bool fetch = urn_work_is_fetch(w), atomic = fetch && w->opcode != URN_WR_RDMA_READ;

	if (w->opcode >= URN_WR_OPS)
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	else if (fetch && (qp->max_rd_atomic == 0 || (w->flags & URN_WRF_INLINE)))
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	else if (atomic && w->length != 8)
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
	else if (atomic && (w->remote_addr & 7))
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
}

static void
give_psns(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	uint64_t n = ((uint64_t)w->length + qp->mtu - 1) >> qp->mtu_shift;

	if (is_local(w->opcode) || w->state == URN_WORK_FAILED)
		n = 0;
	else if (n == 0 || (urn_work_is_fetch(w) && w->opcode != URN_WR_RDMA_READ))
		n = 1;
	if (unlikely(n > URN_PSN_MAX_OUTSTANDING)) {
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
		n = 0;
	}
	w->first_psn = qp->alloc_psn;
	w->npsn = (uint32_t)n;
	w->ssn = ++qp->ssn;
	qp->alloc_psn = urn_psn_add(qp->alloc_psn, w->npsn);
}

/* UD sends: SEND and SEND with immediate, of one packet. */
static void
check_ud(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (w->opcode != URN_WR_SEND && w->opcode != URN_WR_SEND_IMM)
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	else if (w->length > qp->mtu)
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
}

static void
enqueue(struct urn_qp *qp, struct urn_work *w)
{
	w->next = NULL;
	if (qp->w_head)
		qp->w_tail->next = w;
	else
		qp->w_head = w;
	qp->w_tail = w;
}

struct urn_work *
urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp)
{
	const struct urn_abi_swqe *slot;
	struct urn_abi_swqe head;
	struct urn_work *w;

	if (urn_sq_ready(&qp->sq) == 0)
		return NULL;
	w = tp->work_free;
	if (unlikely(!w)) {
		URN_COUNT(tp, NO_WORK);
		return NULL;
	}
	tp->work_free = w->next;
	slot = urn_sq_slot(&qp->sq);
	head = *slot;
	copy_head(w, &head);
	if (qp->type == URN_QPT_UD)
		copy_ud(w, &head);
	if (qp->flags & URN_QPF_SIG_ALL)
		w->flags |= URN_WRF_SIGNALED;
	if (!is_local(w->opcode) && !copy_body(tp, qp, w, slot, head.rdma.inline_len)) {
		urn_work_put(tp, w);
		URN_COUNT(tp, NO_WORK);
		return NULL;
	}
	if (qp->type == URN_QPT_UD)
		check_ud(tp, qp, w);
	else
		check_rc(tp, qp, w);
	give_psns(tp, qp, w);
	enqueue(qp, w);
	qp->sq.fetched++;
	return w;
}

void
urn_req_local(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	enum urn_mem_error e;
	bool invalidate = w->opcode == URN_WR_LOCAL_INV;

	if (invalidate)
		e = urn_mem_invalidate(tp->cfg.mem, w->imm, qp->pd, qp->qpn);
	else
		e = urn_mem_bind(tp->cfg.mem, w->opcode == URN_WR_BIND_MW1 ? 1 : 2, w->rkey,
				 (uint32_t)w->swap, (uint32_t)(w->swap >> 32), w->remote_addr,
				 w->compare_add, w->accepted, qp->pd, qp->qpn);
	if (e == URN_MEM_OK) {
		w->state = URN_WORK_DONE;
		return;
	}
	w->state = URN_WORK_FAILED;
	w->status = invalidate ? URN_WC_LOC_QP_OP_ERR : URN_WC_MW_BIND_ERR;
	w->vendor_err = urn_vendor_err(e);
}
