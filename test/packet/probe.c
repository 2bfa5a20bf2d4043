/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include "common/test_eal.h"
#include "common/test_sent.h"
#include "wire/link.h"

#include <stdlib.h>

static const uint8_t node_mac[6] = {0x02, 0, 0, 0, 0, 0x01}, peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};
static const uint8_t v4_gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0};
/* An address whose first byte is 0 is one like any other (RFC 6052). */
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
	const struct probe *p = ctx;

	(void)gid;
	memcpy(mac, peer_mac, 6);
	return p->neigh;
}

static uint32_t
link_features(void *ctx, const uint8_t gid[16])
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
		.link = p->cfg.selective ? link_features : NULL,
		.link_ctx = p,
		.rto_floor = p->cfg.rto_floor,
		.repairs = 64,
		.mem = p->mem,
		.memx = p->memx,
		.pool = p->pool,
		.gids = 2,
		.mtu = 4096,
		.icrc = true,
		.max_qp = 64,
		.work = p->cfg.work ? p->cfg.work : 1024,
		.window = p->cfg.window ? p->cfg.window : 64,
		.kept = p->cfg.kept ? p->cfg.kept : 256,
		.neigh = neigh,
		.neigh_ctx = p,
		.ah = find_ah,
		.ah_ctx = p,
	};

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
open_cq(struct urn_cq *cq)
{
	cq->hdr = calloc(1, URN_ABI_CQ_SLOTS + PROBE_CQES * sizeof(struct urn_abi_cqe));
	assert_non_null(cq->hdr);
	cq->mask = PROBE_CQES - 1;
	cq->channel_fd = -1;
}

static struct urn_abi_wq *
make_wq(uint32_t stride)
{
	struct urn_abi_wq *wq = calloc(1, URN_ABI_WQ_SLOTS + (size_t)PROBE_SLOTS * stride);

	assert_non_null(wq);
	return wq;
}

static uint32_t
sq_stride(void)
{
	return urn_abi_sq_stride(4, 64);
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
	static const uint32_t rc[] = {
		[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
		[URN_QPS_RTR] = URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN |
				URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_MIN_RNR_TIMER,
		[URN_QPS_RTS] = URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
				URN_QPM_SQ_PSN | URN_QPM_MAX_RD_ATOMIC,
	};
	static const uint32_t ud[] = {
		[URN_QPS_INIT] = URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY,
		[URN_QPS_RTR] = 0,
		[URN_QPS_RTS] = URN_QPM_SQ_PSN,
	};
	uint8_t to = p->cfg.state ? p->cfg.state : URN_QPS_RTS;

	for (uint8_t s = URN_QPS_INIT; s <= URN_QPS_RTS && s <= to; s++)
		modify(p, q, s, p->cfg.type == URN_QPT_UD ? ud[s] : rc[s]);
	if (to > URN_QPS_RTS)
		modify(p, q, to, 0);
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

	q->sq = make_wq(sq_stride());
	c.sq = (struct urn_sq){.hdr = q->sq, .mask = PROBE_SLOTS - 1, .stride = (uint16_t)sq_stride(),
			       .max_sge = 4, .max_inline = 64};
	if (!p->cfg.srq) {
		q->rq = make_wq(urn_abi_rq_stride(4));
		c.rq = (struct urn_rq){.hdr = q->rq, .mask = PROBE_SLOTS - 1,
				       .stride = (uint16_t)urn_abi_rq_stride(4), .max_sge = 4};
	}
	q->peer_qpn = 0x7000 + i;
	assert_int_equal(urn_qp_create(p->tp, &c, &q->qp), 0);
	connect_qp(p, q);
}

static void
open_ah(struct probe *p)
{
	struct urn_path path = {.sport = 0xd000, .ttl = 64};

	memcpy(path.smac, p->node.mac, 6);
	memcpy(path.dmac, p->peer.mac, 6);
	memcpy(path.sgid, p->node.gid, 16);
	memcpy(path.dgid, p->peer.gid, 16);
	urn_tmpl_init(&p->ah.tmpl, &path);
	memcpy(p->ah.av.dgid, p->peer.gid, 16);
	p->ah.pd = p->pd;
	p->ah.ready = true;
}

static struct rte_mempool *
pool_of(uint32_t mbufs)
{
	static struct rte_mempool *small;
	struct rte_mempool *usual = test_eal_pool();

	if (mbufs == 0)
		return usual;
	if (!small) /* the first size asked for is the only one a program asks for */
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
	open_cq(&p->scq);
	open_cq(&p->rcq);
	if (p->cfg.srq)
		p->srq.rq = (struct urn_rq){.hdr = make_wq(urn_abi_rq_stride(4)),
					    .mask = PROBE_SLOTS - 1,
					    .stride = (uint16_t)urn_abi_rq_stride(4), .max_sge = 4};
	open_ah(p);
	for (unsigned int i = 0; i < (p->cfg.qps ? p->cfg.qps : 1); i++)
		open_qp(p, i);
	probe_use(p, 0);
}

/* ---- closing */

static void
close_qp(struct probe *p, struct probe_qp *q)
{
	urn_qp_stop(p->tp, q->qp);
	for (int i = 0; !urn_qp_quiet(q->qp); i++) {
		assert_true(i < 1000);
		urn_tp_poll_memory(p->tp);
	}
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

/* ---- the wire: in */

void
probe_fill(uint8_t *at, uint32_t len, uint32_t seed, uint32_t from)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)((seed * 2654435761u ^ (from + i) * 40503u) >> 7);
}

