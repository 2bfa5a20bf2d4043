/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of connection management, byte by byte as in the tables of IBTA 12.6 and
 * 12.11, and as the Linux kernel sent them.
 */
#include "wire/cm.h"

#include "common/test_pcap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAD = 256, HDR = 24 };

static struct test_pcap golden;

static int
load(void **state)
{
	(void)state;
	return test_pcap_load(&golden, "rxe_golden.pcap");
}

static int
unload(void **state)
{
	(void)state;
	test_pcap_free(&golden);
	return 0;
}

/* MAD of a frame, numbered from 1: behind Ethernet, IPv4, UDP, BTH and DETH. */
static const uint8_t *
golden_mad(unsigned int frame)
{
	assert_int_equal(golden.frame[frame - 1].len, 62 + MAD + 4);
	return golden.frame[frame - 1].data + 62;
}

static void
put(uint8_t *p, unsigned int n, uint64_t v)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

static void
fill(uint8_t *p, unsigned int n, uint8_t first)
{
	for (unsigned int i = 0; i < n; i++)
		p[i] = (uint8_t)(first + i);
}

/* Header and the two ids, at the beginning of most messages. */
static uint8_t *
head(uint8_t *mad, uint16_t attr, uint64_t ids)
{
	memset(mad, 0, MAD);
	put(mad, 4, 0x01070203);
	put(mad + 8, 8, 0x1122334455667788);
	put(mad + 16, 2, attr);
	put(mad + HDR, 8, ids);
	return mad + HDR;
}

static struct urn_cm_msg
msg_of(uint16_t attr)
{
	struct urn_cm_msg m;

	/* Whole structs are compared: no padding may hold anything else. */
	memset(&m, 0, sizeof(m));
	m.attr = attr;
	m.tid = 0x1122334455667788;
	m.local_id = 0xa1a2a3a4;
	if (attr != URN_CM_REQ && attr != URN_CM_SIDR_REQ && attr != URN_CM_SIDR_REP)
		m.remote_id = 0xb1b2b3b4;
	return m;
}

#define IDS 0xa1a2a3a4b1b2b3b4

static void
both_ways(const struct urn_cm_msg *m, const uint8_t *wire)
{
	uint8_t *mad = malloc(MAD);
	struct urn_cm_msg back;

	assert_non_null(mad);
	memset(mad, 0xa5, MAD);
	urn_cm_write(mad, m);
	assert_memory_equal(mad, wire, MAD);
	memset(&back, 0xa5, sizeof(back));
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_CM_RX);
	assert_memory_equal(&back, m, sizeof(back));
	free(mad);
}

/* A path: 44 bytes. */
static void
put_path(uint8_t *b, struct urn_cm_path *p, uint8_t seed)
{
	put(b, 4, 0xfffefffd);
	fill(b + 4, 32, seed);
	put(b + 36, 4, 0xabcdeu << 12 | 0x2a);
	b[40] = 0x71;
	b[41] = 0x3f;
	b[42] = 0x9 << 4 | 1 << 3;
	b[43] = 0x13 << 3;
	p->slid = 0xfffe;
	p->dlid = 0xfffd;
	fill(p->sgid, 16, seed);
	fill(p->dgid, 16, (uint8_t)(seed + 16));
	p->flow_label = 0xabcde;
	p->rate = 0x2a;
	p->traffic_class = 0x71;
	p->hop_limit = 0x3f;
	p->sl = 9;
	p->subnet_local = 1;
	p->ack_timeout = 0x13;
}

