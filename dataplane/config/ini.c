/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pass over a copy of the text. Strings are ended in place in that copy:
 * none of them is longer than its source text.
 */
#include "config/ini.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a line that a sentence repeats. */
#define SHOWN 48

struct reader {
	struct urn_ini *ini;
	const char *file;
	struct urn_config_errors *errors;
	unsigned int line;
	char *start;  /* start of the line */
	bool skip;    /* the section's line could not be read: skip its entries */
	bool no_room; /* out of memory */
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_comment(char c)
{
	return c == '#' || c == ';';
}

static char *
skip_blanks(char *s)
{
	while (is_blank(*s))
		s++;
	return s;
}

/* End s before the blanks at its end. */
static void
trim_end(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && is_blank(s[n - 1]))
		n--;
	s[n] = '\0';
}

/* Make each run of blanks inside s a single space. */
static void
squeeze(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (!is_blank(*s))
			*to++ = *s;
		else if (!is_blank(s[1]))
			*to++ = ' ';
	}
	*to = '\0';
}

static struct urn_ini_text
text_at(const struct reader *r, const char *s)
{
	return (struct urn_ini_text){s, r->line, (unsigned int)(s - r->start) + 1};
}

/* Make room for an element more in an array of the reader. returns: the array, or NULL */
static void *
grow(struct reader *r, void *array, unsigned int n, unsigned int *room, size_t size)
{
	unsigned int more = *room != 0 ? 2 * *room : 8;
	void *p;

	if (n < *room)
		return array;
	p = realloc(array, more * size);
	if (p)
		*room = more;
	else
		r->no_room = true;
	return p;
}

static void
add_section(struct reader *r, struct urn_ini_text kind, struct urn_ini_text name)
{
	struct urn_ini *ini = r->ini;
	struct urn_ini_section *s = grow(r, ini->section, ini->sections, &ini->room, sizeof(*s));

	if (!s)
		return;
	ini->section = s;
	s[ini->sections++] = (struct urn_ini_section){.kind = kind, .name = name};
}

static void
add_entry(struct reader *r, struct urn_ini_text key, struct urn_ini_text value)
{
	struct urn_ini_section *s = &r->ini->section[r->ini->sections - 1];
	struct urn_ini_entry *e = grow(r, s->entry, s->entries, &s->room, sizeof(*e));

	if (!e)
		return;
	s->entry = e;
	e[s->entries++] = (struct urn_ini_entry){key, value};
}

/* ---- [kind name] */

/* Split the text in the brackets. returns: 0, or -1: not one or two words */
static int
split_header(const struct reader *r, char *s, struct urn_ini_text *kind, struct urn_ini_text *name)
{
	char *end = s + strcspn(s, " \t");
	char *second = skip_blanks(end);

	*kind = text_at(r, s);
	*name = text_at(r, second);
	*end = '\0';
	return *s != '\0' && strpbrk(second, " \t[") == NULL && strchr(s, '[') == NULL ? 0 : -1;
}

static void
read_header(struct reader *r, char *s)
{
	char *close = strchr(s, ']'), *rest;
	struct urn_ini_text kind, name;

	r->skip = true;
	if (!close) {
		urn_config_error(r->errors, r->file, r->line,
				 "the section's name has no end; put ] behind it");
		return;
	}
	rest = skip_blanks(close + 1);
	if (*rest != '\0' && !is_comment(*rest)) {
		urn_config_error(r->errors, r->file, r->line,
				 "\"%.*s\" behind the section's ] means nothing; put settings on "
				 "lines of their own",
				 SHOWN, rest);
		return;
	}
	*close = '\0';
	s = skip_blanks(s + 1);
	trim_end(s);
	if (split_header(r, s, &kind, &name) != 0) {
		urn_config_error(r->errors, r->file, r->line,
				 "a section is a word in brackets, or a word and a name: [eal], "
				 "[port p0]");
		return;
	}
	r->skip = false;
	add_section(r, kind, name);
}

/* ---- key = value */

/* Read a value in quotes. s: behind the first quote. returns: behind the last quote, or NULL: reported */
static char *
read_quoted(const struct reader *r, char *s)
{
	char *to = s;

	for (; *s != '"'; s++) {
		if (*s == '\0') {
			urn_config_error(r->errors, r->file, r->line,
					 "the value's opening quote has no closing one; put \" at "
					 "its end");
			return NULL;
		}
		if (*s == '\\' && s[1] != '"' && s[1] != '\\') {
			urn_config_error(r->errors, r->file, r->line,
					 "a backslash in quotes stands before \" or \\ only; "
					 "write \\\\ for one");
			return NULL;
		}
		if (*s == '\\')
			s++;
		*to++ = *s;
	}
	*to = '\0';
	return s + 1;
}

