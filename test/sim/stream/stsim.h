/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-stream-sim: two stream machines (lib/stream) for each stream, over simulated queue pairs
 * (SF-1 to SF-11). All choices come from a seed.
 *
 *   main.c      options, seeds, parallel processes
 *   run.c       scenarios; one run: steps in random order, deaths, migrations
 *   net.c       queue pairs: messages, writes and reads in order; keys of memory
 *   shell.c     the shell of a machine: actions and completions
 *   program.c   random writers and readers, and the oracle
 *   mischief.c  peers that break the protocol
 *
 * The oracle knows what programs sent and received: byte n of a stream is a function of the seed
 * and n. No function of lib/stream is called to find out what is right. Memory that a program got
 * back is filled with other bytes and loses its key, so that a late read or write shows.
 */
#ifndef URN_STSIM_H
#define URN_STSIM_H

#include "stream/stream.h"

#include "../rng.h"

#include <stdio.h>

enum {
	ST_STREAMS = 8,	    /* streams of a run */
	ST_AREAS = 16,	    /* sends and receives of an end at once */
	ST_BYTES = 768,	    /* bytes of an area */
	ST_GUARD = 16,	    /* bytes on each side of an area that nobody may touch */
	ST_BUFFERS = 8,	    /* BCopy buffers of an end */
	ST_SIZE = 128,	    /* bytes of the stream that a buffer takes, at most */
	ST_OPS = 64,	    /* requests of a queue pair that are not complete */
	ST_RECVS = 32,	    /* receives of an end */
	ST_STEPS = 2000000, /* steps of a run: more is a stall */
	ST_STUCK = 3000,    /* steps in which nothing happens: writers are stuck */
};

/* X(name, word, text): bugs that are imitated, so that the oracle is seen to notice */
/* clang-format off */
#define ST_SABOTAGES(X) \
	X(ORDER, "order", "a WrCompl arrives before its write") \
	X(LOST, "lost", "a message is lost") \
	X(TWICE, "twice", "a message arrives twice") \
	X(RECEIVES, "receives", "a receive is not posted") \
	X(COPY, "copy", "a copy is a byte off") \
	X(RETURN, "return", "a send is complete before its memory was read") \
	X(FENCE, "fence", "a broken queue pair still touches memory after it was fenced") \
	X(SILENT, "silent", "time does not pass")

/* X(name, word, text): messages of a peer that breaks the protocol */
#define ST_MISCHIEFS(X) \
	X(GARBAGE, "garbage", "a message of random bytes") \
	X(ANNOUNCE, "announce", "SrcAvail of more bytes than there are, and then BCopy") \
	X(UNNAMED, "unnamed", "SinkAvail or SrcAvail for memory that the peer may not name") \
	X(RD_COMPL, "rdcompl", "RdCompl without a SrcAvail, or for another place") \
	X(SEND_SM, "sendsm", "SendSm without a SrcAvail, or for another place") \
	X(WR_COMPL, "wrcompl", "WrCompl without a SinkAvail, or for more than its room") \
	X(TWO_OFFERS, "offers", "SrcAvail behind SrcAvail") \
	X(TWO_ADVERTS, "adverts", "SinkAvail behind SinkAvail") \
	X(CREDIT, "credit", "a count of free buffers that can't be") \
	X(OVERRUN, "overrun", "BCopy data without a buffer") \
	X(PLACE, "place", "BCopy data for another place in the stream") \
	X(EARLY_FIN, "fin", "Fin before all that was announced")
/* clang-format on */

enum st_sabotage {
	ST_BREAK_NOTHING,
#define X(name, word, text) ST_BREAK_##name,
	ST_SABOTAGES(X)
#undef X
		ST_BREAKS,
};

enum st_mischief {
	ST_BAD_NOTHING,
#define X(name, word, text) ST_BAD_##name,
	ST_MISCHIEFS(X)
#undef X
		ST_BADS,
};

/* One scenario. */
struct st_scenario {
	const char *name, *text;
	bool tight;    /* one buffer, one slot */
	bool demand;   /* BCopy buffers on demand */
	bool blind;    /* ends can't read */
	bool resumes;  /* BCopy behind SendSm may be left again */
	bool moves;    /* programs set thresholds and force kinds of transfer */
	bool closes;   /* programs close early */
	bool fickle;   /* programs take receives back, stop reading, and abort */
	bool migrates; /* the session below migrates, and repeats requests */
	bool dies;     /* the connection breaks */
	bool standoff; /* all write first, and nobody reads until all are stuck */
	bool pool; /* eight streams over one wire, the last one not read until the others are over
		    */
	bool transacts; /* commands and answers */
	bool turns;	/* both write, and read when that is complete */
	bool rogue;	/* a peer breaks the protocol */
};

/* Memory of a program, with a key while a send or receive has it. */
struct st_area {
	bool live;	/* a send or receive has it */
	bool send;	/* ... which is a send */
	uint32_t key;	/* valid when live */
	uint32_t bytes; /* in use */
	uint64_t at;	/* send: place of its first byte in the stream */
	bool secret;	/* receive: posted with URN_ST_UNANNOUNCED */
	uint8_t mem[ST_GUARD + ST_BYTES + ST_GUARD];
};

/* A request of a send queue. */
struct st_op {
	uint8_t act;	 /* URN_ST_A_SEND, _WRITE, _READ */
	bool refused;	 /* the peer's memory refused it */
	bool mischief;	 /* no machine sent it */
	bool fin;	 /* SEND: the message is Fin */
	uint32_t load;	 /* SEND: bytes of the stream in it, or that it says were written */
	uint32_t length; /* SEND: bytes of the message; else: bytes of the transfer */
	uint32_t rkey;	 /* key of raddr */
	uint64_t raddr;	 /* address at the peer */
	uint64_t addr;	 /* READ, WRITE: address here */
	uint8_t bytes[URN_ST_WIRE_MAX + ST_BYTES]; /* SEND: message; READ: bytes that were read */
};

