/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider of verbs that stands above another one: it counts the calls of each operation, and
 * passes each on to a context below, as fail-over will to one of several. Told so, it makes
 * objects up instead, and nothing gets past it.
 */
#ifndef URN_TEST_COUNT_H
#define URN_TEST_COUNT_H

#include "verbs/front.h"

/* An operation's place in the table. */
#define COUNT(op) (offsetof(struct urn_verbs_ops, op) / sizeof(void (*)(void)))

enum { COUNT_OPS = sizeof(struct urn_verbs_ops) / sizeof(void (*)(void)) };

struct count {
	unsigned int calls[COUNT_OPS]; /* by COUNT(): how often the front called the operation */
	unsigned int polls, batches;   /* calls of ibv_start_poll() and ibv_wr_start() */
	bool made_up;		       /* nothing is passed on */
	int fail;		       /* errno value of calls that make objects; 0: they succeed */
};

/* Of all contexts of the provider; the test resets it. */
extern struct count count;

/* Argument of open() and identify(): the struct ibv_context below, taken over. */
extern const struct urn_verbs_ops count_ops;

#endif
