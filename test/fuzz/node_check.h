/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants of a node, whatever frames it got. Each check aborts when it fails. */
#ifndef URN_TEST_NODE_CHECK_H
#define URN_TEST_NODE_CHECK_H

#include "node.h"

/* From here on, count this node's frames that get as far as a QP. */
void node_count_on(struct node *n);

/* After each turn: completions in order and once, counters that add up, accounts that agree. */
void node_check(struct node *n);
/* At rest in the error state: all that was posted has completed, and every pool is full. */
void node_check_end(struct node *n);
/* The QP was reset: its requests and receives without a completion by now never complete. */
void node_forget(struct node *n, struct node_qp *q);
/* Deliver the completions that went by another engine. */
void node_deliver(struct node *n);
/* True when nothing waits any more. */
bool node_at_rest(const struct node *n);
/* Check that a frame sent by the node is valid. */
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
