/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pieces of one measurement.
 *
 *   rig      the programs' rig (common/rig.h) with two joined ports; lives through several runs
 *   layout   number and size of slots in each side's memory
 *   side     node A (requester) or node B: memory, verbs objects, its thread's step
 *   run      shared by the two threads: stop, failure, final message count
 *   meter    decides when measuring begins and ends; belongs to the thread that counts
 *
 * Each thread loops { its sides' step; its sides' engine } and owns everything
 * of its sides. The two threads share only struct run.
 */
#ifndef URN_PERF_PERF_H
#define URN_PERF_PERF_H

#include "abi/msg_codes.h"
#include "common/endpoint.h"
#include "common/failover.h"
#include "meter.h"
#include "options.h"
#include "pattern.h"
#include "stage.h"

#include <stdatomic.h>

#include <urnic/align.h>

#define PERF_BATCH 32u             /* completions polled, receives posted, frames moved at once */
#define PERF_STALL_SECONDS 10u     /* give up after so long without progress, threads running */
#define PERF_STARVED_SECONDS 60u   /* ... where the other side's thread is hardly run */
#define PERF_SLOT_ALIGN 64u
#define PERF_LINE_MAX 256u    /* bytes of the longest cache line that writes go on */
#define PERF_GRH 40u	      /* bytes in front of a datagram that was received */
#define PERF_QKEY 0x75726e63u /* Q_Key of datagrams */

/* ---- rig */

struct rig {
	struct urn_port *port[2]; /* ports of A and B; owner: base; NULL: attached, or not open */
	struct perf_wire wire;	  /* the switch between the ports, if there is one */
	uint64_t tsc_hz;	  /* cycles of the TSC a second */
	struct urn_failover *failover; /* the loss of an adapter, or NULL; owner: main.c */
	struct urn_rig base;	  /* EAL, ports, switch and capture; the dataplane of one run */
	struct urn_config cfg;	  /* configuration of base; a run may change adapters and engines */
	struct urn_config_port cfg_port[2 * PERF_NODES_MAX];
	struct urn_config_adapter cfg_adapter[PERF_NODES_MAX]; /* nodes; B is the last one */
	struct urn_config_switch cfg_sw;	  /* valid with a switch, and the next one, too */
	struct urn_config_plug cfg_plug[PERF_NODES_MAX];
};

/* A rig for a dataplane that we attach to: only the clock is ours. */
void rig_attach(struct rig *rig);
/*
 * Bring up EAL, ports and capture; *rig must not move from here on. *o: its path MTU is lowered to
 * the ports' (perf_options_mtu()). returns: 0, or -1 with *err (call rig_close all the same)
 */
int rig_open(struct rig *rig, struct perf_opts *o, struct urn_err *err);
/* Free the packets that are still between the nodes; no thread may poll the nodes' ports meanwhile. */
void rig_drain(struct rig *rig);
/* Take everything down. returns: 0, or -1 with *err when the capture is not whole */
int rig_close(struct rig *rig, uint64_t *capture_lost, struct urn_err *err);

/* ---- layout and memory */

struct layout {
	uint64_t size;       /* bytes of a message */
	uint32_t grh;	     /* bytes in front of each received one; 0: connections */
	uint64_t stride;     /* bytes from slot to slot, a multiple of PERF_SLOT_ALIGN */
	uint32_t offset;     /* bytes from the start of a slot of the target to the message */
	uint32_t qps;
	uint32_t src_slots;  /* slots of each QP, a power of two, at least the depth */
	uint32_t dst_slots;  /* slots of each QP; another number than src_slots (pattern.h) */
	uint32_t rx_slots;   /* receives of each QP; the rest of dst_slots is room for WRITEs */
	uint32_t srq_slots;  /* receives of the shared queue, or 0 */
	bool tells;	     /* a message is a WRITE, and an empty SEND that tells of it */
	uint32_t rx_batch;   /* receives posted again together */
};

void layout_make(struct layout *l, const struct perf_opts *o);
uint64_t layout_src_bytes(const struct layout *l);
uint64_t layout_dst_bytes(const struct layout *l);

/* One side's buffers: sources and targets of messages. */
struct buffers {
	uint8_t *src, *dst;            /* NULL where the side needs none */
	uint64_t src_bytes, dst_bytes;
	bool shared;                   /* from urn_alloc(), for a dataplane in another process */
};

