/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the node, and its program's calls. Turns of the node: node_wire.c; checks: node_check.c. */
#include "node.h"
#include "node_check.h"

#include "common/test_asan.h"
#include "common/test_eal.h"
#include "packet/bare.h"
#include "packet/worker.h"
#include "wire/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RAM = 3 * NODE_GUARD + NODE_LEN + NODE_SHUT, SGES = 3, INLINE = 64, FILL = 0xc5 };

static struct rte_mempool *plenty, *few;
static const struct frame_addr ends[2][3] = {
	{{{2, 0, 0, 0, 0, 1}, {[10] = 0xff, 0xff, 10, 0, 0, 1}},
	 {{2, 0, 0, 0, 0, 2}, {[10] = 0xff, 0xff, 10, 0, 0, 2}},
	 {{2, 0, 0, 0, 0, 3}, {[10] = 0xff, 0xff, 10, 0, 0, 3}}},
	{{{2, 0, 0, 0, 0, 1}, {0, 0x64, 0xff, 0x9b, [15] = 1}},
	 {{2, 0, 0, 0, 0, 2}, {0, 0x64, 0xff, 0x9b, [15] = 2}},
	 {{2, 0, 0, 0, 0, 3}, {0, 0x64, 0xff, 0x9b, [15] = 3}}},
};

static struct rte_mempool *
make_pool(const char *name, unsigned int mbufs)
{
	struct rte_mempool *p = rte_pktmbuf_pool_create(
		name, mbufs, 0, TEST_EAL_PRIV, RTE_PKTMBUF_HEADROOM + TEST_EAL_ROOM, SOCKET_ID_ANY);

	fuzz_check(p);
	return p;
}

void
node_init(void)
{
	fuzz_eal();
	plenty = make_pool("plenty", 1023);
	few = make_pool("few", 40);
}

/* ---- opening */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	const struct node *n = ctx;

	(void)gid;
	memcpy(mac, n->peer.mac, 6);
	return n->neigh;
}

static uint32_t
learnt_features(void *ctx, const uint8_t gid[16])
{
	const struct node *n = ctx;

	(void)gid;
	return n->cfg.selective ? URN_LINK_F_SACK : 0;
}

static void
give_cqe(void *ctx, const struct urn_tp_xcqe *x)
{
	struct node *n = ctx;

	fuzz_check(x->cq == &n->rcq && n->far_n < NODE_CQES);
	n->far[n->far_n++] = *x;
}

void
node_link(struct node *n, bool selective)
{
	node_turn(n, 0);
	n->cfg.selective = selective;
	urn_tp_peer_learned(n->tp, n->peer.gid, selective ? URN_LINK_F_SACK : 0);
}

static struct urn_ah *
find_ah(void *ctx, uint32_t id)
{
	struct node *n = ctx;

	return id == 1 ? &n->ah : NULL;
}

static uint8_t *
region(struct node *n)
{
	return n->ram + NODE_GUARD;
}

const uint8_t *
node_at(const struct node *n, uint64_t va)
{
	uint64_t off = va - NODE_VA, shut = va - NODE_SHUT_VA;

	return off < NODE_LEN	  ? n->ram + NODE_GUARD + off
	       : shut < NODE_SHUT ? n->ram + 2 * NODE_GUARD + NODE_LEN + shut
				  : n->ram;
}

static uint32_t
reg(struct node *n, uint32_t pd, void *base, uint64_t len, uint64_t va, uint32_t access)
{
	uint32_t key;

	fuzz_check(urn_mem_reg_mr(n->mem, pd, base, len, va, access, &key) == 0);
	return key;
}

/* Register the region, or other parts of its memory. */
static uint32_t
reg_here(struct node *n, uint32_t access)
{
	char why[160] = "";
	uint32_t key;

	if (!n->space)
		return reg(n, n->pd, region(n), NODE_LEN, NODE_VA, access);
	if (urn_mem_add_foreign(n->mem, n->pd, n->space, (uintptr_t)region(n), NODE_LEN, NODE_VA,
				access, &key, why, sizeof(why)) != 0)
		fuzz_fail("a foreign region: %s", why);
	return key;
}

