/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that misbehave. A rogue does at random what a program may do, and what
 * none should: it has queue pairs, connected to those of other rogues, posts to
 * them, asks for more than its user may have and for what there is not, writes
 * nonsense over everything that it shares, rings whatever bells there are, looks
 * at nothing, and dies in the middle of it. What becomes of its own requests nobody
 * judges; that nobody else notices is what is to be seen, and that nothing stays.
 */
#include "call.h"

#include "packet/bare.h"

#include <stdlib.h>
#include <unistd.h>

enum { OPS_A_TURN = 6 };

static uint32_t
u32(struct sim_rogue *r)
{
	return (uint32_t)sim_rng_next(&r->rng);
}

static int
call(struct sim_rogue *r, struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return sim_client_call(&r->client, req, rep, NULL);
}

/* ---- a life */

static void
make_cq(struct sim_rogue *r, unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ};
	struct urn_abi_rep rep;

	req.create_cq.cqe = 1u << sim_rnd(&r->rng, 7);
	req.create_cq.channel_fd = r->channel && sim_one_in(&r->rng, 2) ? (int32_t)r->channel : -1;
	if (call(r, &req, &rep) != 0)
		return;
	r->cq[i] = rep.handle;
	if (i == 0) {
		r->poll.cq.hdr = (void *)(r->client.c->area.base + rep.queue.off);
		r->poll.cq.mask = rep.queue.entries - 1;
		r->poll.seen = 0;
	}
}

static void
make_region(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_abi_rep rep;
	uint32_t off = sim_rnd(&r->rng, 8) * 4096;

	req.reg_mr.pd = r->client.pd;
	req.reg_mr.access = 0xf | URN_ACCESS_MW_BIND;
	req.reg_mr.addr = SIM_SHARE_VA + off;
	req.reg_mr.length = 4096 * sim_between(&r->rng, 1, 8);
	req.reg_mr.iova = SIM_VA;
	if (call(r, &req, &rep) == 0)
		r->key = rep.mr.lkey;
}

static void
make_things(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_abi_rep rep;

	if (call(r, &req, &rep) == 0)
		r->client.pd = rep.handle;
	req.op = URN_CTL_ASYNC_FD;
	sim_client_call(&r->client, &req, &rep, &r->client.event_fd);
	if (sim_one_in(&r->rng, 2)) {
		req.op = URN_CTL_CREATE_CHANNEL;
		if (sim_client_call(&r->client, &req, &rep, &r->channel_fd) == 0)
			r->channel = rep.handle;
	}
	for (unsigned int i = 0; i < 2; i++)
		make_cq(r, i);
	make_region(r);
	if (sim_one_in(&r->rng, 2)) {
		memset(&req, 0, sizeof(req));
		req.op = URN_CTL_CREATE_SRQ;
		req.create_srq.pd = r->client.pd;
		req.create_srq.max_wr = sim_between(&r->rng, 1, 16);
		req.create_srq.max_sge = 2;
		req.create_srq.cq_hint = r->cq[0];
		if (call(r, &req, &rep) == 0) {
			r->srq = rep.handle;
			r->srq_wq = (void *)(r->client.c->area.base + rep.queue.off);
			r->srq_entries = rep.queue.entries;
			r->srq_stride = rep.queue.stride;
		}
	}
}

