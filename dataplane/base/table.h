/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of so many entries and no more, by keys of 16 bytes. Each entry is on exactly one list, which
 * says what the entry waits for and, by its order, which entry goes first. Free entries are on list 0.
 * The owner embeds struct urn_table_entry as the first field of its own entries, and decides which entry
 * makes room for a new one.
 *
 * Nothing here locks or reads a clock.
 */
#ifndef URN_BASE_TABLE_H
#define URN_BASE_TABLE_H

#include "base/hash.h"

#include <sys/queue.h>

enum { URN_TABLE_KEY = 16, URN_TABLE_FREE = 0 }; /* bytes; list of the free entries */

struct urn_table_entry {
	TAILQ_ENTRY(urn_table_entry) link; /* in the table's list[list] */
	uint32_t next;                     /* in the bucket; valid unless free */
	uint8_t list;
	uint8_t key[URN_TABLE_KEY];        /* valid unless free */
};
TAILQ_HEAD(urn_table_list, urn_table_entry);

struct urn_table {
	struct urn_hash hash;
	struct urn_table_list *list; /* by number; owner: the table */
	uint32_t *count;             /* entries on each list */
	void *entry;                 /* the array; owner: the table */
	size_t size;                 /* bytes of an entry */
	uint32_t entries;
};

/* size: bytes of the owner's entries, all zero at first; seed: of the hash, random. returns: 0 or ENOMEM */
int urn_table_init(struct urn_table *t, uint32_t entries, size_t size, uint32_t lists, uint32_t seed);
/* Free what init made, also after it failed. */
void urn_table_fini(struct urn_table *t);

/* Entry number i, 0 to entries - 1, free ones too. */
static inline void *
urn_table_at(const struct urn_table *t, uint32_t i)
{
	return (char *)t->entry + i * t->size;
}

/* The first entry of a list. NULL: the list is empty */
static inline void *
urn_table_first(const struct urn_table *t, uint32_t list)
{
	return TAILQ_FIRST(&t->list[list]);
}

/* The entry with this key; key may be unaligned. NULL: there is none */
void *urn_table_find(const struct urn_table *t, const uint8_t key[URN_TABLE_KEY]);
/* Move an entry that is not free to the end of another list, or of its own; not to the free ones. */
void urn_table_move(struct urn_table *t, struct urn_table_entry *e, uint32_t list);
/* Give a free entry a key that no other entry has, and put it on a list. The owner's fields keep their bytes. */
void urn_table_put(struct urn_table *t, struct urn_table_entry *e, const uint8_t key[URN_TABLE_KEY], uint32_t list);
/* Free an entry. */
void urn_table_take(struct urn_table *t, struct urn_table_entry *e);

#endif
