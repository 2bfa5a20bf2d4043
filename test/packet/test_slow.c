/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that goes by the standard alone, and is slow (doc/inside/recovery.md "A peer without
 * selective acknowledgements"): nothing is repeated early before a round trip was
 * measured, little is repeated at a time, and duplicates show that the peer lives.
 */
#include "repair_bench.h"

enum { TIMEOUT = 14, SLACK = 100000 };
#define SPAN (4096ull << TIMEOUT) /* 67 ms */

/* Like a real configuration: 4 ms are the least time to an early repeat. */
static const struct probe_config plain = {
	.mtu = 256, .timeout = TIMEOUT, .retry_cnt = 3, .rto_floor = 4 * MS, .rd_atomic = 16,
	.window = 256,
};

/* Nothing but the QP's timeout. */
static const struct probe_config never_early = {
	.mtu = 256, .timeout = TIMEOUT, .retry_cnt = 3,
};

static struct urn_peer *
peer_of(struct probe *p)
{
	return urn_peer_find(&p->tp->peers, p->peer.gid);
}

/* A WRITE of one packet that is answered after `ns`: a round trip. */
static void
measure(struct probe *p, uint32_t n, uint64_t ns)
{
	writes(p, n, 1);
	probe_pass(p, ns, ns);
	probe_ack(p, SQ(n), SYN_ACK, n + 1);
	expect_sent(p, n, SUCCESS);
	assert_int_not_equal(peer_of(p)->srtt, 0);
}

/* Check how often a request is sent whose peer never answers: `most` times. */
static void
sendings(struct probe *p, uint32_t psn, uint32_t most)
{
	uint64_t began = p->now;
	uint32_t n = 1;

	while (p->qp->state == URN_QPS_RTS && p->now - began < 10 * SPAN) {
		probe_pass(p, MS, MS / 4);
		while (p->looked < p->seen_n) {
			expect_frame(p, WRITE_ONLY, psn);
			n++;
		}
	}
	assert_in_range(p->now - began, 4 * SPAN, 4 * SPAN + 2 * MS);
	assert_int_equal(n, most);
}

/* "28 sendings of one unanswered WRITE, where hardware sends 4": retry_cnt + 1. */
static void
unanswered(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	writes(&p, 0, 1);
	sendings(&p, SQ(0), 4);
	expect_sent(&p, 0, RETRY_EXC_ERR);
	probe_close(&p);
	/* A round trip is known: one early repeat besides, in all. */
	probe_open(&p, &plain);
	measure(&p, 0, MS);
	writes(&p, 1, 1);
	sendings(&p, SQ(1), 5);
	expect_sent(&p, 1, RETRY_EXC_ERR);
	expect_count(&p, EARLY_TIMEOUTS, 1);
	probe_close(&p);
}

/* "Nothing is repeated before a round trip is measured, but by the QP's own timeout." */
static void
not_before_measured(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	writes(&p, 0, 3);
	probe_pass(&p, SPAN - SLACK, MS);
	expect_silence(&p);
	probe_pass(&p, 2 * SLACK, SLACK);
	for (uint32_t i = 0; i < 3; i++)
		expect_frame(&p, WRITE_ONLY, SQ(i));
	expect_silence(&p);
	expect_count(&p, PROBES, 0);
	expect_count(&p, EARLY_TIMEOUTS, 0);
	expect_count(&p, TIMEOUTS, 1);
	probe_close(&p);
}

/* "An early repeat is of the oldest request only": one packet of it, or one READ; and one a timeout. */
static void
oldest_only(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	measure(&p, 0, MS);
	writes(&p, 1, 5);
	probe_pass(&p, SPAN - SLACK, MS / 2);
	assert_true(expect_frame(&p, WRITE_ONLY, SQ(1))->ack);
	expect_silence(&p);
	probe_close(&p);

	probe_open(&p, &plain);
	measure(&p, 0, MS);
	for (uint32_t i = 0; i < 4; i++) {
		post_read(&p, 0, 4, 1 + i);
		expect_read(&p, SQ(1 + 4 * i), 0, 4);
	}
	probe_pass(&p, SPAN - SLACK, MS / 2);
	expect_read(&p, SQ(1), 0, 4);
	expect_silence(&p);
	expect_count(&p, EARLY_TIMEOUTS, 1);
	probe_close(&p);
}

/* An early repeat "scales with the bytes asked for": ever more at the measured rate. */
static void
scales(void **state)
{
	uint64_t few, many;
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	measure(&p, 0, MS); /* a packet takes a millisecond of that peer's */
	few = urn_peer_early(peer_of(&p), 4 * MS, 1, p.now);
	many = urn_peer_early(peer_of(&p), 4 * MS, 11, p.now);
	assert_in_range(few, 4 * MS, 6 * MS);
	assert_in_range(many - few, 15 * MS, 25 * MS);
	post_read(&p, 0, 11, 1);
	expect_read(&p, SQ(1), 0, 11);
	probe_pass(&p, many - SLACK, MS / 4);
	expect_silence(&p);
	probe_pass(&p, 2 * SLACK, SLACK);
	expect_read(&p, SQ(1), 0, 11);
	probe_close(&p);
}

/* Sixteen READs at a slow peer: a timeout repeats the oldest, and nothing when that goes on. */
static void
slow_reads(void **state)
{
	enum { READS = 16, PACKETS = 15 };
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	for (uint32_t i = 0; i < READS; i++) {
		post_read(&p, 0, PACKETS, i);
		expect_read(&p, SQ(PACKETS * i), 0, PACKETS);
	}
	probe_pass(&p, SPAN + SLACK, MS);
	expect_read(&p, SQ(0), 0, PACKETS);
	expect_silence(&p);
	for (uint32_t i = 0; i < READS; i++) {
		for (uint32_t k = 0; k < PACKETS; k++) {
			respond(&p, SQ(PACKETS * i), k, PACKETS, 0);
			probe_pass(&p, MS / 4, MS / 4);
		}
		expect_sent(&p, i, SUCCESS);
	}
	/* The responses come once more, for the READ that was asked for twice. */
	for (uint32_t k = 0; k < PACKETS; k++)
		respond(&p, SQ(0), k, PACKETS, 0);
	probe_pass(&p, 2 * SPAN, MS);
	expect_silence(&p);
	expect_count(&p, RETRANSMITS, 1);
	expect_count(&p, TIMEOUTS, 1);
	assert_int_equal(p.qp->tx.retries, 3);
	probe_close(&p);
}

/*
 * "Nothing is repeated before a round trip is measured, but by the QP's own timeout": not even
 * after the first timeout, when the peer answers at last, a READ at a time.
 */
static void
slow_after_timeout(void **state)
{
	enum { READS = 16, PACKETS = 15 };
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	for (uint32_t i = 0; i < READS; i++) {
		post_read(&p, 0, PACKETS, i);
		expect_read(&p, SQ(PACKETS * i), 0, PACKETS);
	}
	probe_pass(&p, SPAN + SLACK, MS);
	expect_read(&p, SQ(0), 0, PACKETS);
	for (uint32_t i = 0; i < READS; i++) {
		for (uint32_t k = 0; k < PACKETS; k++)
			respond(&p, SQ(PACKETS * i), k, PACKETS, 0);
		expect_sent(&p, i, SUCCESS);
		probe_pass(&p, 8 * MS, MS / 4);
	}
	expect_silence(&p);
	expect_count(&p, RETRANSMITS, 1);
	expect_count(&p, EARLY_TIMEOUTS, 0);
	probe_close(&p);
}

/* All of them lost: as answers come and nothing behind them, ever more is repeated, soon. */
static void
lost_reads(void **state)
{
	enum { READS = 8, PACKETS = 15 };
	uint32_t done = 0;
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	for (uint32_t i = 0; i < READS; i++) {
		post_read(&p, 0, PACKETS, i);
		expect_read(&p, SQ(PACKETS * i), 0, PACKETS);
	}
	probe_pass(&p, SPAN + SLACK, MS);
	while (done < READS) {
		uint32_t first = done;

		for (; p.looked < p.seen_n; done++)
			expect_read(&p, SQ(PACKETS * done), 0, PACKETS);
		for (uint32_t i = first; i < done; i++) {
			for (uint32_t k = 0; k < PACKETS; k++) {
				respond(&p, SQ(PACKETS * i), k, PACKETS, 0);
				probe_settle(&p);
			}
			expect_sent(&p, i, SUCCESS);
		}
		probe_pass(&p, 4 * MS, MS / 4);
	}
	expect_count(&p, TIMEOUTS, 1);
	expect_count(&p, RETRANSMITS, READS);
	probe_close(&p);
}

/* The same of SENDs and WRITEs; a NAK has all the rest repeated at once, as the standard says. */
static void
lost_writes(void **state)
{
	struct probe p;

	(void)state;
	for (int nak = 0; nak < 2; nak++) {
		probe_open(&p, &plain);
		writes(&p, 0, 40);
		probe_pass(&p, SPAN + SLACK, MS);
		for (uint32_t i = 0; i < 16; i++)
			assert_int_equal(expect_frame(&p, WRITE_ONLY, SQ(i))->ack, i == 15);
		expect_silence(&p);
		probe_ack(&p, SQ(nak ? 0 : 15), nak ? NAK_SEQ : SYN_ACK, nak ? 0 : 16);
		if (!nak) {
			all_sent(&p, 0, 16);
			expect_silence(&p);
			probe_pass(&p, SPAN / 4 - SLACK, MS / 4);
			expect_silence(&p); /* the time of an answer to a first sending is unknown yet */
			probe_pass(&p, 2 * SLACK, SLACK);
		}
		for (uint32_t i = 16; i < 40; i++)
			expect_frame(&p, WRITE_ONLY, SQ(i));
		expect_silence(&p);
		assert_int_equal(p.qp->tx.retries, nak ? 2 : 3);
		probe_close(&p);
	}
}

/* The answer shows that the peer works on the first sending: new requests follow, no repeats. */
static void
answer_to_the_first(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	writes(&p, 0, 40);
	probe_pass(&p, SPAN + SLACK, MS);
	for (uint32_t i = 0; i < 16; i++)
		expect_frame(&p, WRITE_ONLY, SQ(i));
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, 40);
	expect_silence(&p);
	probe_ack(&p, SQ(30), SYN_ACK, 31);
	all_sent(&p, 0, 31);
	assert_true(expect_frame(&p, WRITE_ONLY, SQ(40))->ack);
	expect_silence(&p);
	probe_ack(&p, SQ(40), SYN_ACK, 41);
	all_sent(&p, 31, 10);
	probe_close(&p);
}

