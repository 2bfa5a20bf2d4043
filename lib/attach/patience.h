/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a program waits for a dataplane that is there and does not answer: one
 * that is stopped, or hangs.
 *
 * While a program looks for devices and opens them it has nothing of the dataplane's
 * yet, so it gives up after a while, closes the connection, and the dataplane, should it
 * go on, takes back what it made. From then on it waits for as long as the
 * dataplane lives. A call that was given up could have been carried out, or be carried
 * out later: an object would be there that nobody knows, or, worse, memory be written
 * that the program was told is its own again. Who waits is let go when the dataplane dies
 * or goes on, and can be killed.
 *
 * The bound is kept with the connection itself, as its SO_RCVTIMEO and SO_SNDTIMEO.
 */
#ifndef URN_ATTACH_PATIENCE_H
#define URN_ATTACH_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Let what waits on a socket wait for URNIC_TIMEOUT seconds only, or 10. returns: 0, or an
 * errno value with its text: EINVAL: the variable makes no sense
 */
int urn_patience_begin(int fd);
/* For ever, from now on. */
void urn_patience_end(int fd);
/* Milliseconds, from any point of time on. */
uint64_t urn_patience_clock(void);
/*
 * A signal came: has it been waited on the socket for long enough since `start`? Signals
 * that come often make the wait longer by one more at most.
 */
bool urn_patience_over(int fd, uint64_t start);
/* Say that nobody answered at path; NULL: where the socket is connected to. returns: ETIMEDOUT, with its text */
int urn_patience_lost(int fd, const char *path);

#endif
