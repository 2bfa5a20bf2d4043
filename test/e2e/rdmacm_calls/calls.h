/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of RDMA-CM that no packaged program makes, by the system's headers alone. The process has
 * the devices of two nodes: the server's address is node a's, the client's is node b's.
 */
#ifndef RDMACM_CALLS_H
#define RDMACM_CALLS_H

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVER "10.0.0.1"
#define CLIENT "10.0.0.2"
#define PORT 7790

/* End the program, because what the text says does not hold. */
_Noreturn void differs(const char *what, const char *file, int line);
/* End the program unless two numbers are equal. what: the text of the comparison */
void equal(long long got, long long want, const char *what, const char *file, int line);
#define EQUAL(got, want) \
	equal((long long)(got), (long long)(want), #got " is to be " #want, __FILE__, __LINE__)
/* End the program unless a condition holds. */
#define CHECK(cond) ((cond) ? (void)0 : differs(#cond, __FILE__, __LINE__))
/* End the program unless a call fails with an errno value. */
#define FAILS(call, err) (errno = 0, EQUAL(call, -1), EQUAL(errno, err))

/* An IPv4 address of a node. port: in the host's byte order */
struct sockaddr_in address(const char *text, uint16_t port);
/* An id with a route from the client's node to the server's, on a channel. */
struct rdma_cm_id *routed(struct rdma_event_channel *channel, uint16_t port);
/* An id that listens at the server's address. */
struct rdma_cm_id *listening(struct rdma_event_channel *channel, uint16_t port);
/* Wait for the next event, which has that type, and acknowledge it. returns: its id */
struct rdma_cm_id *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* True when no event waits at a channel. */
int quiet(struct rdma_event_channel *channel);

/* The cases; each ends the program at the first difference. */
void addrinfo_case(void);
void endpoint_case(void);
void endpoint_bad_case(void);
void queue_pair_case(void);
void notify_case(void);

#endif
