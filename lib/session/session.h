/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of sessions that survive an adapter, as a state machine (doc/inside/failover.md).
 * The machine is pure: events come in as calls, actions go out to a function, and nothing here
 * knows verbs, clocks, threads or memory of the program. The layer above is called the shell: it
 * owns queue pairs, buffers and timers, carries actions out, and reports back.
 *
 *   shell ─► post, done, received, acked, down, up, fail_back, fenced, drained, rebound,
 *            report, migrated, tick ─► urn_sess_conn
 *   urn_sess_conn ─► FENCE, DRAIN, REBUILD, BIND_ALL, RECEIVE, POST, COMPLETE, TELL, READY, WAKE ─►
 * shell
 *
 *   CONNECTED ─► SLEEPING ─► DRAINING ─► REPORTED ─► BINDING ─► ANSWERED ─► MIGRATED ─► CONNECTED
 *
 * A call and the actions that it causes are one step. The function that takes actions must not call
 * back: the shell notes FENCE, DRAIN and BIND, and answers them when the call has returned.
 */
#ifndef URN_SESSION_SESSION_H
#define URN_SESSION_SESSION_H

#include "session/header.h"

enum {
	URN_SESS_PATHS = 16,	  /* paths of a connection, at most */
	URN_SESS_ATOMICS = 16,	  /* atomics of a peer whose results a REPORT carries */
	URN_SESS_AHEAD = 1 << 16, /* epochs that a peer may be ahead: more are forged */
	URN_SESS_ALL = (1 << URN_SESS_PATHS) - 1, /* bits of all paths */
};

/* X(name, meaning): states of a connection */
/* clang-format off */
#define URN_SESS_STATES(X) \
	X(CONNECTED, "the program's requests go to the path in use") \
	X(SLEEPING, "the old queue pair is being fenced, and requests of the program are queued") \
	X(DRAINING, "the old queue pair is fenced, and its last completions are being taken") \
	X(REPORTED, "REPORT was sent, and the peer's has not come") \
	X(BINDING, "both REPORTs are known, and memory windows are being bound on the new path") \
	X(ANSWERED, "receives are on the new path, and the peer's are not known to be") \
	X(MIGRATED, "requests are on the new path, and other connections of the session are not") \
	X(DEAD, "no path is left, or an outcome cannot be known: all requests have failed")

/* X(name, text): counters of a connection */
#define URN_SESS_COUNTERS(X) \
	X(MIGRATIONS, "migrations begun") \
	X(AGAIN, "migrations begun anew, because the new path died") \
	X(REPORTS, "REPORTs sent, repeated ones included") \
	X(MIGRATEDS, "MIGRATED sent, repeated ones included") \
	X(REBUILT, "receive completions rebuilt from headers") \
	X(REPOSTED, "send requests posted again") \
	X(FOUND_DONE, "send requests found done by the peer's REPORT") \
	X(ATOMICS_FOUND, "atomics whose result came from the peer's record") \
	X(ATOMICS_UNKNOWN, "atomics that failed because their outcome is unknown") \
	X(OLD_EPOCH, "control messages dropped: of an older epoch") \
	X(REPEATED, "control messages dropped: repeated, or not expected now") \
	X(FORGED, "control messages dropped: contradict what was sent and received") \
	X(STALE, "completions dropped: of a queue pair that was left") \
	X(DUPLICATE, "receive completions dropped: their message was received before") \
	X(BAD_ACK, "acknowledgements dropped: of messages that were never sent") \
	X(BAD_EVENT, "events of the shell dropped: impossible in this state")
/* clang-format on */

enum urn_sess_state {
#define X(name, meaning) URN_SESS_##name,
	URN_SESS_STATES(X)
#undef X
		URN_SESS_STATE_COUNT,
};

enum urn_sess_counter {
#define X(name, text) URN_SESS_C_##name,
	URN_SESS_COUNTERS(X)
#undef X
		URN_SESS_COUNTER_COUNT,
};

/* Send requests. */
enum urn_sess_kind {
	URN_SESS_SEND,	 /* has a message id and a header */
	URN_SESS_WRITE,	 /* has a message id and no header */
	URN_SESS_READ,	 /* may be repeated */
	URN_SESS_ATOMIC, /* must not be repeated */
	URN_SESS_BIND,	 /* a window is bound, or invalidated */
	URN_SESS_KINDS,
};

