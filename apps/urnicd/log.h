/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of events of urnicd (dataplane/log), by [urnicd] of its configuration. */
#ifndef URNICD_LOG_H
#define URNICD_LOG_H

#include "admin.h"

/* Make the log and start to write it. Call before engines are polled. returns: 0, or -1 with *err
 */
int nicd_log_start(struct nicd_rig *rig, struct urn_err *err);
/* Look at ports, advertised routers and captures from now on, and say what happens to them. a:
 * outlives the look, which nicd_log_unwatch() ends */
void nicd_log_watch(struct nicd_admin *a);
void nicd_log_unwatch(struct nicd_admin *a);
/* Write all and close the log; nobody says anything more. */
void nicd_log_stop(struct nicd_rig *rig);
/* Free the log; no engine is polled, and no program attached. */
void nicd_log_free(struct nicd_rig *rig);

#endif
