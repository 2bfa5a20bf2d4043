/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint in the library. Messages are those of register sets (msg/set.h), with a header of
 * this library: one set receives requests, one receives answers, and those of two outboxes send
 * (am/outbox.h). Operations on remote memory go by rings (abi/am.h).
 *
 *   endpoint.c  making and ending
 *   memory.c    memory and regions
 *   message.c   requests and replies that leave
 *   answer.c    answers, several in a message
 *   prepare.c   requests and replies whose payload the program writes where it is sent from
 *   outbox.c    lanes and peers
 *   known.c     queues of answers that are remembered
 *   parked.c    messages that wait for their peer
 *   progress.c  messages that come; answers to those that left
 *   stray.c     answers that no request waits for
 *   rma.c       commands and events; writes and reads
 *   atomic.c    atomic operations
 *   vector.c    several writes or reads with one completion
 *   flush.c     waiting for the end of operations
 *   wake.c      descriptors that wake a sleeper
 *   queue.c     queues of events
 *   thread.c    the helper thread, and its lock (am/lock.h)
 */
#ifndef URN_AM_ENDPOINT_H
#define URN_AM_ENDPOINT_H

#include "abi/am.h"
#include "attach/share/share.h"
#include "am/outbox.h"

#include <urnic/am.h>

enum {
	URN_AM_BATCH = 64,   /* messages of a kind, and events, in one call of urn_am_progress() */
	URN_AM_MAGIC = 0xa3, /* first byte of a message */
	URN_AM_REQUESTS_MAX = 4096,
	URN_AM_SLOT_BITS = 12,	 /* low bits of a request's number */
	URN_AM_RANDOM_BITS = 32, /* bits above these that nobody can guess */
	URN_AM_DRAWN = 256,	 /* numbers that one system call draws */
	URN_AM_IDLE_CALLS =
		64, /* calls with nothing under way, from one look at the clock to the next */
	URN_AM_SHARED = 31,	    /* answers in a message, at most */
	URN_AM_SHARED_BYTES = 1024, /* ... and bytes of it: each queue of answers takes as many */
	URN_AM_BACK_PARKED = 256,   /* parked messages of answers */
	URN_AM_SILENT_NS =
		500000000,  /* ns that requests of a silent node wait for room for answers */
	URN_AM_LOOKS = 256, /* requests that are looked at in one call of urn_am_progress() */
	URN_AM_NOTE_NS = 100000000, /* ns between notes about stray answers */
	URN_AM_HELD_NS = 100000, /* ns that answers wait for others, and a handler that is slow */
	URN_AM_ROOM = 96,	 /* bytes before a prepared payload, for header and arguments; a
				    multiple of 32 */
};
_Static_assert(1 << URN_AM_SLOT_BITS == URN_AM_REQUESTS_MAX, "number of a request");

/* Kinds of messages. */
enum urn_am_message_kind {
	URN_AM_M_REQUEST = 1,
	URN_AM_M_REPLY = 2,   /* by the request's handler */
	URN_AM_M_HANDLED = 3, /* the handler sent no reply */
	URN_AM_M_UNKNOWN = 4, /* there is no such handler */
	URN_AM_M_SHARED = 5,  /* several answers */
	URN_AM_M_LOST = 6,    /* the handler's reply is longer than its requester takes */
	URN_AM_M_STRAY = 7,   /* a note, to the sender of an answer that no request waits for */
	URN_AM_M_KINDS,
};

/* The header of a message; arguments of 8 bytes each and the payload follow. Network byte order. */
struct urn_am_head {
	uint8_t magic;	   /* URN_AM_MAGIC */
	uint8_t kind;	   /* enum urn_am_message_kind */
	uint8_t args;	   /* arguments that follow */
	uint8_t rsvd;	   /* 0 */
	uint32_t handler;  /* request, reply: number of the handler; unknown: the number that was
			      asked for; shared: number of the answers; stray: as in the answer;
			      else 0 */
	uint64_t number;   /* number of the request; shared: of the first answer's */
	uint64_t reply_to; /* request: number of the queue that takes the answer; answer: of the
			      queue that takes a note (URN_AM_M_STRAY), 0: none; else 0 */
};
_Static_assert(sizeof(struct urn_am_head) == 24, "header");

