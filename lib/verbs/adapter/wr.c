/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting through ibv_wr_*(): requests are built in their slots, piece by
 * piece, between ibv_wr_start() and ibv_wr_complete(), which publishes them all
 * with one ring. The send queue's lock is held in between. The first error
 * drops the whole batch; ibv_wr_complete() returns that error.
 */
#include "verbs/adapter/sq.h"

#include <errno.h>

static inline struct urn_adapter_qp *
urn_qp_ex(struct ibv_qp_ex *ex)
{
	return (struct urn_adapter_qp *)ex;
}

static void
urn_wr_fail(struct urn_adapter_qp *qp, int err)
{
	if (qp->wr_err == 0)
		qp->wr_err = err;
	qp->wr_cur = NULL;
}

/* Begin a request. returns: its slot, or NULL after an error */
static inline struct urn_abi_swqe *
urn_wr_begin(struct urn_adapter_qp *qp, enum urn_abi_wr_op op)
{
	struct urn_adapter_sq *sq = &qp->sq;
	struct urn_abi_swqe *wqe;

	if (URN_UNLIKELY(qp->wr_err != 0))
		return NULL;
	if (URN_UNLIKELY(!(sq->ops >> op & 1) || (qp->ex.wr_flags & ~URN_SEND_FLAGS))) {
		urn_wr_fail(qp, EINVAL);
		return NULL;
	}
	if (URN_UNLIKELY(urn_sq_full(sq))) {
		urn_wr_fail(qp, ENOMEM);
		return NULL;
	}
	wqe = urn_sq_slot(sq);
	wqe->wr_id = qp->ex.wr_id;
	wqe->opcode = (uint8_t)op;
	/* The call that sets the data sets the inline flag too. */
	wqe->flags = (uint8_t)(qp->ex.wr_flags & ~(unsigned int)IBV_SEND_INLINE);
	wqe->num_sge = 0;
	wqe->rsvd = 0;
	wqe->imm = 0;
	wqe->rdma.inline_len = 0;
	/* No address handle unless one is set; handles are never ~0. */
	if (sq->ud)
		wqe->ud.ah = UINT32_MAX;
	sq->prod++;
	qp->wr_cur = wqe;
	return wqe;
}

static inline struct urn_abi_swqe *
urn_wr_rdma(struct ibv_qp_ex *ex, enum urn_abi_wr_op op, uint32_t rkey, uint64_t addr)
{
	struct urn_abi_swqe *wqe = urn_wr_begin(urn_qp_ex(ex), op);

	if (URN_LIKELY(wqe != NULL)) {
		wqe->rdma.remote_addr = addr;
		wqe->rdma.rkey = rkey;
	}
	return wqe;
}

static void
urn_wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct urn_abi_swqe *wqe = urn_wr_rdma(ex, URN_WR_CMP_SWAP, rkey, addr);

	if (wqe != NULL) {
		wqe->rdma.compare_add = compare;
		wqe->rdma.swap = swap;
	}
}

static void
urn_wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	struct urn_abi_swqe *wqe = urn_wr_rdma(ex, URN_WR_FETCH_ADD, rkey, addr);

	if (wqe != NULL) {
		wqe->rdma.compare_add = add;
		wqe->rdma.swap = 0;
	}
}

static void
urn_wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct urn_abi_swqe *wqe;

	if (mw->type != IBV_MW_TYPE_2) {
		urn_wr_fail(urn_qp_ex(ex), EINVAL);
		return;
	}
	wqe = urn_wr_begin(urn_qp_ex(ex), URN_WR_BIND_MW);
	if (wqe != NULL)
		urn_wqe_bind(wqe, mw->rkey, rkey, info);
}

static void
urn_wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct urn_abi_swqe *wqe = urn_wr_begin(urn_qp_ex(ex), URN_WR_LOCAL_INV);

	if (wqe != NULL)
		wqe->imm = rkey;
}

static void
urn_wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	urn_wr_rdma(ex, URN_WR_RDMA_READ, rkey, addr);
}

static void
urn_wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	urn_wr_rdma(ex, URN_WR_RDMA_WRITE, rkey, addr);
}

static void
urn_wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct urn_abi_swqe *wqe = urn_wr_rdma(ex, URN_WR_RDMA_WRITE_IMM, rkey, addr);

	if (wqe != NULL)
		wqe->imm = imm;
}

static void
urn_wr_send(struct ibv_qp_ex *ex)
{
	urn_wr_begin(urn_qp_ex(ex), URN_WR_SEND);
}

static void
urn_wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct urn_abi_swqe *wqe = urn_wr_begin(urn_qp_ex(ex), URN_WR_SEND_IMM);

	if (wqe != NULL)
		wqe->imm = imm;
}

static void
urn_wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct urn_abi_swqe *wqe = urn_wr_begin(urn_qp_ex(ex), URN_WR_SEND_INV);

	if (wqe != NULL)
		wqe->imm = rkey;
}

