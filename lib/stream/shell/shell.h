/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shell of byte streams (doc/inside/stream.md): queue pairs, buffers, connections, waits and
 * the calls of programs, around the machine of lib/stream, which decides.
 *
 *   calls.c, vector.c, poll.c ─► the program's calls
 *   wait.c, bell.c            ─► sleeps, and wakes those who sleep
 *   progress.c                ─► completions and news go to the machine
 *   act.c                     ─► actions of the machine become requests
 *   up.c, meet.c, hub.c       ─► buffers and queue pair; greetings; events of connections
 *   memory.c, node.c          ─► memory for transfers without a copy; the part that streams share
 *
 * Locks, in the order in which they are taken: a stream's `sending` or `receiving`, one call of a
 * direction each; a stream's `lock`, its machine and its queue pair; a node's `lock`, lists and
 * news.
 */
#ifndef URN_STREAM_SHELL_SHELL_H
#define URN_STREAM_SHELL_SHELL_H

#include "stream/shell/bell.h"
#include "stream/stream.h"

#include <urnic/cm.h>
#include <urnic/stream.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum {
	URN_SH_SLOTS = 15, /* messages on their way; one more for Abort */
	URN_SH_REQUESTS = URN_SH_SLOTS + 1 + URN_ST_RECVS + 1, /* sends, reads, a write */
	URN_SH_BURST = 16,	   /* completions that are taken from the queue at once */
	URN_SH_EVENTS = 64,	   /* events of connections that one look takes, at most */
	URN_SH_SHARED_MS = 10,	   /* period of looks at a stream that another thread polls */
	URN_SH_FLOOR = 64 << 10,   /* bytes from which on memory may be worth registering; and of
				      the memory that smaller receives are read into */
	URN_SH_CEILING = 4 << 20,  /* bytes at which each send is worth it */
	URN_SH_INLINE = 4096,	   /* bytes that a SrcAvail brings, at most */
	URN_SH_ONCE_MAX = 1 << 30, /* bytes of one send or receive of the machine */
	URN_SH_TICK_MS = 1,	   /* period of the machine's patience */
	URN_SH_ABORT_MS = 1000,	   /* time for an Abort to leave before the queue pair stops */
	URN_SH_END_MS = 1000,	   /* time that a close waits for the peer's own end */
	URN_SH_SPINS = 400,	   /* looks before a sleep */
	URN_SH_POLL_SPINS = 1600,  /* the same of a poll, for all its streams together */
	URN_SH_SPIN_YIELD = 8,	   /* looks from one offer of the core to the next */
	URN_SH_HUB_LOOKS = 256,	   /* looks without a sleep until events are looked for */
	URN_SH_WHY = 256,	   /* bytes of an error text */
	URN_SH_GREETING = 24,	   /* bytes of a greeting as it travels */
	URN_SH_REFUSAL_HEAD = 4,   /* bytes in front of the text of a refusal */
	URN_SH_PORT = 1,	   /* the port of a device */
	URN_SH_POLL_MAX = 65536,   /* entries of one urn_stream_poll() */
};

/* Services of streams: "USTR", then a port. */
#define URN_SH_SERVICE 0x5553545200000000ull

/* Stages of a connection. */
enum urn_sh_phase {
	URN_SH_ASKED,	 /* a request is out; the machine has not begun */
	URN_SH_ANSWERED, /* a reply is out; the machine has begun, and sends nothing yet */
	URN_SH_UP,	 /* bytes flow, or did: the machine knows */
	URN_SH_BROKEN,	 /* the connection was not made: err, why */
};

/* News of a connection, added up; under the node's lock. */
enum urn_sh_news {
	URN_SH_N_REPLY = 1 << 0,   /* event: the peer accepts */
	URN_SH_N_READY = 1 << 1,   /* the peer is ready */
	URN_SH_N_REFUSED = 1 << 2, /* event: rejected, or no answer */
	URN_SH_N_GONE = 1 << 3,	   /* the peer ended the connection, or is gone */
	URN_SH_N_DEAD = 1 << 4,	   /* the dataplane is gone */
};

/* Memory that is registered for transfers without a copy; the node's. */
struct urn_sh_memory {
	TAILQ_ENTRY(urn_sh_memory) entry; /* in the node's list */
	struct ibv_mr *mr;		  /* the region */
	uint32_t users;			  /* sends and receives that use it now */
};

