/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: requests for a service whose listener ended a moment ago. A program may
 * listen anew for each connection (perftest does), and its peer asks before the program has come so
 * far. Such a request waits for the next listener, and is refused when none came in time.
 *
 * Everything here is of fixed size, and a request that finds no place is refused at once: clients
 * and peers that fill the places take nothing from others but this wait.
 */
#include "cm/cm_internal.h"

/* The place that remembers a service. Clients can't choose services that share a place: the hash
 * has a seed. */
static struct cm_left *
left_of(const struct urn_cm *cm, uint64_t service_id)
{
	uint32_t words[2];

	memcpy(words, &service_id, sizeof(words));
	return (struct cm_left *)&cm->left[rte_jhash_32b(words, 2, cm->use_hash.seed) % CM_LEFT];
}

void
cm_leaves(struct urn_cm *cm, const struct cm_conn *l, uint64_t now)
{
	struct cm_left *left = left_of(cm, l->service_id);
	unsigned int same = 0;

	for (unsigned int i = 0; i < CM_LEFT; i++)
		same += &cm->left[i] != left && cm->left[i].owner == l->owner &&
			now < cm->left[i].until;
	if (same >= CM_LEFT_OWNER)
		return;
	left->service_id = l->service_id;
	left->until = now + CM_LEFT_NS;
	left->owner = l->owner;
}

void
cm_left_forget(struct urn_cm *cm, const struct urn_cm_owner *o)
{
	for (unsigned int i = 0; i < CM_LEFT; i++)
		if (cm->left[i].owner == o)
			cm->left[i] = (struct cm_left){0};
}

/* The held request of this peer and name; NULL: none */
static struct cm_held *
held_as(struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id)
{
	for (unsigned int i = 0; cm->held_n && i < CM_HELD; i++) {
		struct cm_held *h = &cm->held[i];

		if (h->used && h->remote_id == remote_id && memcmp(h->peer, peer, 16) == 0)
			return h;
	}
	return NULL;
}

/* A free place, if the service has not as many as it may. */
static struct cm_held *
free_place(struct urn_cm *cm, uint64_t service_id)
{
	struct cm_held *place = NULL;
	unsigned int same = 0;

	for (unsigned int i = 0; i < CM_HELD; i++) {
		if (!cm->held[i].used)
			place = place ? place : &cm->held[i];
		else if (cm->held[i].service_id == service_id)
			same++;
	}
	return same < CM_HELD_SERVICE ? place : NULL;
}

/* Time that a request may wait, ns: at most half as long as its peer waits for an answer, so that
 * the refusal comes in time. */
static uint64_t
hold_time(const struct urn_cm_msg *m)
{
	uint64_t patience = cm_patience(m->remote_timeout) * (m->max_retries + 1ull);

	return RTE_MIN(CM_HOLD_NS, patience / 2);
}

enum urn_counter
cm_hold(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
	const uint8_t peer[16], uint64_t now)
{
	const struct cm_left *left = left_of(cm, m->service_id);
	struct cm_held *h;

	if (held_as(cm, peer, m->local_id))
		return URN_C_CM_DUPLICATE;
	if (left->service_id != m->service_id || now >= left->until)
		return URN_C_CM_NO_SERVICE;
	h = free_place(cm, m->service_id);
	if (!h)
		return URN_C_CM_NO_SERVICE;
	h->used = true;
	h->wanted = false;
	h->service_id = m->service_id;
	h->remote_id = m->local_id;
	h->due = now + hold_time(m);
	memcpy(h->peer, peer, 16);
	memcpy(h->own, own, 16);
	h->m = *m;
	cm->held_n++;
	return URN_C_CM_RX;
}

static void
let_go(struct urn_cm *cm, struct cm_held *h)
{
	h->used = false;
	cm->held_n--;
}

bool
cm_held_withdrawn(struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id)
{
	struct cm_held *h = held_as(cm, peer, remote_id);

	if (h)
		let_go(cm, h);
	return h != NULL;
}

void
cm_held_wanted(struct urn_cm *cm, uint64_t service_id)
{
	for (unsigned int i = 0; cm->held_n && i < CM_HELD; i++) {
		struct cm_held *h = &cm->held[i];

		if (!h->used || h->service_id != service_id)
			continue;
		h->wanted = true;
		h->due = RTE_MIN(h->due, cm->seen);
	}
}

uint64_t
cm_held_due(const struct urn_cm *cm)
{
	uint64_t due = UINT64_MAX;

	for (unsigned int i = 0; cm->held_n && i < CM_HELD; i++)
		if (cm->held[i].used)
			due = RTE_MIN(due, cm->held[i].due);
	return due;
}

unsigned int
cm_held_tick(struct urn_cm *cm, uint64_t now)
{
	unsigned int n = 0;

	for (unsigned int i = 0; cm->held_n && i < CM_HELD; i++) {
		struct cm_held h = cm->held[i];
		enum urn_counter c;

		if (!h.used || h.due > now)
			continue;
		/* If a new listener has come and ended, the request waits for the next one. */
		let_go(cm, &cm->held[i]);
		c = cm_request(cm, &h.m, h.own, h.peer, now, h.wanted);
		if (c != URN_C_CM_RX) /* the request counted so when it came */
			urn_counts_add(&cm->counts, c);
		n++;
	}
	return n;
}
