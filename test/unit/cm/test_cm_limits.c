/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management: messages that name the wrong connection, refused requests, peers
 * that forget, owners and their limits.
 */
#include "cm_bench.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* An id tells nothing of the next one of its place: the step from one to the next is never the same
 * twice. */
static void
test_drawn(void **state)
{
	uint32_t last = 0, step = 0;

	(void)state;
	bench_make(1, 0); /* all ids have one place */
	for (unsigned int i = 0; i < 50; i++) {
		uint32_t id = to_listen(0);

		assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
		assert_true(i < 2 || id - last != step);
		step = id - last;
		last = id;
	}
}

/* A peer rejects by its own id only: it gave up before it heard of ours. */
static void
test_rejected_by_own_id(void **state)
{
	uint32_t id = to_req_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_REJ, 0);

	(void)state;
	m.reason = URN_CM_REJ_CONSUMER;
	expect_in(&m, CM_UNKNOWN);
	m.reason = URN_CM_REJ_TIMEOUT;
	expect_in(&m, CM_RX);
	assert_int_equal(told(URN_CM_EVENT_REJECTED).id, id);
}

/* Our REJ when we give up has the field by which the peer finds the connection: our GUID. */
static void
test_timeout_guid(void **state)
{
	static const uint8_t guid[8] = {0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
	uint32_t id = to_req_sent();
	struct urn_cm_msg m;

	(void)state;
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	m = said(URN_CM_REJ);
	assert_int_equal(m.local_id, id);
	assert_int_equal(m.remote_id, 0);
	assert_int_equal(m.info_len, 8);
	assert_memory_equal(m.info, guid, 8);
}

/* Messages that are not from this peer, or not of this connection. */
static void
test_wrong_names(void **state)
{
	uint32_t id = to_active();
	struct urn_cm_msg m = from_peer(URN_CM_DREQ, id);
	uint8_t mad[URN_MAD_BYTES], other[16];

	(void)state;
	memcpy(other, b.peer, 16);
	other[15] ^= 1;
	urn_cm_write(mad, &m);
	memcpy(b.peer, other, 16); /* so that the bench takes the answer */
	assert_int_equal(urn_cm_input(b.cm, other, b.us, 1, mad, b.now), URN_C_CM_UNKNOWN);
	said(URN_CM_DREP);
	expect_state(id, ESTABLISHED);
	b.peer[15] ^= 1;
	m.local_id++;
	expect_in(&m, CM_UNKNOWN);
	said(URN_CM_DREP);
	m = from_peer(URN_CM_DREQ, id);
	m.qpn++;
	expect_in(&m, DROP_CM_FIELD);
	m = from_peer(URN_CM_DREQ, id + 64); /* the name of the place's former connection */
	expect_in(&m, CM_UNKNOWN);
	said(URN_CM_DREP);
	m = from_peer(URN_CM_SIDR_REP, id);
	expect_in(&m, CM_UNKNOWN);
	expect_state(id, ESTABLISHED);
	/* A listener's id names no connection. */
	m = from_peer(URN_CM_RTU, to_listen(0));
	expect_in(&m, CM_UNKNOWN);
	m = from_peer(URN_CM_DREQ, id);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &(struct urn_abi_cm_data){0}, b.now), 0);
	said(URN_CM_DREQ);
	m.qpn++;
	expect_in(&m, DROP_CM_FIELD);
	expect_state(id, DREQ_SENT);
	quiet();
}

/* Requests that are refused, and the reasons. */
static void
test_refusals(void **state)
{
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0), r;

	(void)state;
	expect_in(&m, CM_NO_SERVICE);
	r = said(URN_CM_REJ);
	assert_int_equal(r.reason, URN_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(r.remote_id, PEER_ID);
	assert_int_equal(r.tid, 0xfeed);
	assert_false(b.said_waits);
	m = from_peer(URN_CM_SIDR_REQ, 0);
	expect_in(&m, CM_NO_SERVICE);
	r = said(URN_CM_SIDR_REP);
	assert_int_equal(r.local_id, PEER_ID);
	assert_int_equal(r.status, URN_CM_SIDR_UNSUPPORTED);
	to_listen(0);
	for (uint8_t service = 1; service < 4; service++) {
		m = from_peer(URN_CM_REQ, 0);
		m.service = service;
		expect_in(&m, CM_UNSUPPORTED);
		assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_TRANSPORT);
	}
	m = from_peer(URN_CM_REQ, 0);
	m.extended = 1;
	expect_in(&m, CM_UNSUPPORTED);
	said(URN_CM_REJ);
	m = from_peer(URN_CM_REQ, 0);
	m.mtu = 6;
	expect_in(&m, CM_UNSUPPORTED);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_INVALID_MTU);
	m.mtu = 0;
	expect_in(&m, CM_UNSUPPORTED);
	said(URN_CM_REJ);
	assert_int_equal(test_cm_count(b.cm), 1);
	quiet();
}

