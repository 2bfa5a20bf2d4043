/* SPDX-License-Identifier: BSD-3-Clause */
/* Sabotage: imitates one bug of a broken product in each run, to test that the oracles notice. */
#include "amsim.h"

#include "am/priv.h"

#include <errno.h>

enum { AFTER = 10 }; /* operations that are well before */

/* X(id, name, text) */
/* clang-format off */
#define AS_SABOTAGES(X) \
	X(LOST, "lost", "an event is not written") \
	X(TWICE, "twice", "an event is written twice") \
	X(EARLY, "early", "a write is done before its last byte is in place") \
	X(TORN, "torn", "a byte of a read is wrong") \
	X(OUTSIDE, "outside", "a byte outside of all ranges is written") \
	X(BEHIND, "behind", "a byte behind the range of a write is written") \
	X(LIE, "lie", "a good operation ends with range") \
	X(DENIED, "denied", "a write that was done ends with an error, and not may be there") \
	X(GRANTED, "granted", "a wrong operation is done") \
	X(COUNT, "count", "an event has wrong bytes") \
	X(REVOKED, "revoked", "a byte is written after its region was taken back") \
	X(STALL, "stall", "the doorbells of an endpoint are lost") \
	X(PACKET, "packet", "a packet of an operation is lost to the pool") \
	X(REPLY, "reply", "a reply is lost to the pool") \
	X(ONCE_MORE, "once", "an atomic operation is carried out twice") \
	X(OLD, "old", "an atomic operation has another old value") \
	X(FENCE, "fence", "an operation does not wait at a fence") \
	X(MBUF, "mbuf", "a frame is lost to the pool") \
	X(UNHEARD, "unheard", "a request is answered, and its handler does not run") \
	X(HEARD, "heard", "a request's handler runs twice") \
	X(MUTE, "mute", "a reply is lost in the library") \
	X(AGAIN, "again", "a reply comes twice") \
	X(GARBLED, "garbled", "a reply has other bytes") \
	X(UNTOLD, "untold", "a failure is not told") \
	X(EXCUSE, "excuse", "a failure has another reason")
/* clang-format on */

enum {
	NOTHING,
#define X(id, name, text) id,
	AS_SABOTAGES(X)
#undef X
		COUNT_OF,
};

static const struct {
	const char *name, *text;
} names[COUNT_OF] = {
#define X(id, name, text) [id] = {name, text},
	AS_SABOTAGES(X)
#undef X
};

const char *
as_sabotage_name(unsigned int i, const char **text)
{
	if (!i || i >= COUNT_OF)
		return NULL;
	*text = names[i].text;
	return names[i].name;
}

/* True when it is time to break something, which is noted. */
static bool
now(struct ms_world *w, unsigned int what, bool fits)
{
	if (w->sabotage != what || w->as->broken || !fits || w->stats.done < AFTER)
		return false;
	w->as->broken = 1;
	w->stats.more[AS_BROKEN]++;
	ms_trace(w, "sabotage: %s", names[what].text);
	return true;
}

/* Write a byte of memory that is to stay as it is. */
static void
spoil_memory(struct ms_world *w, const struct as_op *o, bool done)
{
	uint8_t *from = w->as->end[o->from].mem.at;
	const struct as_mem *to;

	if (now(w, TORN, done && o->op == URN_AM_READ && !o->settled))
		from[o->local + o->len / 2] ^= 1;
	if (now(w, OUTSIDE, true))
		from[AS_GUARD / 2] ^= 1;
	if (!done || o->op != URN_AM_WRITE || !o->has_remote || o->frozen)
		return;
	to = &w->as->end[o->to].mem;
	if (now(w, EARLY, true))
		to->at[o->remote + o->len - 1] ^= 1;
	if (now(w, BEHIND, to->busy[o->remote + o->len] != AS_WRITER))
		to->at[o->remote + o->len] ^= 1;
}

