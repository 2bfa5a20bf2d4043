/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node: the product's transport and memory for one adapter on one engine,
 * given their turns in the order of dataplane/engine/engine.c; the client's
 * area made of plain allocations.
 */
#include "host.h"

#include "packet/bare.h"
#include "transport/unsealed.h"

#include <stdlib.h>

/* ---- memory */

uint32_t
sim_node_alloc(struct sim_node *n, uint32_t len, uint32_t align)
{
	uint32_t off = n->ram_used + SIM_GUARD;

	off = (off + align - 1) & ~(align - 1);
	n->ram_used = off + len + SIM_GUARD;
	if (n->ram_used > n->ram_size) {
		sim_fail(n->s, "node %u: %u bytes of memory do not suffice", n->id, n->ram_size);
		return 0;
	}
	return off;
}

static unsigned int
rights_of(uint32_t access)
{
	return (access & URN_ACCESS_LOCAL_WRITE ? MODEL_LOCAL_WRITE : 0) |
	       (access & URN_ACCESS_REMOTE_WRITE ? MODEL_REMOTE_WRITE : 0) |
	       (access & URN_ACCESS_REMOTE_READ ? MODEL_REMOTE_READ : 0) |
	       (access & URN_ACCESS_REMOTE_ATOMIC ? MODEL_REMOTE_ATOMIC : 0);
}

int
sim_model_key(struct sim_node *n, uint32_t off, uint32_t len, uint32_t access)
{
	return model_key(n->s->model, n->id, off, len, rights_of(access));
}

uint32_t
sim_node_region(struct sim_node *n, struct sim_client *c, uint32_t off, uint32_t len,
		uint32_t access, int *m)
{
	uint32_t key = 0;

	if (c)
		key = sim_client_region(c, off, len, access);
	else if (urn_mem_reg_mr(n->mem, n->pd, n->ram + off, len, SIM_VA + off, access, &key) != 0)
		sim_fail(n->s, "node %u: a region could not be registered", n->id);
	*m = sim_model_key(n, off, len, access);
	return key;
}

/* Like control: the key is dead at once, the region is freed when no operation is left on it. */
bool
sim_node_kill(struct sim_node *n, uint32_t key, int m)
{
	if (n->dying_n == SIM_DYING || urn_mem_kill_mr(n->mem, key, &n->dying[n->dying_n].region) != 0)
		return false;
	n->dying[n->dying_n++].m = m;
	return true;
}

void
sim_node_deregister(struct sim_node *n, uint32_t key, int m)
{
	if (!sim_node_kill(n, key, m))
		sim_fail(n->s, "node %u: region 0x%x could not be deregistered", n->id, key);
}

void
sim_node_bury(struct sim_node *n)
{
	for (unsigned int i = 0; i < n->dying_n;) {
		if (urn_memx_holds(n->memx, n->dying[i].region)) {
			i++;
			continue;
		}
		urn_mem_free_mr(n->mem, n->dying[i].region);
		model_key_gone(n->s->model, n->dying[i].m);
		n->dying[i] = n->dying[--n->dying_n];
	}
}

/* ---- queues */

struct urn_abi_wq *
sim_queue(uint32_t entries, uint32_t stride)
{
	struct urn_abi_wq *wq = bare_wq(entries, stride);

	if (!wq) {
		fputs("urnic-sim: no memory\n", stderr);
		exit(1);
	}
	return wq;
}

static void
open_cq(struct sim_node *n, struct sim_cq *cq, uint32_t entries)
{
	memset(cq, 0, sizeof(*cq));
	if (!bare_cq(&cq->cq, entries))
		sim_fail(n->s, "no memory");
}

static struct urn_abi_cqe *
next_cqe(const struct sim_cq *cq)
{
	return (struct urn_abi_cqe *)((uint8_t *)cq->cq.hdr + URN_ABI_CQ_SLOTS) +
	       (cq->seen & cq->cq.mask);
}

