/* SPDX-License-Identifier: BSD-3-Clause */
/* One rig: everything that a configuration names is there, and goes away whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/rig.h"
#include "control/objects.h"
#include "pmd_glue/eal.h"

#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct urn_rig_opts opts = {.program = "test_rig"};
static struct urn_err err;

/* Add what a program may make and no file has: two ports without a device, the ends of a pair of
 * rings. */
static void
add_pair(struct urn_config *cfg)
{
	assert_int_equal(cfg->ports, 0);
	free(cfg->port);
	cfg->port = calloc(2, sizeof(*cfg->port));
	assert_non_null(cfg->port);
	for (; cfg->ports < 2; cfg->ports++) {
		struct urn_config_port *p = &cfg->port[cfg->ports];

		strcpy(p->port.name, cfg->ports ? "B" : "A");
		p->port.queues = 1;
		p->port.mbufs = 2048;
		p->sw = -1;
	}
}

/* A frame that is sent at one port arrives at the other. */
static void
check_pair(const struct urn_rig *rig)
{
	struct rte_mbuf *m[1] = {rte_pktmbuf_alloc(rig->port[0]->pool)};

	assert_non_null(m[0]);
	assert_non_null(rte_pktmbuf_append(m[0], 64));
	assert_int_equal(urn_port_tx(rig->port[0], 0, m, 1), 1);
	assert_int_equal(urn_port_rx(rig->port[1], 0, m, 1), 1);
	rte_pktmbuf_free(m[0]);
}

/* A program's runs each have a dataplane of their own on ports that stay up. */
static void
check_runs(struct urn_rig *rig)
{
	assert_true(urn_rig_links_up(rig));
	urn_rig_dataplane_down(rig);
	assert_null(rig->dp);
	urn_rig_dataplane_down(rig);
	check_pair(rig);
	assert_int_equal(urn_rig_dataplane(rig, &err), 0);
	assert_non_null(urn_dp_engine(rig->dp, 0));
}

/* A file's switch with two adapters on it, and a program's pair of ports. */
static void
all_that_is_named(void **state)
{
	static const char text[] = "[switch s]\n"
				   "[adapter a]\nswitch = s\nnode = a\nipv4 = 10.0.0.1\n"
				   "[adapter b]\nswitch = s\nnode = b\nipv4 = 10.0.0.2\n";
	struct urn_config_errors errors = {0};
	struct urn_config *cfg = urn_config_parse(text, sizeof(text) - 1, "text", &errors);
	struct urn_rig rig;

	(void)state;
	assert_non_null(cfg);
	add_pair(cfg);
	assert_int_equal(urn_rig_start(&rig, cfg, &opts, &err), 0);
	assert_int_equal(urn_rig_ports(&rig, &err), 0);
	assert_int_equal(urn_rig_dataplane(&rig, &err), 0);
	assert_non_null(rig.dp);
	assert_non_null(rig.fabric[0]);
	assert_int_equal(urn_switch_ports(rig.sw[0]), 2);
	assert_string_equal(urn_switch_port_name(rig.sw[0], 1), "b");
	assert_non_null(rig.ring[0][0]);
	check_pair(&rig);
	check_runs(&rig);
	assert_int_equal(urn_rig_down(&rig, NULL, &err), 0);
	assert_null(rig.dp);
	assert_null(rig.copies);
	assert_true(rig.eal_up);
	assert_int_equal(urn_rig_close(&rig, NULL, &err), 0);
	assert_false(rig.eal_up);
	urn_config_free(cfg);
}

/* Bring a configuration up, in a process of its own: the EAL starts once in a process. returns:
 * true: its adapter `i` sends and takes frames without ICRC */
static bool
leaves_out(const char *text, unsigned int i)
{
	enum { NO = 10, YES = 11 };
	struct urn_config_errors errors = {0};
	struct urn_config *cfg = urn_config_parse(text, strlen(text), "text", &errors);
	struct urn_rig rig;
	int status;
	pid_t pid;

	assert_non_null(cfg);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		unsigned int e = cfg->adapter[i].adapter.engines >> 1 & 1;

		if (urn_rig_start(&rig, cfg, &opts, &err) || urn_rig_ports(&rig, &err) ||
		    urn_rig_dataplane(&rig, &err)) {
			fprintf(stderr, "%s\n", err.text);
			_exit(1);
		}
		status = rig.dp->adapter[i]->shard[e]->tp->unsealed ? YES : NO;
		_exit(urn_rig_close(&rig, NULL, &err) == 0 ? status : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), NO, YES);
	urn_config_free(cfg);
	return WEXITSTATUS(status) == YES;
}

