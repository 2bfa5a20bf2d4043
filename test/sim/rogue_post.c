/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of a rogue: made, connected to those of others, posted to. */
#include "rogue.h"

#include "packet/bare.h"

/* ---- queue pairs */

void
sim_rogue_make_qp(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_QP};
	struct urn_abi_rep rep;
	struct sim_rogue_qp *q = &r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];

	if (q->qpn)
		return;
	req.create_qp.pd = r->client.pd;
	q->ud = sim_one_in(&r->rng, 5);
	req.create_qp.type = q->ud ? URN_QPT_UD : URN_QPT_RC;
	req.create_qp.send_cq = r->cq[sim_rnd(&r->rng, 2)];
	req.create_qp.recv_cq = r->cq[sim_rnd(&r->rng, 2)];
	req.create_qp.srq = sim_one_in(&r->rng, 3) ? r->srq : 0;
	req.create_qp.sq_sig_all = sim_one_in(&r->rng, 2);
	req.create_qp.cap = (struct urn_abi_qp_cap){sim_between(&r->rng, 1, 16), sim_between(&r->rng, 1, 16),
						    sim_between(&r->rng, 1, 4), 2,
						    sim_rnd(&r->rng, 128)};
	if (sim_rogue_call(r, &req, &rep) != 0)
		return;
	*q = (struct sim_rogue_qp){
		.qpn = rep.handle,
		.db = rep.qp.db,
		.ud = q->ud,
		.sq = (void *)(r->client.c->area.base + rep.qp.sq_off),
		.rq = rep.qp.rq_entries ? (void *)(r->client.c->area.base + rep.qp.rq_off) : NULL,
		.sq_entries = rep.qp.sq_entries,
		.sq_stride = rep.qp.sq_stride,
		.rq_entries = rep.qp.rq_entries,
		.rq_stride = rep.qp.rq_stride,
	};
}

/* QPN of another rogue, or one that does not exist. *gid: its node's GID */
static uint32_t
some_peer(struct sim_node *n, struct sim_rogue *r, const uint8_t **gid)
{
	struct sim *s = n->s;
	struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];
	const struct sim_rogue *peer = &to->host->rogue[sim_rnd(&r->rng, s->plan.rogues)];
	const struct sim_rogue_qp *q = &peer->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];

	*gid = to->gid;
	/* Do not use QPNs of programs that behave: a sender that knows QPN and PSN may break in. */
	return q->qpn && q->ud == false ? q->qpn : 1000 + sim_rnd(&r->rng, 20);
}

static void
bring_up(struct sim_node *n, struct sim_rogue *r, struct sim_rogue_qp *q, uint32_t dest,
	 const uint8_t *gid)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = q->qpn};
	struct urn_abi_qp_attr *a = &req.modify_qp.attr;
	struct urn_abi_rep rep;

	*a = (struct urn_abi_qp_attr){
		.port_num = 1,
		.access = 0xe,
		.path_mtu = n->s->plan.mtu_code,
		.dest_qpn = dest,
		.qkey = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = (uint8_t)sim_between(&r->rng, 0, 9),
		.retry_cnt = (uint8_t)sim_rnd(&r->rng, 8),
		.rnr_retry = (uint8_t)sim_rnd(&r->rng, 8),
	};
	memcpy(a->av.dgid, gid, 16);
	a->av.sgid_index = sim_client_gid_index(&r->client);
	for (a->state = URN_QPS_INIT; a->state <= URN_QPS_RTS; a->state++) {
		req.modify_qp.mask = bare_qp_mask(q->ud ? URN_QPT_UD : URN_QPT_RC, a->state) | URN_QPM_STATE;
		if (sim_rogue_call(r, &req, &rep) != 0)
			return;
	}
	q->up = true;
}

/* Connect a QP; both ends when the other one is not up yet: then their messages arrive. */
void
sim_rogue_connect_qp(struct sim_node *n, struct sim_rogue *r)
{
	struct sim_rogue_qp *q = &r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)], *o = NULL;
	struct sim *s = n->s;
	struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];
	struct sim_rogue *peer = &to->host->rogue[sim_rnd(&r->rng, s->plan.rogues)];
	const uint8_t *gid;
	uint32_t dest;

	if (!q->qpn || q->up)
		return;
	for (unsigned int i = 0; peer->client.c && i < SIM_ROGUE_QPS; i++)
		if (&peer->qp[i] != q && peer->qp[i].qpn && !peer->qp[i].up && peer->qp[i].ud == q->ud)
			o = &peer->qp[i];
	if (o && !sim_one_in(&r->rng, 6)) {
		bring_up(n, r, q, o->qpn, to->gid);
		bring_up(to, peer, o, q->qpn, n->gid);
		return;
	}
	dest = some_peer(n, r, &gid);
	bring_up(n, r, q, dest, gid);
}

