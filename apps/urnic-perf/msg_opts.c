/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of measurements of messages: defaults, and combinations that make no sense. */
#include "options.h"

#include "abi/msg.h"

#define RATE_SETS 128u
#define LAT_SETS 4u
#define INCAST_SETS 16u
#define INCAST_SENDERS 8u
#define ENTRIES_MIN 1024u
#define RING_BYTES (64ull << 20) /* a default ring is at most so large */
#define NO_END 65535u

/* Bytes of an entry for messages of `size` bytes. */
static uint64_t
entry_bytes(uint64_t size)
{
	return (sizeof(struct urn_abi_msg_entry) + size + 63) & ~63ull;
}

static uint32_t
default_entries(const struct perf_opts *o)
{
	uint32_t n = ENTRIES_MIN;

	while (n < 2 * o->sets * o->senders && n < (uint32_t)URN_MSG_ENTRIES_MAX)
		n *= 2;
	while (n > 1 && n * entry_bytes(o->size) > RING_BYTES)
		n /= 2;
	return n;
}

void
perf_msg_defaults(struct perf_opts *o, const struct perf_msg_given *g)
{
	bool incast = o->op == PERF_MSG_INCAST;

	if (!g->sets)
		o->sets = o->op == PERF_MSG_LAT ? LAT_SETS : incast ? INCAST_SETS : RATE_SETS;
	if (!g->senders)
		o->senders = incast ? INCAST_SENDERS : 1;
	if (!g->entries)
		o->entries = default_entries(o);
	if (!g->retries)
		o->retries = NO_END;
	o->qps = o->depth = o->chain = 1;
	/* Nodes are joined by a switch when there are more than two. */
	if (incast && o->attach == NULL)
		o->wire.on = true;
}

/* Check the options of a measurement of messages. */
static int
check_sizes(const struct perf_opts *o, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (o->size < PERF_MSG_MIN || o->size > PERF_MSG_MAX)
		urn_err_set(err, "%s sends messages of %u bytes to 1 MiB; give such a --size", name,
			    PERF_MSG_MIN);
	else if (o->entries & (o->entries - 1))
		urn_err_set(err, "--entries %u is no power of two", o->entries);
	else if (o->entries * entry_bytes(o->size) > URN_MSG_ARENA_MAX / 2)
		urn_err_set(
			err,
			"a queue of %u entries of %llu bytes is too large; give fewer --entries",
			o->entries, (unsigned long long)o->size);
	else if (o->sets * o->size > (1ull << 28))
		urn_err_set(err, "the buffers of %u sets are too large; give fewer --sets",
			    o->sets);
	else
		return 0;
	return -1;
}

int
perf_msg_check(const struct perf_opts *o, const struct perf_msg_given *g, struct urn_err *err)
{
	const char *name = perf_op_name(o->op);

	if (!perf_op_is_msg(o->op)) {
		if (!g->sets && !g->senders && !g->entries && !g->retries)
			return 0;
		urn_err_set(
			err,
			"--sets, --senders, --entries and --retries go with msg_rate, msg_lat and "
			"msg_incast, not with %s",
			name);
		return -1;
	}
	if (g->verbs || o->idle_qps > 0 || o->show_mem)
		urn_err_set(err, "%s has no queue pairs; leave the options of queue pairs out",
			    name);
	else if (o->with_limit || o->foreign)
		urn_err_set(
			err,
			"--with-limit and --foreign go with operations of queue pairs, not with %s",
			name);
	else if (g->senders && o->op != PERF_MSG_INCAST)
		urn_err_set(err, "--senders goes with msg_incast, not with %s", name);
	else
		return check_sizes(o, err);
	return -1;
}
