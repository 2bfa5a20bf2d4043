/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of flows (flow.h). One struct serves both directions between this engine and an engine of
 * a node.
 *
 *   flow_state.h  what flows keep, and their bounds
 *   flow.c        making, finding, ageing; messages in and out of a flow
 *   flow_strand.c strands: an owner's messages and packets in a flow, and their turns
 *   flow_fail.c   failures, and the turns in which their messages are answered
 *   flow_dry.c    strands that wait for room in the pool of packets
 *   flow_tx.c     packets of messages, first and repeated, and the parts that they hold
 *   flow_frame.c  frames of packets
 *   flow_mtu.c    the length of packets
 *   flow_rx.c     data that came: order, messages
 *   flow_refuse.c refused messages that the sender does not know of yet
 *   flow_whole.c  parts of long messages that came, and the buffers that they are put together in
 *   flow_tell.c   acknowledgements and resets that are sent
 *   flow_ack.c    acknowledgements and resets that came
 *   flow_timer.c  repeats, giving up, ageing
 *   flow_rest.c   flows at rest: the little that is kept of an idle flow whose client needs room
 *                 (flow_rest.h)
 *
 * Sending uses the sequence of PSNs that queue pairs use (psn_tx.h, psn_timer.h): one work a
 * packet. A receiver needs no packet in order, because messages have no order among each other: it
 * delivers what comes at once, and notes the PSN in a bitmap.
 */
#ifndef URN_TRANSPORT_FLOW_PRIV_H
#define URN_TRANSPORT_FLOW_PRIV_H

#include "transport/flow_state.h"

static inline const struct urn_flow_user *
urn_flow_user(const struct urn_tp *tp)
{
	return tp->cfg.flow_user;
}

/* Bits of the key of the flow to a queue, without our own address. */
static inline uint8_t
urn_flow_key_to(uint64_t qid)
{
	return urn_msg_qid_is_named(qid) ? URN_FLOW_KEY_TO_FIRST : (uint8_t)urn_msg_qid_engine(qid);
}

/* Index of our address of the family of gid; of gid itself, if that is ours. -1: we have none
 * (flow.c) */
int urn_flow_own_index(const struct urn_tp *tp, const uint8_t gid[16]);

static inline struct urn_flow *
urn_flow_of(struct urn_source *src)
{
	return (struct urn_flow *)src;
}