/*
 * Allocate and, for the source, fill with bodies and stamps (seq = slot).
 * Asks for transparent huge pages, which need no configuration.
 * returns: 0, or -1 with *err
 */
int buffers_make(struct buffers *b, const struct layout *l, const struct pattern *p, bool src,
		 bool dst, bool shared, struct urn_err *err);
void buffers_free(struct buffers *b);

static inline uint64_t
layout_src_off(const struct layout *l, uint32_t qp, uint32_t slot)
{
	return ((uint64_t)qp * l->src_slots + slot) * l->stride;
}

/* With a shared receive queue all slots belong to "QP 0". */
static inline uint64_t
layout_dst_off(const struct layout *l, uint32_t qp, uint32_t slot)
{
	return ((uint64_t)qp * l->dst_slots + slot) * l->stride + l->offset;
}

/* ---- the two threads */

struct run {
	_Atomic bool stop;             /* both threads leave */
	_Atomic unsigned int done;     /* number of sides that have finished */
	_Atomic bool failed;           /* err is set or being set; the first failure wins */
	_Atomic uint64_t final;        /* messages the requester sent in all; UINT64_MAX: still sending */
	bool interrupted;              /* by a signal; written by the measuring thread */
	struct urn_err err;            /* written by the thread that set `failed` */
	struct ibv_wc wc;	       /* the completion that failed; ... */
	struct ibv_context *wc_ctx;    /* ... its context; NULL: no completion did. Both as err */
	struct urn_stages stages[2];   /* stages of the thread whose first side is A, B; valid after its end */
} __attribute__((aligned(64)));

/* End the run with a message. returns: true for the first failure, whose message counts */
bool run_fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* After the threads' end: print why the completion failed, if it was one that ended the run. */
void run_explain(const struct run *r);

struct side;
/* One turn of a side. now: TSC. returns: nonzero when there was something to do */
typedef unsigned int (*side_step)(struct side *s, uint64_t now);

/* A QP of a side; one cache line. */
struct perf_qp {
	struct ibv_qp *qp;
	uint64_t seq;          /* requester: messages posted; responder: messages received */
	uint64_t done;         /* requester: messages completed */
	uint32_t dst;          /* target slot of the next message to be posted */
	uint32_t dst_done;     /* target slot of the next message to complete */
	uint32_t rx_next;      /* receive slot to be posted next */
	uint32_t rx_owed;      /* receives taken and not yet posted again */
	uint64_t last;         /* atomics: value returned last, plus 1; ping-pong: messages received */
	uint32_t peer_qpn;     /* datagrams: QPN of the destination */
	uint32_t rsvd;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct perf_qp) == 64, "a line each");

/* Requests and receives for verbs: linked once, filled in for every post. */
struct wr_batch {
	struct ibv_send_wr send[PERF_BATCH];
	struct ibv_recv_wr recv[PERF_BATCH];
	struct ibv_sge sge[PERF_BATCH];
	struct ibv_sge recv_sge[PERF_BATCH];
};

struct side {
	/* Set before the side is opened. */
	side_step step;
	struct run *run;
	struct side *peer;
	struct urn_engine *engine;     /* NULL: limit */
	struct perf_wire *wire;        /* switch that the side's thread polls, or NULL */
	const struct perf_opts *o;
	const struct layout *l;
	const struct pattern *p;
	struct meter *meter;           /* the run's, on the side that counts; else NULL */
	uint64_t scratch[8];           /* private to the step; zero at first */
	unsigned int index;            /* 0: A, 1: B */
	bool done;                     /* counted in run->done */

	/* Verbs. */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;           /* or NULL */
	struct ibv_mr *mr_src, *mr_dst;
	struct perf_qp *qp;            /* l->qps of them */
	struct ibv_qp **idle;          /* o->idle_qps of them, or NULL */
	uint8_t gid_index;
	union ibv_gid gid;             /* GID with that index */
	struct ibv_ah *ah;	       /* datagrams: the other side's address; else NULL */
	struct wr_batch *wr;
	struct qpn_map *map;           /* QPN to number of the QP; with a shared receive queue */
	struct urn_port *port;
	struct buffers mem;
	uint64_t peer_va_src, peer_va_dst; /* the peer's buffers, as its keys address them */
	uint32_t peer_rkey_src, peer_rkey_dst;

