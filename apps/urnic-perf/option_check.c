/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that make no sense together. */
#include "options_priv.h"

/* True when this build counts cycles by stage. */
static bool
stages_built(void)
{
#ifdef URN_STAGES_ON
	return true;
#else
	return false;
#endif
}

/* Refuse combinations of operation and wire that make no sense. */
static int
check_link(const struct perf_opts *o, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (o->link == PERF_NULL && (o->op != PERF_LIMIT || o->lat))
		urn_err_set(err,
			    "%s%s needs a link that delivers; --link null joins nothing and "
			    "is for limit without --lat",
			    name, o->lat ? " --lat" : "");
	else if (o->op == PERF_MEMCPY && o->wire.on)
		urn_err_set(err, "memcpy goes over no link; leave out --switch and its options");
	else if (o->wire.on && o->link == PERF_NULL)
		urn_err_set(err,
			    "--link null has nothing to switch; leave it out, or --switch and what "
			    "goes with it");
	else if (o->wire.impaired && (o->op == PERF_LIMIT || o->with_limit))
		urn_err_set(err, "limit repeats nothing that is lost; give --switch alone with %s",
			    o->with_limit ? "--with-limit" : "it");
	else
		return 0;
	return -1;
}

/* Refuse combinations of operation and measurement that make no sense. */
static int
check_op(const struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);
	bool bare = o->op == PERF_LIMIT || o->op == PERF_MEMCPY || o->op == PERF_CONNECT;

	if (o->conns != 0 && o->op != PERF_CONNECT)
		urn_err_set(err, "--conns goes with connect, not with %s; give --qps", name);
	else if (o->op == PERF_CONNECT && (g->size || g->depth || g->iters || g->duration ||
					   o->hist || o->show_mem || o->idle_qps))
		urn_err_set(err,
			    "connect only sets up connections; of how much there is to do it takes "
			    "--conns");
	else if (perf_op_is_atomic(o->op) && o->size != 8)
		urn_err_set(err, "%s moves 8 bytes a message; leave --size out", name);
	else if (o->size == 0 && (o->op == PERF_WRITE_LAT || bare))
		urn_err_set(err, "%s needs at least 1 byte a message; give --size 1 or more", name);
	else if (g->depth && (perf_op_is_lat(o->op) || o->lat))
		urn_err_set(err, "%s has one message in flight; leave --depth out", name);
	else if (o->op != PERF_LIMIT && (o->lat || o->no_sender_copy))
		urn_err_set(err, "--lat and --no-sender-copy go with limit, not with %s", name);
	else if (bare && o->with_limit)
		urn_err_set(err, "%s is a limit already; leave --with-limit out", name);
	else if (bare && o->foreign)
		urn_err_set(err, "--foreign goes with operations, not with %s", name);
	else if (o->op == PERF_WRITE_SEND_BW && (o->size == 0 || g->srq))
		urn_err_set(err, "%s needs at least 1 byte a message, and no shared queue", name);
	else if (o->op == PERF_WRITE_SEND_BW && o->with_limit)
		urn_err_set(err, "limit has no second message; leave --with-limit out");
	else if (bare && o->stages)
		urn_err_set(err, "--stages goes with operations, not with %s", name);
	else
		return 0;
	return -1;
}

/* Refuse combinations of options that make no sense for any operation. */
static int
check_together(const struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	if (g->iters && g->duration)
		urn_err_set(err, "--iters and --duration exclude each other; give one");
	else if (g->no_check && g->full_check)
		urn_err_set(err, "--no-check and --full-check exclude each other; give one");
	else if (o->capture != NULL && *o->capture == '\0')
		urn_err_set(err, "--capture: the name of the file is empty");
	else if (o->stages && !stages_built())
		urn_err_set(err, "--stages: this build counts no cycles; make one that does with "
				 "meson setup build-stages -Dstages=true");
	else if ((uint64_t)o->qps * o->depth > PERF_MAX_IN_FLIGHT)
		urn_err_set(err,
			    "%u QPs with depth %u are over %u requests in flight; give a "
			    "smaller --depth",
			    o->qps, o->depth, PERF_MAX_IN_FLIGHT);
	else
		return 0;
	return -1;
}

