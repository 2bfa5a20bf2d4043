/* SPDX-License-Identifier: BSD-3-Clause */
/* A look into connection management: states, counts, and whether all data are consistent. */
#ifndef TEST_CM_LOOK_H
#define TEST_CM_LOOK_H

#include "cm/cm_internal.h"

/* State of an id; IDLE if there is none. */
static inline enum urn_cm_state
test_cm_state(const struct urn_cm *cm, uint32_t id)
{
	const struct cm_conn *e = cm_by_id(cm, id);

	return e ? (enum urn_cm_state)e->state : URN_CM_IDLE;
}

/* Name of a state; "?" for a number that is none. */
static inline const char *
test_cm_state_name(unsigned int state)
{
	static const char *const names[URN_CM_STATES] = {
		[URN_CM_IDLE] = "idle",
		[URN_CM_LISTEN] = "listen",
		[URN_CM_REQ_SENT] = "req_sent",
		[URN_CM_REQ_RCVD] = "req_rcvd",
		[URN_CM_MRA_REQ_SENT] = "mra_req_sent",
		[URN_CM_MRA_REQ_RCVD] = "mra_req_rcvd",
		[URN_CM_REP_SENT] = "rep_sent",
		[URN_CM_REP_RCVD] = "rep_rcvd",
		[URN_CM_MRA_REP_SENT] = "mra_rep_sent",
		[URN_CM_MRA_REP_RCVD] = "mra_rep_rcvd",
		[URN_CM_ESTABLISHED] = "established",
		[URN_CM_DREQ_SENT] = "dreq_sent",
		[URN_CM_DREQ_RCVD] = "dreq_rcvd",
		[URN_CM_TIMEWAIT] = "timewait",
		[URN_CM_SIDR_REQ_SENT] = "sidr_req_sent",
		[URN_CM_SIDR_REQ_RCVD] = "sidr_req_rcvd",
	};

	return state < URN_CM_STATES ? names[state] : "?";
}

/* Ids in use, with those that nobody owns any more. */
static inline uint32_t
test_cm_count(const struct urn_cm *cm)
{
	return cm->used;
}

/* Requests that wait for a listener, which have no ids */
static inline uint32_t
test_cm_held(const struct urn_cm *cm)
{
	return cm->held_n;
}

/* True when a listener is found by its service. */
static inline bool
test_cm_listens(const struct urn_cm *cm, const struct cm_conn *e)
{
	const struct cm_conn *l = cm_by_service(cm, e->service_id);

	while (l && l != e)
		l = cm_next_of_service(cm, l);
	return e->hashed[CM_BY_PEER] && l;
}

/* True when the id is found where it is looked up. */
static inline bool
test_cm_conn_sound(const struct urn_cm *cm, const struct cm_conn *e)
{
	if (cm_by_id(cm, e->id) != e || e->state >= URN_CM_STATES)
		return false;
	if (e->at != CM_NIL && (e->at >= cm->heap_n || cm->heap[e->at] != (uint32_t)(e - cm->conn)))
		return false;
	if (e->state == URN_CM_LISTEN)
		return test_cm_listens(cm, e);
	if (!cm_orphaned(e) && (e->use == CM_NIL || cm->use[e->use].owner != e->owner ||
				cm->use[e->use].channel != e->channel))
		return false;
	/* An id that nobody owns ends by its timer; an idle id has no timer. */
	if (e->at == CM_NIL ? cm_orphaned(e) : e->state == URN_CM_IDLE)
		return false;
	return !e->waits || e->state == URN_CM_REQ_RCVD || e->state == URN_CM_MRA_REQ_SENT ||
	       e->state == URN_CM_SIDR_REQ_RCVD;
}

/* Entries in all buckets of a hash; in a circle, at least one more than there are. */
static inline uint32_t
test_cm_chained(const struct urn_cm *cm, enum cm_hash h)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b <= cm->hash[h].mask; b++)
		for (uint32_t i = cm->hash[h].bucket[b]; i != CM_NIL && n <= cm->cfg.max_ids;
		     i = cm->conn[i].chain[h])
			n++;
	return n;
}

/* True when all data are consistent. O(all ids) */
static inline bool
test_cm_sound(const struct urn_cm *cm)
{
	uint32_t used = 0, timers = 0, hashed[CM_HASHES] = {0}, waits = 0, pending = 0, owned = 0, uses = 0;
	uint32_t half = 0, half_of = 0, held = 0;

	for (uint32_t i = 1; i < cm->fresh; i++) {
		const struct cm_conn *e = &cm->conn[i];

		if (e->id == 0)
			continue;
		if (!test_cm_conn_sound(cm, e))
			return false;
		used++;
		owned += !cm_orphaned(e);
		timers += e->at != CM_NIL;
		waits += e->waits;
		half += e->half;
		if (e->half && cm_orphaned(e))
			return false;
		pending += e->pending;
		for (unsigned int h = 0; h < CM_HASHES; h++)
			hashed[h] += e->hashed[h];
	}
	for (uint32_t i = 1; i < cm->heap_n; i++)
		if (cm->conn[cm->heap[i]].due < cm->conn[cm->heap[(i - 1) / 2]].due)
			return false;
	for (unsigned int h = 0; h < CM_HASHES; h++)
		if (test_cm_chained(cm, (enum cm_hash)h) != hashed[h])
			return false;
	for (uint32_t i = 0; i < cm->uses.made; i++)
		uses += cm->use[i].ids;
	for (unsigned int i = 0; i < CM_SOURCES; i++)
		half_of += cm->half_of[i];
	for (unsigned int i = 0; i < CM_HELD; i++)
		held += cm->held[i].used;
	if (half != cm->half || half_of != half || held != cm->held_n)
		return false;
	return used == cm->used && timers == cm->heap_n && waits >= pending && uses == owned;
}

#endif
