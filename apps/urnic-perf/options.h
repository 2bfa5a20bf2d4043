/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the command line, checked, with defaults filled in. */
#ifndef URN_PERF_OPTIONS_H
#define URN_PERF_OPTIONS_H

#include "common/loss.h"
#include "common/option_table.h"
#include "control/dataplane.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Longest message that can be measured, bytes. */
#define PERF_MAX_SIZE (1ull << 30)
/* Most queue pairs; the adapters' own limit. */
#define PERF_MAX_QPS 65536u
#define PERF_MAX_DEPTH 16384u      /* requests in flight of a QP */
#define PERF_UD_MIN 8u		   /* bytes of a datagram: its stamp */
#define PERF_MAX_IN_FLIGHT 1048576u /* ... over all QPs of a side */
#define PERF_NODES_MAX 16u	    /* nodes of msg_incast: two ports each */
#define PERF_MSG_MIN 8u		    /* bytes of a message: its stamp */
#define PERF_AM_MAX (1u << 20)	    /* bytes of the payload of an active message, at most */
#define PERF_MAX_OFFSET 4095u	    /* bytes from a line to a target */
#define PERF_MSG_MAX (1u << 20)	    /* bytes of a message, at most */

enum perf_op {
	PERF_WRITE_BW,
	PERF_READ_BW,
	PERF_SEND_BW,
	PERF_WRITE_LAT,
	PERF_READ_LAT,
	PERF_SEND_LAT,
	PERF_ATOMIC_LAT,
	PERF_ATOMIC_BW,
	PERF_LIMIT,
	PERF_MEMCPY,
	PERF_CONNECT,
	PERF_MSG_RATE,
	PERF_MSG_LAT,
	PERF_MSG_INCAST,
	PERF_WRITE_SEND_BW,
	PERF_RMA_WRITE_BW,
	PERF_RMA_READ_BW,
	PERF_RMA_WRITE_LAT,
	PERF_RMA_READ_LAT,
	PERF_AM_LAT,
	PERF_AM_RATE,
	PERF_AM_PAYLOAD,
	PERF_ALIGNED_TABLE,
	PERF_OPS,
};

enum perf_link { PERF_RING, PERF_MEMIF, PERF_NULL, PERF_LINKS };

/* The sides that this process runs. */
enum perf_role {
	PERF_BOTH,    /* node A and node B */
	PERF_ASKS,    /* node A; --peer */
	PERF_LISTENS, /* node B; --listen */
};

enum perf_check {
	PERF_CHECK_NONE,
	PERF_CHECK_FAST, /* stamps, bodies up to 1 KiB a message; all bytes at the end */
	PERF_CHECK_FULL, /* every byte of every message where the receiver can */
};

