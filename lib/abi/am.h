/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of remote memory access (AM-2 to AM-11). An endpoint issues operations on memory of
 * other endpoints, and is the target of theirs; its target side needs no action of the program. An
 * endpoint is a piece of the client's area:
 *
 *   client   one line   commands written, events read
 *   dp       one line   commands taken, events written
 *   cmd      entries lines: the ring of commands, written by the client
 *   event    entries x 16 bytes: the ring of events, written by the dataplane
 *   operand  entries x 16 bytes: operands of the commands that are atomic operations, by the
 *            command's slot; written by the client, copied with the command
 *   range    ranges x 24 bytes: list for URN_CTL_AM_REG, written by the client
 *
 * To issue an operation: write a command into slot client.commands % entries, store client.commands
 * + 1 with release, ring the doorbell bit of the endpoint. The dataplane copies a command once when
 * it takes the command. Each command brings one event, in any order. The dataplane takes a command
 * only while there is room for its event: operations under way and events not read are at most
 * `entries`. A client that read events while commands wait rings again.
 *
 * A client that sleeps arms the endpoint; the next event that is written then brings a
 * struct urn_abi_event of type URN_EVENT_AM at the endpoint's channel.
 */
#ifndef URN_ABI_AM_H
#define URN_ABI_AM_H

#include "abi/am_codes.h"
#include "abi/urn_abi.h"

#include <stdatomic.h>

enum {
	URN_AM_ENTRIES_MAX = 1024,    /* entries of a ring of commands */
	URN_AM_RANGES_MAX = 4096,     /* ranges of an endpoint, all its regions together */
	URN_AM_REGIONS_MAX = 256,     /* regions of an endpoint */
	URN_AM_LEN_MAX = 1 << 30,     /* bytes of one operation */
	URN_AM_ENDPOINTS_MAX = 65535, /* endpoints of one adapter on one engine */
};

/*
 * Number of an endpoint on its node: bits 62-63 = 3, bits 32-61 generation, bits 16-19 engine, bits
 * 0-15 slot. Queues of messages (abi/msg.h) have other numbers; both are targets of messages of
 * flows.
 */
#define URN_AM_QID_BITS (3ull << 62)
#define URN_AM_QID(generation, engine, slot)                           \
	(URN_AM_QID_BITS | ((uint64_t)(generation)&0x3fffffff) << 32 | \
	 ((uint64_t)(engine)&15) << 16 | ((slot)&0xffffu))

static inline int
urn_am_qid_is(uint64_t qid)
{
	return (qid & URN_AM_QID_BITS) == URN_AM_QID_BITS;
}

static inline uint32_t
urn_am_qid_slot(uint64_t qid)
{
	return (uint32_t)qid & 0xffffu;
}

/* Operations. */
enum urn_am_op {
	URN_AM_WRITE = 1, /* local bytes to the target's memory */
	URN_AM_READ = 2,  /* the target's bytes to local memory */
			  /* ... and enum urn_am_atomic_op */
};

/* Bits of struct urn_abi_am_cmd.flags. */
enum urn_am_cmd_flag {
	URN_AM_FENCE = 1 << 0, /* the operation starts when all earlier ones of the endpoint, to
				  any target, have ended, also in error */
	URN_AM_CMD_FLAGS = URN_AM_FENCE,
};

/* A command. Client's. */
struct urn_abi_am_cmd {
	uint8_t op;	  /* enum urn_am_op, or enum urn_am_atomic_op */
	uint8_t way;	  /* enum urn_am_way; atomics: AUTO or DIRECT */
	uint8_t every;	  /* pipelined write: enum urn_am_every, or packets for one reply; else 0 */
	uint8_t flags;	  /* enum urn_am_cmd_flag */
	uint32_t len;	  /* bytes, 1 to URN_AM_LEN_MAX; atomics: 4 or 8 */
	uint64_t qid;	  /* target endpoint */
	uint8_t node[16]; /* target node, its GID */
	uint64_t remote;  /* address at the target; atomics: a multiple of len */
	uint64_t key; /* key of the target's region; 0: memory that the endpoint declared without a
			 key */
	uint64_t local; /* address here; atomics: not used, nor is lkey */
	uint32_t lkey;	/* key of the memory region (URN_CTL_REG_MR) that the local bytes lie in */
	uint32_t id;	/* the client's, handed back in the event */
};

/* Operands of an atomic operation, in host order; 4-byte values in the lower half. Client's. */
struct urn_abi_am_operand {
	uint64_t value;	  /* added or stored */
	uint64_t compare; /* COMPARE_SWAP: compared with the word */
};

