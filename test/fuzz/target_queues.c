/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that writes any bytes to the memory it shares with the dataplane: indexes,
 * requests, receives, completion queues, doorbells. The program's QPs are connected to themselves
 * and each other, so that requests have a destination. In the same dataplane two other
 * programs move bytes all the while.
 *
 * Invariants: the other two are not disturbed; no byte outside the program's own region
 * is written or sent; when the program goes, all its objects go; no packet buffer is
 * lost.
 *
 * Input: a byte for the dataplane's configuration, then steps: a byte for the kind, and
 * its bytes.
 */
#include "whole.h"

#include <string.h>

enum {
	STEPS = 96,
	QPS = 4,
	CQS = 2,
	SLOTS = 8,
	SGES = 3,
	INLINE = 64,
	CQES = 16,
	BOTH = 3,
	OTHERS_EVERY = 16,
};

/* A QP as its program knows it. */
struct wild_qp {
	uint32_t qpn, db, engine;
	uint64_t sq, rq; /* offsets in the area; rq 0: none */
	uint32_t sq_stride, rq_stride, sq_entries, rq_entries;
};

struct wild {
	struct whole w;
	struct urn_abi_channel *ch;
	uint8_t *area;
	struct urn_abi_device info;
	uint32_t pd, key, window, ah;
	uint32_t cq_handle[CQS];
	uint64_t cq[CQS], cq_bytes, srq;
	uint32_t srq_handle, srq_stride, srq_entries;
	struct wild_qp qp[QPS];
	struct whole_end pair[2];
	uint8_t turn; /* number of the others' transfers */
};

static struct wild wild;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	whole_init();
	return 0;
}

/* ---- control calls, without mistakes */

static struct urn_abi_rep
call(struct wild *x, const struct urn_abi_req *req)
{
	struct urn_abi_rep rep;

	x->ch->call(x->ch->ctx, req, &rep);
	if (rep.err)
		fuzz_fail("control call %u: %s", req->op, rep.why);
	return rep;
}

static void
open_queues(struct wild *x)
{
	struct urn_abi_req cq = {.op = URN_CTL_CREATE_CQ,
				 .create_cq = {.cqe = CQES, .channel_fd = -1}};
	struct urn_abi_req srq = {.op = URN_CTL_CREATE_SRQ,
				  .create_srq = {.pd = x->pd, .max_wr = SLOTS, .max_sge = SGES}};
	struct urn_abi_rep rep;

	for (uint32_t i = 0; i < CQS; i++) {
		cq.create_cq.comp_vector = i;
		rep = call(x, &cq);
		x->cq_handle[i] = rep.handle;
		x->cq[i] = rep.queue.off;
		x->cq_bytes = rep.queue.entries * sizeof(struct urn_abi_cqe) + URN_ABI_CQ_SLOTS;
	}
	rep = call(x, &srq);
	x->srq_handle = rep.handle;
	x->srq = rep.queue.off;
	x->srq_stride = rep.queue.stride;
	x->srq_entries = rep.queue.entries;
}

static void
open_memory(struct wild *x)
{
	struct urn_abi_req hello = {.op = URN_CTL_HELLO, .hello = {URN_ABI_VERSION}};
	struct urn_abi_req pd = {.op = URN_CTL_ALLOC_PD}, mw = {.op = URN_CTL_ALLOC_MW};
	struct urn_abi_req mr = {.op = URN_CTL_REG_MR}, ah = {.op = URN_CTL_CREATE_AH};

	x->info = call(x, &hello).device;
	x->pd = call(x, &pd).handle;
	mr.reg_mr.pd = mw.alloc_mw.pd = ah.create_ah.pd = x->pd;
	mr.reg_mr.access = URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE |
			   URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND;
	mr.reg_mr.addr = (uintptr_t)(x->w.ram + NODE_GUARD);
	mr.reg_mr.length = NODE_LEN;
	mr.reg_mr.iova = NODE_VA;
	x->key = call(x, &mr).mr.lkey;
	mw.alloc_mw.type = 2;
	x->window = call(x, &mw).mr.rkey;
	ah.create_ah.av.port_num = 1;
	ah.create_ah.av.sgid_index = 1;
	memcpy(ah.create_ah.av.dgid, x->w.a->gid[1], 16);
	x->ah = call(x, &ah).handle;
}

