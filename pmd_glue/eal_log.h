/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's log lines. While something is being brought up they are held back, so
 * that the error sentence can quote the driver's own reason; else they go to
 * the standard error.
 */
#ifndef URN_PMD_GLUE_EAL_LOG_H
#define URN_PMD_GLUE_EAL_LOG_H

#include <stdbool.h>

/* Take DPDK's log over. loud: lines go to the standard error in any case. */
void urn_eal_log_open(bool loud);
/* Give it back. */
void urn_eal_log_close(void);
/*
 * From here on lines that matter at least so much: "error", "warning", "notice",
 * "info", "debug". Any thread. returns: 0, or -1: no such level
 */
int urn_eal_log_level(const char *level);
/* Hold lines of the calling thread back from here on, and forget those held. */
void urn_eal_log_hold(void);
/* Hold no longer. */
void urn_eal_log_release(void);
/*
 * The first line held, without its end of line; "" when there was none. Valid
 * until the calling thread holds again.
 */
const char *urn_eal_log_reason(void);

#endif
