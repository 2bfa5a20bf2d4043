/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs. One that may have a session is made with a queue pair for each path, and one for
 * control messages of each path, before they are needed (FO-4, FO-5); its number is that of
 * P-P's queue pair. All others are queue pairs of the primary adapter, as they are.
 */
#include "verbs/front.h"
#include "verbs/session/sv.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { URN_SV_24_BITS = 0xffffff };

/* ---- finding paths by their queue pairs */

static struct urn_sv_bucket *
urn_sv_bucket(struct urn_sv_bucket *of, uint32_t qpn)
{
	return &of[qpn % URN_SV_BUCKETS];
}

struct urn_sv_path *
urn_sv_find(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn)
{
	struct urn_sv_path *p;

	LIST_FOREACH(p, urn_sv_bucket(ctx->bucket, qpn), link)
		if (p->mine == adapter && p->real->qp_num == qpn)
			break;
	return p;
}

struct urn_sv_path *
urn_sv_find_ctl(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn)
{
	struct urn_sv_path *p;

	LIST_FOREACH(p, urn_sv_bucket(ctx->ctl_bucket, qpn), ctl_link)
		if (p->mine == adapter && p->ctl->qp_num == qpn)
			break;
	return p;
}

/* ---- making paths */

static int
urn_sv_real_make(struct urn_sv_qp *q, struct urn_sv_path *p, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = URN_SV_BELOW(cq, attr->send_cq, p->mine),
		.recv_cq = URN_SV_BELOW(cq, attr->recv_cq, p->mine),
		.srq = attr->srq != NULL ? ((struct urn_sv_srq *)attr->srq)->below : NULL,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = q->can ? 0 : attr->sq_sig_all,
	};

	p->real = ibv_create_qp(q->pd->below[p->mine], &init);
	if (p->real == NULL)
		return errno;
	if (!q->can)
		q->cap = init.cap;
	LIST_INSERT_HEAD(urn_sv_bucket(q->ctx->bucket, p->real->qp_num), p, link);
	return 0;
}

static int
urn_sv_ctl_make(struct urn_sv_qp *q, struct urn_sv_path *p)
{
	uint32_t each = 2 * URN_SV_CONTROLS + 2, *load = &q->ctx->ctl_load[p->mine];
	struct ibv_cq *cq = q->ctx->ctl_cq[p->mine];
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		/* One READ of the table of keys may be in flight beside the Sends. */
		.cap = {URN_SV_CONTROLS + 2, URN_SV_CONTROLS, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (*load + each > (uint32_t)cq->cqe && ibv_resize_cq(cq, (int)(2 * (*load + each))) != 0)
		return errno;
	p->ctl = ibv_create_qp(q->pd->below[p->mine], &init);
	if (p->ctl == NULL)
		return errno;
	*load += each;
	LIST_INSERT_HEAD(urn_sv_bucket(q->ctx->ctl_bucket, p->ctl->qp_num), p, ctl_link);
	return 0;
}

static void
urn_sv_path_end(struct urn_sv_path *p, bool real)
{
	if (real && p->real != NULL) {
		LIST_REMOVE(p, link);
		(void)ibv_destroy_qp(p->real);
		p->real = NULL;
	}
	if (p->ctl != NULL) {
		LIST_REMOVE(p, ctl_link);
		p->qp->ctx->ctl_load[p->mine] -= 2 * URN_SV_CONTROLS + 2;
		(void)ibv_destroy_qp(p->ctl);
		p->ctl = NULL;
	}
	p->ctl_ok = false;
}

int
urn_sv_paths_make(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *real)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];
		uint32_t psn[2] = {0, 0};
		int err = i != 0 ? urn_sv_real_make(q, p, real) : 0;

		if (err == 0)
			err = urn_sv_ctl_make(q, p);
		if (err != 0)
			return err;
		if (getrandom(psn, sizeof(psn), GRND_NONBLOCK) < 0)
			psn[0] = psn[1] = p->real->qp_num;
		p->psn = psn[0] & URN_SV_24_BITS;
		p->ctl_psn = psn[1] & URN_SV_24_BITS;
	}
	return 0;
}

void
urn_sv_paths_end(struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		urn_sv_path_end(&q->path[i], i != 0);
}

/* ---- memory of a queue pair that may have a session */

