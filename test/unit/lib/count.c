/* SPDX-License-Identifier: BSD-3-Clause */
#include "count_priv.h"

#include <urnic/cm.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct count count;

/* Each object begins with the front's, and owns one of the context below; NULL: it is made up. */
struct count_ctx {
	struct ibv_context *below;
	struct urn_verbs_ctx front; /* last */
};

struct count_pd {
	struct ibv_pd ibv;
	struct ibv_pd *below;
};

struct count_mr {
	struct ibv_mr ibv;
	struct ibv_mr *below;
};

struct count_mw {
	struct ibv_mw ibv;
	struct ibv_mw *below;
};

struct count_ah {
	struct ibv_ah ibv;
	struct ibv_ah *below;
};

struct count_channel {
	struct ibv_comp_channel ibv;
	struct ibv_comp_channel *below;
	struct ibv_cq *newest; /* made up: the queue that events name */
};

struct count_srq {
	struct ibv_srq ibv;
	struct ibv_srq *below;
};

#define CALLED(op) (count.calls[COUNT(op)]++)
#define BELOW(type, obj) (((struct count_##type *)(obj))->below)

struct ibv_context *
count_below(struct ibv_context *c)
{
	return ((struct count_ctx *)((uint8_t *)c - offsetof(struct count_ctx, front.vctx.context)))
		->below;
}

void *
count_object(size_t size)
{
	if (count.fail == 0)
		return urn_object_alloc(size);
	urn_fail(count.fail, "the test wants it");
	return NULL;
}

/* Finish an object, unless the one that it was to own could not be made. */
#define MADE(o)                                      \
	do {                                         \
		if (!count.made_up && !(o)->below) { \
			free(o);                     \
			return NULL;                 \
		}                                    \
	} while (0)

/* ---- devices */

static void
tell(struct ibv_context *under, struct urn_verbs_id *id)
{
	snprintf(id->name, sizeof(id->name), "over_%.50s", urn_verbs_ctx(under)->id.name);
	id->guid = urn_verbs_ctx(under)->id.guid;
}

static int
count_identify(void *arg, struct urn_verbs_id *id)
{
	CALLED(identify);
	tell(arg, id);
	return ibv_close_device(arg);
}

static struct urn_verbs_ctx *
count_open(void *arg)
{
	struct count_ctx *ctx = count_object(sizeof(*ctx));
	struct ibv_context *under = arg;

	CALLED(open);
	if (!ctx) {
		ibv_close_device(under);
		return NULL;
	}
	ctx->below = under;
	tell(under, &ctx->front.id);
	ctx->front.gids = urn_verbs_ctx(under)->gids;
	ctx->front.max_cqe = urn_verbs_ctx(under)->max_cqe;
	ctx->front.vctx.context.async_fd = under->async_fd;
	ctx->front.vctx.context.num_comp_vectors = under->num_comp_vectors;
	return &ctx->front;
}

static void
count_close(struct ibv_context *c)
{
	CALLED(close);
	ibv_close_device(count_below(c));
	free((uint8_t *)c - offsetof(struct count_ctx, front.vctx.context));
}

static int
count_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr)
{
	CALLED(query_device);
	return count.made_up ? 0 : ibv_query_device_ex(count_below(c), NULL, attr);
}

static int
count_query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	CALLED(query_port);
	return count.made_up ? 0 : ibv_query_port(count_below(c), 1, attr);
}

static int
count_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	CALLED(query_gid);
	return count.made_up ? ENODATA : ibv_query_gid(count_below(c), 1, (int)index, gid);
}

/* Acknowledged below at once: the program acknowledges the event of the object that it knows. */
static int
count_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	struct ibv_async_event under;
	struct count_qp *qp;

	CALLED(get_async_event);
	event->event_type = IBV_EVENT_PORT_ACTIVE;
	event->element.port_num = 1;
	if (count.made_up)
		return 0;
	if (ibv_get_async_event(count_below(c), &under) != 0)
		return -1;
	*event = under;
	if (under.event_type == IBV_EVENT_QP_FATAL) {
		qp = under.element.qp->qp_context;
		qp->got++;
		event->element.qp = &qp->ex.qp_base;
	}
	ibv_ack_async_event(&under);
	return 0;
}

/* ---- memory and addresses */

