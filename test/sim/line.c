/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines: events that programs get from connection management, and checks of them. */
#include "call_priv.h"

#include "unit/common/test_cm_look.h"

#include <errno.h>

#define REFUSAL_NS 4200000000ull /* shortest time for which a refusal is repeated (4.3 s) */

/* Faults that can lose messages. */
#define WIRES (SIM_BIT(DROP) | SIM_BIT(CORRUPT) | SIM_BIT(RATE) | SIM_BIT(EXHAUST))

static void __attribute__((format(printf, 2, 3)))
wrong(const struct sim_line *l, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sim_fail(l->client->node->s, "node %u: connection id 0x%x, token 0x%x: %s", l->client->node->id,
		 l->id, l->token, text);
}

/* ---- private data */

static bool
all_zero(const struct urn_abi_cm_event *ev)
{
	for (unsigned int i = 0; i < ev->data_len; i++)
		if (ev->data[i])
			return false;
	return true;
}

static bool
is_whole(const struct sim_line *l, const struct urn_abi_cm_event *ev, enum sim_says says)
{
	uint8_t want[URN_CM_DATA_MAX] = {0};

	if (l->kind == LINE_GUEST)
		return true;
	sim_data(want, ev->data_len, l->token, says);
	return memcmp(want, ev->data, ev->data_len) == 0;
}

static void
check_data(const struct sim_line *l, const struct urn_abi_cm_event *ev, enum sim_says says)
{
	if (!is_whole(l, ev, says))
		wrong(l, "private data of event %u is not what was said", ev->type);
}

/* ---- requests */

/* True when the queue pair is connected here already: its owner forgot the connection, the peer did
 * not. */
static bool
is_connected(const struct sim_line *l)
{
	const struct sim_calls *cs = &sim_calls;
	const struct sim_node *n = l->client->node;
	const struct sim_token *t = sim_line_token(l);
	struct urn_cm *cm = urn_cm_agent_lock(n->host->a->cm);
	bool found = false;

	for (unsigned int i = 0; i < cs->lines; i++) {
		const struct sim_line *o = &cs->line[i];
		const struct sim_token *was = sim_line_token(o);

		if (o != l && o->client->node == n && o->kind == LINE_ANSWERS && o->state == LINE_UP &&
		    was->qpn == t->qpn && was->asks->client->node == t->asks->client->node &&
		    test_cm_state(cm, o->id) == URN_CM_ESTABLISHED)
			found = true;
	}
	urn_cm_agent_unlock(n->host->a->cm);
	return found;
}

static void
check_request(struct sim_line *l, const struct urn_abi_cm_event *ev, bool sidr)
{
	struct sim_token *t = sim_line_token(l);
	struct sim *s = l->client->node->s;

	if (l->token >= sim_calls.tokens || !t->asks) {
		wrong(l, "a request that nobody made");
		return;
	}
	check_data(l, ev, sidr ? SIM_SAYS_SIDR : SIM_SAYS_REQ);
	if (t->requests++ && !(t->refused_at && s->now > t->refused_at + REFUSAL_NS))
		wrong(l, "a request came twice");
	if (!sidr && (ev->qpn != t->qpn || ev->psn != t->psn || ev->mtu != s->plan.mtu_code ||
		      ev->responder_resources != s->plan.dest_rd_atomic ||
		      ev->initiator_depth != s->plan.rd_atomic))
		wrong(l, "a request for queue pair 0x%x, PSN 0x%x: it is 0x%x, 0x%x", ev->qpn, ev->psn,
		      t->qpn, t->psn);
	if (memcmp(ev->gid, t->asks->client->node->gid, 16) != 0 || t->wrong)
		wrong(l, "a request from elsewhere, or to elsewhere");
	if (!sidr && is_connected(l))
		wrong(l, "a request for queue pair 0x%x, which is connected", t->qpn);
	t->refused_at = 0;
}

static void
requested(struct sim_client *c, const struct urn_abi_cm_event *ev)
{
	bool sidr = ev->type == URN_CM_EVENT_SIDR_REQUEST;
	struct sim_line *l;
	uint32_t token;

	memcpy(&token, ev->data, 4);
	l = sim_line_new(c, ev->id, sidr ? LINE_TELLS : token < SIM_ROGUE_TOKEN ? LINE_ANSWERS : LINE_GUEST,
			 token);
	if (!l)
		return;
	l->state = LINE_ANSWER;
	l->due = sim_answer_at(c->node->s);
	if (ev->listen_id != c->listener)
		wrong(l, "a request at a listener that is not the program's");
	if (token < SIM_ROGUE_TOKEN)
		check_request(l, ev, sidr);
}

/* ---- events of an id */

