/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference model: verdicts on completions. */
#include "model_priv.h"

#include "abi/queue.h"

/* Opcode of each operation's completion. */
static const uint8_t wc_opcode[MODEL_OPS] = {
	[MODEL_SEND] = URN_WCO_SEND,	   [MODEL_SEND_IMM] = URN_WCO_SEND,
	[MODEL_SEND_INV] = URN_WCO_SEND,   [MODEL_WRITE] = URN_WCO_RDMA_WRITE,
	[MODEL_WRITE_IMM] = URN_WCO_RDMA_WRITE, [MODEL_READ] = URN_WCO_RDMA_READ,
	[MODEL_CMP_SWAP] = URN_WCO_COMP_SWAP, [MODEL_FETCH_ADD] = URN_WCO_FETCH_ADD,
	[MODEL_COUNT] = URN_WCO_FETCH_ADD, [MODEL_BIND] = URN_WCO_BIND_MW,
	[MODEL_LOCAL_INV] = URN_WCO_LOCAL_INV,
};

/* ---- reasons */

static bool
shaky(const struct model *m, int key)
{
	return key != MODEL_NO_KEY && (m->key[key].dead || m->key[key].doubt);
}

/* The receive that a message takes, when it is known; NULL: not posted, or shared. */
static const struct mrecv *
recv_of(const struct mqp *peer, const struct mreq *w)
{
	return peer->srq < 0 && w->msg < peer->rq.n ? &peer->rq.recv[w->msg] : NULL;
}

/*
 * True when w is a READ whose key a later message invalidates: without a fence between
 * them the bytes may be read after the invalidation.
 */
static bool
read_too_late(const struct model *m, const struct mqp *q, const struct mreq *w)
{
	const struct mkey *k = w->r.rkey == MODEL_NO_KEY ? NULL : &m->key[w->r.rkey];

	if (w->r.op != MODEL_READ || !k || k->inv_qp != q - m->qp)
		return false;
	for (uint32_t i = (uint32_t)(w - q->req) + 1; i <= k->inv_at; i++)
		if (q->req[i].r.fence)
			return false;
	return true;
}

/* Reasons for which the peer may refuse a request. */
static unsigned int
peer_refuses(struct model *m, struct mqp *q, const struct mreq *w)
{
	const struct mqp *peer = model_peer(m, q);
	const struct mrecv *recv = model_takes_recv(&w->r) ? recv_of(peer, w) : NULL;
	unsigned int why = w->must & ~(unsigned int)(MODEL_WHY_LOCAL | MODEL_WHY_BIND);

	if (w->r.op >= MODEL_BIND)
		return 0;
	if (shaky(m, w->r.rkey) || read_too_late(m, q, w))
		why |= MODEL_WHY_REMOTE;
	if (recv && w->r.op != MODEL_WRITE_IMM && recv->len < w->r.len)
		why |= MODEL_WHY_SHORT;
	if (recv && w->r.op != MODEL_WRITE_IMM && (recv->lkey == MODEL_NO_KEY || shaky(m, recv->lkey)))
		why |= MODEL_WHY_PEER;
	if (peer->deaf_receives && model_takes_recv(&w->r))
		why |= MODEL_WHY_PEER;
	/* The receive that a message takes of a shared queue is not known. */
	if (peer->srq >= 0 && m->srq[peer->srq].wrong && w->r.op <= MODEL_SEND_INV)
		why |= MODEL_WHY_PEER;
	if (m->node[peer->node].fails)
		why |= MODEL_WHY_PEER;
	return why;
}

/* True when the QP may be in the error state for a reason of its own or of its peer's, not the wire. */
static bool
was_ended_otherwise(struct model *m, struct mqp *q)
{
	struct mqp *peer = model_peer(m, q);

	if (q->ended || q->sq_failed || q->rq_failed)
		return true;
	for (uint32_t i = 0; i < peer->n; i++)
		if (!peer->req[i].done && peer_refuses(m, peer, &peer->req[i]))
			return true;
	/* One of the QP's requests may have failed, with its completion still to be polled. */
	for (uint32_t i = q->head; i < q->n; i++)
		if (q->req[i].must || peer_refuses(m, q, &q->req[i]) || shaky(m, q->req[i].r.lkey))
			return true;
	return q->rnr_gives_up || m->node[q->node].fails;
}