struct perf_opts {
	enum perf_op op;
	enum perf_link link;
	enum perf_check check;
	enum urn_idle idle;     /* idle policy of the polling threads */
	uint64_t size;          /* bytes a message */
	uint64_t iters;         /* messages; 0: by time */
	uint64_t duration_ns;   /* measured time when iters is 0 */
	uint32_t qps;
	uint32_t conns;         /* connect: number of connections; qps counts them as well */
	uint32_t idle_qps;      /* QPs connected in addition, and never used */
	uint32_t depth;         /* requests in flight a QP */
	uint32_t chain;         /* requests posted at once; the last one is signalled */
	uint32_t mtu;           /* path MTU, bytes */
	bool mtu_given, size_given; /* --mtu, --size: the ports' MTU does not change them */
	uint32_t offset;   /* write_bw: bytes from the start of a line of 256 to each target */
	bool align;	   /* write_bw: writes go on the lines of B */
	uint32_t line;	   /* ... of this many bytes: 64, 128 or 256; 0: as B's dataplane tells */
	bool two;	   /* ... as two messages, also to a urnic */
	bool count_stores; /* count the lines that B's dataplane stores to; not of an attached one
			    */
	bool offset_given; /* --offset */
	uint32_t inline_bytes;  /* messages up to this long are posted inline */
	uint8_t timeout;        /* ACK timeout: 4.096 us * 2^timeout; 0: none */
	uint32_t rd_atomic;     /* READs and atomics in flight a QP */
	uint32_t mbufs;         /* packets in each port's pool */
	uint32_t descs;         /* descriptors of each port's queues */
	int core[2];            /* cores of node A and node B; equal: one thread */
	uint32_t sets;		/* messages: register sets of a node that sends */
	uint32_t senders;	/* messages: nodes that send; more than 1 in msg_incast only */
	uint32_t entries;	/* messages: entries of the queue, a power of two */
	unsigned int way; /* remote memory: way of an operation, as in enum urn_am_way; a word of
			     perf_way_name() */
	uint8_t every;	  /* remote memory: packets of a write that one reply answers: 0: one,
			     1..254, 255: all of the transfer */
	bool prepare;	  /* active messages: payloads are written in place; fill is set, too */
	bool fill;	  /* am_..., write_send_bw: the sender writes each message whole */
	uint32_t retries; /* messages: further tries after queue-full or busy; 65535: without end */
	bool use_srq;           /* receives from one shared queue */
	bool ud;		/* unreliable datagrams instead of connections */
	bool ipv6;
	bool no_icrc;
	bool foreign;         /* buffers are treated as foreign memory, as if another process's */
	bool go_back_n;         /* offer no selective acknowledgements */
	bool json;
	bool lat;               /* limit: ping-pong */
	bool no_sender_copy;    /* limit */
	bool with_limit;        /* measure the limit too, and compare */
	bool hist;              /* the whole distribution of latencies in JSON */
	bool stages;            /* cycles by stage; in a build with -Dstages=true */
	bool show_mem;          /* print the memory of an idle QP */
	struct perf_wire_opts wire; /* the wire between the nodes */
	const char *capture;    /* pcapng file, or NULL; owner: argv */
	const char *attach;     /* socket of a dataplane, "auto", or NULL: our own; owner: argv */
	const char *session;	/* adapters of a session, "auto", or NULL; then attach is set, too;
				   owner: argv */
	bool fails;		/* the primary adapter is to be lost */
	uint64_t fail_ns;	/* ... so long after measuring began */
	struct urn_loss_spec loss; /* ... in this way */
	const char *plot;	   /* picture of the rate over time, or NULL; owner: argv */
	const char *progress;	   /* table of the bytes over time, or NULL; owner: argv */
	char node[2][32];       /* attached: the nodes of A and B; empty: the default one */
	enum perf_role role;
	bool by_cm;             /* the two sides meet by connection management; else over TCP */
	bool pinned;            /* --lcores was given */
	char host[256];         /* PERF_ASKS: the peer; PERF_LISTENS: own address, "": all */
	char port[32];          /* TCP port, or port of the CM service */
};

/* Next step after the command line was read. */
enum perf_parse { PERF_RUN, PERF_EXIT_OK, PERF_EXIT_USAGE };

/*
 * Read the command line into *o. Prints help and version itself; a bad option
 * gives a message in *err and PERF_EXIT_USAGE.
 */
enum perf_parse perf_options_parse(int argc, char **argv, struct perf_opts *o, struct urn_err *err);
/*
 * Apply a port's largest path MTU, in bytes, to the options. Without --mtu the options
 * take mtu when it is less than theirs, and so do datagrams without --size.
 * returns: 0, or -1 with *err when an option asked for more than the port carries
 */
int perf_options_mtu(struct perf_opts *o, uint32_t mtu, const char *port, struct urn_err *err);

/* --lcores: one core or two that this process may use. returns: 0, or -1 with *err (cores.c) */
int perf_cores_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
/* Choose two of the cores that the process may use, or one twice. returns: 0, or -1 with *err (cores.c) */
int perf_cores_default(struct perf_opts *o, struct urn_err *err);

/* --sets, --senders, --entries, --retries (msg_opts.c). */
struct perf_msg_given {
	bool sets, senders, entries, retries;
	bool verbs; /* an option of queue pairs */
};
/* Fill in the defaults of measurements of messages. */
void perf_msg_defaults(struct perf_opts *o, const struct perf_msg_given *g);
/* Check that options fit measurements of messages, or are not of them. returns: 0, or -1 with *err
 */
int perf_msg_check(const struct perf_opts *o, const struct perf_msg_given *g, struct urn_err *err);

/* --rma, --reply-every, --prepare, --fill (am_opts.c). */
struct perf_am_given {
	bool way, every, depth, prepare, fill;
	bool verbs; /* an option of queue pairs, but --depth */
};
/* --reply-every: a number, `packet` or `transfer`. to: struct perf_opts. returns: 0, or -1 with
 * *err
 */
int perf_every_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
/* Fill in the defaults of active messages and of remote memory access. */
void perf_am_defaults(struct perf_opts *o, const struct perf_am_given *g);
/* Check that options fit active messages and remote memory access, or are not of them. returns: 0,
 * or -1 with *err */
