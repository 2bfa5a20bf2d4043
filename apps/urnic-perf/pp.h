/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf pingpong: messages to and fro with another RDMA stack, as its
 * ibv_rc_pingpong does it. One node, one port, one queue pair, one thread.
 *
 *   pp_options   the command line
 *   pp_oob       TCP: the two sides tell each other their queue pair
 *   pp_node      EAL, port, dataplane, verbs objects
 *   pp_data      what is sent, and what must come back
 *   pp_run       the exchange
 *   pp_report    what is printed
 */
#ifndef URN_PERF_PP_H
#define URN_PERF_PP_H

#include "common/endpoint.h"
#include "common/hist.h"
#include "control/dataplane.h"
#include "pmd_glue/capture.h"

#include <stdbool.h>
#include <stdint.h>

/* Longest message, bytes. */
#define PP_MAX_SIZE (1u << 30)
#define PP_MAX_HOST 256u
/* What ibv_rc_pingpong listens on. */
#define PP_PORT "18515"

/* ---- pp_options.c */

enum pp_parse { PP_RUN, PP_EXIT_OK, PP_EXIT_USAGE };

struct pp_opts {
	bool listen;            /* wait for the peer, rather than go to it */
	char host[PP_MAX_HOST]; /* of the peer, or to listen on; empty: all addresses */
	char service[8];        /* TCP port, decimal */
	const char *device;     /* of the port (doc/ports.md); owner: argv */
	bool have_ip[2];        /* was an IPv4, an IPv6 address given? */
	uint8_t ipv4[4], ipv6[16];
	uint8_t mac[6];         /* all zero: the port's own */
	uint8_t gid;            /* index of the GID to use: 0 link-local, 1 IPv4, 2 IPv6 */
	uint32_t size;          /* bytes a message */
	uint32_t iters;         /* messages each way */
	uint32_t mtu;           /* path MTU, bytes */
	uint32_t rx_depth;      /* receives posted */
	uint8_t timeout;        /* of acknowledgements: 4.096 us * 2^timeout; 0: none */
	enum urn_idle idle;
	uint64_t wait_ns;       /* for the peer, and without progress */
	uint64_t linger_ns;     /* how long nothing may have come before we leave */
	bool no_check;
	bool json;
	const char *capture;    /* pcapng file, or NULL; owner: argv */
};

/* What --help says of pingpong. */
extern const char pp_help[];

/*
 * Read the command line: argv[0] is the program, options follow. Prints help
 * and version itself; a bad option gives a sentence in *err and PP_EXIT_USAGE.
 */
enum pp_parse pp_options_parse(int argc, char **argv, struct pp_opts *o, struct urn_err *err);

/* ---- pp_oob.c */

/*
 * The 52 bytes that ibv_rc_pingpong exchanges: "LLLL:QQQQQQ:PPPPPP:" and 32
 * digits of GID, all hexadecimal, and a NUL.
 */
#define PP_MSG 52u

/* addr: qpn, psn, gid */
void pp_msg_make(char msg[PP_MSG], const struct urn_ep_addr *addr);
/* returns: 0, or -1 with *err when it is no such message; addr->mtu_code becomes 0 */
int pp_msg_parse(const char msg[PP_MSG], struct urn_ep_addr *addr, struct urn_err *err);

/* While TCP waits, the NIC is to go on: how, and how long. */
struct pp_wait {
	void (*turn)(void *arg); /* NULL: nothing to do meanwhile */
	void *arg;
	uint64_t limit_ns;       /* of each call */
};

/* CLOCK_MONOTONIC */
uint64_t pp_now_ns(void);

/* Where a TCP socket waits for the peer. returns: descriptor, or -1 with *err */
int pp_oob_listen(const char *host, const char *service, struct urn_err *err);
/* returns: descriptor of the connection, or -1 with *err. fd stays open */
int pp_oob_accept(int fd, const struct pp_wait *w, struct urn_err *err);
/*
 * Connect; a host that refuses may not be ready yet and is asked again until
 * the time is over. returns: descriptor, or -1 with *err
 */
