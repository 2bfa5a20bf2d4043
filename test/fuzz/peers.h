/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane with a socket, and programs that speak its protocol by hand
 * (lib/abi/socket.h): what the socket's target stands on. The server has threads of
 * its own; whatever is asked is waited for.
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
	PEERS_SHARED = 65536, /* bytes of the memory that is shared */
	QUOTA_QP = 3,
	QUOTA_CQ = 4,
	QUOTA_SRQ = 2,
	QUOTA_MR = 5, /* of a user */
};

/* Handles by what they name. */
enum peers_kind { PD, MR, MW, CQ, SRQ, QP, AH, SHARE, CHANNEL, ID, KINDS };

struct peers_conn {
	int fd; /* -1: none */
	uint32_t serial;
	uint32_t h[KINDS][PEERS_HELD]; /* given out last */
	uint32_t n[KINDS];
};

struct peers {
	struct urn_dp *dp;
	struct urn_engine *e;
	struct urn_adapter *a;
	struct urn_port *port[2]; /* of the adapter; the wire's end */
	struct urn_server *server;
	struct sockaddr_un addr;
	uint8_t *shared; /* what the sealed memfd holds, as mapped here */
	struct peers_conn conn[PEERS_CONNS];
	unsigned int fds; /* descriptors open before the input: nobody is connected */
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

/* Once a process. */
void peers_init(void);
/* Time passes, ns, and the engine has a turn. Between those calls run in the server's threads. */
void peers_turn(uint64_t ns);
/* Let the server work; since: when the caller began to wait for `what`, which must come to pass. */
void peers_yield(time_t since, const char *what);
unsigned int peers_count_fds(void);

/* Connect, after hanging up. */
void peers_dial(struct peers_conn *c);
void peers_hang_up(struct peers_conn *c);
/* Hello, and open the adapter. */
void peers_begin(struct peers_conn *c);
/* Send n bytes, with descriptors. returns: they went */
bool peers_say(struct peers_conn *c, const void *p, size_t n, const int *fds, unsigned int fds_n);
/* Wait for an answer. returns: there was one; else the connection is over, and hung up */
bool peers_hear(struct peers_conn *c, struct urn_sock_answer *a);
/* A question of a kind, with a right head. */
struct urn_sock_ask peers_question(struct peers_conn *c, uint16_t kind);
/* Is the answer one to this question, and whole? */
void peers_check(const struct urn_sock_ask *q, const struct urn_sock_answer *a);
/* Send a question and wait for its answer. returns: there was one */
bool peers_ask(struct peers_conn *c, const struct urn_sock_ask *q, struct urn_sock_answer *a,
	       const int *fds, unsigned int n);

#endif
