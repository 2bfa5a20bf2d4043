/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a client shares with engines must not go away under them. A client that
 * punches a hole into it (FALLOC_FL_PUNCH_HOLE, MADV_REMOVE) makes whoever touches it
 * wait in the kernel until that is through, for seconds, and no signal ends that. The
 * seal F_SEAL_FUTURE_WRITE forbids it, and leaves mappings that are there writable; so
 * client and dataplane map first, then it is sealed, and then an engine looks.
 */
#ifndef URN_CONTROL_SEAL_H
#define URN_CONTROL_SEAL_H

#include <stddef.h>

/*
 * Seal a memfd against holes, and against other seals. Waits for a hole that is being
 * punched: not to be called with a lock that others want. fd: a memfd, mapped as often
 * as it ever shall be, by any process. returns: 0, or an errno value with a sentence's
 * end in why ("the memory ..."); EPERM: somebody sealed its seals before
 */
int urn_seal(int fd, char *why, size_t len);

#endif
