/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parked messages: those that their peer has refused, and those behind them. A peer with parked
 * messages gets one lane for a try after each pause; when a message is taken, twice as many as
 * before. The order among its messages stays nearly that of their sending, so none is forgotten.
 */
#include "am/outbox.h"

#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000) /* ns */

/* ---- the list of peers with parked messages */

static void
wait_for(struct urn_am_outbox *box, struct urn_am_peer *p)
{
	uint32_t i = urn_am_peer_index(box, p);

	if (p->waits)
		return;
	p->waits = true;
	p->users++;
	p->waiting = URN_AM_NO_PEER;
	if (box->waiting == URN_AM_NO_PEER)
		box->waiting = i;
	else
		box->peer[box->waiting_end].waiting = i;
	box->waiting_end = i;
}

/* Take the first peer out of the list; its user is the caller's. NULL: the list is empty */
static struct urn_am_peer *
next_waiting(struct urn_am_outbox *box)
{
	struct urn_am_peer *p;

	if (box->waiting == URN_AM_NO_PEER)
		return NULL;
	p = &box->peer[box->waiting];
	box->waiting = p->waiting;
	p->waits = false;
	return p;
}

/* ---- parking */

/* Make a parked message without its place in the list. NULL: no memory */
static struct urn_am_parked *
make(struct urn_am_outbox *box, struct urn_am_peer *p, const struct urn_am_letter *m, uint32_t room)
{
	size_t align = _Alignof(struct urn_am_parked);
	struct urn_am_parked *k =
		aligned_alloc(align, (sizeof(*k) + room + align - 1) & ~(align - 1));

	if (k == NULL)
		return NULL;
	k->next = k->prev = NULL;
	k->m = *m;
	k->m.peer = urn_am_peer_index(box, p);
	k->room = room;
	box->parked++;
	p->parked++;
	if (p->above != NULL)
		p->above->parked++;
	p->users++;
	wait_for(box, p);
	return k;
}

static void
link_first(struct urn_am_peer *p, struct urn_am_parked *k)
{
	k->next = p->first;
	if (p->first != NULL)
		p->first->prev = k;
	else
		p->last = k;
	p->first = k;
}

static void
link_last(struct urn_am_peer *p, struct urn_am_parked *k)
{
	k->prev = p->last;
	if (p->last != NULL)
		p->last->next = k;
	else
		p->first = k;
	p->last = k;
}

static void
take_out(struct urn_am_peer *p, const struct urn_am_parked *k)
{
	if (p->first == k)
		p->first = k->next;
	else
		k->prev->next = k->next;
	if (p->last == k)
		p->last = k->prev;
	else
		k->next->prev = k->prev;
}

struct urn_am_parked *
urn_am_park(struct urn_am_outbox *box, struct urn_am_peer *p, const struct urn_am_letter *m,
	    uint32_t room)
{
	struct urn_am_parked *k = make(box, p, m, room);

	if (k == NULL)
		return NULL;
	k->m.bytes = room;
	urn_am_peer_weighs(box, p, room);
	link_last(p, k);
	return k;
}

void
urn_am_peer_pause(struct urn_am_peer *p, uint64_t now)
{
	p->burst = 1;
	if (p->pause_us != 0 && now < p->next_at)
		return; /* others of the same time */
	p->pause_us = p->pause_us == 0 ? URN_AM_PAUSE_US : 2 * p->pause_us;
	if (p->pause_us > URN_AM_PAUSE_MAX_US)
		p->pause_us = URN_AM_PAUSE_MAX_US;
	p->next_at = now + p->pause_us * US;
}

struct urn_am_parked *
urn_am_park_lane(struct urn_am_outbox *box, struct urn_am_lane *l, uint8_t code, uint64_t now)
{
	struct urn_am_peer *p = &box->peer[l->m.peer];
	bool before = l->m.code != 0;
	struct urn_am_parked *k = make(box, p, &l->m, l->m.len);

	urn_am_peer_pause(p, now);
	if (k == NULL)
		return NULL;
	memcpy(k->data, (const uint8_t *)urn_msg_set_buffer(&l->set) + l->m.off, l->m.len);
	k->m.off = 0;
	k->m.code = code;
	l->m.bytes = 0; /* they count for the parked message now */
	urn_am_lane_give(box, l);
	if (before)
		link_first(p, k);
	else
		link_last(p, k);
	return k;
}

