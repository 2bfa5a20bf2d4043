/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf finds data that did not arrive as sent, and then fails the run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-perf/perf.h"

#define QPS 3u

static struct pattern p;
static struct layout l;
static struct perf_opts o;
static struct run run;
static struct side s;
static struct buffers mem;
static struct perf_qp sender[QPS];
static int failures;

/* Replaces workers.c's function. */
bool
run_fail(struct run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->err.text, sizeof(r->err.text), fmt, ap);
	va_end(ap);
	return failures++ == 0;
}

/* Write message seq (from 1) of a QP where a requester would have put it. */
static uint8_t *
deliver(uint32_t qp, uint64_t seq)
{
	uint32_t src = (uint32_t)(seq - 1) & (l.src_slots - 1);
	uint8_t *data = mem.dst + layout_dst_off(&l, qp, (uint32_t)((seq - 1) % l.dst_slots));

	pattern_fill(&p, data, l.size, pattern_start(qp, src));
	pattern_put_stamp(data, l.size, pattern_stamp(qp, seq));
	return data;
}

static void
start(enum perf_op op, uint64_t size)
{
	struct urn_err err;

	buffers_free(&mem);
	o = (struct perf_opts){.op = op, .size = size, .qps = QPS, .depth = 4, .mtu = 1024,
			       .check = PERF_CHECK_FAST};
	layout_make(&l, &o);
	assert_int_equal(buffers_make(&mem, &l, &p, false, true, false, &err), 0);
	s = (struct side){.o = &o, .l = &l, .p = &p, .run = &run};
	memset(sender, 0, sizeof(sender));
	failures = 0;
}

static int
setup(void **state)
{
	(void)state;
	pattern_init(&p);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	buffers_free(&mem);
	return 0;
}

/* One message: right as it is; wrong with another message's stamp, a stale body, or a flipped bit. */
static void
one_message(void **state)
{
	struct message_id id = {.qp = 1, .slot = 2, .seq = 3, .stamp = 3};
	uint8_t *data;

	(void)state;
	start(PERF_SEND_BW, 200);
	data = deliver(1, 3);
	assert_true(check_message(&s, data, &id, check_most(&s)));
	assert_int_equal(s.checked, 200);
	id.stamp = 4;
	assert_false(check_message(&s, data, &id, check_most(&s)));
	id.stamp = 3;
	id.slot = 1;
	assert_false(check_message(&s, data, &id, check_most(&s)));
	id.slot = 2;
	data[100] ^= 4;
	assert_false(check_message(&s, data, &id, check_most(&s)));
	assert_int_equal(failures, 3);
	assert_non_null(strstr(run.err.text, "message 3 of QP number 1"));
}

/* After a run: each slot holds the last message that went there, for QPs of any progress. */
static void
all_slots(void **state)
{
	static const uint64_t sent[QPS] = {0, 2, 23};

	(void)state;
	start(PERF_WRITE_BW, 300);
	for (uint32_t qp = 0; qp < QPS; qp++) {
		for (uint64_t seq = 1; seq <= sent[qp]; seq++)
			deliver(qp, seq);
		sender[qp].done = sent[qp];
	}
	assert_true(check_all(&s, mem.dst, sender));
	assert_int_equal(s.checked, (2 + l.dst_slots) * 300);
	assert_int_equal(failures, 0);

	/* A message that never came leaves the message of the lap before. */
	deliver(2, 23 - l.dst_slots);
	assert_false(check_all(&s, mem.dst, sender));
	deliver(2, 23);
	assert_true(check_all(&s, mem.dst, sender));
	mem.dst[layout_dst_off(&l, 1, 1) + 150] ^= 1;
	assert_false(check_all(&s, mem.dst, sender));
	assert_int_equal(failures, 2);
}

/* READs: the source is not rewritten, its stamps name the slot. */
static void
read_slots(void **state)
{
	uint32_t src = 2 & 3;
	uint8_t *data;

	(void)state;
	start(PERF_READ_BW, 64);
	data = deliver(0, 1);
	pattern_put_stamp(data, 64, pattern_stamp(0, 0));
	sender[0].done = 1;
	assert_true(check_all(&s, mem.dst, sender));
	pattern_put_stamp(data, 64, pattern_stamp(0, src));
	assert_false(check_all(&s, mem.dst, sender));
}

/* The fast check looks at a window of a long body, the full one at all of it. */
static void
how_much_is_compared(void **state)
{
	struct message_id id = {.qp = 0, .slot = 0, .seq = 1, .stamp = 1};
	uint8_t *data;

	(void)state;
	start(PERF_SEND_BW, 100000);
	data = deliver(0, 1);
	assert_true(check_message(&s, data, &id, check_most(&s)));
	assert_int_equal(s.checked, 16 + PATTERN_WINDOW);
	o.check = PERF_CHECK_FULL;
	assert_true(check_message(&s, data, &id, check_most(&s)));
	assert_int_equal(s.checked, 16 + PATTERN_WINDOW + 100000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_message),
		cmocka_unit_test(all_slots),
		cmocka_unit_test(read_slots),
		cmocka_unit_test(how_much_is_compared),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
