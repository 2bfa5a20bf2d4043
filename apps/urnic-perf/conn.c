/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf connect: measures connections per second that connection management
 * sets up. Node A asks, node B listens; one thread is both programs and, without
 * --attach, polls both engines too. A connection is up when both sides have been
 * told so and both queue pairs are ready. Afterwards each connection carries a message.
 */
#include "perf.h"

#include "common/clock.h"
#include "common/explain.h"
#include "common/json.h"
#include "common/text.h"

#include <urnic/attach.h>
#include <urnic/cm.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE urn_cm_service(URN_CM_PS_TCP, 18515)
#define WINDOW 256u          /* connections being set up at a time */
#define BACKLOG 1024u
#define EVENTS 64u           /* events taken from an end at a time */
#define STALL_NS 10000000000ull
#define MESSAGE 8u           /* bytes */

/* One end: a program on a node. */
struct conn_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint64_t *mem;           /* a word of MESSAGE bytes for each connection */
	struct ibv_qp **qp;
	uint32_t *id;
	struct urn_cm_end *cm;
	bool cm_up;
	uint32_t listener;
	uint8_t gid_index;
	union ibv_gid gid;
	uint32_t up;             /* connections that are up, by an event or by this end's own word */
};

struct conn {
	const struct perf_opts *o;
	struct urn_dp *dp; /* owner: the rig; NULL: attached */
	struct conn_end end[2];
	struct urn_ep_opts ep;
	uint32_t asked;
	uint32_t carried;        /* connections whose message arrived */
};

static int
failed(const char *what, struct urn_err *err)
{
	urn_err_set(err, "connect: cannot %s: %s", what, urn_attach_error());
	return -1;
}

/* ---- up and down */

static int
own_dataplane(struct conn *c, struct rig *rig, struct urn_err *err)
{
	if (urn_rig_dataplane(&rig->base, err) != 0)
		return -1;
	c->dp = rig->base.dp;
	for (unsigned int i = 0; i < 2; i++)
		urn_engine_bind(urn_dp_engine(c->dp, i));
	return 0;
}

static int
end_queues(struct conn *c, struct conn_end *e, struct urn_err *err)
{
	uint32_t n = c->o->qps;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = n, .max_sge = 1}};

	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, (int)(2 * n), NULL, NULL, 0);
	e->mem = urn_alloc((size_t)n * MESSAGE);
	e->qp = calloc(n, sizeof(*e->qp));
	e->id = calloc(n, sizeof(*e->id));
	if (e->pd == NULL || e->cq == NULL || e->mem == NULL || e->qp == NULL || e->id == NULL)
		return failed("get the objects of the queue pairs", err);
	e->srq = ibv_create_srq(e->pd, &srq);
	e->mr = ibv_reg_mr(e->pd, e->mem, (size_t)n * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (e->srq == NULL || e->mr == NULL)
		return failed("get the objects of the queue pairs", err);
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_qp_init_attr attr = {.send_cq = e->cq, .recv_cq = e->cq, .srq = e->srq,
						.qp_type = IBV_QPT_RC,
						.cap = {.max_send_wr = 1, .max_send_sge = 1}};

		e->qp[i] = ibv_create_qp(e->pd, &attr);
		if (e->qp[i] == NULL)
			return failed("create a queue pair", err);
		if (urn_ep_init(e->qp[i], 0, err) != 0)
			return -1;
	}
	return 0;
}

static int
end_open(struct conn *c, unsigned int i, struct urn_err *err)
{
	struct conn_end *e = &c->end[i];

	e->ctx = perf_attach(c->o, c->dp, i, err);
	if (e->ctx == NULL || perf_find_gid(e->ctx, c->o->ipv6, &e->gid_index, &e->gid, err) != 0 ||
	    end_queues(c, e, err) != 0)
		return -1;
	if (urn_cm_end_open(&e->cm, e->ctx) != 0)
		return failed("get a pipe for events", err);
	e->cm_up = true;
	if (i == 1 && urn_cm_end_listen(e->cm, SERVICE, 0, BACKLOG, &e->listener) != 0)
		return failed("listen", err);
	return 0;
}

