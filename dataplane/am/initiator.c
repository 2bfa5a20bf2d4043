/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator (AM-2 to AM-4, AM-8). The commands of an endpoint are taken one after the other;
 * each becomes packets of up to a chunk of memory, each with its own address, tag and reply.
 * Packets of one operation, and operations among each other, have no order, unless a command has a
 * fence: such an operation starts when all before it have ended. An operation ends with one event:
 * when replies have confirmed every byte, or when a packet failed and no other is under way any
 * more.
 *
 *   packet   QUEUED ─► FLOW ─► (answered, reply) in either order ─► free
 *               ▲        │
 *               └────────┘ refused for want of room
 */
#include "am/priv.h"
#include "transport/sched.h"

#include <string.h>

#include "memory/copy.h"
#include "wire/flow.h"

/* ---- events */

/* Write the event of an operation that ended. The ring has room (room()). */
static void
tell(struct urn_tp *tp, struct urn_am_ep *ep, uint32_t id, uint8_t code, uint64_t bytes)
{
	struct urn_abi_am_event *e =
		urn_am_events(ep->regs, ep->entries) + (ep->events & (ep->entries - 1));

	*e = (struct urn_abi_am_event){.id = id, .code = code, .bytes = bytes};
	ep->events++;
	/* The event is there before the number says so: release. */
	atomic_store_explicit(&ep->regs->dp.events, ep->events, memory_order_release);
	if (ep->channel_fd >= 0)
		urn_am_touch(urn_am_of(tp), ep);
	if (code == URN_AM_DONE) {
		ep->done++;
		URN_COUNT(tp, AM_DONE);
	} else {
		ep->failed++;
		ep->code = code;
		URN_COUNT(tp, AM_FAILED);
	}
}

/* True when the ring of events has room for one more operation's. */
static bool
room(const struct urn_am_ep *ep)
{
	/* The client has read the events before its number: acquire. A number that makes no sense
	 * leaves no room. */
	uint32_t unread =
		ep->events - atomic_load_explicit(&ep->regs->client.events, memory_order_acquire);

	return unread <= ep->entries && ep->under + unread < ep->entries;
}

/* ---- operations */

static URN_FAST void
end_operation(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i)
{
	struct urn_am_oper *op = &ep->oper[i];
	uint64_t old = op->code == URN_AM_DONE ? op->old : 0;

	/* Packets that the target took after the failure may have been placed. */
	if (unlikely(op->given_up && op->taken && op->cmd.op == URN_AM_WRITE))
		op->code |= URN_AM_MAY_BE_THERE;
	op->used = false;
	if (ep->current == i)
		ep->current = URN_AM_NIL;
	ep->under--;
	tell(tp, ep, op->cmd.id, op->code, urn_am_op_is_atomic(op->cmd.op) ? old : op->done);
	urn_pool_put(&ep->opers, i, &ep->oper[0].next, sizeof(*op));
	if (!ep->under)
		urn_wheel_stop(&tp->wheel, &ep->timer.timer);
	urn_am_sched(tp, ep); /* a command may wait for the place */
}

URN_FAST void
urn_am_oper_check(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i)
{
	const struct urn_am_oper *op = &ep->oper[i];

	if (!op->outs && op->sent == op->cmd.len && !op->open)
		end_operation(tp, ep, i);
	else
		urn_am_sched(tp, ep);
}

void
urn_am_oper_fail(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i, uint8_t code)
{
	struct urn_am_oper *op = &ep->oper[i];

	op->code = op->code ? op->code | (code & URN_AM_MAY_BE_THERE) : code;
	op->sent = op->cmd.len;
	if (ep->current == i)
		ep->current = URN_AM_NIL;
	if (op->open)
		urn_am_tag_give_up(tp, ep, op);
}

/*
 * A packet of an operation is finished: its reply came, or never will. The packet is free once no
 * flow has it. code: enum urn_am_code; after the first error no further packets are made
 */
static URN_FAST void
finish(struct urn_tp *tp, struct urn_am_out *o, uint8_t code)
{
	struct urn_am_ep *ep = o->ep;
	uint16_t i = o->op;
	uint32_t len = o->len;
	struct urn_am_oper *op = &ep->oper[i];

	if (o->flags & URN_AM_OUT_QUEUED)
		ep->queued--;
	o->flags &= (uint8_t) ~(URN_AM_OUT_REPLY | URN_AM_OUT_QUEUED);
	if (!(o->flags & URN_AM_OUT_FLOW))
		urn_am_out_put(urn_am_of(tp), o);
	op->outs--;
	if (!op->silent)
		op->at = tp->now;
	if (code != URN_AM_DONE)
		urn_am_oper_fail(tp, ep, i, code);
	else if (!op->tag)
		op->done += len;
	else if (len)
		op->taken = true;
	urn_am_oper_check(tp, ep, i);
}

