/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters with shared receive queues, and connections of one such queue over them, whose peers
 * are the test's. Nothing runs by itself: rig_settle() does what the thread of a device does. Each
 * step of the test is counted, and an adapter dies at the step that the test names.
 */
#ifndef URN_TEST_SESSION_SRQ_RIG_H
#define URN_TEST_SESSION_SRQ_RIG_H

#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SRQ_CONNECTIONS = 2, /* connections of the queue, at most */
	SRQ_RECEIVES = 4,    /* receives of the program */
	SRQ_ENTRIES = 64,    /* entries of an adapter's queues, at most */
	SRQ_NUMBER = 100,    /* number of the first connection, for the program */
	SRQ_PEER = 200,	     /* ... and for its peer */
	SRQ_NEVER = 1 << 30, /* a step that does not come */
};

/* An adapter's shared receive queue. */
struct srq_below {
	struct ibv_srq ibv;
	uint64_t wr_id[SRQ_ENTRIES];
	struct urn_sess_wire *header[SRQ_ENTRIES];
	uint32_t head, tail; /* entries taken; posted */
	uint32_t limit;
};

struct srq_below_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct ibv_wc ring[8 * SRQ_ENTRIES];
	uint32_t head, tail;
};

struct srq_below_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	uint64_t taken[SRQ_RECEIVES]; /* wr_id of receives in hand, oldest first */
	uint32_t bytes[SRQ_RECEIVES]; /* bytes that came for each */
	uint32_t has;		      /* entries of taken, and of bytes */
	enum ibv_qp_state state;
};

/* The peer of a connection. */
struct srq_peer {
	uint64_t next;	   /* id of the next Send; from 1 on */
	uint64_t flushed;  /* LAST SENT */
	uint64_t all;	   /* Sends that it has for us */
	uint32_t paths;	   /* paths alive for it */
	uint32_t reported; /* epoch of the newest REPORT that it heard */
	bool waits;	   /* until MIGRATED, or our answer */
	uint64_t received; /* LAST RECEIVED in that REPORT */
};

struct srq_rig {
	struct ibv_context *below[URN_SV_ADAPTERS];
	bool silent[URN_SV_ADAPTERS]; /* the adapter answers no call */
	struct urn_sv_ctx ctx;
	struct urn_sv_pd pd;
	struct urn_sv_cq cq;
	struct urn_sv_srq *srq;
	struct urn_sv_qp q[SRQ_CONNECTIONS];
	struct srq_peer peer[SRQ_CONNECTIONS];
	uint64_t got[SRQ_CONNECTIONS]; /* Sends that the program got */
	bool posted[SRQ_RECEIVES];     /* the program has posted this receive, and not polled it */
	uint32_t connections;
	uint32_t numbers;	      /* numbers of queue pairs given */
	uint32_t step, kill_at, kill; /* steps so far; when an adapter dies, and which */
	uint32_t again_at, again;     /* the same for a second death, behind healing */
	uint32_t heal_at;	      /* when the first one is healed */
	uint64_t now;		      /* ms */
	bool plain;		      /* peers have no session layer */
	bool own;		      /* connections have receives of their own */
	bool late;		      /* queue pairs give receives back later: srq_give() */
	/* called while a connection waits for the answer of its peer; NULL: nothing is */
	void (*window)(struct srq_rig *r);
};

extern struct srq_rig *srq_rig;

/* Operations of both adapters (srq_below.c); and which one a context is of. */
extern const struct urn_verbs_ops srq_below_ops;
uint32_t srq_adapter(const struct ibv_context *c);

/* cmocka's set-up and tear-down. */
int srq_setup(void **state);
int srq_teardown(void **state);
/* Make the adapters, a queue with receives, and connections. */
void srq_begin(struct srq_rig *r, uint32_t connections);
/* Make one more connection, up to the change to RTR. */
struct urn_sv_qp *srq_init(struct srq_rig *r);
/* Connect it: to RTR, and to RTS. returns: 0 or an errno value */
int srq_connect(struct urn_sv_qp *q);
/* End them: all receives have to be there. */
void srq_end(struct srq_rig *r);
/* End the last connection. */
void srq_leave(struct srq_rig *r);
/* Post a receive of the program. */
void srq_post(struct srq_rig *r, uint64_t id);
/* Count a step of the test; the adapter whose step it is dies, or is healed. */
void srq_step(struct srq_rig *r);
/* Do what the thread of the device does, and what peers answer, until nothing is left to do. */
void srq_settle(struct srq_rig *r);
/* The program polls, checks what it gets, and posts the receives again. */
void srq_poll(struct srq_rig *r);
/* An adapter's queue; and the receives in it that nobody has taken. */
struct srq_below *srq_real(const struct srq_rig *r, uint32_t adapter);
uint32_t srq_waiting(const struct srq_rig *r, uint32_t adapter);
/* Let all messages come; more: Sends of each peer. */
void srq_run(struct srq_rig *r, uint32_t more);
/* All receives of the program are where the next message finds them. */
void srq_whole(const struct srq_rig *r);
/* Kill an adapter; make it anew, with all paths trusted. */
void srq_kill(struct srq_rig *r, uint32_t adapter);
void srq_heal(struct srq_rig *r, uint32_t adapter);
/* The second half of that: nothing that connections wait for is done before. */
void srq_back(struct srq_rig *r, uint32_t adapter);
/* The peer of a connection sends its next message, as far as it comes. returns: false: no receive
 * was there, or the peer waits */
bool srq_send(struct srq_rig *r, uint32_t n);
/* The next receive of an adapter goes to a queue pair, with a header. returns: false: there is none
 */
bool srq_take(struct srq_rig *r, struct srq_below_qp *qp, const struct urn_sess_header *h);
/* The oldest receive in hand is complete. */
void srq_complete(struct srq_below_qp *qp, enum ibv_wc_status status);
/* A queue pair in error gives back what it has in hand. */
void srq_give(struct srq_below_qp *qp);
/* The peer tells of a migration by itself. */
void srq_tell(struct srq_rig *r, uint32_t n, uint32_t paths);
/* The real queue pair that a connection uses. */
struct srq_below_qp *srq_used(struct srq_rig *r, uint32_t n);

#endif
