/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"

#include "abi/queue.h"

#include <pthread.h>

enum { FRAMES = 256, FRAME = 256, BYTES = 65536 };

/* The fields of an mbuf that the executor uses: no pool, no EAL. */
struct frame {
	struct rte_mbuf m;
	uint8_t priv[URN_PKT_PRIV];
	uint8_t data[FRAME];
};

struct fix {
	struct urn_mem *mem;
	uint32_t pd;
	struct urn_region *region, *other; /* regions of bytes[] at iova 1 << 40; of more[] */
	struct frame *frame;		   /* FRAMES of them */
	uint8_t *bytes, *more;
	uint64_t rng;
};

#define IOVA (1ull << 40)

static int
setup(void **state)
{
	struct fix *f = calloc(1, sizeof(*f));
	uint32_t key, key2;

	f->mem = urn_mem_create(16, 1);
	f->pd = test_pd(f->mem);
	f->bytes = aligned_alloc(4096, BYTES);
	f->more = aligned_alloc(4096, BYTES);
	f->frame = aligned_alloc(64, FRAMES * sizeof(*f->frame));
	memset(f->bytes, 0, BYTES);
	memset(f->more, 0, BYTES);
	memset(f->frame, 0, FRAMES * sizeof(*f->frame));
	f->rng = 99;
	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->bytes, BYTES, IOVA, RIGHTS, &key), 0);
	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->more, BYTES, 0, RIGHTS, &key2), 0);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, 0, 0, 0, &f->region), 0);
	assert_int_equal(urn_mem_check(f->mem, key2, f->pd, 0, 0, 0, 0, 0, &f->other), 0);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	urn_mem_destroy(f->mem);
	free(f->bytes);
	free(f->more);
	free(f->frame);
	free(f);
	return 0;
}

static struct urn_memop
make_op(struct fix *f, int kind, uint32_t frame, uint64_t offset, uint32_t len)
{
	return (struct urn_memop){
		.region = f->region,
		.addr = IOVA + offset,
		.frame = kind >= URN_MEMOP_CMP_SWAP ? NULL : f->frame[frame].data,
		.m = &f->frame[frame].m,
		.len = len,
		.kind = (uint8_t)kind,
		.status = 77,
	};
}

static uint64_t *
words(struct fix *f, uint32_t frame)
{
	return urn_pkt(&f->frame[frame].m)->record.operand;
}

static void
fill(struct fix *f, uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)test_random(&f->rng);
}

/* architecture rule 1: mapped memory is answered at once, and moved byte for byte */
static void
test_immediate(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {.pending = 8};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t *model = malloc(BYTES);
	struct urn_memop op[16];

	fill(f, f->bytes, BYTES);
	memcpy(model, f->bytes, BYTES);
	for (int round = 0; round < 2000; round++) {
		uint32_t n = 1 + test_random(&f->rng) % 16;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t len = test_random(&f->rng) % (FRAME + 1);

			fill(f, f->frame[i].data, FRAME);
			op[i] = make_op(f, test_random(&f->rng) & 1, i,
					test_random(&f->rng) % (BYTES - FRAME), len);
			if (op[i].kind == URN_MEMOP_PLACE)
				memcpy(model + (op[i].addr - IOVA), op[i].frame, len);
		}
		assert_int_equal(urn_memx_execute(x, op, n), 0);
		assert_memory_equal(model, f->bytes, BYTES);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(op[i].status, URN_MEMOP_DONE);
	}
	assert_int_equal(urn_memx_poll(x, op, 16), 0);
	assert_int_equal(urn_memx_holds(x, NULL), 0);
	free(model);
	urn_memx_destroy(x);
}

