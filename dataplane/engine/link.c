/* SPDX-License-Identifier: BSD-3-Clause */
/* The link of an adapter's port, and the move of an adapter to its other port. */
#include "engine/engine.h"

#include "abi/clock.h"
#include "pmd_glue/bond.h"

#define LINK_PERIOD_NS \
	5000000ull /* ns between looks at the link: sessions leave one within 10 ms */
#define STANDBY_PERIOD_NS 10000000ull /* ns between looks at the port that is not used */

void
urn_shard_init_link(struct urn_shard *s)
{
	s->moves = __atomic_load_n(&s->port->moves, __ATOMIC_RELAXED);
	s->standby_due = s->port->active != NULL && s->queue >= 0 ? 0 : UINT64_MAX;
}

/*
 * Announce the adapter's addresses on the port that it has moved to, so that switches learn the way
 * there. While the frames that wait leave no room for that, the next look tries again.
 */
static void
look_at_moves(struct urn_shard *s)
{
	uint32_t moves = __atomic_load_n(&s->port->moves, __ATOMIC_RELAXED);
	struct urn_tp *tp = s->tp;

	if (moves == s->moves || tp->tx_n + tp->cfg.gids > URN_TP_TX)
		return;
	URN_COUNT_N(tp, PORT_MOVES, moves - s->moves);
	s->moves = moves;
	urn_shard_announce(s);
}

/*
 * Look at the link. When it goes up or down, tell every client of the adapter, and announce our
 * addresses to the network. The program may poll the port's link as well, hence link_up of our own.
 * The event carries the time of the look before: sessions tell how late they noticed (FO-11).
 */
void
urn_shard_look_at_link(struct urn_shard *s)
{
	uint64_t before = s->link_seen;
	struct urn_tp *tp = s->tp;

	s->link_due = tp->now + LINK_PERIOD_NS;
	s->link_seen = urn_clock_ns();
	urn_port_poll_link(s->port);
	look_at_moves(s);
	if (s->port->link_up == s->link_up)
		return;
	s->link_up = s->port->link_up;
	if (s->link_up)
		urn_shard_announce(s);
	for (struct urn_client_shard *c = LIST_FIRST(&s->clients); c; c = LIST_NEXT(c, link))
		urn_tp_event(tp, s->link_up ? URN_EVENT_PORT_ACTIVE : URN_EVENT_PORT_ERR, 0, before,
			     &c->share);
}

void
urn_shard_drain_standby(struct urn_shard *s)
{
	s->standby_due = s->tp->now + STANDBY_PERIOD_NS;
	URN_COUNT_N(s->tp, DROP_STANDBY, urn_bond_drain(s->port, (uint16_t)s->queue));
}
