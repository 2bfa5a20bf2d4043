/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: a message says that a peer connects a queue pair anew which has a
 * connection here. The connection ends if the peer says that it forgot the connection, and not by
 * anything else, because anybody can write such a message.
 */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRY (4096ull << 14) /* ns between two tries, as the bench's messages say */

/* A request of the peer for its connected queue pair, with another id; anybody can write it. */
static struct urn_cm_msg
anew(void)
{
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

	m.local_id++;
	return m;
}

/* The request is refused, and the peer is asked about connection `id`. returns: the question's
 * transaction id */
static uint64_t
asked(const struct urn_cm_msg *req, uint32_t id)
{
	expect_in(req, CM_STALE);
	assert_int_equal(b.sent, 2);
	b.sent = 1;
	said(URN_CM_DREQ);
	assert_int_equal(b.said.local_id, id);
	assert_int_equal(b.said.remote_id, PEER_ID);
	assert_int_equal(b.said.qpn, 0);
	assert_true(b.said_waits);
	assert_int_equal(b.said_id, 0);
	expect_state(id, ESTABLISHED);
	quiet();
	return b.said.tid;
}

/* The peer's answer to a question. */
static struct urn_cm_msg
forgot(uint32_t id, uint64_t tid)
{
	struct urn_cm_msg m = from_peer(URN_CM_DREP, id);

	m.tid = tid;
	return m;
}

/* A peer that started anew: the old connection ends, and the second request becomes a connection.
 */
static void
test_restarted(void **state)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = anew(), r;

	(void)state;
	r = forgot(id, asked(&m, id));
	/* The request comes again meanwhile: it is refused, and the peer is being asked already. */
	expect_in(&m, CM_STALE);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_STALE_CONN);
	b.deaf = true;
	expect_in(&r, DROP_CM_EVENT);
	expect_state(id, ESTABLISHED);
	b.deaf = false;
	expect_in(&r, CM_STALE_ENDED);
	assert_int_equal(told(URN_CM_EVENT_DISCONNECTED).id, id);
	expect_state(id, TIMEWAIT);
	expect_in(&m, CM_RX);
	assert_int_not_equal(told(URN_CM_EVENT_REQUEST).id, id);
}

/* The side that asked for the connection is told of it in the same way. */
static void
test_restarted_server(void **state)
{
	uint32_t id = to_active();
	struct urn_cm_msg m = anew(), r;

	(void)state;
	to_listen(0);
	r = forgot(id, asked(&m, id));
	expect_in(&r, CM_STALE_ENDED);
	told(URN_CM_EVENT_DISCONNECTED);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REQUEST);
}

/* Questions and their answers are lost: the question is repeated, and a late answer counts. */
static void
test_lost(void **state)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = anew(), r;
	uint64_t tid = asked(&m, id);

	(void)state;
	for (int i = 0; i < 3; i++) {
		pass(TRY - 1);
		quiet();
		pass(1);
		assert_int_equal(said(URN_CM_DREQ).tid, tid);
		assert_int_equal(b.said.qpn, 0);
	}
	pass(3600 * SECOND);
	quiet();
	expect_state(id, ESTABLISHED);
	r = forgot(id, tid);
	expect_in(&r, CM_STALE_ENDED);
	told(URN_CM_EVENT_DISCONNECTED);
	b.sent = 0;
}

/*
 * Requests with the peer's address, of somebody else, in any number: the connection stays, and the
 * questions to the peer are four for each time that four tries take.
 */
static void
test_forged(void **state)
{
	enum { FORGED = 10000 };
	uint32_t id = to_passive();
	struct urn_cm_msg m = anew();
	uint64_t before = b.now;

	(void)state;
	for (uint32_t i = 0; i < FORGED; i++) {
		m.local_id++;
		expect_in(&m, CM_STALE);
		pass(TRY / 100);
		expect_state(id, ESTABLISHED);
	}
	assert_int_equal(b.told, 0);
	assert_in_range(b.sent, FORGED, FORGED + (b.now - before) / TRY + 2);
	b.sent = 0;
	/* The connection works as before. */
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_DISCONNECT);
}

/* Answers that nobody asked for, with a guessed transaction id, and of another peer. */
static void
test_forged_answers(void **state)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = anew(), r = forgot(id, 0);
	uint64_t tid;

	(void)state;
	expect_in(&r, DROP_CM_STATE);
	tid = asked(&m, id);
	for (int bit = 0; bit < 64; bit++) {
		r = forgot(id, tid ^ 1ull << bit);
		expect_in(&r, DROP_CM_STATE);
	}
	r = forgot(id, tid);
	r.local_id++;
	expect_in(&r, CM_UNKNOWN);
	r = forgot(id, tid);
	b.peer[15]++;
	expect_in(&r, CM_UNKNOWN);
	b.peer[15]--;
	quiet();
	expect_state(id, ESTABLISHED);
	/* Later questions about a connection have the same id: a peer may repeat an answer that was
	 * lost. */
	pass(60 * SECOND);
	b.sent = 0;
	assert_true(asked(&m, id) == tid);
	expect_in(&r, CM_STALE_ENDED);
	told(URN_CM_EVENT_DISCONNECTED);
}

