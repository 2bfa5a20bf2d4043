/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider of verbs that stands above another one: it counts the calls of each operation, and
 * passes each on to a context below, as fail-over will to one of several. Told so, it makes
 * objects up instead, and nothing gets past it.
 */
#ifndef URN_TEST_COUNT_H
#define URN_TEST_COUNT_H

#include "verbs/front.h"
#include "verbs/provider/cm.h"

/* An operation's place in the table, and in that of connection management. */
#define COUNT(op) (offsetof(struct urn_verbs_ops, op) / sizeof(void (*)(void)))
#define COUNT_CM(op) (offsetof(struct urn_verbs_cm_ops, op) / sizeof(void (*)(void)))

enum {
	COUNT_OPS = sizeof(struct urn_verbs_ops) / sizeof(void (*)(void)),
	COUNT_CM_OPS = sizeof(struct urn_verbs_cm_ops) / sizeof(void (*)(void)),
	COUNT_DEVICES = 2,
};

/* A device of the provider, above another one; the lists of devices have it when `open` is set. */
struct count_device {
	struct ibv_context *(*open)(void *arg); /* opens the one below; NULL: there is no device */
	void *arg;
	bool offered; /* the provider's */
};

struct count {
	unsigned int calls[COUNT_OPS]; /* by COUNT(): how often the front called the operation */
	unsigned int cm[COUNT_CM_OPS]; /* by COUNT_CM() */
	struct count_device device[COUNT_DEVICES]; /* for discover() to find */
	unsigned int polls, batches;   /* calls of ibv_start_poll() and ibv_wr_start() */
	bool made_up;		       /* nothing is passed on */
	int fail;		       /* errno value of calls that make objects; 0: they succeed */
};

/* Counts over all contexts of the provider; the test resets them. */
extern struct count count;

/* Argument of open() and identify(): the struct ibv_context below, taken over. */
extern const struct urn_verbs_ops count_ops;

/* Add the provider to the front's list, if it is not there. */
void count_register(void);
/* Take back the devices that discover() put on offer. */
void count_withdraw(void);

#endif
