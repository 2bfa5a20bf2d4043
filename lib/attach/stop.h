/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stopping all other threads of this process for a moment, by a signal: each waits in its
 * handler, so that none is within a system call or writes memory other than its stack and its
 * thread-local variables.
 *
 * The signal is the highest real-time signal whose disposition the program has left alone. A thread
 * that blocks that signal can't be stopped, nor one that waits for that signal in sigwait() or its
 * like, which would return it: such a thread gets no signal from then on, nor does a thread that
 * did not answer, until its handler has run. Threads see interrupted calls like after any signal
 * with SA_RESTART. One caller at a time.
 */
#ifndef URN_ATTACH_STOP_H
#define URN_ATTACH_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Addresses of a thread that is stopped: memory around these must stay as it is. */
struct urn_stopped {
	uintptr_t sp;	 /* stack pointer of the interrupted code */
	uintptr_t frame; /* in the handler's stack frame, which may lie on another stack */
	uintptr_t tp; /* thread pointer: thread-local variables lie below, the C library's own data
			 above */
};

/* Choose the signal, once. returns: its number; 0: the program uses all of them */
int urn_stop_signal(void);

/*
 * Fill a set with all signals that a thread of urnic's libraries blocks: all but the one that stops
 * threads, when memory is to be shared (URNIC_SHARE). The drop-in librdmacm.so.1 calls this, too.
 */
__attribute__((visibility("default"))) void urn_stop_mask(sigset_t *set);

/*
 * Stop all other threads. Between this and urn_stop_release() the caller must take no lock, and so
 * neither allocate memory nor use stdio; the caller's signals are blocked.
 * returns: NULL: stopped; else a sentence: none is stopped
 */
const char *urn_stop_others(void);
void urn_stop_release(void);

/* Stopped threads, the caller among them. i: from 0 on. returns: false: there are no more */
bool urn_stop_thread(unsigned int i, struct urn_stopped *out);

/* In a child of fork(): no thread is stopped. */
void urn_stop_forked(void);

#endif
