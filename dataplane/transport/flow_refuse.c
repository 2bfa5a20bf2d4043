/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: refused messages. The receiver remembers the codes of each packet with a refused message
 * until the sender's packets show that the sender knows them. An acknowledgement has room for
 * URN_FLOW_REFUSED_MAX packets, and the window for more: therefore an acknowledgement says that a
 * packet came only together with the codes of the packet.
 *
 *   refused ─► new ─ in an acknowledgement ─► told ─ sender's una is behind it ─► forgotten
 *               ▲                               │
 *               └── the packet came once more ──┘
 *
 * New refusals go out at once, in as many acknowledgements as they need. Told ones fill the room
 * that is left, the oldest first: the sender moves on with these. An acknowledgement that gets lost
 * is missed by the sender, which repeats the packets; their refusals are new again.
 */
#include "transport/flow_priv.h"

#include <stdlib.h>

enum { CODE_BITS = 4 };
_Static_assert(URN_MSG_CODES <= 1 << CODE_BITS && URN_FLOW_SEGMENTS * CODE_BITS <= 64,
	       "urn_flow_refusal.codes");

/* Bytes of the heap that malloc() takes for an object. */
#define HEAP(bytes) (((bytes) + 8 + 15) / 16 * 16)
_Static_assert(
	HEAP(sizeof(struct urn_flow)) + HEAP(sizeof(struct urn_flow_strand)) +
			HEAP(sizeof(struct urn_peer)) +
			HEAP(sizeof(struct urn_flow_refusals) +
			     URN_FLOW_REFUSALS * sizeof(struct urn_flow_refusal)) <=
		1024,
	"memory of an active flow of one owner, with refusals, and what is known of the way");

/* ---- memory */

static struct urn_flow_refusals *
make_refusals(uint16_t room)
{
	struct urn_flow_refusals *r =
		malloc(sizeof(*r) + room * sizeof(r->of[0])); /* after the spare was taken */

	if (r)
		r->room = room;
	return r;
}

void
urn_flows_put_refusals(struct urn_flows *fl, struct urn_flow_refusals *r)
{
	struct urn_flow_refusals **spare =
		r->room == URN_FLOW_REFUSALS ? &fl->spare : &fl->spare_large;

	fl->large -= r->room != URN_FLOW_REFUSALS;
	if (*spare)
		free(r);
	else
		*spare = r;
}

/* Give a flow places for a whole window. returns: false: too many flows have them, or no memory */
static bool
enlarge(struct urn_flows *fl, struct urn_flow *f)
{
	struct urn_flow_refusals *r = f->refusals, *l = fl->spare_large;

	if (r->room != URN_FLOW_REFUSALS || fl->large >= URN_FLOW_REFUSALS_LARGE)
		return false;
	if (!l)
		l = make_refusals(URN_FLOW_WINDOW);
	if (!l)
		return false;
	fl->spare_large = NULL;
	fl->large++;
	l->n = r->n;
	l->una = r->una;
	memcpy(l->of, r->of, r->n * sizeof(r->of[0]));
	f->refusals = l;
	urn_flows_put_refusals(fl, r);
	return true;
}

bool
urn_flow_refusals_room(struct urn_tp *tp, struct urn_flow *f, uint32_t psn)
{
	struct urn_flows *fl = tp->flows;
	struct urn_flow_refusals *r = f->refusals;

	if (unlikely(r != NULL))
		return r->n + 1u < r->room || enlarge(fl, f) ||
		       (psn == f->expected && r->n < r->room);
	if (unlikely(!fl->spare))
		fl->spare = make_refusals(URN_FLOW_REFUSALS);
	return fl->spare != NULL;
}

void
urn_flow_drop_refusals(struct urn_tp *tp, struct urn_flow *f)
{
	if (f->refusals)
		urn_flows_put_refusals(tp->flows, f->refusals);
	f->refusals = NULL;
}

void
urn_flows_free_refusals(struct urn_flows *fl)
{
	free(fl->spare);
	free(fl->spare_large);
}

/* ---- refusals that are remembered */

void
urn_flow_forget_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t una)
{
	struct urn_flow_refusals *r = f->refusals;
	uint16_t n = 0;

	if (una == r->una)
		return;
	r->una = una;
	for (uint32_t i = 0; i < r->n; i++)
		if (urn_psn_diff(r->of[i].psn, una) >= 0)
			r->of[n++] = r->of[i];
	r->n = n;
	if (!n)
		urn_flow_drop_refusals(tp, f);
}

