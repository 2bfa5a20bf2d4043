/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that misbehave. A rogue does random allowed and forbidden things: it has
 * queue pairs, connected to those of other rogues, posts to them, asks for more than
 * its user's quota and for objects that do not exist, writes random bytes over all
 * shared memory, rings all doorbells, polls nothing, and dies in the middle of it.
 * The results of a rogue's own requests are not judged; the test is that no other
 * client notices, and that no object stays.
 */
#include "rogue.h"

#include <unistd.h>

enum { OPS_A_TURN = 6 };

/* ---- a life */

void
sim_rogue_make_cq(struct sim_rogue *r, unsigned int i)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ};
	struct urn_abi_rep rep;

	req.create_cq.cqe = 1u << sim_rnd(&r->rng, 7);
	req.create_cq.channel_fd = r->channel && sim_one_in(&r->rng, 2) ? (int32_t)r->channel : -1;
	if (sim_rogue_call(r, &req, &rep) != 0)
		return;
	r->cq[i] = rep.handle;
	if (i == 0) {
		r->poll.cq.hdr = (void *)(r->client.c->area.base + rep.queue.off);
		r->poll.cq.mask = rep.queue.entries - 1;
		r->poll.seen = 0;
	}
}

void
sim_rogue_make_region(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_abi_rep rep;
	uint32_t off = sim_rnd(&r->rng, 8) * 4096;

	req.reg_mr.pd = r->client.pd;
	req.reg_mr.access = 0xf | URN_ACCESS_MW_BIND;
	req.reg_mr.addr = SIM_SHARE_VA + off;
	req.reg_mr.length = 4096 * sim_between(&r->rng, 1, 8);
	req.reg_mr.iova = SIM_VA;
	if (sim_rogue_call(r, &req, &rep) == 0)
		r->key = rep.mr.lkey;
}

static void
make_things(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_abi_rep rep;

	if (sim_rogue_call(r, &req, &rep) == 0)
		r->client.pd = rep.handle;
	req.op = URN_CTL_ASYNC_FD;
	sim_client_call(&r->client, &req, &rep, &r->client.event_fd);
	if (sim_one_in(&r->rng, 2)) {
		req.op = URN_CTL_CREATE_CHANNEL;
		if (sim_client_call(&r->client, &req, &rep, &r->channel_fd) == 0)
			r->channel = rep.handle;
	}
	for (unsigned int i = 0; i < 2; i++)
		sim_rogue_make_cq(r, i);
	sim_rogue_make_region(r);
	if (sim_one_in(&r->rng, 2)) {
		memset(&req, 0, sizeof(req));
		req.op = URN_CTL_CREATE_SRQ;
		req.create_srq.pd = r->client.pd;
		req.create_srq.max_wr = sim_between(&r->rng, 1, 16);
		req.create_srq.max_sge = 2;
		req.create_srq.cq_hint = r->cq[0];
		if (sim_rogue_call(r, &req, &rep) == 0) {
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

/*
 * Make news for a client that is about to die: send queues are drained, and those of datagrams
 * that erred are flushed on their way back, so that completions come to a queue that asked for
 * events.
 */
static void
leave_news(struct sim_rogue *r)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP};
	struct urn_abi_rep rep;

	if (r->poll.cq.hdr)
		atomic_store(&r->poll.cq.hdr->arm, URN_CQ_ARM_NEXT);
	for (unsigned int i = 0; i < SIM_ROGUE_QPS; i++) {
		const struct sim_rogue_qp *q = &r->qp[i];

		if (!q->qpn || sim_one_in(&r->rng, 3))
			continue;
		req.handle = q->qpn;
		req.modify_qp.attr.state = q->ud ? URN_QPS_RTS : URN_QPS_SQD;
		req.modify_qp.attr.en_sqd_notify = !q->ud;
		req.modify_qp.mask = URN_QPM_STATE | (q->ud ? 0 : URN_QPM_EN_SQD_NOTIFY);
		sim_rogue_call(r, &req, &rep);
	}
}

static void
die(struct sim_node *n, struct sim_rogue *r)
{
	if (sim_on(n->s, SIM_DIE) && !n->s->winding_up)
		leave_news(r);
	sim_note(n->s, (int)n->id, "dies", r->index, urn_memx_holds(n->memx, NULL), n->tp->qp_count);
	n->s->stats.fired[SIM_DIE] += sim_on(n->s, SIM_DIE);
	if (r->channel_fd >= 0)
		close(r->channel_fd);
	r->channel_fd = -1;
	sim_client_die(&r->client, &n->host->account[1]);
	sim_node_wake(n, n->s->now);
}

/* ---- turns */

static void
do_something(struct sim_node *n, struct sim_rogue *r)
{
	if (n->s->plan.cm && sim_one_in(&r->rng, 2)) {
		sim_rogue_be_sociable(n, r);
		return;
	}
	if (r->scribbles && sim_one_in(&r->rng, 6))
		sim_rogue_scribble(n, r);
	if (r->floods && sim_one_in(&r->rng, 4))
		sim_rogue_flood(n, r);
	if (r->greedy && sim_one_in(&r->rng, 4))
		sim_rogue_be_greedy(n, r);
	switch (sim_rnd(&r->rng, 8)) {
	case 0:
	case 1:
		sim_rogue_make_qp(r);
		break;
	case 2:
	case 3:
		sim_rogue_connect_qp(n, r);
		break;
	case 4:
		if (sim_one_in(&r->rng, 8))
			sim_rogue_drop_qp(r);
		else
			sim_rogue_make_handle(n, r);
		break;
	default:
		sim_rogue_post(n, r);
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
			r->lives = 0; /* its client dies at the end of the run, or now, where callers wait for it */
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
