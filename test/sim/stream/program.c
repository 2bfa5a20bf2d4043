/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of both ends, and the oracle: bytes that they sent, and all that they saw. */
#include "stsim.h"

#include <errno.h>

enum { POISON = 0xa5 };

/* Bytes of the stream that an end sends. */
static uint32_t
seed_of(const struct st_end *e)
{
	return (uint32_t)(e->w->seed * 16 + e->stream * 2 + e->id);
}

struct st_area *
st_area_of(struct st_end *e, uint64_t addr, uint64_t bytes)
{
	for (uint32_t i = 0; i < ST_AREAS; i++) {
		struct st_area *a = &e->area[i];
		uint64_t first = (uint64_t)(uintptr_t)&a->mem[ST_GUARD];

		if (addr >= first && addr < first + ST_BYTES)
			return addr - first + bytes <= a->bytes ? a : NULL;
	}
	return NULL;
}

/* Take an area for a send or receive. NULL: none is free */
static struct st_area *
take(struct st_end *e, uint32_t bytes, bool send, struct urn_st_area *to)
{
	uint32_t i = 0;

	while (i < ST_AREAS && e->area[i].live)
		i++;
	if (i == ST_AREAS)
		return NULL;
	e->area[i].live = true;
	e->area[i].send = send;
	e->area[i].bytes = bytes;
	e->area[i].key = ++e->keys * 16 + i;
	e->area[i].at = e->posted_bytes;
	memset(e->area[i].mem, POISON, sizeof(e->area[i].mem));
	*to = (struct urn_st_area){.id = i,
				   .addr = (uint64_t)(uintptr_t)&e->area[i].mem[ST_GUARD],
				   .bytes = bytes,
				   .rkey = e->area[i].key};
	if (send)
		sim_fill(&e->area[i].mem[ST_GUARD], seed_of(e), (uint32_t)e->posted_bytes, bytes);
	return &e->area[i];
}

/* The area is the program's again, which uses it for something else. */
static void
give_back(struct st_end *e, uint64_t id)
{
	struct st_area *a = &e->area[id];

	for (uint32_t i = 0; i < ST_GUARD; i++)
		if (a->mem[i] != POISON || a->mem[ST_GUARD + a->bytes + i] != POISON)
			st_fail(e->w, "end %u.%u: memory beside an area was written", e->stream,
				e->id);
	a->live = false;
	memset(a->mem, POISON, sizeof(a->mem));
}

/* ---- programs */

static uint32_t
size(struct st_end *e, uint32_t most)
{
	struct sim_rng *r = &e->w->rng;
	uint32_t n = sim_one_in(r, 3) ? sim_between(r, 1, 16) : sim_between(r, 1, ST_BYTES);

	return n < most ? n : most;
}

static uint32_t
may_write(const struct st_end *e)
{
	uint64_t limit = e->target;

	if (e->w->sc->turns && e->posted_bytes != e->got)
		return 0;
	if (e->w->sc->transacts && e->id == 1)
		limit = e->got / e->w->command * e->w->answer;
	return (uint32_t)(limit - e->posted_bytes);
}

static void
begin_send(struct st_end *e)
{
	uint32_t most = may_write(e), bytes;
	struct urn_st_area area;
	struct st_area *a;
	int error;

	if (most == 0 || e->sends >= URN_ST_JOBS)
		return;
	bytes = e->w->sc->transacts ? e->w->answer
		: e->w->sc->turns   ? e->w->command
				    : size(e, most);
	a = take(e, bytes, true, &area);
	if (!a)
		return;
	e->sends++;
	e->posted_bytes += bytes;
	error = urn_st_send(&e->st, &area);
	if (error == 0)
		return;
	/* The peer reads no more: that was all. */
	if (error == EPIPE)
		e->target = (uint32_t)(e->posted_bytes - bytes);
	e->sends--;
	e->posted_bytes -= bytes;
	a->live = false;
}

static void
begin_receive(struct st_end *e)
{
	bool many = !e->w->sc->transacts && !e->w->sc->turns;
	uint32_t most = e->largest, how;
	struct urn_st_area area;
	struct st_area *a;

	if (e->recvs >= URN_ST_RECVS || (e->recvs && !many))
		return;
	if (e->w->sc->turns && e->got < e->posted_bytes)
		most = (uint32_t)(e->posted_bytes - e->got);
	a = take(e, size(e, most), false, &area);
	if (!a)
		return;
	e->recvs++;
	how = many && sim_one_in(&e->w->rng, 5) ? URN_ST_ALL : 0;
	a->secret = e->w->fickle && sim_one_in(&e->w->rng, 2);
	if (urn_st_receive(&e->st, &area, how | (a->secret ? URN_ST_UNANNOUNCED : 0)) == 0)
		return;
	e->recvs--;
	a->live = false;
}

