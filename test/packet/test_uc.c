/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC, packet by packet (IBTA 9.8): nobody acknowledges; a request is complete when its frames have
 * gone; a message with a gap is dropped in silence, and its receive serves the next.
 */
#include "probe.h"

#include "bare.h"

#include <stdlib.h>

enum { MTU = 1024 };

static void
open_uc(struct probe *p, const struct probe_config *like)
{
	struct probe_config c = like ? *like : (struct probe_config){0};

	c.type = URN_QPT_UC;
	probe_open(p, &c);
}

/* ---- requester */

/* Messages are cut as on RC, ask for no acknowledgement, and complete without one. */
static void
sends(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) { /* 0: memory answers at once */
		const struct frame *f;
		struct probe p;

		open_uc(&p, &(struct probe_config){.delay_seed = seed});
		probe_fill(probe_at(&p, 0), 4096, 7, 0);
		probe_post(&p, URN_WR_SEND, URN_WRF_SOLICITED, 0, 2 * MTU + 100, 0, 1);
		f = expect_frame(&p, UC | SEND_FIRST, SQ(0));
		check_fill(f->data, MTU, 7, 0);
		expect_frame(&p, UC | SEND_MIDDLE, SQ(1));
		f = expect_frame(&p, UC | SEND_LAST, SQ(2));
		check_fill(f->data, 100, 7, 2 * MTU);
		assert_true(f->se);
		expect_sent(&p, 1, SUCCESS);
		probe_post(&p, URN_WR_RDMA_WRITE, 0, 8, MTU + 1, 512, 2);
		f = expect_frame(&p, UC | WRITE_FIRST, SQ(3));
		assert_int_equal(f->va, PROBE_VA + 512);
		assert_int_equal(f->length, MTU + 1);
		expect_frame(&p, UC | WRITE_LAST, SQ(4));
		expect_sent(&p, 2, SUCCESS);
		probe_prepare(&p, URN_WR_RDMA_WRITE_IMM, URN_WRF_SIGNALED, 0, 8, 0, 3);
		probe_slot(&p)->imm = 0x44332211;
		probe_ring(&p);
		expect_frame(&p, UC | WRITE_ONLY_IMM, SQ(5));
		expect_sent(&p, 3, SUCCESS);
		probe_post(&p, URN_WR_SEND, 0, 0, 0, 0, 4);
		expect_frame(&p, UC | SEND_ONLY, SQ(6));
		expect_sent(&p, 4, SUCCESS);
		/* Without a completion the slot comes back all the same. */
		probe_prepare(&p, URN_WR_SEND, 0, 0, 8, 0, 5);
		probe_ring(&p);
		expect_frame(&p, UC | SEND_ONLY, SQ(7));
		expect_no_cqe(&p);
		assert_int_equal(atomic_load(&p.q[0].sq->cons), atomic_load(&p.q[0].sq->prod));
		probe_close(&p);
	}
}

/* Every opcode of UC: each request as one packet and as several. */
static void
opcodes(void **state)
{
	static const struct {
		uint8_t wr, first, middle, last, only;
	} kind[] = {
		{URN_WR_SEND, SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY},
		{URN_WR_SEND_IMM, SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM, SEND_ONLY_IMM},
		{URN_WR_RDMA_WRITE, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY},
		{URN_WR_RDMA_WRITE_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM, WRITE_ONLY_IMM},
	};

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct probe p;

		open_uc(&p, &(struct probe_config){.ipv6 = v6});
		for (uint32_t k = 0; k < 4; k++) {
			probe_post(&p, kind[k].wr, 0, 0, 3 * MTU, 0, k);
			expect_frame(&p, UC | kind[k].first, SQ(4 * k));
			expect_frame(&p, UC | kind[k].middle, SQ(4 * k + 1));
			expect_frame(&p, UC | kind[k].last, SQ(4 * k + 2));
			expect_sent(&p, k, SUCCESS);
			probe_post(&p, kind[k].wr, 0, 0, 7, 0, k);
			expect_frame(&p, UC | kind[k].only, SQ(4 * k + 3));
			expect_sent(&p, k, SUCCESS);
		}
		probe_close(&p);
	}
}

