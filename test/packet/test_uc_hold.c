/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC and foreign memory that is slow (transport/uc_hold.h): packets that find the gate closed wait
 * in their order, in a queue with bounds, and their senders are told (test_uc_near.c).
 */
#include "probe.h"

#include "bare.h"
#include "transport/uc_hold.h"

#include <stdlib.h>

enum { MTU = 1024, PDS = 10, KEPT = 256 /* packets of a probe's transport */ };

static uint8_t closed[PDS + 1];
static struct urn_memx_gate gate = {.pds = PDS, .pd = closed};

static void
open_uc(struct probe *p, const struct probe_config *like)
{
	struct probe_config c = like ? *like : (struct probe_config){0};

	c.type = URN_QPT_UC;
	probe_open(p, &c);
	p->tp->gate = &gate;
}

/* Close the gate of the probe's domain, or open it. */
static void
shut(struct probe *p, bool on)
{
	closed[p->pd] = on;
	gate.closed = on;
}

static void
some_turns(struct probe *p)
{
	for (int i = 0; i < 10; i++)
		probe_turn(p, 0);
}

/* The byte that senders see. */
static unsigned int
told(const struct probe *p, const struct urn_qp *qp)
{
	struct urn_tp_near near;

	urn_tp_near(p->tp, &near);
	assert_in_range(urn_qpn_slot(qp->qpn), 0, near.slots - 1);
	return near.full[urn_qpn_slot(qp->qpn)];
}

/* ---- the receiver */

/* Packets that come meanwhile take no receive, and are all taken in order when the gate opens. */
static void
waits(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) { /* 0: memory answers at once */
		struct probe p;

		open_uc(&p, &(struct probe_config){.delay_seed = seed});
		probe_recv(&p, 0, 4096, 1);
		probe_recv(&p, 4096, 64, 2);
		probe_send(&p, UC | SEND_FIRST, RQ(0), MTU, 1);
		some_turns(&p);
		assert_int_equal(told(&p, p.qp), 0);
		shut(&p, true);
		probe_send(&p, UC | SEND_MIDDLE, RQ(1), MTU, 2);
		probe_send(&p, UC | SEND_LAST, RQ(2), 10, 3);
		probe_write(&p, UC | WRITE_ONLY, RQ(3), 16384, 8, 8, 4);
		probe_send(&p, UC | SEND_ONLY, RQ(4), 64, 5);
		some_turns(&p);
		assert_int_equal(p.rcq.prod, 0);
		assert_int_equal(*probe_at(&p, 16384), 0);
		assert_int_equal(told(&p, p.qp), 1);
		assert_true(urn_tp_busy(p.tp));
		shut(&p, false);
		expect_recv(&p, 1, SUCCESS);
		assert_int_equal(probe_cqe(&p, true)->byte_len, 2 * MTU + 10);
		check_fill(probe_at(&p, MTU), MTU, 2, 0);
		expect_recv(&p, 2, SUCCESS);
		check_fill(probe_at(&p, 4096), 64, 5, 0);
		check_fill(probe_at(&p, 16384), 8, 4, 0);
		assert_int_equal(told(&p, p.qp), 0);
		expect_count(&p, UC_HELD, 4);
		expect_count(&p, DROP_MEMORY, 0);
		expect_silence(&p);
		probe_close(&p);
	}
}

/* A packet that comes once the gate is open waits behind those that wait still. */
static void
order(void **state)
{
	enum { MANY = 50 }; /* more than a turn takes */
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	for (uint32_t i = 0; i <= MANY; i++)
		probe_recv(&p, i * 64, 64, i);
	shut(&p, true);
	for (uint32_t i = 0; i < MANY; i++) {
		probe_send(&p, UC | SEND_ONLY, RQ(i), 8, i);
		if (i % 8 == 7)
			probe_turn(&p, 0);
	}
	probe_turn(&p, 0);
	shut(&p, false);
	probe_turn(&p, 0);
	assert_in_range(p.rcq.prod, 1, MANY - 1); /* a share of a turn */
	probe_send(&p, UC | SEND_ONLY, RQ(MANY), 8, MANY);
	for (uint32_t i = 0; i <= MANY; i++) {
		expect_recv(&p, i, SUCCESS);
		check_fill(probe_at(&p, i * 64), 8, i, 0);
	}
	expect_count(&p, UC_HELD, MANY + 1);
	expect_count(&p, DROP_UC_LATE, 0);
	expect_count(&p, DROP_UC_GAP, 0);
	probe_close(&p);
}

/* A queue pair that can send no more takes packets that waited all the same. */
static void
send_error(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	probe_recv(&p, 0, 64, 1);
	probe_post(&p, URN_WR_FETCH_ADD, URN_WRF_SIGNALED, 0, 8, 0, 2);
	expect_sent(&p, 2, LOC_QP_OP_ERR);
	assert_int_equal(p.qp->state, URN_QPS_SQE);
	shut(&p, true);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 64, 1);
	some_turns(&p);
	assert_int_equal(p.rcq.prod, 0);
	shut(&p, false);
	expect_recv(&p, 1, SUCCESS);
	probe_close(&p);
}