#define ADAPTERS                                               \
	"[adapter a]\nswitch = s\nnode = a\nipv4 = 10.0.0.1\n" \
	"[adapter b]\nswitch = s\nnode = b\nipv4 = 10.0.0.2\n"
#define TWO "[switch s]\n" ADAPTERS

/*
 * Adapters over a switch of their only engine make no ICRCs. Adapters of another engine, or of
 * several, do; those without ICRC have none to leave out; and a port on the switch changes it for
 * all.
 */
static void
icrc_left_out(void **state)
{
	(void)state;
	assert_true(leaves_out(TWO, 0));
	assert_true(leaves_out(TWO, 1));
	assert_false(leaves_out(TWO "icrc = no\n", 1));
	assert_false(leaves_out(TWO "engines = 1\n[engine 0]\n[engine 1]\n", 1));
	assert_false(leaves_out(TWO "engines = 1\n[engine 0]\n[engine 1]\n", 0));
	/* The first adapter is its engine's alone, and its frames go to another engine. */
	assert_false(leaves_out(
		"[switch s]\nengine = 0\n[adapter a]\nswitch = s\nnode = a\nipv4 = 10.0.0.1\n"
		"engines = 0\n[adapter b]\nswitch = s\nnode = b\nipv4 = 10.0.0.2\nengines = 1\n"
		"[engine 0]\n[engine 1]\n",
		0));
	assert_false(
		leaves_out("[switch s]\nports = p\n[port p]\ndevice = net_null0\n" ADAPTERS, 0));
}

/* Start a rig in a process of its own, and its ports if they are to come up. returns: true: all
 * went well, and check() says so */
static bool
started(const char *text, bool ports, bool (*check)(const struct urn_rig *rig))
{
	struct urn_config_errors errors = {0};
	struct urn_config *cfg = urn_config_parse(text, strlen(text), "text", &errors);
	struct urn_rig rig;
	int status;
	pid_t pid;

	if (cfg == NULL)
		fail_msg("%s", errors.n ? errors.error[0].text : "no memory");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (urn_rig_start(&rig, cfg, &opts, &err) || (ports && urn_rig_ports(&rig, &err))) {
			fprintf(stderr, "%s\n", err.text);
			_exit(1);
		}
		status = check(&rig) ? 0 : 1;
		_exit(urn_rig_close(&rig, NULL, &err) == 0 ? status : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	urn_config_free(cfg);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Twice 1024 transmit descriptors of each queue, and 2048 for users. */
static bool
hold_for_both(const struct urn_rig *rig)
{
	return rig->port[0]->pool->size == 8191 && rig->port[1]->pool->size == 8191;
}

/* Memory for the pools of a card with 8 queues, 2 * 1024 descriptors each, and of the other port.
 */
static bool
memory_for_card(const struct urn_rig *rig)
{
	struct rte_malloc_socket_stats s;

	(void)rig;
	return rte_malloc_get_socket_stats(0, &s) == 0 &&
	       s.heap_totalsz_bytes >> 20 >= urn_eal_memory_mb(32767 + 16383);
}

static void
pools(void **state)
{
	(void)state;
	assert_true(started("[port p0]\ndevice = net_null0\nqueues = 2\n"
			    "[port p1]\ndevice = net_null1\nqueues = 2\n"
			    "[adapter a]\nport = p0, p1\nnode = a\nipv4 = 10.0.0.1\n",
			    true, hold_for_both));
	assert_true(started("[port p0]\ndevice = 0000:ff:1f.7\nqueues = 8\n"
			    "[port p1]\ndevice = net_null0\nqueues = 8\n"
			    "[adapter a]\nport = p0\nnode = a\nipv4 = 10.0.0.1\n"
			    "[adapter b]\nport = p1\nnode = b\nipv4 = 10.0.0.2\n",
			    false, memory_for_card));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc_left_out),
		cmocka_unit_test(pools),
		cmocka_unit_test(all_that_is_named),
	};

	return cmocka_run_group_tests_name("common_rig", tests, NULL, NULL);
}
