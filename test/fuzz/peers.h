/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane with a socket, and programs that speak its protocol by hand
 * (lib/abi/socket.h): the base of the socket's target. The server has threads of its own;
 * each call waits for its answer.
 */
#ifndef URN_TEST_PEERS_H
#define URN_TEST_PEERS_H

#include "fuzz.h"

#include "abi/socket.h"
#include "control/objects.h"
#include "server/server.h"

#include <sys/un.h>
#include <time.h>

enum {
	PEERS_CONNS = 4,
	PEERS_HELD = 4,
	PEERS_FDS = 12,	      /* most descriptors of a message */
	PEERS_SHARED = 65536, /* bytes of the shared memory */
	QUOTA_QP = 3,
	QUOTA_CQ = 4,
	QUOTA_SRQ = 2,
	QUOTA_MR = 5, /* regions of a user */
};

/* Kinds of handles. */
enum peers_kind { PD, MR, MW, CQ, SRQ, QP, AH, SHARE, CHANNEL, ID, KINDS };

struct peers_conn {
	int fd; /* -1: none */
	uint32_t serial;
	uint32_t h[KINDS][PEERS_HELD]; /* handles given out last */
	uint32_t n[KINDS];
};

struct peers {
	struct urn_dp *dp;
	struct urn_engine *e;
	struct urn_adapter *a;
	struct urn_port *port[2]; /* the adapter's port; the wire's end */
	struct urn_server *server;
	struct sockaddr_un addr;
	uint8_t *shared; /* the sealed memfd, as mapped here */
	struct peers_conn conn[PEERS_CONNS];
	unsigned int fds; /* descriptors open before the input: no client is connected */
};
extern struct peers peers;

/* Descriptors that a message may bring. */
enum {
	FD_SHARE,
	FD_UNSEALED,
	FD_READ_ONLY,
	FD_SHORT,
	FD_PIPE,
	FD_NULL,
	FD_EVENT,
	FD_MEM,
	FD_MAPS,
	FD_SOCKET,
	FD_DIR,
	FD_KINDS
};
extern int peers_fd[FD_KINDS];

/* Call once a process. */
void peers_init(void);
/* Let ns of time pass, and the engine run one turn. Between turns, calls run in the server's threads. */
void peers_turn(uint64_t ns);
/* Let the server work; since: the caller's start of waiting for `what`, which must happen. */
void peers_yield(time_t since, const char *what);
unsigned int peers_count_fds(void);

/* Hang up, and connect again. */
void peers_dial(struct peers_conn *c);
void peers_hang_up(struct peers_conn *c);
/* Say hello, and open the adapter. */
void peers_begin(struct peers_conn *c);
/* Send n bytes, with descriptors. returns: true when they were sent */
bool peers_say(struct peers_conn *c, const void *p, size_t n, const int *fds, unsigned int fds_n);
/* Wait for an answer. returns: true when it came; otherwise the connection has ended, and is closed */
bool peers_hear(struct peers_conn *c, struct urn_sock_answer *a);
/* A question of a kind, with a valid head. */
struct urn_sock_ask peers_question(struct peers_conn *c, uint16_t kind);
/* Check that the answer is one to this question, and complete. */
void peers_check(const struct urn_sock_ask *q, const struct urn_sock_answer *a);
/* Send a question and wait for its answer. returns: true when it came */
bool peers_ask(struct peers_conn *c, const struct urn_sock_ask *q, struct urn_sock_answer *a,
	       const int *fds, unsigned int n);

#endif
