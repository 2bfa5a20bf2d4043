/* SPDX-License-Identifier: BSD-3-Clause */
/* The probe itself: a transport with memory that may fail, its QPs, and their end. */
#include "probe.h"

#include "bare.h"
#include "common/test_eal.h"

#include <stdlib.h>

static const uint8_t node_mac[6] = {0x02, 0, 0, 0, 0, 0x01}, peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};
static const uint8_t v4_gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0};
/* An address whose first byte is 0 is a normal address (RFC 6052). */
static const uint8_t v6_gid[16] = {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0};

/* ---- memory that fails; the linker puts these in front of memory/memx.c (--wrap) */

unsigned int __real_urn_memx_execute(struct urn_memx *x, struct urn_memop *ops, unsigned int n);
unsigned int __wrap_urn_memx_execute(struct urn_memx *x, struct urn_memop *ops, unsigned int n);
unsigned int __real_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max);
unsigned int __wrap_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max);

static struct probe *current;

void
probe_fail_op(struct probe *p, unsigned int nth, bool late)
{
	p->fail_in = nth;
	p->fail_late = late;
}

unsigned int
__wrap_urn_memx_execute(struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	struct probe *p = current;
	unsigned int not_done = 0;

	for (unsigned int i = 0; i < n; i++) {
		bool fails = p->fail_in && --p->fail_in == 0;

		if (fails && !p->fail_late) {
			ops[i].status = URN_MEMOP_FAILED;
			not_done++;
			continue;
		}
		if (fails)
			p->failing = ops[i];
		not_done += __real_urn_memx_execute(x, &ops[i], 1);
	}
	return not_done;
}

unsigned int
__wrap_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max)
{
	struct urn_memop *f = &current->failing;
	unsigned int n = current->hold ? 0 : __real_urn_memx_poll(x, ops, max);

	for (unsigned int i = 0; i < n && f->m; i++)
		if (ops[i].m == f->m && ops[i].addr == f->addr && ops[i].kind == f->kind) {
			ops[i].status = URN_MEMOP_FAILED;
			f->m = NULL;
		}
	return n;
}

/* ---- opening */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	struct probe *p = ctx;

	(void)gid;
	p->asked++;
	memcpy(mac, p->peer.mac, 6);
	return p->neigh;
}

static void
neigh_doubt(void *ctx, const uint8_t gid[16])
{
	struct probe *p = ctx;

	assert_memory_equal(gid, p->peer.gid, 16);
	p->doubted++;
}

static bool
find_near(void *ctx, const uint8_t gid[16], unsigned int engine, struct urn_tp_near *near)
{
	struct probe *p = ctx;

	assert_memory_equal(gid, p->peer.gid, 16);
	assert_int_equal(engine, 0);
	*near = p->near;
	return near->full;
}

static uint32_t
learnt_features(void *ctx, const uint8_t gid[16])
{
	(void)ctx;
	(void)gid;
	return URN_LINK_F_SACK;
}

static struct urn_ah *
find_ah(void *ctx, uint32_t id)
{
	struct probe *p = ctx;

	return id == 1 ? &p->ah : NULL;
}

static void
open_memory(struct probe *p)
{
	const uint32_t rw = URN_ACCESS_LOCAL_WRITE;
	struct urn_memx_config x = {
		.pending = 4096,
		.delay_seed = p->cfg.delay_seed,
		.delay_percent = p->cfg.delay_percent ? p->cfg.delay_percent : 100,
		.delay_polls = p->cfg.delay_polls ? p->cfg.delay_polls : 8,
		.fail_per_million = p->cfg.fail_per_million,
	};
	uint8_t *base;

	p->mem = urn_mem_create(1000, 10);
	p->memx = urn_memx_create(&x);
	p->ram = aligned_alloc(4096, PROBE_RAM);
	assert_true(p->mem && p->memx && p->ram);
	memset(p->ram, 0xc5, PROBE_RAM);
	base = probe_at(p, 0);
	memset(base, 0, PROBE_LEN);
	assert_int_equal(urn_mem_alloc_pd(p->mem, &p->pd), 0);
	assert_int_equal(urn_mem_alloc_pd(p->mem, &p->other_pd), 0);
	assert_int_equal(urn_mem_reg_mr(p->mem, p->pd, base, PROBE_LEN, PROBE_VA,
					rw | PROBE_RIGHTS | URN_ACCESS_MW_BIND, &p->key), 0);
	assert_int_equal(urn_mem_reg_mr(p->mem, p->pd, base, PROBE_LEN, PROBE_VA, rw, &p->key_local), 0);
	assert_int_equal(urn_mem_reg_mr(p->mem, p->pd, base, PROBE_LEN, PROBE_VA,
					URN_ACCESS_REMOTE_READ, &p->key_read), 0);
	assert_int_equal(urn_mem_reg_mr(p->mem, p->other_pd, base, PROBE_LEN, PROBE_VA,
					rw | PROBE_RIGHTS, &p->key_other), 0);
}

