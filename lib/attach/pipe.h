/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipe of struct urn_abi_event records. The dataplane writes to one end and
 * never waits there; the program polls and reads the other, blocking or not as
 * it likes. Records are smaller than PIPE_BUF, so each is written and read whole.
 * For a dataplane in another process it is a pair of sockets, to which one can
 * write without ever waiting, whatever their other holder sets.
 */
#ifndef URN_ATTACH_PIPE_H
#define URN_ATTACH_PIPE_H

#include "abi/control.h"

/* Make one; remote: a socket pair, for a dataplane in another process. returns: 0, or an errno value (EMFILE, ENFILE) with errno set */
int urn_pipe_open(int remote, int *read_fd, int *write_fd);

/* Make room for `events` unread records, as far as the system lets us. */
void urn_pipe_reserve(int write_fd, unsigned int events);

/* Read one record. returns: 0, or an errno value (EAGAIN, EINTR, ...) with errno set */
int urn_pipe_read(int read_fd, struct urn_abi_event *ev);

/* Write one record. returns: 0, or an errno value (EAGAIN: full) with errno set */
int urn_pipe_write(int write_fd, const struct urn_abi_event *ev);

#endif
