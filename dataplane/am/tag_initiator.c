/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's side of operations that have one answer for many packets (AM-4 to AM-8): tagged
 * writes and reads, and pipelined writes with a reply for several packets. A packet is
 * finished when its flow has delivered it; the operation ends with the target's answer, or with
 * the last byte of a read.
 */
#include "am/tagged.h"

#include <string.h>

#include "memory/copy.h"

#define OPER_BITS 0xffffu /* bits of a tag that hold the operation's index */
_Static_assert(URN_AM_ENTRIES_MAX <= OPER_BITS, "operations of an endpoint");
_Static_assert((int)URN_AM_LEN_MAX <= (int)URN_AM_TOTAL_MAX, "bytes of an operation");

/* ---- ways */

static uint8_t
way_of(const struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_abi_am_cmd *c)
{
	const struct urn_am *am = urn_am_of(tp);
	uint32_t pipelined = ep->pipelined_from ? ep->pipelined_from : am->pipelined_from,
		 tagged = ep->tagged_from ? ep->tagged_from : am->tagged_from;

	if (c->way != URN_AM_AUTO)
		return c->way;
	if (urn_am_op_is_atomic(c->op) ||
	    (c->len <= urn_am_chunk(tp) && (!pipelined || c->len < pipelined)))
		return URN_AM_DIRECT;
	return c->len < tagged ? URN_AM_PIPELINED : URN_AM_TAGGED;
}

/* Bytes between header and memory in packets of an operation, whose way and tag are chosen. */
static uint32_t
head_of(const struct urn_am_oper *op)
{
	return op->tag && op->way == URN_AM_PIPELINED ? (uint32_t)sizeof(struct urn_am_part_hdr)
						      : 0;
}

URN_FAST void
urn_am_way_choose(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i)
{
	struct urn_am_oper *op = &ep->oper[i];

	op->way = way_of(tp, ep, &op->cmd);
	op->asked = op->taken = op->given_up = false;
	if (op->way == URN_AM_TAGGED || (op->way == URN_AM_PIPELINED && op->cmd.every > 1)) {
		op->tag = ++urn_am_of(tp)->tags << 16 | i;
		op->open = true;
		ep->open++;
	}
	op->chunk = (uint16_t)urn_am_chunk(tp);
	if (op->way != URN_AM_DIRECT)
		op->chunk = (uint16_t)urn_am_chunk_to(tp, op->cmd.node, op->cmd.qid, head_of(op));
}

/* ---- packets */

URN_FAST uint32_t
urn_am_next_len(struct urn_am_oper *op)
{
	uint32_t len;

	if (op->way == URN_AM_TAGGED && !op->asked) { /* the request */
		op->asked = true;
		if (op->cmd.op == URN_AM_READ)
			op->sent = op->cmd.len;
		return 0;
	}
	len = RTE_MIN(op->cmd.len - op->sent, op->chunk);
	op->sent += len;
	return len;
}

void
urn_am_tag_message(const struct urn_am_oper *op, const struct urn_am_out *o, struct urn_am_msg *m)
{
	m->tag = op->tag;
	if (op->way == URN_AM_PIPELINED) {
		m->kind = URN_AM_K_PART;
		m->total = op->cmd.len;
		m->every = op->cmd.every;
	} else if (o->len) {
		m->kind = URN_AM_K_TAG_DATA;
		m->addr = o->off;
		m->key = op->cmd.qid;
	} else {
		m->kind = op->cmd.op == URN_AM_WRITE ? URN_AM_K_TAG_WRITE : URN_AM_K_TAG_READ;
		m->addr = op->cmd.remote;
		m->len = op->cmd.len;
	}
}

/* ---- ends */

/* The tag is not in use any more. retire: data of it may be under way */
static void
close_tag(const struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_oper *op, bool retire)
{
	op->open = false;
	ep->open--;
	if (retire)
		urn_am_retire(urn_am_of(tp)->tagged, op->cmd.node, op->cmd.qid, op->tag, true);
}

/* Tell the target that an operation was given up. */
static void
tell_target(struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_am_oper *op)
{
	struct urn_am_cancel c = {.tag = op->tag,
				  .to = op->cmd.qid,
				  .from = urn_am_number(urn_am_of(tp), ep->slot),
				  .at = tp->now,
				  .len = op->cmd.len,
				  .code = op->code & (uint8_t)~URN_AM_MAY_BE_THERE};

	memcpy(c.node, op->cmd.node, sizeof(c.node));
	urn_am_cancel(tp, &c);
}

void
urn_am_tag_give_up(struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_oper *op)
{
	close_tag(tp, ep, op, true);
	op->given_up = true;
	switch (op->code & ~URN_AM_MAY_BE_THERE) {
	case URN_AM_NO_NODE:
	case URN_AM_NO_ENDPOINT:
	case URN_AM_UNREACHABLE:
	case URN_AM_RESTARTED:
		return; /* nobody there knows the tag */
	default:
		tell_target(tp, ep, op);
	}
}

