/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that answers late, or with a failure (architecture rule 1: PSN advance,
 * acknowledgement, completion and ICRC wait for the result; a place operation that
 * failed gives NAK 0x63). The end of a QP waits for the result, and for nothing else.
 */
#include "probe.h"

enum { MTU = 1024 };

static const struct probe_config slow = {.delay_seed = 5, .delay_polls = 6};

/* No effect of a SEND shows before it is placed, nor do duplicates and NAKs behind it. */
static void
responder_waits(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	p.hold = true;
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
	expect_silence(&p);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 1); /* duplicate */
	probe_write(&p, WRITE_ONLY, RQ(2), 4096, 8, 8, 1); /* gap */
	expect_silence(&p);
	expect_no_cqe(&p);
	p.hold = false;
	expect_recv(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), 64, 1, 0);
	expect_aeth(&p, RQ(1), NAK_SEQ, 1); /* acknowledges too */
	expect_silence(&p);
	p.hold = true;
	probe_write(&p, WRITE_ONLY, RQ(1), 4096, 8, 8, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
	expect_silence(&p);
	p.hold = false;
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	probe_close(&p);
}

/* A message without memory waits for those before it, too. */
static void
order_kept(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	p.hold = true;
	probe_recv(&p, 0, 64, 1);
	probe_recv(&p, 64, 64, 2);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
	probe_send(&p, SEND_ONLY, RQ(1), 0, 1);
	probe_read(&p, RQ(2), 0, 0);
	expect_silence(&p);
	expect_no_cqe(&p);
	p.hold = false;
	expect_recv(&p, 1, SUCCESS);
	expect_recv(&p, 2, SUCCESS);
	expect_frame(&p, READ_ONLY, RQ(2));
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	probe_close(&p);
}

/* A READ behind a WRITE to the same bytes sees them, however late they land. */
static void
read_after_write(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 50; seed++) {
		struct frame f;
		struct probe p;

		probe_open(&p, &(struct probe_config){.delay_seed = seed, .delay_polls = 20,
						      .delay_percent = 50});
		for (uint32_t i = 0; i < 2; i++) {
			f = frame_of(i ? WRITE_LAST : WRITE_FIRST, RQ(i));
			f.va = PROBE_VA + 100;
			f.rkey = p.key;
			f.length = 2000;
			f.len = i ? 976 : MTU;
			probe_fill(f.data, f.len, 3 + i, 0);
			probe_put(&p, &f);
		}
		probe_read(&p, RQ(2), 100, 2000);
		check_fill(expect_frame(&p, READ_FIRST, RQ(2))->data, MTU, 3, 0);
		check_fill(expect_frame(&p, READ_LAST, RQ(3))->data, 976, 4, 0);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* The same burst gives the same messages, completions and MSN under any delays. */
static void
any_delay(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct probe p;
		uint32_t psn = PROBE_RQ_PSN;

		probe_open(&p, &(struct probe_config){.delay_seed = seed, .delay_polls = 30,
						      .delay_percent = 70,
						      .dest_rd_atomic = 32});
		for (uint32_t i = 0; i < 20; i++) {
			uint32_t at = psn;

			probe_recv(&p, i * 2048, 2048, i);
			probe_send(&p, SEND_FIRST, at, MTU, i);
			probe_send(&p, SEND_LAST_IMM, PSN(at, 1), 500, i + 100);
			probe_atomic(&p, FETCH_ADD, PSN(at, 2), 65536, 1, 0);
			psn = PSN(at, 3);
			if (i % 5 == 4)
				probe_turn(&p, 0);
		}
		for (uint32_t i = 0; i < 20; i++) {
			const struct frame *f;

			expect_recv(&p, i, SUCCESS);
			check_fill(probe_at(&p, i * 2048), MTU, i, 0);
			check_fill(probe_at(&p, i * 2048 + MTU), 500, i + 100, 0);
			do
				f = &p.seen[p.looked++ % PROBE_SEEN];
			while (f->op == ACK && p.looked != p.seen_n);
			assert_int_equal(f->op, ATOMIC_ACK);
			assert_int_equal(f->psn, RQ(3 * i + 2));
			assert_true(f->orig == i);
			assert_int_equal(f->msn, 2 * i + 2);
		}
		probe_close(&p);
	}
}

