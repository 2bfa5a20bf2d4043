/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters of one engine that are joined by a wire with nothing on it. The thread that writes a
 * frame reads it at the other end, so frames have no ICRC (transport/unsealed.h). Captures, ours
 * and others by callbacks of ethdev, see whole frames.
 */
#ifndef URN_ENGINE_ACROSS_H
#define URN_ENGINE_ACROSS_H

#include <stdbool.h>

struct urn_port;
struct urn_shard;

/*
 * Let a shard send frames without ICRC, and take such; the thread of its engine takes and sends
 * them at the other end of the wire, `across`, too. Before the engine is polled, and until the
 * shard is gone. returns: false: the adapter has no ICRC, and nothing has changed
 */
bool urn_shard_unseal(struct urn_shard *s, struct urn_port *across);
/*
 * Let two shards of one engine, whose queues of the same number are the ends of a wire, send each
 * other frames without ICRC. Before the engine is polled, and until both are gone. Nothing changes
 * when an adapter has no ICRC.
 */
void urn_shards_join(struct urn_shard *s, struct urn_shard *other);
/* Seal the frames that s is about to send, if anybody looks at an end of the wire. s is joined. */
void urn_shard_seal_seen(struct urn_shard *s);

#endif
