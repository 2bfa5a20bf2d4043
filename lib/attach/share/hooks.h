/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions of the preloaded library (lib/share) to this one. The preloaded library is in front of
 * all others, so it sees a program's calls of fork(), madvise(), mremap() and realloc(). This
 * library, which may come late and in a scope of its own, finds urn_share_hook() there and hands
 * over the table.
 */
#ifndef URN_ATTACH_SHARE_HOOKS_H
#define URN_ATTACH_SHARE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

struct urn_share_hooks {
	/* Around fork(): before all other handlers in the child, and last before the fork. */
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
	/* True when memory at addr..addr+length may be shared. Waits for nothing. */
	bool (*holds)(const void *addr, size_t length);
	/* madvise() and mremap() of memory that may be shared, with the results and errno of these.
	 */
	int (*advise)(void *addr, size_t length, int advice);
	void *(*remap)(void *addr, size_t length, size_t want, int flags, void *to);
};

/* The name under which the preloaded library takes the table. */
#define URN_SHARE_HOOK "urn_share_hook"
typedef void urn_share_hook_fn(const struct urn_share_hooks *hooks);

#endif
