/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc.h"
#include "idle.h"
#include "stream.h"
#include "options_priv.h"

#include "common/option_table.h"

#include "near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of options that have no natural limit. */
#define MAX_INLINE 256u
#define MAX_IDLE_QPS 131072u
#define MAX_CONNS 16000u   /* a client has 16384 ids, one of which listens */
#define CONNS 1000u
#define ALIGNED_CELL_NS 100000000ull /* time for each row of aligned_table */
#define MAX_CHAIN 16u
#define MAX_SETS 4096u
#define MAX_ITERS (1ull << 40)
#define MAX_DURATION_NS (86400ull * 1000000000ull)
/* Targets for the default depth of a side, and its upper limit. */
#define BYTES_IN_FLIGHT (1ull << 20)
#define REQUESTS_IN_FLIGHT 1024u
#define MAX_DEFAULT_TOTAL 262144u
#define HUGE_SIZE (16ull << 20) /* from this size on messages go one at a time */

static const char *const op_names[PERF_OPS] = {
	[PERF_WRITE_BW] = "write_bw",
	[PERF_READ_BW] = "read_bw",
	[PERF_SEND_BW] = "send_bw",
	[PERF_WRITE_LAT] = "write_lat",
	[PERF_READ_LAT] = "read_lat",
	[PERF_SEND_LAT] = "send_lat",
	[PERF_ATOMIC_LAT] = "atomic_lat",
	[PERF_ATOMIC_BW] = "atomic_bw",
	[PERF_LIMIT] = "limit",
	[PERF_MEMCPY] = "memcpy",
	[PERF_CONNECT] = "connect",
	[PERF_MSG_RATE] = "msg_rate",
	[PERF_MSG_LAT] = "msg_lat",
	[PERF_MSG_INCAST] = "msg_incast",
	[PERF_WRITE_SEND_BW] = "write_send_bw",
	[PERF_RMA_WRITE_BW] = "rma_write_bw",
	[PERF_RMA_READ_BW] = "rma_read_bw",
	[PERF_RMA_WRITE_LAT] = "rma_write_lat",
	[PERF_RMA_READ_LAT] = "rma_read_lat",
	[PERF_AM_LAT] = "am_lat",
	[PERF_AM_RATE] = "am_rate",
	[PERF_AM_PAYLOAD] = "am_payload",
	[PERF_ALIGNED_TABLE] = "aligned_table",
};

static const char *const link_names[PERF_LINKS + 1] = {
	[PERF_RING] = "ring", [PERF_MEMIF] = "memif", [PERF_NULL] = "null", [PERF_LINKS] = NULL};

static const char help[] =
	"usage: urnic-perf OP [option...]\n"
	"\n"
	"Measures the data path between two nodes of this process, A and B, each with\n"
	"its own adapter and thread, joined by a link. A is the requester.\n"
	"\n"
	"OP is one of\n"
	"  write_bw read_bw send_bw atomic_bw      streams: rate, post-to-completion latency\n"
	"  write_lat send_lat                      ping-pong: half the round trip\n"
	"  read_lat atomic_lat                     one request at a time: the round trip\n"
	"  write_send_bw                           each message a WRITE, and a SEND that tells of "
	"it\n"
	"  limit                                   the same bytes through the same ports with\n"
	"                                          no protocol: copy, CRC, port, CRC, copy\n"
	"  memcpy                                  the same messages by memcpy(), one thread\n"
	"  connect                                 connections a second, by connection management\n"
	"  msg_rate                                messages without connections: register sets of\n"
	"                                          A send to one queue of B\n"
	"  msg_lat                                 ... ping-pong: half the round trip\n"
	"  msg_incast                              ... several nodes send to one queue\n"
	"  rma_write_bw rma_read_bw                remote memory by endpoints: issue to "
	"completion\n"
	"  rma_write_lat rma_read_lat              ... one operation at a time\n"
	"  am_lat                                  active messages: half the round trip of "
	"request\n"
	"                                          and reply\n"
	"  am_rate am_payload                      ... requests with a short reply, a second\n"
	"  aligned_table                           writes on and off the cache lines of B: lines\n"
	"                                          stored to whole and in part, and the rate\n"
	"or, with options of its own (below), as the first word\n"
	"  idle                                    clients that do nothing, of a dataplane\n"
	"  crc                                     the kernels that compute ICRCs\n"
	"  stream_bw stream_lat                    byte streams between nodes of a dataplane\n"
	"\n";

