/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that dataplanes in other processes may map: segments, each a sealed
 * memfd, and what programs take from them. A segment lives until the program
 * ends.
 */
#ifndef URN_ATTACH_ALLOC_H
#define URN_ATTACH_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_segment {
	uint8_t *base;
	size_t length;   /* bytes */
	int fd;          /* memfd, sealed against shrinking */
	uint32_t id;     /* never used again */
};

/* The segment that all of addr..addr+length lies in. returns: was there one */
bool urn_segment_find(const void *addr, size_t length, struct urn_segment *out);

/* Which segments somebody has. All zero: none. The caller serialises. */
struct urn_segment_set {
	uint32_t *id;
	uint32_t n, cap;
};

bool urn_segment_set_has(const struct urn_segment_set *s, uint32_t id);
/* returns: 0 or ENOMEM */
int urn_segment_set_add(struct urn_segment_set *s, uint32_t id);
void urn_segment_set_free(struct urn_segment_set *s);

#endif
