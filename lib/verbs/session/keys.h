/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of regions, translated (FO-2): a program knows the key of the primary adapter, and the
 * backup adapter has another one. The table is a hash with open addressing. A peer reads the
 * whole table by RDMA, and finds keys in its copy in the same way.
 */
#ifndef URN_VERBS_SESSION_KEYS_H
#define URN_VERBS_SESSION_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* Rows of a table: regions of a protection domain that are registered at a time. A power of two */
enum { URN_SV_KEYS = 1024 };

/* A key that no adapter gives to a region, and that is in no table. */
#define URN_SV_NO_KEY UINT32_MAX

struct urn_sv_key {
	uint32_t first;	 /* key on the primary adapter; 0: never used; ~0: free again */
	uint32_t second; /* key on the backup adapter; valid with first */
};

struct urn_sv_keys {
	struct urn_sv_key row[URN_SV_KEYS];
};

/*
 * Put a pair of keys in. Peers may be reading the table.
 *
 * first: neither 0 nor ~0
 * returns: false: the table is full
 */
bool urn_sv_keys_put(struct urn_sv_keys *t, uint32_t first, uint32_t second);
/* Take a pair of keys out, if it is in. */
void urn_sv_keys_drop(struct urn_sv_keys *t, uint32_t first);
/*
 * Find the key on the backup adapter.
 *
 * t: may be a copy from a peer that is not trusted: nothing but second depends on it
 * second: set when the key is found
 * returns: false: there is no such key
 */
bool urn_sv_keys_find(const struct urn_sv_keys *t, uint32_t first, uint32_t *second);

#endif
