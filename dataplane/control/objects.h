/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structs of control: a dataplane, its adapters - virtual RNICs - and their clients. A
 * client has its area, its doorbells, and every object that it made, so that all can
 * be taken back when the client goes (architecture rule 3).
 */
#ifndef URN_CONTROL_OBJECTS_H
#define URN_CONTROL_OBJECTS_H

#include "abi/agree.h"
#include "abi/control.h"
#include "cm/cm_agent.h"
#include "control/area.h"
#include "control/dataplane.h"
#include "control/explain.h"
#include "control/handles.h"
#include "control/pair.h"
#include "control/quota.h"
#include "control/teller.h"
#include "engine/engine.h"
#include "memory/space.h"

struct urn_adapter;
struct urn_dp;
struct urn_log;
struct urn_shm;

/* ---- clients */

/* A completion queue, with control's part. */
struct urn_ctl_cq {
	struct urn_cq cq;
	uint64_t off, bytes;  /* in the client's area */
	uint32_t vector;      /* vector of the engine that owns it */
	uint32_t channel;     /* handle of a remote client's channel; 0: none */
};

struct urn_ctl_srq {
	struct urn_srq srq;
	uint64_t off, bytes;
	uint32_t vector;
};

/* A pipe for events of a remote client. */
struct urn_ctl_pipe {
	int write_fd; /* descriptor that engines write to; -1: none */
	/* The way that write_fd leads to, and that owns it; NULL: write_fd is the pipe's own, and
	 * the client has the other end */
	struct urn_teller_way *way;
};

/* A remote client's completion channel: a pipe, whose other end the client has. */
struct urn_ctl_channel {
	struct urn_ctl_pipe pipe;
	uint32_t users; /* completion queues and register sets that write to it */
};

/*
 * Owner of a client in another process: all fields are set before other clients can see
 * the client.
 */
struct urn_client_who {
	pid_t pid;                       /* its process, by the kernel's word */
	uid_t uid;                       /* its user */
	int conn_fd;                     /* its connection; -1: none */
	struct urn_account *account;     /* the user's account; NULL: no limits */
	const struct urn_limits *limits; /* the client's own limits; valid with an account */
	struct urn_space *space;         /* its memory; NULL: can't be reached, and */
	char no_space[160];              /* ... why */
	char program[16];		 /* its program's name, by its own word; "": not known */
	/* Engines write events to the client's own descriptors: the client is trusted, and no
	 * thread of its own may run, as in a simulation */
	bool direct;
};

struct urn_client {
	struct urn_engine_client
		engine;		       /* the engines' part; remote: async_fd is that of `async` */
	struct urn_adapter *adapter;   /* NULL: its dataplane has been taken down */
	LIST_ENTRY(urn_client) link;   /* in the adapter's list; valid while started */
	uint32_t id;                   /* unique in this process, from 1 on; the newest is first in the list */
	/* Joined clients, which share objects, have one number here: the id of the first. Under the
	 * adapter's lock */
	uint32_t family;
	bool leaving; /* its objects are being taken back; under the adapter's lock */
	bool no_pds;  /* ... and its protection domains have been, so all else of it; under the
			 adapter's lock */
	pid_t pid;                     /* remote: its process, by the kernel's word; 0: none */
	uid_t uid;                     /* remote: its user */
	_Atomic int conn_fd;           /* remote: its connection, owned by the server; -1: none. To hang up on */
	struct urn_abi_channel channel;
	struct urn_area area;
	/* The address space of its process, reference counted; NULL: this process's, or not handed
	 * over (yet). Set once, under the adapter's lock once the client has started. */
	struct urn_space *space;
	char no_space[160];            /* remote without a space: why there is none */
	/*
	 * Control's: the outcome of its latest HELLO, urn_abi_unasked() before the first.
	 * Under the adapter's lock once the client has started.
	 */
	struct urn_abi_agreed agreed;
	uint64_t mark_off; /* in its area: a number that proves reads of its space to be its own; 0: none */
	uint64_t area_at;  /* address of its area in its process, by its own word; 0: not told */
	uint64_t db_off[URN_ABI_MAX_ENGINES]; /* by vector */
	bool remote;                   /* in another process: reached by the memory that it shares */
	/* Engines and other clients know it, and its area is sealed. Owner: its thread */
	bool started;
	int wake_fd[URN_ABI_MAX_ENGINES]; /* by vector: an eventfd by which it wakes the engine; -1: none */
	/* by vector: the epoll that holds wake_fd, and that the engine watches; this process's
	 * alone; -1: none */
	int wake_set[URN_ABI_MAX_ENGINES];
	LIST_HEAD(, urn_shm) shms;	  /* remote: memory that it shares (shm.c) */
	uint32_t shm_next;             /* handle of the newest of them */
	struct urn_tally quota;	       /* remote: its amounts and limits; else without an account */
	char no_queue[160]; /* why its present call gets no memory for a queue; "": not refused; the
			       call's */
	bool busy;                     /* a call of it is in progress; under the adapter's lock */
	unsigned int waits;            /* turns that its present call has waited for memory; the call's */
	unsigned int taken;            /* objects taken back since others were let in; under the adapter's lock */
	LIST_HEAD(, urn_key_link) keys;	 /* its keys, as entries of adapter.key_link */
	struct urn_handles cqs, srqs;    /* struct urn_ctl_cq, struct urn_ctl_srq */
	struct urn_handles channels;     /* struct urn_ctl_channel */
	uint32_t msg_sets;               /* its register sets of messages; under the adapter's lock */
	uint32_t am_eps; /* its endpoints of remote memory access; under the adapter's lock */
	uint32_t ahs;	 /* its address handles; under the adapter's lock */
	struct urn_teller *teller; /* remote: hands its events over; NULL: no pipe yet, or direct */
	struct urn_ctl_pipe async; /* remote: its asynchronous events go there */
	bool direct;		   /* urn_client_who.direct */
	int reply_fd;                  /* remote: descriptor that the reply to this call brings; -1: none */
	int reply_write_fd;            /* ... and its other end, which stays open here */
	struct urn_pair_list held;     /* its QPs that send nothing yet (pair.h); under the adapter's lock */
	struct urn_cm_client cm;       /* its connection ids and their events */
};

