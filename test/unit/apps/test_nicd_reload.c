/* SPDX-License-Identifier: BSD-3-Clause */
/* A reload whose change fails (urnicd/reload.h): each later one tries it again, until it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnicd/apply.h"
#include "urnicd/hangup.h"
#include "control/objects.h"
#include "urnicd/reload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[128];
static struct nicd_rig rig;
static struct nicd_reload *reload;
static struct urn_dp dp;
static struct urn_adapter *adapter[1]; /* a0 */
static const char *routes;	       /* lines of a0 */
static int answer;		       /* to a new impairment, or new routes */
static unsigned int asked;	       /* new impairments that the engine was given */
static char told[1000];		       /* changes of the last reload, ended by ";" */
static char why[200];		       /* reason of the last failure */

/* ---- replace apply.c, hangup.c, rig.c, adapter_net.c */

void
nicd_apply_engine(struct urn_engine *e, const struct urn_engine_config *cfg)
{
	(void)e;
	(void)cfg;
}

void
nicd_apply_adapter(const struct urn_adapter *a, uint32_t window, uint64_t rto_ns)
{
	(void)a;
	(void)window;
	(void)rto_ns;
}

int
nicd_apply_impair(const struct nicd_rig *r, unsigned int sw, uint16_t port, const bool dir[2],
		  const struct urn_impair_config *cfg)
{
	(void)r;
	(void)sw;
	(void)port;
	(void)dir;
	(void)cfg;
	asked++;
	return answer;
}

bool
nicd_hangup_taken(void)
{
	return false;
}

void
nicd_rig_limits(const struct urn_config *cfg, struct urn_server_config *out)
{
	(void)cfg;
	(void)out;
}

int __wrap_urn_adapter_set_routes(struct urn_adapter *a, const struct urn_neigh_route *route,
				  unsigned int n);

int
__wrap_urn_adapter_set_routes(struct urn_adapter *a, const struct urn_neigh_route *route,
			      unsigned int n)
{
	(void)a;
	(void)route;
	(void)n;
	return answer;
}

/* ---- */

static void
write_config(const char *lines)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fprintf(f,
		"[adapter a0]\nswitch = w\nipv4 = 10.0.0.1/24\n%s"
		"[adapter b0]\nswitch = w\nipv4 = 10.0.0.2\n[switch w]\n%s\n",
		routes, lines);
	fclose(f);
}

static void
found(void *ctx, const struct nicd_reload_change *c)
{
	size_t used = strlen(told);

	snprintf(why, sizeof(why), "%s", c->failed ? c->failed : "");

	(void)ctx;
	snprintf(told + used, sizeof(told) - used, "%s.%s.%s %s to %s%s;", c->kind, c->name,
		 c->key ? c->key : "*", c->from ? c->from : "-", c->to ? c->to : "-",
		 c->failed ? " failed"
		 : c->now  ? ""
			   : " later");
}

/* Reload a file with these lines for the switch. returns: the changes that were told */
static const char *
again(const char *lines)
{
	struct urn_err err;

	write_config(lines);
	told[0] = '\0';
	asked = 0;
	assert_int_equal(nicd_reload(reload, found, NULL, &err), 0);
	return told;
}

static int
setup(void **state)
{
	struct urn_config_errors errors = {0};
	struct urn_err err;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), P_tmpdir "/urnic-test.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	adapter[0] = calloc(1, sizeof(*adapter[0]));
	if (!adapter[0])
		return -1;
	snprintf(adapter[0]->cfg.name, sizeof(adapter[0]->cfg.name), "a0");
	dp.adapter = adapter;
	dp.adapters_n = 1;
	rig.base.dp = &dp;
	routes = "";
	write_config("impair a0.in = drop=1%");
	answer = 0;
	rig.cfg = urn_config_read(path, &errors);
	reload = rig.cfg ? nicd_reload_create(&rig, &err) : NULL;
	return reload ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	nicd_reload_free(reload);
	urn_config_free((struct urn_config *)(uintptr_t)rig.cfg);
	free(adapter[0]);
	return unlink(path);
}

/* The file stays as it is: the change is tried, and told of, until it is made; then no more. */
static void
tried_until_it_holds(void **state)
{
	(void)state;
	answer = -ENOMEM;
	assert_string_equal(again("impair a0.in = drop=2%"),
			    "switch.w.impair a0.in drop=1% to drop=2% failed;");
	assert_string_equal(again("impair a0.in = drop=2%"),
			    "switch.w.impair a0.in drop=1% to drop=2% failed;");
	assert_true(asked > 0);
	answer = 0;
	assert_string_equal(again("impair a0.in = drop=2%"),
			    "switch.w.impair a0.in drop=1% to drop=2%;");
	assert_true(asked > 0);
	assert_string_equal(again("impair a0.in = drop=2%"), "");
	assert_int_equal(asked, 0);
}

/* A failed value is replaced by another: that is tried alone, and the value that held is named. */
static void
another_value(void **state)
{
	(void)state;
	answer = -ENOMEM;
	(void)again("impair a0.in = drop=2%");
	assert_string_equal(again("impair a0.in = drop=3%"),
			    "switch.w.impair a0.in drop=1% to drop=3% failed;");
	answer = 0;
	assert_string_equal(again("impair a0.in = drop=4%"),
			    "switch.w.impair a0.in drop=1% to drop=4%;");
	assert_string_equal(again("impair a0.in = drop=4%"), "");
}

/* A failed value is taken back: the old one is set again, for one of several directions may have
 * the new one, and there is nothing to tell. */
static void
taken_back(void **state)
{
	(void)state;
	answer = -ENOMEM;
	(void)again("impair a0.in = drop=2%");
	answer = 0;
	assert_string_equal(again("impair a0.in = drop=1%"), "");
	assert_true(asked > 0);
	assert_string_equal(again("impair a0.in = drop=1%"), "");
	assert_int_equal(asked, 0);
}

/* Keys that come and go fail like others. */
static void
keys_that_come_and_go(void **state)
{
	(void)state;
	answer = -ENOMEM;
	assert_string_equal(again("impair b0.out = delay=1us"),
			    "switch.w.impair a0.in drop=1% to - failed;"
			    "switch.w.impair b0.out - to delay=1us failed;");
	answer = 0;
	assert_string_equal(again("impair b0.out = delay=1us"),
			    "switch.w.impair a0.in drop=1% to -;"
			    "switch.w.impair b0.out - to delay=1us;");
	assert_string_equal(again("impair b0.out = delay=1us"), "");
}

/* The sentence about routes that can't be set says why, and does not blame the router for all. */
static void
routes_that_fail(void **state)
{
	static const struct {
		int code;
		const char *says;
	} row[] = {{EEXIST, "a route has the prefix that is on the link"},
		   {EINVAL, "a router is not on the link"},
		   {0, ""}};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		answer = row[i].code;
		routes = "gateway = 10.0.0.254\n";
		assert_string_equal(again("impair a0.in = drop=1%"),
				    answer ? "adapter.a0.gateway - to 10.0.0.254 failed;"
					   : "adapter.a0.gateway - to 10.0.0.254;");
		assert_memory_equal(why, row[i].says, strlen(row[i].says));
		assert_int_equal(why[0] == 0, answer == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tried_until_it_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(another_value, setup, teardown),
		cmocka_unit_test_setup_teardown(taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_that_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(routes_that_fail, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
