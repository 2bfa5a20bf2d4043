/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of control operations (architecture.md, seam 9): all that anybody knows of an operation
 * is its row. A second table, with an operation of the test's own, goes through the same function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- operations of the test's own */

enum { ECHO = URN_CTL_OPS, PIPE, LIAR, FORGETFUL, ADDED, GAP, OWN_OPS };

static unsigned int runs;

/* Answer with the handle that came; a request that brings a descriptor is counted by its number. */
static int
echo(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	assert_true(c->busy);
	runs++;
	rep->handle = req->handle;
	rep->mr.lkey = (uint32_t)req->fd;
	return req->handle == 13 ? ERANGE : 0;
}

/* Bring both ends of a pipe back. */
static int
pipes(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int fd[2];

	(void)rep;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	c->reply_fd = fd[0];
	c->reply_write_fd = fd[1];
	return req->handle == 13 ? ERANGE : 0;
}

/* Bring nothing back. */
static int
nothing(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	(void)c;
	(void)req;
	(void)rep;
	return 0;
}

static uint64_t
bytes_of(struct urn_client *c, const struct urn_abi_req *req)
{
	(void)c;
	return req->handle;
}

static struct urn_ctl_row own[OWN_OPS];
static const struct urn_ctl_table table = {own, OWN_OPS};

static void
make_table(void)
{
	memcpy(own, urn_ctl_table.row, sizeof(own[0]) * urn_ctl_table.n);
	own[ECHO] = (struct urn_ctl_row){
		.word = "echo",
		.run = echo,
		.bytes = sizeof(struct urn_abi_req),
		.remote = true,
		.fds_in = 1,
		.use = {.take = 1u << URN_QUOTA_PD | 1u << URN_QUOTA_PINNED, .bytes = bytes_of}};
	own[PIPE] =
		(struct urn_ctl_row){.word = "pipe", .run = pipes, .fds_out = URN_CTL_REPLY_FDS};
	own[LIAR] = (struct urn_ctl_row){.word = "liar", .run = pipes};
	own[FORGETFUL] = (struct urn_ctl_row){
		.word = "forgetful", .run = nothing, .fds_out = URN_CTL_REPLY_FDS};
	own[ADDED] = (struct urn_ctl_row){.word = "added",
					  .run = echo,
					  .feature = URN_ABI_FEATURE_CONNECT_QP,
					  .use = {.take = 1u << URN_QUOTA_PD}};
}

/* ---- a client without engines */

static struct urn_dp dp;
static struct urn_adapter adapter = {.dp = &dp, .cfg = {.name = "a0"}};
static struct urn_ledger ledger;
static struct urn_client client;
static struct urn_abi_rep rep;

static int
setup(void **state)
{
	struct urn_limits none;
	bool full;

	(void)state;
	memset(&none, 0xff, sizeof(none));
	urn_quota_ledger_init(&ledger, 0);
	pthread_mutex_init(&adapter.lock, NULL);
	client = (struct urn_client){
		.adapter = &adapter, .remote = true, .reply_fd = -1, .quota.limits = none};
	dp.speaks = URN_ABI_OFFER;
	client.agreed = urn_abi_unasked(&dp.speaks);
	client.quota.account = urn_account_join(&ledger, 1000, &none, 10, &full);
	make_table();
	runs = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	assert_false(client.busy);
	assert_int_equal(pthread_mutex_trylock(&adapter.lock), 0); /* each call unlocked it */
	pthread_mutex_unlock(&adapter.lock);
	urn_tally_leave(&client.quota);
	urn_ledger_fini(&ledger);
	return 0;
}

/* Call with so many descriptors, all of the request's bytes. returns: descriptors that are left to
 * close */
static unsigned int
call(uint32_t op, uint32_t handle, unsigned int fds)
{
	static const int fd[] = {70, 71};
	struct urn_abi_req req = {.op = op, .handle = handle, .fd = 99};
	struct urn_ctl_call c = {.req = &req, .bytes = sizeof(req), .fd = fd, .fds = fds};

	urn_ctl_run(&table, &client, &c, &rep);
	return c.fds;
}

/* ---- the table of the interface */

