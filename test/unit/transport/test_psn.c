/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/psn_tx.c, psn_rx.h and ack.c: cursors, and the policy of acknowledgements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/ack.h"

#include <string.h>

#define BASE 0xffff80u /* the PSN wraps soon */
#define P(n) urn_psn_add(BASE, (uint32_t)(n))

/* ---- cursors */

static struct urn_work *
add(struct urn_psn_tx *tx, struct urn_work *w, uint32_t n, uint8_t kind)
{
	memset(w, 0, sizeof(*w));
	w->kind = kind;
	w->state = URN_WORK_SENT;
	urn_psn_tx_append(tx, w, n);
	tx->next = urn_psn_add(tx->next, n);
	return w;
}

/* A cursor that is handed on leaves that of the sequence where it is. */
static void
handed_on(void **state)
{
	struct urn_psn_tx tx = {0};
	struct urn_psn_cursor again;
	struct urn_work w;

	(void)state;
	urn_psn_tx_start(&tx, P(0));
	tx.cur.work = add(&tx, &w, 8, 0);
	tx.cur.psn = P(8);
	tx.cur.since_ack = 3;
	again = tx.cur;
	again.psn = P(2);
	assert_true(urn_psn_tx_sent(&tx, &again, 1, true));
	assert_int_equal(again.psn, P(3));
	assert_int_equal(again.since_ack, 0);
	assert_int_equal(tx.cur.psn, P(8));
	assert_int_equal(tx.cur.since_ack, 3);
	assert_int_equal(tx.next, P(8));
	assert_false(urn_psn_tx_sent(&tx, &tx.cur, 2, false));
	assert_int_equal(tx.next, P(10));
	assert_int_equal(tx.cur.since_ack, 4);
}

static void
part_by_part(void **state)
{
	struct urn_psn_tx tx = {0};
	struct urn_work w[3];
	bool whole;

	(void)state;
	urn_psn_tx_start(&tx, P(0));
	add(&tx, &w[0], 6, 0);
	add(&tx, &w[1], 10, URN_WK_FETCH);
	add(&tx, &w[2], 6, 0);
	tx.cur.psn = tx.next;
	tx.fetch_out = 1;

	urn_psn_tx_go_back(&tx, 4); /* eight PSNs: the READ does not fit */
	assert_ptr_equal(tx.cur.work, &w[0]);
	assert_int_equal(tx.cur.psn, P(0));
	assert_int_equal(tx.cur.end, P(6));
	assert_true(urn_psn_tx_held_back(&tx) && !urn_psn_tx_may_go_on(&tx));

	tx.acked = P(20); /* ... and counts only up to the missing response */
	w[1].placed = w[1].accepted = 4;
	assert_int_equal(urn_psn_tx_settle(&tx, &whole), 10);
	assert_false(whole);
	assert_int_equal(tx.una, P(10));
	assert_true(urn_psn_tx_may_go_on(&tx));
	urn_psn_tx_to_oldest(&tx);
	assert_ptr_equal(tx.cur.work, &w[1]);
	assert_int_equal(tx.cur.psn, P(10));

	assert_ptr_equal(urn_psn_tx_work_at(&tx, P(15)), &w[1]);
	assert_ptr_equal(urn_psn_tx_work_at(&tx, P(22)), NULL);
	assert_ptr_equal(urn_psn_tx_newest(&tx), &w[2]);
	w[2].state = URN_WORK_FAILED;
	assert_ptr_equal(urn_psn_tx_newest(&tx), &w[1]);
	urn_psn_tx_to_newest(&tx);
	assert_ptr_equal(tx.cur.work, &w[2]); /* fails in its turn */
	assert_int_equal(tx.cur.psn, P(22));
	assert_false(urn_psn_tx_held_back(&tx));
}

/* ---- acknowledgements */