/* Like lib/verbs: by the phase of the slot. */
bool
sim_cq_waits(const struct sim_cq *cq)
{
	uint8_t phase = (cq->seen & (cq->cq.mask + 1)) == 0;

	return cq->cq.hdr && atomic_load_explicit(&next_cqe(cq)->phase, memory_order_acquire) == phase;
}

bool
sim_cq_poll(struct sim_cq *cq, struct urn_abi_cqe *out)
{
	if (!sim_cq_waits(cq))
		return false;
	*out = *next_cqe(cq);
	cq->seen++;
	atomic_store_explicit(&cq->cq.hdr->cons, cq->seen, memory_order_release);
	return true;
}

void
sim_rq_open(struct sim_node *n, struct sim_rq *rq, uint32_t bufs, uint32_t len, bool bare)
{
	uint32_t entries = 1;

	while (entries < bufs)
		entries *= 2;
	memset(rq, 0, sizeof(*rq));
	if (bare) {
		rq->mask = entries - 1;
		rq->stride = urn_abi_rq_stride(SIM_SGES);
		rq->hdr = sim_queue(entries, rq->stride);
	}
	rq->bells = n->db;
	rq->key = n->key_all;
	rq->m_key = n->m_all;
	rq->bufs = bufs;
	rq->len = len;
	rq->off = sim_node_alloc(n, bufs * (len + SIM_GUARD), 8);
}

static void
post_recv(struct sim_node *n, struct sim_rq *rq, uint32_t buf, uint32_t len, struct sim_rng *rng)
{
	uint32_t off = rq->off + buf * (rq->len + SIM_GUARD), left = len, at = off;
	struct urn_abi_rwqe *w = bare_slot(rq->hdr, rq->posted, rq->mask + 1, rq->stride);
	struct urn_abi_sge *sge = (void *)(w + 1);
	uint64_t wr_id = (uint64_t)rq->posted << 8 | buf;
	uint32_t sges = sim_between(rng, 1, SIM_SGES);
	bool wrong = rq->wrong_key && sim_on(n->s, SIM_BADKEY) && sim_one_in(rng, 32);

	w->wr_id = wr_id;
	w->num_sge = sges;
	for (uint32_t i = 0; i < sges; i++) {
		uint32_t part = i + 1 == sges ? left : sim_rnd(rng, left + 1);

		sge[i] = (struct urn_abi_sge){SIM_VA + at, wrong ? rq->wrong_key : rq->key, part};
		at += part;
		left -= part;
	}
	n->s->stats.fired[SIM_BADKEY] += wrong;
	rq->busy |= 1ull << buf;
	rq->posted++;
	if (rq->ud)
		; /* the model has no receives of datagrams */
	else if (rq->shared)
		model_post_srq(n->s->model, rq->m, wr_id, off, len, wrong ? MODEL_NO_KEY : rq->m_key);
	else
		model_post_recv(n->s->model, rq->m, wr_id, off, len, rq->m_key);
	atomic_store_explicit(&rq->hdr->prod, rq->posted, memory_order_release);
	if (!rq->shared && atomic_load_explicit(&rq->hdr->ring, memory_order_relaxed)) {
		urn_abi_db_ring(rq->bells, rq->db);
		sim_node_wake(n, n->s->now);
	}
}

void
sim_rq_post(struct sim_node *n, struct sim_rq *rq, struct sim_rng *rng, bool all)
{
	struct sim *s = n->s;
	bool storm = sim_on(s, SIM_RNR) && !s->winding_up && !all;

	if (rq->over || s->now < rq->due)
		return;
	for (uint32_t buf = 0; buf < rq->bufs; buf++) {
		uint32_t len = rq->len;

		if ((rq->busy >> buf & 1) || (storm && sim_one_in(rng, 2)))
			continue;
		if (sim_on(s, SIM_SHORT) && !rq->shared && !rq->ud && sim_one_in(rng, 24)) {
			len = sim_rnd(rng, len);
			s->stats.fired[SIM_SHORT]++;
		}
		post_recv(n, rq, buf, len, rng);
	}
	rq->due = s->now;
	if (storm) {
		rq->due += sim_one_in(rng, 3) ? sim_rnd(rng, 3000000) : sim_rnd(rng, 100000);
		s->stats.fired[SIM_RNR]++;
	}
}

