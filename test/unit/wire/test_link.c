/* SPDX-License-Identifier: BSD-3-Clause */
/* Link requests and responses: written by doc/inside/link.md, and read with distrust. */
#include "wire/link.h"

#include "common/test_link_mad.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The MAD's body is at byte 40, its options at 72. */
enum { BODY = 32, ROOM = 216 };

static struct urn_link_msg msg;

/* Read the MAD from memory that ends with it. returns the counter that counted it */
static enum urn_counter
read_spec(const struct link_spec *s)
{
	uint8_t *mad = malloc(LINK_MAD);
	enum urn_counter c;

	assert_non_null(mad);
	link_mad(mad, s);
	memset(&msg, 0xa5, sizeof(msg));
	c = urn_link_read(mad, s->sqpn, &msg);
	free(mad);
	return c;
}

#define expect_read(s, why) assert_int_equal(read_spec(s), URN_C_##why)

/* The message is written, byte for byte, as a peer would send it. */
static void
test_write(void **state)
{
	uint8_t ours[LINK_MAD], theirs[LINK_MAD];

	(void)state;
	for (int response = 0; response < 2; response++) {
		struct link_spec s = link_good(response, 0x0123456789abcdef);
		struct urn_link_msg m = {.response = response, .tid = 0x0123456789abcdef};

		m.info.epoch = s.epoch = 0xfedcba9876543210;
		m.info.features = s.features = 0x80000001;
		m.info.arw = s.arw = URN_LINK_ARW_128;
		m.info.major = 77; /* ignored */
		memset(ours, 0xa5, sizeof(ours));
		urn_link_write(ours, &m);
		link_mad(theirs, &s);
		assert_memory_equal(ours, theirs, LINK_MAD);
	}
}

static void
test_read(void **state)
{
	(void)state;
	for (int response = 0; response < 2; response++) {
		struct link_spec s = link_good(response, 0x0123456789abcdef);

		s.epoch = 0xfedcba9876543210;
		s.features = 0xffffffff;
		s.arw = 3;
		assert_int_equal(read_spec(&s), response ? URN_C_LINK_RESP_RX : URN_C_LINK_REQ_RX);
		assert_int_equal(msg.response, response);
		assert_int_equal(msg.tid, 0x0123456789abcdef);
		assert_int_equal(msg.info.epoch, 0xfedcba9876543210);
		assert_int_equal(msg.info.features, 0xffffffff);
		assert_int_equal(msg.info.arw, URN_LINK_ARW_256);
		assert_int_equal(msg.info.major, 1);
		assert_int_equal(msg.info.minor, 0);
	}
}

/* Codes of cache lines: four bits, the rest ignored; unknown ones are none. */
static void
test_arw(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	for (unsigned int arw = 0; arw < 256; arw++) {
		s.arw = (uint8_t)arw;
		expect_read(&s, LINK_REQ_RX);
		assert_int_equal(msg.info.arw, (arw & 15) <= 3 ? arw & 15 : 0);
	}
	assert_int_equal(urn_link_arw_code(64), 1);
	assert_int_equal(urn_link_arw_code(128), 2);
	assert_int_equal(urn_link_arw_code(256), 3);
	assert_int_equal(urn_link_arw_code(0), 0);
	assert_int_equal(urn_link_arw_code(-1), 0);
	assert_int_equal(urn_link_arw_code(32), 0);
	assert_int_equal(urn_link_arw_code(512), 0);
}

/* Class, method and attribute of the MAD. */
static void
test_class(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.mgmt_class = URN_MAD_CLASS_CM;
	expect_read(&s, DROP_MAD_CLASS);
	s = link_good(0, 1);
	s.class_version = 2;
	expect_read(&s, DROP_MAD_CLASS);
	for (int i = 0; i < 3; i++) {
		s = link_good(0, 1);
		s.oui[i] ^= 1;
		expect_read(&s, DROP_MAD_CLASS);
	}
	for (unsigned int method = 0; method < 256; method++) {
		s = link_good(method >> 7, 1);
		s.method = (uint8_t)method;
		assert_int_equal(read_spec(&s), method == 0x01   ? URN_C_LINK_REQ_RX
						: method == 0x81 ? URN_C_LINK_RESP_RX
								 : URN_C_DROP_MAD_METHOD);
	}
	for (int response = 0; response < 2; response++) {
		s = link_good(response, 1);
		s.attr ^= 1; /* the other one's */
		expect_read(&s, DROP_MAD_METHOD);
	}
	s = link_good(0, 1);
	s.sqpn = 2; /* from a program's QP */
	expect_read(&s, DROP_LINK_SOURCE);
}

