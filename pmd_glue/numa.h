/* SPDX-License-Identifier: BSD-3-Clause */
/* NUMA: the node of a device, and memory on a node (libnuma). */
#ifndef URN_PMD_GLUE_NUMA_H
#define URN_PMD_GLUE_NUMA_H

#include <stddef.h>

/*
 * Node of a PCI device ("0000:3b:00.0") or of a network interface ("eth0"), as
 * the kernel says. returns: node; 0 when it has none or the name is unknown
 */
int urn_numa_of_device(const char *name);
/*
 * Anonymous memory, zeroed, preferably on `node`, in transparent huge pages
 * where the kernel gives them. Forked children do not have this memory. bytes are
 * rounded up to *mapped. NULL with errno on failure.
 */
void *urn_numa_map(size_t bytes, int node, size_t *mapped);
void urn_numa_unmap(void *p, size_t mapped);

#endif
