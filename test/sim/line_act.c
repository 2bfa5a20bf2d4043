/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines: actions of programs. Events and their checks are in line.c. */
#include "call_priv.h"

#include "unit/common/test_cm_look.h"

struct sim_line *
sim_line_new(struct sim_client *c, uint32_t id, enum line_kind kind, uint32_t token)
{
	struct sim_calls *cs = &sim_calls;
	struct sim_line *l = &cs->line[cs->lines];

	if (cs->lines == SIM_LINES) {
		sim_fail(c->node->s, "more connections than there may be");
		return NULL;
	}
	cs->lines++;
	*l = (struct sim_line){.client = c, .id = id, .token = token, .kind = (uint8_t)kind};
	return l;
}

uint8_t
sim_data(uint8_t *out, uint32_t room, uint32_t token, enum sim_says says)
{
	uint32_t seed = token * 16 + says, len = 8 + (uint32_t)(sim_word(seed, 1000) % (room - 7));

	sim_fill(out, seed, 0, len);
	memcpy(out, &token, 4);
	return (uint8_t)len;
}

struct sim_token *
sim_line_token(const struct sim_line *l)
{
	static struct sim_token nobodys;

	return l->token < SIM_TOKENS ? &sim_calls.token[l->token] : &nobodys;
}

static bool
tell(struct sim_line *l, uint32_t op, struct urn_abi_req *req, const char *what)
{
	struct urn_abi_rep rep;

	req->op = op;
	req->handle = l->id;
	sim_node_wake(l->client->node, l->client->node->s->now);
	return sim_client_must(l->client, req, &rep, what);
}

void
sim_line_end(struct sim_line *l)
{
	if (l->end)
		sim_end_ended(l->end);
}

/* The program lets go of the id. */
void
sim_line_let_go(struct sim_line *l)
{
	struct urn_abi_req req = {0};
	struct sim_token *t = sim_line_token(l);

	if (l->state == LINE_OVER)
		return;
	tell(l, URN_CTL_CM_DESTROY, &req, "letting go of a connection");
	l->state = LINE_OVER;
	l->client->node->s->moved = l->client->node->s->now;
	if (l->kind == LINE_ANSWERS && l->end)
		sim_line_end(l);
	if (l->kind != LINE_ASKS)
		return;
	if (t->up)
		sim_line_end(l);
	if (l->call->state == CALL_ASKS)
		sim_call_failed(l->call);
	else if (l->call->state == CALL_TALKS)
		l->call->state = CALL_ENDS;
}

uint64_t
sim_answer_at(struct sim *s)
{
	bool slow = sim_on(s, SIM_SLOW) && sim_one_in(&s->rng, 3);

	s->stats.fired[SIM_SLOW] += slow;
	return s->now + (slow ? sim_rnd(&s->rng, 400000000) : sim_rnd(&s->rng, 20000));
}

static void
reject(struct sim_line *l)
{
	struct urn_abi_req req = {0};

	req.cm_reject.reason = URN_CM_REJ_CONSUMER;
	req.cm_reject.data_len = sim_data(req.cm_reject.data, URN_CM_REJ_DATA, l->token, SIM_SAYS_REJ);
	l->client->node->s->stats.fired[SIM_REFUSE] += sim_on(l->client->node->s, SIM_REFUSE);
	if (tell(l, URN_CTL_CM_REJECT, &req, "refusing"))
		sim_line_let_go(l);
}

static void
answer_look(struct sim_line *l)
{
	struct urn_abi_req req = {0};
	struct urn_abi_cm_accept *p = &req.cm_accept;
	struct sim_token *t = sim_line_token(l);

	p->status = t->refuse ? URN_CM_SIDR_REJECT : URN_CM_SIDR_VALID;
	p->qpn = t->refuse ? 0 : l->client->guest_qpn;
	p->psn = t->refuse ? 0 : l->token * 77 + 1;
	p->data_len = sim_data(p->data, URN_CM_SIDR_REP_DATA, l->token, SIM_SAYS_SIDR_REP);
	l->client->node->s->stats.fired[SIM_REFUSE] += t->refuse;
	t->reply_qpn = p->qpn;
	t->reply_psn = p->psn;
	t->refused_at = l->client->node->s->now;
	if (tell(l, URN_CTL_CM_ACCEPT, &req, "answering a look-up"))
		sim_line_let_go(l);
}

