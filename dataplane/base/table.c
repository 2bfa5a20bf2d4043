/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

int
urn_table_init(struct urn_table *t, uint32_t entries, size_t size, uint32_t lists, uint32_t seed)
{
	t->entries = entries;
	t->size = size;
	t->entry = calloc(entries, size);
	t->list = calloc(lists, sizeof(*t->list));
	t->count = calloc(lists, sizeof(*t->count));
	if (urn_hash_init(&t->hash, entries, seed) || !t->entry || !t->list || !t->count) {
		urn_table_fini(t);
		return ENOMEM;
	}
	for (uint32_t i = 0; i < lists; i++)
		TAILQ_INIT(&t->list[i]);
	for (uint32_t i = 0; i < entries; i++)
		TAILQ_INSERT_TAIL(&t->list[URN_TABLE_FREE], (struct urn_table_entry *)urn_table_at(t, i), link);
	t->count[URN_TABLE_FREE] = entries;
	return 0;
}

void
urn_table_fini(struct urn_table *t)
{
	urn_hash_fini(&t->hash);
	free(t->entry);
	free(t->list);
	free(t->count);
	t->entry = NULL;
	t->list = NULL;
	t->count = NULL;
}

static uint32_t *
bucket_of(const struct urn_table *t, const uint8_t key[URN_TABLE_KEY])
{
	uint32_t word[URN_TABLE_KEY / 4];

	/* A key in a frame may be unaligned; the hash reads whole words. */
	memcpy(word, key, sizeof(word));
	return urn_hash_bucket(&t->hash, word, URN_TABLE_KEY / 4);
}

void *
urn_table_find(const struct urn_table *t, const uint8_t key[URN_TABLE_KEY])
{
	uint32_t i = *bucket_of(t, key);

	while (i != URN_HASH_NIL) {
		struct urn_table_entry *e = urn_table_at(t, i);

		if (memcmp(e->key, key, URN_TABLE_KEY) == 0)
			return e;
		i = e->next;
	}
	return NULL;
}

static void
relink(struct urn_table *t, struct urn_table_entry *e, uint32_t list)
{
	TAILQ_REMOVE(&t->list[e->list], e, link);
	t->count[e->list]--;
	e->list = (uint8_t)list;
	TAILQ_INSERT_TAIL(&t->list[list], e, link);
	t->count[list]++;
}

void
urn_table_move(struct urn_table *t, struct urn_table_entry *e, uint32_t list)
{
	relink(t, e, list);
}

static uint32_t
index_of(const struct urn_table *t, const struct urn_table_entry *e)
{
	return (uint32_t)((size_t)((const char *)e - (const char *)t->entry) / t->size);
}

void
urn_table_put(struct urn_table *t, struct urn_table_entry *e, const uint8_t key[URN_TABLE_KEY], uint32_t list)
{
	memmove(e->key, key, URN_TABLE_KEY);
	urn_hash_put(bucket_of(t, key), index_of(t, e), &e->next);
	relink(t, e, list);
}

void
urn_table_take(struct urn_table *t, struct urn_table_entry *e)
{
	struct urn_table_entry *first = t->entry;

	urn_hash_take(bucket_of(t, e->key), index_of(t, e), &first->next, t->size);
	relink(t, e, URN_TABLE_FREE);
}
