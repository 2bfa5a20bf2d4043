/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSN order at the responder (doc/reference/wire.md "PSN", "Duplicates", "Acknowledgement"):
 * wrap, duplicates of SEND and WRITE, gaps, packets kept ahead of their turn.
 */
#include "probe.h"

/* doc/reference/wire.md "PSN": 24 bits that wrap; one a packet of SEND and WRITE. MSN counts messages. */
static void
wraps(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 40; i++) { /* from 0xfffff0 over 0 */
		probe_recv(&p, i * 64, 64, i);
		probe_send(&p, SEND_ONLY, RQ(i), 32 + i % 3, i);
		expect_aeth(&p, RQ(i), SYN_ACK, i + 1);
		expect_recv(&p, i, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->byte_len, 32 + i % 3);
		check_fill(probe_at(&p, i * 64), 32 + i % 3, i, 0);
	}
	expect_silence(&p);
	probe_close(&p);
}

/* doc/reference/wire.md "Duplicates": a SEND is not executed again; the ACK has the newest PSN. */
static void
duplicate_send(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 4; i++)
		probe_recv(&p, i * 64, 64, i);
	for (uint32_t i = 0; i < 3; i++)
		probe_send(&p, SEND_ONLY, RQ(i), 64, i);
	expect_aeth(&p, RQ(2), SYN_ACK, 3); /* three in a burst: one ACK */
	for (uint32_t i = 0; i < 3; i++)
		expect_recv(&p, i, SUCCESS);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 99);
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	probe_send(&p, SEND_ONLY, RQ(1), 64, 99);
	probe_send(&p, SEND_ONLY, RQ(2), 64, 99);
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	expect_no_cqe(&p);
	expect_count(&p, DUPLICATES, 3);
	for (uint32_t i = 0; i < 3; i++)
		check_fill(probe_at(&p, i * 64), 64, i, 0);
	/* The fourth receive is still there. */
	probe_send(&p, SEND_ONLY, RQ(3), 64, 3);
	expect_recv(&p, 3, SUCCESS);
	expect_aeth(&p, RQ(3), SYN_ACK, 4);
	probe_close(&p);
}

/* A duplicate that does not ask (A = 0) is acknowledged all the same: its ACK was lost. */
static void
duplicate_write(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_FIRST, RQ(0), 0, 1500, 1024, 1);
	probe_write(&p, WRITE_LAST, RQ(1), 0, 0, 476, 2);
	expect_aeth(&p, RQ(1), SYN_ACK, 1);
	memset(probe_at(&p, 0), 0, 1500); /* the program has used it since */
	f = frame_of(WRITE_FIRST, RQ(0));
	f.va = PROBE_VA;
	f.rkey = p.key;
	f.length = 1500;
	f.len = 1024;
	memset(f.data, 0x77, 1024);
	probe_put(&p, &f);
	expect_aeth(&p, RQ(1), SYN_ACK, 1);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(*probe_at(&p, (uint32_t)i), 0);
	/* Old beyond any record, too. */
	probe_write(&p, WRITE_ONLY, RQ(-1000), 0, 4, 4, 9);
	expect_aeth(&p, RQ(1), SYN_ACK, 1);
	assert_int_equal(*probe_at(&p, 0), 0);
	probe_close(&p);
}

/* doc/reference/wire.md "Acknowledgement": owed when A = 1; a burst of A = 0 owes none. */
static void
merging(void **state)
{
	struct probe p;
	struct frame f;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 20; i++) {
		f = frame_of(WRITE_ONLY, RQ(i));
		probe_put(&p, &f);
	}
	expect_silence(&p);
	for (uint32_t i = 20; i < 30; i++) {
		f = frame_of(WRITE_ONLY, RQ(i));
		f.ack = i == 25;
		probe_put(&p, &f);
	}
	expect_aeth(&p, RQ(29), SYN_ACK, 30);
	expect_silence(&p);
	expect_count(&p, TX_ACKS, 1);
	probe_close(&p);
}

