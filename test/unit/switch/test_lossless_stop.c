/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops that never end by themselves: a full output, a pause storm, a ring of switches; and chains.
 */
#include "lossless_bench.h"

#define MS 1000000ull

enum { FULL_N = 8, FULL_WINDOW = 3, FULL_STEPS = 2500 };

/* Eight stations send to the receivers by turns, as windows allow. */
static void
send_by_turns(struct bench *b, unsigned int *turn)
{
	for (unsigned int i = FULL_N; i < 2 * FULL_N; i++) {
		for (unsigned int k = 0; k < FULL_N; k++) {
			unsigned int dst = (turn[i - FULL_N] + i + k) % FULL_N;

			if (b->st[i].out[dst] - b->st[dst].from[i] >= FULL_WINDOW)
				continue;
			bench_send(b, i, dst);
			turn[i - FULL_N] += k + 1;
			break;
		}
	}
}

/*
 * Eight stations send to eight others by turns, each with a window of 3 frames to a receiver, which
 * is less than a share. One receiver, each of them once, is paused for ever: its frames wait, and
 * the other seven get all that their wires carry.
 */
static void
test_full_output(void **state)
{
	struct urn_lossless_config cfg = bench_config();

	(void)state;
	for (unsigned int full = 0; full < FULL_N; full++) {
		unsigned int turn[FULL_N] = {0};
		struct bench b;

		bench_open(&b, 2 * FULL_N, &cfg);
		urn_switch_pause(b.sw, (uint16_t)full, BENCH_PRIORITY, true, 0);
		for (unsigned int t = 0; t < FULL_STEPS; t++) {
			send_by_turns(&b, turn);
			bench_step(&b);
		}
		/* All eight wires of the senders carry frames for seven receivers. */
		for (unsigned int i = 0; i < FULL_N; i++)
			assert_in_range(b.st[i].came, i == full ? 0 : FULL_STEPS - 50,
					i == full ? 0 : FULL_STEPS);
		assert_int_equal(urn_switch_queues(b.sw, (uint16_t)full)->frames,
				 FULL_N * FULL_WINDOW);
		for (unsigned int i = FULL_N; i < 2 * FULL_N; i++)
			assert_int_equal(b.st[i].frames_pfc, 0);
		assert_int_equal(bench_drops(&b), 0);
		bench_close(&b);
	}
}

/*
 * Senders without windows fill their accounts with frames for the output that is full, and stop.
 * The watchdog ends this for all of them, once.
 */
static void
test_full_output_no_window(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	uint64_t stood = 0, longest = 0, before = 0;
	struct bench b;

	(void)state;
	cfg.watchdog_ns = 2 * MS;
	cfg.restore_ns = 3 * MS;
	bench_open(&b, 4, &cfg);
	for (unsigned int t = 0; t < 20000; t++) {
		/* A storm: the receiver pauses for ever. */
		if (t % 1000 == 0)
			bench_pfc(&b, 0, 0xffff);
		bench_send(&b, 2, t & 1 ? 0 : 1);
		bench_send(&b, 3, 1);
		bench_step(&b);
		stood = b.st[1].from[2] == before ? stood + BENCH_STEP : 0;
		before = b.st[1].from[2];
		longest = stood > longest ? stood : longest;
		/* The other sender never feels it. */
		assert_true(b.st[1].from[3] + 50 >= t / 2);
	}
	/* The sender stood still no longer than the watchdog lets it. */
	assert_in_range(longest, MS, cfg.watchdog_ns + 100 * BENCH_STEP);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_WATCHDOG), 1);
	assert_true(bench_sum(&b, URN_SWQ_C_PAUSE_IGNORED) > 10);
	/* The receiver gets its frames, pause or not. */
	assert_true(b.st[0].came > 5000);
	bench_close(&b);
}

/* The watchdog: not early, with a counter for each frame, and lossless again when the storm is
 * over. */
