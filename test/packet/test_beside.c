/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages for memory of another process go beside their completions (transport/beside.h):
 * no worker has work with them, they keep their order, and no completion tells of memory that is
 * gone.
 */
#include "probe.h"

#include "worker.h"

enum { LEN = 64, LATE = 4096 };
#define FAR_VA (PROBE_VA + 0x100000000ull)

struct fix {
	struct probe p;
	struct urn_space *space;
	struct urn_abi_beside *beside; /* messages beside the receive queue's completions */
	uint32_t far_key;	       /* foreign memory: the region's first bytes, at FAR_VA */
};

static void
open_fix(struct fix *f, const struct probe_config *cfg)
{
	char why[160];

	memset(f, 0, sizeof(*f));
	probe_open(&f->p, cfg);
	f->beside = calloc(f->p.rcq.mask + 1, sizeof(*f->beside));
	f->p.rcq.beside = f->beside;
	f->space = worker_open();
	assert_non_null(f->space);
	f->p.rcq.space = f->space;
	assert_int_equal(urn_mem_add_foreign(f->p.mem, f->p.pd, f->space,
					     (uintptr_t)probe_at(&f->p, 0), 2 * LATE, FAR_VA,
					     URN_ACCESS_LOCAL_WRITE | PROBE_RIGHTS, &f->far_key,
					     why, sizeof(why)),
			 0);
}

static void
free_far(struct fix *f)
{
	struct urn_region *region;

	assert_int_equal(urn_mem_kill_mr(f->p.mem, f->far_key, &region), 0);
	assert_int_equal(urn_memx_holds(f->p.memx, region), 0);
	urn_mem_free_mr(f->p.mem, region);
	f->far_key = 0;
}

static void
close_fix(struct fix *f)
{
	if (f->far_key)
		free_far(f);
	worker_close(f->space);
	probe_close(&f->p);
	free(f->beside);
}

/* Post a receive of foreign memory. */
static void
recv_far(struct fix *f, uint32_t off, uint32_t len, uint64_t wr_id)
{
	struct urn_rq *rq = &f->p.qp->rq;
	struct urn_abi_wq *hdr = f->p.q[f->p.cur].rq;
	uint32_t prod = atomic_load(&hdr->prod);
	struct urn_abi_rwqe *w = (void *)((uint8_t *)hdr + URN_ABI_WQ_SLOTS +
					  (size_t)(prod & rq->mask) * rq->stride);

	*w = (struct urn_abi_rwqe){.wr_id = wr_id, .num_sge = 1};
	*(struct urn_abi_sge *)(w + 1) =
		(struct urn_abi_sge){.addr = FAR_VA + off, .lkey = f->far_key, .length = len};
	atomic_store(&hdr->prod, prod + 1);
}

/* The message beside the completion that was looked at last. */
static void
expect_beside(struct fix *f, uint32_t off, uint32_t len, uint32_t seed)
{
	const struct urn_abi_cqe *c = probe_cqe(&f->p, true);
	const struct urn_abi_beside *b = &f->beside[(f->p.rcq_seen - 1) & f->p.rcq.mask];

	assert_true(c->wc_flags & URN_WCF_BESIDE);
	assert_int_equal(b->addr, (uintptr_t)probe_at(&f->p, off));
	assert_int_equal(b->length, len);
	check_fill(b->data, len, seed, 0);
	assert_int_equal(*(uint64_t *)(void *)probe_at(&f->p, off), 0);
}

/* No worker is asked; at the bound one is. */
static void
bound(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, &(struct probe_config){0});
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t len = URN_ABI_BESIDE - 1 + i;

		recv_far(&f, i * 512, 512, i);
		probe_send(&f.p, SEND_ONLY, RQ(i), len, i + 1);
		probe_turn(&f.p, 0);
		assert_int_equal(worker_under_way(f.space), len > URN_ABI_BESIDE);
		worker_do(f.space, 1, false);
		expect_recv(&f.p, i, SUCCESS);
		if (len <= URN_ABI_BESIDE)
			expect_beside(&f, i * 512, len, i + 1);
		expect_aeth(&f.p, RQ(i), SYN_ACK, i + 1);
	}
	check_fill(probe_at(&f.p, 1024), URN_ABI_BESIDE + 1, 3, 0);
	expect_count(&f.p, BESIDE, 2);
	close_fix(&f);
}

/* Mapped memory, memory of another client, and a queue without room for messages have none beside.
 */
static void
as_ever(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, &(struct probe_config){0});
	probe_recv(&f.p, LATE, LEN, 1);
	probe_send(&f.p, SEND_ONLY, RQ(0), LEN, 1);
	expect_recv(&f.p, 1, SUCCESS);
	check_fill(probe_at(&f.p, LATE), LEN, 1, 0);
	for (uint32_t i = 1; i < 3; i++) {
		if (i == 1)
			f.p.rcq.space = NULL;
		else
			f.p.rcq.beside = NULL;
		recv_far(&f, 0, LEN, 1 + i);
		probe_send(&f.p, SEND_ONLY, RQ(i), LEN, i);
		probe_turn(&f.p, 0);
		assert_int_equal(worker_do(f.space, 1, false), 1);
		expect_recv(&f.p, 1 + i, SUCCESS);
		check_fill(probe_at(&f.p, 0), LEN, i, 0);
	}
	expect_count(&f.p, BESIDE, 0);
	close_fix(&f);
}