/* A request for a connection, which waits to be accepted. */
struct urn_sh_request {
	STAILQ_ENTRY(urn_sh_request) entry; /* in the listener's queue */
	struct urn_abi_cm_event ev;	    /* the event of the request */
};

/* The part that the streams of a device share. */
struct urn_stream_node {
	struct ibv_context *ctx;   /* the program's; open as long as the node */
	struct ibv_pd *pd;	   /* protection domain of all streams */
	struct urn_cm_end *cm;	   /* events of all connections and listeners */
	struct ibv_port_attr port; /* attributes when the node was opened */
	uint8_t rd_atomic;	   /* reads that a queue pair may have under way, 1 to 16 */
	uint16_t line;		   /* bytes of this machine's cache line; 0: not known */
	pthread_mutex_t lock;	   /* protects all below, and news of streams */
	_Atomic bool dead;	   /* the dataplane is gone; written under the lock */
	TAILQ_HEAD(, urn_stream) streams;
	TAILQ_HEAD(, urn_stream_listener) listeners;
	TAILQ_HEAD(, urn_sh_memory) memory;
};

/* A listener. All but the node's pointer under the node's lock. */
struct urn_stream_listener {
	TAILQ_ENTRY(urn_stream_listener) entry; /* in the node's list */
	struct urn_stream_node *node;		/* set for life */
	struct urn_stream_options o; /* options of accepted streams, defaults filled in */
	uint32_t id;		     /* connection management's name */
	uint32_t backlog, waiting;   /* requests that may wait; that do */
	STAILQ_HEAD(, urn_sh_request) requests; /* the oldest first */
	int wake; /* eventfd, readable while requests wait or the dataplane is gone */
};

/* A send or receive of the machine that a call waits for. */
struct urn_sh_op {
	bool open;		     /* the machine has it */
	enum urn_st_status status;   /* the end; valid when not open */
	uint64_t bytes;		     /* bytes sent or received; valid when not open */
	struct urn_sh_memory *known; /* memory of the node that it uses; NULL: none */
	struct ibv_mr *mr;	     /* region made for it alone; NULL: none */
};

/* One end of a connection. Under its lock, unless the field says otherwise. */
struct urn_stream {
	TAILQ_ENTRY(urn_stream) entry; /* in the node's list; the node's lock */
	struct urn_stream_node *node;  /* set for life */
	struct urn_stream_options o;   /* defaults filled in; set for life */
	uint32_t id;		       /* connection management's name; the node's lock */
	_Atomic uint32_t news;	       /* enum urn_sh_news; written under the node's lock */
	struct urn_abi_cm_event event; /* event of N_REPLY and N_REFUSED; the node's lock */

	pthread_mutex_t sending;   /* held by the call that sends */
	pthread_mutex_t receiving; /* held by the call that receives */
	pthread_mutex_t lock;	   /* protects what follows */
	pthread_cond_t turn;	   /* the leader has looked, or leads no more */
	bool leading;		   /* a thread sleeps for all on the descriptors */
	uint32_t pollers;	   /* entries of calls of urn_stream_poll() under way */
	bool owned;		   /* one of them sleeps on the descriptors */
	uint64_t happened;	   /* changes that a sleeper may wait for, since the start */
	uint64_t inputs;	   /* messages and ends that came since the start, and 1 */
	struct urn_bell wake;	   /* news, or `happened` moved while a thread led */
	struct urn_bell poke;	   /* news, or `happened` moved while a thread polled */

	enum urn_sh_phase phase;
	int err;		  /* BROKEN: errno value */
	char why[URN_SH_WHY];	  /* text of the end with an error; "": none */
	struct urn_st_hello self; /* greeting of this end */
	uint8_t sgid_index;	  /* index of the own address */
	uint8_t peer[16];	  /* address of the peer; valid when `begun` */
	struct urn_st st;	  /* the machine; valid when `begun` */
	bool begun;		  /* the machine has begun */
	bool closed;		  /* the machine has ended well */
	bool died;		  /* the machine ended with an error: the queue pair has to stop */
	bool fenced;		  /* and did */
	bool down;		  /* the queue pair has failed, or the peer is gone */
	bool refused;		  /* with `down`: the peer refused its own memory */
	bool gone;		  /* the dataplane is gone */
	bool told;		  /* the machine knows of `down` */
	bool more;		  /* the last look left completions in the queue */
	uint64_t died_ms;	  /* clock when it died; valid with `died` */
	uint64_t ticked_ms;	  /* clock of the last tick */
	uint32_t looks;		  /* looks at the queue */