static void
create_qp(struct wild *x, unsigned int i)
{
	struct urn_abi_req req = {
		.op = URN_CTL_CREATE_QP,
		.create_qp =
			{
				.pd = x->pd,
				.type = i == 3 ? URN_QPT_UD : URN_QPT_RC,
				.send_cq = x->cq_handle[i & 1],
				.recv_cq = x->cq_handle[i == 1],
				.srq = i == 2 ? x->srq_handle : 0,
				.cap = {SLOTS, SLOTS, SGES, SGES, INLINE},
			},
	};
	struct urn_abi_rep rep = call(x, &req);

	x->qp[i] = (struct wild_qp){
		.qpn = rep.handle ? rep.handle : 0,
		.db = rep.qp.db,
		.engine = rep.qp.engine,
		.sq = rep.qp.sq_off,
		.rq = i == 2 ? 0 : rep.qp.rq_off,
		.sq_stride = rep.qp.sq_stride,
		.rq_stride = rep.qp.rq_stride,
		.sq_entries = rep.qp.sq_entries,
		.rq_entries = rep.qp.rq_entries,
	};
}

/* Connect a QP to itself; the second and third QP, which has the SRQ, to each other. */
static void
connect_qp(struct wild *x, unsigned int i)
{
	static const uint8_t to[QPS] = {0, 2, 1, 3};
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = x->qp[i].qpn};
	struct urn_abi_qp_attr *a = &req.modify_qp.attr;
	bool ud = i == 3;

	*a = (struct urn_abi_qp_attr){
		.port_num = 1,
		.path_mtu = 3,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.rnr_retry = 2,
		.qkey = NODE_QKEY,
		.dest_qpn = x->qp[to[i]].qpn,
		.access =
			URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC,
		.av = {.sgid_index = 1, .port_num = 1},
	};
	memcpy(a->av.dgid, x->w.a->gid[1], 16);
	for (a->state = URN_QPS_INIT; a->state <= URN_QPS_RTS; a->state++) {
		static const uint32_t rc[] = {
			[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
			[URN_QPS_RTR] = URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN |
					URN_QPM_RQ_PSN | URN_QPM_MAX_DEST_RD_ATOMIC |
					URN_QPM_MIN_RNR_TIMER,
			[URN_QPS_RTS] = URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
					URN_QPM_SQ_PSN | URN_QPM_MAX_RD_ATOMIC,
		};
		static const uint32_t dg[] = {
			[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY,
			[URN_QPS_RTR] = 0,
			[URN_QPS_RTS] = URN_QPM_SQ_PSN,
		};

		req.modify_qp.mask = URN_QPM_STATE | (ud ? dg : rc)[a->state];
		call(x, &req);
	}
}

/* Make a QP anew: all its work in progress ends. */
static void
again(struct wild *x, unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = x->qp[i].qpn};

	req.modify_qp.mask = URN_QPM_STATE;
	req.modify_qp.attr.state = URN_QPS_RESET;
	call(x, &req);
	connect_qp(x, i);
}

static void
wild_open(struct wild *x, uint8_t how)
{
	const struct node_config cfg = {
		.mtu = 1024, .seed = 7, .late = how & 1, .poor = how & 2, .window = 64};
	struct urn_err err = {""};

	memset(x, 0, sizeof(*x));
	whole_open_bare(&x->w, &cfg, how & 4);
	x->ch = urn_dp_attach(x->w.dp, 0, &err);
	if (!x->ch)
		fuzz_fail("attach: %s", err.text);
	x->area = x->ch->area;
	open_memory(x);
	open_queues(x);
	for (unsigned int i = 0; i < QPS; i++)
		create_qp(x, i);
	for (unsigned int i = 0; i < QPS; i++)
		connect_qp(x, i);
	whole_pair_open(&x->w, x->pair, 0, 0);
}

/* ---- writes of the program */

static void *
at(struct wild *x, uint64_t off)
{
	return x->area + off;
}

static void
ring(struct wild *x, const struct wild_qp *q)
{
	(void)urn_abi_db_ring(at(x, x->info.db_off[q->engine]), q->db);
}

