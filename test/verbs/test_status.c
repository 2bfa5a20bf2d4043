/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every completion status that applies, each reached here by what causes it:
 *
 *   SUCCESS            every other test
 *   LOC_LEN_ERR        receive too short; send of more than 2^31 bytes; atomic not of 8 bytes
 *                      (datagrams: test_ud.c)
 *   LOC_QP_OP_ERR      more elements than the queue has, more inline data, unknown opcode, READ
 *                      without max_rd_atomic, misaligned atomic, invalidating an unbound window
 *   LOC_PROT_ERR       unknown key, key of another PD, key of a region that is gone, outside
 *                      the region, READ into memory without local write, memory that fails
 *   WR_FLUSH_ERR       both queues in order; receives posted after the error
 *   MW_BIND_ERR        region that allows no windows, outside it (more: test_mw.c)
 *   LOC_ACCESS_ERR     SEND with invalidate of a window that is not bound
 *   REM_INV_REQ_ERR    receive too short, operation the QP does not allow, too many READs
 *   REM_ACCESS_ERR     unknown key, wrong right, outside the region, other PD
 *   REM_OP_ERR         memory of the peer fails; its receive has a bad key
 *   RETRY_EXC_ERR      QP gone or in RESET, engine not polled, address unreachable
 *   RNR_RETRY_EXC_ERR  no receive
 *   BAD_RESP_ERR       needs a peer that lies: test/packet
 *   the others         (LOC_EEC_OP_ERR, REM_ABORT_ERR, RD errors, FATAL_ERR ...) belong to
 *                      services that urnic has not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "verbs/verbs_priv.h"

#include <stdlib.h>
#include <string.h>

/* A request of end 0 that fails, with the next one flushed behind it. */
static void
fails(struct rig *r, struct ibv_send_wr *wr, enum ibv_wc_status status, uint32_t vendor_err)
{
	struct ibv_send_wr next = {.wr_id = 99, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;

	wr->wr_id = 7;
	wr->next = &next;
	rig_send_on(r->end[0].qp, wr); /* neither is signalled: errors complete nevertheless */
	wc = rig_expect(r, 0, status);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp_num, r->end[0].qp->qp_num);
	assert_int_equal(wc.vendor_err, vendor_err);
	assert_int_equal(rig_expect(r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, 99);
	assert_int_equal(rig_state(r->end[0].qp), IBV_QPS_ERR);
	rig_quiet(r, 0);
}

static struct ibv_sge
sge_of(struct rig *r, int e, size_t off, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)(r->end[e].buf + off), len, r->end[e].mr->lkey};
}

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
		sge[0].addr = (uintptr_t)r->end[0].buf + RIG_BUF - 4600; /* its fifth packet */
		ve = URN_VE_RANGE;
	}
	fails(r, &wr, IBV_WC_LOC_PROT_ERR, ve);
	if (ro)
		assert_int_equal(ibv_dereg_mr(ro), 0);
	assert_int_equal(ibv_dereg_mr(alien), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* LOC_PROT_ERR of requests; no retries are left to hide behind. */
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
 * acknowledgement and there is no timer (doc/wire.md "Errors at the requester").
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
	struct urn_qp *qp = urn_qp(ibqp);
	struct urn_sq *sq = &qp->sq;

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

	rig_open(&r, NULL, NULL); /* misaligned atomic */
	sge = sge_of(&r, 0, 0, 8);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = (uintptr_t)r.end[1].buf + 4;
	wr.wr.atomic.rkey = r.end[1].mr->rkey;
	fails(&r, &wr, IBV_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	rig_close(&r);
}

/* ---- receives */

/* What a receive's failure looks like at both ends. */
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
	/* Receives posted in the error state are flushed as they come. */
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
		rig_open(&r, &cfg, NULL); /* one byte short, in the first or the last packet */
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

/* ---- remote errors */

enum remote_case { BAD_RKEY, NO_RIGHT, BEYOND, OTHER_REMOTE_PD, GONE, REMOTE_CASES };

static void
remote_access(struct rig *r, enum ibv_wr_opcode op, enum remote_case c)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->end[1].ctx);
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC;
	int own = op == IBV_WR_RDMA_WRITE  ? IBV_ACCESS_REMOTE_WRITE
		  : op == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
					   : IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_mr *alien = ibv_reg_mr(pd, r->end[1].buf, 4096, all);
	struct ibv_mr *mr = ibv_reg_mr(r->end[1].pd, r->end[1].buf, 4096,
				       c == NO_RIGHT ? all & ~own : all);
	struct ibv_sge sge = sge_of(r, 0, 0, op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_READ ? 4000 : 8);
	struct ibv_send_wr wr = {.opcode = op, .sg_list = &sge, .num_sge = 1};
	uint64_t addr = (uintptr_t)r->end[1].buf;
	uint32_t rkey = mr->rkey;

	if (c == BAD_RKEY)
		rkey ^= 0x55;
	else if (c == BEYOND)
		addr += sge.length == 8 ? 4096 : 97;
	else if (c == OTHER_REMOTE_PD)
		rkey = alien->rkey;
	if (c == GONE) {
		assert_int_equal(ibv_dereg_mr(mr), 0);
		mr = NULL;
	}
	if (sge.length == 8) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	memset(r->end[1].buf, 0xee, 8192);
	memset(r->end[0].buf, 0x11, 8192);
	fails(r, &wr, IBV_WC_REM_ACCESS_ERR, URN_VE_NAK);
	for (int i = 0; i < 8192; i++)
		assert_int_equal(r->end[1].buf[i], 0xee);
	assert_int_equal(rig_state(r->end[1].qp), IBV_QPS_ERR);
	assert_int_equal(rig_counter(r, 1, URN_C_NAK_ACCESS), 1);
	rig_event(r, 1, IBV_EVENT_QP_ACCESS_ERR);
	if (mr)
		assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(alien), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
