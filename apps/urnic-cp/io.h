/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for what may block. Disks take their time - a read from a network
 * file system, a write that waits for others to reach the disk, an fsync -
 * and while the thread that polls the engine waits for one, nothing is
 * acknowledged and the peer's timers run out. So that thread hands such work
 * over here and looks later whether it is done. Jobs run one by one, in the
 * order they were handed over.
 *
 * A job is a whole chunk, so the lock is taken a few thousand times a second.
 */
#ifndef URN_CP_IO_H
#define URN_CP_IO_H

#include "pmd_glue/port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cp_job {
	void (*run)(struct cp_job *job); /* owner: whoever submits; runs in the thread */
	struct cp_job *next;             /* owner: the queue */
	_Atomic bool done;               /* set with release by the thread, after run */
};

struct cp_io {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct cp_job *head, **tail; /* under lock */
	bool stop;                   /* under lock: end once the queue is empty */
	bool running;
};

/* Start the thread; signals stay with the caller's. returns: 0, or -1 with *err */
int cp_io_start(struct cp_io *io, struct urn_err *err);
/* Wait for all jobs, then end the thread. Safe when it was never started. */
void cp_io_stop(struct cp_io *io);

/* Hand a job over; it is the thread's until cp_job_done() says so. */
void cp_io_submit(struct cp_io *io, struct cp_job *job);

/* Is it done? What the job wrote is visible when this is true. */
static inline bool
cp_job_done(struct cp_job *job)
{
	/* Pairs with the release store after run() in io.c. */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

#endif
