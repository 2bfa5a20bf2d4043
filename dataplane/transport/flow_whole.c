/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: long messages are put together from their parts, in buffers of the engine.
 *
 *   kept ─ first part ─► put together ─ last part ─► delivered ─► kept
 *                              └─ let go, stalled, flow forgotten ─► kept
 *
 * Buffers have a few sizes, and those without a message are kept warm: memory from the system costs
 * a page fault for each 4 KiB, more than the copy of the bytes. A buffer that is kept holds bytes
 * of a message before, so a message is delivered only when its parts cover it exactly.
 */
#include "transport/flow_priv.h"

#include "base/rnd.h"

#include <stdlib.h>

enum {
	HEADER = 4096, /* bytes of a buffer beyond a power of two: payloads have that size, and
			  headers come on top */
};

/* ---- buffers */

/* Bytes of the message that a buffer of a kind has room for. */
static inline uint32_t
room_of(unsigned int kind)
{
	return (8192u << kind) + HEADER;
}
_Static_assert((8192u << (URN_FLOW_KINDS - 1)) + HEADER == URN_MSG_MAX,
	       "the largest kind has room for any message");

/* The smallest kind with room for len bytes, at most URN_MSG_MAX. */
static inline unsigned int
kind_for(uint32_t len)
{
	return len <= room_of(0) ? 0 : 32 - (unsigned int)__builtin_clz(len - HEADER - 1) - 13;
}

/* Take a buffer that is kept, of a kind that has one. */
static struct urn_flow_whole *
take_kept(struct urn_flows *fl, unsigned int kind)
{
	struct urn_flow_whole *h = SLIST_FIRST(&fl->kept[kind]);

	SLIST_REMOVE_HEAD(&fl->kept[kind], link);
	fl->kept_n--;
	fl->kept_bytes -= room_of(kind);
	return h;
}

/* Give the smallest buffer that is kept back to the system; there is one. */
static void
free_smallest(struct urn_flows *fl)
{
	unsigned int kind = 0;

	while (SLIST_EMPTY(&fl->kept[kind]))
		kind++;
	free(take_kept(fl, kind));
}

/* A buffer of a kind, or of a larger one: that way buffers that are kept fit sooner or later. NULL:
 * no memory */
static struct urn_flow_whole *
get_buffer(struct urn_flows *fl, unsigned int kind)
{
	struct urn_flow_whole *h;

	for (unsigned int k = kind; k < URN_FLOW_KINDS; k++)
		if (likely(!SLIST_EMPTY(&fl->kept[k])))
			return take_kept(fl, k);
	if (fl->kept_n && fl->wholes + fl->kept_n >= URN_FLOW_WHOLES)
		free_smallest(fl);
	h = aligned_alloc(64, sizeof(*h) + room_of(kind)); /* once: the buffer is kept */
	if (h)
		h->kind = (uint8_t)kind;
	return h;
}

/* Keep a buffer, or give buffers back to the system when too many are kept. */
static void
put_buffer(struct urn_flows *fl, struct urn_flow_whole *h)
{
	uint32_t room = room_of(h->kind);

	while (fl->kept_bytes + room > URN_FLOW_KEPT_BYTES)
		free_smallest(fl);
	fl->kept_n++;
	fl->kept_bytes += room;
	SLIST_INSERT_HEAD(&fl->kept[h->kind], h, link);
}

void
urn_flows_free_kept(struct urn_flows *fl)
{
	for (unsigned int kind = 0; kind < URN_FLOW_KINDS; kind++)
		while (!SLIST_EMPTY(&fl->kept[kind]))
			free(take_kept(fl, kind));
}

void
urn_flows_age_kept(struct urn_tp *tp)
{
	if (tp->now - tp->flows->kept_at >= URN_FLOW_KEEP_NS)
		urn_flows_free_kept(tp->flows);
}

/* ---- parts */

