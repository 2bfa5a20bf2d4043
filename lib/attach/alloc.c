/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole pages, first fit, from segments of 32 MiB, or larger when a caller asks for more. Free
 * pieces are kept by address, outside of the memory itself, and joined. Pages of a
 * free piece go back to the system unless the segment is sealed.
 *
 * A child of fork() sees its parent's segments, because they are shared memory, but
 * takes none of its own memory from the parent's segments.
 */
#include "attach/alloc.h"

#include "abi/fd.h"
#include "attach/dev.h"

#include <urnic/attach.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define URN_PAGE ((size_t)4096)
#define URN_SEGMENT ((size_t)32 << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* A piece of a segment, free or given out. */
struct urn_piece {
	struct urn_piece *next; /* by address, within the segment */
	size_t off, length;     /* bytes */
	bool used;
	bool dirty;             /* free: still holds data of its last user */
};

struct urn_segment_node {
	struct urn_segment_node *next;
	struct urn_segment seg;
	struct urn_piece *pieces; /* they cover the segment */
	uint32_t users;           /* channels whose dataplanes have it mapped */
	bool over;                /* the last dataplane has unmapped it: nothing is taken from it any more */
};

/* urn_alloc_lock protects the list of segments, all fields of these, and urn_segment_last. */
static pthread_mutex_t urn_alloc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_segment_node *urn_segments; /* under urn_alloc_lock */
static struct urn_segment_node *urn_segments_parent; /* a child of fork(): its parent's segments */
static uint32_t urn_segment_last;             /* id given out last; under urn_alloc_lock */

/* ---- segments */

static pthread_once_t urn_alloc_once = PTHREAD_ONCE_INIT;

static void
urn_alloc_hold(void)
{
	pthread_mutex_lock(&urn_alloc_lock);
}

static void
urn_alloc_go_on(void)
{
	pthread_mutex_unlock(&urn_alloc_lock);
}

/* In a child of fork(): all segments belong to the parent. */
static void
urn_alloc_forked(void)
{
	struct urn_segment_node **tail = &urn_segments;

	pthread_mutex_init(&urn_alloc_lock, NULL);
	while (*tail != NULL)
		tail = &(*tail)->next;
	*tail = urn_segments_parent;
	urn_segments_parent = urn_segments;
	urn_segments = NULL;
}

static void
urn_alloc_start(void)
{
	(void)pthread_atfork(urn_alloc_hold, urn_alloc_go_on, urn_alloc_forked);
}

void
urn_alloc_forks(void)
{
	(void)pthread_once(&urn_alloc_once, urn_alloc_start);
}

/* A segment of one free piece. NULL with errno: no memory */
static struct urn_segment_node *
urn_segment_make(size_t length)
{
	struct urn_segment_node *s = calloc(1, sizeof(*s));
	struct urn_piece *p = calloc(1, sizeof(*p));
	int fd = urn_fd_memory("urnic-memory", length);
	void *base = fd >= 0 ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)
			     : MAP_FAILED;

	if (s == NULL || p == NULL || base == MAP_FAILED) {
		if (base != MAP_FAILED)
			munmap(base, length);
		if (fd >= 0)
			close(fd);
		free(s);
		free(p);
		errno = ENOMEM;
		return NULL;
	}
	(void)syscall(SYS_madvise, base, length, MADV_HUGEPAGE); /* directly, like urn_populate() */
	p->length = length;
	s->pieces = p;
	s->seg = (struct urn_segment){.base = base, .length = length, .fd = fd, .id = ++urn_segment_last};
	s->next = urn_segments;
	urn_segments = s;
	return s;
}

bool
urn_segment_find(const void *addr, size_t length, struct urn_segment *out)
{
	uintptr_t at = (uintptr_t)addr;
	struct urn_segment_node *s;
	bool found = false;

	pthread_mutex_lock(&urn_alloc_lock);
	for (s = urn_segments; s != NULL && !found; s = s->next) {
		uintptr_t base = (uintptr_t)s->seg.base;

		found = at >= base && at - base <= s->seg.length && length <= s->seg.length - (at - base);
		if (found)
			*out = s->seg;
	}
	pthread_mutex_unlock(&urn_alloc_lock);
	return found;
}

/* Unmap a segment that is over, if all of it is free. urn_alloc_lock is held. */
static void
urn_segment_end(struct urn_segment_node *s)
{
	struct urn_segment_node **at = &urn_segments;

	if (!s->over || s->pieces->used || s->pieces->next != NULL)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	munmap(s->seg.base, s->seg.length);
	close(s->seg.fd);
	free(s->pieces);
	free(s);
}