static void
open_tp(struct probe *p)
{
	struct urn_tp_config c = {
		.features = p->cfg.selective ? URN_LINK_F_SACK : 0,
		.gsi = p->cfg.selective,
		.learn = p->cfg.selective ? learnt_features : NULL,
		.learn_ctx = p,
		.rto_floor = p->cfg.rto_floor,
		.line = p->cfg.line,
		.repairs = 64,
		.mem = p->mem,
		.memx = p->memx,
		.pool = p->pool,
		.gids = 2,
		.mtu = 4096,
		.icrc = true,
		.max_qp = p->cfg.max_qp ? p->cfg.max_qp : 64,
		.work = p->cfg.work ? p->cfg.work : 1024,
		.window = p->cfg.window ? p->cfg.window : 64,
		.kept = p->cfg.kept ? p->cfg.kept : 256,
		.near = find_near,
		.near_ctx = p,
		.neigh = neigh,
		.neigh_doubt = neigh_doubt,
		.neigh_ctx = p,
		.ah = find_ah,
		.ah_ctx = p,
	};

	if (p->cfg.service)
		c.service[p->cfg.type] = p->cfg.service;
	memcpy(c.mac, node_mac, 6);
	memcpy(c.gid[0], v4_gid, 16);
	memcpy(c.gid[1], v6_gid, 16);
	c.gid[0][15] = c.gid[1][15] = 1;
	memcpy(p->node.mac, node_mac, 6);
	memcpy(p->peer.mac, peer_mac, 6);
	memcpy(p->node.gid, c.gid[p->cfg.ipv6], 16);
	memcpy(p->peer.gid, c.gid[p->cfg.ipv6], 16);
	p->peer.gid[15] = 2;
	p->now = 1000000000;
	p->tp = urn_tp_create(&c, p->now);
	assert_non_null(p->tp);
}

static void
attributes(struct probe *p, struct probe_qp *q, struct urn_abi_qp_attr *a)
{
	const struct probe_config *c = &p->cfg;
	uint32_t mtu = c->mtu ? c->mtu : 1024;

	memset(a, 0, sizeof(*a));
	a->port_num = 1;
	a->access = c->access < 0 ? 0 : c->access ? (uint32_t)c->access : PROBE_RIGHTS;
	a->path_mtu = (uint8_t)(__builtin_ctz(mtu) - 7);
	a->dest_qpn = q->peer_qpn;
	a->rq_psn = PROBE_RQ_PSN;
	a->sq_psn = PROBE_SQ_PSN;
	a->max_rd_atomic = (uint8_t)(c->rd_atomic < 0 ? 0 : c->rd_atomic ? c->rd_atomic : 4);
	a->max_dest_rd_atomic =
		(uint8_t)(c->dest_rd_atomic < 0 ? 0 : c->dest_rd_atomic ? c->dest_rd_atomic : 4);
	a->min_rnr_timer = c->min_rnr_timer;
	a->timeout = c->timeout;
	a->retry_cnt = c->retry_cnt;
	a->rnr_retry = c->rnr_retry;
	a->qkey = PROBE_QKEY;
	a->av.sgid_index = c->ipv6;
	a->av.traffic_class = c->traffic_class;
	a->av.hop_limit = c->hop_limit;
	memcpy(a->av.dgid, p->peer.gid, 16);
}

static void
modify(struct probe *p, struct probe_qp *q, uint8_t state, uint32_t mask)
{
	struct urn_abi_qp_attr a;
	char why[160] = "";

	attributes(p, q, &a);
	a.state = state;
	if (urn_qp_modify(p->tp, q->qp, mask | URN_QPM_STATE, &a, why, sizeof(why)) != 0)
		fail_msg("modify to %u: %s", state, why);
}

static void
connect_qp(struct probe *p, struct probe_qp *q)
{
	uint8_t to = p->cfg.state ? p->cfg.state : URN_QPS_RTS;

	for (uint8_t s = URN_QPS_INIT; s <= URN_QPS_RTS && s <= to; s++)
		modify(p, q, s, bare_qp_mask(p->cfg.type, s));
	if (to > URN_QPS_RTS)
		modify(p, q, to, 0);
}

static struct urn_rq
open_rq(void)
{
	struct urn_abi_wq *wq = bare_wq(PROBE_SLOTS, urn_abi_rq_stride(PROBE_SGES));

	assert_non_null(wq);
	return bare_rq(wq, PROBE_SLOTS, PROBE_SGES);
}

static void
open_qp(struct probe *p, unsigned int i)
{
	struct probe_qp *q = &p->q[i];
	struct urn_qp_config c = {
		.type = p->cfg.type,
		.pd = p->pd,
		.send_cq = &p->scq,
		.recv_cq = &p->rcq,
		.srq = p->cfg.srq ? &p->srq : NULL,
	};

	q->sq = bare_wq(PROBE_SLOTS, urn_abi_sq_stride(PROBE_SGES, PROBE_INLINE));
	assert_non_null(q->sq);
	c.sq = bare_sq(q->sq, PROBE_SLOTS, PROBE_SGES, PROBE_INLINE);
	if (!p->cfg.srq) {
		c.rq = open_rq();
		q->rq = c.rq.hdr;
	}
	q->peer_qpn = 0x7000 + i;
	assert_int_equal(urn_qp_create(p->tp, &c, &q->qp), 0);
	connect_qp(p, q);
}

