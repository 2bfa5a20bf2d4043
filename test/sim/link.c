/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Features of nodes beyond RoCEv2, and the times at which peers learn of them: an
 * adapter's tables would know the features from link requests, which programs of the
 * simulation do not take part in. Some nodes know them from the start, some while traffic flows.
 */
#include "sim.h"

#include "wire/link.h"

uint32_t
sim_link_features(void *ctx, const uint8_t gid[16])
{
	const struct sim_node *n = ctx;
	unsigned int to = gid[15] - 1u;

	return to < n->s->plan.nodes && n->s->now >= n->link[to].from && n->s->now < n->link[to].to
		       ? URN_LINK_F_ALL
		       : 0;
}

static bool
is_selective(const struct sim *s, unsigned int node)
{
	struct sim_rng rng = sim_rng_of(s->seed, 7100 + node);

	if (s->sc->plain)
		return false;
	return s->recovery == SIM_SELECTIVE || (s->recovery == SIM_MIXED && !sim_one_in(&rng, 4));
}

void
sim_link_open(struct sim_node *n)
{
	struct sim *s = n->s;
	struct sim_rng rng = sim_rng_of(s->seed, 7000 + n->id);

	n->selective = is_selective(s, n->id);
	for (unsigned int to = 0; to < s->plan.nodes; to++) {
		bool both = n->selective && is_selective(s, to);
		uint32_t when = sim_rnd(&rng, 3) * sim_rnd(&rng, 400000);
		uint32_t until = sim_one_in(&rng, 8) ? sim_rnd(&rng, 2000000) : 0;

		n->link[to].from = !both		     ? UINT64_MAX
				   : s->recovery == SIM_MIXED ? s->now + when
							      : s->now;
		n->link[to].to = s->recovery == SIM_MIXED && until ? s->now + when + until : UINT64_MAX;
	}
}

void
sim_link_turn(struct sim_node *n, uint64_t last)
{
	uint64_t now = n->s->now;

	for (unsigned int to = 0; to < n->s->plan.nodes; to++) {
		uint64_t from = n->link[to].from, end = n->link[to].to;

		if ((from > last && from <= now) || (end > last && end <= now))
			urn_tp_peer_learned(n->tp, n->s->node[to].gid,
					    sim_link_features(n, n->s->node[to].gid));
	}
}

uint32_t
sim_link_offer(const struct sim_node *n)
{
	return n->selective ? URN_LINK_F_ALL : 0;
}

uint64_t
sim_link_rto_floor(const struct sim *s)
{
	struct sim_rng rng = sim_rng_of(s->seed, 7200);
	static const uint64_t floor[] = {0, 50000, 400000, 4000000};

	return s->recovery == SIM_GBN && !s->sc->plain ? 0 : floor[sim_rnd(&rng, 4)];
}
