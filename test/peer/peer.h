/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An independent peer: one reliable connection as the textbook has it (IBTA 9.7),
 * requester and responder, go-back-N and nothing else. It shares no line with the
 * product, and judges each frame that it gets from there: what the standard does
 * not allow is told by `wrong`.
 *
 *   posted requests ─► requester (peer_req.c) ─► frames out
 *   frames in ─► a queue, served at a rate ─► responder (peer_resp.c) ─► frames out
 *            └─► requester (responses)
 */
#ifndef PEER_H
#define PEER_H

#include "peer_wire.h"

enum {
	PEER_WRS = 64,      /* requests under way */
	PEER_RECVS = 64,    /* receives posted */
	PEER_RECORD = 16,   /* READs and atomics that can be answered again */
	PEER_QUEUE = 1024,  /* frames that wait to be served */
	PEER_HISTORY = 1 << 14, /* PSNs whose request is remembered */
	PEER_STARTS = 64,   /* requests sent for one READ, remembered */
	PEER_KEYS = 40,     /* keys besides the one for all of the memory */
};

enum peer_kind {
	PEER_SEND,
	PEER_SEND_IMM,
	PEER_SEND_INV,
	PEER_WRITE,
	PEER_WRITE_IMM,
	PEER_READ,
	PEER_CAS,
	PEER_FADD,
	PEER_KINDS,
};

/* How a request ended. */
enum peer_end {
	PEER_OK,
	PEER_REM_INV,
	PEER_REM_ACCESS,
	PEER_REM_OP,
	PEER_RETRY_EXC,
	PEER_RNR_EXC,
	PEER_FLUSH,
	PEER_LOC_LEN,  /* of a receive */
	PEER_OTHER,
};

struct peer_wr {
	uint64_t id;
	enum peer_kind kind;
	bool fence, se;
	uint32_t local, len;   /* where in this side's memory, bytes */
	uint64_t remote;
	uint32_t rkey, imm;    /* imm: or the key to invalidate */
	uint64_t swap_add, compare;
	/* the requester's */
	uint32_t first, npsn;  /* PSNs */
	uint32_t got;          /* READ, atomic: packets of the response placed */
	uint32_t msn;          /* of the connection, when this is done */
	uint32_t start[PEER_STARTS], starts; /* PSNs at which it was asked for; starts may be more */
};

struct peer_recv {
	uint64_t id;
	uint32_t at, room;     /* where in memory, bytes */
	/* when done */
	uint32_t len, imm;
	bool with_imm, with_inv, wrote, se;
	enum peer_end end;
};

struct peer_cfg {
	struct pw_addr self, other;
	uint16_t sport;
	uint32_t qpn, other_qpn;
	uint32_t mtu;             /* bytes */
	uint32_t sq_psn, rq_psn;  /* first that this side sends; first that the other does */
	uint8_t *ram;
	uint64_t va;              /* of ram[0] */
	uint32_t ram_len;
	uint32_t key;             /* all of it, all rights */
	uint32_t key_read;        /* all of it, to be read only */
	uint32_t max_rd, max_dest_rd;
	uint32_t window;          /* packets in flight */
	uint32_t ack_every;       /* packets between two that ask for an ACK */
	uint64_t timeout;         /* ns */
	uint32_t retries, rnr_retries; /* rnr_retries 7: for ever */
	uint32_t rnr_code;        /* timer code of RNR NAKs sent */
	uint64_t service;         /* ns a packet, in or out; 0: at once */
	uint64_t wake;            /* ns until it serves at all, when it had nothing to do */
	uint64_t ack_delay;       /* ns that an ACK waits for others to be merged with */
	bool credits;             /* ACKs say how many receives are posted */
	bool ack_all;             /* duplicates are answered whether they ask for it or not */
	bool mig;                 /* MigReq of frames sent */
	bool stale;               /* the other may send bytes of a request that is done, and in vain */
	bool perfect;             /* the wire loses and reorders nothing: no repeat has a reason */
	/* out */
	void *ctx;
	void (*emit)(void *ctx, const uint8_t *frame, size_t len);
	void (*done)(void *ctx, const struct peer_wr *wr, enum peer_end end);
	void (*received)(void *ctx, const struct peer_recv *r);
	void (*wrong)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
};

struct peer_stats {
	uint64_t sent, repeated;    /* requests of ours; of them sent before */
	uint64_t came, ahead;       /* requests of the other; of them ahead of their turn */
	uint64_t again;             /* of them that came before */
	uint64_t rnr, full;         /* refused: no receive; no room to wait */
	uint64_t seq_naks, rnr_naks, timeouts, implied; /* that the requester met */
};

