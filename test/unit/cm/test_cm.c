/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: the usual ways of connections, and the messages on them. */
#include "cm_bench.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(test_cm_state_name(URN_CM_IDLE), "idle");
	assert_string_equal(test_cm_state_name(URN_CM_SIDR_REQ_RCVD), "sidr_req_rcvd");
	for (unsigned int i = 0; i < URN_CM_STATES; i++)
		assert_non_null(test_cm_state_name(i));
	assert_string_equal(test_cm_state_name(URN_CM_STATES), "?");
	urn_cm_destroy(NULL);
}

/* A REQ contains the parameters that were asked for. */
static void
test_req(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_msg m;
	uint32_t id;

	(void)state;
	p.flow_control = 1;
	p.srq = 1;
	p.traffic_class = 0x20;
	p.flow_label = 0x12345;
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	assert_true(b.said_waits);
	m = said(URN_CM_REQ);
	assert_int_equal(m.local_id, id);
	assert_int_not_equal(m.tid, 0);
	assert_int_equal(m.service_id, SERVICE);
	assert_int_equal(m.ca_guid, 0x8182838485868788);
	assert_int_equal(m.qpn, OUR_QPN);
	assert_int_equal(m.psn, 0x99);
	assert_int_equal(m.pkey, 0xffff);
	assert_int_equal(m.service, URN_CM_RC);
	assert_int_equal(m.responder_resources, 4);
	assert_int_equal(m.initiator_depth, 5);
	assert_int_equal(m.retry_count, 7);
	assert_int_equal(m.rnr_retry, 6);
	assert_int_equal(m.flow_control, 1);
	assert_int_equal(m.srq, 1);
	assert_int_equal(m.mtu, 3);
	assert_int_equal(m.max_retries, 3);
	assert_int_equal(m.remote_timeout, 14);
	assert_int_equal(m.local_timeout, 14);
	assert_memory_equal(m.path[0].sgid, b.us, 16);
	assert_memory_equal(m.path[0].dgid, b.peer, 16);
	assert_int_equal(m.path[0].slid, 0xffff);
	assert_int_equal(m.path[0].dlid, 0xffff);
	assert_int_equal(m.path[0].hop_limit, 64);
	assert_int_equal(m.path[0].traffic_class, 0x20);
	assert_int_equal(m.path[0].flow_label, 0x12345);
	assert_int_equal(m.path[0].ack_timeout, 16);
	expect_padded(m.data, URN_CM_REQ_DATA, 1, 56);
}

/* We ask: REQ, REP, RTU, with private data both ways. */
static void
test_active(void **state)
{
	struct urn_abi_cm_data p = {.data_len = 224};
	uint32_t id = to_req_sent();
	struct urn_cm_msg m = from_peer(URN_CM_REP, id), rtu;
	struct urn_abi_cm_event ev;

	(void)state;
	m.srq = 1;
	m.ack_delay = 11;
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_REPLY);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.cookie, 0xc0);
	assert_int_equal(ev.service_id, SERVICE);
	assert_int_equal(ev.qpn, PEER_QPN);
	assert_int_equal(ev.psn, 0x55);
	assert_int_equal(ev.responder_resources, 4);
	assert_int_equal(ev.initiator_depth, 5);
	assert_int_equal(ev.rnr_retry, 6);
	assert_int_equal(ev.srq, 1);
	assert_int_equal(ev.ack_timeout, 11);
	assert_memory_equal(ev.gid, b.peer, 16);
	assert_memory_equal(ev.own_gid, b.us, 16);
	assert_int_equal(ev.data_len, 196);
	expect_data(ev.data, 196, URN_CM_REP);
	fill_data(p.data, 224, 3);
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	rtu = said(URN_CM_RTU);
	assert_int_equal(rtu.local_id, id);
	assert_int_equal(rtu.remote_id, PEER_ID);
	expect_data(rtu.data, 224, 3);
	expect_state(id, ESTABLISHED);
	pass(3600 * SECOND);
	quiet();
}

