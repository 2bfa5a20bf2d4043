/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of connected QPs: the requests that they post. */
#include "sim.h"

#include "packet/bare.h"

static uint32_t
some_len(struct sim_end *e, uint32_t max)
{
	static const uint32_t edge[] = {0, 1, 7, 8, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097};
	struct sim_rng *r = &e->rng;
	uint32_t len;

	switch (sim_rnd(r, 4)) {
	case 0:
		len = edge[sim_rnd(r, sizeof(edge) / sizeof(edge[0]))];
		break;
	case 1:
		len = sim_rnd(r, 64);
		break;
	case 2:
		len = sim_rnd(r, 3000);
		break;
	default:
		len = sim_rnd(r, max + 1);
		break;
	}
	return len <= max ? len : max;
}

/* True when none of the end's requests is incomplete. */
static bool
is_idle(const struct sim_end *e)
{
	return e->posted == e->done;
}

/*
 * True when a program ends a window while its peer uses the window. In a scenario about only that,
 * mostly when memory operations are in flight.
 */
static bool
dares(struct sim_end *e)
{
	const struct sim *s = e->node->s;

	return sim_on(s, SIM_STALE) &&
	       (!s->sc->late_polls || urn_memx_holds(e->node->memx, NULL) || sim_one_in(&e->rng, 16));
}

static bool
may_post(struct sim_end *e, enum model_op op)
{
	const struct sim_end *peer = e->peer;

	switch (op) {
	case MODEL_SEND_INV:
		return peer->window == SIM_WIN_BOUND && peer->mw_type == 2;
	case MODEL_BIND:
		return e->window == SIM_WIN_FREE ||
		       (e->window == SIM_WIN_BOUND && e->mw_type == 1 &&
			(is_idle(peer) || dares(e)));
	case MODEL_LOCAL_INV:
		return e->window == SIM_WIN_BOUND && e->mw_type == 2 &&
		       (is_idle(peer) || dares(e));
	default:
		return true;
	}
}

static enum model_op
some_op(struct sim_end *e)
{
	const uint8_t *weight = e->node->s->sc->weight;
	uint32_t total = 0, pick;

	for (unsigned int i = 0; i < MODEL_OPS; i++)
		total += weight[i];
	for (unsigned int tries = 0; tries < 8; tries++) {
		unsigned int op = 0;

		pick = sim_rnd(&e->rng, total);
		while (pick >= weight[op])
			pick -= weight[op++];
		if (may_post(e, op))
			return op;
	}
	return MODEL_WRITE;
}

/* ---- drafting a request */

struct draft {
	struct model_request r;
	uint32_t lkey, rkey; /* the product's keys */
	uint32_t new_rkey;   /* bind */
	uint8_t wr_op;       /* enum urn_abi_wr_op */
};

/* Choose the peer's key and the target of a request. */
static void
aim(struct sim_end *e, struct draft *d)
{
	struct sim_end *peer = e->peer;
	struct sim *s = e->node->s;
	bool window = peer->window == SIM_WIN_BOUND && sim_one_in(&e->rng, s->sc->late_polls ? 1 : 2);
	bool stale = sim_on(s, SIM_STALE) && peer->m_win != MODEL_NO_KEY && peer->mw_type == 2 &&
		     (peer->window == SIM_WIN_ENDING || peer->window == SIM_WIN_FREE) &&
		     sim_one_in(&e->rng, 12);
	uint32_t room = peer->win_len;

	if (window || stale) {
		d->rkey = peer->mw_rkey;
		d->r.rkey = peer->m_win;
		room = peer->mw_len < room ? peer->mw_len : room;
		s->stats.fired[SIM_STALE] += stale;
	} else {
		d->rkey = peer->key;
		d->r.rkey = peer->m_key;
	}
	if (d->r.op >= MODEL_CMP_SWAP && d->r.op <= MODEL_FETCH_ADD) {
		d->r.remote = peer->word_off + 8 * sim_rnd(&e->rng, SIM_WORDS);
		if ((window || stale) && peer->mw_len < peer->win_len + SIM_WORDS * 8) {
			d->rkey = peer->key;
			d->r.rkey = peer->m_key;
		}
		return;
	}
	if (d->r.len > room)
		d->r.len = room;
	d->r.remote = peer->win_off + sim_rnd(&e->rng, room - d->r.len + 1);
}

