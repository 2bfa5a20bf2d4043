/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider of sessions: the virtual device urnic0 above two real adapters
 * (doc/inside/failover.md). The provider is the shell of the session machine (lib/session): it
 * owns the queue pairs of all paths, carries the machine's actions out, and reports back.
 *
 *   parse.c   URNIC_SESSION                    send.c     send requests and flush READs
 *   context.c opening, the provider's table    recv.c     receives and their headers
 *   query.c   attributes, events of devices    take.c     completions of the adapters
 *   memory.c  domains, regions, addresses      cq.c       software completion queues
 *   keys.c    keys of one region, by adapter   cq_ex.c    the same, polled in the extended way
 *   qp.c      queue pairs                      channel.c  completion channels
 *   connect.c the look-up, and the paths       control.c  control paths
 *   peer.c    the answer of a look-up          shell.c    the machine's actions
 *   wr.c      ibv_wr_*(); cm*.c: librdmacm     thread.c   the thread that moves connections
 *   silence.c adapters that do not answer      fork.c     children of fork()
 *   atomic.c  atomics across a migration       record.c   the log of atomics
 *   regions.c the program's regions            log.c, lines.c: the log of steps
 *   options.c variables of the environment     calls.c    calls that make and end objects
 *   again.c   attaching to lost adapters again anew.c     objects of an adapter that came back
 *   rest.c    ... a few at a time              heal.c     paths made anew, and trusted
 *   paths.c, room.c: queue pairs of paths, and memory of queue pairs; wreck.c: lost adapters
 *   link.c    ports that go down and up; explain.c: errors; srq*.c: shared receive queues
 *
 * Locking: one lock a context protects all objects of the context, and is held around calls of the
 * machine and of the adapters. The thread of the context carries migrations out; calls of the
 * program only note what is to be done, and wake the thread.
 */
#ifndef URN_VERBS_SESSION_SV_H
#define URN_VERBS_SESSION_SV_H

#include "session/heal.h"
#include "session/wire.h"
#include "verbs/provider/provider.h"
#include "verbs/session/explain.h"
#include "verbs/session/keys.h"
#include "verbs/session/lines.h"
#include "verbs/session/options.h"
#include "verbs/session/parse.h"
#include "verbs/session/peer.h"
#include "verbs/session/regions.h"
#include "verbs/session/session.h"

#include <urnic/cm.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum {
	URN_SV_CONTROLS = 8,	    /* receives, and Sends in flight, of a control path */
	URN_SV_CONTROL_BYTES = 192, /* bytes of one of them */
	URN_SV_BUCKETS = 256,	    /* lists of paths by the number of a queue pair */
	URN_SV_GIDS = 64,	    /* entries of the GID table that outlive the primary adapter */
	URN_SV_BATCH = 16,	    /* completions that are taken from an adapter at a time */
	URN_SV_SGES = 16,	    /* elements of a request, at most */
	URN_SV_INLINE = 256,	    /* bytes of inline data of a request, at most */
	URN_SV_SPARE = 8,	    /* requests of a real send queue for flush READs */
	URN_SV_ATOMICS = URN_SESS_ATOMICS, /* atomics of a queue pair in flight, each way */
};

/* Bits of a real request's wr_id, above the number of the request or receive. */
#define URN_SV_ID_FLUSH (1ull << 63) /* a flush READ */
#define URN_SV_ID_RECV (1ull << 62)  /* a receive */
#define URN_SV_ID_KEYS (1ull << 61)  /* a READ of the peer's table of keys */
#define URN_SV_ID_PROBE (1ull << 60) /* a READ that probes a path */
#define URN_SV_ID_BITS (URN_SV_ID_FLUSH | URN_SV_ID_RECV | URN_SV_ID_KEYS | URN_SV_ID_PROBE)

struct urn_sv_qp;
struct urn_sv_shared;
struct urn_sv_srq;

/* Modes of a queue pair. */
enum urn_sv_mode {
	URN_SV_NEW,	/* not connected: receives are kept */
	URN_SV_PLAIN,	/* without a session: all goes to the primary adapter as it is */
	URN_SV_SESSION, /* with a session */
};

