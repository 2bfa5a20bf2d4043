/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the program on an adapter that came back: a few in a turn, each once in a round, and
 * those that can't be made again and again (FO-19). */
#include "adapters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { BAD = 100, AT_A_TIME = 32, BYTES = 4096 };

static uint8_t bad_memory[BYTES], good_memory[BYTES];

/* The program's objects. */
struct objects {
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_mr *bad[BAD], *good[2]; /* the memory of bad ones is refused later */
	struct ibv_cq *cq;
};

static struct ibv_mr *
region(const struct objects *o, void *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(o->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	return mr;
}

/* Objects with many regions that will be refused between two others. */
static void
make(struct objects *o, struct ibv_context *c)
{
	o->c = c;
	o->pd = ibv_alloc_pd(c);
	assert_non_null(o->pd);
	o->cq = ibv_create_cq(c, 4, NULL, NULL, 0);
	assert_non_null(o->cq);
	o->good[0] = region(o, good_memory);
	for (int i = 0; i < BAD; i++)
		o->bad[i] = region(o, bad_memory);
	o->good[1] = region(o, good_memory);
}

static void
unmake(const struct objects *o)
{
	for (int i = 0; i < BAD; i++)
		assert_int_equal(ibv_dereg_mr(o->bad[i]), 0);
	assert_int_equal(ibv_dereg_mr(o->good[0]), 0);
	assert_int_equal(ibv_dereg_mr(o->good[1]), 0);
	assert_int_equal(ibv_destroy_cq(o->cq), 0);
	assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

/* True when the backup came back, and the objects are there that can be made. */
static bool
as_far_as_possible(void *arg)
{
	const struct objects *o = arg;
	struct urn_sv_ctx *ctx = urn_sv_ctx(o->c);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->returned[1] == 1 && !ctx->dead[1] && !ctx->rest[1].goes &&
	     ctx->rest[1].lacks == BAD && ((struct urn_sv_mr *)o->good[0])->below[1] != NULL &&
	     ((struct urn_sv_mr *)o->good[1])->below[1] != NULL &&
	     ((struct urn_sv_cq *)o->cq)->below[1] != NULL;
	urn_sv_unlock(ctx);
	return is;
}

static bool
backup_lost(void *arg)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(arg);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->dead[1];
	urn_sv_unlock(ctx);
	return is;
}

/* The backup comes back, and refuses most regions. */
static void
come_back(struct objects *o)
{
	adapters_lose(1);
	adapters_until(backup_lost, o->c);
	atomic_store(&adapters[1].refused, bad_memory);
	adapters_back(1);
	adapters_until(as_far_as_possible, o);
}

/* Regions that are refused hold no others up, and are no loss of the adapter. */
static void
others(void **state)
{
	struct adapters_whole back = {.c = *state, .adapter = 1, .returned = 1};
	struct objects o;

	make(&o, *state);
	come_back(&o);
	atomic_store(&adapters[1].refused, NULL);
	adapters_until(adapters_whole, &back);
	assert_int_equal(urn_sv_ctx(o.c)->returned[1], 1);
	unmake(&o);
}

/* With the lock held no more than a few objects are tried in a turn; each is tried once in a round,
 * and the next round waits. */
static void
turns(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct urn_sv_rest *r = &ctx->rest[1];
	uint32_t all, before, n = 0;
	uint64_t now = 0, next;
	bool wait = false;
	struct objects o;

	make(&o, *state);
	come_back(&o);
	urn_sv_lock_first(ctx);
	all = atomic_load(&adapters[1].tried);
	r->due = 0;
	do {
		before = atomic_load(&adapters[1].tried);
		next = urn_sv_rest_tick(ctx, 1, now, &wait);
		assert_in_range(atomic_load(&adapters[1].tried) - before, 1, AT_A_TIME);
		assert_true(next > now);
		now = next;
		n++;
	} while (r->goes);
	assert_int_equal(n, (BAD + AT_A_TIME - 1) / AT_A_TIME);
	assert_int_equal(atomic_load(&adapters[1].tried) - all, BAD);
	assert_int_equal(r->lacks, BAD);
	/* Not before the pause, and not while a call of the program makes objects. */
	assert_true(next == urn_sv_rest_tick(ctx, 1, now - 1, &wait));
	ctx->calls++;
	assert_true(urn_sv_rest_tick(ctx, 1, now, &wait) > now);
	ctx->calls--;
	assert_int_equal(atomic_load(&adapters[1].tried) - all, BAD);
	assert_false(wait);
	urn_sv_unlock(ctx);
	unmake(&o);
}

/* The first round after an adapter came back makes new calls wait, and goes on when the last ends.
 */
static void
first(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	bool wait = false;
	struct objects o;

	make(&o, *state);
	urn_sv_lock_first(ctx);
	urn_sv_rest_begin(ctx, 1);
	ctx->calls++;
	assert_true(urn_sv_rest_tick(ctx, 1, 1, &wait) == UINT64_MAX);
	assert_true(wait);
	ctx->calls--;
	assert_true(urn_sv_rest_tick(ctx, 1, 1, &wait) == UINT64_MAX); /* nothing is missing */
	urn_sv_unlock(ctx);
	unmake(&o);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, adapters_setup, adapters_teardown)
	const struct CMUnitTest tests[] = {T(others), T(turns), T(first)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
