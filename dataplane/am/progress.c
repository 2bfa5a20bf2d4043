/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RMA progress module (AM-5, AM-6): a source of work on the target's lcore. In a turn it takes
 * requests from the RMA queue, and places, sends or answers a few packets of the transfers that
 * have a turn, one packet each. Transfers that find no room for a packet wait for the next reply
 * that is delivered, and hold no other transfer up.
 */
#include "am/tagged.h"
#include "transport/sched.h"

#include <string.h>

#include "memory/copy.h"

/* The outcome of a step. */
enum step {
	STEP_MORE, /* the transfer has more to do */
	STEP_REST, /* it waits for others, or is gone */
	STEP_ROOM, /* no room for a packet now */
};

void
urn_am_progress_sched(struct urn_tp *tp)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	tg->misses = 0;
	tg->user.source.share = &urn_am_of(tp)->replying;
	urn_sched_add(&tp->sched, &tg->user.source);
}

void
urn_am_progress_add(struct urn_tp *tp, struct urn_am_transfer *t)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	if (!t->turn) {
		t->turn = true;
		TAILQ_INSERT_TAIL(&tg->turn, t, link);
		tg->turns++;
	}
	urn_am_progress_sched(tp);
}

void
urn_am_progress_remove(struct urn_am_tagged *tg, struct urn_am_transfer *t)
{
	if (!t->turn)
		return;
	t->turn = false;
	TAILQ_REMOVE(&tg->turn, t, link);
	tg->turns--;
}

/* ---- writes */

URN_FAST void
urn_am_progress_place(struct urn_tp *tp, struct urn_am_transfer *t, uint32_t off, uint32_t len,
		      const uint8_t *data)
{
	struct urn_am_piece piece[URN_AM_PIECES];
	unsigned int n = 0;
	uint8_t code = URN_AM_RANGE;

	t->at = tp->now;
	if (likely(off <= t->len && len <= t->len - off && len <= t->len - t->done))
		code = urn_am_reach(tp, t->ep, t->key, t->addr + off, len, URN_AM_ACCESS_WRITE,
				    piece, &n);
	if (unlikely(code != URN_AM_DONE)) {
		urn_am_transfer_fail(tp, t, code);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		urn_copy(piece[i].at, data, piece[i].len);
		data += piece[i].len;
	}
	URN_COUNT(tp, AM_TAG_DATA);
	t->done += len;
	if (t->done == t->len) {
		t->state = URN_AM_TRANSFER_ENDED;
		urn_am_progress_add(tp, t);
	}
}

/* Place the first packet that came early. */
static enum step
place_early(struct urn_tp *tp, struct urn_am_transfer *t)
{
	struct urn_am_early *e = t->early;
	uint32_t serial = t->serial;

	urn_am_progress_place(tp, t, e->off, e->len, e->data);
	/* A failure has freed the packet, with the others. */
	if (t->serial == serial && t->early == e)
		urn_am_early_put(urn_am_of(tp)->tagged, t);
	return t->early || t->state == URN_AM_TRANSFER_ENDED ? STEP_MORE : STEP_REST;
}

void
urn_am_progress_begin(struct urn_tp *tp, struct urn_am_transfer *t)
{
	if (t->state == URN_AM_TRANSFER_QUEUED)
		urn_am_rma_remove(&urn_am_of(tp)->tagged->queue, t);
	t->state = URN_AM_TRANSFER_OPEN;
	if (t->early || t->kind == URN_AM_K_TAG_READ)
		urn_am_progress_add(tp, t);
}

/* ---- answers */

