/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of addresses against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "switch/fdb.h"
#include "base/rnd.h"

#include <errno.h>

#define S 1000000000ull

static struct urn_fdb *
make(uint32_t max, uint64_t age)
{
	const struct urn_fdb_config cfg = {.max = max, .age_ns = age, .seed = 77};
	struct urn_fdb *fdb = urn_fdb_create(&cfg);

	assert_non_null(fdb);
	return fdb;
}

static void
test_learn(void **state)
{
	struct urn_fdb *fdb = make(3, 10 * S);

	(void)state;
	assert_int_equal(urn_fdb_lookup(fdb, 2, 0), -1);
	assert_int_equal(urn_fdb_learn(fdb, 2, 7, 0), URN_FDB_NEW);
	assert_int_equal(urn_fdb_learn(fdb, 2, 7, 5 * S), URN_FDB_SAME);
	assert_int_equal(urn_fdb_lookup(fdb, 2, 15 * S), 7);
	assert_int_equal(urn_fdb_lookup(fdb, 2, 15 * S + 1), -1);
	assert_int_equal(urn_fdb_learn(fdb, 2, 8, 16 * S), URN_FDB_MOVED);
	assert_int_equal(urn_fdb_lookup(fdb, 2, 26 * S), 8);
	/* The clock of another core, a little slow. */
	assert_int_equal(urn_fdb_lookup(fdb, 2, 0), 8);
	assert_int_equal(urn_fdb_learn(fdb, 4, 1, 16 * S), URN_FDB_NEW);
	assert_int_equal(urn_fdb_learn(fdb, 6, 1, 16 * S), URN_FDB_NEW);
	assert_int_equal(urn_fdb_learn(fdb, 8, 1, 16 * S), URN_FDB_FULL);
	assert_int_equal(urn_fdb_lookup(fdb, 8, 16 * S), -1);
	assert_int_equal(urn_fdb_count(fdb), 3);
	urn_fdb_destroy(fdb);
	fdb = make(3, 0);
	assert_int_equal(urn_fdb_learn(fdb, 2, 7, 0), URN_FDB_NEW);
	assert_int_equal(urn_fdb_lookup(fdb, 2, UINT64_MAX), 7);
	assert_int_equal(urn_fdb_tend(fdb, 1000, UINT64_MAX), 0);
	urn_fdb_destroy(fdb);
	urn_fdb_destroy(NULL);
}

static void
test_static(void **state)
{
	struct urn_fdb *fdb = make(2, 10 * S);

	(void)state;
	assert_int_equal(urn_fdb_learn(fdb, 2, 1, 0), URN_FDB_NEW);
	assert_int_equal(urn_fdb_set(fdb, 2, 5), 0);
	assert_int_equal(urn_fdb_set(fdb, 4, 6), 0);
	assert_int_equal(urn_fdb_set(fdb, 6, 6), -ENOSPC);
	assert_int_equal(urn_fdb_set(fdb, 4, 7), 0);
	assert_int_equal(urn_fdb_count(fdb), 2);
	assert_int_equal(urn_fdb_learn(fdb, 2, 1, 0), URN_FDB_STATIC);
	assert_int_equal(urn_fdb_learn(fdb, 2, 5, 0), URN_FDB_SAME);
	/* Fixed addresses neither age nor go with their port's learnt ones. */
	assert_int_equal(urn_fdb_tend(fdb, 1000, 100 * S), 0);
	urn_fdb_flush(fdb, 5);
	assert_int_equal(urn_fdb_lookup(fdb, 2, 100 * S), 5);
	assert_int_equal(urn_fdb_lookup(fdb, 4, 100 * S), 7);
	assert_int_equal(urn_fdb_set(fdb, 3, 1), -EINVAL);
	urn_fdb_destroy(fdb);
}

static void
test_limits(void **state)
{
	struct urn_fdb_config cfg = {.max = 0};

	(void)state;
	assert_null(urn_fdb_create(&cfg));
	cfg.max = URN_FDB_MAX + 1;
	assert_null(urn_fdb_create(&cfg));
}

static void
test_mac(void **state)
{
	static const uint8_t one[6] = {0x02, 1, 2, 3, 4, 5}, group[6] = {0x03, 1, 2, 3, 4, 5};

	(void)state;
	assert_false(urn_mac_is_group(urn_mac(one)));
	assert_true(urn_mac_is_group(urn_mac(group)));
	assert_true(urn_mac(one) < 1ull << 48);
}

