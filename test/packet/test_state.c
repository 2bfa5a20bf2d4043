/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine (IBTA 10.3.1, 11.2.5.2): its moves and their attributes,
 * the requests that SQD holds back or lets through, the state that RESET forgets.
 */
#include "probe.h"

enum {
	RST = URN_QPS_RESET,
	INIT = URN_QPS_INIT,
	RTR = URN_QPS_RTR,
	RTS = URN_QPS_RTS,
	SQD = URN_QPS_SQD,
	SQE = URN_QPS_SQE,
	ERR = URN_QPS_ERR
};

/* The moves other than those to RESET and ERR, which are open from everywhere. */
struct move {
	uint8_t from, to;
	uint32_t need, may;
};

#define RIGHTS (URN_QPM_ACCESS | URN_QPM_MIN_RNR_TIMER | URN_QPM_PATH_MIG_STATE)

static const struct move rc_moves[] = {
	{RST, INIT, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS, 0},
	{INIT, INIT, 0, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS},
	{INIT, RTR,
	 URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN | URN_QPM_RQ_PSN |
		 URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_MIN_RNR_TIMER,
	 URN_QPM_PKEY_INDEX | URN_QPM_ACCESS},
	{RTR, RTS,
	 URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY | URN_QPM_SQ_PSN |
		 URN_QPM_MAX_RD_ATOMIC,
	 RIGHTS},
	{RTS, RTS, 0, RIGHTS},
	{RTS, SQD, 0, URN_QPM_EN_SQD_NOTIFY},
	{SQD, SQD, 0,
	 URN_QPM_PORT | URN_QPM_AV | URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
		 URN_QPM_MAX_RD_ATOMIC | URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_PKEY_INDEX | RIGHTS},
	{SQD, RTS, 0, RIGHTS},
};

static const struct move ud_moves[] = {
	{RST, INIT, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY, 0},
	{INIT, INIT, 0, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY},
	{INIT, RTR, 0, URN_QPM_PKEY_INDEX | URN_QPM_QKEY},
	{RTR, RTS, URN_QPM_SQ_PSN, URN_QPM_QKEY},
	{RTS, RTS, 0, URN_QPM_QKEY},
	{RTS, SQD, 0, URN_QPM_EN_SQD_NOTIFY},
	{SQD, SQD, 0, URN_QPM_PKEY_INDEX | URN_QPM_QKEY},
	{SQD, RTS, 0, URN_QPM_QKEY},
	{SQE, RTS, 0, URN_QPM_QKEY},
};

static const struct move *
find_move(uint8_t type, uint8_t from, uint8_t to)
{
	const struct move *m = type == URN_QPT_RC ? rc_moves : ud_moves;
	size_t n = type == URN_QPT_RC ? sizeof(rc_moves) / sizeof(rc_moves[0])
				      : sizeof(ud_moves) / sizeof(ud_moves[0]);

	for (; n--; m++)
		if (m->from == from && m->to == to)
			return m;
	return NULL;
}

/* Bring the QP to a state. */
static void
stand(struct probe *p, uint8_t at)
{
	p->cfg.state = at < INIT || at > SQD ? RTS : at;
	probe_reconnect(p);
	if (at == SQE) {
		p->scq_seen++;
		probe_post(p, 99, 0, 0, 8, 0, 1);
		probe_settle(p);
	} else if (at == ERR || at == RST) {
		probe_state(p, at);
	}
	assert_int_equal(p->qp->state, at);
}

static void
try(struct probe *p, uint8_t from, uint8_t to, uint32_t mask, int rc)
{
	struct urn_abi_qp_attr a;
	int got;

	stand(p, from);
	probe_attributes(p, &a);
	a.state = to;
	got = probe_modify(p, URN_QPM_STATE | mask, &a);
	if (got != rc)
		fail_msg("%s to %s, mask 0x%x: %d, not %d", urn_qp_state_name(from),
			 urn_qp_state_name(to), mask, got, rc);
	assert_int_equal(p->qp->state, rc ? from : to);
}

