/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that do to a dataplane what none should, each in a process of its own:
 * messages made by hand, memory and files that stall the kernel, and a good program that
 * must notice nothing.
 */
#ifndef URN_TEST_HOSTILE_H
#define URN_TEST_HOSTILE_H

#include "abi/socket.h"
#include "rig.h"

#include <stdbool.h>

/* A dataplane with a pair of ends that others attach to: *state is its rig. */
int hostile_setup(void **state);
int hostile_teardown(void **state);

/* ---- messages by hand (hostile_sock.c); each fails the test if it can't */

/* True when this is an attacker's process: when the attack fails, the process ends and does not go
 * on as the test. */
extern bool hostile_attacking;

int hostile_dial(const struct rig *r);
struct urn_sock_ask hostile_question(uint16_t kind);
/* Send n bytes with count descriptors, at most 8. */
void hostile_post(int fd, const void *p, size_t n, const int *fds, unsigned int count);
struct urn_sock_answer hostile_take(int fd);
struct urn_sock_answer hostile_ask(int fd, const struct urn_sock_ask *q);
void hostile_hello(int fd);
/* Count descriptors go along, as the program's memory and its map. */
struct urn_sock_answer hostile_open(int fd, const char *name, const int *fds, unsigned int count);

/* The server hung up, whatever it sent before; else the test fails. Closes fd. */
void hostile_hung_up(int fd);
/* returns: true when the server answers another client within ten seconds */
bool hostile_serves(const struct rig *r);

/* ---- stalls of the kernel (hostile_stall.c) */

/*
 * True when the user of this test may stall the kernel so. Always for root: then a stall
 * that fails is an error.
 */
bool hostile_has_userfaultfd(void);
bool hostile_has_fuse(void);
/* A page that a userfaultfd should supply, and never does. *fd: the userfaultfd */
void *hostile_page(int *fd);
/*
 * A file of 4096 bytes in a file system whose server process answers until *mute, and
 * never answers a read or a close. Once a process, while it has one thread. returns: a
 * descriptor open for reading and writing
 */
int hostile_file(_Atomic bool **mute);
/* A socket whose close blocks for an hour. */
int hostile_lingering(void);
/* Let a thread read fd into a page that never comes. Once a process. */
void hostile_read(int fd);
/* Run fn(arg) in a thread. */
void hostile_thread(void *(*fn)(void *arg), void *arg);

/* ---- programs */

/* A program connected to itself, on node a. */
struct hostile_loop {
	struct rig rig;       /* path, end[0] */
	struct ibv_qp *qp[2];
	struct ibv_comp_channel *ch;
};
struct hostile_loop *hostile_attach(const struct rig *r);
/* WRITE 64 bytes to `to`; wait for nothing. */
void hostile_write(struct hostile_loop *m, uint64_t to, uint32_t rkey);

/* The pair of the rig works: bytes go over. */
void hostile_others_go_on(struct rig *r);
/*
 * Another program attaches, makes control calls of each kind and leaves. returns: true
 * when each step was in time
 */
bool hostile_good_program(const struct rig *r);
/* Attach until no descriptors are left for the user. returns: how many programs were taken */
unsigned int hostile_attach_many(const struct rig *r);
/* Waits up to 20 seconds until the server has n connections. returns: how many it has */
uint64_t hostile_clients(const struct rig *r, uint64_t n);
/*
 * Run attack(r, say) in a process of its own, where all descriptors but `say` are closed;
 * attack() returns when the attack is under way. Other clients go on, before and after
 * that process is killed, and the dataplane takes back all that it had.
 */
void hostile_attacked_by(struct rig *r, void (*attack)(const struct rig *r, int say));

#endif
