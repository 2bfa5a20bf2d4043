/* SPDX-License-Identifier: BSD-3-Clause */
/* The PSNs of a sequence that go again (psn_again.h). */
#include "transport/psn_again.h"

struct urn_work *
urn_psn_again(const struct urn_psn_tx *tx, const struct urn_gap *g, struct urn_work *from)
{
	struct urn_work *w = from ? from : tx->head;

	if (g->state != URN_GAP_LOST || urn_psn_diff(g->cur, tx->cur.psn) >= 0)
		return NULL;
	while (w && ((g->cur - w->first_psn) & URN_PSN_MASK) >= w->npsn)
		w = w->next;
	return w;
}

struct urn_work *
urn_psn_again_response(const struct urn_psn_tx *tx, const struct urn_gap *g, struct urn_work *from,
		       uint32_t *first, uint32_t *end)
{
	struct urn_work *w = from ? from->next : tx->fetch;

	for (; w && g->state == URN_GAP_LOST; w = w->next) {
		uint32_t due = urn_psn_add(w->first_psn, w->accepted);

		if (!urn_work_is_fetch(w) || w->state != URN_WORK_SENT || w->accepted == w->npsn)
			continue;
		if (urn_psn_diff(w->first_psn, g->end) >= 0)
			return NULL;
		*first = urn_psn_diff(g->cur, due) < 0 ? due : g->cur;
		*end = urn_psn_add(w->first_psn, w->npsn);
		if (urn_psn_diff(*end, g->end) > 0)
			*end = g->end;
		if (urn_psn_diff(*end, *first) > 0)
			return w;
	}
	return NULL;
}
