/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions with errors: requests that fail on this side, receives, flushes (status.h). */
#include "status.h"

#include "verbs/adapter/adapter.h"

#include <string.h>

/* ---- local errors */

enum local_case {
	BAD_LKEY, OTHER_PD, DEREGISTERED, OUTSIDE, READ_NO_LOCAL_WRITE, ATOMIC_NO_LOCAL_WRITE,
	SECOND_SGE, LAST_PACKET, LOCAL_CASES,
};

static void
local_protection(struct rig *r, enum local_case c)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->end[0].ctx);
	struct ibv_mr *ro = ibv_reg_mr(r->end[0].pd, r->end[0].buf, RIG_BUF, 0);
	struct ibv_mr *alien = ibv_reg_mr(pd, r->end[0].buf, RIG_BUF, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge[2] = {sge_of(r, 0, 0, 5000), sge_of(r, 0, 0, 5000)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 1};
	uint32_t ve = URN_VE_BAD_LKEY;

	wr.wr.rdma.remote_addr = (uintptr_t)r->end[1].buf;
	wr.wr.rdma.rkey = r->end[1].mr->rkey;
	if (c == BAD_LKEY) {
		sge[0].lkey ^= 1;
	} else if (c == OTHER_PD) {
		sge[0].lkey = alien->lkey;
	} else if (c == DEREGISTERED) {
		sge[0].lkey = ro->lkey;
		assert_int_equal(ibv_dereg_mr(ro), 0);
		ro = NULL;
	} else if (c == OUTSIDE) {
		sge[0].addr = (uintptr_t)r->end[0].buf + RIG_BUF - 4999;
		ve = URN_VE_RANGE;
	} else if (c == READ_NO_LOCAL_WRITE) {
		wr.opcode = IBV_WR_RDMA_READ;
		sge[0].lkey = ro->lkey;
		ve = URN_VE_ACCESS;
	} else if (c == ATOMIC_NO_LOCAL_WRITE) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)r->end[1].buf;
		wr.wr.atomic.rkey = r->end[1].mr->rkey;
		sge[0].lkey = ro->lkey;
		sge[0].length = 8;
		ve = URN_VE_ACCESS;
	} else if (c == SECOND_SGE) {
		sge[1].lkey = 0;
		wr.num_sge = 2;
	} else {
		sge[0].addr = (uintptr_t)r->end[0].buf + RIG_BUF - 4600; /* the WRITE's fifth packet */
		ve = URN_VE_RANGE;
	}
	fails(r, &wr, IBV_WC_LOC_PROT_ERR, ve);
	if (ro)
		assert_int_equal(ibv_dereg_mr(ro), 0);
	assert_int_equal(ibv_dereg_mr(alien), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* LOC_PROT_ERR of requests, with no retries left. */
static void
test_local_protection(void **state)
{
	struct rig_qp o = {.retry_cnt = -1, .timeout = -1};

	(void)state;
	for (enum local_case c = 0; c < LOCAL_CASES; c++) {
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct rig_config cfg = {.delay_seed = seed};
			struct rig r;

			rig_open(&r, &cfg, &o);
			local_protection(&r, c);
			rig_close(&r);
		}
	}
}

/*
 * Requests before one that fails complete, although none of them asked for an
 * acknowledgement and there is no timer (doc/reference/wire.md "Errors at the requester").
 */
static void
test_before_a_failure(void **state)
{
	struct rig_qp o = {.timeout = -1, .retry_cnt = -1};
	struct rig r;

	(void)state;
	for (uint32_t len = 100; len <= 5000; len += 4900) {
		rig_open(&r, NULL, &o);

		struct ibv_sge good = sge_of(&r, 0, 0, 100), bad[2];
		struct ibv_send_wr wr[2] = {{.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &good,
					     .num_sge = 1, .send_flags = IBV_SEND_SIGNALED, .next = &wr[1]},
					    {.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .sg_list = bad,
					     .num_sge = 2}};

		bad[0] = sge_of(&r, 0, 0, len);
		bad[1] = (struct ibv_sge){(uintptr_t)r.end[0].buf, 100, 0xbad};
		for (int i = 0; i < 2; i++) {
			wr[i].wr.rdma.remote_addr = (uintptr_t)r.end[1].buf;
			wr[i].wr.rdma.rkey = r.end[1].mr->rkey;
		}
		rig_send_on(r.end[0].qp, wr);
		assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, 1);
		assert_int_equal(rig_expect(&r, 0, IBV_WC_LOC_PROT_ERR).wr_id, 2);
		rig_close(&r);
	}
}

/* Write a request straight into the queue's memory, past the library's checks. */
static void
raw_post(struct ibv_qp *ibqp, const struct urn_abi_swqe *wqe)
{
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	struct urn_adapter_sq *sq = &qp->sq;

	memcpy(sq->slots + (size_t)(sq->prod & sq->mask) * sq->stride, wqe, sizeof(*wqe));
	sq->prod++;
	atomic_store(&sq->hdr->prod, sq->prod);
	urn_dev_ring(qp->dev, qp->engine, qp->db);
}

