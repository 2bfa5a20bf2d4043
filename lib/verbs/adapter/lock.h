/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of one queue, taken by the threads of a program that share the queue. The
 * lock is held for tens of nanoseconds, so waiters spin; a holder that lost its core
 * is given time to run again by yielding, in the slow path out of line.
 */
#ifndef URN_VERBS_LOCK_H
#define URN_VERBS_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct urn_lock {
	_Atomic uint32_t held; /* 1 while a thread is inside */
};

/* Wait for a lock that was held when tried, and take it. */
void urn_lock_wait(struct urn_lock *lock);

static inline void
urn_lock_take(struct urn_lock *lock)
{
	/* Acquire: pairs with the release in urn_lock_give(). */
	if (__builtin_expect(atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0, 0))
		urn_lock_wait(lock);
}

static inline void
urn_lock_give(struct urn_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#endif
