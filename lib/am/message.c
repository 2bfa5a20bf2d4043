/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies that leave, and the rules about them (AM-1). */
#include "am/lock.h"

#include <endian.h>
#include <string.h>

void
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

/* Check what a message is to be made of. returns: 0, or an errno value with its text */
static int
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

void
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
urn_am_ask(struct urn_am_endpoint *ep, struct urn_am_peer *p)
{
	uint32_t slot = ep->asked_free;
	struct urn_am_asked *a = &ep->asked[slot];

	ep->asked_free = a->next;
	a->number = ++ep->serial << URN_AM_SLOT_BITS | slot;
	a->at = 0;
	a->peer = urn_am_peer_index(&ep->out, p);
	ep->pending++;
	p->open++;
	p->users++;
	return a;
}

/*
 * True when a peer may have another request, of so many bytes. A peer has fewer requests without an
 * answer than are free, and likewise with bytes and lanes: so it leaves something to others,
 * whether it answers or not.
 */
static bool
urn_am_may_ask(const struct urn_am_endpoint *ep, const struct urn_am_peer *p, uint32_t size)
{
	const struct urn_am_outbox *box = &ep->out;

	return p->open < ep->attr.requests - ep->pending && urn_am_has_room(box, p, size) &&
	       (p->first != NULL || urn_am_has_lane(box, p, size));
}

/* Where a request goes, and what is done about errors. */
static void
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
urn_am_park_request(struct urn_am_endpoint *ep, struct urn_am_peer *p, struct urn_am_asked *a,
		    uint32_t size)
{
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
urn_am_post(struct urn_am_endpoint *ep, struct urn_am_peer *p, struct urn_am_asked *a,
	    const struct urn_am_head *head, const uint64_t *args, const void *data, uint32_t len)
{
	uint32_t size = urn_am_size(head->args, len);
	struct urn_am_lane *l = NULL;
	uint8_t *at;

	if (p->first == NULL) {
		l = urn_am_lane_take(&ep->out, p, size);
		urn_am_aim(&l->m, p, a->number, size);
		at = urn_msg_set_buffer(&l->set);
	} else {
		at = urn_am_park_request(ep, p, a, size);
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
	struct urn_am_peer *p;
	int err;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "a request may not be sent inside a handler");
	err = urn_am_check(ep, handler, n, len);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	p = ep->pending < ep->attr.requests ? urn_am_peer_get(&ep->out, to->node, to->requests)
					    : NULL;
	if (p == NULL)
		return EAGAIN;
	if (!urn_am_may_ask(ep, p, urn_am_size(n, len))) {
		urn_am_peer_put(&ep->out, p);
		return EAGAIN;
	}
	a = urn_am_ask(ep, p);
	head.number = a->number;
	err = urn_am_post(ep, p, a, &head, args, data, len);
	if (err != 0)
		urn_am_unask(ep, a);
	else if (number != NULL)
		*number = a->number;
	return err != 0 ? urn_fail(err, "no memory for a request that has to wait") : 0;
}

int
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
	n = ep->pending;
	urn_am_leave(ep);
	return n;
}

/* ---- replies */

static int
urn_am_do_reply(struct urn_am_endpoint *ep, uint64_t token, uint32_t handler, const uint64_t *args,
		uint32_t n, const void *data, uint32_t len)
{
	struct urn_am_head head = {.kind = URN_AM_M_REPLY, .args = (uint8_t)n, .handler = handler};
	int err;

	if (ep->inside != URN_AM_IN_REQUEST)
		return urn_fail(EPERM, "a reply may be sent inside the handler of a request only");
	if (token != ep->token)
		return urn_fail(EPERM, "the token is not that of the request whose handler runs");
	if (ep->replied)
		return urn_fail(EALREADY, "the request has been replied to");
	err = urn_am_check(ep, handler, n, len);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	head.number = ep->asker_number;
	ep->replied = true;
	return urn_am_answer(ep, &head, args, data, len);
}

int
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
