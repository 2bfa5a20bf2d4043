/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the memory of another process. */
#include "foreign_bench.h"

#include "memory/check.h"
#include "memory/foreign.h"

#include <sys/mman.h>
#include <unistd.h>

static void
run_one(struct ft *f, int kind, uint64_t off, uint32_t len, uint8_t want)
{
	struct urn_memop op = ft_op(f, kind, 0, off, len);

	ft_run(f, &op, 1);
	assert_int_equal(op.status, want);
}

/* One operation each way, at and around page borders, with nothing beside it touched. */
static void
test_one(void **state)
{
	struct ft *f = *state;
	uint8_t *model = malloc(LEN), *got = malloc(LEN);

	ft_fill(f, model, LEN);
	child_write(&f->child, CHILD_AT, model, LEN);
	for (uint32_t len = 1; len <= 4096; len = len * 3 + 1) {
		for (int at = -3; at <= 3; at++) {
			uint64_t off = 2 * PAGE - len / 2 + (uint64_t)at;

			memset(f->frame[0].data, 0xee, FT_FRAME);
			run_one(f, URN_MEMOP_GATHER, off, len, URN_MEMOP_DONE);
			assert_memory_equal(f->frame[0].data, model + off, len);
			assert_int_equal(f->frame[0].data[len], 0xee);
			ft_fill(f, f->frame[0].data, FT_FRAME);
			memcpy(model + off, f->frame[0].data, len);
			run_one(f, URN_MEMOP_PLACE, off, len, URN_MEMOP_DONE);
		}
	}
	child_read(&f->child, CHILD_AT, got, LEN);
	assert_memory_equal(got, model, LEN);
	/* The last byte, and length 0: an operation without bytes is done at once, and needs no worker. */
	run_one(f, URN_MEMOP_PLACE, LEN - 1, 1, URN_MEMOP_DONE);
	struct urn_memop op = ft_op(f, URN_MEMOP_PLACE, 0, 0, 0);
	assert_int_equal(urn_memx_execute(f->x, &op, 1), 0);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	free(model);
	free(got);
}

/* A burst of packets with neighbouring targets, longer than a run, both ways. */
static void
test_bursts(void **state)
{
	struct ft *f = *state;
	uint8_t *model = malloc(LEN), *got = malloc(LEN);
	struct urn_memop op[200];

	for (uint32_t len = 1; len <= 1200; len = len * 7 + 3) {
		uint64_t off = 5;

		ft_fill(f, model, LEN);
		child_write(&f->child, CHILD_AT, model, LEN);
		for (uint32_t i = 0; i < 200; i++, off += len) {
			ft_fill(f, f->frame[i].data, len);
			memcpy(model + off, f->frame[i].data, len);
			op[i] = ft_op(f, URN_MEMOP_PLACE, i, off, len);
		}
		ft_run(f, op, 200);
		child_read(&f->child, CHILD_AT, got, LEN);
		assert_memory_equal(got, model, LEN);
		for (uint32_t i = 0; i < 200; i++) {
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
			memset(f->frame[i].data, 0, FT_FRAME);
			op[i] = ft_op(f, URN_MEMOP_GATHER, i, op[i].addr - CHILD_AT, len);
		}
		ft_run(f, op, 200);
		for (uint32_t i = 0; i < 200; i++) {
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
			assert_memory_equal(f->frame[i].data, model + (op[i].addr - CHILD_AT), len);
			assert_int_equal(f->frame[i].data[len], 0);
		}
	}
	free(model);
	free(got);
}

