/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: a request for a service whose listener ended a moment ago waits for the
 * next one (cm_held.c). */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Bounds of doc/reference/cm.md. */
enum { OF_SERVICE = 8, OF_ALL = 32, OF_OWNER = 4 };
#define HOLD (500 * MS)
#define LEFT (2 * SECOND)

/* A listener comes, and ends. */
static void
ends(struct urn_cm_owner *o, uint64_t service)
{
	struct urn_abi_cm_listen p = {.service_id = service, .channel_fd = 0x5a};
	uint32_t id = 0;

	assert_int_equal(urn_cm_listen(b.cm, o, &p, &id), 0);
	assert_int_equal(urn_cm_release(b.cm, o, id, b.now), 0);
	quiet();
}

/* Request number n of the peer. */
static struct urn_cm_msg
request(uint64_t service, uint32_t n)
{
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

	m.service_id = service;
	m.local_id += n;
	m.qpn += n;
	return m;
}

/* True when request n waits; else it is refused at once. */
static bool
waits(uint64_t service, uint32_t n)
{
	struct urn_cm_msg m = request(service, n);

	if (input(&m) == URN_C_CM_RX) {
		quiet();
		return true;
	}
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_SERVICE_ID);
	return false;
}

/* The program listens anew: the request comes to the new listener, once, with all that it says. */
static void
test_taken(void **state)
{
	struct urn_cm_msg m = request(SERVICE, 0);
	struct urn_abi_cm_accept a = an_accept();
	struct urn_abi_cm_event ev;
	uint32_t l;

	(void)state;
	ends(&b.o, SERVICE);
	pass(LEFT - 1);
	expect_in(&m, CM_RX);
	pass(200 * MS);
	expect_in(&m, CM_DUPLICATE);
	pass(299 * MS);
	quiet();
	l = to_listen(0);
	pass(0);
	ev = told(URN_CM_EVENT_REQUEST);
	assert_int_equal(ev.listen_id, l);
	assert_int_equal(ev.qpn, PEER_QPN);
	expect_data(ev.data, URN_CM_REQ_DATA, URN_CM_REQ);
	assert_int_equal(urn_cm_accept(b.cm, &b.o, ev.id, &a, b.now), 0);
	assert_int_equal(said(URN_CM_REP).remote_id, PEER_ID);
	m = from_peer(URN_CM_RTU, ev.id);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_ESTABLISHED);
	pass(HOLD);
	quiet();
	assert_int_equal(counter(URN_C_CM_NO_SERVICE), 0);
}

/* Nobody listens anew: a refusal comes after half a second, and two seconds after the listener's
 * end at once. */
static void
test_refused(void **state)
{
	struct urn_cm_msg r;

	(void)state;
	assert_false(waits(SERVICE, 0));
	ends(&b.o, SERVICE);
	assert_false(waits(SERVICE + 1, 1));
	pass(300 * MS);
	assert_true(waits(SERVICE, 2));
	pass(HOLD - 1);
	quiet();
	pass(1);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(b.said.remote_id, PEER_ID + 2);
	assert_int_equal(counter(URN_C_CM_NO_SERVICE), 1);
	pass(LEFT - 300 * MS - HOLD);
	assert_false(waits(SERVICE, 3));
	/* A look-up, which its peer repeats soon, does not wait. */
	ends(&b.o, SERVICE);
	r = from_peer(URN_CM_SIDR_REQ, 0);
	expect_in(&r, CM_NO_SERVICE);
	said(URN_CM_SIDR_REP);
}

/* A peer that waits for an answer for a short time is refused before the time is over. */
static void
test_impatient(void **state)
{
	struct urn_cm_msg m = request(SERVICE, 0);

	(void)state;
	ends(&b.o, SERVICE);
	m.remote_timeout = 8; /* 4.096 us << 8 */
	m.max_retries = 0;
	expect_in(&m, CM_RX);
	pass((4096 << 8) / 2 - 1);
	quiet();
	pass(1);
	said(URN_CM_REJ);
	m.max_retries = 3;
	expect_in(&m, CM_RX);
	pass((4096 << 8) * 2 - 1);
	quiet();
	pass(1);
	said(URN_CM_REJ);
}

/* The peer takes its request back: no listener gets it, and nobody answers. */
static void
test_withdrawn(void **state)
{
	struct urn_cm_msg m = from_peer(URN_CM_REJ, 0);

	(void)state;
	ends(&b.o, SERVICE);
	assert_true(waits(SERVICE, 0));
	m.reason = URN_CM_REJ_TIMEOUT;
	m.local_id++;
	expect_in(&m, CM_UNKNOWN);
	m.local_id--;
	b.peer[15] ^= 1; /* another peer's name for another request */
	expect_in(&m, CM_UNKNOWN);
	b.peer[15] ^= 1;
	expect_in(&m, CM_RX);
	to_listen(0);
	pass(HOLD);
	quiet();
}

