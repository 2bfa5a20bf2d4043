/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane of words (lane.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lane.h"

#include "transport/psn_again.h"
#include "transport/sack.h"

#include <rte_byteorder.h>

#include <string.h>

enum { FIRST_TURNS = 20 }; /* until the first probe or early repeat */

static uint64_t
now(const struct lane *l)
{
	return (l->turn + 1) * LANE_TICK;
}

static uint32_t
rnd(struct lane *l, uint32_t n)
{
	l->rng = l->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->rng >> 33) % n;
}

static void
put(struct lane *l, struct lane_wire *w, struct lane_cell c)
{
	if (l->turn < l->way.dead_turns || (l->way.bad && rnd(l, 10) == 0))
		return;
	assert_true(w->n + 2 < LANE_WIRE);
	w->cell[w->n++] = c;
	if (l->way.bad && rnd(l, 20) == 0)
		w->cell[w->n++] = c;
	if (l->way.bad && w->n > 1 && rnd(l, 10) == 0) {
		w->cell[w->n - 1] = w->cell[w->n - 2];
		w->cell[w->n - 2] = c;
	}
}

/* ---- the timer of the sender */

/* The time, and when the lane probes. */
static struct urn_psn_clock
clock_of(const struct lane *l)
{
	return (struct urn_psn_clock){
		.now = now(l),
		.stood_at = l->stood_at,
		.first = l->way.early ? FIRST_TURNS * LANE_TICK : UINT64_MAX,
		.step = 2 * FIRST_TURNS * LANE_TICK,
		.answer = 4 * LANE_TICK,
	};
}

static void
wake(struct lane *l)
{
	struct urn_psn_clock c = clock_of(l);

	urn_psn_wake_at(&l->wheel, &l->tx, urn_psn_due(&l->tx, c.first, c.step));
}

static void
arm(struct lane *l)
{
	if (l->tx.flags & URN_TXF_RNR_WAIT)
		return;
	urn_psn_arm(&l->tx, now(l));
	wake(l);
}

static void
go_back(struct lane *l)
{
	urn_psn_tx_go_back(&l->tx, 0);
	urn_board_reset(&l->board, l->tx.una);
}

static void
give_up(struct lane *l)
{
	assert_ptr_equal(urn_psn_tx_oldest(&l->tx), l->tx.head);
	l->failed = true;
	l->failed_turn = l->turn;
}

/* Judge missing words by time, too. */
static void
judge(struct lane *l)
{
	struct urn_board_limits limits = {.distance = 4, .seen_ns = 8 * LANE_TICK, .asked_ns = 16 * LANE_TICK};
	uint64_t due;

	urn_board_judge(&l->board, &limits, now(l));
	due = urn_board_due(&l->board, &limits);
	if (due != UINT64_MAX)
		urn_psn_wake_at(&l->wheel, &l->tx, due);
}

static void
fire(struct lane *l)
{
	struct urn_psn_clock c = clock_of(l);
	uint64_t again = 0;

	if (l->tx.flags & URN_TXF_RNR_WAIT) {
		if (c.now >= l->tx.deadline) {
			l->tx.flags &= (uint16_t)~URN_TXF_RNR_WAIT;
			arm(l);
		} else {
			urn_wheel_start(&l->wheel, &l->tx.timer, l->tx.deadline);
		}
		return;
	}
	judge(l);
	if (urn_psn_tx_idle(&l->tx))
		return;
	switch (urn_psn_look(&l->tx, &c, false, &again)) {
	case URN_PSN_WAIT:
		urn_psn_wake_at(&l->wheel, &l->tx, again);
		break;
	case URN_PSN_ARM:
		fail(); /* a lane has no memory that it waits for */
		break;
	case URN_PSN_EARLY:
		if (urn_psn_early(&l->tx))
			go_back(l);
		wake(l);
		break;
	case URN_PSN_TIMED_OUT:
		l->timeouts++;
		if (!urn_psn_retry(&l->tx)) {
			give_up(l);
			break;
		}
		go_back(l);
		arm(l);
		break;
	}
}

/* ---- sender */

