/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs. One that may have a session is made with a queue pair for each path, and one for
 * control messages of each path, before they are needed (FO-4, FO-5); its number is that of
 * P-P's queue pair. All others are queue pairs of the primary adapter, as they are.
 */
#include "attach/fail.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	URN_SV_DRAWS = 16, /* numbers that are drawn again for a queue pair, at most */
};

/* ---- loads of completion queues */

/* Requests of the program, and of the queue pairs of the two paths on an adapter. Requests of a
 * shared receive queue count once, however many of its queue pairs are on the completion queue. */
static void
urn_sv_loads(const struct urn_sv_qp *q, const struct ibv_cq *recv, uint32_t load[2],
	     uint32_t real[2])
{
	load[0] = q->cap.max_send_wr;
	load[1] = q->cap.max_recv_wr;
	real[0] = q->can ? 2 * (2 * q->cap.max_send_wr + URN_SV_SPARE) : load[0];
	real[1] = q->can ? 2 * q->cap.max_recv_wr : load[1];
	if (!urn_sv_srq_first(q, recv))
		return;
	load[1] += q->srq->size;
	real[1] += 2 * q->srq->size;
}

static int
urn_sv_load(const struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	struct urn_sv_cq *send = (struct urn_sv_cq *)attr->send_cq;
	uint32_t load[2], real[2];
	int err;

	urn_sv_loads(q, attr->recv_cq, load, real);
	err = urn_sv_cq_load(send, load[0], real[0]);
	if (err != 0)
		return err;
	err = urn_sv_cq_load((struct urn_sv_cq *)attr->recv_cq, load[1], real[1]);
	if (err != 0)
		urn_sv_cq_unload(send, load[0], real[0]);
	return err;
}

static void
urn_sv_unload(const struct urn_sv_qp *q, struct ibv_cq *send, struct ibv_cq *recv)
{
	uint32_t load[2], real[2];

	urn_sv_loads(q, recv, load, real);
	urn_sv_cq_unload((struct urn_sv_cq *)send, load[0], real[0]);
	urn_sv_cq_unload((struct urn_sv_cq *)recv, load[1], real[1]);
}

/* ---- creation */

/* Capabilities as the program gets them; the limits of query_device hold. */
static int
urn_sv_caps(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_device_attr *d = &q->ctx->device.orig_attr;

	q->cap = attr->cap;
	if (q->srq != NULL)
		q->cap.max_recv_wr = q->cap.max_recv_sge = 0;
	if (q->cap.max_send_wr == 0)
		q->cap.max_send_wr = 1;
	if (q->cap.max_send_sge == 0)
		q->cap.max_send_sge = 1;
	if (q->cap.max_send_wr > (uint32_t)d->max_qp_wr ||
	    q->cap.max_recv_wr > (uint32_t)d->max_qp_wr)
		return urn_fail(EINVAL, "a queue pair of a virtual device has at most %d requests",
				d->max_qp_wr);
	if (q->cap.max_send_sge > (uint32_t)d->max_sge ||
	    q->cap.max_recv_sge > (uint32_t)d->max_sge)
		return urn_fail(EINVAL, "a request of a virtual device has at most %d elements",
				d->max_sge);
	return 0;
}

/* Attributes of the real queue pairs of paths. */
static struct ibv_qp_init_attr_ex
urn_sv_real_attr(const struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex real = *attr;

	real.cap = (struct ibv_qp_cap){
		.max_send_wr = 2 * q->cap.max_send_wr + URN_SV_SPARE,
		.max_recv_wr = q->cap.max_recv_wr,
		.max_send_sge = q->cap.max_send_sge + 1,
		.max_recv_sge = q->cap.max_recv_sge + 1,
		.max_inline_data = q->cap.max_inline_data,
	};
	return real;
}

int
urn_sv_real_anew(struct urn_sv_path *p)
{
	struct urn_sv_qp *q = p->qp;
	struct ibv_qp_init_attr_ex attr = {.send_cq = q->ibv.send_cq,
					   .recv_cq = q->ibv.recv_cq,
					   .qp_type = IBV_QPT_RC},
				   real = urn_sv_real_attr(q, &attr);

	return urn_sv_real_make(q, p, &real);
}

/* True when another queue pair of the program has a number. */
static bool
urn_sv_taken(const struct urn_sv_ctx *ctx, uint32_t number)
{
	const struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->ibv.qp_num == number)
			return true;
	return false;
}

/*
 * Make the queue pair whose number the program gets. A primary adapter that came back gives numbers
 * from the beginning, also those of queue pairs that have theirs from before: these are drawn
 * again. returns: 0 or an errno value with its text
 */
