/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/across.h"

#include "engine/engine.h"
#include "transport/unsealed.h"

void
urn_shards_join(struct urn_shard *s, struct urn_shard *other)
{
	if (!s->tp->cfg.icrc || !other->tp->cfg.icrc || !urn_tp_unseal(s->tp) ||
	    !urn_tp_unseal(other->tp))
		return;
	s->across = other->port;
	other->across = s->port;
	/* Frames that are on the wire when a capture begins: the capture has them sealed. */
	s->port->complete = other->port->complete = urn_wire_seal;
}

void
urn_shard_seal_seen(struct urn_shard *s)
{
	if (urn_port_tx_seen(s->port, (uint16_t)s->queue) ||
	    urn_port_rx_seen(s->across, (uint16_t)s->queue))
		urn_tp_seal_tx(s->tp);
}