static void
merged(void **state)
{
	struct urn_psn_rx rx = {0};

	(void)state;
	urn_psn_rx_start(&rx, P(0));
	assert_int_equal(urn_ack_due(&rx, 1, true, false, false), URN_ACK_NONE);
	urn_ack_owe(&rx, 1, false);
	assert_int_equal(urn_ack_due(&rx, 1, true, false, false), URN_ACK_LATER);
	assert_int_equal(urn_ack_due(&rx, 2, true, false, false), URN_ACK_ACK);
	assert_int_equal(urn_ack_due(&rx, 2, false, false, false), URN_ACK_LATER);
	assert_int_equal(urn_ack_due(&rx, 1 + URN_ACK_TURNS, false, false, false), URN_ACK_ACK);
	urn_ack_owe(&rx, 3, true);
	assert_int_equal(urn_ack_due(&rx, 3, false, false, false), URN_ACK_ACK);
}

/* IBTA 9.7.5.2.8: one NAK a gap, once all before it is done. */
static void
one_nak(void **state)
{
	struct urn_psn_rx rx = {0};

	(void)state;
	urn_psn_rx_start(&rx, P(0));
	urn_psn_rx_accept(&rx, 2); /* accepted, not done */
	assert_true(urn_ack_ahead(&rx, 1, false, false));
	assert_false(urn_ack_ahead(&rx, 1, false, false));
	assert_int_equal(urn_ack_due(&rx, 1, true, false, false), URN_ACK_NONE);
	rx.done = P(1);
	assert_int_equal(urn_ack_due(&rx, 1, true, false, false), URN_ACK_NAK);
	assert_int_equal(urn_ack_nak_for(&rx), P(2));
	assert_false(urn_ack_was_asked_for(&rx, P(2))); /* not yet */
	urn_ack_nak_sent(&rx);
	assert_true(urn_ack_was_asked_for(&rx, P(2)));
	assert_false(urn_ack_was_asked_for(&rx, P(3)));
	assert_false(urn_ack_missed(&rx, P(5), 256)); /* comes again anyway */
	assert_true(urn_ack_missed(&rx, P(2), 256));
	urn_psn_rx_accept(&rx, 1);
	urn_ack_gap_closed(&rx, false);
	assert_int_equal(rx.flags, 0);
}

/* An owed acknowledgement goes with the packet that is sent; a NAK acknowledges, too. */
static void
owed(void **state)
{
	struct urn_psn_rx rx = {0};

	(void)state;
	urn_psn_rx_start(&rx, P(0));
	assert_false(urn_ack_any_is_owed(&rx));
	urn_ack_owe(&rx, 1, true);
	urn_ack_owe_nak(&rx, P(0), URN_NAK_OP);
	assert_true(urn_ack_is_owed(&rx) && urn_ack_nak_is_owed(&rx) && urn_ack_any_is_owed(&rx));
	assert_false(urn_ack_gap_is_owed(&rx));
	urn_ack_sent(&rx);
	assert_true(!urn_ack_is_owed(&rx) && urn_ack_nak_is_owed(&rx) && urn_ack_any_is_owed(&rx));
	urn_ack_owe(&rx, 1, true);
	urn_ack_nak_sent(&rx);
	assert_false(urn_ack_any_is_owed(&rx));
	urn_ack_owe(&rx, 1, true);
	assert_true(urn_ack_any_is_owed(&rx) && !urn_ack_nak_is_owed(&rx));
	urn_ack_ask_for(&rx, P(1));
	assert_true(urn_ack_gap_is_owed(&rx));
	urn_ack_void(&rx);
	assert_false(urn_ack_any_is_owed(&rx));
}

/* IBTA 9.7.5.2.8: the RNR NAK for a packet tells of all packets behind it, until that packet comes
 * again. */
