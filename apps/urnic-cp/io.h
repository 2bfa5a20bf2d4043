/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for calls that may block. Disks are slow - a read from a network
 * file system, a write that waits for others to reach the disk, an fsync -
 * and while the thread that polls the engine waits for a disk, no packet is
 * acknowledged and the peer's timers expire. So the polling thread hands such
 * calls to the I/O thread as jobs and checks later whether they are done. Jobs run
 * one by one, in the order of cp_io_submit().
 *
 * A job is a whole chunk, so `lock`, which protects the queue of jobs, is taken a
 * few thousand times a second.
 */
#ifndef URN_CP_IO_H
#define URN_CP_IO_H

#include "pmd_glue/port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cp_job {
	void (*run)(struct cp_job *job); /* owner: the submitter; runs in the I/O thread */
	struct cp_job *next;             /* owner: the queue */
	_Atomic bool done;               /* set with release by the I/O thread, after run */
};

struct cp_io {
	pthread_t thread;
	pthread_mutex_t lock;	     /* lock protects the queue of jobs (head, tail) and stop */
	pthread_cond_t more;	     /* signalled under lock: a job came, or stop was set */
	struct cp_job *head, **tail; /* under lock */
	bool stop;                   /* under lock: the thread ends once the queue is empty */
	bool running;
};

/* Start the thread; signals go to the caller's thread. returns: 0, or -1 with *err */
int cp_io_start(struct cp_io *io, struct urn_err *err);
/* Wait for all jobs, then end the thread. Safe when the thread was never started. */
void cp_io_stop(struct cp_io *io);

/* Hand a job over; the job belongs to the thread until cp_job_done() is true. */
void cp_io_submit(struct cp_io *io, struct cp_job *job);

/* True when the job is done; everything that the job wrote is then visible. */
static inline bool
cp_job_done(struct cp_job *job)
{
	/* Pairs with the release store after run() in io.c. */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

#endif
