/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory operations that are answered later: how late, how many, in which order. */
#include "memx_bench.h"

/* ---- delays and failures */

/* The results of a run's operations, by their frames. */
struct run {
	uint8_t status[FRAMES]; /* PENDING, or the answer */
	uint32_t order[FRAMES]; /* frames in the order of their answers */
	uint32_t answered;
	uint32_t deferred; /* operations that were PENDING once */
	uint32_t failed;
};

static uint32_t
frame_of(const struct fix *f, const struct urn_memop *op)
{
	return (uint32_t)((const struct frame *)(const void *)op->m - f->frame);
}

static void
answer(struct fix *f, struct run *run, const struct urn_memop *op)
{
	uint32_t i = frame_of(f, op);

	assert_in_range(i, 0, FRAMES - 1);
	assert_int_equal(run->status[i], URN_MEMOP_PENDING);
	assert_int_not_equal(op->status, URN_MEMOP_PENDING);
	run->status[i] = op->status;
	run->failed += op->status == URN_MEMOP_FAILED;
	run->order[run->answered++] = i;
}

static void
submit(struct fix *f, struct run *run, struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	unsigned int pending = 0, failed = run->failed, got = urn_memx_execute(x, ops, n);

	for (unsigned int i = 0; i < n; i++) {
		run->status[frame_of(f, &ops[i])] = URN_MEMOP_PENDING;
		if (ops[i].status == URN_MEMOP_PENDING)
			pending++;
		else
			answer(f, run, &ops[i]);
	}
	run->deferred += pending;
	assert_int_equal(got, pending + run->failed - failed);
}

static void
poll_all(struct fix *f, struct run *run, struct urn_memx *x, unsigned int polls)
{
	struct urn_memop ops[FRAMES];

	while (polls--) {
		unsigned int n = urn_memx_poll(x, ops, FRAMES);

		for (unsigned int i = 0; i < n; i++)
			answer(f, run, &ops[i]);
	}
}

/* FRAMES places of 64 bytes, each operation to its own place, all in flight together. */
static void
run_places(struct fix *f, const struct urn_memx_config *cfg, struct run *run)
{
	struct urn_memx *x = urn_memx_create(cfg);

	memset(run, 0, sizeof(*run));
	memset(f->bytes, 0, BYTES);
	for (uint32_t i = 0; i < FRAMES; i += 8) {
		struct urn_memop ops[8];

		for (uint32_t j = 0; j < 8; j++) {
			memset(f->frame[i + j].data, 0x80 | (int)(i + j), 64);
			ops[j] = memx_op(f, URN_MEMOP_PLACE, i + j, (i + j) * 64, 64);
		}
		submit(f, run, x, ops, 8);
	}
	assert_int_equal(urn_memx_holds(x, NULL), run->deferred);
	assert_int_equal(urn_memx_holds(x, f->region), run->deferred);
	assert_int_equal(urn_memx_holds(x, f->other), 0);
	/* Operations that were not answered have had no effect yet. */
	for (uint32_t i = 0; i < FRAMES; i++)
		assert_int_equal(f->bytes[i * 64],
				 run->status[i] == URN_MEMOP_DONE ? f->frame[i].data[0] : 0);
	poll_all(f, run, x, cfg->delay_polls ? cfg->delay_polls : 1);
	assert_int_equal(urn_memx_holds(x, NULL), 0);
	assert_int_equal(run->answered, FRAMES);
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint8_t want = run->status[i] == URN_MEMOP_DONE ? f->frame[i].data[0] : 0;

		assert_int_equal(f->bytes[i * 64], want);
		assert_int_equal(f->bytes[i * 64 + 63], want);
	}
	urn_memx_destroy(x);
}

/* architecture rule 1: later answers, each once, out of order, the same for a seed */
static void
test_delays(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = FRAMES, .delay_seed = 5, .delay_percent = 50, .delay_polls = 4};
	struct run a, b;
	uint32_t swapped = 0;

	run_places(f, &cfg, &a);
	assert_in_range(a.deferred, FRAMES / 4, FRAMES * 3 / 4);
	assert_int_equal(a.failed, 0);
	for (uint32_t i = 1; i < FRAMES; i++)
		swapped += a.order[i] < a.order[i - 1];
	assert_true(swapped > 10);
	run_places(f, &cfg, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	cfg.delay_seed = 6;
	run_places(f, &cfg, &b);
	assert_memory_not_equal(&a, &b, sizeof(a));
	/* All operations, answered by the next poll: in another order again. */
	cfg.delay_percent = 100;
	cfg.delay_polls = 0;
	run_places(f, &cfg, &b);
	assert_int_equal(b.deferred, FRAMES);
	swapped = 0;
	for (uint32_t i = 1; i < FRAMES; i++)
		swapped += b.order[i] < b.order[i - 1];
	assert_true(swapped > 10);
}

/* mem.h: operations that can't be deferred are done at once, and do not fail */
static void
test_pending_limit(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = 10, .delay_seed = 5, .delay_percent = 100, .delay_polls = 3};
	struct run run;

	run_places(f, &cfg, &run);
	assert_int_equal(run.deferred, 10);
	assert_int_equal(run.failed, 0);
	cfg.pending = 0;
	run_places(f, &cfg, &run);
	assert_int_equal(run.deferred, 0);
	cfg.pending = 10;
	cfg.delay_seed = 0;
	run_places(f, &cfg, &run);
	assert_int_equal(run.deferred, 0);
}

