/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids of connection management: places, hashes, owners. */
#include "cm/cm_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

uint64_t
cm_draw(struct urn_cm *cm)
{
	return urn_draw(&cm->draw);
}

static uint32_t
pow2(uint32_t n)
{
	uint32_t p = 16;

	while (p < n)
		p *= 2;
	return p;
}

struct urn_cm *
urn_cm_create(const struct urn_cm_config *cfg)
{
	struct urn_cm *cm = cfg->max_ids <= URN_CM_IDS_MAX ? calloc(1, sizeof(*cm)) : NULL;
	uint32_t seed;
	bool made;

	if (!cm)
		return NULL;
	cm->cfg = *cfg;
	cm->cfg.max_ids = cfg->max_ids ? cfg->max_ids : 32768;
	cm->cfg.max_mtu = cfg->max_mtu ? cfg->max_mtu : 5;
	if (urn_draw_init(&cm->draw, cfg->seed) != 0) {
		free(cm);
		return NULL;
	}
	seed = (uint32_t)cm_draw(cm);
	TAILQ_INIT(&cm->free);
	TAILQ_INIT(&cm->orphans);
	/* 0 is no index: ids are never 0. */
	cm->bits = (uint32_t)__builtin_ctz(pow2(cm->cfg.max_ids + 1));
	cm->fresh = 1;
	cm->conn = calloc((size_t)cm->cfg.max_ids + 1, sizeof(*cm->conn));
	cm->heap = calloc((size_t)cm->cfg.max_ids, sizeof(*cm->heap));
	made = cm_use_create(cm, seed);
	for (unsigned int h = 0; h < CM_HASHES; h++)
		made = urn_hash_init(&cm->hash[h], cm->cfg.max_ids, seed) == 0 && made;
	if (!made || !cm->conn || !cm->heap) {
		urn_cm_destroy(cm);
		return NULL;
	}
	return cm;
}

void
urn_cm_destroy(struct urn_cm *cm)
{
	if (!cm)
		return;
	for (unsigned int h = 0; h < CM_HASHES; h++)
		urn_hash_fini(&cm->hash[h]);
	cm_use_destroy(cm);
	free(cm->heap);
	free(cm->conn);
	free(cm);
}

/* ---- hashes */

static uint32_t *
bucket_of(const struct urn_cm *cm, enum cm_hash h, const uint8_t gid[16], uint64_t key)
{
	uint32_t word[6];

	memcpy(word, gid, 16);
	memcpy(word + 4, &key, sizeof(key));
	return urn_hash_bucket(&cm->hash[h], word, 6);
}

static const uint8_t no_gid[16];

static uint32_t *
bucket_for(const struct urn_cm *cm, enum cm_hash h, const struct cm_conn *e)
{
	if (h == CM_BY_QPN)
		return bucket_of(cm, h, e->peer, e->remote_qpn);
	if (h == CM_BY_OWN_QPN)
		return bucket_of(cm, h, no_gid, e->qpn);
	if (e->state == URN_CM_LISTEN)
		return bucket_of(cm, h, no_gid, e->service_id);
	return bucket_of(cm, h, e->peer, e->remote_id);
}

void
cm_hash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h)
{
	if (e->hashed[h])
		return;
	urn_hash_put(bucket_for(cm, h, e), (uint32_t)(e - cm->conn), &e->chain[h]);
	e->hashed[h] = true;
}

void
cm_unhash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h)
{
	if (!e->hashed[h])
		return;
	urn_hash_take(bucket_for(cm, h, e), (uint32_t)(e - cm->conn), &cm->conn->chain[h], sizeof(*e));
	e->hashed[h] = false;
}

struct cm_conn *
cm_by_peer(const struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id, bool sidr)
{
	uint32_t i = *bucket_of(cm, CM_BY_PEER, peer, remote_id);

	for (; i != CM_NIL; i = cm->conn[i].chain[CM_BY_PEER]) {
		struct cm_conn *e = &cm->conn[i];

		if (e->state != URN_CM_LISTEN && e->remote_id == remote_id && e->sidr == sidr &&
		    memcmp(e->peer, peer, 16) == 0)
			return e;
	}
	return NULL;
}