/* Give the next words to work. returns: false when there are none, or no room */
static bool
post(struct lane *l)
{
	struct urn_work *w = &l->work[l->posted % LANE_WORKS];
	uint32_t n = 1 + rnd(l, 9);

	if (l->posted - l->retired == LANE_WORKS || l->given == LANE_WORDS)
		return false;
	if (n > LANE_WORDS - l->given)
		n = LANE_WORDS - l->given;
	memset(w, 0, sizeof(*w));
	w->length = l->given; /* the first word */
	urn_psn_tx_append(&l->tx, w, n);
	l->given += n;
	l->posted++;
	l->tx.cur.work = w;
	return true;
}

/* Send the word of work w at a cursor, which may be another than the sequence's own. */
static void
send_one(struct lane *l, struct urn_work *w, struct urn_psn_cursor *cur)
{
	uint32_t i = (cur->psn - w->first_psn) & URN_PSN_MASK,
		 out = (cur->psn - l->tx.una) & URN_PSN_MASK;
	bool asks = urn_ack_wanted(&l->tx, cur, out, LANE_WINDOW) || (i + 1 == w->npsn && !w->next);

	put(l, &l->there, (struct lane_cell){.kind = LANE_DATA, .psn = cur->psn, .word = w->length + i, .asks = asks});
	l->repeats += urn_psn_tx_sent(&l->tx, cur, 1, asks);
}

static void
send_lost(struct lane *l)
{
	for (uint32_t i = 0; i < l->board.n; i++) {
		struct urn_gap *g = &l->board.gap[i];
		struct urn_work *w = NULL;

		while ((w = urn_psn_again(&l->tx, g, w))) {
			struct urn_psn_cursor cur = {.work = w, .psn = g->cur};

			if (urn_psn_add(cur.psn, 1) == g->end)
				urn_ack_ask(&cur);
			send_one(l, w, &cur);
			l->mended++;
			urn_board_asked(g, cur.psn, now(l));
		}
		if (g->state == URN_GAP_LOST)
			urn_board_asked(g, g->end, now(l));
	}
}

/* Send the newest word once more: the receiver answers with all that it has. */
static void
send_probe(struct lane *l)
{
	struct urn_psn_cursor cur = {.psn = urn_psn_add(l->tx.next, URN_PSN_MASK)};
	struct urn_work *w = urn_psn_tx_work_at(&l->tx, cur.psn);

	l->tx.flags &= (uint16_t)~URN_TXF_PROBE;
	l->probes++;
	urn_ack_ask(&cur);
	if (w)
		send_one(l, w, &cur);
}

static void
send_all(struct lane *l)
{
	struct urn_psn_cursor *cur = &l->tx.cur;
	bool idle = urn_psn_tx_idle(&l->tx);

	if (l->tx.flags & URN_TXF_RNR_WAIT)
		return;
	send_lost(l);
	if (l->tx.flags & URN_TXF_PROBE)
		send_probe(l);
	while (((cur->psn - l->tx.una) & URN_PSN_MASK) < LANE_WINDOW && (cur->work || post(l))) {
		struct urn_work *w = cur->work;
		bool last = urn_psn_add(cur->psn, 1) == urn_psn_add(w->first_psn, w->npsn);

		send_one(l, w, cur);
		w->state = last || w->state == URN_WORK_SENT ? URN_WORK_SENT : URN_WORK_SENDING;
		if (last)
			cur->work = w->next;
	}
	if (idle && !urn_psn_tx_idle(&l->tx))
		arm(l);
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
	urn_psn_progress(&l->tx);
	urn_board_advance(&l->board, l->tx.una);
	if (!urn_psn_tx_idle(&l->tx))
		arm(l);
}

static void
hear_sack(struct lane *l, const struct urn_sack *s)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	struct urn_sack_run run = {0};

	if (!urn_sack_sound(s, l->tx.next))
		fail();
	urn_board_came(&l->board, l->board.base, urn_sack_expected(s), now(l), &news);
	while (urn_sack_next(s, &run))
		urn_board_came(&l->board, run.first, run.end, now(l), &news);
	judge(l);
}

