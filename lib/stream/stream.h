/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A byte stream over RDMA without modes, as a state machine (doc/inside/stream.md).
 * The machine is pure: events come in as calls, actions go out to a function, and nothing here
 * knows verbs, clocks, threads or memory of the program. The layer above is called the shell: it
 * owns the queue pair, receives and timers, carries actions out, and reports back.
 *
 *   shell ─► send, receive, transact, shutdown, close, arrived, sent, written, read, tick, down,
 * refused, fenced ─► urn_st urn_st ─► SEND, WRITE, READ, COPY, POST, FREE, SENT, RECEIVED,
 * READABLE, CLOSED, DIED ─► shell
 *
 * Each end has a source, for the bytes that it sends, and a sink, for those that it receives:
 *
 *   source  IDLE ─► COPY | OFFERED | WRITING ─► IDLE ... ─► ENDED
 *   sink    QUIET ─► ADVERTISED | OFFERED ─► READING ─► QUIET ... ─► ENDED
 *
 * The shell's queue pair is reliable and ordered: a message arrives after all writes before it.
 * SEND, WRITE and READ are posted in the order of the actions.
 *
 * A call and the actions that it causes are one step. The function that takes actions must not call
 * back. Each struct belongs to one thread at a time.
 */
#ifndef URN_STREAM_STREAM_H
#define URN_STREAM_STREAM_H

#include "stream/threshold.h"
#include "stream/wire.h"

enum {
	URN_ST_JOBS = 8,     /* sends of a program that are not complete, at most */
	URN_ST_RECVS = 8,    /* receives of a program that are not complete, at most */
	URN_ST_CONTROL = 12, /* receives for messages that need no BCopy buffer; see stream.md */
	URN_ST_POOR = 4,   /* reads in a row that are not worth their way, before the sink learns */
	URN_ST_UNSEEN = 2, /* SinkAvails on their way, at most; one more answers a SrcAvail */
};

/* X(name, meaning) */
/* clang-format off */
#define URN_ST_TX_STATES(X) \
	X(IDLE, "no send is begun") \
	X(COPY, "a send goes by BCopy") \
	X(OFFERED, "SrcAvail was sent, and is not answered") \
	X(WRITING, "a write and its WrCompl were posted, and are not complete") \
	X(ENDED, "Fin was sent")

#define URN_ST_RX_STATES(X) \
	X(QUIET, "neither end's memory is announced") \
	X(ADVERTISED, "SinkAvail was sent, and its memory may be written") \
	X(OFFERED, "SrcAvail came, and is not answered") \
	X(READING, "reads of the source's memory are under way") \
	X(ENDED, "Fin came")

#define URN_ST_STATES(X) \
	X(OPEN, "bytes flow") \
	X(CLOSED, "both ways have ended, and the program has closed") \
	X(DYING, "the connection broke, and its queue pair may still touch memory") \
	X(DEAD, "the connection broke, and only bytes that came before can be received")