static void
test_watchdog(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch_account a;
	struct bench b;

	(void)state;
	bench_open(&b, 2, &cfg);
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, true, 0);
	b.now = 50 * MS;
	for (unsigned int i = 0; i < 5; i++)
		bench_send(&b, 1, 0);
	assert_int_equal(urn_switch_next(b.sw), 250 * MS);
	b.now = 250 * MS - 1;
	urn_switch_run(b.sw, b.now);
	assert_int_equal(bench_waiting(b.sw), 5 * BENCH_LEN);
	b.now++;
	urn_switch_run(b.sw, b.now);
	assert_int_equal(bench_waiting(b.sw), 0);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_WATCHDOG), 1);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_DROP_WATCHDOG), 5);
	assert_int_equal(bench_drops(&b), 5);
	/* Pauses are ignored now, and each makes that time longer. */
	b.now = 400 * MS;
	bench_pfc(&b, 0, 0xffff);
	bench_send(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 1);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_PAUSE_IGNORED), 1);
	urn_switch_run(b.sw, 500 * MS);
	assert_true(urn_switch_account(b.sw, 0, BENCH_PRIORITY, &a) && a.restoring);
	b.now = 600 * MS;
	urn_switch_run(b.sw, b.now);
	assert_true(urn_switch_account(b.sw, 0, BENCH_PRIORITY, &a) && !a.restoring);
	/* From here on a pause counts again. */
	bench_pfc(&b, 0, 0xffff);
	bench_send(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 1);
	assert_int_equal(urn_switch_next(b.sw) < UINT64_MAX, true);
	bench_close(&b);
}

/* A device that takes nothing is a stop like any other, without a pause. */
static void
test_watchdog_held(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	(void)state;
	bench_open(&b, 2, &cfg);
	urn_switch_hold(b.sw, 0, true);
	for (unsigned int i = 0; i < 21; i++)
		bench_send(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[1].frames_pfc, 1);
	b.now = 201 * MS;
	bench_step(&b);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_DROP_WATCHDOG), 21);
	bench_step(&b);
	bench_step(&b);
	assert_int_equal(b.st[1].last.quanta[BENCH_PRIORITY], 0);
	/* Meanwhile its frames wait within the share of their input, and stop nobody. */
	for (unsigned int i = 0; i < 50; i++)
		bench_input(&b, 1, bench_frame(0, 1, BENCH_DSCP, i));
	assert_int_equal(urn_switch_queues(b.sw, 0)->frames, cfg.share / BENCH_LEN);
	bench_step(&b);
	assert_int_equal(b.st[1].last.quanta[BENCH_PRIORITY], 0);
	bench_close(&b);
}

/* A slow wire makes progress: a frame that takes longer than the watchdog's time is none of its
 * business. */
static void
test_watchdog_slow(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct rte_mbuf *m;
	struct bench b;

	(void)state;
	cfg.watchdog_ns = MS;
	bench_open(&b, 1, &cfg);
	bench_fix(b.sw, 1, bench_add_port(b.sw, 1000000, false)); /* 8 ms a frame */
	for (unsigned int i = 0; i < 5; i++)
		bench_send(&b, 0, 1);
	for (unsigned int t = 0; t < 500; t++, b.now += 100000) {
		urn_switch_run(b.sw, b.now);
		if (urn_switch_output(b.sw, 1, &m, 1, b.now))
			bench_take(&b, 1, m);
	}
	assert_int_equal(b.st[1].came, 5);
	bench_close(&b);
}

/* ---- several switches */

/* Move frames from a port of one switch to a port of another, as a wire outside the process does.
 */
static void
wire(struct urn_switch *from, uint16_t out, struct urn_switch *to, uint16_t in, uint64_t now)
{
	struct rte_mbuf *m[8];
	unsigned int n;

	while ((n = urn_switch_output(from, out, m, 8, now)) > 0)
		urn_switch_input(to, in, m, n, now);
}

static struct urn_switch *
make_switch(const struct urn_lossless_config *lossless)
{
	struct urn_switch_config cfg = {.copies = test_eal_pool(), .no_learning = true};
	struct urn_switch *sw;

	cfg.lossless = *lossless;
	sw = urn_switch_create(&cfg);
	assert_non_null(sw);
	return sw;
}

static uint64_t
count(const struct urn_switch *sw, enum urn_swq_counter c)
{
	uint64_t n = 0;

	for (uint16_t i = 0; i < (uint16_t)urn_switch_ports(sw); i++)
		n += urn_switch_queues(sw, i)->level[BENCH_PRIORITY].c.v[c];
	return n;
}