/* Requests that UC has not, and memory that is not the program's: completed with an error, state
 * SQE, back to RTS. */
static void
refuses(void **state)
{
	static const uint8_t none[] = {URN_WR_RDMA_READ, URN_WR_CMP_SWAP, URN_WR_FETCH_ADD,
				       URN_WR_SEND_INV};
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	for (unsigned int i = 0; i < 5; i++) {
		probe_prepare(&p, i < 4 ? none[i] : URN_WR_SEND, URN_WRF_SIGNALED, 0, 8, 0, 10 + i);
		if (i == 4)
			((struct urn_abi_sge *)(void *)(probe_slot(&p) + 1))->lkey = p.key_other;
		probe_ring(&p);
		if (i < 4)
			expect_sent(&p, 10 + i, LOC_QP_OP_ERR);
		else
			expect_sent(&p, 10 + i, LOC_PROT_ERR);
		expect_silence(&p);
		assert_int_equal(p.qp->state, URN_QPS_SQE);
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 20);
		expect_sent(&p, 20, WR_FLUSH_ERR);
		probe_attributes(&p, &a);
		a.state = URN_QPS_RTS;
		assert_int_equal(probe_modify(&p, URN_QPM_STATE, &a), 0);
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 21);
		expect_frame(&p, UC | SEND_ONLY, SQ(i));
		expect_sent(&p, 21, SUCCESS);
	}
	probe_close(&p);
}

/* Memory that can't be read ends the message in its midst; the requests behind it are flushed, and
 * una counts right after. */
static void
unreadable(void **state)
{
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	probe_fail_op(&p, 2, false);
	probe_prepare(&p, URN_WR_SEND, 0, 0, 3 * MTU, 0, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2);
	expect_frame(&p, UC | SEND_FIRST, SQ(0));
	expect_sent(&p, 1, LOC_PROT_ERR);
	expect_sent(&p, 2, WR_FLUSH_ERR);
	expect_silence(&p);
	probe_attributes(&p, &a);
	a.state = URN_QPS_RTS;
	assert_int_equal(probe_modify(&p, URN_QPM_STATE, &a), 0);
	probe_post(&p, URN_WR_SEND, 0, 0, 2 * MTU, 0, 3);
	assert_int_equal(expect_frame(&p, UC | SEND_FIRST, SQ(4))->len, MTU);
	expect_frame(&p, UC | SEND_LAST, SQ(5));
	expect_sent(&p, 3, SUCCESS);
	probe_close(&p);
}

/* A peer whose MAC address nobody knows: messages wait while it is asked for, and are lost when
 * nobody answers. */
static void
no_neighbour(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	p.neigh = -1;
	probe_post(&p, URN_WR_SEND, 0, 0, 2 * MTU, 0, 1);
	expect_no_cqe(&p);
	p.neigh = -2;
	probe_pass(&p, 3000000, 1000000);
	expect_sent(&p, 1, SUCCESS);
	expect_silence(&p);
	expect_count(&p, DROP_NO_NEIGH, 1);
	p.neigh = 0;
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2);
	expect_frame(&p, UC | SEND_ONLY, SQ(2));
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* ---- responder */

