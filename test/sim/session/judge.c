/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of both ends, and the oracle: their posts, and all that they saw. */
#include "sess.h"

/* ---- programs */

static uint8_t
choose(struct ss_world *w)
{
	static const uint8_t kinds[] = {
		URN_SESS_SEND,	URN_SESS_SEND, URN_SESS_SEND,	URN_SESS_WRITE,
		URN_SESS_WRITE, URN_SESS_READ, URN_SESS_ATOMIC, URN_SESS_BIND,
	};

	return kinds[sim_rnd(&w->rng, sizeof(kinds))];
}

static void
post(struct ss_end *e)
{
	uint64_t seq, limit = 1 + (e->w->seed + e->id) % SS_WRS;
	struct ss_req *r = &e->req[e->posts];
	int now;

	if (e->posts == e->target || e->posts - e->completed >= limit)
		return;
	*r = (struct ss_req){.kind = choose(e->w), .result = ~0ull};
	now = urn_sess_post(&e->c, (enum urn_sess_kind)r->kind, &seq);
	if (now < 0)
		return;
	if (seq != e->posts)
		ss_fail(e->w, "end %u: request %u has the number %llu", e->id, e->posts,
			(unsigned long long)seq);
	r->number = r->kind == URN_SESS_SEND	 ? ++e->sends
		    : r->kind == URN_SESS_WRITE	 ? ++e->writes
		    : r->kind == URN_SESS_ATOMIC ? ++e->atomics
						 : 0;
	r->id = e->sends + e->writes;
	if (r->kind == URN_SESS_WRITE)
		e->last_write[r->number % SS_SLOTS] = r->number;
	memcpy(r->writes, e->last_write, sizeof(r->writes));
	e->posts++;
	ss_trace(e->w, "end %u: request %llu, kind %u, number %llu, %s", e->id,
		 (unsigned long long)seq, r->kind, (unsigned long long)r->number,
		 now ? "posted" : "waits");
	if (now)
		ss_shell_post(e, seq, e->c.path, e->c.used);
}

/* Post a receive again. The calls of the program sleep during a migration. */
static void
receive(struct ss_end *e)
{
	uint32_t i = sim_rnd(&e->w->rng, SS_RECVS);

	if (!e->buf[i].held)
		return;
	ss_net_receive(e->w, e->id, e->c.path, i);
}

void
ss_program_step(struct ss_end *e)
{
	if (!ss_flows(e))
		return;
	if (sim_one_in(&e->w->rng, 2))
		post(e);
	else
		receive(e);
}

/* ---- the oracle */

void
ss_judge_complete(struct ss_end *e, const struct urn_sess_action *a, uint64_t result)
{
	const struct ss_req *r = &e->req[a->seq];
	bool excused = e->w->hopeless || e->w->unsure;

	if (a->seq != e->completed++)
		ss_fail(e->w, "end %u: request %llu completes, and it is the turn of %llu", e->id,
			(unsigned long long)a->seq, (unsigned long long)e->completed - 1);
	e->w->hash = e->w->hash * 31 + a->seq * 8 + a->status;
	if (r->kind == URN_SESS_ATOMIC) {
		e->w->known += a->status == URN_SESS_OK;
		e->w->unknown += a->status == URN_SESS_UNKNOWN;
	}
	if (a->status != URN_SESS_OK) {
		if (!excused)
			ss_fail(e->w, "end %u: request %llu fails with status %u", e->id,
				(unsigned long long)a->seq, a->status);
		return;
	}
	if (r->kind == URN_SESS_ATOMIC && !e->w->sc->foreign && result != r->number - 1)
		ss_fail(e->w, "end %u: atomic %llu has the result %llu", e->id,
			(unsigned long long)r->number, (unsigned long long)result);
	if (r->kind == URN_SESS_ATOMIC && e->w->end[!e->id].stored < r->number)
		ss_fail(e->w, "end %u: atomic %llu is complete, and was not carried out", e->id,
			(unsigned long long)r->number);
}

/* A Send came: it is the next one, whole, and the writes before it are in place. */
void
ss_judge_receive(struct ss_end *e, uint32_t buf)
{
	struct ss_end *peer = &e->w->end[!e->id];
	uint64_t number = e->buf[buf].payload;

	e->buf[buf].held = true;
	if (number != e->got + 1)
		ss_fail(e->w, "end %u: Send %lld came, and Send %llu is the next one", e->id,
			(long long)number, (unsigned long long)e->got + 1);
	else
		e->got++;
	e->w->hash = e->w->hash * 31 + number;
	for (uint32_t i = 0; i < peer->posts; i++) {
		const struct ss_req *r = &peer->req[i];

		if (r->kind == URN_SESS_SEND && r->number == number)
			memcpy(e->floor, r->writes, sizeof(e->floor));
	}
	ss_judge_memory(e->w);
}