	uint64_t received;             /* messages received, all QPs */
	struct meter_ran ran;          /* running time of a side without a meter; the side with one reads it */
	uint64_t peer_ran;             /* ran.cycles of the peer when peer_noted was set; side with the meter */
	bool peer_noted;               /* half of the stall time is over; peer_ran was noted then */
	uint32_t owed[PERF_BATCH];     /* shared receive queue: slots to be posted again */
	uint32_t owed_n;
	uint64_t quiet_since; /* datagrams: time since which none came, monotonic ns; 0: some did */
	uint32_t quiet_turns; /* datagrams: turns without one */

	/* Results. */
	uint32_t fill;                 /* QPs that had their first requests posted */
	uint64_t checked;              /* bytes compared */
	uint64_t sum;                  /* sum of returned values, mixed (atomics) */
} __attribute__((aligned(64)));        /* each side belongs to one thread */

/*
 * Attach node A (0) or B (1): to a dataplane of our own, or with dp NULL as options
 * say. returns: the context, or NULL with *err
 */
struct ibv_context *perf_attach(const struct perf_opts *o, struct urn_dp *dp, unsigned int index,
				struct urn_err *err);
/* Attach to a dataplane in another process. attach: its socket, or "auto"; name: a node, or NULL:
 * the default one. returns: as perf_attach() */
struct ibv_context *perf_attach_other(const char *attach, const char *name, struct urn_err *err);
/*
 * Lower the path MTU to that of the adapters: of this side, or of both when both
 * are here. Attaches the adapters; perf_attach() hands these contexts out, once each.
 * returns: 0, or -1 with *err (contexts stay attached until the process ends)
 */
int perf_settle_mtu(struct perf_opts *o, struct urn_err *err);
/* Set *src when a side needs a source buffer, and *dst when it needs a target buffer. */
void side_needs(enum perf_op op, unsigned int index, bool *src, bool *dst);
/*
 * Open a side's device and address; the fields up to `Verbs` are filled in before.
 * The first half of bringing a side up to queue pairs in INIT with receives posted.
 * returns: 0, or -1 with *err (close the side all the same)
 */
int side_open_device(struct side *s, struct urn_dp *dp, struct urn_err *err);
/* The second half, once the device is open and size, depth and so on are known. */
int side_open_more(struct side *s, struct urn_err *err);
void side_close(struct side *s);
/* Connect queue pair n to the other side's queue pair of the same number. returns: 0, or -1 with *err */
int side_connect(struct side *s, uint32_t n, const struct urn_ep_addr *own,
		 const struct urn_ep_addr *peer, const struct urn_ep_opts *o, struct urn_err *err);
/* The step of the side with this index in an operation. */
side_step side_step_of(enum perf_op op, unsigned int index);
/* First PSN of a QP, by the side that sends with it: spread, so that some PSNs wrap early. */
uint32_t side_psn(unsigned int side, uint32_t number);
uint8_t side_mtu_code(uint32_t mtu);

/*
 * Run both sides' steps in threads on o->core[], to the end. rte_thread_register
 * and urn_engine_bind are done here. returns: 0, or -1 with run->err
 */
int workers_run(struct side *a, struct side *b, struct run *run);
/*
 * Run one side's steps in a thread, on its core if options name it, while the calling
 * thread repeats meanwhile(arg). returns: as workers_run()
 */
int worker_run(struct side *s, struct run *run, void (*meanwhile)(void *arg), void *arg);
/* Mark the side as finished; the run stops when both are. */
void side_done(struct side *s);
/*
 * Watch the side that counts for a stall or a signal. Call once a step.
 * Ends measuring on a signal; fails the run when nothing moved for too long. Time in
 * which the two sides' threads were not run does not count (meter.h).
 */
void side_watch(struct side *s, uint64_t now);

/* ---- verbs work of the sides */

/*
 * wr_id of a send: number of the QP (17 bits), number of messages that complete with
 * the send (7), TSC at posting (40: some minutes).
 */
#define WR_TSC_MASK ((1ull << 40) - 1)

