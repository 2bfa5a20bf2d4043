/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come for transfers (AM-4 to AM-7, AM-10). A request is checked and put on the RMA
 * queue; a packet with data is checked again and placed as it comes, in any order. Flows deliver
 * each packet once, so the count of bytes says when all are placed; an initiator that sends bytes
 * twice and others never spoils its own operation alone.
 */
#include "am/tagged.h"

#include <string.h>

#include "memory/copy.h"

/* Answer a packet with an error, without a transfer. returns: enum urn_msg_code */
static uint8_t
refuse(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
       const struct urn_am_msg *m, uint8_t code)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_msg error = {
		.kind = URN_AM_K_TAG_ERROR, .code = code, .len = m->len, .tag = m->tag};
	struct urn_am_out *o = urn_am_reply_get(am, from->node);

	if (!o) {
		URN_COUNT(tp, DROP_AM_BUSY);
		return URN_MSG_BUSY;
	}
	urn_am_refused(tp, ep, code);
	o->msg.len = urn_am_build(o->buf, &error);
	o->msg.qid = from->qid;
	o->msg.src_qid = urn_am_number(am, ep->slot);
	o->at = tp->now;
	urn_am_reply_send(tp, o);
	return URN_MSG_DONE;
}

/* A request for a tagged transfer. */
static uint8_t
request(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
	const struct urn_am_msg *m, struct urn_am_transfer *t)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;
	uint8_t code;

	if (t ? t->state != URN_AM_TRANSFER_EARLY : urn_am_is_past(tg, from, m->tag))
		return refuse(tp, ep, from, m, URN_AM_TAG_USED);
	if (!t && urn_am_is_retired(tg, from->node, from->qid, m->tag, false))
		return refuse(tp, ep, from, m, URN_AM_TAG_RETIRED);
	if (!urn_am_rma_room(&tg->queue, m->kind)) {
		URN_COUNT(tp, DROP_AM_QUEUE);
		return URN_MSG_BUSY;
	}
	t = t ? t : urn_am_transfer_new(tp, ep, from, m->tag);
	if (!t) {
		URN_COUNT(tp, DROP_AM_TRANSFER);
		return URN_MSG_BUSY;
	}
	t->kind = m->kind;
	t->addr = m->addr;
	t->key = m->key;
	t->len = m->len;
	t->at = tp->now;
	if (m->kind == URN_AM_K_TAG_READ)
		t->chunk = (uint16_t)urn_am_chunk_to(tp, from->node, from->qid, 0);
	code = urn_am_covers(ep, m->key, m->addr, m->len,
			     m->kind == URN_AM_K_TAG_READ ? URN_AM_ACCESS_READ
							  : URN_AM_ACCESS_WRITE);
	if (code == URN_AM_DONE && t->early && m->kind == URN_AM_K_TAG_READ)
		code = URN_AM_BAD_PACKET; /* data came early for a read */
	if (code != URN_AM_DONE) {
		urn_am_transfer_fail(tp, t, code);
		return URN_MSG_DONE;
	}
	URN_COUNT(tp, AM_TAG_REQUESTS);
	t->state = URN_AM_TRANSFER_QUEUED;
	urn_am_rma_put(&tg->queue, t);
	urn_am_progress_sched(tp);
	return URN_MSG_DONE;
}

/* Keep data until its request comes. t: NULL: none is kept yet */
static uint8_t
early(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
      const struct urn_am_msg *m, struct urn_am_transfer *t)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;
	struct urn_am_transfer *made = NULL;

	if (!t)
		t = made = urn_am_transfer_new(tp, ep, from, m->tag);
	if (t && urn_am_early_keep(tg, t, m)) {
		t->at = tp->now;
		URN_COUNT(tp, AM_EARLY);
		return URN_MSG_DONE;
	}
	if (made)
		urn_am_transfer_drop(tp, made, false);
	URN_COUNT(tp, DROP_AM_EARLY);
	return URN_MSG_BUSY;
}