static struct rte_mempool *
pool_of(uint32_t mbufs)
{
	static struct rte_mempool *small;
	struct rte_mempool *usual = test_eal_pool();

	if (mbufs == 0)
		return usual;
	if (!small) /* a program asks for one size only: the first one */
		small = rte_pktmbuf_pool_create("small", mbufs, 0, TEST_EAL_PRIV,
						RTE_PKTMBUF_HEADROOM + TEST_EAL_ROOM, SOCKET_ID_ANY);
	assert_non_null(small);
	return small;
}

void
probe_open(struct probe *p, const struct probe_config *cfg)
{
	memset(p, 0, sizeof(*p));
	current = p;
	if (cfg)
		p->cfg = *cfg;
	if (!p->cfg.type)
		p->cfg.type = URN_QPT_RC;
	p->pool = pool_of(p->cfg.pool_mbufs);
	p->free_before = rte_mempool_avail_count(test_eal_pool());
	p->seen = calloc(PROBE_SEEN, sizeof(*p->seen));
	assert_non_null(p->seen);
	open_memory(p);
	open_tp(p);
	assert_true(bare_cq(&p->scq, PROBE_CQES) && bare_cq(&p->rcq, PROBE_CQES));
	if (p->cfg.srq) {
		p->srq.rq = open_rq();
		p->srq.pd = p->pd;
	}
	bare_ah(&p->ah, &p->node, &p->peer, p->pd);
	for (unsigned int i = 0; i < (p->cfg.qps ? p->cfg.qps : 1); i++)
		open_qp(p, i);
	probe_use(p, 0);
}

/* ---- closing */

static void
close_qp(struct probe *p, struct probe_qp *q)
{
	assert_true(bare_qp_stop(p->tp, q->qp));
	urn_qp_destroy(p->tp, q->qp);
	free(q->sq);
	free(q->rq);
}

void
probe_close(struct probe *p)
{
	p->hold = false;
	for (unsigned int i = 0; i < PROBE_QPS; i++)
		if (p->q[i].qp)
			close_qp(p, &p->q[i]);
	for (unsigned int i = 0; i < p->in_n; i++)
		rte_pktmbuf_free(p->in[i]);
	assert_int_equal(p->tp->kept, 0);
	assert_int_equal(p->tp->left.held, p->tp->cfg.kept);
	urn_tp_destroy(p->tp);
	assert_int_equal(urn_memx_holds(p->memx, NULL), 0);
	for (uint32_t i = 0; i < PROBE_GUARD; i++)
		if (p->ram[i] != 0xc5 || p->ram[PROBE_GUARD + PROBE_LEN + i] != 0xc5)
			fail_msg("memory beside the region was written");
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), p->free_before);
	if (p->cfg.pool_mbufs)
		assert_true(rte_mempool_full(p->pool));
	urn_memx_destroy(p->memx);
	urn_mem_destroy(p->mem);
	free(p->scq.hdr);
	free(p->rcq.hdr);
	free(p->srq.rq.hdr);
	free(p->ram);
	free(p->seen);
}

void
probe_use(struct probe *p, unsigned int qp)
{
	p->cur = qp;
	p->qp = p->q[qp].qp;
}

void
probe_state(struct probe *p, uint8_t state)
{
	modify(p, &p->q[p->cur], state, 0);
}

int
probe_modify(struct probe *p, uint32_t mask, const struct urn_abi_qp_attr *a)
{
	char why[160] = "";
	int rc = urn_qp_modify(p->tp, p->qp, mask, a, why, sizeof(why));

	if (rc != 0 && rc != EAGAIN && strncmp(why, "QP 0x", 5) != 0)
		fail_msg("error %d says nothing: %s", rc, why);
	return rc;
}

void
probe_attributes(struct probe *p, struct urn_abi_qp_attr *a)
{
	attributes(p, &p->q[p->cur], a);
}

void
probe_reconnect(struct probe *p)
{
	probe_state(p, URN_QPS_RESET);
	connect_qp(p, &p->q[p->cur]);
}

struct urn_qp *
probe_another(struct probe *p, struct urn_tp *tp, const struct urn_abi_qp_attr *like)
{
	const struct urn_qp_config c = {
		.type = URN_QPT_RC,
		.pd = p->pd,
		.send_cq = &p->scq,
		.recv_cq = &p->rcq,
		.sq = p->qp->sq,
		.rq = p->qp->rq,
	};
	struct urn_abi_qp_attr a = *like;
	struct urn_qp *qp;
	char why[160] = "";

	assert_int_equal(urn_qp_create(tp, &c, &qp), 0);
	for (a.state = URN_QPS_INIT; a.state <= URN_QPS_RTS; a.state++)
		if (urn_qp_modify(tp, qp, bare_qp_mask(c.type, a.state) | URN_QPM_STATE, &a, why,
				  sizeof(why)) != 0)
			fail_msg("%s", why);
	return qp;
}
