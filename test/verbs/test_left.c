/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client gives the dataplane up, which does not answer: real engines write nothing into its
 * memory any more, wherever a packet for it comes from, say nothing to its peer, and serve other
 * clients as ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "control/objects.h"
#include "engine/engine.h"
#include "log/ring.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define MS 1000000ull

enum { LEN = 100, AT = 4096 /* where end 1's buffer is written */ };

static uint64_t now; /* ns: the engines' clock */
static struct urn_log_ring ring;

static struct urn_engine *
engine_of(struct rig *r, int node)
{
	return urn_dp_engine(r->dp, r->engines == 1 ? 0 : (unsigned int)node);
}

/* The shard of a node. */
static struct urn_shard *
shard_of(struct rig *r, int node)
{
	const struct urn_engine *e = engine_of(r, node);

	return e->shard[e->shards_n > 1 ? node : 0];
}

static void
open_rig(struct rig *r, const struct rig_config *cfg)
{
	rig_open(r, cfg, NULL);
	rig_turns(r, 200); /* announcements, and what the nodes tell each other */
	now = 1;
	for (unsigned int i = 0; i < r->engines; i++)
		if (urn_dp_engine(r->dp, i)->turned >= now)
			now = urn_dp_engine(r->dp, i)->turned + 1;
	for (unsigned int i = 0; i < r->engines; i++)
		urn_dp_engine(r->dp, i)->cfg.clock = &now;
	rig_turns(r, 2);
}

/* An engine's turn, so long after the one before. */
static void
turn_after(struct urn_engine *e, uint64_t ns)
{
	now += ns;
	(void)urn_engine_poll(e);
}

/* The client's shard of the end whose QP this is. */
static struct urn_client_shard *
client_of(struct urn_shard *s, const struct ibv_qp *qp)
{
	return urn_client_shard_of(urn_tp_qp(s->tp, qp->qp_num)->share);
}

static void
leave(struct urn_client_shard *c)
{
	atomic_store(&c->scan.db->left, 1);
}

static void
write_to_1(struct rig *r)
{
	memset(r->end[0].buf, 0x77, LEN);
	rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, LEN, AT, 1);
}

static bool
is_written(const struct rig *r)
{
	return r->end[1].buf[AT] == 0x77;
}

/* End 0 hears nothing of its peer, and ends by its own retries. */
static void
expect_silence(struct rig *r)
{
	time_t start = time(NULL);
	struct ibv_wc wc;

	while (time(NULL) - start < 60) {
		now += MS; /* less than the time after which an engine counts as stood */
		rig_turn(r);
		if (ibv_poll_cq(r->end[0].cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
			assert_int_equal(rig_counter(r, 0, URN_C_RX_NAKS), 0);
			return;
		}
	}
	fail_msg("end 0 still waits");
}

static void
expect_ended(struct rig *r, struct urn_client_shard *c, int node, unsigned int qps)
{
	assert_false(is_written(r));
	assert_int_equal(rig_counter(r, node, URN_C_LEFT_QPS), qps);
	assert_int_equal(c->scan.db->ended, 1);
}

/* The log of events has one record: the client that left, and the number of its QPs. */
static void
expect_logged(const struct urn_client_shard *c)
{
	struct urn_log_failure f;

	assert_true(urn_log_ring_take(&ring, &f));
	assert_int_equal(f.left, 1);
	assert_int_equal(f.who.pid, c->client->who.pid);
	assert_int_equal(f.who.client, c->client->who.client);
	assert_string_equal(f.adapter, c->shard->name);
	assert_false(urn_log_ring_take(&ring, &f));
}

/* ---- an engine that stood still */

/* The packet waits at the port. */
static void
test_port(void **state)
{
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	leave(c);
	engine_of(&r, 1)->log = &ring;
	turn_after(engine_of(&r, 1), 100 * MS);
	expect_ended(&r, c, 1, 1);
	expect_logged(c);
	engine_of(&r, 1)->log = NULL;
	expect_silence(&r);
	rig_close(&r);
}

/* An acknowledgement that the QP still owes would tell the peer that the client goes on. */
static void
test_owes(void **state)
{
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 1), 1000);
	assert_true(is_written(&r));
	leave(c);
	turn_after(engine_of(&r, 1), 100 * MS);
	assert_int_equal(rig_counter(&r, 1, URN_C_LEFT_QPS), 1);
	expect_silence(&r);
	rig_close(&r);
}

/* The packet comes from the client's own adapter: its frame waits in the transport. */
static void
test_loopback(void **state)
{
	struct rig_config cfg = {.loopback = true};
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	c = client_of(shard_of(&r, 0), r.end[1].qp);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	assert_int_equal(shard_of(&r, 0)->tp->loop_n, 1);
	leave(c);
	turn_after(engine_of(&r, 0), 100 * MS);
	expect_ended(&r, c, 0, 1);
	expect_silence(&r);
	rig_close(&r);
}

/* Another engine has handed the packet over. */
static void
test_handed_over(void **state)
{
	struct urn_xmsg x = {.kind = URN_X_RX};
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	x.shard = shard_of(&r, 1);
	c = client_of(x.shard, r.end[1].qp);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	assert_int_equal(urn_port_rx(r.port[1], 0, &x.m, 1), 1);
	assert_true(urn_engine_put(engine_of(&r, 1), &x));
	leave(c);
	turn_after(engine_of(&r, 1), 100 * MS);
	expect_ended(&r, c, 1, 1);
	expect_silence(&r);
	rig_close(&r);
}

/* A client beside the one that left: its own context and QP on node 1, and QPs on node 0. */
struct beside {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp, *peer;
	uint8_t buf[LEN];
};

