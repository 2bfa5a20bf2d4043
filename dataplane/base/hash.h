/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash over entries of an array: buckets hold the index of the first entry, and each entry the index of
 * the next. Owners keep keys and entries; the hash keeps order by nothing but arrival, the newest first.
 *
 * rte_hash was not taken: it would keep every key a second time, in memory of the EAL, and owners
 * keep their entries on lists by age anyway.
 */
#ifndef URN_BASE_HASH_H
#define URN_BASE_HASH_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

#define URN_HASH_NIL UINT32_MAX /* no entry */

struct urn_hash {
	uint32_t *bucket; /* index of the first entry, or URN_HASH_NIL; owner: the hash */
	uint32_t mask;    /* number of buckets less 1 */
	uint32_t seed;    /* random: peers and clients can't choose keys that collide */
};

/* Make buckets for so many entries. returns: 0 or ENOMEM */
static inline int
urn_hash_init(struct urn_hash *h, uint32_t entries, uint32_t seed)
{
	uint32_t n = 16;

	while (n < entries)
		n *= 2;
	h->mask = n - 1;
	h->seed = seed;
	h->bucket = malloc(n * sizeof(*h->bucket));
	if (!h->bucket)
		return ENOMEM;
	memset(h->bucket, 0xff, n * sizeof(*h->bucket));
	return 0;
}

static inline void
urn_hash_fini(struct urn_hash *h)
{
	free(h->bucket);
	h->bucket = NULL;
}

/* The bucket of a key of `words` 32-bit words. key: aligned as words are */
static inline uint32_t *
urn_hash_bucket(const struct urn_hash *h, const uint32_t *key, uint32_t words)
{
	return &h->bucket[rte_jhash_32b(key, words, h->seed) & h->mask];
}

/* Put entry i at the front of a bucket. next: the entry's field for the index of the next */
static inline void
urn_hash_put(uint32_t *bucket, uint32_t i, uint32_t *next)
{
	*next = *bucket;
	*bucket = i;
}

/*
 * Take entry i, which is there, out of a bucket. next: the field for the next index in entry 0 of the
 * array; size: bytes from one entry to the next
 */
static inline void
urn_hash_take(uint32_t *bucket, uint32_t i, void *next, size_t size)
{
	while (*bucket != i)
		bucket = (uint32_t *)((char *)next + *bucket * size);
	*bucket = *(uint32_t *)((char *)next + i * size);
}

#endif
