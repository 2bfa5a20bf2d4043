/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes JSON to a stream: objects, arrays and values with commas, indents
 * and escapes in the right places. Nesting is bounded; there is no parser.
 */
#ifndef URN_APPS_COMMON_JSON_H
#define URN_APPS_COMMON_JSON_H

#include "common/hist.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define URN_JSON_DEPTH 16u

struct urn_json {
	FILE *out;                   /* owner: the caller */
	unsigned int depth;          /* open objects and arrays */
	bool used[URN_JSON_DEPTH];   /* the level has a member already */
	char closer[URN_JSON_DEPTH]; /* '}' or ']' that ends the level */
};

/* Start writing to a stream. */
void urn_json_init(struct urn_json *j, FILE *out);

/*
 * Open an object or an array; key is NULL inside an array and at the top.
 * returns: 0, or -1 when nested too deep (nothing is written)
 */
int urn_json_object(struct urn_json *j, const char *key);
int urn_json_array(struct urn_json *j, const char *key);
/* Close the innermost open object or array. A newline follows the outermost. */
void urn_json_end(struct urn_json *j);

/* Values; key is NULL inside an array. */
void urn_json_str(struct urn_json *j, const char *key, const char *value);
void urn_json_u64(struct urn_json *j, const char *key, uint64_t value);
void urn_json_bool(struct urn_json *j, const char *key, bool value);
void urn_json_null(struct urn_json *j, const char *key);
/* A number with this many decimals, 0..9; NaN and infinity become null. */
void urn_json_num(struct urn_json *j, const char *key, double value, int decimals);
/*
 * An object of the counters that are not zero and whose name begins with
 * `prefix`, which is left out ("": all). name: returns the name of the i-th of n
 */
void urn_json_counters(struct urn_json *j, const char *key, const char *prefix,
		       const char *(*name)(unsigned int i), const uint64_t *v, unsigned int n);
/* An object that sums up a distribution of times, in us: min, p50, p99, p999, max. */
void urn_json_latency(struct urn_json *j, const char *key, const struct urn_hist *h);

#endif
