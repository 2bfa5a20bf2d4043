/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reference model of RC (and of the few rules of UD): completions, their order
 * and status, and the contents of memory.
 *
 * The model is told the actions of programs - memory, keys, requests, receives -
 * and faults that may change the outcome: a key that is deregistered, a QP that its
 * program ends, a wire that may lose more than retries repair. The model is not told
 * what the transport does, and shares no code with it: the model knows only the rules
 * of RoCEv2's base transport (order, exactly once, the effects of an error), and of
 * packets only that a message comes in pieces.
 *
 * The model's rules:
 *
 * - A send queue completes in the order it was posted, each request once; a
 *   request that is not signalled completes only when it fails, and counts as
 *   done when a later one completes.
 * - The first failure of a queue has a known reason; all requests behind it are
 *   flushed, and none is flushed without a failure.
 * - Requests of a QP take effect at the peer in the order posted, once. So the bytes
 *   of a peer's window are known once a request is complete: the effect of all
 *   requests up to that one, and perhaps of those posted behind it.
 * - When a QP failed, a first part of the incomplete requests took effect, the last
 *   of them perhaps not whole: a first part of its packets.
 * - The n-th message takes the n-th receive, and completes it after everything
 *   posted before the message has taken effect.
 *
 * A verdict is a message; NULL: correct.
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
	MODEL_WHY_LOCAL = 1 << 0,  /* the request's own memory cannot be used */
	MODEL_WHY_REMOTE = 1 << 1, /* the peer's key, range or right is wrong */
	MODEL_WHY_SHORT = 1 << 2,  /* a receive is too small */
	MODEL_WHY_PEER = 1 << 3,   /* a failure of the peer's own: its receive, its memory */
	MODEL_WHY_LOST = 1 << 4,   /* nobody answers */
	MODEL_WHY_RNR = 1 << 5,    /* no receive for too long */
	MODEL_WHY_BIND = 1 << 6,   /* window cannot be bound or invalidated */
	MODEL_WHY_REFUSED = 1 << 7, /* the peer refuses the request as invalid */
};

/* A send request as posted. */
struct model_request {
	uint64_t wr_id;
	uint8_t op;          /* enum model_op */
	bool signalled, fence, in_line;
	uint32_t len;        /* bytes of the message */
	uint32_t local;      /* the bytes' offset in the memory of the QP's node; bind: begin of the window */
	uint32_t remote;     /* WRITE, READ, atomics: offset in the memory of the peer's node */
	uint32_t seed;       /* SEND, WRITE: seed of the bytes (rng.h) */
	uint32_t imm;        /* immediate that must arrive, or the key to invalidate */
	uint64_t add, swap;  /* atomics: value to add or compare with, and to swap in; bind: rights */
	int lkey, rkey;      /* numbers from model_key(); rkey: also the key to bind or to invalidate */
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
/* Forget everything; memory is kept for the next run. */
void model_reset(struct model *m);

/* Set a node's memory, with its present contents; owner: the caller. */
void model_memory(struct model *m, unsigned int node, const uint8_t *ram, uint32_t size);
/* The program itself wrote these bytes. */
void model_wrote(struct model *m, unsigned int node, uint32_t off, uint32_t len);
/* Set the word that all MODEL_COUNT requests to a node add to. */
void model_counter(struct model *m, unsigned int node, uint32_t off);
/* The node's memory may fail at any time. */
void model_memory_fails(struct model *m, unsigned int node);
/* Frames may get lost for longer than retries last. */
void model_wire_fails(struct model *m);
/* WRITEs may go on the receiver's cache lines, as two messages (AW-3). */
void model_aligned(struct model *m);
/*
 * Frames get lost at random only: each with the probability `loss`, independently, and a
 * request is sent `tries` times. So the number of pairs that may fail is known (model_lost.c).
 */
void model_wire_loses(struct model *m, double loss, unsigned int tries);
/* Number of pairs that failed because nobody answered, without another reason. */
unsigned int model_lost(const struct model *m);
/* Largest expected number of such pairs; 0: unknown, for the wire does not lose at random. */
double model_lost_expected(const struct model *m);

/*
 * A key for bytes of a node. rights 0: the key of a window that is not bound yet; the
 * MODEL_BIND request with this key sets its range. returns the key's number
 */
int model_key(struct model *m, unsigned int node, uint32_t off, uint32_t len, unsigned int rights);
/* The key is dead from now on; incomplete requests that use it may fail. */
void model_key_dead(struct model *m, int key);
/*
 * The invalidation of a key is complete: no byte of WRITEs with this key may be written any more
 * (model_late.c). WRITEs that are complete are not watched.
 */
void model_key_gone(struct model *m, int key);
/* Verdict on late WRITEs to the node's memory since the last call. */
const char *model_late(struct model *m, unsigned int node);

/*
 * A connected pair of QPs: two numbers, a and a + 1. srq: number that
 * model_srq() gave for each, or -1. mtu: bytes of a packet.
 */
int model_pair(struct model *m, unsigned int node_a, unsigned int node_b, uint32_t mtu,
	       const int srq[2]);
int model_srq(struct model *m, unsigned int node);
/* The peer may be without receives for longer than this QP retries. */
void model_rnr_gives_up(struct model *m, int qp);
/* The program ends the QP now. */
void model_ended(struct model *m, int qp);

/*
 * A completion queue of the QP has overflowed: except for those that are there, completions of its requests,
 * or of its receives, don't come any more. The QP ends.
 */
void model_deaf(struct model *m, int qp, bool requests, bool receives);
/* Verdict at the end: each message that succeeded must have come to its receive. */
const char *model_unheard(struct model *m);

void model_post(struct model *m, int qp, const struct model_request *r);
/*
 * A receive of a QP, or of a shared queue. The receive's key must be of the queue's domain; lkey is
 * MODEL_NO_KEY when it is of another.
 */
void model_post_recv(struct model *m, int qp, uint64_t wr_id, uint32_t off, uint32_t len, int lkey);
void model_post_srq(struct model *m, int srq, uint64_t wr_id, uint32_t off, uint32_t len, int lkey);

const char *model_sent(struct model *m, int qp, const struct model_completion *c);
const char *model_received(struct model *m, int qp, const struct model_completion *c);

/* Number of requests posted and not known to be done, of one QP or of all (-1). */
unsigned int model_open(const struct model *m, int qp);
/* Number of receives posted and not complete; those of shared queues don't count. */
unsigned int model_open_recvs(const struct model *m, int qp);
/* Completions of a shared queue's receives so far. */
unsigned int model_srq_done(const struct model *m, int srq);
/* True when the QP has failed, as far as its program was told. */
bool model_failed(const struct model *m, int qp);
/* Number of requests that must have taken effect at the peer: for statistics. */
uint64_t model_requests(const struct model *m);

/* ---- UD */

/* A datagram and the seed of its bytes; returns the number that it must carry as its immediate. */
uint32_t model_datagram(struct model *m, uint32_t from_qpn, unsigned int to_node, uint32_t to_qpn,
			uint32_t len, uint32_t seed);
/* A datagram came, at `off` of a node's memory, behind 40 bytes of headers. dup: it may come again. */
const char *model_datagram_came(struct model *m, unsigned int node, uint32_t qpn, uint32_t off,
				const struct model_completion *c, bool dup);

/* Verdict on all memory at the end, when no operation is left. */
const char *model_end(struct model *m);

#endif
