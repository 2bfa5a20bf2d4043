/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig_priv.h"

#include "control/objects.h"
#include "common/test_cm_look.h"
#include "common/test_sent.h"
#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

void
rig_die(const char *what, const char *why)
{
	fail_msg("%s: %s", what, why);
	abort(); /* not reached: cmocka has jumped */
}

/* Write frames down that a node's port takes. */
static uint16_t
on_tx(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n, void *arg)
{
	(void)port;
	(void)queue;
	(void)arg;
	for (uint16_t i = 0; i < n; i++)
		test_sent(m[i]);
	return n;
}

static void
watch_port(const struct urn_port *p)
{
	for (uint16_t q = 0; test_sent_wanted() && q < p->caps.queues; q++)
		assert_non_null(rte_eth_add_tx_callback(p->id, q, on_tx, NULL));
}

static void
open_ports(struct rig *r)
{
	static bool eal;
	struct urn_port_config pc[2] = {{.name = "p0"}, {.name = "p1"}};
	struct urn_err err = {{0}};

	if (!eal) {
		struct urn_eal_config ec = {.program = "test", .memory_mb = 256};

		if (urn_eal_start(&ec, &err) != 0)
			rig_die("EAL", err.text);
		atexit(urn_eal_stop);
		eal = true;
	}
	for (int i = 0; i < 2; i++) {
		pc[i].queues = (uint16_t)(r->cfg.queues ? r->cfg.queues : r->engines > 2 ? 2 : 1);
		pc[i].mbufs = 2048;
		pc[i].roce_mtu = r->cfg.mtu[i];
	}
	r->wire_rng = r->cfg.wire_seed;
	if (!r->cfg.wire_seed) {
		if (urn_port_open_ring_pair(pc, r->port, &err) != 0)
			rig_die("ring ports", err.text);
		return;
	}
	for (int i = 0; i < 2; i++) {
		struct urn_port_config far[2] = {pc[i], pc[i]};
		struct urn_port *p[2];

		snprintf(far[1].name, sizeof(far[1].name), "w%d", i);
		if (urn_port_open_ring_pair(far, p, &err) != 0)
			rig_die("ring ports", err.text);
		r->port[i] = p[0];
		r->wire[i] = p[1];
	}
}

/* ---- a dataplane that programs attach to */

static void
turn(struct rig *r)
{
	for (unsigned int i = 0; i < r->engines; i++)
		urn_engine_poll(urn_dp_engine(r->dp, i));
	if (r->cfg.wire_seed)
		rig_wire_turn(r);
}

static void *
turn_all(void *arg)
{
	struct rig *r = arg;
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->engines; i++)
		urn_engine_bind(urn_dp_engine(r->dp, i));
	while (!r->stop) {
		turn(r);
		/* Threads that wake up beside threads that only yield may wait for seconds (Linux 6.18). */
		if (++n % 64 == 0)
			usleep(1);
		else
			sched_yield();
	}
	for (unsigned int i = 0; i < r->engines; i++)
		urn_engine_unbind(urn_dp_engine(r->dp, i));
	return NULL;
}

static void
serve(struct rig *r)
{
	struct urn_server_config cfg = {.path = r->path,
					.gid = (gid_t)-1,
					.per_client = r->cfg.per_client,
					.per_uid = r->cfg.per_uid,
					.clients_per_uid = r->cfg.clients_per_uid,
					.node = r->cfg.node,
					.look_ms = r->cfg.look_ms,
					.shared = r->cfg.shared,
					.queues = r->cfg.queue_memory};
	struct urn_err err = {{0}};

	snprintf(r->path, sizeof(r->path), "%s/dp.sock", urn_eal_dir());
	r->server = urn_server_open(r->dp, &cfg, &err);
	if (!r->server)
		rig_die("server", err.text);
	assert_int_equal(pthread_create(&r->thread, NULL, turn_all, r), 0);
	r->pid = getpid();
}

