/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows obey the limit of round trips (delay_limit; doc/inside/recovery.md "Without the switch's
 * help"): fewer packets are in flight while a round trip is longer than the limit, and more again
 * when it is not.
 */
#include "flow_net.h"

#include "common/test_eal.h"
#include "wire/hdr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000ull
#define MS 1000000ull
#define LIMIT (50 * US)
#define SHORT (10 * US) /* delay of a wire whose round trip is below the limit */
#define LONG (100 * US) /* ... is above it, and below that of a way known to be long */

enum {
	MANY = 128, /* messages that are sent at a time, a packet each */
	LEN = 900,
};

/* Node 0 sends to node 1 without end. */
struct stream {
	struct flow_net *n;
	struct flow_sent *s; /* MANY of them */
	uint64_t data;	     /* frames of data that node 0 sent */
};

static void
watch(void *ctx, const struct rte_mbuf *m)
{
	struct stream *t = ctx;

	t->data += rte_pktmbuf_mtod(m, const uint8_t *)[42] == URN_FLOW_DATA;
}

static void
send_one(struct stream *t, unsigned int i)
{
	assert_int_equal(flow_send(t->n, 0, 1, flow_qid(1), LEN, i, &t->s[i]), URN_MSG_PENDING);
}

static void
open_stream(struct stream *t, uint64_t limit, uint64_t delay)
{
	t->n = calloc(1, sizeof(*t->n));
	t->s = calloc(MANY, sizeof(*t->s));
	assert_true(t->n && t->s);
	t->n->delay_limit = limit;
	t->n->delay = delay;
	t->n->watch = watch;
	t->n->watch_ctx = t;
	flow_net_open(t->n, 2, 1);
	for (unsigned int i = 0; i < MANY; i++)
		send_one(t, i);
}

/* Send for a while; every message that is done is followed by another. */
static void
stream(struct stream *t, uint64_t ns)
{
	for (uint64_t end = t->n->now + ns; t->n->now < end;) {
		flow_net_run(t->n, FLOW_NET_STEP);
		for (unsigned int i = 0; i < MANY; i++) {
			if (!t->s[i].answers)
				continue;
			assert_int_equal(t->s[i].code, URN_MSG_DONE);
			flow_sent_free(&t->s[i]);
			send_one(t, i);
		}
		t->n->node[1].got_n = 0;
	}
}

/* Packets in flight on average, while messages are sent on a wire with this delay. */
static unsigned int
in_flight(struct stream *t, uint64_t delay)
{
	t->n->delay = delay;
	stream(t, 20 * MS); /* the window follows */
	t->data = 0;
	stream(t, 20 * MS);
	return (unsigned int)(t->data * 2 * delay / (20 * MS));
}

static void
close_stream(struct stream *t)
{
	for (unsigned int i = 0; i < MANY; i++) {
		flow_net_until(t->n, &t->s[i], 1000 * MS);
		assert_int_equal(t->s[i].code, URN_MSG_DONE);
		flow_sent_free(&t->s[i]);
	}
	assert_int_equal(flow_net_count(t->n, 0, URN_C_FLOW_FAILED), 0);
	flow_net_end(t->n);
	free(t->s);
}

static void
a_long_round_trip_has_fewer_packets(void **state)
{
	struct stream t = {0};
	unsigned int before, above, after;

	(void)state;
	open_stream(&t, LIMIT, SHORT);
	before = in_flight(&t, SHORT);
	above = in_flight(&t, LONG);
	after = in_flight(&t, SHORT);
	close_stream(&t);
	print_message("%u packets in flight, %u above the limit, then %u\n", before, above, after);
	assert_true(before >= 10);
	assert_in_range(above, 0, 2);
	assert_true(after >= 10);
}

/* Without a limit no round trip is too long. */
static void
no_limit_holds_unless_given(void **state)
{
	struct stream t = {0};

	(void)state;
	open_stream(&t, 0, SHORT);
	assert_true(in_flight(&t, SHORT) >= 10);
	assert_true(in_flight(&t, LONG) >= 10);
	close_stream(&t);
}

/* A flow begins with few packets, so that the first ones of many senders make no queue. */
static void
a_flow_begins_with_few(void **state)
{
	struct stream t = {0};

	(void)state;
	open_stream(&t, LIMIT, SHORT);
	flow_net_run(t.n, 2 * SHORT - FLOW_NET_STEP); /* no acknowledgement can have come */
	assert_in_range(t.data, 1, 2);
	close_stream(&t);
	t = (struct stream){0};
	open_stream(&t, 0, SHORT);
	flow_net_run(t.n, 2 * SHORT - FLOW_NET_STEP);
	assert_true(t.data > 2);
	close_stream(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_round_trip_has_fewer_packets),
		cmocka_unit_test(no_limit_holds_unless_given),
		cmocka_unit_test(a_flow_begins_with_few),
	};

	(void)test_eal_pool();
	return cmocka_run_group_tests_name("flow_delay", tests, NULL, NULL);
}