/* Random operations in bursts against a model: operations on the same bytes are done in order. */
static void
test_model(void **state)
{
	struct ft *f = *state;
	uint8_t *model = malloc(LEN), *got = malloc(LEN), (*want)[FT_FRAME] = malloc(64 * FT_FRAME);
	struct urn_memop op[64];
	uint64_t word[64];

	ft_fill(f, model, LEN);
	child_write(&f->child, CHILD_AT, model, LEN);
	for (int round = 0; round < 300; round++) {
		uint32_t n = 1 + (uint32_t)(test_random(&f->rng) % 64);
		/* A small window: many operations overlap. Sometimes targets follow one another. */
		uint64_t base = test_random(&f->rng) % (LEN - 4 * FT_FRAME), off = base;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t kind = (uint32_t)(test_random(&f->rng) % 8), len;
			uint64_t *w = urn_pkt(&f->frame[i].m)->record.operand;

			len = (uint32_t)(1 + test_random(&f->rng) % (round % 3 ? 200 : 4096));
			if (test_random(&f->rng) & 1)
				off = base + test_random(&f->rng) % FT_FRAME;
			if (off + len > LEN)
				off = base;
			kind = kind == 0   ? URN_MEMOP_CMP_SWAP
			       : kind == 1 ? URN_MEMOP_FETCH_ADD
			       : kind < 5  ? URN_MEMOP_GATHER
					   : URN_MEMOP_PLACE;
			if (kind >= URN_MEMOP_CMP_SWAP) {
				off &= ~7ull;
				len = 8;
				memcpy(&word[i], model + off, 8);
				w[0] = test_random(&f->rng) & 1 ? word[i] : 5;
				w[1] = test_random(&f->rng);
				uint64_t now = kind == URN_MEMOP_FETCH_ADD ? word[i] + w[0]
					       : w[0] == word[i]	   ? w[1]
									   : word[i];
				memcpy(model + off, &now, 8);
			}
			ft_fill(f, f->frame[i].data, len);
			if (kind == URN_MEMOP_PLACE)
				memcpy(model + off, f->frame[i].data, len);
			else if (kind == URN_MEMOP_GATHER)
				memcpy(want[i], model + off, len);
			op[i] = ft_op(f, (int)kind, i, off, len);
			off += len;
		}
		ft_run(f, op, n);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
			if (op[i].kind == URN_MEMOP_GATHER)
				assert_memory_equal(f->frame[i].data, want[i], op[i].len);
			if (op[i].kind >= URN_MEMOP_CMP_SWAP)
				assert_true(urn_pkt(&f->frame[i].m)->record.operand[0] == word[i]);
		}
	}
	child_read(&f->child, CHILD_AT, got, LEN);
	assert_memory_equal(got, model, LEN);
	free(model);
	free(got);
	free(want);
}

/* More operations than a lane has slots: all are taken, answered once, and take effect in order. */
static void
test_overflow(void **state)
{
	struct ft *f = *state;
	struct urn_memop op[160], got[32];
	uint64_t *frames = calloc(FT_FRAMES, sizeof(*frames)), since = 0, sum = 0;
	unsigned int put = 0, taken = 0, n;

	for (int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 160; i++, put++) {
			/* 1,000 operations that add 1 at one place, then others. */
			if (put < 1000) {
				urn_pkt(&f->frame[put].m)->record.operand[0] = 1;
				op[i] = ft_op(f, URN_MEMOP_FETCH_ADD, put, 0, 8);
			} else {
				op[i] = ft_op(f, URN_MEMOP_PLACE, 1000, 64 + put % 8, 1);
			}
		}
		assert_int_equal(urn_memx_execute(f->x, op, 160), 160);
		for (unsigned int i = 0; i < 160; i++)
			assert_int_equal(op[i].status, URN_MEMOP_PENDING);
	}
	assert_int_equal(urn_memx_holds(f->x, NULL), put);
	assert_int_equal(urn_memx_holds(f->x, f->region), put);
	while (urn_memx_holds(f->x, NULL)) {
		n = urn_memx_poll(f->x, got, 32);
		if (n == 0)
			ft_wait(&since);
		for (unsigned int i = 0; i < n; i++, taken++) {
			assert_int_equal(got[i].status, URN_MEMOP_DONE);
			if (got[i].kind == URN_MEMOP_FETCH_ADD)
				frames[got[i].tag]++;
		}
	}
	assert_int_equal(taken, put);
	for (unsigned int i = 0; i < 1000; i++) {
		assert_int_equal(frames[i], 1);
		/* In order: the i-th saw the sum of those before it. */
		assert_int_equal(urn_pkt(&f->frame[i].m)->record.operand[0], i);
	}
	child_read(&f->child, CHILD_AT, &sum, 8);
	assert_int_equal(sum, 1000);
	free(frames);
}

