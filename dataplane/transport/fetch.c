/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching turns a posted request into work under way: one copy is taken, then the copy is checked
 * (architecture rule 3). A request that makes no sense becomes work that fails in its turn, so that
 * completions stay in order. Local work (bind and invalidate) is executed here too.
 */
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/requester.h"
#include "transport/reshape.h"
#include "transport/service.h"

#define WK(bits) (uint8_t)(URN_WK_KNOWN | (bits))
#define SEND_WIRE(last, only) {URN_RC_SEND_MIDDLE, URN_RC_SEND_FIRST, last, only}
#define ONLY_WIRE(only) {0, 0, 0, only}
#define WRITE_WIRE(last, only) {URN_RC_WRITE_MIDDLE, URN_RC_WRITE_FIRST, last, only}

const struct urn_wr_info urn_wr_info[URN_WR_INFOS] = {
	[URN_WR_RDMA_WRITE] = {WK(0), URN_WCO_RDMA_WRITE,
			       WRITE_WIRE(URN_RC_WRITE_LAST, URN_RC_WRITE_ONLY)},
	[URN_WR_RDMA_WRITE_IMM] = {WK(URN_WK_RECV | URN_WK_IMM), URN_WCO_RDMA_WRITE,
				   WRITE_WIRE(URN_RC_WRITE_LAST_IMM, URN_RC_WRITE_ONLY_IMM)},
	[URN_WR_SEND] = {WK(URN_WK_RECV | URN_WK_DGRAM), URN_WCO_SEND,
			 SEND_WIRE(URN_RC_SEND_LAST, URN_RC_SEND_ONLY)},
	[URN_WR_SEND_IMM] = {WK(URN_WK_RECV | URN_WK_DGRAM | URN_WK_IMM), URN_WCO_SEND,
			     SEND_WIRE(URN_RC_SEND_LAST_IMM, URN_RC_SEND_ONLY_IMM)},
	[URN_WR_SEND_INV] = {WK(URN_WK_RECV), URN_WCO_SEND,
			     SEND_WIRE(URN_RC_SEND_LAST_INV, URN_RC_SEND_ONLY_INV)},
	[URN_WR_RDMA_READ] = {WK(URN_WK_FETCH), URN_WCO_RDMA_READ, ONLY_WIRE(URN_RC_READ_REQUEST)},
	[URN_WR_CMP_SWAP] = {WK(URN_WK_FETCH | URN_WK_ATOMIC | URN_WK_COMPARE), URN_WCO_COMP_SWAP,
			     ONLY_WIRE(URN_RC_CMP_SWAP)},
	[URN_WR_FETCH_ADD] = {WK(URN_WK_FETCH | URN_WK_ATOMIC), URN_WCO_FETCH_ADD,
			      ONLY_WIRE(URN_RC_FETCH_ADD)},
	[URN_WR_LOCAL_INV] = {WK(URN_WK_LOCAL), URN_WCO_LOCAL_INV, {0}, .mw_type = 0},
	[URN_WR_BIND_MW] = {WK(URN_WK_LOCAL), URN_WCO_BIND_MW, {0}, .mw_type = 2},
	[URN_WR_BIND_MW1] = {WK(URN_WK_LOCAL), URN_WCO_BIND_MW, {0}, .mw_type = 1},
};
_Static_assert((int)URN_WR_OPS <= (int)URN_WR_INFOS, "a row for each opcode");

