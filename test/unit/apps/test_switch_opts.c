/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-switch's command line: names, devices, links, and options that belong together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-switch/opts.h"

static struct sw_opts o;
static struct urn_err err, why;

static enum sw_parse
parse(const char *line)
{
	static char copy[8192];
	char *argv[256] = {"urnic-switch"}, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	err.text[0] = '\0';
	return sw_opts_parse(argc, argv, &o, &err);
}

static void
defaults_fit(void **state)
{
	(void)state;
	assert_int_equal(parse("--port tap:left --port memif:/tmp/x,client"), SW_RUN);
	assert_int_equal(o.sws, 1);
	assert_string_equal(o.sw[0], "s0");
	assert_int_equal(o.ports, 2);
	assert_int_equal(o.devices, 2);
	assert_string_equal(o.port[0].name, "left");
	assert_string_equal(o.port[0].device, "net_tap0,iface=left");
	assert_string_equal(o.port[1].name, "memif1");
	assert_string_equal(o.port[1].device, "net_memif1,role=client,socket=/tmp/x");
	assert_int_equal(o.mbufs, 4096);
	assert_int_equal(o.idle, URN_IDLE_SLEEP);
	assert_int_equal(o.core, -1);
	assert_false(o.json || o.every.sw.no_learning || o.duration_ns || o.interval_ns);
}

static void
switches_and_links(void **state)
{
	(void)state;
	assert_int_equal(
		parse("--switch l --port tap:a --switch r --port x=tap:b --port "
		      "dev:0000:3b:00.0 --link l,r --impair l-r.out:drop=1 --impair "
		      "x:dup=2,seed=4 --impair a.in:delay=1ms --static x,02:00:00:00:aa:BB "
		      "--json --no-learning --age 10 --duration 1.5 --interval 200ms --idle "
		      "spin --mbufs 2048"),
		SW_RUN);
	assert_int_equal(o.sws, 2);
	assert_int_equal(o.ports, 5);
	assert_int_equal(o.devices, 3);
	assert_int_equal(o.port[0].sw, 0);
	assert_int_equal(o.port[1].sw, 1);
	assert_string_equal(o.port[1].name, "x");
	assert_string_equal(o.port[2].device, "0000:3b:00.0");
	assert_string_equal(o.port[2].name, "port2");
	assert_string_equal(o.port[3].name, "l-r");
	assert_string_equal(o.port[4].name, "r-l");
	assert_string_equal(o.port[4].device, "");
	assert_int_equal(o.port[4].sw, 1);
	assert_int_equal(o.link[0].port[0], 3);
	assert_int_equal(o.link[0].port[1], 4);
	assert_true(o.port[3].impair[URN_SWITCH_OUT].drop == 0.01);
	assert_true(o.port[3].impair[URN_SWITCH_IN].drop == 0);
	assert_true(o.port[1].impair[URN_SWITCH_IN].dup == 0.02);
	assert_int_equal(o.port[1].impair[URN_SWITCH_OUT].seed, 4);
	assert_int_equal(o.port[0].impair[URN_SWITCH_IN].delay_ns, 1000000);
	assert_int_equal(o.port[0].impair[URN_SWITCH_OUT].delay_ns, 0);
	assert_int_equal(o.fixed[0].port, 1);
	assert_memory_equal(o.fixed[0].mac, ((uint8_t[]){2, 0, 0, 0, 0xaa, 0xbb}), 6);
	assert_true(o.json && o.every.sw.no_learning);
	assert_true(o.every.sw.fdb.age_ns == 10000000000 && o.duration_ns == 1500000000);
	assert_int_equal(o.interval_ns, 200000000);
	assert_int_equal(o.idle, URN_IDLE_SPIN);
	assert_int_equal(o.mbufs, 2048);
}

/* The largest numbers, and one more. */
static void
bounds_hold(void **state)
{
	char line[8192] = "";
	size_t n = 0;

	(void)state;
	for (unsigned int i = 0; i < SW_MAX_PORTS; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "--port dev:net_null%u ", i);
	assert_int_equal(parse(line), SW_RUN);
	snprintf(line + n, sizeof(line) - n, "--port dev:net_null99");
	assert_int_equal(parse(line), SW_EXIT_USAGE);
	n = 0;
	for (unsigned int i = 0; i < URN_FABRIC_MAX_SWITCHES; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "--switch s%u ", i);
	snprintf(line + n, sizeof(line) - n, "--switch s64");
	assert_int_equal(parse(line), SW_EXIT_USAGE);
	assert_non_null(strstr(err.text, "64 switches"));
	/* One link more than a tree has. */
	n = (size_t)snprintf(line, sizeof(line), "--port tap:a ");
	for (unsigned int i = 1; i < 12; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "--switch s%u ", i);
	for (unsigned int i = 0, k = 0; i < 12 && k <= SW_MAX_LINKS; i++) {
		for (unsigned int j = i + 1; j < 12 && k <= SW_MAX_LINKS; j++, k++)
			n += (size_t)snprintf(line + n, sizeof(line) - n, "--link s%u,s%u ", i, j);
	}
	assert_int_equal(parse(line), SW_EXIT_USAGE);
	assert_non_null(strstr(err.text, "loop"));
}

