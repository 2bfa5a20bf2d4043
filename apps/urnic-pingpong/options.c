/* SPDX-License-Identifier: BSD-3-Clause */
#include "pp.h"

#include "common/options.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define MAX_RX_DEPTH 32768u /* limit of a queue (doc/reference/verbs.md) */
#define MAX_WAIT_NS (3600ull * 1000000000ull)

const char pp_help[] =
	"usage: urnic-pingpong --peer HOST[:PORT] --device DEVICE --ip ADDRESS [option...]\n"
	"       urnic-pingpong --listen [HOST:]PORT --device DEVICE --ip ADDRESS [option...]\n"
	"\n"
	"Sends messages to and fro with ibv_rc_pingpong of another RDMA stack, or with another\n"
	"urnic-pingpong, and compares what comes back byte for byte. The two meet over TCP, which\n"
	"is the kernel's; RoCEv2 goes over the port. --size, --iters and --mtu must be the same\n"
	"at both.\n"
	"\n"
	"  --peer HOST[:PORT]    whom to connect to over TCP (port 18515)\n"
	"  --listen [HOST:]PORT  where to wait for the peer\n"
	"  --device DEVICE       the port, as in doc/reference/ports.md: net_tap0,iface=urn0 or\n"
	"                        net_af_packet0,iface=eth0\n"
	"  --ip ADDRESS          address of the node, IPv4 or IPv6, not the kernel's; one of each\n"
	"                        may be given\n"
	"  --gid N               GID to use: 0 link-local, 1 IPv4, 2 IPv6 (that of --ip)\n"
	"  --mac MAC             MAC address (the port's)\n"
	"  --size N              bytes a message, 1..1G (4096)\n"
	"  --iters N             messages each way, 1 to 1000000000 (1000)\n"
	"  --mtu N               path MTU: 256 512 1024 2048 4096 (1024)\n"
	"  --rx-depth N          receives posted, 1..32768 (500)\n"
	"  --timeout N           acknowledgement timeout, 4.096 us * 2^N, 0..31 (14)\n"
	"  --wait T              how long to wait for the peer, and without progress (10)\n"
	"  --linger T            leave when nothing has come for so long: the peer may have\n"
	"                        lost our last acknowledgement and ask again (200ms)\n"
	"  --idle I              spin, pause or sleep when there is nothing to do (pause)\n"
	"  --no-check            do not compare what comes back\n"
	"  --capture FILE        write what crosses the port as pcapng\n"
	"  --json                print JSON\n"
	"  --help, --version\n";

enum opt_id {
	OPT_PEER = 256,
	OPT_LISTEN,
	OPT_DEVICE,
	OPT_IP,
	OPT_GID,
	OPT_MAC,
	OPT_SIZE,
	OPT_ITERS,
	OPT_MTU,
	OPT_RX_DEPTH,
	OPT_TIMEOUT,
	OPT_WAIT,
	OPT_LINGER,
	OPT_IDLE,
	OPT_NO_CHECK,
	OPT_CAPTURE,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"peer", required_argument, NULL, OPT_PEER},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"ip", required_argument, NULL, OPT_IP},
	{"gid", required_argument, NULL, OPT_GID},
	{"mac", required_argument, NULL, OPT_MAC},
	{"size", required_argument, NULL, OPT_SIZE},
	{"iters", required_argument, NULL, OPT_ITERS},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"rx-depth", required_argument, NULL, OPT_RX_DEPTH},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"wait", required_argument, NULL, OPT_WAIT},
	{"linger", required_argument, NULL, OPT_LINGER},
	{"idle", required_argument, NULL, OPT_IDLE},
	{"no-check", no_argument, NULL, OPT_NO_CHECK},
	{"capture", required_argument, NULL, OPT_CAPTURE},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

/* Options given, where another option's default, or a check at the end, depends on them. */
struct pp_given {
	bool gid, where;
};

/* ---- where the peer is */

static int
take_service(const char *text, struct pp_opts *o)
{
	uint64_t v;

	if (urn_text_parse_uint(text, &v) || v == 0 || v > 65535)
		return -1;
	snprintf(o->service, sizeof(o->service), "%u", (unsigned int)v);
	return 0;
}

