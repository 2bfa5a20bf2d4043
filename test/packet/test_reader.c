/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading work queues: requests and receives that are too large for the transport,
 * the operation or the QP, each refused in its turn, and none read beyond its slot.
 */
#include "probe.h"

#define HALF (1u << 31)

enum { MTU = 256 };

static struct urn_abi_sge *
elements(struct probe *p)
{
	return (struct urn_abi_sge *)(probe_slot(p) + 1);
}

/* A request of one element, or of as many, each so long. */
static void
prepare(struct probe *p, uint8_t op, uint32_t n, uint32_t len)
{
	probe_prepare(p, op, URN_WRF_SIGNALED, 0, 8, 4096, 9);
	probe_slot(p)->num_sge = (uint8_t)n;
	for (uint32_t i = 0; i < n && i < PROBE_SGES; i++)
		elements(p)[i] = (struct urn_abi_sge){PROBE_VA + i * 64, p->key_local, len};
}

static void
refused(struct probe *p, uint8_t status)
{
	probe_ring(p);
	probe_expect_cqe(p, false, 9, status, __FILE__, __LINE__);
	expect_silence(p);
	expect_count(p, BAD_WQE, 1);
	assert_int_equal(p->qp->state, URN_QPS_ERR);
	probe_close(p);
}

/* One more than the queue's slots hold: the bytes behind are the next slot's. */
static void
too_many_elements(void **state)
{
	static const uint8_t n[] = {PROBE_SGES + 1, URN_ABI_MAX_SGE, 255};
	struct probe p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(n); i++)
		for (int ud = 0; ud < 2; ud++) {
			probe_open(&p, &(struct probe_config){.type = ud ? URN_QPT_UD : 0});
			prepare(&p, URN_WR_SEND, n[i], 1);
			probe_ring(&p);
			probe_expect_cqe(&p, false, 9, URN_WC_LOC_QP_OP_ERR, __FILE__, __LINE__);
			expect_silence(&p);
			expect_count(&p, BAD_WQE, 1);
			probe_close(&p);
		}
}

static void
too_much_inline(void **state)
{
	static const uint32_t len[] = {PROBE_INLINE + 1, URN_ABI_MAX_INLINE + 1, UINT32_MAX};
	struct probe p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		probe_open(&p, NULL);
		prepare(&p, URN_WR_RDMA_WRITE, 0, 0);
		probe_slot(&p)->flags |= URN_WRF_INLINE;
		probe_slot(&p)->rdma.inline_len = len[i];
		refused(&p, URN_WC_LOC_QP_OP_ERR);
	}
}

/* More than a message may have, in one element or several; and more PSNs than there are. */
static void
too_long(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	prepare(&p, URN_WR_RDMA_WRITE, 1, HALF + 1);
	refused(&p, URN_WC_LOC_LEN_ERR);
	probe_open(&p, NULL);
	prepare(&p, URN_WR_RDMA_WRITE, 3, HALF / 2);
	refused(&p, URN_WC_LOC_LEN_ERR);
	probe_open(&p, NULL);
	prepare(&p, URN_WR_RDMA_WRITE, 2, UINT32_MAX); /* the sum of which is short in 32 bits */
	refused(&p, URN_WC_LOC_LEN_ERR);
	probe_open(&p, &(struct probe_config){.mtu = MTU});
	prepare(&p, URN_WR_RDMA_READ, 1, HALF);
	refused(&p, URN_WC_LOC_LEN_ERR);
}

