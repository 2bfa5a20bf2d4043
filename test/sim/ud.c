/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams: one QP for each node, sending to those of any node. */
#include "sim.h"

#include "packet/bare.h"

#include <stdlib.h>

enum { SLOTS = 8, QKEY = 0x12345678, GRH = 40 };

static uint32_t
sq_stride(void)
{
	return urn_abi_sq_stride(SIM_SGES, SIM_INLINE);
}

/* Room of a datagram, bytes: the port's MTU, which no path MTU limits. */
static uint32_t
room(const struct sim *s)
{
	return s->plan.max_len < 4096 ? s->plan.max_len : 4096;
}

void
sim_ud_open(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_ud *u = &n->ud;
	struct urn_abi_qp_attr a = {.port_num = 1, .qkey = QKEY};
	struct sim_space *sp = sim_space_draw(n, 3250 + n->id);
	struct urn_qp_config c = {
		.type = URN_QPT_UD,
		.pd = sp ? sp->pd : n->pd,
		.db = n->dbs,
		.send_cq = &n->scq.cq,
		.recv_cq = &n->rcq.cq,
	};

	if (s->plan.datagrams == 0)
		return;
	u->rng = sim_rng_of(s->seed, 2000 + n->id);
	u->left = s->plan.datagrams;
	u->slot_off = sim_node_alloc(n, SLOTS * (room(s) + SIM_GUARD), 8);
	u->sq = sim_queue(SLOTS, sq_stride());
	sim_rq_open(n, &u->rq, s->plan.bufs, GRH + room(s), true);
	u->rq.ud = true;
	u->rq.key = u->key = sp ? sp->key_all : n->key_all;
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		n->ah[i].pd = c.pd;
	u->rq.db = n->dbs;
	c.sq = bare_sq(u->sq, SLOTS, SIM_SGES, SIM_INLINE);
	c.rq = bare_rq(u->rq.hdr, u->rq.mask + 1, SIM_SGES);
	if (urn_qp_create(n->tp, &c, &u->qp) != 0) {
		sim_fail(s, "node %u: a UD QP could not be made", n->id);
		return;
	}
	n->by_db[n->dbs++] = u->qp;
	for (uint8_t state = URN_QPS_INIT; state <= URN_QPS_RTS; state++)
		sim_modify(n, u->qp, state, bare_qp_mask(URN_QPT_UD, state), &a);
}

static void
post_one(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_ud *u = &n->ud;
	struct sim_node *to = &s->node[sim_rnd(&u->rng, s->plan.nodes)];
	uint32_t len = sim_rnd(&u->rng, room(s) + 1), seed = (uint32_t)sim_rng_next(&u->rng);
	uint32_t off = u->slot_off + (u->posted % SLOTS) * (room(s) + SIM_GUARD);
	struct urn_abi_swqe *w = bare_slot(u->sq, u->posted, SLOTS, sq_stride());
	struct urn_abi_sge *sge = (void *)(w + 1);

	sim_fill(n->ram + off, seed, 0, len);
	model_wrote(s->model, n->id, off, len);
	memset(w, 0, sizeof(*w));
	w->wr_id = u->posted;
	w->opcode = URN_WR_SEND_IMM;
	w->flags = URN_WRF_SIGNALED;
	w->imm = model_datagram(s->model, u->qp->qpn, to->id, to->ud.qp->qpn, len, seed);
	w->ud.ah = to->id + 1;
	w->ud.remote_qpn = to->ud.qp->qpn;
	w->ud.remote_qkey = QKEY;
	if (len <= SIM_INLINE && sim_one_in(&u->rng, 2)) {
		w->flags |= URN_WRF_INLINE;
		w->ud.inline_len = len;
		memcpy(sge, n->ram + off, len);
	} else {
		uint32_t half = sim_rnd(&u->rng, len + 1);

		w->num_sge = 2;
		sge[0] = (struct urn_abi_sge){SIM_VA + off, u->key, half};
		sge[1] = (struct urn_abi_sge){SIM_VA + off + half, u->key, len - half};
	}
	sim_note(s, (int)n->id, "datagram", u->posted, to->id, len);
	u->posted++;
	u->left--;
	atomic_store_explicit(&u->sq->prod, u->posted, memory_order_release);
}

void
sim_ud_post(struct sim_node *n)
{
	struct sim_ud *u = &n->ud;
	struct sim *s = n->s;

	if (!u->qp)
		return;
	sim_rq_post(n, &u->rq, &u->rng, true);
	if (u->over || s->now < u->due)
		return;
	for (uint32_t k = sim_between(&u->rng, 1, 4); k && u->left && u->posted - u->done < SLOTS; k--)
		post_one(n);
	urn_abi_db_ring(n->db, u->qp->source.db);
	sim_node_wake(n, s->now);
	u->due = s->now + sim_rnd(&u->rng, 20000);
}

void
sim_ud_sent(struct sim_node *n, const struct urn_abi_cqe *c)
{
	struct sim_ud *u = &n->ud;
	bool fails = sim_on(n->s, SIM_FAIL) && c->status == URN_WC_LOC_PROT_ERR;
	bool flush = (u->over || n->s->winding_up) && c->status == URN_WC_WR_FLUSH_ERR;

	if (c->wr_id != u->done || u->done == u->posted)
		sim_fail(n->s, "node %u: datagram %llu completed, and it is the turn of %u", n->id,
			 (unsigned long long)c->wr_id, u->done);
	else if (c->status != URN_WC_SUCCESS && !fails && !flush)
		sim_fail(n->s, "node %u: datagram %u failed with status %u, for no reason", n->id,
			 u->done, c->status);
	u->done++;
	if (c->status != URN_WC_SUCCESS) {
		u->over = true;
		u->left = 0;
	}
}

void
sim_ud_received(struct sim_node *n, const struct urn_abi_cqe *c)
{
	struct sim *s = n->s;
	struct sim_rq *rq = &n->ud.rq;
	uint32_t buf = c->wr_id & 0xff, off = rq->off + buf * (rq->len + SIM_GUARD);
	const struct model_completion mc = {.imm = c->imm, .src = c->src_qp, .byte_len = c->byte_len};
	const char *why = NULL;

	if (buf >= rq->bufs || !(rq->busy >> buf & 1)) {
		sim_fail(s, "node %u: a receive of datagrams completed twice", n->id);
		return;
	}
	rq->busy &= ~(1ull << buf);
	if (c->status == URN_WC_SUCCESS) {
		n->ud.came++;
		s->stats.datagrams++;
		why = model_datagram_came(s->model, n->id, n->ud.qp->qpn, off, &mc, sim_on(s, SIM_DUP));
	} else if ((c->status == URN_WC_LOC_PROT_ERR && sim_on(s, SIM_FAIL)) ||
		   (c->status == URN_WC_WR_FLUSH_ERR && s->winding_up)) {
		model_wrote(s->model, n->id, off, rq->len); /* the buffer may hold a datagram, or a part of one */
	} else {
		sim_fail(s, "node %u: a receive of a datagram failed with status %u, for no reason", n->id,
			 c->status);
	}
	if (why)
		sim_fail(s, "node %u: %s", n->id, why);
}