/*
 * A number for a place of a message, which nobody else can compute. The parts of a message are its
 * edges from place to place: they lead from 0 to its length without gap or overlap only if their
 * ends, less their beginnings, add up to the length less 0. A part costs two numbers, and a message
 * no map of the parts that came.
 */
static inline uint64_t
place(const struct urn_flows *fl, uint32_t off)
{
	return urn_rnd_at(fl->secret, off);
}

/* ---- messages that were refused */

/*
 * Ids are in the order in which their sender begins messages, and a sender sends no part any more
 * of a message whose refusal it knows. With a window of 255 packets, parts of a refused message
 * come within two windows of the refusal, and meanwhile the sender begins fewer than URN_FLOW_IDS
 * messages. Bits for so many ids keep each refusal as long as it is needed, in any traffic.
 */
static inline uint64_t *
word_of(const struct urn_flow *f, uint32_t id)
{
	return &f->refused_ids[id % URN_FLOW_IDS / 64];
}

/* A part with this id came: bits are of ids up to the newest. */
static void
see_id(struct urn_flow *f, uint32_t id)
{
	if (f->last_id && (int32_t)(id - f->last_id) <= 0)
		return;
	if (f->refused_ids) {
		uint32_t n = RTE_MIN(id - f->last_id, (uint32_t)URN_FLOW_IDS);

		for (uint32_t i = id - n + 1; n; i++, n--)
			*word_of(f, i) &= ~(1ull << i % 64);
	}
	f->last_id = id;
	if (unlikely(f->flags & URN_FLOWF_STALLED) && id - f->stalled_id >= URN_FLOW_IDS)
		f->flags &= (uint16_t)~URN_FLOWF_STALLED;
}

/* True when a message that has no bit any more can't be one that begins. */
static bool
is_old(const struct urn_flow *f, uint32_t id)
{
	return f->last_id - id >= URN_FLOW_IDS;
}

static bool
is_refused(const struct urn_flow *f, uint32_t id)
{
	return unlikely(f->refused_ids != NULL) && !is_old(f, id) &&
	       (*word_of(f, id) >> id % 64 & 1);
}

/* No part of a message is taken any more. returns: false: no memory */
static bool
refuse_id(struct urn_flow *f, uint32_t id)
{
	if (is_old(f, id))
		return true;
	if (!f->refused_ids)
		f->refused_ids = calloc(URN_FLOW_IDS / 64, 8); /* once for an epoch of the sender */
	if (!f->refused_ids)
		return false;
	*word_of(f, id) |= 1ull << id % 64;
	return true;
}

/* ---- messages of a node */

/* The node of a flow among those with messages. NULL: it has none */
static struct urn_flow_node *
node_of(struct urn_flows *fl, const struct urn_flow *f)
{
	for (uint32_t i = 0; i < fl->nodes; i++)
		if (memcmp(fl->node[i].gid, f->gid, 16) == 0)
			return &fl->node[i];
	return NULL;
}

/* Count a message of a flow's node; there is a place for it. */
static void
node_add(struct urn_flows *fl, const struct urn_flow *f)
{
	struct urn_flow_node *n = node_of(fl, f);

	if (!n) {
		n = &fl->node[fl->nodes++];
		memcpy(n->gid, f->gid, 16);
		n->wholes = 0;
	}
	n->wholes++;
}

static void
node_remove(struct urn_flows *fl, const struct urn_flow *f)
{
	struct urn_flow_node *n = node_of(fl, f);

	if (!--n->wholes)
		*n = fl->node[--fl->nodes];
}

/* ---- messages that are put together */

static void
drop_whole(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_whole *h)
{
	SLIST_REMOVE(&f->wholes, h, urn_flow_whole, link);
	f->wholes_n--;
	TAILQ_REMOVE(&tp->flows->whole, h, turn);
	tp->flows->wholes--;
	node_remove(tp->flows, f);
	put_buffer(tp->flows, h);
}

