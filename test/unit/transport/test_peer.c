/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/peer.c: the table of peers, and the values derived from measurements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/peer.h"

#include <malloc.h>
#include <string.h>

static void
gid_of(uint8_t gid[16], uint32_t n)
{
	memset(gid, 0, 16);
	memcpy(gid + 12, &n, 4);
}

static void
table(void **state)
{
	enum { N = 2000 };
	static uint16_t index[N];
	struct urn_peers ps;
	uint8_t gid[16];

	(void)state;
	assert_int_equal(urn_peers_init(&ps, 256, 0, 7), 0);
	for (uint32_t i = 0; i < N; i++) {
		gid_of(gid, i);
		assert_null(urn_peer_find(&ps, gid));
		index[i] = urn_peer_get(&ps, gid);
		assert_int_equal(index[i], i + 1);
		assert_int_equal(urn_peer_get(&ps, gid), index[i]);
	}
	for (uint32_t i = 0; i < N; i++) {
		gid_of(gid, i);
		assert_ptr_equal(urn_peer_find(&ps, gid), urn_peer_at(&ps, index[i]));
		urn_peer_put(&ps, index[i]);
		assert_non_null(urn_peer_find(&ps, gid)); /* a second reference */
		if (i % 2 == 0)
			urn_peer_put(&ps, index[i]);
	}
	for (uint32_t i = 0; i < N; i++) {
		gid_of(gid, i);
		assert_int_equal(urn_peer_find(&ps, gid) != NULL, i % 2);
	}
	/* The lowest places are reused first. */
	gid_of(gid, 0);
	assert_int_equal(urn_peer_get(&ps, gid), 1);
	urn_peer_put(&ps, 0); /* the entry for all others is never put back */
	assert_non_null(urn_peer_at(&ps, 0));
	urn_peers_free(&ps);
}

/* So many peers and no more: QPs to further peers share the entry 0. */
static void
table_full(void **state)
{
	struct urn_peers ps;
	uint8_t gid[16];

	(void)state;
	assert_int_equal(urn_peers_init(&ps, 256, 0, 7), 0);
	for (uint32_t i = 0; i < URN_PEER_MAX; i++) {
		gid_of(gid, i);
		assert_int_equal(urn_peer_get(&ps, gid), i + 1);
	}
	gid_of(gid, URN_PEER_MAX);
	assert_int_equal(urn_peer_get(&ps, gid), 0);
	assert_null(urn_peer_find(&ps, gid));
	urn_peer_put(&ps, 1234);
	assert_int_equal(urn_peer_get(&ps, gid), 1234);
	urn_peers_free(&ps);
}

/* Bytes of the heap in use, by the allocator's own count. */
static size_t
heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* DB-6: a node that is idle costs 0 bytes: the heap is as large as before 64 Ki nodes were named,
 * and not one node's worth more. */
static void
memory(void **state)
{
	static uint16_t index[URN_PEER_MAX];
	struct urn_peers ps;
	size_t before, most;
	uint8_t gid[16];

	(void)state;
	assert_int_equal(urn_peers_init(&ps, 256, 0, 7), 0);
	before = heap();
	for (unsigned int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < URN_PEER_MAX; i++) {
			gid_of(gid, i);
			index[i] = urn_peer_get(&ps, gid);
		}
		most = heap() - before;
		print_message("%zu bytes a peer in use\n", most / URN_PEER_MAX);
		assert_true(most <= URN_PEER_MAX * 320ul);
		for (uint32_t i = 0; i < URN_PEER_MAX; i++)
			if (i % 1000)
				urn_peer_put(&ps, index[i]);
		/* Peers in between stay in use: each keeps a page of the index at most. */
		assert_true(heap() - before <=
			    (URN_PEER_MAX / 1000 + 1) * (320 + sizeof(struct urn_peer_page) + 16));
		for (uint32_t i = 0; i < URN_PEER_MAX; i += 1000)
			urn_peer_put(&ps, index[i]);
		/* At first the allocator fills its own cache with a few free blocks, which it
		 * counts as used. */
		assert_true(heap() <= before + (round ? 0 : 16384));
		before = heap();
	}
	urn_peers_free(&ps);
}

/* Rule "bounds": a client that chooses the addresses of its peers makes no bucket long. */
static void
chosen_addresses(void **state)
{
	uint32_t longest = 0;
	struct urn_peers ps;

	(void)state;
	assert_int_equal(urn_peers_init(&ps, 256, 0, 7), 0);
	for (uint32_t i = 0; i < URN_PEER_MAX; i++) {
		uint8_t gid[16] = {0xfd};
		uint32_t words[2] = {i, i}; /* both halves of the address change alike */

		memcpy(gid + 4, &words[0], 4);
		memcpy(gid + 12, &words[1], 4);
		assert_int_not_equal(urn_peer_get(&ps, gid), 0);
	}
	for (uint32_t b = 0; b < URN_PEER_BUCKETS; b++) {
		uint32_t n = 0;

		for (const struct urn_peer *p = ps.bucket[b]; p; p = p->next)
			n++;
		longest = n > longest ? n : longest;
	}
	assert_in_range(longest, 1, 4 * (URN_PEER_MAX + 1) / URN_PEER_BUCKETS);
	urn_peers_free(&ps);
}

