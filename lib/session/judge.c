/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consequences of a REPORT: which receives are complete (FO-14), and which requests are
 * (FO-15).
 *
 * Both rules may be applied twice to the same REPORT, and to one whose ids were updated meanwhile,
 * with the same result: the maximum of LAST SENT and the other side's LAST RECEIVED does not change
 * by an update.
 */
#include "session/priv.h"

bool
urn_sess_plausible(const struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	if (r->received >= c->next_id || r->received < c->peer_received || r->sent < c->peer_sent ||
	    r->sends > r->sent || r->atomics > c->atomics)
		return false;
	if (r->sent < c->received)
		return r->sends <= c->received_sends;
	return r->sends >= c->received_sends &&
	       r->sends - c->received_sends <= r->sent - c->received;
}

/*
 * FO-14, FO-9: complete the receives whose Sends the peer knows to be delivered. A header with a
 * higher id proves nothing, because the first packet of a long Send carries the header already.
 * returns: false: fewer headers than Sends
 */
static bool
rebuild(struct urn_sess_conn *c, const struct urn_sess_report *r)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < c->found; i++) {
		const struct urn_sess_recv *v = &c->cfg.recv[i];
		const struct urn_sess_header *h = &v->header;

		if (h->id <= c->received || h->id > r->sent || h->epoch != (uint16_t)c->used ||
		    h->conn != c->cfg.number) {
			c->cfg.recv[left++] = *v;
			continue;
		}
		c->received = h->id;
		c->received_sends++;
		urn_sess_count(c, URN_SESS_C_REBUILT);
		urn_sess_emit(c, &(struct urn_sess_action){
					 .act = URN_SESS_REBUILD, .index = v->index, .header = h});
	}
	c->found = left;
	if (r->sent <= c->received)
		return c->received_sends >= r->sends;
	c->received = r->sent;
	return c->received_sends == r->sends;
}

/* FO-15: an atomic is complete when the peer's record has its result, and is posted again when the
 * record is sure that it was not carried out. returns: false: neither */
static bool
judge_atomic(struct urn_sess_conn *c, struct urn_sess_wr *w, const struct urn_sess_report *r)
{
	if (w->done || !w->posted)
		return true;
	if (!(r->flags & URN_SESS_R_LOG))
		return false;
	if (w->number > r->atomics)
		return w->number > r->atomics + 1 || !(r->flags & URN_SESS_R_UNSURE);
	if (r->atomics - w->number >= URN_SESS_ATOMICS)
		return false;
	w->old = r->old[w->number % URN_SESS_ATOMICS];
	w->known = w->done = true;
	urn_sess_count(c, URN_SESS_C_ATOMICS_FOUND);
	return true;
}

/* FO-12: a bind that stands before a delivered message was carried out. */
static void
judge_binds(struct urn_sess_conn *c, uint64_t id)
{
	bool before = false;

	for (uint64_t seq = c->tail; seq-- != c->head;) {
		struct urn_sess_wr *w = urn_sess_wr_at(c, seq);

		before |= urn_sess_is_message(w) && w->id <= id;
		if (before && w->kind == URN_SESS_BIND)
			w->done = true;
	}
}

/* FO-15 for all requests. returns: false: an atomic's outcome is unknown; *lost: the atomic */
static bool
judge_sends(struct urn_sess_conn *c, const struct urn_sess_report *r, uint64_t *lost)
{
	uint64_t id = r->received > c->sent ? r->received : c->sent, before = c->sends;

	urn_sess_mark(c, id);
	c->counter[URN_SESS_C_FOUND_DONE] += c->sends - before;
	judge_binds(c, id);
	for (*lost = c->head; *lost != c->tail; ++*lost) {
		struct urn_sess_wr *w = urn_sess_wr_at(c, *lost);

		if (w->kind == URN_SESS_ATOMIC && !judge_atomic(c, w, r))
			return false;
	}
	return true;
}

bool
urn_sess_judge(struct urn_sess_conn *c)
{
	const struct urn_sess_report *r = &c->peer;
	uint64_t lost;

	c->peer_sent = r->sent;
	c->peer_received = r->received;
	if (!rebuild(c, r)) {
		urn_sess_end(c, URN_SESS_NO_HEADER, c->tail, URN_SESS_FLUSHED);
		return false;
	}
	if (!judge_sends(c, r, &lost)) {
		urn_sess_count(c, URN_SESS_C_ATOMICS_UNKNOWN);
		urn_sess_end(c, URN_SESS_NO_OUTCOME, lost, URN_SESS_UNKNOWN);
		return false;
	}
	urn_sess_complete(c);
	if (!(r->flags & URN_SESS_R_DEAD))
		return true;
	urn_sess_end(c, URN_SESS_PEER_DEAD, c->tail, URN_SESS_FLUSHED);
	return false;
}