enum { MACS = 600, MAX = 500 };

struct model {
	int port;
	uint64_t seen;
	bool fixed;
};

static uint64_t
mac_of(unsigned int i)
{
	return urn_rnd_at(5, i) & 0xfffffffffffe;
}

static void
compare(struct urn_fdb *fdb, const struct model *model, uint64_t now, uint64_t age)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < MACS; i++) {
		bool fresh = model[i].fixed || now - model[i].seen <= age;

		assert_int_equal(urn_fdb_lookup(fdb, mac_of(i), now),
				 model[i].port >= 0 && fresh ? model[i].port : -1);
	}
	for (uint32_t at = 0; urn_fdb_next(fdb, &at);)
		count++;
	assert_int_equal(count, urn_fdb_count(fdb));
}

/* Remove from the model the addresses that the table has forgotten, and check that they were old. */
static void
forget_old(struct urn_fdb *fdb, struct model *model, uint64_t now, uint64_t age)
{
	uint32_t gone = urn_fdb_tend(fdb, 100000, now), old = 0;

	for (unsigned int i = 0; i < MACS; i++) {
		if (model[i].port >= 0 && !model[i].fixed && now - model[i].seen > age) {
			model[i].port = -1;
			old++;
		}
	}
	assert_int_equal(gone, old);
}

/* 200,000 random changes; a nearly full table, whose probes run into each other and around its end.
 */
static void
test_random(void **state)
{
	struct urn_fdb *fdb = make(MAX, 3000);
	struct model model[MACS];
	uint32_t entries = 0;

	(void)state;
	for (unsigned int i = 0; i < MACS; i++)
		model[i] = (struct model){.port = -1};
	for (uint64_t step = 0; step < 200000; step++) {
		uint64_t r = urn_rnd_at(1, step);
		unsigned int i = (unsigned int)(r % MACS);
		uint16_t port = (uint16_t)(r >> 20 & 3);
		struct model *m = &model[i];

		switch (r >> 40 & 15) {
		case 1:
			if ((r >> 50 & 7) == 0 && urn_fdb_set(fdb, mac_of(i), port) == 0)
				*m = (struct model){.port = port, .fixed = true};
			break;
		case 2:
			if ((r >> 50 & 63) != 0)
				break;
			urn_fdb_flush(fdb, port);
			for (unsigned int k = 0; k < MACS; k++) {
				if (model[k].port == port && !model[k].fixed)
					model[k].port = -1;
			}
			break;
		default:
			if (urn_fdb_learn(fdb, mac_of(i), port, step) <= URN_FDB_MOVED) {
				m->port = port;
				m->seen = step;
			} else if (!m->fixed) {
				assert_int_equal(urn_fdb_count(fdb), MAX);
			}
		}
		if (step % 1024 == 0)
			forget_old(fdb, model, step, 3000);
		if (step % 512 == 0)
			compare(fdb, model, step, 3000);
		entries = urn_fdb_count(fdb) > entries ? urn_fdb_count(fdb) : entries;
	}
	assert_int_equal(entries, MAX);
	urn_fdb_destroy(fdb);
}

/* Small steps of tending reach every slot. */
static void
test_tend_slowly(void **state)
{
	struct urn_fdb *fdb = make(MAX, 10);
	uint32_t gone = 0;

	(void)state;
	for (unsigned int i = 0; i < MAX; i++)
		assert_int_equal(urn_fdb_learn(fdb, mac_of(i), 1, i < 100 ? 1000 : 0), URN_FDB_NEW);
	for (unsigned int i = 0; i < 400; i++) {
		uint32_t n = urn_fdb_tend(fdb, 4, 1000);

		assert_true(n <= 4);
		gone += n;
	}
	assert_int_equal(gone, MAX - 100);
	assert_int_equal(urn_fdb_count(fdb), 100);
	urn_fdb_destroy(fdb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),  cmocka_unit_test(test_static),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_mac),
		cmocka_unit_test(test_random), cmocka_unit_test(test_tend_slowly),
	};

	return cmocka_run_group_tests_name("fdb", tests, NULL, NULL);
}
