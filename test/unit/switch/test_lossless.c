/* SPDX-License-Identifier: BSD-3-Clause */
/* A lossless switch: accounts of inputs, flow control both ways, nothing lost under incast. */
#include "lossless_bench.h"

static struct urn_switch_account
account(const struct bench *b, uint16_t port)
{
	struct urn_switch_account a;

	assert_true(urn_switch_account(b->sw, port, BENCH_PRIORITY, &a));
	return a;
}

/* 16 senders into one port at their full rates: no frame is lost, none is late, memory is bounded.
 */
static void
test_incast(void **state)
{
	enum { SENDERS = 16, STEPS = 20000 };
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	(void)state;
	bench_open(&b, SENDERS + 1, &cfg);
	for (unsigned int t = 0; t < STEPS; t++) {
		for (unsigned int i = 1; i <= SENDERS; i++)
			bench_send(&b, i, 0);
		bench_step(&b);
	}
	/* The wire never stood still; its first frame is one step late. */
	assert_in_range(b.st[0].came, STEPS - 2, STEPS);
	assert_int_equal(bench_drops(&b), 0);
	assert_true(bench_sum(&b, URN_SWQ_C_XOFFS) > SENDERS);
	assert_true(b.most <= SENDERS * (cfg.share + cfg.xoff + cfg.headroom));
	/* Pauses are fair enough: each sender gets its part of the port, within a half. */
	for (unsigned int i = 1; i <= SENDERS; i++)
		assert_in_range(b.st[0].from[i], STEPS / SENDERS / 2, STEPS / SENDERS * 3 / 2);
	/* When all is still, all accounts are empty, and all senders may go on. */
	for (unsigned int t = 0; t < 2000; t++)
		bench_step(&b);
	for (uint16_t i = 0; i <= SENDERS; i++) {
		assert_int_equal(account(&b, i).bytes, 0);
		assert_false(account(&b, i).stopped);
		assert_true(b.st[i].until[BENCH_PRIORITY] <= b.now);
	}
	assert_int_equal(bench_waiting(b.sw), 0);
	bench_close(&b);
}

/* The same senders in a priority that is not lossless: frames are dropped at the bound, none is
 * paused. */
static void
test_lossy_priority(void **state)
{
	enum { SENDERS = 4 };
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	(void)state;
	cfg.queue = 20000;
	bench_open(&b, SENDERS + 1, &cfg);
	for (unsigned int t = 0; t < 200; t++) {
		for (unsigned int i = 1; i <= SENDERS; i++)
			bench_send_lossy(&b, i, 0);
		bench_step(&b);
	}
	assert_in_range(urn_switch_queues(b.sw, 0)->level[0].bytes, 18000, 20000);
	assert_int_equal(urn_switch_queues(b.sw, 0)->level[0].peak, 20000);
	assert_true(urn_switch_queues(b.sw, 0)->level[0].c.v[URN_SWQ_C_DROP_BYTES] > 500);
	assert_int_equal(b.st[1].frames_pfc, 0);
	bench_close(&b);
}

/* An account: the share is free, xoff pauses, xon lets go on, headroom is the end. */
static void
test_account(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct bench b;
	const struct urn_swq *q;
	unsigned int n = 0;

	(void)state;
	bench_open(&b, 3, &cfg);
	b.st[1].deaf = true;
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, true, 0);
	q = urn_switch_queues(b.sw, 0);
	while (!account(&b, 1).stopped) {
		bench_send(&b, 1, 0);
		n++;
		urn_switch_run(b.sw, b.now);
	}
	/* 4,096 of share and 16,384 to xoff are 20.5 frames. */
	assert_int_equal(n, 21);
	assert_int_equal(account(&b, 1).bytes, 21000);
	assert_false(account(&b, 0).stopped);
	assert_true(account(&b, 0).paused);
	while (q->level[BENCH_PRIORITY].c.v[URN_SWQ_C_DROP_HEADROOM] == 0) {
		bench_send(&b, 1, 0);
		n++;
	}
	/* ... and with 16,384 of headroom 36.9. */
	assert_int_equal(n, 37);
	assert_int_equal(account(&b, 1).bytes, 36000);
	/* Another input's account is its own; so is another output's share. */
	bench_send(&b, 2, 0);
	assert_int_equal(account(&b, 2).bytes, BENCH_LEN);
	assert_int_equal(q->level[BENCH_PRIORITY].c.v[URN_SWQ_C_DROP_HEADROOM], 1);
	bench_step(&b);
	assert_int_equal(b.st[1].last.quanta[BENCH_PRIORITY], URN_PFC_LONGEST);
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, false, b.now);
	while (account(&b, 1).stopped)
		bench_step(&b);
	/* xon is reached when share and 12,288 are left: 16 frames of this input. */
	assert_in_range(account(&b, 1).bytes, 15000, 16384);
	bench_step(&b);
	bench_step(&b);
	assert_int_equal(b.st[1].last.enable, 1u << BENCH_PRIORITY);
	assert_int_equal(b.st[1].last.quanta[BENCH_PRIORITY], 0);
	bench_close(&b);
}

