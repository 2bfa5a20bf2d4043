/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: its packets, and the effect of acknowledgements (doc/reference/wire.md
 * "Opcodes", "Lengths", "Acknowledgement", "Errors at the requester").
 */
#include "probe.h"

/* n SENDs of 32 bytes, wr_id and data 0, 1, ... */
static void
post_sends(struct probe *p, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		probe_fill(probe_at(p, i * 32), 32, i, 0);
		probe_post(p, URN_WR_SEND, 0, i * 32, 32, 0, i);
	}
}

static void
expect_sends(struct probe *p, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++) {
		const struct frame *f = expect_frame(p, SEND_ONLY, SQ(i));

		assert_int_equal(f->len, 32);
		check_fill(f->data, 32, i, 0);
	}
	expect_silence(p);
}

/* doc/reference/wire.md "Lengths", "Opcodes": first and middle of the MTU, the rest in the last. */
static void
segments(void **state)
{
	static const struct {
		uint8_t wr, first, middle, last;
	} op[] = {
		{URN_WR_SEND, SEND_FIRST, SEND_MIDDLE, SEND_LAST},
		{URN_WR_SEND_IMM, SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM},
		{URN_WR_SEND_INV, SEND_FIRST, SEND_MIDDLE, SEND_LAST_INV},
		{URN_WR_RDMA_WRITE, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST},
		{URN_WR_RDMA_WRITE_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM},
	};
	uint32_t psn = PROBE_SQ_PSN;

	for (int v6 = 0; v6 < 2; v6++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.ipv6 = v6});
		psn = PROBE_SQ_PSN;
		probe_fill(probe_at(&p, 0), 2501, 7, 0);
		for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
			bool write = op[i].first == WRITE_FIRST;
			const struct frame *f;

			probe_prepare(&p, op[i].wr, URN_WRF_SIGNALED | URN_WRF_SOLICITED, 0, 2501, 5, i);
			probe_slot(&p)->imm = i == 2 ? 0x01020304 : rte_cpu_to_be_32(0x01020304);
			probe_ring(&p);
			f = expect_frame(&p, op[i].first, psn);
			assert_false(f->ack || f->se);
			check_fill(f->data, 1024, 7, 0);
			if (write) {
				assert_true(f->va == PROBE_VA + 5);
				assert_int_equal(f->rkey, p.key);
				assert_int_equal(f->length, 2501);
			}
			f = expect_frame(&p, op[i].middle, PSN(psn, 1));
			assert_false(f->ack || f->se);
			check_fill(f->data, 1024, 7, 1024);
			f = expect_frame(&p, op[i].last, PSN(psn, 2));
			assert_int_equal(f->len, 453);
			assert_int_equal(f->pad, 3);
			check_fill(f->data, 453, 7, 2048);
			assert_true(f->se);
			assert_true(f->ack); /* asked with the last packet */
			if (i == 1 || i == 2 || i == 4)
				assert_int_equal(f->imm, 0x01020304);
			expect_silence(&p);
			psn = PSN(psn, 3);
			probe_ack(&p, PSN(psn, -1), SYN_ACK, (uint32_t)i + 1);
			expect_sent(&p, i, SUCCESS);
		}
		probe_close(&p);
	}
	(void)state;
}

/* One packet: the "only" opcodes; 0 bytes are a packet too. */
static void
only(void **state)
{
	static const struct {
		uint8_t wr, op;
	} op[] = {
		{URN_WR_SEND, SEND_ONLY},	    {URN_WR_SEND_IMM, SEND_ONLY_IMM},
		{URN_WR_SEND_INV, SEND_ONLY_INV},   {URN_WR_RDMA_WRITE, WRITE_ONLY},
		{URN_WR_RDMA_WRITE_IMM, WRITE_ONLY_IMM},
	};
	static const uint32_t len[] = {0, 1, 1024};
	struct probe p;
	uint32_t psn = 0;

	(void)state;
	probe_open(&p, NULL);
	for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++)
		for (size_t k = 0; k < 3; k++, psn++) {
			const struct frame *f;

			probe_post(&p, op[i].wr, 0, 0, len[k], 0, psn);
			f = expect_frame(&p, op[i].op, SQ(psn));
			assert_int_equal(f->len, len[k]);
			assert_true(f->ack);
			expect_silence(&p);
			probe_ack(&p, SQ(psn), SYN_ACK, psn);
			expect_sent(&p, psn, SUCCESS);
		}
	probe_close(&p);
}

