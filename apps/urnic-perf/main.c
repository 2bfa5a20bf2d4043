/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf: measures the data path between two nodes of one process. */
#include "crc.h"
#include "idle.h"
#include "perf.h"
#include "stream.h"

#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Results of a run; too large for the stack. */
struct results {
	struct result own, limit, other_half;
};

/*
 * Measure an operation between two halves of its limit: other load of the
 * machine, and the order of packets in memory, then affect both alike.
 */
static int
measure_with_limit(struct rig *rig, const struct perf_opts *o, struct results *r,
		   struct urn_err *err)
{
	struct perf_opts half = *o;

	half.duration_ns = o->duration_ns / 2;
	half.iters = (o->iters + 1) / 2;
	if (limit_run(rig, &half, &r->limit, err) || verbs_run(rig, o, &r->own, err) ||
	    limit_run(rig, &half, &r->other_half, err))
		return -1;
	result_merge(&r->limit, &r->other_half);
	return 0;
}

static int
measure(struct rig *rig, const struct perf_opts *o, struct results *r, struct urn_err *err)
{
	if (o->role != PERF_BOTH)
		return two_run(rig, o, &r->own, err);
	if (o->op == PERF_CONNECT)
		return conn_run(rig, o, err);
	if (o->op == PERF_ALIGNED_TABLE)
		return aligned_run(rig, o, err);
	if (o->op == PERF_LIMIT)
		return limit_run(rig, o, &r->own, err);
	if (o->op == PERF_MEMCPY)
		return memcpy_run(rig, o, &r->own, err);
	if (perf_op_is_msg(o->op))
		return msg_run(rig, o, &r->own, err);
	if (perf_op_is_rma(o->op) || perf_op_is_am(o->op))
		return am_run(rig, o, &r->own, err);
	if (o->with_limit)
		return measure_with_limit(rig, o, r, err);
	return verbs_run(rig, o, &r->own, err);
}

static int
fail(const struct urn_err *err)
{
	fprintf(stderr, "urnic-perf: %s\n", err->text);
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_FAILED;
}

/* Draw the plot of a run that lost an adapter, and write its progress. returns: 0, or -1 with *err:
 * it lost none, or a file could not be written */
static int
tell_failover(const struct perf_opts *o, const struct urn_failover *f, struct urn_err *err)
{
	if (o->plot != NULL && urn_failover_plot(f, o->plot, err) != 0)
		return -1;
	if (o->progress != NULL && urn_failover_progress(f, o->progress, err) != 0)
		return -1;
	return urn_failover_judge(f, err);
}

/* Print the results. returns: the exit code */
static int
tell(const struct perf_opts *o, const struct results *r, uint64_t capture_lost)
{
	struct urn_err err = {{0}};

	/* Operations that print their results themselves are left out. */
	if (o->op != PERF_CONNECT && o->op != PERF_ALIGNED_TABLE && o->role != PERF_LISTENS)
		report(o, &r->own, o->with_limit ? &r->limit : NULL, capture_lost);
	if (ferror(stdout)) {
		urn_err_set(&err, "the results could not be written");
		return fail(&err);
	}
	if (r->own.failover != NULL && tell_failover(o, r->own.failover, &err) != 0)
		return fail(&err);
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_SUCCESS;
}

/* Measure between two nodes of a dataplane in another process, or above two on each side. */
static int
measure_attached(struct perf_opts *o, struct urn_failover *f, struct results *r,
		 struct urn_err *err)
{
	struct rig rig;

	if (o->session != NULL && urn_session_use(o->session, err) != 0)
		return -1;
	if (f != NULL && urn_failover_prepare(f, &o->loss, err) != 0)
		return -1;
	if (!perf_op_is_flow(o->op) && perf_settle_mtu(o, err) != 0)
		return -1;
	rig_attach(&rig);
	rig.failover = f;
	r->own.failover = f;
	return measure(&rig, o, r, err);
}

static int
run_attached(struct perf_opts *o, struct results *r)
{
	static struct urn_failover failover = {.loss = {.fd = -1}};
	struct urn_err err = {{0}};
	int rc;

	rc = measure_attached(o, o->fails ? &failover : NULL, r, &err) != 0 ? fail(&err)
									    : tell(o, r, 0);
	if (o->fails)
		urn_failover_close(&failover);
	return rc;
}

static int
run(struct perf_opts *o, struct results *r)
{
	struct urn_err err = {{0}}, close_err = {{0}};
	uint64_t capture_lost;
	struct rig rig;
	int rc;

	if (o->attach != NULL)
		return run_attached(o, r);
	rc = rig_open(&rig, o, &err);
	if (rc == 0)
		rc = measure(&rig, o, r, &err);
	perf_wire_get(&rig.wire, &r->own.wire);
	if (rig_close(&rig, &capture_lost, &close_err) && rc == 0) {
		rc = -1;
		err = close_err;
	}
	return rc != 0 ? fail(&err) : tell(o, r, capture_lost);
}

int
main(int argc, char **argv)
{
	struct urn_err err = {{0}};
	struct results *r;
	struct perf_opts o;
	int rc;

	/* idle: attached, without traffic; crc: without a dataplane; stream: attached, calls wait.
	 */
	if (argc > 1 && strcmp(argv[1], "idle") == 0)
		return idle_main(argc, argv);
	if (argc > 1 && strcmp(argv[1], "crc") == 0)
		return crc_main(argc, argv);
	if (argc > 1 && (strcmp(argv[1], "stream_bw") == 0 || strcmp(argv[1], "stream_lat") == 0))
		return stream_main(argc, argv);
	switch (perf_options_parse(argc, argv, &o, &err)) {
	case PERF_EXIT_OK:
		return EXIT_SUCCESS;
	case PERF_EXIT_USAGE:
		fprintf(stderr, "urnic-perf: %s\n", err.text);
		return EXIT_USAGE;
	default:
		break;
	}
	urn_stop_install();
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		urn_err_set(&err, "no memory for results");
		return fail(&err);
	}
	rc = run(&o, r);
	free(r);
	return rc;
}
