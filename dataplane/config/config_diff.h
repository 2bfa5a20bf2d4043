/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two configurations, by their texts. */
#ifndef URN_CONFIG_CONFIG_DIFF_H
#define URN_CONFIG_CONFIG_DIFF_H

#include "config/config.h"

/* A key that has another value, or a section that one of the two does not have. */
struct urn_config_change {
	const char *kind, *name; /* the section's; name "": it has none */
	const char *key;	 /* NULL: the section as a whole */
	const char *from, *to;	 /* values; NULL: not given there, or no such section */
};

/*
 * Find all differences, in the order of the first file, then of the second. A value that is written
 * another way is another value.
 *
 * found: called for each; its strings stay as long as the configurations do
 */
void urn_config_diff(const struct urn_config *from, const struct urn_config *to,
		     void (*found)(void *ctx, const struct urn_config_change *c), void *ctx);

/* returns: the value that the file gives a key of that section; NULL: the file does not. The
 * value stays as long as the configuration does */
const char *urn_config_value(const struct urn_config *cfg, const char *kind, const char *name,
			     const char *key);
/* returns: true when the configuration's file has a section of that kind and name */
bool urn_config_has(const struct urn_config *cfg, const char *kind, const char *name);

#endif
