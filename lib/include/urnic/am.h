/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/*
 * Active messages, and remote memory access, from node to node without a connection (AM-1 to AM-9).
 *
 *   asks                                       serves
 *   dev = urn_msg_dev_connect(NULL, NULL)      dev = urn_msg_dev_connect(NULL, NULL)
 *   ep = urn_am_endpoint_create(dev, NULL)     ep = urn_am_endpoint_create(dev, NULL)
 *   urn_am_handle(ep, 1, answer, NULL)         urn_am_handle(ep, 7, serve, NULL)
 *                                              urn_am_address(ep, 0, &address): to the other
 *   urn_am_request(ep, &address, 7, ...)       while (...)
 *   while (urn_am_pending(ep))                         urn_am_progress(ep)
 *           urn_am_progress(ep)                serve(): urn_am_reply(ep, m->token, 1, ...)
 *
 * An active message names a handler of the target by a number. Handlers run in urn_am_progress() of
 * the program that registered them. Each request is handled once, and answered once: by the reply
 * that its handler sent, or by the library when the handler sent none. Operations on remote
 * memory need no handler, and nothing of the target program: the target's dataplane carries them
 * out.
 *
 * Inside a handler, of a request or of a reply:
 *   its own endpoint    fails with EPERM: requests, operations on remote memory, flushes, waiting
 *                       for events, starting a thread, urn_am_endpoint_destroy(). All else is
 *                       allowed: memory and regions, handlers, queues, giving up prepared requests
 *   another endpoint    fails with EPERM, also in errno, and changes nothing: every call, but
 *                       urn_am_address(), urn_am_error() and urn_am_running(). Calls that return a
 *                       number return 0, and urn_am_get_stats() gives zeros
 *   both                urn_am_thread_stop() fails with EDEADLK
 *
 * One thread at a time may use an endpoint, unless the endpoint has a thread of the library
 * (urn_am_thread_start()). In a child of fork() every call on an endpoint of its parent fails with
 * EPERM, like those on another endpoint inside a handler, and changes nothing; destroying it does
 * nothing. A child that a function which the library called has made calls _exit() or exec: if the
 * function returns there, the child ends with status 0. Payloads that are prepared are in memory
 * that both share.
 */
/* clang-format on */
#ifndef URNIC_AM_H
#define URNIC_AM_H

#include "abi/am_codes.h"

#include <urnic/am_stray.h>
#include <urnic/msg.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

struct urn_am_endpoint;

enum {
	URN_AM_HANDLERS = 256, /* handlers of an endpoint have the numbers below */
	URN_AM_ARGS = 8,       /* arguments of a message, at most */
};

/* Wishes for an endpoint. Zero is a value for every field. */
struct urn_am_attr {
	uint32_t payload;  /* bytes of the largest payload sent or received; at most 1 MiB;
			      0: 4096 */
	uint32_t queue;	   /* requests that wait for urn_am_progress(), made a power of two, at most
			      4096; 0: 64 */
	uint32_t requests; /* requests of this endpoint without an answer, half of them to one
			      target; at most 4096; 0: 64 */
	uint32_t operations; /* operations on remote memory under way, made a power of two, at most
				1024; 0: 128 */
	uint32_t ranges;     /* ranges of all regions, at most 4096; 0: 64 */
	uint32_t vector;     /* picks the engine */
	uint32_t answer_ms;  /* milliseconds that a request waits for its answer, from a call of
				urn_am_progress() on, which looks at new requests each 100 ms;
				0: 10000 */
	uint32_t wakes; /* 1: the endpoint will be in a queue of events, or have a thread; costs
			   three descriptors */
	/*
	 * Operations of the way URN_AM_AUTO of so many bytes and more are pipelined, and go under a
	 * tag; 0: as the configuration of the adapter says (am_pipelined_from, am_tagged_from of
	 * urnicd). An operation below pipelined_from is direct if one packet holds all its
	 * bytes.
	 */
	uint32_t pipelined_from, tagged_from;
};

/* Address of an endpoint, for others. A program hands its own on as it likes; the numbers are in
 * host order. */
struct urn_am_address {
	uint8_t node[16];  /* a GID of the node */
	uint64_t requests; /* number of the queue of requests */
	uint64_t memory;   /* number of the endpoint's memory */
};

