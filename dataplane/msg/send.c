/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send channel of a register set (DB-2, DB-3, DB-5, DB-7).
 *
 *   IDLE ─ doorbell with a new seq ─► PENDING: line copied, then checked ─► flow
 *     ▲                                  ▲                                 │ answered()
 *     │                                  └─ retry_us later, if the policy ─┤
 *     │                                     wants another try              │
 *     └──────────────── sstat.answer = seq, code ◄─────────────────────────┘
 *
 * Another try is made after an error only when the target's answer, or none at all, says that the
 * message is not there: after URN_MSG_MAY_BE_THERE a second try could put it there twice.
 */
#include "msg/priv.h"
#include "transport/sched.h"

#define PENDING_FLAGS (URN_MSGF_PENDING | URN_MSGF_IN_FLOW | URN_MSGF_TRY | URN_MSGF_BUSY)
#define BUSY_SHIFT 20 /* ns to the units of busy_until */

/* Counters of answers by code. */
static const uint16_t counter[URN_MSG_CODES] = {
	[URN_MSG_DONE] = URN_C_MSG_DONE,
	[URN_MSG_QUEUE_FULL] = URN_C_MSG_QUEUE_FULL,
	[URN_MSG_NO_NODE] = URN_C_MSG_NO_NODE,
	[URN_MSG_NO_QUEUE] = URN_C_MSG_NO_QUEUE,
	[URN_MSG_TOO_LONG] = URN_C_MSG_TOO_LONG,
	[URN_MSG_NOT_PERMITTED] = URN_C_MSG_NOT_PERMITTED,
	[URN_MSG_UNREACHABLE] = URN_C_MSG_UNREACHABLE,
	[URN_MSG_BAD_DOORBELL] = URN_C_MSG_BAD_DOORBELL,
	[URN_MSG_BUSY] = URN_C_MSG_BUSY,
	[URN_MSG_RESTARTED] = URN_C_MSG_RESTARTED,
};
_Static_assert(URN_MSG_CODES == URN_MSG_RESTARTED + 1, "a counter for each code");

static void
store_answer(struct urn_msg_rset *s, uint8_t code)
{
	/* The reader of the answer may use the message's memory again: release. */
	atomic_store_explicit(&s->regs->sstat.answer, URN_MSG_ANSWER(s->seq, code),
			      memory_order_release);
}

/* The message has its answer. */
static void
answer(struct urn_tp *tp, struct urn_msg_rset *s, uint8_t code)
{
	uint8_t plain = code & (uint8_t)~URN_MSG_MAY_BE_THERE;

	if (plain >= URN_MSG_DONE && plain < URN_MSG_CODES)
		tp->c.v[counter[plain]]++;
	if (code & URN_MSG_MAY_BE_THERE)
		URN_COUNT(tp, MSG_MAY_BE_THERE);
	s->user.source.flags &= ~(uint32_t)PENDING_FLAGS;
	s->code = code;
	store_answer(s, code);
}

/* True when the policy wants another try after this error. */
static bool
again(const struct urn_msg_rset *s, uint8_t code)
{
	return !(code & URN_MSG_MAY_BE_THERE) && (urn_msg_code_kind(code) & s->retry_kinds) &&
	       s->retries;
}

/* A try ended: with an answer, or with another try later. */
static void
tried(struct urn_tp *tp, struct urn_msg_rset *s, uint8_t code)
{
	s->user.source.flags &= ~(uint32_t)(URN_MSGF_IN_FLOW | URN_MSGF_TRY | URN_MSGF_BUSY);
	if (!again(s, code)) {
		answer(tp, s, code);
		return;
	}
	if (s->retries != URN_MSG_NO_END)
		s->retries--;
	URN_COUNT(tp, MSG_RETRIES);
	urn_wheel_start(&tp->wheel, &s->timer.timer, tp->now + s->retry_us * 1000ull);
}

URN_FAST void
urn_msg_answered(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	struct urn_msg_rset *s =
		(struct urn_msg_rset *)((char *)m - offsetof(struct urn_msg_rset, msg));

	tried(tp, s, code);
}

/* ---- a doorbell */

/* True when a queue can have this number or name. */
static bool
is_qid(uint64_t qid)
{
	if (urn_msg_qid_is_named(qid))
		return qid == URN_MSG_NAME(qid);
	return qid >> 32 &&
	       qid == URN_MSG_QID(qid >> 32, urn_msg_qid_engine(qid), urn_msg_qid_slot(qid));
}

