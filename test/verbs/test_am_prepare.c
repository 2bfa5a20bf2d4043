/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and replies whose payload the program writes where it is sent from (AM-1): they arrive
 * as others do, what they take is bounded and given back, and misuse is an error.
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static void
see(struct side *s, const struct urn_am_message *m)
{
	assert_true(m->len <= PAYLOAD);
	s->seen = *m;
	memcpy(s->data, m->data, m->len);
}

static void
note(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	(void)ep;
	see(s, m);
	*(m->token ? &s->requests : &s->replies) += 1;
}

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	struct side *s = arg;

	(void)ep;
	s->failure = *f;
	s->failures++;
}

/* Prepare a request of side a to side b, which must succeed. */
static struct urn_am_prepared
prepare(struct side *a, const struct side *b, uint32_t most)
{
	struct urn_am_prepared p;

	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, most, &p), 0);
	assert_non_null(p.data);
	assert_int_equal(p.most, most);
	assert_int_equal((uintptr_t)p.data % 32, 0);
	return p;
}

/* True when nothing of an outbox is taken. */
static bool
is_empty(const struct urn_am_outbox *box)
{
	uint64_t all = box->lanes == 64 ? UINT64_MAX : (UINT64_C(1) << box->lanes) - 1;

	for (uint32_t i = 0; i < box->peers; i++)
		if (box->peer[i].users != 0 || box->peer[i].bytes != 0)
			return false;
	return box->idle == all && box->bytes == 0 && box->parked == 0;
}

/* Let both programs run until a side's outbox for requests is empty. */
static void
until_empty(struct net *n, const struct urn_am_outbox *box)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (!is_empty(box)) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(n->side[0].ep);
		(void)urn_am_progress(n->side[1].ep);
		sched_yield();
	}
}

/* ---- requests */

/* A handler that replies with the arguments and the payload, prepared. */
static void
echo(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct urn_am_prepared p;
	struct side *s = arg;

	see(s, m);
	s->requests++;
	assert_int_equal(urn_am_reply_prepare(ep, m->token, m->len, &p), 0);
	assert_int_equal((uintptr_t)p.data % 32, 0);
	memcpy(p.data, m->data, m->len);
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, m->arg, m->args, m->len), 0);
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, m->arg, m->args, m->len), EALREADY);
}

/* AM-1: payloads of every length, with any number of arguments, there and back; less may be sent
 * than was prepared. */
static void
test_there_and_back(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t args[URN_AM_ARGS] = {1, 2, 3, 4, 5, 6, 7, 8}, number;
	unsigned int sent = 0;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	for (uint32_t len = 0; len <= PAYLOAD;
	     len = len < PAYLOAD && len * 3 + 1 > PAYLOAD ? PAYLOAD : len * 3 + 1, sent++) {
		uint32_t args_n = sent % (URN_AM_ARGS + 1);
		uint32_t most = sent % 2 ? PAYLOAD : len;
		struct urn_am_prepared p = prepare(a, b, most);

		assert_int_equal(urn_am_pending(a->ep), 0);
		memset(p.data, 0x5a, most);
		memset(p.data, (int)sent + 1, len);
		assert_int_equal(urn_am_request_commit(a->ep, &p, 7, args, args_n, len, &number),
				 0);
		assert_int_equal(urn_am_pending(a->ep), 1);
		net_until(n, &a->replies, sent + 1);
		assert_int_equal(b->requests, sent + 1);
		assert_true(a->seen.number == number);
		assert_int_equal(b->seen.len, len);
		assert_int_equal(b->seen.args, args_n);
		assert_int_equal(a->seen.len, len);
		assert_int_equal(a->seen.args, args_n);
		assert_memory_equal(a->seen.arg, args, args_n * sizeof(args[0]));
		for (uint32_t i = 0; i < len; i++)
			assert_true(b->data[i] == (uint8_t)(sent + 1) && a->data[i] == b->data[i]);
		assert_int_equal(urn_am_pending(a->ep), 0);
	}
	assert_true(sent > 9);
	until_empty(n, &a->ep->out);
	until_empty(n, &b->ep->back);
}

