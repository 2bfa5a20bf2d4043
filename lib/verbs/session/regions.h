/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's regions of a protection domain, for the few accesses that the session layer makes
 * in place of an adapter: the result of an atomic that a REPORT brings, and the word that an
 * atomic of the peer meant to change.
 */
#ifndef URN_VERBS_SESSION_REGIONS_H
#define URN_VERBS_SESSION_REGIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A region; all is constant but the link, which the lock of the list's owner protects. */
struct urn_sv_region {
	LIST_ENTRY(urn_sv_region) link;
	uint8_t *base;	     /* first byte, in this process */
	uint64_t start;	     /* address of the first byte, as requests name it */
	uint64_t length;     /* bytes */
	unsigned int access; /* enum ibv_access_flags */
	uint32_t lkey;	     /* key that the program knows */
};

LIST_HEAD(urn_sv_regions, urn_sv_region);

/*
 * Find bytes that the program names by a local key.
 *
 * addr: as requests name it; bytes: how many
 * access: rights that the region must have, enum ibv_access_flags
 * returns: the first byte in this process; NULL: no such region has them
 */
uint8_t *urn_sv_regions_local(const struct urn_sv_regions *list, uint32_t lkey, uint64_t addr,
			      uint64_t bytes, unsigned int access);
/*
 * Find bytes by their address alone, in regions with these rights.
 *
 * returns: the first byte in this process; NULL: no region has them, or regions at different
 * places do
 */
uint8_t *urn_sv_regions_find(const struct urn_sv_regions *list, uint64_t addr, uint64_t bytes,
			     unsigned int access);

#endif