/* Gathers fill their frame and no byte beside it; length 0 needs no region. */
static void
test_gather(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	struct urn_memop op[2];

	fill(f, f->bytes, BYTES);
	for (uint32_t len = 0; len < FRAME - 2; len++) {
		memset(f->frame[0].data, 0xee, FRAME);
		op[0] = make_op(f, URN_MEMOP_GATHER, 0, 1000 + len, len);
		op[0].frame++;
		op[1] = (struct urn_memop){.kind = URN_MEMOP_PLACE};
		assert_int_equal(urn_memx_execute(x, op, 2), 0);
		assert_int_equal(op[1].status, URN_MEMOP_DONE);
		assert_int_equal(f->frame[0].data[0], 0xee);
		assert_memory_equal(f->frame[0].data + 1, f->bytes + 1000 + len, len);
		assert_int_equal(f->frame[0].data[len + 1], 0xee);
	}
	urn_memx_destroy(x);
	urn_memx_destroy(NULL);
}

/* IBTA 9.4.5: atomics, old value back, host byte order in memory */
static void
test_atomics(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint64_t *target = (uint64_t *)(f->bytes + 64), *word = words(f, 0);
	struct urn_memop op = make_op(f, URN_MEMOP_FETCH_ADD, 0, 64, 8);

	*target = 0x1122334455667788u;
	word[0] = 0x10;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_true(word[0] == 0x1122334455667788u && *target == 0x1122334455667798u);
	*target = UINT64_MAX;
	word[0] = 3;
	urn_memx_execute(x, &op, 1);
	assert_true(word[0] == UINT64_MAX && *target == 2);

	op.kind = URN_MEMOP_CMP_SWAP;
	word[0] = 2;
	word[1] = 0xabcd;
	urn_memx_execute(x, &op, 1);
	assert_true(word[0] == 2 && *target == 0xabcd);
	word[0] = 2; /* does not compare equal */
	word[1] = 0xffff;
	urn_memx_execute(x, &op, 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	assert_true(word[0] == 0xabcd && *target == 0xabcd);
	urn_memx_destroy(x);
}

/* mem.h: unaligned atomics and unknown kinds fail and change nothing */
static void
test_impossible(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint8_t before[64];
	struct urn_memop op;

	fill(f, f->bytes, 64);
	memcpy(before, f->bytes, 64);
	for (int kind = URN_MEMOP_CMP_SWAP; kind < 256; kind++) {
		if (kind == URN_MEMOP_FENCE)
			continue;
		op = make_op(f, kind, 0, kind % 8 ? kind % 8 : 1, 8);
		words(f, 0)[0] = 5;
		assert_int_equal(urn_memx_execute(x, &op, 1), 1);
		assert_int_equal(op.status, URN_MEMOP_FAILED);
		assert_int_equal(words(f, 0)[0], 5);
		assert_memory_equal(f->bytes, before, 64);
	}
	urn_memx_destroy(x);
}

struct adder {
	struct fix *f;
	uint32_t frame;
};

static void *
add_many(void *arg)
{
	struct adder *a = arg;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);

	for (int i = 0; i < 20000; i++) {
		struct urn_memop op = make_op(a->f, URN_MEMOP_FETCH_ADD, a->frame, 0, 8);

		words(a->f, a->frame)[0] = 1;
		urn_memx_execute(x, &op, 1);
	}
	urn_memx_destroy(x);
	return NULL;
}

/* Atomics of several engines on one word: none is lost. */
static void
test_atomics_of_engines(void **state)
{
	struct fix *f = *state;
	struct adder a = {f, 1}, b = {f, 2};
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, add_many, &a), 0);
	add_many(&b);
	pthread_join(t, NULL);
	assert_int_equal(*(uint64_t *)f->bytes, 40000);
}

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
			ops[j] = make_op(f, URN_MEMOP_PLACE, i + j, (i + j) * 64, 64);
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
	struct urn_memop op = make_op(f, URN_MEMOP_GATHER, 0, 0, 64);

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
		op[i] = make_op(f, URN_MEMOP_PLACE, i, i * 8, 8);
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
			op = make_op(f, kind, i, at, atomic ? 8 : test_random(&f->rng) % 17);
			fill(f, f->frame[i].data, 16);
			memcpy(&old[i], model + at, 8);
			w[0] = test_random(&f->rng) & 1 ? old[i] : test_random(&f->rng);
			w[1] = test_random(&f->rng);
			memcpy(words(f, i), w, sizeof(w));
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
			assert_true(words(f, i)[0] == old[i]);
		}
	}
	urn_memx_destroy(x);
}

