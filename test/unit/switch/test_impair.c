/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments: frames without one, order, time, and bounds. */
#include "impair_bench.h"

/* Without impairments: the same mbufs, in order, at once. */
static void
test_plain(void **state)
{
	struct urn_impair_config cfg = {.seed = 1};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *in[32], *out[33];

	(void)state;
	assert_true(urn_impair_clear(imp));
	assert_true(urn_impair_next(imp) == UINT64_MAX);
	for (uint32_t i = 0; i < 32; i++)
		in[i] = frame_make(i, LEN);
	rte_mbuf_refcnt_set(in[3], 2);
	urn_impair_push(imp, in, 32, 5);
	assert_false(urn_impair_clear(imp));
	assert_int_equal(urn_impair_next(imp), 5);
	assert_int_equal(urn_impair_pop(imp, out, 33, 5), 32);
	assert_memory_equal(in, out, sizeof(in));
	assert_true(urn_impair_clear(imp));
	assert_int_equal(count(imp, URN_IMPAIR_POPPED), 32);
	assert_int_equal(count(imp, URN_IMPAIR_COPIED), 0);
	check_balance(imp);
	rte_mbuf_refcnt_set(in[3], 1);
	for (int i = 0; i < 32; i++)
		rte_pktmbuf_free(in[i]);
	urn_impair_destroy(imp);
	urn_impair_destroy(NULL);
}

/* ---- order */

/* With k as the only choice, a frame is overtaken by exactly k others. */
static void
test_reorder_exact(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.seed = 4, .reorder = 0.01, .reorder_ns = 60000 * MS};

	(void)state;
	for (uint32_t k = 1; k <= URN_IMPAIR_MAX_PASS; k *= 2) {
		unsigned int n = 0, late = 0;
		struct urn_impair *imp;

		cfg.reorder_min = cfg.reorder_max = k;
		imp = make(&cfg);
		n = pass(imp, 0, N, 0, 1, out);
		n += drain(imp, out + n);
		assert_int_equal(n, N);
		for (uint32_t i = 0; i < N; i++) {
			uint32_t at = 0, before = 0;

			while (out[at] != i)
				before += out[at++] > i;
			if (before == k)
				late++;
			else /* the others are in order, or the last ones */
				assert_true(before == 0 || i + k >= N);
		}
		assert_in_range(late,
				count(imp, URN_IMPAIR_REORDERED) -
					count(imp, URN_IMPAIR_REORDER_LATE),
				count(imp, URN_IMPAIR_REORDERED));
		assert_about(count(imp, URN_IMPAIR_REORDERED), N, 0.01);
		urn_impair_destroy(imp);
	}
}

/* By default 1 to 8 frames overtake; all these numbers occur; nothing is lost or duplicated. */
static void
test_reorder_range(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.seed = 11, .reorder = 0.2};
	struct urn_impair *imp = make(&cfg);
	unsigned int n = pass(imp, 0, N, 0, 1, out), times[64] = {0};

	(void)state;
	n += drain(imp, out + n);
	assert_int_equal(n, N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t at = 0, before = 0;

		while (out[at] != i)
			before += out[at++] > i;
		assert_true(before < 64);
		times[before]++;
	}
	for (int k = 1; k <= 8; k++)
		assert_true(times[k] > 40);
	for (int k = 9; k < 64; k++)
		assert_int_equal(times[k], 0);
	assert_about(count(imp, URN_IMPAIR_REORDERED), N, 0.2);
	urn_impair_destroy(imp);
}

