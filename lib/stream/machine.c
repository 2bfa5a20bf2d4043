/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream connection: messages in and out, credits, and the end (SF-1, SF-10). */
#include "stream/priv.h"

#include <stddef.h>

/* ---- out */

void
urn_st_decide(struct urn_st *s, enum urn_st_decision d, uint64_t offset, uint64_t bytes)
{
	const struct urn_st_trace t = {d, offset, bytes};

	s->count[d]++;
	if (s->cfg.trace)
		s->cfg.trace(s->cfg.arg, &t);
}

void
urn_st_act(struct urn_st *s, const struct urn_st_action *a)
{
	s->cfg.act(s->cfg.arg, a);
}

bool
urn_st_may_send(const struct urn_st *s)
{
	return s->emitted - s->completed < s->cfg.slots && !s->gone;
}

/* On demand, a grant grows behind a SendSm only, until all that was promised has come (SF-1). */
uint32_t
urn_st_grant(const struct urn_st *s)
{
	bool grows = !(s->cfg.self.abilities & URN_ST_ON_DEMAND) ||
		     (s->rx.granting && s->rx.arrived < s->rx.promised);

	return grows ? s->rx.freed + s->cfg.self.buffers : s->rx.limit;
}

void
urn_st_post(struct urn_st *s, uint32_t n)
{
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_POST, .bytes = n});
}

void
urn_st_emit(struct urn_st *s, struct urn_st_msg *m, uint64_t addr, uint32_t lkey)
{
	uint32_t limit = urn_st_grant(s);

	/* The receives are there before the peer is told of them. */
	if (limit != s->rx.limit)
		urn_st_post(s, limit - s->rx.limit);
	s->rx.limit = limit;
	m->credit = limit;
	m->seen = s->tx.seen;
	s->emitted++;
	if (m->kind == URN_ST_FIN)
		s->fin = s->emitted;
	urn_st_act(s, &(struct urn_st_action){
			      .act = URN_ST_A_SEND, .message = m, .addr = addr, .lkey = lkey});
}

/* Tell of free buffers when half of all are, and nothing else brings the count. */
static bool
credit_step(struct urn_st *s)
{
	uint32_t news = urn_st_grant(s) - s->rx.limit;
	struct urn_st_msg m = {.kind = URN_ST_CREDIT, .offset = s->rx.arrived};

	if (news == 0 || news < s->cfg.self.buffers - s->cfg.self.buffers / 2 ||
	    s->rx.state == URN_ST_RX_ENDED || s->rx.told_stop || !urn_st_may_send(s))
		return false;
	urn_st_decide(s, URN_ST_D_CREDIT, s->rx.arrived, news);
	urn_st_emit(s, &m, 0, 0);
	return true;
}

/* ---- the end */

static bool
both_ended(const struct urn_st *s)
{
	return s->tx.state == URN_ST_TX_ENDED && s->rx.state == URN_ST_RX_ENDED;
}

static bool
close_step(struct urn_st *s)
{
	if (!s->closing || !both_ended(s) || s->rx.count ||
	    (s->emitted != s->completed && !s->gone))
		return false;
	s->state = URN_ST_S_CLOSED;
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_CLOSED});
	return true;
}

static bool
is_broken(const struct urn_st *s)
{
	return s->state == URN_ST_S_DYING || s->state == URN_ST_S_DEAD;
}

void
urn_st_pump(struct urn_st *s)
{
	while (s->state == URN_ST_S_OPEN &&
	       (urn_st_sink_step(s) || urn_st_source_step(s) || credit_step(s) || close_step(s)))
		;
	/* The connection may break in a step. */
	if (!is_broken(s))
		return;
	urn_st_source_fail(s, s->state == URN_ST_S_DEAD);
	while (urn_st_sink_rest(s))
		;
}

void
urn_st_die(struct urn_st *s, enum urn_st_reason reason, const struct urn_st_msg *m,
	   uint64_t expected)
{
	struct urn_st_msg tell = {.kind = URN_ST_ABORT, .offset = expected, .bytes = reason};

	if (s->state != URN_ST_S_OPEN)
		return;
	s->reason = reason;
	s->state = URN_ST_S_DYING;
	urn_st_decide(s, URN_ST_D_DIED, expected, reason);
	if (m) {
		s->kind = m->kind;
		s->offset = m->offset;
		s->expected = expected;
	}
	/* A broken queue pair carries no Abort, and a peer that is dead needs none. */
	if (reason != URN_ST_R_DOWN && reason != URN_ST_R_REFUSED && reason != URN_ST_R_PEER &&
	    !s->gone)
		urn_st_emit(s, &tell, 0, 0);
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_DIED});
}

void
urn_st_down(struct urn_st *s)
{
	/* The peer may go when it has all: data that waits here can still be received. */
	if (both_ended(s) && s->fin_arrived)
		s->gone = true;
	else
		urn_st_die(s, URN_ST_R_DOWN, NULL, s->rx.arrived);
	urn_st_pump(s);
}

void
urn_st_refused(struct urn_st *s)
{
	urn_st_die(s, URN_ST_R_REFUSED, NULL, s->rx.arrived);
	urn_st_pump(s);
}

