/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a stream as they travel (SF-2), and greetings (SF-1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/wire.h"

#include <stdlib.h>
#include <string.h>

enum {
	LOAD = 5,
	BYTE_VERSION = 4,
	BYTE_KIND = 5,
	BYTE_FLAGS = 7,
	BYTE_OFFSET = 23,
	BYTE_ZERO = 79
};

static void
expect_same(const struct urn_st_msg *a, const struct urn_st_msg *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->credit, b->credit);
	assert_int_equal(a->seen, b->seen);
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->key, b->key);
	assert_int_equal(a->advert.offset, b->advert.offset);
	assert_int_equal(a->advert.bytes, b->advert.bytes);
	assert_int_equal(a->advert.addr, b->advert.addr);
	assert_int_equal(a->advert.key, b->advert.key);
}

static void
expect_hello(const struct urn_st_hello *a, const struct urn_st_hello *b)
{
	assert_int_equal(a->buffers, b->buffers);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->abilities, b->abilities);
}

/* Read a message from memory that ends with it, so that a sanitizer sees each byte too many. */
static enum urn_st_verdict
get(const uint8_t *bytes, uint32_t length, struct urn_st_msg *m, uint32_t *at)
{
	const struct urn_st_msg none = {0};
	uint8_t *copy = malloc(length ? length : 1);
	enum urn_st_verdict v;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	v = urn_st_wire_get(copy, length, m, at);
	if (v != URN_ST_V_OK) {
		expect_same(m, &none);
		assert_int_equal(*at, 0);
	}
	free(copy);
	return v;
}

/* A message as the table of kinds wants it. */
static struct urn_st_msg
full(uint8_t kind)
{
	struct urn_st_msg m = {.kind = kind,
			       .credit = 0x01020304,
			       .seen = 0x11121314,
			       .offset = 0x2122232425262728};
	bool memory = kind == URN_ST_SRC_AVAIL || kind == URN_ST_SINK_AVAIL;

	if (kind == URN_ST_DATA || kind == URN_ST_SRC_AVAIL)
		m.length = LOAD;
	if (kind == URN_ST_DATA) {
		m.flags = URN_ST_F_ADVERT;
		m.advert = (struct urn_st_advert){0x31, 0x32, 0x3132333435363738, 0x41424344};
	}
	if (kind == URN_ST_SRC_AVAIL)
		m.flags = URN_ST_F_READ;
	if (kind != URN_ST_DATA && kind != URN_ST_CREDIT && kind != URN_ST_FIN &&
	    kind != URN_ST_STOP)
		m.bytes = 0x515253;
	if (memory) {
		m.addr = 0x6162636465666768;
		m.key = 0x71727374;
	}
	return m;
}

static uint32_t
put(uint8_t *to, const struct urn_st_msg *m)
{
	uint32_t head = urn_st_wire_put(to, m);

	memset(to + head, 0xee, m->length);
	return head + m->length;
}

static void
test_round_trip(void **state)
{
	(void)state;
	for (unsigned int kind = 1; kind < URN_ST_KIND_COUNT; kind++) {
		struct urn_st_msg m = full((uint8_t)kind), back;
		uint8_t bytes[URN_ST_WIRE_MAX + LOAD];
		uint32_t n = put(bytes, &m), at;

		assert_int_equal(get(bytes, n, &back, &at), URN_ST_V_OK);
		assert_int_equal(at, kind == URN_ST_DATA ? URN_ST_WIRE_MAX : URN_ST_WIRE_HEAD);
		expect_same(&back, &m);
		assert_string_not_equal(urn_st_kind_text(kind), "?");
	}
}

/* Fields are in network byte order, at the places that wire.h draws. */
static void
test_layout(void **state)
{
	struct urn_st_msg m = full(URN_ST_SRC_AVAIL);
	uint8_t bytes[URN_ST_WIRE_MAX + LOAD];

	(void)state;
	put(bytes, &m);
	assert_memory_equal(bytes, "USTR\x01\x02\x00\x02\x01\x02\x03\x04\x00\x00\x00\x05", 16);
	assert_memory_equal(bytes + 16, "\x21\x22\x23\x24\x25\x26\x27\x28", 8);
	assert_memory_equal(bytes + 24, "\x00\x00\x00\x00\x00\x51\x52\x53", 8);
	assert_memory_equal(bytes + 32, "abcdefghqrst\x11\x12\x13\x14", 16);
}

/* A message that is cut short, or has more bytes than it says, is refused. */
static void
test_length(void **state)
{
	(void)state;
	for (unsigned int kind = 1; kind < URN_ST_KIND_COUNT; kind++) {
		struct urn_st_msg m = full((uint8_t)kind), back;
		uint8_t bytes[URN_ST_WIRE_MAX + LOAD + 1] = {0};
		uint32_t n = put(bytes, &m), at;

		for (uint32_t i = 0; i < n; i++)
			assert_int_not_equal(get(bytes, i, &back, &at), URN_ST_V_OK);
		assert_int_equal(get(bytes, n + 1, &back, &at), URN_ST_V_LENGTH);
	}
}