static void
draft_atomic(struct sim_end *e, struct draft *d)
{
	struct sim_node *to = e->peer->node;
	uint64_t v;

	d->r.len = 8;
	if (d->r.op == MODEL_COUNT) {
		d->wr_op = URN_WR_FETCH_ADD;
		d->r.add = 1;
		d->r.remote = to->counter_off;
		d->rkey = e->peer->key_all;
		d->r.rkey = e->peer->m_all;
		return;
	}
	aim(e, d);
	d->r.swap = sim_rng_next(&e->rng);
	d->r.add = sim_rng_next(&e->rng);
	if (d->r.op == MODEL_FETCH_ADD) {
		d->wr_op = URN_WR_FETCH_ADD;
		return;
	}
	d->wr_op = URN_WR_CMP_SWAP;
	memcpy(&v, to->ram + d->r.remote, 8); /* often the present value */
	if (!sim_one_in(&e->rng, 3))
		d->r.add = v;
}

static void
draft_window(struct sim_end *e, struct draft *d)
{
	struct sim *s = e->node->s;

	d->r.signalled = true;
	e->bind_seq = e->posted;
	if (d->r.op == MODEL_LOCAL_INV) {
		s->stats.fired[SIM_STALE] += !is_idle(e->peer);
		d->wr_op = URN_WR_LOCAL_INV;
		d->rkey = e->mw_rkey;
		d->r.rkey = e->m_win;
		e->window = SIM_WIN_ENDING;
		return;
	}
	e->m_before = e->window == SIM_WIN_BOUND ? e->m_win : MODEL_NO_KEY;
	if (e->m_before != MODEL_NO_KEY) { /* bound again: requests with the old key may come too late */
		model_key_dead(s->model, e->m_before);
		s->stats.fired[SIM_STALE] += !is_idle(e->peer);
	}
	d->wr_op = e->mw_type == 1 ? URN_WR_BIND_MW1 : URN_WR_BIND_MW;
	d->rkey = e->mw_rkey;
	d->new_rkey = (e->mw_rkey & ~0xffu) | ((e->mw_rkey + 1 + sim_rnd(&e->rng, 8)) & 0xff);
	e->mw_len = sim_one_in(&e->rng, 2) ? e->win_len + SIM_WORDS * 8 : e->win_len / 2 + 8;
	d->lkey = e->key;
	d->r.lkey = e->m_key;
	d->r.local = e->win_off;
	d->r.len = e->mw_len;
	d->r.add = MODEL_REMOTE_WRITE | MODEL_REMOTE_READ | MODEL_REMOTE_ATOMIC;
	d->r.rkey = e->m_win = model_key(s->model, e->node->id, e->win_off, 0, 0);
	e->mw_rkey = d->new_rkey;
	e->window = SIM_WIN_BINDING;
}

static void
draft_send(struct sim_end *e, struct draft *d)
{
	d->wr_op = d->r.op == MODEL_SEND ? URN_WR_SEND
		   : d->r.op == MODEL_SEND_IMM ? URN_WR_SEND_IMM
					       : URN_WR_SEND_INV;
	d->r.rkey = MODEL_NO_KEY;
	if (d->r.op == MODEL_SEND_INV) {
		d->rkey = d->r.imm = e->peer->mw_rkey;
		d->r.rkey = e->peer->m_win;
		e->peer->window = SIM_WIN_ENDING;
		e->peer->bind_seq = UINT32_MAX; /* the peer's program is told by a receive */
		/* Earlier READs need the fence, all the more where their responses may be dropped. */
		d->r.fence |= !sim_one_in(&e->rng, 8) || sim_on(e->node->s, SIM_FOREIGN);
	}
}