test_remote_access(void **state)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		for (enum remote_case c = 0; c < REMOTE_CASES; c++) {
			struct rig_config cfg = {.delay_seed = i == 1 ? 5 : 0};
			struct rig r;

			rig_open(&r, &cfg, NULL);
			remote_access(&r, op[i], c);
			rig_close(&r);
		}
	}
}

/* What the QP itself does not allow is an invalid request. */
static void
test_remote_invalid(void **state)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						IBV_WR_ATOMIC_CMP_AND_SWP};
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct rig_qp o = {.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
					     IBV_ACCESS_REMOTE_ATOMIC};

		o.access &= i == 0   ? ~(unsigned int)IBV_ACCESS_REMOTE_WRITE
			    : i == 1 ? ~(unsigned int)IBV_ACCESS_REMOTE_READ
				     : ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC;
		rig_open(&r, NULL, &o);
		rig_post(&r, 0, op[i], 0, 8, 0, 1);
		rig_expect(&r, 0, IBV_WC_REM_INV_REQ_ERR);
		rig_event(&r, 1, IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(rig_counter(&r, 1, URN_C_NAK_INV_REQ), 1);
		rig_close(&r);
	}
}

/* More READs at once than the peer keeps on record, powers of two or not. */
static void
test_too_many_reads(void **state)
{
	(void)state;
	for (int depth = -1; depth <= 5; depth++) {
		struct rig_qp o = {.rd_atomic = 8, .dest_rd_atomic = depth ? depth : 6};
		struct rig r;
		int n = depth < 0 ? 0 : o.dest_rd_atomic;

		rig_open(&r, NULL, &o);
		for (int i = 0; i < n + 1; i++)
			rig_post(&r, 0, IBV_WR_RDMA_READ, 4096u * (unsigned int)i, 4000, 0, (uint64_t)i);
		for (int i = 0; i < n; i++)
			assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, i);
		assert_int_equal(rig_expect(&r, 0, IBV_WC_REM_INV_REQ_ERR).wr_id, n);
		rig_close(&r);
	}
}

