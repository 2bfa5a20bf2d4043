/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's sockets on a dataplane that is made of register sets: node 10.0.0.1 and fd00::1. The
 * calls of the C library's names are the preload library's here, as in a program under urnic-run.
 */
#ifndef URN_TEST_SOCKETS_RIG_H
#define URN_TEST_SOCKETS_RIG_H

#include "../lib/test.h"

#include "../lib/msg_fake.h"
#include "sockets/twin.h"

#include <urnic/msg.h>
#include <urnic/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define SA(x) ((struct sockaddr *)&(x))

struct rig {
	struct msg_fake *f;
	struct urn_msg_dev *dev;
	int s, t;	      /* sockets; s is bound to port 7 of 10.0.0.1, t is new */
	struct sockaddr_in a; /* the address of s */
	int k;		      /* a socket of the kernel's, unknown to the library, at 127.0.0.1 */
	struct sockaddr_in ka;
};

/* Fixtures; *state is a struct rig. At the end no register set may be left (DB-1). */
int rig_setup(void **state);
int rig_teardown(void **state);

struct sockaddr_in rig_in(const char *text, uint16_t port);
struct sockaddr_in6 rig_in6(const char *text, uint16_t port);
/* The urnic socket of a descriptor; NULL: none. */
struct urn_sock *rig_sock(int fd);
/* Send text from t to s. */
void rig_send(struct rig *r, const char *text);
/* Check that text, and no more, is received by a descriptor within a minute. */
void rig_gets(int fd, const char *text);
/* Check that nothing is there. */
void rig_gets_none(int fd);
/* Run a check in a child of fork(), whose process-wide state is its own. */
void rig_in_child(void (*check)(struct rig *r), struct rig *r);
/* Within a child: end it as failed, unless true. */
#define CHILD_CHECK(x)                                                                      \
	do {                                                                                \
		if (!(x)) {                                                                 \
			dprintf(2, "%s:%d: %s, errno %d\n", __FILE__, __LINE__, #x, errno); \
			_exit(1);                                                           \
		}                                                                           \
	} while (0)
/* The result of a call that fails with an errno value. */
#define FAILS(call, number)                        \
	do {                                       \
		errno = 0;                         \
		assert_int_equal((call), -1);      \
		assert_int_equal(errno, (number)); \
	} while (0)

#endif
