/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: each state with each message, and with each call of an owner. */
#include "cm_bench.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* MRA_REQ_RCVD and the like: one step further than another state. */
static uint32_t
step(uint32_t id, enum urn_cm_attr attr, uint8_t about)
{
	struct urn_cm_msg m = from_peer(attr, id);

	m.about = about;
	assert_in_range(input(&m), URN_C_CM_RX, URN_C_CM_DUPLICATE);
	b.sent = b.told = 0;
	return id;
}

static uint32_t
to_mra_req_rcvd(void)
{
	return step(to_req_sent(), URN_CM_MRA, URN_CM_ABOUT_REQ);
}

static uint32_t
to_mra_rep_rcvd(void)
{
	return step(to_rep_sent(), URN_CM_MRA, URN_CM_ABOUT_REP);
}

static uint32_t
to_mra_req_sent(void)
{
	return step(to_req_rcvd(), URN_CM_REQ, 0);
}

static uint32_t
to_mra_rep_sent(void)
{
	return step(to_rep_rcvd(), URN_CM_REP, 0);
}

static uint32_t
to_idle(void)
{
	return step(to_req_sent(), URN_CM_REJ, 0);
}

/* A request taken back by the peer, after our reply. */
static uint32_t
to_taken_back(void)
{
	return step(to_rep_sent(), URN_CM_REJ, 0);
}

/* A request refused by us. */
static uint32_t
to_refused(void)
{
	static const struct urn_abi_cm_reject p = {.reason = URN_CM_REJ_CONSUMER};
	uint32_t id = to_req_rcvd();

	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_REJ);
	return id;
}

static uint32_t
to_sidr_answered(void)
{
	struct urn_abi_cm_accept p = {.qpn = 7};
	uint32_t id = to_sidr_req_rcvd();

	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_SIDR_REP);
	return id;
}

/* The way to each state. */
static uint32_t (*const to[])(void) = {
	to_req_sent,  to_mra_req_rcvd, to_req_rcvd,	 to_mra_req_sent,  to_rep_sent,
	to_mra_rep_rcvd, to_rep_rcvd,  to_mra_rep_sent,	 to_active,	   to_passive,
	to_dreq_sent, to_dreq_rcvd,    to_timewait,	 to_refused,	   to_sidr_req_sent,
	to_sidr_req_rcvd, to_sidr_answered, to_idle,  to_taken_back,
};

enum { TO = sizeof(to) / sizeof(to[0]) };

enum { NONE = 0 };

struct row {
	uint32_t (*from)(void);
	enum urn_cm_attr attr;
	enum urn_counter counts;
	enum urn_cm_state to;
	int says;                /* enum urn_cm_attr, or NONE */
	int tells;               /* enum urn_cm_event_type, or NONE */
};

