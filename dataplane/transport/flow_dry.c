/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: lines that wait for work. A packet in flight takes an entry of the pool of work until it is
 * acknowledged, and nodes may be silent. The pool leaves a client with many entries without another
 * one while there are some for others (pool.h). Lines of such a client leave the schedule: they may
 * be thousands, and each turn would try them all.
 *
 *   tp->dry ─► client ─► client ─► ...      a turn looks at URN_FLOW_DRY of them
 *                │          └─ dry: line
 *                └─ dry: line, line, ...    and lets so many lines of each have a turn
 */
#include "transport/flow_priv.h"
#include "transport/pool.h"

/* Put a client, which has a line that waits, behind the others. */
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
urn_flow_dry(struct urn_tp *tp, struct urn_flow_line *l)
{
	struct urn_source *src = &l->user.source;
	struct urn_tp_share *share = src->share;

	URN_COUNT(tp, FLOW_DRY);
	src->flags |= URN_FLOWL_DRY | URN_SOURCE_AWAY;
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
urn_flow_dry_end(struct urn_tp *tp, struct urn_flow_line *l)
{
	struct urn_source *src = &l->user.source;
	struct urn_tp_share *share = src->share;

	urn_source_unlink(&share->dry, &share->dry_tail, src);
	if (!share->dry)
		unlink_share(tp, share);
	src->flags &= ~(uint32_t)(URN_FLOWL_DRY | URN_SOURCE_AWAY);
}

/* Let lines of a client, which has some that wait, have a turn if there is work for it. */
static void
refill(struct urn_tp *tp, struct urn_tp_share *share)
{
	struct urn_source *src;

	for (unsigned int i = 0; i < URN_FLOW_DRY && (src = share->dry); i++) {
		if (!urn_pool_has(tp->left.work, share->work))
			break;
		urn_flow_dry_end(tp, urn_flow_line_of(src));
		urn_sched_add(&tp->sched, src);
	}
	if (!share->dry)
		return;
	unlink_share(tp, share);
	append(tp, share);
}

void
urn_flows_refill(struct urn_tp *tp)
{
	for (unsigned int i = 0; i < URN_FLOW_DRY && tp->dry; i++)
		refill(tp, tp->dry);
}
