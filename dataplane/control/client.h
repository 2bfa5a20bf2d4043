/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of an adapter: its area, its doorbells, and everything it made, so
 * that it can be taken back when the client goes (architecture rule 3).
 */
#ifndef URN_CONTROL_CLIENT_H
#define URN_CONTROL_CLIENT_H

#include "abi/control.h"
#include "control/area.h"
#include "control/quota.h"
#include "cm/cm_agent.h"
#include "control/table.h"
#include "engine/engine.h"
#include "memory/space.h"

struct urn_adapter;
struct urn_share;
struct urn_pair;
LIST_HEAD(urn_pair_list, urn_pair);

/* A completion queue as control knows it. */
struct urn_ctl_cq {
	struct urn_cq cq;
	uint64_t off, bytes;  /* in the client's area */
	uint32_t vector;      /* which of the adapter's engines owns it */
	uint32_t channel;     /* handle of a remote client's channel; 0: none */
};

struct urn_ctl_srq {
	struct urn_srq srq;
	uint64_t off, bytes;
	uint32_t vector;
};

/* A remote client's completion channel: a pipe, of which it has the other end. */
struct urn_ctl_channel {
	int write_fd;
	uint32_t users;       /* completion queues */
};

/*
 * Whose a client in another process is: all that others may look at is said before
 * they see the client.
 */
struct urn_client_who {
	pid_t pid;                       /* its process, as the kernel said */
	uid_t uid;                       /* its user */
	int conn_fd;                     /* its connection; -1: none */
	struct urn_account *account;     /* of its user; NULL: no limits */
	const struct urn_limits *limits; /* of itself, with an account */
	struct urn_space *space;         /* its memory; NULL: can't be reached, and */
	char no_space[160];              /* ... why */
};

struct urn_client {
	struct urn_engine_client engine; /* what engines know of it. async_fd: ours to close when remote */
	struct urn_adapter *adapter;   /* NULL: its dataplane has been taken down */
	struct urn_client *next;       /* of the adapter */
	uint32_t id;                   /* of all clients of this process, from 1 on; grows along the list */
	pid_t pid;                     /* remote: its process, as the kernel said; 0: none */
	uid_t uid;                     /* remote: its user */
	_Atomic int conn_fd;           /* remote: its connection, the session's; -1: none. To hang up on */
	struct urn_abi_channel channel;
	struct urn_area area;
	struct urn_space *space;       /* where its memory is; NULL: in this process. Counted */
	char no_space[160];            /* remote without a space: why there is none */
	uint64_t mark_off; /* in its area: what reads of its space are proved by; 0: none */
	uint64_t db_off[URN_ABI_MAX_ENGINES]; /* by vector */
	bool remote;                   /* another process: its memory is reached by what it shares */
	bool started;                  /* engines and other clients know it; its area is sealed. Its thread's */
	int wake_fd[URN_ABI_MAX_ENGINES]; /* by vector: an eventfd by which the engine hears it; -1
					   */
	struct urn_share *shares;      /* remote: memory it shares (share.c) */
	uint32_t share_next;           /* handle of the one made last */
	struct urn_account *account;   /* remote: of its user; NULL: no limits */
	struct urn_limits limits;      /* of itself, with an account */
	uint64_t used[URN_QUOTAS];     /* the same; under the ledger's lock */
	bool busy;                     /* a call of it is under way; under the adapter's lock */
	unsigned int waits;            /* turns that this call has waited for memory; the call's */
	unsigned int taken;            /* objects taken back since others were let in; under the adapter's lock */
	uint32_t keys;                 /* first of its keys' indices (adapter.key_link); 0: none */
	struct urn_table cqs, srqs;    /* struct urn_ctl_cq, struct urn_ctl_srq */
	struct urn_table channels;     /* struct urn_ctl_channel */
	int reply_fd;                  /* remote: to go along with the reply to this call; -1: none */
	int reply_write_fd;            /* ... and its other end, which stays open here */
	struct urn_pair_list held;     /* its QPs that send nothing yet (pair.h); under the adapter's lock */
	struct urn_cm_client cm;       /* its connection ids and their events */
};

/* The client of which a queue pair, a queue or an event knows what engines know. NULL: nobody's */
static inline struct urn_client *
urn_client_of(const struct urn_engine_client *e)
{
	return e ? (struct urn_client *)((uintptr_t)e - offsetof(struct urn_client, engine)) : NULL;
}

/*
 * urn_area_alloc() from the client's area. In the midst of a control call: what takes
 * its time is done while others are let in (urn_ctl_open()).
 */
int urn_client_alloc(struct urn_client *c, uint64_t bytes, uint64_t *off);

#endif
