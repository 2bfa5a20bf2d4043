/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle of operations. When a command is posted, the codes are noted that would be true, and
 * the bytes that may be moved; both change when the program revokes something.
 *
 *   DONE                    every byte is in place
 *   an error                packets are placed as a whole or not, and as many bytes as the event
 * says a write that may be     likewise, or more: bytes may come until the region or endpoint goes
 *   there
 *   region or memory gone   from then on nothing changes there
 */
#include "amsim.h"

#include <stdlib.h>

#define BIT(code) (1u << (code))

enum {
	AROUND = 64
}; /* bytes before and behind a range that are looked at when an operation ends */

/* ---- memory of an operation */

/* The bytes that the operation moves. Valid until the next call. */
static const uint8_t *
bytes_of(struct ms_world *w, const struct as_op *o)
{
	if (o->op == URN_AM_READ)
		return o->want;
	sim_fill(w->as->scratch, o->id, 0, o->len);
	return w->as->scratch;
}

/* True when a piece of the operation's target may be reached. */
static bool
is_reached(const struct as_op *o, uint32_t off, uint32_t len)
{
	if (o->reach != AS_REACH_SOME)
		return o->reach == AS_REACH_ALL;
	return as_zone_holds(&o->ranges, o->remote + off, len);
}

/*
 * Look at pieces of the memory that an operation writes: each is new or old as a whole, and new
 * only if the target may be reached. Sets o->sure and o->perhaps. returns: NULL; or why the pieces
 * can't be of that length, and *bad: the piece
 */
static const char *
look_at_pieces(struct ms_world *w, struct as_op *o, const struct as_mem *m, uint32_t at,
	       uint32_t chunk, uint32_t *bad)
{
	const uint8_t *bytes = bytes_of(w, o);

	o->sure = o->perhaps = 0;
	for (uint32_t i = 0; i < o->len; i += chunk) {
		uint32_t n = RTE_MIN(chunk, o->len - i);
		bool is_new = memcmp(m->at + at + i, bytes + i, n) == 0;
		bool is_old = memcmp(m->at + at + i, m->was + at + i, n) == 0;

		*bad = i;
		if (!is_old && !is_reached(o, i, n))
			return "changed bytes, which it may not reach";
		if (!is_old && !is_new)
			return "has a packet that is torn";
		o->sure += is_new && !is_old ? n : 0;
		o->perhaps += is_new && is_old ? n : 0;
	}
	return NULL;
}

/* The same with the lengths that packets may have had. */
static void
look_at(struct ms_world *w, struct as_op *o, const struct as_mem *m, uint32_t at)
{
	uint32_t bad, k;
	const char *why = look_at_pieces(w, o, m, at, o->chunk, &bad);

	for (unsigned int i = 0; why && i < RTE_DIM(o->other); i++)
		if (!look_at_pieces(w, o, m, at, o->other[i], &k))
			return;
	if (why)
		ms_fail(w, "operation %u %s: from byte %u of its range on, of packets of %u", o->id,
			why, bad, o->chunk);
}

/* The target's memory cannot change any more by an operation. */
static void
freeze(struct ms_world *w, struct as_op *o)
{
	struct as_end *to = &w->as->end[o->to];

	if (o->frozen)
		return;
	if (o->op == URN_AM_WRITE) {
		look_at(w, o, &to->mem, o->remote);
		as_mem_accept(&to->mem, o->remote, o->len);
	}
	as_mem_give(&to->mem, o->remote, o->len, o->op == URN_AM_WRITE);
	o->frozen = true;
	if (o->op == URN_AM_WRITE && (o->ended || o->orphan))
		to->zone[o->zone].late--;
}

/* The local memory cannot change any more by an operation. */
static void
settle(struct ms_world *w, struct as_op *o)
{
	struct as_end *from = &w->as->end[o->from];

	if (o->settled || !o->has_local)
		return;
	if (o->op == URN_AM_READ) {
		look_at(w, o, &from->mem, o->local);
		as_mem_accept(&from->mem, o->local, o->len);
	}
	as_mem_give(&from->mem, o->local, o->len, true);
	as_mem_check_range(w, &from->mem, o->local, o->len, "local bytes", from->id);
	o->settled = true;
}

