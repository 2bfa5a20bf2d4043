/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on endpoints of remote memory access (AM-2, AM-9): commands, operations, errors,
 * regions; and clients that have endpoints and no queue pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_rig.h"

#include "abi/am.h"

#include <stdio.h>
#include <string.h>

enum { EPS = 20, ENTRIES = 4, RANGES = 8, MEM = 8192 };

static struct urn_abi_rep ep[EPS];
static uint32_t pd, lkey;
static uint8_t mem[MEM] __attribute__((aligned(4096)));

static int
setup(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};

	rig_setup(state);
	pd = rig_ask(&req).handle;
	req = (struct urn_abi_req){.op = URN_CTL_REG_MR,
				   .reg_mr = {.pd = pd,
					      .access = URN_ACCESS_LOCAL_WRITE,
					      .addr = (uintptr_t)mem,
					      .iova = (uintptr_t)mem,
					      .length = MEM}};
	lkey = rig_ask(&req).mr.lkey;
	for (unsigned int i = 0; i < EPS; i++) {
		req = (struct urn_abi_req){.op = URN_CTL_AM_OPEN,
					   .am_open = {i % 2, ENTRIES, RANGES, pd}};
		ep[i] = rig_ask(&req);
	}
	return 0;
}

/* Register the first n KiB of the memory, in ranges with gaps. flags: like am_reg's */
static void
register_memory(unsigned int i, uint32_t n, uint32_t flags)
{
	struct urn_abi_am_range *list = urn_am_ranges(rig_at(ep[i].am.off), ENTRIES);
	struct urn_abi_req req = {.op = URN_CTL_AM_REG,
				  .handle = ep[i].handle,
				  .am_reg = {URN_AM_ACCESS_READ, flags, n}};

	for (uint32_t k = 0; k < n; k++)
		list[k] = (struct urn_abi_am_range){(uintptr_t)mem + 1024 * k, 1000, lkey, 0};
	rig_ask(&req);
}

/* Write `len` bytes to an endpoint of another node, which does not answer. */
static void
command(unsigned int i, uint32_t len)
{
	static const uint8_t node[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
	struct urn_abi_am_ep *e = rig_at(ep[i].am.off);
	uint32_t n = atomic_load(&e->client.commands);

	urn_am_cmds(e)[n % ENTRIES] = (struct urn_abi_am_cmd){.op = URN_AM_WRITE,
							      .len = len,
							      .qid = ep[i].am.qid,
							      .remote = 4096,
							      .local = (uintptr_t)mem,
							      .lkey = lkey,
							      .id = n};
	memcpy(urn_am_cmds(e)[n % ENTRIES].node, node, sizeof(node));
	atomic_store(&e->client.commands, n + 1);
	rig_ring(ep[i].am.db);
}

static void
each_endpoint_once(void **state)
{
	uint32_t id = LIST_FIRST(&rig_dp->adapter[0]->clients)->id;

	(void)state;
	for (uint32_t rows = 1; rows < 30; rows += 6) {
		rig_report(urn_report_ams, 0, rows);
		assert_int_equal(rig_fields("endpoint"), EPS);
	}
	rig_report(urn_report_ams, id, 0);
	assert_int_equal(rig_fields("endpoint"), EPS);
	rig_no_client(urn_report_ams, id + 1);
}

/* Operations that fail, that are under way, and that wait; and indices that lie. */
static void
operations(void **state)
{
	struct urn_abi_am_ep *e = rig_at(ep[0].am.off);
	char text[320];

	(void)state;
	command(0, 0);
	command(0, 100);
	rig_report(urn_report_ams, 0, 0);
	snprintf(text, sizeof(text),
		 "{\"endpoint\":%u,\"adapter\":\"a0\",\"client\":1,\"engine\":0,"
		 "\"number\":\"0x%016llx\",\"entries\":4,\"commands\":2,\"waiting\":0,"
		 "\"under_way\":1,\"packets\":1,\"done\":0,\"failed\":1,"
		 "\"last_error\":\"bad-command\",\"may_be_there\":false,\"refused\":0,\"last_"
		 "refusal\":\"\",\"unread\":1,"
		 "\"regions\":0,\"ranges\":0,\"no_key\":false}",
		 ep[0].handle, (unsigned long long)ep[0].am.qid);
	rig_has(text);
	rig_has("\"done\":0,\"failed\":0,\"last_error\":\"\",\"may_be_there\":false,\"refused\":0,"
		"\"last_refusal\":\"\",\"unread\":0,");
	/* The ring of events has no room for the third of them. */
	command(0, 100);
	command(0, 100);
	command(0, 100);
	rig_report(urn_report_ams, 0, 0);
	rig_has("\"commands\":4,\"waiting\":1,\"under_way\":3,");
	atomic_store(&e->client.commands, 77000);
	atomic_store(&e->client.events, 77000);
	rig_report(urn_report_ams, 0, 0);
	rig_has("\"commands\":4,\"waiting\":4,");
	rig_has("\"unread\":4,");
}

static void
regions(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_DEREG, .handle = ep[2].handle};

	(void)state;
	register_memory(2, 3, 0);
	register_memory(2, 2, URN_AM_REG_SPACE);
	rig_report(urn_report_ams, 0, 0);
	rig_has("\"regions\":2,\"ranges\":5,\"no_key\":true");
	rig_ask(&req);
	rig_report(urn_report_ams, 0, 0);
	rig_has("\"regions\":1,\"ranges\":3,\"no_key\":false");
}

/* Endpoints have doorbells as queue pairs do, and are counted apart, also when one has gone. */
static void
clients_have_endpoints(void **state)
{
	struct urn_abi_req req = {.op = URN_CTL_AM_CLOSE, .handle = ep[EPS - 1].handle};

	(void)state;
	rig_report(urn_report_clients, 0, 0);
	rig_has("\"qps\":0,");
	rig_has("\"am_endpoints\":20,");
	rig_ask(&req);
	rig_report(urn_report_clients, 0, 0);
	rig_has("\"qps\":0,");
	rig_has("\"am_endpoints\":19,");
	rig_report(urn_report_adapters, 0, 0);
	rig_has("\"am_endpoints\":19,");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_endpoint_once),
		cmocka_unit_test(operations),
		cmocka_unit_test(regions),
		cmocka_unit_test(clients_have_endpoints),
	};

	return cmocka_run_group_tests_name("am", tests, setup, rig_teardown);
}