/* Counts of an endpoint; all since its making. */
struct urn_am_stats {
	uint64_t malformed;	  /* messages that came and were none of this library */
	uint64_t unknown_handler; /* requests for a handler that is not registered, whose senders
				     were told; and replies for such a handler */
	uint64_t stray_replies;	  /* answers that no request of this endpoint waited for
				     (urn_am_last_stray()) */
	uint64_t lost_replies;	  /* replies that could not be delivered */
	uint64_t failed_requests; /* requests without an answer; the error function was told */
	uint64_t dropped_requests; /* requests that were let go, because their queue of answers, or
				      their node, does not take the answers to earlier ones */
	uint64_t
		parked; /* messages that waited in the library, because their target refused them */
};

/*
 * Make an endpoint.
 *
 * attr: NULL: all zero
 * returns: NULL with errno set, and urn_attach_error() says why; EOPNOTSUPP: the dataplane has no
 * endpoints
 */
struct urn_am_endpoint *urn_am_endpoint_create(struct urn_msg_dev *dev,
					       const struct urn_am_attr *attr);
/*
 * Destroy an endpoint: requests and operations under way are forgotten. Inside a function that the
 * endpoint called, the call does nothing, and urn_attach_error() says so; likewise when the
 * endpoint's thread does not end, as urn_am_thread_stop() says. NULL is allowed.
 */
void urn_am_endpoint_destroy(struct urn_am_endpoint *ep);
/* The endpoint's address. index: of the node's GID, as for urn_msg_dev_gid(). returns: 0; EINVAL:
 * no such index */
int urn_am_address(const struct urn_am_endpoint *ep, uint32_t index,
		   struct urn_am_address *address);
/*
 * Tell whether the endpoint still works. When the dataplane of another process dies,
 * urn_am_progress() notices that within 100 ms, or 64 calls if nothing is under way and that is
 * longer: requests fail with EIO, operations on remote memory end with URN_AM_UNREACHABLE and
 * URN_AM_MAY_BE_THERE, and all other calls return EIO from then on.
 *
 * returns: 0; EIO: the dataplane is gone: destroy the endpoint, close the device, and make both
 * anew; addresses and keys are others then
 */
int urn_am_error(const struct urn_am_endpoint *ep);
void urn_am_get_stats(const struct urn_am_endpoint *ep, struct urn_am_stats *stats);

/* ---- messages (AM-1) */

/* A message, inside its handler. */
struct urn_am_message {
	uint64_t token;		   /* a request's, for urn_am_reply(); 0: a reply */
	uint64_t number;	   /* reply: the number of the request that it answers */
	const void *data;	   /* payload; valid until the handler returns */
	uint32_t len;		   /* bytes of payload */
	uint32_t args;		   /* arguments that came */
	uint64_t arg[URN_AM_ARGS]; /* arguments; 0 beyond those that came */
	uint8_t node[16];	   /* GID of the sender's node */
};

typedef void urn_am_handler_fn(struct urn_am_endpoint *ep, const struct urn_am_message *m,
			       void *arg);
/* Register a handler, or none (fn NULL), under a number below URN_AM_HANDLERS. returns: 0; EINVAL
 */
int urn_am_handle(struct urn_am_endpoint *ep, uint32_t number, urn_am_handler_fn *fn, void *arg);

/* A request that failed. */
struct urn_am_failure {
	uint64_t number; /* number of the request */
	int err;	 /* ENOSYS: no such handler; ETIMEDOUT: no answer in time; EHOSTUNREACH: not
			    delivered; EMSGSIZE: the handler's reply is longer than
			    attr.payload; EIO: the dataplane is gone */
	uint8_t code; /* enum urn_msg_code of the delivery, perhaps with URN_MSG_MAY_BE_THERE; 0: it
			 was delivered, or the dataplane is gone */
	const char *text; /* a sentence for people; valid until the endpoint's next failure */
};
typedef void urn_am_failure_fn(struct urn_am_endpoint *ep, const struct urn_am_failure *f,
			       void *arg);
/* Register the function that urn_am_progress() calls for requests that failed; NULL: none. */
void urn_am_on_failure(struct urn_am_endpoint *ep, urn_am_failure_fn *fn, void *arg);