/* The peer asks. */
static void
test_passive(void **state)
{
	uint32_t l = to_listen(0), id;
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
	struct urn_abi_cm_accept p = an_accept();
	struct urn_abi_cm_event ev;

	(void)state;
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_REQUEST);
	id = ev.id;
	assert_int_not_equal(id, l);
	assert_int_equal(ev.listen_id, l);
	assert_int_equal(ev.cookie, 0xc1);
	assert_int_equal(ev.service_id, SERVICE);
	assert_int_equal(ev.qpn, PEER_QPN);
	assert_int_equal(ev.psn, 0x55);
	assert_int_equal(ev.mtu, 3);
	assert_int_equal(ev.retry_count, 7);
	assert_int_equal(ev.rnr_retry, 6);
	assert_int_equal(ev.ack_timeout, 16);
	assert_int_equal(ev.hop_limit, 64);
	assert_memory_equal(ev.gid, b.peer, 16);
	assert_memory_equal(ev.own_gid, b.us, 16);
	assert_int_equal(ev.data_len, 92);
	expect_data(ev.data, 92, URN_CM_REQ);
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_REP);
	assert_int_equal(m.tid, 0xfeed); /* the request's */
	assert_int_equal(m.local_id, id);
	assert_int_equal(m.remote_id, PEER_ID);
	assert_int_equal(m.qpn, OUR_QPN);
	assert_int_equal(m.psn, 0x98);
	assert_int_equal(m.responder_resources, 3);
	assert_int_equal(m.initiator_depth, 2);
	assert_int_equal(m.rnr_retry, 5);
	assert_int_equal(m.ack_delay, 9);
	assert_int_equal(m.failover, 1);
	assert_int_equal(m.ca_guid, 0x8182838485868788);
	expect_padded(m.data, 196, 2, 100);
	m = from_peer(URN_CM_RTU, id);
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_ESTABLISHED);
	assert_int_equal(ev.data_len, 224);
	expect_data(ev.data, 224, URN_CM_RTU);
	expect_state(id, ESTABLISHED);
}

/* The peer's data came before its RTU did. */
static void
test_early_data(void **state)
{
	uint32_t id = to_rep_sent();
	struct urn_abi_cm_data p = {0};
	struct urn_cm_msg m = from_peer(URN_CM_RTU, id);

	(void)state;
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	expect_state(id, ESTABLISHED);
	pass(60 * SECOND);
	quiet();
	expect_in(&m, CM_DUPLICATE);
	quiet();
}

/* We disconnect; then the peer does. */
static void
test_disconnect(void **state)
{
	uint32_t id = to_active();
	uint64_t tid = b.said.tid; /* transaction of the set-up */
	struct urn_abi_cm_data p = {.data_len = 220};
	struct urn_abi_cm_event ev;
	struct urn_cm_msg m;

	(void)state;
	fill_data(p.data, 220, 4);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_DREQ);
	assert_int_equal(m.local_id, id);
	assert_int_equal(m.remote_id, PEER_ID);
	assert_int_equal(m.qpn, PEER_QPN);
	assert_true(m.tid != tid);
	expect_data(m.data, 220, 4);
	m = from_peer(URN_CM_DREP, id);
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_DISCONNECTED);
	assert_int_equal(ev.reason, 0);
	assert_int_equal(ev.data_len, 224);
	expect_data(ev.data, 224, URN_CM_DREP);
	expect_state(id, TIMEWAIT);
	pass(4096ull << 16);
	told(URN_CM_EVENT_TIMEWAIT);
	expect_state(id, IDLE);
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	assert_int_equal(test_cm_count(b.cm), 0);

	id = to_passive();
	m = from_peer(URN_CM_DREQ, id);
	m.tid = 0xd1e;
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_DISCONNECT);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.data_len, 220);
	expect_data(ev.data, 220, URN_CM_DREQ);
	p.data_len = 224;
	fill_data(p.data, 224, 5);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_DREP);
	assert_int_equal(m.tid, 0xd1e);
	expect_data(m.data, 224, 5);
	pass(4096ull << 16);
	told(URN_CM_EVENT_TIMEWAIT);
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);

	/* Both disconnect at once: each is answered in its own transaction. */
	id = to_dreq_sent();
	m = from_peer(URN_CM_DREQ, id);
	m.tid = 0xd2e;
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_DISCONNECTED);
	assert_int_equal(said(URN_CM_DREP).tid, 0xd2e);
}

/* The queue pair's number is held for so long, and then no more. */
static void
expect_held_for(uint64_t ns)
{
	pass(ns - 1);
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));
	pass(1);
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN));
}

/*
 * A queue pair's number is held from when the peer learns it until the end of timewait,
 * whichever side asked or ended the connection; also when its owner is gone.
 */
static void
test_number_held(void **state)
{
	struct urn_cm_msg m;
	uint32_t id = to_req_rcvd();
	struct urn_abi_cm_accept a = an_accept();

	(void)state;
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN));
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));
	m = from_peer(URN_CM_RTU, id);
	expect_in(&m, CM_RX);
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN + 1));
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_RX);
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	expect_held_for(4096ull << 16);

	bench_make(64, 0);
	id = to_timewait();
	expect_held_for(4096ull << 16);
	expect_state(id, IDLE);

	/* The RTU was lost. */
	bench_make(64, 0);
	id = to_rep_sent();
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_RX);
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));

	/* Refused: copies of the request may still come to the peer. */
	bench_make(64, 0);
	id = to_req_sent();
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	expect_held_for(4096ull << 20);
	bench_make(64, 0);
	id = to_req_sent();
	m = from_peer(URN_CM_REJ, id);
	expect_in(&m, CM_RX);
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN));

	/* A look-up has no queue pair. */
	bench_make(64, 0);
	to_sidr_req_sent();
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN));
}