static void
devices(void **state)
{
	char device[512], name[32];

	(void)state;
	assert_int_equal(sw_device("af_packet:eth0.5", 7, device, name, &err), 0);
	assert_string_equal(device, "net_af_packet7,iface=eth0.5");
	assert_string_equal(name, "eth0.5");
	assert_int_equal(sw_device("af_xdp:veth1", 1, device, name, &err), 0);
	assert_string_equal(device, "net_af_xdp1,iface=veth1");
	assert_int_equal(sw_device("memif:/run/a", 0, device, name, &err), 0);
	assert_string_equal(device, "net_memif0,role=server,socket=/run/a");
	assert_int_equal(sw_device("memif:/run/a,b", 0, device, name, &err), -1);
	assert_int_equal(sw_device("memif:/run/a,client,id=2", 0, device, name, &err), -1);
	assert_int_equal(sw_device("tap:a,mac=fixed", 0, device, name, &err), -1);
	assert_int_equal(sw_device("tap:a/b", 0, device, name, &err), -1);
	assert_int_equal(sw_device("dev:", 0, device, name, &err), -1);
	assert_int_equal(sw_device("taps:a", 0, device, name, &err), -1);
	assert_int_equal(sw_device("", 0, device, name, &err), -1);
}

/* Priorities, their map, the numbers of accounts, and routes. */
static void
lossless(void **state)
{
	static const char *const wrong[] = {
		"--lossless 8", "--lossless",	"--dscp 8:1",	      "--dscp 3:64",
		"--dscp 3",	"--pcp 1:8",	"--pcp :1",	      "--xon 300k --lossless 3",
		"--share 1k",	"--watchdog 0", "--route b,10.0.0.1", "--route a,10.0.0",
		"--route a"};
	const struct urn_lossless_config *l = &o.every.sw.lossless;
	char line[128];

	(void)state;
	assert_int_equal(
		parse("--port tap:a --lossless 3,5-6 --dscp 3:26,48-49 --pcp 5:2 --share 16k "
		      "--xoff 100k --xon 90k --headroom 0 --queue 1M --watchdog 100ms "
		      "--restore 1 --no-pfc --route a,10.0.0.7 --route a,fe80::5"),
		SW_RUN);
	assert_int_equal(l->priorities, 0x68);
	assert_int_equal(l->map.dscp[26], 3);
	assert_int_equal(l->map.dscp[49], 3);
	assert_int_equal(l->map.dscp[50], 6);
	assert_int_equal(l->map.pcp[2], 5);
	assert_int_equal(l->share, 16384);
	assert_int_equal(l->xoff, 102400);
	assert_int_equal(l->xon, 92160);
	assert_int_equal(l->headroom, 0);
	assert_int_equal(l->queue, 1048576);
	assert_int_equal(l->watchdog_ns, 100000000);
	assert_int_equal(l->restore_ns, 1000000000);
	assert_true(l->no_pfc);
	assert_int_equal(o.routes, 2);
	assert_int_equal(o.route[0].gid[15], 7);
	assert_int_equal(o.route[1].gid[0], 0xfe);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(line, sizeof(line), "--port tap:a %s", wrong[i]);
		assert_int_equal(parse(line), SW_EXIT_USAGE);
	}
	/* A switch that is not told anything is lossy; its numbers are there all the same. */
	assert_int_equal(parse("--port tap:a"), SW_RUN);
	assert_int_equal(l->priorities, 0);
	assert_int_equal(l->xoff, 262144);
}

/* Options that keys of [switch] are, too, have the limits, presets and sentences of the schema. */
static void
schema(void **state)
{
	struct urn_config_switch preset;

	(void)state;
	urn_config_switch_init(&preset);
	assert_int_equal(parse("--port tap:a"), SW_RUN);
	assert_memory_equal(&o.every, &preset, sizeof(preset));
	assert_true(o.every.sw.fdb.age_ns == 300000000000);
	assert_int_equal(o.every.sw.fdb.max, 4096);
	assert_int_equal(parse("--port tap:a --age 1us"), SW_EXIT_USAGE);
	assert_int_equal(urn_config_switch_take(&preset, "age", "1us", &why), -1);
	assert_int_equal(strncmp(err.text, "--age 1us: ", 11), 0);
	assert_string_equal(err.text + 11, why.text);
	assert_int_equal(parse("--port tap:a --static a,03:00:00:00:00:01"), SW_EXIT_USAGE);
	assert_int_equal(parse("--port a.b=tap:a"), SW_EXIT_USAGE);
	assert_int_equal(parse("--port tap:a --kmax 200000 --kmin 1k --pmax 2.5%"), SW_RUN);
	assert_true(o.every.sw.mark.kmax == 200000 && o.every.sw.mark.kmin == 1024);
	assert_true(o.every.sw.mark.pmax == 0.025);
	assert_int_equal(parse("--port tap:a --kmax 1k"), SW_EXIT_USAGE); /* below kmin */
	assert_non_null(strstr(err.text, "kmin must not be above kmax"));
	assert_int_equal(parse("--port af_packet:eth0.5 --impair eth0.5.out:drop=1"), SW_RUN);
	assert_true(o.port[0].impair[URN_SWITCH_OUT].drop == 0.01);
	assert_true(o.port[0].impair[URN_SWITCH_IN].drop == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_fit), cmocka_unit_test(switches_and_links),
		cmocka_unit_test(bounds_hold),	cmocka_unit_test(devices),
		cmocka_unit_test(lossless),	cmocka_unit_test(schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
