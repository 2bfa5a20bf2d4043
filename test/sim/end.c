/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected pairs of QPs: making them, their programs' handling of completions, taking them down. */
#include "host.h"

#include "packet/bare.h"

#include <errno.h>
#include <stdlib.h>

#define REMOTE_RIGHTS (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | URN_ACCESS_REMOTE_ATOMIC)

/* ---- making */

static uint32_t
region(struct sim_end *e, uint32_t off, uint32_t len, uint32_t access, int *m)
{
	return e->space ? sim_space_region(e->node, e->space, off, len, access, m)
			: sim_node_region(e->node, e->client, off, len, access, m);
}

static void
open_memory(struct sim_end *e)
{
	struct sim_node *n = e->node;
	const struct sim_plan *p = &n->s->plan;
	uint32_t slot = ((p->max_len + 7) & ~7u) + SIM_GUARD;

	e->slot_off = sim_node_alloc(n, p->slots * slot, 8);
	e->win_len = (p->max_len + p->max_len / 2 + 15) & ~7u;
	e->win_off = sim_node_alloc(n, e->win_len + SIM_WORDS * 8, 8);
	e->word_off = e->win_off + e->win_len;
	for (uint32_t i = 0; i < SIM_WORDS; i++) {
		uint64_t v = sim_rng_next(&e->rng);

		memcpy(n->ram + e->word_off + 8 * i, &v, 8);
	}
	model_wrote(n->s->model, n->id, e->word_off, SIM_WORDS * 8);
	e->key = region(e, e->win_off, e->win_len + SIM_WORDS * 8,
			URN_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS | URN_ACCESS_MW_BIND, &e->m_key);
	e->local_key = region(e, e->slot_off, p->slots * slot, URN_ACCESS_LOCAL_WRITE, &e->m_local);
}

static uint32_t
pd_of(const struct sim_end *e)
{
	return e->space ? e->space->pd : e->node->pd;
}

static void
bare_queues(struct sim_end *e)
{
	struct sim_node *n = e->node;
	const struct sim_plan *p = &n->s->plan;
	struct urn_qp_config c = {
		.type = URN_QPT_RC,
		.pd = pd_of(e),
		.db = n->dbs,
		.send_cq = &n->scq.cq,
		.recv_cq = sim_one_in(&e->rng, 3) ? &n->scq.cq : &n->rcq.cq,
		.srq = n->srq_q.hdr ? &n->srq : NULL,
	};
	uint32_t entries = 1;

	while (entries < p->slots)
		entries *= 2;
	e->sq_mask = entries - 1;
	e->sq_stride = urn_abi_sq_stride(SIM_SGES, SIM_INLINE);
	e->sq = sim_queue(entries, e->sq_stride);
	c.sq = bare_sq(e->sq, entries, SIM_SGES, SIM_INLINE);
	if (!c.srq) {
		sim_rq_open(n, &e->rq, p->bufs, p->max_len, true);
		e->rq.db = n->dbs;
		e->rq.key = e->key_all;
		e->rq.m_key = e->m_all;
		c.rq = bare_rq(e->rq.hdr, e->rq.mask + 1, SIM_SGES);
	}
	if (urn_qp_create(n->tp, &c, &e->qp) != 0) {
		sim_fail(n->s, "node %u: a QP could not be made", n->id);
		return;
	}
	n->by_db[n->dbs++] = e->qp;
}

/* Let the writes of some ends go on cache lines (AW-3); their bytes must not differ for it (AW-8).
 */
static void
align(struct sim_end *e)
{
	static const uint32_t lines[] = {URN_ALIGN_OFF, 64, 128, 256};
	struct sim_rng rng = sim_rng_of(e->node->s->seed, 7300 + e->id);

	if (e->qp->type == URN_QPT_RC && e->node->s->sc->aligned)
		(void)urn_qp_align_writes(e->qp, lines[sim_rnd(&rng, 4)]);
}

