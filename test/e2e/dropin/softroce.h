/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of softroce that are about ends of queue pairs, completion queues, and many of them. */
#ifndef DROPIN_SOFTROCE_H
#define DROPIN_SOFTROCE_H

/* A queue pair that has taken its last entry of an SRQ. */
void last_wqe(void);
/* Completions of a queue pair in the error state. */
void errors(void);
/* A large CQ; one that changes its size; one that gives events. */
void big_cq(void);
void resize(void);
void events(void);
/* Several threads at once. */
void many(void);

#endif