/* X(name, text): decisions, each counted and traced */
#define URN_ST_DECISIONS(X) \
	X(COPY, "source: begins BCopy, because the rest is below its threshold") \
	X(OFFER_READ, "source: sends SrcAvail, to be read") \
	X(OFFER_WRITE, "source: sends SrcAvail, to be answered by SinkAvail") \
	X(ASK, "source: sends SrcAvail to ask for BCopy buffers") \
	X(WRITE, "source: writes to memory of a SinkAvail") \
	X(CARRY, "source: sends a command with the SinkAvail for its answer") \
	X(SMALL, "source: finishes by BCopy, because SendSm came") \
	X(STALE, "source: drops a SinkAvail, because its place was sent already") \
	X(CROSS_READ, "source: drops a SinkAvail that crossed its SrcAvail, which wins") \
	X(ANSWERED, "source: takes a SinkAvail as the answer to its SrcAvail") \
	X(ADVERTISE, "sink: sends SinkAvail for a large receive") \
	X(ANSWER, "sink: answers SrcAvail by SinkAvail") \
	X(READ, "sink: reads memory of the source") \
	X(READ_ALL, "sink: sends RdCompl, because all was read") \
	X(TOO_SMALL, "sink: sends SendSm, because receives are too small") \
	X(TOO_LATE, "sink: sends SendSm, because no receive was posted in time") \
	X(ASKED, "sink: sends SendSm, because BCopy was asked for, or reading is switched off") \
	X(VOID_DATA, "sink: its SinkAvail is void, because BCopy data came for its place") \
	X(VOID_OFFER, "sink: its SinkAvail is void, because SrcAvail crossed it, and wins") \
	X(VOID_END, "sink: its SinkAvail is void, because Fin came") \
	X(KEPT, "sink: its SinkAvail answers the SrcAvail that crossed it") \
	X(TX_RAISED, "source: raises its threshold") \
	X(TX_LOWERED, "source: lowers its threshold") \
	X(RX_RAISED, "sink: raises its threshold") \
	X(RX_LOWERED, "sink: lowers its threshold") \
	X(CREDIT, "sink: tells that buffers are free") \
	X(FIN, "source: ends the stream") \
	X(STOP, "sink: reads no more") \
	X(STOPPED, "source: gives sends up, because the sink reads no more") \
	X(DIED, "the connection ends with an error")

/* X(name, text): reasons of an end with an error; the number travels in Abort */
#define URN_ST_REASONS(X) \
	X(ALIVE, "no error") \
	X(DOWN, "the connection broke below the stream") \
	X(REFUSED, "the peer's memory refused a write or read that its own message named") \
	X(FORM, "a message of the peer is malformed") \
	X(PLACE, "a message of the peer has no place in this state") \
	X(OFFSET, "a message of the peer is for another place in the stream") \
	X(STALE_RD_COMPL, "the peer sent RdCompl, and no SrcAvail is open") \
	X(STALE_SEND_SM, "the peer sent SendSm, and no SrcAvail is open") \
	X(STALE_WR_COMPL, "the peer sent WrCompl, and no SinkAvail is open") \
	X(EXCESS, "the peer sent or wrote more than was announced or fits") \
	X(SHORT, "the peer announced more bytes than it sent") \
	X(OVERRUN, "the peer sent BCopy data for which it had no buffer") \
	X(BAD_CREDIT, "the peer's count of its free buffers, or of SinkAvails that it saw, can't be") \
	X(TWO_OFFERS, "the peer sent a second SrcAvail before the first was answered") \
	X(TWO_ADVERTS, "the peer sent a second SinkAvail for the same place") \
	X(BEHIND_END, "the peer sent bytes behind its own Fin") \
	X(PEER, "the peer ended the connection") \
	X(ABORTED, "the program ended the connection at once")
/* clang-format on */

enum urn_st_tx_state {
#define X(name, meaning) URN_ST_TX_##name,
	URN_ST_TX_STATES(X)
#undef X
		URN_ST_TX_COUNT,
};

enum urn_st_rx_state {
#define X(name, meaning) URN_ST_RX_##name,
	URN_ST_RX_STATES(X)
#undef X
		URN_ST_RX_COUNT,
};

enum urn_st_state {
#define X(name, meaning) URN_ST_S_##name,
	URN_ST_STATES(X)
#undef X
		URN_ST_S_COUNT,
};

enum urn_st_decision {
#define X(name, text) URN_ST_D_##name,
	URN_ST_DECISIONS(X)
#undef X
		URN_ST_D_COUNT,
};

enum urn_st_reason {
#define X(name, text) URN_ST_R_##name,
	URN_ST_REASONS(X)
#undef X
		URN_ST_R_COUNT,
};

/* Kinds of transfer that a source may be held to (SF-9). */
enum urn_st_force {
	URN_ST_ANY,	    /* the thresholds decide */
	URN_ST_FORCE_COPY,  /* BCopy */
	URN_ST_FORCE_READ,  /* Read ZCopy; Write ZCopy when the peer can't read */
	URN_ST_FORCE_WRITE, /* Write ZCopy */
	URN_ST_FORCES,
};