/* A path MTU that the port does not carry is refused, and never requested. */
static void
test_path_mtu(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_msg m;
	uint32_t id;

	(void)state;
	bench_make_mtu(3);
	to_listen(0);
	m = from_peer(URN_CM_REQ, 0);
	for (m.mtu = 4; m.mtu <= 6; m.mtu++) {
		expect_in(&m, CM_UNSUPPORTED);
		assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_MTU);
	}
	m.mtu = 3;
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REQUEST);
	p.mtu = 4;
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), EINVAL);
	p.mtu = 3;
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	said(URN_CM_REQ);
}

static void
test_reject(void **state)
{
	struct urn_abi_cm_reject p = {.reason = URN_CM_REJ_CONSUMER, .info_len = 72, .data_len = 148};
	uint32_t id = to_req_rcvd();
	struct urn_abi_cm_event ev;
	struct urn_cm_msg m;

	(void)state;
	fill_data(p.info, 72, 8);
	fill_data(p.data, 148, 9);
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_REJ);
	assert_int_equal(m.tid, 0xfeed);
	assert_int_equal(m.local_id, id);
	assert_int_equal(m.remote_id, PEER_ID);
	assert_int_equal(m.about, URN_CM_ABOUT_REQ);
	assert_int_equal(m.reason, URN_CM_REJ_CONSUMER);
	assert_int_equal(m.info_len, 72);
	expect_data(m.info, 72, 8);
	expect_data(m.data, 148, 9);
	pass(60 * SECOND);
	quiet();
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);

	/* The passive side. */
	id = to_req_sent();
	m = from_peer(URN_CM_REJ, id);
	m.reason = URN_CM_REJ_CONSUMER;
	m.info_len = 9;
	fill_data(m.info, 72, 0x30);
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_REJECTED);
	assert_int_equal(ev.reason, URN_CM_REJ_CONSUMER);
	assert_int_equal(ev.data_len, 148);
	expect_data(ev.data, 148, URN_CM_REJ);
	assert_int_equal(ev.info_len, 9);
	expect_data(ev.data + 148, 9, 0x30);
	expect_state(id, IDLE);

	/* A REP. */
	id = to_rep_rcvd();
	p = (struct urn_abi_cm_reject){.reason = 300};
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_REJ);
	assert_int_equal(m.about, URN_CM_ABOUT_REP);
	assert_int_equal(m.reason, 300);
}

static void
test_sidr(void **state)
{
	uint32_t id = to_sidr_req_sent();
	struct urn_cm_msg m = b.said;
	struct urn_abi_cm_accept p = {.qpn = 0x77, .psn = 0x11111111, .data_len = 136};
	struct urn_abi_cm_event ev;

	(void)state;
	assert_int_equal(m.local_id, id);
	assert_int_equal(m.service_id, SERVICE);
	assert_int_equal(m.pkey, 0xffff);
	expect_data(m.data, 216, 6);
	m = from_peer(URN_CM_SIDR_REP, id);
	m.qkey = 0x01234567;
	m.info_len = 72;
	fill_data(m.info, 72, 0x31);
	expect_in(&m, CM_RX);
	ev = told(URN_CM_EVENT_SIDR_REPLY);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.reason, 0);
	assert_int_equal(ev.qpn, PEER_QPN);
	assert_int_equal(ev.qkey, 0x01234567);
	expect_data(ev.data, 136, URN_CM_SIDR_REP);
	expect_data(ev.data + 136, 72, 0x31);
	expect_state(id, IDLE);

	id = to_sidr_req_rcvd();
	expect_data(b.ev.data, 216, URN_CM_SIDR_REQ);
	fill_data(p.data, 136, 10);
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &p, b.now), 0);
	m = said(URN_CM_SIDR_REP);
	assert_int_equal(m.local_id, PEER_ID);
	assert_int_equal(m.tid, 0xfeed);
	assert_int_equal(m.status, 0);
	assert_int_equal(m.qpn, 0x77);
	assert_int_equal(m.qkey, 0x11111111);
	assert_int_equal(m.service_id, SERVICE);
	expect_data(m.data, 136, 10);
	/* The peer repeats it, and the answer is repeated. */
	m = from_peer(URN_CM_SIDR_REQ, 0);
	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_SIDR_REP);
	pass(60 * SECOND);
	quiet();
}

