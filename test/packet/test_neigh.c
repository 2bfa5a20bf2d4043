/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer whose address nobody answers for, and one whose MAC moves (doc/reference/wire.md "Timers",
 * "Addresses"): the QP's own timeout and retries count, and a new MAC is used as soon as it
 * is known, by requester, responder and datagrams.
 */
#include "probe.h"

/* The wheel's grain: a timer comes at most this late, never early. */
enum { GRAIN = 2 << URN_WHEEL_TICK_SHIFT, CODE = 14, CNT = 7 };

#define SPAN (4096ull << CODE)

static void
post_one(struct probe *p, uint64_t wr_id)
{
	probe_post(p, URN_WR_SEND, 0, 0, 32, 0, wr_id);
}

/* Let time pass, in which nothing is sent and nothing completes. */
static void
nothing_for(struct probe *p, uint64_t ns)
{
	probe_pass(p, ns, SPAN / 8);
	expect_silence(p);
	expect_no_cqe(p);
}

static void
open_probe(struct probe *p)
{
	probe_open(p, &(struct probe_config){.timeout = CODE, .retry_cnt = CNT, .rto_floor = 4000000});
}

/*
 * Requests are in flight when nobody answers for the peer's address any more: the QP waits
 * for all retries, not for one timeout only.
 */
static void
silent_under_way(void **state)
{
	struct probe p;

	(void)state;
	for (int rc = -2; rc < 0; rc++) {
		open_probe(&p);
		post_one(&p, 1);
		expect_frame(&p, SEND_ONLY, SQ(0));
		p.neigh = rc;
		p.cfg.timeout = CODE;
		probe_pass(&p, SPAN + GRAIN, SPAN / 8); /* the first goes by the MAC that is known */
		p.looked = p.seen_n;
		nothing_for(&p, CNT * SPAN - 2 * GRAIN);
		assert_true(p.doubted >= CNT);
		probe_pass(&p, SPAN, SPAN / 8); /* each timer was a step late, or a grain */
		expect_sent(&p, 1, RETRY_EXC_ERR);
		expect_count(&p, TIMEOUTS, CNT + 1);
		expect_count(&p, DROP_NO_NEIGH, 1);
		probe_close(&p);
	}
}

/* The peer is back before the last retry: the waiting requests reach it, and none has failed. */
static void
back_in_time(void **state)
{
	struct probe p;

	(void)state;
	open_probe(&p);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	p.neigh = -2;
	probe_pass(&p, SPAN + GRAIN, SPAN / 8);
	p.looked = p.seen_n;
	nothing_for(&p, (CNT - 1) * SPAN);
	p.neigh = 0;
	probe_pass(&p, 2000000, 100000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	probe_close(&p);
}

/*
 * Nothing was sent yet: while the address is asked for, no timeout counts; once nobody
 * answered, the QP's timeout and retries count, no less and no more.
 */
static void
silent_from_the_start(void **state)
{
	uint64_t timeouts;
	struct probe p;

	(void)state;
	open_probe(&p);
	p.neigh = -1;
	post_one(&p, 1);
	post_one(&p, 2);
	nothing_for(&p, 20 * CNT * SPAN);
	expect_count(&p, TIMEOUTS, 0);
	p.neigh = -2;
	nothing_for(&p, (CNT + 1) * SPAN - GRAIN);
	probe_pass(&p, 2 * SPAN, SPAN / 8);
	expect_sent(&p, 1, RETRY_EXC_ERR);
	expect_sent(&p, 2, WR_FLUSH_ERR);
	expect_count(&p, DROP_NO_NEIGH, 1);
	probe_close(&p);

	open_probe(&p);
	p.neigh = -2;
	post_one(&p, 1);
	nothing_for(&p, CNT * SPAN);
	p.neigh = -1; /* it is asked for again */
	nothing_for(&p, SPAN / 2);
	p.neigh = 0;
	probe_pass(&p, 2000000, 100000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	/* A request sent then has its whole time, and all its retries. */
	timeouts = p.tp->c.v[URN_C_TIMEOUTS];
	post_one(&p, 2);
	expect_frame(&p, SEND_ONLY, SQ(1));
	p.neigh = -2;
	probe_pass(&p, CNT * SPAN, SPAN / 8);
	expect_no_cqe(&p);
	assert_in_range(p.tp->c.v[URN_C_TIMEOUTS] - timeouts, CNT - 1, CNT);
	probe_close(&p);
}

/*
 * All requests sent are answered while nobody knows the peer's address: a request posted a while
 * later has its whole time, and all its retries.
 */
static void
answered_meanwhile(void **state)
{
	struct probe p;

	(void)state;
	open_probe(&p);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	p.neigh = -2;
	urn_tp_neigh_changed(p.tp);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1); /* the ACK owed makes the QP look for the address */
	nothing_for(&p, 1000000);
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	nothing_for(&p, SPAN / 2);
	post_one(&p, 2);
	probe_pass(&p, (CNT + 1) * SPAN - GRAIN, SPAN / 128); /* each timer is a step late */
	expect_silence(&p);
	expect_no_cqe(&p);
	probe_pass(&p, SPAN, SPAN / 8);
	expect_sent(&p, 2, RETRY_EXC_ERR);
	probe_close(&p);
}

/* A QP without a timer waits for ever, as IBTA says of timeout 0. */
static void
no_timeout(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 0, .retry_cnt = 1});
	p.neigh = -2;
	post_one(&p, 1);
	nothing_for(&p, 100 * SPAN);
	p.neigh = 0;
	probe_pass(&p, 2000000, 100000);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_close(&p);
}

