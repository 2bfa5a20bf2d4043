/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of one address, read from the list of the table of neighbours. */
#ifndef URN_TEST_NEIGH_STATE_H
#define URN_TEST_NEIGH_STATE_H

#include <string.h>

#include "net/neigh.h"

/*
 * The state of an address; nothing changes by it. mac: set when the state is REACHABLE or
 * STALE; may be NULL. returns: URN_NEIGH_NONE: the table has no such entry
 */
static inline enum urn_neigh_state
test_neigh_state(struct urn_neigh *table, const uint8_t gid[16], uint8_t *mac)
{
	struct urn_neigh_info info[32];
	uint32_t at = 0;
	unsigned int n;

	while ((n = urn_neigh_list(table, &at, info, 32)) != 0)
		for (unsigned int i = 0; i < n; i++) {
			if (memcmp(info[i].gid, gid, 16) != 0)
				continue;
			if (mac != NULL && (info[i].state == URN_NEIGH_REACHABLE ||
					    info[i].state == URN_NEIGH_STALE))
				memcpy(mac, info[i].mac, 6);
			return info[i].state;
		}
	return URN_NEIGH_NONE;
}

#endif