/* How far a path is with being made anew (heal.c). Context's lock. */
struct urn_sv_heal {
	struct urn_sess_heal end; /* rounds of the two ends */
	uint64_t due;		  /* ms: when the next offer or probe is sent, at the earliest */
	uint64_t made_at;	  /* ms: when the queue pairs were last made anew; 0: never */
	uint64_t trusted_at;	  /* ms: when the path was last trusted again; 0: never lost */
	uint32_t pause;		  /* ms: between offers that nobody answers */
	uint32_t carried;	  /* probes that the queue pairs have carried */
	bool fresh;		  /* the queue pairs were made anew, and are not used yet */
	bool vain;		  /* the queue pairs could not be made: the round is not told yet */
	bool probing;		  /* a probe is in flight */
	bool peer_trusts;	  /* the peer counts the path as alive */
	bool peer_lost; /* the peer's end in `end.to` is never trusted again, whatever it said */
};

/* One path of a connection: a queue pair of the program's traffic, and one of control messages. */
struct urn_sv_path {
	LIST_ENTRY(urn_sv_path) link;	  /* in the bucket of real; context's lock */
	LIST_ENTRY(urn_sv_path) ctl_link; /* in the bucket of ctl; context's lock */
	struct urn_sv_qp *qp;		  /* constant */
	struct ibv_qp *real;		  /* carries the program's traffic; NULL: not made */
	struct ibv_qp *ctl;		  /* carries control messages; NULL: not made */
	uint32_t mine, theirs;		  /* adapters: here, and at the peer */
	uint32_t psn, ctl_psn; /* first PSNs that we send; backups and control paths only */
	uint32_t epoch;	       /* epoch of the machine in which real came into use */
	uint32_t ctl_busy;     /* bits by slot: a control Send is in flight */
	bool ctl_ok;	       /* the control path is connected, and has not failed */
	bool leaves;	       /* the control queue pair was given LEAVE to send */
	bool alone;	       /* real is one of an adapter that was lost, and in no bucket */
	struct urn_sv_shared *shared; /* real's shared receive queue (srq.h); NULL: none */
	uint64_t shut_at; /* ms: when real was shut to be made anew; 0: it was not; with shared */
	bool given;	  /* real has given back all receives of shared; valid with that */
	uint8_t gid[16];       /* the peer's address; valid when connected */
	uint32_t key;	       /* key of the peer's table of keys; valid when connected */
	struct urn_sv_heal heal;
};

/* A send request between its post and its completion. */
struct urn_sv_swr {
	uint64_t wr_id;		 /* the program's */
	uint64_t addr;		 /* address at the peer */
	uint64_t compare, swap;	 /* atomics */
	uint32_t key;		 /* the peer's key as the program knows it */
	uint32_t word;		 /* immediate data, network order */
	uint32_t length;	 /* bytes of the message that its receive completion tells */
	uint32_t num_sge;	 /* elements in urn_sv_qp.sge */
	enum ibv_wr_opcode op;	 /* opcode of the real request */
	enum ibv_wc_opcode told; /* opcode of its completion */
	unsigned int flags;	 /* IBV_SEND_FENCE, IBV_SEND_SOLICITED */
	uint8_t recv_op;	 /* opcode of the receive completion, for the header */
	bool imm;		 /* word is valid */
	bool signaled;		 /* the program wants a completion, even if all is well */
	bool silent; /* the first half of a request: the program hears of the second one */
	bool go;     /* the machine has let it go */
	bool posted; /* the queue pair in use has it */
};

/* A receive between its post and its completion. */
struct urn_sv_rwr {
	uint64_t wr_id;	  /* the program's */
	uint32_t num_sge; /* elements in urn_sv_qp.recv_sge */
	uint32_t room;	  /* bytes of the elements */
};

