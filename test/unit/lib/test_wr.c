/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting with ibv_wr_*(): the same requests as ibv_post_send(), all of a batch or none. */
#include "test.h"

#include <errno.h>
#include <string.h>

static struct ibv_qp_ex *
start(struct env *e, uint64_t wr_id, unsigned int flags)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);

	assert_non_null(qp);
	ibv_wr_start(qp);
	qp->wr_id = wr_id;
	qp->wr_flags = flags;
	return qp;
}

static const struct urn_abi_swqe *
take(struct env *e)
{
	const struct urn_abi_swqe *w = fake_send_wqe(e->f, e->qpn);

	assert_non_null(w);
	fake_retire(e->f, e->qpn, 1);
	return w;
}

/* The WRITE that wr_rc_ops() posts first. */
static void
expect_write(const struct urn_abi_swqe *w)
{
	const struct urn_abi_sge *sge = (const struct urn_abi_sge *)(w + 1);

	assert_int_equal(w->wr_id, 1);
	assert_int_equal(w->opcode, URN_WR_RDMA_WRITE);
	assert_int_equal(w->flags, URN_WRF_SIGNALED | URN_WRF_FENCE);
	assert_int_equal(w->num_sge, 1);
	assert_int_equal(w->rdma.rkey, 11);
	assert_int_equal(w->rdma.remote_addr, 0x1000);
	assert_int_equal(sge->lkey, 5);
	assert_int_equal(sge->addr, 6);
	assert_int_equal(sge->length, 7);
}

static void
wr_rc_ops(void **state)
{
	struct env *e = *state;
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	struct ibv_mr mr = {.lkey = 0x99};
	struct ibv_mw_bind_info info = {.mr = &mr, .addr = 1, .length = 2, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_ex *qp = start(e, 1, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	const struct urn_abi_swqe *w;

	ibv_wr_rdma_write(qp, 11, 0x1000);
	ibv_wr_set_sge(qp, 5, 6, 7);
	qp->wr_id = 2;
	qp->wr_flags = 0;
	ibv_wr_rdma_write_imm(qp, 12, 0x2000, 0xaabb);
	qp->wr_id = 3;
	ibv_wr_rdma_read(qp, 13, 0x3000);
	ibv_wr_atomic_cmp_swp(qp, 14, 0x4000, 100, 200);
	ibv_wr_atomic_fetch_add(qp, 15, 0x5000, 300);
	ibv_wr_local_inv(qp, 16);
	ibv_wr_bind_mw(qp, mw, mw->rkey + 1, &info);
	ibv_wr_send_inv(qp, 17);
	assert_null(fake_send_wqe(e->f, e->qpn)); /* nothing before the end */
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_doorbells(e->f, NULL), 1);

	expect_write(take(e));
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_RDMA_WRITE_IMM);
	assert_int_equal(w->flags, 0);
	assert_int_equal(w->imm, 0xaabb);
	assert_int_equal(w->num_sge, 0);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_RDMA_READ);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_CMP_SWAP);
	assert_int_equal(w->rdma.compare_add, 100);
	assert_int_equal(w->rdma.swap, 200);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_FETCH_ADD);
	assert_int_equal(w->rdma.compare_add, 300);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_LOCAL_INV);
	assert_int_equal(w->imm, 16);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_BIND_MW);
	assert_int_equal(w->bind.mw_rkey, mw->rkey);
	assert_int_equal(w->bind.new_rkey, mw->rkey + 1);
	assert_int_equal(w->bind.mr_lkey, 0x99);
	w = take(e);
	assert_int_equal(w->opcode, URN_WR_SEND_INV);
	assert_int_equal(w->imm, 17);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void
