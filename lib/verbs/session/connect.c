/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two session layers find each other (doc/inside/failover.md): each end asks the other's
 * primary adapter for a service that has the number of the other's queue pair in its id. The answer
 * has all that is needed to connect the other paths. An end that has answered never takes its
 * connection for a plain one by itself, and an end with a plain one answers no more: so no end
 * sends headers to an end that takes them for payload.
 */
#include "attach/fail.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	URN_SV_ASK_TIMEOUT = 17, /* 4.096 us * 2^17: half a second */
	URN_SV_ASK_RETRIES = 7,
	URN_SV_ASK_TIMES = 3,	 /* questions to a peer that can't answer */
	URN_SV_CTL_TIMEOUT = 14, /* 67 ms, on control paths */
	URN_SV_RETRIES = 7,
	URN_SV_RNR_TIMER = 12, /* 0.64 ms */
};

/* ---- answers */

int
urn_sv_listen(struct urn_sv_qp *q)
{
	uint32_t qpn = q->path[0].real->qp_num;

	return urn_cm_end_listen(q->ctx->cm, urn_cm_session_service(qpn), qpn, 0, &q->listener);
}

void
urn_sv_unlisten(struct urn_sv_qp *q)
{
	(void)urn_cm_end_destroy(q->ctx->cm, q->listener);
	q->listener = 0;
}

/* Describe this end to a peer. asked: our GID to which the question was sent */
static void
urn_sv_describe(const struct urn_sv_qp *q, const uint8_t asked[16], struct urn_sv_peer *own)
{
	*own = (struct urn_sv_peer){.number = q->path[0].real->qp_num,
				    .addr = (uintptr_t)q->pd->remote};
	memcpy(own->asked, asked, sizeof(own->asked));
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		memcpy(own->gid[i], q->ctx->gid[i].raw, sizeof(own->gid[i]));
		own->key[i] = q->pd->remote_mr[i] != NULL ? q->pd->remote_mr[i]->rkey : 0;
	}
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].real != NULL && q->path[i].ctl != NULL)
			own->path[i] =
				(struct urn_sv_ends){q->path[i].real->qp_num, q->path[i].psn,
						     q->path[i].ctl->qp_num, q->path[i].ctl_psn};
	/* The program says the first PSN of P-P. */
	own->path[0].psn = q->ctx->returned[0] != 0;
}

static struct urn_sv_qp *
urn_sv_listening(struct urn_sv_ctx *ctx, uint32_t listener)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->listener == listener && listener != 0)
			break;
	return q;
}

static void
urn_sv_answer(struct urn_sv_ctx *ctx, const struct urn_abi_cm_event *ev)
{
	struct urn_sv_qp *q = urn_sv_listening(ctx, ev->listen_id);
	struct urn_abi_cm_accept p = {.status = URN_CM_SIDR_UNSUPPORTED};
	struct urn_sv_peer own;

	if (q != NULL) {
		q->promised = true;
		urn_sv_describe(q, ev->own_gid, &own);
		p.status = URN_CM_SIDR_VALID;
		p.qpn = own.number;
		p.data_len = URN_SV_PEER_BYTES;
		urn_sv_peer_put(p.data, &own);
	}
	(void)urn_cm_end_accept(ctx->cm, ev->id, &p);
	(void)urn_cm_end_destroy(ctx->cm, ev->id);
}

/* ---- questions */

/* The answer to a question, or the end of its retries. */
static void
urn_sv_answered(struct urn_sv_ctx *ctx, const struct urn_abi_cm_event *ev)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->asked == URN_SV_ASKED && q->question == ev->id)
			break;
	if (q == NULL)
		return;
	q->asked = urn_sv_judge(ev, q->rtr.dest_qp_num, q->rtr.ah_attr.grh.dgid.raw, &q->peer);
	pthread_cond_broadcast(&ctx->cond);
}

void
urn_sv_cm_event(struct urn_sv_ctx *ctx, const struct urn_abi_cm_event *ev)
{
	if (ev->type == URN_CM_EVENT_SIDR_REQUEST)
		urn_sv_answer(ctx, ev);
	else if (ev->type == URN_CM_EVENT_REQUEST)
		(void)urn_cm_end_destroy(ctx->cm, ev->id); /* nobody connects here */
	else
		urn_sv_answered(ctx, ev);
}

/*
 * Ask, and wait for the answer; the thread of the context gets the answer meanwhile. returns: 0:
 * q->asked tells; or an errno value with its text
 */
