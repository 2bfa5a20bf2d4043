/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapters of srq_rig.h. */
#include "srq_rig.h"

#include "session/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t
srq_adapter(const struct ibv_context *c)
{
	return c == srq_rig->below[1];
}

static int
there(const struct ibv_context *c)
{
	return srq_rig->ctx.dead[srq_adapter(c)] || srq_rig->silent[srq_adapter(c)]
		       ? urn_fail(EIO, "the test has killed the adapter")
		       : 0;
}

static struct urn_verbs_ctx *
below_open(void *arg)
{
	struct urn_verbs_ctx *c = urn_object_alloc(sizeof(*c));

	(void)arg;
	assert_non_null(c);
	c->max_cqe = 1 << 16;
	c->vctx.context.num_comp_vectors = 1;
	c->vctx.context.async_fd = -1;
	return c;
}

static void
below_close(struct ibv_context *c)
{
	free(urn_verbs_ctx(c));
}

static struct ibv_pd *
below_pd(struct ibv_context *c)
{
	(void)c;
	return urn_object_alloc(sizeof(struct ibv_pd));
}

static int
below_pd_end(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

static struct ibv_mr *
below_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	(void)pd, (void)addr, (void)length, (void)iova, (void)access;
	return urn_object_alloc(sizeof(struct ibv_mr));
}

static int
below_mr_end(struct ibv_mr *mr)
{
	(void)mr;
	return 0;
}

static struct ibv_cq_ex *
below_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct srq_below_cq *cq = urn_object_alloc(sizeof(*cq));

	(void)c;
	cq->ibv.cqe = (int)attr->cqe;
	return &cq->ex;
}

static int
below_cq_resize(struct ibv_cq *cq, uint32_t cqe)
{
	cq->cqe = (int)cqe;
	return 0;
}

static int
below_cq_end(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

static struct ibv_srq *
below_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	(void)pd, (void)attr, (void)cq;
	return urn_object_alloc(sizeof(struct srq_below));
}

static int
below_srq_modify(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	(void)mask;
	((struct srq_below *)srq)->limit = attr->srq_limit;
	return there(srq->context);
}

static int
below_srq_end(struct ibv_srq *srq)
{
	(void)srq;
	return 0;
}

static struct ibv_qp *
below_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct srq_below_qp *qp = urn_object_alloc(sizeof(*qp));

	qp->ibv.qp_num = ++srq_rig->numbers;
	qp->ibv.srq = attr->srq;
	return &qp->ibv;
}

static void
push(struct srq_below_cq *cq, const struct ibv_wc *wc)
{
	cq->ring[cq->tail++ % (8 * SRQ_ENTRIES)] = *wc;
}

static struct srq_below_cq *
recv_cq(const struct srq_below_qp *qp)
{
	return (struct srq_below_cq *)srq_rig->cq.below[srq_adapter(qp->ibv.context)];
}

void
srq_complete(struct srq_below_qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = qp->taken[0],
			    .status = status,
			    .opcode = IBV_WC_RECV,
			    .byte_len = qp->bytes[0],
			    .qp_num = qp->ibv.qp_num};

	assert_true(qp->has != 0);
	memmove(qp->taken, qp->taken + 1, --qp->has * sizeof(qp->taken[0]));
	memmove(qp->bytes, qp->bytes + 1, qp->has * sizeof(qp->bytes[0]));
	push(recv_cq(qp), &wc);
}

void
srq_give(struct srq_below_qp *qp)
{
	assert_int_equal(qp->state, IBV_QPS_ERR);
	while (qp->has != 0)
		srq_complete(qp, IBV_WC_WR_FLUSH_ERR);
}

static int
below_qp_modify(struct ibv_qp *ibv, const struct ibv_qp_attr *attr, int mask)
{
	struct srq_below_qp *qp = (struct srq_below_qp *)ibv;
	int err = there(ibv->context);

	if (err != 0 || !(mask & IBV_QP_STATE))
		return err;
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_ERR && !srq_rig->late)
		srq_give(qp);
	if (qp->state == IBV_QPS_RESET)
		qp->has = 0; /* receives in hand are nobody's any more */
	return 0;
}

static int
below_qp_end(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

/* The peer hears a message of a connection. */
static void
hear(const struct ibv_send_wr *wr)
{
	struct urn_sess_msg m;

	for (uint32_t n = 0; n < srq_rig->connections; n++) {
		struct srq_peer *p = &srq_rig->peer[n];

		if (urn_sess_wire_get((void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length,
				      SRQ_PEER + n, &m) != URN_SESS_V_OK)
			continue;
		if (m.kind == URN_SESS_WIRE_REPORT && !(m.told.flags & URN_SESS_R_DEAD)) {
			p->reported = m.epoch;
			p->received = m.told.received;
			p->waits = true;
		}
	}
}

static int
below_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id, .qp_num = qp->qp_num, .opcode = IBV_WC_SEND};

	*bad = wr;
	if (there(qp->context) != 0)
		return EIO;
	if (wr->opcode == IBV_WR_SEND)
		hear(wr);
	push((struct srq_below_cq *)srq_rig->ctx.ctl_cq[srq_adapter(qp->context)], &wc);
	return 0;
}

/* Receives of control paths. */
static int
below_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return there(qp->context);
}

static int
below_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct srq_below *b = (struct srq_below *)srq;

	*bad = wr;
	if (there(srq->context) != 0)
		return EIO;
	if (b->tail - b->head == SRQ_ENTRIES)
		return ENOMEM;
	b->wr_id[b->tail % SRQ_ENTRIES] = wr->wr_id;
	b->header[b->tail++ % SRQ_ENTRIES] = (void *)(uintptr_t)wr->sg_list[0].addr;
	return 0;
}

static int
below_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct srq_below_cq *cq = (struct srq_below_cq *)ibv;
	int got = 0;

	for (; got < n && cq->head != cq->tail; cq->head++)
		wc[got++] = cq->ring[cq->head % (8 * SRQ_ENTRIES)];
	return got;
}

const struct urn_verbs_ops srq_below_ops = {
	.open = below_open,
	.close = below_close,
	.alloc_pd = below_pd,
	.dealloc_pd = below_pd_end,
	.reg_mr = below_mr,
	.dereg_mr = below_mr_end,
	.create_cq = below_cq,
	.resize_cq = below_cq_resize,
	.destroy_cq = below_cq_end,
	.create_srq = below_srq,
	.modify_srq = below_srq_modify,
	.destroy_srq = below_srq_end,
	.create_qp = below_qp,
	.modify_qp = below_qp_modify,
	.destroy_qp = below_qp_end,
	.post_send = below_post_send,
	.post_recv = below_post_recv,
	.post_srq_recv = below_post_srq,
	.poll_cq = below_poll,
};