/* memx.h: impossible operations fail, and those behind them go on */
static void
test_impossible(void **state)
{
	struct ft *f = *state;
	uint8_t before[64], after[64];
	struct urn_memop op[3];

	ft_fill(f, before, sizeof(before));
	child_write(&f->child, CHILD_AT, before, sizeof(before));
	for (int kind = URN_MEMOP_CMP_SWAP; kind < 256; kind += 3) {
		urn_pkt(&f->frame[0].m)->record.operand[0] = 9;
		run_one(f, kind, kind % 7 + 1, 8, URN_MEMOP_FAILED);
		assert_int_equal(urn_pkt(&f->frame[0].m)->record.operand[0], 9);
	}
	child_read(&f->child, CHILD_AT, after, sizeof(after));
	assert_memory_equal(before, after, sizeof(before));
	op[0] = ft_op(f, URN_MEMOP_GATHER, 0, 0, 16);
	op[1] = ft_op(f, 200, 1, 0, 16);
	op[2] = ft_op(f, URN_MEMOP_GATHER, 2, 16, 16);
	ft_run(f, op, 3);
	assert_int_equal(op[0].status, URN_MEMOP_DONE);
	assert_int_equal(op[1].status, URN_MEMOP_FAILED);
	assert_int_equal(op[2].status, URN_MEMOP_DONE);
	assert_memory_equal(f->frame[2].data, before + 16, 16);
}

/* A hole in the middle: operations that touch it fail, and no others of the run. */
static void
test_hole(void **state)
{
	struct ft *f = *state;
	uint8_t *got = malloc(LEN);
	struct urn_memop op[32];

	assert_int_equal(child_do(&f->child, CHILD_UNMAP, CHILD_AT + 8 * PAGE, PAGE, 0), 0);
	for (int kind = URN_MEMOP_GATHER; kind <= URN_MEMOP_PLACE; kind++) {
		/* 32 operations of half a page that begin a quarter page behind a border. */
		for (uint32_t i = 0; i < 32; i++) {
			memset(f->frame[i].data, 0x10 + (int)i, FT_FRAME);
			op[i] = ft_op(f, kind, i, PAGE / 4 + i * (PAGE / 2), PAGE / 2);
		}
		ft_run(f, op, 32);
		for (uint32_t i = 0; i < 32; i++) {
			uint64_t at = op[i].addr - CHILD_AT;
			bool hit = at < 9 * PAGE && at + PAGE / 2 > 8 * PAGE;

			assert_int_equal(op[i].status, hit ? URN_MEMOP_FAILED : URN_MEMOP_DONE);
		}
	}
	child_read(&f->child, CHILD_AT, got, 8 * PAGE);
	for (uint32_t i = 0; i < 15; i++)
		for (uint32_t b = 0; b < PAGE / 2; b++)
			assert_int_equal(got[PAGE / 4 + i * (PAGE / 2) + b], 0x10 + i);
	child_read(&f->child, CHILD_AT + 9 * PAGE, got, 8 * PAGE);
	for (uint32_t b = PAGE / 4; b < 7 * PAGE; b++)
		assert_int_equal(got[b], 0x10 + (9 * PAGE + b - PAGE / 4) / (PAGE / 2));
	assert_int_equal(got[0], 0); /* bytes of the failed operation */
	free(got);
}

/* A program may later change its mappings; operations on shared ones that it protects fail. */
static void
test_protect_later(void **state)
{
	struct ft *f = *state;
	uint8_t got[16];

	memset(f->frame[0].data, 0x77, 16);
	assert_int_equal(child_do(&f->child, CHILD_PROTECT, CHILD_AT, PAGE, PROT_READ), 0);
	struct urn_memop op = ft_op(f, URN_MEMOP_PLACE, 0, 0, 16);
	ft_run(f, &op, 1);
	child_read(&f->child, CHILD_AT, got, 16);
	/* Like pinned pages; a kernel that does not force the access makes the operation fail. */
	assert_int_equal(got[0], op.status == URN_MEMOP_DONE ? 0x77 : 0);

	ft_dereg(f);
	assert_int_equal(child_do(&f->child, CHILD_MAP, CHILD_AT, LEN, RW | 0x100), 0);
	ft_reg(f, RIGHTS);
	run_one(f, URN_MEMOP_PLACE, PAGE - 8, 16, URN_MEMOP_DONE);
	assert_int_equal(child_do(&f->child, CHILD_PROTECT, CHILD_AT, PAGE, PROT_READ), 0);
	memset(f->frame[0].data, 0x88, 16);
	run_one(f, URN_MEMOP_PLACE, PAGE - 32, 16, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_FETCH_ADD, PAGE - 32, 8, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_GATHER, PAGE - 32, 16, URN_MEMOP_DONE);
	assert_int_equal(child_do(&f->child, CHILD_UNMAP, CHILD_AT, LEN, 0), 0);
	run_one(f, URN_MEMOP_PLACE, 0, 16, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_GATHER, 0, 16, URN_MEMOP_FAILED);
}

