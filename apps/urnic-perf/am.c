/* SPDX-License-Identifier: BSD-3-Clause */
/* One measurement by lib/am: ports, endpoints and memory, the run, and the last checks. */
#include "am.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <urnic/attach.h>

#define ANSWER_MS 60000u /* a request waits so long: a busy machine is no failure */
#define AREA_BYTES (1ull << 30)
#define PACKET_HEAD 64u	  /* bytes behind the flow header that are no bytes of an operation */
#define PACKET_MOST 4096u /* bytes of an operation in a packet, at most */

struct am_bench {
	struct perf_opts o;
	struct layout l;
	struct pattern *p;
	struct rig *rig;      /* owner: the caller of am_run() */
	struct urn_dp *dp;    /* owner: the rig; NULL: attached, or not up */
	struct am_end end[2]; /* A: issues; B: the target */
	struct run run;
	struct meter meter;
	/* The thread that turns our engines while endpoints are made: making waits for them. */
	pthread_t turner;
	bool turning; /* the thread runs */
	_Atomic bool turn_stop;
};

/* ---- the dataplane */

static void *
turner_main(void *arg)
{
	struct am_bench *b = arg;

	for (unsigned int i = 0; i < 2; i++)
		urn_engine_bind(urn_dp_engine(b->dp, i));
	while (!atomic_load_explicit(&b->turn_stop, memory_order_acquire)) {
		for (unsigned int i = 0; i < 2; i++)
			urn_engine_poll(urn_dp_engine(b->dp, i));
		perf_wire_poll(&b->rig->wire);
		sched_yield();
	}
	for (unsigned int i = 0; i < 2; i++)
		urn_engine_unbind(urn_dp_engine(b->dp, i));
	return NULL;
}

static int
dataplane_up(struct am_bench *b, struct urn_err *err)
{
	for (unsigned int i = 0; i < 2; i++) {
		b->rig->cfg.engine[i].engine.idle = b->o.idle;
		b->rig->cfg.adapter[i].adapter.area_size = AREA_BYTES;
	}
	if (urn_rig_dataplane(&b->rig->base, err) != 0)
		return -1;
	b->dp = b->rig->base.dp;
	b->turning = pthread_create(&b->turner, NULL, turner_main, b) == 0;
	if (b->turning)
		return 0;
	urn_err_set(err, "cannot start a thread");
	return -1;
}

static void
turner_end(struct am_bench *b)
{
	if (!b->turning)
		return;
	atomic_store_explicit(&b->turn_stop, true, memory_order_release);
	pthread_join(b->turner, NULL);
	b->turning = false;
}

/* ---- the two ends */

static int
lib_failed(const struct am_end *e, const char *what, struct urn_err *err)
{
	const char *why = urn_attach_error();

	urn_err_set(err, "node %c: cannot %s: %s", 'A' + (int)e->side.index, what,
		    why[0] != '\0' ? why : strerror(errno));
	return -1;
}

static int
device_open(struct am_bench *b, struct am_end *e, struct urn_err *err)
{
	const char *node = b->o.node[e->side.index], *attach = b->o.attach;
	struct urn_abi_channel *channel;

	if (b->dp == NULL) {
		e->dev = urn_msg_dev_connect(strcmp(attach, "auto") == 0 ? NULL : attach,
					     node[0] != '\0' ? node : NULL);
	} else {
		channel = urn_dp_attach(b->dp, e->side.index, err);
		if (channel == NULL)
			return -1;
		e->dev = urn_msg_dev_open(channel);
	}
	return e->dev != NULL ? 0 : lib_failed(e, "open the adapter", err);
}

/* Find the endpoint's address of the wanted family. */
static int
address_find(struct am_end *e, bool ipv6, struct urn_err *err)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

	for (uint32_t i = 0; urn_am_address(e->ep, i, &e->address) == 0; i++) {
		const uint8_t *gid = e->address.node;

		/* IPv6: any GID that is neither IPv4, link-local nor unset. */
		if (ipv6 ? gid[0] != 0 && gid[0] != 0xfe : memcmp(gid, v4_prefix, 12) == 0)
			return 0;
	}
	urn_err_set(err, "the adapter has no address of IPv%c", ipv6 ? '6' : '4');
	return -1;
}

