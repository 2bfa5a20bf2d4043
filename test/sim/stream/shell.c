/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell of a stream machine: actions become requests, completions become calls. */
#include "stsim.h"

static void
act_send(struct st_end *e, const struct urn_st_action *a)
{
	struct urn_st_msg m = *a->message;
	struct st_op *op = st_net_post(e, URN_ST_A_SEND);
	const struct st_area *area = m.length ? st_area_of(e, a->addr, m.length) : NULL;

	if (m.length && (!area || !area->live || !area->send))
		st_fail(e->w, "end %u.%u: sends memory that was given back", e->stream, e->id);
	st_trace(e->w, "%u.%u ─► %s, offset %llu, bytes %llu, length %u", e->stream, e->id,
		 urn_st_kind_text(m.kind), (unsigned long long)m.offset,
		 (unsigned long long)m.bytes, m.length);
	st_mischief_change(e, &m);
	op->length = urn_st_wire_put(op->bytes, &m);
	if (m.length)
		memcpy(op->bytes + op->length, (const void *)(uintptr_t)a->addr, m.length);
	op->length += m.length;
	op->load = m.kind == URN_ST_WR_COMPL ? (uint32_t)m.bytes : m.length;
	op->fin = m.kind == URN_ST_FIN;
	if (m.kind == URN_ST_SRC_AVAIL && st_break(e->w, ST_BREAK_RETURN))
		memset((void *)(uintptr_t)m.addr, 0, m.bytes);
}

static void
act_transfer(struct st_end *e, const struct urn_st_action *a)
{
	struct st_op *op = st_net_post(e, (uint8_t)a->act);

	st_trace(e->w, "%u.%u: %s of %llu bytes", e->stream, e->id,
		 a->act == URN_ST_A_READ ? "read" : "write", (unsigned long long)a->bytes);
	op->addr = a->addr;
	op->raddr = a->raddr;
	op->rkey = a->rkey;
	op->length = (uint32_t)a->bytes;
}

static void
act_copy(struct st_end *e, const struct urn_st_action *a)
{
	const struct st_area *area = st_area_of(e, a->addr, a->bytes);
	uint32_t from = a->from;

	if (!area || !area->live || area->send || a->from + a->bytes > e->slot_bytes[a->slot]) {
		st_fail(e->w, "end %u.%u: a copy is out of bounds", e->stream, e->id);
		return;
	}
	if (sim_one_in(&e->w->rng, 40) && st_break(e->w, ST_BREAK_COPY))
		from--;
	memcpy((void *)(uintptr_t)a->addr, e->slot[a->slot] + from, a->bytes);
}

static void
act_merge(struct st_end *e, const struct urn_st_action *a)
{
	if (a->from + a->bytes > e->slot_bytes[a->slot] || a->at < e->slot_bytes[a->into] ||
	    a->at + a->bytes > sizeof(e->slot[0])) {
		st_fail(e->w, "end %u.%u: receives are merged out of bounds", e->stream, e->id);
		return;
	}
	memcpy(e->slot[a->into] + a->at, e->slot[a->slot] + a->from, a->bytes);
	e->slot_bytes[a->into] = (uint32_t)(a->at + a->bytes);
}

static void
act_post(struct st_end *e, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (!sim_one_in(&e->w->rng, 4) || !st_break(e->w, ST_BREAK_RECEIVES))
			st_net_receive(e);
}

static void
act(void *arg, const struct urn_st_action *a)
{
	struct st_end *e = arg;

	switch (a->act) {
	case URN_ST_A_SEND:
		act_send(e, a);
		break;
	case URN_ST_A_WRITE:
	case URN_ST_A_READ:
		act_transfer(e, a);
		break;
	case URN_ST_A_COPY:
		act_copy(e, a);
		break;
	case URN_ST_A_MERGE:
		act_merge(e, a);
		break;
	case URN_ST_A_FREE:
		e->spare[e->spares++] = a->slot;
		break;
	case URN_ST_A_POST:
		act_post(e, a->bytes);
		break;
	case URN_ST_A_SENT:
		st_program_sent(e, a);
		break;
	case URN_ST_A_RECEIVED:
		st_program_received(e, a);
		break;
	case URN_ST_A_CLOSED:
		e->closed = true;
		break;
	case URN_ST_A_DIED:
		e->died = true;
		break;
	default:
		break;
	}
}

