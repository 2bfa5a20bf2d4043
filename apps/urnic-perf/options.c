/* SPDX-License-Identifier: BSD-3-Clause */
#include "idle.h"
#include "options_priv.h"

#include "common/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of options that have no natural limit. */
#define MAX_INLINE 256u
#define MAX_IDLE_QPS 131072u
#define MAX_CONNS 16000u   /* a client has 16384 ids, one of which listens */
#define CONNS 1000u
#define MAX_CHAIN 16u
#define MAX_ITERS (1ull << 40)
#define MIN_DURATION_NS 1000000u
#define MAX_DURATION_NS (86400ull * 1000000000ull)
/* Targets for the default depth of a side, and its upper limit. */
#define BYTES_IN_FLIGHT (1ull << 20)
#define REQUESTS_IN_FLIGHT 1024u
#define MAX_DEFAULT_TOTAL 262144u
#define HUGE_SIZE (16ull << 20) /* from this size on messages go one at a time */

static const char *const op_names[PERF_OPS] = {
	[PERF_WRITE_BW] = "write_bw",	[PERF_READ_BW] = "read_bw",
	[PERF_SEND_BW] = "send_bw",	[PERF_WRITE_LAT] = "write_lat",
	[PERF_READ_LAT] = "read_lat",	[PERF_SEND_LAT] = "send_lat",
	[PERF_ATOMIC_LAT] = "atomic_lat", [PERF_ATOMIC_BW] = "atomic_bw",
	[PERF_LIMIT] = "limit",		[PERF_MEMCPY] = "memcpy",
	[PERF_CONNECT] = "connect",
};

static const char *const link_names[PERF_LINKS] = {
	[PERF_RING] = "ring", [PERF_MEMIF] = "memif", [PERF_NULL] = "null"};

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
	"  limit                                   the same bytes through the same ports with\n"
	"                                          no protocol: copy, CRC, port, CRC, copy\n"
	"  memcpy                                  the same messages by memcpy(), one thread\n"
	"  connect                                 connections a second, by connection management\n"
	"or, with options of its own (below), as the first word\n"
	"  idle                                    clients that do nothing, of a dataplane\n"
	"\n"
	"  --size N          bytes a message, 0..1G (64K; latency 8; atomics 8)\n"
	"  --iters N         messages to measure, instead of a time\n"
	"  --duration T      time to measure: 2, 0.5, 200ms (2)\n"
	"  --qps N           queue pairs, 1..65536 (1)\n"
	"  --conns N         connect: connections, 1..16000 (1000)\n"
	"  --idle-qps N      further queue pairs, connected and never used, 0..131072 (0)\n"
	"  --depth N         requests in flight a QP (from --size and --qps)\n"
	"  --mtu N           path MTU: 256 512 1024 2048 4096 (the most that the ports carry)\n"
	"  --lcores A,B      cores of the two nodes; one, or twice the same: one thread\n"
	"  --link L          ring, memif or null; null is for limit (ring)\n"
	"  --idle I          spin, pause or sleep when there is nothing to do (spin)\n"
	"  --recovery R      what is repeated after loss: selective, or gbn: go-back-N "
	"(selective)\n"
	"  --no-icrc         neither send nor check the ICRC\n"
	"  --foreign         reach the buffers as if they were another process's; with\n"
	"                    --attach: buffers of the heap, not of urn_alloc()\n"
	"  --no-check        do not check the data that was moved\n"
	"  --full-check      check every byte of every message, whatever it costs\n"
	"  --with-limit      measure limit at the same size too, and print the ratio\n"
	"  --lat             limit: ping-pong\n"
	"  --no-sender-copy  limit: send from the source buffer itself\n"
	"  --inline N        post messages up to N bytes inline, 0..256 (16; latency 64)\n"
	"  --rd-atomic N     READs and atomics in flight a QP, 1..128 (--depth, up to 128)\n"
	"  --timeout N       acknowledgement timeout, 4.096 us * 2^N, 0..31 (14; 18 above 1000 "
	"QPs)\n"
	"  --ud              send_bw, send_lat: unreliable datagrams, a packet each, not "
	"connections\n"
	"  --srq yes|no      receives from one shared queue (yes above 32 QPs)\n"
	"  --ip 4|6          address family (4)\n"
	"  --mbufs N         packets in each port's pool (3072)\n"
	"  --descs N         descriptors of each port's queues (1024)\n"
	"  --hist            JSON: the whole distribution of latencies\n"
	"  --stages          cycles a packet by stage; in a build with "
	"-Dstages=true\n" PERF_WIRE_HELP "  --mem             print the memory of an idle QP\n";

