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
	const char *node;          /* node whose adapters come first in the list; "": none; the server's */
	int fd;                    /* the connection; owned */
	struct ucred peer;         /* the program's process and user, by the kernel's word */
	int owner_fd;              /* pidfd of that process, owned; negative: an errno value, why there is none */
	struct urn_account *account; /* the user's account; the server's */
	const struct urn_limits *limits; /* limits of one client; the server's */
	struct urn_client *client; /* once the program has opened an adapter; owned */
	uint64_t calls;            /* control calls carried out */
	uint64_t since;		   /* CLOCK_MONOTONIC, ns: when the client started; valid then */
	unsigned int fds;          /* descriptors taken from the account for the open adapter */
	uint32_t version; /* version agreed on by the latest HELLO; 0: the program has told none */
	bool bad;                  /* the connection ended because of a message that made no sense */
	bool truncated;            /* ... because too many descriptors came, or more than there was room for */
};

/* Find the process at the other end, and set owner_fd; -ESRCH: the process has ended. */
void urn_attached_begin(struct urn_attached *s);
/*
 * True when the program has left without a message or the end of the connection: its process
 * executed another program, while a child keeps the connection open.
 * Lasts as long as the program likes.
 */
bool urn_attached_left(const struct urn_attached *s);
/*
 * Take one message and answer it. Waits for no message; but work on the
 * program's memory and descriptors lasts as long as the program likes. returns: false when
 * the connection is over, by its end or because of a bad message
 */
bool urn_attached_input(struct urn_attached *s);
/* Let everything go that was made over the connection, and close it. Lasts as long as the program likes. */
void urn_attached_end(struct urn_attached *s);

#endif
