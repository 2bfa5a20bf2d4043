/* SPDX-License-Identifier: BSD-3-Clause */
#include "pp.h"

#include "common/option_table.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define MAX_RX_DEPTH 32768u /* limit of a queue (doc/reference/verbs.md) */
#define LISTEN 1	    /* id of --listen among the rows that say where the peer is */
#define MAX_WAIT_NS (3600ull * 1000000000ull)

static const char help[] =
	"usage: urnic-pingpong --peer HOST[:PORT] --device DEVICE --ip ADDRESS [option...]\n"
	"       urnic-pingpong --listen [HOST:]PORT --device DEVICE --ip ADDRESS [option...]\n"
	"\n"
	"Sends messages to and fro with ibv_rc_pingpong of another RDMA stack, or with another\n"
	"urnic-pingpong, and compares the answers byte for byte. The two meet over TCP, which\n"
	"is the kernel's; RoCEv2 goes over the port. --size, --iters and --mtu must be the same\n"
	"at both.\n"
	"\n";

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
take_where(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct pp_opts *o = to;

	if (o->where) {
		urn_err_set(err, "give one of --peer and --listen, once");
		return -1;
	}
	o->where = true;
	o->listen = row->id == LISTEN;
	if (*arg != '\0' && split_where(arg, !o->listen, o) == 0)
		return 0;
	urn_err_set(
		err,
		!o->listen
			? "--peer %.64s: give HOST, HOST:PORT or [IPV6]:PORT, such as "
			  "10.0.0.2:" PP_PORT
			: "--listen %.64s: give PORT, HOST:PORT or [IPV6]:PORT, such as " PP_PORT,
		arg);
	return -1;
}

/* ---- the node */

static int
take_ip(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct pp_opts *o = to;
	static const uint8_t none[16];
	bool v6 = strchr(arg, ':') != NULL;

	(void)row;
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
take_mac(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct pp_opts *o = to;
	unsigned int b[6];
	char end;

	(void)row;
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

#define O(field) offsetof(struct pp_opts, field)
static const struct urn_option rows[] = {
	{"peer", "HOST[:PORT]", "the peer to connect to over TCP (port 18515)", take_where},
	{"listen", "[HOST:]PORT", "where to wait for the peer", take_where, .id = LISTEN},
	{"device", "DEVICE",
	 "the port, as in doc/reference/ports.md: net_tap0,iface=urn0 or\n"
	 "net_af_packet0,iface=eth0",
	 urn_take_text, O(device)},
	{"ip", "ADDRESS",
	 "address of the node, IPv4 or IPv6, not the kernel's; one of each\n"
	 "may be given",
	 take_ip},
	{"gid", "N", "GID to use: 0 link-local, 1 IPv4, 2 IPv6 (that of --ip)", urn_take_u8, O(gid),
	 .max = 2},
	{"mac", "MAC", "MAC address (the port's)", take_mac},
	{"size", "N", "bytes a message, 1..1G (4096)", urn_take_size32, O(size), .min = 1,
	 .max = PP_MAX_SIZE},
	{"iters", "N", "messages each way, 1 to 1000000000 (1000)", urn_take_size32, O(iters),
	 .min = 1, .max = 1000000000},
	URN_OPTION_MTU(struct pp_opts, mtu, "1024"),
	{"rx-depth", "N", "receives posted, 1..32768 (500)", urn_take_size32, O(rx_depth), .min = 1,
	 .max = MAX_RX_DEPTH},
	URN_OPTION_TIMEOUT(struct pp_opts, timeout, "14"),
	{"wait", "T", "how long to wait for the peer, and without progress (10)", urn_take_time,
	 O(wait_ns), .min = 1000000, .max = MAX_WAIT_NS},
	{"linger", "T",
	 "leave when nothing has come for so long: the peer may have\n"
	 "lost our last acknowledgement and ask again (200ms)",
	 urn_take_time, O(linger_ns), .max = MAX_WAIT_NS},
	URN_OPTION_IDLE(struct pp_opts, idle, "pause"),
	{"no-check", NULL, "do not compare the answers", urn_take_flag, O(no_check)},
	URN_OPTION_CAPTURE(struct pp_opts, capture, "the port"),
	URN_OPTION_JSON(struct pp_opts, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 24, "--help"};

/* Refuse missing options, and options that do not fit each other. */
static int
check_together(const struct pp_opts *o, struct urn_err *err)
{
	if (!o->where)
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
	uint64_t given;

	*o = (struct pp_opts){.service = PP_PORT,
			      .size = 4096,
			      .iters = 1000,
			      .mtu = 1024,
			      .rx_depth = 500,
			      .timeout = 14,
			      .idle = URN_IDLE_PAUSE,
			      .wait_ns = 10000000000ull,
			      .linger_ns = 200000000ull};
	switch (urn_options_parse(&table, argc, argv, o, &given, err)) {
	case URN_OPTIONS_HELP:
		fputs(help, stdout);
		urn_options_help(&table, stdout);
		return PP_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-pingpong " URN_VERSION);
		return PP_EXIT_OK;
	case URN_OPTIONS_BAD:
		return PP_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	if (optind < argc) {
		urn_err_set(err, "%.32s is one word too many; --help lists the options",
			    argv[optind]);
		return PP_EXIT_USAGE;
	}
	if (!urn_options_given(&table, given, "gid"))
		o->gid = o->have_ip[1] && !o->have_ip[0] ? 2 : 1;
	return check_together(o, err) ? PP_EXIT_USAGE : PP_RUN;
}
