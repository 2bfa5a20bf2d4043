/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving pages. All system calls that change mappings are made directly, because the names belong
 * to the preloaded library. A mapping of the memfd is made by mremap() of a piece of `home` with
 * the old size 0, which doubles a shared mapping: mmap() of a memfd that a dataplane has sealed
 * gives no writable one.
 */
#include "attach/stop.h"
#include "attach/share/window.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	URN_SHARE_RUNS = 128, /* pieces that are moved at a time */
	URN_SHARE_LOOK = 512, /* pages that the page map is asked for at a time */
};

#define URN_SHARE_ALL UINTPTR_MAX

/* A piece of memory that is to move. */
struct urn_share_run {
	uintptr_t start, end;
	uint64_t off; /* bytes into the memfd */
	int prot;     /* protection that the mapping has */
};

/* Pieces, under urn_share_lock: no memory is allocated while threads are stopped. */
static struct urn_share_run urn_share_runs[URN_SHARE_RUNS];
static unsigned int urn_share_n_runs;

static int
urn_share_prot(const struct urn_own_mapping *m)
{
	return (m->read ? PROT_READ : 0) | (m->write ? PROT_WRITE : 0) | (m->exec ? PROT_EXEC : 0);
}

/* ---- which pages */

static size_t urn_share_tls; /* bytes of thread-local variables below a thread pointer; set once */
/* Bytes of the C library's above a thread pointer; set once. A program's memory may begin on the
 * next page. */
static size_t urn_share_above = URN_SHARE_PAGE;

void
urn_share_move_start(void)
{
	void (*ask)(size_t * size, size_t * align);
	size_t align;

	*(void **)&ask = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
	if (ask != NULL)
		ask(&urn_share_tls, &align);
	if (urn_share_tls == 0)
		urn_share_tls = 4 * URN_SHARE_PAGE;
#if defined(__x86_64__) /* elsewhere thread-local variables lie above */
	const uint32_t *above = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");
	if (above != NULL && *above != 0)
		urn_share_above = *above;
#endif
}

static bool
urn_share_meets(uintptr_t start, uintptr_t end, uintptr_t other, uintptr_t other_end)
{
	return start < other_end && other < end;
}

/*
 * True when start..end of a mapping may be a stopped thread's stack, or has its thread-local
 * memory. A stack of the C library's ends at the thread pointer; another one may go to the end of
 * its mapping.
 */
static bool
urn_share_of_thread(const struct urn_own_mapping *m, uintptr_t start, uintptr_t end)
{
	struct urn_stopped t;
	unsigned int i;

	for (i = 0; urn_stop_thread(i, &t); i++) {
		bool here = t.sp >= m->start && t.sp < m->end;
		uintptr_t top = t.tp > t.sp && t.tp < m->end ? t.tp : m->end;

		if (urn_share_meets(start, end, t.tp - urn_share_tls, t.tp + urn_share_above) ||
		    (here && urn_share_meets(start, end, m->start, top)) ||
		    urn_share_meets(start, end, t.frame - URN_SHARE_PAGE, t.frame + URN_SHARE_PAGE))
			return true;
	}
	return false;
}

/* True when a region lies on start..end already. */
static bool
urn_share_held(uintptr_t start, uintptr_t end)
{
	const struct urn_share_hold *h;

	for (h = urn_share_holds; h != NULL; h = h->next)
		if (urn_share_meets(start, end, h->start, h->end))
			return true;
	return false;
}

/* Add a piece that is to move. returns: NULL, or why it may not */
static const char *
urn_share_add(const struct urn_share_window *w, const struct urn_own_mapping *m, uintptr_t start,
	      uintptr_t end, bool stopped)
{
	if (!urn_mapping_own(m))
		return "its memory is not private, writable memory without a file";
	if (urn_share_fork_needs(start, end))
		return "its pages have variables of urnic's library, which is linked into the "
		       "program";
	/* Under a region of the dataplane's worker, or of memory that the program replaced. */
	if (urn_share_held(start, end))
		return "a region on the same pages is foreign memory, or has lost its pages";
	if (stopped && urn_share_of_thread(m, start, end))
		return "its memory is a thread's stack, or beside thread-local variables";
	if (urn_share_n_runs == URN_SHARE_RUNS)
		return "its memory is in too many pieces";
	urn_share_runs[urn_share_n_runs++] = (struct urn_share_run){.start = start,
								    .end = end,
								    .off = start - w->start,
								    .prot = PROT_READ | PROT_WRITE};
	return NULL;
}

/* Find the pieces of start..end that are not in the window yet. returns: NULL, or why the range
 * can't be shared */
