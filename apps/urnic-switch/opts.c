/* SPDX-License-Identifier: BSD-3-Clause */
#include "opts.h"

#include "common/option_table.h"
#include "common/text.h"
#include "switch/impair_words.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define MIN_TIME_NS 1000000u
#define MAX_TIME_NS (86400ull * 366 * 1000000000)
#define DEFAULT_MBUFS 4096u
#define NO_LEARNING 1 /* id of --no-learning among the rows of the schema */
#define NO_PFC 2      /* ... of --no-pfc */
#define DSCP 3	      /* ... of --dscp */

static const char help[] =
	"Usage: urnic-switch --port [NAME=]DEVICE --port [NAME=]DEVICE... [OPTION...]\n"
	"\n"
	"An Ethernet switch between ports, with impairments by seed. Runs until a signal\n"
	"or --duration ends it, and then prints its counters; on SIGUSR1, too.\n"
	"\n"
	"DEVICE is one of\n"
	"  tap:NAME           a new interface of this host's kernel\n"
	"  memif:PATH[,client]  shared memory to another process; PATH is the socket\n"
	"  af_packet:NAME     an interface that is there, by a packet socket\n"
	"  af_xdp:NAME        ... by AF_XDP\n"
	"  dev:DEVICE         anything else that DPDK knows: a PCI address, net_null0\n"
	"\n";

static const char help_list[] = "\n"
				"LIST is one or more of these, with commas between them:\n";

static const char help_end[] =
	"\n"
	"Exit code: 0 done, 1 failed, 2 bad option, 128 + N ended by signal N.\n";

static int
find_switch(const struct sw_opts *o, const char *name, size_t n)
{
	for (unsigned int i = 0; i < o->sws; i++) {
		if (strlen(o->sw[i]) == n && strncmp(o->sw[i], name, n) == 0)
			return (int)i;
	}
	return -1;
}

static int
find_port(const struct sw_opts *o, const char *name, size_t n)
{
	for (unsigned int i = 0; i < o->ports; i++) {
		if (strlen(o->port[i].name) == n && strncmp(o->port[i].name, name, n) == 0)
			return (int)i;
	}
	return -1;
}

static int
name_switch(struct sw_opts *o, const char *arg, struct urn_err *err)
{
	if (!urn_config_is_name(arg, strlen(arg)))
		urn_err_set(err, "--switch %.32s: give a name of 1 to 15 letters, digits, _ or -",
			    arg);
	else if (find_switch(o, arg, strlen(arg)) >= 0)
		urn_err_set(err, "--switch %.32s: there is one of that name", arg);
	else if (o->sws == URN_FABRIC_MAX_SWITCHES)
		urn_err_set(err, "--switch %.32s: %u switches are the most", arg, o->sws);
	else {
		snprintf(o->sw[o->sws++], URN_CONFIG_NAME, "%s", arg);
		return 0;
	}
	return -1;
}

static int
take_switch(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	(void)row;
	return name_switch(to, arg, err);
}

/* Add the port that was filled in, if its name is free. returns: 0, or -1 with *err */
static int
add_port(struct sw_opts *o, struct urn_err *err)
{
	const struct sw_port_opts *p = &o->port[o->ports];

	if (find_port(o, p->name, strlen(p->name)) >= 0) {
		urn_err_set(err, "two ports are called %s; give one another name: --port NAME=...",
			    p->name);
		return -1;
	}
	o->ports++;
	return 0;
}

static int
take_port(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	struct sw_port_opts *p = &o->port[o->ports];
	const char *equals = strchr(arg, '='), *colon = strchr(arg, ':');
	const char *spec = arg;

	(void)row;
	if (o->devices == SW_MAX_PORTS) {
		urn_err_set(err, "--port %.48s: %u ports are the most", arg, SW_MAX_PORTS);
		return -1;
	}
	if (o->sws == 0 && name_switch(o, "s0", err))
		return -1;
	memset(p, 0, sizeof(*p));
	/* An = before the first colon ends a name; a later one belongs to the device's arguments. */
	if (equals && (!colon || equals < colon))
		spec = equals + 1;
	if (sw_device(spec, o->devices, p->device, p->name, err))
		return -1;
	if (spec != arg) {
		if (!urn_config_is_name(arg, (size_t)(equals - arg))) {
			urn_err_set(err,
				    "--port %.48s: give a name of 1 to 15 letters, digits, _ "
				    "or -",
				    arg);
			return -1;
		}
		snprintf(p->name, sizeof(p->name), "%.*s", (int)(equals - arg), arg);
	}
	p->sw = o->sws - 1;
	if (add_port(o, err))
		return -1;
	o->devices++;
	return 0;
}

