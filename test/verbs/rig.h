/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes in one thread, joined by rings, driven through the verbs API: what
 * the tests of the transport's behaviour stand on.
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

enum { RIG_NODES = 2, RIG_BUF = 1 << 20 };

struct rig_config {
	unsigned int engines;      /* 0: 2, one a node; 1: both nodes on one; 3, 4: node 0 on 0 and 2, ... */
	bool ipv6;                 /* talk over link-local IPv6 instead of IPv4 */
	uint32_t window;           /* packets in flight; 0: default */
	bool foreign;              /* all memory is reached as if it were another process's */
	uint64_t delay_seed;       /* memory answers late; 0: at once */
	uint32_t fail_per_million; /* memory operations that fail, with delay_seed */
	unsigned int fail_node;    /* of which node: 1: 0, 2: 1; 0: both */
	bool loopback;             /* both ends on node 0 */
	uint32_t work_in_flight;   /* 0: 4096 */
	uint32_t max_qp;           /* 0: 1024 */
	uint32_t queues;           /* of a port; 0: one for each of its engines */
	uint16_t mtu[RIG_NODES];   /* largest path MTU of a node's port; 0: 4096 */
	/* Bit i: node i has no link requests, nor connection management; offers no features (net/learn.h). */
	uint8_t no_link, no_features;
	/* What a bad wire between the nodes does to RoCEv2 frames, of a thousand each. */
	uint64_t wire_seed;        /* 0: the ports are joined back to back */
	uint32_t lose, twice, late;
	/*
	 * The ends attach over the dataplane's socket, and a thread of its own turns the
	 * engines. RIG_REMOTE in the environment says so for all rigs.
	 */
	bool remote;
	struct urn_limits per_client, per_uid; /* remote: of clients; 0: none */
	unsigned int clients_per_uid;
	const char *node;          /* remote: of programs that name none; NULL: none */
	unsigned int look_ms;      /* remote: as urn_server_config has it */
};

enum { RIG_LATE = 64 };

/* A frame that the bad wire holds back. */
struct rig_late {
	struct rte_mbuf *m;
	uint32_t turns;            /* until it goes on */
	uint16_t to, queue;
};

struct rig_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;         /* of sends and receives */
	struct ibv_mr *mr;         /* all of buf, every right */
	uint8_t *buf;              /* RIG_BUF bytes */
	struct ibv_qp *qp;         /* connected to the other end's */
	uint32_t psn;
};

struct rig {
	struct urn_dp *dp;
	struct urn_port *port[RIG_NODES];
	unsigned int engines;
	struct urn_port *wire[RIG_NODES]; /* other ends, with a bad wire; else NULL */
	struct rig_late held[RIG_LATE];
	uint64_t wire_rng;
	struct rig_config cfg;
	struct rig_end end[2];
	bool ipv6;
	/* remote */
	struct urn_server *server;
	char path[108];            /* of its socket */
	pthread_t thread;
	_Atomic bool stop;
};

/* How a test's QPs are made. */
struct rig_qp {
	enum ibv_qp_type type;     /* IBV_QPT_RC when 0 */
	enum ibv_mtu mtu;          /* IBV_MTU_1024 when 0 */
	int timeout;               /* -1: 0 (none); 0: 8 (1 ms) */
	int retry_cnt;             /* -1: 0; 0: 7 */
	int rnr_retry;             /* -1: 0; 0: 7 */
	int rd_atomic;             /* -1: 0; 0: 4 */
	int dest_rd_atomic;        /* the same */
	unsigned int access;       /* 0: all */
	uint32_t depth;            /* 0: 64 */
	uint32_t sge;              /* 0: 4 */
	uint32_t inline_bytes;     /* 0: 64 */
	struct ibv_srq *srq;
	struct ibv_cq *send_cq, *recv_cq; /* NULL: the end's */
	struct ibv_pd *pd;         /* NULL: the end's */
	int sig_all;
};

/* Make it all, with one RC QP an end, connected. Fails the test on error. */
void rig_open(struct rig *r, const struct rig_config *cfg, const struct rig_qp *qp);
void rig_close(struct rig *r);
/* One turn of every engine. */
void rig_turn(struct rig *r);
void rig_turns(struct rig *r, unsigned int n);
/* Turn until a completion comes at end `e`; fails the test after `seconds` of nothing. */
struct ibv_wc rig_wait(struct rig *r, int e);
/* Like it, with an expected status. */
struct ibv_wc rig_expect(struct rig *r, int e, enum ibv_wc_status status);
/* No completion comes at end `e` in some thousand turns. */
void rig_quiet(struct rig *r, int e);

struct ibv_qp *rig_make_qp(struct rig *r, int e, const struct rig_qp *qp);
void rig_connect(struct rig *r, int e, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
		 uint32_t peer_psn, const struct rig_qp *o);
/* Like it, to any address. */
void rig_connect_to(struct rig *r, struct ibv_qp *qp, uint32_t psn, uint32_t peer_qpn,
		    uint32_t peer_psn, const union ibv_gid *gid, const struct rig_qp *o);
void rig_gid(struct rig *r, int e, union ibv_gid *gid);
int rig_sgid_index(const struct rig *r);

/* Post with the region's keys; fail the test on error. */
void rig_recv(struct rig *r, int e, size_t off, uint32_t len, uint64_t wr_id);
void rig_post(struct rig *r, int e, enum ibv_wr_opcode op, size_t off, uint32_t len, size_t remote,
	      uint64_t wr_id);
/* Post one or more receives or requests on any QP; fail the test on error. */
void rig_recv_on(struct ibv_qp *qp, void *p, uint32_t len, uint32_t lkey, uint64_t wr_id);
void rig_send_on(struct ibv_qp *qp, struct ibv_send_wr *wr);
/* Another context on the adapter of a node. */
struct ibv_context *rig_attach(struct rig *r, unsigned int node);
/* An asynchronous event of this type has come at end e: wait for it and acknowledge it. */
void rig_event(struct rig *r, int e, enum ibv_event_type type);
/* No asynchronous event is there at end e. */
void rig_no_event(struct rig *r, int e);
/* State of a QP, as the dataplane has it. */
enum ibv_qp_state rig_state(struct ibv_qp *qp);
void rig_to(struct ibv_qp *qp, enum ibv_qp_state state);
uint64_t rig_rand(uint64_t *state);
uint64_t rig_counter(struct rig *r, int node, enum urn_counter id);
/* Connection ids that a node has, those included that nobody owns any more. */
uint32_t rig_cm_ids(struct rig *r, int node);
void rig_fill(uint8_t *p, size_t n, uint32_t seed);

#endif
