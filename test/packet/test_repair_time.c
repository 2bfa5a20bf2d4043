/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses that only time tells of: tails, probes, round trips measured (doc/inside/recovery.md). */
#include "repair_bench.h"

/* timeout 14: 67 ms. */
static const struct probe_config timed = {
	.selective = true, .mtu = 256, .timeout = 14, .retry_cnt = 1, .rto_floor = 4 * MS,
};

/* A tail that is lost is found by a probe, long before the timeout. */
static void
probe_tail(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	writes(&p, 0, 4);
	probe_pass(&p, MS, MS / 10);
	expect_silence(&p);
	probe_pass(&p, 2 * MS, MS / 10);
	expect_frame(&p, WRITE_ONLY, SQ(3));
	expect_silence(&p);
	expect_count(&p, PROBES, 1);
	sack_send(&p, SQ(1), SQ(3), SQ(4));
	probe_pass(&p, MS / 2, MS / 10);
	expect_frame(&p, WRITE_ONLY, SQ(1));
	expect_frame(&p, WRITE_ONLY, SQ(2));
	expect_silence(&p);
	probe_ack(&p, SQ(3), SYN_ACK, 4);
	all_sent(&p, 0, 4);
	expect_count(&p, TIMEOUTS, 0);
	probe_close(&p);
}

/* The key of a request that a probe repeats is dead by then: one request fails, the other is flushed. */
static void
probe_key_dead(void **state)
{
	struct urn_region *r;
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	writes(&p, 0, 2);
	assert_int_equal(urn_mem_kill_mr(p.mem, p.key_local, &r), 0);
	probe_pass(&p, 3 * MS, MS / 10);
	expect_sent(&p, 0, LOC_PROT_ERR);
	expect_sent(&p, 1, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	urn_mem_free_mr(p.mem, r);
	probe_close(&p);
}

/* A READ without any response is asked for again. */
static void
probe_read_tail(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	post_read(&p, 0, 4, 1);
	expect_read(&p, SQ(0), 0, 4);
	respond(&p, SQ(0), 0, 4, 0);
	probe_pass(&p, 4 * MS, MS / 10);
	expect_read(&p, SQ(1), 256, 3);
	for (uint32_t i = 1; i < 4; i++)
		respond(&p, SQ(0), i, 4, i == 1 ? READ_FIRST : 0);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/* Repeats by the measured round trip cost no retry; the QP's timeout does. */
static void
early(void **state)
{
	uint32_t n;
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	writes(&p, 0, 1);
	probe_pass(&p, 66 * MS, MS / 10);
	n = p.seen_n - p.looked;
	assert_in_range(n, 3, 6); /* waits that double */
	expect_count(&p, TIMEOUTS, 0);
	assert_int_equal(p.qp->tx.retries, 1);
	probe_pass(&p, 2 * MS, MS / 10);
	expect_count(&p, TIMEOUTS, 1);
	assert_int_equal(p.qp->tx.retries, 0);
	probe_pass(&p, 70 * MS, MS / 10);
	expect_sent(&p, 0, RETRY_EXC_ERR);
	probe_close(&p);
}

/* The round trip that was measured counts, above the floor. */
static void
measured(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	for (uint32_t i = 0; i < 16; i++) {
		writes(&p, i, 1);
		probe_pass(&p, 5 * MS, MS / 10);
		p.looked = p.seen_n; /* probes, at first */
		probe_ack(&p, SQ(i), SYN_ACK, i + 1);
		expect_sent(&p, i, SUCCESS);
	}
	expect_silence(&p);
	writes(&p, 16, 1);
	probe_pass(&p, 9 * MS, MS / 10); /* two round trips and a little */
	expect_silence(&p);
	probe_pass(&p, 4 * MS, MS / 10);
	expect_frame(&p, WRITE_ONLY, SQ(16));
	probe_close(&p);
}

/* A selective acknowledgement measures, too, by packets that came ahead of their turn. */
static void
measured_ahead(void **state)
{
	struct urn_peer *peer;
	struct probe p;

	(void)state;
	probe_open(&p, &timed);
	peer = urn_peer_find(&p.tp->peers, p.peer.gid);
	writes(&p, 0, 2);
	assert_non_null(peer->timed);
	assert_int_equal(peer->timed_psn, SQ(1)); /* the last: it asks for an acknowledgement */
	sack_send(&p, SQ(0), SQ(1), SQ(2));
	probe_settle(&p);
	assert_null(peer->timed);
	assert_int_not_equal(peer->srtt, 0);
	probe_close(&p);
}

/* ... also where that is further ahead than the bitmap reaches. */
static void
measured_far_ahead(void **state)
{
	struct probe_config wide = timed;
	struct urn_peer *peer;
	struct frame f;
	struct probe p;

	(void)state;
	wide.window = 1024;
	probe_open(&p, &wide);
	peer = urn_peer_find(&p.tp->peers, p.peer.gid);
	post_read(&p, 0, 300, 1);
	expect_read(&p, SQ(0), 0, 300);
	assert_int_equal(peer->timed_psn, SQ(0));
	peer->timed = NULL;
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, 2);
	expect_frame(&p, WRITE_ONLY, SQ(300));
	assert_non_null(peer->timed);
	assert_int_equal(peer->timed_psn, SQ(300));
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(300), SQ(301));
	probe_put(&p, &f);
	probe_settle(&p);
	assert_null(peer->timed);
	assert_int_not_equal(peer->srtt, 0);
	probe_close(&p);
}

/* A slow path is not filled up: at most twice what the path holds is in flight, and a burst. */
static void
bounded_by_the_way(void **state)
{
	enum { ROUNDS = 150, PER_MS = 3 };
	uint32_t acked = 0, posted = 0;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .window = 256,
					      .timeout = 20, .retry_cnt = 3});
	for (int round = 0; round < ROUNDS; round++) {
		while (posted < acked + 300) {
			probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, posted++);
		}
		probe_settle(&p);
		probe_pass(&p, MS, MS);
		acked += PER_MS;
		probe_ack(&p, SQ(acked - 1), SYN_ACK, acked);
		probe_settle(&p);
		for (uint32_t i = acked - PER_MS; i < acked; i++)
			expect_sent(&p, i, SUCCESS);
		p.looked = p.seen_n;
	}
	/* The first packets are acknowledged by now, and the later ones were held back. */
	assert_in_range(PSN(p.qp->tx.next, -p.qp->tx.una), 32, 200);
	assert_in_range(urn_peer_find(&p.tp->peers, p.peer.gid)->window, 32, 200);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_tail),
		cmocka_unit_test(probe_key_dead),
		cmocka_unit_test(probe_read_tail),
		cmocka_unit_test(early),
		cmocka_unit_test(measured),
		cmocka_unit_test(measured_ahead),
		cmocka_unit_test(measured_far_ahead),
		cmocka_unit_test(bounded_by_the_way),
	};

	return cmocka_run_group_tests_name("repair_time", tests, NULL, NULL);
}