void
probe_check_fill(const uint8_t *at, uint32_t len, uint32_t seed, uint32_t from, const char *file,
		 int line)
{
	for (uint32_t i = 0; i < len; i++) {
		uint8_t want;

		probe_fill(&want, 1, seed, from + i);
		if (at[i] != want) {
			print_error("byte %u of %u is 0x%02x, not 0x%02x\n", i, len, at[i], want);
			_fail(file, line);
		}
	}
}

void
probe_put_raw(struct probe *p, const uint8_t *bytes, uint32_t len)
{
	static const uint8_t old[] = {0x2e, 0xff, 0x00, 0xa5};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	/* What the last user of the buffer left there must not matter. */
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV,
	       old[p->tp->c.v[URN_C_RX_PACKETS] % sizeof(old)], TEST_EAL_PRIV);
	assert_true(p->in_n < URN_TP_BURST && len <= TEST_EAL_ROOM);
	memcpy(rte_pktmbuf_mtod(m, void *), bytes, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	p->in[p->in_n++] = m;
}

void
probe_put(struct probe *p, struct frame *f)
{
	uint8_t bytes[FRAME_ROOM];

	if (!f->dqpn)
		f->dqpn = p->qp->qpn;
	probe_put_raw(p, bytes, frame_write(f, &p->peer, &p->node, bytes));
}

void
probe_send(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	f.len = len;
	f.ack = true;
	probe_fill(f.data, len, seed, 0);
	probe_put(p, &f);
}

void
probe_write(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint32_t length, uint32_t len,
	    uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	f.va = PROBE_VA + off;
	f.rkey = p->key;
	f.length = length;
	f.len = len;
	f.ack = true;
	probe_fill(f.data, len, seed, 0);
	probe_put(p, &f);
}

void
probe_read(struct probe *p, uint32_t psn, uint32_t off, uint32_t length)
{
	probe_write(p, READ_REQ, psn, off, length, 0, 0);
}

void
probe_atomic(struct probe *p, uint8_t op, uint32_t psn, uint32_t off, uint64_t swap_add,
	     uint64_t compare)
{
	struct frame f = frame_of(op, psn);

	f.va = PROBE_VA + off;
	f.rkey = p->key;
	f.swap = swap_add;
	f.compare = compare;
	f.ack = true;
	probe_put(p, &f);
}

void
probe_ack(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn)
{
	struct frame f = frame_of(ACK, psn);

	f.syn = syn;
	f.msn = msn;
	probe_put(p, &f);
}

void
probe_resp(struct probe *p, uint8_t op, uint32_t psn, uint32_t len, uint32_t seed)
{
	struct frame f = frame_of(op, psn);

	if (op == ATOMIC_ACK) {
		f.orig = len;
	} else {
		f.len = len;
		probe_fill(f.data, len, seed, 0);
	}
	probe_put(p, &f);
}

/* ---- the wire: out */

