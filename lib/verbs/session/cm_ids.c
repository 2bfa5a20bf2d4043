/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/cm_ids.h"

#include "attach/fail.h"

#include <errno.h>
#include <stdlib.h>

void
urn_sv_cm_begin(struct urn_sv_cm_ids *ids)
{
	for (uint32_t i = 0; i < URN_SV_CM_BUCKETS; i++) {
		LIST_INIT(&ids->front[i]);
		LIST_INIT(&ids->below[i]);
		LIST_INIT(&ids->qpn[i]);
	}
	TAILQ_INIT(&ids->due);
	ids->next = 0;
}

void
urn_sv_cm_end(struct urn_sv_cm_ids *ids)
{
	struct urn_sv_cm_id *id, *next;

	for (uint32_t i = 0; i < URN_SV_CM_BUCKETS; i++)
		for (id = LIST_FIRST(&ids->front[i]); id != NULL; id = next) {
			next = LIST_NEXT(id, by_front);
			urn_sv_cm_drop(id, ids);
		}
}

struct urn_sv_cm_id *
urn_sv_cm_find(struct urn_sv_cm_ids *ids, uint32_t front)
{
	struct urn_sv_cm_id *id;

	LIST_FOREACH(id, &ids->front[front % URN_SV_CM_BUCKETS], by_front)
		if (id->front == front)
			break;
	return id;
}

static struct urn_sv_cm_id *
urn_sv_cm_find_below(struct urn_sv_cm_ids *ids, uint32_t below)
{
	struct urn_sv_cm_id *id;

	LIST_FOREACH(id, &ids->below[below % URN_SV_CM_BUCKETS], by_below)
		if (id->below == below)
			break;
	return id;
}

void
urn_sv_cm_below(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, uint32_t below)
{
	id->below = below;
	if (below != 0)
		LIST_INSERT_HEAD(&ids->below[below % URN_SV_CM_BUCKETS], id, by_below);
}

void
urn_sv_cm_of(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, uint32_t qpn)
{
	if (id->qpn != 0)
		LIST_REMOVE(id, by_qpn);
	id->qpn = qpn;
	if (qpn != 0)
		LIST_INSERT_HEAD(&ids->qpn[qpn % URN_SV_CM_BUCKETS], id, by_qpn);
}

struct urn_sv_cm_id *
urn_sv_cm_make(struct urn_sv_cm_ids *ids, uint32_t below, enum urn_sv_cm_state state)
{
	struct urn_sv_cm_id *id = calloc(1, sizeof(*id));

	if (id == NULL) {
		urn_fail(ENOMEM, "no memory for an id of connection management");
		return NULL;
	}
	/* Numbers come again after 2^32 others: one that is in use is left out. */
	do
		id->front = ++ids->next;
	while (id->front == 0 || urn_sv_cm_find(ids, id->front) != NULL);
	id->state = state;
	LIST_INSERT_HEAD(&ids->front[id->front % URN_SV_CM_BUCKETS], id, by_front);
	urn_sv_cm_below(ids, id, below);
	return id;
}

/* The adapter's number of an id is of no use any more. */
static void
urn_sv_cm_forget(struct urn_sv_cm_id *id)
{
	if (id->below != 0)
		LIST_REMOVE(id, by_below);
	id->below = 0;
}

void
urn_sv_cm_drop(struct urn_sv_cm_id *id, struct urn_sv_cm_ids *ids)
{
	urn_sv_cm_forget(id);
	urn_sv_cm_of(ids, id, 0);
	LIST_REMOVE(id, by_front);
	if (id->due != 0)
		TAILQ_REMOVE(&ids->due, id, link);
	free(id);
}

/* ---- answers */

bool
urn_sv_cm_accepts(struct urn_sv_cm_id *id)
{
	if (id->state != URN_SV_CM_CAME)
		return false;
	id->state = id->datagrams ? URN_SV_CM_OVER : URN_SV_CM_ANSWERED;
	return true;
}

void
urn_sv_cm_unaccepts(struct urn_sv_cm_id *id)
{
	if (id->below != 0 && id->state == (id->datagrams ? URN_SV_CM_OVER : URN_SV_CM_ANSWERED))
		id->state = URN_SV_CM_CAME;
}

/* ---- events */

/* An event of our own waits for the program. */
static void
urn_sv_cm_tell(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, enum urn_cm_event_type type)
{
	if (id->due == 0)
		TAILQ_INSERT_TAIL(&ids->due, id, link);
	id->due |= 1u << type;
}

bool
urn_sv_cm_own(struct urn_sv_cm_ids *ids, struct urn_abi_cm_event *ev)
{
	struct urn_sv_cm_id *id = TAILQ_FIRST(&ids->due);

	if (id == NULL)
		return false;
	/* The order of types is that in which an id has them. */
	*ev = (struct urn_abi_cm_event){
		.type = (uint32_t)__builtin_ctz(id->due), .id = id->front, .cookie = id->cookie};
	if (ev->type == URN_CM_EVENT_DISCONNECTED)
		ev->reason = 1; /* the peer did not answer */
	id->due &= id->due - 1;
	if (id->due == 0)
		TAILQ_REMOVE(&ids->due, id, link);
	return true;
}