/*
 * Send a request.
 *
 * handler: number of the target's handler
 * args, n: arguments, at most URN_AM_ARGS
 * data, len: payload, copied; at most attr.payload bytes
 * number: set on success to the request's number, which its reply and its failure name; NULL: not
 * wanted
 *
 * returns: 0; EAGAIN: too many requests have no answer yet, or too many to this target: one target
 * has at most half of the requests and bytes that others leave, and three quarters of the lanes:
 * call urn_am_progress();
 * EMSGSIZE; EINVAL; EPERM: the call is made inside a handler (AM-1); ENOMEM: a request that has to
 * wait finds no memory; EIO: the dataplane is gone
 */
int urn_am_request(struct urn_am_endpoint *ep, const struct urn_am_address *to, uint32_t handler,
		   const uint64_t *args, uint32_t n, const void *data, uint32_t len,
		   uint64_t *number);
/*
 * Reply to the request whose handler runs.
 *
 * token: of the request's struct urn_am_message; the rest: as for urn_am_request(), with a handler
 * of the requester
 *
 * returns: 0; EPERM: the token is not that of a request whose handler runs (AM-1);
 * EALREADY: the request was replied to; EMSGSIZE; EINVAL; ENOMEM: a reply that has to wait finds no
 * memory, and is lost (lost_replies); EIO: the dataplane is gone
 */
int urn_am_reply(struct urn_am_endpoint *ep, uint64_t token, uint32_t handler, const uint64_t *args,
		 uint32_t n, const void *data, uint32_t len);

/* ---- messages whose payload is written in place (AM-1) */

/* Room for the payload of a message that is prepared. */
struct urn_am_prepared {
	void *data;	 /* first byte of the payload, aligned to 32 bytes; the program's to write
			    and read until commit or cancel; holds any bytes at first */
	uint32_t most;	 /* bytes of room */
	uint32_t rsvd;	 /* 0 */
	uint64_t ticket; /* the library's; 0: nothing is prepared */
};
/*
 * Prepare a request: get room for its payload in memory that the dataplane sends from, so that
 * nobody copies the payload there. The program writes the payload, and then calls
 * urn_am_request_commit() or urn_am_request_cancel(), once, of any thread that may use the
 * endpoint. Several requests may be prepared at a time, and committed in any order.
 *
 * A prepared request takes one of the endpoint's 64 lanes (of those for long messages, if
 * attr.payload is above 8 KiB and most above 4096), one of attr.requests, and the bytes of `most`,
 * until its message has ended or it is cancelled: other requests of this endpoint find less room
 * meanwhile, and those to the same target their part of it. Nothing else waits for it: not
 * urn_am_pending(), no request that was sent before, no time, no other endpoint.
 * urn_am_endpoint_destroy() and the end of the program take it back; `data` is no memory of the
 * program's then.
 *
 * to: target
 * most: bytes that the payload may take, at most attr.payload
 * prepared: set; all zero on an error
 *
 * returns: 0; EAGAIN: as for urn_am_request(), also when requests to this target wait in the
 * library because the target refused some (they go first): call urn_am_progress(), or
 * urn_am_request(), which waits behind them; EMSGSIZE; EPERM: the call is made inside a handler
 * (AM-1); EIO: the dataplane is gone
 */
int urn_am_request_prepare(struct urn_am_endpoint *ep, const struct urn_am_address *to,
			   uint32_t most, struct urn_am_prepared *prepared);
/*
 * Send a request that was prepared. From success on the payload's room is not the program's.
 *
 * len: bytes of the payload, at most `most`; handler, args, n, number: as for urn_am_request()
 *
 * returns: 0; EINVAL: a bad handler or number of arguments, or the request is not prepared: it was
 * committed or cancelled before, or is another endpoint's; EMSGSIZE; EPERM: the call is made inside
 * a handler (AM-1); EIO: the dataplane is gone, and the request is given up. After EINVAL of
 * handler and arguments, EMSGSIZE and EPERM the request is still prepared.
 */
int urn_am_request_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared,
			  uint32_t handler, const uint64_t *args, uint32_t n, uint32_t len,
			  uint64_t *number);
/* Give up a request that was prepared: its room is free for others. Allowed anywhere, also inside a
 * handler. returns: 0; EINVAL: the request is not prepared, as for commit; EPERM: the call is made
 * inside a handler of another endpoint */