/* A short message waits for a long one before it that a worker writes. */
static void
in_order(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, &(struct probe_config){0});
	recv_far(&f, 0, 1024, 1);
	recv_far(&f, LATE, 1024, 2);
	probe_send(&f.p, SEND_ONLY, RQ(0), 1000, 1);
	probe_send(&f.p, SEND_ONLY, RQ(1), LEN, 2);
	for (int i = 0; i < 5; i++)
		probe_turn(&f.p, 0);
	assert_int_equal(f.p.rcq.prod, f.p.rcq_seen);
	assert_int_equal(worker_do(f.space, 2, false), 1);
	expect_recv(&f.p, 1, SUCCESS);
	expect_recv(&f.p, 2, SUCCESS);
	expect_beside(&f, LATE, LEN, 2);
	check_fill(probe_at(&f.p, 0), 1000, 1, 0);
	close_fix(&f);
}

/* Memory that is taken away while its message waits: the message fails, and nothing tells of the
 * memory. */
static void
taken_away(void **state)
{
	static const uint8_t type[] = {URN_QPT_RC, URN_QPT_UC};
	struct urn_region *region;
	struct fix f;

	(void)state;
	for (unsigned int t = 0; t < 2; t++) {
		uint32_t short_key, far_key;
		char why[160];

		open_fix(&f, &(struct probe_config){.type = type[t]});
		far_key = f.far_key;
		assert_int_equal(urn_mem_add_foreign(f.p.mem, f.p.pd, f.space,
						     (uintptr_t)probe_at(&f.p, LATE), 512,
						     FAR_VA + LATE, URN_ACCESS_LOCAL_WRITE,
						     &short_key, why, sizeof(why)),
				 0);
		recv_far(&f, 0, 1024, 1);
		f.far_key = short_key;
		recv_far(&f, LATE, 512, 2);
		f.far_key = far_key;
		probe_send(&f.p, (uint8_t)(SEND_ONLY | (t ? 0x20 : 0)), RQ(0), 1000, 1);
		probe_send(&f.p, (uint8_t)(SEND_ONLY | (t ? 0x20 : 0)), RQ(1), LEN, 2);
		probe_turn(&f.p, 0);
		assert_int_equal(urn_mem_kill_mr(f.p.mem, short_key, &region), 0);
		assert_int_equal(urn_memx_holds(f.p.memx, region), 0);
		urn_mem_free_mr(f.p.mem, region);
		assert_int_equal(worker_do(f.space, 1, false), 1);
		expect_recv(&f.p, 1, SUCCESS);
		expect_recv(&f.p, 2, LOC_PROT_ERR);
		assert_int_equal(probe_cqe(&f.p, true)->wc_flags, 0);
		expect_count(&f.p, BESIDE, 0);
		close_fix(&f);
	}
}

/*
 * The program can answer at once, and its peer may look for its send's completion, once, when the
 * answer comes: so the acknowledgement is not kept back behind the answer.
 */
static void
acknowledged_first(void **state)
{
	struct fix f;

	(void)state;
	open_fix(&f, &(struct probe_config){0});
	recv_far(&f, 0, LEN, 1);
	probe_send(&f.p, SEND_ONLY, RQ(0), LEN, 1);
	probe_post(&f.p, URN_WR_SEND, 0, LATE, LEN, 0, 2);
	probe_turn(&f.p, 0);
	expect_aeth(&f.p, RQ(0), SYN_ACK, 1);
	expect_frame(&f.p, SEND_ONLY, SQ(0));
	expect_recv(&f.p, 1, SUCCESS);
	close_fix(&f);
}

/* A queue that is full keeps the messages that nobody has read. */
static void
overrun(void **state)
{
	uint32_t n, i;
	struct fix f;

	(void)state;
	open_fix(&f, &(struct probe_config){0});
	n = f.p.rcq.mask + 1;
	for (i = 0; i <= n; i++) {
		recv_far(&f, i % 64 * 64, LEN, i);
		probe_send(&f.p, SEND_ONLY, RQ(i), LEN, i);
		probe_turn(&f.p, 0);
	}
	expect_count(&f.p, CQ_OVERRUN, 1);
	expect_count(&f.p, BESIDE, n);
	for (i = 0; i < n; i++)
		check_fill(f.beside[i].data, LEN, i, 0);
	close_fix(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bound),    cmocka_unit_test(as_ever),
		cmocka_unit_test(in_order), cmocka_unit_test(taken_away),
		cmocka_unit_test(overrun),  cmocka_unit_test(acknowledged_first),
	};

	return cmocka_run_group_tests_name("beside", tests, NULL, NULL);
}
