/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a capture file: rte_pcapng's, with our names of the ports in it. */
#ifndef URN_PMD_GLUE_CAPTURE_HEAD_H
#define URN_PMD_GLUE_CAPTURE_HEAD_H

#include "pmd_glue/port.h"

#include <rte_pcapng.h>

/*
 * Begin a pcapng file on fd. Closing the result closes fd; on failure the caller
 * closes fd. Ports that are not among the n keep DPDK's name.
 * *bytes: size of the head. returns: NULL with errno
 */
rte_pcapng_t *urn_capture_head(int fd, struct urn_port *const *ports, unsigned int n,
			       uint64_t *bytes);

#endif