/* Each bit that is needed left out, each that is allowed put in, each other refused. */
static void
try_masks(struct probe *p, uint8_t from, uint8_t to, uint32_t need, uint32_t may)
{
	try(p, from, to, need, 0);
	try(p, from, to, need | may, 0);
	for (uint32_t bit = URN_QPM_EN_SQD_NOTIFY; bit <= URN_QPM_DEST_QPN; bit <<= 1) {
		if (need & bit)
			try(p, from, to, need & ~bit, EINVAL);
		else
			try(p, from, to, need | bit, may & bit ? 0 : EINVAL);
	}
}

static void
moves(void **state)
{
	static const uint8_t types[] = {URN_QPT_RC, URN_QPT_UD};

	(void)state;
	for (int t = 0; t < 2; t++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = types[t]});
		for (uint8_t from = RST; from <= ERR; from++) {
			if (from == SQE && types[t] == URN_QPT_RC)
				continue; /* IBTA has no SQE for RC */
			for (uint8_t to = RST; to <= ERR; to++) {
				const struct move *m = find_move(types[t], from, to);

				if (to == RST || to == ERR)
					try_masks(&p, from, to, 0, 0);
				else if (m)
					try_masks(&p, from, to, m->need, m->may);
				else
					try(&p, from, to, 0, EINVAL);
			}
		}
		probe_close(&p);
	}
}

/* A refused change names attributes as programs write them, and path MTUs in bytes, with what to
 * give. */
static void
sentences(void **state)
{
	static const struct {
		uint32_t without, with; /* attributes of INIT to RTR that are left out; put in */
		uint8_t path_mtu;	/* code */
		const char *text;
	} c[] = {
		{URN_QPM_DEST_QPN, 0, 3, "INIT to RTR: give IBV_QP_DEST_QPN too"},
		{URN_QPM_AV | URN_QPM_RQ_PSN, 0, 3, "give IBV_QP_AV, IBV_QP_RQ_PSN too"},
		{0, URN_QPM_SQ_PSN, 3, "INIT to RTR: leave IBV_QP_SQ_PSN out"},
		{0, 0, 5,
		 "a path_mtu of 4096 bytes is more than the port carries; give IBV_MTU_1024 or "
		 "less"},
		{0, 0, 0, "path_mtu 0 is none; give IBV_MTU_1024"},
	};
	uint32_t need = find_move(URN_QPT_RC, INIT, RTR)->need;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	p.tp->cfg.mtu = 1024;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct urn_abi_qp_attr a;
		char why[120]; /* a reply has room for that */

		stand(&p, INIT);
		probe_attributes(&p, &a);
		a.state = RTR;
		a.path_mtu = c[i].path_mtu;
		assert_int_equal(urn_qp_modify(p.tp, p.qp,
					       URN_QPM_STATE | (need & ~c[i].without) | c[i].with,
					       &a, why, sizeof(why)),
				 EINVAL);
		if (!strstr(why, c[i].text))
			fail_msg("no '%s' in '%s'", c[i].text, why);
	}
	probe_close(&p);
}

