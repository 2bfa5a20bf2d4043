/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate before operations on the memory of other processes: how many may be in flight, of
 * one client, of all clients of a user, and of one protection domain.
 */
#include "foreign_bench.h"

#include "memory/foreign.h"

#include <sys/mman.h>

/* mem.h, struct urn_memx_gate: the gate closes for the domain, and opens again when it has drained.
 */
static void
test_gate(void **state)
{
	struct ft *f = *state;
	struct urn_memx_config cfg = {.foreign = 64, .max_pds = 4};
	struct urn_memx *x = urn_memx_create(&cfg);
	const struct urn_memx_gate *g = urn_memx_gate(x);
	struct urn_memop op[32], got[32];
	uint64_t since = 0;

	assert_int_equal(g->closed, 0);
	for (uint32_t i = 0; i < 32; i++)
		op[i] = ft_op(f, URN_MEMOP_GATHER, i, 0, 8);
	urn_memx_execute(x, op, 15);
	assert_int_equal(g->closed, 0);
	urn_memx_execute(x, op, 1);
	assert_int_equal(g->closed, 1);
	assert_int_equal(g->pd[f->pd], 1);
	assert_int_equal(g->pd[f->pd + 1], 0);
	urn_memx_execute(x, op, 32);
	assert_int_equal(g->closed, 1);
	while (urn_memx_holds(x, NULL))
		if (urn_memx_poll(x, got, 32) == 0)
			ft_wait(&since);
	assert_int_equal(g->closed, 0);
	assert_int_equal(g->pd[f->pd], 0);
	urn_memx_destroy(x);
}

enum { DOMAINS = 40, GONE = 20 };

/* A gate for each domain, as many as there are; the gate of a domain that goes is open. */
static void
test_gates(void **state)
{
	struct ft *f = *state;
	struct urn_memx_config cfg = {.foreign = 64, .max_pds = DOMAINS};
	struct urn_memx *x = urn_memx_create(&cfg);
	const struct urn_memx_gate *g = urn_memx_gate(x);
	struct urn_memop op = ft_op(f, URN_MEMOP_GATHER, 0, 0, 8), got[32];
	struct urn_region region[DOMAINS + 1];
	uint64_t since = 0;

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t pd = 0; pd <= DOMAINS; pd++) {
			region[pd] = *ft_op(f, URN_MEMOP_GATHER, 0, 0, 8).region;
			region[pd].pd = pd ? pd : 1;
			op.region = &region[pd];
			for (uint32_t i = 0; i < (pd ? 1 : 32); i++)
				urn_memx_execute(x, &op, 1);
		}
		assert_int_equal(g->closed, DOMAINS);
		urn_memx_forget_pd(x, GONE);
		urn_memx_forget_pd(x, GONE);
		urn_memx_forget_pd(x, DOMAINS);
		urn_memx_forget_pd(x, 1);
		urn_memx_forget_pd(x, DOMAINS + 1);
		assert_int_equal(g->closed, DOMAINS - 3);
		for (uint32_t pd = 1; pd <= DOMAINS; pd++)
			assert_int_equal(g->pd[pd], pd != GONE && pd != DOMAINS && pd != 1);
		while (urn_memx_holds(x, NULL))
			if (urn_memx_poll(x, got, 32) == 0)
				ft_wait(&since);
		assert_int_equal(g->closed, 0);
		for (uint32_t pd = 1; pd <= DOMAINS; pd++)
			assert_int_equal(g->pd[pd], 0);
	}
	urn_memx_destroy(x);
}

enum { ALL = 96, MOST = ALL * 2 / 3, HALF = ALL / 2 };

/* Another client, of the user `uid`, with a domain of this number. */
static void
open_other(struct ft *f, uid_t uid, uint32_t pd)
{
	ft_open(f, 4096);
	while (f->pd != pd)
		f->pd = test_pd(f->mem);
	urn_space_set_user(f->space, uid);
	assert_int_equal(child_do(&f->child, CHILD_MAP, CHILD_AT, 4096, PROT_READ | PROT_WRITE), 0);
	ft_reg(f, RIGHTS);
}

/*
 * One user has two thirds of the operations in flight: there is room for another user's
 * clients, and none for more of its own, idle ones included, until what is left equals its
 * use.
 */
static void
test_users(void **state)
{
	struct ft *f = *state, same, other;
	struct urn_memx_config cfg = {.foreign = ALL, .max_pds = 4};
	struct urn_memx *x = urn_memx_create(&cfg);
	const struct urn_memx_gate *g = urn_memx_gate(x);
	struct urn_memop op[2] = {ft_op(f, URN_MEMOP_GATHER, 0, 0, 8)}, got;
	uint32_t mapped = test_pd(f->mem), idle = test_pd(f->mem), key;
	uint64_t since = 0;
	char why[256];

	assert_int_equal(test_reg_foreign(f->mem, idle, f->space, CHILD_AT, PAGE, 0, 0, &key, why,
					  sizeof(why)),
			 0);
	open_other(&same, 1000, mapped + 1);
	open_other(&other, 1000 + URN_LANE_USERS, mapped + 2);
	urn_space_set_user(f->space, 1000);
	op[1] = ft_op(&other, URN_MEMOP_GATHER, 0, 0, 8);
	for (uint32_t i = 1; i <= MOST; i++) {
		urn_memx_execute(x, op, 1);
		assert_int_equal(g->users, i == MOST);
		/* A client's own limit, also for a domain that had no operation yet. */
		assert_int_equal(urn_memx_gated(x, f->mem, idle), i >= ALL / 4);
		assert_int_equal(urn_memx_gated(x, same.mem, same.pd), i == MOST);
	}
	assert_false(urn_memx_gated(x, other.mem, other.pd));
	assert_false(urn_memx_gated(x, f->mem, mapped));
	/* The other user may have two thirds of the rest. */
	for (uint32_t i = 1; i <= (ALL - MOST) * 2 / 3 + 1; i++) {
		assert_int_equal(g->users, 1);
		assert_int_equal(urn_memx_gated(x, other.mem, other.pd),
				 i > ALL / 32 + 1); /* a client's limit */
		urn_memx_execute(x, op + 1, 1);
	}
	assert_int_equal(g->users, 2);
	while (urn_memx_holds(x, f->region) > 1 || urn_memx_holds(x, other.region))
		if (urn_memx_poll(x, &got, 1) == 0)
			ft_wait(&since);
	assert_int_equal(g->users, 0);
	assert_false(urn_memx_gated(x, same.mem, same.pd));
	/* The gate closes and opens once more, by itself. */
	for (uint32_t i = urn_memx_holds(x, NULL); i < MOST; i++)
		urn_memx_execute(x, op, 1);
	/* A domain that goes no longer counts for the client. */
	assert_true(urn_memx_gated(x, f->mem, idle));
	test_dereg(f->mem, key);
	assert_int_equal(urn_mem_dealloc_pd(f->mem, idle), 0);
	assert_false(urn_memx_gated(x, f->mem, idle));
	while (urn_memx_holds(x, NULL)) {
		assert_int_equal(g->users, urn_memx_holds(x, NULL) > HALF);
		if (urn_memx_poll(x, &got, 1) == 0)
			ft_wait(&since);
	}
	urn_memx_destroy(x);
	ft_close(&same);
	ft_close(&other);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gate, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_gates, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_users, foreign_setup, foreign_teardown),
	};

	int failed;

	child_be_victim(argc, argv);
	failed = cmocka_run_group_tests_name("by descriptor", tests, NULL, NULL);
	ft_direct = true;
	return failed + cmocka_run_group_tests_name("large reads by number", tests, NULL, NULL);
}
