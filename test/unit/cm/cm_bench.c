/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct cm_bench b;

static enum urn_cm_sending
take_message(void *ctx, uint32_t id, const uint8_t own[16], const uint8_t peer[16],
	     const uint8_t *mad, bool wait)
{
	assert_ptr_equal(ctx, &b);
	if (b.dumb)
		return URN_CM_NO_ROOM;
	if (b.waits && wait)
		return URN_CM_WAITS;
	assert_memory_equal(own, b.us, 16);
	if (!b.any_peer)
		assert_memory_equal(peer, b.peer, 16);
	assert_int_equal(urn_cm_read(mad, 1, &b.said), URN_C_CM_RX);
	b.said_waits = wait;
	b.said_id = id;
	b.sent++;
	return URN_CM_SENDS;
}

static bool
take_event(void *ctx, struct urn_cm_owner *o, int32_t channel, const struct urn_abi_cm_event *ev)
{
	assert_ptr_equal(ctx, &b);
	if (!b.any_owner)
		assert_ptr_equal(o, &b.o);
	assert_int_equal(channel, 0x5a);
	if (b.deaf)
		return false;
	b.ev = *ev;
	b.told++;
	return true;
}

/* A connection reported here is reported to anybody who asks later. */
static void
take_stand(void *ctx, const struct urn_cm_owner *o, const uint8_t peer[16], uint32_t qpn)
{
	assert_ptr_equal(ctx, &b);
	if (!b.any_owner)
		assert_ptr_equal(o, &b.o);
	assert_int_equal(urn_cm_claimed(b.cm, o, peer, qpn), URN_CM_CLAIM_OWN);
	b.stood++;
}

