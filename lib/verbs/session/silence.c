/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silence of adapters (FO-11). A dataplane that is stopped, or hangs, says nothing and does not
 * end. So each call of an adapter has a bound (attach/patience.h), and the adapter's own watcher
 * makes one each period (attach/remote.c): neither the program nor the context's thread waits for
 * that. An adapter that does not answer within the bound is given up, which shows like its death.
 */
#include "verbs/session/silence.h"

#include <stdlib.h>

bool
urn_sv_silence(const char *text, uint32_t *ms)
{
	unsigned long n;
	char *end;

	*ms = URN_SV_SILENCE_MS;
	if (text == NULL || text[0] == '\0')
		return true;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < URN_SV_SILENCE_LEAST_MS ||
	    n > URN_SV_SILENCE_MOST_MS)
		return false;
	*ms = (uint32_t)n;
	return true;
}
