/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of errors and their sentences (transport/failure.h; doc/reference/errors.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/explain.h"
#include "abi/queue.h"
#include "transport/failure.h"
#include "transport/source.h"
#include "transport/tp.h"

#include <string.h>

static struct urn_tp no_tp; /* has no queue pair */

/* A share whose client had n errors: number i is of the QP 100 + i, with the status i % 4 + 1. */
static void
fill(struct urn_tp_share *share, uint32_t n)
{
	memset(share, 0, sizeof(*share));
	for (uint32_t i = 0; i < n; i++) {
		share->failures.ring[i % URN_FAILURES] = (struct urn_failure){
			.kind = URN_FAILURE_REQUEST,
			.qpn = 100 + i,
			.status = (uint8_t)(i % 4 + 1),
		};
		share->failures.n++;
	}
}

/* The newest records are found, up to the bound, and older ones are not. */
static void
finds_the_last(void **state)
{
	static struct urn_tp_share share;

	(void)state;
	for (uint32_t n = 0; n <= 3 * URN_FAILURES; n++) {
		fill(&share, n);
		for (uint32_t i = 0; i < n + 2; i++) {
			const struct urn_failure *f =
				urn_failure_find(&no_tp, &share, 100 + i, UINT8_MAX);

			if (i < n && n - i <= URN_FAILURES)
				assert_int_equal(f->qpn, 100 + i);
			else
				assert_null(f);
		}
		assert_null(urn_failure_find(&no_tp, &share, 0, 0)); /* an empty place's */
	}
}

/* The error with the completion's status is meant, of several of a queue pair, and no other. */
static void
finds_the_status(void **state)
{
	static struct urn_tp_share share;

	(void)state;
	fill(&share, 8);
	for (unsigned int i = 0; i < 8; i++)
		share.failures.ring[i].qpn = 7;
	share.failures.ring[0].length = 1;
	share.failures.ring[4].length = 2;
	share.failures.ring[7].length = 3;
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, 1)->length, 2);
	assert_null(urn_failure_find(&no_tp, &share, 7, URN_WC_WR_FLUSH_ERR));
	assert_null(urn_failure_find(&no_tp, &share, 7, URN_WC_RETRY_EXC_ERR));
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, UINT8_MAX)->length, 3);
	urn_failure_forget(&no_tp, &share, 7);
	assert_null(urn_failure_find(&no_tp, &share, 7, 1));
	assert_null(urn_failure_find(&no_tp, &share, 7, UINT8_MAX));
}

/* A flushed request is explained by an error that the queue pair did not survive, or by the one
 * that keeps it in SQE; a receive that completes after its message was refused, by the refusal. */
static void
finds_the_reason(void **state)
{
	static struct urn_tp_share share;
	struct urn_failure *ring = share.failures.ring;

	(void)state;
	fill(&share, 3);
	for (unsigned int i = 0; i < 3; i++)
		ring[i].qpn = 7;
	ring[0].length = 1;
	ring[0].flushes = URN_FLUSHES_ALL;
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, URN_WC_WR_FLUSH_ERR)->length, 1);
	ring[1].length = 2;
	ring[1].flushes = URN_FLUSHES_SENDS;
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, URN_WC_WR_FLUSH_ERR)->length, 2);
	urn_failure_leave_sqe(&no_tp, &share, 8);
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, URN_WC_WR_FLUSH_ERR)->length, 2);
	urn_failure_leave_sqe(&no_tp, &share, 7);
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, URN_WC_WR_FLUSH_ERR)->length, 1);
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, ring[1].status)->length, 2);
	ring[2] = (struct urn_failure){
		.kind = URN_FAILURE_REFUSED, .qpn = 7, .length = 3, .flushes = URN_FLUSHES_ALL};
	assert_int_equal(urn_failure_find(&no_tp, &share, 7, URN_WC_LOC_PROT_ERR)->length, 3);
	assert_null(urn_failure_find(&no_tp, &share, 7, URN_WC_RETRY_EXC_ERR));
}

/* A record with the longest of everything. */
static struct urn_failure
longest(void)
{
	struct urn_failure f = {
		.stalled_ns = 999999999999,
		.qpn = 0xffffff,
		.dest_qpn = 0xffffff,
		.psn = 0xffffff,
		.length = UINT32_MAX,
		.kind = URN_FAILURE_REQUEST,
		.status = URN_WC_RETRY_EXC_ERR,
		.vendor_err = URN_VE_TIMEOUT,
		.opcode = URN_WCO_RDMA_WRITE,
		.tried = 8,
		.timeout = 31,
		.connected = true,
		.acked = true,
	};

	memset(f.dgid, 0xfe, sizeof(f.dgid));
	return f;
}

