/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct urn_area_piece {
	struct urn_area_piece *next;
	uint64_t off;
};

enum { LINE = 64, PAGE = 4096 };

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
urn_area_init(struct urn_area *a, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(a, 0, sizeof(*a));
	if (p == MAP_FAILED)
		return errno;
	/* Queues of thousands of QPs want few pages; a wish, so its failure is none. */
	(void)madvise(p, size, MADV_HUGEPAGE);
	a->base = p;
	a->size = size;
	return 0;
}

void
urn_area_fini(struct urn_area *a)
{
	for (unsigned int i = 0; i < URN_AREA_CLASSES; i++) {
		struct urn_area_piece *p = a->free[i], *next;

		for (; p; p = next) {
			next = p->next;
			free(p);
		}
	}
	if (a->base)
		munmap(a->base, a->size);
	a->base = NULL;
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
		memset(a->base + *off, 0, rounded);
		return 0;
	}
	/* Large pieces start on a page, so that they share none. */
	if (rounded >= PAGE)
		a->next = (a->next + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (rounded > a->size - a->next)
		return ENOMEM;
	*off = a->next;
	a->next += rounded;
	return 0; /* fresh memory is zero */
}

void
urn_area_free(struct urn_area *a, uint64_t off, uint64_t bytes)
{
	uint64_t rounded;
	unsigned int c = class_of(bytes, &rounded);
	struct urn_area_piece *p = malloc(sizeof(*p));

	if (!p)
		return; /* the piece is lost until the client goes */
	p->off = off;
	p->next = a->free[c];
	a->free[c] = p;
}