static void
rows_are_whole(void **state)
{
	(void)state;
	assert_int_equal(urn_ctl_table.n, URN_CTL_OPS);
	assert_null(urn_ctl_row(&urn_ctl_table, 0));
	assert_null(urn_ctl_row(&urn_ctl_table, URN_CTL_OPS));
	assert_null(urn_ctl_row(&urn_ctl_table, UINT32_MAX));
	for (uint32_t op = 1; op < URN_CTL_OPS; op++) {
		const struct urn_ctl_row *r = urn_ctl_row(&urn_ctl_table, op);
		bool counts_bytes;

		assert_non_null(r);
		assert_true(strlen(r->word) > 0);
		assert_in_range(r->bytes, offsetof(struct urn_abi_req, hello),
				sizeof(struct urn_abi_req));
		assert_int_equal(r->fds_in, urn_ctl_fds_in(op));
		assert_int_equal(r->fds_out, urn_ctl_fds_out(op));
		assert_int_equal(r->feature, urn_ctl_feature(op));
		assert_int_equal(r->feature & (r->feature - 1), 0); /* one at most */
		assert_int_equal(r->feature & ~(uint32_t)URN_ABI_FEATURES, 0);
		assert_int_equal(r->feature == URN_ABI_FEATURE_CM, strncmp(r->word, "cm_", 3) == 0);
		assert_in_range(r->fds_in, 0, 1);
		assert_true(r->fds_out == 0 || r->fds_out == URN_CTL_REPLY_FDS);
		assert_false(r->use.take && r->use.back);
		counts_bytes = (r->use.take | r->use.back) &
			       (1u << URN_QUOTA_PINNED | 1u << URN_QUOTA_SHARED);
		assert_int_equal(r->use.bytes != NULL, counts_bytes);
		for (uint32_t other = 1; other < op; other++) {
			assert_string_not_equal(r->word, urn_ctl_row(&urn_ctl_table, other)->word);
			assert_ptr_not_equal(r->run, urn_ctl_row(&urn_ctl_table, other)->run);
		}
	}
	assert_int_equal(urn_ctl_row(&urn_ctl_table, URN_CTL_QUERY_PORT)->bytes, 8);
	assert_int_equal(urn_ctl_row(&urn_ctl_table, URN_CTL_QUERY_GID)->bytes, 12);
	assert_string_equal(urn_ctl_row(&urn_ctl_table, URN_CTL_CREATE_QP)->word, "create_qp");
	assert_int_equal(urn_ctl_fds_in(UINT32_MAX), 0);
	assert_int_equal(urn_ctl_fds_out(URN_CTL_OPS), 0);
	/* A library says HELLO before anything is agreed on. */
	assert_int_equal(urn_ctl_feature(URN_CTL_HELLO), 0);
	assert_int_equal(urn_ctl_feature(URN_CTL_CREATE_QP), 0);
	assert_int_equal(urn_ctl_feature(URN_CTL_CONNECT_QP), URN_ABI_FEATURE_CONNECT_QP);
	assert_int_equal(urn_ctl_feature(URN_CTL_SHARE), URN_ABI_FEATURE_SHARE);
	assert_int_equal(urn_ctl_feature(URN_CTL_OPS), 0);
	assert_int_equal(urn_ctl_feature(UINT32_MAX), 0);
}

/* Each kind that an operation makes has one operation that takes it back. */
static void
quotas_balance(void **state)
{
	uint32_t take = 0, back = 0;

	(void)state;
	for (uint32_t op = 1; op < URN_CTL_OPS; op++) {
		take |= urn_ctl_row(&urn_ctl_table, op)->use.take;
		back |= urn_ctl_row(&urn_ctl_table, op)->use.back;
	}
	assert_int_equal(take, back);
	/* Areas are charged when a client comes, ids and memory of queues where they are made. */
	assert_int_equal(take,
			 ((1u << URN_QUOTAS) - 1) & ~(1u << URN_QUOTA_AREA | 1u << URN_QUOTA_CM |
						      1u << URN_QUOTA_QUEUE));
}

/* ---- a table with operations more */