/* An operation ended, and its packets may come yet all the same. */
static void
let_late(struct ms_world *w, struct as_op *o)
{
	if (o->to != AS_NONE && o->zone == AS_SPACE)
		w->as->end[o->to].zone[AS_SPACE].never = true;
	if (!o->has_remote || o->frozen)
		return;
	w->as->end[o->to].zone[o->zone].late++;
	w->stats.more[AS_LATE]++;
}

/* ---- posting */

static uint32_t
right_of(const struct as_op *o)
{
	if (as_is_atomic(o))
		return URN_AM_ACCESS_ATOMIC;
	return o->op == URN_AM_WRITE ? URN_AM_ACCESS_WRITE : URN_AM_ACCESS_READ;
}

/* Codes of an operation whose command makes sense, by its target. */
static void
judge_target(struct ms_world *w, struct as_op *o, const struct urn_abi_am_cmd *c)
{
	const struct as_zone *z;
	bool holds = true;

	if (o->node == AS_NONE)
		o->can |= BIT(URN_AM_NO_NODE);
	else if (o->to == AS_NONE)
		o->can |= BIT(URN_AM_NO_ENDPOINT);
	if (o->node == AS_NONE || o->to == AS_NONE)
		return;
	z = o->zone == AS_NONE ? NULL : &w->as->end[o->to].zone[o->zone];
	if (!z || !z->there || c->key != z->key) {
		o->can |= BIT(c->key ? URN_AM_BAD_KEY : URN_AM_UNREGISTERED);
		return;
	}
	if (!(z->access & right_of(o))) {
		o->can |= BIT(URN_AM_RIGHTS);
		return;
	}
	if (c->remote != as_address(&w->as->end[o->to], o->remote)) {
		o->can |= BIT(URN_AM_RANGE); /* far away: the last bytes of all */
		return;
	}
	o->reach = AS_REACH_ALL;
	if (!z->lkey[0]) {
		o->can |= BIT(URN_AM_BAD_KEY);
		o->reach = AS_REACH_NONE;
	}
	for (uint32_t i = 0; i < o->len && holds; i += o->chunk)
		holds = as_zone_holds(z, o->remote + i, RTE_MIN(o->chunk, o->len - i));
	if (holds)
		return;
	o->ranges = *z;
	o->can |= BIT(URN_AM_RANGE);
	/* The request of a tagged transfer is for all bytes, or is refused (AM-7). */
	o->reach = o->reach == AS_REACH_NONE || o->way == URN_AM_TAGGED ? AS_REACH_NONE
									: AS_REACH_SOME;
}

/* True when the command of an end of a node makes no sense (abi/am.h). */
static bool
is_nonsense(const struct ms_world *w, uint32_t from, const struct urn_abi_am_cmd *c)
{
	static const uint8_t none[16];

	return c->op < URN_AM_WRITE || c->op > URN_AM_COMPARE_SWAP || c->way >= URN_AM_WAYS ||
	       (c->flags & ~URN_AM_FENCE) ||
	       (c->every &&
		(c->op != URN_AM_WRITE || (c->way != URN_AM_AUTO && c->way != URN_AM_PIPELINED))) ||
	       !c->len || c->len > URN_AM_LEN_MAX || c->qid >> 62 != 3 ||
	       memcmp(c->node, none, 16) == 0 || c->remote > UINT64_MAX - (c->len - 1) ||
	       (c->way == URN_AM_DIRECT && c->len > as_chunk(ms_flow_mtu(w, from), 0));
}

/* True when an atomic operation makes no sense. */
static bool
is_atomic_nonsense(const struct as_op *o, const struct urn_abi_am_cmd *c)
{
	return (c->len != 4 && c->len != 8) || (c->way != URN_AM_AUTO && c->way != URN_AM_DIRECT) ||
	       (c->len == 4 && (o->value >> 32 || o->compare >> 32));
}

