/* SPDX-License-Identifier: BSD-3-Clause */
/* Misuse of memory shared with the dataplane, and of control calls. */
#include "rogue.h"

/* Write random bytes over memory shared with the dataplane: doorbells, queues, completions, all. */
void
sim_rogue_scribble(struct sim_node *n, struct sim_rogue *r)
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
			at &= ~63ull; /* begin of a cache line: indices are there */
		memcpy(a->base + at, &v, 1 + sim_rnd(&r->rng, 8));
	}
	for (unsigned int i = 0; i < SIM_ROGUE_QPS; i++)
		if (r->qp[i].qpn && sim_one_in(&r->rng, 3)) {
			atomic_store(&r->qp[i].sq->prod, sim_one_in(&r->rng, 2)
								 ? sim_rogue_u32(r)
								 : atomic_load(&r->qp[i].sq->cons) +
									   sim_rnd(&r->rng, 40));
			urn_abi_db_ring(r->client.bells, r->qp[i].db);
		}
	/* A library on top of this memory can't be used any more. */
	r->mute = true;
	sim_node_wake(n, n->s->now);
}

void
sim_rogue_flood(struct sim_node *n, struct sim_rogue *r)
{
	n->s->stats.fired[SIM_FLOOD]++;
	for (unsigned int i = 0; i < URN_ABI_DB_TOPS; i++)
		atomic_store(&r->client.bells->top[i], UINT64_MAX);
	for (unsigned int i = 0; i < 4; i++)
		atomic_store(&r->client.bells->leaf[i ? sim_rnd(&r->rng, URN_ABI_DB_WORDS) : 0], UINT64_MAX);
	sim_node_wake(n, n->s->now);
}

/* Make a control call with random number and arguments; without descriptors, which come by the socket. */
static void
ask_nonsense(struct sim_rogue *r)
{
	struct urn_abi_req req;
	struct urn_abi_rep rep;
	uint8_t *b = (uint8_t *)&req;

	for (size_t i = 0; i < sizeof(req); i++)
		b[i] = (uint8_t)(sim_one_in(&r->rng, 3) ? sim_rng_next(&r->rng) : 0);
	req.op = sim_rnd(&r->rng, URN_CTL_OPS + 3);
	req.handle = sim_one_in(&r->rng, 2) ? sim_rnd(&r->rng, 40) : sim_rogue_u32(r);
	if (sim_one_in(&r->rng, 3))
		req.handle = r->key;
	if (req.op == URN_CTL_CREATE_CQ)
		req.create_cq.cqe %= 64;
	if (req.op == URN_CTL_ASYNC_FD)
		return; /* the rogue's descriptor would become another */
	if (req.op == URN_CTL_SHARE)
		req.share.fd = -1;
	if (req.op >= URN_CTL_CM_LISTEN && req.op <= URN_CTL_CM_RESOLVE)
		return; /* a program that is asked at random would not expect it */
	sim_rogue_call(r, &req, &rep);
}

/* Forget objects that a random call destroyed: they must not be used any more. */
static void
forget_what_went(struct sim_node *n, struct sim_rogue *r)
{
	for (unsigned int i = 0; i < SIM_ROGUE_QPS; i++) {
		const struct urn_qp *qp = r->qp[i].qpn ? urn_tp_qp(n->tp, r->qp[i].qpn) : NULL;

		if (r->qp[i].qpn && (!qp || urn_client_of_qp(qp) != r->client.c))
			memset(&r->qp[i], 0, sizeof(r->qp[i]));
	}
	for (unsigned int i = 0; i < 4; i++)
		if (r->cq[i] && !urn_handles_get(&r->client.c->cqs, r->cq[i])) {
			r->cq[i] = 0;
			if (i == 0)
				r->poll.cq.hdr = NULL;
		}
	if (r->srq && !urn_handles_get(&r->client.c->srqs, r->srq)) {
		r->srq = 0;
		r->srq_wq = NULL;
	}
}

void
sim_rogue_be_greedy(struct sim_node *n, struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = 0};
	struct urn_abi_rep rep;
	const struct urn_cq *cq;

	n->s->stats.fired[SIM_GREEDY]++;
	switch (sim_rnd(&r->rng, 5)) {
	case 0:
		sim_rogue_make_region(r);
		break;
	case 1:
		sim_rogue_make_cq(r, 2 + sim_rnd(&r->rng, 2));
		break;
	case 2:
		req.op = URN_CTL_DEREG_MR;
		req.handle = r->key;
		sim_rogue_call(r, &req, &rep);
		break;
	case 3: /* completions are carried over, or not */
		req.op = URN_CTL_RESIZE_CQ;
		req.handle = r->cq[0];
		req.resize_cq.cqe = 1u << sim_rnd(&r->rng, 8);
		cq = r->cq[0] ? urn_handles_get(&r->client.c->cqs, r->cq[0]) : NULL;
		if (sim_rogue_call(r, &req, &rep) == 0 && cq) {
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
