/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/option_table.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

enum { FIRST = 256, OPT_HELP = FIRST + URN_OPTION_ROWS, OPT_VERSION };

/* ---- the command line */

/* Make getopt's table of the rows. */
static void
long_options(const struct urn_options *t, struct option *out)
{
	for (unsigned int i = 0; i < t->rows; i++)
		*out++ = (struct option){t->row[i].name,
					 t->row[i].arg != NULL ? required_argument : no_argument,
					 NULL, FIRST + (int)i};
	*out++ = (struct option){"help", no_argument, NULL, OPT_HELP};
	*out++ = (struct option){"version", no_argument, NULL, OPT_VERSION};
	*out = (struct option){0};
}

/* Make getopt's list of letters; the colon in front tells a missing value from an unknown option.
 */
static void
letters(const struct urn_options *t, char *out)
{
	*out++ = ':';
	for (unsigned int i = 0; i < t->rows; i++) {
		if (t->row[i].letter == 0)
			continue;
		*out++ = t->row[i].letter;
		if (t->row[i].arg != NULL)
			*out++ = ':';
	}
	*out = '\0';
}

/* The number of an option, from getopt's, which is the letter of a short one. */
static int
number_of(const struct urn_options *t, int id)
{
	for (unsigned int i = 0; i < t->rows; i++)
		if (t->row[i].letter != 0 && t->row[i].letter == id)
			return FIRST + (int)i;
	return id;
}

/* The word that getopt did not understand, for a message. */
static const char *
bad_word(char **argv, char word[3])
{
	/* A letter among others, "-xyz", is named alone: optind may stand before or behind its
	 * word. */
	if (optopt <= 0 || optopt >= FIRST)
		return argv[optind - 1];
	snprintf(word, 3, "-%c", optopt);
	return word;
}

static enum urn_options_rc
take_one(const struct urn_options *t, int id, char **argv, void *to, uint64_t *given,
	 struct urn_err *err)
{
	unsigned int i = (unsigned int)id - FIRST;
	char word[3];

	switch (id) {
	case OPT_HELP:
		return URN_OPTIONS_HELP;
	case OPT_VERSION:
		return URN_OPTIONS_VERSION;
	case '?':
	case ':':
		urn_opt_bad(id, bad_word(argv, word), t->help, err);
		return URN_OPTIONS_BAD;
	default:
		*given |= UINT64_C(1) << i;
		return t->row[i].take(&t->row[i], optarg, to, err) == 0 ? URN_OPTIONS_RUN
									: URN_OPTIONS_BAD;
	}
}

enum urn_options_rc
urn_options_parse(const struct urn_options *t, int argc, char **argv, void *to, uint64_t *given,
		  struct urn_err *err)
{
	struct option longs[URN_OPTION_ROWS + 3];
	char shorts[2 * URN_OPTION_ROWS + 2];
	enum urn_options_rc rc;
	int id;

	assert(t->rows <= URN_OPTION_ROWS);
	long_options(t, longs);
	letters(t, shorts);
	*given = 0;
	optind = 0; /* glibc: start over, for a caller that parses twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		rc = take_one(t, number_of(t, id), argv, to, given, err);
		if (rc != URN_OPTIONS_RUN)
			return rc;
	}
	return URN_OPTIONS_RUN;
}

bool
urn_options_given(const struct urn_options *t, uint64_t given, const char *name)
{
	for (unsigned int i = 0; i < t->rows; i++)
		if (strcmp(t->row[i].name, name) == 0)
			return given >> i & 1;
	return false;
}

/* ---- --help */

void
urn_options_help(const struct urn_options *t, FILE *out)
{
	for (unsigned int i = 0; i < t->rows; i++) {
		const struct urn_option *r = &t->row[i];
		int n;

		if (r->help == NULL)
			continue;
		n = r->letter != 0 ? fprintf(out, "  -%c, ", r->letter) : fprintf(out, "  ");
		n += fprintf(out, "--%s%s%s", r->name, r->arg != NULL ? " " : "",
			     r->arg != NULL ? r->arg : "");
		/* A name that reaches the column has two blanks behind it all the same. */
		fprintf(out, "%*s", n < (int)t->column ? (int)t->column - n : 2, "");
		for (const char *c = r->help; *c != '\0'; c++) {
			fputc(*c, out);
			if (*c == '\n')
				fprintf(out, "%*s", (int)t->column, "");
		}
		fputc('\n', out);
	}
	fputs("  --help, --version\n", out);
}

/* ---- readers */

static void *
field_of(const struct urn_option *row, void *to)
{
	return (char *)to + row->offset;
}

int
urn_take_flag(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	(void)arg;
	(void)err;
	*(bool *)field_of(row, to) = true;
	return 0;
}

int
urn_take_text(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	(void)err;
	*(const char **)field_of(row, to) = arg;
	return 0;
}

int
urn_take_number(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_number(row->name, arg, row->min, row->max, field_of(row, to), err);
}

int
urn_take_u32(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_u32(row->name, arg, (uint32_t)row->min, (uint32_t)row->max,
			   field_of(row, to), err);
}

int
urn_take_u8(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_u8(row->name, arg, (uint8_t)row->min, (uint8_t)row->max, field_of(row, to),
			  err);
}

int
urn_take_size(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_size(row->name, arg, row->min, row->max, field_of(row, to), err);
}

int
urn_take_size32(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_size32(row->name, arg, (uint32_t)row->min, (uint32_t)row->max,
			      field_of(row, to), err);
}

int
urn_take_time(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_time(row->name, arg, row->min, row->max, field_of(row, to), err);
}

static int
word_of(const struct urn_option *row, const char *arg, int *word, struct urn_err *err)
{
	int n = 0;

	while (row->words[n] != NULL)
		n++;
	return urn_opt_word(row->name, arg, row->words, n, word, err);
}

int
urn_take_word(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	unsigned int v;
	int word;

	if (word_of(row, arg, &word, err) != 0)
		return -1;
	v = (unsigned int)word;
	memcpy(field_of(row, to), &v, sizeof(v)); /* an enum has the size of unsigned int */
	return 0;
}

int
urn_take_choice(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	int word;

	if (word_of(row, arg, &word, err) != 0)
		return -1;
	*(bool *)field_of(row, to) = word == 1;
	return 0;
}

int
urn_take_idle(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_idle(arg, field_of(row, to), err);
}

int
urn_take_mtu(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	return urn_opt_mtu(arg, field_of(row, to), err);
}

int
urn_take_nodes(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	char(*node)[32] = field_of(row, to);
	size_t a = strcspn(arg, ","), b = arg[a] == ',' ? strlen(arg + a + 1) : 0;

	if (a > 0 && b > 0 && a < sizeof(node[0]) && b < sizeof(node[1])) {
		snprintf(node[0], sizeof(node[0]), "%.*s", (int)a, arg);
		snprintf(node[1], sizeof(node[1]), "%s", arg + a + 1);
		return 0;
	}
	urn_err_set(err, "--%s %.32s: give two names of nodes or adapters, such as a,b", row->name,
		    arg);
	return -1;
}