static void
end_close(const struct conn *c, struct conn_end *e)
{
	for (uint32_t i = 0; e->qp != NULL && i < c->o->qps; i++)
		if (e->qp[i] != NULL)
			ibv_destroy_qp(e->qp[i]);
	if (e->srq != NULL)
		ibv_destroy_srq(e->srq);
	if (e->cq != NULL)
		ibv_destroy_cq(e->cq);
	if (e->mr != NULL)
		ibv_dereg_mr(e->mr);
	if (e->pd != NULL)
		ibv_dealloc_pd(e->pd);
	/* Closing the context frees the end's ids, too. */
	if (e->ctx != NULL)
		ibv_close_device(e->ctx);
	if (e->cm_up)
		urn_cm_end_close(e->cm);
	urn_free(e->mem);
	free(e->qp);
	free(e->id);
}

/* Run a turn of both engines; attached: give the dataplane time. */
static void
turn(const struct conn *c, bool idle)
{
	for (unsigned int i = 0; c->dp != NULL && i < 2; i++)
		urn_engine_poll(urn_dp_engine(c->dp, i));
	if (c->dp == NULL && idle)
		sched_yield();
}

/* ---- setting up */

static int
bring_up(struct conn *c, unsigned int i, uint32_t n, const struct urn_abi_cm_event *ev,
	 struct urn_err *err)
{
	/* Each side tells the other the first PSN to send with. */
	struct urn_ep_addr own = {.qpn = c->end[i].qp[n]->qp_num, .psn = ev->psn,
				  .mtu_code = c->ep.mtu_code};
	struct urn_ep_addr peer = {.qpn = ev->qpn, .psn = side_psn(1 - i, n), .mtu_code = c->ep.mtu_code};

	memcpy(peer.gid, ev->gid, 16);
	c->ep.sgid_index = c->end[i].gid_index;
	return urn_ep_connect(c->end[i].qp[n], &own, &peer, &c->ep, err);
}

static int
ask(struct conn *c, struct urn_err *err)
{
	struct conn_end *e = &c->end[0];
	uint32_t n = c->asked;
	struct urn_abi_cm_connect p = {
		.service_id = SERVICE, .cookie = n, .qpn = e->qp[n]->qp_num, .psn = side_psn(1, n),
		.sgid_index = e->gid_index, .responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry = 7, .srq = 1, .mtu = c->ep.mtu_code, .timeout = 18,
		.max_retries = 15, .ack_timeout = c->o->timeout, .data_len = sizeof(n)};

	memcpy(p.dgid, c->end[1].gid.raw, 16);
	memcpy(p.data, &n, sizeof(n));
	if (urn_cm_end_connect(e->cm, &p, &e->id[n]) != 0)
		return failed("ask for a connection", err);
	c->asked++;
	return 0;
}

static int
on_request(struct conn *c, const struct urn_abi_cm_event *ev, struct urn_err *err)
{
	struct conn_end *e = &c->end[1];
	struct urn_abi_cm_accept p = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry = 7,
				      .srq = 1};
	uint32_t n;

	memcpy(&n, ev->data, sizeof(n));
	if (n >= c->o->qps || e->id[n] != 0) {
		urn_err_set(err, "connect: a request came twice, or with other private data than it was "
				 "sent with");
		return -1;
	}
	e->id[n] = ev->id;
	if (bring_up(c, 1, n, ev, err) != 0)
		return -1;
	p.qpn = e->qp[n]->qp_num;
	p.psn = side_psn(0, n);
	return urn_cm_end_accept(e->cm, ev->id, &p) == 0 ? 0 : failed("accept a connection", err);
}