/* Values out of range; a refused change changes nothing. */
static void
values(void **state)
{
	static const struct {
		uint8_t from, to;
		uint32_t bit;
		size_t at, size;
		uint32_t value;
	} c[] = {
#define OF(field) \
	offsetof(struct urn_abi_qp_attr, field), sizeof(((struct urn_abi_qp_attr *)0)->field)
		{RST, INIT, URN_QPM_PORT, OF(port_num), 0},
		{RST, INIT, URN_QPM_PORT, OF(port_num), 2},
		{RST, INIT, URN_QPM_PKEY_INDEX, OF(pkey_index), 1},
		{INIT, RTR, URN_QPM_PATH_MTU, OF(path_mtu), 0},
		{INIT, RTR, URN_QPM_PATH_MTU, OF(path_mtu), 6},
		{INIT, RTR, URN_QPM_DEST_QPN, OF(dest_qpn), 1 << 24},
		{INIT, RTR, URN_QPM_MAX_DEST_RD_ATOMIC, OF(max_dest_rd_atomic), 129},
		{INIT, RTR, URN_QPM_MIN_RNR_TIMER, OF(min_rnr_timer), 32},
		{INIT, RTR, URN_QPM_AV, OF(av.sgid_index), 2},
		{INIT, RTR, URN_QPM_AV, OF(av.sgid_index), 1}, /* IPv6, to IPv4 */
		{INIT, RTR, URN_QPM_AV, OF(av.port_num), 2},
		{RTR, RTS, URN_QPM_TIMEOUT, OF(timeout), 32},
		{RTR, RTS, URN_QPM_RETRY_CNT, OF(retry_cnt), 8},
		{RTR, RTS, URN_QPM_RNR_RETRY, OF(rnr_retry), 8},
		{RTR, RTS, URN_QPM_MAX_RD_ATOMIC, OF(max_rd_atomic), 129},
#undef OF
	};
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		stand(&p, c[i].from);
		probe_attributes(&p, &a);
		memcpy((uint8_t *)&a + c[i].at, &c[i].value, c[i].size);
		a.state = c[i].to;
		assert_int_equal(
			probe_modify(
				&p, URN_QPM_STATE | find_move(URN_QPT_RC, c[i].from, c[i].to)->need,
				&a),
			EINVAL);
		assert_int_equal(p.qp->state, c[i].from);
	}
	stand(&p, RTS);
	probe_attributes(&p, &a);
	a.state = 7;
	assert_int_equal(probe_modify(&p, URN_QPM_STATE, &a), EINVAL);
	a.state = SQD;
	a.cur_state = RTR; /* not the QP's state */
	assert_int_equal(probe_modify(&p, URN_QPM_STATE | URN_QPM_CUR_STATE, &a), EINVAL);
	a.cur_state = RTS;
	assert_int_equal(probe_modify(&p, URN_QPM_STATE | URN_QPM_CUR_STATE, &a), 0);
	memset(a.av.dgid, 0, 16);
	assert_int_equal(probe_modify(&p, URN_QPM_AV, &a), EINVAL);
	probe_close(&p);
}

static void
to_sqd(struct probe *p, bool notify)
{
	struct urn_abi_qp_attr a;

	probe_attributes(p, &a);
	a.state = SQD;
	a.en_sqd_notify = notify;
	assert_int_equal(probe_modify(p, URN_QPM_STATE | URN_QPM_EN_SQD_NOTIFY, &a), 0);
}

static bool
draining(struct probe *p)
{
	struct urn_abi_qp_attr a;

	urn_qp_query(p->qp, &a);
	return a.sq_draining;
}

/* Requests that were begun are finished, others wait; the event comes once, if asked for. */
static void
drain(void **state)
{
	(void)state;
	for (int notify = 0; notify < 2; notify++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.window = 4});
		probe_post(&p, URN_WR_SEND, 0, 0, 6 * 1024, 0, 1);
		probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 2);
		probe_settle(&p);
		p.looked = p.seen_n;
		assert_int_equal(p.seen_n, 4);
		to_sqd(&p, notify);
		probe_post(&p, URN_WR_RDMA_READ, 0, 0, 32, 0, 3);
		expect_silence(&p);
		assert_true(draining(&p));
		probe_ack(&p, SQ(3), SYN_ACK, 0);
		expect_frame(&p, SEND_MIDDLE, SQ(4));
		assert_true(expect_frame(&p, SEND_LAST, SQ(5))->ack);
		expect_silence(&p);
		assert_true(draining(&p));
		/* The responder goes on as ever. */
		probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		assert_int_equal(p.events, 0);
		probe_ack(&p, SQ(5), SYN_ACK, 1);
		expect_sent(&p, 1, SUCCESS);
		expect_silence(&p);
		assert_false(draining(&p));
		assert_int_equal(p.events, notify);
		if (notify)
			assert_int_equal(p.event[0], URN_EVENT_SQ_DRAINED);
		probe_ring(&p);
		expect_silence(&p);
		assert_int_equal(p.events, notify);
		probe_state(&p, RTS);
		expect_frame(&p, SEND_ONLY, SQ(6));
		expect_frame(&p, READ_REQ, SQ(7));
		expect_silence(&p);
		probe_close(&p);
	}
}

