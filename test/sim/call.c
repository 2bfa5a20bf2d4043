/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: their attempts, in time, and their ends. line.c has the effects of events. */
#include "call_priv.h"

#include "unit/common/test_cm_look.h"
#include "unit/common/test_neigh_state.h"

#include <stdlib.h>

struct sim_calls sim_calls;

/* ---- making */

void
sim_client_listen(struct sim_client *c, unsigned int index)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_LISTEN};
	struct urn_abi_rep rep;

	c->index = index;
	req.cm_listen.service_id = sim_service(c->node->id, index);
	req.cm_listen.channel_fd = -1;
	if (sim_client_must(c, &req, &rep, "a listener"))
		c->listener = rep.handle;
	memset(&req, 0, sizeof(req));
	req.op = URN_CTL_CREATE_QP;
	req.create_qp.pd = c->pd;
	req.create_qp.type = URN_QPT_RC;
	req.create_qp.send_cq = req.create_qp.recv_cq = c->scq_handle;
	req.create_qp.cap = (struct urn_abi_qp_cap){1, 1, 1, 1, 0};
	if (sim_client_must(c, &req, &rep, "a queue pair for guests"))
		c->guest_qpn = rep.handle;
}

void
sim_calls_open(struct sim *s, const uint8_t *from, const uint8_t *to)
{
	struct sim_calls *cs = &sim_calls;

	memset(cs, 0, sizeof(*cs));
	for (uint32_t i = 0; i < s->plan.pairs; i++) {
		struct sim_call *c = &cs->call[cs->calls++];

		c->s = s;
		c->rng = sim_rng_of(s->seed, 5000 + i);
		c->node[0] = &s->node[from[i]];
		c->node[1] = &s->node[to[i]];
		c->rounds = sim_between(&c->rng, 1, 3);
		c->state = CALL_WAITS;
		c->due = s->now + sim_rnd(&c->rng, 100000);
	}
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		cs->rng[i] = sim_rng_of(s->seed, 5100 + i);
		cs->looks[i] = sim_rnd(&cs->rng[i], 4);
		cs->look_due[i] = s->now + sim_rnd(&cs->rng[i], 1000000);
	}
}

struct sim_token *
sim_token_new(struct sim *s, uint32_t *number)
{
	struct sim_calls *cs = &sim_calls;
	struct sim_token *t = &cs->token[cs->tokens];

	if (cs->tokens == SIM_TOKENS) {
		sim_fail(s, "more attempts than there may be");
		return NULL;
	}
	*number = cs->tokens++;
	memset(t, 0, sizeof(*t));
	return t;
}

static bool
knows(const struct sim_node *n, const struct sim_node *peer)
{
	enum urn_neigh_state st = test_neigh_state(n->host->a->neigh, peer->gid, NULL);

	return n == peer || st == URN_NEIGH_REACHABLE || st == URN_NEIGH_STALE;
}

bool
sim_are_known(const struct sim_node *a, const struct sim_node *b)
{
	return knows(a, b) && knows(b, a);
}

/* ---- asking */

/* Use the same QPN again, at once: a peer that still believes in the old connection must find out. */
static void
reuse_number(struct sim_call *c)
{
	struct sim_node *n = c->node[0];

	if (c->last_qpn && !urn_tp_qp(n->tp, c->last_qpn) && !sim_one_in(&c->rng, 3))
		n->tp->qp_next = c->last_qpn & (URN_TP_QP_CHUNK - 1);
}

/* Make queue pairs for the call. returns: true when there are any */
static bool
have_ends(struct sim_call *c)
{
	if (c->end[0])
		return true;
	if (c->pairs == SIM_CALL_PAIRS)
		return false;
	c->pairs++;
	reuse_number(c);
	c->end[0] = sim_pair_make(c->s, c->node[0], c->node[1]);
	c->end[1] = c->end[0]->peer;
	for (int i = 0; i < 2; i++) {
		c->end[i]->call = c;
		c->end[i]->left = 0;
		c->end[i]->rq.over = true;
	}
	sim_pair_psn(c->end[0], c->psn);
	if (!c->end[0]->qp || !c->end[1]->qp)
		return false;
	c->last_qpn = c->end[0]->qp->qpn;
	return true;
}