static int
take_host(const char *text, size_t n, struct pp_opts *o)
{
	if (n >= sizeof(o->host))
		return -1;
	memcpy(o->host, text, n);
	o->host[n] = '\0';
	return 0;
}

/* Split "HOST:PORT" or "[IPV6]:PORT"; a word without a port is a host if only_host, else a port. */
static int
split_where(const char *arg, bool only_host, struct pp_opts *o)
{
	const char *colon = strrchr(arg, ':'), *close;

	if (arg[0] == '[') {
		close = strchr(arg, ']');
		if (close == NULL || close == arg + 1 ||
		    take_host(arg + 1, (size_t)(close - arg) - 1, o))
			return -1;
		if (close[1] == '\0' && only_host)
			return 0;
		return close[1] == ':' ? take_service(close + 2, o) : -1;
	}
	/* Two colons and no brackets: an IPv6 address alone. */
	if (colon != NULL && strchr(arg, ':') != colon)
		return only_host ? take_host(arg, strlen(arg), o) : -1;
	if (colon != NULL)
		return colon == arg || take_host(arg, (size_t)(colon - arg), o)
			       ? -1
			       : take_service(colon + 1, o);
	return only_host ? take_host(arg, strlen(arg), o) : take_service(arg, o);
}

static int
take_where(int id, const char *arg, struct pp_opts *o, struct pp_given *g, struct urn_err *err)
{
	o->listen = id == OPT_LISTEN;
	if (g->where) {
		urn_err_set(err, "give one of --peer and --listen, once");
		return -1;
	}
	g->where = true;
	if (*arg != '\0' && split_where(arg, id == OPT_PEER, o) == 0)
		return 0;
	urn_err_set(
		err,
		id == OPT_PEER
			? "--peer %.64s: give HOST, HOST:PORT or [IPV6]:PORT, such as "
			  "10.0.0.2:" PP_PORT
			: "--listen %.64s: give PORT, HOST:PORT or [IPV6]:PORT, such as " PP_PORT,
		arg);
	return -1;
}

/* ---- the node */

static int
take_ip(const char *arg, struct pp_opts *o, struct urn_err *err)
{
	static const uint8_t none[16];
	bool v6 = strchr(arg, ':') != NULL;

	if (o->have_ip[v6]) {
		urn_err_set(err,
			    "--ip %.64s: the node has an IPv%c address already; it has one of "
			    "each family",
			    arg, v6 ? '6' : '4');
		return -1;
	}
	if (inet_pton(v6 ? AF_INET6 : AF_INET, arg, v6 ? o->ipv6 : o->ipv4) != 1 ||
	    memcmp(v6 ? o->ipv6 : o->ipv4, none, v6 ? 16 : 4) == 0) {
		urn_err_set(err, "--ip %.64s: give an IPv4 or IPv6 address, such as 10.0.0.9", arg);
		return -1;
	}
	o->have_ip[v6] = true;
	return 0;
}

static int
take_mac(const char *arg, struct pp_opts *o, struct urn_err *err)
{
	unsigned int b[6];
	char end;

	if (strlen(arg) == 17 &&
	    sscanf(arg, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &end) == 6 &&
	    (b[0] & 1) == 0 && (b[0] | b[1] | b[2] | b[3] | b[4] | b[5]) != 0) {
		for (unsigned int i = 0; i < 6; i++)
			o->mac[i] = (uint8_t)b[i];
		return 0;
	}
	urn_err_set(err, "--mac %.32s: give the address of one node, such as 02:00:00:00:00:09",
		    arg);
	return -1;
}

/* ---- all of it */

