/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes in one thread, joined by rings, driven through the verbs API: the base of the
 * tests of the transport's behaviour.
 */
#ifndef URN_TEST_RIG_H
#define URN_TEST_RIG_H

#include <urnic/attach.h>
#include <urnic/verbs.h>

#include "control/dataplane.h"
#include "control/quota.h"
#include "pmd_glue/eal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

enum { RIG_NODES = 2, RIG_BUF = 1 << 20 };

struct rig_config {
	unsigned int engines;      /* 0: 2, one a node; 1: one for both nodes; 3, 4: node 0 on 0 and 2, ... */
	bool ipv6;                 /* talk over link-local IPv6 instead of IPv4 */
	bool global;		   /* nodes have addresses fd00::1 and fd00::2, too */
	uint32_t window;           /* packets in flight; 0: default */
	bool foreign;              /* all memory is accessed as if it were another process's */
	uint64_t delay_seed;       /* memory answers late; 0: at once */
	uint32_t fail_per_million; /* memory operations that fail, of a million; with delay_seed */
	unsigned int fail_node;    /* fail_per_million's node: 1: 0, 2: 1; 0: both */
	bool loopback;             /* both ends on node 0 */
	uint32_t work_in_flight;   /* 0: 4096 */
	uint32_t max_qp;	   /* 0: 1024 */
	uint32_t cache_line; /* bytes of a line that the nodes tell each other; 0: the machine's */
	bool count_stores;   /* regions have counts of stores */
	bool unregistered;	   /* endpoints may declare memory that is reached without a key */
	uint32_t queues;           /* queues of a port; 0: one for each of its engines */
	uint16_t mtu[RIG_NODES];   /* largest path MTU of a node's port; 0: 4096 */
	/*
	 * Bit i: node i has no link requests and no connection management; it offers no features
	 * (net/learn.h).
	 */
	uint8_t no_learn, no_features;
	/* The wire between the nodes is bad: RoCEv2 frames lost, duplicated and delayed, of a thousand each. */
	uint64_t wire_seed;        /* 0: the ports are connected directly */
	uint32_t lose, twice, late;
	/*
	 * The ends attach over the dataplane's socket, and a thread of its own turns the
	 * engines. RIG_REMOTE in the environment sets it for all rigs.
	 */
	bool remote;
	struct urn_limits per_client, per_uid; /* remote: limits of clients; 0: none */
	unsigned int clients_per_uid;
	const char *node;          /* remote: node of programs that name none; NULL: none */
	unsigned int look_ms;      /* remote: look_ms of urn_server_config */
	bool shared;		   /* remote: shared of urn_server_config */
	uint64_t queue_memory;	   /* remote: queues of urn_server_config */
};

enum { RIG_LATE = 64 };

/* A frame that the bad wire delays. */
struct rig_late {
	struct rte_mbuf *m;
	uint32_t turns;            /* turns until the frame goes on */
	uint16_t to, queue;
};

struct rig_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;         /* completions of sends and receives */
	struct ibv_mr *mr;         /* all of buf, every right */
	uint8_t *buf;              /* RIG_BUF bytes */
	struct ibv_qp *qp;         /* connected to the other end's QP */
	uint32_t psn;
};

struct rig {
	struct urn_dp *dp;
	struct urn_port *port[RIG_NODES];
	unsigned int engines;
	struct urn_port *wire[RIG_NODES]; /* the wires' far ends when the wire is bad; else NULL */
	struct rig_late held[RIG_LATE];
	uint64_t wire_rng;
	_Atomic uint16_t way[RIG_NODES]; /* with a bad wire: traffic class << 8 | hop limit of the
					  * last UDP frame to a node */
	struct rig_config cfg;
	struct rig_end end[2];
	bool ipv6;
	/* remote: the dataplane's server */
	struct urn_server *server;
	char path[108];            /* path of its socket */
	pthread_t thread;
	_Atomic bool stop;
	pid_t pid; /* process of the thread that turns the engines; 0: none */
};

