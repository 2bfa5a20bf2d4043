/* SPDX-License-Identifier: BSD-3-Clause */
#include "units.h"

#include <ctype.h>
#include <string.h>

/* Take the digits at *s and move past them. returns: 0, or -1 when there is none or they overflow */
static int
take_digits(const char **s, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (!isdigit((unsigned char)*p))
		return -1;
	for (; isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -1;
	}
	*s = p;
	*out = v;
	return 0;
}

int
urn_text_parse_size(const char *s, uint64_t *out)
{
	static const char letters[] = "KMG";
	const char *letter;
	unsigned int shift = 0;
	uint64_t v;

	if (take_digits(&s, &v))
		return -1;
	letter = *s != '\0' ? strchr(letters, toupper((unsigned char)*s)) : NULL;
	if (letter != NULL) {
		shift = 10u * (unsigned int)(letter - letters + 1);
		s++;
		if (s[0] == 'i' && s[1] == 'B')
			s++;
	}
	if (*s == 'B')
		s++;
	if (*s != '\0' || (v << shift) >> shift != v)
		return -1;
	*out = v << shift;
	return 0;
}

int
urn_text_parse_uint(const char *s, uint64_t *out)
{
	uint64_t v;

	if (take_digits(&s, &v) || *s != '\0')
		return -1;
	*out = v;
	return 0;
}

/* Take the digits after a decimal point, as billionths, and move past them. */
static uint64_t
take_fraction(const char **s)
{
	uint64_t v = 0, unit = 100000000;

	for (; isdigit((unsigned char)**s); (*s)++) {
		v += (uint64_t)(**s - '0') * unit;
		unit /= 10;
	}
	return v;
}

int
urn_text_parse_rate(const char *s, uint64_t *out)
{
	uint64_t whole, frac = 0, unit = 1;

	if (take_digits(&s, &whole))
		return -1;
	if (*s == '.') {
		s++;
		if (!isdigit((unsigned char)*s))
			return -1;
		frac = take_fraction(&s);
	}
	if (*s == 'k' || *s == 'K')
		unit = 1000;
	else if (*s == 'M')
		unit = 1000000;
	else if (*s == 'G')
		unit = 1000000000;
	if (unit > 1)
		s++;
	frac /= 1000000000 / unit;
	if (*s != '\0' || __builtin_mul_overflow(whole, unit, &whole) ||
	    __builtin_add_overflow(whole, frac, out))
		return -1;
	return 0;
}

int
urn_text_parse_time(const char *s, uint64_t *out)
{
	uint64_t whole, frac = 0, unit = 1000000000;

	if (take_digits(&s, &whole))
		return -1;
	if (*s == '.') {
		s++;
		if (!isdigit((unsigned char)*s))
			return -1;
		frac = take_fraction(&s);
	}
	if (strcmp(s, "ms") == 0)
		unit = 1000000;
	else if (strcmp(s, "us") == 0)
		unit = 1000;
	else if (*s != '\0' && strcmp(s, "s") != 0)
		return -1;
	frac /= 1000000000 / unit;
	if (__builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, frac, out))
		return -1;
	return 0;
}
