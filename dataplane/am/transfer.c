/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of peers' transfers, data that came before its request, and tags that were retired or
 * have ended well (AM-5, AM-7). Each has a bound for the engine, and the first two one for the
 * nodes of a bucket.
 */
#include "am/tagged.h"
#include "transport/sched.h"

#include <stdlib.h>
#include <string.h>

#include "base/rnd.h"

static const struct urn_am_bound transfers = {URN_AM_TRANSFERS, URN_AM_NODE_TRANSFERS,
					      URN_AM_KEEP_TRANSFERS};
static const struct urn_am_bound earlies = {URN_AM_EARLY, URN_AM_NODE_EARLY, URN_AM_KEEP_EARLY};

static const char *const words[] = {
#define X(name, word) [URN_AM_TRANSFER_##name] = (word),
	URN_AM_TRANSFER_STATES(X)
#undef X
};

const char *
urn_am_transfer_word(uint8_t state)
{
	return state < RTE_DIM(words) ? words[state] : "unknown";
}

struct urn_am_tagged *
urn_am_tagged_create(uint64_t seed)
{
	struct urn_am_tagged *tg = calloc(1, sizeof(*tg));
	uint32_t rnd = (uint32_t)urn_rnd_at(seed, 3);

	if (!tg)
		return NULL;
	tg->user.ops = &urn_am_progress_ops;
	tg->user.source.kind = URN_SOURCE_OPS;
	tg->timer.timer.kind = URN_TIMER_SOURCE;
	tg->timer.source = &tg->user.source;
	urn_pool_init(&tg->pool, 0, URN_AM_TRANSFERS);
	urn_am_rma_init(&tg->queue);
	TAILQ_INIT(&tg->turn);
	tg->transfer = calloc(URN_AM_TRANSFERS, sizeof(*tg->transfer));
	tg->kept = URN_AM_NODES * URN_AM_KEEP_TRANSFERS;
	tg->early_kept = URN_AM_NODES * URN_AM_KEEP_EARLY;
	tg->retired = calloc(URN_AM_RETIRED, sizeof(*tg->retired));
	tg->past = calloc(URN_AM_PAST, sizeof(*tg->past));
	if (!tg->transfer || !tg->retired || !tg->past ||
	    urn_hash_init(&tg->hash, URN_AM_TRANSFERS, rnd) != 0 ||
	    urn_hash_init(&tg->retired_hash, URN_AM_RETIRED, rnd) != 0) {
		urn_am_tagged_destroy(tg);
		return NULL;
	}
	return tg;
}

void
urn_am_tagged_destroy(struct urn_am_tagged *tg)
{
	struct urn_am_early *e;

	if (!tg)
		return;
	while ((e = tg->early_free)) {
		tg->early_free = e->next;
		free(e);
	}
	urn_hash_fini(&tg->hash);
	urn_hash_fini(&tg->retired_hash);
	free(tg->transfer);
	free(tg->retired);
	free(tg->past);
	free(tg);
}

/* The bucket of a tag and the number of the other endpoint. */
static uint32_t *
bucket_of(const struct urn_hash *h, uint64_t qid, uint64_t tag)
{
	const uint64_t key[2] = {qid, tag};
	uint32_t word[4];

	memcpy(word, key, sizeof(word));
	return urn_hash_bucket(h, word, 4);
}

/* ---- transfers */

static bool
is(const struct urn_am_transfer *t, const struct urn_am_ep *ep, const struct urn_flow_from *from,
   uint64_t tag)
{
	return t->tag == tag && t->qid == from->qid && t->ep == ep &&
	       memcmp(t->node, from->node, 16) == 0;
}

URN_FAST struct urn_am_transfer *
urn_am_transfer_find(struct urn_am_tagged *tg, const struct urn_am_ep *ep,
		     const struct urn_flow_from *from, uint64_t tag)
{
	if (likely(tg->last && is(tg->last, ep, from, tag)))
		return tg->last;
	for (uint32_t i = *bucket_of(&tg->hash, from->qid, tag); i != URN_HASH_NIL;
	     i = tg->transfer[i].next)
		if (is(&tg->transfer[i], ep, from, tag))
			return tg->last = &tg->transfer[i];
	return NULL;
}