/* A pause is told again before it runs out, and ends at once when there is room. */
static void
test_refresh(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	uint64_t last = urn_pfc_ns(URN_PFC_LONGEST, urn_pfc_quantum(BENCH_BPS)), told = 0;
	struct bench b;
	uint32_t seen;

	(void)state;
	bench_open(&b, 2, &cfg);
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, true, 0);
	while (b.st[1].frames_pfc == 0) {
		bench_send(&b, 1, 0);
		bench_step(&b);
	}
	told = b.now;
	seen = b.st[1].frames_pfc;
	/* The watchdog comes after 200 ms only: until then the sender is paused without a gap. */
	while (b.now < 100000000) {
		bench_step(&b);
		assert_true(b.st[1].until[BENCH_PRIORITY] > b.now);
		assert_true(urn_switch_next(b.sw) <= told + last);
		if (b.st[1].frames_pfc != seen) {
			assert_in_range(b.now - told, last / 2 - BENCH_STEP,
					last / 2 + 3 * BENCH_STEP);
			told = b.now;
			seen = b.st[1].frames_pfc;
		}
	}
	assert_in_range(seen, 100000000 / (last / 2), 100000000 / (last / 2) + 3);
	assert_int_equal(urn_switch_queues(b.sw, 1)->level[BENCH_PRIORITY].c.v[URN_SWQ_C_PAUSE_TX],
			 seen);
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, false, b.now);
	for (unsigned int t = 0; t < 50; t++)
		bench_step(&b);
	assert_true(b.st[1].until[BENCH_PRIORITY] <= b.now);
	assert_int_equal(bench_drops(&b), 0);
	bench_close(&b);
}

/* An output that is paused sends nothing of the priority until the quanta run out at its speed. */
static void
test_obey(void **state)
{
	enum { QUANTA = 1000 };
	struct urn_lossless_config cfg = bench_config();
	uint64_t pause = urn_pfc_ns(QUANTA, urn_pfc_quantum(BENCH_BPS));
	struct bench b;

	(void)state;
	assert_int_equal(pause, 64000);
	bench_open(&b, 2, &cfg);
	bench_pfc(&b, 0, QUANTA);
	bench_send(&b, 1, 0);
	bench_send_lossy(&b, 1, 0);
	assert_int_equal(urn_switch_next(b.sw), 1024);
	while (b.now + BENCH_STEP < pause) {
		bench_step(&b);
		assert_int_equal(b.st[0].came, 1); /* the lossy one */
	}
	assert_true(account(&b, 0).paused);
	assert_int_equal(urn_switch_next(b.sw), pause);
	bench_step(&b);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 2);
	/* A resume ends a pause early. */
	bench_pfc(&b, 0, QUANTA);
	bench_send(&b, 1, 0);
	bench_step(&b);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 2);
	bench_pfc(&b, 0, 0);
	bench_step(&b);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 3);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_PAUSE_RX), 2);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_RESUME_RX), 1);
	bench_close(&b);
}

/* A pause of a priority that is not lossless is counted, and changes nothing. */
static void
test_pause_of_lossy(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct urn_pfc pfc = {.enable = 1, .quanta = {0xffff}};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct bench b;

	(void)state;
	bench_open(&b, 2, &cfg);
	assert_int_equal(urn_pfc_write(m, (const uint8_t[6]){2}, &pfc), 0);
	bench_input(&b, 0, m);
	bench_send_lossy(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 1);
	assert_int_equal(urn_switch_queues(b.sw, 0)->level[0].c.v[URN_SWQ_C_PAUSE_IGNORED], 1);
	bench_close(&b);
}