static void
hear_nak(struct lane *l, const struct lane_cell *c)
{
	if ((c->syndrome & URN_SYN_KIND) == URN_SYN_RNR) {
		if (c->psn != l->tx.una || (l->tx.flags & URN_TXF_RNR_WAIT))
			return;
		if (!urn_psn_rnr_left(&l->tx)) {
			give_up(l);
			return;
		}
		go_back(l);
		urn_psn_rnr_wait(&l->tx, now(l) + 10 * LANE_TICK);
		urn_wheel_start(&l->wheel, &l->tx.timer, l->tx.deadline);
		return;
	}
	switch (urn_psn_lost(&l->tx)) {
	case URN_PSN_NO_MATTER:
		break;
	case URN_PSN_ALL_BACK:
		urn_psn_tx_all_back(&l->tx);
		break;
	case URN_PSN_GO_BACK:
		go_back(l);
		arm(l);
		break;
	case URN_PSN_USED_UP:
		give_up(l);
		break;
	}
}

static void
hear(struct lane *l, const struct lane_cell *c)
{
	if (urn_psn_diff(c->psn, l->tx.next) >= 0 || urn_psn_diff(c->psn, l->tx.una) < -1)
		return;
	acked(l, c->kind == LANE_NAK ? c->psn : urn_psn_add(c->psn, 1));
	if (c->kind == LANE_SACK && !urn_psn_tx_idle(&l->tx))
		hear_sack(l, &c->sack);
	else if (c->kind == LANE_NAK && c->psn == l->tx.una)
		hear_nak(l, c);
}

/* ---- receiver */

static void
take_word(struct lane *l, uint32_t psn, uint32_t word)
{
	assert_int_equal(word, l->got); /* exactly once, in order */
	l->got++;
	urn_psn_rx_accept(&l->rx, 1);
	l->rx.done = psn;
}

/* Take the word that is due, or refuse it for lack of room. */
static void
take_due(struct lane *l, const struct lane_cell *c)
{
	bool full = l->turn >= l->way.full_from && l->turn < l->way.full_turns;

	if (full)
		urn_ack_not_ready(&l->rx);
	else
		take_word(l, c->psn, c->word);
	if (urn_ack_has_gap(&l->rx))
		urn_ack_gap_closed(&l->rx, false);
	if (full)
		urn_ack_owe_nak(&l->rx, c->psn, URN_SYN_RNR);
	else if (c->asks)
		urn_ack_owe(&l->rx, l->turn, false);
}

/* Take up the kept words whose turn has come. */
static void
take_kept(struct lane *l)
{
	bool any = false;

	for (uint32_t i = l->rx.epsn % LANE_AHEAD; l->have[i]; i = l->rx.epsn % LANE_AHEAD) {
		l->have[i] = false;
		if (--l->rx.ooo_count == 0)
			l->rx.ooo = NULL;
		take_due(l, &l->kept[i]);
		any = true;
	}
	if (any)
		urn_ack_taken_up(&l->rx, l->turn, l->way.selective);
}

static void
keep(struct lane *l, const struct lane_cell *c)
{
	uint32_t i = c->psn % LANE_AHEAD;

	l->rx.ooo_count += !l->have[i];
	l->rx.ooo = (struct rte_mbuf *)l->kept; /* not NULL: words are kept; a lane has no packets */
	l->kept[i] = *c;
	l->have[i] = true;
	l->put_by++;
}

/* True while words are dropped unseen, as if for slow memory. */
static bool
gated(const struct lane *l)
{
	return l->turn < l->way.gate_turns && (l->turn * 2654435761u) >> 31;
}

static void
take(struct lane *l, const struct lane_cell *c)
{
	int32_t ahead = urn_psn_rx_ahead(&l->rx, c->psn);
	bool far = ahead >= LANE_AHEAD;

	if (gated(l) && ahead >= 0 && !urn_ack_was_asked_for(&l->rx, c->psn)) {
		urn_ack_missed(&l->rx, c->psn, LANE_AHEAD - 1);
	} else if (ahead == 0) {
		urn_ack_came(&l->rx);
		take_due(l, c);
		take_kept(l);
	} else if (ahead < 0) {
		urn_ack_owe(&l->rx, l->turn, true);
	} else {
		if (l->way.keeps && !far && !urn_ack_is_not_ready(&l->rx))
			keep(l, c);
		urn_ack_ahead(&l->rx, l->turn, l->way.selective, far);
	}
}

