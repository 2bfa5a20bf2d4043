/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of urnic's library in a program. */
#ifndef URN_ATTACH_THREAD_H
#define URN_ATTACH_THREAD_H

#include <pthread.h>

/*
 * Start a thread that waits most of the time, with a small stack. All signals but the one that
 * stops threads (stop.h) are blocked: they are for the program's own threads. returns: 0, or the
 * errno value of pthread_create()
 */
int urn_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/*
 * Keep the shared object that holds this library loaded from now on. If the program unloaded
 * the object with a device open, a thread of the library would be left without its code. (Handlers
 * of fork() go with their object by themselves.)
 */
void urn_thread_stay(void);

#endif
