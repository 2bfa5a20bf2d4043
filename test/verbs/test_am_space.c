/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers reach without a key, on nodes that allow it (AM-9). */
#include "am_net.h"

#include <errno.h>
#include <string.h>

enum { LEN = 1000, GAP = 5000 };

/* Issue an operation without a key, and wait. at: offset in the target's memory. returns: its code
 */
static uint8_t
operate(struct net *n, bool write, uint32_t at, unsigned int way)
{
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_rma op = {.to = &b->address,
			     .local = a->buf,
			     .remote = (uintptr_t)b->buf + at,
			     .len = LEN,
			     .way = (uint8_t)way};

	return net_operate(n, a, write, op);
}

/* Each way reaches the declared ranges and nothing between them, with the declared rights. */
static void
test_declared(void **state)
{
	struct net *n = *state;
	struct side *a = &n->side[0], *b = &n->side[1];
	struct urn_am_part part[2] = {{&b->memory, b->buf, LEN}, {&b->memory, b->buf + GAP, LEN}};
	uint8_t empty[GAP - LEN] = {0};

	memset(b->buf, 0, MEM);
	assert_int_equal(operate(n, true, 0, URN_AM_PIPELINED), URN_AM_UNREGISTERED);
	assert_int_equal(urn_am_space_declare(b->ep, part, 2, URN_AM_ACCESS_ALL), 0);
	for (unsigned int way = URN_AM_DIRECT; way <= URN_AM_TAGGED; way++) {
		for (uint32_t at = 0; at <= GAP; at += GAP) {
			memset(a->buf, (int)way + 1, LEN);
			assert_int_equal(operate(n, true, at, way), URN_AM_DONE);
			assert_memory_equal(b->buf + at, a->buf, LEN);
			memset(a->buf, 0, LEN);
			assert_int_equal(operate(n, false, at, way), URN_AM_DONE);
			assert_memory_equal(b->buf + at, a->buf, LEN);
		}
		assert_int_equal(operate(n, true, 1, way), URN_AM_RANGE);
		assert_int_equal(operate(n, true, GAP - 1, way), URN_AM_RANGE);
		assert_int_equal(operate(n, false, LEN, way), URN_AM_RANGE);
	}
	assert_memory_equal(b->buf + LEN, empty, sizeof(empty));
}

/* A space is declared once; taken back, nobody reaches it, and another may be declared. */
static void
test_once(void **state)
{
	struct net *n = *state;
	struct side *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, LEN};

	assert_int_equal(urn_am_space_declare(b->ep, &part, 1, URN_AM_ACCESS_READ), 0);
	assert_int_equal(urn_am_space_declare(b->ep, &part, 1, URN_AM_ACCESS_ALL), EEXIST);
	assert_int_equal(operate(n, false, 0, URN_AM_AUTO), URN_AM_DONE);
	assert_int_equal(operate(n, true, 0, URN_AM_AUTO), URN_AM_RIGHTS);
	assert_int_equal(urn_am_region_destroy(b->ep, 0), 0);
	assert_int_equal(operate(n, false, 0, URN_AM_AUTO), URN_AM_UNREGISTERED);
	assert_int_equal(urn_am_region_destroy(b->ep, 0), EINVAL);
	assert_int_equal(urn_am_space_declare(b->ep, &part, 1, URN_AM_ACCESS_ALL), 0);
	assert_int_equal(operate(n, true, 0, URN_AM_AUTO), URN_AM_DONE);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {BOTH(test_declared), BOTH(test_once)};

	net_unregistered = true;
	return cmocka_run_group_tests_name("am_space", tests, NULL, NULL);
}