void
sim_rogue_drop_qp(struct sim_rogue *r)
{
	struct sim_rogue_qp *q = &r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];
	struct urn_abi_req req = {.op = URN_CTL_DESTROY_QP, .handle = q->qpn};
	struct urn_abi_rep rep;

	if (q->qpn && sim_rogue_call(r, &req, &rep) == 0)
		memset(q, 0, sizeof(*q));
}

void
sim_rogue_make_handle(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_AH};
	struct urn_abi_rep rep;
	struct sim *s = n->s;

	if (r->ah)
		return;
	req.create_ah.pd = r->client.pd;
	memcpy(req.create_ah.av.dgid, s->node[sim_rnd(&r->rng, s->plan.nodes)].gid, 16);
	req.create_ah.av.sgid_index = sim_client_gid_index(&r->client);
	req.create_ah.av.port_num = 1;
	if (sim_rogue_call(r, &req, &rep) == 0)
		r->ah = rep.handle;
}

/* ---- posting */

/* A key of another rogue, which the region's rights and domain protect or not. */
static uint32_t
some_key(struct sim_node *n, struct sim_rogue *r)
{
	struct sim *s = n->s;
	const struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];

	switch (sim_rnd(&r->rng, 8)) {
	case 0: /* key of a program that behaves: of another domain, so of no use */
		return to->host->client[0].key_all;
	case 1:
		return sim_rogue_u32(r);
	default:
		return to->host->rogue[sim_rnd(&r->rng, s->plan.rogues)].key;
	}
}

static void
write_sge(struct sim_rogue *r, struct urn_abi_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sge[i] = (struct urn_abi_sge){SIM_VA + sim_rnd(&r->rng, 4096),
					      sim_one_in(&r->rng, 20) ? sim_rogue_u32(r) : r->key,
					      sim_rnd(&r->rng, 9000)};
}

static void
post_send(struct sim_node *n, struct sim_rogue *r, struct sim_rogue_qp *q)
{
	uint32_t at = atomic_load(&q->sq->prod);
	struct urn_abi_swqe *w = bare_slot(q->sq, at, q->sq_entries, q->sq_stride);
	uint32_t room = (q->sq_stride - (uint32_t)sizeof(*w)) / (uint32_t)sizeof(struct urn_abi_sge);

	if (at - atomic_load(&q->sq->cons) >= q->sq_entries && !r->scribbles)
		return;
	memset(w, 0, sizeof(*w));
	w->wr_id = at;
	w->opcode = (uint8_t)sim_rnd(&r->rng, q->ud ? 4 : URN_WR_LOCAL_INV);
	w->flags = (uint8_t)(sim_rnd(&r->rng, 8));
	w->num_sge = (uint8_t)sim_rnd(&r->rng, room < 2 ? 2 : 3);
	if (q->ud) {
		const uint8_t *gid;

		w->ud.ah = r->ah;
		w->ud.remote_qpn = some_peer(n, r, &gid);
		w->ud.remote_qkey = 7;
	} else {
		w->rdma.remote_addr = SIM_VA + (sim_rnd(&r->rng, 4096) & ~7u);
		w->rdma.rkey = some_key(n, r);
	}
	write_sge(r, (void *)(w + 1), w->num_sge);
	if (w->opcode >= URN_WR_CMP_SWAP) {
		w->num_sge = 1;
		((struct urn_abi_sge *)(w + 1))->length = 8;
	}
	atomic_store_explicit(&q->sq->prod, at + 1, memory_order_release);
	urn_abi_db_ring(r->client.bells, q->db);
	sim_node_wake(n, n->s->now);
}

static void
post_receive(struct sim_rogue *r, struct urn_abi_wq *wq, uint32_t entries, uint32_t stride)
{
	uint32_t at;
	struct urn_abi_rwqe *w;

	if (!wq)
		return;
	at = atomic_load(&wq->prod);
	if (at - atomic_load(&wq->cons) >= entries)
		return;
	w = bare_slot(wq, at, entries, stride);
	w->wr_id = at;
	w->num_sge = 1;
	write_sge(r, (void *)(w + 1), 1);
	atomic_store_explicit(&wq->prod, at + 1, memory_order_release);
}

void
sim_rogue_post(struct sim_node *n, struct sim_rogue *r)
{
	struct sim_rogue_qp *q = &r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];

	if (!q->qpn)
		return;
	if (sim_one_in(&r->rng, 2)) {
		if (q->rq)
			post_receive(r, q->rq, q->rq_entries, q->rq_stride);
		else
			post_receive(r, r->srq_wq, r->srq_entries, r->srq_stride);
	} else {
		for (uint32_t k = sim_between(&r->rng, 1, 4); k; k--)
			post_send(n, r, q);
	}
}
