/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Foreign memory (memory/foreign.h) without another process: the test plays the worker
 * of the space, and carries out an executor's operations when it likes. Regions of
 * the space are added with urn_mem_add_foreign(); addresses are those of this process.
 */
#ifndef URN_TEST_WORKER_H
#define URN_TEST_WORKER_H

#include "memory/foreign.h"

/* Make a space without a process behind it; counts one user. NULL: no memory */
struct urn_space *worker_open(void);
/* Close a space without operations in flight. The space is freed with its last region. */
void worker_close(struct urn_space *space);

/*
 * Carry out up to `max` of the operations that wait, oldest first. fails: the first
 * operation fails after half of its bytes, as when the page behind them is not there.
 * returns: how many
 */
uint32_t worker_do(struct urn_space *space, uint32_t max, bool fails);
/* Number of operations in flight: in the executors' hands, waiting, or answered. */
uint32_t worker_under_way(const struct urn_space *space);
/* Number of operations that wait to be carried out. */
uint32_t worker_waits(const struct urn_space *space);
/* Number of answers that their executors have not taken yet. */
uint32_t worker_answered(const struct urn_space *space);

#endif
