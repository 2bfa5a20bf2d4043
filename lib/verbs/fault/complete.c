/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions that fail on demand. The program reads a failed completion in the place of a
 * successful one; the queue pair goes to the error state, so that the dataplane flushes what is
 * posted, and completions of the same direction that were there already are read as flushed.
 */
#include "verbs/fault/state.h"

#include "abi/queue.h"

#include <errno.h>

/* A completion as the two ways of polling have it. */
struct wc {
	enum ibv_wc_status *status;
	uint32_t qpn;
	bool recv;
};

/* True when a fault is about completions such as this one. */
static bool
fits(const struct urn_fault_spec *f, bool recv)
{
	if (f->site == URN_FAULT_WC)
		return !recv || !urn_fault_is_requesters(f->what);
	return f->site == (recv ? URN_FAULT_WC_RECV : URN_FAULT_WC_SEND);
}

/* The queue that a fault is about: of a completion's two, the one of its kind. */
static struct urn_fault_obj *
narrowed(const struct urn_fault_spec *f, struct urn_fault_obj *qp, struct urn_fault_obj *cq)
{
	return f->queue == URN_FAULT_CQ ? cq : qp;
}

/* Pass by the faults of completions. The lock is held. */
static void
pass_by(struct urn_fault_obj *cq, struct urn_fault_obj *qp, struct wc *wc)
{
	struct urn_fault_state *s = &urn_fault_state;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		struct urn_fault *f = &s->fault[i];

		if (f->spec.site < URN_FAULT_WC || f->spec.site > URN_FAULT_WC_RECV ||
		    !fits(&f->spec, wc->recv))
			continue;
		if (!urn_fault_strikes(f, narrowed(&f->spec, qp, cq)) ||
		    *wc->status != IBV_WC_SUCCESS)
			continue;
		*wc->status = (enum ibv_wc_status)f->spec.what;
		if (qp != NULL)
			qp->flushed[wc->recv] = qp->breaks = true;
	}
}

/* Look at a completion that is about to be read. The lock is held. returns: true: a queue pair has
 * to break */
static bool
look(struct urn_fault_obj *cq, struct ibv_context *c, struct wc *wc)
{
	struct urn_fault_obj *qp = urn_fault_obj_find(c, URN_FAULT_QP, wc->qpn);

	urn_fault_counted(urn_fault_state.completions++);
	if (*wc->status != IBV_WC_SUCCESS)
		return false;
	if (qp != NULL && qp->flushed[wc->recv])
		*wc->status = IBV_WC_WR_FLUSH_ERR;
	else
		pass_by(cq, qp, wc);
	return qp != NULL && qp->breaks;
}

void
urn_fault_break(struct urn_fault_obj *o)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	(void)urn_fault_ctx(o->context)->real->modify_qp(o->queue, &attr, IBV_QP_STATE);
}

/* Move a queue pair whose completion failed on demand to the error state, once. */
static void
break_by_number(struct ibv_context *c, uint32_t qpn)
{
	struct urn_fault_obj *qp = urn_fault_obj_use(c, URN_FAULT_QP, qpn);
	bool breaks = false;

	if (qp == NULL)
		return;
	pthread_mutex_lock(&urn_fault_state.lock);
	breaks = qp->breaks;
	qp->breaks = false;
	pthread_mutex_unlock(&urn_fault_state.lock);
	if (breaks)
		urn_fault_break(qp);
	urn_fault_obj_leave(qp);
}

static int
fault_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct urn_fault_obj *o = urn_fault_obj_use(cq->context, URN_FAULT_CQ, cq->handle);
	int i, got = urn_fault_call(URN_FAULT_POLL_CQ, o) != 0 ? -1 : 0;
	bool breaks = false;

	if (got == 0)
		got = urn_fault_ctx(cq->context)->real->poll_cq(cq, n, wc);
	pthread_mutex_lock(&urn_fault_state.lock);
	for (i = 0; i < got; i++) {
		enum ibv_wc_status before = wc[i].status;
		struct wc one = {&wc[i].status, wc[i].qp_num, (wc[i].opcode & IBV_WC_RECV) != 0};

		breaks |= look(o, cq->context, &one);
		if (wc[i].status != before)
			wc[i].vendor_err = URN_VE_FAULT;
	}
	pthread_mutex_unlock(&urn_fault_state.lock);
	for (i = 0; breaks && i < got; i++)
		break_by_number(cq->context, wc[i].qp_num);
	urn_fault_obj_leave(o);
	return got;
}

