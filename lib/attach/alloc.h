/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that dataplanes in other processes may map: segments, each a memfd, and the
 * pieces of them that programs allocate.
 *
 * A dataplane that maps a segment seals the segment, so that nobody punches holes into it under
 * an engine. From then on no other dataplane can map the segment, and its pages go back to the
 * system as a whole only. A segment that its dataplane has unmapped is given out no further, so
 * that the next allocation can be mapped again; the segment goes when all of it is free.
 */
#ifndef URN_ATTACH_ALLOC_H
#define URN_ATTACH_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_segment {
	uint8_t *base;
	size_t length;   /* bytes */
	int fd;          /* memfd, sealed against shrinking and growing, and by its dataplane */
	uint32_t id;     /* never used again */
};

/* Register the handlers of fork(), once: the lock of segments stays usable in children. Handlers
 * that are registered later take their locks earlier. */
void urn_alloc_forks(void);

/* Find the segment in which all of addr..addr+length lies. returns: true when there is one */
bool urn_segment_find(const void *addr, size_t length, struct urn_segment *out);

/*
 * Give all pages of addr..addr+length memory, and leave their contents: the dataplane takes only
 * memory that its program has populated, because the first to touch a page pays for it. The range
 * is readable and writable. returns: 0, or an errno value: no memory
 */
int urn_populate(const void *addr, size_t length);

/* A dataplane has mapped the segment, and sealed it. */
void urn_segment_shared(uint32_t id);
/* A dataplane has unmapped the segment. A segment that is gone already is ignored. */
void urn_segment_unshared(uint32_t id);

/* A set of segments, by id. All zero: empty. The caller serialises. */
struct urn_segment_set {
	uint32_t *id;
	uint32_t n, cap;
};

bool urn_segment_set_has(const struct urn_segment_set *s, uint32_t id);
/* returns: 0 or ENOMEM */
int urn_segment_set_add(struct urn_segment_set *s, uint32_t id);
void urn_segment_set_free(struct urn_segment_set *s);

#endif