/* Rights of the region: all, and a type 2 window on its first half. */
static void
reg_region(struct node *n)
{
	const uint32_t remote = URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC;
	struct urn_mem_binding b = {.windows = n->q[0].qp ? &n->q[0].qp->windows : NULL};
	uint32_t fresh;

	n->key = reg_here(n, URN_ACCESS_LOCAL_WRITE | remote | URN_ACCESS_MW_BIND);
	n->key_local = reg_here(n, URN_ACCESS_LOCAL_WRITE);
	fuzz_check(urn_mem_alloc_mw(n->mem, n->pd, 2, &n->window) == 0);
	fresh = n->window + 1;
	if (n->q[0].qp &&
	    urn_mem_bind(n->mem, 2, n->window, fresh, n->key, NODE_VA, NODE_LEN / 2, remote, n->pd,
			 n->q[0].qp->qpn, &b) == URN_MEM_OK)
		n->window = fresh;
}

static void
open_memory(struct node *n)
{
	struct urn_memx_config x = {
		.pending = 512,
		.delay_seed = n->cfg.late || n->cfg.failing ? n->cfg.seed : 0,
		.delay_percent = n->cfg.late ? 60 : 1,
		.delay_polls = 6,
		.fail_per_million = n->cfg.failing ? 20000 : 0,
		.foreign = NODE_GATE,
		.max_pds = 4,
	};
	uint8_t *shut;

	n->mem = urn_mem_create(256, x.max_pds);
	n->pace = NODE_PACE;
	if (n->cfg.foreign)
		fuzz_check((n->space = worker_open()) != NULL);
	n->memx = urn_memx_create(&x);
	n->ram = aligned_alloc(64, RAM);
	fuzz_check(n->mem && n->memx && n->ram);
	memset(n->ram, FILL, RAM);
	for (uint32_t i = 0; i < NODE_LEN; i++) /* no two packets have the same bytes */
		region(n)[i] = (uint8_t)(i ^ i >> 8 ^ i >> 3);
	fuzz_check(urn_mem_alloc_pd(n->mem, &n->pd) == 0);
	fuzz_check(urn_mem_alloc_pd(n->mem, &n->other_pd) == 0);
	shut = region(n) + NODE_LEN + NODE_GUARD;
	n->key_shut = reg(n, n->pd, shut, NODE_SHUT, NODE_SHUT_VA, URN_ACCESS_REMOTE_READ);
	n->key_other = reg(n, n->other_pd, shut, NODE_SHUT, NODE_VA,
			   URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ);
}

static void
open_tp(struct node *n)
{
	struct urn_tp_config c = {
		.repairs = n->cfg.scarce ? 1 : 8,
		.mem = n->mem,
		.memx = n->memx,
		.pool = n->cfg.poor ? few : plenty,
		.gids = 2,
		.mtu = 4096,
		.icrc = true,
		.max_qp = 16,
		.work = n->cfg.poor ? 12 : 128,
		.window = n->cfg.window,
		.kept = n->cfg.kept,
		.neigh = neigh,
		.neigh_ctx = n,
		.near = node_near,
		.near_ctx = n,
		.features = n->cfg.plain ? 0 : URN_LINK_F_SACK,
		.gsi = true,
		.learn = learnt_features,
		.learn_ctx = n,
		.rto_floor = n->cfg.rto_floor,
		.line = 1250000000, /* 10 Gbit/s */
		.ah = find_ah,
		.ah_ctx = n,
		.give_cqe = give_cqe,
		.give_ctx = n,
	};

	n->pool = c.pool;
	n->self = ends[n->cfg.ipv6][0];
	n->peer = ends[n->cfg.ipv6][1];
	n->other = ends[n->cfg.ipv6][2];
	memcpy(c.mac, n->self.mac, 6);
	memcpy(c.gid[0], ends[0][0].gid, 16);
	memcpy(c.gid[1], ends[1][0].gid, 16);
	n->now = 1000000000;
	n->tp = urn_tp_create(&c, n->now);
	fuzz_check(n->tp);
}

static struct urn_rq
open_rq(void)
{
	struct urn_abi_wq *wq = bare_wq(NODE_SLOTS, urn_abi_rq_stride(SGES));

	fuzz_check(wq);
	return bare_rq(wq, NODE_SLOTS, SGES);
}

