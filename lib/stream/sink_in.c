/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink of a stream: messages of the peer's source, completions of reads, and the end. */
#include "stream/sink.h"

#include <errno.h>

/* Say that there is something to read, when no receive waits for it. */
static void
readable(struct urn_st *s)
{
	if (s->rx.count == 0 && !s->rx.stop)
		urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_READABLE});
}

/* Hold a message of the source against the place where the sink is. returns: false: the connection
 * ends */
static bool
fits(struct urn_st *s, const struct urn_st_msg *m)
{
	if (s->rx.state == URN_ST_RX_ENDED)
		urn_st_die(s, URN_ST_R_BEHIND_END, m, s->rx.arrived);
	else if (m->offset != s->rx.arrived)
		urn_st_die(s, URN_ST_R_OFFSET, m, s->rx.arrived);
	else if (m->length > s->cfg.self.size)
		urn_st_die(s, URN_ST_R_EXCESS, m, s->rx.arrived);
	else if (m->length && s->rx.data == s->rx.limit)
		urn_st_die(s, URN_ST_R_OVERRUN, m, s->rx.arrived);
	else
		return true;
	return false;
}

void
urn_st_sink_data(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from)
{
	if (s->rx.offered) {
		urn_st_die(s, URN_ST_R_PLACE, m, s->rx.arrived);
		return;
	}
	if (!fits(s, m))
		return;
	if (s->rx.state == URN_ST_RX_ADVERTISED)
		urn_st_sink_void(s, URN_ST_D_VOID_DATA);
	urn_st_sink_keep(s, m, slot, from);
	readable(s);
}

void
urn_st_sink_offer(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from)
{
	bool write = m->flags & URN_ST_F_WRITE;

	if (s->rx.offered) {
		urn_st_die(s, URN_ST_R_TWO_OFFERS, m, s->rx.arrived);
		return;
	}
	if (!fits(s, m))
		return;
	if (m->offset + m->bytes < s->rx.promised) {
		urn_st_die(s, URN_ST_R_SHORT, m, s->rx.promised);
		return;
	}
	if (s->rx.state == URN_ST_RX_ADVERTISED && write && m->length == 0)
		urn_st_decide(s, URN_ST_D_KEPT, s->rx.advert_offset, s->rx.advert_bytes);
	else if (s->rx.state == URN_ST_RX_ADVERTISED)
		urn_st_sink_void(s, URN_ST_D_VOID_OFFER);
	if (m->flags && urn_st_threshold_lower(&s->rx.threshold))
		urn_st_decide(s, URN_ST_D_RX_LOWERED, s->rx.arrived, s->rx.threshold.value);
	if (m->length)
		urn_st_sink_keep(s, m, slot, from);
	if (s->rx.told_stop)
		return;
	s->rx.offered = true;
	s->rx.offer = (struct urn_st_advert){m->offset, m->bytes, m->addr, m->key};
	s->rx.promised = m->offset + m->bytes;
	s->rx.answer = m->flags;
	s->rx.waited = 0;
	s->rx.late = s->rx.granting = false;
	if (s->rx.state == URN_ST_RX_QUIET)
		s->rx.state = URN_ST_RX_OFFERED;
	if (s->rx.pieces)
		readable(s);
	else if (s->rx.count == 0 && !s->rx.stop && urn_st_sink_may_zcopy(s))
		urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_OFFERED});
}

void
urn_st_sink_written(struct urn_st *s, const struct urn_st_msg *m)
{
	struct urn_st_recv *r = urn_st_recv_at(s, 0);

	if (s->rx.state != URN_ST_RX_ADVERTISED) {
		urn_st_die(s, URN_ST_R_STALE_WR_COMPL, m, s->rx.arrived);
		return;
	}
	if (m->offset != s->rx.advert_offset) {
		urn_st_die(s, URN_ST_R_OFFSET, m, s->rx.advert_offset);
		return;
	}
	if (m->bytes > s->rx.advert_bytes ||
	    (s->rx.offered && m->bytes > urn_st_offer_end(s) - s->rx.arrived)) {
		urn_st_die(s, URN_ST_R_EXCESS, m, s->rx.arrived);
		return;
	}
	r->filled += m->bytes;
	r->copied = false;
	r->held = false;
	s->rx.arrived += m->bytes;
	s->rx.offered = false;
	s->rx.state = URN_ST_RX_QUIET;
	if (urn_st_threshold_lower(&s->rx.threshold))
		urn_st_decide(s, URN_ST_D_RX_LOWERED, s->rx.arrived, s->rx.threshold.value);
	if (urn_st_room_of(r) == 0 || !r->all)
		urn_st_sink_complete(s, URN_ST_OK);
}