/* An idle send queue is drained at once; one whose memory is slow when that has answered. */
static void
drain_at_once_or_late(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	to_sqd(&p, true);
	probe_settle(&p);
	assert_int_equal(p.events, 1);
	probe_close(&p);

	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .delay_seed = 5});
	p.hold = true;
	probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 1);
	probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 2);
	probe_settle(&p);
	to_sqd(&p, true);
	probe_settle(&p);
	assert_int_equal(p.events, 0);
	p.hold = false;
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	probe_settle(&p);
	assert_int_equal(p.events, 1);
	probe_close(&p);
}

/* While drained, attributes change: another address, fewer READs on record. */
static void
change_in_sqd(void **state)
{
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.dest_rd_atomic = 8});
	for (uint32_t i = 0; i < 5; i++) {
		probe_atomic(&p, FETCH_ADD, RQ(i), 0, 1, 0);
		assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(i))->orig, i);
	}
	to_sqd(&p, false);
	probe_attributes(&p, &a);
	a.max_dest_rd_atomic = 2;
	p.peer.gid[15] = 9;
	memcpy(a.av.dgid, p.peer.gid, 16);
	assert_int_equal(probe_modify(&p, URN_QPM_MAX_DEST_RD_ATOMIC | URN_QPM_AV, &a), 0);
	probe_state(&p, RTS);
	/* The newest two are remembered, the others forgotten. */
	for (uint32_t i = 3; i < 5; i++) {
		probe_atomic(&p, FETCH_ADD, RQ(i), 0, 1, 0);
		assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(i))->orig, i);
	}
	probe_atomic(&p, FETCH_ADD, RQ(2), 0, 1, 0);
	expect_silence(&p);
	expect_count(&p, DROP_DUPLICATE, 1);
	probe_atomic(&p, FETCH_ADD, RQ(5), 0, 1, 0);
	assert_int_equal(expect_frame(&p, ATOMIC_ACK, RQ(5))->orig, 5);
	urn_qp_query(p.qp, &a);
	assert_int_equal(a.max_dest_rd_atomic, 2);
	assert_memory_equal(a.av.dgid, p.peer.gid, 16);
	probe_close(&p);
}

/* The first message before the program went to RTS says that the peer is there; once. */
static void
established(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct probe p;

		probe_open(&p, &(struct probe_config){.state = RTR});
		for (uint32_t i = 0; i < 2; i++) {
			if (kind == 0)
				probe_write(&p, WRITE_ONLY, RQ(i), 0, 8, 8, 1);
			else if (kind == 1)
				probe_read(&p, RQ(i), 0, 8);
			else
				probe_atomic(&p, FETCH_ADD, RQ(i), 0, 1, 0);
			probe_settle(&p);
		}
		assert_int_equal(p.events, 1);
		assert_int_equal(p.event[0], URN_EVENT_COMM_EST);
		probe_close(&p);
	}
}

/* RESET forgets posted requests, and all state of the connection. */
static void
forgets(void **state)
{
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.timeout = 10, .retry_cnt = 3, .rnr_retry = 3});
	probe_recv(&p, 0, 3000, 1);
	probe_recv(&p, 0, 64, 2);
	probe_send(&p, SEND_FIRST, RQ(0), 1024, 1);
	probe_send(&p, SEND_ONLY, RQ(4), 16, 1); /* kept; a NAK */
	probe_read(&p, RQ(1), 0, 8);
	probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 1);
	probe_post(&p, URN_WR_RDMA_READ, 0, 0, 32, 0, 2);
	probe_settle(&p);
	p.looked = p.seen_n;
	p.scq_seen = p.scq.prod;
	p.rcq_seen = p.rcq.prod;
	probe_prepare(&p, URN_WR_SEND, 0, 0, 32, 0, 3); /* not even seen yet */
	probe_reconnect(&p);
	probe_pass(&p, 100000000, 1000000);
	expect_silence(&p);
	expect_no_cqe(&p);
	/* The QP is as new: first PSNs, no message begun, no receive, no record. */
	probe_send(&p, SEND_ONLY, RQ(0), 16, 1);
	expect_aeth(&p, RQ(0), SYN_RNR, 0);
	probe_recv(&p, 0, 64, 5);
	probe_send(&p, SEND_ONLY, RQ(0), 16, 1);
	expect_recv(&p, 5, SUCCESS);
	expect_aeth(&p, RQ(0), SYN_ACK, 1);
	probe_read(&p, RQ(1), 0, 8);
	expect_frame(&p, READ_ONLY, RQ(1));
	probe_post(&p, URN_WR_SEND, 0, 0, 32, 0, 6);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 6, SUCCESS);
	expect_silence(&p);
	probe_close(&p);
}

