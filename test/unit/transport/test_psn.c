/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport/psn_tx.c, psn_rx.h and ack.c: HOUSE seams 1 and 3. A lane of words, which is no queue
 * pair, has a sequence of PSNs of its own, and brings every word over a bad wire, once and in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/ack.h"

#include <string.h>

#define BASE 0xffff80u /* the PSN wraps soon */
#define P(n) urn_psn_add(BASE, (uint32_t)(n))

enum { WORKS = 64, WINDOW = 48, WIRE = 256, WORDS = 20000, QUIET_TURNS = 40 };

enum kind { DATA, ACK, NAK };

struct cell {
	enum kind kind;
	uint32_t psn;
	uint32_t word; /* DATA */
	bool asks;     /* DATA: for an acknowledgement */
};

struct wire {
	struct cell cell[WIRE];
	unsigned int n;
};

struct lane {
	struct urn_psn_tx tx;
	struct urn_psn_rx rx;
	struct urn_work work[WORKS];
	unsigned int posted, retired; /* works, free running */
	uint32_t given;               /* words given to work */
	uint32_t got;                 /* words that arrived, in order */
	uint32_t turn, heard;         /* turn now; of the last progress */
	uint64_t rng;
	bool bad;                     /* the wire loses, duplicates and reorders */
	struct wire there, back;
	unsigned int repeats, naks;
};

static uint32_t
rnd(struct lane *l, uint32_t n)
{
	l->rng = l->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->rng >> 33) % n;
}

static void
put(struct lane *l, struct wire *w, struct cell c)
{
	if (l->bad && rnd(l, 10) == 0)
		return;
	assert_true(w->n + 2 < WIRE);
	w->cell[w->n++] = c;
	if (l->bad && rnd(l, 20) == 0)
		w->cell[w->n++] = c;
	if (l->bad && w->n > 1 && rnd(l, 10) == 0) {
		w->cell[w->n - 1] = w->cell[w->n - 2];
		w->cell[w->n - 2] = c;
	}
}

/* ---- sender */

/* Give the next words to work. returns: false when there are none, or no room */
static bool
post(struct lane *l)
{
	struct urn_work *w = &l->work[l->posted % WORKS];
	uint32_t n = 1 + rnd(l, 9);

	if (l->posted - l->retired == WORKS || l->given == WORDS)
		return false;
	if (n > WORDS - l->given)
		n = WORDS - l->given;
	memset(w, 0, sizeof(*w));
	w->length = l->given; /* the first word */
	urn_psn_tx_append(&l->tx, w, n);
	l->given += n;
	l->posted++;
	l->tx.cur.work = w;
	return true;
}

static void
send_all(struct lane *l)
{
	struct urn_psn_cursor *cur = &l->tx.cur;

	while (((cur->psn - l->tx.una) & URN_PSN_MASK) < WINDOW && (cur->work || post(l))) {
		struct urn_work *w = cur->work;
		uint32_t i = (cur->psn - w->first_psn) & URN_PSN_MASK;
		uint32_t out = (cur->psn - l->tx.una) & URN_PSN_MASK;
		bool last = i + 1 == w->npsn;
		struct cell c = {DATA, cur->psn, w->length + i,
				 (last && !w->next) || urn_ack_wanted(&l->tx, cur, out, WINDOW)};

		put(l, &l->there, c);
		w->state = last || w->state == URN_WORK_SENT ? URN_WORK_SENT : URN_WORK_SENDING;
		l->repeats += urn_psn_tx_sent(&l->tx, cur, 1, c.asks);
		if (last)
			cur->work = w->next;
	}
}

static void
acked(struct lane *l, uint32_t to)
{
	bool whole;

	if (urn_psn_diff(to, l->tx.acked) > 0)
		l->tx.acked = to;
	if (!urn_psn_tx_settle(&l->tx, &whole))
		return;
	assert_true(whole);
	while (l->tx.head && l->tx.head->state == URN_WORK_SENT &&
	       urn_psn_diff(l->tx.una, urn_psn_add(l->tx.head->first_psn, l->tx.head->npsn)) >= 0) {
		urn_psn_tx_pop(&l->tx);
		l->retired++;
	}
	if (urn_psn_diff(l->tx.cur.psn, l->tx.una) < 0)
		l->tx.cur.psn = l->tx.una;
	l->tx.flags &= (uint16_t)~URN_TXF_WENT_BACK;
	l->heard = l->turn;
}

