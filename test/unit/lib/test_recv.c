/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_recv() and ibv_post_srq_recv(): layout, limits, and when the doorbell rings (lib/abi/queue.h). */
#include "test.h"

#include <errno.h>

static void
recv_layout(void **state)
{
	struct env *e = *state;
	struct ibv_sge sge[4] = {{.addr = 0x10, .length = 1, .lkey = 2}, {0}, {0}, {.addr = 9, .length = 8, .lkey = 7}};
	struct ibv_recv_wr *bad, wr[2] = {
		{.wr_id = 5, .sg_list = sge, .num_sge = 4, .next = &wr[1]}, {.wr_id = 6, .num_sge = 0}};
	const struct urn_abi_rwqe *w;
	const struct urn_abi_sge *s;

	assert_int_equal(ibv_post_recv(e->qp, wr, &bad), 0);
	w = fake_take_recv(e->f, e->qpn);
	assert_int_equal(w->wr_id, 5);
	assert_int_equal(w->num_sge, 4);
	s = (const struct urn_abi_sge *)(w + 1);
	assert_int_equal(s[0].addr, 0x10);
	assert_int_equal(s[0].length, 1);
	assert_int_equal(s[0].lkey, 2);
	assert_int_equal(s[3].addr, 9);
	assert_int_equal(s[3].length, 8);
	assert_int_equal(s[3].lkey, 7);
	w = fake_take_recv(e->f, e->qpn);
	assert_int_equal(w->wr_id, 6);
	assert_int_equal(w->num_sge, 0);
	assert_null(fake_take_recv(e->f, e->qpn));
	assert_int_equal(fake_doorbells(e->f, NULL), 0);
}

static void
recv_full_and_wrap(void **state)
{
	struct env *e = *state;
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};
	unsigned int lap, i;

	for (lap = 0; lap < 5; lap++) {
		for (i = 0; i < 8; i++) {
			wr.wr_id = lap * 8 + i;
			assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
		}
		bad = NULL;
		assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), ENOMEM);
		assert_ptr_equal(bad, &wr);
		for (i = 0; i < 8; i++) {
			assert_int_equal(fake_take_recv(e->f, e->qpn)->wr_id, lap * 8 + i);
			fake_complete(e->f, e->cq->handle,
				      &(struct fake_wc){.qpn = e->qpn, .opcode = URN_WCO_RECV});
			assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), ENOMEM);
		}
		env_poll(e->cq, 8);
	}
}

static void
recv_list_stops_at_bad(void **state)
{
	struct env *e = *state;
	struct ibv_recv_wr *bad = NULL, wr[3] = {
		{.wr_id = 1, .next = &wr[1]}, {.wr_id = 2, .num_sge = 5, .next = &wr[2]}, {.wr_id = 3}};

	assert_int_equal(ibv_post_recv(e->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(fake_take_recv(e->f, e->qpn)->wr_id, 1);
	assert_null(fake_take_recv(e->f, e->qpn));
	wr[1].num_sge = -1;
	assert_int_equal(ibv_post_recv(e->qp, &wr[1], &bad), EINVAL);
}

/* In the error state the dataplane asks for the doorbell, so that it can flush. */
static void
recv_rings_when_asked(void **state)
{
	struct env *e = *state;
	struct urn_abi_wq *hdr = fake_at(e->f, fake_qp(e->f, e->qpn)->rq_off);
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};
	uint32_t db = 0;

	atomic_store(&hdr->ring, 1);
	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
	assert_int_equal(fake_doorbells(e->f, &db), 1);
	assert_int_equal(db, fake_qp(e->f, e->qpn)->db);
}

static void
recv_shared(void **state)
{
	struct env *e = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 99}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	struct ibv_qp_init_attr qi = {.send_cq = e->cq,
				      .recv_cq = e->cq,
				      .srq = srq,
				      .qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &qi);
	struct ibv_sge sge = {.addr = 1, .length = 2, .lkey = 3};
	struct ibv_recv_wr *bad, wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1};
	const struct urn_abi_rwqe *w;
	int i;

	assert_non_null(srq);
	assert_non_null(qp);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	w = fake_take_srq(e->f, srq->handle, qp->qp_num);
	assert_int_equal(w->wr_id, 8);
	assert_int_equal(((const struct urn_abi_sge *)(w + 1))->lkey, 3);
	fake_complete(e->f, e->cq->handle,
		      &(struct fake_wc){.qpn = qp->qp_num, .opcode = URN_WCO_RECV});
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	env_poll(e->cq, 1);
	/* A reused slot does not keep its former taker. */
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(w->taker, 0);
	/* A receive that its QP took and did not complete comes back with the end of the QP. */
	assert_non_null(fake_take_srq(e->f, srq->handle, qp->qp_num));
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	wr.num_sge = 2;
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* A QP with an SRQ has no receive queue of its own. */
static void
recv_refused_with_srq(void **state)
{
	struct env *e = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qi = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_recv_wr *bad = NULL, wr = {.num_sge = 0};
	struct ibv_qp *qp;

	qi.srq = ibv_create_srq(e->pd, &init);
	assert_non_null(qi.srq);
	qp = ibv_create_qp(e->pd, &qi);
	assert_non_null(qp);
	assert_int_equal(qi.cap.max_recv_wr, 0);
	env_connect(qp);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(env_modify(qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(qi.srq), 0);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(recv_layout), RC(recv_full_and_wrap), RC(recv_list_stops_at_bad), RC(recv_rings_when_asked),
		RC(recv_shared), RC(recv_refused_with_srq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
