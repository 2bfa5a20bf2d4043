/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers. Short ones to one queue share a message, up to 31 of them, which leaves at the end of
 * urn_am_progress(), or after a few handlers if these are slow:
 *
 *   head  record, answer, padding  record, answer, padding ...
 *
 * One that stays alone leaves without head and record. The peers of this outbox are queues of
 * answers, in shares of their nodes. An honest requester has room for its answers, so a queue that
 * refuses them has its requests dropped when its parked answers fill its part of the room: the
 * queue of requests is one for all. A program may have many such queues, and each is a stranger at
 * first. So queues that were full are remembered (am/known.c); and when strangers of a node with
 * full queues have more than half of the requests that wait, the oldest of these are dropped.
 *
 * Each peer has an answer on a lane or parked, or the request that is looked at now, and is
 * forgotten with the last of them. So a node that names ever other queues has no more peers than
 * its lanes and its part of the parked answers, and one.
 */
#include "am/endpoint.h"

#include "abi/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	HEAD = sizeof(struct urn_am_head),
	RECORD = sizeof(struct urn_am_record),
};

/* ---- room */

/* True when a node took none of its answers for too long. BUSY is no sign of life: the answer is
 * not there, and it is this side's own dataplane, too, that says so. */
static bool
is_silent(const struct urn_am_peer *node, uint64_t now)
{
	return (node->lanes[0] + node->lanes[1] != 0 || node->trouble == URN_MSG_BUSY) &&
	       now > node->since + URN_AM_SILENT_NS;
}

/* True when a request, for whose answer there is no room, is dropped. */
static bool
is_dropped(struct urn_am_endpoint *ep, const struct urn_am_peer *p)
{
	uint64_t now = urn_am_now(ep);
	enum urn_am_repute repute = urn_am_repute(&ep->back, p, now);

	if (p->trouble == URN_MSG_QUEUE_FULL || repute == URN_AM_REFUSER ||
	    is_silent(p->above, now))
		return true;
	if (ep->surplus == 0 || repute == URN_AM_TAKER || !urn_am_has_full(p->above, now))
		return false;
	ep->surplus--;
	return true;
}

URN_FAST enum urn_am_verdict
urn_am_room(struct urn_am_endpoint *ep, const uint8_t node[16], uint64_t reply_to,
	    struct urn_am_peer **peer)
{
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = urn_am_peer_get(box, node, reply_to);

	*peer = p;
	if (p == NULL)
		return URN_AM_WAIT;
	/* The answer may be long or short. */
	if ((p->first == NULL && urn_am_has_lane(box, p, box->size) &&
	     urn_am_has_lane(box, p, box->short_size)) ||
	    urn_am_may_park(box, p, box->size))
		return URN_AM_TAKE;
	if (is_dropped(ep, p))
		return URN_AM_DROP;
	urn_am_peer_put(box, p);
	return URN_AM_WAIT;
}

/* ---- answers that share a message */

void
urn_am_letter_close(struct urn_am_letter *m, uint8_t *at)
{
	struct urn_am_head h = {.magic = URN_AM_MAGIC, .kind = URN_AM_M_SHARED};
	struct urn_am_record r;
	struct urn_am_head first;

	if (m->answers == 1) {
		memcpy(&r, at + HEAD, sizeof(r));
		m->off = HEAD + RECORD;
		m->len = be32toh(r.len);
		return;
	}
	memcpy(&first, at + HEAD + RECORD, sizeof(first));
	h.handler = htobe32(m->answers);
	h.number = first.number;
	memcpy(at, &h, sizeof(h));
}

/* Send the answers to a peer that wait on a lane for others. */
static void
close_lane(struct urn_am_endpoint *ep, struct urn_am_peer *p)
{
	struct urn_am_lane *l = p->open_lane;

	p->open_lane = NULL;
	urn_am_node_asked(p->above, p->above->open_lanes--, urn_clock_coarse_ns());
	urn_am_letter_close(&l->m, urn_msg_set_buffer(&l->set));
	urn_am_lane_send(&ep->back, l);
}

URN_FAST void
urn_am_answers_go(struct urn_am_endpoint *ep)
{
	struct urn_am_outbox *box = &ep->back;

	while (box->opens > 0) {
		const struct urn_am_lane *l = &box->lane[box->open[--box->opens]];
		struct urn_am_peer *p = &box->peer[l->m.peer];

		if (p->open_lane == l)
			close_lane(ep, p);
	}
}