static inline void
urn_flow_queue_init(struct urn_flow_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static inline struct urn_flow_strand *
urn_flow_strand_of(struct urn_source *src)
{
	return (struct urn_flow_strand *)src;
}

/* True when something is to be sent in the turns of a strand that was not sent before. */
static inline bool
urn_flow_strand_has_new(const struct urn_flow_strand *l)
{
	return l->shorts.head || l->active || l->longs.head ||
	       (unlikely(l->gone) && l->flow->gone_n);
}

/* True when the node accepted nothing of this life of the sending end and sent nothing: the flow
 * knows nothing. */
static inline bool
urn_flow_is_unanswered(const struct urn_flow *f)
{
	return !f->tx_start && !f->rx_epoch;
}

/* True when messages of a failure are to be answered in the turns of a strand. */
static inline bool
urn_flow_strand_fails(const struct urn_flow_strand *l)
{
	return l->user.source.flags & URN_STRAND_FAILS;
}

/* True when something is to be sent, new or again, or to be answered after a failure. */
static inline bool
urn_flow_has_work(const struct urn_flow *f)
{
	return !TAILQ_EMPTY(&f->ready) || !TAILQ_EMPTY(&f->failing);
}

/* ---- flow.c */

/* Make the flows of a transport, or none without a user. returns: 0 or -1: no memory */
int urn_flows_init(struct urn_tp *tp);
void urn_flows_free(struct urn_tp *tp);
/* The time now, ns: later than the turn's, which may have begun long ago. Not for each packet. */
static inline uint64_t
urn_flow_clock(const struct urn_tp *tp)
{
	return tp->cfg.clock ? tp->cfg.clock(tp->cfg.clock_ctx) : tp->now;
}

/* The flow with this key; NULL: none. */
struct urn_flow *urn_flow_find(struct urn_tp *tp, const uint8_t gid[16], uint8_t key);
/* Make a flow, which is not there. flags: 0 or URN_FLOWF_RX. NULL: no room (counted) */
struct urn_flow *urn_flow_make(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, uint16_t flags);
/* The epoch that a flow receives is in doubt, or not any more. */
void urn_flow_doubt(struct urn_tp *tp, struct urn_flow *f, bool doubted);
/* The own address of a flow. */
static inline const uint8_t *
urn_flow_own(const struct urn_tp *tp, const struct urn_flow *f)
{
	return tp->cfg.gid[(f->key & URN_FLOW_KEY_OWN) >> URN_FLOW_KEY_OWN_SHIFT];
}

/* Forget a flow without messages. */
void urn_flow_free(struct urn_tp *tp, struct urn_flow *f);
void urn_flow_put(struct urn_flow_queue *q, struct urn_flow_msg *m, enum urn_flow_msg_state state);
void urn_flow_take(struct urn_flow_queue *q, struct urn_flow_msg *m);
/* Give the answer to the user. */
void urn_flow_answer(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code);
/* Begin a new epoch; no packet is under way. Long messages that are half sent begin anew. */
void urn_flow_renew(struct urn_tp *tp, struct urn_flow *f);

/* The same if no packet went for so long that the node may have forgotten the epoch. */
static inline void
urn_flow_renew_old(struct urn_tp *tp, struct urn_flow *f)
{
	if (unlikely(tp->now - f->tx_at > URN_FLOW_RENEW_NS) && urn_psn_tx_idle(&f->tx))
		urn_flow_renew(tp, f);
}

/* ---- flow_fail.c */

/*
 * The packets under way are void: their messages fail. all: messages that were not sent fail, too.
 * The flow begins a new epoch, and messages are answered in turns of their strands.
 */
void urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all);
/* Answer some messages of a strand that fails; the strand may go. returns: true when more are left
 */
bool urn_flow_fail_turn(struct urn_tp *tp, struct urn_flow_strand *l);

/* ---- flow_strand.c */

/* The strand of an owner in a flow, made if there is none. owner: NULL: nobody. NULL: no memory */
struct urn_flow_strand *urn_flow_strand_get(struct urn_tp *tp, struct urn_flow *f,
					    struct urn_tp_share *owner);
/* Put a message, with its strand, into the strand's queue; the strand's turn is the caller's. */
void urn_flow_queue(struct urn_flow_msg *m);
/* Take a message that was not sent, or not whole, out of its queue; urn_flow_strand_settle() is to
 * follow. */
void urn_flow_unqueue(struct urn_flow_msg *m);
/* The strand got something to send. first: in front of the others */
void urn_flow_strand_ready(struct urn_flow_strand *l, bool first);
/*
 * A strand lost a message, a packet, or something to send: it leaves the lists that it has no
 * business in, and may go when it is empty. Without messages it belongs to nobody, for its client
 * may go.
 */
void urn_flow_strand_settle(struct urn_tp *tp, struct urn_flow_strand *l);
/* A strand leaves the schedule, and each list of those that wait for a turn. */
void urn_flow_strand_leave(struct urn_tp *tp, struct urn_flow_strand *l);
/* A packet, acknowledged or given up, is none of its strand any more; the strand may go. */
void urn_flow_strand_done(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w);
/* Let strands of the flow have a turn: those with lost packets, and as many as the window has room
 * for. */
void urn_flow_wake(struct urn_tp *tp, struct urn_flow *f);
/* Free the empty strand that a flow keeps, if there is one. */
void urn_flow_strand_drop_empty(struct urn_tp *tp, struct urn_flow *f);
/* Free all strands that have an owner, and the spare ones. */
void urn_flows_free_strands(struct urn_flows *fl);
/* There are fewer flows: keep fewer spare strands. */
void urn_flows_trim_strands(struct urn_flows *fl);
/* Free a strand of a flow that ends with its transport; no list has the strand. */
void urn_flow_strand_free(struct urn_tp *tp, struct urn_flow_strand *l);

