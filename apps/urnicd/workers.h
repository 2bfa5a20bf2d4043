/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that poll: one for each engine, each on its core. */
#ifndef URNICD_WORKERS_H
#define URNICD_WORKERS_H

#include "rig.h"

struct nicd_workers;

/* Start the threads; on return every engine is polled. NULL with *err on failure */
struct nicd_workers *nicd_workers_start(struct nicd_rig *rig, struct urn_err *err);
/* Stop the threads and wait for them. NULL is allowed. */
void nicd_workers_stop(struct nicd_workers *w);

#endif
