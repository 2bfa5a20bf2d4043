/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stray answers, which no request waits for (AM-1): they change nothing, and both sides learn which
 * they were. Two nodes, whose engines another thread turns.
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Reply to handler 1. */
static void
echo(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, NULL, 0), 0);
}

static void
note(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	(void)ep;
	*(m->token ? &s->requests : &s->replies) += 1;
}

/* Send a forged reply for handler 1, from the node of a side, to a queue of answers. number: of the
 * request that it names; note_to: queue of answers that it says it is from; 0: none. returns: enum
 * urn_msg_code */
static uint8_t
forge_reply(struct side *s, uint64_t number, const uint8_t node[16], uint64_t queue,
	    uint64_t note_to)
{
	struct urn_msg_attr attr = {.send_size = 64};
	struct urn_register_set *set = urn_msg_set_create(s->dev, &attr);
	struct urn_msg_to to = {.qid = queue};
	uint8_t msg[24] = {0xa3, 2, 0, 0, 0, 0, 0, 1}, code;

	assert_non_null(set);
	for (unsigned int i = 0; i < 8; i++) {
		msg[8 + i] = (uint8_t)(number >> (56 - 8 * i));
		msg[16 + i] = (uint8_t)(note_to >> (56 - 8 * i));
	}
	memcpy(to.node, node, 16);
	assert_int_equal(urn_msg_set_send_wait(set, &to, msg, sizeof(msg), -1, &code), 0);
	urn_msg_set_destroy(set);
	return code;
}

/* The last stray answer of a side names a reply for handler 1, and the node of the other side. */
static void
expect_stray(const struct side *s, enum urn_am_stray_side side, uint64_t count,
	     const struct side *other, uint64_t number, const char *says)
{
	struct urn_am_stray stray;
	char text[64];

	assert_int_equal(urn_am_last_stray(s->ep, side, &stray), 0);
	assert_int_equal(stray.count, count);
	assert_true(stray.number == number && stray.handler == 1 && stray.queue != 0);
	assert_memory_equal(stray.node, other->address.node, 16);
	snprintf(text, sizeof(text), "request 0x%llx, for handler 1", (unsigned long long)number);
	assert_non_null(strstr(stray.text, text));
	assert_non_null(strstr(stray.text, says));
}

/* AM-1: an answer counts only from the node that was asked, though it names the request and the
 * queue. */
static void
test_forged_reply(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_stats stats;
	struct urn_am_stray s;
	uint64_t number;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, &number), 0);
	assert_int_equal(forge_reply(a, number, a->address.node, a->ep->replies.qid, 0),
			 URN_MSG_DONE);
	while (urn_am_get_stats(a->ep, &stats), stats.stray_replies == 0)
		(void)urn_am_progress(a->ep);
	assert_int_equal(a->replies, 0);
	assert_int_equal(urn_am_pending(a->ep), 1);
	expect_stray(a, URN_AM_STRAY_CAME, 1, a, number, "which went to node ");
	net_until(n, &a->replies, 1);
	net_until_quiet(n, a);
	assert_int_equal(urn_am_last_stray(b->ep, URN_AM_STRAY_SENT, &s), ENOENT);
}

/* AM-1: a reply that nobody asked for is an error that says which, at its receiver and, when the
 * reply says who answers, at its sender; at once for the first one of 100 ms. */
static void
test_stray_reply(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_stray s;
	struct urn_am_stats stats;
	uint64_t end = urn_clock_ms() + WAIT_MS;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);
	assert_int_equal(urn_am_last_stray(a->ep, URN_AM_STRAY_CAME, &s), ENOENT);
	assert_int_equal(urn_am_last_stray(a->ep, (enum urn_am_stray_side)2, &s), EINVAL);
	/* Program b answers what a never asked. */
	assert_int_equal(forge_reply(b, 0x1234567890, a->address.node, a->ep->replies.qid,
				     b->ep->replies.qid),
			 URN_MSG_DONE);
	while (urn_am_last_stray(b->ep, URN_AM_STRAY_SENT, &s) == ENOENT) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(a->ep);
		(void)urn_am_progress(b->ep);
	}
	expect_stray(a, URN_AM_STRAY_CAME, 1, b, 0x1234567890, "which waits for no answer");
	expect_stray(b, URN_AM_STRAY_SENT, 1, a, 0x1234567890, "says that no request waited");
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.stray_replies, 1);
	/* Nobody answers a note, and nothing else came of it. */
	assert_int_equal(urn_am_last_stray(a->ep, URN_AM_STRAY_SENT, &s), ENOENT);
	assert_int_equal(urn_am_last_stray(b->ep, URN_AM_STRAY_CAME, &s), ENOENT);
	assert_int_equal(a->replies + b->replies + a->failures + b->failures, 0);
	/* Within 100 ms no second note leaves. */
	a->ep->note_at = UINT64_MAX;
	assert_int_equal(
		forge_reply(b, 77, a->address.node, a->ep->replies.qid, b->ep->replies.qid),
		URN_MSG_DONE);
	while (urn_am_last_stray(a->ep, URN_AM_STRAY_CAME, &s), s.count < 2)
		(void)urn_am_progress(a->ep);
	assert_int_equal(a->ep->back.busy, 0);
	assert_int_equal(urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until(n, &a->replies, 1);
	expect_stray(b, URN_AM_STRAY_SENT, 1, a, 0x1234567890, "says that no request waited");
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.lost_replies, 0);
}

