/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of errors, for people who ask why. A record is made once, out of line, when a request or
 * a queue pair fails. Each client has a ring of them on each engine, so that no client can push
 * another's out, and none can ask for another's. A record that newer ones push out of the ring is
 * kept for its queue pair, as long as that is there: one for each, the error that the queue pair
 * did not survive before any other. So the client's own queue pairs are the bound.
 */
#ifndef URN_TRANSPORT_FAILURE_H
#define URN_TRANSPORT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_qp;
struct urn_tp;
struct urn_tp_share;

/* Kinds of errors. */
enum urn_failure_kind {
	URN_FAILURE_NONE,    /* the record is empty */
	URN_FAILURE_REQUEST, /* a request of the queue pair failed */
	URN_FAILURE_RECEIVE, /* a receive of the queue pair failed */
	URN_FAILURE_REFUSED, /* a request of the peer was refused, and no receive failed for it */
	URN_FAILURE_CQ,	     /* a completion queue lost a completion */
	URN_FAILURE_LOST,    /* the connection belongs to another queue pair, or was forged */
};

/* Things that stand in the way to the peer. */
enum urn_obstacle {
	URN_OBSTACLE_NONE,	  /* none is known */
	URN_OBSTACLE_PORT_DOWN,	  /* the port was taken down by a person */
	URN_OBSTACLE_PORT_FAILED, /* the port was unplugged by a command */
	URN_OBSTACLE_NO_LINK,	  /* the port has no link */
	URN_OBSTACLE_NO_MAC,	  /* nobody answers for the peer's address, or its router's */
	URN_OBSTACLE_NO_ROUTE,	  /* no route leads to the peer */
};

/* Requests that an error flushes. */
enum urn_failure_flushes {
	URN_FLUSHES_NONE,  /* the queue pair goes on, or has left SQE since */
	URN_FLUSHES_SENDS, /* send requests: the queue pair is in SQE for it */
	URN_FLUSHES_ALL,   /* the queue pair went to ERR for it */
};

/* One error. The engine's; others get copies. */
struct urn_failure {
	uint64_t at;	     /* ns, on the engine's scale: when it happened */
	uint64_t stalled_ns; /* ns without progress of the queue pair before `at`, at least; 0: not
			      * known */
	uint32_t qpn;	     /* the queue pair */
	uint32_t dest_qpn;   /* the peer's; valid when connected */
	uint32_t psn;	     /* first PSN of the request; RECEIVE, REFUSED: the PSN expected next */
	uint32_t una;	  /* oldest PSN that the peer has not acknowledged; valid when connected */
	uint32_t length;  /* bytes of the request; valid for REQUEST */
	uint8_t dgid[16]; /* the peer; valid when connected */
	uint8_t hop[16];  /* NO_MAC: address that was asked for, the peer's or its router's */
	uint8_t kind;	  /* enum urn_failure_kind */
	uint8_t status;	  /* enum urn_abi_wc_status; URN_WC_SUCCESS: no completion tells of it */
	uint8_t vendor_err; /* enum urn_abi_vendor_err */
	uint8_t opcode;	    /* enum urn_abi_wc_op; valid for REQUEST */
	uint8_t syndrome;   /* syndrome of the NAK that came or was sent; 0: none */
	uint8_t tried;	    /* times that the request was sent, or waited, in vain; 0: that does not
			       matter */
	uint8_t timeout;    /* code of the timeout; valid with tried, 0: there is none */
	uint8_t obstacle;   /* enum urn_obstacle, at that time */
	bool connected;	    /* RC or UC: the queue pair has a peer */
	bool acked;	    /* the peer has acknowledged something */
	bool local_work;    /* REQUEST: it sends nothing, psn is of no use */
	bool unsent;	    /* with tried: nothing of it was ever sent, for want of an address */
	bool answers_lost;  /* URN_VE_SEQ: responses did not arrive; false: the peer misses packets
			     */
	uint8_t flushes;    /* enum urn_failure_flushes */
};

enum { URN_FAILURES = 16 }; /* records of a client on an engine; the oldest goes first */

/* The records of a client on an engine, and of those of failed UD receives one a queue pair.
 * Engine's thread only, but for `n`. */
struct urn_failures {
	uint32_t n; /* records ever made, atomic; the newest is at (n - 1) % URN_FAILURES */
	uint32_t told;	    /* records of the present second that urn_tp_config.failed handed on */
	uint64_t told_from; /* ns: when that second began; urn_tp_config.failed's, as `told` is */
	struct urn_failure ring[URN_FAILURES];
};

struct urn_work;

/*
 * Record that a request fails, before anything of the queue pair changes. In the engine's thread,
 * like the calls that follow; slow path.
 *
 * w: the request
 * status, vendor_err: of its completion; flushed requests are no errors
 */
void urn_failure_request(struct urn_tp *tp, const struct urn_qp *qp, const struct urn_work *w,
			 uint8_t status, uint8_t vendor_err);
/*
 * Complete the record of the request that has just failed with URN_VE_SEQ, which nobody is told of
 * before.
 *
 * answers: responses were lost; false: the peer misses packets
 */
void urn_failure_sequence(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn,
			  bool answers);
/* Record that a receive fails. syndrome: of the NAK that the peer gets; 0: none */
void urn_failure_receive(struct urn_tp *tp, const struct urn_qp *qp, uint32_t psn, uint8_t status,
			 uint8_t vendor_err, uint8_t syndrome);
/* Record an error of the queue pair that no completion tells of, if it is the first since the queue
 * pair came up. psn, syndrome: see struct urn_failure */
void urn_failure_quiet(struct urn_tp *tp, const struct urn_qp *qp, enum urn_failure_kind kind,
		       uint32_t psn, uint8_t syndrome);
/* Forget the records of a queue pair's number: it begins anew, or another one gets the number. */
void urn_failure_forget(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn);
/* A queue pair goes, and the record that is kept for it alone. */
void urn_failure_drop(struct urn_tp *tp, uint32_t qpn);
/* The transport goes, and all records that are kept for queue pairs. */
void urn_failures_free(struct urn_tp *tp);
/* A queue pair leaves SQE: requests that are flushed from now on are not flushed for that error. */
void urn_failure_leave_sqe(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn);
/*
 * Find the newest record of a queue pair that explains a completion, in its client's ring, or else
 * the one that is kept for the queue pair.
 *
 * status: of the completion. URN_WC_WR_FLUSH_ERR: the error that ended the queue pair, or its send
 *         queue, is meant, and not one that the queue pair survived. UINT8_MAX: any error
 * returns: valid until the share's next record; NULL: there is none
 */
const struct urn_failure *urn_failure_find(const struct urn_tp *tp,
					   const struct urn_tp_share *share, uint32_t qpn,
					   uint8_t status);

/*
 * Write the sentence about an error: queue pair, peer, request and PSN, reason, tries, for
 * how long there was no progress, and what stands in the way. Any thread. (failure_text.c)
 *
 * port: name of the adapter's port
 * flushed: the sentence is about a request that was flushed for this error
 * out, size: set to the sentence, cut to `size` bytes
 */
void urn_failure_text(const struct urn_failure *f, const char *port, bool flushed, char *out,
		      size_t size);

#endif
