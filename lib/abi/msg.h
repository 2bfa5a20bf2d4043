/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers of reliable connectionless messages (DB-1, DB-2). A register set has one send channel
 * and one receive queue; either may stay unused. A set is five lines in the client's area, each
 * written by one side only:
 *
 *   send     client      the doorbell: address, size, target of a message; seq last
 *   sstat    dataplane   the answer, which names the seq that it answers
 *   conf     client      receive queue: ring, permission, ARM INTR
 *   ctrl     client      RQ HEAD
 *   rstat    dataplane   RQ TAIL, interrupt pending, error
 *
 * A set's arena is a piece of the client's area that was made with the set: the messages to send
 * and the ring of the receive queue lie in it. SEND ADDR and the base of the ring are offsets in
 * the arena.
 *
 * To send: write the message into the arena and the fields of `send`, store send.seq + 1 with
 * release, ring the doorbell bit of the set (abi/doorbell.h). sstat.answer holds the new seq with
 * PENDING, and in the end with the code of the answer. The message's bytes and the fields of `send`
 * stay as they are until then. A doorbell that is rung with a new seq while the answer is PENDING
 * is refused and counted: sstat does not change, and that seq is never sent, whatever rings the set
 * later.
 *
 * To receive: write the fields of `conf`, store conf.seq + 1 with release, ring the doorbell bit,
 * and wait until rstat.conf_seq has that number; rstat.state says whether the configuration was
 * taken. Entries from ctrl.head to before rstat.tail hold messages. Head and tail run free over
 * 2^32; a configuration with entries that is taken sets the tail to 0, and the client's head must
 * be 0 then. To configure a ring that was used, first configure it with no entries and wait until
 * that was taken: the tail stays, and no message comes any more. Then read the entries that are
 * left, store head 0, and configure the ring anew.
 */
#ifndef URN_ABI_MSG_H
#define URN_ABI_MSG_H

#include "abi/msg_codes.h"
#include "abi/urn_abi.h"

#include <stdatomic.h>

enum {
	/* Bytes of the largest message: 1 MiB, and room for a header of the program or of a
	   library. */
	URN_MSG_MAX = (1 << 20) + 4096,
	URN_MSG_ENTRY_MIN = 64, /* bytes of the smallest entry of a ring, its header included */
	URN_MSG_ENTRY_MAX = URN_MSG_MAX + 64, /* ... and of the largest */
	URN_MSG_ENTRIES_MAX = 1 << 16,	      /* entries of a ring */
	URN_MSG_SETS_MAX = 1 << 16,	      /* register sets of one adapter on one engine */
	URN_MSG_ARENA_MAX = 1 << 28,	      /* bytes of an arena */
};

/*
 * Number of a queue on its node, 64 bits:
 *
 *   by number  bit 63 = 0, bits 32-62 generation, bits 16-19 engine, bits 0-15 slot
 *   by name    bits 62-63 = 2, bits 0-31 the name that the owner bound (URN_CTL_MSG_BIND)
 *
 * Numbers with bits 62-63 = 3 are those of endpoints (abi/am.h).
 *
 * The generation is never 0, and differs from that of the slot's queue before, also over a restart
 * of the node. A name leads to the queue that has the name now.
 */
#define URN_MSG_QID_NAMED (1ull << 63)
#define URN_MSG_QID(generation, engine, slot) \
	(((uint64_t)(generation) & 0x7fffffff) << 32 | ((uint64_t)(engine) & 15) << 16 | ((slot) & 0xffffu))
#define URN_MSG_NAME(name) (URN_MSG_QID_NAMED | (uint32_t)(name))

/* Space of names for datagram sockets: the UDP port below. Other programs use names below this number. */
#define URN_MSG_NAME_UDP 0x80000000u

static inline int
urn_msg_qid_is_named(uint64_t qid)
{
	return qid >> 62 == 2;
}

static inline uint32_t
urn_msg_qid_engine(uint64_t qid)
{
	return (uint32_t)(qid >> 16) & 15u;
}

static inline uint32_t
urn_msg_qid_slot(uint64_t qid)
{
	return (uint32_t)qid & 0xffffu;
}

/* The send doorbell. Client's line. */
struct urn_abi_msg_send {
	_Atomic uint32_t seq;     /* number of the doorbell write, stored last; VALID while it is not sstat's */
	uint32_t size;            /* SEND SIZE, bytes; 0 is a message, too */
	uint64_t addr;            /* SEND ADDR, offset in the set's arena */
	uint8_t node[16];         /* TARGET NODE, its GID */
	uint64_t qid;             /* TARGET QID */
	uint32_t retry_us;        /* microseconds between tries, at most 1 s; 0: 100 us */
	uint16_t retries;         /* further tries after an error of retry_kinds; 65535: without end */
	uint8_t retry_kinds;      /* enum urn_msg_retry */
	uint8_t rsvd[17];
};