/* A valid request, but for the input's changes. */
static void
post(struct wild *x, struct fuzz_in *in)
{
	static const uint8_t ops[] = {URN_WR_SEND,     URN_WR_RDMA_WRITE,     URN_WR_RDMA_READ,
				      URN_WR_SEND_IMM, URN_WR_RDMA_WRITE_IMM, URN_WR_FETCH_ADD,
				      URN_WR_CMP_SWAP, URN_WR_BIND_MW,	      URN_WR_LOCAL_INV,
				      URN_WR_SEND_INV, URN_WR_BIND_MW1,	      URN_WR_SEND};
	uint8_t sel = fuzz_u8(in), op = fuzz_u8(in), flags = fuzz_u8(in), sges = fuzz_u8(in),
		spoil = fuzz_u8(in);
	struct wild_qp *q = &x->qp[sel % QPS];
	struct urn_abi_wq *wq = at(x, q->sq);
	uint32_t prod = atomic_load(&wq->prod);
	struct urn_abi_swqe *s =
		at(x, q->sq + URN_ABI_WQ_SLOTS + (prod & (q->sq_entries - 1)) * q->sq_stride);
	struct urn_abi_sge *sge = (void *)(s + 1);
	uint16_t len = fuzz_u16(in), off = fuzz_u16(in);

	memset(s, 0, q->sq_stride);
	s->wr_id = prod;
	s->opcode = op < 0xe0 ? ops[op % sizeof(ops)] : op;
	s->flags = flags < 0xe0 ? flags & 0xb : flags;
	s->num_sge = sges < 0xe0 ? sges % (SGES + 1) : sges;
	s->imm = x->window;
	for (unsigned int i = 0; i < SGES; i++)
		sge[i] = (struct urn_abi_sge){NODE_VA + (off & 0x7fff), x->key,
					      s->num_sge > 1 ? len & 0xff : len & 0x1fff};
	if (q == &x->qp[3]) {
		s->ud.ah = x->ah;
		s->ud.remote_qpn = q->qpn;
		s->ud.remote_qkey = NODE_QKEY;
	} else if (s->opcode == URN_WR_BIND_MW || s->opcode == URN_WR_BIND_MW1) {
		s->bind.addr = NODE_VA;
		s->bind.length = len;
		s->bind.mw_rkey = x->window;
		s->bind.new_rkey = x->window + 1;
		s->bind.mr_lkey = x->key;
		s->bind.access = URN_ACCESS_REMOTE_WRITE;
	} else {
		s->rdma.remote_addr = NODE_VA + 0x2000 + (off & 0xfff);
		s->rdma.rkey = x->key;
		s->rdma.swap = off;
	}
	if (s->flags & URN_WRF_INLINE)
		s->rdma.inline_len = len < 0xe000 ? len & 63 : len;
	for (; spoil >= 0xe0 && spoil & 3; spoil--) {
		uint8_t where = fuzz_u8(in);

		((uint8_t *)s)[where % q->sq_stride] = fuzz_u8(in);
	}
	atomic_store(&wq->prod, prod + 1);
	if (!(sel & 0x80))
		ring(x, q);
}

static void
receive(struct wild *x, struct fuzz_in *in)
{
	uint8_t sel = fuzz_u8(in), sges = fuzz_u8(in);
	uint16_t len = fuzz_u16(in);
	struct wild_qp *q = &x->qp[sel % QPS];
	uint64_t off = q->rq ? q->rq : x->srq;
	uint32_t stride = q->rq ? q->rq_stride : x->srq_stride,
		 entries = q->rq ? q->rq_entries : x->srq_entries;
	struct urn_abi_wq *wq = at(x, off);
	uint32_t prod = atomic_load(&wq->prod);
	struct urn_abi_rwqe *r = at(x, off + URN_ABI_WQ_SLOTS + (prod & (entries - 1)) * stride);
	struct urn_abi_sge *sge = (void *)(r + 1);

	r->wr_id = prod;
	r->num_sge = sges < 0xf0 ? sges % (SGES + 1) : sges * 0x01010101u;
	for (unsigned int i = 0; i < SGES; i++)
		sge[i] = (struct urn_abi_sge){NODE_VA + 0x4000, x->key, len};
	atomic_store(&wq->prod, prod + 1);
}

