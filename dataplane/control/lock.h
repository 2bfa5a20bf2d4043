/* SPDX-License-Identifier: BSD-3-Clause */
/* How a control call locks its adapter, waits, and fails. */
#ifndef URN_CONTROL_LOCK_H
#define URN_CONTROL_LOCK_H

#include "control/objects.h"

/*
 * One control call of a client at a time, and of an adapter; for the second
 * urn_ctl_wait() lets others in: a client whose memory is slow holds up itself.
 */
void urn_ctl_enter(struct urn_client *c);
void urn_ctl_leave(struct urn_client *c);
/* The adapter's lock. remote: the calling thread polls no engine */
void urn_ctl_lock(struct urn_adapter *a, bool remote);
/*
 * In the midst of a call: unlock the adapter for other clients' calls while something is done that
 * this client can make last, and lock it again. No other call of the client begins meanwhile, so
 * what it has stays.
 */
void urn_ctl_unlock(struct urn_client *c);
void urn_ctl_relock(struct urn_client *c);
/* Give the engines a turn to end what is under way. The adapter's lock is held before and after. */
void urn_ctl_wait(struct urn_client *c);

/* Fail a control call: errno value and a sentence. returns err */
int urn_ctl_fail(struct urn_abi_rep *rep, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