int pp_oob_connect(const char *host, const char *service, const struct pp_wait *w,
		   struct urn_err *err);
/* Read n bytes, or write them. what: for *err. returns: 0, or -1 with *err */
int pp_oob_read(int fd, void *buf, size_t n, const char *what, const struct pp_wait *w,
		struct urn_err *err);
int pp_oob_write(int fd, const void *buf, size_t n, const char *what, const struct pp_wait *w,
		 struct urn_err *err);

/* ---- pp_data.c */

/*
 * Who makes the messages up? ibv_rc_pingpong has one buffer: as a server it
 * sends back what came, and as a client it begins with a fill of its own and
 * then sends back what came, too. So it is always us who make them up, and what
 * returns must be what was sent - unless the client does not begin with that
 * fill, for then it is the one that looks, and we send back.
 */
enum pp_role {
	PP_MAKES,  /* makes messages up, compares what returns */
	PP_ECHOES, /* sends back what came */
};

#define PP_FILL 0x7bu /* what ibv_rc_pingpong fills its buffer with */
#define PP_FILL_PAGE 4096u /* -c of it puts a 0 at the begin of each of these */

/* Message number n (from 0): no two that follow each other have a byte in common. */
void pp_data_make(uint8_t *buf, uint32_t size, uint32_t n);
/* Is a client's first message the fill of ibv_rc_pingpong? Never true of what we make up. */
bool pp_data_is_fill(const uint8_t *buf, uint32_t size);
/*
 * Compare a message with what it must be. n: number for *err.
 * returns: 0, or -1 with *err, which names the first byte
 */
int pp_data_compare(const uint8_t *got, const uint8_t *want, uint32_t size, uint32_t n,
		    struct urn_err *err);

/* ---- pp_node.c */

struct pp_node {
	const struct pp_opts *o;
	bool eal_up;
	struct urn_port *port;
	struct urn_capture *capture; /* or NULL */
	struct urn_dp *dp;
	struct urn_engine *engine;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *send_mr, *recv_mr;
	uint8_t *map;           /* both buffers with guards; owner: this */
	size_t map_len;
	uint8_t *send, *recv;   /* size bytes each; all receives go to the same place */
	unsigned int empty;     /* turns in a row with nothing to do */
	struct urn_ep_addr local;
};

/* Bring it all up to a queue pair in INIT. returns: 0, or -1 with *err (close all the same) */
int pp_node_open(struct pp_node *n, const struct pp_opts *o, struct urn_err *err);
/* To RTR and RTS. returns: 0, or -1 with *err */
int pp_node_connect(struct pp_node *n, const struct urn_ep_addr *peer, struct urn_err *err);
/* A turn of the engine, and the idle policy. Fits struct pp_wait. */
void pp_node_turn(void *node);
/* Were bytes before or behind the receive buffer written? */
bool pp_node_guards_ok(const struct pp_node *n);
void pp_node_counters(const struct pp_node *n, struct urn_counters *out);
/*
 * Take it down, at whatever stage. returns: 0, or -1 with *err when the capture
 * is not whole
 */
int pp_node_close(struct pp_node *n, uint64_t *capture_lost, struct urn_err *err);

/* ---- pp_run.c */

struct pp_result {
	struct urn_ep_addr local, peer;
	enum pp_role role;
	bool met;                    /* the two were connected */
	bool last_unacknowledged;    /* the peer went without acknowledging our last message */
	uint32_t sent, received;     /* messages */
	uint64_t seconds_ns;         /* from the first message to the last */
	uint64_t checked;            /* bytes compared */
	uint64_t capture_lost;
	struct urn_counters counters;
	struct urn_hist hist;        /* round trips, ns */
};

/* The whole of it. returns: 0, or -1 with *err; *res is good as far as it went */
int pp_run(const struct pp_opts *o, struct pp_result *res, struct urn_err *err);

/* ---- pp_report.c */

void pp_report(const struct pp_opts *o, const struct pp_result *res);

/* ---- pp_main.c: `urnic-perf pingpong`, argv[0] the program, argv[1] the word. returns: exit code */
int pp_main(int argc, char **argv);

#endif
