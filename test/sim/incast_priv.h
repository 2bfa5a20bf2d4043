/* SPDX-License-Identifier: BSD-3-Clause */
/* Insides of the simulation of many senders: nodes, and what the files of it ask each other. */
#ifndef URN_SIM_INCAST_PRIV_H
#define URN_SIM_INCAST_PRIV_H

#include "incast.h"

#include "switch/switch.h"
#include "transport/flow.h"
#include "transport/tp.h"

enum {
	INCAST_DEPTH = 4, /* WRITEs or messages that a sender has posted at a time */
	INCAST_SAMPLES = 1 << 16,
};

#define INCAST_START 1000000000ull /* ns: when a run begins */

/* A message that a sender posts again and again. */
struct incast_letter {
	struct urn_flow_msg m; /* first; a flow's while posted */
	struct flow *flow;     /* its sender */
	bool posted;	       /* sent, and not answered */
	uint8_t code;	       /* code of the last answer; 0: none yet */
};

/* A node with its memory. Number 0 is the receiver. */
struct node {
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	uint32_t pd, key;
	uint8_t *ram; /* a message */
	uint8_t mac[6], gid[16];
};

/* A sender's program, with both ends of its queue pair, or its messages. */
struct flow {
	struct urn_qp *qp, *peer;
	struct urn_abi_wq *sq;
	struct urn_abi_wq *none[3]; /* queues that are needed and stay empty */
	struct urn_cq cq, none_cq;
	struct incast_letter letter[INCAST_DEPTH]; /* valid for a sender of messages */
	uint32_t posted, done;
	uint64_t begins;   /* ns */
	uint64_t before;   /* `done` when the measurement began */
	uint64_t rx_bytes; /* that came in at the switch until the last sample */
};

struct incast {
	const struct incast_config *c;
	struct incast_result *r;
	struct urn_switch *sw;
	uint64_t now;
	struct node node[INCAST_SENDERS + 1];
	struct flow flow[INCAST_SENDERS];
	uint32_t *sample; /* bytes that waited, INCAST_SAMPLES of them; owner */
	uint32_t samples;
};

/* Say what went wrong; the first word stands. i: of a node or a sender; returns: false */
bool incast_fail(struct incast *s, const char *what, unsigned int i);

/* ---- incast_msg.c: messages over flows, in place of queue pairs */

/* Complete the configuration of a node's transport. i: of the node */
void incast_msg_config(struct urn_tp_config *t, unsigned int i);
void incast_msg_open(struct incast *s, unsigned int i);
/* The sender lets go of its messages. */
void incast_msg_close(struct incast *s, unsigned int i);
/* Post all messages that were answered again. returns: false: one failed */
bool incast_msg_run(struct incast *s, unsigned int i);

#endif