/* Whole messages in order: placed, completed, never answered. */
static void
receives(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		const struct urn_abi_cqe *c;
		struct probe p;

		open_uc(&p, &(struct probe_config){.delay_seed = seed, .state = URN_QPS_RTR});
		probe_recv(&p, 0, 4000, 1);
		probe_recv(&p, 8192, 64, 2);
		probe_recv(&p, 8192, 64, 3);
		probe_send(&p, UC | SEND_FIRST, RQ(0), MTU, 1);
		probe_send(&p, UC | SEND_MIDDLE, RQ(1), MTU, 2);
		probe_send(&p, UC | SEND_LAST, RQ(2), 10, 3);
		expect_recv(&p, 1, SUCCESS);
		c = probe_cqe(&p, true);
		assert_int_equal(c->byte_len, 2 * MTU + 10);
		assert_int_equal(c->src_qp, p.q[0].peer_qpn);
		check_fill(probe_at(&p, 0), MTU, 1, 0);
		check_fill(probe_at(&p, MTU), MTU, 2, 0);
		check_fill(probe_at(&p, 2 * MTU), 10, 3, 0);
		assert_int_equal(p.event[0], URN_EVENT_COMM_EST);
		probe_send(&p, UC | SEND_ONLY_IMM, RQ(3), 64, 4);
		expect_recv(&p, 2, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->wc_flags, URN_WCF_WITH_IMM);
		probe_write(&p, UC | WRITE_FIRST, RQ(4), 16384, MTU + 9, MTU, 5);
		probe_write(&p, UC | WRITE_LAST_IMM, RQ(5), 0, 0, 9, 6);
		expect_recv(&p, 3, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->opcode, URN_WCO_RECV_RDMA_WITH_IMM);
		check_fill(probe_at(&p, 16384), MTU, 5, 0);
		check_fill(probe_at(&p, 16384 + MTU), 9, 6, 0);
		expect_silence(&p);
		expect_no_cqe(&p);
		probe_close(&p);
	}
}

/* A gap, wherever it is, costs its message and no other; the receive that the message had begun
 * serves the next. */
static void
gaps(void **state)
{
	(void)state;
	for (uint32_t lost = 0; lost < 4; lost++) {
		static const uint8_t op[] = {UC | SEND_FIRST, UC | SEND_MIDDLE, UC | SEND_MIDDLE,
					     UC | SEND_LAST};
		struct probe p;

		open_uc(&p, NULL);
		probe_recv(&p, 0, 4096, 1);
		for (uint32_t i = 0; i < 4; i++)
			if (i != lost)
				probe_send(&p, op[i], RQ(i), i == 3 ? 5 : MTU, 1);
		expect_no_cqe(&p);
		expect_count(&p, DROP_UC_GAP, lost == 3 ? 0 : 3 - lost);
		probe_write(&p, UC | WRITE_ONLY, RQ(4), 8192, 3, 3, 9); /* takes no receive */
		probe_send(&p, UC | SEND_FIRST, RQ(5), MTU, 2);
		probe_send(&p, UC | SEND_LAST, RQ(6), 7, 3);
		expect_recv(&p, 1, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->byte_len, MTU + 7);
		check_fill(probe_at(&p, 0), MTU, 2, 0);
		check_fill(probe_at(&p, MTU), 7, 3, 0);
		check_fill(probe_at(&p, 8192), 3, 9, 0);
		expect_silence(&p);
		assert_int_equal(p.qp->state, URN_QPS_RTS);
		probe_close(&p);
	}
}

/* Packets that do not go on with the message under way, of SENDs and WRITEs. */
static void
wrong_order(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	probe_recv(&p, 0, 4096, 1);
	probe_send(&p, UC | SEND_MIDDLE, RQ(0), MTU, 1);
	probe_send(&p, UC | SEND_FIRST, RQ(0), MTU, 1);
	probe_write(&p, UC | WRITE_LAST, RQ(1), 0, 0, 5,
		    1); /* a WRITE's end behind a SEND's begin */
	probe_send(&p, UC | SEND_LAST, RQ(1), 5, 1);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_GAP, 3);
	probe_send(&p, UC | SEND_FIRST, RQ(2), MTU, 1);
	probe_send(&p, UC | SEND_ONLY, RQ(3), 6, 4); /* the begin of another ends it */
	expect_recv(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), 6, 4, 0);
	probe_close(&p);
}

