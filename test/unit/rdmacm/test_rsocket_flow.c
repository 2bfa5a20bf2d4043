/* SPDX-License-Identifier: BSD-3-Clause */
/* The two directions of a stream: rings, credits, and peers that break the rules (RS-2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dropin/rdmacm/rsocket/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64, CREDITS = 8 };

static uint8_t ring[SIZE + 1];
static uint32_t msgs[CREDITS + 1];
static struct urn_rs_rx rx;

static int
setup_rx(void **state)
{
	(void)state;
	for (int i = 0; i < SIZE; i++)
		ring[i] = (uint8_t)i;
	urn_rs_rx_init(&rx, ring, SIZE, msgs, CREDITS);
	return 0;
}

/* The second half is given at once, then halves in turn, each when it has been read. */
static void
test_halves(void **state)
{
	uint8_t out[SIZE];
	int64_t half;

	(void)state;
	assert_true(urn_rs_rx_owes(&rx));
	assert_int_equal(urn_rs_rx_tell(&rx, &half), CREDITS);
	assert_int_equal(half, SIZE / 2);
	assert_false(urn_rs_rx_owes(&rx));
	assert_int_equal(urn_rs_rx_data(&rx, SIZE / 2), 0);
	assert_int_equal(urn_rs_rx_data(&rx, SIZE / 2), 0);
	assert_int_equal(urn_rs_rx_read(&rx, out, 31, false), 31);
	assert_false(urn_rs_rx_owes(&rx));
	assert_int_equal(urn_rs_rx_read(&rx, out + 31, 1, false), 1);
	assert_true(urn_rs_rx_owes(&rx));
	assert_int_equal(urn_rs_rx_tell(&rx, &half), CREDITS + 1);
	assert_int_equal(half, 0);
	assert_int_equal(urn_rs_rx_data(&rx, 10), 0);
	/* Over the end of the ring. */
	assert_int_equal(urn_rs_rx_read(&rx, out, SIZE, false), SIZE / 2 + 10);
	assert_int_equal(out[0], 32);
	assert_int_equal(out[31], 63);
	assert_int_equal(out[32], 0);
	assert_int_equal(out[41], 9);
}

/* Bytes that were not given, and messages without a credit. */
static void
test_hostile(void **state)
{
	(void)state;
	assert_int_equal(urn_rs_rx_data(&rx, SIZE / 2 + 1), EPROTO);
	assert_int_equal(urn_rs_rx_data(&rx, URN_RS_ARG_MASK), EPROTO);
	for (int i = 0; i < CREDITS; i++)
		assert_int_equal(urn_rs_rx_data(&rx, 1), 0);
	assert_int_equal(urn_rs_rx_data(&rx, 1), EPROTO);
	assert_int_equal(urn_rs_rx_data(&rx, 0), EPROTO);
	assert_int_equal(rx.bytes, CREDITS);
}

/* A message without bytes is no end of the stream. */
static void
test_empty(void **state)
{
	uint8_t out[4];

	(void)state;
	assert_int_equal(urn_rs_rx_data(&rx, 0), 0);
	assert_int_equal(rx.bytes, 0);
	assert_int_equal(urn_rs_rx_read(&rx, out, 4, false), 0);
	assert_int_equal(rx.seq, 1);
}

static void
test_peek(void **state)
{
	uint8_t out[SIZE];

	(void)state;
	assert_int_equal(urn_rs_rx_data(&rx, 5), 0);
	assert_int_equal(urn_rs_rx_data(&rx, 5), 0);
	assert_int_equal(urn_rs_rx_read(&rx, out, 7, true), 7);
	assert_int_equal(out[6], 6);
	assert_int_equal(urn_rs_rx_read(&rx, out, SIZE, false), 10);
	assert_int_equal(out[0], 0);
	assert_int_equal(rx.seq, 2);
}

/* Credits come back after half of the messages, over the wrap of their 16 bits. */
static void
test_credits(void **state)
{
	uint16_t told = CREDITS;
	uint8_t out[1];
	int64_t half;

	(void)state;
	(void)urn_rs_rx_tell(&rx, &half);
	for (uint32_t i = 1; i < 140000; i++) {
		assert_int_equal(urn_rs_rx_data(&rx, 1), 0);
		assert_true((uint16_t)(told - i) < CREDITS);
		assert_int_equal(urn_rs_rx_read(&rx, out, 1, false), 1);
		assert_int_equal(out[0], (i - 1) % SIZE);
		if (urn_rs_rx_owes(&rx))
			told = urn_rs_rx_tell(&rx, &half);
	}
}