/* The client dies with many operations in flight: all are answered, and later ones fail. */
static void
test_killed(void **state)
{
	struct ft *f = *state;
	struct urn_memop op[160], got[32];
	unsigned int taken = 0, failed = 0, n;
	uint64_t since = 0;

	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < 160; i++)
			op[i] = ft_op(f, (int)(i & 1), i, (i * 1000) % (LEN - 4096), 4096);
		assert_int_equal(urn_memx_execute(f->x, op, 160), 160);
		if (round == 5)
			child_end(&f->child);
	}
	while (urn_memx_holds(f->x, NULL)) {
		n = urn_memx_poll(f->x, got, 32);
		if (n == 0)
			ft_wait(&since);
		for (unsigned int i = 0; i < n; i++)
			failed += got[i].status == URN_MEMOP_FAILED;
		taken += n;
	}
	assert_int_equal(taken, 1600);
	assert_true(failed >= 4 * 160);
	run_one(f, URN_MEMOP_GATHER, 0, 8, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_PLACE, 0, 8, URN_MEMOP_FAILED);
	assert_false(urn_space_alive(f->space));
}

/* No operation reaches the program that the client executes, which has memory at the same place. */
static void
test_exec(void **state)
{
	struct ft *f = *state;
	uint8_t *got = malloc(LEN);

	run_one(f, URN_MEMOP_PLACE, 0, 4096, URN_MEMOP_DONE);
	child_ask(&f->child, CHILD_EXEC, CHILD_AT, LEN, 0);
	/* Operations are in flight before, while and after the client executes. */
	for (int i = 0; i < 2000; i++) {
		struct urn_memop op[2];

		memset(f->frame[0].data, 0xbb, 64);
		memset(f->frame[1].data, 0xbb, 64);
		op[0] = ft_op(f, URN_MEMOP_PLACE, 0, 64ull * ((unsigned int)i % 64), 64);
		op[1] = ft_op(f, URN_MEMOP_GATHER, 1, 64ull * ((unsigned int)i % 64), 64);
		ft_run(f, op, 2);
		if (op[0].status == URN_MEMOP_FAILED)
			assert_int_equal(op[1].status, URN_MEMOP_FAILED);
		/* No byte is the victim's. */
		if (op[1].status == URN_MEMOP_DONE)
			assert_int_equal(f->frame[1].data[5], 0xbb);
	}
	assert_int_equal(child_answer(&f->child), 0);
	for (uint64_t off = 0; off < LEN; off += 4096) {
		run_one(f, URN_MEMOP_PLACE, off, 4096, URN_MEMOP_FAILED);
		run_one(f, URN_MEMOP_GATHER, off, 4096, URN_MEMOP_FAILED);
		run_one(f, URN_MEMOP_FETCH_ADD, off, 8, URN_MEMOP_FAILED);
	}
	child_read(&f->child, CHILD_AT, got, LEN);
	for (uint64_t i = 0; i < LEN; i++)
		assert_int_equal(got[i], (uint8_t)(i * 7));
	/* Nor can memory be registered there with the old descriptor. */
	char why[256];
	uint32_t key;
	assert_int_equal(test_reg_foreign(f->mem, f->pd, f->space, CHILD_AT, 8, 0, RIGHTS, &key,
					     why, sizeof(why)),
			 EFAULT);
	assert_non_null(strstr(why, "another program"));
	free(got);
}

