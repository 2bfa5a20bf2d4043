/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/lock.h"

#include <sched.h>

/* Spins before the core is given away. */
#define URN_LOCK_SPINS 128

static inline void
urn_lock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

void
urn_lock_wait(struct urn_lock *lock)
{
	unsigned int spins = 0;

	do {
		while (atomic_load_explicit(&lock->held, memory_order_relaxed) != 0) {
			if (++spins < URN_LOCK_SPINS) {
				urn_lock_pause();
				continue;
			}
			spins = 0;
			sched_yield();
		}
	} while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) != 0);
}