static int
take_link(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	const char *comma = strchr(arg, ',');
	int end[2] = {-1, -1};

	(void)row;
	if (comma) {
		end[0] = find_switch(o, arg, (size_t)(comma - arg));
		end[1] = find_switch(o, comma + 1, strlen(comma + 1));
	}
	if (end[0] < 0 || end[1] < 0 || end[0] == end[1]) {
		urn_err_set(err,
			    "--link %.32s: give two switches that --switch named before, such "
			    "as s0,s1",
			    arg);
		return -1;
	}
	if (o->links == SW_MAX_LINKS) {
		urn_err_set(err, "--link %.32s: so many links make a loop", arg);
		return -1;
	}
	for (int i = 0; i < 2; i++) {
		struct sw_port_opts *p = &o->port[o->ports];
		char name[sizeof(p->name)];

		snprintf(name, sizeof(name), "%s-%s", o->sw[end[i]], o->sw[end[1 - i]]);
		memset(p, 0, sizeof(*p));
		memcpy(p->name, name, sizeof(name));
		p->sw = (unsigned int)end[i];
		o->link[o->links].port[i] = o->ports;
		if (add_port(o, err))
			return -1;
	}
	o->links++;
	return 0;
}

static int
take_static(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	const char *comma = strchr(arg, ',');
	struct sw_static_opts *f = &o->fixed[o->fixeds];
	int port = comma ? find_port(o, arg, (size_t)(comma - arg)) : -1;

	(void)row;
	if (o->fixeds == SW_MAX_STATIC) {
		urn_err_set(err, "--static %.48s: %u addresses are the most", arg, SW_MAX_STATIC);
		return -1;
	}
	if (port < 0 || urn_config_parse_mac(comma + 1, strlen(comma + 1), f->mac)) {
		urn_err_set(err,
			    "--static %.48s: give a port that was named before and the MAC "
			    "address of one host, such as left,02:00:00:00:00:01",
			    arg);
		return -1;
	}
	f->port = (unsigned int)port;
	o->fixeds++;
	return 0;
}

static int
take_impair(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	const char *colon = strchr(arg, ':');
	bool way[2];
	size_t n = urn_config_direction(arg, colon ? (size_t)(colon - arg) : 0, way);
	int port = find_port(o, arg, n);

	(void)row;
	if (port < 0) {
		urn_err_set(err,
			    "--impair %.48s: give a port that was named before, a direction "
			    "if it is only one, and what happens: left.in:drop=1%%",
			    arg);
		return -1;
	}
	for (unsigned int d = 0; d < 2; d++)
		if (way[d] && urn_impair_take_list(&o->port[port].impair[d], colon + 1, err) != 0)
			return -1;
	return 0;
}

/* Take a value for all switches by the schema of [switch]. */
static int
take_key(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	struct urn_err why;

	if (row->id == NO_LEARNING)
		return urn_config_switch_take(&o->every, "learning", "no", err);
	if (row->id == NO_PFC)
		return urn_config_switch_take(&o->every, "pfc", "no", err);
	if (urn_config_switch_take(&o->every, row->name, arg, &why) == 0)
		return 0;
	urn_err_set(err, "--%s %.32s: %s", row->name, arg, why.text);
	return -1;
}

/* Take "PRIORITY:LIST" for a map of frames to priorities. */
static int
take_map(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	const char *colon = strchr(arg, ':');
	char priority[8] = "";

	if (colon && (size_t)(colon - arg) < sizeof(priority))
		memcpy(priority, arg, (size_t)(colon - arg));
	if (colon &&
	    urn_config_map(&o->every.sw.lossless.map, row->id == DSCP, priority, colon + 1) == 0)
		return 0;
	urn_err_set(err,
		    "--%s %.32s: give a priority from 0 to 7 and numbers from 0 to %u, such as "
		    "3:%s",
		    row->name, arg, row->id == DSCP ? URN_DSCPS - 1 : URN_PCPS - 1,
		    row->id == DSCP ? "26,48" : "3");
	return -1;
}

/* Take an address that is reached by a port. */
static int
take_route(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	const char *comma = strchr(arg, ',');
	struct sw_route_opts *r = &o->route[o->routes];
	int port = comma ? find_port(o, arg, (size_t)(comma - arg)) : -1;

	(void)row;
	if (o->routes == SW_MAX_STATIC) {
		urn_err_set(err, "--route %.48s: %u routes are the most", arg, SW_MAX_STATIC);
		return -1;
	}
	if (port < 0 || urn_config_parse_gid(comma + 1, strlen(comma + 1), r->gid) != 0) {
		urn_err_set(err,
			    "--route %.48s: give a port that was named before and an IP address, "
			    "such as left,10.0.0.1",
			    arg);
		return -1;
	}
	r->port = (unsigned int)port;
	o->routes++;
	return 0;
}

static int
take_core(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct sw_opts *o = to;
	cpu_set_t set;
	uint64_t v;

	(void)row;
	if (urn_text_parse_uint(arg, &v) == 0 && v < CPU_SETSIZE &&
	    sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_ISSET((size_t)v, &set)) {
		o->core = (int)v;
		return 0;
	}
	urn_err_set(err,
		    "--core %.32s: this process may not run there; see taskset -p $$ for the "
		    "cores it may use",
		    arg);
	return -1;
}