/* Ends of a send request. */
enum urn_sess_status {
	URN_SESS_OK,
	URN_SESS_UNKNOWN, /* an atomic that may have been carried out, or not */
	URN_SESS_FLUSHED, /* the connection is dead */
	URN_SESS_GENUINE, /* the request failed for a reason of its own, and would on each path */
};

/* X(name, text): reasons of death (FO-11, FO-14, FO-15, FO-19) */
/* clang-format off */
#define URN_SESS_REASONS(X) \
	X(ALIVE, "the connection is alive") \
	X(NO_PATH, "no path is alive on both sides") \
	X(NO_HEADER, "a Send was delivered, and its header is not in any receive") \
	X(NO_OUTCOME, "the outcome of an atomic cannot be known") \
	X(NO_REQUEST, "a request failed for a reason of its own, or this end goes") \
	X(PEER_DEAD, "the peer says that its end is dead")
/* clang-format on */

enum urn_sess_reason {
#define X(name, text) URN_SESS_##name,
	URN_SESS_REASONS(X)
#undef X
		URN_SESS_REASON_COUNT,
};

/* Flags of a REPORT. */
enum urn_sess_report_flag {
	URN_SESS_R_READY = 1 << 0,  /* an answer: the sender's receives are on the new path */
	URN_SESS_R_LOG = 1 << 1,    /* the sender has a record of the atomics that it carried out */
	URN_SESS_R_UNSURE = 1 << 2, /* ... and cannot tell of the next one behind `atomics` */
	URN_SESS_R_DEAD = 1 << 3,   /* the sender's end is dead */
};

/* The record of atomics that the peer had us carry out, as the shell reads it from the log
 * (abi/queue.h). */
struct urn_sess_record {
	uint64_t count;			/* atomics carried out over the life of the connection */
	uint64_t old[URN_SESS_ATOMICS]; /* result of the atomic n is old[n % URN_SESS_ATOMICS]; n
					   from 1 on */
	bool log;			/* a record exists; else count and old are 0 */
	bool unsure; /* the atomic behind the last one may have been carried out, or not */
};

/* REPORT (FO-13). */
struct urn_sess_report {
	uint32_t epoch; /* epoch of the migration; the first one is 1 */
	uint32_t flags; /* enum urn_sess_report_flag */
	/* bits by path: alive for the sender; the same in all repeats of an epoch. Those
	 * URN_SESS_PATHS higher: of these, the ones that the sender shuns */
	uint32_t paths;
	uint64_t sent; /* LAST RELIABLY SENT MSGID */
	uint64_t received;		/* LAST RELIABLY RECEIVED MSGID */
	uint64_t sends;			/* Sends among the messages up to `sent` */
	uint64_t atomics;		/* struct urn_sess_record.count */
	uint64_t old[URN_SESS_ATOMICS]; /* struct urn_sess_record.old */
};

/* Actions. */
enum urn_sess_act {
	URN_SESS_FENCE, /* path: error state for its queue pair; answer fenced() when no packet can
			   be placed */
	URN_SESS_DRAIN, /* path: done(), received() for all completions, found() for receives
			   without; then drained() */
	URN_SESS_REBUILD,  /* index, header: this receive is complete */
	URN_SESS_BIND_ALL, /* path: bind windows of complete binds there; answer rebound() */
	URN_SESS_RECEIVE,  /* path, index: post this receive there, or give it back to the SRQ */
	URN_SESS_POST,	   /* path, seq: post this request there, and flush reads as usual */
	URN_SESS_COMPLETE, /* seq, status, and old of an atomic whose result came by REPORT (known)
			    */
	URN_SESS_FLUSH,	   /* index: this receive has failed */
	URN_SESS_TELL,	   /* message: send it over the paths alive */
	URN_SESS_READY,	   /* epoch: send MIGRATED over the paths alive */
	URN_SESS_WAKE,	   /* all connections of the session have migrated: resume() each, and wake
			      sleepers */
	URN_SESS_DIED,	   /* reason: no request will be carried out any more */
};

