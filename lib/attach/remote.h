/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's end of a dataplane's socket (lib/abi/socket.h). */
#ifndef URN_ATTACH_REMOTE_H
#define URN_ATTACH_REMOTE_H

#include "abi/socket.h"

#include <stdbool.h>

/*
 * Connect and agree on versions. Until urn_abi_channel.watch() the wait for an answer has the
 * bound of patience.h: ETIMEDOUT. *can: bits of enum urn_sock_can, for urn_remote_open(); NULL: not
 * wanted. returns: the connection, or -1 with errno and this thread's error text set
 */
int urn_remote_connect(const char *path, uint32_t *can);
/* Get adapter number `index`. returns: 0; ENOENT: there are no more; another errno value with its text */
int urn_remote_list(int fd, uint32_t index, struct urn_sock_device *out);
/*
 * Open an adapter by name over a connection, which is taken over in any case. can: of
 * urn_remote_connect(): a dataplane that can get this program's memory later gets it at the first
 * region that is not in memory of urn_alloc(). returns: its channel; NULL with errno and text set
 */
struct urn_abi_channel *urn_remote_open(int fd, const char name[32], uint32_t can);

/* Default path of the dataplane's socket (discover.c). returns: buf, or NULL: too long */
const char *urn_remote_path(char *buf, size_t size);
/* True when a folder for runtime files is the program's user's (discover.c). One of another user is
 * ignored: su and sudo may leave the variable of whoever called them. */
bool urn_runtime_dir_is_own(const char *dir);
/*
 * Connect, and open the adapter that `node` names; path, node, errors: urn_attach_connect().
 * returns: its channel; NULL with errno and text set
 */
struct urn_abi_channel *urn_remote_attach(const char *path, const char *node);

/*
 * Bound each call of an open device, before the device is opened over the channel: a dataplane that
 * does not answer so long is given up, and is gone for this device (EIO), though it may live
 * (patience.h).
 *
 * channel: of urn_remote_open(); ms: milliseconds, 0: no bound
 */
void urn_remote_bound(struct urn_abi_channel *channel, uint32_t ms);
/* True when the dataplane was given up: it may live, and go on. channel: of urn_remote_open() */
bool urn_remote_given_up(const struct urn_abi_channel *channel);

#endif
