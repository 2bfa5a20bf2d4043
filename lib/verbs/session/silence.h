/* SPDX-License-Identifier: BSD-3-Clause */
/* How long an adapter may be silent before it counts as lost. */
#ifndef URN_VERBS_SESSION_SILENCE_H
#define URN_VERBS_SESSION_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_SV_SILENCE_MS = 2000,      /* unless URNIC_SESSION_SILENCE says otherwise */
	URN_SV_SILENCE_LEAST_MS = 100, /* an engine that stood still for a fifth looks around
					  (dataplane/engine/left.c) */
	URN_SV_SILENCE_MOST_MS = 60000,
};

/*
 * Read the value of URNIC_SESSION_SILENCE.
 *
 * text: the value; NULL or empty: the default
 * ms: the answer, milliseconds
 * returns: false: the value is no number in its range
 */
bool urn_sv_silence(const char *text, uint32_t *ms);

#endif
