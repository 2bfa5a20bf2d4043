/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-9: packets in flight by the delay that they have, without help of switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/peer.h"

#include <errno.h>

enum { US = 1000, MOST = 256, LIMIT = 50 * US, SHORT = 20 * US };

static struct urn_delay d;
static uint64_t now;

static int
setup(void **state)
{
	(void)state;
	now = 1000000;
	urn_delay_init(&d, LIMIT);
	return 0;
}

/* A round trip passes. returns: packets that may be in flight */
static uint32_t
took(uint64_t rtt)
{
	return urn_delay_measured(&d, rtt, now += rtt, MOST);
}

/* The window doubles until the first excess; then it grows a packet in a round trip, and falls by
 * the excess. */
static void
grows_and_falls(void **state)
{
	uint32_t w = urn_delay_first(LIMIT, MOST);

	(void)state;
	assert_in_range(w, 1, MOST / 8);
	assert_int_equal(urn_delay_first(0, MOST), MOST);
	for (; w < MOST; w *= 2)
		assert_int_equal(took(LIMIT), 2 * w);
	assert_int_equal(took(SHORT), MOST);
	for (w = MOST; w > 1; w /= 2) /* far above: by half each time, down to 1 */
		assert_int_equal(took(100 * LIMIT), w / 2);
	assert_int_equal(took(100 * LIMIT), 1);
	for (w = 1; w < MOST; w++)
		assert_int_equal(took(LIMIT), w + 1);
	assert_int_equal(took(SHORT), MOST);
	w = took(LIMIT + LIMIT / 10); /* a little above: a little less */
	assert_in_range(w, MOST * 9 / 10, MOST - 1);
}

/* One bottleneck, at which windows begin one after the other: the queue stays near the limit, with
 * equal shares. */
static void
queue_is_bounded(void **state)
{
	enum { N = 8, PACKET = US, ROUNDS = 4000, GAP = 100 };
	struct urn_delay e[N];
	uint32_t w[N] = {0}, all;
	uint64_t rtt, longest = 0, sum[N] = {0};

	(void)state;
	for (int i = 0; i < N; i++)
		urn_delay_init(&e[i], LIMIT);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = all = 0; i < N; i++)
			all += w[i];
		rtt = SHORT + (all * PACKET > SHORT ? all * PACKET - SHORT : 0);
		now += rtt;
		for (int i = 0; i < N && i * GAP <= round; i++)
			w[i] = urn_delay_measured(&e[i], rtt + (uint64_t)((round * 7 + i) % 5) * US,
						  now, MOST);
		if (round > N * GAP + 100 && rtt > longest)
			longest = rtt;
		for (int i = 0; round > ROUNDS / 2 && i < N; i++)
			sum[i] += w[i];
	}
	assert_true(longest < LIMIT + N * PACKET + 8 * US);
	for (int i = 1; i < N; i++)
		assert_in_range(sum[i], sum[0] * 2 / 3, sum[0] * 3 / 2);
}

/* A way that is much longer than the limit has the limit on top of its own time, after two periods
 * at most. */
static void
long_way(void **state)
{
	uint64_t far = (URN_DELAY_FAR + 1) * LIMIT;
	uint32_t w = 0;

	(void)state;
	assert_true(took(SHORT) > 1);
	for (int i = 0; i < 20; i++)
		w = took(far);
	assert_int_equal(w, 1);
	while (now < 2 * URN_DELAY_PERIOD_NS + 20000000)
		w = took(far);
	for (int i = 0; i < MOST; i++)
		w = took(far);
	assert_int_equal(w, MOST);
	assert_true(took(far + 2 * LIMIT) < MOST);
	urn_delay_init(&d, LIMIT); /* long from the start */
	for (int i = 0; i < 10; i++)
		w = took(far);
	assert_int_equal(w, MOST);
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

		assert_int_equal(urn_peers_init(&ps[on], MOST, on ? LIMIT : 0, 1), 0);
		p = urn_peer_at(&ps[on], urn_peer_get(&ps[on], gid));
		assert_int_not_equal(p->index, 0);
		now = 1000000;
		for (int k = 0; k < 40; k++) {
			uint64_t rtt = k ? 4 * LIMIT : SHORT;

			p->timed_at = now;
			p->timed_delivered = p->delivered;
			p->delivered += MOST;
			now += rtt;
			urn_peer_delivered(p, now, MOST);
		}
		window[on] = p->window;
		urn_peer_put(&ps[on], p->index);
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
		cmocka_unit_test_setup(long_way, setup),
		cmocka_unit_test_setup(of_a_peer, setup),
	};

	return cmocka_run_group_tests_name("delay", tests, NULL, NULL);
}
