/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/ring.h"

_Static_assert((URN_LOG_RING & (URN_LOG_RING - 1)) == 0, "an index wraps");

struct urn_log_failure *
urn_log_ring_place(struct urn_log_ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	/* Pairs with the release of the tail in urn_log_ring_take(): the place has been read. */
	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) == URN_LOG_RING) {
		atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
		return NULL;
	}
	return &r->record[head % URN_LOG_RING];
}

void
urn_log_ring_put(struct urn_log_ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

void
urn_log_ring_more(struct urn_log_ring *r, uint32_t client)
{
	for (unsigned int i = 0; i < URN_LOG_FLOODS; i++) {
		uint64_t v = atomic_load_explicit(&r->flood[i], memory_order_relaxed);

		if (v && v >> 32 != client)
			continue;
		/* Only the reader stores beside the engine, and it stores 0: a second try is the
		 * last. A number that would overflow stays. */
		for (unsigned int tries = 0; tries < 2; tries++) {
			uint64_t now =
				v ? v + ((uint32_t)v != UINT32_MAX) : (uint64_t)client << 32 | 1;

			if (atomic_compare_exchange_strong_explicit(&r->flood[i], &v, now,
								    memory_order_relaxed,
								    memory_order_relaxed))
				return;
		}
	}
	atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
}

bool
urn_log_ring_take(struct urn_log_ring *r, struct urn_log_failure *f)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	/* Pairs with the release of the head in urn_log_ring_put(): the record is whole. */
	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return false;
	*f = r->record[tail % URN_LOG_RING];
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

uint32_t
urn_log_ring_take_more(struct urn_log_ring *r, unsigned int i, uint32_t *client)
{
	uint64_t v = atomic_exchange_explicit(&r->flood[i], 0, memory_order_relaxed);

	*client = (uint32_t)(v >> 32);
	return (uint32_t)v;
}

uint32_t
urn_log_ring_take_lost(struct urn_log_ring *r)
{
	return atomic_exchange_explicit(&r->lost, 0, memory_order_relaxed);
}