/* Requests beyond the backlog wait at the peer; each way out of the backlog makes room. */
static void
test_backlog(void **state)
{
	static const struct urn_abi_cm_reject rej = {.reason = 28};
	struct urn_abi_cm_accept a = an_accept();
	uint32_t id[2], l = to_listen(2);

	(void)state;
	for (unsigned int way = 0; way < 4; way++) {
		struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

		for (unsigned int i = 0; i < 2; i++) {
			m.local_id = 100 * (way + 1) + i;
			m.qpn = 1000 * (way + 1) + i;
			expect_in(&m, CM_RX);
			id[i] = told(URN_CM_EVENT_REQUEST).id;
		}
		m.local_id++;
		m.qpn++;
		expect_in(&m, DROP_CM_BACKLOG);
		m.attr = URN_CM_SIDR_REQ;
		expect_in(&m, DROP_CM_BACKLOG);
		quiet();
		for (unsigned int i = 0; i < 2; i++) {
			if (way == 0)
				assert_int_equal(urn_cm_accept(b.cm, &b.o, id[i], &a, b.now), 0);
			if (way == 1)
				assert_int_equal(urn_cm_reject(b.cm, &b.o, id[i], &rej, b.now), 0);
			if (way == 2)
				assert_int_equal(urn_cm_release(b.cm, &b.o, id[i], b.now), 0);
			if (way == 3) {
				m = from_peer(URN_CM_REJ, id[i]);
				m.local_id = 400 + i;
				expect_in(&m, CM_RX);
				told(URN_CM_EVENT_REJECTED);
			}
		}
		b.sent = 0;
	}
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
}

/* A listener goes; the owner keeps the listener's requests. */
static void
test_unlisten(void **state)
{
	uint32_t id = to_req_rcvd(), l = b.ev.listen_id;
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .channel_fd = 0x5a};
	struct urn_abi_cm_accept a = an_accept();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);

	(void)state;
	assert_int_equal(urn_cm_listen(b.cm, &b.o, &p, &l), EADDRINUSE);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	m.local_id++;
	m.qpn++;
	/* The request waits, in case that the program listens anew. */
	expect_in(&m, CM_RX);
	quiet();
	m.attr = URN_CM_REJ;
	m.reason = URN_CM_REJ_TIMEOUT;
	expect_in(&m, CM_RX);
	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &a, b.now), 0);
	said(URN_CM_REP);
	l = to_listen(0);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
}

/* The owner's quota, and the end of the table. */
static void
test_room(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
	uint32_t id, first = 0;

	(void)state;
	bench_make(64, 3);
	to_listen(0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), EDQUOT);
	b.sent = 0;
	expect_in(&m, CM_NO_ROOM);
	assert_int_equal(said(URN_CM_REJ).reason, URN_CM_REJ_NO_RESOURCES);
	m.attr = URN_CM_SIDR_REQ;
	expect_in(&m, CM_NO_ROOM);
	assert_int_equal(said(URN_CM_SIDR_REP).status, URN_CM_SIDR_REJECT);

	bench_make(4, 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
		first = first ? first : id;
	}
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), ENOSPC);
	b.sent = 0;
	m.attr = URN_CM_REQ;
	/* An id that only waits for late messages makes room. */
	assert_int_equal(urn_cm_release(b.cm, &b.o, first, b.now), 0);
	assert_int_equal(test_cm_count(b.cm), 4);
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	assert_int_not_equal(id, first);
	expect_state(first, IDLE);
	assert_int_equal(test_cm_count(b.cm), 4);
}

/* More ids than there can be. */
static void
test_too_many(void **state)
{
	struct urn_cm_config cfg = {.max_ids = URN_CM_IDS_MAX + 1};

	(void)state;
	assert_null(urn_cm_create(&cfg));
}