static void
test_lying_requests(void **state)
{
	static const struct {
		struct urn_abi_swqe wqe;
		enum ibv_wc_status status;
	} c[] = {
		{{.opcode = URN_WR_SEND, .num_sge = 5}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_SEND, .num_sge = 255}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_SEND, .flags = URN_WRF_INLINE, .rdma.inline_len = 0xffffffff},
		 IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_SEND, .flags = URN_WRF_INLINE, .rdma.inline_len = 257},
		 IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_OPS}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = 255, .flags = 255}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_RDMA_READ, .flags = URN_WRF_INLINE}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_FETCH_ADD, .num_sge = 0}, IBV_WC_LOC_LEN_ERR},
		{{.opcode = URN_WR_LOCAL_INV, .imm = 0xffffffff}, IBV_WC_LOC_QP_OP_ERR},
		{{.opcode = URN_WR_BIND_MW1, .bind = {.length = 1}}, IBV_WC_MW_BIND_ERR},
		{{.opcode = URN_WR_BIND_MW, .bind = {.length = UINT64_MAX, .addr = UINT64_MAX}},
		 IBV_WC_MW_BIND_ERR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct urn_abi_swqe wqe = c[i].wqe;
		uint64_t before;
		struct rig r;

		rig_open(&r, NULL, NULL);
		before = rig_counter(&r, 0, URN_C_BAD_WQE);
		wqe.wr_id = 70 + i;
		raw_post(r.end[0].qp, &wqe);
		assert_int_equal(rig_expect(&r, 0, c[i].status).wr_id, 70 + i);
		if (wqe.opcode != URN_WR_LOCAL_INV && c[i].status != IBV_WC_MW_BIND_ERR)
			assert_int_equal(rig_counter(&r, 0, URN_C_BAD_WQE), before + 1);
		assert_int_equal(rig_state(r.end[0].qp), IBV_QPS_ERR);
		rig_close(&r);
	}
}

static void
test_lengths(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);

	struct ibv_sge big[2] = {sge_of(&r, 0, 0, 1u << 31), sge_of(&r, 0, 0, 1)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = big, .num_sge = 2};

	fails(&r, &wr, IBV_WC_LOC_LEN_ERR, URN_VE_BAD_WQE);
	rig_close(&r);
}

static void
test_operations(void **state)
{
	struct rig_qp o = {.rd_atomic = -1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .num_sge = 1};
	struct ibv_sge sge;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &o);
	sge = sge_of(&r, 0, 0, 8);
	wr.sg_list = &sge;
	fails(&r, &wr, IBV_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	rig_close(&r);
}

/* ---- receives */

/* A receive fails: the completions at both ends. */
static void
receive_fails(struct rig *r, uint32_t len, enum ibv_wc_status here, enum ibv_wc_status there)
{
	rig_recv(r, 1, 1000, 10, 2); /* flushed */
	rig_post(r, 0, IBV_WR_SEND, 0, len, 0, 7);
	assert_int_equal(rig_expect(r, 1, here).wr_id, 1);
	assert_int_equal(rig_expect(r, 1, IBV_WC_WR_FLUSH_ERR).wr_id, 2);
	rig_expect(r, 0, there);
	assert_int_equal(rig_state(r->end[0].qp), IBV_QPS_ERR);
	assert_int_equal(rig_state(r->end[1].qp), IBV_QPS_ERR);
	/* Receives posted in the error state are flushed when they are posted. */
	rig_recv(r, 1, 0, 10, 3);
	assert_int_equal(rig_expect(r, 1, IBV_WC_WR_FLUSH_ERR).wr_id, 3);
	rig_quiet(r, 1);
}

static void
test_receive_errors(void **state)
{
	struct rig_config cfg = {0};
	struct rig r;

	(void)state;
	for (cfg.delay_seed = 0; cfg.delay_seed < 3; cfg.delay_seed++) {
		rig_open(&r, &cfg, NULL); /* the receive is one byte short, in the first or the last packet */
		rig_recv(&r, 1, 0, 99, 1);
		receive_fails(&r, 100, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
		rig_close(&r);
		rig_open(&r, &cfg, NULL);
		memset(r.end[1].buf, 0xee, 8000);
		rig_recv(&r, 1, 0, 2999, 1);
		receive_fails(&r, 3000, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(r.end[1].buf[2999], 0xee);
		rig_close(&r);
		rig_open(&r, &cfg, NULL); /* unknown key */
		rig_recv_on(r.end[1].qp, r.end[1].buf, 5000, 0xbad00, 1);
		receive_fails(&r, 3000, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		rig_close(&r);
		rig_open(&r, &cfg, NULL); /* a region that may not be written */

		struct ibv_mr *ro = ibv_reg_mr(r.end[1].pd, r.end[1].buf, RIG_BUF, 0);

		rig_recv_on(r.end[1].qp, r.end[1].buf, 5000, ro->lkey, 1);
		receive_fails(&r, 3000, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		assert_int_equal(ibv_dereg_mr(ro), 0);
		rig_close(&r);
	}
}

/* Flushed in order: requests, then receives; nothing twice. */
static void
test_flush_order(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	for (uint64_t i = 0; i < 20; i++)
		rig_recv(&r, 0, 0, 10, 100 + i);
	rig_to(r.end[1].qp, IBV_QPS_RESET);
	for (uint64_t i = 0; i < 30; i++)
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 3000, 0, i);
	rig_turns(&r, 3);
	rig_to(r.end[0].qp, IBV_QPS_ERR);
	for (uint64_t i = 0; i < 30; i++)
		assert_int_equal(rig_expect(&r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, i);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(rig_expect(&r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, 100 + i);
	for (uint64_t i = 0; i < 10; i++) {
		rig_post(&r, 0, IBV_WR_SEND, 0, 10, 0, 200 + i);
		rig_recv(&r, 0, 0, 10, 300 + i);
	}
	for (int n = 0; n < 20; n++)
		rig_expect(&r, 0, IBV_WC_WR_FLUSH_ERR);
	rig_quiet(&r, 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local_protection),
		cmocka_unit_test(test_before_a_failure),
		cmocka_unit_test(test_lying_requests),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_receive_errors),
		cmocka_unit_test(test_flush_order),
	};

	return cmocka_run_group_tests_name("status_local", tests, NULL, NULL);
}