/* The network may repeat and reorder: no message comes twice, none behind a later one; a long
 * silence ends that. */
static void
late(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	for (uint32_t i = 1; i < 5; i++)
		probe_recv(&p, 0, 4096, i);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 8, 1);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 8, 1);
	probe_send(&p, UC | SEND_ONLY, RQ(2), 8, 2);
	probe_send(&p, UC | SEND_ONLY, RQ(1), 8, 3); /* overtaken */
	expect_recv(&p, 1, SUCCESS);
	expect_recv(&p, 2, SUCCESS);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_LATE, 2);
	probe_send(&p, UC | SEND_ONLY, PSN(RQ(3), -4096), 8, 4);
	expect_no_cqe(&p);
	probe_send(&p, UC | SEND_ONLY, PSN(RQ(3), -4097), 8,
		   5); /* the sender is ahead by nearly all PSNs */
	expect_recv(&p, 3, SUCCESS);
	probe_send(&p, UC | SEND_ONLY, PSN(RQ(3), -4096), 8, 6);
	expect_recv(&p, 4, SUCCESS);
	probe_close(&p);
}

/* A sender that was connected anew a little behind is heard once it has caught up, and at once when
 * this end is connected anew as well (doc/reference/peers.md "Deviations"). */
static void
restarts(void **state)
{
	enum { BEHIND = 20, SENT = 30 };

	(void)state;
	for (int both = 0; both < 2; both++) {
		struct probe p;
		uint32_t heard = both ? SENT : SENT - BEHIND;

		open_uc(&p, NULL);
		for (uint32_t i = 0; i < BEHIND; i++)
			probe_write(&p, UC | WRITE_ONLY, RQ(i), 0, 8, 8, 1);
		probe_settle(&p);
		if (both)
			probe_reconnect(&p);
		for (uint32_t i = 0; i < heard; i++)
			probe_recv(&p, 64 * i, 64, i);
		for (uint32_t i = 0; i < SENT; i++)
			probe_send(&p, UC | SEND_ONLY, RQ(i), 8, i);
		for (uint32_t i = 0; i < heard; i++) {
			expect_recv(&p, i, SUCCESS);
			check_fill(probe_at(&p, 64 * i), 8, i + SENT - heard, 0);
		}
		expect_no_cqe(&p);
		expect_count(&p, DROP_UC_LATE, SENT - heard);
		probe_close(&p);
	}
}

/* No receive, a receive that is too short, keys that are none: dropped in silence, and the QP lives
 * on. */
static void
drops(void **state)
{
	struct frame f = frame_of(UC | WRITE_ONLY, RQ(5));
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 8, 1);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_NO_RECV, 1);
	probe_write(&p, UC | WRITE_ONLY_IMM, RQ(1), 0, 4, 4, 1);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_NO_RECV, 2);
	probe_recv(&p, 0, MTU + 4, 1);
	probe_send(&p, UC | SEND_FIRST, RQ(2), MTU, 1);
	probe_send(&p, UC | SEND_LAST, RQ(3), 5, 1);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_LENGTH, 1);
	probe_send(&p, UC | SEND_FIRST, RQ(4), MTU - 4, 1); /* not full */
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_LENGTH, 2);
	f.va = PROBE_VA;
	f.length = f.len = 8;
	for (unsigned int i = 0; i < 3; i++) {
		f.rkey = i == 0 ? p.key_local : i == 1 ? p.key_other : 0x12345600;
		probe_put(&p, &f);
		expect_no_cqe(&p);
		expect_count(&p, DROP_UC_ACCESS, i + 1);
	}
	probe_write(&p, UC | WRITE_ONLY, RQ(5), PROBE_LEN - 4, 8, 8, 1);
	expect_no_cqe(&p);
	expect_count(&p, DROP_UC_ACCESS, 4);
	probe_send(&p, UC | SEND_ONLY, RQ(6), 8, 2);
	expect_recv(&p, 1, SUCCESS);
	p.peer.gid[15] ^= 4;
	probe_send(&p, UC | SEND_ONLY, RQ(7), 8, 2);
	expect_no_cqe(&p);
	expect_count(&p, DROP_PEER, 1);
	expect_silence(&p);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);
}