static const char help_more[] =
	"  --capture FILE    write what crosses the ports as pcapng\n"
	"  --attach S        attach to the dataplane (urnicd) at socket S; auto: where it\n"
	"                    usually is, or URNIC_SOCKET says\n"
	"  --nodes A,B       its nodes or adapters to run between (a,b)\n"
	"  --listen WHERE    be node B only, for whoever comes to [HOST:]PORT; with --attach\n"
	"  --peer WHERE      be node A only, of the one that listens at HOST[:PORT] (18515)\n"
	"  --node NAME       the node or adapter of this side (as URNIC_NODE says, or the first)\n"
	"  --connect HOW     the two meet over TCP (oob), or by connection management (cm):\n"
	"                    HOST is then the address of node B (oob; connect: cm)\n"
	"  --json            print JSON\n"
	"  --help, --version\n"
	"\n"
	"Exit code: 0 done, 1 failed, 2 bad option, 128 + N ended by signal N.\n";

enum opt_id {
	OPT_SIZE = 256,
	OPT_ITERS,
	OPT_DURATION,
	OPT_QPS,
	OPT_CONNS,
	OPT_IDLE_QPS,
	OPT_DEPTH,
	OPT_MTU,
	OPT_LCORES,
	OPT_LINK,
	OPT_IDLE,
	OPT_RECOVERY,
	OPT_NO_ICRC,
	OPT_FOREIGN,
	OPT_NO_CHECK,
	OPT_FULL_CHECK,
	OPT_WITH_LIMIT,
	OPT_LAT,
	OPT_NO_SENDER_COPY,
	OPT_INLINE,
	OPT_RD_ATOMIC,
	OPT_TIMEOUT,
	OPT_UD,
	OPT_SRQ,
	OPT_IP,
	OPT_MBUFS,
	OPT_DESCS,
	OPT_HIST,
	OPT_STAGES,
	OPT_MEM,
	OPT_CAPTURE,
	OPT_ATTACH,
	OPT_NODES,
	OPT_LISTEN,
	OPT_PEER,
	OPT_NODE,
	OPT_CONNECT,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"size", required_argument, NULL, OPT_SIZE},
	{"iters", required_argument, NULL, OPT_ITERS},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"qps", required_argument, NULL, OPT_QPS},
	{"conns", required_argument, NULL, OPT_CONNS},
	{"idle-qps", required_argument, NULL, OPT_IDLE_QPS},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"lcores", required_argument, NULL, OPT_LCORES},
	{"link", required_argument, NULL, OPT_LINK},
	{"idle", required_argument, NULL, OPT_IDLE},
	{"recovery", required_argument, NULL, OPT_RECOVERY},
	{"no-icrc", no_argument, NULL, OPT_NO_ICRC},
	{"foreign", no_argument, NULL, OPT_FOREIGN},
	{"no-check", no_argument, NULL, OPT_NO_CHECK},
	{"full-check", no_argument, NULL, OPT_FULL_CHECK},
	{"with-limit", no_argument, NULL, OPT_WITH_LIMIT},
	{"lat", no_argument, NULL, OPT_LAT},
	{"no-sender-copy", no_argument, NULL, OPT_NO_SENDER_COPY},
	{"inline", required_argument, NULL, OPT_INLINE},
	{"rd-atomic", required_argument, NULL, OPT_RD_ATOMIC},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"ud", no_argument, NULL, OPT_UD},
	{"srq", required_argument, NULL, OPT_SRQ},
	{"ip", required_argument, NULL, OPT_IP},
	{"mbufs", required_argument, NULL, OPT_MBUFS},
	{"descs", required_argument, NULL, OPT_DESCS},
	{"hist", no_argument, NULL, OPT_HIST},
	{"stages", no_argument, NULL, OPT_STAGES},
	PERF_WIRE_LONG_OPTIONS,
	{"mem", no_argument, NULL, OPT_MEM},
	{"capture", required_argument, NULL, OPT_CAPTURE},
	{"attach", required_argument, NULL, OPT_ATTACH},
	{"nodes", required_argument, NULL, OPT_NODES},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"peer", required_argument, NULL, OPT_PEER},
	{"node", required_argument, NULL, OPT_NODE},
	{"connect", required_argument, NULL, OPT_CONNECT},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

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

