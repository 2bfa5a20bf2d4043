/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: urnicctl asks here. One thread serves all who ask, each step
 * of a command in its turn, so that who reads slowly holds up himself only, and not
 * for ever.
 */
#ifndef URNICD_ADMIN_SERVER_H
#define URNICD_ADMIN_SERVER_H

#include "admin.h"

#include <sys/types.h>

enum {
	NICD_ADMIN_PEERS = 16, /* who can ask at a time; more are turned away */
};

struct nicd_admin_server;

struct nicd_admin_server_config {
	const char *path;
	gid_t gid; /* of the socket: its members may ask, too; (gid_t)-1: nobody else */
	unsigned int patience_ms; /* for a question, and for each piece of the answer; 0: 10000 */
};

/*
 * Listen. Root and the user of this process may ask, and with a group its members.
 * A socket that nobody listens at is replaced; PATH.lock beside it is locked for as
 * long as it is listened at (dataplane/server/listen.h). NULL with *err
 */
struct nicd_admin_server *nicd_admin_server_open(struct nicd_admin *a,
						 const struct nicd_admin_server_config *cfg,
						 struct urn_err *err);
/* Hang up on all, take the socket away. NULL is allowed. */
void nicd_admin_server_close(struct nicd_admin_server *s);

#endif
