/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation over the whole NIC: a dataplane of two engines and two
 * adapters on the rig's ports, verbs objects on both sides, connected queue
 * pairs, the run, and taking all of them down again.
 */
#include "perf.h"

#include "abi/queue.h"
#include "wire/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <urnic/attach.h>

#define AREA_DEFAULT (1ull << 30)
#define WORK_DEFAULT 65536u

struct bench {
	struct perf_opts o;
	struct layout l;
	struct pattern *p;
	struct rig *rig;   /* owner: the caller of verbs_run() */
	struct urn_dp *dp; /* owner: the rig; NULL: attached, or not up */
	struct side side[2];
	struct run run;
	struct meter meter;
};

/* ---- dataplane */

/* Bytes of the queues that a side makes in its area, twice that for alignment and the rest. */
static uint64_t
area_bytes(const struct bench *b)
{
	uint64_t sends = (uint64_t)b->l.qps * b->l.src_slots * (b->l.tells ? 2 : 1);
	uint64_t recvs = (uint64_t)b->l.qps * b->l.dst_slots + b->l.srq_slots;
	uint64_t bytes = sends * urn_abi_sq_stride(1, b->o.inline_bytes) +
			 2 * recvs * urn_abi_rq_stride(1) +
			 (sends + recvs) * sizeof(struct urn_abi_cqe) +
			 ((uint64_t)b->l.qps + b->o.idle_qps) * 512;

	bytes *= 2;
	return bytes < AREA_DEFAULT ? AREA_DEFAULT : bytes;
}

/* Add to a node what the operation asks for beyond the rig's settings. */
static void
node_config(const struct bench *b, unsigned int index)
{
	struct urn_adapter_config *a = &b->rig->cfg.adapter[index].adapter;
	uint64_t work = 2ull * b->l.qps * b->l.src_slots;
	uint32_t qps = b->l.qps + b->o.idle_qps;

	a->mem_foreign = b->o.foreign;
	a->features_off =
		(b->o.go_back_n ? URN_LINK_F_SACK : 0u) | (b->o.two ? URN_LINK_F_WRITE_TWO : 0u);
	a->count_stores = b->o.count_stores;
	a->area_size = area_bytes(b);
	a->max_qp = qps > PERF_MAX_QPS ? qps : 0;
	a->work_in_flight = work > WORK_DEFAULT ? (uint32_t)work : 0;
	b->rig->cfg.engine[index].engine.idle = b->o.idle;
}

static int
dataplane_up(struct bench *b, struct urn_err *err)
{
	for (unsigned int i = 0; i < 2; i++)
		node_config(b, i);
	if (urn_rig_dataplane(&b->rig->base, err) != 0)
		return -1;
	b->dp = b->rig->base.dp;
	return 0;
}

/* ---- connecting */

/* QP with a number: first those in use, then the idle ones. */
static struct ibv_qp *
qp_at(const struct side *s, uint32_t n)
{
	return n < s->l->qps ? s->qp[n].qp : s->idle[n - s->l->qps];
}

static int
connect_qps(struct bench *b, struct urn_err *err)
{
	struct urn_ep_addr addr[2];
	struct urn_ep_opts opts[2];

	for (unsigned int i = 0; i < 2; i++) {
		urn_ep_opts_default(&opts[i]);
		opts[i].mtu_code = side_mtu_code(b->o.mtu);
		opts[i].sgid_index = b->side[i].gid_index;
		opts[i].timeout = b->o.timeout;
		opts[i].max_rd_atomic = (uint8_t)b->o.rd_atomic;
		opts[i].max_dest_rd_atomic = (uint8_t)b->o.rd_atomic;
		if (urn_ep_local(b->side[i].qp[0].qp, 0, b->side[i].gid_index, &addr[i], err))
			return -1;
	}
	for (uint32_t n = 0; n < b->l.qps + b->o.idle_qps; n++) {
		for (unsigned int i = 0; i < 2; i++) {
			addr[i].qpn = qp_at(&b->side[i], n)->qp_num;
			addr[i].psn = side_psn(i, n);
		}
		for (unsigned int i = 0; i < 2; i++) {
			int rc = n < b->l.qps ? side_connect(&b->side[i], n, &addr[i], &addr[1 - i],
							     &opts[i], err)
					      : urn_ep_connect(qp_at(&b->side[i], n), &addr[i],
							       &addr[1 - i], &opts[i], err);

			if (rc != 0)
				return -1;
		}
	}
	return 0;
}

static void
tell_keys(struct side *s, const struct side *peer)
{
	s->peer_va_src = (uintptr_t)peer->mem.src;
	s->peer_va_dst = (uintptr_t)peer->mem.dst;
	s->peer_rkey_src = peer->mr_src != NULL ? peer->mr_src->rkey : 0;
	s->peer_rkey_dst = peer->mr_dst != NULL ? peer->mr_dst->rkey : 0;
}

/* ---- the run */

/* Warm-up by messages: a tenth, and at least each QP's queue once; whole chains. */
static uint64_t
warm_iters(const struct bench *b)
{
	uint64_t n = b->o.iters / 10, each = (uint64_t)b->l.qps * b->o.depth;

	if (n < each)
		n = each;
	return (n + b->o.chain - 1) / b->o.chain * b->o.chain;
}

