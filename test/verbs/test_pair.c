/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs of an adapter and one remote queue pair: the program connected to it may send
 * there, and the other may not; a connection arranged by connection management wins over one
 * set up by hand, once the peer has answered, and no sooner (control/pair.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"

#include <errno.h>
#include <string.h>

/* Another program on node 0. */
struct other {
	struct ibv_context *ctx;
	struct rig_qp with;
	struct ibv_qp *qp;
};

static void
other_open(struct rig *r, struct other *o)
{
	memset(o, 0, sizeof(*o));
	o->ctx = rig_attach(r, 0);
	o->with.pd = ibv_alloc_pd(o->ctx);
	o->with.send_cq = o->with.recv_cq = ibv_create_cq(o->ctx, 64, NULL, NULL, 0);
	assert_true(o->with.pd && o->with.send_cq);
	o->qp = rig_make_qp(r, 0, &o->with);
}

static void
other_close(struct other *o)
{
	assert_int_equal(ibv_destroy_qp(o->qp), 0);
	assert_int_equal(ibv_destroy_cq(o->with.send_cq), 0);
	assert_int_equal(ibv_dealloc_pd(o->with.pd), 0);
	assert_int_equal(ibv_close_device(o->ctx), 0);
}

static int
to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state, .port_num = 1};

	return ibv_modify_qp(qp, &a, state == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_PKEY_INDEX |
							    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
							  : IBV_QP_STATE);
}

/* From INIT to RTR, to a queue pair of node 1. returns: as ibv_modify_qp() */
static int
to_rtr(struct rig *r, struct ibv_qp *qp, uint32_t peer_qpn, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = peer_qpn, .min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};

	a.ah_attr.grh.sgid_index = (uint8_t)rig_sgid_index(r);
	rig_gid(r, 1, &a.ah_attr.grh.dgid);
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static enum ibv_qp_state
state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

/*
 * Wait until this queue pair was ended. The peer's answer only marks it; its engine ends it in the next
 * turn, before it sends again (control/pair.h), and a program that runs beside the engine may look first.
 */
static void
ended(struct rig *r, struct ibv_qp *qp)
{
	time_t start = time(NULL);

	while (state_of(qp) != IBV_QPS_ERR && time(NULL) - start < 60)
		rig_turns(r, 1);
	assert_int_equal(state_of(qp), IBV_QPS_ERR);
}

static void
refused(int rc)
{
	assert_int_equal(rc, EADDRINUSE);
	if (!strstr(urn_attach_error(), "another program"))
		fail_msg("%s", urn_attach_error());
}

/* Bytes go from end 0 to end 1 by these queue pairs. */
static void
carries(struct rig *r, struct ibv_qp *a, struct ibv_qp *b)
{
	struct ibv_qp *was[2] = {r->end[0].qp, r->end[1].qp};

	r->end[0].qp = a;
	r->end[1].qp = b;
	rig_recv(r, 1, 0, 64, 2);
	rig_post(r, 0, IBV_WR_SEND, 0, 64, 0, 1);
	rig_expect(r, 1, IBV_WC_SUCCESS);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	r->end[0].qp = was[0];
	r->end[1].qp = was[1];
}