/* Failures from the seed are reported, at once or later, and change nothing. */
static void
test_failures(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = FRAMES, .delay_polls = 3, .fail_per_million = 250000};
	struct run run;

	for (int delayed = 0; delayed < 2; delayed++) {
		run_places(f, &cfg, &run);
		assert_in_range(run.failed, FRAMES / 8, FRAMES / 2);
		assert_int_equal(!!run.deferred, delayed);
		cfg.delay_seed = 17;
		cfg.delay_percent = 60;
	}
	cfg.fail_per_million = 1000000;
	run_places(f, &cfg, &run);
	assert_int_equal(run.failed, FRAMES);
}

/* A gather without an answer has not filled its frame. */
static void
test_gather_waits(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = 4, .delay_seed = 1, .delay_percent = 100, .delay_polls = 1};
	struct urn_memx *x = urn_memx_create(&cfg);
	struct urn_memop op = memx_op(f, URN_MEMOP_GATHER, 0, 0, 64);

	memset(f->bytes, 0x55, 64);
	assert_int_equal(urn_memx_execute(x, &op, 1), 1);
	assert_int_equal(op.status, URN_MEMOP_PENDING);
	assert_int_equal(f->frame[0].data[0], 0);
	assert_int_equal(urn_memx_poll(x, &op, 1), 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_ptr_equal(op.frame, f->frame[0].data);
	assert_memory_equal(f->frame[0].data, f->bytes, 64);
	urn_memx_destroy(x);
}

/* A poll gives no more answers than asked for, and loses none. */
static void
test_poll_max(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = FRAMES, .delay_seed = 1, .delay_percent = 100, .delay_polls = 1};
	struct urn_memx *x = urn_memx_create(&cfg);
	struct urn_memop op[FRAMES];
	bool seen[FRAMES] = {false};

	for (uint32_t i = 0; i < FRAMES; i++) {
		op[i] = memx_op(f, URN_MEMOP_PLACE, i, i * 8, 8);
		if (i % 4 == 0) {
			op[i].region = f->other;
			op[i].addr = i * 8;
		}
	}
	assert_int_equal(urn_memx_execute(x, op, FRAMES), FRAMES);
	assert_int_equal(urn_memx_holds(x, f->other), FRAMES / 4);
	assert_int_equal(urn_memx_poll(x, op, 0), 0);
	for (uint32_t left = FRAMES; left; left--) {
		assert_int_equal(urn_memx_holds(x, NULL), left);
		assert_int_equal(urn_memx_poll(x, op, 1), 1);
		assert_false(seen[frame_of(f, &op[0])]);
		seen[frame_of(f, &op[0])] = true;
	}
	assert_int_equal(urn_memx_poll(x, op, FRAMES), 0);
	urn_memx_destroy(x);
}

/*
 * mem.h: operations on the same bytes take effect in the order they were given, however
 * they are deferred: against a model that does them at once.
 */
static void
test_order_of_effects(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = 40, .delay_seed = 3, .delay_percent = 70, .delay_polls = 6};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t model[128] = {0}, want[FRAMES][16];
	uint64_t old[FRAMES], w[2];
	struct run run;

	for (int round = 0; round < 300; round++) {
		memset(&run, 0, sizeof(run));
		for (uint32_t i = 0; i < FRAMES; i++) {
			int kind = (int)(test_random(&f->rng) % 4);
			bool atomic = kind >= URN_MEMOP_CMP_SWAP;
			uint64_t at = test_random(&f->rng) % 112;
			struct urn_memop op;

			at = atomic ? at & ~7ull : at;
			op = memx_op(f, kind, i, at, atomic ? 8 : test_random(&f->rng) % 17);
			memx_fill(f, f->frame[i].data, 16);
			memcpy(&old[i], model + at, 8);
			w[0] = test_random(&f->rng) & 1 ? old[i] : test_random(&f->rng);
			w[1] = test_random(&f->rng);
			memcpy(memx_words(f, i), w, sizeof(w));
			if (kind == URN_MEMOP_GATHER) {
				memcpy(want[i], f->frame[i].data, 16);
				memcpy(want[i], model + at, op.len);
			} else if (kind == URN_MEMOP_PLACE) {
				memcpy(want[i], f->frame[i].data, 16);
				memcpy(model + at, f->frame[i].data, op.len);
			} else {
				uint64_t sum = old[i] + w[0];
				uint64_t swap = old[i] == w[0] ? w[1] : old[i];

				memcpy(want[i], f->frame[i].data, 16);
				memcpy(model + at, kind == URN_MEMOP_FETCH_ADD ? &sum : &swap, 8);
			}
			submit(f, &run, x, &op, 1);
			poll_all(f, &run, x, test_random(&f->rng) & 1);
			if (!atomic)
				old[i] = w[0];
		}
		poll_all(f, &run, x, cfg.delay_polls);
		assert_int_equal(run.answered, FRAMES);
		assert_true(run.deferred > FRAMES / 4);
		assert_memory_equal(model, f->bytes, sizeof(model));
		for (uint32_t i = 0; i < FRAMES; i++) {
			assert_int_equal(run.status[i], URN_MEMOP_DONE);
			assert_memory_equal(f->frame[i].data, want[i], 16);
			assert_true(memx_words(f, i)[0] == old[i]);
		}
	}
	urn_memx_destroy(x);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, memx_setup, memx_teardown)
	const struct CMUnitTest tests[] = {
		T(test_delays),	      T(test_pending_limit), T(test_failures),
		T(test_gather_waits), T(test_poll_max),	     T(test_order_of_effects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