/* A place operation fails: NAK 0x63; packets before it are done, those behind it are not. */
static void
place_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++)
		for (int op = 0; op < 3; op++) {
			struct probe p;

			probe_open(&p, &(struct probe_config){.delay_seed = (uint64_t)late});
			probe_recv(&p, 0, 60, 1);
			probe_recv(&p, 64, 60, 2);
			probe_recv(&p, 128, 60, 3);
			/* A receive has two elements: two operations for the first SEND. */
			probe_fail_op(&p, 3, late);
			probe_send(&p, SEND_ONLY, RQ(0), 60, 1);
			if (op == 0)
				probe_send(&p, SEND_ONLY, RQ(1), 60, 2);
			else if (op == 1)
				probe_write(&p, WRITE_ONLY, RQ(1), 4096, 8, 8, 2);
			else
				probe_write(&p, WRITE_ONLY_IMM, RQ(1), 4096, 8, 8, 2);
			probe_read(&p, RQ(2), 0, 8);
			probe_send(&p, SEND_ONLY, RQ(3), 60, 3);
			expect_aeth(&p, RQ(1), NAK_OP, 1);
			expect_silence(&p);
			expect_recv(&p, 1, SUCCESS);
			if (op == 0) {
				expect_recv(&p, 2, LOC_PROT_ERR);
				expect_recv(&p, 3, WR_FLUSH_ERR);
			} else if (op == 1) {
				expect_recv(&p, 2, WR_FLUSH_ERR); /* taken by the SEND behind it */
				expect_recv(&p, 3, WR_FLUSH_ERR);
			} else {
				expect_recv(&p, 2, LOC_ACCESS_ERR);
				expect_recv(&p, 3, WR_FLUSH_ERR);
			}
			expect_no_cqe(&p);
			assert_int_equal(p.qp->state, URN_QPS_ERR);
			expect_count(&p, NAK_OPERATIONAL, 1);
			probe_close(&p);
		}
}

static void
atomic_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.delay_seed = (uint64_t)late});
		probe_fail_op(&p, 2, late);
		probe_atomic(&p, FETCH_ADD, RQ(0), 64, 1, 0);
		probe_atomic(&p, FETCH_ADD, RQ(1), 72, 1, 0);
		probe_atomic(&p, FETCH_ADD, RQ(1), 72, 1, 0);
		expect_frame(&p, ATOMIC_ACK, RQ(0));
		expect_aeth(&p, RQ(1), NAK_OP, 1);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* The first of two failures is reported. */
static void
two_failures(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 9, .fail_per_million = 1000000});
	probe_read(&p, RQ(0), 0, 8 * MTU);
	probe_read(&p, RQ(8), 0, 8 * MTU);
	expect_aeth(&p, RQ(0), NAK_OP, 2);
	expect_silence(&p);
	expect_count(&p, NAK_OPERATIONAL, 1);
	probe_close(&p);
}

/* In error, the receive in use is flushed once, and after its memory operations have ended. */
static void
error_meanwhile(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 8; n++) {
		struct probe p;

		probe_open(&p, &slow);
		for (uint32_t i = 0; i < n; i++) { /* another buffer of the pool each time */
			probe_recv(&p, 4096, 64, 50);
			probe_send(&p, SEND_ONLY, RQ(i), 64, 1);
			expect_recv(&p, 50, SUCCESS);
		}
		p.hold = true;
		for (uint32_t i = 0; i < 3; i++)
			probe_recv(&p, 64 * i, 64, i);
		probe_send(&p, SEND_ONLY, RQ(n), 64, 1);
		probe_send(&p, SEND_ONLY, RQ(n + 1), 64, 1);
		probe_settle(&p);
		probe_state(&p, URN_QPS_ERR);
		expect_no_cqe(&p);
		p.hold = false;
		expect_recv(&p, 0, WR_FLUSH_ERR);
		expect_recv(&p, 1, WR_FLUSH_ERR);
		expect_recv(&p, 2, WR_FLUSH_ERR);
		expect_no_cqe(&p);
		probe_close(&p);
	}
}