int
urn_populate(const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr & ~(URN_PAGE - 1), end = (uintptr_t)addr + length;
	int err;

	end = (end + URN_PAGE - 1) & ~(URN_PAGE - 1);
	do /* past the preloaded library, whose lock callers may not wait for (attach/share) */
		err = syscall(SYS_madvise, at, end - at, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
	while (err == EINTR || err == EAGAIN);
	if (err != EINVAL)
		return err;
	/* An older kernel: store what is there. Others may write the byte at the same time. */
	for (; at < end; at += URN_PAGE)
		(void)__atomic_fetch_or((uint8_t *)at, 0, __ATOMIC_RELAXED);
	return 0;
}

static struct urn_segment_node *
urn_segment_by_id(uint32_t id)
{
	struct urn_segment_node *s = urn_segments;

	while (s != NULL && s->seg.id != id)
		s = s->next;
	return s;
}

void
urn_segment_shared(uint32_t id)
{
	struct urn_segment_node *s;

	pthread_mutex_lock(&urn_alloc_lock);
	s = urn_segment_by_id(id);
	if (s != NULL) {
		s->users++;
		s->over = false;
	}
	pthread_mutex_unlock(&urn_alloc_lock);
}

void
urn_segment_unshared(uint32_t id)
{
	struct urn_segment_node *s;

	pthread_mutex_lock(&urn_alloc_lock);
	s = urn_segment_by_id(id);
	if (s != NULL && --s->users == 0) {
		s->over = true;
		urn_segment_end(s);
	}
	pthread_mutex_unlock(&urn_alloc_lock);
}

/* ---- pieces */

/* Take `length` bytes off a free piece's beginning. returns: their piece; NULL: no memory to note the rest */
static struct urn_piece *
urn_piece_cut(struct urn_piece *p, size_t length)
{
	struct urn_piece *rest;

	if (p->length > length) {
		rest = malloc(sizeof(*rest));
		if (rest == NULL)
			return NULL;
		*rest = (struct urn_piece){p->next, p->off + length, p->length - length, false, p->dirty};
		p->next = rest;
		p->length = length;
	}
	p->used = true;
	return p;
}

/* Take `length` bytes of the segment. *dirty: they are not zero yet. returns: their address, or NULL */
static void *
urn_segment_take(struct urn_segment_node *s, size_t length, bool *dirty)
{
	struct urn_piece *p;

	for (p = s->over ? NULL : s->pieces; p != NULL; p = p->next)
		if (!p->used && p->length >= length) {
			*dirty = p->dirty;
			return urn_piece_cut(p, length) != NULL ? s->seg.base + p->off : NULL;
		}
	return NULL;
}

void *
urn_alloc(size_t bytes)
{
	size_t length = (bytes + URN_PAGE - 1) & ~(URN_PAGE - 1);
	struct urn_segment_node *s;
	bool dirty = false;
	void *p = NULL;

	if (length < bytes || length > PTRDIFF_MAX) {
		urn_fail(ENOMEM, "%zu bytes of memory are more than there can be", bytes);
		return NULL;
	}
	if (length == 0)
		length = URN_PAGE;
	urn_alloc_forks();
	pthread_mutex_lock(&urn_alloc_lock);
	for (s = urn_segments; s != NULL && p == NULL; s = s->next)
		p = urn_segment_take(s, length, &dirty);
	if (p == NULL) {
		s = urn_segment_make(length > URN_SEGMENT ? length : URN_SEGMENT);
		p = s != NULL ? urn_segment_take(s, length, &dirty) : NULL;
	}
	pthread_mutex_unlock(&urn_alloc_lock);
	if (p == NULL)
		urn_fail(ENOMEM, "no memory to share: %zu bytes", bytes);
	else if (dirty)
		memset(p, 0, length);
	return p;
}

/* Join a free piece with the free piece behind it. */
static void
urn_piece_join(struct urn_piece *p)
{
	struct urn_piece *n = p->next;

	if (p->used || n == NULL || n->used)
		return;
	p->length += n->length;
	p->dirty |= n->dirty;
	p->next = n->next;
	free(n);
}

/* Free the piece at an offset. returns: true when a piece had been given out there */
static bool
urn_segment_give(struct urn_segment_node *s, size_t off)
{
	struct urn_piece *p, *before = NULL;

	for (p = s->pieces; p != NULL && p->off != off; p = p->next)
		before = p;
	if (p == NULL || !p->used)
		return false;
	p->used = false;
	/* The pages go back to the system, and read as zeros when they are used again; not if they are sealed. */
	p->dirty = fallocate(s->seg.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
		(off_t)p->length) != 0;
	urn_piece_join(p);
	if (before != NULL)
		urn_piece_join(before);
	urn_segment_end(s);
	return true;
}

/* The segment of a list that an address lies in, or NULL. */
static struct urn_segment_node *
urn_segment_of(struct urn_segment_node *list, uintptr_t at)
{
	while (list != NULL && (at < (uintptr_t)list->seg.base ||
				at - (uintptr_t)list->seg.base >= list->seg.length))
		list = list->next;
	return list;
}

void
urn_free(void *p)
{
	uintptr_t at = (uintptr_t)p;
	struct urn_segment_node *s;

	if (p == NULL)
		return;
	pthread_mutex_lock(&urn_alloc_lock);
	s = urn_segment_of(urn_segments, at);
	/* Memory allocated before fork() is the parent's: only the parent gives it back. */
	if (s != NULL ? !urn_segment_give(s, at - (uintptr_t)s->seg.base)
		      : urn_segment_of(urn_segments_parent, at) == NULL)
		abort(); /* the heap does so too, with memory that it never gave out */
	pthread_mutex_unlock(&urn_alloc_lock);
}

/* ---- sets */

bool
urn_segment_set_has(const struct urn_segment_set *s, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->id[i] == id)
			return true;
	return false;
}

int
urn_segment_set_add(struct urn_segment_set *s, uint32_t id)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 8;
		uint32_t *p = reallocarray(s->id, cap, sizeof(*p));

		if (p == NULL)
			return ENOMEM;
		s->id = p;
		s->cap = cap;
	}
	s->id[s->n++] = id;
	return 0;
}

void
urn_segment_set_free(struct urn_segment_set *s)
{
	free(s->id);
	*s = (struct urn_segment_set){0};
}