/* A session layer answers for the queue pair of its service, and nobody else gets the number. */
static void
test_session_service(void **state)
{
	struct urn_abi_cm_listen l = {
		.service_id = urn_cm_session_service(OUR_QPN), .cookie = 0xc1, .channel_fd = 0x5a};
	struct urn_abi_cm_accept a = {.qpn = OUR_QPN + 1};
	struct urn_cm_msg m = from_peer(URN_CM_SIDR_REQ, 0);
	uint32_t listener = 0, id;

	(void)state;
	assert_int_equal(urn_cm_listen(b.cm, &b.o, &l, &listener), 0);
	assert_true(urn_cm_holds_qpn(b.cm, OUR_QPN));
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN + 1));
	m.service_id = l.service_id;
	expect_in(&m, CM_RX);
	id = told(URN_CM_EVENT_SIDR_REQUEST).id;
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), EINVAL);
	quiet();
	a.qpn = OUR_QPN;
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
	assert_int_equal(said(URN_CM_SIDR_REP).qpn, OUR_QPN);
	assert_int_equal(urn_cm_release(b.cm, &b.o, listener, b.now), 0);
	assert_false(urn_cm_holds_qpn(b.cm, OUR_QPN));
}

/* Each wrong parameter of a request is refused. */
static void
wrong_connects(void)
{
	struct urn_abi_cm_connect good = a_connect(), p;
	uint32_t id = 0;

#define BAD(field, v)                                                                          \
	do {                                                                                   \
		p = good;                                                                      \
		p.field = (v);                                                                 \
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), EINVAL);    \
	} while (0)
	BAD(qpn, 0);
	BAD(qpn, 1);
	BAD(qpn, 0x1000000);
	BAD(psn, 0x1000000);
	BAD(retry_count, 8);
	BAD(rnr_retry, 8);
	BAD(flow_control, 2);
	BAD(srq, 2);
	BAD(mtu, 0);
	BAD(mtu, 6);
	BAD(timeout, 32);
	BAD(max_retries, 16);
	BAD(ack_timeout, 32);
	BAD(flow_label, 0x100000);
	BAD(data_len, 93);
#undef BAD
	p = good;
	p.data_len = 217;
	assert_int_equal(urn_cm_resolve(b.cm, &b.o, &p, b.us, b.now, &id), EINVAL);
	assert_int_equal(test_cm_count(b.cm), 0);
	quiet();
}

/* Wrong parameters are refused, and change nothing. */
static void
test_parameters(void **state)
{
	struct urn_abi_cm_accept ga = an_accept(), a;
	struct urn_abi_cm_reject r = {.data_len = 149};
	struct urn_abi_cm_data d = {.data_len = 225};
	uint32_t id;

	(void)state;
	wrong_connects();
	id = to_req_rcvd();
#define BAD(field, v)                                                                          \
	do {                                                                                   \
		a = ga;                                                                        \
		a.field = (v);                                                                 \
		assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), EINVAL);            \
	} while (0)
	BAD(qpn, 1);
	BAD(qpn, 0x1000000);
	BAD(psn, 0x1000000);
	BAD(rnr_retry, 8);
	BAD(flow_control, 2);
	BAD(srq, 2);
	BAD(ack_delay, 32);
	BAD(data_len, 197);
	BAD(status, URN_CM_SIDR_REJECT); /* a look-up: then nobody asks for the queue pair's owner */
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &r, b.now), EINVAL);
	r = (struct urn_abi_cm_reject){.info_len = 73};
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &r, b.now), EINVAL);
	expect_state(id, REQ_RCVD);
	id = to_rep_rcvd();
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &d, b.now), EINVAL);
	id = to_active();
	d.data_len = 221;
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &d, b.now), EINVAL);
	expect_state(id, ESTABLISHED);
	quiet();
}

static void
test_parameters_late(void **state)
{
	struct urn_abi_cm_data d = {.data_len = 225};
	struct urn_abi_cm_accept ga = an_accept(), a;
	uint32_t id = to_dreq_rcvd();

	(void)state;
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &d, b.now), EINVAL);
	expect_state(id, DREQ_RCVD);
	bench_make(64, 0);
	id = to_sidr_req_rcvd();
	BAD(status, 6);
	BAD(qpn, 1);
	BAD(qpn, 0x1000000);
	BAD(data_len, 137);
	expect_state(id, SIDR_REQ_RCVD);
	quiet();
}
#undef BAD

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_names),		 T(test_req),
		T(test_active),		 T(test_passive),
		T(test_early_data),	 T(test_disconnect),
		T(test_reject),		 T(test_sidr),
		T(test_session_service), T(test_parameters),
		T(test_parameters_late), T(test_number_held),
		T(test_path_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
