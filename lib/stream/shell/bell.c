/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream/shell/bell.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int
urn_bell_make(struct urn_bell *b)
{
	atomic_store(&b->rung, false);
	b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return b->fd < 0 ? errno : 0;
}

void
urn_bell_end(struct urn_bell *b)
{
	if (b->fd >= 0)
		(void)close(b->fd);
	b->fd = -1;
}

void
urn_bell_ring(struct urn_bell *b)
{
	const uint64_t one = 1;

	/* Pairs with the exchange of urn_bell_take(). */
	if (!atomic_exchange_explicit(&b->rung, true, memory_order_acq_rel))
		(void)!write(b->fd, &one, sizeof(one));
}

void
urn_bell_take(struct urn_bell *b)
{
	uint64_t count;

	(void)!read(b->fd, &count, sizeof(count));
	/* Pairs with the exchange of urn_bell_ring(). */
	(void)atomic_exchange_explicit(&b->rung, false, memory_order_acq_rel);
}