/* Properties of a test's QPs. */
struct rig_qp {
	enum ibv_qp_type type;     /* IBV_QPT_RC when 0 */
	enum ibv_mtu mtu;          /* IBV_MTU_1024 when 0 */
	int timeout;               /* -1: 0 (none); 0: 8 (1 ms) */
	int retry_cnt;             /* -1: 0; 0: 7 */
	int rnr_retry;             /* -1: 0; 0: 7 */
	int rd_atomic;             /* -1: 0; 0: 4 */
	int dest_rd_atomic;        /* like rd_atomic */
	unsigned int access;       /* 0: all */
	uint32_t depth;            /* 0: 64 */
	uint32_t sge;              /* 0: 4 */
	uint32_t inline_bytes;     /* 0: 64 */
	struct ibv_srq *srq;
	struct ibv_cq *send_cq, *recv_cq; /* NULL: the end's */
	struct ibv_pd *pd;         /* NULL: the end's */
	int sig_all;
	uint8_t traffic_class, hop_limit; /* the address vector's; hop_limit 0: 64 */
};

/* Make the whole rig, with one connected RC QP an end. Fails the test on error. */
void rig_open(struct rig *r, const struct rig_config *cfg, const struct rig_qp *qp);
void rig_close(struct rig *r);
/* Run each engine once. remote: let the thread run that does */
void rig_turn(struct rig *r);
/* Run each engine n times. remote: wait until that thread has done so */
void rig_turns(struct rig *r, unsigned int n);
/* Turn until a completion comes at end `e`; fails the test when none comes for a minute. */
struct ibv_wc rig_wait(struct rig *r, int e);
/* Like rig_wait(), with an expected status. */
struct ibv_wc rig_expect(struct rig *r, int e, enum ibv_wc_status status);
/* Fails the test when a completion comes at end `e` in some thousand turns. */
void rig_quiet(struct rig *r, int e);

struct ibv_qp *rig_make_qp(struct rig *r, int e, const struct rig_qp *qp);
void rig_connect(struct rig *r, int e, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
		 uint32_t peer_psn, const struct rig_qp *o);
/* Like rig_connect(), to any address. */
void rig_connect_to(struct rig *r, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
		    uint32_t peer_psn, const union ibv_gid *gid, const struct rig_qp *o);
void rig_gid(struct rig *r, int e, union ibv_gid *gid);
int rig_sgid_index(const struct rig *r);

/* Post with the keys of the end's region; fail the test on error. */
void rig_recv(struct rig *r, int e, size_t off, uint32_t len, uint64_t wr_id);
void rig_post(struct rig *r, int e, enum ibv_wr_opcode op, size_t off, uint32_t len, size_t remote,
	      uint64_t wr_id);
/* Post one or more receives or requests on any QP; fail the test on error. */
void rig_recv_on(struct ibv_qp *qp, void *p, uint32_t len, uint32_t lkey, uint64_t wr_id);
void rig_send_on(struct ibv_qp *qp, struct ibv_send_wr *wr);
/* Another context on the adapter of a node. */
struct ibv_context *rig_attach(struct rig *r, unsigned int node);
/* Wait for an asynchronous event of this type at end e, and acknowledge it. */
void rig_event(struct rig *r, int e, enum ibv_event_type type);
/* Fails the test when an asynchronous event waits at end e. */
void rig_no_event(struct rig *r, int e);
/* State of a QP, as the dataplane reports it. */
enum ibv_qp_state rig_state(struct ibv_qp *qp);
void rig_to(struct ibv_qp *qp, enum ibv_qp_state state);
uint64_t rig_rand(uint64_t *state);
uint64_t rig_counter(struct rig *r, int node, enum urn_counter id);
/* Connection ids of a node, those included that have no owner any more. */
uint32_t rig_cm_ids(struct rig *r, int node);
void rig_fill(uint8_t *p, size_t n, uint32_t seed);

#endif
