/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: repeats, patience and its end, and many timers at once. */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRY (4096ull << 14) /* ns between two tries, as the bench's messages say */

/* Nothing answers: the message is sent once and three times more, in even steps; then the program
 * is told. A look-up's steps are not even. */
static void
repeats(uint32_t id, enum urn_cm_attr attr, enum urn_cm_event_type type, enum urn_cm_state end)
{
	struct urn_cm_msg first = b.said;

	for (int i = 0; i < 3; i++) {
		pass(TRY - 1);
		quiet();
		pass(1);
		said(attr);
		assert_memory_equal(&b.said, &first, sizeof(first));
	}
	pass(TRY - 1);
	quiet();
	pass(1);
	assert_int_equal(told(type).id, id);
	assert_int_equal(b.ev.reason, 1);
	assert_int_equal(test_cm_state(b.cm, id), end);
}

static void
test_unanswered(void **state)
{
	uint32_t id = to_req_sent();

	(void)state;
	repeats(id, URN_CM_REQ, URN_CM_EVENT_UNREACHABLE, URN_CM_IDLE);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_TIMEOUT);
	assert_int_equal(counter(URN_C_CM_TIMEOUTS), 1);
	pass(3600 * SECOND);
	quiet();

	bench_make(64, 0);
	id = to_rep_sent();
	repeats(id, URN_CM_REP, URN_CM_EVENT_UNREACHABLE, URN_CM_TIMEWAIT);
	assert_int_equal(said(URN_CM_REJ).about, URN_CM_ABOUT_REP);
	assert_int_equal(counter(URN_C_CM_RETRANSMITS), 3);
	pass(3600 * SECOND);
	quiet();
	expect_state(id, IDLE);

	bench_make(64, 0);
	id = to_dreq_sent();
	repeats(id, URN_CM_DREQ, URN_CM_EVENT_DISCONNECTED, URN_CM_TIMEWAIT);
	pass(4096ull << 16);
	told(URN_CM_EVENT_TIMEWAIT);
	quiet();

	bench_make(64, 0);
	id = to_sidr_req_sent();
	/* The first repeats of a look-up come early. */
	for (int part = 8; part > 1; part /= 2) {
		pass(TRY / part - 1);
		quiet();
		pass(1);
		said(URN_CM_SIDR_REQ);
	}
	pass(TRY - 1);
	quiet();
	pass(1);
	assert_int_equal(told(URN_CM_EVENT_UNREACHABLE).id, id);
	expect_state(id, IDLE);
	quiet();
}

/* The answer to a repeat counts as well, and ends the repeating. */
static void
test_late_answer(void **state)
{
	uint32_t id = to_req_sent();
	struct urn_cm_msg m = from_peer(URN_CM_REP, id);

	(void)state;
	pass(3 * TRY);
	b.sent = 0;
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REPLY);
	pass(3600 * SECOND);
	quiet();
}

/* The peer needs longer, and says how long. Then the tries go on where they were. */
static void
test_patience(void **state)
{
	uint32_t id = to_req_sent();
	struct urn_cm_msg m = from_peer(URN_CM_MRA, id);

	(void)state;
	m.about = URN_CM_ABOUT_REQ;
	expect_in(&m, CM_RX);
	pass((4096ull << 20) + TRY - 1);
	quiet();
	pass(1);
	said(URN_CM_REQ);
	expect_state(id, REQ_SENT);
	pass(TRY);
	said(URN_CM_REQ);
	/* An endless delay is shortened, and granted a limited number of times. */
	m.service_timeout = 31;
	for (int i = 0; i < 3; i++)
		expect_in(&m, CM_RX);
	expect_in(&m, CM_DUPLICATE);
	pass((4096ull << 24) + TRY);
	said(URN_CM_REQ);
	pass(TRY);
	b.sent = 0;
	told(URN_CM_EVENT_UNREACHABLE);

	/* An MRA about another message. */
	id = to_req_sent();
	m = from_peer(URN_CM_MRA, id);
	m.about = URN_CM_ABOUT_REP;
	expect_in(&m, DROP_CM_STATE);
	bench_make(64, 0);
	id = to_rep_sent();
	m = from_peer(URN_CM_MRA, id);
	m.about = URN_CM_ABOUT_REQ;
	expect_in(&m, DROP_CM_STATE);
	m.about = URN_CM_ABOUT_REP;
	expect_in(&m, CM_RX);
	pass((4096ull << 20) + TRY);
	said(URN_CM_REP);
	expect_state(id, REP_SENT);
}

/* We ask the peer for patience when the program is slow. */
static void
test_slow_program(void **state)
{
	uint32_t id = to_req_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0), mra;

	(void)state;
	expect_in(&m, CM_DUPLICATE);
	mra = said(URN_CM_MRA);
	assert_int_equal(mra.about, URN_CM_ABOUT_REQ);
	assert_int_equal(mra.service_timeout, 24);
	assert_int_equal(mra.local_id, id);
	assert_int_equal(mra.remote_id, PEER_ID);
	pass(3600 * SECOND);
	quiet();
	id = to_rep_rcvd();
	m = from_peer(URN_CM_REP, id);
	expect_in(&m, CM_DUPLICATE);
	assert_int_equal(said(URN_CM_MRA).about, URN_CM_ABOUT_REP);
}

