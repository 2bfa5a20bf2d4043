/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that memory which a program wants to register is mapped. */
#include "verbs/front.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* One line of /proc/self/maps. */
struct urn_mapping {
	uintptr_t start, end;
	bool read, write;
};

/* returns: true when the line could be parsed */
static bool
urn_mapping_parse(const char *line, struct urn_mapping *m)
{
	char perms[5];

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &m->start, &m->end, perms) != 3)
		return false;
	m->read = perms[0] == 'r';
	m->write = perms[1] == 'w';
	return true;
}

int
urn_memory_check(const void *addr, size_t length, bool write)
{
	uintptr_t at = (uintptr_t)addr, end = at + length;
	struct urn_mapping m;
	char line[512];
	FILE *maps;
	int err = 0;

	if (length == 0)
		return 0;
	if (end < at)
		return urn_fail(EINVAL, "a region of %zu bytes wraps around the address space",
				length);
	maps = fopen("/proc/self/maps", "re");
	if (maps == NULL)
		return 0; /* can't be checked */
	/* Lines are in order of address; the rest of a line that is too long does not parse. */
	while (at < end && err == 0 && fgets(line, sizeof(line), maps) != NULL) {
		if (!urn_mapping_parse(line, &m) || m.end <= at)
			continue;
		if (m.start > at)
			break;
		if (!m.read || (write && !m.write))
			err = urn_fail(EFAULT, "address 0x%" PRIxPTR " may not be %s, and the region "
				       "asks for it", at, m.read ? "written" : "read");
		at = m.end;
	}
	fclose(maps);
	if (err == 0 && at < end)
		err = urn_fail(EFAULT, "address 0x%" PRIxPTR " of the region is not mapped", at);
	return err;
}