/* A REQ with a different value in every field. */
static struct urn_cm_msg
a_req(uint8_t *mad)
{
	struct urn_cm_msg m;
	uint8_t *b = head(mad, 0x10, 0xa1a2a3a400000000);

	memset(&m, 0, sizeof(m));
	m.attr = URN_CM_REQ;
	m.tid = 0x1122334455667788;
	m.local_id = 0xa1a2a3a4;
	put(b + 8, 8, m.service_id = 0x0000000001061c06);
	put(b + 16, 8, m.ca_guid = 0x8182838485868788);
	put(b + 28, 4, m.qkey = 0x91929394);
	put(b + 32, 3, m.qpn = 0x123456);
	b[35] = m.responder_resources = 17;
	b[39] = m.initiator_depth = 18;
	b[43] = 0x15 << 3 | 1 << 1 | 1;
	m.remote_timeout = 0x15;
	m.service = 1;
	m.flow_control = 1;
	put(b + 44, 3, m.psn = 0x654321);
	b[47] = 0x16 << 3 | 5;
	m.local_timeout = 0x16;
	m.retry_count = 5;
	put(b + 48, 2, m.pkey = 0x8001);
	b[50] = 3 << 4 | 1 << 3 | 6;
	m.mtu = 3;
	m.rdc = 1;
	m.rnr_retry = 6;
	b[51] = 14 << 4 | 1 << 3 | 2;
	m.max_retries = 14;
	m.srq = 1;
	m.extended = 2;
	put_path(b + 52, &m.path[0], 0x20);
	put_path(b + 96, &m.path[1], 0x60);
	fill(b + 140, 92, 1);
	fill(m.data, 92, 1);
	return m;
}

static void
test_req(void **state)
{
	uint8_t mad[MAD];
	struct urn_cm_msg m = a_req(mad);

	(void)state;
	both_ways(&m, mad);
}

static void
test_short_ones(void **state)
{
	struct urn_cm_msg m;
	uint8_t mad[MAD], *b;

	(void)state;
	m = msg_of(URN_CM_MRA);
	b = head(mad, 0x11, IDS);
	b[8] = 1 << 6;
	b[9] = 0x17 << 3;
	m.about = URN_CM_ABOUT_REP;
	m.service_timeout = 0x17;
	fill(b + 10, 222, 3);
	fill(m.data, 222, 3);
	both_ways(&m, mad);

	m = msg_of(URN_CM_REJ);
	b = head(mad, 0x12, IDS);
	b[8] = 2 << 6;
	b[9] = 72 << 1;
	put(b + 10, 2, m.reason = URN_CM_REJ_CONSUMER);
	m.about = URN_CM_ABOUT_OTHER;
	m.info_len = 72;
	fill(b + 12, 72, 5);
	fill(m.info, 72, 5);
	fill(b + 84, 148, 7);
	fill(m.data, 148, 7);
	both_ways(&m, mad);

	m = msg_of(URN_CM_RTU);
	b = head(mad, 0x14, IDS);
	fill(b + 8, 224, 9);
	fill(m.data, 224, 9);
	both_ways(&m, mad);

	m = msg_of(URN_CM_DREQ);
	b = head(mad, 0x15, IDS);
	put(b + 8, 3, m.qpn = 0xfedcba);
	fill(b + 12, 220, 11);
	fill(m.data, 220, 11);
	both_ways(&m, mad);

	m = msg_of(URN_CM_DREP);
	b = head(mad, 0x16, IDS);
	fill(b + 8, 224, 13);
	fill(m.data, 224, 13);
	both_ways(&m, mad);
}

static void
test_rep(void **state)
{
	struct urn_cm_msg m = msg_of(URN_CM_REP);
	uint8_t mad[MAD], *b = head(mad, 0x13, IDS);

	(void)state;
	put(b + 8, 4, m.qkey = 0x91929394);
	put(b + 12, 3, m.qpn = 0x123456);
	put(b + 20, 3, m.psn = 0x654321);
	b[24] = m.responder_resources = 17;
	b[25] = m.initiator_depth = 18;
	b[26] = 0x0f << 3 | 2 << 1 | 1;
	m.ack_delay = 0x0f;
	m.failover = 2;
	m.flow_control = 1;
	b[27] = 6 << 5 | 1 << 4;
	m.rnr_retry = 6;
	m.srq = 1;
	put(b + 28, 8, m.ca_guid = 0x8182838485868788);
	fill(b + 36, 196, 15);
	fill(m.data, 196, 15);
	both_ways(&m, mad);
}