/* Several at a time, committed in another order than prepared, beside a request that is copied. */
static void
test_any_order(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_prepared p[3];
	unsigned int seen = 0;

	urn_am_handle(b->ep, 7, note, b);
	for (unsigned int i = 0; i < 3; i++) {
		p[i] = prepare(a, b, 100);
		memset(p[i].data, (int)i, 100);
	}
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, "r", 1, NULL), 0);
	net_until_quiet(n, a); /* nothing that is prepared is sent, or waited for */
	assert_int_equal(b->requests, 1);
	assert_int_equal(b->seen.len, 1);
	for (unsigned int i = 3; i-- > 0;) {
		assert_int_equal(urn_am_request_commit(a->ep, &p[i], 7, NULL, 0, 100, NULL), 0);
		net_until_quiet(n, a);
		assert_int_equal(b->requests, 2 + seen++);
		assert_int_equal(b->data[0], i);
		assert_int_equal(b->data[99], i);
	}
	until_empty(n, &a->ep->out);
}

/* A ticket is good for its endpoint alone, although endpoints number theirs alike. */
static void
test_other_endpoint(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_prepared pa = prepare(a, b, 8), pb = prepare(b, a, 8);

	assert_int_equal(urn_am_request_commit(b->ep, &pa, 1, NULL, 0, 8, NULL), EINVAL);
	assert_int_equal(urn_am_request_cancel(b->ep, &pa), EINVAL);
	assert_int_equal(urn_am_request_cancel(a->ep, &pa), 0);
	assert_int_equal(urn_am_request_cancel(b->ep, &pb), 0);
}

/* Each misuse is an error with a sentence, and what was prepared stays so. */
static void
test_misuse(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t args[URN_AM_ARGS + 1] = {0};
	struct urn_am_prepared p, none = {.data = NULL}, old;

	urn_am_handle(b->ep, 7, note, b);
	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, PAYLOAD + 1, &p), EMSGSIZE);
	assert_null(p.data);
	assert_int_equal(p.ticket, 0);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, 0, NULL), EINVAL);
	assert_int_equal(urn_am_request_cancel(a->ep, &none), EINVAL);
	p = prepare(a, b, 10);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, 11, NULL), EMSGSIZE);
	assert_non_null(strstr(urn_attach_error(), "at most 10 bytes, not 11"));
	assert_int_equal(urn_am_request_commit(a->ep, &p, URN_AM_HANDLERS, NULL, 0, 1, NULL),
			 EINVAL);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, args, URN_AM_ARGS + 1, 1, NULL),
			 EINVAL);
	assert_int_equal(urn_am_request_commit(b->ep, &p, 7, NULL, 0, 1, NULL), EINVAL);
	assert_int_equal(urn_am_request_cancel(b->ep, &p), EINVAL);
	assert_int_equal(a->ep->prepared, 1);
	memset(p.data, 3, 10);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, args, URN_AM_ARGS, 10, NULL), 0);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, 1, NULL), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "is not prepared"));
	assert_int_equal(urn_am_request_cancel(a->ep, &p), EINVAL);
	net_until_quiet(n, a);
	assert_int_equal(b->requests, 1);
	assert_int_equal(b->seen.len, 10);
	until_empty(n, &a->ep->out);
	/* The ticket of before is none for the lane's next request. */
	old = p;
	p = prepare(a, b, 10);
	assert_int_equal(urn_am_request_cancel(a->ep, &old), EINVAL);
	assert_int_equal(urn_am_request_cancel(a->ep, &p), 0);
	assert_int_equal(urn_am_request_cancel(a->ep, &p), EINVAL);
	assert_true(is_empty(&a->ep->out));
	assert_int_equal(a->ep->pending + a->ep->prepared, 0);
}

/* ---- bounds */

/* Prepared requests are bounded like those under way: EAGAIN, with room for others; cancelled, they
 * leave nothing behind. */
