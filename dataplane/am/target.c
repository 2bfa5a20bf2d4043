/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's handlers (AM-2, AM-3, AM-9, AM-11). A peer's packet is checked, carried out and
 * answered in the call that delivers the packet, on the engine's lcore: bytes move from the packet
 * to mapped memory, at most URN_AM_CHUNK_MAX. A read's bytes move when the flow makes the reply's
 * packet, after one more check. The reply is taken first: a packet for whose reply there is no room
 * is refused, and its initiator sends it again later.
 */
#include "am/tagged.h"
#include "transport/sched.h"

#include <string.h>

#include "memory/copy.h"

/* Copy a packet's data to memory. */
static void
place(const struct urn_am_piece *piece, unsigned int n, const uint8_t *data)
{
	for (unsigned int i = 0; i < n; i++) {
		urn_copy(piece[i].at, data, piece[i].len);
		data += piece[i].len;
	}
}

/* Copy memory to a packet. */
static void
gather(const struct urn_am_piece *piece, unsigned int n, uint8_t *data)
{
	for (unsigned int i = 0; i < n; i++) {
		urn_copy(data, piece[i].at, piece[i].len);
		data += piece[i].len;
	}
}

/* True when so many bytes are copied to the packet at once: that costs less than a second check. */
static bool
is_short(uint32_t len)
{
	return len <= URN_AM_HEAD_MAX - sizeof(struct urn_am_hdr);
}

/* Carry a packet out, or not. reply: kind and code are set; data: room for bytes of a short read,
 * or of an atomic operation's reply; the flow gathers those of other reads, which are checked again
 * then */
static void
carry_out(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_am_msg *m,
	  struct urn_am_msg *reply, uint8_t *data)
{
	bool write = m->kind == URN_AM_K_WRITE, atomic = m->kind == URN_AM_K_ATOMIC;
	struct urn_am_piece piece[URN_AM_PIECES];
	unsigned int n = 0;
	uint64_t old = 0;
	uint8_t code =
		atomic ? urn_am_atomic_take(tp, ep, m, &old)
		       : urn_am_reach(tp, ep, m->key, m->addr, m->len,
				      write ? URN_AM_ACCESS_WRITE : URN_AM_ACCESS_READ, piece, &n);

	if (unlikely(code != URN_AM_DONE)) {
		urn_am_refused(tp, ep, code);
		reply->kind = URN_AM_K_ERROR;
		reply->code = code;
	} else if (atomic) {
		urn_am_put_old(data, old);
		URN_COUNT(tp, AM_ATOMICS_RX);
		reply->kind = URN_AM_K_ATOMIC_REPLY;
	} else if (write) {
		place(piece, n, m->data);
		URN_COUNT(tp, AM_WRITES_RX);
		reply->kind = URN_AM_K_WRITE_REPLY;
	} else {
		if (data && is_short(m->len))
			gather(piece, n, data);
		URN_COUNT(tp, AM_READS_RX);
		reply->kind = URN_AM_K_READ_REPLY;
	}
}

/* A reply is free: transfers and cancels may wait for its room. */
static void
free_reply(struct urn_tp *tp, struct urn_am_out *o)
{
	const struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	urn_am_out_put(urn_am_of(tp), o);
	if (tg->turns || tg->cancels)
		urn_am_progress_sched(tp);
}

/* A reply can't be delivered. code: enum urn_msg_code, not DONE, or URN_FLOW_GONE */
static void
lose(struct urn_tp *tp, struct urn_am_out *o, uint8_t code)
{
	URN_COUNT(tp, AM_REPLY_LOST);
	if (o->flags & URN_AM_OUT_BACK) /* BUSY for 10 s, too */
		(void)urn_am_back_answered(tp, o,
					   code == URN_MSG_BUSY ? URN_MSG_UNREACHABLE : code);
	free_reply(tp, o);
}

void
urn_am_reply_send(struct urn_tp *tp, struct urn_am_out *o)
{
	struct urn_am *am = urn_am_of(tp);
	uint8_t code = urn_am_out_send(tp, o);

	if (likely(code == URN_MSG_PENDING))
		return;
	if (code == URN_MSG_BUSY && tp->now - o->at < URN_AM_REPLY_NS) {
		o->flags |= URN_AM_OUT_QUEUED;
		TAILQ_INSERT_TAIL(&am->late, o, link);
		urn_sched_add(&tp->sched, &am->user.source);
		return;
	}
	lose(tp, o, URN_MSG_UNREACHABLE);
}

