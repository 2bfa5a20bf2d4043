/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Somebody writes a peer's address and the number of its queue pair into a request for a
 * connection, and sends that: the peer's connection goes on. A peer that did forget its connection
 * gets a new one (cm/cm_stale.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"

#include "wire/cm.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* The queue pairs of a rig's ends, connected by connection management. */
struct stale_way {
	struct ibv_qp *qp[2];
	uint32_t id[2];
};

static const struct rig_qp plain;

/* Bring a connection of these queue pairs up; end `from` asks. */
static void
connected(struct rig *r, int from, struct stale_way *w)
{
	struct urn_abi_cm_event req, rep;
	int to = !from;

	w->id[from] = rig_cm_connect(r, from, w->qp[from]->qp_num);
	req = rig_cm_expect(r, to, URN_CM_EVENT_REQUEST);
	w->id[to] = req.id;
	rig_connect(r, to, w->qp[to], req.psn, req.qpn, 0x2000 + (w->qp[to]->qp_num & 0xfff),
		    &plain);
	rig_cm_accept(r, to, w->id[to], w->qp[to]->qp_num);
	rep = rig_cm_expect(r, from, URN_CM_EVENT_REPLY);
	rig_connect(r, from, w->qp[from], rep.psn, rep.qpn, 0x1000 + (w->qp[from]->qp_num & 0xfff),
		    &plain);
	assert_int_equal(rig_cm_call(r, from, URN_CTL_CM_ESTABLISH, w->id[from], 0), 0);
	rig_cm_expect(r, to, URN_CM_EVENT_ESTABLISHED);
}

/* The connection carries data both ways. */
static void
carries(struct rig *r, const struct stale_way *w)
{
	for (int e = 0; e < 2; e++) {
		struct ibv_qp *kept = r->end[e].qp;

		r->end[e].qp = w->qp[e];
		rig_fill(r->end[e].buf, 5000, (uint32_t)e + 7);
		rig_post(r, e, IBV_WR_RDMA_WRITE, 0, 5000, 8192, 1);
		rig_expect(r, e, IBV_WC_SUCCESS);
		assert_memory_equal(r->end[!e].buf + 8192, r->end[e].buf, 5000);
		r->end[e].qp = kept;
	}
}

/* A frame comes to end e that has all marks of the other end: a request for that end's connected
 * queue pair. */
static void
forge(struct rig *r, int e, const struct stale_way *w, uint32_t id)
{
	struct urn_cm_msg msg = {.attr = URN_CM_REQ,
				 .tid = id,
				 .local_id = id,
				 .service_id = SERVICE,
				 .qpn = w->qp[!e]->qp_num,
				 .mtu = 3,
				 .max_retries = 15,
				 .local_timeout = 14};
	struct urn_path path = {.sport = 0xc001, .ttl = 64};
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->wire[e]->pool);
	uint8_t mad[URN_MAD_BYTES];
	union ibv_gid gid[2];

	assert_non_null(m);
	for (int i = 0; i < 2; i++)
		rig_gid(r, i, &gid[i]);
	memcpy(path.smac, r->port[!e]->mac, 6);
	memcpy(path.dmac, r->port[e]->mac, 6);
	memcpy(path.sgid, gid[!e].raw, 16);
	memcpy(path.dgid, gid[e].raw, 16);
	urn_cm_write(mad, &msg);
	assert_int_equal(urn_mad_frame(m, &path, mad, id, 1), 0);
	assert_int_equal(urn_port_tx(r->wire[e], 0, &m, 1), 1);
}

/* Turn until a counter of a node is this, at least. */
static void
await(struct rig *r, int node, enum urn_counter c, uint64_t n)
{
	time_t start = time(NULL);

	while (rig_counter(r, node, c) < n) {
		if (time(NULL) - start > 60)
			fail_msg("node %d: counter %u is not %llu after a minute", node, c,
				 (unsigned long long)n);
		rig_turns(r, 16);
	}
}

static void
open_way(struct rig *r, const struct rig_config *cfg, int from, struct stale_way *w)
{
	rig_cm_open(r, cfg);
	assert_non_null(r->wire[0]);
	rig_cm_listen(r, 0, SERVICE, 0);
	rig_cm_listen(r, 1, SERVICE, 0);
	for (int e = 0; e < 2; e++)
		w->qp[e] = rig_make_qp(r, e, &plain);
	connected(r, from, w);
	carries(r, w);
}

static void
close_way(struct rig *r, struct stale_way *w)
{
	for (int e = 0; e < 2; e++)
		assert_int_equal(ibv_destroy_qp(w->qp[e]), 0);
	rig_cm_close(r);
}

/* Forged requests to both ends, over IPv4 and IPv6: neither program hears of them, and data goes
 * on. */
static void
test_forged(void **state)
{
	enum { FORGED = 50 };
	struct rig_config cfg = {.wire_seed = 1};

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct stale_way w;
		struct rig r;

		cfg.ipv6 = v6;
		open_way(&r, &cfg, 0, &w);
		for (uint32_t i = 0; i < FORGED; i++) {
			for (int e = 0; e < 2; e++) {
				forge(&r, e, &w, 0x51000000 + i);
				await(&r, e, URN_C_CM_STALE, i + 1);
			}
			carries(&r, &w);
		}
		for (int e = 0; e < 2; e++) {
			/* The other end, which has the connection, dropped the question. */
			await(&r, e, URN_C_CM_STALE_ASKED, 1);
			await(&r, !e, URN_C_DROP_CM_FIELD, 1);
			assert_int_equal(rig_counter(&r, e, URN_C_CM_STALE), FORGED);
			assert_int_equal(rig_counter(&r, e, URN_C_CM_STALE_ENDED), 0);
			rig_cm_nothing(&r, e);
		}
		carries(&r, &w);
		close_way(&r, &w);
	}
}

/* End e loses its part of a connection, and the other end hears nothing of that. */
static void
forget(struct rig *r, int e, const struct stale_way *w)
{
	uint32_t ids = rig_cm_ids(r, e);

	r->cfg.lose = 1000;
	assert_int_equal(rig_cm_call(r, e, URN_CTL_CM_DESTROY, w->id[e], 0), 0);
	rig_cm_await_ids(r, e, ids - 1);
	r->cfg.lose = 0;
	rig_to(w->qp[e], IBV_QPS_RESET);
}

/*
 * A peer that forgot its connection asks for one with the same queue pair: it is refused once, then
 * the other end's program hears that the old connection has ended, and the new one comes up.
 */
static void
test_restarted(void **state)
{
	struct rig_config cfg = {.wire_seed = 1};

	(void)state;
	for (int from = 0; from < 2; from++) { /* the end that forgets had asked, or was asked */
		struct urn_abi_cm_event ev;
		struct stale_way w, old;
		struct rig r;

		open_way(&r, &cfg, from, &w);
		old = w;
		forget(&r, 0, &w);
		rig_cm_nothing(&r, 1);
		w.id[0] = rig_cm_connect(&r, 0, w.qp[0]->qp_num);
		ev = rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED);
		assert_int_equal(ev.reason, URN_CM_REJ_STALE_CONN);
		ev = rig_cm_expect(&r, 1, URN_CM_EVENT_DISCONNECTED);
		assert_int_equal(ev.id, old.id[1]);
		assert_int_equal(rig_counter(&r, 1, URN_C_CM_STALE_ENDED), 1);
		assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, old.id[1], 0), 0);
		assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, w.id[0], 0), 0);
		rig_to(w.qp[1], IBV_QPS_RESET);
		connected(&r, 0, &w);
		carries(&r, &w);
		close_way(&r, &w);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_restarted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
