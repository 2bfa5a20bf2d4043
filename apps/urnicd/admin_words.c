/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_words.h"

#include "near.h"
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct admin_command admin_commands[ADMIN_COMMAND_COUNT] = {
#define X(fn, words, args, help) [ADMIN_##fn] = {words, args, help},
	ADMIN_COMMANDS(X)
#undef X
};

int
admin_wrong(struct admin_why *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* ---- the description of arguments */

/* One argument: "[state STATE]" is optional, with key "state" and kind "STATE". */
struct element {
	bool optional;
	char key[16];  /* word that comes before the value; "": none */
	char kind[64]; /* "PORT", "up|down|fail"; "": the key alone */
};

bool
admin_is_kind(const char *word)
{
	return isupper((unsigned char)word[0]);
}

static size_t
copy_word(char *to, size_t size, const char *from)
{
	size_t n = strcspn(from, " ]");

	snprintf(to, size, "%.*s", (int)n, from);
	return n + (from[n] == ' ');
}

/* Take the next element off a description. returns: true when there was one */
static bool
take_element(const char **at, struct element *e)
{
	const char *s = *at;

	memset(e, 0, sizeof(*e));
	if (*s == '\0')
		return false;
	e->optional = *s == '[';
	s += e->optional;
	if (e->optional && !admin_is_kind(s)) {
		s += copy_word(e->key, sizeof(e->key), s);
		if (*s != ']')
			s += copy_word(e->kind, sizeof(e->kind), s);
	} else {
		s += copy_word(e->kind, sizeof(e->kind), s);
	}
	s += *s == ']';
	s += *s == ' ';
	*at = s;
	return true;
}

struct elements {
	unsigned int n;
	struct element e[ADMIN_ARGS];
	bool filled[ADMIN_ARGS];
};

static void
elements_of(const struct admin_command *c, struct elements *el)
{
	const char *at = c->args;

	memset(el, 0, sizeof(*el));
	while (el->n < ADMIN_ARGS && take_element(&at, &el->e[el->n]))
		el->n++;
}

/* The name by which an element's value is looked up. */
static void
name_of(const struct element *e, char name[16])
{
	const char *s = e->key[0] ? e->key : e->kind;

	snprintf(name, 16, "%.*s", (int)strcspn(s, "|"), s);
}

/* ---- values */

/* Parse "17" or "0x11". */
static int
number(const char *s, uint64_t *out)
{
	char *end;

	if (urn_text_parse_uint(s, out) == 0)
		return 0;
	if (s[0] != '0' || (s[1] != 'x' && s[1] != 'X') || !isxdigit((unsigned char)s[2]))
		return -1;
	errno = 0;
	*out = strtoull(s + 2, &end, 16);
	return *end == '\0' && errno == 0 ? 0 : -1;
}

/* True when the word is one of "up|down|fail". */
static bool
one_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		size_t n = strcspn(words, "|");

		if (n == len && strncmp(words, word, n) == 0)
			return true;
		if (words[n] == '\0')
			return false;
		words += n + 1;
	}
}

/* The reason why a word is no value of the kind; NULL: the word is one. */
static const char *
complaint(const char *kind, const char *word)
{
	static const struct {
		const char *kind, *text;
	} numbers[] = {
		{"QPN", "the number of a queue pair"},
		{"CLIENT", "the number of a client"},
		{"ENGINE", "the number of an engine"},
		{"N", "a number"},
	};
	uint64_t v;

	if (!admin_is_kind(kind))
		return one_of(kind, word) ? NULL : kind;
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(kind, numbers[i].kind) == 0)
			return number(word, &v) == 0 && v <= UINT32_MAX ? NULL : numbers[i].text;
	if (strcmp(kind, "TIME") == 0)
		return urn_text_parse_time(word, &v) == 0 ? NULL : "a time, such as 100us or 4ms";
	if (strcmp(kind, "SIZE") == 0)
		return urn_text_parse_size(word, &v) == 0 ? NULL : "a size, such as 64k or 10M";
	return word[0] ? NULL : "a name";
}

/* ---- words */