/* Tell which words are kept, as the wire does. */
static struct urn_sack
sack_of(const struct lane *l)
{
	struct urn_sack s = {.version = URN_SACK_VERSION, .expected = rte_cpu_to_be_32(l->rx.epsn)};

	for (uint32_t i = 0; i + 1 < LANE_AHEAD; i++)
		if (l->have[urn_psn_add(l->rx.epsn, 1 + i) % LANE_AHEAD])
			s.bitmap[i / 8] |= (uint8_t)(1u << (i % 8));
	return s;
}

static void
say_nak(struct lane *l)
{
	struct lane_cell c = {
		.kind = LANE_NAK, .psn = urn_ack_nak_for(&l->rx), .syndrome = l->rx.nak_syn};

	put(l, &l->back, c);
	urn_ack_nak_sent(&l->rx);
	assert_false(gated(l) && c.syndrome == URN_NAK_SEQ);
	if (c.syndrome == URN_NAK_SEQ)
		l->naks++;
	else
		l->rnr_naks++;
}

static void
say_sack(struct lane *l)
{
	struct lane_cell c = {.kind = LANE_SACK, .psn = l->rx.done, .sack = sack_of(l)};

	put(l, &l->back, c);
	urn_ack_sent(&l->rx);
	l->sacks++;
}

static void
say(struct lane *l)
{
	struct lane_cell c = {.kind = LANE_ACK, .psn = l->rx.done};

	if (gated(l) && urn_ack_gap_is_owed(&l->rx))
		return; /* words that were dropped are asked for when they find room */
	if (l->way.selective && urn_ack_sack_due(&l->rx, l->turn, false))
		say_sack(l);
	switch (urn_ack_due(&l->rx, l->turn, false, false, false)) {
	case URN_ACK_ACK:
		put(l, &l->back, c);
		urn_ack_sent(&l->rx);
		break;
	case URN_ACK_NAK:
		say_nak(l);
		break;
	case URN_ACK_NONE:
	case URN_ACK_LATER:
		break;
	}
}

/* Take what is on a wire off it, the oldest first. most: cells; 0: all */
static void
carry(struct lane_wire *to, struct lane_wire *from, uint32_t most)
{
	to->n = most && most < from->n ? most : from->n;
	memcpy(to->cell, from->cell, to->n * sizeof(to->cell[0]));
	from->n -= to->n;
	memmove(from->cell, from->cell + to->n, from->n * sizeof(to->cell[0]));
}

static void
turn(struct lane *l)
{
	static struct lane_wire w;

	l->turn++;
	if (l->turn == 2 && l->way.stand_turns) {
		l->turn += l->way.stand_turns;
		l->stood_at = now(l);
	}
	while (!l->failed && urn_wheel_expire(&l->wheel, now(l)))
		fire(l);
	if (l->failed)
		return;
	send_all(l);
	carry(&w, &l->there, l->way.rate);
	for (unsigned int i = 0; i < w.n; i++)
		take(l, &w.cell[i]);
	say(l);
	carry(&w, &l->back, 0);
	for (unsigned int i = 0; i < w.n; i++)
		hear(l, &w.cell[i]);
}

void
lane_start(struct lane *l, uint64_t seed, struct lane_way way)
{
	memset(l, 0, sizeof(*l));
	l->rng = seed;
	l->way = way;
	l->tx.timeout = LANE_TIMEOUT;
	l->tx.retry_cnt = l->tx.retries = LANE_RETRIES;
	l->tx.rnr_retry = l->tx.rnr_tries = 2;
	urn_psn_tx_start(&l->tx, LANE_BASE);
	urn_psn_rx_start(&l->rx, LANE_BASE);
	urn_board_reset(&l->board, LANE_BASE);
	urn_wheel_init(&l->wheel, 0);
}

void
lane_run(struct lane *l)
{
	while (!l->failed && (l->got < LANE_WORDS || !urn_psn_tx_idle(&l->tx))) {
		turn(l);
		assert_true(l->turn < 100 * LANE_WORDS);
	}
	if (l->failed)
		return;
	assert_ptr_equal(l->tx.head, NULL);
	assert_int_equal(l->retired, l->posted);
}
