/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that come, and answers to those that left. A request's handler runs only while a lane
 * for its reply is idle: so urn_am_reply() always has one, and a reply never waits behind requests.
 * The library answers for handlers that send no reply; with that answer the requester's slot is
 * free.
 */
#include "am/lock.h"

#include "abi/clock.h"

#include <endian.h>
#include <poll.h>
#include <string.h>

enum { URN_AM_LOOK_MS = 100 }; /* between looks for requests that wait too long */

/* A message that was parsed. */
struct urn_am_parsed {
	struct urn_am_head head; /* in host order */
	struct urn_am_message m; /* token and number are not set */
};

/* Read a message, which may have any bytes. returns: true: it is one of this library */
static bool
urn_am_read(const struct urn_msg *msg, struct urn_am_parsed *p)
{
	const uint8_t *at = msg->data;
	struct urn_am_head *h = &p->head;
	uint32_t size = (uint32_t)sizeof(*h), i;

	if (msg->len < size)
		return false;
	memcpy(h, at, sizeof(*h));
	if (h->magic != URN_AM_MAGIC || h->kind == 0 || h->kind >= URN_AM_M_KINDS || h->rsvd != 0 ||
	    h->args > URN_AM_ARGS || msg->len - size < h->args * sizeof(uint64_t))
		return false;
	h->handler = be32toh(h->handler);
	h->number = be64toh(h->number);
	h->reply_to = be64toh(h->reply_to);
	memset(&p->m, 0, sizeof(p->m));
	for (i = 0; i < h->args; i++) {
		memcpy(&p->m.arg[i], at + size, sizeof(uint64_t));
		p->m.arg[i] = be64toh(p->m.arg[i]);
		size += (uint32_t)sizeof(uint64_t);
	}
	p->m.args = h->args;
	p->m.data = at + size;
	p->m.len = msg->len - size;
	memcpy(p->m.node, msg->node, sizeof(p->m.node));
	return h->number != 0;
}

/* The handler with a number, which may be any; NULL: none. */
static const struct urn_am_handler *
urn_am_handler_of(const struct urn_am_endpoint *ep, uint32_t number)
{
	const struct urn_am_handler *h = number < URN_AM_HANDLERS ? &ep->handler[number] : NULL;

	return h != NULL && h->fn != NULL ? h : NULL;
}

/* ---- requests that fail */

static const char urn_am_gone_text[] = "the dataplane is gone";

static void
urn_am_fail_request(struct urn_am_endpoint *ep, struct urn_am_asked *a, int err, uint8_t code,
		    const char *text)
{
	struct urn_am_failure f = {.number = a->number, .err = err, .code = code, .text = text};

	urn_am_unask(ep, a);
	ep->stats.failed_requests++;
	if (ep->failure == NULL)
		return;
	ep->inside = URN_AM_IN_CALLBACK;
	ep->failure(ep, &f, ep->failure_arg);
	ep->inside = URN_AM_OUTSIDE;
}

/* Let a request fail whose delivery failed. code: enum urn_msg_code */
static void
urn_am_fail_delivery(struct urn_am_endpoint *ep, struct urn_am_asked *a, uint8_t code)
{
	bool gone = urn_am_gone(ep);

	urn_am_fail_request(ep, a, gone ? EIO : EHOSTUNREACH, code,
			    gone ? urn_am_gone_text : urn_msg_code_text(code));
}

/* Look at the lanes of requests. returns: number of requests that failed */
static unsigned int
urn_am_look_out(struct urn_am_endpoint *ep)
{
	unsigned int i, n = 0;

	for (i = 0; i < URN_AM_LANES; i++) {
		struct urn_am_lane *l = &ep->out[i];
		uint8_t code = l->busy ? urn_msg_set_status(&l->set) : (uint8_t)URN_MSG_PENDING;
		struct urn_am_asked *a;

		if (code == URN_MSG_PENDING)
			continue;
		l->busy = false;
		a = urn_am_find_asked(ep, l->number);
		if (code == URN_MSG_DONE || a == NULL)
			continue;
		urn_am_fail_delivery(ep, a, code);
		n++;
	}
	return n;
}

