/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnicd/admin_words.h"

#include <stdlib.h>
#include <string.h>

static struct admin_call call;
static struct admin_why why;
static char line[ADMIN_LINE];

/* Split and parse a text. returns: as admin_parse() */
static int
parse(const char *text)
{
	char *words[ADMIN_WORDS];
	int n;

	snprintf(line, sizeof(line), "%s", text);
	n = admin_split(line, words, &why);
	assert_true(n >= 0);
	return admin_parse(&call, words, (unsigned int)n, &why);
}

static void
ok(const char *text, enum admin_id id)
{
	if (parse(text) != 0)
		fail_msg("'%s': %s", text, why.text);
	assert_int_equal(call.id, id);
}

static void
bad(const char *text, const char *words)
{
	if (parse(text) == 0)
		fail_msg("'%s' was taken", text);
	if (!strstr(why.text, words))
		fail_msg("'%s': no '%s' in '%s'", text, words, why.text);
}

static void
lines_are_cut(void **state)
{
	static const struct {
		const char *text;
		int n;
		const char *words[4];
	} lines[] = {
		{"", 0, {NULL}},
		{" \t # show", 0, {NULL}},
		{"show port", 2, {"show", "port"}},
		{"  a\tb \r\n", 2, {"a", "b"}},
		{"a 'b c' \"d'e\"", 3, {"a", "b c", "d'e"}},
		{"a'b'\"c\"d", 1, {"abcd"}},
		{"a '' b", 3, {"a", "", "b"}},
		{"a #b", 1, {"a"}},
		{"a#b", 1, {"a#b"}},
	};
	char *words[ADMIN_WORDS], text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s", lines[i].text);
		assert_int_equal(admin_split(text, words, &why), lines[i].n);
		for (int k = 0; k < lines[i].n; k++)
			assert_string_equal(words[k], lines[i].words[k]);
	}
	snprintf(text, sizeof(text), "a 'b");
	assert_int_equal(admin_split(text, words, &why), -1);
	assert_non_null(strstr(why.text, "no end"));
	for (int i = 0; i <= ADMIN_WORDS; i++)
		memcpy(text + 2 * i, "x ", 3);
	assert_int_equal(admin_split(text, words, &why), -1);
	assert_non_null(strstr(why.text, "at most"));
	for (int i = 0; i < ADMIN_WORDS; i++)
		memcpy(text + 2 * i, "x ", 3);
	assert_int_equal(admin_split(text, words, &why), ADMIN_WORDS);
}

static void
arguments_are_found(void **state)
{
	(void)state;
	ok("show port", ADMIN_show_port);
	assert_null(admin_arg(&call, "PORT"));
	ok("show port p0", ADMIN_show_port);
	assert_string_equal(admin_arg(&call, "PORT"), "p0");
	ok("show qp 0x11 state RTS client 3", ADMIN_show_qp);
	assert_int_equal(admin_number(&call, "QPN", 0), 17);
	assert_int_equal(admin_number(&call, "client", 0), 3);
	assert_string_equal(admin_arg(&call, "state"), "RTS");
	assert_int_equal(admin_number(&call, "adapter", 9), 9);
	ok("show qp adapter a0 17", ADMIN_show_qp);
	assert_int_equal(admin_number(&call, "QPN", 0), 17);
	ok("show counters all", ADMIN_show_counters);
	assert_non_null(admin_arg(&call, "all"));
	assert_null(admin_arg(&call, "ADAPTER"));
	ok("show counters all a0", ADMIN_show_counters);
	assert_string_equal(admin_arg(&call, "ADAPTER"), "a0");
	ok("port p0 down", ADMIN_port);
	assert_string_equal(admin_arg(&call, "up"), "down");
	ok("set engine 0 sleep 50us idle spin empty_polls 8", ADMIN_set_engine);
	assert_string_equal(admin_arg(&call, "idle"), "spin");
	ok("impair wire b0.in drop=1%,delay=2ms", ADMIN_impair);
	assert_string_equal(admin_arg(&call, "SPEC"), "drop=1%,delay=2ms");
	ok("capture start all 'my file' size 10M frames 5", ADMIN_capture_start);
	assert_string_equal(admin_arg(&call, "FILE"), "my file");
	ok("client 4 kick", ADMIN_client);
	ok("quit", ADMIN_quit);
}

static void
mistakes_are_named(void **state)
{
	(void)state;
	bad("", "'help' lists them");
	bad("sohw", "'sohw' is no command; did you mean show?");
	bad("xyzzy", "'xyzzy' is no command; 'help' lists them");
	bad("show", "'show' wants a word behind it; there are port, adapter");
	bad("show prot", "'show prot' is no command; did you mean show port?");
	bad("show xyzzy", "'show xyzzy' is no command; there are port");
	bad("port", "PORT is missing; write: port PORT up|down|fail");
	bad("port p0", "up|down|fail is missing");
	bad("port p0 sideways", "'sideways' is not up|down|fail");
	bad("port p0 up down", "'down' is too much");
	bad("port p0 upd", "'upd' is not");
	bad("port p0 u", "'u' is not");
	bad("show qp x", "'x' is not the number of a queue pair");
	bad("show qp 4294967296", "is not the number");
	bad("show qp 0x", "is not the number");
	bad("show qp -1", "is not the number");
	bad("show qp 1 state", "state has no value");
	bad("show qp 1 2", "'2' is too much");
	bad("show qp state RTS state ERR",
	    "'state' is not the number of a queue pair; write"); /* the word is used up */
	bad("show qp clint 9", "is not the number of a queue pair (did you mean client?); write: ");
	bad("set adapter a0 windw 5", "'windw' is too much (did you mean window?); write: ");
	bad("capture start p0 f snp 5", "'snp' is too much (did you mean snap?); write: ");
	bad("set engine 0 sleep soon", "is not a time");
	bad("capture start p0 f size big", "is not a size");
	bad("show port ''", "'' is not a name");
	bad("client x kick", "is not the number of a client");
	bad("client 1 kiss", "'kiss' is not kick");
	bad("Show port", "is no command; did you mean show?");
}

