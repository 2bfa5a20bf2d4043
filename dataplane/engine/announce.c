/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the network of an adapter's addresses. */
#include "engine/engine.h"

void
urn_shard_announce(struct urn_shard *s)
{
	struct urn_tp *tp = s->tp;

	tp->tx_n +=
		urn_neigh_announce(s->neigh, tp->cfg.pool, tp->tx + tp->tx_n, URN_TP_TX - tp->tx_n);
}
