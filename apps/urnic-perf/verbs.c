/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One operation over the whole NIC: a dataplane of two engines and two
 * adapters on the rig's ports, verbs objects on both sides, connected queue
 * pairs, the run, and all of it down again.
 */
#include "perf.h"

#include "abi/queue.h"
#include "wire/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <urnic/attach.h>

/* Addresses of the two nodes: of the ranges for documentation. */
const uint8_t perf_node_ipv4[2][4] = {{192, 0, 2, 1}, {192, 0, 2, 2}};
const uint8_t perf_node_ipv6[2][16] = {
	{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

#define AREA_DEFAULT (1ull << 30)
#define WORK_DEFAULT 65536u

struct bench {
	struct perf_opts o;
	struct layout l;
	struct pattern *p;
	struct urn_dp *dp;
	struct side side[2];
	struct run run;
	struct meter meter;
};

/* ---- dataplane */

/* Bytes of queues a side makes in its area, doubled for alignment and the rest. */
static uint64_t
area_bytes(const struct bench *b)
{
	uint64_t sends = (uint64_t)b->l.qps * b->l.src_slots;
	uint64_t recvs = (uint64_t)b->l.qps * b->l.dst_slots + b->l.srq_slots;
	uint64_t bytes = sends * urn_abi_sq_stride(1, b->o.inline_bytes) +
			 2 * recvs * urn_abi_rq_stride(1) +
			 (sends + recvs) * sizeof(struct urn_abi_cqe) +
			 ((uint64_t)b->l.qps + b->o.idle_qps) * 512;

	bytes *= 2;
	return bytes < AREA_DEFAULT ? AREA_DEFAULT : bytes;
}

static void
adapter_config(struct urn_adapter_config *a, const struct bench *b, const struct rig *rig,
	       unsigned int index)
{
	uint64_t work = 2ull * b->l.qps * b->l.src_slots;

	memset(a, 0, sizeof(*a));
	snprintf(a->node, sizeof(a->node), "%c", 'A' + (int)index);
	a->port = rig->port[index];
	a->engines = 1u << index;
	memcpy(a->ipv4, perf_node_ipv4[index], sizeof(a->ipv4));
	memcpy(a->ipv6, perf_node_ipv6[index], sizeof(a->ipv6));
	a->no_icrc = b->o.no_icrc;
	a->mem_foreign = b->o.foreign;
	a->features_off = b->o.go_back_n ? URN_LINK_F_SACK : 0;
	a->area_size = area_bytes(b);
	if (b->l.qps + b->o.idle_qps > PERF_MAX_QPS)
		a->max_qp = b->l.qps + b->o.idle_qps;
	a->work_in_flight = work > WORK_DEFAULT ? (uint32_t)work : 0;
}

static int
dataplane_up(struct bench *b, const struct rig *rig, struct urn_err *err)
{
	struct urn_adapter_config adapter[2];
	struct urn_dp_config cfg = {.engines = 2, .adapters = 2, .adapter = adapter};

	for (unsigned int i = 0; i < 2; i++) {
		adapter_config(&adapter[i], b, rig, i);
		cfg.engine[i].idle = b->o.idle;
	}
	b->dp = urn_dp_create(&cfg, err);
	return b->dp != NULL ? 0 : -1;
}

/* ---- verbs objects */

static int
verbs_failed(const struct side *s, const char *what, struct urn_err *err)
{
	const char *why = urn_attach_error();

	urn_err_set(err, "node %c: cannot %s: %s", 'A' + (int)s->index, what,
		    why[0] != '\0' ? why : strerror(errno));
	return -1;
}

int
perf_find_gid(struct ibv_context *ctx, bool ipv6, uint8_t *index, union ibv_gid *gid,
	      struct urn_err *err)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_port_attr port;

	if (ibv_query_port(ctx, 1, &port) != 0) {
		urn_err_set(err, "%s: cannot query the port: %s", ibv_get_device_name(ctx->device),
			    urn_attach_error());
		return -1;
	}
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid(ctx, 1, i, gid) != 0)
			continue;
		/* IPv6: any that is neither IPv4 nor link-local, nor nothing. */
		if (ipv6 ? gid->raw[0] != 0 && gid->raw[0] != 0xfe
			 : memcmp(gid->raw, v4_prefix, 12) == 0) {
			*index = (uint8_t)i;
			return 0;
		}
	}
	urn_err_set(err, "%s: the adapter has no GID of an IPv%c address",
		    ibv_get_device_name(ctx->device), ipv6 ? '6' : '4');
	return -1;
}

static int
find_gid(struct side *s, struct urn_err *err)
{
	return perf_find_gid(s->ctx, s->o->ipv6, &s->gid_index, &s->gid, err);
}

