/* SPDX-License-Identifier: BSD-3-Clause */
/* INI text: entries and their lines, and the sentences about text that can't be read. */
#include "config_test.h"

static struct urn_config_errors errors;
static struct urn_ini *ini;

/* The buffer has the text's exact size, so that a sanitizer sees reads behind it. */
static void
read_bytes(const char *text, size_t len)
{
	char *exact = malloc(len > 0 ? len : 1);

	assert_non_null(exact);
	memcpy(exact, text, len);
	ini = urn_ini_parse(exact, len, "t.ini", &errors);
	assert_non_null(ini);
	free(exact);
}

static int
teardown(void **state)
{
	(void)state;
	urn_ini_free(ini);
	urn_config_errors_free(&errors);
	ini = NULL;
	return 0;
}

static void
assert_text(struct urn_ini_text t, const char *s, unsigned int line, unsigned int column)
{
	assert_string_equal(t.s, s);
	assert_int_equal(t.line, line);
	assert_int_equal(t.column, column);
}

static void
sections_and_entries(void **state)
{
	static const char text[] = "# first\n"
				   "\n"
				   "[eal]\n"
				   "memory = 64M\n"
				   "  [ port   p0 ]  ; a comment\n"
				   "\tdevice=net_null0,size=64 # another\r\n"
				   "impair \t a.in  =  drop=1%,delay=2ms";

	(void)state;
	read_bytes(text, strlen(text));
	assert_int_equal(errors.n, 0);
	assert_int_equal(ini->sections, 2);
	assert_text(ini->section[0].kind, "eal", 3, 2);
	assert_string_equal(ini->section[0].name.s, "");
	assert_int_equal(ini->section[0].entries, 1);
	assert_text(ini->section[0].entry[0].key, "memory", 4, 1);
	assert_text(ini->section[0].entry[0].value, "64M", 4, 10);
	assert_text(ini->section[1].kind, "port", 5, 5);
	assert_text(ini->section[1].name, "p0", 5, 12);
	assert_int_equal(ini->section[1].entries, 2);
	assert_text(ini->section[1].entry[0].key, "device", 6, 2);
	assert_text(ini->section[1].entry[0].value, "net_null0,size=64", 6, 9);
	assert_text(ini->section[1].entry[1].key, "impair a.in", 7, 1);
	assert_text(ini->section[1].entry[1].value, "drop=1%,delay=2ms", 7, 19);
}

static void
values(void **state)
{
	static const struct {
		const char *line, *value;
	} good[] = {
		{"k = a b\tc", "a b\tc"},
		{"k = a#b;c", "a#b;c"},
		{"k = a # b", "a"},
		{"k = a\t; b", "a"},
		{"k = \"a # b ; c\" # d", "a # b ; c"},
		{"k = \" a \"", " a "},
		{"k = \"\"", ""},
		{"k = \"\\\"\\\\\"", "\"\\"},
		{"k = a \"b\" c", "a \"b\" c"},
		{"k = a = b", "a = b"},
		{"k = a\\", "a\\"},
		{"k = \xc3\xa4", "\xc3\xa4"},
		{"k =a", "a"},
		{"k=a  \t", "a"},
	};

	for (size_t i = 0; i < RTE_DIM(good); i++) {
		char text[64];

		snprintf(text, sizeof(text), "[s]\n%s\nl = z\n", good[i].line);
		read_bytes(text, strlen(text));
		assert_int_equal(errors.n, 0);
		assert_int_equal(ini->section[0].entries, 2);
		assert_string_equal(ini->section[0].entry[0].value.s, good[i].value);
		assert_string_equal(ini->section[0].entry[1].value.s, "z");
		teardown(state);
	}
}

/* Each bad line is left out and reported, and the next one is read. */
static void
bad_lines(void **state)
{
	static const struct {
		const char *line, *want;
	} bad[] = {
		{"word",
		 "2: \"word\" is no setting; write KEY = VALUE, [SECTION], or # in front of "
		 "a comment\n"},
		{"= 1", "2: there is nothing before the =; write KEY = VALUE\n"},
		{" \t = 1", "2: there is nothing before the =; write KEY = VALUE\n"},
		{"k =", "2: k has no value; give one, or put # in front of the line\n"},
		{"k = # 1", "2: k has no value; give one, or put # in front of the line\n"},
		{"k = \"a", "2: the value's opening quote has no closing one; put \" at its end\n"},
		{"k = \"a\\",
		 "2: a backslash in quotes stands before \" or \\ only; write \\\\ for "
		 "one\n"},
		{"k = \"a\\n\"", "2: a backslash in quotes stands before \" or \\ only; write \\\\ "
				 "for one\n"},
		{"k = \"a\" b", "2: \"b\" stands behind the closing quote; put all of the value in "
				"quotes\n"},
		{"k = a\x01", "2: byte 0x01 in column 6 is no text; remove it\n"},
		{"k = a\rb", "2: byte 0x0d in column 6 is no text; remove it\n"},
		{"# \x7f", "2: byte 0x7f in column 3 is no text; remove it\n"},
	};

	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		char text[64], *got;

		snprintf(text, sizeof(text), "[s]\n%s\nl = z\n", bad[i].line);
		read_bytes(text, strlen(text));
		got = config_sentences(&errors);
		assert_string_equal(got, bad[i].want);
		free(got);
		assert_int_equal(ini->section[0].entries, 1);
		assert_string_equal(ini->section[0].entry[0].key.s, "l");
		teardown(state);
	}
}

