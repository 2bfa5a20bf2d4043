/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reference model of RC (and what little there is to say of UD): which
 * completions, in which order and with which status, and what memory holds.
 *
 * It is told what programs do - memory they have, keys, requests, receives -
 * and what goes wrong that may change the outcome: a key that is taken away, a
 * QP that its program ends, a wire that may lose more than retries make good.
 * It is not told what the transport does, and shares no code with it: from
 * RoCEv2 it knows the rules of the base transport alone (order, exactly once,
 * what an error ends), and of packets only that a message comes in pieces.
 *
 * What it holds true:
 *
 * - A send queue completes in the order it was posted, each request once; a
 *   request that is not signalled completes only when it fails, and counts as
 *   done when a later one completes.
 * - The first failure of a queue is one for which there is a reason; all behind
 *   it is flushed, and nothing is flushed without a failure.
 * - Requests of a QP take effect at the peer in the order posted, once. So what
 *   a peer's window holds once a request is complete is known to the byte: the
 *   effect of all up to it, and perhaps of those posted behind it.
 * - When a QP failed, some first part of what was not complete took effect, the
 *   last of it perhaps not whole: a first part of its packets.
 * - The n-th message takes the n-th receive, and completes it after everything
 *   posted before the message has taken effect.
 *
 * A verdict is a sentence; NULL: as it should be.
 */
#ifndef URN_SIM_MODEL_H
#define URN_SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_NODES = 8, MODEL_NO_KEY = -1 };

enum model_op {
	MODEL_SEND,
	MODEL_SEND_IMM,
	MODEL_SEND_INV,
	MODEL_WRITE,
	MODEL_WRITE_IMM,
	MODEL_READ,
	MODEL_CMP_SWAP,
	MODEL_FETCH_ADD,
	MODEL_COUNT, /* fetch-and-add of 1 to a counter that all QPs share */
	MODEL_BIND,
	MODEL_LOCAL_INV,
	MODEL_OPS,
};

/* Rights that a key gives. */
enum model_right {
	MODEL_LOCAL_WRITE = 1 << 0,
	MODEL_REMOTE_WRITE = 1 << 1,
	MODEL_REMOTE_READ = 1 << 2,
	MODEL_REMOTE_ATOMIC = 1 << 3,
};

/* Reasons for which a request may fail, or must. */
enum model_reason {
	MODEL_WHY_LOCAL = 1 << 0,  /* its own memory cannot be used */
	MODEL_WHY_REMOTE = 1 << 1, /* the peer's key, range or right */
	MODEL_WHY_SHORT = 1 << 2,  /* a receive that is too small */
	MODEL_WHY_PEER = 1 << 3,   /* trouble of the peer's own: its receive, its memory */
	MODEL_WHY_LOST = 1 << 4,   /* nobody answers */
	MODEL_WHY_RNR = 1 << 5,    /* no receive for too long */
	MODEL_WHY_BIND = 1 << 6,   /* window cannot be bound or invalidated */
	MODEL_WHY_REFUSED = 1 << 7, /* the peer finds that the request makes no sense */
};

/* A send request as posted. */
struct model_request {
	uint64_t wr_id;
	uint8_t op;          /* enum model_op */
	bool signalled, fence, in_line;
	uint32_t len;        /* bytes of the message */
	uint32_t local;      /* where they lie, or go, in the memory of the QP's node; bind: begin */
	uint32_t remote;     /* WRITE, READ, atomics: where in the memory of the peer's node */
	uint32_t seed;       /* SEND, WRITE: the bytes (rng.h) */
	uint32_t imm;        /* immediate as it is to arrive, or the key to invalidate */
	uint64_t add, swap;  /* atomics: what is added or compared with, and swapped in; bind: rights */
	int lkey, rkey;      /* numbers that model_key() gave; rkey: also that to bind, to invalidate */
};

/* A completion as polled. */
struct model_completion {
	uint64_t wr_id;
	uint8_t status;      /* enum urn_abi_wc_status */
	uint8_t opcode;      /* enum urn_abi_wc_op */
	uint8_t flags;       /* enum urn_abi_wc_flag */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t src;        /* UD: QP number */
};

struct model;

struct model *model_new(void);
void model_free(struct model *m);
/* Begin anew; memory is kept for the next run. */
void model_reset(struct model *m);