/* A type 2 window that is bound to another QP of the peer's node, in the same protection domain. */
static const struct sim_end *
others_window(const struct sim_end *e)
{
	const struct sim_end *o = e->peer->node->ends;

	while (o && (o == e->peer || o->window != SIM_WIN_BOUND || o->mw_type != 2 || o->space != e->peer->space ||
		     o->client != e->peer->client))
		o = o->next;
	return o;
}

/* Use a key that is alive, but not for this QP (IBTA 10.6.7.2.2). */
static void
use_others_window(struct sim_end *e, struct draft *d)
{
	const struct sim_end *o = others_window(e);

	if (!o || !d->r.len)
		return;
	d->rkey = o->mw_rkey;
	d->r.rkey = MODEL_NO_KEY;
	d->r.remote = o->win_off;
	if (d->r.len > o->mw_len)
		d->r.len = o->mw_len;
	e->node->s->stats.others++;
}

/* Spoil a request, as a program that errs. */
static void
spoil(struct sim_end *e, struct draft *d)
{
	struct sim *s = e->node->s;
	bool remote = d->r.op >= MODEL_WRITE && d->r.op <= MODEL_FETCH_ADD;

	if (!sim_on(s, SIM_BADKEY) || d->r.op == MODEL_SEND_INV || d->r.op >= MODEL_COUNT)
		return;
	if (remote && others_window(e) && sim_one_in(&e->rng, 16)) {
		use_others_window(e, d);
		return;
	}
	if (!sim_one_in(&e->rng, 40))
		return;
	s->stats.fired[SIM_BADKEY]++;
	switch (sim_rnd(&e->rng, 3)) {
	case 0:
		d->lkey ^= 0x5500;
		d->r.lkey = MODEL_NO_KEY;
		break;
	case 1:
		if (remote) {
			d->rkey ^= 0x5500;
			d->r.rkey = MODEL_NO_KEY;
		}
		break;
	default: /* one byte behind the end */
		if (remote && d->r.len && d->r.op <= MODEL_READ) {
			d->rkey = e->peer->key;
			d->r.rkey = e->peer->m_key;
			d->r.remote = e->peer->word_off + SIM_WORDS * 8 - d->r.len + 1;
		}
		break;
	}
}

static void
draft_request(struct sim_end *e, struct draft *d)
{
	const struct sim_plan *p = &e->node->s->plan;
	uint32_t slot = ((p->max_len + 7) & ~7u) + SIM_GUARD;
	bool last = e->posted % p->slots == p->slots - 1 || e->left == 1;

	memset(d, 0, sizeof(*d));
	d->r.op = (uint8_t)some_op(e);
	d->r.wr_id = e->posted;
	d->r.local = e->slot_off + (e->posted % p->slots) * slot;
	d->r.seed = (uint32_t)sim_rng_next(&e->rng);
	d->r.imm = (uint32_t)sim_rng_next(&e->rng);
	d->r.signalled = last || !sim_one_in(&e->rng, 3);
	d->r.fence = sim_one_in(&e->rng, 4);
	d->r.len = some_len(e, p->max_len);
	d->lkey = sim_one_in(&e->rng, 2) ? e->local_key : e->key_all;
	d->r.lkey = d->lkey == e->local_key ? e->m_local : e->m_all;
	if (d->r.op >= MODEL_BIND) {
		draft_window(e, d);
	} else if (d->r.op >= MODEL_CMP_SWAP) {
		draft_atomic(e, d);
	} else if (d->r.op >= MODEL_WRITE) {
		aim(e, d);
		d->wr_op = d->r.op == MODEL_WRITE ? URN_WR_RDMA_WRITE
			   : d->r.op == MODEL_WRITE_IMM ? URN_WR_RDMA_WRITE_IMM
							: URN_WR_RDMA_READ;
	} else {
		draft_send(e, d);
	}
	d->r.in_line = d->r.op <= MODEL_WRITE_IMM && d->r.len <= SIM_INLINE && sim_one_in(&e->rng, 2);
	spoil(e, d);
}

/* ---- posting it */

