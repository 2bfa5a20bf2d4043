/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How operations on foreign memory are carried out: inside memory/ only.
 *
 *   engine (memx.c, lane.c)              worker of the space (worker.c)
 *
 *   urn_lane_put() ──► slot[sent..prod)
 *   urn_lanes_flush()  sent ───────────► slot[done..sent)  copies, sets status
 *   urn_lanes_poll() ◄── slot[cons..done)  done ◄──────────
 *
 * A lane is one ring between one executor and one space. An operation is put
 * into a slot, answered in it, and taken out of it, so an answer always has
 * room. What finds no slot waits in a list of the executor's, in order.
 *
 * One worker a space. It carries out the operations of a lane in the order they
 * came; a copy that stalls holds up that space only. Asleep, it is woken by a
 * futex; the engine makes no other system call, and never waits.
 */
#ifndef URN_MEMORY_FOREIGN_H
#define URN_MEMORY_FOREIGN_H

#include "memory/check.h"
#include "memory/space.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	URN_LANE_SLOTS = 512, /* power of two */
};

struct urn_lane_wait; /* an operation that found no slot */

/* What the clients of one user have under way by one executor, all of them together. */
struct urn_lane_user {
	struct urn_lane_user *next; /* of the same bucket */
	uid_t uid;
	uint32_t n;  /* operations */
	bool closed; /* no more are to come */
};

struct urn_lane {
	/* Constant once it is in its space's list. */
	struct urn_lane *next; /* of the space */
	const void *owner;     /* the executor; it may be gone, and then the lane is empty */
	struct urn_space *space;

	/* The engine's. */
	uint32_t prod URN_ABI_ALIGNED(64); /* slots filled */
	uint32_t cons;			   /* answers taken */
	uint32_t waiting;		   /* in the list of those without a slot */
	bool active;			   /* in the executor's list: something is under way */
	bool flush;			   /* in its list of those whose worker is to be told */
	struct urn_lane_user *user;	   /* whose space it is; valid while active */
	struct urn_lane_wait *first, *last;
	struct urn_lane *next_active, *next_flush;
	uint32_t put;	 /* operations that it was given so far; read by others */
	uint32_t taken;	 /* ... and that were answered: the first so many; read by others */
	uint32_t closed; /* first of the domains that it closed the gate of (urn_lanes.shut); 0: none */

	_Atomic uint32_t sent URN_ABI_ALIGNED(64); /* engine: slots the worker may take */
	_Atomic int cpu;			   /* engine: the core it put them from */
	_Atomic uint32_t done URN_ABI_ALIGNED(64); /* worker: slots answered */

	struct urn_memop slot[URN_LANE_SLOTS] URN_ABI_ALIGNED(64);
};

struct urn_space {
	struct urn_space_fds fds; /* owner; constant */
	uid_t uid;		  /* whose it is; constant once there are regions */
	_Atomic uint32_t refs;
	_Atomic(struct urn_lane *) lanes; /* pushed by engines, freed with the space */
	_Atomic uint32_t asleep;	  /* futex: 1: the worker sleeps, or is about to */
	_Atomic int cpu;		  /* the core the worker was seen on last */
	_Atomic bool stop;		  /* the worker shall end */
	pthread_mutex_t lock;		  /* starting the worker; control */
	bool started;			  /* there is a worker */
	pthread_t worker;
	uint8_t scratch[64]; /* worker: bytes that nobody wants */
	/* Reading by process number (direct.c). */
	_Atomic(uint64_t *) mark; /* 16 bytes shared with the client, as mapped here; NULL: none */
	uint64_t mark_at;	  /* where the client says it has them; valid with mark, constant */
	_Atomic uint32_t direct_off;   /* worker: 1: not to be tried any more */
	_Atomic uint64_t direct_reads; /* worker: calls that read for the client */
	_Atomic uint64_t
		direct_refused; /* worker: that the kernel refused, or that were not believed */
};

/* What `base` of a region with `foreign` set points to. */
struct urn_foreign {
	struct urn_space *space; /* counted */
	uint64_t base;		 /* where the region's start lies in it */
};

