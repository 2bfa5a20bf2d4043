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

/* ---- buffers */

enum { NOTE = 0 }; /* kind of a buffer without room for a message */

/* Bytes of the message that a buffer of a kind has room for. */
static inline uint32_t
room_of(unsigned int kind)
{
	return kind == NOTE ? 0 : 4096u << kind;
}
_Static_assert(4096u << (URN_FLOW_KINDS - 1) == URN_MSG_MAX,
	       "the largest kind has room for any message");

/* The smallest kind with room for len bytes, at most URN_MSG_MAX. */
static inline unsigned int
kind_for(uint32_t len)
{
	return len <= room_of(1) ? 1 : 32 - (unsigned int)__builtin_clz(len - 1) - 12;
}

/* Take a buffer that is kept, of a kind that has one. */
static struct urn_flow_whole *
take_kept(struct urn_flows *fl, unsigned int kind)
{
	struct urn_flow_whole *h = SLIST_FIRST(&fl->kept[kind]);

	SLIST_REMOVE_HEAD(&fl->kept[kind], link);
	if (kind == NOTE) {
		fl->kept_notes--;
		return h;
	}
	fl->kept_n--;
	fl->kept_bytes -= room_of(kind);
	return h;
}

/* Give the smallest buffer that is kept back to the system; there is one. */
static void
free_smallest(struct urn_flows *fl)
{
	unsigned int kind = NOTE + 1;

	while (SLIST_EMPTY(&fl->kept[kind]))
		kind++;
	free(take_kept(fl, kind));
}

/* A buffer of a kind, or of a larger one: that way buffers that are kept fit sooner or later. NULL:
 * no memory */
