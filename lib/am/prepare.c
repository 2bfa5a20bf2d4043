/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies whose payload the program writes where the dataplane reads it, so the
 * library copies nothing:
 *
 *   prepare ─► lane that is not under way ─► the program writes ─► commit: header, doorbell
 *                                                             └─► cancel: the lane is idle
 *
 *   buffer │ room, 96 bytes │ payload │   header and arguments end where the payload begins
 *
 * A prepared request has a lane and a slot, like a request on its way, and its share of the bytes:
 * commit finds all it needs. The dataplane learns nothing before the doorbell. A target with parked
 * requests has no prepared ones made, as they would overtake those. A prepared reply has the place
 * that was found for any answer before the handler ran, so a handler prepares one.
 */
#include "am/lock.h"

#include <string.h>

enum { TICKET_BITS = 6 }; /* low bits of a ticket: the lane */
_Static_assert(1 << TICKET_BITS == URN_AM_LANES_MAX, "ticket");
_Static_assert(URN_AM_ROOM >= sizeof(struct urn_am_head) + URN_AM_ARGS * sizeof(uint64_t),
	       "header and arguments have room before the payload");
_Static_assert(URN_AM_ROOM % 32 == 0, "alignment of the payload");

/* Check how long a payload may become. returns: 0, or EMSGSIZE with its text */
static int
check_most(const struct urn_am_endpoint *ep, uint32_t most)
{
	return urn_am_check(ep, 0, 0, most);
}

/* Check a message against the room of its payload. returns: 0; EINVAL, EMSGSIZE with their text */
static int
check_commit(const struct urn_am_endpoint *ep, uint32_t handler, uint32_t n, uint32_t len,
	     uint32_t room)
{
	int err = urn_am_check(ep, handler, n, len);

	if (err == 0 && len > room)
		err = urn_fail(EMSGSIZE, "the payload was prepared for at most %u bytes, not %u",
			       room, len);
	return err;
}

/* Write header and arguments before a payload. buffer: of the message; returns: offset of the
 * message in it */
static uint32_t
write_head(uint8_t *buffer, const struct urn_am_head *head, const uint64_t *args)
{
	uint32_t off = (uint32_t)URN_AM_ROOM - urn_am_size(head->args, 0);

	urn_am_write(buffer + off, head, args, NULL, 0);
	return off;
}

/* ---- requests */

/* The lane of a prepared request; NULL with its text: there is none. */
static struct urn_am_lane *
lane_of(struct urn_am_endpoint *ep, const struct urn_am_prepared *p)
{
	struct urn_am_lane *l = &ep->out.lane[p->ticket & (URN_AM_LANES_MAX - 1)];

	/* Endpoints number their tickets alike: the room tells whose it is. */
	if (p->ticket != 0 && l->ticket == p->ticket &&
	    p->data == (uint8_t *)urn_msg_set_buffer(&l->set) + URN_AM_ROOM)
		return l;
	urn_fail(EINVAL, "the request is not prepared: it was committed or cancelled, or is "
			 "another endpoint's");
	return NULL;
}

/* The request of a lane is not prepared any more. returns: its slot */
static struct urn_am_asked *
take_off(struct urn_am_endpoint *ep, struct urn_am_lane *l)
{
	l->ticket = 0;
	ep->prepared--;
	ep->out.peer[l->m.peer].prepared--;
	return &ep->asked[l->asked];
}

static void
cancel(struct urn_am_endpoint *ep, struct urn_am_lane *l)
{
	struct urn_am_asked *a = take_off(ep, l);

	urn_am_lane_give(&ep->out, l);
	urn_am_unask(ep, a);
}

static int
do_prepare(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t most,
	   struct urn_am_prepared *p)
{
	struct urn_am_asked *a;
	struct urn_am_lane *l;
	int err;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "a request may not be prepared inside a handler");
	err = check_most(ep, most);
	if (err != 0)
		return err;
	a = urn_am_ask(ep, to, URN_AM_ROOM + most, true, &err);
	if (a == NULL)
		return err;
	l = urn_am_lane_take(&ep->out, &ep->out.peer[a->peer], URN_AM_ROOM + most);
	l->ticket = ++ep->tickets << TICKET_BITS | l->index;
	l->asked = (uint32_t)(a - ep->asked);
	ep->prepared++;
	ep->out.peer[a->peer].prepared++;
	p->data = (uint8_t *)urn_msg_set_buffer(&l->set) + URN_AM_ROOM;
	p->most = most;
	p->ticket = l->ticket;
	return 0;
}

URN_FAST int
urn_am_request_prepare(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t most,
		       struct urn_am_prepared *prepared)
{
	int err = urn_am_enter(ep);

	memset(prepared, 0, sizeof(*prepared));
	if (err != 0)
		return err;
	err = do_prepare(ep, to, most, prepared);
	urn_am_leave(ep);
	return err;
}