/* An action. Fields that its kind does not name are 0. */
struct urn_sess_action {
	enum urn_sess_act act;
	uint32_t path;		     /* index of a path */
	uint32_t index;		     /* the shell's number of a receive */
	uint32_t epoch;		     /* epoch of the queue pair or the message */
	uint64_t seq;		     /* number of a send request */
	enum urn_sess_status status; /* end of a send request */
	enum urn_sess_reason reason; /* reason of the death */
	bool known;		     /* old is valid */
	uint64_t old;		     /* result of an atomic */
	const struct urn_sess_header
		*header; /* header of a rebuilt receive; valid during the call */
	const struct urn_sess_report *message; /* to be sent; valid during the call */
};

/* A send request between its post and its completion. */
struct urn_sess_wr {
	uint64_t id; /* message id; of a request without one: id of the last message before, 0: none
		      */
	uint64_t number; /* ATOMIC: number of the atomic on this connection, from 1 on; else 0 */
	uint64_t old;	 /* result of an atomic; valid with known */
	uint8_t kind;	 /* enum urn_sess_kind */
	bool posted;	 /* a queue pair has had it */
	bool done;	 /* complete, and perhaps behind one that is not */
	bool known;	 /* old came from the peer's record */
};

/* A receive without a completion, of a queue pair that was left. */
struct urn_sess_recv {
	struct urn_sess_header header; /* id 0: none was found */
	uint32_t index;		       /* the shell's number */
};

/* A session: the connections that go on together (FO-17). */
struct urn_sess_group {
	uint32_t moving; /* connections between CONNECTED and MIGRATED */
};

/* Sizes and surroundings of a connection. The arrays are the shell's, and stay as long as the
 * connection. */
struct urn_sess_config {
	struct urn_sess_group *group; /* the session */
	struct urn_sess_wr *wr;	      /* ring of send requests */
	uint32_t wrs; /* its entries, a power of two: requests posted and not complete, at most */
	struct urn_sess_recv *recv; /* receives without a completion */
	uint32_t recvs;		    /* its entries */
	uint32_t number;	    /* number of the connection, as headers to us carry it */
	uint32_t paths; /* bits by path: made and alive; path 0 is the one in use if alive, else the
			   next */
	void (*act)(void *arg, const struct urn_sess_action *a); /* takes actions */
	/* told of each change of the state, which is made already; NULL: nobody is */
	void (*step)(void *arg, enum urn_sess_state from);
	void *arg; /* argument of act and step */
};

/* One end of a connection. All is the machine's; the shell may read it. */
struct urn_sess_conn {
	struct urn_sess_config cfg;
	enum urn_sess_state state;
	enum urn_sess_reason reason; /* reason of the death */
	uint32_t epoch;		     /* epoch of the newest migration; 0: none yet */
	uint32_t used;		     /* epoch of the queue pair in use */
	uint32_t path;		     /* path in use, or left last */
	uint32_t next;		     /* path chosen; valid in BINDING */
	uint32_t alive;		     /* bits by path: may be moved to, or in use */
	uint32_t shun; /* bits by path: not chosen while another one is alive on both sides; the
			  shell's, which may change them at any time */
	uint32_t told;		     /* paths of our REPORT of the epoch; valid when reported */
	bool open;		 /* completions of the queue pair in use count: not drained yet */
	bool reported;		 /* our REPORT of the epoch was sent before the peer's came */
	bool heard;		 /* peer holds the peer's REPORT of the epoch */
	uint64_t head, tail;	 /* send requests: oldest without a completion; next one */
	uint64_t next_id;	 /* message id of the next Send or write */
	uint64_t sent;		 /* LAST RELIABLY SENT MSGID */
	uint64_t sends;		 /* Sends among the messages up to sent */
	uint64_t marked;	 /* requests before this one are not looked at again for sent */
	uint64_t atomics;	 /* atomics posted by the program */
	uint64_t received;	 /* LAST RELIABLY RECEIVED MSGID */
	uint64_t received_sends; /* Sends received */
	uint64_t peer_sent;	 /* highest LAST SENT that the peer told */
	uint64_t peer_received;	 /* highest LAST RECEIVED that the peer told, by LAST ACKED included
				  */
	uint32_t found;		 /* entries of cfg.recv in use */
	struct urn_sess_record record; /* atomics that the peer had us carry out */
	struct urn_sess_report peer;   /* newest REPORT of the peer; valid with heard */
	uint64_t counter[URN_SESS_COUNTER_COUNT];
};

