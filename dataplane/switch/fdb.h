/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding database: the port behind which a MAC address is. Learnt entries age
 * and move; static ones stay. Open addressing with linear
 * probing, at most half full: look-up O(1), no memory taken after creation.
 * The hash has a seed, so that senders of frames cannot choose collisions.
 */
#ifndef URN_SWITCH_FDB_H
#define URN_SWITCH_FDB_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define URN_FDB_MAX 1048576u /* largest number of entries */

/* A MAC address as a number: its bytes in the order of memory. */
static inline uint64_t
urn_mac(const uint8_t mac[6])
{
	uint64_t v = 0;

	memcpy(&v, mac, 6);
	return v;
}

/* True when the lowest bit of the first byte is set, the group bit: multicast and broadcast. */
static inline bool
urn_mac_is_group(uint64_t mac)
{
	uint8_t first;

	memcpy(&first, &mac, 1);
	return first & 1;
}

struct urn_fdb_config {
	uint32_t max;	 /* entries, static and learnt */
	uint64_t age_ns; /* a learnt entry not seen for longer is forgotten; 0: never */
	uint64_t seed;	 /* the hash's */
};

struct urn_fdb;

/* returns: NULL when max is 0 or above URN_FDB_MAX, or when out of memory */
struct urn_fdb *urn_fdb_create(const struct urn_fdb_config *cfg);
void urn_fdb_destroy(struct urn_fdb *fdb);

/* returns: port, or -1: not known, or too old. now: ns */
int urn_fdb_lookup(const struct urn_fdb *fdb, uint64_t mac, uint64_t now);

enum urn_fdb_learnt {
	URN_FDB_SAME, /* known behind this port; seen again */
	URN_FDB_NEW,
	URN_FDB_MOVED,	/* was behind another port */
	URN_FDB_FULL,	/* not learnt: no room */
	URN_FDB_STATIC, /* not learnt: a static entry puts it behind another port */
};
enum urn_fdb_learnt urn_fdb_learn(struct urn_fdb *fdb, uint64_t mac, uint16_t port, uint64_t now);

/*
 * Put an address behind a port for good, learnt or not. returns: 0, -ENOSPC,
 * -EINVAL (a group address)
 */
int urn_fdb_set(struct urn_fdb *fdb, uint64_t mac, uint16_t port);
/* Forget all addresses that were learnt behind a port. */
void urn_fdb_flush(struct urn_fdb *fdb, uint16_t port);
/*
 * Forget entries that are too old among the next `slots` places of the table; goes on
 * where the last call stopped. Makes room for new entries; lookup does not need it. returns:
 * how many were forgotten
 */
uint32_t urn_fdb_tend(struct urn_fdb *fdb, uint32_t slots, uint64_t now);
/* Number of entries, with old ones that were not forgotten yet. */
uint32_t urn_fdb_count(const struct urn_fdb *fdb);

struct urn_fdb_entry {
	uint64_t mac;
	uint64_t seen; /* ns; learnt entries: last frame */
	uint16_t port;
	bool fixed; /* static */
};
/* The next entry: *at is 0 at first. returns: NULL at the end */
const struct urn_fdb_entry *urn_fdb_next(const struct urn_fdb *fdb, uint32_t *at);

#endif
