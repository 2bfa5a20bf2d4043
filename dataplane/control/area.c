/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/area.h"

#include "abi/fd.h"
#include "control/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct urn_area_piece {
	struct urn_area_piece *next;
	uint64_t off, bytes;
};

enum {
	LINE = 64,
	PAGE = 4096,
	CLEAR_AT_ONCE = 4 * PAGE, /* bytes that are cleared in one or two microseconds */
};

/* Round up to a class: 64, then four steps to each doubling. */
static unsigned int
class_of(uint64_t bytes, uint64_t *rounded)
{
	unsigned int log, step;
	uint64_t unit;

	if (bytes <= 4 * LINE) {
		step = (unsigned int)((bytes + LINE - 1) / LINE);
		step = step ? step : 1;
		*rounded = step * (uint64_t)LINE;
		return step;
	}
	log = 63 - (unsigned int)__builtin_clzll(bytes - 1);
	unit = 1ull << (log - 2);
	step = (unsigned int)((bytes + unit - 1) / unit); /* 5..8 */
	*rounded = step * unit;
	return log * 4 + step - 24;
}

int
urn_area_init(struct urn_area *a, uint64_t size, bool shared)
{
	int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	struct stat st;
	void *p;

	memset(a, 0, sizeof(*a));
	a->fd = shared ? urn_fd_memory("urnic-area", size) : -1; /* urn_area_seal() sets the other seals */
	if (shared && a->fd < 0)
		return errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, a->fd, 0);
	if (p == MAP_FAILED) {
		int err = errno;

		if (shared)
			close(a->fd);
		a->fd = -1;
		return err;
	}
	if (shared && fstat(a->fd, &st) == 0) {
		a->dev = st.st_dev;
		a->ino = st.st_ino;
	}
	/* A program's requests are not for core dumps of this process: a hint as well. */
	if (shared)
		(void)madvise(p, size, MADV_DONTDUMP);
	/* Queues of thousands of QPs want few pages; only a hint, so its failure is ignored. */
	(void)madvise(p, size, MADV_HUGEPAGE);
	a->base = p;
	a->size = size;
	return 0;
}

int
urn_area_seal(const struct urn_area *a, char *why, size_t len)
{
	return a->fd >= 0 ? urn_seal(a->fd, why, len) : 0;
}

static void
free_list(struct urn_area_piece **head)
{
	struct urn_area_piece *p;

	while ((p = *head)) {
		*head = p->next;
		free(p);
	}
}

void
urn_area_fini(struct urn_area *a)
{
	for (unsigned int i = 0; i < URN_AREA_CLASSES; i++)
		free_list(&a->free[i]);
	free_list(&a->runs);
	if (a->base)
		munmap(a->base, a->size);
	if (a->base && a->fd >= 0)
		close(a->fd);
	a->base = NULL;
}

/* ---- joining */

static int
by_address(const void *a, const void *b)
{
	const struct urn_area_piece *const *x = a, *const *y = b;

	return (*x)->off < (*y)->off ? -1 : 1;
}

/* Take all free pieces off their lists, into v unless it is NULL. returns: how many */
static size_t
gather(struct urn_area *a, struct urn_area_piece **v)
{
	size_t n = 0;

	for (unsigned int i = 0; i <= URN_AREA_CLASSES; i++) {
		struct urn_area_piece **head = i < URN_AREA_CLASSES ? &a->free[i] : &a->runs;

		for (struct urn_area_piece *p = *head; p; p = p->next) {
			if (v)
				v[n] = p;
			n++;
		}
		if (v)
			*head = NULL;
	}
	return n;
}

/* Join free pieces that lie together to runs. */
static void
join(struct urn_area *a)
{
	struct urn_area_piece **v, **tail = &a->runs, *last = NULL;
	size_t n = gather(a, NULL);

	v = n ? malloc(n * sizeof(struct urn_area_piece *)) : NULL;
	if (!v)
		return;
	gather(a, v);
	qsort(v, n, sizeof(struct urn_area_piece *), by_address);
	for (size_t i = 0; i < n; i++) {
		if (last && last->off + last->bytes == v[i]->off) {
			last->bytes += v[i]->bytes;
			free(v[i]);
			continue;
		}
		last = v[i];
		last->next = NULL;
		*tail = last;
		tail = &last->next;
	}
	free(v);
}

