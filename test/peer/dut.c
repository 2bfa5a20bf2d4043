/* SPDX-License-Identifier: BSD-3-Clause */
#include "dut.h"

#include "common/test_eal.h"
#include "packet/bare.h"
#include "packet/worker.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 32, SGES = 4, INLINE = 64, CQES = 256, QPS = 16, POLLS = 100000 };

struct conn {
	struct dut *d;
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
	struct urn_cq scq, rcq;
	uint32_t scq_seen, rcq_seen;
	uint32_t sent, recvs;
	struct flow *send, *recv;
	uint8_t *ram;
	uint32_t key, key_read;
	uint32_t window[PEER_KEYS];
	bool rung;
};

struct dut {
	struct dut_cfg c;
	struct rte_mempool *pool;
	unsigned int free_before;
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_space *space; /* NULL: memory is mapped */
	uint64_t space_due;      /* ns: when the space's worker copies next */
	uint32_t pd;
	struct conn conn[DUT_CONNS];
	uint8_t *ram[DUT_CONNS]; /* kept from run to run */
	uint8_t mac[6];          /* MAC address of the peers */
	struct rte_mbuf *rx[DUT_RX];
	uint32_t rx_in, rx_out;
	uint64_t now, last;
	bool came, sent;         /* in the last turn: frames came, frames were sent */
};

#define VA 0x510000000000ull

static void
die(const char *why)
{
	fprintf(stderr, "urnic-peer-sim: %s\n", why);
	exit(1);
}

static void *
must(void *p)
{
	if (!p)
		die("no memory");
	return p;
}

struct dut *
dut_new(void)
{
	struct dut *d = must(calloc(1, sizeof(*d)));

	d->pool = test_eal_pool();
	for (int i = 0; i < DUT_CONNS; i++)
		d->ram[i] = must(aligned_alloc(4096, (FLOW_RAM + 4095) & ~4095));
	return d;
}

void
dut_free(struct dut *d)
{
	for (int i = 0; i < DUT_CONNS; i++)
		free(d->ram[i]);
	free(d);
}

/* ---- opening */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	const struct dut *d = ctx;

	(void)gid;
	memcpy(mac, d->mac, 6);
	return 0;
}

static void
gid_of(const struct pw_addr *a, uint8_t gid[16])
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff};

	memcpy(gid, a->v6 ? a->ip : v4, 16);
	if (!a->v6)
		memcpy(gid + 12, a->ip, 4);
}

void
dut_open(struct dut *d, const struct dut_cfg *c, uint64_t now)
{
	struct urn_memx_config x = {.pending = 1024,
				    .delay_seed = c->late_seed,
				    .delay_percent = 40,
				    .delay_polls = 20,
				    .foreign = c->gate,
				    .max_pds = 2};
	struct urn_tp_config t = {
		.pool = d->pool,
		.gids = 1,
		.mtu = 4096,
		.icrc = true,
		.max_qp = QPS,
		.work = c->work,
		.window = c->window,
		.kept = c->kept,
		.repairs = QPS,
		.rto_floor = c->rto_floor,
		.neigh = neigh,
		.neigh_ctx = d,
	};

	d->c = *c;
	d->free_before = rte_mempool_avail_count(d->pool);
	t.mem = d->mem = must(urn_mem_create(1000, 2));
	t.memx = d->memx = must(urn_memx_create(&x));
	memcpy(t.mac, c->self.mac, 6);
	memcpy(d->mac, c->other.mac, 6);
	gid_of(&c->self, t.gid[0]);
	d->tp = must(urn_tp_create(&t, now));
	if (urn_mem_alloc_pd(d->mem, &d->pd) != 0)
		die("no protection domain");
	d->space = c->foreign ? must(worker_open()) : NULL;
	d->space_due = 0;
	d->rx_in = d->rx_out = 0;
	d->now = d->last = now;
	d->came = d->sent = false;
	memset(d->conn, 0, sizeof(d->conn));
}

static uint32_t
region(struct dut *d, struct conn *k, uint64_t va, uint32_t access)
{
	uint32_t key = 0;
	char why[160];
	int rc = d->space ? urn_mem_add_foreign(d->mem, d->pd, d->space, (uintptr_t)k->ram, FLOW_RAM, va,
						access, &key, why, sizeof(why))
			  : urn_mem_reg_mr(d->mem, d->pd, k->ram, FLOW_RAM, va, access, &key);

	if (rc != 0)
		die("a region could not be registered");
	return key;
}