static void
fill_connect(struct sim_call *c, struct urn_abi_cm_connect *p, uint32_t number)
{
	const struct sim_plan *plan = &c->s->plan;

	p->service_id = sim_service(c->node[1]->id, c->end[1]->client->index);
	if (c->wrong)
		p->service_id = 0xdead;
	p->cookie = number;
	p->channel_fd = -1;
	p->qpn = c->end[0]->qp->qpn;
	p->psn = c->psn[1];
	memcpy(p->dgid, c->node[1]->gid, 16);
	p->sgid_index = sim_client_gid_index(c->end[0]->client);
	p->responder_resources = plan->dest_rd_atomic;
	p->initiator_depth = plan->rd_atomic;
	p->retry_count = plan->retry_cnt;
	p->rnr_retry = plan->rnr_retry;
	p->mtu = plan->mtu_code;
	p->timeout = (uint8_t)sim_between(&c->rng, 11, 14);
	p->max_retries = (uint8_t)(sim_one_in(&c->rng, 2) ? 15 : sim_between(&c->rng, 7, 14));
	p->ack_timeout = plan->timeout;
	p->data_len = sim_data(p->data, URN_CM_REQ_DATA, number, SIM_SAYS_REQ);
}

static void
ask(struct sim_call *c)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_CONNECT};
	struct urn_abi_rep rep;
	struct sim *s = c->s;
	struct sim_token *t;
	struct sim_line *l;

	if (c->tries++ == SIM_CALL_TRIES || !have_ends(c)) {
		c->state = CALL_OVER;
		return;
	}
	t = sim_token_new(s, &c->token);
	if (!t)
		return;
	c->wrong = sim_on(s, SIM_REFUSE) && sim_one_in(&c->rng, 10);
	t->wrong = c->wrong;
	t->refuse = sim_on(s, SIM_REFUSE) && sim_one_in(&c->rng, 4);
	t->refuse_reply = sim_on(s, SIM_REFUSE) && sim_one_in(&c->rng, 8);
	t->qpn = c->end[0]->qp->qpn;
	t->psn = c->psn[1];
	t->call = c;
	if (c->end[0]->qp->state == URN_QPS_RESET)
		sim_end_up(c->end[0], URN_QPS_INIT, 0, 0, 0);
	fill_connect(c, &req.cm_connect, c->token);
	if (!sim_client_must(c->end[0]->client, &req, &rep, "asking for a connection"))
		return;
	l = sim_line_new(c->end[0]->client, rep.handle, LINE_ASKS, c->token);
	if (!l)
		return;
	l->call = c;
	l->end = c->end[0];
	t->asks = l;
	t->sure = req.cm_connect.max_retries == 15 && sim_are_known(c->node[0], c->node[1]);
	c->state = CALL_ASKS;
	sim_node_wake(c->node[0], s->now);
}

/* ---- parting */

static bool
is_done(const struct sim_end *e)
{
	return !e->qp || (e->left == 0 && e->posted == e->done);
}

static bool
is_over(const struct sim_line *l)
{
	return !l || l->state == LINE_OVER;
}

/* End a call whose two sides have sent all messages, or cannot. */
static void
part(struct sim_call *c)
{
	struct sim *s = c->s;
	struct sim_token *t = &sim_calls.token[c->token];
	struct sim_line *who = t->asks;
	bool heard = t->answers && (t->answers->state != LINE_ACCEPTED);
	uint64_t patience = 1000000000;

	if (!is_done(c->end[0]) || !is_done(c->end[1]))
		return;
	if (!c->done_since)
		c->done_since = s->now;
	/* The other side may not know yet that it may send. */
	if (!heard && s->now < c->done_since + patience && !c->end[0]->failed)
		return;
	if (t->answers && t->answers->state == LINE_UP && sim_one_in(&c->rng, 3))
		who = t->answers;
	c->state = CALL_ENDS;
	if (who->state == LINE_UP)
		sim_line_hang_up(who, sim_on(s, SIM_FORGET) && sim_one_in(&c->rng, 3));
	if (who->state == LINE_OVER && sim_one_in(&c->rng, 2))
		c->hasty = true;
}

