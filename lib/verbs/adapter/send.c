/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting send requests: ibv_post_send(), and ibv_bind_mw(), which posts too.
 *
 * A request is written with plain stores into its slot; one store of prod, with
 * release, publishes all requests of a call, and the doorbell is rung once. How
 * far the queue is polled (polled.h) is read only when the queue seems full.
 */
#include "verbs/adapter/sq.h"

#include <errno.h>

/* Opcodes whose data may travel inside the request. */
#define URN_INLINE_OPS (1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | 1u << URN_WR_SEND | \
	1u << URN_WR_SEND_IMM | 1u << URN_WR_SEND_INV)

/* Copy a request's data into its slot. returns: 0; EINVAL: more than fits, or not for this opcode */
static int
urn_sq_inline(const struct urn_adapter_sq *sq, struct urn_abi_swqe *wqe,
	      const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)(wqe + 1);
	uint64_t bytes = 0;
	int i;

	if (!(URN_INLINE_OPS >> wr->opcode & 1))
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (bytes + s->length > sq->max_inline)
			return EINVAL;
		memcpy(to + bytes, (const void *)(uintptr_t)s->addr, s->length);
		bytes += s->length;
	}
	wqe->num_sge = 0;
	wqe->rdma.inline_len = (uint32_t)bytes;
	return 0;
}

static inline void
urn_sq_sges(struct urn_abi_swqe *wqe, const struct ibv_send_wr *wr)
{
	struct urn_abi_sge *to = (struct urn_abi_sge *)(wqe + 1);
	int i;

	wqe->num_sge = (uint8_t)wr->num_sge;
	wqe->rdma.inline_len = 0;
	for (i = 0; i < wr->num_sge; i++)
		to[i] = urn_sge(&wr->sg_list[i]);
}

/* Write a bind: it names a window and a range, and gathers nothing. */
static int
urn_sq_bind(struct urn_abi_swqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw *mw = wr->bind_mw.mw;

	if (mw == NULL || mw->type != IBV_MW_TYPE_2 || (wr->send_flags & IBV_SEND_INLINE))
		return EINVAL;
	wqe->num_sge = 0;
	urn_wqe_bind(wqe, mw->rkey, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	return 0;
}

/* The part of a request that depends on its opcode, then its data. */
static inline int
urn_sq_body(const struct urn_adapter_sq *sq, struct urn_abi_swqe *wqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wqe->rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->rdma.rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->rdma.remote_addr = wr->wr.atomic.remote_addr;
		wqe->rdma.rkey = wr->wr.atomic.rkey;
		wqe->rdma.compare_add = wr->wr.atomic.compare_add;
		wqe->rdma.swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_BIND_MW:
		return urn_sq_bind(wqe, wr);
	default:
		if (!sq->ud)
			break;
		if (wr->wr.ud.ah == NULL)
			return EINVAL;
		wqe->ud.ah = wr->wr.ud.ah->handle;
		wqe->ud.remote_qpn = wr->wr.ud.remote_qpn;
		wqe->ud.remote_qkey = wr->wr.ud.remote_qkey;
		break;
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		return urn_sq_inline(sq, wqe, wr);
	urn_sq_sges(wqe, wr);
	return 0;
}

/* Write one request into the next slot. returns: 0, or an errno value and nothing posted */
static inline int
urn_sq_put(struct urn_adapter_sq *sq, const struct ibv_send_wr *wr)
{
	struct urn_abi_swqe *wqe;
	int err;

	if (URN_UNLIKELY((unsigned int)wr->opcode >= 32 || !(sq->ops >> wr->opcode & 1) ||
			(uint32_t)wr->num_sge > sq->max_sge || (wr->send_flags & ~URN_SEND_FLAGS)))
		return EINVAL;
	if (URN_UNLIKELY(urn_sq_full(sq)))
		return ENOMEM;
	wqe = urn_sq_slot(sq);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)wr->send_flags;
	wqe->rsvd = 0;
	wqe->imm = wr->invalidate_rkey; /* shares its word with the immediate data */
	err = urn_sq_body(sq, wqe, wr);
	if (URN_LIKELY(err == 0))
		sq->prod++;
	return err;
}

URN_FAST int
urn_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	struct urn_adapter_sq *sq = &qp->sq;
	uint32_t start;
	int err = 0;

	urn_lock_take(&sq->lock);
	start = sq->prod;
	if (URN_UNLIKELY(!sq->ok)) {
		err = urn_dev_refusal(qp->dev);
		*bad = wr;
	} else {
		for (; wr != NULL; wr = wr->next) {
			err = urn_sq_put(sq, wr);
			if (URN_UNLIKELY(err != 0)) {
				*bad = wr;
				break;
			}
		}
	}
	if (URN_LIKELY(sq->prod != start))
		urn_sq_ring(qp);
	urn_lock_give(&sq->lock);
	return err;
}

/* Bind a type 1 window, by a request of the library, which gives the window its next key. */
int
urn_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	struct urn_adapter_sq *sq = &qp->sq;
	struct urn_abi_swqe *wqe;
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int err = 0;

	urn_lock_take(&sq->lock);
	if (!sq->ok) {
		err = urn_dev_refusal(qp->dev);
	} else if (sq->ud || (bind->send_flags & ~(URN_SEND_FLAGS & ~(unsigned int)IBV_SEND_INLINE))) {
		err = EINVAL;
	} else if (urn_sq_full(sq)) {
		err = ENOMEM;
	} else {
		wqe = urn_sq_slot(sq);
		wqe->wr_id = bind->wr_id;
		wqe->opcode = URN_WR_BIND_MW1;
		wqe->flags = (uint8_t)bind->send_flags;
		wqe->num_sge = 0;
		wqe->rsvd = 0;
		wqe->imm = 0;
		urn_wqe_bind(wqe, mw->rkey, rkey, &bind->bind_info);
		sq->prod++;
		mw->rkey = rkey;
		urn_sq_ring(qp);
	}
	urn_lock_give(&sq->lock);
	return err;
}