/* After a fork writes go to the parent, and the child keeps its bytes. */
static void
test_fork(void **state)
{
	struct ft *f = *state;
	uint8_t got[64], before[64];

	ft_fill(f, before, 64);
	child_write(&f->child, CHILD_AT + PAGE, before, 64);
	assert_int_equal(child_do(&f->child, CHILD_FORK, 0, 0, 0), 0);
	ft_fill(f, f->frame[0].data, 64);
	run_one(f, URN_MEMOP_PLACE, PAGE, 64, URN_MEMOP_DONE);
	child_read(&f->child, CHILD_AT + PAGE, got, 64);
	assert_memory_equal(got, f->frame[0].data, 64);
	struct {
		uint64_t w[4];
	} cmd = {{CHILD_READ_FORK, CHILD_AT + PAGE, 64, 0}};
	child_ask(&f->child, CHILD_READ_FORK, cmd.w[1], 64, 0);
	for (size_t have = 0; have < 64;) {
		ssize_t n = read(f->child.sock, got + have, 64 - have);

		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_memory_equal(got, before, 64);
}

/* Two engines on one space: atomics of both count, none is lost. */
static void
test_two_engines(void **state)
{
	struct ft *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x[2] = {f->x, urn_memx_create(&cfg)};
	struct urn_memop op[2][32], got[32];
	uint64_t sum, since = 0;

	for (int round = 0; round < 50; round++) {
		for (int e = 0; e < 2; e++) {
			for (uint32_t i = 0; i < 32; i++) {
				uint32_t frame = (uint32_t)e * 32 + i;

				urn_pkt(&f->frame[frame].m)->record.operand[0] = 1;
				op[e][i] = ft_op(f, URN_MEMOP_FETCH_ADD, frame, 0, 8);
			}
			assert_int_equal(urn_memx_execute(x[e], op[e], 32), 32);
		}
		for (int e = 0; e < 2; e++)
			while (urn_memx_holds(x[e], NULL))
				if (urn_memx_poll(x[e], got, 32) == 0)
					ft_wait(&since);
	}
	child_read(&f->child, CHILD_AT, &sum, 8);
	assert_int_equal(sum, 2 * 32 * 50);
	urn_memx_destroy(x[1]);
}

/* Mapped memory is answered at once beside it, and an injected failure is reported. */
static void
test_mixed(void **state)
{
	struct ft *f = *state;
	struct urn_memx_config cfg = {.delay_seed = 3, .fail_per_million = 1000000};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t mapped[64] = {0}, other[8];
	struct urn_region *region;
	struct urn_memop op[2], got[4];
	uint64_t since = 0;
	uint32_t key;

	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, mapped, 64, 0, RIGHTS, &key), 0);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, 8, 0, 0, &region), 0);
	memset(f->frame[0].data, 1, 8);
	memset(f->frame[1].data, 2, 8);
	op[0] = ft_op(f, URN_MEMOP_PLACE, 0, 0, 8);
	op[1] = ft_op(f, URN_MEMOP_PLACE, 1, 0, 8);
	op[1].region = region;
	op[1].addr = 8;
	assert_int_equal(urn_memx_execute(f->x, op, 2), 1);
	assert_int_equal(op[0].status, URN_MEMOP_PENDING);
	assert_int_equal(op[1].status, URN_MEMOP_DONE);
	assert_int_equal(mapped[8], 2);
	assert_int_equal(urn_memx_holds(f->x, region), 0);
	while (urn_memx_poll(f->x, got, 4) == 0)
		ft_wait(&since);
	assert_int_equal(got[0].status, URN_MEMOP_DONE);
	op[0] = ft_op(f, URN_MEMOP_PLACE, 2, 0, 8);
	assert_int_equal(urn_memx_execute(x, op, 1), 1);
	assert_int_equal(op[0].status, URN_MEMOP_FAILED);
	child_read(&f->child, CHILD_AT, other, 8);
	assert_int_equal(other[0], 1);
	test_dereg(f->mem, key);
	urn_memx_destroy(x);
}

/* A client that gave this process up: nothing of its memory is touched from then on. */
static void
test_left(void **state)
{
	static _Atomic uint32_t left;
	struct ft *f = *state;
	uint8_t bytes[8];

	left = 0;
	urn_space_leave_by(f->space, &left);
	child_write(&f->child, CHILD_AT, "abcdefg", 8);
	memset(f->frame[0].data, 0x11, 8);
	run_one(f, URN_MEMOP_PLACE, 8, 8, URN_MEMOP_DONE);
	left = 1;
	run_one(f, URN_MEMOP_PLACE, 0, 8, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_GATHER, 0, 8, URN_MEMOP_FAILED);
	run_one(f, URN_MEMOP_FETCH_ADD, 0, 8, URN_MEMOP_FAILED);
	child_read(&f->child, CHILD_AT, bytes, 8);
	assert_memory_equal(bytes, "abcdefg", 8);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_bursts, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_model, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_overflow, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_impossible, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_hole, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_protect_later, foreign_setup,
						foreign_teardown),
		cmocka_unit_test_setup_teardown(test_killed, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_exec, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_fork, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_two_engines, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_mixed, foreign_setup, foreign_teardown),
		cmocka_unit_test_setup_teardown(test_left, foreign_setup, foreign_teardown),
	};

	int failed;

	child_be_victim(argc, argv);
	failed = cmocka_run_group_tests_name("by descriptor", tests, NULL, NULL);
	ft_direct = true;
	return failed + cmocka_run_group_tests_name("large reads by number", tests, NULL, NULL);
}
