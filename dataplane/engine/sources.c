/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
grow(struct urn_client_shard *s)
{
	uint32_t cap = s->cap ? s->cap * 2 : 64;
	struct urn_source **source;
	uint32_t *ids;

	if (cap > URN_ABI_MAX_QP_ENGINE)
		return ENOSPC;
	source = realloc(s->source, cap * sizeof(*source));
	if (source)
		s->source = source;
	ids = realloc(s->free_id, cap * sizeof(*ids));
	if (ids)
		s->free_id = ids;
	if (!source || !ids)
		return ENOMEM;
	memset(s->source + s->cap, 0, (cap - s->cap) * sizeof(*source));
	s->cap = cap;
	return 0;
}

int
urn_sources_take(struct urn_client_shard *s, uint32_t *id)
{
	if (s->free_n) {
		*id = s->free_id[--s->free_n];
		return 0;
	}
	if (s->used == s->cap) {
		int rc = grow(s);

		if (rc != 0)
			return rc;
	}
	*id = s->used++;
	s->scan.tops = *id / 4096 + 1; /* a summary word for each 64 leaf words of 64 bits */
	atomic_store(&s->scan.db->tops, s->scan.tops);
	return 0;
}

void
urn_sources_enter(struct urn_client_shard *s, struct urn_source *src)
{
	s->source[src->db] = src;
}

void
urn_sources_drop(struct urn_client_shard *s, uint32_t id)
{
	s->source[id] = NULL;
	s->free_id[s->free_n++] = id;
}

void
urn_sources_fini(struct urn_client_shard *s)
{
	free(s->source);
	free(s->free_id);
}
