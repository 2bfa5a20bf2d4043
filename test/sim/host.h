/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole node: instead of the bare transport of other scenarios, a host has an engine,
 * an adapter and clients of the product, and control calls make all objects.
 *
 *   programs (end.c, call.c)     rogues (rogue.c)
 *         │   control calls, areas, doorbells  │
 *      struct urn_client, as urnicd has for another process
 *         │
 *      adapter: tables, quotas, connection management
 *         │
 *      engine ── net_ring ── wires
 *
 * The socket of urnicd is left out: a client is made and taken down by the same calls
 * as for a connection of urnicd.
 */
#ifndef URN_SIM_HOST_H
#define URN_SIM_HOST_H

#include "sim.h"

#include "control/objects.h"

#include <string.h>

enum {
	SIM_CLIENTS = 4,
	SIM_ROGUES = 3,
	SIM_ROGUE_QPS = 6,
	SIM_ROGUE_RAM = 1 << 16, /* bytes that a rogue shares */
	SIM_REGIONS = 256,       /* regions of a client that are counted */
};

#define SIM_SHARE_VA 0x600000000000ull /* address at which clients say that their memory is mapped */

/* Quotas of a client or user; kinds that are not named have no limit. */
static inline struct urn_limits
sim_limits(uint64_t qp, uint64_t cq, uint64_t srq, uint64_t mr, uint64_t pinned)
{
	struct urn_limits l;

	memset(&l, 0xff, sizeof(l));
	l.max[URN_QUOTA_QP] = qp;
	l.max[URN_QUOTA_CQ] = cq;
	l.max[URN_QUOTA_SRQ] = srq;
	l.max[URN_QUOTA_MR] = mr;
	l.max[URN_QUOTA_PINNED] = pinned;
	return l;
}

/* Memory that a client counts. */
struct sim_share {
	uint32_t key;                  /* 0: none */
	uint64_t bytes;
};

/* A program in another process. */
struct sim_client {
	struct urn_client *c;          /* NULL: not attached */
	struct sim_node *node;
	uint32_t pd;
	struct sim_cq scq, rcq;
	uint32_t scq_handle, rcq_handle;
	uint32_t key_all;              /* key for all of the node's memory */
	int m_all;                     /* the model's number of key_all */
	struct urn_abi_db *bells;
	int event_fd;                  /* the client's end of the asynchronous events; -1: none */
	uint64_t has[URN_QUOTAS];      /* objects that the client made and did not destroy, by its own count */
	struct sim_share region[SIM_REGIONS];
	struct sim_share share[SIM_REGIONS]; /* key: the handle plus 1 */
	bool narrows;                  /* makes the pipes for its events small */
	unsigned int index;            /* index among the node's clients */
	uint32_t listener;             /* id; 0: none */
	uint32_t guest_qpn;            /* QP for connections on which nothing is sent */
};

/* A rogue's view of a QP of its own. */
struct sim_rogue_qp {
	uint32_t qpn;                  /* 0: none */
	uint32_t db;
	bool ud, up;
	struct urn_abi_wq *sq, *rq;    /* rq NULL: a shared one */
	uint32_t sq_entries, sq_stride, rq_entries, rq_stride;
};

/* A client that misbehaves, and its successors. */
struct sim_rogue {
	struct sim_client client;
	struct sim_rng rng;
	unsigned int index;
	uint32_t lives;                /* lives still to come, this one included */
	uint64_t due, die_at;          /* ns */
	bool scribbles, floods, mute, greedy;
	struct sim_rogue_qp qp[SIM_ROGUE_QPS];
	uint32_t cq[4], srq, channel, ah; /* handles; 0: none */
	struct sim_cq poll;            /* polls cq[0] */
	int channel_fd;
	uint32_t key, window;
	uint32_t srq_entries, srq_stride;
	struct urn_abi_wq *srq_wq;
	uint32_t asked;                /* connections asked for in this life */
	uint32_t listener;
	int ram_fd;                    /* memory that the rogue shares; kept from run to run */
	uint8_t *ram;
};