/* Memory of the peer that fails: REM_OP_ERR; our own: LOC_PROT_ERR. No retry, no timer. */
static void
test_memory_faults(void **state)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
						IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		for (uint64_t seed = 1; seed <= 6; seed++) {
			struct rig_config cfg = {.delay_seed = seed, .fail_node = 2,
						 .fail_per_million = 1000000};
			struct rig_qp o = {.retry_cnt = -1, .timeout = -1};
			struct rig r;

			rig_open(&r, &cfg, &o);
			rig_recv(&r, 1, 0, 40000, 5);
			rig_post(&r, 0, op[i], 0, i == 3 ? 8 : 30000, 0, 1);
			assert_int_equal(rig_expect(&r, 0, IBV_WC_REM_OP_ERR).wr_id, 1);
			if (op[i] == IBV_WR_SEND)
				assert_int_equal(rig_expect(&r, 1, IBV_WC_LOC_PROT_ERR).wr_id, 5);
			else
				assert_int_equal(rig_expect(&r, 1, IBV_WC_WR_FLUSH_ERR).wr_id, 5);
			assert_int_equal(rig_counter(&r, 1, URN_C_NAK_OPERATIONAL), 1);
			rig_close(&r);

			cfg.fail_node = 1;
			rig_open(&r, &cfg, &o);
			rig_recv(&r, 1, 0, 40000, 5);
			rig_post(&r, 0, op[i], 0, i == 3 ? 8 : 30000, 0, 1);
			assert_int_equal(rig_expect(&r, 0, IBV_WC_LOC_PROT_ERR).wr_id, 1);
			rig_close(&r);
		}
	}
}

/* ---- nobody answers */

/* Fresh QPs between nodes that know each other: nothing has to be asked before. */
static void
open_warm(struct rig *r, const struct rig_qp *o)
{
	rig_open(r, NULL, NULL);
	rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, 1, 0, 1);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	rig_quiet(r, 0);
	for (int e = 0; e < 2; e++) {
		assert_int_equal(ibv_destroy_qp(r->end[e].qp), 0);
		r->end[e].qp = rig_make_qp(r, e, o);
	}
	for (int e = 0; e < 2; e++)
		rig_connect(r, e, r->end[e].qp, 5, r->end[!e].qp->qp_num, 5, o);
}

enum silence { DESTROYED, IN_RESET, IN_ERR, NOT_POLLED, SILENCES };

static void
retries(enum silence how, unsigned int count)
{
	struct rig_qp o = {.retry_cnt = count ? (int)count : -1, .timeout = 1};
	uint64_t sent, again, timeouts;
	struct ibv_wc wc;
	struct rig r;

	open_warm(&r, &o);
	sent = rig_counter(&r, 0, URN_C_TX_REQUESTS);
	again = rig_counter(&r, 0, URN_C_RETRANSMITS);
	timeouts = rig_counter(&r, 0, URN_C_TIMEOUTS);
	if (how == DESTROYED) {
		assert_int_equal(ibv_destroy_qp(r.end[1].qp), 0);
		r.end[1].qp = NULL;
	} else if (how != NOT_POLLED) {
		rig_to(r.end[1].qp, how == IN_RESET ? IBV_QPS_RESET : IBV_QPS_ERR);
	}
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 1, 0, 2);
	if (how == NOT_POLLED) {
		while (ibv_poll_cq(r.end[0].cq, 1, &wc) == 0)
			urn_engine_poll(urn_dp_engine(r.dp, 0));
		assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	} else {
		rig_expect(&r, 0, IBV_WC_RETRY_EXC_ERR);
		rig_turns(&r, 10);
		assert_int_equal(rig_counter(&r, 1, how == DESTROYED ? URN_C_DROP_NO_QP
								     : URN_C_DROP_QP_STATE),
				 count + 1);
	}
	/* Sent once and retry_cnt times more (doc/wire.md "Timers"). */
	assert_int_equal(rig_counter(&r, 0, URN_C_TX_REQUESTS), sent + 1 + count);
	assert_int_equal(rig_counter(&r, 0, URN_C_RETRANSMITS), again + count);
	assert_int_equal(rig_counter(&r, 0, URN_C_TIMEOUTS), timeouts + count + 1);
	rig_close(&r);
}

static void
test_retries(void **state)
{
	(void)state;
	for (enum silence how = 0; how < SILENCES; how++) {
		retries(how, 0);
		retries(how, 3);
		retries(how, 7);
	}
}

/* Progress gives all the retries back: five times five are more than seven. */
static void
test_retries_start_again(void **state)
{
	struct rig_qp o = {.retry_cnt = 7, .timeout = 12};
	struct rig r;

	(void)state;
	open_warm(&r, &o);
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t timeouts = rig_counter(&r, 0, URN_C_TIMEOUTS);

		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 1, 0, i);
		while (rig_counter(&r, 0, URN_C_TIMEOUTS) < timeouts + 5)
			urn_engine_poll(urn_dp_engine(r.dp, 0));
		rig_expect(&r, 0, IBV_WC_SUCCESS);
	}
	rig_close(&r);
}

