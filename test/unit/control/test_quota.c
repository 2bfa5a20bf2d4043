/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits: counted once, by client, user and all; reported in a sentence; given back when a call fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/ctl.h"
#include "control/objects.h"
#include "control/teller.h"

#include <errno.h>
#include <string.h>

enum { KEYS = 16 };

static struct urn_adapter adapter = {.cfg = {.name = "a0", .max_mr = KEYS - 1}};
static struct urn_client *owner[KEYS];
enum { QUEUES = 2000 << 12 }; /* bytes of memory for queues of all users together */
static uint64_t bytes[KEYS];
static struct urn_ledger ledger;
static struct urn_client client[3];

static int
setup(void **state)
{
	struct urn_limits none;
	bool full;

	(void)state;
	memset(&none, 0xff, sizeof(none));
	memset(client, 0, sizeof(client));
	memset(owner, 0, sizeof(owner));
	memset(bytes, 0, sizeof(bytes));
	adapter.key_owner = owner;
	adapter.key_bytes = bytes;
	urn_quota_ledger_init(&ledger, QUEUES);
	for (unsigned int i = 0; i < 3; i++) { /* two clients of one user, one of another */
		client[i].adapter = &adapter;
		client[i].area.size = 1 << 20;
		client[i].quota.limits = none;
		client[i].quota.account = urn_account_join(&ledger, i < 2 ? 1000 : 1001, &none, 10, &full);
		assert_non_null(client[i].quota.account);
	}
	assert_ptr_equal(client[0].quota.account, client[1].quota.account);
	assert_ptr_not_equal(client[0].quota.account, client[2].quota.account);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct urn_account *u = client[i].quota.account;

		urn_tally_leave(&client[i].quota);
		assert_null(client[i].quota.account);
		urn_account_leave(u);
		assert_int_equal(u->clients, i == 0);
	}
	for (unsigned int q = 0; q < URN_QUOTAS; q++) /* all that a test took */
		assert_int_equal(ledger.used[q], 0);
	for (const struct urn_account *u = ledger.accounts; u; u = u->next)
		for (unsigned int q = 0; q < URN_QUOTAS; q++)
			assert_int_equal(u->used[q], 0);
	urn_ledger_fini(&ledger);
	return 0;
}

static struct urn_abi_rep rep;

/* A call that takes n bytes, if it takes any. err: its result, if it begins. returns: true when it began */
static int
call(struct urn_client *c, uint32_t op, uint64_t n, int err)
{
	const struct urn_quota_use *use = &urn_ctl_row(&urn_ctl_table, op)->use;
	struct urn_abi_req req = {.op = op};
	struct urn_charge charge;
	int rc;

	memset(&rep, 0, sizeof(rep));
	if (op == URN_CTL_REG_MR)
		req.reg_mr.length = n;
	else if (op == URN_CTL_SHARE)
		req.share.length = n;
	else
		req.handle = (uint32_t)n;
	rc = urn_quota_begin(c, use, &req, &rep, &charge);
	if (rc != 0)
		return rc;
	rep.err = err;
	if (op == URN_CTL_REG_MR && err == 0) {
		uint32_t i = 1;

		while (owner[i])
			i++;
		owner[i] = c;
		bytes[i] = n;
		rep.mr.lkey = i << 8;
	}
	if (op == URN_CTL_REPLACE_MR && err == 0) { /* by the last region there is */
		uint32_t key = req.handle >> 8, by = KEYS - 1;

		while (!owner[by])
			by--;
		bytes[key] = bytes[by];
		owner[by] = NULL;
	}
	urn_quota_end(c, use, &rep, &charge);
	if (op == URN_CTL_DEREG_MR && err == 0)
		owner[req.handle >> 8] = NULL;
	return 0;
}

static void
of_a_client(void **state)
{
	(void)state;
	client[0].quota.limits.max[URN_QUOTA_CQ] = 2;
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, 0), 0);
	for (int i = 0; i < 5; i++) /* a call that fails costs nothing */
		assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, ENOMEM), 0);
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, 0), 0);
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, 0), EDQUOT);
	assert_string_equal(rep.why, "a0: a program may have at most 2 completion queues "
				     "([limits] of the dataplane)");
	assert_int_equal(call(&client[1], URN_CTL_CREATE_CQ, 0, 0), 0);
	assert_int_equal(call(&client[0], URN_CTL_DESTROY_CQ, 1, EBUSY), 0); /* the object stays */
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, 0), EDQUOT);
	assert_int_equal(call(&client[0], URN_CTL_DESTROY_CQ, 1, 0), 0);
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CQ, 0, 0), 0);
	assert_int_equal(client[0].quota.used[URN_QUOTA_CQ], 2);
	assert_int_equal(client[0].quota.account->used[URN_QUOTA_CQ], 3);
	/* Calls that make nothing are not counted. */
	assert_int_equal(call(&client[0], URN_CTL_QUERY_PORT, 0, 0), 0);
}

