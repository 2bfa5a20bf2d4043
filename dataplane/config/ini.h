/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * INI text, with the place of everything in it:
 *
 *     # a comment, and ; this too
 *     [kind name]             or [kind]
 *     key = value             # a comment, with a space before it
 *     words in a key = "a value with # or ; or spaces at its ends"
 *
 * A value in quotes ends at the next quote; \" and \\ stand for a quote and a
 * backslash there. Nothing is continued on the next line, and nothing is cut.
 * Any other line is reported, and reading goes on behind it.
 */
#ifndef URN_CONFIG_INI_H
#define URN_CONFIG_INI_H

#include "config/config_errors.h"

#include <stddef.h>

struct urn_ini_text {
	const char *s;		   /* owner: the struct urn_ini; without control characters */
	unsigned int line, column; /* place of its first byte, from 1, the column in bytes */
};

struct urn_ini_entry {
	struct urn_ini_text key;   /* not empty; runs of blanks are one space */
	struct urn_ini_text value; /* unquoted; empty only when written "" */
};

struct urn_ini_section {
	struct urn_ini_text kind, name; /* name "": none was given */
	struct urn_ini_entry *entry;	/* in the order of the file */
	unsigned int entries;
	unsigned int room; /* private */
};

struct urn_ini {
	struct urn_ini_section *section; /* in the order of the file; kinds and names may repeat */
	unsigned int sections;
	unsigned int room; /* private */
	char *text;	   /* private */
};

/*
 * Read text. file: the text's name in sentences. Lines that cannot be read are left out and
 * added to *errors; the entries behind a section's line that cannot be
 * read are left out, too. returns: the rest; NULL when out of memory
 */
struct urn_ini *urn_ini_parse(const char *text, size_t len, const char *file,
			      struct urn_config_errors *errors);
/* NULL is allowed. */
void urn_ini_free(struct urn_ini *ini);
/* The first entry of a key, or NULL. */
const struct urn_ini_entry *urn_ini_find(const struct urn_ini_section *section, const char *key);

#endif
