/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that queues of a program take of the dataplane (control/quota.h, URN_QUOTA_QUEUE). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/queue.h"
#include "hostile.h"
#include "server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SHARE = 4 << 20, CQES = 4096, MOST = 64 };

/* Make completion queues, in turn for two programs, until one is refused. returns: how many */
static int
fill(struct ibv_context *one, struct ibv_context *two, struct ibv_cq *cq[MOST], const char *whose)
{
	int n = 0;

	while (n < MOST && (cq[n] = ibv_create_cq(n % 2 ? two : one, CQES, NULL, NULL, 0)))
		n++;
	assert_int_equal(errno, EDQUOT);
	assert_non_null(strstr(urn_attach_error(), whose));
	assert_non_null(strstr(urn_attach_error(), "bytes of memory for queues"));
	assert_in_range(n, 4, SHARE / (CQES * (int)sizeof(struct urn_abi_cqe)));
	return n;
}

/*
 * A program that has its share gets no further queue, makes one in the place of another, and keeps
 * nobody else from queues; when it goes the bytes are free.
 */
static void
test_program(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct ibv_context *ctx, *other;
	struct ibv_cq *cq[MOST], *other_cq;
	int n;

	rig_close(r);
	tight.per_client.max[URN_QUOTA_QUEUE] = SHARE;
	rig_open(r, &tight, NULL);
	for (int again = 0; again < 3; again++) {
		ctx = rig_attach(r, 0);
		other = rig_attach(r, 0);
		n = fill(ctx, ctx, cq, "a program may have at most");
		for (int i = 0; i < 50; i++) {
			assert_int_equal(ibv_destroy_cq(cq[n - 1]), 0);
			cq[n - 1] = ibv_create_cq(ctx, CQES, NULL, NULL, 0);
			assert_non_null(cq[n - 1]);
			assert_null(ibv_create_cq(ctx, CQES, NULL, NULL, 0));
		}
		other_cq = ibv_create_cq(other, CQES, NULL, NULL, 0);
		assert_non_null(other_cq);
		assert_int_equal(ibv_destroy_cq(other_cq), 0);
		assert_int_equal(ibv_close_device(other), 0);
		while (n)
			assert_int_equal(ibv_destroy_cq(cq[--n]), 0);
		assert_int_equal(ibv_close_device(ctx), 0);
		hostile_others_go_on(r);
	}
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* All programs of a user together: the rig's own two, and two more. */
static void
test_user(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct ibv_context *one, *two;
	struct ibv_cq *cq[MOST];
	int n;

	rig_close(r);
	tight.per_uid.max[URN_QUOTA_QUEUE] = SHARE;
	rig_open(r, &tight, NULL);
	for (int again = 0; again < 3; again++) {
		one = rig_attach(r, 0);
		two = rig_attach(r, 0);
		n = fill(one, two, cq, "a user may have at most");
		while (n)
			assert_int_equal(ibv_destroy_cq(cq[--n]), 0);
		assert_int_equal(ibv_close_device(one), 0);
		assert_int_equal(ibv_close_device(two), 0);
		assert_int_equal(hostile_clients(r, 2), 2);
		hostile_others_go_on(r);
	}
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* All programs together, whoever's they are; refusals are counted, and the room of one that goes is
 * the others'. */
static void
test_all(void **state)
{
	struct rig *r = *state;
	struct rig_config cfg = r->cfg, tight = cfg;
	struct urn_server_counters before, after;
	struct ibv_context *one, *two;
	struct ibv_cq *cq[MOST];
	int n;

	rig_close(r);
	tight.queue_memory = SHARE;
	rig_open(r, &tight, NULL);
	for (unsigned int again = 0; again < 3; again++) {
		one = rig_attach(r, 0);
		two = rig_attach(r, 0);
		urn_server_counters(r->server, &before);
		assert_true(again > 0 || before.queue_memory_refused == 0);
		n = fill(one, two, cq, "all programs together may have at most");
		urn_server_counters(r->server, &after);
		assert_true(after.queue_memory_refused > before.queue_memory_refused);
		assert_int_equal(ibv_close_device(one), 0);
		assert_int_equal(ibv_close_device(two), 0);
		/* The library's memory of queues that a program leaves stays until its end. */
		while (n-- > 0)
			free(cq[n]);
		assert_int_equal(hostile_clients(r, 2), 2);
		hostile_others_go_on(r);
	}
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests_name("queue_memory", tests, hostile_setup, hostile_teardown);
}