/* Words of a command may be short, as long as one alone begins so. */
static void
short_words(void **state)
{
	char *many[ADMIN_WORDS + 1];

	(void)state;
	ok("sh ad", ADMIN_show_adapter);
	ok("sho po p0", ADMIN_show_port);
	assert_string_equal(admin_arg(&call, "PORT"), "p0");
	ok("se e 0 idle spin", ADMIN_set_engine);
	ok("p p0 down", ADMIN_port);
	ok("cap sta all f", ADMIN_capture_start);
	ok("cli 4 kick", ADMIN_client);
	ok("h", ADMIN_help);
	bad("s", "'s' may be show, set");
	ok("sh c", ADMIN_show_cq); /* the first of several */
	bad("cap st", "'capture st' may be start, stop");
	bad("c 4 kick", "'c' may be capture, clear, client");
	bad("sh", "'show' wants a word behind it; there are port");
	/* Nobody ends a dataplane by a letter, or a program by a short argument. */
	for (unsigned int i = 0; i <= ADMIN_WORDS; i++)
		many[i] = (char *)"show";
	assert_int_equal(admin_parse(&call, many, ADMIN_WORDS + 1, &why), -1);
	assert_non_null(strstr(why.text, "at most"));
	bad("q", "is no command");
	bad("qui", "is no command; did you mean quit?");
	bad("cli 4 k", "'k' is not kick");
}

/* A message stays one sentence, whatever words it quotes. */
static void
long_words(void **state)
{
	char text[1500];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "show qp ", 8);
	text[sizeof(text) - 1] = '\0';
	bad(text, "is not the number");
	memcpy(text, "port p0 ", 8);
	bad(text, "is not up|down|fail; write: port PORT");
	text[4] = 'x';
	bad(text, "is no command");
}

/* ---- offers of the next word */

static char offers[2048];

static void
on_next(void *ctx, const char *word, const char *help)
{
	(void)ctx;
	assert_non_null(help);
	strcat(strcat(offers, word), " ");
}

static bool
ports(void *ctx, const char *kind, unsigned int i, char value[ADMIN_VALUE])
{
	static const char *const names[] = {"p0", "p1"};

	(void)ctx;
	if (strcmp(kind, "PORT") != 0 || i >= 2)
		return false;
	snprintf(value, ADMIN_VALUE, "%s", names[i]);
	return true;
}

static void
next(const char *text, const char *want)
{
	char *words[ADMIN_WORDS];
	int n;

	snprintf(line, sizeof(line), "%s", text);
	n = admin_split(line, words, &why);
	offers[0] = '\0';
	admin_next(words, (unsigned int)n, ports, NULL, on_next, NULL);
	if (strcmp(offers, want) != 0)
		fail_msg("'%s': '%s', not '%s'", text, offers, want);
}

static void
what_comes_next(void **state)
{
	(void)state;
	next("", "show set log reload port impair capture clear client help quit ");
	next("capture", "start stop ");
	next("set", "log engine adapter ");
	next("clear", "counters ");
	next("sho", "");
	next("show port", "p0 p1 ");
	next("show port p0", "");
	next("port p0", "up down fail ");
	next("port", "p0 p1 ");
	next("show qp", "QPN adapter client state ");
	next("show qp 17", "adapter client state ");
	next("show qp state", "STATE ");
	next("show qp state RTS", "QPN adapter client ");
	next("show qp x", "");
	next("set engine", "ENGINE ");
	next("set engine 0 idle spin", "empty_polls sleep ");
	next("show version", "");
	next("quit", "");
}

/* Parse and help understand the description of every command. */
static void
table_is_sound(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	admin_help(f);
	fclose(f);
	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		const struct admin_command *c = &admin_commands[i];

		assert_non_null(strstr(text, c->words));
		assert_non_null(strstr(text, c->help));
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(c->words, admin_commands[k].words);
		/*
		 * A command's own words are that command, or lack an argument: they are
		 * never another command.
		 */
		if (parse(c->words) != 0)
			assert_non_null(strstr(why.text, "is missing"));
		assert_int_equal(call.id, i);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_cut),      cmocka_unit_test(arguments_are_found),
		cmocka_unit_test(mistakes_are_named), cmocka_unit_test(short_words),
		cmocka_unit_test(long_words),	      cmocka_unit_test(what_comes_next),
		cmocka_unit_test(table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
