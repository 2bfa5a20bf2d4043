/* SPDX-License-Identifier: BSD-3-Clause */
/* Every mistake of a configuration, each a sentence that names file and line. */
#ifndef URN_CONFIG_CONFIG_ERRORS_H
#define URN_CONFIG_CONFIG_ERRORS_H

#include <stddef.h>

/* Mistakes that are kept; further ones are only counted. */
#define URN_CONFIG_ERRORS_MAX 200u

struct urn_config_error {
	unsigned int line; /* from 1; 0: the file as a whole */
	char *text;	   /* "FILE:LINE: sentence", or "FILE: sentence"; owner: the list */
};

/* All zero: none. */
struct urn_config_errors {
	struct urn_config_error *error; /* by line; owner: the list */
	unsigned int n;			/* entries of error[] */
	unsigned int room;		/* private */
	unsigned int
		more; /* mistakes not kept: beyond URN_CONFIG_ERRORS_MAX, or no memory for them */
};

/* Add a mistake. The list may be NULL. */
void urn_config_error(struct urn_config_errors *errors, const char *file, unsigned int line,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Number of mistakes, kept or not. */
unsigned int urn_config_errors_count(const struct urn_config_errors *errors);
/* Free the list's entries; the list is empty then. */
void urn_config_errors_free(struct urn_config_errors *errors);

#endif