/* Frames of MAC control that are malformed are counted, dropped, and never sent on. */
static void
test_malformed(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	(void)state;
	bench_open(&b, 3, &cfg);
	for (unsigned int i = 0; i < 4; i++) {
		struct rte_mbuf *m = frame_make(0, i == 0 ? 20 : 60);
		uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

		memcpy(f, (const uint8_t[6]){1, 0x80, 0xc2, 0, 0, 1}, 6);
		f[12] = 0x88;
		f[13] = 0x08;
		f[14] = 1;
		f[15] = i == 1 ? 2 : 1;	     /* an opcode that does not exist */
		f[16] = i == 2;		     /* a ninth priority */
		f[5] = i == 3 ? 0x42 : f[5]; /* not the address of MAC control */
		bench_input(&b, 0, m);
	}
	bench_step(&b);
	assert_int_equal(urn_switch_counters(b.sw, 0)->v[URN_SWITCH_DROP_PFC], 4);
	assert_int_equal(b.st[1].came + b.st[2].came, 0);
	bench_close(&b);
}

/* Without lossless priorities the frames end as before: at the reserved address. */
static void
test_not_configured(void **state)
{
	struct urn_lossless_config cfg = {0};
	struct urn_switch_account a;
	struct bench b;

	(void)state;
	bench_open(&b, 2, &cfg);
	bench_pfc(&b, 0, 0xffff);
	assert_int_equal(urn_switch_counters(b.sw, 0)->v[URN_SWITCH_DROP_RESERVED], 1);
	bench_send(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 1);
	assert_false(urn_switch_account(b.sw, 0, BENCH_PRIORITY, &a));
	assert_true(urn_switch_takes(b.sw, 0));
	bench_close(&b);
	/* Numbers that contradict each other make no switch. */
	cfg = bench_config();
	cfg.xon = cfg.xoff + 1;
	assert_null(urn_switch_create(&(struct urn_switch_config){.lossless = cfg}));
}

/* A port that went down has forgotten pauses, both ways. */
static void
test_port_down(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	(void)state;
	bench_open(&b, 2, &cfg);
	bench_pfc(&b, 0, 0xffff);
	urn_switch_port_set_up(b.sw, 0, false);
	urn_switch_port_set_up(b.sw, 0, true);
	bench_send(&b, 1, 0);
	bench_step(&b);
	assert_int_equal(b.st[0].came, 1);
	bench_close(&b);
}

/*
 * A sender inside the process that knows no flow control: credits alone keep its frames with it.
 * The limit leaves room for the burst that the last credit lets in.
 */
static void
test_credits(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct rte_mbuf *m[URN_SWITCH_BURST];
	struct bench b;
	uint32_t sent = 0, bursts = 0;

	(void)state;
	cfg.headroom = 160000; /* a burst's bytes and some */
	bench_open(&b, 1, &cfg);
	bench_fix(b.sw, 1, bench_add_port(b.sw, 0, true));
	for (unsigned int t = 0; t < 5000; t++) {
		if (urn_switch_takes(b.sw, 1)) {
			for (unsigned int i = 0; i < URN_SWITCH_BURST; i++)
				m[i] = bench_frame(0, 1, BENCH_DSCP, ++sent);
			urn_switch_input(b.sw, 1, m, URN_SWITCH_BURST, b.now);
			bursts++;
		}
		bench_step(&b);
	}
	assert_in_range(b.st[0].came, 4990, 5000);
	assert_int_equal(bench_drops(&b), 0);
	assert_true(bursts < 300);
	assert_true(account(&b, 1).peak <= cfg.share + cfg.xoff + cfg.headroom);
	assert_true(bench_sum(&b, URN_SWQ_C_HOLDS) ||
		    urn_switch_queues(b.sw, 1)->level[BENCH_PRIORITY].c.v[URN_SWQ_C_HOLDS]);
	bench_close(&b);
}

/*
 * One uplink carries no frames of flow control: it gets none, its own pauses stop nobody, and its
 * frames beyond the account are dropped and counted there alone. The other ports lose nothing.
 */
