/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order of a peer's writes through one QP, where some of them go to memory of another
 * process, which a worker writes late, and some to memory that is mapped (doc/reference/verbs.md
 * "Order"; IBTA 9.5): completions, acknowledgements and answers come in order, and none
 * before the bytes of all requests up to it.
 */
#include "probe.h"

#include "worker.h"

enum { FAR = 0, NEAR = 8192, LEN = 64 };
#define FAR_VA (PROBE_VA + 0x100000000ull)

struct fix {
	struct probe p;
	struct urn_space *space;
	uint32_t far_key; /* foreign memory: the region's bytes from FAR on, at FAR_VA */
};

static void
open_fix(struct fix *f, unsigned int qps)
{
	char why[160];

	memset(f, 0, sizeof(*f));
	probe_open(&f->p, &(struct probe_config){.qps = qps});
	f->space = worker_open();
	assert_non_null(f->space);
	assert_int_equal(urn_mem_add_foreign(f->p.mem, f->p.pd, f->space,
					     (uintptr_t)probe_at(&f->p, FAR), 4096, FAR_VA,
					     URN_ACCESS_LOCAL_WRITE | PROBE_RIGHTS, &f->far_key, why,
					     sizeof(why)), 0);
}

static void
close_fix(struct fix *f)
{
	struct urn_region *region;

	assert_int_equal(worker_under_way(f->space), 0);
	assert_int_equal(urn_mem_kill_mr(f->p.mem, f->far_key, &region), 0);
	assert_int_equal(urn_memx_holds(f->p.memx, region), 0);
	urn_mem_free_mr(f->p.mem, region);
	worker_close(f->space);
	probe_close(&f->p);
}

/* A WRITE of LEN bytes of `seed` to foreign memory. */
static void
write_far(struct fix *f, uint32_t psn, uint32_t off, uint32_t seed)
{
	struct frame w = frame_of(WRITE_ONLY, psn);

	w.va = FAR_VA + off;
	w.rkey = f->far_key;
	w.length = w.len = LEN;
	w.ack = true;
	probe_fill(w.data, LEN, seed, 0);
	probe_put(&f->p, &w);
}

static void
write_near(struct fix *f, uint32_t psn, uint32_t off, uint32_t seed)
{
	probe_write(&f->p, WRITE_ONLY, psn, NEAR + off, LEN, LEN, seed);
}

static bool
landed(struct fix *f, uint32_t off)
{
	return *(uint64_t *)(void *)probe_at(&f->p, off) != 0;
}

/* Some turns, in which the worker does nothing. */
static void
turns(struct fix *f)
{
	for (int i = 0; i < 5; i++)
		probe_turn(&f->p, 0);
}

/* An ACK says that the bytes of its request are written, and those of all requests before it. */
static void
acknowledged_in_order(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, 1);
	write_far(&f, RQ(0), 0, 1);
	write_near(&f, RQ(1), 0, 2);
	write_far(&f, RQ(2), 512, 3);
	turns(&f);
	assert_int_equal(f.p.seen_n, f.p.looked);
	assert_int_equal(worker_do(f.space, 1, false), 1);
	turns(&f);
	assert_true(landed(&f, FAR) && landed(&f, NEAR));
	assert_false(landed(&f, FAR + 512));
	assert_int_equal(f.p.seen_n - f.p.looked, 1);
	assert_int_equal(worker_do(f.space, 1, false), 1);
	expect_aeth(&f.p, RQ(1), SYN_ACK, 2);
	expect_aeth(&f.p, RQ(2), SYN_ACK, 3);
	check_fill(probe_at(&f.p, FAR), LEN, 1, 0);
	check_fill(probe_at(&f.p, NEAR), LEN, 2, 0);
	check_fill(probe_at(&f.p, FAR + 512), LEN, 3, 0);
	close_fix(&f);
}

/* A receive completes, and an atomic is answered, behind the bytes of all requests before. */
static void
completed_in_order(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, 1);
	probe_recv(&f.p, NEAR, LEN, 7);
	write_far(&f, RQ(0), 0, 1);
	probe_send(&f.p, SEND_ONLY, RQ(1), LEN, 2);
	probe_atomic(&f.p, FETCH_ADD, RQ(2), NEAR + 512, 5, 0);
	turns(&f);
	assert_int_equal(f.p.rcq.prod, f.p.rcq_seen);
	assert_int_equal(f.p.seen_n, f.p.looked);
	assert_int_equal(worker_do(f.space, 1, false), 1);
	assert_true(landed(&f, FAR));
	expect_recv(&f.p, 7, SUCCESS);
	assert_int_equal(expect_frame(&f.p, ATOMIC_ACK, RQ(2))->orig, 0);
	assert_int_equal(*(uint64_t *)(void *)probe_at(&f.p, NEAR + 512), 5);
	close_fix(&f);
}

/* Between QPs there is no order: a WRITE of one to mapped memory does not wait for another's. */
static void
other_qp(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, 2);
	write_far(&f, RQ(0), 0, 1);
	turns(&f);
	probe_use(&f.p, 1);
	write_near(&f, RQ(0), 0, 2);
	probe_turn(&f.p, 0);
	assert_true(landed(&f, NEAR));
	turns(&f);
	assert_int_equal(f.p.seen_n - f.p.looked, 1); /* it is acknowledged, too */
	assert_int_equal(worker_do(f.space, 8, false), 1);
	expect_aeth(&f.p, RQ(0), SYN_ACK, 1);
	probe_use(&f.p, 0);
	expect_aeth(&f.p, RQ(0), SYN_ACK, 1);
	close_fix(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged_in_order), cmocka_unit_test(completed_in_order),
		cmocka_unit_test(other_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