static void
open_queues(struct sim_end *e)
{
	struct sim_node *n = e->node;

	e->client ? sim_client_qp(e) : bare_queues(e);
	if (!e->qp)
		return;
	align(e);
	sim_note(n->s, (int)n->id, "qp", (uint64_t)e->qp->qpn << 32 | e->slot_off,
		 (uint64_t)e->win_off << 32 | e->word_off, e->rq.hdr ? e->rq.off : 0);
	n->by_qpn[e->qp->qpn % URN_TP_QP_CHUNK] = e;
}

void
sim_end_up(struct sim_end *e, uint8_t to, uint32_t dest_qpn, uint32_t rq_psn, uint32_t sq_psn)
{
	const struct sim_plan *p = &e->node->s->plan;
	struct urn_abi_qp_attr a = {
		.port_num = 1,
		.access = REMOTE_RIGHTS,
		.path_mtu = p->mtu_code,
		.dest_qpn = dest_qpn,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.max_rd_atomic = p->rd_atomic,
		.max_dest_rd_atomic = p->dest_rd_atomic,
		.min_rnr_timer = p->min_rnr_timer,
		.timeout = p->timeout,
		.retry_cnt = p->retry_cnt,
		.rnr_retry = p->rnr_retry,
	};

	memcpy(a.av.dgid, e->peer->node->gid, 16);
	a.av.sgid_index = e->client ? sim_client_gid_index(e->client) : 0;
	for (uint8_t state = (uint8_t)(e->qp->state + 1); state <= to; state++)
		sim_modify(e->node, e->qp, state, bare_qp_mask(URN_QPT_RC, state), &a);
}

static void
open_end(struct sim *s, struct sim_end *e, struct sim_node *n, struct sim_end *peer)
{
	memset(e, 0, sizeof(*e));
	e->node = n;
	e->peer = peer;
	e->next = n->ends;
	n->ends = e;
	e->id = (unsigned int)(e - s->end);
	e->rng = sim_rng_of(s->seed, 1000 + e->id);
	e->left = s->plan.ops;
	e->due = s->now + sim_rnd(&e->rng, 20000);
	e->m_win = e->m_before = MODEL_NO_KEY;
	e->client = n->host ? sim_host_client(n, &e->rng) : NULL;
	e->bells = e->client ? e->client->bells : n->db;
	e->space = e->client ? NULL
		   : n->srq_q.hdr && !sim_on(s, SIM_APART) ? n->srq_space
							   : sim_space_draw(n, 3300 + e->id);
	e->key_all = e->client ? e->client->key_all : e->space ? e->space->key_all : n->key_all;
	e->m_all = e->client ? e->client->m_all : e->space ? e->space->m_all : n->m_all;
	open_memory(e);
	open_queues(e);
	e->mw_type = sim_between(&e->rng, 1, 2);
	if ((s->sc->weight[MODEL_BIND]) &&
	    (e->client ? sim_client_window(e->client, e->mw_type, &e->mw_rkey)
		       : urn_mem_alloc_mw(n->mem, pd_of(e), e->mw_type, &e->mw_rkey)) == 0)
		e->window = SIM_WIN_FREE;
}

struct sim_end *
sim_pair_make(struct sim *s, struct sim_node *a, struct sim_node *b)
{
	struct sim_end *e = &s->end[s->ends];
	int srq[2] = {a->srq_q.hdr ? a->srq_q.m : -1, b->srq_q.hdr ? b->srq_q.m : -1};

	s->ends += 2;
	open_end(s, &e[0], a, &e[1]);
	open_end(s, &e[1], b, &e[0]);
	e[0].m = model_pair(s->model, a->id, b->id, 128u << s->plan.mtu_code, srq);
	e[1].m = e[0].m + 1;
	for (int i = 0; i < 2; i++) {
		e[i].rq.m = e[i].m;
		if (sim_on(s, SIM_MOVE) && !s->plan.away_told && e[i].node->id == s->plan.away_node)
			e[i].left = 0;
		if (s->plan.rnr_retry != 7)
			model_rnr_gives_up(s->model, e[i].m);
	}
	return e;
}