void
urn_st_sink_fin(struct urn_st *s, const struct urn_st_msg *m)
{
	if (!fits(s, m))
		return;
	if (s->rx.offered && !s->rx.told_stop) {
		urn_st_die(s, URN_ST_R_PLACE, m, s->rx.arrived);
		return;
	}
	if (s->rx.arrived < s->rx.promised && !s->rx.told_stop) {
		urn_st_die(s, URN_ST_R_SHORT, m, s->rx.promised);
		return;
	}
	if (s->rx.state == URN_ST_RX_ADVERTISED)
		urn_st_sink_void(s, URN_ST_D_VOID_END);
	s->rx.state = URN_ST_RX_ENDED;
	readable(s);
}

/* Reads complete in order, and the oldest receive has the oldest read. */
void
urn_st_sink_read(struct urn_st *s)
{
	struct urn_st_recv *r = urn_st_recv_at(s, 0);

	if (s->rx.state != URN_ST_RX_READING)
		return;
	r->filled += r->reading;
	s->rx.arrived += r->reading;
	r->reading = 0;
	r->copied = false;
	if (--s->rx.reads == 0) {
		s->rx.state = URN_ST_RX_OFFERED;
		s->rx.waited = 0;
	}
	if (urn_st_room_of(r) == 0 || !r->all)
		urn_st_sink_complete(s, URN_ST_OK);
}

/* ---- receives that are taken back */

/* True when the peer's write, or a read, may touch a receive now. i: 0 is the oldest */
static bool
is_busy(struct urn_st *s, uint32_t i)
{
	return urn_st_recv_at(s, i)->reading || (i == 0 && s->rx.state == URN_ST_RX_ADVERTISED);
}

int
urn_st_sink_cancel(struct urn_st *s, uint64_t id)
{
	struct urn_st_action a = {.act = URN_ST_A_RECEIVED, .id = id};
	uint32_t i = 0;

	while (i < s->rx.count && urn_st_recv_at(s, i)->area.id != id)
		i++;
	if (i == s->rx.count)
		return ENOENT;
	if (is_busy(s, i))
		return EBUSY;
	a.bytes = urn_st_recv_at(s, i)->filled;
	a.status = a.bytes ? URN_ST_OK : URN_ST_CANCELLED;
	for (; i + 1 < s->rx.count; i++)
		*urn_st_recv_at(s, i) = *urn_st_recv_at(s, i + 1);
	s->rx.count--;
	urn_st_act(s, &a);
	return 0;
}

/* ---- the connection broke */

/* True when the queue pair may still touch the oldest receive: the peer's write, or a read. */
static bool
is_touched(const struct urn_st *s)
{
	return s->rx.state == URN_ST_RX_ADVERTISED || s->rx.state == URN_ST_RX_READING;
}

/* Bytes that came, and Fin, are the program's before the error is. A receive that has some bytes is
 * complete with these; the next one gets the error. */
bool
urn_st_sink_rest(struct urn_st *s)
{
	bool whole = s->rx.state == URN_ST_RX_ENDED;

	if (s->rx.stop)
		urn_st_sink_drop(s);
	if (s->rx.count == 0 || is_touched(s))
		return false;
	if (s->rx.pieces)
		return urn_st_sink_fill(s);
	if (urn_st_recv_at(s, 0)->filled)
		return urn_st_sink_complete(s, URN_ST_OK);
	if (s->rx.stop)
		return urn_st_sink_complete(s, URN_ST_GONE);
	return urn_st_sink_complete(s, whole ? URN_ST_OK : URN_ST_FAILED);
}

void
urn_st_sink_fenced(struct urn_st *s)
{
	if (!is_touched(s))
		return;
	s->rx.state = URN_ST_RX_QUIET;
	s->rx.reads = 0;
}
