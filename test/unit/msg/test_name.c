/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of receive queues (DB-11): one queue has a name at a time, and only the first engine has
 * names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <errno.h>

static void
a_name_leads_to_its_queue(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_open(1, -1, 0);
	rig_configure(0, 0, 4, 64);
	rig_configure(1, 0, 4, 64);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[0], 5), 0);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[1], 6), 0);
	assert_int_equal(rig_deliver(URN_MSG_NAME(5), 8, 1), URN_MSG_DONE);
	assert_int_equal(atomic_load(&rig_regs(0)->rstat.tail), 1);
	assert_int_equal(rig_deliver(URN_MSG_NAME(6), 8, 1), URN_MSG_DONE);
	assert_int_equal(atomic_load(&rig_regs(1)->rstat.tail), 1);
	assert_int_equal(rig_deliver(URN_MSG_NAME(7), 8, 1), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_deliver(URN_MSG_NAME(5) | 1ull << 40, 8, 1), URN_MSG_NO_QUEUE);
	assert_int_equal(rig_deliver(rig_qid(0), 8, 1),
			 URN_MSG_DONE); /* its number leads there, too */
}

static void
a_name_is_taken_once(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_open(1, -1, 0);
	rig_configure(1, 0, 4, 64);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[0], 5), 0);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[0], 5), 0);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[1], 5), EADDRINUSE);
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[0], 8),
			 0); /* a new name frees the old one */
	assert_int_equal(urn_msg_bind(rig.regs, rig.set[1], 5), 0);
	assert_int_equal(rig_deliver(URN_MSG_NAME(5), 8, 1), URN_MSG_DONE);
	urn_msg_unbind(rig.regs, rig.set[1]);
	assert_int_equal(rig_deliver(URN_MSG_NAME(5), 8, 1), URN_MSG_NO_QUEUE);
	urn_msg_unbind(rig.regs, rig.set[1]);
}

/* A name ends with its queue, also when thousands share the buckets. */
static void
names_end_with_their_queues(void **state)
{
	enum { N = 90, MANY = 20000 };

	(void)state;
	for (unsigned int i = 0; i < N; i++) {
		rig_open(i, -1, 0);
		assert_int_equal(urn_msg_bind(rig.regs, rig.set[i], i + 1), 0);
	}
	for (unsigned int i = 0; i < MANY; i++) { /* each bucket is used */
		assert_int_equal(urn_msg_bind(rig.regs, rig.set[i % N], 1000 + i), 0);
		assert_ptr_equal(urn_msg_by_name(rig.regs, 1000 + i), rig.set[i % N]);
	}
	for (unsigned int i = 0; i < MANY - N; i++)
		assert_null(urn_msg_by_name(rig.regs, 1000 + i));
	for (unsigned int i = 0; i < N; i++) {
		uint32_t name = rig.set[i]->name;

		rig_close(i);
		assert_null(urn_msg_by_name(rig.regs, name));
	}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(a_name_leads_to_its_queue),
		T(a_name_is_taken_once),
		T(names_end_with_their_queues),
	};

	return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