/* Copy the part of a slot before its elements, once; from here on only the copy counts. */
static inline void
copy_head(struct urn_work *w, const struct urn_abi_swqe *slot)
{
	memcpy(&w->wqe, slot, sizeof(w->wqe));
	rte_compiler_barrier(); /* the client's memory is read once, whatever the client does meanwhile */
	w->kind = w->opcode < URN_WR_INFOS ? urn_wr_info[w->opcode].kind : 0;
	w->next = NULL;
	w->state = URN_WORK_QUEUED;
	w->piece = URN_PIECE_WHOLE;
	w->length = 0;
	w->skip = 0;
	w->accepted = 0;
	w->placed = 0;
	w->parts = 0;
	w->ext = NULL;
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

/* Copy elements that do not fit beside the request, or inline data. returns: see copy_body() */
static __attribute__((noinline)) bool
copy_much(struct urn_tp *tp, const struct urn_qp *qp, struct urn_work *w, const uint8_t *body)
{
	bool in_line = w->flags & URN_WRF_INLINE;
	uint32_t bytes = in_line ? w->inline_len : w->num_sge * (uint32_t)sizeof(struct urn_abi_sge);
	uint64_t total = 0;

	if (in_line ? w->inline_len > qp->sq.max_inline : w->num_sge > qp->sq.max_sge) {
		bad(tp, w, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
		return true;
	}
	if (bytes > URN_WORK_INLINE) {
		w->ext = urn_ext_get(tp, qp);
		if (!w->ext)
			return false;
	}
	memcpy(w->ext ? w->ext->data : w->data, body, bytes);
	rte_compiler_barrier();
	if (in_line) {
		w->length = w->inline_len;
		return true;
	}
	for (uint32_t i = 0; i < w->num_sge; i++)
		total += urn_work_sge(w)[i].length;
	if (total > URN_ABI_MAX_MSG)
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
	else
		w->length = (uint32_t)total;
	return true;
}

/*
 * Copy elements or inline data. returns: false when there is no room for them now; wrong sizes are
 * found before anything is copied
 */
static inline bool
copy_body(struct urn_tp *tp, const struct urn_qp *qp, struct urn_work *w,
	  const struct urn_abi_swqe *slot)
{
	if (unlikely(w->num_sge != 1 || (w->flags & URN_WRF_INLINE) || qp->sq.max_sge == 0))
		return copy_much(tp, qp, w, (const uint8_t *)(slot + 1));
	memcpy(&w->sge[0], slot + 1, sizeof(w->sge[0]));
	rte_compiler_barrier();
	if (unlikely(w->sge[0].length > URN_ABI_MAX_MSG))
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
	else
		w->length = w->sge[0].length;
	return true;
}

static inline void
check(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	const struct urn_service *svc = urn_qp_service(tp, qp);
	uint8_t status = URN_WC_SUCCESS;

	if (unlikely(!w->kind))
		status = URN_WC_LOC_QP_OP_ERR;
	else if (unlikely(w->kind & svc->checked))
		status = svc->check(qp, w);
	if (unlikely(status != URN_WC_SUCCESS))
		bad(tp, w, status, URN_VE_BAD_WQE);
}

static inline void
give_psns(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	uint64_t n = ((uint64_t)w->length + qp->mtu - 1) >> qp->mtu_shift;

	if (unlikely((w->kind & URN_WK_LOCAL) || w->state == URN_WORK_FAILED))
		n = 0;
	else if (n == 0 || (w->kind & URN_WK_ATOMIC))
		n = 1;
	if (unlikely(n > URN_PSN_MAX_OUTSTANDING)) {
		bad(tp, w, URN_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
		n = 0;
	}
	if (likely(n))
		qp->tx.ssn++; /* local work is no message: the peer's MSN does not count it */
	w->ssn = qp->tx.ssn;
	urn_psn_tx_append(&qp->tx, w, (uint32_t)n);
}

URN_FAST struct urn_work *
urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp)
{
	const struct urn_abi_swqe *slot;
	struct urn_work *w, *head = NULL;

	if (urn_sq_ready(&qp->sq) == 0)
		return NULL;
	if (unlikely(!urn_work_room(tp, qp))) {
		URN_COUNT(tp, NO_WORK);
		return NULL;
	}
	w = urn_work_take(tp, qp);
	slot = urn_sq_slot(&qp->sq);
	copy_head(w, slot);
	if (qp->flags & URN_QPF_SIG_ALL)
		w->flags |= URN_WRF_SIGNALED;
	if (!(w->kind & URN_WK_LOCAL) && unlikely(!copy_body(tp, qp, w, slot))) {
		urn_work_put(tp, qp, w);
		URN_COUNT(tp, NO_WORK);
		return NULL;
	}
	check(tp, qp, w);
	if (unlikely(qp->align))
		head = urn_reshape(tp, qp, w);
	give_psns(tp, qp, w);
	if (unlikely(head != NULL))
		give_psns(tp, qp, head);
	qp->sq.fetched++;
	return w;
}

/*
 * A key died, and operations accepted under it may have to be waited for: with the key of an
 * invalidated window of this QP, whose packets this engine handles, or of an unbound type 1 window,
 * which any QP of the domain may have used.
 */
static void
fence(struct urn_tp *tp, struct urn_work *w, struct urn_region *mr, bool all)
{
	w->state = URN_WORK_FENCED;
	w->fence = (struct urn_fence){
		.mr = mr,
		.asked = all ? urn_mem_ask_turn(tp->cfg.mem) : 0,
		.turn = tp->turn,
		.engines = all ? URN_ABI_MAX_ENGINES : 1,
	};
}

/*
 * Get the executor of an engine, once the engine holds nothing any more that was accepted before
 * the key died.
 * returns: true when that is so; *x NULL: there is no executor
 */
static bool
hand_empty(const struct urn_tp *tp, const struct urn_fence *f, const struct urn_memx **x)
{
	unsigned int engine = (tp->cfg.engine + f->next) % URN_ABI_MAX_ENGINES;

	if (f->next)
		return urn_mem_turned(tp->cfg.mem, engine, f->asked, x);
	*x = tp->cfg.memx;
	return !tp->ops_n || tp->turn != f->turn;
}

/* True when everything accepted under the key is done. Looks at one engine after the other. */
static bool
fence_over(const struct urn_tp *tp, struct urn_fence *f)
{
	const struct urn_memx *x;

	for (; f->next < f->engines; f->next++) {
		if (!hand_empty(tp, f, &x))
			return false;
		if (!x)
			continue;
		if (!f->marked)
			urn_memx_mark(x, f->mr, &f->mark);
		f->marked = true;
		if (!urn_memx_passed(x, f->mr, &f->mark))
			return false;
		f->marked = false;
	}
	return true;
}

static void
end_fence(struct urn_tp *tp, struct urn_work *w)
{
	if (!fence_over(tp, &w->fence))
		return;
	urn_mem_let_go(tp->cfg.mem, w->fence.mr);
	w->state = URN_WORK_DONE;
}

void
urn_req_local(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	enum urn_mem_error e;
	uint8_t mw_type = urn_wr_info[w->opcode].mw_type;
	struct urn_mem_binding b = {.windows = &qp->windows};

	if (w->state == URN_WORK_FENCED) {
		end_fence(tp, w);
		return;
	}
	if (mw_type == 0)
		e = urn_mem_invalidate(tp->cfg.mem, w->imm, qp->pd, qp->qpn, &b);
	else
		e = urn_mem_bind(tp->cfg.mem, mw_type, w->wqe.bind.mw_rkey, w->wqe.bind.new_rkey,
				 w->wqe.bind.mr_lkey, w->wqe.bind.addr, w->wqe.bind.length,
				 w->wqe.bind.access, qp->pd, qp->qpn, &b);
	if (e == URN_MEM_OK && b.old) {
		fence(tp, w, b.old, mw_type != 0);
		end_fence(tp, w);
		return;
	}
	if (e == URN_MEM_OK) {
		w->state = URN_WORK_DONE;
		return;
	}
	w->state = URN_WORK_FAILED;
	w->status = mw_type == 0 ? URN_WC_LOC_QP_OP_ERR : URN_WC_MW_BIND_ERR;
	w->vendor_err = urn_vendor_err(e);
}
