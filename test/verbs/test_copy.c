/* SPDX-License-Identifier: BSD-3-Clause */
/* URNIC_COPY=yes: the library copies sources in memory that is not shared when they are posted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEPTH = 64, SLOTS = 16, SLOT = RIG_BUF / SLOTS, HEAP = DEPTH * SLOT };

/* The rig, and heap memory at its end 0. */
struct bench {
	struct rig r;
	uint8_t *heap; /* HEAP bytes long */
	struct ibv_mr *mr;
};

/* Connect both ends anew: from then on requests of end 0 are copied, since it has a region. */
static void
anew(struct bench *b)
{
	const struct rig_qp o = {.timeout = 18, .depth = DEPTH};

	for (int e = 0; e < 2; e++)
		rig_to(b->r.end[e].qp, IBV_QPS_RESET);
	for (int e = 0; e < 2; e++)
		rig_connect(&b->r, e, b->r.end[e].qp, 100, b->r.end[!e].qp->qp_num, 100, &o);
}

static void
bench_open(struct bench *b)
{
	rig_open(&b->r, &(struct rig_config){.remote = true}, &(struct rig_qp){.timeout = 18, .depth = DEPTH});
	b->heap = malloc(HEAP);
	b->mr = ibv_reg_mr(b->r.end[0].pd, b->heap, HEAP, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(b->mr);
	anew(b);
}

static void
bench_close(struct bench *b)
{
	assert_int_equal(ibv_dereg_mr(b->mr), 0);
	free(b->heap);
	rig_close(&b->r);
}

/* A WRITE of these elements to an offset of the other end's buffer. */
static void
write_from(struct bench *b, struct ibv_sge *sge, int n, size_t to, uint64_t wr_id)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge,
		.num_sge = n,
		.wr.rdma = {(uintptr_t)b->r.end[1].buf + to, b->r.end[1].mr->rkey},
	};

	rig_send_on(b->r.end[0].qp, &wr);
}

static void
expect_filled(const uint8_t *p, size_t n, uint32_t seed)
{
	uint8_t *want = malloc(n);

	rig_fill(want, n, seed);
	assert_memory_equal(p, want, n);
	free(want);
}

/* The peer gets the bytes as they were when posted, not as they were changed afterwards. */
static void
as_posted(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	for (uint32_t i = 0; i < 50; i++) {
		struct ibv_sge sge = {(uintptr_t)b.heap + 3, 60000, b.mr->lkey};

		rig_fill(b.heap + 3, 60000, i);
		write_from(&b, &sge, 1, 0, i);
		memset(b.heap, 0xee, HEAP);
		assert_int_equal(rig_expect(&b.r, 0, IBV_WC_SUCCESS).wr_id, i);
		expect_filled(b.r.end[1].buf, 60000, i);
	}
	bench_close(&b);
}

/* Elements of several regions, one with an iova of its own; in a SEND. */
static void
gathered(void **state)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = sge, .num_sge = 3, .imm_data = htobe32(9)};
	uint8_t *was = malloc(HEAP);
	struct ibv_mr *other;
	struct ibv_wc wc;
	struct bench b;

	(void)state;
	bench_open(&b);
	other = ibv_reg_mr_iova(b.r.end[0].pd, b.heap + 500000, 1000, 0x777000, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(other);
	rig_fill(was, HEAP, 1);
	memcpy(b.heap, was, HEAP);
	sge[0] = (struct ibv_sge){(uintptr_t)b.heap + 100, 5000, b.mr->lkey};
	sge[1] = (struct ibv_sge){0x777000 + 10, 990, other->lkey};
	sge[2] = (struct ibv_sge){(uintptr_t)b.heap + 7, 1, b.mr->lkey};
	rig_recv(&b.r, 1, 0, SLOT, 6);
	rig_send_on(b.r.end[0].qp, &wr);
	memset(sge, 0, sizeof(sge));
	memset(b.heap, 0, HEAP);
	rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	wc = rig_expect(&b.r, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 5991);
	assert_memory_equal(b.r.end[1].buf, was + 100, 5000);
	assert_memory_equal(b.r.end[1].buf + 5000, was + 500010, 990);
	assert_int_equal(b.r.end[1].buf[5990], was[7]);
	assert_int_equal(ibv_dereg_mr(other), 0);
	free(was);
	bench_close(&b);
}