static void
round_trips(void **state)
{
	struct urn_peer p = {.distance = URN_PEER_DISTANCE};

	(void)state;
	urn_peer_rtt(&p, 8000, 1);
	assert_int_equal(p.srtt, 8000);
	assert_int_equal(p.rttvar, 4000);
	assert_int_equal(urn_peer_rto(&p, 0), 8000 + 16000);
	assert_int_equal(urn_peer_rto(&p, 1000000), 1000000);
	assert_int_equal(urn_peer_pto(&p, 0), 2 * 8000 + 4000);
	assert_int_equal(urn_peer_pto(&p, 1000000), 125000);
	/* No measurement while all is retried: the timeout grows each time. */
	for (uint64_t i = 0; i < 20; i++) /* many QPs with the same finding count as one */
		urn_peer_repeats(&p, 0, 100 + i);
	assert_int_equal(urn_peer_rto(&p, 1000000), 2000000);
	assert_int_equal(urn_peer_pto(&p, 0), 2 * (2 * 8000 + 4000));
	for (uint64_t i = 1; i < 20; i++)
		urn_peer_repeats(&p, 0, i << 40);
	assert_int_equal(urn_peer_rto(&p, 1000000), 256000000);
	urn_peer_rtt(&p, 16000, 2);
	assert_int_equal(urn_peer_rto(&p, 1000000), 1000000);
	assert_int_equal(p.srtt, 9000);
	assert_int_equal(p.rttvar, (3 * 4000 + 8000) / 4);
	assert_int_equal(p.rtt_min, 8000);
	urn_peer_rtt(&p, 4000, 3);
	assert_int_equal(p.rtt_min, 4000);
	urn_peer_rtt(&p, 9000, 20000000000ull); /* the path has changed by now */
	assert_int_equal(p.rtt_min, 9000);
}

/* Time one packet; the answer to it and to n - 1 others comes after ns. */
static uint32_t
round_trip(struct urn_peer *p, uint64_t *now, uint32_t n, uint64_t ns)
{
	p->timed = (const struct urn_psn_tx *)p;
	p->timed_at = *now;
	p->timed_delivered = p->delivered;
	*now += ns;
	p->delivered += n;
	urn_peer_delivered(p, *now, 256);
	assert_null(p->timed);
	return p->window;
}

/* A window of twice the path's capacity, and a burst; never more than is allowed. */
static void
windows(void **state)
{
	struct urn_peer p = {.distance = URN_PEER_DISTANCE, .window = 256};
	uint64_t now = 1;
	uint32_t w = 0;

	(void)state;
	/* A path of 100 Mb/s and 1 ms holds 3 packets of 4 KiB. */
	for (int i = 0; i < 100; i++)
		w = round_trip(&p, &now, 3, 1000000);
	assert_in_range(w, 32 + 4, 32 + 8);
	assert_int_equal(p.rtt_min, 1000000);
	/* Ten times the rate from here on: found at once. */
	w = round_trip(&p, &now, 30, 1000000);
	assert_in_range(w, 32 + 58, 32 + 64);
	/* A window that fills a queue does not grow from that: the rate is the same. */
	for (int i = 0; i < 100; i++)
		w = round_trip(&p, &now, 300, 10000000);
	assert_in_range(w, 32 + 58, 32 + 64);
	/* The former rate is forgotten gradually. */
	for (int i = 0; i < 300; i++)
		w = round_trip(&p, &now, 3, 1000000);
	assert_in_range(w, 32 + 4, 32 + 8);
	/* Rings between two cores: 5 packets a us, 2 us. */
	for (int i = 0; i < 100; i++)
		w = round_trip(&p, &now, 50, 10000);
	p.rtt_min = 2000;
	assert_in_range(round_trip(&p, &now, 50, 10000), 200, 256);
	assert_int_equal(round_trip(&p, &now, UINT32_MAX, 1), 256);
	assert_int_equal(round_trip(&p, &now, 0, 0), 256);
	/* A path around the world holds 50 packets. */
	p.rate = 0;
	for (int i = 0; i < 300; i++)
		w = round_trip(&p, &now, 50, 400000000);
	assert_in_range(w, 32 + 98, 32 + 104);
}

static void
patience(void **state)
{
	struct urn_peer p = {.distance = URN_PEER_DISTANCE};
	struct urn_board_news n = {.again_ns = UINT64_MAX};
	struct urn_board_limits l;

	(void)state;
	urn_peer_rtt(&p, 80000, 1);
	urn_peer_limits(&p, &l);
	assert_int_equal(l.distance, URN_PEER_DISTANCE);
	assert_int_equal(l.seen_ns, 20000);
	assert_int_equal(l.asked_ns, 80000 + 4 * 40000);
	n.late_by = 8;
	n.late_ns = 40000;
	urn_peer_learn(&p, &n);
	urn_peer_limits(&p, &l);
	assert_int_equal(l.distance, 13);
	assert_int_equal(l.seen_ns, 50000);
	n.late_by = 1000;
	n.late_ns = 1000000000;
	urn_peer_learn(&p, &n);
	urn_peer_limits(&p, &l);
	assert_int_equal(l.distance, URN_PEER_DISTANCE_MAX);
	assert_int_equal(l.seen_ns, 100000);
	/* Retried in vain: the first copy is the one that came. */
	p.distance = 4;
	n = (struct urn_board_news){.again_ns = 39999};
	urn_peer_learn(&p, &n);
	assert_int_equal(p.distance, 8);
	n.again_ns = 40000;
	urn_peer_learn(&p, &n);
	assert_int_equal(p.distance, 8);
	/* All calm: the distance falls gradually. */
	for (int i = 0; i < URN_PEER_CALM; i++)
		urn_peer_repaired(&p);
	assert_int_equal(p.distance, 4);
	for (int i = 0; i < 40 * URN_PEER_CALM; i++)
		urn_peer_repaired(&p);
	assert_int_equal(p.distance, URN_PEER_DISTANCE);
	assert_int_equal(p.late_ns, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),       cmocka_unit_test(table_full),
		cmocka_unit_test(memory),      cmocka_unit_test(chosen_addresses),
		cmocka_unit_test(round_trips), cmocka_unit_test(patience),
		cmocka_unit_test(windows),
	};

	return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
