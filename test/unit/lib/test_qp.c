/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, modifying, querying and destroying queue pairs. */
#include "test.h"

#include <urnic/align.h>
#include <urnic/cm.h>

#include <errno.h>
#include <string.h>

static struct ibv_qp_init_attr
init_attr(struct env *e)
{
	return (struct ibv_qp_init_attr){.qp_context = e, .send_cq = e->cq, .recv_cq = e->cq,
		.qp_type = IBV_QPT_RC, .sq_sig_all = 5,
		.cap = {.max_send_wr = 5, .max_recv_wr = 3, .max_send_sge = 2, .max_recv_sge = 1,
			.max_inline_data = 20}};
}

static void
create_passes_all(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr qi = init_attr(e);
	struct ibv_qp *qp = ibv_create_qp(e->pd, &qi);
	const struct urn_abi_req *r = &e->f->last;

	assert_non_null(qp);
	assert_int_equal(r->create_qp.pd, e->pd->handle);
	assert_int_equal(r->create_qp.type, URN_QPT_RC);
	assert_int_equal(r->create_qp.send_cq, e->cq->handle);
	assert_int_equal(r->create_qp.recv_cq, e->cq->handle);
	assert_int_equal(r->create_qp.srq, 0);
	assert_int_equal(r->create_qp.sq_sig_all, 1);
	assert_int_equal(r->create_qp.cap.max_send_wr, 5);
	assert_int_equal(r->create_qp.cap.max_recv_wr, 3);
	assert_int_equal(r->create_qp.cap.max_send_sge, 2);
	assert_int_equal(r->create_qp.cap.max_recv_sge, 1);
	assert_int_equal(r->create_qp.cap.max_inline, 20);
	/* The granted values come back. */
	assert_int_equal(qi.cap.max_send_wr, 8);
	assert_int_equal(qi.cap.max_recv_wr, 4);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_ptr_equal(qp->qp_context, e);
	assert_ptr_equal(qp->pd, e->pd);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
create_refuses(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
						 IBV_QPT_XRC_RECV, IBV_QPT_DRIVER};
	struct env *e = *state;
	struct ibv_qp_init_attr qi = init_attr(e);
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		qi.qp_type = types[i];
		errno = 0;
		assert_null(ibv_create_qp(e->pd, &qi));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	qi = init_attr(e);
	qi.send_cq = NULL;
	assert_null(ibv_create_qp(e->pd, &qi));
	assert_int_equal(errno, EINVAL);
	qi = init_attr(e);
	fake_fail_next(e->f, URN_CTL_CREATE_QP, ENOMEM, "65536 queue pairs are in use");
	assert_null(ibv_create_qp(e->pd, &qi));
	assert_int_equal(errno, ENOMEM);
	assert_string_equal(urn_attach_error(), "65536 queue pairs are in use");
}

static void
create_ex_refuses(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr_ex a = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_UD, .pd = e->pd,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};

	assert_null(ibv_create_qp_ex(e->c, &a)); /* no WRITE on UD */
	assert_int_equal(errno, EOPNOTSUPP);
	a.qp_type = IBV_QPT_RC;
	a.send_ops_flags = IBV_QP_EX_WITH_TSO;
	errno = 0;
	assert_null(ibv_create_qp_ex(e->c, &a));
	assert_int_equal(errno, EOPNOTSUPP);
	a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	a.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	errno = 0;
	assert_null(ibv_create_qp_ex(e->c, &a));
	assert_int_equal(errno, EOPNOTSUPP);
	a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
	errno = 0;
	assert_null(ibv_create_qp_ex(e->c, &a));
	assert_int_equal(errno, EOPNOTSUPP);
	a.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_null(ibv_create_qp_ex(e->c, &a));
	assert_int_equal(errno, EINVAL);
}