static int
do_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *p, uint32_t handler,
	  const uint64_t *args, uint32_t n, uint32_t len, uint64_t *number)
{
	struct urn_am_head head = {.kind = URN_AM_M_REQUEST,
				   .args = (uint8_t)n,
				   .handler = handler,
				   .reply_to = ep->replies.qid};
	struct urn_am_asked *a;
	struct urn_am_lane *l;
	int err;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "a request may not be sent inside a handler");
	l = lane_of(ep, p);
	if (l == NULL)
		return EINVAL;
	err = check_commit(ep, handler, n, len, l->m.bytes - (uint32_t)URN_AM_ROOM);
	if (err != 0)
		return err;
	if (urn_am_gone(ep)) {
		cancel(ep, l);
		return urn_fail(EIO, "the dataplane is gone");
	}
	a = take_off(ep, l);
	urn_am_give_number(ep, a);
	a->handler = handler;
	head.number = a->number;
	urn_am_aim(&l->m, &ep->out.peer[a->peer], a->number, urn_am_size(n, len));
	l->m.off = write_head(urn_msg_set_buffer(&l->set), &head, args);
	urn_am_lane_trim(&ep->out, l, l->m.len);
	urn_am_lane_send(&ep->out, l);
	if (number != NULL)
		*number = a->number;
	return 0;
}

URN_FAST int
urn_am_request_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared,
		      uint32_t handler, const uint64_t *args, uint32_t n, uint32_t len,
		      uint64_t *number)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = do_commit(ep, prepared, handler, args, n, len, number);
	urn_am_leave(ep);
	return err;
}

int
urn_am_request_cancel(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared)
{
	struct urn_am_lane *l;
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	l = lane_of(ep, prepared);
	if (l != NULL)
		cancel(ep, l);
	urn_am_leave(ep);
	return l != NULL ? 0 : EINVAL;
}

/* ---- replies */

void
urn_am_unprepare(struct urn_am_endpoint *ep)
{
	struct urn_am_place *r = &ep->reply;
	struct urn_am_peer *p = ep->asker_peer;

	if (r->m == NULL)
		return;
	p->users++; /* the peer of the request stays: it has another answer */
	if (r->lane != NULL)
		urn_am_lane_give(&ep->back, r->lane);
	else
		urn_am_unpark(&ep->back, r->parked);
	p->users--;
	r->m = NULL;
}

static int
do_reply_prepare(struct urn_am_endpoint *ep, uint64_t token, uint32_t most,
		 struct urn_am_prepared *p)
{
	int err = urn_am_may_reply(ep, token);

	if (err == 0)
		err = check_most(ep, most);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	urn_am_unprepare(ep);
	ep->reply = urn_am_find_place(ep, URN_AM_ROOM + most);
	if (ep->reply.m == NULL)
		return urn_fail(ENOMEM, "no memory for a reply that has to wait");
	ep->reply_room = most;
	p->data = ep->reply.at + URN_AM_ROOM;
	p->most = most;
	p->ticket = token;
	return 0;
}

URN_FAST int
urn_am_reply_prepare(struct urn_am_endpoint *ep, uint64_t token, uint32_t most,
		     struct urn_am_prepared *prepared)
{
	int err = urn_am_enter(ep);

	memset(prepared, 0, sizeof(*prepared));
	if (err != 0)
		return err;
	err = do_reply_prepare(ep, token, most, prepared);
	urn_am_leave(ep);
	return err;
}

static int
do_reply_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *p, uint32_t handler,
		const uint64_t *args, uint32_t n, uint32_t len)
{
	struct urn_am_head head = {.kind = URN_AM_M_REPLY, .args = (uint8_t)n, .handler = handler};
	struct urn_am_place *r = &ep->reply;
	int err = urn_am_may_reply(ep, p->ticket);

	if (err == 0 && (r->m == NULL || p->data != r->at + URN_AM_ROOM))
		err = urn_fail(EINVAL, "no reply to the request is prepared");
	if (err == 0)
		err = check_commit(ep, handler, n, len, ep->reply_room);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	head.number = ep->asker_number;
	head.reply_to = ep->replies.qid;
	r->m->off = write_head(r->at, &head, args);
	r->m->len = urn_am_size(n, len);
	r->m->answers = 1;
	if (r->lane != NULL) {
		urn_am_lane_trim(&ep->back, r->lane, r->m->len);
		urn_am_lane_send(&ep->back, r->lane);
	}
	r->m = NULL;
	ep->replied = true;
	return 0;
}

URN_FAST int
urn_am_reply_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared,
		    uint32_t handler, const uint64_t *args, uint32_t n, uint32_t len)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = do_reply_commit(ep, prepared, handler, args, n, len);
	urn_am_leave(ep);
	return err;
}