static int
urn_sv_ask(struct urn_sv_qp *q)
{
	struct urn_abi_cm_connect p = {
		.service_id = urn_cm_session_service(q->rtr.dest_qp_num),
		.sgid_index = q->rtr.ah_attr.grh.sgid_index,
		.timeout = URN_SV_ASK_TIMEOUT,
		.max_retries = URN_SV_ASK_RETRIES,
		.traffic_class = q->rtr.ah_attr.grh.traffic_class,
		.hop_limit = q->rtr.ah_attr.grh.hop_limit,
	};

	int err;

	memcpy(p.dgid, q->rtr.ah_attr.grh.dgid.raw, sizeof(p.dgid));
	q->asked = URN_SV_NOT_ASKED;
	err = urn_cm_end_resolve(q->ctx->cm, &p, &q->question);
	if (err != 0)
		return err;
	q->asked = URN_SV_ASKED;
	while (q->asked == URN_SV_ASKED && !q->ctx->dead[0])
		pthread_cond_wait(&q->ctx->cond, &q->ctx->lock);
	(void)urn_cm_end_destroy(q->ctx->cm, q->question);
	q->question = 0;
	return q->asked == URN_SV_ASKED ? urn_fail(EIO, "the primary adapter was lost") : 0;
}

/* Fail a change to RTR: the text says what happened, and what to do. returns: err */
static int
urn_sv_disagree(const struct urn_sv_qp *q, int err)
{
	static const char *const what[] = {
		[URN_SV_SILENT] = "its peer may count on a session, and does not answer: repair "
				  "the network and change to RTR again",
		[URN_SV_BUSY] = "its peer has a session layer that can't answer, probably for want "
				"of connection ids: change to RTR again",
		[URN_SV_REFUSED] = "its peer's answer is of another version of urnic or of another "
				   "program: use one version, or unset URNIC_SESSION at both ends",
	};

	return urn_fail(err, "queue pair %u has no session with queue pair %u: %s", q->ibv.qp_num,
			q->rtr.dest_qp_num, what[q->asked]);
}

/* Find out whether the connection has a session. returns: 0 or an errno value with its text */
static int
urn_sv_agree(struct urn_sv_qp *q, bool *session)
{
	char why[URN_ERROR_TEXT];
	int err = 0;

	q->asked = URN_SV_BUSY;
	for (uint32_t i = 0; i < URN_SV_ASK_TIMES && err == 0 && q->asked == URN_SV_BUSY; i++)
		err = urn_sv_ask(q);
	if (err != 0) {
		snprintf(why, sizeof(why), "%s", urn_attach_error());
		return urn_fail(err, "queue pair %u can't ask its peer for a session: %s",
				q->ibv.qp_num, why);
	}
	err = urn_sv_decide(q->asked, q->promised, session);
	return err == 0 ? 0 : urn_sv_disagree(q, err);
}

/* ---- paths */

/* The address of the peer on a path. */
static struct ibv_ah_attr
urn_sv_ah(const struct urn_sv_qp *q, const struct urn_sv_path *p)
{
	struct ibv_ah_attr ah = q->rtr.ah_attr;

	memcpy(ah.grh.dgid.raw, p->gid, sizeof(ah.grh.dgid.raw));
	ah.grh.sgid_index = q->ctx->gid_index[p->mine];
	ah.is_global = 1;
	ah.port_num = 1;
	return ah;
}

int
urn_sv_path_rtr(struct urn_sv_qp *q, const struct urn_sv_path *p, const struct urn_sv_ends *to)
{
	struct ibv_qp_attr attr = q->rtr;

	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr = urn_sv_ah(q, p);
	attr.dest_qp_num = to->qpn;
	attr.rq_psn = to->psn;
	return ibv_modify_qp(p->real, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER | (q->rtr_mask & IBV_QP_ACCESS_FLAGS));
}

int
urn_sv_ctl_connect(struct urn_sv_qp *q, struct urn_sv_path *p, const struct urn_sv_ends *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = urn_sv_ah(q, p),
		.path_mtu = q->rtr.path_mtu,
		.dest_qp_num = to->ctl_qpn,
		.rq_psn = to->ctl_psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = URN_SV_RNR_TIMER,
		.sq_psn = p->ctl_psn,
		.max_rd_atomic = 1,
		.timeout = URN_SV_CTL_TIMEOUT,
		.retry_cnt = URN_SV_RETRIES,
		.rnr_retry = URN_SV_RETRIES,
	};
	int err = p->ctl != NULL ? urn_sv_control_open(p) : EIO;

	if (err == 0)
		err = ibv_modify_qp(p->ctl, &attr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	p->ctl_busy = 0;
	if (err == 0)
		err = ibv_modify_qp(p->ctl, &attr,
				    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
					    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	p->ctl_ok = err == 0;
	return err;
}

/* Both ends count the adapters of the same end first: of the lower one. */
static bool
urn_sv_lower(const struct urn_sv_qp *q)
{
	int by_gid = memcmp(q->ctx->gid[0].raw, q->peer.gid[0], sizeof(q->peer.gid[0]));

	return by_gid != 0 ? by_gid < 0 : q->ibv.qp_num < q->peer.number;
}

/* Begin a session: connect all paths, and start the machine. */
static int
urn_sv_join(struct urn_sv_qp *q)
{
	struct urn_sess_config cfg = {
		.group = &q->ctx->group,
		.wr = q->wr,
		.wrs = q->wrs,
		.recv = q->recv,
		.recvs = q->recvs,
		.number = q->ibv.qp_num,
		.paths = (1u << URN_SV_PATHS) - 1,
		.act = urn_sv_act,
		.arg = q,
	};

	if (!urn_sess_init(&q->c, &cfg))
		return urn_fail(EINVAL, "a session can't begin");
	q->lower = urn_sv_lower(q);
	q->mode = URN_SV_SESSION;
	urn_sv_heal_begin(q);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];
		const struct urn_sv_ends *to = &q->peer.path[urn_sv_mirror(i)];
		int err = p->heal.end.agreed && p->real != NULL && to->qpn != 0 ? 0 : EIO;

		memcpy(p->gid, q->peer.gid[p->theirs], sizeof(p->gid));
		p->key = q->peer.key[p->theirs];
		if (err == 0 && i != 0)
			err = urn_sv_path_rtr(q, p, to);
		if (err == 0)
			err = urn_sv_ctl_connect(q, p, to);
		if (err != 0 && i != 0)
			urn_sess_down(&q->c, urn_sv_bit(q, i));
	}
	urn_sv_recv_rest(q);
	if (q->srq != NULL)
		urn_sv_srq_join(q);
	urn_sv_link_leave(q);
	return 0;
}

