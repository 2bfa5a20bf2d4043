/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels of connection management's owners, and how many ids use each. */
#include "cm/cm_internal.h"

#include <stdlib.h>

bool
cm_use_create(struct urn_cm *cm, uint32_t seed)
{
	urn_pool_init(&cm->uses, 0, cm->cfg.max_ids);
	cm->use = calloc(cm->cfg.max_ids, sizeof(*cm->use));
	return urn_hash_init(&cm->use_hash, cm->cfg.max_ids, seed) == 0 && cm->use;
}

void
cm_use_destroy(struct urn_cm *cm)
{
	free(cm->use);
	urn_hash_fini(&cm->use_hash);
}

static uint32_t *
bucket_of(const struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel)
{
	uintptr_t p = (uintptr_t)o;
	uint32_t word[3] = {(uint32_t)p, (uint32_t)(p >> 32), (uint32_t)channel};

	return urn_hash_bucket(&cm->use_hash, word, 3);
}

static uint32_t
find(const struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel)
{
	uint32_t i = *bucket_of(cm, o, channel);

	while (i != CM_NIL && (cm->use[i].owner != o || cm->use[i].channel != channel))
		i = cm->use[i].next;
	return i;
}

uint32_t
cm_use_begin(struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel)
{
	uint32_t i = find(cm, o, channel), *at = bucket_of(cm, o, channel);

	if (i == CM_NIL) {
		i = urn_pool_get(&cm->uses, &cm->use->next, sizeof(*cm->use)); /* enough: an id has one at most */
		cm->use[i] = (struct cm_use){.owner = o, .channel = channel};
		urn_hash_put(at, i, &cm->use[i].next);
	}
	cm->use[i].ids++;
	return i;
}

void
cm_use_end(struct urn_cm *cm, uint32_t use)
{
	struct cm_use *u = &cm->use[use];

	if (--u->ids)
		return;
	urn_hash_take(bucket_of(cm, u->owner, u->channel), use, &cm->use->next, sizeof(*u));
	urn_pool_put(&cm->uses, use, &cm->use->next, sizeof(*u));
}

bool
urn_cm_uses(const struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel)
{
	return find(cm, o, channel) != CM_NIL;
}