/* True when one node can have this address: not zero, and no group of IPv6 or IPv4, nor beyond. */
static bool
is_node(const uint8_t gid[16])
{
	static const uint8_t none[16], v4[12] = {[10] = 0xff, 0xff};

	if (memcmp(gid, v4, sizeof(v4)) == 0)
		return gid[12] < 224;
	return gid[0] != 0xff && memcmp(gid, none, sizeof(none)) != 0;
}

/* True when the fields of a send line make sense for a set. */
static bool
is_sane(const struct urn_msg_rset *s, const struct urn_abi_msg_send *l)
{
	return l->size <= URN_MSG_MAX && l->addr <= s->arena && l->size <= s->arena - l->addr &&
	       is_node(l->node) && is_qid(l->qid);
}

/* Microseconds between tries, by the client's word. */
static uint32_t
retry_us(uint32_t us)
{
	if (us == 0)
		return URN_MSG_RETRY_DEFAULT_US;
	return RTE_MAX((uint32_t)URN_MSG_RETRY_MIN_US, RTE_MIN(us, (uint32_t)URN_MSG_RETRY_MAX_US));
}

/* Take the message of a doorbell; l: a copy of the client's line. */
static void
take(struct urn_tp *tp, struct urn_msg_rset *s, const struct urn_abi_msg_send *l)
{
	URN_COUNT(tp, MSG_SENT);
	s->sent++;
	s->user.source.flags |= URN_MSGF_PENDING;
	if (!is_sane(s, l)) {
		answer(tp, s, URN_MSG_BAD_DOORBELL);
		return;
	}
	store_answer(s, URN_MSG_PENDING);
	s->msg = (struct urn_flow_msg){
		.data = urn_msg_arena(s) + l->addr,
		.len = l->size,
		.qid = l->qid,
		.owner = s->user.source.share,
	};
	memcpy(s->node, l->node, sizeof(s->node));
	s->retry_us = retry_us(l->retry_us);
	s->retries = l->retries;
	s->retry_kinds = l->retry_kinds;
	s->user.source.flags |= URN_MSGF_TRY;
}

URN_FAST void
urn_msg_look_send(struct urn_tp *tp, struct urn_msg_rset *s)
{
	/* The fields were written before seq: acquire. */
	uint32_t seq = atomic_load_explicit(&s->regs->send.seq, memory_order_acquire);
	struct urn_abi_msg_send line;

	if (likely(seq == s->seen))
		return;
	s->seen = seq;
	if (s->user.source.flags & URN_MSGF_PENDING) {
		/* The write is refused for good: a ring about something else must not send it later. */
		URN_COUNT(tp, MSG_RUNG_PENDING);
		return;
	}
	memcpy(&line, &s->regs->send,
	       sizeof(line)); /* once: the client may change the line at any time */
	s->seq = seq;
	take(tp, s, &line);
}

/* ---- a try */

/* Time of the turn in the units of busy_until. */
static uint16_t
busy_now(const struct urn_tp *tp)
{
	return (uint16_t)(tp->now >> BUSY_SHIFT);
}

/* No flow has room for the message now. returns: true when the message still waits for room */
static bool
busy(struct urn_tp *tp, struct urn_msg_rset *s)
{
	struct urn_source *src = &s->user.source;

	if (!(src->flags & URN_MSGF_BUSY)) {
		src->flags |= URN_MSGF_BUSY;
		s->busy_until = (uint16_t)(busy_now(tp) + (URN_MSG_BUSY_NS >> BUSY_SHIFT));
		URN_COUNT(tp, MSG_WAITED);
	}
	if ((int16_t)(busy_now(tp) - s->busy_until) < 0)
		return true;
	tried(tp, s, URN_MSG_BUSY);
	return false;
}

URN_FAST bool
urn_msg_try(struct urn_tp *tp, struct urn_msg_rset *s)
{
	struct urn_source *src = &s->user.source;
	uint8_t code;

	if (!(src->flags & URN_MSGF_TRY))
		return false;
	s->msg.src_qid =
		s->name ? URN_MSG_NAME(s->name) : urn_msg_number(urn_msg_regs_of(tp), s->slot);
	src->flags |= URN_MSGF_IN_FLOW; /* the flow may answer within the call */
	code = urn_flow_send(tp, s->node, &s->msg);
	if (likely(code == URN_MSG_PENDING)) {
		src->flags &= ~(uint32_t)(URN_MSGF_TRY | URN_MSGF_BUSY);
		return false;
	}
	src->flags &= ~(uint32_t)URN_MSGF_IN_FLOW;
	if (code == URN_MSG_BUSY)
		return busy(tp, s);
	tried(tp, s, code);
	return false;
}