void
sim_modify(struct sim_node *n, struct urn_qp *qp, uint8_t state, uint32_t mask,
	   struct urn_abi_qp_attr *a)
{
	struct urn_abi_qp_attr none = {0};
	char why[160] = "";
	int rc;

	a = a ? a : &none;
	a->state = state;
	rc = n->host ? sim_host_modify(qp, mask | URN_QPM_STATE, a, why, sizeof(why))
		     : urn_qp_modify(n->tp, qp, mask | URN_QPM_STATE, a, why, sizeof(why));
	if (rc != 0)
		sim_fail(n->s, "node %u: a QP could not be modified: error %d, %s", n->id, rc, why);
}

/* ---- opening */

static void
take_events(void *ctx)
{
	struct sim_node *n = ctx;
	struct urn_tp *tp = n->tp;

	for (unsigned int i = 0; i < tp->event_n; i++)
		sim_event(n, tp->event[i].ev.type, tp->event[i].ev.handle);
	tp->event_n = 0;
}

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	const struct sim_node *n = ctx;
	unsigned int to = gid[15] - 1u;

	if (to >= n->s->plan.nodes)
		return -2;
	if (n->s->now < n->s->node[to].unknown_until)
		return -1;
	if (sim_neigh_asked(n, &n->s->node[to]) != 0)
		return sim_neigh_asked(n, &n->s->node[to]);
	memcpy(mac, n->s->node[to].mac, 6);
	return 0;
}

static struct urn_ah *
find_ah(void *ctx, uint32_t id)
{
	struct sim_node *n = ctx;

	return id >= 1 && id <= n->s->plan.nodes ? &n->ah[id - 1] : NULL;
}

static void
open_ah(struct sim_node *n)
{
	for (unsigned int to = 0; to < n->s->plan.nodes; to++) {
		const struct sim_node *peer = &n->s->node[to];
		struct urn_path path = {.sport = (uint16_t)(0xd000 + n->id), .ttl = 64};
		struct urn_ah *ah = &n->ah[to];

		memset(ah, 0, sizeof(*ah));
		memcpy(path.smac, n->mac, 6);
		memcpy(path.dmac, n->mac, 6);
		memcpy(path.sgid, n->gid, 16);
		memcpy(path.dgid, peer->gid, 16);
		urn_tmpl_init(&ah->tmpl, &path);
		memcpy(ah->av.dgid, peer->gid, 16);
		ah->pd = n->pd;
		ah->loop = to == n->id;
	}
}

/* Set a node's addresses, before any node is opened: each knows the others'. */
static void
address(struct sim_node *n, bool ipv6)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 0};
	static const uint8_t v6[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0};

	memset(n->mac, 0, sizeof(n->mac));
	n->mac[0] = 2;
	memcpy(n->gid, ipv6 ? v6 : v4, 16);
	if (ipv6 && n->s->plan.clients)
		n->gid[8] = 0; /* made from the MAC address like an adapter's */
	n->mac[5] = n->gid[15] = (uint8_t)(n->id + 1);
}

