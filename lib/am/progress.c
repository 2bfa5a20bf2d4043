/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that come, and what became of requests that left. A request's handler runs only while
 * there is room for its reply: so urn_am_reply() always has some, and a reply never waits behind
 * requests. The library answers for handlers that send no reply; with that answer the requester's
 * slot is free.
 */
#include "am/lock.h"

#include "abi/clock.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { URN_AM_LOOK_MS = 100 }; /* between looks for requests that wait too long */

/* A message that was parsed. */
struct urn_am_parsed {
	struct urn_am_head head; /* in host order */
	struct urn_am_message m; /* token and number are not set */
};

/* Read a message, which may have any bytes. returns: true: it is one of this library */
static URN_FAST bool
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
static struct urn_am_handler *
urn_am_handler_of(struct urn_am_endpoint *ep, uint32_t number)
{
	struct urn_am_handler *h = number < URN_AM_HANDLERS ? &ep->handler[number] : NULL;

	return h != NULL && h->fn != NULL ? h : NULL;
}

/* Run a handler. inside: which kind it is */
static void
urn_am_call_handler(struct urn_am_endpoint *ep, const struct urn_am_handler *h,
		    const struct urn_am_message *m, enum urn_am_inside inside)
{
	ep->inside = inside;
	urn_am_handling = ep;
	atomic_store_explicit(&ep->running, (uint32_t)(h - ep->handler) + 1, memory_order_relaxed);
	h->fn(ep, m, h->arg);
	urn_am_returned(ep);
	atomic_store_explicit(&ep->running, 0, memory_order_relaxed);
	urn_am_handling = NULL;
	ep->inside = URN_AM_OUTSIDE;
}

