/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of a node, whatever it was sent. Each aborts when it does not. */
#ifndef URN_TEST_NODE_CHECK_H
#define URN_TEST_NODE_CHECK_H

#include "node.h"

/* Frames that get as far as a QP count for this node from here on. */
void node_count_on(struct node *n);

/* After each turn: completions in order and once, counters that add up, accounts that agree. */
void node_check(struct node *n);
/* At rest in the error state: all that was posted has completed, every pool is full. */
void node_check_end(struct node *n);
/* The QP was reset: what it was posted and has not completed by now never does. */
void node_forget(struct node *n, struct node_qp *q);
/* Completions that went by another engine arrive. */
void node_deliver(struct node *n);
/* Does nothing wait for anything any more? */
bool node_at_rest(const struct node *n);
/* A frame that it sent is sound. */
void node_judge(struct node *n, struct rte_mbuf *m);

/* A frame that comes alone leaves a trace: a count, or a QP that has changed. */
struct node_trace {
	struct urn_counters c;
	struct urn_qp qp[NODE_QPS];
	uint64_t out;
};
void node_trace_begin(const struct node *n, struct node_trace *t);
void node_trace_end(const struct node *n, const struct node_trace *t, unsigned int frames);

#endif