URN_FAST struct urn_am_place
urn_am_find_place(struct urn_am_endpoint *ep, uint32_t size)
{
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = ep->asker_peer;
	uint64_t now = urn_clock_coarse_ns();
	struct urn_am_letter m = {.to = ep->asker, .until = now + URN_AM_BACK_NS};
	struct urn_am_place place = {.m = NULL};

	if (p->first == NULL && urn_am_has_lane(box, p, size)) {
		urn_am_node_asked(p->above, 0, now);
		place.lane = urn_am_lane_take(box, p, size);
		place.m = &place.lane->m;
		place.m->to = ep->asker;
		/* The lane is not held by a queue that may be one of many full ones. */
		if (urn_am_has_full(p->above, now))
			place.m->to.retry_kinds &= (uint8_t)~URN_MSG_RETRY_QUEUE_FULL;
		place.at = urn_msg_set_buffer(&place.lane->set);
	} else if (urn_am_may_park(box, p, size)) {
		place.parked = urn_am_park(box, p, &m, size);
		if (place.parked != NULL) {
			place.m = &place.parked->m;
			place.at = place.parked->data;
		}
	}
	return place;
}

/* The message that answers to the peer may join; m NULL: none. size: bytes that come along */
static struct urn_am_place
find_open(struct urn_am_endpoint *ep, uint32_t size)
{
	struct urn_am_peer *p = ep->asker_peer;
	struct urn_am_place place = {.lane = p->open_lane, .parked = p->open_parked};

	if (place.lane != NULL) {
		place.m = &place.lane->m;
		place.at = urn_msg_set_buffer(&place.lane->set);
	} else if (place.parked != NULL) {
		place.m = &place.parked->m;
		place.at = place.parked->data;
	}
	if (place.m == NULL ||
	    (place.m->answers < URN_AM_SHARED && place.m->len + size <= URN_AM_SHARED_BYTES))
		return place;
	if (place.lane != NULL) {
		close_lane(ep, p);
	} else {
		urn_am_letter_close(place.m, place.at);
		p->open_parked = NULL;
	}
	place.m = NULL;
	return place;
}

/* Begin a message that answers may join. */
static struct urn_am_place
open_place(struct urn_am_endpoint *ep)
{
	struct urn_am_place place = urn_am_find_place(ep, URN_AM_SHARED_BYTES);

	if (place.m == NULL)
		return place;
	place.m->len = HEAD;
	ep->asker_peer->open_lane = place.lane;
	ep->asker_peer->open_parked = place.parked;
	if (place.lane != NULL) {
		ep->back.open[ep->back.opens++] = place.lane->index;
		ep->asker_peer->above->open_lanes++;
	}
	return place;
}

/* Let an answer share a message. returns: false: no memory */
static bool
share(struct urn_am_endpoint *ep, const struct urn_am_head *head, const uint64_t *args,
      const void *data, uint32_t len)
{
	uint32_t size = urn_am_size(head->args, len), all = (RECORD + size + 7) & ~7u;
	struct urn_am_place place = find_open(ep, all);
	struct urn_am_record r = {.len = htobe32(size)};
	uint8_t *at;

	if (place.m == NULL)
		place = open_place(ep);
	if (place.m == NULL)
		return false;
	at = place.at + place.m->len;
	memcpy(at, &r, sizeof(r));
	urn_am_write(at + RECORD, head, args, data, len);
	memset(at + RECORD + size, 0, all - RECORD - size);
	place.m->len += all;
	place.m->answers++;
	return true;
}

/* Send an answer as a message of its own. returns: false: no memory */
static bool
send_alone(struct urn_am_endpoint *ep, const struct urn_am_head *head, const uint64_t *args,
	   const void *data, uint32_t len)
{
	uint32_t size = urn_am_size(head->args, len);
	struct urn_am_place place = urn_am_find_place(ep, size);

	if (place.m == NULL)
		return false;
	place.m->len = size;
	place.m->answers = 1;
	urn_am_write(place.at, head, args, data, len);
	if (place.lane != NULL)
		urn_am_lane_send(&ep->back, place.lane);
	return true;
}

URN_FAST int
urn_am_answer(struct urn_am_endpoint *ep, const struct urn_am_head *head, const uint64_t *args,
	      const void *data, uint32_t len)
{
	bool is_short = HEAD + RECORD + urn_am_size(head->args, len) <= URN_AM_SHARED_BYTES - 7;

	if (is_short ? share(ep, head, args, data, len) : send_alone(ep, head, args, data, len))
		return 0;
	ep->stats.lost_replies++;
	return urn_fail(ENOMEM, "no memory for a reply that has to wait");
}

/* ---- answers on their way */

/*
 * Send answers once more, whose flow led to an earlier life of the requester's node. A requester
 * takes an answer once, so they may have come after all. returns: true: they are on their way
 */
static bool
send_again(struct urn_am_outbox *box, struct urn_am_lane *l, uint8_t code)
{
	if ((code & ~URN_MSG_MAY_BE_THERE) != URN_MSG_RESTARTED || l->m.again)
		return false;
	l->m.again = true;
	urn_am_lane_send(box, l);
	return true;
}