/* May fail only when the QP failed by itself while it waited for memory's answers. */
static void
modify(struct node *n, struct node_qp *q, uint8_t state, uint32_t mask)
{
	struct urn_abi_qp_attr a = {
		.state = state,
		.port_num = 1,
		.access =
			URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC,
		.path_mtu = (uint8_t)(__builtin_ctz(n->cfg.mtu) - 7),
		.dest_qpn = q->peer_qpn,
		.rq_psn = NODE_PSN,
		.sq_psn = NODE_PSN,
		.max_rd_atomic = n->cfg.rd_atomic,
		.max_dest_rd_atomic = n->cfg.dest_rd_atomic,
		.min_rnr_timer = 1,
		.timeout = n->cfg.timeout,
		.retry_cnt = n->cfg.retry_cnt,
		.rnr_retry = n->cfg.rnr_retry,
		.qkey = NODE_QKEY,
		.en_sqd_notify = n->cfg.events,
		.av.sgid_index = n->cfg.ipv6,
	};
	char why[160] = "";
	uint8_t before = q->qp->state;
	int rc = EAGAIN;

	memcpy(a.av.dgid, node_is_loop(n, q) ? n->self.gid : n->peer.gid, 16);
	for (int i = 0; rc == EAGAIN; i++) {
		fuzz_check(i < 1000);
		rc = urn_qp_modify(n->tp, q->qp, mask | URN_QPM_STATE, &a, why, sizeof(why));
		if (rc == EAGAIN)
			node_poll_memory(n);
	}
	if (rc != 0 && q->qp->state == before)
		fuzz_fail("QP to state %u: %s", state, why);
}

/* Connect a QP: from RESET to state `to`, RTR or RTS; from RTR to RTS. */
static void
connect_qp(struct node *n, struct node_qp *q, uint8_t to)
{
	for (uint8_t s = q->qp->state + 1; s <= to; s++)
		modify(n, q, s, bare_qp_mask(q->qp->type, s));
}

static void
open_qp(struct node *n, unsigned int i)
{
	struct node_qp *q = &n->q[i];
	struct urn_qp_config c = {
		.type = i == 2		      ? URN_QPT_UD
			: i == 1 && n->cfg.uc ? URN_QPT_UC
					      : URN_QPT_RC,
		.pd = n->pd,
		.send_cq = &n->scq,
		.recv_cq = &n->rcq,
	};

	if (n->cfg.srq && i > 0 && c.type != URN_QPT_UC)
		c.srq = &n->srq;
	q->sq = bare_wq(NODE_SLOTS, urn_abi_sq_stride(SGES, INLINE));
	fuzz_check(q->sq);
	c.sq = bare_sq(q->sq, NODE_SLOTS, SGES, INLINE);
	if (!c.srq) {
		c.rq = open_rq();
		q->rq = c.rq.hdr;
	}
	fuzz_check(urn_qp_create(n->tp, &c, &q->qp) == 0);
	q->peer_qpn = node_is_loop(n, q) ? q->qp->qpn : NODE_PEER_QPN + i;
	connect_qp(n, q, URN_QPS_RTS);
}

void
node_open(struct node *n, const struct node_config *cfg)
{
	memset(n, 0, sizeof(*n));
	n->cfg = *cfg;
	open_memory(n);
	open_tp(n);
	node_count_on(n);
	fuzz_check(bare_cq(&n->scq, NODE_CQES) && bare_cq(&n->rcq, NODE_CQES));
	/* The engine writes to channels, not the transport. */
	n->scq.channel_fd = n->rcq.channel_fd = n->cfg.events ? 0 : -1;
	n->rcq.engine = n->cfg.far;
	if (n->cfg.far)
		urn_cq_share(&n->rcq);
	n->srq.rq = open_rq();
	n->srq.pd = n->pd;
	n->srq.limit = n->cfg.events ? 3 : 0;
	bare_ah(&n->ah, &n->self, &n->peer, n->pd);
	n->ah.ready = !n->cfg.unresolved;
	n->ah.mac_until = UINT64_MAX;
	for (unsigned int i = 0; i < NODE_QPS; i++)
		open_qp(n, i);
	reg_region(n);
}

/* ---- closing */

/* In the error state all that was posted completes, in bounded time. */
static void
come_to_rest(struct node *n)
{
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		modify(n, &n->q[i], URN_QPS_ERR, 0);
		urn_tp_doorbell(n->tp, n->q[i].qp);
	}
	for (unsigned int turns = 0, calm = 0; calm < 3; turns++) {
		if (turns == 2000)
			fuzz_fail("QPs in the error state do not come to rest");
		node_turn(n, 1000000);
		calm = node_at_rest(n) ? calm + 1 : 0;
	}
}

static void
close_qp(struct node *n, struct node_qp *q)
{
	urn_qp_stop(n->tp, q->qp);
	for (int i = 0; !urn_qp_quiet(q->qp); i++) {
		fuzz_check(i < 1000);
		node_poll_memory(n);
	}
	urn_qp_destroy(n->tp, q->qp);
	free(q->sq);
	free(q->rq);
}