/* An answer in a message with several; the answer, a message of its own, follows, and as many bytes
 * as make the whole a multiple of 8. Network byte order. */
struct urn_am_record {
	uint32_t len; /* bytes of the answer */
	uint32_t rsvd;
};
_Static_assert(sizeof(struct urn_am_record) == 8, "record");

/* A request without an answer, or one that is prepared. */
struct urn_am_asked {
	uint64_t number;	      /* 0: the slot is free, or its request is prepared */
	uint64_t at;		      /* ns: when it was seen first; 0: not yet */
	uint32_t peer;		      /* its target, in the outbox for requests */
	union {
		uint32_t next;	  /* next free slot; valid when free */
		uint32_t handler; /* number of the handler that the request calls; valid with a
				     number */
	};
	struct urn_am_parked *parked; /* NULL: the request is on a lane, or there */
};

/* A command under way. */
struct urn_am_command {
	uint64_t *old;	     /* atomic operation: where the word's value before goes; NULL */
	uint32_t len;	     /* bytes; 0: the event's count of bytes holds, not this */
	uint32_t completion; /* index of the completion that the command belongs to */
	uint32_t next;	     /* next free one; valid when free */
	bool used;
};

/* The completion of one or more commands that were issued together. */
struct urn_am_completion {
	urn_rma_done_fn *done;
	void *arg;
	uint64_t *counter;
	uint64_t bytes;	 /* sum over commands that have ended */
	uint64_t serial; /* number of its issue */
	uint64_t memory; /* target: number and node */
	uint8_t node[16];
	uint32_t left; /* commands that have not ended; 0: free */
	uint32_t next; /* next free one; valid when free */
	uint8_t code;  /* enum urn_am_code of the first error */
	bool event;    /* the end is an event of the endpoint's queue */
};

/* A program that waits for operations; its call is the owner. */
struct urn_am_flush {
	struct urn_am_flush *next;	 /* in the endpoint's list */
	const struct urn_am_address *to; /* target; NULL: all */
	uint64_t serial;		 /* completions issued after this one do not count */
	uint32_t left;			 /* completions that have not ended */
	uint8_t code;			 /* enum urn_am_code of the first error */
};

/* The first error that no function of the program was told. */
struct urn_am_untold {
	uint64_t memory; /* target; valid with code, as is node */
	uint8_t node[16];
	uint8_t code; /* enum urn_am_code; 0: none */
};

/* Wishes of the program for a completion. */
struct urn_am_wish {
	urn_rma_done_fn *done;
	void *arg;
	uint64_t *counter;
	uint32_t flags; /* enum urn_rma_flag */
};

/* Commands that are issued together. */
struct urn_am_batch {
	struct urn_am_endpoint *ep;
	const struct urn_am_address *to;
	uint64_t key;
	uint32_t completion; /* index */
	uint32_t commands;   /* number of the next command */
	uint8_t flags;	     /* enum urn_am_cmd_flag of the next command */
};

struct urn_am_handler {
	urn_am_handler_fn *fn; /* NULL: none */
	void *arg;
	bool slow; /* took longer than URN_AM_HELD_NS for the last request that was `timed`, or had
		      none yet */
};

/* A place for an answer. */
struct urn_am_place {
	struct urn_am_letter *m;  /* NULL: there is none */
	uint8_t *at;		  /* buffer of the message */
	struct urn_am_lane *lane; /* NULL: parked */
	struct urn_am_parked *parked;
};

/* The function of the program that runs now. */
enum urn_am_inside {
	URN_AM_OUTSIDE,
	URN_AM_IN_CALLBACK, /* function of an operation or a failure: requests are allowed */
	URN_AM_IN_REPLY,    /* a reply's handler */
	URN_AM_IN_REQUEST,  /* a request's handler */
};

/* Memory of the program whose pages were moved to memory that the dataplane maps (attach/share). */
struct urn_am_moved {
	struct urn_am_moved *next; /* in the endpoint's list */
	struct urn_share_hold hold;
	uint32_t lkey; /* the dataplane's name of the memory */
};