/* Data of a tagged write. */
static uint8_t
data(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
     const struct urn_am_msg *m, struct urn_am_transfer *t)
{
	bool mine = m->key == urn_am_number(urn_am_of(tp), ep->slot); /* AM-10 */

	if (likely(t && t->state == URN_AM_TRANSFER_OPEN && t->kind == URN_AM_K_TAG_WRITE &&
		   mine)) {
		urn_am_progress_place(tp, t, (uint32_t)m->addr, m->len, m->data);
		return URN_MSG_DONE;
	}
	if (t ? t->state == URN_AM_TRANSFER_ENDED
	      : urn_am_is_retired(urn_am_of(tp)->tagged, from->node, from->qid, m->tag, false)) {
		URN_COUNT(tp, AM_DISCARDED);
		return URN_MSG_DONE;
	}
	if (!mine && t) {
		urn_am_transfer_fail(tp, t, URN_AM_ADDRESSEE);
		return URN_MSG_DONE;
	}
	if (!mine)
		return refuse(tp, ep, from, m, URN_AM_ADDRESSEE);
	if (!t && urn_am_is_past(urn_am_of(tp)->tagged, from, m->tag))
		return refuse(tp, ep, from, m, URN_AM_TAG_USED);
	if (!t || t->state == URN_AM_TRANSFER_EARLY)
		return early(tp, ep, from, m, t);
	if (t->kind != URN_AM_K_TAG_WRITE) { /* data for a read, or for a pipelined write */
		urn_am_transfer_fail(tp, t, URN_AM_BAD_PACKET);
		return URN_MSG_DONE;
	}
	/* The request is on the queue: it has its turn now, and the bytes need no buffer. */
	urn_am_progress_begin(tp, t);
	urn_am_progress_place(tp, t, (uint32_t)m->addr, m->len, m->data);
	return URN_MSG_DONE;
}

/* Place a packet of a pipelined write, with its own address and key. returns: enum urn_am_code */
static uint8_t
place_part(struct urn_tp *tp, struct urn_am_transfer *t, const struct urn_am_msg *m)
{
	struct urn_am_piece piece[URN_AM_PIECES];
	const uint8_t *from = m->data;
	unsigned int n = 0;
	uint8_t code;

	if (t->kind != URN_AM_K_PART || m->total != t->len || m->every != t->every ||
	    m->len > t->len - t->done)
		return URN_AM_BAD_PACKET;
	code = urn_am_reach(tp, t->ep, m->key, m->addr, m->len, URN_AM_ACCESS_WRITE, piece, &n);
	if (code != URN_AM_DONE)
		return code;
	for (unsigned int i = 0; i < n; i++) {
		urn_copy(piece[i].at, from, piece[i].len);
		from += piece[i].len;
	}
	URN_COUNT(tp, AM_WRITES_RX);
	return URN_AM_DONE;
}

/* A packet of a pipelined write with one reply for several packets (AM-4). */
static uint8_t
part(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
     const struct urn_am_msg *m, struct urn_am_transfer *t)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;
	uint8_t code;

	if (t ? t->state == URN_AM_TRANSFER_ENDED
	      : urn_am_is_retired(tg, from->node, from->qid, m->tag, false)) {
		URN_COUNT(tp, AM_DISCARDED);
		return URN_MSG_DONE;
	}
	if (!t && urn_am_is_past(tg, from, m->tag))
		return refuse(tp, ep, from, m, URN_AM_TAG_USED);
	if (!t) {
		t = urn_am_transfer_new(tp, ep, from, m->tag);
		if (!t) {
			URN_COUNT(tp, DROP_AM_TRANSFER);
			return URN_MSG_BUSY;
		}
		t->kind = URN_AM_K_PART;
		t->state = URN_AM_TRANSFER_OPEN;
		t->len = m->total;
		t->every = m->every;
	}
	t->at = tp->now;
	code = place_part(tp, t, m);
	if (unlikely(code != URN_AM_DONE)) {
		t->len = t->len ? t->len : m->total;
		urn_am_transfer_fail(tp, t, code);
		return URN_MSG_DONE;
	}
	t->done += m->len;
	t->since++;
	if (t->done == t->len)
		t->state = URN_AM_TRANSFER_ENDED;
	else if (t->every == URN_AM_EVERY_TRANSFER || t->since < t->every)
		return URN_MSG_DONE;
	t->due = true;
	if (unlikely(!urn_am_progress_answer(tp, t)))
		urn_am_progress_add(tp, t);
	return URN_MSG_DONE;
}

/* The initiator gave an operation up: data under way is discarded. */
static uint8_t
cancel(struct urn_tp *tp, const struct urn_flow_from *from, const struct urn_am_msg *m,
       struct urn_am_transfer *t)
{
	if (t)
		urn_am_transfer_drop(tp, t, true);
	else
		urn_am_retire(urn_am_of(tp)->tagged, from->node, from->qid, m->tag, false);
	return URN_MSG_DONE;
}

URN_FAST uint8_t
urn_am_take_tagged(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		   const struct urn_am_msg *m)
{
	struct urn_am_transfer *t = urn_am_transfer_find(urn_am_of(tp)->tagged, ep, from, m->tag);

	switch (m->kind) {
	case URN_AM_K_TAG_DATA:
		return data(tp, ep, from, m, t);
	case URN_AM_K_PART:
		return part(tp, ep, from, m, t);
	case URN_AM_K_TAG_CANCEL:
		return cancel(tp, from, m, t);
	default:
		return request(tp, ep, from, m, t);
	}
}
