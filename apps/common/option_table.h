/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of a command line as a table: name, meaning, field and reader of an option stand in one
 * row, from which a command line is read and --help is printed. Options that several programs
 * have are rows of this header, so that they are read and described alike everywhere.
 *
 *     static const struct urn_option rows[] = {
 *             URN_OPTION_IDLE(struct opts, idle, "pause"),
 *             {"depth", "N", "chunks in flight, 2..1024 (16)", urn_take_u32,
 *              offsetof(struct opts, depth), .min = 2, .max = 1024},
 *     };
 *
 * --help and --version need no rows.
 */
#ifndef URN_APPS_COMMON_OPTION_TABLE_H
#define URN_APPS_COMMON_OPTION_TABLE_H

#include "common/options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

#define URN_OPTION_ROWS 64u /* most rows of a table: bits of `given` */

struct urn_option {
	const char *name; /* without the dashes */
	const char *arg;  /* word for the value in --help; NULL: the option takes none */
	const char
		*help; /* lines with \n between them; NULL: not for people, --help leaves it out */
	/* Read arg (NULL: there is none) into *to, the program's struct. returns: 0, or -1 with
	 * *err */
	int (*take)(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
	size_t offset;		  /* bytes from *to to the field, for readers below */
	uint64_t min, max;	  /* numbers, sizes, times (ns) */
	const char *const *words; /* urn_take_word(), urn_take_choice(): ended by NULL */
	int id;			  /* for readers of a program that serve several rows */
	char letter;		  /* short form, "-s"; 0: none */
};

struct urn_options {
	const struct urn_option *row;
	unsigned int rows;   /* at most URN_OPTION_ROWS */
	unsigned int column; /* column in which --help has its text, from 0 */
	const char *help;    /* the command that lists the options, for messages: "--help" */
};

enum urn_options_rc {
	URN_OPTIONS_RUN,  /* all options were taken; optind is the index of the first other word */
	URN_OPTIONS_HELP, /* --help was given */
	URN_OPTIONS_VERSION, /* --version was given */
	URN_OPTIONS_BAD,     /* with *err */
};

/*
 * Take the options of a command line, in its order, up to the first that ends it. to: the struct
 * that rows' fields are in, with defaults; given: gets a bit for each row that was given.
 */
enum urn_options_rc urn_options_parse(const struct urn_options *t, int argc, char **argv, void *to,
				      uint64_t *given, struct urn_err *err);
/* True when an option was given. given: that of urn_options_parse() */
bool urn_options_given(const struct urn_options *t, uint64_t given, const char *name);
/* Print a line or more for each row, then --help and --version. */
void urn_options_help(const struct urn_options *t, FILE *out);

/* ---- readers, by the type of the field */

int urn_take_flag(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* bool */
int urn_take_text(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* const char *, of argv */
int urn_take_number(const struct urn_option *row, const char *arg, void *to,
		    struct urn_err *err); /* uint64_t */
int urn_take_u32(const struct urn_option *row, const char *arg, void *to,
		 struct urn_err *err); /* uint32_t */
int urn_take_u8(const struct urn_option *row, const char *arg, void *to,
		struct urn_err *err); /* uint8_t */
int urn_take_size(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* uint64_t */
int urn_take_size32(const struct urn_option *row, const char *arg, void *to,
		    struct urn_err *err); /* uint32_t */
int urn_take_time(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* uint64_t, ns */
int urn_take_word(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* an enum: the word's index */
int urn_take_choice(const struct urn_option *row, const char *arg, void *to,
		    struct urn_err *err); /* bool: the second of two words */
int urn_take_idle(const struct urn_option *row, const char *arg, void *to,
		  struct urn_err *err); /* enum urn_idle */
int urn_take_mtu(const struct urn_option *row, const char *arg, void *to,
		 struct urn_err *err); /* uint32_t */
/* char [2][32]: two names of nodes, "a,b" */
int urn_take_nodes(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);

/* ---- options that programs share. type: of the program's struct; preset: default, for --help */

#define URN_OPTION_JSON(type, field)                                             \
	{                                                                        \
		"json", NULL, "print JSON", urn_take_flag, offsetof(type, field) \
	}
#define URN_OPTION_IDLE(type, field, preset)                                                  \
	{                                                                                     \
		"idle", "I", "spin, pause or sleep when there is nothing to do (" preset ")", \
			urn_take_idle, offsetof(type, field)                                  \
	}
#define URN_OPTION_MTU(type, field, preset)                                                \
	{                                                                                  \
		"mtu", "N", "path MTU: 256 512 1024 2048 4096 (" preset ")", urn_take_mtu, \
			offsetof(type, field)                                              \
	}
#define URN_OPTION_NO_ICRC(type, field)                                            \
	{                                                                          \
		"no-icrc", NULL, "neither send nor check the ICRC", urn_take_flag, \
			offsetof(type, field)                                      \
	}
/* of_what: "the port", "the ports" */
#define URN_OPTION_CAPTURE(type, field, of_what)                                             \
	{                                                                                    \
		"capture", "FILE", "write the frames of " of_what " as pcapng; - is stdout", \
			urn_take_text, offsetof(type, field)                                 \
	}
#define URN_OPTION_ATTACH(type, field)                                              \
	{                                                                           \
		"attach", "S",                                                      \
			"attach to the dataplane (urnicd) at socket S; auto: the\n" \
			"socket of URNIC_SOCKET, or a usual one",                   \
			urn_take_text, offsetof(type, field)                        \
	}
#define URN_OPTION_NODES(type, field, preset)                                                    \
	{                                                                                        \
		"nodes", "A,B", "nodes or adapters to run between (" preset ")", urn_take_nodes, \
			offsetof(type, field)                                                    \
	}
/* ACK timeout of a queue pair, as in struct ibv_qp_attr */
#define URN_OPTION_TIMEOUT(type, field, preset)                                                \
	{                                                                                      \
		"timeout", "N", "acknowledgement timeout, 4.096 us * 2^N, 0..31 (" preset ")", \
			urn_take_u8, offsetof(type, field), .max = 31                          \
	}
/* how long a program measures or runs; 1 ms at least. most: nanoseconds */
#define URN_OPTION_DURATION(type, field, most, text, preset)                         \
	{                                                                            \
		"duration", "T", text ": 2, 0.5, 200ms (" preset ")", urn_take_time, \
			offsetof(type, field), .min = 1000000, .max = (most)         \
	}

#endif