struct urn_am_endpoint {
	struct urn_msg_dev *dev;
	struct urn_am_attr attr; /* wishes that were granted */
	uint32_t forks;		 /* generation of the process that made the endpoint */

	/* Messages. */
	struct urn_register_set requests, replies; /* queues */
	struct urn_am_outbox out;		   /* for requests */
	struct urn_am_outbox back;		   /* for answers */
	struct urn_am_handler handler[URN_AM_HANDLERS];
	urn_am_failure_fn *failure;
	void *failure_arg;
	char no_handler[64];	    /* text of the latest failure for want of a handler */
	char no_answer[200];	    /* text of the latest failure for want of an answer */
	struct urn_am_asked *asked; /* attr.requests; owner */
	uint32_t asked_free;	    /* a free slot; attr.requests: none */
	uint32_t pending;	    /* slots in use */
	uint32_t prepared;	    /* ... by requests that are prepared: nothing was sent */
	uint64_t tickets;	    /* number of the last request that was prepared */
	uint32_t serial;	    /* serial number of the last request; starts anywhere, wraps */
	uint32_t drawn;		    /* numbers of `random` that are used */
	uint32_t random[URN_AM_DRAWN]; /* numbers that nobody can guess: a program that knows those
					  of requests to itself does not know those to others */
	uint64_t look_at; /* ns: when requests that wait too long are looked for (coarse) */
	uint32_t idle;		    /* calls of urn_am_progress() with nothing under way; wraps */
	enum urn_am_inside inside;
	/* Number of the handler that runs, plus 1; 0: none. Read without the lock. */
	_Atomic uint32_t running;
	/* The request whose handler runs. */
	uint64_t token;		  /* token of the last request that was handled */
	bool replied;		  /* valid inside its handler */
	struct urn_am_place reply; /* where its reply is prepared; no place outside its handler */
	uint32_t reply_room;	   /* bytes of payload; valid with a place */
	struct urn_msg_to asker;  /* where the reply goes; likewise */
	uint64_t asker_number;	  /* the requester's number; likewise */
	struct urn_am_peer *asker_peer; /* has room for the reply; likewise */
	uint64_t now; /* ns: of this progress; 0: it has not looked at the clock (urn_am_now()) */
	uint64_t held_from; /* ns: when answers began to wait for others; valid with `timed` */
	bool timed;	    /* several requests wait: the time that handlers take is measured */
	/* Requests that were taken while one before them waits; bit: number of the entry, modulo
	 * entries of the queue; owner. */
	uint64_t *taken;
	uint32_t taken_n; /* bits that are set */
	/* Requests that wait for room for their answers, of those that the last call of
	 * urn_am_progress() looked at; and how many more these are than half of what a call looks
	 * at, less those that were dropped since. */
	uint32_t waits, surplus;

	/* Remote memory. */
	struct urn_abi_am_ep *regs;	 /* in the client's area; NULL: not made yet */
	_Atomic(struct urn_am_moved *) moved; /* list; owner; changed under urn_share_enter() */
	uint32_t handle, db, engine, pd; /* handle, pd: the dataplane's names; 0: none */
	uint64_t qid;
	struct urn_am_command *command;		/* attr.operations; owner */
	struct urn_am_completion *completion;	/* attr.operations; owner */
	uint32_t command_free, completion_free; /* free ones; attr.operations: none */
	uint32_t commands, completions;		/* under way */
	uint64_t issued;			/* serial number of the completion issued last */
	struct urn_am_flush *flushes;		/* list */
	struct urn_am_untold untold;

	/* Sleep. */
	int fd, write_fd;		  /* channel of the ring of events; -1: none */
	int32_t channel;		  /* the dataplane's name of it */
	uint32_t drained;		  /* interrupts read from it */
	bool armed;			  /* the descriptors may have something to read */
	struct urn_am_queue *queue;	  /* NULL: none */
	struct urn_am_endpoint *in_queue; /* next endpoint of the queue; valid with one */
	uint32_t evented;		  /* completions under way that will be events */
	struct urn_am_thread *thread;	  /* NULL: none, and no lock; owner */