static bool
is_flushed(const struct sim_end *e)
{
	const struct model *m = e->node->s->model;

	return !e->qp || (is_done(e) && model_open(m, e->m) == 0 && model_open_recvs(m, e->m) == 0);
}

/* A call is over on both sides: begin it once more, or end it. */
static void
wind_up(struct sim_call *c)
{
	struct sim *s = c->s;
	const struct sim_token *t = &sim_calls.token[c->token];

	if (!is_over(t->asks))
		return;
	/* A hasty caller that forgot the connection asks again while the other side still believes in it. */
	if (!is_over(t->answers) && !c->hasty)
		return;
	for (int i = 0; i < 2; i++) {
		if (i == 1 && !is_over(t->answers))
			continue; /* the program has not heard yet */
		if (c->end[i]->qp && c->end[i]->qp->state != URN_QPS_ERR)
			sim_end_ended(c->end[i]);
		if (!is_flushed(c->end[i])) {
			if (s->now + 20000 < c->due || c->due <= s->now)
				c->due = s->now + 20000;
			return;
		}
		sim_end_close(c->end[i]);
	}
	c->end[0] = c->end[1] = NULL;
	c->hasty = false;
	c->done_since = 0;
	s->moved = s->now;
	c->state = c->rounds > 0 ? CALL_WAITS : CALL_OVER;
	c->due = s->now + sim_rnd(&c->rng, 1000000);
}

/* An attempt failed. Queue pairs that were not used serve for the next attempt. */
void
sim_call_failed(struct sim_call *c)
{
	const struct sim_token *t = &sim_calls.token[c->token];

	if (c->state != CALL_ASKS)
		return;
	if (t->accepted || c->end[0]->qp->state != URN_QPS_INIT) {
		c->state = CALL_ENDS;
		return;
	}
	c->state = CALL_WAITS;
	c->due = c->s->now + sim_rnd(&c->rng, 5000000);
}

void
sim_call_up(struct sim_call *c)
{
	if (c->state == CALL_ASKS) {
		c->state = CALL_TALKS;
		c->rounds--;
	}
}

static void
turn(struct sim_call *c)
{
	switch (c->state) {
	case CALL_WAITS:
		if (c->s->now >= c->due)
			ask(c);
		break;
	case CALL_TALKS:
		part(c);
		break;
	case CALL_ENDS:
		wind_up(c);
		break;
	default:
		break;
	}
}

/* ---- services of datagrams */

static void
look(struct sim_node *n)
{
	struct sim_calls *cs = &sim_calls;
	struct sim_rng *r = &cs->rng[n->id];
	struct sim *s = n->s;
	struct sim_node *to = &s->node[sim_rnd(r, s->plan.nodes)];
	struct sim_client *c = sim_host_client(n, r);
	struct urn_abi_req req = {.op = URN_CTL_CM_RESOLVE};
	struct urn_abi_cm_connect *p = &req.cm_connect;
	struct urn_abi_rep rep;
	struct sim_line *l;
	uint32_t number;
	struct sim_token *t = sim_token_new(s, &number);

	if (!t)
		return;
	cs->looks[n->id]--;
	cs->look_due[n->id] = s->now + sim_rnd(r, 3000000);
	t->refuse = sim_on(s, SIM_REFUSE) && sim_one_in(r, 4);
	t->wrong = sim_on(s, SIM_REFUSE) && sim_one_in(r, 8);
	p->service_id = t->wrong ? 0xdead : sim_service(to->id, sim_rnd(r, s->plan.clients));
	p->cookie = number;
	p->channel_fd = -1;
	memcpy(p->dgid, to->gid, 16);
	p->sgid_index = sim_client_gid_index(c);
	p->timeout = (uint8_t)sim_between(r, 11, 14);
	p->max_retries = (uint8_t)(sim_one_in(r, 2) ? 15 : sim_between(r, 7, 14));
	p->data_len = sim_data(p->data, URN_CM_SIDR_REQ_DATA, number, SIM_SAYS_SIDR);
	if (!sim_client_must(c, &req, &rep, "a look-up"))
		return;
	l = sim_line_new(c, rep.handle, LINE_LOOKS, number);
	if (l)
		t->asks = l;
	t->sure = p->max_retries == 15 && sim_are_known(n, to);
	sim_node_wake(n, s->now);
}

