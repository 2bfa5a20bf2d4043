/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands to a running urnicd over its control socket (doc/reference/urnicctl.md). A question is
 * sent without a wait, and its answer is taken later.
 */
#ifndef URN_APPS_COMMON_CTL_H
#define URN_APPS_COMMON_CTL_H

#include "pmd_glue/port.h"

#include <stdbool.h>
#include <stddef.h>

enum { URN_CTL_TEXT = 16384 }; /* bytes of an answer that are kept, with the 0 at the end */

/*
 * Send a command.
 *
 * socket: the dataplane's socket for programs
 * words: n words of the command, 8 at most
 * returns: a connection, for urn_ctl_answer() or close(); -1 with *err
 */
int urn_ctl_send(const char *socket, const char *const *words, unsigned int n, struct urn_err *err);

/* True when there is something to read on a connection: the answer, or its end. */
bool urn_ctl_ready(int fd);

/*
 * Wait for the answer, and close the connection.
 *
 * text: set to the answer, the first URN_CTL_TEXT - 1 bytes of it
 * returns: 0; -1 with *err: the dataplane refuses, or says nothing for 10 seconds
 */
int urn_ctl_answer(int fd, char text[URN_CTL_TEXT], struct urn_err *err);

/*
 * Find the port of an adapter in the answer to `show adapter`.
 *
 * adapter: its name, or its node's; "": the first one
 * name, port: set to the names of adapter and port
 * returns: 0, or -1 with *err: there is no such adapter
 */
int urn_ctl_port(const char *text, const char *adapter, char name[32], char port[32],
		 struct urn_err *err);

#endif
