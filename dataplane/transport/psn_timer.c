/* SPDX-License-Identifier: BSD-3-Clause */
/* Time and patience of the sending end of a sequence of PSNs (psn_timer.h). */
#include "transport/psn_timer.h"

enum {
	EARLY_MAX = 16,  /* doublings of the measured retransmission time */
	ALIVE_MAX = 15,  /* halves of a timeout by which duplicates delay the timeout, in all */
	HELD_TURNS = 64, /* turns to look at packets that came while turns stood still: 2,048 packets of a port */
};
#define AGAIN_NS 10000000ull /* ns after which turns have looked at all waiting packets */
_Static_assert(HELD_TURNS <= UINT8_MAX, "counted in urn_psn_tx.early");

/* Time, in ns, to look at packets that came meanwhile, and for a peer to answer, before anything is repeated. */
static inline uint64_t
patience(const struct urn_psn_tx *tx, const struct urn_psn_clock *c)
{
	uint64_t span = urn_psn_span(tx);

	return c->answer < span ? c->answer : span;
}

bool
urn_psn_stood(const struct urn_psn_tx *tx, const struct urn_psn_clock *c, uint64_t since)
{
	/* A peer that is served by the same thread had no turns either. */
	return c->stood_at > tx->deadline - urn_psn_span(tx) && c->now < c->stood_at + since;
}

/* True when the timer ran out and must not count yet, because turns stood still. */
static bool
too_soon(const struct urn_psn_tx *tx, const struct urn_psn_clock *c)
{
	uint64_t ns = patience(tx, c);

	return urn_psn_stood(tx, c, ns > AGAIN_NS ? ns : AGAIN_NS);
}

/*
 * The timer ran out, and turns stood still meanwhile. The timeout counts after some more turns;
 * turns and not time alone, because turns may go on standing still with few between.
 */
static void
hold(struct urn_psn_tx *tx, const struct urn_psn_clock *c)
{
	tx->flags |= URN_TXF_HELD;
	tx->early = 0;
	tx->deadline = c->now + patience(tx, c);
}

static enum urn_psn_step
look_held(struct urn_psn_tx *tx, const struct urn_psn_clock *c, uint64_t *again)
{
	if (tx->early < HELD_TURNS) {
		tx->early++;
		*again = c->now; /* look again with the next turn */
		return URN_PSN_WAIT;
	}
	*again = tx->deadline;
	return c->now < tx->deadline ? URN_PSN_WAIT : URN_PSN_TIMED_OUT;
}

enum urn_psn_step
urn_psn_look(struct urn_psn_tx *tx, const struct urn_psn_clock *c, bool busy, uint64_t *again)
{
	uint64_t due;

	if (unlikely(tx->flags & URN_TXF_HELD)) /* `early` counts turns: it tells no time */
		return busy ? URN_PSN_ARM : look_held(tx, c, again);
	due = *again = urn_psn_due(tx, c->first, c->step);
	if (c->now < due)
		return URN_PSN_WAIT;
	if (busy)
		return URN_PSN_ARM;
	if (c->now >= tx->deadline) {
		if (!too_soon(tx, c))
			return URN_PSN_TIMED_OUT;
		hold(tx, c);
		*again = c->now;
		return URN_PSN_WAIT;
	}
	if (!urn_psn_stood(tx, c, patience(tx, c)))
		return URN_PSN_EARLY;
	due = c->stood_at + patience(tx, c);
	*again = due < tx->deadline ? due : tx->deadline;
	return URN_PSN_WAIT;
}

bool
urn_psn_early(struct urn_psn_tx *tx)
{
	bool repeat = tx->early != 0;

	if (!repeat)
		tx->flags |= URN_TXF_PROBE;
	if (tx->early < EARLY_MAX)
		tx->early++;
	return repeat;
}

bool
urn_psn_retry(struct urn_psn_tx *tx)
{
	if (tx->retries == 0)
		return false;
	tx->retries--;
	return true;
}

enum urn_psn_loss
urn_psn_lost(struct urn_psn_tx *tx)
{
	if (tx->flags & URN_TXF_RNR_WAIT)
		return URN_PSN_NO_MATTER;
	if (tx->flags & URN_TXF_WENT_BACK)
		return URN_PSN_ALL_BACK;
	return urn_psn_retry(tx) ? URN_PSN_GO_BACK : URN_PSN_USED_UP;
}

void
urn_psn_alive(struct urn_psn_tx *tx, uint64_t now)
{
	uint64_t span, halves;

	if (tx->timeout == 0 || urn_psn_tx_idle(tx) || (tx->flags & URN_TXF_RNR_WAIT))
		return;
	span = urn_psn_span(tx);
	halves = (now + span - tx->deadline) >> (URN_TIMEOUT_SHIFT + tx->timeout - 1u);
	if (halves == 0 || tx->alive + halves > ALIVE_MAX)
		return;
	tx->alive = (uint8_t)((tx->alive + halves) & ALIVE_MAX);
	tx->flags &= (uint16_t)~URN_TXF_HELD;
	tx->deadline = now + span;
}

void
urn_psn_rnr_wait(struct urn_psn_tx *tx, uint64_t until)
{
	if (tx->rnr_retry != URN_RNR_FOREVER)
		tx->rnr_tries--;
	tx->retries = tx->retry_cnt;
	tx->flags |= URN_TXF_RNR_WAIT;
	tx->flags &= (uint16_t)~URN_TXF_WENT_BACK;
	tx->deadline = until;
}