URN_FAST uint8_t
urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		    const struct urn_am_msg *m)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_msg reply = {.len = m->len, .tag = m->tag};
	bool joins = urn_am_reply_joins(am, ep, from, m);
	struct urn_am_out *o = joins ? NULL : urn_am_reply_get(am, from->node);

	if (likely(o || joins))
		carry_out(tp, ep, m, &reply, joins ? NULL : o->buf + sizeof(struct urn_am_hdr));
	if (joins && likely(reply.kind == URN_AM_K_WRITE_REPLY)) {
		urn_am_reply_join(am, m->tag);
		return URN_MSG_DONE;
	}
	if (unlikely(joins)) /* nothing was done */
		o = urn_am_reply_get(am, from->node);
	if (unlikely(!o)) {
		URN_COUNT(tp, DROP_AM_BUSY);
		return URN_MSG_BUSY;
	}
	o->len = m->len;
	o->msg.len = urn_am_build(o->buf, &reply);
	if (reply.kind == URN_AM_K_READ_REPLY && !is_short(m->len))
		urn_am_out_from(o, URN_AM_FROM_REGION, m->addr, m->key);
	else if (reply.kind == URN_AM_K_WRITE_REPLY)
		am->open = o;
	o->msg.qid = from->qid;
	o->msg.src_qid = urn_am_number(am, ep->slot);
	o->at = tp->now;
	urn_am_reply_send(tp, o);
	return URN_MSG_DONE;
}

/*
 * The bytes of a reply may not be read any more: their region was removed, or the memory below it,
 * or the endpoint ended. Send an access error message instead. If a packet with the bytes came, the
 * initiator's operation has ended, and the message finds none.
 */
static void
refuse_late(struct urn_tp *tp, struct urn_am_out *o)
{
	struct urn_am_ep *ep = urn_am_find(urn_am_of(tp), o->msg.src_qid);
	struct urn_am_hdr *h = (struct urn_am_hdr *)o->buf;
	struct urn_am_piece piece[URN_AM_PIECES];
	unsigned int n;
	uint8_t code =
		ep ? urn_am_reach(tp, ep, o->key, o->addr, o->len, URN_AM_ACCESS_READ, piece, &n)
		   : (uint8_t)URN_AM_NO_ENDPOINT;

	h->kind = URN_AM_K_ERROR;
	h->code = code ? code : (uint8_t)URN_AM_BAD_KEY;
	urn_am_refused(tp, ep, h->code);
	o->from = URN_AM_FROM_HEAD;
	o->msg.head = 0;
	o->msg.len = sizeof(*h);
	urn_am_reply_send(tp, o);
}

/*
 * True when the reply is to be sent once more: the initiator has no room to put the parts of a long
 * reply together, or the flow was made for an earlier life of the initiator's node. A reply that
 * comes twice is refused there. Data of a tagged read, which is counted, can't come twice: packets
 * of that flow named the start of the earlier life, or none, which a young node does not take.
 * code: enum urn_msg_code
 */
static bool
is_tried_again(const struct urn_tp *tp, const struct urn_am_out *o, uint8_t code)
{
	uint8_t kind = code & (uint8_t)~URN_MSG_MAY_BE_THERE;

	return (kind == URN_MSG_BUSY || kind == URN_MSG_RESTARTED) &&
	       tp->now - o->at < URN_AM_REPLY_NS;
}

void
urn_am_reply_answered(struct urn_tp *tp, struct urn_am_out *o, uint8_t code)
{
	o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	if (is_tried_again(tp, o, code) &&
	    (!(o->flags & URN_AM_OUT_BACK) || urn_am_back_answered(tp, o, URN_MSG_BUSY))) {
		urn_am_reply_send(tp, o);
	} else if (likely(code == URN_MSG_DONE)) {
		if (o->flags & URN_AM_OUT_BACK)
			(void)urn_am_back_answered(tp, o, code);
		free_reply(tp, o);
	} else if ((code & ~URN_MSG_MAY_BE_THERE) == URN_FLOW_GONE &&
		   !(o->flags & URN_AM_OUT_BACK)) {
		refuse_late(tp, o);
	} else {
		lose(tp, o, code);
	}
}

/* ---- replies that wait for room in a flow */

static bool
serve_late(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am *am = (struct urn_am *)src;
	struct urn_am_out *last = TAILQ_LAST(&am->late, urn_am_outs), *o;

	for (unsigned int n = URN_AM_LATE_STEPS; n && (o = TAILQ_FIRST(&am->late)); n--) {
		TAILQ_REMOVE(&am->late, o, link);
		o->flags &= (uint8_t)~URN_AM_OUT_QUEUED;
		urn_am_reply_send(tp, o);
		if (o == last)
			break;
	}
	return !TAILQ_EMPTY(&am->late);
}

static void
rung(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
}

static bool
end(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
	return true;
}

const struct urn_source_ops urn_am_late_ops = {.rung = rung, .serve = serve_late, .end = end};
