/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on queue pairs. The QP itself is made, changed and freed in
 * the thread of the engine that owns it; the client's doorbell id leads there.
 * Control keeps no state of a QP but reads it off the QP, so
 * that an idle QP costs no more than it must (struct view).
 */
#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "engine/sources.h"

#include "abi/clock.h"

/*
 * ns that a change to ERR waits for memory operations of the QP. Longer than the most patient
 * session waits (four times 60 s, and once more: doc/inside/failover.md "Silence").
 */
#define FENCE_NS (330 * 1000000000ull)

/* Control's view of a QP, which may still be in the making. */
struct view {
	struct urn_qp *qp;
	uint32_t vector;           /* the vector of its engine */
	uint64_t sq_off, sq_bytes; /* in the client's area */
	uint64_t rq_off, rq_bytes; /* with an SRQ: the queue of taken receives */
	struct urn_ctl_cq *send_cq, *recv_cq;
	struct urn_ctl_srq *srq;
	uint64_t log_off, log_bytes; /* log of atomics; 0: there is none */
	struct urn_abi_qp_cap cap; /* granted capabilities */
};

/* ---- checks */

static int
check_create(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
	     struct view *q)
{
	const char *name = c->adapter->cfg.name;

	if (!urn_client_uses_pd(c, req->create_qp.pd))
		return urn_ctl_fail(rep, EINVAL, "%s: no protection domain %u", name,
				    req->create_qp.pd);
	/* All shards of an adapter have the same services. */
	if (!urn_qp_offered(urn_adapter_shard(c->adapter, 0)->tp, req->create_qp.type))
		return urn_ctl_fail(rep, EOPNOTSUPP, "%s: QPs are of type RC, UC or UD, not %u",
				    name, req->create_qp.type);
	q->send_cq = urn_handles_get(&c->cqs, req->create_qp.send_cq);
	q->recv_cq = urn_handles_get(&c->cqs, req->create_qp.recv_cq);
	if (!q->send_cq || !q->recv_cq)
		return urn_ctl_fail(rep, EINVAL, "%s: no completion queue %u", name,
				    q->send_cq ? req->create_qp.recv_cq : req->create_qp.send_cq);
	if (req->create_qp.srq && req->create_qp.type == URN_QPT_UC)
		return urn_ctl_fail(rep, EINVAL, "%s: a UC QP takes no shared receive queue", name);
	if (req->create_qp.srq) {
		q->srq = urn_handles_get(&c->srqs, req->create_qp.srq);
		if (!q->srq)
			return urn_ctl_fail(rep, EINVAL, "%s: no SRQ %u", name, req->create_qp.srq);
	}
	return urn_ctl_check_caps(c, req, rep);
}

/* ---- queues in the client's area */

#define TAKEN_BYTES (URN_ABI_WQ_SLOTS + (uint64_t)URN_ABI_TAKEN * sizeof(uint64_t))

static int
lay_out(struct urn_client *c, const struct urn_abi_req *req, struct view *q,
	struct urn_qp_config *cfg)
{
	const struct urn_abi_qp_cap *cap = &req->create_qp.cap;
	uint32_t ssge = cap->max_send_sge ? cap->max_send_sge : 1;
	uint32_t rsge = cap->max_recv_sge ? cap->max_recv_sge : 1;
	uint32_t sstride = urn_abi_sq_stride(ssge, cap->max_inline);
	uint32_t room = sstride - (uint32_t)sizeof(struct urn_abi_swqe);
	uint32_t sn = urn_pow2(cap->max_send_wr), rn = urn_pow2(cap->max_recv_wr);
	int rc;

