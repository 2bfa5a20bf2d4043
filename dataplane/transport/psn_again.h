/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PSNs of a sequence that go again: a gap of a scoreboard (board.h) is turned into packets of the
 * work under way. The functions are pure; the channel that embeds the sequence sends, and tells the
 * gap how far it came (urn_board_asked()).
 */
#ifndef URN_TRANSPORT_PSN_AGAIN_H
#define URN_TRANSPORT_PSN_AGAIN_H

#include "transport/board.h"
#include "transport/psn_tx.h"

/*
 * The work whose packet with PSN g->cur is to be sent again; g is a lost gap of requests. from: as
 * returned for this gap before, or NULL. returns: NULL when the gap needs nothing more: its PSNs are
 * not sent yet, will be reached by a repeat of everything, or belong to no work
 */
struct urn_work *urn_psn_again(const struct urn_psn_tx *tx, const struct urn_gap *g,
			       struct urn_work *from);
/*
 * The READ or atomic whose response is missing in g, a lost gap of responses. from: as returned for
 * this gap before, or NULL. returns: the work, and *first, *end: PSNs of its response to ask for,
 * end exclusive; NULL when no response in the rest of the gap is waited for
 */
struct urn_work *urn_psn_again_response(const struct urn_psn_tx *tx, const struct urn_gap *g,
					struct urn_work *from, uint32_t *first, uint32_t *end);

#endif