/* True when the command names local bytes that its end does not have. */
static bool
is_astray(const struct ms_world *w, const struct as_op *o, const struct urn_abi_am_cmd *c)
{
	const struct as_end *e = &w->as->end[o->from];
	const struct as_zone *z = &e->zone[0];
	uint64_t first = as_address(e, z->at), last = first + z->len;

	return c->lkey != z->lkey[0] || c->local < first || c->local + c->len > last;
}

/* Bytes of a packet (AM-4): as many as the port of either node carries, or as the path MTU has
 * while the flow knows no better. */
static void
expect_chunk(const struct ms_world *w, struct as_op *o)
{
	uint32_t more = o->every > 1 ? 8 : 0; /* the number of the transfer's bytes */
	uint32_t to = o->node == AS_NONE ? 0 : (uint32_t)o->node;

	o->chunk = as_chunk(ms_flow_mtu(w, w->as->end[o->from].node), more);
	o->other[0] = as_chunk(ms_flow_mtu(w, to), more);
	o->other[1] = as_chunk(w->plan.mtu, more);
}

void
as_judge_post(struct ms_world *w, struct as_op *o, const struct urn_abi_am_cmd *c)
{
	uint32_t from = w->as->end[o->from].node;
	bool fits = c->len <= as_chunk(ms_flow_mtu(w, from), 0);

	o->reach = AS_REACH_NONE;
	o->can = 0;
	expect_chunk(w, o);
	if (is_nonsense(w, from, c) || (as_is_atomic(o) && is_atomic_nonsense(o, c)))
		o->can = BIT(URN_AM_BAD_COMMAND);
	else if (as_is_atomic(o) && c->remote % c->len)
		o->can = BIT(URN_AM_ALIGN);
	else if (as_is_atomic(o) || !is_astray(w, o, c))
		judge_target(w, o, c);
	else {
		/* The bytes of a short write are looked for when they are sent: the target may have
		 * refused it before, or the network. */
		o->tried = c->op == URN_AM_WRITE && fits;
		if (o->tried)
			judge_target(w, o, c);
		o->reach = AS_REACH_NONE;
		o->can |= BIT(URN_AM_LOCAL);
	}
	o->sane = !(o->can & (BIT(URN_AM_BAD_COMMAND) | BIT(URN_AM_ALIGN) | BIT(URN_AM_LOCAL)));
}

/* ---- events */

/* True when the operation's code may be blamed on the network. A reply that is lost with its flow
 * leaves NO REPLY; a target whose replies to anyone don't leave has no room for others (BUSY). */
static bool
is_network(const struct ms_world *w, const struct as_op *o, uint8_t code)
{
	uint32_t from = w->as->end[o->from].node, to = (uint32_t)o->node;
	bool back = as_flow_failed(w, to, from, o->posted);

	switch (code) {
	case URN_AM_UNREACHABLE:
		return back || as_flow_failed(w, from, to, o->posted);
	case URN_AM_RESTARTED:
		return as_flow_restarted(w, from, to, o->posted);
	case URN_AM_NO_REPLY:
		return back || as_was_down(w, to, o->posted);
	default:
		return as_any_failed(w, to, o->posted) || as_was_down(w, to, o->posted);
	}
}

/* True when the code names something that was so. */
static bool
is_true(const struct ms_world *w, const struct as_op *o, uint8_t code)
{
	if (o->can & BIT(code))
		return true;
	if (o->node == AS_NONE || (!o->sane && !o->tried))
		return false;
	switch (code) {
	case URN_AM_DONE:
		return o->reach == AS_REACH_ALL;
	case URN_AM_UNREACHABLE:
	case URN_AM_BUSY:
	case URN_AM_NO_REPLY:
	case URN_AM_RESTARTED:
		return is_network(w, o, code);
	default:
		return false;
	}
}