static inline uint64_t
wr_id_make(uint32_t qp, uint32_t count, uint64_t tsc)
{
	return (uint64_t)qp << 47 | (uint64_t)count << 40 | (tsc & WR_TSC_MASK);
}

static inline uint32_t
wr_id_qp(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> 47);
}

static inline uint32_t
wr_id_count(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> 40) & 0x7f;
}

static inline uint64_t
wr_id_cycles(uint64_t wr_id, uint64_t now)
{
	return (now - wr_id) & WR_TSC_MASK;
}

/* Prepare s->wr for the side's operation. */
void post_prepare(struct side *s);
/*
 * Post n messages (1..PERF_BATCH requests in all) on a QP, linked, each with its stamp.
 * signal: ask for a completion of the last; count: messages it stands for.
 * returns: 0, or -1 and the run failed
 */
int post_messages(struct side *s, uint32_t qp, uint32_t n, bool signal, uint32_t count,
		  uint64_t now);
/* Fail the run with a message about a completion with an error. */
void fail_completion(struct side *s, const struct ibv_wc *wc);

/* A message that arrived with a receive completion. */
struct arrival {
	uint32_t qp;          /* number of the QP on this side */
	const uint8_t *data;
	uint32_t slot;        /* receive slot */
};

/* Post all receives, before the QPs connect. returns: 0, or -1 with *err */
int receive_start(struct side *s, struct urn_err *err);
/* Look up a receive completion. returns: false, and the run failed, when the completion is wrong */
bool receive_take(struct side *s, const struct ibv_wc *wc, struct arrival *a);
/* Give the receive back, now or with others. returns: 0, or -1 and the run failed */
int receive_again(struct side *s, const struct arrival *a);
/* Map of QPNs, for a shared receive queue. NULL: no memory */
struct qpn_map *qpn_map_make(const struct perf_qp *qp, uint32_t n);
void qpn_map_free(struct qpn_map *map);

/* Steps. */
unsigned int requester_step(struct side *s, uint64_t now); /* streams, READ and atomic latency */
unsigned int receiver_step(struct side *s, uint64_t now);  /* send_bw: B */
unsigned int bystander_step(struct side *s, uint64_t now); /* B when only B's adapter works */
unsigned int ping_step(struct side *s, uint64_t now);      /* ping-pong: A */
unsigned int pong_step(struct side *s, uint64_t now);      /* ping-pong: B */
/*
 * Check the oldest message of q that has not been counted as done: a READ, an atomic, or a WRITE
 * now and then. is_last: the last of those that complete together. returns: false, and the run
 * failed
 */
bool check_done(struct side *s, struct perf_qp *q, uint32_t qp, bool is_last);
/* True when, after the run, the atomics' results and the counter add up. */
bool atomics_ok(struct side *a, uint64_t counter);

/* Datagrams: bring a QP to INIT; to RTS, with the destination. returns: 0, or -1 with *err (datagram.c) */
int datagram_init(struct ibv_qp *qp, struct urn_err *err);
int datagram_connect(struct side *s, uint32_t n, const struct urn_ep_addr *own,
		     const struct urn_ep_addr *peer, const struct urn_ep_opts *o,
		     struct urn_err *err);
/*
 * True when no more datagrams will come; the receiver calls it once a step. work: datagrams of this
 * step. Fails the run when none comes any more and the sender does not say that it has finished
 */
bool datagram_over(struct side *s, unsigned int work);

/* ---- checking */

/* The message that a slot must hold. */
struct message_id {
	uint32_t qp;    /* number of its QP on this side */
	uint32_t slot;  /* source slot, which decides the body */
	uint64_t seq;   /* the message's place among the QP's messages, from 1 */
	uint64_t stamp; /* seq, or the source slot where the source is not rewritten (READ) */
};

/* Bytes of the body that are compared in each message: the window, or all. */
static inline uint64_t
check_most(const struct side *s)
{
	return s->o->check == PERF_CHECK_FULL ? UINT64_MAX : PATTERN_WINDOW;
}

/*
 * Compare a message with the one that was sent: its stamps, and at most `most` bytes
 * of its body. Adds to s->checked. returns: false, and the run failed, when it differs
 */
bool check_message(struct side *s, const uint8_t *data, const struct message_id *id, uint64_t most);
/*
 * Compare all target slots, whole, after the run, with the last message that went
 * to each. sender: the requester's QPs. returns: as check_message()
 */