static void
test_sidr(void **state)
{
	struct urn_cm_msg m = msg_of(URN_CM_SIDR_REQ);
	uint8_t mad[MAD], *b = head(mad, 0x17, 0xa1a2a3a480010000);

	(void)state;
	m.pkey = 0x8001;
	put(b + 8, 8, m.service_id = 0x0000000001111234);
	fill(b + 16, 216, 17);
	fill(m.data, 216, 17);
	both_ways(&m, mad);

	m = msg_of(URN_CM_SIDR_REP);
	b = head(mad, 0x18, 0xa1a2a3a400000000);
	b[4] = m.status = URN_CM_SIDR_REDIRECT;
	b[5] = m.info_len = 71;
	put(b + 8, 3, m.qpn = 0x123456);
	put(b + 12, 8, m.service_id = 0x0000000001111234);
	put(b + 20, 4, m.qkey = 0x01234567);
	fill(b + 24, 72, 19);
	fill(m.info, 72, 19);
	fill(b + 96, 136, 21);
	fill(m.data, 136, 21);
	both_ways(&m, mad);
}

static void
test_paths(void **state)
{
	struct urn_cm_msg m = msg_of(URN_CM_APR);
	uint8_t mad[MAD], *b = head(mad, 0x1a, IDS);

	(void)state;
	b[9] = m.status = URN_CM_APR_UNSUPPORTED;
	both_ways(&m, mad);
	m = msg_of(URN_CM_LAP);
	head(mad, 0x19, IDS);
	both_ways(&m, mad);
}

/* Room for private data, and times. */
static void
test_table(void **state)
{
	static const unsigned int bytes[] = {92, 222, 148, 196, 224, 220, 224, 216, 136, 0, 0};

	(void)state;
	for (unsigned int i = 0; i < 11; i++)
		assert_int_equal(urn_cm_data_bytes(0x10 + i), bytes[i]);
	assert_int_equal(urn_cm_data_bytes(0x0f), 0);
	assert_int_equal(urn_cm_data_bytes(0x1b), 0);
	assert_int_equal(urn_cm_ns(0), 4096);
	assert_int_equal(urn_cm_ns(20), 4294967296);
	assert_int_equal(urn_cm_ns(31), 4096ull << 31);
}

static enum urn_counter
read_changed(const uint8_t *good, unsigned int at, uint8_t v)
{
	uint8_t *mad = malloc(MAD);
	struct urn_cm_msg m;
	enum urn_counter c;

	assert_non_null(mad);
	memcpy(mad, good, MAD);
	mad[at] = v;
	c = urn_cm_read(mad, 1, &m);
	free(mad);
	return c;
}

static void
test_refused(void **state)
{
	uint8_t mad[MAD], *b;
	struct urn_cm_msg m = a_req(mad), back;

	(void)state;
	assert_int_equal(urn_cm_read(mad, 2, &back), URN_C_DROP_CM_SOURCE);
	assert_int_equal(read_changed(mad, 1, 0x4e), URN_C_DROP_MAD_CLASS);
	assert_int_equal(read_changed(mad, 2, 1), URN_C_DROP_CM_VERSION);
	for (unsigned int v = 0; v < 256; v++) {
		assert_int_equal(read_changed(mad, 3, (uint8_t)v),
				 v == 3 ? URN_C_CM_RX : URN_C_DROP_MAD_METHOD);
		if (v < 0x10 || v > 0x1a)
			assert_int_equal(read_changed(mad, 17, (uint8_t)v), URN_C_DROP_MAD_METHOD);
	}
	assert_int_equal(read_changed(mad, 16, 1), URN_C_DROP_MAD_METHOD);
	/* QP 0 and 1 are not valid. */
	b = mad + HDR;
	put(b + 32, 3, 1);
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_DROP_CM_FIELD);
	put(b + 32, 3, 2);
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_CM_RX);

	m = msg_of(URN_CM_MRA);
	urn_cm_write(mad, &m);
	assert_int_equal(read_changed(mad, HDR + 8, 3 << 6), URN_C_DROP_CM_FIELD);
	m = msg_of(URN_CM_REJ);
	urn_cm_write(mad, &m);
	assert_int_equal(read_changed(mad, HDR + 8, 3 << 6), URN_C_DROP_CM_FIELD);
	assert_int_equal(read_changed(mad, HDR + 9, 73 << 1), URN_C_DROP_CM_FIELD);
	assert_int_equal(read_changed(mad, HDR + 9, 72 << 1), URN_C_CM_RX);
	m = msg_of(URN_CM_REP);
	urn_cm_write(mad, &m);
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_DROP_CM_FIELD);
	m = msg_of(URN_CM_SIDR_REP);
	m.status = URN_CM_SIDR_REJECT;
	urn_cm_write(mad, &m);
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_CM_RX);
	assert_int_equal(read_changed(mad, HDR + 4, 6), URN_C_DROP_CM_FIELD);
	assert_int_equal(read_changed(mad, HDR + 4, 0), URN_C_DROP_CM_FIELD); /* good, and QP 0 */
	assert_int_equal(read_changed(mad, HDR + 5, 73), URN_C_DROP_CM_FIELD);
}

