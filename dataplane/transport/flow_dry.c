/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: strands that wait for work. A packet in flight takes an entry of the pool of work until it
 * is acknowledged, and nodes may be silent. The pool keeps entries for clients that hold few
 * (base/fair.h). A packet to a node that is silent asks for more: the client gets an entry only if
 * it could have one with many times as much as it holds, so that silent nodes of a client do not
 * take what its other nodes need. A node that has acknowledged nothing may be silent, too: the
 * first packet to such a node, which shows that, asks for less than the others, and so silent nodes
 * do not take what nodes need that are new. Strands without work leave the schedule: they may be
 * thousands, and each turn would try them all.
 *
 *   tp->dry ─► client ─► client ─► ...      a turn looks at URN_FLOW_DRY of them
 *                │          └─ dry: strand
 *                └─ dry: strand, strand, ...    and lets so many strands of each have a turn
 */
#include "transport/flow_priv.h"
#include "transport/pool.h"

/* How often the entries of a client count when it wants one more for a packet of a flow. */
enum {
	TIMES_HEARD = 1,  /* the node acknowledged something, and is not late */
	TIMES_FIRST = 2,  /* it acknowledged nothing yet, and nothing is in flight to it */
	TIMES_SILENT = 8, /* packets are in flight to it, and it acknowledged nothing or is late */
};
_Static_assert(
	TIMES_SILENT <= 8,
	"urn_fair_has() asks for an eighth of what counts, and work_get() for all that is held");

static uint32_t
times(const struct urn_flow *f)
{
	if (urn_psn_tx_idle(&f->tx))
		return f->tx_start ? TIMES_HEARD : TIMES_FIRST;
	if (!f->tx_start || f->tx.early || f->tx.retries < f->tx.retry_cnt)
		return TIMES_SILENT;
	return TIMES_HEARD;
}

bool
urn_flow_may_take(const struct urn_tp *tp, const struct urn_flow_strand *l)
{
	return urn_work_has(tp, l->user.source.share, times(l->flow));
}

/* Put a client, which has a strand that waits, behind the others. */
static void
append(struct urn_tp *tp, struct urn_tp_share *share)
{
	share->dry_next = NULL;
	share->dry_prev = tp->dry_last;
	if (tp->dry)
		tp->dry_last->dry_next = share;
	else
		tp->dry = share;
	tp->dry_last = share;
}

static void
unlink_share(struct urn_tp *tp, struct urn_tp_share *share)
{
	if (tp->dry == share)
		tp->dry = share->dry_next;
	else
		share->dry_prev->dry_next = share->dry_next;
	if (share->dry_next)
		share->dry_next->dry_prev = share->dry_prev;
	if (tp->dry_last == share)
		tp->dry_last = tp->dry ? share->dry_prev : NULL;
}

void
urn_flow_dry(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_source *src = &l->user.source;
	struct urn_tp_share *share = src->share;

	src->flags |= URN_STRAND_DRY | URN_SOURCE_AWAY;
	src->next = NULL;
	src->prev = share->dry_tail;
	if (share->dry) {
		share->dry_tail->next = src;
	} else {
		share->dry = src;
		append(tp, share);
	}
	share->dry_tail = src;
}

void
urn_flow_dry_end(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_source *src = &l->user.source;
	struct urn_tp_share *share = src->share;

	urn_source_unlink(&share->dry, &share->dry_tail, src);
	if (!share->dry)
		unlink_share(tp, share);
	src->flags &= ~(uint32_t)(URN_STRAND_DRY | URN_SOURCE_AWAY);
}

/* Look at strands of a client, which has some that wait: those that may take work have a turn. */
static void
refill(struct urn_tp *tp, struct urn_tp_share *share)
{
	struct urn_flow_strand *l;

	if (!urn_work_has(tp, share, TIMES_HEARD))
		return;
	for (unsigned int i = 0; i < URN_FLOW_DRY && share->dry; i++) {
		l = urn_flow_strand_of(share->dry);
		urn_flow_dry_end(tp, l);
		if (urn_flow_may_take(tp, l))
			urn_sched_add(&tp->sched, &l->user.source);
		else
			urn_flow_dry(tp, l);
	}
}

void
urn_flows_refill(struct urn_tp *tp)
{
	struct urn_tp_share *share, *last = tp->dry_last;

	for (unsigned int i = 0; i < URN_FLOW_DRY && (share = tp->dry); i++) {
		unlink_share(tp, share);
		append(tp, share);
		refill(tp, share);
		if (share == last)
			return;
	}
}