void
urn_am_out_finish(struct urn_tp *tp, struct urn_am_out *o, uint8_t code)
{
	finish(tp, o, code);
}

/* Bytes of memory in a message of that length: whole cache lines, so that all packets of an
 * operation lie in lines alike. more: bytes between its header and those */
static uint32_t
chunk_of(uint32_t message, uint32_t more)
{
	uint32_t most = message - (uint32_t)sizeof(struct urn_am_hdr) - more;

	return RTE_MIN(most, (uint32_t)URN_AM_CHUNK_MAX) & ~(RTE_CACHE_LINE_SIZE - 1u);
}

URN_FAST uint32_t
urn_am_chunk(const struct urn_tp *tp)
{
	return chunk_of(tp->cfg.flow_mtu - (uint32_t)sizeof(struct urn_flow_seg), 0);
}

uint32_t
urn_am_chunk_to(struct urn_tp *tp, const uint8_t node[16], uint64_t qid, uint32_t more)
{
	return chunk_of(urn_flow_fits(tp, node, qid), more);
}

/* Check a command. returns: enum urn_am_code */
static uint8_t
check(const struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_am_oper *op)
{
	const struct urn_abi_am_cmd *c = &op->cmd;
	static const uint8_t none[16];

	if (c->op < URN_AM_WRITE || c->op > URN_AM_COMPARE_SWAP || c->way >= URN_AM_WAYS ||
	    (c->every &&
	     (c->op != URN_AM_WRITE || (c->way != URN_AM_AUTO && c->way != URN_AM_PIPELINED))) ||
	    (c->flags & ~URN_AM_CMD_FLAGS) || !c->len || c->len > URN_AM_LEN_MAX ||
	    !urn_am_qid_is(c->qid) || memcmp(c->node, none, 16) == 0 ||
	    c->remote + (c->len - 1) < c->remote ||
	    (c->way == URN_AM_DIRECT && c->len > urn_am_chunk(tp)))
		return URN_AM_BAD_COMMAND;
	if (urn_am_op_is_atomic(c->op))
		return urn_am_atomic_check(c, &op->word);
	if (c->op == URN_AM_WRITE && c->len <= urn_am_chunk(tp))
		return URN_AM_DONE; /* its only packet is checked when the flow makes its frame */
	if (!urn_am_mapped(tp, ep->pd, c->lkey, c->local, c->len,
			   c->op == URN_AM_READ ? URN_ACCESS_LOCAL_WRITE : 0))
		return URN_AM_LOCAL;
	return URN_AM_DONE;
}

/* Take the next command as the current operation. A refused one has a code, and its fence holds all
 * the same. returns: false: there is none, or no room for its event */
static bool
take_command(struct urn_tp *tp, struct urn_am_ep *ep)
{
	/* Commands were written before the number: acquire. */
	uint32_t waiting = atomic_load_explicit(&ep->regs->client.commands, memory_order_acquire) -
			   ep->taken,
		 i;
	struct urn_am_oper *op;

	if (!waiting || !room(ep))
		return false;
	if (unlikely(waiting > ep->entries)) {
		URN_COUNT(tp, AM_BAD_RING);
		return false;
	}
	i = urn_pool_get(&ep->opers, &ep->oper[0].next, sizeof(ep->oper[0]));
	op = &ep->oper[i]; /* there is one: room() counts those in use */
	memcpy(&op->cmd, urn_am_cmds(ep->regs) + (ep->taken & (ep->entries - 1)),
	       sizeof(op->cmd)); /* once */
	if (urn_am_op_is_atomic(op->cmd.op))
		op->word = urn_am_operands(ep->regs, ep->entries)[ep->taken & (ep->entries - 1)];
	ep->taken++;
	/* The client may write the slot anew: release. */
	atomic_store_explicit(&ep->regs->dp.commands, ep->taken, memory_order_release);
	ep->commands++;
	URN_COUNT(tp, AM_COMMANDS);
	op->at = tp->now;
	op->sent = op->done = 0;
	op->outs = 0;
	op->used = true;
	op->silent = false;
	op->open = false;
	op->tag = 0;
	ep->under++;
	op->code = check(tp, ep, op);
	ep->current = (uint16_t)i;
	if (unlikely(op->code))
		return true;
	urn_am_way_choose(tp, ep, (uint16_t)i);
	if (!urn_timer_started(&ep->timer.timer)) {
		ep->look_at = tp->now + URN_AM_LOOK_NS;
		urn_wheel_start(&tp->wheel, &ep->timer.timer, ep->look_at);
	}
	return true;
}

