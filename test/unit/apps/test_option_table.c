/* SPDX-License-Identifier: BSD-3-Clause */
/* HOUSE programs, one table of options: a program of its own reads and explains them by rows alone.
 */
#include "common/option_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct opts {
	enum urn_idle idle;
	uint32_t mtu, words;
	uint64_t size;
	const char *capture;
	char node[2][32];
	bool json, second;
};

static struct opts o;
static struct urn_err err;
static uint64_t given;

/* A reader of the program's own. */
static int
take_sum(const struct urn_option *row, const char *arg, void *to, struct urn_err *e)
{
	struct opts *p = to;

	(void)e;
	p->words += (uint32_t)(strlen(arg) + (size_t)row->id);
	return 0;
}

static const char *const ways[] = {"one", "two", NULL};
static const struct urn_option rows[] = {
	URN_OPTION_IDLE(struct opts, idle, "sleep"),
	URN_OPTION_MTU(struct opts, mtu, "4096"),
	{"size", "N", "bytes", urn_take_size, offsetof(struct opts, size), .min = 1, .max = 4096,
	 .letter = 's'},
	{"way", "W", "one\nor two", urn_take_choice, offsetof(struct opts, second), .words = ways},
	{"a-long-name", "WORD", "a sum", take_sum, .id = 10},
	{"hidden", "N", NULL, urn_take_size, offsetof(struct opts, size), .max = 9},
	URN_OPTION_CAPTURE(struct opts, capture, "the port"),
	URN_OPTION_NODES(struct opts, node, "a,b"),
	URN_OPTION_JSON(struct opts, json),
};
static const struct urn_options table = {rows, RTE_DIM(rows), 12, "--help"};

static enum urn_options_rc
parse(const char *line)
{
	static char copy[256];
	char *argv[16] = {"test"}, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	memset(&o, 0, sizeof(o));
	err.text[0] = '\0';
	return urn_options_parse(&table, argc, argv, &o, &given, &err);
}

static void
fields(void **state)
{
	(void)state;
	assert_int_equal(parse("--idle sleep --mtu 1K --size 4k --way two --a-long-name abc "
			       "--capture f --nodes x,yy --json"),
			 URN_OPTIONS_RUN);
	assert_int_equal(o.idle, URN_IDLE_SLEEP);
	assert_int_equal(o.mtu, 1024);
	assert_int_equal(o.size, 4096);
	assert_true(o.second && o.json);
	assert_int_equal(o.words, 13);
	assert_string_equal(o.capture, "f");
	assert_string_equal(o.node[1], "yy");
	/* No option: nothing was given. A second command line starts over. */
	assert_int_equal(parse("word"), URN_OPTIONS_RUN);
	assert_int_equal(given, 0);
	assert_int_equal(optind, 1);
	assert_int_equal(parse("--size 1 word"), URN_OPTIONS_RUN);
	assert_true(urn_options_given(&table, given, "size"));
	assert_false(urn_options_given(&table, given, "mtu"));
	assert_false(urn_options_given(&table, given, "nothing"));
	/* A letter stands for its name. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(parse(i == 0 ? "-s 3 --json" : "--json -s3"), URN_OPTIONS_RUN);
		assert_true(o.size == 3 && o.json && urn_options_given(&table, given, "size"));
	}
}

static void
refusals(void **state)
{
	(void)state;
	assert_int_equal(parse("--help --size 0"), URN_OPTIONS_HELP);
	assert_int_equal(parse("--version"), URN_OPTIONS_VERSION);
	assert_int_equal(parse("--size 5000"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "--size 5000: give a number from 1 to 4K, such as 64 or 64K");
	assert_int_equal(parse("--way three"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "--way three: give one of one, two");
	assert_int_equal(parse("--size"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "--size wants a value; --help tells which");
	assert_int_equal(parse("--sizes 1"), URN_OPTIONS_BAD);
	assert_string_equal(err.text,
			    "--sizes is no option, or not a whole one; --help lists them");
	assert_int_equal(parse("--nodes a"), URN_OPTIONS_BAD);
	assert_int_equal(parse("-s 0"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "--size 0: give a number from 1 to 4K, such as 64 or 64K");
	assert_int_equal(parse("-s"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "-s wants a value; --help tells which");
	assert_int_equal(parse("-z"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "-z is no option, or not a whole one; --help lists them");
	assert_int_equal(parse("--json -z5"), URN_OPTIONS_BAD);
	assert_string_equal(err.text, "-z is no option, or not a whole one; --help lists them");
}

static void
help(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	urn_options_help(&table, f);
	fclose(f);
	assert_string_equal(
		text, "  --idle I  spin, pause or sleep when there is nothing to do (sleep)\n"
		      "  --mtu N   path MTU: 256 512 1024 2048 4096 (4096)\n"
		      "  -s, --size N  bytes\n"
		      "  --way W   one\n"
		      "            or two\n"
		      "  --a-long-name WORD  a sum\n"
		      "  --capture FILE  write the frames of the port as pcapng; - is stdout\n"
		      "  --nodes A,B  nodes or adapters to run between (a,b)\n"
		      "  --json    print JSON\n"
		      "  --help, --version\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(refusals),
		cmocka_unit_test(help),
	};

	return cmocka_run_group_tests_name("common_option_table", tests, NULL, NULL);
}