/* ---- all of them */

void
sim_calls_turn(struct sim_node *n, uint64_t *due)
{
	struct sim_calls *cs = &sim_calls;
	struct sim *s = n->s;

	sim_lines_turn(n, due);
	for (unsigned int i = 0; i < cs->calls && !s->why[0]; i++) {
		struct sim_call *c = &cs->call[i];

		if (c->node[0] != n)
			continue;
		turn(c);
		if (c->state == CALL_WAITS && c->due < *due)
			*due = c->due;
		else if ((c->state == CALL_TALKS || c->state == CALL_ENDS) && s->now + 50000 < *due)
			*due = s->now + (is_over(sim_calls.token[c->token].asks) ? 50000 : 1000000);
	}
	if (cs->looks[n->id]) {
		if (s->now >= cs->look_due[n->id])
			look(n);
		if (cs->looks[n->id] && cs->look_due[n->id] < *due)
			*due = cs->look_due[n->id];
	}
}

const char *
sim_calls_open_line(const struct sim *s)
{
	static char text[160];
	const struct sim_calls *cs = &sim_calls;

	for (unsigned int i = 0; i < cs->lines; i++) {
		const struct sim_line *l = &cs->line[i];

		if (l->state == LINE_OVER)
			continue;
		snprintf(text, sizeof(text),
			 "node %u: connection id 0x%x, token 0x%x, is in state %s, and its program "
			 "in %u",
			 l->client->node->id, l->id, l->token,
			 test_cm_state_name(test_cm_state(
				 urn_cm_agent_lock(l->client->node->host->a->cm), l->id)),
			 l->state);
		urn_cm_agent_unlock(l->client->node->host->a->cm);
		return text;
	}
	for (unsigned int i = 0; i < cs->calls; i++)
		if (cs->call[i].state != CALL_OVER) {
			snprintf(text, sizeof(text), "call %u is in state %u", i, cs->call[i].state);
			return text;
		}
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		if (cs->looks[i])
			return "services are to be looked up";
	return NULL;
}

bool
sim_calls_done(const struct sim *s)
{
	return !s->plan.cm || !sim_calls_open_line(s);
}

void
sim_calls_end(struct sim *s)
{
	for (unsigned int i = 0; s->plan.cm && i < s->plan.nodes; i++)
		for (unsigned int k = 0; k < s->plan.clients; k++) {
			struct sim_client *c = &s->node[i].host->client[k];
			struct urn_abi_req req = {.op = URN_CTL_CM_DESTROY, .handle = c->listener};
			struct urn_abi_rep rep;

			sim_client_must(c, &req, &rep, "taking a listener back");
			req.op = URN_CTL_DESTROY_QP;
			req.handle = c->guest_qpn;
			sim_client_must(c, &req, &rep, "taking the queue pair of guests back");
		}
}

bool
sim_calls_gone(struct sim *s)
{
	for (unsigned int i = 0; s->plan.cm && i < s->plan.nodes; i++) {
		struct urn_cm_agent *ag = s->node[i].host->a->cm;
		struct urn_cm *cm = urn_cm_agent_lock(ag);
		uint32_t left = test_cm_count(cm), held = test_cm_held(cm);

		if (left == 0 && held == 0 && urn_cm_due(cm) != UINT64_MAX)
			sim_fail(s, "node %u: no connection is left, and a timer is", i);
		urn_cm_agent_unlock(ag);
		/* A request whose asker gave up may wait for a listener that was taken back. */
		if (left || held)
			return false;
	}
	return true;
}
