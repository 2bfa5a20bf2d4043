/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/classify.h"

void
urn_classify_preset(struct urn_classify_map *map)
{
	for (unsigned int i = 0; i < URN_PCPS; i++)
		map->pcp[i] = (uint8_t)i;
	for (unsigned int i = 0; i < URN_DSCPS; i++)
		map->dscp[i] = (uint8_t)(i >> 3);
	map->other = 0;
}
