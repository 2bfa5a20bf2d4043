/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports as tables. */
#include "report/report_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_WIDTH = 22 }; /* columns of a card's keys */

/* ---- text for terminals */

/* Append a text with '?' for bytes that no terminal should see. returns: columns that the text takes */
static size_t
printable(struct urn_report_buf *b, const char *text)
{
	size_t columns = 0;

	for (; *text != '\0'; columns++) {
		unsigned int n = urn_report_utf8(text);
		unsigned char c = (unsigned char)*text;

		/* U+0080 to U+009F are control characters as well. */
		if (n == 0 || (n == 1 && (c < 0x20 || c == 0x7f)) ||
		    (n == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0))
			urn_report_buf_add(b, "?", 1);
		else
			urn_report_buf_add(b, text, n);
		text += n ? n : 1;
	}
	return columns;
}

static void
spaces(struct urn_report_buf *b, size_t n)
{
	urn_report_buf_printf(b, "%*s", (int)n, "");
}

/* ---- rows */

/* Columns that a text takes: its characters. */
static size_t
columns_of(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void
print_cell(const struct urn_report_text *t, const char *text, unsigned int col, bool last)
{
	size_t n = columns_of(text), pad = t->width[col] > n ? t->width[col] - n : 0;

	if (t->number[col])
		spaces(t->out, pad);
	urn_report_buf_add(t->out, text, strlen(text));
	if (!last)
		spaces(t->out, (t->number[col] ? 0 : pad) + 2);
}

/* Print a line of consecutive cells. returns: the cell behind them */
static const char *
print_line(const struct urn_report_text *t, const char *cell)
{
	for (unsigned int i = 0; i < t->columns; i++) {
		print_cell(t, cell, i, i + 1 == t->columns);
		cell += strlen(cell) + 1;
	}
	/* A text or an empty cell at the end of a line is not padded. */
	while (t->out->len && t->out->data[t->out->len - 1] == ' ')
		t->out->len--;
	urn_report_buf_add(t->out, "\n", 1);
	return cell;
}

void
urn_report_text_flush(struct urn_report_text *t)
{
	const char *cell = t->cells.data;
	const char *end = cell ? cell + t->cells.len : NULL;

	/* A buffer that lacks text has no whole rows any more. */
	if (t->cells.failed || t->head.failed)
		t->out->failed = true;
	else if (cell && cell < end && !t->headed)
		(void)print_line(t, t->head.data);
	t->headed |= cell && cell < end;
	while (cell && cell < end && !t->out->failed)
		cell = print_line(t, cell);
	urn_report_buf_clear(&t->cells);
}

static void
row_cell(struct urn_report_text *t, const char *key, const char *value, bool number)
{
	unsigned int i = t->at++;
	size_t n;

	if (i >= URN_REPORT_COLUMNS || (t->columns && i >= t->columns))
		return;
	if (!t->columns) {
		urn_report_buf_add(&t->head, key, strlen(key) + 1);
		t->width[i] = strlen(key);
		t->number[i] = number;
	}
	n = printable(&t->cells, *value ? value : "-");
	urn_report_buf_add(&t->cells, "", 1);
	if (n > t->width[i])
		t->width[i] = n;
}

/* ---- the sink */

static void
text_begin(struct urn_report_sink *s, const char *kind, bool card)
{
	struct urn_report_text *t = (struct urn_report_text *)s;

	(void)kind;
	t->card = card;
	t->at = 0;
	if (card && t->any)
		urn_report_buf_add(t->out, "\n", 1);
	t->any = true;
}

static void
field(struct urn_report_sink *s, const char *key, const char *value, bool number)
{
	struct urn_report_text *t = (struct urn_report_text *)s;

	if (!t->card) {
		row_cell(t, key, value, number);
		return;
	}
	urn_report_buf_printf(t->out, "%-*s ", KEY_WIDTH, key);
	(void)printable(t->out, *value ? value : "-");
	urn_report_buf_add(t->out, "\n", 1);
}

static void
text_str(struct urn_report_sink *s, const char *key, const char *value)
{
	field(s, key, value, false);
}

static void
text_u64(struct urn_report_sink *s, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	field(s, key, text, true);
}

static void
text_flag(struct urn_report_sink *s, const char *key, bool value)
{
	field(s, key, value ? "yes" : "no", false);
}

static void
text_end(struct urn_report_sink *s)
{
	struct urn_report_text *t = (struct urn_report_text *)s;

	if (t->card)
		return;
	if (!t->columns)
		t->columns = t->at < URN_REPORT_COLUMNS ? t->at : URN_REPORT_COLUMNS;
	/* Every row has as many cells as the first. */
	while (t->at < t->columns)
		row_cell(t, "", "", false);
}

void
urn_report_text_init(struct urn_report_text *t, struct urn_report_buf *out)
{
	*t = (struct urn_report_text){
		.sink = {text_begin, text_str, text_u64, text_flag, text_end},
		.out = out,
	};
}

void
urn_report_text_free(struct urn_report_text *t)
{
	urn_report_buf_free(&t->cells);
	urn_report_buf_free(&t->head);
}