static struct ibv_pd *
count_alloc_pd(struct ibv_context *c)
{
	struct count_pd *pd = count_object(sizeof(*pd));

	CALLED(alloc_pd);
	if (!pd || count.made_up)
		return pd ? &pd->ibv : NULL;
	pd->below = ibv_alloc_pd(count_below(c));
	MADE(pd);
	return &pd->ibv;
}

static int
count_dealloc_pd(struct ibv_pd *pd)
{
	CALLED(dealloc_pd);
	return BELOW(pd, pd) ? ibv_dealloc_pd(BELOW(pd, pd)) : 0;
}

static struct ibv_mr *
count_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct count_mr *mr = count_object(sizeof(*mr));

	CALLED(reg_mr);
	if (!mr || count.made_up)
		return mr ? &mr->ibv : NULL;
	mr->below = ibv_reg_mr_iova2(BELOW(pd, pd), addr, length, iova, access);
	MADE(mr);
	mr->ibv.lkey = mr->below->lkey;
	mr->ibv.rkey = mr->below->rkey;
	return &mr->ibv;
}

static int
count_dereg_mr(struct ibv_mr *mr)
{
	CALLED(dereg_mr);
	return BELOW(mr, mr) ? ibv_dereg_mr(BELOW(mr, mr)) : 0;
}

static int
count_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	       unsigned int access)
{
	CALLED(rereg_mr);
	return BELOW(mr, mr) ? ibv_rereg_mr(BELOW(mr, mr), flags, BELOW(pd, pd), addr, length,
					    (int)access)
			     : 0;
}

static struct ibv_mw *
count_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct count_mw *mw = count_object(sizeof(*mw));

	CALLED(alloc_mw);
	if (!mw || count.made_up)
		return mw ? &mw->ibv : NULL;
	mw->below = ibv_alloc_mw(BELOW(pd, pd), type);
	MADE(mw);
	mw->ibv.rkey = mw->below->rkey;
	return &mw->ibv;
}

static int
count_dealloc_mw(struct ibv_mw *mw)
{
	CALLED(dealloc_mw);
	return BELOW(mw, mw) ? ibv_dealloc_mw(BELOW(mw, mw)) : 0;
}

static struct ibv_ah *
count_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct count_ah *ah = count_object(sizeof(*ah));
	struct ibv_ah_attr same = *attr;

	CALLED(create_ah);
	if (!ah || count.made_up)
		return ah ? &ah->ibv : NULL;
	ah->below = ibv_create_ah(BELOW(pd, pd), &same);
	MADE(ah);
	return &ah->ibv;
}

static int
count_destroy_ah(struct ibv_ah *ah)
{
	CALLED(destroy_ah);
	return BELOW(ah, ah) ? ibv_destroy_ah(BELOW(ah, ah)) : 0;
}

/* ---- completions */

static struct ibv_comp_channel *
count_create_comp_channel(struct ibv_context *c)
{
	struct count_channel *ch = count_object(sizeof(*ch));

	CALLED(create_comp_channel);
	if (!ch || count.made_up)
		return ch ? &ch->ibv : NULL;
	ch->below = ibv_create_comp_channel(count_below(c));
	MADE(ch);
	ch->ibv.fd = ch->below->fd;
	return &ch->ibv;
}

static int
count_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	CALLED(destroy_comp_channel);
	return BELOW(channel, channel) ? ibv_destroy_comp_channel(BELOW(channel, channel)) : 0;
}

static int
count_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out)
{
	struct count_channel *ch = (struct count_channel *)channel;
	struct ibv_cq *under;
	void *cq = ch->newest;

	CALLED(get_cq_event);
	if (ch->below) {
		if (ibv_get_cq_event(ch->below, &under, &cq) != 0)
			return -1;
		ibv_ack_cq_events(under, 1);
	}
	((struct count_cq *)cq)->got++;
	*out = cq;
	return 0;
}

static struct ibv_cq_ex *
count_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_comp_channel *ch = attr->channel;
	struct ibv_cq_init_attr_ex under = *attr;
	struct count_cq *cq = count_object(sizeof(*cq));

	CALLED(create_cq);
	if (!cq)
		return NULL;
	if (ch)
		((struct count_channel *)ch)->newest = (struct ibv_cq *)cq;
	if (count.made_up)
		return &cq->ex;
	under.cq_context = cq;
	under.channel = ch ? BELOW(channel, ch) : NULL;
	under.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cq->below = ibv_cq_ex_to_cq(ibv_create_cq_ex(count_below(c), &under));
	MADE(cq);
	cq->ex.handle = cq->below->handle;
	cq->ex.cqe = cq->below->cqe;
	count_cq_ex(cq);
	return &cq->ex;
}

