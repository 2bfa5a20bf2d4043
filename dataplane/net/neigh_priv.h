/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours, for its own files. */
#ifndef URN_NET_NEIGH_PRIV_H
#define URN_NET_NEIGH_PRIV_H

#include "net/neigh.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <rte_spinlock.h>

enum list {
	FREE,
	ACTIVE, /* wanted: MAC known; longest unused first */
	LEARNT, /* MAC known, never looked up; oldest news first */
	FAILED, /* wanted: nobody answered; oldest first */
	STATIC, /* configured */
	FRESH,	/* wanted: a request is due at once */
	FIRST_WAIT, /* wanted: one request was sent, two on the next list, and so on; each sorted by `due` */
	LISTS = FIRST_WAIT + URN_NEIGH_TRIES,
};

#define BUCKETS ((unsigned int)URN_NEIGH_ENTRIES)
#define NIL 0xffffu /* no entry */
_Static_assert((BUCKETS & (BUCKETS - 1)) == 0, "hash mask");
_Static_assert(BUCKETS < NIL, "16-bit indices");

struct entry {
	TAILQ_ENTRY(entry) link; /* in nb->list[list] */
	uint64_t due;		 /* ns; FIRST_WAIT and on: next request or end; FAILED: may be asked again */
	uint64_t confirmed;	 /* ns; ACTIVE, LEARNT: when the MAC was last proved */
	uint8_t gid[16];
	uint8_t mac[6]; /* valid when state is REACHABLE or STALE */
	uint8_t state;	/* enum urn_neigh_state; NONE on FREE */
	uint8_t list;	/* enum list, or a list behind FIRST_WAIT */
	uint8_t tries;	/* FRESH and on: requests sent in this series */
	uint16_t chain; /* next in the bucket, or NIL */
};
TAILQ_HEAD(entries, entry);

struct urn_neigh {
	/* Fixed at creation, read without `lock`. */
	uint8_t own[URN_NEIGH_OWN][16];
	unsigned int n_own;
	uint8_t mac[6];
	uint32_t seed; /* the hash's, random: peers can't choose to collide */

	_Atomic uint32_t gen; /* written under `lock`, read without; orders nothing */

	rte_spinlock_t lock; /* protects all fields below */
	uint64_t now;	     /* ns; the newest time that was passed in */
	struct entries list[LISTS];
	unsigned int count[LISTS];
	uint16_t bucket[BUCKETS]; /* first entry, or NIL */
	struct entry entry[URN_NEIGH_ENTRIES];
};

#endif
