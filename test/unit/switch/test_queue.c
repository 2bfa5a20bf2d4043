/* SPDX-License-Identifier: BSD-3-Clause */
/* architecture.md, seam 8: queues that belong to the switch: priorities, bounds, pause, marks. */
#include "frames.h"

#include "switch/switch.h"

/* Put a frame into a queue; a frame that was dropped is freed. */
static enum urn_swq_verdict
put(struct urn_swq *q, unsigned int priority, uint32_t number, uint32_t len)
{
	struct rte_mbuf *m = frame_make(number, len);
	enum urn_swq_verdict v = urn_swq_put(q, priority, m, number);

	if (v != URN_SWQ_QUEUED && v != URN_SWQ_MARK)
		rte_pktmbuf_free(m);
	return v;
}

/* Number of the next frame of a queue; 0: none may go. */
static uint32_t
take(struct urn_swq *q)
{
	uint64_t since = 0;
	struct rte_mbuf *m = urn_swq_take(q, &since);
	uint32_t number = m ? frame_number(m) : 0;

	assert_int_equal(since, number);
	rte_pktmbuf_free(m);
	return number;
}

static void
test_strict_order(void **state)
{
	struct urn_swq q;

	(void)state;
	urn_swq_init(&q, NULL);
	assert_int_equal(take(&q), 0);
	for (uint32_t i = 1; i <= 200; i++)
		assert_int_equal(put(&q, i & 1 ? 0 : 7, i, 100), URN_SWQ_QUEUED);
	for (uint32_t i = 2; i <= 200; i += 2)
		assert_int_equal(take(&q), i);
	assert_int_equal(take(&q), 1);
	/* A frame of a higher priority that comes late still goes first. */
	assert_int_equal(put(&q, 3, 300, 100), URN_SWQ_QUEUED);
	assert_int_equal(take(&q), 300);
	for (uint32_t i = 3; i < 200; i += 2)
		assert_int_equal(take(&q), i);
	assert_int_equal(take(&q), 0);
	assert_int_equal(q.frames, 0);
	/* Frames still inside are freed. */
	put(&q, 5, 1, 100);
	urn_swq_finish(&q);
}

static void
test_bounds(void **state)
{
	struct urn_swq_bound bound[URN_SWQ_PRIORITIES] = {
		[0] = {.frames = 2}, [4] = {.bytes = 250}};
	struct urn_swq q;

	(void)state;
	urn_swq_init(&q, bound);
	assert_int_equal(put(&q, 0, 1, 100), URN_SWQ_QUEUED);
	assert_int_equal(put(&q, 0, 2, 100), URN_SWQ_QUEUED);
	assert_int_equal(put(&q, 0, 3, 100), URN_SWQ_DROP_FRAMES);
	assert_int_equal(put(&q, 4, 4, 200), URN_SWQ_QUEUED);
	assert_int_equal(put(&q, 4, 5, 51), URN_SWQ_DROP_BYTES);
	assert_int_equal(put(&q, 4, 6, 50), URN_SWQ_QUEUED);
	assert_int_equal(q.level[0].c.v[URN_SWQ_C_DROP_FRAMES], 1);
	assert_int_equal(q.level[4].c.v[URN_SWQ_C_DROP_BYTES], 1);
	assert_int_equal(take(&q), 4);
	assert_int_equal(put(&q, 4, 7, 200), URN_SWQ_QUEUED);
	urn_swq_finish(&q);
}

static void
test_watermarks_and_marks(void **state)
{
	struct urn_swq_bound bound[URN_SWQ_PRIORITIES] = {
		[1] = {.mark = 200, .high = 300, .low = 100}};
	struct urn_swq q;

	(void)state;
	urn_swq_init(&q, bound);
	assert_int_equal(put(&q, 1, 1, 100), URN_SWQ_QUEUED);
	assert_int_equal(put(&q, 1, 2, 100), URN_SWQ_QUEUED);
	assert_int_equal(q.crowded, 0);
	assert_int_equal(put(&q, 1, 3, 100), URN_SWQ_MARK);
	assert_int_equal(put(&q, 1, 4, 100), URN_SWQ_MARK);
	assert_int_equal(q.crowded, 1u << 1);
	assert_int_equal(q.level[1].c.v[URN_SWQ_C_CROWDS], 1);
	assert_int_equal(q.level[1].c.v[URN_SWQ_C_MARKED], 2);
	/* Crowded until the low watermark, not the high one. */
	assert_int_equal(take(&q) + take(&q), 3);
	assert_int_equal(q.crowded, 1u << 1);
	assert_int_equal(take(&q), 3);
	assert_int_equal(q.crowded, 0);
	urn_swq_finish(&q);
}

