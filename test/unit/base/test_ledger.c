/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger of quotas apart from their use: a guest house counts guests'
 * chairs and cups in it, which no control call knows.
 */
#include "base/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CHAIRS, CUPS, KINDS, GUESTS = 4, ROUNDS = 20000 };

static struct urn_ledger house;
static struct urn_tally guest[GUESTS]; /* two families: guests 0 and 1 are of the first */
static struct urn_ledger_refusal no;

static bool
take(unsigned int i, uint64_t chairs, uint64_t cups)
{
	const uint64_t n[URN_LEDGER_KINDS] = {[CHAIRS] = chairs, [CUPS] = cups};

	return urn_tally_take(&guest[i], n, &no);
}

static void
give(unsigned int i, uint64_t chairs, uint64_t cups)
{
	const uint64_t n[URN_LEDGER_KINDS] = {[CHAIRS] = chairs, [CUPS] = cups};

	urn_tally_give(&guest[i], n);
}

/* A family may have 6 chairs and 8 cups, a guest 4 and any number, the house has 10 chairs. */
static int
setup(void **state)
{
	const struct urn_limits all = {{[CHAIRS] = 10, [CUPS] = UINT64_MAX}}, family = {{[CHAIRS] = 6, [CUPS] = 8}};
	bool full;

	(void)state;
	urn_ledger_init(&house, &all);
	for (unsigned int i = 0; i < GUESTS; i++) {
		guest[i] = (struct urn_tally){.limits = {{[CHAIRS] = 4, [CUPS] = UINT64_MAX}}};
		guest[i].account = urn_account_join(&house, 70 + i / 2, &family, 2, &full);
		assert_non_null(guest[i].account);
		assert_false(full);
	}
	return 0;
}

/* All that guests had is given back, by user and for all; accounts stay until the end. */
static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < GUESTS; i++) {
		struct urn_account *u = guest[i].account;

		urn_tally_leave(&guest[i]);
		assert_null(guest[i].account);
		urn_account_leave(u);
		assert_int_equal(u->clients, 1 - i % 2);
		for (unsigned int k = 0; k < KINDS; k++)
			assert_int_equal(guest[i].used[k], 0);
	}
	for (unsigned int k = 0; k < URN_LEDGER_KINDS; k++) {
		assert_int_equal(house.used[k], 0);
		for (const struct urn_account *u = house.accounts; u; u = u->next)
			assert_int_equal(u->used[k], 0);
	}
	urn_ledger_fini(&house);
	assert_null(house.accounts);
	return 0;
}

#define refuses(i, chairs, cups, who, what, most)                                                  \
	do {                                                                                       \
		assert_false(take(i, chairs, cups));                                               \
		assert_int_equal(no.level, who);                                                   \
		assert_int_equal(no.kind, what);                                                   \
		assert_int_equal(no.max, most);                                                    \
	} while (0)

/* The limit of a holder is asked first, then that of the user, then that of all. */
static void
three_limits(void **state)
{
	(void)state;
	assert_true(take(0, 4, 0));
	refuses(0, 1, 0, URN_LEDGER_HOLDER, CHAIRS, 4);
	refuses(1, 3, 0, URN_LEDGER_USER, CHAIRS, 6);
	assert_true(take(1, 2, 0));
	assert_true(take(2, 3, 0));
	refuses(3, 2, 0, URN_LEDGER_ALL, CHAIRS, 10);
	assert_true(take(3, 1, 0));
	assert_int_equal(house.used[CHAIRS], 10);
	assert_int_equal(guest[0].account->used[CHAIRS], 6);
	assert_int_equal(guest[3].account->used[CHAIRS], 4);
	give(0, 1, 0);
	assert_true(take(2, 1, 0)); /* a holder's chair is free for holders of another user */
}

