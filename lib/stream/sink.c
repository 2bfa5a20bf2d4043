/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink of a stream: how bytes come into receives (SF-4 to SF-9). Bytes that wait in BCopy
 * buffers come first, because they are first in the stream; a SinkAvail or a read is for the bytes
 * behind them.
 */
#include "stream/sink.h"

/* Room of all receives. */
static uint64_t
room(struct urn_st *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->rx.count; i++)
		sum += urn_st_room_of(urn_st_recv_at(s, i));
	return sum;
}

/* A large receive that BCopy filled shows that the source's sends are small; and now and then that
 * this is worth a try. */
static void
learn(struct urn_st *s, const struct urn_st_recv *r)
{
	struct urn_st_threshold *t = &s->rx.threshold;

	if (!r->copied)
		return;
	if (r->area.bytes >= t->value && urn_st_threshold_raise(t))
		urn_st_decide(s, URN_ST_D_RX_RAISED, s->rx.arrived, t->value);
	else if (urn_st_room_of(r) == 0 && urn_st_threshold_kept(t, r->area.bytes))
		urn_st_decide(s, URN_ST_D_RX_LOWERED, s->rx.arrived, t->value);
}

/* The oldest receive is complete. */
bool
urn_st_sink_complete(struct urn_st *s, enum urn_st_status status)
{
	const struct urn_st_recv r = *urn_st_recv_at(s, 0);

	s->rx.first++;
	s->rx.count--;
	if (status == URN_ST_OK)
		learn(s, &r);
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_RECEIVED,
					      .id = r.area.id,
					      .bytes = r.filled,
					      .status = status});
	return true;
}

/* ---- BCopy data that waits */

static void
free_slot(struct urn_st *s, uint32_t slot)
{
	s->rx.freed++;
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_FREE, .slot = slot});
}

static struct urn_st_piece *
piece(struct urn_st *s)
{
	return &s->cfg.pieces[s->rx.piece];
}

static void
next_piece(struct urn_st *s)
{
	uint32_t slot = piece(s)->slot;

	s->rx.piece = s->rx.piece + 1 == s->cfg.self.buffers ? 0 : s->rx.piece + 1;
	s->rx.pieces--;
	free_slot(s, slot);
}

/* Drop all data that waits. */
void
urn_st_sink_drop(struct urn_st *s)
{
	while (s->rx.pieces)
		next_piece(s);
}

/*
 * A sink that has few buffers left puts short data into the newest buffer that waits, so that many
 * small sends fill the buffers by their bytes, and not by their number. Two neighbours then always
 * hold more than one buffer does.
 *
 * returns: true: the receive is free again
 */
static bool
merge(struct urn_st *s, uint32_t slot, uint32_t from, uint32_t bytes)
{
	uint32_t n = s->rx.piece + s->rx.pieces - 1, end;
	struct urn_st_piece *p;

	if (s->rx.pieces == 0 || s->rx.pieces < s->cfg.self.buffers / 2)
		return false;
	p = &s->cfg.pieces[n >= s->cfg.self.buffers ? n - s->cfg.self.buffers : n];
	end = p->from + p->bytes;
	if (bytes > s->cfg.recv_slot - end)
		return false;
	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_MERGE,
					      .slot = slot,
					      .from = from,
					      .bytes = bytes,
					      .into = p->slot,
					      .at = end});
	p->bytes += bytes;
	free_slot(s, slot);
	return true;
}

/* Data came. The buffer stays with the data until a receive has taken all. */
void
urn_st_sink_keep(struct urn_st *s, const struct urn_st_msg *m, uint32_t slot, uint32_t from)
{
	uint32_t at = s->rx.piece + s->rx.pieces;

	s->rx.data++;
	s->rx.arrived += m->length;
	if (s->rx.told_stop) {
		free_slot(s, slot);
		return;
	}
	if (merge(s, slot, from, m->length))
		return;
	s->cfg.pieces[at >= s->cfg.self.buffers ? at - s->cfg.self.buffers : at] =
		(struct urn_st_piece){.slot = slot, .from = from, .bytes = m->length};
	s->rx.pieces++;
}

bool
urn_st_sink_fill(struct urn_st *s)
{
	struct urn_st_recv *r = urn_st_recv_at(s, 0);
	struct urn_st_piece *p = piece(s);
	uint64_t bytes = urn_st_room_of(r) < p->bytes ? urn_st_room_of(r) : p->bytes;

	urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_COPY,
					      .slot = p->slot,
					      .from = p->from,
					      .addr = r->area.addr + r->filled,
					      .bytes = bytes});
	r->filled += bytes;
	r->copied = true;
	p->from += (uint32_t)bytes;
	p->bytes -= (uint32_t)bytes;
	if (p->bytes == 0)
		next_piece(s);
	return urn_st_room_of(r) || urn_st_sink_complete(s, URN_ST_OK);
}

