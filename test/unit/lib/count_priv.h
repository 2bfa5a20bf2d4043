/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the files of the provider that counts. The provider's queues begin with the front's, and
 * own one of the context below.
 */
#ifndef URN_TEST_COUNT_PRIV_H
#define URN_TEST_COUNT_PRIV_H

#include "count.h"

struct count_cq {
	struct ibv_cq_ex ex;
	struct ibv_cq *below; /* NULL: the queue is made up; else extended, too */
	uint32_t got;	      /* completion events handed out */
};

struct count_qp {
	struct ibv_qp_ex ex;
	struct ibv_qp *below; /* NULL: the QP is made up; extended if this one is */
	uint32_t got;	      /* asynchronous events handed out */
};

/* The context below. */
struct ibv_context *count_below(struct ibv_context *c);
/* Memory for an object, or a failure that the test asked for. */
void *count_object(size_t size);

/* Operations in files of their own. */
int count_discover(void);
void *count_make(const struct urn_verbs_origin *from);
extern const struct urn_verbs_cm_ops count_cm_ops;

/* Set the operations of ibv_start_poll() and so on, and of ibv_wr_start() and so on, which pass on.
 */
void count_cq_ex(struct count_cq *cq);
void count_qp_ex(struct count_qp *qp);

#endif
