/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: peers that begin more than they finish. */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Request number n of a peer; b.peer is that peer afterwards. returns: its id; 0: it was refused */
static uint32_t
asks(uint8_t peer, uint32_t n)
{
	struct urn_cm_msg m;

	b.peer[15] = peer;
	m = from_peer(URN_CM_REQ, 0);
	m.local_id += n;
	m.qpn = 1000 + n;
	b.sent = 0;
	if (input(&m) == URN_C_CM_CROWD) {
		assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_NO_RESOURCES);
		return 0;
	}
	return told(URN_CM_EVENT_REQUEST).id;
}

/*
 * Requests that are no connections yet: an eighth of the ids for one peer, and for one program that
 * listens, whatever addresses peers invent; the rest stays for others and for our own requests.
 */
static void
test_crowd(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_abi_cm_accept a = an_accept();
	uint32_t id, first = 0, all = 0;
	struct urn_cm_msg m;

	(void)state;
	bench_make(256, 0);
	b.any_peer = true; /* messages of ids that end go to many */
	to_listen(4096);
	for (uint32_t n = 0; n < 32; n++) {
		id = asks(2, n);
		assert_int_not_equal(id, 0);
		first = first ? first : id;
	}
	assert_int_equal(asks(2, 32), 0);
	/* A connection makes room. */
	assert_int_equal(urn_cm_accept(b.cm, &b.o, first, &a, b.now), 0);
	said(URN_CM_REP);
	m = from_peer(URN_CM_RTU, first);
	m.remote_id = first;
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_ESTABLISHED);
	assert_int_not_equal(asks(2, 33), 0);
	assert_int_equal(asks(2, 34), 0);
	/* The listener's program has no more, whoever asks. */
	for (uint8_t peer = 3; peer < 200; peer++)
		all += asks(peer, peer) != 0;
	assert_int_equal(all, 0);
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	assert_true(test_cm_sound(b.cm));
}

/* Requests that were answered, in whatever way, hold nobody up. */
static void
test_answered(void **state)
{
	struct urn_abi_cm_reject no = {.reason = URN_CM_REJ_CONSUMER};
	uint32_t id;

	(void)state;
	bench_make(256, 0);
	b.any_peer = true;
	to_listen(4096);
	for (uint32_t n = 0; n < 100; n++) {
		id = asks(2, n);
		assert_int_not_equal(id, 0);
		assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &no, b.now), 0);
		said(URN_CM_REJ);
		if (n % 2) /* the program keeps every other id */
			assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
		assert_true(test_cm_sound(b.cm));
	}
}

/* Many programs listen: together they get half of the ids for requests. */
static void
test_all(void **state)
{
	enum { OWNERS = 8 };
	static struct urn_cm_owner o[OWNERS];
	uint32_t id, all = 0;

	(void)state;
	bench_make(256, 0);
	b.any_peer = true;
	for (uint32_t i = 0; i < OWNERS; i++) {
		struct urn_abi_cm_listen l = {
			.service_id = 77 + i, .channel_fd = 0x5a, .backlog = 4096};

		urn_cm_owner_init(&o[i], 0, &b);
		assert_int_equal(urn_cm_listen(b.cm, &o[i], &l, &id), 0);
	}
	b.any_owner = true;
	for (uint32_t n = 0; n < 30 * OWNERS; n++) {
		struct urn_cm_msg m;

		b.peer[15] = (uint8_t)(2 + n % 200);
		m = from_peer(URN_CM_REQ, 0);
		m.local_id += n;
		m.qpn = 1000 + n;
		m.service_id = 77 + n % OWNERS;
		all += input(&m) == URN_C_CM_RX;
		b.sent = b.told = 0;
	}
	assert_int_equal(all, 128);
	assert_true(test_cm_sound(b.cm));
	for (uint32_t i = 0; i < OWNERS; i++)
		while (urn_cm_owner_goes(b.cm, &o[i], b.now))
			;
	b.sent = b.told = 0;
}

/*
 * Programs of one node share its address: when one of them has begun all that the address may, a
 * listener of another program still gets a 256th of the ids for requests from there, and no more.
 */
static void
test_shared_address(void **state)
{
	enum { IDS = 4096, ONE = IDS / 8, FEW = IDS / 256, OTHER = 78 };
	static struct urn_cm_owner other;
	struct urn_abi_cm_listen l = {.service_id = OTHER, .channel_fd = 0x5a, .backlog = IDS};
	uint32_t id, all = 0;

	(void)state;
	bench_make(IDS, 0);
	b.any_peer = b.any_owner = true;
	to_listen(IDS);
	for (uint32_t n = 0; n < ONE; n++)
		assert_int_not_equal(asks(2, n), 0);
	assert_int_equal(asks(2, ONE), 0);
	urn_cm_owner_init(&other, 0, &b);
	assert_int_equal(urn_cm_listen(b.cm, &other, &l, &id), 0);
	for (uint32_t n = ONE; n < ONE + 2 * FEW; n++) {
		struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

		m.local_id += n;
		m.qpn = 1000 + n;
		m.service_id = OTHER;
		all += input(&m) == URN_C_CM_RX;
		b.sent = b.told = 0;
	}
	assert_int_equal(all, FEW);
	assert_true(test_cm_sound(b.cm));
	while (urn_cm_owner_goes(b.cm, &other, b.now))
		;
	b.sent = b.told = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