void
sim_pair_psn(struct sim_end *e, uint32_t psn[2])
{
	for (int i = 0; i < 2; i++)
		/* In half of the cases the PSN is about to wrap. */
		psn[i] = sim_one_in(&e[i].rng, 2) ? 0xffffffu - sim_rnd(&e[i].rng, 32)
						  : sim_rnd(&e[i].rng, 1u << 24);
}

void
sim_pair_open(struct sim *s, struct sim_node *a, struct sim_node *b)
{
	struct sim_end *e = sim_pair_make(s, a, b);
	uint32_t psn[2];

	sim_pair_psn(e, psn);
	for (int i = 0; i < 2 && !s->why[0]; i++)
		sim_end_up(&e[i], URN_QPS_RTS, e[!i].qp->qpn, psn[!i], psn[i]);
}

/* ---- completions */

static struct model_completion
told(const struct urn_abi_cqe *c)
{
	return (struct model_completion){.wr_id = c->wr_id, .status = c->status, .opcode = c->opcode,
					 .flags = c->wc_flags, .byte_len = c->byte_len,
					 .imm = c->imm, .src = c->src_qp};
}

static void
wrong(struct sim_end *e, const struct urn_abi_cqe *c, const char *why)
{
	sim_fail(e->node->s, "node %u QP 0x%x (pair %u), %s %llu: %s", e->node->id, c->qp_num, e->id / 2,
		 c->opcode & URN_WCO_RECV ? "receive" : "request", (unsigned long long)c->wr_id, why);
}

void
sim_end_gives_up(struct sim_end *e)
{
	if (e->failed)
		return;
	e->failed = true;
	if (e->left > 3)
		e->left = 3;
	e->window = SIM_WIN_NONE;
	/* Programs tell each other of the end, sooner or later. */
	if (!e->peer->failed)
		e->peer->end_at = e->node->s->now +
				  sim_rnd(&e->rng, sim_one_in(&e->rng, 2) ? 1000000 : 100000000) + 1;
	if (e->peer->end_at < e->peer->node->prog_due)
		e->peer->node->prog_due = e->peer->end_at;
}

/*
 * A completion that the program may see from now on says that a key is gone: the operations
 * that the key allowed are done by now, whenever the program looks.
 */
static void
judge_window(struct sim_end *e)
{
	bool waits = (e->window == SIM_WIN_BINDING || e->window == SIM_WIN_ENDING) &&
		     e->bind_seq != UINT32_MAX && e->gone_seq != e->bind_seq + 1;
	int gone = e->window == SIM_WIN_BINDING ? e->m_before : e->m_win;

	if (!waits || !e->qp || (e->qp->state != URN_QPS_RTS && e->qp->state != URN_QPS_SQD) ||
	    (int32_t)(atomic_load(&e->sq->cons) - e->bind_seq) <= 0)
		return;
	e->gone_seq = e->bind_seq + 1;
	if (gone != MODEL_NO_KEY)
		model_key_gone(e->node->s->model, gone);
}

void
sim_windows_judge(struct sim_node *n)
{
	if (n->s->sc->weight[MODEL_BIND])
		for (struct sim_end *e = n->ends; e; e = e->next)
			judge_window(e);
}

/* The window was bound, or invalidated by its owner. */
static void
window_answered(struct sim_end *e, bool ok)
{
	if (!ok)
		e->window = SIM_WIN_NONE;
	else
		e->window = e->window == SIM_WIN_BINDING ? SIM_WIN_BOUND : SIM_WIN_FREE;
}