/* A request came to a listener. returns: like urn_sv_cm_came() */
static int
urn_sv_cm_request(struct urn_sv_cm_ids *ids, struct urn_abi_cm_event *ev)
{
	const struct urn_sv_cm_id *at = urn_sv_cm_find_below(ids, ev->listen_id);
	struct urn_sv_cm_id *id = urn_sv_cm_make(ids, ev->id, URN_SV_CM_CAME);

	if (id == NULL)
		return ENOMEM;
	id->cookie = ev->cookie;
	id->datagrams = ev->type == URN_CM_EVENT_SIDR_REQUEST;
	ev->id = id->front;
	ev->listen_id = at != NULL ? at->front : 0;
	return 0;
}

/* The state after an event of the adapter. */
static enum urn_sv_cm_state
urn_sv_cm_after(const struct urn_sv_cm_id *id, uint32_t type)
{
	switch (type) {
	case URN_CM_EVENT_REPLY:
		return id->state;
	case URN_CM_EVENT_ESTABLISHED:
		return URN_SV_CM_UP;
	case URN_CM_EVENT_DISCONNECT:
		return URN_SV_CM_TOLD;
	default:
		return URN_SV_CM_OVER;
	}
}

int
urn_sv_cm_came(struct urn_sv_cm_ids *ids, struct urn_abi_cm_event *ev)
{
	struct urn_sv_cm_id *id;

	if (ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST)
		return urn_sv_cm_request(ids, ev);
	id = urn_sv_cm_find_below(ids, ev->id);
	if (id == NULL)
		return EAGAIN;
	/* The session layer was faster with the same news. */
	if ((ev->type == URN_CM_EVENT_DISCONNECT && id->state >= URN_SV_CM_TOLD) ||
	    (ev->type == URN_CM_EVENT_DISCONNECTED && id->state == URN_SV_CM_OVER))
		return EAGAIN;
	if (ev->type == URN_CM_EVENT_DISCONNECTED && id->state == URN_SV_CM_TOLD) {
		id->state = URN_SV_CM_OVER; /* the program had its end of the connection */
		return EAGAIN;
	}
	id->state = urn_sv_cm_after(id, ev->type);
	ev->id = id->front;
	return 0;
}

/* ---- without the adapter */

int
urn_sv_cm_quit(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id)
{
	switch (id->state) {
	case URN_SV_CM_UP:
		if (id->below != 0) {
			id->state = URN_SV_CM_ENDS; /* urn_sv_cm_lost() tells */
			return 0;
		}
		urn_sv_cm_tell(ids, id, URN_CM_EVENT_DISCONNECTED);
		break;
	case URN_SV_CM_TOLD:
		break;
	default:
		return urn_fail(ENOTCONN, "id %u is no connection that can end", id->front);
	}
	urn_sv_cm_tell(ids, id, URN_CM_EVENT_TIMEWAIT);
	id->state = URN_SV_CM_OVER;
	return 0;
}

void
urn_sv_cm_ended(struct urn_sv_cm_ids *ids, uint32_t qpn, bool always)
{
	struct urn_sv_cm_id *id;

	LIST_FOREACH(id, &ids->qpn[qpn % URN_SV_CM_BUCKETS], by_qpn) {
		if (id->qpn != qpn || (id->below != 0 && !always))
			continue;
		if (id->state == URN_SV_CM_UP) {
			id->state = URN_SV_CM_TOLD;
			urn_sv_cm_tell(ids, id, URN_CM_EVENT_DISCONNECT);
		} else if (id->state == URN_SV_CM_ENDS) {
			id->state = URN_SV_CM_OVER;
			urn_sv_cm_tell(ids, id, URN_CM_EVENT_DISCONNECTED);
		}
	}
}

/* One id loses its adapter. lives: its connection lives on */
static void
urn_sv_cm_lose(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, bool lives)
{
	urn_sv_cm_forget(id);
	switch (id->state) {
	case URN_SV_CM_ASKED:
	case URN_SV_CM_ANSWERED:
		id->state = URN_SV_CM_OVER;
		urn_sv_cm_tell(ids, id, URN_CM_EVENT_UNREACHABLE);
		break;
	case URN_SV_CM_CAME:
		id->state = URN_SV_CM_OVER;
		break;
	case URN_SV_CM_UP:
		if (lives)
			break;
		id->state = URN_SV_CM_TOLD;
		urn_sv_cm_tell(ids, id, URN_CM_EVENT_DISCONNECT);
		break;
	case URN_SV_CM_ENDS:
		id->state = URN_SV_CM_OVER;
		urn_sv_cm_tell(ids, id, URN_CM_EVENT_DISCONNECTED);
		urn_sv_cm_tell(ids, id, URN_CM_EVENT_TIMEWAIT);
		break;
	case URN_SV_CM_LISTENER:
	case URN_SV_CM_TOLD:
	case URN_SV_CM_OVER:
		break;
	}
}

void
urn_sv_cm_lives(struct urn_sv_cm_ids *ids, uint32_t qpn)
{
	struct urn_sv_cm_id *id;

	LIST_FOREACH(id, &ids->qpn[qpn % URN_SV_CM_BUCKETS], by_qpn)
		if (id->qpn == qpn)
			id->lives = true;
}

void
urn_sv_cm_lost(struct urn_sv_cm_ids *ids)
{
	struct urn_sv_cm_id *id;

	for (uint32_t i = 0; i < URN_SV_CM_BUCKETS; i++)
		LIST_FOREACH(id, &ids->front[i], by_front) {
			if (id->below != 0)
				urn_sv_cm_lose(ids, id, id->lives);
			id->lives = false;
		}
}
