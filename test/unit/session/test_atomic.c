/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics across a migration: the record of a queue pair, and results for the program (FO-15). */
#include "verbs/session/atomic.h"

#include "verbs/adapter/adapter.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRIES = 16, QPS = 2, NAME = 0x7000 }; /* NAME: address of the words, as requests have it */

/* A queue pair of an adapter, with the client's area that its log is in. */
struct fake {
	struct urn_adapter_qp qp;
	struct urn_dev dev;
	struct {
		struct urn_abi_wq hdr;
		struct urn_abi_atomic log[ENTRIES];
	} area;
};

static struct fake fakes[QPS];
static struct urn_ctx adapter;
static struct urn_sv_ctx ctx;
static struct urn_sv_pd pd;
static struct urn_sv_qp qps[QPS];
static struct urn_sv_region region;
static uint64_t *words; /* a page */
static bool given_up;
static struct urn_sess_record record;

bool __wrap_urn_remote_given_up(const struct urn_abi_channel *channel);

bool
__wrap_urn_remote_given_up(const struct urn_abi_channel *channel)
{
	(void)channel;
	return given_up;
}

static void
fake_make(struct fake *f, struct urn_sv_qp *q)
{
	memset(f, 0, sizeof(*f));
	memset(q, 0, sizeof(*q));
	f->dev.area = (uint8_t *)&f->area;
	f->dev.info.area_size = sizeof(f->area);
	f->dev.info.features = URN_ABI_FEATURE_ATOMICS;
	f->qp.dev = &f->dev;
	f->qp.rq.hdr = &f->area.hdr;
	f->qp.ibv.context = &adapter.front.vctx.context;
	atomic_store(&f->area.hdr.atomics, ENTRIES);
	f->area.hdr.atomics_off = offsetof(struct fake, area.log) - offsetof(struct fake, area);
	q->ctx = &ctx;
	q->pd = &pd;
	q->mode = URN_SV_SESSION;
	q->lower = true;
	q->path[0].real = &f->qp.ibv;
	LIST_INSERT_HEAD(&ctx.qps, q, link);
}

static int
make(void **state)
{
	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(&pd, 0, sizeof(pd));
	ctx.log_fd = -1;
	given_up = false;
	for (int i = 0; i < QPS; i++)
		fake_make(&fakes[i], &qps[i]);
	words = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(words, MAP_FAILED);
	region =
		(struct urn_sv_region){.base = (uint8_t *)words,
				       .start = NAME,
				       .length = 64,
				       .lkey = 3,
				       .access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE};
	LIST_INSERT_HEAD(&pd.regions, &region, link);
	return 0;
}

static int
unmake(void **state)
{
	(void)state;
	return munmap(words, (size_t)sysconf(_SC_PAGESIZE));
}

static struct urn_abi_atomic *
put(unsigned int qp, uint64_t number, uint64_t old, uint64_t new, uint32_t how)
{
	struct urn_abi_atomic *a = &fakes[qp].area.log[number % ENTRIES];

	a->addr = NAME + 8;
	a->old = old;
	a->new = new;
	a->number = number;
	atomic_store(&a->state, how);
	return a;
}

/* Read the record of queue pair 0. */
static void
is(uint64_t count, bool unsure)
{
	urn_sv_record(&qps[0], &record);
	assert_true(record.log);
	assert_int_equal(record.count, count);
	assert_int_equal(record.unsure, unsure);
}

static void
done(void **state)
{
	(void)state;
	is(0, false);
	put(0, 1, 5, 6, URN_ATOMIC_DONE);
	is(1, false);
	assert_int_equal(record.old[1], 5);
	/* The record goes on where the last one ended. */
	qps[0].c.record = record;
	is(2, false);
	assert_int_equal(record.old[2], 5);
}

/* The word says what became of an atomic that was intended. */
static void
word(void **state)
{
	(void)state;
	put(0, 1, 0, 5, URN_ATOMIC_DONE);
	put(0, 2, 5, 6, URN_ATOMIC_INTENT);
	words[1] = 5;
	is(1, false);
	words[1] = 6;
	is(2, false);
	assert_int_equal(record.old[2], 5);
	words[1] = 7;
	is(1, true);
	assert_int_equal(qps[0].unreadable, 0);
}

