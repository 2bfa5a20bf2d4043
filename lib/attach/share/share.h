/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing memory that a program has already: at registration the pages of a region are replaced by
 * pages of a memfd, at the same addresses and with the same contents, and the dataplane maps the
 * memfd. Option --share of urnic-run turns that on for unmodified programs (URNIC_SHARE). The
 * preloaded library (hooks.h) must be there, because fork(), madvise() and mremap() mean something
 * else on such pages.
 *
 *                 window: [ . . . . pages . . region . . ]    the program's addresses; only pages
 *                         start                       end     of regions are the memfd's
 *
 *                 home:   [ . . . . . . . . . . . . . . . ]   all of the memfd, for copies; the
 *                                                             dataplane knows regions by it
 *                                                             (URN_CTL_SHARE)
 *
 * A window is a range of the program's addresses with a memfd of its size: the page at address a is
 * at a - start in the memfd, whoever registers the page, so regions may overlap. A small region
 * gets a window of 64 MiB, for others beside it on the heap; a large one exactly its pages. The
 * dataplane is told a region's address in `home`; keys still mean the program's own addresses.
 *
 * Pages become shared only when they are private, of no file, readable and writable, not locked,
 * and no stack or thread-local memory of a thread; all other threads are stopped (stop.h) while
 * pages move. A region with any other page stays foreign memory: correct, and slower. Pages move
 * back when the last region in their window has gone, but for some that stay for the next region
 * (URN_SHARE_IDLE).
 */
#ifndef URN_ATTACH_SHARE_SHARE_H
#define URN_ATTACH_SHARE_SHARE_H

#include "attach/dev.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_share_window;

/* A region's hold on memory, in the region's own object. All zero: none */
struct urn_share_hold {
	struct urn_share_hold *next, **at; /* in the list of all holds */
	const struct urn_dev
		*dev; /* the device that the region belongs to; NULL: not in the list */
	struct urn_share_window *window; /* the window; NULL: the region is foreign memory */
	uintptr_t start, end;		 /* whole pages around the region */
	uint32_t era;			 /* process: a child of fork() has no holds */
	const char *why; /* part of a sentence, constant: why there is no window; NULL: there is
			    one, or the range makes no sense */
};

/*
 * A region is about to be registered: share its memory if that can be.
 *
 * hold: all zero; stays until urn_share_drop(), which must follow also when the region is not made
 * returns: the region's address for the dataplane; hold->why: set
 */
uintptr_t urn_share_take(struct urn_dev *dev, const void *addr, size_t length,
			 struct urn_share_hold *hold);

/* True when the hold's memory is shared. */
static inline bool
urn_share_has(const struct urn_share_hold *hold)
{
	return hold->window != NULL;
}

/* The region is gone. */
void urn_share_drop(struct urn_share_hold *hold);

/* A region's object takes the hold of another one. to: of a region that is gone */
void urn_share_pass(struct urn_share_hold *from, struct urn_share_hold *to);

/* A device is about to be closed: no other thread makes a call over it from now on. */
void urn_share_part(const struct urn_dev *dev);
/* A device is about to be closed, or was after urn_share_part(): its regions go with it. */
void urn_share_leave(struct urn_dev *dev);

/*
 * Take the lock of all this, with cancellation of the thread turned off; and let it go. A thread
 * that has it does not wait. The only locks that are taken behind it are those of channels.
 */
bool urn_share_enter(void);
void urn_share_exit(bool entered);

/*
 * Let fork() take further locks behind all others, the one above too: hold() before the fork, and
 * go_on() in the parent. For the locks of a channel's calls, before the first urn_share_take() of
 * such a device. returns: true: from now on; false: nothing is shared, and no lock is taken
 */
bool urn_share_fork_last(void (*hold)(void), void (*go_on)(void));

/* Counts since the program began, for tests. */
struct urn_share_stats {
	uint64_t shared;  /* regions shared */
	uint64_t foreign; /* regions that stayed foreign memory */
	uint64_t moved;	  /* pages moved into a memfd */
	uint64_t back;	  /* pages moved back */
};
void urn_share_stats(struct urn_share_stats *out);

#endif