/* Things that the thread has to do for a queue pair; bits. */
enum urn_sv_todo {
	URN_SV_TO_FENCE = 1 << 0,
	URN_SV_TO_DRAIN = 1 << 1,
	URN_SV_TO_BIND = 1 << 2,
	URN_SV_TO_KEYS = 1 << 3, /* read the peer's table of keys */
	URN_SV_TO_AWAY = 1 << 4, /* the path in use takes no more: leave it */
};

/* The event of the last receive of a shared queue (srq_last.c). */
enum urn_sv_last {
	URN_SV_LAST_NONE,   /* the queue pair may take receives */
	URN_SV_LAST_WANTED, /* it takes none any more; the thread gives the event */
	URN_SV_LAST_DUE,    /* the event waits to be handed out */
	URN_SV_LAST_TOLD,   /* the program has it */
};

/* A queue pair of the program. */
struct urn_sv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	LIST_ENTRY(urn_sv_qp) link; /* in the context; its lock */
	struct urn_sv_ctx *ctx;	    /* constant */
	struct urn_sv_pd *pd;	    /* constant; the front's may be a parent domain */
	struct urn_sv_srq *srq;	    /* shared receive queue; NULL: none; constant */
	enum urn_sv_mode mode;	    /* context's lock, as all below */
	bool can;		    /* RC: may have a session; constant */
	bool lower;		    /* our adapters count first in numbers of paths; of a session */
	bool left;		    /* the peer has left: no message of it comes any more */
	bool told;		    /* the peer was told that this end leaves, or can't be */
	bool known;		    /* ... and has acknowledged that */
	bool lost;    /* the primary adapter came back since it was made: its number is not there */
	bool keeps;   /* receives stay, though the connection is dead: the peer has left */
	bool sig_all; /* each send request is signalled */
	struct urn_sv_path path[URN_SV_PATHS]; /* by own adapter * 2 + the peer's */

	/* the look-up */
	enum urn_sv_asked asked;
	uint32_t listener, question; /* ids of connection management; 0: none */
	bool promised;		     /* a question was answered; stays for the queue pair's life */
	struct urn_sv_peer peer;     /* valid: FOUND */
	struct ibv_qp_attr init;     /* P-P's attributes of INIT, to which a failed RTR returns */
	struct ibv_qp_attr rtr; /* the program's attributes for RTR, and later changes of them */
	struct ibv_qp_attr rts; /* the program's attributes for RTS, and later changes of them */
	int rtr_mask;		     /* attributes that rtr has */

	enum urn_sv_last at_last;    /* valid with srq */
	uint32_t events_got;	     /* events handed out */
	struct urn_sess_report last; /* the ids of the peer's LEAVE; valid with left */

	/* the machine */
	struct urn_sess_conn c;	    /* valid: SESSION */
	uint32_t todo;		    /* enum urn_sv_todo, bits */
	uint32_t todo_epoch;	    /* epoch of the action that is to be answered */
	uint64_t bound_at;	    /* ms: since when it waits; valid with bound */
	bool bound;    /* the new path waits for the shared receive queue (srq_move.c) */
	bool unfenced; /* the fence waits for the end of an adapter that does not answer */
	uint32_t reading;	    /* path whose table of keys is being read, plus one; 0: none */
	const char *why;     /* reason of the next step, for the log of steps; NULL: not known */
	uint64_t left_ns;    /* ns of CLOCK_MONOTONIC: when the path was left; valid in a migration,
				with a log */
	struct urn_sv_lines lines; /* in the log of steps */
	uint64_t unreadable; /* logs of atomics that could not be read */
	enum ibv_wc_status genuine; /* status of the request that failed by itself */
	uint64_t failed_at;	    /* number of that request; valid with failing */
	struct urn_sv_notes notes;  /* for sentences about errors */
	bool failing; /* the connection ends by it when this batch of completions is taken */
	bool ended;		    /* the death of the connection was seen to */
	uint64_t offers[URN_SESS_HEAL_STEPS]; /* offers heard, by what they asked for */
	uint64_t verdicts[URN_SESS_V_COUNT]; /* control messages, by enum urn_sess_verdict */
	bool failed_one; /* a request has completed with the reason of the connection's death */

	/* requests */
	struct ibv_qp_cap cap;	    /* capabilities that the program sees */
	struct urn_sv_swr *swr;	    /* ring of send requests, by number */
	struct ibv_sge *sge;	    /* cap.max_send_sge elements for each of them */
	struct urn_sess_wr *wr;	    /* the machine's ring */
	uint32_t wrs;		    /* entries of these rings, a power of two */
	uint32_t send_held;	    /* the program's requests whose completions it has not polled */
	uint64_t last_message;	    /* number of the newest message that was posted */
	uint32_t unflushed;	    /* messages posted since the last flush READ */
	uint64_t unflushed_bytes;   /* bytes of these */
	uint32_t flushes;	    /* flush READs in flight */
	enum urn_sess_status
		half; /* status of the silent half in front of the next request; OK: none */
	bool holds;		    /* requests wait until the peer's table of keys was read */
	bool full;		    /* requests wait until atomics in front of them are complete */
	uint64_t held_from;    /* number of the first request that waits; valid: holds or full */
	uint64_t atomics_done; /* the program's atomics that are complete */
	uint8_t peer_reads;    /* max_dest_rd_atomic as the program set it */
	struct urn_sv_rwr *rwr;	    /* ring of receives, by number */
	struct ibv_sge *recv_sge;   /* cap.max_recv_sge elements for each of them */
	struct urn_sess_recv *recv; /* the machine's array */
	uint32_t recvs;		    /* its entries */
	uint32_t rwrs;		    /* entries of the ring, a power of two */
	uint32_t recv_head;	    /* oldest receive without a completion */
	uint32_t recv_posted;	    /* next receive that the queue pair in use has not got */
	uint32_t recv_tail;	    /* next receive */
	uint32_t recv_held;	    /* receives whose completions the program has not polled */
	bool recv_live;		    /* receives go to the queue pair in use at once */

	/* ibv_wr_*() (wr.c): the batch that is being built */
	struct urn_sv_batch *batch; /* NULL: none was made */

	/* memory that adapters read and write: see urn_sv_room() */
	uint8_t *memory; /* shared memory, urn_alloc() */
	uint32_t tried[URN_SV_ADAPTERS];	   /* rounds in which memory was last tried there */
	size_t memory_bytes;			   /* its size */
	uint32_t memory_key;			   /* lkey of memory, as keys of the program are */
	struct ibv_mr *memory_mr[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint32_t send_room;	      /* bytes for each send request: header and inline data */
	size_t sends_at, receives_at; /* offsets in memory */
};

