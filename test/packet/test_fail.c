/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work that fails at the requester itself, or that never goes out, behind work
 * that is not acknowledged yet. No timer runs in these tests: a request that needs an
 * acknowledgement must have asked for it.
 */
#include "probe.h"

/* Post a SEND of 32 bytes, which the peer can't know to be the last. */
static void
send_one(struct probe *p, uint64_t wr_id)
{
	probe_prepare(p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 32, 0, wr_id);
}

static struct urn_abi_sge *
sge_of(struct probe *p)
{
	return (void *)(probe_slot(p) + 1);
}

/* The SEND at `n` comes without asking for an ACK, and again, asking; then acknowledge it. */
static void
asked_and_acked(struct probe *p, uint32_t n)
{
	assert_false(expect_frame(p, SEND_ONLY, SQ(n))->ack);
	assert_true(expect_frame(p, SEND_ONLY, SQ(n))->ack);
	expect_silence(p);
	expect_no_cqe(p);
	probe_ack(p, SQ(n), SYN_ACK, n + 1);
}

/* An invalid request fails in its turn; requests behind it are flushed. */
static void
bad_request(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	send_one(&p, 1);
	probe_prepare(&p, 99, 0, 0, 32, 0, 2);
	send_one(&p, 3);
	probe_ring(&p);
	asked_and_acked(&p, 0);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, LOC_QP_OP_ERR);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_silence(&p);
	probe_close(&p);
}

/* An invalid key is found when the packet is made. */
static void
bad_key(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	send_one(&p, 1);
	send_one(&p, 2);
	sge_of(&p)->lkey = p.key_other;
	send_one(&p, 3);
	probe_ring(&p);
	asked_and_acked(&p, 0);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, LOC_PROT_ERR);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_silence(&p);
	probe_close(&p);
}

/* The same in the middle of a message, some of whose packets are made. */
static void
bad_key_inside(void **state)
{
	struct probe p;
	struct urn_abi_swqe *w;

	(void)state;
	probe_open(&p, NULL);
	send_one(&p, 1);
	probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 1024, 0, 2);
	w = probe_slot(&p);
	w->num_sge = 2;
	sge_of(&p)[1] = (struct urn_abi_sge){PROBE_VA, p.key_other, 1024};
	send_one(&p, 3);
	probe_ring(&p);
	assert_false(expect_frame(&p, SEND_ONLY, SQ(0))->ack);
	/* The first packet of the second message was built, and is not sent: the message can't be
	 * whole. */
	assert_true(expect_frame(&p, SEND_ONLY, SQ(0))->ack);
	expect_silence(&p);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, LOC_PROT_ERR);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_silence(&p);
	probe_close(&p);
}

/* Memory that can't be read when the frame is made, at once or late. */
static void
gather_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++)
		for (unsigned int nth = 2; nth <= 3; nth++) {
			struct probe p;

			probe_open(&p, &(struct probe_config){.delay_seed = (uint64_t)late});
			probe_fail_op(&p, nth, late);
			send_one(&p, 1);
			probe_prepare(&p, URN_WR_SEND, 0, 0, 2000, 0, 2);
			send_one(&p, 3);
			probe_ring(&p);
			assert_false(expect_frame(&p, SEND_ONLY, SQ(0))->ack);
			if (nth == 3)
				expect_frame(&p, SEND_FIRST, SQ(1));
			/* Nothing behind the packet that failed goes out. */
			assert_true(expect_frame(&p, SEND_ONLY, SQ(0))->ack);
			expect_silence(&p);
			expect_no_cqe(&p);
			probe_ack(&p, SQ(0), SYN_ACK, 1);
			expect_sent(&p, 1, SUCCESS);
			expect_sent(&p, 2, LOC_PROT_ERR);
			assert_int_equal(probe_cqe(&p, false)->vendor_err, URN_VE_MEMORY);
			expect_sent(&p, 3, WR_FLUSH_ERR);
			expect_silence(&p);
			probe_close(&p);
		}
}

/* The same with a timer: delivered requests are not reported lost. */
static void
gather_fails_and_timer(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 8, .retry_cnt = 2});
	probe_fail_op(&p, 2, false);
	send_one(&p, 1);
	send_one(&p, 2);
	probe_ring(&p);
	asked_and_acked(&p, 0);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, LOC_PROT_ERR);
	probe_close(&p);

	/* The ACK is lost, and the one after it: the repetition asks again. */
	probe_open(&p, &(struct probe_config){.timeout = 8, .retry_cnt = 2});
	probe_fail_op(&p, 2, false);
	send_one(&p, 1);
	send_one(&p, 2);
	probe_ring(&p);
	probe_settle(&p);
	p.looked = p.seen_n;
	probe_pass(&p, (4096ull << 8) + 8192, 100000);
	assert_true(p.seen[(p.seen_n - 1) % PROBE_SEEN].ack);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, LOC_PROT_ERR);
	probe_close(&p);
}