struct cm_conn *
cm_by_qpn(const struct urn_cm *cm, const uint8_t peer[16], uint32_t qpn)
{
	uint32_t i = *bucket_of(cm, CM_BY_QPN, peer, qpn);

	for (; i != CM_NIL; i = cm->conn[i].chain[CM_BY_QPN])
		if (cm->conn[i].remote_qpn == qpn && memcmp(cm->conn[i].peer, peer, 16) == 0)
			return &cm->conn[i];
	return NULL;
}

/* True when the peer has answered and not let go: until then the connection counts for its owner. */
static bool
stands(const struct cm_conn *e)
{
	switch (e->state) {
	case URN_CM_REP_RCVD:
	case URN_CM_MRA_REP_SENT:
	case URN_CM_ESTABLISHED:
	case URN_CM_DREQ_SENT:
		return true;
	default:
		return false;
	}
}

/* True when the peer asked, and has not got or not answered our reply. */
static bool
asked(const struct cm_conn *e)
{
	switch (e->state) {
	case URN_CM_REQ_RCVD:
	case URN_CM_MRA_REQ_SENT:
	case URN_CM_REP_SENT:
	case URN_CM_MRA_REP_RCVD:
		return true;
	default:
		return false;
	}
}

enum urn_cm_claim
urn_cm_claimed(const struct urn_cm *cm, const struct urn_cm_owner *o, const uint8_t peer[16],
	       uint32_t qpn)
{
	uint32_t i = *bucket_of(cm, CM_BY_QPN, peer, qpn);
	enum urn_cm_claim claim = URN_CM_CLAIM_NONE;

	for (; i != CM_NIL; i = cm->conn[i].chain[CM_BY_QPN]) {
		const struct cm_conn *e = &cm->conn[i];

		/* A connection that its program let go of is no claim. */
		if (!e->owner || e->remote_qpn != qpn || memcmp(e->peer, peer, 16) != 0)
			continue;
		if (e->owner == o && stands(e))
			return URN_CM_CLAIM_OWN;
		if (e->owner != o && stands(e))
			claim = URN_CM_CLAIM_OTHER;
		else if (e->owner == o && asked(e) && claim == URN_CM_CLAIM_NONE)
			claim = URN_CM_CLAIM_ASKED;
	}
	return claim;
}

bool
urn_cm_holds_qpn(const struct urn_cm *cm, uint32_t qpn)
{
	uint32_t i = *bucket_of(cm, CM_BY_OWN_QPN, no_gid, qpn);

	while (i != CM_NIL && cm->conn[i].qpn != qpn)
		i = cm->conn[i].chain[CM_BY_OWN_QPN];
	return i != CM_NIL || cm_by_service(cm, urn_cm_session_service(qpn)) != NULL;
}

/* The first listener of a service in a chain, from index i on. */
static struct cm_conn *
listener_from(const struct urn_cm *cm, uint32_t i, uint64_t service_id)
{
	for (; i != CM_NIL; i = cm->conn[i].chain[CM_BY_PEER])
		if (cm->conn[i].state == URN_CM_LISTEN && cm->conn[i].service_id == service_id)
			return &cm->conn[i];
	return NULL;
}

struct cm_conn *
cm_by_service(const struct urn_cm *cm, uint64_t service_id)
{
	return listener_from(cm, *bucket_of(cm, CM_BY_PEER, no_gid, service_id), service_id);
}

struct cm_conn *
cm_next_of_service(const struct urn_cm *cm, const struct cm_conn *l)
{
	return listener_from(cm, l->chain[CM_BY_PEER], l->service_id);
}

uint32_t
urn_cm_place_of(const struct urn_cm *cm, uint32_t id)
{
	return id & ((1u << cm->bits) - 1);
}

struct cm_conn *
cm_by_id(const struct urn_cm *cm, uint32_t id)
{
	uint32_t i = urn_cm_place_of(cm, id);

	if (i == 0 || i > cm->cfg.max_ids || cm->conn[i].id != id)
		return NULL;
	return &cm->conn[i];
}

/* ---- places */

/* Take the place that was free longest, or one never used, or one that only waits for late messages. */
static struct cm_conn *
take_place(struct urn_cm *cm)
{
	struct cm_conn *e;

	if (cm->fresh <= cm->cfg.max_ids) {
		e = &cm->conn[cm->fresh++];
		e->uses = (uint32_t)cm_draw(cm);
		e->at = CM_NIL;
		return e;
	}
	if (TAILQ_EMPTY(&cm->free) && !TAILQ_EMPTY(&cm->orphans))
		cm_free(cm, TAILQ_FIRST(&cm->orphans));
	e = TAILQ_FIRST(&cm->free);
	if (e)
		TAILQ_REMOVE(&cm->free, e, link);
	return e;
}