static void
be_born(struct sim_node *n, struct sim_rogue *r)
{
	struct sim *s = n->s;
	struct urn_limits mine = sim_limits(SIM_ROGUE_QPS, 4, 1, 6, 2 * SIM_ROGUE_RAM);
	uint32_t scale = 1u << sim_between(&r->rng, 12, 20);

	memset(r->qp, 0, sizeof(r->qp));
	memset(r->cq, 0, sizeof(r->cq));
	memset(&r->poll, 0, sizeof(r->poll));
	r->srq = r->channel = r->ah = r->key = r->window = r->asked = r->listener = 0;
	r->srq_wq = NULL;
	r->channel_fd = -1;
	r->scribbles = sim_on(s, SIM_SCRIBBLE) && sim_one_in(&r->rng, 2);
	r->floods = sim_on(s, SIM_FLOOD) && sim_one_in(&r->rng, 2);
	r->mute = sim_on(s, SIM_MUTE) && sim_one_in(&r->rng, 2);
	r->greedy = sim_on(s, SIM_GREEDY) && sim_one_in(&r->rng, 2);
	r->die_at = s->now + scale + sim_rnd(&r->rng, scale);
	if (sim_client_open(&r->client, n, &n->host->account[1], &mine, r->ram_fd, SIM_ROGUE_RAM)) {
		r->client.narrows = r->mute;
		make_things(r);
	}
}

static void
die(struct sim_node *n, struct sim_rogue *r)
{
	sim_note(n->s, (int)n->id, "dies", r->index, urn_memx_holds(n->memx, NULL), n->tp->qp_count);
	n->s->stats.fired[SIM_DIE] += sim_on(n->s, SIM_DIE);
	if (r->channel_fd >= 0)
		close(r->channel_fd);
	r->channel_fd = -1;
	sim_client_die(&r->client, &n->host->account[1]);
	sim_node_wake(n, n->s->now);
}

/* ---- queue pairs */

static void
make_qp(struct sim_rogue *r)
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
	if (call(r, &req, &rep) != 0)
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

/* Another rogue's, or one that is not there. *gid: of its node */
static uint32_t
some_peer(struct sim_node *n, struct sim_rogue *r, const uint8_t **gid)
{
	struct sim *s = n->s;
	struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];
	const struct sim_rogue *peer = &to->host->rogue[sim_rnd(&r->rng, s->plan.rogues)];
	const struct sim_rogue_qp *q = &peer->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];

	*gid = to->gid;
	/* Numbers of programs that behave are left alone: who knows the number and the PSN may break in. */
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
		if (call(r, &req, &rep) != 0)
			return;
	}
	q->up = true;
}

/* Both ends, when the other one is not up yet: then what they send arrives. */
static void
connect_qp(struct sim_node *n, struct sim_rogue *r)
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

/* ---- posting */

/* A key of another rogue, which its region's rights and domain must protect or not. */
static uint32_t
some_key(struct sim_node *n, struct sim_rogue *r)
{
	struct sim *s = n->s;
	const struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];

	switch (sim_rnd(&r->rng, 8)) {
	case 0: /* of somebody who behaves: of another domain, so it is of no use */
		return to->host->client[0].key_all;
	case 1:
		return u32(r);
	default:
		return to->host->rogue[sim_rnd(&r->rng, s->plan.rogues)].key;
	}
}

