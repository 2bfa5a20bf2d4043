/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/options.h"

#include "common/text.h"

#include <stdio.h>
#include <string.h>

int
urn_opt_number(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
	       struct urn_err *err)
{
	if (urn_text_parse_uint(arg, out) == 0 && *out >= min && *out <= max)
		return 0;
	urn_err_set(err, "--%s %.32s: give a number from %llu to %llu", name, arg,
		    (unsigned long long)min, (unsigned long long)max);
	return -1;
}

int
urn_opt_u32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out,
	    struct urn_err *err)
{
	uint64_t v;

	if (urn_opt_number(name, arg, min, max, &v, err))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

int
urn_opt_u8(const char *name, const char *arg, uint8_t min, uint8_t max, uint8_t *out,
	   struct urn_err *err)
{
	uint64_t v;

	if (urn_opt_number(name, arg, min, max, &v, err))
		return -1;
	*out = (uint8_t)v;
	return 0;
}

/* Print a size as --help does: 4096, 1G. returns buf */
static const char *
short_size(char *buf, size_t n, uint64_t v)
{
	static const char units[] = {'\0', 'K', 'M', 'G'};
	unsigned int u = 0;

	while (v >= 1024 && v % 1024 == 0 && u + 1 < sizeof(units)) {
		v /= 1024;
		u++;
	}
	snprintf(buf, n, "%llu%.1s", (unsigned long long)v, &units[u]);
	return buf;
}

int
urn_opt_size(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
	     struct urn_err *err)
{
	char low[24], high[24];

	if (urn_text_parse_size(arg, out) == 0 && *out >= min && *out <= max)
		return 0;
	urn_err_set(err, "--%s %.32s: give a number from %s to %s, such as 64 or 64K", name, arg,
		    short_size(low, sizeof(low), min), short_size(high, sizeof(high), max));
	return -1;
}

int
urn_opt_size32(const char *name, const char *arg, uint32_t min, uint32_t max, uint32_t *out,
	       struct urn_err *err)
{
	uint64_t v;

	if (urn_opt_size(name, arg, min, max, &v, err))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

int
urn_opt_time(const char *name, const char *arg, uint64_t min, uint64_t max, uint64_t *out,
	     struct urn_err *err)
{
	if (urn_text_parse_time(arg, out) == 0 && *out >= min && *out <= max)
		return 0;
	urn_err_set(err, "--%s %.32s: give seconds from %.10g to %.10g, such as 2 or 200ms", name,
		    arg, (double)min / 1e9, (double)max / 1e9);
	return -1;
}

int
urn_opt_find(const char *const *words, int n, const char *word)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(words[i], word) == 0)
			return i;
	}
	return -1;
}

int
urn_opt_word(const char *name, const char *arg, const char *const *words, int n, int *out,
	     struct urn_err *err)
{
	char list[64] = "";
	size_t used = 0;

	*out = urn_opt_find(words, n, arg);
	if (*out >= 0)
		return 0;
	for (int i = 0; i < n && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 words[i]);
	urn_err_set(err, "--%s %.32s: give one of %s", name, arg, list);
	return -1;
}

static const char *const idle_names[] = {
	[URN_IDLE_SPIN] = "spin", [URN_IDLE_PAUSE] = "pause", [URN_IDLE_SLEEP] = "sleep"};

const char *
urn_opt_idle_name(enum urn_idle idle)
{
	return idle_names[idle];
}

int
urn_opt_idle(const char *arg, enum urn_idle *out, struct urn_err *err)
{
	int which;

	if (urn_opt_word("idle", arg, idle_names, sizeof(idle_names) / sizeof(idle_names[0]),
			 &which, err))
		return -1;
	*out = (enum urn_idle)which;
	return 0;
}

int
urn_opt_mtu(const char *arg, uint32_t *out, struct urn_err *err)
{
	uint64_t v;

	if (urn_text_parse_size(arg, &v) == 0 && v >= 256 && v <= 4096 && (v & (v - 1)) == 0) {
		*out = (uint32_t)v;
		return 0;
	}
	urn_err_set(err, "--mtu %.32s: give 256, 512, 1024, 2048 or 4096", arg);
	return -1;
}

void
urn_opt_bad(int id, const char *word, const char *help, struct urn_err *err)
{
	if (id == ':')
		urn_err_set(err, "%.32s wants a value; %s tells which", word, help);
	else
		urn_err_set(err, "%.32s is no option, or not a whole one; %s lists them", word,
			    help);
}
