/* SPDX-License-Identifier: BSD-3-Clause */
/* One measurement of messages: ports, register sets and queue, the run, and what the reader found.
 */
#include "msg.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_US 10u /* between two tries: a reader that is run frees entries within that time */

struct msg_bench {
	struct perf_opts o;
	struct layout l;
	struct pattern *p;
	struct rig *rig;       /* owner: the caller of msg_run() */
	struct urn_dp *dp;     /* owner: the rig; NULL: attached, or not up */
	struct msg_end end[2]; /* A: the nodes that send; B: the one with the queue */
	struct run run;
	struct meter meter;
};

/* ---- ports */

static int
dataplane_up(struct msg_bench *b, struct urn_err *err)
{
	for (unsigned int i = 0; i < b->rig->cfg.engines; i++)
		b->rig->cfg.engine[i].engine.idle = b->o.idle;
	for (unsigned int i = 0; i < b->rig->cfg.adapters; i++)
		b->rig->cfg.adapter[i].adapter.area_size = 1ull << 30;
	if (urn_rig_dataplane(&b->rig->base, err) != 0)
		return -1;
	b->dp = b->rig->base.dp;
	return 0;
}

/* Open port k of an end. adapter: index in a dataplane of our own */
static int
port_open(struct msg_bench *b, unsigned int end, unsigned int k, unsigned int adapter,
	  struct urn_err *err)
{
	const char *node = b->o.node[end][0] != '\0' ? b->o.node[end] : NULL;
	struct urn_msg_port *port = &b->end[end].port[k];
	struct urn_abi_channel *channel;

	if (b->dp == NULL)
		return urn_msg_port_attach(port, b->o.attach, node, b->o.ipv6, err);
	channel = urn_dp_attach(b->dp, adapter, err);
	return channel != NULL ? urn_msg_port_open(port, channel, b->o.ipv6, err) : -1;
}

static int
ports_open(struct msg_bench *b, struct urn_err *err)
{
	for (unsigned int i = 0; i < b->o.senders; i++)
		if (port_open(b, 0, i, i, err) != 0)
			return -1;
	return port_open(b, 1, 0, b->o.senders, err);
}

/* ---- sets */

/* Write the bodies of the messages in a set's send buffer. */
static void
fill(const struct msg_bench *b, struct msg_sender *m, uint32_t n)
{
	for (uint32_t slot = 0; slot < msg_slots(&b->o); slot++)
		pattern_fill(b->p, m->set.out + slot * msg_stride(&b->o), b->o.size,
			     pattern_start(n, slot));
}

/* Make the receive queue that an end reads. In msg_lat the same set sends, too. */
static int
queue_open(struct msg_bench *b, struct msg_end *e, struct urn_err *err)
{
	struct urn_regset_want want = {.entries = b->o.entries, .recv_size = (uint32_t)b->o.size};

	e->reads = &e->queue;
	return urn_regset_open(&e->queue, &e->port[0], &want, err);
}

/* Make the sets of an end that send. */
static int
senders_open(struct msg_bench *b, struct msg_end *e, uint32_t ports, struct urn_err *err)
{
	struct urn_regset_want want = {.send_bytes = msg_slots(&b->o) * msg_stride(&b->o)};
	uint32_t n = ports * b->o.sets;

	e->sender = aligned_alloc(64, n * sizeof(*e->sender));
	if (e->sender == NULL) {
		urn_err_set(err, "no memory for %u register sets", n);
		return -1;
	}
	memset(e->sender, 0, n * sizeof(*e->sender));
	for (e->senders = 0; e->senders < n; e->senders++) {
		struct msg_sender *m = &e->sender[e->senders];

		/* Sets of one node lie together, so that nodes take turns only in long stretches.
		 */
		if (urn_regset_open(&m->set, &e->port[e->senders / b->o.sets], &want, err) != 0)
			return -1;
		fill(b, m, e->senders);
	}
	return 0;
}

/* Tell senders where they send to, and the reader where messages come from. */
static int
introduce(struct msg_bench *b, struct msg_end *from, struct msg_end *to, struct urn_err *err)
{
	to->source = calloc(from->senders + 1, sizeof(*to->source));
	if (to->source == NULL) {
		urn_err_set(err, "no memory for %u senders", from->senders);
		return -1;
	}
	to->sources = from->senders;
	for (uint32_t i = 0; i < from->senders; i++) {
		struct msg_sender *m = &from->sender[i];

		urn_regset_target(&m->set, to->port[0].gid, to->queue.qid, (uint16_t)b->o.retries,
				  URN_MSG_RETRY_QUEUE_FULL | URN_MSG_RETRY_BUSY, RETRY_US);
		to->source[i].qid = m->set.qid;
		memcpy(to->source[i].gid, m->set.port->gid, 16);
	}
	return 0;
}

static int
sets_open(struct msg_bench *b, struct urn_err *err)
{
	struct msg_end *a = &b->end[0], *c = &b->end[1];
	bool back = b->o.op == PERF_MSG_LAT;

	if (queue_open(b, c, err) || senders_open(b, a, b->o.senders, err) ||
	    introduce(b, a, c, err))
		return -1;
	if (!back)
		return 0;
	return queue_open(b, a, err) || senders_open(b, c, 1, err) || introduce(b, c, a, err) ? -1
											      : 0;
}

/* ---- the run */

static side_step
step_of(enum perf_op op, unsigned int index)
{
	if (op == PERF_MSG_LAT)
		return index == 0 ? msg_ping_step : msg_pong_step;
	return index == 0 ? msg_send_step : msg_read_step;
}