static void
write_sge(struct sim_rogue *r, struct urn_abi_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sge[i] = (struct urn_abi_sge){SIM_VA + sim_rnd(&r->rng, 4096),
					      sim_one_in(&r->rng, 20) ? u32(r) : r->key,
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

static void
post(struct sim_node *n, struct sim_rogue *r)
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

/* ---- mischief */

/* Nonsense over what it shares with the dataplane: doorbells, queues, completions, all. */
static void
scribble(struct sim_node *n, struct sim_rogue *r)
{
	const struct urn_area *a = &r->client.c->area;
	uint64_t from = sim_one_in(&r->rng, 3) ? 0 : sizeof(struct urn_abi_db), v;

	n->s->stats.fired[SIM_SCRIBBLE]++;
	for (uint32_t k = sim_between(&r->rng, 1, 64); k && a->next > from + 8; k--) {
		uint64_t at = from + (sim_rng_next(&r->rng) % (a->next - from - 8));

		v = sim_rng_next(&r->rng);
		if (sim_one_in(&r->rng, 3))
			v &= 0xff;
		if (sim_one_in(&r->rng, 3))
			at &= ~63ull; /* where indices are */
		memcpy(a->base + at, &v, 1 + sim_rnd(&r->rng, 8));
	}
	for (unsigned int i = 0; i < SIM_ROGUE_QPS; i++)
		if (r->qp[i].qpn && sim_one_in(&r->rng, 3)) {
			atomic_store(&r->qp[i].sq->prod, sim_one_in(&r->rng, 2)
								 ? u32(r)
								 : atomic_load(&r->qp[i].sq->cons) +
									   sim_rnd(&r->rng, 40));
			urn_abi_db_ring(r->client.bells, r->qp[i].db);
		}
	/* A library that lives among this is not to be believed any more. */
	r->mute = true;
	sim_node_wake(n, n->s->now);
}

static void
flood(struct sim_node *n, struct sim_rogue *r)
{
	n->s->stats.fired[SIM_FLOOD]++;
	for (unsigned int i = 0; i < URN_ABI_DB_TOPS; i++)
		atomic_store(&r->client.bells->top[i], UINT64_MAX);
	for (unsigned int i = 0; i < 4; i++)
		atomic_store(&r->client.bells->leaf[i ? sim_rnd(&r->rng, URN_ABI_DB_WORDS) : 0], UINT64_MAX);
	sim_node_wake(n, n->s->now);
}

/* A request of any number, about anything; descriptors aside, for those come by the socket. */
static void
ask_nonsense(struct sim_rogue *r)
{
	struct urn_abi_req req;
	struct urn_abi_rep rep;
	uint8_t *b = (uint8_t *)&req;

	for (size_t i = 0; i < sizeof(req); i++)
		b[i] = (uint8_t)(sim_one_in(&r->rng, 3) ? sim_rng_next(&r->rng) : 0);
	req.op = sim_rnd(&r->rng, URN_CTL_OPS + 3);
	req.handle = sim_one_in(&r->rng, 2) ? sim_rnd(&r->rng, 40) : u32(r);
	if (sim_one_in(&r->rng, 3))
		req.handle = r->key;
	if (req.op == URN_CTL_CREATE_CQ)
		req.create_cq.cqe %= 64;
	if (req.op == URN_CTL_ASYNC_FD)
		return; /* the descriptor in hand would be another */
	if (req.op == URN_CTL_SHARE)
		req.share.fd = -1;
	if (req.op >= URN_CTL_CM_LISTEN && req.op <= URN_CTL_CM_RESOLVE)
		return; /* whoever is asked by chance would wonder */
	call(r, &req, &rep);
}

/* What it took back by chance is not to be used any more. */
static void
forget_what_went(struct sim_node *n, struct sim_rogue *r)
{
	for (unsigned int i = 0; i < SIM_ROGUE_QPS; i++) {
		const struct urn_qp *qp = r->qp[i].qpn ? urn_tp_qp(n->tp, r->qp[i].qpn) : NULL;

		if (r->qp[i].qpn && (!qp || qp->client != r->client.c))
			memset(&r->qp[i], 0, sizeof(r->qp[i]));
	}
	for (unsigned int i = 0; i < 4; i++)
		if (r->cq[i] && !urn_table_get(&r->client.c->cqs, r->cq[i])) {
			r->cq[i] = 0;
			if (i == 0)
				r->poll.cq.hdr = NULL;
		}
	if (r->srq && !urn_table_get(&r->client.c->srqs, r->srq)) {
		r->srq = 0;
		r->srq_wq = NULL;
	}
}

static void
be_greedy(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = 0};
	struct urn_abi_rep rep;
	const struct urn_cq *cq;

	n->s->stats.fired[SIM_GREEDY]++;
	switch (sim_rnd(&r->rng, 5)) {
	case 0:
		make_region(r);
		break;
	case 1:
		make_cq(r, 2 + sim_rnd(&r->rng, 2));
		break;
	case 2:
		req.op = URN_CTL_DEREG_MR;
		req.handle = r->key;
		call(r, &req, &rep);
		break;
	case 3: /* completions are carried over, or not */
		req.op = URN_CTL_RESIZE_CQ;
		req.handle = r->cq[0];
		req.resize_cq.cqe = 1u << sim_rnd(&r->rng, 8);
		cq = r->cq[0] ? urn_table_get(&r->client.c->cqs, r->cq[0]) : NULL;
		if (call(r, &req, &rep) == 0 && cq) {
			r->poll.cq.hdr = cq->hdr;
			r->poll.cq.mask = cq->mask;
			r->poll.seen = 0;
		}
		break;
	default:
		ask_nonsense(r);
		break;
	}
	forget_what_went(n, r);
}

static void
drop_qp(struct sim_rogue *r)
{
	struct sim_rogue_qp *q = &r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)];
	struct urn_abi_req req = {.op = URN_CTL_DESTROY_QP, .handle = q->qpn};
	struct urn_abi_rep rep;

	if (q->qpn && call(r, &req, &rep) == 0)
		memset(q, 0, sizeof(*q));
}