static void
fetches(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.rd_atomic = -1});
	prepare(&p, URN_WR_RDMA_READ, 1, 8);
	refused(&p, URN_WC_LOC_QP_OP_ERR);
	probe_open(&p, NULL);
	prepare(&p, URN_WR_RDMA_READ, 0, 0);
	probe_slot(&p)->flags |= URN_WRF_INLINE;
	refused(&p, URN_WC_LOC_QP_OP_ERR);
	for (uint32_t len = 4; len <= 16; len += 12) {
		probe_open(&p, NULL);
		prepare(&p, URN_WR_FETCH_ADD, 1, len);
		refused(&p, URN_WC_LOC_LEN_ERR);
	}
	for (unsigned int op = URN_WR_OPS; op < 256; op += 61) { /* none that there is */
		probe_open(&p, NULL);
		prepare(&p, (uint8_t)op, 1, 8);
		refused(&p, URN_WC_LOC_QP_OP_ERR);
	}
}

/*
 * An atomic at a remote address that is not 8-byte aligned goes out: the responder refuses it
 * with an invalid request NAK (IBTA 9.4.5.2), and no error is made up without a packet.
 */
static void
misaligned_atomics(void **state)
{
	static const uint8_t op[] = {URN_WR_CMP_SWAP, URN_WR_FETCH_ADD};
	struct probe p;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t off = 1; off < 8; off++) {
			probe_open(&p, NULL);
			prepare(&p, op[i], 1, 8);
			probe_slot(&p)->rdma.remote_addr += off;
			probe_ring(&p);
			assert_int_equal(expect_frame(&p, i ? FETCH_ADD : CMP_SWAP, SQ(0))->va,
					 PROBE_VA + 4096 + off);
			expect_no_cqe(&p);
			expect_count(&p, BAD_WQE, 0);
			probe_ack(&p, SQ(0), NAK_INV, 0);
			expect_sent(&p, 9, REM_INV_REQ_ERR);
			probe_close(&p);
		}
}

/* An address handle of another domain is refused, and so is one that does not exist. */
static void
handles(void **state)
{
	struct probe p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
		prepare(&p, URN_WR_SEND, 1, 8);
		if (i)
			p.ah.pd = p.other_pd;
		else
			probe_slot(&p)->ud.ah = 77;
		probe_ring(&p);
		probe_expect_cqe(&p, false, 9, URN_WC_LOC_QP_OP_ERR, __FILE__, __LINE__);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* Places for long lists and for receives run out, and come back. */
static void
no_place(void **state)
{
	struct urn_tp_share left;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	left = p.tp->left;
	p.tp->left.ext = 0;
	prepare(&p, URN_WR_RDMA_WRITE, 3, 8);
	probe_ring(&p);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 0);
	assert_int_equal(p.seen_n, 0);
	assert_true(p.tp->c.v[URN_C_NO_WORK] > 0);
	p.tp->left.ext = left.ext;
	probe_ring(&p);
	assert_int_equal(expect_frame(&p, WRITE_ONLY, SQ(0))->length, 24);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 9, SUCCESS);

	probe_recv(&p, 0, 64, 4);
	p.tp->left.recv = 0;
	probe_send(&p, SEND_ONLY, RQ(0), 40, 1);
	expect_aeth(&p, RQ(0), SYN_RNR, 0);
	p.tp->left.recv = left.recv;
	probe_send(&p, SEND_ONLY, RQ(0), 40, 1);
	expect_recv(&p, 4, SUCCESS);
	probe_close(&p);
}

/* A QP takes no more of a shared queue than there is room to put down; the peer hears of it. */
static void
taken(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.srq = true});
	probe_recv(&p, 0, 64, 4);
	p.qp->rq.undone = URN_ABI_TAKEN;
	probe_send(&p, SEND_ONLY, RQ(0), 40, 1);
	expect_aeth(&p, RQ(0), SYN_RNR, 0);
	p.qp->rq.undone = 0;
	probe_send(&p, SEND_ONLY, RQ(0), 40, 1);
	expect_recv(&p, 4, SUCCESS);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_elements),
		cmocka_unit_test(too_much_inline),
		cmocka_unit_test(too_long),
		cmocka_unit_test(fetches),
		cmocka_unit_test(misaligned_atomics),
		cmocka_unit_test(handles),
		cmocka_unit_test(no_place),
		cmocka_unit_test(taken),
	};

	return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
