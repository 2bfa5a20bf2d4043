/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands as words: the list of commands, their parser, and the words that may come next.
 * No side effects; urnicctl uses this file, too.
 */
#ifndef URNICD_ADMIN_WORDS_H
#define URNICD_ADMIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	ADMIN_WORDS = 24,  /* words of a command, at most */
	ADMIN_NAMES = 2,   /* words of a command without its arguments, at most */
	ADMIN_NAME = 32,   /* bytes of such a word, at most, NUL included */
	ADMIN_ARGS = 8,	   /* arguments of a command, at most */
	ADMIN_LINE = 2048, /* bytes of a command, at most */
	ADMIN_VALUE = 60,  /* bytes of a value that is offered for completion, NUL included */
};

/* A command's number is its place in admin_table.h. */
enum admin_id {
#define X(fn, words, args, help) ADMIN_##fn,
#include "admin_table.h"
	ADMIN_COMMANDS(X)
#undef X
		ADMIN_COMMAND_COUNT,
};

struct admin_command {
	const char *words; /* "show qp" */
	const char *args;  /* "[QPN] ..." */
	const char *help;
};

extern const struct admin_command admin_commands[ADMIN_COMMAND_COUNT];

/* A command, taken apart. */
struct admin_call {
	enum admin_id id;
	unsigned int n;
	struct {
		char name[16]; /* the word before the value, else its kind, or the first of `a|b` */
		const char *value; /* one of the words that were parsed; owner: the caller */
	} arg[ADMIN_ARGS];
};

/* A message about a wrong command. */
struct admin_why {
	char text[256];
};

/* Say what is wrong. returns: -1 */
int admin_wrong(struct admin_why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Cut a line into words, in place: blanks separate words, '...' and "..." quote,
 * # begins a comment. returns: how many words, or -1 with *why
 */
int admin_split(char *line, char *words[ADMIN_WORDS], struct admin_why *why);
/* Words, those of a command written out. */
struct admin_whole {
	char *word[ADMIN_WORDS];	    /* in `name`, or the caller's */
	char name[ADMIN_NAMES][ADMIN_NAME]; /* words of the command */
};

/*
 * Write the words of a command out that were shortened ("sh ad": show adapter), as long as one
 * command alone begins so; of several words behind `show` the first is taken. `quit` and arguments
 * are never short. (admin_short.c)
 *
 * returns: 0: the words begin a command; -1 with *why: which ones there are, or may be meant
 */
int admin_lengthen(char *const *words, unsigned int n, struct admin_whole *whole,
		   struct admin_why *why);
/* Parse n words; those of a command may be short. returns: 0, or -1 with *why:
 * the mistake and the right form */
int admin_parse(struct admin_call *call, char *const *words, unsigned int n, struct admin_why *why);
/* The value of an argument; NULL: not given */
const char *admin_arg(const struct admin_call *call, const char *name);
/* The value of an argument as a number; the parser has checked it. returns: fallback when it was
 * not given */
uint64_t admin_number(const struct admin_call *call, const char *name, uint64_t fallback);

/* Gives the i-th value of a kind ("PORT") that exists now; false: no more. */
typedef bool admin_values_fn(void *ctx, const char *kind, unsigned int i, char value[ADMIN_VALUE]);
/* Receives a word that may come next. help: "", or the word's help text */
typedef void admin_next_fn(void *ctx, const char *word, const char *help);

/*
 * Offer the words that may come after n words, all of them complete. A kind without
 * a list of values is offered as its name in capitals. values may be NULL.
 */
void admin_next(char *const *words, unsigned int n, admin_values_fn *values, void *values_ctx,
		admin_next_fn *next, void *next_ctx);
/* True when a word is the name of a kind, not a word to be typed. */
bool admin_is_kind(const char *word);

/* Print all commands, a line each, indented by two blanks. */
void admin_help(FILE *out);

#endif