static void
open_dataplane(struct rig *r)
{
	struct urn_adapter_config ac[2];
	struct urn_dp_config dc = {.engines = r->engines, .adapters = 2, .adapter = ac};
	struct urn_err err = {{0}};

	memset(ac, 0, sizeof(ac));
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(ac[i].node, sizeof(ac[i].node), "%c", 'a' + (char)i);
		ac[i].port = r->port[i];
		ac[i].engines = r->engines == 1 ? 1u : r->engines == 2 ? 1u << i : 5u << i;
		ac[i].ipv4[0] = 10;
		ac[i].ipv4[3] = (uint8_t)(i + 1);
		ac[i].ipv6[0] = r->cfg.global ? 0xfd : 0;
		ac[i].ipv6[15] = r->cfg.global ? (uint8_t)(i + 1) : 0;
		ac[i].no_learn = ac[i].no_cm = r->cfg.no_learn >> i & 1;
		ac[i].features_off = r->cfg.no_features >> i & 1 ? UINT32_MAX : 0;
		ac[i].window = r->cfg.window;
		ac[i].work_in_flight = r->cfg.work_in_flight ? r->cfg.work_in_flight : 4096;
		ac[i].max_qp = r->cfg.max_qp ? r->cfg.max_qp : 1024;
		ac[i].am_unregistered = r->cfg.unregistered;
		ac[i].max_mr = 1024;
		ac[i].area_size = 64 << 20;
		ac[i].mem_delay_seed = r->cfg.delay_seed;
		ac[i].cache_line = r->cfg.cache_line;
		ac[i].count_stores = r->cfg.count_stores;
		ac[i].mem_foreign = r->cfg.foreign || getenv("URNIC_TEST_FOREIGN");
		ac[i].mem_delay_percent = r->cfg.delay_seed ? 60 : 0;
		ac[i].mem_delay_polls = 20;
		if (!r->cfg.fail_node || r->cfg.fail_node == i + 1)
			ac[i].mem_fail_per_million = r->cfg.fail_per_million;
	}
	r->dp = urn_dp_create(&dc, &err);
	if (!r->dp)
		rig_die("dataplane", err.text);
	if (r->cfg.remote) {
		serve(r);
		return;
	}
	for (unsigned int i = 0; i < r->engines; i++)
		urn_engine_bind(urn_dp_engine(r->dp, i));
}

/* A context on the adapter of a node. */
static struct ibv_context *
context_of(struct rig *r, unsigned int node)
{
	char name[2] = {(char)('a' + node), '\0'};
	struct urn_err err = {{0}};
	struct ibv_context *ctx;
	struct urn_abi_channel *ch;

	if (r->cfg.remote) {
		ctx = urn_attach_connect(r->path, name);
	} else {
		ch = urn_dp_attach(r->dp, node, &err);
		if (!ch)
			rig_die("attach", err.text);
		ctx = urn_attach_open(ch);
	}
	if (!ctx)
		rig_die("open", urn_attach_error());
	return ctx;
}