static void
transact(struct st_end *e)
{
	struct urn_st_area command, answer;
	struct st_area *c, *a;

	if (e->recvs || e->posted_bytes == e->target ||
	    e->got != e->posted_bytes / e->w->command * e->w->answer)
		return;
	c = take(e, e->w->command, true, &command);
	e->posted_bytes += e->w->command;
	a = take(e, e->w->answer, false, &answer);
	e->sends++;
	e->recvs++;
	if (c && a && urn_st_transact(&e->st, &command, &answer) == 0)
		return;
	e->posted_bytes -= e->w->command;
	e->sends--;
	e->recvs--;
	if (c)
		c->live = false;
	if (a)
		a->live = false;
}

/* True when the program would read now. */
static bool
may_read(const struct st_end *e)
{
	const struct st_world *w = e->w;

	if (e->lazy || e->eof || e->stopped)
		return false;
	if (e->posted_bytes == e->target)
		return !w->sc->turns || e->sends == 0;
	if (w->sc->turns)
		return e->sends == 0 && e->got < e->posted_bytes;
	return !w->sc->transacts || e->id == 1 || e->got < e->posted_bytes / w->command * w->answer;
}

/* End the stream behind the last send; close when the peer's has ended, too, or early. */
static void
finish(struct st_end *e)
{
	if (!e->shut && e->posted_bytes == e->target) {
		e->shut = true;
		urn_st_shutdown(&e->st);
	}
	if (!e->close_called && ((e->shut && (e->eof || e->stopped)) ||
				 (e->w->sc->closes && sim_one_in(&e->w->rng, 60)))) {
		e->close_called = e->shut = true;
		e->target = (uint32_t)e->posted_bytes;
		urn_st_close(&e->st);
	}
}

/* The connection broke: the program receives what came before, to the error. */
static void
drain(struct st_end *e)
{
	struct urn_st_area area;
	struct st_area *a;

	if (e->drained || e->recvs >= URN_ST_RECVS)
		return;
	a = take(e, size(e, e->largest), false, &area);
	if (!a)
		return;
	e->recvs++;
	if (urn_st_receive(&e->st, &area, sim_one_in(&e->w->rng, 5)) == 0)
		return;
	e->recvs--;
	a->live = false;
	e->drained = e->recvs == 0;
}

/*
 * Take a receive back. One that was never announced is busy while a read fills it, and not
 * otherwise.
 */
static void
cancel(struct st_end *e)
{
	uint32_t i = sim_rnd(&e->w->rng, ST_AREAS);
	struct st_area *a = &e->area[i];
	int error;

	if (!a->live || a->send)
		return;
	e->cancelling = true;
	error = urn_st_cancel(&e->st, i);
	e->cancelling = false;
	if (error == 0 ? a->live : error != EBUSY)
		st_fail(e->w, "end %u.%u: a receive is taken back with %d", e->stream, e->id,
			error);
	if (error == EBUSY && a->secret && e->st.rx.state != URN_ST_RX_READING)
		st_fail(e->w, "end %u.%u: a receive that nobody may touch is busy", e->stream,
			e->id);
}

/* The program changes its mind. returns: true: its step is over */
static bool
change_mind(struct st_end *e)
{
	uint32_t what = sim_rnd(&e->w->rng, 400);

	if (what < 80) {
		cancel(e);
	} else if (what == 80 && !e->stopped) {
		e->stopped = true;
		urn_st_shutdown_read(&e->st);
	} else if (what == 81 && sim_one_in(&e->w->rng, 4)) {
		e->w->aborted = e->close_called = true;
		urn_st_abort(&e->st);
	} else {
		return false;
	}
	return true;
}

void
st_program_step(struct st_end *e)
{
	bool client = e->w->sc->transacts && e->id == 0;

	if (e->closed || e->close_called)
		return;
	if (e->died) {
		drain(e);
		return;
	}
	if (e->w->fickle && change_mind(e))
		return;
	if (sim_one_in(&e->w->rng, 2)) {
		if (client)
			transact(e);
		else
			begin_send(e);
		finish(e);
	} else if (may_read(e)) {
		begin_receive(e);
	}
}

/* ---- the oracle */

