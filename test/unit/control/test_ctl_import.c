/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that join others, and the protection domains and regions that they share: URN_CTL_JOIN,
 * IMPORT_PD, IMPORT_MR, END_PD, END_MR (control/ctl_import.c).
 */
#include "ctl_msg_rig.h"
#include "memory/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { USER = 1000, BYTES = 8192 };

static struct urn_ledger ledger;
static char memory[BYTES];

/* A client in another process, which is this one, with its memory. pds: domains that it may have */
static struct urn_client *
member(uid_t uid, uint64_t pds)
{
	struct urn_limits most;
	struct urn_client_who who = {.pid = getpid(), .uid = uid, .conn_fd = -1, .limits = &most};
	struct urn_abi_req hello = {
		.op = URN_CTL_HELLO,
		.hello = {URN_ABI_VERSION_OLDEST, URN_ABI_VERSION, 0, URN_ABI_FEATURES}};
	struct urn_space_fds fds;
	struct urn_abi_rep rep;
	struct urn_client *c;
	struct urn_err err;
	char why[256];
	bool full;

	memset(&most, 0xff, sizeof(most));
	who.account = urn_account_join(&ledger, uid, &most, 10, &full);
	most.max[URN_QUOTA_PD] = pds;
	assert_int_equal(urn_space_open_self(&fds), 0);
	assert_int_equal(urn_space_create(&fds, &who.space, why, sizeof(why)), 0);
	urn_space_set_user(who.space, uid);
	c = urn_client_create(rig_dp->adapter[0], &who, &err);
	assert_true(c && urn_client_start(c, &err) == 0);
	urn_ctl_call(c, &hello, &rep);
	assert_int_equal(rep.err, 0);
	return c;
}

static int
call(struct urn_client *c, enum urn_ctl_op op, uint32_t handle)
{
	struct urn_abi_req req = {.op = op, .handle = handle};
	struct urn_abi_rep rep;

	urn_ctl_call(c, &req, &rep);
	assert_true(rep.err == 0 || rep.why[0]);
	return rep.err;
}

/* fd: closed when the call fails, too */
static int
join_fd(struct urn_client *c, int fd)
{
	struct urn_abi_req req = {.op = URN_CTL_JOIN, .fd = fd};
	struct urn_abi_rep rep;

	urn_ctl_call(c, &req, &rep);
	assert_int_equal(fcntl(fd, F_GETFD) >= 0,
			 rep.err != 0); /* the dataplane closes what it took */
	if (rep.err)
		close(fd);
	return rep.err;
}

static int
join(struct urn_client *c, const struct urn_client *other)
{
	return join_fd(c, dup(other->area.fd));
}

static uint32_t
make_pd(struct urn_client *c)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_abi_rep rep;

	urn_ctl_call(c, &req, &rep);
	assert_int_equal(rep.err, 0);
	return rep.handle;
}

/* returns: 0 or an errno value; *key: the region */
static int
make_mr(struct urn_client *c, uint32_t pd, uint32_t *key)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR,
				  .reg_mr = {.pd = pd,
					     .addr = (uintptr_t)memory,
					     .iova = (uintptr_t)memory,
					     .length = BYTES}};
	struct urn_abi_rep rep;

	urn_ctl_call(c, &req, &rep);
	*key = rep.mr.lkey;
	return rep.err;
}

static int
make_mw(struct urn_client *c, uint32_t pd, uint32_t *key)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_MW, .alloc_mw = {.pd = pd, .type = 2}};
	struct urn_abi_rep rep;

	urn_ctl_call(c, &req, &rep);
	*key = rep.handle;
	return rep.err;
}

static uint64_t
has(const struct urn_client *c, enum urn_quota q)
{
	return c->quota.used[q];
}

/* Nothing is left, and no domain names a space. */
static void
nothing_left(void)
{
	const struct urn_adapter *a = rig_dp->adapter[0];

	for (uint32_t pd = 1; pd <= URN_ADAPTER_MAX_PD; pd++) {
		struct urn_space **at = urn_mem_pd_space(a->mem, pd);

		assert_null(a->pd_owner[pd]);
		assert_int_equal(a->pd_flags[pd], 0);
		assert_true(!at || !*at);
	}
	for (uint32_t i = 0; i <= a->cfg.max_mr; i++)
		assert_null(a->key_owner[i]);
}

static int
setup(void **state)
{
	int rc = rig_setup(state);

	urn_quota_ledger_init(&ledger, 0);
	return rc;
}

static int
teardown(void **state)
{
	nothing_left();
	urn_ledger_fini(&ledger);
	return rig_teardown(state);
}

/* ---- joining */