/* Where the bytes of an operation lie in their space. */
static inline uint64_t
urn_foreign_target(const struct urn_memop *op)
{
	const struct urn_foreign *f = (const void *)op->region->base;

	return f->base + (op->addr - op->region->start);
}

/* ---- worker.c */

/* Start the worker, if it does not run. Control. returns 0 or an errno value */
int urn_space_start(struct urn_space *space);
/* End it; nothing is under way. */
void urn_space_stop(struct urn_space *space);
/* There is something in a lane: wake the worker if it sleeps. Engines. */
void urn_space_wake(struct urn_space *space);

/* ---- direct.c: reading by process number. All but create and destroy: the worker */

struct urn_direct;

/* returns: NULL: no memory */
struct urn_direct *urn_direct_create(struct urn_space *space);
void urn_direct_destroy(struct urn_direct *d);
/* At the beginning of its thread: give up what it must not have. */
void urn_direct_begin(struct urn_direct *d);
/* Give this thread CAP_SYS_PTRACE, if the process has it, or take it away. */
void urn_direct_rights(bool ptrace);
/*
 * Carry out the first of n operations of a lane from slot `at` on, by one call.
 * returns: how many were done; 0: none, the descriptor is to be tried
 */
uint32_t urn_direct_read(struct urn_direct *d, struct urn_lane *l, uint32_t at, uint32_t n);

/* ---- lane.c: all lanes of one executor */

/* A domain whose gate is closed. */
struct urn_lane_shut {
	struct urn_lane *by; /* NULL: it is open */
	uint32_t next;	     /* domain that the lane closed the gate of before; 0: none */
};

enum { URN_LANE_USERS = 64 /* buckets */ };

struct urn_lanes {
	const void *owner; /* the executor */
	struct urn_lane *active, *to_flush;
	uint32_t n;		       /* operations under way, of all lanes */
	uint32_t limit;		       /* of them, from which on lanes are kept short */
	uint32_t full;		       /* ... and from which on a user may have no more */
	struct urn_lane_user *user[URN_LANE_USERS]; /* by uid; owner, until the executor goes */
	struct urn_lane_wait *free;    /* pool of what waits without a slot */
	struct urn_lane_block *blocks; /* owner of it */
	struct urn_memx_gate gate;
	struct urn_lane_shut *shut; /* by domain; owner */
};

/* returns 0 or ENOMEM */
int urn_lanes_init(struct urn_lanes *ls, const void *owner, const struct urn_memx_config *cfg);
/* Nothing is under way. */
void urn_lanes_fini(struct urn_lanes *ls);
/* A domain goes, on which nothing is under way: the next of its number is another's. */
void urn_lanes_forget_pd(struct urn_lanes *ls, uint32_t pd);
/* Is too much under way of a space, or of its user? */
bool urn_lanes_gated(const struct urn_lanes *ls, const struct urn_space *space);
/* Hand an operation over. returns: PENDING; FAILED: no memory */
uint8_t urn_lanes_put(struct urn_lanes *ls, const struct urn_memop *op);
/* Tell the workers of what was put since the last time. */
void urn_lanes_flush(struct urn_lanes *ls);
/* Take up to max answers. returns: how many */
unsigned int urn_lanes_poll(struct urn_lanes *ls, struct urn_memop *ops, unsigned int max);
/* Does a worker that has something to do run on the caller's core? */
bool urn_lanes_crowded(const struct urn_lanes *ls);
/* The lane of an executor to a space; NULL: it had nothing to do there. Any thread */
static inline struct urn_lane *
urn_lane_find(const struct urn_space *s, const void *owner)
{
	struct urn_lane *l = atomic_load_explicit(&s->lanes, memory_order_acquire);

	while (l && l->owner != owner)
		l = l->next;
	return l;
}

/* A mark behind all operations that the lane was given so far, and whether all before a mark are answered. (fence.c) */
uint32_t urn_lane_mark(const struct urn_space *space, const void *owner);
bool urn_lane_passed(const struct urn_space *space, const void *owner, uint32_t mark);
/* Operations under way on a region. */
unsigned int urn_lanes_hold(const struct urn_lanes *ls, const struct urn_region *region);

#endif