static bool
was_ended(struct model *m, struct mqp *q)
{
	return m->wire_fails || was_ended_otherwise(m, q);
}

/* True when was_ended_otherwise(), or when the QP may have failed by requests to a peer that is gone. */
static bool
may_be_ended(struct model *m, struct mqp *q)
{
	return was_ended(m, q) || (q->head < q->n && was_ended(m, model_peer(m, q)));
}

/* Reasons for which a request may fail first. */
static unsigned int
may_fail(struct model *m, struct mqp *q, const struct mreq *w)
{
	unsigned int why = w->must | peer_refuses(m, q, w);
	bool wire = w->r.op < MODEL_BIND;

	if (m->node[q->node].fails || shaky(m, w->r.lkey))
		why |= wire ? MODEL_WHY_LOCAL : MODEL_WHY_BIND;
	if (!wire && shaky(m, w->r.rkey))
		why |= MODEL_WHY_BIND;
	if (wire && (m->wire_fails || was_ended(m, model_peer(m, q))))
		why |= MODEL_WHY_LOST;
	if (q->rnr_gives_up && model_takes_recv(&w->r))
		why |= MODEL_WHY_RNR;
	return why;
}

static unsigned int
reasons_of(uint8_t status)
{
	switch (status) {
	case URN_WC_LOC_PROT_ERR:
		return MODEL_WHY_LOCAL;
	case URN_WC_MW_BIND_ERR:
	case URN_WC_LOC_QP_OP_ERR:
		return MODEL_WHY_BIND;
	case URN_WC_REM_INV_REQ_ERR:
		return MODEL_WHY_SHORT | MODEL_WHY_REFUSED;
	case URN_WC_REM_ACCESS_ERR:
		return MODEL_WHY_REMOTE;
	case URN_WC_REM_OP_ERR:
		return MODEL_WHY_PEER;
	case URN_WC_RETRY_EXC_ERR:
		return MODEL_WHY_LOST;
	case URN_WC_RNR_RETRY_EXC_ERR:
		return MODEL_WHY_RNR;
	default:
		return 0;
	}
}

/* ---- completions of requests */

/* Take the effect of a bind or invalidation that is done. */
static void
window_done(struct model *m, const struct model_request *r)
{
	struct mkey *k = &m->key[r->rkey];

	if (r->op == MODEL_LOCAL_INV) {
		k->dead = true;
		return;
	}
	k->off = r->local;
	k->len = r->len;
	k->rights = (unsigned int)r->add;
}

/* Requests from the head to `to` are complete, without error. */
static const char *
succeed(struct model *m, struct mqp *q, uint32_t to)
{
	const char *why;

	/* First of all: requests with bytes out of range can't be compared. */
	for (uint32_t i = q->head; i < to; i++)
		if (q->req[i].must)
			return model_say(m, "a %s succeeded that cannot",
					 model_op_name(q->req[i].r.op));
	why = model_apply(m, q, to, to);
	for (uint32_t i = q->head; i < to; i++) {
		q->req[i].done = true;
		if (q->req[i].r.op >= MODEL_BIND)
			window_done(m, &q->req[i].r);
	}
	q->head = q->ok = to;
	return why;
}

/* Verdict on a successful message: the receive that it used must be long enough, and its key alive. */
static const char *
sent_well(struct model *m, struct mqp *q, const struct mreq *w, const struct model_completion *c)
{
	const struct mrecv *recv = model_takes_recv(&w->r) ? recv_of(model_peer(m, q), w) : NULL;

	if (c->opcode != wc_opcode[w->r.op])
		return model_say(m, "a %s completed with opcode %u", model_op_name(w->r.op), c->opcode);
	if ((w->r.op == MODEL_READ || model_is_atomic(&w->r)) && c->byte_len != w->r.len)
		return model_say(m, "a %s of %u bytes completed with %u", model_op_name(w->r.op),
				 w->r.len, c->byte_len);
	if (model_takes_recv(&w->r) && model_peer(m, q)->srq < 0 && !recv)
		return model_say(m, "a %s succeeded, and there was no receive for it",
				 model_op_name(w->r.op));
	if (recv && w->r.op != MODEL_WRITE_IMM && recv->len < w->r.len)
		return model_say(m, "a %s of %u bytes succeeded into a receive of %u",
				 model_op_name(w->r.op), w->r.len, recv->len);
	return NULL;
}