/* The peer has no session layer: a plain connection, without headers (FO-1). */
static int
urn_sv_alone(struct urn_sv_qp *q)
{
	const char *why = q->asked == URN_SV_SILENT ? "its peer did not answer"
						    : "its peer has no session layer";
	int err = 0;

	q->peer.number = q->rtr.dest_qp_num;
	urn_sv_log(q, URN_SV_E_PLAIN, "has no session, because %s\tplain because %s", why, why);
	urn_sv_unlisten(q);
	urn_sv_paths_end(q);
	q->mode = URN_SV_PLAIN;
	for (; q->recv_head != q->recv_tail && err == 0; q->recv_head++) {
		uint32_t at = q->recv_head & (q->rwrs - 1);
		struct ibv_recv_wr *bad, wr = {.wr_id = q->rwr[at].wr_id,
					       .sg_list = &q->recv_sge[at * q->cap.max_recv_sge],
					       .num_sge = (int)q->rwr[at].num_sge};

		/* Receives are kept with the program's names, which are keys of the first life. */
		for (int i = 0; i < wr.num_sge; i++)
			wr.sg_list[i].lkey = urn_sv_local_key(q, 0, wr.sg_list[i].lkey);
		err = ibv_post_recv(q->path[0].real, &wr, &bad);
	}
	return err;
}

/* Receives of a shared queue are there already, for any queue pair that takes messages: so P-P does
 * only now that both sides agree on headers. returns: 0 or an errno value with its text */
static int
urn_sv_meet_shared(struct urn_sv_qp *q, bool session)
{
	struct ibv_qp_attr rtr = q->rtr;
	int err = urn_sv_srq_decide(q->srq, session);

	return err == 0 ? ibv_modify_qp(q->path[0].real, &rtr, q->rtr_mask) : err;
}

int
urn_sv_meet(struct urn_sv_qp *q, const struct ibv_qp_attr *rtr, int mask)
{
	bool session = false;
	int err;

	q->rtr = *rtr;
	q->rtr_mask = mask;
	err = urn_sv_agree(q, &session);
	if (err == 0 && q->lost) /* the thread did other things meanwhile */
		err = urn_sv_gone(q);
	if (err == 0 && q->srq != NULL)
		err = urn_sv_meet_shared(q, session);
	if (err != 0)
		return err;
	return session ? urn_sv_join(q) : urn_sv_alone(q);
}

/* ---- changes of a connection */

/* Attributes of the connection on each path; others, such as the address, are P-P's alone. */
enum {
	URN_SV_ON_ALL = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_SQ_PSN |
			IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC,
};

/* returns: 0 or an errno value with its text; EIO: the path's adapter is lost */
static int
urn_sv_change_path(struct urn_sv_path *p, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr own = *attr;

	if (p->qp->ctx->dead[p->mine] || p->real == NULL)
		return urn_fail(EIO, "an adapter of the virtual device was lost");
	if (p == &p->qp->path[0])
		return ibv_modify_qp(p->real, &own, mask);
	own.sq_psn = p->psn;
	mask &= URN_SV_ON_ALL;
	return mask != 0 ? ibv_modify_qp(p->real, &own, mask) : 0;
}

int
urn_sv_change(struct urn_sv_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	int err = urn_fail(EIO, "queue pair %u has no path left", q->ibv.qp_num);
	uint32_t used = q->c.path, alive = q->c.alive;

	/* The path in use judges the attributes, or else the first one alive that has its adapter.
	 */
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		uint32_t bit = (used + i) % URN_SV_PATHS;
		int its;

		if (!(alive & 1u << bit))
			continue;
		its = urn_sv_change_path(urn_sv_at(q, bit), attr, mask);
		if (err == EIO)
			err = its;
		else if (its != 0)
			urn_sv_down(q, bit);
		if (err != 0 && err != EIO)
			break;
	}
	if (err == 0)
		urn_sv_heal_keep(q, attr, mask);
	return err;
}
