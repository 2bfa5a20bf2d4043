/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive queue of a register set (DB-2, DB-4, DB-5). The ring lies in the client's arena; its
 * place and the tail are kept here, so that nothing the client writes leads a message elsewhere.
 * The head is the only word that is read for each message, and is checked against the tail.
 */
#include "msg/priv.h"

/* ---- configuration */

/* True when a ring of this configuration lies in the arena. */
static bool
fits(const struct urn_msg_rset *s, const struct urn_abi_msg_conf *c)
{
	if (c->entries == 0)
		return true;
	return c->entries <= URN_MSG_ENTRIES_MAX && (c->entries & (c->entries - 1)) == 0 &&
	       c->entry_size >= URN_MSG_ENTRY_MIN && c->entry_size <= URN_MSG_ENTRY_MAX &&
	       c->entry_size % 64 == 0 && c->base % 64 == 0 && c->base <= s->arena &&
	       (uint64_t)c->entries * c->entry_size <= s->arena - c->base && c->permit_bits <= 128;
}

/* True when the ring has messages that the reader is not done with. */
static bool
holds(const struct urn_msg_rset *s)
{
	return s->entries &&
	       atomic_load_explicit(&s->regs->ctrl.head, memory_order_acquire) != s->tail;
}

static void
set_state(struct urn_msg_rset *s, uint8_t state)
{
	s->state = state;
	atomic_store_explicit(&s->regs->rstat.state, state, memory_order_relaxed);
}

/* Take a configuration, which fits. c: a copy of the client's line */
static void
take(struct urn_msg_rset *s, const struct urn_abi_msg_conf *c)
{
	s->entries = c->entries;
	s->entry_size = c->entry_size;
	s->ring = (uint32_t)c->base;
	s->permit_bits = c->permit_bits;
	s->conf_flags = c->flags;
	memcpy(s->permit, c->permit, sizeof(s->permit));
	s->user.source.flags &= ~(uint32_t)URN_MSGF_BAD_HEAD;
	/* A ring that is taken away keeps its tail: messages that came last can still be read. */
	if (c->entries) {
		s->tail = 0;
		atomic_store_explicit(&s->regs->rstat.tail, 0, memory_order_relaxed);
	}
	set_state(s, c->entries ? URN_MSGQ_OPEN : URN_MSGQ_NONE);
}

static void
configure(struct urn_tp *tp, struct urn_msg_rset *s, uint32_t seq)
{
	struct urn_abi_msg_conf c;

	memcpy(&c, &s->regs->conf,
	       sizeof(c)); /* once: the client may change the line at any time */
	s->conf_seq = seq;
	if (!fits(s, &c)) {
		URN_COUNT(tp, MSG_CONF_REFUSED);
		set_state(s, URN_MSGQ_BAD_RING);
	} else if (c.entries && holds(s)) {
		URN_COUNT(tp, MSG_CONF_REFUSED);
		set_state(s, URN_MSGQ_IN_USE);
	} else {
		take(s, &c);
	}
	/* The client reads state and tail after this number: release. */
	atomic_store_explicit(&s->regs->rstat.conf_seq, seq, memory_order_release);
}

URN_FAST void
urn_msg_look_conf(struct urn_tp *tp, struct urn_msg_rset *s)
{
	/* The fields were written before seq: acquire. */
	uint32_t seq = atomic_load_explicit(&s->regs->conf.seq, memory_order_acquire);

	if (unlikely(seq != s->conf_seq))
		configure(tp, s, seq);
	if (atomic_load_explicit(&s->regs->conf.arm, memory_order_relaxed) && holds(s))
		urn_msg_touch(urn_msg_regs_of(tp), s);
}

/* ---- a message comes */

/* True when the first bits of two addresses are the same. bits: at most 128 */
static bool
same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned int bits)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (likely(bits == 0))
		return true;
	return memcmp(a, b, bytes) == 0 &&
	       (!rest || ((a[bytes] ^ b[bytes]) & (0xff00 >> rest) & 0xff) == 0);
}

