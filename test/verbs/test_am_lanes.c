/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No peer of an endpoint stops its messages to others (AM-1): targets that do not run, and nodes
 * that do not take their answers. Messages that wait are bounded, are delivered once, and end in
 * time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <endian.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	MANY = 300,	      /* far more than lanes, and than entries of a queue */
	BRISK_MS = 5000,      /* a round trip that waits for nobody, on a busy machine */
	HANG_MS = 300,	      /* longer than lanes try, and than the first pauses */
	ANSWER_MS = 3000,     /* after which requests fail in some tests */
	FIRST = NET_RUDE_ARG, /* number of the first request in its argument */
};

/* An endpoint besides those of the two sides, on node b. */
struct third {
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
	unsigned int requests;
	unsigned int count[MANY]; /* calls by argument */
};

static void
third_open(struct net *n, struct third *t, const struct urn_am_attr *attr)
{
	memset(t, 0, sizeof(*t));
	t->ep = urn_am_endpoint_create(n->side[1].dev, attr);
	if (!t->ep)
		fail_msg("%s", urn_attach_error());
	assert_int_equal(urn_am_address(t->ep, 1, &t->address), 0);
}

/* A handler that counts, and does not reply. */
static void
count(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct third *t = arg;

	(void)ep;
	assert_true(m->arg[0] >= FIRST && m->arg[0] < FIRST + MANY);
	t->count[m->arg[0] - FIRST]++;
	t->requests++;
}

static void
note(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep;
	(void)m;
	++*(unsigned int *)arg;
}

/* Failures of requests. */
struct failures {
	unsigned int full, late, other;
	unsigned int may_be; /* in `full`, too: may be there */
};

static void
note_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	struct failures *n = arg;

	(void)ep;
	if (f->err == EHOSTUNREACH && (f->code & ~URN_MSG_MAY_BE_THERE) == URN_MSG_QUEUE_FULL)
		n->full++;
	else if (f->err == ETIMEDOUT && f->code == 0)
		n->late++;
	else
		n->other++;
	n->may_be += (f->code & URN_MSG_MAY_BE_THERE) != 0;
}

/* Send requests to a target that does not run, as many as are taken: that is `want`. */
static void
fill(struct urn_am_endpoint *ep, const struct urn_am_address *to, const void *data, uint32_t len,
     unsigned int want)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;
	unsigned int taken = 0;

	while (urn_clock_ms() < end) {
		uint64_t arg = FIRST + taken;
		int err = urn_am_request(ep, to, 7, &arg, 1, data, len, NULL);

		assert_true(err == 0 || err == EAGAIN);
		taken += err == 0;
		assert_true(taken <= want);
		if (err == 0 && taken == want)
			end = urn_clock_ms() + HANG_MS;
		(void)urn_am_progress(ep);
		sched_yield();
	}
	assert_int_equal(taken, want);
}

/* Send one request after another to a target that runs. */
static void
talk(struct urn_am_endpoint *ep, struct third *to, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t arg = FIRST + i % MANY, end = urn_clock_ms() + BRISK_MS;
		unsigned int before = urn_am_pending(ep), had = to->requests;

		assert_int_equal(urn_am_request(ep, &to->address, 7, &arg, 1, NULL, 0, NULL), 0);
		while (to->requests == had || urn_am_pending(ep) > before) {
			assert_true(urn_clock_ms() < end);
			(void)urn_am_progress(to->ep);
			(void)urn_am_progress(ep);
			sched_yield();
		}
	}
}

static void
run_until_quiet(struct urn_am_endpoint *a, struct urn_am_endpoint *b)
{
	uint64_t end = urn_clock_ms() + WAIT_MS;

	while (urn_am_pending(a)) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(a);
		(void)urn_am_progress(b);
		sched_yield();
	}
}

/* A target that hangs has at most its part of everything, and requests to another one go on. When
 * it runs again, each request is delivered once. */
