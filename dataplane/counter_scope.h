/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and texts of counters. Counters of one kind of object are a scope, for instance of an
 * adapter or of a port of a switch; each scope is joined from blocks, and each block is
 * written by one folder. The index of a counter is its place in all blocks of its scope, one
 * block behind the other. Reports go over a scope and know no single counter.
 */
#ifndef URN_COUNTER_SCOPE_H
#define URN_COUNTER_SCOPE_H

#include <stdint.h>

struct urn_counter_row {
	const char *name; /* in all outputs; unique in its scope */
	const char *text; /* a line for people */
};

struct urn_counter_block {
	const char *folder;		   /* the folder of dataplane/ that counts */
	const struct urn_counter_row *row; /* n of them; constant */
	unsigned int n;
};

struct urn_counter_scope {
	const char *word; /* the kind of object, as it stands in names of metrics */
	const struct urn_counter_block *block; /* constant */
	unsigned int blocks;
};

/* A counter of an X-macro as a row. */
#define URN_COUNTER_ROW(id, name, text) {name, text},

/* Counters of all blocks of a scope. */
unsigned int urn_counter_total(const struct urn_counter_scope *s);
/* Name and text of a counter by its index; NULL past the end. */
const char *urn_counter_name_in(const struct urn_counter_scope *s, unsigned int id);
const char *urn_counter_text_in(const struct urn_counter_scope *s, unsigned int id);

#endif
