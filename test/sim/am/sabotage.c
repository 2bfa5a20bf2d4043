/* SPDX-License-Identifier: BSD-3-Clause */
/* Sabotage: imitates one bug of a broken product in each run, to test that the oracles notice. */
#include "sabotage.h"

#include "am/priv.h"

#include <errno.h>

enum { AFTER = 10 }; /* operations that are well before */

static const struct {
	const char *name, *text;
} names[AS_BREAKS] = {
#define X(id, name, text) [AS_BREAK_##id] = {name, text},
	AS_SABOTAGES(X)
#undef X
};

const char *
as_sabotage_name(unsigned int i, const char **text)
{
	if (!i || i >= AS_BREAKS)
		return NULL;
	*text = names[i].text;
	return names[i].name;
}

bool
as_sabotage_now(struct ms_world *w, enum as_sabotage what, bool fits)
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

	if (as_sabotage_now(w, AS_BREAK_TORN, done && o->op == URN_AM_READ && !o->settled))
		from[o->local + o->len / 2] ^= 1;
	if (as_sabotage_now(w, AS_BREAK_OUTSIDE, true))
		from[AS_GUARD / 2] ^= 1;
	if (!done || o->op != URN_AM_WRITE || !o->has_remote || o->frozen)
		return;
	to = &w->as->end[o->to].mem;
	if (as_sabotage_now(w, AS_BREAK_EARLY, true))
		to->at[o->remote + o->len - 1] ^= 1;
	if (as_sabotage_now(w, AS_BREAK_BEHIND, to->busy[o->remote + o->len] != AS_WRITER))
		to->at[o->remote + o->len] ^= 1;
}

static void
spoil_event(struct ms_world *w, struct as_op *o, struct urn_abi_am_event *ev)
{
	bool done = ev->code == URN_AM_DONE, write = o->op == URN_AM_WRITE;

	if (as_sabotage_now(w, AS_BREAK_LIE, done && !(o->can & 1u << URN_AM_RANGE)))
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_RANGE};
	if (as_sabotage_now(w, AS_BREAK_DENIED, done && write)) {
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_BUSY};
		o->can |= 1u << URN_AM_BUSY; /* the code alone is no lie */
	}
	if (as_sabotage_now(w, AS_BREAK_GRANTED,
			    !done && o->reach != AS_REACH_ALL && !as_is_atomic(o)))
		*ev = (struct urn_abi_am_event){.id = ev->id, .code = URN_AM_DONE, .bytes = o->len};
	if (as_sabotage_now(w, AS_BREAK_COUNT, ev->bytes != 0 && !as_is_atomic(o)))
		ev->bytes--;
	if (as_sabotage_now(w, AS_BREAK_OLD, done && as_is_atomic(o)))
		ev->bytes += 0x10001;
}

/* Imitate bugs of atomic operations and fences. */
static void
spoil_order(struct ms_world *w, struct as_op *o, bool done)
{
	const struct as_end *to = o->to == AS_NONE ? NULL : &w->as->end[o->to];
	uint32_t open = w->as->first_op;

	if (as_sabotage_now(w, AS_BREAK_ONCE_MORE,
			    done && o->op == URN_AM_FETCH_ADD && to && to->ep))
		to->mem.at[o->remote] ^= 0x80;
	while (open < o->id && (w->as->op[open].ended || w->as->op[open].from != o->from))
		open++;
	if (as_sabotage_now(w, AS_BREAK_FENCE, done && open < o->id))
		o->fence = o->id;
}

bool
as_sabotage_event(struct ms_world *w, struct as_op *o, struct urn_abi_am_event *ev, bool *twice)
{
	if (!w->sabotage)
		return true;
	*twice = as_sabotage_now(w, AS_BREAK_TWICE, true);
	if (as_sabotage_now(w, AS_BREAK_LOST, true))
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

	if (as_sabotage_now(w, AS_BREAK_MBUF, true))
		(void)rte_pktmbuf_alloc(w->pool);
	if (as_sabotage_now(w, AS_BREAK_REPLY, true))
		(void)urn_am_reply_get(n->am, nobody);
	if (as_sabotage_now(w, AS_BREAK_PACKET, e != NULL))
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
	if (as_sabotage_now(w, AS_BREAK_STALL, true))
		w->as->deaf = e->id;
	return w->sabotage != AS_BREAK_STALL || !w->as->broken || w->as->deaf != e->id;
}

void
as_sabotage_revoked(struct ms_world *w, struct as_end *e, unsigned int zone)
{
	const struct as_zone *z = &e->zone[zone];

	if (as_sabotage_now(w, AS_BREAK_REVOKED, e->mem.busy[z->part[0].at] != AS_WRITER))
		e->mem.at[z->part[0].at] ^= 1;
}

unsigned int
as_sabotage_request(struct ms_world *w)
{
	if (as_sabotage_now(w, AS_BREAK_UNHEARD, true))
		return 0;
	return as_sabotage_now(w, AS_BREAK_HEARD, true) ? 2 : 1;
}

unsigned int
as_sabotage_reply(struct ms_world *w, bool *spoil)
{
	*spoil = as_sabotage_now(w, AS_BREAK_GARBLED, true);
	if (as_sabotage_now(w, AS_BREAK_MUTE, true))
		return 0;
	return as_sabotage_now(w, AS_BREAK_AGAIN, true) ? 2 : 1;
}

bool
as_sabotage_failure(struct ms_world *w, struct as_request *r, struct urn_am_failure *f)
{
	(void)r;
	if (as_sabotage_now(w, AS_BREAK_EXCUSE, f->err == ENOSYS))
		f->err = ETIMEDOUT;
	return !as_sabotage_now(w, AS_BREAK_UNTOLD, true);
}