static void
test_target_hangs(void **state)
{
	struct urn_am_attr attr = {.payload = 64, .queue = 64, .requests = 512, .answer_ms = 60000};
	struct failures failed = {0};
	struct net *n = *state;
	struct third a, hung, other;
	struct urn_am_stats stats;
	unsigned int taken = attr.requests / 2;

	third_open(n, &a, &attr);
	third_open(n, &hung, &attr);
	third_open(n, &other, &attr);
	urn_am_on_failure(a.ep, note_failure, &failed);
	urn_am_handle(hung.ep, 7, count, &hung);
	urn_am_handle(other.ep, 7, count, &other);
	fill(a.ep, &hung.address, NULL, 0, taken);
	urn_am_get_stats(a.ep, &stats);
	assert_true(stats.parked >= taken - attr.queue);
	assert_true(a.ep->out.parked + a.ep->out.busy == taken - attr.queue);
	talk(a.ep, &other, MANY);
	assert_int_equal(hung.requests, 0);
	run_until_quiet(a.ep, hung.ep);
	assert_int_equal(hung.requests, taken);
	for (unsigned int i = 0; i < taken; i++)
		assert_int_equal(hung.count[i], 1);
	assert_int_equal(failed.full + failed.late + failed.other, 0);
	(void)urn_am_progress(a.ep);
	assert_true(a.ep->out.parked == 0 && a.ep->out.bytes == 0);
	urn_am_endpoint_destroy(a.ep);
	urn_am_endpoint_destroy(hung.ep);
	urn_am_endpoint_destroy(other.ep);
}

/* Several targets that hang leave room for one more. */
static void
test_targets_hang(void **state)
{
	struct urn_am_attr attr = {.payload = 64, .queue = 1, .requests = 64, .answer_ms = 60000};
	struct net *n = *state;
	struct third a, hung[4], other;

	third_open(n, &a, &attr);
	third_open(n, &other, &attr);
	urn_am_handle(other.ep, 7, count, &other);
	for (unsigned int i = 0; i < 4; i++) {
		third_open(n, &hung[i], &attr);
		fill(a.ep, &hung[i].address, NULL, 0, 32 >> i);
	}
	talk(a.ep, &other, MANY);
	for (unsigned int i = 0; i < 4; i++)
		urn_am_endpoint_destroy(hung[i].ep);
	urn_am_endpoint_destroy(a.ep);
	urn_am_endpoint_destroy(other.ep);
}

/* A parked request fails in time, with the code of its refusal, and is never delivered. */
static void
test_parked_ends(void **state)
{
	struct urn_am_attr attr = {
		.payload = 64, .queue = 4, .requests = 32, .answer_ms = ANSWER_MS};
	struct failures failed = {0};
	struct net *n = *state;
	struct third a, hung;
	unsigned int taken = attr.requests / 2;
	uint64_t start = urn_clock_ms();

	third_open(n, &a, &attr);
	third_open(n, &hung, &attr);
	urn_am_on_failure(a.ep, note_failure, &failed);
	urn_am_handle(hung.ep, 7, count, &hung);
	fill(a.ep, &hung.address, NULL, 0, taken);
	while (urn_am_pending(a.ep)) {
		assert_true(urn_clock_ms() - start < WAIT_MS);
		(void)urn_am_progress(a.ep);
		sched_yield();
	}
	assert_true(urn_clock_ms() - start >= ANSWER_MS);
	assert_int_equal(failed.late, attr.queue);
	assert_int_equal(failed.full, taken - attr.queue);
	assert_int_equal(failed.other, 0);
	assert_int_equal(a.ep->out.parked, 0);
	for (uint64_t end = urn_clock_ms() + HANG_MS; urn_clock_ms() < end; sched_yield()) {
		(void)urn_am_progress(hung.ep);
		(void)urn_am_progress(a.ep);
	}
	/* A try may be on its way at the very end. */
	assert_true(hung.requests >= 4 && hung.requests <= failed.late + failed.may_be);
	assert_true(a.ep->out.busy == 0 && a.ep->out.bytes == 0);
	assert_int_equal(a.ep->out.idle_n[0], URN_AM_OUT_LANES);
	urn_am_endpoint_destroy(a.ep);
	urn_am_endpoint_destroy(hung.ep);
}

/* Bytes that the program has from the C library. */
static size_t
allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