/* Names of states, texts of counters and reasons, for logs. returns: "?" for none */
const char *urn_sess_state_name(unsigned int state);
const char *urn_sess_counter_text(unsigned int counter);
const char *urn_sess_reason_text(unsigned int reason);

/* Begin a connection, CONNECTED. returns: false: the configuration makes no sense */
bool urn_sess_init(struct urn_sess_conn *c, const struct urn_sess_config *cfg);

/*
 * The connection is taken away, in any state: no other one of its session waits for it any more.
 * Requests stay as they are, no message goes out, and no call but urn_sess_init() may follow. The
 * last one that moved wakes the program (WAKE).
 */
void urn_sess_fini(struct urn_sess_conn *c);

/* ---- requests (post.c) */

/*
 * A program's send request.
 *
 * seq: number of the request, for later calls
 * returns: 1: post it to c->path now; 0: it will come with POST; -1: the ring is full, or the
 * connection dead
 */
int urn_sess_post(struct urn_sess_conn *c, enum urn_sess_kind kind, uint64_t *seq);
/*
 * A completion that proves delivery: of a request READ, ATOMIC or BIND, or of the flush read behind
 * a request. All messages before it are delivered, too, except for BIND. epoch: of the queue pair
 * returns: false: the completion is stale, and dropped
 */
bool urn_sess_done(struct urn_sess_conn *c, uint32_t epoch, uint64_t seq);
/* The peer acknowledged messages by LAST ACKED. */
void urn_sess_acked(struct urn_sess_conn *c, uint64_t id);
/*
 * A receive completion.
 *
 * returns: false: dropped; the receive is the shell's again
 */
bool urn_sess_received(struct urn_sess_conn *c, uint32_t epoch, const struct urn_sess_header *h);
/* This end goes, or has failed beyond a request: all requests get FLUSHED, and nothing migrates. */
void urn_sess_quit(struct urn_sess_conn *c);
/*
 * A request failed for a reason of its own, as the first of its queue pair: those before it were
 * carried out, for a queue pair is served in order. The request gets GENUINE, all behind it
 * FLUSHED, and nothing migrates.
 */
void urn_sess_failed(struct urn_sess_conn *c, uint32_t epoch, uint64_t seq);

/* ---- paths and migration (machine.c) */

/* A path died, here or there: adapter, link, keepalive, or retries used up. */
void urn_sess_down(struct urn_sess_conn *c, uint32_t path);
/* A path has new queue pairs on both sides, and has carried probes for a while. */
void urn_sess_up(struct urn_sess_conn *c, uint32_t path);
/* Move to the best path alive, unless it is in use. */
void urn_sess_fail_back(struct urn_sess_conn *c);
/* Nothing can be placed any more through the queue pair of the epoch. */
void urn_sess_fenced(struct urn_sess_conn *c, uint32_t epoch);
/*
 * A receive that the left queue pair took or held, and that has no completion; in the order of
 * receives.
 *
 * h: the header in its buffer; NULL: none was found
 * returns: false: too many, or not now
 */
bool urn_sess_found(struct urn_sess_conn *c, uint32_t index, const struct urn_sess_header *h);
/* All completions and receives of the left queue pair were told. record: of the atomics that it
 * carried out */
void urn_sess_drained(struct urn_sess_conn *c, uint32_t epoch,
		      const struct urn_sess_record *record);
/* All windows are bound on the new path. */
void urn_sess_rebound(struct urn_sess_conn *c, uint32_t epoch);
/* A REPORT of the peer. */
void urn_sess_report(struct urn_sess_conn *c, const struct urn_sess_report *r);
/* MIGRATED of the peer. */
void urn_sess_migrated(struct urn_sess_conn *c, uint32_t epoch);
/* A period has passed: repeat what was not answered. */
void urn_sess_tick(struct urn_sess_conn *c);
/* The session goes on. */
void urn_sess_resume(struct urn_sess_conn *c);

#endif
