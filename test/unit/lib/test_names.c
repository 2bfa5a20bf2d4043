/* SPDX-License-Identifier: BSD-3-Clause */
/* One program, urnic and the real libibverbs: each file gets the one whose header it includes. */
#include "test.h"

#include <dlfcn.h>
#include <string.h>

const char *real_node_type_str(void);
void *real_function(void);

static void
both_at_once(void **state)
{
	void *ours = (void *)(uintptr_t)ibv_node_type_str;
	Dl_info info;

	(void)state;
	assert_ptr_not_equal(ours, real_function());
	assert_string_equal(ibv_node_type_str(IBV_NODE_RNIC), "iWARP NIC");
	assert_string_not_equal(real_node_type_str(), "unknown");
	assert_true(dladdr(real_function(), &info) != 0);
	assert_non_null(strstr(info.dli_fname, "libibverbs"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(both_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
