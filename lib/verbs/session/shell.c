/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine's actions. FENCE, DRAIN and BIND_ALL are noted, and answered by the thread. */
#include "abi/queue.h"
#include "verbs/front.h"
#include "verbs/session/atomic.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <errno.h>

/* ---- actions that are carried out at once */

static enum ibv_wc_status
urn_sv_status(struct urn_sv_qp *q, enum urn_sess_status status)
{
	bool first = !q->failed_one;

	if (status == URN_SESS_OK)
		return IBV_WC_SUCCESS;
	q->failed_one = true;
	if (status == URN_SESS_GENUINE)
		return q->genuine;
	if (status == URN_SESS_UNKNOWN)
		return IBV_WC_GENERAL_ERR;
	/* The first failure has the reason, like one of a queue pair whose peer does not answer. */
	return first && (q->c.reason == URN_SESS_NO_PATH || q->c.reason == URN_SESS_PEER_DEAD ||
			 q->left)
		       ? IBV_WC_RETRY_EXC_ERR
		       : IBV_WC_WR_FLUSH_ERR;
}

static void
urn_sv_complete(struct urn_sv_qp *q, const struct urn_sess_action *a)
{
	const struct urn_sv_swr *s = &q->swr[a->seq & (q->wrs - 1)];
	enum urn_sess_status status =
		a->status != URN_SESS_OK && q->half != URN_SESS_OK ? q->half : a->status;
	struct ibv_wc wc = {.wr_id = s->wr_id,
			    .opcode = s->told,
			    .byte_len = s->length,
			    .qp_num = q->ibv.qp_num};

	if (!urn_sv_send_result(q, a))
		wc.status = IBV_WC_LOC_PROT_ERR;
	/* The second half of a write with immediate data tells the program of both. */
	q->half = s->silent ? status : URN_SESS_OK;
	if (s->silent)
		return;
	if (status != URN_SESS_OK || wc.status == IBV_WC_SUCCESS)
		wc.status = urn_sv_status(q, status);
	if (status == URN_SESS_UNKNOWN)
		wc.vendor_err = URN_VE_UNKNOWN;
	else if (status == URN_SESS_GENUINE)
		wc.vendor_err = q->notes.vendor_err;
	if (!s->signaled && wc.status == IBV_WC_SUCCESS)
		q->send_held--;
	else
		urn_sv_push((struct urn_sv_cq *)q->ibv.send_cq, &wc, q, true, false);
}

static void
urn_sv_tell_peer(struct urn_sv_qp *q, const struct urn_sess_action *a)
{
	uint8_t bytes[URN_SESS_WIRE_MAX];
	bool whole = a->act == URN_SESS_TELL;
	uint32_t n = whole ? urn_sess_wire_report(bytes, q->peer.number, a->message)
			   : urn_sess_wire_migrated(bytes, q->peer.number, a->epoch);

	urn_sv_log_message(q, "tell", whole ? URN_SESS_WIRE_REPORT : URN_SESS_WIRE_MIGRATED,
			   whole ? a->message : &(struct urn_sess_report){.epoch = a->epoch});
	urn_sv_control_send(q, bytes, n);
}

static void
urn_sv_note(struct urn_sv_qp *q, uint32_t todo, const struct urn_sess_action *a)
{
	q->todo =
		(q->todo & ~(uint32_t)(URN_SV_TO_FENCE | URN_SV_TO_DRAIN | URN_SV_TO_BIND)) | todo;
	q->todo_epoch = a->epoch;
	urn_sv_kick(q->ctx);
}

/* The path is left: nothing more goes there. */
static void
urn_sv_quit(struct urn_sv_qp *q)
{
	q->recv_live = q->holds = q->full = false;
	q->unflushed = q->flushes = 0;
	q->unflushed_bytes = 0;
	q->todo &= ~(uint32_t)URN_SV_TO_AWAY;
	for (uint64_t seq = q->c.head; seq != q->c.tail; seq++)
		q->swr[seq & (q->wrs - 1)].go = false;
}

static void
urn_sv_receive_rebuilt(struct urn_sv_qp *q, const struct urn_sess_action *a)
{
	if (q->srq != NULL)
		urn_sv_srq_done(q, a->index, a->header);
	else
		urn_sv_recv_done(q, a->index, a->header);
}

