/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell of a session machine: carries its actions out, polls completions, and brings control
 * messages. */
#include "sess.h"

/* ---- control messages */

void
ss_shell_put(struct ss_world *w, uint32_t to, const struct ss_msg *m)
{
	struct ss_end *e = &w->end[to];

	if (e->bagged < SS_BAG)
		e->bag[e->bagged++] = *m;
	if (!e->has_old || sim_one_in(&w->rng, 8)) {
		e->old = *m;
		e->has_old = true;
	}
}

/* True when a path is whole: control messages have queue pairs of their own. */
static bool
connected(const struct ss_world *w)
{
	for (uint32_t p = 0; p < SS_PATHS; p++)
		if (ss_alive(w, 0, p) && ss_alive(w, 1, p) && !w->path[p].cut[0] &&
		    !w->path[p].cut[1])
			return true;
	return false;
}

static void
hear_report(struct ss_end *e, const struct urn_sess_report *r)
{
	if (r->epoch >= e->c.epoch)
		ss_heal_reported(e, r->paths);
	urn_sess_report(&e->c, r);
}

static void
hear(struct ss_end *e, const struct ss_msg *m)
{
	struct urn_sess_msg got;
	enum urn_sess_verdict v = urn_sess_wire_get(m->bytes, m->length, e->id, &got);

	if (v != URN_SESS_V_OK)
		ss_fail(e->w, "end %u: control message refused: %s", e->id, urn_sess_wire_text(v));
	else if (got.kind == URN_SESS_WIRE_MIGRATED)
		urn_sess_migrated(&e->c, got.epoch);
	else if (got.kind == URN_SESS_WIRE_OFFER)
		ss_heal_hear(e, &got.offer);
	else
		hear_report(e, &got.told);
}

void
ss_shell_rest(struct ss_world *w)
{
	for (uint32_t i = 0; i < SS_REST && !*w->error; i++) {
		struct ss_end *e = &w->end[w->end[0].bagged == 0];
		struct ss_msg m;

		if (e->bagged == 0)
			return;
		m = e->bag[--e->bagged];
		hear(e, &m);
	}
	if (!*w->error)
		ss_fail(w, "ends that are done answer each other for ever");
}

/* A message of the bag arrives, is lost, or arrives and stays. In any order. */
static void
step_bag(struct ss_world *w, struct ss_end *e)
{
	uint32_t i = sim_rnd(&w->rng, e->bagged);
	struct ss_msg m;

	if (e->has_old && sim_one_in(&w->rng, 50) && connected(w)) {
		m = e->old;
		hear(e, &m);
		return;
	}
	if (!e->bagged)
		return;
	m = e->bag[i];
	if (!sim_one_in(&w->rng, 5) || e->bagged == SS_BAG)
		e->bag[i] = e->bag[--e->bagged];
	if (connected(w) && !sim_one_in(&w->rng, 4))
		hear(e, &m);
}

/* ---- completions */

static void
take_receive(struct ss_end *e, const struct ss_cqe *cqe)
{
	struct ss_buf *b = &e->buf[cqe->buf];
	struct urn_sess_header h;

	if (!urn_sess_header_get(&b->wire, 8, &h)) {
		ss_fail(e->w, "end %u: a receive completion without a header", e->id);
		return;
	}
	if (urn_sess_received(&e->c, cqe->epoch, &h)) {
		e->ack = h.id;
		ss_judge_receive(e, cqe->buf);
	} else {
		ss_fail(e->w, "end %u: a receive completion was dropped", e->id);
	}
}

static void
take(struct ss_end *e)
{
	struct ss_cqe cqe = e->cq[e->cq_head++ % SS_OPS];
	const struct ss_op *op = &cqe.op;

	if (cqe.recv) {
		take_receive(e, &cqe);
		return;
	}
	if (!op->flush && op->kind == URN_SESS_ATOMIC)
		e->req[op->seq].result = op->value;
	if (op->flush || op->kind > URN_SESS_WRITE)
		urn_sess_done(&e->c, cqe.epoch, op->seq);
}

static void
drain(struct ss_end *e)
{
	struct ss_qp *q = &e->w->path[e->c.path].qp[e->id];
	struct urn_sess_record rec = {.log = true};
	struct urn_sess_header h;

	while (e->cq_head != e->cq_tail)
		take(e);
	for (uint32_t i = q->rq_done; i < q->rq_posted; i++) {
		bool there = urn_sess_header_get(&e->buf[q->rq[i]].wire, 8, &h);

		if (there && ss_break(e->w, SS_BREAK_HEADER))
			there = false;
		urn_sess_found(&e->c, q->rq[i], there ? &h : NULL);
	}
	/* An intent without a mark is decided by the memory. */
	if (e->log_state == 1) {
		if (e->counter == e->intent_old + 1)
			e->log_old[++e->logged % URN_SESS_ATOMICS] = e->intent_old;
		else if (e->counter != e->intent_old)
			rec.unsure = e->w->unsure = true;
		if (!rec.unsure)
			e->log_state = 0;
	}
	rec.count = e->logged;
	if (rec.count && e->stored == rec.count && ss_break(e->w, SS_BREAK_RECORD))
		rec.count--;
	memcpy(rec.old, e->log_old, sizeof(rec.old));
	urn_sess_drained(&e->c, e->c.used, &rec);
}

