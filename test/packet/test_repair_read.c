/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses ahead of their turn, parts of READs asked for again, refusals between them (doc/inside/recovery.md). */
#include "repair_bench.h"

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
	assert_int_equal(p.qp->tx.repair, 0);
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

/* ... or until the refused request is done after all: then the refusal is forgotten. */
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
	assert_int_equal(p.qp->tx.repair, 0);
	probe_close(&p);
}

/* An RNR NAK that overtook a response is obeyed at once. */
static void
not_ready_overtakes(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .timeout = 18, .rnr_retry = 7,
					      .retry_cnt = 3});
	post_read(&p, 0, 2, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2);
	expect_read(&p, SQ(0), 0, 2);
	expect_frame(&p, SEND_ONLY, SQ(2));
	probe_ack(&p, SQ(2), SYN_RNR | 1, 1);
	expect_silence(&p);
	probe_pass(&p, 30000, 1000);
	expect_read(&p, SQ(0), 0, 2);
	expect_frame(&p, SEND_ONLY, SQ(2));
	expect_silence(&p);
	respond(&p, SQ(0), 0, 2, 0);
	respond(&p, SQ(0), 1, 2, 0);
	expect_sent(&p, 1, SUCCESS);
	probe_pass(&p, 30000, 1000); /* and not once more when its turn comes */
	expect_silence(&p);
	probe_ack(&p, SQ(2), SYN_ACK, 2);
	expect_sent(&p, 2, SUCCESS);
	probe_close(&p);
}

/* Going back forgets the packets that the peer has, not the responses kept here. */
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

/* Responses that come ahead are kept only as far as there is room. */
static void
kept_bounded(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 3, .kept = 4});
	post_read(&p, 0, 10, 1);
	expect_read(&p, SQ(0), 0, 10);
	for (uint32_t i = 1; i < 9; i++)
		respond(&p, SQ(0), i, 10, 0);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 4);
	expect_count(&p, OOO_KEPT, 4);
	p.looked = p.seen_n; /* it went back meanwhile */
	respond(&p, SQ(0), 0, 10, 0);
	for (uint32_t i = 5; i < 10; i++)
		respond(&p, SQ(0), i, 10, 0);
	expect_sent(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), 10 * 256, 77, 0);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

/*
 * A responder has no window: of 1 MiB at MTU 1024 whose first packet is lost, all the rest comes
 * ahead of its turn. The rest is kept, and nothing but the first is asked for again.
 */
static void
kept_of_a_long_read(void **state)
{
	enum { PACKETS = 1024 };
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.selective = true, .mtu = 256, .retry_cnt = 3, .kept = 2 * PACKETS});
	post_read(&p, 0, PACKETS, 1);
	expect_read(&p, SQ(0), 0, PACKETS);
	for (uint32_t i = 1; i < PACKETS; i++) {
		respond(&p, SQ(0), i, PACKETS, 0);
		if (i % 16 == 0)
			probe_settle(&p);
	}
	probe_settle(&p);
	assert_int_equal(p.tp->kept, PACKETS - 1);
	expect_count(&p, DROP_OOO, 0);
	expect_read(&p, SQ(0), 0, 1);
	respond(&p, SQ(0), 0, PACKETS, READ_ONLY);
	expect_sent(&p, 1, SUCCESS);
	check_fill(probe_at(&p, 0), PACKETS * 256, 77, 0);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_parts),
		cmocka_unit_test(atomic_again),
		cmocka_unit_test(refusal_overtakes),
		cmocka_unit_test(refusal_outlived),
		cmocka_unit_test(not_ready_overtakes),
		cmocka_unit_test(kept_counts_on),
		cmocka_unit_test(kept_bounded),
		cmocka_unit_test(kept_of_a_long_read),
		cmocka_unit_test(kept_flushed),
	};

	return cmocka_run_group_tests_name("repair_read", tests, NULL, NULL);
}
