/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers: a hash over their addresses, and the lists that entries wait on. */
#include "net/learn_table.h"

#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

/* splitmix64 */
uint64_t
urn_learn_draw(struct urn_learn *lk)
{
	uint64_t z = lk->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

struct urn_learn *
urn_learn_create(const struct urn_learn_config *cfg)
{
	struct urn_learn *lk = calloc(1, sizeof(*lk));

	if (!lk)
		return NULL;
	lk->cfg = *cfg;
	lk->rng = cfg->seed;
	lk->epoch = urn_learn_draw(lk);
	lk->hash_seed = (uint32_t)urn_learn_draw(lk);
	lk->psn = (uint32_t)urn_learn_draw(lk);
	rte_spinlock_init(&lk->lock);
	memset(lk->bucket, 0xff, sizeof(lk->bucket));
	TAILQ_INIT(&lk->news);
	for (unsigned int i = 0; i < URN_LEARN_LISTS; i++)
		TAILQ_INIT(&lk->list[i]);
	for (unsigned int i = 0; i < URN_LEARN_ENTRIES; i++)
		TAILQ_INSERT_TAIL(&lk->list[URN_LEARN_ON_FREE], &lk->entry[i], link);
	lk->count[URN_LEARN_ON_FREE] = URN_LEARN_ENTRIES;
	return lk;
}

void
urn_learn_destroy(struct urn_learn *lk)
{
	free(lk);
}

/* ---- hash and lists */

static uint16_t *
bucket_of(struct urn_learn *lk, const uint8_t gid[16])
{
	uint32_t word[4];

	/* A GID in a frame may be unaligned; the hash reads whole words. */
	memcpy(word, gid, sizeof(word));
	return &lk->bucket[rte_jhash_32b(word, 4, lk->hash_seed) & (URN_LEARN_BUCKETS - 1)];
}

struct urn_learn_entry *
urn_learn_find(struct urn_learn *lk, const uint8_t gid[16])
{
	uint16_t i = *bucket_of(lk, gid);

	while (i != URN_LEARN_NIL && memcmp(lk->entry[i].gid, gid, 16) != 0)
		i = lk->entry[i].chain;
	return i != URN_LEARN_NIL ? &lk->entry[i] : NULL;
}

void
urn_learn_move(struct urn_learn *lk, struct urn_learn_entry *e, enum urn_learn_list to)
{
	TAILQ_REMOVE(&lk->list[e->list], e, link);
	lk->count[e->list]--;
	e->list = (uint8_t)to;
	TAILQ_INSERT_TAIL(&lk->list[to], e, link);
	lk->count[to]++;
}

static void
forget(struct urn_learn *lk, struct urn_learn_entry *e)
{
	uint16_t self = (uint16_t)(e - lk->entry);
	uint16_t *at = bucket_of(lk, e->gid);

	while (*at != self)
		at = &lk->entry[*at].chain;
	*at = e->chain;
	if (e->changed)
		TAILQ_REMOVE(&lk->news, e, news);
	urn_learn_move(lk, e, URN_LEARN_ON_FREE);
}

/* The entry that makes room for a wanted one: one that no engine uses, then one with the least knowledge. */
static struct urn_learn_entry *
victim(struct urn_learn *lk)
{
	static const enum urn_learn_list order[] = {URN_LEARN_ON_LEARNT, URN_LEARN_ON_PLAIN,
						   URN_LEARN_ON_WANTED, URN_LEARN_ON_NO_MAC,
						   URN_LEARN_ON_FRESH};
	struct urn_learn_entry *e;

	for (unsigned int i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		e = TAILQ_FIRST(&lk->list[order[i]]);
		if (e)
			return e;
	}
	for (unsigned int i = URN_LEARN_ON_TRIED_LAST; i > URN_LEARN_ON_TRIED; i--) {
		e = TAILQ_FIRST(&lk->list[i]);
		if (e)
			return e;
	}
	return TAILQ_FIRST(&lk->list[URN_LEARN_ON_TRIED]);
}

struct urn_learn_entry *
urn_learn_add(struct urn_learn *lk, const uint8_t gid[16], enum urn_learn_list list)
{
	struct urn_learn_entry *e = TAILQ_FIRST(&lk->list[URN_LEARN_ON_FREE]);
	uint16_t *at, chain;

	if (list == URN_LEARN_ON_LEARNT &&
	    (!e || lk->count[URN_LEARN_ON_LEARNT] >= URN_LEARN_LEARNT)) {
		e = TAILQ_FIRST(&lk->list[URN_LEARN_ON_LEARNT]);
		if (!e)
			return NULL;
	} else if (!e) {
		e = victim(lk);
	}
	if (e->list != URN_LEARN_ON_FREE)
		forget(lk, e);
	at = bucket_of(lk, gid);
	chain = *at;
	*at = (uint16_t)(e - lk->entry);
	memcpy(e->gid, gid, 16);
	memset(&e->info, 0, sizeof(e->info));
	e->state = URN_LEARN_UNKNOWN;
	e->changed = 0;
	e->tries = 0;
	e->wanted = false;
	e->answered = true;
	e->chain = chain;
	urn_learn_move(lk, e, list);
	return e;
}

unsigned int
urn_learn_count(struct urn_learn *lk)
{
	unsigned int n;

	rte_spinlock_lock(&lk->lock);
	n = URN_LEARN_ENTRIES - lk->count[URN_LEARN_ON_FREE];
	rte_spinlock_unlock(&lk->lock);
	return n;
}