static void
up(struct dut *d, struct conn *k, const struct dut_conn_cfg *c)
{
	struct urn_abi_qp_attr a = {
		.port_num = 1,
		.access = URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC,
		.path_mtu = (uint8_t)(__builtin_ctz(c->mtu) - 7),
		.dest_qpn = c->peer_qpn,
		.rq_psn = c->rq_psn,
		.sq_psn = c->sq_psn,
		.max_rd_atomic = c->max_rd,
		.max_dest_rd_atomic = c->max_dest_rd,
		.min_rnr_timer = c->rnr_code,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
	};
	char why[160] = "";

	gid_of(&d->c.other, a.av.dgid);
	for (a.state = URN_QPS_INIT; a.state <= URN_QPS_RTS; a.state++)
		if (urn_qp_modify(d->tp, k->qp, bare_qp_mask(URN_QPT_RC, a.state) | URN_QPM_STATE, &a, why,
				  sizeof(why)) != 0)
			die(why);
}

/* ---- requests */

static void
post(void *ctx, const struct peer_wr *wr, bool signalled)
{
	static const uint8_t ops[PEER_KINDS] = {
		[PEER_SEND] = URN_WR_SEND,	   [PEER_SEND_IMM] = URN_WR_SEND_IMM,
		[PEER_SEND_INV] = URN_WR_SEND_INV, [PEER_WRITE] = URN_WR_RDMA_WRITE,
		[PEER_WRITE_IMM] = URN_WR_RDMA_WRITE_IMM, [PEER_READ] = URN_WR_RDMA_READ,
		[PEER_CAS] = URN_WR_CMP_SWAP,	   [PEER_FADD] = URN_WR_FETCH_ADD,
	};
	struct conn *k = ctx;
	struct urn_abi_swqe *w = bare_slot(k->sq, k->sent, SLOTS, urn_abi_sq_stride(SGES, INLINE));
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint32_t n = 1 + wr->len % SGES, at = wr->local, left = wr->len;

	memset(w, 0, sizeof(*w));
	w->wr_id = wr->id;
	w->opcode = ops[wr->kind];
	w->flags = (uint8_t)((signalled ? URN_WRF_SIGNALED : 0) | (wr->fence ? URN_WRF_FENCE : 0) |
			     (wr->se ? URN_WRF_SOLICITED : 0));
	/* Immediates are in network order, keys in the host's. */
	w->imm = wr->kind == PEER_SEND_INV ? wr->imm : __builtin_bswap32(wr->imm);
	w->rdma.remote_addr = wr->remote;
	w->rdma.rkey = wr->rkey;
	w->rdma.compare_add = wr->kind == PEER_CAS ? wr->compare : wr->swap_add;
	w->rdma.swap = wr->swap_add;
	w->num_sge = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? left : left / 2;

		sge[i] = (struct urn_abi_sge){VA + at, k->key, part};
		at += part;
		left -= part;
	}
	atomic_store(&k->sq->prod, ++k->sent);
	k->rung = true;
}

static void
post_recv(void *ctx, uint64_t id, uint32_t at, uint32_t room)
{
	struct conn *k = ctx;
	struct urn_abi_rwqe *w = bare_slot(k->rq, k->recvs, SLOTS, urn_abi_rq_stride(SGES));
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint32_t half = (uint32_t)(room * (id % 7) / 9);

	w->wr_id = id;
	w->num_sge = 2;
	sge[0] = (struct urn_abi_sge){VA + at, k->key, half};
	sge[1] = (struct urn_abi_sge){VA + at + half, k->key, room - half};
	atomic_store(&k->rq->prod, ++k->recvs);
	if (atomic_load(&k->rq->ring))
		k->rung = true;
}

uint32_t
dut_connect(struct dut *d, unsigned int i, const struct dut_conn_cfg *c, struct flow_side *side)
{
	struct conn *k = &d->conn[i];
	struct urn_qp_config q = {.type = URN_QPT_RC, .pd = d->pd, .send_cq = &k->scq, .recv_cq = &k->rcq};

	k->d = d;
	k->ram = d->ram[i];
	k->key = region(d, k, VA, URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE |
				     URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND);
	k->key_read = region(d, k, VA, URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_READ);
	k->sq = must(bare_wq(SLOTS, urn_abi_sq_stride(SGES, INLINE)));
	k->rq = must(bare_wq(SLOTS, urn_abi_rq_stride(SGES)));
	if (!bare_cq(&k->scq, CQES) || !bare_cq(&k->rcq, CQES))
		die("no memory");
	q.sq = bare_sq(k->sq, SLOTS, SGES, INLINE);
	q.rq = bare_rq(k->rq, SLOTS, SGES);
	if (urn_qp_create(d->tp, &q, &k->qp) != 0)
		die("a QP could not be made");
	up(d, k, c);
	*side = (struct flow_side){.ctx = k, .ram = k->ram, .va = VA, .key = k->key,
				   .key_read = k->key_read, .post = post, .post_recv = post_recv};
	for (; side->invs < PEER_KEYS; side->invs++) {
		uint32_t *key = &side->inv[side->invs], was;

		if (urn_mem_alloc_mw(d->mem, d->pd, 2, &was) != 0)
			die("no window");
		*key = (was & ~0xffu) | ((was + 1 + side->invs) & 0xff);
		if (urn_mem_bind(d->mem, 2, was, *key, k->key, VA, FLOW_RAM,
				 URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC,
				 d->pd, k->qp->qpn,
				 &(struct urn_mem_binding){.windows = &k->qp->windows}) != URN_MEM_OK)
			die("a window could not be bound");
		k->window[side->invs] = *key;
	}
	return k->qp->qpn;
}

