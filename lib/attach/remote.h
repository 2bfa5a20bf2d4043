/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's end of a dataplane's socket (lib/abi/socket.h). */
#ifndef URN_ATTACH_REMOTE_H
#define URN_ATTACH_REMOTE_H

#include "abi/socket.h"

/*
 * Connect and agree on versions. Up to urn_abi_channel.watch() an answer is waited for as
 * long as patience.h says, and no longer: ETIMEDOUT. returns: the connection, or -1 with errno and
 * this thread's error text set
 */
int urn_remote_connect(const char *path);
/* Adapter number `index`. returns: 0; ENOENT: there are no more; another errno value with its text */
int urn_remote_list(int fd, uint32_t index, struct urn_sock_device *out);
/*
 * Open an adapter by name over a connection, which is taken over in any case.
 * returns: its channel; NULL with errno and text set
 */
struct urn_abi_channel *urn_remote_open(int fd, const char name[32]);

/* Where the dataplane's socket is, unless told (discover.c). returns: buf, or NULL: too long */
const char *urn_remote_path(char *buf, size_t size);
/*
 * Put the adapters of the dataplane at the usual place on offer, if it is there.
 * returns: 0; ETIMEDOUT with its text: one is there and does not answer
 */
int urn_remote_offer(void);
/* In a child of fork(): whoever was doing that is not here. */
void urn_remote_offer_forked(void);

#endif