/* Offsets in a queue pair's memory. */
enum {
	URN_SV_AT_KEYS = 0,			     /* copy of the peer's table of keys */
	URN_SV_AT_LAND = sizeof(struct urn_sv_keys), /* where flush READs land */
	URN_SV_AT_CONTROL = URN_SV_AT_LAND + 64, /* control receives, then control Sends, by path */
	URN_SV_AT_REST =
		URN_SV_AT_CONTROL + 2 * URN_SV_PATHS * URN_SV_CONTROLS * URN_SV_CONTROL_BYTES,
};

/* A completion that waits for the program. */
struct urn_sv_wc {
	struct ibv_wc wc;
	struct urn_sv_qp *qp; /* NULL: of no session; else a slot of it is held */
	bool send;	      /* which of its queues */
};

/* A software completion queue. */
struct urn_sv_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	LIST_ENTRY(urn_sv_cq) link; /* in the context; its lock, as all below */
	struct ibv_cq *below[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint32_t tried[URN_SV_ADAPTERS]; /* rounds in which it was last tried; context's lock */
	uint32_t vector;		       /* the program's completion vector; constant */
	struct urn_sv_channel *channel; /* NULL: none */
	struct urn_sv_wc *ring;
	uint32_t size;		 /* entries of the ring, a power of two */
	uint32_t head, tail;	 /* completions polled; put in */
	uint32_t plain;		 /* completions in the ring that are of no session */
	uint32_t load;		 /* completions that its queue pairs may have outstanding */
	uint32_t real_load;	 /* the same in each queue below */
	uint32_t got;		 /* events handed out */
	bool armed;		 /* an event is due for the next completion */
	bool solicited;		 /* ... only for solicited ones and failures */
	bool due;		 /* an event waits to be handed out */
	pthread_mutex_t polling; /* held by an extended poll; protects shown */
	struct urn_sv_wc shown;	 /* extended poll: the completion being read */
};