/* The message that ends an exchange is sent three times more, unasked and in even steps, whole. */
static void
insists(enum urn_cm_attr attr)
{
	struct urn_cm_msg first = said(attr);

	for (int i = 0; i < 3; i++) {
		pass(TRY - 1);
		quiet();
		pass(1);
		said(attr);
		assert_memory_equal(&b.said, &first, sizeof(first));
	}
}

/* The program is slow, the peer is asked for patience, and then the program is ready. returns: our
 * id */
static uint32_t
slowly_ready(void)
{
	struct urn_abi_cm_data p = {.data_len = 224};
	uint32_t id = to_rep_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_REP, id);

	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_MRA);
	fill_data(p.data, 224, 3);
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	expect_state(id, ESTABLISHED);
	return id;
}

/* A peer that was asked for patience does not repeat for a minute: the RTU may be lost all the
 * same. */
static void
test_ready_after_patience(void **state)
{
	uint32_t id = slowly_ready();
	struct urn_abi_cm_data p = {0};
	struct urn_cm_msg m;

	(void)state;
	insists(URN_CM_RTU);
	assert_int_equal(counter(URN_C_CM_RETRANSMITS), 3);
	pass(3600 * SECOND);
	quiet();
	expect_state(id, ESTABLISHED);

	/* The end of the connection, from either side, ends the repeats. */
	bench_make(64, 0);
	id = slowly_ready();
	said(URN_CM_RTU);
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_DISCONNECT);
	pass(3600 * SECOND);
	quiet();
	bench_make(64, 0);
	id = slowly_ready();
	said(URN_CM_RTU);
	pass(TRY / 2);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_DREQ);
	repeats(id, URN_CM_DREQ, URN_CM_EVENT_DISCONNECTED, URN_CM_TIMEWAIT);
}

/* A request whose peer was asked for patience. returns: our id */
static uint32_t
slowly_taken(void)
{
	uint32_t id = to_req_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_MRA);
	return id;
}

/* A refusal may be lost, too, whatever its cause; it is kept as long as any. */
static void
test_refused_after_patience(void **state)
{
	struct urn_abi_cm_reject p = {.reason = URN_CM_REJ_CONSUMER};
	struct urn_abi_cm_accept a = an_accept();
	uint32_t id = slowly_taken();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

	(void)state;
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	insists(URN_CM_REJ);
	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_REJ);
	pass(TRY + (4096ull << 20) - 1);
	quiet();
	expect_state(id, TIMEWAIT);
	pass(1);
	expect_state(id, IDLE);

	/* After a REP that may be lost, too. */
	bench_make(64, 0);
	id = slowly_taken();
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
	said(URN_CM_REP);
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	insists(URN_CM_REJ);

	/* The program goes. */
	bench_make(64, 0);
	id = slowly_taken();
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	insists(URN_CM_REJ);
	pass(TRY + (4096ull << 20));
	assert_int_equal(test_cm_count(b.cm), 1); /* the listener */
	quiet();
}

/* Nothing is sent unasked where nobody waits for it. */
static void
test_refused_at_once(void **state)
{
	struct urn_abi_cm_reject p = {.reason = URN_CM_REJ_CONSUMER};
	uint32_t id = slowly_taken();
	struct urn_cm_msg m = from_peer(URN_CM_REJ, id);

	(void)state;
	expect_in(&m, CM_RX); /* the peer takes its request back */
	told(URN_CM_EVENT_REJECTED);
	pass(3600 * SECOND);
	quiet();
	bench_make(64, 0);
	id = to_req_rcvd(); /* the peer asks again by itself */
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_REJ);
	pass(3600 * SECOND);
	quiet();
}

/* Timeouts of a peer that are too short or too long to be meant are clamped. */
static void
test_clamped(void **state)
{
	static const struct {
		uint8_t code;
		uint64_t ns;
	} t[] = {{0, 4096ull << 8},
		 {8, 4096ull << 8},
		 {9, 4096ull << 9},
		 {22, 4096ull << 22},
		 {31, 4096ull << 22}};
	struct urn_abi_cm_accept a = an_accept();

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
		uint32_t id;

		bench_make(64, 0);
		to_listen(0);
		m.local_timeout = t[i].code;
		expect_in(&m, CM_RX);
		id = told(URN_CM_EVENT_REQUEST).id;
		assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
		said(URN_CM_REP);
		assert_int_equal(urn_cm_due(b.cm) - b.now, t[i].ns);
	}
}

