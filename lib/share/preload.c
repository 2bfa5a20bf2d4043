/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library that urnic-run --share preloads. Calls of the program that mean something else on
 * shared pages go to urnic's library, if that is there and has shared any (attach/share/hooks.h),
 * and to the C library otherwise. fork() handlers of this library are the first ones registered, so
 * in a child they run before all others.
 */
#include "attach/share/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic(const struct urn_share_hooks *) table; /* NULL: nothing is shared */
static _Thread_local const struct urn_share_hooks
	*forking; /* the table that this thread's fork began with */

static const struct urn_share_hooks *
hooks(void)
{
	return atomic_load_explicit(&table, memory_order_acquire);
}

EXPORT void urn_share_hook(const struct urn_share_hooks *hooks);

void
urn_share_hook(const struct urn_share_hooks *hooks)
{
	atomic_store_explicit(&table, hooks, memory_order_release);
}

/* ---- fork() */

static void
fork_prepare(void)
{
	const struct urn_share_hooks *h = hooks();

	if (h != NULL)
		h->prepare();
	forking = h;
}

static void
fork_parent(void)
{
	if (forking != NULL)
		forking->parent();
}

static void
fork_child(void)
{
	if (forking != NULL)
		forking->child();
}

__attribute__((constructor(101))) static void
share_start(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- memory */

/* Functions here have the names of the C library's only for the linker. */
EXPORT int share_madvise(void *addr, size_t length, int advice) __asm__("madvise");
EXPORT void *share_mremap(void *addr, size_t length, size_t want, int flags, ...) __asm__("mremap");
EXPORT void *share_realloc(void *p, size_t size) __asm__("realloc");
EXPORT void *share_reallocarray(void *p, size_t n, size_t size) __asm__("reallocarray");

int
share_madvise(void *addr, size_t length, int advice)
{
	const struct urn_share_hooks *h = hooks();

	if (h != NULL && h->holds(addr, length))
		return h->advise(addr, length, advice);
	return (int)syscall(SYS_madvise, addr, length, advice);
}

void *
share_mremap(void *addr, size_t length, size_t want, int flags, ...)
{
	const struct urn_share_hooks *h = hooks();
	void *to = NULL;
	va_list ap;

	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
	}
	if (h != NULL && h->holds(addr, length))
		return h->remap(addr, length, want, flags, to);
	return (void *)syscall(SYS_mremap, addr, length, want, flags, to);
}

typedef void *realloc_fn(void *p, size_t size);

/* The realloc() behind this one. */
static realloc_fn *
next_realloc(void)
{
	static _Atomic(realloc_fn *) found;
	realloc_fn *f = atomic_load_explicit(&found, memory_order_relaxed);

	if (f == NULL) {
		*(void **)&f = dlsym(RTLD_NEXT, "realloc");
		atomic_store_explicit(&found, f, memory_order_relaxed);
	}
	return f;
}

/* The C library's realloc() grows large memory by a mremap() of its own, which nobody sees. */
void *
share_realloc(void *p, size_t size)
{
	const struct urn_share_hooks *h = p != NULL && size != 0 ? hooks() : NULL;
	size_t had;
	void *q;

	if (h == NULL || !h->holds(p, 1))
		return next_realloc()(p, size);
	had = malloc_usable_size(p);
	q = malloc(size);
	if (q == NULL)
		return NULL;
	memcpy(q, p, had < size ? had : size);
	free(p);
	return q;
}

void *
share_reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes))
		return share_realloc(p, bytes);
	errno = ENOMEM;
	return NULL;
}
