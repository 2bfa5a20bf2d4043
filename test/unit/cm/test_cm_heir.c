/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: services that several owners share (cm_heir.c). */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SHARERS = 64, KEY = 0x5ec2e7 };

/* Owners of one user; the bench's own is the program that listens first. */
static struct urn_cm_owner heir[2];

/* returns: 0 and *id, or an errno value */
static int
listens(struct urn_cm_owner *o, uint64_t key, uint32_t bits, uint32_t *id)
{
	struct urn_abi_cm_listen p = {
		.service_id = SERVICE, .cookie = key, .channel_fd = 0x5a, .backlog = 8 | bits};

	return urn_cm_listen(b.cm, o, &p, id);
}

/* A request comes from the peer. n: tells requests apart; returns: the listener that gets it; 0:
 * none */
static uint32_t
goes_to(uint32_t n)
{
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
	enum urn_counter c;

	m.local_id += n;
	m.qpn += n;
	c = input(&m);
	b.sent = 0;
	if (c != URN_C_CM_RX)
		return 0;
	return told(URN_CM_EVENT_REQUEST).listen_id;
}

static int
begin(void **state)
{
	if (setup(state) != 0)
		return -1;
	b.any_owner = true;
	for (unsigned int i = 0; i < 2; i++)
		urn_cm_owner_init(&heir[i], 0, &b);
	return 0;
}

static int
end(void **state)
{
	for (unsigned int i = 0; i < 2; i++)
		while (urn_cm_owner_goes(b.cm, &heir[i], b.now))
			;
	b.sent = b.told = 0;
	return teardown(state);
}

/* Only those share a service that know its secret and say so; one of another user knows none of 0.
 */
static void
test_who(void **state)
{
	_Atomic uint64_t ids = 0;
	struct urn_cm_owner other;
	uint32_t l, id;

	(void)state;
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &l), 0);
	assert_int_equal(listens(&heir[0], KEY, 0, &id), EADDRINUSE);
	assert_int_equal(listens(&heir[0], KEY + 1, URN_CM_SHARED | URN_CM_HEIR, &id), EADDRINUSE);
	urn_cm_owner_init(&other, 0, &b);
	other.user_ids = &ids;
	other.max_user_ids = 8;
	assert_int_equal(listens(&other, KEY + 1, URN_CM_SHARED | URN_CM_HEIR, &id), EADDRINUSE);
	assert_int_equal(listens(&other, KEY, URN_CM_SHARED | URN_CM_HEIR, &id), 0);
	assert_int_equal(goes_to(0), id);
	while (urn_cm_owner_goes(b.cm, &other, b.now))
		;
	assert_int_equal(ids, 0);
	assert_int_equal(listens(&heir[0], KEY, URN_CM_SHARED | URN_CM_HEIR, &id), 0);
	assert_int_equal(urn_cm_release(b.cm, &heir[0], id, b.now), 0);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	/* The secret alone is not enough: the first listener has to share. */
	assert_int_equal(listens(&b.o, KEY, 0, &l), 0);
	assert_int_equal(listens(&heir[0], KEY, URN_CM_SHARED | URN_CM_HEIR, &id), EADDRINUSE);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	assert_int_equal(listens(&b.o, 0, URN_CM_SHARED, &l), 0);
	assert_int_equal(listens(&other, 0, URN_CM_SHARED | URN_CM_HEIR, &id), EADDRINUSE);
	assert_int_equal(listens(&heir[0], 0, URN_CM_SHARED | URN_CM_HEIR, &id), 0);
}

/* A service has a bound of listeners. */
static void
test_bound(void **state)
{
	uint32_t id;

	(void)state;
	for (unsigned int i = 0; i < SHARERS; i++)
		assert_int_equal(listens(&heir[i % 2], KEY, URN_CM_SHARED, &id), 0);
	assert_int_equal(listens(&heir[0], KEY, URN_CM_SHARED, &id), EADDRINUSE);
	assert_int_equal(urn_cm_release(b.cm, &heir[1], id, b.now), 0);
	assert_int_equal(listens(&heir[0], KEY, URN_CM_SHARED, &id), 0);
}

/* Heirs get requests in turn, the one with fewer that wait first; without heirs the first listener.
 */
static void
test_turns(void **state)
{
	uint32_t first, l[2];

	(void)state;
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &first), 0);
	assert_int_equal(goes_to(0), first);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(listens(&heir[i], KEY, URN_CM_SHARED | URN_CM_HEIR, &l[i]), 0);
	for (uint32_t n = 1; n < 9; n += 2) {
		uint32_t got = goes_to(n);

		assert_true(got == l[0] || got == l[1]);
		assert_int_equal(goes_to(n + 1), got == l[0] ? l[1] : l[0]);
	}
	assert_int_equal(urn_cm_release(b.cm, &heir[0], l[0], b.now), 0);
	assert_int_equal(goes_to(9), l[1]);
	/* An owner that goes gets none. */
	urn_cm_owner_deaf(&heir[1]);
	assert_int_equal(goes_to(10), first);
	assert_true(test_cm_sound(b.cm));
}

/* A request that waits at the first listener goes to the first heir when its peer repeats it; one
 * at an heir stays. */