wr_data(void **state)
{
	struct env *e = *state;
	struct ibv_data_buf buf[2];
	struct ibv_sge sge[5] = {{.lkey = 1}, {.lkey = 2}};
	uint8_t data[64];
	struct ibv_qp_ex *qp;
	const struct urn_abi_swqe *w;

	memset(data, 0x3c, sizeof(data));
	buf[0] = (struct ibv_data_buf){data, 3};
	buf[1] = (struct ibv_data_buf){data, 61};
	qp = start(e, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 2, sge);
	ibv_wr_send_imm(qp, 9);
	ibv_wr_set_inline_data(qp, data, 5);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data_list(qp, 2, buf);
	assert_int_equal(ibv_wr_complete(qp), 0);
	w = take(e);
	assert_int_equal(w->flags, URN_WRF_SIGNALED); /* inline or not, decided by the call that sets the data */
	assert_int_equal(w->num_sge, 2);
	assert_int_equal(((const struct urn_abi_sge *)(w + 1))[1].lkey, 2);
	w = take(e);
	assert_int_equal(w->flags, URN_WRF_SIGNALED | URN_WRF_INLINE);
	assert_int_equal(w->rdma.inline_len, 5);
	assert_int_equal(w->imm, 9);
	w = take(e);
	assert_int_equal(w->rdma.inline_len, 64);
	assert_memory_equal(w + 1, data, 64);

	qp = start(e, 1, 0);
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 5, sge);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	buf[1].length = 62;
	qp = start(e, 1, 0);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data_list(qp, 2, buf);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	qp = start(e, 1, 0);
	ibv_wr_rdma_read(qp, 1, 2);
	ibv_wr_set_inline_data(qp, data, 5);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_null(fake_send_wqe(e->f, e->qpn));
}

/* The first error stays, and makes the whole batch fail. */
static void
wr_all_or_nothing(void **state)
{
	struct env *e = *state;
	struct ibv_qp_ex *qp = start(e, 1, 0);
	int i;

	for (i = 0; i < 9; i++) {
		ibv_wr_send(qp);
		ibv_wr_set_sge(qp, 1, 2, 3);
	}
	ibv_wr_set_inline_data(qp, qp, 1000000);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);
	assert_null(fake_send_wqe(e->f, e->qpn));
	assert_int_equal(fake_doorbells(e->f, NULL), 0);

	qp = start(e, 2, 0);
	ibv_wr_send(qp);
	ibv_wr_abort(qp);
	assert_null(fake_send_wqe(e->f, e->qpn));

	qp = start(e, 3, 0); /* all eight slots are free again */
	for (i = 0; i < 8; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(take(e)->wr_id, 3);

	qp = start(e, 4, 1 << 4);
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	qp = start(e, 4, 0);
	ibv_wr_send_tso(qp, NULL, 0, 0);
	assert_int_equal(ibv_wr_complete(qp), EOPNOTSUPP);
	qp = start(e, 4, 0);
	ibv_wr_atomic_write(qp, 0, 0, NULL);
	assert_int_equal(ibv_wr_complete(qp), EOPNOTSUPP);
	qp = start(e, 4, 0);
	ibv_wr_set_xrc_srqn(qp, 0);
	assert_int_equal(ibv_wr_complete(qp), EOPNOTSUPP);
	qp = start(e, 4, 0); /* an empty batch rings no doorbell */
	fake_doorbells(e->f, NULL);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_doorbells(e->f, NULL), 0);

	assert_int_equal(env_modify(e->qp, IBV_QPS_RTR), 0);
	qp = start(e, 5, 0);
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
}

static void
wr_ud(void **state)
{
	struct env *e = *state;
	struct ibv_ah ah = {.handle = 0x31};
	struct ibv_qp_ex *qp = start(e, 1, IBV_SEND_SOLICITED);
	const struct urn_abi_swqe *w;

	ibv_wr_send_imm(qp, 4);
	ibv_wr_set_ud_addr(qp, &ah, 0x222, 0x333);
	ibv_wr_set_inline_data(qp, "abc", 3);
	ibv_wr_send(qp); /* the address is missing */
	assert_int_equal(ibv_wr_complete(qp), 0);
	w = take(e);
	assert_int_equal(w->ud.ah, 0x31);
	assert_int_equal(w->ud.remote_qpn, 0x222);
	assert_int_equal(w->ud.remote_qkey, 0x333);
	assert_int_equal(w->ud.inline_len, 3);
	w = take(e);
	assert_int_equal(w->ud.ah, UINT32_MAX);

	qp = start(e, 1, 0);
	ibv_wr_rdma_write(qp, 1, 2);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	qp = start(e, 1, 0);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, NULL, 1, 1);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
}

static void
wr_only_when_asked_for(void **state)
{
	struct env *e = *state;

	assert_null(ibv_qp_to_qp_ex(e->qp));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wr_rc_ops, env_setup_ex, env_teardown),
		cmocka_unit_test_setup_teardown(wr_data, env_setup_ex, env_teardown),
		cmocka_unit_test_setup_teardown(wr_all_or_nothing, env_setup_ex, env_teardown),
		cmocka_unit_test_setup_teardown(wr_ud, env_setup_ex_ud, env_teardown),
		cmocka_unit_test_setup_teardown(wr_only_when_asked_for, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