/*
 * True when a node has parked answers of other queues, and its part is used up. Parked answers hold
 * further ones to their own queue off the lanes, so one queue exceeds the part of its node by its
 * lanes at most; a node with many queues would by all that are refused.
 */
static bool
is_full(const struct urn_am_outbox *box, const struct urn_am_peer *p)
{
	return p->above->parked != p->parked && !urn_am_may_park(box, p->above, 0);
}

/* Answers may not be parked. An honest queue has room for its answers; a node that is BUSY has none
 * for those of honest queues either, whose lane tries again. returns: false: they are given up */
static bool
stay(struct urn_am_outbox *box, struct urn_am_lane *l, uint8_t code)
{
	if (code == URN_MSG_QUEUE_FULL)
		return false;
	l->m.to.retries = URN_AM_TRIES;
	urn_am_lane_send(box, l);
	return true;
}

/* Park answers that were refused, for some time. returns: false: they are given up */
static bool
keep(struct urn_am_endpoint *ep, struct urn_am_lane *l, uint8_t code)
{
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = &box->peer[l->m.peer];
	uint64_t now = urn_am_now(ep);

	if (!urn_am_is_refusal(code) || urn_am_gone(ep) || box->parked == box->parked_max ||
	    box->bytes > box->room + box->room / 2)
		return false;
	urn_am_peer_pause(p, now);
	if (l->m.until == 0)
		l->m.until = now + URN_AM_BACK_NS;
	if (now >= l->m.until)
		return false;
	if (is_full(box, p))
		return stay(box, l, code);
	if (urn_am_park_lane(box, l, code, now) == NULL)
		return false;
	ep->stats.parked++;
	return true;
}

/* Send a note in the place of a reply that is longer than its requester's queue takes, so that the
 * request need not wait for the end of its time. returns: true: the note is on its way */
static bool
tell_lost(struct urn_am_endpoint *ep, struct urn_am_lane *l, uint8_t code)
{
	uint8_t *at = (uint8_t *)urn_msg_set_buffer(&l->set) + l->m.off;
	struct urn_am_head h;

	memcpy(&h, at, sizeof(h));
	if ((code & ~URN_MSG_MAY_BE_THERE) != URN_MSG_TOO_LONG || h.kind != URN_AM_M_REPLY)
		return false;
	h.kind = URN_AM_M_LOST;
	h.args = 0;
	h.handler = 0;
	memcpy(at, &h, sizeof(h));
	l->m.len = sizeof(h);
	ep->stats.lost_replies++;
	urn_am_lane_send(&ep->back, l);
	return true;
}

/* Note what the end of a message of answers says about its queue and node. code: enum urn_msg_code
 */
static void
learn(struct urn_am_outbox *box, const struct urn_am_peer *p, uint8_t code)
{
	uint64_t now = urn_clock_coarse_ns();
	bool full = code == URN_MSG_QUEUE_FULL;
	struct urn_am_peer *node = p->above;

	if (code == URN_MSG_BUSY)
		node->trouble = URN_MSG_BUSY;
	if (code != URN_MSG_DONE && !full)
		return;
	node->trouble = 0;
	node->since = now;
	if (full)
		node->full_at = now;
	urn_am_remember(box, p, full, now);
}

/* A message of answers has its own answer. */
static void
back_ended(struct urn_am_endpoint *ep, struct urn_am_lane *l, uint8_t code)
{
	struct urn_am_outbox *box = &ep->back;
	struct urn_am_peer *p = &box->peer[l->m.peer];

	/* A note may meet a queue that has room for each answer, and none for a note. */
	if (l->m.answers == 0) {
		urn_am_lane_give(box, l);
		return;
	}
	learn(box, p, code);
	if (code == URN_MSG_DONE) {
		urn_am_peer_takes(box, p);
	} else {
		urn_am_peer_failed(p, code);
		if (send_again(box, l, code) || keep(ep, l, code) || tell_lost(ep, l, code))
			return;
		ep->stats.lost_replies += l->m.answers;
	}
	urn_am_lane_give(box, l);
}

static void
sent(void *ctx, const struct urn_am_parked *k)
{
	(void)ctx;
	(void)k;
}

static void
late(void *ctx, uint32_t answers)
{
	struct urn_am_endpoint *ep = ctx;

	ep->stats.lost_replies += answers;
}

URN_FAST void
urn_am_look_back(struct urn_am_endpoint *ep)
{
	struct urn_am_outbox *box = &ep->back;
	uint32_t left = box->busy, misses = 0;
	struct urn_am_lane *l;
	uint8_t code;

	while ((l = urn_am_lane_ended(box, &left, &misses, &code)) != NULL)
		back_ended(ep, l, code);
	if (box->waiting != URN_AM_NO_PEER)
		urn_am_unpark_due(box, urn_am_now(ep), sent, late, ep);
}