/* Packets that wait go when their queue pair does, and so does the word to senders. */
static void
ends(void **state)
{
	static const uint8_t to[] = {URN_QPS_ERR, URN_QPS_RESET, 0 /* destroyed */};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct probe p;

		open_uc(&p, NULL);
		shut(&p, true);
		for (uint32_t k = 0; k < 5; k++)
			probe_write(&p, UC | WRITE_ONLY, RQ(k), 8 * k, 8, 8, 9);
		some_turns(&p);
		assert_int_equal(p.tp->left.held, KEPT - 5);
		if (to[i])
			probe_state(&p, to[i]);
		else
			assert_true(bare_qp_stop(p.tp, p.qp));
		expect_count(&p, DROP_FLUSHED, 5);
		assert_int_equal(p.tp->left.held, KEPT);
		assert_int_equal(told(&p, p.qp), 0);
		shut(&p, false);
		some_turns(&p);
		assert_int_equal(*probe_at(&p, 0), 0);
		if (to[i]) { /* the next connection has nothing of this one */
			probe_reconnect(&p);
			probe_write(&p, UC | WRITE_ONLY, RQ(0), 0, 8, 8, 3);
			some_turns(&p);
			check_fill(probe_at(&p, 0), 8, 3, 0);
		}
		probe_close(&p);
	}
}

/* The memory of a packet that waited is bad, or can't be written: the queue pair fails in that
 * packet's turn, and those behind it go. */
static void
bad_memory(void **state)
{
	(void)state;
	for (int late = 0; late < 3; late++) { /* key, memory at once, memory late */
		struct probe p;

		open_uc(&p, &(struct probe_config){.delay_seed = late == 2});
		probe_recv(&p, late ? 0 : PROBE_LEN - 4, 64, 1);
		probe_recv(&p, 0, 64, 2);
		shut(&p, true);
		for (uint32_t i = 0; i < 30; i++)
			probe_send(&p, UC | SEND_ONLY, RQ(i), 64, 1);
		some_turns(&p);
		if (late)
			probe_fail_op(&p, 1, late == 2);
		shut(&p, false);
		expect_recv(&p, 1, LOC_PROT_ERR);
		expect_recv(&p, 2, WR_FLUSH_ERR);
		expect_no_cqe(&p);
		assert_int_equal(p.qp->state, URN_QPS_ERR);
		if (!late)
			assert_int_equal(*probe_at(&p, 0), 0); /* nothing behind the bad one */
		assert_int_equal(p.tp->left.held, KEPT);
		probe_close(&p);
	}
}

/* A stranger's packet does not wait: it would take the place of the peer's. */
static void
strangers(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, NULL);
	shut(&p, true);
	p.peer.gid[15] ^= 4;
	probe_send(&p, UC | SEND_ONLY, RQ(0), 8, 2);
	some_turns(&p);
	expect_count(&p, DROP_PEER, 1);
	expect_count(&p, UC_HELD, 0);
	shut(&p, false);
	probe_close(&p);
}

/* ---- bounds */

/* A queue pair holds so many packets and no more; those that it holds are whole. */
static void
bound(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.kept = 4 * URN_UC_HELD});
	shut(&p, true);
	for (uint32_t i = 0; i < URN_UC_HELD + 7; i++) {
		probe_write(&p, UC | WRITE_ONLY, RQ(i), 8 * i, 8, 8, i + 1);
		probe_turn(&p, 0);
	}
	expect_count(&p, UC_HELD, URN_UC_HELD);
	expect_count(&p, DROP_MEMORY, 7);
	assert_int_equal(p.tp->left.held, 3 * URN_UC_HELD);
	shut(&p, false);
	probe_settle(&p);
	for (uint32_t i = 0; i < URN_UC_HELD; i++)
		check_fill(probe_at(&p, 8 * i), 8, i + 1, 0);
	assert_int_equal(*probe_at(&p, 8 * URN_UC_HELD), 0);
	probe_close(&p);
}

/* A client that takes all it can leaves places to another client. */
static void
fair(void **state)
{
	enum { ALL = 90 };
	struct urn_tp_share other = {0};
	struct urn_tp_share *mine;
	struct probe p;
	uint64_t greedy;

	(void)state;
	open_uc(&p, &(struct probe_config){.kept = ALL, .qps = 2});
	mine = p.q[1].qp->share;
	p.q[1].qp->share = &other;
	shut(&p, true);
	for (uint32_t i = 0; i < 2 * ALL; i++) {
		probe_write(&p, UC | WRITE_ONLY, RQ(i), 8 * i, 8, 8, 1);
		probe_turn(&p, 0);
	}
	greedy = p.tp->c.v[URN_C_UC_HELD];
	assert_in_range(greedy, ALL / 2, ALL - 8);
	expect_count(&p, DROP_MEMORY, 2 * ALL - greedy);
	probe_use(&p, 1);
	probe_write(&p, UC | WRITE_ONLY, RQ(0), 8192, 8, 8, 5);
	some_turns(&p);
	expect_count(&p, UC_HELD, greedy + 1);
	assert_int_equal(other.held, 1);
	shut(&p, false);
	probe_settle(&p);
	check_fill(probe_at(&p, 8192), 8, 5, 0);
	assert_int_equal(other.held, 0);
	p.q[1].qp->share = mine;
	probe_close(&p);
}