static int
on_event(struct conn *c, unsigned int i, const struct urn_abi_cm_event *ev, struct urn_err *err)
{
	switch (ev->type) {
	case URN_CM_EVENT_REQUEST:
		return on_request(c, ev, err);
	case URN_CM_EVENT_REPLY:
		if (bring_up(c, 0, (uint32_t)ev->cookie, ev, err) != 0)
			return -1;
		if (urn_cm_end_establish(c->end[0].cm, ev->id, NULL, 0) != 0)
			return failed("say that a connection is up", err);
		c->end[0].up++;
		return 0;
	case URN_CM_EVENT_ESTABLISHED:
		c->end[1].up++;
		return 0;
	case URN_CM_EVENT_UNREACHABLE:
		urn_err_set(err, "connect: node %c heard nothing more of the other, after all repeats",
			    'A' + (int)i);
		return -1;
	default:
		urn_err_set(err, "connect: a connection was ended while it was set up (event %u, reason %u)",
			    ev->type, ev->reason);
		return -1;
	}
}

/* returns: number of events taken, or -1 with *err */
static int
take_events(struct conn *c, unsigned int i, struct urn_err *err)
{
	struct urn_abi_cm_event ev;
	int n = 0, rc = 0;

	while (n < (int)EVENTS && (rc = urn_cm_end_event(c->end[i].cm, &ev)) == 0) {
		if (on_event(c, i, &ev, err) != 0)
			return -1;
		n++;
	}
	if (rc != 0 && rc != EAGAIN)
		return failed("fetch an event", err);
	return n;
}

/* Give up on a signal or when nothing has moved since `since`. returns: 0, or -1 with *err */
static int
patience(const char *what, uint32_t done, uint64_t since, struct urn_err *err)
{
	if (urn_stop_requested())
		urn_err_set(err, "connect: interrupted after %u of them", done);
	else if (urn_clock_ns() - since > STALL_NS)
		urn_err_set(err, "connect: %s: nothing has moved for 10 seconds, after %u of them", what, done);
	else
		return 0;
	return -1;
}