/* doc/reference/wire.md "Acknowledgement": ACK(n) acknowledges all before n too, and nothing behind it. */
static void
ack_covers(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	post_sends(&p, 0, 12);
	expect_sends(&p, 0, 12);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(9), SYN_ACK, 10); /* past the wrap */
	for (uint32_t i = 0; i < 10; i++)
		expect_sent(&p, i, SUCCESS);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(9), SYN_ACK, 10);
	probe_ack(&p, SQ(3), SYN_ACK, 4);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(11), SYN_ACK, 12);
	expect_sent(&p, 10, SUCCESS);
	expect_sent(&p, 11, SUCCESS);
	expect_silence(&p);
	probe_close(&p);
}

/* An acknowledgement of a PSN that was never sent is ignored. */
static void
ack_of_nothing(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	post_sends(&p, 0, 2);
	expect_sends(&p, 0, 2);
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	probe_ack(&p, SQ(0x7ffff0), SYN_ACK, 3);
	probe_ack(&p, SQ(2), NAK_SEQ, 3);
	probe_ack(&p, SQ(2), NAK_ACCESS, 3);
	expect_no_cqe(&p);
	expect_silence(&p);
	expect_count(&p, DROP_PSN, 4);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* NAK(sequence, n): all before n is done; go back to n, once until there is progress. */
static void
go_back(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 7});
	post_sends(&p, 0, 5);
	expect_sends(&p, 0, 5);
	probe_ack(&p, SQ(2), NAK_SEQ, 2);
	expect_sent(&p, 0, SUCCESS);
	expect_sent(&p, 1, SUCCESS);
	expect_sends(&p, 2, 3);
	expect_count(&p, RETRANSMITS, 3);
	probe_ack(&p, SQ(2), NAK_SEQ, 2);
	probe_ack(&p, SQ(2), NAK_SEQ, 2);
	expect_silence(&p);
	probe_ack(&p, SQ(3), NAK_SEQ, 3);
	expect_sent(&p, 2, SUCCESS);
	expect_sends(&p, 3, 2);
	/* One that comes late says nothing. */
	probe_ack(&p, SQ(1), NAK_SEQ, 1);
	probe_ack(&p, SQ(1), NAK_ACCESS, 1);
	expect_silence(&p);
	expect_no_cqe(&p);
	expect_count(&p, RX_NAKS, 6);
	probe_ack(&p, SQ(4), SYN_ACK, 5);
	expect_sent(&p, 3, SUCCESS);
	expect_sent(&p, 4, SUCCESS);
	probe_close(&p);
}

/* Go back into the middle of a message: the same opcodes, PSNs and bytes again. */
static void
go_back_inside(void **state)
{
	struct probe p;
	const struct frame *f;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 7});
	probe_fill(probe_at(&p, 0), 4000, 3, 0);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 4000, 0, 1);
	expect_frame(&p, WRITE_FIRST, SQ(0));
	expect_frame(&p, WRITE_MIDDLE, SQ(1));
	expect_frame(&p, WRITE_MIDDLE, SQ(2));
	expect_frame(&p, WRITE_LAST, SQ(3));
	probe_ack(&p, SQ(2), NAK_SEQ, 0);
	f = expect_frame(&p, WRITE_MIDDLE, SQ(2));
	check_fill(f->data, 1024, 3, 2048);
	f = expect_frame(&p, WRITE_LAST, SQ(3));
	check_fill(f->data, 4000 - 3072, 3, 3072);
	assert_true(f->ack);
	expect_silence(&p);
	/* Packets that were acknowledged meanwhile are skipped. */
	probe_ack(&p, SQ(3), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/* An ACK that overtakes a repetition cuts it short. */
static void
ack_in_repetition(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 7});
	post_sends(&p, 0, 5);
	expect_sends(&p, 0, 5);
	probe_ack(&p, SQ(0), NAK_SEQ, 0);
	probe_ack(&p, SQ(3), SYN_ACK, 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_sent(&p, i, SUCCESS);
	expect_sends(&p, 4, 1);
	probe_close(&p);
}

