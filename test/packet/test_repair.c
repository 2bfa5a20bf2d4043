/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester between two sides that know selective acknowledgements: packets that
 * it sends again, and acknowledgements that it does not believe (doc/inside/recovery.md). READs:
 * test_repair_read.c; time: test_repair_time.c.
 */
#include "repair_bench.h"

/* Only missing packets are sent again, and once. */
static void
only_missing(void **state)
{
	struct frame f;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 20);
	f = sack_of(SQ(1), SQ(2));
	sack_bit(&f, 1);      /* 3 */
	for (uint32_t i = 4; i <= 16; i++)
		sack_bit(&f, i);  /* 6..18; 4 and 5 are missing too */
	probe_put(&p, &f);
	expect_frame(&p, WRITE_ONLY, SQ(2));
	expect_frame(&p, WRITE_ONLY, SQ(4));
	expect_frame(&p, WRITE_ONLY, SQ(5));
	expect_silence(&p);
	all_sent(&p, 0, 2);
	probe_put(&p, &f); /* the same once more: that was dealt with */
	expect_silence(&p);
	expect_count(&p, RETRANSMITS, 3);
	probe_ack(&p, SQ(19), SYN_ACK, 20);
	all_sent(&p, 2, 18);
	assert_int_equal(p.qp->tx.repair, 0);
	probe_close(&p);
}

/* A few that overtake are no loss; time makes them one. */
static void
patient(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 10);
	sack_send(&p, SQ(0), SQ(1), SQ(1 + URN_PEER_DISTANCE - 1));
	expect_silence(&p);
	probe_pass(&p, MS / 10, MS / 100);
	expect_silence(&p);
	probe_pass(&p, MS, MS / 100);
	expect_frame(&p, WRITE_ONLY, SQ(0));
	expect_silence(&p);
	/* One more behind the gap, and it would have been lost at once. */
	probe_ack(&p, SQ(4), SYN_ACK, 5);
	sack_send(&p, SQ(5), SQ(6), SQ(6 + URN_PEER_DISTANCE));
	expect_frame(&p, WRITE_ONLY, SQ(5));
	expect_silence(&p);
	probe_close(&p);
}

/* A late packet only makes the requester more patient, and one that comes in time is never sent twice. */
static void
learns_reordering(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 40);
	sack_send(&p, SQ(0), SQ(1), SQ(4));
	sack_send(&p, SQ(4), SQ(5), SQ(8)); /* 0 came after three others */
	expect_silence(&p);
	sack_send(&p, SQ(8), SQ(9), SQ(9 + URN_PEER_DISTANCE)); /* ... so this is no loss yet */
	expect_silence(&p);
	sack_send(&p, SQ(20), SQ(21), SQ(36));
	expect_frame(&p, WRITE_ONLY, SQ(20));
	expect_silence(&p);
	probe_close(&p);
}

/* A repeated packet may be lost again. */
static void
lost_twice(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 10);
	sack_send(&p, SQ(0), SQ(1), SQ(9));
	expect_frame(&p, WRITE_ONLY, SQ(0));
	expect_silence(&p);
	probe_pass(&p, MS, MS / 10);
	expect_silence(&p);
	probe_pass(&p, 4 * MS, MS / 10);
	expect_frame(&p, WRITE_ONLY, SQ(0));
	expect_silence(&p);
	probe_pass(&p, 4 * MS, MS / 10); /* twice as long the second time */
	expect_silence(&p);
	probe_pass(&p, 4 * MS, MS / 10);
	expect_frame(&p, WRITE_ONLY, SQ(0));
	expect_silence(&p);
	probe_close(&p);
}

/* A packet that a repeat of everything includes is not sent for a gap as well. */
static void
repeated_once(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .timeout = 18, .retry_cnt = 3});
	writes(&p, 0, 10);
	probe_ack(&p, SQ(0), NAK_SEQ, 0); /* from a responder without room */
	sack_send(&p, SQ(0), SQ(1), SQ(10));
	for (uint32_t i = 0; i < 10; i++)
		expect_frame(&p, WRITE_ONLY, SQ(i));
	expect_silence(&p);
	probe_ack(&p, SQ(9), SYN_ACK, 10);
	all_sent(&p, 0, 10);
	probe_close(&p);
}

