/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of one request of an endpoint to others: a prepared one does not hold up those that are
 * parked, the number of a request tells nothing of the next one's, and a reply that its requester
 * can't take is no silence (AM-1).
 */
#include "am_net.h"

#include "abi/clock.h"
#include "am/endpoint.h"

#include <errno.h>
#include <string.h>

enum { MANY = 20, NUMBERS = 3 * URN_AM_DRAWN };

static void
count(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	(void)ep;
	(void)m;
	s->requests++;
}

/* Requests that a target refused follow when it takes some, also while one is prepared for it. */
static void
test_held(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_attr attr = {.payload = 64, .requests = 128};
	struct urn_am_endpoint *ep = urn_am_endpoint_create(a->dev, &attr);
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_prepared held, more;

	assert_non_null(ep);
	urn_am_handle(b->ep, 7, count, b);
	for (unsigned int i = 0; i < MANY; i++) /* more than the target's queue of 8 holds */
		assert_int_equal(urn_am_request(ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(urn_am_request_prepare(ep, &b->address, 64, &held), 0);
	while (ep->out.parked == 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
	}
	while (urn_am_pending(ep) != 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
		(void)urn_am_progress(b->ep);
	}
	assert_int_equal(b->requests, MANY);
	assert_int_equal(urn_am_request_prepare(ep, &b->address, 64, &more), 0);
	assert_int_equal(urn_am_request_cancel(ep, &more), 0);
	assert_int_equal(urn_am_request_cancel(ep, &held), 0);
	urn_am_endpoint_destroy(ep);
}

/* The part of a number that nobody can guess. */
static uint32_t
random_of(uint64_t number)
{
	return (uint32_t)(number >> URN_AM_SLOT_BITS);
}

/* A target that sees the numbers of requests to it does not know those to others: each is drawn, and
 * none comes twice. */
static void
test_numbers(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	uint64_t number[NUMBERS];
	unsigned int steps = 0;

	urn_am_handle(b->ep, 7, count, b);
	for (unsigned int i = 0; i < NUMBERS; i++) {
		assert_int_equal(
			urn_am_request(a->ep, &b->address, 7, NULL, 0, NULL, 0, &number[i]), 0);
		net_until_quiet(n, a);
		for (unsigned int j = 0; j < i; j++)
			assert_true(number[i] != number[j]);
	}
	for (unsigned int i = 2; i < NUMBERS; i++)
		steps += random_of(number[i]) - random_of(number[i - 1]) ==
			 random_of(number[i - 1]) - random_of(number[i - 2]);
	assert_true(steps <= 2); /* by chance one in 2^32 */
}

/* ---- replies that their requester can't take */

static void
answer_long(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	static const uint8_t data[8000];
	struct side *s = arg;

	s->requests++;
	assert_int_equal(urn_am_reply(ep, m->token, 1, NULL, 0, data, sizeof(data)), 0);
}

static void
failed(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	struct side *s = arg;

	(void)ep;
	s->failures++;
	s->failure = *f;
}

/* A requester learns at once that its reply is longer than it takes, and goes on (AM-1). */
static void
test_long_reply(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_attr attr = {.payload = 64};
	struct urn_am_endpoint *ep = urn_am_endpoint_create(a->dev, &attr);
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct urn_am_stats stats;

	assert_non_null(ep);
	urn_am_on_failure(ep, failed, a);
	urn_am_handle(b->ep, 7, answer_long, b);
	urn_am_handle(b->ep, 8, count, b);
	assert_int_equal(urn_am_request(ep, &b->address, 7, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(urn_am_request(ep, &b->address, 8, NULL, 0, NULL, 0, NULL), 0);
	while (urn_am_pending(ep) != 0) {
		assert_true(urn_clock_ms() < end);
		(void)urn_am_progress(ep);
		(void)urn_am_progress(b->ep);
	}
	assert_int_equal(b->requests, 2);
	assert_int_equal(a->failures, 1);
	assert_int_equal(a->failure.err, EMSGSIZE);
	assert_non_null(strstr(a->failure.text, "longer than payloads of this endpoint"));
	urn_am_get_stats(b->ep, &stats);
	assert_int_equal(stats.lost_replies, 1);
	urn_am_endpoint_destroy(ep);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, net_setup, net_teardown)
	const struct CMUnitTest tests[] = {TEST(test_held), TEST(test_numbers), TEST(test_long_reply)};

	return cmocka_run_group_tests_name("am_fair", tests, NULL, NULL);
}