/* All sizes, many in flight, round the ring many times; each message arrives as it was when posted. */
static void
round_the_ring(void **state)
{
	uint32_t len[SLOTS], done = 0, total = 1000;
	uint64_t rng = 4;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (uint32_t i = 0; done < total;) {
		if (i < total && i - done < SLOTS) {
			struct ibv_sge sge = {(uintptr_t)b.heap, 0, b.mr->lkey};

			len[i % SLOTS] = sge.length = 1 + (uint32_t)(rig_rand(&rng) % SLOT);
			rig_fill(b.heap, sge.length, i);
			write_from(&b, &sge, 1, (size_t)(i % SLOTS) * SLOT, i);
			i++;
			continue;
		}
		assert_int_equal(rig_expect(&b.r, 0, IBV_WC_SUCCESS).wr_id, done);
		expect_filled(b.r.end[1].buf + (size_t)(done % SLOTS) * SLOT, len[done % SLOTS], done);
		done++;
	}
	bench_close(&b);
}

/* More bytes than the ring holds wait for receives: data without room in the ring is read where it lies. */
static void
more_than_there_is_room_for(void **state)
{
	enum { TOTAL = 400, LEN = 60000, AT_ONCE = 7 };
	uint32_t posted = 0, done = 0;
	struct bench b;

	(void)state;
	bench_open(&b);
	while (done < TOTAL) {
		for (; posted < TOTAL && posted - done < DEPTH; posted++) {
			uint8_t *from = b.heap + (size_t)(posted % DEPTH) * LEN;
			struct ibv_sge sge = {(uintptr_t)from, LEN, b.mr->lkey};
			struct ibv_send_wr wr = {.wr_id = posted, .opcode = IBV_WR_SEND,
						 .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

			rig_fill(from, LEN, posted);
			rig_send_on(b.r.end[0].qp, &wr);
		}
		for (unsigned int k = 0; k < AT_ONCE && done < TOTAL; k++, done++) {
			rig_recv(&b.r, 1, 0, SLOT, done);
			assert_int_equal(rig_expect(&b.r, 1, IBV_WC_SUCCESS).wr_id, done);
			expect_filled(b.r.end[1].buf, LEN, done);
			assert_int_equal(rig_expect(&b.r, 0, IBV_WC_SUCCESS).wr_id, done);
		}
	}
	bench_close(&b);
}

/* Memory that may not be read is refused as ever, and a QP that failed works again after a reset. */
static void
refused(void **state)
{
	struct ibv_pd *pd;
	struct ibv_mr *foreign, *gone;
	struct bench b;
	uint32_t gone_key;

	(void)state;
	bench_open(&b);
	pd = ibv_alloc_pd(b.r.end[0].ctx);
	foreign = ibv_reg_mr(pd, b.heap, 4096, IBV_ACCESS_LOCAL_WRITE);
	gone = ibv_reg_mr(b.r.end[0].pd, b.heap, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_true(foreign && gone);
	gone_key = gone->lkey;
	assert_int_equal(ibv_dereg_mr(gone), 0);
	for (uint32_t i = 0; i < 5; i++) {
		struct ibv_sge bad[] = {
			{(uintptr_t)b.heap + HEAP - 99, 100, b.mr->lkey}, /* beyond the region's end */
			{(uintptr_t)b.heap - 1, 100, b.mr->lkey},         /* before its beginning */
			{(uintptr_t)b.heap, 100, foreign->lkey},          /* region of another protection domain */
			{(uintptr_t)b.heap, 100, gone_key},               /* region deregistered */
			{(uintptr_t)b.heap, 100, 0xfffffe00},             /* key that never existed */
		};
		struct ibv_sge good = {(uintptr_t)b.heap, SLOT, b.mr->lkey};

		write_from(&b, &bad[i], 1, 0, 1);
		rig_expect(&b.r, 0, IBV_WC_LOC_PROT_ERR);
		anew(&b);
		for (uint32_t k = 0; k < 3; k++) {
			rig_fill(b.heap, SLOT, 10 * i + k);
			write_from(&b, &good, 1, SLOT, 2);
			memset(b.heap, 0, SLOT);
			rig_expect(&b.r, 0, IBV_WC_SUCCESS);
			expect_filled(b.r.end[1].buf + SLOT, SLOT, 10 * i + k);
		}
	}
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	bench_close(&b);
}

/* Memory that is gone after its registration is an error of the request, and no fault of the
 * program. */
static void
unmapped(void **state)
{
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct bench b;
	uint8_t *page;

	(void)state;
	bench_open(&b);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	mr = ibv_reg_mr(b.r.end[0].pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(munmap(page, 4096), 0);
	sge = (struct ibv_sge){(uintptr_t)page, 4096, mr->lkey};
	write_from(&b, &sge, 1, 0, 1);
	rig_expect(&b.r, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	anew(&b);
	sge = (struct ibv_sge){(uintptr_t)b.heap, SLOT, b.mr->lkey};
	rig_fill(b.heap, SLOT, 3);
	write_from(&b, &sge, 1, 0, 2);
	rig_expect(&b.r, 0, IBV_WC_SUCCESS);
	expect_filled(b.r.end[1].buf, SLOT, 3);
	bench_close(&b);
}

/* A queue pair that can send before there is such a region has no copies, and works. */
static void
region_comes_later(void **state)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig r;
	uint8_t *heap = malloc(SLOT);

	(void)state;
	rig_open(&r, &(struct rig_config){.remote = true}, &(struct rig_qp){.timeout = 18});
	mr = ibv_reg_mr(r.end[0].pd, heap, SLOT, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	rig_fill(heap, SLOT, 8);
	sge = (struct ibv_sge){(uintptr_t)heap, SLOT, mr->lkey};
	write_from(&(struct bench){.r = r}, &sge, 1, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	expect_filled(r.end[1].buf, SLOT, 8);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(heap);
	rig_close(&r);
}

/* URNIC_COPY=short copies up to 4 KiB; a longer message is sent without a copy. */
static void
only_short(void **state)
{
	struct ibv_sge sge;
	struct bench b;

	(void)state;
	setenv("URNIC_COPY", "short", 1);
	bench_open(&b);
	for (uint32_t i = 0; i < 50; i++) {
		sge = (struct ibv_sge){(uintptr_t)b.heap, 4096, b.mr->lkey};
		rig_fill(b.heap, 4096, i);
		write_from(&b, &sge, 1, 0, i);
		memset(b.heap, 0xee, 4096);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		expect_filled(b.r.end[1].buf, 4096, i);
		sge.length = 4097;
		rig_fill(b.heap, 4097, i + 100);
		write_from(&b, &sge, 1, 0, i);
		rig_expect(&b.r, 0, IBV_WC_SUCCESS);
		expect_filled(b.r.end[1].buf, 4097, i + 100);
	}
	bench_close(&b);
	setenv("URNIC_COPY", "yes", 1);
}

/* Any other word than yes, short and no is reported as a mistake. */
static void
other_words(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.remote = true}, &(struct rig_qp){0});
	setenv("URNIC_COPY", "maybe", 1);
	assert_null(urn_attach_connect(r.path, NULL));
	assert_non_null(
		strstr(urn_attach_error(), "URNIC_COPY is 'maybe'; it is yes, short or no"));
	setenv("URNIC_COPY", "yes", 1);
	rig_close(&r);
}

static int
say_yes(void **state)
{
	(void)state;
	return setenv("URNIC_COPY", "yes", 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_posted),
		cmocka_unit_test(gathered),
		cmocka_unit_test(round_the_ring),
		cmocka_unit_test(more_than_there_is_room_for),
		cmocka_unit_test(refused),
		cmocka_unit_test(unmapped),
		cmocka_unit_test(region_comes_later),
		cmocka_unit_test(only_short),
		cmocka_unit_test(other_words),
	};

	return cmocka_run_group_tests_name("copy", tests, say_yes, NULL);
}