/* The last frame of a train goes when its time is up. */
static void
test_reorder_last(void **state)
{
	struct urn_impair_config cfg = {.reorder = 1, .delay_ns = 5 * US};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m = frame_make(1, LEN), *out;

	(void)state;
	urn_impair_push(imp, &m, 1, MS);
	assert_int_equal(urn_impair_next(imp), MS + 5 * US);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 5 * US), 0);
	assert_int_equal(urn_impair_next(imp), MS + 105 * US);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 105 * US - 1), 0);
	assert_int_equal(urn_impair_pop(imp, &out, 1, MS + 105 * US), 1);
	assert_ptr_equal(out, m);
	assert_int_equal(count(imp, URN_IMPAIR_REORDER_LATE), 1);
	rte_pktmbuf_free(out);
	urn_impair_destroy(imp);
}

/* Every frame is held back at once: bounded, and all come out. */
static void
test_reorder_all(void **state)
{
	static uint32_t out[N];
	struct urn_impair_config cfg = {.reorder = 1, .reorder_min = 32, .reorder_max = 32};
	struct urn_impair *imp = make(&cfg);
	unsigned int n = pass(imp, 0, 1000, 0, 0, out);
	uint8_t seen[1000] = {0};

	(void)state;
	assert_true(n > 0);
	n += drain(imp, out + n);
	assert_int_equal(n, 1000);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen[out[i]]++, 0);
	urn_impair_destroy(imp);
}

/* ---- time */

static void
test_delay(void **state)
{
	struct urn_impair_config cfg = {.delay_ns = 3 * US};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out[10];

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, i * US);
	}
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(urn_impair_next(imp), (3 + i) * US);
		assert_int_equal(urn_impair_pop(imp, out, 10, (3 + i) * US - 1), 0);
		assert_int_equal(urn_impair_pop(imp, out, 10, (3 + i) * US), 1);
		assert_int_equal(frame_number(out[0]), i);
		rte_pktmbuf_free(out[0]);
	}
	assert_int_equal(count(imp, URN_IMPAIR_DELAYED), 10);
	urn_impair_destroy(imp);
}

/* Between delay and delay + jitter, over all of that range, in order. */
static void
test_jitter(void **state)
{
	struct urn_impair_config cfg = {.seed = 2, .delay_ns = 100, .jitter_ns = 1000};
	struct urn_impair *imp = make(&cfg);
	uint64_t least = UINT64_MAX, most = 0, last = 0;
	struct rte_mbuf *m, *out;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		uint64_t now = i * 5000ull, due;

		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, now);
		due = urn_impair_next(imp);
		assert_in_range(due - now, 100, 1100);
		least = RTE_MIN(least, due - now);
		most = RTE_MAX(most, due - now);
		assert_int_equal(urn_impair_pop(imp, &out, 1, due), 1);
		rte_pktmbuf_free(out);
	}
	assert_true(least < 110 && most > 1090);
	for (uint32_t i = 0; i < 100; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 1000 * MS + i);
	}
	for (uint32_t i = 0; i < 100; i++) {
		assert_true(urn_impair_next(imp) >= last);
		last = urn_impair_next(imp);
		assert_int_equal(urn_impair_pop(imp, &out, 1, last), 1);
		assert_int_equal(frame_number(out), i);
		rte_pktmbuf_free(out);
	}
	urn_impair_destroy(imp);
}

/* 1 Gb/s: 8 ns a byte, wire overhead included; short frames are padded; idle time is not saved up. */
static void
test_rate(void **state)
{
	struct urn_impair_config cfg = {.rate_bps = 1000000000};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m, *out;

	(void)state;
	for (int round = 0; round < 2; round++) {
		uint64_t t = MS + (uint64_t)round * MS;

		for (uint32_t i = 0; i < 3; i++) {
			m = frame_make(i, i == 2 ? 20 : 1000);
			urn_impair_push(imp, &m, 1, t);
		}
		for (uint32_t i = 0; i < 3; i++) {
			t += 8 * (i == 2 ? 84 : 1024);
			assert_int_equal(urn_impair_next(imp), t);
			assert_int_equal(urn_impair_pop(imp, &out, 1, t), 1);
			assert_int_equal(frame_number(out), i);
			rte_pktmbuf_free(out);
		}
	}
	/* The extremes of the range do not overflow. */
	cfg.rate_bps = URN_IMPAIR_MIN_BPS;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	m = frame_make(0, 1000);
	urn_impair_push(imp, &m, 1, 10 * MS);
	assert_int_equal(urn_impair_next(imp), 10 * MS + 8000000ull * 1024);
	assert_int_equal(urn_impair_pop(imp, &out, 1, urn_impair_next(imp)), 1);
	rte_pktmbuf_free(out);
	urn_impair_destroy(imp);
}