/* Let side s look until it has seen so many stray answers, and its lanes for answers are idle. */
static void
until_stray(const struct side *s, enum urn_am_stray_side side, uint64_t count)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stray stray;

	do {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(s->ep);
		(void)urn_am_last_stray(s->ep, side, &stray);
	} while (stray.count < count || s->ep->back.busy != 0);
	assert_int_equal(stray.count, count);
}

/* A note that its receiver does not take, because there is no such queue, or because the queue is
 * full, is tried once, and forgotten. */
static void
test_note_is_lost(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_stats stats;

	(void)forge_reply(b, 5, a->address.node, a->ep->replies.qid,
			  b->ep->replies.qid ^ 1ull << 40);
	until_stray(a, URN_AM_STRAY_CAME, 1);
	while (forge_reply(a, 6, b->address.node, b->ep->replies.qid, 0) == URN_MSG_DONE)
		;
	a->ep->note_at = 0;
	(void)forge_reply(b, 7, a->address.node, a->ep->replies.qid, b->ep->replies.qid);
	until_stray(a, URN_AM_STRAY_CAME, 2);
	assert_int_not_equal(a->ep->note_at, 0);
	urn_am_get_stats(a->ep, &stats);
	assert_int_equal(stats.lost_replies + stats.parked, 0);
	urn_am_handle(a->ep, 7, echo, a);
	urn_am_handle(b->ep, 1, note, b);
	assert_int_equal(urn_am_request(b->ep, &a->address, 7, NULL, 0, NULL, 0, NULL), 0);
	net_until(n, &b->replies, 1);
}

/* Reply with a payload that was made in place. */
static void
reply_in_place(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct urn_am_prepared p;

	(void)arg;
	assert_int_equal(urn_am_reply_prepare(ep, m->token, 8, &p), 0);
	memset(p.data, 0, 8);
	assert_int_equal(urn_am_reply_commit(ep, &p, 1, NULL, 0, 8), 0);
}

/* AM-1: the sender of an answer that comes too late learns that, whichever way it answers. */
static void
test_late_answers(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t number;

	urn_am_handle(a->ep, 1, note, a);
	urn_am_handle(b->ep, 7, echo, b);	    /* by urn_am_reply() */
	urn_am_handle(b->ep, 8, reply_in_place, b); /* in place */
	urn_am_handle(b->ep, 9, note, b);	    /* by the library; 10 is unknown */
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(
			urn_am_request(a->ep, &b->address, 7 + i, NULL, 0, NULL, 0, &number), 0);
		while (a->ep->out.busy != 0) /* the request is there */
			(void)urn_am_progress(a->ep);
		assert_non_null(urn_am_find_asked(a->ep, number));
		urn_am_unask(a->ep, urn_am_find_asked(a->ep, number));
		a->ep->note_at = 0;
		(void)urn_am_progress(b->ep);
		until_stray(a, URN_AM_STRAY_CAME, i + 1);
		until_stray(b, URN_AM_STRAY_SENT, i + 1);
	}
	assert_int_equal(a->replies, 0);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {
		BOTH(test_forged_reply),
		BOTH(test_stray_reply),
		BOTH(test_note_is_lost),
		BOTH(test_late_answers),
	};

	net_attr.answer_ms = WAIT_MS / 3; /* a stalled machine makes no request fail */
	return cmocka_run_group_tests_name("am_stray", tests, NULL, NULL);
}