enum { LONG = (1 << 20) - 96 };

/* Let long messages wait, and let their endpoint go. */
static void
park_long(struct net *n, struct third *other, const uint8_t *data)
{
	struct urn_am_attr attr = {.payload = LONG, .queue = 1, .requests = 4, .answer_ms = 60000};
	struct third a, hung;

	third_open(n, &hung, &attr);
	attr.requests = 16;
	third_open(n, &a, &attr);
	assert_true(a.ep->out.room <= 9u << 20);
	/* One is there; half of the room, 4 MiB, waits. */
	fill(a.ep, &hung.address, data, LONG, 5);
	assert_true(a.ep->out.bytes <= a.ep->out.room / 2 && a.ep->out.parked >= 2);
	talk(a.ep, other, MANY);
	urn_am_endpoint_destroy(a.ep);
	urn_am_endpoint_destroy(hung.ep);
}

/* Long messages that wait have a bound that the making says, and go with their endpoint. Short
 * ones to others go on. */
static void
test_long_parked(void **state)
{
	struct urn_am_attr small = {.payload = 64, .queue = 16, .requests = 4};
	uint8_t *data = calloc(1, LONG);
	struct net *n = *state;
	struct third other;
	size_t before;

	assert_non_null(data);
	third_open(n, &other, &small);
	urn_am_handle(other.ep, 7, count, &other);
	park_long(n, &other, data); /* the dataplane keeps some memory, too */
	before = allocated();
	park_long(n, &other, data);
	assert_true(allocated() < before + (1u << 20));
	urn_am_endpoint_destroy(other.ep);
	free(data);
}

/* ---- answers */

/* A handler that replies with as many bytes as fit. */
static void
reply_long(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	static uint8_t data[PAYLOAD];
	struct third *t = arg;

	t->requests++;
	assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, data, ep->attr.payload), 0);
}

/* A node that takes no answers has its requests dropped, and others are served at once. Memory for
 * its answers has a bound, and is free some time later. */
static void
test_requester_hangs(void **state)
{
	struct urn_am_attr attr = {.payload = 2000, .queue = 64, .requests = 64};
	struct urn_msg_attr set = {.send_size = 64, .recv_size = 64, .entries = 1};
	struct net *n = *state;
	struct third server, honest;
	struct urn_am_stats stats;
	struct net_rude rude = {0};
	unsigned int replies = 0;
	uint64_t most = 0, end;

	third_open(n, &server, &attr);
	third_open(n, &honest, &attr);
	set.recv_size = 4096;
	rude.set = urn_msg_set_create(n->side[0].dev, &set);
	assert_non_null(rude.set);
	urn_am_handle(server.ep, 7, reply_long, &server);
	urn_am_handle(honest.ep, 1, note, &replies);
	for (unsigned int i = 0; i < MANY; i++) {
		uint64_t start = urn_clock_ms();

		assert_int_equal(
			urn_am_request(honest.ep, &server.address, 7, NULL, 0, NULL, 0, NULL), 0);
		while (replies == i) {
			assert_true(urn_clock_ms() - start < BRISK_MS);
			net_ask_rudely(&rude, &server.address, urn_msg_set_qid(rude.set));
			(void)urn_am_progress(server.ep);
			(void)urn_am_progress(honest.ep);
			sched_yield();
		}
		most = server.ep->back.bytes > most ? server.ep->back.bytes : most;
	}
	assert_true(most <= server.ep->back.room);
	end = urn_clock_ms() + WAIT_MS;
	do {
		net_ask_rudely(&rude, &server.address, urn_msg_set_qid(rude.set));
		(void)urn_am_progress(server.ep);
		urn_am_get_stats(server.ep, &stats);
		assert_true(urn_clock_ms() < end);
		sched_yield();
	} while (stats.dropped_requests == 0);
	while (server.ep->back.parked + server.ep->back.busy) {
		(void)urn_am_progress(server.ep);
		assert_true(urn_clock_ms() < end);
		sched_yield();
	}
	urn_am_get_stats(server.ep, &stats);
	assert_true(stats.lost_replies > 0);
	assert_int_equal(server.ep->back.bytes, 0);
	assert_int_equal(server.ep->back.idle_n[0], URN_AM_BACK_LANES);
	urn_msg_set_destroy(rude.set);
	urn_am_endpoint_destroy(server.ep);
	urn_am_endpoint_destroy(honest.ep);
}

