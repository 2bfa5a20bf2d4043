/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of multicast, places in them and members: mcast.c keeps them, mcast_round.c goes round. */
#ifndef URN_TRANSPORT_MCAST_PRIV_H
#define URN_TRANSPORT_MCAST_PRIV_H

#include "base/fair.h"
#include "base/table.h"
#include "transport/mcast.h"

struct urn_mcast_place;
struct urn_mcast_group;

/* A queue pair in a group. */
struct urn_mcast_member {
	TAILQ_ENTRY(urn_mcast_member) link; /* in the round of its place; valid while `active` */
	LIST_ENTRY(urn_mcast_member) of_qp; /* in urn_qp.groups */
	struct urn_mcast_place *place;	    /* the place of the queue pair's client */
	struct urn_qp *qp;
	bool active; /* the queue pair takes datagrams: it is in the round */
};

/* The place of a client, or of another engine, in a group. */
struct urn_mcast_place {
	TAILQ_ENTRY(urn_mcast_place) link; /* in the round of the group; valid while n > 0 */
	LIST_ENTRY(urn_mcast_place) of;	   /* client: among its places; engine: among the group's */
	struct urn_mcast_group *group;
	struct urn_mcast_share *share;	      /* the client's, or the engine's */
	TAILQ_HEAD(, urn_mcast_member) round; /* active members, in turn; empty for an engine */
	uint32_t members;    /* attachments, active or not; 0: the place is another engine's */
	uint32_t n;	     /* receivers: active members; 1 for an engine */
	uint32_t got;	     /* receivers that have the datagram `seen`, or sent it */
	uint64_t seen;	     /* number in the group of the datagram that came here last */
	unsigned int engine; /* index; valid without members */
};
TAILQ_HEAD(urn_mcast_places, urn_mcast_place);

/* A group; the key is its GID. */
struct urn_mcast_group {
	struct urn_table_entry entry;	      /* first */
	struct urn_mcast_places round;	      /* places with receivers; the first in turn first */
	LIST_HEAD(, urn_mcast_place) engines; /* places of other engines */
	uint64_t datagrams;		      /* that came to the group so far */
	uint32_t n;			      /* receivers of all places */
	uint32_t members;		      /* attachments of this engine, active or not */
};

struct urn_mcast {
	struct urn_table groups;			    /* URN_MCAST_GROUPS of them */
	struct urn_fair fair_groups,
		fair_members; /* how many of each a client, and a user, may take */
	uint32_t members;				    /* attachments to all groups */
	uint32_t turn;					    /* turn that `copies` counts in */
	uint32_t copies;				    /* copies made in that turn */
	struct urn_mcast_share engine[URN_ABI_MAX_ENGINES]; /* other engines' parts, by index */
};

/* The group with a GID. NULL: there is none */
static inline struct urn_mcast_group *
urn_mcast_find(const struct urn_tp *tp, const uint8_t gid[16])
{
	return tp->mcast ? urn_table_find(&tp->mcast->groups, gid) : NULL;
}

#endif