/* A QP that is reset with memory operations in flight waits for them. */
static void
reset_meanwhile(void **state)
{
	struct urn_abi_qp_attr a = {.state = URN_QPS_RESET};
	struct probe p;
	char why[160];

	(void)state;
	probe_open(&p, &slow);
	p.hold = true;
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 64, 0, 2);
	probe_settle(&p);
	assert_int_equal(urn_qp_modify(p.tp, p.qp, URN_QPM_STATE, &a, why, sizeof(why)), EAGAIN);
	assert_int_equal(urn_qp_modify(p.tp, p.qp, URN_QPM_STATE, &a, why, sizeof(why)), EAGAIN);
	p.hold = false;
	probe_settle(&p);
	assert_int_equal(urn_qp_modify(p.tp, p.qp, URN_QPM_STATE, &a, why, sizeof(why)), 0);
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_close(&p);
}

/* ---- QPs that end while the port takes nothing */

enum { BY_DESTROY, BY_RESET, BY_LEAVING, WAYS };

/* Leave no room for further frames, as a port does that takes nothing: QP 1 sends into it. */
static void
fill_port(struct probe *p)
{
	probe_use(p, 1);
	for (unsigned int i = 0; i < URN_TP_TX; i++)
		probe_post(p, URN_WR_SEND, 0, 0, 0, 0, i);
	for (unsigned int i = 0; i < URN_TP_TX && p->tp->tx_n < URN_TP_TX; i++)
		urn_tp_tx(p->tp);
	probe_use(p, 0);
	assert_int_equal(p->tp->tx_n, URN_TP_TX);
}

static void
answer_all(struct probe *p)
{
	p->hold = false;
	while (urn_memx_holds(p->memx, NULL))
		urn_tp_poll_memory(p->tp);
}

/* Begin the end of QP 0. returns: 0, or EAGAIN: frames of the QP are under way */
static int
end_qp(struct probe *p, int way)
{
	struct urn_abi_qp_attr a = {.state = URN_QPS_RESET};

	if (way == BY_RESET)
		return probe_modify(p, URN_QPM_STATE, &a);
	if (way == BY_LEAVING)
		(void)urn_qp_left(p->tp, p->qp);
	else
		urn_qp_stop(p->tp, p->qp);
	return urn_qp_quiet(p->qp) ? 0 : EAGAIN;
}

/*
 * A QP with frames that memory has answered for, and that the port has no room for, comes to its
 * end: nothing of the QP would have a turn later. The client's end, its RESET, and the word that a
 * client which left may have its memory, wait for that. answered: before the QP ends
 */
static void
end_at_full_port(int way, bool answered)
{
	struct probe p;

	probe_open(&p, &(struct probe_config){.delay_seed = 5, .qps = 2, .window = 2 * URN_TP_TX});
	p.hold = true;
	for (unsigned int i = 0; i < 3; i++)
		probe_post(&p, URN_WR_SEND, 0, 64 * i, 64, 0, i);
	probe_turn(&p, 0);
	assert_int_equal(urn_memx_holds(p.memx, NULL), 3);
	fill_port(&p);
	if (answered) {
		answer_all(&p);
		assert_false(urn_qp_quiet(p.qp));
	} else {
		assert_int_equal(end_qp(&p, way), EAGAIN);
		answer_all(&p);
	}
	assert_int_equal(end_qp(&p, way), 0);
	assert_true(urn_qp_quiet(p.qp));
	/* The other QP's frames stay, and go. */
	assert_int_equal(p.tp->tx_n, URN_TP_TX);
	for (uint32_t i = 0; i < URN_TP_TX; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	expect_silence(&p);
	probe_close(&p);
}

static void
ends_at_full_port(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++)
		for (int answered = 0; answered < 2; answered++)
			end_at_full_port(way, answered);
}

/* ---- the requester */

/* A frame goes out when its bytes are there, with the right ICRC (each frame is checked). */
static void
requester_waits(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 4, .timeout = 1, .retry_cnt = 0});
	p.hold = true;
	probe_fill(probe_at(&p, 0), 64, 8, 0);
	probe_post(&p, URN_WR_SEND, 0, 0, 64, 0, 1);
	probe_post(&p, URN_WR_SEND, URN_WRF_INLINE, 0, 0, 0, 2);
	expect_silence(&p);
	/* Our memory is slow, not the peer: no retry is used up. */
	probe_pass(&p, 10000000, 100000);
	expect_no_cqe(&p);
	expect_count(&p, TIMEOUTS, 0);
	p.hold = false;
	check_fill(expect_frame(&p, SEND_ONLY, SQ(0))->data, 64, 8, 0);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* While memory reads, the requester asks for more bytes, but not for all; then all go out, in order. */
