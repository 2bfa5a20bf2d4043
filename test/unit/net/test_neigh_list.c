/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours, listed. */
#include "neigh_bench.h"

static void
parts_list_each_once(void **state)
{
	struct urn_neigh_info n[8];
	uint8_t gid[16];

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(urn_neigh_add_static(nb, peer_global, other_mac), 0);
	for (uint32_t i = 0; i < 30; i++) {
		l3_nth_v4(gid, 1000 + i);
		assert_int_equal(urn_neigh_add_static(nb, gid, peer_mac), 0);
	}
	for (unsigned int max = 1; max <= 8; max++) {
		unsigned int all = 0, fixed = 0, seen = 0, got;
		uint32_t at = 0;

		while ((got = urn_neigh_list(nb, &at, n, max)) > 0) {
			assert_true(got <= max);
			for (unsigned int i = 0; i < got; i++) {
				all++;
				fixed += n[i].fixed;
				if (memcmp(n[i].gid, peer_v4, 16) == 0) {
					seen++;
					assert_int_equal(n[i].state, URN_NEIGH_REACHABLE);
					assert_memory_equal(n[i].mac, peer_mac, 6);
				}
				if (memcmp(n[i].gid, peer_ll, 16) == 0)
					assert_int_equal(n[i].state, URN_NEIGH_INCOMPLETE);
			}
		}
		assert_int_equal(all, 33);
		assert_int_equal(fixed, 31);
		assert_int_equal(seen, 1);
		assert_int_equal(urn_neigh_list(nb, &at, n, max), 0);
	}
}

static void
states_have_names(void **state)
{
	(void)state;
	for (unsigned int i = URN_NEIGH_NONE; i <= URN_NEIGH_FAILED; i++)
		assert_string_not_equal(urn_neigh_state_name(i), "?");
	assert_string_equal(urn_neigh_state_name(URN_NEIGH_STALE), "stale");
	assert_string_equal(urn_neigh_state_name(99), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {T(parts_list_each_once), T(states_have_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
