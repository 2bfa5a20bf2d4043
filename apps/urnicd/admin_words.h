/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands as words: which there are, what is right, what may come next. Pure;
 * urnicctl has it, too.
 */
#ifndef URNICD_ADMIN_WORDS_H
#define URNICD_ADMIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	ADMIN_WORDS = 24,  /* of a command, at most */
	ADMIN_ARGS = 8,	   /* arguments of a command, at most */
	ADMIN_LINE = 2048, /* bytes of a command, at most */
	ADMIN_VALUE = 60,  /* bytes of a value that is offered for completion, NUL included */
};

/* By its place in admin_table.h. */
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
		char name[16];	   /* the kind, the word before it, or the first of `a|b` */
		const char *value; /* of the words that were parsed; its owner's */
	} arg[ADMIN_ARGS];
};

/* A sentence about what is wrong. */
struct admin_why {
	char text[256];
};

/*
 * Cut a line into words, in place: blanks separate, '...' and "..." keep together,
 * # begins a comment. returns: how many, or -1 with *why
 */
int admin_split(char *line, char *words[ADMIN_WORDS], struct admin_why *why);
/* Understand n words. returns: 0, or -1 with *why: what is wrong and what would be right */
int admin_parse(struct admin_call *call, char *const *words, unsigned int n, struct admin_why *why);
/* The value of an argument; NULL: not given */
const char *admin_arg(const struct admin_call *call, const char *name);
/* ... as a number: any that was parsed is one. returns: fallback when it was not given */
uint64_t admin_number(const struct admin_call *call, const char *name, uint64_t fallback);

/* The i-th value of a kind ("PORT") that there is now; false: no more. */
typedef bool admin_values_fn(void *ctx, const char *kind, unsigned int i, char value[ADMIN_VALUE]);
/* Something that may come next. help: "" or what is said of it */
typedef void admin_next_fn(void *ctx, const char *word, const char *help);

/*
 * Say what may come after n words, all of them complete. A kind that has no list
 * of values comes as its name in capitals. values may be NULL.
 */
void admin_next(char *const *words, unsigned int n, admin_values_fn *values, void *values_ctx,
		admin_next_fn *next, void *next_ctx);
/* Is this what a kind is called, not a word to be typed? */
bool admin_is_kind(const char *word);

/* All commands, a line each, indented by two. */
void admin_help(FILE *out);

#endif