static void
test_head(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t value;
		enum urn_st_verdict verdict;
	} bad[] = {
		{0, 'X', URN_ST_V_MAGIC},	    {BYTE_VERSION, 2, URN_ST_V_VERSION},
		{BYTE_KIND, 0, URN_ST_V_KIND},	    {BYTE_KIND, URN_ST_KIND_COUNT, URN_ST_V_KIND},
		{BYTE_KIND, 255, URN_ST_V_KIND},    {BYTE_FLAGS, URN_ST_F_READ, URN_ST_V_FLAGS},
		{BYTE_FLAGS, 0x80, URN_ST_V_FLAGS}, {BYTE_ZERO, 1, URN_ST_V_RESERVED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct urn_st_msg m = full(URN_ST_DATA), back;
		uint8_t bytes[URN_ST_WIRE_MAX + LOAD];
		uint32_t n = put(bytes, &m), at;

		bytes[bad[i].at] = bad[i].value;
		assert_int_equal(get(bytes, n, &back, &at), bad[i].verdict);
	}
}

/* Each kind has its own fields, and no others. */
static void
test_fields(void **state)
{
	const uint64_t far = UINT64_MAX - 3;
	const struct {
		struct urn_st_msg m;
		enum urn_st_verdict verdict;
	} bad[] = {
		{{.kind = URN_ST_CREDIT, .bytes = 1}, URN_ST_V_RESERVED},
		{{.kind = URN_ST_FIN, .addr = 1}, URN_ST_V_RESERVED},
		{{.kind = URN_ST_STOP, .key = 1}, URN_ST_V_RESERVED},
		{{.kind = URN_ST_RD_COMPL, .bytes = 1, .offset = 1, .key = 1}, URN_ST_V_RESERVED},
		{{.kind = URN_ST_DATA}, URN_ST_V_LENGTH},
		{{.kind = URN_ST_FIN, .length = 1}, URN_ST_V_LENGTH},
		{{.kind = URN_ST_SINK_AVAIL}, URN_ST_V_EMPTY},
		{{.kind = URN_ST_SRC_AVAIL}, URN_ST_V_EMPTY},
		{{.kind = URN_ST_WR_COMPL}, URN_ST_V_EMPTY},
		{{.kind = URN_ST_RD_COMPL}, URN_ST_V_EMPTY},
		/* Memory and places that run over the end; more inline than announced. */
		{{.kind = URN_ST_SINK_AVAIL, .bytes = 4, .addr = far}, URN_ST_V_RANGE},
		{{.kind = URN_ST_SINK_AVAIL, .bytes = 4, .offset = far}, URN_ST_V_RANGE},
		{{.kind = URN_ST_SRC_AVAIL, .bytes = 4, .addr = far}, URN_ST_V_RANGE},
		{{.kind = URN_ST_SRC_AVAIL, .bytes = 4, .length = 4}, URN_ST_V_RANGE},
		{{.kind = URN_ST_DATA, .offset = far, .length = 4}, URN_ST_V_RANGE},
		{{.kind = URN_ST_SEND_SM, .offset = 4, .bytes = 5}, URN_ST_V_RANGE},
		{{.kind = URN_ST_RD_COMPL, .offset = 4, .bytes = 5}, URN_ST_V_RANGE},
		{{.kind = URN_ST_DATA, .length = 1, .flags = URN_ST_F_ADVERT}, URN_ST_V_EMPTY},
		{{.kind = URN_ST_DATA,
		  .length = 1,
		  .flags = URN_ST_F_ADVERT,
		  .advert = {.bytes = 4, .addr = far}},
		 URN_ST_V_RANGE},
		{{.kind = URN_ST_DATA,
		  .length = 1,
		  .flags = URN_ST_F_ADVERT,
		  .advert = {.bytes = 4, .offset = far}},
		 URN_ST_V_RANGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t bytes[URN_ST_WIRE_MAX + LOAD];
		struct urn_st_msg back;
		uint32_t at;

		assert_int_equal(get(bytes, put(bytes, &bad[i].m), &back, &at), bad[i].verdict);
		assert_string_not_equal(urn_st_verdict_text(bad[i].verdict), "?");
	}
}

static void
test_hello(void **state)
{
	const struct urn_st_hello h = {8, 4096, URN_ST_CAN_READ | URN_ST_RESUMES}, none = {0};
	static const struct {
		uint32_t at;
		uint8_t value;
		enum urn_st_verdict verdict;
	} bad[] = {
		{3, 'X', URN_ST_V_MAGIC},   {4, 2, URN_ST_V_VERSION},  {5, 8, URN_ST_V_FLAGS},
		{7, 1, URN_ST_V_RESERVED},  {11, 0, URN_ST_V_BUFFERS}, {8, 1, URN_ST_V_BUFFERS},
		{12, 16, URN_ST_V_BUFFERS},
	};
	uint8_t bytes[URN_ST_WIRE_HELLO + 4] = {0};
	struct urn_st_hello back;

	(void)state;
	assert_int_equal(urn_st_hello_put(bytes, &h), URN_ST_WIRE_HELLO);
	/* Private data of a connection has padding behind. */
	assert_int_equal(urn_st_hello_get(bytes, sizeof(bytes), &back), URN_ST_V_OK);
	expect_hello(&back, &h);
	assert_int_equal(urn_st_hello_get(bytes, URN_ST_WIRE_HELLO - 1, &back), URN_ST_V_SHORT);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		urn_st_hello_put(bytes, &h);
		bytes[bad[i].at] = bad[i].value;
		assert_int_equal(urn_st_hello_get(bytes, URN_ST_WIRE_HELLO, &back), bad[i].verdict);
		expect_hello(&back, &none);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_layout),
		cmocka_unit_test(test_length),	   cmocka_unit_test(test_head),
		cmocka_unit_test(test_fields),	   cmocka_unit_test(test_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
