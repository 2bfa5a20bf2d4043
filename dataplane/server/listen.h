/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of a socket that is listened at: the server's, and urnicctl's. Beside it,
 * PATH.lock is locked for as long as it is listened at: of several that start at once one
 * gets the path, and what a killed one left is taken away by it and no other.
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
	struct stat made; /* the socket's file as we made it: only that one is taken away */
	int fd;           /* listens, does not block; -1: none */
	int lock_fd;      /* of lock_path; -1: none */
	bool bound;       /* the path is ours */
};

/*
 * Listen at a path. mode: of the file, 0: 0600; gid: its group, (gid_t)-1: as it
 * comes. returns: 0, or -1 with *err; urn_listen_close() in either case
 */
int urn_listen_open(struct urn_listen *l, const char *path, mode_t mode, gid_t gid,
		    struct urn_err *err);
/* Take the path away, so that nobody comes any more. */
void urn_listen_remove(struct urn_listen *l);
/* That, and close. */
void urn_listen_close(struct urn_listen *l);

#endif
