/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Healing (FO-19), as the provider does it (lib/verbs/session/heal.c): each end makes its queue
 * pairs of a path anew by itself and tells the peer by OFFER, which travels like all control
 * messages: is lost, repeated, reordered, and comes much later. The rules are those of
 * session/heal.h. Both ends connect, the path carries probes, and each end trusts it for itself.
 */
#include "sess.h"

enum { SS_PROBES = 2 }; /* probes that a path carries before it is trusted */

void
ss_heal_open(struct ss_end *e)
{
	for (uint32_t p = 0; p < SS_PATHS; p++) {
		e->heal[p] = (struct ss_heal){.peer_trusts = true};
		e->heard[p] = (struct ss_heard){.round = 1, .to = 1};
		urn_sess_heal_begin(&e->heal[p].end);
	}
}

static bool
trusted(const struct ss_end *e, uint32_t p)
{
	return e->c.alive >> p & 1;
}

/* True when the machine uses a path, has not drained it, or is about to use it. */
static bool
busy(const struct ss_end *e, uint32_t p)
{
	return (e->c.open && e->c.path == p) || (e->c.state == URN_SESS_BINDING && e->c.next == p);
}

static void
offer(struct ss_end *e, uint32_t p)
{
	struct ss_heal *h = &e->heal[p];
	struct urn_sess_offer o = {
		.path = p,
		.flags = (trusted(e, p) ? URN_SESS_O_TRUSTED : 0) |
			 (h->peer_trusts ? URN_SESS_O_KNOWN : 0) |
			 (!trusted(e, p) && !h->fresh ? URN_SESS_O_LOST : 0),
		.round = h->end.own,
		.to = h->end.to,
		.qpn = h->end.own,
		.ctl_qpn = h->end.own,
	};
	struct ss_msg m = {0};

	if (h->told && ss_break(e->w, SS_BREAK_ONCE))
		return;
	h->told = true;
	m.length = urn_sess_wire_offer(m.bytes, !e->id, e->c.epoch, &o);
	ss_shell_put(e->w, !e->id, &m);
	ss_point(e->w, SS_AT_OFFER, e->id, p);
}

/* Make this end's queue pairs of a path anew, unconnected. */
static void
remake(struct ss_end *e, uint32_t p)
{
	struct ss_heal *h = &e->heal[p];

	if (trusted(e, p))
		urn_sess_down(&e->c, p);
	if (busy(e, p))
		ss_fail(e->w, "end %u: makes path %u anew, which its machine uses", e->id, p);
	urn_sess_heal_made(&h->end);
	h->fresh = true;
	h->peer_trusts = h->peer_lost = h->told = false;
	h->carried = 0;
	ss_net_make(e->w, e->id, p);
	ss_trace(e->w, "end %u: makes path %u anew, round %u", e->id, p, h->end.own);
}

static void
agree(struct ss_end *e, uint32_t p, uint32_t flags)
{
	struct ss_heal *h = &e->heal[p];

	h->end.agreed = true;
	if (!(h->peer_lost && ss_break(e->w, SS_BREAK_UNSAID)))
		h->peer_lost = h->peer_lost || (flags & URN_SESS_O_LOST) != 0;
	else
		h->peer_lost = (flags & URN_SESS_O_LOST) != 0;
	h->peer_trusts = !h->peer_lost && (flags & URN_SESS_O_TRUSTED) != 0;
	if (trusted(e, p) && (!(flags & URN_SESS_O_KNOWN) || ss_break(e->w, SS_BREAK_ANSWERS)))
		offer(e, p);
}

/* Carry out a step that changes this end. returns: false: not now */
static bool
heal_step(struct ss_end *e, enum urn_sess_heal_step step, const struct urn_sess_offer *o)
{
	struct ss_heal *h = &e->heal[o->path];

	if (step != URN_SESS_HEAL_CONNECT) {
		if (trusted(e, o->path))
			urn_sess_down(&e->c, o->path);
		if (busy(e, o->path) && !ss_break(e->w, SS_BREAK_IN_USE))
			return false;
		remake(e, o->path);
	}
	if (step == URN_SESS_HEAL_REMAKE)
		return true;
	if (!h->fresh || busy(e, o->path))
		return false;
	h->peer_lost = false;
	urn_sess_heal_connected(&h->end, o->round, false);
	if (o->to == h->end.own)
		agree(e, o->path, o->flags);
	return true;
}