/* Make the memory that the adapters read and write. returns: 0 or an errno value with its text */
static int
urn_sv_room(struct urn_sv_qp *q)
{
	size_t bytes;

	q->send_room =
		(uint32_t)sizeof(struct urn_sess_wire) + ((q->cap.max_inline_data + 31) & ~31u);
	q->sends_at = URN_SV_AT_REST;
	q->receives_at = q->sends_at + (size_t)q->wrs * q->send_room;
	bytes = q->receives_at + q->rwrs * sizeof(struct urn_sess_wire);
	q->memory = urn_alloc(bytes);
	if (q->memory == NULL)
		return urn_fail(ENOMEM, "no memory for a queue pair");
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		q->memory_mr[i] =
			ibv_reg_mr(q->pd->below[i], q->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
		if (q->memory_mr[i] == NULL)
			return errno;
	}
	return urn_sv_keys_put(&q->pd->local, q->memory_mr[0]->lkey, q->memory_mr[1]->lkey)
		       ? 0
		       : urn_fail(ENOMEM, "too many regions and queue pairs of a domain");
}

static int
urn_sv_rings(struct urn_sv_qp *q)
{
	/* A write with immediate data is two requests. */
	q->wrs = urn_sv_power(2 * q->cap.max_send_wr);
	q->rwrs = urn_sv_power(q->cap.max_recv_wr);
	q->swr = calloc(q->wrs, sizeof(*q->swr));
	q->wr = calloc(q->wrs, sizeof(*q->wr));
	q->sge = calloc((size_t)q->wrs * q->cap.max_send_sge, sizeof(*q->sge));
	q->rwr = calloc(q->rwrs, sizeof(*q->rwr));
	q->recv = calloc(q->rwrs, sizeof(*q->recv));
	q->recv_sge = calloc((size_t)q->rwrs * (q->cap.max_recv_sge + 1), sizeof(*q->recv_sge));
	if (q->swr == NULL || q->wr == NULL || q->sge == NULL || q->rwr == NULL ||
	    q->recv == NULL || q->recv_sge == NULL)
		return urn_fail(ENOMEM, "no memory for a queue pair");
	return urn_sv_room(q);
}

static void
urn_sv_rings_free(struct urn_sv_qp *q)
{
	if (q->memory_mr[0] != NULL)
		urn_sv_keys_drop(&q->pd->local, q->memory_mr[0]->lkey);
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (q->memory_mr[i] != NULL)
			(void)ibv_dereg_mr(q->memory_mr[i]);
	urn_free(q->memory);
	free(q->swr);
	free(q->wr);
	free(q->sge);
	free(q->rwr);
	free(q->recv);
	free(q->recv_sge);
	free(q->batch);
}

/* ---- loads of completion queues */

/* Requests of the program, and of the queue pairs of the two paths on an adapter. */
static void
urn_sv_loads(const struct urn_sv_qp *q, uint32_t load[2], uint32_t real[2])
{
	load[0] = q->cap.max_send_wr;
	load[1] = q->cap.max_recv_wr;
	real[0] = q->can ? 2 * (2 * q->cap.max_send_wr + URN_SV_SPARE) : load[0];
	real[1] = q->can ? 2 * q->cap.max_recv_wr : load[1];
}

static int
urn_sv_load(const struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *attr)
{
	struct urn_sv_cq *send = (struct urn_sv_cq *)attr->send_cq;
	uint32_t load[2], real[2];
	int err;

	urn_sv_loads(q, load, real);
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

	urn_sv_loads(q, load, real);
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
	err = urn_sv_real_make(q, &q->path[0], &real);
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
	q->can = attr->qp_type == IBV_QPT_RC && attr->srq == NULL;
	q->mode = q->can ? URN_SV_NEW : URN_SV_PLAIN;
	q->sig_all = attr->sq_sig_all != 0;
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		q->path[i] = (struct urn_sv_path){
			.qp = q, .mine = i / URN_SV_ADAPTERS, .theirs = i % URN_SV_ADAPTERS};
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
	if (err == 0)
		err = q->can ? urn_sv_make_can(q, attr) : urn_sv_real_make(q, &q->path[0], attr);
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
	urn_sv_unlock(q->ctx);
	atomic_fetch_add(&q->pd->objects, 1);
	return &q->ibv;
}

int
urn_sv_destroy_qp(struct ibv_qp *ibqp)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	struct urn_sv_ctx *ctx = q->ctx;

	urn_sv_lock_first(ctx);
	if (q->mode == URN_SV_SESSION)
		urn_sv_leave(q);
	LIST_REMOVE(q, link);
	urn_sv_unmake(q);
	urn_sv_cq_clean((struct urn_sv_cq *)ibqp->send_cq, q);
	urn_sv_cq_clean((struct urn_sv_cq *)ibqp->recv_cq, q);
	urn_sv_unload(q, ibqp->send_cq, ibqp->recv_cq);
	urn_sv_unlock(ctx);
	atomic_fetch_sub(&q->pd->objects, 1);
	return 0;
}

/* ---- states */