/* ---- flow_dry.c */

/* True when the owner of a strand may take one more entry of the pool for it. */
bool urn_flow_may_take(const struct urn_tp *tp, const struct urn_flow_strand *l);
/* The pool has no work for the owner of a strand, which is in no list: the strand waits. */
void urn_flow_dry(struct urn_tp *tp, struct urn_flow_strand *l);
/* Let strands that wait for work have a turn if there is some; asked in each turn with such
 * strands. */
void urn_flows_refill(struct urn_tp *tp);
/* A strand that waits for work waits no longer. */
void urn_flow_dry_end(struct urn_tp *tp, struct urn_flow_strand *l);

/* ---- flow_tx.c */

/* Packets that the window has room for. */
uint32_t urn_flow_room(const struct urn_tp *tp, const struct urn_flow *f);

/* Serve a strand when all sources of this turn have been served, unless a list has it already. */
void urn_flow_gather(struct urn_tp *tp, struct urn_flow_strand *l);
/* Let strands send what they got from the sources that were served in this turn. */
void urn_flows_send(struct urn_tp *tp);
/* Serve a strand; urn_source_ops.serve. */
bool urn_flow_serve(struct urn_tp *tp, struct urn_source *src);

/* ---- flow_frame.c */

/* Bytes that a short message takes in a packet. */
static inline uint32_t
urn_flow_seg_bytes(const struct urn_flow_msg *m)
{
	return (uint32_t)sizeof(struct urn_flow_seg) + urn_flow_pad(m->len);
}

/* Send a frame of a flow, which is complete but for its ICRC. loop: to this adapter itself */
void urn_flow_emit(struct urn_tp *tp, const struct urn_txd *d, bool loop);
/*
 * Send a packet. again: the packet was sent before. Messages whose bytes are not there any more are
 * answered, and void in the packet. returns: false: no buffer
 */
bool urn_flow_send_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, bool again);
/* Give the work of a packet back. */
void urn_flow_work_put(struct urn_tp *tp, struct urn_work *w);
/* A packet in flight is to be sent again. */
void urn_flow_lose(struct urn_flow *f, struct urn_work *w);

/* ---- flow_mtu.c */

/* An epoch begins: packets have the length that every way carries. */
void urn_flow_mtu_renew(const struct urn_tp *tp, struct urn_flow *f);
/* The node told for the first time in this epoch how many bytes it takes behind the flow header;
 * mtu: any number from the wire. */
void urn_flow_mtu_told(const struct urn_tp *tp, struct urn_flow *f, uint16_t mtu);
/* A message waits that is longer than a packet: probe, if longer packets may pass. */
void urn_flow_mtu_want(struct urn_flow *f);
/* Make a packet a probe. */
void urn_flow_mtu_fill(struct urn_flow *f, struct urn_work *w);
/* A probe is about to be sent, first or again. */
void urn_flow_mtu_try(struct urn_work *w);
/* A probe was acknowledged. */
void urn_flow_mtu_probed(struct urn_tp *tp, struct urn_flow *f, const struct urn_work *w);

/* ---- flow_rx.c */

/* A packet of a flow came, for this engine; takes m. */
void urn_flow_accept(struct urn_tp *tp, struct rte_mbuf *m);
/* Forget everything about a direction: refusals, messages that are put together. */
void urn_flow_forget_rx(struct urn_tp *tp, struct urn_flow *f);

/* ---- flow_refuse.c */

/*
 * True when the refusals of packet `psn` can be noted. The last place is kept for the first packet that has not
 * come: with its acknowledgement the sender moves on, and places get free.
 */