static int
count_resize_cq(struct ibv_cq *cq, uint32_t cqe)
{
	CALLED(resize_cq);
	return BELOW(cq, cq) ? ibv_resize_cq(BELOW(cq, cq), (int)cqe) : 0;
}

static int
count_destroy_cq(struct ibv_cq *cq)
{
	int err = BELOW(cq, cq) ? ibv_destroy_cq(BELOW(cq, cq)) : 0;

	CALLED(destroy_cq);
	if (err == 0)
		urn_acks_wait(&cq->mutex, &cq->cond, &cq->comp_events_completed,
			      ((struct count_cq *)cq)->got);
	return err;
}

/* ---- queues */

static struct ibv_srq *
count_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct count_srq *srq = count_object(sizeof(*srq));
	struct ibv_srq_init_attr init = {.attr = *attr};

	(void)cq;
	CALLED(create_srq);
	if (!srq || count.made_up)
		return srq ? &srq->ibv : NULL;
	srq->below = ibv_create_srq(BELOW(pd, pd), &init);
	MADE(srq);
	*attr = init.attr;
	return &srq->ibv;
}

static int
count_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct ibv_srq_attr same = *attr;

	CALLED(modify_srq);
	return BELOW(srq, srq) ? ibv_modify_srq(BELOW(srq, srq), &same, mask) : 0;
}

static int
count_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	CALLED(query_srq);
	return BELOW(srq, srq) ? ibv_query_srq(BELOW(srq, srq), attr) : 0;
}

static int
count_destroy_srq(struct ibv_srq *srq)
{
	CALLED(destroy_srq);
	return BELOW(srq, srq) ? ibv_destroy_srq(BELOW(srq, srq)) : 0;
}

static struct ibv_qp *
count_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct count_qp *qp = count_object(sizeof(*qp));
	struct ibv_qp_init_attr_ex init = *attr;

	CALLED(create_qp);
	if (!qp || count.made_up)
		return qp ? &qp->ex.qp_base : NULL;
	init.qp_context = qp;
	init.pd = BELOW(pd, attr->pd);
	init.send_cq = BELOW(cq, attr->send_cq);
	init.recv_cq = BELOW(cq, attr->recv_cq);
	init.srq = attr->srq ? BELOW(srq, attr->srq) : NULL;
	init.comp_mask |= IBV_QP_INIT_ATTR_PD;
	qp->below = ibv_create_qp_ex(init.pd->context, &init);
	MADE(qp);
	attr->cap = init.cap;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		count_qp_ex(qp);
	qp->ex.qp_base.handle = qp->below->handle;
	qp->ex.qp_base.qp_num = qp->below->qp_num;
	return &qp->ex.qp_base;
}

static int
count_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr same = *attr;

	CALLED(modify_qp);
	return BELOW(qp, qp) ? ibv_modify_qp(BELOW(qp, qp), &same, mask) : 0;
}

static int
count_connect_qp(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
		 const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached)
{
	struct ibv_qp *under = BELOW(qp, qp);
	int err;

	CALLED(connect_qp);
	*reached = IBV_QPS_RTS;
	if (!under)
		return 0;
	err = urn_cm_qp_ready(under, rtr, rtr_mask, rts, rts_mask);
	*reached = under->state;
	return err;
}

static int
count_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	CALLED(query_qp);
	return BELOW(qp, qp) ? ibv_query_qp(BELOW(qp, qp), attr, mask, init) : 0;
}

static int
count_destroy_qp(struct ibv_qp *qp)
{
	int err = BELOW(qp, qp) ? ibv_destroy_qp(BELOW(qp, qp)) : 0;

	CALLED(destroy_qp);
	if (err == 0)
		urn_acks_wait(&qp->mutex, &qp->cond, &qp->events_completed,
			      ((struct count_qp *)qp)->got);
	return err;
}

