/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on foreign memory: for use inside memory/ only.
 *
 *   engine (memx.c, lane.c)              worker of the space (worker.c)
 *
 *   urn_lanes_put() ─► slot[sent..prod)
 *   urn_lanes_flush()  sent ───────────► slot[done..sent)  copies, sets status
 *   urn_lanes_poll() ◄── slot[cons..done)  done ◄──────────
 *
 * A lane is one ring between one executor and one space. An operation is put into a slot,
 * answered in that slot, and taken out of it, so an answer always has room. Operations that
 * find no slot wait in a list of the executor, in order.
 *
 * One worker a space. The worker carries out the operations of a lane in the order they came; a
 * copy that stalls holds up that space only. A futex wakes a sleeping worker; the engine makes
 * no other system call, and never waits.
 */
#ifndef URN_MEMORY_FOREIGN_H
#define URN_MEMORY_FOREIGN_H

#include "memory/check.h"
#include "memory/space.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum {
	URN_LANE_SLOTS = 512, /* power of two */
};

struct urn_lane_wait; /* an operation that found no slot */

/* Operations that all clients of one user together have under way by one executor. */
struct urn_lane_user {
	SLIST_ENTRY(urn_lane_user) next; /* in the bucket */
	uid_t uid;
	uint32_t n;  /* operations */
	bool closed; /* no more may be added */
};

struct urn_lane {
	/* Constant once the lane is in its space's list. */
	struct urn_lane *next; /* next in the list of the space */
	const void *owner;     /* the executor; when it is gone, the lane is empty */
	struct urn_space *space;

	/* The engine's fields. */
	uint32_t prod URN_ABI_ALIGNED(64); /* slots filled */
	uint32_t cons;			   /* answers taken */
	uint32_t waiting;		   /* operations in the list of those without a slot */
	bool active;			   /* in the executor's list: something is under way */
	bool flush;			   /* in the executor's list of lanes whose worker is to be told */
	struct urn_lane_user *user;	   /* user of the space; valid while active */
	STAILQ_HEAD(, urn_lane_wait) waits; /* operations without a slot, in their order */
	struct urn_lane *next_active, *next_flush;
	uint32_t put;	 /* operations given to the lane so far; read by others */
	uint32_t taken;	 /* ... and how many of them were answered, first to last; read by others */
	uint32_t closed; /* first domain that the lane closed the gate of (urn_lanes.shut); 0: none */

	_Atomic uint32_t sent URN_ABI_ALIGNED(64); /* engine: slots that the worker may take */
	_Atomic int cpu;			   /* engine: the core that it put them from */
	_Atomic uint32_t done URN_ABI_ALIGNED(64); /* worker: slots answered */

	struct urn_memop slot[URN_LANE_SLOTS] URN_ABI_ALIGNED(64);
};

struct urn_space {
	struct urn_space_fds fds; /* owner; constant */
	uid_t uid;		  /* user of the space; constant once there are regions */
	_Atomic uint32_t refs;
	_Atomic(struct urn_lane *) lanes; /* pushed by engines, freed with the space */
	_Atomic uint32_t asleep;	  /* futex: 1: the worker sleeps, or is about to */
	_Atomic int cpu;		  /* the core the worker was seen on last */
	_Atomic bool stop;		  /* the worker must end */
	pthread_mutex_t lock; /* lock protects started while control calls start the worker */
	bool started;			  /* the worker exists */
	pthread_t worker;
	uint8_t scratch[64]; /* worker: target of bytes that nobody wants */
	/* The client's word that nothing is to be written any more (urn_space_leave_by()); NULL: it
	 * has none. Constant once there are regions. */
	const _Atomic uint32_t *left;
	/* Reading by process number (direct.c). */
	_Atomic(uint64_t *) mark; /* 16 bytes shared with the client, as mapped here; NULL: none */
	uint64_t mark_at;	  /* address of these bytes in the client, as it says; valid with mark, constant */
	_Atomic uint32_t direct_off;   /* worker: 1: direct reading must not be tried any more */
	_Atomic uint64_t direct_reads; /* worker: calls that read for the client */
	_Atomic uint64_t
		direct_refused; /* worker: calls that the kernel refused, or that were not believed */
};

/* `base` of a region with `foreign` set points to this. */
struct urn_foreign {
	struct urn_space *space; /* counted */
	uint64_t base;		 /* address of the region's start in the space */
};

