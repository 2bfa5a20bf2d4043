/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: reliable and ordered, as RC is. A read may be answered long after messages behind it
 * have arrived. */
#include "stsim.h"

struct st_op *
st_net_post(struct st_end *e, uint8_t act)
{
	struct st_op *op = &e->op[e->posted % ST_OPS];
	struct st_world *w = e->w;

	if (e->posted - e->polled == ST_OPS) {
		st_fail(w, "end %u.%u: the send queue is full", e->stream, e->id);
		e->polled++;
	}
	*op = (struct st_op){.act = act};
	e->posted++;
	w->wire[e->id][w->wire_tail[e->id]++ % (ST_STREAMS * ST_OPS)] = e->stream;
	return op;
}

void
st_net_receive(struct st_end *e)
{
	if (e->spares == 0) {
		st_fail(e->w, "end %u.%u: posts a receive, and has none", e->stream, e->id);
		return;
	}
	e->rq[e->rq_posted++ % ST_RECVS] = e->spare[--e->spares];
}

static void
deliver(struct st_end *e, struct st_op *op)
{
	struct st_end *p = st_peer(e);
	uint32_t slot;

	if (p->rq_taken == p->rq_posted) {
		if (!op->mischief)
			st_fail(e->w, "end %u.%u: a message came, and no receive was posted",
				p->stream, p->id);
		op->refused = e->halted = true;
		return;
	}
	slot = p->rq[p->rq_taken++ % ST_RECVS];
	if (op->length > sizeof(p->slot[slot])) {
		st_fail(e->w, "end %u.%u: a message of %u bytes is too long", p->stream, p->id,
			op->length);
		return;
	}
	memcpy(p->slot[slot], op->bytes, op->length);
	p->slot_bytes[slot] = op->length;
	p->slot_load[slot] = op->load;
	p->slot_fin[slot] = op->fin;
}

/* Memory of the peer that a request names. NULL: there is none, or its key is gone */
static struct st_area *
named(struct st_end *e, struct st_op *op, bool send)
{
	struct st_area *a = st_area_of(st_peer(e), op->raddr, op->length);

	if (a && a->live && a->send == send && a->key == op->rkey)
		return a;
	/* The rogue's own requests come from an honest machine. */
	if (!e->w->mischief_done || e->id == 1)
		st_fail(e->w, "end %u.%u: touches memory of the peer that was given back",
			e->stream, e->id);
	op->refused = e->halted = true;
	return NULL;
}

static void
execute(struct st_end *e, struct st_op *op)
{
	bool send = op->act == URN_ST_A_READ;

	if (op->act == URN_ST_A_SEND)
		deliver(e, op);
	else if (named(e, op, send) && send)
		memcpy(op->bytes, (const void *)(uintptr_t)op->raddr, op->length);
	else if (!op->refused)
		memcpy((void *)(uintptr_t)op->raddr, (const void *)(uintptr_t)op->addr, op->length);
}

/* True when the next request is the turn of the end: in a pool all streams share the order of a
 * wire. */
static bool
is_turn(struct st_end *e)
{
	struct st_world *w = e->w;
	uint32_t stream = e->stream;

	while (w->sc->pool && w->wire_head[e->id] != w->wire_tail[e->id]) {
		stream = w->wire[e->id][w->wire_head[e->id] % (ST_STREAMS * ST_OPS)];
		/* Requests of a queue pair that is gone are none any more. */
		if (!w->end[stream][0].error && !w->end[stream][1].error)
			break;
		w->wire_head[e->id]++;
	}
	return stream == e->stream;
}

/* A write comes behind the message that says it is there. */
static void
swap(struct st_end *e)
{
	struct st_op *a = &e->op[e->executed % ST_OPS], *b = &e->op[(e->executed + 1) % ST_OPS], t;

	if (e->executed + 1 >= e->posted || a->act != URN_ST_A_WRITE ||
	    !st_break(e->w, ST_BREAK_ORDER))
		return;
	t = *a;
	*a = *b;
	*b = t;
}

void
st_net_execute(struct st_end *e)
{
	struct st_op *op = &e->op[e->executed % ST_OPS];
	struct st_world *w = e->w;

	if (e->executed == e->posted || e->error || e->halted || st_peer(e)->error || w->cut ||
	    w->step < e->stalled || !is_turn(e))
		return;
	swap(e);
	w->progress = w->step;
	w->wire_head[e->id]++;
	e->executed++;
	if (op->act == URN_ST_A_SEND && sim_one_in(&w->rng, 40) && st_break(w, ST_BREAK_LOST))
		return;
	execute(e, op);
	if (op->act == URN_ST_A_SEND && sim_one_in(&w->rng, 40) && st_break(w, ST_BREAK_TWICE))
		execute(e, op);
}

/* A read's bytes are placed at the latest now. */
void
st_net_complete(struct st_end *e)
{
	struct st_op *op = &e->op[e->completed % ST_OPS];
	struct st_area *a;

	if (e->completed == e->executed || e->error)
		return;
	e->completed++;
	e->w->progress = e->w->step;
	if (op->act != URN_ST_A_READ || op->refused)
		return;
	a = st_area_of(e, op->addr, op->length);
	if (!a || !a->live || a->send)
		st_fail(e->w, "end %u.%u: a read is placed in memory that was given back",
			e->stream, e->id);
	memcpy((void *)(uintptr_t)op->addr, op->bytes, op->length);
}

/*
 * A Send that was delivered is not repeated, and nothing before it (FO-18). Writes and reads behind
 * it that are not complete are executed again.
 */
void
st_net_migrate(struct st_end *e)
{
	uint32_t from = e->executed;

	if (e->error || e->w->sc->pool)
		return;
	while (from > e->completed && e->op[(from - 1) % ST_OPS].act != URN_ST_A_SEND)
		from--;
	e->w->wire_head[e->id] -= e->executed - from;
	e->executed = from;
	e->stalled = e->w->step + sim_rnd(&e->w->rng, 300);
}