/* The MAC moves: the next repeat, and the next acknowledgement, go where the peer is now. */
static void
moved(void **state)
{
	struct probe p;

	(void)state;
	open_probe(&p);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	p.peer.mac[5] ^= 1; /* frames to the old address are refused by this test's reader */
	urn_tp_neigh_changed(p.tp);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_pass(&p, SPAN + 2 * GRAIN, SPAN / 8);
	expect_frame(&p, SEND_ONLY, SQ(0));
	assert_int_equal(p.qp->state, URN_QPS_RTS);
	probe_close(&p);

	/* Nobody said so: a QP that is in use asks again after a while. */
	open_probe(&p);
	probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_pass(&p, 11000000000ull, 1000000000);
	p.peer.mac[5] ^= 1;
	probe_pass(&p, 11000000000ull, 1000000000);
	probe_write(&p, WRITE_ONLY, RQ(1), 0, 8, 8, 1);
	expect_aeth(&p, RQ(1), SYN_ACK, 2);
	probe_close(&p);
}

/* "A peer that moved is found within its retries", one of them: one learnt after a timeout is used before the next. */
static void
moved_with_one_retry(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = CODE, .retry_cnt = 1});
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_pass(&p, SPAN + 2 * GRAIN, SPAN / 8);
	expect_frame(&p, SEND_ONLY, SQ(0));
	p.peer.mac[5] ^= 1; /* frames to the old address are refused by this test's reader */
	urn_tp_neigh_changed(p.tp);
	probe_pass(&p, SPAN * 7 / 8, SPAN / 16);
	expect_frame(&p, SEND_ONLY, SQ(0));
	expect_count(&p, TIMEOUTS, 1);
	expect_silence(&p);
	/* This frame counts as the repeat of that retry; the QP fails neither sooner nor later. */
	probe_pass(&p, SPAN / 8 + 2 * GRAIN, SPAN / 16);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	probe_close(&p);

	/* Another node's new MAC address does not matter. */
	probe_open(&p, &(struct probe_config){.timeout = CODE, .retry_cnt = 1});
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_pass(&p, SPAN + 2 * GRAIN, SPAN / 8);
	expect_frame(&p, SEND_ONLY, SQ(0));
	urn_tp_neigh_changed(p.tp);
	probe_pass(&p, SPAN * 7 / 8, SPAN / 16);
	expect_silence(&p);
	probe_close(&p);
}

/* A datagram tells of no silence: the address of its handle is looked up again every second. */
static void
datagrams(void **state)
{
	struct probe p;
	uint32_t asked;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
	p.ah.mac_until = 0;
	for (uint64_t i = 0; i < 100; i++) {
		post_one(&p, i);
		expect_frame(&p, UD_SEND, SQ(i));
		expect_sent(&p, i, SUCCESS);
	}
	assert_int_equal(p.asked, 1);
	probe_pass(&p, 1000000000, 1000000000);
	asked = p.asked;
	p.peer.mac[5] ^= 1;
	post_one(&p, 100);
	expect_frame(&p, UD_SEND, SQ(100));
	assert_int_equal(p.asked, asked + 1);
	probe_close(&p);
}

/* A QP in error still owes an answer, which waits for the address; one that owes none, or is unconnected, is silent. */
static void
owes_in_error(void **state)
{
	struct probe p;

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		open_probe(&p);
		probe_settle(&p);
		p.neigh = -1;
		urn_tp_neigh_changed(p.tp);
		p.qp->flags &= ~(uint32_t)URN_QPF_MAC;
		probe_recv(&p, 0, 64, 1);
		probe_send(&p, URN_RC_SEND_ONLY, RQ(0), 32, 1);
		probe_settle(&p);
		expect_recv(&p, 1, SUCCESS);
		assert_false(urn_qp_silent(p.tp, p.qp));
		probe_state(&p, URN_QPS_ERR);
		assert_false(urn_qp_silent(p.tp, p.qp));
		if (lost) {
			urn_qp_lost(p.tp, p.qp);
			assert_true(urn_qp_silent(p.tp, p.qp));
		}
		p.neigh = 0;
		probe_pass(&p, 2000000, 100000);
		if (lost)
			expect_silence(&p);
		else
			expect_aeth(&p, RQ(0), SYN_ACK, 1);
		assert_true(urn_qp_silent(p.tp, p.qp));
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_under_way), cmocka_unit_test(back_in_time),
		cmocka_unit_test(silent_from_the_start), cmocka_unit_test(no_timeout),
		cmocka_unit_test(moved), cmocka_unit_test(moved_with_one_retry), cmocka_unit_test(datagrams),
		cmocka_unit_test(answered_meanwhile), cmocka_unit_test(owes_in_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
