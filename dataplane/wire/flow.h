/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of flows, in wire format (doc/reference/wire.md "Flows"). Behind the BTH comes a
 * struct urn_flow_hdr. The epoch there names one life of the sender's end of a flow: a later life
 * has a larger epoch, also over a restart of the node.
 *
 *   data   segments: each a header and its bytes, padded to 4
 *   ack    struct urn_flow_ack, then struct urn_flow_refused for packets with refused messages,
 *          then struct urn_flow_room if a flag says so
 *
 *   reset  nothing: the data named a start of this node that is over, or is older than the node
 *
 * The destination QP number of the BTH has the engine in its top four bits and
 * URN_FLOW_SLOT or URN_FLOW_SLOT_FIRST below.
 */
#ifndef URN_WIRE_FLOW_H
#define URN_WIRE_FLOW_H

#include "wire/hdr.h"

#include <stdbool.h>

enum {
	URN_FLOW_WINDOW = 256,        /* PSNs from the oldest that is not acknowledged on */
	URN_FLOW_SEGMENTS = 16,       /* segments of a packet, at most */
	URN_FLOW_ENGINE_SHIFT = 20,   /* in the destination QP number */
	URN_FLOW_SLOT = 0xfffff,      /* low bits of that number: the engine is named */
	URN_FLOW_SLOT_FIRST = 0xffffe, /* the node's first engine is meant, whichever that is */
};

struct urn_flow_hdr {
	uint64_t epoch;   /* data: of the sender's end; ack, reset: of the data that it answers */
	uint32_t start;   /* ack, reset: the start of the answering node; data: the start that the sender knows, or an age (below) */
	uint32_t psn;     /* top byte: engine that sends; below: data: oldest PSN not acknowledged, ack: first PSN that has not come */
} __attribute__((packed));

/*
 * Data whose sender knows no start of the node yet says how old its epoch was when it was sent:
 * milliseconds since its first packet, rounded down. A node that was started later than that resets
 * the flow: packets of this epoch may have come to the node's life before. The data may have waited
 * in the network since. Therefore a node keeps nothing of such data before it has been up for
 * URN_FLOW_YOUNG_MS, and tells its start and its own age instead: the answer can only make the node
 * look younger than it is. The sender names a start only if the node is older than the epoch.
 */
enum {
	URN_FLOW_AGE_MAX = 0xffff, /* all ages from here on */
	URN_FLOW_YOUNG_MS = 10000, /* a first packet, or a repeat of one, is in the network no
				      longer than until the node is so old */
	URN_FLOW_UP_MS = 3, /* no node dies and is up again within: such differences say nothing */
	URN_FLOW_START_MIN = 1 << 16, /* a start is never less */
};

/* Kinds of segments. */
enum urn_flow_kind {
	URN_FLOW_WHOLE = 0, /* a message */
	URN_FLOW_PART = 1,  /* a part of a message that is longer than a packet */
	URN_FLOW_VOID = 2, /* nothing any more: the sender let go of a whole message, or had none */
	URN_FLOW_LET_GO = 3, /* no part follows of a long message that its sender let go of */
	URN_FLOW_SEG_KINDS,
};

/* Header of a segment. A whole message needs no more, so that many short messages share a packet.
 */
struct urn_flow_seg {
	uint64_t qid;	  /* target queue; void, let go: 0, ignored */
	uint64_t src_qid; /* source queue; likewise */
	uint16_t bytes;	  /* bytes that follow the header, without their padding; those of a void
			     segment, and of one that lets go, say nothing */
	uint8_t kind;	  /* enum urn_flow_kind */
	uint8_t rsvd;	  /* sent as 0; ignored */
} __attribute__((packed));

/* The header of a segment that tells of a long message: a part, or none any more. */
struct urn_flow_part {
	struct urn_flow_seg seg;
	uint32_t len; /* part: bytes of the message; let go: 0, ignored */
	uint32_t off; /* part: bytes of the message before this part; let go: 0, ignored */
	uint32_t id;  /* number of the message among those of the flow, never 0 */
} __attribute__((packed));