static void
test_port_without_pfc(void **state)
{
	struct urn_switch_port_config port = {.name = "up", .pfc = URN_SWITCH_PFC_NO};
	struct urn_lossless_config cfg = bench_config();
	uint32_t number = 0;
	struct bench b;

	(void)state;
	port.impair[URN_SWITCH_OUT].rate_bps = BENCH_BPS;
	bench_open(&b, 2, &cfg);
	bench_fix(b.sw, 2, (uint16_t)urn_switch_add_port(b.sw, &port));
	b.ports = 3;
	b.st[2].deaf = true;
	assert_int_equal(urn_switch_port_pfc(b.sw, 0), URN_SWITCH_PFC_YES);
	assert_int_equal(urn_switch_port_pfc(b.sw, 2), URN_SWITCH_PFC_NO);
	for (unsigned int t = 0; t < 3000; t++) {
		bench_send(&b, 1, 0); /* stopped by turns: two senders share the wire */
		bench_input(&b, 2, bench_frame(0, 2, BENCH_DSCP, ++number));
		bench_step(&b);
	}
	assert_true(b.st[1].frames_pfc > 0);
	assert_int_equal(b.st[2].frames_pfc, 0);
	assert_true(urn_switch_queues(b.sw, 0)->level[BENCH_PRIORITY].c.v[URN_SWQ_C_DROP_HEADROOM] +
			    urn_switch_queues(b.sw, 2)
				    ->level[BENCH_PRIORITY]
				    .c.v[URN_SWQ_C_DROP_HEADROOM] >
		    100);
	for (unsigned int t = 0; t < 200; t++)
		bench_step(&b);
	assert_int_equal(b.st[0].from[1], b.st[1].sent);
	/* A pause that comes from there is counted and ignored. */
	bench_pfc(&b, 2, 0xffff);
	b.st[2].came = 0;
	for (unsigned int t = 0; t < 10; t++) {
		bench_send(&b, 1, 2);
		bench_step(&b);
	}
	assert_true(b.st[2].came >= 8);
	assert_int_equal(
		urn_switch_queues(b.sw, 2)->level[BENCH_PRIORITY].c.v[URN_SWQ_C_PAUSE_IGNORED], 1);
	/* The other ports still obey. */
	bench_pfc(&b, 0, 0xffff);
	b.st[0].came = 0;
	for (unsigned int t = 0; t < 10; t++) {
		bench_send(&b, 1, 0);
		bench_step(&b);
	}
	assert_true(b.st[0].came <= 1);
	bench_close(&b);
}

/* A switch without such frames has a port that carries them. */
static void
test_port_with_pfc(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch_port_config port = {.name = "up", .pfc = URN_SWITCH_PFC_YES};
	struct bench b;

	(void)state;
	cfg.no_pfc = true;
	bench_open(&b, 2, &cfg);
	bench_fix(b.sw, 2, (uint16_t)urn_switch_add_port(b.sw, &port));
	b.ports = 3;
	assert_int_equal(urn_switch_port_pfc(b.sw, 0), URN_SWITCH_PFC_OBEY);
	for (unsigned int t = 0; t < 1000; t++) {
		bench_send(&b, 1, 0);
		bench_send(&b, 2, 0);
		bench_step(&b);
	}
	assert_int_equal(b.st[1].frames_pfc, 0);
	assert_true(b.st[2].frames_pfc > 0);
	bench_close(&b);
}

/* No packet for a frame of flow control: counted, and made up for as soon as there is one. */
static void
test_no_packet(void **state)
{
	struct urn_lossless_config cfg = bench_config();
	struct rte_mbuf *all[TEST_EAL_MBUFS];
	struct bench b;
	unsigned int n = 0;

	(void)state;
	bench_open(&b, 2, &cfg);
	urn_switch_pause(b.sw, 0, BENCH_PRIORITY, true, 0);
	while (!account(&b, 1).stopped)
		bench_send(&b, 1, 0);
	while (n < TEST_EAL_MBUFS && (all[n] = rte_pktmbuf_alloc(test_eal_pool())) != NULL)
		n++;
	urn_switch_run(b.sw, b.now);
	assert_int_equal(urn_switch_counters(b.sw, 1)->v[URN_SWITCH_PFC_NO_MBUF], 1);
	assert_int_equal(urn_switch_next(b.sw), 0);
	rte_pktmbuf_free_bulk(all, n);
	bench_step(&b);
	assert_int_equal(b.st[1].frames_pfc, 1);
	bench_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, frames_setup, frames_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_incast),	  TEST(test_lossy_priority), TEST(test_account),
		TEST(test_refresh),	  TEST(test_obey),	     TEST(test_pause_of_lossy),
		TEST(test_malformed),	  TEST(test_not_configured), TEST(test_port_down),
		TEST(test_credits),	  TEST(test_no_packet),	     TEST(test_port_without_pfc),
		TEST(test_port_with_pfc),
	};

	return cmocka_run_group_tests_name("switch_lossless", tests, NULL, NULL);
}