/* Address of the bytes of an operation in their space. */
static inline uint64_t
urn_foreign_target(const struct urn_memop *op)
{
	const struct urn_foreign *f = (const void *)op->region->base;

	return f->base + (op->addr - op->region->start);
}

/* ---- worker.c */

/* Start the worker, if it does not run. Control. returns: 0 or an errno value */
int urn_space_start(struct urn_space *space);
/* End the worker; nothing may be under way. */
void urn_space_stop(struct urn_space *space);
/* A lane has operations: wake the worker if it sleeps. Engines. */
void urn_space_wake(struct urn_space *space);

/* ---- direct.c: reading by process number. All calls but create and destroy: by the worker */

struct urn_direct;

/* returns: NULL: no memory */
struct urn_direct *urn_direct_create(struct urn_space *space);
void urn_direct_destroy(struct urn_direct *d);
/* Give up rights that the worker must not have; to be called at the beginning of its thread. */
void urn_direct_begin(struct urn_direct *d);
/* Give this thread CAP_SYS_PTRACE, if the process has that, or take it away. */
void urn_direct_rights(bool ptrace);
/*
 * Carry out the first of n operations of a lane from slot `at` on, by one call. returns: how many
 * were done; 0: none, the descriptor is to be tried
 */
uint32_t urn_direct_read(struct urn_direct *d, struct urn_lane *l, uint32_t at, uint32_t n);

/* ---- lane.c: all lanes of one executor */

/* The closed gate of a protection domain. */
struct urn_lane_shut {
	struct urn_lane *by; /* lane that closed it; NULL: the gate is open */
	uint32_t next;	     /* domain that the same lane closed the gate of before; 0: none */
};

enum { URN_LANE_USERS = 64 /* buckets */ };

struct urn_lanes {
	const void *owner; /* the executor */
	struct urn_lane *active, *to_flush;
	uint32_t n;		       /* operations under way, in all lanes */
	uint32_t limit;		       /* operations under way from which on lanes are limited */
	uint32_t full;		       /* ... and from which on users are limited */
	SLIST_HEAD(, urn_lane_user) user[URN_LANE_USERS]; /* by uid; owner: the executor */
	STAILQ_HEAD(, urn_lane_wait) free;   /* pool for operations that wait without a slot */
	SLIST_HEAD(, urn_lane_block) blocks; /* owner of that pool */
	struct urn_memx_gate gate;
	struct urn_lane_shut *shut; /* by domain; owner */
};

/* returns: 0 or ENOMEM */
int urn_lanes_init(struct urn_lanes *ls, const void *owner, const struct urn_memx_config *cfg);
/* Free the lanes of an executor; nothing may be under way. */
void urn_lanes_fini(struct urn_lanes *ls);
/* A domain goes away, with nothing under way on it: the next domain of this number is another one. */
void urn_lanes_forget_pd(struct urn_lanes *ls, uint32_t pd);
/* True when a space, or its user, has too many operations under way. */
bool urn_lanes_gated(const struct urn_lanes *ls, const struct urn_space *space);
/* Hand an operation over. returns: PENDING; FAILED: no memory */
uint8_t urn_lanes_put(struct urn_lanes *ls, const struct urn_memop *op);
/* Tell the workers of operations put since the last call. */
void urn_lanes_flush(struct urn_lanes *ls);
/* Take up to max answers. returns: their number */
unsigned int urn_lanes_poll(struct urn_lanes *ls, struct urn_memop *ops, unsigned int max);
/* True when a worker that has something to do runs on the caller's core. */
bool urn_lanes_crowded(const struct urn_lanes *ls);
/* The lane of an executor to a space; NULL: the executor had nothing to do there. Any thread */
static inline struct urn_lane *
urn_lane_find(const struct urn_space *s, const void *owner)
{
	struct urn_lane *l = atomic_load_explicit(&s->lanes, memory_order_acquire);

	while (l && l->owner != owner)
		l = l->next;
	return l;
}

/*
 * A mark behind all operations that the lane was given so far; _passed is true when all before the
 * mark are answered. (fence.c)
 */
uint32_t urn_lane_mark(const struct urn_space *space, const void *owner);
bool urn_lane_passed(const struct urn_space *space, const void *owner, uint32_t mark);
/* Number of operations under way on a region. */
unsigned int urn_lanes_hold(const struct urn_lanes *ls, const struct urn_region *region);

#endif
