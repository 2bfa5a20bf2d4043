/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets, which events carry instead of pointers. */
#include "test.h"

#include "verbs/adapter/objs.h"

#define MANY 100

static void
tickets(void **state)
{
	struct urn_objs t;
	uint32_t obj[MANY] = {0};
	uint64_t ticket[MANY], old;
	int i;

	(void)state;
	urn_objs_init(&t);
	assert_null(urn_objs_find(&t, URN_OBJ_QP, 0, 0));
	for (i = 0; i < MANY; i++) {
		ticket[i] = urn_objs_put(&t, URN_OBJ_QP, &obj[i]);
		assert_int_not_equal(ticket[i], 0);
	}
	for (i = 0; i < MANY; i++) {
		assert_ptr_equal(urn_objs_find(&t, URN_OBJ_QP, ticket[i], 0), &obj[i]);
		assert_int_equal(obj[i], 1); /* counted in the same step */
	}
	assert_null(urn_objs_find(&t, URN_OBJ_CQ, ticket[3], 0));
	assert_int_equal(obj[3], 1);

	old = ticket[3];
	urn_objs_take(&t, old);
	urn_objs_take(&t, old);
	assert_null(urn_objs_find(&t, URN_OBJ_QP, old, 0));
	ticket[3] = urn_objs_put(&t, URN_OBJ_QP, &obj[3]); /* the same slot, another ticket */
	assert_int_equal((uint32_t)ticket[3], (uint32_t)old);
	assert_null(urn_objs_find(&t, URN_OBJ_QP, old, 0));
	assert_ptr_equal(urn_objs_find(&t, URN_OBJ_QP, ticket[3], 0), &obj[3]);
	assert_null(urn_objs_find(&t, URN_OBJ_QP, UINT64_MAX, 0));
	assert_null(urn_objs_find(&t, URN_OBJ_QP, 1ull << 32, 0));
	urn_objs_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tickets)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