static void
test_bounds(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_address other = b->address;
	struct urn_am_prepared p[URN_AM_LANES_MAX], q;
	unsigned int k = 0;

	urn_am_handle(b->ep, 7, note, b);
	while (urn_am_request_prepare(a->ep, &b->address, 100, &p[k]) == 0)
		k++;
	assert_int_equal(k, 4); /* one target leaves half of 8 requests to others */
	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, 100, &q), EAGAIN);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), EAGAIN);
	assert_null(q.data);
	assert_int_equal(urn_am_pending(a->ep), 0);
	(void)urn_am_progress(a->ep);
	assert_int_equal(urn_am_doze(a->ep), -1); /* nothing that a sleeper has to look after */
	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, 100, &q), EAGAIN);
	other.requests ^= UINT64_C(1) << 40; /* another target has room */
	assert_int_equal(urn_am_request_prepare(a->ep, &other, PAYLOAD, &q), 0);
	assert_int_equal(urn_am_request_cancel(a->ep, &q), 0);
	for (unsigned int i = 0; i < k; i++)
		assert_int_equal(urn_am_request_cancel(a->ep, &p[i]), 0);
	assert_true(is_empty(&a->ep->out));
	assert_int_equal(a->ep->pending + a->ep->prepared, 0);
	/* The endpoint of b ends with one that is prepared, and nothing of it is left. */
	(void)prepare(b, a, PAYLOAD);
}

/* Long payloads take long lanes, and count no more bytes than they have once they are sent. */
static void
test_bytes(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_prepared p = prepare(a, b, 4096), q;

	urn_am_handle(b->ep, 7, note, b);
	assert_int_equal(a->ep->out.idle_n[0], URN_AM_OUT_LANES - a->ep->out.idle_n[1] - 1);
	q = prepare(a, b, 4097);
	assert_int_equal(a->ep->out.bytes, 4096 + 4097 + 2 * URN_AM_ROOM);
	assert_int_equal(a->ep->out.idle_n[0] + a->ep->out.idle_n[1], URN_AM_OUT_LANES - 2);
	assert_int_equal(urn_am_request_commit(a->ep, &q, 7, NULL, 0, 8, NULL), 0);
	assert_int_equal(a->ep->out.bytes, 4096 + URN_AM_ROOM + urn_am_size(0, 8));
	assert_int_equal(urn_am_request_cancel(a->ep, &p), 0);
	net_until_quiet(n, a);
	until_empty(n, &a->ep->out);
	assert_int_equal(b->requests, 1);
}

/* A target that does not take its requests: those that were prepared before are sent, and parked
 * when they are refused; none is prepared while others are parked; all arrive once. */
static void
test_refused(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_attr attr = {.payload = PAYLOAD, .queue = 2, .requests = 32};
	struct urn_am_endpoint *ep = urn_am_endpoint_create(a->dev, &attr);
	struct urn_am_prepared p[4], q;
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats;

	assert_non_null(ep);
	urn_am_handle(b->ep, 7, note, b);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(urn_am_request_prepare(ep, &b->address, 5000, &p[i]), 0);
		memset(p[i].data, (int)i + 1, 5000);
	}
	for (unsigned int i = 0; i < 9; i++) /* more than its queue of 8 holds */
		assert_int_equal(urn_am_request(ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	while (ep->out.parked == 0) { /* one on a lane again is not parked, but still counted */
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
	}
	assert_int_equal(urn_am_request_prepare(ep, &b->address, 8, &q), EAGAIN);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(urn_am_request_commit(ep, &p[i], 7, NULL, 0, 4000 + i, NULL), 0);
	while (urn_am_get_stats(ep, &stats), stats.parked < 5) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
	}
	while (urn_am_pending(ep) != 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
		(void)urn_am_progress(b->ep);
		if (b->seen.len != 0) {
			assert_int_equal(b->data[0], b->seen.len - 4000 + 1);
			assert_int_equal(b->data[b->seen.len - 1], b->data[0]);
		}
	}
	assert_int_equal(b->requests, 13);
	urn_am_endpoint_destroy(ep);
}

/* ---- replies */

/* Deeds of a handler whose reply is prepared. */
enum reply_case { GIVE_UP, COPY_INSTEAD, ANEW, WRONG, CASES };

struct reply_try {
	enum reply_case how;
	struct side *s;
	struct urn_am_prepared asked; /* a request that is prepared outside */
};

