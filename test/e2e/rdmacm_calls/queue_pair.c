/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_create_qp_ex(), and rdma_notify(). */
#include "calls.h"

static struct ibv_qp_init_attr_ex
plain(void)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

/* A call that is refused leaves no queue behind. */
static void
refused(struct rdma_cm_id *id, struct ibv_pd *elsewhere)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET};
	struct ibv_qp_init_attr_ex a = plain();

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		a.qp_type = types[i];
		FAILS(rdma_create_qp_ex(id, &a), EOPNOTSUPP);
	}
	a = plain();
	a.qp_type = IBV_QPT_UD; /* the id is one of connections */
	FAILS(rdma_create_qp_ex(id, &a), EINVAL);
	a = plain();
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	a.pd = elsewhere;
	FAILS(rdma_create_qp_ex(id, &a), EINVAL);
	a = plain();
	a.comp_mask = 1u << 31;
	CHECK(rdma_create_qp_ex(id, &a) == -1);
	a = plain();
	a.cap.max_send_wr = 1u << 30;
	CHECK(rdma_create_qp_ex(id, &a) == -1);
	FAILS(rdma_create_qp_ex(id, NULL), EINVAL);
	FAILS(rdma_create_qp_ex(NULL, &a), EINVAL);
	CHECK(id->qp == NULL && id->send_cq == NULL && id->recv_cq == NULL);
	CHECK(id->send_cq_channel == NULL && id->recv_cq_channel == NULL);
}

/* Without a domain and queues the id has its own; with ibv_wr_*(). */
static void
own_queues(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex a = plain();
	struct ibv_qp_ex *ex;

	a.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	a.send_ops_flags = IBV_QP_EX_WITH_SEND;
	EQUAL(rdma_create_qp_ex(id, &a), 0);
	CHECK(id->qp != NULL && id->pd != NULL && id->qp->pd == id->pd);
	CHECK(id->qp->send_cq == id->send_cq && id->qp->recv_cq == id->recv_cq);
	CHECK(id->send_cq_channel != NULL && id->recv_cq_channel != NULL);
	EQUAL(id->qp->state, IBV_QPS_INIT);
	CHECK((ex = ibv_qp_to_qp_ex(id->qp)) != NULL && ex->wr_send != NULL);
	FAILS(rdma_create_qp_ex(id, &a), EINVAL); /* it has one */
	rdma_destroy_qp(id);
	CHECK(id->qp == NULL && id->send_cq == NULL && id->recv_cq_channel == NULL);
}

/* With a domain, queues and a shared receive queue of the program's, which stay its own. */
static void
given_queues(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr s = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr_ex a = plain();
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);

	CHECK(pd != NULL && cq != NULL);
	a.comp_mask = IBV_QP_INIT_ATTR_PD;
	a.pd = pd;
	a.send_cq = a.recv_cq = cq;
	CHECK((a.srq = ibv_create_srq(pd, &s)) != NULL);
	EQUAL(rdma_create_qp_ex(id, &a), 0);
	CHECK(id->qp->pd == pd && id->pd == pd && id->qp->srq == a.srq);
	CHECK(id->qp->send_cq == cq && id->send_cq == NULL && id->recv_cq == NULL);
	rdma_destroy_qp(id);
	EQUAL(ibv_destroy_srq(a.srq), 0);
	EQUAL(ibv_destroy_cq(cq), 0);
	EQUAL(ibv_dealloc_pd(pd), 0);
}

void
queue_pair_case(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr_ex a = plain();
	struct rdma_cm_id *id, *l;

	CHECK(channel != NULL);
	EQUAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	FAILS(rdma_create_qp_ex(id, &a), EINVAL); /* no device yet */
	EQUAL(rdma_destroy_id(id), 0);
	l = listening(channel, PORT + 4);
	id = routed(channel, PORT + 4);
	CHECK(id->verbs != l->verbs);
	refused(id, l->pd);
	own_queues(id);
	given_queues(id);
	EQUAL(rdma_destroy_id(id), 0);
	EQUAL(rdma_destroy_id(l), 0);
	rdma_destroy_event_channel(channel);
}

/*
 * The peer's first message can come before its RTU: a program then tells that the connection is up
 * (IBV_EVENT_COMM_EST). The client here brings up no queue pair, and so sends its RTU late.
 */
void
notify_case(void)
{
	struct rdma_event_channel *from = rdma_create_event_channel(),
				  *at = rdma_create_event_channel();
	struct rdma_cm_id *l = listening(at, PORT + 5), *id = routed(from, PORT + 5), *got;
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(id->pd, &a);
	struct rdma_conn_param p = {0};
	struct ibv_qp_init_attr_ex server = plain();

	CHECK(cq != NULL && qp != NULL);
	p.qp_num = qp->qp_num;
	FAILS(rdma_notify(l, IBV_EVENT_COMM_EST), EINVAL);
	FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	EQUAL(rdma_connect(id, &p), 0);
	got = next(at, RDMA_CM_EVENT_CONNECT_REQUEST);
	FAILS(rdma_notify(got, IBV_EVENT_COMM_EST), EINVAL); /* not accepted yet */
	EQUAL(rdma_create_qp_ex(got, &server), 0);
	EQUAL(rdma_accept(got, NULL), 0);
	CHECK(next(from, RDMA_CM_EVENT_CONNECT_RESPONSE) == id);
	CHECK(quiet(at));
	FAILS(rdma_notify(got, IBV_EVENT_PATH_MIG),
	      EINVAL); /* connection management has no use for it */
	CHECK(quiet(at));
	EQUAL(rdma_notify(got, IBV_EVENT_COMM_EST), 0);
	CHECK(next(at, RDMA_CM_EVENT_ESTABLISHED) == got);
	EQUAL(rdma_notify(got, IBV_EVENT_COMM_EST), 0); /* once more tells nothing new */
	EQUAL(rdma_establish(id), 0);
	/* The RTU, which comes before the DREQ, is no second event. */
	EQUAL(rdma_disconnect(id), 0);
	CHECK(next(at, RDMA_CM_EVENT_DISCONNECTED) == got);
	FAILS(rdma_notify(got, IBV_EVENT_COMM_EST), EINVAL);
	EQUAL(rdma_disconnect(got), 0);
	CHECK(next(from, RDMA_CM_EVENT_DISCONNECTED) == id);
	rdma_destroy_qp(got);
	EQUAL(ibv_destroy_qp(qp), 0);
	EQUAL(ibv_destroy_cq(cq), 0);
	EQUAL(rdma_destroy_id(got), 0);
	EQUAL(rdma_destroy_id(id), 0);
	EQUAL(rdma_destroy_id(l), 0);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(at);
}
