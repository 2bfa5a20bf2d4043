/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending end of a sequence of PSNs (psn_tx.h). */
#include "transport/ack.h"

void
urn_psn_tx_start(struct urn_psn_tx *tx, uint32_t psn)
{
	tx->una = tx->next = tx->acked = tx->cur.psn = psn;
	tx->cur.end = psn & URN_PSN_MASK;
}

/* True when no packet of w may go out now: w was never begun, or ends the sequence in its turn. */
static bool
stands(const struct urn_work *w)
{
	return w->state == URN_WORK_FAILED || w->state == URN_WORK_BROKEN ||
	       w->state == URN_WORK_QUEUED || w->state == URN_WORK_FENCED;
}

struct urn_work *
urn_psn_tx_work_at(const struct urn_psn_tx *tx, uint32_t psn)
{
	for (struct urn_work *w = tx->head; w; w = w->next)
		if (((psn - w->first_psn) & URN_PSN_MASK) < w->npsn)
			return w;
	return NULL;
}

struct urn_work *
urn_psn_tx_oldest(const struct urn_psn_tx *tx)
{
	struct urn_work *w = tx->head;

	while (w && w->next && w->npsn == 0)
		w = w->next;
	return w;
}

struct urn_work *
urn_psn_tx_newest(const struct urn_psn_tx *tx)
{
	struct urn_work *last = NULL;

	for (struct urn_work *w = tx->head; w; w = w->next) {
		if (w->state == URN_WORK_FAILED || urn_psn_diff(w->first_psn, tx->next) >= 0)
			break;
		if (w->npsn)
			last = w;
	}
	return last;
}

URN_FAST uint32_t
urn_psn_tx_settle(struct urn_psn_tx *tx, bool *whole)
{
	uint32_t una = tx->acked, n;

	*whole = true;
	for (struct urn_work *w = tx->fetch_out ? tx->head : NULL; w; w = w->next) {
		uint32_t have = urn_psn_add(w->first_psn, w->placed);

		if (urn_psn_diff(w->first_psn, tx->acked) >= 0)
			break;
		if (urn_work_is_fetch(w) && w->state != URN_WORK_DONE && w->npsn &&
		    urn_psn_diff(have, tx->acked) < 0) {
			una = have;
			*whole = false;
			break;
		}
	}
	if (urn_psn_diff(una, tx->una) <= 0)
		return 0;
	n = (una - tx->una) & URN_PSN_MASK;
	tx->una = una;
	return n;
}

void
urn_psn_tx_to_oldest(struct urn_psn_tx *tx)
{
	struct urn_work *w = tx->head;

	for (; w && !stands(w); w = w->next) {
		uint32_t end = urn_psn_add(w->first_psn, w->npsn);

		if (w->npsn == 0)
			continue; /* local work is not repeated */
		if (urn_work_is_fetch(w) ? w->accepted < w->npsn : urn_psn_diff(tx->una, end) < 0)
			break;
	}
	tx->cur.work = w;
	if (!w)
		tx->cur.psn = tx->next;
	else if (urn_work_is_fetch(w))
		tx->cur.psn = urn_psn_add(w->first_psn, w->accepted);
	else
		tx->cur.psn = urn_psn_diff(tx->una, w->first_psn) > 0 ? tx->una : w->first_psn;
}

void
urn_psn_tx_to_newest(struct urn_psn_tx *tx)
{
	struct urn_work *w = tx->cur.work;

	while (w && !stands(w) &&
	       urn_psn_diff(urn_psn_add(w->first_psn, w->npsn), tx->next) <= 0)
		w = w->next;
	tx->cur.work = w;
	tx->cur.psn = tx->next;
	urn_ack_ask_on(tx);
	tx->back = 0;
}

/* returns: the PSN behind at most `psns` PSNs from the cursor on, in whole READs; the first READ in any case */
static uint32_t
end_of(const struct urn_psn_tx *tx, uint32_t psns)
{
	uint32_t end = tx->cur.psn;

	for (const struct urn_work *w = tx->cur.work; w; w = w->next) {
		uint32_t stop = urn_psn_add(w->first_psn, w->npsn);

		if (urn_psn_diff(w->first_psn, tx->next) >= 0)
			break;
		if (urn_psn_diff(stop, tx->next) > 0)
			stop = tx->next;
		if (((stop - tx->cur.psn) & URN_PSN_MASK) > psns) {
			if (!urn_work_is_fetch(w))
				end = urn_psn_add(tx->cur.psn, psns);
			else if (end == tx->cur.psn)
				end = stop;
			break;
		}
		end = stop;
	}
	return end;
}

void
urn_psn_tx_go_back(struct urn_psn_tx *tx, uint8_t back)
{
	urn_ack_ask_back(tx);
	tx->flags |= URN_TXF_WENT_BACK;
	tx->flags &= (uint16_t)~URN_TXF_OWN_BACK;
	urn_psn_tx_to_oldest(tx);
	tx->back = back & 15u;
	tx->cur.end = (back ? end_of(tx, 1u << (back - 1)) : tx->next) & URN_PSN_MASK;
}

void
urn_psn_tx_all_back(struct urn_psn_tx *tx)
{
	tx->back = 0;
	tx->cur.end = tx->next & URN_PSN_MASK;
}
