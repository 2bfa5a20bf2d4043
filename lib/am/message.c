/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies that leave, and the rules about them (AM-1). */
#include "am/lock.h"

#include "abi/clock.h"

#include <endian.h>
#include <string.h>

struct urn_am_lane *
urn_am_idle_lane(struct urn_am_lane *lanes)
{
	uint32_t i;

	for (i = 0; i < URN_AM_LANES; i++)
		if (!lanes[i].busy)
			return &lanes[i];
	return NULL;
}

int
urn_am_send(struct urn_am_lane *lane, const struct urn_msg_to *to, const struct urn_am_head *head,
	    const uint64_t *args, const void *data, uint32_t len)
{
	uint8_t *at = urn_msg_set_buffer(&lane->set);
	struct urn_am_head h = *head;
	uint32_t i, size = (uint32_t)sizeof(h) + head->args * (uint32_t)sizeof(uint64_t);
	int err;

	h.magic = URN_AM_MAGIC;
	h.handler = htobe32(head->handler);
	h.number = htobe64(head->number);
	h.reply_to = htobe64(head->reply_to);
	memcpy(at, &h, sizeof(h));
	for (i = 0; i < head->args; i++) {
		uint64_t arg = htobe64(args[i]);

		memcpy(at + sizeof(h) + i * sizeof(arg), &arg, sizeof(arg));
	}
	if (len > 0)
		memcpy(at + size, data, len);
	err = urn_msg_set_send(&lane->set, to, at, size + len);
	if (err != 0)
		return err;
	lane->to = *to;
	lane->len = size + len;
	lane->busy = true;
	lane->again = false;
	return 0;
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
	a->number = 0;
	a->next = ep->asked_free;
	ep->asked_free = (uint32_t)(a - ep->asked);
	ep->pending--;
}

/* Take a slot, which is free, for a request to a node. returns: the slot */
static struct urn_am_asked *
urn_am_ask(struct urn_am_endpoint *ep, const uint8_t node[16])
{
	uint32_t slot = ep->asked_free;
	struct urn_am_asked *a = &ep->asked[slot];

	ep->asked_free = a->next;
	a->number = ++ep->serial << URN_AM_SLOT_BITS | slot;
	a->at = urn_clock_ns();
	memcpy(a->node, node, sizeof(a->node));
	ep->pending++;
	return a;
}

static int
urn_am_do_request(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t handler,
		  const uint64_t *args, uint32_t n, const void *data, uint32_t len,
		  uint64_t *number)
{
	struct urn_am_head head = {
		.kind = URN_AM_M_REQUEST, .args = (uint8_t)n, .handler = handler};
	struct urn_msg_to target = {.qid = to->requests,
				    .retry_us = URN_AM_RETRY_US,
				    .retries = URN_AM_REQUEST_TRIES,
				    .retry_kinds = URN_AM_RETRY_KINDS};
	struct urn_am_lane *lane = urn_am_idle_lane(ep->out);
	struct urn_am_asked *a;
	int err;

	if (ep->inside >= URN_AM_IN_REPLY)
		return urn_fail(EPERM, "a request may not be sent inside a handler");
	err = urn_am_check(ep, handler, n, len);
	if (err != 0)
		return err;
	if (urn_am_gone(ep))
		return urn_fail(EIO, "the dataplane is gone");
	if (lane == NULL || ep->asked_free == ep->attr.requests)
		return EAGAIN;
	a = urn_am_ask(ep, to->node);
	memcpy(target.node, to->node, sizeof(target.node));
	head.number = a->number;
	head.reply_to = ep->replies.qid;
	err = urn_am_send(lane, &target, &head, args, data, len);
	if (err != 0) {
		urn_am_unask(ep, a);
		return err;
	}
	lane->number = a->number;
	if (number != NULL)
		*number = a->number;
	return 0;
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
	err = urn_am_send(ep->lane, &ep->asker, &head, args, data, len);
	if (err == 0)
		ep->replied = true;
	return err;
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
