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

/* ---- keys */

/* An endpoint with memory and a region, in the first place of its table like any other's. */
struct owner {
	struct urn_am_endpoint *ep;
	struct urn_am_memory memory;
	uint8_t *buf; /* LEN bytes */
	uint64_t key;
};

static void
owner_open(struct owner *o, struct urn_msg_dev *dev)
{
	struct urn_am_part part;

	o->ep = urn_am_endpoint_create(dev, &net_attr);
	assert_non_null(o->ep);
	o->buf = urn_alloc(LEN);
	assert_non_null(o->buf);
	memset(o->buf, 7, LEN);
	assert_int_equal(urn_am_memory_add(o->ep, o->buf, LEN, &o->memory), 0);
	part = (struct urn_am_part){&o->memory, o->buf, LEN};
	assert_int_equal(urn_am_region_create(o->ep, &part, 1, URN_AM_ACCESS_ALL, &o->key), 0);
}

static void
owner_close(struct owner *o)
{
	urn_am_endpoint_destroy(o->ep);
	urn_free(o->buf);
}

/* Try an operation of each kind and way on an endpoint by a key that is another one's. at: address
 * of LEN bytes of 7, which stay as they are */
static void
try_key(struct net *n, const struct urn_am_address *to, uint64_t key, const uint8_t *at)
{
	struct side *a = &n->side[0];
	struct urn_rma op = {
		.to = to, .key = key, .local = a->buf, .remote = (uintptr_t)at, .len = LEN};
	struct urn_rma_atomic word = {.to = to,
				      .key = key,
				      .remote = (uintptr_t)at,
				      .op = URN_AM_SWAP,
				      .size = 8,
				      .done = net_note_done,
				      .arg = a};
	unsigned int done;

	memset(a->buf, 1, LEN);
	for (unsigned int way = URN_AM_DIRECT; way <= URN_AM_TAGGED; way++) {
		op.way = (uint8_t)way;
		for (unsigned int write = 0; write < 2; write++) {
			assert_int_equal(net_operate(n, a, write, op), URN_AM_BAD_KEY);
			assert_int_equal(a->bytes, 0);
		}
	}
	done = a->done;
	assert_int_equal(urn_rma_atomic(a->ep, &word), 0);
	net_until(n, &a->done, done + 1);
	assert_int_equal(a->code, URN_AM_BAD_KEY);
	for (unsigned int i = 0; i < LEN; i++) {
		assert_int_equal(a->buf[i], 1);
		assert_int_equal(at[i], 7);
	}
}

/* A key that another endpoint gave out, of this node or another one, opens neither endpoint's
 * memory; nor does the key of a region that was taken back, when its place has another region. */
static void
test_keys_of_others(void **state)
{
	struct net *n = *state;
	struct side *b = &n->side[1];
	struct urn_am_part part = {&b->memory, b->buf, LEN};
	struct owner here, there;
	uint64_t old, key;

	memset(b->buf, 7, LEN);
	owner_open(&here, b->dev);
	owner_open(&there, n->side[0].dev);
	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &old), 0);
	assert_int_equal(urn_am_region_destroy(b->ep, old), 0);
	assert_int_equal(urn_am_region_create(b->ep, &part, 1, URN_AM_ACCESS_ALL, &key), 0);
	assert_int_equal(key % URN_AM_REGIONS_MAX, here.key % URN_AM_REGIONS_MAX);
	try_key(n, &b->address, here.key, b->buf);
	try_key(n, &b->address, here.key, here.buf);
	try_key(n, &b->address, there.key, b->buf);
	try_key(n, &b->address, there.key, there.buf);
	try_key(n, &b->address, old, b->buf);
	owner_close(&here);
	owner_close(&there);
}

int
main(void)
{
#define OVER(f, way)                                         \
	{                                                    \
#f " " #way, f, net_setup, net_teardown, way \
	}
#define BOTH(f) OVER(f, NULL), OVER(f, "socket")
	const struct CMUnitTest tests[] = {BOTH(test_declared), BOTH(test_once),
					   BOTH(test_keys_of_others)};

	net_unregistered = true;
	return cmocka_run_group_tests_name("am_space", tests, NULL, NULL);
}
