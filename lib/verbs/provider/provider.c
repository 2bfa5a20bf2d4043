/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/provider/provider.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
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

static bool urn_explains; /* set once */

static void
urn_explain_start(void)
{
	const char *explain = secure_getenv("URNIC_EXPLAIN");

	urn_explains = explain != NULL && strcmp(explain, "1") == 0;
}

/* Programs that were not written for urnic don't ask for the text: tell people. A program that
 * tries again is told once. */
static void
urn_explain(const char *what)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic(const char *) last;

	(void)pthread_once(&once, urn_explain_start);
	if (urn_explains && atomic_exchange_explicit(&last, what, memory_order_relaxed) != what)
		fprintf(stderr, "urnic: %s: urnic has no such thing\n", what);
}

int
urn_unsupported(const char *what)
{
	urn_explain(what);
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
