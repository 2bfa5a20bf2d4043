/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of ids, with the completion queues and shared receive queues that belong to them. */
#include "dropin/rdmacm/rdmacm.h"

#include <rdma/rdma_verbs.h>
#include <string.h>

static int
attr_init(const struct rdma_cm_id *pub, struct ibv_qp_attr *a, int *mask)
{
	a->pkey_index = 0;
	a->port_num = 1;
	if (pub->qp_type == IBV_QPT_UD) {
		a->qkey = RDMA_UDP_QKEY;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	}
	a->qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	return 0;
}

/* True when the peer's REQ or REP is there. */
static bool
peer_known(const struct urn_cma_id *id)
{
	return id->state >= URN_CMA_REPLIED && id->peer.type != URN_CM_EVENT_NONE;
}

void
urn_cma_ah_attr(const struct urn_cma_id *id, const uint8_t gid[16], struct ibv_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = 1;
	memcpy(ah->grh.dgid.raw, gid, 16);
	ah->grh.sgid_index = id->sgid_index;
	ah->grh.hop_limit = 64;
	ah->grh.traffic_class = id->tos;
}

static int
attr_rtr(const struct urn_cma_id *id, struct ibv_qp_attr *a, int *mask)
{
	/* A REP names no path MTU. */
	uint8_t mtu = id->peer.type == URN_CM_EVENT_REQUEST ? id->peer.mtu : id->dev->mtu;

	if (urn_cma_datagrams(id)) {
		*mask = IBV_QP_STATE;
		return 0;
	}
	if (!peer_known(id))
		return EINVAL;
	a->path_mtu = (enum ibv_mtu)mtu;
	a->dest_qp_num = id->peer.qpn;
	a->rq_psn = id->psn;
	a->max_dest_rd_atomic = id->responder_resources;
	a->min_rnr_timer = 0; /* 655 ms, as rdma_connect(3) says */
	urn_cma_ah_attr(id, id->peer.gid, &a->ah_attr);
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

static int
attr_rts(const struct urn_cma_id *id, struct ibv_qp_attr *a, int *mask)
{
	if (urn_cma_datagrams(id)) {
		a->sq_psn = 0;
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	}
	if (!peer_known(id))
		return EINVAL;
	a->timeout = id->ack_timeout;
	a->retry_cnt = id->retry_count;
	a->rnr_retry = id->rnr_retry;
	a->sq_psn = id->peer.psn;
	a->max_rd_atomic = id->initiator_depth;
	*mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

int
rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *attr, int *mask)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	int err = EINVAL;

	if (id == NULL || attr == NULL || mask == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	if (id->dev != NULL && attr->qp_state == IBV_QPS_INIT)
		err = attr_init(pub, attr, mask);
	else if (id->dev != NULL && attr->qp_state == IBV_QPS_RTR)
		err = attr_rtr(id, attr, mask);
	else if (id->dev != NULL && attr->qp_state == IBV_QPS_RTS)
		err = attr_rts(id, attr, mask);
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(err);
}

int
urn_cma_qp_up(struct urn_cma_id *id)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
	int rtr_mask, rts_mask;
	int err = attr_rtr(id, &rtr, &rtr_mask);

	if (err == 0)
		err = attr_rts(id, &rts, &rts_mask);
	return err != 0 ? err : urn_cm_qp_ready(id->pub.qp, &rtr, rtr_mask, &rts, rts_mask);
}

void
urn_cma_qp_error(struct urn_cma_id *id)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	(void)ibv_modify_qp(id->pub.qp, &a, IBV_QP_STATE);
}

/* ---- completion queues that the library makes for an id */

static void
cq_destroy(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq != NULL)
		(void)ibv_destroy_cq(*cq);
	if (*channel != NULL)
		(void)ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

/* returns: 0, or an errno value */
static int
cq_create(struct rdma_cm_id *pub, uint32_t entries, struct ibv_cq **cq,
	  struct ibv_comp_channel **channel)
{
	int err;

	*channel = ibv_create_comp_channel(pub->verbs);
	if (*channel == NULL)
		return errno;
	*cq = ibv_create_cq(pub->verbs, entries != 0 ? (int)entries : 1, pub, *channel, 0);
	if (*cq != NULL)
		return 0;
	err = errno;
	cq_destroy(cq, channel);
	return err;
}

static void
cqs_destroy(struct rdma_cm_id *pub)
{
	cq_destroy(&pub->recv_cq, &pub->recv_cq_channel);
	cq_destroy(&pub->send_cq, &pub->send_cq_channel);
}