/* Options that choose a word. */
static int
take_choice(int id, const char *arg, struct perf_opts *o, struct perf_given *g, struct urn_err *err)
{
	static const char *const yes_no[] = {"no", "yes"};
	static const char *const families[] = {"4", "6"};
	static const char *const recoveries[] = {"selective", "gbn"};
	static const char *const ways[] = {"oob", "cm"};
	int word = 0, rc;

	switch (id) {
	case OPT_LINK:
		rc = urn_opt_word("link", arg, link_names, PERF_LINKS, &word, err);
		o->link = (enum perf_link)word;
		return rc;
	case OPT_IDLE:
		return urn_opt_idle(arg, &o->idle, err);
	case OPT_SRQ:
		g->srq = true;
		rc = urn_opt_word("srq", arg, yes_no, 2, &word, err);
		o->use_srq = word == 1;
		return rc;
	case OPT_CONNECT:
		g->role.connect = true;
		rc = urn_opt_word("connect", arg, ways, 2, &word, err);
		o->by_cm = word == 1;
		return rc;
	case OPT_RECOVERY:
		rc = urn_opt_word("recovery", arg, recoveries, 2, &word, err);
		o->go_back_n = word == 1;
		return rc;
	default:
		rc = urn_opt_word("ip", arg, families, 2, &word, err);
		o->ipv6 = word == 1;
		return rc;
	}
}

/* Options that take a number, a size or a time. */
static int
take_value(int id, const char *arg, struct perf_opts *o, struct perf_given *g, struct urn_err *err)
{
	switch (id) {
	case OPT_SIZE:
		g->size = o->size_given = true;
		return urn_opt_size("size", arg, 0, PERF_MAX_SIZE, &o->size, err);
	case OPT_ITERS:
		g->iters = true;
		return urn_opt_size("iters", arg, 1, MAX_ITERS, &o->iters, err);
	case OPT_DURATION:
		g->duration = true;
		return urn_opt_time("duration", arg, MIN_DURATION_NS, MAX_DURATION_NS,
				    &o->duration_ns, err);
	case OPT_QPS:
		return urn_opt_u32("qps", arg, 1, PERF_MAX_QPS, &o->qps, err);
	case OPT_CONNS:
		return urn_opt_u32("conns", arg, 1, MAX_CONNS, &o->conns, err);
	case OPT_IDLE_QPS:
		return urn_opt_u32("idle-qps", arg, 0, MAX_IDLE_QPS, &o->idle_qps, err);
	case OPT_DEPTH:
		g->depth = true;
		return urn_opt_u32("depth", arg, 1, PERF_MAX_DEPTH, &o->depth, err);
	case OPT_MTU:
		o->mtu_given = true;
		return urn_opt_mtu(arg, &o->mtu, err);
	case OPT_LCORES:
		g->lcores = true;
		return perf_cores_take(arg, o, err);
	case OPT_INLINE:
		g->inl = true;
		return urn_opt_u32("inline", arg, 0, MAX_INLINE, &o->inline_bytes, err);
	case OPT_RD_ATOMIC:
		g->rd_atomic = true;
		return urn_opt_u32("rd-atomic", arg, 1, URN_ABI_MAX_RD_ATOMIC, &o->rd_atomic, err);
	case OPT_TIMEOUT:
		g->timeout = true;
		return urn_opt_u8("timeout", arg, 0, 31, &o->timeout, err);
	case OPT_NODES:
		g->role.nodes = true;
		return perf_nodes_take(arg, o, err);
	case OPT_NODE:
		g->role.node = true;
		return perf_node_take(arg, o, err);
	case OPT_LISTEN:
	case OPT_PEER:
		return perf_where_take(id == OPT_LISTEN, arg, o, err);
	case OPT_MBUFS:
		return urn_opt_u32("mbufs", arg, 1024, 1048576, &o->mbufs, err);
	case OPT_DESCS:
		return urn_opt_u32("descs", arg, 64, 16384, &o->descs, err);
	default:
		return take_choice(id, arg, o, g, err);
	}
}