/* One end of a stream. */
struct st_end {
	struct st_world *w;
	uint32_t stream, id;
	struct urn_st st;
	struct urn_st_piece pieces[ST_BUFFERS];
	/* queue pair */
	struct st_op op[ST_OPS];		      /* ring */
	uint32_t posted, executed, completed, polled; /* requests; each at most the one before */
	uint32_t spare[ST_RECVS], spares;	      /* receives that are not posted */
	uint32_t rq[ST_RECVS], rq_posted, rq_taken, rq_polled; /* ring of posted ones, by slot */
	uint32_t slot_bytes[ST_RECVS];			       /* length of the message in each */
	uint32_t slot_load[ST_RECVS]; /* bytes of the stream that the message brought */
	bool slot_fin[ST_RECVS];      /* the message is Fin */
	uint8_t slot[ST_RECVS][URN_ST_WIRE_MAX + ST_SIZE];
	bool error;	  /* fenced, or destroyed */
	bool died;	  /* DIED came, and fenced() is due */
	bool closed;	  /* CLOSED came */
	bool told_down;	  /* the machine knows that the connection broke */
	bool halted;	  /* a request was refused: the queue pair carries no more */
	uint64_t stalled; /* no request of this end is executed before this step */
	/* program */
	struct st_area area[ST_AREAS];
	uint32_t keys;		      /* keys given out */
	uint32_t target;	      /* bytes to be sent */
	uint64_t posted_bytes;	      /* bytes of sends begun */
	uint64_t sent, got;	      /* bytes of complete sends; bytes received */
	uint64_t sends, recvs;	      /* open */
	bool shut, close_called, eof; /* calls made; the end of the stream was seen */
	uint64_t came;		      /* bytes of the stream that the machine was told of */
	bool came_fin;		      /* ... and the end */
	bool drained;		      /* the connection broke, and the program has seen that */
	bool lazy;		      /* reads nothing yet */
	bool stopped;		      /* the program reads no more: urn_st_shutdown_read() */
	bool cancelling;	      /* urn_st_cancel() runs */
	uint32_t largest;	      /* bytes of a receive, at most */
	uint64_t asked;		      /* bytes of commands sent, or seen by the server */
};

struct st_world {
	const struct st_scenario *sc;
	uint64_t seed;
	struct sim_rng rng;
	enum st_sabotage sabotage;
	bool broken; /* the sabotage took place */
	bool trace;
	uint64_t step, progress; /* steps; the newest one in which something happened */
	uint32_t streams;
	struct st_end end[ST_STREAMS][2];
	uint64_t dies_at;	   /* step at which connections break; 0: never */
	bool cut;		   /* they are broken */
	bool fickle;		   /* the scenario's, in this run */
	bool aborted;		   /* a program called urn_st_abort() */
	enum st_mischief mischief; /* kind in this run; none mostly */
	uint64_t mischief_at;	   /* step from which on */
	bool mischief_done;	   /* it took place */
	uint32_t wire[2][ST_STREAMS * ST_OPS], wire_head[2],
		wire_tail[2]; /* pool: streams, by request */
	uint32_t command,
		answer;	 /* transacts: bytes of each; turns: command has bytes of a write */
	char error[240]; /* the oracle's verdict */
	uint64_t decided[URN_ST_D_COUNT];
	uint64_t bad[ST_BADS], bad_died[ST_BADS];
	uint64_t hash;
};

/* ---- run.c */

extern const struct st_scenario st_scenarios[];
extern const unsigned int st_scenario_count;
/* One run. returns: true: the oracle has nothing against it */
bool st_run(struct st_world *w, const struct st_scenario *sc, uint64_t seed);
void st_fail(struct st_world *w, const char *text, ...) __attribute__((format(printf, 2, 3)));
void st_trace(struct st_world *w, const char *text, ...) __attribute__((format(printf, 2, 3)));
/* True when the sabotage is on; the run is then broken. */
bool st_break(struct st_world *w, enum st_sabotage what);

static inline struct st_end *
st_peer(struct st_end *e)
{
	return &e->w->end[e->stream][!e->id];
}

/* ---- net.c */

/* Post a request. */
struct st_op *st_net_post(struct st_end *e, uint8_t act);
void st_net_receive(struct st_end *e);
/* Execute or complete one request of an end, if there is any. */
void st_net_execute(struct st_end *e);
void st_net_complete(struct st_end *e);
/* The session below moves to another path: requests that are not known to be delivered are executed
 * again. */
void st_net_migrate(struct st_end *e);

/* ---- shell.c */

void st_shell_open(struct st_end *e, const struct urn_st_config *base);
/* Take one message or one completion, or do what an action asked for. */
void st_shell_step(struct st_end *e);

/* ---- program.c */

void st_program_step(struct st_end *e);
void st_program_sent(struct st_end *e, const struct urn_st_action *a);
void st_program_received(struct st_end *e, const struct urn_st_action *a);
/* The area of this address in an end's memory that is in use. NULL: none */
struct st_area *st_area_of(struct st_end *e, uint64_t addr, uint64_t bytes);
void st_judge_end(struct st_world *w);

/* ---- mischief.c */

/* Send a message that breaks the protocol, when the time for it is there. */
void st_mischief_step(struct st_end *e);
/* Change a message on its way out. */
void st_mischief_change(struct st_end *e, struct urn_st_msg *m);

#endif
