/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport/service.h, architecture.md, seam 2: a service of another type of queue pair, which only
 * sends back what it receives, goes through the burst, the schedule and the error states of the
 * transport without a line there that knows it.
 */
#include "probe.h"

#include "transport/act.h"
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/sched.h"
#include "transport/service.h"

enum { ECHO = 6, HELD = 8 };

/* Packets that wait to be sent back, and how often each function of the service was called. */
static struct {
	struct rte_mbuf *held[HELD];
	unsigned int n;
	unsigned int accepted, finished, checked, sent, failed, flushed, due, valid;
	unsigned int stopped[2]; /* by `gone` */
	uint8_t action;		 /* action of the frames sent back */
	bool owes;
} echo;

static void
echo_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	echo.accepted++;
	urn_pkt_begin(urn_pkt(m));
	urn_tp_hold(tp, m, qp, URN_ACT_DUP);
}

static void
echo_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	echo.finished++;
	if (echo.n == HELD) {
		urn_tp_drop(tp, m, URN_C_DROP_OOO);
		return;
	}
	echo.held[echo.n++] = m;
	urn_tp_sched(tp, qp);
}

static bool
send_back(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint8_t *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, p->opcode, p->payload_len, qp->dest_qpn,
					 p->psn, 0, false, &bth);

	if (!d)
		return false;
	memcpy(bth + p->op->hdr_len, urn_pkt_payload(m), p->payload_len);
	urn_tp_send(tp, d, qp, echo.action, false);
	urn_tp_done(tp, m);
	return true;
}

static bool
echo_transmit(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int n = 0;

	if (!urn_qp_reachable(tp, qp))
		return false;
	while (n < echo.n && n < budget && urn_tp_tx_room(tp) && send_back(tp, qp, echo.held[n]))
		n++;
	echo.n -= n;
	memmove(echo.held, echo.held + n, echo.n * sizeof(echo.held[0]));
	if (urn_req_fetch(tp, qp)) /* its check fails every request */
		urn_req_fail(tp, qp, qp->tx.head, qp->tx.head->status, qp->tx.head->vendor_err);
	return echo.n != 0;
}

static uint8_t
echo_check(const struct urn_qp *qp, const struct urn_work *w)
{
	(void)qp;
	(void)w;
	echo.checked++;
	return URN_WC_LOC_QP_OP_ERR;
}

static void
echo_sent(struct urn_tp *tp, struct urn_qp *qp)
{
	(void)tp;
	(void)qp;
	echo.sent++;
}

static void
echo_fail(struct urn_tp *tp, struct urn_qp *qp)
{
	echo.failed++;
	urn_qp_error(tp, qp);
}

static void
echo_unreadable(struct urn_tp *tp, const struct urn_txd *d)
{
	(void)tp;
	(void)d;
	fail_msg("an echo reads no memory");
}

static bool
echo_flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	echo.flushed++;
	return urn_qp_flush(tp, qp, budget);
}

static bool
echo_valid(const struct urn_txd *d)
{
	assert_int_equal(d->action, URN_ACT_TX_RESPONSE);
	return echo.valid++ == 0;
}

static void
echo_due(struct urn_tp *tp, struct urn_qp *qp)
{
	(void)tp;
	(void)qp;
	echo.due++;
}

static bool
echo_owes(const struct urn_qp *qp)
{
	(void)qp;
	return echo.owes;
}

static void
echo_stop(struct urn_tp *tp, struct urn_qp *qp, bool gone)
{
	(void)tp;
	(void)qp;
	echo.stopped[gone]++;
}

static const struct urn_service service = {
	.name = "echo",
	.opcodes = URN_OPF_RC,
	.checked = UINT8_MAX,
	.moves = urn_rc_moves,
	.accept = echo_accept,
	.finish = echo_finish,
	.check = echo_check,
	.transmit = echo_transmit,
	.flush = echo_flush,
	.valid = echo_valid,
	.unreadable = echo_unreadable,
	.sent = echo_sent,
	.due = echo_due,
	.owes = echo_owes,
	.fail = echo_fail,
	.stop = echo_stop,
};

static void
open_echo(struct probe *p)
{
	const struct probe_config c = {.type = ECHO, .service = &service};

	memset(&echo, 0, sizeof(echo));
	echo.action = URN_ACT_TX_DATAGRAM;
	probe_open(p, &c);
}

