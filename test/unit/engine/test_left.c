/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that gave an engine up which stood still, and the word that they are told then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"

#include <string.h>

#define MS 1000000ull

static struct urn_tp tp;
static struct urn_engine engine; /* without a log */
static struct urn_shard shard;
static struct urn_abi_db db[2];
static struct urn_client_shard client[2];

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(db, 0, sizeof(db));
	memset(client, 0, sizeof(client));
	shard = (struct urn_shard){.tp = &tp, .engine = &engine};
	urn_shard_init_lists(&shard);
	for (int i = 0; i < 2; i++) {
		client[i].scan.db = &db[i];
		client[i].scan.tops = 1;
		client[i].shard = &shard;
		urn_shard_add_client(&shard, &client[i]);
	}
	return 0;
}

/* Nobody left, or the engine was away for a moment only: then it need not look. */
static void
test_goes_on(void **state)
{
	(void)state;
	urn_shard_stood(&shard, 900 * MS);
	assert_false(client[0].left | client[1].left);
	db[1].left = 1;
	urn_shard_stood(&shard, 3 * MS);
	assert_false(client[1].left);
}

/* The client that left is told, once. */
static void
test_told(void **state)
{
	(void)state;
	db[1].left = 1;
	urn_shard_stood(&shard, 100 * MS);
	assert_false(client[0].left);
	assert_true(client[1].left);
	assert_int_equal(db[1].ended, 0);
	urn_shard_tell_left(&shard);
	assert_int_equal(db[1].ended, 1);
	assert_int_equal(db[0].ended, 0);
	assert_true(TAILQ_EMPTY(&shard.leaving));
	urn_shard_stood(&shard, 100 * MS);
	assert_true(TAILQ_EMPTY(&shard.leaving));
}

/*
 * A client is told when none of its QPs waits for memory any more. A client whose memory is slow
 * delays no other, and may go meanwhile.
 */
static void
test_waits_for_memory(void **state)
{
	static struct rte_mbuf m;
	static struct urn_qp qp;
	struct urn_source *source = &qp.source;

	(void)state;
	memset(&qp, 0, sizeof(qp));
	qp.flags = URN_QPF_DYING;
	qp.rx_head = &m;
	client[0].source = &source;
	client[0].used = 1;
	db[0].left = db[1].left = 1;
	urn_shard_stood(&shard, 100 * MS);
	for (int i = 0; i < 4; i++)
		urn_shard_tell_left(&shard);
	assert_int_equal(db[0].ended, 0);
	assert_int_equal(db[1].ended, 1);
	qp.rx_head = NULL;
	urn_shard_tell_left(&shard);
	assert_int_equal(db[0].ended, 1);
	client[0].left = false;
	qp.rx_head = &m;
	urn_shard_stood(&shard, 100 * MS);
	urn_shard_remove_client(&shard, &client[0]);
	assert_true(TAILQ_EMPTY(&shard.leaving));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_goes_on, setup),
		cmocka_unit_test_setup(test_told, setup),
		cmocka_unit_test_setup(test_waits_for_memory, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