void
urn_flow_drop_wholes(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_whole *h;

	while ((h = SLIST_FIRST(&f->wholes)))
		drop_whole(tp, f, h);
	free(f->refused_ids);
	f->refused_ids = NULL;
	f->last_id = 0;
	f->flags &= (uint16_t)~URN_FLOWF_STALLED;
}

/* A message stalled, and gives its place away. Parts of it may come all the same: these are
 * refused. */
static void
drop_stalled(struct urn_tp *tp, struct urn_flow_whole *h)
{
	struct urn_flow *f = h->flow;

	if (!(f->flags & URN_FLOWF_STALLED) || (int32_t)(h->id - f->stalled_id) > 0)
		f->stalled_id = h->id;
	f->flags |= URN_FLOWF_STALLED;
	drop_whole(tp, f, h);
}

/* True when a message without an entry may be one that lost its place: a part is missing then. */
static bool
may_have_stalled(const struct urn_flow *f, uint32_t id)
{
	return is_old(f, id) ||
	       (unlikely(f->flags & URN_FLOWF_STALLED) && f->stalled_id - id < URN_FLOW_IDS);
}

/* True when a message gives its place to another: its parts ceased to come, or are few for its
 * time. */
static bool
is_stalled(const struct urn_tp *tp, const struct urn_flow_whole *h)
{
	return tp->now - h->at > URN_FLOW_STALL_NS ||
	       tp->now - h->since > URN_FLOW_STALL_NS + ((uint64_t)h->got << URN_FLOW_SLOW_SHIFT);
}

/*
 * Make room among the messages of all flows. A node has more than its share only while half of the
 * places are free: one node alone can't take them all. returns: true when there is room
 */
static bool
engine_room(struct urn_tp *tp, const struct urn_flow *f)
{
	struct urn_flows *fl = tp->flows;
	const struct urn_flow_node *n;
	struct urn_flow_whole *h;
	bool own;

	if (likely(fl->wholes < URN_FLOW_WHOLES_NODE))
		return true;
	n = node_of(fl, f);
	own = n && n->wholes >= URN_FLOW_WHOLES_NODE && fl->wholes >= URN_FLOW_WHOLES / 2;
	if (fl->wholes < URN_FLOW_WHOLES && !own)
		return true;
	TAILQ_FOREACH(h, &fl->whole, turn) {
		if (!is_stalled(tp, h) || (own && memcmp(h->flow->gid, f->gid, 16) != 0))
			continue;
		drop_stalled(tp, h);
		return true;
	}
	return false;
}

/* Make room among the messages of a flow. returns: true when there is room */
static bool
flow_room(struct urn_tp *tp, const struct urn_flow *f)
{
	struct urn_flow_whole *h;

	if (likely(f->wholes_n < URN_FLOW_WHOLES_FLOW))
		return true;
	SLIST_FOREACH(h, &f->wholes, link) {
		if (!is_stalled(tp, h))
			continue;
		drop_stalled(tp, h);
		return true;
	}
	return false;
}

/* Begin to put a message together; there is a place. NULL: no memory */
static struct urn_flow_whole *
new_whole(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_part *p)
{
	uint32_t len = rte_be_to_cpu_32(p->len);
	struct urn_flow_whole *h = get_buffer(tp->flows, kind_for(len));

	if (!h)
		return NULL;
	*h = (struct urn_flow_whole){
		.flow = f,
		.since = tp->now,
		.at = tp->now,
		.qid = rte_be_to_cpu_64(p->seg.qid),
		.src_qid = rte_be_to_cpu_64(p->seg.src_qid),
		.id = rte_be_to_cpu_32(p->id),
		.len = len,
		.kind = h->kind,
	};
	SLIST_INSERT_HEAD(&f->wholes, h, link);
	f->wholes_n++;
	TAILQ_INSERT_TAIL(&tp->flows->whole, h, turn);
	tp->flows->wholes++;
	tp->flows->kept_at = tp->now;
	node_add(tp->flows, f);
	return h;
}

