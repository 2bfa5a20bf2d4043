/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle of atomic operations and fences. Each end has some words in a region of their own.
 * Words of one half are only added to, by 1; in the others each operation stores a value that no
 * other stores. Operations that ended with "may be there", and those whose end was closed, were
 * carried out or not:
 *
 *   add    old values differ; the sum is the number of operations that were done, or up to that of
 * all swap   an old value is the first one, or was stored by an operation that may have been
 * carried out; no value is taken twice; the last value was not taken
 */
#include "amsim.h"

static bool
is_short(uint32_t word)
{
	return word % 2;
}

static bool
is_sum(uint32_t word)
{
	return word % 4 < 2;
}

/* Value of a word now. */
static uint64_t
value_of(const struct as_end *e, uint32_t word)
{
	const uint8_t *at = e->mem.at + e->zone[AS_WORD_ZONE].at + 8 * word;
	uint64_t v = 0;

	memcpy(&v, at, is_short(word) ? 4 : 8);
	return v;
}

void
as_words_open(struct ms_world *w, struct as_end *e)
{
	const struct as_zone *z = &e->zone[AS_WORD_ZONE];

	for (uint32_t i = 0; i < AS_WORDS; i++)
		e->first[i] = value_of(e, i);
	if (!as_mem_take(&e->mem, z->at, z->len, true))
		ms_fail(w, "end %u has no room for words", e->id);
}

void
as_words_close(struct ms_world *w, struct as_end *e)
{
	const struct as_zone *z = &e->zone[AS_WORD_ZONE];

	for (uint32_t i = 0; i < AS_WORDS; i++) {
		uint32_t behind = z->at + 8 * i + 4;

		e->last[i] = value_of(e, i);
		if (is_short(i) && memcmp(e->mem.at + behind, e->mem.was + behind, 4) != 0)
			ms_fail(w, "end %u: bytes behind word %u were changed", e->id, i);
	}
	as_mem_accept(&e->mem, z->at, z->len);
	as_mem_give(&e->mem, z->at, z->len, true);
}

void
as_word_choose(struct ms_world *w, const struct as_end *to, struct as_op *o)
{
	o->word = (uint32_t)ms_upto(w, AS_WORDS);
	o->len = is_short(o->word) ? 4 : 8;
	o->zone = AS_WORD_ZONE;
	o->remote = to->zone[AS_WORD_ZONE].at + 8 * o->word;
	o->every = 0;
	o->way = ms_one_in(w, 2) ? URN_AM_AUTO : URN_AM_DIRECT;
	o->value = 1;
	o->op = URN_AM_FETCH_ADD;
	if (is_sum(o->word))
		return;
	o->op = ms_one_in(w, 2) ? URN_AM_SWAP : URN_AM_COMPARE_SWAP;
	o->value = 0x10000000u + o->id;
	/* Most of the time the value that is there now, which others may change before. */
	o->compare = ms_one_in(w, 4) ? o->value : value_of(to, o->word);
}

void
as_word_event(struct ms_world *w, struct as_op *o, const struct urn_abi_am_event *ev)
{
	if (o->code != URN_AM_DONE && ev->bytes)
		ms_fail(w, "operation %u failed, and has the old value %llx", o->id,
			(unsigned long long)ev->bytes);
	if (o->len == 4 && ev->bytes >> 32)
		ms_fail(w, "operation %u has an old value of more than 4 bytes", o->id);
	o->bytes = ev->bytes;
	o->unknown = ev->code & URN_AM_MAY_BE_THERE;
	w->stats.more[AS_ATOMICS]++;
}

/* ---- the end */

static bool
is_done(const struct as_op *o)
{
	return o->ended && o->code == URN_AM_DONE;
}

/* True when the operation stored its value, or may have. */
static bool
may_have_stored(const struct as_op *o)
{
	if (o->orphan || o->unknown)
		return true;
	return is_done(o) && (o->op != URN_AM_COMPARE_SWAP || o->bytes == o->compare);
}