static bool
filled(const uint8_t *p, size_t len)
{
	return p[0] == FILL && memcmp(p, p + 1, len - 1) == 0;
}

/* No gate stays closed, and the space goes with the last region. */
static void
close_space(struct node *n)
{
	fuzz_check(urn_memx_gate(n->memx)->closed == 0 && urn_memx_gate(n->memx)->users == 0);
	if (!n->space)
		return;
	node_dereg(n);
	ASAN_UNPOISON_MEMORY_REGION(region(n), NODE_LEN);
	worker_close(n->space);
}

void
node_close(struct node *n)
{
	node_turn(n, 0);
	n->neigh = 0;
	n->pace = NODE_PACE;
	come_to_rest(n);
	node_check_end(n);
	for (unsigned int i = 0; i < NODE_QPS; i++)
		close_qp(n, &n->q[i]);
	fuzz_check(n->tp->kept == 0);
	urn_tp_destroy(n->tp);
	fuzz_check(urn_memx_holds(n->memx, NULL) == 0);
	ASAN_UNPOISON_MEMORY_REGION(region(n), NODE_LEN);
	if (!filled(n->ram, NODE_GUARD) ||
	    !filled(region(n) + NODE_LEN, RAM - NODE_GUARD - NODE_LEN))
		fuzz_fail("memory that nobody may write was written");
	if (!rte_mempool_full(n->pool) || !rte_mempool_full(test_eal_pool()))
		fuzz_fail("%u and %u packet buffers are lost (or more came back than went)",
			  rte_mempool_in_use_count(n->pool),
			  rte_mempool_in_use_count(test_eal_pool()));
	close_space(n);
	urn_memx_destroy(n->memx);
	urn_mem_destroy(n->mem);
	free(n->scq.hdr);
	free(n->rcq.hdr);
	free(n->srq.rq.hdr);
	free(n->ram);
}

/* ---- the program */

static bool
full(const struct urn_abi_wq *wq)
{
	return atomic_load(&wq->prod) - atomic_load(&wq->cons) >= NODE_SLOTS;
}

void
node_post(struct node *n, unsigned int i, const struct node_send *s)
{
	struct node_qp *q = &n->q[i];
	uint32_t stride = urn_abi_sq_stride(SGES, INLINE);
	struct urn_abi_swqe *w = bare_slot(q->sq, atomic_load(&q->sq->prod), NODE_SLOTS, stride);
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint64_t bit = 1ull << q->sent % NODE_SLOTS;

	if (full(q->sq) || q->sent - q->sent_seen >= NODE_SLOTS)
		return;
	memset(w, 0, stride);
	w->wr_id = (uint64_t)i << 32 | q->sent++;
	w->opcode = s->op;
	w->flags = s->flags;
	w->num_sge = s->num_sge;
	w->imm = n->window;
	w->rdma.remote_addr = s->remote;
	w->rdma.rkey = s->rkey;
	w->rdma.inline_len = s->flags & URN_WRF_INLINE ? s->len : 0;
	if (i == 2) {
		w->ud.ah = 1 + (s->rkey == 0);
		w->ud.remote_qpn = q->peer_qpn;
		w->ud.remote_qkey = NODE_QKEY;
	} else if (s->op == URN_WR_BIND_MW) {
		w->bind.addr = s->addr;
		w->bind.length = s->len;
		w->bind.mw_rkey = n->window;
		w->bind.new_rkey = n->window + 1;
		w->bind.mr_lkey = s->lkey;
		w->bind.access = URN_ACCESS_REMOTE_WRITE;
	} else if (s->op == URN_WR_CMP_SWAP) {
		w->rdma.compare_add = s->len & 1;
		w->rdma.swap = s->len;
	}
	if (!(s->flags & URN_WRF_INLINE))
		for (unsigned int k = 0; k < SGES; k++)
			sge[k] = (struct urn_abi_sge){s->addr + k * 64, s->lkey,
						      s->num_sge > 1 && k == 0 ? 7 : s->len};
	q->quiet = s->flags & URN_WRF_SIGNALED ? q->quiet & ~bit : q->quiet | bit;
	atomic_fetch_add(&q->sq->prod, 1);
	if (s->ring)
		urn_tp_doorbell(n->tp, q->qp);
}

