/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports as JSON. */
#include "report/report_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the buffer */

/* Make room for n bytes more and a NUL. returns: true when there is room */
static bool
reserve(struct urn_report_buf *b, size_t n)
{
	size_t size = b->size ? b->size : 1024;
	char *data;

	if (b->failed)
		return false;
	if (b->size - b->len > n)
		return true;
	while (size - b->len <= n)
		size *= 2;
	data = realloc(b->data, size);
	if (data == NULL) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->size = size;
	return true;
}

void
urn_report_buf_add(struct urn_report_buf *b, const char *text, size_t len)
{
	if (!reserve(b, len))
		return;
	memcpy(b->data + b->len, text, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void
urn_report_buf_printf(struct urn_report_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void
urn_report_buf_clear(struct urn_report_buf *b)
{
	b->len = 0;
	b->failed = false;
}

void
urn_report_buf_free(struct urn_report_buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

/* ---- strings */

unsigned int
urn_report_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t c = s[0];
	unsigned int n = c < 0x80		 ? 1
			 : c >= 0xc2 && c < 0xe0 ? 2
			 : (c & 0xf0) == 0xe0	 ? 3
			 : c >= 0xf0 && c < 0xf5 ? 4
						 : 0;

	if (c == 0 || n < 2)
		return c ? n : 0;
	c &= 0x7fu >> n;
	for (unsigned int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* No overlong encoding, no half of a surrogate pair, nothing beyond U+10FFFF. */
	if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	return n;
}

static void
escaped(struct urn_report_buf *b, unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		urn_report_buf_printf(b, "\\%c", c);
		break;
	case '\n':
		urn_report_buf_add(b, "\\n", 2);
		break;
	case '\t':
		urn_report_buf_add(b, "\\t", 2);
		break;
	default:
		urn_report_buf_printf(b, "\\u%04x", c);
	}
}

void
urn_report_json_string(struct urn_report_buf *b, const char *text)
{
	urn_report_buf_add(b, "\"", 1);
	while (*text != '\0') {
		unsigned int n = urn_report_utf8(text);
		unsigned char c = (unsigned char)*text;

		if (n == 0)
			urn_report_buf_add(b, "\\ufffd", 6);
		else if (n == 1 && (c == '"' || c == '\\' || c < 0x20 || c == 0x7f))
			escaped(b, c);
		else
			urn_report_buf_add(b, text, n);
		text += n ? n : 1;
	}
	urn_report_buf_add(b, "\"", 1);
}

/* ---- the sink */

static void
json_begin(struct urn_report_sink *s, const char *kind, bool card)
{
	struct urn_report_json *j = (struct urn_report_json *)s;

	(void)kind;
	(void)card;
	urn_report_buf_add(j->out, j->open ? "" : "[", j->open ? 0 : 1);
	urn_report_buf_add(j->out, j->any_object ? ",\n{" : "\n{", j->any_object ? 3 : 2);
	j->open = j->any_object = true;
	j->any_field = false;
}

static struct urn_report_buf *
json_key(struct urn_report_sink *s, const char *key)
{
	struct urn_report_json *j = (struct urn_report_json *)s;

	if (j->any_field)
		urn_report_buf_add(j->out, ", ", 2);
	j->any_field = true;
	urn_report_json_string(j->out, key);
	urn_report_buf_add(j->out, ": ", 2);
	return j->out;
}

static void
json_str(struct urn_report_sink *s, const char *key, const char *value)
{
	urn_report_json_string(json_key(s, key), value);
}

static void
json_u64(struct urn_report_sink *s, const char *key, uint64_t value)
{
	urn_report_buf_printf(json_key(s, key), "%" PRIu64, value);
}

static void
json_flag(struct urn_report_sink *s, const char *key, bool value)
{
	urn_report_buf_printf(json_key(s, key), "%s", value ? "true" : "false");
}

static void
json_end(struct urn_report_sink *s)
{
	urn_report_buf_add(((struct urn_report_json *)s)->out, "}", 1);
}

void
urn_report_json_init(struct urn_report_json *j, struct urn_report_buf *out)
{
	*j = (struct urn_report_json){
		.sink = {json_begin, json_str, json_u64, json_flag, json_end},
		.out = out,
	};
}

void
urn_report_json_finish(struct urn_report_json *j)
{
	urn_report_buf_printf(j->out, "%s", !j->open ? "[]\n" : "\n]\n");
	j->open = j->any_object = false;
}