void
urn_flow_note_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t psn,
		       const uint8_t code[URN_FLOW_SEGMENTS])
{
	struct urn_flow_refusal *e;

	if (!f->refusals) {
		f->refusals = tp->flows->spare;
		f->refusals->n = 0;
		f->refusals->una = psn;
		tp->flows->spare = NULL;
	}
	e = &f->refusals->of[f->refusals->n++];
	*e = (struct urn_flow_refusal){.psn = psn & URN_PSN_MASK};
	for (unsigned int i = 0; i < URN_FLOW_SEGMENTS; i++)
		e->codes |= (uint64_t)code[i] << (i * CODE_BITS);
}

void
urn_flow_tell_again(struct urn_flow *f, uint32_t psn)
{
	struct urn_flow_refusals *r = f->refusals;

	for (uint32_t i = 0; i < r->n; i++)
		if (r->of[i].psn == psn)
			r->of[i].told = false;
}

/* ---- acknowledgements */

/* Choose refusals that were told, or such that were not, from the oldest on, until the
 * acknowledgement is full. */
static void
choose(struct urn_flow_refusals *r, bool told, struct urn_flow_said *s)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct urn_flow_refusal *e = &r->of[i];

		if (e->told != told)
			continue;
		e->in = s->n < URN_FLOW_REFUSED_MAX;
		s->n += e->in;
		s->more |= !e->in && !told;
	}
}

static inline void
bit_set(struct urn_flow_said *s, uint32_t psn)
{
	s->bitmap[psn % URN_FLOW_WINDOW / 64] |= 1ull << (psn % 64);
}

static inline void
bit_clear(struct urn_flow_said *s, uint32_t psn)
{
	s->bitmap[psn % URN_FLOW_WINDOW / 64] &= ~(1ull << (psn % 64));
}

/*
 * Say nothing about the packets whose refusals find no place here, nor about any behind a new one
 * of those: the sender would take the packet as overtaken, and the next acknowledgement tells of
 * it.
 */
static void
hide(const struct urn_flow *f, struct urn_flow_said *s)
{
	const struct urn_flow_refusals *r = f->refusals;
	int32_t clear = URN_FLOW_WINDOW, ahead;

	for (uint32_t i = 0; i < r->n; i++)
		if (!r->of[i].in && urn_psn_diff(r->of[i].psn, s->expected) < 0)
			s->expected = r->of[i].psn;
	for (uint32_t i = 0; i < URN_FLOW_WINDOW && urn_psn_add(s->expected, i) != f->expected; i++)
		bit_set(s, urn_psn_add(s->expected, i));
	for (uint32_t i = 0; i < r->n; i++) {
		bit_clear(s, r->of[i].psn);
		ahead = urn_psn_diff(r->of[i].psn, s->expected);
		if (!r->of[i].in && !r->of[i].told && ahead < clear)
			clear = ahead;
	}
	for (; clear < URN_FLOW_WINDOW; clear++)
		bit_clear(s, urn_psn_add(s->expected, (uint32_t)clear));
	for (uint32_t i = 0; i < r->n; i++)
		if (r->of[i].in && urn_psn_diff(r->of[i].psn, s->expected) > 0)
			bit_set(s, r->of[i].psn);
}

URN_FAST void
urn_flow_say(struct urn_flow *f, struct urn_flow_said *s)
{
	memcpy(s->bitmap, f->bitmap, sizeof(s->bitmap));
	s->expected = f->expected;
	s->n = 0;
	s->more = false;
	if (likely(!f->refusals))
		return;
	choose(f->refusals, false, s);
	choose(f->refusals, true, s);
	if (s->n < f->refusals->n)
		hide(f, s);
}

void
urn_flow_put_said(struct urn_flow *f, struct urn_flow_refused *to)
{
	struct urn_flow_refusals *r = f->refusals;

	for (uint32_t i = 0; r && i < r->n; i++) {
		struct urn_flow_refusal *e = &r->of[i];

		if (!e->in)
			continue;
		e->told = true;
		to->psn = rte_cpu_to_be_32(e->psn);
		for (unsigned int k = 0; k < URN_FLOW_SEGMENTS; k++)
			to->code[k] =
				(uint8_t)(e->codes >> (k * CODE_BITS) & ((1u << CODE_BITS) - 1));
		to++;
	}
}