/* Reserved bits are sent as 0 and ignored. */
static void
test_reserved(void **state)
{
	static const struct {
		uint16_t attr;
		uint8_t at, bits;
	} rsvd[] = {
		{0x10, 4, 0xff}, {0x10, 24, 0xff}, {0x10, 36, 0xff}, {0x10, 40, 0xff}, {0x10, 90, 0x0f},
		{0x10, 94, 0x07}, {0x10, 95, 0x07}, {0x11, 8, 0x3f}, {0x11, 9, 0x07}, {0x12, 8, 0x3f},
		{0x12, 9, 0x01}, {0x13, 15, 0xff}, {0x13, 16, 0xff}, {0x13, 23, 0xff}, {0x13, 27, 0x0f},
		{0x15, 11, 0xff}, {0x17, 6, 0xff}, {0x18, 6, 0xff}, {0x18, 11, 0xff},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rsvd) / sizeof(rsvd[0]); i++) {
		struct urn_cm_msg m = msg_of(rsvd[i].attr), back;
		uint8_t mad[MAD];

		m.qpn = 0x55;
		urn_cm_write(mad, &m);
		assert_int_equal(mad[HDR + rsvd[i].at] & rsvd[i].bits, 0);
		assert_int_equal(urn_cm_read(mad, 1, &m), URN_C_CM_RX);
		mad[HDR + rsvd[i].at] |= rsvd[i].bits;
		assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_CM_RX);
		assert_memory_equal(&back, &m, sizeof(m));
	}
}

/* Values too wide for their field change no other field. */
static void
test_cut(void **state)
{
	uint8_t mad[MAD];
	struct urn_cm_msg m = msg_of(URN_CM_REQ), back;

	(void)state;
	m.qpn = 2;
	m.service = 0xff;
	m.flow_control = 0xfe;
	m.retry_count = 0xf8;
	m.rnr_retry = 0xf8;
	m.rdc = 0xfe;
	m.srq = 0xfe;
	m.extended = 0xf8;
	m.path[0].rate = 0xc0;
	m.path[0].subnet_local = 0xfe;
	urn_cm_write(mad, &m);
	assert_int_equal(urn_cm_read(mad, 1, &back), URN_C_CM_RX);
	assert_int_equal(back.service, 3);
	assert_int_equal(back.remote_timeout | back.flow_control | back.local_timeout |
			 back.retry_count | back.mtu | back.rnr_retry | back.rdc | back.max_retries |
			 back.srq | back.extended | back.path[0].rate | back.path[0].flow_label |
			 back.path[0].sl | back.path[0].subnet_local, 0);
}

/* Random bytes: no crash, and an accepted message is written as it was but for reserved bits. */
static void
test_any(void **state)
{
	uint64_t x = 88172645463325252u;
	unsigned int taken = 0;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		struct urn_cm_msg m, back;
		uint8_t mad[MAD], again[MAD];

		for (unsigned int k = 0; k < MAD; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			mad[k] = (uint8_t)(x >> 32);
		}
		put(mad, 4, 0x01070203);
		put(mad + 16, 2, 0x10 + i % 11);
		if (urn_cm_read(mad, 1, &m) != URN_C_CM_RX)
			continue;
		taken++;
		urn_cm_write(again, &m);
		assert_int_equal(urn_cm_read(again, 1, &back), URN_C_CM_RX);
		assert_memory_equal(&back, &m, sizeof(m));
	}
	assert_in_range(taken, 10000, 20000);
}