/* Judge an offer, without the rules that a sabotage takes out. */
static enum urn_sess_heal_step
judge(struct ss_end *e, const struct urn_sess_offer *o)
{
	struct urn_sess_heal *h = &e->heal[o->path].end;
	enum urn_sess_heal_step step;

	if (o->round < h->seen && ss_break(e->w, SS_BREAK_STALE))
		h->seen = o->round;
	if (o->round == h->seen && o->to == 0 && h->bound != 0 &&
	    ss_break(e->w, SS_BREAK_OVERTAKEN))
		h->bound = 0;
	step = urn_sess_heal_judge(h, o->round, o->to);
	if (step >= URN_SESS_HEAL_REMAKE && ss_break(e->w, SS_BREAK_ROUND))
		step = URN_SESS_HEAL_AGREED;
	if (step == URN_SESS_HEAL_TELL && h->to == 0 && ss_break(e->w, SS_BREAK_TO_ANY))
		step = URN_SESS_HEAL_CONNECT;
	return step;
}

void
ss_heal_hear(struct ss_end *e, const struct urn_sess_offer *o)
{
	enum urn_sess_heal_step step;

	if (!ss_alive(e->w, e->id, o->path) || e->c.state == URN_SESS_DEAD)
		return;
	step = judge(e, o);
	ss_judge_offer(e, o, step);
	if (step == URN_SESS_HEAL_FORGED)
		ss_fail(e->w, "end %u: an offer of the peer counts as forged", e->id);
	else if (step == URN_SESS_HEAL_AGREED)
		agree(e, o->path, o->flags);
	else if (step == URN_SESS_HEAL_TELL || (step > URN_SESS_HEAL_TELL && heal_step(e, step, o)))
		offer(e, o->path);
	ss_judge_heard(e, o);
}

void
ss_heal_reported(struct ss_end *e, uint32_t paths)
{
	for (uint32_t p = 0; p < SS_PATHS; p++)
		if (!(paths >> p & 1))
			e->heal[p].peer_trusts = false;
}

/* The path has carried its probes: this end trusts it, whatever the other one does. */
static void
trust(struct ss_end *e, uint32_t p)
{
	struct ss_world *w = e->w;
	const struct ss_end *peer = &w->end[!e->id];

	e->heal[p].fresh = false;
	e->noticed[p] = false;
	urn_sess_up(&e->c, p);
	ss_trace(w, "end %u: trusts path %u", e->id, p);
	if (!ss_joined(w, p))
		ss_fail(w, "end %u: trusts path %u, which leads to an end that is gone", e->id, p);
	offer(e, p);
	ss_point(w, trusted(peer, p) ? SS_AT_HEALED : SS_AT_HEALING, e->id, w->end[0].c.path);
}

/* A path that is not alive: offer it, or probe it. */
static void
heal(struct ss_end *e, uint32_t p)
{
	struct ss_heal *h = &e->heal[p];
	bool carries = ss_carries(e->w, p) || ss_break(e->w, SS_BREAK_PROBE);

	if (!h->fresh || (h->end.agreed && !carries))
		remake(e, p);
	if (!h->end.agreed)
		offer(e, p);
	else if (++h->carried == SS_PROBES)
		trust(e, p);
}

/* True when paths that both ends trust, beside the one in use and a better one, outlast the loss of
 * either adapter of the better one: the other end may have lost that, unheard. */
static bool
outlasted(const struct ss_end *e, uint32_t better)
{
	bool mine = false, theirs = false;

	for (uint32_t p = 0; p < SS_PATHS; p++) {
		if (p == better || p == e->c.path || !trusted(e, p) || !e->heal[p].peer_trusts)
			continue;
		mine |= ss_adapter(e->id, p) != ss_adapter(e->id, better);
		theirs |= ss_adapter(!e->id, p) != ss_adapter(!e->id, better);
	}
	return mine && theirs;
}

void
ss_heal_lost(struct ss_end *e, uint32_t p)
{
	if (e->w->sc->heal && e->c.state != URN_SESS_DEAD && ss_alive(e->w, e->id, p))
		offer(e, p);
}

void
ss_heal_step(struct ss_end *e)
{
	uint32_t p = sim_rnd(&e->w->rng, SS_PATHS);
	uint32_t better = e->c.alive & ((1u << e->c.path) - 1);

	if (e->c.state == URN_SESS_DEAD)
		return;
	if (ss_alive(e->w, e->id, p) && !busy(e, p)) {
		if (!trusted(e, p))
			heal(e, p);
		else if (!e->heal[p].peer_trusts)
			offer(e, p);
	}
	if (e->c.state == URN_SESS_CONNECTED && better && sim_one_in(&e->w->rng, 8) &&
	    e->heal[__builtin_ctz(better)].peer_trusts &&
	    outlasted(e, (uint32_t)__builtin_ctz(better))) {
		e->w->returned = true;
		urn_sess_fail_back(&e->c);
	}
}

bool
ss_heal_over(const struct ss_world *w)
{
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t p = 0; p < SS_PATHS; p++)
			if (w->end[n].c.state != URN_SESS_DEAD && !trusted(&w->end[n], p))
				return false;
	return true;
}
