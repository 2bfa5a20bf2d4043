/* SPDX-License-Identifier: BSD-3-Clause */
/* An adapter obeys flow control by priority, on all its engines, until the watchdog ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "engine/engine.h"

#include <string.h>

#define MS 1000000ull
#define BPS 10000000000ull

/* Two engines of an adapter, each with a queue of the port; transports without anything but a list.
 */
static struct {
	struct urn_engine *engine[2];
	struct urn_shard shard[2];
	struct urn_shard *sibling[URN_ABI_MAX_ENGINES];
	struct urn_tp *tp[2];
	struct urn_port port;
	unsigned int room;		    /* frames that the port takes in a turn */
	void (*take)(const uint8_t *frame); /* sees each of these; NULL: nobody */
} t;

uint16_t __wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m,
				 uint16_t n);

/* The port takes frames, as many as it has room for. */
uint16_t
__wrap_urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t taken = (uint16_t)RTE_MIN(n, t.room);

	assert_ptr_equal(p, &t.port);
	assert_true(queue < 2);
	for (uint16_t i = 0; i < taken; i++) {
		if (t.take)
			t.take(rte_pktmbuf_mtod(m[i], const uint8_t *));
		rte_pktmbuf_free(m[i]);
	}
	return taken;
}

static int
setup(void **state)
{
	struct urn_obey_config cfg = {.on = true};
	struct urn_engine_config ec = {0};

	(void)state;
	test_eal_pool();
	urn_classify_preset(&cfg.map);
	memset(&t, 0, sizeof(t));
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_shard *s = &t.shard[i];

		t.engine[i] = urn_engine_create(i, &ec, i ? "obey1" : "obey0");
		t.tp[i] = calloc(1, sizeof(*t.tp[i]));
		assert_non_null(t.engine[i]);
		assert_non_null(t.tp[i]);
		t.tp[i]->now = MS;
		t.sibling[i] = s;
		*s = (struct urn_shard){.engine = t.engine[i],
					.tp = t.tp[i],
					.sibling = t.sibling,
					.queue = (int)i,
					.port = &t.port,
					.obey = urn_obey_create(&cfg, BPS)};
		assert_non_null(s->obey);
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		rte_pktmbuf_free_bulk(t.tp[i]->tx, t.tp[i]->tx_n);
		urn_obey_destroy(t.shard[i].obey); /* with the frames that wait */
		urn_engine_destroy(t.engine[i]);
		free(t.tp[i]);
	}
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), TEST_EAL_MBUFS);
	return 0;
}

static void
add(unsigned int engine, unsigned int dscp)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	uint8_t *f;

	assert_non_null(m);
	f = (uint8_t *)rte_pktmbuf_append(m, 60);
	memset(f, 0, 60);
	f[12] = 0x08;
	f[14] = 0x45;
	f[15] = (uint8_t)(dscp << 2);
	t.tp[engine]->tx[t.tp[engine]->tx_n++] = m;
}

/* DSCP of frame i of an engine's list. */
static unsigned int
dscp(unsigned int engine, unsigned int i)
{
	return rte_pktmbuf_mtod(t.tp[engine]->tx[i], const uint8_t *)[15] >> 2;
}

static void
receive(unsigned int engine, unsigned int priority, uint16_t quanta)
{
	struct urn_pfc pfc = {.enable = (uint8_t)(1u << priority)};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	pfc.quanta[priority] = quanta;
	assert_int_equal(urn_pfc_write(m, (const uint8_t[6]){2}, &pfc), 0);
	assert_int_equal(urn_shard_take_control(&t.shard[engine], &m, 1), 0);
}

#define COUNT(engine, id) t.tp[engine]->c.v[URN_C_##id]

/* Frames of an engine's list that may be sent now. */
static unsigned int
may_send(unsigned int engine)
{
	urn_shard_hold(&t.shard[engine]);
	return t.tp[engine]->tx_n;
}

/* Only frames of the priority that is paused wait, in their order, and only as long as the quanta
 * last. */
