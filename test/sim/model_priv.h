/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the reference model. */
#ifndef URN_SIM_MODEL_PRIV_H
#define URN_SIM_MODEL_PRIV_H

#include "model.h"

enum { MODEL_WHY = 256, MODEL_LATE = 256 };

struct mkey {
	unsigned int node;
	uint32_t off, len;
	unsigned int rights;
	bool dead;
	bool doubt;        /* may be dead: an invalidation is not complete */
	int inv_qp;        /* QP whose request number inv_at invalidates it; -1: none */
	uint32_t inv_at;
};

struct mreq {
	struct model_request r;
	unsigned int must; /* enum model_reason, as known at posting */
	uint32_t msg;      /* number of the message among those that take a receive */
	uint64_t orig;     /* atomics: original value of the peer's word; valid once applied */
	uint8_t *want;     /* READ: bytes it must return, when known before it is complete */
	bool done;         /* complete, without error */
};

struct mrecv {
	uint64_t wr_id;
	uint32_t off, len;
	int lkey;
	bool done;
};

/* Receives of a QP or a shared queue, in the order posted. */
struct mqueue {
	unsigned int node;
	struct mrecv *recv;
	uint32_t n, cap;
	uint32_t next;     /* oldest incomplete receive; unused for shared queues */
	uint32_t done;
	bool wrong;        /* a shared queue, some receives of which have a key of another domain */
};

struct mqp {
	unsigned int node;
	uint32_t mtu;
	int srq;           /* -1: receives of its own */
	struct mreq *req;  /* all requests ever posted */
	uint32_t n, cap;
	uint32_t head;     /* oldest request not known to be complete */
	uint32_t ok;       /* requests before this one are complete, without error */
	uint32_t applied;  /* requests before this one have taken effect in the peer's image */
	uint32_t msgs;     /* posted messages that take a receive */
	uint32_t delivered; /* such messages that are complete at the peer */
	uint32_t deliver_at; /* request from which to look for the next such message */
	struct mqueue rq;
	bool sq_failed;    /* a request failed or was flushed */
	bool rq_failed;    /* a receive failed or was flushed */
	bool ended;        /* the program ended the QP */
	bool lost;         /* the QP failed only because of the wire, as the first of its pair */
	bool rnr_gives_up;
	bool deaf_requests, deaf_receives; /* no more requests, receives complete */
};

struct mnode {
	const uint8_t *ram;
	uint8_t *image;    /* bytes that ram must hold */
	uint32_t size, cap;
	bool fails;
	bool counts;       /* the node has a shared counter */
	uint32_t counter;  /* offset of the shared counter */
	uint8_t *counted;  /* one flag for each original value that came back */
	uint32_t counted_cap;
	uint32_t count_done, count_posted;
};

struct mdgram {
	uint32_t from_qpn, to_qpn, len, seed;
	unsigned int to_node;
	uint32_t came;
};

/* A WRITE of which no byte may be written any more. */
struct mlate {
	unsigned int node;
	uint32_t off, len, seed; /* target, and seed of its bytes */
	uint8_t *was;      /* the target's bytes at the last look; free() it */
};

struct model {
	struct mnode node[MODEL_NODES];
	struct mkey *key;
	uint32_t keys, key_cap;
	struct mqp *qp;
	uint32_t qps, qp_cap;
	struct mqueue *srq;
	uint32_t srqs, srq_cap;
	struct mdgram *dgram;
	uint32_t dgrams, dgram_cap;
	struct mlate late[MODEL_LATE];
	unsigned int lates;
	bool wire_fails;
	bool aligned;	   /* WRITEs may go on cache lines */
	double try_fails;  /* probability that a try gets no answer; 0: not known */
	unsigned int tries; /* sendings of a request; valid with try_fails */
	uint64_t requests;
	char why[MODEL_WHY]; /* the last verdict */
};

static inline struct mqp *
model_peer(struct model *m, const struct mqp *q)
{
	return &m->qp[(q - m->qp) ^ 1];
}

static inline bool
model_takes_recv(const struct model_request *r)
{
	return r->op <= MODEL_SEND_INV || r->op == MODEL_WRITE_IMM;
}

static inline bool
model_is_write(const struct model_request *r)
{
	return r->op == MODEL_WRITE || r->op == MODEL_WRITE_IMM;
}

static inline bool
model_is_atomic(const struct model_request *r)
{
	return r->op >= MODEL_CMP_SWAP && r->op <= MODEL_COUNT;
}

const char *model_say(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *model_op_name(unsigned int op);

/* ---- model_lost.c */

/* Count q's pair as lost: nobody answered a request of q, with no reason but the wire. */
void model_count_lost(struct model *m, struct mqp *q);

/* ---- model_judge.c */

/* The last receive has taken its message of `from`: go on to the next message. */
void model_next_message(struct mqp *from);

/* ---- model_late.c */

void model_late_reset(struct model *m);

/* ---- model_deaf.c */

/* Verdict on receives that never completed: they hold messages, whole or in part, or nothing new. */
const char *model_deaf_end(struct model *m, struct mqp *q);

/* ---- model_mem.c */

/*
 * Verdict on memory when requests of q before `to` have taken effect at the peer, and
 * those before `done` are complete.
 */
const char *model_apply(struct model *m, struct mqp *q, uint32_t to, uint32_t done);
/* Verdict: the message's bytes must be at off of the node's memory. */
const char *model_bytes(struct model *m, unsigned int node, uint32_t off, uint32_t seed, uint32_t len,
			const char *what);
/* Verdict on an incomplete receive: it may hold a part of the message, and nothing else. */
const char *model_torn_recv(struct model *m, struct mqp *to, const struct mrecv *recv);
/* Verdict on requests after a failure: a first part of them may have taken effect. */
const char *model_torn(struct model *m, struct mqp *q);
const char *model_compare(struct model *m, unsigned int node);

#endif
