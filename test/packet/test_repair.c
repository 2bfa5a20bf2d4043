/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester between two sides that know selective acknowledgements: what it
 * sends again and when, responses ahead of their turn, and time
 * (doc/recovery.md).
 */
#include "sack.h"

enum { MS = 1000000 };

static const struct probe_config usual = {.selective = true, .mtu = 256, .retry_cnt = 3};

/* n WRITEs of one packet, looked at. */
static void
writes(struct probe *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		probe_post(p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, first + i);
	for (uint32_t i = 0; i < n; i++)
		expect_frame(p, WRITE_ONLY, SQ(first + i));
	expect_silence(p);
}

static void
all_sent(struct probe *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_sent(p, first + i, SUCCESS);
	expect_no_cqe(p);
}

/* Only what is missing is sent again, and once. */
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
	assert_int_equal(p.qp->repair, 0);
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

/* What is late only makes more patient, and what comes in time is never sent twice. */
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

/* What was sent again may be lost again. */
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

/* A NAK for want of a receive voids what the peer said before: all comes again. */
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

static void
nonsense(struct probe *p, struct frame *f)
{
	uint64_t before = p->tp->c.v[URN_C_DROP_SACK];

	probe_put(p, f);
	expect_silence(p);
	expect_count(p, DROP_SACK, before + 1);
	assert_int_equal(p->qp->repair, 0);
}

/* A peer that says what can't be. */
static void
nonsensical(void **state)
{
	struct frame f;
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	writes(&p, 0, 10);
	f = sack_of(SQ(-1), SQ(11)); /* expects what was not sent */
	nonsense(&p, &f);
	f = sack_of(SQ(10), SQ(0)); /* acknowledges it */
	nonsense(&p, &f);
	f = sack_of(SQ(-1), SQ(0));
	sack_bit(&f, 10); /* keeps it */
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
	sack_range(&f, SQ(15), SQ(20)); /* what was not sent, and round to what was */
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
	/* What a later version adds is not looked at. */
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

/* From one who does not know them they are not taken. */
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

/* ---- responses */

static void
post_read(struct probe *p, uint32_t off, uint32_t packets, uint64_t wr_id)
{
	probe_post(p, URN_WR_RDMA_READ, 0, off, packets * 256, 0, wr_id);
}

static void
expect_read(struct probe *p, uint32_t psn, uint32_t remote, uint32_t packets)
{
	const struct frame *f = expect_frame(p, READ_REQ, psn);

	assert_int_equal(f->va, PROBE_VA + remote);
	assert_int_equal(f->length, packets * 256);
}

/* Packet n of a response of `packets` that begins at PSN first. */
static void
respond(struct probe *p, uint32_t first, uint32_t n, uint32_t packets, uint8_t op)
{
	struct frame f = frame_of(op ? op : n == 0 ? READ_FIRST : n + 1 == packets ? READ_LAST : READ_MIDDLE,
				  PSN(first, n));

	f.len = 256;
	probe_fill(f.data, 256, 77, n * 256);
	probe_put(p, &f);
}

/* Responses that are missing are asked for by themselves, under their own PSNs. */
static void
read_parts(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	post_read(&p, 0, 20, 1);
	post_read(&p, 32768, 10, 2);
	expect_read(&p, SQ(0), 0, 20);
	expect_read(&p, SQ(20), 0, 10);
	for (uint32_t i = 0; i < 20; i++)
		if (i != 3 && i != 4 && i != 9 && i != 19)
			respond(&p, SQ(0), i, 20, 0);
	expect_read(&p, SQ(3), 3 * 256, 2);
	expect_read(&p, SQ(9), 9 * 256, 1);
	expect_silence(&p);
	probe_ack(&p, SQ(29), SYN_ACK, 2); /* never completes a READ, nor says that one is lost */
	expect_silence(&p);
	for (uint32_t i = 2; i < 10; i++)
		respond(&p, SQ(20), i, 10, 0);
	expect_read(&p, SQ(19), 19 * 256, 1); /* the gap is of two READs */
	expect_read(&p, SQ(20), 0, 2);
	expect_silence(&p);
	expect_no_cqe(&p);
	respond(&p, SQ(0), 9, 20, READ_ONLY);
	respond(&p, SQ(0), 4, 20, READ_LAST); /* these two the wrong way round */
	respond(&p, SQ(0), 3, 20, READ_FIRST);
	respond(&p, SQ(0), 3, 20, READ_FIRST); /* and one again */
	expect_no_cqe(&p);
	respond(&p, SQ(20), 1, 10, READ_LAST);
	respond(&p, SQ(20), 0, 10, READ_FIRST);
	expect_no_cqe(&p);
	respond(&p, SQ(0), 19, 20, READ_ONLY);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	expect_silence(&p);
	check_fill(probe_at(&p, 0), 20 * 256, 77, 0);
	check_fill(probe_at(&p, 32768), 10 * 256, 77, 0);
	expect_count(&p, REFETCHES, 4);
	assert_int_equal(p.tp->kept, 0);
	assert_int_equal(p.qp->repair, 0);
	probe_close(&p);
}

/* An atomic whose response is lost is asked for again, as it was. */
static void
atomic_again(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	probe_post(&p, URN_WR_FETCH_ADD, 0, 0, 8, 0, 1);
	post_read(&p, 4096, 8, 2);
	expect_frame(&p, FETCH_ADD, SQ(0));
	expect_read(&p, SQ(1), 0, 8);
	for (uint32_t i = 0; i < 8; i++)
		respond(&p, SQ(1), i, 8, 0);
	expect_frame(&p, FETCH_ADD, SQ(0));
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_resp(&p, ATOMIC_ACK, SQ(0), 4711, 0);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* A refusal that overtook a response waits for its turn. */
static void
refusal_overtakes(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	post_read(&p, 0, 2, 1);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, 2);
	probe_post(&p, URN_WR_RDMA_WRITE, 0, 0, 8, 0, 3);
	expect_read(&p, SQ(0), 0, 2);
	expect_frame(&p, WRITE_ONLY, SQ(2));
	expect_frame(&p, WRITE_ONLY, SQ(3));
	probe_ack(&p, SQ(3), NAK_ACCESS, 2);
	expect_no_cqe(&p);
	expect_silence(&p);
	respond(&p, SQ(0), 0, 2, 0);
	expect_no_cqe(&p);
	respond(&p, SQ(0), 1, 2, 0);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	expect_sent(&p, 3, REM_ACCESS_ERR);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	probe_close(&p);
}

/* ... or for what it refused to be done after all: then it is forgotten. */
static void
refusal_outlived(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual); /* rnr_retry 0 */
	post_read(&p, 0, 2, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 3);
	expect_read(&p, SQ(0), 0, 2);
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_frame(&p, SEND_ONLY, SQ(3));
	probe_ack(&p, SQ(2), SYN_RNR | 1, 1);
	expect_silence(&p);
	probe_ack(&p, SQ(3), SYN_ACK, 3); /* it came again, and found a receive */
	respond(&p, SQ(0), 0, 2, 0);
	respond(&p, SQ(0), 1, 2, 0);
	for (uint64_t i = 1; i <= 3; i++)
		expect_sent(&p, i, SUCCESS);
	assert_int_equal(p.qp->repair, 0);
	probe_close(&p);
}

