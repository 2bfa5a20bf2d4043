/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Foreign memory (memory/foreign.h) without another process: the test is the worker
 * of the space, and carries out what an executor handed over when it likes. Regions
 * of it are added with urn_mem_add_foreign(); addresses are those of this process.
 */
#ifndef URN_TEST_WORKER_H
#define URN_TEST_WORKER_H

#include "memory/foreign.h"

/* A space that no process is behind; counts one user. NULL: no memory */
struct urn_space *worker_open(void);
/* Nothing is under way. The space goes with the last region of it. */
void worker_close(struct urn_space *space);

/*
 * Carry out up to `max` of the operations that wait, oldest first. fails: the
 * first of them fails, having moved half of its bytes, as when the page behind those
 * is not there. returns: how many
 */
uint32_t worker_do(struct urn_space *space, uint32_t max, bool fails);
/* Operations under way: in the executors' hands, waiting, or answered. */
uint32_t worker_under_way(const struct urn_space *space);
/* Operations that wait to be carried out. */
uint32_t worker_waits(const struct urn_space *space);
/* Answers that their executors have not taken yet. */
uint32_t worker_answered(const struct urn_space *space);

#endif
