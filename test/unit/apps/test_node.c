/* SPDX-License-Identifier: BSD-3-Clause */
/* One node: an embedded context, whose engine a thread of the node's polls; and
 * none to attach to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/node.h"

#include <string.h>

static struct urn_err err;

static void
embedded(void **state)
{
	struct urn_node_config cfg = {.name = "n",
				      .adapter = {.ipv4 = {10, 0, 0, 1}},
				      .thread = true,
				      .idle = URN_IDLE_SLEEP};
	struct urn_counters c;
	static struct urn_node n;
	struct ibv_cq *cq;
	uint64_t lost = 1;

	(void)state;
	strcpy(cfg.port.device, "net_null0");
	assert_int_equal(urn_node_start(&n, "test_node", &err), 0);
	assert_int_equal(urn_node_open(&n, &cfg, &err), 0);
	assert_non_null(n.ctx);
	assert_non_null(n.port);
	/* The call is answered: the thread polls. */
	cq = ibv_create_cq(n.ctx, 8, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_true(urn_node_link(&n, false));
	urn_node_counters(&n, &c);
	assert_int_equal(c.v[URN_C_TIMEOUTS], 0);
	assert_int_equal(urn_node_close(&n, &lost, &err), 0);
	assert_int_equal(lost, 0);
	assert_null(n.ctx);
}

/* Attached: no EAL, no engine; a dataplane that is not there is named. */
static void
attached(void **state)
{
	struct urn_node_config cfg = {.attach = "/nowhere/urnicd.sock"};
	struct urn_counters c;
	struct urn_node n = {0};

	(void)state;
	assert_int_equal(urn_node_open(&n, &cfg, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere/urnicd.sock"));
	assert_int_equal(urn_node_turn(&n), 0);
	assert_true(urn_node_link(&n, true));
	urn_node_counters(&n, &c);
	assert_int_equal(c.v[URN_C_TIMEOUTS], 0);
	assert_int_equal(urn_node_close(&n, NULL, &err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attached),
		cmocka_unit_test(embedded),
	};

	return cmocka_run_group_tests_name("common_node", tests, NULL, NULL);
}