static void
urn_wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr, (void)hdr_sz, (void)mss;
	urn_wr_fail(urn_qp_ex(ex), EOPNOTSUPP);
}

static void
urn_wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value)
{
	(void)rkey, (void)addr, (void)value;
	urn_wr_fail(urn_qp_ex(ex), EOPNOTSUPP);
}

static void
urn_wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	(void)srqn;
	urn_wr_fail(urn_qp_ex(ex), EOPNOTSUPP);
}

static void
urn_wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);

	if (qp->wr_cur == NULL)
		return;
	if (!qp->sq.ud || ah == NULL) {
		urn_wr_fail(qp, EINVAL);
		return;
	}
	qp->wr_cur->ud.ah = ah->handle;
	qp->wr_cur->ud.remote_qpn = qpn;
	qp->wr_cur->ud.remote_qkey = qkey;
}

/* Opcodes that send data of this program, which may lie inside the request. */
#define URN_WR_INLINE_OPS (1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | 1u << URN_WR_SEND | \
	1u << URN_WR_SEND_IMM | 1u << URN_WR_SEND_INV)

static void
urn_wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_data_buf *list)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);
	struct urn_abi_swqe *wqe = qp->wr_cur;
	uint64_t bytes = 0;
	size_t i;

	if (wqe == NULL)
		return;
	if (!(URN_WR_INLINE_OPS >> wqe->opcode & 1)) {
		urn_wr_fail(qp, EINVAL);
		return;
	}
	for (i = 0; i < num; i++) {
		if (list[i].length > qp->sq.max_inline - bytes) {
			urn_wr_fail(qp, EINVAL);
			return;
		}
		memcpy((uint8_t *)(wqe + 1) + bytes, list[i].addr, list[i].length);
		bytes += list[i].length;
	}
	wqe->flags |= URN_WRF_INLINE;
	wqe->num_sge = 0;
	wqe->rdma.inline_len = (uint32_t)bytes;
}

static void
urn_wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf one = {.addr = addr, .length = length};

	urn_wr_set_inline_data_list(ex, 1, &one);
}

static void
urn_wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);
	struct urn_abi_swqe *wqe = qp->wr_cur;
	size_t i;

	if (wqe == NULL)
		return;
	if (num > qp->sq.max_sge || wqe->opcode == URN_WR_BIND_MW) {
		urn_wr_fail(qp, EINVAL);
		return;
	}
	wqe->num_sge = (uint8_t)num;
	for (i = 0; i < num; i++)
		((struct urn_abi_sge *)(wqe + 1))[i] = urn_sge(&list[i]);
}

static void
urn_wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = {.addr = addr, .length = length, .lkey = lkey};

	urn_wr_set_sge_list(ex, 1, &one);
}

static void
urn_wr_start(struct ibv_qp_ex *ex)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);

	urn_lock_take(&qp->sq.lock);
	qp->wr_prod = qp->sq.prod;
	qp->wr_cur = NULL;
	qp->wr_err = qp->sq.ok ? 0 : urn_dev_refusal(qp->dev);
}

static int
urn_wr_complete(struct ibv_qp_ex *ex)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);
	int err = qp->wr_err;

	if (URN_UNLIKELY(err != 0))
		qp->sq.prod = qp->wr_prod;
	else if (qp->sq.prod != qp->wr_prod)
		urn_sq_ring(qp);
	qp->wr_cur = NULL;
	urn_lock_give(&qp->sq.lock);
	return err;
}

static void
urn_wr_abort(struct ibv_qp_ex *ex)
{
	struct urn_adapter_qp *qp = urn_qp_ex(ex);

	qp->sq.prod = qp->wr_prod;
	qp->wr_cur = NULL;
	urn_lock_give(&qp->sq.lock);
}

void
urn_qp_init_wr(struct urn_adapter_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_atomic_cmp_swp = urn_wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = urn_wr_atomic_fetch_add;
	ex->wr_bind_mw = urn_wr_bind_mw;
	ex->wr_local_inv = urn_wr_local_inv;
	ex->wr_rdma_read = urn_wr_rdma_read;
	ex->wr_rdma_write = urn_wr_rdma_write;
	ex->wr_rdma_write_imm = urn_wr_rdma_write_imm;
	ex->wr_send = urn_wr_send;
	ex->wr_send_imm = urn_wr_send_imm;
	ex->wr_send_inv = urn_wr_send_inv;
	ex->wr_send_tso = urn_wr_send_tso;
	ex->wr_set_ud_addr = urn_wr_set_ud_addr;
	ex->wr_set_xrc_srqn = urn_wr_set_xrc_srqn;
	ex->wr_set_inline_data = urn_wr_set_inline_data;
	ex->wr_set_inline_data_list = urn_wr_set_inline_data_list;
	ex->wr_set_sge = urn_wr_set_sge;
	ex->wr_set_sge_list = urn_wr_set_sge_list;
	ex->wr_start = urn_wr_start;
	ex->wr_complete = urn_wr_complete;
	ex->wr_abort = urn_wr_abort;
	ex->wr_atomic_write = urn_wr_atomic_write;
}
