/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of urnic-pingpong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-pingpong/pp.h"

/* Options that every command line needs, without the peer's address. */
#define NODE " --device net_tap0,iface=t0 --ip 10.0.0.9"

static struct pp_opts o;
static struct urn_err err;

/* Parse a command line given as one string. */
static enum pp_parse
parse(const char *line)
{
	static char copy[512]; /* options point into it */
	char *argv[40] = {"urnic-pingpong"}, *save = NULL;
	int argc = 1;

	strncpy(copy, line, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	err.text[0] = '\0';
	return pp_options_parse(argc, argv, &o, &err);
}

/* The line is refused, with a sentence that contains a word. */
static void
refused(const char *line, const char *word)
{
	assert_int_equal(parse(line), PP_EXIT_USAGE);
	if (strstr(err.text, word) == NULL)
		fail_msg("'%s': '%s' is not in \"%s\"", line, word, err.text);
}

static void
defaults(void **state)
{
	(void)state;
	assert_int_equal(parse("--peer h" NODE), PP_RUN);
	assert_false(o.listen);
	assert_string_equal(o.host, "h");
	assert_string_equal(o.service, "18515");
	assert_string_equal(o.device, "net_tap0,iface=t0");
	assert_int_equal(o.size, 4096);
	assert_int_equal(o.iters, 1000);
	assert_int_equal(o.mtu, 1024);
	assert_int_equal(o.rx_depth, 500);
	assert_int_equal(o.timeout, 14);
	assert_int_equal(o.gid, 1);
	assert_false(o.no_check);
	assert_false(o.json);
}

static void
where(const char *option, const char *arg, const char *host, const char *service)
{
	char line[512];

	snprintf(line, sizeof(line), "%s %s" NODE, option, arg);
	if (host == NULL) {
		refused(line, option);
		return;
	}
	assert_int_equal(parse(line), PP_RUN);
	assert_string_equal(o.host, host);
	assert_string_equal(o.service, service);
}

static void
where_the_peer_is(void **state)
{
	char long_name[300];

	(void)state;
	where("--peer", "10.0.0.2:7", "10.0.0.2", "7");
	where("--peer", "fd77::b", "fd77::b", "18515");
	where("--peer", "[fd77::b]", "fd77::b", "18515");
	where("--peer", "[fd77::b]:65535", "fd77::b", "65535");
	where("--listen", "7", "", "7");
	where("--listen", "10.0.0.2:7", "10.0.0.2", "7");
	where("--listen", "[::1]:7", "::1", "7");
	where("--peer", "h:", NULL, NULL);
	where("--peer", ":7", NULL, NULL);
	where("--peer", "h:0", NULL, NULL);
	where("--peer", "h:65536", NULL, NULL);
	where("--peer", "[]:7", NULL, NULL);
	where("--peer", "[fd77::b", NULL, NULL);
	where("--peer", "[fd77::b]7", NULL, NULL);
	where("--listen", "h", NULL, NULL);
	where("--listen", "fd77::b", NULL, NULL);
	where("--listen", "[::1]", NULL, NULL);
	memset(long_name, 'h', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	where("--peer", long_name, NULL, NULL);
	assert_int_equal(parse("--listen 7" NODE), PP_RUN);
	assert_true(o.listen);
	refused("--listen 7 --peer h" NODE, "one of");
	refused(NODE, "--peer HOST");
}

/* The GID follows the addresses that are given. */
static void
addresses(void **state)
{
	static const uint8_t v6[16] = {0xfd, 0x77, [15] = 9};

	(void)state;
	assert_int_equal(parse("--peer h --device d --ip 10.0.0.9"), PP_RUN);
	assert_int_equal(o.gid, 1);
	assert_memory_equal(o.ipv4, ((uint8_t[]){10, 0, 0, 9}), 4);
	assert_int_equal(parse("--peer h --device d --ip fd77::9"), PP_RUN);
	assert_int_equal(o.gid, 2);
	assert_memory_equal(o.ipv6, v6, 16);
	assert_int_equal(parse("--peer h --device d --ip fd77::9 --ip 10.0.0.9"), PP_RUN);
	assert_int_equal(o.gid, 1);
	assert_int_equal(parse("--peer h --device d --ip fd77::9 --ip 10.0.0.9 --gid 2"), PP_RUN);
	assert_int_equal(o.gid, 2);
	assert_int_equal(parse("--peer h --device d --gid 0"), PP_RUN);
	assert_int_equal(o.gid, 0);
	refused("--peer h --device d", "no IPv4");
	refused("--peer h --device d --ip 10.0.0.9 --gid 2", "no IPv6");
	refused("--peer h --device d --ip fd77::9 --gid 1", "no IPv4");
	refused("--peer h --device d --ip 10.0.0.9 --ip 10.0.0.8", "already");
	refused("--peer h --device d --ip 10.0.0", "--ip 10.0.0:");
	refused("--peer h --device d --ip 0.0.0.0", "--ip 0.0.0.0");
	refused("--peer h --device d --ip ::", "--ip ::");
	refused("--peer h --device d --ip fd77::g", "--ip fd77::g");
	refused("--peer h" NODE " --gid 3", "--gid 3");
	assert_int_equal(parse("--peer h" NODE " --mac 02:00:00:00:00:09"), PP_RUN);
	assert_memory_equal(o.mac, ((uint8_t[]){2, 0, 0, 0, 0, 9}), 6);
	refused("--peer h" NODE " --mac 03:00:00:00:00:09", "--mac"); /* a multicast address */
	refused("--peer h" NODE " --mac 00:00:00:00:00:00", "--mac");
	refused("--peer h" NODE " --mac 02:00:00:00:00", "--mac");
	refused("--peer h" NODE " --mac 02:00:00:00:00:0g", "--mac");
}

static void
numbers(void **state)
{
	(void)state;
	assert_int_equal(parse("--peer h" NODE " --size 1M --iters 7 --mtu 4096 --rx-depth 3 --timeout 0 "
			       "--wait 1.5 --linger 0 --idle spin --no-check --json --capture f"),
			 PP_RUN);
	assert_int_equal(o.size, 1 << 20);
	assert_int_equal(o.iters, 7);
	assert_int_equal(o.mtu, 4096);
	assert_int_equal(o.rx_depth, 3);
	assert_int_equal(o.timeout, 0);
	assert_int_equal(o.wait_ns, 1500000000);
	assert_int_equal(o.linger_ns, 0);
	assert_int_equal(o.idle, URN_IDLE_SPIN);
	assert_true(o.no_check);
	assert_true(o.json);
	assert_string_equal(o.capture, "f");
	refused("--peer h" NODE " --size 0", "--size 0");
	refused("--peer h" NODE " --size 2G", "--size 2G");
	refused("--peer h" NODE " --iters 0", "--iters 0");
	refused("--peer h" NODE " --mtu 1000", "--mtu 1000");
	refused("--peer h" NODE " --mtu 8192", "--mtu 8192");
	refused("--peer h" NODE " --rx-depth 0", "--rx-depth 0");
	refused("--peer h" NODE " --rx-depth 32769", "--rx-depth");
	refused("--peer h" NODE " --timeout 32", "--timeout 32");
	refused("--peer h" NODE " --wait 0", "--wait 0");
	refused("--peer h" NODE " --wait 3601", "--wait 3601");
	refused("--peer h" NODE " --linger x", "--linger x");
	refused("--peer h" NODE " --idle never", "--idle never");
}

static void
what_is_no_option(void **state)
{
	(void)state;
	refused("--peer h" NODE " --qps 3", "--qps");
	refused("--peer h" NODE " --size", "--size");
	refused("--peer h" NODE " word", "word");
	refused("--peer h --ip 10.0.0.9", "--device");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),  cmocka_unit_test(where_the_peer_is),
		cmocka_unit_test(addresses), cmocka_unit_test(numbers),
		cmocka_unit_test(what_is_no_option),
	};

	return cmocka_run_group_tests_name("pp_options", tests, NULL, NULL);
}