static void
beside_open(struct rig *r, struct beside *b)
{
	const struct rig_qp plain = {.type = IBV_QPT_RC};

	b->ctx = rig_attach(r, 1);
	b->pd = ibv_alloc_pd(b->ctx);
	b->cq = ibv_create_cq(b->ctx, 64, NULL, NULL, 0);
	b->mr = ibv_reg_mr(b->pd, b->buf, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(b->mr);
	memset(b->buf, 0, LEN);
	b->qp = rig_make_qp(r, 1,
			    &(struct rig_qp){.pd = b->pd, .send_cq = b->cq, .recv_cq = b->cq});
	b->peer = rig_make_qp(r, 0, &plain);
	rig_connect(r, 0, b->peer, 7, b->qp->qp_num, 8, &plain);
	rig_connect(r, 1, b->qp, 8, b->peer->qp_num, 7, &plain);
}

static void
beside_close(struct beside *b)
{
	assert_int_equal(ibv_destroy_qp(b->peer), 0);
	assert_int_equal(ibv_destroy_qp(b->qp), 0);
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	assert_int_equal(ibv_dereg_mr(b->mr), 0);
	assert_int_equal(ibv_dealloc_pd(b->pd), 0);
	assert_int_equal(ibv_close_device(b->ctx), 0);
}

/* Packets of another client are taken in the very turn in which the engine goes on. */
static void
test_others(void **state)
{
	struct urn_client_shard *c;
	struct beside b;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .num_sge = 1};
	struct ibv_sge sge = {.length = LEN};
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	beside_open(&r, &b);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	write_to_1(&r);
	sge.addr = (uintptr_t)r.end[0].buf;
	sge.lkey = r.end[0].mr->lkey;
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	wr.wr.rdma.rkey = b.mr->rkey;
	rig_send_on(b.peer, &wr);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	leave(c);
	turn_after(engine_of(&r, 1), 100 * MS);
	expect_ended(&r, c, 1, 1);
	assert_false(client_of(shard_of(&r, 1), b.qp)->left);
	assert_int_equal(b.buf[0], 0x77);
	beside_close(&b);
	rig_close(&r);
}

/* A short pause of an engine is no reason to look: nothing is taken from a client that stays. */
static void
test_stays(void **state)
{
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 1), 100 * MS);
	assert_true(is_written(&r));
	assert_int_equal(rig_counter(&r, 1, URN_C_LEFT_QPS), 0);
	rig_close(&r);
}

/* ---- an engine that runs on */

/* The client rings as it leaves. */
static void
test_rings(void **state)
{
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	write_to_1(&r);
	turn_after(engine_of(&r, 0), 1000);
	turn_after(engine_of(&r, 0), 1000);
	leave(c);
	(void)urn_abi_db_ring(c->scan.db, 0);
	turn_after(engine_of(&r, 1), 1000);
	expect_ended(&r, c, 1, 1);
	/* The ended QP stays ended, whatever its client rings for. */
	(void)urn_abi_db_ring(c->scan.db, 0);
	turn_after(engine_of(&r, 1), 1000);
	assert_int_equal(rig_counter(&r, 1, URN_C_LEFT_QPS), 1);
	expect_silence(&r);
	rig_close(&r);
}

/*
 * The worker of the client's memory finds out first: its refusal is no fault of the peer's request,
 * which must not be told of one.
 */
static void
refused(enum ibv_wr_opcode op)
{
	struct rig_config cfg = {.foreign = true};
	struct urn_client_shard *c;
	time_t start = time(NULL);
	struct rig r;

	open_rig(&r, &cfg);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	leave(c);
	memset(r.end[0].buf, 0x77, LEN);
	rig_post(&r, 0, op, 0, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : LEN, AT, 1);
	while (rig_counter(&r, 1, URN_C_LEFT_QPS) == 0 && time(NULL) - start < 60) {
		now += 1000;
		rig_turn(&r);
	}
	rig_turns(&r, 10);
	assert_int_equal(rig_counter(&r, 1, URN_C_LEFT_QPS), 1);
	assert_int_equal(rig_counter(&r, 1, URN_C_NAK_OPERATIONAL), 0);
	assert_int_equal(rig_counter(&r, 1, URN_C_TX_NAKS), 0);
	assert_int_equal(rig_counter(&r, 0, URN_C_RX_NAKS), 0);
	assert_false(is_written(&r));
	rig_close(&r);
}

static void
test_refused(void **state)
{
	(void)state;
	refused(IBV_WR_RDMA_WRITE);
	refused(IBV_WR_RDMA_READ);
	refused(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* A call that waits for memory of the client's own tells the client so: the dataplane lives. */
static void
test_waits(void **state)
{
	struct rig_config cfg = {.delay_seed = 7};
	struct urn_client_shard *c;
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	c = client_of(shard_of(&r, 1), r.end[1].qp);
	for (uint64_t i = 0; i < 16; i++)
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, LEN, AT, i);
	for (int i = 0; i < 100 && urn_memx_holds(shard_of(&r, 1)->memx, NULL) == 0; i++) {
		turn_after(engine_of(&r, 0), 1000);
		turn_after(engine_of(&r, 1), 1000);
	}
	assert_int_equal(c->scan.db->waits, 0);
	assert_int_equal(ibv_dereg_mr(r.end[1].mr), 0);
	r.end[1].mr = NULL;
	assert_true(c->scan.db->waits > 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_port),	    cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_owes),	    cmocka_unit_test(test_others),
		cmocka_unit_test(test_handed_over), cmocka_unit_test(test_stays),
		cmocka_unit_test(test_rings),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