static const char *
urn_share_scan(const struct urn_share_window *w, int maps, uintptr_t start, uintptr_t end,
	       bool stopped)
{
	struct urn_own_mapping m;
	const char *why = NULL;
	uintptr_t at = start;
	struct urn_maps walk;

	urn_share_n_runs = 0;
	urn_maps_start(&walk, maps);
	while (why == NULL && at < end && urn_maps_next(&walk, &m)) {
		uintptr_t to = m.end < end ? m.end : end;

		if (m.end <= at)
			continue;
		if (m.start > at)
			break;
		if (!urn_share_in_place(w, &m))
			why = urn_share_add(w, &m, at, to, stopped);
		at = to;
	}
	if (why == NULL && at < end)
		why = "its memory is not all mapped";
	return why;
}

/* True when the program has memory locked: pages of a memfd would not be. */
static bool
urn_share_locked(void)
{
	char text[4096];
	const char *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return true;
	text[n] = '\0';
	at = strstr(text, "\nVmLck:\t");
	return at == NULL || strtoull(at + 8, NULL, 10) != 0;
}

/* Stop all other threads, unless the program has rings: the kernel's own writes go on. returns:
 * NULL: they are stopped; or why not */
static const char *
urn_share_stop(int maps)
{
	const char *why = urn_share_rings(maps);

	if (why == NULL)
		why = urn_stop_others();
	if (why != NULL)
		return why;
	why = urn_share_rings(maps); /* there may be one until now */
	if (why != NULL)
		urn_stop_release();
	return why;
}

/* ---- in */

/* Note that a page of the memfd is used. returns: true when it was before, and may have data */
static bool
urn_share_mark(const struct urn_share_window *w, uint64_t off)
{
	uint64_t page = off / URN_SHARE_PAGE, bit = 1ull << (page & 63),
		 *word = &w->used[page / 64];
	bool before = (*word & bit) != 0;

	*word |= bit;
	return before;
}

/* Copy pages into the memfd. entries: their words of the page map; NULL: any may have data */
static void
urn_share_copy_pages(const struct urn_share_window *w, uintptr_t from, uint64_t off,
		     unsigned int pages, const uint64_t *entries)
{
	unsigned int i;

	for (i = 0; i < pages; i++, from += URN_SHARE_PAGE, off += URN_SHARE_PAGE) {
		bool used = urn_share_mark(w, off);

		/* Bits 63 and 62: in memory, swapped out. Without either the page reads as zeros.
		 */
		if (entries == NULL || entries[i] >> 62 != 0)
			memcpy(w->home + off, (const void *)from, URN_SHARE_PAGE);
		else if (used)
			memset(w->home + off, 0, URN_SHARE_PAGE);
	}
}

static void
urn_share_copy_in(const struct urn_share_window *w, const struct urn_share_run *r, int pagemap)
{
	uint64_t entries[URN_SHARE_LOOK];
	uintptr_t at = r->start;

	while (at < r->end) {
		uint64_t left = (r->end - at) / URN_SHARE_PAGE;
		unsigned int n = left < URN_SHARE_LOOK ? (unsigned int)left : URN_SHARE_LOOK;
		ssize_t bytes = (ssize_t)(n * sizeof(entries[0]));
		bool told = pagemap >= 0 &&
			    pread(pagemap, entries, (size_t)bytes,
				  (off_t)(at / URN_SHARE_PAGE * sizeof(entries[0]))) == bytes;

		urn_share_copy_pages(w, at, r->off + (at - r->start), n, told ? entries : NULL);
		at += n * URN_SHARE_PAGE;
	}
}