int perf_am_check(const struct perf_opts *o, const struct perf_am_given *g, struct urn_err *err);
/* Words for the ways of an operation, ended by NULL; the index is the way's number. */
extern const char *const perf_way_names[];

/* Options about the loss of an adapter that were given (fail_opts.c). */
struct perf_fail_given {
	bool attach, node, srq, iters;
};
/* --session: adapters, or auto; --fail-at: T[:HOW]. to: struct perf_opts. returns: 0, or -1 with
 * *err
 */
int perf_session_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
int perf_fail_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
/* Check that options about sessions fit each other and the measurement. returns: 0, or -1 with *err
 */
int perf_fail_check(const struct perf_opts *o, const struct perf_fail_given *g,
		    struct urn_err *err);

/* Options about sides that were given (role_opts.c). */
struct perf_role_given {
	bool nodes, node, connect;
	bool measured;          /* an option that selects the measurement */
};
/*
 * --listen, --peer (row->id: enum perf_role): [HOST:]PORT, HOST[:PORT], an IPv6 address in
 * brackets; --node. to: struct perf_opts. returns: 0, or -1 with *err
 */
int perf_where_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
int perf_node_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
/* Check that the options about sides fit each other and the operation. returns: 0, or -1 with *err */
int perf_role_check(const struct perf_opts *o, const struct perf_role_given *g, struct urn_err *err);

/* Name of an operation on the command line. */
const char *perf_op_name(enum perf_op op);
const char *perf_link_name(enum perf_link link);
/* True when the operation is a ping-pong or one request at a time, rather than a stream. */
static inline bool
perf_op_is_lat(enum perf_op op)
{
	return op == PERF_WRITE_LAT || op == PERF_READ_LAT || op == PERF_SEND_LAT ||
	       op == PERF_ATOMIC_LAT || op == PERF_MSG_LAT || op == PERF_RMA_WRITE_LAT ||
	       op == PERF_RMA_READ_LAT || op == PERF_AM_LAT;
}

static inline bool
perf_op_is_atomic(enum perf_op op)
{
	return op == PERF_ATOMIC_LAT || op == PERF_ATOMIC_BW;
}

static inline bool
perf_op_is_send(enum perf_op op)
{
	return op == PERF_SEND_LAT || op == PERF_SEND_BW;
}

static inline bool
perf_op_is_read(enum perf_op op)
{
	return op == PERF_READ_LAT || op == PERF_READ_BW || op == PERF_RMA_READ_LAT ||
	       op == PERF_RMA_READ_BW;
}

/* True when B answers each message with one of its own. */
static inline bool
perf_op_is_pingpong(enum perf_op op)
{
	return op == PERF_WRITE_LAT || op == PERF_SEND_LAT || op == PERF_MSG_LAT ||
	       op == PERF_AM_LAT;
}

/* True when the operation sends messages of register sets, not requests of queue pairs. */
static inline bool
perf_op_is_msg(enum perf_op op)
{
	return op == PERF_MSG_RATE || op == PERF_MSG_LAT || op == PERF_MSG_INCAST;
}

/* True when receive completions of a queue pair tell B of messages. */
static inline bool
perf_op_receives(enum perf_op op)
{
	return perf_op_is_send(op) || op == PERF_WRITE_SEND_BW;
}

/* True when A writes to B's memory, and only A knows of it. */
static inline bool
perf_op_is_put(enum perf_op op)
{
	return op == PERF_WRITE_BW || op == PERF_RMA_WRITE_BW || op == PERF_RMA_WRITE_LAT;
}

/* True when the operation accesses remote memory by endpoints, not by queue pairs. */
static inline bool
perf_op_is_rma(enum perf_op op)
{
	return op == PERF_RMA_WRITE_BW || op == PERF_RMA_READ_BW || op == PERF_RMA_WRITE_LAT ||
	       op == PERF_RMA_READ_LAT;
}

/* True when the operation sends active messages. */
static inline bool
perf_op_is_am(enum perf_op op)
{
	return op == PERF_AM_LAT || op == PERF_AM_RATE || op == PERF_AM_PAYLOAD;
}

/* True when the operation has no queue pairs: all goes by flows. */
static inline bool
perf_op_is_flow(enum perf_op op)
{
	return perf_op_is_msg(op) || perf_op_is_rma(op) || perf_op_is_am(op);
}

#endif