static const char *
sent_badly(struct model *m, struct mqp *q, const struct mreq *w, const struct model_completion *c)
{
	unsigned int may;

	if (c->status == URN_WC_WR_FLUSH_ERR) {
		if (!q->sq_failed && !may_be_ended(m, q))
			return model_say(m, "a %s was flushed, and nothing had failed",
					 model_op_name(w->r.op));
		return NULL;
	}
	if (q->sq_failed)
		return model_say(m, "a %s failed with status %u behind one that failed",
				 model_op_name(w->r.op), c->status);
	may = may_fail(m, q, w);
	if (!(may & reasons_of(c->status)))
		return model_say(m, "a %s of %u bytes failed with status %u, for no reason (0x%x)",
				 model_op_name(w->r.op), w->r.len, c->status, may);
	if (c->status == URN_WC_RETRY_EXC_ERR && !was_ended_otherwise(m, model_peer(m, q)))
		model_count_lost(m, q);
	return NULL;
}

const char *
model_sent(struct model *m, int qp, const struct model_completion *c)
{
	struct mqp *q = &m->qp[qp];
	uint32_t i = q->head;
	const struct mreq *w;
	const char *why;

	while (i < q->n && q->req[i].r.wr_id != c->wr_id && !q->req[i].r.signalled && !q->sq_failed)
		i++;
	if (i == q->n || q->req[i].r.wr_id != c->wr_id)
		return model_say(m, "request %llu completed, and it is not the turn of it",
				 (unsigned long long)c->wr_id);
	w = &q->req[i];
	if (c->status == URN_WC_SUCCESS) {
		if (q->sq_failed)
			return model_say(m, "a %s succeeded behind one that failed",
					 model_op_name(w->r.op));
		if (!w->r.signalled)
			return model_say(m, "a %s that is not signalled completed",
					 model_op_name(w->r.op));
		why = sent_well(m, q, w, c);
		return why ? why : succeed(m, q, i + 1);
	}
	/* Earlier requests that were not signalled are done. */
	why = i > q->head ? succeed(m, q, i) : NULL;
	if (!why)
		why = sent_badly(m, q, w, c);
	q->sq_failed = true;
	q->head = i + 1;
	return why;
}

/* ---- completions of receives */

static struct mrecv *
find_recv(struct mqueue *rq, bool shared, uint64_t wr_id)
{
	if (!shared)
		return rq->next < rq->n && rq->recv[rq->next].wr_id == wr_id ? &rq->recv[rq->next] : NULL;
	while (rq->next < rq->n && rq->recv[rq->next].done)
		rq->next++;
	for (uint32_t i = rq->next; i < rq->n; i++)
		if (rq->recv[i].wr_id == wr_id && !rq->recv[i].done)
			return &rq->recv[i];
	return NULL;
}

/*
 * True when a receive may complete with this length. A WRITE with immediate that went on lines as
 * two messages tells the length of the second, which is shorter than the longest line (AW-3).
 */
static bool
length_ok(const struct model *m, const struct model_request *r, uint32_t len)
{
	return len == r->len ||
	       (m->aligned && r->op == MODEL_WRITE_IMM && len > 0 && len < 256 && len < r->len);
}