/* "A duplicate response shows that the peer lives, and restarts the timer"; so does an ACK. */
static void
duplicates_live(void **state)
{
	(void)state;
	for (int ack = 0; ack < 2; ack++) {
		struct probe p;

		probe_open(&p, &never_early);
		post_read(&p, 0, 2, 0);
		expect_read(&p, SQ(0), 0, 2);
		respond(&p, SQ(0), 0, 2, 0);
		probe_settle(&p);
		for (int i = 0; i < 5; i++) {
			probe_pass(&p, SPAN - MS, MS);
			expect_silence(&p);
			if (ack)
				probe_ack(&p, SQ(-1), SYN_ACK, 0);
			else
				respond(&p, SQ(0), 0, 2, 0);
			probe_settle(&p);
		}
		expect_count(&p, TIMEOUTS, 0);
		probe_pass(&p, SPAN + SLACK, MS);
		expect_count(&p, TIMEOUTS, 1);
		expect_read(&p, SQ(1), 256, 1);
		probe_close(&p);
	}
}

/* Frames of an attacker who guesses delay nothing: they are too old, or too many. */
static void
life_is_bounded(void **state)
{
	static const struct {
		bool ack;
		int32_t late;
	} blind[] = {{true, 1025}, {true, 70000}, {false, 65537}, {false, 1 << 22}};
	struct probe p;
	int n = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(blind) / sizeof(blind[0]); k++) {
		probe_open(&p, &plain);
		writes(&p, 0, 1);
		probe_pass(&p, SPAN - MS, MS);
		if (blind[k].ack)
			probe_ack(&p, SQ(-blind[k].late), SYN_ACK, 0);
		else
			respond(&p, SQ(-blind[k].late - 1), 1, 3, 0);
		probe_pass(&p, MS + SLACK, SLACK);
		expect_count(&p, TIMEOUTS, 1);
		probe_close(&p);
	}
	probe_open(&p, &plain);
	writes(&p, 0, 1);
	for (; n < 1000 && p.qp->state == URN_QPS_RTS; n++) {
		probe_ack(&p, SQ(-1), SYN_ACK, 0);
		probe_pass(&p, SPAN / 4, SPAN / 4);
		p.looked = p.seen_n;
	}
	expect_sent(&p, 0, RETRY_EXC_ERR);
	assert_in_range(n, 4 * 4, 4 * (4 + 16));
	probe_close(&p);
}