/* Ends of a send or receive. */
enum urn_st_status {
	URN_ST_OK,	  /* a receive of 0 bytes: the stream has ended */
	URN_ST_GONE,	  /* send: the sink reads no more; receive: this end reads no more */
	URN_ST_FAILED,	  /* the connection broke: urn_st.reason */
	URN_ST_CANCELLED, /* receive: taken back, without bytes */
};

/* Kinds of a receive, added up. */
enum urn_st_how {
	URN_ST_ALL = 1 << 0,	     /* complete when full, not when any bytes are there */
	URN_ST_UNANNOUNCED = 1 << 1, /* its memory is never named to the peer: no SinkAvail */
};

/* Memory of the program. */
struct urn_st_area {
	uint64_t id;	/* the program's name for the send or receive */
	uint64_t addr;	/* address */
	uint64_t bytes; /* length, at least 1 */
	uint32_t lkey;	/* local key */
	uint32_t rkey;	/* remote key: for reads of a send's area, for writes to a receive's */
};

/* A send. */
struct urn_st_job {
	struct urn_st_area area; /* bytes to be sent */
	uint64_t done;		 /* bytes sent, inline ones of a SrcAvail included */
	uint64_t carried;	 /* id of the receive for the answer; valid with transaction */
	bool transaction;	 /* a SinkAvail for `carried` may ride on it (SF-7) */
	bool copying;		 /* BCopy has begun: no SrcAvail for the rest */
	bool small;		 /* SendSm came: the rest goes by BCopy (SF-5) */
};

/* A receive. */
struct urn_st_recv {
	struct urn_st_area area; /* room */
	uint64_t filled;	 /* bytes that are there */
	uint64_t reading;	 /* bytes that a read under way will bring */
	bool all;		 /* complete when full, or at the end of the stream */
	bool unannounced;	 /* never named to the peer */
	bool held;		 /* its SinkAvail waits for a command to ride on (SF-7) */
	bool copied;		 /* BCopy data is in it */
};

/* BCopy data that waits for a receive. */
struct urn_st_piece {
	uint32_t slot;	/* the shell's number of the receive that has it */
	uint32_t from;	/* place of the next byte in it */
	uint32_t bytes; /* bytes left */
};

/* Actions. Each names the fields that it uses; others are 0. */
enum urn_st_act {
	URN_ST_A_SEND,	/* message, addr, lkey: send it, with message->length bytes from addr behind
			   it; answer sent() when its completion is there. The shell copies these
			   bytes during the call: SENT may follow in the same step, and the program
			   then writes to its memory */
	URN_ST_A_WRITE, /* addr, lkey, raddr, rkey, bytes: RDMA write; answer written() */
	URN_ST_A_READ,	/* addr, lkey, raddr, rkey, bytes: RDMA read; answer read(), in the order of
			   reads */
	URN_ST_A_COPY,	/* slot, from, addr, bytes: copy out of this receive to addr */
	URN_ST_A_MERGE, /* slot, from, bytes, into, at: copy out of this receive to place `at` of
			   receive `into`, which holds them: recv_slot bounds both */
	URN_ST_A_FREE,	/* slot: the receive is the shell's again */
	URN_ST_A_POST,	/* bytes: post so many receives, before any message that follows */
	URN_ST_A_SENT,	/* id, bytes, status: a send is complete */
	URN_ST_A_RECEIVED, /* id, bytes, status: a receive is complete */
	URN_ST_A_READABLE, /* bytes, or the end of the stream, wait for a receive */
	URN_ST_A_OFFERED,  /* SrcAvail waits for a receive, and none of its bytes are here (SF-4) */
	URN_ST_A_CLOSED,   /* both ways have ended: the queue pair may go */
	URN_ST_A_DIED,	   /* put the queue pair in error, after the Abort if there is one; answer
			      fenced() when it can touch no memory. Receives with data stay as they
			      are until FREE */
	URN_ST_ACTS,
};