static int
urn_sv_first_make(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *drawn[URN_SV_DRAWS];
	struct urn_sv_path *p = &q->path[0];
	uint32_t n = 0;
	int err = urn_sv_real_make(q, p, attr);

	while (err == 0 && urn_sv_taken(q->ctx, p->real->qp_num)) {
		if (n == URN_SV_DRAWS) {
			err = urn_fail(EAGAIN, "the primary adapter gives no number that is free: "
					       "make the queue pair later");
			break;
		}
		LIST_REMOVE(p, link);
		drawn[n++] = p->real;
		p->real = NULL;
		urn_sv_shared_leave(p);
		err = urn_sv_real_make(q, p, attr);
	}
	while (n > 0)
		(void)ibv_destroy_qp(drawn[--n]);
	return err;
}

/* Make what a queue pair with a session needs; the lock is held. */
static int
urn_sv_make_can(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex real;
	int err = urn_sv_caps(q, attr);

	if (err == 0)
		err = urn_sv_rings(q);
	if (err != 0)
		return err;
	real = urn_sv_real_attr(q, attr);
	err = urn_sv_first_make(q, &real);
	if (err == 0)
		err = urn_sv_paths_make(q, &real);
	if (err == 0)
		err = urn_sv_listen(q);
	return err;
}

static void
urn_sv_unmake(struct urn_sv_qp *q)
{
	if (q->listener != 0)
		urn_sv_unlisten(q);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		urn_sv_path_end(&q->path[i], true);
	urn_sv_rings_free(q);
}

static struct urn_sv_qp *
urn_sv_qp_begin(const struct ibv_qp_init_attr_ex *attr)
{
	struct urn_sv_qp *q = urn_object_alloc(sizeof(*q));

	if (q == NULL)
		return NULL;
	q->ctx = urn_sv_ctx(attr->pd->context);
	q->pd = (struct urn_sv_pd *)attr->pd;
	q->srq = (struct urn_sv_srq *)attr->srq;
	q->can =
		attr->qp_type == IBV_QPT_RC && (q->srq == NULL || q->srq->kind != URN_SV_SRQ_PLAIN);
	q->mode = q->can ? URN_SV_NEW : URN_SV_PLAIN;
	q->sig_all = attr->sq_sig_all != 0;
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		q->path[i] = (struct urn_sv_path){.qp = q,
						  .mine = i / URN_SV_ADAPTERS,
						  .theirs = i % URN_SV_ADAPTERS,
						  .heal.end.own = 1};
	q->ibv.send_cq = attr->send_cq; /* the front does so later */
	q->ibv.recv_cq = attr->recv_cq;
	return q;
}

struct ibv_qp *
urn_sv_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct urn_sv_qp *q = urn_sv_qp_begin(attr);
	int err = 0;

	if (q == NULL)
		return NULL;
	if (q->can)
		err = urn_sv_thread_start(q->ctx);
	urn_sv_lock_first(q->ctx);
	if (err == 0 && q->srq != NULL && !q->can)
		err = urn_sv_srq_decide(q->srq, false);
	if (err == 0)
		err = q->can ? urn_sv_make_can(q, attr) : urn_sv_first_make(q, attr);
	if (err == 0 && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		err = urn_sv_wr_init(q);
	if (err == 0)
		err = urn_sv_load(q, attr);
	if (err != 0) {
		urn_sv_unmake(q);
		urn_sv_unlock(q->ctx);
		free(q);
		errno = err;
		return NULL;
	}
	q->ibv.handle = q->path[0].real->handle;
	q->ibv.qp_num = q->path[0].real->qp_num;
	attr->cap = q->cap;
	LIST_INSERT_HEAD(&q->ctx->qps, q, link);
	if (q->srq != NULL)
		q->srq->users++;
	urn_sv_unlock(q->ctx);
	atomic_fetch_add(&q->pd->objects, 1);
	return &q->ibv;
}

/* The connection ends, because the program ends it. */
static void
urn_sv_end(struct urn_sv_qp *q)
{
	q->c.cfg.step = NULL;
	urn_sv_log_end(q);
	urn_sess_fini(&q->c);
}

/* The queue pair is about to be destroyed or reset: the peer is told, if there is a connection. */
static void
urn_sv_quit(struct urn_sv_qp *q)
{
	if (q->mode == URN_SV_SESSION) {
		urn_sv_leave(q);
		urn_sv_end(q);
	}
	urn_sv_srq_take_back(q);
	urn_sv_last_forget(q);
}