bool
urn_am_progress_answer(struct urn_tp *tp, struct urn_am_transfer *t)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_msg m = {.kind = t->code ? URN_AM_K_TAG_ERROR : URN_AM_K_TAG_DONE,
			       .code = t->code,
			       .len = t->len ? t->len : 1,
			       .tag = t->tag,
			       .addr = t->kind == URN_AM_K_TAG_READ ? 0 : t->done};
	struct urn_am_out *o = urn_am_reply_get(am, t->node);

	if (unlikely(!o))
		return false;
	o->msg.len = urn_am_build(o->buf, &m);
	o->msg.qid = t->qid;
	o->msg.src_qid = urn_am_number(am, t->ep->slot);
	o->at = tp->now;
	t->due = false;
	t->since = 0;
	if (t->state == URN_AM_TRANSFER_ENDED) {
		if (likely(t->code == URN_AM_DONE))
			urn_am_past_note(am->tagged, t);
		urn_am_transfer_drop(tp, t, t->code != URN_AM_DONE);
	}
	urn_am_reply_send(tp, o);
	return true;
}

/* ---- reads */

/* True when tagged reads may take one more reply for a node of the bucket; half of what is kept for
 * the bucket is left to others. */
static bool
spare(const struct urn_am *am, uint8_t bucket)
{
	return am->node[bucket] < URN_AM_KEEP_REPLIES / 2 ||
	       (am->node[bucket] + URN_AM_BACK_SPARE < URN_AM_NODE_REPLIES &&
		am->replies + am->kept + 4 * URN_AM_BACK_SPARE < URN_AM_REPLIES);
}

/* Check whether peers may read bytes of a transfer; the flow checks again when it gathers them.
 * returns: enum urn_am_code */
static uint8_t
may_read(const struct urn_tp *tp, const struct urn_am_transfer *t, uint64_t addr, uint32_t len)
{
	struct urn_am_piece piece[URN_AM_PIECES];
	unsigned int n = 0;

	return urn_am_reach(tp, t->ep, t->key, addr, len, URN_AM_ACCESS_READ, piece, &n);
}

/* Send the next packet of a read. */
static enum step
send_back(struct urn_tp *tp, struct urn_am_transfer *t)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_msg m = {
		.kind = URN_AM_K_TAG_BACK, .tag = t->tag, .addr = t->sent, .key = t->qid};
	struct urn_am_out *o;
	uint32_t serial = t->serial;
	uint8_t code;

	if (t->sent == t->len || t->outs == URN_AM_BACK_WINDOW)
		return STEP_REST;
	o = spare(am, t->bucket) ? urn_am_reply_get(am, t->node) : NULL;
	if (unlikely(!o))
		return STEP_ROOM;
	m.len = o->len = RTE_MIN(t->len - t->sent, t->chunk);
	code = may_read(tp, t, t->addr + t->sent, o->len);
	if (unlikely(code != URN_AM_DONE)) {
		urn_am_out_put(am, o);
		urn_am_transfer_fail(tp, t, code);
		return STEP_MORE;
	}
	o->msg.len = urn_am_build(o->buf, &m);
	urn_am_out_from(o, URN_AM_FROM_REGION, t->addr + t->sent, t->key);
	o->msg.qid = t->qid;
	o->msg.src_qid = urn_am_number(am, t->ep->slot);
	o->at = tp->now;
	o->flags |= URN_AM_OUT_BACK;
	o->op = (uint16_t)(t - am->tagged->transfer);
	o->off = serial;
	t->at = tp->now;
	t->outs++;
	t->sent += o->len;
	URN_COUNT(tp, AM_TAG_SENT);
	urn_am_reply_send(tp, o);
	return t->serial == serial ? STEP_MORE : STEP_REST;
}

/* A packet of a read can't be delivered. The initiator is told, unless its answer was that it knows
 * nothing of the read. */
static void
give_up(struct urn_tp *tp, struct urn_am_transfer *t, uint8_t code)
{
	URN_COUNT(tp, AM_READ_LOST);
	if (code == URN_MSG_NO_QUEUE || code == URN_MSG_NOT_PERMITTED) {
		urn_am_transfer_drop(tp, t, true);
		return;
	}
	t->state = URN_AM_TRANSFER_ENDED;
	t->code = URN_AM_UNREACHABLE;
	t->at = tp->now;
	urn_am_progress_add(tp, t);
}

