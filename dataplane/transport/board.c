/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/board.h"
#include "transport/psn.h"

#include <string.h>

void
urn_board_reset(struct urn_board *b, uint32_t base)
{
	b->base = b->high = base;
	b->n = 0;
}

/* Take gap i out. */
static void
drop(struct urn_board *b, uint32_t i)
{
	b->n--;
	memmove(&b->gap[i], &b->gap[i + 1], (b->n - i) * sizeof(b->gap[0]));
}

/* Let a gap begin later. */
static void
cut_front(struct urn_gap *g, uint32_t first)
{
	g->first = first;
	if (urn_psn_diff(g->cur, first) < 0)
		g->cur = first;
}

/* Let a gap end earlier; then all its PSNs that are left may have been asked for. */
static void
cut_back(struct urn_gap *g, uint32_t end, uint64_t now)
{
	g->end = end;
	if (g->state == URN_GAP_LOST && urn_psn_diff(g->cur, end) >= 0)
		urn_board_asked(g, end, now);
}

void
urn_board_advance(struct urn_board *b, uint32_t psn)
{
	uint32_t gone = 0;

	if (urn_psn_diff(psn, b->base) <= 0)
		return;
	b->base = psn;
	if (urn_psn_diff(psn, b->high) > 0)
		b->high = psn;
	while (gone < b->n && urn_psn_diff(b->gap[gone].end, psn) <= 0)
		gone++;
	if (gone) {
		b->n -= gone;
		memmove(b->gap, b->gap + gone, b->n * sizeof(b->gap[0]));
	}
	if (b->n && urn_psn_diff(b->gap[0].first, psn) < 0)
		cut_front(&b->gap[0], psn);
}

/* Note the news of a gap that is filled, fully or in part. */
static void
note(const struct urn_board *b, const struct urn_gap *g, uint64_t now, struct urn_board_news *news)
{
	uint64_t took = now - g->at;

	news->any = true;
	/* The gap was asked for up to cur, whichever of its PSNs came. */
	if (g->state == URN_GAP_SEEN) {
		uint32_t by = (uint32_t)urn_psn_diff(b->high, g->first);

		if (by > news->late_by)
			news->late_by = by;
		if (took > news->late_ns)
			news->late_ns = took;
	} else if (g->state == URN_GAP_ASKED && g->tries == 1 && took < news->again_ns) {
		news->again_ns = took;
	}
}

/* Take first..end-1 out of gap i. returns: gaps that are left of gap i */
static uint32_t
fill(struct urn_board *b, uint32_t i, uint32_t first, uint32_t end, uint64_t now)
{
	struct urn_gap *g = &b->gap[i];
	bool front = urn_psn_diff(first, g->first) <= 0, back = urn_psn_diff(end, g->end) >= 0;

	if (front && back) {
		drop(b, i);
		return 0;
	}
	if (front) {
		cut_front(g, end);
		return 1;
	}
	if (back) {
		cut_back(g, first, now);
		return 1;
	}
	/* In the middle. Without room for two gaps the arrival is forgotten: the packets may come twice. */
	if (b->n == URN_BOARD_GAPS)
		return 1;
	memmove(&b->gap[i + 1], &b->gap[i], (b->n - i) * sizeof(b->gap[0]));
	b->n++;
	cut_back(&b->gap[i], first, now);
	cut_front(&b->gap[i + 1], end);
	return 2;
}

/* Note PSNs behind all that came so far. returns: false when there is no room to note the gap */
static bool
extend(struct urn_board *b, uint32_t first, uint32_t end, uint64_t now)
{
	if (urn_psn_diff(first, b->high) > 0) {
		if (b->n == URN_BOARD_GAPS)
			return false;
		b->gap[b->n++] = (struct urn_gap){
			.first = b->high, .end = first, .cur = b->high, .state = URN_GAP_SEEN, .at = now,
		};
	}
	b->high = end;
	return true;
}

void
urn_board_came(struct urn_board *b, uint32_t first, uint32_t end, uint64_t now,
	       struct urn_board_news *news)
{
	uint32_t i = 0;

	if (urn_psn_diff(first, b->base) < 0)
		first = b->base;
	if (urn_psn_diff(end, first) <= 0)
		return;
	while (i < b->n && urn_psn_diff(b->gap[i].first, end) < 0) {
		if (urn_psn_diff(b->gap[i].end, first) <= 0) {
			i++;
			continue;
		}
		note(b, &b->gap[i], now, news);
		i += fill(b, i, first, end, now);
	}
	if (urn_psn_diff(end, b->high) > 0) {
		uint32_t from = urn_psn_diff(first, b->high) > 0 ? first : b->high;

		if (extend(b, from, end, now))
			news->any = true;
	}
}

bool
urn_board_missed(struct urn_board *b, uint32_t psn, uint64_t now)
{
	uint32_t end = urn_psn_add(psn, 1);

	/* A PSN before `high` is in a gap already, or a copy came. */
	return urn_psn_diff(end, b->high) <= 0 || extend(b, end, end, now);
}

static uint64_t
patience(const struct urn_gap *g, const struct urn_board_limits *l)
{
	if (g->state == URN_GAP_SEEN)
		return l->seen_ns;
	return l->asked_ns << (g->tries > 6 ? 6 : g->tries - 1);
}

bool
urn_board_judge(struct urn_board *b, const struct urn_board_limits *l, uint64_t now)
{
	bool any = false;

	for (uint32_t i = 0; i < b->n; i++) {
		struct urn_gap *g = &b->gap[i];

		if (g->state != URN_GAP_LOST &&
		    (now - g->at >= patience(g, l) ||
		     (g->state == URN_GAP_SEEN &&
		      (uint32_t)urn_psn_diff(b->high, g->end) >= l->distance))) {
			g->state = URN_GAP_LOST;
			g->cur = g->first;
		}
		any |= g->state == URN_GAP_LOST;
	}
	return any;
}

void
urn_board_asked(struct urn_gap *g, uint32_t cur, uint64_t now)
{
	g->cur = cur;
	if (urn_psn_diff(cur, g->end) < 0)
		return;
	g->cur = g->end;
	g->state = URN_GAP_ASKED;
	g->at = now;
	if (g->tries < UINT8_MAX)
		g->tries++;
}

uint64_t
urn_board_due(const struct urn_board *b, const struct urn_board_limits *l)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t at;

		if (b->gap[i].state == URN_GAP_LOST) /* perhaps never asked for: no tries to count by */
			continue;
		at = b->gap[i].at + patience(&b->gap[i], l);
		if (at < due)
			due = at;
	}
	return due;
}