static void
hear(struct lane *l, const struct cell *c)
{
	if (urn_psn_diff(c->psn, l->tx.next) >= 0)
		return;
	acked(l, c->kind == ACK ? urn_psn_add(c->psn, 1) : c->psn);
	if (c->kind == NAK && c->psn == l->tx.una && !(l->tx.flags & URN_TXF_WENT_BACK))
		urn_psn_tx_go_back(&l->tx, 0);
}

/* ---- receiver */

static void
take(struct lane *l, const struct cell *c)
{
	int32_t ahead = urn_psn_rx_ahead(&l->rx, c->psn);

	if (ahead > 0) {
		urn_ack_ahead(&l->rx, l->turn, false, false);
	} else if (ahead < 0) {
		urn_ack_owe(&l->rx, l->turn, true);
	} else {
		assert_int_equal(c->word, l->got); /* exactly once, in order */
		l->got++;
		urn_psn_rx_accept(&l->rx, 1);
		l->rx.done = c->psn;
		if (c->asks)
			urn_ack_owe(&l->rx, l->turn, false);
		if (l->rx.flags & URN_RXF_GAP)
			urn_ack_gap_closed(&l->rx, false);
	}
}

static void
say(struct lane *l)
{
	switch (urn_ack_due(&l->rx, l->turn, false, false, false)) {
	case URN_ACK_ACK:
		put(l, &l->back, (struct cell){ACK, l->rx.done, 0, false});
		l->rx.flags &= (uint8_t)~URN_RXF_ACK;
		break;
	case URN_ACK_NAK:
		put(l, &l->back, (struct cell){NAK, urn_ack_nak_for(&l->rx), 0, false});
		l->rx.flags &= (uint8_t)~(URN_RXF_ACK | URN_RXF_NAK);
		l->naks++;
		break;
	case URN_ACK_NONE:
	case URN_ACK_LATER:
		break;
	}
}

static void
turn(struct lane *l)
{
	struct wire w;

	l->turn++;
	send_all(l);
	w = l->there;
	l->there.n = 0;
	for (unsigned int i = 0; i < w.n; i++)
		take(l, &w.cell[i]);
	say(l);
	w = l->back;
	l->back.n = 0;
	for (unsigned int i = 0; i < w.n; i++)
		hear(l, &w.cell[i]);
	if (!urn_psn_tx_idle(&l->tx) && l->turn - l->heard > QUIET_TURNS) { /* the time-out */
		urn_psn_tx_go_back(&l->tx, 0);
		l->heard = l->turn;
	}
}

static void
start(struct lane *l, uint64_t seed, bool bad)
{
	memset(l, 0, sizeof(*l));
	l->rng = seed;
	l->bad = bad;
	urn_psn_tx_start(&l->tx, BASE);
	urn_psn_rx_start(&l->rx, BASE);
}

static void
run(struct lane *l)
{
	while (l->got < WORDS || !urn_psn_tx_idle(&l->tx)) {
		turn(l);
		assert_true(l->turn < 100 * WORDS);
	}
	assert_ptr_equal(l->tx.head, NULL);
	assert_int_equal(l->retired, l->posted);
}

static void
good_wire(void **state)
{
	static struct lane l;

	(void)state;
	start(&l, 1, false);
	run(&l);
	assert_int_equal(l.repeats, 0);
	assert_int_equal(l.naks, 0);
}

static void
bad_wire(void **state)
{
	static struct lane l;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		start(&l, seed, true);
		run(&l);
		assert_true(l.repeats > 0 && l.naks > 0);
	}
}

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
		cmocka_unit_test(good_wire),    cmocka_unit_test(bad_wire), cmocka_unit_test(handed_on),
		cmocka_unit_test(part_by_part), cmocka_unit_test(merged),   cmocka_unit_test(one_nak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
