/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connection: the program that posts requests at one end, the one that
 * posts receives at the other, and the oracle. It knows what memory must hold and
 * what each completion must say, for requests of a connection take effect in the
 * order in which they were posted (IBTA 9.5); which end is the product it does not know.
 */
#ifndef PEER_FLOW_H
#define PEER_FLOW_H

#include "peer.h"
#include "rnd.h"

/* Memory of an end, for one connection. */
enum {
	FLOW_SLOTS = 24,             /* requests at a time */
	FLOW_BUFS = 24,              /* receives at a time */
	FLOW_LEN = 20000,            /* bytes of a message at most */
	FLOW_GUARD = 32,             /* bytes beside a buffer that are nobody's */
	FLOW_ROOM = FLOW_LEN + FLOW_GUARD,
	FLOW_WIN = 40000,            /* bytes that the other reads and writes */
	FLOW_WORDS = 4,
	FLOW_KEYS = 4,               /* of the keys that SENDs may invalidate, those that stay */
	FLOW_WIN_AT = FLOW_GUARD,
	FLOW_WORDS_AT = FLOW_WIN_AT + FLOW_WIN + FLOW_GUARD, /* 8-aligned */
	FLOW_BUFS_AT = FLOW_WORDS_AT + FLOW_WORDS * 8 + FLOW_GUARD,
	FLOW_SLOTS_AT = FLOW_BUFS_AT + FLOW_BUFS * FLOW_ROOM,
	FLOW_RAM = FLOW_SLOTS_AT + FLOW_SLOTS * FLOW_ROOM,
	FLOW_EMPTY = 0xc5,           /* what nobody wrote */
};

/* What goes wrong on purpose, once, some requests after the first. */
enum flow_error {
	FLOW_FINE,
	FLOW_BAD_KEY,     /* WRITE, READ or atomic with a key that there is not */
	FLOW_BEYOND,      /* ... past the end of the region */
	FLOW_NO_RIGHT,    /* WRITE or atomic where only READs are allowed */
	FLOW_DEAD_KEY,    /* a key that a SEND invalidated before */
	FLOW_TOO_LONG,    /* SEND longer than its receive */
	FLOW_NO_RECEIVE,  /* no receive is posted any more: RNR retries run out */
	FLOW_SILENT,      /* nothing arrives any more: retries run out */
	FLOW_UNALIGNED,   /* atomic on an address that is not a multiple of 8 */
	FLOW_ERRORS,
};

struct flow_op {
	struct peer_wr wr;
	bool signalled;
	uint32_t seed;            /* of its bytes */
	uint64_t orig;            /* atomic: value that it must find */
	enum peer_end end;        /* how it must end */
	uint8_t *want;            /* READ: bytes that it must bring; FLOW_LEN of room */
};

/* What the receives of the other end must get, in order. */
struct flow_msg {
	uint32_t len, imm, seed;
	bool with_imm, with_inv, wrote, se;
};

/* An end of the connection, as its programs use it. */
struct flow_side {
	void *ctx;
	uint8_t *ram;             /* FLOW_RAM bytes */
	uint64_t va;
	uint32_t key, key_read;
	uint32_t inv[PEER_KEYS];  /* keys that SENDs may invalidate, and that reach all of it */
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
	bool exact;                   /* all are as long as that */
	uint8_t weight[PEER_KINDS];
	bool late_recvs;              /* receives are posted late */
	bool fences;
	uint64_t pause;               /* ns between bursts, at most */
	uint32_t burst;               /* requests of one, at most */
	uint64_t due, recv_due;       /* ns: next post */
	struct flow_op op[FLOW_SLOTS];
	struct flow_msg msg[2 * FLOW_SLOTS];
	uint32_t msgs, recvs, recvd;  /* messages that are to come; receives posted; done */
	uint32_t stop_recvs;          /* no receives from this number on */
	uint32_t short_recv;          /* number of the receive that is too small */
	uint8_t win[FLOW_WIN];        /* what the window must hold in the end */
	uint64_t word[FLOW_WORDS];
	/* errors */
	enum flow_error error;
	uint32_t error_at;            /* the first request, or message, that may be the wrong one */
	uint32_t wrong_at;            /* number of the request that is; UINT32_MAX: none yet */
	uint64_t wrong_since;         /* ns: posted, or the wire was cut */
	bool lossy;                   /* a refusal may be lost: its retries run out then */
	bool over;                    /* something else ended the connection: all may be flushed */
	bool cut;                     /* the wire carries nothing any more */
	bool failed, recv_failed;     /* a request, a receive ended with an error: the rest is flushed */
	uint64_t failed_at, posted_at; /* ns: that, and the newest request */
	struct flow *other;           /* the same connection, the other way */
	uint32_t invs;                /* keys used up */
	/* out */
	void *ctx;
	void (*wrong)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
	uint64_t ends[PEER_OTHER + 1];
};

/* After all above `posted` and the errors' first two are set. */
void flow_open(struct flow *f);
/* The wire carries nothing any more. */
void flow_cut(struct flow *f, uint64_t now);
void flow_close(struct flow *f);
/* Post what is due. returns: ns when it wants to again; UINT64_MAX: it waits for completions, or is done */
uint64_t flow_run(struct flow *f, uint64_t now);
/* A completion of a request: number `id`. */
void flow_sent(struct flow *f, uint64_t now, uint64_t id, enum peer_end end);
/* A completion of a receive. */
void flow_received(struct flow *f, uint64_t now, const struct peer_recv *r);
/* All that was to be is. */
bool flow_finished(const struct flow *f);
/*
 * After the last: memory, to the byte, as far as it is known.
 * ended: the responder's end is in the error state: each of its receives came back
 */
void flow_judge(struct flow *f, bool ended);

#endif