static void
trace(void *arg, const struct urn_st_trace *t)
{
	struct st_end *e = arg;

	e->w->decided[t->decision]++;
	st_trace(e->w, "%u.%u: %s; byte %llu, %llu", e->stream, e->id,
		 urn_st_decision_text(t->decision), (unsigned long long)t->offset,
		 (unsigned long long)t->bytes);
}

void
st_shell_open(struct st_end *e, const struct urn_st_config *base)
{
	struct urn_st_config cfg = *base;

	cfg.pieces = e->pieces;
	cfg.act = act;
	cfg.send_slot = URN_ST_WIRE_MAX + ST_BYTES;
	cfg.recv_slot = sizeof(e->slot[0]);
	cfg.trace = trace;
	cfg.arg = e;
	e->spares = URN_ST_CONTROL + cfg.self.buffers;
	for (uint32_t i = 0; i < e->spares; i++)
		e->spare[i] = i;
	if (urn_st_init(&e->st, &cfg))
		st_fail(e->w, "end %u.%u: the configuration is refused", e->stream, e->id);
}

/* ---- completions */

static void
take_message(struct st_end *e)
{
	uint32_t slot = e->rq[e->rq_polled++ % ST_RECVS];

	e->w->progress = e->w->step;
	e->came += e->slot_load[slot];
	e->came_fin |= e->slot_fin[slot];
	urn_st_arrived(&e->st, slot, e->slot[slot], e->slot_bytes[slot]);
}

static void
read_done(struct st_end *e, uint32_t bytes)
{
	e->came += bytes;
	urn_st_read(&e->st);
}

static void
take_completion(struct st_end *e)
{
	const struct st_op *op = &e->op[e->polled % ST_OPS];
	uint8_t a = op->act;

	e->polled++;
	e->w->progress = e->w->step;
	if (op->refused)
		urn_st_refused(&e->st);
	else if (a == URN_ST_A_WRITE)
		urn_st_written(&e->st);
	else if (a == URN_ST_A_READ)
		read_done(e, op->length);
	else if (!op->mischief)
		urn_st_sent(&e->st);
}

/* Fence the queue pair, mostly when the Abort is out. */
static void
fence(struct st_end *e)
{
	if (e->posted != e->completed && !sim_one_in(&e->w->rng, 30))
		return;
	if (st_break(e->w, ST_BREAK_FENCE))
		e->died = false;
	else
		e->error = true;
	e->w->progress = e->w->step;
	urn_st_fenced(&e->st);
}

/* The connection is gone for the shell when it has taken all that came before. */
static void
notice(struct st_end *e)
{
	if (e->told_down || !(e->w->cut || (st_peer(e)->error && e->completed == e->executed)) ||
	    e->rq_polled != e->rq_taken || e->polled != e->completed)
		return;
	e->told_down = true;
	e->w->progress = e->w->step;
	urn_st_down(&e->st);
}

void
st_shell_step(struct st_end *e)
{
	bool message = e->rq_polled != e->rq_taken, done = e->polled != e->completed;

	if (e->error)
		return;
	if (e->died)
		fence(e);
	else if (e->w->cut && sim_one_in(&e->w->rng, 3))
		notice(e);
	else if (message && (!done || sim_one_in(&e->w->rng, 2)))
		take_message(e);
	else if (done)
		take_completion(e);
	else if (sim_one_in(&e->w->rng, 8))
		notice(e);
	else if (e->closed && sim_one_in(&e->w->rng, 8))
		e->error = true;
}