/* Cut a piece out of a run. returns: true when done */
static bool
cut(struct urn_area *a, uint64_t bytes, uint64_t *off)
{
	uint64_t align = bytes >= PAGE ? PAGE : LINE;

	for (struct urn_area_piece **at = &a->runs; *at; at = &(*at)->next) {
		struct urn_area_piece *p = *at;
		uint64_t start = (p->off + align - 1) & ~(align - 1), end = p->off + p->bytes;

		if (start >= end || end - start < bytes)
			continue;
		*off = start;
		/* The bytes before and behind stay in runs; without memory for their record those behind are lost. */
		if (start > p->off && end > start + bytes) {
			struct urn_area_piece *rest = malloc(sizeof(*rest));

			if (rest) {
				*rest = (struct urn_area_piece){p->next, start + bytes, end - start - bytes};
				p->next = rest;
			}
		}
		if (start > p->off) {
			p->bytes = start - p->off;
		} else if (end > start + bytes) {
			p->off = start + bytes;
			p->bytes = end - p->off;
		} else {
			*at = p->next;
			free(p);
		}
		return true;
	}
	return false;
}

/* ---- pieces */

/* Offset at which a piece that was never given out would begin. */
static uint64_t
fresh_start(const struct urn_area *a, uint64_t bytes)
{
	/* Large pieces start on a page, so that they share no page. */
	return bytes >= PAGE ? (a->next + PAGE - 1) & ~(uint64_t)(PAGE - 1) : a->next;
}

static bool
fits_fresh(const struct urn_area *a, uint64_t bytes)
{
	uint64_t start = fresh_start(a, bytes);

	return start <= a->size && bytes <= a->size - start;
}

/* Take a piece that was never given out. returns: true when done */
static bool
fresh(struct urn_area *a, uint64_t bytes, uint64_t *off)
{
	if (!fits_fresh(a, bytes))
		return false;
	*off = fresh_start(a, bytes);
	a->next = *off + bytes;
	return true;
}

bool
urn_area_is_quick(const struct urn_area *a, uint64_t bytes)
{
	uint64_t rounded;
	unsigned int c;

	if (bytes > a->size)
		return true; /* the allocation fails, at once */
	c = class_of(bytes, &rounded);
	return a->free[c] ? rounded <= CLEAR_AT_ONCE : fits_fresh(a, rounded);
}

uint64_t
urn_area_grows(const struct urn_area *a, uint64_t bytes)
{
	uint64_t rounded;

	if (bytes > a->size || a->free[class_of(bytes, &rounded)] || !fits_fresh(a, rounded))
		return 0;
	return fresh_start(a, rounded) + rounded - a->next;
}

uint64_t
urn_area_resident(const struct urn_area *a)
{
	struct stat st;

	return a->fd >= 0 && fstat(a->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

int
urn_area_alloc(struct urn_area *a, uint64_t bytes, uint64_t *off)
{
	uint64_t rounded;
	unsigned int c;
	struct urn_area_piece *p;

	if (bytes > a->size)
		return ENOMEM;
	c = class_of(bytes, &rounded);
	p = a->free[c];
	if (p) {
		a->free[c] = p->next;
		*off = p->off;
		free(p);
	} else if (fresh(a, rounded, off)) {
		return 0; /* fresh memory is zero */
	} else if (!cut(a, rounded, off)) {
		join(a);
		if (!cut(a, rounded, off))
			return ENOMEM;
	}
	memset(a->base + *off, 0, rounded);
	return 0;
}

void
urn_area_free(struct urn_area *a, uint64_t off, uint64_t bytes)
{
	uint64_t rounded;
	unsigned int c = class_of(bytes, &rounded);
	struct urn_area_piece *p = malloc(sizeof(*p));

	if (!p)
		return; /* the piece is lost until the client goes */
	*p = (struct urn_area_piece){a->free[c], off, rounded};
	a->free[c] = p;
}