static void
test_unreachable(void **state)
{
	struct rig_qp o = {.retry_cnt = 1, .timeout = 10};
	union ibv_gid gid;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	rig_gid(&r, 1, &gid);
	gid.raw[15] = 200; /* nobody there */
	assert_int_equal(ibv_destroy_qp(r.end[0].qp), 0);
	r.end[0].qp = rig_make_qp(&r, 0, &o);
	rig_connect_to(&r, r.end[0].qp, 5, 77, 6, &gid, &o);
	rig_post(&r, 0, IBV_WR_SEND, 0, 10, 0, 1);
	rig_expect(&r, 0, IBV_WC_RETRY_EXC_ERR);
	assert_true(rig_counter(&r, 0, URN_C_DROP_NO_NEIGH) > 0);
	rig_close(&r);
}

/* ---- receiver not ready */

static void
test_rnr(void **state)
{
	(void)state;
	for (int count = 0; count <= 3; count += 3) {
		struct rig_qp o = {.rnr_retry = count ? count : -1, .timeout = -1};
		struct rig r;

		rig_open(&r, NULL, &o);
		rig_post(&r, 0, IBV_WR_SEND, 0, 3000, 0, 1);
		rig_expect(&r, 0, IBV_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(rig_counter(&r, 0, URN_C_RX_RNR_NAKS), count + 1);
		assert_int_equal(rig_counter(&r, 1, URN_C_TX_RNR_NAKS), count + 1);
		/* The responder is none the worse for it. */
		assert_int_equal(rig_state(r.end[1].qp), IBV_QPS_RTS);
		rig_close(&r);
	}
}

/* rnr_retry 7 is for ever; when a receive comes, the message goes through, once. */
static void
test_rnr_for_ever(void **state)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rig_qp o = {.rnr_retry = 7, .timeout = -1};
		struct rig_config cfg = {.delay_seed = i < 2 ? 0 : 9};
		struct rig r;

		rig_open(&r, &cfg, &o);
		rig_fill(r.end[0].buf, 5000, 3);
		rig_post(&r, 0, op[i % 2], 0, i % 2 ? 2500 : 5000, 0, 1);
		rig_post(&r, 0, op[i % 2], 0, 10, 0, 2);
		while (rig_counter(&r, 0, URN_C_RX_RNR_NAKS) < 20)
			rig_turn(&r);
		rig_recv(&r, 1, 0, 5000, 11);
		assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 11);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		assert_memory_equal(r.end[0].buf, r.end[1].buf, i % 2 ? 2500 : 5000);
		rig_recv(&r, 1, 10000, 5000, 12);
		assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 12);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		rig_quiet(&r, 1);
		rig_close(&r);
	}
}

/*
 * A program that destroys its QP as soon as it has its last receive does not
 * cost its peer the send: the acknowledgement goes out first.
 */
static void
test_destroy_after_receive(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig_qp o = {.timeout = -1};
		struct rig r;

		rig_open(&r, NULL, &o);
		rig_recv(&r, 1, 0, 100, 1);
		rig_post(&r, 0, IBV_WR_SEND, 0, 100, 0, 2);
		rig_expect(&r, 1, IBV_WC_SUCCESS);
		if (how == 0) {
			assert_int_equal(ibv_destroy_qp(r.end[1].qp), 0);
			r.end[1].qp = NULL;
		} else {
			rig_to(r.end[1].qp, how == 1 ? IBV_QPS_RESET : IBV_QPS_ERR);
		}
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		rig_close(&r);
	}
}

/* Two requests and a pool of one, no timer: each asks for its acknowledgement. */
static void
test_small_pool(void **state)
{
	struct rig_config cfg = {.work_in_flight = 4};
	struct rig_qp o = {.timeout = -1};
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, &o);
	for (uint64_t i = 0; i < 60; i++)
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 10, 0, i);
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, i);
	assert_true(rig_counter(&r, 0, URN_C_NO_WORK) > 0);
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
		cmocka_unit_test(test_remote_access),
		cmocka_unit_test(test_remote_invalid),
		cmocka_unit_test(test_too_many_reads),
		cmocka_unit_test(test_memory_faults),
		cmocka_unit_test(test_retries),
		cmocka_unit_test(test_retries_start_again),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_for_ever),
		cmocka_unit_test(test_destroy_after_receive),
		cmocka_unit_test(test_small_pool),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
