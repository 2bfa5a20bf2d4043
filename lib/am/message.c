/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies that leave, and the rules about them (AM-1). */
#include "am/lock.h"

#include "abi/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

uint64_t
urn_am_now(struct urn_am_endpoint *ep)
{
	if (ep->now == 0)
		ep->now = urn_clock_ns();
	return ep->now;
}

uint64_t
urn_am_now_afresh(struct urn_am_endpoint *ep)
{
	ep->now = urn_clock_ns();
	return ep->now;
}

URN_FAST void
urn_am_write(uint8_t *at, const struct urn_am_head *head, const uint64_t *args, const void *data,
	     uint32_t len)
{
	struct urn_am_head h = *head;
	uint32_t i;

	h.magic = URN_AM_MAGIC;
	h.handler = htobe32(head->handler);
	h.number = htobe64(head->number);
	h.reply_to = htobe64(head->reply_to);
	memcpy(at, &h, sizeof(h));
	at += sizeof(h);
	for (i = 0; i < head->args; i++, at += sizeof(uint64_t)) {
		uint64_t arg = htobe64(args[i]);

		memcpy(at, &arg, sizeof(arg));
	}
	if (len > 0)
		memcpy(at, data, len);
}

int
urn_am_check(const struct urn_am_endpoint *ep, uint32_t handler, uint32_t n, uint32_t len)
{
	if (handler >= URN_AM_HANDLERS)
		return urn_fail(EINVAL, "handlers have numbers below %d, not %u", URN_AM_HANDLERS,
				handler);
	if (n > URN_AM_ARGS)
		return urn_fail(EINVAL, "a message has at most %d arguments, not %u", URN_AM_ARGS,
				n);
	if (len > ep->attr.payload)
		return urn_fail(EMSGSIZE,
				"the endpoint was made for payloads of at most %u bytes, not %u",
				ep->attr.payload, len);
	return 0;
}

/* ---- requests */

struct urn_am_asked *
urn_am_find_asked(const struct urn_am_endpoint *ep, uint64_t number)
{
	uint32_t slot = (uint32_t)(number & (URN_AM_REQUESTS_MAX - 1));

	if (number == 0 || slot >= ep->attr.requests || ep->asked[slot].number != number)
		return NULL;
	return &ep->asked[slot];
}

URN_FAST void
urn_am_unask(struct urn_am_endpoint *ep, struct urn_am_asked *a)
{
	struct urn_am_peer *p = &ep->out.peer[a->peer];

	if (a->parked != NULL)
		urn_am_unpark(&ep->out, a->parked);
	a->parked = NULL;
	a->number = 0;
	a->next = ep->asked_free;
	ep->asked_free = (uint32_t)(a - ep->asked);
	ep->pending--;
	p->open--;
	urn_am_peer_leave(&ep->out, p);
}

/* Take a slot, which is free, for a request to a peer. returns: the slot */
static struct urn_am_asked *
urn_am_take_slot(struct urn_am_endpoint *ep, struct urn_am_peer *p)
{
	struct urn_am_asked *a = &ep->asked[ep->asked_free];

	ep->asked_free = a->next;
	a->at = 0;
	a->peer = urn_am_peer_index(&ep->out, p);
	ep->pending++;
	p->open++;
	p->users++;
	return a;
}

/*
 * True when a peer may have another request, of so many bytes. A peer has fewer requests without an
 * answer than are free, and likewise with bytes; its lanes have a share, too (am/outbox.h). So the
 * peer leaves something to others, whether it answers or not. lane: the request may not be parked
 */
static bool
urn_am_may_ask(const struct urn_am_endpoint *ep, const struct urn_am_peer *p, uint32_t size,
	       bool lane)
{
	const struct urn_am_outbox *box = &ep->out;

	return p->open < ep->attr.requests - ep->pending && urn_am_has_room(box, p, size) &&
	       (p->first != NULL ? !lane : urn_am_has_lane(box, p, size));
}

URN_FAST struct urn_am_asked *
urn_am_ask(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t size, bool lane,
	   int *err)
{
	struct urn_am_peer *p;

	*err = urn_am_gone(ep) ? urn_fail(EIO, "the dataplane is gone") : EAGAIN;
	if (*err == EIO || ep->pending == ep->attr.requests)
		return NULL;
	p = urn_am_peer_get(&ep->out, to->node, to->requests);
	if (p == NULL)
		return NULL;
	if (!urn_am_may_ask(ep, p, size, lane)) {
		urn_am_peer_put(&ep->out, p);
		return NULL;
	}
	*err = 0;
	return urn_am_take_slot(ep, p);
}

int
urn_am_draw(struct urn_am_endpoint *ep)
{
	uint8_t *at = (uint8_t *)ep->random, *end = at + sizeof(ep->random);
	ssize_t n = 0;

	while (at < end && (n >= 0 || errno == EINTR)) {
		n = getrandom(at, (size_t)(end - at), 0);
		at += n > 0 ? n : 0;
	}
	ep->drawn = 0;
	return at == end ? 0 : -1;
}