/* An answer sooner than any can be, or two: the early repeat was needless, and the next comes later. */
static void
needless(void **state)
{
	(void)state;
	for (int twice = 0; twice < 2; twice++) {
		uint64_t before;
		struct probe p;

		probe_open(&p, &plain);
		for (uint32_t i = 0; i < 20; i++)
			measure(&p, i, MS);
		before = urn_peer_early(peer_of(&p), 4 * MS, 1, p.now);
		writes(&p, 20, 1);
		probe_pass(&p, before + 2 * SLACK, SLACK);
		expect_frame(&p, WRITE_ONLY, SQ(20));
		if (twice)
			probe_pass(&p, MS, MS);
		probe_ack(&p, SQ(20), SYN_ACK, 21);
		expect_sent(&p, 20, SUCCESS);
		assert_int_equal(peer_of(&p)->hasty, !twice);
		probe_ack(&p, SQ(20), SYN_ACK, 21);
		probe_settle(&p);
		assert_int_equal(peer_of(&p)->hasty, 1);
		probe_pass(&p, 10 * MS, 10 * MS);
		measure(&p, 21, MS); /* and no longer is the way thought to be longer */
		assert_in_range(urn_peer_early(peer_of(&p), 4 * MS, 1, p.now), 2 * before - MS,
				2 * before + MS);
		for (int i = 0; i < 100; i++)
			urn_peer_hasty(peer_of(&p), p.now);
		assert_in_range(urn_peer_early(peer_of(&p), 4 * MS, 1, p.now), 60 * before,
				68 * before);
		assert_in_range(urn_peer_early(peer_of(&p), 4 * MS, 1, p.now + 2000ull * MS),
				before - MS, before + MS);
		probe_close(&p);
	}
}