	q->sq_bytes = URN_ABI_WQ_SLOTS + (uint64_t)sn * sstride;
	rc = urn_client_alloc(c, q->sq_bytes, &q->sq_off);
	if (rc != 0)
		return rc;
	q->cap.max_send_wr = sn;
	q->cap.max_send_sge = ssge;
	q->cap.max_inline = room < URN_ABI_MAX_INLINE ? room : URN_ABI_MAX_INLINE;
	cfg->sq = (struct urn_sq){
		.hdr = (void *)(c->area.base + q->sq_off),
		.mask = sn - 1,
		.stride = (uint16_t)sstride,
		.max_sge = (uint8_t)ssge,
		.max_inline = (uint16_t)q->cap.max_inline,
	};
	q->rq_bytes = q->srq ? TAKEN_BYTES
			     : URN_ABI_WQ_SLOTS + (uint64_t)rn * urn_abi_rq_stride(rsge);
	rc = urn_client_alloc(c, q->rq_bytes, &q->rq_off);
	if (rc != 0) {
		urn_area_free(&c->area, q->sq_off, q->sq_bytes);
		return rc;
	}
	cfg->rq.hdr = (void *)(c->area.base + q->rq_off);
	if (q->srq)
		return 0;
	q->cap.max_recv_wr = rn;
	q->cap.max_recv_sge = rsge;
	cfg->rq = (struct urn_rq){
		.hdr = cfg->rq.hdr,
		.mask = (uint16_t)(rn - 1),
		.stride = (uint16_t)urn_abi_rq_stride(rsge),
		.max_sge = (uint8_t)rsge,
	};
	return 0;
}

static void
free_queues(struct urn_client *c, struct view *q)
{
	urn_area_free(&c->area, q->sq_off, q->sq_bytes);
	urn_area_free(&c->area, q->rq_off, q->rq_bytes);
	if (q->log_bytes)
		urn_area_free(&c->area, q->log_off, q->log_bytes);
}

/* ---- making and ending, in the engine's thread */

/* True when the QPN is of a connection whose last packets may still be on their way. */
static bool
held(void *cm, uint32_t qpn)
{
	return urn_cm_agent_holds_qpn(cm, qpn);
}

struct work {
	struct urn_client *c;
	struct view *q;
	struct urn_qp_config cfg;
	struct urn_abi_rep *rep;
	/* modify */
	uint32_t mask, rts_mask;
	const struct urn_abi_qp_attr *attr, *rts; /* rts: second change, right after attr; NULL: none */
	bool changed;              /* the change by attr is done */
	bool fences;		   /* the change is to ERR, and answered when the QP is fenced */
	uint64_t until; /* fences: ns of urn_clock_ns(): the answer comes then, fenced or not */
	struct urn_pair_claim pair; /* the remote queue pair, where attr connects the QP to one */
	uint64_t log_off, log_bytes; /* the QP's new log of atomics; 0: none */
	int rc;
};

/* Queue pairs of one engine that end together. */
struct group {
	struct work *work;
	unsigned int n;
};

static void
create(void *arg)
{
	struct work *w = arg;
	struct urn_client_shard *s = urn_client_shard(w->c, w->q->vector);
	struct urn_tp *tp = urn_adapter_shard(w->c->adapter, w->q->vector)->tp;
	uint32_t id = 0;

	w->rc = urn_sources_take(s, &id);
	if (w->rc != 0)
		return;
	w->cfg.db = id;
	w->cfg.share = &s->share;
	w->rc = urn_qp_create(tp, &w->cfg, &w->q->qp);
	if (w->rc != 0) {
		urn_sources_drop(s, id);
		return;
	}
	urn_sources_enter(s, &w->q->qp->source);
	s->sq_entries += w->cfg.sq.mask + 1;
}

static void
answer(const struct view *q, const struct urn_qp_config *cfg, struct urn_abi_rep *rep)
{
	rep->handle = q->qp->qpn;
	rep->qp.sq_off = q->sq_off;
	rep->qp.rq_off = q->rq_off;
	rep->qp.sq_entries = cfg->sq.mask + 1;
	rep->qp.rq_entries = q->srq ? 0 : cfg->rq.mask + 1u;
	rep->qp.sq_stride = cfg->sq.stride;
	rep->qp.rq_stride = cfg->rq.stride;
	rep->qp.db = cfg->db;
	rep->qp.engine = q->vector;
	rep->qp.cap = q->cap;
}

