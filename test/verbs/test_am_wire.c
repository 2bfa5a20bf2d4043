/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access over a wire that loses, repeats and delays packets (AM-4 to AM-8): each way
 * and each reply mode moves every byte to its place, in both directions at once, also between ports
 * of different MTUs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <urnic/am.h>

#include "abi/clock.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128 * 1024, BLOCKS = 16, MEM = 2 * BLOCK * BLOCKS, WAIT_MS = 60000 };

/* A program on a node: blocks to send or to be read, and behind them those that are filled. */
struct wire_side {
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
	struct urn_am_memory memory;
	uint8_t *buf;
	uint64_t key, done;
};

static void
open_side(struct rig *r, unsigned int node, struct wire_side *s)
{
	struct urn_err err;
	struct urn_am_part part;

	s->dev = urn_msg_dev_open(urn_dp_attach(r->dp, node, &err));
	assert_non_null(s->dev);
	s->ep = urn_am_endpoint_create(s->dev, NULL);
	assert_non_null(s->ep);
	assert_int_equal(urn_am_address(s->ep, 1, &s->address), 0);
	s->buf = urn_alloc(MEM);
	assert_non_null(s->buf);
	assert_int_equal(urn_am_memory_add(s->ep, s->buf, MEM, &s->memory), 0);
	part = (struct urn_am_part){&s->memory, s->buf, MEM};
	assert_int_equal(urn_am_region_create(s->ep, &part, 1, URN_AM_ACCESS_ALL, &s->key), 0);
}

static void
close_side(struct wire_side *s)
{
	(void)urn_am_memory_remove(s->ep, &s->memory);
	urn_am_endpoint_destroy(s->ep);
	urn_msg_dev_close(s->dev);
	urn_free(s->buf);
}

/* Every second block is written by its owner, the others are read by the other side. */
static void
move(struct wire_side *me, struct wire_side *other, unsigned int block, uint8_t way, uint8_t every)
{
	bool write = block % 2 == 0;
	uint64_t from = (uint64_t)block * BLOCK, to = from + (uint64_t)BLOCKS * BLOCK;
	struct urn_rma op = {.to = &other->address,
			     .remote = (uintptr_t)other->buf + (write ? to : from),
			     .key = other->key,
			     .memory = &me->memory,
			     .local = me->buf + (write ? from : to),
			     .len = BLOCK - 3 * block,
			     .way = way,
			     .every = write ? every : 0,
			     .counter = &me->done};

	assert_int_equal(write ? urn_rma_write(me->ep, &op) : urn_rma_read(me->ep, &op), 0);
}

static void
check(const struct wire_side *at, const struct wire_side *of)
{
	for (unsigned int b = 0; b < BLOCKS; b++)
		assert_memory_equal(at->buf + (BLOCKS + b) * (size_t)BLOCK,
				    of->buf + b * (size_t)BLOCK, BLOCK - 3 * b);
}

static void
move_all(const struct rig_config *cfg, uint8_t way, uint8_t every)
{
	struct wire_side side[2] = {{.done = 0}, {.done = 0}};
	uint64_t end = urn_clock_ms() + WAIT_MS;
	struct rig rig;

	rig_open(&rig, cfg, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		open_side(&rig, i, &side[i]);
		for (size_t k = 0; k < MEM; k++)
			side[i].buf[k] = k < MEM / 2 ? (uint8_t)(k * 31 + k / 4093 + i) : 0;
	}
	for (unsigned int b = 0; b < BLOCKS; b++)
		for (unsigned int i = 0; i < 2; i++)
			move(&side[i], &side[1 - i], b, way, every);
	while (side[0].done + side[1].done < 2ull * BLOCKS) {
		if (urn_clock_ms() > end)
			fail_msg("an operation is pending after a minute");
		(void)urn_am_progress(side[0].ep);
		(void)urn_am_progress(side[1].ep);
		sched_yield();
	}
	/* A side's second half has what it read, and what the other side wrote. */
	check(&side[0], &side[1]);
	check(&side[1], &side[0]);
	assert_true(!cfg->lose || rig_counter(&rig, 0, URN_C_FLOW_RETRANSMITS) > 0);
	for (unsigned int i = 0; i < 2; i++)
		close_side(&side[i]);
	rig_close(&rig);
}

static void
test_tagged(void **state)
{
	struct rig_config cfg = {
		.remote = true, .wire_seed = 5, .lose = 30, .twice = 10, .late = 50};

	(void)state;
	move_all(&cfg, URN_AM_TAGGED, 0);
}

static void
test_replies(void **state)
{
	struct rig_config cfg = {
		.remote = true, .wire_seed = 6, .lose = 30, .twice = 10, .late = 50};

	(void)state;
	move_all(&cfg, URN_AM_PIPELINED, 7);
	move_all(&cfg, URN_AM_PIPELINED, URN_AM_EVERY_TRANSFER);
}

static void
test_different_mtus(void **state)
{
	struct rig_config cfg = {.remote = true, .mtu = {1024, 4096}};

	(void)state;
	move_all(&cfg, URN_AM_TAGGED, 0);
	move_all(&cfg, URN_AM_PIPELINED, URN_AM_EVERY_TRANSFER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tagged),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_different_mtus),
	};

	return cmocka_run_group_tests_name("am_wire", tests, NULL, NULL);
}