/* ---- actions */

static void
flush(struct ss_end *e, uint64_t seq, uint32_t path)
{
	struct ss_op op = {.seq = seq, .kind = e->req[seq].kind, .flush = true};

	ss_net_post(e->w, e->id, path, &op);
	e->since_flush = 0;
}

/* A completion is waited for, and no flush read is under way for it (FO-8). */
static void
step_flush(struct ss_end *e)
{
	uint64_t seq = e->c.tail;

	if (!e->since_flush || !ss_flows(e))
		return;
	while (seq-- != e->c.head)
		if (e->req[seq].kind <= URN_SESS_WRITE) {
			flush(e, seq, e->c.path);
			return;
		}
	e->since_flush = 0; /* LAST ACKED was faster */
}

void
ss_shell_post(struct ss_end *e, uint64_t seq, uint32_t path, uint32_t epoch)
{
	struct ss_op op = {.seq = seq, .kind = e->req[seq].kind};
	bool message = op.kind <= URN_SESS_WRITE;

	e->req[seq].posted = true;
	e->w->path[path].qp[e->id].epoch = epoch;
	ss_net_post(e->w, e->id, path, &op);
	if (message)
		e->since_flush++;
	if (message && e->since_flush >= e->w->flush_every)
		flush(e, seq, path);
	ss_point(e->w, SS_AT_POSTED, e->id, path);
}

static void
act_post(struct ss_end *e, const struct urn_sess_action *a)
{
	ss_judge_repost(e, a->seq);
	if (ss_break(e->w, SS_BREAK_LOST))
		return;
	ss_shell_post(e, a->seq, a->path, a->epoch);
	ss_point(e->w, SS_AT_REPOST, e->id, a->path);
}

static void
act_rebuild(struct ss_end *e, const struct urn_sess_action *a)
{
	e->ack = a->header->id;
	ss_judge_receive(e, a->index);
}

static void
act_tell(struct ss_end *e, const struct urn_sess_action *a)
{
	struct ss_msg m = {0};

	m.length = a->message ? urn_sess_wire_report(m.bytes, !e->id, a->message)
			      : urn_sess_wire_migrated(m.bytes, !e->id, a->epoch);
	ss_shell_put(e->w, !e->id, &m);
	if (e->c.state == URN_SESS_REPORTED)
		ss_point(e->w, SS_AT_REPORT, e->id, sim_rnd(&e->w->rng, SS_PATHS));
}

static void
act(void *arg, const struct urn_sess_action *a)
{
	struct ss_end *e = arg;

	ss_trace(e->w, "end %u: action %u, path %u, epoch %u, seq %llu, index %u", e->id, a->act,
		 a->path, a->epoch, (unsigned long long)a->seq, a->index);
	switch (a->act) {
	case URN_SESS_FENCE:
		e->fence = (int32_t)a->epoch;
		break;
	case URN_SESS_DRAIN:
		e->drain = (int32_t)a->epoch;
		break;
	case URN_SESS_BIND_ALL:
		e->bind = (int32_t)a->epoch;
		break;
	case URN_SESS_REBUILD:
		act_rebuild(e, a);
		break;
	case URN_SESS_RECEIVE:
		e->w->path[a->path].qp[e->id].epoch = a->epoch;
		ss_net_receive(e->w, e->id, a->path, a->index);
		break;
	case URN_SESS_POST:
		act_post(e, a);
		break;
	case URN_SESS_COMPLETE:
		if (ss_break(e->w, SS_BREAK_TWICE))
			ss_judge_complete(e, a, e->req[a->seq].result);
		ss_judge_complete(e, a, a->known ? a->old : e->req[a->seq].result);
		break;
	case URN_SESS_TELL:
	case URN_SESS_READY:
		act_tell(e, a);
		break;
	case URN_SESS_WAKE:
		e->wake = true;
		break;
	case URN_SESS_FLUSH:
	case URN_SESS_DIED:
		break;
	}
}