	struct ibv_comp_channel *channel; /* wakes a sleeper */
	bool armed;			  /* the next completion makes the channel readable, or one
					     did and nobody has taken its event */
	struct ibv_cq *cq;		  /* completions of both queues */
	struct ibv_qp *qp;
	uint32_t psn;		     /* first of the own packets' numbers that the peer sends */
	struct urn_st_piece *pieces; /* the machine's; o.buffers entries */
	uint8_t *mem;		     /* bounce, then in slots */
	size_t mem_bytes;	     /* bytes of it */
	struct ibv_mr *mr;	     /* its region */
	uint32_t in_bytes;	     /* bytes of an in slot */
	uint32_t out_bytes;	     /* bytes of an out slot; 0: not made yet */
	uint8_t *out;		     /* out slots, in memory of their own: the peer says how long */
	struct ibv_mr *out_mr;	     /* their region */
	uint32_t emitted;	     /* messages posted since the start */
	uint32_t *spare;	     /* in slots that are not posted */
	uint32_t spares;	     /* their number */

	struct urn_sh_op tx, rx; /* the program's send and receive */
	uint8_t *to;		 /* rx: memory of the program when it goes over the bounce; NULL */
	uint64_t read_at, read_bytes; /* read under way: address, length; 0 bytes: none */
};

/* ---- node.c, memory.c */

/* Fill in defaults. returns: 0, or EINVAL with its text */
int urn_sh_options(struct urn_stream_options *to, const struct urn_stream_options *from);
/*
 * Keys for memory of the program, from what the node has or by a region for this use.
 *
 * op: gets the memory; access: of a region that is made
 * returns: 0, or an errno value with its text
 */
int urn_sh_register(struct urn_stream_node *n, struct urn_sh_op *op, struct urn_st_area *area,
		    int access);
/* Give the memory of an op back. returns: 0, or why the region made for it stays, with its text */
int urn_sh_unregister(struct urn_stream_node *n, struct urn_sh_op *op);

/* ---- connect.c */

/* A port that processes share which fork() has made (abi/cm.h). */
struct urn_sh_share {
	uint64_t key; /* their secret; not 0 */
	bool heir;    /* takes connections before processes without this */
};
/* Listen like urn_stream_listen(). share: NULL: with nobody */
int urn_sh_listen(struct urn_stream_listener **out, struct urn_stream_node *n, uint16_t port,
		  uint32_t backlog, const struct urn_stream_options *o,
		  const struct urn_sh_share *share);
/* Take the oldest request of a listener out; the caller frees it. returns: 0; EAGAIN: none waits;
 * EIO: the dataplane is gone */
int urn_sh_next(struct urn_sh_request **out, struct urn_stream_listener *l);
/*
 * Answer a request: make a stream of it.
 *
 * o: like those of urn_stream_listen(); ev: the request's
 * returns: 0; EPROTO: the peer was refused; or an errno value of this end, and the peer was refused
 */
int urn_sh_take(struct urn_stream **out, struct urn_stream_node *n,
		const struct urn_stream_options *o, const struct urn_abi_cm_event *ev);

/* ---- hub.c */

/* Take the events of connection management that are there, to whom they belong. */
void urn_sh_hub_look(struct urn_stream_node *n);
/* The same for a caller that has the node's lock. */
void urn_sh_hub_look_locked(struct urn_stream_node *n);
/* Make an eventfd readable, or not readable; one that tells of a state. */
void urn_sh_raise(int fd);
void urn_sh_lower(int fd);

/* ---- meet.c */

/* Write the greeting of an end. to: URN_SH_GREETING bytes */
void urn_sh_greet(const struct urn_stream *s, uint8_t *to);
/*
 * Read a peer's greeting.
 *
 * h, line: set when 0 is returned
 * why: text otherwise, URN_SH_WHY bytes
 * returns: 0; EPROTO
 */
int urn_sh_greeted(const uint8_t *from, uint32_t bytes, struct urn_st_hello *h, uint16_t *line,
		   char *why);
/* Refuse a request, and say why. */
void urn_sh_refuse(struct urn_stream_node *n, uint32_t id, const char *why);
/* Text and errno value for a connection that was rejected, or not answered. */
int urn_sh_refusal(const struct urn_abi_cm_event *ev, char *why);
/* Index of a device's address. gid: all of it, or any of a family (own == false). returns: -1: none
 */
int urn_sh_find_gid(struct urn_stream_node *n, const uint8_t gid[16], bool own);

/* ---- up.c */