/* Every byte is where it belongs: packets whose acknowledgement has not come are finished, too. */
static void
succeed(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i)
{
	struct urn_am_oper *op = &ep->oper[i];
	struct urn_am_out *o, *next;

	close_tag(tp, ep, op, false);
	if (!op->outs) {
		urn_am_oper_check(tp, ep, i);
		return;
	}
	for (o = TAILQ_FIRST(&ep->out); o && op->outs; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->op == i && (o->flags & URN_AM_OUT_REPLY))
			urn_am_out_finish(tp, o, URN_AM_DONE);
	}
}

void
urn_am_tag_look(struct urn_tp *tp, struct urn_am_ep *ep)
{
	for (uint32_t i = 0; i < ep->entries && ep->open; i++) {
		struct urn_am_oper *op = &ep->oper[i];
		uint8_t code = URN_AM_NO_REPLY;

		if (!op->used || !op->open || op->outs || tp->now - op->at < URN_AM_REPLY_NS ||
		    ep->current == i)
			continue;
		if (op->cmd.op == URN_AM_WRITE)
			code |= URN_AM_MAY_BE_THERE;
		URN_COUNT(tp, AM_SILENT);
		urn_am_oper_fail(tp, ep, (uint16_t)i, code);
		urn_am_oper_check(tp, ep, (uint16_t)i);
	}
}

/* ---- answers and data */

/* The bytes of a tagged read. */
static void
place(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i, const struct urn_am_msg *m)
{
	struct urn_am_oper *op = &ep->oper[i];
	const struct urn_abi_am_cmd *c = &op->cmd;
	uint32_t off = (uint32_t)m->addr;
	uint8_t code = URN_AM_DONE, *to = NULL;

	if (unlikely(m->key != urn_am_number(urn_am_of(tp), ep->slot))) /* AM-10 */
		code = URN_AM_ADDRESSEE;
	else if (unlikely(off > c->len || m->len > c->len - off || m->len > c->len - op->done))
		code = URN_AM_BAD_PACKET;
	else if (unlikely(!(to = urn_am_mapped(tp, ep->pd, c->lkey, c->local + off, m->len,
					       URN_ACCESS_LOCAL_WRITE))))
		code = URN_AM_LOCAL;
	if (unlikely(code != URN_AM_DONE)) {
		urn_am_oper_fail(tp, ep, i, code);
		urn_am_oper_check(tp, ep, i);
		return;
	}
	urn_copy(to, m->data, m->len);
	op->done += m->len;
	op->at = tp->now;
	if (op->done == c->len)
		succeed(tp, ep, i);
}

/* The target's answer to a write. returns: false: it makes no sense */
static bool
confirm(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i, const struct urn_am_msg *m)
{
	struct urn_am_oper *op = &ep->oper[i];

	if (op->cmd.op != URN_AM_WRITE || m->len != op->cmd.len || m->addr > op->sent)
		return false;
	if (op->way == URN_AM_TAGGED && m->addr != m->len)
		return false;
	op->done = RTE_MAX(op->done, (uint32_t)m->addr);
	op->at = tp->now;
	if (op->done == op->cmd.len)
		succeed(tp, ep, i);
	return true;
}

/* The target's error. */
static void
refused(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i, const struct urn_am_msg *m)
{
	struct urn_am_oper *op = &ep->oper[i];

	if (op->cmd.op == URN_AM_WRITE && m->addr <= op->sent)
		op->done = RTE_MAX(op->done, (uint32_t)m->addr);
	close_tag(tp, ep, op, true);
	urn_am_oper_fail(tp, ep, i, m->code);
	urn_am_oper_check(tp, ep, i);
}

uint8_t
urn_am_take_back(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		 const struct urn_am_msg *m)
{
	uint16_t i = (uint16_t)(m->tag & OPER_BITS);
	struct urn_am_oper *op = i < ep->entries ? &ep->oper[i] : NULL;

	if (likely(op && op->used && op->open && op->tag == m->tag && from->qid == op->cmd.qid &&
		   memcmp(from->node, op->cmd.node, 16) == 0)) {
		bool sense = true;

		if (m->kind == URN_AM_K_TAG_ERROR)
			refused(tp, ep, i, m);
		else if (m->kind == URN_AM_K_TAG_DONE)
			sense = confirm(tp, ep, i, m);
		else if (op->cmd.op == URN_AM_READ)
			place(tp, ep, i, m);
		else
			sense = false;
		if (likely(sense))
			return URN_MSG_DONE;
	} else if (urn_am_is_retired(urn_am_of(tp)->tagged, from->node, from->qid, m->tag, true)) {
		URN_COUNT(tp, AM_DISCARDED);
		return URN_MSG_DONE;
	}
	URN_COUNT(tp, DROP_AM_REPLY);
	return URN_MSG_NOT_PERMITTED;
}