/* A peer's connections and look-ups have separate numbers. */
static void
test_same_number(void **state)
{
	uint32_t id = to_req_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_SIDR_REQ, 0);

	(void)state;
	expect_in(&m, CM_RX);
	assert_int_not_equal(told(URN_CM_EVENT_SIDR_REQUEST).id, id);
	expect_state(id, REQ_RCVD);
	expect_in(&m, CM_DUPLICATE);
	quiet();
}

/* A DREP that was lost is repeated with its private data. */
static void
test_drep_again(void **state)
{
	struct urn_abi_cm_data p = {.data_len = 224};
	uint32_t id = to_dreq_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_DREQ, id);

	(void)state;
	fill_data(p.data, 224, 5);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_DREP);
	/* The DREP is repeated as often as the peer asks, and as late as possible. */
	for (int i = 0; i < 3; i++) {
		pass(i ? 0 : 4096ull << 14);
		expect_in(&m, CM_DUPLICATE);
		expect_data(said(URN_CM_DREP).data, 224, 5);
		assert_int_equal(b.said.tid, 0xfeed);
	}
}

/* A peer that asks again may miss that answer, too: the answer is kept for the next time, not for ever. */
static void
test_drep_kept(void **state)
{
	struct urn_abi_cm_data p = {.data_len = 224};
	uint32_t id = to_dreq_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_DREQ, id);
	uint64_t wait;

	(void)state;
	fill_data(p.data, 224, 5);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_DREP);
	wait = urn_cm_due(b.cm) - b.now;
	/* The REQ allowed 3 repeats: one more adds nothing. */
	for (unsigned int asked = 0; asked < 4; asked++) {
		pass(wait - 1);
		quiet();
		expect_in(&m, CM_DUPLICATE);
		expect_data(said(URN_CM_DREP).data, 224, 5);
	}
	pass(1);
	told(URN_CM_EVENT_TIMEWAIT);
	/* A DREQ now is answered without private data. */
	expect_in(&m, CM_UNKNOWN);
	expect_padded(said(URN_CM_DREP).data, 224, 0, 0);
}

/* Two owners: neither can touch the other's ids. */
static void
test_owners(void **state)
{
	struct urn_cm_owner other;
	uint32_t id = to_active();
	struct urn_abi_cm_data p = {0};

	(void)state;
	urn_cm_owner_init(&other, 0, NULL);
	assert_int_equal(urn_cm_disconnect(b.cm, &other, id, &p, b.now), ENOENT);
	assert_int_equal(urn_cm_release(b.cm, &other, id, b.now), ENOENT);
	while (urn_cm_owner_goes(b.cm, &other, b.now))
		;
	expect_state(id, ESTABLISHED);
	quiet();
}

/*
 * A program that does not answer the peer's DREQ blocks that queue pair for nobody: the peer may
 * ask for a new connection with it.
 */
static void
test_unanswered_end(void **state)
{
	uint32_t id = to_dreq_rcvd();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
	uint32_t new_id;

	(void)state;
	pass(3600 * SECOND);
	m.local_id = PEER_ID + 1;
	expect_in(&m, CM_RX);
	new_id = told(URN_CM_EVENT_REQUEST).id;
	expect_state(new_id, REQ_RCVD);
	/* The old connection ends as ever: a repeated DREQ finds it; and its owner may agree. */
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_DUPLICATE);
	expect_state(id, DREQ_RCVD);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &(struct urn_abi_cm_data){0}, b.now), 0);
	said(URN_CM_DREP);
	expect_state(id, TIMEWAIT);
	expect_state(new_id, REQ_RCVD);
	assert_int_equal(urn_cm_claimed(b.cm, &b.o, b.peer, PEER_QPN), URN_CM_CLAIM_ASKED);
}