/* Going back forgets what the peer has, not what is kept here. */
static void
kept_counts_on(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .timeout = 14,
					      .retry_cnt = 3});
	post_read(&p, 0, 10, 1);
	expect_read(&p, SQ(0), 0, 10);
	for (uint32_t i = 1; i < 9; i++)
		respond(&p, SQ(0), i, 10, 0);
	expect_read(&p, SQ(0), 0, 1);
	probe_pass(&p, 70 * MS, MS);
	p.looked = p.seen_n;
	respond(&p, SQ(0), 9, 10, 0); /* 0 is missing still, and nothing else */
	probe_pass(&p, 3 * MS, MS / 10);
	expect_read(&p, SQ(0), 0, 1);
	respond(&p, SQ(0), 0, 10, READ_ONLY);
	expect_sent(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), 10 * 256, 77, 0);
	probe_close(&p);
}

/* Kept responses go with the QP. */
static void
kept_flushed(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	post_read(&p, 0, 4, 1);
	expect_read(&p, SQ(0), 0, 4);
	respond(&p, SQ(0), 2, 4, 0);
	respond(&p, SQ(0), 3, 4, 0);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 2);
	probe_state(&p, URN_QPS_ERR);
	expect_sent(&p, 1, WR_FLUSH_ERR);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

/* ---- time */

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

/* The key of what a probe repeats is dead by then: one request fails, the other is flushed. */
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
	assert_int_equal(p.qp->retries, 1);
	probe_pass(&p, 2 * MS, MS / 10);
	expect_count(&p, TIMEOUTS, 1);
	assert_int_equal(p.qp->retries, 0);
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

/* A slow way is not filled up: no more is in flight than twice what it holds, and a burst. */
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
	/* What was sent at first is acknowledged by now, and what came after was held back. */
	assert_in_range(PSN(p.qp->next_psn, -p.qp->una), 32, 200);
	assert_in_range(urn_peer_find(&p.tp->peers, p.peer.gid)->window, 32, 200);
	probe_close(&p);
}

/* None left of the pool: go back and repeat all. */
static void
none_left(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &usual);
	p.tp->repair_free = 0;
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
		cmocka_unit_test(rnr_voids),
		cmocka_unit_test(nonsensical),
		cmocka_unit_test(not_known),
		cmocka_unit_test(read_parts),
		cmocka_unit_test(atomic_again),
		cmocka_unit_test(refusal_overtakes),
		cmocka_unit_test(kept_flushed),
		cmocka_unit_test(probe_tail),
		cmocka_unit_test(probe_key_dead),
		cmocka_unit_test(probe_read_tail),
		cmocka_unit_test(early),
		cmocka_unit_test(measured),
		cmocka_unit_test(none_left),
		cmocka_unit_test(bounded_by_the_way),
		cmocka_unit_test(refusal_outlived),  cmocka_unit_test(kept_counts_on),
	};

	return cmocka_run_group_tests_name("repair", tests, NULL, NULL);
}