/* A question about a connection that stands is dropped; one about a connection that nobody has is
 * answered. */
static void
test_asked(void **state)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = from_peer(URN_CM_DREQ, id);

	(void)state;
	m.qpn = 0;
	expect_in(&m, DROP_CM_FIELD);
	expect_state(id, ESTABLISHED);
	quiet();
	m.tid = 0x123456789abcdef0;
	m.local_id++;
	expect_in(&m, CM_UNKNOWN);
	assert_int_equal(said(URN_CM_DREP).tid, m.tid);
	assert_int_equal(b.said.local_id, id);
	assert_int_equal(b.said.remote_id, m.local_id);
}

/* RTUs of a program that took its time, repeated unasked. forged: a request comes in between.
 * returns: how many */
static unsigned int
rtus(bool forged)
{
	struct urn_abi_cm_data p = {0};
	struct urn_cm_msg m;
	unsigned int n = 0;
	uint32_t id;

	bench_make(64, 0);
	id = to_rep_rcvd();
	m = from_peer(URN_CM_REP, id);
	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_MRA);
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_RTU);
	m = anew();
	for (int i = 0; i < 1000; i++) {
		pass(TRY / 100);
		if (forged)
			expect_in(&m, CM_STALE);
		b.sent = 0;
	}
	/* The kept message is the RTU still. */
	m = from_peer(URN_CM_REP, id);
	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_RTU);
	pass(3600 * SECOND);
	b.sent = 0;
	n = (unsigned int)counter(URN_C_CM_RETRANSMITS);
	expect_state(id, ESTABLISHED);
	return n;
}

/* Questions take nothing from the messages that are repeated at the same time. */
static void
test_insists(void **state)
{
	unsigned int n = rtus(false);

	(void)state;
	assert_true(n >= 3);
	assert_int_equal(rtus(true), n);
}

/*
 * The answer to a request of ours names a queue pair that is connected. The peer gets a
 * refusal, our program is told, and the peer is asked about the old connection.
 */
static void
test_reply(void **state)
{
	uint32_t id = to_active(), id2;
	struct urn_cm_msg m, r;

	(void)state;
	id2 = to_req_sent();
	m = from_peer(URN_CM_REP, id2);
	m.local_id = PEER_ID + 1;
	b.deaf = true;
	expect_in(&m, DROP_CM_EVENT);
	expect_state(id2, REQ_SENT);
	quiet();
	b.deaf = false;
	expect_in(&m, CM_STALE);
	assert_int_equal(b.ev.id, id2);
	assert_int_equal(told(URN_CM_EVENT_REJECTED).reason, URN_CM_REJ_STALE_CONN);
	expect_state(id2, IDLE);
	/* A REJ, then a question about the old connection. */
	assert_int_equal(b.sent, 2);
	b.sent = 1;
	assert_int_equal(said(URN_CM_DREQ).qpn, 0);
	assert_int_equal(b.said.local_id, id);
	expect_state(id, ESTABLISHED);
	r = forgot(id, b.said.tid);
	/* Copies of the REP are told that nobody has that id. */
	expect_in(&m, CM_UNKNOWN);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_COMM_ID);
	/* The REJ has both ids of the connection: by them the peer finds the connection that is
	 * meant. */
	assert_int_equal(b.said.local_id, id2);
	assert_int_equal(b.said.remote_id, m.local_id);
	/* When the old connection has ended the queue pair is accepted. */
	expect_in(&r, CM_STALE_ENDED);
	told(URN_CM_EVENT_DISCONNECTED);
	id2 = to_req_sent();
	m = from_peer(URN_CM_REP, id2);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REPLY);
}

/* Counts of all that. */
static void
test_counts(void **state)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = anew();

	(void)state;
	asked(&m, id);
	pass(3600 * SECOND);
	assert_int_equal(b.sent, 3);
	b.sent = 0;
	assert_int_equal(counter(URN_C_CM_STALE_ASKED), 4);
}

/* A request holds an id for 69 s at most, whatever timeout and retries its sender writes into it.
 */
static void
test_long(void **state)
{
	struct urn_abi_cm_accept a = an_accept();

	(void)state;
	for (uint8_t code = 0; code < 32; code++) {
		struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
		uint64_t asked_at;

		bench_make(64, 0);
		to_listen(0);
		m.local_timeout = code;
		m.max_retries = 15;
		expect_in(&m, CM_RX);
		assert_int_equal(
			urn_cm_accept(b.cm, &b.o, told(URN_CM_EVENT_REQUEST).id, &a, b.now), 0);
		asked_at = b.now;
		while (!b.told)
			pass(urn_cm_due(b.cm) - b.now);
		told(URN_CM_EVENT_UNREACHABLE);
		assert_true(b.now - asked_at <= 4096ull << 24);
		/* A timeout that is common gets all its repeats: 15 of 4.3 s. */
		if (code == 20)
			assert_int_equal(b.now - asked_at, 4096ull << 24);
		b.sent = 0;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_restarted),	T(test_restarted_server),
		T(test_lost),		T(test_forged),
		T(test_forged_answers), T(test_asked),
		T(test_insists),	T(test_reply),
		T(test_counts),		T(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
