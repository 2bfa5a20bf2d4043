/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-9: packets in flight by the delay that they have, without help of switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/peer.h"

#include <errno.h>

enum { US = 1000, MOST = 256, LIMIT = 50 * US, BASE = 20 * US };

static struct urn_delay d;
static uint64_t now;

static int
setup(void **state)
{
	(void)state;
	now = 1000000;
	urn_delay_init(&d, LIMIT, MOST);
	return 0;
}

/* A round trip passes. returns: packets that may be in flight */
static uint32_t
took(uint64_t rtt)
{
	return urn_delay_measured(&d, rtt, now += rtt, MOST);
}

/* Below the limit the window grows a packet in a round trip, up to the most; above the limit it
 * falls. */
static void
grows_and_falls(void **state)
{
	uint32_t w;

	(void)state;
	assert_int_equal(took(BASE), MOST);
	for (w = MOST; took(2000 * US) < w;
	     w = d.window >> 8) /* far above: by half each time, down to 1 */
		assert_true((d.window >> 8) >= w / 2 || w == 1);
	assert_int_equal(d.window >> 8, 1);
	for (w = 1; w < MOST; w++)
		assert_int_equal(took(BASE + LIMIT), w + 1);
	assert_int_equal(took(BASE), MOST);
	w = took(BASE + LIMIT + LIMIT / 10); /* a little above: a little less */
	assert_in_range(w, MOST * 9 / 10, MOST - 1);
}

/* One bottleneck, which N windows share: the queue stays near the limit, and nobody starves. */
static void
queue_is_bounded(void **state)
{
	enum { N = 8, PACKET = 3 * US };
	struct urn_delay e[N];
	uint32_t w[N], all;
	uint64_t rtt, longest = 0;

	(void)state;
	for (int i = 0; i < N; i++) {
		urn_delay_init(&e[i], LIMIT, MOST);
		w[i] = MOST;
		(void)urn_delay_measured(&e[i], BASE, now, MOST);
	}
	for (int round = 0; round < 2000; round++) {
		for (int i = all = 0; i < N; i++)
			all += w[i];
		rtt = BASE + (all * PACKET > BASE ? all * PACKET - BASE : 0);
		now += rtt;
		for (int i = 0; i < N; i++)
			w[i] = urn_delay_measured(&e[i], rtt + (uint64_t)((round * 7 + i) % 5) * US,
						  now, MOST);
		if (round > 100 && rtt > longest)
			longest = rtt;
	}
	assert_true(longest < BASE + LIMIT + N * PACKET + 8 * US);
	for (int i = 0; i < N; i++)
		assert_in_range(w[i], 1, MOST / 8);
}

/* A way that becomes longer is found out after two periods: its own time is not taken for a queue.
 */
static void
longer_way(void **state)
{
	uint32_t least = MOST;

	(void)state;
	(void)took(BASE);
	while (now < 2 * URN_DELAY_PERIOD_NS + 20000000) {
		uint32_t w = took(10 * LIMIT);

		least = w < least ? w : least;
	}
	assert_int_equal(least, 1);
	assert_int_equal(d.base, 10 * LIMIT);
	for (int i = 0; i < MOST; i++)
		(void)took(10 * LIMIT);
	assert_int_equal(d.window >> 8, MOST);
}

/* A peer without a limit has the window that its rate needs; with one, no more than the delay
 * allows. */
static void
of_a_peer(void **state)
{
	static const uint8_t gid[16] = {1};
	struct urn_peers ps[2];
	uint32_t window[2];

	(void)state;
	for (int on = 0; on < 2; on++) {
		struct urn_peer *p;
		uint16_t i;

		assert_int_equal(urn_peers_init(&ps[on], MOST, on ? LIMIT : 0, 1), 0);
		i = urn_peer_get(&ps[on], gid);
		assert_int_not_equal(i, 0);
		p = ps[on].at[i];
		now = 1000000;
		for (int k = 0; k < 40; k++) {
			uint64_t rtt = k ? 500 * US : BASE;

			p->timed_at = now;
			p->timed_delivered = p->delivered;
			p->delivered += MOST;
			now += rtt;
			urn_peer_delivered(p, now, MOST);
		}
		window[on] = p->window;
		urn_peer_put(&ps[on], i);
		urn_peers_free(&ps[on]);
	}
	assert_true(window[0] > 32);
	assert_int_equal(window[1], 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(grows_and_falls, setup),
		cmocka_unit_test_setup(queue_is_bounded, setup),
		cmocka_unit_test_setup(longer_way, setup),
		cmocka_unit_test_setup(of_a_peer, setup),
	};

	return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