/* A word that can't be found, or read, decides nothing; and nothing is touched. */
static void
nowhere(void **state)
{
	struct urn_abi_atomic *a = put(0, 1, 5, 6, URN_ATOMIC_INTENT);

	(void)state;
	words[1] = 6;
	is(1, false);
	a->addr = NAME + 64;
	is(0, true);
	a->addr = NAME + 8;
	region.access = IBV_ACCESS_LOCAL_WRITE;
	is(0, true);
	region.access = IBV_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(mprotect(words, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE), 0);
	is(0, true);
	/* The word need not be read when the atomic changes nothing. */
	a->new = a->old;
	is(1, false);
}

/* Another queue pair made the same value: the word may be its work. */
static void
twin(void **state)
{
	(void)state;
	words[1] = 6;
	put(0, 1, 5, 6, URN_ATOMIC_INTENT);
	put(1, 9, 5, 6, URN_ATOMIC_DONE);
	is(0, true);
	words[1] = 5;
	is(0, false);
	words[1] = 6;
	LIST_REMOVE(&qps[1], link);
	is(1, false);
}

/* A dataplane that may go on may carry out what it had in hand. */
static void
stopped(void **state)
{
	(void)state;
	given_up = true;
	put(0, 1, 5, 6, URN_ATOMIC_DONE);
	is(1, true);
}

static void
unreadable(void **state)
{
	(void)state;
	qps[0].c.record.count = 4;
	put(0, 1, 5, 6, 9);
	urn_sv_record(&qps[0], &record);
	assert_false(record.log);
	assert_int_equal(record.count, 4);
	assert_int_equal(qps[0].unreadable, 1);
	fakes[0].dev.info.features = 0;
	urn_sv_record(&qps[0], &record);
	assert_false(record.log);
	assert_int_equal(qps[0].unreadable, 2);
}

/* Results go to the elements of a request, in turn. */
static void
results(void **state)
{
	struct ibv_sge sge[2] = {{NAME + 1, 3, 3}, {NAME + 16, 8, 3}};
	const uint64_t old = 0x1122334455667788;
	uint8_t want[64] = {0};

	(void)state;
	memcpy(want + 1, &old, 3);
	memcpy(want + 16, (const uint8_t *)&old + 3, 5);
	assert_true(urn_sv_result(&qps[0], sge, 2, old));
	assert_memory_equal(words, want, sizeof(want));
	assert_false(urn_sv_result(&qps[0], sge, 1, old)); /* too short */
	assert_false(urn_sv_result(&qps[0], sge, 0, old));
	sge[1].lkey = 4;
	assert_false(urn_sv_result(&qps[0], sge, 2, old));
	sge[1] = (struct ibv_sge){NAME + 60, 8, 3}; /* the last one of 5 bytes is outside */
	assert_false(urn_sv_result(&qps[0], sge, 2, old));
	region.access = IBV_ACCESS_REMOTE_ATOMIC;
	sge[0] = (struct ibv_sge){NAME, 8, 3};
	assert_false(urn_sv_result(&qps[0], sge, 1, old));
}

/* The program may have unmapped the memory, or made it one that can't be written: the request
 * fails, and the program lives. */
static void
result_nowhere(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_sge sge[2] = {{NAME, 4, 3}, {NAME + 8, 4, 3}};

	(void)state;
	assert_int_equal(mprotect(words, page, PROT_READ), 0);
	assert_false(urn_sv_result(&qps[0], sge, 2, 1));
	assert_int_equal(words[0], 0);
	assert_int_equal(mprotect(words, page, PROT_NONE), 0);
	assert_false(urn_sv_result(&qps[0], sge, 2, 1));
	assert_int_equal(munmap(words, page), 0);
	assert_false(urn_sv_result(&qps[0], sge, 2, 1));
	/* The second element alone. */
	words = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(words, MAP_FAILED);
	assert_int_equal(munmap((uint8_t *)words + page, page), 0);
	region.base = (uint8_t *)words + page - 8;
	assert_false(urn_sv_result(&qps[0], sge, 2, 1));
	sge[1].addr = NAME + 4;
	assert_true(urn_sv_result(&qps[0], sge, 2, 1));
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, make, unmake)
	const struct CMUnitTest tests[] = {
		T(done),    T(word),	   T(nowhere), T(twin),
		T(stopped), T(unreadable), T(results), T(result_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
