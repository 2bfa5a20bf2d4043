/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions with errors: the other side refuses, is silent or not ready (status.h). */
#include "status.h"

#include "abi/queue.h"

#include <string.h>

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

/* An operation that the QP itself does not allow is an invalid request. */
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

/* The peer must refuse an atomic at an address that is not 8-byte aligned (IBTA 9.4.5.2). */
static void
test_misaligned_atomic(void **state)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_send_wr wr = {.opcode = op[i], .num_sge = 1};
		struct ibv_sge sge;
		struct rig r;

		rig_open(&r, NULL, NULL);
		sge = sge_of(&r, 0, 0, 8);
		wr.sg_list = &sge;
		wr.wr.atomic.remote_addr = (uintptr_t)r.end[1].buf + 4;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = r.end[1].mr->rkey;
		memset(r.end[1].buf, 0, 64);
		fails(&r, &wr, IBV_WC_REM_INV_REQ_ERR, URN_VE_NAK);
		assert_int_equal(rig_counter(&r, 1, URN_C_NAK_INV_REQ), 1);
		rig_event(&r, 1, IBV_EVENT_QP_REQ_ERR);
		for (int b = 0; b < 64; b++)
			assert_int_equal(r.end[1].buf[b], 0);
		rig_close(&r);
	}
}

/* More parallel READs than the peer can record, powers of two or not. */
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

/* New QPs between nodes that know each other: no question has to be asked first. */
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
	/* The request is sent once and retry_cnt times more (doc/reference/wire.md "Timers"). */
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

/* Progress restores all the retries: five times five are more than seven. */
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
	gid.raw[15] = 200; /* no node has this address */
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
		/* The responder is unharmed. */
		assert_int_equal(rig_state(r.end[1].qp), IBV_QPS_RTS);
		rig_close(&r);
	}
}

/* rnr_retry 7 means for ever; when a receive is posted, the message goes through, once. */
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
 * A program that destroys its QP as soon as it has its last receive does not cost its
 * peer the send: the acknowledgement goes out first.
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
		cmocka_unit_test(test_remote_access),
		cmocka_unit_test(test_remote_invalid),
		cmocka_unit_test(test_misaligned_atomic),
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

	return cmocka_run_group_tests_name("status_remote", tests, NULL, NULL);
}
