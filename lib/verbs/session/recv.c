/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives. Each has a header area in front of the program's elements, which is cleared before each
 * post (FO-7). Receives stay in a ring until they are complete: those that the path in use has are
 * [recv_head, recv_posted), those that wait for a path [recv_posted, recv_tail).
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static struct urn_sess_wire *
urn_sv_area(const struct urn_sv_qp *q, uint32_t index)
{
	return (struct urn_sess_wire *)(q->memory + q->receives_at) + (index & (q->rwrs - 1));
}

static struct ibv_sge *
urn_sv_recv_sges(const struct urn_sv_qp *q, uint32_t index)
{
	return &q->recv_sge[(index & (q->rwrs - 1)) * q->cap.max_recv_sge];
}

void
urn_sv_recv_go(struct urn_sv_qp *q, uint32_t index)
{
	struct urn_sv_path *p = urn_sv_used(q);
	const struct urn_sv_rwr *r = &q->rwr[index & (q->rwrs - 1)];
	const struct ibv_sge *from = urn_sv_recv_sges(q, index);
	struct ibv_sge sge[URN_SV_SGES + 1];
	struct ibv_recv_wr wr = {.wr_id = URN_SV_ID_RECV | index,
				 .sg_list = sge,
				 .num_sge = (int)r->num_sge + 1},
			   *bad;

	p->epoch = q->c.used;
	memset(urn_sv_area(q, index), 0, sizeof(struct urn_sess_wire));
	sge[0] = (struct ibv_sge){(uintptr_t)urn_sv_area(q, index), sizeof(struct urn_sess_wire),
				  q->memory_mr[p->mine]->lkey};
	for (uint32_t i = 0; i < r->num_sge; i++)
		sge[i + 1] = (struct ibv_sge){from[i].addr, from[i].length,
					      urn_sv_local_key(q, p->mine, from[i].lkey)};
	urn_sv_posted(q, ibv_post_recv(p->real, &wr, &bad));
}

void
urn_sv_recv_rest(struct urn_sv_qp *q)
{
	if (q->srq != NULL) {
		urn_sv_used(q)->epoch = q->c.used;
		urn_sv_srq_go(q->srq); /* the home's real queue may be a new one */
	}
	q->recv_live = true;
	while (q->recv_posted != q->recv_tail)
		urn_sv_recv_go(q, q->recv_posted++);
}

bool
urn_sv_recv_header(const struct urn_sv_qp *q, uint32_t index, struct urn_sess_header *h)
{
	const struct urn_sv_rwr *r = &q->rwr[index & (q->rwrs - 1)];

	/* The payload of a write with immediate data is not in the receive. */
	return urn_sess_header_get(urn_sv_area(q, index), UINT32_MAX, h) &&
	       (h->op == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM || h->length <= r->room);
}

bool
urn_sv_recv_fits(const struct urn_sess_header *h, const struct ibv_wc *wc)
{
	uint32_t payload = h->op == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM ? 0 : h->length;

	return wc->byte_len == (uint64_t)sizeof(struct urn_sess_wire) + payload;
}

void
urn_sv_recv_tell(struct urn_sv_qp *q, uint64_t wr_id, const struct urn_sess_header *h)
{
	struct ibv_wc wc = {
		.wr_id = wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = h->op == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
								      : IBV_WC_RECV,
		.byte_len = h->length,
		.qp_num = q->ibv.qp_num,
	};

	if (h->flags & URN_SESS_H_IMM) {
		wc.imm_data = htobe32(h->word);
		wc.wc_flags = IBV_WC_WITH_IMM;
	}
	urn_sv_push((struct urn_sv_cq *)q->ibv.recv_cq, &wc, q, false,
		    (h->flags & URN_SESS_H_SOLICITED) != 0);
}

void
urn_sv_recv_done(struct urn_sv_qp *q, uint32_t index, const struct urn_sess_header *h)
{
	q->recv_head = index + 1;
	urn_sv_recv_tell(q, q->rwr[index & (q->rwrs - 1)].wr_id, h);
}

void
urn_sv_recv_flush(struct urn_sv_qp *q)
{
	struct ibv_wc wc = {
		.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qp_num = q->ibv.qp_num};

	for (; q->recv_head != q->recv_tail; q->recv_head++) {
		wc.wr_id = q->rwr[q->recv_head & (q->rwrs - 1)].wr_id;
		urn_sv_push((struct urn_sv_cq *)q->ibv.recv_cq, &wc, q, false, true);
	}
	q->recv_posted = q->recv_tail;
}

/* Keep a receive in the ring. returns: 0 or an errno value */
static int
urn_sv_recv_keep(struct urn_sv_qp *q, const struct ibv_recv_wr *wr)
{
	struct urn_sv_rwr *r = &q->rwr[q->recv_tail & (q->rwrs - 1)];
	struct ibv_sge *to = urn_sv_recv_sges(q, q->recv_tail);

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->cap.max_recv_sge)
		return EINVAL;
	if (q->recv_held >= q->cap.max_recv_wr)
		return ENOMEM;
	*r = (struct urn_sv_rwr){.wr_id = wr->wr_id, .num_sge = (uint32_t)wr->num_sge};
	for (int i = 0; i < wr->num_sge; i++) {
		to[i] = wr->sg_list[i];
		r->room = r->room + wr->sg_list[i].length < r->room
				  ? UINT32_MAX
				  : r->room + wr->sg_list[i].length;
	}
	q->recv_held++;
	q->recv_tail++;
	return 0;
}

static int
urn_sv_recv_session(struct urn_sv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = q->ibv.state == IBV_QPS_RESET ? EINVAL : 0;

	*bad = wr;
	for (; wr != NULL && err == 0; wr = wr->next) {
		*bad = wr;
		err = urn_sv_recv_keep(q, wr);
	}
	if (q->recv_live)
		urn_sv_recv_rest(q);
	if (q->mode == URN_SV_SESSION && q->c.state == URN_SESS_DEAD && !q->keeps)
		urn_sv_recv_flush(q);
	return err;
}

int
urn_sv_recv_plain(const struct urn_sv_pd *pd, struct ibv_qp *qp, struct ibv_srq *srq,
		  struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_sge sge[URN_SV_SGES + 1];
	int err = 0;

	if (urn_sv_ctx(pd->ibv.context)->returned[0] == 0)
		return srq != NULL ? ibv_post_srq_recv(srq, wr, bad) : ibv_post_recv(qp, wr, bad);
	/* Keys are not those of a primary adapter that came back. */
	for (; wr != NULL && err == 0; wr = wr->next) {
		struct ibv_recv_wr one = *wr, *unused;

		*bad = wr;
		one.next = NULL;
		one.sg_list = urn_sv_translated(pd, sge, wr->sg_list, wr->num_sge);
		err = srq != NULL ? ibv_post_srq_recv(srq, &one, &unused)
				  : ibv_post_recv(qp, &one, &unused);
	}
	return err;
}

int
urn_sv_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	int err = EIO;

	if (q->srq != NULL) {
		*bad = wr;
		return EINVAL;
	}
	if (!q->can || q->mode == URN_SV_PLAIN)
		return urn_sv_recv_plain(q->pd, q->path[0].real, NULL, wr, bad);
	urn_sv_lock(q->ctx);
	*bad = wr;
	if (!q->ctx->forked)
		err = urn_sv_recv_session(q, wr, bad);
	urn_sv_unlock(q->ctx);
	return err;
}