int
urn_sv_destroy_qp(struct ibv_qp *ibqp)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	struct urn_sv_ctx *ctx = q->ctx;

	urn_sv_lock_first(ctx);
	urn_sv_quit(q);
	LIST_REMOVE(q, link);
	urn_sv_unmake(q);
	urn_sv_srq_quit(q);
	urn_sv_cq_clean((struct urn_sv_cq *)ibqp->send_cq, q);
	urn_sv_cq_clean((struct urn_sv_cq *)ibqp->recv_cq, q);
	urn_sv_unload(q, ibqp->send_cq, ibqp->recv_cq);
	if (q->srq != NULL)
		q->srq->users--;
	urn_sv_unlock(ctx);
	if (!ctx->forked) /* threads of the parent acknowledge nothing here */
		urn_acks_wait(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, q->events_got);
	atomic_fetch_sub(&q->pd->objects, 1);
	return 0;
}

/* ---- states */

/* Remember attributes of INIT, those that the mask names. */
static void
urn_sv_keep_init(struct urn_sv_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	q->init.qp_state = IBV_QPS_INIT;
	if (mask & IBV_QP_PKEY_INDEX)
		q->init.pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		q->init.port_num = attr->port_num;
	if (mask & IBV_QP_ACCESS_FLAGS)
		q->init.qp_access_flags = attr->qp_access_flags;
}

int
urn_sv_path_init(struct urn_sv_path *p)
{
	const int need = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr ctl = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr own = p->qp->init;
	int err = ibv_modify_qp(p->real, &own, need);

	return err == 0 ? ibv_modify_qp(p->ctl, &ctl, need) : err;
}

/*
 * To INIT, or a change in INIT: P-P with the program's attributes, and the other paths with the
 * same; control paths.
 */
static int
urn_sv_to_init(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	const int need = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr ctl = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	int err;

	/* The peer's flush READs need the right. */
	attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	urn_sv_keep_init(q, attr, mask);
	err = ibv_modify_qp(q->path[0].real, attr, mask);
	for (uint32_t i = 0; i < URN_SV_PATHS && err == 0; i++) {
		if (q->path[i].ctl == NULL)
			continue;
		if (i != 0)
			err = ibv_modify_qp(q->path[i].real, attr, mask);
		if (err == 0)
			err = ibv_modify_qp(q->path[i].ctl, &ctl, need);
		/* A backup that was lost gets new queue pairs when it is back. */
		if (err == EIO && q->path[i].mine != 0)
			err = 0;
	}
	return err;
}

/*
 * A flush READ needs one READ in flight at least; and the peer's a responder for it. The adapter's
 * log of atomics has as many entries as the responder takes READs and atomics, and must have room
 * for all that a peer has in flight.
 */
static void
urn_sv_reads(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic == 0)
		attr->max_rd_atomic = 1;
	if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		return;
	q->peer_reads = attr->max_dest_rd_atomic;
	if (attr->max_dest_rd_atomic < URN_SV_ATOMICS)
		attr->max_dest_rd_atomic = URN_SV_ATOMICS;
}

int
urn_sv_gone(const struct urn_sv_qp *q)
{
	return urn_fail(EIO,
			"queue pair %u was the primary adapter's before that was lost: no peer "
			"finds it any more, make another one",
			q->ibv.qp_num);
}

/* Back to the beginning: the next RTR looks for a peer anew. */
static int
urn_sv_to_reset(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	bool gone = q->lost || q->ctx->dead[0] || urn_sv_srq_stale(&q->path[0]);
	int err;

	/* A real queue pair that is reset takes its receive of a shared queue along. */
	if (!gone && q->srq != NULL)
		urn_sv_quit(q);
	err = gone ? urn_sv_gone(q) : ibv_modify_qp(q->path[0].real, attr, mask);
	if (err != 0 || q->mode == URN_SV_PLAIN)
		return err;
	if (q->srq == NULL)
		urn_sv_quit(q);
	for (uint32_t i = 0; i < URN_SV_PATHS && err == 0; i++) {
		q->path[i].ctl_ok = q->path[i].leaves = q->path[i].given = false;
		q->path[i].shut_at = 0;
		q->path[i].epoch = q->path[i].ctl_busy = 0;
		q->path[i].heal.end.own = 1;
		/* The queue may have left the adapter while the peer was told. */
		if (urn_sv_srq_stale(&q->path[i])) {
			if (i == 0 && q->listener != 0)
				urn_sv_unlisten(q);
			q->lost |= i == 0;
			urn_sv_path_end(&q->path[i], true);
		}
		if (q->path[i].ctl == NULL || q->path[i].real == NULL)
			continue;
		err = ibv_modify_qp(q->path[i].ctl, attr, mask);
		if (err == 0 && i != 0)
			err = ibv_modify_qp(q->path[i].real, attr, mask);
	}
	urn_sv_srq_quit(q);
	urn_sv_cq_clean((struct urn_sv_cq *)q->ibv.send_cq, q);
	urn_sv_cq_clean((struct urn_sv_cq *)q->ibv.recv_cq, q);
	q->peer_reads = 0;
	q->recv_head = q->recv_posted = q->recv_tail = q->recv_held = 0;
	q->send_held = q->unflushed = q->todo = q->reading = 0;
	q->atomics_done = q->held_from = q->unflushed_bytes = 0;
	q->flushes = 0;
	q->notes = (struct urn_sv_notes){0};
	q->recv_live = q->holds = q->full = q->left = q->failed_one = q->ended = q->told =
		q->known = q->keeps = false;
	q->asked = URN_SV_NOT_ASKED;
	q->mode = URN_SV_NEW;
	return err;
}

