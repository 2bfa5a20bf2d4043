/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs. */
#include "verbs/front.h"

#include <urnic/cm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Attributes that can't be changed. */
#define URN_QP_UNSUPPORTED (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT)

#define URN_QP_EX_UD ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))
#define URN_QP_EX_UC                                                                     \
	(URN_QP_EX_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define URN_QP_EX_RC (URN_QP_EX_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | \
	IBV_QP_EX_WITH_SEND_WITH_INV)

/* attr->pd is set; attr->cap gets the granted capabilities. */
static struct ibv_qp *
urn_verbs_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_pd *pd = attr->pd;
	struct ibv_qp *qp;

	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
	    attr->qp_type != IBV_QPT_UD) {
		urn_unsupported("a queue pair of another type than RC, UC and UD");
		return NULL;
	}
	if (attr->qp_type == IBV_QPT_UC && attr->srq != NULL) {
		urn_unsupported("a UC queue pair with a shared receive queue");
		return NULL;
	}
	if (attr->send_cq == NULL || attr->recv_cq == NULL) {
		urn_fail(EINVAL, "a queue pair needs completion queues for both directions");
		return NULL;
	}
	attr->pd = urn_pd_use(pd);
	qp = urn_ops(pd->context)->create_qp(attr);
	attr->pd = pd;
	if (qp == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	qp->context = pd->context;
	qp->qp_context = attr->qp_context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->mutex, NULL);
	pthread_cond_init(&qp->cond, NULL);
	return qp;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	/* The extended attributes begin like the plain ones. */
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, init, sizeof(*init));
	attr.pd = pd;
	qp = urn_verbs_create_qp(&attr);
	if (qp != NULL)
		init->cap = attr.cap;
	return qp;
}

/* Check that urnic can do all that the extended attributes ask for. */
static int
urn_qp_check_ex(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
		IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const uint64_t ops = attr->qp_type == IBV_QPT_UD   ? URN_QP_EX_UD
			     : attr->qp_type == IBV_QPT_UC ? URN_QP_EX_UC
							   : URN_QP_EX_RC;

	if (attr->comp_mask & ~known)
		return urn_unsupported("a queue pair with XRC, TSO, or a receive indirection table");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd == NULL)
		return urn_fail(EINVAL, "a queue pair needs a protection domain");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0)
		return urn_unsupported("a queue pair with creation flags");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && (attr->send_ops_flags & ~ops))
		return urn_unsupported("a send operation that was asked for, on this type of queue pair");
	return 0;
}

struct ibv_qp *
urn_verbs_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
	(void)c;
	if (urn_qp_check_ex(attr) != 0)
		return NULL;
	return urn_verbs_create_qp(attr);
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

	/* A provider sets these operations of a QP that is made with send_ops_flags. */
	return ex->wr_start != NULL ? ex : NULL;
}

/* ---- changing and asking */

/* Check attributes that are to be changed. returns: 0 or an errno value */
static int
urn_qp_check_attr(const struct ibv_qp_attr *attr, int mask)
{
	return mask & IBV_QP_AV ? urn_ah_check(&attr->ah_attr) : 0;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err;

	if (mask & URN_QP_UNSUPPORTED)
		return urn_unsupported("alternate paths and rate limits of a queue pair");
	err = urn_qp_check_attr(attr, mask);
	if (err == 0)
		err = urn_ops(qp->context)->modify_qp(qp, attr, mask);
	if (err == 0 && (mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	return err;
}

int
urn_cm_qp_ready(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask)
{
	enum ibv_qp_state reached = qp->state;
	int err;

	if ((rtr_mask | rts_mask) & URN_QP_UNSUPPORTED)
		return urn_unsupported("alternate paths and rate limits of a queue pair");
	err = urn_qp_check_attr(rtr, rtr_mask);
	if (err == 0)
		err = urn_qp_check_attr(rts, rts_mask);
	if (err != 0)
		return err;
	err = urn_ops(qp->context)->connect_qp(qp, rtr, rtr_mask, rts, rts_mask, &reached);
	qp->state = reached;
	return err;
}

int
ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr got;
	int err;

	memset(&got, 0, sizeof(got));
	err = urn_ops(qp->context)->query_qp(qp, attr, mask, &got);
	if (err != 0)
		return err;
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	got.qp_context = qp->qp_context;
	got.send_cq = qp->send_cq;
	got.recv_cq = qp->recv_cq;
	got.srq = qp->srq;
	got.qp_type = qp->qp_type;
	*init = got;
	return 0;
}

int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0; /* bytes of one message may be placed in any order */
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	int err = urn_ops(qp->context)->destroy_qp(qp);

	if (err != 0)
		return err;
	urn_pd_leave(qp->pd);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	free(qp);
	return 0;
}
