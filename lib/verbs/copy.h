/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources copied when they are posted.
 *
 * A dataplane in another process reads memory that is not shared with it through the kernel, by a
 * thread that has to be woken. With URNIC_COPY=yes the library copies what a SEND or WRITE sends
 * from such memory into a ring of shared memory, a ring a queue pair, before it publishes the
 * request, which then names the ring. What does not fit at the moment goes as it would without.
 */
#ifndef URN_VERBS_COPY_H
#define URN_VERBS_COPY_H

#include <urnic/verbs.h>

#include <stdint.h>

struct urn_ctx;
struct urn_qp;
struct urn_copy;     /* of a queue pair */
struct urn_copy_map; /* of a context: its regions in memory that is not shared, by key */

/* What the environment says, for a context with a dataplane in another process. returns: 0, or an errno value */
int urn_copy_open(struct urn_ctx *ctx);
void urn_copy_close(struct urn_ctx *ctx);

/* A region is registered: where in memory, and at which address requests name it. */
void urn_copy_note(struct urn_ctx *ctx, const struct ibv_mr *mr, uint64_t iova);
/* It is about to be deregistered. */
void urn_copy_forget(struct urn_ctx *ctx, uint32_t lkey);

/* A ring for a queue pair that the dataplane has made. Without memory for it the pair goes without. */
void urn_copy_create(struct urn_qp *qp, struct ibv_pd *pd);
/* The queue pair is destroyed. */
void urn_copy_destroy(struct urn_qp *qp);
/* Its queues are empty, and begin where they stand. The lock of its send queue is held. */
void urn_copy_reset(struct urn_qp *qp);
/* Look at the requests that are about to be published. The lock of the send queue is held. */
void urn_copy_posted(struct urn_qp *qp);

#endif