/* The section and its entries are left out, and reported once. */
static void
bad_sections(void **state)
{
	static const struct {
		const char *line, *want;
	} bad[] = {
		{"[", "1: the section's name has no end; put ] behind it\n"},
		{"[port p0 # ", "1: the section's name has no end; put ] behind it\n"},
		{"[]",
		 "1: a section is a word in brackets, or a word and a name: [eal], [port p0]\n"},
		{"[ \t]",
		 "1: a section is a word in brackets, or a word and a name: [eal], [port p0]\n"},
		{"[a b c]",
		 "1: a section is a word in brackets, or a word and a name: [eal], [port p0]\n"},
		{"[[a]",
		 "1: a section is a word in brackets, or a word and a name: [eal], [port p0]\n"},
		{"[a] k = 1", "1: \"k = 1\" behind the section's ] means nothing; put settings on "
			      "lines of their own\n"},
		{"k = 1",
		 "1: k stands before the first section; put [urnicd] or another above it\n"},
	};

	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		char text[64], *got;

		snprintf(text, sizeof(text), "%s\n%s[t]\nl = z\n", bad[i].line,
			 bad[i].line[0] == '[' ? "l = y\n" : "");
		read_bytes(text, strlen(text));
		got = config_sentences(&errors);
		assert_string_equal(got, bad[i].want);
		free(got);
		assert_int_equal(ini->sections, 1);
		assert_string_equal(ini->section[0].kind.s, "t");
		assert_int_equal(ini->section[0].entries, 1);
		teardown(state);
	}
}

static void
odd_texts(void **state)
{
	static const char nul[] = "[s]\nk = a\0b\n";
	static const char mark[] = "\xef\xbb\xbf[s]\nk = a\n";
	char *got;

	read_bytes("", 0);
	assert_int_equal(errors.n + ini->sections, 0);
	teardown(state);
	read_bytes("\n\n\r\n", 4);
	assert_int_equal(errors.n + ini->sections, 0);
	teardown(state);
	read_bytes("\xef\xbb", 2);
	assert_int_equal(errors.n, 1);
	teardown(state);
	read_bytes(mark, strlen(mark));
	assert_int_equal(errors.n, 0);
	assert_int_equal(ini->sections, 1);
	teardown(state);
	read_bytes(nul, sizeof(nul) - 1);
	got = config_sentences(&errors);
	assert_string_equal(got, "2: byte 0x00 in column 6 is no text; remove it\n");
	free(got);
}

/* Nothing is cut, however long or many. */
static void
large_texts(void **state)
{
	enum { LONG = 100000, MANY = 3000 };
	char *text = malloc(LONG + 16), *p = text;

	(void)state;
	p += sprintf(p, "[s]\nk = ");
	memset(p, 'x', LONG);
	read_bytes(text, (size_t)(p - text) + LONG);
	assert_int_equal(strlen(ini->section[0].entry[0].value.s), LONG);
	teardown(state);
	p = text;
	for (int i = 0; i < MANY; i++)
		p += sprintf(p, "[s %d]\nk = %d\n", i, i);
	assert_true(p - text < LONG);
	read_bytes(text, (size_t)(p - text));
	free(text);
	assert_int_equal(errors.n, 0);
	assert_int_equal(ini->sections, MANY);
	assert_int_equal(ini->section[MANY - 1].entry[0].value.line, 2 * MANY);
}

static void
entries_are_found(void **state)
{
	(void)state;
	read_bytes("[s]\na = 1\nb = 2\nb = 3\n", 22);
	assert_string_equal(urn_ini_find(&ini->section[0], "b")->value.s, "2");
	assert_null(urn_ini_find(&ini->section[0], "c"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(sections_and_entries, teardown),
		cmocka_unit_test_teardown(values, teardown),
		cmocka_unit_test_teardown(bad_lines, teardown),
		cmocka_unit_test_teardown(bad_sections, teardown),
		cmocka_unit_test_teardown(odd_texts, teardown),
		cmocka_unit_test_teardown(large_texts, teardown),
		cmocka_unit_test_teardown(entries_are_found, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
