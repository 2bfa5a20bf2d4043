/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tags of an adapter that is in a virtual LAN: put into its frames at the port, and taken off
 * there, so that nothing else knows of them, and an adapter without a tag pays nothing.
 */
#include "engine/vlan.h"

#include "engine/engine.h"
#include "transport/tag.h"

void
urn_shard_tag(struct urn_shard *s)
{
	urn_tp_tag(s->tp, s->tag.tci);
}

unsigned int
urn_shard_untag(struct urn_shard *s, struct rte_mbuf **m, unsigned int n)
{
	return urn_tp_untag(s->tp, m, n, s->tag.tci);
}