/*
 * Send a reply once more, whose flow led to an earlier life of the requester's node. A requester
 * takes one reply, so the reply may have come after all. returns: true: the reply is on its way
 */
static bool
urn_am_reply_again(struct urn_am_lane *l, uint8_t code)
{
	if ((code & ~URN_MSG_MAY_BE_THERE) != URN_MSG_RESTARTED || l->again)
		return false;
	l->again = true;
	return urn_msg_set_send(&l->set, &l->to, urn_msg_set_buffer(&l->set), l->len) == 0;
}

/* Look at the lanes of replies. */
static void
urn_am_look_back(struct urn_am_endpoint *ep)
{
	unsigned int i;

	for (i = 0; i < URN_AM_LANES; i++) {
		struct urn_am_lane *l = &ep->back[i];
		uint8_t code = l->busy ? urn_msg_set_status(&l->set) : (uint8_t)URN_MSG_PENDING;

		if (code == URN_MSG_PENDING || urn_am_reply_again(l, code))
			continue;
		l->busy = false;
		if (code != URN_MSG_DONE)
			ep->stats.lost_replies++;
	}
}

/* Note the death of a dataplane in another process. */
static void
urn_am_look_alive(struct urn_am_endpoint *ep)
{
	struct pollfd p = {.fd = ep->requests.fd};

	if (urn_msg_remote(ep->dev) && poll(&p, 1, 0) == 1 &&
	    p.revents & (POLLHUP | POLLERR | POLLNVAL))
		urn_msg_dev_gone(ep->dev);
}

/*
 * Let requests fail that have waited too long for their answer, or that nobody will answer because
 * the dataplane is gone. now: ns. returns: their number
 */
static unsigned int
urn_am_fail_late(struct urn_am_endpoint *ep, uint64_t now)
{
	uint64_t most = ep->attr.answer_ms * UINT64_C(1000000);
	bool gone = urn_am_gone(ep);
	unsigned int n = 0;
	uint32_t i;

	for (i = 0; i < ep->attr.requests && ep->pending != 0; i++) {
		struct urn_am_asked *a = &ep->asked[i];

		if (a->number == 0 || (!gone && now - a->at < most))
			continue;
		if (gone)
			urn_am_fail_request(ep, a, EIO, 0, urn_am_gone_text);
		else
			urn_am_fail_request(
				ep, a, ETIMEDOUT, 0,
				"the target's program has not answered the request in time");
		n++;
	}
	return n;
}

/* Look now and then at requests and at the dataplane. returns: number of requests that failed */
static unsigned int
urn_am_look_late(struct urn_am_endpoint *ep)
{
	uint64_t now;

	/* An endpoint that only serves is to know of a dataplane that died, too. */
	if (ep->pending == 0 && ep->commands == 0 && ++ep->idle % URN_AM_IDLE_CALLS != 0)
		return 0;
	now = urn_clock_ns();
	if (now < ep->look_at)
		return 0;
	ep->look_at = now + URN_AM_LOOK_MS * UINT64_C(1000000);
	if (!urn_am_gone(ep))
		urn_am_look_alive(ep);
	return urn_am_fail_late(ep, now);
}

/* ---- messages that come */