/* Requests of a node whose answers have no room for now stay in the queue, and others behind them
 * are taken. When there is room they are taken, too, once; a node that is silent for long has them
 * dropped. */
static void
test_requests_wait(void **state)
{
	struct urn_am_attr attr = {.payload = 64, .queue = 64, .requests = 64};
	struct net *n = *state;
	struct urn_am_outbox *box;
	struct urn_am_stats stats;
	struct third server, other;
	struct urn_am_peer *p;
	struct side *a = &n->side[0];

	third_open(n, &server, &attr);
	third_open(n, &other, &attr);
	urn_am_handle(server.ep, 7, count, &server);
	box = &server.ep->back;
	p = net_node_of(box, a->address.node);
	for (unsigned int round = 0; round < 3; round++) {
		unsigned int taken = server.requests;
		uint64_t arg = FIRST + 200 + round;

		while (box->busy != 0)
			(void)urn_am_progress(server.ep);
		p->lanes[0] += URN_AM_BACK_MOST;
		box->bytes += box->room / 2 + box->room / 4;
		p->bytes += box->room / 4;
		p->since = round < 2 ? urn_clock_ns() + UINT64_C(60000000000) : 0;
		assert_int_equal(urn_am_request(a->ep, &server.address, 7, &arg, 1, NULL, 0, NULL),
				 0);
		while (urn_msg_set_waiting(&server.ep->requests) == 0)
			sched_yield();
		talk(other.ep, &server, 40);
		assert_int_equal(server.requests, taken + 40);
		assert_int_equal(server.count[200 + round], 0);
		p->lanes[0] -= URN_AM_BACK_MOST;
		box->bytes -= box->room / 2 + box->room / 4;
		p->bytes -= box->room / 4;
		if (round == 2)
			break;
		run_until_quiet(a->ep, server.ep);
		assert_int_equal(server.requests, taken + 41);
		assert_int_equal(server.count[200 + round], 1);
		assert_int_equal(server.ep->taken_n, 0);
	}
	urn_am_get_stats(server.ep, &stats);
	assert_int_equal(stats.dropped_requests, 1);
	urn_am_endpoint_destroy(server.ep);
	urn_am_endpoint_destroy(other.ep);
}

/* Messages that came to the queue of an endpoint's answers. */
static uint32_t
answers_came(const struct urn_am_endpoint *ep)
{
	return atomic_load(&ep->replies.regs->rstat.tail);
}

/* Ask n times, and let the target look once. */
static void
ask_many(struct third *a, struct third *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint64_t arg = FIRST + i;

		while (urn_am_request(a->ep, &b->address, 7, &arg, 1, NULL, 0, NULL) == EAGAIN)
			(void)urn_am_progress(a->ep);
	}
	for (uint64_t end = urn_clock_ms() + WAIT_MS; urn_msg_set_waiting(&b->ep->requests) < n;) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(a->ep);
		sched_yield();
	}
	(void)urn_am_progress(b->ep);
}

/* Answers to one requester share a message. Where the program was not run for a while, answers leave
 * before the others: then the test tries again. */
static void
test_answers_share(void **state)
{
	struct urn_am_attr attr = {.payload = 8, .queue = 64, .requests = 64};
	struct net *n = *state;
	unsigned int came = 0;
	struct third a, b;

	for (unsigned int i = 0; i < 100 && came != 1; i++) {
		third_open(n, &a, &attr);
		third_open(n, &b, &attr);
		urn_am_handle(b.ep, 7, count, &b);
		ask_many(&a, &b, 30);
		run_until_quiet(a.ep, b.ep);
		assert_int_equal(b.requests, 30);
		came = (unsigned int)answers_came(a.ep);
		urn_am_endpoint_destroy(a.ep);
		urn_am_endpoint_destroy(b.ep);
	}
	assert_int_equal(came, 1);
}

