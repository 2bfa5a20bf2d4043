/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of the faults among themselves: counters and decisions (engine.c), queues (queues.c), calls
 * (calls.c), completions (complete.c), events and peers (timed.c, peer.c).
 *
 * All state is the process's and under one lock, which no call of a provider is made under.
 */
#ifndef URN_VERBS_FAULT_STATE_H
#define URN_VERBS_FAULT_STATE_H

#include "verbs/fault/fault.h"
#include "verbs/fault/parse.h"

#include <sys/queue.h>

struct urn_fault {
	struct urn_fault_spec spec;
	uint64_t count;	 /* passed by so far */
	uint64_t random; /* state of the numbers of URN_FAULT_PERCENT */
	uint64_t due;	 /* events, peers: time of urn_clock_ns(); 0: not known yet */
	bool done;	 /* events, peers: happened */
};

/* A context with faults. */
struct urn_fault_ctx {
	LIST_ENTRY(urn_fault_ctx) link;
	struct urn_verbs_ops ops; /* the table of the context: the provider's with faults above */
	const struct urn_verbs_ops *real; /* the provider's */
	struct ibv_context *context;
	bool port_down; /* an event PORT_ERR was told, and no PORT_ACTIVE since */
};

/* A queue of the program. */
struct urn_fault_obj {
	LIST_ENTRY(urn_fault_obj) link;
	struct ibv_context *context;
	void *queue;	      /* struct ibv_qp, ibv_cq or ibv_srq */
	uint32_t kind;	      /* enum urn_fault_queue */
	uint32_t number;      /* the nth of its kind in the process, from 1 */
	uint32_t handle;      /* the provider's; a QP's number */
	uint32_t users;	      /* threads that use the queue without the lock: it must not go */
	bool dying;	      /* the program is destroying the queue */
	struct ibv_cq *cq[2]; /* QP: of sends and receives */
	bool flushed[2]; /* QP: completions of sends, of receives are flushed ones from now on */
	bool made_up;	 /* CQ: an extended poll shows a completion that failed on demand */
	bool connected;	 /* QP: reached RTR since its creation or reset */
	bool breaks;	 /* QP: has to go to the error state when the poll ends */
	struct {	 /* the provider's own, where faults stand in their place */
		void (*wr_abort)(struct ibv_qp_ex *qp);
		int (*wr_complete)(struct ibv_qp_ex *qp);
		int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
		int (*next_poll)(struct ibv_cq_ex *cq);
		void (*end_poll)(struct ibv_cq_ex *cq);
		uint32_t (*read_vendor_err)(struct ibv_cq_ex *cq);
	} real;
	uint64_t count[]; /* by fault: passed by so far, for URN_FAULT_EACH */
};

/* Queues are found by their kind and handle in that many lists. */
enum { URN_FAULT_LISTS = 256 };

struct urn_fault_state {
	pthread_mutex_t lock; /* protects all that follows */
	pthread_cond_t cond;  /* told of contexts, due times, and users that leave */
	struct urn_fault fault[URN_FAULT_MAX];
	uint32_t n;
	uint32_t timed;	      /* faults that the thread sees to: events and peers */
	uint32_t made[3];     /* queues made so far, by kind */
	uint64_t completions; /* that the program has read */
	LIST_HEAD(, urn_fault_ctx) contexts;
	LIST_HEAD(, urn_fault_obj) objs[URN_FAULT_LISTS];
	pthread_t thread;
	bool runs;	/* the thread runs, or is to be joined */
	uintptr_t turn; /* the thread ends when this has changed */
	bool acts;	/* the thread makes calls, without the lock: contexts stay */
	bool opened;	/* a context was opened, and times count since */
	bool connected; /* a queue pair was connected, and times of peers count since */
};

extern struct urn_fault_state urn_fault_state;

/* The faults of a context. */
static inline struct urn_fault_ctx *
urn_fault_ctx(struct ibv_context *c)
{
	const struct urn_verbs_ctx *v = urn_verbs_ctx(c);

	return (struct urn_fault_ctx *)((uint8_t *)(uintptr_t)v->ops -
					offsetof(struct urn_fault_ctx, ops));
}

/* ---- engine.c */

/*
 * Pass by a call. o: its queue; NULL: none
 * returns: 0, or the errno value that it is to fail with, with errno and text set
 */
int urn_fault_call(enum urn_fault_site site, struct urn_fault_obj *o);
/* Pass by a fault once more. The lock is held. o: as above. returns: true when it strikes */
bool urn_fault_strikes(struct urn_fault *f, struct urn_fault_obj *o);

/* ---- queues.c */

/* Note a queue that was made; without memory no fault is about it. */
struct urn_fault_obj *urn_fault_obj_add(struct ibv_context *c, uint32_t kind, void *queue,
					uint32_t handle);
/* Find a queue; the lock is held. returns: NULL: none */
struct urn_fault_obj *urn_fault_obj_find(struct ibv_context *c, uint32_t kind, uint32_t handle);
/* Find a queue, and use it until urn_fault_obj_leave(). returns: NULL: none */
struct urn_fault_obj *urn_fault_obj_use(struct ibv_context *c, uint32_t kind, uint32_t handle);
void urn_fault_obj_leave(struct urn_fault_obj *o);
/* Before a queue is destroyed: wait until nobody uses the queue, and let nobody begin. returns:
 * NULL: none */
struct urn_fault_obj *urn_fault_obj_hold(struct ibv_context *c, uint32_t kind, uint32_t handle);
/* After that: forget the queue, or let it be used again. o: of urn_fault_obj_hold() */
void urn_fault_obj_end(struct urn_fault_obj *o, bool destroyed);
/* Forget all queues of a context. The lock is held. */
void urn_fault_objs_drop(struct ibv_context *c);
/* The first of a kind that a number means: URN_FAULT_EACH: the oldest there is. The lock is held.
 */
struct urn_fault_obj *urn_fault_obj_first(uint32_t kind, uint32_t number);

/* ---- calls.c, complete.c */

/* Fill in the table of a context. */
void urn_fault_calls_fill(struct urn_fault_ctx *f);
void urn_fault_completions_fill(struct urn_fault_ctx *f);
/* Stand in for the functions of a queue that verbs.h calls by itself. */
void urn_fault_cq_stand_in(struct urn_fault_obj *o, struct ibv_cq_ex *cq);
void urn_fault_qp_stand_in(struct urn_fault_obj *o, struct ibv_qp_ex *qp);
/* Move a queue pair to the error state. */
void urn_fault_break(struct urn_fault_obj *qp);

/* ---- timed.c; the lock is held */

/* Set the due times that count from now on, with a start of the given kind. */
void urn_fault_start(enum urn_fault_site site);
/* A completion has been read: faults that count completions may be due. */
void urn_fault_counted(uint64_t before);
/* Run the thread, if there is anything for it. */
void urn_fault_thread_start(void);
/* Ask the thread to end; urn_fault_thread_join() without the lock waits for that. */
void urn_fault_thread_join(void);

/* ---- peer.c */

/* A queue pair and its peer. */
struct urn_fault_pair {
	char adapter[IBV_SYSFS_NAME_MAX];
	uint32_t qpn;
	union ibv_gid gid[8]; /* the adapter's */
	uint32_t gids;
};

/* End the process at the other end of a queue pair. returns: 0, or an errno value, and why says why
 */
int urn_fault_kill_peer(const struct urn_fault_pair *pair, char *why, size_t size);

#endif
