/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows at rest (flow_rest.h). */
#include "transport/flow_rest.h"

#include <stdlib.h>

enum { KEPT = URN_FLOWF_DOUBTED | URN_FLOWF_UNSURE | URN_FLOWF_STALLED };

/* ---- places */

static struct urn_flow_rest **
bucket_of(const struct urn_tp *tp, const uint8_t gid[16], uint8_t key)
{
	uint32_t words[5];

	memcpy(words, gid, 16);
	words[4] = key;
	return &tp->flows->rest_bucket[rte_jhash_32b(words, 5, tp->cfg.hash_seed) &
				       (URN_FLOW_BUCKETS - 1)];
}

/* Time of the turn in the units of a flow at rest. */
static uint32_t
now_of(const struct urn_tp *tp)
{
	return (uint32_t)(tp->now >> URN_FLOW_AGE_SHIFT);
}

/* A time of a flow, ns, in the units of a flow at rest. The time may be 0: none. */
static uint32_t
shorten(const struct urn_tp *tp, uint64_t ns)
{
	uint64_t ago = (tp->now - ns) >> URN_FLOW_AGE_SHIFT;

	return now_of(tp) - (uint32_t)RTE_MIN(ago, (uint64_t)UINT32_MAX / 2);
}

/* The opposite: a time that is not later than the one that was shortened. */
static uint64_t
lengthen(const struct urn_tp *tp, uint32_t at)
{
	uint64_t ago = (uint64_t)(now_of(tp) - at + 1) << URN_FLOW_AGE_SHIFT;

	return ago < tp->now ? tp->now - ago : 0;
}

/* Take a flow at rest out of its lists; its memory is the caller's. */
static void
remove_rest(struct urn_tp *tp, struct urn_flow_rest *r)
{
	struct urn_flow_rest **at = bucket_of(tp, r->gid, r->key);
	struct urn_flows *fl = tp->flows;

	while (*at != r)
		at = &(*at)->hash_next;
	*at = r->hash_next;
	TAILQ_REMOVE(&fl->resting, r, queue);
	fl->maker[r->maker - 1].rests--;
	if (!--fl->rests)
		urn_wheel_stop(&tp->wheel, &fl->rest_timer.timer);
}

/* The first flow at rest is to be forgotten then. */
static void
start_timer(struct urn_tp *tp)
{
	const struct urn_flow_rest *r = TAILQ_FIRST(&tp->flows->resting);
	uint64_t spent = (uint64_t)(now_of(tp) - r->since) << URN_FLOW_AGE_SHIFT;

	urn_wheel_start(&tp->wheel, &tp->flows->rest_timer.timer,
			tp->now + (spent < URN_FLOW_AGE_NS ? URN_FLOW_AGE_NS - spent : 0));
}

static void
insert_rest(struct urn_tp *tp, struct urn_flow_rest *r)
{
	struct urn_flow_rest **bucket = bucket_of(tp, r->gid, r->key);
	struct urn_flows *fl = tp->flows;

	r->hash_next = *bucket;
	*bucket = r;
	TAILQ_INSERT_TAIL(&fl->resting, r, queue);
	fl->maker[r->maker - 1].rests++;
	if (!fl->rests++)
		start_timer(tp);
}

/* Forget a flow at rest. */
static void
forget(struct urn_tp *tp, struct urn_flow_rest *r)
{
	remove_rest(tp, r);
	if (r->refusals)
		urn_flows_put_refusals(tp->flows, r->refusals);
	free(r->refused_ids);
	tp->flows->doubted -= (r->flags & URN_FLOWF_DOUBTED) != 0;
	free(r);
}

/* Flows have rested for as long as an idle one is kept. */
static void
due(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_flow_rest *r;

	(void)src;
	for (unsigned int i = 0; (r = TAILQ_FIRST(&tp->flows->resting)); i++) {
		uint64_t spent = (uint64_t)(now_of(tp) - r->since) << URN_FLOW_AGE_SHIFT;

		if (i == URN_FLOW_RESTS_DUE || spent < URN_FLOW_AGE_NS) {
			start_timer(tp);
			return;
		}
		forget(tp, r);
	}
}

