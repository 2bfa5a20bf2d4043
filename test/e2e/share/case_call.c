/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on memory that is registered, or was: madvise(), mremap(), munmap(), realloc(), mprotect().
 */
#include "share.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool
all_zero(const char *p, size_t length)
{
	return p[0] == 0 && memcmp(p, p + 1, length - 1) == 0;
}

void
case_advise(void)
{
	char *p = fresh(4 * MIB), got[8];
	struct ibv_mr *mr = reg(p + MIB, 2 * MIB);

	CHECK(shared(p + MIB) && !shared(p) && !shared(p + 3 * MIB));
	memset(p, 5, 4 * MIB);
	/* From a private page over shared ones: all read as zeros, here and over the wire. */
	CHECK(madvise(p + MIB - PAGE, 3 * PAGE, MADV_DONTNEED) == 0);
	CHECK(all_zero(p + MIB - PAGE, 3 * PAGE) && p[MIB - PAGE - 1] == 5 &&
	      p[MIB + 2 * PAGE] == 5);
	get(mr, p + MIB, got, 8);
	CHECK(all_zero(got, 8));
	p[MIB] = 6;
	get(mr, p + MIB, got, 8);
	CHECK(got[0] == 6);
	CHECK(madvise(p + MIB, MIB, MADV_FREE) == 0);
	CHECK(madvise(p + MIB, MIB, MADV_DOFORK) == 0 && madvise(p + MIB, MIB, MADV_DONTFORK) == 0);
	CHECK(madvise(p + MIB, MIB, MADV_WILLNEED) == 0);
	errno = 0;
	CHECK(madvise(p + MIB + 1, MIB, MADV_DONTNEED) == -1 && errno == EINVAL);
	CHECK(madvise(p + 3 * MIB, 2 * MIB, MADV_DONTNEED) == -1 || 1);
	CHECK(mprotect(p + MIB, MIB, PROT_READ) == 0 &&
	      mprotect(p + MIB, MIB, PROT_READ | PROT_WRITE) == 0);
	p[MIB + 1] = 8;
	dereg(mr);
	/* Without a region the pages may stay shared; they act like private ones all the same. */
	memset(p, 5, 4 * MIB);
	CHECK(madvise(p + MIB, MIB, MADV_DONTNEED) == 0 && all_zero(p + MIB, MIB) &&
	      p[2 * MIB] == 5);
}

void
case_remap(void)
{
	char *p = fresh(2 * MIB), *q;
	volatile size_t much = SIZE_MAX / 2;
	struct ibv_mr *mr = reg(p, 2 * MIB);

	words(p, "first");
	words(p + 2 * MIB - 8, "last");
	errno = 0;
	CHECK(mremap(p, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	put(mr, p + 8, "stays", 6);
	CHECK(strcmp(p + 8, "stays") == 0);
	dereg(mr);
	q = mremap(p, 2 * MIB, 4 * MIB, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && !shared(q));
	CHECK(strcmp(q, "first") == 0 && strcmp(q + 2 * MIB - 8, "last") == 0 &&
	      all_zero(q + 2 * MIB, 2 * MIB));
	mr = reg(q, 4 * MIB);
	CHECK(shared(q) && mremap(q, 4 * MIB, 2 * MIB, 0) == q); /* shrinks where it is */
	CHECK(strcmp(q + 2 * MIB - 8, "last") == 0);
	dereg(mr);

	/* realloc() of large memory, which the C library grows by mremap(). */
	p = malloc(2 * MIB);
	mr = reg(p, 2 * MIB);
	CHECK(shared(p + PAGE));
	memset(p, 9, 2 * MIB);
	dereg(mr);
	p = realloc(p, 9 * MIB);
	CHECK(p != NULL && p[2 * MIB - 1] == 9);
	memset(p, 1, 9 * MIB);
	p = reallocarray(p, 20, MIB);
	CHECK(p != NULL && p[9 * MIB - 1] == 1 && reallocarray(p, much, 4) == NULL &&
	      errno == ENOMEM);
	free(p);
}

void
case_unmap(void)
{
	char *p = fresh(2 * MIB), *q, got[8];
	struct ibv_mr *mr = reg(p, 2 * MIB), *again;

	/* Gone while registered, like pinned pages: bytes from the wire go nowhere the program
	 * looks. */
	CHECK(munmap(p, 2 * MIB) == 0);
	put(mr, p, "ghost", 6);
	q = mmap(p, 2 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(q == p && all_zero(p, 2 * MIB));
	put(mr, p, "ghost", 6);
	CHECK(all_zero(p, 2 * MIB));
	/* New memory at the address of a region that has lost its own. */
	again = reg(p, 2 * MIB);
	CHECK(!shared(p));
	put(again, p, "right", 6);
	CHECK(strcmp(p, "right") == 0);
	get(again, p, got, 6);
	CHECK(strcmp(got, "right") == 0);
	dereg(mr);
	dereg(again);
	again = reg(p, 2 * MIB);
	CHECK(shared(p) && strcmp(p, "right") == 0 && all_zero(p + 8, 2 * MIB - 8));
	dereg(again);
	/* Without a region, while the pages may be shared yet. */
	CHECK(munmap(p, 2 * MIB) == 0);
	q = mmap(p, 2 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	again = reg(p, 2 * MIB);
	CHECK(q == p && all_zero(p, 2 * MIB));
	dereg(again);

	/* The heap shrinks and grows over pages that were registered. */
	p = malloc(100000);
	mr = reg(p, 100000);
	memset(p, 3, 100000);
	dereg(mr);
	free(p);
	malloc_trim(0);
	p = calloc(1, 100000);
	CHECK(p != NULL && all_zero(p, 100000));
	free(p);
}
