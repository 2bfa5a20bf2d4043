/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that made a connection. A pidfd shows its death, which the end of
 * the connection alone does not: a child that was made without the library, by clone() and not
 * by fork(), has the descriptor too, and would keep a dead program's queues and
 * quotas for as long as it likes.
 */
#ifndef URN_SERVER_OWNER_H
#define URN_SERVER_OWNER_H

#include <sys/types.h>

/*
 * Open a pidfd of the process that called connect(): of the whole process, not of a thread. pid: its
 * number, by the kernel's word. returns: the descriptor; or -ESRCH: the process has ended already;
 * or another negative errno value: the process can't be watched here
 */
int urn_owner_watch(int conn_fd, pid_t pid);

#endif
