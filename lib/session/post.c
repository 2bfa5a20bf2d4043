/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a session connection: numbers, completions in order, and posting them again. */
#include "session/priv.h"

int
urn_sess_post(struct urn_sess_conn *c, enum urn_sess_kind kind, uint64_t *seq)
{
	struct urn_sess_wr *w = urn_sess_wr_at(c, c->tail);

	if (c->state == URN_SESS_DEAD || c->tail - c->head == c->cfg.wrs || kind >= URN_SESS_KINDS)
		return -1;
	*w = (struct urn_sess_wr){.kind = (uint8_t)kind, .posted = urn_sess_flows(c)};
	if (urn_sess_is_message(w))
		c->next_id++;
	else if (kind == URN_SESS_ATOMIC)
		w->number = ++c->atomics;
	w->id = c->next_id - 1;
	*seq = c->tail++;
	return w->posted;
}

void
urn_sess_complete(struct urn_sess_conn *c)
{
	while (c->head != c->tail && urn_sess_wr_at(c, c->head)->done) {
		const struct urn_sess_wr *w = urn_sess_wr_at(c, c->head);

		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_COMPLETE,
							   .seq = c->head,
							   .known = w->known,
							   .old = w->old});
		c->head++;
	}
}

void
urn_sess_mark(struct urn_sess_conn *c, uint64_t id)
{
	/* Requests behind marked may be complete: binds, and those without a message before them.
	 */
	if (c->marked < c->head)
		c->marked = c->head;
	for (; c->marked != c->tail; c->marked++) {
		struct urn_sess_wr *w = urn_sess_wr_at(c, c->marked);

		if (w->id > id)
			break;
		if (!urn_sess_is_message(w))
			continue;
		w->done = true;
		c->sends += w->kind == URN_SESS_SEND;
	}
	if (id > c->sent)
		c->sent = id;
}

/* True when a completion is one of the queue pair in use. */
static bool
fresh(struct urn_sess_conn *c, uint32_t epoch)
{
	if (c->open && epoch == c->used)
		return true;
	urn_sess_count(c, URN_SESS_C_STALE); /* FO-16 */
	return false;
}

bool
urn_sess_done(struct urn_sess_conn *c, uint32_t epoch, uint64_t seq)
{
	struct urn_sess_wr *w = urn_sess_wr_at(c, seq);

	if (!fresh(c, epoch))
		return false;
	if (seq < c->head)
		return true; /* a flush read behind a message that LAST ACKED had completed */
	if (seq >= c->tail || !w->posted) {
		urn_sess_count(c, URN_SESS_C_BAD_EVENT);
		return false;
	}
	if (!urn_sess_is_message(w))
		w->done = true;
	if (w->kind != URN_SESS_BIND)
		urn_sess_mark(c, w->id);
	urn_sess_complete(c);
	return true;
}

void
urn_sess_acked(struct urn_sess_conn *c, uint64_t id)
{
	if (id >= c->next_id) {
		urn_sess_count(c, URN_SESS_C_BAD_ACK);
		return;
	}
	if (id > c->peer_received)
		c->peer_received = id;
	if (id <= c->sent)
		return;
	urn_sess_mark(c, id);
	urn_sess_complete(c);
}

bool
urn_sess_received(struct urn_sess_conn *c, uint32_t epoch, const struct urn_sess_header *h)
{
	if (!fresh(c, epoch))
		return false;
	if (h->id <= c->received) {
		urn_sess_count(c, URN_SESS_C_DUPLICATE);
		return false;
	}
	c->received = h->id;
	c->received_sends++;
	urn_sess_acked(c, h->acked);
	return true;
}

void
urn_sess_failed(struct urn_sess_conn *c, uint32_t epoch, uint64_t seq)
{
	const struct urn_sess_wr *w = urn_sess_wr_at(c, seq);

	if (!fresh(c, epoch))
		return;
	if (seq < c->head || seq >= c->tail) {
		urn_sess_count(c, URN_SESS_C_BAD_EVENT);
		return;
	}
	urn_sess_mark(c, urn_sess_is_message(w) ? w->id - 1 : w->id);
	urn_sess_complete(c);
	urn_sess_end(c, URN_SESS_NO_REQUEST, seq, URN_SESS_GENUINE);
}

void
urn_sess_quit(struct urn_sess_conn *c)
{
	if (c->state != URN_SESS_DEAD)
		urn_sess_end(c, URN_SESS_NO_REQUEST, c->tail, URN_SESS_FLUSHED);
}

void
urn_sess_repost(struct urn_sess_conn *c)
{
	for (uint64_t seq = c->head; seq != c->tail; seq++) {
		struct urn_sess_wr *w = urn_sess_wr_at(c, seq);

		if (w->done)
			continue;
		c->counter[URN_SESS_C_REPOSTED] += w->posted;
		w->posted = true;
		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_POST,
							   .path = c->path,
							   .epoch = c->used,
							   .seq = seq});
	}
}

void
urn_sess_receive_again(struct urn_sess_conn *c)
{
	for (uint32_t i = 0; i < c->found; i++)
		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_RECEIVE,
							   .path = c->path,
							   .epoch = c->used,
							   .index = c->cfg.recv[i].index});
	c->found = 0;
}

void
urn_sess_end(struct urn_sess_conn *c, enum urn_sess_reason reason, uint64_t seq,
	     enum urn_sess_status own)
{
	urn_sess_emit(c, &(struct urn_sess_action){
				 .act = URN_SESS_DIED, .reason = reason, .path = c->path});
	for (uint64_t at = c->head; at != c->tail; at++) {
		const struct urn_sess_wr *w = urn_sess_wr_at(c, at);
		enum urn_sess_status status = at == seq ? own : URN_SESS_FLUSHED;

		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_COMPLETE,
							   .seq = at,
							   .status = w->done ? URN_SESS_OK : status,
							   .known = w->known,
							   .old = w->old});
	}
	c->head = c->tail;
	for (uint32_t i = 0; i < c->found; i++)
		urn_sess_emit(c, &(struct urn_sess_action){.act = URN_SESS_FLUSH,
							   .index = c->cfg.recv[i].index});
	c->found = 0;
	urn_sess_bury(c, reason);
}