static void
test_cut(void **state)
{
	struct urn_impair_config cfg = {.blackhole = true}, open = {0};
	struct urn_impair *imp = make(&cfg);
	uint32_t out[100];

	(void)state;
	assert_int_equal(pass(imp, 0, 10, 0, 1, out), 0);
	assert_int_equal(count(imp, URN_IMPAIR_BLACKHOLE), 10);
	assert_int_equal(urn_impair_set(imp, &open), 0);
	assert_int_equal(pass(imp, 0, 10, 10, 1, out), 10);
	/* Up 7 ns, down 3 ns, counted from the first push. */
	cfg = (struct urn_impair_config){.flap_up_ns = 7, .flap_down_ns = 3};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	assert_int_equal(pass(imp, 0, 40, 1234, 1, out), 28);
	for (uint32_t i = 0; i < 28; i++)
		assert_int_equal(out[i], i / 7 * 10 + i % 7);
	assert_int_equal(count(imp, URN_IMPAIR_FLAP), 12);
	urn_impair_destroy(imp);
}

/* ---- bounds */

/* All frames of a burst at once, where nothing waits for time. */
static void
test_queue_burst(void **state)
{
	struct urn_impair *imp = make(&(struct urn_impair_config){.queue = 5});
	struct rte_mbuf *m[8];
	uint32_t out[8];

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		m[i] = frame_make(i, LEN);
	urn_impair_push(imp, m, 8, 0);
	assert_int_equal(urn_impair_queued(imp), 5);
	assert_int_equal(count(imp, URN_IMPAIR_QUEUE), 3);
	assert_int_equal(drain(imp, out), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(out[i], i);
	check_balance(imp);
	urn_impair_destroy(imp);
}

static void
test_queue(void **state)
{
	struct urn_impair_config cfg = {.delay_ns = 10, .queue = 5};
	struct urn_impair *imp = make(&cfg);
	struct rte_mbuf *m;
	uint32_t out[1000];

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 0);
	}
	assert_int_equal(urn_impair_queued(imp), 5);
	assert_int_equal(count(imp, URN_IMPAIR_QUEUE), 3);
	/* A longer queue keeps the frames inside, in order. */
	cfg.queue = 500;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	for (uint32_t i = 5; i < 700; i++) {
		m = frame_make(i, LEN);
		urn_impair_push(imp, &m, 1, 1);
	}
	assert_int_equal(urn_impair_queued(imp), 500);
	/* A shorter queue loses none of them, and takes no more. */
	cfg.queue = 5;
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	m = frame_make(0, LEN);
	urn_impair_push(imp, &m, 1, 1);
	assert_int_equal(drain(imp, out), 500);
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(out[i], i);
	/* Frames inside are freed at the end, also those that are held back. */
	cfg = (struct urn_impair_config){.reorder = 0.5, .delay_ns = 1};
	assert_int_equal(urn_impair_set(imp, &cfg), 0);
	pass(imp, 0, 20, 10, 0, out);
	assert_int_not_equal(urn_impair_queued(imp), 0);
	urn_impair_destroy(imp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_plain),
		T(test_reorder_exact),
		T(test_reorder_range),
		T(test_reorder_last),
		T(test_reorder_all),
		T(test_delay),
		T(test_jitter),
		T(test_rate),
		T(test_cut),
		T(test_queue_burst), T(test_queue),
	};

	return cmocka_run_group_tests_name("impair", tests, NULL, NULL);
}