static void
bench_init(struct bench *b, struct rig *rig, const struct perf_opts *o)
{
	b->o = *o;
	b->rig = rig;
	layout_make(&b->l, o);
	pattern_init(b->p);
	meter_init(&b->meter, o->iters, warm_iters(b), o->duration_ns, rig->tsc_hz);
	atomic_store(&b->run.final, UINT64_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &b->side[i];

		s->index = i;
		s->run = &b->run;
		s->peer = &b->side[1 - i];
		s->o = &b->o;
		s->l = &b->l;
		s->p = b->p;
		s->port = rig->port[i];
		s->wire = i == 1 && o->attach == NULL ? &rig->wire : NULL;
		s->meter = i == 0 ? &b->meter : NULL;
		s->step = side_step_of(o->op, i);
	}
}

static int
bench_up(struct bench *b, struct urn_err *err)
{
	if (b->o.attach == NULL && dataplane_up(b, err))
		return -1;
	for (unsigned int i = 0; i < 2; i++) {
		if (side_open_device(&b->side[i], b->dp, err) || side_open_more(&b->side[i], err))
			return -1;
		b->side[i].engine = b->dp != NULL ? urn_dp_engine(b->dp, i) : NULL;
	}
	tell_keys(&b->side[0], &b->side[1]);
	tell_keys(&b->side[1], &b->side[0]);
	return connect_qps(b, err);
}

/* Checks that are possible only when all traffic has ended. */
static int
final_check(struct bench *b)
{
	enum perf_op op = b->o.op;
	struct side *a = &b->side[0];
	uint64_t counter;

	if (b->o.check == PERF_CHECK_NONE)
		return 0;
	if (perf_op_is_atomic(op)) {
		memcpy(&counter, b->side[1].mem.dst, sizeof(counter));
		return atomics_ok(a, counter) ? 0 : -1;
	}
	if (op == PERF_WRITE_BW)
		return check_all(a, b->side[1].mem.dst, a->qp) ? 0 : -1;
	if (perf_op_is_read(op))
		return check_all(a, a->mem.dst, a->qp) ? 0 : -1;
	return 0;
}

/* Add up the counters of both adapters. */
static void
sum_counters(const struct bench *b, struct urn_counters *sum)
{
	struct urn_counters c;

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; b->dp != NULL && i < 2; i++) {
		urn_dp_counters(b->dp, i, &c);
		for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++)
			sum->v[k] += c.v[k];
	}
}

/* Describe the failure, with the transport's counters until then. */
static void
bench_failure(const struct bench *b, struct urn_err *err)
{
	struct urn_counters c;

	run_explain(&b->run);
	sum_counters(b, &c);
	urn_err_set(err, "%s (after %llu messages, %llu retransmits, %llu timeouts, %llu NAKs)",
		    b->run.err.text, (unsigned long long)b->meter.done,
		    (unsigned long long)c.v[URN_C_RETRANSMITS],
		    (unsigned long long)c.v[URN_C_TIMEOUTS], (unsigned long long)c.v[URN_C_RX_NAKS]);
}

/* Number of data packets of a message. */
static uint64_t
packets_of(const struct perf_opts *o)
{
	return (o->size > 0 ? (o->size + o->mtu - 1) / o->mtu : 1) + (o->op == PERF_WRITE_SEND_BW);
}

static void
bench_result(struct bench *b, struct result *res)
{
	uint64_t ways = perf_op_is_pingpong(b->o.op) ? 2 : 1;

	result_from_meter(res, &b->o, &b->meter);
	res->interrupted = b->run.interrupted;
	res->checked = b->side[0].checked + b->side[1].checked;
	res->moved = b->meter.done * b->l.size * ways;
	res->have_counters = b->dp != NULL;
	res->packets = b->meter.done * ways * packets_of(&b->o);
	memcpy(res->stages, b->run.stages, sizeof(res->stages));
	sum_counters(b, &res->counters);
	res->sent = b->meter.done;
	res->lost = b->side[1].received < res->sent ? res->sent - b->side[1].received : 0;
	res->retransmits = res->counters.v[URN_C_RETRANSMITS];
	res->qp_bytes = b->dp != NULL ? urn_dp_qp_bytes(b->dp, 0, b->o.rd_atomic) : 0;
}

/* The lines that B's dataplane stored to, for all messages. */
static int
bench_stores(struct bench *b, struct result *res, struct urn_err *err)
{
	for (uint32_t i = 0; i < b->l.qps; i++)
		res->stored += b->side[0].qp[i].done;
	if (urn_mr_stores(b->side[1].mr_dst, &res->stores) == 0)
		return 0;
	urn_err_set(err, "node B: %s", urn_attach_error());
	return -1;
}

static void
bench_down(struct bench *b)
{
	side_close(&b->side[0]);
	side_close(&b->side[1]);
	urn_rig_dataplane_down(&b->rig->base);
	free(b->p);
	free(b);
}

int
verbs_run(struct rig *rig, const struct perf_opts *o, struct result *res, struct urn_err *err)
{
	struct bench *b = aligned_alloc(64, (sizeof(*b) + 63) & ~(size_t)63);
	int rc;

	if (b == NULL) {
		urn_err_set(err, "no memory to measure with");
		return -1;
	}
	memset(b, 0, sizeof(*b));
	b->p = malloc(sizeof(*b->p));
	if (b->p == NULL) {
		urn_err_set(err, "no memory to measure with");
		free(b);
		return -1;
	}
	bench_init(b, rig, o);
	rc = bench_up(b, err);
	if (rc == 0) {
		rc = workers_run(&b->side[0], &b->side[1], &b->run);
		rig_drain(rig);
		if (rc == 0)
			rc = final_check(b);
		if (rc != 0)
			bench_failure(b, err);
		else
			bench_result(b, res);
		if (rc == 0 && o->count_stores)
			rc = bench_stores(b, res, err);
	}
	bench_down(b);
	return rc;
}