int
admin_split(char *line, char *words[ADMIN_WORDS], struct admin_why *why)
{
	char *from = line, *to;
	int n = 0;

	for (;;) {
		from += strspn(from, " \t\r\n");
		if (*from == '\0' || *from == '#')
			return n;
		if (n == ADMIN_WORDS)
			return admin_wrong(why, "a command has at most %d words", ADMIN_WORDS);
		words[n++] = to = from;
		while (*from != '\0' && !strchr(" \t\r\n", *from)) {
			char quote = *from++;

			if (quote != '"' && quote != '\'') {
				*to++ = quote;
				continue;
			}
			while (*from != '\0' && *from != quote)
				*to++ = *from++;
			if (*from++ == '\0')
				return admin_wrong(why, "a quote %c has no end", quote);
		}
		from += *from != '\0';
		*to = '\0';
	}
}

/* Match words with a command's own words. returns: number of the command's words; 0: not this command.
 * partial: all n words match, but the command has more */
static unsigned int
matches(const struct admin_command *c, char *const *words, unsigned int n, bool *partial)
{
	const char *s = c->words;
	unsigned int i = 0;

	*partial = false;
	for (;;) {
		size_t len = strcspn(s, " ");

		if (i == n) {
			*partial = true;
			return 0;
		}
		if (strlen(words[i]) != len || strncmp(words[i], s, len) != 0)
			return 0;
		i++;
		if (s[len] == '\0')
			return i;
		s += len + 1;
	}
}

/* The element that takes the next word: the one with the word as its key, else one without a key. NULL: none */
static struct element *
element_for(struct elements *el, const char *word, unsigned int *index)
{
	for (unsigned int i = 0; i < el->n; i++)
		if (!el->filled[i] && el->e[i].key[0] && strcmp(el->e[i].key, word) == 0) {
			*index = i;
			return &el->e[i];
		}
	for (unsigned int i = 0; i < el->n; i++)
		if (!el->filled[i] && !el->e[i].key[0]) {
			*index = i;
			return &el->e[i];
		}
	return NULL;
}

/* Say how a command is written. */
static int
usage(const struct admin_command *c, struct admin_why *why, const char *what)
{
	return admin_wrong(why, "%s: %s; write: %s%s%s", c->words, what, c->words,
			   c->args[0] ? " " : "", c->args);
}

/* Write what is wrong with a word, and the keyword that it may be meant for. */
static void
say_wrong(const struct elements *el, const char *word, const char *wrong, char *out, size_t size)
{
	struct urn_near near;

	urn_near_begin(&near, word);
	for (unsigned int i = 0; i < el->n; i++)
		if (strcmp(el->e[i].key, word) != 0) /* else it is given a second time */
			urn_near_try(&near, el->e[i].key);
	if (near.best)
		snprintf(out, size, "'%.60s' %s (did you mean %s?)", word, wrong, near.best);
	else
		snprintf(out, size, "'%.60s' %s", word, wrong);
}

static int
parse_args(const struct admin_command *c, struct admin_call *call, char *const *words,
	   unsigned int n, struct elements *el, struct admin_why *why)
{
	char what[192], wrong[64];

	for (unsigned int i = 0; i < n; i++) {
		unsigned int at = 0;
		const struct element *e = element_for(el, words[i], &at);
		const char *value = words[i], *text;

		if (e == NULL) {
			say_wrong(el, words[i], "is too much", what, sizeof(what));
			return usage(c, why, what);
		}
		if (e->key[0] && e->kind[0] && ++i == n) {
			snprintf(what, sizeof(what), "%s has no value", e->key);
			return usage(c, why, what);
		}
		value = e->kind[0] ? words[i] : value;
		text = e->kind[0] ? complaint(e->kind, value) : NULL;
		if (text) {
			snprintf(wrong, sizeof(wrong), "is not %s", text);
			say_wrong(el, value, wrong, what, sizeof(what));
			return usage(c, why, what);
		}
		el->filled[at] = true;
		name_of(e, call->arg[call->n].name);
		call->arg[call->n++].value = value;
	}
	return 0;
}

int
admin_parse(struct admin_call *call, char *const *words, unsigned int n, struct admin_why *why)
{
	const struct admin_command *c = NULL;
	unsigned int used = 0;
	struct elements el;
	struct admin_whole whole;
	char what[128];
	bool partial;

	memset(call, 0, sizeof(*call));
	if (admin_lengthen(words, n, &whole, why) != 0)
		return -1;
	words = whole.word;
	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		unsigned int m = matches(&admin_commands[i], words, n, &partial);

		if (m > used) {
			used = m;
			c = &admin_commands[i];
			call->id = (enum admin_id)i;
		}
	}
	elements_of(c, &el);
	if (parse_args(c, call, words + used, n - used, &el, why) != 0)
		return -1;
	for (unsigned int i = 0; i < el.n; i++) {
		if (el.filled[i] || el.e[i].optional)
			continue;
		snprintf(what, sizeof(what), "%s is missing", el.e[i].kind);
		return usage(c, why, what);
	}
	return 0;
}