/* Map the memfd in place of a piece that was copied. returns: false: the piece is as it was */
static bool
urn_share_map_in(struct urn_share_window *w, const struct urn_share_run *r)
{
	size_t length = r->end - r->start;
	void *to = (void *)r->start;

	if (syscall(SYS_mremap, w->home + r->off, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
	    (long)r->start) {
		(void)syscall(SYS_madvise, to, length, MADV_DONTFORK);
		w->bytes += length;
		urn_share_count.moved += length / URN_SHARE_PAGE;
		return true;
	}
	/* Where the kernel gave up between unmapping and mapping, there is nothing now. */
	if (mmap(to, length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == to)
		memcpy(to, w->home + r->off, length);
	return false;
}

/* All other threads are stopped. */
static const char *
urn_share_move_runs(struct urn_share_window *w, int pagemap)
{
	unsigned int i;

	for (i = 0; i < urn_share_n_runs; i++) {
		urn_share_copy_in(w, &urn_share_runs[i], pagemap);
		if (!urn_share_map_in(w, &urn_share_runs[i]))
			return "the program has too many mappings, or no memory";
	}
	return NULL;
}

static const char *
urn_share_move_stopped(struct urn_share_window *w, int maps, uintptr_t start, uintptr_t end)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const char *why = urn_share_stop(maps);

	if (why == NULL) {
		/* Mappings may have changed until now. */
		why = urn_share_scan(w, maps, start, end, true);
		if (why == NULL)
			why = urn_share_move_runs(w, pagemap);
		urn_stop_release();
	}
	if (pagemap >= 0)
		close(pagemap);
	return why;
}

const char *
urn_share_move_in(struct urn_share_window *w, uintptr_t start, uintptr_t end)
{
	int maps = urn_maps_open();
	const char *why;

	if (maps < 0)
		return "/proc/self/maps can't be read";
	why = urn_share_scan(w, maps, start, end, false);
	if (why == NULL && urn_share_n_runs > 0)
		why = urn_share_locked() ? "the program has locked memory"
					 : urn_share_move_stopped(w, maps, start, end);
	close(maps);
	return why;
}

/* ---- back */

/* Find pieces of the window in start..end, or anywhere (URN_SHARE_ALL), as many as there is room
 * for. */
static void
urn_share_scan_back(const struct urn_share_window *w, int maps, uintptr_t start, uintptr_t end)
{
	struct urn_own_mapping m;
	struct urn_maps walk;

	urn_share_n_runs = 0;
	urn_maps_start(&walk, maps);
	while (urn_share_n_runs < URN_SHARE_RUNS && urn_maps_next(&walk, &m)) {
		uintptr_t from = m.start > start ? m.start : start, to = m.end < end ? m.end : end;

		if (from >= to || !urn_share_in_window(w, &m))
			continue;
		urn_share_runs[urn_share_n_runs++] =
			(struct urn_share_run){.start = from,
					       .end = to,
					       .off = m.off + (from - m.start),
					       .prot = urn_share_prot(&m)};
	}
}

/* Copy the bytes of the memfd that were ever written. */
static void
urn_share_copy_back(const struct urn_share_window *w, const struct urn_share_run *r, uint8_t *to)
{
	uint64_t at = r->off, end = r->off + (r->end - r->start), until;

	for (; urn_share_data(w, &at, &until, end); at = until)
		memcpy(to + (at - r->off), w->home + at, until - at);
}

/* Put private memory in the place of a piece. returns: false: the piece is as it was */
static bool
urn_share_map_back(struct urn_share_window *w, const struct urn_share_run *r)
{
	size_t length = r->end - r->start;
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool done;

	if (p == MAP_FAILED)
		return false;
	urn_share_copy_back(w, r, p);
	done = mprotect(p, length, r->prot) == 0 &&
	       syscall(SYS_mremap, p, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
		       (void *)r->start) == (long)r->start;
	if (!done) {
		munmap(p, length);
		return false;
	}
	w->bytes -= length < w->bytes ? length : w->bytes;
	urn_share_count.back += length / URN_SHARE_PAGE;
	return true;
}

/* True when a stopped thread's stack lies on the piece. */
static bool
urn_share_stands(const struct urn_share_run *r)
{
	struct urn_stopped t;
	unsigned int i;

	for (i = 0; urn_stop_thread(i, &t); i++)
		if ((t.sp >= r->start && t.sp < r->end) ||
		    (t.frame >= r->start && t.frame < r->end))
			return true;
	return false;
}

/* All other threads are stopped. */
static const char *
urn_share_back_stopped(struct urn_share_window *w, int maps, uintptr_t start, uintptr_t end)
{
	unsigned int i;

	do {
		urn_share_scan_back(w, maps, start, end);
		for (i = 0; i < urn_share_n_runs; i++)
			if (urn_share_stands(&urn_share_runs[i]) ||
			    !urn_share_map_back(w, &urn_share_runs[i]))
				return "no memory, or a stack on shared pages";
	} while (urn_share_n_runs == URN_SHARE_RUNS);
	return NULL;
}

const char *
urn_share_move_back(struct urn_share_window *w, uintptr_t start, uintptr_t end)
{
	int maps = urn_maps_open();
	const char *why = NULL;

	if (maps < 0)
		return "/proc/self/maps can't be read";
	if (start == 0)
		end = URN_SHARE_ALL;
	urn_share_scan_back(w, maps, start, end);
	if (urn_share_n_runs > 0)
		why = urn_share_stop(maps);
	if (why == NULL && urn_share_n_runs > 0) {
		why = urn_share_back_stopped(w, maps, start, end);
		urn_stop_release();
	}
	close(maps);
	return why;
}