/* An action. */
struct urn_st_action {
	enum urn_st_act act;
	enum urn_st_status status;	  /* SENT, RECEIVED: the end */
	uint32_t slot;			  /* the shell's number of a receive */
	uint32_t from;			  /* place in the receive, after the head of the message */
	uint32_t into;			  /* MERGE: the shell's number of the other receive */
	uint32_t at;			  /* MERGE: place in it */
	uint32_t lkey;			  /* local key of addr */
	uint32_t rkey;			  /* the peer's key of raddr */
	uint64_t addr;			  /* address in the program's memory */
	uint64_t raddr;			  /* address in the peer's memory */
	uint64_t bytes;			  /* length, or number */
	uint64_t id;			  /* the program's name for a send or receive */
	const struct urn_st_msg *message; /* to be sent; valid during the call */
};

/* A decision, for a trace. */
struct urn_st_trace {
	enum urn_st_decision decision;
	uint64_t offset; /* place in the stream of the half that decided */
	uint64_t bytes;	 /* bytes that it is about, or the new threshold */
};

/* Sizes and surroundings of a connection. */
struct urn_st_config {
	struct urn_st_hello self;    /* greeting of this end */
	struct urn_st_hello peer;    /* greeting of the peer */
	struct urn_st_piece *pieces; /* ring of self.buffers entries; the shell's, for the life of
					the connection */
	uint32_t send_slot; /* bytes of the longest message that the shell can send, head included;
			       at least URN_ST_WIRE_MAX + peer.size, which the peer chose */
	uint32_t recv_slot; /* bytes of each receive that POST posts; at least URN_ST_WIRE_MAX +
			       self.size */
	uint32_t slots;		     /* messages whose sent() may be outstanding, at least 1 */
	uint32_t inlined;  /* bytes that a SrcAvail brings, at most; cut to the peer's size */
	uint32_t patience; /* calls of tick() since SrcAvail, or the last receive behind it, before
			      SendSm; at least 1 */
	struct urn_st_threshold tx, rx;				/* at the start */
	void (*act)(void *arg, const struct urn_st_action *a);	/* takes actions */
	void (*trace)(void *arg, const struct urn_st_trace *t); /* takes decisions; NULL: nobody */
	void *arg;						/* argument of both */
};

/* The source of an end. */
struct urn_st_tx {
	enum urn_st_tx_state state;
	uint32_t first, count;		    /* sends in job[]: the oldest; their number */
	struct urn_st_job job[URN_ST_JOBS]; /* ring */
	struct urn_st_threshold threshold;  /* bytes from which on zero copy is worth its cost */
	enum urn_st_force force;	    /* the program's choice */
	uint64_t sent;			    /* bytes sent, by any way */
	uint32_t data, limit;		    /* data messages sent; that the peer takes */
	bool advertised;		    /* advert is valid: for the byte at `sent` */
	bool command;			    /* advert came with a command (SF-7) */
	struct urn_st_advert advert;	    /* memory of the peer's sink */
	uint32_t seen;			    /* SinkAvails of the peer taken in */
	uint16_t answer;		    /* OFFERED: flags of the SrcAvail */
	uint64_t offer_start, offer_bytes;  /* OFFERED: range of the SrcAvail */
	bool shut;			    /* Fin follows the last send */
	bool stopped;			    /* the peer's sink reads no more */
};