static void
urn_sv_receive_again(struct urn_sv_qp *q, const struct urn_sess_action *a)
{
	if (q->srq != NULL)
		urn_sv_srq_back(q->srq, a->index);
	else
		urn_sv_recv_go(q, a->index);
}

void
urn_sv_act(void *arg, const struct urn_sess_action *a)
{
	struct urn_sv_qp *q = arg;

	switch (a->act) {
	case URN_SESS_FENCE:
		urn_sv_quit(q);
		urn_sv_note(q, URN_SV_TO_FENCE, a);
		break;
	case URN_SESS_DRAIN:
		urn_sv_note(q, URN_SV_TO_DRAIN, a);
		break;
	case URN_SESS_BIND_ALL:
		q->bound = false;
		urn_sv_note(q, URN_SV_TO_BIND, a);
		break;
	case URN_SESS_REBUILD:
		urn_sv_receive_rebuilt(q, a);
		break;
	case URN_SESS_RECEIVE:
		urn_sv_receive_again(q, a);
		break;
	case URN_SESS_POST:
		urn_sv_send_go(q, a->seq);
		break;
	case URN_SESS_COMPLETE:
		urn_sv_complete(q, a);
		break;
	case URN_SESS_TELL:
	case URN_SESS_READY:
		urn_sv_tell_peer(q, a);
		break;
	case URN_SESS_WAKE:
		q->ctx->wake = true;
		urn_sv_kick(q->ctx);
		break;
	case URN_SESS_FLUSH: /* urn_sv_after() sees to all receives at once */
		break;
	case URN_SESS_DIED:
		urn_sv_quit(q);
		q->c.reason = a->reason;
		q->notes.died_at = urn_sv_now_ms();
		break;
	}
}

/*
 * The peer has left, and a migration waits for it: LEAVE stands in for its REPORT, and says that
 * the end is dead. Before the drain is over nothing is waited for.
 */
static void
urn_sv_orphan(struct urn_sv_qp *q)
{
	struct urn_sess_report r = q->last;

	if (urn_sv_flows(q) || q->c.state == URN_SESS_SLEEPING || q->c.state == URN_SESS_DRAINING)
		return;
	r.epoch = q->c.epoch;
	r.flags = URN_SESS_R_DEAD;
	if (q->c.state == URN_SESS_REPORTED)
		urn_sess_report(&q->c, &r);
	q->keeps = true;
	urn_sess_quit(&q->c);
}

/* True when requests wait for keys of a peer that has left, and that nobody can read any more. */
static bool
urn_sv_waits_in_vain(const struct urn_sv_qp *q)
{
	return q->left && q->holds && q->reading == 0 && !(q->todo & URN_SV_TO_KEYS) &&
	       urn_sv_flows(q);
}

void
urn_sv_after(struct urn_sv_qp *q)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	if (urn_sv_waits_in_vain(q))
		urn_sv_send_again(q); /* the requests fail like those with a known key */
	urn_sv_send_more(q);
	urn_sv_flush(q);
	if (q->left && q->c.state != URN_SESS_DEAD)
		urn_sv_orphan(q);
	if (q->c.state != URN_SESS_DEAD || q->ended)
		return;
	q->ended = true;
	q->todo = 0;
	if (q->c.reason != URN_SESS_NO_REQUEST) /* which the program knows of */
		urn_sv_ends_over(q);
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].real != NULL)
			(void)ibv_modify_qp(q->path[i].real, &err, IBV_QP_STATE);
	urn_sv_srq_dead(q);
	/* Receives of a queue pair whose peer has left stay, as on any adapter. */
	q->keeps |= q->c.reason == URN_SESS_PEER_DEAD;
	if (!q->keeps)
		urn_sv_recv_flush(q);
}

void
urn_sv_down(struct urn_sv_qp *q, uint32_t bit)
{
	bool was = (q->c.alive & 1u << bit) != 0;

	urn_sv_note_lost(q, bit);
	urn_sv_log_down(q, bit);
	urn_sv_srq_shun(q);
	/* Nobody answers a REPORT any more. */
	if (q->left && urn_sv_flows(q) && bit == q->c.path) {
		q->keeps = true;
		urn_sess_quit(&q->c);
	} else {
		urn_sess_down(&q->c, bit);
	}
	q->why = NULL;
	if (was)
		urn_sv_heal_lost(urn_sv_at(q, bit));
	urn_sv_after(q);
}