/* Without the right, no WRITE. */
static void
no_right(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.access = -1});
	probe_write(&p, UC | WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	expect_silence(&p);
	expect_count(&p, DROP_UC_ACCESS, 1);
	assert_int_equal(*probe_at(&p, 0), 0);
	probe_close(&p);
}

/* A receive of ours that is bad, or can't be written: completed with an error, and the QP fails,
 * with all that waits. */
static void
bad_receive(void **state)
{
	(void)state;
	for (int how = 0; how < 4;
	     how++) { /* key, memory at once, memory late, memory of the first packet of two */
		struct probe p;

		open_uc(&p, &(struct probe_config){.delay_seed = how >= 2});
		probe_recv(&p, how == 0 ? PROBE_LEN - 4 : 0, 2 * MTU, 1);
		probe_recv(&p, 0, 64, 2);
		if (how)
			probe_fail_op(&p, 1, how == 2);
		if (how < 3) {
			probe_send(&p, UC | SEND_ONLY, RQ(0), 64, 1);
		} else {
			probe_send(&p, UC | SEND_FIRST, RQ(0), MTU, 1);
			probe_send(&p, UC | SEND_LAST, RQ(1), 64, 1);
		}
		expect_recv(&p, 1, LOC_PROT_ERR);
		expect_recv(&p, 2, WR_FLUSH_ERR);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* A receive that a message had begun is flushed when the QP fails, once. */
static void
flushed(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	probe_recv(&p, 0, 4096, 1);
	probe_recv(&p, 0, 4096, 2);
	probe_send(&p, UC | SEND_FIRST, RQ(0), MTU, 1);
	probe_settle(&p);
	probe_state(&p, URN_QPS_ERR);
	expect_recv(&p, 1, WR_FLUSH_ERR);
	expect_recv(&p, 2, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	probe_reconnect(&p);
	probe_recv(&p, 0, 4096, 3);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 8, 1);
	expect_recv(&p, 3, SUCCESS);
	probe_close(&p);
}

/* Moves of the state machine take UC's attributes and no others. */
static void
moves(void **state)
{
	static const uint32_t rc_only[] = {URN_QPM_MIN_RNR_TIMER, URN_QPM_MAX_DEST_RD_ATOMIC,
					   URN_QPM_TIMEOUT, URN_QPM_RETRY_CNT, URN_QPM_QKEY};
	const uint32_t rtr =
		URN_QPM_STATE | URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN;
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.state = URN_QPS_INIT});
	probe_attributes(&p, &a);
	a.state = URN_QPS_RTR;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(probe_modify(&p, rtr | rc_only[i], &a), EINVAL);
	assert_int_equal(probe_modify(&p, rtr & ~(uint32_t)URN_QPM_RQ_PSN, &a), EINVAL);
	a.av.dgid[0] = 0xff;
	assert_int_equal(probe_modify(&p, rtr, &a), EINVAL); /* a group is no peer */
	probe_attributes(&p, &a);
	a.state = URN_QPS_RTR;
	assert_int_equal(probe_modify(&p, rtr, &a), 0);
	a.state = URN_QPS_RTS;
	assert_int_equal(probe_modify(&p, URN_QPM_STATE | URN_QPM_SQ_PSN | URN_QPM_TIMEOUT, &a),
			 EINVAL);
	assert_int_equal(probe_modify(&p, URN_QPM_STATE | URN_QPM_SQ_PSN, &a), 0);
	urn_qp_query(p.qp, &a);
	assert_int_equal(a.rq_psn, PROBE_RQ_PSN);
	assert_int_equal(a.sq_psn, PROBE_SQ_PSN);
	assert_true(urn_qp_offered(p.tp, URN_QPT_UC));
	probe_close(&p);
}