/* A Send that its program has got, or a write before it, is not posted again. */
void
ss_judge_repost(struct ss_end *e, uint64_t seq)
{
	const struct ss_req *r = &e->req[seq];
	uint64_t got = e->w->end[!e->id].got;

	if (r->posted && r->kind <= URN_SESS_WRITE) {
		e->w->again++;
		e->w->lost += !r->arrived;
	}
	if (r->kind == URN_SESS_SEND && r->number <= got)
		ss_fail(e->w, "end %u: Send %llu is posted again, and was delivered", e->id,
			(unsigned long long)r->number);
	for (uint64_t i = seq + 1; r->kind == URN_SESS_WRITE && i < e->posts; i++)
		if (e->req[i].kind == URN_SESS_SEND && e->req[i].number <= got)
			ss_fail(e->w, "end %u: write %llu is posted again behind a delivered Send",
				e->id, (unsigned long long)r->number);
}

void
ss_judge_memory(struct ss_world *w)
{
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t i = 0; i < SS_SLOTS; i++)
			if (w->end[n].word[i] < w->end[n].floor[i])
				ss_fail(w, "end %u: write %llu is not in place after its Send", n,
					(unsigned long long)w->end[n].floor[i]);
}

void
ss_judge_offer(struct ss_end *e, const struct urn_sess_offer *o, enum urn_sess_heal_step step)
{
	const struct urn_sess_heal *own = &e->heal[o->path].end;
	struct ss_heard *h = &e->heard[o->path];
	bool acts = step >= URN_SESS_HEAL_CONNECT, joins = acts && step != URN_SESS_HEAL_REMAKE;

	if (acts && o->round < h->round)
		ss_fail(e->w, "end %u: follows an offer of an end of path %u that is gone", e->id,
			o->path);
	if (acts && o->round == h->round && o->to == 0 && h->to != 0)
		ss_fail(e->w, "end %u: follows an offer of path %u that was overtaken", e->id,
			o->path);
	if (joins && o->to != 0 && o->to != own->own)
		ss_fail(e->w, "end %u: connects path %u to an end that has another one", e->id,
			o->path);
	if (o->round > h->round)
		*h = (struct ss_heard){.round = o->round};
	if (o->round != h->round)
		return;
	h->to = o->to != 0 ? o->to : h->to;
	h->lost |= (o->flags & URN_SESS_O_LOST) != 0;
}

void
ss_judge_heard(struct ss_end *e, const struct urn_sess_offer *o)
{
	const struct ss_heal *own = &e->heal[o->path];
	const struct ss_heard *h = &e->heard[o->path];

	if (h->lost && own->peer_trusts && own->end.to == h->round)
		ss_fail(e->w, "end %u: counts on path %u, which its peer has given up", e->id,
			o->path);
}

static bool
over(const struct ss_world *w, uint32_t n)
{
	const struct ss_end *e = &w->end[n], *peer = &w->end[!n];

	if (e->c.state == URN_SESS_DEAD)
		return e->completed == e->posts;
	return e->posts == e->target && e->completed == e->posts && e->got == peer->sends &&
	       e->c.state == URN_SESS_CONNECTED;
}

bool
ss_judge_over(const struct ss_world *w)
{
	return over(w, 0) && over(w, 1);
}

void
ss_judge_end(struct ss_world *w)
{
	for (uint32_t n = 0; n < 2; n++) {
		const struct ss_end *e = &w->end[n], *peer = &w->end[!n];

		if (e->c.state == URN_SESS_DEAD) {
			if (!w->hopeless && !w->unsure)
				ss_fail(w, "end %u: is dead, reason %u", n, e->c.reason);
			continue;
		}
		if (peer->stored != e->atomics && !w->unsure && !w->hopeless)
			ss_fail(w, "end %u: %llu atomics were carried out for %llu", n,
				(unsigned long long)peer->stored, (unsigned long long)e->atomics);
		for (uint32_t i = 0; i < SS_SLOTS; i++)
			if (peer->word[i] != e->last_write[i] && !w->hopeless && !w->unsure)
				ss_fail(w, "end %u: word %u has the write %llu", !n, i,
					(unsigned long long)peer->word[i]);
	}
	if (w->end[0].group.moving || w->end[1].group.moving)
		if (!w->hopeless)
			ss_fail(w, "a session still waits for a connection");
}