static int
endpoint_make(struct am_bench *b, struct am_end *e, struct urn_err *err)
{
	bool am = perf_op_is_am(b->o.op);
	struct urn_am_attr attr = {
		.payload = am ? (uint32_t)b->o.size : 8,
		.queue = am ? b->o.depth : 1,
		.requests = am ? b->o.depth : 1,
		.operations = am ? 1 : b->o.depth,
		.answer_ms = ANSWER_MS,
	};

	e->ep = urn_am_endpoint_create(e->dev, &attr);
	if (e->ep == NULL)
		return lib_failed(e, "make an endpoint", err);
	am_handlers(e);
	return address_find(e, b->o.ipv6, err);
}

static int
memory_add(struct am_end *e, void *at, uint64_t bytes, struct urn_am_memory *m, struct urn_err *err)
{
	if (at == NULL || perf_op_is_am(e->side.o->op) ||
	    urn_am_memory_add(e->ep, at, bytes, m) == 0)
		return 0;
	return lib_failed(e, "let the dataplane reach the messages' memory", err);
}

static int
memory_make(struct am_bench *b, struct am_end *e, struct urn_err *err)
{
	struct side *s = &e->side;
	bool src, dst;

	side_needs(b->o.op, s->index, &src, &dst);
	dst = dst && perf_op_is_rma(b->o.op); /* payloads are checked where they come */
	if (buffers_make(&s->mem, s->l, s->p, src, dst, b->o.attach != NULL, err) != 0)
		return -1;
	return memory_add(e, s->mem.src, s->mem.src_bytes, &e->src, err) ||
			       memory_add(e, s->mem.dst, s->mem.dst_bytes, &e->dst, err)
		       ? -1
		       : 0;
}

static int
tables_make(struct am_end *e, struct urn_err *err)
{
	uint32_t n = e->side.l->src_slots;

	e->seq = aligned_alloc(64, sizeof(*e->seq));
	e->slot = calloc(n, sizeof(*e->slot));
	e->seen = calloc(n, sizeof(*e->seen));
	if (e->seq == NULL || e->slot == NULL || e->seen == NULL) {
		urn_err_set(err, "no memory for %u messages", n);
		return -1;
	}
	memset(e->seq, 0, sizeof(*e->seq));
	for (uint32_t i = 0; i < n; i++)
		e->slot[i].end = e;
	return 0;
}

/* Let A reach B's buffer. */
static int
region_make(struct am_bench *b, struct urn_err *err)
{
	bool is_read = perf_op_is_read(b->o.op);
	struct am_end *t = &b->end[1];
	const struct urn_am_memory *m = is_read ? &t->src : &t->dst;
	struct urn_am_part part = {.memory = m, .addr = m->addr, .len = m->len};

	if (!perf_op_is_rma(b->o.op))
		return 0;
	b->end[0].remote = (uintptr_t)m->addr;
	if (urn_am_region_create(t->ep, &part, 1,
				 is_read ? URN_AM_ACCESS_READ : URN_AM_ACCESS_WRITE, &t->key) == 0)
		return 0;
	return lib_failed(t, "make a region", err);
}

static int
ends_make(struct am_bench *b, struct urn_err *err)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct am_end *e = &b->end[i];

		if (tables_make(e, err) || device_open(b, e, err) || endpoint_make(b, e, err) ||
		    memory_make(b, e, err))
			return -1;
		e->side.engine = b->dp != NULL ? urn_dp_engine(b->dp, i) : NULL;
	}
	return region_make(b, err);
}

/* Bring both ends up. The engines are ours to turn when the call returns. */
static int
up(struct am_bench *b, struct urn_err *err)
{
	int rc = b->o.attach == NULL ? dataplane_up(b, err) : 0;

	if (rc == 0)
		rc = ends_make(b, err);
	turner_end(b);
	return rc;
}

