/* SPDX-License-Identifier: BSD-3-Clause */
/* Register sets of a program (DB-1 to DB-5), on an embedded node whose engine this thread polls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/msg_port.h"
#include "common/node.h"

static struct urn_err err;
static struct urn_node node;
static struct urn_msg_port port;

static int
up(void **state)
{
	struct urn_node_config cfg = {.name = "n", .adapter = {.ipv4 = {10, 0, 0, 1}}};

	(void)state;
	strcpy(cfg.port.device, "net_null0");
	if (urn_node_start(&node, "test_msg_port", &err) != 0 || urn_node_open(&node, &cfg, &err) != 0)
		return -1;
	return urn_msg_port_open(&port, urn_dp_attach(node.rig.dp, 0, &err), false, &err);
}

static int
down(void **state)
{
	(void)state;
	urn_msg_port_close(&port);
	urn_msg_port_close(&port);
	return urn_node_close(&node, NULL, &err);
}

static uint8_t
answer_of(const struct urn_regset *s)
{
	for (unsigned int i = 0; i < 1000 && urn_regset_answer(s) == URN_MSG_PENDING; i++)
		urn_node_turn(&node);
	return urn_regset_answer(s);
}

/* Make a set with a queue of two entries, and wait until the queue takes messages. */
static void
open_queue(struct urn_regset *q)
{
	struct urn_regset_want want = {.send_bytes = 64, .entries = 2, .recv_size = 32};

	assert_int_equal(urn_regset_open(q, &port, &want, &err), 0);
	for (unsigned int i = 0; i < 1000 && urn_regset_ready(q) == 0; i++)
		urn_node_turn(&node);
	assert_int_equal(urn_regset_ready(q), 1);
	assert_null(urn_regset_poll(q));
}

static void
messages_come_and_are_answered(void **state)
{
	const struct urn_abi_msg_entry *e;
	struct urn_regset s;

	(void)state;
	open_queue(&s);
	urn_regset_target(&s, port.gid, s.qid, 0, 0, 0);
	for (unsigned int i = 0; i < 2; i++) {
		memset(s.out, 'a' + (int)i, 32);
		urn_regset_send(&s, 0, 32);
		assert_int_equal(answer_of(&s), URN_MSG_DONE);
	}
	urn_regset_send(&s, 0, 32);
	assert_int_equal(answer_of(&s), URN_MSG_QUEUE_FULL);
	urn_regset_send(&s, 0, 33);
	assert_int_equal(answer_of(&s), URN_MSG_TOO_LONG);
	assert_int_equal(urn_regset_tail(&s), 2);
	assert_ptr_equal(urn_regset_at(&s, 2), urn_regset_at(&s, 0));
	for (unsigned int i = 0; i < 2; i++) {
		e = urn_regset_poll(&s);
		assert_non_null(e);
		assert_int_equal(e->len, 32);
		assert_true(e->qid == s.qid);
		assert_memory_equal(e->node, port.gid, 16);
		assert_int_equal(*(const uint8_t *)(e + 1), 'a' + (int)i);
		urn_regset_next(&s);
	}
	assert_null(urn_regset_poll(&s));
	urn_regset_send(&s, 0, 32);
	assert_int_equal(answer_of(&s), URN_MSG_QUEUE_FULL); /* the entries were not given back yet */
	urn_regset_give(&s);
	urn_regset_send(&s, 0, 32);
	assert_int_equal(answer_of(&s), URN_MSG_DONE);
	urn_regset_close(&s);
	urn_regset_close(&s);
}

static void
failures_are_told(void **state)
{
	struct urn_regset_want huge = {.send_bytes = 1ull << 40}, odd = {.entries = 3, .recv_size = 8};
	struct urn_regset s;

	(void)state;
	assert_int_equal(urn_regset_open(&s, &port, &huge, &err), -1);
	assert_non_null(strstr(err.text, "cannot make a register set"));
	urn_regset_close(&s);
	assert_int_equal(urn_regset_open(&s, &port, &odd, &err), 0);
	for (unsigned int i = 0; i < 1000 && urn_regset_ready(&s) == 0; i++)
		urn_node_turn(&node);
	assert_int_equal(urn_regset_ready(&s), -1);
	urn_regset_close(&s);
}

/* A dataplane that is not there is named, and an adapter without an address of the family. */
static void
ports_that_are_none(void **state)
{
	struct urn_msg_port p = {0};

	(void)state;
	assert_int_equal(urn_msg_port_attach(&p, "/nowhere/urnicd.sock", NULL, false, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere/urnicd.sock"));
	assert_int_equal(urn_msg_port_open(&p, urn_dp_attach(node.rig.dp, 0, &err), true, &err), -1);
	assert_non_null(strstr(err.text, "no address of IPv6"));
	urn_msg_port_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_and_are_answered),
		cmocka_unit_test(failures_are_told),
		cmocka_unit_test(ports_that_are_none),
	};

	return cmocka_run_group_tests_name("msg_port", tests, up, down);
}