URN_FAST void
urn_am_give_number(struct urn_am_endpoint *ep, struct urn_am_asked *a)
{
	uint64_t number;

	if (ep->drawn == URN_AM_DRAWN)
		(void)urn_am_draw(ep); /* the system gave numbers before */
	number = (uint64_t)++ep->serial << URN_AM_RANDOM_BITS | ep->random[ep->drawn++];
	number = number << URN_AM_SLOT_BITS | (uint32_t)(a - ep->asked);
	a->number = number != 0 ? number : UINT64_C(1) << 63 | (uint32_t)(a - ep->asked);
}

URN_FAST void
urn_am_aim(struct urn_am_letter *m, const struct urn_am_peer *p, uint64_t number, uint32_t size)
{
	memcpy(m->to.node, p->node, sizeof(m->to.node));
	m->to.qid = p->qid;
	m->to.retry_us = URN_AM_TRY_US;
	m->to.retries = URN_AM_TRIES;
	m->to.retry_kinds = URN_AM_RETRY_KINDS;
	m->number = number;
	m->len = size;
}

/* Let a request wait behind the parked ones of its peer. returns: where it is written; NULL: no
 * memory */
static uint8_t *
urn_am_park_request(struct urn_am_endpoint *ep, struct urn_am_asked *a, uint32_t size)
{
	struct urn_am_peer *p = &ep->out.peer[a->peer];
	struct urn_am_letter m = {.answers = 0};

	urn_am_aim(&m, p, a->number, size);
	a->parked = urn_am_park(&ep->out, p, &m, size);
	if (a->parked == NULL)
		return NULL;
	ep->stats.parked++;
	return a->parked->data;
}

/* Send a request on a lane, or behind the parked ones of its peer. returns: 0; ENOMEM */
static int
urn_am_post(struct urn_am_endpoint *ep, struct urn_am_asked *a, const struct urn_am_head *head,
	    const uint64_t *args, const void *data, uint32_t len)
{
	struct urn_am_peer *p = &ep->out.peer[a->peer];
	uint32_t size = urn_am_size(head->args, len);
	struct urn_am_lane *l = NULL;
	uint8_t *at;

	if (p->first == NULL) {
		l = urn_am_lane_take(&ep->out, p, size);
		urn_am_aim(&l->m, p, a->number, size);
		at = urn_msg_set_buffer(&l->set);
	} else {
		at = urn_am_park_request(ep, a, size);
		if (at == NULL)
			return ENOMEM;
	}
	urn_am_write(at, head, args, data, len);
	if (l != NULL)
		urn_am_lane_send(&ep->out, l);
	return 0;
}

static int
urn_am_do_request(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t handler,
		  const uint64_t *args, uint32_t n, const void *data, uint32_t len,
		  uint64_t *number)
{
	struct urn_am_head head = {.kind = URN_AM_M_REQUEST,
				   .args = (uint8_t)n,
				   .handler = handler,
				   .reply_to = ep->replies.qid};
	struct urn_am_asked *a;
	int err;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "a request may not be sent inside a handler");
	err = urn_am_check(ep, handler, n, len);
	if (err != 0)
		return err;
	a = urn_am_ask(ep, to, urn_am_size(n, len), false, &err);
	if (a == NULL)
		return err;
	urn_am_give_number(ep, a);
	a->handler = handler;
	head.number = a->number;
	err = urn_am_post(ep, a, &head, args, data, len);
	if (err != 0)
		urn_am_unask(ep, a);
	else if (number != NULL)
		*number = a->number;
	return err != 0 ? urn_fail(err, "no memory for a request that has to wait") : 0;
}

URN_FAST int
urn_am_request(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t handler,
	       const uint64_t *args, uint32_t n, const void *data, uint32_t len, uint64_t *number)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_am_do_request(ep, to, handler, args, n, data, len, number);
	urn_am_leave(ep);
	return err;
}

uint32_t
urn_am_pending(const struct urn_am_endpoint *ep)
{
	uint32_t n;

	if (urn_am_enter(ep) != 0)
		return 0;
	n = ep->pending - ep->prepared;
	urn_am_leave(ep);
	return n;
}

/* ---- replies */

int
urn_am_may_reply(const struct urn_am_endpoint *ep, uint64_t token)
{
	if (ep->inside != URN_AM_IN_REQUEST)
		return urn_fail(EPERM, "a reply may be sent inside the handler of a request only");
	if (token != ep->token)
		return urn_fail(EPERM, "the token is not that of the request whose handler runs");
	if (ep->replied)
		return urn_fail(EALREADY, "the request has been replied to");
	return 0;
}

static int
urn_am_do_reply(struct urn_am_endpoint *ep, uint64_t token, uint32_t handler, const uint64_t *args,
		uint32_t n, const void *data, uint32_t len)
{
	struct urn_am_head head = {.kind = URN_AM_M_REPLY, .args = (uint8_t)n, .handler = handler};
	int err = urn_am_may_reply(ep, token);

	if (err == 0)
		err = urn_am_check(ep, handler, n, len);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	urn_am_unprepare(ep); /* the room for one reply is this one's */
	head.number = ep->asker_number;
	head.reply_to = ep->replies.qid;
	ep->replied = true;
	return urn_am_answer(ep, &head, args, data, len);
}

URN_FAST int
urn_am_reply(struct urn_am_endpoint *ep, uint64_t token, uint32_t handler, const uint64_t *args,
	     uint32_t n, const void *data, uint32_t len)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_am_do_reply(ep, token, handler, args, n, data, len);
	urn_am_leave(ep);
	return err;
}
