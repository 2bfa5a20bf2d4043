/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints without a dataplane: one engine's, a transport that is only time, timers and a
 * schedule, memory, and flows that hold messages until the test delivers and answers them.
 */
#ifndef TEST_AM_UNIT_RIG_H
#define TEST_AM_UNIT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "am/priv.h"

enum {
	ENDS = 4,
	NO_CHANNEL = 3, /* the end without a channel */
	MEM = 1 << 19,	/* bytes of an endpoint's memory */
	GUARD = 4096,	/* bytes around it that nobody may write */
	GUARD_BYTE = 0xa5,
	ENTRIES = 16,
	RANGES = 64,
	MSGS = 8192, /* messages that flows can hold */
	MTU = 1024,
	HEADER = 32,	  /* bytes of a message before those of memory */
	CHUNK = MTU - 64, /* whole cache lines: bytes of memory in a packet (AM-4) */
};

/* An endpoint. */
struct end {
	struct urn_am_ep *ep; /* NULL: closed */
	struct urn_abi_am_ep *regs;
	uint8_t *mem; /* MEM bytes */
	uint32_t lkey;
	uint32_t posted, read;
	uint64_t key; /* key of all its memory, with every right */
};

struct rig {
	struct urn_tp *tp;
	struct urn_am *am;
	struct urn_mem *urn_mem;
	uint32_t pd;
	struct urn_tp_share *client[2];
	struct end end[ENDS];
	struct urn_flow_msg *held[MSGS]; /* messages that flows hold, the oldest first */
	uint8_t node[MSGS][16];		 /* ... and their targets */
	unsigned int held_n;
	uint8_t refuse; /* code that urn_flow_send() returns; 0: messages are taken */
	bool grow;	/* messages that flows hold are in no packet: they may grow */
};
extern struct rig rig;

int rig_setup(void **state);
int rig_teardown(void **state);
void rig_close(unsigned int i);
/* Deregister the memory of end i. */
void rig_deregister(unsigned int i);
uint64_t rig_qid(unsigned int i);
void rig_gid(uint8_t gid[16], uint8_t node);
/* Write a command of end i for memory of end `to`, on node 9, and ring. remote, local: offsets */
struct urn_abi_am_cmd *rig_next(unsigned int i, uint8_t op, unsigned int to, uint64_t remote,
				uint64_t local, uint32_t len);
void rig_post(unsigned int i);
void rig_command(unsigned int i, uint8_t op, unsigned int to, uint64_t remote, uint64_t local,
		 uint32_t len);
/* The same, by the way TAGGED. */
void rig_tagged(unsigned int i, uint8_t op, unsigned int to, uint64_t remote, uint64_t local,
		uint32_t len);
void rig_turn(uint64_t now);
/* Take message n from those that flows hold, and answer it. */
void rig_answer(unsigned int n, uint8_t code);
/* Deliver message n, as from node 9 or another, without an answer. returns: enum urn_msg_code, or
 * URN_FLOW_GONE: nothing was delivered */
uint8_t rig_deliver(unsigned int n, uint8_t node);
/* Deliver and answer all messages, and those that come of it. */
void rig_run(void);
/* Message n, parsed; its data is valid until the next call. */
struct urn_am_msg rig_parsed(unsigned int n);
/* Deliver a message that a test made. returns: enum urn_msg_code */
uint8_t rig_forge(const struct urn_am_msg *m, uint64_t from, uint8_t node, uint64_t to);
/* Deliver these bytes, as of node 9. returns: enum urn_msg_code */
uint8_t rig_bytes(const uint8_t *data, uint32_t len, uint64_t from, uint64_t to);
/* The next event of end i has this code. */
void rig_expect(unsigned int i, uint8_t code, uint64_t bytes);
/* End i has no event. */
void rig_no_event(unsigned int i);
uint64_t rig_count(enum urn_counter id);

#endif