static void
open_end(struct rig *r, int e)
{
	struct rig_end *end = &r->end[e];

	end->ctx = context_of(r, r->cfg.loopback ? 0 : (unsigned int)e);
	end->pd = ibv_alloc_pd(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 4096, NULL, NULL, 0);
	end->buf = r->cfg.remote ? urn_alloc(RIG_BUF) : aligned_alloc(4096, RIG_BUF);
	if (!end->pd || !end->cq || !end->buf)
		rig_die("objects", urn_attach_error());
	memset(end->buf, 0, RIG_BUF);
	end->mr = ibv_reg_mr(end->pd, end->buf, RIG_BUF,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
	if (!end->mr)
		rig_die("region", urn_attach_error());
	end->psn = 0xfffffe - (uint32_t)e; /* the PSN wraps soon */
}

void
rig_open(struct rig *r, const struct rig_config *cfg, const struct rig_qp *qp)
{
	static const struct rig_qp plain;

	memset(r, 0, sizeof(*r));
	if (cfg)
		r->cfg = *cfg;
	if (getenv("RIG_REMOTE"))
		r->cfg.remote = true;
	r->engines = r->cfg.engines ? r->cfg.engines : 2;
	r->ipv6 = r->cfg.ipv6;
	qp = qp ? qp : &plain;
	open_ports(r);
	for (int i = 0; i < RIG_NODES; i++)
		watch_port(r->port[i]);
	open_dataplane(r);
	for (int e = 0; e < 2; e++)
		open_end(r, e);
	for (int e = 0; e < 2; e++)
		r->end[e].qp = rig_make_qp(r, e, qp);
	for (int e = 0; e < 2; e++)
		rig_connect(r, e, r->end[e].qp, r->end[e].psn, r->end[!e].qp->qp_num, r->end[!e].psn, qp);
}

void
rig_close(struct rig *r)
{
	for (int e = 0; e < 2; e++) {
		struct rig_end *end = &r->end[e];

		if (end->qp)
			assert_int_equal(ibv_destroy_qp(end->qp), 0);
		if (end->cq)
			assert_int_equal(ibv_destroy_cq(end->cq), 0);
		if (end->mr)
			assert_int_equal(ibv_dereg_mr(end->mr), 0);
		if (end->pd)
			assert_int_equal(ibv_dealloc_pd(end->pd), 0);
		if (end->ctx)
			assert_int_equal(ibv_close_device(end->ctx), 0);
		if (r->cfg.remote)
			urn_free(end->buf);
		else
			free(end->buf);
	}
	if (r->cfg.remote) {
		urn_server_close(r->server);
		r->stop = true;
		pthread_join(r->thread, NULL);
	}
	for (unsigned int i = 0; i < r->engines; i++)
		urn_engine_unbind(urn_dp_engine(r->dp, i));
	urn_dp_destroy(r->dp);
	for (int i = 0; i < RIG_LATE; i++)
		rte_pktmbuf_free(r->held[i].m);
	rig_wire_drain(r);
	for (int i = 0; i < 2; i++) {
		urn_port_close(r->port[i]);
		urn_port_close(r->wire[i]);
	}
}

void
rig_turn(struct rig *r)
{
	static unsigned int n;

	if (!r->cfg.remote)
		turn(r);
	else if (++n % 64 == 0)
		usleep(1);
	else
		sched_yield();
}

/* Turns of the engine that is the last one in each round. */
static uint64_t
rounds(const struct rig *r)
{
	struct urn_engine_usage u;

	urn_engine_usage(urn_dp_engine(r->dp, r->engines - 1), &u);
	return u.turns;
}

void
rig_turns(struct rig *r, unsigned int n)
{
	/* A child of fork() has no such thread. */
	bool other = r->cfg.remote && r->pid == getpid();
	/* The first of these rounds may have begun before. */
	uint64_t until = other ? rounds(r) + n + 1 : 0;
	time_t start = time(NULL);

	while (n--)
		rig_turn(r);
	for (; other && rounds(r) < until; rig_turn(r))
		if (time(NULL) - start > 60)
			fail_msg("the engines have not turned for a minute");
}

struct ibv_wc
rig_wait(struct rig *r, int e)
{
	time_t start = time(NULL);
	struct ibv_wc wc;

	/* 60 seconds are enough on any machine: a test that waits longer has failed. */
	while (time(NULL) - start < 60) {
		for (int i = 0; i < 256; i++) {
			rig_turn(r);

			int n = ibv_poll_cq(r->end[e].cq, 1, &wc);

			assert_true(n >= 0);
			if (n == 1)
				return wc;
		}
	}
	fail_msg("no completion at end %d in a minute", e);
	memset(&wc, 0, sizeof(wc));
	return wc;
}

struct ibv_wc
rig_expect(struct rig *r, int e, enum ibv_wc_status status)
{
	struct ibv_wc wc = rig_wait(r, e);

	if (wc.status != status)
		fail_msg("end %d: wr_id %llu: %s, expected %s (vendor_err %u)", e,
			 (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
			 ibv_wc_status_str(status), wc.vendor_err);
	return wc;
}

void
rig_quiet(struct rig *r, int e)
{
	struct ibv_wc wc;

	rig_turns(r, 2000);
	assert_int_equal(ibv_poll_cq(r->end[e].cq, 1, &wc), 0);
}

struct ibv_context *
rig_attach(struct rig *r, unsigned int node)
{
	return context_of(r, node);
}

static bool
event_waits(struct rig *r, int e)
{
	struct pollfd p = {.fd = r->end[e].ctx->async_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

void
rig_event(struct rig *r, int e, enum ibv_event_type type)
{
	struct ibv_async_event ev;
	time_t start = time(NULL);

	/* An engine of another thread may not run for long. */
	while (!event_waits(r, e) && time(NULL) - start < 60)
		for (int i = 0; i < 256 && !event_waits(r, e); i++)
			rig_turn(r);
	if (!event_waits(r, e))
		fail_msg("no event \"%s\" at end %d", ibv_event_type_str(type), e);
	assert_int_equal(ibv_get_async_event(r->end[e].ctx, &ev), 0);
	if (ev.event_type != type)
		fail_msg("event \"%s\", expected \"%s\"", ibv_event_type_str(ev.event_type),
			 ibv_event_type_str(type));
	ibv_ack_async_event(&ev);
}

void
rig_no_event(struct rig *r, int e)
{
	rig_turns(r, 200);
	assert_false(event_waits(r, e));
}

uint64_t
rig_counter(struct rig *r, int node, enum urn_counter id)
{
	struct urn_counters c;

	urn_dp_counters(r->dp, (unsigned int)node, &c);
	return c.v[id];
}

void
rig_fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1103515245u + 12345u;
		p[i] = (uint8_t)(seed >> 16);
	}
}

uint32_t
rig_cm_ids(struct rig *r, int node)
{
	struct urn_cm_agent *ag = r->dp->adapter[node]->cm;
	uint32_t n = test_cm_count(urn_cm_agent_lock(ag));

	urn_cm_agent_unlock(ag);
	return n;
}