static void
make_handle(struct sim_node *n, struct sim_rogue *r)
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
	if (call(r, &req, &rep) == 0)
		r->ah = rep.handle;
}

/* ---- connections */

enum { MOST_ASKED = 8 };

/* To a program that behaves, or to a rogue, or to nobody. */
static void
ask_for_connection(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_CONNECT};
	struct urn_abi_cm_connect *p = &req.cm_connect;
	struct urn_abi_rep rep;
	struct sim *s = n->s;
	const struct sim_node *to = &s->node[sim_rnd(&r->rng, s->plan.nodes)];
	uint32_t token = SIM_ROGUE_TOKEN | u32(r);

	if (r->asked == MOST_ASKED)
		return;
	p->service_id = sim_service(to->id, sim_rnd(&r->rng, s->plan.clients + 1));
	if (sim_one_in(&r->rng, 4))
		p->service_id = 0x20000 + sim_rnd(&r->rng, SIM_ROGUES);
	p->channel_fd = r->channel ? (int32_t)r->channel : -1;
	p->qpn = r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)].qpn;
	p->psn = u32(r) & 0xffffff;
	memcpy(p->dgid, to->gid, 16);
	p->sgid_index = sim_client_gid_index(&r->client);
	p->mtu = n->s->plan.mtu_code;
	p->timeout = (uint8_t)sim_between(&r->rng, 10, 13);
	p->max_retries = 15;
	p->data_len = 4;
	memcpy(p->data, &token, 4);
	r->asked += call(r, &req, &rep) == 0;
	sim_node_wake(n, s->now);
}

/* What comes it answers in some way that may make sense. */
static void
answer_somehow(struct sim_node *n, struct sim_rogue *r)
{
	static const uint32_t ops[] = {URN_CTL_CM_ACCEPT, URN_CTL_CM_ACCEPT, URN_CTL_CM_ESTABLISH,
				       URN_CTL_CM_ESTABLISH, URN_CTL_CM_REJECT, URN_CTL_CM_DISCONNECT,
				       URN_CTL_CM_DESTROY};
	struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	struct urn_abi_rep rep;
	uint32_t id;

	if (call(r, &req, &rep) != 0)
		return;
	id = rep.cm_event.id;
	for (uint32_t k = sim_between(&r->rng, 1, 3); k; k--) {
		memset(&req, 0, sizeof(req));
		req.op = ops[sim_rnd(&r->rng, sizeof(ops) / sizeof(ops[0]))];
		req.handle = id;
		if (req.op == URN_CTL_CM_ACCEPT)
			req.cm_accept.qpn = r->qp[sim_rnd(&r->rng, SIM_ROGUE_QPS)].qpn;
		call(r, &req, &rep);
	}
	sim_node_wake(n, n->s->now);
}