static void
not_ready(void **state)
{
	struct urn_psn_rx rx = {0};
	int kept;

	(void)state;
	urn_psn_rx_start(&rx, P(0));
	for (unsigned int selective = 0; selective < 2; selective++) {
		rx.ooo = selective ? (struct rte_mbuf *)&kept : NULL;
		urn_ack_not_ready(&rx);
		urn_ack_owe_nak(&rx, P(0), URN_SYN_RNR);
		urn_ack_nak_sent(&rx);
		assert_true(urn_ack_is_not_ready(&rx));
		assert_false(urn_ack_ahead(&rx, 1, selective, false));
		assert_false(urn_ack_taken_up(&rx, 1, selective));
		assert_false(urn_ack_missed(&rx, P(1), 256));
		assert_false(urn_ack_any_is_owed(&rx));
		urn_ack_came(&rx);
		assert_false(urn_ack_is_not_ready(&rx));
		assert_true(urn_ack_ahead(&rx, 1, selective, false));
		urn_ack_void(&rx);
		urn_ack_gap_closed(&rx, false);
	}
	urn_ack_not_ready(&rx);
	/* The refused packet came, and was dropped: the peer waits no more. */
	assert_true(urn_ack_missed(&rx, P(0), 256));
	assert_false(urn_ack_is_not_ready(&rx));
	assert_true(urn_ack_gap_is_owed(&rx));
}

/* Kept packets are told by a SACK that waits like an ACK, and at once for each gap that comes up.
 */
static void
sacks(void **state)
{
	struct urn_psn_rx rx = {0};
	int kept;

	(void)state;
	urn_psn_rx_start(&rx, P(0));
	urn_ack_owe(&rx, 1, false);
	assert_false(urn_ack_sack_due(&rx, 9, true)); /* nothing is kept */
	rx.ooo = (struct rte_mbuf *)&kept;
	assert_false(urn_ack_sack_due(&rx, 1, true));
	assert_true(urn_ack_sack_due(&rx, 2, true));
	assert_false(urn_ack_sack_due(&rx, 2, false));
	assert_true(urn_ack_ahead(&rx, 2, true, false));
	assert_true(urn_ack_sack_due(&rx, 2, false));
	urn_ack_owe_nak(&rx, P(0), URN_NAK_OP);
	assert_false(urn_ack_sack_due(&rx, 2, false)); /* the NAK tells all */
	urn_ack_nak_sent(&rx);
	assert_false(urn_ack_sack_due(&rx, 9, true));
	assert_false(urn_ack_ahead(&rx, 2, true, true)); /* too far to be kept */
	assert_true(urn_ack_taken_up(&rx, 3, true));
	assert_true(urn_ack_sack_due(&rx, 3, false));
	urn_ack_sent(&rx);
	assert_false(urn_ack_any_is_owed(&rx));
}

/* Go-back-N: a second gap, behind kept packets that were taken up, is asked for at once. */
static void
second_gap(void **state)
{
	struct urn_psn_rx rx = {0};
	int kept;

	(void)state;
	urn_psn_rx_start(&rx, P(3));
	assert_false(urn_ack_taken_up(&rx, 1, false)); /* nothing is kept any more */
	assert_false(urn_ack_any_is_owed(&rx));
	rx.ooo = (struct rte_mbuf *)&kept;
	assert_true(urn_ack_taken_up(&rx, 1, false));
	assert_int_equal(urn_ack_due(&rx, 1, false, false, false), URN_ACK_NAK);
	assert_int_equal(urn_ack_nak_for(&rx), P(3));
	assert_false(urn_ack_taken_up(&rx, 1, false)); /* one NAK a gap */
}

/* All packets that were dropped unseen are asked for by one NAK, which is done when the last has
 * come. */
