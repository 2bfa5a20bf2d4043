/* SPDX-License-Identifier: BSD-3-Clause */
/* Two urnic-perf meet: each checks the other's message before it acts on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-perf/meet.h"

/* Not used here: test/e2e/test_perf_two.py tests the two ways to meet. */
struct meet *
meet_cm_open(const struct perf_opts *o, struct ibv_context *ctx, uint8_t gid_index,
	     const union ibv_gid *gid, struct urn_err *err)
{
	(void)ctx, (void)gid_index, (void)gid, (void)err;
	return (struct meet *)(uintptr_t)o;
}

struct meet *
meet_oob_open(const struct perf_opts *o, struct urn_err *err)
{
	(void)o, (void)err;
	return NULL;
}

static const struct meet_hello good = {
	.magic = MEET_MAGIC, .op = PERF_SEND_BW, .check = PERF_CHECK_FAST, .mtu_code = 5, .qps = 3,
	.number = 2, .size = 64, .depth = 16, .rd_atomic = 16, .timeout = 14};

static void
what_can_be(void **state)
{
	struct meet_hello h;

	(void)state;
	assert_true(meet_hello_ok(&good));
#define REFUSE(change)                                 \
	do {                                           \
		h = good;                              \
		change;                                \
		assert_false(meet_hello_ok(&h));       \
	} while (0)
	REFUSE(h.magic++);
	REFUSE(h.op = PERF_LIMIT);
	REFUSE(h.op = PERF_CONNECT);
	REFUSE(h.op = 255);
	REFUSE(h.check = PERF_CHECK_FULL + 1);
	REFUSE(h.srq = 2);
	REFUSE(h.mtu_code = 0);
	REFUSE(h.mtu_code = 6);
	REFUSE(h.qps = 0);
	REFUSE(h.number = 3);
	REFUSE(h.qps = PERF_MAX_QPS + 1);
	REFUSE(h.size = PERF_MAX_SIZE + 1);
	REFUSE(h.op = PERF_ATOMIC_BW); /* 64 bytes */
	REFUSE(h.op = PERF_WRITE_LAT; h.size = 0);
	REFUSE(h.depth = 0);
	REFUSE(h.depth = PERF_MAX_DEPTH + 1);
	REFUSE(h.qps = PERF_MAX_QPS; h.depth = 17);
	REFUSE(h.rd_atomic = 0);
	REFUSE(h.rd_atomic = 129);
	REFUSE(h.timeout = 32);
	/* Datagrams: SENDs of one packet each, with room for the message's number. */
	h = good;
	h.ud_qpn = 0xffffff;
	assert_true(meet_hello_ok(&h));
	REFUSE(h.ud_qpn = 0x1000000);
	REFUSE(h.ud_qpn = 5; h.size = PERF_UD_MIN - 1);
	REFUSE(h.ud_qpn = 5; h.size = 4097);
	REFUSE(h.ud_qpn = 5; h.op = PERF_WRITE_BW);
}

static void
which_way(void **state)
{
	struct perf_opts o = {.by_cm = true};
	const union ibv_gid gid = {.raw = {0}};
	struct urn_err err;

	(void)state;
	assert_non_null(meet_open(&o, NULL, 0, &gid, &err));
	o.by_cm = false;
	assert_null(meet_open(&o, NULL, 0, &gid, &err));
	meet_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_can_be), cmocka_unit_test(which_way)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