/* ---- bounds */

enum { HOARD = 100 };

/* Queue pairs of a client, and their receive queues. */
struct hoarder {
	struct urn_tp_share share;
	struct urn_qp *qp[HOARD];
	struct urn_abi_wq *sq, *rq[HOARD];
};

/* Make a queue pair with one receive, to which a message comes that never ends. */
static void
hoard_one(struct probe *p, struct hoarder *h, unsigned int i)
{
	struct urn_qp_config cfg = {.type = URN_QPT_UC,
				    .pd = p->pd,
				    .send_cq = &p->scq,
				    .recv_cq = &p->rcq,
				    .sq = bare_sq(h->sq, 4, 1, 0),
				    .share = &h->share};
	struct frame f = frame_of(UC | SEND_FIRST, RQ(0));
	struct urn_abi_rwqe *w;
	struct urn_abi_qp_attr a;
	char why[160];

	h->rq[i] = bare_wq(4, urn_abi_rq_stride(1));
	assert_non_null(h->rq[i]);
	cfg.rq = bare_rq(h->rq[i], 4, 1);
	assert_int_equal(urn_qp_create(p->tp, &cfg, &h->qp[i]), 0);
	probe_attributes(p, &a);
	for (a.state = URN_QPS_INIT; a.state <= URN_QPS_RTR; a.state++)
		assert_int_equal(urn_qp_modify(p->tp, h->qp[i],
					       URN_QPM_STATE | bare_qp_mask(URN_QPT_UC, a.state),
					       &a, why, sizeof(why)),
				 0);
	w = bare_slot(h->rq[i], 0, 4, urn_abi_rq_stride(1));
	w->num_sge = 1;
	*(struct urn_abi_sge *)(void *)(w + 1) = (struct urn_abi_sge){PROBE_VA, p->key, 2 * MTU};
	atomic_store(&h->rq[i]->prod, 1);
	f.dqpn = h->qp[i]->qpn;
	f.len = MTU;
	probe_put(p, &f);
	probe_turn(p, 1000);
}

/* A client with receives for messages that never end holds most of the pool, and never the part of
 * another. */
static void
unended(void **state)
{
	struct hoarder h = {0};
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.work = 64, .max_qp = HOARD + 2});
	h.sq = bare_wq(4, urn_abi_sq_stride(1, 0));
	assert_non_null(h.sq);
	for (unsigned int i = 0; i < HOARD; i++)
		hoard_one(&p, &h, i);
	assert_in_range(h.share.recv, HOARD / 3, HOARD - 20);
	expect_count(&p, DROP_UC_NO_RECV, HOARD - h.share.recv);
	for (unsigned int n = 0; n < 20; n++) {
		probe_recv(&p, 0, MTU, n);
		probe_send(&p, UC | SEND_ONLY, RQ(n), 64, n);
		expect_recv(&p, n, SUCCESS);
	}
	for (unsigned int i = 0; i < HOARD; i++) {
		assert_true(bare_qp_stop(p.tp, h.qp[i]));
		urn_qp_destroy(p.tp, h.qp[i]);
		free(h.rq[i]);
	}
	free(h.sq);
	assert_int_equal(h.share.recv, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends),	cmocka_unit_test(opcodes),
		cmocka_unit_test(refuses),	cmocka_unit_test(unreadable),
		cmocka_unit_test(no_neighbour), cmocka_unit_test(receives),
		cmocka_unit_test(gaps),		cmocka_unit_test(wrong_order),
		cmocka_unit_test(late),		cmocka_unit_test(restarts),
		cmocka_unit_test(drops),	cmocka_unit_test(no_right),
		cmocka_unit_test(bad_receive),	cmocka_unit_test(flushed),
		cmocka_unit_test(moves),	cmocka_unit_test(unended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
