/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a client in another process shares with the dataplane: a memfd of
 * its own, mapped here as a whole. A memfd is taken only when it can't shrink
 * (F_SEAL_SHRINK) and lies in ordinary shared memory: a hole punched into huge
 * pages would fault the thread that touches it (architecture rule 3). Once mapped the memfd is
 * sealed against holes (seal.h), before a region in it can be made. Control path; the
 * adapter's lock is held, where nothing else is said.
 */
#ifndef URN_CONTROL_SHM_H
#define URN_CONTROL_SHM_H

#include <stdint.h>

struct urn_abi_rep;
struct urn_client;
struct urn_shm;

/* The piece that holds all of addr..addr+length of the client; *base: its address in this process. */
struct urn_shm *urn_shm_find(struct urn_client *c, uint64_t addr, uint64_t length, uint8_t **base);
/*
 * Check that all pages of addr..addr+length, which lies in the piece, are there: the kernel charges
 * a page to the one who touches it first, and that must not be this process. A page that is there
 * stays, because the memfd is sealed against holes. Lets the lock go meanwhile. returns 0, or
 * EFAULT with the reply
 */
int urn_shm_populated(struct urn_client *c, const struct urn_shm *s, uint64_t addr, uint64_t length,
		      struct urn_abi_rep *rep);
/* Note that the region of a key lies in the piece, which stays until urn_shm_release() of that key. */
void urn_shm_hold(struct urn_client *c, struct urn_shm *s, uint32_t key);
void urn_shm_release(struct urn_client *c, uint32_t key);
/* The region of `to` lies from now on where that of `from` lay. */
void urn_shm_move(struct urn_client *c, uint32_t from, uint32_t to);
/* Drop all pieces of a client that goes; its regions have gone, and nobody else knows it. Without the lock. */
void urn_shm_drop_all(struct urn_client *c);
/*
 * Map a memfd of this process's own, seal it, and keep it until the process ends, so that
 * clients can share it again and again: for simulations, where one process is program and
 * dataplane. Without the lock. returns 0 or an errno value
 */
int urn_shm_keep(int fd, uint64_t length);

#endif