void
urn_flows_bound(struct urn_flows *fl, uint32_t most)
{
	fl->most = most;
	urn_fair_init(&fl->fair, most);
}

void
urn_flows_bound_rests(struct urn_flows *fl, uint32_t most)
{
	fl->rests_max = most;
	urn_fair_init(&fl->fair_rests, most);
}

int
urn_flows_init_rests(struct urn_flows *fl)
{
	static const struct urn_source_ops ops = {.due = due};

	fl->owner_max = URN_FLOWS_OWNER;
	urn_flows_bound(fl, URN_FLOWS_MAX);
	urn_flows_bound_rests(fl, URN_FLOWS_RESTS);
	TAILQ_INIT(&fl->resting);
	fl->rester.source.kind = URN_SOURCE_OPS;
	fl->rester.ops = &ops;
	fl->rest_timer.timer.kind = URN_TIMER_SOURCE;
	fl->rest_timer.source = &fl->rester.source;
	fl->rest_bucket = calloc(URN_FLOW_BUCKETS, sizeof(*fl->rest_bucket));
	return fl->rest_bucket ? 0 : -1;
}

void
urn_flows_free_rests(struct urn_tp *tp)
{
	struct urn_flow_rest *r;

	while ((r = TAILQ_FIRST(&tp->flows->resting)))
		forget(tp, r);
	free(tp->flows->rest_bucket);
}

/* ---- going to rest */

/* True when nothing of a flow is under way or waits for anything, and no caller has the flow in
 * hand. Memory of the pace of a flow would be lost. */
static bool
may_rest(const struct urn_flows *fl, const struct urn_flow *f)
{
	return urn_psn_tx_idle(&f->tx) && !f->strands && !(f->flags & URN_FLOWF_ACK) &&
	       !f->congestion && SLIST_EMPTY(&f->wholes) && f != fl->taking;
}

static struct urn_flow_rest *
make_rest(const struct urn_tp *tp, const struct urn_flow *f)
{
	struct urn_flow_rest *r = malloc(sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct urn_flow_rest){
		.refusals = f->refusals,
		.refused_ids = f->refused_ids,
		.tx_epoch = f->tx_epoch,
		.rx_epoch = f->rx_epoch,
		.tx_at = shorten(tp, f->tx_at),
		.rx_at = shorten(tp, f->rx_at),
		.since = now_of(tp),
		.tx_start = f->tx_start,
		.tx_born = f->tx_born,
		.next_id = f->next_id,
		.next = f->tx.next,
		.expected = f->expected,
		.last_id = f->last_id,
		.stalled_id = f->stalled_id,
		.flags = f->flags & KEPT,
		.maker = f->maker,
		.user_at = f->user_at,
		.key = f->key,
		.asks = f->asks,
	};
	memcpy(r->bitmap, f->bitmap, sizeof(r->bitmap));
	memcpy(r->gid, f->gid, 16);
	return r;
}

/* True when a flow knows something, and one more flow of its maker may rest. */
static bool
has_place(const struct urn_flows *fl, const struct urn_flow *f)
{
	const struct urn_flow_maker *k = &fl->maker[f->maker - 1];

	return !urn_flow_is_unanswered(f) && fl->rests < fl->rests_max &&
	       urn_fair_has(&fl->fair_rests, fl->rests_max - fl->rests, k->rests);
}

bool
urn_flow_rest(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flows *fl = tp->flows;
	struct urn_flow_rest *r;

	urn_flow_strand_drop_empty(tp, f);
	if (!may_rest(fl, f))
		return false;
	r = has_place(fl, f) ? make_rest(tp, f) : NULL;
	if (r) {
		/* All that is counted or owned goes with r. */
		f->flags &= (uint16_t)~URN_FLOWF_DOUBTED;
		f->refusals = NULL;
		f->refused_ids = NULL;
		insert_rest(tp, r);
		URN_COUNT(tp, FLOW_RESTED);
	} else if (f->rx_epoch) {
		return false; /* copies of its packets would be delivered again */
	}
	urn_flow_free(tp, f);
	return true;
}

