/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patience of a program with a dataplane that does not answer, because the dataplane is
 * stopped or hangs.
 *
 * While a program looks for devices and opens them it has no objects of the dataplane
 * yet, so it gives up after a while and closes the connection; the dataplane, should it
 * go on, takes back what it made. Once a device is open the program waits for as long as the
 * dataplane lives. A call that was given up could have been carried out, or be carried
 * out later: an object would be there that nobody knows, or, worse, memory would be written
 * that the program was told is its own again. The wait ends when the dataplane dies
 * or goes on, and a program that waits can be killed.
 *
 * Sessions (lib/verbs/session) have another adapter to go on with, and bound each call
 * (urn_remote_bound()). A dataplane that does not answer in time is given up for good: the
 * connection is shut down, the dataplane finds the mark `left` beside its doorbells
 * (lib/abi/doorbell.h) before it writes more, and takes all back when it goes on.
 *
 * The bound is kept with the connection itself, in its SO_RCVTIMEO and SO_SNDTIMEO.
 */
#ifndef URN_ATTACH_PATIENCE_H
#define URN_ATTACH_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bound each wait on a socket to URNIC_TIMEOUT seconds, or 10. returns: 0, or an
 * errno value with its text: EINVAL: the variable makes no sense
 */
int urn_patience_begin(int fd);
/* Bound each wait on a socket to so many ms from now on; 0: waits last for ever. */
void urn_patience_set(int fd, uint32_t ms);
/*
 * True when a wait has lasted for so many times the socket's bound since `start`, a time of
 * urn_clock_ms(). Frequent signals lengthen the wait by one bound at most.
 */
bool urn_patience_over(int fd, uint64_t start, unsigned int times);
/* Set the text "nobody answered at path"; NULL: the path that fd is connected to. returns: ETIMEDOUT */
int urn_patience_lost(int fd, const char *path);

#endif
