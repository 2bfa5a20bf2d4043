/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle of active messages (AM-1). Handlers look at what came; replies and failures must be
 * true:
 *
 *   a handler     runs once for a request that was sent to its talker, with the bytes that were
 * sent
 *
 *   a reply       comes once, after the request's handler has replied, with its bytes
 *
 *   silence       the handler ran, and did not reply
 *
 *   a failure     comes once; its reason was so; EHOSTUNREACH without "may be there": the handler
 *                 never runs
 */
#include "amsim.h"

#include <errno.h>

/* ms that a request's failure may be late: the library looks every 100 ms, a talker every 20 ms, a
 * slow one more */
enum { LATE_MS = 400 };

static struct ms_world *world; /* world of the handlers that run */

/* ---- requests */

static void
wrong(const char *what, const struct as_request *r)
{
	ms_fail(world, "request %u of talker %u to %u: %s", r->id, r->from, r->to, what);
}

/* The request with this number in its first argument. */
static struct as_request *
request_of(const struct urn_am_message *m)
{
	if (!m->args || m->arg[0] >= world->as->requests)
		ms_fail(world, "a message came that nobody sent");
	return &world->as->request[m->arg[0]];
}

/* True when the bytes are those of a seed. */
static bool
is_filled(const uint8_t *data, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != sim_byte(seed, i))
			return false;
	return true;
}

static bool
args_hold(const struct urn_am_message *m, const struct as_request *r)
{
	if (m->args != 1 + r->id % URN_AM_ARGS)
		return false;
	for (uint32_t i = 1; i < URN_AM_ARGS; i++)
		if (m->arg[i] != (i < m->args ? sim_word(r->id, 1000 + i) : 0))
			return false;
	return true;
}

/* Bytes of a request's reply, which both sides know. */
static uint32_t
reply_len(const struct as_talker *from, const struct as_talker *to, const struct as_request *r)
{
	return (uint32_t)(sim_word(r->id, 2000) >> 32) % (RTE_MIN(from->payload, to->payload) + 1);
}

/* ---- rules that are broken on purpose (AM-1) */

static void
break_rules(struct as_talker *t, const struct urn_am_message *m, const struct as_request *r)
{
	struct urn_am_memory memory = {0};
	struct urn_rma op = {.to = &t->address, .memory = &memory, .len = 1};
	uint64_t number;

	if (urn_am_request(t->ep, &t->address, AS_H_MUTE, NULL, 0, NULL, 0, &number) != EPERM)
		wrong("a handler may send a request", r);
	if (urn_rma_write(t->ep, &op) != EPERM || urn_rma_read(t->ep, &op) != EPERM)
		wrong("a handler may access remote memory", r);
	if (urn_am_progress(t->ep) != 0)
		wrong("a handler may run handlers", r);
	if (urn_am_reply(t->ep, m->token + 1, AS_H_ANSWER, NULL, 0, NULL, 0) != EPERM)
		wrong("a reply with the token of another is taken", r);
}

/* ---- handlers */

/* Reply with a payload that is written in place. returns: like urn_am_reply() */
static int
reply_prepared(struct as_talker *t, const struct urn_am_message *m, const struct as_request *r,
	       uint32_t len)
{
	struct urn_am_prepared p;
	uint64_t arg = r->id;
	int err = urn_am_reply_prepare(t->ep, m->token, t->payload, &p);

	if (err == 0 && r->id % 4 == 0) /* anew */
		err = urn_am_reply_prepare(t->ep, m->token, len, &p);
	if (err != 0)
		return err;
	sim_fill(p.data, ~r->id, 0, len);
	return urn_am_reply_commit(t->ep, &p, AS_H_ANSWER, &arg, 1, len);
}

static void
reply(struct as_talker *t, const struct urn_am_message *m, struct as_request *r)
{
	const struct as_talker *from = &world->as->talker[r->from];
	uint32_t len = reply_len(from, t, r);
	uint64_t arg = r->id;

	int err;

	sim_fill(world->as->scratch, ~r->id, 0, len);
	err = sim_word(r->id, 3001) % 3 == 0 ? reply_prepared(t, m, r, len)
					     : urn_am_reply(t->ep, m->token, AS_H_ANSWER, &arg, 1,
							    world->as->scratch, len);
	if (err != 0)
		wrong("the library has no room for its reply", r);
	r->replied = true;
	if (r->handler == AS_H_RULES &&
	    urn_am_reply(t->ep, m->token, AS_H_ANSWER, &arg, 1, NULL, 0) != EALREADY)
		wrong("a second reply is taken", r);
}