static void
only_by_a_descriptor_of_the_user(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9), *other = member(USER + 1, 9);
	int memfd = memfd_create("other", MFD_ALLOW_SEALING), null = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(join_fd(b, null), EINVAL);
	assert_int_equal(join_fd(b, memfd), ENOENT);
	assert_int_equal(call(b, URN_CTL_JOIN, 0), EINVAL); /* descriptor 0 is no memfd */
	assert_int_equal(join(other, a), EPERM);
	assert_int_equal(join(a, a), EBUSY);
	assert_int_equal(join(b, a), 0);
	assert_int_equal(join(b, a), EBUSY);
	assert_int_equal(join(a, b), EBUSY);
	urn_client_destroy(a);
	urn_client_destroy(b);
	urn_client_destroy(other);
}

/* A client that joins one of a family is of the family. */
static void
a_family_grows(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9), *c = member(USER, 9),
			  *d = member(USER, 9);
	uint32_t pd = make_pd(a), key;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(join(c, b), 0);
	assert_int_equal(call(c, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mr(b, pd, &key), 0);
	assert_int_equal(call(c, URN_CTL_IMPORT_MR, key), 0);
	/* Nobody else has any of it. */
	assert_int_equal(call(d, URN_CTL_IMPORT_PD, pd), EINVAL);
	assert_int_equal(call(d, URN_CTL_IMPORT_MR, key), EINVAL);
	assert_int_equal(call(d, URN_CTL_END_MR, key), EINVAL);
	assert_int_equal(call(d, URN_CTL_END_PD, pd), EINVAL);
	assert_int_equal(make_mr(d, pd, &key), EINVAL);
	urn_client_destroy(d);
	urn_client_destroy(b);
	urn_client_destroy(a);
	urn_client_destroy(c);
}

/* ---- domains and regions */

static void
used_once_imported(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9);
	uint32_t pd = make_pd(a), key, mine;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(make_mr(b, pd, &mine), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, 0), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, UINT32_MAX), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd + 1), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mr(b, pd, &mine), 0);
	assert_int_equal(make_mr(a, pd, &key), 0);
	/* A client's own calls are for its own objects. */
	assert_int_equal(call(b, URN_CTL_DEREG_MR, key), EINVAL);
	assert_int_equal(call(b, URN_CTL_DEALLOC_PD, pd), EINVAL);
	assert_int_equal(call(a, URN_CTL_DEREG_MR, key), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_MR, key), EINVAL);
	assert_int_equal(call(a, URN_CTL_DEALLOC_PD, pd), EBUSY);
	assert_int_equal(call(b, URN_CTL_DEREG_MR, mine), 0);
	assert_int_equal(call(a, URN_CTL_DEALLOC_PD, pd), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), EINVAL);
	urn_client_destroy(a);
	urn_client_destroy(b);
}

/* Ending another client's object gives that client's quota back, once. */
static void
ended_by_another(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9);
	uint32_t pd = make_pd(a), key;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mr(a, pd, &key), 0);
	assert_int_equal(has(a, URN_QUOTA_MR), 1);
	assert_int_equal(has(a, URN_QUOTA_PINNED), BYTES);
	assert_int_equal(call(b, URN_CTL_END_PD, pd), EBUSY);
	assert_int_equal(has(a, URN_QUOTA_PD), 1);
	assert_int_equal(call(b, URN_CTL_END_MR, key), 0);
	assert_int_equal(call(b, URN_CTL_END_MR, key), EINVAL);
	assert_int_equal(call(a, URN_CTL_DEREG_MR, key), EINVAL);
	assert_int_equal(call(b, URN_CTL_END_PD, pd), 0);
	assert_int_equal(call(b, URN_CTL_END_PD, pd), EINVAL);
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		if (q != URN_QUOTA_AREA)
			assert_true(!has(a, q) && !has(b, q));
	/* One's own object, too. */
	pd = make_pd(a);
	assert_int_equal(make_mr(a, pd, &key), 0);
	assert_int_equal(call(a, URN_CTL_END_MR, key), 0);
	assert_int_equal(call(a, URN_CTL_END_PD, pd), 0);
	assert_true(!has(a, URN_QUOTA_MR) && !has(a, URN_QUOTA_PINNED) && !has(a, URN_QUOTA_PD));
	urn_client_destroy(a);
	urn_client_destroy(b);
}

static void
no_windows(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9);
	uint32_t pd = make_pd(a), with = make_pd(a), key;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(make_mw(a, with, &key), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, with), EOPNOTSUPP);
	assert_int_equal(call(a, URN_CTL_DEALLOC_MW, key), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, with), EOPNOTSUPP);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mw(a, pd, &key), EOPNOTSUPP);
	assert_int_equal(make_mw(b, pd, &key), EINVAL);
	urn_client_destroy(a);
	urn_client_destroy(b);
}

