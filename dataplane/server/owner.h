/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that made a connection. Its death is seen here, and not by the end of
 * the connection alone: a child that was made past the library, by clone() and not
 * by fork(), has the descriptor too, and would keep a dead program's queues and what
 * counts against its user for as long as it likes.
 */
#ifndef URN_SERVER_OWNER_H
#define URN_SERVER_OWNER_H

#include <sys/types.h>

/*
 * A pidfd of the process that called connect(): of all of it, whichever thread did. pid: its
 * number, as the kernel said. returns: the descriptor; or -ESRCH: it has ended already;
 * or another negative errno value: it can't be watched here
 */
int urn_owner_watch(int conn_fd, pid_t pid);

#endif