static void
make(uint32_t max_ids, uint32_t quota, uint8_t max_mtu)
{
	struct urn_cm_config cfg = {.max_ids = max_ids,
				    .max_mtu = max_mtu,
				    .ca_guid = 0x8182838485868788,
				    .seed = 7,
				    .send = take_message,
				    .event = take_event,
				    .stands = take_stand,
				    .ctx = &b,
				    .stands_ctx = &b};

	urn_cm_destroy(b.cm);
	memset(&b, 0, sizeof(b));
	b.now = START;
	memcpy(b.us, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	memcpy(b.peer, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\2", 16);
	b.cm = urn_cm_create(&cfg);
	assert_non_null(b.cm);
	urn_cm_owner_init(&b.o, quota, &b);
}

void
bench_make(uint32_t max_ids, uint32_t quota)
{
	make(max_ids, quota, 0);
}

void
bench_make_mtu(uint8_t max_mtu)
{
	make(64, 0, max_mtu);
}

int
setup(void **state)
{
	(void)state;
	bench_make(64, 0);
	return 0;
}

int
teardown(void **state)
{
	(void)state;
	assert_true(test_cm_sound(b.cm));
	while (urn_cm_owner_goes(b.cm, &b.o, b.now))
		;
	assert_int_equal(b.o.ids, 0);
	assert_true(test_cm_sound(b.cm));
	/* Connections of no owner end by themselves. */
	pass(3600 * SECOND);
	assert_int_equal(test_cm_count(b.cm), 0);
	assert_true(test_cm_sound(b.cm));
	urn_cm_destroy(b.cm);
	b.cm = NULL;
	return 0;
}

struct urn_cm_msg
from_peer(enum urn_cm_attr attr, uint32_t our_id)
{
	struct urn_cm_msg m = {
		.attr = (uint16_t)attr,
		.tid = 0xfeed,
		.local_id = PEER_ID,
		.remote_id = our_id,
		.service_id = SERVICE,
		.qpn = attr == URN_CM_DREQ ? OUR_QPN : PEER_QPN,
		.psn = 0x55,
		.mtu = 3,
		.max_retries = 3,
		.remote_timeout = 20,
		.local_timeout = 14, /* 67 ms */
		.retry_count = 7,
		.rnr_retry = 6,
		.responder_resources = 4,
		.initiator_depth = 5,
		.service_timeout = 20,
		.path = {{.ack_timeout = 16, .hop_limit = 64}},
	};

	if (attr == URN_CM_SIDR_REP)
		m.local_id = our_id;
	if (attr == URN_CM_REP)
		m.about = URN_CM_ABOUT_REP;
	fill_data(m.data, urn_cm_data_bytes(attr), (uint8_t)attr);
	return m;
}

enum urn_counter
input(const struct urn_cm_msg *m)
{
	uint8_t mad[URN_MAD_BYTES];
	enum urn_counter c;

	urn_cm_write(mad, m);
	c = urn_cm_input(b.cm, b.peer, b.us, 1, mad, b.now);
	assert_true(test_cm_sound(b.cm));
	return c;
}

void
pass(uint64_t ns)
{
	uint64_t end = b.now + ns;

	while (urn_cm_due(b.cm) <= end) {
		b.now = RTE_MAX(b.now, urn_cm_due(b.cm));
		while (urn_cm_tick(b.cm, b.now) == URN_CM_TICK)
			;
		assert_true(test_cm_sound(b.cm));
	}
	b.now = end;
	assert_int_equal(urn_cm_tick(b.cm, b.now), 0);
}

uint64_t
counter(enum urn_counter c)
{
	static struct urn_counters sum;

	memset(&sum, 0, sizeof(sum));
	urn_cm_counters(b.cm, &sum);
	return sum.v[c];
}

void
quiet(void)
{
	assert_int_equal(b.sent, 0);
	assert_int_equal(b.told, 0);
}

struct urn_cm_msg
said(enum urn_cm_attr attr)
{
	assert_int_equal(b.sent, 1);
	b.sent = 0;
	assert_int_equal(b.said.attr, attr);
	return b.said;
}

struct urn_abi_cm_event
told(enum urn_cm_event_type type)
{
	assert_int_equal(b.told, 1);
	b.told = 0;
	assert_int_equal(b.ev.type, type);
	return b.ev;
}

void
fill_data(uint8_t *p, unsigned int n, uint8_t first)
{
	for (unsigned int i = 0; i < n; i++)
		p[i] = (uint8_t)(first + i * 3);
}

void
expect_data(const uint8_t *p, unsigned int n, uint8_t first)
{
	uint8_t want[URN_CM_DATA_MAX];

	fill_data(want, n, first);
	assert_memory_equal(p, want, n);
}

void
expect_padded(const uint8_t *p, unsigned int n, uint8_t first, unsigned int len)
{
	expect_data(p, len, first);
	for (unsigned int i = len; i < n; i++)
		assert_int_equal(p[i], 0);
}

/* ---- ways */

struct urn_abi_cm_connect
a_connect(void)
{
	struct urn_abi_cm_connect p = {
		.service_id = SERVICE,
		.cookie = 0xc0,
		.channel_fd = 0x5a,
		.qpn = OUR_QPN,
		.psn = 0x99,
		.responder_resources = 4,
		.initiator_depth = 5,
		.retry_count = 7,
		.rnr_retry = 6,
		.mtu = 3,
		.timeout = 14, /* 67 ms */
		.max_retries = 3,
		.ack_timeout = 16,
		.data_len = 56,
	};

	memcpy(p.dgid, b.peer, 16);
	fill_data(p.data, p.data_len, 1);
	return p;
}

struct urn_abi_cm_accept
an_accept(void)
{
	struct urn_abi_cm_accept p = {
		.qpn = OUR_QPN,
		.psn = 0x98,
		.responder_resources = 3,
		.initiator_depth = 2,
		.rnr_retry = 5,
		.ack_delay = 9,
		.data_len = 100,
	};

	fill_data(p.data, p.data_len, 2);
	return p;
}

uint32_t
to_listen(uint32_t backlog)
{
	struct urn_abi_cm_listen p = {.service_id = SERVICE, .cookie = 0xc1, .channel_fd = 0x5a, .backlog = backlog};
	uint32_t id = 0;

	assert_int_equal(urn_cm_listen(b.cm, &b.o, &p, &id), 0);
	quiet();
	expect_state(id, LISTEN);
	return id;
}

uint32_t
to_req_sent(void)
{
	struct urn_abi_cm_connect p = a_connect();
	uint32_t id = 0;

	assert_int_equal(urn_cm_connect(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	said(URN_CM_REQ);
	expect_state(id, REQ_SENT);
	return id;
}

uint32_t
to_rep_rcvd(void)
{
	uint32_t id = to_req_sent();
	struct urn_cm_msg m = from_peer(URN_CM_REP, id);

	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_REPLY);
	expect_state(id, REP_RCVD);
	return id;
}

uint32_t
to_active(void)
{
	uint32_t id = to_rep_rcvd();
	struct urn_abi_cm_data p = {0};

	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_RTU);
	expect_state(id, ESTABLISHED);
	return id;
}

uint32_t
to_req_rcvd(void)
{
	struct urn_cm_msg m = from_peer(URN_CM_REQ, 0);
	uint32_t id;

	to_listen(0);
	expect_in(&m, CM_RX);
	id = told(URN_CM_EVENT_REQUEST).id;
	expect_state(id, REQ_RCVD);
	return id;
}

uint32_t
to_rep_sent(void)
{
	uint32_t id = to_req_rcvd();
	struct urn_abi_cm_accept p = an_accept();

	assert_int_equal(urn_cm_accept(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_REP);
	expect_state(id, REP_SENT);
	return id;
}

uint32_t
to_passive(void)
{
	uint32_t id = to_rep_sent();
	struct urn_cm_msg m = from_peer(URN_CM_RTU, id);

	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_ESTABLISHED);
	expect_state(id, ESTABLISHED);
	return id;
}

uint32_t
to_dreq_sent(void)
{
	uint32_t id = to_active();
	struct urn_abi_cm_data p = {.data_len = 7};

	fill_data(p.data, 7, 4);
	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_DREQ);
	expect_state(id, DREQ_SENT);
	return id;
}

uint32_t
to_dreq_rcvd(void)
{
	uint32_t id = to_passive();
	struct urn_cm_msg m = from_peer(URN_CM_DREQ, id);

	expect_in(&m, CM_RX);
	told(URN_CM_EVENT_DISCONNECT);
	expect_state(id, DREQ_RCVD);
	return id;
}

uint32_t
to_timewait(void)
{
	uint32_t id = to_dreq_rcvd();
	struct urn_abi_cm_data p = {0};

	assert_int_equal(urn_cm_disconnect(b.cm, &b.o, id, &p, b.now), 0);
	said(URN_CM_DREP);
	expect_state(id, TIMEWAIT);
	return id;
}

uint32_t
to_sidr_req_sent(void)
{
	struct urn_abi_cm_connect p = a_connect();
	uint32_t id = 0;

	p.data_len = 216;
	fill_data(p.data, 216, 6);
	assert_int_equal(urn_cm_resolve(b.cm, &b.o, &p, b.us, b.now, &id), 0);
	said(URN_CM_SIDR_REQ);
	expect_state(id, SIDR_REQ_SENT);
	return id;
}

uint32_t
to_sidr_req_rcvd(void)
{
	struct urn_cm_msg m = from_peer(URN_CM_SIDR_REQ, 0);
	uint32_t id;

	to_listen(0);
	expect_in(&m, CM_RX);
	id = told(URN_CM_EVENT_SIDR_REQUEST).id;
	expect_state(id, SIDR_REQ_RCVD);
	return id;
}
