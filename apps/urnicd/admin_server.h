/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket, on which urnicctl asks. One thread serves all askers, each step
 * of a command in its turn, so that a slow reader delays only its own answer, and not
 * for ever.
 */
#ifndef URNICD_ADMIN_SERVER_H
#define URNICD_ADMIN_SERVER_H

#include "admin.h"

#include <sys/types.h>

enum {
	NICD_ADMIN_ASKERS = 16, /* askers at a time; more are turned away */
};

struct nicd_admin_server;

struct nicd_admin_server_config {
	const char *path;
	gid_t gid; /* group of the socket: its members may ask, too; (gid_t)-1: nobody else */
	unsigned int patience_ms; /* time limit for a question, and for each piece of the answer; 0: 10000 */
};

/*
 * Listen. Root and the user of this process may ask, and with a group its members.
 * A socket on which nobody listens is replaced; the file PATH.lock is locked for as
 * long as the server listens (dataplane/server/listen.h). NULL with *err
 */
struct nicd_admin_server *nicd_admin_server_open(struct nicd_admin *a,
						 const struct nicd_admin_server_config *cfg,
						 struct urn_err *err);
/* Hang up on all askers and remove the socket. NULL is allowed. */
void nicd_admin_server_close(struct nicd_admin_server *s);

#endif
