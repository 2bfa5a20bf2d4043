/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Register sets without a dataplane: one engine's, a transport that is only time, timers and a
 * schedule, a client's area, and flows that take messages and answer when the test says so.
 */
#ifndef TEST_MSG_RIG_H
#define TEST_MSG_RIG_H

#include "msg/priv.h"

enum {
	RIG_ARENA = 8192,  /* bytes of each set's arena */
	RIG_MARGIN = 4096, /* bytes around each set's piece of the area that nobody may write */
	RIG_SETS = 96,
	RIG_MSGS = 256, /* messages that flows can hold */
	RIG_ENGINE = 3,
};

/* A message that a flow holds. */
struct rig_msg {
	struct urn_flow_msg *m; /* NULL: none */
	uint8_t gid[16];
	uint64_t at; /* ns: when it was given */
};

struct rig {
	struct urn_tp *tp;
	struct urn_msg_regs *regs;
	struct urn_tp_share *client[2]; /* shares of two clients */
	uint8_t *area;			/* pieces of all sets, with margins */
	struct urn_msg_rset *set[RIG_SETS];
	struct rig_msg flow[RIG_MSGS];
	unsigned int held;  /* messages that flows hold */
	unsigned int sends; /* calls of urn_flow_send() so far */
	uint8_t refuse;	    /* code that urn_flow_send() returns; 0: messages are taken */
};
extern struct rig rig;

int rig_setup(void **state);
int rig_teardown(void **state);
/* Make set number i, of client i % 2, with this channel. */
void rig_open(unsigned int i, int fd, uint64_t cookie);
/* End set number i. */
void rig_close(unsigned int i);
/* Registers of set number i, and its arena. */
struct urn_abi_msg_set *rig_regs(unsigned int i);
uint8_t *rig_arena(unsigned int i);
/* True when nobody wrote beside the pieces of the sets. */
bool rig_margins(void);
uint64_t rig_qid(unsigned int i);
/* Write a send line of set i, and ring: size bytes at addr, for qid on a node; retry policy: of the
 * line so far. */
void rig_send(unsigned int i, uint64_t addr, uint32_t size, uint64_t qid);
/* Ring the set's doorbell. */
void rig_ring(unsigned int i);
/* Write a configuration, ring, and give a turn. returns: enum urn_msgq_state */
uint32_t rig_configure(unsigned int i, uint64_t base, uint32_t entries, uint32_t entry_size);
/* A turn of the engine at this time, ns, which never goes back: timers, then each scheduled set
 * once. */
void rig_turn(uint64_t now);
/* Answer the message that a flow holds of set i. */
void rig_answer(unsigned int i, uint8_t code);
/* The message that a flow holds of set i; NULL: none. */
struct rig_msg *rig_held(unsigned int i);
/* Code and seq of the set's send status. */
uint8_t rig_code(unsigned int i);
uint32_t rig_answered_seq(unsigned int i);
/* Deliver a message of `len` bytes, all `fill`, from node 1's queue 77. returns: enum urn_msg_code
 */
uint8_t rig_deliver(uint64_t qid, uint32_t len, uint8_t fill);
/* Value of a counter. */
uint64_t rig_count(enum urn_counter id);
/* GID of a node, by number. */
void rig_gid(uint8_t gid[16], uint8_t node);

#endif