/* A program can't connect by hand to where another program is; it can when that one has stopped. */
static void
test_by_hand(void **state)
{
	struct rig_qp plain = {0};
	struct ibv_qp *more;
	struct other o;
	struct rig r;
	uint32_t peer;

	(void)state;
	rig_open(&r, NULL, NULL);
	peer = r.end[1].qp->qp_num;
	other_open(&r, &o);
	assert_int_equal(to_state(o.qp, IBV_QPS_INIT), 0);
	refused(to_rtr(&r, o.qp, peer, IBV_MTU_1024));
	assert_int_equal(state_of(o.qp), IBV_QPS_INIT);
	assert_int_equal(to_rtr(&r, o.qp, peer ^ 1, IBV_MTU_1024), 0); /* nobody is connected there */
	assert_int_equal(to_state(o.qp, IBV_QPS_RESET), 0);
	carries(&r, r.end[0].qp, r.end[1].qp);
	/* The same program may: how it pairs its own queue pairs is its own affair. */
	more = rig_make_qp(&r, 0, &plain);
	assert_int_equal(to_state(more, IBV_QPS_INIT), 0);
	assert_int_equal(to_rtr(&r, more, peer, IBV_MTU_1024), 0);
	assert_int_equal(to_state(r.end[0].qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_state(o.qp, IBV_QPS_INIT), 0);
	refused(to_rtr(&r, o.qp, peer, IBV_MTU_1024));
	assert_int_equal(ibv_destroy_qp(more), 0);
	/* A change that fails takes nothing. */
	assert_int_not_equal(to_rtr(&r, o.qp, peer, 7), 0);
	assert_int_equal(to_state(r.end[0].qp, IBV_QPS_INIT), 0);
	assert_int_equal(to_rtr(&r, r.end[0].qp, peer, IBV_MTU_1024), 0);
	refused(to_rtr(&r, o.qp, peer, IBV_MTU_1024));
	/* In the error state a queue pair sends nothing any more. */
	assert_int_equal(to_state(r.end[0].qp, IBV_QPS_ERR), 0);
	assert_int_equal(to_rtr(&r, o.qp, peer, IBV_MTU_1024), 0);
	assert_int_equal(to_state(r.end[0].qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_state(r.end[0].qp, IBV_QPS_INIT), 0);
	refused(to_rtr(&r, r.end[0].qp, peer, IBV_MTU_1024));
	other_close(&o);
	assert_int_equal(to_rtr(&r, r.end[0].qp, peer, IBV_MTU_1024), 0);
	rig_close(&r);
}

/* A program that asked for a connection, and was answered, wins over one that set it up by hand. */
static void
test_asked(void **state)
{
	struct ibv_async_event ev;
	struct ibv_qp *qp[2];
	struct rig_qp plain = {0};
	struct urn_abi_cm_event req, rep;
	struct other o;
	struct rig r;
	uint32_t id;

	(void)state;
	rig_cm_open(&r, NULL);
	for (int e = 0; e < 2; e++)
		qp[e] = rig_make_qp(&r, e, &plain);
	other_open(&r, &o);
	rig_cm_listen(&r, 1, SERVICE, 1);
	rig_connect(&r, 0, o.qp, 1, qp[1]->qp_num, 1, &o.with); /* the other program guessed */
	id = rig_cm_connect(&r, 0, qp[0]->qp_num);
	req = rig_cm_expect(&r, 1, URN_CM_EVENT_REQUEST);
	rig_connect(&r, 1, qp[1], req.psn, req.qpn, 0x1000 + (qp[0]->qp_num & 0xfff), &plain);
	rig_cm_accept(&r, 1, req.id, qp[1]->qp_num);
	rep = rig_cm_expect(&r, 0, URN_CM_EVENT_REPLY);
	/* The other loses it when the answer comes, before the asking program does anything. */
	ended(&r, o.qp);
	assert_int_equal(to_state(qp[0], IBV_QPS_INIT), 0);
	assert_int_equal(to_rtr(&r, qp[0], rep.qpn, IBV_MTU_1024), 0);
	assert_int_equal(state_of(o.qp), IBV_QPS_ERR);
	rig_turns(&r, 100);
	assert_int_equal(ibv_get_async_event(o.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(ev.element.qp, o.qp);
	ibv_ack_async_event(&ev);
	/* The other can't take it again, even while no queue pair is connected. */
	assert_int_equal(to_state(qp[0], IBV_QPS_RESET), 0);
	assert_int_equal(to_state(o.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_state(o.qp, IBV_QPS_INIT), 0);
	refused(to_rtr(&r, o.qp, rep.qpn, IBV_MTU_1024));
	rig_connect(&r, 0, qp[0], req.psn, rep.qpn, rep.psn, &plain);
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_ESTABLISH, id, 0), 0);
	rig_cm_expect(&r, 1, URN_CM_EVENT_ESTABLISHED);
	other_close(&o);
	for (int e = 0; e < 2; e++)
		assert_int_equal(ibv_destroy_qp(qp[e]), 0);
	rig_cm_close(&r);
}

/*
 * A program that accepted a request gets the connection when the peer has answered: until
 * then nothing happens to the other program, and the accepting one sends nothing, whatever
 * it tries.
 */
static void
test_was_asked(void **state)
{
	struct ibv_qp *qp[2];
	struct rig_qp plain = {0};
	struct urn_abi_cm_event req, rep;
	struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	struct other o;
	struct rig r;
	uint32_t id;

	(void)state;
	rig_cm_open(&r, NULL);
	for (int e = 0; e < 2; e++)
		qp[e] = rig_make_qp(&r, e, &plain);
	other_open(&r, &o);
	rig_cm_listen(&r, 0, SERVICE, 1);
	rig_connect(&r, 0, o.qp, 1, qp[1]->qp_num, 1, &o.with);
	id = rig_cm_connect(&r, 1, qp[1]->qp_num);
	req = rig_cm_expect(&r, 0, URN_CM_EVENT_REQUEST);
	rig_connect(&r, 0, qp[0], 0x2000 + (qp[0]->qp_num & 0xfff), req.qpn, req.psn, &plain);
	assert_int_equal(state_of(qp[0]), IBV_QPS_RTS);
	assert_int_equal(state_of(o.qp), IBV_QPS_RTS);
	rig_cm_accept(&r, 0, req.id, qp[0]->qp_num);
	rep = rig_cm_expect(&r, 1, URN_CM_EVENT_REPLY);
	rig_connect(&r, 1, qp[1], req.psn, rep.qpn, rep.psn, &plain);
	rig_recv_on(qp[1], r.end[1].buf, 64, r.end[1].mr->lkey, 6);
	rig_send_on(qp[0], &wr);
	assert_int_not_equal(to_state(qp[0], IBV_QPS_INIT), 0); /* fails, and lifts nothing */
	rig_turns(&r, 2000);
	assert_int_equal(ibv_poll_cq(r.end[1].cq, 1, &wc), 0);
	assert_int_equal(state_of(o.qp), IBV_QPS_RTS);
	/* The peer's answer. */
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_ESTABLISH, id, 0), 0);
	ended(&r, o.qp); /* before the program has fetched the event */
	rig_cm_expect(&r, 0, URN_CM_EVENT_ESTABLISHED);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 6);
	assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, 5);
	carries(&r, qp[0], qp[1]);
	other_close(&o);
	for (int e = 0; e < 2; e++)
		assert_int_equal(ibv_destroy_qp(qp[e]), 0);
	rig_cm_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand), cmocka_unit_test(test_asked),
		cmocka_unit_test(test_was_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