/* A request that came back with a status, from a node that does not have the class. */
static void
test_refused(void **state)
{
	struct link_spec s = link_good(1, 0x77);

	(void)state;
	s.status = 0x0c;
	s.attr = 0x10;
	expect_read(&s, LINK_REFUSED);
	assert_int_equal(msg.tid, 0x77);
	s.magic = 0; /* the rest is ignored */
	expect_read(&s, LINK_REFUSED);
	/* A request has no status; the field is ignored. */
	s = link_good(0, 1);
	s.status = 0x0c;
	expect_read(&s, LINK_REQ_RX);
}

/* Magic and length. */
static void
test_malformed(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.magic ^= 1;
	expect_read(&s, DROP_LINK_MAGIC);
	for (uint32_t length = 0; length < 65536; length++) {
		bool fits = length >= BODY && length <= ROOM && length % 4 == 0;

		s = link_good(0, 1);
		s.length = (uint16_t)length;
		assert_int_equal(read_spec(&s), fits ? URN_C_LINK_REQ_RX : URN_C_DROP_LINK_LENGTH);
	}
}

/* Options are skipped, whatever they are, if they fit. */
static void
test_options(void **state)
{
	uint8_t o[ROOM - BODY];
	struct link_spec s = link_good(0, 1);

	(void)state;
	memset(o, 0xff, sizeof(o));
	s.options = o;
	s.options_len = sizeof(o);
	/* One option of each length, alone: the body ends with the option. */
	for (uint32_t n = 0; n <= sizeof(o) - 4; n++) {
		o[2] = 0;
		o[3] = (uint8_t)n;
		s.length = (uint16_t)(BODY + 4 + ((n + 3) & ~3u));
		expect_read(&s, LINK_REQ_RX);
		assert_int_equal(msg.info.features, 1);
		if (n == 0)
			continue;
		s.length -= 4; /* cut by a word */
		expect_read(&s, DROP_LINK_OPTION);
	}
	/* Longer than the whole MAD. */
	o[2] = 0xff;
	s.length = ROOM;
	expect_read(&s, DROP_LINK_OPTION);
	/* Two options one behind the other, the last one cut. */
	memset(o, 0, sizeof(o));
	o[3] = 5;
	o[4 + 8 + 3] = 4;
	s.length = BODY + 4 + 8 + 4 + 4;
	expect_read(&s, LINK_REQ_RX);
	s.length = BODY + 4 + 8 + 4;
	expect_read(&s, DROP_LINK_OPTION);
}

/* Another major version: only the fixed fields are read; another minor: all known ones. */
static void
test_versions(void **state)
{
	struct link_spec s = link_good(0, 1);

	(void)state;
	s.minor = 255;
	expect_read(&s, LINK_REQ_RX);
	assert_int_equal(msg.info.minor, 255);
	assert_int_equal(msg.info.features, 1);
	for (unsigned int major = 0; major < 256; major++) {
		s.major = (uint8_t)major;
		s.length = 16;
		if (major == URN_LINK_MAJOR) {
			expect_read(&s, DROP_LINK_LENGTH);
			continue;
		}
		expect_read(&s, LINK_REQ_RX);
		assert_int_equal(msg.info.major, major);
		assert_int_equal(msg.info.epoch, 0x1111);
		assert_int_equal(msg.info.features, 0);
		assert_int_equal(msg.info.arw, 0);
		s.length = 12;
		expect_read(&s, DROP_LINK_LENGTH);
		s.length = 220;
		expect_read(&s, DROP_LINK_LENGTH);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),	cmocka_unit_test(test_read),
		cmocka_unit_test(test_arw),	cmocka_unit_test(test_class),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_options), cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
