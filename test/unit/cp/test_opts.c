/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: accepted options, and exit code 2 for all others. */
#include "cp_test.h"

#include "opts.h"

#include "common/options.h"

static int
parse(struct cp_opts *o, const char *line)
{
	/* The options point into both. */
	static char words[512], *argv[32];
	int argc = 1;

	memset(argv, 0, sizeof(argv));
	argv[0] = "urnic-cp";
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " "))
		argv[argc++] = w;
	return cp_opts_parse(argc, argv, o);
}

static void
test_defaults(void **state)
{
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "a b"), -1);
	assert_int_equal(o.role, CP_PAIR);
	assert_int_equal(o.n_files, 2);
	assert_string_equal(o.files[1], "b");
	assert_string_equal(o.to, "received");
	assert_int_equal(o.mtu, 4096);
	assert_int_equal(o.chunk, 262144);
	assert_int_equal(o.depth, 16);
	assert_int_equal(o.idle, URN_IDLE_PAUSE);
	assert_null(o.capture);
	assert_false(o.json || o.force || o.no_check || o.no_icrc);
}

static void
test_all(void **state)
{
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "--to d --json --force --capture c --mtu 1024 --chunk 1M --depth=4 "
				   "--no-check --no-icrc --idle sleep a"), -1);
	assert_string_equal(o.to, "d");
	assert_string_equal(o.capture, "c");
	assert_true(o.json && o.force && o.no_check && o.no_icrc);
	assert_int_equal(o.mtu, 1024);
	assert_int_equal(o.chunk, 1u << 20);
	assert_int_equal(o.depth, 4);
	assert_int_equal(o.idle, URN_IDLE_SLEEP);
	assert_string_equal(urn_opt_idle_name(o.idle), "sleep");
}

static void
test_roles(void **state)
{
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "--listen s"), -1);
	assert_int_equal(o.role, CP_LISTEN);
	assert_string_equal(o.socket, "s");
	assert_string_equal(o.to, "received");
	assert_int_equal(parse(&o, "--peer s a"), -1);
	assert_int_equal(o.role, CP_PEER);
	assert_null(o.to);
	assert_int_equal(parse(&o, "--child-fd 3 --child-dir d --to t --idle spin"), -1);
	assert_int_equal(o.role, CP_CHILD);
	assert_int_equal(o.fd, 3);
	assert_string_equal(o.dir, "d");
}

/* The dataplane, and its node; by default a sends and b receives. */
static void
test_attach(void **state)
{
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "a"), -1);
	assert_null(o.attach);
	assert_null(o.node);
	assert_int_equal(parse(&o, "--attach auto a"), -1);
	assert_string_equal(o.attach, "auto");
	assert_string_equal(o.node, "a");
	assert_string_equal(o.nodes[1], "b");
	assert_int_equal(parse(&o, "--attach /s --nodes left,right a"), -1);
	assert_string_equal(o.node, "left");
	assert_string_equal(o.nodes[1], "right");
	assert_int_equal(parse(&o, "--attach /s --listen s"), -1);
	assert_null(o.node);
	assert_int_equal(parse(&o, "--attach /s --node x --peer s a"), -1);
	assert_string_equal(o.node, "x");
}

/* Memory stays bounded: chunk times depth is at most 1 GiB (architecture rule 6). */
static void
test_refused(void **state)
{
	static const char *const lines[] = {
		"", "--nope a", "--to", "--mtu 0 a", "--mtu 300 a", "--mtu 8192 a", "--mtu 4096x a",
		"--chunk 4095 a", "--chunk 6K a", "--chunk 128M a", "--chunk -4K a", "--depth 0 a",
		"--depth 1 a", "--depth 1025 a", "--depth 2.5 a", "--chunk 2M --depth 1024 a",
		"--idle a", "--idle sleepy a", "--listen s a", "--listen s --peer t a",
		"--listen s --listen t", "--listen s --no-icrc", "--listen s --chunk 4K",
		"--peer s", "--peer s --to d a", "--peer s --force a", "--child-fd 3",
		"--child-dir d", "--child-fd x --child-dir d", "--child-fd 3 --child-dir d a",
		"--child-fd 3 --child-dir d --peer s",
		"--node a a", "--nodes a,b a", "--attach s --node a a", "--attach s --nodes a a",
		"--attach s --nodes ,b a", "--attach s --nodes a, a", "--attach s --nodes a,b --peer s a",
		"--attach s --capture c a", "--attach s --no-icrc a", "--attach= a",
		"--attach s --nodes 01234567890123456789012345678901,b a",
	};
	struct cp_opts o;

	(void)state;
	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(&o, lines[i]) != CP_EXIT_USAGE)
			fail_msg("'%s' was taken", lines[i]);
}