/* A DREQ for a refused connection is answered, and copies of the request still get the refusal. */
static void
test_refusal_kept(void **state)
{
	struct urn_abi_cm_reject p = {.reason = URN_CM_REJ_CONSUMER, .data_len = 148};
	uint32_t id = to_req_rcvd();
	struct urn_cm_msg m;

	(void)state;
	fill_data(p.data, 148, 9);
	assert_int_equal(urn_cm_reject(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_REJ);
	m = from_peer(URN_CM_DREQ, id);
	expect_in(&m, CM_DUPLICATE);
	said(URN_CM_DREP);
	m = from_peer(URN_CM_REQ, 0);
	expect_in(&m, CM_DUPLICATE);
	expect_data(said(URN_CM_REJ).data, 148, 9);
}

/* The channels that an owner's ids use, as the ids come and go. */
static void
test_channels(void **state)
{
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_owner other;
	uint32_t id[40];

	(void)state;
	urn_cm_owner_init(&other, 0, NULL);
	assert_false(urn_cm_uses(b.cm, &b.o, 0x5a));
	for (int32_t i = 0; i < 40; i++) {
		p.channel_fd = 100 + i / 2;
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id[i]), 0);
		assert_true(urn_cm_uses(b.cm, &b.o, p.channel_fd));
		assert_false(urn_cm_uses(b.cm, &b.o, p.channel_fd + 1));
		assert_false(urn_cm_uses(b.cm, &other, p.channel_fd));
	}
	for (int32_t i = 0; i < 40; i++) {
		assert_int_equal(urn_cm_release(b.cm, &b.o, id[i], b.now), 0);
		assert_int_equal(urn_cm_uses(b.cm, &b.o, 100 + i / 2), i % 2 == 0);
	}
	/* Another owner, with the same descriptor; a number that was used before serves again. */
	p.channel_fd = 100;
	assert_int_equal(urn_cm_connect(b.cm, &other, &p, b.us, b.now, &id[0]), 0);
	assert_true(urn_cm_uses(b.cm, &other, 100));
	assert_false(urn_cm_uses(b.cm, &b.o, 100));
	while (urn_cm_owner_goes(b.cm, &other, b.now))
		;
	assert_false(urn_cm_uses(b.cm, &other, 100));
	b.sent = 0;
}

/* An owner with many ids is released in slices; meanwhile no events come, and no request is let in. */
static void
test_goes_by_slices(void **state)
{
	enum { MANY = 3 * URN_CM_SLICE };
	struct urn_abi_cm_connect p = a_connect();
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0), r;
	uint32_t id, last = 0;

	(void)state;
	bench_make(MANY + 8, 0);
	for (unsigned int i = 0; i < MANY - 1; i++)
		assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &last), 0);
	b.sent = 0;
	to_listen(0);
	urn_cm_owner_deaf(&b.o);
	assert_int_equal(b.o.ids, MANY);
	expect_in(&m, CM_NO_SERVICE);
	said(URN_CM_REJ);
	m.attr = URN_CM_SIDR_REQ;
	expect_in(&m, CM_NO_SERVICE);
	said(URN_CM_SIDR_REP);
	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), EDQUOT);
	assert_true(urn_cm_owner_goes(b.cm, &b.o, b.now));
	assert_int_equal(b.o.ids, MANY - URN_CM_SLICE);
	b.sent = 0;
	r = from_peer(URN_CM_REP, last);
	expect_in(&r, CM_RX);
	quiet();
	assert_true(urn_cm_owner_goes(b.cm, &b.o, b.now));
	assert_false(urn_cm_owner_goes(b.cm, &b.o, b.now));
	assert_int_equal(b.o.ids, 0);
	assert_int_equal(b.told, 0);
}

/* A listener that takes no more requests leaves its service to another; earlier requests stay as they were. */
static void
test_closed(void **state)
{
	uint32_t id = to_req_rcvd(), l = b.ev.listen_id, other;
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .channel_fd = 0x5a};

	(void)state;
	urn_cm_unlisten(b.cm, &b.o, id);
	expect_state(id, REQ_RCVD);
	urn_cm_unlisten(b.cm, &b.o, l);
	expect_state(l, IDLE);
	expect_state(id, REQ_RCVD);
	assert_int_equal(urn_cm_listen(b.cm, &b.o, &p, &other), 0);
	assert_int_equal(urn_cm_release(b.cm, &b.o, l, b.now), 0);
	assert_int_equal(urn_cm_release(b.cm, &b.o, id, b.now), 0);
	said(URN_CM_REJ);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_rejected_by_own_id), T(test_drawn),	    T(test_timeout_guid),
		T(test_wrong_names),	    T(test_refusals),	    T(test_backlog),
		T(test_unlisten),	    T(test_room),	    T(test_too_many),
		T(test_unanswered_end),	    T(test_owners),	    T(test_same_number),
		T(test_drep_again),	    T(test_drep_kept),	    T(test_refusal_kept),
		T(test_channels),	    T(test_goes_by_slices), T(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
