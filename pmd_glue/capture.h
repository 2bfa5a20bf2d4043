/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes what crosses a port to a pcapng file (rte_pcapng; doc/ports.md). */
#ifndef URN_PMD_GLUE_CAPTURE_H
#define URN_PMD_GLUE_CAPTURE_H

#include "pmd_glue/port.h"

struct urn_capture;

/*
 * Capture both directions of all queues of n ports into the file `path`. Copies
 * go through a ring to one writer thread; what does not fit is counted, never
 * waited for. A frame that a port would not take appears for each attempt. Open
 * after all ports of the process are up: the file lists them. returns NULL with
 * *err
 */
struct urn_capture *urn_capture_open(const char *path, struct urn_port *const *ports,
				     unsigned int n, struct urn_err *err);
/*
 * Stop, write what is under way, close the file; before the ports are closed.
 * Other threads may go on polling them. *dropped (may be NULL): frames that
 * were not written. returns 0, or -1 with *err when the file is not whole
 */
int urn_capture_close(struct urn_capture *cap, uint64_t *dropped, struct urn_err *err);

#endif