/* A completion channel: its fd is an epoll set of event_fd, because the program may block on it. */
struct urn_sv_channel {
	struct ibv_comp_channel ibv;
	LIST_ENTRY(urn_sv_channel) link;		 /* in the context; its lock */
	struct ibv_comp_channel *below[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint32_t tried[URN_SV_ADAPTERS]; /* rounds in which it was last tried; context's lock */
	bool over[URN_SV_ADAPTERS]; /* no more events come from there; context's lock */
	int event_fd;		    /* eventfd: readable while a queue has an event due */
	int any_fd;		    /* epoll set of event_fd and the channels below; owner */
};

struct urn_sv_pd {
	struct ibv_pd ibv;
	LIST_ENTRY(urn_sv_pd) link;	       /* in the context; its lock */
	struct ibv_pd *below[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint32_t tried[URN_SV_ADAPTERS]; /* rounds in which it was last tried; context's lock */
	struct urn_sv_keys
		*remote; /* rkeys, in urn_alloc() memory; peers' flush READs read it, too */
	struct urn_sv_keys local; /* lkeys; context's lock */
	struct ibv_mr *remote_mr[URN_SV_ADAPTERS];
	struct urn_sv_regions regions; /* the program's; context's lock */
	uint32_t missing[URN_SV_ADAPTERS]; /* ... not there, nor ending; context's lock */
	_Atomic uint32_t objects; /* the program's regions, queues, queue pairs and addresses */
};

struct urn_sv_mr {
	struct ibv_mr ibv;
	struct urn_sv_pd *pd;		       /* constant; the front's may be a parent domain */
	struct ibv_mr *below[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint32_t tried[URN_SV_ADAPTERS]; /* rounds in which it was last tried; context's lock */
	bool ending; /* the program ends it: `missing` does not count it; context's lock */
	struct urn_sv_region region;	       /* in the domain's list */
};

struct urn_sv_ah {
	struct ibv_ah ibv;
	struct ibv_ah *below; /* the primary adapter's */
	struct urn_sv_life *life; /* the adapter's life to which it belongs; constant */
	struct urn_sv_pd *pd; /* constant */
};

/* The program's objects that an adapter which came back lacks (rest.c). Context's lock. */
struct urn_sv_rest {
	uint64_t due;	/* ms: when the next ones are tried; valid with goes or lacks */
	uint32_t round; /* times that all were tried; each object has the round of its last try */
	uint32_t lacks; /* objects that could not be made in this round */
	uint32_t pause; /* ms: in front of the next round */
	uint32_t left;	/* objects that may still be tried in this turn */
	bool goes;	/* the round is not over */
	bool first;	/* ... and is the first since the adapter came back */
	bool late; /* calls of the program kept a turn off: new ones wait until the round is over */
};

struct urn_sv_ctx {
	pthread_mutex_t lock;
	pthread_cond_t cond; /* a look-up has its answer, or a control Send has ended */
	_Atomic uint32_t
		waiting; /* threads that must get the lock before the program's next poll */
	LIST_ENTRY(urn_sv_ctx) forks; /* in the list of all contexts (fork.c) */
	bool forked; /* this process is a child of fork(), and the device the parent's; constant */
	struct ibv_context *below[URN_SV_ADAPTERS];  /* the primary first; lock, as all below */
	bool dead[URN_SV_ADAPTERS];		     /* the adapter's dataplane is gone */
	bool down[URN_SV_ADAPTERS]; /* the link of its port is down; valid unless dead */
	union ibv_gid gid[URN_SV_ADAPTERS];	     /* addresses of paths */
	uint8_t gid_index[URN_SV_ADAPTERS];	     /* their places in the GID tables */
	struct urn_sv_options options;		     /* settings by the environment; constant */
	struct urn_sv_place place[URN_SV_ADAPTERS];  /* names of the adapters; constant */
	struct urn_sv_again *again[URN_SV_ADAPTERS]; /* threads that attach again; NULL: none */
	uint32_t returned[URN_SV_ADAPTERS];	     /* times that the adapter came back */
	struct urn_sv_rest rest[URN_SV_ADAPTERS];    /* objects that it lacks since then */
	uint32_t remade;    /* paths whose queue pairs were made anew in this turn of the thread */
	uint32_t heal_next; /* queue pair whose paths are the first of the next turn; 0: any */
	uint32_t calls; /* calls of the program that make, change or end objects now */
	bool replacing; /* an adapter's objects are to be made anew, or are: such calls wait */
	uint64_t hold_until;	  /* ms: ... until then at the latest; valid with replacing */
	struct urn_sv_life *life; /* objects of the primary adapter alone (wreck.c) */
	bool crowded;	/* the primary adapter waits for the end of objects of lives before */
	uint32_t names; /* names given to memory that are no keys of the primary adapter */
	LIST_HEAD(, urn_sv_wreck) wrecks; /* adapters that were lost, with such objects */
	LIST_HEAD(, urn_sv_pd) pds;
	LIST_HEAD(, urn_sv_channel) channels;
	LIST_HEAD(, urn_sv_srq) srqs;
	LIST_HEAD(, urn_sv_end) ends; /* for connection management */
	struct urn_sess_group group;
	bool wake; /* all connections have migrated: resume() each */
	bool failing; /* a queue pair has it set, too */
	bool fatal;   /* the event of the loss of all adapters waits to be handed out */
	LIST_HEAD(, urn_sv_qp) qps;
	LIST_HEAD(, urn_sv_cq) cqs;
	LIST_HEAD(urn_sv_bucket, urn_sv_path) bucket[URN_SV_BUCKETS], ctl_bucket[URN_SV_BUCKETS];
	/* the thread; made with the first domain, completion queue or channel */
	bool runs, stop;
	pthread_t thread;
	int wake_fd; /* eventfd */
	int channels_fd; /* epoll set of the channels of all completion channels below; valid once
			    runs */
	struct urn_cm_end *cm;
	struct ibv_comp_channel *ctl_channel[URN_SV_ADAPTERS];
	struct ibv_cq *ctl_cq[URN_SV_ADAPTERS];
	uint32_t ctl_load[URN_SV_ADAPTERS]; /* completions that control paths may have there */
	/* no look at the adapter's descriptors any more; changed by the thread, with the lock */
	bool over[URN_SV_ADAPTERS];
	int log_fd;	     /* log of steps; -1: none; constant */
	bool log_journal;    /* ... is the journal, whose lines begin with a priority; constant */
	uint32_t log_number; /* place of this device among those the program opened; constant */
	/* attributes that outlive the primary adapter */
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	union ibv_gid gids[URN_SV_GIDS];
	struct urn_verbs_ctx front; /* last: the public ibv_context is its last field */
};

static inline struct urn_sv_ctx *
urn_sv_ctx(struct ibv_context *c)
{
	return (struct urn_sv_ctx *)((uint8_t *)c -
				     offsetof(struct urn_sv_ctx, front.vctx.context));
}

#define URN_SV_BELOW(type, obj, i) (((struct urn_sv_##type *)(obj))->below[i])

/* The least power of two that is not below n, for n up to 2^31. */
static inline uint32_t
urn_sv_power(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Number of a path for the machine, from its place in urn_sv_qp.path; and back. */
static inline uint32_t
urn_sv_bit(const struct urn_sv_qp *q, uint32_t place)
{
	return q->lower ? place : urn_sv_mirror(place);
}

static inline struct urn_sv_path *
urn_sv_at(struct urn_sv_qp *q, uint32_t bit)
{
	return &q->path[q->lower ? bit : urn_sv_mirror(bit)];
}

/* The path in use. */
static inline struct urn_sv_path *
urn_sv_used(struct urn_sv_qp *q)
{
	return urn_sv_at(q, q->c.path);
}

/* True when a queue pair is one of the primary adapter as it is, or not connected yet. */
static inline bool
urn_sv_plain(const struct urn_sv_qp *q)
{
	return q->mode != URN_SV_SESSION && q->path[0].real != NULL;
}

/* True when requests go to the queue pair in use at once. */
static inline bool
urn_sv_flows(const struct urn_sv_qp *q)
{
	return q->c.state == URN_SESS_CONNECTED || q->c.state == URN_SESS_MIGRATED;
}

/* ---- context.c */

/* Lock a context for a call of the program: after the threads that wait for it. */
void urn_sv_lock(struct urn_sv_ctx *ctx);
/* Lock a context before the program's next call gets it. */
void urn_sv_lock_first(struct urn_sv_ctx *ctx);
void urn_sv_unlock(struct urn_sv_ctx *ctx);

/* ---- fork.c */

/* A context begins, and ends, to know of fork(). */
void urn_sv_fork_join(struct urn_sv_ctx *ctx);
void urn_sv_fork_leave(struct urn_sv_ctx *ctx);
/* returns: 0; EIO with its text: this process is a child, and the device is the parent's */
int urn_sv_forked(const struct urn_sv_ctx *ctx);

/* ---- qp.c */

struct ibv_qp *urn_sv_create_qp(struct ibv_qp_init_attr_ex *attr);
int urn_sv_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int urn_sv_connect_qp(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
		      const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached);
int urn_sv_destroy_qp(struct ibv_qp *qp);
int urn_sv_mcast(struct ibv_qp *qp, const union ibv_gid *gid, bool attach);
/* Find the path with a real queue pair of this number. returns: NULL: none */
struct urn_sv_path *urn_sv_find(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn);
/* Find the path with a control queue pair of this number. returns: NULL: none */
struct urn_sv_path *urn_sv_find_ctl(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn);
/* Make the queue pairs of all paths but P-P's own. returns: 0 or an errno value with its text */
int urn_sv_paths_make(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *real);
/* Destroy the queue pairs of all paths but P-P's own. */
void urn_sv_paths_end(struct urn_sv_qp *q);

/* ---- connect.c */

/* Answer questions about the queue pair from now on. returns: 0 or an errno value with its text */
int urn_sv_listen(struct urn_sv_qp *q);
/* Answer no more. */
void urn_sv_unlisten(struct urn_sv_qp *q);
/* An event of connection management; the lock is held. */
void urn_sv_cm_event(struct urn_sv_ctx *ctx, const struct urn_abi_cm_event *ev);
/*
 * P-P is in RTR, or in INIT if it has a shared receive queue: ask for the peer's session layer, and
 * connect all paths if there is one; P-P is in RTR then. returns: 0 or an errno value with its
 * text: the ends can't agree, and P-P must not take messages
 */
int urn_sv_meet(struct urn_sv_qp *q, const struct ibv_qp_attr *rtr, int mask);
/*
 * Change the queue pairs of all paths alive, for a connection with a session. A path that does not
 * take what another one took is lost.
 *
 * returns: 0; an errno value with its text: nothing was changed; EIO: no path has an adapter
 */
int urn_sv_change(struct urn_sv_qp *q, const struct ibv_qp_attr *attr, int mask);

/* ---- send.c, recv.c, wr.c; the lock is held for all but the operations */

int urn_sv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Post one request of the program. returns: 0 or an errno value */
int urn_sv_send_one(struct urn_sv_qp *q, const struct ibv_send_wr *wr);
/* Post a request to the path in use, or hold it back until its key is known. */
void urn_sv_send_go(struct urn_sv_qp *q, uint64_t seq);
/* Note whether the path in use took a request or a receive. err: 0 or an errno value */
void urn_sv_posted(struct urn_sv_qp *q, int err);
/* Post a flush READ if one is missing. */
void urn_sv_flush(struct urn_sv_qp *q);
/* The peer's table of keys was read: post what was held back. */
void urn_sv_send_again(struct urn_sv_qp *q);
/* Atomics may be complete: post what waits for them. */
void urn_sv_send_more(struct urn_sv_qp *q);
/* A request is complete: put the result in place that its peer's record has. returns: false: it
 * can't be put there */
bool urn_sv_send_result(struct urn_sv_qp *q, const struct urn_sess_action *a);
/* Key of the program's memory, or the queue pair's own, on an adapter. */
uint32_t urn_sv_local_key(const struct urn_sv_qp *q, uint32_t adapter, uint32_t key);
/* Key of the program's memory in a domain on an adapter. */
uint32_t urn_sv_pd_key(const struct urn_sv_pd *pd, uint32_t adapter, uint32_t key);
int urn_sv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int urn_sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post a receive to the path in use. index: its number */
void urn_sv_recv_go(struct urn_sv_qp *q, uint32_t index);
/* Post the receives that the path in use has not got. */
void urn_sv_recv_rest(struct urn_sv_qp *q);
/* Read the header of a receive. returns: false: there is none */
bool urn_sv_recv_header(const struct urn_sv_qp *q, uint32_t index, struct urn_sess_header *h);
/* True when a header has the length that its adapter has counted: no peer makes the program read
 * what was in the buffer before. */
bool urn_sv_recv_fits(const struct urn_sess_header *h, const struct ibv_wc *wc);
/* Tell the program of a receive by its header. wr_id: the program's */
void urn_sv_recv_tell(struct urn_sv_qp *q, uint64_t wr_id, const struct urn_sess_header *h);
/* Post receives of the primary adapter as they are, for a queue pair or, if qp is NULL, a shared
 * receive queue. returns: like ibv_post_recv() */
int urn_sv_recv_plain(const struct urn_sv_pd *pd, struct ibv_qp *qp, struct ibv_srq *srq,
		      struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Complete a receive by its header. */
void urn_sv_recv_done(struct urn_sv_qp *q, uint32_t index, const struct urn_sess_header *h);
/* Fail all receives. */
void urn_sv_recv_flush(struct urn_sv_qp *q);
/* Set the operations of ibv_wr_start() and so on. returns: 0 or ENOMEM */
int urn_sv_wr_init(struct urn_sv_qp *q);
/* In a child of fork(): nobody builds a batch. */
void urn_sv_wr_forked(struct urn_sv_qp *q);

/* ---- take.c, shell.c */

/* Take a completion of an adapter; the lock is held. */
void urn_sv_take(struct urn_sv_ctx *ctx, uint32_t adapter, const struct ibv_wc *wc);
/* A batch of completions was taken: connections end whose requests failed. */
void urn_sv_take_end(struct urn_sv_ctx *ctx);
/* The machine's actions. arg: struct urn_sv_qp */
void urn_sv_act(void *arg, const struct urn_sess_action *a);
/* Do what the machine waits for, until nothing is left to do; for the thread. */
void urn_sv_settle(struct urn_sv_ctx *ctx);
/* A path died. */
void urn_sv_down(struct urn_sv_qp *q, uint32_t bit);
/* An adapter is lost: leave its paths. */
void urn_sv_lost(struct urn_sv_qp *q, uint32_t adapter);
/* The connection ends here for a reason of its own. */
void urn_sv_kill(struct urn_sv_qp *q);
/* The peer's keys and the receives are on the new path. */
void urn_sv_rebound(struct urn_sv_qp *q);
/* After each call of the machine: flush what it posted, clean up behind a connection that died. */
void urn_sv_after(struct urn_sv_qp *q);

/* ---- thread.c */

/* Start the thread, unless it runs. returns: 0 or an errno value with its text */
int urn_sv_thread_start(struct urn_sv_ctx *ctx);
void urn_sv_thread_end(struct urn_sv_ctx *ctx);
/* Let the thread look at what is to be done. */
void urn_sv_kick(struct urn_sv_ctx *ctx);

#endif
