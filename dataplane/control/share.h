/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a client in another process shares with the dataplane: a memfd of
 * its own, mapped here as a whole. It is taken only when it can't shrink
 * (F_SEAL_SHRINK) and lies in ordinary shared memory: a hole punched into huge
 * pages would fault whoever touches it (architecture rule 3). Once mapped it is sealed
 * against holes (seal.h), before a region in it can be made. Control path; the
 * adapter's lock is held, where nothing else is said.
 */
#ifndef URN_CONTROL_SHARE_H
#define URN_CONTROL_SHARE_H

#include <stdint.h>

struct urn_client;
struct urn_share;

/* The piece that holds all of addr..addr+length of the client; *base: where that is here. */
struct urn_share *urn_share_find(struct urn_client *c, uint64_t addr, uint64_t length,
				 uint8_t **base);
/* Bytes of a piece; 0: the client has none of that handle. */
uint64_t urn_share_bytes(const struct urn_client *c, uint32_t handle);
/* A region lies in it, and until urn_share_release() of its key it stays. */
void urn_share_hold(struct urn_client *c, struct urn_share *s, uint32_t key);
void urn_share_release(struct urn_client *c, uint32_t key);
/* The client goes, and all its regions have gone: nobody else knows it. Without the lock. */
void urn_share_drop_all(struct urn_client *c);
/*
 * Map a memfd of this process's own, seal it, and keep it until the process ends, so that
 * clients can share it again and again: for simulations, which are program and dataplane
 * in one. Without the lock. returns 0 or an errno value
 */
int urn_share_keep(int fd, uint64_t length);

#endif