static void
open_transport(struct sim_node *n)
{
	struct sim *s = n->s;
	struct urn_memx_config x = {.pending = 1024,
				    .delay_polls = s->sc->late_polls ? s->sc->late_polls : 20,
				    .delay_percent = 40,
				    .foreign = s->plan.gate,
				    .max_pds = SIM_PDS};
	struct urn_tp_config c = {
		.pool = n->pool,
		.gids = 1,
		.mtu = 4096,
		.icrc = true,
		.max_qp = SIM_ENDS,
		.work = s->plan.work,
		.window = s->plan.window,
		.kept = s->plan.kept,
		.repairs = SIM_ENDS,
		.rto_floor = sim_link_rto_floor(s),
		.features = sim_link_offer(n),
		.gsi = true,
		.learn = sim_link_features,
		.learn_ctx = n,
		.neigh = neigh,
		.neigh_ctx = n,
		.ah = find_ah,
		.ah_ctx = n,
		.take_events = take_events,
		.cq_broken = sim_cq_broken,
		.give_ctx = n,
	};

	if (sim_on(s, SIM_LATE)) {
		x.delay_seed = s->seed * SIM_NODES + n->id + 1;
		s->stats.fired[SIM_LATE]++;
	}
	if (sim_on(s, SIM_FAIL) && n->id == s->seed % s->plan.nodes) {
		x.fail_per_million = 2000;
		x.delay_seed = s->seed * SIM_NODES + n->id + 1;
		x.delay_percent = sim_on(s, SIM_LATE) ? x.delay_percent : 0;
		model_memory_fails(s->model, n->id);
		s->stats.fired[SIM_FAIL]++;
	}
	c.mem = n->mem = urn_mem_create(16 * SIM_ENDS, SIM_PDS);
	c.memx = n->memx = urn_memx_create(&x);
	memcpy(c.mac, n->mac, 6);
	memcpy(c.gid[0], n->gid, 16);
	n->tp = n->mem && n->memx ? urn_tp_create(&c, s->now) : NULL;
	if (!n->tp || urn_mem_alloc_pd(n->mem, &n->pd) != 0)
		sim_fail(s, "node %u: no memory", n->id);
}

/* Open a bare transport: the simulation plays adapter, engine and client. */
static void
open_bare(struct sim_node *n, uint32_t cqes)
{
	open_transport(n);
	n->key_all = sim_node_region(n, NULL, 0, n->ram_size,
				     URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE |
					     URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC |
					     URN_ACCESS_MW_BIND,
				     &n->m_all);
	sim_spaces_open(n);
	open_cq(n, &n->scq, sim_cq_entries(n, false, cqes));
	open_cq(n, &n->rcq, sim_cq_entries(n, true, cqes));
	sim_cqs_open(n);
	open_ah(n);
	memset(n->db->leaf, 0, SIM_ENDS / 8 + 8);
	memset(n->db->top, 0, sizeof(n->db->top));
	n->scan = (struct urn_db_scan){.db = n->db, .tops = 1, .top = UINT32_MAX};
}

void
sim_node_open(struct sim *s, unsigned int id, uint32_t ram)
{
	struct sim_node *n = &s->node[id];
	uint32_t cqes = 512, ends = 2 * s->plan.pairs + 1;

	n->s = s;
	n->id = id;
	n->ram_size = ram;
	n->ram_used = 0;
	memset(n->ram, 0xc5, ram);
	model_memory(s->model, id, n->ram, ram);
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		s->node[i].s = s;
		s->node[i].id = i;
		address(&s->node[i], s->plan.ipv6);
	}
	sim_link_open(n);
	while (cqes < ends * (s->plan.slots + s->plan.bufs) + SIM_BUFS + SIM_SLOTS)
		cqes *= 2;
	n->host = NULL;
	n->scq.broken = n->rcq.broken = false;
	n->pool = n->bare_pool;
	if (s->plan.clients)
		sim_host_open(n, cqes);
	else
		open_bare(n, cqes);
	/* Half of the seeds: as between two adapters of one engine. */
	if (s->seed % 2 && !urn_tp_unseal(n->tp))
		sim_fail(s, "node %u: its frames cannot be without ICRC", id);
	n->dbs = n->hogged = n->dying_n = n->came = 0;
	n->rx_in = n->rx_out = 0;
	n->slow_in = n->slow_out = 0;
	n->due = n->last = n->prog_due = s->now;
	n->asleep_until = n->unknown_until = 0;
	n->hung = false;
	memset(&n->srq, 0, sizeof(n->srq));
	memset(&n->srq_q, 0, sizeof(n->srq_q));
	n->srq_pd = n->srq_key = 0;
	memset(&n->ud, 0, sizeof(n->ud));
	n->ends = NULL;
	memset(n->by_qpn, 0, sizeof(n->by_qpn));
	n->counter_off = sim_node_alloc(n, 8, 8);
	memset(n->ram + n->counter_off, 0, 8);
	model_wrote(s->model, id, n->counter_off, 8);
	model_counter(s->model, id, n->counter_off);
}

