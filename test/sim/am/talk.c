/* SPDX-License-Identifier: BSD-3-Clause */
/* Talkers: programs that send active messages by the library, and run handlers (AM-1). */
#include "amsim.h"

#include "am/endpoint.h"

#include <urnic/attach.h>

#include <errno.h>

enum { PATIENCE = 40, LOOK_MS = 20 };

/* Open the endpoint: sets, rings and handlers. */
static void
open_endpoint(struct ms_node *n, struct as_talker *t)
{
	struct ms_world *w = n->w;
	struct urn_am_attr attr = {
		.payload = t->payload,
		.queue = 1u << ms_upto(w, 6),
		.requests = 1 + (uint32_t)ms_upto(w, 32),
		.operations = 1,
		.ranges = 1,
		.answer_ms = w->plan.am.answer_ms,
	};
	uint64_t entries = attr.queue + 2 * attr.requests + URN_AM_OUT_LANES + URN_AM_BACK_LANES;

	t->dev = as_dev_new(
		n, AS_ENDS + t->place * AS_TALKER_PLACES,
		(uint32_t)(entries * (RTE_MAX(t->payload, (uint32_t)URN_AM_SHORT_BYTES) + 400) +
			   65536));
	as_clock(w->now);
	t->ep = urn_am_endpoint_create(as_dev_msg(t->dev), &attr);
	if (!t->ep)
		ms_fail(w, "talker %u: no endpoint: %s", t->id, urn_attach_error());
	as_dev_opened(t->dev);
	if (urn_am_address(t->ep, 0, &t->address) != 0)
		ms_fail(w, "talker %u has no address", t->id);
	as_hear(w, t);
	as_clock(0);
}

void
as_talker_open(struct ms_node *n, unsigned int place)
{
	struct ms_world *w = n->w;
	struct as_sim *s = w->as;
	struct as_talker *t;

	if (s->talkers == s->talker_room)
		return;
	t = &s->talker[s->talkers];
	memset(t, 0, sizeof(*t));
	t->id = s->talkers++;
	t->node = n->id;
	t->place = place;
	t->payload = 1 + (uint32_t)ms_upto(w, w->plan.len_max);
	t->closed = MS_NEVER;
	t->send_at = w->now + ms_upto(w, w->plan.think + 1);
	t->progress_at = t->look_at = w->now;
	t->slow = ms_one_in(w, w->plan.slow_in);
	open_endpoint(n, t);
	s->talker_at[n->id][place] = (int32_t)t->id;
	ms_trace(w, "talker %u opens on node %u, queue %llx, payload %u", t->id, n->id,
		 (unsigned long long)t->address.requests, t->payload);
	ms_node_wake(n, w->now);
}

void
as_talker_close(struct ms_node *n, unsigned int place)
{
	struct as_talker *t = as_talker_at(n, place);
	struct ms_world *w = n->w;

	as_hear_close(w, t);
	as_clock(w->now);
	urn_am_endpoint_destroy(t->ep);
	as_dev_free(t->dev);
	as_clock(0);
	t->ep = NULL;
	t->dev = NULL;
	t->closed = w->now;
	w->as->talker_at[n->id][place] = AS_NONE;
	ms_trace(w, "talker %u closes", t->id);
}

/* ---- requests */

/* Choose a talker; closed ones now and then. NULL: there is none */
static struct as_talker *
choose_target(struct ms_world *w)
{
	struct as_sim *s = w->as;
	int32_t i = s->talker_at[w->plan.one_target ? 0 : ms_upto(w, w->plan.nodes)]
				[ms_upto(w, w->plan.am.talkers)];

	if (ms_one_in(w, w->plan.bad_in))
		i = (int32_t)ms_upto(w, s->talkers);
	return i == AS_NONE ? NULL : &s->talker[i];
}

/* Try requests that the library is to refuse. */
static void
try_wrong(struct ms_world *w, struct as_talker *t, const struct as_talker *to)
{
	uint64_t number;

	if (urn_am_request(t->ep, &to->address, URN_AM_HANDLERS, NULL, 0, NULL, 0, &number) !=
		    EINVAL ||
	    urn_am_request(t->ep, &to->address, 1, NULL, URN_AM_ARGS + 1, NULL, 0, &number) !=
		    EINVAL ||
	    urn_am_request(t->ep, &to->address, 1, NULL, 0, "", t->payload + 1, &number) !=
		    EMSGSIZE ||
	    urn_am_reply(t->ep, 1, 1, NULL, 0, NULL, 0) != EPERM)
		ms_fail(w, "talker %u: the library takes what it is to refuse", t->id);
}

static void
fill_args(const struct as_request *r, uint64_t *args)
{
	args[0] = r->id;
	for (uint32_t i = 1; i < URN_AM_ARGS; i++)
		args[i] = sim_word(r->id, 1000 + i);
}

/* Send a request whose payload is written in place, now and then after another try that is
 * cancelled. returns: like urn_am_request() */