void
ss_shell_open(struct ss_world *w, uint32_t end)
{
	struct ss_end *e = &w->end[end];
	struct urn_sess_config cfg = {
		.group = &e->group,
		.wr = e->wr,
		.wrs = SS_WRS,
		.recv = e->recv,
		.recvs = SS_RECVS,
		.number = end,
		.paths = (1u << SS_PATHS) - 1,
		.act = act,
		.arg = e,
	};

	*e = (struct ss_end){.w = w, .id = end, .fence = -1, .drain = -1, .bind = -1};
	ss_heal_open(e);
	e->target = SS_POSTS - sim_rnd(&w->rng, SS_POSTS / 2);
	if (!urn_sess_init(&e->c, &cfg))
		ss_fail(w, "end %u: the machine refuses its configuration", end);
	for (uint32_t i = 0; i < SS_RECVS; i++)
		ss_net_receive(w, end, 0, i);
}

static void
step_fence(struct ss_end *e)
{
	int32_t epoch = e->fence;

	if (epoch < 0)
		return;
	e->fence = -1;
	if (!ss_break(e->w, SS_BREAK_FENCE))
		e->w->path[e->c.path].qp[e->id].error = true;
	ss_point(e->w, SS_AT_FENCE, e->id, e->c.path);
	urn_sess_fenced(&e->c, (uint32_t)epoch);
}

static void
step_drain(struct ss_end *e)
{
	if (e->drain < 0)
		return;
	e->drain = -1;
	drain(e);
	ss_point(e->w, SS_AT_DRAINED, e->id, sim_rnd(&e->w->rng, SS_PATHS));
}

static void
step_bind(struct ss_end *e)
{
	int32_t epoch = e->bind;

	if (epoch < 0)
		return;
	e->bind = -1;
	ss_point(e->w, SS_AT_BIND, e->id, e->c.next);
	/* The peer's keys are read over the path. */
	if (e->c.state == URN_SESS_BINDING && !ss_carries(e->w, e->c.next)) {
		urn_sess_down(&e->c, e->c.next);
		return;
	}
	if (e->c.state == URN_SESS_BINDING && e->c.epoch == (uint32_t)epoch)
		e->bound = e->w->path[e->c.next].qp[e->id].epoch = (uint32_t)epoch;
	urn_sess_rebound(&e->c, (uint32_t)epoch);
	if (e->c.state == URN_SESS_ANSWERED)
		ss_point(e->w, SS_AT_ANSWER, e->id, e->c.path);
	else if (e->c.state == URN_SESS_MIGRATED)
		ss_point(e->w, SS_AT_MIGRATED, e->id, e->c.path);
}

/* The death of a path is noticed. */
static void
step_notice(struct ss_end *e)
{
	uint32_t p = sim_rnd(&e->w->rng, SS_PATHS);
	const struct ss_path *path = &e->w->path[p];
	bool gone = !ss_alive(e->w, 0, p) || !ss_alive(e->w, 1, p) || path->cut[0] || path->cut[1];
	/* Retries that are used up: the peer left, or has another queue pair there. */
	bool left = (path->qp[!e->id].error || !ss_joined(e->w, p)) && !path->qp[e->id].error &&
		    e->c.path == p && e->c.open;

	if ((!gone && !left) || e->noticed[p])
		return;
	e->noticed[p] = true;
	ss_trace(e->w, "end %u: notices the death of path %u", e->id, p);
	urn_sess_down(&e->c, p);
	ss_heal_lost(e, p);
}

void
ss_shell_step(struct ss_world *w, uint32_t end)
{
	struct ss_end *e = &w->end[end];

	switch (sim_rnd(&w->rng, 10)) {
	case 0:
		step_fence(e);
		break;
	case 1:
		step_drain(e);
		break;
	case 2:
		step_bind(e);
		break;
	case 3:
		step_notice(e);
		break;
	case 4:
	case 5:
		step_bag(w, e);
		break;
	case 6:
		if (sim_one_in(&w->rng, 10) && !ss_break(w, SS_BREAK_SILENT))
			urn_sess_tick(&e->c);
		break;
	case 7:
		if (e->wake) {
			e->wake = false;
			urn_sess_resume(&e->c);
			ss_point(w, w->returned && e->c.path == 0 ? SS_AT_RETURNED : SS_AT_AFTER,
				 end, e->c.path);
		}
		break;
	case 8:
		step_flush(e);
		/* LAST ACKED and flush reads are not waited for. */
		if (e->c.head != e->c.tail && ss_flows(e) &&
		    e->req[e->c.tail - 1].kind <= URN_SESS_WRITE && ss_break(w, SS_BREAK_EARLY))
			urn_sess_done(&e->c, e->c.used, e->c.tail - 1);
		break;
	default:
		if (e->cq_head != e->cq_tail && e->c.state != URN_SESS_DRAINING &&
		    e->c.state != URN_SESS_DEAD)
			take(e);
		break;
	}
}