#define O(field) offsetof(struct sw_opts, field)
static const struct urn_option rows[] = {
	{"port", "[NAME=]DEVICE", NULL, take_port},
	{"switch", "NAME", "the ports behind it are of a switch of that name (s0)", take_switch},
	{"link", "A,B", "join two switches; its ends are the ports A-B and B-A", take_link},
	{"static", "PORT,MAC", "an address that is behind a port for good", take_static},
	{"no-learning", NULL, "static addresses only, the rest is flooded", take_key,
	 .id = NO_LEARNING},
	{"age", "T", "forget an address not seen for so long (300)", take_key},
	{"kmin", "BYTES",
	 "bytes that wait for a port up to which no frame gets a\ncongestion mark (5000)",
	 take_key},
	{"kmax", "BYTES", "... and above which each frame gets one; 0: none ever (0)", take_key},
	{"pmax", "P", "share of frames that get one just below kmax, percent (1)", take_key},
	{"route", "PORT,IP", "an IP address behind a port, for unknown MAC addresses", take_route},
	{"lossless", "LIST", "priorities that lose no frame: 3 or 3,4 (none)", take_key},
	{"dscp", "PRIORITY:LIST", "DSCPs of IP frames that have a priority", take_map, .id = DSCP},
	{"pcp", "PRIORITY:LIST", "code points of tags that have a priority", take_map},
	{"share", "SIZE", "bytes of an input for each output that do not count (64k)", take_key},
	{"xoff", "SIZE", "bytes above that at which a sender stops (256k)", take_key},
	{"xon", "SIZE", "... and at which it goes on (192k)", take_key},
	{"headroom", "SIZE", "bytes still on their way when it stops (256k)", take_key},
	{"queue", "SIZE", "bytes that wait in other priorities (4096 frames)", take_key},
	{"watchdog", "T", "drop frames of a priority that stands so long (200ms)", take_key},
	{"restore", "T", "... and ignore pauses until none came for so long (200ms)", take_key},
	{"no-pfc", NULL, "send no frames of flow control", take_key, .id = NO_PFC},
	{"impair", "PORT[.in|.out]:LIST",
	 "impairments of frames from the port into the\n"
	 "switch (in), from the switch to the port (out), or both",
	 take_impair},
	URN_OPTION_DURATION(struct sw_opts, duration_ns, MAX_TIME_NS, "end after a time", "never"),
	{"interval", "T", "print the counters every so often", urn_take_time, O(interval_ns),
	 .min = MIN_TIME_NS, .max = MAX_TIME_NS},
	{"json", NULL, "print them as JSON", urn_take_flag, O(json)},
	URN_OPTION_IDLE(struct sw_opts, idle, "sleep"),
	{"core", "N", "run on this core", take_core},
	{"mbufs", "N", "packets in each port's pool, 1024 to 1048576 (4096)", urn_take_u32,
	 O(mbufs), .min = 1024, .max = 1048576},
};

static const struct urn_options table = {rows, RTE_DIM(rows), 21, "--help"};

/* Refuse a command line without ports, or a switch without ports; config.c refuses loops. */
static int
check_together(const struct sw_opts *o, struct urn_err *err)
{
	bool used[URN_FABRIC_MAX_SWITCHES] = {false};
	char why[80];

	if (o->devices == 0) {
		urn_err_set(err, "give at least one port, such as --port tap:left; --help tells "
				 "more");
		return -1;
	}
	if (urn_mark_check(&o->every.sw.mark, why, sizeof(why)) != 0) {
		urn_err_set(err, "--kmin and --kmax: %s", why);
		return -1;
	}
	for (unsigned int i = 0; i < o->ports; i++)
		used[o->port[i].sw] = true;
	for (unsigned int i = 0; i < o->sws; i++) {
		if (!used[i]) {
			urn_err_set(err,
				    "--switch %s has no port; ports belong to the switch named "
				    "last before them",
				    o->sw[i]);
			return -1;
		}
	}
	return 0;
}

enum sw_parse
sw_opts_parse(int argc, char **argv, struct sw_opts *o, struct urn_err *err)
{
	uint64_t given;

	memset(o, 0, sizeof(*o));
	urn_config_switch_init(&o->every);
	o->mbufs = DEFAULT_MBUFS;
	o->idle = URN_IDLE_SLEEP;
	o->core = -1;
	switch (urn_options_parse(&table, argc, argv, o, &given, err)) {
	case URN_OPTIONS_HELP:
		fputs(help, stdout);
		urn_options_help(&table, stdout);
		printf("%s%s%s", help_list, urn_impair_keys, help_end);
		return SW_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-switch " URN_VERSION);
		return SW_EXIT_OK;
	case URN_OPTIONS_BAD:
		return SW_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	if (optind < argc) {
		urn_err_set(err, "%.32s is one word too many; --help tells how", argv[optind]);
		return SW_EXIT_USAGE;
	}
	if (!urn_lossless_check(&o->every.sw.lossless)) {
		urn_err_set(err, "--xon is more than --xoff: give less, or raise the other");
		return SW_EXIT_USAGE;
	}
	return check_together(o, err) ? SW_EXIT_USAGE : SW_RUN;
}