/* True when the oldest receive has bytes, and need not be full. */
static bool
is_enough(const struct urn_st_recv *r)
{
	return r->filled && !r->all;
}

/* ---- memory of the sink is announced */

static struct urn_st_advert
advert_of(struct urn_st *s)
{
	const struct urn_st_recv *r = urn_st_recv_at(s, 0);

	return (struct urn_st_advert){.offset = s->rx.arrived,
				      .bytes = urn_st_room_of(r),
				      .addr = r->area.addr + r->filled,
				      .key = r->area.rkey};
}

static void
advertised(struct urn_st *s, const struct urn_st_advert *a)
{
	s->rx.state = URN_ST_RX_ADVERTISED;
	s->rx.advert_offset = a->offset;
	s->rx.advert_bytes = a->bytes;
	s->rx.adverts++;
}

static bool
advertise(struct urn_st *s, enum urn_st_decision why)
{
	const struct urn_st_advert a = advert_of(s);
	struct urn_st_msg m = {.kind = URN_ST_SINK_AVAIL,
			       .offset = a.offset,
			       .bytes = a.bytes,
			       .addr = a.addr,
			       .key = a.key};

	if (!urn_st_may_send(s))
		return false;
	urn_st_decide(s, why, a.offset, a.bytes);
	advertised(s, &a);
	urn_st_emit(s, &m, 0, 0);
	return true;
}

/* True when the source could use a SinkAvail for the next byte. */
static bool
may_advertise(const struct urn_st *s)
{
	const struct urn_st_rx *r = &s->rx;

	/* A source that finishes by BCopy has no use for it, unless it resumes. */
	if (r->arrived < r->promised && !(s->cfg.peer.abilities & URN_ST_RESUMES))
		return false;
	return r->state == URN_ST_RX_QUIET && r->count && r->pieces == 0 && !r->stop &&
	       !r->recv[r->first % URN_ST_RECVS].unannounced &&
	       r->threshold.value != URN_ST_INFINITE && r->adverts - r->seen < URN_ST_UNSEEN;
}

bool
urn_st_sink_carry(struct urn_st *s, uint64_t id, struct urn_st_advert *a)
{
	const struct urn_st_recv *r = urn_st_recv_at(s, 0);

	if (!may_advertise(s) || r->area.id != id || !r->held)
		return false;
	*a = advert_of(s);
	advertised(s, a);
	return true;
}

void
urn_st_sink_release(struct urn_st *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->rx.count; i++)
		if (urn_st_recv_at(s, i)->area.id == id)
			urn_st_recv_at(s, i)->held = false;
}

/* The source will not write to the announced memory any more: its place in the stream is taken. */
void
urn_st_sink_void(struct urn_st *s, enum urn_st_decision why)
{
	urn_st_decide(s, why, s->rx.advert_offset, s->rx.advert_bytes);
	s->rx.state = URN_ST_RX_QUIET;
}

/* ---- memory of the source was announced */

static bool
send_small(struct urn_st *s, enum urn_st_decision why)
{
	struct urn_st_msg m = {.kind = URN_ST_SEND_SM,
			       .offset = s->rx.arrived,
			       .bytes = s->rx.arrived - s->rx.offer.offset};

	if (!urn_st_may_send(s))
		return false;
	urn_st_decide(s, why, s->rx.arrived, urn_st_offer_end(s) - s->rx.arrived);
	s->rx.offered = false;
	s->rx.granting = true;
	s->rx.state = URN_ST_RX_QUIET;
	urn_st_emit(s, &m, 0, 0);
	return true;
}

/*
 * A read takes the time of a way to the source and back. One that brings less than a single BCopy
 * message would, and leaves bytes for another, costs more than it saves: a few of them in a row
 * show that receives are small where sends are large. left: bytes of the offer
 */
static void
weigh_read(struct urn_st *s, uint64_t left)
{
	struct urn_st_threshold *t = &s->rx.threshold;
	uint64_t have = room(s);

	s->rx.poor = have < left && have < s->cfg.self.size ? s->rx.poor + 1 : 0;
	if (s->rx.poor < URN_ST_POOR)
		return;
	s->rx.poor = 0;
	if (urn_st_threshold_raise_over(t, have))
		urn_st_decide(s, URN_ST_D_RX_RAISED, s->rx.arrived, t->value);
}

/* Read into as many receives as the offer fills. */
static bool
start_reads(struct urn_st *s)
{
	uint64_t at = s->rx.arrived, end = urn_st_offer_end(s);

	urn_st_decide(s, URN_ST_D_READ, at, end - at);
	weigh_read(s, end - at);
	s->rx.state = URN_ST_RX_READING;
	for (uint32_t i = 0; i < s->rx.count && at < end; i++) {
		struct urn_st_recv *r = urn_st_recv_at(s, i);

		r->reading = urn_st_room_of(r) < end - at ? urn_st_room_of(r) : end - at;
		s->rx.reads++;
		urn_st_act(s, &(struct urn_st_action){.act = URN_ST_A_READ,
						      .addr = r->area.addr + r->filled,
						      .lkey = r->area.lkey,
						      .raddr = s->rx.offer.addr +
							       (at - s->rx.offer.offset),
						      .rkey = s->rx.offer.key,
						      .bytes = r->reading});
		at += r->reading;
	}
	return true;
}