/* The next listener ends as well before it gets the request, which waits for the one after it. */
static void
test_ends_again(void **state)
{
	(void)state;
	ends(&b.o, SERVICE);
	pass(400 * MS);
	assert_true(waits(SERVICE, 0));
	ends(&b.o, SERVICE);
	pass(HOLD - 1);
	quiet();
	to_listen(0);
	pass(0);
	told(URN_CM_EVENT_REQUEST);
}

/* A repeat comes when the program listens anew, before the request that waited has gone on: the
 * listener gets one of them. */
static void
test_overtaken(void **state)
{
	struct urn_cm_msg m = request(SERVICE, 0);

	(void)state;
	ends(&b.o, SERVICE);
	assert_true(waits(SERVICE, 0));
	to_listen(0);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REQUEST);
	pass(HOLD);
	quiet();
	assert_int_equal(counter(URN_C_CM_STALE), 0);
}

/* The next listener's backlog holds for requests that waited; the peer repeats those beyond it. */
static void
test_backlog(void **state)
{
	struct urn_cm_msg m;

	(void)state;
	ends(&b.o, SERVICE);
	for (uint32_t n = 0; n < 3; n++)
		assert_true(waits(SERVICE, n));
	to_listen(2);
	pass(0);
	assert_int_equal(b.told, 2);
	assert_int_equal(b.sent, 0);
	assert_int_equal(counter(URN_C_DROP_CM_BACKLOG), 1);
	b.told = 0;
	/* None of them waits any more. */
	for (uint32_t n = 0; n < 2; n++) {
		m = request(SERVICE, n);
		expect_in(&m, CM_DUPLICATE);
		said(URN_CM_MRA);
	}
}

/* A program that ends listens no more: its peers are told at once. */
static void
test_owner_goes(void **state)
{
	static struct urn_cm_owner other;
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .channel_fd = 0x5a};
	uint32_t id;

	(void)state;
	urn_cm_owner_init(&other, 0, &b);
	assert_int_equal(urn_cm_listen(b.cm, &other, &p, &id), 0);
	assert_false(urn_cm_owner_goes(b.cm, &other, b.now));
	assert_false(waits(SERVICE, 0));
	/* So are those of a program that ends its listener, and then goes; others' still wait. */
	urn_cm_owner_init(&other, 0, &b);
	ends(&other, SERVICE);
	ends(&b.o, SERVICE + 1);
	assert_true(waits(SERVICE, 1));
	urn_cm_owner_deaf(&other);
	assert_false(urn_cm_owner_goes(b.cm, &other, b.now));
	assert_false(waits(SERVICE, 2));
	assert_true(waits(SERVICE + 1, 3));
	pass(HOLD);
	assert_int_equal(b.sent, 2);
	b.sent = 0;
}

/* Listeners of session layers take none of a program's places: their look-ups do not wait. */
static void
test_sessions(void **state)
{
	uint64_t service = urn_cm_session_service(OUR_QPN);

	(void)state;
	for (uint32_t n = 0; n < 2 * OF_OWNER; n++)
		ends(&b.o, service + n);
	ends(&b.o, SERVICE);
	assert_false(waits(service, 0));
	assert_true(waits(SERVICE, 1));
	pass(HOLD);
	said(URN_CM_REJ);
}

/* Requests beyond those of one service, and beyond all places, are refused as ever; and so after
 * the places were used. */
static void
test_peers_bounds(void **state)
{
	static struct urn_cm_owner more[OF_ALL / OF_SERVICE + 1];

	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		uint32_t all = 0;

		for (uint32_t s = 0; s < RTE_DIM(more); s++) {
			urn_cm_owner_init(&more[s], 0, &b);
			ends(&more[s], SERVICE + s);
		}
		for (uint32_t n = 0; n < 2 * OF_SERVICE; n++)
			assert_int_equal(waits(SERVICE, n), n < OF_SERVICE);
		for (uint32_t n = 0; n < RTE_DIM(more) * OF_SERVICE; n++)
			all += waits(SERVICE + 1 + n / OF_SERVICE % (RTE_DIM(more) - 1), 100 + n);
		assert_int_equal(all, OF_ALL - OF_SERVICE);
		pass(LEFT);
		assert_int_equal(b.sent, OF_ALL);
		b.sent = 0;
	}
}

/* A program that ends many listeners is remembered for few of them, and others are remembered
 * beside it. */
static void
test_owners_bounds(void **state)
{
	static struct urn_cm_owner greedy;
	uint32_t all = 0;

	(void)state;
	urn_cm_owner_init(&greedy, 0, &b);
	for (uint32_t s = 0; s < 1000; s++)
		ends(&greedy, SERVICE + 1 + s);
	ends(&b.o, SERVICE);
	assert_true(waits(SERVICE, 0));
	for (uint32_t s = 0; s < 1000; s++)
		all += waits(SERVICE + 1 + s, 1 + s);
	assert_in_range(all, 1, OF_OWNER);
	pass(LEFT);
	b.sent = 0;
	ends(&greedy, SERVICE + 1);
	assert_true(waits(SERVICE + 1, 0));
	pass(HOLD);
	said(URN_CM_REJ);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_impatient, setup, teardown),
		cmocka_unit_test_setup_teardown(test_withdrawn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overtaken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_backlog, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owner_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_peers_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owners_bounds, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