static void
test_mtu(void **state)
{
	(void)state;
	for (uint64_t mtu = 0; mtu < 10000; mtu++)
		assert_int_equal(cp_mtu_valid(mtu), mtu == 256 || mtu == 512 || mtu == 1024 ||
							    mtu == 2048 || mtu == 4096);
}

static void
test_over(void **state)
{
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "a"), -1);
	assert_false(o.over_msg);
	assert_int_equal(parse(&o, "--over verbs --chunk 64M --depth 2 a"), -1);
	assert_int_equal(parse(&o, "--over msg --chunk 1020K --depth 64 a"), -1);
	assert_true(o.over_msg);
	/* A chunk and its head are one message of at most 1 MiB; the queue is one piece of memory. */
	assert_int_equal(parse(&o, "--over msg --chunk 1M --depth 2 a"), CP_EXIT_USAGE);
	assert_int_equal(parse(&o, "--over msg --chunk 512K --depth 129 a"), CP_EXIT_USAGE);
	assert_int_equal(parse(&o, "--over tcp a"), CP_EXIT_USAGE);
	assert_int_equal(parse(&o, "--listen s --over msg"), CP_EXIT_USAGE);
}

/* A side with a session, and the loss of its primary adapter at a point of the files. */
static void
test_session(void **state)
{
	static const char *const lines[] = {
		"--session auto a",
		"--session= --peer s a",
		"--session auto --attach s --peer s a",
		"--session auto --node a --peer s a",
		"--session auto --over msg --peer s a",
		"--session auto --no-icrc --peer s a",
		"--session auto --capture c --peer s a",
		"--kill-adapter-at 50% --peer s a",
		"--kill-adapter-at 50% --attach s --peer s a",
		"--session auto --listen s --kill-adapter-at 50%",
		"--session auto --peer s --kill-adapter-at 50 a",
		"--session auto --peer s --kill-adapter-at % a",
		"--session auto --peer s --kill-adapter-at 100% a",
		"--session auto --peer s --kill-adapter-at 50%kill a",
		"--session auto --peer s --kill-adapter-at 50%: a",
		"--session auto --peer s --kill-adapter-at 50%:now a",
		"--session auto --peer s --plot a.png a",
		"--session auto --peer s --kill-adapter-at 50% --plot a.jpg a",
	};
	struct cp_opts o;

	(void)state;
	assert_int_equal(parse(&o, "--session /a,/b --listen s"), -1);
	assert_string_equal(o.session, "/a,/b");
	assert_non_null(o.attach);
	assert_false(o.kills);
	assert_int_equal(parse(&o, "--session auto --peer s --kill-adapter-at 0% a"), -1);
	assert_true(o.kills && o.kill_at == 0 && o.loss.kind == URN_LOSS_PORT);
	assert_int_equal(
		parse(&o, "--session auto --peer s --kill-adapter-at 99%:kill=77 --plot p.svg a"),
		-1);
	assert_int_equal(o.kill_at, 99);
	assert_int_equal(o.loss.pid, 77);
	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(&o, lines[i]) != CP_EXIT_USAGE)
			fail_msg("'%s' was taken", lines[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_all),
		cmocka_unit_test(test_roles),	 cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mtu),	 cmocka_unit_test(test_attach),
		cmocka_unit_test(test_over),	 cmocka_unit_test(test_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
