/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Impairments (switch/impair.h) in words for people: a list such as
 * "drop=1%,delay=200us,seed=7".
 */
#ifndef URN_SWITCH_IMPAIR_WORDS_H
#define URN_SWITCH_IMPAIR_WORDS_H

#include "pmd_glue/port.h"
#include "switch/impair.h"

/* The keys, for --help: a line each, indented by two. */
extern const char urn_impair_keys[];

/*
 * Parse a share of frames in percent, 0 to 100, with or without the sign: "1", "0.5%".
 * *out: 0..1. returns: 0 or -1
 */
int urn_impair_parse_percent(const char *s, double *out);
/*
 * Set one impairment. value: NULL when none was given. returns: 0, or -1 with
 * a sentence that names the key in *err
 */
int urn_impair_take(struct urn_impair_config *c, const char *key, const char *value,
		    struct urn_err *err);
/* Add the impairments of a list to those in *c. returns: 0, or -1 with *err */
int urn_impair_take_list(struct urn_impair_config *c, const char *list, struct urn_err *err);
/*
 * Write the list of the impairments that are set, in the form of urn_impair_take_list(); ""
 * when none is. Cut when the list does not fit; 256 bytes are enough. returns buf
 */
const char *urn_impair_text(const struct urn_impair_config *c, char *buf, size_t size);

#endif
