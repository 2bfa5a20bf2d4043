/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time and patience of the sending end of a sequence of PSNs (psn_tx.h): how long it waits for its
 * peer, when it asks or repeats early, when a retry is spent, and when retries are used up
 * (doc/inside/recovery.md "Time"). One timer serves a sequence. The functions are pure: they send
 * nothing and read no clock; the channel that embeds the sequence carries out what they decide.
 *
 *     progress        first          first + step     first + 3 step        the timeout
 *        │              │                 │                 │                    │
 *        ▼              ▼                 ▼                 ▼                    ▼
 *        [  wait        │ probe           │ repeat          │ repeat  ...        │ repeat, a retry less
 */
#ifndef URN_TRANSPORT_PSN_TIMER_H
#define URN_TRANSPORT_PSN_TIMER_H

#include "transport/psn_tx.h"
#include "transport/wheel.h"

#include <rte_branch_prediction.h>

enum {
	URN_TIMEOUT_SHIFT = 12, /* the timeout is 2^(12 + code) ns (IBTA 9.7.6.1.3) */
	URN_RNR_FOREVER = 7,    /* urn_psn_tx.rnr_retry: RNR NAKs are obeyed without end (wire.md "Timers") */
};

/* The time, and what is known about the way to the peer; made anew for each look. */
struct urn_psn_clock {
	uint64_t now;      /* ns */
	uint64_t stood_at; /* ns: turns of the engine went on after they had stood still; 0: they never did */
	uint64_t first;    /* ns without progress until the first probe or early repeat; UINT64_MAX: there is none */
	uint64_t step;     /* ns from there until the next repeat, doubled for each further one */
	uint64_t answer;   /* ns that a peer that lives takes to answer */
};

/* A step that is due, as a look at the timer decides. */
enum urn_psn_step {
	URN_PSN_WAIT,      /* nothing before the time that is handed back */
	URN_PSN_ARM,       /* own memory is slow, not the peer: the wait begins anew */
	URN_PSN_EARLY,     /* a probe, or a repeat that costs no retry */
	URN_PSN_TIMED_OUT, /* a repeat that costs a retry (urn_psn_retry()) */
};

/* The move that follows a loss, of which the peer told or its answers show. */
enum urn_psn_loss {
	URN_PSN_NO_MATTER, /* all is repeated anyway behind the wait that an RNR NAK asked for */
	URN_PSN_ALL_BACK,  /* the cursor went back before, and nothing came since: PSNs held back go, too */
	URN_PSN_GO_BACK,   /* go back; a retry was spent */
	URN_PSN_USED_UP,   /* no retry is left: the oldest work fails */
};

/* The timeout, ns; valid with a code of the timeout other than 0. */
static inline uint64_t
urn_psn_span(const struct urn_psn_tx *tx)
{
	return 1ull << (URN_TIMEOUT_SHIFT + tx->timeout);
}

/* Begin the wait anew: there was progress, or a packet goes out while nothing is outstanding. now: ns */
static inline void
urn_psn_arm(struct urn_psn_tx *tx, uint64_t now)
{
	tx->deadline = now + urn_psn_span(tx);
	tx->flags &= (uint16_t)~(URN_TXF_HELD | URN_TXF_DOUBT | URN_TXF_MOVED);
	tx->early = 0;
}

/* Time in ns at which the next probe or early repeat is due; first, step: see struct urn_psn_clock. */
static inline uint64_t
urn_psn_early_due(const struct urn_psn_tx *tx, uint64_t first, uint64_t step)
{
	uint64_t due;

	if (first == UINT64_MAX)
		return first;
	due = tx->deadline - urn_psn_span(tx) + first;
	if (unlikely(tx->early))
		due += step * ((1ull << tx->early) - 1);
	return due;
}

/* Time in ns at which a look at the timer is due next. */
static inline uint64_t
urn_psn_due(const struct urn_psn_tx *tx, uint64_t first, uint64_t step)
{
	uint64_t due = urn_psn_early_due(tx, first, step);

	return due < tx->deadline ? due : tx->deadline;
}

/* Look at the sequence at this time, ns, or earlier: a timer that fires too early looks and starts again. */
static inline void
urn_psn_wake_at(struct urn_wheel *wheel, struct urn_psn_tx *tx, uint64_t due)
{
	if (!urn_timer_started(&tx->timer) ||
	    unlikely(tx->timer.tick > (due >> URN_WHEEL_TICK_SHIFT) + 1))
		urn_wheel_start(wheel, &tx->timer, due);
}

/*
 * The timer of a sequence with outstanding work fired: decide what is due. When turns of the engine
 * stood still meanwhile, packets that came may wait unseen, and a timeout counts only after some
 * turns more. busy: packets of the sequence wait for own memory
 * returns: the step; *again: with URN_PSN_WAIT, ns, when to look again
 */
enum urn_psn_step urn_psn_look(struct urn_psn_tx *tx, const struct urn_psn_clock *c, bool busy,
			       uint64_t *again);
/* A step URN_PSN_EARLY is taken: the first is a probe. returns: true when everything is to be repeated instead */
bool urn_psn_early(struct urn_psn_tx *tx);
/* True when turns stood still while the timer ran, and went on less than `since` ns ago. */
bool urn_psn_stood(const struct urn_psn_tx *tx, const struct urn_psn_clock *c, uint64_t since);

/* Spend a retry. returns: false when none is left */
bool urn_psn_retry(struct urn_psn_tx *tx);
/* Packets or their answers were lost: decide what follows. */
enum urn_psn_loss urn_psn_lost(struct urn_psn_tx *tx);
/*
 * A duplicate showed that the peer lives: the timeout is put off, all in all by seven timeouts and a
 * half until there is progress.
 */
void urn_psn_alive(struct urn_psn_tx *tx, uint64_t now);

/* True when the peer may report once more that it has no receive. */
static inline bool
urn_psn_rnr_left(const struct urn_psn_tx *tx)
{
	return tx->rnr_retry == URN_RNR_FOREVER || tx->rnr_tries != 0;
}

/*
 * An RNR NAK, of which one more may come (urn_psn_rnr_left()), was obeyed and the cursor went back:
 * nothing is sent until this time, ns. The peer is alive, so the count of retries starts again.
 */
void urn_psn_rnr_wait(struct urn_psn_tx *tx, uint64_t until);

/* una moved on: counts start again, and the cursor is not behind una. */
static inline void
urn_psn_progress(struct urn_psn_tx *tx)
{
	tx->retries = tx->retry_cnt;
	tx->rnr_tries = tx->rnr_retry;
	tx->alive = 0;
	tx->flags &= (uint16_t)~(URN_TXF_WENT_BACK | URN_TXF_PROBE);
	if (urn_psn_diff(tx->cur.psn, tx->una) < 0)
		tx->cur.psn = tx->una;
}

#endif
