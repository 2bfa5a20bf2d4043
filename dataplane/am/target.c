/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's handlers (AM-2, AM-3, AM-9, AM-11). A peer's packet is checked, carried out and
 * answered in the call that delivers the packet, on the engine's lcore: bytes move between the
 * packet and mapped memory, at most URN_AM_CHUNK_MAX. The reply is taken first: a packet for whose
 * reply there is no room is refused, and its initiator sends it again later.
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

/* Carry a packet out, or not. reply: kind and code are set; data: room for bytes that were
 * read, at least 8 */
static void
carry_out(struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_am_msg *m,
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
		URN_COUNT(tp, AM_ACCESS);
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
		gather(piece, n, data);
		URN_COUNT(tp, AM_READS_RX);
		reply->kind = URN_AM_K_READ_REPLY;
	}
}

/* Let the replies that wait have a turn. */
static void
sched_late(struct urn_tp *tp, struct urn_am *am)
{
	am->user.source.share = &tp->nobodys; /* a flow's, too */
	urn_sched_add(&tp->sched, &am->user.source);
}

/* A reply can't be delivered. */
static void
lose(struct urn_tp *tp, struct urn_am_out *o)
{
	URN_COUNT(tp, AM_REPLY_LOST);
	if (o->flags & URN_AM_OUT_BACK)
		(void)urn_am_back_answered(tp, o, URN_MSG_UNREACHABLE);
	urn_am_out_put(urn_am_of(tp), o);
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
		sched_late(tp, am);
		return;
	}
	lose(tp, o);
}

uint8_t
urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		    const struct urn_am_msg *m)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_msg reply = {.len = m->len, .tag = m->tag};
	struct urn_am_out *o = urn_am_reply_get(am, from->node);

	if (unlikely(!o)) {
		URN_COUNT(tp, DROP_AM_BUSY);
		return URN_MSG_BUSY;
	}
	carry_out(tp, ep, m, &reply, o->buf + sizeof(struct urn_am_hdr));
	o->msg.len = urn_am_build(o->buf, &reply);
	o->msg.qid = from->qid;
	o->msg.src_qid = urn_am_number(am, ep->slot);
	o->at = tp->now;
	urn_am_reply_send(tp, o);
	return URN_MSG_DONE;
}

/*
 * True when the reply is to be sent once more: the initiator has no room to put the parts of a long
 * reply together, or the flow was made for an earlier life of the initiator's node. A reply that
 * comes twice is refused there. code: enum urn_msg_code
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
	struct urn_am *am = urn_am_of(tp);

	o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	if (is_tried_again(tp, o, code) &&
	    (!(o->flags & URN_AM_OUT_BACK) || urn_am_back_answered(tp, o, URN_MSG_BUSY))) {
		urn_am_reply_send(tp, o);
	} else if (likely(code == URN_MSG_DONE)) {
		if (o->flags & URN_AM_OUT_BACK)
			(void)urn_am_back_answered(tp, o, code);
		urn_am_out_put(am, o);
	} else {
		lose(tp, o);
	}
	if (am->tagged->turns) /* transfers may wait for room for a reply */
		urn_am_progress_sched(tp);
}

/* ---- replies that wait for room in a flow */

static bool
serve_late(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am *am = (struct urn_am *)src;
	struct urn_am_out *last = TAILQ_LAST(&am->late, urn_am_outs), *o;

	while ((o = TAILQ_FIRST(&am->late))) {
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
