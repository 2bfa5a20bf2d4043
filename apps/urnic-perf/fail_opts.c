/* SPDX-License-Identifier: BSD-3-Clause */
/* Options about a side with a session, and about the loss of its primary adapter. */
#include "options.h"

#include <stdio.h>
#include <string.h>

int
perf_session_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;

	if (*arg == '\0') {
		urn_err_set(err, "--%s: name the two adapters: SOCKET[:ADAPTER],SOCKET[:ADAPTER]",
			    row->name);
		return -1;
	}
	/* A side with a session is attached, to two dataplanes. */
	o->session = o->attach = arg;
	return 0;
}

int
perf_fail_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;
	const char *colon = strchr(arg, ':');
	char time[32];

	if (colon != NULL && (size_t)(colon - arg) >= sizeof(time)) {
		urn_err_set(err, "--%s %.32s: give a time, and behind a colon how", row->name, arg);
		return -1;
	}
	snprintf(time, sizeof(time), "%.*s", colon != NULL ? (int)(colon - arg) : 31, arg);
	o->fails = true;
	if (urn_opt_time(row->name, time, 1000000, UINT64_MAX / 2, &o->fail_ns, err) != 0)
		return -1;
	return urn_loss_parse(row->name, colon != NULL ? colon + 1 : NULL, &o->loss, err);
}

/* Check the options about a session. */
static int
check_session(const struct perf_opts *o, const struct perf_fail_given *g, struct urn_err *err)
{
	if (o->session == NULL)
		return 0;
	if (g->attach || g->node)
		urn_err_set(err, "--session names the adapters; leave --attach and --node out");
	else if (o->role == PERF_BOTH)
		urn_err_set(err, "--session is for one side; give --listen or --peer, too");
	else if (o->ud || (g->srq && o->use_srq))
		urn_err_set(err,
			    "datagrams, and queue pairs with a shared receive queue, have no "
			    "session; leave %s out",
			    o->ud ? "--ud" : "--srq yes");
	else
		return 0;
	return -1;
}

int
perf_fail_check(const struct perf_opts *o, const struct perf_fail_given *g, struct urn_err *err)
{
	if (check_session(o, g, err) != 0)
		return -1;
	if (!o->fails && (o->plot != NULL || o->progress != NULL))
		urn_err_set(err, "--%s the run of --fail-at; give that, too",
			    o->plot != NULL ? "plot draws" : "progress writes");
	else if (o->progress != NULL && *o->progress == '\0')
		urn_err_set(err, "--progress: the name of the file is empty");
	else if (o->plot != NULL && urn_plot_kind(o->plot) == URN_PLOT_NONE)
		urn_err_set(err, "--plot %.80s: give the name of a .png or .svg file", o->plot);
	else if (!o->fails)
		return 0;
	else if (o->session == NULL || o->role != PERF_ASKS)
		urn_err_set(err, "--fail-at is for the side with --peer and --session");
	else if (o->by_cm)
		urn_err_set(err, "connection management is the primary adapter's, which is lost; "
				 "leave --connect cm out");
	else if (g->iters || o->fail_ns >= o->duration_ns)
		urn_err_set(err, "--fail-at has to be before the end; give a longer --duration");
	else
		return 0;
	return -1;
}
