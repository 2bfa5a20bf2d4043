/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(). A child begins afresh: it has no devices, no listener of ends and no ids, and opens
 * devices of its own at its first call. Ids and channels of its parent know that they are foreign
 * by the count of forks.
 *
 * A fork takes no lock of connection management: threads hold that lock while they call liburnic,
 * whose own handlers take locks, too, and the first call that registers those is such a call.
 * Nothing of the parent's that the lock protects is looked at in the child, in whatever state a
 * thread had it, but devices that were open.
 */
#include "dropin/rdmacm/rdmacm.h"

uint32_t urn_cma_forks;

static void
child(void)
{
	urn_cma_forks++;
	pthread_mutex_init(&urn_cma_lock, NULL);
	LIST_INIT(&urn_cma_all);
	urn_cma_channels_forked();
	urn_cma_dispatch_forked();
	urn_cma_devices_forked();
}

__attribute__((constructor)) static void
urn_cma_watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, child);
}
