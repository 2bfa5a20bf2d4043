/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: a UNIX stream socket over which the two sides exchange
 * the values that verbs need, before and after the transfer. During the transfer
 * the socket is silent; its end tells that the peer has gone.
 *
 *   sender                         receiver
 *   OFFER (sizes, checks)   --->   brings its port up
 *                           <---   READY (address, memif socket, key of the ring)
 *   START (address)         --->   connects its QP
 *                           <---   GO
 *   ...                            ...
 *   DONE  (counters)        --->
 *                           <---   DONE (counters)
 *
 * Either side may say FAIL (a message) instead, and ends.
 */
#ifndef URN_CP_OOB_H
#define URN_CP_OOB_H

#include "common/endpoint.h"
#include "dataplane/counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CP_PATH_MAX 108 /* bytes of a UNIX socket's path, with its zero */
#define CP_STEP_SECONDS 20 /* time limit of a peer for each step */

enum cp_frame_type {
	CP_SILENCE = 0, /* no frame is due */
	CP_OFFER = 1,
	CP_READY = 2,
	CP_START = 3,
	CP_GO = 4,
	CP_DONE = 5,
	CP_FAIL = 6,
	CP_FRAMES,
};

#define CP_NO_QPN 1u /* QPN of a side that sends over messages, and has no queue pair */

/* A side's receive queue, in a transfer over messages; else all zero. */
struct cp_queue {
	uint64_t qid;      /* number of the queue */
	uint32_t token;    /* in the head of each message for the queue */
	uint32_t rsvd;     /* 0 */
};
_Static_assert(sizeof(struct cp_queue) == 16, "goes between programs");

struct cp_offer {
	char release[32];  /* release of the program; both sides must have the same */
	uint32_t mtu;      /* largest path MTU wanted, bytes */
	uint32_t chunk;    /* bytes of a slot */
	uint32_t depth;    /* slots */
	uint32_t no_check; /* 1: no SHA-256 */
	uint32_t no_icrc;  /* 1: no ICRC */
	uint32_t over_msg; /* 1: over messages; 0: over queue pairs */
};
_Static_assert(sizeof(struct cp_offer) == 56, "goes between programs");

struct cp_ready {
	uint64_t addr;     /* address of slot 0 */
	uint32_t rkey;     /* R_Key of the ring of slots */
	uint32_t rsvd;     /* 0 */
	struct urn_ep_addr ep;
	char memif[CP_PATH_MAX]; /* socket that joins the two ports; empty: attached to a dataplane */
	struct cp_queue queue;
};
_Static_assert(sizeof(struct cp_ready) == 168, "goes between programs");

struct cp_start {
	struct urn_ep_addr ep;
	uint32_t rsvd;     /* 0 */
	struct cp_queue queue;
};
_Static_assert(sizeof(struct cp_start) == 48, "goes between programs");

struct cp_done {
	uint64_t counters[URN_COUNTER_COUNT]; /* counters of the sending side's dataplane */
};

struct cp_fail {
	char text[256];
};
_Static_assert(sizeof(struct cp_fail) == 256, "goes between programs");

union cp_body {
	struct cp_offer offer;
	struct cp_ready ready;
	struct cp_start start;
	struct cp_done done;
	struct cp_fail fail;
};

#define CP_FRAME_HEAD 12u

struct cp_oob {
	int fd;              /* -1: closed */
	const char *peer;    /* "the receiver" or "the sender"; static */
	size_t have;         /* bytes of the frame so far */
	bool peer_failed;    /* the peer said FAIL, went away, or sent malformed data */
	bool peer_said;      /* the peer said FAIL: its user knows the error */
	uint8_t buf[CP_FRAME_HEAD + sizeof(union cp_body)];
};

/* Take over a connected socket; cp_oob_close() closes it. */
void cp_oob_init(struct cp_oob *oob, int fd, const char *peer);
void cp_oob_close(struct cp_oob *oob);

/* Send one frame; its type decides the body. returns: 0, or -1 with *err */
int cp_oob_say(struct cp_oob *oob, enum cp_frame_type type, const void *body, struct urn_err *err);
/* Send FAIL, as far as possible. */
void cp_oob_fail(struct cp_oob *oob, const char *text);

/*
 * Look for a frame of the peer. Never waits. returns: 0 nothing yet; 1 a frame
 * of the wanted type, in *body; -1 with *err when the peer has gone, gave up,
 * or sent another frame
 */
int cp_oob_look(struct cp_oob *oob, enum cp_frame_type want, union cp_body *body,
		struct urn_err *err);

/* A call to be made while waiting for the peer: turn(arg), about once a millisecond. */
struct cp_wait {
	void (*turn)(void *arg); /* NULL: nothing */
	void *arg;
};

/*
 * Wait for a frame, CP_STEP_SECONDS at most, or until the program is asked to
 * stop. returns: 0, or -1 with *err
 */
int cp_oob_hear(struct cp_oob *oob, enum cp_frame_type want, union cp_body *body,
		const struct cp_wait *wait, struct urn_err *err);

/* True when a queue that a peer told is one, as over messages, or is all zero, as without. */
bool cp_queue_ok(const struct cp_queue *q, bool over_msg);
/* Check the body of a peer's frame. returns: 0, or -1 with *err */
int cp_offer_check(const struct cp_offer *offer, struct urn_err *err);
/* attached: this side is attached to a dataplane, and so must the other side be */
int cp_ready_check(const struct cp_ready *ready, bool attached, struct urn_err *err);
int cp_start_check(const struct cp_start *start, struct urn_err *err);

/*
 * Make a listening socket at path, for this user only. A socket on which nobody
 * listens any more is replaced. returns: descriptor, or -1 with *err
 */
int cp_oob_listen(const char *path, struct urn_err *err);
/* Wait for one sender, until the program is asked to stop. returns: descriptor, or -1 */
int cp_oob_accept(int listener, const char *path, struct urn_err *err);
/* Connect to a listener. returns: descriptor, or -1 with *err */
int cp_oob_connect(const char *path, struct urn_err *err);

#endif
