/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two adapters learn each other's abilities, by one exchange of management datagrams
 * between their QPs 1, and programs notice nothing of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/objects.h"
#include "engine/engine.h"
#include "rig.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* News told to the transports, by calls of urn_tp_peer_learned(). */
static struct {
	unsigned int calls;
	uint32_t features;
	uint8_t gid[16];
} told[URN_ABI_MAX_ENGINES];

void __real_urn_tp_peer_learned(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features);
void __wrap_urn_tp_peer_learned(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features);

void
__wrap_urn_tp_peer_learned(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features)
{
	unsigned int e = tp->cfg.engine;

	told[e].calls++;
	told[e].features = features;
	memcpy(told[e].gid, gid_peer, 16);
	__real_urn_tp_peer_learned(tp, gid_peer, features);
}

static void
open_rig(struct rig *r, const struct rig_config *cfg)
{
	memset(told, 0, sizeof(told));
	rig_open(r, cfg, NULL);
}

static struct urn_learn *
link_of(struct rig *r, int node)
{
	return r->dp->adapter[node]->learn;
}

/* The state of the other node at node `node`. */
static enum urn_learn_state
look(struct rig *r, int node, struct urn_link_info *info)
{
	union ibv_gid gid;

	rig_gid(r, !node, &gid);
	return urn_learn_peek(link_of(r, node), gid.raw, info);
}

/* Turn until node `node` no longer asks. returns: the state of the other node */
static enum urn_learn_state
settle(struct rig *r, int node)
{
	time_t start = time(NULL);
	enum urn_learn_state s;

	while ((s = look(r, node, NULL)) != URN_LEARN_KNOWN && s != URN_LEARN_PLAIN) {
		if (time(NULL) - start > 60)
			fail_msg("node %d: %s after a minute", node, urn_learn_state_name(s));
		rig_turns(r, 16);
	}
	return s;
}

/* Turn until node `node` knows all features of the other one: a request that came first proves
 * not all of them. */
static void
until_proved(struct rig *r, int node)
{
	time_t start = time(NULL);
	union ibv_gid gid;

	rig_gid(r, !node, &gid);
	while (urn_learn_features(link_of(r, node), gid.raw) != URN_LINK_F_ALL) {
		assert_true(time(NULL) - start <= 60);
		rig_turns(r, 16);
	}
}

static void
learn_each_other(const struct rig_config *cfg)
{
	struct rig r;

	open_rig(&r, cfg);
	for (int i = 0; i < 2; i++) {
		struct urn_link_info info;

		assert_int_equal(settle(&r, i), URN_LEARN_KNOWN);
		assert_int_equal(look(&r, i, &info), URN_LEARN_KNOWN);
		assert_int_equal(info.features, URN_LINK_F_ALL);
		assert_int_equal(info.major, URN_LINK_MAJOR);
		until_proved(&r, i);
	}
	rig_turns(&r, 100);
	/* Each engine of the node was told, and no other. */
	for (unsigned int e = 0; e < r.engines; e++) {
		union ibv_gid gid;

		rig_gid(&r, !(e & 1), &gid);
		assert_in_range(told[e].calls, r.engines == 1 ? 2 : 1, r.engines == 1 ? 4 : 2);
		assert_int_equal(told[e].features, URN_LINK_F_ALL);
		if (r.engines > 1)
			assert_memory_equal(told[e].gid, gid.raw, 16);
	}
	/* Programs saw nothing of it. */
	rig_quiet(&r, 0);
	rig_quiet(&r, 1);
	rig_no_event(&r, 0);
	rig_no_event(&r, 1);
	rig_close(&r);
}

static void
test_learn(void **state)
{
	static const struct rig_config cfg[] = {
		{0}, {.ipv6 = true}, {.engines = 1}, {.engines = 4}, {.engines = 4, .queues = 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cfg) / sizeof(cfg[0]); i++)
		learn_each_other(&cfg[i]);
}

/* A peer without link requests counts as plain, and gets its data all the same. */
static void
test_plain_peer(void **state)
{
	struct rig_config cfg = {.no_learn = 2};
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_int_equal(settle(&r, 0), URN_LEARN_PLAIN);
	assert_int_equal(rig_counter(&r, 0, URN_C_LINK_REQ_TX), URN_LEARN_TRIES);
	assert_int_equal(rig_counter(&r, 1, URN_C_DROP_NO_QP), URN_LEARN_TRIES);
	assert_int_equal(told[0].calls, 0);
	rig_post(&r, 1, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 1, IBV_WC_SUCCESS);
	rig_close(&r);
}

/* Change the Q_Key as a program does. */
static void
modify_qkey(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr a = {.qkey = qkey};

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_QKEY), 0);
}

