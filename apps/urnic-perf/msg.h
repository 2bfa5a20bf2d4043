/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of messages without connections: msg_rate, msg_lat, msg_incast. Register sets of one
 * or several nodes send to one queue of node B; in msg_lat the queue's owner sends each message
 * back.
 *
 * A message counts when its answer was DONE. At the end each sender's count is compared with what
 * the reader of the queue found and checked of it.
 */
#ifndef URN_PERF_MSG_H
#define URN_PERF_MSG_H

#include "common/msg_port.h"
#include "perf.h"

#define MSG_SLOTS 4u /* messages that a set's send buffer holds; they have different bodies */
#define MSG_SLOT_MAX 16384u /* bytes of a message from which on there is one */

/* A register set that sends. */
struct msg_sender {
	struct urn_regset set;
	uint64_t rung_at; /* TSC when the doorbell was rung last */
	uint64_t seq;	  /* number of the message rung last; messages count from 1 */
	uint64_t done;	  /* messages that were answered DONE */
	uint64_t maybe;	  /* messages that failed and may be in the queue all the same */
	bool pending;	  /* a message is on its way */
} __attribute__((aligned(64)));

/* A sender, as the reader of its target queue knows it; the reader's thread. */
struct msg_source {
	uint64_t qid;	 /* number of the sender's queue */
	uint8_t gid[16]; /* address of its node */
	uint64_t got;	 /* messages that came, each checked */
	uint64_t seq;	 /* number of the last one */
};

/* One end of a measurement: struct side, and sets of it. */
struct msg_end {
	struct side side; /* first: steps get it */
	struct msg_end *peer;
	struct urn_msg_port
		port[PERF_NODES_MAX]; /* A of msg_incast: one a node; else the first only */
	struct msg_sender *sender;    /* sets that send; owner */
	uint32_t senders;
	uint64_t done;		      /* messages that were answered DONE, of all senders */
	uint64_t rung_at;	      /* msg_lat, A: TSC when the doorbell was rung last */
	uint32_t pending;	      /* senders whose message is on its way */
	uint32_t next;		      /* sender to look at next; msg_lat: the one that sends next */
	struct urn_regset queue;      /* receive queue, B's, and in msg_lat A's; else not open */
	struct urn_regset *reads;     /* the queue that this side reads; NULL: none */
	struct msg_source *source;    /* the peer's senders; with reads; owner */
	uint32_t sources;	      /* number of them */
	bool up;		      /* all queues take messages */
	bool owing;		      /* msg_lat, B: an answer is to be sent */
	bool waiting;		      /* msg_lat, A: the answer has not come */
	bool idle_turn;		      /* the turn before found nothing */
	uint64_t code[URN_MSG_CODES]; /* answers, by code, URN_MSG_MAY_BE_THERE taken off */
};

/* Steps of the sides (msg_step.c). */
unsigned int msg_send_step(struct side *s, uint64_t now);
unsigned int msg_read_step(struct side *s, uint64_t now);
unsigned int msg_ping_step(struct side *s, uint64_t now);
unsigned int msg_pong_step(struct side *s, uint64_t now);

/* Number of message slots in a send buffer. */
static inline uint32_t
msg_slots(const struct perf_opts *o)
{
	return o->size < MSG_SLOT_MAX ? MSG_SLOTS : 1;
}

/* Bytes from slot to slot. */
static inline uint64_t
msg_stride(const struct perf_opts *o)
{
	return (o->size + 63) & ~63ull;
}

#endif