/* The sink of an end. */
struct urn_st_rx {
	enum urn_st_rx_state state;
	uint32_t first, count;		       /* receives in recv[]: the oldest; their number */
	struct urn_st_recv recv[URN_ST_RECVS]; /* ring */
	struct urn_st_threshold threshold;     /* bytes from which on a receive is advertised */
	uint64_t arrived;		       /* bytes that came, by any way */
	uint32_t data, limit, freed; /* data messages that came; that were allowed; consumed */
	uint32_t piece, pieces;	     /* cfg.pieces: the oldest; their number */
	uint64_t promised;	     /* end of the newest SrcAvail */
	bool granting;		     /* on demand: SendSm was sent, and not all promised came */
	bool offered;		     /* a SrcAvail is open: offer is valid */
	struct urn_st_advert offer;  /* memory of the peer's source; bytes: of the whole */
	uint16_t answer;	     /* flags of the SrcAvail */
	uint64_t advert_offset, advert_bytes; /* ADVERTISED: range of the SinkAvail */
	uint32_t adverts, seen;		      /* SinkAvails sent; that the peer took in */
	uint32_t reads;			      /* READING: reads under way */
	uint32_t waited;		      /* OFFERED: ticks since the last receive */
	bool late;			      /* OFFERED: no receive was posted in time */
	uint32_t poor; /* reads in a row that brought less than a BCopy buffer holds, and not all */
	bool stop;			      /* the program reads no more */
	bool told_stop;			      /* Stop was sent */
};

/* One end of a connection. All is the machine's; the shell may read it. */
struct urn_st {
	struct urn_st_config cfg;
	enum urn_st_state state;
	struct urn_st_tx tx;
	struct urn_st_rx rx;
	uint32_t emitted, completed; /* messages given to the shell; those with sent() */
	uint32_t fin;		   /* value of `emitted` behind Fin; valid when tx.state is ENDED */
	bool fin_arrived;	   /* Fin and all before it arrived at the peer */
	bool closing;		   /* the program has closed */
	bool gone;		   /* the connection went after both ways had ended */
	enum urn_st_reason reason; /* DYING, DEAD */
	enum urn_st_reason told;   /* reason PEER: the reason in the peer's Abort */
	enum urn_st_verdict verdict;	/* reason FORM */
	uint8_t kind;			/* kind of the message that was wrong; 0: none */
	uint64_t offset, expected;	/* its place in the stream; the place where this end is */
	uint64_t count[URN_ST_D_COUNT]; /* decisions so far */
};

/* Names and texts, for logs. returns: "?" for none */
const char *urn_st_tx_name(unsigned int state);
const char *urn_st_rx_name(unsigned int state);
const char *urn_st_state_name(unsigned int state);
const char *urn_st_decision_text(unsigned int decision);
const char *urn_st_reason_text(unsigned int reason);
/*
 * Say why the connection ended: the reason, the message and places in the stream.
 *
 * to: room for `bytes`, which 200 are enough for
 */
void urn_st_error(const struct urn_st *s, char *to, uint32_t bytes);

/*
 * Why urn_st_init() refuses a configuration, for a log. The peer's greeting is part of it, and not
 * trusted.
 *
 * returns: NULL: it does not
 */
const char *urn_st_refusal(const struct urn_st_config *cfg);
/*
 * Begin a connection, OPEN. POST comes at once, for the first receives.
 *
 * returns: 0; EMSGSIZE: the messages of a greeting do not fit the shell's slots; EINVAL: the
 * configuration makes no sense otherwise; urn_st_refusal() says why
 */
int urn_st_init(struct urn_st *s, const struct urn_st_config *cfg);

/* ---- the program (calls.c) */

/*
 * Send bytes. The area stays untouched until SENT (SF-4).
 *
 * returns: 0; EINVAL: no bytes; EAGAIN: URN_ST_JOBS are not complete; EPIPE: shut down, or the
 * peer's sink reads no more; ENOTCONN: the connection broke
 */
int urn_st_send(struct urn_st *s, const struct urn_st_area *area);
/*
 * Receive bytes. The area is the machine's until RECEIVED.
 *
 * When the connection breaks, bytes that came before, and the end of the stream, can still be
 * received: first a receive that has some bytes is complete with these, OK, then the error follows.
 *
 * how: enum urn_st_how; with URN_ST_ALL it is complete when the area is full, at the end of the
 * stream, or where the connection broke; else when any bytes are there
 * returns: as urn_st_send(); EINVAL: no bytes, or `how` has other bits; EPIPE: this end reads no
 * more; ENOTCONN: the connection broke, and no byte waits
 */
