/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/across.h"

#include "engine/engine.h"
#include "transport/unsealed.h"

bool
urn_shard_unseal(struct urn_shard *s, struct urn_port *across)
{
	if (!urn_tp_unseal(s->tp))
		return false;
	s->across = across;
	/* Frames that are on the wire when a capture begins: the capture has them sealed. */
	s->port->complete = across->complete = urn_wire_seal;
	return true;
}

void
urn_shards_join(struct urn_shard *s, struct urn_shard *other)
{
	if (!s->tp->cfg.icrc || !other->tp->cfg.icrc)
		return;
	if (urn_shard_unseal(s, other->port))
		(void)urn_shard_unseal(other, s->port);
}

void
urn_shard_seal_seen(struct urn_shard *s)
{
	if (urn_port_tx_seen(s->port, (uint16_t)s->queue) ||
	    urn_port_rx_seen(s->across, (uint16_t)s->queue))
		urn_tp_seal_tx(s->tp);
}