/* A message came to the queue of replies. returns: 1: a function was called; 0 */
static unsigned int
urn_am_take_reply(struct urn_am_endpoint *ep, const struct urn_msg *msg)
{
	const struct urn_am_handler *h;
	struct urn_am_parsed p;
	struct urn_am_asked *a;

	if (!urn_am_read(msg, &p) || p.head.kind == URN_AM_M_REQUEST) {
		ep->stats.malformed++;
		return 0;
	}
	a = urn_am_find_asked(ep, p.head.number);
	if (a == NULL || memcmp(a->node, msg->node, sizeof(a->node)) != 0) {
		ep->stats.stray_replies++;
		return 0;
	}
	if (p.head.kind == URN_AM_M_UNKNOWN) {
		urn_am_fail_request(ep, a, ENOSYS, 0, "the target has no handler with that number");
		return 1;
	}
	h = p.head.kind == URN_AM_M_REPLY ? urn_am_handler_of(ep, p.head.handler) : NULL;
	if (p.head.kind == URN_AM_M_REPLY && h == NULL) {
		ep->stats.unknown_handler++;
		urn_am_fail_request(ep, a, ENOSYS, 0,
				    "the reply names a handler that is not registered here");
		return 1;
	}
	urn_am_unask(ep, a);
	if (h == NULL)
		return 0; /* handled, without a reply */
	p.m.number = p.head.number;
	ep->inside = URN_AM_IN_REPLY;
	h->fn(ep, &p.m, h->arg);
	ep->inside = URN_AM_OUTSIDE;
	return 1;
}

/* Answer a request for its handler. kind: URN_AM_M_HANDLED or URN_AM_M_UNKNOWN */
static void
urn_am_answer(struct urn_am_endpoint *ep, uint8_t kind, uint32_t handler)
{
	struct urn_am_head head = {.kind = kind, .handler = handler, .number = ep->asker_number};

	if (urn_am_send(ep->lane, &ep->asker, &head, NULL, NULL, 0) != 0)
		ep->stats.lost_replies++;
}

/* A message came to the queue of requests; lane: idle. returns: 1: a handler was called; 0 */
static unsigned int
urn_am_take_request(struct urn_am_endpoint *ep, const struct urn_msg *msg, struct urn_am_lane *lane)
{
	const struct urn_am_handler *h;
	struct urn_am_parsed p;

	if (!urn_am_read(msg, &p) || p.head.kind != URN_AM_M_REQUEST) {
		ep->stats.malformed++;
		return 0;
	}
	ep->lane = lane;
	ep->asker = (struct urn_msg_to){.qid = p.head.reply_to,
					.retry_us = URN_AM_RETRY_US,
					.retries = URN_AM_REPLY_TRIES,
					.retry_kinds = URN_AM_RETRY_KINDS};
	memcpy(ep->asker.node, msg->node, sizeof(ep->asker.node));
	ep->asker_number = p.head.number;
	h = urn_am_handler_of(ep, p.head.handler);
	if (h == NULL) {
		ep->stats.unknown_handler++;
		urn_am_answer(ep, URN_AM_M_UNKNOWN, p.head.handler);
		return 0;
	}
	p.m.token = ++ep->token;
	ep->replied = false;
	ep->inside = URN_AM_IN_REQUEST;
	h->fn(ep, &p.m, h->arg);
	ep->inside = URN_AM_OUTSIDE;
	if (!ep->replied)
		urn_am_answer(ep, URN_AM_M_HANDLED, 0);
	return 1;
}

static unsigned int
urn_am_do_progress(struct urn_am_endpoint *ep)
{
	struct urn_am_lane *lane;
	unsigned int calls, i;
	struct urn_msg msg;

	if (ep->inside != URN_AM_OUTSIDE)
		return 0;
	urn_am_look_back(ep);
	calls = urn_am_look_out(ep) + urn_am_take_events(ep);
	for (i = 0; i < URN_AM_BATCH && urn_msg_set_poll(&ep->replies, &msg); i++) {
		calls += urn_am_take_reply(ep, &msg);
		urn_msg_set_release(&ep->replies);
	}
	for (i = 0; i < URN_AM_BATCH && (lane = urn_am_idle_lane(ep->back)) != NULL &&
		    urn_msg_set_poll(&ep->requests, &msg);
	     i++) {
		calls += urn_am_take_request(ep, &msg, lane);
		urn_msg_set_release(&ep->requests);
	}
	return calls + urn_am_look_late(ep);
}

unsigned int
urn_am_progress(struct urn_am_endpoint *ep)
{
	unsigned int calls;

	if (urn_am_enter(ep) != 0)
		return 0;
	calls = urn_am_do_progress(ep);
	urn_am_leave(ep);
	return calls;
}