struct urn_am_transfer *
urn_am_transfer_new(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
		    uint64_t tag)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_tagged *tg = am->tagged;
	uint8_t bucket = urn_am_bucket(am, from->node);
	struct urn_am_transfer *t;
	uint32_t i;

	if (!urn_am_bound_take(&transfers, &tg->node[bucket], &tg->n, &tg->kept))
		return NULL;
	i = urn_pool_get(&tg->pool, &tg->transfer[0].next, sizeof(*t)); /* the bound is its size */
	t = &tg->transfer[i];
	*t = (struct urn_am_transfer){.tag = tag,
				      .qid = from->qid,
				      .ep = ep,
				      .at = tp->now,
				      .serial = t->serial + 1,
				      .state = URN_AM_TRANSFER_EARLY,
				      .kind = URN_AM_K_TAG_WRITE,
				      .bucket = bucket};
	memcpy(t->node, from->node, sizeof(t->node));
	urn_hash_put(bucket_of(&tg->hash, t->qid, tag), i, &t->next);
	LIST_INSERT_HEAD(&ep->transfers, t, of_ep);
	if (!urn_timer_started(&tg->timer.timer))
		urn_wheel_start(&tp->wheel, &tg->timer.timer, tp->now + URN_AM_LOOK_NS);
	return t;
}

void
urn_am_transfer_drop(struct urn_tp *tp, struct urn_am_transfer *t, bool retire)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;
	uint32_t i = (uint32_t)(t - tg->transfer);

	if (retire)
		urn_am_retire(tg, t->node, t->qid, t->tag, false);
	if (t->state == URN_AM_TRANSFER_QUEUED)
		urn_am_rma_remove(&tg->queue, t);
	if (t->turn && tg->misses)
		tg->misses--; /* it may be one of those without room: the others are to be tried */
	urn_am_progress_remove(tg, t);
	while (t->early)
		urn_am_early_put(tg, t);
	LIST_REMOVE(t, of_ep);
	urn_hash_take(bucket_of(&tg->hash, t->qid, t->tag), i, &tg->transfer[0].next, sizeof(*t));
	if (tg->last == t)
		tg->last = NULL;
	t->state = URN_AM_TRANSFER_FREE;
	t->serial++; /* packets of a read that flows still have are no longer the transfer's */
	urn_am_bound_give(&transfers, &tg->node[t->bucket], &tg->n, &tg->kept);
	urn_pool_put(&tg->pool, i, &tg->transfer[0].next, sizeof(*t));
	if (!tg->n)
		urn_wheel_stop(&tp->wheel, &tg->timer.timer);
}

void
urn_am_transfer_fail(struct urn_tp *tp, struct urn_am_transfer *t, uint8_t code)
{
	struct urn_am_tagged *tg = urn_am_of(tp)->tagged;

	urn_am_refused(tp, t->ep, code);
	if (t->state == URN_AM_TRANSFER_QUEUED)
		urn_am_rma_remove(&tg->queue, t);
	while (t->early)
		urn_am_early_put(tg, t);
	t->state = URN_AM_TRANSFER_ENDED;
	t->code = code;
	urn_am_progress_add(tp, t);
}

void
urn_am_transfers_close(struct urn_tp *tp, struct urn_am_ep *ep)
{
	struct urn_am_transfer *t;

	while ((t = LIST_FIRST(&ep->transfers))) {
		if (t->state == URN_AM_TRANSFER_QUEUED)
			urn_am_rma_remove(&urn_am_of(tp)->tagged->queue, t);
		if (t->state != URN_AM_TRANSFER_ENDED)
			t->code = URN_AM_NO_ENDPOINT;
		t->state = URN_AM_TRANSFER_ENDED;
		if (!t->len || !urn_am_progress_answer(tp, t))
			urn_am_transfer_drop(tp, t, false);
	}
}

