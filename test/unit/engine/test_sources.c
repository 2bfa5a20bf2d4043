/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * architecture.md, seam 6: a client's sources on an engine have doorbell ids, which any maker of
 * sources takes and gives back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct urn_client_shard shard;
static struct urn_abi_db *db;

static int
setup(void **state)
{
	(void)state;
	memset(&shard, 0, sizeof(shard));
	db = calloc(1, sizeof(*db));
	shard.scan.db = db;
	return db ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	urn_sources_fini(&shard);
	free(db);
	return 0;
}

static uint32_t
take(void)
{
	uint32_t id = UINT32_MAX;

	assert_int_equal(urn_sources_take(&shard, &id), 0);
	return id;
}

static void
found_until_dropped(void **state)
{
	struct urn_source a = {.kind = URN_SOURCE_OPS}, b = {.kind = URN_SOURCE_OPS};

	(void)state;
	a.db = take();
	b.db = take();
	assert_int_not_equal(a.db, b.db);
	assert_null(shard.source[a.db]); /* nothing rings it before it is entered */
	urn_sources_enter(&shard, &a);
	urn_sources_enter(&shard, &b);
	assert_ptr_equal(shard.source[a.db], &a);
	urn_sources_drop(&shard, a.db);
	assert_null(shard.source[a.db]);
	assert_ptr_equal(shard.source[b.db], &b);
	assert_int_equal(take(), a.db);
}

/* Each bit of the doorbell page is one id; then there is none, until one comes back. */
static void
as_many_as_bits(void **state)
{
	uint32_t id = 7;

	(void)state;
	for (uint32_t i = 0; i < URN_ABI_MAX_QP_ENGINE; i++) {
		assert_int_equal(take(), i);
		assert_int_equal(atomic_load(&db->tops), i / 4096 + 1);
	}
	assert_int_equal(urn_sources_take(&shard, &id), ENOSPC);
	assert_int_equal(id, 7);
	urn_sources_drop(&shard, 4711);
	assert_int_equal(take(), 4711);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(found_until_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_as_bits, setup, teardown),
	};

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