static void
sends_back(void **state)
{
	struct probe p;

	(void)state;
	open_echo(&p);
	for (uint32_t i = 0; i < 5; i++)
		probe_send(&p, SEND_ONLY, RQ(3 * i), 100 + i, i); /* PSNs mean nothing to an echo */
	for (uint32_t i = 0; i < 5; i++) {
		const struct frame *f = expect_frame(&p, SEND_ONLY, RQ(3 * i));

		assert_int_equal(f->len, 100 + i);
		check_fill(f->data, f->len, i, 0);
	}
	expect_silence(&p);
	assert_int_equal(echo.accepted, 5);
	assert_int_equal(echo.finished, 5);
	assert_int_equal(echo.sent, 5);
	probe_close(&p);
}

/* Packets of another service do not reach it. */
static void
not_its_own(void **state)
{
	struct probe p;

	(void)state;
	open_echo(&p);
	probe_send(&p, UD_SEND, RQ(0), 64, 1);
	expect_silence(&p);
	expect_count(&p, DROP_QP_TYPE, 1);
	assert_int_equal(echo.accepted, 0);
	probe_close(&p);
}

/* Requests are checked by the service, and a failed one leads to the state that it says. */
static void
fails(void **state)
{
	struct probe p;

	(void)state;
	open_echo(&p);
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 8, 0, 11);
	probe_post(&p, URN_WR_SEND, URN_WRF_SIGNALED, 0, 8, 0, 12);
	expect_sent(&p, 11, LOC_QP_OP_ERR);
	expect_sent(&p, 12, WR_FLUSH_ERR);
	assert_int_equal(echo.checked, 1);
	assert_int_equal(echo.failed, 1);
	assert_int_equal(p.qp->state, URN_QPS_ERR);
	assert_true(echo.flushed > 0);
	assert_int_equal(echo.stopped[false], 1);
	assert_int_equal(echo.stopped[true], 0);
	echo.owes = true;
	assert_false(urn_qp_silent(p.tp, p.qp));
	echo.owes = false;
	assert_true(urn_qp_silent(p.tp, p.qp));
	probe_close(&p);
	assert_int_equal(echo.stopped[true], 1);
}

/* The service says which of its responses, built before, may still go out. */
static void
takes_back(void **state)
{
	struct probe p;

	(void)state;
	open_echo(&p);
	echo.action = URN_ACT_TX_RESPONSE;
	probe_send(&p, SEND_ONLY, RQ(0), 100, 1);
	expect_frame(&p, SEND_ONLY, RQ(0));
	probe_send(&p, SEND_ONLY, RQ(1), 100, 2);
	expect_silence(&p);
	assert_int_equal(echo.valid, 2);
	assert_int_equal(echo.sent, 0);
	probe_close(&p);
}

/* The timer of a QP is its service's in RTS, and the transport's own in the error state. */
static void
due(void **state)
{
	struct probe p;

	(void)state;
	open_echo(&p);
	urn_wheel_start(&p.tp->wheel, &p.qp->tx.timer, p.tp->now + 1000000);
	probe_turn(&p, 900000);
	assert_int_equal(echo.due, 0);
	probe_turn(&p, 200000);
	assert_int_equal(echo.due, 1);
	urn_qp_error(p.tp, p.qp);
	probe_turn(&p, 2000000);
	assert_int_equal(echo.due, 1);
	probe_close(&p);
}

static void
no_service(void **state)
{
	const struct urn_qp_config none = {.type = 7}, beyond = {.type = URN_TP_SERVICES};
	struct urn_qp *qp = NULL;
	struct probe p;

	(void)state;
	open_echo(&p);
	assert_int_equal(urn_qp_create(p.tp, &none, &qp), EOPNOTSUPP);
	assert_int_equal(urn_qp_create(p.tp, &beyond, &qp), EOPNOTSUPP);
	assert_null(qp);
	assert_false(urn_qp_offered(p.tp, ECHO)); /* not to programs */
	assert_false(urn_qp_offered(p.tp, 7));
	assert_false(urn_qp_offered(p.tp, UINT32_MAX));
	assert_true(urn_qp_offered(p.tp, URN_QPT_RC));
	assert_true(urn_qp_offered(p.tp, URN_QPT_UD));
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_back), cmocka_unit_test(not_its_own),
		cmocka_unit_test(fails),      cmocka_unit_test(takes_back),
		cmocka_unit_test(due),	      cmocka_unit_test(no_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
