/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_E2E_SHARED_PAGE_H
#define TEST_E2E_SHARED_PAGE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* returns: 1: the page at p is shared with a dataplane, after the pages around it moved; 0: it is
 * not; -1: nothing is mapped there, or the list of mappings can't be read */
static inline int
page_is_shared(const void *p)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int is = -1;

	while (f != NULL && is < 0 && fgets(line, sizeof(line), f) != NULL) {
		uintptr_t start, end;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2 &&
		    (uintptr_t)p >= start && (uintptr_t)p < end)
			is = strstr(line, "memfd:urnic-shared") != NULL;
	}
	if (f != NULL)
		fclose(f);
	return is;
}

#endif