/* ---- packets */

/* The code of an operation whose packet its flow answered with an error. code: enum urn_msg_code,
 * or URN_FLOW_GONE: the local bytes are not there any more */
static uint8_t
code_of(const struct urn_am_oper *op, uint8_t code)
{
	uint8_t maybe =
		code & URN_MSG_MAY_BE_THERE && op->cmd.op != URN_AM_READ ? URN_AM_MAY_BE_THERE : 0;

	switch (code & ~URN_MSG_MAY_BE_THERE) {
	case URN_MSG_NO_NODE:
		return URN_AM_NO_NODE | maybe;
	case URN_MSG_NO_QUEUE:
		return URN_AM_NO_ENDPOINT | maybe;
	case URN_MSG_TOO_LONG:
	case URN_MSG_NOT_PERMITTED:
		return URN_AM_BAD_PACKET | maybe;
	case URN_MSG_RESTARTED:
		return URN_AM_RESTARTED | maybe;
	case URN_FLOW_GONE:
		return URN_AM_LOCAL | maybe;
	case URN_MSG_BUSY:
	case URN_MSG_QUEUE_FULL:
		return URN_AM_BUSY | maybe;
	default:
		return URN_AM_UNREACHABLE | maybe;
	}
}

/* Kind of an operation's packets, or of their replies. op: one that was checked */
static uint8_t
kind_of(uint8_t op, bool reply)
{
	if (op == URN_AM_WRITE)
		return reply ? URN_AM_K_WRITE_REPLY : URN_AM_K_WRITE;
	if (op == URN_AM_READ)
		return reply ? URN_AM_K_READ_REPLY : URN_AM_K_READ;
	return reply ? URN_AM_K_ATOMIC_REPLY : URN_AM_K_ATOMIC;
}

/* Write the message of a packet with bytes of a write, which has a tag or a reply to each packet.
 */
static void
write_bytes(struct urn_am_out *o, const struct urn_am_oper *op)
{
	const struct urn_abi_am_cmd *c = &op->cmd;

	if (op->tag)
		urn_am_put_hdr(o->buf, URN_AM_K_TAG_DATA, 0, o->len, op->tag, o->off, c->qid);
	else
		urn_am_put_hdr(o->buf, URN_AM_K_WRITE, 0, o->len, o->tag, c->remote + o->off,
			       c->key);
	o->msg.len = (uint32_t)sizeof(struct urn_am_hdr) + o->len;
	urn_am_out_from(o, URN_AM_FROM_LOCAL, c->local + o->off, c->lkey);
}

/* Write the message of another packet: a request, a part, or an atomic operation. */
static void
write_other(struct urn_am_out *o, const struct urn_am_oper *op)
{
	const struct urn_abi_am_cmd *c = &op->cmd;
	uint8_t *data = o->buf + sizeof(struct urn_am_hdr);
	struct urn_am_msg m = {
		.kind = kind_of(c->op, false),
		.len = o->len,
		.tag = o->tag,
		.addr = c->remote + o->off,
		.key = c->key,
	};

	if (op->tag)
		urn_am_tag_message(op, o, &m);
	o->msg.len = urn_am_build(o->buf, &m);
	if (c->op == URN_AM_WRITE && o->len)
		urn_am_out_from(o, URN_AM_FROM_LOCAL, c->local + o->off, c->lkey);
	else if (urn_am_op_is_atomic(c->op))
		urn_am_atomic_write(op, data);
}

/* Write a packet's message; a write's bytes are gathered by the flow. */
static void
write_message(struct urn_am_out *o)
{
	const struct urn_am_oper *op = &o->ep->oper[o->op];

	if (likely(op->cmd.op == URN_AM_WRITE && o->len && (!op->tag || op->way == URN_AM_TAGGED)))
		write_bytes(o, op);
	else
		write_other(o, op);
}

