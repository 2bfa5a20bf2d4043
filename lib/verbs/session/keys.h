/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of regions, translated (FO-2): a program knows one key of a region, its name, which is that
 * of the primary adapter when the region was made. Each adapter has a key of its own, and another
 * one after it came back (FO-19). The table is a hash with open addressing. A peer reads the
 * whole table by RDMA, and finds keys in its copy in the same way.
 */
#ifndef URN_VERBS_SESSION_KEYS_H
#define URN_VERBS_SESSION_KEYS_H

#include "verbs/session/peer.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows of a table: regions of a protection domain that are registered at a time. A power of two */
enum { URN_SV_KEYS = 1024 };

/* A key that no adapter gives to a region, and that is in no table. */
#define URN_SV_NO_KEY UINT32_MAX

struct urn_sv_key {
	uint32_t first;		       /* name of the region; 0: never used; ~0: free again */
	uint32_t key[URN_SV_ADAPTERS]; /* key on each adapter, or URN_SV_NO_KEY; valid with first */
};

struct urn_sv_keys {
	struct urn_sv_key row[URN_SV_KEYS];
};

/*
 * Put the keys of a region in. Peers may be reading the table.
 *
 * first: its name, neither 0 nor ~0
 * key: its key on each adapter, or URN_SV_NO_KEY
 * returns: false: the table is full
 */
bool urn_sv_keys_put(struct urn_sv_keys *t, uint32_t first, const uint32_t key[URN_SV_ADAPTERS]);
/* Change the key of a region on an adapter that came back. Nothing happens if the name is not in.
 */
void urn_sv_keys_set(struct urn_sv_keys *t, uint32_t first, uint32_t adapter, uint32_t key);
/* Take the keys of a region out, if they are in. */
void urn_sv_keys_drop(struct urn_sv_keys *t, uint32_t first);
/*
 * Find the key of a region on an adapter.
 *
 * t: may be a copy from a peer that is not trusted: nothing but *key depends on it
 * adapter: below URN_SV_ADAPTERS
 * key: set when the name is found; may be URN_SV_NO_KEY
 * returns: false: there is no such name
 */
bool urn_sv_keys_find(const struct urn_sv_keys *t, uint32_t first, uint32_t adapter, uint32_t *key);

#endif