static void
modify_and_query(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a, b;
	const struct urn_abi_qp_attr *q = &e->f->last.modify_qp.attr;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_ACCESS_FLAGS;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_4096;
	a.dest_qp_num = 0x123456;
	a.rq_psn = 0xabcdef;
	a.sq_psn = 0x123;
	a.max_rd_atomic = 3;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 12;
	a.timeout = 14;
	a.retry_cnt = 6;
	a.rnr_retry = 7;
	a.port_num = 1;
	a.qkey = 0x11111111;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.sgid_index = 2;
	a.ah_attr.grh.hop_limit = 9;
	a.ah_attr.grh.traffic_class = 8;
	a.ah_attr.grh.flow_label = 0x12345;
	memset(a.ah_attr.grh.dgid.raw, 0x6b, 16);
	assert_int_equal(ibv_modify_qp(e->qp, &a, mask), 0);
	assert_int_equal(e->f->last.modify_qp.mask, mask);
	assert_int_equal(q->state, IBV_QPS_RTR);
	assert_int_equal(q->dest_qpn, 0x123456);
	assert_int_equal(q->av.dgid[15], 0x6b);
	assert_int_equal(q->av.sgid_index, 2);
	assert_int_equal(e->qp->state, IBV_QPS_RTR);

	memset(&init, 0xff, sizeof(init));
	assert_int_equal(ibv_query_qp(e->qp, &b, IBV_QP_STATE, &init), 0);
	assert_int_equal(b.qp_state, IBV_QPS_RTR);
	assert_int_equal(b.path_mtu, IBV_MTU_4096);
	assert_int_equal(b.dest_qp_num, 0x123456);
	assert_int_equal(b.rq_psn, 0xabcdef);
	assert_int_equal(b.sq_psn, 0x123);
	assert_int_equal(b.max_rd_atomic, 3);
	assert_int_equal(b.max_dest_rd_atomic, 4);
	assert_int_equal(b.min_rnr_timer, 12);
	assert_int_equal(b.timeout, 14);
	assert_int_equal(b.retry_cnt, 6);
	assert_int_equal(b.rnr_retry, 7);
	assert_int_equal(b.qkey, 0x11111111);
	assert_int_equal(b.qp_access_flags, a.qp_access_flags);
	assert_memory_equal(&b.ah_attr.grh, &a.ah_attr.grh, sizeof(b.ah_attr.grh));
	assert_int_equal(b.cap.max_send_wr, 8);
	assert_ptr_equal(init.send_cq, e->cq);
	assert_int_equal(init.cap.max_inline_data, 64);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
}

static void
modify_refuses(void **state)
{
	struct env *e = *state;
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	assert_int_equal(ibv_modify_qp(e->qp, &a, IBV_QP_ALT_PATH), EOPNOTSUPP);
	assert_int_equal(ibv_modify_qp(e->qp, &a, IBV_QP_AV), EINVAL); /* not a global address */
	a.qp_state = IBV_QPS_ERR;
	fake_fail_next(e->f, URN_CTL_MODIFY_QP, EINVAL, "cannot go there");
	assert_int_equal(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), EINVAL);
	assert_int_equal(e->qp->state, IBV_QPS_RTS);
	assert_string_equal(urn_attach_error(), "cannot go there");
}

/* RTR and RTS by one call: the library knows which state was reached. */
static void
ready(void **state)
{
	const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_RQ_PSN, rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .rq_psn = 5, .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .sq_psn = 6}, init = {.qp_state = IBV_QPS_INIT};
	struct env *e = *state;
	const struct urn_abi_req *last = &e->f->last;

	assert_int_equal(ibv_modify_qp(e->qp, &init, IBV_QP_STATE), 0);
	assert_int_equal(urn_cm_qp_ready(e->qp, &rtr, rtr_mask | IBV_QP_ALT_PATH, &rts, rts_mask), EOPNOTSUPP);
	assert_int_equal(urn_cm_qp_ready(e->qp, &rtr, rtr_mask, &rts, rts_mask | IBV_QP_RATE_LIMIT), EOPNOTSUPP);
	assert_int_equal(urn_cm_qp_ready(e->qp, &init, IBV_QP_AV, &rts, rts_mask), EINVAL); /* not a global address */
	assert_int_equal(e->f->calls[URN_CTL_CONNECT_QP], 0);
	fake_fail_next(e->f, URN_CTL_CONNECT_QP, EINVAL, "cannot go there");
	assert_int_equal(urn_cm_qp_ready(e->qp, &rtr, rtr_mask, &rts, rts_mask), EINVAL);
	assert_int_equal(e->qp->state, IBV_QPS_INIT);
	assert_string_equal(urn_attach_error(), "cannot go there");
	assert_int_equal(urn_cm_qp_ready(e->qp, &rtr, rtr_mask, &rts, rts_mask), 0);
	assert_int_equal(e->qp->state, IBV_QPS_RTS);
	assert_int_equal(last->connect_qp.rtr_mask, rtr_mask);
	assert_int_equal(last->connect_qp.rts_mask, rts_mask);
	assert_int_equal(last->connect_qp.rtr.rq_psn, 5);
	assert_int_equal(last->connect_qp.rts.sq_psn, 6);
	assert_int_equal(e->f->calls[URN_CTL_CONNECT_QP], 2);
}