int urn_st_receive(struct urn_st *s, const struct urn_st_area *area, uint32_t how);
/*
 * Take a receive back. RECEIVED comes during the call: OK with the bytes that it has, or
 * URN_ST_CANCELLED without any. Memory that the peer may write to can't be taken back, nor memory
 * that a read under way fills; a receive that may have to be taken back is posted with
 * URN_ST_UNANNOUNCED, and is then busy for the time of a read at most.
 *
 * id: that of its area; the oldest receive with it is meant
 * returns: 0; ENOENT: there is no such receive; EBUSY: the peer or a read may touch its memory now
 */
int urn_st_cancel(struct urn_st *s, uint64_t id);
/*
 * Send a command, and receive its answer in memory that the command names (SF-7). Where the command
 * can't carry that, both are as urn_st_send() and urn_st_receive().
 *
 * returns: as urn_st_send(); nothing was begun unless 0
 */
int urn_st_transact(struct urn_st *s, const struct urn_st_area *command,
		    const struct urn_st_area *answer);
/* End the stream behind the last send (SF-10). */
void urn_st_shutdown(struct urn_st *s);
/* Read no more, and go on to send (SF-10): bytes that wait and that come are dropped, open receives
 * end with GONE, and so do the peer's sends. */
void urn_st_shutdown_read(struct urn_st *s);
/*
 * End the connection at once: the peer gets an Abort, and nothing that was not sent is. Sends and
 * receives fail, those that the queue pair may touch when it is fenced; bytes that wait are
 * dropped.
 */
void urn_st_abort(struct urn_st *s);
/*
 * End the stream behind the last send, and read no more: bytes that come are dropped (SF-10). When
 * the connection broke, bytes that wait are dropped, and the shell may go when it is fenced.
 */
void urn_st_close(struct urn_st *s);
/* Hold the source to one kind of transfer, from the next decision on (SF-9). returns: 0; EINVAL */
int urn_st_set_force(struct urn_st *s, enum urn_st_force force);
/* Set a threshold of the source (tx) or the sink (SF-9). returns: 0; EINVAL: not a threshold */
int urn_st_set_threshold(struct urn_st *s, bool tx, const struct urn_st_threshold *t);
/* True when a receive would be complete at once: bytes are here, the stream has ended, or the
 * connection broke. */
bool urn_st_readable(const struct urn_st *s);
/* True when a SrcAvail waits for a receive (SF-4). A receive that can wait for the time of a read
 * gets its bytes by zero copy; one that can't gets them by BCopy, when patience is over. */
bool urn_st_offered(const struct urn_st *s);
/* True when urn_st_send() takes bytes now, or returns EPIPE or ENOTCONN. */
bool urn_st_writable(const struct urn_st *s);

/* ---- the queue pair (machine.c) */

/*
 * A message came.
 *
 * slot: the shell's number of the receive that has it
 * from: its bytes
 * bytes: its length
 */
void urn_st_arrived(struct urn_st *s, uint32_t slot, const void *from, uint32_t bytes);
/* The oldest SEND, WRITE or READ of its kind is complete. */
void urn_st_sent(struct urn_st *s);
void urn_st_written(struct urn_st *s);
void urn_st_read(struct urn_st *s);
/* A period has passed. */
void urn_st_tick(struct urn_st *s);
/*
 * The connection broke: the adapter, the path or the peer died. The shell tells all messages and
 * completions that it has before. When both ways had ended, and the peer has all, nothing is lost:
 * no error follows.
 */
void urn_st_down(struct urn_st *s);
/* The peer refused a WRITE or READ, because its message had named memory that it may not name. The
 * shell tells all messages that it has before, as for urn_st_down(). */
void urn_st_refused(struct urn_st *s);
/* After DIED: nothing touches memory of the program any more. Sends and receives that the queue
 * pair might touch fail now. */
void urn_st_fenced(struct urn_st *s);

#endif
