/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers, sizes and times as people write them, on a command line or in a file. */
#ifndef URN_UNITS_H
#define URN_UNITS_H

#include <stdint.h>

/*
 * Parse a size: decimal digits, then nothing or one of K, M, G (1024-based, either case), then
 * optionally "B" or "iB". returns: 0, or -1 when s is anything else or does not fit 64 bits
 * (*out is unchanged)
 */
int urn_text_parse_size(const char *s, uint64_t *out);
/*
 * Parse a bit rate: a decimal number, then nothing or one of k, K, M, G, 1000-based like all bit
 * rates: 500M, 2.5G. *out: bits a second. returns: 0 or -1, like urn_text_parse_size()
 */
int urn_text_parse_rate(const char *s, uint64_t *out);
/* Parse a plain decimal number. returns: 0 or -1, like urn_text_parse_size() */
int urn_text_parse_uint(const char *s, uint64_t *out);
/* Parse a time in seconds: "10", "0.5", "200ms". returns: 0 or -1; *out in nanoseconds */
int urn_text_parse_time(const char *s, uint64_t *out);

#endif
