/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on register sets: queues, names, counts; and clients that have sets and no queue
 * pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_rig.h"

#include <stdio.h>
#include <string.h>

enum { SETS = 40 };

static struct urn_abi_rep set[SETS];

static int
setup(void **state)
{
	rig_setup(state);
	for (unsigned int i = 0; i < SETS; i++) {
		struct urn_abi_req req = {.op = URN_CTL_MSG_OPEN,
					  .msg_open = {.comp_vector = i,
						       .flags = i ? 0 : URN_MSG_OPEN_NAMED,
						       .arena = 4096,
						       .channel_fd = -1}};

		set[i] = rig_ask(&req);
	}
	return 0;
}

static void
each_set_once(void **state)
{
	uint32_t id = LIST_FIRST(&rig_dp->adapter[0]->clients)->id;

	(void)state;
	for (uint32_t rows = 1; rows < 50; rows += 6) {
		rig_report(urn_report_msgs, 0, rows);
		assert_int_equal(rig_fields("set"), SETS);
	}
	rig_report(urn_report_msgs, id, 0);
	assert_int_equal(rig_fields("set"), SETS);
	rig_no_client(urn_report_msgs, id + 1);
}

static void
queue_and_answer(void **state)
{
	struct urn_abi_req req = {
		.op = URN_CTL_MSG_BIND, .handle = set[0].handle, .msg_bind = {.name = 0x35}};
	struct urn_abi_msg_set *r = rig_at(set[0].msg.off);
	char text[160];

	(void)state;
	rig_ask(&req);
	r->conf.entries = 4;
	r->conf.entry_size = 128;
	atomic_store(&r->conf.seq, 1);
	r->send.size = 1 << 30;
	atomic_store(&r->send.seq, 1);
	rig_ring(set[0].msg.db);
	rig_report(urn_report_msgs, 0, 0);
	snprintf(text, sizeof(text),
		 "\"queue\":\"0x%016llx\",\"name\":\"0x35\",\"state\":\"open\",\"entries\":4,"
		 "\"entry_bytes\":128,"
		 "\"head\":0,\"tail\":0,\"waiting\":0,\"sent\":1,\"answer\":\"bad-doorbell\"",
		 (unsigned long long)set[0].msg.qid);
	rig_has(text);
	rig_has("\"name\":\"\",\"state\":\"none\",\"entries\":0,");
	atomic_store(&r->ctrl.head, 77); /* a head that lies */
	rig_report(urn_report_msgs, 0, 0);
	rig_has("\"head\":77,\"tail\":0,\"waiting\":4,");
}

/* Register sets have doorbells as queue pairs do, and are counted apart. */
static void
clients_have_sets(void **state)
{
	(void)state;
	rig_report(urn_report_clients, 0, 0);
	rig_has("\"qps\":0,");
	rig_has("\"msg_sets\":40,");
	rig_report(urn_report_adapters, 0, 0);
	rig_has("\"msg_sets\":40,");
	rig_has("\"flows\":0");
}

/* All sets of an adapter in one sum, whatever heads their clients write; a message for a node that
 * is looked for. */
static void
totals(void **state)
{
	static const uint8_t node[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	struct urn_abi_msg_set *r = rig_at(set[0].msg.off);
	struct urn_abi_msg_set *sender = rig_at(set[2].msg.off);
	struct urn_report_msg_totals t;
	struct urn_err err;

	(void)state;
	atomic_store(&r->ctrl.head, 77);
	assert_int_equal(urn_report_msg_totals(rig_dp->adapter[0], &t, &err), 0);
	assert_int_equal(t.sets, SETS);
	assert_int_equal(t.queues, 1);
	assert_int_equal(t.ring_bytes, 4 * 128);
	assert_int_equal(t.waiting, 4);
	assert_int_equal(t.waiting_bytes, 4 * 128);
	assert_int_equal(t.pending, 0);
	assert_int_equal(t.flows, 0);
	atomic_store(&r->ctrl.head, UINT32_MAX); /* one message before the tail */
	memcpy(sender->send.node, node, 16);
	sender->send.qid = URN_MSG_NAME(3);
	atomic_store(&sender->send.seq, 1);
	rig_ring(set[2].msg.db);
	assert_int_equal(urn_report_msg_totals(rig_dp->adapter[0], &t, &err), 0);
	assert_int_equal(t.waiting, 1);
	assert_int_equal(t.waiting_bytes, 128);
	assert_int_equal(t.pending, 1);
	assert_int_equal(t.flows, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_set_once),
		cmocka_unit_test(queue_and_answer),
		cmocka_unit_test(clients_have_sets),
		cmocka_unit_test(totals),
	};

	return cmocka_run_group_tests_name("msg", tests, setup, rig_teardown);
}