	struct urn_am_stats stats;
	struct urn_am_stray stray[2]; /* the last ones, by enum urn_am_stray_side; valid with a
					 count */
	bool stray_asked;	      /* a request waited for the answer that came last */
	uint8_t stray_to[16]; /* GID of the node that request went to; valid with stray_asked */
	uint64_t note_at;	      /* ns (coarse): no note about a stray answer before */
};

/* True when the dataplane of another process has died, as far as this side knows. */
static inline bool
urn_am_gone(const struct urn_am_endpoint *ep)
{
	return urn_dev_gone(&ep->dev->dev) != URN_DEV_THERE;
}

/*
 * Write a message. *head: in host order; args: head->args of them. at: room for urn_am_size() bytes
 */
void urn_am_write(uint8_t *at, const struct urn_am_head *head, const uint64_t *args,
		  const void *data, uint32_t len);
/* Bytes of a message with so many arguments and bytes of payload. */
static inline uint32_t
urn_am_size(uint32_t args, uint32_t len)
{
	return (uint32_t)(sizeof(struct urn_am_head) + args * sizeof(uint64_t)) + len;
}
/* Check what a message is to be made of. returns: 0; EINVAL, EMSGSIZE with their text */
int urn_am_check(const struct urn_am_endpoint *ep, uint32_t handler, uint32_t n, uint32_t len);

/* The time of this progress, ns. */
uint64_t urn_am_now(struct urn_am_endpoint *ep);
/* The same, read afresh: handlers may take long. */
uint64_t urn_am_now_afresh(struct urn_am_endpoint *ep);
/*
 * Find room for a request whose message takes up to so many bytes: a slot, and with `lane` an idle
 * lane that its peer may have, so that nothing is parked.
 *
 * returns: the slot; NULL, with *err EAGAIN, or EIO with its text
 */
struct urn_am_asked *urn_am_ask(struct urn_am_endpoint *ep, const struct urn_am_address *to,
				uint32_t size, bool lane, int *err);
/* Draw the random part of the next numbers. returns: 0, or -1 with errno: the system has none */
int urn_am_draw(struct urn_am_endpoint *ep);
/* Give the request of a slot its number: from now on its answer is taken. */
void urn_am_give_number(struct urn_am_endpoint *ep, struct urn_am_asked *a);
/* Address the request of a slot to its peer, and say what is done about errors. size: bytes */
void urn_am_aim(struct urn_am_letter *m, const struct urn_am_peer *p, uint64_t number,
		uint32_t size);
/* A request has its answer, or failed, or is not sent: its slot is free. */
void urn_am_unask(struct urn_am_endpoint *ep, struct urn_am_asked *a);
/* The request with a number; NULL: none waits. */
struct urn_am_asked *urn_am_find_asked(const struct urn_am_endpoint *ep, uint64_t number);
/* ---- answers (answer.c) */

/* Verdicts on a request that waits. */
enum urn_am_verdict {
	URN_AM_TAKE, /* there is room for its answer */
	URN_AM_WAIT, /* there will be */
	URN_AM_DROP, /* its queue, or its node, does not take its answers */
};
/* Look for room for the answer to a request of a node. reply_to: queue of the answer; p: valid
 * with TAKE and DROP */
enum urn_am_verdict urn_am_room(struct urn_am_endpoint *ep, const uint8_t node[16],
				uint64_t reply_to, struct urn_am_peer **p);
/* Answer the request that was taken, now or with the next answers. returns: 0; ENOMEM */
int urn_am_answer(struct urn_am_endpoint *ep, const struct urn_am_head *head, const uint64_t *args,
		  const void *data, uint32_t len);
/* Find a place for a message of answers to the request that was taken. size: bytes */
struct urn_am_place urn_am_find_place(struct urn_am_endpoint *ep, uint32_t size);
/* Give up the reply that is prepared, if any. (prepare.c) */
void urn_am_unprepare(struct urn_am_endpoint *ep);
/* Check what a call to reply may do. returns: 0; EPERM, EALREADY with their text */
int urn_am_may_reply(const struct urn_am_endpoint *ep, uint64_t token);
/* Send all answers that wait for others. */
void urn_am_answers_go(struct urn_am_endpoint *ep);
/* Look at answers that are on their way, or parked. */
void urn_am_look_back(struct urn_am_endpoint *ep);