int
urn_am_running(const struct urn_am_endpoint *ep)
{
	return (int)atomic_load_explicit(&ep->running, memory_order_relaxed) - 1;
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
	urn_am_returned(ep);
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

/* Park a request that its target refused. returns: false: nothing waits for it any more */
static bool
urn_am_keep_request(struct urn_am_endpoint *ep, struct urn_am_lane *l, uint8_t code)
{
	struct urn_am_asked *a = urn_am_find_asked(ep, l->m.number);

	if (a == NULL || !urn_am_is_refusal(code) || urn_am_gone(ep))
		return false;
	a->parked = urn_am_park_lane(&ep->out, l, code, urn_am_now(ep));
	if (a->parked != NULL)
		ep->stats.parked++;
	else /* no memory: the lane goes on */
		urn_am_lane_send(&ep->out, l);
	return true;
}

/* A lane's request has its message's answer. returns: number of requests that failed */
static unsigned int
urn_am_out_ended(struct urn_am_endpoint *ep, struct urn_am_lane *l, uint8_t code)
{
	struct urn_am_peer *p = &ep->out.peer[l->m.peer];
	uint64_t number = l->m.number;
	struct urn_am_asked *a;

	if (code == URN_MSG_DONE) {
		urn_am_peer_takes(&ep->out, p);
	} else {
		urn_am_peer_failed(p, code);
		if (urn_am_keep_request(ep, l, code))
			return 0;
	}
	urn_am_lane_give(&ep->out, l);
	a = code == URN_MSG_DONE ? NULL : urn_am_find_asked(ep, number);
	if (a == NULL)
		return 0;
	urn_am_fail_delivery(ep, a, code);
	return 1;
}

/* A parked request is on a lane again. */
static void
urn_am_unparked(void *ctx, const struct urn_am_parked *k)
{
	struct urn_am_endpoint *ep = ctx;
	struct urn_am_asked *a = urn_am_find_asked(ep, k->m.number);

	if (a != NULL)
		a->parked = NULL;
}

static void
urn_am_none_late(void *ctx, uint32_t answers)
{
	(void)ctx; /* requests have a time of their own */
	(void)answers;
}

/* Look at requests that are on their way, or parked. returns: number of those that failed */
static unsigned int
urn_am_look_out(struct urn_am_endpoint *ep)
{
	struct urn_am_outbox *box = &ep->out;
	uint32_t left = box->busy, misses = 0;
	struct urn_am_lane *l;
	unsigned int n = 0;
	uint8_t code;

	while ((l = urn_am_lane_ended(box, &left, &misses, &code)) != NULL)
		n += urn_am_out_ended(ep, l, code);
	if (box->waiting != URN_AM_NO_PEER)
		urn_am_unpark_due(box, urn_am_now(ep), urn_am_unparked, urn_am_none_late, ep);
	return n;
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

/* The lane that has a request; NULL: none. */
static const struct urn_am_lane *
urn_am_lane_of(const struct urn_am_outbox *box, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < box->lanes; i++)
		if (!(box->idle & UINT64_C(1) << i) && box->lane[i].m.number == number)
			return &box->lane[i];
	return NULL;
}

/* How far a request came whose time is over. returns: 0: it was delivered; else a code of enum
 * urn_msg_code, perhaps with URN_MSG_MAY_BE_THERE */
static uint8_t
urn_am_got_to(const struct urn_am_endpoint *ep, const struct urn_am_asked *a)
{
	uint8_t trouble = ep->out.peer[a->peer].trouble, answer;
	const struct urn_am_lane *l;

	if (a->parked != NULL) {
		trouble = trouble != 0 ? trouble : (uint8_t)URN_MSG_QUEUE_FULL;
		return a->parked->m.code != 0 ? a->parked->m.code : trouble;
	}
	l = urn_am_lane_of(&ep->out, a->number);
	answer = l != NULL ? urn_msg_set_answer(&l->set, l->seq) : (uint8_t)URN_MSG_DONE;
	if (answer == URN_MSG_DONE)
		return 0;
	if (answer != URN_MSG_PENDING) /* it came, and nobody has looked at it yet */
		return answer;
	trouble = trouble != 0 ? trouble : (uint8_t)URN_MSG_UNREACHABLE;
	return (l->m.code != 0 ? l->m.code : trouble) | URN_MSG_MAY_BE_THERE;
}

/* Let a request fail that its target took, and nobody answered. */
static void
urn_am_fail_unanswered(struct urn_am_endpoint *ep, struct urn_am_asked *a)
{
	snprintf(ep->no_answer, sizeof(ep->no_answer),
		 "no answer in time: handler %u has not returned, the target's program did not "
		 "look, or its answers to this program find no room",
		 a->handler);
	urn_am_fail_request(ep, a, ETIMEDOUT, 0, ep->no_answer);
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
	uint8_t code;
	uint32_t i;

	for (i = 0; i < ep->attr.requests && ep->pending != 0; i++) {
		struct urn_am_asked *a = &ep->asked[i];

		if (a->number != 0 && a->at == 0)
			a->at = now;
		if (a->number == 0 || (!gone && now - a->at < most))
			continue;
		code = gone ? 0 : urn_am_got_to(ep, a);
		if (gone)
			urn_am_fail_request(ep, a, EIO, 0, urn_am_gone_text);
		else if (code != 0)
			urn_am_fail_delivery(ep, a, code);
		else
			urn_am_fail_unanswered(ep, a);
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
	now = urn_clock_coarse_ns();
	if (now < ep->look_at)
		return 0;
	ep->look_at = now + URN_AM_LOOK_MS * UINT64_C(1000000);
	if (!urn_am_gone(ep))
		urn_am_look_alive(ep);
	return urn_am_fail_late(ep, now);
}

/* ---- messages that come */

/* Let a request fail for a handler that is not there. format: of a sentence with its number */
static void
urn_am_fail_handler(struct urn_am_endpoint *ep, struct urn_am_asked *a, const char *format,
		    uint32_t handler)
{
	snprintf(ep->no_handler, sizeof(ep->no_handler), format, handler);
	urn_am_fail_request(ep, a, ENOSYS, 0, ep->no_handler);
}

/* An answer came. returns: 1: a function was called; 0 */
static URN_FAST unsigned int
urn_am_take_answer(struct urn_am_endpoint *ep, const struct urn_msg *msg,
		   struct urn_am_parsed *parsed)
{
	struct urn_am_parsed *p = parsed;
	const struct urn_am_handler *h;
	struct urn_am_asked *a = urn_am_find_asked(ep, p->head.number);

	if (p->head.kind == URN_AM_M_STRAY) {
		urn_am_stray_told(ep, msg, &p->head);
		return 0;
	}
	if (a == NULL || memcmp(ep->out.peer[a->peer].node, msg->node, sizeof(msg->node)) != 0) {
		urn_am_stray_came(ep, msg, &p->head, a);
		return 0;
	}
	if (p->head.kind == URN_AM_M_UNKNOWN) {
		urn_am_fail_handler(ep, a, "the target has no handler %u", p->head.handler);
		return 1;
	}
	if (p->head.kind == URN_AM_M_LOST) {
		urn_am_fail_request(ep, a, EMSGSIZE, 0,
				    "the handler's reply is longer than payloads of this endpoint");
		return 1;
	}
	h = p->head.kind == URN_AM_M_REPLY ? urn_am_handler_of(ep, p->head.handler) : NULL;
	if (p->head.kind == URN_AM_M_REPLY && h == NULL) {
		ep->stats.unknown_handler++;
		urn_am_fail_handler(ep, a,
				    "the reply names handler %u, which is not registered here",
				    p->head.handler);
		return 1;
	}
	urn_am_unask(ep, a);
	if (h == NULL)
		return 0; /* handled, without a reply */
	p->m.number = p->head.number;
	urn_am_call_handler(ep, h, &p->m, URN_AM_IN_REPLY);
	return 1;
}

/* Several answers came in a message. returns: number of functions that were called */
static unsigned int
urn_am_take_shared(struct urn_am_endpoint *ep, const struct urn_msg *msg, uint32_t answers)
{
	const uint8_t *at = (const uint8_t *)msg->data + sizeof(struct urn_am_head);
	uint32_t left = msg->len - (uint32_t)sizeof(struct urn_am_head), len;
	struct urn_am_parsed p;
	struct urn_am_record r;
	unsigned int calls = 0;
	struct urn_msg one = *msg;

	for (; answers > 0 && left >= sizeof(r); answers--) {
		memcpy(&r, at, sizeof(r));
		len = be32toh(r.len);
		if (len > left - sizeof(r))
			break;
		one.data = at + sizeof(r);
		one.len = len;
		if (!urn_am_read(&one, &p) || p.head.kind == URN_AM_M_REQUEST ||
		    p.head.kind == URN_AM_M_SHARED || p.head.kind == URN_AM_M_STRAY)
			break;
		calls += urn_am_take_answer(ep, &one, &p);
		len = (uint32_t)(len + sizeof(r) + 7) & ~7u;
		len = len < left ? len : left;
		at += len;
		left -= len;
	}
	ep->stats.malformed += answers != 0;
	return calls;
}

/* A message came to the queue of replies. returns: number of functions that were called */
static URN_FAST unsigned int
urn_am_take_reply(struct urn_am_endpoint *ep, const struct urn_msg *msg)
{
	struct urn_am_parsed p;

	if (!urn_am_read(msg, &p) || p.head.kind == URN_AM_M_REQUEST ||
	    (p.head.kind == URN_AM_M_SHARED &&
	     (p.head.args != 0 || p.head.handler > URN_AM_SHARED))) {
		ep->stats.malformed++;
		return 0;
	}
	return p.head.kind == URN_AM_M_SHARED ? urn_am_take_shared(ep, msg, p.head.handler)
					      : urn_am_take_answer(ep, msg, &p);
}

/* Take replies. returns: number of functions that were called */
static URN_FAST unsigned int
urn_am_take_replies(struct urn_am_endpoint *ep)
{
	uint32_t n = urn_msg_set_waiting(&ep->replies), head = urn_msg_set_head(&ep->replies);
	unsigned int calls = 0;
	struct urn_msg msg;

	for (n = n < URN_AM_BATCH ? n : (uint32_t)URN_AM_BATCH; n > 0; n--) {
		urn_msg_set_entry(&ep->replies, head, &msg);
		calls += urn_am_take_reply(ep, &msg);
		urn_msg_set_release_to(&ep->replies, ++head);
	}
	return calls;
}

/* Answer a request for its handler. kind: URN_AM_M_HANDLED or URN_AM_M_UNKNOWN */
static void
urn_am_answer_for(struct urn_am_endpoint *ep, uint8_t kind, uint32_t handler)
{
	struct urn_am_head head = {.kind = kind,
				   .handler = handler,
				   .number = ep->asker_number,
				   .reply_to = ep->replies.qid};

	(void)urn_am_answer(ep, &head, NULL, NULL, 0);
}

/* Run the handler of a request, and note how long it took, if that matters. ep->now: fresh with
 * `timed` */
static void
urn_am_run_handler(struct urn_am_endpoint *ep, struct urn_am_handler *h, struct urn_am_message *m)
{
	uint64_t start = ep->now;

	if (h->slow)
		urn_am_answers_go(ep);
	m->token = ++ep->token;
	ep->replied = false;
	urn_am_call_handler(ep, h, m, URN_AM_IN_REQUEST);
	urn_am_unprepare(ep);
	if (ep->timed)
		h->slow = urn_am_now_afresh(ep) - start > URN_AM_HELD_NS;
}

/* Take a request, for whose answer there is room. returns: 1: a handler was called; 0 */
static URN_FAST unsigned int
urn_am_take_request(struct urn_am_endpoint *ep, struct urn_am_parsed *p)
{
	struct urn_am_handler *h;

	ep->asker = (struct urn_msg_to){.qid = p->head.reply_to,
					.retry_us = URN_AM_TRY_US,
					.retries = URN_AM_TRIES,
					.retry_kinds = URN_AM_RETRY_KINDS};
	memcpy(ep->asker.node, p->m.node, sizeof(ep->asker.node));
	ep->asker_number = p->head.number;
	h = urn_am_handler_of(ep, p->head.handler);
	if (h == NULL) {
		ep->stats.unknown_handler++;
		urn_am_answer_for(ep, URN_AM_M_UNKNOWN, p->head.handler);
		return 0;
	}
	urn_am_run_handler(ep, h, &p->m);
	if (!ep->replied)
		urn_am_answer_for(ep, URN_AM_M_HANDLED, 0);
	return 1;
}

/* Look at a request that waits. calls: a handler that was called counts. returns: false: the
 * request still waits */
static URN_FAST bool
urn_am_serve(struct urn_am_endpoint *ep, const struct urn_msg *msg, unsigned int *calls)
{
	enum urn_am_verdict verdict;
	struct urn_am_parsed p;

	if (!urn_am_read(msg, &p) || p.head.kind != URN_AM_M_REQUEST) {
		ep->stats.malformed++;
		return true;
	}
	verdict = urn_am_room(ep, msg->node, p.head.reply_to, &ep->asker_peer);
	if (verdict == URN_AM_WAIT)
		return false;
	if (verdict == URN_AM_TAKE)
		*calls += urn_am_take_request(ep, &p);
	else
		ep->stats.dropped_requests++;
	urn_am_peer_put(&ep->back, ep->asker_peer);
	return true;
}

/* True when the request of an entry was taken while one before it waited. */
static bool
urn_am_was_taken(const struct urn_am_endpoint *ep, uint32_t entry)
{
	uint32_t bit = entry & (ep->requests.entries - 1);

	return ep->taken_n != 0 && ep->taken[bit / 64] & UINT64_C(1) << bit % 64;
}

/* The request of an entry was taken. *head: the oldest entry that was not given back */
static void
urn_am_taken(struct urn_am_endpoint *ep, uint32_t entry, uint32_t *head)
{
	uint32_t bit = entry & (ep->requests.entries - 1);

	if (entry != *head) {
		ep->taken[bit / 64] |= UINT64_C(1) << bit % 64;
		ep->taken_n++;
		return;
	}
	while (urn_am_was_taken(ep, ++*head)) {
		bit = *head & (ep->requests.entries - 1);
		ep->taken[bit / 64] &= ~(UINT64_C(1) << bit % 64);
		ep->taken_n--;
	}
	urn_msg_set_release_to(&ep->requests, *head);
}

/* Answers do not wait for others any more when handlers have taken long. ep->now: fresh with
 * `timed` */
static void
urn_am_hold_no_longer(struct urn_am_endpoint *ep)
{
	if (!ep->timed || ep->now - ep->held_from <= URN_AM_HELD_NS)
		return;
	ep->held_from = ep->now;
	urn_am_answers_go(ep);
	urn_am_look_back(ep);
}

/* A call begins to look at requests that wait. */
static void
urn_am_count_waits(struct urn_am_endpoint *ep)
{
	uint32_t most =
		ep->requests.entries < URN_AM_LOOKS ? ep->requests.entries : (uint32_t)URN_AM_LOOKS;

	ep->surplus = ep->waits > most / 2 ? ep->waits - most / 2 : 0;
	ep->waits = 0;
}

/* Take requests; those of queues that have no room for answers now stay where they are. returns:
 * number of handlers that were called */
static unsigned int
urn_am_take_requests(struct urn_am_endpoint *ep)
{
	uint32_t head = urn_msg_set_head(&ep->requests), entry = head;
	uint32_t left = urn_msg_set_waiting(&ep->requests), n = 0;
	unsigned int calls = 0;
	struct urn_msg msg;

	urn_am_count_waits(ep);
	if (left == 0)
		return 0;
	ep->timed = left > 1; /* the answer to a single one waits for nobody */
	if (ep->timed)
		ep->held_from = urn_am_now_afresh(ep);
	for (left = left < URN_AM_LOOKS ? left : (uint32_t)URN_AM_LOOKS;
	     left > 0 && n < URN_AM_BATCH; left--, entry++) {
		if ((int32_t)(entry - head) < 0 || urn_am_was_taken(ep, entry))
			continue;
		urn_msg_set_entry(&ep->requests, entry, &msg);
		if (!urn_am_serve(ep, &msg, &calls)) {
			ep->waits++;
			continue;
		}
		urn_am_taken(ep, entry, &head);
		n++;
		urn_am_hold_no_longer(ep);
	}
	urn_am_answers_go(ep);
	return calls;
}

static unsigned int
urn_am_do_progress(struct urn_am_endpoint *ep)
{
	/* earlier answers take room that requests need, or clear a peer that was silent */
	bool first = ep->back.busy > 1 || ep->back.parked != 0;
	unsigned int calls;

	if (ep->inside != URN_AM_OUTSIDE)
		return 0;
	ep->now = 0;
	if (first)
		urn_am_look_back(ep);
	calls = urn_am_take_replies(ep) + urn_am_take_requests(ep);
	if (!first)
		urn_am_look_back(ep);
	calls += urn_am_look_out(ep) + urn_am_take_events(ep);
	return calls + urn_am_look_late(ep);
}

URN_FAST unsigned int
urn_am_progress(struct urn_am_endpoint *ep)
{
	unsigned int calls;

	if (urn_am_enter(ep) != 0)
		return 0;
	calls = urn_am_do_progress(ep);
	urn_am_leave(ep);
	return calls;
}
