/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the program on an adapter that came back: a few in a turn, each once in a round, and
 * those that can't be made again and again (FO-19); until then their keys are of no use (FO-2). */
#include "adapters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>

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
	struct ibv_mr *mr =
		ibv_reg_mr(o->pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

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

/* True when the backup came back a second time, and lacks memory of a queue pair alone. */
static bool
queue_pair_lacks(void *arg)
{
	const struct urn_sv_qp *q = arg;
	bool is;

	urn_sv_lock(q->ctx);
	is = q->ctx->returned[1] == 2 && !q->ctx->dead[1] && !q->ctx->rest[1].goes &&
	     q->memory_mr[1] == NULL && urn_sv_pd_whole(q->pd, 1);
	urn_sv_unlock(q->ctx);
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

/* True when the primary adapter came back, and the first round there is over. */
static bool
primary_as_far_as_possible(void *arg)
{
	const struct objects *o = arg;
	struct urn_sv_ctx *ctx = urn_sv_ctx(o->c);
	bool is;

	urn_sv_lock(ctx);
	is = ctx->returned[0] == 1 && !ctx->dead[0] && !ctx->rest[0].first && !ctx->rest[0].goes &&
	     ctx->rest[0].lacks == BAD && ((struct urn_sv_mr *)o->good[0])->below[0] != NULL &&
	     ((struct urn_sv_mr *)o->good[1])->below[0] != NULL;
	urn_sv_unlock(ctx);
	return is;
}

/* An adapter that refuses a region with EIO, and is not lost, gets the others all the same: the
 * first round ends, and with it the wait of objects without a session. */
static void
own_error(void **state)
{
	struct adapters_whole back = {.c = *state, .returned = 1};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
	struct objects o;
	struct ibv_qp *qp;

	make(&o, *state);
	attr.send_cq = attr.recv_cq = o.cq;
	atomic_store(&adapters[0].refusal, EIO);
	atomic_store(&adapters[0].refused, bad_memory);
	adapters_lose(0);
	adapters_back(0);
	adapters_until(primary_as_far_as_possible, &o);
	qp = ibv_create_qp(o.pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	atomic_store(&adapters[0].refused, NULL);
	adapters_until(adapters_whole, &back);
	assert_int_equal(urn_sv_ctx(o.c)->returned[0], 1);
	unmake(&o);
}

/* Wait until the device is between two rounds of the backup, and lock it. */
static void
lock_between_rounds(struct objects *o)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(o->c);

	/* The thread begins a round when it pleases, as long as the lock is not held. */
	for (;;) {
		adapters_until(as_far_as_possible, o);
		urn_sv_lock_first(ctx);
		if (!ctx->rest[1].goes && ctx->rest[1].lacks == BAD)
			return;
		urn_sv_unlock(ctx);
	}
}

/*
 * Let a round go on from its beginning to its end, with the lock held. No more than a few objects
 * are tried in a turn, and each once. waits: calls of the program wait between turns. returns: ms:
 * when the next round is due
 */
static uint64_t
round_of(struct urn_sv_ctx *ctx, uint64_t now, bool waits)
{
	uint32_t all = atomic_load(&adapters[1].tried), before, n = 0;
	struct urn_sv_rest *r = &ctx->rest[1];
	uint64_t next = now;

	r->due = 0;
	do {
		bool wait = false;

		before = atomic_load(&adapters[1].tried);
		now = next;
		next = urn_sv_rest_tick(ctx, 1, now, &wait);
		assert_in_range(atomic_load(&adapters[1].tried) - before, 1, AT_A_TIME);
		assert_true(next > now);
		assert_int_equal(wait, waits && r->goes);
		wait = false;
		assert_true(urn_sv_rest_tick(ctx, 1, now, &wait) == next);
		assert_int_equal(wait, waits && r->goes);
		n++;
	} while (r->goes);
	assert_int_equal(n, (BAD + AT_A_TIME - 1) / AT_A_TIME);
	assert_int_equal(atomic_load(&adapters[1].tried) - all, BAD);
	assert_int_equal(r->lacks, BAD);
	return next;
}

/* The next round waits for its pause, and once for calls of the program that make objects: then new
 * calls wait until it is over. */
static void
turns(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	bool wait = false;
	struct objects o;
	uint64_t next, later;
	uint32_t all;

	make(&o, *state);
	come_back(&o);
	lock_between_rounds(&o);
	next = round_of(ctx, 0, false);
	all = atomic_load(&adapters[1].tried);
	assert_true(next == urn_sv_rest_tick(ctx, 1, next - 1, &wait));
	ctx->calls++;
	later = urn_sv_rest_tick(ctx, 1, next, &wait);
	assert_true(later > next && later < UINT64_MAX);
	assert_false(wait);
	assert_true(urn_sv_rest_tick(ctx, 1, later - 1, &wait) == later);
	assert_false(wait);
	assert_true(urn_sv_rest_tick(ctx, 1, later, &wait) == UINT64_MAX);
	assert_true(wait);
	ctx->calls--;
	assert_int_equal(atomic_load(&adapters[1].tried), all);
	(void)round_of(ctx, later, true);
	(void)round_of(ctx, 0, false);
	urn_sv_unlock(ctx);
	unmake(&o);
}

/* Calls of the program wait through the whole first round, and not in the next one. */
static void
calls_wait(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct objects o;

	make(&o, *state);
	come_back(&o);
	lock_between_rounds(&o);
	urn_sv_rest_begin(ctx, 1);
	(void)round_of(ctx, 0, true);
	(void)round_of(ctx, 0, false);
	urn_sv_unlock(ctx);
	unmake(&o);
}

/* True when a key on an adapter is of no use. */
static bool
no_key_on(const struct urn_sv_keys *t, uint32_t name, uint32_t adapter)
{
	uint32_t key;

	assert_true(urn_sv_keys_find(t, name, adapter, &key));
	return key == URN_SV_NO_KEY;
}

static bool
no_key(const struct urn_sv_keys *t, uint32_t name)
{
	return no_key_on(t, name, 1);
}

/* A key of the adapter's earlier life may be another region's in this one: no request gets it, from
 * the program or from a peer. */
static void
keys(void **state)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	const struct urn_sv_pd *pd;
	struct objects o;
	struct ibv_qp *qp;

	make(&o, *state);
	pd = (struct urn_sv_pd *)o.pd;
	attr.send_cq = attr.recv_cq = o.cq;
	qp = ibv_create_qp(o.pd, &attr);
	assert_non_null(qp);
	assert_false(no_key(&pd->local, ((struct urn_sv_qp *)qp)->memory_key));
	for (int i = 0; i < BAD; i++)
		assert_false(no_key(&pd->local, o.bad[i]->lkey));
	come_back(&o);
	lock_between_rounds(&o);
	for (int i = 0; i < BAD; i++) {
		assert_true(no_key(&pd->local, o.bad[i]->lkey));
		assert_true(no_key(pd->remote, o.bad[i]->rkey));
	}
	assert_false(no_key(&pd->local, o.good[0]->lkey));
	assert_false(no_key(pd->remote, o.good[0]->rkey));
	urn_sv_unlock(ctx);
	/* The same of a queue pair's memory. */
	adapters_lose(1);
	adapters_until(backup_lost, o.c);
	atomic_store(&adapters[1].refused, ((struct urn_sv_qp *)qp)->memory);
	adapters_back(1);
	adapters_until(queue_pair_lacks, qp);
	urn_sv_lock(ctx);
	assert_true(no_key(&pd->local, ((struct urn_sv_qp *)qp)->memory_key));
	urn_sv_unlock(ctx);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	unmake(&o);
}

/* Whether a domain is whole is known without a look at each region: each path asks. */
static void
counted(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct urn_sv_pd *pd, empty;
	struct objects o;

	make(&o, *state);
	pd = (struct urn_sv_pd *)o.pd;
	come_back(&o);
	lock_between_rounds(&o);
	assert_int_equal(adapters_missing(pd, 1), BAD);
	assert_int_equal(pd->missing[1], BAD);
	assert_int_equal(pd->missing[0], 0);
	empty = *pd;
	LIST_INIT(&empty.regions);
	assert_false(urn_sv_pd_whole(&empty, 1));
	urn_sv_unlock(ctx);
	unmake(&o);
}

/* The same of a region that only one adapter lets go. */
static void
counted_busy(void **state)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(*state);
	struct urn_sv_pd *pd;
	struct objects o;

	make(&o, *state);
	pd = (struct urn_sv_pd *)o.pd;
	atomic_store(&adapters[1].busy, true);
	assert_int_equal(ibv_dereg_mr(o.good[0]), EBUSY);
	urn_sv_lock(ctx);
	assert_int_equal(pd->missing[0], 1);
	assert_int_equal(pd->missing[1], 0);
	assert_int_equal(adapters_missing(pd, 0), 1);
	/* The adapter that let it go may give its key to another one. */
	assert_true(no_key_on(&pd->local, o.good[0]->lkey, 0));
	assert_true(no_key_on(pd->remote, o.good[0]->rkey, 0));
	assert_false(no_key_on(&pd->local, o.good[0]->lkey, 1));
	urn_sv_unlock(ctx);
	atomic_store(&adapters[1].busy, false);
	unmake(&o);
	assert_int_equal(atomic_load(&adapters[0].regions), 0);
}