/* Let one of the flows of a maker rest that has been there for long. returns: false: all that were
 * looked at have something to do */
static bool
make_room(struct urn_tp *tp, struct urn_flow_maker *k)
{
	struct urn_flow *f;

	for (unsigned int i = 0; i < URN_FLOW_RESTS_LOOK && i < k->made; i++) {
		f = TAILQ_FIRST(&k->flows);
		if (urn_flow_rest(tp, f))
			return true;
		TAILQ_REMOVE(&k->flows, f, of_maker);
		TAILQ_INSERT_TAIL(&k->flows, f, of_maker);
	}
	return false;
}

/* ---- flows of makers */

/* True when a maker, a bucket of owners, may have one more flow, and so may its user. */
static bool
may_make(const struct urn_flows *fl, const struct urn_flow_maker *k, unsigned int user)
{
	uint32_t left = fl->n < fl->most ? fl->most - fl->n : 0;

	return k->made < fl->owner_max &&
	       urn_fair_user_has(&fl->fair, left, k->made, fl->of_user[user]);
}

struct urn_flow *
urn_flow_make_for(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, unsigned int maker,
		  unsigned int user)
{
	struct urn_flow_maker *k = &tp->flows->maker[maker];
	struct urn_flow *f;

	if (unlikely(!may_make(tp->flows, k, user)) && !make_room(tp, k)) {
		URN_COUNT(tp, FLOW_NONE);
		return NULL;
	}
	f = urn_flow_make(tp, gid, key, 0);
	if (!f)
		return NULL;
	if (!k->made++)
		TAILQ_INIT(&k->flows);
	TAILQ_INSERT_TAIL(&k->flows, f, of_maker);
	f->maker = (uint16_t)(maker + 1);
	f->user_at = (uint16_t)user;
	tp->flows->of_user[user]++;
	/* The message may be let go of before anything else starts the timer. */
	urn_flow_age(tp, f);
	return f;
}

void
urn_flow_unmake(struct urn_flows *fl, struct urn_flow *f)
{
	if (!f->maker)
		return;
	TAILQ_REMOVE(&fl->maker[f->maker - 1].flows, f, of_maker);
	fl->maker[f->maker - 1].made--;
	fl->of_user[f->user_at]--;
}

/* ---- made anew */

static void
put_back(const struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_rest *r)
{
	f->refusals = r->refusals;
	f->refused_ids = r->refused_ids;
	f->tx_epoch = r->tx_epoch;
	f->rx_epoch = r->rx_epoch;
	f->tx_at = lengthen(tp, r->tx_at);
	f->rx_at = lengthen(tp, r->rx_at);
	f->tx_start = r->tx_start;
	f->tx_born = r->tx_born;
	f->next_id = r->next_id;
	f->expected = r->expected;
	f->last_id = r->last_id;
	f->stalled_id = r->stalled_id;
	f->flags |= r->flags;
	f->asks = r->asks;
	memcpy(f->bitmap, r->bitmap, sizeof(f->bitmap));
	urn_psn_tx_start(&f->tx, r->next);
	urn_psn_progress(&f->tx);
}

bool
urn_flow_restore(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, struct urn_flow **f)
{
	struct urn_flow_rest *r;

	*f = NULL;
	if (likely(!tp->flows->rests))
		return true;
	r = *bucket_of(tp, gid, key);
	while (r && (r->key != key || memcmp(r->gid, gid, 16) != 0))
		r = r->hash_next;
	if (!r)
		return true;
	remove_rest(tp, r); /* its place is for the flow that makes room */
	*f = urn_flow_make_for(tp, gid, key, r->maker - 1u, r->user_at);
	if (!*f) {
		insert_rest(tp, r);
		return false;
	}
	put_back(tp, *f, r);
	urn_flow_age(tp, *f); /* the node answered once, at least */
	free(r);
	URN_COUNT(tp, FLOW_RESTORED);
	return true;
}