static void
share(void *cq)
{
	urn_cq_share(cq);
}

/* Mark a queue of another engine as shared, before the QP is made. */
static void
share_cq(const struct urn_client *c, const struct view *q, struct urn_ctl_cq *cq)
{
	if (cq->vector != q->vector)
		urn_engine_call(urn_adapter_shard(c->adapter, cq->vector)->engine, share, &cq->cq);
}

int
urn_ctl_create_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct view v = {0}, *q = &v;
	struct work w = {.c = c, .q = q};
	int rc = check_create(c, req, rep, q);

	if (rc != 0)
		return rc;
	/* A CQ, its SRQs and its QPs live together (architecture rule 2). */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): urn_ctl_fail() never returns 0 */
	q->vector = q->srq ? q->srq->vector : q->recv_cq->vector;
	rc = lay_out(c, req, q, &w.cfg);
	if (rc != 0)
		return urn_ctl_fail(rep, rc, "%s: no room for the QP's queues in the area of %llu MiB",
				    c->adapter->cfg.name, (unsigned long long)(c->area.size >> 20));
	w.cfg.type = (uint8_t)req->create_qp.type;
	w.cfg.sig_all = req->create_qp.sq_sig_all != 0;
	w.cfg.pd = req->create_qp.pd;
	w.cfg.cookie = req->create_qp.cookie;
	w.cfg.send_cq = &q->send_cq->cq;
	w.cfg.recv_cq = &q->recv_cq->cq;
	w.cfg.srq = q->srq ? &q->srq->srq : NULL;
	w.cfg.held = held;
	w.cfg.held_ctx = c->adapter->cm;
	share_cq(c, q, q->send_cq);
	share_cq(c, q, q->recv_cq);
	urn_engine_call(urn_adapter_shard(c->adapter, q->vector)->engine, create, &w);
	if (w.rc != 0) {
		free_queues(c, q);
		return urn_ctl_fail(rep, w.rc, "%s: no more QPs (at most %u); a connection that ended just "
				    "now keeps its number a while", c->adapter->cfg.name,
				    c->adapter->cfg.max_qp);
	}
	q->send_cq->cq.users++;
	q->recv_cq->cq.users++;
	if (q->srq)
		q->srq->srq.users++;
	urn_mem_pd_hold(c->adapter->mem, w.cfg.pd);
	answer(q, &w.cfg, rep);
	return 0;
}

/* ---- the rest */

#define OWNER_OF(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

static uint64_t
log_bytes(uint32_t depth)
{
	return urn_pow2(depth) * (uint64_t)sizeof(struct urn_abi_atomic);
}

static void
look(const struct urn_client *c, struct urn_qp *qp, struct view *v)
{
	const struct urn_adapter *a = c->adapter;
	uint32_t room = qp->sq.stride - (uint32_t)sizeof(struct urn_abi_swqe);

	memset(v, 0, sizeof(*v));
	v->qp = qp;
	while (a->engine_of[v->vector] != urn_qpn_engine(qp->qpn))
		v->vector++;
	v->send_cq = OWNER_OF(qp->send_cq, struct urn_ctl_cq, cq);
	v->recv_cq = OWNER_OF(qp->recv_cq, struct urn_ctl_cq, cq);
	v->srq = qp->srq ? OWNER_OF(qp->srq, struct urn_ctl_srq, srq) : NULL;
	v->sq_off = (uint64_t)((uint8_t *)qp->sq.hdr - c->area.base);
	v->sq_bytes = URN_ABI_WQ_SLOTS + (qp->sq.mask + 1ull) * qp->sq.stride;
	v->cap.max_send_wr = qp->sq.mask + 1;
	v->cap.max_send_sge = qp->sq.max_sge;
	v->cap.max_inline = room < URN_ABI_MAX_INLINE ? room : URN_ABI_MAX_INLINE;
	v->rq_off = (uint64_t)((uint8_t *)qp->rq.hdr - c->area.base);
	v->rq_bytes = TAKEN_BYTES;
	if (qp->rec && URN_QP_LOG(qp)->entry) {
		v->log_off = (uint64_t)((uint8_t *)URN_QP_LOG(qp)->entry - c->area.base);
		v->log_bytes = log_bytes(qp->rec_mask + 1u);
	}
	if (qp->srq)
		return;
	v->rq_bytes = URN_ABI_WQ_SLOTS + (qp->rq.mask + 1ull) * qp->rq.stride;
	v->cap.max_recv_wr = qp->rq.mask + 1;
	v->cap.max_recv_sge = qp->rq.max_sge;
}