/* ---- extended polling: between start and end the queue's lock is held, so queue pairs break after
 * the end */

static struct urn_fault_obj *
cq_of(struct ibv_cq_ex *cq)
{
	struct urn_fault_obj *o;

	pthread_mutex_lock(&urn_fault_state.lock);
	o = urn_fault_obj_find(cq->context, URN_FAULT_CQ, cq->handle);
	pthread_mutex_unlock(&urn_fault_state.lock);
	return o;
}

static void
look_ex(struct urn_fault_obj *o, struct ibv_cq_ex *cq)
{
	struct wc one = {&cq->status, ibv_wc_read_qp_num(cq),
			 (ibv_wc_read_opcode(cq) & IBV_WC_RECV) != 0};
	enum ibv_wc_status before = cq->status;

	pthread_mutex_lock(&urn_fault_state.lock);
	(void)look(o, cq->context, &one);
	o->made_up = cq->status != before;
	pthread_mutex_unlock(&urn_fault_state.lock);
}

static uint32_t
fault_read_vendor_err(struct ibv_cq_ex *cq)
{
	const struct urn_fault_obj *o = cq_of(cq);

	return o->made_up ? URN_VE_FAULT : o->real.read_vendor_err(cq);
}

static int
fault_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct urn_fault_obj *o = cq_of(cq);
	int err = urn_fault_call(URN_FAULT_POLL_CQ, o);

	if (err == 0)
		err = o->real.start_poll(cq, attr);
	if (err == 0)
		look_ex(o, cq);
	return err;
}

static int
fault_next_poll(struct ibv_cq_ex *cq)
{
	struct urn_fault_obj *o = cq_of(cq);
	int err = o->real.next_poll(cq);

	if (err == 0)
		look_ex(o, cq);
	return err;
}

/* The number of a queue pair that has to break, and completes in a queue. returns: 0: there is none
 */
static uint32_t
next_to_break(const struct urn_fault_obj *cq)
{
	struct urn_fault_obj *o;
	uint32_t qpn = 0;
	unsigned int i;

	pthread_mutex_lock(&urn_fault_state.lock);
	for (i = 0; i < URN_FAULT_LISTS && qpn == 0; i++)
		LIST_FOREACH(o, &urn_fault_state.objs[i], link)
			if (o->breaks && !o->dying &&
			    (o->cq[0] == cq->queue || o->cq[1] == cq->queue))
				qpn = o->handle;
	pthread_mutex_unlock(&urn_fault_state.lock);
	return qpn;
}

static void
fault_end_poll(struct ibv_cq_ex *cq)
{
	struct urn_fault_obj *o = cq_of(cq);
	uint32_t qpn;

	o->real.end_poll(cq);
	while ((qpn = next_to_break(o)) != 0)
		break_by_number(cq->context, qpn);
}

void
urn_fault_cq_stand_in(struct urn_fault_obj *o, struct ibv_cq_ex *cq)
{
	o->real.start_poll = cq->start_poll;
	o->real.next_poll = cq->next_poll;
	o->real.end_poll = cq->end_poll;
	o->real.read_vendor_err = cq->read_vendor_err;
	cq->read_vendor_err = fault_read_vendor_err;
	cq->start_poll = fault_start_poll;
	cq->next_poll = fault_next_poll;
	cq->end_poll = fault_end_poll;
}

void
urn_fault_completions_fill(struct urn_fault_ctx *f)
{
	f->ops.poll_cq = fault_poll_cq;
}