static void
requester_reads_on(void **state)
{
	enum { FEW = 40, SHARE = 16, N = 150 };
	struct urn_memx_gate gate;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 9, .window = 256});
	gate = *p.tp->gate;
	assert_in_range(gate.few, SHARE + 1, N);
	gate.few = FEW;
	p.tp->gate = &gate;
	p.hold = true;
	probe_fill(probe_at(&p, 0), N * 64, 8, 0);
	for (uint32_t i = 0; i < N; i++)
		probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, i * 64, 64, 0, i);
	for (uint32_t i = 0; i < 100; i++)
		probe_turn(&p, 0);
	assert_in_range(urn_memx_holds(p.memx, NULL), FEW, FEW + SHARE - 1);
	assert_int_equal(p.seen_n, 0);
	p.hold = false;
	for (uint32_t i = 0; i < N; i++)
		assert_memory_equal(expect_frame(&p, SEND_ONLY, SQ(i))->data, probe_at(&p, i * 64),
				    64);
	probe_ack(&p, SQ(N - 1), SYN_ACK, N);
	for (uint32_t i = 0; i < N; i++)
		expect_sent(&p, i, SUCCESS);
	probe_close(&p);
}

/* A READ is complete when its bytes are placed, and acknowledges then. */
static void
read_waits(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	probe_post(&p, URN_WR_SEND, 0, 0, 0, 0, 1);
	probe_post(&p, URN_WR_RDMA_READ, 0, 0, 64, 0, 2);
	probe_post(&p, URN_WR_SEND, 0, 0, 0, 0, 3);
	probe_settle(&p);
	p.hold = true;
	probe_resp(&p, READ_ONLY, SQ(1), 64, 5);
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	expect_no_cqe(&p);
	p.hold = false;
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	expect_sent(&p, 3, SUCCESS);
	check_fill(probe_at(&p, 0), 64, 5, 0);
	expect_count(&p, RETRANSMITS, 0);
	probe_close(&p);
}

/* The buffer of a READ could not be written: LOC_PROT_ERR. */
static void
read_place_fails(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.delay_seed = (uint64_t)late});
		probe_post(&p, URN_WR_SEND, 0, 0, 0, 0, 1);
		probe_post(&p, URN_WR_RDMA_READ, 0, 0, 2000, 0, 2);
		probe_post(&p, URN_WR_SEND, 0, 0, 0, 0, 3);
		probe_settle(&p);
		probe_fail_op(&p, 2, late);
		probe_resp(&p, READ_FIRST, SQ(1), MTU, 5);
		probe_resp(&p, READ_LAST, SQ(2), 976, 5);
		expect_sent(&p, 1, SUCCESS);
		expect_sent(&p, 2, LOC_PROT_ERR);
		expect_sent(&p, 3, WR_FLUSH_ERR);
		probe_close(&p);
	}
}

/* A READ that fails for loss is not given back while its bytes are being placed. */
static void
loss_and_slow_memory(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.delay_seed = 5, .retry_cnt = 0});
	probe_post(&p, URN_WR_RDMA_READ, 0, 0, 3 * MTU, 0, 1);
	probe_settle(&p);
	p.hold = true;
	probe_resp(&p, READ_FIRST, SQ(0), MTU, 5);
	probe_resp(&p, READ_LAST, SQ(2), MTU, 5); /* the middle is lost; no retry is left */
	expect_no_cqe(&p);
	p.hold = false;
	expect_sent(&p, 1, RETRY_EXC_ERR);
	assert_int_equal(urn_memx_holds(p.memx, NULL), 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responder_waits),    cmocka_unit_test(order_kept),
		cmocka_unit_test(read_after_write),   cmocka_unit_test(any_delay),
		cmocka_unit_test(place_fails),	      cmocka_unit_test(atomic_fails),
		cmocka_unit_test(two_failures),	      cmocka_unit_test(error_meanwhile),
		cmocka_unit_test(reset_meanwhile),    cmocka_unit_test(requester_waits),
		cmocka_unit_test(requester_reads_on), cmocka_unit_test(read_waits),
		cmocka_unit_test(read_place_fails),   cmocka_unit_test(loss_and_slow_memory),
		cmocka_unit_test(ends_at_full_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
