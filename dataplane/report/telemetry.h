/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reports of report.h as commands of DPDK's telemetry: /urnic/... beside
 * /ethdev/... and the others, for dpdk-telemetry.py and other users of
 * its socket. By DPDK's convention X/list gives names or numbers, X/info one object,
 * flat. A failure is an object with one field, "error". doc/reference/urnicd.md
 * lists all commands.
 */
#ifndef URN_REPORT_TELEMETRY_H
#define URN_REPORT_TELEMETRY_H

#include "report/capture.h"
#include "report/report.h"

struct urn_telemetry_config {
	const struct urn_report_source *src; /* outlives the stop */
	struct urn_captures *captures;	     /* NULL: none; outlives the stop */
};

/*
 * Answer from now on. Only one start a process at a time: commands can't be taken back, and
 * have no argument. The EAL is up. returns: 0, or -1 with *err
 */
int urn_telemetry_start(const struct urn_telemetry_config *cfg, struct urn_err *err);
/*
 * Answer no more, and wait for answers in progress: engines must still be polled.
 * Later questions are told that nothing is there. Without a start, nothing happens.
 */
void urn_telemetry_stop(void);

#endif
