/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's sources of work on one engine, by doorbell id: queue pairs today, whatever else has a
 * doorbell tomorrow. All calls in the engine's thread.
 */
#ifndef URN_ENGINE_SOURCES_H
#define URN_ENGINE_SOURCES_H

#include "engine/engine.h"

/*
 * Take a doorbell id that no source of the client has here.
 *
 * id: set on success alone
 * returns: 0; ENOSPC: the doorbell page has no bit left; ENOMEM
 */
int urn_sources_take(struct urn_client_shard *s, uint32_t *id);
/* From now on doorbell src->db leads to this source. The id was taken, and has no source yet. */
void urn_sources_enter(struct urn_client_shard *s, struct urn_source *src);
/* Give an id back, which was taken; its source, if it has one, is found no more. */
void urn_sources_drop(struct urn_client_shard *s, uint32_t id);
/* Free the table; the client has no source left here. */
void urn_sources_fini(struct urn_client_shard *s);

#endif