/* Options that take a value. returns: 0, or -1 with *err */
static int
take_value(int id, const char *arg, struct pp_opts *o, struct pp_given *g, struct urn_err *err)
{
	switch (id) {
	case OPT_PEER:
	case OPT_LISTEN:
		return take_where(id, arg, o, g, err);
	case OPT_DEVICE:
		o->device = arg;
		return 0;
	case OPT_IP:
		return take_ip(arg, o, err);
	case OPT_GID:
		g->gid = true;
		return urn_opt_u8("gid", arg, 0, 2, &o->gid, err);
	case OPT_MAC:
		return take_mac(arg, o, err);
	case OPT_SIZE:
		return urn_opt_size32("size", arg, 1, PP_MAX_SIZE, &o->size, err);
	case OPT_ITERS:
		return urn_opt_size32("iters", arg, 1, 1000000000, &o->iters, err);
	case OPT_MTU:
		return urn_opt_mtu(arg, &o->mtu, err);
	case OPT_RX_DEPTH:
		return urn_opt_size32("rx-depth", arg, 1, MAX_RX_DEPTH, &o->rx_depth, err);
	case OPT_TIMEOUT:
		return urn_opt_u8("timeout", arg, 0, 31, &o->timeout, err);
	case OPT_WAIT:
		return urn_opt_time("wait", arg, 1000000, MAX_WAIT_NS, &o->wait_ns, err);
	case OPT_LINGER:
		return urn_opt_time("linger", arg, 0, MAX_WAIT_NS, &o->linger_ns, err);
	case OPT_IDLE:
		return urn_opt_idle(arg, &o->idle, err);
	default:
		o->capture = arg;
		return 0;
	}
}

static enum pp_parse
take_option(int id, char **argv, struct pp_opts *o, struct pp_given *g, struct urn_err *err)
{
	switch (id) {
	case OPT_HELP:
		fputs(pp_help, stdout);
		return PP_EXIT_OK;
	case OPT_VERSION:
		puts("urnic-pingpong " URN_VERSION);
		return PP_EXIT_OK;
	case OPT_NO_CHECK:
		o->no_check = true;
		return PP_RUN;
	case OPT_JSON:
		o->json = true;
		return PP_RUN;
	case '?':
	case ':':
		urn_opt_bad(id, argv[optind - 1], "--help", err);
		return PP_EXIT_USAGE;
	default:
		return take_value(id, optarg, o, g, err) ? PP_EXIT_USAGE : PP_RUN;
	}
}

/* Refuse missing options, and options that do not fit each other. */
static int
check_together(const struct pp_opts *o, const struct pp_given *g, struct urn_err *err)
{
	if (!g->where)
		urn_err_set(err,
			    "say where the peer is: --peer HOST[:PORT], or --listen [HOST:]PORT "
			    "to wait for it");
	else if (o->device == NULL || *o->device == '\0')
		urn_err_set(err, "say which port to use: --device net_tap0,iface=urn0 or "
				 "net_af_packet0,iface=eth0; doc/reference/ports.md has more");
	else if (o->gid != 0 && !o->have_ip[o->gid - 1])
		urn_err_set(err,
			    "the node has no IPv%c address; give one with --ip, one that the "
			    "kernel does not use",
			    o->gid == 2 ? '6' : '4');
	else if (o->capture != NULL && *o->capture == '\0')
		urn_err_set(err, "--capture: the name of the file is empty");
	else
		return 0;
	return -1;
}

enum pp_parse
pp_options_parse(int argc, char **argv, struct pp_opts *o, struct urn_err *err)
{
	struct pp_given g = {0};
	enum pp_parse rc;
	int id;

	*o = (struct pp_opts){.service = PP_PORT,
			      .size = 4096,
			      .iters = 1000,
			      .mtu = 1024,
			      .rx_depth = 500,
			      .timeout = 14,
			      .idle = URN_IDLE_PAUSE,
			      .wait_ns = 10000000000ull,
			      .linger_ns = 200000000ull};
	optind = 0; /* glibc: start over, for a caller that parses twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		rc = take_option(id, argv, o, &g, err);
		if (rc != PP_RUN)
			return rc;
	}
	if (optind < argc) {
		urn_err_set(err, "%.32s is one word too many; --help lists the options",
			    argv[optind]);
		return PP_EXIT_USAGE;
	}
	if (!g.gid)
		o->gid = o->have_ip[1] && !o->have_ip[0] ? 2 : 1;
	return check_together(o, &g, err) ? PP_EXIT_USAGE : PP_RUN;
}