/* doc/reference/wire.md "Errors at the requester". */
static void
fatal_naks(void **state)
{
	static const struct {
		uint8_t syn, status;
	} nak[] = {
		{NAK_INV, URN_WC_REM_INV_REQ_ERR},
		{NAK_ACCESS, URN_WC_REM_ACCESS_ERR},
		{NAK_OP, URN_WC_REM_OP_ERR},
	};

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.retry_cnt = 7});
		probe_recv(&p, 4096, 64, 77);
		post_sends(&p, 0, 4);
		expect_sends(&p, 0, 4);
		probe_ack(&p, SQ(2), nak[k].syn, 2);
		expect_sent(&p, 0, SUCCESS);
		expect_sent(&p, 1, SUCCESS);
		probe_expect_cqe(&p, false, 2, nak[k].status, __FILE__, __LINE__);
		expect_sent(&p, 3, WR_FLUSH_ERR);
		expect_recv(&p, 77, WR_FLUSH_ERR);
		post_sends(&p, 4, 1);
		expect_sent(&p, 4, WR_FLUSH_ERR);
		expect_no_cqe(&p);
		expect_silence(&p);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		probe_close(&p);
	}
}

/* Error completions are made for unsignalled work too; successes are not. */
static void
unsignalled(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 4; i++)
		probe_prepare(&p, URN_WR_SEND, 0, 0, 8, 0, i);
	probe_ring(&p);
	for (uint32_t i = 0; i < 4; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_no_cqe(&p);
	probe_ack(&p, SQ(2), NAK_ACCESS, 2);
	expect_sent(&p, 2, REM_ACCESS_ERR);
	expect_sent(&p, 3, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	probe_close(&p);
}

/* Reserved syndromes mean nothing, not even an acknowledgement of earlier packets. */
static void
reserved(void **state)
{
	struct probe p;
	uint32_t n = 0;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 7});
	post_sends(&p, 0, 3);
	expect_sends(&p, 0, 3);
	for (uint32_t syn = 0x40; syn < 0x80; syn++) {
		if (syn >= NAK_SEQ && syn <= NAK_OP)
			continue;
		probe_ack(&p, SQ(1), (uint8_t)syn, 1);
		n++;
		probe_settle(&p);
	}
	expect_no_cqe(&p);
	expect_silence(&p);
	expect_count(&p, DROP_RESPONSE, n);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	expect_sent(&p, 0, SUCCESS);
	probe_close(&p);
}

/* Packets in flight are bounded; the packet that fills the window asks. */
static void
window(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.window = 8});
	for (uint32_t i = 0; i < 20; i++)
		probe_prepare(&p, URN_WR_SEND, 0, 0, 32, 0, i);
	probe_ring(&p);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(expect_frame(&p, SEND_ONLY, SQ(i))->ack, i == 7);
	expect_silence(&p);
	probe_ack(&p, SQ(2), SYN_ACK, 3);
	for (uint32_t i = 8; i < 11; i++)
		assert_int_equal(expect_frame(&p, SEND_ONLY, SQ(i))->ack, i == 10);
	expect_silence(&p);
	/* A long message halts in the middle. */
	probe_ack(&p, SQ(10), SYN_ACK, 11);
	for (uint32_t i = 11; i < 19; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	probe_ack(&p, SQ(18), SYN_ACK, 19);
	expect_frame(&p, SEND_ONLY, SQ(19));
	probe_ack(&p, SQ(19), SYN_ACK, 20);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 12 * 1024, 0, 20);
	expect_frame(&p, WRITE_FIRST, SQ(20));
	for (uint32_t i = 21; i < 28; i++)
		assert_int_equal(expect_frame(&p, WRITE_MIDDLE, SQ(i))->ack, i == 27);
	expect_silence(&p);
	probe_ack(&p, SQ(27), SYN_ACK, 20);
	for (uint32_t i = 28; i < 31; i++)
		expect_frame(&p, WRITE_MIDDLE, SQ(i));
	expect_frame(&p, WRITE_LAST, SQ(31));
	probe_ack(&p, SQ(31), SYN_ACK, 21);
	expect_sent(&p, 20, SUCCESS);
	probe_close(&p);
}