static void
test_pause(void **state)
{
	struct urn_swq q;

	(void)state;
	urn_swq_init(&q, NULL);
	put(&q, 6, 1, 100);
	put(&q, 2, 2, 100);
	urn_swq_pause(&q, 6, true);
	urn_swq_pause(&q, 6, true);
	assert_int_equal(q.level[6].c.v[URN_SWQ_C_PAUSES], 1);
	assert_int_equal(take(&q), 2);
	assert_false(urn_swq_ready(&q));
	assert_int_equal(take(&q), 0);
	urn_swq_pause(&q, 6, false);
	assert_true(urn_swq_ready(&q));
	assert_int_equal(take(&q), 1);
	urn_swq_finish(&q);
}

/* The second user of the queues: a classifier that gives even frames priority 5. */
static unsigned int
classify_even(const struct rte_mbuf *m)
{
	return frame_number(m) % 2 == 0 ? 5 : 0;
}

/* A switch whose port 1 sends a frame of 101 bytes in 1,000 ns, by way of the classifier given. */
static struct urn_switch *
make(unsigned int (*classify)(const struct rte_mbuf *m))
{
	struct urn_switch *sw =
		urn_switch_create(&(struct urn_switch_config){.copies = test_eal_pool()});
	struct urn_switch_port_config in = {0}, out = {0};

	out.impair[URN_SWITCH_OUT].rate_bps = 1000000000;
	out.classify = classify;
	out.bound[0].frames = 4;
	assert_int_equal(urn_switch_add_port(sw, &in), 0);
	assert_int_equal(urn_switch_add_port(sw, &out), 1);
	return sw;
}

static void
input(struct urn_switch *sw, uint32_t first, uint32_t last, uint64_t now)
{
	for (uint32_t i = first; i <= last; i++) {
		struct rte_mbuf *m = frame_make(i, 101);

		rte_pktmbuf_mtod(m, uint8_t *)[0] = 2;
		rte_pktmbuf_mtod(m, uint8_t *)[6] = 4;
		urn_switch_input(sw, 0, &m, 1, now);
	}
}

/* Check that exactly the frames given come out at `now`, by number; 0 ends the list. */
static void
expect(struct urn_switch *sw, uint64_t now, const uint32_t *number)
{
	struct rte_mbuf *m;

	while (urn_switch_output(sw, 1, &m, 1, now) == 1) {
		assert_int_equal(frame_number(m), *number);
		number++;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(*number, 0);
}

static void
test_switch_priorities(void **state)
{
	struct urn_switch *sw = make(classify_even);

	(void)state;
	/* Frame 1 is on the wire at once; 2, 4, 6 wait in priority 5, and 3, 5, 7, 9 in priority 0.
	 */
	input(sw, 1, 7, 0);
	assert_int_equal(urn_switch_queued(sw), 7);
	assert_int_equal(urn_switch_queues(sw, 1)->frames, 6);
	assert_int_equal(urn_switch_next(sw), 1000);
	expect(sw, 999, (const uint32_t[]){0});
	expect(sw, 4000, (const uint32_t[]){1, 2, 4, 6, 0});
	/* Frame 8 came after frame 3's turn on the wire, and before frame 5's. */
	input(sw, 8, 8, 4500);
	expect(sw, 6000, (const uint32_t[]){3, 8, 0});
	/* A late poll changes no due time: the wire had sent both. */
	expect(sw, 8000, (const uint32_t[]){5, 7, 0});
	assert_int_equal(urn_switch_queued(sw), 0);
	urn_switch_destroy(sw);
}

static void
test_switch_bound_and_pause(void **state)
{
	struct urn_switch *sw = make(classify_even);

	(void)state;
	urn_switch_pause(sw, 1, 0, true, 0);
	input(sw, 1, 10, 0);
	/* Priority 0 has room for four of its five frames. */
	assert_int_equal(
		urn_impair_counters(urn_switch_impair(sw, 1, URN_SWITCH_OUT))->v[URN_IMPAIR_QUEUE],
		1);
	expect(sw, 100000, (const uint32_t[]){2, 4, 6, 8, 10, 0});
	assert_int_equal(urn_switch_queues(sw, 1)->frames, 4);
	assert_true(urn_switch_next(sw) == UINT64_MAX);
	urn_switch_pause(sw, 1, 0, false, 200000);
	expect(sw, 200999, (const uint32_t[]){0});
	expect(sw, 204000, (const uint32_t[]){1, 3, 5, 7, 0});
	urn_switch_destroy(sw);
}

/* A port that takes nothing: its frames wait in the queue, and keep their times. */
static void
test_switch_held(void **state)
{
	struct urn_switch *sw = make(NULL);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);

	(void)state;
	urn_switch_hold(sw, 1, true);
	input(sw, 1, 3, 50);
	assert_int_equal(urn_switch_queues(sw, 1)->frames, 3);
	assert_int_equal(urn_impair_queued(wire), 0);
	urn_switch_hold(sw, 1, false);
	expect(sw, 2050, (const uint32_t[]){1, 2, 0});
	expect(sw, 3050, (const uint32_t[]){3, 0});
	/* Afterwards a frame that finds the wire free passes without touching the queue. */
	input(sw, 4, 4, 4000);
	assert_int_equal(urn_switch_queues(sw, 1)->frames, 0);
	assert_int_equal(urn_switch_queues(sw, 1)->level[0].c.v[URN_SWQ_C_WAITED], 3);
	urn_switch_destroy(sw);
}

