/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of atomics that REPORT carries, from the log that a dataplane left in the program's
 * memory (lib/abi/queue.h; FO-15). The log is read when nothing changes it any more: after the
 * fence of its queue pair.
 */
#ifndef URN_VERBS_SESSION_RECORD_H
#define URN_VERBS_SESSION_RECORD_H

#include "abi/queue.h"
#include "session/session.h"

/* The fate of an atomic. */
enum urn_sv_fate {
	URN_SV_CARRIED_OUT,
	URN_SV_NOT_CARRIED_OUT,
	URN_SV_NOBODY_KNOWS,
};

/*
 * Decide the fate of an atomic that was logged as intended, and not as done.
 *
 * now: the word that it meant to change
 * twin: another log has an atomic that wrote the same value to the same word
 */
enum urn_sv_fate urn_sv_fate_of(const struct urn_abi_atomic *a, uint64_t now, bool twin);

/* Decides the fate of an intended atomic. a: a copy of its entry */
typedef enum urn_sv_fate urn_sv_decide_fn(void *arg, const struct urn_abi_atomic *a);

/*
 * Read a log, whose contents are not trusted.
 *
 * log: entries, at most URN_ABI_MAX_RD_ATOMIC and a power of two; NULL: there is none
 * decide, arg: called for an intended atomic
 * r: the record of the connection before this queue pair came into use; on success its new one,
 *    else the same without `log`
 * returns: false: there is no log, or it can't be one that a dataplane wrote
 */
bool urn_sv_record_read(const struct urn_abi_atomic *log, uint32_t entries,
			urn_sv_decide_fn *decide, void *arg, struct urn_sess_record *r);

/* True when a log has an atomic that wrote the value that `a` meant to write, to the same word. */
bool urn_sv_record_twin(const struct urn_abi_atomic *log, uint32_t entries,
			const struct urn_abi_atomic *a);

#endif
