/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids in each state, and what the tests expect of them. */
#ifndef TEST_RDMACM_RIG_H
#define TEST_RDMACM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake.h"

#include <netinet/in.h>
#include <rdma/rdma_verbs.h>

#define fails(call, number)                      \
	do {                                     \
		errno = 0;                       \
		assert_int_equal(call, -1);      \
		assert_int_equal(errno, number); \
	} while (0)

extern struct sockaddr_in own, peer;
extern struct rdma_event_channel *channel;

struct ibv_qp_init_attr *qp_attr(void);
int setup(void **state);
int teardown(void **state);
struct rdma_cm_id *make(void);
/* The next event has this type and status. returns: its id */
struct rdma_cm_id *next(enum rdma_cm_event_type type, int status);
void nothing(void);
/* An id with a route. */
struct rdma_cm_id *routed(void);
struct rdma_cm_id *connecting(void);
struct rdma_cm_id *listening(void);
/* Something happens to an id's connection. */
void tell(struct rdma_cm_id *id, enum urn_cm_event_type type, uint16_t reason);
void end(struct rdma_cm_id *id);

#endif