int urn_am_request_cancel(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared);
/*
 * Prepare the reply to the request whose handler runs. One reply is prepared at a time: a further
 * call, urn_am_reply(), and the return of the handler give up what was prepared. The reply leaves
 * as a message of its own: short ones are quicker by urn_am_reply(), which lets them share a
 * message.
 *
 * token: of the request's struct urn_am_message; most, prepared: as for urn_am_request_prepare()
 *
 * returns: 0; EPERM: the token is not that of a request whose handler runs (AM-1); EALREADY: the
 * request was replied to; EMSGSIZE; ENOMEM: a reply that has to wait finds no memory; EIO: the
 * dataplane is gone. After EPERM, EMSGSIZE and EIO a reply that was prepared before still is; after
 * ENOMEM it is given up.
 */
int urn_am_reply_prepare(struct urn_am_endpoint *ep, uint64_t token, uint32_t most,
			 struct urn_am_prepared *prepared);
/*
 * Send a reply that was prepared in the handler that runs.
 *
 * len: bytes of the payload, at most `most`; handler, args, n: as for urn_am_reply()
 *
 * returns: 0; EPERM, EALREADY: as for urn_am_reply_prepare(); EINVAL: a bad handler or number of
 * arguments, or no reply is prepared; EMSGSIZE; EIO: the dataplane is gone. After EINVAL of handler
 * and arguments and EMSGSIZE the reply is still prepared.
 */
int urn_am_reply_commit(struct urn_am_endpoint *ep, const struct urn_am_prepared *prepared,
			uint32_t handler, const uint64_t *args, uint32_t n, uint32_t len);

/*
 * Run handlers of messages that came, and functions of operations that ended and of requests that
 * failed. Inside one of these, the call does nothing.
 *
 * returns: number of functions that were called
 */
unsigned int urn_am_progress(struct urn_am_endpoint *ep);
/* Requests without an answer; prepared ones do not count. */
uint32_t urn_am_pending(const struct urn_am_endpoint *ep);

/* ---- memory (AM-9) */

/* Memory that an endpoint may move bytes from and to, and make regions of. */
struct urn_am_memory {
	void *addr;
	size_t len;    /* bytes */
	uint32_t lkey; /* the dataplane's name of it */
};
/*
 * Let the dataplane reach memory. The memory stays mapped until urn_am_memory_remove(), or the end
 * of the endpoint. With a dataplane in another process the memory is of urn_alloc()
 * (urnic/attach.h), or, if the program was started by urnic-run --share, any private memory: heap,
 * mmap(), zeroed static data. The pages move to memory that the dataplane maps, at the same
 * addresses, while the program's other threads are stopped (doc/inside/active-messages.md).
 *
 * returns: 0, or an errno value with its text; EOPNOTSUPP: not memory of urn_alloc(), and its pages
 * can't be moved; EFAULT: not all of it is mapped, readable and writable; EPERM: the call is made
 * inside a handler of another endpoint, or the endpoint's thread is a parent's
 */
int urn_am_memory_add(struct urn_am_endpoint *ep, void *addr, size_t len,
		      struct urn_am_memory *memory);
/* Take memory back; operations that use it end in error. returns: 0, or an errno value; EPERM: as
 * for urn_am_memory_add() */
int urn_am_memory_remove(struct urn_am_endpoint *ep, const struct urn_am_memory *memory);

/* A range of a region. */
struct urn_am_part {
	const struct urn_am_memory *memory; /* that holds all of it */
	void *addr;
	size_t len; /* bytes, not 0 */
};
/*
 * Make a region of ranges, sorted by address and disjoint, that peers reach by an access key.
 *
 * n: 1 and up; access: bits of enum urn_am_access; key: set on success
 * returns: 0, or an errno value with its text; EPERM: as for urn_am_memory_add()
 */
int urn_am_region_create(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
			 uint32_t access, uint64_t *key);
/* Declare the ranges that peers reach without a key (key 0), once. returns: like
 * urn_am_region_create(); EPERM: also when the node's configuration does not allow that */
int urn_am_space_declare(struct urn_am_endpoint *ep, const struct urn_am_part *parts, uint32_t n,
			 uint32_t access);
/* Take a region back, or the declared space (key 0): no peer reaches it when the call returns.
 * returns: 0; EINVAL; EPERM: as for urn_am_memory_add(): peers still reach the region */