/* True when the connection may end with an error. */
static bool
excused(const struct st_end *e)
{
	return e->w->cut || e->w->mischief_done || e->w->aborted;
}

static void
judge_failed(struct st_end *e, const char *what, enum urn_st_status status, bool gone)
{
	char why[200];

	if ((status == URN_ST_GONE && gone) || (status == URN_ST_CANCELLED && e->cancelling) ||
	    excused(e))
		return;
	urn_st_error(&e->st, why, sizeof(why));
	st_fail(e->w, "end %u.%u: a %s fails with status %u: %s", e->stream, e->id, what, status,
		why);
}

void
st_program_sent(struct st_end *e, const struct urn_st_action *a)
{
	const struct st_area *area = &e->area[a->id];

	e->w->progress = e->w->step;
	e->w->hash = e->w->hash * 31 + a->bytes;
	e->sends--;
	if (!area->live || !area->send)
		st_fail(e->w, "end %u.%u: a send completes twice", e->stream, e->id);
	if (a->status != URN_ST_OK)
		judge_failed(e, "send", a->status, st_peer(e)->close_called || st_peer(e)->stopped);
	else if (a->bytes != area->bytes || area->at != e->sent)
		st_fail(e->w, "end %u.%u: a send of byte %llu completes, where byte %llu is due",
			e->stream, e->id, (unsigned long long)area->at,
			(unsigned long long)e->sent);
	e->sent += a->bytes;
	give_back(e, a->id);
}

static void
judge_bytes(struct st_end *e, const uint8_t *at, uint64_t bytes)
{
	uint32_t seed = seed_of(st_peer(e));

	for (uint64_t i = 0, n = e->got; i < bytes && !e->w->mischief_done; i++, n++)
		if (at[i] != sim_byte(seed, (uint32_t)n)) {
			st_fail(e->w, "end %u.%u: byte %llu of the stream is wrong", e->stream,
				e->id, (unsigned long long)n);
			return;
		}
}

/* Bytes that came, and the end of the stream, are not lost when the connection breaks behind them.
 */
static void
judge_broken(struct st_end *e)
{
	if (e->closed || e->close_called || e->stopped || e->w->mischief_done)
		return;
	if (e->got != e->came || e->eof != e->came_fin)
		st_fail(e->w, "end %u.%u: %llu bytes and %s came, and the program got %llu and %s",
			e->stream, e->id, (unsigned long long)e->came,
			e->came_fin ? "the end" : "no end", (unsigned long long)e->got,
			e->eof ? "the end" : "no end");
}

static void
judge_eof(struct st_end *e)
{
	const struct st_end *p = st_peer(e);

	e->eof = true;
	if (!e->w->mischief_done && (!p->shut || e->got != p->posted_bytes))
		st_fail(e->w, "end %u.%u: the stream ends at byte %llu, and the peer sent %llu",
			e->stream, e->id, (unsigned long long)e->got,
			(unsigned long long)p->posted_bytes);
}

void
st_program_received(struct st_end *e, const struct urn_st_action *a)
{
	struct st_area *area = &e->area[a->id];

	e->w->progress = e->w->step;
	e->w->hash = e->w->hash * 31 + a->bytes + 7;
	e->recvs--;
	if (!area->live || area->send || a->bytes > area->bytes)
		st_fail(e->w, "end %u.%u: a receive completes twice, or with too much", e->stream,
			e->id);
	if (a->status != URN_ST_OK)
		judge_failed(e, "receive", a->status, e->close_called || e->stopped);
	else if (a->bytes == 0)
		judge_eof(e);
	judge_bytes(e, &area->mem[ST_GUARD], a->bytes);
	e->got += a->bytes;
	give_back(e, a->id);
}

void
st_judge_end(struct st_world *w)
{
	for (uint32_t i = 0; i < w->streams * 2; i++) {
		struct st_end *e = &w->end[i / 2][i % 2], *p = st_peer(e);

		if (e->sends || e->recvs)
			st_fail(w, "end %u.%u: %llu sends and %llu receives are not complete",
				e->stream, e->id, (unsigned long long)e->sends,
				(unsigned long long)e->recvs);
		if (w->cut)
			judge_broken(e);
		if (excused(e) || w->sc->closes || e->stopped || p->stopped)
			continue;
		if (!e->closed || e->got != p->target || e->sent != e->target)
			st_fail(w, "end %u.%u: %llu of %u bytes came", e->stream, e->id,
				(unsigned long long)e->got, p->target);
	}
}