/* Cut a request into elements of odd lengths, some of them empty. */
static uint8_t
cut(struct sim_end *e, const struct draft *d, struct urn_abi_sge *sge)
{
	uint32_t n = sim_between(&e->rng, 1, SIM_SGES), at = d->r.local, left = d->r.len;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? left : sim_one_in(&e->rng, 4) ? 0 : sim_rnd(&e->rng, left + 1);

		sge[i] = (struct urn_abi_sge){SIM_VA + at, part ? d->lkey : 0xdead, part};
		at += part;
		left -= part;
	}
	return (uint8_t)n;
}

static void
fill_body(struct sim_end *e, const struct draft *d, struct urn_abi_swqe *w)
{
	struct sim_node *n = e->node;

	if (d->r.op <= MODEL_WRITE_IMM)
		sim_fill(n->ram + d->r.local, d->r.seed, 0, d->r.len);
	model_wrote(n->s->model, n->id, d->r.local, d->r.len);
	w->rdma.remote_addr = SIM_VA + d->r.remote;
	w->rdma.rkey = d->r.len ? d->rkey : 0xbad;
	w->rdma.compare_add = d->r.add;
	w->rdma.swap = d->r.swap;
	if (d->r.in_line) {
		w->flags |= URN_WRF_INLINE;
		w->rdma.inline_len = d->r.len;
		memcpy(w + 1, n->ram + d->r.local, d->r.len);
		/* The program may use the buffer again at once. */
		memset(n->ram + d->r.local, 0x55, d->r.len);
		model_wrote(n->s->model, n->id, d->r.local, d->r.len);
	} else {
		w->num_sge = cut(e, d, (void *)(w + 1));
	}
}

static void
fill_wqe(struct sim_end *e, const struct draft *d)
{
	struct urn_abi_swqe *w = bare_slot(e->sq, e->posted, e->sq_mask + 1, e->sq_stride);

	memset(w, 0, sizeof(*w));
	w->wr_id = d->r.wr_id;
	w->opcode = d->wr_op;
	w->flags = (uint8_t)((d->r.signalled ? URN_WRF_SIGNALED : 0) | (d->r.fence ? URN_WRF_FENCE : 0) |
			     (sim_one_in(&e->rng, 4) ? URN_WRF_SOLICITED : 0));
	w->imm = d->r.op == MODEL_LOCAL_INV ? d->rkey : d->r.imm;
	if (d->r.op == MODEL_BIND) {
		w->bind.addr = SIM_VA + d->r.local;
		w->bind.length = d->r.len;
		w->bind.mw_rkey = d->rkey;
		w->bind.new_rkey = d->new_rkey;
		w->bind.mr_lkey = d->lkey;
		w->bind.access = URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ |
				 URN_ACCESS_REMOTE_ATOMIC;
	} else if (d->r.op != MODEL_LOCAL_INV) {
		fill_body(e, d, w);
	}
}

static void
post_one(struct sim_end *e)
{
	struct sim *s = e->node->s;
	struct draft d;

	draft_request(e, &d);
	fill_wqe(e, &d);
	model_post(s->model, e->m, &d.r);
	sim_note(s, (int)e->node->id, "post", (uint64_t)e->qp->qpn << 32 | e->posted,
		 (uint64_t)d.r.op << 32 | d.r.len, (uint64_t)d.r.remote << 32 | d.r.local);
	e->posted_at[e->posted % SIM_SLOTS] = s->now;
	e->posted++;
	e->left--;
	atomic_store_explicit(&e->sq->prod, e->posted, memory_order_release);
}

void
sim_end_post(struct sim_end *e)
{
	struct sim *s = e->node->s;
	uint32_t n;

	if (s->now < e->due || e->left == 0 || !e->qp)
		return;
	n = sim_between(&e->rng, 1, 4);
	while (n-- && e->left && e->posted - e->done < s->plan.slots)
		post_one(e);
	urn_abi_db_ring(e->bells, e->qp->source.db);
	sim_node_wake(e->node, s->now);
	e->due = s->now + (sim_one_in(&e->rng, 4) ? sim_rnd(&e->rng, 50000) : sim_rnd(&e->rng, 2000));
}
