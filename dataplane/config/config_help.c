/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, printed: for a terminal and for doc/reference/urnicd.md. */
#include "config/config_priv.h"

#include <string.h>

/* Text for the value of a key, for types that need no words or range. */
static const char *const type_text[URN_CONFIG_TYPES] = {
	[URN_CT_TEXT] = "a word",
	[URN_CT_PATH] = "an absolute path",
	[URN_CT_NAME] = "a name",
	[URN_CT_NAMES] = "names",
	[URN_CT_LIMIT] = "a number or unlimited",
	[URN_CT_PERCENT] = "0% to 100%",
	[URN_CT_BOOL] = "yes or no",
	[URN_CT_MODE] = "octal",
	[URN_CT_MAC] = "a MAC address",
	[URN_CT_IPV4] = "an IPv4 address, or ADDRESS/LENGTH",
	[URN_CT_IPV6] = "an IPv6 address, or ADDRESS/LENGTH",
	[URN_CT_LISTEN] = "an address and port",
	[URN_CT_CORES] = "CPUs",
	[URN_CT_ENGINES] = "engines or all",
	[URN_CT_FEATURES] = "features",
	[URN_CT_DEVICE] = "a device",
	[URN_CT_EAL] = "arguments",
	[URN_CT_MACS] = "MAC addresses",
	[URN_CT_IPS] = "IP addresses",
	[URN_CT_ROUTER] = "an IP address",
	[URN_CT_IMPAIR] = "impairments",
	[URN_CT_LOG] = "levels, area:level",
};

static void
value_text(const struct urn_config_key *k, char *out, size_t size)
{
	char least[32], most[32];

	switch (k->type) {
	case URN_CT_COUNT:
	case URN_CT_SIZE:
		snprintf(out, size, "%s to %s", urn_config_number_text(k->min, least),
			 urn_config_number_text(k->max, most));
		break;
	case URN_CT_SET:
		snprintf(out, size, "numbers from 0 to %u", (unsigned int)k->max);
		break;
	case URN_CT_TIME:
		snprintf(out, size, "%s to %s", urn_config_time_text(k->min, least),
			 urn_config_time_text(k->max, most));
		break;
	case URN_CT_RATE:
		snprintf(out, size, "%s to %s bit/s", urn_config_rate_text(k->min, least),
			 urn_config_rate_text(k->max, most));
		break;
	case URN_CT_WORD:
	case URN_CT_LEVEL:
	case URN_CT_NUMBER:
		urn_config_words_text(k->words, out, size);
		break;
	default:
		snprintf(out, size, "%s", type_text[k->type]);
	}
}

/* Write a key's default, without the parentheses that mark words. */
static void
default_text(const struct urn_config_key *k, char *out, size_t size)
{
	size_t n = strlen(k->preset);

	if (k->preset[0] == '(')
		snprintf(out, size, "%.*s", (int)n - 2, k->preset + 1);
	else
		snprintf(out, size, "%s", k->preset);
}

static void
help_key(FILE *out, const struct urn_config_key *k)
{
	char value[96], preset[96];

	value_text(k, value, sizeof(value));
	default_text(k, preset, sizeof(preset));
	fprintf(out, "  %s%s%s\n      %s\n      value: %s; default: %s\n", k->name,
		k->arg ? " " : "", k->arg ? k->arg : "", k->help, value, preset);
}

void
urn_config_help(FILE *out)
{
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++) {
		const struct urn_config_kind *kind = &urn_config_kinds[i];

		fprintf(out, "%s[%s%s%s]\n  %s\n\n", i > 0 ? "\n" : "", kind->name,
			kind->arg ? " " : "", kind->arg ? kind->arg : "", kind->help);
		for (unsigned int k = 0; k < kind->keys; k++)
			help_key(out, &kind->key[k]);
	}
}

/* Print a cell of a table; bars, which would end the cell, are escaped. */
static void
print_cell(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			fputc('\\', out);
		fputc(*s, out);
	}
}

static void
reference_key(FILE *out, const struct urn_config_key *k)
{
	char value[96], preset[96];

	value_text(k, value, sizeof(value));
	default_text(k, preset, sizeof(preset));
	fprintf(out, "| `%s`", k->name);
	if (k->arg) {
		fputc(' ', out);
		print_cell(out, k->arg);
	}
	fprintf(out, " | %s | %s | ", value, preset);
	print_cell(out, k->help);
	fputs(" |\n", out);
}

void
urn_config_reference(FILE *out)
{
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++) {
		const struct urn_config_kind *kind = &urn_config_kinds[i];

		fprintf(out, "%s### [%s%s%s]\n\n%s\n\n", i > 0 ? "\n" : "", kind->name,
			kind->arg ? " " : "", kind->arg ? kind->arg : "", kind->help);
		fputs("| key | value | when not given | |\n|---|---|---|---|\n", out);
		for (unsigned int k = 0; k < kind->keys; k++)
			reference_key(out, &kind->key[k]);
	}
}
