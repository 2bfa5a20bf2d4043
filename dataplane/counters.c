/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"

#define B(block, folder)                                       \
	static const struct urn_counter_row rows_##block[] = { \
		URN_COUNTERS_##block(URN_COUNTER_ROW)};
URN_COUNTER_BLOCKS(B)
#undef B

static const struct urn_counter_block blocks[] = {
#define B(block, folder) {folder, rows_##block, sizeof(rows_##block) / sizeof(rows_##block[0])},
	URN_COUNTER_BLOCKS(B)
#undef B
};

const struct urn_counter_scope urn_adapter_scope = {"adapter", blocks,
						    sizeof(blocks) / sizeof(blocks[0])};

const char *
urn_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_adapter_scope, id);
}

const char *
urn_counter_text(unsigned int id)
{
	return urn_counter_text_in(&urn_adapter_scope, id);
}

void
urn_counts_move(struct urn_counts *from, struct urn_counters *to)
{
	if (!from->any)
		return;
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		to->v[i] += from->c.v[i];
	*from = (struct urn_counts){0};
}