static uint64_t
lost(struct urn_switch *sw)
{
	uint64_t n = 0;

	for (uint16_t i = 0; i < (uint16_t)urn_switch_ports(sw); i++)
		n += urn_impair_counters(urn_switch_impair(sw, i, URN_SWITCH_OUT))
			     ->v[URN_IMPAIR_QUEUE];
	return n;
}

/* Take the frames for a station behind a port; a pause of the station ends at *until (ns). */
static void
to_station(struct urn_switch *sw, uint16_t port, struct bench *b, unsigned int station,
	   uint64_t *until)
{
	struct rte_mbuf *m;
	struct urn_pfc pfc;

	while (urn_switch_output(sw, port, &m, 1, b->now)) {
		if (urn_pfc_is_control(m)) {
			assert_int_equal(urn_pfc_read(m, &pfc), 0);
			*until = b->now +
				 urn_pfc_ns(pfc.quanta[BENCH_PRIORITY], urn_pfc_quantum(BENCH_BPS));
		}
		bench_take(b, station, m);
	}
}

enum { CHAIN = 3, SENDERS = 8 };

/* Three switches in a chain: ports 0 lead back, ports 1 to the receiver; links or wires between. */
static void
make_chain(struct urn_switch **sw, const struct urn_lossless_config *cfg, bool links)
{
	uint64_t between = links ? 0 : 2 * BENCH_BPS;

	for (unsigned int i = 0; i < CHAIN; i++) {
		sw[i] = make_switch(cfg);
		bench_add_port(sw[i], between, false);
		bench_add_port(sw[i], i == CHAIN - 1 ? BENCH_BPS : between, false);
		bench_fix(sw[i], 0, 1);
		if (i > 0 && links)
			assert_int_equal(urn_switch_link(sw[i - 1], 1, sw[i], 0), 0);
	}
	for (unsigned int i = 1; i <= SENDERS; i++)
		assert_int_equal(bench_add_port(sw[0], 0, false), i + 1);
}

/* All that a step moves: from the senders, between switches, to the receiver, back to the senders.
 */
static void
step_chain(struct urn_switch **sw, struct bench *b, bool links, uint64_t *until, uint32_t *number)
{
	uint64_t none = 0;

	for (unsigned int i = 1; i <= SENDERS; i++) {
		struct rte_mbuf *m;

		if (until[i] > b->now)
			continue;
		m = bench_frame(0, i, BENCH_DSCP, ++number[i]);
		urn_switch_input(sw[0], (uint16_t)(i + 1), &m, 1, b->now);
	}
	for (unsigned int i = 0; i + 1 < CHAIN && !links; i++) {
		wire(sw[i], 1, sw[i + 1], 0, b->now);
		wire(sw[i + 1], 0, sw[i], 1, b->now);
	}
	urn_switch_run_all(sw, CHAIN, b->now);
	to_station(sw[CHAIN - 1], 1, b, 0, &none);
	for (unsigned int i = 1; i <= SENDERS; i++)
		to_station(sw[0], (uint16_t)(i + 1), b, i, &until[i]);
}

/*
 * Eight senders at one end of a chain, a receiver at the other. The last wire is the bottleneck;
 * back-pressure crosses all switches, and none loses a frame.
 */
static void
chain(bool links)
{
	enum { STEPS = 10000 };
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch *sw[CHAIN];
	struct bench b = {0}; /* the receiver is station 0 */
	uint64_t until[SENDERS + 1] = {0}, most = 0;
	uint32_t number[SENDERS + 1] = {0};

	/* A link carries a burst at once, as there is no rate between. */
	cfg.headroom = 3 * URN_SWITCH_BURST * BENCH_LEN;
	make_chain(sw, &cfg, links);
	for (unsigned int t = 0; t < STEPS; t++, b.now += BENCH_STEP) {
		uint64_t waiting = 0;

		step_chain(sw, &b, links, until, number);
		for (unsigned int i = 0; i < CHAIN; i++)
			waiting += bench_waiting(sw[i]);
		most = RTE_MAX(most, waiting);
	}
	assert_in_range(b.st[0].came, STEPS - 20, STEPS);
	/* Credits need no frames of flow control between switches. */
	assert_int_equal(count(sw[2], URN_SWQ_C_PAUSE_TX) == 0, links);
	assert_true(most < (SENDERS + 2) * (uint64_t)(cfg.share + cfg.xoff + cfg.headroom));
	for (unsigned int i = 0; i < CHAIN; i++) {
		assert_int_equal(lost(sw[i]), 0);
		assert_int_equal(count(sw[i], URN_SWQ_C_WATCHDOG), 0);
		assert_true(count(sw[i], URN_SWQ_C_XOFFS) > 0);
		urn_switch_destroy(sw[i]);
	}
}