/* Refuse options that a running dataplane has already decided. */
static int
check_attached(const struct perf_opts *o, struct urn_err *err)
{
	if (o->attach == NULL)
		return 0;
	if (o->op == PERF_LIMIT || o->op == PERF_MEMCPY || o->with_limit)
		urn_err_set(err, "limit and memcpy have ports of their own; leave --attach out");
	else if (o->wire.on || o->capture != NULL || o->link != PERF_RING || o->no_icrc ||
		 o->go_back_n)
		urn_err_set(
			err,
			"--attach: link, switch, capture, ICRC and recovery are the dataplane's; "
			"set them in its configuration");
	else if (o->stages || o->show_mem)
		urn_err_set(
			err,
			"--stages and --mem look into a dataplane of our own; leave --attach out");
	else
		return 0;
	return -1;
}

/* Refuse options that do not fit datagrams: SENDs of one packet each, without acknowledgement. */
static int
check_ud(const struct perf_opts *o, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (!o->ud)
		return 0;
	if (!perf_op_is_send(o->op))
		urn_err_set(err, "--ud goes with send_bw and send_lat, not with %s", name);
	else if (o->size > o->mtu)
		urn_err_set(err,
			    "a datagram is one packet; give a --size of at most %u, the path MTU",
			    o->mtu);
	else if (o->size < PERF_UD_MIN)
		urn_err_set(err, "a datagram says which one it is; give a --size of at least %u",
			    PERF_UD_MIN);
	else if (o->idle_qps > 0 || o->with_limit)
		urn_err_set(err, "--idle-qps and --with-limit go with connections; leave --ud out");
	else if (o->wire.impaired && perf_op_is_lat(o->op))
		urn_err_set(err,
			    "send_lat waits for each message, and nobody repeats a datagram that "
			    "was lost; take send_bw, or leave --ud out");
	else
		return 0;
	return -1;
}

/* Refuse options of cache lines where there are no plain writes, or no lines. */
static int
check_lines(const struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);
	bool table = o->op == PERF_ALIGNED_TABLE;

	if ((g->offset || g->align) && o->op != PERF_WRITE_BW && !table)
		urn_err_set(err, "--offset and --align go with write_bw, not with %s", name);
	else if (table && g->align)
		urn_err_set(err, "aligned_table measures both; leave --align out");
	else if (table && (o->attach != NULL || o->role != PERF_BOTH))
		urn_err_set(err, "aligned_table needs a dataplane of its own, which counts stores; "
				 "leave --attach out");
	else if (table && (o->with_limit || o->hist || o->stages || o->show_mem || o->idle_qps))
		urn_err_set(err, "aligned_table prints stores and rates only");
	else if (table && o->size == 0)
		urn_err_set(err, "aligned_table needs at least 1 byte a message; give --size 1 or "
				 "more");
	else
		return 0;
	return -1;
}

int
perf_options_check(const struct perf_opts *o, const struct perf_given *g, struct urn_err *err)
{
	if (perf_wire_check(&o->wire, err) || check_op(o, g, err) || check_lines(o, g, err) ||
	    perf_msg_check(o, &g->msg, err) || perf_am_check(o, &g->am, err) || check_ud(o, err) ||
	    check_link(o, err) || check_together(o, g, err) || check_attached(o, err))
		return -1;
	return perf_role_check(o, &g->role, err) || perf_fail_check(o, &g->fail, err) ? -1 : 0;
}

int
perf_options_mtu(struct perf_opts *o, uint32_t mtu, const char *port, struct urn_err *err)
{
	if (mtu >= o->mtu)
		return 0;
	if (o->mtu_given) {
		urn_err_set(err, "port %s carries a path MTU of %u at most, not %u; give --mtu %u", port, mtu,
			    o->mtu, mtu);
		return -1;
	}
	o->mtu = mtu;
	if (!o->ud || o->size <= mtu)
		return 0;
	if (o->size_given) {
		urn_err_set(err, "a datagram is one packet, and port %s carries a path MTU of %u; give a "
			    "--size of at most %u", port, mtu, mtu);
		return -1;
	}
	o->size = mtu;
	return 0;
}