const char *
admin_arg(const struct admin_call *call, const char *name)
{
	for (unsigned int i = 0; i < call->n; i++)
		if (strcmp(call->arg[i].name, name) == 0)
			return call->arg[i].value;
	return NULL;
}

uint64_t
admin_number(const struct admin_call *call, const char *name, uint64_t fallback)
{
	const char *s = admin_arg(call, name);
	uint64_t v;

	return s && number(s, &v) == 0 ? v : fallback;
}

/* ---- words that may come next */

struct offer {
	admin_values_fn *values;
	void *values_ctx;
	admin_next_fn *next;
	void *next_ctx;
};

static void
offer_kind(const struct offer *o, const char *kind, const char *help)
{
	char value[ADMIN_VALUE];
	bool any = false;

	if (!admin_is_kind(kind)) {
		for (const char *s = kind;; s++) {
			size_t n = strcspn(s, "|");

			snprintf(value, sizeof(value), "%.*s", (int)n, s);
			o->next(o->next_ctx, value, help);
			s += n;
			if (*s == '\0')
				return;
		}
	}
	for (unsigned int i = 0; o->values && o->values(o->values_ctx, kind, i, value); i++) {
		any = true;
		o->next(o->next_ctx, value, kind);
	}
	if (!any)
		o->next(o->next_ctx, kind, help);
}

/* Offer the words that may come after a command's own words and n arguments. */
static void
offer_args(const struct offer *o, const struct admin_command *c, char *const *words, unsigned int n)
{
	struct elements el;
	bool positional = false;

	elements_of(c, &el);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int at = 0;
		const struct element *e = element_for(&el, words[i], &at);

		if (e == NULL)
			return;
		if (e->key[0] && e->kind[0] && ++i == n) {
			offer_kind(o, e->kind, c->help);
			return;
		}
		if (e->kind[0] && complaint(e->kind, words[i]))
			return;
		el.filled[at] = true;
	}
	for (unsigned int i = 0; i < el.n; i++) {
		const struct element *e = &el.e[i];

		if (el.filled[i])
			continue;
		if (e->key[0]) {
			o->next(o->next_ctx, e->key, c->help);
		} else if (!positional) {
			offer_kind(o, e->kind, c->help);
			positional = true;
		}
		if (!e->optional)
			return;
	}
}

/* True when this word was offered for an earlier command: "show" of "show qp" and "show cq". */
static bool
offered(unsigned int command, char *const *words, unsigned int n, const char *word, size_t len)
{
	bool partial;

	for (unsigned int i = 0; i < command; i++) {
		const char *s = admin_commands[i].words;

		(void)matches(&admin_commands[i], words, n, &partial);
		for (unsigned int k = 0; k < n && partial; k++)
			s += strcspn(s, " ") + 1;
		if (partial && strcspn(s, " ") == len && strncmp(s, word, len) == 0)
			return true;
	}
	return false;
}

void
admin_next(char *const *words, unsigned int n, admin_values_fn *values, void *values_ctx,
	   admin_next_fn *next, void *next_ctx)
{
	const struct offer o = {values, values_ctx, next, next_ctx};
	char word[32];

	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		const struct admin_command *c = &admin_commands[i];
		const char *s = c->words;
		bool partial;
		unsigned int m = matches(c, words, n, &partial);
		size_t len;

		if (m)
			offer_args(&o, c, words + m, n - m);
		if (!partial)
			continue;
		for (unsigned int k = 0; k < n; k++)
			s += strcspn(s, " ") + 1;
		len = strcspn(s, " ");
		if (offered(i, words, n, s, len))
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)len, s);
		/* A word that several commands begin with has no help text of its own. */
		next(next_ctx, word, s[len] ? "..." : c->help);
	}
}

void
admin_help(FILE *out)
{
	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		const struct admin_command *c = &admin_commands[i];

		fprintf(out, "  %s%s%s\n      %s\n", c->words, c->args[0] ? " " : "", c->args,
			c->help);
	}
}
