/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of errors, for control and reports. */
#ifndef URN_CONTROL_EXPLAIN_H
#define URN_CONTROL_EXPLAIN_H

#include "transport/failure.h"

#include <sys/types.h>

struct urn_client;

enum { URN_EXPLAIN_PAST = 64 }; /* records of programs that have gone, of an adapter */

/* A record of a program that has gone. */
struct urn_explain_gone {
	uint32_t client;      /* the program's number as a client */
	pid_t pid;	      /* its process; 0: this one */
	uint8_t engine;	      /* index of the engine whose time the record has */
	struct urn_failure f; /* URN_FAILURE_NONE: this place was never used */
};

/* The latest of these of an adapter, for operators only. Under the adapter's lock. */
struct urn_explain_past {
	uint32_t n; /* records ever kept; the newest is at (n - 1) % URN_EXPLAIN_PAST */
	struct urn_explain_gone ring[URN_EXPLAIN_PAST];
};

/*
 * Keep the records of a client that goes. Under the adapter's lock; the engine knows the client no
 * more.
 *
 * share: the client's, on the engine with index `engine`
 */
void urn_explain_keep(struct urn_client *c, unsigned int engine, const struct urn_tp_share *share);
/*
 * Copy the newest record of a client's queue pair, which may be gone, out of the engine that keeps
 * it. Under the adapter's lock.
 *
 * qpn: any number
 * status: of the completion; see urn_failure_find()
 * f, ago_ns: set: the record, and the time since the error, ns
 * returns: false when the client has no record of such a queue pair
 */
bool urn_explain_find(const struct urn_client *c, uint32_t qpn, uint8_t status,
		      struct urn_failure *f, uint64_t *ago_ns);

#endif
