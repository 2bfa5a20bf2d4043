/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/lines.h"

/* Parts of a line: for each line a second, one comes to be free again in a millisecond. */
enum { URN_SV_LINE_PART = 1000 };

bool
urn_sv_lines_take(struct urn_sv_lines *l, uint64_t now)
{
	uint64_t free = (now - l->at) * URN_SV_LINES_A_SECOND;

	l->used = l->used > free ? l->used - free : 0;
	l->at = now;
	if (l->used + URN_SV_LINE_PART > (uint64_t)URN_SV_LINES * URN_SV_LINE_PART) {
		l->out++;
		return false;
	}
	l->used += URN_SV_LINE_PART;
	return true;
}
