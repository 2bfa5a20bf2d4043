/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HOUSE seams 1 and 3: reliability that is not a queue pair's. A lane of words, which is no queue
 * pair, embeds both ends of a sequence of PSNs (psn_tx.h, psn_rx.h, ack.h), its timer and retries
 * (psn_timer.h) on a timing wheel, and repairs losses by scoreboard and selective acknowledgements
 * (board.h, sack.h, psn_again.h). It brings every word over a bad wire, once and in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/ack.h"
#include "transport/psn_again.h"
#include "transport/psn_timer.h"
#include "transport/sack.h"

#include <rte_byteorder.h>

#include <string.h>

#define BASE 0xffff80u /* the PSN wraps soon */
#define TICK (1ull << URN_WHEEL_TICK_SHIFT) /* a turn takes one, ns */

enum {
	WORKS = 64,
	WINDOW = 48,
	WIRE = 256,
	WORDS = 20000,
	AHEAD = 64,      /* words that a selective receiver keeps */
	TIMEOUT = 8,     /* code: 256 turns */
	RETRIES = 7,
	FIRST_TURNS = 20, /* until the first probe or early repeat */
};

enum kind { DATA, ACK, NAK, SACK };

struct cell {
	enum kind kind;
	uint32_t psn;
	uint32_t word;      /* DATA */
	bool asks;          /* DATA: for an acknowledgement */
	uint8_t syndrome;   /* NAK */
	struct urn_sack sack;
};

struct wire {
	struct cell cell[WIRE];
	unsigned int n;
};

/* How a lane and its wire behave. */
struct way {
	bool bad;       /* the wire loses, duplicates and reorders */
	bool selective; /* losses are repaired packet by packet */
	bool early;     /* probes and early repeats */
	uint32_t full_turns;  /* the receiver has no room for the first word until this turn */
	uint32_t dead_turns;  /* the wire takes nothing until this turn */
	uint32_t stand_turns; /* turns stand still from turn 2 on, so long */
};

struct lane {
	struct way way;
	struct urn_psn_tx tx;
	struct urn_psn_rx rx;
	struct urn_board board;       /* words that the receiver has */
	struct urn_wheel wheel;
	struct urn_work work[WORKS];
	unsigned int posted, retired; /* works, free running */
	uint32_t given;               /* words given to work */
	uint32_t got;                 /* words that arrived, in order */
	uint32_t kept[AHEAD];         /* selective receiver: words ahead of their turn, by PSN */
	bool have[AHEAD];
	uint32_t turn;
	uint64_t stood_at;
	uint64_t rng;
	bool failed;                  /* retries were used up */
	uint32_t failed_turn;
	struct wire there, back;
	unsigned int repeats, naks, probes, timeouts, mended; /* mended: words of gaps that went again */
};

static uint64_t
now(const struct lane *l)
{
	return (l->turn + 1) * TICK;
}

static uint32_t
rnd(struct lane *l, uint32_t n)
{
	l->rng = l->rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->rng >> 33) % n;
}