enum { POSTED = 3, FOR_EVER = 100000 };

/* A program that posts every completed request again, as another of its threads may. */
static void
post_again(void *ctx, const struct urn_tp_xcqe *x)
{
	struct probe *p = ctx;

	p->scq_seen++;
	assert_int_equal(x->cqe.status, URN_WC_WR_FLUSH_ERR);
	assert_true(p->scq_seen < FOR_EVER);
	atomic_fetch_add(&p->q[p->cur].sq->prod, 1);
}

/* From SQE to RTS only requests posted before are flushed, even when the program keeps posting. */
static void
flush_ends(void **state)
{
	struct urn_abi_qp_attr a;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD});
	stand(&p, SQE);
	for (uint32_t i = 0; i < POSTED; i++)
		probe_prepare(&p, URN_WR_SEND, 0, 0, 8, 0, i);
	p.tp->cfg.give_cqe = post_again;
	p.tp->cfg.give_ctx = &p;
	p.scq.engine = 1;
	urn_cq_share(&p.scq);
	p.scq_seen = 0;
	probe_attributes(&p, &a);
	a.state = RTS;
	assert_int_equal(probe_modify(&p, URN_QPM_STATE, &a), 0);
	assert_int_equal(p.scq_seen, POSTED);
	assert_int_equal(p.qp->state, RTS);
	p.scq.engine = 0;
	p.scq.shared = false;
	p.scq_seen = p.scq.prod;
	probe_close(&p);
}

/* The number 0xFFFFFF means multicast (IBTA 10.5.2.1): no QP gets it, even when no other is free. */
static void
multicast_number(void **state)
{
	struct urn_qp_config c = {.type = URN_QPT_RC};
	struct urn_qp *qp[3];
	struct urn_tp *tp;
	struct probe p;

	(void)state;
	probe_open(&p, NULL);
	for (uint32_t engine = 14; engine < 16; engine++) {
		struct urn_tp_config t = p.tp->cfg;

		t.engine = engine;
		t.max_qp = (1u << URN_TP_ENGINE_SHIFT) - 2;
		tp = urn_tp_create(&t, p.now);
		assert_non_null(tp);
		tp->qp_next = (1u << URN_TP_ENGINE_SHIFT) - 2;
		for (unsigned int i = 0; i < 3; i++) {
			c.send_cq = &p.scq;
			c.recv_cq = &p.rcq;
			assert_int_equal(urn_qp_create(tp, &c, &qp[i]), 0);
			assert_true(qp[i]->qpn < 0xffffffu);
		}
		assert_int_equal(qp[0]->qpn, engine == 14 ? 0xeffffeu : 0xfffffeu);
		assert_int_equal(qp[1]->qpn, engine == 14 ? 0xefffffu : 0xf00002u);
		for (unsigned int i = 0; i < 3; i++) {
			urn_qp_stop(tp, qp[i]);
			urn_qp_destroy(tp, qp[i]);
		}
		urn_tp_destroy(tp);
	}
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multicast_number),
		cmocka_unit_test(sentences),
		cmocka_unit_test(moves),
		cmocka_unit_test(values),
		cmocka_unit_test(drain),
		cmocka_unit_test(drain_at_once_or_late),
		cmocka_unit_test(change_in_sqd),
		cmocka_unit_test(established),
		cmocka_unit_test(forgets),
		cmocka_unit_test(flush_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