/* A handler that takes its time, and lets the requester look. */
struct slow {
	struct urn_am_endpoint *asker;
	unsigned int requests;
	uint32_t left; /* requests without an answer when the last handler ran */
};

static void
work(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct slow *s = arg;

	(void)ep;
	(void)m;
	nanosleep(&ms, NULL);
	(void)urn_am_progress(s->asker);
	s->requests++;
	s->left = urn_am_pending(s->asker);
}

/* Answers do not wait for many slow handlers. Where the dataplane was not run for a while, they
 * wait for that: then once more. */
static void
test_slow_handlers(void **state)
{
	struct urn_am_attr attr = {.payload = 8, .queue = 64, .requests = 64};
	struct slow slow = {.left = UINT32_MAX};
	struct net *n = *state;
	struct third a, b;

	for (unsigned int i = 0; i < 100 && slow.left > 10; i++) { /* some may be on their way */
		slow = (struct slow){0};
		third_open(n, &a, &attr);
		third_open(n, &b, &attr);
		slow.asker = a.ep;
		urn_am_handle(b.ep, 7, work, &slow);
		ask_many(&a, &b, 30);
		assert_int_equal(slow.requests, 30);
		run_until_quiet(a.ep, b.ep);
		urn_am_endpoint_destroy(a.ep);
		urn_am_endpoint_destroy(b.ep);
	}
	assert_true(slow.left <= 10);
}

/* Messages that say that they have answers, and make no sense, are counted. */
static void
test_strange_shares(void **state)
{
	static const struct {
		uint32_t answers;
		uint32_t len;	/* bytes that the first answer has by its record */
		uint8_t kind;	/* the first answer's */
		uint32_t bytes; /* the message's */
	} bad[] = {
		{1, 24, URN_AM_M_SHARED, 56},  {1, 24, URN_AM_M_REQUEST, 56},
		{2, 24, URN_AM_M_HANDLED, 56}, {1, 25, URN_AM_M_HANDLED, 56},
		{1, 23, URN_AM_M_HANDLED, 56}, {1, UINT32_MAX, URN_AM_M_HANDLED, 56},
		{1, 24, URN_AM_M_HANDLED, 31}, {32, 24, URN_AM_M_HANDLED, 56},
		{1, 24, URN_AM_M_HANDLED, 24},
	};
	struct urn_msg_attr attr = {.send_size = 64};
	struct net *n = *state;
	struct side *a = &n->side[0];
	struct urn_register_set *set = urn_msg_set_create(n->side[1].dev, &attr);
	struct urn_msg_to to = {.qid = a->ep->replies.qid};
	struct urn_am_stats stats;
	uint8_t code;

	assert_non_null(set);
	memcpy(to.node, a->address.node, sizeof(to.node));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct {
			struct urn_am_head head;
			struct urn_am_record record;
			struct urn_am_head answer;
		} m = {.head = {.magic = URN_AM_MAGIC,
				.kind = URN_AM_M_SHARED,
				.handler = htobe32(bad[i].answers),
				.number = 1},
		       .record = {.len = htobe32(bad[i].len)},
		       .answer = {.magic = URN_AM_MAGIC, .kind = bad[i].kind, .number = 1}};

		assert_int_equal(urn_msg_set_send_wait(set, &to, &m, bad[i].bytes, -1, &code), 0);
		assert_int_equal(code, URN_MSG_DONE);
		(void)urn_am_progress(a->ep);
		urn_am_get_stats(a->ep, &stats);
		assert_int_equal(stats.malformed, i + 1);
	}
	urn_msg_set_destroy(set);
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
		BOTH(test_target_hangs),	 OVER(test_targets_hang, NULL),
		OVER(test_parked_ends, NULL),	 BOTH(test_long_parked),
		BOTH(test_requester_hangs),	 OVER(test_requests_wait, NULL),
		OVER(test_answers_share, NULL),	 OVER(test_slow_handlers, NULL),
		OVER(test_strange_shares, NULL),
	};

	return cmocka_run_group_tests_name("am_lanes", tests, NULL, NULL);
}