static void
test_moves(void **state)
{
	struct urn_abi_cm_accept a = an_accept();
	uint32_t first, l[2], id;

	(void)state;
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &first), 0);
	assert_int_equal(goes_to(0), first);
	id = b.ev.id;
	/* The peer is not asked for patience: it would not repeat the request for a minute. */
	assert_int_equal(goes_to(0), 0);
	assert_int_equal(listens(&heir[0], KEY, URN_CM_SHARED | URN_CM_HEIR, &l[0]), 0);
	quiet();
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), ENOTCONN);
	assert_int_equal(goes_to(0), l[0]);
	id = b.ev.id;
	assert_int_equal(listens(&heir[1], KEY, URN_CM_SHARED | URN_CM_HEIR, &l[1]), 0);
	assert_int_equal(urn_cm_accept(b.cm, &heir[0], id, &a, b.now), 0);
	said(URN_CM_REP);
	assert_true(test_cm_sound(b.cm));
}

/* A process takes over a request that came to another one, and answers it; the peer notices
 * nothing. */
static void
test_taken(void **state)
{
	struct urn_abi_cm_accept a = an_accept();
	struct urn_cm_msg m;
	uint32_t l, id;

	(void)state;
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &l), 0);
	assert_int_equal(goes_to(0), l);
	id = b.ev.id;
	assert_int_equal(urn_cm_take(b.cm, &heir[0], id, KEY + 1, 0x5a), ENOENT);
	assert_int_equal(urn_cm_take(b.cm, &heir[0], id + 1, KEY, 0x5a), ENOENT);
	assert_int_equal(urn_cm_take(b.cm, &heir[0], l, KEY, 0x5a), ENOENT);
	assert_int_equal(urn_cm_take(b.cm, &heir[0], id, KEY, 0x5a), 0);
	assert_int_equal(heir[0].ids, 1);
	assert_int_equal(b.o.ids, 1);
	assert_true(urn_cm_uses(b.cm, &heir[0], 0x5a));
	assert_true(test_cm_sound(b.cm));
	/* The first owner has it no more. */
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), ENOENT);
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), ENOENT);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	quiet();
	assert_int_equal(urn_cm_accept(b.cm, &heir[0], id, &a, b.now), 0);
	said(URN_CM_REP);
	/* An answered request is taken over no more. */
	assert_int_equal(urn_cm_take(b.cm, &heir[1], id, KEY, 0x5a), ENOTCONN);
	m = from_peer(URN_CM_RTU, id);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_ESTABLISHED);
	assert_true(test_cm_sound(b.cm));
}

/* A process of another user takes a request over if its user may have one more, and it counts as
 * that user's from then on; without a secret the user takes none. */
static void
test_other_user(void **state)
{
	_Atomic uint64_t ids[2] = {2, 7};
	struct urn_cm_owner other;
	uint32_t l, id;

	(void)state;
	urn_cm_owner_init(&other, 0, &b);
	other.user_ids = &ids[1];
	other.max_user_ids = 7;
	b.o.user_ids = &ids[0];
	b.o.max_user_ids = 8;
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &l), 0);
	assert_int_equal(goes_to(0), l);
	id = b.ev.id;
	assert_int_equal(ids[0], 4);
	assert_int_equal(urn_cm_take(b.cm, &other, id, KEY + 1, 7), ENOENT);
	assert_int_equal(urn_cm_take(b.cm, &other, id, KEY, 7), EDQUOT);
	assert_int_equal(ids[1], 7);
	other.max_user_ids = 8;
	assert_int_equal(urn_cm_take(b.cm, &other, id, KEY, 7), 0);
	assert_int_equal(ids[0], 3);
	assert_int_equal(ids[1], 8);
	assert_true(test_cm_sound(b.cm));
	while (urn_cm_owner_goes(b.cm, &other, b.now))
		;
	assert_int_equal(ids[1], 7);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	assert_int_equal(listens(&b.o, 0, URN_CM_SHARED, &l), 0);
	assert_int_equal(goes_to(1), l);
	assert_int_equal(urn_cm_take(b.cm, &other, b.ev.id, 0, 7), ENOENT);
	assert_int_equal(urn_cm_release(b.cm, &b.o, b.ev.id, b.now), 0);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	b.o.user_ids = NULL;
	b.sent = b.told = 0;
}

/* Requests of a listener that does not share are nobody else's, and an owner has its bound of ids.
 */
static void
test_not_taken(void **state)
{
	uint32_t l, id;

	(void)state;
	assert_int_equal(listens(&b.o, KEY, 0, &l), 0);
	assert_int_equal(goes_to(0), l);
	id = b.ev.id;
	assert_int_equal(urn_cm_take(b.cm, &heir[0], id, KEY, 7), ENOENT);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	assert_int_equal(listens(&b.o, KEY, URN_CM_SHARED, &l), 0);
	assert_int_equal(goes_to(1), l);
	id = b.ev.id;
	heir[0].max_ids = 1;
	assert_int_equal(urn_cm_take(b.cm, &heir[0], id, KEY, 7), 0);
	assert_int_equal(goes_to(2), l);
	assert_int_equal(urn_cm_take(b.cm, &heir[0], b.ev.id, KEY, 7), EDQUOT);
	urn_cm_owner_deaf(&heir[1]);
	assert_int_equal(urn_cm_take(b.cm, &heir[1], b.ev.id, KEY, 7), EDQUOT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who, begin, end),
		cmocka_unit_test_setup_teardown(test_bound, begin, end),
		cmocka_unit_test_setup_teardown(test_turns, begin, end),
		cmocka_unit_test_setup_teardown(test_moves, begin, end),
		cmocka_unit_test_setup_teardown(test_taken, begin, end),
		cmocka_unit_test_setup_teardown(test_other_user, begin, end),
		cmocka_unit_test_setup_teardown(test_not_taken, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