/* A local request that fails waits its turn; one that succeeds delays no other request. */
static void
local_work(void **state)
{
	struct probe p;
	uint32_t mw;

	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		struct urn_abi_swqe *w;

		probe_open(&p, NULL);
		assert_int_equal(urn_mem_alloc_mw(p.mem, p.pd, 2, &mw), 0);
		send_one(&p, 1);
		probe_prepare(&p, URN_WR_BIND_MW, URN_WRF_SIGNALED, 0, 0, 0, 2);
		w = probe_slot(&p);
		w->bind.addr = PROBE_VA;
		w->bind.length = 64;
		w->bind.mw_rkey = mw;
		w->bind.new_rkey = mw + 1;
		w->bind.mr_lkey = bad ? p.key_other : p.key;
		w->bind.access = URN_ACCESS_REMOTE_READ;
		probe_ring(&p);
		asked_and_acked(&p, 0);
		expect_sent(&p, 1, SUCCESS);
		if (bad) {
			expect_sent(&p, 2, MW_BIND_ERR);
			assert_int_equal(p.qp->state, URN_QPS_ERR);
		} else {
			expect_sent(&p, 2, SUCCESS);
			send_one(&p, 3);
			probe_ring(&p);
			expect_frame(&p, SEND_ONLY, SQ(1));
			probe_ack(&p, SQ(1), SYN_ACK, 2);
			expect_sent(&p, 3, SUCCESS);
		}
		probe_close(&p);
	}
}

/* The same when buffers to send with are used up to the last by then. */
static void
asks_without_spare_buffers(void **state)
{
	(void)state;
	for (unsigned int used = 0; used < URN_TP_BURST; used++) {
		struct probe p;
		uint32_t psn = used;

		probe_open(&p, NULL);
		for (unsigned int i = 0; i < used; i++) {
			send_one(&p, i);
			probe_ring(&p);
			expect_frame(&p, SEND_ONLY, SQ(i));
			probe_ack(&p, SQ(i), SYN_ACK, i + 1);
			expect_sent(&p, i, SUCCESS);
		}
		probe_post(&p, URN_WR_RDMA_READ, 0, 64, 8, 0, 1000);
		expect_frame(&p, READ_REQ, SQ(psn));
		send_one(&p, 1001);
		probe_prepare(&p, URN_WR_SEND, URN_WRF_FENCE, 0, 32, 0, 1002);
		probe_ring(&p);
		assert_false(expect_frame(&p, SEND_ONLY, SQ(psn + 1))->ack);
		assert_true(expect_frame(&p, SEND_ONLY, SQ(psn + 1))->ack);
		probe_close(&p);
	}
}

/* No buffers at all for a while: sending goes on when there are some (architecture rule 6). */
static void
no_buffers(void **state)
{
	struct rte_mbuf *taken[64];
	unsigned int n = 0;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.pool_mbufs = 63});
	while (n < 64 && (taken[n] = rte_pktmbuf_alloc(p.pool)))
		n++;
	for (uint32_t i = 0; i < 8; i++)
		send_one(&p, i);
	probe_ring(&p);
	probe_read(&p, RQ(0), 0, 2000);
	for (int i = 0; i < 50; i++)
		probe_turn(&p, 1000);
	assert_int_equal(p.seen_n, 0);
	assert_true(p.tp->c.v[URN_C_NO_MBUF] > 0);
	rte_pktmbuf_free_bulk(taken, n);
	expect_frame(&p, READ_FIRST, RQ(0));
	expect_frame(&p, READ_LAST, RQ(1));
	for (uint32_t i = 0; i < 8; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	probe_ack(&p, SQ(7), SYN_ACK, 8);
	for (uint32_t i = 0; i < 8; i++)
		expect_sent(&p, i, SUCCESS);
	probe_close(&p);
}

/* The pool of work runs out: posting goes on when some is done. */
static void
no_work(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.work = 4});
	for (uint32_t i = 0; i < 12; i++)
		send_one(&p, i);
	probe_ring(&p);
	for (uint32_t i = 0; i < 12; i += 4) {
		for (int k = 0; k < 8; k++) /* it retries each turn: it does not come to rest */
			probe_turn(&p, 0);
		assert_int_equal(p.seen_n - p.looked, 4);
		p.looked = p.seen_n;
		probe_ack(&p, SQ(i + 3), SYN_ACK, i + 4);
		probe_turn(&p, 0);
	}
	for (uint32_t i = 0; i < 12; i++)
		expect_sent(&p, i, SUCCESS);
	probe_close(&p);
}

/* Once the QP is in error, no request goes out, not even one whose memory was being read. */
static void
nothing_after_error(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 3, .delay_polls = 1});
	for (uint32_t i = 0; i < 4; i++)
		send_one(&p, i);
	probe_ring(&p);
	probe_turn(&p, 0);
	assert_int_equal(p.seen_n, 0);
	probe_state(&p, URN_QPS_ERR);
	expect_silence(&p);
	for (uint32_t i = 0; i < 4; i++)
		expect_sent(&p, i, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_request),
		cmocka_unit_test(bad_key),
		cmocka_unit_test(bad_key_inside),
		cmocka_unit_test(gather_fails),
		cmocka_unit_test(gather_fails_and_timer),
		cmocka_unit_test(local_work),
		cmocka_unit_test(asks_without_spare_buffers),
		cmocka_unit_test(no_buffers),
		cmocka_unit_test(no_work),
		cmocka_unit_test(nothing_after_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