/* The bytes of the event must be those that are there. */
static void
judge_bytes(struct ms_world *w, const struct as_op *o, bool may_be)
{
	if (o->bytes > o->sure + o->perhaps)
		ms_fail(w, "operation %u: the event says %llu bytes, at most %u are there", o->id,
			(unsigned long long)o->bytes, o->sure + o->perhaps);
	if (!may_be && o->bytes < o->sure)
		ms_fail(w,
			"operation %u: the event (%s) says %llu bytes, and nothing of others; %u "
			"are there",
			o->id, urn_am_code_word(o->code), (unsigned long long)o->bytes, o->sure);
}

/* Bytes around a range are as they were. */
static void
check_around(struct ms_world *w, const struct as_mem *m, uint32_t off, uint32_t len, uint32_t end)
{
	uint32_t from = off - RTE_MIN(off, (uint32_t)AROUND);

	as_mem_check_range(w, m, from, off + len + AROUND - from, "around", end);
}

static void
judge_write(struct ms_world *w, struct as_op *o, bool may_be)
{
	struct as_end *to;

	if (!o->has_remote)
		return;
	to = &w->as->end[o->to];
	if (!o->frozen)
		look_at(w, o, &to->mem, o->remote);
	check_around(w, &to->mem, o->remote, o->len, to->id);
	judge_bytes(w, o, may_be);
	if (may_be)
		let_late(w, o);
	else if (!o->frozen) {
		as_mem_accept(&to->mem, o->remote, o->len);
		as_mem_give(&to->mem, o->remote, o->len, true);
		o->frozen = true;
	}
}

static void
judge_read(struct ms_world *w, struct as_op *o)
{
	if (o->has_local) {
		settle(w, o); /* no late byte arrives after the event */
		check_around(w, &w->as->end[o->from].mem, o->local, o->len, o->from);
		judge_bytes(w, o, false);
	}
	if (o->has_remote && !o->frozen)
		freeze(w, o);
}

static void
count(struct ms_world *w, uint8_t code)
{
	static const uint8_t stat[URN_AM_CODES] = {
		[URN_AM_BAD_KEY] = AS_BAD_KEY, [URN_AM_RANGE] = AS_RANGE,
		[URN_AM_RIGHTS] = AS_RIGHTS,   [URN_AM_LOCAL] = AS_LOCAL,
		[URN_AM_BUSY] = AS_BUSY,       [URN_AM_NO_REPLY] = AS_NO_REPLY};

	w->stats.done += code == URN_AM_DONE;
	w->stats.errors += code != URN_AM_DONE;
	if (stat[code])
		w->stats.more[stat[code]]++;
}

void
as_judge_event(struct ms_world *w, struct as_op *o, const struct urn_abi_am_event *ev)
{
	uint8_t code = ev->code & (uint8_t)~URN_AM_MAY_BE_THERE;
	bool may_be = ev->code & URN_AM_MAY_BE_THERE;

	if (ev->rsvd[0] || ev->rsvd[1] || ev->rsvd[2] || code >= URN_AM_CODES ||
	    (ev->bytes > o->len && !as_is_atomic(o)))
		ms_fail(w, "operation %u: the event makes no sense: code %u, %llu bytes", o->id,
			ev->code, (unsigned long long)ev->bytes);
	if (o->ended)
		ms_fail(w, "operation %u has a second event", o->id);
	o->code = code;
	o->bytes = ev->bytes;
	if (!is_true(w, o, code) || (may_be && (code == URN_AM_DONE || o->op == URN_AM_READ)))
		ms_fail(w, "operation %u ended with %s%s, which is not so", o->id,
			urn_am_code_word(code), may_be ? ", may be there" : "");
	if (code == URN_AM_DONE && ev->bytes != o->len && !as_is_atomic(o))
		ms_fail(w, "operation %u is done with %llu bytes of %u", o->id,
			(unsigned long long)ev->bytes, o->len);
	if (as_is_atomic(o))
		as_word_event(w, o, ev);
	else if (o->op == URN_AM_WRITE)
		judge_write(w, o, may_be);
	else
		judge_read(w, o);
	settle(w, o);
	as_fence_event(w, o);
	o->ended = true;
	w->stats.bytes += o->op == URN_AM_WRITE || o->op == URN_AM_READ ? ev->bytes : 0;
	w->stats.may_be += may_be;
	count(w, code);
}