static void
an_operation_more(void **state)
{
	(void)state;
	assert_int_equal(call(ECHO, 5, 1), 0); /* the client has the descriptor now */
	assert_int_equal(rep.err, 0);
	assert_int_equal(rep.handle, 5);
	assert_int_equal(rep.mr.lkey, 70);
	assert_int_equal(client.quota.used[URN_QUOTA_PD], 1);
	assert_int_equal(client.quota.used[URN_QUOTA_PINNED], 5);
	call(ECHO, 6, 0); /* a descriptor that did not come can't be named */
	assert_int_equal(rep.err, 0);
	assert_int_equal((int)rep.mr.lkey, -1);
	assert_int_equal(runs, 2);
	/* The interface's own table does not know the operation. */
	urn_ctl_call(&client, &(struct urn_abi_req){.op = ECHO}, &rep);
	assert_int_equal(rep.err, EINVAL);
	assert_string_equal(rep.why, "no control request has the number 56");
	assert_int_equal(runs, 2);
}

static void
a_call_that_fails(void **state)
{
	(void)state;
	assert_int_equal(call(ECHO, 13, 1), 1); /* the descriptor is still the caller's */
	assert_int_equal(rep.err, ERANGE);
	assert_string_equal(rep.why, "a0: control request echo: Numerical result out of range");
	assert_int_equal(client.quota.used[URN_QUOTA_PD], 0);
	assert_int_equal(client.quota.used[URN_QUOTA_PINNED], 0);
}

static void
quota_of_an_operation(void **state)
{
	(void)state;
	client.quota.limits.max[URN_QUOTA_PINNED] = 10;
	call(ECHO, 11, 0);
	assert_int_equal(rep.err, EDQUOT);
	assert_int_equal(runs, 0);
	call(ECHO, 10, 0);
	assert_int_equal(rep.err, 0);
	assert_int_equal(call(ECHO, 1, 1), 1);
	assert_int_equal(rep.err, EDQUOT);
	assert_string_equal(rep.why, "a0: a program may have at most 10 bytes of registered memory "
				     "([limits] of the dataplane)");
	assert_int_equal(runs, 1);
	assert_int_equal(ledger.used[URN_QUOTA_PINNED], 10);
}

static void
descriptors_of_a_request(void **state)
{
	(void)state;
	assert_int_equal(call(ECHO, 1, 2), 2);
	assert_int_equal(rep.err, EBADF);
	assert_string_equal(rep.why, "control request 56 takes one descriptor, and 2 came");
	assert_int_equal(call(PIPE, 1, 1), 1);
	assert_int_equal(rep.err, EBADF);
	assert_string_equal(rep.why, "control request 57 takes no descriptor, and 1 came");
	assert_int_equal(call(OWN_OPS, 1, 1), 1);
	assert_int_equal(rep.err, EBADF);
	assert_int_equal(call(URN_CTL_ALLOC_PD, 1, 1), 1);
	assert_int_equal(rep.err, EBADF);
	assert_int_equal(runs, 0);
}

static void
descriptors_of_a_reply(void **state)
{
	int end;

	(void)state;
	call(PIPE, 1, 0);
	assert_int_equal(rep.err, 0);
	assert_true(client.reply_fd >= 0);
	close(client.reply_fd);
	close(client.reply_write_fd);
	client.reply_fd = -1;
	/* A handler that does not keep to its row: its descriptor goes nowhere. */
	for (unsigned int i = 0; i < 3; i++) {
		static const uint32_t op[] = {LIAR, FORGETFUL, PIPE}, handle[] = {1, 1, 13};

		client.reply_write_fd = -1;
		call(op[i], handle[i], 0);
		assert_int_equal(rep.err, EPROTO);
		assert_int_equal(client.reply_fd, -1);
		end = client.reply_write_fd;
		assert_int_equal(end >= 0, op[i] != FORGETFUL);
		if (end >= 0) { /* the other end is closed */
			assert_int_equal(read(end, &end, 1), 0);
			close(client.reply_write_fd);
		}
	}
	/* A program that holds the dataplane gets no descriptor. */
	client.remote = false;
	call(FORGETFUL, 1, 0);
	assert_int_equal(rep.err, 0);
}