int urn_am_region_destroy(struct urn_am_endpoint *ep, uint64_t key);

/* ---- operations on remote memory (AM-2 to AM-8) */

/* An operation ended. code: enum urn_am_code, perhaps with URN_AM_MAY_BE_THERE; bytes: those that
 * the target confirmed */
typedef void urn_rma_done_fn(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg);

struct urn_rma {
	const struct urn_am_address *to;
	uint64_t remote; /* first byte in the target's memory, in the target's addresses */
	uint64_t key;	 /* key of the target's region; 0: its declared space */
	const struct urn_am_memory *memory; /* that holds the local bytes */
	void *local;  /* first local byte; the bytes stay as they are until the operation ended */
	uint32_t len; /* bytes, 1 to 2^30 */
	uint8_t way;  /* enum urn_am_way */
	uint8_t every; /* pipelined write: packets for one reply of the target, or enum
			  urn_am_every; 0: a reply for each packet; other operations and ways: 0 */
	urn_rma_done_fn
		*done; /* called by urn_am_progress() when the operation ended; NULL: not wanted */
	void *arg;     /* for done */
	uint64_t *counter; /* incremented by urn_am_progress() when the operation ended without an
			      error; NULL: none */
	uint32_t flags;	   /* enum urn_rma_flag */
};

/* Bits of the flags of an operation. */
enum urn_rma_flag {
	URN_RMA_FENCE = 1 << 0, /* the operation starts when all operations of this endpoint that
				   were issued before, to any target, have ended, with or without
				   an error; those issued later wait with it */
	URN_RMA_EVENT = 1 << 1, /* the end of the operation is an event, with `arg`, in the queue
				   that the endpoint is in; `done` may be called besides */
};

/*
 * Write local bytes to the target's memory, or read the target's bytes. Operations have no order
 * among each other but by fences.
 *
 * returns: 0: the operation ends once; EAGAIN: too many operations are under way: call
 * urn_am_progress(); EINVAL; EPERM: the call is made inside a handler (AM-1); EIO: the dataplane is
 * gone
 */
int urn_rma_write(struct urn_am_endpoint *ep, const struct urn_rma *op);
int urn_rma_read(struct urn_am_endpoint *ep, const struct urn_rma *op);

/* An atomic operation on a word of the target's memory. */
struct urn_rma_atomic {
	const struct urn_am_address *to;
	uint64_t remote;  /* the word in the target's addresses, a multiple of size */
	uint64_t key;	  /* key of the target's region, which allows URN_AM_ACCESS_ATOMIC; 0: its
			     declared space */
	uint64_t value;	  /* added or stored; below 2^32 with 4 bytes */
	uint64_t compare; /* URN_AM_COMPARE_SWAP: compared with the word, likewise */
	uint64_t *old;	  /* set to the word's value before, by urn_am_progress() when the operation
			     ended without an error, before `done` is called; any memory of the
			     program; NULL: not wanted */
	uint8_t op;	  /* enum urn_am_atomic_op */
	uint8_t size;	  /* bytes of the word: 4 or 8 */
	uint8_t rsvd[2];  /* 0 */
	uint32_t flags;	  /* enum urn_rma_flag */
	urn_rma_done_fn *done; /* like those of struct urn_rma; bytes: size */
	void *arg;
	uint64_t *counter;
};
/*
 * Change a word of the target's memory in one step, and get the value before. The target's
 * dataplane does so with an atomic instruction of the processor: the target program's own atomics
 * (stdatomic.h) on the word, and those of all other nodes, agree. Values are in host order on both
 * sides. The word is changed once; when the outcome is not known, the code has
 * URN_AM_MAY_BE_THERE.
 *
 * returns: like urn_rma_write(); EINVAL: also a word that is not naturally aligned, with its text
 */
int urn_rma_atomic(struct urn_am_endpoint *ep, const struct urn_rma_atomic *op);

/* ---- several at a time */

