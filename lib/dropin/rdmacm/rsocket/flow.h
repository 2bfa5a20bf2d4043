/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two directions of a stream, as state without calls: bytes, buffers and credits.
 *
 * Receiving: a ring whose halves are given to the peer in turn. A half is given anew when as many
 * bytes have been read. Each message of the peer's announces bytes that lie in the ring already;
 * bytes that were not given, and messages without a credit, are a fault of the peer's.
 * Sending: a ring of bytes that the adapter has not sent yet, the peer's credits, and the own
 * target list, where the peer writes which of its buffers may be filled.
 */
#ifndef URN_RSOCKET_FLOW_H
#define URN_RSOCKET_FLOW_H

#include "dropin/rdmacm/rsocket/wire.h"

#include <sys/uio.h>

enum {
	URN_RS_BUF_LEAST = 4096, /* bytes of a send or receive buffer */
	URN_RS_BUF_MOST = 1 << 28,
	URN_RS_LOW_WATER = 2048, /* bytes free for a stream to be writable */
	URN_RS_CTRL_SLOTS = 4,	 /* control messages in flight at most */
	URN_RS_CTRL_BYTES = 32,	 /* a slot; room for a map entry */
	URN_RS_FIRST_WRITE =
		2048, /* bytes of a long send's first WRITE; each next has twice as many */
	URN_RS_LONGEST_WRITE = 65536,
};

/* Receiving. */
struct urn_rs_rx {
	uint8_t *buf;	   /* ring, which the peer writes */
	uint32_t size;	   /* bytes, even */
	uint32_t offset;   /* where the next byte to be read is */
	uint32_t given;	   /* bytes that the peer may still announce */
	uint32_t consumed; /* bytes read and not given anew */
	uint32_t give_at;  /* offset of the half that is given next */
	uint32_t bytes;	   /* announced and not read */
	uint32_t *msgs;	   /* ring of messages: bytes left of each */
	uint32_t slots;	   /* that ring's: credits and one */
	uint32_t head, tail;
	uint16_t credits; /* messages that the peer may have unread */
	uint16_t seq;	  /* messages read */
	uint16_t told_at; /* number of messages read at which the peer is told */
};

/* Sending. */
struct urn_rs_tx {
	uint8_t *buf;		    /* ring of bytes that wait for their completion */
	uint32_t size, head, free;  /* bytes */
	uint32_t slots;		    /* free requests of the send queue, for data */
	uint32_t ctrl;		    /* free slots for control messages */
	uint32_t ctrl_next;	    /* slot of the next one */
	uint16_t seq;		    /* messages sent */
	uint16_t limit;		    /* number of messages at which sending stops */
	uint16_t credits;	    /* the peer's, at first */
	uint32_t target;	    /* entry of the target list in use */
	struct urn_rs_sge *targets; /* the own target list, which the peer writes */
	struct urn_rs_sge peer;	    /* the peer's target list; length: entries */
	uint32_t peer_next;	    /* its entry that is written next */
	bool swap;		    /* the peer's byte order is the other one */
};

/* Begin. credits: of the receive queue. msgs: room for credits + 1 numbers */
void urn_rs_rx_init(struct urn_rs_rx *rx, uint8_t *buf, uint32_t size, uint32_t *msgs,
		    uint16_t credits);
/* A message announces bytes. returns: 0; EPROTO: the peer has no right to them */
int urn_rs_rx_data(struct urn_rs_rx *rx, uint32_t bytes);
/* A message without bytes used up a credit. */
void urn_rs_rx_spend(struct urn_rs_rx *rx);
/* Copy bytes to the program. peek: they stay. returns: their number */
size_t urn_rs_rx_read(struct urn_rs_rx *rx, void *to, size_t len, bool peek);
/* True when the peer shall be told new credits. */
bool urn_rs_rx_owes(const struct urn_rs_rx *rx);
/* Tell the peer. *half: offset of a half that is given anew, or -1. returns: the new limit */
uint16_t urn_rs_rx_tell(struct urn_rs_rx *rx, int64_t *half);

void urn_rs_tx_init(struct urn_rs_tx *tx, uint8_t *buf, uint32_t size, uint32_t slots);
/* The peer's private data are there. */
void urn_rs_tx_peer(struct urn_rs_tx *tx, const struct urn_rs_conn *peer);
/* The peer tells credits. returns: 0; EPROTO: more than it has */
int urn_rs_tx_limit(struct urn_rs_tx *tx, uint16_t limit);
/* Where the next bytes may go. returns: false: nowhere at present */
bool urn_rs_tx_target(const struct urn_rs_tx *tx, struct urn_rs_sge *to);
/* True when a program's bytes can be taken. */
bool urn_rs_tx_ready(const struct urn_rs_tx *tx);
/* True when a WRITE can be posted that uses no credit. */
bool urn_rs_tx_room(const struct urn_rs_tx *tx);
/* Note that `bytes` go to the target `to`. */
void urn_rs_tx_use(struct urn_rs_tx *tx, const struct urn_rs_sge *to, uint32_t bytes);
/* Copy bytes into the ring. parts: set to where they lie. returns: number of parts, 1 or 2 */
int urn_rs_tx_copy(struct urn_rs_tx *tx, const void *from, uint32_t bytes, struct iovec parts[2]);
/* A request ended. bytes: that it had in the ring */
void urn_rs_tx_done(struct urn_rs_tx *tx, uint32_t bytes);
/* Address of the peer's entry that is written next. */
uint64_t urn_rs_tx_peer_entry(struct urn_rs_tx *tx);

#endif