/* Packets of other services that are kept ahead of their turn count as well. */
static void
shared(void **state)
{
	enum { ALL = 64, RC = 52, HELD = 4 /* an eighth of all is for clients that hold less */ };
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.kept = ALL});
	p.tp->kept = RC; /* as if RC of another client kept so many */
	p.tp->left.held = ALL - RC;
	shut(&p, true);
	for (uint32_t i = 0; i < HELD + 2; i++)
		probe_write(&p, UC | WRITE_ONLY, RQ(i), 8 * i, 8, 8, 1);
	some_turns(&p);
	expect_count(&p, UC_HELD, HELD);
	expect_count(&p, DROP_MEMORY, 2);
	shut(&p, false);
	probe_settle(&p);
	assert_int_equal(p.tp->kept, RC);
	p.tp->kept = 0;
	p.tp->left.held = ALL;
	probe_close(&p);
}

/* ---- the word to senders */

/* The word that senders see. */
static uint64_t
dealt_with(const struct probe *p, const struct urn_qp *qp)
{
	struct urn_tp_near near;

	urn_tp_near(p->tp, &near);
	return near.dealt[urn_qpn_slot(qp->qpn)];
}

#define expect_dealt(p, psn, window)             \
	assert_int_equal(dealt_with(p, (p)->qp), \
			 urn_uc_dealt_word(psn, (p)->q[(p)->cur].peer_qpn, window))

/* The word tells of packets that were taken or dropped in their turn, and not of those that wait.
 */
static void
word(void **state)
{
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.kept = 4 * URN_UC_WINDOW});
	expect_dealt(&p, RQ(0), URN_UC_WINDOW);
	probe_recv(&p, 0, 64, 1);
	probe_send(&p, UC | SEND_ONLY, RQ(0), 64, 1);
	some_turns(&p);
	expect_dealt(&p, RQ(1), URN_UC_WINDOW);
	probe_send(&p, UC | SEND_LAST, RQ(5), 64, 1); /* the first packet was lost */
	some_turns(&p);
	expect_count(&p, DROP_UC_GAP, 1);
	expect_dealt(&p, RQ(6), URN_UC_WINDOW);
	probe_send(&p, UC | SEND_ONLY, RQ(6), 64, 1);
	some_turns(&p);
	expect_count(&p, DROP_UC_NO_RECV, 1);
	expect_dealt(&p, RQ(7), URN_UC_WINDOW);
	probe_write(&p, UC | WRITE_ONLY, RQ(7), 0, 8, 8, 1);
	probe_write(&p, UC | WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	some_turns(&p);
	expect_count(&p, DROP_UC_LATE, 1);
	expect_dealt(&p, RQ(8), URN_UC_WINDOW);
	shut(&p, true);
	probe_write(&p, UC | WRITE_ONLY, RQ(8), 0, 8, 8, 1);
	some_turns(&p);
	expect_dealt(&p, RQ(8), URN_UC_WINDOW);
	shut(&p, false);
	some_turns(&p);
	expect_dealt(&p, RQ(9), URN_UC_WINDOW);
	probe_close(&p);
}

/* All windows together are half of what may be kept, and none is less than the least; a queue pair
 * that takes nothing has none. */
static void
windows(void **state)
{
	enum { QPS = 4, ALL = 2 * QPS * 12 };
	struct probe p;

	(void)state;
	open_uc(&p, &(struct probe_config){.kept = ALL, .qps = QPS});
	for (unsigned int i = 0; i < QPS; i++) {
		assert_int_equal(p.qp->share->uc_n, QPS - i);
		probe_use(&p, i);
		probe_write(&p, UC | WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		some_turns(&p);
		expect_dealt(&p, RQ(1), ALL / 2 / (QPS - i));
		probe_state(&p, i & 1 ? URN_QPS_ERR : URN_QPS_RESET);
		assert_int_equal(dealt_with(&p, p.qp), 0);
	}
	assert_int_equal(p.qp->share->uc_n, 0);
	for (unsigned int i = 0; i < QPS; i++) {
		probe_use(&p, i);
		probe_reconnect(&p);
	}
	assert_int_equal(p.qp->share->uc_n, QPS);
	probe_close(&p);

	open_uc(&p, &(struct probe_config){.kept = QPS * URN_UC_WINDOW_LEAST, .qps = QPS});
	probe_use(&p, QPS - 1);
	expect_dealt(&p, RQ(0), URN_UC_WINDOW_LEAST);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits), cmocka_unit_test(order),      cmocka_unit_test(send_error),
		cmocka_unit_test(ends),	 cmocka_unit_test(bad_memory), cmocka_unit_test(strangers),
		cmocka_unit_test(bound), cmocka_unit_test(fair),       cmocka_unit_test(shared),
		cmocka_unit_test(word),	 cmocka_unit_test(windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
