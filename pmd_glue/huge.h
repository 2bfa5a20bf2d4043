/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages of the machine: how many are free, and files left in hugetlbfs. */
#ifndef URN_PMD_GLUE_HUGE_H
#define URN_PMD_GLUE_HUGE_H

/* MiB in huge pages that are free now and mounted somewhere writable; 0: none */
unsigned int urn_huge_free_mb(void);
/* Remove the files <mount>/<prefix>map_N that an EAL left behind. */
void urn_huge_remove(const char *prefix);

#endif