static void
be_sociable(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_LISTEN};
	struct urn_abi_rep rep;

	switch (sim_rnd(&r->rng, 4)) {
	case 0:
		if (r->listener)
			break;
		req.cm_listen.service_id = 0x20000 + r->index;
		req.cm_listen.channel_fd = r->channel ? (int32_t)r->channel : -1;
		req.cm_listen.backlog = sim_rnd(&r->rng, 3);
		if (call(r, &req, &rep) == 0)
			r->listener = rep.handle;
		break;
	case 1:
		ask_for_connection(n, r);
		break;
	default:
		answer_somehow(n, r);
		break;
	}
}

/* ---- turns */

static void
do_something(struct sim_node *n, struct sim_rogue *r)
{
	if (n->s->plan.cm && sim_one_in(&r->rng, 2)) {
		be_sociable(n, r);
		return;
	}
	if (r->scribbles && sim_one_in(&r->rng, 6))
		scribble(n, r);
	if (r->floods && sim_one_in(&r->rng, 4))
		flood(n, r);
	if (r->greedy && sim_one_in(&r->rng, 4))
		be_greedy(n, r);
	switch (sim_rnd(&r->rng, 8)) {
	case 0:
	case 1:
		make_qp(r);
		break;
	case 2:
	case 3:
		connect_qp(n, r);
		break;
	case 4:
		if (sim_one_in(&r->rng, 8))
			drop_qp(r);
		else
			make_handle(n, r);
		break;
	default:
		post(n, r);
		break;
	}
}

static void
look_at_completions(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_cqe c;

	if (r->mute) {
		n->s->stats.fired[SIM_MUTE] += sim_on(n->s, SIM_MUTE);
		return;
	}
	for (unsigned int k = 0; k < 16 && r->poll.cq.hdr && sim_cq_poll(&r->poll, &c); k++)
		n->s->stats.completions++;
	if (r->poll.cq.hdr && sim_one_in(&r->rng, 2))
		atomic_store(&r->poll.cq.hdr->arm, URN_CQ_ARM_NEXT);
}

void
sim_rogue_turn(struct sim_node *n, struct sim_rogue *r, uint64_t *due)
{
	struct sim *s = n->s;

	if (!r->lives || s->winding_up)
		return;
	if (s->now >= r->due) {
		r->due = s->now + sim_rnd(&r->rng, sim_one_in(&r->rng, 8) ? 100000 : 4000);
		if (!r->client.c) {
			be_born(n, r);
		} else if (s->now >= r->die_at && sim_on(s, SIM_DIE)) {
			die(n, r);
			r->lives--;
			s->moved = s->now;
		} else if (s->now >= r->die_at) {
			r->lives = 0; /* it goes at the end, unless somebody waits for that */
			if (s->plan.cm)
				sim_rogue_close(n, r);
		} else {
			for (uint32_t k = sim_between(&r->rng, 1, OPS_A_TURN); k && !s->why[0]; k--)
				do_something(n, r);
			look_at_completions(n, r);
		}
	}
	if (r->lives && r->due < *due)
		*due = r->due;
}

void
sim_rogue_open(struct sim_node *n, struct sim_rogue *r, unsigned int index)
{
	struct sim *s = n->s;

	memset(&r->client, 0, sizeof(r->client));
	memset(r->qp, 0, sizeof(r->qp));
	r->client.event_fd = r->channel_fd = -1;
	r->index = index;
	r->key = 0;
	r->rng = sim_rng_of(s->seed, 3000 + n->id * SIM_ROGUES + index);
	r->lives = s->plan.lives;
	r->due = s->now + sim_rnd(&r->rng, 20000);
	memset(r->ram, 0, SIM_ROGUE_RAM);
}

void
sim_rogue_close(struct sim_node *n, struct sim_rogue *r)
{
	if (r->client.c)
		die(n, r);
}
