/* SPDX-License-Identifier: BSD-3-Clause */
/* The report on switches: counters of the queues, each by its priority and its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "engine/engine.h"
#include "report/report_out.h"
#include "report/report_priv.h"
#include "switch/fabric.h"

#include <string.h>

/* There is no engine: the test's thread looks at the switch. */
void __wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);

void
__wrap_urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg)
{
	(void)e;
	fn(arg);
}

static struct urn_switch *sw;
static struct urn_fabric *fabric;
static struct urn_report_buf out;

static int
setup(void **state)
{
	const struct urn_switch_config sc = {.name = "wire"};
	const struct urn_switch_port_config pc = {.name = "x"};

	(void)state;
	sw = urn_switch_create(&sc);
	fabric = urn_fabric_create(NULL);
	assert_non_null(fabric);
	assert_int_equal(urn_switch_add_port(sw, &pc), 0);
	assert_int_equal(urn_fabric_add(fabric, sw), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	urn_report_buf_free(&out);
	urn_fabric_destroy(fabric); /* and the switch, which is the fabric's */
	return 0;
}

/* The report on the switch, a field a line. */
static const char *
report(bool all)
{
	struct urn_dp dp = {.engines_n = 1};
	const struct urn_report_switch one = {.sw = sw, .fabric = fabric};
	const struct urn_report_source src = {.dp = &dp, .sw = &one, .switches = 1};
	struct urn_report_query q = {.name = "wire", .all = all};
	struct urn_report_text text;
	struct urn_err err;

	urn_report_buf_free(&out);
	urn_report_text_init(&text, &out);
	assert_int_equal(urn_report_switches(&src, &q, &text.sink, &err), URN_REPORT_DONE);
	urn_report_text_flush(&text);
	urn_report_text_free(&text);
	assert_non_null(out.data);
	return out.data;
}

static void
queues_by_priority(void **state)
{
	(void)state;
	assert_null(strstr(report(false), "queue0"));
	urn_switch_pause(sw, 0, 5, true, 0);
	urn_switch_pause(sw, 0, 5, false, 1);
	urn_switch_pause(sw, 0, 5, true, 2);
	assert_non_null(strstr(report(false), "queue5_pauses          2\n"));
	assert_null(strstr(out.data, "queue5_waited"));
	assert_null(strstr(out.data, "queue0"));
	/* All: zeros, too. */
	assert_non_null(strstr(report(true), "queue0_drop_frames     0\n"));
	assert_non_null(strstr(out.data, "queue7_marked          0\n"));
	assert_non_null(strstr(out.data, "queue5_pauses          2\n"));
}

/* The queues of a lossless switch: bytes, most bytes, accounts, and the state of a priority. */
static void
lossless_queues(void **state)
{
	struct urn_switch_config cfg = {.name = "wire", .no_learning = true};
	const struct urn_switch_port_config pc = {.name = "x"};
	const struct urn_switch_port_config bare = {.name = "y", .pfc = URN_SWITCH_PFC_NO};
	struct rte_mbuf *m;

	(void)state;
	assert_null(strstr(report(false), "pfc                    yes\n")); /* a lossy switch */
	urn_lossless_preset(&cfg.lossless);
	cfg.lossless.priorities = 1;
	urn_fabric_destroy(fabric);
	fabric = urn_fabric_create(NULL);
	sw = urn_switch_create(&cfg);
	assert_int_equal(urn_fabric_add(fabric, sw), 0);
	assert_int_equal(urn_switch_add_port(sw, &pc), 0);
	assert_int_equal(urn_switch_add_port(sw, &pc), 1);
	assert_null(strstr(report(false), "queue0"));
	assert_non_null(strstr(out.data, "pfc                    yes\n"));
	urn_switch_pause(sw, 0, 0, true, 0);
	m = rte_pktmbuf_alloc(test_eal_pool());
	assert_non_null(m);
	memset(rte_pktmbuf_append(m, 100), 0, 100);
	urn_switch_input(sw, 1, &m, 1, 1);
	report(false);
	assert_non_null(strstr(out.data, "queue0_state           paused\n"));
	assert_non_null(strstr(out.data, "queue0_bytes           100\n"));
	assert_non_null(strstr(out.data, "queue0_frames          1\n"));
	assert_non_null(strstr(out.data, "queue0_peak            100\n"));
	/* The account is the other port's, where the frame came in. */
	assert_non_null(strstr(out.data, "queue0_account         100\n"));
	assert_non_null(strstr(out.data, "queue0_account_peak    100\n"));
	/* A priority that was never used has counters, and no state. */
	assert_null(strstr(report(true), "queue7_state"));
	assert_int_equal(urn_switch_add_port(sw, &bare), 2);
	assert_non_null(strstr(report(false), "pfc                    no\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queues_by_priority, setup, teardown),
		cmocka_unit_test_setup_teardown(lossless_queues, setup, teardown),
	};

	return cmocka_run_group_tests_name("report on switches", tests, NULL, NULL);
}