static void
of_a_user_and_of_all(void **state)
{
	(void)state;
	client[0].quota.account->limits.max[URN_QUOTA_QP] = 3;
	ledger.limits.max[URN_QUOTA_QP] = 5;
	for (int i = 0; i < 3; i++)
		assert_int_equal(call(&client[i & 1], URN_CTL_CREATE_QP, 0, 0), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(call(&client[i], URN_CTL_CREATE_QP, 0, 0), EDQUOT);
		assert_non_null(strstr(rep.why, "a user may have at most 3 queue pairs"));
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(call(&client[2], URN_CTL_CREATE_QP, 0, 0), 0);
	assert_int_equal(call(&client[2], URN_CTL_CREATE_QP, 0, 0), EDQUOT);
	assert_non_null(strstr(rep.why, "all programs together may have at most 5 queue pairs"));
	/* Quota that one client leaves is free for others. */
	urn_tally_leave(&client[0].quota);
	client[0].quota.account = client[1].quota.account;
	memset(client[0].quota.used, 0, sizeof(client[0].quota.used));
	assert_int_equal(call(&client[2], URN_CTL_CREATE_QP, 0, 0), 0);
	assert_int_equal(client[1].quota.account->used[URN_QUOTA_QP], 1);
}

/* A deregistration gives back as many bytes as the registration took, whatever key the client names. */
static void
of_bytes(void **state)
{
	(void)state;
	client[0].quota.limits.max[URN_QUOTA_PINNED] = 10000;
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 10001, 0), EDQUOT);
	assert_int_equal(client[0].quota.used[URN_QUOTA_MR], 0); /* all or nothing */
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, UINT64_MAX, 0), EDQUOT);
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 6000, 0), 0);
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 4000, 0), 0);
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 1, 0), EDQUOT);
	assert_int_equal(call(&client[1], URN_CTL_REG_MR, 5000, 0), 0);
	/* Keys of others, and impossible keys, give nothing back. */
	assert_int_equal(call(&client[0], URN_CTL_DEREG_MR, 3 << 8, EINVAL), 0);
	assert_int_equal(call(&client[0], URN_CTL_DEREG_MR, UINT32_MAX, EINVAL), 0);
	assert_int_equal(call(&client[0], URN_CTL_UNSHARE, 77, EINVAL), 0);
	assert_int_equal(client[0].quota.used[URN_QUOTA_PINNED], 10000);
	assert_int_equal(call(&client[0], URN_CTL_DEREG_MR, 1 << 8, 0), 0);
	assert_int_equal(client[0].quota.used[URN_QUOTA_PINNED], 4000);
	assert_int_equal(client[0].quota.used[URN_QUOTA_MR], 1);
	assert_int_equal(client[0].quota.account->used[URN_QUOTA_PINNED], 9000);
	assert_int_equal(call(&client[0], URN_CTL_DEREG_MR, 2 << 8, 0), 0);
	assert_int_equal(call(&client[1], URN_CTL_DEREG_MR, 3 << 8, 0), 0);
	assert_int_equal(ledger.used[URN_QUOTA_PINNED], 0);
}

/*
 * A region that replaces another gives back what that one took, however much its own is: a client
 * that replaces small regions by large ones gains nothing. Keys of others give nothing back.
 */
static void
of_replaced_bytes(void **state)
{
	(void)state;
	client[0].quota.limits.max[URN_QUOTA_PINNED] = 10000;
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 1, 0), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(call(&client[0], URN_CTL_REG_MR, 5000, i % 2 ? EFAULT : 0), 0);
		if (i % 2)
			continue;
		assert_int_equal(call(&client[0], URN_CTL_REPLACE_MR, 1 << 8, EBUSY), 0);
		assert_int_equal(client[0].quota.used[URN_QUOTA_PINNED], i ? 10000 : 5001);
		assert_int_equal(call(&client[1], URN_CTL_REPLACE_MR, 1 << 8, EINVAL), 0);
		assert_int_equal(call(&client[0], URN_CTL_REPLACE_MR, 1 << 8, 0), 0);
		assert_int_equal(client[0].quota.used[URN_QUOTA_PINNED], 5000);
		assert_int_equal(client[0].quota.used[URN_QUOTA_MR], 1);
	}
	assert_int_equal(call(&client[0], URN_CTL_REG_MR, 5001, 0), EDQUOT);
	assert_int_equal(call(&client[0], URN_CTL_DEREG_MR, 1 << 8, 0), 0);
	assert_int_equal(ledger.used[URN_QUOTA_PINNED], 0);
}

