/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mappings of this process, from /proc/self/maps. Nothing here allocates memory, takes a lock
 * or uses stdio: all other threads may be stopped, with any lock of theirs held.
 */
#ifndef URN_ATTACH_SHARE_MAPS_H
#define URN_ATTACH_SHARE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_own_mapping {
	uintptr_t start, end;
	uint64_t off;	       /* bytes: of `start` in the file */
	uint64_t ino;	       /* inode of the file; 0: no file */
	uint32_t major, minor; /* device of the file */
	bool read, write, exec;
	bool shared; /* MAP_SHARED */
	bool ring;   /* true: a ring of io_uring or AIO */
	bool plain; /* without a name, or the heap, or named by the program: no stack and nothing of
		       the kernel's */
};

/* A walk through the mappings, in order of address. */
struct urn_maps {
	int fd;		   /* /proc/self/maps, open */
	bool over;	   /* the file has no more bytes */
	uint64_t off;	   /* bytes read so far */
	size_t used, have; /* bytes of buf */
	char buf[8192];
};

/* returns: true when the line, which ends with a zero byte, is a mapping */
bool urn_mapping_parse(const char *line, struct urn_own_mapping *m);

/* True when a mapping or descriptor of this name is a ring of io_uring or AIO. */
bool urn_maps_ring(const char *name);

/* Open the list of mappings. returns: a descriptor, or -1 with errno */
int urn_maps_open(void);
/* Begin a walk at the first mapping; fd: from urn_maps_open(), which the caller closes. */
void urn_maps_start(struct urn_maps *w, int fd);
/* returns: true: *m is the next mapping; false: there are no more, or the list can't be read */
bool urn_maps_next(struct urn_maps *w, struct urn_own_mapping *m);

/* True when the mapping is memory of this process alone, which it may read and write: private, of
 * no file, no stack. */
bool urn_mapping_own(const struct urn_own_mapping *m);

#endif