#define R(from, attr, counts, to, says, tells)                                                 \
	{to_##from, URN_CM_##attr, URN_C_##counts, URN_CM_##to, says, URN_CM_EVENT_##tells}
#define SAY(a) URN_CM_##a

/* All messages that are taken; any other is DROP_CM_STATE and changes nothing. */
static const struct row rows[] = {
	R(req_sent, REP, CM_RX, REP_RCVD, NONE, REPLY),
	R(req_sent, MRA, CM_RX, MRA_REQ_RCVD, NONE, NONE),
	R(req_sent, REJ, CM_RX, IDLE, NONE, REJECTED),
	R(mra_req_rcvd, REP, CM_RX, REP_RCVD, NONE, REPLY),
	R(mra_req_rcvd, MRA, CM_RX, MRA_REQ_RCVD, NONE, NONE),
	R(mra_req_rcvd, REJ, CM_RX, IDLE, NONE, REJECTED),
	R(req_rcvd, REQ, CM_DUPLICATE, MRA_REQ_SENT, SAY(MRA), NONE),
	R(req_rcvd, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(mra_req_sent, REQ, CM_DUPLICATE, MRA_REQ_SENT, SAY(MRA), NONE),
	R(mra_req_sent, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(rep_sent, REQ, CM_DUPLICATE, REP_SENT, SAY(REP), NONE),
	R(rep_sent, RTU, CM_RX, ESTABLISHED, NONE, ESTABLISHED),
	R(rep_sent, MRA, CM_RX, MRA_REP_RCVD, NONE, NONE),
	R(rep_sent, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(rep_sent, DREQ, CM_RX, DREQ_RCVD, NONE, DISCONNECT),
	R(mra_rep_rcvd, REQ, CM_DUPLICATE, MRA_REP_RCVD, SAY(REP), NONE),
	R(mra_rep_rcvd, RTU, CM_RX, ESTABLISHED, NONE, ESTABLISHED),
	R(mra_rep_rcvd, MRA, CM_RX, MRA_REP_RCVD, NONE, NONE),
	R(mra_rep_rcvd, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(mra_rep_rcvd, DREQ, CM_RX, DREQ_RCVD, NONE, DISCONNECT),
	R(rep_rcvd, REP, CM_DUPLICATE, MRA_REP_SENT, SAY(MRA), NONE),
	R(rep_rcvd, REJ, CM_RX, IDLE, NONE, REJECTED),
	R(rep_rcvd, MRA, CM_DUPLICATE, REP_RCVD, NONE, NONE),
	R(mra_rep_sent, REP, CM_DUPLICATE, MRA_REP_SENT, SAY(MRA), NONE),
	R(mra_rep_sent, REJ, CM_RX, IDLE, NONE, REJECTED),
	R(mra_rep_sent, MRA, CM_DUPLICATE, MRA_REP_SENT, NONE, NONE),
	R(active, REP, CM_DUPLICATE, ESTABLISHED, SAY(RTU), NONE),
	R(active, RTU, CM_DUPLICATE, ESTABLISHED, NONE, NONE),
	R(active, MRA, CM_DUPLICATE, ESTABLISHED, NONE, NONE),
	R(active, DREQ, CM_RX, DREQ_RCVD, NONE, DISCONNECT),
	R(active, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(active, LAP, CM_UNSUPPORTED, ESTABLISHED, SAY(APR), NONE),
	R(passive, REQ, CM_DUPLICATE, ESTABLISHED, NONE, NONE),
	R(passive, RTU, CM_DUPLICATE, ESTABLISHED, NONE, NONE),
	R(passive, MRA, CM_DUPLICATE, ESTABLISHED, NONE, NONE),
	R(passive, DREQ, CM_RX, DREQ_RCVD, NONE, DISCONNECT),
	R(passive, REJ, CM_RX, TIMEWAIT, NONE, REJECTED),
	R(passive, LAP, CM_UNSUPPORTED, ESTABLISHED, SAY(APR), NONE),
	R(dreq_sent, DREP, CM_RX, TIMEWAIT, NONE, DISCONNECTED),
	R(dreq_sent, REJ, CM_RX, TIMEWAIT, NONE, DISCONNECTED),
	R(dreq_sent, DREQ, CM_RX, TIMEWAIT, SAY(DREP), DISCONNECTED),
	R(dreq_sent, REP, CM_DUPLICATE, DREQ_SENT, NONE, NONE),
	R(dreq_sent, RTU, CM_DUPLICATE, DREQ_SENT, NONE, NONE),
	R(dreq_sent, MRA, CM_DUPLICATE, DREQ_SENT, NONE, NONE),
	R(dreq_sent, LAP, CM_DUPLICATE, DREQ_SENT, NONE, NONE),
	R(dreq_sent, APR, CM_DUPLICATE, DREQ_SENT, NONE, NONE),
	R(dreq_rcvd, DREQ, CM_DUPLICATE, DREQ_RCVD, NONE, NONE),
	R(timewait, DREQ, CM_DUPLICATE, TIMEWAIT, SAY(DREP), NONE),
	R(timewait, REQ, CM_STALE, TIMEWAIT, SAY(REJ), NONE),
	R(timewait, REP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, RTU, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, MRA, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, REJ, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, DREP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, LAP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(timewait, APR, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, REQ, CM_DUPLICATE, TIMEWAIT, SAY(REJ), NONE),
	R(refused, REP, CM_DUPLICATE, TIMEWAIT, SAY(REJ), NONE),
	R(refused, DREQ, CM_DUPLICATE, TIMEWAIT, SAY(DREP), NONE),
	R(refused, RTU, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, MRA, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, REJ, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, DREP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, LAP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(refused, APR, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	/* The peer took its request back: copies of it are no new requests. */
	R(taken_back, REQ, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, REP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, DREQ, CM_DUPLICATE, TIMEWAIT, SAY(DREP), NONE),
	R(taken_back, RTU, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, MRA, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, REJ, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, DREP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, LAP, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(taken_back, APR, CM_DUPLICATE, TIMEWAIT, NONE, NONE),
	R(sidr_req_sent, SIDR_REP, CM_RX, IDLE, NONE, SIDR_REPLY),
	R(sidr_req_rcvd, SIDR_REQ, CM_DUPLICATE, SIDR_REQ_RCVD, NONE, NONE),
	R(sidr_answered, SIDR_REQ, CM_DUPLICATE, TIMEWAIT, SAY(SIDR_REP), NONE),
	/* We have no id in a look-up by the peer. */
	R(sidr_req_rcvd, SIDR_REP, CM_UNKNOWN, SIDR_REQ_RCVD, NONE, NONE),
	R(sidr_answered, SIDR_REP, CM_UNKNOWN, TIMEWAIT, NONE, NONE),
	/* The connection is forgotten. */
	R(idle, REP, CM_UNKNOWN, IDLE, SAY(REJ), NONE),
	R(idle, DREQ, CM_UNKNOWN, IDLE, SAY(DREP), NONE),
	R(idle, MRA, CM_UNKNOWN, IDLE, NONE, NONE),
	R(idle, REJ, CM_UNKNOWN, IDLE, NONE, NONE),
	R(idle, RTU, CM_UNKNOWN, IDLE, NONE, NONE),
	R(idle, DREP, CM_UNKNOWN, IDLE, NONE, NONE),
	R(idle, LAP, CM_UNKNOWN, IDLE, NONE, NONE),
	R(idle, APR, CM_UNKNOWN, IDLE, NONE, NONE),
};

static const struct row *
row_of(uint32_t (*from)(void), enum urn_cm_attr attr)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].from == from && rows[i].attr == attr)
			return &rows[i];
	return NULL;
}

/* Look-ups and connections are separate; an unknown request is a new one. */
static bool
meets(uint32_t (*from)(void), enum urn_cm_attr attr)
{
	bool sidr = from == to_sidr_req_sent || from == to_sidr_req_rcvd || from == to_sidr_answered;
	bool asked = from == to_req_rcvd || from == to_mra_req_sent || from == to_rep_sent ||
		     from == to_mra_rep_rcvd || from == to_passive || from == to_dreq_rcvd ||
		     from == to_timewait || from == to_refused || from == to_sidr_req_rcvd ||
		     from == to_sidr_answered;

	if (sidr != (attr == URN_CM_SIDR_REQ || attr == URN_CM_SIDR_REP))
		return false;
	return asked || (attr != URN_CM_REQ && attr != URN_CM_SIDR_REQ);
}

/* The message comes, once and several times more. */
static void
try_row(uint32_t (*from)(void), enum urn_cm_attr attr)
{
	const struct row *r = row_of(from, attr);
	enum urn_cm_state before;
	struct urn_cm_msg m;
	uint32_t id;

	bench_make(64, 0);
	id = from();
	before = test_cm_state(b.cm, id);
	m = from_peer(attr, id);
	if (attr == URN_CM_MRA)
		m.about = from == to_req_sent || from == to_mra_req_rcvd ? URN_CM_ABOUT_REQ
									 : URN_CM_ABOUT_REP;
	assert_int_equal(input(&m), r ? r->counts : URN_C_DROP_CM_STATE);
	assert_string_equal(test_cm_state_name(test_cm_state(b.cm, id)),
			    test_cm_state_name(r ? r->to : before));
	if (r && r->says)
		said((enum urn_cm_attr)r->says);
	if (r && r->tells)
		assert_int_equal(told((enum urn_cm_event_type)r->tells).id, id);
	quiet();
	if (test_cm_state(b.cm, id) != URN_CM_IDLE)
		return;
	/* A connection that is over stays so: no message goes out again. */
	pass(3600 * SECOND);
	quiet();
}

static void
test_messages(void **state)
{
	unsigned int met = 0;

	(void)state;
	for (unsigned int i = 0; i < TO; i++)
		for (unsigned int attr = URN_CM_REQ; attr < URN_CM_ATTR_END; attr++)
			if (meets(to[i], (enum urn_cm_attr)attr)) {
				try_row(to[i], (enum urn_cm_attr)attr);
				met++;
			}
	assert_true(met > sizeof(rows) / sizeof(rows[0]));
}

/* An event without room changes nothing; the message takes effect when it comes again. */
static void
test_deaf(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum urn_cm_state before;
		struct urn_cm_msg m;
		uint32_t id;

		if (!rows[i].tells)
			continue;
		bench_make(64, 0);
		id = rows[i].from();
		before = test_cm_state(b.cm, id);
		m = from_peer(rows[i].attr, id);
		b.deaf = true;
		expect_in(&m, DROP_CM_EVENT);
		expect_in(&m, DROP_CM_EVENT);
		assert_int_equal(test_cm_state(b.cm, id), before);
		quiet();
		b.deaf = false;
		expect_in(&m, CM_RX);
		assert_int_equal(test_cm_state(b.cm, id), rows[i].to);
		assert_int_equal(b.told, 1);
	}
	/* A new request. */
	for (int sidr = 0; sidr < 2; sidr++) {
		struct urn_cm_msg m = from_peer(sidr ? URN_CM_SIDR_REQ : URN_CM_REQ, 0);

		bench_make(64, 0);
		to_listen(1);
		b.deaf = true;
		expect_in(&m, DROP_CM_EVENT);
		assert_int_equal(test_cm_count(b.cm), 1);
		b.deaf = false;
		expect_in(&m, CM_RX);
	}
}

/* The calls allowed to owners in each state; others fail with ENOTCONN and change nothing. */
enum what { ACCEPT, REJECT, ESTABLISH, DISCONNECT, WHATS };

static int
act(enum what what, uint32_t id)
{
	struct urn_abi_cm_accept a = an_accept();
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER};
	struct urn_abi_cm_data d = {.data_len = 3};

	switch (what) {
	case ACCEPT:
		return urn_cm_accept(b.cm, &b.o, id, &a, b.now);
	case REJECT:
		return urn_cm_reject(b.cm, &b.o, id, &r, b.now);
	case ESTABLISH:
		return urn_cm_establish(b.cm, &b.o, id, &d, b.now);
	default:
		return urn_cm_disconnect(b.cm, &b.o, id, &d, b.now);
	}
}

static void
test_acts(void **state)
{
	static const struct {
		uint32_t (*from)(void);
		enum what what;
		enum urn_cm_state to;
		int says;
	} can[] = {
		{to_req_rcvd, ACCEPT, URN_CM_REP_SENT, URN_CM_REP},
		{to_mra_req_sent, ACCEPT, URN_CM_REP_SENT, URN_CM_REP},
		{to_sidr_req_rcvd, ACCEPT, URN_CM_TIMEWAIT, URN_CM_SIDR_REP},
		{to_req_rcvd, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_mra_req_sent, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_rep_sent, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_mra_rep_rcvd, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_rep_rcvd, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_mra_rep_sent, REJECT, URN_CM_TIMEWAIT, URN_CM_REJ},
		{to_rep_rcvd, ESTABLISH, URN_CM_ESTABLISHED, URN_CM_RTU},
		{to_mra_rep_sent, ESTABLISH, URN_CM_ESTABLISHED, URN_CM_RTU},
		{to_rep_sent, ESTABLISH, URN_CM_ESTABLISHED, NONE},
		{to_mra_rep_rcvd, ESTABLISH, URN_CM_ESTABLISHED, NONE},
		{to_active, DISCONNECT, URN_CM_DREQ_SENT, URN_CM_DREQ},
		{to_passive, DISCONNECT, URN_CM_DREQ_SENT, URN_CM_DREQ},
		{to_dreq_rcvd, DISCONNECT, URN_CM_TIMEWAIT, URN_CM_DREP},
	};
	unsigned int done = 0;

	(void)state;
	for (unsigned int i = 0; i < TO; i++) {
		for (unsigned int w = 0; w < WHATS; w++) {
			enum urn_cm_state before;
			unsigned int k = 0;
			uint32_t id;

			bench_make(64, 0);
			id = to[i]();
			before = test_cm_state(b.cm, id);
			while (k < sizeof(can) / sizeof(can[0]) && (can[k].from != to[i] || can[k].what != w))
				k++;
			if (k == sizeof(can) / sizeof(can[0])) {
				assert_int_equal(act((enum what)w, id), ENOTCONN);
				assert_int_equal(test_cm_state(b.cm, id), before);
			} else {
				assert_int_equal(act((enum what)w, id), 0);
				assert_int_equal(test_cm_state(b.cm, id), can[k].to);
				if (can[k].says)
					said((enum urn_cm_attr)can[k].says);
				done++;
			}
			quiet();
			/* An id that does not exist, and another owner's. */
			assert_int_equal(act((enum what)w, id + 64), ENOENT);
			assert_int_equal(act((enum what)w, 0), ENOENT);
		}
	}
	assert_int_equal(done, sizeof(can) / sizeof(can[0]));
}

/* The owner releases an id: the messages to the peer, repeated if need be, and the end of the id. */
static void
test_release(void **state)
{
	static const struct {
		uint32_t (*from)(void);
		int says, reason;
	} tells[] = {
		{to_req_sent, URN_CM_REJ, URN_CM_REJ_TIMEOUT},
		{to_mra_req_rcvd, URN_CM_REJ, URN_CM_REJ_TIMEOUT},
		{to_req_rcvd, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_mra_req_sent, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_rep_sent, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_mra_rep_rcvd, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_rep_rcvd, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_mra_rep_sent, URN_CM_REJ, URN_CM_REJ_CONSUMER},
		{to_active, URN_CM_DREQ, 0},
		{to_passive, URN_CM_DREQ, 0},
		{to_dreq_rcvd, URN_CM_DREP, 0},
		{to_sidr_req_rcvd, URN_CM_SIDR_REP, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < TO; i++) {
		unsigned int k = 0;
		uint32_t id;

		bench_make(64, 0);
		id = to[i]();
		assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
		assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), ENOENT);
		assert_true(test_cm_sound(b.cm));
		while (k < sizeof(tells) / sizeof(tells[0]) && tells[k].from != to[i])
			k++;
		if (k < sizeof(tells) / sizeof(tells[0]))
			assert_int_equal(said((enum urn_cm_attr)tells[k].says).reason, tells[k].reason);
		quiet();
		pass(3600 * SECOND);
		assert_int_equal(b.told, 0);
		assert_int_equal(test_cm_count(b.cm), b.o.ids); /* a listener */
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_messages), T(test_deaf), T(test_acts), T(test_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