/* Try what a handler may not do. */
static void
try_wrong(struct urn_am_endpoint *ep, const struct urn_am_message *m, struct reply_try *t)
{
	struct urn_am_prepared p;

	assert_int_equal(urn_am_request_prepare(ep, &t->s->address, 1, &p), EPERM);
	assert_int_equal(urn_am_request_commit(ep, &t->asked, 7, NULL, 0, 1, NULL), EPERM);
	assert_int_equal(urn_am_reply_prepare(ep, m->token + 1, 1, &p), EPERM);
	assert_int_equal(urn_am_reply_prepare(ep, m->token, PAYLOAD + 1, &p), EMSGSIZE);
	assert_null(p.data);
	p.ticket = m->token;
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, NULL, 0, 0), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "no reply to the request is prepared"));
	assert_int_equal(urn_am_reply_prepare(ep, m->token, 9, &p), 0);
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, NULL, 0, 10), EMSGSIZE);
	assert_int_equal(urn_am_reply_commit(ep, &p, URN_AM_HANDLERS, NULL, 0, 9), EINVAL);
	memset(p.data, CASES, 9);
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, NULL, 0, 9), 0);
	assert_int_equal(urn_am_reply_prepare(ep, m->token, 9, &p), EALREADY);
	assert_int_equal(urn_am_request_cancel(ep, &t->asked), 0);
}

static void
try_reply(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct reply_try *t = arg;
	struct urn_am_prepared p, again;

	t->s->requests++;
	if (t->how == WRONG) {
		try_wrong(ep, m, t);
		return;
	}
	assert_int_equal(urn_am_reply_prepare(ep, m->token, PAYLOAD, &p), 0);
	assert_int_equal((uintptr_t)p.data % 32, 0);
	memset(p.data, 0x77, PAYLOAD);
	if (t->how == COPY_INSTEAD) {
		assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, "copied", 6), 0);
		assert_true(ep->back.parked <= 1); /* there is room for one answer */
	}
	if (t->how != ANEW)
		return;
	assert_int_equal(urn_am_reply_prepare(ep, m->token, PAYLOAD, &again), 0);
	if (p.data != again.data)
		assert_int_equal(urn_am_reply_commit(ep, &p, 1, NULL, 0, 3), EINVAL);
	memcpy(again.data, "new", 3);
	assert_int_equal(urn_am_reply_commit(ep, &again, 1, NULL, 0, 3), 0);
	assert_true(ep->back.parked != 0 || ep->back.bytes < PAYLOAD); /* it counts 3 bytes now */
}

/* Ask once. returns: true: a reply came */
static bool
ask(struct net *n, struct side *a, const struct side *b)
{
	unsigned int replies = a->replies;

	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until_quiet(n, a);
	return a->replies != replies;
}

/* A reply that is prepared and not committed is given up, and the request is answered all the same;
 * the rules of replies hold. */
static void
test_replies(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct reply_try t = {.s = b};
	struct urn_am_prepared p;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, try_reply, &t);
	assert_int_equal(urn_am_reply_prepare(a->ep, 1, 1, &p), EPERM);
	assert_int_equal(urn_am_reply_commit(a->ep, &p, 1, NULL, 0, 0), EPERM);
	for (unsigned int i = 0; i < 3 * URN_AM_BACK_LANES; i++) /* none is lost */
		assert_false(ask(n, a, b));
	t.how = COPY_INSTEAD;
	assert_true(ask(n, a, b));
	assert_int_equal(a->seen.len, 6);
	assert_memory_equal(a->data, "copied", 6);
	t.how = ANEW;
	assert_true(ask(n, a, b));
	assert_int_equal(a->seen.len, 3);
	assert_memory_equal(a->data, "new", 3);
	t.how = WRONG;
	t.asked = prepare(b, a, 1);
	assert_true(ask(n, a, b));
	assert_true(a->seen.len == 9 && a->data[8] == CASES);
	until_empty(n, &b->ep->back);
	until_empty(n, &b->ep->out);
}

/* A prepared reply that finds no lane waits in memory of the library, and is given up there, too.
 */
static void
test_parked_reply(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_outbox *box = &b->ep->back;
	struct reply_try t = {.s = b};
	struct urn_am_peer *p;
	unsigned int replies;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, try_reply, &t);
	p = net_node_of(box, a->address.node);
	for (t.how = GIVE_UP; t.how < CASES; t.how++) {
		if (t.how == WRONG)
			t.asked = prepare(b, a, 1);
		replies = a->replies;
		p->lanes[0] += URN_AM_BACK_MOST; /* as if both were busy */
		p->lanes[1] += URN_AM_BACK_MOST;
		p->since = urn_clock_ns() + UINT64_C(60000000000);
		assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
		net_until(n, &b->requests, (unsigned int)t.how + 1);
		assert_int_equal(box->parked, 1); /* the answer */
		p->lanes[0] -= URN_AM_BACK_MOST;
		p->lanes[1] -= URN_AM_BACK_MOST;
		net_until_quiet(n, a);
		assert_int_equal(a->replies - replies, t.how != GIVE_UP);
	}
	p->users--;
	urn_am_peer_put(box, p);
	until_empty(n, box);
}

