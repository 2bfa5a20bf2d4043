/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait by priority beside a ring (doc/inside/lossless.md "Telling senders to stop"). */
#include "frames.h"

#include "switch/park.h"

/* Priorities share the room, and each keeps its order, whatever the others do. */
static void
test_order(void **state)
{
	struct urn_park *p = urn_park_create();
	uint32_t put[2] = {0, 1}, took[2] = {0, 1};

	(void)state;
	assert_non_null(p);
	for (unsigned int round = 0; round < 20; round++) {
		struct rte_mbuf *m[7];

		for (unsigned int i = 0; p->frames < URN_PARK_FRAMES; i++) {
			m[0] = frame_make(put[i & 1], 64);
			m[0]->hash.usr = put[i & 1];
			put[i & 1] += 2;
			urn_park_put(p, i & 1 ? 7 : 2, m[0]);
		}
		assert_int_equal(p->waiting, 1u << 7 | 1u << 2);
		for (unsigned int i = 0; i < 100; i++) {
			unsigned int odd = i % 3 == 0, n = urn_park_take(p, odd ? 7 : 2, m, 7);

			for (unsigned int k = 0; k < n; k++) {
				assert_int_equal(m[k]->hash.usr, took[odd]);
				took[odd] += 2;
				rte_pktmbuf_free(m[k]);
			}
		}
	}
	urn_park_destroy(p); /* with the frames that wait */
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), TEST_EAL_MBUFS);
}

static void
test_empty(void **state)
{
	struct urn_park *p = urn_park_create();
	struct rte_mbuf *m;

	(void)state;
	assert_non_null(p);
	assert_int_equal(urn_park_take(p, 3, &m, 1), 0);
	urn_park_put(p, 3, frame_make(0, 64));
	assert_int_equal(urn_park_take(p, 4, &m, 1), 0);
	assert_int_equal(urn_park_take(p, 3, &m, 1), 1);
	assert_int_equal(p->waiting, 0);
	assert_int_equal(p->frames, 0);
	rte_pktmbuf_free(m);
	urn_park_destroy(p);
	urn_park_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_order, frames_setup),
		cmocka_unit_test_setup(test_empty, frames_setup),
	};

	return cmocka_run_group_tests_name("park", tests, NULL, NULL);
}