/* An RNR NAK voids the peer's earlier acknowledgements of kept packets: all are sent again. */
static void
rnr_voids(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .rnr_retry = 7, .timeout = 18,
					      .retry_cnt = 3});
	for (uint32_t i = 0; i < 6; i++)
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, i);
	for (uint32_t i = 0; i < 6; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	sack_send(&p, SQ(1), SQ(2), SQ(4));
	probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
	sack_send(&p, SQ(1), SQ(2), SQ(6)); /* late: from before */
	expect_sent(&p, 0, SUCCESS);
	expect_silence(&p);
	probe_pass(&p, 30000, 1000);
	for (uint32_t i = 1; i < 6; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	expect_silence(&p);
	probe_ack(&p, SQ(5), SYN_ACK, 6);
	all_sent(&p, 1, 5);
	probe_close(&p);
}

/* ... for good: a packet kept before the RNR NAK, and lost when it is sent again, is missing. */
static void
rnr_forgets(void **state)
{
	struct frame f = sack_of(SQ(0), SQ(1));
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .rnr_retry = 7, .timeout = 18,
					      .retry_cnt = 3});
	for (uint32_t i = 0; i < 10; i++)
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, i);
	for (uint32_t i = 0; i < 10; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	sack_bit(&f, 1); /* 2 */
	sack_bit(&f, 3); /* 4 */
	probe_put(&p, &f);
	probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
	all_sent(&p, 0, 1);
	probe_pass(&p, 30000, 1000);
	for (uint32_t i = 1; i < 10; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	expect_silence(&p);
	sack_send(&p, SQ(1), SQ(3), SQ(10));
	expect_frame(&p, SEND_ONLY, SQ(1));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	probe_ack(&p, SQ(9), SYN_ACK, 10);
	all_sent(&p, 1, 9);
	probe_close(&p);
}

/* ... and acknowledgements from before the RNR NAK, which come during the wait, are not believed. */
static void
rnr_late(void **state)
{
	struct frame f = sack_of(SQ(0), SQ(1));
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .rnr_retry = 7, .timeout = 18,
					      .retry_cnt = 3});
	for (uint32_t i = 0; i < 10; i++)
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, i);
	for (uint32_t i = 0; i < 10; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	probe_ack(&p, SQ(1), SYN_RNR | 1, 1);
	sack_bit(&f, 1); /* 2 */
	sack_bit(&f, 3); /* 4 */
	probe_put(&p, &f);
	expect_silence(&p);
	all_sent(&p, 0, 1);
	probe_pass(&p, 30000, 1000);
	for (uint32_t i = 1; i < 10; i++)
		expect_frame(&p, SEND_ONLY, SQ(i));
	expect_silence(&p);
	sack_send(&p, SQ(2), SQ(3), SQ(10));
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	all_sent(&p, 1, 1);
	probe_ack(&p, SQ(9), SYN_ACK, 10);
	all_sent(&p, 2, 8);
	probe_close(&p);
}

static void
nonsense(struct probe *p, struct frame *f)
{
	uint64_t before = p->tp->c.v[URN_C_DROP_SACK];

	probe_put(p, f);
	expect_silence(p);
	expect_count(p, DROP_SACK, before + 1);
	assert_int_equal(p->qp->tx.repair, 0);
}

/* A peer with impossible acknowledgements. */
static void
nonsensical(void **state)
{
	struct frame f;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 10);
	f = sack_of(SQ(-1), SQ(11)); /* expects an unsent PSN */
	nonsense(&p, &f);
	f = sack_of(SQ(10), SQ(0)); /* acknowledges an unsent PSN */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_bit(&f, 10); /* keeps an unsent PSN */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(5), SQ(11));
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(5), SQ(5)); /* empty */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(5), SQ(7));
	sack_range(&f, SQ(6), SQ(8)); /* out of order */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_bit(&f, 6);
	sack_range(&f, SQ(5), SQ(7)); /* before the bitmap's end */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(15), SQ(20)); /* from unsent PSNs round to sent ones */
	sack_range(&f, SQ(19 + (1 << 23)), SQ(20 + (1 << 23)));
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_range(&f, SQ(15), SQ(14 + (1 << 23)));
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	f.data[1] = 5; /* more than there are */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	f.data[0] = 0; /* no version */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	f.syn = NAK_SEQ;
	nonsense(&p, &f);
	expect_no_cqe(&p);
	/* Fields that a later version adds are ignored. */
	f = sack_of(SQ(-1), SQ(0));
	f.data[0] = 2;
	f.data[2] = 0xff;
	f.len += 16;
	memset(f.data + SACK_BYTES, 0xff, 16);
	for (uint32_t i = 1; i < 9; i++)
		sack_bit(&f, i);
	probe_put(&p, &f);
	expect_frame(&p, WRITE_ONLY, SQ(0));
	probe_close(&p);
}

/* Selective acknowledgements from a peer without the feature are not taken. */
static void
not_known(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = 256});
	writes(&p, 0, 10);
	sack_send(&p, SQ(3), SQ(4), SQ(9));
	expect_silence(&p);
	expect_count(&p, DROP_RESPONSE, 1);
	expect_no_cqe(&p);
	probe_close(&p);
}

/* None left of the pool: go back and repeat all. */
static void
none_left(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	p.tp->repairs.made = p.tp->repairs.end; /* the pool is empty */
	writes(&p, 0, 10);
	sack_send(&p, SQ(3), SQ(4), SQ(9));
	for (uint32_t i = 3; i < 10; i++)
		expect_frame(&p, WRITE_ONLY, SQ(i));
	expect_silence(&p);
	expect_count(&p, NO_REPAIR, 1);
	all_sent(&p, 0, 3);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_missing),
		cmocka_unit_test(patient),
		cmocka_unit_test(learns_reordering),
		cmocka_unit_test(lost_twice),
		cmocka_unit_test(repeated_once),
		cmocka_unit_test(rnr_voids),
		cmocka_unit_test(rnr_forgets),
		cmocka_unit_test(rnr_late),
		cmocka_unit_test(nonsensical),
		cmocka_unit_test(not_known),
		cmocka_unit_test(none_left),
	};

	return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
