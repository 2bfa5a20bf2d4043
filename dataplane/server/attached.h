/* SPDX-License-Identifier: BSD-3-Clause */
/* One program's connection to the server: questions in, answers out. */
#ifndef URN_SERVER_ATTACHED_H
#define URN_SERVER_ATTACHED_H

#include "control/dataplane.h"

#include <sys/socket.h>

struct urn_account;
struct urn_client;
struct urn_limits;

struct urn_attached {
	struct urn_dp *dp;
	const char *node;          /* whose adapters come first in the list; "": as they are; the server's */
	int fd;                    /* the connection; ours */
	struct ucred peer;         /* who it is, as the kernel says */
	int owner_fd;              /* pidfd of that process, ours; negative: why there is none, an errno value */
	struct urn_account *account; /* of its user; the server's */
	const struct urn_limits *limits; /* of one client; the server's */
	struct urn_client *client; /* once it has opened an adapter; ours */
	uint64_t calls;            /* control calls carried out */
	unsigned int fds;          /* descriptors taken from the account for the open adapter */
	bool hello;                /* it has said which versions it speaks */
	bool bad;                  /* it ended because of a message that made no sense */
	bool truncated;            /* ... as more descriptors came than it may send, or than there was room for */
};

/* Find out who is at the other end: owner_fd; -ESRCH: one that has ended. */
void urn_attached_begin(struct urn_attached *s);
/*
 * Has the program left, as far as can be seen without a message or the end of the
 * connection: did it execute another, while a child of its keeps the connection open?
 * Lasts as long as the peer likes.
 */
bool urn_attached_left(const struct urn_attached *s);
/*
 * Take one message and answer it. Waits for no message; but what is done with the
 * peer's memory and descriptors lasts as long as the peer likes. returns: false when
 * the connection is over, by its end or because of what it sent
 */
bool urn_attached_input(struct urn_attached *s);
/* Let everything go that was made over it, and close it. The same holds for this. */
void urn_attached_end(struct urn_attached *s);

#endif