/* ---- sending */

static struct urn_rs_tx tx;
static struct urn_rs_sge targets[URN_RS_TARGETS];
static uint8_t sring[8192];

static int
setup_tx(void **state)
{
	struct urn_rs_conn peer = {.credits = CREDITS,
				   .targets = {.addr = 0x100, .key = 1, .length = 2},
				   .buffer = {.addr = 0x1000, .key = 2, .length = 32}};

	(void)state;
	memset(targets, 0, sizeof(targets));
	urn_rs_tx_init(&tx, sring, sizeof(sring), 16);
	tx.targets = targets;
	urn_rs_tx_peer(&tx, &peer);
	return 0;
}

/* A target is used up before the next one, and none is used before the peer wrote it. */
static void
test_targets(void **state)
{
	struct urn_rs_sge to;

	(void)state;
	assert_true(urn_rs_tx_ready(&tx));
	assert_true(urn_rs_tx_target(&tx, &to));
	assert_int_equal(to.length, 32);
	urn_rs_tx_use(&tx, &to, 20);
	assert_true(urn_rs_tx_target(&tx, &to));
	assert_true(to.addr == 0x1000 + 20);
	assert_int_equal(to.length, 12);
	urn_rs_tx_use(&tx, &to, 12);
	assert_false(urn_rs_tx_target(&tx, &to));
	assert_false(urn_rs_tx_ready(&tx));
	targets[1] = (struct urn_rs_sge){.addr = 0x2000, .key = 2, .length = 32};
	assert_true(urn_rs_tx_ready(&tx));
	assert_true(urn_rs_tx_target(&tx, &to));
	assert_true(to.addr == 0x2000);
	assert_int_equal(tx.seq, 2);
	/* The peer's entries are written in turn, its second one first. */
	assert_true(urn_rs_tx_peer_entry(&tx) == 0x110);
	assert_true(urn_rs_tx_peer_entry(&tx) == 0x100);
	assert_true(urn_rs_tx_peer_entry(&tx) == 0x110);
}

/* Sending stops without credits; a peer can't give more than it has. */
static void
test_limit(void **state)
{
	struct urn_rs_sge to;

	(void)state;
	for (int i = 0; i < CREDITS; i++) {
		assert_true(urn_rs_tx_ready(&tx));
		(void)urn_rs_tx_target(&tx, &to);
		urn_rs_tx_use(&tx, &to, 1);
	}
	assert_false(urn_rs_tx_ready(&tx));
	assert_int_equal(urn_rs_tx_limit(&tx, CREDITS + CREDITS + 1), EPROTO);
	assert_int_equal(urn_rs_tx_limit(&tx, CREDITS - 1), EPROTO);
	assert_int_equal(urn_rs_tx_limit(&tx, CREDITS + 4), 0);
	assert_true(urn_rs_tx_ready(&tx));
}

/* The ring gives two parts at its end, and bytes come free when their request ended. */
static void
test_ring(void **state)
{
	static uint8_t from[8192];
	struct iovec parts[2];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 3);
	assert_int_equal(urn_rs_tx_copy(&tx, from, 8000, parts), 1);
	assert_false(urn_rs_tx_room(&tx));
	urn_rs_tx_done(&tx, 8000);
	assert_true(urn_rs_tx_room(&tx));
	assert_int_equal(urn_rs_tx_copy(&tx, from, 300, parts), 2);
	assert_int_equal(parts[0].iov_len, 192);
	assert_int_equal(parts[1].iov_len, 108);
	assert_memory_equal(parts[0].iov_base, from, 192);
	assert_memory_equal(parts[1].iov_base, from + 192, 108);
	assert_true(parts[1].iov_base == sring);
	assert_int_equal(tx.free, sizeof(sring) - 300);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_halves, setup_rx),
		cmocka_unit_test_setup(test_hostile, setup_rx),
		cmocka_unit_test_setup(test_empty, setup_rx),
		cmocka_unit_test_setup(test_peek, setup_rx),
		cmocka_unit_test_setup(test_credits, setup_rx),
		cmocka_unit_test_setup(test_targets, setup_tx),
		cmocka_unit_test_setup(test_limit, setup_tx),
		cmocka_unit_test_setup(test_ring, setup_tx),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