/* A piece of a vectored operation; its fields are like those of struct urn_rma. */
struct urn_rma_piece {
	uint64_t remote;
	const struct urn_am_memory *memory;
	void *local;
	uint32_t len; /* bytes, 1 to 2^30 */
};
/* Pieces that are written to one target, or read from it, with one completion. */
struct urn_rma_vector {
	const struct urn_am_address *to;
	uint64_t key;			    /* like that of struct urn_rma, for all pieces */
	const struct urn_rma_piece *pieces; /* read by the call only */
	uint32_t n;			    /* pieces, 1 to attr.operations of the endpoint */
	uint8_t way;			    /* enum urn_am_way, of each piece */
	uint8_t rsvd[3];		    /* 0 */
	urn_rma_done_fn *done; /* called once all pieces have ended, with the code of the first
				  error, and the sum of the bytes; NULL: not wanted */
	void *arg;
	uint64_t *counter; /* incremented once when all pieces ended without an error; NULL: none */
	uint32_t flags;	   /* enum urn_rma_flag; a fence is before all pieces, not between them */
};
/*
 * Write or read pieces. Pieces have no order among each other, and count as one operation each.
 *
 * returns: like urn_rma_write(); EAGAIN: there is no room for all pieces, and none was issued;
 * EINVAL: a piece makes no sense, or there are too many: none was issued
 */
int urn_rma_writev(struct urn_am_endpoint *ep, const struct urn_rma_vector *v);
int urn_rma_readv(struct urn_am_endpoint *ep, const struct urn_rma_vector *v);

/* A word of a vectored atomic operation; its fields are like those of struct urn_rma_atomic. */
struct urn_rma_word {
	uint64_t remote, value, compare;
	uint64_t *old;
	uint8_t op, size;
	uint8_t rsvd[6]; /* 0 */
};
/* Words of one target that are changed, each in a step of its own, with one completion. */
struct urn_rma_words {
	const struct urn_am_address *to;
	uint64_t key;
	const struct urn_rma_word *words; /* read by the call only */
	uint32_t n;			  /* words, 1 to attr.operations of the endpoint */
	uint32_t flags;			  /* like those of struct urn_rma_vector */
	urn_rma_done_fn *done;
	void *arg;
	uint64_t *counter;
};
/* Change words: urn_rma_atomic() for each, in no order. returns: like urn_rma_writev() */
int urn_rma_atomicv(struct urn_am_endpoint *ep, const struct urn_rma_words *v);

/* ---- the end of operations */

/*
 * Let all operations that were issued so far end, those to one target for urn_rma_flush_to(). The
 * call drives urn_am_progress(), which may call any function of the program.
 *
 * timeout_ms: milliseconds; negative: without bound
 * code: set to the code of the first error (enum urn_am_code), or 0: of these operations, and of
 * earlier ones without a function `done` whose errors no flush has reported; of these the first is
 * kept, for its target. NULL: not wanted
 *
 * returns: 0: all have ended without an error; EREMOTEIO: all have ended, and `code` says how;
 * ETIMEDOUT: some are under way; EPERM: the call is made inside a function of the program (a
 * handler, `done`); ENOMEM
 */
int urn_rma_flush(struct urn_am_endpoint *ep, int timeout_ms, uint8_t *code);
int urn_rma_flush_to(struct urn_am_endpoint *ep, const struct urn_am_address *to, int timeout_ms,
		     uint8_t *code);
/* Operations under way, a vectored one counted once. */
uint32_t urn_rma_pending(const struct urn_am_endpoint *ep);

/* ---- queues of events, for programs that sleep */

struct urn_am_queue;

/* The end of an operation with URN_RMA_EVENT. */
struct urn_am_event {
	struct urn_am_endpoint *ep;
	void *arg;	 /* the operation's */
	uint64_t bytes;	 /* bytes that the target confirmed */
	uint8_t code;	 /* enum urn_am_code, perhaps with URN_AM_MAY_BE_THERE */
	uint8_t rsvd[7]; /* 0 */
};

/*
 * Make a queue of events, for any number of endpoints. One thread at a time uses a queue, with all
 * its endpoints.
 *
 * entries: operations with URN_RMA_EVENT that are under way, or whose event was not read yet, at
 * most 65536; one more is EAGAIN to its caller; 0: 256
 *
 * The queue belongs to this process. In a child of fork(), calls on it fail with EPERM, and change
 * nothing of the parent's; those that return numbers of events return 0 with errno set.
 *
 * returns: NULL with errno set, and urn_attach_error() says why
 */
struct urn_am_queue *urn_am_queue_create(uint32_t entries);
/* Destroy a queue. returns: 0; EBUSY: endpoints are in it; EPERM: the queue is a parent's. NULL is
 * allowed */
