/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes on the peer's cache lines (reshape.h). */
#include "transport/reshape.h"
#include "transport/pool.h"
#include "transport/requester.h"

/* Bytes of the line that the QP's writes go on; 0: not known. */
static uint32_t
line_of(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return qp->align == URN_QP_ALIGN_PEER ? urn_qp_peer(tp, qp)->line : 1u << qp->align;
}

/* A copy of work, with room of its own for what does not fit into it. NULL: no room */
static struct urn_work *
copy_of(struct urn_tp *tp, struct urn_qp *qp, const struct urn_work *w)
{
	struct urn_work_ext *x = NULL;
	struct urn_work *copy;

	if (!urn_work_room(tp, qp))
		return NULL;
	if (w->ext) {
		x = urn_ext_get(tp, qp);
		if (!x)
			return NULL;
		*x = *w->ext;
	}
	copy = urn_work_take(tp, qp);
	*copy = *w;
	copy->ext = x;
	return copy;
}

struct urn_work *
urn_reshape(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	bool write = w->opcode == URN_WR_RDMA_WRITE || w->opcode == URN_WR_RDMA_WRITE_IMM;
	struct urn_work *head;
	uint32_t skip;

	if (!write || w->state == URN_WORK_FAILED)
		return NULL;
	skip = urn_reshape_skip(w->remote_addr, w->length, line_of(tp, qp), qp->mtu);
	if (!skip)
		return NULL;
	if ((urn_qp_peer(tp, qp)->features & URN_LINK_F_WRITE_TWO) &&
	    urn_reshape_fits(w->length, skip, qp->mtu)) {
		w->piece = URN_PIECE_TWO;
		w->skip = (uint8_t)skip;
		w->remote_addr += skip;
		URN_COUNT(tp, ALIGNED);
		URN_COUNT(tp, ALIGNED_ONE);
		return NULL;
	}
	head = copy_of(tp, qp, w);
	if (!head) {
		URN_COUNT(tp, ALIGN_NO_WORK);
		return NULL; /* goes as it is: slower for the peer, and right */
	}
	head->piece = URN_PIECE_HEAD;
	head->length = skip;
	head->whole = w->length;
	w->piece = URN_PIECE_BULK;
	w->skip = (uint8_t)skip;
	w->remote_addr += skip;
	w->length -= skip;
	/* The immediate, the solicited event and the completion are the head's. */
	w->opcode = URN_WR_RDMA_WRITE;
	w->kind = urn_wr_info[URN_WR_RDMA_WRITE].kind;
	w->flags &= (uint8_t) ~(URN_WRF_SIGNALED | URN_WRF_SOLICITED);
	URN_COUNT(tp, ALIGNED);
	return head;
}