/*
 * A wire with a rate and no classifier (architecture.md, seam 8): its frames wait in the switch's
 * queue, within the queue's bound, and are on the wire one at a time, at times that polling does
 * not change.
 */
static void
test_switch_rate(void **state)
{
	struct urn_switch *sw = make(NULL);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	const struct urn_swq *q = urn_switch_queues(sw, 1);

	(void)state;
	input(sw, 1, 6, 0);
	assert_int_equal(urn_impair_queued(wire), 1);
	assert_int_equal(q->frames, 4);
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_DROP_FRAMES], 1);
	assert_int_equal(urn_impair_counters(wire)->v[URN_IMPAIR_QUEUE], 1);
	expect(sw, 999, (const uint32_t[]){0});
	assert_int_equal(urn_switch_next(sw), 1000);
	expect(sw, 1000, (const uint32_t[]){1, 0});
	assert_int_equal(q->frames, 3);
	/* Paused, a priority keeps frames that the rate would let go. */
	urn_switch_pause(sw, 1, 0, true, 1500);
	expect(sw, 9000, (const uint32_t[]){2, 0});
	urn_switch_pause(sw, 1, 0, false, 10000);
	expect(sw, 11000, (const uint32_t[]){3, 0});
	/* A late poll changes no due time. */
	expect(sw, 13000, (const uint32_t[]){4, 5, 0});
	assert_int_equal(urn_switch_next(sw), UINT64_MAX);
	urn_switch_destroy(sw);
}

/* Without a classifier the bound is the impairment's; the queue still tells why frames were
 * dropped. */
static void
test_switch_reason(void **state)
{
	struct urn_switch *sw = make(NULL);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	const struct urn_swq *q = urn_switch_queues(sw, 1);
	const struct urn_impair_config cfg = {.rate_bps = 1000000000, .queue = 3};

	(void)state;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	assert_true(urn_swq_unused(q, 0));
	/* Frame 1 is on the wire, 2 and 3 wait, and there is no room for the others. */
	input(sw, 1, 7, 0);
	assert_int_equal(q->frames, 2);
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_WAITED], 2);
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_DROP_FRAMES], 4);
	assert_int_equal(urn_impair_counters(wire)->v[URN_IMPAIR_QUEUE], 4);
	assert_false(urn_swq_unused(q, 0));
	assert_true(urn_swq_unused(q, 5));
	expect(sw, 5000, (const uint32_t[]){1, 2, 3, 0});
	urn_switch_destroy(sw);
}

/*
 * Frames that find the wire free never see the queue: when nobody takes them from the wire, its own
 * bound drops them, and the queue counts nothing.
 */