/* Turn until the node's counter has reached n. */
static void
await(struct rig *r, int node, enum urn_counter id, uint64_t n)
{
	time_t start = time(NULL);

	while (rig_counter(r, node, id) < n) {
		if (time(NULL) - start > 60)
			fail_msg("node %d: %s is %llu after a minute", node, urn_counter_name(id),
				 (unsigned long long)rig_counter(r, node, id));
		rig_turns(r, 16);
	}
}

/* Traffic does not wait: data arrives while nothing is known of the peer. */
static void
test_data_first(void **state)
{
	/* Node 1 hears no request, and sends none itself. */
	struct rig_config cfg = {.no_learn = 2, .engines = 1};
	struct rig r;

	(void)state;
	open_rig(&r, &cfg);
	for (uint64_t i = 0; i < 8; i++) {
		rig_fill(r.end[0].buf, 5000, (uint32_t)i);
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, i);
		assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, i);
		assert_memory_equal(r.end[1].buf, r.end[0].buf, 5000);
		assert_int_not_equal(look(&r, 0, NULL), URN_LEARN_KNOWN);
	}
	rig_close(&r);
}

/* A peer that offers nothing, on either side: both know each other, and use no feature. */
static void
test_masked(void **state)
{
	(void)state;
	for (uint8_t who = 1; who <= 3; who++) {
		struct rig_config cfg = {.no_features = who};
		struct rig r;

		open_rig(&r, &cfg);
		for (int i = 0; i < 2; i++) {
			struct urn_link_info info;
			union ibv_gid gid;

			assert_int_equal(settle(&r, i), URN_LEARN_KNOWN);
			assert_int_equal(look(&r, i, &info), URN_LEARN_KNOWN);
			rig_gid(&r, !i, &gid);
			assert_int_equal(info.features, who >> !i & 1 ? 0 : URN_LINK_F_ALL);
			assert_int_equal(urn_learn_features(link_of(&r, i), gid.raw), 0);
		}
		rig_turns(&r, 100);
		assert_int_equal(told[0].features, 0);
		assert_int_equal(told[1].features, 0);
		rig_close(&r);
	}
}

/* One exchange for both nodes, however many queue pairs there are. */
static void
test_once(void **state)
{
	struct rig_qp o = {0};
	struct ibv_qp *more[2][8];
	uint64_t sent;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	/* A node that was asked first knows the other one, and still asks for a proof. */
	for (int i = 0; i < 2; i++)
		until_proved(&r, i);
	sent = rig_counter(&r, 0, URN_C_LINK_REQ_TX) + rig_counter(&r, 1, URN_C_LINK_REQ_TX);
	for (int q = 0; q < 8; q++) {
		for (int e = 0; e < 2; e++)
			more[e][q] = rig_make_qp(&r, e, &o);
		for (int e = 0; e < 2; e++)
			rig_connect(&r, e, more[e][q], 1, more[!e][q]->qp_num, 1, &o);
		rig_turns(&r, 50);
	}
	rig_turns(&r, 2000);
	assert_int_equal(rig_counter(&r, 0, URN_C_LINK_REQ_TX) + rig_counter(&r, 1, URN_C_LINK_REQ_TX),
			 sent);
	for (int e = 0; e < 2; e++)
		for (int q = 0; q < 8; q++)
			assert_int_equal(ibv_destroy_qp(more[e][q]), 0);
	rig_close(&r);
}

/* The cache line size that a node tells is this machine's. */
static void
test_arw(void **state)
{
	long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
	struct urn_link_info info;
	union ibv_gid gid;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	assert_int_equal(settle(&r, 0), URN_LEARN_KNOWN);
	rig_gid(&r, 1, &gid);
	assert_int_equal(urn_learn_peek(link_of(&r, 0), gid.raw, &info), URN_LEARN_KNOWN);
	if (line > 0)
		assert_int_equal(info.arw, urn_link_arw_code(line));
	rig_close(&r);
}

/* A wire that loses, duplicates and delays: both nodes learn all the same. */
static void
test_bad_wire(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rig_config cfg = {.wire_seed = seed, .lose = 100, .twice = 200, .late = 200};
		unsigned int known = 0;
		struct rig r;

		open_rig(&r, &cfg);
		for (int i = 0; i < 2; i++)
			known += settle(&r, i) == URN_LEARN_KNOWN;
		if (known != 2)
			fail_msg("seed %llu: %u of 2 know the other", (unsigned long long)seed, known);
		rig_close(&r);
	}
}