bool check_all(struct side *s, const uint8_t *dst, const struct perf_qp *sender);

/* ---- results */

struct result {
	enum perf_op op;
	uint64_t messages, bytes;      /* measured */
	double seconds, gbps, rate;
	uint64_t checked;              /* bytes compared */
	uint64_t moved;                /* bytes moved, warm-up included */
	uint64_t retransmits;
	uint64_t sent, lost; /* datagrams, warm-up included */
	uint64_t setup_ns;   /* time in which the side that asks made its queue pairs and connected
				them; 0: not measured */
	uint64_t answers[URN_MSG_CODES]; /* messages: answers by code, warm-up included */
	uint64_t handled; /* active messages: requests that the handler ran for, warm-up included */
	uint64_t maybe; /* messages: answers that leave open whether the message is there */
	bool have_counters;
	struct urn_counters counters;  /* counters of both adapters, over the whole run */
	uint64_t qp_bytes;             /* dataplane memory of one idle QP */
	struct urn_stores stores;      /* lines that B's dataplane stored to, with --count_stores */
	uint64_t stored;	       /* messages that made these stores */
	bool interrupted;
	const struct urn_failover *failover; /* the loss of an adapter, or NULL; owner: main.c */
	struct perf_wire_result wire;  /* the switch's counts of the whole run */
	uint64_t packets;              /* data packets of all messages, warm-up included */
	struct urn_stages stages[2];   /* stages of the threads of A and B; zero without --stages */
	struct urn_hist hist;
};

/* Fill in the meter's figures. */
void result_from_meter(struct result *res, const struct perf_opts *o, const struct meter *m);
/*
 * True when packets were sent again, and only too early: the peer had all of them already, and
 * nobody counted a lost frame (early.c). False where it is not known: datagrams, a dataplane that
 * is another process's
 */
bool result_only_early(const struct result *res);
/* Add a second measurement of the same operation to the first. */
void result_merge(struct result *dst, const struct result *src);

/* Measure an operation with the whole dataplane. returns: 0, or -1 with *err */
int verbs_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err);
/*
 * Measure the limit: as `limit` with --lat when o->lat, else the stream. o may
 * be another operation's; the frames then have that operation's headers.
 */
int limit_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err);

/* Measure messages without connections (msg.c). returns: 0, or -1 with *err */
int msg_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err);

/* Measure remote memory access or active messages (am.c). returns: 0, or -1 with *err */
int am_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err);

/*
 * The GID with an adapter's address of the wanted family, and its index.
 * returns: 0, or -1 with *err
 */
int perf_find_gid(struct ibv_context *ctx, bool ipv6, uint8_t *index, union ibv_gid *gid,
		  struct urn_err *err);
/*
 * The GID with which a side answers: the one that the peer asked (own), or, if the side has no such
 * GID, the first of the peer's family. returns: as perf_find_gid()
 */
int perf_answer_gid(struct ibv_context *ctx, const uint8_t own[16], const uint8_t peer[16],
		    uint8_t *index, union ibv_gid *gid, struct urn_err *err);
/* Addresses of the two nodes of a dataplane of our own. */
extern const uint8_t perf_node_ipv4[2][4], perf_node_ipv6[2][16];

/*
 * Run one side of a measurement between two processes (two.c). A listener prints its
 * results itself, and leaves *res alone. returns: 0, or -1 with *err
 */
int two_run(const struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err);

/* Measure writes on and off the lines of B (aligned.c); prints the table itself. returns: 0, or -1
 * with *err */
int aligned_run(struct rig *rig, const struct perf_opts *o, struct urn_err *err);

/* Measure connections per second; prints the result itself. returns: 0, or -1 with *err (conn.c) */
int conn_run(struct rig *rig, const struct perf_opts *o, struct urn_err *err);

/* Copy the same messages by memcpy() in one thread. returns: 0, or -1 with *err */
int memcpy_run(const struct rig *rig, const struct perf_opts *o, struct result *res,
	       struct urn_err *err);

/* Print all results. limit: NULL when the limit was not measured. */
void report(const struct perf_opts *o, const struct result *res, const struct result *limit,
	    uint64_t capture_lost);

#endif
