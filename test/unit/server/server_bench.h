/* SPDX-License-Identifier: BSD-3-Clause */
/* A server of programs, of a dataplane without adapters, and a program's end of its socket. */
#ifndef TEST_SERVER_BENCH_H
#define TEST_SERVER_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "control/objects.h"
#include "server/server.h"

/* Linux before 6.5: a connection's process is known by its number only. */
extern _Atomic bool server_old_kernel;

extern char server_dir[], server_path[64]; /* a folder to be made by main(), and the socket in it */
extern struct urn_dp server_dp;
extern struct urn_server *server;

/* Open a server; the limits of programs, and of those of one user. */
void server_start(unsigned int clients, unsigned int per_uid);

int server_setup(void **state);
/* Nothing is left: no path, no descriptor. */
int server_teardown(void **state);

/* Connect to the socket. returns: the descriptor */
int server_dial(void);
struct urn_sock_ask server_question(uint16_t kind);
/* Read an answer; ask, and read the answer. */
struct urn_sock_answer server_take(int fd);
struct urn_sock_answer server_ask(int fd, const struct urn_sock_ask *q);

/* Connect, and be let in. returns: the descriptor */
int server_comes(void);

/* The server ends the connection. */
void server_hung_up_on(int fd);

struct urn_server_counters server_counts(void);

/* Wait until n connections are open. */
void server_clients(uint64_t n);

#endif