/*
 * To RTR: P-P first, so that a peer that is faster meets a queue pair that is not ready, and
 * repeats; one with a shared receive queue, which may have receives, only when the ends agree. If
 * they can't, the queue pair is in INIT as before, and takes no message.
 */
static int
urn_sv_to_rtr(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	const int need = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, init = q->init;
	char why[URN_ERROR_TEXT];
	int err = q->srq == NULL ? ibv_modify_qp(q->path[0].real, attr, mask) : 0;

	if (err != 0)
		return err;
	err = urn_sv_meet(q, attr, mask);
	if (err == 0 && q->mode == URN_SV_SESSION)
		urn_sv_log_begin(q);
	if (err == 0)
		return 0;
	snprintf(why, sizeof(why), "%s", urn_attach_error());
	if (ibv_modify_qp(q->path[0].real, &reset, IBV_QP_STATE) == 0)
		(void)ibv_modify_qp(q->path[0].real, &init, need);
	return urn_fail(err, "%s", why);
}

/* Change a queue pair that may have a session; the lock is held. */
static int
urn_sv_modify(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : IBV_QPS_UNKNOWN;
	int err;

	urn_sv_reads(q, attr, mask);
	if (q->mode == URN_SV_PLAIN)
		return ibv_modify_qp(q->path[0].real, attr, mask);
	if (q->lost && q->mode == URN_SV_NEW && to != IBV_QPS_ERR)
		return urn_sv_gone(q);
	if (to == IBV_QPS_INIT && q->mode == URN_SV_NEW &&
	    (q->ibv.state == IBV_QPS_RESET || q->ibv.state == IBV_QPS_INIT))
		return urn_sv_to_init(q, attr, mask);
	if (to == IBV_QPS_RESET)
		return urn_sv_to_reset(q, attr, mask);
	if (to == IBV_QPS_ERR && q->mode == URN_SV_SESSION) {
		urn_sv_leave(q);
		urn_sv_kill(q);
		if (q->keeps)
			urn_sv_recv_flush(q);
		q->keeps = false;
		return 0;
	}
	if (to == IBV_QPS_ERR && q->mode == URN_SV_NEW)
		urn_sv_recv_flush(q);
	if (mask & IBV_QP_ACCESS_FLAGS)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (to == IBV_QPS_RTR)
		return urn_sv_to_rtr(q, attr, mask);
	if (q->mode == URN_SV_SESSION)
		return urn_sv_change(q, attr, mask);
	err = ibv_modify_qp(q->path[0].real, attr, mask);
	if (err == 0 && to == IBV_QPS_ERR)
		urn_sv_last_want(q);
	return err;
}

int
urn_sv_modify_qp(struct ibv_qp *ibqp, const struct ibv_qp_attr *attr, int mask)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	struct ibv_qp_attr same = *attr;
	int err;

	if (!q->can)
		return ibv_modify_qp(q->path[0].real, &same, mask);
	err = urn_sv_forked(q->ctx);
	if (err != 0)
		return err;
	urn_sv_lock_first(q->ctx);
	err = urn_sv_modify(q, &same, mask);
	urn_sv_unlock(q->ctx);
	return err;
}

int
urn_sv_connect_qp(struct ibv_qp *ibqp, const struct ibv_qp_attr *rtr, int rtr_mask,
		  const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached)
{
	int err = urn_sv_in_modify_qp(ibqp, rtr, rtr_mask);

	if (err != 0)
		return err;
	*reached = ibqp->state = IBV_QPS_RTR;
	err = urn_sv_in_modify_qp(ibqp, rts, rts_mask);
	if (err == 0)
		*reached = IBV_QPS_RTS;
	return err;
}

int
urn_sv_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, bool attach)
{
	struct ibv_qp *real = ((struct urn_sv_qp *)ibqp)->path[0].real;

	return attach ? ibv_attach_mcast(real, gid, 0) : ibv_detach_mcast(real, gid, 0);
}
