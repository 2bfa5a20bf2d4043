/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows, and moving pages in and out of them (share.h). Everything here is under urn_share_lock,
 * if nothing else is said. */
#ifndef URN_ATTACH_SHARE_WINDOW_H
#define URN_ATTACH_SHARE_WINDOW_H

#include "attach/share/hooks.h"
#include "attach/share/maps.h"
#include "attach/share/share.h"

#include <stdatomic.h>

#define URN_SHARE_PAGE ((uintptr_t)4096)
/*
 * Bytes of the window of small regions, and of the largest small region; a larger one has a window
 * of its own. Programs register the parts of one buffer one by one, in whole pages, so neighbours
 * have a page in common, and must lie in the same window. A window begins at a multiple of half its
 * size, so it holds any region of that half.
 */
#define URN_SHARE_WINDOW ((uintptr_t)64 << 20)
#define URN_SHARE_SMALL (URN_SHARE_WINDOW / 2)
#define URN_SHARE_IDLE ((uint64_t)16 << 20) /* bytes that stay shared without a region, at most */

enum {
	URN_SHARE_WINDOWS = 128,    /* windows of a program, and descriptors */
	URN_SHARE_IDLE_WINDOWS = 8, /* windows that stay without a region, at most */
	URN_SHARE_DEVS = 4,	    /* devices that a window can be shared over */
};

struct urn_share_window {
	_Atomic uintptr_t start, end; /* addresses of the program; end is 0: not in use */
	uint8_t *home;		      /* the whole memfd, mapped: (end - start) bytes */
	int fd;			      /* the memfd, unless the program closed it */
	uint64_t ino;		      /* inode of the memfd */
	uint32_t major, minor;	      /* device of the memfd */
	uint32_t holds;		      /* regions */
	uint64_t idle;	/* when the last region went, in numbers of urn_share_clock; 0: there are
			   regions */
	uint64_t bytes; /* moved in, and not back as far as is known */
	uint64_t *used; /* a bit for each page of the memfd that was used once */
	struct {
		const struct urn_dev *dev;
		uint32_t handle; /* answer to URN_CTL_SHARE */
	} at[URN_SHARE_DEVS];
	unsigned int n_at; /* entries of `at` */
};

extern struct urn_share_window urn_share_windows[URN_SHARE_WINDOWS];
extern _Atomic unsigned int
	urn_share_top; /* entries that were ever in use; also read without the lock */
extern struct urn_share_hold *urn_share_holds; /* the list of all holds */
extern struct urn_share_stats urn_share_count;

/* In a child of fork(): there are no holds. */
void urn_share_reset(void);

/* Tell, once for each reason, why memory stays as it is, if URNIC_EXPLAIN is set. why: a constant
 */
void urn_share_explain(const char *why);
/* Write a line to the standard error, if URNIC_EXPLAIN is set. */
void urn_share_tell(const char *line);

/* ---- window.c */

/* The window that all of start..end lies in; NULL: none */
struct urn_share_window *urn_share_find(uintptr_t start, uintptr_t end);
/* Make a window for start..end. NULL: no memory, no descriptor, or too many windows */
struct urn_share_window *urn_share_make(uintptr_t start, uintptr_t end);
/* Unmap and forget a window that has no pages of the program any more. */
void urn_share_unmake(struct urn_share_window *w);
/* True when the mapping is of the window's memfd and not its home. */
bool urn_share_in_window(const struct urn_share_window *w, const struct urn_own_mapping *m);
/* True when the mapping has each page where share.h says. */
bool urn_share_in_place(const struct urn_share_window *w, const struct urn_own_mapping *m);
/* True when the descriptor still is the window's. */
bool urn_share_fd_ok(const struct urn_share_window *w);
/* Find bytes of the memfd that were ever written: *from..*to within from..end. false: none */
bool urn_share_data(const struct urn_share_window *w, uint64_t *from, uint64_t *to, uint64_t end);

/* ---- rings.c */

/* Why memory stays as it is while the program has rings. */
#define URN_SHARE_RINGS "the program has a ring of io_uring or AIO, whose writes nothing can stop"

/* maps: from urn_maps_open(). returns: why pages must not move, or NULL: the program has no rings
 */
const char *urn_share_rings(int maps);

/* ---- move.c */

/* Before everything else here: ask the loader, whose lock others may hold later. */
void urn_share_move_start(void);

/* Move the pages of start..end, which lies in the window, into it. returns: NULL, or why not:
 * nothing has changed */
const char *urn_share_move_in(struct urn_share_window *w, uintptr_t start, uintptr_t end);
/* Move the window's pages in start..end back, and wherever else the program moved them if start is
 * 0. returns: NULL, or why not */
const char *urn_share_move_back(struct urn_share_window *w, uintptr_t start, uintptr_t end);

/* ---- fork.c, calls.c */

extern const struct urn_share_hooks urn_share_hook_table;
void urn_share_fork_prepare(void);
void urn_share_fork_parent(void);
void urn_share_fork_child(void);
/* Take further locks in fork() (urn_share_fork_last()). */
void urn_share_fork_more(void (*hold)(void), void (*go_on)(void));
/* True when start..end has variables without which a child can't fill its holes: they are on pages
 * of the program if the library is linked into it. */
bool urn_share_fork_needs(uintptr_t start, uintptr_t end);
bool urn_share_call_holds(const void *addr, size_t length);
int urn_share_call_advise(void *addr, size_t length, int advice);
void *urn_share_call_remap(void *addr, size_t length, size_t want, int flags, void *to);

/* The window whose memfd a mapping of this process is of; NULL: none. Under urn_share_lock. */
const struct urn_share_window *urn_share_window_at(const struct urn_own_mapping *m);

#endif
