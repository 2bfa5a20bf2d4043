/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that were kept ahead of their turn and then come all at once, at the
 * limits of what a burst holds (tp.h: URN_TP_OPS operations, URN_TP_TX packets).
 */
#include "probe.h"

enum { MTU = 256 };

static void
rx_only(struct probe *p)
{
	urn_tp_rx(p->tp, p->in, p->in_n, false);
	p->in_n = 0;
}

/* Keep as many packets as a QP may: SENDs without payload, from RQ(1) on. */
static void
fill(struct probe *p)
{
	for (uint32_t i = 1; i <= URN_TP_OOO_QP; i++) {
		probe_send(p, SEND_ONLY, RQ(i), 0, 0);
		if (p->in_n == URN_TP_BURST)
			probe_turn(p, 0);
	}
	probe_settle(p);
	assert_int_equal(p->qp->rx.ooo_count, URN_TP_OOO_QP);
}

/*
 * A READ request takes many PSNs, so all packets that were kept may turn into
 * duplicates at once, and those of several QPs in one burst.
 */
static void
overtaken_by_reads(void **state)
{
	const uint32_t qps = 3, psns = URN_TP_OOO_QP + 2, len = psns * MTU;
	static uint8_t mark[sizeof(((struct urn_tp *)0)->txd)];
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = MTU, .qps = qps, .kept = 1000});
	for (unsigned int q = 0; q < qps; q++) {
		probe_use(&p, q);
		fill(&p);
	}
	p.looked = p.seen_n;
	for (unsigned int q = 0; q < qps; q++) {
		probe_use(&p, q);
		probe_read(&p, RQ(0), 0, len);
	}
	/* Mark the memory behind the packets in hand; no frame is made meanwhile. */
	memset(mark, 0xa5, sizeof(mark));
	memset(p.tp->txd, 0xa5, sizeof(p.tp->txd));
	rx_only(&p);
	assert_memory_equal(p.tp->txd, mark, sizeof(mark));
	assert_int_equal(p.tp->kept, 0);
	expect_count(&p, DUPLICATES, qps * URN_TP_OOO_QP);
	probe_settle(&p);
	assert_int_equal(p.seen_n - p.looked, qps * (psns + 1)); /* and an ACK each */
	probe_close(&p);
}

/* Nothing is accepted behind a packet whose memory failed, be it kept already or not. */
static void
none_behind_failure(void **state)
{
	/* Two operations a packet: so many are in hand when the first one's fail. */
	const uint32_t hand = (URN_TP_OPS - 2 * URN_ABI_MAX_SGE) / 2 + 1;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.mtu = MTU, .kept = 1000});
	for (uint32_t i = 0; i <= URN_TP_OOO_QP; i++)
		probe_recv(&p, i * 64, 64, i);
	for (uint32_t i = 1; i <= URN_TP_OOO_QP; i++) {
		probe_send(&p, SEND_ONLY, RQ(i), 64, i);
		if (p.in_n == URN_TP_BURST)
			probe_turn(&p, 0);
	}
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_fail_op(&p, 1, false);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 0);
	expect_aeth(&p, RQ(0), NAK_OP, 0);
	expect_silence(&p);
	expect_recv(&p, 0, LOC_PROT_ERR);
	for (uint32_t i = 1; i <= URN_TP_OOO_QP; i++)
		expect_recv(&p, i, WR_FLUSH_ERR);
	expect_no_cqe(&p);
	expect_count(&p, DROP_FLUSHED, URN_TP_OOO_QP);
	for (uint32_t i = hand * 64; i < (URN_TP_OOO_QP + 1) * 64; i++)
		assert_int_equal(*probe_at(&p, i), 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overtaken_by_reads),
		cmocka_unit_test(none_behind_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