struct sim_host {
	struct urn_port *port, *far;   /* the node's port, and the wire's end of it; owner: the process */
	int ram_fd;                    /* memfd of the node's memory; owner: the process */
	uint8_t *ram;
	uint32_t ram_size;             /* bytes that clients share, in this run */
	struct urn_dp *dp;
	struct urn_adapter *a;
	struct urn_engine *engine;
	struct urn_shard *shard;
	struct urn_ledger ledger;      /* quotas of all clients together: no limits */
	struct urn_account account[2]; /* users: the programs', the rogues' */
	struct sim_client client[SIM_CLIENTS];
	struct sim_rogue rogue[SIM_ROGUES];
	uint64_t busy_until;           /* ns: the host counts as busy until then */
	uint64_t strays;               /* received frames for queue pairs that do not exist */
};

/* ---- host.c */

/* The node's memory, as clients share it. */
uint8_t *sim_host_ram(struct sim_node *n, uint32_t bytes);
void sim_host_open(struct sim_node *n, uint32_t cqes);
void sim_host_turn(struct sim_node *n);
/* Write the node's counters into the trace. */
void sim_host_dump(struct sim_node *n);
/* Let all clients die; everything must then be as it was. */
void sim_host_close(struct sim_node *n);
int sim_host_modify(struct urn_qp *qp, uint32_t mask, const struct urn_abi_qp_attr *a, char *why,
		    size_t len);
/* Choose one of the node's programs at random. */
struct sim_client *sim_host_client(struct sim_node *n, struct sim_rng *rng);
/* Run rogues and programs that have something to do. *due: time of the next run, ns */
void sim_host_programs(struct sim_node *n, uint64_t *due);
/* True when all rogues of all nodes have lived all their lives. */
bool sim_host_settled(const struct sim *s);
/* Remove a client as when its connection hangs up. All its objects must be gone then. */
void sim_client_die(struct sim_client *c, struct urn_account *account);
/* Make the objects that a process needs once for this many nodes. returns sim_host_fds() */
unsigned int sim_host_ready(unsigned int nodes);
/* Descriptors that the process has open, and pieces of shared memory that it has mapped. */
unsigned int sim_host_fds(void);

/* ---- client.c */

/* Attach a client. share_fd, bytes: memory of its own. returns: true, or false after sim_fail() */
bool sim_client_open(struct sim_client *c, struct sim_node *n, struct urn_account *account,
		     const struct urn_limits *limits, int share_fd, uint32_t bytes);
/* Make a control call, with its descriptors. returns rep->err; fd: the client's descriptor, -1 none */
int sim_client_call(struct sim_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		    int *fd);
/* Make a control call that must succeed. */
bool sim_client_must(struct sim_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep,
		     const char *what);
/* Make the queues, keys and event pipe of a program that behaves. */
void sim_client_settle(struct sim_client *c, uint32_t cqes);
uint32_t sim_client_region(struct sim_client *c, uint32_t off, uint32_t len, uint32_t access);
int sim_client_window(struct sim_client *c, int type, uint32_t *rkey);
uint8_t sim_client_gid_index(const struct sim_client *c);
void sim_client_qp(struct sim_end *e);
void sim_client_close_end(struct sim_end *e);
/* Fail the run when an event tells of an error. */
void sim_client_check_events(struct sim_client *c);
/* Fail the run when the dataplane's counts of quotas differ from the client's. */
void sim_client_check_quota(const struct sim_client *c);

/* ---- rogue.c */

void sim_rogue_open(struct sim_node *n, struct sim_rogue *r, unsigned int index);
/* Do some mischief; *due: time of the next turn, ns. */
void sim_rogue_turn(struct sim_node *n, struct sim_rogue *r, uint64_t *due);
void sim_rogue_close(struct sim_node *n, struct sim_rogue *r);

#endif