static bool
is_permitted(const struct urn_msg_rset *s, const struct urn_flow_from *from)
{
	if ((s->conf_flags & URN_MSGQ_OWN_NODE) && !from->own)
		return false;
	return same_prefix(from->node, s->permit, s->permit_bits);
}

/* Count a refusal, also where the client sees it. returns: the code */
static uint8_t
refuse(struct urn_tp *tp, struct urn_msg_rset *s, enum urn_counter why, uint8_t code)
{
	_Atomic uint64_t *n = &s->regs->rstat.refused;

	tp->c.v[why]++;
	/* Only this thread counts; a client that writes here sees its own number. */
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return code;
}

/* Find an entry for one more message. returns: URN_MSG_DONE, or QUEUE_FULL */
static uint8_t
find_room(struct urn_tp *tp, struct urn_msg_rset *s)
{
	/* The reader is done with entries before the head: acquire. */
	uint32_t used = s->tail - atomic_load_explicit(&s->regs->ctrl.head, memory_order_acquire);

	if (unlikely(used > s->entries)) {
		s->user.source.flags |= URN_MSGF_BAD_HEAD;
		set_state(s, URN_MSGQ_BAD_HEAD);
		return refuse(tp, s, URN_C_DROP_MSG_HEAD, URN_MSG_QUEUE_FULL);
	}
	if (unlikely(s->user.source.flags & URN_MSGF_BAD_HEAD)) {
		s->user.source.flags &= ~(uint32_t)URN_MSGF_BAD_HEAD;
		set_state(s, URN_MSGQ_OPEN);
	}
	return used < s->entries ? URN_MSG_DONE
				 : refuse(tp, s, URN_C_DROP_MSG_FULL, URN_MSG_QUEUE_FULL);
}

/* Check everything about a message but its bytes. s: valid with URN_MSG_DONE */
static uint8_t
check(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len,
      struct urn_msg_rset **set)
{
	struct urn_msg_rset *s = urn_msg_find(urn_msg_regs_of(tp), qid);

	if (!s || !s->entries) {
		URN_COUNT(tp, DROP_MSG_QUEUE);
		return URN_MSG_NO_QUEUE;
	}
	*set = s;
	if (!is_permitted(s, from))
		return refuse(tp, s, URN_C_DROP_MSG_PERMIT, URN_MSG_NOT_PERMITTED);
	if (len > s->entry_size - sizeof(struct urn_abi_msg_entry))
		return refuse(tp, s, URN_C_DROP_MSG_LONG, URN_MSG_TOO_LONG);
	return find_room(tp, s);
}

uint8_t
urn_msg_admit(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len)
{
	struct urn_msg_rset *s;

	return check(tp, from, qid, len, &s);
}

URN_FAST uint8_t
urn_msg_deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
		const uint8_t *data, uint32_t len)
{
	struct urn_msg_rset *s;
	uint8_t code = check(tp, from, qid, len, &s);
	struct urn_abi_msg_entry h = {.len = len, .qid = from->qid};
	uint8_t *entry;

	if (unlikely(code != URN_MSG_DONE))
		return code;
	entry = urn_msg_arena(s) + s->ring + (uint64_t)(s->tail & (s->entries - 1)) * s->entry_size;
	memcpy(h.node, from->node, sizeof(h.node));
	memcpy(entry, &h, sizeof(h));
	if (len)
		memcpy(entry + sizeof(h), data, len);
	s->tail++;
	/* The entry's bytes are there before the tail says so: release. */
	atomic_store_explicit(&s->regs->rstat.tail, s->tail, memory_order_release);
	/* Nobody sleeps without a channel: a reader that armed just now finds its message by the tail. */
	if (s->channel_fd >= 0 || atomic_load_explicit(&s->regs->conf.arm, memory_order_relaxed))
		urn_msg_touch(urn_msg_regs_of(tp), s);
	URN_COUNT(tp, MSG_DELIVERED);
	return URN_MSG_DONE;
}