/* A prepared reply that cannot be delivered is counted as one. */
static void
test_lost_reply(void **state)
{
	struct net *n = *state;
	struct side *b = &n->side[1];
	struct urn_am_endpoint *ep = urn_am_endpoint_create(n->side[0].dev, &net_attr);
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats;

	assert_non_null(ep);
	urn_am_handle(b->ep, 7, echo, b);
	assert_int_equal(urn_am_request(ep, &b->address, 7, NULL, 0, "x", 1, NULL), 0);
	while (urn_msg_set_waiting(&b->ep->requests) == 0) {
		assert_true(urn_clock_ms() < end);
		sched_yield();
	}
	urn_am_endpoint_destroy(ep);
	while (urn_am_get_stats(b->ep, &stats), stats.lost_replies == 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(b->ep);
	}
	assert_int_equal(stats.lost_replies, 1);
	assert_int_equal(b->requests, 1);
	until_empty(n, &b->ep->back);
}

/* ---- threads, and the end */

/* Another thread prepares and commits, beside the library's. */
static void *
send_many(void *arg)
{
	struct net *n = arg;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_prepared p;

	for (unsigned int i = 0; i < 300;) {
		int err = urn_am_request_prepare(a->ep, &b->address, 64, &p);

		assert_true(err == 0 || err == EAGAIN);
		if (err != 0) {
			sched_yield();
			continue;
		}
		memset(p.data, (int)i, 64);
		if (i % 7 == 3)
			assert_int_equal(urn_am_request_cancel(a->ep, &p), 0);
		else
			assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, 64, NULL), 0);
		i++;
	}
	return NULL;
}

static void
test_threads(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats = {0};
	pthread_t thread[2];

	urn_am_handle(b->ep, 7, note, b);
	assert_int_equal(urn_am_thread_start(a->ep), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, n), 0);
	/* A busy machine can be silent for so long that requests are dropped. */
	while (urn_am_get_stats(b->ep, &stats),
	       b->requests + stats.dropped_requests < 2 * (300 - 43)) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(b->ep);
		sched_yield();
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	net_until_quiet(n, a);
	assert_int_equal(urn_am_thread_stop(a->ep), 0);
	assert_int_equal(b->requests + stats.dropped_requests, 2 * (300 - 43));
	until_empty(n, &a->ep->out);
}

/* A dataplane that is gone: the payload's room can still be written, and commit says what happened.
 */
static void
test_gone(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_prepared p = prepare(a, b, PAYLOAD), q = prepare(a, b, 8), r;

	urn_am_on_failure(a->ep, note_failure, a);
	urn_msg_dev_gone(a->dev);
	(void)urn_am_progress(a->ep);
	assert_int_equal(a->failures, 0); /* nothing was sent */
	memset(p.data, 1, PAYLOAD);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, PAYLOAD, NULL), EIO);
	assert_int_equal(urn_am_request_commit(a->ep, &p, 7, NULL, 0, PAYLOAD, NULL), EINVAL);
	assert_int_equal(urn_am_request_cancel(a->ep, &q), 0);
	assert_int_equal(urn_am_request_prepare(a->ep, &b->address, 8, &r), EIO);
	assert_int_equal(a->ep->pending + a->ep->prepared, 0);
	assert_true(is_empty(&a->ep->out));
}

static int
setup(void **state)
{
	net_attr.wakes = 1;
	net_attr.answer_ms = WAIT_MS / 3; /* no request fails because the machine is busy */
	return net_setup(state);
}

int
main(void)
{
#define OVER(f, way)                                     \
	{                                                \
#f " " #way, f, setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_there_and_back),   BOTH(test_any_order),
		OVER(test_misuse, NULL),     OVER(test_bounds, NULL),
		OVER(test_bytes, NULL),	     BOTH(test_refused),
		BOTH(test_replies),	     OVER(test_parked_reply, NULL),
		OVER(test_lost_reply, NULL), BOTH(test_threads),
		OVER(test_gone, "socket"),   OVER(test_other_endpoint, NULL),
	};

	return cmocka_run_group_tests_name("am_prepare", tests, NULL, NULL);
}