static void
test_chain_links(void **state)
{
	(void)state;
	chain(true);
}

static void
test_chain_wires(void **state)
{
	(void)state;
	chain(false);
}

/*
 * Full bursts of many inputs at once for a link without a rate, behind which nothing goes on: no
 * more than a burst crosses the link before the credit is looked at again.
 */
static void
test_link_burst(void **state)
{
	enum { INPUTS = 8 };
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch *sw[2];
	struct rte_mbuf *m[URN_SWITCH_BURST];

	(void)state;
	cfg.headroom = URN_SWITCH_BURST * BENCH_LEN;
	for (unsigned int i = 0; i < 2; i++) {
		sw[i] = make_switch(&cfg);
		bench_add_port(sw[i], 0, false);
		bench_add_port(sw[i], 0, false);
		bench_fix(sw[i], 0, 1);
	}
	assert_int_equal(urn_switch_link(sw[0], 1, sw[1], 0), 0);
	urn_switch_pause(sw[1], 1, BENCH_PRIORITY, true, 0);
	for (uint16_t i = 0; i < INPUTS; i++) {
		uint16_t port = i ? bench_add_port(sw[0], 0, false) : 0;

		for (unsigned int k = 0; k < URN_SWITCH_BURST; k++)
			m[k] = bench_frame(0, i + 1u, BENCH_DSCP, k);
		urn_switch_input(sw[0], port, m, URN_SWITCH_BURST, 1);
	}
	urn_switch_run_all(sw, 2, 1);
	assert_int_equal(lost(sw[0]) + lost(sw[1]), 0);
	assert_int_equal(bench_waiting(sw[0]) + bench_waiting(sw[1]),
			 INPUTS * URN_SWITCH_BURST * BENCH_LEN);
	assert_in_range(bench_waiting(sw[1]), cfg.xoff, cfg.share + cfg.xoff + cfg.headroom);
	for (unsigned int i = 0; i < 2; i++)
		urn_switch_destroy(sw[i]);
}

/*
 * A link whose wires have a rate and a delay, behind which nothing goes on for 300 frames. The end
 * of the stop lets frames go at the wire's rate: those of the time of the stop are not sent all at
 * once, because frames that the wire delays are in no account yet.
 */
static void
test_link_after_stop(void **state)
{
	enum { STOP = 300, STEPS = 3000, DELAY = 4 * BENCH_STEP };
	struct urn_switch_port_config far = {.speed = BENCH_BPS};
	struct urn_lossless_config cfg = bench_config();
	struct bench b = {0}; /* the receiver is station 0 */
	struct urn_switch *sw[2];
	uint64_t none = 0;

	(void)state;
	cfg.headroom = 2 * URN_SWITCH_BURST * BENCH_LEN;
	far.impair[URN_SWITCH_IN].delay_ns = DELAY;
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_lossless_config own = cfg;

		/* The sender keeps to no flow control: the first switch has room for all. */
		own.headroom = i ? cfg.headroom : (STOP + 1) * BENCH_LEN;
		sw[i] = make_switch(&own);
		if (i)
			assert_int_equal(urn_switch_add_port(sw[i], &far), 0);
		else
			bench_add_port(sw[i], 0, false);
		bench_add_port(sw[i], BENCH_BPS, false);
		bench_fix(sw[i], 0, 1);
	}
	assert_int_equal(urn_switch_link(sw[0], 1, sw[1], 0), 0);
	urn_switch_pause(sw[1], 1, BENCH_PRIORITY, true, 0);
	for (uint32_t t = 0; t < STEPS; t++, b.now += BENCH_STEP) {
		struct rte_mbuf *m = bench_frame(0, 1, BENCH_DSCP, t + 1);

		if (t < STOP)
			urn_switch_input(sw[0], 0, &m, 1, b.now);
		else
			rte_pktmbuf_free(m);
		if (t == STOP)
			urn_switch_pause(sw[1], 1, BENCH_PRIORITY, false, b.now);
		urn_switch_run_all(sw, 2, b.now);
		to_station(sw[1], 1, &b, 0, &none);
	}
	assert_int_equal(count(sw[1], URN_SWQ_C_DROP_HEADROOM), 0);
	assert_int_equal(lost(sw[0]) + lost(sw[1]), 0);
	assert_int_equal(b.st[0].came, STOP);
	for (unsigned int i = 0; i < 2; i++)
		urn_switch_destroy(sw[i]);
}

