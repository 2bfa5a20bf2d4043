/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks, waits and failures of control calls. */
#ifndef URN_CONTROL_LOCK_H
#define URN_CONTROL_LOCK_H

#include "control/objects.h"

/*
 * Begin and end a control call: one at a time for a client, and one for an adapter. During
 * urn_ctl_wait() other clients' calls may run: a client with slow memory delays only itself.
 */
void urn_ctl_enter(struct urn_client *c);
void urn_ctl_leave(struct urn_client *c);
/*
 * Take the adapter's lock. remote: the calling thread polls no engine; once the dataplane is frozen
 * the call never returns
 */
void urn_ctl_lock(struct urn_adapter *a, bool remote);
/* True when the dataplane is frozen: a thread that holds the adapter's lock gives it back at once.
 */
static inline bool
urn_ctl_frozen(const struct urn_adapter *a)
{
	return atomic_load_explicit(&a->dp->frozen, memory_order_relaxed);
}
/*
 * In the middle of a call: unlock the adapter for other clients' calls during work that
 * this client can make last, and lock the adapter again. No other call of the client begins
 * meanwhile, so its objects stay.
 */
void urn_ctl_unlock(struct urn_client *c);
void urn_ctl_relock(struct urn_client *c);
/* Give the engines a turn to end operations in flight. The adapter's lock is held before and after. */
void urn_ctl_wait(struct urn_client *c);

/* Fail a control call: errno value and a sentence. returns err */
int urn_ctl_fail(struct urn_abi_rep *rep, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
