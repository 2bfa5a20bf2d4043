/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages of the machine: how many are free, and files left in hugetlbfs. */
#ifndef URN_PMD_GLUE_HUGE_H
#define URN_PMD_GLUE_HUGE_H

#include <stdbool.h>
#include <stddef.h>

/* MiB in huge pages that are free now and mounted somewhere writable; 0: none */
unsigned int urn_huge_free_mb(void);
/*
 * Find the hugetlbfs that the EAL has to be told of (--huge-dir). Without it the EAL takes the
 * first one mounted, also where another user's is first: systemd mounts one that is root's. mounts:
 * a table like /proc/self/mounts. returns: true with the path in dir: the first mount is not
 * writable, and this is the first that is; false: there is nothing to tell
 */
bool urn_huge_dir(const char *mounts, char *dir, size_t size);
/* Remove the files <mount>/<prefix>map_N that an EAL left behind. */
void urn_huge_remove(const char *prefix);

#endif