/* ---- data that came early */

bool
urn_am_early_keep(struct urn_am_tagged *tg, struct urn_am_transfer *t, const struct urn_am_msg *m)
{
	struct urn_am_early *e = tg->early_free;

	if (!urn_am_bound_take(&earlies, &tg->node_early[t->bucket], &tg->early_n, &tg->early_kept))
		return false;
	if (e)
		tg->early_free = e->next;
	else
		e = malloc(sizeof(*e)); /* once for each packet kept at the same time */
	if (unlikely(!e)) {
		urn_am_bound_give(&earlies, &tg->node_early[t->bucket], &tg->early_n,
				  &tg->early_kept);
		return false;
	}
	e->off = (uint32_t)m->addr;
	e->len = m->len;
	memcpy(e->data, m->data, m->len);
	e->next = t->early;
	t->early = e;
	return true;
}

void
urn_am_early_put(struct urn_am_tagged *tg, struct urn_am_transfer *t)
{
	struct urn_am_early *e = t->early;

	t->early = e->next;
	e->next = tg->early_free;
	tg->early_free = e;
	urn_am_bound_give(&earlies, &tg->node_early[t->bucket], &tg->early_n, &tg->early_kept);
}

/* ---- retired tags */

void
urn_am_retire(struct urn_am_tagged *tg, const uint8_t node[16], uint64_t qid, uint64_t tag,
	      bool ours)
{
	uint32_t i = tg->retired_n % URN_AM_RETIRED;
	struct urn_am_retired *r = &tg->retired[i];

	if (tg->retired_n >= URN_AM_RETIRED)
		urn_hash_take(bucket_of(&tg->retired_hash, r->qid, r->tag), i, &tg->retired[0].next,
			      sizeof(*r));
	*r = (struct urn_am_retired){.tag = tag, .qid = qid, .ours = ours};
	memcpy(r->node, node, sizeof(r->node));
	urn_hash_put(bucket_of(&tg->retired_hash, qid, tag), i, &r->next);
	tg->retired_n =
		tg->retired_n + 1 == 2 * URN_AM_RETIRED ? URN_AM_RETIRED : tg->retired_n + 1;
}

bool
urn_am_is_retired(const struct urn_am_tagged *tg, const uint8_t node[16], uint64_t qid,
		  uint64_t tag, bool ours)
{
	for (uint32_t i = *bucket_of(&tg->retired_hash, qid, tag); i != URN_HASH_NIL;
	     i = tg->retired[i].next) {
		const struct urn_am_retired *r = &tg->retired[i];

		if (r->tag == tag && r->qid == qid && r->ours == ours &&
		    memcmp(r->node, node, 16) == 0)
			return true;
	}
	return false;
}

/* ---- tags of transfers that ended well */

/* The place of a tag. */
static struct urn_am_past *
place_of(const struct urn_am_tagged *tg, uint64_t qid, uint64_t tag)
{
	const uint64_t key[2] = {qid, tag};
	uint32_t word[4];

	memcpy(word, key, sizeof(word));
	return &tg->past[rte_jhash_32b(word, 4, tg->hash.seed) % URN_AM_PAST];
}

void
urn_am_past_note(struct urn_am_tagged *tg, const struct urn_am_transfer *t)
{
	struct urn_am_past *p = place_of(tg, t->qid, t->tag);

	*p = (struct urn_am_past){.tag = t->tag, .qid = t->qid};
	memcpy(p->node, t->node, sizeof(p->node));
}

bool
urn_am_is_past(const struct urn_am_tagged *tg, const struct urn_flow_from *from, uint64_t tag)
{
	const struct urn_am_past *p = place_of(tg, from->qid, tag);

	return unlikely(p->tag == tag && p->qid == from->qid) &&
	       memcmp(p->node, from->node, sizeof(p->node)) == 0;
}