/* Make a stream with buffers and a queue pair in INIT, in no list. returns: 0 or an errno value */
int urn_sh_make(struct urn_stream **out, struct urn_stream_node *n,
		const struct urn_stream_options *o);
/* Begin the machine and bring the queue pair up. why: URN_SH_WHY bytes, set on failure. returns: 0,
 * or an errno value */
int urn_sh_begin(struct urn_stream *s, const struct urn_abi_cm_event *ev,
		 const struct urn_st_hello *greeting, uint16_t line, char *why);
/* End the connection and free all. The stream is in no list. */
void urn_sh_free(struct urn_stream *s);
/* The connection is not made. */
void urn_sh_break(struct urn_stream *s, int err, const char *why);

/* ---- act.c */

/* Carries actions out; the machine's cfg.act. */
void urn_sh_act(void *arg, const struct urn_st_action *a);
/* Take a completion of the queue pair in. */
void urn_sh_complete(struct urn_stream *s, const struct ibv_wc *wc);

/* ---- progress.c */

/* Take in what came: completions, news, time. The stream's lock is held. returns: true: something
 * did */
bool urn_sh_progress(struct urn_stream *s);
/* Error of a connection that has ended with one. returns: 0: it stands */
int urn_sh_error(const struct urn_stream *s);
/* Milliseconds until urn_sh_progress() has something to do by time alone. returns: -1: never */
int urn_sh_due(const struct urn_stream *s);
/* Clock in ms, monotonic. */
uint64_t urn_sh_now(void);

/* ---- wait.c */

/* Something happened that others may wait for: wake them. The stream's lock is held. */
void urn_sh_happened(struct urn_stream *s);
/* Sleep until something happens, or for `ms`; -1: without end. The stream's lock is held, and given
 * away meanwhile. */
void urn_sh_wait(struct urn_stream *s, int ms);
/* Make the next completion wake a sleeper, unless one does already. Completions of before wake
 * nobody: the caller looks for them behind this call. The stream's lock is held, as below. */
void urn_sh_arm(struct urn_stream *s);
/* Take the event of a completion away, when there is one. */
void urn_sh_disarm(struct urn_stream *s);

/* ---- poll.c */

/* Sleep like poll(2). ms: -1: without end; returns: like poll(2) */
typedef int (*urn_sh_sleep_fn)(struct pollfd *fds, size_t n, int ms, void *arg);

/* A poll whose sleep is the caller's; read during the call. */
struct urn_sh_poll {
	struct urn_stream_pollfd *fds; /* entries of urn_stream_poll() */
	size_t n;		       /* entries */
	const uint64_t *seen;	       /* for each entry: value of the stream's `inputs` up to which
					  POLLIN is not told; NULL: 0 for all */
	urn_sh_sleep_fn sleep;
	void (*begin)(void *arg); /* called once, when nothing is ready at the first look and the
				     call may wait; NULL: not */
	bool lone;		  /* streams that are ready at the first looks end the call: other
				     descriptors are not asked then */
	void *arg;		  /* argument of both functions */
};
/* The same as urn_stream_poll(). */
int urn_sh_poll(const struct urn_sh_poll *all, int timeout_ms);

/* ---- calls.c */

/*
 * End the stream in both ways, and wait for up to `ms` until the peer has all that was sent. The
 * stream is to be closed still.
 *
 * returns: true: the peer has all, or never will
 */
bool urn_sh_end(struct urn_stream *s, uint32_t ms);
/* Look at a stream that was ended. returns: true: urn_stream_close() would not wait */
bool urn_sh_ended(struct urn_stream *s);
/* Begin a call that has a direction to itself. returns: false: another call has it, and the flags
 * forbid to wait */
bool urn_sh_enter(pthread_mutex_t *direction, uint32_t flags);
/* Send or receive as the public call does; the caller has the direction. */
ssize_t urn_sh_send(struct urn_stream *s, const void *data, size_t len, uint32_t flags);
ssize_t urn_sh_recv(struct urn_stream *s, void *data, size_t room, uint32_t flags);
/* Check the flags of a send or receive. returns: 0, or an errno value with its text */
int urn_sh_send_flags(const struct urn_stream *s, uint32_t flags);
int urn_sh_recv_flags(uint32_t flags);

/* Room for a send that does not wait, in bytes. */
uint64_t urn_sh_room(const struct urn_stream *s);
/* True when a receive finds bytes, the end of the stream, or a read to begin. */
bool urn_sh_readable(const struct urn_stream *s);

#endif