/* Memory of a node, as it is now; the caller's. */
void model_memory(struct model *m, unsigned int node, const uint8_t *ram, uint32_t size);
/* The program itself wrote these bytes. */
void model_wrote(struct model *m, unsigned int node, uint32_t off, uint32_t len);
/* The word that all MODEL_COUNT requests to a node add to. */
void model_counter(struct model *m, unsigned int node, uint32_t off);
/* The node's memory may fail at any time. */
void model_memory_fails(struct model *m, unsigned int node);
/* Frames may get lost for longer than retries last. */
void model_wire_fails(struct model *m);
/*
 * They get lost by chance alone: a frame with the probability `loss`, each by itself, and a
 * request is sent `tries` times. So it can be said how many pairs may fail (model_lost.c).
 */
void model_wire_loses(struct model *m, double loss, unsigned int tries);
/* Pairs that failed because nobody answered, with no other reason for it. */
unsigned int model_lost(const struct model *m);
/* How many of them are to be expected at most; 0: only a wire that loses by chance has that. */
double model_lost_expected(const struct model *m);

/*
 * A key for bytes of a node. rights 0: of a window that is yet to be bound; the
 * MODEL_BIND request that names it says how far it reaches. returns its number
 */
int model_key(struct model *m, unsigned int node, uint32_t off, uint32_t len, unsigned int rights);
/* The key is dead from now on; requests under way that use it may fail. */
void model_key_dead(struct model *m, int key);
/*
 * The invalidation of a key is complete: of WRITEs that name it no byte may land any more
 * (model_late.c). Those that are complete themselves are not looked at.
 */
void model_key_gone(struct model *m, int key);
/* Has any, in the node's memory, since this was asked last? */
const char *model_late(struct model *m, unsigned int node);

/*
 * A connected pair of QPs: two numbers, a and a + 1. srq: number that
 * model_srq() gave for each, or -1. mtu: bytes of a packet.
 */
int model_pair(struct model *m, unsigned int node_a, unsigned int node_b, uint32_t mtu,
	       const int srq[2]);
int model_srq(struct model *m, unsigned int node);
/* The peer may run out of receives for longer than this QP tries. */
void model_rnr_gives_up(struct model *m, int qp);
/* The program ends the QP, now. */
void model_ended(struct model *m, int qp);

/*
 * A completion queue of the QP's has overflowed: completions of its requests, or of its receives, don't come
 * any more, but for those that are there. It ends.
 */
void model_deaf(struct model *m, int qp, bool requests, bool receives);
/* At the end: has each message that succeeded come to its receive? */
const char *model_unheard(struct model *m);

void model_post(struct model *m, int qp, const struct model_request *r);
/*
 * A receive of a QP, or of a shared queue, whose domain its key must be of: MODEL_NO_KEY when it
 * is of another.
 */
void model_post_recv(struct model *m, int qp, uint64_t wr_id, uint32_t off, uint32_t len, int lkey);
void model_post_srq(struct model *m, int srq, uint64_t wr_id, uint32_t off, uint32_t len, int lkey);

const char *model_sent(struct model *m, int qp, const struct model_completion *c);
const char *model_received(struct model *m, int qp, const struct model_completion *c);

/* Requests posted and not known to be done, of one QP or of all (-1). */
unsigned int model_open(const struct model *m, int qp);
/* Receives posted and not complete; those of shared queues don't count. */
unsigned int model_open_recvs(const struct model *m, int qp);
/* Completions of a shared queue's receives so far. */
unsigned int model_srq_done(const struct model *m, int srq);
/* Has the QP failed, as far as its program was told? */
bool model_failed(const struct model *m, int qp);
/* Requests that were to have taken effect at the peer: for figures. */
uint64_t model_requests(const struct model *m);

/* ---- UD */

/* A datagram, and what it says; returns a number that it is to carry as its immediate. */
uint32_t model_datagram(struct model *m, uint32_t from_qpn, unsigned int to_node, uint32_t to_qpn,
			uint32_t len, uint32_t seed);
/* It came, at `off` of a node's memory, 40 bytes of headers before it. dup: may come again. */
const char *model_datagram_came(struct model *m, unsigned int node, uint32_t qpn, uint32_t off,
				const struct model_completion *c, bool dup);

/* All is over, and everything that moved has come to rest: is memory as it must be? */
const char *model_end(struct model *m);

#endif