/* A request came to a handler of the number `handler`. */
static void
serve(struct as_talker *t, const struct urn_am_message *m, uint32_t handler)
{
	struct as_request *r = request_of(m);
	const struct as_talker *from = &world->as->talker[r->from];

	ms_trace(world, "request %u comes to talker %u", r->id, t->id);
	if (r->to != t->id || r->handler != handler)
		wrong("the request came to another handler", r);
	if (!args_hold(m, r) || m->len != r->len || !is_filled(m->data, m->len, r->id))
		wrong("the request came torn", r);
	if (memcmp(m->node, world->node[from->node].gid, 16) != 0)
		wrong("the request came from another node", r);
	if (r->never)
		wrong("the request came after its requester was told that none would", r);
	if (r->came++)
		wrong("the handler ran twice", r);
	if (handler == AS_H_RULES)
		break_rules(t, m, r);
	if (handler != AS_H_MUTE)
		reply(t, m, r);
}

static void
serve_broken(struct as_talker *t, const struct urn_am_message *m, uint32_t handler)
{
	for (unsigned int n = as_sabotage_request(world); n; n--)
		serve(t, m, handler);
}

static void
hear_reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	serve_broken(arg, m, AS_H_REPLY);
}

static void
hear_mute(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	serve_broken(arg, m, AS_H_MUTE);
}

static void
hear_rules(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	serve_broken(arg, m, AS_H_RULES);
}

/* A request has ended. */
static void
end(struct as_talker *t, struct as_request *r)
{
	if (r->ended)
		wrong("the request ended twice", r);
	if (!t->open)
		wrong("the request ended, and none of its talker is open", r);
	r->ended = true;
	t->open--;
	world->pending--;
	ms_note(world, world->now);
	ms_note(world, r->id);
}

static void
take_answer(struct as_talker *t, const struct urn_am_message *m, bool spoilt)
{
	struct as_request *r = request_of(m);
	uint32_t len = reply_len(&world->as->talker[r->from], &world->as->talker[r->to], r);

	ms_trace(world, "the reply to request %u comes", r->id);
	if (r->from != t->id || r->number != m->number || !r->came || !r->replied)
		wrong("a reply came that nobody sent", r);
	if (memcmp(m->node, world->node[world->as->talker[r->to].node].gid, 16) != 0)
		wrong("its reply came from another node", r);
	if (m->len != len || !is_filled(m->data, len, spoilt ? r->id : ~r->id))
		wrong("its reply came torn", r);
	if (urn_am_reply(t->ep, m->token, AS_H_ANSWER, NULL, 0, NULL, 0) != EPERM)
		wrong("a reply to a reply is taken", r);
	end(t, r);
	world->stats.done++;
	world->stats.more[AS_REPLIES]++;
}

static void
hear_answer(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	bool spoil = false;

	(void)ep;
	for (unsigned int n = as_sabotage_reply(world, &spoil); n; n--)
		take_answer(arg, m, spoil);
}

/* ---- failures */

/* True when the target may have left its queue alone for long. */
static bool
is_slow(const struct as_talker *to)
{
	return world->plan.slow_in || to->closed < world->now;
}

/*
 * True when the target's library dropped the request: the requester's node has
 * acknowledged no answer for 500 ms, and the room for answers is used up: on wires that lose much
 * this happens to honest nodes. Each drop is the reason of one failure.
 */
static bool
was_dropped(const struct as_request *r, struct as_talker *to)
{
	struct urn_am_stats s;

	if (r->came || to->ep == NULL)
		return false;
	urn_am_get_stats(to->ep, &s);
	if (to->dropped >= s.dropped_requests)
		return false;
	to->dropped++;
	return true;
}

/* True when the answer may have gone with its flow, or with the target. */
static bool
is_answer_lost(const struct as_request *r, const struct as_talker *from, const struct as_talker *to)
{
	return as_flow_failed(world, to->node, from->node, r->posted) ||
	       as_was_down(world, to->node, r->posted);
}

static bool
is_delivery_true(const struct as_request *r, const struct as_talker *from,
		 const struct as_talker *to, uint8_t code)
{
	switch (code & ~URN_MSG_MAY_BE_THERE) {
	case URN_MSG_NO_QUEUE:
		return to->closed < world->now;
	case URN_MSG_TOO_LONG:
		return r->len > to->payload;
	case URN_MSG_QUEUE_FULL:
		return is_slow(to) && world->now - r->posted >= world->plan.am.answer_ms * MS_MS;
	case URN_MSG_UNREACHABLE:
		return as_flow_failed(world, from->node, to->node, r->posted);
	case URN_MSG_RESTARTED:
		return as_flow_restarted(world, from->node, to->node, r->posted);
	case URN_MSG_BUSY:
		return as_any_failed(world, to->node, r->posted) ||
		       as_was_down(world, to->node, r->posted);
	default:
		return false;
	}
}

/* True when the failure names something that was so. */
static bool
is_true(const struct as_request *r, const struct urn_am_failure *f)
{
	const struct as_talker *from = &world->as->talker[r->from];
	struct as_talker *to = &world->as->talker[r->to];

	switch (f->err) {
	case ENOSYS:
		return r->handler == AS_H_MISSING && !f->code;
	case ETIMEDOUT:
		return !f->code && world->now - r->posted >= world->plan.am.answer_ms * MS_MS &&
		       (is_slow(to) || is_answer_lost(r, from, to) || was_dropped(r, to));
	case EHOSTUNREACH:
		return is_delivery_true(r, from, to, f->code);
	default:
		return false;
	}
}