/* A region in memory that a client shares ends by that client's call alone: its mapping is the
 * client's. */
static void
shared_memory(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9);
	struct urn_abi_req share = {.op = URN_CTL_SHARE};
	struct urn_abi_rep rep;
	uint32_t pd = make_pd(a), key;
	int fd = memfd_create("shared", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(pwrite(fd, memory, BYTES, 0), BYTES); /* its pages are the client's */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	share.share.fd = fd;
	share.share.addr = (uintptr_t)memory;
	share.share.length = BYTES;
	urn_ctl_call(a, &share, &rep);
	assert_int_equal(rep.err, 0);
	assert_int_equal(join(b, a), 0);
	assert_int_equal(make_mr(a, pd, &key), 0);
	assert_non_null(a->adapter->key_shm[key >> 8]);
	assert_int_equal(call(b, URN_CTL_IMPORT_MR, key), 0);
	assert_int_equal(call(b, URN_CTL_END_MR, key), EOPNOTSUPP);
	assert_int_equal(call(a, URN_CTL_END_MR, key), 0);
	assert_int_equal(call(a, URN_CTL_UNSHARE, rep.handle), 0);
	urn_client_destroy(a);
	urn_client_destroy(b);
}

/* ---- a client goes */

static struct urn_space *
space_of(const struct urn_client *c, uint32_t pd)
{
	return *urn_mem_pd_space(c->adapter->mem, pd);
}

/* The domain goes to the family, with its quota. The maker's other domains go, and its regions. */
static void
maker_goes(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 1);
	uint32_t pd = make_pd(a), alone = make_pd(a), mine, key;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mr(b, pd, &mine), 0);
	assert_int_equal(make_mr(a, pd, &key), 0);
	assert_ptr_equal(space_of(b, pd), a->space);
	urn_client_destroy(a);
	assert_ptr_equal(space_of(b, pd), b->space);
	assert_int_equal(has(b, URN_QUOTA_PD), 1);
	assert_int_equal(call(b, URN_CTL_IMPORT_MR, key), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, alone), EINVAL);
	assert_int_equal(make_mr(b, pd, &key), 0);
	assert_int_equal(call(b, URN_CTL_DEREG_MR, key), 0);
	assert_int_equal(call(b, URN_CTL_DEREG_MR, mine), 0);
	assert_int_equal(call(b, URN_CTL_DEALLOC_PD, pd), 0);
	assert_int_equal(has(b, URN_QUOTA_PD), 0);
	urn_client_destroy(b);
}

/* A user of a domain goes, whose space the domain named last. */
static void
user_goes(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 9);
	uint32_t pd = make_pd(a), mine;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, pd), 0);
	assert_int_equal(make_mr(b, pd, &mine), 0);
	assert_ptr_equal(space_of(a, pd), b->space);
	urn_client_destroy(b);
	assert_ptr_equal(space_of(a, pd), a->space);
	assert_int_equal(call(a, URN_CTL_DEALLOC_PD, pd), 0);
	urn_client_destroy(a);
}

/* An heir beyond its quota has the domains that are in use, and no others; those end uncharged. */
static void
heir_without_quota(void **state)
{
	struct urn_client *a = member(USER, 9), *b = member(USER, 1);
	uint32_t used = make_pd(a), unused = make_pd(a), own = make_pd(b), mine;

	(void)state;
	assert_int_equal(join(b, a), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, used), 0);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, unused), 0);
	assert_int_equal(make_mr(b, used, &mine), 0);
	urn_client_destroy(a);
	assert_int_equal(has(b, URN_QUOTA_PD), 1);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, unused), EINVAL);
	assert_int_equal(call(b, URN_CTL_IMPORT_PD, used), 0);
	assert_int_equal(call(b, URN_CTL_DEREG_MR, mine), 0);
	assert_int_equal(call(b, URN_CTL_DEALLOC_PD, used), EINVAL);
	assert_int_equal(call(b, URN_CTL_END_PD, used), 0);
	assert_int_equal(has(b, URN_QUOTA_PD), 1);
	assert_int_equal(call(b, URN_CTL_DEALLOC_PD, own), 0);
	urn_client_destroy(b);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(only_by_a_descriptor_of_the_user),
		CASE(a_family_grows),
		CASE(used_once_imported),
		CASE(ended_by_another),
		CASE(no_windows),
		CASE(shared_memory),
		CASE(maker_goes),
		CASE(user_goes),
		CASE(heir_without_quota),
	};

	return cmocka_run_group_tests(tests, rig_setup_eal, rig_teardown_eal);
}