static void
end_close(struct am_end *e)
{
	if (e->src.len != 0)
		(void)urn_am_memory_remove(e->ep, &e->src);
	if (e->dst.len != 0)
		(void)urn_am_memory_remove(e->ep, &e->dst);
	urn_am_endpoint_destroy(e->ep);
	urn_msg_dev_close(e->dev);
	buffers_free(&e->side.mem);
	free(e->seq);
	free(e->slot);
	free(e->seen);
}

/* ---- the run */

static side_step
step_of(enum perf_op op, unsigned int index)
{
	if (index == 0)
		return am_issue_step;
	return perf_op_is_am(op) ? am_serve_step : bystander_step;
}

static void
init(struct am_bench *b, struct rig *rig, const struct perf_opts *o)
{
	uint64_t warm = o->iters / 10;

	b->o = *o;
	b->rig = rig;
	layout_make(&b->l, o);
	pattern_init(b->p);
	meter_init(&b->meter, o->iters, warm < o->depth ? o->depth : warm, o->duration_ns,
		   rig->tsc_hz);
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

/* Checks that are possible only when all has ended. returns: 0, or -1 and the run failed */
static int
final_check(struct am_bench *b)
{
	struct side *a = &b->end[0].side, *t = &b->end[1].side;
	const struct perf_qp *seq = b->end[0].seq;

	if (perf_op_is_rma(b->o.op))
		return b->o.check == PERF_CHECK_NONE ||
				       check_all(a,
						 perf_op_is_read(b->o.op) ? a->mem.dst : t->mem.dst,
						 seq)
			       ? 0
			       : -1;
	if (t->received == seq->done)
		return 0;
	run_fail(&b->run, "%s: %llu requests were answered, but the handler ran %llu times",
		 perf_op_name(b->o.op), (unsigned long long)seq->done,
		 (unsigned long long)t->received);
	return -1;
}

/* Add up the counters of both adapters. */
static void
sum_counters(const struct am_bench *b, struct urn_counters *sum)
{
	struct urn_counters c;

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; b->dp != NULL && i < 2; i++) {
		urn_dp_counters(b->dp, i, &c);
		for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++)
			sum->v[k] += c.v[k];
	}
}

/* Bytes of an operation in each of its packets but the last. */
static uint32_t
chunk_of(const struct am_bench *b)
{
	const struct urn_port *port = b->dp != NULL ? b->rig->base.port[0] : NULL;
	uint32_t mtu = port != NULL ? port->caps.flow_mtu : b->o.mtu;

	return RTE_MIN(mtu - PACKET_HEAD, PACKET_MOST);
}

static void
result(struct am_bench *b, struct result *res)
{
	uint64_t ways = b->o.op == PERF_AM_LAT ? 2 : 1, chunk = chunk_of(b);

	result_from_meter(res, &b->o, &b->meter);
	res->interrupted = b->run.interrupted;
	res->checked = b->end[0].side.checked + b->end[1].side.checked;
	res->moved = b->meter.done * b->o.size * ways;
	res->have_counters = b->dp != NULL;
	res->packets = b->meter.done * ways * ((b->o.size + chunk - 1) / chunk);
	res->handled = b->end[1].side.received;
	memcpy(res->stages, b->run.stages, sizeof(res->stages));
	sum_counters(b, &res->counters);
	res->retransmits = res->counters.v[URN_C_FLOW_RETRANSMITS];
}

static void
down(struct am_bench *b)
{
	end_close(&b->end[0]);
	end_close(&b->end[1]);
	urn_rig_dataplane_down(&b->rig->base);
	free(b->p);
	free(b);
}

static struct am_bench *
make(void)
{
	struct am_bench *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);

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
measure(struct am_bench *b, struct result *res, struct urn_err *err)
{
	int rc = workers_run(&b->end[0].side, &b->end[1].side, &b->run);

	rig_drain(b->rig);
	if (rc == 0)
		rc = final_check(b);
	if (rc == 0)
		result(b, res);
	else
		urn_err_set(err, "%s (after %llu messages)", b->run.err.text,
			    (unsigned long long)b->meter.done);
	return rc;
}

int
am_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err)
{
	struct am_bench *b = make();
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