/* The client's QP with this number. The adapter's lock keeps the QP from going away. */
static struct urn_qp *
owned(struct urn_client *c, uint32_t qpn)
{
	unsigned int engine = urn_qpn_engine(qpn);
	struct urn_shard *s = engine < URN_ABI_MAX_ENGINES ? c->adapter->shard[engine] : NULL;
	struct urn_qp *qp = s && qpn <= URN_QPN_MASK ? urn_tp_qp(s->tp, qpn) : NULL;

	return qp && urn_client_of_qp(qp) == c ? qp : NULL;
}

struct urn_qp *
urn_client_qp(struct urn_client *c, uint32_t qpn)
{
	return owned(c, qpn);
}

bool
urn_client_owns_qp(struct urn_client *c, uint32_t qpn)
{
	return owned(c, qpn) != NULL;
}

static bool
find(struct urn_client *c, uint32_t qpn, struct urn_abi_rep *rep, struct view *v)
{
	struct urn_qp *qp = owned(c, qpn);

	if (!qp) {
		urn_ctl_fail(rep, EINVAL, "%s: no QP 0x%x", c->adapter->cfg.name, qpn);
		return false;
	}
	look(c, qp, v);
	return true;
}

/* Have the QP's completions that other engines hold written before the call is answered. */
static void
settle(const struct urn_client *c, const struct view *q)
{
	urn_adapter_pass_completions(c, q->vector, q->send_cq->vector);
	urn_adapter_pass_completions(c, q->vector, q->recv_cq->vector);
}

/* Let the QP in ERR give up what it has in hand: EAGAIN until it has. */
static void
fence(struct work *w, struct urn_tp *tp)
{
	w->rc = urn_qp_fence(tp, w->q->qp) ? 0 : EAGAIN;
	if (w->rc != 0 && urn_clock_ns() >= w->until)
		w->rc = urn_ctl_fail(
			w->rep, ETIMEDOUT,
			"QP 0x%x is in ERR, but the program's memory does not answer: a "
			"packet may still be placed",
			w->q->qp->qpn);
}

static void
modify(void *arg)
{
	struct work *w = arg;
	struct urn_tp *tp = urn_adapter_shard(w->c->adapter, w->q->vector)->tp;

	urn_tp_poll_memory(tp);
	if (!w->changed) {
		w->rc = urn_qp_modify(tp, w->q->qp, w->mask, w->attr, w->rep->why, sizeof(w->rep->why));
		if (w->rc == 0 && w->log_bytes && w->q->qp->rec)
			urn_qp_log_atomics(w->q->qp, (void *)(w->c->area.base + w->log_off), w->log_off);
		if (w->rc == 0 && w->pair.made)
			urn_pair_hold(w->q->qp, &w->pair);
		w->changed = w->rc == 0;
	}
	if (w->changed && w->rts)
		w->rc = urn_qp_modify(tp, w->q->qp, w->rts_mask, w->rts, w->rep->why, sizeof(w->rep->why));
	if (w->changed && w->fences)
		fence(w, tp);
}

