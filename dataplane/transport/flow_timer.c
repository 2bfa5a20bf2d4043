/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: repeats, giving up, ageing. */
#include "transport/flow_rest.h"

/* Fill in when a flow probes and repeats early (struct urn_psn_clock: first, step). */
static void
early_times(const struct urn_tp *tp, const struct urn_flow *f, struct urn_psn_clock *c)
{
	const struct urn_peer *peer = urn_psn_peer(tp, &f->tx);
	uint64_t floor = tp->cfg.rto_floor;

	c->first = floor ? urn_peer_pto(peer, floor) : UINT64_MAX;
	c->step = floor && f->tx.early ? urn_peer_rto(peer, floor) : 0;
}

static void
look_later(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_psn_clock c;

	early_times(tp, f, &c);
	urn_psn_wake_at(&tp->wheel, &f->tx, urn_psn_due(&f->tx, c.first, c.step));
}

URN_FAST void
urn_flow_arm(struct urn_tp *tp, struct urn_flow *f)
{
	urn_psn_arm(&f->tx, tp->now);
	look_later(tp, f);
}

/* True when an idle flow is to rest early, because its maker has many, or its user, whose other
 * clients may need room: a client may name many nodes in a row. */
static bool
is_crowded(const struct urn_tp *tp, const struct urn_flow *f)
{
	const struct urn_flows *fl = tp->flows;

	return f->maker && (fl->maker[f->maker - 1].made > fl->owner_max / 2 ||
			    fl->of_user[f->user_at] > fl->most / 4);
}

void
urn_flow_age(struct urn_tp *tp, struct urn_flow *f)
{
	uint64_t ns = is_crowded(tp, f) ? URN_FLOW_CROWD_NS : URN_FLOW_RENEW_NS;

	urn_wheel_start(&tp->wheel, &f->tx.timer,
			tp->now + (urn_flow_is_unanswered(f) ? URN_FLOW_NOBODY_NS : ns));
}

/* True when no packet went either way for so long, ns. */
static bool
was_idle(const struct urn_tp *tp, const struct urn_flow *f, uint64_t ns)
{
	return tp->now - f->tx_at >= ns && tp->now - f->rx_at >= ns;
}

/* Nothing is under way: forget the flow when that was so for long, or let it rest. */
static void
idle(struct urn_tp *tp, struct urn_flow *f)
{
	if (urn_flow_is_unanswered(f) || was_idle(tp, f, URN_FLOW_AGE_NS)) {
		urn_flow_free(tp, f);
		return;
	}
	if (!is_crowded(tp, f) || !was_idle(tp, f, URN_FLOW_CROWD_NS) || !urn_flow_rest(tp, f))
		urn_flow_age(tp, f);
}

void
urn_flow_lose_all(struct urn_tp *tp, struct urn_flow *f)
{
	for (struct urn_work *w = f->tx.head; w; w = w->next)
		if (w->flow.state == URN_FLOW_OUT)
			urn_flow_lose(f, w);
	urn_flow_wake(tp, f);
}

static void
timed_out(struct urn_tp *tp, struct urn_flow *f)
{
	URN_COUNT(tp, TIMEOUTS);
	if (!urn_psn_retry(&f->tx)) {
		if (f->flags & URN_FLOWF_UNSURE) { /* somebody is there, and may not be the one that
						      took the first packet */
			URN_COUNT(tp, FLOW_RESTARTED);
			urn_flow_fail(tp, f, URN_MSG_RESTARTED, false);
			return;
		}
		URN_COUNT(tp, FLOW_FAILED);
		urn_flow_fail(tp, f, URN_MSG_UNREACHABLE, true);
		return;
	}
	if (!(f->flags & URN_FLOWF_LOOP)) {
		f->flags &= (uint16_t)~URN_FLOWF_MAC; /* the node may have moved */
		if (tp->cfg.neigh_doubt)
			tp->cfg.neigh_doubt(tp->cfg.neigh_ctx, f->gid);
	}
	urn_flow_lose_all(tp, f);
	urn_flow_arm(tp, f);
}

/*
 * The packet that is repeated as a probe: the newest, whose acknowledgement shows every hole before
 * it. If that has come already, the oldest: its repeat was lost. NULL: neither is on its way
 */
static struct urn_work *
probe_of(const struct urn_flow *f)
{
	if (f->tx.tail->flow.state == URN_FLOW_OUT)
		return f->tx.tail;
	return f->tx.head->flow.state == URN_FLOW_OUT ? f->tx.head : NULL;
}

/* Nothing came for longer than a round trip takes: repeat one packet, then all. */
static void
repeat_early(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_work *w;

	if (urn_psn_early(&f->tx)) {
		URN_COUNT(tp, EARLY_TIMEOUTS);
		urn_flow_lose_all(tp, f);
	} else {
		URN_COUNT(tp, PROBES);
		w = probe_of(f);
		if (w)
			urn_flow_lose(f, w);
		urn_flow_wake(tp, f);
	}
	look_later(tp, f);
}

/* Packets are under way. */
static void
outstanding(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_psn_clock c = {.now = tp->now, .stood_at = tp->stood_at};
	uint64_t again = UINT64_MAX;

	c.answer = urn_peer_pto(urn_psn_peer(tp, &f->tx), tp->cfg.rto_floor);
	early_times(tp, f, &c);
	switch (urn_psn_look(&f->tx, &c, false, &again)) {
	case URN_PSN_WAIT:
		urn_psn_wake_at(&tp->wheel, &f->tx, again);
		return;
	case URN_PSN_ARM:
		urn_flow_arm(tp, f);
		return;
	case URN_PSN_EARLY:
		repeat_early(tp, f);
		return;
	case URN_PSN_TIMED_OUT:
		timed_out(tp, f);
		return;
	}
}

void
urn_flow_due(struct urn_tp *tp, struct urn_flow *f)
{
	urn_flows_age_kept(tp);
	if (urn_flow_has_work(f))
		urn_flow_wake(tp, f); /* the MAC address may be known by now */
	if (!urn_psn_tx_idle(&f->tx)) {
		outstanding(tp, f);
		return;
	}
	if (urn_flow_has_work(f))
		return;
	if (f->flags & URN_FLOWF_ACK)
		urn_flow_age(tp, f);
	else
		idle(tp, f);
}
