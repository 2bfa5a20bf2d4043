/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void
urn_json_init(struct urn_json *j, FILE *out)
{
	memset(j, 0, sizeof(*j));
	j->out = out;
}

/* Write a string with its quotes. Bytes over 127 pass: the text is UTF-8 already. */
static void
put_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

/* Write the text before a value: comma, line break, indent, key. */
static void
put_lead(struct urn_json *j, const char *key)
{
	if (j->depth > 0) {
		fputs(j->used[j->depth - 1] ? ",\n" : "\n", j->out);
		j->used[j->depth - 1] = true;
		fprintf(j->out, "%*s", (int)(2 * j->depth), "");
	}
	if (key != NULL) {
		put_string(j->out, key);
		fputs(": ", j->out);
	}
}

static int
open_level(struct urn_json *j, const char *key, char opener, char closer)
{
	if (j->depth == URN_JSON_DEPTH)
		return -1;
	put_lead(j, key);
	putc(opener, j->out);
	j->used[j->depth] = false;
	j->closer[j->depth++] = closer;
	return 0;
}

int
urn_json_object(struct urn_json *j, const char *key)
{
	return open_level(j, key, '{', '}');
}

int
urn_json_array(struct urn_json *j, const char *key)
{
	return open_level(j, key, '[', ']');
}

void
urn_json_end(struct urn_json *j)
{
	if (j->depth == 0)
		return;
	j->depth--;
	if (j->used[j->depth])
		fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
	putc(j->closer[j->depth], j->out);
	if (j->depth == 0)
		putc('\n', j->out);
}

void
urn_json_str(struct urn_json *j, const char *key, const char *value)
{
	put_lead(j, key);
	put_string(j->out, value);
}

void
urn_json_u64(struct urn_json *j, const char *key, uint64_t value)
{
	put_lead(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void
urn_json_bool(struct urn_json *j, const char *key, bool value)
{
	put_lead(j, key);
	fputs(value ? "true" : "false", j->out);
}

void
urn_json_null(struct urn_json *j, const char *key)
{
	put_lead(j, key);
	fputs("null", j->out);
}

void
urn_json_num(struct urn_json *j, const char *key, double value, int decimals)
{
	if (!isfinite(value)) {
		urn_json_null(j, key);
		return;
	}
	put_lead(j, key);
	fprintf(j->out, "%.*f", decimals < 0 ? 0 : decimals > 9 ? 9 : decimals, value);
}

void
urn_json_counters(struct urn_json *j, const char *key, const char *prefix,
		  const char *(*name)(unsigned int i), const uint64_t *v, unsigned int n)
{
	size_t skip = strlen(prefix);

	urn_json_object(j, key);
	for (unsigned int i = 0; i < n; i++) {
		if (v[i] > 0 && strncmp(name(i), prefix, skip) == 0)
			urn_json_u64(j, name(i) + skip, v[i]);
	}
	urn_json_end(j);
}

static void
put_us(struct urn_json *j, const char *key, uint64_t ns)
{
	urn_json_num(j, key, (double)ns / 1000, 3);
}

void
urn_json_latency(struct urn_json *j, const char *key, const struct urn_hist *h)
{
	urn_json_object(j, key);
	put_us(j, "min", urn_hist_min(h));
	put_us(j, "p50", urn_hist_quantile(h, 0.5));
	put_us(j, "p99", urn_hist_quantile(h, 0.99));
	put_us(j, "p999", urn_hist_quantile(h, 0.999));
	put_us(j, "max", urn_hist_max(h));
	urn_json_end(j);
}