/* Make a log in the client's area for a QP that peers may ask for atomics. */
static int
make_log(struct work *w)
{
	const struct urn_abi_qp_attr *a = w->attr;
	int rc;

	if (!(w->mask & URN_QPM_MAX_DEST_RD_ATOMIC) || !a->max_dest_rd_atomic ||
	    a->max_dest_rd_atomic > URN_ABI_MAX_RD_ATOMIC)
		return 0;
	rc = urn_client_alloc(w->c, log_bytes(a->max_dest_rd_atomic), &w->log_off);
	if (rc != 0)
		return urn_ctl_fail(w->rep, rc, "%s: no room for a log of atomics in the area of %llu MiB",
				    w->c->adapter->cfg.name, (unsigned long long)(w->c->area.size >> 20));
	w->log_bytes = log_bytes(a->max_dest_rd_atomic);
	return 0;
}

/* Free the one of the old and the new log that the QP does not use. */
static void
drop_log(struct work *w)
{
	struct view now;

	look(w->c, w->q->qp, &now);
	if (w->q->log_bytes && (!now.log_bytes || now.log_off != w->q->log_off))
		urn_area_free(&w->c->area, w->q->log_off, w->q->log_bytes);
	if (w->log_bytes && (!now.log_bytes || now.log_off != w->log_off))
		urn_area_free(&w->c->area, w->log_off, w->log_bytes);
}

/* Claim the remote QP for the client, before its RC or UC QP is connected. returns 0 or an errno
 * value */
static int
claim_pair(struct work *w)
{
	const struct urn_qp *qp = w->q->qp;

	if (qp->type == URN_QPT_UD || !(w->mask & URN_QPM_AV))
		return 0;
	memcpy(w->pair.dgid, w->attr->av.dgid, 16);
	w->pair.dqpn = w->mask & URN_QPM_DEST_QPN ? w->attr->dest_qpn : qp->dest_qpn;
	return urn_pair_claim(w->c, w->q->qp, &w->pair, w->rep);
}

/* The change is over: keep the valid claim and drop the other. was: the QP's remote QP before */
static void
settle_pair(struct work *w, const struct urn_pair_claim *was)
{
	bool reset = w->changed && (w->mask & URN_QPM_STATE) && w->attr->state == URN_QPS_RESET;

	if (w->pair.made && !w->changed)
		urn_pair_drop(w->c, w->q->qp, w->pair.dgid, w->pair.dqpn);
	if (reset || (w->pair.made && w->changed))
		urn_pair_drop(w->c, w->q->qp, was->dgid, was->dqpn);
	if (w->pair.stands && w->changed)
		urn_pair_won(w->c, &w->pair);
}

static int
change(struct work *w)
{
	struct urn_client *c = w->c;
	struct urn_pair_claim was = {.dqpn = w->q->qp->dest_qpn};

	memcpy(was.dgid, w->q->qp->av.dgid, 16);
	w->rc = make_log(w);
	if (w->rc == 0)
		w->rc = claim_pair(w);
	if (w->rc != 0) {
		drop_log(w);
		return w->rc;
	}
	for (;;) {
		urn_engine_call(urn_adapter_shard(c->adapter, w->q->vector)->engine, modify, w);
		if (w->rc != EAGAIN)
			break;
		urn_ctl_wait(c); /* memory operations in flight end first */
	}
	drop_log(w);
	settle_pair(w, &was);
	return w->rc;
}

int
urn_ctl_modify_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	uint32_t mask = req->modify_qp.mask;
	uint8_t to = mask & URN_QPM_STATE ? req->modify_qp.attr.state : URN_QP_STATES;
	struct view v;
	struct work w = {.c = c,
			 .q = &v,
			 .rep = rep,
			 .mask = mask,
			 .attr = &req->modify_qp.attr,
			 .fences = to == URN_QPS_ERR,
			 .until = urn_clock_ns() + FENCE_NS};

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	(void)change(&w);
	/* A fence tells what the QP received, wherever its completions go. */
	if (w.rc == 0 && (to == URN_QPS_RESET || to == URN_QPS_ERR))
		settle(c, w.q);
	return w.rc;
}