/* Find the value at s, and terminate it. returns: 0, or -1: reported */
static int
read_value(const struct reader *r, const char *key, char *s, struct urn_ini_text *value)
{
	char *end;

	*value = text_at(r, s);
	if (*s == '"') {
		value->s = s + 1;
		end = read_quoted(r, s + 1);
		if (!end)
			return -1;
		end = skip_blanks(end);
		if (*end == '\0' || is_comment(*end))
			return 0;
		urn_config_error(r->errors, r->file, r->line,
				 "\"%.*s\" stands behind the closing quote; put all of the value "
				 "in quotes",
				 SHOWN, end);
		return -1;
	}
	for (end = s; *end; end++) {
		if (is_comment(*end) && (end == s || is_blank(end[-1])))
			break;
	}
	*end = '\0';
	trim_end(s);
	if (*s != '\0')
		return 0;
	urn_config_error(r->errors, r->file, r->line,
			 "%.*s has no value; give one, or put # in front of the line", SHOWN, key);
	return -1;
}

static void
read_entry(struct reader *r, char *s)
{
	char *equals = strchr(s, '=');
	struct urn_ini_text key = text_at(r, s), value;

	if (!equals) {
		urn_config_error(r->errors, r->file, r->line,
				 "\"%.*s\" is no setting; write KEY = VALUE, [SECTION], or # in "
				 "front of a comment",
				 SHOWN, s);
		return;
	}
	*equals = '\0';
	trim_end(s);
	squeeze(s);
	if (*s == '\0') {
		urn_config_error(r->errors, r->file, r->line,
				 "there is nothing before the =; write KEY = VALUE");
		return;
	}
	if (read_value(r, s, skip_blanks(equals + 1), &value) != 0 || r->skip)
		return;
	if (r->ini->sections == 0) {
		urn_config_error(r->errors, r->file, r->line,
				 "%.*s stands before the first section; put [urnicd] or another "
				 "above it",
				 SHOWN, s);
		return;
	}
	add_entry(r, key, value);
}

/* ---- lines */

/* Find the first control character, which a terminal would obey, or NUL. returns: its column, or 0: none */
static unsigned int
find_control(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return (unsigned int)i + 1;
	}
	return 0;
}

static void
read_line(struct reader *r, size_t n)
{
	unsigned int column;
	char *s;

	if (n > 0 && r->start[n - 1] == '\r')
		n--;
	column = find_control(r->start, n);
	if (column != 0) {
		urn_config_error(r->errors, r->file, r->line,
				 "byte 0x%02x in column %u is no text; remove it",
				 (unsigned char)r->start[column - 1], column);
		return;
	}
	r->start[n] = '\0';
	s = skip_blanks(r->start);
	if (*s == '\0' || is_comment(*s))
		return;
	if (*s == '[')
		read_header(r, s);
	else
		read_entry(r, s);
}

struct urn_ini *
urn_ini_parse(const char *text, size_t len, const char *file, struct urn_config_errors *errors)
{
	static const char mark[] = "\xef\xbb\xbf"; /* byte order mark that some editors put in front of UTF-8 */
	struct reader r = {.file = file, .errors = errors};
	char *end, *next;

	r.ini = calloc(1, sizeof(*r.ini));
	if (r.ini)
		r.ini->text = malloc(len + 1);
	if (!r.ini || !r.ini->text) {
		r.no_room = true;
		goto out;
	}
	if (len > 0)
		memcpy(r.ini->text, text, len);
	end = r.ini->text + len;
	*end = '\n';
	r.start = r.ini->text;
	if (len >= 3 && memcmp(r.start, mark, 3) == 0)
		r.start += 3;
	for (; r.start <= end && !r.no_room; r.start = next + 1) {
		next = memchr(r.start, '\n', (size_t)(end - r.start) + 1);
		r.line++;
		read_line(&r, (size_t)(next - r.start));
	}
out:
	if (!r.no_room)
		return r.ini;
	urn_config_error(errors, file, 0, "there is no memory to read it");
	urn_ini_free(r.ini);
	return NULL;
}

void
urn_ini_free(struct urn_ini *ini)
{
	if (!ini)
		return;
	for (unsigned int i = 0; i < ini->sections; i++)
		free(ini->section[i].entry);
	free(ini->section);
	free(ini->text);
	free(ini);
}

const struct urn_ini_entry *
urn_ini_find(const struct urn_ini_section *section, const char *key)
{
	for (unsigned int i = 0; i < section->entries; i++) {
		if (strcmp(section->entry[i].key.s, key) == 0)
			return &section->entry[i];
	}
	return NULL;
}
