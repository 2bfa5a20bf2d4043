/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours, for its own files. */
#ifndef URN_NET_NEIGH_PRIV_H
#define URN_NET_NEIGH_PRIV_H

#include "base/table.h"
#include "counters.h"
#include "net/router.h"

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

/* State of an advertised router or prefix. */
enum advertised_state {
	ADVERTISED_FREE,
	ADVERTISED_NEW,	  /* advertised, not among the routes yet */
	ADVERTISED_TOLD,  /* a route, and told of */
	ADVERTISED_GOING, /* ended, still a route */
};

/* An advertised router or prefix. (neigh_router.c) */
struct advertised {
	struct urn_neigh_route route; /* kind ROUTER or RA_LINK; left_s is not used */
	uint64_t ends;		      /* ns; UINT64_MAX: never; valid when NEW or TOLD */
	uint64_t shunned;  /* ns; ROUTER: no answer came, so other routers go first until then; 0:
			      not so */
	int8_t preference; /* ROUTER: 1 high, 0 medium, -1 low */
	uint8_t state;	   /* enum advertised_state */
	uint8_t why;	   /* GOING: URN_ROUTER_ENDED or _EXPIRED */
};

/* Router discovery; of use when urn_neigh.ra_on. */
struct urn_neigh_ra {
	uint64_t next;	  /* ns; the earliest time at which something is to do */
	uint64_t ask;	  /* ns; next solicitation; UINT64_MAX: none */
	uint64_t settle;  /* ns; the table's changes become routes; UINT64_MAX: there are none */
	uint64_t settled; /* ns; when they did so last; 0: never */
	unsigned int solicits; /* solicitations sent since the last restart */
	bool restart;	       /* begin to solicit at the next poll */
	uint8_t used[16];      /* the router that goes first; all zero: there is none */
	uint8_t told[16];      /* the router last told as used; all zero: none, or a configured
				  gateway goes before */
	struct advertised at[URN_NEIGH_ADVERTISED]; /* URN_NEIGH_ROUTERS routers, then prefixes */
	struct urn_neigh_route list[URN_NEIGH_ADVERTISED]; /* their routes, the used router first */
	unsigned int listed;				   /* elements of list in use */
	struct urn_router_news news[URN_ROUTER_NEWS];	   /* by number modulo the size */
	_Atomic uint32_t news_n; /* news ever; written under the lock, read without; wraps */
};

struct urn_neigh {
	/* Fixed at creation, read without `lock`. */
	uint8_t own[URN_NEIGH_OWN][16];
	unsigned int n_own;
	uint8_t mac[6];
	bool ra_on; /* router advertisements are accepted */

	_Atomic uint32_t gen; /* written under `lock`, read without; orders nothing */

	rte_spinlock_t lock; /* protects all fields below */
	uint64_t now;	     /* ns; the newest time that was passed in */
	struct urn_neigh_route route[URN_NEIGH_ROUTES_ALL]; /* longest prefix first; of one prefix
							     * the configured one first */
	unsigned int routes;				    /* elements of route in use */
	struct urn_neigh_ra ra;
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

/* Put the routes of ra.list in the place of the earlier advertised ones; users are told. Under the
 * lock. (neigh_route.c) */
void urn_neigh_replace_advertised(struct urn_neigh *nb);

/* Take a frame for which urn_ra_is() holds. Under the lock. returns: the counter that applies
 * (neigh_router.c) */
enum urn_counter urn_neigh_take_ra(struct urn_neigh *nb, const struct rte_mbuf *m);
/* Nobody answered for an address, which may be an advertised router's. Under the lock.
 * (neigh_router.c) */
void urn_neigh_router_failed(struct urn_neigh *nb, const uint8_t gid[16]);
/* Let time pass for advertised routers, once ra.next is due. Under the lock. returns: frames in
 * out[], at most max (neigh_router.c) */
unsigned int urn_neigh_poll_ra(struct urn_neigh *nb, struct rte_mempool *pool,
			       struct rte_mbuf **out, unsigned int max);
/* The configured routes are others: see whether the next hop is still the one that was told. Under
 * the lock. (neigh_router.c) */
void urn_neigh_review_routers(struct urn_neigh *nb);
/* Begin to solicit routers. Takes the lock. (neigh_router.c) */
void urn_neigh_restart_ra(struct urn_neigh *nb);
/* Seconds to the end of an advertised route; 0: it has none. Under the lock. (neigh_router.c) */
uint32_t urn_neigh_advertised_left(const struct urn_neigh *nb, const struct urn_neigh_route *r);
/* An empty frame with its urn_pkt zeroed. NULL: the pool is empty. (neigh.c) */
struct rte_mbuf *urn_neigh_new_frame(struct rte_mempool *pool);

#endif
