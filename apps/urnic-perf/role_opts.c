/* SPDX-License-Identifier: BSD-3-Clause */
/* Options about the sides that this process runs, their nodes, and how the two sides meet. */
#include "options.h"

#include <stdio.h>
#include <string.h>

/* Port of ibv_rc_pingpong, because urnic-perf has none of its own. */
#define DEFAULT_PORT "18515"

int
perf_where_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;
	const char *host = arg, *port;
	bool bracket = arg[0] == '[';
	size_t len;

	if (o->role != PERF_BOTH) {
		urn_err_set(err, "give one of --listen and --peer, once");
		return -1;
	}
	o->role = (enum perf_role)row->id;
	if (bracket) {
		host = arg + 1;
		len = strcspn(host, "]");
		port = host[len] == ']' && host[len + 1] == ':' ? host + len + 2 : NULL;
		if (host[len] != ']' || (host[len + 1] != '\0' && port == NULL))
			len = 0;
	} else {
		port = strrchr(arg, ':');
		len = port != NULL ? (size_t)(port - arg) : strlen(arg);
		port = port != NULL ? port + 1 : NULL;
		if (port == NULL && o->role == PERF_LISTENS) {
			port = arg;
			len = 0;
		}
	}
	if ((len == 0 && (bracket || o->role == PERF_ASKS)) || len >= sizeof(o->host) ||
	    (port != NULL && (*port == '\0' || strlen(port) >= sizeof(o->port)))) {
		urn_err_set(err, "--%s %.80s: give %s", row->name, arg,
			    o->role == PERF_LISTENS ? "a port, or HOST:PORT" : "HOST or HOST:PORT");
		return -1;
	}
	snprintf(o->host, sizeof(o->host), "%.*s", (int)len, host);
	snprintf(o->port, sizeof(o->port), "%s", port != NULL ? port : DEFAULT_PORT);
	return 0;
}

int
perf_node_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;

	(void)row;
	if (*arg != '\0' && strlen(arg) < sizeof(o->node[0])) {
		snprintf(o->node[0], sizeof(o->node[0]), "%s", arg);
		snprintf(o->node[1], sizeof(o->node[1]), "%s", arg);
		return 0;
	}
	urn_err_set(err, "--node %.32s: give the name of a node or an adapter", arg);
	return -1;
}

int
perf_role_check(const struct perf_opts *o, const struct perf_role_given *g, struct urn_err *err)
{
	if (o->role == PERF_BOTH && g->node)
		urn_err_set(err, "--node is for one side; give --nodes A,B, or --listen or --peer");
	else if (o->role == PERF_BOTH && g->connect && (o->op != PERF_CONNECT || !o->by_cm))
		urn_err_set(err, o->op == PERF_CONNECT
					 ? "connect measures connection management; leave --connect oob out"
					 : "--connect is for two processes; give --listen or --peer, too");
	else if (o->role == PERF_BOTH)
		return 0;
	else if (o->attach == NULL)
		urn_err_set(err, "--listen and --peer are for clients of a dataplane; give --attach, too");
	else if (g->nodes)
		urn_err_set(err, "--nodes is for both sides in one process; give --node");
	else if (perf_op_is_flow(o->op) || o->op == PERF_WRITE_SEND_BW)
		urn_err_set(err, "%s has both nodes in one process; give --nodes", perf_op_name(o->op));
	else if (o->op == PERF_CONNECT || o->idle_qps > 0)
		urn_err_set(err, "connect and --idle-qps are for both sides in one process; leave --listen "
				 "and --peer out");
	else if (o->role == PERF_LISTENS && g->measured)
		urn_err_set(err,
			    "the side with --peer decides on the measurement, and the listener "
			    "follows; give these options there");
	else
		return 0;
	return -1;
}