/* What no frame of RC may break, whatever the scenario. */
static const char *
judge(struct probe *p, const struct frame *f)
{
	struct probe_qp *q = NULL;
	bool full = f->op == SEND_FIRST || f->op == SEND_MIDDLE || f->op == WRITE_FIRST ||
		    f->op == WRITE_MIDDLE || f->op == READ_FIRST || f->op == READ_MIDDLE;
	bool last = f->op == SEND_LAST || f->op == SEND_LAST_IMM || f->op == SEND_LAST_INV ||
		    f->op == WRITE_LAST || f->op == WRITE_LAST_IMM || f->op == READ_LAST;

	if (f->pkey != 0xffff)
		return "P_Key";
	if (p->cfg.type == URN_QPT_UD)
		return f->op == UD_SEND || f->op == UD_SEND_IMM ? NULL : "opcode of a UD QP";
	for (unsigned int i = 0; i < PROBE_QPS; i++)
		if (p->q[i].qp && p->q[i].peer_qpn == f->dqpn)
			q = &p->q[i];
	if (!q)
		return "destination QP";
	if ((f->op > SEND_ONLY_INV || f->op == 0x15) && f->op != SACK)
		return "opcode";
	if ((full && f->len != q->qp->mtu) || (last && f->len == 0) || f->len > q->qp->mtu)
		return "payload of the wrong length";
	if (!full && !last && f->len && f->op != SEND_ONLY && f->op != SEND_ONLY_IMM &&
	    f->op != SEND_ONLY_INV && f->op != WRITE_ONLY && f->op != WRITE_ONLY_IMM &&
	    f->op != READ_ONLY && f->op != SACK)
		return "payload where none may be";
	if ((f->op == READ_FIRST || f->op == READ_LAST || f->op == READ_ONLY ||
	     f->op == ATOMIC_ACK) && f->syn != SYN_ACK)
		return "syndrome of a response";
	if (f->op == ACK && (f->syn & 0x60) == 0 && f->syn != SYN_ACK)
		return "an ACK that gives credits";
	return NULL;
}

static void
take_frame(struct probe *p, struct rte_mbuf *m)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	struct frame *f = &p->seen[p->seen_n++ % PROBE_SEEN];
	const char *why = m->nb_segs != 1   ? "segments"
			  : m->ol_flags != 0 || m->packet_type != 0 ? "flags of another packet"
			  : m->pkt_len != m->data_len ? "two lengths"
					  : frame_read(bytes, m->data_len, &p->node, &p->peer, f);

	if (!why)
		why = judge(p, f);
	if (why)
		fail_msg("the node sent a bad frame, opcode 0x%02x, PSN 0x%06x, %u bytes: %s", f->op,
			 f->psn, m->data_len, why);
	test_sent(m);
	rte_pktmbuf_free(m);
}

static void
take_out(struct probe *p)
{
	struct urn_tp *tp = p->tp;

	for (unsigned int i = 0; i < tp->tx_n; i++)
		take_frame(p, tp->tx[i]);
	tp->tx_n = 0;
	for (unsigned int i = 0; i < tp->event_n; i++)
		p->event[p->events++ % 64] = tp->event[i].ev.type;
	tp->event_n = 0;
	for (unsigned int i = 0; i < tp->other_n; i++)
		rte_pktmbuf_free(tp->other[i]);
	tp->other_n = 0;
	for (unsigned int i = 0; i < tp->handover_n; i++)
		rte_pktmbuf_free(tp->handover[i]);
	tp->handover_n = 0;
}

void
probe_turn(struct probe *p, uint64_t ns)
{
	p->now += ns;
	urn_tp_turn(p->tp, p->now);
	if (p->in_n)
		urn_tp_rx(p->tp, p->in, p->in_n, false);
	p->in_n = 0;
	urn_tp_tx(p->tp);
	take_out(p);
}

void
probe_settle(struct probe *p)
{
	unsigned int calm = 0;

	for (unsigned int i = 0; calm < 3; i++) {
		if (i == 100000)
			fail_msg("the node never comes to rest");
		probe_turn(p, 0);
		calm = urn_tp_busy(p->tp) || (!p->hold && urn_memx_holds(p->memx, NULL)) ? 0
											 : calm + 1;
	}
}

void
probe_pass(struct probe *p, uint64_t ns, uint64_t step)
{
	uint64_t end = p->now + ns;

	while (p->now < end)
		probe_turn(p, end - p->now < step ? end - p->now : step);
	probe_settle(p);
}

/* ---- the program */

void
probe_recv(struct probe *p, uint32_t off, uint32_t len, uint64_t wr_id)
{
	struct urn_abi_wq *wq = p->cfg.srq ? p->srq.rq.hdr : p->q[p->cur].rq;
	uint32_t prod = atomic_load(&wq->prod);
	struct urn_abi_rwqe *w = (void *)((uint8_t *)wq + URN_ABI_WQ_SLOTS +
					  (size_t)(prod % PROBE_SLOTS) * urn_abi_rq_stride(4));
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint32_t half = len / 3; /* two elements, so that packets straddle them */

	w->wr_id = wr_id;
	w->num_sge = 2;
	sge[0] = (struct urn_abi_sge){PROBE_VA + off, p->key, half};
	sge[1] = (struct urn_abi_sge){PROBE_VA + off + half, p->key_local, len - half};
	atomic_store(&wq->prod, prod + 1);
}

struct urn_abi_swqe *
probe_slot(struct probe *p)
{
	struct urn_abi_wq *sq = p->q[p->cur].sq;

	return (void *)((uint8_t *)sq + URN_ABI_WQ_SLOTS +
			(size_t)((atomic_load(&sq->prod) - 1) % PROBE_SLOTS) * sq_stride());
}