static int
send_prepared(struct as_talker *t, const struct as_talker *to, struct as_request *r,
	      const uint64_t *args)
{
	struct urn_am_prepared p;
	int err = urn_am_request_prepare(t->ep, &to->address, t->payload, &p);

	if (err == 0 && r->id % 4 == 0) {
		err = urn_am_request_cancel(t->ep, &p);
		if (err == 0)
			err = urn_am_request_prepare(t->ep, &to->address, r->len, &p);
	}
	if (err != 0)
		return err;
	sim_fill(p.data, r->id, 0, r->len);
	return urn_am_request_commit(t->ep, &p, r->handler, args, 1 + r->id % URN_AM_ARGS, r->len,
				     &r->number);
}

static int
send_copied(struct ms_world *w, struct as_talker *t, const struct as_talker *to,
	    struct as_request *r, const uint64_t *args)
{
	sim_fill(w->as->scratch, r->id, 0, r->len);
	return urn_am_request(t->ep, &to->address, r->handler, args, 1 + r->id % URN_AM_ARGS,
			      w->as->scratch, r->len, &r->number);
}

/* Send a request. returns: false: not now */
static bool
request(struct ms_world *w, struct as_talker *t)
{
	struct as_sim *s = w->as;
	struct as_request *r = &s->request[s->requests];
	const struct as_talker *to = choose_target(w);
	uint64_t args[URN_AM_ARGS];
	int err;

	if (!to)
		return false;
	if (ms_one_in(w, w->plan.bad_in))
		try_wrong(w, t, to);
	*r = (struct as_request){.id = s->requests, .from = t->id, .to = to->id, .posted = w->now};
	r->handler = 1 + (uint32_t)ms_upto(w, AS_H_RULES);
	if (ms_one_in(w, w->plan.am.no_handler_in))
		r->handler = AS_H_MISSING;
	r->len = (uint32_t)ms_upto(w, t->payload + 1);
	fill_args(r, args);
	err = sim_word(r->id, 3000) % 3 == 0 ? send_prepared(t, to, r, args)
					     : send_copied(w, t, to, r, args);
	if (err == EAGAIN)
		return false;
	if (err != 0)
		ms_fail(w, "talker %u: a request is refused: %d", t->id, err);
	s->requests++;
	w->mails++;
	w->pending++;
	t->open++;
	w->stats.more[AS_REQUESTS]++;
	ms_trace(w, "request %u: talker %u to %u, handler %u, %u bytes", r->id, t->id, to->id,
		 r->handler, r->len);
	return true;
}

/* ---- turns */

static bool
is_answered(const struct urn_am_outbox *box)
{
	for (uint32_t i = 0; i < box->busy; i++) {
		const struct urn_am_lane *l = &box->lane[box->under_way[(box->head + i) % 64]];

		if (urn_msg_set_answer(&l->set, l->seq) != URN_MSG_PENDING)
			return true;
	}
	return false;
}

/* True when urn_am_progress() would find something to do. */
static bool
has_work(struct urn_am_endpoint *ep)
{
	return urn_msg_set_waiting(&ep->requests) || urn_msg_set_waiting(&ep->replies) ||
	       is_answered(&ep->out) || is_answered(&ep->back);
}

static void
progress(struct ms_world *w, struct as_talker *t)
{
	uint64_t gap = w->plan.read_gap;

	(void)urn_am_progress(t->ep);
	as_hear_silent(w, t);
	if (t->slow && !w->quiet)
		gap *= PATIENCE;
	t->progress_at = w->now + 1 + ms_upto(w, gap + 1);
	t->look_at = w->now + LOOK_MS * MS_MS;
}

static void
send_some(struct ms_world *w, struct as_talker *t)
{
	unsigned int most = 1 + (unsigned int)ms_upto(w, 4);

	while (most-- && w->mails < w->plan.messages && !w->quiet && request(w, t))
		;
	t->send_at = w->now + 1 + ms_upto(w, w->plan.think + 1);
	if (w->quiet || w->mails == w->plan.messages)
		t->send_at = MS_NEVER;
}

void
as_talker_step(struct ms_node *n, struct as_talker *t)
{
	struct ms_world *w = n->w;

	as_clock(w->now);
	if (w->quiet)
		t->progress_at = RTE_MIN(t->progress_at, w->now + w->plan.read_gap);
	if (t->progress_at <= w->now && (has_work(t->ep) || t->look_at <= w->now))
		progress(w, t);
	if (t->send_at <= w->now)
		send_some(w, t);
	ms_node_wake(n, t->send_at);
	if (has_work(t->ep))
		ms_node_wake(n, RTE_MAX(t->progress_at, w->now + 1));
	else if (urn_am_pending(t->ep) || t->ep->back.parked)
		ms_node_wake(n, RTE_MAX(t->look_at, t->progress_at));
	as_clock(0);
}
