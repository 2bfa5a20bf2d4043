/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NAKs that can't go out at once - no buffer, no MAC address of the peer, slow
 * memory - and what happens meanwhile. A NAK says two things: that everything
 * before its PSN is done, and that the packet of its PSN is to come again. The
 * NAK goes out as long as both are true.
 */
#include "probe.h"

static const struct probe_config slow = {.delay_seed = 5, .delay_polls = 6};

/* Time for the QP to ask again for the peer's address. */
static void
learn_neighbour(struct probe *p)
{
	p->neigh = 0;
	probe_pass(p, 3000000, 500000);
}

/*
 * A peer that is not ready, and answers later packets with a sequence NAK - which
 * comes after the wait, for the wire is slow: no retry is used up by the NAK.
 */
static void
sequence_behind_rnr(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.retry_cnt = 2, .rnr_retry = 7, .timeout = 18});
	probe_post(&p, URN_WR_SEND, 0, 0, 3000, 0, 1);
	for (uint32_t i = 0; i < 3; i++)
		expect_frame(&p, i == 0 ? SEND_FIRST : i == 2 ? SEND_LAST : SEND_MIDDLE, SQ(i));
	for (int round = 0; round < 8; round++) {
		probe_ack(&p, SQ(0), SYN_RNR | 1, 0);
		expect_silence(&p);
		probe_pass(&p, 30000, 1000);
		p.looked = p.seen_n;
		probe_ack(&p, SQ(0), NAK_SEQ, 0);
		probe_settle(&p);
		p.looked = p.seen_n;
	}
	expect_no_cqe(&p);
	probe_ack(&p, SQ(2), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/* The packet comes again, and a receive with it, before the RNR NAK could be sent. */
static void
rnr_outlived(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	p.neigh = -1;
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	probe_settle(&p);
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	expect_recv(&p, 1, SUCCESS);
	learn_neighbour(&p);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	/* Nothing of the RNR NAK stays: later packets are acknowledged, a gap is asked for. */
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	probe_write(&p, WRITE_ONLY, RQ(3), 0, 8, 8, 1);
	expect_aeth(&p, RQ(2), NAK_SEQ, 2);
	expect_silence(&p);
	expect_count(&p, TX_RNR_NAKS, 0);
	probe_close(&p);
}

/* The same without buffers to send with. */
static void
rnr_outlived_in_famine(void **state)
{
	struct rte_mbuf *all[96];
	struct probe p;
	unsigned int n = 0;

	(void)state;
	probe_open(&p, &(struct probe_config){.pool_mbufs = 95});
	while (n < 96 && (all[n] = rte_pktmbuf_alloc(p.pool)))
		n++;
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	probe_turn(&p, 0);
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 0);
	assert_int_equal(p.seen_n, 0);
	assert_true(p.tp->c.v[URN_C_NO_MBUF] > 0);
	for (unsigned int i = 0; i < n; i++)
		rte_pktmbuf_free(all[i]);
	expect_recv(&p, 1, SUCCESS);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_silence(&p);
	probe_close(&p);
}

/* The packet that was refused came again while memory still held up the refusal. */
static void
rnr_outlived_behind_memory(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	p.hold = true;
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	probe_send(&p, SEND_ONLY, RQ(1), 32, 2);
	expect_silence(&p);
	probe_recv(&p, 64, 64, 2);
	probe_send(&p, SEND_ONLY, RQ(1), 32, 2);
	expect_silence(&p);
	p.hold = false;
	expect_recv(&p, 1, SUCCESS);
	expect_recv(&p, 2, SUCCESS);
	assert_true(p.seen_n > 0);
	p.looked = p.seen_n - 1;
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	probe_close(&p);
}

/*
 * In the error state nothing more is sent: a NAK that waits for earlier packets
 * would acknowledge messages that the program is told were flushed.
 */
static void
sequence_and_error(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	p.hold = true;
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	probe_send(&p, SEND_ONLY, RQ(2), 32, 1);
	expect_silence(&p);
	probe_state(&p, URN_QPS_ERR);
	expect_silence(&p);
	p.hold = false;
	expect_recv(&p, 1, WR_FLUSH_ERR);
	expect_silence(&p);
	probe_close(&p);
}

/* ... but messages that were done before the error are acknowledged, in spite of such a NAK. */
static void
done_and_error(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &slow);
	p.neigh = -1;
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, SEND_ONLY, RQ(0), 32, 1);
	expect_recv(&p, 1, SUCCESS);
	p.hold = true;
	probe_recv(&p, 0, 64, 2);
	probe_send(&p, SEND_ONLY, RQ(1), 32, 1);
	probe_send(&p, SEND_ONLY, RQ(3), 32, 1);
	expect_silence(&p);
	probe_state(&p, URN_QPS_ERR);
	p.hold = false;
	expect_recv(&p, 2, WR_FLUSH_ERR);
	learn_neighbour(&p);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_silence(&p);
	probe_close(&p);
}

/* Nobody answers for the peer's address: the answers owed are dropped, and the QP lives. */
static void
unreachable(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	p.neigh = -2;
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	probe_read(&p, RQ(1), 0, 8);
	expect_silence(&p);
	assert_true(p.tp->c.v[URN_C_DROP_NO_NEIGH] > 0);
	p.neigh = 0;
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	probe_read(&p, RQ(1), 0, 8);
	expect_frame(&p, READ_ONLY, RQ(1));
	expect_silence(&p);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_behind_rnr),
		cmocka_unit_test(rnr_outlived),
		cmocka_unit_test(rnr_outlived_in_famine),
		cmocka_unit_test(rnr_outlived_behind_memory),
		cmocka_unit_test(sequence_and_error),
		cmocka_unit_test(done_and_error),
		cmocka_unit_test(unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