/* The time until a queue pair's number is free. */
static void
test_timewait(void **state)
{
	static const uint8_t code[][2] = {{0, 15}, {14, 15}, {17, 17}, {20, 20}, {31, 20}};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
		struct urn_abi_cm_accept a = an_accept();
		struct urn_abi_cm_data d = {0};
		uint32_t id;

		bench_make(64, 0);
		to_listen(0);
		m.path[0].ack_timeout = code[i][0];
		expect_in(&m, CM_RX);
		id = told(URN_CM_EVENT_REQUEST).id;
		assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
		assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &d, b.now), 0);
		m = from_peer(URN_CM_DREQ, id);
		expect_in(&m, CM_RX);
		assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &d, b.now), 0);
		b.sent = b.told = 0;
		pass((4096ull << code[i][1]) - 1);
		quiet();
		pass(1);
		told(URN_CM_EVENT_TIMEWAIT);
	}
}

/* An event without room at a timeout comes later. */
static void
test_deaf(void **state)
{
	uint32_t id = to_req_sent();

	(void)state;
	b.deaf = true;
	pass(10 * TRY);
	expect_state(id, REQ_SENT);
	b.deaf = false;
	pass(URN_CM_AGAIN_NS);
	told(URN_CM_EVENT_UNREACHABLE);
	b.sent = 0;
	id = to_dreq_sent();
	b.deaf = true;
	pass(10 * TRY);
	expect_state(id, DREQ_SENT);
	b.deaf = false;
	pass(URN_CM_AGAIN_NS);
	told(URN_CM_EVENT_DISCONNECTED);
	b.deaf = true;
	pass(10 * SECOND);
	expect_state(id, TIMEWAIT);
	b.deaf = false;
	pass(URN_CM_AGAIN_NS);
	told(URN_CM_EVENT_TIMEWAIT);
}

/* A message that can't be sent goes as soon as it can, and this is no repeat. */
static void
test_dumb(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_msg m;
	uint32_t id;

	(void)state;
	b.dumb = true;
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	pass(10 * SECOND);
	quiet();
	expect_state(id, REQ_SENT);
	b.dumb = false;
	pass(URN_CM_AGAIN_NS);
	said(URN_CM_REQ);
	assert_int_equal(counter(URN_C_CM_RETRANSMITS), 0);
	repeats(id, URN_CM_REQ, URN_CM_EVENT_UNREACHABLE, URN_CM_IDLE);
	said(URN_CM_REJ);
	/* A refusal is lost. */
	b.dumb = true;
	m = from_peer(URN_CM_REQ, 0);
	expect_in(&m, CM_NO_SERVICE);
	quiet();
	assert_int_equal(counter(URN_C_DROP_CM_TX), 1);
}

/* A message that waits for a MAC address uses no try, however long it waits; then all tries are
 * left. */
static void
test_no_mac(void **state)
{
	uint32_t id = to_req_sent();

	(void)state;
	assert_int_equal(b.said_id, id);
	b.waits = true;
	pass(100 * TRY);
	quiet();
	expect_state(id, REQ_SENT);
	assert_int_equal(counter(URN_C_CM_RETRANSMITS), 0);
	b.waits = false;
	repeats(id, URN_CM_REQ, URN_CM_EVENT_UNREACHABLE, URN_CM_IDLE);
	said(URN_CM_REJ);
	assert_int_equal(counter(URN_C_CM_RETRANSMITS), 3);
}

/* Thousands of timers: each runs out at its time, in order. */
static void
test_many(void **state)
{
	enum { MANY = 5000 };
	static uint32_t id[MANY];
	uint64_t rng = 1;

	(void)state;
	bench_make(MANY, 0);
	for (unsigned int i = 0; i < MANY; i++) {
		struct urn_abi_cm_connect p = a_connect();

		rng = rng * 6364136223846793005u + 1442695040888963407u;
		p.timeout = (uint8_t)(8 + (rng >> 33) % 12);
		p.max_retries = (uint8_t)((rng >> 48) % 5);
		b.now += (rng >> 50) % 1000;
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id[i]), 0);
		if (i % 3 == 2) {
			assert_int_equal(urn_cm_release(b.cm, &b.o, id[i - 1], b.now), 0);
			id[i - 1] = 0;
		}
	}
	assert_true(test_cm_sound(b.cm));
	while (urn_cm_due(b.cm) != UINT64_MAX) {
		if (urn_cm_due(b.cm) > b.now)
			b.now = urn_cm_due(b.cm);
		assert_in_range(urn_cm_tick(b.cm, b.now), 1, URN_CM_TICK);
	}
	assert_true(test_cm_sound(b.cm));
	assert_int_equal(b.told, test_cm_count(b.cm));
	assert_int_equal(b.told, MANY - MANY / 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_unanswered),
		T(test_late_answer),
		T(test_patience),
		T(test_slow_program),
		T(test_clamped),
		T(test_timewait),
		T(test_deaf),
		T(test_dumb),
		T(test_no_mac),
		T(test_many),
		T(test_ready_after_patience),
		T(test_refused_after_patience),
		T(test_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
