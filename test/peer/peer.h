/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An independent peer: one reliable connection as the textbook has it (IBTA 9.7),
 * requester and responder, go-back-N and nothing else. The peer shares no line with the
 * product, and judges each frame of the product: `wrong` reports anything that the
 * standard does not allow.
 *
 *   posted requests ─► requester (peer_req.c) ─► frames out
 *   frames in ─► a queue, served at a rate ─► responder (peer_resp.c) ─► frames out
 *            └─► requester (responses)
 */
#ifndef PEER_H
#define PEER_H

#include "peer_wire.h"

enum {
	PEER_WRS = 64,      /* requests in flight */
	PEER_RECVS = 64,    /* receives posted */
	PEER_RECORD = 16,   /* READs and atomics that can be answered again */
	PEER_QUEUE = 1024,  /* frames that wait to be served */
	PEER_HISTORY = 1 << 14, /* PSNs whose request is recorded */
	PEER_STARTS = 64,   /* requests recorded for one READ */
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

/* End of a request. */
enum peer_end {
	PEER_OK,
	PEER_REM_INV,
	PEER_REM_ACCESS,
	PEER_REM_OP,
	PEER_RETRY_EXC,
	PEER_RNR_EXC,
	PEER_FLUSH,
	PEER_LOC_LEN,  /* receive too short */
	PEER_OTHER,
};

struct peer_wr {
	uint64_t id;
	enum peer_kind kind;
	bool fence, se;
	uint32_t local, len;   /* place in this side's memory, bytes */
	uint64_t remote;
	uint32_t rkey, imm;    /* imm: or the key to invalidate */
	uint64_t swap_add, compare;
	/* fields of the requester */
	uint32_t first, npsn;  /* PSNs */
	uint32_t got;          /* READ, atomic: packets of the response placed */
	uint32_t msn;          /* the connection's MSN when this is done */
	uint32_t start[PEER_STARTS], starts; /* PSNs at which it was requested; starts may be more */
};

struct peer_recv {
	uint64_t id;
	uint32_t at, room;     /* place in memory, bytes */
	/* set when done */
	uint32_t len, imm;
	bool with_imm, with_inv, wrote, se;
	enum peer_end end;
};

struct peer_cfg {
	struct pw_addr self, other;
	uint16_t sport;
	uint32_t qpn, other_qpn;
	uint32_t mtu;             /* bytes */
	uint32_t sq_psn, rq_psn;  /* first PSN of this side's requests; of the other's */
	uint8_t *ram;
	uint64_t va;              /* address of ram[0] */
	uint32_t ram_len;
	uint32_t key;             /* key of all of ram, all rights */
	uint32_t key_read;        /* key of all of ram, to be read only */
	uint32_t max_rd, max_dest_rd;
	uint32_t window;          /* packets in flight */
	uint32_t ack_every;       /* packets between two that ask for an ACK */
	uint64_t timeout;         /* ns */
	uint32_t retries, rnr_retries; /* rnr_retries 7: for ever */
	uint32_t rnr_code;        /* timer code of RNR NAKs sent */
	uint64_t service;         /* ns to serve a packet, in or out; 0: none */
	uint64_t wake;            /* ns until an idle peer begins to serve */
	uint64_t ack_delay;       /* ns that an ACK waits to be merged with others */
	bool credits;             /* ACKs say how many receives are posted */
	bool ack_all;             /* duplicates are answered whether or not they ask for an ACK */
	bool mig;                 /* MigReq in frames sent */
	bool stale;               /* the other may send bytes of a request that is done, without effect */
	bool perfect;             /* the wire loses and reorders nothing: no retry has a reason */
	/* the peer's output */
	void *ctx;
	void (*emit)(void *ctx, const uint8_t *frame, size_t len);
	void (*done)(void *ctx, const struct peer_wr *wr, enum peer_end end);
	void (*received)(void *ctx, const struct peer_recv *r);
	void (*wrong)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
};

struct peer_stats {
	uint64_t sent, repeated;    /* requests of ours; of them retries */
	uint64_t came, ahead;       /* requests of the other; those ahead of their turn */
	uint64_t again;             /* duplicates among them */
	uint64_t rnr, full;         /* refused: no receive; no room in the queue */
	uint64_t seq_naks, rnr_naks, timeouts, implied; /* met by the requester */
};

/* A READ or atomic that was executed, to be answered again. */
struct peer_rec {
	bool used, read;
	uint32_t first, npsn, rkey, len, msn;
	uint64_t va;           /* an atomic's original value; its operands are in the history */
};

/* Contents of a PSN's packet when it came first. */
struct peer_seen {
	uint32_t psn;
	bool used, fetch;
	bool answered;         /* a fetch: its whole response was sent once */
	uint32_t last;         /* a fetch: the last PSN of its response */
	uint64_t hash;
};

struct peer_waiting {
	size_t len;
	uint8_t at[PW_ROOM];
};

/* The message that the responder is in the middle of. */
enum peer_doing { PEER_IDLE, PEER_IN_SEND, PEER_IN_WRITE };

struct peer {
	struct peer_cfg c;
	struct peer_stats st;
	uint64_t now;
	bool failed;               /* the connection ended with an error */
	uint16_t sport;            /* UDP source port of the other side; 0: not known yet */