/* doc/reference/wire.md "PSN": one NAK(sequence) for each gap; packets that came ahead are kept, one ACK covers all. */
static void
one_gap(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t i = 0; i < 6; i++)
		probe_recv(&p, i * 64, 64, i);
	probe_send(&p, SEND_ONLY, RQ(0), 64, 0);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	expect_recv(&p, 0, SUCCESS);
	probe_send(&p, SEND_ONLY, RQ(2), 64, 2);
	expect_aeth(&p, RQ(1), NAK_SEQ, 1);
	probe_send(&p, SEND_ONLY, RQ(3), 64, 3);
	probe_send(&p, SEND_ONLY, RQ(5), 64, 5); /* a gap behind the gap says nothing new */
	probe_send(&p, SEND_ONLY, RQ(4), 64, 4);
	probe_send(&p, SEND_ONLY, RQ(3), 64, 3);
	expect_silence(&p);
	/* Kept packets took no receive and touched no memory. */
	expect_no_cqe(&p);
	assert_int_equal(atomic_load(&p.q[0].rq->cons), 1);
	for (uint32_t i = 64; i < 6 * 64; i++)
		assert_int_equal(*probe_at(&p, i), 0);
	expect_count(&p, OOO_KEPT, 4);
	expect_count(&p, DROP_OOO, 1);
	probe_send(&p, SEND_ONLY, RQ(1), 64, 1);
	expect_aeth(&p, RQ(5), SYN_ACK, 6);
	expect_silence(&p);
	for (uint32_t i = 1; i < 6; i++) {
		expect_recv(&p, i, SUCCESS);
		check_fill(probe_at(&p, i * 64), 64, i, 0);
	}
	expect_count(&p, TX_NAKS, 1);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

/* A NAK acknowledges all packets before its PSN, and waits for nothing else. */
static void
nak_carries_msn(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(1), 8, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(3), 8, 8, 8, 1);
	expect_aeth(&p, RQ(2), NAK_SEQ, 2);
	expect_silence(&p); /* the NAK was the acknowledgement */
	probe_close(&p);
}

/* The second gap is asked for when the first is filled, once. */
static void
second_gap(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(3), 0, 8, 8, 3);
	probe_write(&p, WRITE_ONLY, RQ(4), 0, 8, 8, 4);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(2), NAK_SEQ, 2);
	probe_write(&p, WRITE_ONLY, RQ(5), 0, 8, 8, 5);
	expect_silence(&p);
	probe_write(&p, WRITE_ONLY, RQ(2), 0, 8, 8, 2);
	expect_aeth(&p, RQ(5), SYN_ACK, 6);
	expect_count(&p, TX_NAKS, 2);
	check_fill(probe_at(&p, 0), 8, 5, 0);
	probe_close(&p);
}

/*
 * A gap of several packets is one gap: while the peer fills it, packet by
 * packet, the peer is not asked again, or it would repeat packets that are on their way.
 */
static void
wide_gap(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(4), 0, 8, 8, 4);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct frame f = frame_of(WRITE_ONLY, RQ(i));

		probe_put(&p, &f);
		expect_silence(&p);
	}
	probe_write(&p, WRITE_ONLY, RQ(3), 0, 8, 8, 3);
	expect_aeth(&p, RQ(4), SYN_ACK, 5);
	expect_silence(&p);
	probe_close(&p);
}

/* A packet of the repetition that is lost again is asked for again when the next one shows it. */
static void
lost_again(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(3), 0, 8, 8, 3);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_write(&p, WRITE_ONLY, RQ(2), 0, 8, 8, 2);
	expect_aeth(&p, RQ(1), NAK_SEQ, 1);
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	expect_aeth(&p, RQ(3), SYN_ACK, 4);
	probe_close(&p);
}

/* The missing packet comes in the same burst: no NAK, it was reordering. */
static void
reordered(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	expect_silence(&p);
	check_fill(probe_at(&p, 0), 8, 1, 0); /* order kept */
	probe_close(&p);
}

/* architecture rule 6: kept packets are bounded, per QP ... */
static void
bound_of_qp(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 1000});
	for (uint32_t i = 1; i <= URN_TP_OOO_QP + 10; i++) {
		struct frame f = frame_of(WRITE_ONLY, RQ(i));

		probe_put(&p, &f);
		probe_turn(&p, 0);
	}
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	expect_silence(&p);
	assert_int_equal(p.tp->kept, URN_TP_OOO_QP);
	expect_count(&p, DROP_FAR, 10);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(URN_TP_OOO_QP), SYN_ACK, URN_TP_OOO_QP + 1);
	probe_close(&p);
}