static void
by_priority(void **state)
{
	uint64_t pause = urn_pfc_ns(1000, urn_pfc_quantum(BPS));

	(void)state;
	add(0, 24);
	add(0, 0);
	add(0, 26);
	add(0, 1);
	assert_int_equal(may_send(0), 4);
	receive(0, 3, 1000);
	assert_int_equal(may_send(0), 2);
	assert_int_equal(dscp(0, 0), 0);
	assert_int_equal(dscp(0, 1), 1);
	assert_int_equal(t.tp[0]->held, 2);
	assert_int_equal(COUNT(0, TX_PAUSED), 1);
	t.tp[0]->now += pause - 1;
	assert_int_equal(may_send(0), 2);
	t.tp[0]->now++;
	assert_int_equal(may_send(0), 4);
	assert_int_equal(dscp(0, 0), 24);
	assert_int_equal(dscp(0, 1), 26);
	assert_int_equal(t.tp[0]->held, 0);
	/* A resume ends a pause at once; each is counted. */
	receive(0, 0, 0xffff);
	assert_int_equal(may_send(0), 2);
	receive(0, 0, 0);
	assert_int_equal(may_send(0), 4);
	assert_int_equal(COUNT(0, PFC_PAUSE), 2);
	assert_int_equal(COUNT(0, PFC_RESUME), 1);
}

/* The engine whose queue the frame came in at tells the other. */
static void
other_engine(void **state)
{
	(void)state;
	add(1, 26);
	receive(0, 3, 0xffff);
	assert_int_equal(may_send(1), 1);
	assert_int_equal(urn_engine_take(t.engine[1]), 1);
	assert_int_equal(may_send(1), 0);
	receive(0, 3, 0);
	assert_int_equal(urn_engine_take(t.engine[1]), 1);
	assert_int_equal(may_send(1), 1);
	/* A shard without a queue of the port sends nothing, and needs no message. */
	t.shard[1].queue = -1;
	receive(0, 3, 0xffff);
	assert_int_equal(urn_engine_take(t.engine[1]), 0);
	t.shard[1].queue = 1;
}

/* Malformed frames are counted and gone; other frames of a burst stay, in order. */
static void
malformed(void **state)
{
	struct rte_mbuf *m[3];

	(void)state;
	add(0, 1);
	add(0, 2);
	add(0, 3);
	memcpy(m, t.tp[0]->tx, sizeof(m));
	t.tp[0]->tx_n = 0;
	rte_pktmbuf_mtod(m[1], uint8_t *)[12] = 0x88;
	rte_pktmbuf_mtod(m[1], uint8_t *)[13] = 0x08;
	assert_int_equal(urn_shard_take_control(&t.shard[0], m, 3), 2);
	assert_int_equal(COUNT(0, DROP_PFC), 1);
	assert_int_equal(rte_pktmbuf_mtod(m[0], uint8_t *)[15] >> 2, 1);
	assert_int_equal(rte_pktmbuf_mtod(m[1], uint8_t *)[15] >> 2, 3);
	rte_pktmbuf_free_bulk(m, 2);
}

/* A peer that pauses for ever stops the adapter once, for the watchdog's time. */
static void
storm(void **state)
{
	uint64_t stopped = 0;

	(void)state;
	add(0, 26);
	for (unsigned int i = 0; i < 1000; i++) {
		receive(0, 3, 0xffff);
		stopped += may_send(0) == 0;
		t.tp[0]->now += MS;
	}
	assert_in_range(stopped, 199, 201);
	assert_int_equal(COUNT(0, PFC_STORM), 1);
	assert_int_equal(COUNT(0, PFC_IGNORED), 999 - stopped);
	/* When the storm is over for long enough, a pause counts again. */
	t.tp[0]->now += URN_OBEY_NS;
	receive(0, 3, 0xffff);
	assert_int_equal(may_send(0), 0);
}

/* Pauses that end now and then are no storm, however many they are; nor is one without frames. */
static void
no_storm(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		receive(0, 3, 0xffff);
		assert_int_equal(may_send(0), 0);
		t.tp[0]->now += MS;
	}
	add(0, 26);
	for (unsigned int i = 0; i < 1000; i++) {
		receive(0, 3, i % 100 == 99 ? 0 : 0xffff);
		assert_int_equal(may_send(0), i % 100 == 99);
		t.tp[0]->now += MS;
	}
	assert_int_equal(COUNT(0, PFC_STORM), 0);
}

/* Send the frames that may go, and have another one in the list. returns: how many went */
static unsigned int
send_frames(void)
{
	unsigned int n = may_send(0);

	rte_pktmbuf_free_bulk(t.tp[0]->tx, n);
	t.tp[0]->tx_n = 0;
	while (t.tp[0]->tx_n + t.tp[0]->held < 4)
		add(0, 26);
	return n;
}

/*
 * A peer whose pauses end every 100 ms, each time for `gap` ns, for 30 seconds. returns: ms in
 * which the frames were held
 */
