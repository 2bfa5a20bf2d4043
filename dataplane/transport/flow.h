/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: reliable channels from node to node, for messages without a connection (doorbell.md DB-6,
 * DB-7; doc/inside/messages.md). A flow leads from this engine to one engine of one node. The first
 * message makes it, without a handshake; it ages out when idle. Messages of a flow are delivered
 * once each, in no order among each other.
 *
 *   sender    messages ─► packets, each with several short messages or a part of a long one ─► PSNs
 *   receiver  packets in any order within a window ─► messages ─► deliver() of the user
 *             ─► acknowledgement: the PSNs that came, and a code for each refused message
 *
 * The user of flows (dataplane/msg) keeps queues and register sets; flows know neither.
 *
 * A message need not be in one place. One with `head` has that many bytes at `data`, and the user's
 * gather() writes the others straight into each packet that holds them, first or repeated. Long
 * pieces get copied and summed up for the ICRC in one pass (urn_flow_slice_put()).
 */
#ifndef URN_TRANSPORT_FLOW_H
#define URN_TRANSPORT_FLOW_H

#include "abi/msg.h"

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct urn_flow_strand;
struct urn_tp;
struct urn_tp_share;
struct urn_work;

/*
 * A message to be sent, in memory of its user, from urn_flow_send() until answered() was called or
 * urn_flow_forget() returned. The user sets the fields of the first part and leaves the others
 * alone.
 */
struct urn_flow_msg {
	const uint8_t *data; /* len bytes, or the first `head` of them; may change while they are
				read; valid until answered */
	uint32_t len;              /* bytes, at most URN_MSG_MAX */
	uint32_t id;               /* flow's: number of the attempt, for parts of a long message */
	uint64_t qid;              /* target queue */
	uint64_t src_qid;          /* source queue, told to the receiver */
	struct urn_tp_share *owner; /* user's: the client's share on this engine, valid until
				       answered; NULL: no client */

	struct urn_flow_msg *next; /* flow's: next in the queue, or in the same packet */
	union {
		struct urn_flow_msg **pprev; /* flow's: link to it in the queue; valid in a queue */
		struct urn_work *work;       /* flow's: packet that holds it; valid when sent whole */
	};
	struct urn_flow_strand
		*strand; /* flow's: the owner's strand in the flow; NULL: the message is in none */
	uint32_t sent;             /* flow's: bytes that packets were made of */
	uint8_t out; /* flow's: packets in flight that hold a part of it; fewer than URN_FLOW_WINDOW
		      */
	uint8_t head; /* user's, like the first part: bytes at data, less than len; gather() gives
			 the others. 0: all are at data */
	uint8_t code;              /* flow's: enum urn_msg_code of the first refusal of a part; 0: none */
	uint8_t state;             /* flow's: enum urn_flow_msg_state */
};

/* The sender of a message that came. */
struct urn_flow_from {
	uint8_t node[16];          /* GID */
	uint64_t qid;              /* source queue, as its node says */
	bool own;                  /* the message is of this adapter itself */
};

/*
 * A code of answered(), beyond those of enum urn_msg_code: gather() said that the bytes are not
 * there any more. With URN_MSG_MAY_BE_THERE, packets with all bytes were sent before.
 */
enum { URN_FLOW_GONE = 0x7e };

/*
 * The place in a frame where the next bytes of a message go. A user that makes no frames, as in
 * tests, sets `at` and leaves the rest 0.
 */
struct urn_flow_slice {
	uint8_t *at;	    /* where the next byte goes; urn_flow_slice_put() moves it on */
	uint8_t *l3;	    /* IP header of the frame; NULL: the ICRC is written later */
	const uint8_t *end; /* end of the payload: the place of the ICRC; valid with l3 */
	uint32_t payload;   /* bytes of the packet's payload; valid with l3 */
	bool sealed;	    /* the frame has its ICRC */
};

/*
 * Put the next bytes of a message into a frame. Bytes that fill the frame, 1 KiB or more of them,
 * are copied and summed up in one pass: the frame is sealed then. Bytes that begin between words of
 * 4 bytes are copied alone.
 *
 * src: len bytes, at least 1; another thread may change them meanwhile, and the ICRC is that of the
 * frame all the same
 */
void urn_flow_slice_put(const struct urn_tp *tp, struct urn_flow_slice *s, const uint8_t *src,
			uint32_t len);

/* The user of flows. All calls in the engine's thread, out of calls of the transport. */
struct urn_flow_user {
	/*
	 * A message came whole: put it into its queue.
	 * returns: URN_MSG_DONE: it is there; else the code of the refusal (QUEUE_FULL, NO_QUEUE, TOO_LONG,
	 * NOT_PERMITTED or BUSY): nothing was put anywhere
	 */
	uint8_t (*deliver)(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
			   const uint8_t *data, uint32_t len);
	/* The first part of a message of `len` bytes came: may it be put together? returns: as deliver() */
	uint8_t (*admit)(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid, uint32_t len);
	/*
	 * A message was answered; the flow has forgotten it. code: URN_MSG_DONE or an error, perhaps with
	 * URN_MSG_MAY_BE_THERE. The user may send from within the call.
	 */
	void (*answered)(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code);
	/*
	 * Write `bytes` bytes of a message with a head into a packet, those from `off` on behind
	 * the head, by urn_flow_slice_put(to). Called for each packet that is made, also when it is
	 * made again: bytes may have changed meanwhile. NULL: no message has a head. returns:
	 * false: the bytes are not there any more; the message ends with URN_FLOW_GONE. The user
	 * must not send or forget messages from within the call.
	 */
	bool (*gather)(struct urn_tp *tp, const struct urn_flow_msg *m, uint32_t off,
		       uint32_t bytes, struct urn_flow_slice *to);
};

/*
 * Send a message to a node; gid: its address, our own too. The flow is made if there is none.
 *
 * returns: URN_MSG_PENDING: answered() will be called once; else the code of an error, and the
 * message is the caller's again: BUSY: no room for another flow, or no memory; NO_NODE: no address
 * of ours is of its family, or the address is that of a group; BAD_DOORBELL: a message longer than
 * URN_MSG_MAX
 */
uint8_t urn_flow_send(struct urn_tp *tp, const uint8_t gid[16], struct urn_flow_msg *m);
/*
 * Bytes of the longest message to a queue of a node that is expected to fit one packet. A flow that
 * begins puts messages of that length into two, and uses longer packets as soon as node and network
 * are known to carry them.
 */
uint32_t urn_flow_fits(struct urn_tp *tp, const uint8_t gid[16], uint64_t qid);
/*
 * True when the user may put `bytes` bytes behind those of a message, at data, and add them to len:
 * no packet holds the message yet, and it stays a short one.
 */
bool urn_flow_may_grow(const struct urn_flow_msg *m, uint32_t bytes);
/*
 * The user lets go of a message that was not answered: its memory goes. answered() is not called. A
 * message that no flow has is left alone. Not to be called out of answered().
 */
void urn_flow_forget(struct urn_tp *tp, struct urn_flow_msg *m);

/*
 * A packet of a flow came for an engine that this adapter does not have: answer its messages with
 * NO QUEUE, and drop the packet (counted). The packet was handed over by the transport.
 */
void urn_flow_no_engine(struct urn_tp *tp, struct rte_mbuf *m);

/* Flows there are, for reports. In any thread */
uint32_t urn_flow_count(const struct urn_tp *tp);

#endif
