/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the ends of a path (FO-19). */
#include "session/heal.h"

void
urn_sess_heal_begin(struct urn_sess_heal *h)
{
	*h = (struct urn_sess_heal){.own = 1, .to = 1, .seen = 1, .bound = 1, .agreed = true};
}

void
urn_sess_heal_made(struct urn_sess_heal *h)
{
	h->own++;
	h->to = 0;
	h->agreed = false;
}

void
urn_sess_heal_connected(struct urn_sess_heal *h, uint32_t round, bool agreed)
{
	h->to = h->seen = round;
	h->agreed = agreed;
}

/* The peer's end is the one that ours is connected to. */
static enum urn_sess_heal_step
same(const struct urn_sess_heal *h, uint32_t to)
{
	/* Else the peer's end lacks ours, or has an earlier one, and will be made anew. */
	return to == h->own ? URN_SESS_HEAL_AGREED : URN_SESS_HEAL_TELL;
}

/* Our end is not connected: it must not be to a peer's end that has another one of ours. */
static enum urn_sess_heal_step
unconnected(const struct urn_sess_heal *h, uint32_t to)
{
	return to == 0 || to == h->own ? URN_SESS_HEAL_CONNECT : URN_SESS_HEAL_TELL;
}

/* An offer of an end that is gone, or of before that end was connected. An end that believed the
 * latter would connect to one that can't be its own any more, and the peer's to the one before:
 * with two such offers on their way the ends would make each other anew for ever. */
static bool
old(const struct urn_sess_heal *h, uint32_t round, uint32_t to)
{
	return round < h->seen || (round == h->seen && to == 0 && h->bound != 0);
}

enum urn_sess_heal_step
urn_sess_heal_judge(struct urn_sess_heal *h, uint32_t round, uint32_t to)
{
	if (round == 0 || to > h->own || (round > h->seen && round - h->seen > URN_SESS_HEAL_AHEAD))
		return URN_SESS_HEAL_FORGED;
	if (old(h, round, to))
		return URN_SESS_HEAL_OLD;
	h->seen = round;
	h->bound = to;
	if (h->to == 0)
		return unconnected(h, to);
	if (h->to == round)
		return same(h, to);
	return to == 0 ? URN_SESS_HEAL_REMAKE_CONNECT : URN_SESS_HEAL_REMAKE;
}