static unsigned int
pause_often(uint64_t gap)
{
	unsigned int held = 0;

	for (unsigned int i = 0; i < 30000; i++) {
		if (i % 100 == 99) {
			receive(0, 3, 0);
			if (gap)
				send_frames();
			t.tp[0]->now += gap;
		}
		receive(0, 3, 0xffff);
		held += send_frames() == 0;
		t.tp[0]->now += MS;
	}
	return held;
}

/* A peer that lets frames go for a moment, whenever the watchdog is about to look, stops them for
 * four times the watchdog's time, once. */
static void
storm_in_turns(void **state)
{
	unsigned int held;

	(void)state;
	add(0, 26);
	held = pause_often(1000);
	assert_in_range(held, 790, 820);
	assert_int_equal(COUNT(0, PFC_STORM), 1);
}

/* A peer that lets them go, and pauses again before the engine has sent any, lets none go. */
static void
storm_without_gap(void **state)
{
	unsigned int held;

	(void)state;
	add(0, 26);
	held = pause_often(0);
	assert_in_range(held, 199, 201);
	assert_int_equal(COUNT(0, PFC_STORM), 1);
}

/* A peer that leaves a 1,024th of the time is slow only, and frames wait for it. */
static void
slow_peer(void **state)
{
	(void)state;
	add(0, 26);
	assert_in_range(pause_often(100000), 29600, 30000);
	assert_int_equal(COUNT(0, PFC_STORM), 0);
}

/* A peer that lets go a full list each time takes its part of the wire, however short the gap. */
static void
slow_peer_full_list(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		while (t.tp[0]->tx_n + t.tp[0]->held < 40) {
			add(0, 26);
			assert_non_null(rte_pktmbuf_append(t.tp[0]->tx[t.tp[0]->tx_n - 1], 1000));
		}
		receive(0, 3, 0xffff);
		assert_int_equal(may_send(0), 0);
		t.tp[0]->now += 30 * MS; /* 40 frames take 34 us of the wire */
		receive(0, 3, 0);
		assert_int_equal(send_frames(), 40);
		t.tp[0]->now += 1000;
	}
	assert_int_equal(COUNT(0, PFC_STORM), 0);
}

/* A peer that storms anew after each end of restoring stops frames for a small part of the time. */
static void
storm_again(void **state)
{
	unsigned int held = 0, turns = 300000;
	uint64_t quiet = 0;

	(void)state;
	add(0, 26);
	for (unsigned int i = 0; i < turns; i++) {
		if (t.tp[0]->now >= quiet) {
			uint64_t ignored = COUNT(0, PFC_IGNORED);

			receive(0, 3, 0xffff);
			if (COUNT(0, PFC_IGNORED) != ignored)
				quiet = t.tp[0]->now + URN_OBEY_NS; /* it waits until they count */
		}
		held += send_frames() == 0;
		t.tp[0]->now += MS;
	}
	print_message("%u storms held frames for %.1f %% of the time\n",
		      (unsigned int)COUNT(0, PFC_STORM), 100.0 * held / turns);
	assert_true(held < turns / 20);
}

/* One turn of an engine, whose port takes up to n frames. returns: how many it took */
static unsigned int
flush(unsigned int engine, unsigned int n)
{
	uint64_t before = COUNT(engine, TX_PACKETS);

	t.room = n;
	urn_shard_flush(&t.shard[engine]);
	return (unsigned int)(COUNT(engine, TX_PACKETS) - before);
}

/* Add a frame of a priority's DSCP with a number to the list of engine 0. */
static void
add_no(unsigned int dscp, uint8_t no)
{
	add(0, dscp);
	rte_pktmbuf_mtod(t.tp[0]->tx[t.tp[0]->tx_n - 1], uint8_t *)[59] = no;
}

static uint8_t seen;	/* frames with numbers that the port took */
static bool stopped_26; /* DSCP 26 is paused */

/* Frames of DSCP 26 come in the order of their numbers, and not while they are paused. */
static void
take_in_order(const uint8_t *frame)
{
	if (frame[15] >> 2 != 26)
		return;
	assert_false(stopped_26);
	assert_int_equal(frame[59], seen++);
}

/*
 * Frames of a priority keep their order, though the port takes some only, and pauses come and go
 * between; other priorities go on meanwhile.
 */
static void
order(void **state)
{
	uint8_t put = 0;

	(void)state;
	seen = 0;
	t.take = take_in_order;
	for (unsigned int i = 0; seen < 200; i++) {
		for (unsigned int k = 0; k < 7 && put < 200; k++) {
			add_no(26, put++);
			add(0, 0);
		}
		stopped_26 = i % 5 < 2;
		receive(0, 3, stopped_26 ? 0xffff : 0);
		flush(0, 9);
		t.tp[0]->now += 1000;
	}
	assert_int_equal(COUNT(0, DROP_PAUSED), 0);
}