/* ---- things that go */

void
as_judge_orphan(struct ms_world *w, struct as_op *o)
{
	settle(w, o);
	if (o->has_remote && !o->frozen && o->op == URN_AM_READ)
		freeze(w, o);
	let_late(w, o);
	o->orphan = true;
}

void
as_judge_revoke(struct ms_world *w, struct as_end *e, unsigned int zone, uint8_t code)
{
	struct as_sim *s = w->as;

	for (uint32_t i = s->first_op; i < s->ops; i++) {
		struct as_op *o = &s->op[i];

		if (zone && o->to == (int32_t)e->id && o->zone == (int32_t)zone) {
			if (o->has_remote && !o->frozen) {
				w->stats.more[AS_FROZEN] += !o->ended && !o->orphan;
				freeze(w, o);
			}
			o->can |= BIT(code);
		}
		if (!zone && o->from == e->id && o->has_local && !o->ended && !o->orphan) {
			settle(w, o);
			o->can |= BIT(code);
		}
	}
	as_mem_check(w, &e->mem, "revoked", e->id);
	if (e->zone[zone].late)
		ms_fail(w, "end %u, zone %u: %u late writes are not accounted for", e->id, zone,
			e->zone[zone].late);
}

void
as_judge_close(struct ms_world *w, struct as_end *e)
{
	struct as_sim *s = w->as;

	for (unsigned int z = 1; z < AS_ZONES; z++)
		as_judge_revoke(w, e, z, URN_AM_NO_ENDPOINT);
	for (uint32_t i = s->first_op; i < s->ops; i++) {
		struct as_op *o = &s->op[i];

		if (o->to == (int32_t)e->id)
			o->can |= BIT(URN_AM_NO_ENDPOINT);
		if (o->from == e->id && !o->ended && !o->orphan) {
			as_judge_orphan(w, o);
			w->pending--;
		}
	}
	as_mem_check(w, &e->mem, "closed", e->id);
}

/* ---- looks */

/* Forget operations that have ended, and left nothing behind. */
static void
forget(struct ms_world *w)
{
	struct as_sim *s = w->as;

	for (; s->first_op < s->ops; s->first_op++) {
		struct as_op *o = &s->op[s->first_op];

		if (!(o->ended || o->orphan) || (o->has_remote && !o->frozen))
			return;
		free(o->want);
		o->want = NULL;
	}
}

void
as_judge_look(struct ms_world *w)
{
	struct as_sim *s = w->as;

	forget(w);
	for (uint32_t i = 0; i < s->ends; i++) {
		struct as_end *e = &s->end[i];

		if (!e->ep)
			continue;
		as_mem_check(w, &e->mem, "look", i);
		if (!e->under || atomic_load(&e->regs->dp.events) != e->events ||
		    w->now - e->progress < w->plan.bound)
			continue;
		ms_fail(w, "end %u: no operation of %u has ended for %.3f ms", i, e->under,
			(double)(w->now - e->progress) / 1e6);
	}
}

void
as_judge_end(struct ms_world *w)
{
	struct as_sim *s = w->as;

	for (uint32_t i = 0; i < s->ops; i++) {
		struct as_op *o = &s->op[i];

		if (!o->ended && !o->orphan)
			ms_fail(w, "operation %u has no event at the end", i);
		if (o->has_remote && !o->frozen)
			freeze(w, o);
	}
	for (uint32_t i = 0; i < s->ends; i++)
		as_mem_check(w, &s->end[i].mem, "end", i);
	w->stats.messages += w->mails;
}