static int
register_one(struct side *s, uint8_t *at, uint64_t bytes, struct ibv_mr **mr, struct urn_err *err)
{
	if (at == NULL)
		return 0;
	*mr = ibv_reg_mr(s->pd, at, bytes,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	return *mr != NULL ? 0 : verbs_failed(s, "register the messages' memory", err);
}

static int
make_queues(struct side *s, struct urn_err *err)
{
	const struct layout *l = s->l;
	uint64_t recvs = l->srq_slots ? l->srq_slots : (uint64_t)l->qps * l->dst_slots;
	uint64_t cqe = (uint64_t)l->qps * l->src_slots +
		       (perf_op_is_send(s->o->op) ? recvs : 0) + PERF_BATCH;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = l->srq_slots, .max_sge = 1}};
	/* Each side is one thread's: no lock, as in the peers' programs. */
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = (uint32_t)cqe,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					      .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_cq_ex *cq;

	cq = ibv_create_cq_ex(s->ctx, &cq_attr);
	if (cq == NULL)
		return verbs_failed(s, "create the completion queue", err);
	s->cq = ibv_cq_ex_to_cq(cq);
	if (l->srq_slots == 0)
		return 0;
	s->srq = ibv_create_srq(s->pd, &attr);
	return s->srq != NULL ? 0 : verbs_failed(s, "create the shared receive queue", err);
}

/* A QP that receives nothing has one receive. returns: it, or NULL with *err */
static struct ibv_qp *
make_qp(struct side *s, uint32_t sends, uint32_t recvs, struct urn_err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.srq = s->srq,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = s->srq != NULL ? 0 : recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = s->o->inline_bytes},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	if (qp == NULL) {
		verbs_failed(s, "create a queue pair", err);
		return NULL;
	}
	if (urn_ep_init(qp,
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
			err) == 0)
		return qp;
	ibv_destroy_qp(qp);
	return NULL;
}

static int
make_qps(struct side *s, struct urn_err *err)
{
	uint32_t recvs = perf_op_is_send(s->o->op) ? s->l->dst_slots : 1;

	s->qp = aligned_alloc(64, s->l->qps * sizeof(*s->qp));
	s->idle = calloc(s->o->idle_qps + 1, sizeof(*s->idle));
	s->wr = malloc(sizeof(*s->wr));
	if (s->qp == NULL || s->idle == NULL || s->wr == NULL) {
		urn_err_set(err, "no memory for %u queue pairs", s->l->qps + s->o->idle_qps);
		return -1;
	}
	memset(s->qp, 0, s->l->qps * sizeof(*s->qp));
	/* The idle ones first: what is searched from the front has to pass them. */
	for (uint32_t i = 0; i < s->o->idle_qps; i++) {
		s->idle[i] = make_qp(s, 1, 1, err);
		if (s->idle[i] == NULL)
			return -1;
	}
	for (uint32_t i = 0; i < s->l->qps; i++) {
		s->qp[i].qp = make_qp(s, s->l->src_slots, recvs, err);
		if (s->qp[i].qp == NULL)
			return -1;
	}
	if (s->srq == NULL)
		return 0;
	s->map = qpn_map_make(s->qp, s->l->qps);
	return s->map != NULL ? 0 : verbs_failed(s, "get memory for the map of QPs", err);
}

/* Which sides hold messages to send, and which take some in. */
static void
needs_of(enum perf_op op, unsigned int index, bool *src, bool *dst)
{
	bool a = index == 0;

	*src = perf_op_is_pingpong(op) || (perf_op_is_read(op) ? !a : a);
	*dst = perf_op_is_pingpong(op) || (perf_op_is_read(op) ? a : !a);
	if (perf_op_is_atomic(op)) {
		*src = false;
		*dst = true;
	}
}

static int
context_open(struct bench *b, struct side *s, struct urn_err *err)
{
	const char *path = b->o.attach != NULL && strcmp(b->o.attach, "auto") != 0 ? b->o.attach : NULL;
	struct urn_abi_channel *channel;

	if (b->o.attach != NULL) {
		s->ctx = urn_attach_connect(path, b->o.node[s->index]);
	} else {
		channel = urn_dp_attach(b->dp, s->index, err);
		if (channel == NULL)
			return -1;
		s->ctx = urn_attach_open(channel);
	}
	return s->ctx != NULL ? 0 : verbs_failed(s, "attach to the dataplane", err);
}

static int
side_open(struct bench *b, unsigned int index, struct urn_err *err)
{
	struct side *s = &b->side[index];
	bool src, dst;

	if (context_open(b, s, err) != 0)
		return -1;
	s->pd = ibv_alloc_pd(s->ctx);
	if (s->pd == NULL)
		return verbs_failed(s, "allocate a protection domain", err);
	needs_of(s->o->op, index, &src, &dst);
	if (find_gid(s, err) || buffers_make(&s->mem, s->l, s->p, src, dst, b->o.attach != NULL && !b->o.foreign, err) ||
	    register_one(s, s->mem.src, s->mem.src_bytes, &s->mr_src, err) ||
	    register_one(s, s->mem.dst, s->mem.dst_bytes, &s->mr_dst, err) ||
	    make_queues(s, err) || make_qps(s, err))
		return -1;
	post_prepare(s);
	if (perf_op_is_pingpong(s->o->op) || index == 1)
		return perf_op_is_send(s->o->op) ? receive_start(s, err) : 0;
	return 0;
}