/* Give a packet to a flow. returns: false: no flow has room now, and the packet is queued */
static bool
send(struct urn_tp *tp, struct urn_am_out *o)
{
	struct urn_am_ep *ep = o->ep;
	uint8_t code;

	if (o->flags & URN_AM_OUT_QUEUED)
		ep->queued--;
	o->flags &= (uint8_t)~URN_AM_OUT_QUEUED;
	code = urn_am_out_send(tp, o);
	if (likely(code == URN_MSG_PENDING))
		return true;
	if (code == URN_MSG_BUSY) {
		o->flags |= URN_AM_OUT_QUEUED;
		ep->queued++;
		return false;
	}
	finish(tp, o, code_of(&ep->oper[o->op], code));
	return true;
}

/* Make the next packet of the current operation, and send it. returns: false: no flow has room now
 */
static bool
send_next(struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_out *o)
{
	struct urn_am_oper *op = &ep->oper[ep->current];

	o->op = ep->current;
	o->off = op->sent;
	o->len = urn_am_next_len(op);
	o->flags = URN_AM_OUT_REPLY;
	o->msg.qid = op->cmd.qid;
	o->msg.src_qid = urn_am_number(urn_am_of(tp), ep->slot);
	memcpy(o->node, op->cmd.node, sizeof(o->node));
	op->outs++;
	if (op->sent == op->cmd.len)
		ep->current = URN_AM_NIL;
	write_message(o);
	return send(tp, o);
}

/* Send queued packets. returns: false: no flow has room now */
static bool
send_queued(struct urn_tp *tp, struct urn_am_ep *ep)
{
	struct urn_am_out *o, *next;

	for (o = TAILQ_FIRST(&ep->out); o && ep->queued; o = next) {
		next = TAILQ_NEXT(o, link);
		if ((o->flags & URN_AM_OUT_QUEUED) && !send(tp, o))
			return false;
	}
	return true;
}

/* Room is missing that others give free: look again soon, among a few others of the client. */
static bool
again(struct urn_tp *tp, struct urn_source *src)
{
	if (!tp->cfg.ring_again)
		return true;
	tp->cfg.ring_again(tp->cfg.give_ctx, src);
	return false;
}

/* True when the current operation may not start yet: earlier ones of the endpoint are under way. */
static bool
is_fenced(const struct urn_tp *tp, const struct urn_am_ep *ep)
{
	struct urn_am_oper *op = &ep->oper[ep->current];

	if (likely(!(op->cmd.flags & URN_AM_FENCE)))
		return false;
	if (ep->under > 1) /* commands are taken in order: all others are earlier */
		return true;
	op->cmd.flags &= (uint8_t)~URN_AM_FENCE;
	op->at = tp->now; /* the wait is no silence */
	return false;
}

/* Share of a turn that the next packet of an operation takes, of URN_AM_FRAMES * URN_AM_SHORTS. */
static int
share_of(const struct urn_abi_am_cmd *c)
{
	return c->op == URN_AM_WRITE && c->len <= URN_AM_SHORT ? 1 : URN_AM_SHORTS;
}

URN_FAST bool
urn_am_serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am_ep *ep = urn_am_ep_of(src);
	int left = URN_AM_FRAMES * URN_AM_SHORTS;

	if (ep->queued && tp->now < ep->retry_at)
		return false; /* until the timer is due */
	if (ep->queued && !send_queued(tp, ep))
		return again(tp, src);
	while (left > 0) {
		struct urn_am_out *o;

		if (ep->current == URN_AM_NIL && !take_command(tp, ep))
			return false;
		left -= share_of(&ep->oper[ep->current].cmd);
		if (is_fenced(tp, ep))
			return false;			    /* until those before have ended */
		if (unlikely(ep->oper[ep->current].code)) { /* refused: nothing was sent */
			end_operation(tp, ep, ep->current);
			continue;
		}
		if (ep->outs == URN_AM_EP_OUTS)
			return false; /* until packets of the endpoint are finished */
		o = urn_am_out_get(urn_am_of(tp), ep);
		if (!o || !send_next(tp, ep, o))
			return again(tp, src);
	}
	return true;
}

/* ---- answers */

URN_FAST void
urn_am_out_answered(struct urn_tp *tp, struct urn_am_out *o, uint8_t code)
{
	struct urn_am_ep *ep = o->ep;

	o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	if (!(o->flags &
	      URN_AM_OUT_REPLY)) { /* the reply was faster, or the operation was given up */
		urn_am_out_put(urn_am_of(tp), o);
		urn_am_sched(tp, ep);
		return;
	}
	if (likely(code == URN_MSG_DONE)) {
		ep->oper[o->op].at = tp->now;
		if (ep->oper[o->op].tag) /* its operation has one answer for all */
			finish(tp, o, URN_AM_DONE);
		return;
	}
	if (code != URN_MSG_BUSY) {
		finish(tp, o, code_of(&ep->oper[o->op], code));
		return;
	}
	/* The target did nothing: the packet goes again, and others with it wait that long. */
	URN_COUNT(tp, AM_RETRIES);
	o->flags |= URN_AM_OUT_QUEUED;
	ep->queued++;
	ep->retry_at = tp->now + URN_AM_RETRY_NS;
	urn_wheel_start(&tp->wheel, &ep->timer.timer, RTE_MIN(ep->retry_at, ep->look_at));
}

