/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sinks for reports that make text: a table for people, JSON for programs.
 * Both write to a buffer in memory, which its owner may empty at any time:
 * a report that comes in parts is one table, or one array, all the same.
 */
#ifndef URN_REPORT_REPORT_OUT_H
#define URN_REPORT_REPORT_OUT_H

#include "report/report.h"

#define URN_REPORT_COLUMNS 32u /* columns of a table at most; further fields are left out */

/* Text that grows. All zero: empty. */
struct urn_report_buf {
	char *data;  /* owner; NUL terminated when len > 0 */
	size_t len;  /* bytes, NUL not counted */
	size_t size; /* bytes allocated */
	bool failed; /* out of memory: text is missing */
};

void urn_report_buf_add(struct urn_report_buf *b, const char *text, size_t len);
void urn_report_buf_printf(struct urn_report_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Empty the buffer; its memory stays allocated. */
void urn_report_buf_clear(struct urn_report_buf *b);
void urn_report_buf_free(struct urn_report_buf *b);

/*
 * Objects as lines of a table with aligned columns, or as cards: a line for each
 * field. Control characters, which could harm a terminal, and bytes that are no
 * UTF-8 are shown as '?'.
 */
struct urn_report_text {
	struct urn_report_sink sink;
	struct urn_report_buf *out;	  /* owner: the caller */
	struct urn_report_buf cells;	  /* cells of rows not printed yet, each with its NUL */
	unsigned int columns;		  /* columns of the table; known after its first row */
	unsigned int at;		  /* column of the next field */
	size_t width[URN_REPORT_COLUMNS]; /* bytes; grows from part to part */
	bool number[URN_REPORT_COLUMNS];  /* aligned to the right */
	bool card;			  /* the present object is a card */
	bool any;			  /* text was printed */
	bool headed;			  /* the table's head was printed */
	struct urn_report_buf head;	  /* keys, each with its NUL */
};

void urn_report_text_init(struct urn_report_text *t, struct urn_report_buf *out);
/* Print all complete rows. Called after each part of a report. */
void urn_report_text_flush(struct urn_report_text *t);
void urn_report_text_free(struct urn_report_text *t);

/* Objects as elements of a JSON array. */
struct urn_report_json {
	struct urn_report_sink sink;
	struct urn_report_buf *out; /* owner: the caller */
	bool open;		    /* the array has begun */
	bool any_object, any_field;
};

void urn_report_json_init(struct urn_report_json *j, struct urn_report_buf *out);
/* End the array, begun or not. Called after the last part of a report. */
void urn_report_json_finish(struct urn_report_json *j);
/* Append a string in quotes, escaped; bytes that are no UTF-8 become U+FFFD. */
void urn_report_json_string(struct urn_report_buf *b, const char *text);

/* Bytes of the UTF-8 character that text begins with; 0: text begins with no such character, or is empty. */
unsigned int urn_report_utf8(const char *text);

#endif