void
urn_sv_lost(struct urn_sv_qp *q, uint32_t adapter)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].mine == adapter) {
			q->why = adapter == 0 ? "the primary adapter is gone"
					      : "the backup adapter is gone";
			urn_sv_down(q, urn_sv_bit(q, i));
		}
	if (q->unfenced && q->c.state == URN_SESS_SLEEPING && urn_sv_used(q)->mine == adapter)
		q->todo |= URN_SV_TO_FENCE;
}

void
urn_sv_kill(struct urn_sv_qp *q)
{
	urn_sess_quit(&q->c);
	urn_sv_after(q);
}

/* ---- answers to the machine, by the thread */

/* FO-16: nothing can be placed through the queue pair in use any more. */
static void
urn_sv_fence(struct urn_sv_qp *q)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	const struct urn_sv_path *p = urn_sv_used(q);
	bool dead = q->ctx->dead[p->mine];

	/* A dataplane that is gone places nothing; a living one has ended its memory operations
	 * when it answers. If it does not answer, its queues stand still once it counts as lost. */
	q->unfenced = !dead && ibv_modify_qp(p->real, &err, IBV_QP_STATE) == EIO;
	if (!q->unfenced)
		urn_sess_fenced(&q->c, q->todo_epoch);
}

/* Take the last completions, then tell of the receives without one (FO-11, FO-14). */
static void
urn_sv_drain(struct urn_sv_qp *q)
{
	uint32_t adapter = urn_sv_used(q)->mine;
	struct urn_sess_record record;
	struct urn_sess_header h;
	uint64_t before;

	do {
		before = q->c.received;
		urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, adapter);
		urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.send_cq, adapter);
	} while (before != q->c.received);
	if (q->srq != NULL)
		urn_sv_srq_found(q);
	for (uint32_t i = q->recv_head; i != q->recv_posted; i++)
		(void)urn_sess_found(&q->c, i, urn_sv_recv_header(q, i, &h) ? &h : NULL);
	urn_sv_record(q, &record);
	urn_sv_srq_shun(q);
	urn_sess_drained(&q->c, q->todo_epoch, &record);
}

void
urn_sv_rebound(struct urn_sv_qp *q)
{
	q->bound = false;
	urn_sess_rebound(&q->c, q->todo_epoch);
	if (q->c.open)
		urn_sv_recv_rest(q);
	urn_sv_after(q);
}

/* The peer's keys are missing on the new path; windows do not exist. */
static void
urn_sv_bind(struct urn_sv_qp *q)
{
	q->reading = q->c.next + 1;
	if (!urn_sv_control_keys(urn_sv_at(q, q->c.next))) {
		q->reading = 0;
		q->why = "the peer's keys can't be read over the path";
		urn_sv_note_lost(q, q->c.next);
		urn_sv_log_down(q, q->c.next);
		urn_sess_down(&q->c, q->c.next);
		q->why = NULL;
	}
}

static void
urn_sv_keys_again(struct urn_sv_qp *q)
{
	if (q->reading != 0 || !q->holds || !urn_sv_flows(q))
		return;
	q->reading = q->c.path + 1;
	if (!urn_sv_control_keys(urn_sv_used(q)))
		q->reading = 0;
}

static void
urn_sv_away(struct urn_sv_qp *q)
{
	q->why = "its queue pair takes no more requests";
	urn_sv_down(q, q->c.path);
}

/* Do one thing. */
static void
urn_sv_step(struct urn_sv_qp *q)
{
	uint32_t todo = q->todo & -q->todo;

	q->todo &= ~todo;
	if (todo == URN_SV_TO_FENCE)
		urn_sv_fence(q);
	else if (todo == URN_SV_TO_DRAIN)
		urn_sv_drain(q);
	else if (todo == URN_SV_TO_BIND)
		urn_sv_bind(q);
	else if (todo == URN_SV_TO_AWAY && q->c.open)
		urn_sv_away(q);
	else
		urn_sv_keys_again(q);
	urn_sv_after(q);
}

void
urn_sv_settle(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	urn_sv_last_settle(ctx);
	LIST_FOREACH(q, &ctx->qps, link)
		while (q->mode == URN_SV_SESSION && q->todo != 0)
			urn_sv_step(q);
	urn_sv_srq_settle(ctx);
	if (!ctx->wake)
		return;
	ctx->wake = false;
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION)
			urn_sess_resume(&q->c);
}