/* The packet that a reply answers; NULL: it answers none that waits for a reply from there. */
static struct urn_am_out *
answered_by(const struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_flow_from *from,
	    const struct urn_am_msg *m)
{
	struct urn_am_out *o = urn_am_out_find(urn_am_of(tp), m->tag);
	const struct urn_abi_am_cmd *c;

	if (!o || o->ep != ep || !(o->flags & URN_AM_OUT_REPLY) || (o->flags & URN_AM_OUT_QUEUED) ||
	    m->len != o->len)
		return NULL;
	c = &ep->oper[o->op].cmd;
	if (ep->oper[o->op].tag || from->qid != c->qid || memcmp(from->node, c->node, 16) != 0)
		return NULL;
	if (m->kind != URN_AM_K_ERROR && m->kind != kind_of(c->op, true))
		return NULL;
	return o;
}

/* Copy the bytes of a reply to local memory. returns: enum urn_am_code */
static uint8_t
place(const struct urn_tp *tp, const struct urn_am_out *o, const struct urn_am_msg *m)
{
	const struct urn_abi_am_cmd *c = &o->ep->oper[o->op].cmd;
	uint8_t *to = urn_am_mapped(tp, o->ep->pd, c->lkey, c->local + o->off, o->len,
				    URN_ACCESS_LOCAL_WRITE);

	if (!to)
		return URN_AM_LOCAL;
	urn_copy(to, m->data, m->len);
	return URN_AM_DONE;
}

URN_FAST uint8_t
urn_am_take_reply(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		  const struct urn_am_msg *m)
{
	struct urn_am_out *o = answered_by(tp, ep, from, m);
	uint8_t code;

	if (unlikely(!o)) {
		URN_COUNT(tp, DROP_AM_REPLY);
		return URN_MSG_NOT_PERMITTED;
	}
	code = m->kind == URN_AM_K_READ_REPLY ? place(tp, o, m) : m->code;
	if (m->kind == URN_AM_K_ATOMIC_REPLY)
		ep->oper[o->op].old = urn_am_get_old(m->data);
	finish(tp, o, code);
	return URN_MSG_DONE;
}

/* ---- operations that stand still */

/* Give the packet's operation up. */
static void
give_up(struct urn_tp *tp, struct urn_am_out *o)
{
	uint8_t code = URN_AM_BUSY;

	if (!(o->flags & URN_AM_OUT_QUEUED)) {
		code = URN_AM_NO_REPLY;
		if (o->ep->oper[o->op].cmd.op != URN_AM_READ)
			code |= URN_AM_MAY_BE_THERE;
	}
	if (o->flags & URN_AM_OUT_FLOW)
		urn_flow_forget(tp, &o->msg);
	o->flags &= (uint8_t)~URN_AM_OUT_FLOW;
	finish(tp, o, code);
}

/* Give up operations without progress, with all their packets. */
static void
look(struct urn_tp *tp, struct urn_am_ep *ep)
{
	struct urn_am_out *o, *next;

	for (o = TAILQ_FIRST(&ep->out); o; o = next) {
		struct urn_am_oper *op = &ep->oper[o->op];

		next = TAILQ_NEXT(o, link);
		if (!(o->flags & URN_AM_OUT_REPLY) || tp->now - op->at < URN_AM_REPLY_NS)
			continue;
		if (!op->silent)
			URN_COUNT(tp, AM_SILENT);
		op->silent = true;
		give_up(tp, o);
	}
}

void
urn_am_due(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am_ep *ep = urn_am_ep_of(src);

	if (tp->now >= ep->look_at) {
		ep->look_at = tp->now + URN_AM_LOOK_NS;
		look(tp, ep);
		urn_am_tag_look(tp, ep);
	}
	if (ep->under)
		urn_wheel_start(&tp->wheel, &ep->timer.timer,
				ep->queued && ep->retry_at > tp->now
					? RTE_MIN(ep->retry_at, ep->look_at)
					: ep->look_at);
	urn_am_sched(tp, ep);
}