void
urn_am_unpark(struct urn_am_outbox *box, struct urn_am_parked *k)
{
	struct urn_am_peer *p = &box->peer[k->m.peer];

	take_out(p, k);
	if (p->open_parked == k)
		p->open_parked = NULL;
	urn_am_peer_lightens(box, p, k->m.bytes);
	box->parked--;
	p->parked--;
	if (p->above != NULL)
		p->above->parked--;
	free(k);
	urn_am_peer_leave(box, p);
}

/* ---- trying again */

void
urn_am_peer_takes(const struct urn_am_outbox *box, struct urn_am_peer *p)
{
	p->trouble = 0;
	if (p->pause_us == 0)
		return;
	p->next_at = 0;
	p->burst = p->first != NULL && 2 * p->burst < box->most ? 2 * p->burst : box->most;
	p->pause_us =
		p->first != NULL ? URN_AM_PAUSE_US / 2 : 0; /* doubled when it refuses again */
}

/* Send the first parked message of a peer, for which there is a lane. */
static void
send_parked(struct urn_am_outbox *box, struct urn_am_peer *p, uint64_t now,
	    void (*sent)(void *ctx, const struct urn_am_parked *k), void *ctx)
{
	struct urn_am_parked *k = p->first;
	struct urn_am_lane *l;

	if (p->above != NULL)
		urn_am_node_asked(p->above, 0, now);
	l = urn_am_lane_take(box, p, k->m.len);

	urn_am_peer_lightens(box, p, l->m.bytes);
	l->m = k->m;
	l->m.to.retries = p->pause_us != 0 ? 0 : URN_AM_TRIES;
	if (l->m.code == 0 && l->m.answers == 0) /* the peer refused those before it */
		l->m.code = p->trouble != 0 ? p->trouble : (uint8_t)URN_MSG_QUEUE_FULL;
	k->m.bytes = 0; /* they count for the lane now */
	l->m.off = 0;
	memcpy(urn_msg_set_buffer(&l->set), k->data + k->m.off, k->m.len);
	urn_am_lane_send(box, l);
	sent(ctx, k);
	urn_am_unpark(box, k);
}

/* True when a peer refuses messages, or its node is silent. One that was refused before the pause
 * has its next try first. */
static bool
takes_none(const struct urn_am_peer *p, uint64_t now)
{
	if (p->trouble == URN_MSG_UNREACHABLE || p->trouble == URN_MSG_NO_NODE)
		return true;
	if (p->trouble != 0)
		return now < p->next_at;
	return p->above->lanes[0] + p->above->lanes[1] != 0 &&
	       now >= p->above->since + URN_AM_BACK_NS;
}

/* Look at the parked messages of a peer. */
static void
look(struct urn_am_outbox *box, struct urn_am_peer *p, uint64_t now,
     void (*sent)(void *ctx, const struct urn_am_parked *k),
     void (*late)(void *ctx, uint32_t answers), void *ctx)
{
	struct urn_am_parked *k, *next;

	for (k = p->first; k != NULL && k->m.until != 0 && now >= k->m.until && takes_none(p, now);
	     k = next) {
		next = k->next;
		late(ctx, k->m.answers);
		urn_am_unpark(box, k);
	}
	if (p->open_parked != NULL) {
		urn_am_letter_close(&p->open_parked->m, p->open_parked->data);
		p->open_parked = NULL;
	}
	while ((k = p->first) != NULL && (p->pause_us == 0 || now >= p->next_at) &&
	       p->lanes[0] + p->lanes[1] - p->prepared < p->burst &&
	       urn_am_has_lane(box, p, k->m.len))
		send_parked(box, p, now, sent, ctx);
}

void
urn_am_unpark_due(struct urn_am_outbox *box, uint64_t now,
		  void (*sent)(void *ctx, const struct urn_am_parked *k),
		  void (*late)(void *ctx, uint32_t answers), void *ctx)
{
	unsigned int n = URN_AM_PARKED_PEERS;
	uint32_t end = box->waiting_end;
	struct urn_am_peer *p;
	bool last = false;

	while (n-- > 0 && !last && (p = next_waiting(box)) != NULL) {
		last = urn_am_peer_index(box, p) == end;
		look(box, p, now, sent, late, ctx);
		if (p->first != NULL)
			wait_for(box, p);
		urn_am_peer_leave(box, p);
	}
}