/* Write an index or another word of a queue's head: its value, or one near it. */
static void
lie(struct wild *x, struct fuzz_in *in)
{
	uint8_t sel = fuzz_u8(in), what = fuzz_u8(in);
	uint16_t v = fuzz_u16(in);
	const struct wild_qp *q = &x->qp[sel % QPS];
	const uint64_t heads[] = {q->sq, q->rq ? q->rq : x->srq, x->cq[sel & 1], x->srq};
	_Atomic uint32_t *word = at(x, heads[what & 3] + ((what & 4)	    ? 0
							  : (what >> 3 & 1) ? 64
									    : 4));
	uint32_t is = atomic_load(word);

	atomic_store(word, what & 0x80 ? v * 0x00010001u : is + (uint32_t)(int16_t)v);
	if (what & 0x40)
		ring(x, q);
}

/* Write bytes anywhere: in queues, or in the doorbells. */
static void
scribble(struct wild *x, struct fuzz_in *in)
{
	uint8_t where = fuzz_u8(in), n = fuzz_u8(in) & 63;
	uint32_t off = fuzz_u16(in), span;
	const struct wild_qp *q = &x->qp[where % QPS];
	uint64_t base;

	switch (where >> 2 & 7) {
	case 0:
		base = q->sq;
		span = URN_ABI_WQ_SLOTS + q->sq_entries * q->sq_stride;
		break;
	case 1:
		base = q->rq ? q->rq : x->srq;
		span = URN_ABI_WQ_SLOTS + SLOTS * 32;
		break;
	case 2:
		base = x->cq[where & 1];
		span = (uint32_t)x->cq_bytes;
		break;
	case 3:
		base = x->srq;
		span = URN_ABI_WQ_SLOTS + x->srq_entries * x->srq_stride;
		break;
	case 4:
	case 5:
		base = x->info.db_off[where & 1];
		span = 1024;
		break;
	default:
		base = x->info.db_off[where & 1];
		span = sizeof(struct urn_abi_db);
	}
	off %= span;
	for (; n && off < span; n--, off++)
		((uint8_t *)at(x, base))[off] = fuzz_u8(in);
}

/* Ring all doorbells at once, of QPs that exist and others. */
static void
flood(struct wild *x, uint8_t what)
{
	struct urn_abi_db *db = at(x, x->info.db_off[what & 1]);

	for (unsigned int i = 0; i < (what & 2 ? URN_ABI_DB_WORDS : 2u); i++)
		atomic_store(&db->leaf[i], ~0ull);
	for (unsigned int i = 0; i < URN_ABI_DB_TOPS; i++)
		atomic_store(&db->top[i], ~0ull);
}

/* ---- the other programs */

static void
others_go_on(struct wild *x)
{
	unsigned int from = x->turn++ & 1;

	if (!whole_pair_transfer(&x->w, &x->pair[from], &x->pair[!from], x->turn))
		fuzz_fail("other programs are disturbed");
}

static void
one_step(struct wild *x, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		post(x, in);
		break;
	case 5:
	case 6:
		receive(x, in);
		break;
	case 7:
	case 8:
		lie(x, in);
		break;
	case 9:
	case 10:
		scribble(x, in);
		break;
	case 11:
		flood(x, what >> 4);
		break;
	case 12:
		again(x, (what >> 4) % QPS);
		break;
	case 13:
		whole_turn(&x->w, 1ull << (what >> 4) * 2, BOTH);
		break;
	default:
		whole_turn(&x->w, 1000, BOTH);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	struct wild *x = &wild;

	wild_open(x, fuzz_u8(&in));
	for (unsigned int i = 0; i < STEPS && fuzz_more(&in); i++) {
		one_step(x, &in);
		if (i % OTHERS_EVERY == OTHERS_EVERY - 1)
			others_go_on(x);
	}
	others_go_on(x);
	x->ch->close(x->ch->ctx);
	others_go_on(x);
	whole_pair_close(x->pair);
	whole_close_bare(&x->w);
	return 0;
}