static void
init(struct msg_bench *b, struct rig *rig, const struct perf_opts *o)
{
	uint64_t warm = o->iters / 10, sets = (uint64_t)o->sets * o->senders;

	b->o = *o;
	b->rig = rig;
	b->l.size = o->size;
	pattern_init(b->p);
	meter_init(&b->meter, o->iters, warm < sets ? sets : warm, o->duration_ns, rig->tsc_hz);
	atomic_store(&b->run.final, UINT64_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &b->end[i].side;

		s->index = i;
		s->run = &b->run;
		s->peer = &b->end[1 - i].side;
		s->o = &b->o;
		s->l = &b->l;
		s->p = b->p;
		s->wire = i == 1 && o->attach == NULL ? &rig->wire : NULL;
		s->meter = i == 0 ? &b->meter : NULL;
		s->step = step_of(o->op, i);
		b->end[i].peer = &b->end[1 - i];
	}
}

static int
up(struct msg_bench *b, struct urn_err *err)
{
	if (b->o.attach == NULL && dataplane_up(b, err))
		return -1;
	if (ports_open(b, err) || sets_open(b, err))
		return -1;
	for (unsigned int i = 0; i < 2 && b->dp != NULL; i++)
		b->end[i].side.engine = urn_dp_engine(b->dp, i);
	return 0;
}

/* Compare what senders were told with what a reader found. returns: 0, or -1 and the run failed */
static int
compare(struct msg_bench *b, const struct msg_end *from, const struct msg_end *to)
{
	for (uint32_t i = 0; i < from->senders; i++) {
		const struct msg_sender *m = &from->sender[i];
		uint64_t got = to->source[i].got;

		if (got >= m->done && got <= m->done + m->maybe)
			continue;
		run_fail(&b->run,
			 "%s: %llu messages of register set %u were answered DONE, and %llu may be "
			 "there "
			 "besides, but %llu arrived",
			 perf_op_name(b->o.op), (unsigned long long)m->done, i,
			 (unsigned long long)m->maybe, (unsigned long long)got);
		return -1;
	}
	return 0;
}

static int
compare_all(struct msg_bench *b)
{
	if (compare(b, &b->end[0], &b->end[1]) != 0)
		return -1;
	return b->o.op == PERF_MSG_LAT ? compare(b, &b->end[1], &b->end[0]) : 0;
}

/* Add up the counters of all adapters. */
static void
sum_counters(const struct msg_bench *b, struct urn_counters *sum)
{
	struct urn_counters c;

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; b->dp != NULL && i <= b->o.senders; i++) {
		urn_dp_counters(b->dp, i, &c);
		for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++)
			sum->v[k] += c.v[k];
	}
}

static void
describe_failure(const struct msg_bench *b, struct urn_err *err)
{
	urn_err_set(err, "%s (after %llu messages; %llu queue-full, %llu busy, %llu unreachable)",
		    b->run.err.text, (unsigned long long)b->meter.done,
		    (unsigned long long)b->end[0].code[URN_MSG_QUEUE_FULL],
		    (unsigned long long)b->end[0].code[URN_MSG_BUSY],
		    (unsigned long long)b->end[0].code[URN_MSG_UNREACHABLE]);
}

static void
result(struct msg_bench *b, struct result *res)
{
	uint64_t ways = b->o.op == PERF_MSG_LAT ? 2 : 1;

	result_from_meter(res, &b->o, &b->meter);
	res->interrupted = b->run.interrupted;
	res->checked = b->end[0].side.checked + b->end[1].side.checked;
	res->moved = b->meter.done * b->o.size * ways;
	res->have_counters = b->dp != NULL;
	res->packets = b->meter.done * ways;
	memcpy(res->stages, b->run.stages, sizeof(res->stages));
	sum_counters(b, &res->counters);
	res->retransmits = res->counters.v[URN_C_FLOW_RETRANSMITS];
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < URN_MSG_CODES; k++)
			res->answers[k] += b->end[i].code[k];
		for (uint32_t k = 0; k < b->end[i].senders; k++)
			res->maybe += b->end[i].sender[k].maybe;
	}
}

static void
down(struct msg_bench *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct msg_end *e = &b->end[i];

		for (uint32_t k = 0; k < e->senders; k++)
			urn_regset_close(&e->sender[k].set);
		urn_regset_close(&e->queue);
		for (unsigned int k = 0; k < PERF_NODES_MAX; k++)
			urn_msg_port_close(&e->port[k]);
		free(e->sender);
		free(e->source);
	}
	urn_rig_dataplane_down(&b->rig->base);
	free(b->p);
	free(b);
}

static struct msg_bench *
make(void)
{
	struct msg_bench *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);

	if (b == NULL)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->p = malloc(sizeof(*b->p));
	if (b->p != NULL)
		return b;
	free(b);
	return NULL;
}

/* Run both ends. returns: 0, or -1 with *err */
static int
measure(struct msg_bench *b, struct result *res, struct urn_err *err)
{
	int rc = workers_run(&b->end[0].side, &b->end[1].side, &b->run);

	rig_drain(b->rig);
	if (rc == 0)
		rc = compare_all(b);
	if (rc != 0)
		describe_failure(b, err);
	else
		result(b, res);
	return rc;
}

int
msg_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err)
{
	struct msg_bench *b = make();
	int rc;

	if (b == NULL) {
		urn_err_set(err, "no memory to measure with");
		return -1;
	}
	init(b, rig, o);
	rc = up(b, err);
	if (rc == 0)
		rc = measure(b, res, err);
	down(b);
	return rc;
}