/* A refusal of one kind takes nothing of another; no sum wraps. */
static void
all_or_nothing(void **state)
{
	(void)state;
	refuses(0, 1, 9, URN_LEDGER_USER, CUPS, 8);
	assert_int_equal(guest[0].used[CHAIRS], 0);
	assert_int_equal(guest[0].account->used[CHAIRS], 0);
	assert_true(take(0, 1, 8));
	refuses(0, 0, UINT64_MAX, URN_LEDGER_HOLDER, CUPS, UINT64_MAX);
	refuses(0, UINT64_MAX, 0, URN_LEDGER_HOLDER, CHAIRS, 4);
	assert_int_equal(house.used[CUPS], 8);
	assert_int_equal(house.used[CHAIRS], 1);
}

/* A kind that the owner of the ledger does not name can't be taken. */
static void
unnamed_kind(void **state)
{
	const uint64_t n[URN_LEDGER_KINDS] = {[URN_LEDGER_KINDS - 1] = 1};

	(void)state;
	assert_false(urn_tally_take(&guest[0], n, &no));
	assert_int_equal(no.kind, URN_LEDGER_KINDS - 1);
}

/* A user takes without a holder as far as all together may, whatever its own limit. */
static void
without_a_holder(void **state)
{
	struct urn_account *u = guest[0].account;

	(void)state;
	assert_true(urn_account_take(u, CHAIRS, 7));
	assert_false(urn_account_take(guest[2].account, CHAIRS, 4));
	assert_true(urn_account_take(guest[2].account, CHAIRS, 3));
	refuses(3, 1, 0, URN_LEDGER_ALL, CHAIRS, 10);
	urn_account_give(guest[2].account, CHAIRS, 3);
	urn_account_give(u, CHAIRS, 7);
	assert_true(urn_account_take(NULL, CHAIRS, UINT64_MAX));
	urn_account_give(NULL, CHAIRS, UINT64_MAX);
}

static void
joins(void **state)
{
	const struct urn_limits other = {{0}};
	struct urn_account *u = guest[0].account;
	bool full;

	(void)state;
	assert_ptr_equal(guest[1].account, u);
	assert_ptr_not_equal(guest[2].account, u);
	assert_null(urn_account_join(&house, 70, &other, 2, &full));
	assert_true(full);
	assert_ptr_equal(urn_account_join(&house, 70, &other, 3, &full), u);
	assert_false(full);
	assert_int_equal(u->limits.max[CHAIRS], 6); /* those that the account was made with */
	urn_account_leave(u);
}

static void
without_an_account(void **state)
{
	struct urn_tally t = {0};
	const uint64_t n[URN_LEDGER_KINDS] = {UINT64_MAX};

	(void)state;
	assert_true(urn_tally_take(&t, n, &no));
	assert_int_equal(t.used[0], 0);
	urn_tally_give(&t, n);
	urn_tally_leave(&t);
}

static void *
come_and_go(void *arg)
{
	unsigned int i = *(unsigned int *)arg;
	const uint64_t n[URN_LEDGER_KINDS] = {[CHAIRS] = 1 + i % 3, [CUPS] = 1};
	struct urn_ledger_refusal why;

	for (unsigned int k = 0; k < ROUNDS; k++)
		if (urn_tally_take(&guest[i], n, &why))
			urn_tally_give(&guest[i], n);
	return NULL;
}

/* Holders of one user and of others take at the same time: no count is lost. */
static void
many_threads(void **state)
{
	unsigned int id[GUESTS];
	pthread_t t[GUESTS];

	(void)state;
	for (unsigned int i = 0; i < GUESTS; i++) {
		id[i] = i;
		assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &id[i]), 0);
	}
	for (unsigned int i = 0; i < GUESTS; i++)
		pthread_join(t[i], NULL);
	for (unsigned int k = 0; k < KINDS; k++)
		assert_int_equal(house.used[k], 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(three_limits), TEST(all_or_nothing),     TEST(unnamed_kind), TEST(without_a_holder),
		TEST(joins),        TEST(without_an_account), TEST(many_threads),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
