/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connection: the program that posts requests at one end, the one that
 * posts receives at the other, and the oracle. The oracle knows the right contents of
 * memory and of each completion, for requests of a connection take effect in the order in
 * which they were posted (IBTA 9.5); it does not know which end is the product.
 */
#ifndef PEER_FLOW_H
#define PEER_FLOW_H

#include "peer.h"
#include "rnd.h"

/* Memory of an end, for one connection: the layout. */
enum {
	FLOW_SLOTS = 24,             /* requests in flight at most */
	FLOW_BUFS = 24,              /* receives posted at most */
	FLOW_LEN = 20000,            /* bytes of a message at most */
	FLOW_GUARD = 32,             /* bytes around a buffer that nobody may write */
	FLOW_ROOM = FLOW_LEN + FLOW_GUARD,
	FLOW_WIN = 40000,            /* bytes that the other end reads and writes */
	FLOW_WORDS = 4,
	FLOW_KEYS = 4,               /* keys for SENDs to invalidate that stay valid */
	FLOW_WIN_AT = FLOW_GUARD,
	FLOW_WORDS_AT = FLOW_WIN_AT + FLOW_WIN + FLOW_GUARD, /* 8-aligned */
	FLOW_BUFS_AT = FLOW_WORDS_AT + FLOW_WORDS * 8 + FLOW_GUARD,
	FLOW_SLOTS_AT = FLOW_BUFS_AT + FLOW_BUFS * FLOW_ROOM,
	FLOW_RAM = FLOW_SLOTS_AT + FLOW_SLOTS * FLOW_ROOM,
	FLOW_EMPTY = 0xc5,           /* fill byte of memory that nobody wrote */
};

/* The deliberate error of a flow: one, some requests after the first. */
enum flow_error {
	FLOW_FINE,
	FLOW_BAD_KEY,     /* WRITE, READ or atomic with a key that does not exist */
	FLOW_BEYOND,      /* ... past the end of the region */
	FLOW_NO_RIGHT,    /* WRITE or atomic where only READs are allowed */
	FLOW_DEAD_KEY,    /* a key that a SEND has invalidated */
	FLOW_TOO_LONG,    /* SEND longer than its receive */
	FLOW_NO_RECEIVE,  /* no receive is posted any more: RNR retries run out */
	FLOW_SILENT,      /* no frame arrives any more: retries run out */
	FLOW_UNALIGNED,   /* atomic on an address that is not a multiple of 8 */
	FLOW_ERRORS,
};

struct flow_op {
	struct peer_wr wr;
	bool signalled;
	uint32_t seed;            /* seed of its bytes */
	uint64_t orig;            /* atomic: the value that it must find */
	enum peer_end end;        /* the expected result */
	uint8_t *want;            /* READ: expected bytes; room for FLOW_LEN */
};

/* A message that the receives of the other end must get, in order. */
struct flow_msg {
	uint32_t len, imm, seed;
	bool with_imm, with_inv, wrote, se;
};

/* An end of the connection, from its programs' view. */
struct flow_side {
	void *ctx;
	uint8_t *ram;             /* FLOW_RAM bytes */
	uint64_t va;
	uint32_t key, key_read;
	uint32_t inv[PEER_KEYS];  /* keys that SENDs may invalidate, and that give access to all of ram */
	uint32_t invs;
	void (*post)(void *ctx, const struct peer_wr *wr, bool signalled);
	void (*post_recv)(void *ctx, uint64_t id, uint32_t at, uint32_t room);
};

struct flow {
	struct flow_side *from, *to;
	struct rnd rng;
	const char *name;
	uint32_t total, posted, done; /* requests */
	uint32_t max_len;
	bool exact;                   /* all messages are exactly so long */
	uint8_t weight[PEER_KINDS];
	bool late_recvs;              /* receives are posted late */
	bool fences;
	uint64_t pause;               /* ns: longest pause between bursts */
	uint32_t burst;               /* requests of a burst, at most */
	uint64_t due, recv_due;       /* ns: next post */
	struct flow_op op[FLOW_SLOTS];
	struct flow_msg msg[2 * FLOW_SLOTS];
	uint32_t msgs, recvs, recvd;  /* messages expected; receives posted; receives done */
	uint32_t stop_recvs;          /* no receives are posted from this number on */
	uint32_t short_recv;          /* number of the receive that is too small */
	uint8_t win[FLOW_WIN];        /* expected contents of the window at the end */
	uint64_t word[FLOW_WORDS];
	/* errors */
	enum flow_error error;
	uint32_t error_at;            /* the first request, or message, that may be the wrong one */
	uint32_t wrong_at;            /* number of the wrong request; UINT32_MAX: none yet */
	uint64_t wrong_since;         /* ns: time of its posting, or of the wire's cut */
	bool lossy;                   /* its refusal may be lost: then its retries run out */
	bool over;                    /* another error ended the connection: all requests may be flushed */
	bool cut;                     /* the wire is cut */
	bool failed, recv_failed;     /* a request, a receive ended with an error: later ones are flushed */
	uint64_t failed_at, posted_at; /* ns: time of the first error, and of the newest request */
	struct flow *other;           /* the other direction of the connection */
	uint32_t invs;                /* keys that are used up */
	/* out */
	void *ctx;
	void (*wrong)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
	uint64_t ends[PEER_OTHER + 1];
};

/* Call when all fields above `posted` and the errors' first two are set. */
void flow_open(struct flow *f);
/* The wire is cut at `now`. */
void flow_cut(struct flow *f, uint64_t now);
void flow_close(struct flow *f);
/*
 * Post all requests and receives that are due. returns: ns: time of the next call; UINT64_MAX: the
 * flow waits for completions, or is done
 */
uint64_t flow_run(struct flow *f, uint64_t now);
/* Request number `id` has completed. */
void flow_sent(struct flow *f, uint64_t now, uint64_t id, enum peer_end end);
/* A receive has completed. */
void flow_received(struct flow *f, uint64_t now, const struct peer_recv *r);
/* True when all expected completions have come. */
bool flow_finished(const struct flow *f);
/*
 * After the last completion: check memory, to the byte, as far as its contents are known.
 * ended: the responder's end is in the error state: each of its receives came back
 */
void flow_judge(struct flow *f, bool ended);

#endif