static void
on_reply(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	const struct sim_token *t = sim_line_token(l);

	check_data(l, ev, SIM_SAYS_REP);
	if (l->kind != LINE_ASKS || l->state != LINE_ASKED || ev->qpn != t->reply_qpn ||
	    ev->psn != t->reply_psn)
		wrong(l, "a reply with queue pair 0x%x, PSN 0x%x: it is 0x%x, 0x%x", ev->qpn, ev->psn,
		      t->reply_qpn, t->reply_psn);
	l->state = LINE_REPLIED;
	l->due = sim_answer_at(l->client->node->s);
}

static void
on_established(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	const struct sim_token *t = sim_line_token(l);

	if (l->state != LINE_ACCEPTED || (l->kind == LINE_ANSWERS && !t->up))
		wrong(l, "the connection is established, and nobody said so");
	check_data(l, ev, SIM_SAYS_RTU);
	if (l->end && l->end->qp->state == URN_QPS_RTR)
		sim_end_up(l->end, URN_QPS_RTS, t->qpn, l->call->psn[0], l->call->psn[1]);
	sim_line_talk(l);
}

/* True when the dataplane has given up the line, and its program has not heard yet. */
static bool
is_to_hear(const struct sim_line *l)
{
	const struct urn_cm_note *n;

	TAILQ_FOREACH(n, &l->client->c->cm.notes, link)
		if (n->ev.id == l->id && n->ev.type == URN_CM_EVENT_UNREACHABLE)
			return true;
	return false;
}

/* True when the line's other side has given up, or let go. */
static bool
peer_gave_up(const struct sim_line *l)
{
	const struct sim_calls *cs = &sim_calls;
	bool asks = l->kind == LINE_ASKS;

	if (sim_line_token(l)->gave_up[asks])
		return true;
	for (unsigned int i = 0; i < cs->lines; i++)
		if (cs->line[i].token == l->token && (cs->line[i].kind == LINE_ASKS) != asks &&
		    is_to_hear(&cs->line[i]))
			return true;
	return false;
}

/* True when the reason in an event is a real one. */
static bool
has_reason(const struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	const struct sim_token *t = sim_line_token(l);
	const struct sim *s = l->client->node->s;

	switch (ev->reason) {
	case URN_CM_REJ_CONSUMER:
		return l->kind == LINE_ASKS ? t->refuse && is_whole(l, ev, SIM_SAYS_REJ)
					    : t->refused_reply && is_whole(l, ev, SIM_SAYS_REJ);
	case URN_CM_REJ_INVALID_SERVICE_ID:
		return t->wrong;
	case URN_CM_REJ_STALE_CONN:
		/* The peer still has the QPN of an old connection: forgotten here, or given up unheard. */
		return l->kind == LINE_ASKS && (l->call->tries > 1 || sim_on(s, SIM_FORGET));
	case URN_CM_REJ_TIMEOUT:
		return peer_gave_up(l);
	case URN_CM_REJ_INVALID_COMM_ID:
		return l->kind == LINE_ANSWERS && t->asks->state == LINE_OVER;
	default:
		return false;
	}
}

static void
on_rejected(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	if (l->kind != LINE_GUEST && !has_reason(l, ev))
		wrong(l, "refused for reason %u, and that is not so", ev->reason);
	sim_line_let_go(l);
}

static void
on_unreachable(struct sim_line *l)
{
	struct sim *s = l->client->node->s;

	/* A look-up can't be told to wait; a reply may find that its asker does not wait any more. */
	bool may = l->kind == LINE_GUEST || (l->kind == LINE_LOOKS && sim_on(s, SIM_SLOW));
	struct sim_token *t = sim_line_token(l);

	if (!may && !(s->plan.faults & WIRES))
		wrong(l, "nobody answers, and the wires are good");
	if (!may && t->sure && (l->kind != LINE_ANSWERS || t->up))
		wrong(l, "nobody answers, and the wires are not that bad");
	t->gave_up[l->kind != LINE_ASKS] = true;
	sim_line_let_go(l);
}

static void
on_disconnect(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	if (l->state != LINE_UP && l->state != LINE_ACCEPTED)
		wrong(l, "the peer parts in state %u", l->state);
	if (!all_zero(ev))
		check_data(l, ev, SIM_SAYS_DREQ);
	l->state = LINE_PARTS;
	l->due = sim_answer_at(l->client->node->s);
}