bool urn_flow_refusals_room(struct urn_tp *tp, struct urn_flow *f, uint32_t psn);
/* Note the codes of a packet, by segment; there is room. */
void urn_flow_note_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t psn, const uint8_t code[URN_FLOW_SEGMENTS]);
/* The sender knows the answers to packets before una. The flow has refusals, perhaps none afterwards. */
void urn_flow_forget_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t una);
/* A packet came once more: its sender may have missed the acknowledgement. The flow has refusals. */
void urn_flow_tell_again(struct urn_flow *f, uint32_t psn);
/* Choose the contents of the next acknowledgement. */
void urn_flow_say(struct urn_flow *f, struct urn_flow_said *s);
/* Write the refusals that were chosen, which count as told from here. to: room for urn_flow_said.n */
void urn_flow_put_said(struct urn_flow *f, struct urn_flow_refused *to);
/* Forget all refusals of a flow. */
void urn_flow_drop_refusals(struct urn_tp *tp, struct urn_flow *f);
/* The same with those of a flow at rest. */
void urn_flows_put_refusals(struct urn_flows *fl, struct urn_flow_refusals *r);
void urn_flows_free_refusals(struct urn_flows *fl);

/* ---- flow_whole.c */

/* No code of a message: the packet is not accepted, and comes again. */
enum { URN_FLOW_NO_ROOM = 0xff };

/*
 * Take a part of a long message. from: qid is set when the message is whole. returns: URN_MSG_DONE,
 * or the code that the message is refused with, or URN_FLOW_NO_ROOM
 */
uint8_t urn_flow_take_part(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_from *from,
			   const struct urn_flow_part *p);
/* The sender let go of a long message midway. Parts that were overtaken are not taken. returns: as
 * urn_flow_take_part() */
uint8_t urn_flow_let_go(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_part *p);
/* Forget the messages of a flow that are put together, and those that were refused. */
void urn_flow_drop_wholes(struct urn_tp *tp, struct urn_flow *f);
/* Give all buffers without a message back to the system. */
void urn_flows_free_kept(struct urn_flows *fl);
/* The same if none was needed for URN_FLOW_KEEP_NS; asked when a flow's timer is due, the last
 * flow's before it goes. */
void urn_flows_age_kept(struct urn_tp *tp);

/* ---- flow_tell.c, flow_ack.c */

/* A flow owes an acknowledgement. */
void urn_flow_owe(struct urn_tp *tp, struct urn_flow *f);
/* Prepare the turns of acknowledgements. */
void urn_flows_init_acks(struct urn_flows *fl);
/*
 * Send acknowledgements at the end of a turn. Data goes first, for a turn at most: a program that
 * answers a message waits for the answer's way, and the sender of the message for both. Those
 * without room have turns of their own.
 */
void urn_flows_tell(struct urn_tp *tp);
/* An acknowledgement came from a node; own: URN_FLOW_KEY_OWN bits of the address it went to; takes m. */
void urn_flow_acked(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own);
/*
 * Ask the sender of a packet of data, of which nothing is kept, to repeat the packet with our
 * start: acknowledge nothing. The sender of a packet with a forged source does not get the
 * question. engine: the one that the packet named; una: oldest PSN that the sender has not seen
 * acknowledged
 */
void urn_flow_ask(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		  uint32_t engine, uint32_t una);
/* Data with this key and epoch, network order, named a start of ours that is over: say so. */
void urn_flow_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		    uint32_t engine);
/*
 * Answer a packet of data for an engine that this adapter does not have: the packet came, and none
 * of its messages has a queue. No flow is made or needed. key: as of a flow; engine: the one that
 * the packet named
 */
void urn_flow_refuse(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		     uint32_t engine);
/* Our data was answered so; takes m. */
void urn_flow_was_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own);

/* ---- flow_timer.c */

/* Begin to wait for an acknowledgement anew. */
void urn_flow_arm(struct urn_tp *tp, struct urn_flow *f);
/* All packets in flight are to be sent again. */
void urn_flow_lose_all(struct urn_tp *tp, struct urn_flow *f);
/* Nothing is under way: look at the flow again when it may be forgotten. */
void urn_flow_age(struct urn_tp *tp, struct urn_flow *f);
/* The timer of a flow is due. */
void urn_flow_due(struct urn_tp *tp, struct urn_flow *f);

#endif
