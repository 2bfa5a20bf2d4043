/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of commands that are shortened, or written wrong. */
#include "admin_words.h"

#include "near.h"

#include <string.h>

/* Distinct words that may come at one place of a command, in the order of the list of commands. */
struct choice {
	unsigned int n;
	char name[ADMIN_COMMAND_COUNT][ADMIN_NAME];
};

/* Word number `at` of a command. returns: its length, with *s at it; 0: the command has fewer */
static size_t
word_at(const struct admin_command *c, unsigned int at, const char **s)
{
	const char *w = c->words;

	for (; at && *w; at--) {
		w += strcspn(w, " ");
		w += *w == ' ';
	}
	*s = w;
	return strcspn(w, " ");
}

/* True when the first `at` words of a command are these. */
static bool
begins(const struct admin_command *c, char *const *words, unsigned int at)
{
	for (unsigned int i = 0; i < at; i++) {
		const char *s;
		size_t n = word_at(c, i, &s);

		if (n == 0 || strlen(words[i]) != n || strncmp(words[i], s, n) != 0)
			return false;
	}
	return true;
}

/* Collect words that may come behind `at` words. whole: *one is then a command of these words alone
 */
static void
choices(char *const *words, unsigned int at, struct choice *ch, bool *whole)
{
	ch->n = 0;
	*whole = false;
	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		const struct admin_command *c = &admin_commands[i];
		unsigned int k = 0;
		const char *s;
		size_t n;

		if (!begins(c, words, at))
			continue;
		n = word_at(c, at, &s);
		*whole |= n == 0;
		snprintf(ch->name[ch->n], ADMIN_NAME, "%.*s", (int)n, s);
		while (k < ch->n && strcmp(ch->name[k], ch->name[ch->n]) != 0)
			k++;
		ch->n += n > 0 && k == ch->n;
	}
}

/*
 * The word of a choice that is this one, or that begins with it.
 *
 * first: of several, the first is meant; else none
 * fits: number of words that begin so
 * returns: NULL: there is none, or there are several
 */
static const char *
meant(const struct choice *ch, const char *word, bool first, unsigned int *fits)
{
	const char *found = NULL;
	size_t n = strlen(word);

	*fits = 0;
	for (unsigned int i = 0; i < ch->n; i++) {
		if (strcmp(ch->name[i], word) == 0)
			return ch->name[i];
		if (n == 0 || strncmp(ch->name[i], word, n) != 0 ||
		    strcmp(ch->name[i], "quit") == 0)
			continue;
		if (++*fits == 1)
			found = ch->name[i];
	}
	return *fits == 1 || first ? found : NULL;
}

/* Write a choice as "a, b, c". begin: only words that begin so */
static const char *
listed(const struct choice *ch, const char *begin, char *to, size_t size)
{
	size_t len = 0;

	to[0] = '\0';
	for (unsigned int i = 0; i < ch->n && len < size; i++)
		if (strncmp(ch->name[i], begin, strlen(begin)) == 0)
			len += (size_t)snprintf(to + len, size - len, "%s%s", len ? ", " : "",
						ch->name[i]);
	return to;
}

/* Say which command may be meant. at: number of the word that is wrong */
static int
no_command(char *const *words, unsigned int at, const struct choice *ch, unsigned int fits,
	   struct admin_why *why)
{
	const char *before = at ? words[0] : "", *blank = at ? " " : "";
	struct urn_near near;
	char list[160];

	if (fits > 1)
		return admin_wrong(why, "'%s%s%.40s' may be %s", before, blank, words[at],
				   listed(ch, words[at], list, sizeof(list)));
	urn_near_begin(&near, words[at]);
	for (unsigned int i = 0; i < ch->n; i++)
		urn_near_try(&near, ch->name[i]);
	if (near.best)
		return admin_wrong(why, "'%s%s%.40s' is no command; did you mean %s%s%s?", before,
				   blank, words[at], before, blank, near.best);
	if (at == 0)
		return admin_wrong(why, "'%.40s' is no command; 'help' lists them", words[0]);
	return admin_wrong(why, "'%s %.40s' is no command; there are %s", before, words[at],
			   listed(ch, "", list, sizeof(list)));
}

/* Say that a command is not complete. */
static int
wants_more(const char *word, const struct choice *ch, struct admin_why *why)
{
	char list[160];

	return admin_wrong(why, "'%s' wants a word behind it; there are %s", word,
			   listed(ch, "", list, sizeof(list)));
}

int
admin_lengthen(char *const *words, unsigned int n, struct admin_whole *whole, struct admin_why *why)
{
	struct choice ch;
	bool complete;

	if (n == 0)
		return admin_wrong(why, "give a command; 'help' lists them");
	if (n > ADMIN_WORDS)
		return admin_wrong(why, "a command has at most %d words", ADMIN_WORDS);
	memcpy(whole->word, words, n * sizeof(*words));
	for (unsigned int at = 0; at < ADMIN_NAMES; at++) {
		const char *name;
		unsigned int fits;

		choices(whole->word, at, &ch, &complete);
		if (ch.n == 0)
			return 0;
		if (at == n)
			return complete ? 0 : wants_more(whole->word[0], &ch, why);
		/* To show something else than was meant does no harm. */
		name = meant(&ch, words[at], at && strcmp(whole->word[0], "show") == 0, &fits);
		if (name == NULL)
			return complete ? 0 : no_command(whole->word, at, &ch, fits, why);
		snprintf(whole->name[at], ADMIN_NAME, "%s", name);
		whole->word[at] = whole->name[at];
	}
	return 0;
}