/* ... and in total, over all QPs. */
static void
bound_of_all(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.kept = 6, .qps = 2});
	for (unsigned int q = 0; q < 2; q++) {
		probe_use(&p, q);
		for (uint32_t i = 1; i <= 4; i++) {
			struct frame f = frame_of(WRITE_ONLY, RQ(i));

			probe_put(&p, &f);
		}
	}
	probe_settle(&p);
	assert_int_equal(p.tp->kept, 6);
	expect_count(&p, DROP_OOO, 2);
	p.looked = p.seen_n;
	probe_use(&p, 0);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(4), SYN_ACK, 5);
	probe_use(&p, 1);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 0);
	expect_aeth(&p, RQ(2), SYN_ACK, 3);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

/* Kept packets are let go, and counted, at an error and at a reset. */
static void
kept_and_error(void **state)
{
	static const uint8_t to[] = {URN_QPS_ERR, URN_QPS_RESET};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct probe p;

		probe_open(&p, NULL);
		for (uint32_t i = 1; i <= 4; i++)
			probe_write(&p, WRITE_ONLY, RQ(i), 0, 8, 8, i);
		expect_aeth(&p, RQ(0), NAK_SEQ, 0);
		assert_int_equal(p.tp->kept, 4);
		probe_state(&p, to[k]);
		assert_int_equal(p.tp->kept, 0);
		expect_count(&p, DROP_FLUSHED, 4);
		probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		expect_silence(&p);
		expect_count(&p, DROP_QP_STATE, 1);
		assert_int_equal(*probe_at(&p, 0), 0);
		probe_close(&p);
	}
}

/* Half of the PSNs are ahead, half behind (doc/reference/wire.md: signed difference). */
static void
halves(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	probe_write(&p, WRITE_ONLY, RQ(0x7fffff), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	probe_write(&p, WRITE_ONLY, RQ(0x800000), 0, 8, 8, 1);
	expect_count(&p, OUT_OF_ORDER, 1);
	/* Behind. Nothing is done yet: the ACK names the PSN before the first. */
	expect_aeth(&p, RQ(-1), SYN_ACK, 0);
	expect_count(&p, DUPLICATES, 1);
	probe_close(&p);
}

/* A kept packet that is wrong is refused in its turn, after all before it. */
static void
kept_is_wrong(void **state)
{
	struct probe p;
	struct frame f = frame_of(WRITE_ONLY, RQ(2));

	(void)state;
	probe_open(&p, NULL);
	f.va = PROBE_VA + PROBE_LEN - 4; /* 4 bytes too far */
	f.rkey = p.key;
	f.length = f.len = 8;
	probe_put(&p, &f);
	probe_write(&p, WRITE_ONLY, RQ(3), 64, 8, 8, 3);
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), NAK_SEQ, 0);
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_write(&p, WRITE_ONLY, RQ(0), 8, 8, 8, 0);
	expect_aeth(&p, RQ(2), NAK_ACCESS, 2);
	expect_silence(&p);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	check_fill(probe_at(&p, 0), 8, 1, 0);
	check_fill(probe_at(&p, 8), 8, 0, 0);
	assert_int_equal(*probe_at(&p, 64), 0);
	assert_int_equal(p.tp->kept, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wraps),
		cmocka_unit_test(duplicate_send),
		cmocka_unit_test(duplicate_write),
		cmocka_unit_test(merging),
		cmocka_unit_test(one_gap),
		cmocka_unit_test(nak_carries_msn),
		cmocka_unit_test(second_gap),
		cmocka_unit_test(wide_gap),
		cmocka_unit_test(lost_again),
		cmocka_unit_test(reordered),
		cmocka_unit_test(bound_of_qp),
		cmocka_unit_test(bound_of_all),
		cmocka_unit_test(kept_and_error),
		cmocka_unit_test(halves),
		cmocka_unit_test(kept_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