/* The send status. Dataplane's line. */
struct urn_abi_msg_sstat {
	_Atomic uint64_t answer;  /* seq in the upper half; enum urn_msg_code in the lowest byte */
	uint8_t rsvd[56];
};

/* Receive-queue configuration. Client's line. */
struct urn_abi_msg_conf {
	_Atomic uint32_t seq;     /* number of the configuration, stored last */
	uint32_t entries;         /* RQ ENTRIES, a power of two; 0: the queue takes no messages */
	uint64_t base;            /* ring base, offset in the set's arena, a multiple of 64 */
	uint32_t entry_size;      /* bytes of an entry with its header, a multiple of 64 */
	uint8_t permit_bits;      /* messages of nodes whose GID has these first bits of permit are taken; 0: of all nodes */
	uint8_t flags;            /* enum urn_msgq_flag */
	uint8_t rsvd[2];
	uint8_t permit[16];       /* a GID; valid with permit_bits */
	/*
	 * ARM INTR, apart from the configuration: the client stores 1, and looks at the tail again; the
	 * side that fires swaps 0 in. Arming needs the doorbell bit only while messages wait.
	 */
	_Atomic uint32_t arm;
	uint8_t rsvd2[20];
};

enum urn_msgq_flag {
	URN_MSGQ_OWN_NODE = 1 << 0, /* only messages of this node are taken */
};

/* Receive-queue control. Client's line. */
struct urn_abi_msg_ctrl {
	_Atomic uint32_t head;    /* RQ HEAD: entries that the reader is done with */
	uint8_t rsvd[60];
};

/* Receive-queue status. Dataplane's line. */
struct urn_abi_msg_rstat {
	_Atomic uint32_t tail; /* RQ TAIL: entries ever filled since a configuration with entries
				  was taken */
	_Atomic uint32_t conf_seq; /* number of the configuration that was looked at last */
	_Atomic uint32_t state;   /* enum urn_msgq_state */
	_Atomic uint32_t pending; /* interrupts fired so far */
	_Atomic uint64_t refused; /* messages refused so far: queue full, too long, or not permitted */
	uint8_t rsvd[40];
};

struct urn_abi_msg_set {
	struct urn_abi_msg_send send;
	struct urn_abi_msg_sstat sstat;
	struct urn_abi_msg_conf conf;
	struct urn_abi_msg_ctrl ctrl;
	struct urn_abi_msg_rstat rstat;
};

/* An entry of a ring: this header, then the message. Dataplane's while not between head and tail. */
struct urn_abi_msg_entry {
	uint32_t len;             /* bytes of the message */
	uint32_t flags;           /* 0 */
	uint64_t qid;             /* source queue: its name if it has one, else its number */
	uint8_t node[16];         /* source node, its GID */
};

_Static_assert(sizeof(struct urn_abi_msg_send) == 64, "send doorbell");
_Static_assert(offsetof(struct urn_abi_msg_send, node) == 16, "send doorbell");
_Static_assert(offsetof(struct urn_abi_msg_send, qid) == 32, "send doorbell");
_Static_assert(offsetof(struct urn_abi_msg_send, retry_kinds) == 46, "send doorbell");
_Static_assert(sizeof(struct urn_abi_msg_sstat) == 64, "send status");
_Static_assert(sizeof(struct urn_abi_msg_conf) == 64, "configuration");
_Static_assert(offsetof(struct urn_abi_msg_conf, permit) == 24, "configuration");
_Static_assert(offsetof(struct urn_abi_msg_conf, arm) == 40, "configuration");
_Static_assert(sizeof(struct urn_abi_msg_ctrl) == 64, "control");
_Static_assert(sizeof(struct urn_abi_msg_rstat) == 64, "receive status");
_Static_assert(offsetof(struct urn_abi_msg_rstat, refused) == 16, "receive status");
_Static_assert(sizeof(struct urn_abi_msg_set) == 320, "register set");
_Static_assert(sizeof(struct urn_abi_msg_entry) == 32, "entry header");

#define URN_MSG_ANSWER(seq, code) ((uint64_t)(seq) << 32 | (uint8_t)(code))

static inline uint32_t
urn_msg_answer_seq(uint64_t answer)
{
	return (uint32_t)(answer >> 32);
}

static inline uint8_t
urn_msg_answer_code(uint64_t answer)
{
	return (uint8_t)answer;
}

/* Bits of msg_open.flags. */
enum urn_msg_open_flag {
	URN_MSG_OPEN_NAMED = 1 << 0, /* the set may be bound to a name */
};

/* Bits of msg_bind.flags. */
enum urn_msg_bind_flag {
	URN_MSG_BIND_ANY = 1 << 0, /* any free name of a range, picked by the dataplane */
};

#endif
