/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's area: the memory where its doorbells and queues lie. One mapping,
 * handed out in pieces by size class, four to each power of two; a piece given
 * back serves the next allocation of its class. When the area is used up, all free
 * pieces are joined to runs, and pieces of any class are cut from the runs. The records
 * are kept outside of the area, where the client can't reach them. Control path
 * only.
 */
#ifndef URN_CONTROL_AREA_H
#define URN_CONTROL_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { URN_AREA_CLASSES = 256 };

struct urn_area_piece; /* a free piece */

struct urn_area {
	uint8_t *base;
	uint64_t size;  /* bytes mapped */
	int fd;         /* memfd that holds it; -1: memory of this process alone */
	dev_t dev; /* dev and ino: of that memfd, whose numbers nothing else has while it is mapped
		    */
	ino_t ino;
	uint64_t next;  /* first byte never given out */
	struct urn_area_piece *free[URN_AREA_CLASSES];
	struct urn_area_piece *runs; /* joined pieces, by address */
};

/*
 * Map `size` bytes of address space; memory is taken on first use. shared: for a
 * client in another process; a->fd is then a memfd that nobody can shrink, and
 * that no engine may touch before urn_area_seal().
 * returns 0 or an errno value
 */
int urn_area_init(struct urn_area *a, uint64_t size, bool shared);
/*
 * Seal the area, which the client has mapped or never will: from here on nobody punches holes
 * into it (seal.h). Does nothing to memory of this process alone. returns 0, or an errno
 * value with why: the end of a sentence that begins with the area
 */
int urn_area_seal(const struct urn_area *a, char *why, size_t len);
void urn_area_fini(struct urn_area *a);
/* Allocate `bytes` zeroed bytes, aligned to a cache line. *off: offset in the area. returns 0, ENOMEM, EINVAL */
int urn_area_alloc(struct urn_area *a, uint64_t bytes, uint64_t *off);
/*
 * True when urn_area_alloc() of so many bytes would take no more than a microsecond. Otherwise
 * much memory must be cleared, or all free pieces looked through: not to be done
 * while others wait.
 */
bool urn_area_is_quick(const struct urn_area *a, uint64_t bytes);
/* Bytes that urn_area_alloc() of so many would take of those that were never given out. */
uint64_t urn_area_grows(const struct urn_area *a, uint64_t bytes);
/* Bytes of memory that the area takes now, by the system's word; 0: unknown. */
uint64_t urn_area_resident(const struct urn_area *a);
/* Give back a piece of urn_area_alloc(), with the same size. */
void urn_area_free(struct urn_area *a, uint64_t off, uint64_t bytes);

#endif
