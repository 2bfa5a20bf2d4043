/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC senders whose peer is on this dataplane (transport/uc_hold.h): they wait while packets wait
 * for the peer's memory, or as many are on their way as the peer's window lets. The tables of the
 * peer are the test's.
 */
#include "probe.h"

#include "transport/uc.h"
#include "transport/uc_hold.h"

enum { MTU = 1024, SLOTS = 0x8000 };

static _Atomic uint8_t full[SLOTS];
static _Atomic uint64_t dealt[SLOTS];

/* Open a probe whose peer is on this dataplane. returns: the byte of the peer's queue pair */
static _Atomic uint8_t *
open_near(struct probe *p, uint32_t slots)
{
	probe_open(p, &(struct probe_config){.type = URN_QPT_UC, .state = URN_QPS_INIT});
	p->near = (struct urn_tp_near){full, dealt, slots};
	p->cfg.state = URN_QPS_RTS;
	probe_reconnect(p);
	return &full[urn_qpn_slot(p->q[0].peer_qpn)];
}

/* No frame goes while packets wait for the peer's memory, and all go afterwards without a doorbell.
 */
static void
sender(void **state)
{
	_Atomic uint8_t *peer;
	struct probe p;

	(void)state;
	peer = open_near(&p, SLOTS);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	expect_frame(&p, UC | SEND_ONLY, SQ(0));
	expect_sent(&p, 1, SUCCESS);
	expect_count(&p, UC_WAITS, 0);
	*peer = 1;
	probe_post(&p, URN_WR_SEND, 0, 0, 2 * MTU, 0, 2);
	for (int i = 0; i < 10; i++)
		probe_turn(&p, 1000);
	assert_int_equal(p.seen_n, p.looked);
	assert_int_equal(p.scq.prod, 1);
	assert_true(urn_tp_busy(p.tp));
	*peer = 0;
	expect_frame(&p, UC | SEND_FIRST, SQ(1));
	expect_frame(&p, UC | SEND_LAST, SQ(2));
	expect_sent(&p, 2, SUCCESS);
	expect_count(&p, UC_WAITS, 1);
	expect_silence(&p);
	probe_close(&p);
}

/* A peer whose memory stands still does not keep a sender from completing; the next wait is as long
 * as the first. */
static void
patience(void **state)
{
	_Atomic uint8_t *peer;
	struct probe p;

	(void)state;
	peer = open_near(&p, SLOTS);
	for (uint32_t i = 0; i < 2; i++) {
		*peer = 1;
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2 * i);
		probe_turn(&p, 0); /* the wait begins */
		for (int k = 0; k < 16; k++)
			probe_turn(&p, URN_UC_WAIT_NS / 16 - 100);
		assert_int_equal(p.seen_n, p.looked);
		probe_turn(&p, 2000);
		expect_frame(&p, UC | SEND_ONLY, SQ(3 * i));
		expect_sent(&p, 2 * i, SUCCESS);
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2 * i + 1); /* still shut: no second wait */
		expect_frame(&p, UC | SEND_ONLY, SQ(3 * i + 1));
		expect_sent(&p, 2 * i + 1, SUCCESS);
		*peer = 0;
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 9);
		expect_frame(&p, UC | SEND_ONLY, SQ(3 * i + 2));
		expect_sent(&p, 9, SUCCESS);
		expect_count(&p, UC_WAITS, i + 1);
	}
	probe_close(&p);
}

/* Frames that the node has sent, after some turns, and the test has not looked at. */
static unsigned int
frames(struct probe *p)
{
	for (int i = 0; i < 10; i++)
		probe_turn(p, 0);
	return p->seen_n - p->looked;
}

/* The sender makes as many frames as the peer's window lets, and goes on when the peer took some.
 */