/* A window's operations go to the region it is bound to, and outlive the binding. */
static void
test_through_window(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {
		.pending = 4, .delay_seed = 1, .delay_percent = 100, .delay_polls = 1};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint32_t mr, mw = test_mw(f->mem, f->pd, 2);
	struct urn_memop op = make_op(f, URN_MEMOP_PLACE, 0, 0, 8);
	struct urn_region *region;

	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->more, 4096, 1 << 20, RIGHTS, &mr), 0);
	assert_int_equal(urn_mem_bind(f->mem, 2, mw, mw, mr, (1 << 20) + 512, 64,
				      URN_ACCESS_REMOTE_WRITE, f->pd, 3, NULL),
			 URN_MEM_OK);
	op.addr = (1 << 20) + 520;
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, 3, op.addr, 8, URN_ACCESS_REMOTE_WRITE, 1,
				       &op.region),
			 URN_MEM_OK);
	memset(f->frame[0].data, 0x99, 8);
	assert_int_equal(urn_memx_execute(x, &op, 1), 1);
	assert_int_equal(urn_mem_invalidate(f->mem, mw, f->pd, 3, NULL), URN_MEM_OK);
	assert_int_equal(urn_mem_kill_mr(f->mem, mr, &region), 0);
	assert_int_equal(urn_memx_holds(x, region), 1);
	assert_int_equal(urn_memx_poll(x, &op, 1), 1);
	assert_int_equal(f->more[520], 0x99);
	assert_int_equal(f->more[519], 0);
	assert_int_equal(f->more[528], 0);
	assert_int_equal(urn_memx_holds(x, region), 0);
	urn_mem_free_mr(f->mem, region);
	urn_memx_destroy(x);
}

/* The log has an atomic's intended change, and that it is done; also when others change the memory. */
static void
test_log(void **state)
{
	struct fix *f = *state;
	struct urn_memx_config cfg = {0};
	struct urn_memx *x = urn_memx_create(&cfg);
	uint64_t *word = (uint64_t *)(f->bytes + 64), *w = words(f, 0);
	struct urn_abi_atomic log = {0};
	struct urn_memop op = make_op(f, URN_MEMOP_FETCH_ADD, 0, 64, 8);

	op.frame = (uint8_t *)&log;
	urn_pkt(op.m)->psn = 0x123456;
	*word = 40;
	w[0] = 2;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 42);
	assert_int_equal(w[0], 40);
	assert_int_equal(log.addr, IOVA + 64);
	assert_int_equal(log.old, 40);
	assert_int_equal(log.new, 42);
	assert_int_equal(log.psn, 0x123456);
	assert_int_equal(log.state, URN_ATOMIC_DONE);

	op.kind = URN_MEMOP_CMP_SWAP;
	w[0] = 41; /* the word is 42: nothing happens, and the log says so */
	w[1] = 7;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 42);
	assert_int_equal(w[0], 42);
	assert_int_equal(log.old, 42);
	assert_int_equal(log.new, 42);
	w[0] = 42;
	assert_int_equal(urn_memx_execute(x, &op, 1), 0);
	assert_int_equal(*word, 7);
	assert_int_equal(w[0], 42);
	assert_int_equal(log.new, 7);
	assert_int_equal(log.state, URN_ATOMIC_DONE);
	urn_memx_destroy(x);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_log),
		T(test_immediate),
		T(test_gather),
		T(test_atomics),
		T(test_impossible),
		T(test_atomics_of_engines),
		T(test_delays),
		T(test_pending_limit),
		T(test_failures),
		T(test_gather_waits),
		T(test_poll_max),
		T(test_order_of_effects),
		T(test_through_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