void
urn_st_fenced(struct urn_st *s)
{
	if (s->state != URN_ST_S_DYING)
		return;
	s->state = URN_ST_S_DEAD;
	urn_st_sink_fenced(s);
	urn_st_pump(s);
}

/* ---- in */

/* Take the counts that each message carries. returns: false: the connection ends */
static bool
take_counts(struct urn_st *s, const struct urn_st_msg *m)
{
	uint32_t most = s->cfg.peer.buffers;

	if (m->credit - s->tx.limit > most || m->credit - s->tx.data > most ||
	    m->seen - s->rx.seen > s->rx.adverts - s->rx.seen) {
		urn_st_die(s, URN_ST_R_BAD_CREDIT, m, s->tx.sent);
		return false;
	}
	s->tx.limit = m->credit;
	s->rx.seen = m->seen;
	return true;
}

static void
take_abort(struct urn_st *s, const struct urn_st_msg *m)
{
	s->told = m->bytes < URN_ST_R_COUNT ? (enum urn_st_reason)m->bytes : URN_ST_R_PEER;
	urn_st_die(s, URN_ST_R_PEER, NULL, s->rx.arrived);
}

static void
take_advert(struct urn_st *s, const struct urn_st_msg *m)
{
	const struct urn_st_advert a = {m->offset, m->bytes, m->addr, m->key};

	urn_st_source_advert(s, m, &a, false);
}

/* A command's SinkAvail is taken before its bytes, so that the answer finds it. */
static void
take_data(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from)
{
	if (m->flags & URN_ST_F_ADVERT)
		urn_st_source_advert(s, m, &m->advert, true);
	if (s->state == URN_ST_S_OPEN)
		urn_st_sink_data(s, m, slot, from);
}

/* True when the peer may ask for this: reading by an end that can't read is not its choice. */
static bool
may_offer(const struct urn_st *s, const struct urn_st_msg *m)
{
	const uint16_t both = URN_ST_F_READ | URN_ST_F_WRITE;

	return (m->flags & both) != both &&
	       (!(m->flags & URN_ST_F_READ) || s->cfg.self.abilities & URN_ST_CAN_READ) &&
	       (m->flags || m->length == 0);
}

static void
dispatch(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from)
{
	switch (m->kind) {
	case URN_ST_DATA:
		take_data(s, m, slot, from);
		break;
	case URN_ST_SRC_AVAIL:
		if (may_offer(s, m))
			urn_st_sink_offer(s, m, slot, from);
		else
			urn_st_die(s, URN_ST_R_PLACE, m, s->rx.arrived);
		break;
	case URN_ST_SINK_AVAIL:
		take_advert(s, m);
		break;
	case URN_ST_SEND_SM:
		urn_st_source_small(s, m);
		break;
	case URN_ST_RD_COMPL:
		urn_st_source_read(s, m);
		break;
	case URN_ST_WR_COMPL:
		urn_st_sink_written(s, m);
		break;
	case URN_ST_FIN:
		urn_st_sink_fin(s, m);
		break;
	case URN_ST_STOP:
		urn_st_source_stop(s, m);
		break;
	case URN_ST_ABORT:
		take_abort(s, m);
		break;
	default: /* Credit says no more than each message */
		break;
	}
}

void
urn_st_arrived(struct urn_st *s, uint32_t slot, const void *from, uint32_t bytes)
{
	enum urn_st_verdict v;
	struct urn_st_msg m;
	uint32_t at;

	if (s->state != URN_ST_S_OPEN)
		return;
	v = urn_st_wire_get(from, bytes, &m, &at);
	if (v != URN_ST_V_OK) {
		s->verdict = v;
		urn_st_die(s, URN_ST_R_FORM, NULL, s->rx.arrived);
		urn_st_pump(s);
		return;
	}
	/* A message without bytes of the stream gives its receive back at once, whatever the
	 * program does. */
	if (m.length == 0) {
		urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_FREE, .slot = slot});
		urn_st_post(s, 1);
	}
	if (take_counts(s, &m))
		dispatch(s, &m, slot, at);
	urn_st_pump(s);
}

void
urn_st_sent(struct urn_st *s)
{
	if (s->completed != s->emitted)
		s->completed++;
	/* Counts wrap; messages behind Fin may be as many as they like. */
	if (s->tx.state == URN_ST_TX_ENDED && s->completed == s->fin)
		s->fin_arrived = true;
	urn_st_pump(s);
}

void
urn_st_written(struct urn_st *s)
{
	urn_st_source_written(s);
	urn_st_pump(s);
}

void
urn_st_read(struct urn_st *s)
{
	if (s->state == URN_ST_S_OPEN || s->state == URN_ST_S_DYING)
		urn_st_sink_read(s);
	urn_st_pump(s);
}

void
urn_st_tick(struct urn_st *s)
{
	if (s->rx.state == URN_ST_RX_OFFERED && s->rx.count == 0 &&
	    ++s->rx.waited >= s->cfg.patience)
		s->rx.late = true;
	urn_st_pump(s);
}
