/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail is one side's path to the other: a dataplane of its own (EAL, memif port,
 * engine, adapter) and one RC queue pair on it, with the buffers registered; or register
 * sets instead of the queue pair (rail_msg.h).
 * The thread that opens the rail also polls it: cp_rail_turn() is one turn of the
 * engine, so program and NIC share a core without a lock between them.
 *
 * Or a rail is an adapter of a dataplane that is a process of its own: then there is
 * no engine to turn, and the buffers are in memory that is shared with the dataplane.
 */
#ifndef URN_CP_RAIL_H
#define URN_CP_RAIL_H

#include "common/endpoint.h"
#include "common/node.h"
#include "oob.h"
#include "proto.h"

#include <stdbool.h>
#include <stdint.h>

struct cp_rail_config {
	bool server;         /* makes the memif socket, and lets the peer write to its slots */
	const char *memif;   /* the socket to connect to; server: NULL, one is made */
	bool session;	     /* attached: to the virtual device; attach is not NULL */
	const char *attach;  /* socket of the dataplane to attach to, "auto"; NULL: have our own */
	const char *node;    /* attach: name of the node or adapter; NULL: the default one */
	const char *capture; /* pcapng file, or NULL */
	uint32_t mtu;        /* largest path MTU wanted, bytes */
	uint32_t slots;      /* chunks in flight */
	uint32_t chunk;      /* bytes of a slot */
	bool no_icrc;
	bool over_msg; /* over messages of register sets instead of a queue pair */
	enum urn_idle idle;
};

enum cp_event_type {
	CP_EV_WRITTEN, /* our WRITE number seq completed */
	CP_EV_CHUNK,   /* the peer's WRITE number seq of `len` bytes arrived */
	CP_EV_MSG,     /* the peer's message arrived */
};

struct cp_event {
	enum cp_event_type type;
	uint32_t seq;       /* low 32 bits of a chunk's sequence number */
	uint32_t len;       /* bytes of the chunk */
	struct cp_msg msg;
};

struct cp_rail {
	struct cp_rail_config cfg;
	struct urn_node node;        /* context, and our own dataplane unless attached */
	char memif[CP_PATH_MAX];     /* socket that joins the two ports */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *slot_mr, *recv_mr, *send_mr;
	struct cp_rail_msg *msg; /* over messages (rail_msg.c); owner; NULL: over the queue pair */
	uint8_t **at;  /* over messages: address of each slot, valid while it holds a chunk; owner;
			  else NULL */
	uint8_t *slot; /* slots * chunk bytes; owner: this struct; NULL over messages */
	uint8_t *recv;               /* posted receives, CP_MSG_MAX bytes each; owner: this struct */
	uint8_t *send;               /* messages being sent, CP_MSG_MAX bytes each; owner: this struct */
	uint32_t n_recv, n_send;
	uint32_t *free_send;         /* stack of send buffers that are free; owner: this struct */
	uint32_t n_free_send;
	uint32_t empty;              /* turns in a row with nothing to do */
	struct urn_ep_addr local;    /* this side's address, told to the peer */
	uint64_t peer_addr;          /* sender: address of the receiver's slot 0 */
	uint32_t peer_rkey;
	uint32_t mtu;                /* path MTU in use, bytes; once connected */
	struct ibv_wc failed; /* completion that ended the connection; status SUCCESS: none */
};

/*
 * Start the EAL of this process. Once, before cp_rail_open(), unless cp_rail_open()
 * attaches. returns: 0, or -1 with *err
 */
int cp_rail_start(struct cp_rail *r, struct urn_err *err);
/* Bring port, dataplane and queue pair up. returns: 0, or -1 with *err */
int cp_rail_open(struct cp_rail *r, const struct cp_rail_config *cfg, struct urn_err *err);
/* Connect to the peer. queue: the peer's, over messages. returns: 0, or -1 with *err */
int cp_rail_connect(struct cp_rail *r, const struct urn_ep_addr *peer, const struct cp_queue *queue,
		    struct urn_err *err);
/* This side's queue, to be told to the peer; all zero without messages. */
void cp_rail_queue(const struct cp_rail *r, struct cp_queue *own);
/* True when the link is up. Call about once a millisecond. */
bool cp_rail_link(struct cp_rail *r);
/*
 * Take everything down, the EAL too; safe at any stage. returns: 0, or -1 with
 * *err when the capture file is not whole
 */
int cp_rail_close(struct cp_rail *r, struct urn_err *err);

/* Run a few turns of the engine. returns: amount of work that the engine did */
unsigned int cp_rail_turn(struct cp_rail *r);
/* After a round without work (busy == 0): spin, pause or sleep, as configured. */
void cp_rail_idle(struct cp_rail *r, unsigned int busy);

/*
 * Next event. returns: 1 with *ev, 0 when there is none, -1 with *err when the
 * queue pair failed or the peer sent a malformed message
 */
int cp_rail_poll(struct cp_rail *r, struct cp_event *ev, struct urn_err *err);

/* Slot of a chunk. */
static inline uint8_t *
cp_rail_slot(const struct cp_rail *r, uint64_t seq)
{
	if (r->at != NULL)
		return r->at[seq % r->cfg.slots];
	return r->slot + (seq % r->cfg.slots) * r->cfg.chunk;
}

/*
 * WRITE a slot's first len bytes (1..chunk) to the same slot of the peer, with
 * seq as immediate. The caller must not touch the slot until CP_EV_WRITTEN. At
 * most `slots` WRITEs may be in flight. returns: 0, or -1 with *err
 */
int cp_rail_write(struct cp_rail *r, uint64_t seq, uint32_t len, struct urn_err *err);
/* SEND a message. returns: 1; 0 when all buffers are in use: retry later; -1 with *err */
int cp_rail_send(struct cp_rail *r, const struct cp_msg *msg, struct urn_err *err);

/* The counters of this side's dataplane, so far; attached: zeroes, for the dataplane's are not this side's alone. */
void cp_rail_counters(struct cp_rail *r, struct urn_counters *out);

#endif