static struct as_request *
find(const struct as_talker *t, uint64_t number)
{
	for (uint32_t i = world->as->requests; i; i--) {
		struct as_request *r = &world->as->request[i - 1];

		if (r->from == t->id && r->number == number)
			return r;
	}
	ms_fail(world, "talker %u: a request failed that was never sent", t->id);
}

static void
hear_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *failure, void *arg)
{
	struct as_talker *t = arg;
	struct urn_am_failure f = *failure;
	struct as_request *r = find(t, f.number);

	(void)ep;
	if (!as_sabotage_failure(world, r, &f))
		return;
	ms_trace(world, "request %u failed: %d, %s%s", r->id, f.err, urn_msg_code_word(f.code),
		 f.code & URN_MSG_MAY_BE_THERE ? ", may be there" : "");
	if (!is_true(r, &f))
		ms_fail(world, "request %u failed with %d, %s, which is not so", r->id, f.err,
			urn_msg_code_word(f.code));
	r->never = f.err == ENOSYS || (f.err == EHOSTUNREACH && !(f.code & URN_MSG_MAY_BE_THERE));
	if (r->never && r->came)
		wrong("the request failed, and its handler ran", r);
	end(t, r);
	world->stats.errors++;
	world->stats.may_be += (f.code & URN_MSG_MAY_BE_THERE) != 0;
	world->stats.more[AS_FAILURES]++;
}

/* ---- looks */

void
as_hear(struct ms_world *w, struct as_talker *t)
{
	world = w;
	(void)urn_am_handle(t->ep, AS_H_REPLY, hear_reply, t);
	(void)urn_am_handle(t->ep, AS_H_MUTE, hear_mute, t);
	(void)urn_am_handle(t->ep, AS_H_RULES, hear_rules, t);
	(void)urn_am_handle(t->ep, AS_H_ANSWER, hear_answer, t);
	urn_am_on_failure(t->ep, hear_failure, t);
}

/* Requests of a talker whose handler ran, and did not reply. */
static uint32_t
mute_ones(const struct ms_world *w, const struct as_talker *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->as->requests; i++) {
		const struct as_request *r = &w->as->request[i];

		n += r->from == t->id && !r->ended && r->came && !r->replied;
	}
	return n;
}

void
as_hear_silent(struct ms_world *w, struct as_talker *t)
{
	uint32_t pending = urn_am_pending(t->ep);
	uint32_t silent = t->open - RTE_MIN(t->open, pending);

	if (pending > t->open || silent < t->silent)
		ms_fail(w,
			"talker %u: the library has %u open requests, the program %u, %u of them "
			"ended before",
			t->id, pending, t->open, t->silent);
	if (silent == t->silent)
		return;
	if (silent > mute_ones(w, t))
		ms_fail(w, "talker %u: %u requests ended in silence, %u handlers did not reply",
			t->id, silent, mute_ones(w, t));
	w->pending -= silent - t->silent;
	w->stats.done += silent - t->silent;
	t->silent = silent;
}

void
as_hear_close(struct ms_world *w, struct as_talker *t)
{
	struct urn_am_stats s;

	urn_am_get_stats(t->ep, &s);
	if (s.malformed)
		ms_fail(w, "talker %u: %llu messages were malformed", t->id,
			(unsigned long long)s.malformed);
	for (uint32_t i = 0; i < w->as->requests; i++) {
		struct as_request *r = &w->as->request[i];

		if (r->from != t->id || r->ended)
			continue;
		r->orphan = true;
	}
	w->pending -= t->open - t->silent;
	if (w->quiet && w->pending == 0 && t->open != mute_ones(w, t))
		ms_fail(w, "talker %u: %u requests have no answer, %u handlers did not reply",
			t->id, t->open, mute_ones(w, t));
}

void
as_hear_look(struct ms_world *w)
{
	const struct as_sim *s = w->as;
	uint64_t most = (w->plan.am.answer_ms + LATE_MS) * MS_MS + 100 * w->plan.read_gap;

	for (uint32_t i = 0; i < s->requests; i++) {
		const struct as_request *r = &s->request[i];

		if (r->ended || r->orphan || (r->came && !r->replied) || w->now - r->posted < most)
			continue;
		ms_fail(w, "request %u of talker %u to %u has no answer for %.3f ms", i, r->from,
			r->to, (double)(w->now - r->posted) / 1e6);
	}
}

void
as_hear_end(struct ms_world *w)
{
	const struct as_sim *s = w->as;

	for (uint32_t i = 0; i < s->requests; i++) {
		const struct as_request *r = &s->request[i];

		if (!r->ended && !r->orphan)
			ms_fail(w, "request %u has no answer at the end", i);
	}
}