static const char help_end[] =
	"\n"
	"Exit code: 0 done, 1 failed, 2 bad option, 128 + N ended by signal N.\n";

const char *
perf_op_name(enum perf_op op)
{
	return op_names[op];
}

const char *
perf_link_name(enum perf_link link)
{
	return link_names[link];
}

/* ---- the options */

/* --no-check, --full-check: row->id is the amount of checking. */
static int
take_check(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;

	(void)arg;
	(void)err;
	o->check = (enum perf_check)row->id;
	return 0;
}

static const char *const yes_no[] = {"no", "yes", NULL};
static const char *const families[] = {"4", "6", NULL};
static const char *const recoveries[] = {"selective", "gbn", NULL};
static const char *const ways[] = {"oob", "cm", NULL};
static const char *const off_on[] = {"off", "on", NULL};

#define O(field) offsetof(struct perf_opts, field)
static const struct urn_option rows[] = {
	{"size", "N", "bytes a message, 0..1G (64K; latency 8; atomics 8)", urn_take_size, O(size),
	 .max = PERF_MAX_SIZE, .letter = 's'},
	{"iters", "N", "messages to measure, instead of a time", urn_take_size, O(iters), .min = 1,
	 .max = MAX_ITERS, .letter = 'n'},
	URN_OPTION_DURATION(struct perf_opts, duration_ns, MAX_DURATION_NS, "time to measure", "2"),
	{"qps", "N", "queue pairs, 1..65536 (1)", urn_take_u32, O(qps), .min = 1,
	 .max = PERF_MAX_QPS},
	{"conns", "N", "connect: connections, 1..16000 (1000)", urn_take_u32, O(conns), .min = 1,
	 .max = MAX_CONNS},
	{"idle-qps", "N", "further queue pairs, connected and never used, 0..131072 (0)",
	 urn_take_u32, O(idle_qps), .max = MAX_IDLE_QPS},
	{"depth", "N", "requests in flight a QP (from --size and --qps)", urn_take_u32, O(depth),
	 .min = 1, .max = PERF_MAX_DEPTH},
	URN_OPTION_MTU(struct perf_opts, mtu, "the most that the ports carry"),
	{"lcores", "A,B", "cores of the two nodes; one, or twice the same: one thread",
	 perf_cores_take},
	{"link", "L", "ring, memif or null; null is for limit (ring)", urn_take_word, O(link),
	 .words = link_names},
	{"offset", "N",
	 "write_bw, aligned_table: bytes from a line of 256 to each target,\n"
	 "0..4095 (0; aligned_table: several)",
	 urn_take_u32, O(offset), .max = PERF_MAX_OFFSET},
	{"align", "off|on", "write_bw: write on the cache lines of B (off)", urn_take_choice,
	 O(align), .words = off_on},
	URN_OPTION_IDLE(struct perf_opts, idle, "spin"),
	{"recovery", "R", "packets repeated after loss: selective, or gbn: go-back-N (selective)",
	 urn_take_choice, O(go_back_n), .words = recoveries},
	URN_OPTION_NO_ICRC(struct perf_opts, no_icrc),
	{"foreign", NULL,
	 "reach the buffers as if they were another process's; with\n"
	 "--attach: buffers of the heap, not of urn_alloc()",
	 urn_take_flag, O(foreign)},
	{"no-check", NULL, "do not check the data that was moved", take_check,
	 .id = PERF_CHECK_NONE},
	{"full-check", NULL, "check every byte of every message, whatever it costs", take_check,
	 .id = PERF_CHECK_FULL},
	{"with-limit", NULL, "measure limit at the same size too, and print the ratio",
	 urn_take_flag, O(with_limit)},
	{"lat", NULL, "limit: ping-pong", urn_take_flag, O(lat)},
	{"no-sender-copy", NULL, "limit: send from the source buffer itself", urn_take_flag,
	 O(no_sender_copy)},
	{"inline", "N", "post messages up to N bytes inline, 0..256 (16; latency 64)", urn_take_u32,
	 O(inline_bytes), .max = MAX_INLINE},
	{"rd-atomic", "N", "READs and atomics in flight a QP, 1..128 (--depth, up to 128)",
	 urn_take_u32, O(rd_atomic), .min = 1, .max = URN_ABI_MAX_RD_ATOMIC},
	URN_OPTION_TIMEOUT(struct perf_opts, timeout, "14; 18 above 1000 QPs"),
	{"ud", NULL, "send_bw, send_lat: unreliable datagrams, a packet each, not connections",
	 urn_take_flag, O(ud)},
	{"sets", "N",
	 "msg_...: register sets of a node that sends, 1..4096\n"
	 "(128; msg_incast 16, msg_lat 4)",
	 urn_take_u32, O(sets), .min = 1, .max = MAX_SETS},
	{"senders", "N", "msg_incast: nodes that send, 1..15 (8)", urn_take_u32, O(senders),
	 .min = 1, .max = PERF_NODES_MAX - 1},
	{"entries", "N",
	 "msg_...: entries of the queue, a power of two (twice as many as\n"
	 "sets that send, 1024 at least)",
	 urn_take_u32, O(entries), .min = 1, .max = URN_MSG_ENTRIES_MAX},
	{"retries", "N",
	 "msg_...: further tries when the queue is full, or the dataplane is\n"
	 "busy, 0..65534 (without end)",
	 urn_take_u32, O(retries), .max = 65534},
	{"rma", "WAY", "rma_...: auto, direct, pipelined or tagged (auto)", urn_take_word, O(way),
	 .words = perf_way_names},
	{"reply-every", "N",
	 "rma_write_...: one reply for N packets, 1..254, a packet, or the\n"
	 "whole transfer (packet)",
	 perf_every_take},
	{"prepare", NULL,
	 "am_rate, am_payload: write payloads where they are sent from, by\n"
	 "urn_am_request_prepare(); each is written whole, as by --fill",
	 urn_take_flag, O(prepare)},
	{"fill", NULL,
	 "am_rate, am_payload, write_send_bw: write each message whole before\n"
	 "it is sent, not its stamps alone",
	 urn_take_flag, O(fill)},
	{"srq", "yes|no", "receives from one shared queue (yes above 32 QPs)", urn_take_choice,
	 O(use_srq), .words = yes_no},
	{"ip", "4|6", "address family (4)", urn_take_choice, O(ipv6), .words = families},
	{"mbufs", "N", "packets in each port's pool (3072)", urn_take_u32, O(mbufs), .min = 1024,
	 .max = 1048576},
	{"descs", "N", "descriptors of each port's queues (1024)", urn_take_u32, O(descs),
	 .min = 64, .max = 16384},
	{"hist", NULL, "JSON: the whole distribution of latencies", urn_take_flag, O(hist)},
	{"stages", NULL, "cycles a packet by stage; in a build with -Dstages=true", urn_take_flag,
	 O(stages)},
	PERF_WIRE_OPTIONS(O(wire)),
	{"mem", NULL, "print the memory of an idle QP", urn_take_flag, O(show_mem)},
	URN_OPTION_CAPTURE(struct perf_opts, capture, "the ports"),
	URN_OPTION_ATTACH(struct perf_opts, attach),
	URN_OPTION_NODES(struct perf_opts, node, "a,b"),
	{"listen", "WHERE", "be node B only, for a peer that comes to [HOST:]PORT; with --attach",
	 perf_where_take, .id = PERF_LISTENS},
	{"peer", "WHERE", "be node A only; node B listens at HOST[:PORT] (18515)", perf_where_take,
	 .id = PERF_ASKS},
	{"node", "NAME", "the node or adapter of this side (as URNIC_NODE says, or the first)",
	 perf_node_take, .letter = 'd'},
	{"connect", "HOW",
	 "the two meet over TCP (oob), or by connection management (cm):\n"
	 "HOST is then the address of node B (oob; connect: cm)",
	 urn_take_choice, O(by_cm), .words = ways},
	{"session", "S",
	 "be a side with a session: its two adapters as in URNIC_SESSION, or auto:\n"
	 "those of URNIC_SESSION; with --listen or --peer, instead of --attach",
	 perf_session_take},
	{"fail-at", "T[:HOW]",
	 "with --session and --peer: lose the primary adapter after T; HOW is\n"
	 "port, kill, kill=PID or run=COMMAND (port)",
	 perf_fail_take},
	{"plot", "FILE", "with --fail-at: draw the rate over time, a .png or .svg", urn_take_text,
	 O(plot)},
	{"progress", "FILE", "with --fail-at: write the bytes that are done over time, as CSV",
	 urn_take_text, O(progress)},
	URN_OPTION_JSON(struct perf_opts, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "--help"};

/* Options that were given, for defaults and checks that depend on them. */
static struct perf_given
given_of(uint64_t bits)
{
	struct perf_given g = {
		.size = urn_options_given(&table, bits, "size"),
		.iters = urn_options_given(&table, bits, "iters"),
		.duration = urn_options_given(&table, bits, "duration"),
		.depth = urn_options_given(&table, bits, "depth"),
		.inl = urn_options_given(&table, bits, "inline"),
		.rd_atomic = urn_options_given(&table, bits, "rd-atomic"),
		.timeout = urn_options_given(&table, bits, "timeout"),
		.srq = urn_options_given(&table, bits, "srq"),
		.lcores = urn_options_given(&table, bits, "lcores"),
		.no_check = urn_options_given(&table, bits, "no-check"),
		.full_check = urn_options_given(&table, bits, "full-check"),
		.offset = urn_options_given(&table, bits, "offset"),
		.align = urn_options_given(&table, bits, "align"),
		.mtu = urn_options_given(&table, bits, "mtu"),
		.role = {.nodes = urn_options_given(&table, bits, "nodes"),
			 .node = urn_options_given(&table, bits, "node"),
			 .connect = urn_options_given(&table, bits, "connect")},
		.msg = {.sets = urn_options_given(&table, bits, "sets"),
			.senders = urn_options_given(&table, bits, "senders"),
			.entries = urn_options_given(&table, bits, "entries"),
			.retries = urn_options_given(&table, bits, "retries")},
		.am = {.way = urn_options_given(&table, bits, "rma"),
		       .every = urn_options_given(&table, bits, "reply-every"),
		       .prepare = urn_options_given(&table, bits, "prepare"),
		       .fill = urn_options_given(&table, bits, "fill")},
		.fail = {.attach = urn_options_given(&table, bits, "attach"),
			 .node = urn_options_given(&table, bits, "node"),
			 .srq = urn_options_given(&table, bits, "srq"),
			 .iters = urn_options_given(&table, bits, "iters")},
	};

	g.role.measured = g.size || g.depth || g.iters || g.duration ||
			  urn_options_given(&table, bits, "hist");
	g.am.verbs = g.inl || g.rd_atomic || g.timeout || g.srq ||
		     urn_options_given(&table, bits, "qps") ||
		     urn_options_given(&table, bits, "recovery");
	g.am.depth = g.depth;
	g.msg.verbs = g.am.verbs || g.depth;
	return g;
}

/* ---- defaults */

static uint32_t
pow2_floor(uint64_t v)
{
	return v <= 1 ? 1 : 1u << (63 - __builtin_clzll(v));
}

/*
 * About 1 MiB in flight over all QPs, which fits a second-level cache, as
 * with a real program that reuses its buffers, and about 1024 requests; but
 * enough for each QP that requests can be posted and completed in chains.
 */
static uint32_t
default_depth(const struct perf_opts *o)
{
	uint64_t least = o->size <= 256 ? 16 : o->size <= 4096 ? 4 : 2;
	uint64_t each = BYTES_IN_FLIGHT / ((o->size < 64 ? 64 : o->size) * o->qps);
	uint64_t most = REQUESTS_IN_FLIGHT / o->qps;

	if (o->size > HUGE_SIZE)
		return 1;
	if (each > most)
		each = most;
	if (each < least)
		each = least;
	if (each > MAX_DEFAULT_TOTAL / o->qps)
		each = MAX_DEFAULT_TOTAL / o->qps;
	return pow2_floor(each < 128 ? each : 128);
}

/* Bytes of a message. lat: a latency is measured */
static uint32_t
default_size(const struct perf_opts *o, bool lat)
{
	if (perf_op_is_msg(o->op) || o->op == PERF_AM_RATE)
		return 64;
	if (o->op == PERF_AM_PAYLOAD)
		return 4096;
	if (lat || perf_op_is_atomic(o->op))
		return 8;
	if (o->op == PERF_ALIGNED_TABLE)
		return 32768;
	return o->ud ? o->mtu : 65536;
}

static int
fill_defaults(struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	bool lat = perf_op_is_lat(o->op) || o->lat;

	if (!g->size)
		o->size = default_size(o, lat);
	if (!g->depth)
		o->depth = lat ? 1 : default_depth(o);
	if (!g->inl)
		o->inline_bytes = lat ? 64 : 16;
	if (!g->srq)
		o->use_srq = o->qps > 32 && o->op != PERF_WRITE_SEND_BW && o->session == NULL;
	if (!g->rd_atomic)
		o->rd_atomic = !perf_op_is_read(o->op) && !perf_op_is_atomic(o->op) ? 16
			       : o->depth < URN_ABI_MAX_RD_ATOMIC ? o->depth
								  : URN_ABI_MAX_RD_ATOMIC;
	/* Requests of thousands of QPs wait for each other far longer than for the wire. */
	if (!g->timeout)
		o->timeout = o->qps > 1000 ? 18 : 14;
	if (o->op == PERF_ALIGNED_TABLE && !g->duration)
		o->duration_ns = ALIGNED_CELL_NS;
	if (o->op == PERF_CONNECT) {
		o->qps = o->conns ? o->conns : CONNS;
		o->depth = 1;
	}
	o->chain = o->depth >= 4 * MAX_CHAIN ? MAX_CHAIN : pow2_floor(o->depth / 4);
	if (perf_op_is_msg(o->op))
		perf_msg_defaults(o, &g->msg);
	if (perf_op_is_rma(o->op) || perf_op_is_am(o->op))
		perf_am_defaults(o, &g->am);
	o->pinned = g->lcores;
	if (o->role != PERF_BOTH && !g->role.node)
		o->node[0][0] = o->node[1][0] = '\0';
	if (!g->lcores && perf_cores_default(o, err))
		return -1;
	if (o->op == PERF_MEMCPY)
		o->core[1] = o->core[0];
	return 0;
}

/* Say that a word is no operation, and which one it may stand for. */
static void
no_op(const char *word, struct urn_err *err)
{
	/* Words that have options of their own, which main() looks for. */
	static const char *const first_words[] = {"idle", "crc", "stream_bw", "stream_lat"};
	struct urn_near near;

	urn_near_begin(&near, word);
	for (unsigned int i = 0; i < PERF_OPS; i++)
		urn_near_try(&near, op_names[i]);
	for (unsigned int i = 0; i < sizeof(first_words) / sizeof(first_words[0]); i++)
		urn_near_try(&near, first_words[i]);
	if (near.best)
		urn_err_set(err, "%.32s is no operation; did you mean %s? --help lists all", word,
			    near.best);
	else
		urn_err_set(err, "%.32s is no operation; --help lists all", word);
}

static enum perf_parse
take_op(int argc, char **argv, struct perf_opts *o, struct urn_err *err)
{
	int op;

	if (optind == argc) {
		urn_err_set(err, "name an operation, such as urnic-perf write_bw; --help lists "
				 "all");
		return PERF_EXIT_USAGE;
	}
	op = urn_opt_find(op_names, PERF_OPS, argv[optind]);
	if (op < 0) {
		no_op(argv[optind], err);
		return PERF_EXIT_USAGE;
	}
	if (optind + 1 < argc) {
		urn_err_set(err, "%.32s is one word too many; one operation a run",
			    argv[optind + 1]);
		return PERF_EXIT_USAGE;
	}
	o->op = (enum perf_op)op;
	return PERF_RUN;
}

/* Take the options. bits: those that were given */
static enum perf_parse
take_options(int argc, char **argv, struct perf_opts *o, uint64_t *bits, struct urn_err *err)
{
	switch (urn_options_parse(&table, argc, argv, o, bits, err)) {
	case URN_OPTIONS_HELP:
		fputs(help, stdout);
		urn_options_help(&table, stdout);
		fputs(help_end, stdout);
		putchar('\n');
		idle_options_help();
		putchar('\n');
		crc_options_help();
		putchar('\n');
		stream_options_help();
		return PERF_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	case URN_OPTIONS_BAD:
		return PERF_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	return PERF_RUN;
}

enum perf_parse
perf_options_parse(int argc, char **argv, struct perf_opts *o, struct urn_err *err)
{
	struct perf_given g;
	enum perf_parse rc;
	uint64_t bits;

	*o = (struct perf_opts){.check = PERF_CHECK_FAST,
				.duration_ns = 2000000000,
				.qps = 1,
				.mtu = 4096,
				.mbufs = 3072,
				.descs = 1024,
				.node = {"a", "b"}};
	if (argc > 1 && strcmp(argv[1], "pingpong") == 0) {
		urn_err_set(err, "pingpong is a program of its own: run urnic-pingpong, with the "
				 "same options");
		return PERF_EXIT_USAGE;
	}
	rc = take_options(argc, argv, o, &bits, err);
	if (rc == PERF_RUN)
		rc = take_op(argc, argv, o, err);
	if (rc != PERF_RUN)
		return rc;
	g = given_of(bits);
	o->mtu_given = g.mtu;
	o->size_given = g.size;
	o->offset_given = g.offset;
	if (fill_defaults(o, &g, err) || perf_options_check(o, &g, err))
		return PERF_EXIT_USAGE;
	return PERF_RUN;
}