/* Accept with the call's queue pair, if the attempt is still the call's; else with an unused queue pair. */
static void
accept_request(struct sim_line *l)
{
	struct urn_abi_req req = {0};
	struct urn_abi_cm_accept *p = &req.cm_accept;
	struct sim_token *t = sim_line_token(l);
	struct sim_call *c = l->kind == LINE_ANSWERS ? t->call : NULL;
	bool current = c && c->token == l->token && c->state == CALL_ASKS && !t->accepted &&
		       t->asks->state != LINE_OVER;

	p->qpn = l->client->guest_qpn;
	if (current) {
		struct sim_end *e = c->end[1];

		sim_end_up(e, URN_QPS_RTR, t->qpn, c->psn[0], c->psn[1]);
		e->rq.over = false;
		p->qpn = e->qp->qpn;
		p->psn = c->psn[0];
		l->end = e;
		l->call = c;
		t->accepted = true;
		t->answers = l;
	} else if (l->kind == LINE_ANSWERS) {
		l->kind = LINE_GUEST;
	}
	p->rnr_retry = 7;
	p->data_len = sim_data(p->data, URN_CM_REP_DATA, l->token, SIM_SAYS_REP);
	t->reply_qpn = p->qpn;
	t->reply_psn = p->psn;
	if (tell(l, URN_CTL_CM_ACCEPT, &req, "accepting"))
		l->state = LINE_ACCEPTED;
}

static void
answer(struct sim_line *l)
{
	struct sim_token *t = sim_line_token(l);
	struct sim *s = l->client->node->s;

	if (l->kind == LINE_TELLS) {
		answer_look(l);
	} else if (l->kind == LINE_GUEST ? sim_one_in(&s->rng, 4) : t->refuse) {
		t->refused_at = s->now;
		reject(l);
	} else {
		accept_request(l);
	}
}

void
sim_line_talk(struct sim_line *l)
{
	l->state = LINE_UP;
	if (!l->end)
		return;
	l->end->left = l->client->node->s->plan.ops;
	l->end->due = l->client->node->s->now;
	l->end->rq.over = false;
}

/* Answer a reply: say that the program is ready, or refuse. */
static void
conclude(struct sim_line *l)
{
	struct urn_abi_req req = {0};
	struct sim_token *t = sim_line_token(l);
	struct sim_call *c = l->call;

	if (t->refuse_reply) {
		t->refused_reply = true;
		reject(l);
		return;
	}
	sim_end_up(l->end, URN_QPS_RTS, t->reply_qpn, c->psn[1], c->psn[0]);
	req.cm_data.data_len = sim_data(req.cm_data.data, URN_CM_RTU_DATA, l->token, SIM_SAYS_RTU);
	if (!tell(l, URN_CTL_CM_ESTABLISH, &req, "being ready"))
		return;
	t->up = true;
	sim_line_talk(l);
	sim_call_up(c);
}

/* Agree to the end that the peer asks for. */
static void
agree(struct sim_line *l)
{
	struct urn_abi_req req = {0};

	sim_line_end(l);
	req.cm_data.data_len = sim_data(req.cm_data.data, URN_CM_DREP_DATA, l->token, SIM_SAYS_DREP);
	if (!tell(l, URN_CTL_CM_DISCONNECT, &req, "agreeing to part"))
		return;
	l->state = LINE_ENDS;
	if (sim_one_in(&l->client->node->s->rng, 3))
		sim_line_let_go(l);
}

enum urn_cm_state
sim_line_state(const struct sim_line *l)
{
	struct urn_cm_agent *ag = l->client->node->host->a->cm;
	enum urn_cm_state st = test_cm_state(urn_cm_agent_lock(ag), l->id);

	urn_cm_agent_unlock(ag);
	return st;
}

/* True when the dataplane ended the line already, because the peer forgot it and said so. */
static bool
is_ended(const struct sim_line *l)
{
	return sim_on(l->client->node->s, SIM_FORGET) && sim_line_state(l) == URN_CM_TIMEWAIT;
}

void
sim_line_hang_up(struct sim_line *l, bool forget)
{
	struct urn_abi_req req = {0};

	sim_line_end(l);
	if (forget) {
		l->client->node->s->stats.fired[SIM_FORGET]++;
		sim_line_let_go(l);
		return;
	}
	req.cm_data.data_len = sim_data(req.cm_data.data, URN_CM_DREQ_DATA, l->token, SIM_SAYS_DREQ);
	if (is_ended(l) || tell(l, URN_CTL_CM_DISCONNECT, &req, "parting"))
		l->state = LINE_ENDS;
}

void
sim_line_answer(struct sim_line *l)
{
	switch (l->state) {
	case LINE_ANSWER:
		answer(l);
		break;
	case LINE_REPLIED:
		conclude(l);
		break;
	case LINE_PARTS:
		agree(l);
		break;
	default:
		break;
	}
}
