/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows at rest. A client may name 64 Ki nodes one after the other, and has urn_flows.owner_max
 * flows at a time. At that bound the oldest idle flow of the client makes room: the flow is cut
 * down to the knowledge that both ends need of each other's packets, epochs and PSNs. From that the
 * flow is made anew when a packet comes, or a message goes; the other end does not notice. Messages
 * are delivered once, also when copies of packets come late: a flow at rest is forgotten as late as
 * an idle one.
 *
 *                  the client needs room, or has many
 *   flow, idle ───────────────────────────────────────► at rest ─── 40 s ──► forgotten
 *        ▲                                                 │
 *        └──────────── a packet came, a message goes ──────┘
 *
 * The places are shared: a client may have as many as are left. So one that takes all it can takes
 * half, the next one half of the others. A client without places has the flows of its bound.
 */
#ifndef URN_TRANSPORT_FLOW_REST_H
#define URN_TRANSPORT_FLOW_REST_H

#include "transport/flow_priv.h"

enum {
	URN_FLOWS_RESTS = 2 * URN_FLOWS_MAX, /* flows at rest of an engine and adapter: a maker that
						is alone may have half of them */
	URN_FLOW_RESTS_LOOK = 16, /* flows of a maker that are looked at for one that may rest */
	URN_FLOW_RESTS_DUE = 64,  /* flows at rest that are forgotten at a time */
};

/* A flow at rest. No packet of the sending end is under way. */
struct urn_flow_rest {
	struct urn_flow_rest *hash_next;    /* in its bucket */
	TAILQ_ENTRY(urn_flow_rest) queue;   /* in urn_flows.resting */
	struct urn_flow_refusals *refusals; /* owner; NULL: none */
	uint64_t *refused_ids;		    /* owner; NULL: none */
	uint64_t tx_epoch;		    /* 0: none */
	uint64_t rx_epoch;		    /* 0: nothing came */
	uint64_t bitmap[URN_FLOW_WINDOW / 64];
	uint8_t gid[16];
	uint32_t tx_at, rx_at; /* units of 2^20 ns, wrap: when packets went, and came */
	uint32_t since;	       /* units of 2^20 ns, wraps: when the flow went to rest */
	/* Fields of struct urn_flow. */
	uint32_t tx_start, tx_born, next_id;
	uint32_t next; /* first PSN never sent */
	uint32_t expected, last_id, stalled_id;
	uint16_t flags; /* enum urn_flow_flag, those that are kept; URN_FLOWF_DOUBTED counts in
			   urn_flows.doubted */
	uint16_t maker; /* bucket of the owner, and 1 */
	uint16_t user_at; /* bucket of the owner's user */
	uint8_t key, asks;
};
_Static_assert(sizeof(struct urn_flow_rest) <= 152, "memory of a flow at rest");

/* Set the number of flows that clients share by the rule of pools; URN_FLOWS_MAX stays the most. */
void urn_flows_bound(struct urn_flows *fl, uint32_t most);
/* Set the number of places for flows at rest; none is there. */
void urn_flows_bound_rests(struct urn_flows *fl, uint32_t most);
/* Prepare flows at rest. returns: 0 or -1: no memory */
int urn_flows_init_rests(struct urn_flows *fl);
void urn_flows_free_rests(struct urn_tp *tp);
/* Make a flow for a message of a maker, a bucket of owners. user: bucket of the owner's user. NULL:
 * maker or user has all that it may have, and none of the maker's flows that were looked at may
 * rest, or no memory (counted) */
struct urn_flow *urn_flow_make_for(struct urn_tp *tp, const uint8_t gid[16], uint8_t key,
				   unsigned int maker, unsigned int user);
/* A flow ends: its maker has it no more. */
void urn_flow_unmake(struct urn_flows *fl, struct urn_flow *f);
/*
 * Make the flow with this key, which is not there, anew if it is at rest. *f: the flow; NULL: it
 * was not at rest. returns: false: it is at rest, and there is no room for it now (counted)
 */
bool urn_flow_restore(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, struct urn_flow **f);
/* A flow of a maker goes to rest, and is no more, if nothing is under way. A flow that knows
 * nothing is forgotten, and so is one without a place by which nothing came. returns: false: it
 * stays
 */
bool urn_flow_rest(struct urn_tp *tp, struct urn_flow *f);

#endif
