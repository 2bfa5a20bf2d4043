/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <stdlib.h>
#include <string.h>

int
ctx_setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->f = fake_new();
	e->c = urn_attach_open(&e->f->channel);
	assert_non_null(e->c);
	*state = e;
	return 0;
}

int
ctx_teardown(void **state)
{
	struct env *e = *state;

	assert_int_equal(ibv_close_device(e->c), 0);
	assert_int_equal(e->f->closed, 1);
	fake_free(e->f);
	free(e);
	return 0;
}

void
env_poll(struct ibv_cq *cq, unsigned int n)
{
	struct ibv_wc wc;

	for (; n != 0; n--)
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
}

int
env_modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = state;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

void
env_connect(struct ibv_qp *qp)
{
	assert_int_equal(env_modify(qp, IBV_QPS_INIT), 0);
	assert_int_equal(env_modify(qp, IBV_QPS_RTR), 0);
	assert_int_equal(env_modify(qp, IBV_QPS_RTS), 0);
}

static int
env_make(void **state, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr;
	struct env *e;

	ctx_setup(state);
	e = *state;
	e->pd = ibv_alloc_pd(e->c);
	assert_non_null(e->pd);
	e->cq = ibv_create_cq(e->c, 16, NULL, NULL, 0);
	assert_non_null(e->cq);
	memset(&attr, 0, sizeof(attr));
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	attr.qp_type = type;
	attr.cap.max_send_wr = 8;
	attr.cap.max_recv_wr = 8;
	attr.cap.max_send_sge = 4;
	attr.cap.max_recv_sge = 4;
	attr.cap.max_inline_data = 64;
	attr.pd = e->pd;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
	attr.send_ops_flags = ops;
	e->qp = ibv_create_qp_ex(e->c, &attr);
	assert_non_null(e->qp);
	e->qpn = e->qp->qp_num;
	env_connect(e->qp);
	return 0;
}

int
env_setup(void **state)
{
	return env_make(state, IBV_QPT_RC, 0);
}

int
env_setup_ud(void **state)
{
	return env_make(state, IBV_QPT_UD, 0);
}

int
env_setup_ex(void **state)
{
	return env_make(state, IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND);
}

int
env_setup_ex_ud(void **state)
{
	return env_make(state, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
}

int
env_teardown(void **state)
{
	struct env *e = *state;

	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	return ctx_teardown(state);
}