/* An area counts from when its client comes until it goes. */
static void
of_areas(void **state)
{
	struct urn_err err = {""};

	(void)state;
	client[0].quota.account->limits.max[URN_QUOTA_AREA] = 2 << 20;
	client[1].quota.limits.max[URN_QUOTA_AREA] = (1 << 20) - 1;
	assert_int_equal(urn_quota_join(&client[0], &err), 0);
	assert_int_equal(urn_quota_join(&client[1], &err), EDQUOT);
	assert_string_equal(err.text, "a0: a program may have at most 1048575 bytes of areas for queues "
				      "([limits] of the dataplane)");
	client[1].quota.limits.max[URN_QUOTA_AREA]++;
	client[0].quota.account->limits.max[URN_QUOTA_AREA]--;
	assert_int_equal(urn_quota_join(&client[1], &err), EDQUOT);
	assert_non_null(strstr(err.text, "a user may have at most 2097151 bytes of areas"));
	assert_int_equal(client[1].quota.used[URN_QUOTA_AREA], 0);
	client[0].quota.account->limits.max[URN_QUOTA_AREA]++;
	assert_int_equal(urn_quota_join(&client[1], &err), 0);
	assert_int_equal(urn_quota_join(&client[2], &err), 0); /* another user */
	assert_int_equal(client[0].quota.account->used[URN_QUOTA_AREA], 2 << 20);
	assert_int_equal(ledger.used[URN_QUOTA_AREA], 3 << 20);
}

/* Make queues of so many bytes until one is refused, 2,000 at most. returns: how many */
static unsigned int
queues(struct urn_client *c, uint64_t each)
{
	unsigned int n = 0;

	while (n < 2000 && urn_quota_queue(c, each) == 0)
		n++;
	return n;
}

/*
 * Memory for queues has a bound for all users. Where a user may have half, one who has that leaves
 * another room for 1,000 queue pairs; a refusal by the bound itself says so and is counted.
 */
static void
of_queues(void **state)
{
	const uint64_t pair = QUEUES / 2000;

	(void)state;
	assert_true(ledger.limits.max[URN_QUOTA_QUEUE] == QUEUES);
	for (unsigned int i = 0; i < 3; i++)
		client[i].quota.account->limits.max[URN_QUOTA_QUEUE] = QUEUES / 2;
	assert_int_equal(queues(&client[0], pair) + queues(&client[1], pair), 1000);
	assert_string_equal(client[1].no_queue,
			    "a0: a user may have at most 4096000 bytes of memory for queues "
			    "([limits] of the dataplane)");
	assert_int_equal(queues(&client[2], pair), 1000);
	assert_int_equal(urn_ledger_refused(&ledger, URN_QUOTA_QUEUE), 0);
	client[2].quota.account->limits.max[URN_QUOTA_QUEUE] = UINT64_MAX;
	assert_int_equal(queues(&client[2], 1), 0);
	assert_string_equal(client[2].no_queue,
			    "a0: all programs together may have at most 8192000 bytes of memory "
			    "for queues ([limits] of the dataplane: queues)");
	assert_int_equal(urn_ledger_refused(&ledger, URN_QUOTA_QUEUE), 1);
	assert_int_equal(urn_ledger_refused(&ledger, URN_QUOTA_QP), 0);
}

/* Without an account nothing is limited, nor counted. */
static void
of_nobody(void **state)
{
	struct urn_client c = {.adapter = &adapter, .area = {.size = UINT64_MAX}};
	struct urn_err err;

	(void)state;
	assert_int_equal(urn_quota_join(&c, &err), 0);
	assert_int_equal(call(&c, URN_CTL_CREATE_QP, 0, 0), 0);
	urn_tally_leave(&c.quota);
	assert_true(urn_account_take(NULL, URN_QUOTA_FD, UINT32_MAX));
	urn_account_give(NULL, URN_QUOTA_FD, UINT32_MAX);
}

static void
connections_and_descriptors(void **state)
{
	struct urn_account *u = client[0].quota.account;
	bool full;

	(void)state;
	assert_null(urn_account_join(&ledger, 1000, &u->limits, 2, &full));
	assert_true(full);
	assert_ptr_equal(urn_account_join(&ledger, 1000, &u->limits, 3, &full), u);
	assert_false(full);
	urn_account_leave(u);
	/* The number of files that this process may open is known, and a part of it is reserved. */
	assert_in_range(ledger.limits.max[URN_QUOTA_SHARE], 1, UINT32_MAX);
	ledger.limits.max[URN_QUOTA_FD] = 10;
	assert_true(urn_account_take(u, URN_QUOTA_FD, 7));
	assert_false(urn_account_take(client[2].quota.account, URN_QUOTA_FD, 4));
	assert_true(urn_account_take(client[2].quota.account, URN_QUOTA_FD, 3));
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CHANNEL, 0, 0), EMFILE);
	urn_account_give(client[2].quota.account, URN_QUOTA_FD, 3);
	assert_int_equal(call(&client[0], URN_CTL_CREATE_CHANNEL, 0, 0), 0);
	assert_int_equal(ledger.used[URN_QUOTA_FD], 7 + URN_TELLER_WAY_FDS);
	urn_account_give(u, URN_QUOTA_FD, 7);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(of_a_client), TEST(of_a_user_and_of_all),
		TEST(of_bytes),	   TEST(of_replaced_bytes),
		TEST(of_areas),	   TEST(of_queues),
		TEST(of_nobody),   TEST(connections_and_descriptors),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