/* Frames that the port did not take keep their order when a pause puts them all aside, and others
 * come behind. */
static void
order_of_all(void **state)
{
	(void)state;
	seen = 0;
	stopped_26 = false;
	t.take = take_in_order;
	for (uint8_t i = 0; i < 5; i++)
		add_no(26, i);
	assert_int_equal(flush(0, 2), 2);
	receive(0, 3, 0xffff);
	stopped_26 = true;
	assert_int_equal(flush(0, 100), 0);
	assert_int_equal(t.tp[0]->held, 3);
	assert_int_equal(flush(0, 100), 0); /* nothing is left of the turn before */
	for (uint8_t i = 5; i < 8; i++)
		add_no(26, i);
	assert_int_equal(flush(0, 100), 0);
	receive(0, 3, 0);
	stopped_26 = false;
	assert_int_equal(flush(0, 100), 6);
	assert_int_equal(seen, 8);
}

/* A port that refused frames before a long pause loses none of those that it refuses after. */
static void
stuck_before_a_pause(void **state)
{
	(void)state;
	add(0, 26);
	assert_int_equal(flush(0, 0), 0);
	receive(0, 3, 0xffff);
	for (unsigned int i = 0; i < 150; i++) {
		assert_int_equal(flush(0, 100), 0);
		t.tp[0]->now += MS;
		receive(0, 3, 0xffff);
	}
	receive(0, 3, 0);
	assert_int_equal(flush(0, 0), 0);
	assert_int_equal(COUNT(0, DROP_TX), 0);
	assert_int_equal(flush(0, 100), 1);
}

static void
take_others(const uint8_t *frame)
{
	assert_int_equal(frame[15] >> 2, 0);
}

/*
 * A priority has a list of its own: at its share the sources of this priority stop, and no others;
 * at its bound frames of it are dropped, and counted, and no others.
 */
static void
share(void **state)
{
	(void)state;
	t.take = take_others;
	receive(0, 3, 0xffff);
	for (unsigned int i = 0; i < 600; i++) {
		add(0, 26);
		add(0, 0);
		assert_int_equal(flush(0, URN_TP_TX), 1);
		assert_int_equal(t.tp[0]->sched.stopped, i >= 63 ? 1u << 3 : 0);
		t.tp[0]->now += 1000;
	}
	assert_int_equal(t.tp[0]->held, 512);
	assert_int_equal(COUNT(0, DROP_PAUSED), 88);
	assert_int_equal(COUNT(0, TX_STOPPED), 1);
	receive(0, 3, 0);
	t.take = NULL;
	assert_int_equal(flush(0, URN_TP_TX), URN_TP_TX);
	assert_int_equal(t.tp[0]->sched.stopped, 1u << 3); /* until the list is empty */
	assert_int_equal(flush(0, URN_TP_TX), URN_TP_TX);
	assert_int_equal(t.tp[0]->sched.stopped, 0);
	assert_int_equal(t.tp[0]->held, 0);
}

/* An engine without a queue of the port stops the sources that its sender stops. */
static void
without_queue(void **state)
{
	(void)state;
	t.shard[1].queue = -1;
	t.shard[1].sender = &t.shard[0];
	receive(0, 3, 0xffff);
	for (unsigned int i = 0; i < 64; i++)
		add(0, 26);
	assert_int_equal(may_send(0), 0);
	add(1, 26);
	assert_int_equal(may_send(1), 1); /* its frames wait at the sender */
	assert_int_equal(t.tp[1]->sched.stopped, 1u << 3);
	receive(0, 3, 0);
	assert_int_equal(may_send(0), 64);
	may_send(1);
	assert_int_equal(t.tp[1]->sched.stopped, 0);
	t.shard[1].queue = 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_priority),
		TEST(other_engine),
		TEST(malformed),
		TEST(storm),
		TEST(no_storm),
		TEST(storm_in_turns),
		TEST(storm_without_gap),
		TEST(slow_peer),
		TEST(slow_peer_full_list),
		TEST(storm_again),
		TEST(order),
		TEST(order_of_all),
		TEST(stuck_before_a_pause),
		TEST(share),
		TEST(without_queue),
	};

	return cmocka_run_group_tests_name("engine_obey", tests, NULL, NULL);
}