static void
dropped(void **state)
{
	struct urn_psn_rx rx = {0};

	(void)state;
	urn_psn_rx_start(&rx, P(2));
	assert_false(urn_ack_missed(&rx, P(1), 8)); /* done before */
	assert_true(urn_ack_missed(&rx, P(2), 8));
	assert_true(urn_ack_missed(&rx, P(5), 8));
	assert_false(urn_ack_missed(&rx, P(4), 8));
	for (unsigned int i = 2; i <= 5; i++) {
		assert_true(urn_ack_gap_is_owed(&rx));
		assert_int_equal(urn_ack_nak_for(&rx), P(i));
		urn_psn_rx_accept(&rx, 1);
		urn_ack_gap_closed(&rx, false);
	}
	assert_false(urn_ack_any_is_owed(&rx) || urn_ack_has_gap(&rx));

	assert_true(urn_ack_missed(&rx, P(90), 8)); /* no further than packets are kept */
	assert_int_equal(rx.nak_psn, P(6 + 8 + 1));
	urn_psn_rx_accept(&rx, 1);
	urn_ack_gap_closed(&rx, true); /* the sequence is over */
	assert_false(urn_ack_any_is_owed(&rx) || urn_ack_has_gap(&rx));

	urn_ack_owe_nak(&rx, P(7), URN_NAK_OP);
	assert_false(urn_ack_missed(&rx, P(7), 8)); /* the refusal stands */
}

/* ---- asking for acknowledgements */

static void
asks(void **state)
{
	struct urn_psn_tx tx = {0};
	struct urn_psn_cursor again;

	(void)state;
	urn_psn_tx_start(&tx, P(0));
	for (unsigned int i = 0; i + 1 < URN_ACK_EVERY; i++) {
		assert_false(urn_ack_wanted(&tx, &tx.cur, i, 1000));
		urn_psn_tx_sent(&tx, &tx.cur, 1, false);
		assert_true(urn_ack_unasked(&tx));
	}
	assert_true(urn_ack_wanted(&tx, &tx.cur, 31, 1000)); /* one in 32 packets */
	urn_psn_tx_sent(&tx, &tx.cur, 1, true);
	assert_false(urn_ack_unasked(&tx));
	assert_false(urn_ack_wanted(&tx, &tx.cur, 32, 34));
	assert_true(urn_ack_wanted(&tx, &tx.cur, 33, 34)); /* the last of the window */

	again = tx.cur;
	again.psn = P(31);
	urn_ack_ask(&again);
	assert_true(urn_ack_wanted(&tx, &again, 31, 1000));
	urn_ack_ask_undone(&tx.cur);
	assert_true(urn_ack_unasked(&tx));
	assert_false(urn_ack_wanted(&tx, &tx.cur, 32, 1000));
	urn_psn_tx_sent(&tx, &again, 1, true);
	urn_ack_ask_tried(&tx, &again);
	assert_false(urn_ack_unasked(&tx));
	urn_ack_ask_undone(&tx.cur);
	tx.una = tx.next;
	assert_false(urn_ack_unasked(&tx)); /* nothing is outstanding */
}

/* A sequence that goes back, and on, knows whether its newest packet asked; the last repeated one
 * asks. */
static void
asked_before(void **state)
{
	struct urn_psn_tx tx = {0};
	struct urn_work w;

	(void)state;
	urn_psn_tx_start(&tx, P(0));
	add(&tx, &w, 8, 0);
	for (unsigned int unasked = 0; unasked < 2; unasked++) {
		tx.cur.psn = tx.next;
		tx.cur.since_ack = unasked;
		urn_psn_tx_go_back(&tx, 0);
		assert_int_equal(tx.cur.psn, P(0));
		assert_false(urn_ack_unasked(&tx));
		assert_false(urn_ack_wanted(&tx, &tx.cur, 0, 1000));
		urn_psn_tx_sent(&tx, &tx.cur, 1, false);
		/* From behind the newest packet: nothing new is known of that. */
		urn_psn_tx_go_back(&tx, 0);
		tx.cur.psn = P(7);
		assert_true(urn_ack_wanted(&tx, &tx.cur, 7, 1000));
		urn_psn_tx_to_newest(&tx);
		assert_int_equal(urn_ack_unasked(&tx), unasked);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handed_on),	cmocka_unit_test(part_by_part),
		cmocka_unit_test(merged),	cmocka_unit_test(one_nak),
		cmocka_unit_test(owed),		cmocka_unit_test(not_ready),
		cmocka_unit_test(sacks),	cmocka_unit_test(second_gap),
		cmocka_unit_test(dropped),	cmocka_unit_test(asks),
		cmocka_unit_test(asked_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
