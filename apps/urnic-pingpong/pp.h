/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-pingpong: messages back and forth with another RDMA stack, compatible
 * with its ibv_rc_pingpong. One node, one port, one queue pair, one thread.
 *
 *   options   the command line
 *   oob       TCP: the two sides tell each other their queue pair
 *   node      EAL, port, dataplane, verbs objects
 *   data      contents of messages, and their check
 *   run       the exchange
 *   report    the printed results
 */
#ifndef URNIC_PINGPONG_PP_H
#define URNIC_PINGPONG_PP_H

#include "common/endpoint.h"
#include "common/hist.h"
#include "common/node.h"
#include "common/tcp.h"

#include <urnic/verbs.h>

#include <stdbool.h>
#include <stdint.h>

/* Longest message, bytes. */
#define PP_MAX_SIZE (1u << 30)
#define PP_MAX_HOST 256u
/* TCP port on which ibv_rc_pingpong listens. */
#define PP_PORT "18515"

/* ---- options.c */

enum pp_parse { PP_RUN, PP_EXIT_OK, PP_EXIT_USAGE };

struct pp_opts {
	bool where;		/* --peer or --listen was given */
	bool listen;            /* wait for the peer, rather than connect to it */
	char host[PP_MAX_HOST]; /* address of the peer, or to listen on; empty: all addresses */
	char service[8];        /* TCP port, decimal */
	const char *device;     /* device of the port (doc/reference/ports.md); owner: argv */
	bool have_ip[2];        /* an IPv4, an IPv6 address was given */
	uint8_t ipv4[4], ipv6[16];
	uint8_t mac[6];         /* all zero: the port's own */
	uint8_t gid;            /* index of the GID to use: 0 link-local, 1 IPv4, 2 IPv6 */
	uint32_t size;          /* bytes a message */
	uint32_t iters;         /* messages each way */
	uint32_t mtu;           /* path MTU, bytes */
	uint32_t rx_depth;      /* receives posted */
	uint8_t timeout;        /* ACK timeout: 4.096 us * 2^timeout; 0: none */
	enum urn_idle idle;
	uint64_t wait_ns;       /* longest wait for the peer, and without progress */
	uint64_t linger_ns;     /* time without a packet after which we leave */
	bool no_check;
	bool json;
	const char *capture;    /* pcapng file, or NULL; owner: argv */
};

/*
 * Read the command line: argv[0] is the program, options follow. Prints help
 * and version itself; a bad option gives a message in *err and PP_EXIT_USAGE.
 */
enum pp_parse pp_options_parse(int argc, char **argv, struct pp_opts *o, struct urn_err *err);

/* ---- message.c */

/*
 * The 52 bytes that ibv_rc_pingpong exchanges: "LLLL:QQQQQQ:PPPPPP:" and 32
 * digits of GID, all hexadecimal, and a NUL.
 */
#define PP_MSG 52u

/* addr: qpn, psn, gid */
void pp_msg_make(char msg[PP_MSG], const struct urn_ep_addr *addr);
/* returns: 0, or -1 with *err when msg is no such message; addr->mtu_code becomes 0 */
int pp_msg_parse(const char msg[PP_MSG], struct urn_ep_addr *addr, struct urn_err *err);

/* ---- data.c */

/*
 * Roles in the exchange. ibv_rc_pingpong has one buffer: as a server it sends each
 * message back, and as a client it begins with a fill of its own and then sends
 * each message back, too. So we always make the messages up, and the peer must
 * return them unchanged - unless a client's first message is not that fill:
 * then the client compares, and we send back.
 */
enum pp_role {
	PP_MAKES,  /* makes messages up, compares those that return */
	PP_ECHOES, /* sends each message back */
};

#define PP_FILL 0x7bu /* byte with which ibv_rc_pingpong fills its buffer */
#define PP_FILL_PAGE 4096u /* ibv_rc_pingpong -c puts a 0 at the begin of each page */

/* Message number n (from 0): no two that follow each other have a byte in common. */
void pp_data_make(uint8_t *buf, uint32_t size, uint32_t n);
/* True when a client's first message is the fill of ibv_rc_pingpong; never for a message of pp_data_make(). */
bool pp_data_is_fill(const uint8_t *buf, uint32_t size);
/*
 * Compare a received message with the expected one. n: its number, for *err.
 * returns: 0, or -1 with *err, which names the first byte
 */
int pp_data_compare(const uint8_t *got, const uint8_t *want, uint32_t size, uint32_t n,
		    struct urn_err *err);

/* ---- node.c */

struct pp_node {
	const struct pp_opts *o;
	struct urn_node node;   /* port, dataplane, context */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *send_mr, *recv_mr;
	uint8_t *map;           /* both buffers with guards; owner: this struct */
	size_t map_len;
	uint8_t *send, *recv;   /* size bytes each; all receives go to the same place */
	struct urn_ep_addr local;
};

/* Bring the node up to a queue pair in INIT. returns: 0, or -1 with *err (close all the same) */
int pp_node_open(struct pp_node *n, const struct pp_opts *o, struct urn_err *err);
/* Bring the queue pair to RTR and RTS. returns: 0, or -1 with *err */
int pp_node_connect(struct pp_node *n, const struct urn_ep_addr *peer, struct urn_err *err);
/* Run one turn of the engine, and the idle policy. Fits struct urn_tcp_wait. */
void pp_node_turn(void *node);
/* True when no byte before or behind the receive buffer was written. */
bool pp_node_guards_ok(const struct pp_node *n);
void pp_node_counters(const struct pp_node *n, struct urn_counters *out);
/*
 * Take the node down, at any stage. returns: 0, or -1 with *err when the capture
 * is not whole
 */
int pp_node_close(struct pp_node *n, uint64_t *capture_lost, struct urn_err *err);

/* ---- run.c */

struct pp_result {
	struct urn_ep_addr local, peer;
	enum pp_role role;
	bool met;                    /* the two sides were connected */
	bool last_unacknowledged;    /* the peer left without acknowledging our last message */
	uint32_t sent, received;     /* messages */
	uint64_t seconds_ns;         /* from the first message to the last */
	uint64_t checked;            /* bytes compared */
	uint64_t capture_lost;
	struct urn_counters counters;
	struct urn_hist hist;        /* round trips, ns */
};

/* Run the whole exchange. returns: 0, or -1 with *err; *res is valid as far as the exchange got */
int pp_run(const struct pp_opts *o, struct pp_result *res, struct urn_err *err);

/* ---- report.c */

/* Print the result, as options say: for people, or as JSON. */
void pp_report(const struct pp_opts *o, const struct pp_result *res);

#endif