void
probe_prepare(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len,
	      uint64_t remote, uint64_t wr_id)
{
	struct urn_abi_swqe *w;
	struct urn_abi_sge *sge;

	atomic_fetch_add(&p->q[p->cur].sq->prod, 1);
	w = probe_slot(p);
	memset(w, 0, sizeof(*w));
	w->wr_id = wr_id;
	w->opcode = op;
	w->flags = flags;
	w->num_sge = len ? 1 : 0;
	w->rdma.remote_addr = PROBE_VA + remote;
	w->rdma.rkey = p->key;
	sge = (void *)(w + 1);
	*sge = (struct urn_abi_sge){PROBE_VA + off, p->key_local, len};
	if (p->cfg.type == URN_QPT_UD) {
		w->ud.ah = 1;
		w->ud.remote_qpn = p->q[p->cur].peer_qpn;
		w->ud.remote_qkey = PROBE_QKEY;
	}
}

void
probe_ring(struct probe *p)
{
	urn_tp_doorbell(p->tp, p->qp);
}

void
probe_post(struct probe *p, uint8_t op, uint8_t flags, uint32_t off, uint32_t len, uint64_t remote,
	   uint64_t wr_id)
{
	probe_prepare(p, op, (uint8_t)(flags | URN_WRF_SIGNALED), off, len, remote, wr_id);
	probe_ring(p);
}

/* ---- what came out */

const struct frame *
probe_expect(struct probe *p, uint8_t op, uint32_t psn, const char *file, int line)
{
	const struct frame *f;

	probe_settle(p);
	if (p->looked == p->seen_n) {
		print_error("no frame came; opcode 0x%02x, PSN 0x%06x was to come\n", op, psn);
		_fail(file, line);
	}
	assert_true(p->seen_n - p->looked <= PROBE_SEEN);
	f = &p->seen[p->looked++ % PROBE_SEEN];
	if (f->op != op || f->psn != psn) {
		print_error("opcode 0x%02x, PSN 0x%06x, syndrome 0x%02x came, not 0x%02x, 0x%06x\n",
			    f->op, f->psn, f->syn, op, psn);
		_fail(file, line);
	}
	return f;
}

void
probe_silent(struct probe *p, const char *file, int line)
{
	const struct frame *f = &p->seen[p->looked % PROBE_SEEN];

	probe_settle(p);
	if (p->looked == p->seen_n)
		return;
	print_error("%u frames too many; opcode 0x%02x, PSN 0x%06x, syndrome 0x%02x\n",
		    p->seen_n - p->looked, f->op, f->psn, f->syn);
	_fail(file, line);
}

void
probe_expect_aeth(struct probe *p, uint32_t psn, uint8_t syn, uint32_t msn, const char *file,
		  int line)
{
	const struct frame *f = probe_expect(p, ACK, psn, file, line);

	if (f->syn != syn || f->msn != msn) {
		print_error("syndrome 0x%02x, MSN %u came, not 0x%02x, %u\n", f->syn, f->msn, syn, msn);
		_fail(file, line);
	}
}

const struct urn_abi_cqe *
probe_cqe(struct probe *p, bool recv)
{
	struct urn_cq *cq = recv ? &p->rcq : &p->scq;
	uint32_t at = (recv ? p->rcq_seen : p->scq_seen) - 1;

	return (const struct urn_abi_cqe *)((uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) + (at & cq->mask);
}

void
probe_expect_cqe(struct probe *p, bool recv, uint64_t wr_id, uint8_t status, const char *file,
		 int line)
{
	struct urn_cq *cq = recv ? &p->rcq : &p->scq;
	uint32_t *seen = recv ? &p->rcq_seen : &p->scq_seen;
	const struct urn_abi_cqe *c;

	probe_settle(p);
	if (*seen == cq->prod) {
		print_error("no completion; wr_id %u, status %u was to come\n", (unsigned int)wr_id,
			    status);
		_fail(file, line);
	}
	++*seen;
	atomic_store(&cq->hdr->cons, *seen);
	c = probe_cqe(p, recv);
	if (c->wr_id != wr_id || c->status != status) {
		print_error("wr_id %u, status %u (%u) came, not %u, %u\n", (unsigned int)c->wr_id,
			    c->status, c->vendor_err, (unsigned int)wr_id, status);
		_fail(file, line);
	}
}

void
probe_no_cqe(struct probe *p, const char *file, int line)
{
	probe_settle(p);
	if (p->scq_seen != p->scq.prod || p->rcq_seen != p->rcq.prod) {
		print_error("%u send and %u receive completions too many\n", p->scq.prod - p->scq_seen,
			    p->rcq.prod - p->rcq_seen);
		_fail(file, line);
	}
}
