/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of /proc/PID/maps. */
#ifndef URN_MEMORY_MAPS_H
#define URN_MEMORY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of it. */
struct urn_map {
	uint64_t start, end; /* end: first address behind it */
	char perms[5];	     /* "rwxp", '-' for a right that is not there; s: shared */
	const char *name;    /* in the line: a path, "[heap]", or "" */
};

/* Read a line, ended by 0. returns: whether it is one */
bool urn_map_parse(const char *line, struct urn_map *map);
/* Is the memory behind it none that an adapter may touch? NULL: it is; else what it is. */
const char *urn_map_special(const struct urn_map *map);

/*
 * Are `length` bytes at `addr` mapped, readable (and writable), and ordinary
 * memory? The file is read from its beginning with pread(): several may.
 * returns 0, EFAULT or EIO, with a sentence in why[len]
 */
int urn_maps_check(int fd, uint64_t addr, uint64_t length, bool write, char *why, size_t len);

#endif
