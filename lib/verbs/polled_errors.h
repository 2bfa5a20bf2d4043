/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions with errors, explained on the standard error when they are polled, for the front. */
#ifndef URN_VERBS_POLLED_ERRORS_H
#define URN_VERBS_POLLED_ERRORS_H

#include <urnic/verbs.h>

#include <stdbool.h>

/* True when URNIC_EXPLAIN_ERRORS asks for it; read once a process. */
bool urn_polled_errors_wanted(void);
/* poll_cq of a context whose errors are explained, in place of its provider's. */
int urn_polled_errors_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/* Explain errors of a new queue that are polled in the extended way. */
void urn_polled_errors_add(struct ibv_cq_ex *cq);
/* The queue is destroyed. One that was never added will do. */
void urn_polled_errors_remove(const struct ibv_cq_ex *cq);

#endif