/* A packet sent twice measures no round trip; one sent once does, though others were repeated (Karn). */
static void
measures(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &plain);
	writes(&p, 0, 1);
	probe_pass(&p, SPAN + SLACK, MS);
	expect_frame(&p, WRITE_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 0, SUCCESS);
	assert_int_equal(peer_of(&p)->srtt, 0);
	probe_close(&p);

	probe_open(&p, &plain);
	writes(&p, 0, 40); /* the 32nd asks for an acknowledgement, and is timed */
	probe_pass(&p, SPAN + SLACK, MS);
	for (uint32_t i = 0; i < 16; i++)
		expect_frame(&p, WRITE_ONLY, SQ(i));
	probe_ack(&p, SQ(39), SYN_ACK, 40);
	all_sent(&p, 0, 40);
	assert_in_range(peer_of(&p)->srtt, SPAN, SPAN + 2 * MS);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered),
		cmocka_unit_test(not_before_measured),
		cmocka_unit_test(oldest_only),
		cmocka_unit_test(scales),
		cmocka_unit_test(slow_reads), cmocka_unit_test(slow_after_timeout),
		cmocka_unit_test(lost_reads),
		cmocka_unit_test(lost_writes),
		cmocka_unit_test(answer_to_the_first),
		cmocka_unit_test(duplicates_live),
		cmocka_unit_test(life_is_bounded),
		cmocka_unit_test(needless),
		cmocka_unit_test(measures),
	};

	return cmocka_run_group_tests_name("slow", tests, NULL, NULL);
}