static void
side_close(struct side *s)
{
	for (uint32_t i = 0; s->qp != NULL && i < s->l->qps; i++) {
		if (s->qp[i].qp != NULL)
			ibv_destroy_qp(s->qp[i].qp);
	}
	for (uint32_t i = 0; s->idle != NULL && i < s->o->idle_qps; i++) {
		if (s->idle[i] != NULL)
			ibv_destroy_qp(s->idle[i]);
	}
	if (s->srq != NULL)
		ibv_destroy_srq(s->srq);
	if (s->cq != NULL)
		ibv_destroy_cq(s->cq);
	if (s->mr_src != NULL)
		ibv_dereg_mr(s->mr_src);
	if (s->mr_dst != NULL)
		ibv_dereg_mr(s->mr_dst);
	if (s->pd != NULL)
		ibv_dealloc_pd(s->pd);
	if (s->ctx != NULL)
		ibv_close_device(s->ctx);
	qpn_map_free(s->map);
	buffers_free(&s->mem);
	free(s->qp);
	free(s->idle);
	free(s->wr);
}

/* ---- connecting */

/* First PSN of a QP: spread, so that some wrap early. */
static uint32_t
psn_of(unsigned int side, uint32_t number)
{
	return (0xfffff0u + number * 7919u + side * 104729u) & 0xffffffu;
}

static uint8_t
mtu_code(uint32_t mtu)
{
	return (uint8_t)(__builtin_ctz(mtu) - 7);
}

/* QP of a number: those in use, then the idle ones. */
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
		opts[i].mtu_code = mtu_code(b->o.mtu);
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
			addr[i].psn = psn_of(i, n);
		}
		for (unsigned int i = 0; i < 2; i++) {
			if (urn_ep_connect(qp_at(&b->side[i], n), &addr[i], &addr[1 - i], &opts[i],
					   err))
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

static void
pick_steps(struct bench *b)
{
	enum perf_op op = b->o.op;

	b->side[0].step = perf_op_is_pingpong(op) ? ping_step : requester_step;
	b->side[1].step = perf_op_is_pingpong(op) ? pong_step
			  : op == PERF_SEND_BW	  ? receiver_step
						  : bystander_step;
}

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
	}
	pick_steps(b);
}

static int
bench_up(struct bench *b, const struct rig *rig, struct urn_err *err)
{
	if (b->o.attach == NULL && dataplane_up(b, rig, err))
		return -1;
	for (unsigned int i = 0; i < 2; i++) {
		if (side_open(b, i, err))
			return -1;
		b->side[i].engine = b->dp != NULL ? urn_dp_engine(b->dp, i) : NULL;
	}
	tell_keys(&b->side[0], &b->side[1]);
	tell_keys(&b->side[1], &b->side[0]);
	return connect_qps(b, err);
}

/* What only shows once everything stands still. */
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

/* Counters of both adapters. */
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

/* What went wrong, and how the transport fared until then. */
static void
bench_failure(const struct bench *b, struct urn_err *err)
{
	struct urn_counters c;

	sum_counters(b, &c);
	urn_err_set(err, "%s (after %llu messages, %llu retransmits, %llu timeouts, %llu NAKs)",
		    b->run.err.text, (unsigned long long)b->meter.done,
		    (unsigned long long)c.v[URN_C_RETRANSMITS],
		    (unsigned long long)c.v[URN_C_TIMEOUTS], (unsigned long long)c.v[URN_C_RX_NAKS]);
}

/* Data packets of a message. */
static uint64_t
packets_of(const struct perf_opts *o)
{
	return o->size > 0 ? (o->size + o->mtu - 1) / o->mtu : 1;
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
	res->retransmits = res->counters.v[URN_C_RETRANSMITS];
	res->qp_bytes = b->dp != NULL ? urn_dp_qp_bytes(b->dp, 0, b->o.rd_atomic) : 0;
}

static void
bench_down(struct bench *b)
{
	side_close(&b->side[0]);
	side_close(&b->side[1]);
	if (b->dp != NULL)
		urn_dp_destroy(b->dp);
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
	rc = bench_up(b, rig, err);
	if (rc == 0) {
		rc = workers_run(b->side, &b->run);
		rig_drain(rig);
		if (rc == 0)
			rc = final_check(b);
		if (rc != 0)
			bench_failure(b, err);
		else
			bench_result(b, res);
	}
	bench_down(b);
	return rc;
}