static void
put(struct lane *l, struct wire *w, struct cell c)
{
	if (l->turn < l->way.dead_turns || (l->way.bad && rnd(l, 10) == 0))
		return;
	assert_true(w->n + 2 < WIRE);
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
		.first = l->way.early ? FIRST_TURNS * TICK : UINT64_MAX,
		.step = 2 * FIRST_TURNS * TICK,
		.answer = 4 * TICK,
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
	struct urn_board_limits limits = {.distance = 4, .seen_ns = 8 * TICK, .asked_ns = 16 * TICK};
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

/* Send the word of work w at a cursor, which may be another than the sequence's own. */
static void
send_one(struct lane *l, struct urn_work *w, struct urn_psn_cursor *cur, bool asks)
{
	uint32_t i = (cur->psn - w->first_psn) & URN_PSN_MASK;

	put(l, &l->there, (struct cell){.kind = DATA, .psn = cur->psn, .word = w->length + i, .asks = asks});
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

			send_one(l, w, &cur, urn_psn_add(cur.psn, 1) == g->end);
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
	if (w)
		send_one(l, w, &cur, true);
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
	while (((cur->psn - l->tx.una) & URN_PSN_MASK) < WINDOW && (cur->work || post(l))) {
		struct urn_work *w = cur->work;
		uint32_t out = (cur->psn - l->tx.una) & URN_PSN_MASK;
		bool last = urn_psn_add(cur->psn, 1) == urn_psn_add(w->first_psn, w->npsn);

		send_one(l, w, cur, (last && !w->next) || urn_ack_wanted(&l->tx, cur, out, WINDOW));
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
hear_nak(struct lane *l, const struct cell *c)
{
	if ((c->syndrome & URN_SYN_KIND) == URN_SYN_RNR) {
		if (c->psn != l->tx.una || (l->tx.flags & URN_TXF_RNR_WAIT))
			return;
		if (!urn_psn_rnr_left(&l->tx)) {
			give_up(l);
			return;
		}
		go_back(l);
		urn_psn_rnr_wait(&l->tx, now(l) + 10 * TICK);
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
hear(struct lane *l, const struct cell *c)
{
	if (urn_psn_diff(c->psn, l->tx.next) >= 0 || urn_psn_diff(c->psn, l->tx.una) < -1)
		return;
	acked(l, c->kind == NAK ? c->psn : urn_psn_add(c->psn, 1));
	if (c->kind == SACK && !urn_psn_tx_idle(&l->tx))
		hear_sack(l, &c->sack);
	else if (c->kind == NAK && c->psn == l->tx.una)
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

static void
take_kept(struct lane *l)
{
	for (uint32_t i = l->rx.epsn % AHEAD; l->have[i]; i = l->rx.epsn % AHEAD) {
		l->have[i] = false;
		l->rx.ooo_count--;
		take_word(l, l->rx.epsn, l->kept[i]);
	}
	if (!l->rx.ooo_count)
		l->rx.ooo = NULL;
}

static void
keep(struct lane *l, const struct cell *c)
{
	uint32_t i = c->psn % AHEAD;

	l->rx.ooo_count += !l->have[i];
	l->rx.ooo = (struct rte_mbuf *)l->kept; /* not NULL: words are kept; a lane has no packets */
	l->kept[i] = c->word;
	l->have[i] = true;
}

static void
take(struct lane *l, const struct cell *c)
{
	int32_t ahead = urn_psn_rx_ahead(&l->rx, c->psn);

	if (ahead > 0) {
		if (l->way.selective && ahead < AHEAD)
			keep(l, c);
		urn_ack_ahead(&l->rx, l->turn, l->way.selective, ahead >= AHEAD);
	} else if (ahead < 0) {
		urn_ack_owe(&l->rx, l->turn, true);
	} else if (l->turn < l->way.full_turns) {
		urn_ack_owe_nak(&l->rx, c->psn, URN_SYN_RNR);
	} else {
		take_word(l, c->psn, c->word);
		take_kept(l);
		if (c->asks)
			urn_ack_owe(&l->rx, l->turn, false);
		if (l->rx.flags & URN_RXF_GAP)
			urn_ack_gap_closed(&l->rx, false);
	}
}

/* Tell which words are kept, as the wire does. */
static struct urn_sack
sack_of(const struct lane *l)
{
	struct urn_sack s = {.version = URN_SACK_VERSION, .expected = rte_cpu_to_be_32(l->rx.epsn)};

	for (uint32_t i = 0; i + 1 < AHEAD; i++)
		if (l->have[urn_psn_add(l->rx.epsn, 1 + i) % AHEAD])
			s.bitmap[i / 8] |= (uint8_t)(1u << (i % 8));
	return s;
}

static void
say(struct lane *l)
{
	struct cell c = {.psn = l->rx.done};

	switch (urn_ack_due(&l->rx, l->turn, false, false, false)) {
	case URN_ACK_ACK:
		c.kind = l->way.selective ? SACK : ACK;
		if (l->way.selective)
			c.sack = sack_of(l);
		put(l, &l->back, c);
		l->rx.flags &= (uint8_t)~URN_RXF_ACK;
		break;
	case URN_ACK_NAK:
		c.kind = NAK;
		c.psn = urn_ack_nak_for(&l->rx);
		c.syndrome = l->rx.nak_syn;
		put(l, &l->back, c);
		l->rx.flags &= (uint8_t)~(URN_RXF_ACK | URN_RXF_NAK);
		l->naks++;
		break;
	case URN_ACK_NONE:
	case URN_ACK_LATER:
		break;
	}
}

/* Take what is on a wire off it. */
static void
carry(struct wire *to, struct wire *from)
{
	memcpy(to->cell, from->cell, from->n * sizeof(from->cell[0]));
	to->n = from->n;
	from->n = 0;
}

static void
turn(struct lane *l)
{
	static struct wire w;

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
	carry(&w, &l->there);
	for (unsigned int i = 0; i < w.n; i++)
		take(l, &w.cell[i]);
	say(l);
	carry(&w, &l->back);
	for (unsigned int i = 0; i < w.n; i++)
		hear(l, &w.cell[i]);
}

static void
start(struct lane *l, uint64_t seed, struct way way)
{
	memset(l, 0, sizeof(*l));
	l->rng = seed;
	l->way = way;
	l->tx.timeout = TIMEOUT;
	l->tx.retry_cnt = l->tx.retries = RETRIES;
	l->tx.rnr_retry = l->tx.rnr_tries = 2;
	urn_psn_tx_start(&l->tx, BASE);
	urn_psn_rx_start(&l->rx, BASE);
	urn_board_reset(&l->board, BASE);
	urn_wheel_init(&l->wheel, 0);
}

static void
run(struct lane *l)
{
	while (!l->failed && (l->got < WORDS || !urn_psn_tx_idle(&l->tx))) {
		turn(l);
		assert_true(l->turn < 100 * WORDS);
	}
	if (l->failed)
		return;
	assert_ptr_equal(l->tx.head, NULL);
	assert_int_equal(l->retired, l->posted);
}

/* ---- tests */

static void
good_wire(void **state)
{
	static struct lane l;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		start(&l, 1, (struct way){.selective = i, .early = true});
		run(&l);
		assert_false(l.failed);
		assert_int_equal(l.repeats + l.naks + l.probes + l.timeouts, 0);
	}
}

/* Without probes and early repeats, the end of the words is brought by the timeout alone. */
static void
bad_wire(void **state)
{
	static struct lane l;
	unsigned int timeouts = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		start(&l, seed, (struct way){.bad = true});
		run(&l);
		assert_false(l.failed);
		assert_true(l.repeats > 0 && l.naks > 0);
		timeouts += l.timeouts;
	}
	assert_true(timeouts > 0);
}

/* Probes and early repeats leave little to the timeout, which costs retries. */
static void
bad_wire_early(void **state)
{
	unsigned int timeouts[2] = {0}, turns[2] = {0};
	static struct lane l;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		for (unsigned int early = 0; early < 2; early++) {
			start(&l, seed, (struct way){.bad = true, .early = early});
			run(&l);
			assert_false(l.failed);
			assert_int_equal(l.probes > 0, early);
			timeouts[early] += l.timeouts;
			turns[early] += l.turn;
		}
	}
	assert_true(timeouts[1] * 8 < timeouts[0]);
	assert_true(turns[1] * 2 < turns[0]);
}

/* Selective acknowledgements: only missing words go again. */
static void
bad_wire_selective(void **state)
{
	static struct lane l;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		unsigned int all;

		start(&l, seed, (struct way){.bad = true, .early = true});
		run(&l);
		all = l.repeats;
		start(&l, seed, (struct way){.bad = true, .early = true, .selective = true});
		run(&l);
		assert_false(l.failed);
		assert_true(l.repeats * 3 < all);
		assert_true(l.mended * 2 > l.repeats); /* more by gaps than by probes and timeouts */
	}
}

/* IBTA 9.7.6.1.3: a silent peer costs a timeout for the first transmission and each retry. */
static void
silent_peer(void **state)
{
	const uint32_t span = 1u << TIMEOUT, whole = (RETRIES + 1) * span;
	static struct lane l;

	(void)state;
	for (unsigned int early = 0; early < 2; early++) {
		start(&l, 1, (struct way){.dead_turns = UINT32_MAX, .early = early});
		run(&l);
		assert_true(l.failed);
		assert_int_equal(l.timeouts, RETRIES + 1);
		assert_in_range(l.failed_turn, whole, whole + 2 * (RETRIES + 2));
		assert_int_equal(l.got, 0);
	}
}

/* Progress gives the retries back. */
static void
silent_for_a_while(void **state)
{
	const uint32_t span = 1u << TIMEOUT;
	static struct lane l;

	(void)state;
	start(&l, 1, (struct way){.dead_turns = RETRIES * span});
	run(&l);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, RETRIES);
	assert_int_equal(l.tx.retries, RETRIES);
}

/* IBTA 9.7.5.2.8: an RNR NAK is waited out, and its retries are counted apart; 7: for ever. */
static void
receiver_full(void **state)
{
	static struct lane l;

	(void)state;
	start(&l, 1, (struct way){.full_turns = 15});
	run(&l);
	assert_false(l.failed);
	assert_int_equal(l.tx.rnr_tries, 2);
	assert_int_equal(l.tx.retries, RETRIES);
	assert_int_equal(l.timeouts, 0);

	start(&l, 1, (struct way){.full_turns = 1000});
	run(&l);
	assert_true(l.failed);
	assert_in_range(l.failed_turn, 20, 30); /* two waits of ten turns */

	start(&l, 1, (struct way){.full_turns = 1000});
	l.tx.rnr_retry = URN_RNR_FOREVER;
	run(&l);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, 0);
}

/* A timeout that ran out while turns stood still does not count. */
static void
turns_stand_still(void **state)
{
	static struct lane l;

	(void)state;
	start(&l, 1, (struct way){.stand_turns = 3u << TIMEOUT}); /* while acknowledgements are owed */
	run(&l);
	assert_true(l.turn > 3u << TIMEOUT);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, 0);
	assert_int_equal(l.tx.retries, RETRIES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_wire),          cmocka_unit_test(bad_wire),
		cmocka_unit_test(bad_wire_early),     cmocka_unit_test(bad_wire_selective),
		cmocka_unit_test(silent_peer),        cmocka_unit_test(silent_for_a_while),
		cmocka_unit_test(receiver_full),      cmocka_unit_test(turns_stand_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