static void
spoil_event(struct ms_world *w, struct as_op *o, struct urn_abi_am_event *ev)
{
	bool done = ev->code == URN_AM_DONE, write = o->op == URN_AM_WRITE;

	if (now(w, LIE, done && !(o->can & 1u << URN_AM_RANGE)))
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_RANGE};
	if (now(w, DENIED, done && write)) {
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_BUSY};
		o->can |= 1u << URN_AM_BUSY; /* the code alone is no lie */
	}
	if (now(w, GRANTED, !done && o->reach != AS_REACH_ALL && !as_is_atomic(o)))
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_DONE, .bytes = o->len};
	if (now(w, COUNT, ev->bytes != 0 && !as_is_atomic(o)))
		ev->bytes--;
	if (now(w, OLD, done && as_is_atomic(o)))
		ev->bytes += 0x10001;
}

/* Imitate bugs of atomic operations and fences. */
static void
spoil_order(struct ms_world *w, struct as_op *o, bool done)
{
	const struct as_end *to = o->to == AS_NONE ? NULL : &w->as->end[o->to];
	uint32_t open = w->as->first_op;

	if (now(w, ONCE_MORE, done && o->op == URN_AM_FETCH_ADD && to && to->ep))
		to->mem.at[o->remote] ^= 0x80;
	while (open < o->id && (w->as->op[open].ended || w->as->op[open].from != o->from))
		open++;
	if (now(w, FENCE, done && open < o->id))
		o->fence = o->id;
}

bool
as_sabotage_event(struct ms_world *w, struct as_op *o, struct urn_abi_am_event *ev, bool *twice)
{
	if (!w->sabotage)
		return true;
	*twice = now(w, TWICE, true);
	if (now(w, LOST, true))
		return false;
	spoil_memory(w, o, ev->code == URN_AM_DONE);
	spoil_order(w, o, ev->code == URN_AM_DONE);
	spoil_event(w, o, ev);
	return true;
}

/* Lose a packet or a reply of the engine to its pool. */
static void
leak(struct ms_node *n)
{
	static const uint8_t nobody[16] = {1};
	struct ms_world *w = n->w;
	struct as_end *e = as_end_at(n, 0);

	if (now(w, MBUF, true))
		(void)rte_pktmbuf_alloc(w->pool);
	if (now(w, REPLY, true))
		(void)urn_am_reply_get(n->am, nobody);
	if (now(w, PACKET, e != NULL))
		n->am->outs++;
}

void
as_sabotage_turn(struct ms_node *n)
{
	if (n->w->sabotage)
		leak(n);
}

bool
as_sabotage_rung(struct ms_world *w, const struct as_end *e)
{
	if (now(w, STALL, true))
		w->as->deaf = e->id;
	return w->sabotage != STALL || !w->as->broken || w->as->deaf != e->id;
}

void
as_sabotage_revoked(struct ms_world *w, struct as_end *e, unsigned int zone)
{
	const struct as_zone *z = &e->zone[zone];

	if (now(w, REVOKED, e->mem.busy[z->part[0].at] != AS_WRITER))
		e->mem.at[z->part[0].at] ^= 1;
}

unsigned int
as_sabotage_request(struct ms_world *w)
{
	if (now(w, UNHEARD, true))
		return 0;
	return now(w, HEARD, true) ? 2 : 1;
}

unsigned int
as_sabotage_reply(struct ms_world *w, bool *spoil)
{
	*spoil = now(w, GARBLED, true);
	if (now(w, MUTE, true))
		return 0;
	return now(w, AGAIN, true) ? 2 : 1;
}

bool
as_sabotage_failure(struct ms_world *w, struct as_request *r, struct urn_am_failure *f)
{
	(void)r;
	if (now(w, EXCUSE, f->err == ENOSYS))
		f->err = ETIMEDOUT;
	return !now(w, UNTOLD, true);
}