/* Verdict on the peer's next message, which came into this receive. */
static const char *
message_came(struct model *m, struct mqp *q, const struct mrecv *recv,
	     const struct model_completion *c)
{
	struct mqp *from = model_peer(m, q);
	uint32_t i = from->deliver_at;
	const struct model_request *r;
	const char *why;
	uint8_t flags;

	while (i < from->n && !model_takes_recv(&from->req[i].r))
		i++;
	if (i == from->n)
		return model_say(m, "a receive completed, and no message was sent");
	r = &from->req[i].r;
	if (from->req[i].must)
		return model_say(m, "a %s came that cannot have been accepted", model_op_name(r->op));
	flags = r->op == MODEL_SEND ? 0 : r->op == MODEL_SEND_INV ? URN_WCF_WITH_INV : URN_WCF_WITH_IMM;
	if (!length_ok(m, r, c->byte_len) || c->flags != flags || (flags && c->imm != r->imm) ||
	    c->opcode != (r->op == MODEL_WRITE_IMM ? URN_WCO_RECV_RDMA_WITH_IMM : URN_WCO_RECV))
		return model_say(m, "a %s of %u bytes, immediate 0x%x, came as opcode %u, %u bytes, 0x%x, flags %u",
				 model_op_name(r->op), r->len, r->imm, c->opcode, c->byte_len, c->imm,
				 c->flags);
	if (r->op != MODEL_WRITE_IMM && r->len > recv->len)
		return model_say(m, "a SEND of %u bytes came into a receive of %u", r->len, recv->len);
	if (r->op != MODEL_WRITE_IMM && r->len && recv->lkey == MODEL_NO_KEY)
		return model_say(m, "a SEND of %u bytes came into a receive whose key is of another domain", r->len);
	from->deliver_at = i + 1;
	from->delivered++;
	if (i + 1 > from->applied) {
		why = model_apply(m, from, i + 1, from->ok);
		if (why)
			return why;
	}
	return r->op == MODEL_WRITE_IMM ? NULL
					: model_bytes(m, q->node, recv->off, r->seed, r->len, "a SEND");
}

static const char *
recv_badly(struct model *m, struct mqp *q, const struct mrecv *recv, const struct model_completion *c)
{
	struct mqp *from = model_peer(m, q);
	uint32_t i = from->deliver_at;
	unsigned int may, want;

	if (c->status == URN_WC_WR_FLUSH_ERR)
		return may_be_ended(m, q) ? NULL
					  : model_say(m, "a receive was flushed, and nothing had failed");
	if (q->rq_failed)
		return model_say(m, "a receive failed with status %u behind one that failed", c->status);
	while (i < from->n && !model_takes_recv(&from->req[i].r))
		i++;
	if (i == from->n)
		return model_say(m, "a receive failed with status %u, and no message was sent", c->status);
	may = peer_refuses(m, from, &from->req[i]);
	if (recv->lkey == MODEL_NO_KEY || shaky(m, recv->lkey))
		may |= MODEL_WHY_PEER;
	want = c->status == URN_WC_LOC_LEN_ERR	    ? MODEL_WHY_SHORT
	       : c->status == URN_WC_LOC_PROT_ERR   ? MODEL_WHY_PEER
	       : c->status == URN_WC_LOC_ACCESS_ERR ? MODEL_WHY_REMOTE | MODEL_WHY_PEER
						    : 0;
	if (!(may & want))
		return model_say(m, "a receive failed with status %u, for no reason (0x%x)", c->status,
				 may);
	return NULL;
}

void
model_next_message(struct mqp *from)
{
	while (from->deliver_at < from->n && !model_takes_recv(&from->req[from->deliver_at].r))
		from->deliver_at++;
	if (from->deliver_at < from->n)
		from->deliver_at++;
}

const char *
model_received(struct model *m, int qp, const struct model_completion *c)
{
	struct mqp *q = &m->qp[qp];
	struct mqueue *rq = q->srq < 0 ? &q->rq : &m->srq[q->srq];
	struct mrecv *recv = find_recv(rq, q->srq >= 0, c->wr_id);
	const char *why, *torn;

	if (!recv)
		return model_say(m, "receive %llu completed, and it is not the turn of it",
				 (unsigned long long)c->wr_id);
	recv->done = true;
	rq->done++;
	if (q->srq < 0)
		rq->next++;
	if (c->status == URN_WC_SUCCESS)
		return q->rq_failed ? model_say(m, "a receive succeeded behind one that failed")
				    : message_came(m, q, recv, c);
	why = recv_badly(m, q, recv, c);
	torn = model_torn_recv(m, q, recv);
	q->rq_failed = true;
	model_next_message(model_peer(m, q)); /* a message that had come for this receive has used it up */
	return why ? why : torn;
}
