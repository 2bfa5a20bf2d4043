/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UNIX socket of a dataplane that is a process of its own: programs attach
 * here (lib/abi/socket.h). A thread accepts, and each connection has a thread of its
 * own, which makes the control calls and takes everything back when the connection ends. A
 * client that stalls that thread - by its memory, map, address space, descriptors - holds up
 * itself and no other. None of this is on the data path.
 */
#ifndef URN_SERVER_SERVER_H
#define URN_SERVER_SERVER_H

#include "control/dataplane.h"
#include "control/quota.h"

#include <sys/types.h>

struct urn_server;

struct urn_server_config {
	const char *path;     /* path of the socket; at most 107 bytes */
	mode_t mode;          /* permissions of the socket; 0: 0600 */
	gid_t gid;            /* group of the socket; (gid_t)-1: the default */
	const char *node;     /* node whose adapters come first for a program that names none; NULL, "": none */
	unsigned int clients; /* clients at a time; 0: 4096 */
	unsigned int clients_per_uid;         /* 0: as many as clients */
	unsigned int look_ms; /* ms between checks that an idle program is still the one that attached; 0: 10000 */
	struct urn_limits per_client, per_uid; /* a limit of 0: none */
	uint64_t queues; /* bytes of areas that queues of all programs together have, or had; 0: no
			    limit */
	bool shared; /* users other than the process's may attach: one gets half of the descriptors
		      */
};

/* Counts, each since the start. */
struct urn_server_counters {
	uint64_t accepted; /* connections */
	uint64_t refused;  /* connections that were too many, or not allowed */
	uint64_t opened;   /* adapters opened */
	uint64_t calls;    /* control calls */
	uint64_t bad;      /* messages that made no sense, each the end of its connection */
	uint64_t truncated; /* bad messages with more descriptors than are allowed, or than there was room for */
	uint64_t clients;  /* connections now */
	uint64_t queue_memory_refused; /* requests for memory of queues that `queues` refused; a
					  queue may do with less, or be refused */
};

/*
 * Listen, and serve programs of dp from threads of its own. dp outlives the
 * server. NULL with *err on failure: the path is taken by another dataplane, too
 * long, or can't be made. A socket left by one that died is replaced.
 */
struct urn_server *urn_server_open(struct urn_dp *dp, const struct urn_server_config *cfg,
				   struct urn_err *err);
/* True when the socket was made in place of one that a dataplane had left, which died. */
bool urn_server_follows_death(const struct urn_server *s);
/*
 * Stop, let all clients go, remove the socket. Some seconds at most. returns: 0;
 * or how many clients can't be let go, because their memory or descriptors stall: then
 * their threads are still there, and neither dp nor its ports may be taken
 * down; end the process. NULL is allowed.
 */
unsigned int urn_server_close(struct urn_server *s);

/*
 * Change limits: those of one client for programs that attach from now on, the numbers of clients
 * for all. Limits of a user and of queues stay. cfg: only clients, clients_per_uid and per_client
 * count; 0 as in urn_server_open(). From any thread.
 */
void urn_server_set_limits(struct urn_server *s, const struct urn_server_config *cfg);

/* From any thread. */
void urn_server_counters(const struct urn_server *s, struct urn_server_counters *out);

#endif