/* The client that an engines' part belongs to. NULL: none */
static inline struct urn_client *
urn_client_of(const struct urn_engine_client *e)
{
	return e ? (struct urn_client *)((uintptr_t)e - offsetof(struct urn_client, engine)) : NULL;
}

/* The client that made a queue pair, in any thread that keeps the QP from going away. NULL: none */
static inline struct urn_client *
urn_client_of_qp(const struct urn_qp *qp)
{
	return urn_client_of(urn_share_client(urn_qp_owner(qp)));
}

/* ---- adapters */

enum {
	URN_GIDS = 3,             /* link-local, IPv4, configured IPv6 */
	URN_ADAPTER_MAX_PD = 4096, /* urn_qp.pd has 16 bits */
	URN_ADAPTER_MAX_CQ = 65536,
	URN_ADAPTER_MAX_SRQ = 65536,
	URN_ADAPTER_MAX_AH = 65536,
};

/* Marks of a protection domain, until it is deallocated. */
enum urn_pd_flag {
	URN_PD_SHARED = 1 << 0,	   /* imported: all of its maker's family may use it */
	URN_PD_WINDOWS = 1 << 1,   /* a window was made in it */
	URN_PD_UNCHARGED = 1 << 2, /* its owner inherited it, beyond the owner's quota */
};

/* A key's place in the list of its client's keys. */
struct urn_key_link {
	LIST_ENTRY(urn_key_link) link; /* valid while the key has an owner */
};

struct urn_adapter {
	struct urn_dp *dp;
	struct urn_adapter_config cfg;
	unsigned int index;
	unsigned int vectors;                          /* engines that serve the adapter */
	struct urn_shard *shard[URN_ABI_MAX_ENGINES];  /* by engine; NULL: the engine does not serve it */
	uint8_t engine_of[URN_ABI_MAX_ENGINES];        /* by vector */
	uint8_t mac[6];
	uint8_t gid[URN_GIDS][16];
	struct urn_mem *mem;
	struct urn_neigh *neigh;
	struct urn_learn *learn;		       /* NULL: cfg.no_learn */
	struct urn_cm_agent *cm;                       /* NULL: cfg.no_cm */
	struct urn_ah *_Atomic *ah;                    /* by id - 1; read by engines */
	uint32_t ah_next;                              /* index to look for a free place from */
	uint32_t ah_used;                              /* no place from here on was ever given out */
	struct urn_client **key_owner;                 /* by index of a key; NULL: none */
	struct urn_client **pd_owner;                  /* by PD handle */
	uint8_t *pd_flags;			       /* by PD handle: enum urn_pd_flag */
	uint8_t *key_kind;                             /* 0 none, 1 region, 2 window */
	uint32_t *key;                                 /* by index: the key that was given out */
	uint64_t *key_bytes; /* by index: bytes of the region; 0: none, or a window */
	struct urn_key_link *key_link; /* by index: in the list of the owner's keys */
	struct urn_shm **key_shm;                      /* by index: shared memory in which a remote client's region lies */
	struct urn_pairs pairs;                        /* clients by the remote QP they are connected to */
	struct urn_explain_past past; /* errors of clients that have gone; under its lock */
	LIST_HEAD(, urn_client) clients;	       /* that have started; the newest first */
	struct urn_teller_counts told; /* counts of the tellers of all its clients */
	pthread_mutex_t lock;                          /* the adapter's lock is held during a control call: one at a time */
};

struct urn_dp {
	unsigned int engines_n;
	struct urn_engine *engine[URN_ABI_MAX_ENGINES];
	unsigned int adapters_n;
	struct urn_adapter **adapter;
	/* Versions and features for programs; set before the first of them attaches. */
	struct urn_abi_offer speaks;
	/* The log of events; owner: the program; NULL: none. Set before the first of them attaches
	 */
	struct urn_log *log;
	_Atomic bool
		frozen; /* no thread of a program in another process goes on: urn_dp_freeze() */
};

static inline struct urn_shard *
urn_adapter_shard(const struct urn_adapter *a, uint32_t vector)
{
	return a->shard[a->engine_of[vector]];
}

/* The client's shard on the engine of a vector. NULL: none yet */
static inline struct urn_client_shard *
urn_client_shard(const struct urn_client *c, uint32_t vector)
{
	const struct urn_tp_share *share = c->engine.share[c->adapter->engine_of[vector]];

	return share ? urn_client_shard_of(share) : NULL;
}

/* Code of the largest path MTU that the port carries. */
static inline uint8_t
urn_adapter_mtu_code(const struct urn_adapter *a)
{
	return (uint8_t)(__builtin_ctz(a->cfg.port->caps.roce_mtu) - 7);
}

/* EUI-64 of the MAC, host order. */
static inline uint64_t
urn_adapter_guid(const struct urn_adapter *a)
{
	return (uint64_t)(a->mac[0] ^ 2) << 56 | (uint64_t)a->mac[1] << 48 |
	       (uint64_t)a->mac[2] << 40 | 0xfffe000000ull | (uint64_t)a->mac[3] << 16 |
	       (uint64_t)a->mac[4] << 8 | a->mac[5];
}

/* Least power of two that is not less than n; at least 1. */
static inline uint32_t
urn_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

#endif