static bool
all_read(struct urn_st *s)
{
	struct urn_st_msg m = {
		.kind = URN_ST_RD_COMPL, .offset = urn_st_offer_end(s), .bytes = s->rx.offer.bytes};

	if (!urn_st_may_send(s))
		return false;
	urn_st_decide(s, URN_ST_D_READ_ALL, m.offset, m.bytes);
	s->rx.offered = false;
	s->rx.state = URN_ST_RX_QUIET;
	urn_st_emit(s, &m, 0, 0);
	return true;
}

/* ---- states */

static bool
step_quiet(struct urn_st *s)
{
	const struct urn_st_recv *r = urn_st_recv_at(s, 0);

	if (s->rx.count == 0)
		return false;
	if (s->rx.pieces)
		return urn_st_sink_fill(s);
	if (is_enough(r))
		return urn_st_sink_complete(s, URN_ST_OK);
	return may_advertise(s) && !r->held && urn_st_room_of(r) >= s->rx.threshold.value &&
	       advertise(s, URN_ST_D_ADVERTISE);
}

/* Receives are there, and no data waits: read, announce memory, or ask for BCopy. */
static bool
answer(struct urn_st *s)
{
	uint64_t left = urn_st_offer_end(s) - s->rx.arrived, have;
	bool reads = s->rx.answer & URN_ST_F_READ;

	have = reads ? room(s) : urn_st_room_of(urn_st_recv_at(s, 0));
	/* A source that asks for memory to write to gets none that may not be named. */
	if (!reads && urn_st_recv_at(s, 0)->unannounced)
		have = 0;
	if (have >= left || have >= s->rx.threshold.value)
		return reads ? start_reads(s) : advertise(s, URN_ST_D_ANSWER);
	if (is_enough(urn_st_recv_at(s, 0)))
		return urn_st_sink_complete(s, URN_ST_OK);
	return send_small(s, URN_ST_D_TOO_SMALL);
}

bool
urn_st_sink_may_zcopy(const struct urn_st *s)
{
	return s->rx.answer & (URN_ST_F_READ | URN_ST_F_WRITE) &&
	       s->rx.threshold.value != URN_ST_INFINITE;
}

static bool
step_offered(struct urn_st *s)
{
	if (s->rx.arrived == urn_st_offer_end(s))
		return all_read(s);
	if (!urn_st_sink_may_zcopy(s))
		return send_small(s, URN_ST_D_ASKED);
	if (s->rx.count == 0)
		return s->rx.late && send_small(s, URN_ST_D_TOO_LATE);
	return s->rx.pieces ? urn_st_sink_fill(s) : answer(s);
}

static bool
step_nothing(struct urn_st *s)
{
	(void)s;
	return false;
}

static bool
step_ended(struct urn_st *s)
{
	if (s->rx.count == 0)
		return false;
	return s->rx.pieces ? urn_st_sink_fill(s)
			    : urn_st_sink_complete(s, s->rx.stop ? URN_ST_GONE : URN_ST_OK);
}

/*
 * The program reads no more (SF-10). Reads come to their end first, because the source gives its
 * memory back when Stop is there. Announced memory stays the machine's until the source cannot
 * write to it.
 */
static bool
step_stop(struct urn_st *s)
{
	struct urn_st_msg m = {.kind = URN_ST_STOP, .offset = s->rx.arrived};

	if (s->rx.state == URN_ST_RX_READING)
		return false;
	if (s->rx.state != URN_ST_RX_ENDED && !s->rx.told_stop) {
		if (!urn_st_may_send(s))
			return false;
		s->rx.told_stop = true;
		s->rx.offered = false;
		if (s->rx.state == URN_ST_RX_OFFERED)
			s->rx.state = URN_ST_RX_QUIET;
		urn_st_decide(s, URN_ST_D_STOP, s->rx.arrived, 0);
		urn_st_emit(s, &m, 0, 0);
	}
	urn_st_sink_drop(s);
	return s->rx.state != URN_ST_RX_ADVERTISED && s->rx.count &&
	       urn_st_sink_complete(s, URN_ST_GONE);
}

bool
urn_st_sink_step(struct urn_st *s)
{
	static bool (*const step[URN_ST_RX_COUNT])(struct urn_st *) = {
		[URN_ST_RX_QUIET] = step_quiet,	    [URN_ST_RX_ADVERTISED] = step_nothing,
		[URN_ST_RX_OFFERED] = step_offered, [URN_ST_RX_READING] = step_nothing,
		[URN_ST_RX_ENDED] = step_ended,
	};

	return s->rx.stop ? step_stop(s) : step[s->rx.state](s);
}