static int
set_up(struct conn *c, struct urn_err *err)
{
	uint32_t all = c->o->qps;
	uint64_t moved = urn_clock_ns();

	while (c->end[0].up < all || c->end[1].up < all) {
		int a, b;

		while (c->asked < all && c->asked - c->end[1].up < WINDOW)
			if (ask(c, err) != 0)
				return -1;
		turn(c, false);
		b = take_events(c, 1, err);
		a = b < 0 ? -1 : take_events(c, 0, err);
		if (a < 0)
			return -1;
		if (a + b > 0)
			moved = urn_clock_ns();
		else
			turn(c, true);
		if (patience("connections", c->end[1].up, moved, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- afterwards, each carries a message */

static int
post_receives(struct conn *c, struct urn_err *err)
{
	struct conn_end *e = &c->end[1];

	for (uint32_t i = 0; i < c->o->qps; i++) {
		struct ibv_sge sge = {(uintptr_t)&e->mem[i], MESSAGE, e->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		if (ibv_post_srq_recv(e->srq, &wr, &bad) != 0)
			return failed("post a receive", err);
	}
	return 0;
}

static int
send_one(struct conn *c, uint32_t n, struct urn_err *err)
{
	struct conn_end *e = &c->end[0];
	struct ibv_sge sge = {(uintptr_t)&e->mem[n], MESSAGE, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	/* The message names its connection: B knows the peer of each of its queue pairs. */
	e->mem[n] = (uint64_t)c->end[1].qp[n]->qp_num << 32 | n;
	return ibv_post_send(e->qp[n], &wr, &bad) == 0 ? 0 : failed("post a message", err);
}

/* returns: number of completions taken, or -1 with *err */
static int
take_messages(struct conn *c, unsigned int i, uint32_t *done, struct urn_err *err)
{
	struct ibv_wc wc[PERF_BATCH];
	int n = ibv_poll_cq(c->end[i].cq, PERF_BATCH, wc);

	for (int k = 0; k < n; k++) {
		uint64_t word = i == 1 ? c->end[1].mem[wc[k].wr_id] : 0;

		if (wc[k].status != IBV_WC_SUCCESS) {
			urn_explain_print("urnic-perf", c->end[i].cq->context, &wc[k]);
			urn_err_set(err, "connect: QP 0x%06x of node %c: %s", wc[k].qp_num, 'A' + (int)i,
				    ibv_wc_status_str(wc[k].status));
			return -1;
		}
		if (i == 1 && word >> 32 != wc[k].qp_num) {
			urn_err_set(err, "connect: QP 0x%06x got the message of QP 0x%06x", wc[k].qp_num,
				    (unsigned int)(word >> 32));
			return -1;
		}
		*done += 1;
	}
	return n;
}

static int
carry(struct conn *c, struct urn_err *err)
{
	uint32_t all = c->o->qps, sent = 0, acked = 0;
	uint64_t moved = urn_clock_ns();

	if (post_receives(c, err) != 0)
		return -1;
	while (acked < all || c->carried < all) {
		int a, b;

		for (; sent < all && sent - acked < WINDOW; sent++)
			if (send_one(c, sent, err) != 0)
				return -1;
		turn(c, false);
		a = take_messages(c, 0, &acked, err);
		b = a < 0 ? -1 : take_messages(c, 1, &c->carried, err);
		if (b < 0)
			return -1;
		if (a + b > 0)
			moved = urn_clock_ns();
		else
			turn(c, true);
		if (patience("messages", c->carried, moved, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- */

static void
tell(const struct conn *c, uint64_t ns)
{
	double seconds = (double)ns / 1e9, rate = (double)c->o->qps / seconds;
	struct urn_counters sum = {{0}}, one;
	struct urn_json j;

	for (unsigned int i = 0; c->dp != NULL && i < 2; i++) {
		urn_dp_counters(c->dp, i, &one);
		for (unsigned int k = 0; k < URN_COUNTER_COUNT; k++)
			sum.v[k] += one.v[k];
	}
	if (!c->o->json) {
		printf("urnic-perf connect: %u connections by connection management, %s: %.3f s, %.0f a second\n",
		       c->o->qps, c->dp != NULL ? "one process" : "attached", seconds, rate);
		if (c->dp != NULL)
			printf("  repeated %llu, given up %llu, duplicates %llu\n",
			       (unsigned long long)sum.v[URN_C_CM_RETRANSMITS],
			       (unsigned long long)sum.v[URN_C_CM_TIMEOUTS],
			       (unsigned long long)sum.v[URN_C_CM_DUPLICATE]);
		printf("  each carried a message: %u, checked\n", c->carried);
		return;
	}
	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", "connect");
	urn_json_str(&j, "link", c->dp != NULL ? perf_link_name(c->o->link) : "attached");
	urn_json_u64(&j, "conns", c->o->qps);
	urn_json_num(&j, "seconds", seconds, 6);
	urn_json_num(&j, "conn_rate", rate, 0);
	urn_json_u64(&j, "messages", c->carried);
	urn_json_bool(&j, "checked", true);
	if (c->dp != NULL)
		urn_json_counters(&j, "counters", "", urn_counter_name, sum.v, URN_COUNTER_COUNT);
	urn_json_end(&j);
}

static int
measure(struct conn *c, struct rig *rig, struct urn_err *err)
{
	uint64_t start;

	if (c->o->attach == NULL && own_dataplane(c, rig, err) != 0)
		return -1;
	for (unsigned int i = 0; i < 2; i++)
		if (end_open(c, i, err) != 0)
			return -1;
	start = urn_clock_ns();
	if (set_up(c, err) != 0)
		return -1;
	start = urn_clock_ns() - start;
	if (carry(c, err) != 0)
		return -1;
	tell(c, start);
	return 0;
}

int
conn_run(struct rig *rig, const struct perf_opts *o, struct urn_err *err)
{
	struct conn c = {.o = o};
	int rc;

	urn_ep_opts_default(&c.ep);
	c.ep.mtu_code = side_mtu_code(o->mtu);
	c.ep.timeout = o->timeout;
	c.ep.max_rd_atomic = c.ep.max_dest_rd_atomic = 1;
	rc = measure(&c, rig, err);
	end_close(&c, &c.end[0]);
	end_close(&c, &c.end[1]);
	for (unsigned int i = 0; c.dp != NULL && i < 2; i++)
		urn_engine_unbind(urn_dp_engine(c.dp, i));
	rig_drain(rig);
	urn_rig_dataplane_down(&rig->base);
	return rc;
}