enum { RING = 3, STATION = 0, NEXT = 1, BEFORE = 2 };

/* All that a step of a ring moves. sends: stations send, twice as fast as a wire carries. */
static void
step_ring(struct urn_switch **sw, struct bench *b, bool sends, uint64_t *until, uint32_t *number)
{
	for (unsigned int i = 0; i < RING; i++) {
		/* Stations come before links: the worst order for the flows that cross. */
		for (unsigned int k = 0; k < 2 && until[i] <= b->now && sends; k++) {
			struct rte_mbuf *m =
				bench_frame((i + 2) % RING, i, BENCH_DSCP, ++number[i]);

			urn_switch_input(sw[i], STATION, &m, 1, b->now);
		}
		urn_switch_run(sw[i], b->now);
	}
	for (unsigned int i = 0; i < RING; i++) {
		wire(sw[i], NEXT, sw[(i + 1) % RING], BEFORE, b->now);
		wire(sw[(i + 1) % RING], BEFORE, sw[i], NEXT, b->now);
		to_station(sw[i], STATION, b, i, &until[i]);
	}
}

/*
 * Three switches in a ring, each with a station that sends two hops on, to the station of the
 * switch after next: every link carries two flows, each of which waits for the next link. Accounts
 * get full all around, and nothing moves any more: a deadlock. The watchdog ends it.
 */
static void
test_ring(void **state)
{
	enum { STEPS = 60000 };
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch *sw[RING];
	struct bench b = {0};
	uint64_t stood = 0, longest = 0, until[RING] = {0}, fired = 0;
	uint32_t number[RING] = {0}, came = 0;

	(void)state;
	cfg.watchdog_ns = cfg.restore_ns = 5 * MS;
	for (unsigned int i = 0; i < RING; i++) {
		sw[i] = make_switch(&cfg);
		for (unsigned int k = 0; k < 3; k++)
			bench_add_port(sw[i], BENCH_BPS, false);
		bench_fix(sw[i], i, STATION);
		bench_fix(sw[i], (i + 1) % RING, NEXT);
		bench_fix(sw[i], (i + 2) % RING, NEXT);
	}
	for (unsigned int t = 0; t < STEPS; t++, b.now += BENCH_STEP) {
		uint32_t now = 0;

		step_ring(sw, &b, t < STEPS / 2, until, number);
		for (unsigned int i = 0; i < RING; i++)
			now += b.st[i].came;
		stood = now == came ? stood + BENCH_STEP : 0;
		came = now;
		longest = t < STEPS / 2 ? RTE_MAX(longest, stood) : longest;
	}
	/* All is empty in the end. */
	for (unsigned int i = 0; i < RING; i++) {
		fired += count(sw[i], URN_SWQ_C_WATCHDOG);
		assert_int_equal(bench_waiting(sw[i]), 0);
		urn_switch_destroy(sw[i]);
	}
	/* The deadlock was there, and it lasted no longer than the bound. */
	print_message("%u frames came, %u times the watchdog, longest stop %.1f ms\n", came,
		      (unsigned int)fired, (double)longest / 1e6);
	assert_true(fired > 0);
	assert_true(longest <= cfg.watchdog_ns + MS);
	assert_true(came > STEPS / 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, frames_setup, frames_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_full_output),	    TEST(test_full_output_no_window),
		TEST(test_watchdog),	    TEST(test_watchdog_held),
		TEST(test_watchdog_slow),   TEST(test_chain_links),
		TEST(test_chain_wires),	    TEST(test_link_burst),
		TEST(test_link_after_stop), TEST(test_ring),
	};

	return cmocka_run_group_tests_name("switch_lossless_stop", tests, NULL, NULL);
}
