/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's log lines. While a port or the EAL is being brought up the lines are held
 * back, so that the error message can quote the driver's own reason; else the lines
 * go to the standard error.
 */
#ifndef URN_PMD_GLUE_EAL_LOG_H
#define URN_PMD_GLUE_EAL_LOG_H

#include <stdbool.h>

/* Take DPDK's log over. loud: lines go to the standard error even while they are held. */
void urn_eal_log_open(bool loud);
/* Give DPDK's log back. */
void urn_eal_log_close(void);
/*
 * From here on log only lines of at least this level: "error", "warning", "notice",
 * "info", "debug". Any thread. returns: 0, or -1: no such level
 */
int urn_eal_log_level(const char *level);
/* Hold lines of the calling thread back from here on, and forget those held. */
void urn_eal_log_hold(void);
/* Stop holding lines back. */
void urn_eal_log_release(void);
/*
 * The first line held, without its end of line; "" when there was none. Valid
 * until the calling thread holds again.
 */
const char *urn_eal_log_reason(void);

#endif