/* Each sentence of each kind fits into the reply, whole; a shorter buffer gets its beginning. */
static void
fits(void **state)
{
	static const char port[] = "a-port-with-the-longest-of-name";
	char whole[1024], cut[1024];

	(void)state;
	_Static_assert(sizeof(port) == 32, "as long as a port's name can be");
	for (unsigned int kind = 0; kind <= URN_FAILURE_LOST; kind++)
		for (unsigned int i = 0; i < 32 * 32; i++) {
			struct urn_failure f = longest();

			f.kind = (uint8_t)kind;
			f.status = i % 32;
			f.vendor_err = i / 32 ? (uint8_t)(i / 32) : URN_VE_TIMEOUT;
			f.obstacle = (uint8_t)(i % (URN_OBSTACLE_NO_ROUTE + 1));
			f.syndrome = i & 1 ? 0x60 + i % 4 : 0;
			urn_failure_text(&f, port, true, whole, sizeof(whole));
			assert_true(strlen(whole) < sizeof(((struct urn_abi_explained *)0)->text));
			if (i % 64)
				continue;
			for (size_t n = 1; n <= strlen(whole); n++) {
				memset(cut, 'x', sizeof(cut));
				urn_failure_text(&f, port, true, cut, n);
				assert_int_equal(strlen(cut), n - 1);
				assert_memory_equal(cut, whole, n - 1);
				assert_int_equal(cut[n], 'x');
			}
		}
}

/* Each thing that stands in the way is named, with the port or the address. */
static void
obstacles(void **state)
{
	static const char *const words[] = {
		[URN_OBSTACLE_NONE] = "no progress for at least 999 s",
		[URN_OBSTACLE_PORT_DOWN] = ": port a0 is administratively down",
		[URN_OBSTACLE_PORT_FAILED] = ": port a0 was failed by a command",
		[URN_OBSTACLE_NO_LINK] = ": port a0 has no link",
		[URN_OBSTACLE_NO_MAC] = ": no answer of neighbour discovery from the router",
		[URN_OBSTACLE_NO_ROUTE] = ": no route leads there",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct urn_failure f = longest();

		f.obstacle = (uint8_t)i;
		urn_failure_text(&f, "a0", false, text, sizeof(text));
		if (!strstr(text, words[i]))
			fail_msg("no '%s' in '%s'", words[i], text);
	}
}

/* The sentence blames the way on which packets were lost, and no receive that did not fail. */
static void
places(void **state)
{
	static struct urn_tp_share share;
	static struct urn_tp tp;
	char text[512];

	(void)state;
	share.failures.ring[0] = longest();
	share.failures.ring[0].vendor_err = URN_VE_SEQ;
	urn_failure_text(&share.failures.ring[0], "a0", false, text, sizeof(text));
	assert_non_null(strstr(text, "the peer answers, and misses packets"));
	urn_failure_sequence(&tp, &share, 0xffffff, true);
	urn_failure_text(&share.failures.ring[0], "a0", false, text, sizeof(text));
	assert_non_null(strstr(text, "responses are lost on the way here"));
	assert_non_null(strstr(text, "; PSN 0xffffff acknowledged last; "));
	share.failures.ring[0].kind = URN_FAILURE_REFUSED;
	urn_failure_text(&share.failures.ring[0], "a0", true, text, sizeof(text));
	assert_non_null(strstr(text, " earlier request of the peer at PSN 0xffffff could not be "
				     "written to memory"));
}

/* Each reason has a name of its own and a text; numbers that nobody knows have neither. */
static void
vendor_errs(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= URN_VE_UNKNOWN; i++) {
		assert_string_not_equal(urn_abi_vendor_err_name(i), "?");
		assert_string_not_equal(urn_abi_vendor_err_text(i), "");
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(urn_abi_vendor_err_name(i),
						urn_abi_vendor_err_name(k));
	}
	for (uint32_t i = URN_VE_UNKNOWN + 1; i < 70000; i++) {
		assert_string_equal(urn_abi_vendor_err_name(i), "?");
		assert_string_equal(urn_abi_vendor_err_text(i), "");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_last),   cmocka_unit_test(finds_the_status),
		cmocka_unit_test(finds_the_reason), cmocka_unit_test(fits),
		cmocka_unit_test(obstacles),	    cmocka_unit_test(vendor_errs),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
