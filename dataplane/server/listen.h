/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a listening socket: the server's, and urnicctl's. Beside the file,
 * PATH.lock is locked while the socket listens: of several processes that start at once one
 * gets the path, and only that one removes the files that a killed process left.
 */
#ifndef URN_SERVER_LISTEN_H
#define URN_SERVER_LISTEN_H

#include "pmd_glue/port.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct urn_listen {
	struct sockaddr_un addr;
	char lock_path[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	struct stat made; /* the socket's file when it was made: only that file is removed */
	int fd;           /* listens, does not block; -1: none */
	int lock_fd;      /* the locked file, lock_path; -1: none */
	bool bound;       /* the socket's file was made */
	bool left;	  /* ... in place of one that a process which died had left */
};

/*
 * Listen at a path. mode: permissions of the file, 0: 0600; gid: its group, (gid_t)-1: the
 * default. returns: 0, or -1 with *err; urn_listen_close() in either case
 */
int urn_listen_open(struct urn_listen *l, const char *path, mode_t mode, gid_t gid,
		    struct urn_err *err);
/* Remove the socket's file, so that nobody can connect any more. */
void urn_listen_remove(struct urn_listen *l);
/* Remove the socket's file, and close. */
void urn_listen_close(struct urn_listen *l);

#endif
