/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources copied when they are posted.
 *
 * A dataplane in another process reads memory that is not shared with it through the kernel, by a
 * thread that has to be woken. With URNIC_COPY=yes the library copies the data of a SEND or WRITE
 * from such memory into a ring of shared memory, a ring a queue pair, before it publishes the
 * request, which then names the ring. Data that does not fit at the moment, or that the process
 * can't read, is not copied: then the dataplane reads it, or reports the error.
 */
#ifndef URN_VERBS_COPY_H
#define URN_VERBS_COPY_H

#include <urnic/verbs.h>

#include <stdint.h>

struct urn_abi_req;
struct urn_ctx;
struct urn_adapter_qp;
struct urn_copy;     /* ring of a queue pair */
struct urn_copy_map; /* a context's regions in memory that is not shared, by key */

/* Read URNIC_COPY, for a context with a dataplane in another process. returns: 0, or an errno value */
int urn_copy_open(struct urn_ctx *ctx);
void urn_copy_close(struct urn_ctx *ctx);

/* Note a region that was registered by this call, under this key. */
void urn_copy_note(struct urn_ctx *ctx, const struct urn_abi_req *req, uint32_t lkey);
/* Forget a region that is about to be deregistered. */
void urn_copy_forget(struct urn_ctx *ctx, uint32_t lkey);

/*
 * The queue pair may send now: make a ring for it if the context has regions to copy from. Without
 * memory, or with 64 rings of the context, the queue pair has none. No lock is held.
 */
void urn_copy_connected(struct urn_adapter_qp *qp);
/* The queue pair is destroyed: give its ring back. */
void urn_copy_destroy(struct urn_adapter_qp *qp);
/* The queue pair's queues are empty, and go on at their present indices. The send queue's lock is held. */
void urn_copy_reset(struct urn_adapter_qp *qp);
/* Copy the data of requests that are about to be published. The send queue's lock is held. */
void urn_copy_posted(struct urn_adapter_qp *qp);

#endif