static void
window(void **state)
{
	enum { WINDOW = 4 };
	_Atomic uint64_t *peer = &dealt[urn_qpn_slot(0x7000)];
	struct probe p;

	(void)state;
	(void)open_near(&p, SLOTS);
	assert_int_equal(urn_qpn_slot(p.q[0].peer_qpn), urn_qpn_slot(0x7000));
	*peer = urn_uc_dealt_word(SQ(0), p.qp->qpn, WINDOW);
	probe_post(&p, URN_WR_SEND, 0, 0, 7 * MTU, 0, 1);
	assert_int_equal(frames(&p), WINDOW);
	expect_count(&p, UC_WAITS, 1);
	*peer = urn_uc_dealt_word(SQ(1), p.qp->qpn, WINDOW);
	assert_int_equal(frames(&p), WINDOW + 1);
	*peer = urn_uc_dealt_word(SQ(5), p.qp->qpn, WINDOW);
	expect_frame(&p, UC | SEND_FIRST, SQ(0));
	for (uint32_t i = 1; i < 6; i++)
		expect_frame(&p, UC | SEND_MIDDLE, SQ(i));
	expect_frame(&p, UC | SEND_LAST, SQ(6));
	expect_sent(&p, 1, SUCCESS);
	*peer = 0;
	probe_close(&p);
}

/* A peer that says nothing more, because all of a window was lost, holds the sender up once. */
static void
silent_peer(void **state)
{
	_Atomic uint64_t *peer = &dealt[urn_qpn_slot(0x7000)];
	struct probe p;

	(void)state;
	(void)open_near(&p, SLOTS);
	*peer = urn_uc_dealt_word(SQ(0), p.qp->qpn, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 2);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 3);
	assert_int_equal(frames(&p), 1);
	probe_turn(&p, URN_UC_WAIT_NS - 100);
	assert_int_equal(frames(&p), 1);
	probe_turn(&p, 2000);
	for (uint32_t i = 0; i < 3; i++)
		expect_frame(&p, UC | SEND_ONLY, SQ(i));
	expect_count(&p, UC_WAITS, 1);
	*peer = 0;
	probe_close(&p);
}

/* Words of a queue pair that is not this one's peer, or expects quite other PSNs, hold nobody up.
 */
static void
strange_words(void **state)
{
	_Atomic uint64_t *peer = &dealt[urn_qpn_slot(0x7000)];
	struct probe p;
	uint64_t strange[3];

	(void)state;
	(void)open_near(&p, SLOTS);
	strange[0] = urn_uc_dealt_word(SQ(0), p.qp->qpn + 1, 0);
	strange[1] = urn_uc_dealt_word(SQ(100), p.qp->qpn, 1);
	strange[2] = urn_uc_dealt_word(SQ(-URN_UC_LATE), p.qp->qpn, 1);
	for (uint32_t i = 0; i < 3; i++) {
		*peer = strange[i];
		probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, i);
		expect_frame(&p, UC | SEND_ONLY, SQ(i));
		expect_sent(&p, i, SUCCESS);
	}
	expect_count(&p, UC_WAITS, 0);
	*peer = 0;
	probe_close(&p);
}

/* A queue pair's number beyond the peer's table is none that can wait. */
static void
beyond(void **state)
{
	struct probe p;

	(void)state;
	*open_near(&p, urn_qpn_slot(0x7000)) = 1;
	assert_int_equal(p.qp->near, 0);
	probe_post(&p, URN_WR_SEND, 0, 0, 8, 0, 1);
	expect_frame(&p, UC | SEND_ONLY, SQ(0));
	expect_sent(&p, 1, SUCCESS);
	full[urn_qpn_slot(0x7000)] = 0;
	probe_close(&p);
}

/* More tables than there is room for: queue pairs of those beyond do not wait; one that is known is
 * found again. */
static void
tables(void **state)
{
	static _Atomic uint8_t other[URN_TP_NEAR + 1];
	struct probe p;

	(void)state;
	(void)open_near(&p, SLOTS);
	assert_int_equal(p.qp->near, 1);
	for (unsigned int i = 0; i <= URN_TP_NEAR; i++) {
		p.near = (struct urn_tp_near){&other[i], NULL, SLOTS};
		probe_reconnect(&p);
		assert_int_equal(p.qp->near, i + 2 <= URN_TP_NEAR ? i + 2 : 0);
	}
	p.near = (struct urn_tp_near){full, dealt, SLOTS};
	probe_reconnect(&p);
	assert_int_equal(p.qp->near, 1);
	p.near = (struct urn_tp_near){0};
	probe_reconnect(&p);
	assert_int_equal(p.qp->near, 0);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sender),	 cmocka_unit_test(patience),
		cmocka_unit_test(window),	 cmocka_unit_test(silent_peer),
		cmocka_unit_test(strange_words), cmocka_unit_test(beyond),
		cmocka_unit_test(tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