bool
cm_user_takes(const struct urn_cm_owner *o)
{
	if (!o->user_ids || atomic_fetch_add(o->user_ids, 1) < o->max_user_ids)
		return true;
	atomic_fetch_sub(o->user_ids, 1);
	return false;
}

void
cm_user_gives(const struct urn_cm_owner *o)
{
	if (o->user_ids)
		atomic_fetch_sub(o->user_ids, 1);
}

int
cm_alloc(struct urn_cm *cm, struct urn_cm_owner *o, int32_t channel, struct cm_conn **out)
{
	struct cm_conn *e;
	uint32_t uses;

	if (o->going || (o->max_ids && o->ids >= o->max_ids) || !cm_user_takes(o))
		return EDQUOT;
	e = take_place(cm);
	if (!e) {
		cm_user_gives(o);
		return ENOSPC;
	}
	do /* an id tells nothing of the next one of its place */
		uses = (uint32_t)cm_draw(cm);
	while (uses << cm->bits == e->uses << cm->bits);
	memset(e, 0, sizeof(*e));
	e->at = CM_NIL;
	e->uses = uses;
	e->id = uses << cm->bits | (uint32_t)(e - cm->conn);
	e->owner = o;
	e->channel = channel;
	e->use = cm_use_begin(cm, o, channel);
	o->ids++;
	TAILQ_INSERT_TAIL(&o->conns, e, link);
	cm->used++;
	*out = e;
	return 0;
}

void
cm_orphan(struct urn_cm *cm, struct cm_conn *e)
{
	cm_begun(cm, e); /* an orphan makes room for whoever needs it */
	TAILQ_REMOVE(&e->owner->conns, e, link);
	e->owner->ids--;
	cm_user_gives(e->owner);
	cm_use_end(cm, e->use);
	e->use = CM_NIL;
	e->owner = NULL;
	TAILQ_INSERT_TAIL(&cm->orphans, e, link);
}

void
cm_free(struct urn_cm *cm, struct cm_conn *e)
{
	if (!cm_orphaned(e))
		cm_orphan(cm, e);
	TAILQ_REMOVE(&cm->orphans, e, link);
	cm_no_longer_waits(cm, e);
	cm_timer_stop(cm, e);
	for (unsigned int h = 0; h < CM_HASHES; h++)
		cm_unhash(cm, e, (enum cm_hash)h);
	e->id = 0;
	e->state = URN_CM_IDLE;
	TAILQ_INSERT_TAIL(&cm->free, e, link);
	cm->used--;
}

/* ---- requests of peers that are no connections yet */

/* Number of a peer's address. Peers can't choose addresses that share one: the hash has a seed. */
static unsigned int
cm_source(const struct urn_cm *cm, const uint8_t peer[16])
{
	uint32_t words[4];

	memcpy(words, peer, sizeof(words));
	return rte_jhash_32b(words, 4, cm->use_hash.seed) % CM_SOURCES;
}

bool
cm_may_begin(const struct urn_cm *cm, const struct urn_cm_owner *o, const uint8_t peer[16])
{
	uint32_t all = RTE_MAX(cm->cfg.max_ids / 2, 16u), one = RTE_MAX(cm->cfg.max_ids / 8, 16u),
		 few = cm->cfg.max_ids / 256;

	/* Programs share an address: one of them that begins much must not keep the others of its
	 * node from the listeners of other programs. */
	return cm->half < all && o->half < one &&
	       (o->half < few || cm->half_of[cm_source(cm, peer)] < one);
}

void
cm_begins(struct urn_cm *cm, struct cm_conn *e)
{
	e->half = true;
	e->owner->half++;
	cm->half++;
	cm->half_of[cm_source(cm, e->peer)]++;
}

void
cm_begun(struct urn_cm *cm, struct cm_conn *e)
{
	if (!e->half)
		return;
	e->half = false;
	e->owner->half--;
	cm->half--;
	cm->half_of[cm_source(cm, e->peer)]--;
}

/* ---- looking in */

uint32_t
urn_cm_max_ids(const struct urn_cm *cm)
{
	return cm->cfg.max_ids;
}

void
urn_cm_counters(struct urn_cm *cm, struct urn_counters *to)
{
	urn_counts_move(&cm->counts, to);
}
