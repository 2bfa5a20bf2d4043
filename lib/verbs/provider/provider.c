/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/provider/provider.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a cache line. */
#define URN_OBJECT_ALIGN 64

void *
urn_object_alloc(size_t size)
{
	void *p;

	size = (size + URN_OBJECT_ALIGN - 1) & ~(size_t)(URN_OBJECT_ALIGN - 1);
	p = aligned_alloc(URN_OBJECT_ALIGN, size);
	if (p == NULL)
		urn_fail(ENOMEM, "no memory for an object of %zu bytes", size);
	else
		memset(p, 0, size);
	return p;
}

int
urn_unsupported(const char *what)
{
	return urn_fail(EOPNOTSUPP, "%s: urnic has no such thing", what);
}

void
urn_acks_wait(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, uint32_t got)
{
	pthread_mutex_lock(lock);
	while (*acked != got)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
}