/*
 * A part of a message without an entry came. A flow without room does not accept the packet: of the
 * flow's messages fewer than it has room for have parts that were not sent, the parts of the others
 * come again if they were lost, and so there is room soon. returns: as urn_flow_take_part(); *h:
 * the message, or NULL: the part is not taken
 */
static uint8_t
first_part(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_from *from,
	   const struct urn_flow_part *p, struct urn_flow_whole **h)
{
	uint32_t id = rte_be_to_cpu_32(p->id);
	uint8_t code;

	*h = NULL;
	see_id(f, id);
	/* One part with the code is enough: the sender answers the message after all its parts. */
	if (is_refused(f, id))
		return URN_MSG_DONE;
	if (may_have_stalled(f, id))
		return URN_MSG_BUSY;
	code = urn_flow_user(tp)->admit(tp, from, rte_be_to_cpu_64(p->seg.qid),
					rte_be_to_cpu_32(p->len));
	if (likely(code == URN_MSG_DONE)) {
		if (unlikely(!flow_room(tp, f)))
			return URN_FLOW_NO_ROOM;
		if (likely(engine_room(tp, f)))
			*h = new_whole(tp, f, p);
		if (likely(*h != NULL))
			return URN_MSG_DONE;
		code = URN_MSG_BUSY;
	}
	return refuse_id(f, id) ? code : URN_FLOW_NO_ROOM;
}

static struct urn_flow_whole *
find_whole(const struct urn_flow *f, const struct urn_flow_part *p)
{
	uint32_t id = rte_be_to_cpu_32(p->id);
	struct urn_flow_whole *h = SLIST_FIRST(&f->wholes);

	while (h && h->id != id)
		h = SLIST_NEXT(h, link);
	return h;
}

/* All bytes of a message came: its parts may still overlap, and then bytes of another message lie
 * between them. */
static URN_FAST uint8_t
deliver(struct urn_tp *tp, struct urn_flow_from *from, const struct urn_flow_whole *h)
{
	uint8_t code;

	if (unlikely(h->edges != place(tp->flows, h->len) - place(tp->flows, 0))) {
		URN_COUNT(tp, FLOW_DROP_PARTS);
		return URN_MSG_BUSY;
	}
	from->qid = h->src_qid;
	code = urn_flow_user(tp)->deliver(tp, from, h->qid, h->data, h->len);
	if (code == URN_MSG_DONE)
		URN_COUNT(tp, FLOW_MESSAGES_RX);
	return code;
}

uint8_t
urn_flow_take_part(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_from *from,
		   const struct urn_flow_part *p)
{
	uint32_t off = rte_be_to_cpu_32(p->off), bytes = rte_be_to_cpu_16(p->seg.bytes);
	struct urn_flow_whole *h = find_whole(f, p);
	uint8_t code = URN_MSG_DONE;

	if (!h)
		code = first_part(tp, f, from, p, &h);
	if (!h)
		return code;
	/* Parts of one id that belong to different messages: their sender mixes them up. */
	if (h->len != rte_be_to_cpu_32(p->len) || h->qid != rte_be_to_cpu_64(p->seg.qid) ||
	    h->got + bytes > h->len)
		return URN_MSG_BUSY;
	memcpy(h->data + off, p + 1, bytes);
	h->got += bytes;
	h->edges += place(tp->flows, off + bytes) - place(tp->flows, off);
	h->at = tp->now;
	if (h->got < h->len)
		return URN_MSG_DONE;
	code = deliver(tp, from, h);
	drop_whole(tp, f, h);
	return code;
}

uint8_t
urn_flow_let_go(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_part *p)
{
	struct urn_flow_whole *h = find_whole(f, p);

	if (h)
		drop_whole(tp, f, h);
	see_id(f, rte_be_to_cpu_32(p->id));
	return refuse_id(f, rte_be_to_cpu_32(p->id)) ? URN_MSG_DONE : URN_FLOW_NO_ROOM;
}