/* An event: an operation ended. Dataplane's. */
struct urn_abi_am_event {
	uint32_t id;	 /* id of the command */
	uint8_t code;	 /* enum urn_am_code, perhaps with URN_AM_MAY_BE_THERE */
	uint8_t rsvd[3]; /* 0 */
	uint64_t bytes;	 /* bytes that replies confirmed; atomics: DONE: the word's value before,
			    else 0 */
};

struct urn_abi_am_client {
	_Atomic uint32_t commands; /* written so far; wraps */
	_Atomic uint32_t events;   /* read so far; wraps */
	/*
	 * ARM INTR: the client stores 1, and looks at the number of events again; the side that
	 * fires swaps 0 in.
	 */
	_Atomic uint32_t arm;
	uint8_t rsvd[52];
};

struct urn_abi_am_dp {
	_Atomic uint32_t commands; /* taken so far; wraps */
	_Atomic uint32_t events;   /* written so far; wraps */
	_Atomic uint32_t pending;  /* interrupts fired so far; wraps */
	uint8_t rsvd[52];
};

/* The head of an endpoint's piece of the area; rings and list follow. */
struct urn_abi_am_ep {
	struct urn_abi_am_client client; /* client's line */
	struct urn_abi_am_dp dp;	 /* dataplane's line */
};

/* A range of a region. Client's; copied once by URN_CTL_AM_REG. */
struct urn_abi_am_range {
	uint64_t addr; /* first byte, in the addresses of `lkey` */
	uint64_t len;  /* bytes, not 0 */
	uint32_t lkey; /* key of a memory region of the endpoint's protection domain that holds all
			  of them */
	uint32_t rsvd; /* 0 */
};

_Static_assert(sizeof(struct urn_abi_am_cmd) == 64, "command");
_Static_assert(offsetof(struct urn_abi_am_cmd, node) == 16, "command");
_Static_assert(offsetof(struct urn_abi_am_cmd, remote) == 32, "command");
_Static_assert(offsetof(struct urn_abi_am_cmd, lkey) == 56, "command");
_Static_assert(offsetof(struct urn_abi_am_cmd, flags) == 3, "command");
_Static_assert(sizeof(struct urn_abi_am_operand) == 16, "operands");
_Static_assert(sizeof(struct urn_abi_am_event) == 16, "event");
_Static_assert(sizeof(struct urn_abi_am_client) == 64, "client's line");
_Static_assert(sizeof(struct urn_abi_am_dp) == 64, "dataplane's line");
_Static_assert(offsetof(struct urn_abi_am_client, arm) == 8, "client's line");
_Static_assert(sizeof(struct urn_abi_am_ep) == 128, "head of an endpoint");
_Static_assert(sizeof(struct urn_abi_am_range) == 24, "range");

/* Bytes of an endpoint's piece of the area. entries: a power of two up to URN_AM_ENTRIES_MAX;
 * ranges: up to URN_AM_RANGES_MAX */
static inline uint64_t
urn_am_ep_bytes(uint32_t entries, uint32_t ranges)
{
	return sizeof(struct urn_abi_am_ep) + (uint64_t)entries * sizeof(struct urn_abi_am_cmd) +
	       (uint64_t)entries * sizeof(struct urn_abi_am_event) +
	       (uint64_t)entries * sizeof(struct urn_abi_am_operand) +
	       (uint64_t)ranges * sizeof(struct urn_abi_am_range);
}

/* The ring of commands of an endpoint. */
static inline struct urn_abi_am_cmd *
urn_am_cmds(struct urn_abi_am_ep *ep)
{
	return (struct urn_abi_am_cmd *)(ep + 1);
}

/* The ring of events. */
static inline struct urn_abi_am_event *
urn_am_events(struct urn_abi_am_ep *ep, uint32_t entries)
{
	return (struct urn_abi_am_event *)(urn_am_cmds(ep) + entries);
}

/* The operands, by slot of the ring of commands. */
static inline struct urn_abi_am_operand *
urn_am_operands(struct urn_abi_am_ep *ep, uint32_t entries)
{
	return (struct urn_abi_am_operand *)(urn_am_events(ep, entries) + entries);
}

/* The list of ranges. */
static inline struct urn_abi_am_range *
urn_am_ranges(struct urn_abi_am_ep *ep, uint32_t entries)
{
	return (struct urn_abi_am_range *)(urn_am_operands(ep, entries) + entries);
}

/* Bits of am_reg.flags. */
enum urn_am_reg_flag {
	URN_AM_REG_SPACE =
		1 << 0, /* the memory that peers reach without a key, if the node allows that */
};

#endif