/* Bits of struct urn_flow_ack.flags. */
enum urn_flow_ack_flag {
	URN_FLOW_ACK_HOLES = 1 << 0, /* bitmap has a bit */
	URN_FLOW_ACK_MARKED =
		1 << 1,		    /* packets came with a mark of congestion since the last ack */
	URN_FLOW_ACK_ROOM = 1 << 2, /* a struct urn_flow_room is the last thing of the ack */
};

struct urn_flow_ack {
	uint8_t flags;    /* enum urn_flow_ack_flag */
	uint8_t refused;  /* entries that follow */
	uint16_t age; /* age of the node, ms, rounded down, at most URN_FLOW_AGE_MAX; 0 if the data
			 named its start */
	uint8_t bitmap[URN_FLOW_WINDOW / 8]; /* bit PSN % 256: the PSN came, ahead of the first that has not */
} __attribute__((packed));

/* A packet with a message that was refused. */
struct urn_flow_refused {
	uint32_t psn;     /* top byte 0 */
	uint8_t code[URN_FLOW_SEGMENTS]; /* by segment: URN_MSG_DONE, or the code of the refusal */
} __attribute__((packed));

/*
 * Payload that the answering node takes in a packet of data. The network between may carry less: a
 * sender makes packets beyond its path MTU only after a probe of that length was acknowledged,
 * which is a void segment with bytes behind it.
 */
struct urn_flow_room {
	uint16_t
		mtu; /* bytes behind the flow header; less than URN_FLOW_MTU_MIN: nothing is said */
	uint16_t rsvd; /* sent as 0; ignored */
} __attribute__((packed));

_Static_assert(sizeof(struct urn_flow_hdr) == 16, "flow header");
_Static_assert(sizeof(struct urn_flow_seg) == 20, "segment");
_Static_assert(sizeof(struct urn_flow_part) == 32 && offsetof(struct urn_flow_part, id) == 28,
	       "segment of a long message");
_Static_assert(sizeof(struct urn_flow_ack) == 36 && offsetof(struct urn_flow_ack, age) == 2,
	       "flow ack");
_Static_assert(sizeof(struct urn_flow_refused) == 20, "refused");
_Static_assert(sizeof(struct urn_flow_room) == 4, "room");

enum {
	/* Refused packets that a receiver remembers, and an ack for the smallest MTU of a flow has room for. */
	URN_FLOW_REFUSED_MAX = 40,
	URN_FLOW_MTU_MIN = 1024, /* bytes of payload behind the flow header that every node takes */
};
_Static_assert(sizeof(struct urn_flow_ack) +
			       URN_FLOW_REFUSED_MAX * sizeof(struct urn_flow_refused) +
			       sizeof(struct urn_flow_room) <=
		       URN_FLOW_MTU_MIN,
	       "an ack fits a packet");

/* Destination QP number of packets to an engine. */
static inline uint32_t
urn_flow_qpn(uint32_t engine)
{
	return engine << URN_FLOW_ENGINE_SHIFT | URN_FLOW_SLOT;
}

/* True when a segment of this kind has the header of a long message. */
static inline bool
urn_flow_is_long(uint8_t kind)
{
	return kind & 1;
}
_Static_assert((URN_FLOW_PART & 1) && (URN_FLOW_LET_GO & 1), "kinds of long messages");

/* Bytes of the header of a segment of this kind. */
static inline uint32_t
urn_flow_seg_head(uint8_t kind)
{
	return (uint32_t)(urn_flow_is_long(kind) ? sizeof(struct urn_flow_part)
						 : sizeof(struct urn_flow_seg));
}

/* Bytes of a segment's data with their padding. */
static inline uint32_t
urn_flow_pad(uint32_t bytes)
{
	return (bytes + 3) & ~3u;
}

#endif