/* ---- turns */

void
sim_node_wake(struct sim_node *n, uint64_t at)
{
	uint64_t soonest = n->last + n->s->plan.turn_ns[n->id];

	if (at < soonest)
		at = soonest;
	if (at < n->asleep_until)
		at = n->asleep_until;
	if (at < n->due)
		n->due = at;
}

static unsigned int
doorbells(struct sim_node *n)
{
	uint32_t id[URN_TP_BURST];
	unsigned int k;

	if (!urn_db_any(&n->scan))
		return 0;
	k = urn_db_take(&n->scan, id, URN_TP_BURST);
	for (unsigned int i = 0; i < k; i++)
		if (id[i] < n->dbs && n->by_db[id[i]])
			urn_tp_doorbell(n->tp, n->by_db[id[i]]);
	return k;
}

static void
receive(struct sim_node *n)
{
	struct rte_mbuf *m[URN_TP_BURST];
	struct urn_tp *tp = n->tp;
	unsigned int k = 0;

	while (k < URN_TP_BURST && n->rx_out != n->rx_in)
		m[k++] = n->rx[n->rx_out++ % SIM_RX];
	n->came = k;
	for (unsigned int i = 0; i < k; i++)
		sim_note_frame(n->s, n->id, "rx", m[i]);
	if (k)
		urn_tp_rx(tp, m, k, false);
	rte_pktmbuf_free_bulk(tp->other, tp->other_n);
	rte_pktmbuf_free_bulk(tp->handover, tp->handover_n);
	tp->other_n = tp->handover_n = 0;
}

/* Plan the node's next turn, for the case that no frame comes. */
static void
plan_turn(struct sim_node *n)
{
	const struct urn_tp *tp = n->tp;
	uint64_t timer;

	n->due = UINT64_MAX;
	if (urn_tp_busy(tp) || n->came || n->rx_in != n->rx_out || urn_db_any(&n->scan))
		sim_node_wake(n, n->last);
	if (urn_memx_holds(n->memx, NULL) > sim_spaces_hold(n) || n->dying_n)
		sim_node_wake(n, n->last + 1000);
	sim_node_wake(n, sim_spaces_next(n));
	sim_node_wake(n, n->walk_at);
	timer = urn_wheel_next(&tp->wheel);
	if (timer != UINT64_MAX)
		sim_node_wake(n, timer);
	if (tp->neigh_head)
		sim_node_wake(n, tp->neigh_next);
}

void
sim_node_turn(struct sim_node *n)
{
	struct urn_tp *tp = n->tp;
	struct sim *s = n->s;
	unsigned int rung;

	if (n->host) {
		sim_host_turn(n);
		return;
	}
	sim_link_turn(n, n->last);
	n->last = s->now;
	/* Turns without work are left out: so we must say, as an engine would, when the node really hung. */
	if (n->hung)
		urn_tp_stood(tp, s->now);
	n->hung = false;
	sim_spaces_work(n);
	urn_tp_turn(tp, s->now);
	sim_cqs_walk(n);
	rung = doorbells(n);
	tp->quiet = !n->came && !rung;
	if (tp->sched.head)
		urn_tp_tx(tp);
	for (unsigned int i = 0; i < tp->tx_n; i++)
		sim_note_frame(s, n->id, "tx", tp->tx[i]);
	if (tp->tx_n)
		sim_net_send(s, n->id, tp->tx, tp->tx_n);
	tp->tx_n = 0;
	receive(n);
	take_events(n);
	if (n->dying_n)
		sim_node_bury(n);
	plan_turn(n);
	if (sim_cq_waits(&n->scq) || sim_cq_waits(&n->rcq)) {
		uint64_t at = s->now + sim_rnd(&s->rng, 2000);

		if (at < n->prog_due)
			n->prog_due = at;
	}
}