/* ---- answers that no request waits for (stray.c) */

/* Note an answer that came and that no request of the endpoint waits for, and tell its sender. msg:
 * the message; head: in host order; a: request that the answer names, which went to another node;
 * NULL: none waits */
void urn_am_stray_came(struct urn_am_endpoint *ep, const struct urn_msg *msg,
		       const struct urn_am_head *head, const struct urn_am_asked *a);
/* Note that an own answer met no request: its receiver says so. */
void urn_am_stray_told(struct urn_am_endpoint *ep, const struct urn_msg *msg,
		       const struct urn_am_head *head);

/* Check what a call may do. returns: 0; EPERM, EINVAL with their text; EIO */
int urn_rma_may(const struct urn_am_endpoint *ep, uint32_t flags);
/* Check length, first byte at the target and way of a write or read. returns: 0, or EINVAL with its
 * text */
int urn_rma_check(uint64_t remote, uint32_t len, uint8_t way);
/* Check the number of pieces. returns: 0, or EINVAL with its text (vector.c) */
int urn_rma_check_n(const struct urn_am_endpoint *ep, uint32_t n);
/*
 * Begin to issue n commands that have one completion. returns: 0; EAGAIN: there is no room for all.
 * Each of the n is then added, and nothing can fail
 */
int urn_rma_begin(struct urn_am_endpoint *ep, uint32_t n, const struct urn_am_wish *w,
		  struct urn_am_batch *b);
/*
 * Add a command. word: operands of an atomic operation; NULL: none; len: bytes; old: where the
 * value goes; NULL: nowhere
 *
 * returns: the command, in the client's area; the caller sets op, way, remote, local and lkey, and
 * `every` when that is not 0
 */
struct urn_abi_am_cmd *urn_rma_add(struct urn_am_batch *b, const struct urn_abi_am_operand *word,
				   uint32_t len, uint64_t *old);
/* All commands have been added: the dataplane takes them. */
void urn_rma_go(const struct urn_am_batch *b);
/* A completion ended: those who wait for it are told (flush.c). */
void urn_am_flushed(struct urn_am_endpoint *ep, const struct urn_am_completion *c);
/* Deregister all memory whose pages were moved; they go back. (memory.c) */
void urn_am_move_back_all(struct urn_am_endpoint *ep);
/* ---- sleep (wake.c) */

/* Make the channel of the ring of events. returns: 0, or an errno value */
int urn_am_channel_open(struct urn_am_endpoint *ep);
void urn_am_channel_close(struct urn_am_endpoint *ep);
/* Let all descriptors of the endpoint be watched by an epoll descriptor, or not any more. returns:
 * 0, or an errno value */
int urn_am_watch(struct urn_am_endpoint *ep, int epoll, bool on);
/* Arm everything that wakes. returns: true when something is there already */
bool urn_am_arm(struct urn_am_endpoint *ep);
/* Disarm, and read the descriptors of an endpoint that was armed. returns: false: the dataplane is
 * gone, so the descriptors stay readable for ever */
bool urn_am_drain(struct urn_am_endpoint *ep);
/* Milliseconds that a sleep may last, because not all wakes; -1: without bound */
int urn_am_doze(const struct urn_am_endpoint *ep);

/* ---- queues (queue.c) */

/* Keep a place for an event. returns: false: there is none */
bool urn_am_queue_reserve(struct urn_am_queue *q);
/* Put an event into the place that was kept for it. */
void urn_am_queue_put(struct urn_am_queue *q, const struct urn_am_event *e);
/* Let the queue of an endpoint, if any, watch its descriptors, or not any more. */
void urn_am_queue_watch(struct urn_am_endpoint *ep, bool on);
/* The endpoint of the queue ends, with its events. */
void urn_am_queue_forget(struct urn_am_endpoint *ep);

/* Call functions of operations that ended. returns: number of events */
unsigned int urn_am_take_events(struct urn_am_endpoint *ep);

#endif
