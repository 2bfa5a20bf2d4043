/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics across a migration (FO-15). */
#ifndef URN_VERBS_SESSION_ATOMIC_H
#define URN_VERBS_SESSION_ATOMIC_H

#include "verbs/session/sv.h"

/*
 * The record of atomics that the peer had us carry out, for REPORT: the queue pair in use is
 * fenced. The lock is held.
 */
void urn_sv_record(struct urn_sv_qp *q, struct urn_sess_record *record);
/*
 * Put the result of an atomic where the program wants it. The lock is held.
 *
 * sge, n: the elements of the request
 * returns: false: they are not 8 bytes of regions that may be written, or the program has no such
 * memory any more
 */
bool urn_sv_result(const struct urn_sv_qp *q, const struct ibv_sge *sge, uint32_t n, uint64_t old);

#endif
