/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of this process, as the system lists them in /proc/self/task. No call takes a lock or
 * allocates memory: threads that have locks may be stopped.
 */
#ifndef URN_ATTACH_TASK_H
#define URN_ATTACH_TASK_H

#include <sys/types.h>

/* A walk through /proc/self/task; all but `fd` begins with 0. */
struct urn_tasks {
	int fd;
	long used, have; /* bytes of buf */
	char buf[4096] __attribute__((aligned(8)));
};

/* returns: the next thread; 0: there are no more; -1: the list can't be read */
pid_t urn_tasks_next(struct urn_tasks *w);

/* State of a thread that can or can't answer a signal. */
enum urn_task_state {
	URN_TASK_RUNS,	 /* its handler will run */
	URN_TASK_BLOCKS, /* blocked */
	URN_TASK_TAKES,	 /* waits for the signal in sigwait() or the like, which would return it */
	URN_TASK_ENDED,
	URN_TASK_HIDDEN, /* not blocked, but the system does not show what the thread waits for */
};

/*
 * A thread's state with regard to a signal that is not sent yet. A thread that just enters or
 * leaves sigwait() may be seen as one that runs.
 * tasks: descriptor of /proc/self/task
 */
enum urn_task_state urn_task_state(int tasks, pid_t tid, int sig);

#endif
