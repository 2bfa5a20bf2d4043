/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours, for its own files. */
#ifndef URN_NET_NEIGH_PRIV_H
#define URN_NET_NEIGH_PRIV_H

#include "base/table.h"
#include "net/neigh.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <rte_spinlock.h>

enum list {
	FREE = URN_TABLE_FREE,
	ACTIVE, /* wanted: MAC known; longest unused first */
	LEARNT, /* MAC known, never looked up; oldest news first */
	FAILED, /* wanted: nobody answered; oldest first */
	STATIC, /* configured */
	FRESH,	/* wanted: a request is due at once */
	FIRST_WAIT, /* wanted: one request was sent, two on the next list, and so on; each sorted by `due` */
	LISTS = FIRST_WAIT + URN_NEIGH_TRIES,
};

struct entry {
	struct urn_table_entry t; /* key: the GID; list: enum list, or a list behind FIRST_WAIT */
	uint64_t due;		 /* ns; FIRST_WAIT and on: next request or end; FAILED: may be asked again */
	uint64_t confirmed;	 /* ns; ACTIVE, LEARNT: when the MAC was last proved */
	uint8_t mac[6]; /* valid when state is REACHABLE or STALE */
	uint8_t state;	/* enum urn_neigh_state; NONE on FREE */
	uint8_t tries;	/* FRESH and on: requests sent in this series */
	bool contested; /* LEARNT: another MAC was claimed, too */
};

struct urn_neigh {
	/* Fixed at creation, read without `lock`. */
	uint8_t own[URN_NEIGH_OWN][16];
	unsigned int n_own;
	uint8_t mac[6];

	_Atomic uint32_t gen; /* written under `lock`, read without; orders nothing */

	rte_spinlock_t lock; /* protects all fields below */
	uint64_t now;	     /* ns; the newest time that was passed in */
	struct urn_neigh_route route[URN_NEIGH_ROUTES]; /* longest prefix first */
	unsigned int routes;				/* elements of route in use */
	struct urn_table table; /* URN_NEIGH_ENTRIES struct entry */
};

/* Tell users that lookups may have other results now. Under the lock. */
static inline void
urn_neigh_changed(struct urn_neigh *nb)
{
	atomic_fetch_add_explicit(&nb->gen, 1, memory_order_relaxed);
}

/* Next hop of a GID: the GID, or its router's. NULL: no route. Under the lock. (neigh_route.c) */
const uint8_t *urn_neigh_next_hop(const struct urn_neigh *nb, const uint8_t gid[16]);
/* The entry that a GID's frames go by: its own static one, or its next hop's. NULL: none; *hop: the
 * next hop's GID, NULL: no route. Under the lock. (neigh_route.c) */
struct entry *urn_neigh_entry_for(struct urn_neigh *nb, const uint8_t gid[16], const uint8_t **hop);

#endif