static bool
is_of(const struct as_op *o, const struct as_end *e, uint32_t word)
{
	return o->to == (int32_t)e->id && o->zone == AS_WORD_ZONE && o->reach == AS_REACH_ALL &&
	       o->word == word;
}

static void
judge_sum(struct ms_world *w, const struct as_end *e, uint32_t word)
{
	const struct as_sim *s = w->as;
	uint64_t mask = is_short(word) ? UINT32_MAX : UINT64_MAX,
		 sum = (e->last[word] - e->first[word]) & mask;
	uint32_t done = 0, maybe = 0;

	for (uint32_t i = 0; i < s->ops; i++) {
		const struct as_op *o = &s->op[i];

		if (!is_of(o, e, word))
			continue;
		done += is_done(o);
		maybe += o->orphan || o->unknown;
		if (is_done(o) && ((o->bytes - e->first[word]) & mask) >= sum)
			ms_fail(w, "operation %u: word %u of end %u never was %llx", i, word, e->id,
				(unsigned long long)o->bytes);
		for (uint32_t k = 0; k < i && is_done(o); k++)
			if (is_of(&s->op[k], e, word) && is_done(&s->op[k]) &&
			    s->op[k].bytes == o->bytes)
				ms_fail(w, "operations %u and %u have the same old value", k, i);
	}
	if (sum < done || sum > (uint64_t)done + maybe)
		ms_fail(w,
			"word %u of end %u: the sum is %llu of %u operations, %u of them unknown",
			word, e->id, (unsigned long long)sum, done + maybe, maybe);
}

/* An old value must have been there; nobody else may have taken it. */
static void
judge_old(struct ms_world *w, const struct as_end *e, const struct as_op *o)
{
	const struct as_sim *s = w->as;
	bool there = o->bytes == e->first[o->word];

	for (uint32_t i = 0; i < s->ops; i++) {
		const struct as_op *by = &s->op[i];

		if (by == o || !is_of(by, e, o->word))
			continue;
		there |= by->value == o->bytes && may_have_stored(by);
		if (is_done(by) && may_have_stored(by) && may_have_stored(o) &&
		    by->bytes == o->bytes)
			ms_fail(w, "operations %u and %u took the same value", o->id, i);
	}
	if (!there)
		ms_fail(w, "operation %u: word %u of end %u never was %llx", o->id, o->word, e->id,
			(unsigned long long)o->bytes);
	if (may_have_stored(o) && o->bytes == e->last[o->word])
		ms_fail(w, "operation %u: word %u of end %u has again the value before", o->id,
			o->word, e->id);
}

static void
judge_swaps(struct ms_world *w, const struct as_end *e, uint32_t word)
{
	const struct as_sim *s = w->as;
	bool there = e->last[word] == e->first[word];

	for (uint32_t i = 0; i < s->ops; i++) {
		const struct as_op *o = &s->op[i];

		if (!is_of(o, e, word))
			continue;
		there |= may_have_stored(o) && o->value == e->last[word];
		if (is_done(o))
			judge_old(w, e, o);
	}
	if (!there)
		ms_fail(w, "word %u of end %u: nobody stored %llx", word, e->id,
			(unsigned long long)e->last[word]);
}

void
as_words_judge(struct ms_world *w)
{
	for (uint32_t i = 0; i < w->as->ends; i++)
		for (uint32_t k = 0; k < AS_WORDS; k++)
			if (is_sum(k))
				judge_sum(w, &w->as->end[i], k);
			else
				judge_swaps(w, &w->as->end[i], k);
}

/* ---- fences */

void
as_fence_event(struct ms_world *w, const struct as_op *o)
{
	const struct as_sim *s = w->as;

	for (uint32_t i = s->first_op; i < o->fence; i++)
		if (s->op[i].from == o->from && !s->op[i].ended)
			ms_fail(w,
				"operation %u ended before operation %u, which a fence before %u "
				"waits for",
				o->id, i, o->fence);
}