/* To INIT: P-P with the program's attributes, and the other paths with the same; control paths. */
static int
urn_sv_to_init(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	const int need = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr ctl = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	int err;

	/* The peer's flush READs need the right. */
	attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	err = ibv_modify_qp(q->path[0].real, attr, mask);
	for (uint32_t i = 0; i < URN_SV_PATHS && err == 0; i++) {
		if (i != 0)
			err = ibv_modify_qp(q->path[i].real, attr, mask);
		if (err == 0)
			err = ibv_modify_qp(q->path[i].ctl, &ctl, need);
	}
	return err;
}

/* A flush READ needs one READ in flight at least; and the peer's a responder for it. */
static void
urn_sv_reads(struct ibv_qp_attr *attr, int mask)
{
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic == 0)
		attr->max_rd_atomic = 1;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic == 0)
		attr->max_dest_rd_atomic = 1;
}

/* Back to the beginning: the next RTR looks for a peer anew. */
static int
urn_sv_to_reset(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(q->path[0].real, attr, mask);

	if (err != 0 || q->path[1].real == NULL)
		return err;
	if (q->mode == URN_SV_SESSION)
		urn_sv_leave(q);
	for (uint32_t i = 0; i < URN_SV_PATHS && err == 0; i++) {
		q->path[i].ctl_ok = false;
		q->path[i].epoch = q->path[i].ctl_busy = 0;
		err = ibv_modify_qp(q->path[i].ctl, attr, mask);
		if (err == 0 && i != 0)
			err = ibv_modify_qp(q->path[i].real, attr, mask);
	}
	urn_sv_cq_clean((struct urn_sv_cq *)q->ibv.send_cq, q);
	urn_sv_cq_clean((struct urn_sv_cq *)q->ibv.recv_cq, q);
	q->recv_head = q->recv_posted = q->recv_tail = q->recv_held = 0;
	q->send_held = q->unflushed = q->todo = q->reading = 0;
	q->recv_live = q->flushing = q->holds = q->left = q->failed_one = q->ended = q->told =
		q->keeps = false;
	q->asked = URN_SV_NOT_ASKED;
	q->mode = URN_SV_NEW;
	return err;
}

/* Change a queue pair that may have a session; the lock is held. */
static int
urn_sv_modify(struct urn_sv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : IBV_QPS_UNKNOWN;
	int err;

	urn_sv_reads(attr, mask);
	if (q->path[1].real == NULL)
		return ibv_modify_qp(q->path[0].real, attr, mask);
	if (to == IBV_QPS_INIT && q->ibv.state == IBV_QPS_RESET)
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
	err = ibv_modify_qp(q->path[0].real, attr, mask);
	if (err == 0 && to == IBV_QPS_RTR)
		err = urn_sv_meet(q, attr);
	if (err == 0 && to == IBV_QPS_RTS && q->mode == URN_SV_SESSION &&
	    q->ibv.state == IBV_QPS_RTR)
		err = urn_sv_backups_rts(q, attr);
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
	urn_sv_lock_first(q->ctx);
	err = urn_sv_modify(q, &same, mask);
	urn_sv_unlock(q->ctx);
	return err;
}

int
urn_sv_connect_qp(struct ibv_qp *ibqp, const struct ibv_qp_attr *rtr, int rtr_mask,
		  const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached)
{
	int err = urn_sv_modify_qp(ibqp, rtr, rtr_mask);

	if (err != 0)
		return err;
	*reached = ibqp->state = IBV_QPS_RTR;
	err = urn_sv_modify_qp(ibqp, rts, rts_mask);
	if (err == 0)
		*reached = IBV_QPS_RTS;
	return err;
}

int
urn_sv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	struct urn_sv_path *p;
	int err;

	urn_sv_lock(q->ctx);
	p = q->mode == URN_SV_SESSION ? urn_sv_used(q) : &q->path[0];
	err = ibv_query_qp(p->real, attr, mask, init);
	if (err == 0 && q->can) {
		attr->cap = init->cap = q->cap;
		init->sq_sig_all = q->sig_all;
	}
	if (err == 0 && q->mode == URN_SV_SESSION) {
		/* The queue pair lives as long as the connection does. */
		attr->qp_state = attr->cur_qp_state =
			q->c.state == URN_SESS_DEAD ? IBV_QPS_ERR : ibqp->state;
		attr->dest_qp_num = q->peer.number;
	}
	urn_sv_unlock(q->ctx);
	return err;
}

int
urn_sv_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, bool attach)
{
	struct ibv_qp *real = ((struct urn_sv_qp *)ibqp)->path[0].real;

	return attach ? ibv_attach_mcast(real, gid, 0) : ibv_detach_mcast(real, gid, 0);
}