/* A disconnection: with the data of the peer's DREP; or of a DREQ, when both asked at once; or without data. */
static void
on_disconnected(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	/* The dataplane ends a connection by itself when the peer says that it forgot it
	 * (cm/cm_stale.c). */
	bool asked = l->state == LINE_ENDS || sim_on(l->client->node->s, SIM_FORGET);

	if (!asked && l->kind != LINE_GUEST)
		wrong(l, "parted, and the program did not ask");
	/* A reason says that the peer did not agree: only bad wires or slow programs may cause that. */
	if (ev->reason && !(l->client->node->s->plan.faults & (WIRES | SIM_BIT(SLOW))) &&
	    l->kind != LINE_GUEST)
		wrong(l, "nobody agrees to part, and the wires are good");
	if (ev->reason && sim_line_token(l)->sure && !sim_on(l->client->node->s, SIM_SLOW) && l->kind != LINE_GUEST)
		wrong(l, "nobody agrees to part, and the wires are not that bad");
	if (!all_zero(ev) && !is_whole(l, ev, SIM_SAYS_DREP) && !is_whole(l, ev, SIM_SAYS_DREQ))
		wrong(l, "private data of the agreement is not what was said");
	sim_line_end(l);
	l->state = LINE_ENDS;
}

static void
on_sidr_reply(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	const struct sim_token *t = sim_line_token(l);
	uint16_t want = t->wrong ? URN_CM_SIDR_UNSUPPORTED : t->refuse ? URN_CM_SIDR_REJECT : 0;

	if (l->kind != LINE_LOOKS || ev->reason != want)
		wrong(l, "a look-up is answered with status %u, not %u", ev->reason, want);
	if (!t->wrong)
		check_data(l, ev, SIM_SAYS_SIDR_REP);
	if (!want && (ev->qpn != t->reply_qpn || ev->qkey != t->reply_psn))
		wrong(l, "a look-up finds queue pair 0x%x, and it is 0x%x", ev->qpn, t->reply_qpn);
	sim_line_let_go(l);
}

static void
event(struct sim_line *l, const struct urn_abi_cm_event *ev)
{
	if (l->seen >> ev->type & 1)
		wrong(l, "event %u came twice", ev->type);
	l->seen |= 1u << ev->type;
	if (l->kind <= LINE_LOOKS && l->kind != LINE_ANSWERS && l->kind != LINE_GUEST && ev->cookie != l->token)
		wrong(l, "an event with the cookie 0x%llx", (unsigned long long)ev->cookie);
	switch (ev->type) {
	case URN_CM_EVENT_REPLY:
		on_reply(l, ev);
		break;
	case URN_CM_EVENT_ESTABLISHED:
		on_established(l, ev);
		break;
	case URN_CM_EVENT_REJECTED:
		on_rejected(l, ev);
		break;
	case URN_CM_EVENT_UNREACHABLE:
		on_unreachable(l);
		break;
	case URN_CM_EVENT_DISCONNECT:
		on_disconnect(l, ev);
		break;
	case URN_CM_EVENT_DISCONNECTED:
		on_disconnected(l, ev);
		break;
	case URN_CM_EVENT_TIMEWAIT:
		sim_line_let_go(l);
		break;
	case URN_CM_EVENT_SIDR_REPLY:
		on_sidr_reply(l, ev);
		break;
	default:
		wrong(l, "event %u makes no sense", ev->type);
	}
}

static struct sim_line *
line_of(const struct sim_client *c, uint32_t id)
{
	struct sim_calls *cs = &sim_calls;

	for (unsigned int i = cs->lines; i-- > 0;)
		if (cs->line[i].client == c && cs->line[i].id == id)
			return cs->line[i].state == LINE_OVER ? NULL : &cs->line[i];
	return NULL;
}

static void
fetch_events(struct sim_client *c)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	struct urn_abi_rep rep;
	struct sim *s = c->node->s;
	struct sim_line *l;

	while (!s->why[0] && sim_client_call(c, &req, &rep, NULL) == 0) {
		const struct urn_abi_cm_event *ev = &rep.cm_event;

		sim_note(s, (int)c->node->id, "cm", (uint64_t)ev->type << 32 | ev->id, ev->reason, ev->qpn);
		s->stats.completions++;
		s->moved = s->now;
		s->idle_events = 0;
		if (ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST) {
			requested(c, ev);
			continue;
		}
		l = line_of(c, ev->id);
		if (l)
			event(l, ev);
		else
			sim_fail(s, "node %u: event %u of connection id 0x%x, which the program let go of",
				 c->node->id, ev->type, ev->id);
	}
}

void
sim_lines_turn(struct sim_node *n, uint64_t *due)
{
	struct sim_calls *cs = &sim_calls;
	struct sim *s = n->s;

	for (unsigned int i = 0; i < s->plan.clients; i++)
		if (!TAILQ_EMPTY(&n->host->client[i].c->cm.notes))
			fetch_events(&n->host->client[i]);
	for (unsigned int i = 0; i < cs->lines && !s->why[0]; i++) {
		struct sim_line *l = &cs->line[i];
		bool waits = l->state == LINE_ANSWER || l->state == LINE_REPLIED || l->state == LINE_PARTS;

		if (l->client->node != n || !waits)
			continue;
		if (s->now >= l->due)
			sim_line_answer(l);
		else if (l->due < *due)
			*due = l->due;
	}
}