/* Within a long row of posted work an ACK is asked for now and then. */
static void
asks_now_and_then(void **state)
{
	struct probe p;
	uint32_t quiet = 0, asked = 0;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 60; i++)
		probe_prepare(&p, URN_WR_SEND, 0, 0, 32, 0, i);
	probe_ring(&p);
	for (uint32_t i = 0; i < 60; i++) {
		bool a = expect_frame(&p, SEND_ONLY, SQ(i))->ack;

		quiet = a ? 0 : quiet + 1;
		asked += a;
		assert_true(quiet < 32);
	}
	assert_int_equal(quiet, 0); /* the last packet asks */
	assert_true(asked < 8);
	probe_close(&p);
}

/* Inline data was taken when it was posted (WQE), not from memory. */
static void
inline_data(void **state)
{
	struct probe p;
	struct urn_abi_swqe *w;

	(void)state;
	probe_open(&p, NULL);
	probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED | URN_WRF_INLINE, 0, 0, 0, 1);
	w = probe_slot(&p);
	w->rdma.inline_len = 50;
	probe_fill((uint8_t *)(w + 1), 50, 9, 0);
	probe_ring(&p);
	check_fill(expect_frame(&p, SEND_ONLY, SQ(0))->data, 50, 9, 0);
	memset(w + 1, 0, 50);
	probe_ack(&p, SQ(0), NAK_SEQ, 0); /* the repetition has the copy */
	expect_sent(&p, 1, RETRY_EXC_ERR); /* retry_cnt 0 */
	probe_close(&p);
}

/* Buffers still have the fields of an earlier packet: longer, shorter, at another offset, offloaded. */
static void
used_buffers(void **state)
{
	enum { BUFFERS = 63 };
	struct rte_mbuf *m[BUFFERS];
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.pool_mbufs = BUFFERS});
	for (unsigned int way = 0; way < 5; way++) {
		assert_int_equal(p.tp->fresh_n, 0);
		assert_int_equal(rte_mempool_get_bulk(p.pool, (void **)m, BUFFERS), 0);
		for (unsigned int i = 0; i < BUFFERS; i++) {
			m[i]->data_off = (uint16_t)(way == 0 ? 0 : m[i]->data_off);
			m[i]->ol_flags = way == 1 ? RTE_MBUF_F_TX_UDP_CKSUM : m[i]->ol_flags;
			m[i]->packet_type = way == 2 ? 1 : m[i]->packet_type;
			m[i]->pkt_len = m[i]->data_len = way == 3 ? 2000 : way == 4 ? 1 : m[i]->data_len;
		}
		rte_mempool_put_bulk(p.pool, (void **)m, BUFFERS);
		/* The number of buffers that are taken from the pool at once. */
		post_sends(&p, way * URN_TP_BURST, URN_TP_BURST);
		expect_sends(&p, way * URN_TP_BURST, URN_TP_BURST);
		probe_ack(&p, SQ((way + 1) * URN_TP_BURST - 1), SYN_ACK, (way + 1) * URN_TP_BURST);
		probe_settle(&p);
	}
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments),	    cmocka_unit_test(only),
		cmocka_unit_test(ack_covers),	    cmocka_unit_test(ack_of_nothing),
		cmocka_unit_test(go_back),	    cmocka_unit_test(go_back_inside),
		cmocka_unit_test(ack_in_repetition), cmocka_unit_test(fatal_naks),
		cmocka_unit_test(unsignalled),	    cmocka_unit_test(reserved),
		cmocka_unit_test(window),	    cmocka_unit_test(asks_now_and_then),
		cmocka_unit_test(inline_data),	    cmocka_unit_test(used_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
