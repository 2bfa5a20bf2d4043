/* SPDX-License-Identifier: BSD-3-Clause */
#include "counter_scope.h"

#include <stddef.h>

unsigned int
urn_counter_total(const struct urn_counter_scope *s)
{
	unsigned int n = 0;

	for (unsigned int b = 0; b < s->blocks; b++)
		n += s->block[b].n;
	return n;
}

/* NULL: past the end */
static const struct urn_counter_row *
find(const struct urn_counter_scope *s, unsigned int id)
{
	for (unsigned int b = 0; b < s->blocks; b++) {
		if (id < s->block[b].n)
			return &s->block[b].row[id];
		id -= s->block[b].n;
	}
	return NULL;
}

const char *
urn_counter_name_in(const struct urn_counter_scope *s, unsigned int id)
{
	const struct urn_counter_row *row = find(s, id);

	return row ? row->name : NULL;
}

const char *
urn_counter_text_in(const struct urn_counter_scope *s, unsigned int id)
{
	const struct urn_counter_row *row = find(s, id);

	return row ? row->text : NULL;
}
