/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The EAL without huge pages, root or leftovers: its runtime files live in a
 * private folder that is removed at exit (doc/reference/ports.md "EAL without huge pages").
 */
#ifndef URN_PMD_GLUE_EAL_H
#define URN_PMD_GLUE_EAL_H

#include "pmd_glue/port.h"

struct urn_eal_config {
	const char *program;	/* argv[0] */
	unsigned int memory_mb; /* without huge pages memory is fixed at start */
	bool huge_pages;	/* use huge pages where the machine has some */
	unsigned int lcores; /* cores to use, 0: all allowed; worker threads are the caller's own */
	unsigned int pci_count; /* PCI addresses to probe; none: --no-pci */
	const char *const *pci;
	const char *extra;     /* further EAL arguments, space separated, or NULL */
	const char *log_level; /* e.g. "warning"; NULL: errors only */
	/*
	 * Keep the EAL's files where DPDK's tools look for them, under this name, for
	 * dpdk-telemetry.py -f and the like; NULL: in the private folder, as "urnic"
	 */
	const char *file_prefix;
	bool no_telemetry; /* do not open DPDK's telemetry socket */
	bool pdump;	   /* let dpdk-dumpcap in, where there are huge pages */
	/*
	 * With huge pages: the number of lcores, ids from 1 on, for rte_eal_remote_launch().
	 * DPDK lets no other process in once a thread of the program's own is registered.
	 */
	unsigned int workers;
};

/* Start the EAL once. returns 0, or -1 with *err (and nothing left behind) */
int urn_eal_start(const struct urn_eal_config *cfg, struct urn_err *err);
/* Stop the EAL and remove the runtime folder. Safe to call from atexit, and twice. */
void urn_eal_stop(void);
/* True when the EAL uses huge pages. */
bool urn_eal_huge(void);
/* The private runtime folder (0700), for sockets of memif and the like. NULL before start. */
const char *urn_eal_dir(void);
/* MiB that `mbufs` packets of the largest size need, the EAL's own memory included. */
unsigned int urn_eal_memory_mb(uint64_t mbufs);

#endif
