/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: messages of owners that have as many waiting in the flow as they may. Such messages are
 * held beside the flow's queues, in the order in which they came, and move in when messages of
 * their owners go out. A message that is held costs no turn of its source, and delays no message of
 * other owners.
 *
 *   owner 1 ── held ──┐ as many as may wait
 *   owner 2 ── held ──┴─► shorts, longs ─► packets
 */
#include "transport/flow_priv.h"

#include <stdlib.h>

/* Owners share a bound by bucket: an owner's waiting messages delay those of others by that much.
 */
static unsigned int
bucket_of(const struct urn_flow_msg *m)
{
	uint64_t h = (uint64_t)(uintptr_t)m->owner * 0x9e3779b97f4a7c15u;

	return (unsigned int)(h >> 60);
}
_Static_assert(URN_FLOW_OWNERS == 16, "four bits of a hash");
_Static_assert(URN_FLOW_WAITING <= UINT8_MAX, "urn_flow.waiting");

static uint8_t
weight_of(const struct urn_flow_msg *m)
{
	return m->len > URN_FLOW_MTU_MIN ? URN_FLOW_WAITING_LONG : 1;
}

static bool
may_wait(const struct urn_flow *f, const struct urn_flow_msg *m)
{
	return f->waiting[bucket_of(m)] + weight_of(m) <= URN_FLOW_WAITING;
}

/* True when a message does not fit a packet. */
static bool
is_long(const struct urn_tp *tp, const struct urn_flow_msg *m)
{
	return sizeof(struct urn_flow_seg) + urn_flow_pad(m->len) > tp->cfg.mtu;
}

static void
let_in(const struct urn_tp *tp, struct urn_flow *f, struct urn_flow_msg *m)
{
	f->waiting[bucket_of(m)] = (uint8_t)(f->waiting[bucket_of(m)] + weight_of(m));
	urn_flow_put(is_long(tp, m) ? &f->longs : &f->shorts, m, URN_FLOW_MSG_QUEUED);
}

/* A message is held no more. */
static void
take_held(const struct urn_tp *tp, struct urn_flow *f, struct urn_flow_msg *m)
{
	struct urn_flow_held *h = f->held;

	urn_flow_take(&h->of[bucket_of(m)], m);
	if (--h->n)
		return;
	f->held = NULL;
	if (tp->flows->spare_held)
		free(h);
	else
		tp->flows->spare_held = h;
}

static struct urn_flow_held *
make_held(const struct urn_tp *tp)
{
	struct urn_flow_held *h = tp->flows->spare_held;

	if (!h)
		h = malloc(
			sizeof(*h)); /* once for each flow that holds messages at the same time */
	tp->flows->spare_held = NULL;
	if (!h)
		return NULL;
	h->n = 0;
	for (unsigned int i = 0; i < URN_FLOW_OWNERS; i++)
		urn_flow_queue_init(&h->of[i]);
	return h;
}

bool
urn_flow_queue(const struct urn_tp *tp, struct urn_flow *f, struct urn_flow_msg *m)
{
	if (likely(may_wait(f, m) && !(f->held && f->held->of[bucket_of(m)].head))) {
		let_in(tp, f, m);
		return true;
	}
	if (!f->held)
		f->held = make_held(tp);
	if (!f->held)
		return false;
	urn_flow_put(&f->held->of[bucket_of(m)], m, URN_FLOW_MSG_HELD);
	f->held->n++;
	return true;
}

bool
urn_flow_may_grow(const struct urn_flow_msg *m, uint32_t bytes)
{
	return m->flow && (m->state == URN_FLOW_MSG_QUEUED || m->state == URN_FLOW_MSG_HELD) &&
	       !m->head && m->len + bytes <= URN_FLOW_MTU_MIN - sizeof(struct urn_flow_seg);
}

void
urn_flow_unqueue(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_msg *m)
{
	switch ((enum urn_flow_msg_state)m->state) {
	case URN_FLOW_MSG_HELD:
		take_held(tp, f, m);
		return;
	case URN_FLOW_MSG_ACTIVE:
		urn_flow_take(&f->active, m);
		f->active_n--;
		break;
	default:
		urn_flow_take(is_long(tp, m) ? &f->longs : &f->shorts, m);
		break;
	}
	urn_flow_not_waiting(tp, f, m);
}

void
urn_flow_not_waiting(const struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_msg *m)
{
	unsigned int b = bucket_of(m);
	struct urn_flow_msg *next;

	f->waiting[b] = (uint8_t)(f->waiting[b] - weight_of(m));
	while (unlikely(f->held != NULL) && (next = f->held->of[b].head) && may_wait(f, next)) {
		take_held(tp, f, next);
		let_in(tp, f, next);
	}
}

struct urn_flow_msg *
urn_flow_first_held(const struct urn_flow *f)
{
	for (unsigned int i = 0; f->held && i < URN_FLOW_OWNERS; i++)
		if (f->held->of[i].head)
			return f->held->of[i].head;
	return NULL;
}