bool
urn_am_back_answered(struct urn_tp *tp, const struct urn_am_out *o, uint8_t code)
{
	struct urn_am_transfer *t = &urn_am_of(tp)->tagged->transfer[o->op];

	if (t->serial != o->off || t->state != URN_AM_TRANSFER_OPEN)
		return false;
	if (code == URN_MSG_BUSY)
		return true;
	t->outs--;
	if (unlikely((code & ~URN_MSG_MAY_BE_THERE) == URN_FLOW_GONE)) {
		code = may_read(tp, t, o->addr, o->len);
		urn_am_transfer_fail(tp, t, code ? code : (uint8_t)URN_AM_BAD_KEY);
		return false;
	}
	if (unlikely(code != URN_MSG_DONE)) {
		give_up(tp, t, code & (uint8_t)~URN_MSG_MAY_BE_THERE);
		return false;
	}
	t->at = tp->now;
	t->done += o->len;
	if (t->done == t->len) {
		urn_am_past_note(urn_am_of(tp)->tagged, t);
		urn_am_transfer_drop(tp, t, false);
	} else if (t->sent < t->len)
		urn_am_progress_add(tp, t);
	return false;
}

/* ---- turns */

/* Do one thing for a transfer. */
static enum step
step(struct urn_tp *tp, struct urn_am_transfer *t)
{
	if (t->state == URN_AM_TRANSFER_ENDED || t->due)
		return urn_am_progress_answer(tp, t) ? STEP_REST : STEP_ROOM;
	if (t->early)
		return place_early(tp, t);
	return t->kind == URN_AM_K_TAG_READ ? send_back(tp, t) : STEP_REST;
}

static URN_FAST bool
serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am_tagged *tg = (struct urn_am_tagged *)src;
	struct urn_am_transfer *t;

	urn_am_cancel_retry(tp);
	for (unsigned int n = 0; n < URN_AM_POSTS && (t = urn_am_rma_take(&tg->queue)); n++) {
		t->state = URN_AM_TRANSFER_OPEN; /* the queue has let go of it */
		urn_am_progress_begin(tp, t);
	}
	for (unsigned int n = 0; n < URN_AM_STEPS && tg->misses < tg->turns; n++) {
		uint32_t serial;
		enum step s;

		t = TAILQ_FIRST(&tg->turn);
		serial = t->serial;
		s = step(tp, t);
		tg->misses = s == STEP_ROOM ? tg->misses + 1 : 0;
		if (t->serial != serial)
			continue; /* it is gone, and maybe others with it */
		urn_am_progress_remove(tg, t);
		if (s == STEP_REST)
			continue;
		t->turn = true; /* behind the others */
		TAILQ_INSERT_TAIL(&tg->turn, t, link);
		tg->turns++;
	}
	return tg->queue.writes_n || tg->queue.reads_n || tg->misses < tg->turns;
}

static void
rung(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
}

/* Give up transfers that nothing came for and nothing was taken of; then look at the others later.
 */
static void
due(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am_tagged *tg = (struct urn_am_tagged *)src;

	for (uint32_t i = 0; i < tg->pool.made && tg->n; i++) {
		struct urn_am_transfer *t = &tg->transfer[i];

		if (t->state == URN_AM_TRANSFER_FREE || tp->now - t->at < URN_AM_REPLY_NS)
			continue;
		URN_COUNT(tp, AM_AGED);
		urn_am_transfer_drop(tp, t, true);
	}
	if (!tg->n)
		return;
	urn_wheel_start(&tp->wheel, &tg->timer.timer, tp->now + URN_AM_LOOK_NS);
	urn_am_progress_sched(tp);
}

static bool
end(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
	return true;
}

const struct urn_source_ops urn_am_progress_ops = {
	.rung = rung, .serve = serve, .due = due, .end = end};