static const struct objects *beside; /* objects of the next test */
static struct ibv_qp *made;	     /* by make_beside() */

static void
make_beside(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = beside->cq,
		.recv_cq = beside->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	atomic_store(&adapters[1].asked, NULL); /* the queue pair has regions, too */
	made = ibv_create_qp(beside->pd, &attr);
}

/* A region that one adapter has let go, and the other is asked to, is missing nowhere: a queue pair
 * is made meanwhile, on both. */
static void
counted_ending(void **state)
{
	static uint8_t memory[BYTES];
	struct ibv_mr *ends;
	struct objects o;

	make(&o, *state);
	ends = region(&o, memory);
	beside = &o;
	made = NULL;
	atomic_store(&adapters[1].asked, make_beside);
	assert_int_equal(ibv_dereg_mr(ends), 0);
	assert_non_null(made);
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		assert_non_null(((struct urn_sv_qp *)made)->path[i].real);
		assert_int_equal(((struct urn_sv_pd *)o.pd)->missing[i], 0);
	}
	assert_int_equal(ibv_destroy_qp(made), 0);
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
	const struct CMUnitTest tests[] = {T(others),  T(own_error),	T(turns),
					   T(first),   T(calls_wait),	T(keys),
					   T(counted), T(counted_busy), T(counted_ending)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