int
urn_ctl_connect_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_abi_qp_attr *rtr = &req->connect_qp.rtr, *rts = &req->connect_qp.rts;
	uint32_t rtr_mask = req->connect_qp.rtr_mask, rts_mask = req->connect_qp.rts_mask;
	struct view v;
	struct work w = {.c = c, .q = &v, .rep = rep, .mask = rtr_mask, .attr = rtr, .rts_mask = rts_mask,
			 .rts = rts};

	if (!(rtr_mask & rts_mask & URN_QPM_STATE) || rtr->state != URN_QPS_RTR || rts->state != URN_QPS_RTS)
		return urn_ctl_fail(rep, EINVAL, "%s: two changes at a time are to RTR and on to RTS",
				    c->adapter->cfg.name);
	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	(void)change(&w);
	rep->handle = w.rc != 0 && w.changed;
	return w.rc;
}

static void
query(void *arg)
{
	struct work *w = arg;

	urn_qp_query(w->q->qp, &w->rep->qp_attr);
}

int
urn_ctl_query_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct view v;
	struct work w = {.c = c, .q = &v, .rep = rep};

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	urn_engine_call(urn_adapter_shard(c->adapter, w.q->vector)->engine, query, &w);
	rep->qp_attr.cap = w.q->cap;
	return 0;
}

static void
destroy(struct work *w)
{
	struct urn_client_shard *s = urn_client_shard(w->c, w->q->vector);
	struct urn_tp *tp = urn_adapter_shard(w->c->adapter, w->q->vector)->tp;
	struct urn_qp *qp = w->q->qp;

	urn_qp_stop(tp, qp);
	if (!urn_qp_stopped(qp))
		return;
	w->rc = 0;
	urn_sources_drop(s, qp->source.db);
	s->sq_entries -= qp->sq.mask + 1;
	w->cfg.pd = qp->pd;
	urn_pair_drop(w->c, qp, qp->av.dgid, qp->dest_qpn); /* the caller holds the adapter's lock */
	urn_qp_destroy(tp, qp);
}

/* Destroy those of a group that are left: their rc is EAGAIN. One that has windows left ends the
 * call, because a step of windows is all that a call takes. */
static void
destroy_some(void *arg)
{
	struct group *g = arg;

	urn_tp_poll_memory(urn_adapter_shard(g->work->c->adapter, g->work->q->vector)->tp);
	for (unsigned int i = 0; i < g->n; i++) {
		if (g->work[i].rc == 0)
			continue;
		destroy(&g->work[i]);
		if (g->work[i].rc != 0 && g->work[i].q->qp->windows)
			return;
	}
}

static void
end_group(struct urn_client *c, struct group *g)
{
	for (unsigned int gone = 0;;) {
		urn_engine_call(urn_adapter_shard(c->adapter, g->work->q->vector)->engine,
				destroy_some, g);
		for (; gone < g->n && g->work[gone].rc == 0; gone++) {
			struct work *w = &g->work[gone];

			settle(c, w->q);
			w->q->send_cq->cq.users--;
			w->q->recv_cq->cq.users--;
			if (w->q->srq)
				w->q->srq->srq.users--;
			urn_mem_pd_release(c->adapter->mem, w->cfg.pd);
			free_queues(c, w->q);
		}
		if (gone == g->n)
			return;
		urn_ctl_wait(c);
	}
}

void
urn_ctl_end_qps(struct urn_client *c, const uint32_t *qpn, unsigned int n)
{
	struct work w[URN_CTL_TOGETHER];
	struct view v[URN_CTL_TOGETHER];

	for (unsigned int i = 0; i < n; i++) {
		look(c, owned(c, qpn[i]), &v[i]);
		w[i] = (struct work){.c = c, .q = &v[i], .rc = EAGAIN};
	}
	end_group(c, &(struct group){w, n});
}

int
urn_ctl_destroy_qp(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct view v;
	struct work w = {.c = c, .q = &v, .rc = EAGAIN};

	if (!find(c, req->handle, rep, &v))
		return EINVAL;
	if (v.qp->flags & URN_QPF_MCAST)
		return urn_ctl_fail(rep, EBUSY, "%s: QP 0x%x is attached to a multicast group",
				    c->adapter->cfg.name, req->handle);
	end_group(c, &(struct group){&w, 1});
	return 0;
}