/* A READ or atomic that was executed, to be answered again. */
struct peer_rec {
	bool used, read;
	uint32_t first, npsn, rkey, len, msn;
	uint64_t va;           /* atomic: the operands are in the history, the original value here */
};

/* What a PSN carried when it came first. */
struct peer_seen {
	uint32_t psn;
	bool used, fetch;
	bool answered;         /* a fetch: all of its response was sent once */
	uint32_t last;         /* a fetch: the last PSN of its response */
	uint64_t hash;
};

struct peer_waiting {
	size_t len;
	uint8_t at[PW_ROOM];
};

/* The responder: what it is in the middle of. */
enum peer_doing { PEER_IDLE, PEER_IN_SEND, PEER_IN_WRITE };

struct peer {
	struct peer_cfg c;
	struct peer_stats st;
	uint64_t now;
	bool failed;               /* the connection ended with an error */
	uint16_t sport;            /* UDP source port of the other; 0: not known yet */

	/* ---- requester */
	struct peer_wr wr[PEER_WRS];
	uint32_t wr_in, wr_out;    /* counted on and on */
	uint32_t alloc;            /* PSN of the next request to be posted */
	uint32_t una;              /* oldest PSN without an answer */
	uint32_t next;             /* PSN to send next */
	uint32_t top;              /* one past the newest PSN sent */
	uint32_t msn;              /* messages posted */
	uint32_t done_msn;         /* messages done */
	uint32_t since_ack;
	uint64_t timer;            /* ns; UINT64_MAX: not set */
	uint64_t rnr_until;        /* ns: nothing is sent before; 0: no wait */
	uint32_t tries, rnr_tries; /* left */
	bool went_back;            /* for a response that was lost, and no progress since */

	/* ---- responder */
	uint32_t epsn, rmsn;
	enum peer_doing doing;
	uint64_t w_va;             /* WRITE under way: where the next packet goes */
	uint32_t w_left;
	uint32_t s_off;            /* SEND under way: bytes so far */
	bool naked;                /* the gap was told, or a receive was missing */
	uint32_t lsn;              /* last message that credits allow; valid with credits_at */
	uint64_t credits_at;       /* ns: credits were given first; 0: never */
	uint32_t told;             /* the newest PSN that an answer named */
	struct peer_recv recv[PEER_RECVS];
	uint32_t recv_in, recv_out;
	struct peer_rec rec[PEER_RECORD];
	uint32_t rec_in;           /* counted on and on */
	uint32_t key[PEER_KEYS];   /* that a SEND may invalidate; 0: none */
	struct peer_seen seen[PEER_HISTORY];
	uint32_t newest;           /* PSN behind the newest that came */
	uint64_t ack_at;           /* ns: the ACK that is owed goes out; UINT64_MAX: none is */
	struct peer_waiting queue[PEER_QUEUE];
	uint32_t q_in, q_out;
	uint64_t busy_until;       /* ns */
	struct {
		bool on;
		uint64_t va;
		uint32_t psn, packet, npsn, left, first, msn;
	} answer;                  /* of a READ, under way */
};

/* peer: PEER's memory, any content */
void peer_open(struct peer *p, const struct peer_cfg *c, uint64_t now);
/* A frame has come. spoilt: a bit of it was turned over on the way */
void peer_rx(struct peer *p, uint64_t now, const uint8_t *frame, size_t len, bool spoilt);
/* ns: when peer_turn() is wanted; UINT64_MAX: not before something comes */
uint64_t peer_due(const struct peer *p);
void peer_turn(struct peer *p, uint64_t now);
/* At most PEER_WRS under way. */
void peer_post(struct peer *p, uint64_t now, const struct peer_wr *wr);
/* At most PEER_RECVS posted. */
void peer_post_recv(struct peer *p, uint64_t id, uint32_t at, uint32_t room);

/* ---- between the files of the peer */

void peer_emit(struct peer *p, const struct pw *f);
void peer_req_response(struct peer *p, const struct pw *f);
void peer_req_pump(struct peer *p);
void peer_req_timer(struct peer *p);
uint64_t peer_req_due(const struct peer *p);
void peer_resp_arrives(struct peer *p, const struct pw *f, const uint8_t *frame, size_t len);
void peer_resp_serve(struct peer *p);
uint64_t peer_resp_due(const struct peer *p);
/* All that is posted ends: the first request with `end`, all else flushed. */
void peer_fail(struct peer *p, enum peer_end end);
/* RNR timer code to ns (IBTA table 45). */
uint64_t peer_rnr_ns(uint32_t code);

static inline uint32_t
peer_packets(const struct peer *p, uint32_t len)
{
	return len ? (len + p->c.mtu - 1) / p->c.mtu : 1;
}

static inline bool
peer_is_fetch(const struct peer_wr *w)
{
	return w->kind >= PEER_READ;
}

#endif
