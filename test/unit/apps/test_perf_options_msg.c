/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf's options for messages and endpoints: defaults that fit together, and mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "perf_line.h"

/* Measurements of messages: sets and entries by default, and mistakes. */
static void
messages(void **state)
{
	static const char *const bad[] = {
		"msg_rate --size 7", "msg_rate --size 2M", "msg_rate --entries 100", "msg_rate --qps 2",
		"msg_rate --depth 2", "msg_rate --with-limit", "msg_rate --senders 2",
		"msg_incast --senders 16", "send_bw --sets 2", "send_bw --retries 1", "msg_rate --ud",
		"msg_rate --entries 65536 --size 1M", "msg_lat --attach auto --peer h",
	};

	(void)state;
	assert_int_equal(parse("msg_rate"), PERF_RUN);
	assert_int_equal(o.size, 64);
	assert_int_equal(o.sets, 128);
	assert_int_equal(o.senders, 1);
	assert_int_equal(o.entries, 1024);
	assert_int_equal(o.retries, 65535);
	assert_false(o.wire.on);
	assert_int_equal(parse("msg_rate --sets 4096 --retries 0"), PERF_RUN);
	assert_int_equal(o.entries, 8192);
	assert_int_equal(o.retries, 0);
	assert_int_equal(parse("msg_rate --size 1M"), PERF_RUN);
	assert_true(o.entries * (1u << 20) <= 64u << 20);
	assert_int_equal(parse("msg_lat"), PERF_RUN);
	assert_int_equal(o.sets, 4);
	assert_int_equal(parse("msg_lat --sets 1"), PERF_RUN);
	assert_int_equal(o.sets, 1);
	assert_int_equal(parse("msg_incast"), PERF_RUN);
	assert_int_equal(o.senders, 8);
	assert_int_equal(o.sets, 16);
	assert_true(o.wire.on);
	assert_int_equal(parse("msg_incast --attach auto"), PERF_RUN);
	assert_false(o.wire.on);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i]) != PERF_EXIT_USAGE || err.text[0] == '\0')
			fail_msg("'%s' was taken", bad[i]);
}

/* Remote memory access and active messages: ways, replies and depth by default, and mistakes (AM-4,
 * AM-8). */
static void
endpoints(void **state)
{
	static const char *const bad[] = {
		"rma_write_bw --size 0",
		"rma_write_bw --qps 2",
		"rma_write_bw --depth 1025",
		"rma_read_bw --reply-every 2",
		"rma_write_bw --reply-every 255",
		"rma_write_bw --reply-every none",
		"rma_write_bw --rma fast",
		"am_rate --rma direct",
		"am_rate --size 7",
		"am_rate --depth 4097",
		"am_payload --size 1M --depth 1000",
		"am_payload --size 1048577",
		"am_lat --depth 2",
		"write_bw --rma direct",
		"write_bw --fill",
		"am_lat --fill",
		"am_lat --prepare",
		"rma_write_bw --prepare",
		"write_send_bw --prepare",
		"write_send_bw --size 0",
		"write_send_bw --srq yes",
		"am_lat --attach auto --peer h",
	};

	(void)state;
	assert_int_equal(parse("rma_write_bw"), PERF_RUN);
	assert_int_equal(o.size, 65536);
	assert_int_equal(o.depth, 16);
	assert_int_equal(o.way, 0);
	assert_int_equal(o.every, 0);
	assert_int_equal(parse("rma_write_bw --rma tagged --reply-every transfer --depth 1024"),
			 PERF_RUN);
	assert_int_equal(o.way, 3);
	assert_int_equal(o.every, 255);
	assert_int_equal(parse("rma_write_lat --rma pipelined --reply-every 254"), PERF_RUN);
	assert_int_equal(o.size, 8);
	assert_int_equal(o.every, 254);
	assert_int_equal(parse("am_rate"), PERF_RUN);
	assert_int_equal(o.size, 64);
	assert_int_equal(o.depth, 64);
	assert_int_equal(parse("am_payload"), PERF_RUN);
	assert_int_equal(o.size, 4096);
	assert_false(o.prepare || o.fill);
	assert_int_equal(parse("am_payload --prepare"), PERF_RUN);
	assert_true(o.prepare && o.fill);
	assert_int_equal(parse("am_rate --fill"), PERF_RUN);
	assert_true(!o.prepare && o.fill);
	assert_int_equal(parse("write_send_bw --fill"), PERF_RUN);
	assert_true(!o.prepare && o.fill);
	assert_int_equal(parse("am_payload --size 1M"), PERF_RUN);
	assert_int_equal(o.depth, 4);
	assert_int_equal(parse("am_lat"), PERF_RUN);
	assert_int_equal(o.depth, 1);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i]) != PERF_EXIT_USAGE || err.text[0] == '\0')
			fail_msg("'%s' was taken", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages),
		cmocka_unit_test(endpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