/* A node that is taken down and comes up again is learnt anew. */
static void
test_restart(void **state)
{
	struct urn_adapter_config ac;
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct urn_dp *dp[2];
	struct urn_port_config pc[2] = {{.name = "near", .mbufs = 1024}, {.name = "far", .mbufs = 1024}};
	struct urn_link_info before, after;
	struct urn_port *port[2];
	struct urn_err err = {{0}};
	uint8_t gid[2][16];

	(void)state;
	memset(told, 0, sizeof(told));
	assert_int_equal(urn_port_open_ring_pair(pc, port, &err), 0);
	for (int up = 0; up < 2; up++) {
		for (int i = up; i < 2; i++) {
			memset(&ac, 0, sizeof(ac));
			ac = (struct urn_adapter_config){.node = "n", .port = port[i], .engines = 1,
							 .max_qp = 16, .max_mr = 16, .work_in_flight = 64};
			memcpy(ac.ipv4, (uint8_t[4]){10, 0, 0, (uint8_t)(1 + i)}, 4);
			ac.features_off = up ? URN_LINK_F_ALL : 0;
			dp[i] = urn_dp_create(&dc, &err);
			if (!dp[i])
				fail_msg("%s", err.text);
			memcpy(gid[i], dp[i]->adapter[0]->gid[1], 16);
		}
		if (!up)
			urn_learn_features(dp[0]->adapter[0]->learn, gid[1]);
		else /* the restarted node asks */
			urn_learn_features(dp[1]->adapter[0]->learn, gid[0]);
		for (time_t start = time(NULL);
		     urn_learn_peek(dp[up]->adapter[0]->learn, gid[!up], up ? &after : &before) !=
		     URN_LEARN_KNOWN;) {
			assert_true(time(NULL) - start < 60);
			urn_engine_poll(urn_dp_engine(dp[0], 0));
			urn_engine_poll(urn_dp_engine(dp[1], 0));
		}
		for (int i = 0; i < 2000; i++) {
			urn_engine_poll(urn_dp_engine(dp[0], 0));
			urn_engine_poll(urn_dp_engine(dp[1], 0));
		}
		assert_int_equal(
			urn_learn_peek(dp[0]->adapter[0]->learn, gid[1], up ? &after : &before),
			URN_LEARN_KNOWN);
		assert_int_equal(told[0].features, up ? 0 : URN_LINK_F_ALL);
		urn_dp_destroy(dp[1]);
	}
	assert_int_not_equal(before.epoch, after.epoch);
	assert_int_equal(urn_learn_features(dp[0]->adapter[0]->learn, gid[1]), 0);
	urn_dp_destroy(dp[0]);
	urn_port_close(port[0]);
	urn_port_close(port[1]);
}

/* ---- programs */

/* Programs can't have queue pair 1, and nobody hears a program's datagram to it. */
static void
test_not_for_programs(void **state)
{
	struct rig_qp o = {.type = IBV_QPT_UD};
	struct ibv_ah_attr aa = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .num_sge = 1};
	struct urn_link_msg msg = {.tid = 1, .info = {.epoch = 99}};
	struct ibv_sge sge;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct urn_link_info info, forged;
	struct rig r;

	(void)state;
	open_rig(&r, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(settle(&r, i), URN_LEARN_KNOWN);
	assert_int_equal(look(&r, 1, &info), URN_LEARN_KNOWN);
	qp = rig_make_qp(&r, 0, &o);
	assert_true((qp->qp_num & 0xfffff) > 1);
	rig_connect(&r, 0, qp, 1, 0, 0, &o);
	rig_gid(&r, 1, &aa.grh.dgid);
	aa.grh.sgid_index = (uint8_t)rig_sgid_index(&r);
	ah = ibv_create_ah(r.end[0].pd, &aa);
	assert_non_null(ah);
	/* A link request made by the program, to the other node's QP1: with the Q_Key a program may name ... */
	urn_link_write(r.end[0].buf, &msg);
	sge = (struct ibv_sge){(uintptr_t)r.end[0].buf, URN_MAD_BYTES, r.end[0].mr->lkey};
	wr.sg_list = &sge;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 1;
	wr.wr.ud.remote_qkey = URN_GSI_QKEY; /* top bit: the QP's own Q_Key is sent */
	rig_send_on(qp, &wr);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	await(&r, 1, URN_C_DROP_QKEY, 1);
	/* ... and with the right Q_Key, should the program have it. */
	modify_qkey(qp, URN_GSI_QKEY);
	rig_send_on(qp, &wr);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	await(&r, 1, URN_C_DROP_LINK_SOURCE, 1);
	assert_int_equal(look(&r, 1, &forged), URN_LEARN_KNOWN);
	assert_int_equal(forged.epoch, info.epoch);
	rig_quiet(&r, 0);
	rig_quiet(&r, 1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_plain_peer),
		cmocka_unit_test(test_data_first),
		cmocka_unit_test(test_masked),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_arw),
		cmocka_unit_test(test_bad_wire),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_not_for_programs),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
