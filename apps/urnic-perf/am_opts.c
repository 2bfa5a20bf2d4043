/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of active messages and of remote memory access: defaults, and combinations that make no
 * sense. */
#include "options.h"

#include "abi/am.h"

#include <string.h>

#define EVERY_TRANSFER 255u
#define REQUESTS 64u		     /* requests without an answer, by default */
#define REQUESTS_MIN 4u		     /* ... with a large payload */
#define REQUESTS_MAX 4096u	     /* limit of an endpoint */
#define PAYLOAD_BYTES (4ull << 20)   /* payloads of all requests without an answer, by default */
#define QUEUE_BYTES_MAX (256u << 20) /* payloads of a queue of requests */

const char *const perf_way_names[] = {"auto", "direct", "pipelined", "tagged", NULL};

int
perf_every_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;
	uint32_t n;

	if (strcmp(arg, "packet") == 0)
		o->every = 0;
	else if (strcmp(arg, "transfer") == 0)
		o->every = EVERY_TRANSFER;
	else if (urn_opt_u32(row->name, arg, 1, EVERY_TRANSFER - 1, &n, err) == 0)
		o->every = (uint8_t)n;
	else
		return -1;
	return 0;
}

static uint32_t
default_requests(uint64_t size)
{
	uint32_t n = REQUESTS;

	while (n > REQUESTS_MIN && n * size > PAYLOAD_BYTES)
		n /= 2;
	return n;
}

void
perf_am_defaults(struct perf_opts *o, const struct perf_am_given *g)
{
	if (perf_op_is_am(o->op) && !perf_op_is_lat(o->op) && !g->depth)
		o->depth = default_requests(o->size);
	o->qps = 1;
	if (o->prepare) /* a lane holds any bytes at first */
		o->fill = true;
	/* A vectored operation does not say how often its writes are replied to. */
	if (perf_op_is_am(o->op) || o->every)
		o->chain = 1;
}

/* True when each message of an operation may be written whole by the sender. */
static bool
may_fill(enum perf_op op)
{
	return op == PERF_AM_RATE || op == PERF_AM_PAYLOAD || op == PERF_WRITE_SEND_BW;
}

/* Refuse options of these operations that make no sense with another one. */
static int
check_other(const struct perf_opts *o, const struct perf_am_given *g, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (g->way && !perf_op_is_rma(o->op))
		urn_err_set(err, "--rma goes with rma_write_bw and the like, not with %s", name);
	else if (g->every && (!perf_op_is_rma(o->op) || perf_op_is_read(o->op)))
		urn_err_set(err,
			    "--reply-every goes with rma_write_bw and rma_write_lat, not with %s",
			    name);
	else if (g->prepare && (!may_fill(o->op) || !perf_op_is_am(o->op)))
		urn_err_set(err, "--prepare goes with am_rate and am_payload, not with %s", name);
	else if (g->fill && !may_fill(o->op))
		urn_err_set(err,
			    "--fill goes with am_rate, am_payload and write_send_bw, not with %s",
			    name);
	else
		return 0;
	return -1;
}

static int
check_sizes(const struct perf_opts *o, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (perf_op_is_am(o->op) && (o->size < PERF_MSG_MIN || o->size > PERF_AM_MAX))
		urn_err_set(err, "%s has payloads of %u bytes to %u; give such a --size", name,
			    PERF_MSG_MIN, PERF_AM_MAX);
	else if (o->size == 0)
		urn_err_set(err, "%s needs at least 1 byte; give --size 1 or more", name);
	else if (perf_op_is_am(o->op) && o->depth > REQUESTS_MAX)
		urn_err_set(err,
			    "an endpoint has at most %u requests without an answer; give a "
			    "smaller --depth",
			    REQUESTS_MAX);
	else if (perf_op_is_am(o->op) && o->depth * o->size > QUEUE_BYTES_MAX)
		urn_err_set(err,
			    "a queue of %u requests of %llu bytes is too large; give a smaller "
			    "--depth",
			    o->depth, (unsigned long long)o->size);
	else if (perf_op_is_rma(o->op) && o->depth > (uint32_t)URN_AM_ENTRIES_MAX)
		urn_err_set(err,
			    "an endpoint has at most %d operations under way; give a smaller "
			    "--depth",
			    URN_AM_ENTRIES_MAX);
	else
		return 0;
	return -1;
}

int
perf_am_check(const struct perf_opts *o, const struct perf_am_given *g, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (check_other(o, g, err) != 0)
		return -1;
	if (!perf_op_is_rma(o->op) && !perf_op_is_am(o->op))
		return 0;
	if (g->verbs || o->idle_qps > 0 || o->show_mem)
		urn_err_set(err, "%s has no queue pairs; leave the options of queue pairs out",
			    name);
	else if (o->with_limit || o->foreign)
		urn_err_set(err,
			    "--with-limit and --foreign go with operations of queue pairs, not "
			    "with %s",
			    name);
	else
		return check_sizes(o, err);
	return -1;
}
