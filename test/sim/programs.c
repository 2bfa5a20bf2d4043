/* SPDX-License-Identifier: BSD-3-Clause */
/* The turn of a node's programs: they poll, and post. */
#include "host.h"

static void
completed(struct sim_node *n, const struct urn_abi_cqe *c)
{
	struct sim *s = n->s;
	struct sim_end *e = n->by_qpn[c->qp_num % URN_TP_QP_CHUNK];
	bool recv = c->opcode & URN_WCO_RECV;

	sim_note(s, (int)n->id, recv ? "received" : "sent", (uint64_t)c->qp_num << 32 | c->status,
		 c->wr_id, (uint64_t)c->byte_len << 32 | c->imm);
	s->stats.completions++;
	s->moved = s->now;
	s->idle_events = 0;
	if (n->ud.qp && n->ud.qp->qpn == c->qp_num)
		recv ? sim_ud_received(n, c) : sim_ud_sent(n, c);
	else if (e && e->qp->qpn == c->qp_num)
		recv ? sim_end_received(e, c) : sim_end_sent(e, c);
	else
		sim_fail(s, "node %u: a completion of QP 0x%x, which there is not", n->id, c->qp_num);
}

/* Take a receive queue's time into that of the next turn. */
static void
look_again(const struct sim_rq *rq, uint64_t *due)
{
	uint64_t all = rq->bufs == 64 ? UINT64_MAX : (1ull << rq->bufs) - 1;

	if (rq->hdr && !rq->over && rq->busy != all)
		sim_soonest(due, rq->due);
}

static void
poll_cqs(struct sim_node *n, struct sim_cq *scq, struct sim_cq *rcq)
{
	struct sim *s = n->s;
	struct urn_abi_cqe c;
	uint32_t most = 1 + sim_rnd(&s->rng, 32);
	struct sim_cq *cq[2] = {scq, rcq};
	unsigned int first = sim_rnd(&s->rng, 2);
	bool twice;

	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < most && !s->why[0] && sim_cq_poll(cq[i ^ first], &c); k++) {
			if (sim_sabotage(n, &c, &twice))
				completed(n, &c);
			if (twice && !s->why[0])
				completed(n, &c);
		}
}

/* Poll completions of all programs of the node. returns: true when there are more */
static bool
poll_all(struct sim_node *n)
{
	bool more = false;

	if (!n->host) {
		if (!sim_polls_late(n))
			poll_cqs(n, &n->scq, &n->rcq);
		return false;
	}
	for (unsigned int i = 0; i < n->s->plan.clients; i++) {
		struct sim_client *c = &n->host->client[i];

		if (!c->c)
			continue;
		poll_cqs(n, &c->scq, &c->rcq);
		more = more || sim_cq_waits(&c->scq) || sim_cq_waits(&c->rcq);
	}
	return more;
}

void
sim_programs_run(struct sim_node *n)
{
	struct sim *s = n->s;
	uint64_t due = UINT64_MAX;
	bool more = poll_all(n);

	if (n->host)
		sim_host_programs(n, &due);
	if (!s->winding_up) {
		if (n->srq_q.hdr) {
			sim_rq_post(n, &n->srq_q, &s->rng, false);
			look_again(&n->srq_q, &due);
		}
		sim_ud_post(n);
		if (n->ud.qp && !n->ud.over && n->ud.left && n->ud.posted - n->ud.done < 8)
			sim_soonest(&due, n->ud.due);
		for (struct sim_end *e = n->ends; e; e = e->next) {
			if (e->rq.hdr) {
				sim_rq_post(n, &e->rq, &e->rng, false);
				look_again(&e->rq, &due);
			}
			sim_end_post(e);
			if (e->end_at && e->end_at <= s->now) {
				e->end_at = 0;
				sim_end_ended(e);
			} else if (e->end_at) {
				sim_soonest(&due, e->end_at);
			}
			if (e->left && e->posted - e->done < s->plan.slots)
				sim_soonest(&due, e->due);
		}
	}
	if (more || sim_cq_waits(&n->scq) || sim_cq_waits(&n->rcq))
		sim_soonest(&due, s->now + sim_rnd(&s->rng, 2000));
	n->prog_due = due > s->now ? due : s->now + 50;
}