static void
refused(void **state)
{
	struct urn_abi_req req = {.op = ECHO, .handle = 1};
	struct urn_ctl_call c = {.req = &req, .bytes = sizeof(req) - 1};

	(void)state;
	/* Numbers out of range, and one without a row. */
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t op[] = {0, GAP, OWN_OPS, UINT32_MAX};

		call(op[i], 0, 0);
		assert_int_equal(rep.err, EINVAL);
		assert_non_null(strstr(rep.why, "no control request has the number "));
	}
	/* One byte is missing. */
	urn_ctl_run(&table, &client, &c, &rep);
	assert_int_equal(rep.err, EINVAL);
	assert_string_equal(rep.why, "a0: control request echo needs 288 bytes, and 287 came");
	req.op = URN_CTL_QUERY_GID;
	c.bytes = 11;
	urn_ctl_run(&table, &client, &c, &rep);
	assert_int_equal(rep.err, EINVAL);
	c.bytes = 12; /* all that this operation reads */
	urn_ctl_run(&table, &client, &c, &rep);
	assert_int_equal(rep.err, 0);
	/* For programs in another process only. */
	client.remote = false;
	call(ECHO, 1, 0);
	assert_int_equal(rep.err, EINVAL);
	assert_string_equal(rep.why,
			    "a0: control request echo is for programs in another process than "
			    "the dataplane");
	call(URN_CTL_CREATE_CHANNEL, 0, 0);
	assert_int_equal(rep.err, EINVAL);
	call(URN_CTL_SHARE, 0, 0);
	assert_int_equal(rep.err, EINVAL);
	assert_int_equal(runs, 0);
	assert_int_equal(ledger.used[URN_QUOTA_PD], 0);
}

/* ---- architecture.md, seam 10: features */

/* Say hello as a library of these versions that knows these features. returns: the errno value */
static int
hello(uint32_t oldest, uint32_t newest, uint32_t features)
{
	const struct urn_abi_req req = {
		.op = URN_CTL_HELLO,
		.hello = {.oldest = oldest, .newest = newest, .features = features}};

	urn_ctl_call(&client, &req, &rep);
	return rep.err;
}

/* Only operations of features run that the latest HELLO agreed on; the others need no feature. */
static void
agreed_features(void **state)
{
	(void)state;
	assert_int_equal(hello(6, 7, URN_ABI_FEATURES & ~URN_ABI_FEATURE_CONNECT_QP), 0);
	assert_int_equal(client.agreed.version, 7);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_string_equal(rep.why, "a0: the library lacks bringing a queue pair up by one call: "
				     "upgrade the library");
	assert_int_equal(runs, 0);
	assert_int_equal(client.quota.used[URN_QUOTA_PD], 0);
	call(ECHO, 1, 0);
	assert_int_equal(rep.err, 0);
	/* A HELLO that fails changes nothing. */
	assert_int_equal(hello(8, 9, URN_ABI_FEATURES), EPROTO);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_int_equal(hello(6, 8, URN_ABI_FEATURE_CONNECT_QP), 0);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, 0);
	assert_int_equal(runs, 2);
	/* An operation of the interface, which is refused for this reason alone. */
	urn_ctl_call(&client, &(struct urn_abi_req){.op = URN_CTL_CM_EVENT}, &rep);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_string_equal(rep.why,
			    "a0: the library lacks connection management: upgrade the library");
}

/* A client that never asked, and one of version 6, have what version 6 has. */
static void
old_libraries(void **state)
{
	(void)state;
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, 0);
	assert_int_equal(client.agreed.features, URN_ABI_FEATURES_6);
	assert_int_equal(client.agreed.version, 6);
	assert_int_equal(hello(7, 7, 0), 0);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_int_equal(hello(6, 0, 0), 0);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, 0);
	/* The dataplane lacks the feature itself. */
	dp.speaks.features = URN_ABI_FEATURES & ~URN_ABI_FEATURE_CONNECT_QP;
	assert_int_equal(hello(6, 7, UINT32_MAX), 0);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_string_equal(rep.why, "a0: the dataplane lacks bringing a queue pair up by one "
				     "call: upgrade the dataplane");
	client.agreed = urn_abi_unasked(&dp.speaks);
	call(ADDED, 1, 0);
	assert_int_equal(rep.err, EOPNOTSUPP);
	assert_int_equal(runs, 2);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(rows_are_whole),	      TEST(quotas_balance),
		TEST(an_operation_more),      TEST(a_call_that_fails),
		TEST(quota_of_an_operation),  TEST(descriptors_of_a_request),
		TEST(descriptors_of_a_reply), TEST(refused),
		TEST(agreed_features),	      TEST(old_libraries),
	};

	return cmocka_run_group_tests_name("control operations", tests, NULL, NULL);
}