void
dut_flows(struct dut *d, unsigned int i, struct flow *send, struct flow *recv)
{
	d->conn[i].send = send;
	d->conn[i].recv = recv;
}

/* ---- completions */

static bool
next_cqe(struct urn_cq *cq, uint32_t *seen, struct urn_abi_cqe *out)
{
	struct urn_abi_cqe *c = (struct urn_abi_cqe *)((uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) +
				(*seen & cq->mask);

	if (atomic_load(&c->phase) != ((*seen & (cq->mask + 1)) == 0))
		return false;
	*out = *c;
	atomic_store(&cq->hdr->cons, ++*seen);
	return true;
}

static enum peer_end
end_of(uint8_t status)
{
	switch (status) {
	case URN_WC_SUCCESS:
		return PEER_OK;
	case URN_WC_REM_INV_REQ_ERR:
		return PEER_REM_INV;
	case URN_WC_REM_ACCESS_ERR:
		return PEER_REM_ACCESS;
	case URN_WC_REM_OP_ERR:
		return PEER_REM_OP;
	case URN_WC_RETRY_EXC_ERR:
		return PEER_RETRY_EXC;
	case URN_WC_RNR_RETRY_EXC_ERR:
		return PEER_RNR_EXC;
	case URN_WC_WR_FLUSH_ERR:
		return PEER_FLUSH;
	case URN_WC_LOC_LEN_ERR:
		return PEER_LOC_LEN;
	default:
		return PEER_OTHER;
	}
}

static void
poll(struct dut *d, struct conn *k)
{
	struct urn_abi_cqe c;

	while (next_cqe(&k->rcq, &k->rcq_seen, &c)) {
		bool inv = c.wc_flags & URN_WCF_WITH_INV;
		struct peer_recv r = {
			.id = c.wr_id,
			.len = c.byte_len,
			.imm = inv ? c.imm : __builtin_bswap32(c.imm),
			.with_imm = c.wc_flags & URN_WCF_WITH_IMM,
			.with_inv = inv,
			.wrote = c.opcode == URN_WCO_RECV_RDMA_WITH_IMM,
			.end = end_of(c.status),
		};

		flow_received(k->recv, d->now, &r);
	}
	while (next_cqe(&k->scq, &k->scq_seen, &c))
		flow_sent(k->send, d->now, c.wr_id, end_of(c.status));
}

/* ---- turns */

void
dut_rx(struct dut *d, const uint8_t *frame, size_t len)
{
	struct rte_mbuf *m;

	if (d->rx_in - d->rx_out == DUT_RX)
		die("too many frames wait for the product");
	m = must(rte_pktmbuf_alloc(d->pool));
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV, 0xa5, TEST_EAL_PRIV);
	memcpy(rte_pktmbuf_mtod(m, void *), frame, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	d->rx[d->rx_in++ % DUT_RX] = m;
}

static void
work_space(struct dut *d)
{
	if (!d->space || worker_waits(d->space) == 0 || d->now < d->space_due)
		return;
	worker_do(d->space, rnd_from(&d->c.rng, 1, 8), false);
	d->space_due = d->now + rnd(&d->c.rng, rnd(&d->c.rng, 16) ? 2000 : 30000);
}

uint64_t
dut_due(const struct dut *d)
{
	uint64_t at = UINT64_MAX, timer = urn_wheel_next(&d->tp->wheel);

	/*
	 * A QP that waits for room in a pool is served in every turn: turns come a bit less often
	 * while nothing moves.
	 */
	if (urn_tp_busy(d->tp))
		at = d->last + (d->sent ? 100 : 20000);
	if (d->came || d->rx_in != d->rx_out)
		at = d->last + 100;
	for (int i = 0; i < DUT_CONNS; i++)
		if (d->conn[i].qp && d->conn[i].rung)
			at = d->last + 100;
	if (d->space && worker_answered(d->space) && d->last + 100 < at)
		at = d->last + 100;
	if (d->space && worker_waits(d->space) && d->space_due < at)
		at = d->space_due;
	if (urn_memx_holds(d->memx, NULL) > (d->space ? worker_under_way(d->space) : 0) &&
	    d->last + 1000 < at)
		at = d->last + 1000;
	if (timer < at)
		at = timer;
	return at <= d->last ? d->last + 1 : at;
}

static void
send_all(struct dut *d, void (*emit)(void *ctx, const uint8_t *frame, size_t len), void *ctx)
{
	struct urn_tp *tp = d->tp;

	d->sent = tp->tx_n > 0;
	for (unsigned int i = 0; i < tp->tx_n; i++) {
		struct rte_mbuf *m = tp->tx[i];

		if (m->nb_segs != 1)
			die("a frame in segments");
		emit(ctx, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
		rte_pktmbuf_free(m);
	}
	tp->tx_n = 0;
}

void
dut_turn(struct dut *d, uint64_t now, void (*emit)(void *ctx, const uint8_t *frame, size_t len), void *ctx)
{
	struct rte_mbuf *m[DUT_BURST];
	struct urn_tp *tp = d->tp;
	unsigned int k = 0;

	d->now = d->last = now;
	work_space(d);
	urn_tp_turn(tp, now);
	tp->quiet = !d->came;
	for (int i = 0; i < DUT_CONNS; i++)
		if (d->conn[i].qp && d->conn[i].rung) {
			d->conn[i].rung = false;
			urn_tp_doorbell(tp, d->conn[i].qp);
			tp->quiet = false;
		}
	urn_tp_tx(tp);
	send_all(d, emit, ctx);
	while (k < DUT_BURST && d->rx_out != d->rx_in)
		m[k++] = d->rx[d->rx_out++ % DUT_RX];
	d->came = k > 0;
	if (k)
		urn_tp_rx(tp, m, k, false);
	rte_pktmbuf_free_bulk(tp->other, tp->other_n);
	rte_pktmbuf_free_bulk(tp->handover, tp->handover_n);
	tp->other_n = tp->handover_n = tp->event_n = 0;
	for (int i = 0; i < DUT_CONNS; i++)
		if (d->conn[i].qp)
			poll(d, &d->conn[i]);
}

bool
dut_in_error(const struct dut *d, unsigned int i)
{
	return d->conn[i].qp->state == URN_QPS_ERR;
}

/* ---- closing */

static bool
stop(struct dut *d, struct urn_qp *qp)
{
	for (int i = 0; i < POLLS; i++) {
		urn_qp_stop(d->tp, qp);
		if (urn_qp_stopped(qp))
			return true;
		if (d->space)
			worker_do(d->space, UINT32_MAX, false);
		urn_tp_poll_memory(d->tp);
	}
	return false;
}

static void
close_region(struct dut *d, uint32_t key)
{
	struct urn_region *r;

	if (urn_mem_kill_mr(d->mem, key, &r) == 0)
		urn_mem_free_mr(d->mem, r);
}

static void
close_conn(struct dut *d, struct conn *k)
{
	struct urn_mem_dead dead;

	urn_qp_destroy(d->tp, k->qp);
	free(k->sq);
	free(k->rq);
	free(k->scq.hdr);
	free(k->rcq.hdr);
	for (int i = 0; i < PEER_KEYS; i++)
		if (urn_mem_kill_mw(d->mem, k->window[i], &dead) == 0)
			urn_mem_free_mw(d->mem, &dead);
	close_region(d, k->key_read);
	close_region(d, k->key);
}

const char *
dut_close(struct dut *d)
{
	const char *why = NULL;

	for (int i = 0; i < DUT_CONNS; i++)
		if (d->conn[i].qp) {
			if (!stop(d, d->conn[i].qp))
				die("a QP does not come to rest");
			close_conn(d, &d->conn[i]);
		}
	while (d->rx_out != d->rx_in)
		rte_pktmbuf_free(d->rx[d->rx_out++ % DUT_RX]);
	if (d->tp->kept)
		why = "packets that the product keeps count as there, and their QPs are not";
	urn_tp_destroy(d->tp);
	if (urn_memx_holds(d->memx, NULL))
		why = "memory operations are under way, and no QP is left";
	urn_memx_destroy(d->memx);
	urn_mem_destroy(d->mem);
	worker_close(d->space);
	if (rte_mempool_avail_count(d->pool) != d->free_before)
		why = "a packet buffer was not given back";
	return why;
}