int urn_am_queue_destroy(struct urn_am_queue *q);
/* Let an endpoint be in the queue. returns: 0, or an errno value with its text: EINVAL: the
 * endpoint was made without attr.wakes; EBUSY: the endpoint is in a queue; EPERM: queue or endpoint
 * is a parent's */
int urn_am_queue_add(struct urn_am_queue *q, struct urn_am_endpoint *ep);
/* Take an endpoint out. Events that were not read stay; urn_am_endpoint_destroy() takes these,
 * too. returns: 0; EINVAL: the endpoint is not in the queue; EBUSY: operations with URN_RMA_EVENT
 * are under way; EPERM: queue or endpoint is a parent's */
int urn_am_queue_remove(struct urn_am_queue *q, struct urn_am_endpoint *ep);
/*
 * Drive urn_am_progress() of all endpoints in the queue, and read events. events: room for n
 *
 * returns: number of events read; 0 with errno EPERM: the queue is a parent's, or another endpoint
 * than the one whose handler makes the call is in the queue
 */
uint32_t urn_am_queue_poll(struct urn_am_queue *q, struct urn_am_event *events, uint32_t n);
/*
 * Like urn_am_queue_poll(), asleep until there is an event. Handlers and other functions of the
 * program are called meanwhile.
 *
 * timeout_ms: milliseconds; negative: without bound
 * returns: number of events read; 0: the time is over, or, with errno EPERM, as for
 * urn_am_queue_poll(), or there is no event, and the call is made inside a handler, or a function
 * that an endpoint in the queue called
 */
uint32_t urn_am_queue_wait(struct urn_am_queue *q, struct urn_am_event *events, uint32_t n,
			   int timeout_ms);
/*
 * The descriptor of the queue, for poll() and epoll: readable once operations have ended or
 * messages have come, after urn_am_queue_arm(); also after 1 ms while messages of this side wait or
 * are on their way, answers among them, and after 100 ms while requests have no answer. A late
 * notice of what was read already wakes, too. Nobody reads from it. After each wake-up
 * urn_am_queue_poll() is called. Nothing is sent between urn_am_queue_arm() and the sleep.
 */
int urn_am_queue_fd(const struct urn_am_queue *q);
/* Let the descriptor become readable when something comes, or has to be looked at in time. returns:
 * 1: something is there already: call urn_am_queue_poll(), not poll(); 0; -1 with errno EPERM: as
 * for urn_am_queue_poll() */
int urn_am_queue_arm(struct urn_am_queue *q);

/* ---- a thread of the library */

/*
 * Let a thread of the library call urn_am_progress() of the endpoint whenever something comes, and
 * sleep in between. From this call on any thread may call functions on the endpoint; a lock of the
 * endpoint's own keeps them apart. Handlers and all other functions that the program registered run
 * in the thread of the library, or in a thread of the program that drives the progress. The others'
 * calls on this endpoint wait until such a function returns; one that never returns blocks its own
 * endpoint, and no other. No other thread uses the endpoint during this call.
 *
 * The thread blocks all signals. In a child of fork() there is no such thread: calls on the
 * endpoint fail with EPERM there, and urn_am_endpoint_destroy() leaves the parent's endpoint alone.
 *
 * returns: 0, or an errno value with its text: EINVAL: the endpoint was made without attr.wakes;
 * EALREADY: the endpoint has a thread; EPERM: the call is made inside a function that the endpoint
 * called, or inside a handler of another endpoint
 */
int urn_am_thread_start(struct urn_am_endpoint *ep);
/*
 * Let the thread end, after the function that it calls just now; urn_am_endpoint_destroy() does so,
 * too. No other thread uses the endpoint during this call, and afterwards one at a time may.
 *
 * returns: 0; EINVAL: the endpoint has no thread; EDEADLK: the call is made in that
 * thread, or inside a function that the endpoint called; EBUSY: such a function did not return
 * within attr.answer_ms, and the text names the handler: the thread ends after that function, and
 * the next call waits anew
 */
int urn_am_thread_stop(struct urn_am_endpoint *ep);
/*
 * The handler that runs now, in whatever thread; any thread may ask, at any time, and does not
 * wait. A program finds by it which handler does not return.
 *
 * returns: number of the handler; -1: none
 */
int urn_am_running(const struct urn_am_endpoint *ep);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