/* Options without argument, and the name of the capture file. */
static bool
take_flag(int id, const char *arg, struct perf_opts *o, struct perf_given *g)
{
	switch (id) {
	case OPT_NO_ICRC:
		return o->no_icrc = true;
	case OPT_FOREIGN:
		return o->foreign = true;
	case OPT_NO_CHECK:
		o->check = PERF_CHECK_NONE;
		return g->no_check = true;
	case OPT_FULL_CHECK:
		o->check = PERF_CHECK_FULL;
		return g->full_check = true;
	case OPT_UD:
		return o->ud = true;
	case OPT_WITH_LIMIT:
		return o->with_limit = true;
	case OPT_LAT:
		return o->lat = true;
	case OPT_NO_SENDER_COPY:
		return o->no_sender_copy = true;
	case OPT_HIST:
		return o->hist = true;
	case OPT_STAGES:
		return o->stages = true;
	case OPT_MEM:
		return o->show_mem = true;
	case OPT_JSON:
		return o->json = true;
	case OPT_CAPTURE:
		o->capture = arg;
		return true;
	case OPT_ATTACH:
		o->attach = arg;
		return true;
	default:
		return false;
	}
}

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

static int
fill_defaults(struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	bool lat = perf_op_is_lat(o->op) || o->lat;

	if (!g->size)
		o->size = lat || perf_op_is_atomic(o->op) ? 8 : o->ud ? o->mtu : 65536;
	if (!g->depth)
		o->depth = lat ? 1 : default_depth(o);
	if (!g->inl)
		o->inline_bytes = lat ? 64 : 16;
	if (!g->srq)
		o->use_srq = o->qps > 32;
	if (!g->rd_atomic)
		o->rd_atomic = !perf_op_is_read(o->op) && !perf_op_is_atomic(o->op) ? 16
			       : o->depth < URN_ABI_MAX_RD_ATOMIC ? o->depth
								  : URN_ABI_MAX_RD_ATOMIC;
	/* Requests of thousands of QPs wait for each other far longer than for the wire. */
	if (!g->timeout)
		o->timeout = o->qps > 1000 ? 18 : 14;
	if (o->op == PERF_CONNECT) {
		o->qps = o->conns ? o->conns : CONNS;
		o->depth = 1;
	}
	o->chain = o->depth >= 4 * MAX_CHAIN ? MAX_CHAIN : pow2_floor(o->depth / 4);
	o->pinned = g->lcores;
	if (o->role != PERF_BOTH && !g->role.node)
		o->node[0][0] = o->node[1][0] = '\0';
	if (!g->lcores && perf_cores_default(o, err))
		return -1;
	if (o->op == PERF_MEMCPY)
		o->core[1] = o->core[0];
	return 0;
}

static enum perf_parse
take_op(int argc, char **argv, struct perf_opts *o, struct urn_err *err)
{
	int op;

	if (optind == argc) {
		urn_err_set(err, "say what to measure, such as urnic-perf write_bw; --help lists "
				 "all");
		return PERF_EXIT_USAGE;
	}
	op = urn_opt_find(op_names, PERF_OPS, argv[optind]);
	if (op < 0) {
		urn_err_set(err, "%.32s is nothing that can be measured; --help lists what can",
			    argv[optind]);
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

/* One option of the command line. */
static enum perf_parse
take_option(int id, char **argv, struct perf_opts *o, struct perf_given *g, struct urn_err *err)
{
	switch (id) {
	case OPT_HELP:
		fputs(help, stdout);
		fputs(help_more, stdout);
		putchar('\n');
		fputs(idle_help, stdout);
		return PERF_EXIT_OK;
	case OPT_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	case '?':
	case ':':
		urn_opt_bad(id, argv[optind - 1], "--help", err);
		return PERF_EXIT_USAGE;
	default:
		if (id >= PERF_WIRE_FIRST && id < PERF_WIRE_END)
			return perf_wire_take(id, optarg, &o->wire, err) ? PERF_EXIT_USAGE : PERF_RUN;
		if (take_flag(id, optarg, o, g) || take_value(id, optarg, o, g, err) == 0)
			return PERF_RUN;
		return PERF_EXIT_USAGE;
	}
}

enum perf_parse
perf_options_parse(int argc, char **argv, struct perf_opts *o, struct urn_err *err)
{
	struct perf_given g = {0};
	enum perf_parse rc;
	int id;

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
	optind = 0; /* glibc: start over, for a caller that parses twice */
	while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		rc = take_option(id, argv, o, &g, err);
		if (rc != PERF_RUN)
			return rc;
	}
	rc = take_op(argc, argv, o, err);
	if (rc != PERF_RUN)
		return rc;
	g.role.measured = g.size || g.depth || g.iters || g.duration || o->hist;
	if (fill_defaults(o, &g, err) || perf_options_check(o, &g, err))
		return PERF_EXIT_USAGE;
	return PERF_RUN;
}
