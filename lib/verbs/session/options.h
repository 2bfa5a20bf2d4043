/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of the virtual device, by variables of the environment (doc/reference/environment.md).
 */
#ifndef URN_VERBS_SESSION_OPTIONS_H
#define URN_VERBS_SESSION_OPTIONS_H

#include "abi/log_level.h"
#include "verbs/session/silence.h"

enum {
	URN_SV_PROBE_MS = 100,	      /* unless URNIC_SESSION_PROBE says otherwise */
	URN_SV_PROBE_LEAST_MS = 10,   /* ... */
	URN_SV_PROBE_MOST_MS = 60000, /* ... */
};

struct urn_sv_options {
	uint32_t silence; /* ms: bound of each call of an adapter, and time between the thread's */
	uint32_t probe;	  /* ms: between probes of a path that was made anew; 0: adapters that were
			     lost stay lost */
	uint64_t instance; /* number of this instance of a program, which chooses its pair of
			      adapters */
	enum urn_log_level log; /* lines of the log of steps that are written: this level's, and
				   those before it */
	bool fail_back;	  /* traffic returns to the primary adapter when that can be trusted */
};

/*
 * Read the value of URNIC_SESSION_PROBE.
 *
 * text: the value; NULL or empty: the default; "no": 0
 * ms: the answer, milliseconds
 * returns: false: the value is neither "no" nor a number in its range
 */
bool urn_sv_probe(const char *text, uint32_t *ms);
/*
 * Read a value that is "yes" or "no".
 *
 * text: the value; NULL or empty: no
 * returns: false: it is neither
 */
bool urn_sv_yes(const char *text, bool *yes);
/*
 * Read the value of URNIC_SESSION_INSTANCE.
 *
 * text: the value; NULL or empty: the process's own number
 * returns: false: it is no number below 2^32
 */
bool urn_sv_instance(const char *text, uint64_t *n);
/*
 * Read the value of URNIC_SESSION_LOG_LEVEL.
 *
 * text: the value; NULL or empty: all lines
 * returns: false: it is no level
 */
bool urn_sv_level(const char *text, enum urn_log_level *level);
/* Read all from the environment. returns: 0; EINVAL with its text */
int urn_sv_options(struct urn_sv_options *o);

#endif
