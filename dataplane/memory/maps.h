/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of /proc/PID/maps. */
#ifndef URN_MEMORY_MAPS_H
#define URN_MEMORY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of that file. */
struct urn_map {
	uint64_t start, end; /* end: first address behind it */
	char perms[5];	     /* "rwxp", '-' for a missing right; s: shared */
	const char *name;    /* points into the line: a path, "[heap]", or "" */
};

/* Read a line, ended by 0. returns: false when the line is malformed */
bool urn_map_parse(const char *line, struct urn_map *map);
/* NULL: an adapter may touch the memory of the mapping; otherwise a text that says which special memory it is. */
const char *urn_map_special(const struct urn_map *map);

/*
 * Check that `length` bytes at `addr` are mapped, readable (and writable), and ordinary memory, and
 * that no file ends before them. The file is read from its beginning with pread(): several threads
 * may. mem: the process's /proc/PID/mem; -1: where files end is not looked at.
 *
 * returns: 0; EFAULT with a sentence in why[len], also when the map can't be read: EIO would tell
 * the program that the device is lost
 */
int urn_maps_check(int fd, int mem, uint64_t addr, uint64_t length, bool write, char *why,
		   size_t len);

#endif
