/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipe of struct urn_abi_event records. The dataplane writes to one end and
 * never waits there; the program polls and reads the other end, blocking or not.
 * Records are smaller than PIPE_BUF, so each is written and read whole.
 */
#ifndef URN_ATTACH_PIPE_H
#define URN_ATTACH_PIPE_H

#include "attach/dev.h"

/* Make a pipe. returns: 0, or an errno value (EMFILE, ENFILE) with errno set */
int urn_pipe_open(int *read_fd, int *write_fd);

/*
 * Make a pipe to which the dataplane writes: a dataplane in another process makes it, by `op`;
 * for one in this process the library does. *handle: the dataplane's name for the pipe.
 * returns: 0, or an errno value with errno and text set
 */
int urn_pipe_make(struct urn_dev *dev, enum urn_ctl_op op, int *read_fd, int *write_fd,
	int32_t *handle);

/* Make room for `events` unread records, as far as the system lets us. */
void urn_pipe_reserve(int write_fd, unsigned int events);

/*
 * The write end of a pipe, an entry in its context's list: a dataplane in
 * another process may die, and then the context ends all its pipes (lib/verbs/adapter/gone.c).
 */
struct urn_way {
	struct urn_way *next, **at; /* at NULL: in no list */
	int write_fd;               /* embedded: the dataplane's */
};

/*
 * End a pair of sockets, for every writer: its readers get the records that are there,
 * and then EIO from every read, without a wait.
 */
void urn_pipe_end(int write_fd);

/* Read one record. returns: 0, or an errno value (EAGAIN, EINTR, ...; EIO: the end) with errno set */
int urn_pipe_read(int read_fd, struct urn_abi_event *ev);

/* Write one record. returns: 0, or an errno value (EAGAIN: full; EPIPE: ended) with errno set */
int urn_pipe_write(int write_fd, const struct urn_abi_event *ev);

#endif
