/* SPDX-License-Identifier: BSD-3-Clause */
/* Every mistake of a configuration, each a sentence that names file and line. */
#ifndef URN_CONFIG_CONFIG_ERRORS_H
#define URN_CONFIG_CONFIG_ERRORS_H

#include <stddef.h>

/* So many are kept; how many more there are is counted. */
#define URN_CONFIG_ERRORS_MAX 200u

struct urn_config_error {
	unsigned int line; /* from 1; 0: of the file as a whole */
	char *text;	   /* "FILE:LINE: sentence", or "FILE: sentence"; owner: the list */
};

/* All zero: none. */
struct urn_config_errors {
	struct urn_config_error *error; /* by line; owner: the list */
	unsigned int n;			/* in error[] */
	unsigned int room;		/* private */
	unsigned int
		more; /* that are not kept: beyond URN_CONFIG_ERRORS_MAX, or no memory for them */
};

/* Add one. The list may be NULL. */
void urn_config_error(struct urn_config_errors *errors, const char *file, unsigned int line,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* How many there are, kept or not. */
unsigned int urn_config_errors_count(const struct urn_config_errors *errors);
/* Free what the list holds; it is empty then. */
void urn_config_errors_free(struct urn_config_errors *errors);

#endif
