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
	rx.flags &= (uint8_t)~URN_RXF_NAK;
	assert_false(urn_ack_missed(&rx, P(5), 256)); /* comes again anyway */
	assert_true(urn_ack_missed(&rx, P(2), 256));
	urn_psn_rx_accept(&rx, 1);
	urn_ack_gap_closed(&rx, false);
	assert_int_equal(rx.flags, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handed_on),
		cmocka_unit_test(part_by_part),
		cmocka_unit_test(merged),
		cmocka_unit_test(one_nak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
