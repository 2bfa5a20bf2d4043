/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of the provider that counts: each begins with the front's, and owns one of the context
 * below. */
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

/* Set the operations of ibv_start_poll() and so on, and of ibv_wr_start() and so on, which pass on.
 */
void count_cq_ex(struct count_cq *cq);
void count_qp_ex(struct count_qp *qp);

#endif
