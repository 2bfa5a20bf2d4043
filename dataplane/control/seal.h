/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a client shares with engines must not go away under them. A client that
 * punches a hole into the memory (FALLOC_FL_PUNCH_HOLE, MADV_REMOVE) makes every thread that
 * touches it wait in the kernel until the hole is punched, for seconds, and no signal ends that
 * wait. The seal F_SEAL_FUTURE_WRITE forbids holes, and leaves existing mappings writable; so
 * client and dataplane map the memory first, then it is sealed, and then an engine touches it.
 */
#ifndef URN_CONTROL_SEAL_H
#define URN_CONTROL_SEAL_H

#include <stddef.h>

/*
 * Seal a memfd against holes, and against other seals. Waits for a hole that is being
 * punched: not to be called with a lock that others want. fd: a memfd, which no process can
 * map for writing afterwards. returns: 0, or an errno value with a sentence's
 * end in why ("the memory ..."); EPERM: its seals were sealed before (F_SEAL_SEAL)
 */
int urn_seal(int fd, char *why, size_t len);

#endif