void
sim_end_sent(struct sim_end *e, const struct urn_abi_cqe *c)
{
	struct sim *s = e->node->s;
	const struct model_completion mc = told(c);
	const char *why = model_sent(s->model, e->m, &mc);
	bool ok = c->status == URN_WC_SUCCESS;

	if (why) {
		wrong(e, c, why);
		return;
	}
	sim_neigh_judge(e, c);
	s->stats.errors += !ok;
	e->done = (uint32_t)c->wr_id + 1;
	if ((e->window == SIM_WIN_BINDING || e->window == SIM_WIN_ENDING) && e->bind_seq != UINT32_MAX &&
	    e->done > e->bind_seq)
		window_answered(e, ok);
	if (!ok) {
		e->ended_itself = true;
		sim_event_refused(e, c);
		sim_end_gives_up(e);
	}
	if (e->due < s->now)
		e->due = s->now;
}

void
sim_end_received(struct sim_end *e, const struct urn_abi_cqe *c)
{
	struct sim *s = e->node->s;
	struct sim_rq *rq = e->rq.hdr ? &e->rq : &e->node->srq_q;
	const struct model_completion mc = told(c);
	const char *why = model_received(s->model, e->m, &mc);

	if (why) {
		wrong(e, c, why);
		return;
	}
	rq->busy &= ~(1ull << (c->wr_id & 0xff));
	if (c->status != URN_WC_SUCCESS) {
		e->ended_itself |= c->status != URN_WC_WR_FLUSH_ERR;
		s->stats.errors += !s->winding_up;
		if (!rq->shared)
			rq->over = true;
		sim_end_gives_up(e);
	} else if (c->wc_flags & URN_WCF_WITH_INV) {
		/* The peer has invalidated our window. */
		model_key_gone(s->model, e->m_win);
		if (e->window == SIM_WIN_ENDING)
			e->window = SIM_WIN_FREE;
	}
}

void
sim_end_ended(struct sim_end *e)
{
	if (!e->qp || e->qp->state == URN_QPS_ERR)
		return;
	e->ended_itself |= !e->node->s->winding_up;
	model_ended(e->node->s->model, e->m);
	sim_modify(e->node, e->qp, URN_QPS_ERR, 0, NULL);
	sim_node_wake(e->node, e->node->s->now);
}

/* ---- taking down */

void
sim_end_close(struct sim_end *e)
{
	struct sim_node *n = e->node;
	struct sim *s = n->s;
	struct urn_mem_dead dead;

	if (e->client) {
		sim_client_close_end(e);
		return;
	}
	sim_event_close(e);
	if (e->qp) {
		if (!sim_qp_stop(n, e->qp)) {
			sim_fail(s, "node %u QP 0x%x: packets wait for memory for ever", n->id,
				 e->qp->qpn);
			return;
		}
		if (e->qp->tx.head || e->qp->recv || e->qp->rx.ooo_count || urn_timer_started(&e->qp->tx.timer))
			sim_fail(s, "node %u QP 0x%x: something of it is left", n->id, e->qp->qpn);
		n->by_qpn[e->qp->qpn % URN_TP_QP_CHUNK] = NULL;
		urn_qp_destroy(n->tp, e->qp);
		e->qp = NULL;
	}
	if (e->mw_rkey && urn_mem_kill_mw(n->mem, e->mw_rkey, &dead) == 0)
		urn_mem_free_mw(n->mem, &dead);
	else if (e->mw_rkey)
		sim_fail(s, "node %u: a window could not be taken away", n->id);
	if (!e->key_dead && e->key)
		sim_node_deregister(n, e->key, e->m_key);
	if (!e->local_dead && e->local_key)
		sim_node_deregister(n, e->local_key, e->m_local);
	while (n->dying_n) { /* no operation is left */
		if (!urn_memx_holds(n->memx, n->dying[n->dying_n - 1].region)) {
			urn_mem_free_mr(n->mem, n->dying[--n->dying_n].region);
		} else if (!sim_node_poll(n)) {
			sim_fail(s, "node %u: a region is held for ever", n->id);
			break;
		}
	}
	free(e->sq);
	free(e->rq.hdr);
	e->sq = e->rq.hdr = NULL;
}