/* Messages of the kernel, from rping: their contents; we would write the same bytes. */
static void
test_golden(void **state)
{
	static const struct {
		unsigned int frame;
		uint16_t attr;
	} rping[] = {{296, URN_CM_REQ}, {297, URN_CM_REP}, {298, URN_CM_RTU}, {335, URN_CM_DREQ},
		     {336, URN_CM_DREP}};
	struct urn_cm_msg m;
	struct urn_cm_ip ip;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		const uint8_t *mad = golden_mad(rping[i].frame);
		uint8_t ours[MAD];

		assert_int_equal(urn_cm_read(mad, 1, &m), URN_C_CM_RX);
		assert_int_equal(m.attr, rping[i].attr);
		assert_int_equal(m.tid, 0x0000000213f23184);
		urn_cm_write(ours, &m);
		if (m.attr == URN_CM_REQ) /* the kernel sets two reserved bits there, in the packet rate */
			ours[HDR + 91] |= mad[HDR + 91] & 0xc0;
		assert_memory_equal(ours, mad, MAD);
	}
	assert_int_equal(urn_cm_read(golden_mad(296), 1, &m), URN_C_CM_RX);
	assert_int_equal(m.local_id, 0x8431f213);
	assert_int_equal(m.service_id, urn_cm_service(URN_CM_PS_TCP, 7174));
	assert_int_equal(m.qpn, 0x11);
	assert_int_equal(m.psn, 0x4cfbc1);
	assert_int_equal(m.remote_timeout, 20);
	assert_int_equal(m.local_timeout, 20);
	assert_int_equal(m.max_retries, 15);
	assert_int_equal(m.retry_count, 7);
	assert_int_equal(m.mtu, 3);
	assert_int_equal(m.path[0].ack_timeout, 0x13);
	assert_int_equal(urn_cm_ip_read(m.data, URN_CM_REQ_DATA, &ip), 0);
	assert_int_equal(ip.version, 4);
	assert_int_equal(ip.port, 0xe122);
	assert_memory_equal(ip.src, m.path[0].sgid, 16);
	assert_memory_equal(ip.dst, m.path[0].dgid, 16);
}

/* Addresses in front of private data. */
static void
test_ip(void **state)
{
	struct urn_cm_ip v4 = {.version = 4, .port = 0x1234}, v6 = {.version = 6, .port = 0xfffe}, back;
	uint8_t b[URN_CM_IP_BYTES + 1], want[URN_CM_IP_BYTES];

	(void)state;
	put(v4.src + 10, 6, 0xffff0a000001);
	put(v4.dst + 10, 6, 0xffff0a000002);
	memset(want, 0, sizeof(want));
	put(want + 1, 1, 0x40);
	put(want + 2, 2, 0x1234);
	put(want + 16, 4, 0x0a000001);
	put(want + 32, 4, 0x0a000002);
	b[URN_CM_IP_BYTES] = 0xa5;
	urn_cm_ip_write(b, &v4);
	assert_memory_equal(b, want, sizeof(want));
	assert_int_equal(b[URN_CM_IP_BYTES], 0xa5);
	assert_int_equal(urn_cm_ip_read(b, URN_CM_IP_BYTES, &back), 0);
	assert_memory_equal(&back, &v4, sizeof(v4));

	fill(v6.src, 16, 0x20);
	fill(v6.dst, 16, 0x60);
	urn_cm_ip_write(b, &v6);
	assert_int_equal(b[1], 0x60);
	assert_memory_equal(b + 4, v6.src, 16);
	assert_memory_equal(b + 20, v6.dst, 16);
	assert_int_equal(urn_cm_ip_read(b, URN_CM_IP_BYTES, &back), 0);
	assert_memory_equal(&back, &v6, sizeof(v6));
	assert_int_equal(urn_cm_ip_read(b, URN_CM_IP_BYTES - 1, &back), -1);
	b[0] = 1;
	assert_int_equal(urn_cm_ip_read(b, URN_CM_IP_BYTES, &back), -1);
	b[0] = 0;
	b[1] = 0x50;
	assert_int_equal(urn_cm_ip_read(b, URN_CM_IP_BYTES, &back), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_req),	cmocka_unit_test(test_short_ones),
		cmocka_unit_test(test_rep),	cmocka_unit_test(test_sidr),
		cmocka_unit_test(test_paths),	cmocka_unit_test(test_table),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_reserved),
		cmocka_unit_test(test_cut),	cmocka_unit_test(test_any),
		cmocka_unit_test(test_golden),	cmocka_unit_test(test_ip),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