static void
test_switch_not_the_queues(void **state)
{
	struct urn_switch *sw = make(NULL);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	const struct urn_impair_config cfg = {.rate_bps = 1000000000, .queue = 3};

	(void)state;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	for (uint32_t i = 1; i <= 5; i++)
		input(sw, i, i, i * 1000);
	assert_int_equal(urn_impair_counters(wire)->v[URN_IMPAIR_QUEUE], 2);
	assert_true(urn_swq_unused(urn_switch_queues(sw, 1), 0));
	expect(sw, 9000, (const uint32_t[]){1, 2, 3, 0});
	urn_switch_destroy(sw);
}

/* A priority without a bound in frames has that of the impairment, whenever the impairment is
 * changed. */
static void
test_switch_bound_follows(void **state)
{
	struct urn_switch *sw = make(classify_even);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	const struct urn_swq *q = urn_switch_queues(sw, 1);
	struct urn_impair_config cfg = {.rate_bps = 1000000000, .queue = 2};

	(void)state;
	urn_switch_pause(sw, 1, 0, true, 0);
	urn_switch_pause(sw, 1, 5, true, 0);
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	input(sw, 1, 10, 0);
	/* Priority 0 has a bound of its own, of 4 frames. */
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_WAITED], 4);
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_DROP_FRAMES], 1);
	assert_int_equal(q->level[5].c.v[URN_SWQ_C_WAITED], 2);
	assert_int_equal(q->level[5].c.v[URN_SWQ_C_DROP_FRAMES], 3);
	cfg.queue = 4;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	input(sw, 11, 16, 0);
	assert_int_equal(q->level[0].c.v[URN_SWQ_C_WAITED], 4);
	assert_int_equal(q->level[5].c.v[URN_SWQ_C_WAITED], 4);
	assert_int_equal(q->level[5].c.v[URN_SWQ_C_DROP_FRAMES], 4);
	/* Frames that wait already stay when there is room for fewer. */
	cfg.queue = 1;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	input(sw, 18, 18, 0);
	assert_int_equal(q->frames, 8);
	assert_int_equal(q->level[5].c.v[URN_SWQ_C_DROP_FRAMES], 5);
	urn_switch_destroy(sw);
}

/* A wire that is cut loses the frames that wait for it; a rate that is taken away lets all of them go. */
static void
test_switch_rate_changed(void **state)
{
	struct urn_switch *sw = make(NULL);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	struct urn_impair_config cfg = {.rate_bps = 1000000000, .blackhole = true};

	(void)state;
	input(sw, 1, 3, 0);
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	expect(sw, 5000, (const uint32_t[]){1, 0});
	assert_int_equal(urn_impair_counters(wire)->v[URN_IMPAIR_BLACKHOLE], 2);
	cfg.blackhole = false;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	input(sw, 4, 7, 6000);
	cfg.rate_bps = 0;
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	expect(sw, 7000, (const uint32_t[]){4, 5, 6, 7, 0});
	urn_switch_destroy(sw);
}

/* A frame that was overtaken gets on the wire later, but the wire's time does not run back. */
static void
test_switch_overtaken(void **state)
{
	struct urn_switch *sw = make(classify_even);
	struct urn_impair *wire = urn_switch_impair(sw, 1, URN_SWITCH_OUT);
	struct urn_impair_config cfg = {
		.rate_bps = 1000000000, .flap_up_ns = 10000, .flap_down_ns = 10000};

	(void)state;
	input(sw, 1, 1, 0);
	input(sw, 3, 3, 100);
	input(sw, 2, 2, 500);
	/* The flap begins anew with the next frame on the wire: frame 2, which came after frame 3. */
	assert_int_equal(urn_impair_set(wire, &cfg), 0);
	expect(sw, 3000, (const uint32_t[]){1, 2, 3, 0});
	assert_int_equal(urn_impair_counters(wire)->v[URN_IMPAIR_FLAP], 0);
	urn_switch_destroy(sw);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strict_order, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_bounds, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_watermarks_and_marks, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_pause, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_priorities, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_bound_and_pause, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_held, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_rate, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_reason, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_not_the_queues, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_bound_follows, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_rate_changed, frames_setup,
						frames_teardown),
		cmocka_unit_test_setup_teardown(test_switch_overtaken, frames_setup,
						frames_teardown),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
