/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated adapters: reliable queue pairs whose packets and memory operations are steps of their
 * own. */
#include "sess.h"

void
ss_net_make(struct ss_world *w, uint32_t end, uint32_t path)
{
	w->path[path].qp[end] = (struct ss_qp){0};
}

void
ss_net_post(struct ss_world *w, uint32_t end, uint32_t path, const struct ss_op *op)
{
	struct ss_qp *q = &w->path[path].qp[end];

	if (q->posted == SS_OPS) {
		ss_fail(w, "end %u: the simulation's send queue is full", end);
		return;
	}
	q->op[q->posted++] = *op;
}

void
ss_net_receive(struct ss_world *w, uint32_t end, uint32_t path, uint32_t buf)
{
	struct ss_end *e = &w->end[end];
	struct ss_qp *q = &w->path[path].qp[end];

	if (q->rq_posted == SS_OPS) {
		ss_fail(w, "end %u: the simulation's receive queue is full", end);
		return;
	}
	e->buf[buf] = (struct ss_buf){.payload = ~0ull};
	q->rq[q->rq_posted++] = buf;
}

static void
complete(struct ss_world *w, uint32_t end, const struct ss_cqe *cqe)
{
	struct ss_end *e = &w->end[end];

	e->cq[e->cq_tail++ % SS_OPS] = *cqe;
	if (e->cq_tail - e->cq_head > SS_OPS)
		ss_fail(w, "end %u: the simulation's completion queue is full", end);
}

/* A packet of a Send is placed: the first one with the header, then the rest, then the receive is
 * taken. */
static bool
place_send(struct ss_world *w, uint32_t to, uint32_t path, struct ss_op *op)
{
	struct ss_qp *q = &w->path[path].qp[to], *from = &w->path[path].qp[!to];
	struct ss_end *e = &w->end[to], *peer = &w->end[!to];
	struct ss_req *req = &peer->req[op->seq];
	struct ss_buf *b;

	if (q->rq_taken == q->rq_posted)
		return false; /* receiver not ready */
	b = &e->buf[q->rq[q->rq_taken]];
	if (!op->begun) {
		urn_sess_header_put(&b->wire, &(struct urn_sess_header){
						      .id = req->id,
						      .acked = peer->ack,
						      .conn = to,
						      .length = 8,
						      .epoch = (uint16_t)from->epoch,
						      .op = 128,
					      });
		op->begun = true;
		if (ss_break(w, SS_BREAK_TORN)) {
			q->rq_taken++;
			return true;
		}
		ss_point(w, SS_AT_BEGUN, to, path);
		return false;
	}
	b->payload = req->number;
	req->arrived = true;
	q->rq_taken++;
	return true;
}

/* An atomic in three steps: intent, store, mark. */
static bool
execute_atomic(struct ss_world *w, uint32_t to, uint32_t path, struct ss_op *op)
{
	struct ss_end *e = &w->end[to];

	switch (op->atomic++) {
	case 0:
		e->log_state = 1;
		e->intent_old = e->counter;
		ss_point(w, SS_AT_INTENT, to, path);
		return false;
	case 1:
		e->counter++;
		e->stored++;
		ss_point(w, SS_AT_STORED, to, path);
		return false;
	default:
		e->log_state = 2;
		e->log_old[++e->logged % URN_SESS_ATOMICS] = e->intent_old;
		op->value = e->intent_old;
		ss_point(w, SS_AT_MARKED, to, path);
		return true;
	}
}

static bool
execute(struct ss_world *w, uint32_t to, uint32_t path, struct ss_op *op)
{
	struct ss_end *e = &w->end[to];
	struct ss_req *req = &w->end[!to].req[op->seq];

	if (op->flush) {
		ss_point(w, SS_AT_FLUSHED, to, path);
		return true;
	}
	if (op->kind != URN_SESS_BIND && e->bound != w->path[path].qp[to].epoch)
		ss_fail(w, "end %u: a request of epoch %u, and windows are bound in epoch %u", to,
			w->path[path].qp[to].epoch, e->bound);
	switch (op->kind) {
	case URN_SESS_SEND:
		if (!place_send(w, to, path, op))
			return false;
		ss_point(w, SS_AT_PLACED, to, path);
		return true;
	case URN_SESS_WRITE:
		e->word[req->number % SS_SLOTS] = req->number;
		req->arrived = true;
		ss_point(w, SS_AT_WRITTEN, to, path);
		return true;
	case URN_SESS_READ:
		op->value = e->word[0];
		return true;
	case URN_SESS_ATOMIC:
		return execute_atomic(w, to, path, op);
	default:
		return true;
	}
}

static void
step_send(struct ss_world *w, uint32_t end, uint32_t path)
{
	struct ss_qp *q = &w->path[path].qp[end];

	if (q->sent == q->posted || q->error || !ss_alive(w, end, path) || w->path[path].cut[end])
		return;
	q->sent++;
	ss_point(w, SS_AT_SENT, end, path);
}

/* The peer of `end` executes. Packets in a switch arrive though their sender has died. */
static void
step_execute(struct ss_world *w, uint32_t end, uint32_t path)
{
	struct ss_qp *q = &w->path[path].qp[end], *peer = &w->path[path].qp[!end];

	if (q->executed == q->sent || peer->error || !ss_alive(w, !end, path) ||
	    !ss_joined(w, path))
		return;
	if (execute(w, !end, path, &q->op[q->executed]))
		q->executed++;
}

static void
step_receive(struct ss_world *w, uint32_t end, uint32_t path)
{
	struct ss_qp *q = &w->path[path].qp[end];

	if (q->rq_done == q->rq_taken || !ss_alive(w, end, path) || q->error)
		return;
	complete(w, end,
		 &(struct ss_cqe){
			 .recv = true, .path = path, .epoch = q->epoch, .buf = q->rq[q->rq_done]});
	q->rq_done++;
	ss_point(w, SS_AT_RECEIVED, end, path);
}

static void
step_answer(struct ss_world *w, uint32_t end, uint32_t path)
{
	struct ss_qp *q = &w->path[path].qp[end], *peer = &w->path[path].qp[!end];

	if (q->answered == q->executed || peer->error || !ss_alive(w, !end, path) ||
	    w->path[path].cut[!end] || !ss_joined(w, path))
		return;
	q->answered++;
	ss_point(w, SS_AT_RESPONDED, !end, path);
}

static void
step_complete(struct ss_world *w, uint32_t end, uint32_t path)
{
	struct ss_qp *q = &w->path[path].qp[end];

	if (q->completed == q->answered || q->error || !ss_alive(w, end, path))
		return;
	complete(w, end,
		 &(struct ss_cqe){.path = path, .epoch = q->epoch, .op = q->op[q->completed]});
	q->completed++;
	ss_point(w, SS_AT_COMPLETED, end, path);
}

void
ss_net_step(struct ss_world *w, uint32_t end, uint32_t path, uint32_t which)
{
	static void (*const step[])(struct ss_world *, uint32_t, uint32_t) = {
		step_send, step_execute, step_receive, step_answer, step_complete,
	};

	step[which % 5](w, end, path);
}
