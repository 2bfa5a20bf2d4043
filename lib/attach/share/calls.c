/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the program that mean something else on shared pages than on private ones. */
#include "attach/share/window.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

bool
urn_share_call_holds(const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr;
	unsigned int i, n = atomic_load_explicit(&urn_share_top, memory_order_relaxed);

	for (i = 0; i < n; i++) {
		const struct urn_share_window *w = &urn_share_windows[i];
		uintptr_t end = atomic_load_explicit(&w->end, memory_order_relaxed);

		if (end != 0 && at < end &&
		    atomic_load_explicit(&w->start, memory_order_relaxed) < at + length)
			return true;
	}
	return false;
}

/* Zero bytes of the memfd, as private memory would read after MADV_DONTNEED. */
static void
urn_share_zero(const struct urn_share_window *w, uint64_t at, uint64_t end)
{
	uint64_t to;

	for (; urn_share_data(w, &at, &to, end); at = to)
		memset(w->home + at, 0, to - at);
}

/* Advice on from..to of a mapping. returns: 0 or -1 with errno */
static int
urn_share_advise_part(const struct urn_own_mapping *m, uintptr_t from, uintptr_t to, int advice)
{
	const struct urn_share_window *w = urn_share_window_at(m);

	if (w != NULL) {
		switch (advice) {
		case MADV_DONTNEED:
		case MADV_DONTNEED_LOCKED:
			urn_share_zero(w, m->off + (from - m->start), m->off + (to - m->start));
			return 0;
		case MADV_FREE:	    /* the contents may stay */
		case MADV_DONTFORK: /* a child gets a copy */
		case MADV_DOFORK:
			return 0;
		}
	}
	return (int)syscall(SYS_madvise, (void *)from, to - from, advice);
}

static int
urn_share_advise_all(uintptr_t start, uintptr_t end, int advice)
{
	int maps = urn_maps_open(), err = 0;
	struct urn_maps walk;
	struct urn_own_mapping m;
	uintptr_t at = start;

	if (maps < 0)
		return -1;
	urn_maps_start(&walk, maps);
	while (at < end && urn_maps_next(&walk, &m) && m.start < end) {
		uintptr_t from = m.start > at ? m.start : at, to = m.end < end ? m.end : end;

		if (m.end <= at)
			continue;
		if (from > at)
			err = ENOMEM; /* like the kernel: goes on, and tells of the hole */
		if (urn_share_advise_part(&m, from, to, advice) != 0) {
			close(maps);
			return -1;
		}
		at = to;
	}
	close(maps);
	errno = at < end ? ENOMEM : err;
	return errno != 0 ? -1 : 0;
}

int
urn_share_call_advise(void *addr, size_t length, int advice)
{
	uintptr_t at = (uintptr_t)addr;
	size_t whole = (length + URN_SHARE_PAGE - 1) & ~(URN_SHARE_PAGE - 1);
	bool entered;
	int rc, err = errno;

	if (at % URN_SHARE_PAGE != 0 || whole < length || at + whole < at ||
	    !(entered = urn_share_enter()))
		return (int)syscall(SYS_madvise, addr, length, advice);
	rc = urn_share_advise_all(at, at + whole, advice);
	if (rc != 0)
		err = errno;
	urn_share_exit(entered);
	errno = err;
	return rc;
}

/* True when a region has start..end. */
static bool
urn_share_registered(uintptr_t start, uintptr_t end)
{
	const struct urn_share_hold *h;

	for (h = urn_share_holds; h != NULL; h = h->next)
		if (h->window != NULL && h->start < end && start < h->end)
			return true;
	return false;
}

/* Give the program its private pages back. returns: false: not all */
static bool
urn_share_give_back(uintptr_t start, uintptr_t end)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++) {
		struct urn_share_window *w = &urn_share_windows[i];

		if (w->end != 0 && start < w->end && w->start < end &&
		    urn_share_move_back(w, start, end) != NULL)
			return false;
	}
	return true;
}

void *
urn_share_call_remap(void *addr, size_t length, size_t want, int flags, void *to)
{
	uintptr_t start = (uintptr_t)addr,
		  end = start + ((length + URN_SHARE_PAGE - 1) & ~(URN_SHARE_PAGE - 1));
	bool stays = want <= length && !(flags & MREMAP_FIXED);
	bool entered;
	void *p;

	/* Shrinking in place takes nothing from the memfd's other pages. */
	if (stays || length == 0 || end < start || !(entered = urn_share_enter()))
		return (void *)syscall(SYS_mremap, addr, length, want, flags, to);
	if (urn_share_registered(start, end)) {
		urn_share_explain("mremap() is to move memory that is registered");
		errno = ENOMEM;
		p = MAP_FAILED;
	} else if (urn_share_give_back(start, end)) {
		p = (void *)syscall(SYS_mremap, addr, length, want, flags, to);
	} else {
		errno = ENOMEM;
		p = MAP_FAILED;
	}
	urn_share_exit(entered);
	return p;
}