/* Make the completion queues that the program did not give. */
static int
cqs_create(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *a)
{
	int err = 0;

	if (a->recv_cq == NULL && pub->recv_cq == NULL)
		err = cq_create(pub, a->srq == NULL ? a->cap.max_recv_wr : 1, &pub->recv_cq,
				&pub->recv_cq_channel);
	if (err == 0 && a->send_cq == NULL && pub->send_cq == NULL)
		err = cq_create(pub, a->cap.max_send_wr, &pub->send_cq, &pub->send_cq_channel);
	if (err != 0)
		return err;
	if (a->recv_cq == NULL)
		a->recv_cq = pub->recv_cq;
	if (a->send_cq == NULL)
		a->send_cq = pub->send_cq;
	return 0;
}

/* ---- queue pairs */

/* Check, and fill in what is the id's. returns: 0, or an errno value */
static int
qp_prepare(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *a)
{
	if (pub->verbs == NULL || pub->qp != NULL)
		return EINVAL;
	if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (a->qp_type != pub->qp_type)
		return EINVAL;
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || a->pd == NULL)
		a->pd = pub->pd;
	a->comp_mask |= IBV_QP_INIT_ATTR_PD;
	if (a->pd->context != pub->verbs)
		return EINVAL;
	if (a->srq == NULL)
		a->srq = pub->srq;
	return cqs_create(pub, a);
}

/* Take a new queue pair to INIT, and one of datagrams on to RTS. returns: 0, or an errno value */
static int
qp_start(struct rdma_cm_id *pub, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
	int mask, err;

	attr_init(pub, &a, &mask);
	err = ibv_modify_qp(qp, &a, mask);
	if (err != 0 || pub->qp_type != IBV_QPT_UD)
		return err;
	err = ibv_modify_qp(qp, &rtr, IBV_QP_STATE);
	return err != 0 ? err : ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int
rdma_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *qp;
	int err;

	if (pub == NULL || a == NULL)
		return urn_cma_result(EINVAL);
	err = qp_prepare(pub, a);
	if (err != 0)
		goto err_cqs;
	qp = ibv_create_qp_ex(pub->verbs, a);
	err = qp != NULL ? 0 : errno;
	if (err != 0)
		goto err_cqs;
	err = qp_start(pub, qp);
	if (err != 0)
		goto err_qp;
	pub->pd = a->pd;
	pub->qp = qp;
	return 0;

err_qp:
	(void)ibv_destroy_qp(qp);
err_cqs:
	if (pub->qp == NULL)
		cqs_destroy(pub);
	return urn_cma_result(err);
}

int
rdma_create_qp(struct rdma_cm_id *pub, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex a;
	int rc;

	if (pub == NULL || init == NULL)
		return urn_cma_result(EINVAL);
	/* The extended attributes begin like the plain ones. */
	memset(&a, 0, sizeof(a));
	memcpy(&a, init, sizeof(*init));
	a.comp_mask = pd != NULL ? IBV_QP_INIT_ATTR_PD : 0;
	a.pd = pd;
	rc = rdma_create_qp_ex(pub, &a);
	if (rc == 0)
		memcpy(init, &a, sizeof(*init));
	return rc;
}

void
rdma_destroy_qp(struct rdma_cm_id *pub)
{
	struct ibv_qp *qp;

	if (pub == NULL)
		return;
	pthread_mutex_lock(&urn_cma_lock);
	qp = pub->qp;
	pub->qp = NULL;
	urn_cma_groups_detach(urn_cma_of(pub));
	pthread_mutex_unlock(&urn_cma_lock);
	if (qp != NULL)
		(void)ibv_destroy_qp(qp);
	cqs_destroy(pub);
}

/* ---- shared receive queues */

int
rdma_create_srq_ex(struct rdma_cm_id *pub, struct ibv_srq_init_attr_ex *a)
{
	struct ibv_srq_init_attr plain;

	if (pub == NULL || a == NULL || pub->verbs == NULL || pub->srq != NULL)
		return urn_cma_result(EINVAL);
	if ((a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && a->srq_type != IBV_SRQT_BASIC)
		return urn_cma_result(EOPNOTSUPP);
	plain = (struct ibv_srq_init_attr){.srq_context = a->srq_context, .attr = a->attr};
	if ((a->comp_mask & IBV_SRQ_INIT_ATTR_PD) && a->pd != NULL)
		return rdma_create_srq(pub, a->pd, &plain);
	return rdma_create_srq(pub, NULL, &plain);
}

int
rdma_create_srq(struct rdma_cm_id *pub, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (pub == NULL || attr == NULL || pub->verbs == NULL || pub->srq != NULL)
		return urn_cma_result(EINVAL);
	if (pd == NULL)
		pd = pub->pd;
	if (pd->context != pub->verbs)
		return urn_cma_result(EINVAL);
	pub->srq = ibv_create_srq(pd, attr);
	if (pub->srq == NULL)
		return -1;
	pub->pd = pd;
	return 0;
}

void
rdma_destroy_srq(struct rdma_cm_id *pub)
{
	if (pub == NULL || pub->srq == NULL)
		return;
	(void)ibv_destroy_srq(pub->srq);
	pub->srq = NULL;
}