/* Lines that there are, of RC alone; the dataplane's refusal is passed on. */
static void
aligns(void **state)
{
	static const uint32_t good[] = {URN_LINE_OFF, URN_LINE_PEER, 64, 128, 256},
			      bad[] = {2, 32, 65, 512};
	struct env *e = *state;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(urn_qp_align(e->qp, good[i]), 0);
		assert_int_equal(e->f->last.op, URN_CTL_ALIGN_QP);
		assert_int_equal(e->f->last.handle, e->qp->handle);
		assert_int_equal(e->f->last.align_qp.line, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_qp_align(e->qp, bad[i]), EINVAL);
	e->qp->qp_type = IBV_QPT_UD;
	assert_int_equal(urn_qp_align(e->qp, 64), EINVAL);
	e->qp->qp_type = IBV_QPT_RC;
	assert_int_equal(e->f->calls[URN_CTL_ALIGN_QP], 5);
	fake_fail_next(e->f, URN_CTL_ALIGN_QP, EOPNOTSUPP, "too old");
	assert_int_equal(urn_qp_align(e->qp, 64), EOPNOTSUPP);
	assert_string_equal(urn_attach_error(), "too old");
}

/* The dataplane may have moved the QP by itself; a query updates the library too. */
static void
query_learns_state(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	fake_qp(e->f, e->qpn)->attr.state = URN_QPS_ERR;
	assert_int_equal(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init), 0);
	assert_int_equal(e->qp->state, IBV_QPS_ERR);
}

static void
post_all(struct env *e)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct ibv_recv_wr *rbad, rwr = {.num_sge = 0};
	int i;

	for (i = 0; i < 8; i++) {
		assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
		assert_int_equal(ibv_post_recv(e->qp, &rwr, &rbad), 0);
	}
	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_post_recv(e->qp, &rwr, &rbad), ENOMEM);
}

/* RESET drops queued requests: all slots can be used again, wherever the dataplane left the indices. */
static void
reset_empties(void **state)
{
	struct env *e = *state;
	int i;

	for (i = 0; i < 2; i++) {
		e->f->zero_reset = i;
		post_all(e);
		assert_int_equal(env_modify(e->qp, IBV_QPS_RESET), 0);
		assert_null(fake_send_wqe(e->f, e->qpn));
		assert_null(fake_take_recv(e->f, e->qpn));
		env_connect(e->qp);
		post_all(e);
		assert_int_equal(env_modify(e->qp, IBV_QPS_RESET), 0);
		env_connect(e->qp);
	}
}

static void
destroy_fails(void **state)
{
	struct env *e = *state;

	fake_fail_next(e->f, URN_CTL_DESTROY_QP, EBUSY, "");
	assert_int_equal(ibv_destroy_qp(e->qp), EBUSY);
	assert_string_not_equal(urn_attach_error(), "");
	post_all(e);
}

static void
no_promise_of_order(void **state)
{
	struct env *e = *state;

	assert_int_equal(ibv_query_qp_data_in_order(e->qp, IBV_WR_RDMA_WRITE, 0), 0);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(create_passes_all),	 RC(create_refuses), RC(create_ex_refuses),
		RC(modify_and_query),	 RC(modify_refuses), RC(ready),
		RC(query_learns_state),	 RC(reset_empties),  RC(destroy_fails),
		RC(no_promise_of_order), RC(aligns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