void
node_recv(struct node *n, unsigned int i, uint64_t addr, uint32_t lkey, uint32_t len, bool broken)
{
	struct node_qp *q = &n->q[i];
	bool shared = q->qp->srq != NULL;
	struct urn_abi_wq *wq = shared ? n->srq.rq.hdr : q->rq;
	struct urn_abi_rwqe *w = bare_slot(wq, atomic_load(&wq->prod), NODE_SLOTS, urn_abi_rq_stride(SGES));
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint32_t half = len / 3;

	if (full(wq) || (shared ? n->srq_posted == sizeof(n->srq_got)
				: q->recvs - q->recvs_seen >= NODE_SLOTS))
		return;
	w->wr_id = shared ? n->srq_posted++ : (uint64_t)i << 32 | q->recvs++;
	w->num_sge = broken ? SGES + 1 : len % 5 == 4 ? 1 : 2;
	sge[0] = (struct urn_abi_sge){addr, lkey, half};
	sge[1] = (struct urn_abi_sge){addr + half, lkey, len - half};
	atomic_fetch_add(&wq->prod, 1);
	if (atomic_load(&wq->ring))
		urn_tp_doorbell(n->tp, q->qp);
}

/* Without a way through the error state none of the QP's requests completes any more. */
static void
reset(struct node *n, struct node_qp *q, uint8_t to)
{
	modify(n, q, URN_QPS_RESET, 0);
	node_forget(n, q);
	connect_qp(n, q, to);
}

void
node_state(struct node *n, unsigned int i, uint8_t state)
{
	struct node_qp *q = &n->q[i];
	uint8_t now;

	node_turn(n, 0);
	now = q->qp->state;
	if (state == URN_QPS_RESET)
		reset(n, q, URN_QPS_RTS);
	else if (state == URN_QPS_RTR)
		reset(n, q, URN_QPS_RTR);
	else if (state == URN_QPS_RTS && now == URN_QPS_RTR)
		connect_qp(n, q, URN_QPS_RTS);
	else if (state == URN_QPS_ERR || (state == URN_QPS_SQD && now == URN_QPS_RTS) ||
		 (state == URN_QPS_RTS && (now == URN_QPS_SQD || now == URN_QPS_SQE)))
		modify(n, q, state, state == URN_QPS_SQD ? URN_QPM_EN_SQD_NOTIFY : 0);
}

/* ---- memory that goes and comes */

void
node_pace(struct node *n, uint8_t ops, bool fails)
{
	if (n->space && fails)
		worker_do(n->space, 1, true);
	n->pace = ops;
}

unsigned int
node_poll_memory(struct node *n)
{
	if (n->space)
		worker_do(n->space, NODE_PACE, false);
	return urn_tp_poll_memory(n->tp);
}

uint32_t
node_key(const struct node *n, unsigned int k)
{
	const uint32_t keys[NODE_KEYS] = {n->key,	n->key_local, n->key_shut,
					  n->key_other, n->window,    0};

	return k < NODE_KEYS ? keys[k] : k * 0x01010101u;
}

/*
 * A request that takes a window away counts on its region until the operations that the
 * window let in are done: the region can't go before, and a program gets EBUSY.
 */
static struct urn_region *
kill_key(struct node *n, uint32_t key)
{
	uint8_t pace = n->pace;
	struct urn_region *r;
	int rc;

	n->pace = NODE_PACE;
	for (int i = 0; (rc = urn_mem_kill_mr(n->mem, key, &r)) == EBUSY; i++) {
		fuzz_check(i < 1000);
		node_turn(n, 1000);
	}
	n->pace = pace;
	fuzz_check(rc == 0);
	return r;
}

static void
take_key(struct node *n, uint32_t *key)
{
	struct urn_region *r;

	r = kill_key(n, *key);
	for (int i = 0; urn_memx_holds(n->memx, r); i++) {
		fuzz_check(i < 1000);
		node_poll_memory(n);
	}
	urn_mem_free_mr(n->mem, r);
	*key = 0;
}

void
node_dereg(struct node *n)
{
	struct urn_mem_dead dead;

	if (!n->key)
		return;
	fuzz_check(urn_mem_kill_mw(n->mem, n->window, &dead) == 0);
	if (dead.qpn)
		urn_mem_unlist_mw(n->mem, &dead, &urn_tp_qp(n->tp, dead.qpn)->windows);
	urn_mem_free_mw(n->mem, &dead);
	take_key(n, &n->key);
	take_key(n, &n->key_local);
	/* From here on the region may be unmapped: an access to it is a finding. */
	ASAN_POISON_MEMORY_REGION(region(n), NODE_LEN);
}

void
node_rereg(struct node *n)
{
	if (n->key)
		return;
	ASAN_UNPOISON_MEMORY_REGION(region(n), NODE_LEN);
	reg_region(n);
}