	/* ---- requester */
	struct peer_wr wr[PEER_WRS];
	uint32_t wr_in, wr_out;    /* free-running counters */
	uint32_t alloc;            /* PSN of the next request to be posted */
	uint32_t una;              /* oldest PSN without an answer */
	uint32_t next;             /* PSN to send next */
	uint32_t top;              /* one past the newest PSN sent */
	uint32_t msn;              /* messages posted */
	uint32_t done_msn;         /* messages done */
	uint32_t since_ack;
	uint64_t timer;            /* ns: end of the timeout; UINT64_MAX: not set */
	uint64_t rnr_until;        /* ns: no packet is sent before; 0: no wait */
	uint32_t tries, rnr_tries; /* tries left */
	bool went_back;            /* it went back for a lost response, without progress since */

	/* ---- responder */
	uint32_t epsn, rmsn;
	enum peer_doing doing;
	uint64_t w_va;             /* WRITE in progress: address of the next packet's bytes */
	uint32_t w_left;
	uint32_t s_off;            /* SEND in progress: bytes so far */
	bool naked;                /* a NAK was sent for the gap, or for a missing receive */
	uint32_t lsn;              /* last message that the credits allow; valid with credits_at */
	uint64_t credits_at;       /* ns: time of the first credits; 0: never */
	uint32_t told;             /* the newest PSN that an answer named */
	struct peer_recv recv[PEER_RECVS];
	uint32_t recv_in, recv_out;
	struct peer_rec rec[PEER_RECORD];
	uint32_t rec_in;           /* free-running counter */
	uint32_t key[PEER_KEYS];   /* keys that a SEND may invalidate; 0: none */
	struct peer_seen seen[PEER_HISTORY];
	uint32_t newest;           /* PSN after the newest that came */
	uint64_t ack_at;           /* ns: time to send the pending ACK; UINT64_MAX: none */
	struct peer_waiting queue[PEER_QUEUE];
	uint32_t q_in, q_out;
	uint64_t busy_until;       /* ns: busy serving until then */
	struct {
		bool on;
		uint64_t va;
		uint32_t psn, packet, npsn, left, first, msn;
	} answer;                  /* the READ response in progress */
};

/* peer: memory of a PEER, with any content */
void peer_open(struct peer *p, const struct peer_cfg *c, uint64_t now);
/* A frame has come. spoilt: one of its bits was flipped on the way */
void peer_rx(struct peer *p, uint64_t now, const uint8_t *frame, size_t len, bool spoilt);
/* returns: ns: time of the next peer_turn(); UINT64_MAX: not before a frame comes */
uint64_t peer_due(const struct peer *p);
void peer_turn(struct peer *p, uint64_t now);
/* At most PEER_WRS may be in flight. */
void peer_post(struct peer *p, uint64_t now, const struct peer_wr *wr);
/* At most PEER_RECVS may be posted. */
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
/* End all posted requests and receives: the first request with `end`, all others flushed. */
void peer_fail(struct peer *p, enum peer_end end);
/* returns: ns of an RNR timer code (IBTA table 45) */
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
