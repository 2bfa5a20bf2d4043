/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A limit that a file holds. returns: bytes; UINT64_MAX: "max", or no such file */
static uint64_t
limit_in(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t bytes = UINT64_MAX;

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, "%" SCNu64, &bytes) != 1)
		bytes = UINT64_MAX;
	fclose(f);
	return bytes;
}

/* The smallest limit of a group and its parents; group: its path, which is cut. */
static uint64_t
smallest(const char *root, const char *below, char *group, const char *name)
{
	uint64_t least = UINT64_MAX;

	for (;;) {
		char path[2 * PATH_MAX];
		char *slash = strrchr(group, '/');
		uint64_t bytes;

		snprintf(path, sizeof(path), "%s%s%s/%s", root, below, group, name);
		bytes = limit_in(path);
		least = bytes < least ? bytes : least;
		if (!slash)
			return least;
		*slash = '\0';
	}
}

uint64_t
urn_config_cgroup_memory(const char *list, const char *root)
{
	FILE *f = fopen(list, "re");
	uint64_t least = UINT64_MAX;
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) { /* NUMBER:CONTROLLERS:PATH */
		char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
		uint64_t bytes = UINT64_MAX;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (kinds[1] == '\0')
			bytes = smallest(root, "", group, "memory.max");
		else if (strstr(kinds, "memory"))
			bytes = smallest(root, "/memory", group, "memory.limit_in_bytes");
		least = bytes < least ? bytes : least;
	}
	if (f)
		fclose(f);
	return least;
}

uint64_t
urn_config_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
	uint64_t all = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : UINT64_MAX;
	uint64_t group = urn_config_cgroup_memory("/proc/self/cgroup", "/sys/fs/cgroup");

	return group < all ? group : all;
}