static struct urn_flow_whole *
get_buffer(struct urn_flows *fl, unsigned int kind)
{
	unsigned int last = kind == NOTE ? NOTE : URN_FLOW_KINDS - 1;
	struct urn_flow_whole *h;

	for (unsigned int k = kind; k <= last; k++)
		if (likely(!SLIST_EMPTY(&fl->kept[k])))
			return take_kept(fl, k);
	if (kind != NOTE && fl->kept_n && fl->wholes + fl->kept_n >= URN_FLOW_WHOLES)
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

	if (h->kind == NOTE && fl->kept_notes == URN_FLOW_WHOLES) {
		free(h);
		return;
	}
	if (h->kind == NOTE) {
		fl->kept_notes++;
	} else {
		while (fl->kept_bytes + room > URN_FLOW_KEPT_BYTES)
			free_smallest(fl);
		fl->kept_n++;
		fl->kept_bytes += room;
	}
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

/* ---- messages that are put together */

static void
drop_whole(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_whole *h)
{
	SLIST_REMOVE(&f->wholes, h, urn_flow_whole, link);
	f->wholes_n--;
	if (!h->code) {
		TAILQ_REMOVE(&tp->flows->whole, h, turn);
		tp->flows->wholes--;
	}
	put_buffer(tp->flows, h);
}

void
urn_flow_drop_wholes(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_whole *h;

	while ((h = SLIST_FIRST(&f->wholes)))
		drop_whole(tp, f, h);
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
may_have_stalled(const struct urn_flow *f, const struct urn_flow_seg *s)
{
	return unlikely(f->flags & URN_FLOWF_STALLED) &&
	       f->stalled_id - rte_be_to_cpu_32(s->id) < URN_FLOW_STALL_IDS;
}

static bool
is_stalled(const struct urn_tp *tp, const struct urn_flow_whole *h)
{
	return h && !h->code && tp->now - h->at > URN_FLOW_STALL_NS;
}

/* Make room among the messages of all flows. returns: true when there is room */
static bool
engine_room(struct urn_tp *tp)
{
	struct urn_flow_whole *h = TAILQ_FIRST(&tp->flows->whole);

	if (likely(tp->flows->wholes < URN_FLOW_WHOLES))
		return true;
	if (!is_stalled(tp, h))
		return false;
	drop_stalled(tp, h);
	return true;
}

/* Make room in the list of a flow: the oldest entry that is no message any more goes. returns: true
 * when there is room */
static bool
wholes_room(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_whole *h, *old = NULL;

	if (f->wholes_n < URN_FLOW_WHOLES_FLOW)
		return true;
	SLIST_FOREACH(h, &f->wholes, link)
		if (h->code || is_stalled(tp, h))
			old = h;
	if (!old)
		return false;
	if (old->code)
		drop_whole(tp, f, old);
	else
		drop_stalled(tp, old);
	return true;
}

/* Begin to put a message together, or note that it is refused (code not 0). NULL: no room */
static struct urn_flow_whole *
new_whole(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_seg *s, uint8_t code)
{
	uint32_t len = rte_be_to_cpu_32(s->len);
	struct urn_flow_whole *h;

	if (!wholes_room(tp, f))
		return NULL;
	h = get_buffer(tp->flows, code ? NOTE : kind_for(len));
	if (!h)
		return NULL;
	*h = (struct urn_flow_whole){
		.flow = f,
		.at = tp->now,
		.qid = rte_be_to_cpu_64(s->qid),
		.src_qid = rte_be_to_cpu_64(s->src_qid),
		.id = rte_be_to_cpu_32(s->id),
		.len = len,
		.code = code,
		.kind = h->kind,
	};
	SLIST_INSERT_HEAD(&f->wholes, h, link);
	f->wholes_n++;
	tp->flows->kept_at = tp->now;
	if (!code) {
		TAILQ_INSERT_TAIL(&tp->flows->whole, h, turn);
		tp->flows->wholes++;
	}
	return h;
}

/* The first part of a message came. returns: the message, or NULL with *code: no parts are taken */
static struct urn_flow_whole *
first_part(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_from *from,
	   const struct urn_flow_seg *s, uint8_t *code)
{
	struct urn_flow_whole *h = NULL;

	*code = URN_MSG_BUSY;
	if (!may_have_stalled(f, s))
		*code = urn_flow_user(tp)->admit(tp, from, rte_be_to_cpu_64(s->qid),
						 rte_be_to_cpu_32(s->len));
	if (*code == URN_MSG_DONE) {
		*code = URN_MSG_BUSY;
		if (engine_room(tp))
			h = new_whole(tp, f, s, 0);
		if (h)
			return h;
	}
	(void)new_whole(tp, f, s, *code);
	return NULL;
}

static struct urn_flow_whole *
find_whole(const struct urn_flow *f, const struct urn_flow_seg *s)
{
	uint32_t id = rte_be_to_cpu_32(s->id);
	struct urn_flow_whole *h = SLIST_FIRST(&f->wholes);

	while (h && h->id != id)
		h = SLIST_NEXT(h, link);
	return h;
}

/* All bytes of a message came: its parts may still overlap, and then bytes of another message lie
 * between them. */
static uint8_t
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
		   const struct urn_flow_seg *s)
{
	uint32_t off = rte_be_to_cpu_32(s->off), bytes = rte_be_to_cpu_16(s->bytes);
	struct urn_flow_whole *h = find_whole(f, s);
	uint8_t code = URN_MSG_DONE;

	if (!h)
		h = first_part(tp, f, from, s, &code);
	if (!h)
		return code;
	/* One part with the code is enough: the sender answers the message after all its parts. */
	if (h->code)
		return URN_MSG_DONE;
	/* Parts of one id that belong to different messages: their sender mixes them up. */
	if (h->len != rte_be_to_cpu_32(s->len) || h->qid != rte_be_to_cpu_64(s->qid) ||
	    h->got + bytes > h->len)
		return URN_MSG_BUSY;
	memcpy(h->data + off, s + 1, bytes);
	h->got += bytes;
	h->edges += place(tp->flows, off + bytes) - place(tp->flows, off);
	h->at = tp->now;
	TAILQ_REMOVE(&tp->flows->whole, h, turn);
	TAILQ_INSERT_TAIL(&tp->flows->whole, h, turn);
	if (h->got < h->len)
		return URN_MSG_DONE;
	code = deliver(tp, from, h);
	drop_whole(tp, f, h);
	return code;
}

void
urn_flow_let_go(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_seg *s)
{
	struct urn_flow_whole *h = find_whole(f, s);

	if (h && h->code)
		return;
	if (h)
		drop_whole(tp, f, h);
	(void)new_whole(tp, f, s, URN_MSG_BUSY);
}