static int
count_mcast(struct ibv_qp *qp, const union ibv_gid *gid, bool attach)
{
	struct ibv_qp *under = BELOW(qp, qp);
	enum ibv_qp_type type = under ? under->qp_type : qp->qp_type;
	int err = 0;

	CALLED(mcast);
	if (!under)
		return 0;
	under->qp_type = qp->qp_type; /* only datagrams get through the front */
	err = attach ? ibv_attach_mcast(under, gid, 0) : ibv_detach_mcast(under, gid, 0);
	under->qp_type = type;
	return err;
}

static int
count_align_qp(struct ibv_qp *qp, uint32_t line)
{
	CALLED(align_qp);
	return BELOW(qp, qp) ? urn_qp_align(BELOW(qp, qp), line) : 0;
}

static int
count_explain(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size)
{
	(void)c;
	CALLED(explain);
	snprintf(text, size, "explained %u %u", qpn, status);
	return 0;
}

static int
count_query_stores(struct ibv_mr *mr, struct urn_stores *stores)
{
	CALLED(query_stores);
	return BELOW(mr, mr) ? urn_mr_stores(BELOW(mr, mr), stores) : 0;
}

/* ---- the fast path; keys and QP numbers are those of the objects below */

static int
count_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	CALLED(post_send);
	return BELOW(qp, qp) ? ibv_post_send(BELOW(qp, qp), wr, bad) : 0;
}

static int
count_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	CALLED(post_recv);
	return BELOW(qp, qp) ? ibv_post_recv(BELOW(qp, qp), wr, bad) : 0;
}

static int
count_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	CALLED(post_srq_recv);
	return BELOW(srq, srq) ? ibv_post_srq_recv(BELOW(srq, srq), wr, bad) : 0;
}

static int
count_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_mw_bind same = *bind;
	int err;

	CALLED(bind_mw);
	if (!BELOW(qp, qp))
		return 0;
	same.bind_info.mr = BELOW(mr, bind->bind_info.mr);
	err = ibv_bind_mw(BELOW(qp, qp), BELOW(mw, mw), &same);
	mw->rkey = BELOW(mw, mw)->rkey;
	return err;
}

static int
count_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	CALLED(poll_cq);
	return BELOW(cq, cq) ? ibv_poll_cq(BELOW(cq, cq), n, wc) : 0;
}

static int
count_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	CALLED(req_notify_cq);
	return BELOW(cq, cq) ? ibv_req_notify_cq(BELOW(cq, cq), solicited_only) : 0;
}

const struct urn_verbs_ops count_ops = {
	.discover = count_discover,
	.make = count_make,
	.identify = count_identify,
	.open = count_open,
	.close = count_close,
	.query_device = count_query_device,
	.query_port = count_query_port,
	.query_gid = count_query_gid,
	.get_async_event = count_get_async_event,
	.alloc_pd = count_alloc_pd,
	.dealloc_pd = count_dealloc_pd,
	.reg_mr = count_reg_mr,
	.dereg_mr = count_dereg_mr,
	.rereg_mr = count_rereg_mr,
	.alloc_mw = count_alloc_mw,
	.dealloc_mw = count_dealloc_mw,
	.create_ah = count_create_ah,
	.destroy_ah = count_destroy_ah,
	.create_comp_channel = count_create_comp_channel,
	.destroy_comp_channel = count_destroy_comp_channel,
	.get_cq_event = count_get_cq_event,
	.create_cq = count_create_cq,
	.resize_cq = count_resize_cq,
	.destroy_cq = count_destroy_cq,
	.create_srq = count_create_srq,
	.modify_srq = count_modify_srq,
	.query_srq = count_query_srq,
	.destroy_srq = count_destroy_srq,
	.create_qp = count_create_qp,
	.modify_qp = count_modify_qp,
	.connect_qp = count_connect_qp,
	.query_qp = count_query_qp,
	.destroy_qp = count_destroy_qp,
	.mcast = count_mcast,
	.align_qp = count_align_qp,
	.explain = count_explain,
	.query_stores = count_query_stores,
	.post_send = count_post_send,
	.post_recv = count_post_recv,
	.post_srq_recv = count_post_srq_recv,
	.bind_mw = count_bind_mw,
	.poll_cq = count_poll_cq,
	.req_notify_cq = count_req_notify_cq,
	.cm = &count_cm_ops,
};
