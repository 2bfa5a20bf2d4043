/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of urnic-cp's command line. */
#ifndef URN_CP_OPTS_H
#define URN_CP_OPTS_H

#include "common/loss.h"
#include "dataplane/control/dataplane.h"

#include <stdbool.h>
#include <stdint.h>

enum cp_role {
	CP_PAIR,   /* starts a receiver of its own and sends to it */
	CP_LISTEN, /* receives from the sender that connects to a socket */
	CP_PEER,   /* sends to a listener */
	CP_CHILD,  /* the receiver that CP_PAIR starts */
};

struct cp_opts {
	enum cp_role role;
	const char *to;      /* folder of the received copies; NULL: this side only sends */
	const char *socket;  /* CP_LISTEN, CP_PEER: where the two sides meet */
	const char *attach;  /* socket of a dataplane process, "auto"; NULL: have our own */
	const char *session; /* adapters of a session, "auto", or NULL; then attach is set, too */
	bool kills;	     /* the primary adapter is to be lost */
	uint32_t kill_at;    /* ... when so many percent of all bytes were sent */
	struct urn_loss_spec loss; /* ... in this way */
	const char *plot;	   /* picture of the rate over time, or NULL */
	const char *node;    /* attach: node or adapter for this side; NULL: the default one */
	char nodes[2][32];   /* attach, CP_PAIR: nodes of the sender and of its receiver */
	const char *capture; /* pcapng file, or NULL */
	const char *dir;     /* CP_CHILD: private folder of the pair */
	int fd;              /* CP_CHILD: control socket, inherited */
	bool json;           /* print the summary as JSON */
	bool force;          /* replace files that exist */
	bool no_check;       /* no SHA-256 */
	bool no_icrc;        /* no ICRC, on both sides */
	bool over_msg;	     /* over messages of register sets, not queue pairs */
	bool tuned;          /* an option was given that only the sender may set */
	uint32_t mtu;	     /* largest RoCE path MTU wanted, 256..4096 */
	uint32_t chunk;      /* bytes of one RDMA WRITE */
	uint32_t depth;      /* chunks in flight */
	enum urn_idle idle;  /* idle policy */
	char **files;        /* files to send; owner: argv */
	unsigned int n_files;
};

/* Bounds of --chunk and --depth; both sides check them. */
#define CP_CHUNK_MIN 4096u
#define CP_CHUNK_MAX (64u << 20)
#define CP_DEPTH_MIN 2u
#define CP_DEPTH_MAX 1024u
/* Most memory for the chunks in flight, on each side, bytes. */
#define CP_WINDOW_MAX (1u << 30)

/* The same over messages: a chunk and its head are one message, and the queue is one piece of
 * memory. */
#define CP_MSG_CHUNK_MAX (1020u << 10)
#define CP_MSG_WINDOW_MAX (64u << 20)

#define CP_EXIT_OK 0
#define CP_EXIT_FAILED 1
#define CP_EXIT_USAGE 2

/*
 * Parse the command line. returns: -1 to go on, else the exit code (help,
 * version or an error was printed)
 */
int cp_opts_parse(int argc, char **argv, struct cp_opts *o);

/* True when chunks and their number fit a transfer over messages. */
static inline bool
cp_msg_window_ok(uint32_t chunk, uint32_t depth)
{
	return chunk <= CP_MSG_CHUNK_MAX && (uint64_t)chunk * depth <= CP_MSG_WINDOW_MAX;
}

/* True when mtu is a path MTU of RoCE. */
bool cp_mtu_valid(uint64_t mtu);

#endif
